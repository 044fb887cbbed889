#include "run/disturbed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/engine/engine.h"
#include "bench/tally.h"
#include "net/sock.h"
#include "net/tcpinfo.h"
#include "run/thresholds.h"
#include "sys/cpu.h"
#include "sys/file.h"
#include "sys/host.h"

enum { CPU_BITS = 63, TAIL_US = 1000, SETTLED = 5 };

/* What a sender's queues may hold between socket and interface. */
static const uint64_t in_queues = 384 << 10;

static uint32_t
bit(enum np_reason r)
{
	return UINT32_C(1) << r;
}

static uint64_t
less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
beyond(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* --- threads -----------------------------------------------------------------------------------
 */

/* "12345 678 9": ns that a thread ran and waited for a processor, how often. False: it is gone. */
static bool
read_schedstat(int fd, struct np_disturbed_use *use)
{
	char text[96], *at;

	if (fd < 0 || np_file_again(text, sizeof(text), fd) <= 0) {
		return false;
	}
	use->ran = strtoull(text, &at, 10);
	use->waited = strtoull(at, &at, 10);
	use->turns = strtoull(at, NULL, 10);
	return true;
}

static int
open_schedstat(const char *root, int thread)
{
	char path[PATH_MAX];

	if (thread == 0) {
		snprintf(path, sizeof(path), "%s/proc/thread-self/schedstat", root);
	} else {
		snprintf(path, sizeof(path), "%s/proc/self/task/%d/schedstat", root, thread);
	}
	return open(path, O_RDONLY | O_CLOEXEC);
}

static uint64_t
process_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NP_SEC + (uint64_t)ts.tv_nsec;
}

static uint64_t
user_time(void)
{
	struct rusage r;

	if (getrusage(RUSAGE_SELF, &r) != 0) {
		return 0;
	}
	return (uint64_t)r.ru_utime.tv_sec * NP_SEC + (uint64_t)r.ru_utime.tv_usec * 1000;
}

static uint32_t
threads_of(const struct np_disturbed *d)
{
	return d->run->workers < NP_DISTURBED_THREADS ? d->run->workers : NP_DISTURBED_THREADS;
}

/* What threads did since they were looked at last. */
struct progress {
	struct np_disturbed_use did[NP_DISTURBED_THREADS];
	bool shares[NP_DISTURBED_THREADS]; /* it changed processors, and may have met any other */
	uint64_t all_ran;
};

static void
look_at_threads(struct np_disturbed *d, const struct np_witness *w, struct progress *p)
{
	memset(p, 0, sizeof(*p));
	d->cpus = 0;
	for (uint32_t i = 0; i < threads_of(d); i++) {
		struct np_disturbed_thread *t = &d->thread[i];
		struct np_disturbed_use now;
		int cpu = np_doing_processor(&w->thread[i]), was = t->cpu;

		if (!read_schedstat(t->fd, &now)) {
			continue;
		}
		p->did[i].ran = now.ran - t->use.ran;
		p->did[i].waited = now.waited - t->use.waited;
		p->did[i].turns = now.turns - t->use.turns;
		p->all_ran += p->did[i].ran;
		p->shares[i] = cpu != was;
		t->use = now;
		t->cpu = cpu;
		d->cpus |= cpu >= 0 ? UINT64_C(1) << cpu % CPU_BITS : 0;
		d->cpus |= was >= 0 ? UINT64_C(1) << was % CPU_BITS : 0;
	}
}

/*
 * Of what a worker waited, what other threads of this process do not explain. The controller's time
 * is explained away whatever its processor.
 */
static uint64_t
kept_from(const struct np_disturbed *d, const struct progress *p, uint32_t of, uint64_t process)
{
	uint64_t own = beyond(process, p->all_ran);

	for (uint32_t i = 0; i < threads_of(d); i++) {
		bool meets = d->thread[i].cpu == d->thread[of].cpu || p->shares[i] || p->shares[of];

		own += i != of && meets ? p->did[i].ran : 0;
	}
	return beyond(p->did[of].waited, own);
}

