/*
 * crr and cc: a connection for every transaction, with or without a request and a response on it.
 * The follower closes first, so TIME_WAIT stays with it; the leader walks through a range of local
 * ports, as netperf does, so that no pair of ports comes back soon.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "bench/engine/syscall.h"
#include "bench/pattern/message.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"

enum { NUDGES_BEFORE_RESET = 6 };

struct connector {
	uint32_t port, far_port; /* the last local port; the daemon's */
	unsigned busy;           /* ports in a row that were in use */
	unsigned nudges;
};

/* The next local port of the range, but never the port that is connected to. */
static inline void
next_port(struct np_run *run, struct connector *c)
{
	const struct np_plan *p = run->plan;

	c->port = c->port + 1 < p->port_max ? c->port + 1 : p->port_min;
	if (c->port == c->far_port && p->port_max - p->port_min > 1) {
		c->port = c->port + 1 < p->port_max ? c->port + 1 : p->port_min;
	}
	np_addr_set_port(&run->end.local, c->port);
}

/* Did the local port stand in the way? Then another one may do. */
static bool
port_is_busy(const struct np_run *run, struct connector *c, int error)
{
	if (error != EADDRINUSE && error != EADDRNOTAVAIL) {
		return false;
	}
	return ++c->busy < (unsigned)(run->plan->port_max - run->plan->port_min) + 1;
}

/* What np_sock_open() does, without its messages: this runs for every transaction. */
static inline int
connect_from(struct np_run *run, int fd)
{
	const struct np_addr *at = &run->end.local;

	return np_sockopts_apply(&run->end.opts, fd, NULL) == NP_OK &&
		       (at->len == 0 || bind(fd, (const struct sockaddr *)&at->sa, at->len) == 0)
		   ? np_sys_connect(fd, &run->end.peer.sa, run->end.peer.len)
		   : -1;
}

/* -U: whatever it was that failed, it is tried again, but not as fast as the kernel can refuse. */
static void
wait_to_retry(void)
{
	static const struct timespec pause = { .tv_nsec = 1000000 };

	nanosleep(&pause, NULL);
}

/* Other hosts of the networks that -H and -L name, for the next connection. */
static void
spread_addresses(struct np_run *run)
{
	np_endpoint_spread(&run->end.local, run->plan->near.mask);
	np_endpoint_spread(&run->end.peer, run->plan->far.mask);
}

/* A connected socket from the next local port. Returns it, -errno, or 0 when told to stop. */
NP_LOOP_BODY int
connect_next(struct np_run *run, struct connector *c, const bool extras)
{
	const struct np_transport *t = run->plan->transport;
	const int family = run->end.local.sa.ss_family;

	while (!np_stopped(run->stop)) {
		int fd = socket(family, t->socktype | SOCK_CLOEXEC, t->protocol);
		int error;

		if (fd < 0) {
			return -errno;
		}
		next_port(run, c);
		if (extras) {
			spread_addresses(run);
		}
		if (__builtin_expect(connect_from(run, fd) == 0, 1)) {
			c->busy = 0;
			return fd;
		}
		error = errno;
		np_sys_close(fd);
		if (error == EINTR || port_is_busy(run, c, error)) {
			continue;
		}
		if (!extras || !run->plan->retry_connect) {
			return -error;
		}
		wait_to_retry();
	}
	return 0;
}

/* The leader waits for the follower's close before its own. */
static inline int
await_close(struct np_run *run, int fd)
{
	char byte;
	ssize_t n;

	do {
		n = np_sys_recv(fd, &byte, 1);
	} while ((n > 0 || (n < 0 && errno == EINTR)) && !np_stopped(run->stop));
	if (n == 0) {
		return 0;
	}
	return n > 0 || errno == EINTR ? NP_LEAVE : -errno;
}

/* The totals that follow from the transactions. Without data both sizes are 0, and no call counts.
 */
static void
settle(struct np_run *run, uint64_t done, uint64_t sends, uint64_t receives)
{
	np_show(&run->worker.count->sends, sends);
	np_show(&run->worker.count->receives, receives);
	np_show(&run->worker.count->sent, sends * run->worker.send_size);
	np_show(&run->worker.count->received, done * run->worker.recv_size);
}

/* Calls beyond one send and one receive a transaction. */
struct beyond {
	uint64_t sends, receives;
};

