/*
 * crr and cc: a connection for each transaction, with or without a request and a response. The
 * follower closes first, so TIME_WAIT stays there; the leader walks through a range of local ports,
 * as netperf does, so that no pair of ports is reused soon.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/lines.h"
#include "base/units.h"
#include "bench/engine/sync.h"
#include "bench/open.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "bench/transport/many.h"
#include "net/tcpinfo.h"

enum {
	PORT_S = 10,     /* wait for a free port */
	FAST_ROUNDS = 16 /* through all ports without a pause */
};

/* State of a leader's worker. */
struct connector {
	struct np_addr local, peer;  /* of the next connection; peer.len 0: not yet known */
	uint32_t port_min, port_max; /* its local ports: up to max - 1 */
	uint32_t port, far_port;     /* last local port; port of the daemon */
	uint16_t *port_at;           /* where `local` has its port; NULL: use np_addr_set_port() */
	unsigned busy;               /* consecutive ports in use */
	uint64_t busy_ns;            /* since when none is free */
	bool spreads;                /* addresses vary as well as ports */
	size_t token;                /* bytes of a token before each request */
	uint64_t elsewhere_ns;       /* when connections first reached another daemon */
	uint64_t elsewhere_at;       /* after that many transactions */
};

/* Take the next local port, in a circle. */
static void
step_port(struct connector *c)
{
	c->port = c->port + 1 < c->port_max ? c->port + 1 : c->port_min;
}

/* A pause of a millisecond, so that failing calls do not use up the CPU. */
static void
wait_to_retry(void)
{
	poll(NULL, 0, 1);
}

/*
 * Note an error. True: the local port was in use, so try another one. If none is free: by bind(2)
 * (EADDRINUSE) others hold them, and the test fails; by connect(2) (EADDRNOTAVAIL) our own last
 * connections do, in LAST_ACK for a round trip, so try for PORT_S.
 */
static bool
note_busy_port(struct connector *c, int error)
{
	unsigned ports = c->port_max - c->port_min + 1; /* never 0 */
	uint64_t now;

	if ((error != EADDRINUSE && error != EADDRNOTAVAIL) ||
	    (++c->busy % ports == 0 && error == EADDRINUSE)) {
		return false;
	}
	if (c->busy % ports == 0) {
		now = np_now();
		c->busy_ns = c->busy == ports ? now : c->busy_ns;
		if (c->busy / ports > FAST_ROUNDS) {
			wait_to_retry();
		}
		return now - c->busy_ns < PORT_S * NP_SEC;
	}
	return true;
}

/* Bind to the next port that others do not hold (TIME_WAIT); 0, or -1 with errno. */
static inline int
bind_next(const struct np_plan *p, struct connector *c, int fd)
{
	int rc;

	do {
		step_port(c);
		if (c->port == c->far_port && c->port_max - c->port_min > 1) {
			step_port(c); /* else the socket might connect to itself */
		}
		if (__builtin_expect(c->port_at != NULL, 1)) {
			*c->port_at = htons((uint16_t)c->port);
		} else {
			np_addr_set_port(&c->local, c->port);
		}
		if (__builtin_expect(c->spreads, 0)) {
			np_endpoint_spread(&c->local, p->near.sock.mask);
			np_endpoint_spread(&c->peer, p->far.sock.mask);
		}
		rc = c->local.len == 0 /* no address is known: the kernel will choose one */
			 ? 0
			 : bind(fd, (const struct sockaddr *)&c->local.sa, c->local.len);
	} while (__builtin_expect(rc != 0, 0) && errno == EADDRINUSE && note_busy_port(c, errno));
	return rc;
}

/* The signal that ends a warm-up has interrupted the wait, and not the connecting: wait on. */
static __attribute__((noinline)) int
await_connection(const struct np_worker *w, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	while (poll(&p, 1, -1) < 0) {
		if (errno != EINTR || np_told_to_leave(&w->stop)) {
			return -1;
		}
	}
	errno = np_sock_int(fd, SOL_SOCKET, SO_ERROR);
	return errno == 0 ? 0 : -1;
}

