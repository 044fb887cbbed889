/* What the machine does during a test, sampled often. A meter that is missing says why. */
#ifndef NP_SYS_METERS_H
#define NP_SYS_METERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "sys/link.h"

enum {
	NP_METERS_NEAR = 4, /* processors whose frequency is read */
	NP_METERS_IRQS = 16 /* interrupts of the interface that are watched */
};

/* A processor's frequency, and how often it was throttled. */
struct np_meters_cpu {
	int cpu;                         /* -1: this element is unused */
	int khz_fd, core_fd, package_fd; /* negative: there is no such file */
	bool near; /* the test ran there at the last look, and the figures are of then */
	uint64_t khz, throttled; /* 0 if there is no such file */
};

/* A sample. Counters grow; -1: not known. */
struct np_meters_seen {
	uint64_t at_ns, took_ns;       /* when it began, how long it took */
	struct np_cpu_times *cpus;     /* NULL: not known */
	int64_t stalled_us;            /* how long some thread waited for a processor (PSI) */
	int64_t squeezed;              /* how often a softirq left packets for the next one */
	uint64_t irqs_moved;           /* how often an interrupt went to another processor */
	int64_t ahead_ns;              /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	bool has_link;                 /* is `link` known? */
	struct rtnl_link_stats64 link; /* the interface's counters */
};

enum { NP_METER_CPUS, NP_METER_PRESSURE, NP_METER_SOFTNET, NP_METER_LINK, NP_METERS };

struct np_meters {
	struct np_link link;
	int pressure_fd;     /* or a negative errno */
	int why[NP_METERS];  /* errno of a meter that failed at the last look; 0: none */
	uint64_t irqs_moved; /* since np_meters_open() */
	struct np_meters_cpu cpu[NP_METERS_NEAR];
	struct {
		int fd;
		char on[32]; /* the processors that handled it at the last look; empty: not known */
	} irq[NP_METERS_IRQS];
	unsigned irqs;
	struct np_meters_seen before, now; /* the last two looks */
};

/* Open the meters, even in a confined process. device may be "". root has to stay valid. */
void np_meters_open(struct np_meters *m, const char *root, const char *device);
void np_meters_close(struct np_meters *m);

/* Take a sample, m->now. near: a bit for each processor, 0 to 62, to be read into m->cpu, too. */
void np_meters_look(struct np_meters *m, uint64_t near);

/* Put why meters failed, as unread values: disturbed.steal and so on. */
void np_meters_put_unread(const struct np_meters *m, struct np_bag *into);

/* What a processor's softirqs did (/proc/net/softnet_stat): 32-bit counters. */
struct np_softnet {
	unsigned cpu;
	uint64_t processed, dropped, squeezed;
};

/* Call `each` for all processors that are online. 0, or a negative errno. */
int
np_softnet_each(const char *root, void (*each)(void *ctx, const struct np_softnet *), void *ctx);

/* Read from an open file of /proc/pressure how long any task waited. 0, or a negative errno. */
int np_pressure_read(int fd, uint64_t *some_us);

#endif
