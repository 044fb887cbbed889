/*
 * System calls of several messages, with a step (np_steps.sent, .arrived) for each. With one
 * connection a worker blocks in them (np_calls_drive()), with many it waits for events (`epoll`).
 */
#ifndef NP_BENCH_ENGINE_CALLS_H
#define NP_BENCH_ENGINE_CALLS_H

#include <string.h>
#include <sys/socket.h>

#include "bench/worker.h"

struct np_calls {
	/* One call and its messages' steps. Adds NP_BLOCKED to the next need if it would block. */
	enum np_need (*send)(struct np_worker *w, struct np_conn *c);
	enum np_need (*recv)(struct np_worker *w, struct np_conn *c);
	/* As np_io_left(). */
	ssize_t (*left)(struct np_worker *w, struct np_conn *c, char **buf);
	/* Read a message of the error queue (released buffers). False: none. NULL: not used. */
	bool (*take_back)(struct np_worker *w, struct np_conn *c);
};

/* np_worker.loop for one connection, with blocking calls. Returns 0 or -errno. */
int np_calls_drive(struct np_worker *w);

/* A message to send. */
struct np_outgoing {
	char *buf;
	const struct sockaddr *addr; /* destination; NULL: np_worker.to */
	socklen_t addr_len;
};

/* Set the destination in a header: by memcpy(), as the member is not const, but only read. */
static inline void
np_message_to(struct msghdr *h, const struct np_outgoing *m, const struct np_worker *w)
{
	const struct sockaddr *to = m->addr != NULL ? m->addr : w->to;

	memcpy(&h->msg_name, &to, sizeof(h->msg_name));
	h->msg_namelen = m->addr != NULL ? m->addr_len : w->to_len;
}

/* A train: consecutive messages of one call from one address. */
struct np_train {
	char *buf;
	size_t bytes;                /* of all messages; 0: one empty message */
	size_t size;                 /* of each message; the last may be shorter */
	const struct sockaddr *addr; /* source; NULL: not needed */
	socklen_t addr_len;
};

/* The start of np_worker.engine.state, for engines of several datagrams a call. */
struct np_batch {
	/* Send `count` of `out`, from `first` on. Returns how many were sent, or -1. */
	int (*put)(struct np_worker *w, struct np_conn *c, uint32_t first, uint32_t count);
	/* Receive trains into `in`, and set may_be_more. Returns how many trains, or -1. */
	int (*fetch)(struct np_worker *w, struct np_conn *c, int flags);
	uint32_t most_out;          /* messages of a call */
	uint32_t most_in;           /* trains of a call */
	struct np_outgoing *out;    /* most_out, each with a buffer */
	struct np_train *in;        /* most_in */
	uint32_t trains, next;      /* trains of the last receive; the next one to process */
	size_t done;                /* bytes of that one that are processed */
	bool may_be_more;           /* the last receive may have left datagrams in the socket */
	const struct np_conn *conn; /* of the last receive */
};

/* For engines with a struct np_batch. */
extern const struct np_calls np_batch_turns;

/* Receive one at a time? With one request in flight, a duplicate would answer the next request. */
bool np_batch_must_receive_singly(const struct np_plan *p);

/* Why engines with several datagrams per call cannot drive a plan; NULL: they can. */
const char *np_batch_why_not(const struct np_plan *p);

/* Maximum datagrams of that size per send of the engine `segment`. */
uint32_t np_segment_most(const struct np_plan *p, size_t size);

#endif
