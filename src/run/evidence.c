#include "run/evidence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/engine/engine.h"
#include "bench/sequence.h"
#include "bench/stamps.h"
#include "bench/tally.h"
#include "bench/transport/endpoint.h"
#include "net/capture.h"
#include "net/tcpinfo.h"
#include "run/disturbed.h"
#include "run/foreign.h"
#include "run/outage.h"
#include "sys/cgroup.h"
#include "sys/host.h"
#include "sys/moved.h"
#include "sys/nic.h"
#include "sys/rtnl.h"
#include "wire/plan.h"

enum {
	EVERY_MS = 100, /* between two samples by default, */
	LEAST_MS = 1,   /* and at least */
	SAMPLES = 800,  /* most that are kept */
	DEVICE = 16     /* bytes of an interface's name */
};

/* The columns of a sample: these, then those of TCP_INFO. */
enum { BYTES, QUEUED_IN, QUEUED_OUT, OWN, COLUMNS = OWN + NP_TCP_SAMPLED };
static const char *const own_names[OWN] = { "bytes", "queued_in", "queued_out" };

struct np_evidence {
	struct np_evidence_wants wants;
	char device[DEVICE];
	char device_why[128]; /* why the device is unknown; empty: it is known, or there is none */
	struct np_moved *moved;
	struct np_cgroup *cgroup; /* wants.cgroup, or opened here */
	struct np_witness witness;
	struct np_disturbed disturbed;
	struct np_outages *outages; /* NULL: they are not looked for */
	struct np_run *run;
	struct np_bag *bag;
	bool tcp, capturing;
	uint64_t moved_ns; /* when `moved` began to count; 0: before the warm-up */
	uint64_t every_ns; /* between samples; doubles whenever the columns are full */
	size_t tcp_len;    /* bytes that the kernel fills of TCP_INFO */
	size_t count;
	double at_s[SAMPLES];
	int64_t column[COLUMNS][SAMPLES];
};

/* Find the interface that has this address. If that fails, device is "" and `why` says why. */
static void
find_device(const struct np_addr *near, char device[DEVICE], char *why, size_t size)
{
	int rc;

	why[0] = device[0] = '\0';
	if (near->len == 0) {
		snprintf(why, size, "no address of this end is known");
		return;
	}
	rc = np_addr_device(near, device);
	if (rc != 0) {
		snprintf(why, size, "the interface of %s: %s", NP_HOST_STR(near), strerror(-rc));
	}
}

/* The ledger knows the flow's packets by the daemon's port. */
void
np_evidence_capture(struct np_evidence *ev, const struct np_run *run)
{
	const struct np_plan *p = run->plan;
	struct np_ledger_flow flow = { .protocol = p->transport->ip_protocol,
				       .many_connections =
					   p->pattern->connection_test || p->flows > 1 };
	bool sized = p->pattern->sized, leads = p->role == NP_LEAD;
	int32_t asked = p->far.call.send_size;
	struct np_err err = { .code = NP_OK };

	if (ev == NULL || flow.protocol == 0 || p->transport->packets.no_capture != NULL) {
		return; /* no IP packets, or the ledger can't read them */
	}
	if (ev->wants.capture == NULL || (ev->wants.caps & NP_CAP_WIRE) == 0) {
		if (ev->wants.capture_why_not != NULL) {
			np_bag_unread(ev->bag, ev->wants.capture_why_not, "wire");
		}
		return;
	}
	if (p->active) {
		flow.far = run->end.peer;
	} else {
		flow.near = run->end.local;
	}
	/* Without connections the daemon has a socket for each flow. */
	for (uint32_t i = 0; i < run->conns; i++) {
		if (run->conn[i].port != 0) {
			np_ledger_add_port(&flow.ports, run->conn[i].port);
		}
	}
	/* With the engine segment at either end, a packet may be several datagrams of this size. */
	flow.datagram_out = sized || leads ? (uint32_t)run->worker->send_size : 0;
	flow.datagram_in = sized       ? (uint32_t)run->worker->recv_size
			   : asked > 0 ? (uint32_t)asked
				       : 0;
	if (np_capture_start(ev->wants.capture, &flow, &err) != NP_OK) {
		np_bag_unread(ev->bag, err.msg, "wire");
		return;
	}
	ev->capturing = true;
}

