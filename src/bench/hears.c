/*
 * Which datagrams count, by their source (run.h).
 */
#include <errno.h>

#include "bench/engine/engine.h"
#include "bench/run.h"

int
np_run_compare(struct np_run *run, struct np_err *err)
{
	if (!run->engine->compares) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP,
			       "the engine %s cannot tell where datagrams come from",
			       run->engine->name);
	}
	NP_EACH_WORKER (w, run) {
		w->codec |= NP_C_COMPARE;
	}
	return NP_OK;
}

void
np_run_compare_none(struct np_run *run)
{
	run->end.hears.count = 0;
	NP_EACH_WORKER (w, run) {
		w->codec &= ~(unsigned)NP_C_COMPARE;
	}
}

bool
np_run_hears(const struct np_run *run, const struct np_addr *from)
{
	return run->end.hears.count == 0 || np_sources_have(&run->end.hears, from);
}

void
np_run_hear_afresh(const struct np_run *run)
{
	for (uint32_t i = 0; i < run->conns; i++) {
		if (run->plan->transport->admit == NP_ADMIT_IP &&
		    !run->plan->transport->connected && run->conn[i].fd >= 0) {
			np_sock_forget(run->conn[i].fd);
		}
	}
}