/* One connection and what goes over it. 0, NP_LEAVE or -errno. */
NP_LOOP_BODY int
transact(struct np_run *run, struct beyond *more, const bool data, const bool extras,
	 const bool first)
{
	int fd = connect_next(run, run->worker.state, extras);
	int rc = 0;

	if (fd <= 0) {
		return fd == 0 ? NP_LEAVE : fd;
	}
	if (extras && (rc = np_run_upgrade(run, fd)) != 0) {
		np_sys_close(fd);
		return rc;
	}
	if (data && (rc = np_message_send(run, &fd, run->worker.send_ring.slots->buf,
					  run->worker.send_size, extras)) == 0) {
		rc = np_message_recv(run, &fd, run->worker.recv_ring.slots->buf,
				     run->worker.recv_size, &more->receives, extras);
		more->sends += rc != 0; /* the end came while its request was under way */
	}
	if (extras && rc == 0 && run->plan->no_control) {
		shutdown(fd, SHUT_WR); /* a service closes when its client has */
	}
	if (rc == 0 && (rc = await_close(run, fd)) != 0) {
		more->sends += data;
		more->receives += data;
	}
	if (first && run->plan->transport->look_first != NULL) {
		run->plan->transport->look_first(run, fd);
	}
	np_sys_close(fd);
	return rc;
}

/* The first connection is also looked at, which the others must not pay for. */
static int
transact_first(struct np_run *run, struct beyond *more, bool data, bool extras)
{
	return np_stopped(run->stop) ? NP_LEAVE : transact(run, more, data, extras, true);
}

NP_LOOP_BODY int
connect_loop(struct np_run *run, const bool data, const bool extras)
{
	struct connector *c = run->worker.state;
	struct beyond more = { 0, 0 };
	uint64_t done = 0;
	uint64_t then = run->window.started_ns;
	int rc;

	c->far_port = np_addr_port(&run->end.peer);
	rc = transact_first(run, &more, data, extras);
	while (rc == 0) {
		uint64_t now = np_now();

		np_hist_record(run->worker.hist, now - then);
		then = now;
		np_show(&run->worker.count->transactions, ++done);
		if (extras && np_pace(run)) {
			then = np_now();
		}
		if (np_stopped(run->stop) || done >= run->worker.budget) {
			break;
		}
		rc = transact(run, &more, data, extras, false);
	}
	settle(run, done, data ? done + more.sends : 0, data ? done + more.receives : 0);
	run->worker.last_ns = then;
	if (rc == NP_LEAVE) {
		/* Told to stop; or the far end closed before it had answered. */
		return np_stopped(run->stop) ? 0 : -ECONNRESET;
	}
	return rc;
}

static int
connect_only(struct np_run *run)
{
	return connect_loop(run, false, false);
}

static int
connect_request(struct np_run *run)
{
	return connect_loop(run, true, false);
}

static int
connect_extras(struct np_run *run)
{
	np_pace_begin(run);
	return connect_loop(run, run->plan->pattern->sized, true);
}

static bool
connects_with_extras(const struct np_run *run)
{
	const struct np_plan *p = run->plan;

	return np_extra_wanted(run) || p->transport->upgrade != NULL || p->retry_connect ||
	       p->near.mask > 0 || p->far.mask > 0 || p->no_control;
}

/* A random place in the port range, so that two runs do not walk over each other. */
static uint32_t
first_port(const struct np_plan *p)
{
	unsigned span = p->port_max > p->port_min ? (unsigned)(p->port_max - p->port_min) : 1;
	unsigned dice = 0;

	if (getrandom(&dice, sizeof(dice), GRND_NONBLOCK) != sizeof(dice)) {
		dice = (unsigned)np_now();
	}
	return p->port_min + dice % span;
}

static int
connector_setup(struct np_run *run, struct np_err *err)
{
	struct connector *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "state of a connection test");
	}
	run->worker.state = c;
	c->port = first_port(run->plan);
	/* The first socket was made to see that it can be, and for its buffer sizes. */
	np_run_close(run);
	run->closing.mss = run->closing.retrans = -1;
	run->closing.cong[0] = '\0';
	return NP_OK;
}

static int
connect_setup(struct np_run *run, struct np_err *err)
{
	run->worker.loop = connects_with_extras(run) ? connect_extras : connect_only;
	return connector_setup(run, err);
}

static int
request_setup(struct np_run *run, struct np_err *err)
{
	run->worker.loop = connects_with_extras(run) ? connect_extras : connect_request;
	if (connector_setup(run, err) != NP_OK ||
	    np_run_send_ring(run, run->plan->request, false, err) != NP_OK) {
		return err->code;
	}
	return np_run_recv_ring(run, run->plan->response, false, err);
}

static void
connector_release(struct np_run *run)
{
	free(run->worker.state);
	run->worker.state = NULL;
}

/*
 * A daemon of netperf's own sits in accept() for another four seconds. When no results have come
 * for a while, a connection that is reset at once makes it report an error and leave the port.
 */
