#include "bench/engine/engine.h"

#include <strings.h>

#include "bench/plan.h"

/* The first one is the usual one of a single connection a worker, the second of many. */
static const struct np_engine *const engines[] = { &np_engine_sync, &np_engine_epoll };

enum { SYNC, EPOLL };

static const char *
sync_why_not(const struct np_plan *p)
{
	if (p->ramp > 0) {
		return "it waits for each connection in turn";
	}
	return p->flows > np_plan_workers(p) ? "it drives one connection a worker" : NULL;
}

/* Each side brings a copy of its loop, engine/sync.h. */
const struct np_engine np_engine_sync = {
	.name = "sync",
	.help = "blocks in the calls of one connection a worker",
	.why_not = sync_why_not,
};

const struct np_engine *
np_engine_at(size_t i)
{
	return i < sizeof(engines) / sizeof(engines[0]) ? engines[i] : NULL;
}

const struct np_engine *
np_engine_find(const char *name)
{
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		if (strcasecmp(engines[i]->name, name) == 0) {
			return engines[i];
		}
	}
	return NULL;
}

const struct np_engine *
np_engine_of(const struct np_plan *p)
{
	if (p->near.place.engine != NULL) {
		return p->near.place.engine;
	}
	return engines[p->ramp > 0 || p->flows > np_plan_workers(p) ? EPOLL : SYNC];
}
