#include "bench/transport/many.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/fds.h"
#include "bench/engine/syscall.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "bench/transport/unix.h"
#include "net/sock.h"

/* The peer of a flow: without connections each flow has its own port or path at the far end. */
static void
peer_of(const struct np_run *run, const struct np_conn *c, struct np_addr *peer)
{
	const struct np_transport *t = run->plan->transport;

	*peer = run->end.peer;
	if (c->port != 0) {
		np_addr_set_port(peer, c->port);
	} else if (!t->connected && np_family(t->family)->is_here) { /* UNIX domain */
		np_unix_another(&run->end.peer, (uint32_t)(c - run->conn), peer);
	}
}

/* Note the port of a passive end's data socket, to tell the client (in a GRANT). */
static int
note_port(struct np_run *run, struct np_conn *c, struct np_err *err)
{
	struct np_addr at;

	if (run->plan->active || !run->plan->transport->named) {
		return NP_OK;
	}
	if (np_sock_local(c->fd, &at, err) != NP_OK) {
		return err->code;
	}
	c->port = np_addr_port(&at);
	return NP_OK;
}

/* Each socket is bound as the first one is, but to its own port. */
int
np_many_open(struct np_run *run, struct np_err *err)
{
	enum { OTHERS = 32 }; /* descriptors of this process beside those of connections */
	bool connected = run->plan->transport->connected;

	if (run->conns < 2 || (!run->plan->active && connected)) {
		return NP_OK; /* there are no others, or they will be accepted */
	}
	if (run->plan->pattern->connection_test) {
		/* It opens its sockets later: raise the limit of descriptors now, or fail. */
		unsigned most = np_fds_raise_limit(run->conns);

		return most >= run->conns + OTHERS
			   ? NP_OK
			   : np_fail(err, NP_ESYS, EMFILE,
				     "%u connections at a time (a smaller --flows, or a larger "
				     "ulimit -n than %u)",
				     run->conns, most);
	}
	if (np_is_handed(run)) { /* all sockets will have the daemon's one port */
		NP_EACH_CONN (c, run) {
			c->port = np_addr_port(&run->end.local);
		}
		return NP_OK;
	}
	if (run->conns > np_plan_most_flows(run->plan)) {
		return np_fail(err, NP_EUSAGE, EINVAL, "%u data connections: %s over %s has %u",
			       run->conns, run->plan->pattern->name, run->plan->transport->name,
			       np_plan_most_flows(run->plan));
	}
	if (run->plan->active) {
		/* A daemon has set the limit of its sessions itself. */
		np_fds_raise_limit(run->conns);
	} else if (note_port(run, run->conn, err) != NP_OK) {
		return err->code;
	}
	for (uint32_t i = 1; i < run->conns; i++) {
		run->conn[i].fd = run->plan->transport->another(run, i, err);
		if (run->conn[i].fd < 0 && !run->plan->active && err->sys == EADDRINUSE) {
			run->conns = i; /* there are no more ports: go on with fewer */
		} else if (run->conn[i].fd < 0 && err->sys == EMFILE) {
			return np_fail(err, NP_ESYS, EMFILE,
				       "open data socket %u of %u (a smaller --flows, or a larger "
				       "ulimit -n)",
				       i + 1, run->conns);
		} else if (run->conn[i].fd < 0 || note_port(run, &run->conn[i], err) != NP_OK) {
			return err->code;
		}
	}
	return NP_OK;
}

/* A flow could not connect: NP_ESYS with the errno `error`. */
static int
fail_connect(const struct np_run *run, const struct np_conn *c, int error, struct np_err *err)
{
	struct np_addr peer;

	peer_of(run, c, &peer);
	return np_fail(err, NP_ESYS, error, "connect data socket %u of %u to %s",
		       (uint32_t)(c - run->conn) + 1, run->conns, NP_ADDR_STR(&peer));
}

/* UNIX sockets stay blocking: with a full backlog they wait, where non-blocking ones fail. */
int
np_many_begin(struct np_run *run, struct np_conn *c, struct np_err *err)
{
	struct np_addr peer;

	peer_of(run, c, &peer);
	if (!np_family(run->plan->transport->family)->is_here) {
		np_sock_block(c->fd, false);
	}
	if (np_sys_connect(c->fd, &peer.sa, peer.len) != 0 && errno != EINPROGRESS) {
		return fail_connect(run, c, errno, err);
	}
	if (!run->plan->transport->connected) {
		np_sock_forget(c->fd); /* drop datagrams of any sender from before */
	}
	return NP_OK;
}

int
np_many_await(struct np_run *run, struct np_conn *c, struct np_err *err)
{
	struct pollfd p = { .fd = c->fd, .events = POLLOUT };
	int error;

	if (run->plan->transport->ip_protocol == IPPROTO_TCP) {
		struct np_addr peer;

		/* In one call instead of poll and getsockopt: is it connected, or why not? */
		peer_of(run, c, &peer);
		error = np_sys_connect(p.fd, &peer.sa, peer.len) == 0 ? EISCONN : errno;
		if (error != EALREADY && error != EINPROGRESS) {
			return error == EISCONN ? NP_OK : fail_connect(run, c, error, err);
		}
	}
	while (!np_stopped(run->stop) && poll(&p, 1, 100) <= 0) {
	}
	if (np_stopped(run->stop)) {
		return fail_connect(run, c, EINTR, err);
	}
	error = np_sock_int(p.fd, SOL_SOCKET, SO_ERROR); /* -1: see errno */
	return error == 0 ? NP_OK : fail_connect(run, c, error > 0 ? error : errno, err);
}

int
np_many_each(struct np_run *run, uint32_t first,
	     int (*step)(struct np_run *run, struct np_conn *c, struct np_err *err),
	     struct np_err *err)
{
	for (uint32_t i = first; i < run->conns; i++) {
		if (step(run, &run->conn[i], err) != NP_OK) {
			return err->code;
		}
	}
	return NP_OK;
}

int
np_many_connect(struct np_run *run, struct np_err *err)
{
	int rc = np_many_each(run, 1, np_many_begin, err);

	return rc == NP_OK ? np_many_each(run, 1, np_many_await, err) : rc;
}

void
np_many_connected(const struct np_run *run)
{
	for (uint32_t i = 1; i < run->conns && run->worker->stop.wake_fd == 0; i++) {
		np_sock_block(run->conn[i].fd, true);
	}
}

int
np_many_establish(struct np_run *run, struct np_err *err)
{
	if (!run->plan->active) {
		return run->plan->transport->connected
			   ? np_many_each(run, 1, np_endpoint_accept, err)
			   : NP_OK;
	}
	if (np_many_connect(run, err) != NP_OK) {
		return err->code;
	}
	np_many_connected(run);
	return NP_OK;
}

int
np_many_wait(struct np_run *run,
	     int (*wait)(struct np_run *run, struct pollfd *waits, struct np_err *err),
	     struct np_err *err)
{
	struct pollfd *waits = calloc(run->conns + 1, sizeof(*waits));
	int rc;

	if (waits == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory to wait for %u data sockets",
			       run->conns);
	}
	for (uint32_t i = 0; i <= run->conns; i++) {
		waits[i] = (struct pollfd){ .fd = i < run->conns ? run->conn[i].fd : -1,
					    .events = POLLIN };
	}
	rc = wait(run, waits, err);
	free(waits);
	return rc;
}