/* Set options, bind, connect: 0, or -1 with errno, without a message, as it runs so often. */
static inline int
connect_from(const struct np_worker *w, struct connector *c, int fd)
{
	if (np_sockopts_apply(&w->run->end.opts, fd, NULL) != NP_OK ||
	    bind_next(w->run->plan, c, fd) != 0) {
		return -1;
	}
	if (__builtin_expect(np_sys_connect(fd, &c->peer.sa, c->peer.len) == 0, 1)) {
		return 0;
	}
	return errno == EINTR && !np_told_to_leave(&w->stop) ? await_connection(w, fd) : -1;
}

/* Upgrade the connection, or close it. Returns the descriptor, or -errno. */
static int
upgraded(struct np_worker *w, int fd)
{
	struct np_conn conn = { .fd = fd };

	if (w->run->plan->transport->upgrade(w->run, &conn, &w->err) == NP_OK) {
		return fd;
	}
	np_sys_close(fd);
	if (w->err.sys == EINTR) {
		w->err.code = NP_OK; /* the test is over */
	}
	return w->err.sys > 0 ? -w->err.sys : -EPROTO;
}

/* np_side.granted: each connection begins with the token, if any; setup left room for it. */
static void
connect_granted(struct np_worker *w, bool ids)
{
	uint8_t token[NP_TOKEN_SIZE];
	const struct np_slot *slot = w->send_ring.slots;
	struct connector *c = w->state;

	if (!w->run->end.shows) {
		return;
	}
	np_token_put(token, NP_TOKEN_PASSED, &w->run->end.shown);
	for (size_t i = 0; i < w->send_ring.width; i++, slot = slot->next) {
		memcpy(slot->buf, token, sizeof(token));
	}
	c->token = sizeof(token);
	w->send_size += c->token;
}

/*
 * Connect a socket from the next local port; with SOCK_NONBLOCK it may still be connecting. Returns
 * the descriptor, or -errno; -EINTR: stopped.
 */
static int
connect_next(struct np_worker *w, int flags)
{
	struct np_run *run = w->run;
	const struct np_plan *p = run->plan;
	const struct np_transport *t = p->transport;
	struct connector *c = w->state;

	if (__builtin_expect(c->peer.len == 0, 0)) {
		c->local = run->end.local;
		c->port_at = np_addr_port_at(&c->local);
		c->peer = run->end.peer;
		c->far_port = np_addr_port(&c->peer);
		c->spreads = (run->plan->near.sock.mask | run->plan->far.sock.mask) > 0;
	}
	do {
		int fd =
		    socket(c->local.sa.ss_family, t->socktype | SOCK_CLOEXEC | flags, t->protocol);
		int error;

		if (fd < 0) {
			return -errno;
		}
		if (__builtin_expect(connect_from(w, c, fd) == 0, 1) || errno == EINPROGRESS) {
			c->busy = 0;
			return t->upgrade != NULL ? upgraded(w, fd) : fd;
		}
		error = errno;
		np_sys_close(fd);
		if (error == EINTR || note_busy_port(c, error)) {
			continue; /* from the next port, unless stopped */
		}
		if (!p->retry_connect && !np_worker_route_is_lost(w, error)) {
			return -error;
		}
		wait_to_retry(); /* -U, or an outage of the path */
	} while (!np_stopped(&w->stop));
	return -EINTR;
}

/* Record what the kernel knows of the first worker's first connection. */
static __attribute__((noinline)) void
read_closing_first(struct np_worker *w, const struct np_conn *c)
{
	if (w == w->run->worker && w->run->plan->transport->read_closing_first != NULL) {
		w->run->plan->transport->read_closing_first(w->run, c->fd);
	}
}