struct np_evidence *
np_evidence_begin(const struct np_evidence_wants *wants, struct np_run *run)
{
	struct np_evidence *ev;
	uint32_t every_ms = wants->every_ms != 0 ? wants->every_ms : EVERY_MS;
	struct np_addr near = wants->near;

	if (wants->caps == 0) {
		return NULL;
	}
	ev = calloc(1, sizeof(*ev));
	if (ev == NULL) {
		return NULL;
	}
	ev->wants = *wants;
	ev->wants.root = wants->root != NULL ? wants->root : "";
	ev->run = run;
	ev->bag = np_bag_new();
	ev->every_ns = (every_ms < LEAST_MS ? LEAST_MS : every_ms) * (uint64_t)NP_MSEC;
	ev->tcp = run->plan->transport->tcp_info && !run->plan->pattern->connection_test;
	ev->outages = np_outages_new(run);
	if (run->terms->eth != NULL) {
		snprintf(ev->device, sizeof(ev->device), "%s", run->terms->eth->device);
	}
	if (run->plan->transport->ip_protocol != 0) {
		if (near.len == 0 && run->end.peer.len != 0) {
			(void)np_addr_towards(&run->end.peer, &near);
		}
		find_device(&near, ev->device, ev->device_why, sizeof(ev->device_why));
	}
	if ((wants->caps & NP_CAP_TEST) != 0) {
		NP_EACH_WORKER (w, run) {
			w->use.root = ev->wants.root;
			w->use.counts = wants->cycles ? &np_perf_processor : NULL;
		}
		ev->witness.root = ev->wants.root;
		ev->witness.every_ns = ev->every_ns;
		np_disturbed_begin(&ev->disturbed, ev->wants.root, ev->device, run);
		ev->cgroup =
		    wants->cgroup != NULL ? wants->cgroup : np_cgroup_open(ev->wants.root, NULL);
		np_cgroup_begin(ev->cgroup);
		ev->moved = np_moved_begin(ev->wants.root, ev->device);
	}
	return ev;
}

/*
 * Sample up to NP_SAMPLER_MOST connections. Workers that wait for events (with a wake_fd) do that
 * when they have time; for those that block the controller does it. False: no sample.
 */
static bool
sample_conns(const struct np_evidence *ev, struct np_sample *s)
{
	const struct np_run *run = ev->run;
	struct np_counts c;

	if (!run->plan->pattern->connection_test && run->worker->stop.wake_fd > 0) {
		return np_sampler_take(ev->run, s);
	}
	c = np_counts_of(run);
	s->bytes = np_counts_bytes(&c);
	s->transactions = c.transactions;
	if (run->plan->pattern->connection_test) {
		return true; /* connections don't last: there is nothing more to see */
	}
	np_sample_add(s, run->plan, run->conn, run->conns);
	return s->tcp.count > 0 || !ev->tcp;
}

/* Extrapolate a sum over some connections to all of them. */
static int64_t
extrapolate(int64_t seen, uint32_t looked, uint32_t all)
{
	return looked > 0 ? seen * all / looked : 0;
}

/* The number of connections that exist now. */
static uint32_t
conns_up(const struct np_run *run)
{
	return run->plan->ramp > 0 ? (uint32_t)np_counts_of(run).up : run->conns;
}

/* Sample counters, queues and TCP_INFO: a row of flow.samples.* or tcp.samples.* */
static void
take_sample(struct np_evidence *ev, const struct np_run *run, uint64_t now_ns)
{
	int64_t info[NP_TCP_SAMPLED] = { 0 };
	struct np_sample s = { 0 };
	uint64_t at_ns;
	size_t i;

	np_witness_look(&ev->witness, run, now_ns);
	if (ev->witness.looks % (ev->every_ns / ev->witness.every_ns) != 0) {
		return; /* every_ns has grown since, but the watch still calls as often */
	}
	if (!sample_conns(ev, &s)) {
		return;
	}
	/* The worker may have taken the sample an interval ago. */
	at_ns = s.at_ns != 0 ? s.at_ns : now_ns;
	if (at_ns < run->window.started_ns) {
		return; /* in the warm-up */
	}
	if (ev->count == SAMPLES) {
		/* Drop every other sample, and take only every other one from now on. */
		for (i = 0; i < SAMPLES / 2; i++) {
			ev->at_s[i] = ev->at_s[2 * i + 1];
			for (int n = 0; n < COLUMNS; n++) {
				ev->column[n][i] = ev->column[n][2 * i + 1];
			}
		}
		ev->count = SAMPLES / 2;
		ev->every_ns *= 2;
	}
	i = ev->count++;
	ev->at_s[i] = (double)(at_ns - run->window.started_ns) / 1e9;
	/* During a test of transactions only their number is published, not their bytes. */
	ev->column[BYTES][i] =
	    run->plan->pattern->transactions && s.bytes == 0
		? (int64_t)(s.transactions * (run->worker->send_size + run->worker->recv_size))
		: (int64_t)s.bytes;
	if (np_run_lasting_fd(run) >= 0) { /* else connections come and go */
		ev->column[QUEUED_IN][i] = extrapolate(s.queued_in, s.looked, conns_up(run));
		ev->column[QUEUED_OUT][i] = extrapolate(s.queued_out, s.looked, conns_up(run));
		np_tcp_sum_sample(&s.tcp, conns_up(run), info);
		ev->tcp_len = s.tcp.len;
	}
	for (int n = 0; n < NP_TCP_SAMPLED && ev->tcp; n++) {
		ev->column[OWN + n][i] = info[n];
	}
}

