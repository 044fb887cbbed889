/*
 * Spread data connections over the receive queues of the end that connects (--spread). Addresses
 * and ports determine the queue; the kernel reports it after connecting (SO_INCOMING_NAPI_ID).
 * Those in a crowded queue are made again from another port. The first byte on a connection says
 * that it is kept: the end that accepts waits for it, and drops connections closed without it.
 */
#include "bench/transport/many.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/engine/syscall.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "sys/nic.h"

/* ---- The end that connects ---- */

enum {
	QUEUES = 1024,   /* known ones; connections on any others stay as they are */
	ROUNDS = 16,     /* of making connections again, usually; and */
	ROUNDS_MOST = 64 /* at most, if there is time */
};

struct queue {
	uint32_t id, flows; /* its NAPI id; connections on it now */
};

/* How the connections are spread over receive queues. */
struct layout {
	struct queue queue[QUEUES];
	uint32_t queues;  /* queues that were seen in any round */
	uint32_t share;   /* connections that a queue may have */
	uint32_t surplus; /* connections beyond that */
	uint32_t again[]; /* their numbers */
};

/* The queue with that NAPI id, added if it is new. NULL: there are QUEUES others. */
static struct queue *
queue_of(struct layout *l, uint32_t id)
{
	for (uint32_t i = 0; i < l->queues; i++) {
		if (l->queue[i].id == id) {
			return &l->queue[i];
		}
	}
	if (l->queues == QUEUES) {
		return NULL;
	}
	l->queue[l->queues] = (struct queue){ .id = id };
	return &l->queue[l->queues++];
}

/* NAPI id of the queue that the connection's packets came by; 0, -1: none, or not known. */
static int
id_of(const struct np_conn *c)
{
	return np_sock_int(c->fd, SOL_SOCKET, SO_INCOMING_NAPI_ID);
}

/* See on which queue each connection is. The first one is never surplus, so it stays. */
static void
read_layout(const struct np_run *run, struct layout *l)
{
	uint32_t queues;

	l->surplus = 0;
	for (uint32_t i = 0; i < l->queues; i++) {
		l->queue[i].flows = 0;
	}
	NP_EACH_CONN (c, run) {
		int id = id_of(c);

		if (id > 0) { /* their number decides the share of each */
			(void)queue_of(l, (uint32_t)id);
		}
	}
	queues = l->queues > run->spread.has ? l->queues : run->spread.has;
	l->share = queues > 0 ? (run->conns + queues - 1) / queues : run->conns;
	for (uint32_t i = 0; i < run->conns; i++) {
		int id = id_of(&run->conn[i]);
		struct queue *q = id > 0 ? queue_of(l, (uint32_t)id) : NULL;

		if (q != NULL && ++q->flows > l->share) {
			l->again[l->surplus++] = i;
		}
	}
}

/* Replace the surplus connections by new ones. */
static int
connect_again(struct np_run *run, const struct layout *l, struct np_err *err)
{
	for (uint32_t i = 0; i < l->surplus; i++) {
		uint32_t number = l->again[i];
		struct np_conn *c = &run->conn[number];

		np_sock_reset(c->fd);
		c->fd = run->plan->transport->another(run, number, err);
		if (c->fd < 0 || np_many_begin(run, c, err) != NP_OK) {
			return err->code;
		}
	}
	for (uint32_t i = 0; i < l->surplus; i++) {
		if (np_many_await(run, &run->conn[l->again[i]], err) != NP_OK) {
			return err->code;
		}
	}
	run->spread.reconnected += l->surplus;
	return NP_OK;
}

/* Make connections again until they are spread; then tell the far end to keep them. */
static int
choose(struct np_run *run, struct layout *l, struct np_err *err)
{
	struct np_spread *s = &run->spread;
	uint64_t until = np_deadline(NP_SEC);

	read_layout(run, l);
	for (int i = 0; l->surplus > 0 && i < ROUNDS_MOST; i++) {
		if (i >= ROUNDS && np_now() >= until) {
			break; /* further rounds only within the first second */
		}
		if (connect_again(run, l, err) != NP_OK) {
			return err->code;
		}
		read_layout(run, l);
	}
	for (uint32_t i = 0; i < l->queues; i++) {
		s->queues += l->queue[i].flows > 0;
	}
	s->collisions = l->surplus;
	for (uint32_t i = 0; i < run->conns; i++) {
		if (np_sys_sendto(run->conn[i].fd, "", 1, NULL, 0) != 1) {
			return np_fail(err, NP_ESYS, errno, "keep data connection %u of %u", i + 1,
				       run->conns);
		}
	}
	return NP_OK;
}

int
np_spread_connect(struct np_run *run, struct np_err *err)
{
	struct layout *l;
	char device[NP_ADDR_DEVICE];
	struct np_addr local;
	struct np_err ignored;
	int rc;

	if (np_many_connect(run, err) != NP_OK) {
		return err->code;
	}
	l = calloc(1, sizeof(*l) + run->conns * sizeof(l->again[0]));
	if (l == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory to spread %u flows", run->conns);
	}
	run->spread.has = np_sock_local(run->conn->fd, &local, &ignored) == NP_OK &&
				  np_addr_device(&local, device) == 0
			      ? np_nic_rx_queues(device)
			      : 0;
	rc = choose(run, l, err);
	free(l);
	if (rc == NP_OK) {
		np_many_connected(run);
	}
	return rc;
}

/* ---- The end that accepts ---- */

/* Returns 1 if a byte says that the connection is kept; else 0. A close makes room for another. */
static uint32_t
read_verdict(struct np_conn *c, struct pollfd *p)
{
	char byte;
	ssize_t n = recv(c->fd, &byte, 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return 0;
	}
	p->fd = -1; /* its fate is known */
	if (n == 1) {
		return 1;
	}
	close(c->fd);
	c->fd = -1;
	return 0;
}

/* Accept waiting connections, as far as there is room. */
static int
take_waiting(struct np_run *run, struct pollfd *polls, struct np_err *err)
{
	struct pollfd listener = { .fd = run->end.listen_fd, .events = POLLIN };

	for (uint32_t i = 0; i < run->conns && poll(&listener, 1, 0) > 0; i++) {
		if (run->conn[i].fd >= 0) {
			continue;
		}
		run->conn[i].fd = np_endpoint_take(run, 0);
		if (run->conn[i].fd < 0 && errno != EINTR && errno != ECONNABORTED) {
			return np_fail(err, NP_ESYS, errno, "accept a data connection");
		}
		polls[i] = (struct pollfd){ .fd = run->conn[i].fd, .events = POLLIN };
	}
	return NP_OK;
}

/* polls: one for each connection, and after them the listener's. */
int
np_spread_accept(struct np_run *run, struct pollfd *polls, struct np_err *err)
{
	enum { PAUSE_MS = 100 };
	uint32_t kept = 0;

	while (kept < run->conns && !np_stopped(run->stop)) {
		bool room = false;

		NP_EACH_CONN (c, run) {
			room = room || c->fd < 0;
		}
		polls[run->conns].fd = room ? run->end.listen_fd : -1;
		if (poll(polls, run->conns + 1, PAUSE_MS) <= 0) {
			continue;
		}
		for (uint32_t i = 0; i < run->conns; i++) {
			kept += polls[i].fd >= 0 && polls[i].revents != 0
				    ? read_verdict(&run->conn[i], &polls[i])
				    : 0;
		}
		if (polls[run->conns].revents != 0 && take_waiting(run, polls, err) != NP_OK) {
			return err->code;
		}
	}
	return NP_OK;
}
