/*
 * Engines: how bytes cross into the kernel, for one worker. `sync` blocks in the calls of one
 * connection; the others drive many connections by events.
 */
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

/*
 * What an engine counts beside what the test counts: the proof that its way was taken. Each is a
 * value engine.NAME of the evidence (doc/evidence.md), put where it is not 0.
 */
#define NP_ENGINE_COUNTS(X)                                                                        \
	X(SEND_CALLS, "send_calls")         /* system calls that sent */                           \
	X(SENT, "messages_sent")            /* messages in them */                                 \
	X(RECEIVE_CALLS, "receive_calls")   /* system calls that received */                       \
	X(RECEIVED, "messages_received")    /* messages in them */                                 \
	X(BLOCKED, "empty_calls")           /* calls for which the kernel was not ready */         \
	X(CUT, "segmented_sends")           /* of the first, those that the kernel cuts */         \
	X(JOINED, "joined_receives")        /* of the third, those of several that it joined */    \
	X(BORROWED, "zerocopy_sends")       /* sends without a copy */                             \
	X(RELEASED, "zerocopy_completions") /* those of them that the kernel is done with */       \
	X(COPIED, "zerocopy_copied")        /* those of these that it copied after all */          \
	X(REFUSED, "zerocopy_refused")      /* sends that the kernel would only copy */            \
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

/*
 * Memory that is laid out in parts, one behind the other. Without memory, `at` NULL, only their
 * size is added up: so the function that lays them out also tells their size.
 */
struct np_room {
	char *at;
	size_t used;
};

/* The next part: `count` times `size` bytes, aligned for anything. NULL without memory. */
void *np_room_take(struct np_room *room, size_t count, size_t size);

struct np_engine {
	const char *name; /* what --engine takes */
	const char *help; /* for --engine list */
	bool spins;       /* its threads never sleep: each takes a processor */
	bool compares;    /* it can look at where a datagram comes from (NP_C_COMPARE) */
	/* Why this engine can't drive an end of that plan; NULL: it can. */
	const char *(*why_not)(const struct np_plan *p);
	/* What this machine lacks for it, found by trying; NULL: nothing. NULL: it needs nothing.
	 */
	const char *(*lacks)(void);
	/* Append the socket options that it needs. May be NULL. */
	void (*options)(const struct np_plan *p, struct np_sockopts *o);
	/* The least width of the rings of that end; NULL: 1. */
	uint32_t (*width)(const struct np_plan *p);
	/* The most workers that a run of this process can have; NULL: any number. */
	uint32_t (*most)(void);
	/* Bytes of memory that a worker takes beside its rings, w->engine_own; NULL: none. */
	uint64_t (*bytes)(const struct np_plan *p);
	/*
	 * Lay out that memory, which is zeroed, and take what else a worker needs, when the side's
	 * setup is done. Close gives the latter back: safe where there is none. NULL.
	 */
	int (*open)(struct np_worker *w, struct np_err *err);
	void (*close)(struct np_worker *w);
	/* The warm-up is over: np_worker_mark(). NULL: nothing to do. */
	void (*mark)(struct np_worker *w);
	/* Behind the side's finish: nothing is to be left in the kernel. NULL: nothing is. */
	void (*finish)(struct np_worker *w);
	/* Its sockets' error queues have news all the time: POLLERR means nothing. */
	bool borrows;
	/*
	 * How messages cross, several a call: calls of one connection block, and many wait for
	 * events. NULL: one message a call, by `run`.
	 */
	const struct np_calls *calls;
	/*
	 * Drive the worker's connections until it is stopped or all of them are over, without
	 * blocking in the calls of one. Returns 0 or -errno. NULL: `calls`, or the side's own loop
	 * (sync).
	 */
	int (*run)(struct np_worker *w);
	/* What else it has to say for the evidence, when the workers are done. May be NULL. */
	void (*put)(const struct np_run *run, struct np_bag *into);
};

extern const struct np_engine np_engine_sync, np_engine_epoll, np_engine_batch, np_engine_segment;
extern const struct np_engine np_engine_zerocopy, np_engine_spin, np_engine_uring;

/* The engine of that name, or NULL. */
const struct np_engine *np_engine_find(const char *name);

/* Row i of the table, NULL behind the last. */
const struct np_engine *np_engine_at(size_t i);

/* What drives the near end of a plan: the engine it names, else the usual one for its flows. */
const struct np_engine *np_engine_of(const struct np_plan *p);

/* Why it can't drive that end on this machine; NULL: it can. */
const char *np_engine_why_not(const struct np_engine *e, const struct np_plan *p);

/*
 * Put down that there is this engine, as NAME.help, and why it can't be had, as NAME.why; NULL: it
 * can. So the ends of a test tell each other of theirs.
 */
void np_engine_tell(const struct np_engine *e, const char *why, struct np_bag *into);

/* What the far end reports of one engine. The texts are valid as long as the bag is. */
struct np_engine_told {
	char name[NP_BAG_NAME];
	const char *help, *why; /* why NULL: it can be had */
};

/* The next one at or behind value *at of the bag; false: there is no more. */
bool np_engine_next(const struct np_bag *b, size_t *at, struct np_engine_told *told);

/* Do its calls block, so that a signal has to end them? */
bool np_engine_blocks(const struct np_engine *e, const struct np_plan *p);

/* Put the engine's name and what the workers' counted into the evidence. */
void np_engine_put(const struct np_run *run, struct np_bag *into);

#endif