static void
judge_threads(struct np_disturbed *d, const struct np_witness *w, struct progress *p,
	      struct np_interval *i)
{
	uint64_t used = process_time(), process = used - d->process_ns, kept = 0, waited = 0;

	d->process_ns = used;
	look_at_threads(d, w, p);
	for (uint32_t n = 0; n < threads_of(d); n++) {
		uint64_t one = kept_from(d, p, n, process);

		if (one >= kept) {
			kept = one;
			i->short_us = p->did[n].turns * NP_D_SHORT_US;
		}
		waited += p->did[n].waited;
	}
	i->used_us = process / 1000;
	i->kept_us = kept / 1000;
	i->waited_us = waited / 1000;
	i->cpus = d->cpus;
}

/*
 * Did this process stand still? A thread's time is a budget: it ran, waited for a processor, was
 * blocked, or was stopped. Looks that came late, or took long, are time in which the controller may
 * have been stopped, but for what it ran and waited. A look also blocks while a worker holds the
 * lock of its socket, which it does while it runs, or waits to run on. And all threads are stopped
 * at once: none of them ran or waited meanwhile.
 */
static uint32_t
judge_stopped(struct np_disturbed *d, struct np_witness *w, const struct progress *p,
	      uint64_t length_ns)
{
	struct np_disturbed_use was = d->self;
	uint64_t busy = 0, busiest = 0, stopped;

	(void)read_schedstat(d->self_fd, &d->self);
	for (uint32_t i = 0; i < threads_of(d); i++) {
		uint64_t one = p->did[i].ran + p->did[i].waited;

		busy += one;
		busiest = one > busiest ? one : busiest;
	}
	stopped = w->late_ns + beyond(w->looking_ns, d->self.ran - was.ran + busy);
	stopped = beyond(stopped, d->self.waited - was.waited);
	stopped = less(stopped, beyond(length_ns, busiest));
	w->late_ns = w->looking_ns = 0;
	w->stopped_ns += stopped;
	return (double)stopped >= NP_D_STOPPED_S * 1e9 ? bit(NP_R_STOPPED) : 0;
}

/* --- the machine -------------------------------------------------------------------------------
 */

/* Ticks between two looks as a share of their distance. */
static double
share(uint64_t ticks, double seconds)
{
	return seconds > 0 ? (double)ticks / np_cpu_rate() / seconds : 0;
}

static bool
is_stolen(const struct np_meters_seen *from, const struct np_meters_seen *to, uint64_t cpus,
	  double seconds)
{
	for (int i = 0; i < NP_METERS_CPUS; i++) {
		if ((cpus >> i % CPU_BITS & 1) != 0 && to->steal[i] > from->steal[i] &&
		    share(to->steal[i] - from->steal[i], seconds) >= NP_D_STEAL) {
			return true;
		}
	}
	return false;
}

/*
 * What others ran in user mode on the processors of the workers: the most on one of them. This
 * process's own part counts as if all of it had been there.
 */
static uint64_t
others_of(struct np_disturbed *d, const struct np_meters_seen *from,
	  const struct np_meters_seen *to)
{
	uint64_t used = user_time(), own = used - d->user_ns, most = 0;

	d->user_ns = used;
	for (uint32_t i = 0; i < threads_of(d); i++) {
		int cpu = d->thread[i].cpu;

		if (cpu >= 0 && cpu < NP_METERS_CPUS && to->user[cpu] > from->user[cpu] &&
		    to->user[cpu] - from->user[cpu] > most) {
			most = to->user[cpu] - from->user[cpu];
		}
	}
	most = (uint64_t)((double)most / np_cpu_rate() * 1e9);
	return beyond(most, own) / 1000;
}

