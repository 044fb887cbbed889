/* The engine `sync` (each side has its own copy of the loop, by sync.h), and helpers of engines. */
#include <stddef.h>

#include "bench/engine/engine.h"
#include "bench/plan.h"

/* np_engine.why_not: the plans that need an engine of events. */
static const char *
sync_why_not(const struct np_plan *p)
{
	if (p->ramp > 0) {
		return "it waits for each connection in turn";
	}
	if (p->rate > 0) {
		return "it waits for answers before it sends, and --rate does not";
	}
	return p->flows > np_plan_workers(p) ? "it drives one connection for each worker" : NULL;
}

const struct np_engine np_engine_sync = {
	.name = "sync",
	.help = "blocks in calls; one connection for each worker",
	.compares = true,
	.why_not = sync_why_not,
};

bool
np_engine_blocks(const struct np_engine *e, const struct np_plan *p)
{
	/* With `calls`, np_calls_drive() blocks in those of one connection, as `sync` does. */
	return e->calls != NULL ? sync_why_not(p) == NULL : e->run == NULL;
}

void *
np_room_take(struct np_room *room, size_t count, size_t size)
{
	size_t begin = (room->used + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);

	room->used = begin + count * size;
	return room->at != NULL ? room->at + begin : NULL;
}