static void
reset_nudge(struct np_run *run)
{
	const struct np_transport *t = run->plan->transport;
	struct connector *c = run->worker.state;

	if (++c->nudges == NUDGES_BEFORE_RESET && t->knock != NULL) {
		t->knock(run);
	}
}

/* A connection that came to nothing (reset, or closed without a request) is no fault of the test.
 */
NP_LOOP_BODY int
serve(struct np_run *run, int fd, uint64_t *more, const bool extras)
{
	int rc = np_message_recv(run, &fd, run->worker.recv_ring.slots->buf, run->worker.recv_size,
				 more, extras);

	if (rc == 0) {
		rc = np_message_send(run, &fd, run->worker.send_ring.slots->buf,
				     run->worker.send_size, extras);
	}
	return rc == -ECONNRESET || rc == -EPIPE ? NP_LEAVE : rc;
}

NP_LOOP_BODY int
accept_loop(struct np_run *run, const bool data, const bool extras)
{
	uint64_t done = 0, more = 0;
	int rc = 0;

	while (!np_stopped(run->stop) && done < run->worker.budget) {
		int fd = extras ? np_endpoint_take(run) : np_sys_accept(run->end.listen_fd);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) {
			continue;
		}
		if (fd < 0) {
			rc = -errno;
			break;
		}
		rc = extras ? np_run_upgrade(run, fd) : 0;
		rc = rc == 0 && data ? serve(run, fd, &more, extras) : rc;
		np_sys_close(fd);
		if (rc < 0) {
			break;
		}
		done += rc == 0;
		np_show(&run->worker.count->transactions, done);
		if (extras && rc == 0) {
			np_pace(run);
		}
		rc = 0;
	}
	settle(run, done, data ? done : 0, data ? done + more : 0);
	return rc;
}

static int
accept_only(struct np_run *run)
{
	return accept_loop(run, false, false);
}

static int
accept_respond(struct np_run *run)
{
	return accept_loop(run, true, false);
}

static int
accept_extras(struct np_run *run)
{
	np_pace_begin(run);
	return accept_loop(run, run->plan->pattern->sized, true);
}

/* netperf reads the sizes of the first connection while it is new: those of the listener. */
static void
accept_prepare(struct np_run *run, int (*loop)(struct np_run *run))
{
	bool extras =
	    np_extra_wanted(run) || run->end.picky || run->plan->transport->upgrade != NULL;

	run->worker.loop = extras ? accept_extras : loop;
	run->closing.sndbuf_end = run->end.sndbuf;
	run->closing.rcvbuf_end = run->end.rcvbuf;
}

static int
accept_setup(struct np_run *run, struct np_err *err)
{
	(void)err;
	accept_prepare(run, accept_only);
	return NP_OK;
}

static int
respond_setup(struct np_run *run, struct np_err *err)
{
	accept_prepare(run, accept_respond);
	if (np_run_recv_ring(run, run->plan->request, false, err) != NP_OK) {
		return err->code;
	}
	return np_run_send_ring(run, run->plan->response, false, err);
}

static const struct np_side cc_connect = {
	.setup = connect_setup,
	.release = connector_release,
	.connects = true,
};

static const struct np_side cc_accept = {
	.setup = accept_setup,
	.pad_ns = NP_SEC / 10,
	.connects = true,
};

static const struct np_side crr_connect = {
	.setup = request_setup,
	.nudge = reset_nudge,
	.release = connector_release,
	.connects = true,
};

static const struct np_side crr_accept = {
	.setup = respond_setup,
	.pad_ns = NP_SEC / 10,
	.connects = true,
};

const struct np_pattern np_pattern_cc = {
	.name = "cc",
	.words = { [NP_LEAD] = { "Connection", "both", "connect/close", "connect" },
		   [NP_FOLLOW] = { "Connection", "both", "connect/close", "accept" } },
	.side = { [NP_LEAD] = &cc_connect, [NP_FOLLOW] = &cc_accept },
	.lead_direction = NP_WD_NONE,
	.transactions = true,
	.connection_test = true,
};

const struct np_pattern np_pattern_crr = {
	.name = "crr",
	.words = { [NP_LEAD] = { "Connect|Send|Recv", "both", "connect/request/response/close",
				 "connect" },
		   [NP_FOLLOW] = { "Connect|Send|Recv", "both", "connect/request/response/close",
				   "accept" } },
	.side = { [NP_LEAD] = &crr_connect, [NP_FOLLOW] = &crr_accept },
	.lead_direction = NP_WD_BOTH,
	.transactions = true,
	.sized = true,
	.speaks_first = true,
	.connection_test = true,
};
