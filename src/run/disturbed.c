#include "run/disturbed.h"

#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/units.h"
#include "bench/engine/engine.h"
#include "bench/tally.h"
#include "net/sock.h"
#include "net/tcpinfo.h"
#include "run/foreign.h"
#include "sys/cpu.h"
#include "sys/file.h"

enum {
	CPU_BITS = 63,  /* of np_interval.cpus */
	TAIL_US = 1000, /* a shorter time after the last look is not judged */
	SETTLED = 5,    /* looks after which the mean of time squeezes is used */
	CPUS = 256      /* processors that are watched, by their number */
};

/* Bytes that queues between socket and interface may hold. */
static const uint64_t in_queues = 384 << 10;

enum { SMALL = 4096 }; /* a message that a socket buffer always has room for */

/* A look later than that may mean that the process was stopped: judge_stopped(). */
enum { LATE_NS = 3 * NP_MSEC };

/* A look at a thread takes some 10 us: once in 7 ms costs little. */
enum { THREADS_MS = 7 };

void
np_witness_begin(struct np_witness *w, uint64_t due_ns, uint64_t now_ns)
{
	/* It could not begin before the previous look had ended. */
	uint64_t from = np_max(due_ns, w->looked_ns);

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

	w->longest_ns = np_max(w->longest_ns, np_excess(now_ns, from));
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

/* Open the files of threads, unless they are open. */
static void
open_threads(struct np_witness *w, const struct np_run *run)
{
	for (; w->threads < run->workers && w->threads < NP_WITNESS_THREADS; w->threads++) {
		np_doing_open(&w->thread[w->threads], w->root, run->worker[w->threads].use.thread);
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
	open_threads(w, run);
	for (uint32_t i = 0; i < w->threads; i++) {
		np_doing_look(&w->thread[i], blocked_in(&run->worker[i]));
	}
}

/* When the last look was due: not after the test's length, though its last call may end later. */
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

	if (w->every_ns == 0) { /* nothing was looked at */
		return;
	}
	if (run->window.started_ns != 0) {
		note_gap(w, run->window.started_ns, last_due(run));
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
	for (uint32_t i = 0; i < w->threads; i++) {
		np_doing_close(&w->thread[i]);
	}
}

/* ---- Intervals ---- */

/* The reason as a bit of marks. */
static uint32_t
mark_of(enum np_reason r)
{
	return UINT32_C(1) << r;
}

/* What threads did since the last look. */
struct progress {
	struct np_thread_time did[NP_WITNESS_THREADS];
	bool moved[NP_WITNESS_THREADS]; /* to another processor: it may have shared any */
	uint64_t all_ran;               /* ns, of all of them */
};

/* What each thread did in this interval, and which processors they used (d->cpus). */
static void
look_at_threads(struct np_disturbed *d, struct np_witness *w, struct progress *p)
{
	memset(p, 0, sizeof(*p));
	d->cpus = 0;
	for (uint32_t i = 0; i < w->threads; i++) {
		struct np_doing *t = &w->thread[i];
		int was = t->cpu;

		if (!np_doing_did(t, &p->did[i])) {
			continue;
		}
		p->all_ran += p->did[i].ran_ns;
		p->moved[i] = t->cpu != was;
		d->cpus |= t->cpu >= 0 ? UINT64_C(1) << t->cpu % CPU_BITS : 0;
		d->cpus |= was >= 0 ? UINT64_C(1) << was % CPU_BITS : 0;
	}
}

/* How long threads ran, and waited for a processor because of other programs. */
static void
judge_threads(struct np_disturbed *d, struct np_witness *w, struct progress *p,
	      struct np_interval *i)
{
	uint64_t used = np_clock(CLOCK_PROCESS_CPUTIME_ID), process = used - d->process_ns,
		 kept = 0, waited = 0;

	d->process_ns = used;
	look_at_threads(d, w, p);
	for (uint32_t n = 0; n < w->threads; n++) {
		/* Own threads that may have made this one wait: the controller, which may be on any
		 * processor, and workers that were on the same one. */
		uint64_t own = np_excess(process, p->all_ran), one;

		for (uint32_t t = 0; t < w->threads; t++) {
			bool meets =
			    w->thread[t].cpu == w->thread[n].cpu || p->moved[t] || p->moved[n];

			own += t != n && meets ? p->did[t].ran_ns : 0;
		}
		one = np_excess(p->did[n].waited_ns, own);

		if (one >= kept) { /* the one that waited longest stands for all */
			kept = one;
			i->short_us = p->did[n].turns * NP_D_SHORT_US;
		}
		waited += p->did[n].waited_ns;
	}
	i->used_us = process / 1000;
	i->kept_us = kept / 1000;
	i->waited_us = waited / 1000;
	i->cpus = d->cpus;
}

/*
 * Did this process stand still? A late or long look shows that, less what the controller waited for
 * a processor; a long one also less what it and workers ran: these may have held the socket's lock.
 * As all threads stop at once, no worker can have run or waited then.
 */
static uint32_t
judge_stopped(struct np_disturbed *d, struct np_witness *w, const struct progress *p,
	      uint64_t length_ns)
{
	struct np_thread_time was = d->self;
	uint64_t busy = 0, busiest = 0, stopped;

	(void)np_thread_time(d->self_fd, &d->self);
	for (uint32_t i = 0; i < w->threads; i++) {
		uint64_t one = p->did[i].ran_ns + p->did[i].waited_ns;

		busy += one;
		busiest = np_max(busiest, one);
	}
	stopped = w->late_ns + np_excess(w->looking_ns, d->self.ran_ns - was.ran_ns + busy);
	stopped = np_excess(stopped, d->self.waited_ns - was.waited_ns);
	stopped = np_min(stopped, np_excess(length_ns, busiest));
	w->late_ns = w->looking_ns = 0;
	w->stopped_ns += stopped;
	return (double)stopped >= NP_D_STOPPED_S * 1e9 ? mark_of(NP_R_STOPPED) : 0;
}

/* Clock ticks as a share of that time. */
static double
share_of_time(uint64_t ticks, double seconds)
{
	return seconds > 0 ? (double)ticks / np_cpu_ticks_per_s() / seconds : 0;
}

/* Other programs' user time in us: the most of a worker's processor, less this process's on all. */
static uint64_t
others_us(struct np_disturbed *d, const struct np_witness *w)
{
	struct rusage r = { .ru_utime.tv_sec = 0 };
	uint64_t used, own_ns, user = 0; /* ticks, then ns */

	(void)getrusage(RUSAGE_SELF, &r);
	used = (uint64_t)r.ru_utime.tv_sec * NP_SEC + (uint64_t)r.ru_utime.tv_usec * 1000;
	own_ns = used - d->user_ns;
	d->user_ns = used;
	for (uint32_t i = 0; i < w->threads; i++) {
		struct np_cpu_ticks did;

		(void)np_cpu_ticks(d->meters.before.cpus, d->meters.now.cpus, w->thread[i].cpu,
				   &did); /* zeros if not known */
		user = np_max(user, did.user);
	}
	user = (uint64_t)((double)user / np_cpu_ticks_per_s() * 1e9);
	return np_excess(user, own_ns) / 1000;
}

/* Was a processor slower than before, or throttled? Only those count that workers keep busy. */
static uint32_t
judge_frequency(struct np_disturbed *d, double seconds)
{
	uint32_t marks = 0;

	for (int i = 0; i < NP_METERS_NEAR && d->meters.cpu[i].cpu >= 0; i++) {
		const struct np_meters_cpu *c = &d->meters.cpu[i];
		struct np_cpu_ticks did;

		if (!c->near) { /* not read at this look: begin anew at the next */
			d->throttled[i] = 0;
			continue;
		}
		(void)np_cpu_ticks(d->meters.before.cpus, d->meters.now.cpus, c->cpu, &did);
		if (c->khz > d->top_khz[i]) {
			d->top_khz[i] = c->khz;
		} else if (c->khz > 0 &&
			   1 - share_of_time(did.idle + did.iowait, seconds) >= NP_D_SLOW_BUSY &&
			   (double)c->khz < NP_D_SLOW * (double)d->top_khz[i]) {
			marks |= mark_of(NP_R_FREQUENCY);
		}
		if (d->throttled[i] != 0 && c->throttled + 1 > d->throttled[i]) {
			marks |= mark_of(NP_R_THROTTLING);
		}
		d->throttled[i] = c->throttled + 1; /* 0 means not seen before */
	}
	return marks;
}

/* Were far more softirqs cut short than in the mean interval? A fast test itself causes some. */
static uint32_t
judge_squeezed(struct np_disturbed *d)
{
	double now = (double)(d->meters.now.squeezed - d->meters.before.squeezed);
	double mean = d->looks > 1 ? d->squeezed / (double)(d->looks - 1) : 0;

	if (d->meters.before.squeezed < 0 || now < 0) {
		return 0;
	}
	d->squeezed += now;
	return d->looks > SETTLED && now > NP_D_SQUEEZED + NP_D_SQUEEZED_TIMES * mean
		   ? mark_of(NP_R_SQUEEZED)
		   : 0;
}

/* What disturbed the processors of the test in this interval, as marks. */
static uint32_t
judge_machine(struct np_disturbed *d, double seconds)
{
	const struct np_meters_seen *from = &d->meters.before, *to = &d->meters.now;
	uint32_t marks = judge_frequency(d, seconds) | judge_squeezed(d);

	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct np_cpu_ticks did;

		if ((d->cpus >> cpu % CPU_BITS & 1) != 0 &&
		    np_cpu_ticks(from->cpus, to->cpus, cpu, &did) && did.steal > 0 &&
		    share_of_time(did.steal, seconds) >= NP_D_STEAL) {
			marks |= mark_of(NP_R_STEAL);
		}
	}
	marks |= to->irqs_moved != from->irqs_moved ? mark_of(NP_R_IRQ) : 0;
	if (llabs(to->ahead_ns - from->ahead_ns) > (int64_t)(NP_D_CLOCK_S * 1e9)) {
		marks |= mark_of(NP_R_CLOCK);
	}
	return marks;
}

/* Why foreign bytes can't be told from the test's own; NULL: they can. */
static const char *
why_own_unknown(const struct np_run *run)
{
	const struct np_plan *p = run->plan;

	if (p->pattern->connection_test || p->ramp > 0) {
		return "the connections come and go";
	}
	if (run->worker->stop.wake_fd > 0) {
		return "the workers' sockets may not be read";
	}
	if (p->transport->ip_protocol == 0 ||
	    (!p->transport->tcp_info && p->transport->connected)) {
		return "what the test itself sends is not known";
	}
	return NULL;
}

/* What the test has sent and received by TCP, over all connections. */
static void
add_tcp(const struct np_run *run, struct np_carried *own)
{
	struct np_tcp_carried c = { .mss = 0 };
	uint64_t at_most;

	own->knows_out = own->knows_in = true;
	for (uint32_t i = 0; i < run->conns; i++) {
		own->knows_out &= np_tcp_carried_add(&c, run->conn[i].fd);
	}
	own->knows_in = own->knows_out;
	own->out = c.bytes_out;
	own->out_packets = c.segments_out;
	own->in_packets = c.segments_in;
	/* bytes_in lacks data received out of order, which may also come twice. Segments of
	 * transactions need not be full. */
	at_most = c.data_segments_in * c.mss;
	own->in = run->plan->pattern->transactions || at_most < c.bytes_in ? c.bytes_in : at_most;
}

/* The test's datagrams. Of those received: read, dropped at a full buffer, or still in it. */
static void
add_datagrams(const struct np_disturbed *d, struct np_carried *own)
{
	const struct np_run *run = d->run;
	const struct np_plan *p = run->plan;
	const struct np_worker *w = run->worker;
	struct np_counts c = np_counts_of(run);
	size_t out = w->send_size, in = w->recv_size;

	own->knows_out = own->knows_in = true;
	own->out = p->pattern->transactions ? c.transactions * out : c.sent;
	own->out_packets = p->pattern->transactions ? c.transactions : c.sends;
	own->in = p->pattern->transactions ? c.transactions * in : c.received;
	own->in_packets = p->pattern->transactions ? c.transactions : c.receives;
	if (!p->pattern->transactions && p->role == NP_FOLLOW) {
		in = c.receives > 0 ? c.received / c.receives : 0;
		/* Drops can't be converted to bytes if the kernel joined datagrams, if none was
		 * read, or if there are fragments. */
		own->knows_in = np_engine_of(p) != &np_engine_segment && in > 0 &&
				(d->meters.link.mtu == 0 || in <= d->meters.link.mtu);
	}
	for (uint32_t i = 0; i < run->conns && own->knows_in; i++) {
		uint32_t dropped = np_sock_memory(run->conn[i].fd, SK_MEMINFO_DROPS);

		own->in += (uint64_t)dropped * in;
		own->in_packets += dropped;
		own->waiting += np_sock_memory(run->conn[i].fd, SK_MEMINFO_RMEM_ALLOC);
	}
}

/* The test's own bytes with headers, of an interface that has counted this many packets. */
static uint64_t
own_bytes(const struct np_disturbed *d, uint64_t bytes, uint64_t packets, uint64_t counted)
{
	struct np_own own = np_own_of(
	    (double)packets, (double)bytes, d->run->plan->transport->tcp_info ? NP_TCP_STAMPED : 0,
	    np_family(np_plan_family(d->run->plan))->version, &d->meters.link);

	return (uint64_t)np_own_counted(&own, (double)counted);
}

/* Are there more bytes than the test's own, by more than the tolerance? */
static bool
is_beyond(uint64_t bytes, uint64_t own, double tolerance)
{
	return (double)bytes > (double)own + tolerance;
}

/* NP_R_FOREIGN as a mark, if the interface carried clearly more than the test; else 0. */
static uint32_t
judge_link(struct np_disturbed *d, const struct np_carried *now, double seconds)
{
	const struct np_meters_seen *from = &d->meters.before, *to = &d->meters.now;
	const struct np_carried *was = &d->own;
	uint64_t out_packets = to->link.tx_packets - from->link.tx_packets;
	uint64_t in_packets = to->link.rx_packets - from->link.rx_packets;
	uint64_t out = to->link.tx_bytes - from->link.tx_bytes;
	uint64_t in = to->link.rx_bytes - from->link.rx_bytes;
	uint64_t own_out, own_in;
	double late = (double)(from->took_ns + to->took_ns) / 1e9 / seconds;
	double all = (double)(in > out ? in : out);
	/* What was read late may be missing; NP_D_FOREIGN_BYTES is for 0.1 s. */
	double tolerance = all * (NP_D_FOREIGN + late) + NP_D_FOREIGN_BYTES * seconds * 10;
	bool is_loop = strcmp(d->meters.link.device, "lo") == 0, marked;

	if (!from->has_link || !to->has_link || now->out < was->out || now->in < was->in) {
		return 0; /* a part is not known */
	}
	own_out =
	    own_bytes(d, now->out - was->out, now->out_packets - was->out_packets, out_packets);
	own_in = own_bytes(d, now->in - was->in, now->in_packets - was->in_packets, in_packets) +
		 np_excess(now->waiting, was->waiting);
	if (is_loop) { /* the loopback counts each packet in both directions */
		own_out += own_in;
	}
	own_out += d->ahead;
	/* Bytes that the interface has counted may reach the socket an interval later. So unmark
	 * the interval before if this one has as many of the test's own bytes too many. */
	if (!is_beyond(d->owed_out, np_excess(own_out, out), tolerance) &&
	    !is_beyond(d->owed_in, np_excess(own_in, in), tolerance)) {
		d->held_marks &= ~mark_of(NP_R_FOREIGN);
	}
	/* Own bytes that the interface has not counted, now or an interval ago, are in queues. */
	d->ahead = np_min(np_excess(np_excess(own_out, out), d->owed_out), in_queues);
	marked = now->knows_out && is_beyond(out, own_out, tolerance);
	d->owed_out = marked ? out - own_out : 0;
	if (now->knows_in && !is_loop && is_beyond(in, own_in, tolerance)) {
		d->owed_in = in - own_in;
		marked = true;
	} else {
		d->owed_in = 0;
	}
	return marked ? mark_of(NP_R_FOREIGN) : 0;
}

/* What this end has done for the result: transactions or bytes. */
static uint64_t
work_of(const struct np_run *run)
{
	struct np_counts c = np_counts_of(run);

	return run->plan->pattern->transactions ? c.transactions : np_counts_bytes(&c);
}

/* Keep the last interval: no later one can change it. */
static void
keep_held(struct np_disturbed *d)
{
	if (d->held.end_us > 0) {
		np_intervals_keep(&d->intervals, d->held, d->held_marks);
		d->held.end_us = 0;
	}
}

void
np_disturbed_begin(struct np_disturbed *d, const char *root, const char *device,
		   const struct np_run *run)
{
	const struct np_addr *peer = run->end.peer.len != 0 ? &run->end.peer : &run->terms->only;
	char of_peer[16];

	memset(d, 0, sizeof(*d));
	d->run = run;
	d->self_fd = -1;
	np_meters_open(&d->meters, root, device);
	d->peer_here = np_plan_family(run->plan) == AF_UNIX || strcmp(device, "lo") == 0 ||
		       (run->plan->transport->ip_protocol != 0 && peer->len != 0 &&
			np_addr_device(peer, of_peer) == 0);
}

void
np_disturbed_look(struct np_disturbed *d, struct np_witness *w, uint64_t now_ns)
{
	struct np_meters_seen *from = &d->meters.before, *to = &d->meters.now;
	struct np_interval i = { .work = 0 };
	struct progress p;
	uint32_t marks;
	double seconds = (double)(now_ns - d->last_ns) / 1e9;
	uint64_t work = work_of(d->run);
	struct np_carried own = { .out = 0 };
	bool first = d->looks++ == 0;

	if (first) {
		d->foreign_why = why_own_unknown(d->run);
		d->self_fd = np_file_open(d->meters.link.root, "/proc/thread-self/schedstat");
		open_threads(w, d->run);
	}
	judge_threads(d, w, &p, &i);
	marks = judge_stopped(d, w, &p, first ? 0 : now_ns - d->last_ns);
	np_meters_look(&d->meters, d->cpus);
	if (d->foreign_why == NULL && d->run->plan->transport->tcp_info) {
		add_tcp(d->run, &own);
	} else if (d->foreign_why == NULL) {
		add_datagrams(d, &own);
	}
	i.others_us = others_us(d, w);
	to->took_ns = np_now() - to->at_ns; /* including reads of the test's sockets */
	if (!first && seconds > 0) {
		i.end_us = (now_ns - d->run->window.started_ns) / 1000;
		i.work = np_excess(work, d->work);
		i.stalled_us = from->stalled_us >= 0 && to->stalled_us > from->stalled_us
				   ? (uint64_t)(to->stalled_us - from->stalled_us)
				   : 0;
		marks |= judge_machine(d, seconds);
		marks |= d->foreign_why == NULL ? judge_link(d, &own, seconds) : 0;
		keep_held(d);
		d->held = i; /* the next look may remove its mark for foreign bytes */
		d->held_marks = marks;
	}
	d->own = own;
	d->work = first ? 0 : work; /* at first, workers may not have reset their counts yet */
	d->last_ns = now_ns;
}

void
np_disturbed_end(struct np_disturbed *d, struct np_witness *w, struct np_bag *into)
{
	const struct np_window *win = &d->run->window;
	uint64_t due = last_due(d->run);
	struct np_interval i = { .cpus = d->cpus }; /* by the last look: threads may have ended */
	struct progress p;
	uint32_t marks = 0;

	keep_held(d);
	/* Judge the time after the last look. If one was due then, the process stood still. */
	if (d->looks > 0 && win->started_ns != 0 &&
	    win->ended_ns >= d->last_ns + TAIL_US * (uint64_t)1000) {
		look_at_threads(d, w, &p);
		i.end_us = (win->ended_ns - win->started_ns) / 1000;
		i.work = np_excess(work_of(d->run), d->work);
		w->looking_ns = 0; /* the last look may have ended after the window */
		/* Else it is a daemon without traffic, which looks less often. */
		if (d->run->plan->active || d->held.work > 0 || i.work > 0) {
			/* As if the next look, due 100 ms after the last, came at the end. */
			np_witness_begin(w, d->last_ns + NP_DISTURBED_MS * NP_MSEC, due);
			marks = judge_stopped(d, w, &p, np_excess(due, d->last_ns));
		}
		np_intervals_keep(&d->intervals, i, marks);
	}
	if (d->intervals.count > 0) {
		np_bag_int(into, d->peer_here, "disturbed.peer_here");
		np_intervals_put(&d->intervals, into);
		np_meters_put_unread(&d->meters, into);
		if (d->self_fd < 0) {
			np_bag_unread(into, strerror(-d->self_fd), "disturbed.switches");
		}
		if (d->foreign_why != NULL && d->meters.now.has_link) {
			np_bag_unread(into, d->foreign_why, "disturbed.foreign");
		}
	}
	np_meters_close(&d->meters);
	np_fds_close(d->self_fd);
}