/* A frequency that an idle processor has says nothing, nor what one did that the workers left. */
static uint32_t
judge_frequency(struct np_disturbed *d, const struct np_meters_seen *from,
		const struct np_meters_seen *to, double seconds)
{
	uint32_t marks = 0;

	for (int i = 0; i < NP_METERS_CLOSE && d->meters.cpu[i].cpu >= 0; i++) {
		const struct np_meters_cpu *c = &d->meters.cpu[i];
		double idle = share(to->idle[c->cpu] - from->idle[c->cpu], seconds);

		if (!c->near) {
			d->throttled[i] = 0;
			continue;
		}
		if (c->khz > d->top_khz[i]) {
			d->top_khz[i] = c->khz;
		} else if (c->khz > 0 && 1 - idle >= NP_D_SLOW_BUSY &&
			   (double)c->khz < NP_D_SLOW * (double)d->top_khz[i]) {
			marks |= bit(NP_R_FREQUENCY);
		}
		if (d->throttled[i] != 0 && c->throttled + 1 > d->throttled[i]) {
			marks |= bit(NP_R_THROTTLING);
		}
		d->throttled[i] = c->throttled + 1; /* 0: not looked at before */
	}
	return marks;
}

/* A test that is fast enough has some softirqs cut short itself, about alike in each interval. */
static uint32_t
judge_squeezed(struct np_disturbed *d, const struct np_meters_seen *from,
	       const struct np_meters_seen *to)
{
	double now = (double)(to->squeezed - from->squeezed);
	double mean = d->looks > 1 ? d->squeezed / (double)(d->looks - 1) : 0;

	if (from->squeezed < 0 || now < 0) {
		return 0;
	}
	d->squeezed += now;
	return d->looks > SETTLED && now > NP_D_SQUEEZED + NP_D_SQUEEZED_TIMES * mean
		   ? bit(NP_R_SQUEEZED)
		   : 0;
}

static uint32_t
judge_machine(struct np_disturbed *d, const struct np_meters_seen *from,
	      const struct np_meters_seen *to, double seconds)
{
	uint32_t marks = is_stolen(from, to, d->cpus, seconds) ? bit(NP_R_STEAL) : 0;

	marks |= judge_frequency(d, from, to, seconds);
	marks |= judge_squeezed(d, from, to);
	marks |= to->irqs_moved != from->irqs_moved ? bit(NP_R_IRQ) : 0;
	if (llabs(to->ahead_ns - from->ahead_ns) > (int64_t)(NP_D_CLOCK_S * 1e9)) {
		marks |= bit(NP_R_CLOCK);
	}
	return marks;
}

/* --- the interface -----------------------------------------------------------------------------
 */

/* Why others' bytes can't be told from the test's own; NULL: they can. */
static const char *
lacks_own(const struct np_run *run)
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

static void
add_tcp(const struct np_run *run, struct np_own *own)
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
	/* What comes out of order is not in the bytes yet, and may come twice. */
	at_most = c.data_segments_in * c.mss;
	own->in = run->plan->pattern->transactions || at_most < c.bytes_in ? c.bytes_in : at_most;
}

static void
add_datagrams(const struct np_run *run, struct np_own *own)
{
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
		/* Of datagrams that the kernel has joined nobody knows how many were dropped. */
		own->knows_in = np_engine_of(p) != &np_engine_segment;
		in = c.receives > 0 ? c.received / c.receives : 0;
	}
	for (uint32_t i = 0; i < run->conns && own->knows_in; i++) {
		uint32_t dropped = np_sock_dropped(run->conn[i].fd);

		own->in += (uint64_t)dropped * in;
		own->in_packets += dropped;
		own->waiting += (uint64_t)np_sock_taken(run->conn[i].fd);
	}
}

static void
look_at_own(const struct np_disturbed *d, struct np_own *own)
{
	memset(own, 0, sizeof(*own));
	if (d->foreign_why == NULL && d->run->plan->transport->tcp_info) {
		add_tcp(d->run, own);
	} else if (d->foreign_why == NULL) {
		add_datagrams(d->run, own);
	}
}

