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

#include "base/err.h"

enum { NP_CPU_METHOD = 'S' }; /* netperf's letter for /proc/stat */

/* What was used between two readings. Percent of all processors, and of one for the peak. */
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
 * Read the counters into memory of their own, to be released with np_cpu_free(). proc is where
 * /proc is mounted; NULL: there. Counters that an old kernel does not have are 0. NP_ESYS when the
 * file can't be read, holds no processors or a line of theirs that is no list of counters; then
 * *out is NULL.
 */
int np_cpu_read(const char *proc, struct np_cpu_times **out, struct np_err *err);
void np_cpu_free(struct np_cpu_times *t); /* NULL is ignored */

/*
 * What was used from `from` to `to`. A processor that is not in both does not count; 32-bit
 * counters that have wrapped are set right. One that went back for another reason (the kernel lets
 * idle and iowait do so) has not moved.
 */
void
np_cpu_use(const struct np_cpu_times *from, const struct np_cpu_times *to, struct np_cpu_use *out);

/* One processor's time, in shares of 0 to 1 of it; user includes nice and guests. */
struct np_cpu_share {
	int id;
	bool known; /* false: not a tick has passed, and all else is 0 */
	double user, system, softirq, irq, iowait, steal, idle;
};

/*
 * The same by processor, as np_cpu_use() counts them: the first `room` into *out, by rising number.
 * Returns how many there are.
 */
size_t np_cpu_shares(const struct np_cpu_times *from, const struct np_cpu_times *to,
		     struct np_cpu_share *out, size_t room);

/* Processors online, and the clock ticks a second that /proc/stat counts in. */
int np_cpu_count(void);
double np_cpu_rate(void);

/*
 * Do too many threads want a processor (proc_loadavg(5), which counts them at this moment), so that
 * each of them waits for a tenth of a second or so for its turn? proc as above.
 */
bool np_cpu_crowded(const char *proc);

#endif
