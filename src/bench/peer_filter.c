/* Which datagrams are accepted, by their source, where the kernel does not filter them. */
#include <errno.h>

#include "bench/engine/engine.h"
#include "bench/run.h"

int
np_run_check_sources(struct np_run *run, struct np_err *err)
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

bool
np_run_accepts_from(const struct np_run *run, const struct np_addr *from)
{
	return run->end.sources.count == 0 || np_sources_have(&run->end.sources, from);
}

void
np_run_drop_early(const struct np_run *run)
{
	for (uint32_t i = 0; i < run->conns; i++) {
		if (run->plan->transport->admit == NP_ADMIT_IP && /* open to other hosts */
		    !run->plan->transport->connected && run->conn[i].fd >= 0) {
			np_sock_forget(run->conn[i].fd);
		}
	}
}