/* Read TCP_INFO of a connection. It costs a system call, so only if evidence was asked for. */
static __attribute__((noinline)) void
add_tcp_info(struct np_worker *w, const struct np_conn *c)
{
	struct np_tcp_brief b;

	if (!np_tcp_read(c->fd, &b, NULL)) {
		return;
	}
	if (b.retransmitted_segments > 0) {
		w->retransmitted += b.retransmitted_segments;
	}
	if (b.min_rtt_us > 0 && (w->min_rtt_us == 0 || b.min_rtt_us < w->min_rtt_us)) {
		w->min_rtt_us = b.min_rtt_us;
	}
}

/* The response is complete. Wait for the far end's close; -N: a service waits for ours. */
NP_LOOP_BODY enum np_need
connect_arrived(struct np_worker *w, struct np_conn *c, const char *buf, size_t n)
{
	if (__builtin_expect(c->transactions == 0, 0)) {
		read_closing_first(w, c); /* connected by now, even with TCP Fast Open */
	}
	if (__builtin_expect(w->reads_info, 0)) {
		add_tcp_info(w, c);
	}
	return w->run->plan->no_control ? NP_SHUT : NP_AWAIT;
}

/* np_steps.opened: send the request or the token; without either, cc only waits for the close. */
NP_LOOP_BODY enum np_need
connect_opened(struct np_worker *w, struct np_conn *c)
{
	return w->send_size > 0 ? NP_SEND : connect_arrived(w, c, NULL, 0);
}

/* np_steps.sent: a request; or a token of cc, which gets no response. */
NP_LOOP_BODY enum np_need
connect_sent(struct np_worker *w, struct np_conn *c, size_t n)
{
	c->number++;
	return __builtin_expect(w->recv_size > 0, 1) ? NP_RECV : connect_arrived(w, c, NULL, 0);
}

/* A transaction is complete, unless the connection was void. */
NP_LOOP_BODY enum np_need
connect_closed(struct np_worker *w, struct np_conn *c)
{
	uint64_t now = np_now(), done;

	if (__builtin_expect(c->is_void, 0)) {
		c->is_void = false;
		return NP_OPEN;
	}
	if (__builtin_expect(w->load.is_open, 0)) {
		/* The engine begins what is due. c->before: also what was due outside the window.
		 */
		c->before += !np_open_answered(w, c, c->since_ns, now) && w->send_size > 0;
		c->since_ns = now;
		return NP_OPEN;
	}
	np_hist_record(w->hist, now - c->since_ns);
	c->transactions++;
	done = np_add(&w->count->transactions, 1);
	c->since_ns = now;
	return done < w->budget ? np_paced(w, c, NP_OPEN) : np_io_wait_held(w, c, NP_OVER);
}

/* The window is over, at both ends: a failure is no error. Retry slowly until the loop is ended. */
static enum np_need
give_up_last(struct np_worker *w, struct np_conn *c, enum np_need need)
{
	wait_to_retry();
	w->err.code = NP_OK;
	c->is_void = true;
	return need == NP_OPEN ? NP_OPEN : NP_CLOSE;
}

/* A call failed. A non-blocking connect(2), or one with TCP Fast Open, reports its error here. */
static enum np_need
connect_failed(struct np_worker *w, struct np_conn *c, enum np_need need, int error)
{
	bool elsewhere = error == ECONNRESET && w->run->end.shows;
	struct connector *state = w->state;

	if (error == EINPROGRESS) { /* TCP Fast Open had no cookie: it is connecting now */
		return need | NP_BLOCKED;
	}
	if (error != EINTR && np_now() >= w->closes_ns) {
		return give_up_last(w, c, need);
	}
	if (elsewhere) { /* another daemon has reset the connection: retry, but only for a while */
		uint64_t now = np_now();

		if (state->elsewhere_ns == 0 || state->elsewhere_at != c->transactions) {
			state->elsewhere_ns = now;
			state->elsewhere_at = c->transactions;
		}
		if (now - state->elsewhere_ns < NP_ELSEWHERE_S * NP_SEC) {
			c->number -= need != NP_SEND; /* the request was counted as sent */
			c->is_void = true;
			return NP_CLOSE;
		}
	}
	/* Only an error of the first call may mean that there is no connection: then retry. */
	if (error == EINTR || need != (w->send_size > 0 ? NP_SEND : NP_AWAIT) ||
	    (!w->run->plan->retry_connect && !np_worker_route_is_lost(w, error))) {
		if (elsewhere) {
			np_fail_elsewhere(w->run, &w->err);
		}
		return np_step_failed(w, c, need, error);
	}
	wait_to_retry();
	c->is_void = true;
	return NP_CLOSE;
}

