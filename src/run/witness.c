#include "run/witness.h"

#include "base/clock.h"
#include "sys/thread.h"

/* Messages so small that the socket's buffer always has room for one. */
enum { SMALL = 4096 };

/* Timers of a process that runs, or waits for a processor, are not that late. */
enum { LATE_NS = 3 * NP_MSEC };

/* A look at a thread takes some 10 us: samples every ms would cost a hundredth of a processor. */
enum { THREADS_MS = 7 };

/*
 * How long this thread was ready and waited for a processor since it last asked, which it does
 * where it wants to know, and else as often as it looks at threads.
 */
static uint64_t
waited_since(struct np_witness *w, uint64_t now_ns, bool wants)
{
	int64_t before = w->delay_ns;

	if (!wants && w->asked_ns != 0 && now_ns - w->asked_ns < THREADS_MS * NP_MSEC) {
		return 0;
	}
	w->asked_ns = now_ns;
	w->delay_ns = np_thread_run_delay(w->root);
	return before > 0 && w->delay_ns > before ? (uint64_t)(w->delay_ns - before) : 0;
}

/*
 * Times between two looks are half as long again at most, and mostly less (np_watch.jitters): what
 * is beyond that nobody had asked for.
 */
static void
note_gap(struct np_witness *w, uint64_t started_ns, uint64_t due_ns, uint64_t now_ns)
{
	uint64_t from = w->last_ns != 0 ? w->last_ns : started_ns;
	uint64_t gap = now_ns > from ? now_ns - from : 0;
	uint64_t expected = w->every_ns + w->every_ns / 2;
	uint64_t waited = waited_since(w, now_ns, gap > expected || now_ns > due_ns + LATE_NS);

	w->longest_ns = gap > w->longest_ns ? gap : w->longest_ns;
	if (gap > expected) {
		uint64_t late = gap - expected;

		w->late_ns += late;
		w->waited_ns += waited < late ? waited : late;
	}
	w->held_up += now_ns > due_ns + LATE_NS && waited < (now_ns - due_ns) / 2;
	w->last_ns = now_ns;
}

/* What a worker does that the kernel tells no more of than that it is blocked. */
static enum np_doing_what
blocked_in(const struct np_worker *w)
{
	const struct np_plan *p = w->run->plan;

	if (np_load_resting(&w->load)) {
		return NP_DOING_PAUSES;
	}
	if (p->pattern->connection_test) {
		return NP_DOING_WAITS;
	}
	if (!p->pattern->transactions) {
		return p->role == NP_LEAD ? NP_DOING_SENDS : NP_DOING_RECEIVES;
	}
	return w->send_size * w->depth <= SMALL ? NP_DOING_RECEIVES : NP_DOING_WAITS;
}

void
np_witness_open(struct np_witness *w, const struct np_run *run)
{
	for (uint32_t i = 0; i < run->workers && i < NP_WITNESS_THREADS; i++) {
		if (!w->thread[i].is_open) {
			np_doing_open(&w->thread[i], w->root, run->worker[i].use.thread);
		}
	}
}

void
np_witness_look(struct np_witness *w, const struct np_run *run, uint64_t due_ns, uint64_t now_ns)
{
	note_gap(w, run->window.started_ns, due_ns, now_ns);
	w->looks++;
	if (w->threads_ns != 0 && now_ns - w->threads_ns < THREADS_MS * NP_MSEC) {
		return;
	}
	w->threads_ns = now_ns;
	np_witness_open(w, run);
	for (uint32_t i = 0; i < run->workers && i < NP_WITNESS_THREADS; i++) {
		np_doing_look(&w->thread[i], blocked_in(&run->worker[i]));
	}
}

static void
put_gaps(const struct np_witness *w, struct np_bag *into)
{
	np_bag_real(into, (double)w->every_ns / 1e9, "sampler.every_s");
	np_bag_int(into, (int64_t)w->looks, "sampler.samples");
	np_bag_int(into, (int64_t)w->held_up, "sampler.held_up");
	np_bag_real(into, (double)w->longest_ns / 1e9, "sampler.gap_max_s");
	np_bag_real(into, (double)w->late_ns / 1e9, "sampler.late_s");
	np_bag_real(into, (double)w->waited_ns / 1e9, "sampler.waited_s");
}

/*
 * When the last look can have been due. Behind the time of a test nobody looks, though the last
 * call may take long; when a counted one is over is not known before.
 */
static uint64_t
last_due(const struct np_run *run)
{
	uint64_t length_ns = np_plan_time_ns(run->plan);
	uint64_t due = run->window.started_ns + length_ns;

	return length_ns > 0 && due < run->window.ended_ns ? due : run->window.ended_ns;
}

void
np_witness_end(struct np_witness *w, const struct np_run *run, const struct np_worker *worker,
	       struct np_bag *into)
{
	long at = worker - run->worker;

	if (w->every_ns == 0) {
		return;
	}
	if (run->window.started_ns != 0) {
		note_gap(w, run->window.started_ns, UINT64_MAX - LATE_NS, last_due(run));
		put_gaps(w, into);
	}
	if (at < NP_WITNESS_THREADS) {
		np_doing_put(&w->thread[at], into);
	} else if (w->looks > 0) {
		np_bag_unread(into, "only the first 8 threads are sampled", "thread.looks");
	}
	for (int i = 0; i < NP_WITNESS_THREADS; i++) {
		np_doing_close(&w->thread[i]);
	}
}
