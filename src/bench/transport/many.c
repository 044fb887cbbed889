#include "bench/transport/many.h"

#include <errno.h>
#include <poll.h>

#include "base/fds.h"
#include "bench/engine/syscall.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "bench/transport/spread.h"
#include "wire/plan.h"

/* Without connections each flow has a port at the far end, or shares one with others. */
static void
aim(const struct np_run *run, uint32_t number, struct np_addr *peer)
{
	*peer = run->end.peer;
	if (run->end.far_ports > 0) {
		np_addr_set_port(peer, run->end.far_port[number % run->end.far_ports]);
	}
}

static void
limit(struct np_run *run, uint32_t conns)
{
	if (run->conns > conns) {
		run->conns = conns;
	}
}

/* Do flows share sockets of this end? One that sends unasked has to know where to. */
static bool
share(const struct np_plan *p)
{
	return !p->active && (p->pattern->transactions || p->role == NP_FOLLOW);
}

/* Is where a passive end hears a path, or a port that somebody has named? */
static bool
has_one_place(const struct np_plan *p)
{
	return !p->transport->named || p->near.sock.port != 0;
}

uint32_t
np_many_places(const struct np_plan *p, uint32_t *spare)
{
	uint32_t most = has_one_place(p) ? 1 : NP_GRANT_PORTS, count;

	if (p->transport->connected) {
		*spare = 0;
		return 1; /* a listener */
	}
	count = share(p) && p->flows > most ? most : p->flows;
	*spare = share(p) ? count - 1 : 0;
	return count;
}

/* The series of a connection test make theirs when they run: that these can be had is seen now. */
static int
allow_series(const struct np_run *run, struct np_err *err)
{
	enum { OTHERS = 32 }; /* that a worker has open */
	unsigned most;

	if (run->conns < 2 || !run->plan->active) {
		return NP_OK;
	}
	most = np_fds_allow(run->conns);
	if (most < run->conns + OTHERS) {
		return np_fail(err, NP_ESYS, EMFILE,
			       "%u connections at a time (a smaller --flows, or a larger ulimit -n "
			       "than %u)",
			       run->conns, most);
	}
	return NP_OK;
}

/* The sockets beside the first; all of them are bound as that one is, to ports of their own. */
int
np_many_open(struct np_run *run, struct np_err *err)
{
	bool connected = run->plan->transport->connected;
	uint32_t most = run->terms->passive_most, spare;

	if (run->plan->pattern->connection_test) {
		return allow_series(run, err);
	}
	if (run->conns < 2 || (!run->plan->active && connected)) {
		return NP_OK;
	}
	if (run->conns > np_plan_most_flows(run->plan)) {
		return np_fail(err, NP_EUSAGE, EINVAL, "%u data connections: %s over %s has %u",
			       run->conns, run->plan->pattern->name, run->plan->transport->name,
			       np_plan_most_flows(run->plan));
	}
	if (run->plan->active) {
		np_fds_allow(run->conns); /* a session's limit follows from what it may be asked */
	} else if (share(run->plan)) {
		uint32_t places = np_many_places(run->plan, &spare);

		limit(run, most != 0 && most < places ? most : places);
	}
	for (uint32_t i = 1; i < run->conns; i++) {
		run->conn[i].fd = run->plan->transport->another(run, i, err);
		if (run->conn[i].fd < 0 && share(run->plan) && err->sys == EADDRINUSE) {
			limit(run, i); /* of few ports that there are */
		} else if (run->conn[i].fd < 0 && err->sys == EMFILE) {
			return np_fail(err, NP_ESYS, EMFILE,
				       "open data socket %u of %u (a smaller --flows, or a larger "
				       "ulimit -n)",
				       i + 1, run->conns);
		} else if (run->conn[i].fd < 0) {
			return err->code;
		}
	}
	return NP_OK;
}

static int
no_connection(const struct np_run *run, uint32_t number, int error, struct np_err *err)
{
	struct np_addr peer;
	char text[NP_ADDR_TEXT];

	aim(run, number, &peer);
	return np_fail(err, NP_ESYS, error, "connect data socket %u of %u to %s", number + 1,
		       run->conns, np_addr_text(&peer, text));
}

/* In the UNIX domain none takes time, unless as many wait as may: who does not block is refused
 * then.
 */
int
np_many_begin(struct np_run *run, uint32_t number, struct np_err *err)
{
	int fd = run->conn[number].fd;
	struct np_addr peer;

	aim(run, number, &peer);
	if (!np_family_is_local(run->plan->transport->family)) {
		np_sock_unblock(fd);
	}
	if (np_sys_connect(fd, &peer.sa, peer.len) != 0 && errno != EINPROGRESS) {
		return no_connection(run, number, errno, err);
	}
	if (!run->plan->transport->connected) {
		np_sock_forget(fd); /* it was bound before: it has heard anybody until now */
	}
	return NP_OK;
}

int
np_many_await(struct np_run *run, uint32_t number, struct np_err *err)
{
	struct pollfd p = { .fd = run->conn[number].fd, .events = POLLOUT };
	int error = 0;
	socklen_t len = sizeof(error);

	while (!np_stopped(run->stop) && poll(&p, 1, 100) <= 0) {
	}
	if (np_stopped(run->stop)) {
		return no_connection(run, number, EINTR, err);
	}
	if (getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0) {
		return no_connection(run, number, error != 0 ? error : errno, err);
	}
	return NP_OK;
}

static int
connect_all(struct np_run *run, struct np_err *err)
{
	for (uint32_t i = 1; i < run->conns; i++) {
		if (np_many_begin(run, i, err) != NP_OK) {
			return err->code;
		}
	}
	for (uint32_t i = 1; i < run->conns; i++) {
		if (np_many_await(run, i, err) != NP_OK) {
			return err->code;
		}
	}
	return NP_OK;
}

/* One that a worker blocks in. */
static int
as_driven(const struct np_run *run)
{
	for (uint32_t i = 1; i < run->conns && run->worker->stop.wake_fd == 0; i++) {
		np_sock_block(run->conn[i].fd);
	}
	return NP_OK;
}

int
np_many_meet(struct np_run *run, struct np_err *err)
{
	if (run->plan->active) {
		if (connect_all(run, err) != NP_OK ||
		    (run->plan->spread && np_spread_choose(run, err) != NP_OK)) {
			return err->code;
		}
		return as_driven(run);
	}
	for (uint32_t i = 1; i < run->conns && run->plan->transport->connected; i++) {
		if (np_endpoint_accept(run, &run->conn[i], err) != NP_OK) {
			return err->code;
		}
	}
	return NP_OK;
}