/* The far end closed before a whole response: no error once the window is over. */
static enum np_need
connect_ended(struct np_worker *w, struct np_conn *c, size_t n)
{
	return np_now() >= w->closes_ns ? give_up_last(w, c, NP_RECV) : np_step_hung_up(w, c, n);
}

static const struct np_steps connect_steps = {
	.first = NP_OPEN,
	.sent = connect_sent,
	.arrived = connect_arrived,
	.ended = connect_ended,
	.open = connect_next,
	.opened = connect_opened,
	.closed = connect_closed,
	.failed = connect_failed,
};

NP_SYNC_LOOP(connect_sync, connect_steps)

/* np_side.settle: bytes follow from the counts of messages; a token is not user data. */
static void
connect_settle(struct np_worker *w)
{
	uint64_t sends = 0, receives = 0;
	const struct connector *state = w->state;

	NP_EACH_CONN (c, w) {
		c->sent = (c->number - c->before) * (w->send_size - state->token);
		c->received = c->transactions * w->recv_size;
		sends += c->number - c->before;
		if (w->recv_size > 0) { /* the last one may have its response, but not be closed */
			receives += c->transactions + (c->number > c->before &&
						       c->need >= NP_SHUT && c->need <= NP_CLOSE);
		}
		w->last_ns = c->since_ns > w->last_ns ? c->since_ns : w->last_ns;
	}
	np_worker_settle(w, sends, receives + w->more);
	np_set(&w->count->sent, sends * (w->send_size - state->token));
}

/* np_side.leave: add up what add_tcp_info() read, if it did, in run->closing. */
static void
sum_tcp_info(struct np_run *run)
{
	int64_t retransmitted = 0, *least = &run->closing.min_rtt_us;

	if (!run->worker->reads_info) {
		return;
	}
	NP_EACH_WORKER (w, run) {
		retransmitted += w->retransmitted;
		if (w->min_rtt_us > 0 && (*least == 0 || w->min_rtt_us < *least)) {
			*least = w->min_rtt_us;
		}
	}
	run->closing.retrans = (int)np_min((uint64_t)retransmitted, INT32_MAX);
}

/* np_side.leave: take tokens out of sizes; the last connection of the first worker is reported. */
static void
connect_leave(struct np_run *run)
{
	const struct connector *c = run->worker->state;

	NP_EACH_WORKER (w, run) {
		struct connector *state = w->state;

		w->send_size -= state->token;
		state->token = 0;
	}
	sum_tcp_info(run);
	if (c->peer.len != 0) {
		run->end.local = c->local;
		run->end.peer = c->peer;
	}
}

/* Make the rings, for sending with room for a token (cc sends nothing else); set w->reads_info. */
static int
take_rings(struct np_worker *w, int32_t token, int32_t send_size, int32_t recv_size,
	   struct np_err *err)
{
	const struct np_plan *p = w->run->plan;
	bool sized = p->pattern->sized;

	w->reads_info = p->sequence && p->transport->tcp_info;
	send_size = sized ? send_size : 0;
	if ((sized || token > 0) &&
	    np_worker_send_ring(w, token + send_size, false, err) != NP_OK) {
		return err->code;
	}
	w->send_size = (size_t)send_size;
	return sized ? np_worker_recv_ring(w, recv_size, false, err) : NP_OK;
}

