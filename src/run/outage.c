#include "run/outage.h"

#include <stdlib.h>

#include "base/clock.h"
#include "bench/open.h"

enum {
	MOST = 64,      /* flows that are looked at, evenly chosen */
	STOOD_MS = 100, /* if the last look was that long ago, this end stood still */
	HELD_MS = 20    /* longer than pacing ever holds data: there is no route */
};

struct flow {
	struct np_acked last;
	uint64_t progress_ns; /* when it last made progress, or had nothing to wait for */
	uint64_t stalled_ns;  /* this process stood still for that long since then */
	bool no_route;        /* this machine could not send since then */
};

struct np_outages {
	struct np_outage longest;
	uint64_t looked_ns;
	bool kernel_tells; /* what was acknowledged */
	struct flow flow[MOST];
};

static bool
is_wanted(const struct np_plan *p)
{
	bool paced = p->pattern->offers ? p->near.call.offered > 0 : p->rate > 0;

	return p->transport->acked != NULL && !p->pattern->connection_test && p->role == NP_LEAD &&
	       p->ramp == 0 && paced;
}

struct np_outages *
np_outages_new(const struct np_run *run)
{
	return is_wanted(run->plan) ? calloc(1, sizeof(struct np_outages)) : NULL;
}

void
np_outages_look(void *outages, const struct np_run *run, uint64_t due_ns, uint64_t now_ns)
{
	struct np_outages *o = outages;
	const uint64_t between = NP_OUTAGE_MS * NP_MSEC; /* the progress may be that old */
	uint32_t step = (run->conns + MOST - 1) / MOST;
	/* When an outage may have ended: earlier, if this end has not looked for a while. */
	uint64_t until_ns = now_ns - o->looked_ns > STOOD_MS * NP_MSEC ? o->looked_ns : now_ns;

	o->looked_ns = now_ns;
	for (uint32_t i = 0; i < run->conns; i += step) {
		struct flow *f = &o->flow[i / step];
		uint64_t lasted_ns = until_ns - f->progress_ns - f->stalled_ns;
		struct np_acked seen;

		if (!run->plan->transport->acked(run->conn[i].fd, &seen)) {
			continue;
		}
		o->kernel_tells = true;
		if (f->progress_ns > 0 && seen.waits && seen.bytes == f->last.bytes) {
			f->no_route |= seen.held && seen.resent == f->last.resent &&
				       lasted_ns > HELD_MS * NP_MSEC;
			f->stalled_ns += now_ns - until_ns;
			continue;
		}
		if (f->progress_ns > 0 && seen.bytes != f->last.bytes &&
		    (f->no_route || seen.resent > f->last.resent) &&
		    lasted_ns > between + o->longest.ns) {
			o->longest =
			    (struct np_outage){ .ns = lasted_ns - between,
						.at_ns = f->progress_ns - run->window.started_ns,
						.flow = i };
		}
		*f = (struct flow){ .last = seen, .progress_ns = now_ns };
	}
}

void
np_outages_put(const struct np_outages *o, struct np_bag *into)
{
	if (o != NULL && o->kernel_tells) {
		np_bag_real(into, (double)o->longest.ns / 1e3, "flow.outage_us");
		np_bag_real(into, (double)o->longest.at_ns / 1e9, "flow.outage_begin_s");
		np_bag_int(into, o->longest.flow, "flow.outage_flow");
	}
}
