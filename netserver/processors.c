#include "netserver/processors.h"

#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "sys/cpu.h"

enum { SHARED_S = 60 }; /* how long addresses that had tests at once count as sharing processors */

static const uint64_t slice_ns[] = {
	[NS_SLICE_USUAL] = 0,
	[NS_SLICE_SHORT] = 100000,  /* the shortest that there is */
	[NS_SLICE_LONG] = 20000000, /* several ticks of any usual kernel (4 ms at 250 Hz) */
};

/* struct sched_attr of sched_setattr(2), which not every libc has. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

void
ns_processors_set_slice(pid_t pid, enum ns_slice slice)
{
	struct attributes a;

	memset(&a, 0, sizeof(a));
	/* Other policies are the operator's choice. An older kernel ignores the slice. */
	if (syscall(SYS_sched_getattr, pid, &a, sizeof(a), 0) == 0 && a.policy == SCHED_OTHER) {
		a.runtime_ns = slice_ns[slice];
		(void)syscall(SYS_sched_setattr, pid, &a, 0);
	}
}

void
ns_processors_share(struct ns_daemon *d, const struct np_addr *peer, const struct ns_session *test)
{
	uint32_t cpus = np_cpus_usable();
	int own_nice = ns_guard_nice(d->sessions, peer, cpus), base = getpriority(PRIO_PROCESS, 0);
	uint64_t now = np_now();

	if (test != NULL) { /* more than NS_NICE: more threads than there are processors */
		ns_processors_set_slice(test->pid,
					own_nice > NS_NICE ? NS_SLICE_LONG : NS_SLICE_USUAL);
	}
	if (ns_guard_shared(d->sessions, peer)) {
		d->shared_ns = now + SHARED_S * NP_SEC;
	}
	for (struct ns_session *s = d->sessions; s != NULL && now < d->shared_ns; s = s->next) {
		bool is_own = ns_same_owner(&s->peer, peer);
		int nice;

		if (s->holds[NP_RES_THREADS] == 0 || (!is_own && s->nice > 0)) {
			continue; /* those of other addresses are lowered once */
		}
		nice = is_own ? own_nice : ns_guard_nice(d->sessions, &s->peer, cpus);
		if (nice > s->nice && setpriority(PRIO_PGRP, (id_t)s->pid, base + nice) == 0) {
			s->nice = nice; /* of all its threads */
		}
	}
}