/* np_side.setup: share out the local ports, and make the rings. */
static int
connect_setup(struct np_worker *w, struct np_err *err)
{
	struct np_run *run = w->run;
	struct connector *c = w->state = np_cache_lines_new(1, sizeof(*c));
	const struct np_plan *p = run->plan;
	uint32_t first = (uint32_t)(w->conn - run->conn), conns = run->conns;
	uint32_t span = p->port_max > p->port_min ? p->port_max - p->port_min : 0;
	unsigned random;

	if (c == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "state of a connection test");
	}
	/* Each connection has an equal share of the ports; if they are too few, all of them. */
	c->port_min = p->port_min;
	c->port_max = p->port_max;
	if (conns > 0 && span >= conns) {
		c->port_min = p->port_min + span * first / conns;
		c->port_max = p->port_min + span * (first + w->conns) / conns;
	}
	/* Begin at random, so that two runs at a time rarely try the same ports. */
	np_endpoint_random(&random, sizeof(random));
	c->port = c->port_min + (span > 0 ? random % (c->port_max - c->port_min) : 0);
	/* The open sockets only served to learn the buffer sizes, and that it works. */
	np_run_close_conns(run);
	run->closing.mss = run->closing.retrans = -1; /* those were theirs */
	run->closing.cong[0] = '\0';
	return take_rings(w, np_plan_shows_token(run->plan) ? NP_TOKEN_SIZE : 0, run->plan->request,
			  run->plan->response, err);
}

/* np_steps.open of the follower. */
static int
accept_next(struct np_worker *w, int flags)
{
	int fd = np_endpoint_take(w->run, flags);

	if (fd < 0) {
		return -errno;
	}
	if (w->run->plan->transport->upgrade == NULL || (fd = upgraded(w, fd)) >= 0) {
		return fd;
	}
	w->err.code = NP_OK; /* a failed connection is no error of the test */
	return -ECONNABORTED;
}

/*
 * After a large response wait for the client's close: unread data of a closed socket stay in the
 * kernel for minutes, and belong to no session. Only TCP and MPTCP: there NP_SHUT is a half-close.
 */
static bool
waits_for_close(const struct np_worker *w)
{
	const struct np_transport *t = w->run->plan->transport;

	return w->send_size > NP_LEFT_UNACKED && t->acked != NULL && t->ends.shut == NULL;
}

/* The end of a connection in tests that read TCP_INFO, or wait for the client's close. */
static __attribute__((noinline)) enum np_need
accept_last(struct np_worker *w, struct np_conn *c)
{
	if (w->reads_info) {
		add_tcp_info(w, c);
	}
	return waits_for_close(w) ? NP_SHUT : NP_CLOSE;
}

/* All was received and sent: end the connection. */
NP_LOOP_BODY enum np_need
accept_done(struct np_worker *w, struct np_conn *c)
{
	return __builtin_expect(w->has_last, 0) ? accept_last(w, c) : NP_CLOSE;
}

/* A connection with a request counts only once its response is sent. */
NP_LOOP_BODY enum np_need
accept_opened(struct np_worker *w, struct np_conn *c)
{
	c->is_void = w->recv_size > 0;
	return w->recv_size > 0 ? NP_RECV : accept_done(w, c);
}

/* A failed connection (reset, or closed without a request) is no error of the test. */
static enum np_need
accept_failed(struct np_worker *w, struct np_conn *c, enum np_need need, int error)
{
	if (need == NP_OPEN) {
		/* EINTR: accept the next one. */
		return np_step_failed(w, c, need, error == ECONNABORTED ? EINTR : error);
	}
	return error == ECONNRESET || error == EPIPE ? NP_CLOSE : np_step_failed(w, c, need, error);
}

