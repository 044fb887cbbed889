/*
 * Stamps of transactions (--stations): when one in N of them passed the places where this end and
 * Linux look at the clock, which is CLOCK_REALTIME for all of them. Both ends know by its number
 * which one that is. The kernel's are those of SO_TIMESTAMPING (timestamping.rst); those of a send
 * come back by the socket's error queue.
 */
#ifndef NP_BENCH_STAMPS_H
#define NP_BENCH_STAMPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bag.h"
#include "base/err.h"

struct np_conn;
struct np_plan;
struct np_run;
struct np_worker;

/* Where the clock is read. */
enum np_stamp {
	NP_STAMP_SEND,  /* before the call that sends */
	NP_STAMP_QUEUE, /* before the queueing discipline */
	NP_STAMP_GONE,  /* by the driver, when it has given the packet away */
	NP_STAMP_CAME,  /* when the stack has got the packet of the other message */
	NP_STAMP_RECV,  /* behind the call that received it */
	NP_STAMPS
};

/* Of one transaction at one end, in ns; 0: there is none. */
struct np_stamped {
	uint64_t number;
	int64_t at[NP_STAMPS];
};

enum { NP_STAMPS_KEPT = 2048 };

/* An end's account. */
struct np_stamps {
	uint32_t every; /* one in that many has stamps */
	/* The least number that may have some; not 0: the kernel may begin to stamp behind it. */
	uint64_t due;
	uint64_t kept_every; /* of these, the ones that are kept: fewer, the longer it lasts */
	uint64_t next;       /* a responder's: number of the next request */
	bool open;           /* one is under way: */
	struct np_stamped now;
	uint32_t key;  /* what the kernel calls its message */
	uint32_t sent; /* datagrams that were to be stamped */
	/* Bytes before the first message that the kernel counts: of a token that was not
	 * acknowledged when it was asked for stamps. */
	uint32_t ahead;
	/* How many transactions had to have stamps, and how many of each kind there were. */
	uint64_t asked, came[NP_STAMPS];
	size_t count;
	struct np_stamped kept[NP_STAMPS_KEPT];
};

/* Why such a test can't have stamps; NULL: it can. */
const char *np_stamps_why_none(const struct np_plan *p);

/* An empty account, the caller's to free(); NULL: no memory. */
struct np_stamps *np_stamps_new(const struct np_plan *p, struct np_err *err);

/* Ask for stamps at a run's connection, over which no message has gone yet. */
int np_stamps_open(const struct np_run *run, struct np_err *err);

/* Send and receive a message, as sendto(2) and recvfrom(2) do, with stamps if it is to have any. */
ssize_t np_stamps_send(struct np_worker *w, struct np_conn *c, char *buf);
ssize_t np_stamps_recv(struct np_worker *w, struct np_conn *c, char *buf);

/* The rest of a stream's message: its stamps are those of the piece that came last. */
ssize_t np_stamps_recv_rest(struct np_worker *w, struct np_conn *c, char *buf, size_t size);

/* The warm-up is over: forget what was counted. */
void np_stamps_forget(struct np_stamps *s);

/* The loop is over: take what is under way to account. */
void np_stamps_end(struct np_worker *w);

/* A responder's account as stamps.counts (asked, came) and stamps.rows (number, at), and back.
 * False: there is none in the bag. */
void np_stamps_put(const struct np_run *run, struct np_bag *into);
bool np_stamps_get(const struct np_bag *b, struct np_stamps *into);

#endif
