/* Counts a thread's cycles and instructions (perf_event_open(2)), in the kernel too if allowed. */
#ifndef NP_SYS_PERF_H
#define NP_SYS_PERF_H

#include <stdbool.h>
#include <stdint.h>

enum { NP_PERF_EVENTS = 2 };

/* Events of linux/perf_event.h that are counted at the same time. */
struct np_perf_events {
	uint32_t type;
	uint64_t config[NP_PERF_EVENTS];
};

/* Cycles and instructions. */
extern const struct np_perf_events np_perf_processor;

struct np_perf {
	bool is_open, user_only; /* user_only: without the kernel's part */
	int error;               /* errno of opening or reading them; 0: none */
	bool never;              /* other programs used the processor's counters all the time */
	int fd[NP_PERF_EVENTS];
	/* The time asked for, and the time counted; until np_perf_end() those at the beginning. */
	uint64_t enabled_ns, running_ns;
	/* Values at the start; after np_perf_end() the differences, scaled if counted in part. */
	uint64_t value[NP_PERF_EVENTS];
};

/* Open counters for the calling thread. If that fails, `error` says why. */
void np_perf_open(struct np_perf *p, const struct np_perf_events *e);

/* Count from now on. May be called again. */
void np_perf_begin(struct np_perf *p);

/* Set `value` and the times to what was counted since np_perf_begin(). */
void np_perf_end(struct np_perf *p);

/* Close them, in the thread that opened them. May be called twice. The values are kept. */
void np_perf_close(struct np_perf *p);

/* Why there are no values, in words; NULL: there are. */
const char *np_perf_why_not(const struct np_perf *p);

#endif