/* What the connections' counters had when the warm-up ended; empty: there was none. */
static struct np_tcp_sum
before_window(const struct np_run *run)
{
	struct np_tcp_sum before = { .count = 0 };

	NP_EACH_WORKER (w, run) {
		np_tcp_sum_join(&before, &w->tcp_before);
	}
	return before;
}

/* Put tcp.*: the kernel's values at the end, and counts of the window, summed over connections. */
static void
put_tcp(const struct np_run *run, struct np_bag *bag)
{
	const struct np_tcp_sum before = before_window(run);
	struct np_tcp_sum sum = { .count = 0 };

	for (uint32_t i = 0; i < run->conns; i++) {
		if (run->plan->ramp == 0 || run->conn[i].is_up) {
			np_tcp_sum_add(&sum, run->conn[i].fd);
		}
	}
	np_tcp_sum_since(&sum, &before);
	np_tcp_put(&sum, conns_up(run), run->conn->fd, bag);
}

/* What the transport knows about the first connection, in words (detail) and figures. */
static void
put_transport(struct np_run *run, struct np_bag *bag)
{
	const struct np_transport *t = run->plan->transport;

	if (!run->plan->pattern->connection_test && run->closing.detail[0] == '\0') {
		np_run_read_closing(run); /* may set the detail */
	}
	if (t->put_kernel != NULL && !run->plan->pattern->connection_test && run->conn->fd >= 0) {
		t->put_kernel(run, run->conn->fd, bag);
	}
	if (run->closing.min_rtt_us > 0) {
		np_bag_int(bag, run->closing.min_rtt_us, "tcp.min_rtt_us");
	}
	if (run->closing.detail[0] != '\0') {
		np_bag_text(bag, run->closing.detail, "flow.protocol_detail");
	}
}

/* np_watch.look; the witness notes how late it began, and how long it took. */
static void
watch_samples(void *ctx, const struct np_run *run, uint64_t due_ns, uint64_t now_ns)
{
	struct np_evidence *ev = ctx;

	np_witness_begin(&ev->witness, due_ns, now_ns);
	take_sample(ev, run, now_ns);
	np_witness_done(&ev->witness, np_now());
}

/* np_watch.look; at the first one the window opens: what counted in the warm-up counts anew. */
static void
watch_disturbed(void *ctx, const struct np_run *run, uint64_t due_ns, uint64_t now_ns)
{
	struct np_evidence *ev = ctx;

	if (ev->capturing && ev->disturbed.looks == 0 && run->plan->warm_up_ms > 0) {
		np_capture_restart(ev->wants.capture, run->window.started_ns);
	}
	np_witness_begin(&ev->witness, due_ns, now_ns);
	np_disturbed_look(&ev->disturbed, &ev->witness, now_ns);
	if (ev->disturbed.looks == 1 && run->plan->warm_up_ms > 0) {
		np_cgroup_begin(ev->cgroup);
		ev->moved_ns = np_now();
		np_moved_restart(ev->moved);
	}
	np_witness_done(&ev->witness, np_now());
}

void
np_evidence_watches(struct np_evidence *ev, struct np_watch watch[NP_EVIDENCE_WATCHES])
{
	if (ev != NULL && ev->outages != NULL) {
		watch[2] = (struct np_watch){ .every_ns = NP_OUTAGE_MS * NP_MSEC,
					      .look = np_outages_look,
					      .ctx = ev->outages };
	}
	if (ev == NULL || (ev->wants.caps & NP_CAP_TEST) == 0) {
		return;
	}
	watch[0] = (struct np_watch){
		.every_ns = ev->every_ns, .look = watch_samples, .ctx = ev, .jitters = true
	};
	watch[1] = (struct np_watch){ .every_ns = NP_DISTURBED_MS * NP_MSEC,
				      .look = watch_disturbed,
				      .ctx = ev,
				      .at_once = true };
}

