/*
 * Time stamps of one in N transactions (--stations): when it passed several places in this program
 * and in the kernel (SO_TIMESTAMPING, see timestamping.rst), all by CLOCK_REALTIME. Both ends
 * choose the same transactions by number. Stamps of a send come back by the socket's error queue.
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
	NP_STAMP_GONE,  /* in the driver, when it passes the packet to the device */
	NP_STAMP_CAME,  /* when the network stack has received the packet of the other message */
	NP_STAMP_RECV,  /* after the call that received it */
	NP_STAMPS
};

/* The stamps of one transaction at one end, in ns; 0: there is none. */
struct np_stamped {
	uint64_t number;
	int64_t at[NP_STAMPS];
};

enum { NP_STAMPS_KEPT = 2048 };

/* All stamps of an end. */
struct np_stamps {
	uint32_t every;      /* one in that many has stamps */
	uint64_t due;        /* least number to stamp; not 0: the kernel may not stamp yet */
	uint64_t kept_every; /* one in that many is kept: fewer in a long test */
	uint64_t next;       /* a responder's: number of the next request */
	bool in_progress;    /* a transaction with stamps: `current` */
	struct np_stamped current;
	uint32_t key;   /* by which the kernel identifies its message */
	uint32_t sent;  /* datagrams with stamps so far */
	uint32_t ahead; /* bytes of an unacknowledged token, which the kernel counts in `key` */
	union {
		/* How many transactions should have stamps, and how many of each kind arrived. */
		struct {
			uint64_t asked, came[NP_STAMPS];
		};
		int64_t counts[1 + NP_STAMPS]; /* the same, for a bag */
	};
	size_t count;
	struct np_stamped kept[NP_STAMPS_KEPT];
};

/* Why this test can't have stamps; NULL: it can. */
const char *np_stamps_why_none(const struct np_plan *p);

/* With --stations, prepare the worker to stamp some of its transactions. NP_ESYS: no memory. */
int np_stamps_make(struct np_worker *w, struct np_err *err);

/* Enable stamps on the connection of a run, before the first message. */
int np_stamps_open(const struct np_run *run, struct np_err *err);

/* As sendto(2) and recvfrom(2) for a message, with stamps if it should have any. */
ssize_t np_stamps_send(struct np_worker *w, struct np_conn *c, char *buf);
ssize_t np_stamps_recv(struct np_worker *w, struct np_conn *c, char *buf);

/* Receive the rest of a stream's message; the stamps of its last piece count. */
ssize_t np_stamps_recv_rest(struct np_worker *w, struct np_conn *c, char *buf, size_t size);

/* The warm-up is over: forget what was counted. A transaction in progress counts. */
void np_stamps_forget(struct np_stamps *s);

/* The loop is over: finish the transaction that is in progress. */
void np_stamps_end(struct np_worker *w);

/* Put a responder's stamps into a bag: stamps.counts, stamps.rows. */
void np_stamps_put(const struct np_run *run, struct np_bag *into);

/* Read them from a bag. False: it has none. */
bool np_stamps_get(const struct np_bag *b, struct np_stamps *into);

#endif
