/*
 * What a processor counts for one thread: cycles and instructions, by perf_event_open(2). Where
 * there is more than one way they are of user and kernel, else of the user's part alone.
 */
#ifndef NP_SYS_PERF_H
#define NP_SYS_PERF_H

#include <stdbool.h>
#include <stdint.h>

enum { NP_PERF_EVENTS = 2 };

/* Which events, linux/perf_event.h: they are on the processor together, or none of them is. */
struct np_perf_events {
	uint32_t type;
	uint64_t config[NP_PERF_EVENTS];
};

/* Cycles and instructions. */
extern const struct np_perf_events np_perf_processor;

struct np_perf {
	bool is_open, user_only;
	int error;  /* errno why it is not open; 0: it is, or was not asked for */
	bool never; /* others had the processor's counters all the time */
	int fd[NP_PERF_EVENTS];
	uint64_t enabled_ns, running_ns; /* the time asked for, and had */
	/* Until np_perf_end() what they stood at, then the differences, scaled where others had the
	 * counters for a part of the time. */
	uint64_t value[NP_PERF_EVENTS];
};

/* Have them counted for the calling thread. Where that can't be, `error` says why. */
void np_perf_open(struct np_perf *p, const struct np_perf_events *e);

/* From now on; also again. */
void np_perf_begin(struct np_perf *p);

/* Until now. */
void np_perf_end(struct np_perf *p);

/* In the thread that opened it. Safe where it is not open, and twice. The values stay. */
void np_perf_close(struct np_perf *p);

/* Why there are no values, in words; NULL: there are. */
const char *np_perf_why_not(const struct np_perf *p);

#endif
