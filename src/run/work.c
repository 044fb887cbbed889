#include "run/work.h"

#include <string.h>

struct work {
	int threads; /* that told */
	int error;   /* why one did not, errno */
	int64_t user_us, system_us, voluntary, involuntary;
};

static void
put_times(const struct work *sum, struct np_bag *into)
{
	if (sum->threads == 0) {
		return;
	}
	if (sum->error != 0) {
		np_bag_unread(into, strerror(sum->error), "work.user_s");
		return;
	}
	np_bag_int(into, sum->threads, "work.threads");
	np_bag_real(into, (double)sum->user_us / 1e6, "work.user_s");
	np_bag_real(into, (double)sum->system_us / 1e6, "work.system_s");
	np_bag_int(into, sum->voluntary, "work.switches_voluntary");
	np_bag_int(into, sum->involuntary, "work.switches_involuntary");
}

/* A sum without one of the workers would be wrong. */
static void
put_counters(const struct np_run *run, struct np_bag *into)
{
	uint64_t sum[NP_PERF_EVENTS] = { 0 }, enabled_ns = 0, running_ns = 0;
	bool user_only = false;

	NP_EACH_WORKER (w, run) {
		const struct np_perf *p = &w->use.perf;
		const char *why = np_perf_why_not(p);

		if (why != NULL) {
			np_bag_unread(into, why, "work.cycles");
			np_bag_unread(into, why, "work.instructions");
			return;
		}
		for (int i = 0; i < NP_PERF_EVENTS; i++) {
			sum[i] += p->value[i];
		}
		enabled_ns += p->enabled_ns;
		running_ns += p->running_ns;
		user_only = user_only || p->user_only;
	}
	np_bag_int(into, (int64_t)sum[0], "work.cycles");
	np_bag_int(into, (int64_t)sum[1], "work.instructions");
	np_bag_text(into, user_only ? "user" : "user and kernel", "work.counted");
	if (running_ns < enabled_ns) {
		np_bag_real(into, (double)running_ns / (double)enabled_ns, "work.counted_share");
	}
}

void
np_work_put(const struct np_run *run, struct np_bag *into)
{
	struct work sum = { .threads = 0 };

	NP_EACH_WORKER (w, run) {
		const struct np_thread_use *u = &w->use;

		if (u->ended_ns == 0) {
			continue; /* its loop never began */
		}
		sum.threads++;
		sum.error = u->error != 0 ? u->error : sum.error;
		sum.user_us += u->user_us;
		sum.system_us += u->system_us;
		sum.voluntary += u->voluntary;
		sum.involuntary += u->involuntary;
	}
	put_times(&sum, into);
	if (sum.threads > 0 && run->worker->use.counts != NULL) {
		put_counters(run, into);
	}
}
