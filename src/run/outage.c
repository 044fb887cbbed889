#include "run/outage.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/units.h"
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
	int64_t resent;       /* last.resent, as of the last look */
	bool no_route;        /* this machine could not send since then */
};

struct np_outages {
	const struct np_run *run;
	uint32_t step; /* one flow in this many is looked at */
	struct np_outage longest;
	uint64_t looked_ns;
	bool kernel_tells; /* what was acknowledged */
	struct flow flow[MOST];
};

struct np_outages *
np_outages_new(const struct np_run *run)
{
	const struct np_plan *p = run->plan;
	bool paced = p->pattern->offers ? p->near.call.offered > 0 : p->rate > 0;
	/* Over connections that last all the test and report progress. */
	bool wanted = p->transport->acked != NULL && !p->pattern->connection_test &&
		      p->role == NP_LEAD && p->ramp == 0 && paced;
	struct np_outages *o = wanted ? calloc(1, sizeof(*o)) : NULL;

	if (o != NULL) {
		o->run = run;
		o->step = (run->conns + MOST - 1) / MOST;
	}
	return o;
}

/* The end of an outage that is over now: the last look, if this end stood still since. */
static uint64_t
outage_end(const struct np_outages *o, uint64_t now_ns)
{
	return np_excess(now_ns, o->looked_ns) > STOOD_MS * NP_MSEC ? o->looked_ns : now_ns;
}

/* A flow's time without progress ends: keep it if it was an outage, and the longest so far. */
static void
note_outage(struct np_outages *o, uint32_t flow, uint64_t until_ns)
{
	const uint64_t between = NP_OUTAGE_MS * NP_MSEC; /* the progress may be that old */
	const struct flow *f = &o->flow[flow / o->step];
	uint64_t lasted_ns = np_excess(until_ns, f->progress_ns + f->stalled_ns);

	if (f->progress_ns > 0 && (f->no_route || f->resent > f->last.resent) &&
	    lasted_ns > between + o->longest.ns) {
		o->longest =
		    (struct np_outage){ .ns = lasted_ns - between,
					.at_ns = f->progress_ns - o->run->window.started_ns,
					.flow = flow };
	}
}

void
np_outages_look(void *outages, const struct np_run *run, uint64_t due_ns, uint64_t now_ns)
{
	struct np_outages *o = outages;
	uint64_t until_ns = outage_end(o, now_ns);

	o->looked_ns = now_ns;
	for (uint32_t i = 0; i < run->conns; i += o->step) {
		struct flow *f = &o->flow[i / o->step];
		struct np_acked seen;

		if (!run->plan->transport->acked(run->conn[i].fd, &seen)) {
			continue;
		}
		o->kernel_tells = true;
		f->resent = seen.resent;
		if (f->progress_ns > 0 && seen.waits && seen.bytes == f->last.bytes) {
			/* Held for longer than by pacing, and nothing was sent again. */
			f->no_route |=
			    seen.held && seen.resent == f->last.resent &&
			    until_ns - f->progress_ns - f->stalled_ns > HELD_MS * NP_MSEC;
			f->stalled_ns += now_ns - until_ns; /* 0 unless it stood still */
			continue;
		}
		if (seen.bytes != f->last.bytes) { /* else it had nothing to wait for */
			note_outage(o, i, until_ns);
		}
		*f = (struct flow){ .last = seen, .progress_ns = now_ns, .resent = seen.resent };
	}
}

void
np_outages_put(struct np_outages *o, struct np_bag *into)
{
	if (o == NULL || !o->kernel_tells) {
		return;
	}
	for (uint32_t i = 0; i < o->run->conns; i += o->step) { /* some are not over */
		note_outage(o, i, outage_end(o, o->run->window.ended_ns));
	}
	np_bag_real(into, (double)o->longest.ns / 1e3, "flow.outage_us");
	np_bag_real(into, (double)o->longest.at_ns / 1e9, "flow.outage_begin_s");
	np_bag_int(into, o->longest.flow, "flow.outage_flow");
}
