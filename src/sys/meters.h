/*
 * What a machine does during a test, sampled often. A meter that this machine does not have says
 * why; the others work without it.
 */
#ifndef NP_SYS_METERS_H
#define NP_SYS_METERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "sys/link.h"

enum {
	NP_METERS_CLOSE = 4, /* processors of a test, for their frequency */
	NP_METERS_IRQS = 16  /* lines of the interface */
};

/* A processor's frequency, and how often it was throttled. */
struct np_meters_cpu {
	int cpu;                         /* -1: the place is free */
	int khz_fd, core_fd, package_fd; /* negative: it has no such file */
	bool near;                       /* the test ran there at the last look: */
	uint64_t khz, throttled;
};

struct np_meters_irq {
	int fd;
	char on[32]; /* processors, at the last look; empty: not known yet */
};

/* A sample. Counters grow; -1: not known. */
struct np_meters_seen {
	uint64_t at_ns, took_ns;   /* when it began, how long it took */
	struct np_cpu_times *cpus; /* NULL: not known */
	int64_t stalled_us;        /* some thread waited for a processor (PSI) */
	int64_t squeezed;          /* softirqs that left packets for the next one */
	uint64_t irqs_moved;       /* interrupts of the interface to other processors */
	int64_t ahead_ns;          /* CLOCK_REALTIME less CLOCK_MONOTONIC */
	bool has_link;
	struct rtnl_link_stats64 link; /* what the interface counted, then */
};

enum { NP_METER_CPUS, NP_METER_PRESSURE, NP_METER_SOFTNET, NP_METER_LINK, NP_METERS };

struct np_meters {
	struct np_link link;
	int pressure_fd;    /* or a negative errno */
	int why[NP_METERS]; /* it tells nothing: errno; 0 */
	uint64_t irqs_moved;
	struct np_meters_cpu cpu[NP_METERS_CLOSE];
	struct np_meters_irq irq[NP_METERS_IRQS];
	unsigned irqs;
	struct np_meters_seen before, now; /* the last two looks */
};

/* Open them. The device may be "". Works in a confined process. Root and device have to last. */
void np_meters_open(struct np_meters *m, const char *root, const char *device);
void np_meters_close(struct np_meters *m);

/*
 * Take a sample. near: a bit for each of the first 63 processors that the test runs on, for which
 * the frequency is read, too (m->cpu).
 */
void np_meters_look(struct np_meters *m, uint64_t near);

/* Put why meters tell nothing, as unread values whose names begin with the prefix. */
void np_meters_put_unread(const struct np_meters *m, const char *prefix, struct np_bag *into);

/* ---- The same readers, for single readings ---- */

/* What a processor's softirqs did (proc_net softnet_stat): 32-bit counters. */
struct np_softnet {
	unsigned cpu;
	uint64_t processed, dropped, squeezed;
};

/* Call `each` for all processors. 0, or a negative errno. */
int
np_softnet_each(const char *root, void (*each)(void *ctx, const struct np_softnet *), void *ctx);

/* For how long any task waited, by an open file of /proc/pressure. 0, or a negative errno. */
int np_pressure_read(int fd, uint64_t *some_us);

#endif