/* np_steps.arrived: a request, to be answered. */
NP_LOOP_BODY enum np_need
accept_arrived(struct np_worker *w, struct np_conn *c, const char *buf, size_t n)
{
	return NP_SEND;
}

/* The client closed before its request was complete: is_void stays set, so it does not count. */
static enum np_need
accept_ended(struct np_worker *w, struct np_conn *c, size_t n)
{
	return NP_CLOSE;
}

/* np_steps.sent: the response, so the connection counts. */
NP_LOOP_BODY enum np_need
accept_sent(struct np_worker *w, struct np_conn *c, size_t n)
{
	c->is_void = false;
	return accept_done(w, c);
}

/* np_steps.closed: count the connection, unless it is void, and accept the next one. */
NP_LOOP_BODY enum np_need
accept_closed(struct np_worker *w, struct np_conn *c)
{
	uint64_t done;

	if (c->is_void) {
		return NP_OPEN;
	}
	c->transactions++;
	done = np_add(&w->count->transactions, 1);
	return np_paced(w, c, done < w->budget ? NP_OPEN : NP_OVER);
}

static const struct np_steps accept_steps = {
	.first = NP_OPEN,
	.sent = accept_sent,
	.arrived = accept_arrived,
	.ended = accept_ended,
	.open = accept_next,
	.opened = accept_opened,
	.closed = accept_closed,
	.failed = accept_failed,
};

NP_SYNC_LOOP(accept_sync, accept_steps)

/* np_side.settle: bytes and calls follow from the transactions. */
static void
accept_settle(struct np_worker *w)
{
	uint64_t done = w->recv_size > 0 ? np_get(&w->count->transactions) : 0; /* cc: no calls */

	NP_EACH_CONN (c, w) {
		c->sent = c->transactions * w->send_size;
		c->received = c->transactions * w->recv_size;
	}
	np_worker_settle(w, done, done + w->more);
}

/* np_side.setup. As in netperf, the listener's buffer sizes stand for the first connection's. */
static int
accept_setup(struct np_worker *w, struct np_err *err)
{
	struct np_run *run = w->run;
	int rc = take_rings(w, 0, run->plan->response, run->plan->request, err);

	run->closing.sndbuf_end = run->end.sndbuf;
	run->closing.rcvbuf_end = run->end.rcvbuf;
	w->has_last = w->reads_info || waits_for_close(w);
	return rc;
}

static const struct np_side connect_side = {
	.granted = connect_granted,
	.setup = connect_setup,
	.steps = &connect_steps,
	.sync = connect_sync,
	.settle = connect_settle,
	.leave = connect_leave,
};

static const struct np_side accept_side = {
	.setup = accept_setup,
	.steps = &accept_steps,
	.sync = accept_sync,
	.settle = accept_settle,
	.leave = sum_tcp_info,
	.pad_ns = NP_SEC / 10,
};

const struct np_pattern np_pattern_cc = {
	.name = "cc",
	.words = { [NP_LEAD] = { "Connection", "both", "connect/close", "connect" },
		   [NP_FOLLOW] = { "Connection", "both", "connect/close", "accept" } },
	.side = { [NP_LEAD] = &connect_side, [NP_FOLLOW] = &accept_side },
	.lead_direction = NP_WD_NONE,
	.transactions = true,
	.connection_test = true,
	.several = true,
};

const struct np_pattern np_pattern_crr = {
	.name = "crr",
	.words = { [NP_LEAD] = { "Connect|Send|Recv", "both", "connect/request/response/close",
				 "connect" },
		   [NP_FOLLOW] = { "Connect|Send|Recv", "both", "connect/request/response/close",
				   "accept" } },
	.side = { [NP_LEAD] = &connect_side, [NP_FOLLOW] = &accept_side },
	.lead_direction = NP_WD_BOTH,
	.transactions = true,
	.sized = true,
	.speaks_first = true,
	.connection_test = true,
	.several = true,
};