/*
 * Put a list for each column. Times that add up count from the window, as tcp.* does. Counts of
 * bytes are positions in the stream, equal at both ends.
 */
static void
put_samples(struct np_evidence *ev)
{
	const char *where = ev->tcp ? "tcp" : "flow";
	const struct np_tcp_sum before = before_window(ev->run);
	bool has_queues = np_run_lasting_fd(ev->run) >= 0; /* as in take_sample() */
	int64_t base[NP_TCP_SAMPLED];

	if (ev->count == 0) {
		return;
	}
	np_tcp_sum_clocks(&before, base);
	for (size_t n = 0; n < NP_TCP_SAMPLED; n++) {
		for (size_t i = 0; i < ev->count && base[n] > 0; i++) {
			int64_t *v = &ev->column[OWN + n][i];

			*v = *v > base[n] ? *v - base[n] : 0;
		}
	}
	np_bag_int(ev->bag, (int64_t)(ev->every_ns / NP_MSEC), "%s.samples.every_ms", where);
	np_bag_reals(ev->bag, ev->at_s, ev->count, "%s.samples.t_s", where);
	for (size_t n = 0; n < COLUMNS; n++) {
		const char *name = n < OWN ? own_names[n] : np_tcp_sampled(n - OWN, ev->tcp_len);

		/* NULL: this kernel's TCP_INFO does not have it. */
		if (name != NULL && (n >= OWN ? ev->tcp : n == BYTES || has_queues)) {
			np_bag_ints(ev->bag, ev->column[n], ev->count, "%s.samples.%s", where,
				    name);
		}
	}
}

/* Put flow.*: what the test asked for, what its sockets have, and what was counted. */
static void
put_flow(const struct np_evidence *ev, const struct np_run *run)
{
	const struct np_plan *p = run->plan;
	const struct np_worker *w = run->worker;
	struct np_counts c = np_counts_of(run);
	struct np_bag *b = ev->bag;
	int sndbuf, rcvbuf;
	uint64_t dropped;

	np_bag_text(b, p->pattern->words[p->role].role, "flow.role");
	np_bag_text(b, p->transport->name, "flow.protocol");
	np_bag_int(b, np_family(np_plan_family(p))->version, "flow.family");
	if (ev->device_why[0] != '\0') {
		np_bag_unread(b, ev->device_why, "flow.device");
	} else {
		np_bag_text(b, ev->device, "flow.device");
	}
	np_bag_real(b, (double)(run->window.ended_ns - run->window.started_ns) / 1e9,
		    "flow.seconds");
	np_bag_int(b, (int64_t)c.sent, "flow.bytes_sent");
	np_bag_int(b, (int64_t)c.received, "flow.bytes_received");
	np_bag_int(b, (int64_t)c.sends, "flow.sends");
	np_bag_int(b, (int64_t)c.receives, "flow.receives");
	np_bag_int(b, (int64_t)c.transactions, "flow.transactions");
	np_bag_int(b, (int64_t)c.failed, "flow.sends_refused");
	if (run->terms->eth != NULL && np_eth_drops(run->terms->eth, &dropped)) {
		np_bag_int(b, (int64_t)dropped, "flow.socket_drops");
	}
	np_bag_int(b, (int64_t)w->send_size, "flow.send_size");
	np_bag_int(b, (int64_t)w->recv_size, "flow.receive_size");
	if (w->recv_size > 0 && w->recv_ring.slots != NULL) {
		np_bag_int(b,
			   (int64_t)((uintptr_t)w->recv_ring.slots->buf %
				     (uintptr_t)sysconf(_SC_PAGESIZE)),
			   "flow.receive_offset");
	}
	if (w->load.kind == &np_load_paced) {
		np_bag_int(b, (int64_t)(w->load.interval_ns / 1000), "flow.interval_us");
		/* Of a thread. */
		np_bag_real(b, (double)p->near.call.interval_burst * conns_up(run) / run->workers,
			    "flow.burst");
	}
	if (np_plan_messages(p, 1) > 0) {
		np_bag_real(b, np_plan_messages(p, w->send_size), "flow.asked_per_s");
	} else if (p->rate > 0 && p->role == NP_LEAD) {
		np_bag_int(b, p->rate, "flow.asked_per_s");
	}
	np_bag_int(b, p->near.sock.sndbuf, "flow.sndbuf_asked");
	np_bag_int(b, p->near.sock.rcvbuf, "flow.rcvbuf_asked");
	if (p->pacing > 0) {
		np_bag_int(b, (int64_t)p->pacing * 8, "flow.pacing_asked_bps");
	}
	if (run->conn->fd >= 0) {
		np_endpoint_buffers(p->transport, run->conn->fd, &sndbuf, &rcvbuf);
		np_bag_int(b, sndbuf, "flow.sndbuf");
		np_bag_int(b, rcvbuf, "flow.rcvbuf");
	}
}

