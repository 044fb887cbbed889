/*
 * Engines: how bytes cross into the kernel, for one worker. `sync` blocks in the calls of one
 * connection; the others drive many connections by events.
 */
#ifndef NP_BENCH_ENGINE_ENGINE_H
#define NP_BENCH_ENGINE_ENGINE_H

#include <stddef.h>

struct np_plan;
struct np_worker;

struct np_engine {
	const char *name; /* what --engine takes */
	const char *help; /* for --engine list */
	/* Why this engine can't drive an end of that plan; NULL: it can. */
	const char *(*why_not)(const struct np_plan *p);
	/*
	 * Drive the worker's connections until it is stopped or all of them are over. Returns 0 or
	 * -errno. NULL: the side's own loop does (sync).
	 */
	int (*run)(struct np_worker *w);
};

extern const struct np_engine np_engine_sync, np_engine_epoll;

/* The engine of that name, or NULL. */
const struct np_engine *np_engine_find(const char *name);

/* Row i of the table, NULL behind the last. */
const struct np_engine *np_engine_at(size_t i);

/* What drives the near end of a plan: the engine it names, else the usual one for its flows. */
const struct np_engine *np_engine_of(const struct np_plan *p);

#endif
