#include "bench/engine/engine.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "bench/run.h"

static const struct np_engine *const engines[] = { &np_engine_sync,     &np_engine_epoll,
						   &np_engine_batch,    &np_engine_segment,
						   &np_engine_zerocopy, &np_engine_spin,
						   &np_engine_uring };

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
	/* As sync_why_not() says. */
	return p->ramp > 0 || p->rate > 0 || p->flows > np_plan_workers(p) ? &np_engine_epoll
									   : &np_engine_sync;
}

const char *
np_engine_why_not(const struct np_engine *e, const struct np_plan *p)
{
	const char *why = e->why_not(p);

	return why == NULL && e->lacks != NULL ? e->lacks() : why;
}

void
np_engine_tell(const struct np_engine *e, const char *why, struct np_bag *into)
{
	np_bag_text(into, e->help, "%s.help", e->name);
	if (why != NULL) {
		np_bag_text(into, why, "%s.why", e->name);
	}
}

bool
np_engine_next(const struct np_bag *b, size_t *at, struct np_engine_told *told)
{
	struct np_bag_item it;

	while (np_bag_at(b, (*at)++, &it)) {
		size_t length = strcspn(it.name, ".");

		if (it.kind == NP_BAG_STRING && strcmp(it.name + length, ".help") == 0) {
			char why[NP_BAG_NAME];

			snprintf(told->name, sizeof(told->name), "%.*s", (int)length, it.name);
			snprintf(why, sizeof(why), "%.*s.why", (int)length, it.name);
			told->help = it.text;
			told->why = np_bag_string(b, why);
			return true;
		}
	}
	return false;
}

void
np_engine_put(const struct np_run *run, struct np_bag *into)
{
	static const char *const names[] = {
#define NP_ENGINE_COUNT(name, text) text,
		NP_ENGINE_COUNTS(NP_ENGINE_COUNT)
#undef NP_ENGINE_COUNT
	};

	np_bag_text(into, run->engine->name, "engine.name");
	for (int i = 0; i < NP_E_COUNTS; i++) {
		uint64_t sum = 0;

		NP_EACH_WORKER (w, run) {
			sum += w->engine.count[i];
		}
		if (sum > 0) {
			np_bag_int(into, (int64_t)sum, "engine.%s", names[i]);
		}
	}
	if (run->engine->put != NULL) {
		run->engine->put(run, into);
	}
}