/* Headers are one for each packet of the test's, and of packets the interface knows the number. */
static uint64_t
own_bytes(const struct np_disturbed *d, uint64_t bytes, uint64_t packets, uint64_t counted)
{
	uint64_t ip = np_family_version(np_plan_family(d->run->plan)) == 6 ? 40 : 20;
	uint64_t transport = d->run->plan->transport->tcp_info ? 32 : 8;

	/* Datagrams that are larger than the link go in fragments: a header each. */
	if (!d->run->plan->transport->tcp_info && packets > 0 && counted > packets) {
		uint64_t most = packets * (1 + bytes / packets / 512);

		packets = counted < most ? counted : most;
	}
	return bytes + less(packets, counted) * (d->meters.link_header + ip + transport);
}

/* Beyond what may be the test's, what is read at another moment, and what hardly disturbs? */
static bool
is_beyond(uint64_t bytes, uint64_t own, double tolerance)
{
	return (double)bytes > (double)own + tolerance;
}

static uint32_t
judge_link(struct np_disturbed *d, const struct np_own *now, const struct np_meters_seen *from,
	   const struct np_meters_seen *to, double seconds)
{
	const struct np_own *was = &d->own;
	uint64_t out_packets = to->out_packets - from->out_packets;
	uint64_t in_packets = to->in_packets - from->in_packets;
	uint64_t out = to->out_bytes - from->out_bytes, in = to->in_bytes - from->in_bytes;
	uint64_t own_out =
	    own_bytes(d, now->out - was->out, now->out_packets - was->out_packets, out_packets);
	uint64_t own_in =
	    own_bytes(d, now->in - was->in, now->in_packets - was->in_packets, in_packets);
	double late = (double)(from->took_ns + to->took_ns) / 1e9 / seconds;
	double all = (double)(in > out ? in : out);
	double tolerance = all * (NP_D_FOREIGN + late) + NP_D_FOREIGN_BYTES * seconds * 10;
	bool is_loop = strcmp(d->meters.device, "lo") == 0, marked;

	if (!from->has_link || !to->has_link || now->out < was->out || now->in < was->in) {
		return 0;
	}
	own_in += beyond(now->waiting, was->waiting);
	if (is_loop) { /* which counts all that it carries in both directions */
		own_out += own_in;
	}
	own_out += d->ahead;
	d->ahead = less(beyond(own_out, out), in_queues);
	marked = now->knows_out && is_beyond(out, own_out, tolerance);
	marked |= now->knows_in && !is_loop && is_beyond(in, own_in, tolerance);
	return marked ? bit(NP_R_FOREIGN) : 0;
}

/* --- intervals ---------------------------------------------------------------------------------
 */

/* What counts for the result at this end. */
static uint64_t
work_of(const struct np_run *run)
{
	struct np_counts c = np_counts_of(run);

	return run->plan->pattern->transactions ? c.transactions : np_counts_bytes(&c);
}

void
np_disturbed_begin(struct np_disturbed *d, const char *root, const char *device,
		   const struct np_run *run)
{
	const struct np_addr *peer = run->end.peer.len != 0 ? &run->end.peer : &run->terms->only;
	char of_peer[16];

	memset(d, 0, sizeof(*d));
	d->root = root;
	d->run = run;
	d->self_fd = -1;
	for (int i = 0; i < NP_DISTURBED_THREADS; i++) {
		d->thread[i] = (struct np_disturbed_thread){ .fd = -1, .cpu = -1 };
	}
	np_meters_open(&d->meters, root, device);
	d->peer_here = np_plan_family(run->plan) == AF_UNIX || strcmp(device, "lo") == 0 ||
		       (run->plan->transport->ip_protocol != 0 && peer->len != 0 &&
			np_host_device((const struct sockaddr *)&peer->sa, of_peer) == 0);
}

/* The workers are there now. */
static void
open_threads(struct np_disturbed *d)
{
	d->foreign_why = lacks_own(d->run); /* its sockets are the workers' to change then */
	d->self_fd = open_schedstat(d->root, 0);
	d->self_why = d->self_fd < 0 ? errno : 0;
	for (uint32_t i = 0; i < threads_of(d); i++) {
		d->thread[i].fd = open_schedstat(d->root, d->run->worker[i].use.thread);
	}
}