/* Put facts of the host; wants->lasting, read before this process was confined, has precedence. */
static void
put_host(const struct np_evidence_wants *wants, const char *device, const char *device_why, int fd,
	 struct np_bag *into)
{
	struct np_bag_item item;

	np_host_facts(wants->root, device, fd, into);
	if (device_why[0] != '\0') {
		np_nic_unread(device_why, into);
	}
	for (size_t i = 0; np_bag_at(wants->lasting, i, &item); i++) {
		if (strncmp(item.name, "host.", strlen("host.")) != 0) {
			continue;
		}
		if (item.kind == NP_BAG_INT) {
			np_bag_int(into, item.i, "%s", item.name);
		} else if (item.kind == NP_BAG_STRING) {
			np_bag_text(into, item.text, "%s", item.name);
		}
	}
}

void
np_evidence_host(const struct np_evidence_wants *wants, int fd, struct np_bag *into)
{
	char device[DEVICE], why[128];

	find_device(&wants->near, device, why, sizeof(why));
	put_host(wants, device, why, fd, into);
}

/* The peer's address: the data connection's or, until it is known, the one that may connect. */
static const struct np_addr *
peer_of(const struct np_run *run)
{
	return run->end.peer.len != 0 ? &run->end.peer : &run->terms->only;
}

/* Put the route's MTU to the peer; of connected sockets np_host_facts() has read it. */
static void
put_path_mtu(const struct np_run *run, struct np_bag *into)
{
	const struct np_transport *t = run->plan->transport;
	const struct np_addr *peer = peer_of(run);
	int mtu = -1;

	if (t->ip_protocol != 0 && !t->connected && peer->len != 0) {
		mtu = np_sock_path_mtu(run->conn->fd, peer);
	}
	if (mtu > 0) {
		np_bag_int(into, mtu, "host.path_mtu");
	}
}

/* Put cycles and instructions, summed over the workers; unread if one of them could not count. */
static void
put_cycles(const struct np_run *run, struct np_bag *into)
{
	uint64_t sum[NP_PERF_EVENTS] = { 0 }, enabled_ns = 0, running_ns = 0;
	bool user_only = false;

	NP_EACH_WORKER (w, run) {
		const struct np_perf *p = &w->use.perf;
		const char *why = np_perf_why_not(p);

		if (why != NULL) {
			np_bag_unread(into, why, "work.cycles");
			np_bag_unread(into, why, "work.instructions");
			return;
		}
		for (int i = 0; i < NP_PERF_EVENTS; i++) {
			sum[i] += p->value[i];
		}
		enabled_ns += p->enabled_ns;
		running_ns += p->running_ns;
		user_only = user_only || p->user_only;
	}
	np_bag_int(into, (int64_t)sum[0], "work.cycles");
	np_bag_int(into, (int64_t)sum[1], "work.instructions");
	np_bag_text(into, user_only ? "user" : "user and kernel", "work.counted");
	if (running_ns < enabled_ns) { /* others used the processor's counters meanwhile */
		np_bag_real(into, (double)running_ns / (double)enabled_ns, "work.counted_share");
	}
}

/* Processor time and context switches, summed over the workers. */
static void
put_threads(struct np_evidence *ev, const struct np_run *run, struct np_bag *into)
{
	/* Of several workers, describe the busiest one: it is the first to be a bottleneck. */
	const struct np_worker *busiest = run->worker;
	int64_t user_us = 0, system_us = 0, voluntary = 0, involuntary = 0;
	int threads = 0;

	NP_EACH_WORKER (w, run) {
		const struct np_thread_use *u = &w->use;

		if (u->user_us + u->system_us > busiest->use.user_us + busiest->use.system_us) {
			busiest = w;
		}
		if (u->ended_ns == 0) {
			continue; /* its loop never began */
		}
		threads++;
		user_us += u->user_us;
		system_us += u->system_us;
		voluntary += u->voluntary;
		involuntary += u->involuntary;
	}
	np_thread_put(&busiest->use, into);
	np_witness_end(&ev->witness, run, busiest, into);
	if (threads > 0) {
		np_bag_int(into, threads, "work.threads");
		np_bag_real(into, (double)user_us / 1e6, "work.user_s");
		np_bag_real(into, (double)system_us / 1e6, "work.system_s");
		np_bag_int(into, voluntary, "work.switches_voluntary");
		np_bag_int(into, involuntary, "work.switches_involuntary");
	}
	if (threads > 0 && run->worker->use.counts != NULL) {
		put_cycles(run, into);
	}
}

