#include "bench/engine/engine.h"

#include <string.h>
#include <strings.h>

#include "bench/plan.h"

/* The first one is the usual one of a single connection, the second of many. */
static const struct np_engine engines[] = {
	{ .name = "sync", .help = "calls that block, one connection a worker" },
};

enum { SYNC, EPOLL };

const struct np_engine *
np_engine_at(size_t i)
{
	return i < sizeof(engines) / sizeof(engines[0]) ? &engines[i] : NULL;
}

const struct np_engine *
np_engine_find(const char *name)
{
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		if (strcasecmp(engines[i].name, name) == 0) {
			return &engines[i];
		}
	}
	return NULL;
}

const struct np_engine *
np_engine_of(const struct np_plan *p)
{
	if (p->near.engine != NULL) {
		return p->near.engine;
	}
	return &engines[SYNC];
}
