/* Engines make a worker's system calls. `sync` blocks on one connection, others drive many. */
#ifndef NP_BENCH_ENGINE_ENGINE_H
#define NP_BENCH_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bag.h"
#include "base/err.h"

struct np_calls;
struct np_plan;
struct np_run;
struct np_sockopts;
struct np_worker;

/* Counters that prove what an engine did: engine.NAME in doc/evidence.md, unless 0. */
#define NP_ENGINE_COUNTS(X)                                                                        \
	X(SEND_CALLS, "send_calls")         /* system calls that sent */                           \
	X(SENT, "messages_sent")            /* messages in them */                                 \
	X(RECEIVE_CALLS, "receive_calls")   /* system calls that received */                       \
	X(RECEIVED, "messages_received")    /* messages in them */                                 \
	X(BLOCKED, "empty_calls")           /* calls for which the kernel was not ready */         \
	X(CUT, "segmented_sends")           /* SEND_CALLS of a block for the kernel to cut */      \
	X(JOINED, "joined_receives")        /* RECEIVE_CALLS of several that the kernel joined */  \
	X(BORROWED, "zerocopy_sends")       /* sends without a copy */                             \
	X(RELEASED, "zerocopy_completions") /* BORROWED sends that the kernel is done with */      \
	X(COPIED, "zerocopy_copied")        /* RELEASED sends that it copied after all */          \
	X(REFUSED, "zerocopy_refused")      /* sends copied for want of memory (ENOBUFS) */        \
	X(RELEASE_WAITS, "zerocopy_waits")  /* times that no buffer was free */                    \
	X(TRUNCATED, "bytes_truncated")     /* bytes received that were never copied */            \
	X(SUBMISSIONS, "submissions")       /* calls that submitted requests, and waited */        \
	X(COMPLETIONS, "completions")       /* completions of requests that they brought */

enum np_engine_count {
#define NP_ENGINE_COUNT(name, text) NP_E_##name,
	NP_ENGINE_COUNTS(NP_ENGINE_COUNT)
#undef NP_ENGINE_COUNT
	    NP_E_COUNTS
};

/* Memory in parts. `at` NULL: only add up sizes, so that one function computes and lays out. */
struct np_room {
	char *at;
	size_t used; /* bytes taken so far */
};

/* The next part: `count` times `size` bytes, aligned. NULL without memory. */
void *np_room_take(struct np_room *room, size_t count, size_t size);

struct np_engine {
	const char *name; /* for --engine */
	const char *help; /* for --engine list */
	bool spins;       /* sleeps only when idle at a passive end: one CPU per thread */
	bool compares;    /* can compare sources of datagrams (NP_C_COMPARE) */
	/* Why it cannot drive the near end of that plan, as text for a message; NULL: it can. */
	const char *(*why_not)(const struct np_plan *p);
	/* What this machine lacks, found by trying, as text; NULL: nothing. May be NULL. */
	const char *(*lacks)(void);
	/* Append socket options. May be NULL. */
	void (*options)(const struct np_plan *p, struct np_sockopts *o);
	/* Minimum number of buffers in the rings of a worker; NULL: 1. */
	uint32_t (*width)(const struct np_plan *p);
	/* How many more workers this process can have; NULL: no limit. */
	uint32_t (*most)(void);
	/* Bytes of w->engine.state, for each worker; NULL: none. */
	uint64_t (*bytes)(const struct np_plan *p);
	/*
	 * After the setup of the side: lay out that memory, which is zeroed, and open what else a
	 * worker needs. close releases the latter, also after open failed. May be NULL.
	 */
	int (*open)(struct np_worker *w, struct np_err *err);
	void (*close)(struct np_worker *w);
	/* The warm-up is over (np_worker_forget()). May be NULL. */
	void (*mark)(struct np_worker *w);
	/* After the finish of the side: wait for the kernel to release memory. May be NULL. */
	void (*finish)(struct np_worker *w);
	/* After the kernel's figures, before the close: take all buffers back. May be NULL. */
	void (*take_all_back)(struct np_worker *w);
	/* Its error queues are used for releases of buffers: POLLERR is no error. */
	bool borrows;
	/* Several messages per call (engine/calls.h). NULL: one message per call, by `run`. */
	const struct np_calls *calls;
	/*
	 * Drive the connections until stopped or all are done, without blocking in one of them.
	 * Returns 0 or -errno. NULL: `calls`, or the loop of the side (sync).
	 */
	int (*run)(struct np_worker *w);
	/* Put more into the evidence, when the workers are done. May be NULL. */
	void (*put)(const struct np_run *run, struct np_bag *into);
};

extern const struct np_engine np_engine_sync, np_engine_epoll, np_engine_batch, np_engine_segment;
extern const struct np_engine np_engine_zerocopy, np_engine_spin, np_engine_uring;

/* The engine of that name, or NULL. */
const struct np_engine *np_engine_find(const char *name);

/* Row i of the table, NULL after the last. */
const struct np_engine *np_engine_at(size_t i);

/* The near end's engine: --engine, else `sync`, or `epoll` if that can't. In a run: run->engine. */
const struct np_engine *np_engine_of(const struct np_plan *p);

/* Why it cannot drive the near end of that plan on this machine; NULL: it can. */
const char *np_engine_why_not(const struct np_engine *e, const struct np_plan *p);

/* For --engine list: put NAME.help, and NAME.why if the engine can't be used (why not NULL). */
void np_engine_tell(const struct np_engine *e, const char *why, struct np_bag *into);

/* An engine of such a list. The texts are valid as long as the bag. */
struct np_engine_told {
	char name[NP_BAG_NAME];
	const char *help, *why; /* why NULL: available */
};

/* The next engine from value number *at of the bag on, which moves behind it. False: none. */
bool np_engine_next(const struct np_bag *b, size_t *at, struct np_engine_told *told);

/* Does it drive this end by blocking calls, which a signal has to interrupt at a stop? */
bool np_engine_blocks(const struct np_engine *e, const struct np_plan *p);

/* Put the name of the engine and the sums of its workers' counters into the evidence. */
void np_engine_put(const struct np_run *run, struct np_bag *into);

#endif