/*
 * np_foreign_put()'s edge: after a warm-up connections and interface began to count at different
 * moments, and one lacks what was queued or in flight then (what is sent in a round trip).
 */
static double
edge_of(const struct np_evidence *ev, const struct np_run *run)
{
	double rtt_us = np_bag_number(ev->bag, "tcp.rtt_us");
	double sent = np_bag_number(ev->bag, "flow.bytes_sent");
	double seconds = np_bag_number(ev->bag, "flow.seconds");
	double queued = np_bag_number(ev->bag, "flow.sndbuf") * run->conns;
	double edge_s = fmax(rtt_us / 1e6, (double)run->round_trips_ns / 2e9);
	uint64_t gap_ns = np_excess(run->window.opened_ns, ev->moved_ns);

	if (run->plan->warm_up_ms == 0) {
		return 0;
	}
	NP_EACH_WORKER (w, run) {
		gap_ns = np_max(gap_ns, np_excess(w->began_ns, ev->moved_ns));
		gap_ns = np_max(gap_ns, np_excess(ev->moved_ns, w->began_ns));
	}
	edge_s += (double)gap_ns / 1e9;
	/* Datagrams count when they enter the send buffer. */
	if (!np_delivers(run->plan->transport) && queued > 0 && sent > 0) {
		edge_s += queued / sent * seconds;
	}
	return seconds > 0 ? edge_s / seconds : 1;
}

struct np_bag *
np_evidence_end(struct np_evidence *ev, struct np_run *run)
{
	const struct np_link *link;
	struct np_bag *bag;

	if (ev == NULL) {
		return NULL;
	}
	bag = ev->bag;
	link = &ev->disturbed.meters.link;
	if ((ev->wants.caps & NP_CAP_TEST) != 0) {
		const char *boot;

		put_flow(ev, run);
		/* When the window opened, and the boot id that this clock belongs to, which a
		 * confined session can't read. */
		boot = np_bag_string(ev->wants.lasting, "clock.boot");
		if (boot != NULL) {
			np_bag_text(ev->bag, boot, "clock.boot");
		} else {
			np_host_boot(ev->wants.root, ev->bag);
		}
		np_bag_real(ev->bag, (double)run->window.started_ns / 1e9, "clock.begin_s");
		np_disturbed_end(&ev->disturbed, &ev->witness, bag);
		put_threads(ev, run, bag);
		np_engine_put(run, bag);
		if (ev->tcp && run->conn->fd >= 0) {
			put_tcp(run, bag);
		}
		put_transport(run, bag);
	}
	np_run_shut_if_hung_up(run); /* the far end must not wait milliseconds for the rest */
	if (ev->capturing) {
		np_capture_stop(ev->wants.capture, bag);
	}
	if ((ev->wants.caps & NP_CAP_TEST) != 0) {
		put_samples(ev);
		np_moved_end(ev->moved, bag);
		/* Not if the test ended within the warm-up. */
		if (link->mtu > 0 && (run->plan->warm_up_ms == 0 || ev->moved_ns != 0)) {
			np_foreign_put(bag, link, edge_of(ev, run));
		}
		np_cgroup_end(ev->cgroup, bag);
	}
	if (ev->wants.cgroup == NULL) {
		np_cgroup_close(ev->cgroup);
	}
	np_stamps_put(run, bag);
	np_outages_put(ev->outages, bag);
	free(ev->outages);
	np_sequence_put(run, bag); /* puts nothing unless both ends agreed on numbers */
	if ((ev->wants.caps & NP_CAP_HOST) != 0) {
		put_host(&ev->wants, ev->device, ev->device_why, run->conn->fd, bag);
		put_path_mtu(run, bag);
		np_route_facts((const struct sockaddr *)&run->end.local.sa,
			       (const struct sockaddr *)&peer_of(run)->sa, bag);
	}
	free(ev);
	return bag;
}
