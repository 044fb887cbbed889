/*
 * Ways into the kernel that carry several messages a call. A worker of one connection blocks in
 * them (np_calls_drive()), one of many waits for events (the engine `epoll`); both take a
 * connection through them by turns: all messages of a call, each with its step.
 */
#ifndef NP_BENCH_ENGINE_CALLS_H
#define NP_BENCH_ENGINE_CALLS_H

#include <string.h>
#include <sys/socket.h>

#include "bench/worker.h"

struct np_calls {
	/*
	 * One call that sends what the connection needs to send, or that receives what is there,
	 * and the steps of all its messages. What is needed next, with NP_BLOCKED where the kernel
	 * has no more at the moment.
	 */
	enum np_need (*send)(struct np_worker *w, struct np_conn *c);
	enum np_need (*recv)(struct np_worker *w, struct np_conn *c);
	/* np_io_left(). */
	ssize_t (*left)(struct np_worker *w, struct np_conn *c, char **buf);
	/* Read one message of its error queue. False: there is none. NULL: they mean nothing. */
	bool (*take_back)(struct np_worker *w, struct np_conn *c);
};

/* The loop of one connection, with blocking calls. */
int np_calls_drive(struct np_worker *w);

/* A message that a call is to send, and where to; NULL: where it always goes. */
struct np_outgoing {
	char *buf;
	const struct sockaddr *addr;
	socklen_t addr_len;
};

/* Put the message's destination into a header; the kernel only reads it. */
static inline void
np_message_to(struct msghdr *h, const struct np_outgoing *m, const struct np_worker *w)
{
	const struct sockaddr *to = m->addr != NULL ? m->addr : w->to;

	memcpy(&h->msg_name, &to, sizeof(h->msg_name));
	h->msg_namelen = m->addr != NULL ? m->addr_len : w->to_len;
}

/* A train: messages that a call has received, which lie in a row and came from one address. */
struct np_train {
	char *buf;
	size_t bytes;                /* of all of them; 0: it is one, and empty */
	size_t size;                 /* of each, of which the last may be shorter */
	const struct sockaddr *addr; /* where they came from; NULL: not needed */
	socklen_t addr_len;
};

/* What differs between those that carry several datagrams. */
struct np_batch_calls {
	/* Send `count` of `out`, beginning with `first`. How many have left, or -1. */
	int (*put)(struct np_worker *w, struct np_conn *c, uint32_t first, uint32_t count);
	/*
	 * Receive trains into `in`, without blocking if `flags` are MSG_DONTWAIT, and say in
	 * `may_be_more` whether a look at the socket is worth a call. How many came, or -1.
	 */
	int (*fetch)(struct np_worker *w, struct np_conn *c, int flags);
};

/* What np_worker.engine_own begins with, where its engine carries several datagrams a call. */
struct np_batch {
	const struct np_batch_calls *calls;
	uint32_t most_out;       /* messages of a call */
	uint32_t most_in;        /* trains of a call */
	struct np_outgoing *out; /* most_out, each with a buffer */
	struct np_train *in;     /* most_in */
	uint32_t came, next;     /* trains of the last call, and the next one of them */
	size_t done;             /* bytes of that one which have had their step */
	bool may_be_more;
	const struct np_conn *of; /* their connection */
};

/* The turns of datagrams, by the worker's np_batch. */
extern const struct np_calls np_batch_turns;

/*
 * Does a message wait until another one has been sent? What comes behind a response to the only
 * request in flight is none to the next one, which is not sent yet: it has to stay in the socket.
 */
bool np_batch_receives_one(const struct np_plan *p);

/* Why engines of several datagrams a call can't drive a plan; NULL: they can. */
const char *np_batch_why_not(const struct np_plan *p);

/* The most datagrams of that size that a call of the engine `segment` sends. */
uint32_t np_segment_most(const struct np_plan *p, size_t size);

#endif
