/*
 * Processors: how busy they were, and binding threads to them. As in netperf, a processor's use is
 * 100 minus the idle counter's percentage of all ten of /proc/stat (proc_stat(5)), so I/O waits are
 * busy. The machine's use is the mean of them.
 */
#ifndef NP_SYS_CPU_H
#define NP_SYS_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpulist.h"
#include "base/err.h"

enum { NP_CPU_METHOD = 'S' }; /* netperf's letter for /proc/stat */

/* The use between two readings, in percent: means of all processors, and the busiest one's. */
struct np_cpu_use {
	bool known; /* false: no processor is in both readings, and all else is 0 */
	double util, user, system, iowait, irq, softirq;
	double peak; /* of the busiest processor */
	int peak_id; /* its number, the lowest of several */
	int count;   /* of the processors in both readings */
};

/* The counters of all processors at one moment. */
struct np_cpu_times;

/*
 * Read the counters; those that an old kernel lacks are 0. root: the directory above proc. free(3)
 * the result. NULL with errno: the file can't be read, or (EINVAL) is malformed.
 */
struct np_cpu_times *np_cpu_read(const char *root);

/*
 * The use between two readings, of the processors in both. 32-bit counters that have wrapped are
 * corrected; any other counter that decreased (idle and iowait may) is taken as unchanged.
 */
void
np_cpu_use(const struct np_cpu_times *from, const struct np_cpu_times *to, struct np_cpu_use *out);

/* One processor's time in clock ticks; user includes nice and guests, `all` is the sum. */
struct np_cpu_ticks {
	int id;
	uint64_t user, system, softirq, irq, iowait, steal, idle, all;
};

/* A processor's time between two readings. False: it is not in both, or one of them is NULL. */
bool np_cpu_ticks(const struct np_cpu_times *from, const struct np_cpu_times *to, int cpu,
		  struct np_cpu_ticks *out);

/* np_cpu_ticks() of the next processor that both have, by rising number. *i is 0 at first. */
bool np_cpu_next(const struct np_cpu_times *from, const struct np_cpu_times *to, size_t *i,
		 struct np_cpu_ticks *out);

/* The share of all processors' time since boot that the hypervisor gave to other guests. */
double np_cpu_stolen(const struct np_cpu_times *t);

/* How many processors are online. */
int np_cpu_count(void);

/* Clock ticks a second, the unit of /proc/stat (USER_HZ, mostly 100); not a frequency. */
double np_cpu_ticks_per_s(void);

/* Threads that run or are ready to (proc_loadavg(5)), this one too. -1 with errno: not known. */
long np_cpu_load(const char *root);

/* Do that many threads want to run that each waits about a tenth of a second for its turn? */
bool np_cpu_crowded(const char *root);

/* Bind this thread, and those it creates, to one processor. NP_ESYS: it can't be used. */
int np_bind_cpu(int cpu, struct np_err *err);

/* The processors that the calling thread may use. False, with errno and *l empty: not known. */
bool np_cpus_save(struct np_cpulist *l);

/* Let the calling thread use these again. An empty set has no effect. */
void np_cpus_restore(const struct np_cpulist *l);

/* Remove processors to which the calling thread can't be bound. Returns the first one; -1: none. */
int np_cpus_leave_out(struct np_cpu_turns *t);

/* The only processor that the calling thread may run on; -1: there are several. */
int np_cpu_bound(void);

/* How many processors the calling thread may run on; 0: not known. */
uint32_t np_cpus_usable(void);

#endif
