#include "run/witness.h"

#include "base/clock.h"

enum { SMALL = 4096 }; /* a message that a socket buffer always has room for */

/* A look later than that may mean that the process was stopped: judge_stopped() of disturbed.c. */
enum { LATE_NS = 3 * NP_MSEC };

/* A look at a thread takes some 10 us: once in 7 ms costs little. */
enum { THREADS_MS = 7 };

void
np_witness_begin(struct np_witness *w, uint64_t due_ns, uint64_t now_ns)
{
	/* It could not begin before the previous look had ended. */
	uint64_t from = due_ns > w->looked_ns ? due_ns : w->looked_ns;

	w->late_ns += now_ns > from + LATE_NS ? now_ns - from : 0;
	w->began_ns = now_ns;
}

void
np_witness_done(struct np_witness *w, uint64_t now_ns)
{
	w->looking_ns += now_ns - w->began_ns;
	w->looked_ns = now_ns;
}

/* Note a look at now_ns, and the time since the one before, or since the window began. */
static void
note_gap(struct np_witness *w, uint64_t started_ns, uint64_t now_ns)
{
	uint64_t from = w->last_ns != 0 ? w->last_ns : started_ns;
	uint64_t gap = now_ns > from ? now_ns - from : 0;

	w->longest_ns = gap > w->longest_ns ? gap : w->longest_ns;
	w->last_ns = now_ns;
}

/* What a worker most likely does if the kernel only says that it is blocked. */
static enum np_doing_what
blocked_in(const struct np_worker *w)
{
	const struct np_plan *p = w->run->plan;

	if (np_load_is_waiting(&w->load)) {
		return NP_DOING_PAUSES;
	}
	if (p->pattern->connection_test) { /* to connect, to accept, for data or for a close */
		return NP_DOING_WAITS;
	}
	if (!p->pattern->transactions) {
		return p->role == NP_LEAD ? NP_DOING_SENDS : NP_DOING_RECEIVES;
	}
	/* Sends that fit into the socket buffer do not block. */
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
np_witness_look(struct np_witness *w, const struct np_run *run, uint64_t now_ns)
{
	note_gap(w, run->window.started_ns, now_ns);
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

uint64_t
np_witness_last_due(const struct np_run *run)
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

	if (w->every_ns == 0) { /* nothing was looked at */
		return;
	}
	if (run->window.started_ns != 0) {
		note_gap(w, run->window.started_ns, np_witness_last_due(run));
		np_bag_real(into, (double)w->every_ns / 1e9, "sampler.every_s");
		np_bag_int(into, (int64_t)w->looks, "sampler.samples");
		np_bag_real(into, (double)w->longest_ns / 1e9, "sampler.gap_max_s");
		np_bag_real(into, (double)w->stopped_ns / 1e9, "sampler.stopped_s");
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
