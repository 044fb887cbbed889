/*
 * How busy the machine's processors were, from /proc/stat (proc_stat(5)), as netperf computes it:
 * the share of a processor is 100 minus its idle share of all ten counters (waiting for I/O counts
 * as busy); a figure of the machine is the mean over its processors, so 0 to 100 whatever their
 * number.
 */
#ifndef NP_SYS_CPU_H
#define NP_SYS_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { NP_CPU_METHOD = 'S' }; /* netperf's letter for /proc/stat */

/* The use between two readings: percent of all processors, and of one for the peak. */
struct np_cpu_use {
	bool known; /* false: the readings share no processor, and all else is 0 */
	double util, user, system, iowait, irq, softirq;
	double peak; /* of the busiest processor */
	int peak_id; /* its number, the lowest of several */
	int count;   /* processors that the figures are the means of: online at both readings */
};

/* The counters at one moment; any number of processors. */
struct np_cpu_times;

/*
 * Read the counters into memory of their own, to be released with np_cpu_free(). root: of
 * proc; NULL: "". Counters that an old kernel does not have are 0. NP_ESYS when the
 * file can't be read, holds no processors or a line of theirs that is no list of counters; then
 * *out is NULL.
 */
int np_cpu_read(const char *root, struct np_cpu_times **out, struct np_err *err);
void np_cpu_free(struct np_cpu_times *t); /* NULL is ignored */

/*
 * The use from `from` to `to`. A processor that is not in both does not count; 32-bit counters that
 * have wrapped are corrected. A counter that decreased for another reason (idle and iowait may)
 * counts as unchanged.
 */
void
np_cpu_use(const struct np_cpu_times *from, const struct np_cpu_times *to, struct np_cpu_use *out);

/* One processor's time in clock ticks; user includes nice and guests. */
struct np_cpu_ticks {
	int id;
	uint64_t user, system, softirq, irq, iowait, steal, idle, all;
};

/* Its time between two readings, either of which may be NULL. False: it is not in both. */
bool np_cpu_ticks(const struct np_cpu_times *from, const struct np_cpu_times *to, int cpu,
		  struct np_cpu_ticks *out);

/* The same of all that are in both, by rising number; tell may be NULL. Returns how many. */
size_t np_cpu_each(const struct np_cpu_times *from, const struct np_cpu_times *to,
		   void (*tell)(void *ctx, const struct np_cpu_ticks *did), void *ctx);

/* The share of all processors' time that the hypervisor gave to others since boot. */
double np_cpu_stolen(const struct np_cpu_times *t);

/* Processors online, and the clock ticks a second that /proc/stat counts in. */
int np_cpu_count(void);
double np_cpu_rate(void);

/*
 * How many threads are running or ready to run (proc_loadavg(5)), the caller's included. -1 with
 * errno if that is not known. root: the directory above proc; "" except in tests.
 */
long np_cpu_load(const char *root);

/* Are they so many that each of them waits for a tenth of a second or so for its turn? */
bool np_cpu_crowded(const char *root);

#endif