void
np_disturbed_look(struct np_disturbed *d, struct np_witness *w, uint64_t now_ns)
{
	struct np_meters_seen *to = &d->seen[d->looks % 2], *from = &d->seen[(d->looks + 1) % 2];
	struct np_interval i = { .work = 0 };
	struct progress p;
	uint32_t marks;
	double seconds = (double)(now_ns - d->last_ns) / 1e9;
	uint64_t work = work_of(d->run);
	struct np_own own;
	bool first = d->looks++ == 0;

	if (first) {
		open_threads(d);
		np_witness_open(w, d->run);
	}
	judge_threads(d, w, &p, &i);
	marks = judge_stopped(d, w, &p, first ? 0 : now_ns - d->last_ns);
	np_meters_look(&d->meters, d->cpus, to);
	look_at_own(d, &own);
	i.others_us = others_of(d, from, to);
	to->took_ns = np_now() - to->at_ns; /* with the test's own */
	if (!first && seconds > 0) {
		i.end_us = (now_ns - d->run->window.started_ns) / 1000;
		i.work = beyond(work, d->work);
		i.stalled_us = from->stalled_us >= 0 && to->stalled_us > from->stalled_us
				   ? (uint64_t)(to->stalled_us - from->stalled_us)
				   : 0;
		marks |= judge_machine(d, from, to, seconds);
		marks |= d->foreign_why == NULL ? judge_link(d, &own, from, to, seconds) : 0;
		np_intervals_keep(&d->intervals, i, marks);
	}
	d->own = own;
	d->work = first ? 0 : work; /* a mark may be on its way to the workers */
	d->last_ns = now_ns;
}

/*
 * Behind the last look. Nobody looks behind the time of a test, though the last call may take long;
 * where a look was due before, and did not come, the process stood still.
 */
static void
add_tail(struct np_disturbed *d, struct np_witness *w)
{
	const struct np_window *win = &d->run->window;
	uint64_t length_ns = np_plan_time_ns(d->run->plan);
	uint64_t work = work_of(d->run);
	uint64_t over = win->started_ns + length_ns;
	struct np_interval i = { .cpus = d->cpus };
	struct progress p;

	over = length_ns > 0 && over < win->ended_ns ? over : win->ended_ns;
	if (d->looks == 0 || win->started_ns == 0 ||
	    win->ended_ns < d->last_ns + TAIL_US * (uint64_t)1000) {
		return;
	}
	look_at_threads(d, w, &p);
	w->looking_ns = 0; /* a look that took until then may have gone on behind it */
	np_witness_begin(w, d->last_ns + NP_DISTURBED_MS * NP_MSEC, over);
	i.end_us = (win->ended_ns - win->started_ns) / 1000;
	i.work = beyond(work, d->work);
	np_intervals_keep(&d->intervals, i, judge_stopped(d, w, &p, beyond(over, d->last_ns)));
}

/* --- what goes into the bag --------------------------------------------------------------------
 */

static void
put_unread(const struct np_disturbed *d, struct np_bag *into)
{
	np_meters_put_unread(&d->meters, "disturbed", into);
	if (d->self_why != 0) {
		np_bag_unread(into, strerror(d->self_why), "disturbed.switches");
	}
	if (d->foreign_why != NULL && d->meters.device[0] != '\0' && d->meters.link_why == 0) {
		np_bag_unread(into, d->foreign_why, "disturbed.foreign");
	}
}

void
np_disturbed_end(struct np_disturbed *d, struct np_witness *w, struct np_bag *into)
{
	add_tail(d, w);
	if (d->intervals.count > 0) {
		np_bag_int(into, d->peer_here, "disturbed.peer_here");
		np_intervals_put(&d->intervals, into);
		put_unread(d, into);
	}
	np_meters_close(&d->meters);
	if (d->self_fd >= 0) {
		close(d->self_fd);
	}
	for (int i = 0; i < NP_DISTURBED_THREADS; i++) {
		if (d->thread[i].fd >= 0) {
			close(d->thread[i].fd);
		}
	}
}
