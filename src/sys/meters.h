/*
 * What a machine does beside a test, looked at often: files are opened once and read again. Each
 * meter that this machine does not have says so, and the others go on without it.
 */
#ifndef NP_SYS_METERS_H
#define NP_SYS_METERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"

enum {
	NP_METERS_CPUS = 256,     /* processors whose time is looked at, by their number */
	NP_METERS_CLOSE = 4,      /* of those a test runs on, whose frequency is */
	NP_METERS_IRQS = 16,      /* lines of the interface */
	NP_METERS_TEXT = 32 << 10 /* of a file, as far as it is read */
};

/* A processor's frequency, and how often it was throttled. */
struct np_meters_cpu {
	int cpu;                         /* -1: the place is free */
	int khz_fd, core_fd, package_fd; /* -1: it has no such file */
	bool near;                       /* the test ran there at the last look: */
	uint64_t khz, throttled;
};

struct np_meters_irq {
	int fd;
	char on[32]; /* processors, at the last look; empty: not known yet */
};

/* All that was seen in one look. Counters grow; -1: not told. */
struct np_meters_seen {
	uint64_t at_ns, took_ns;        /* when the look began, how long it took */
	uint64_t steal[NP_METERS_CPUS]; /* ticks (proc_stat(5)) */
	uint64_t user[NP_METERS_CPUS];  /* programs in user mode, nice ones, too */
	uint64_t idle[NP_METERS_CPUS];  /* waiting for I/O is idle here */
	int64_t stalled_us;             /* some thread waited for a processor (PSI) */
	int64_t squeezed;               /* softirqs that left packets for the next one */
	uint64_t irqs_moved;            /* interrupts of the interface to other processors */
	int64_t ahead_ns;               /* CLOCK_REALTIME less CLOCK_MONOTONIC */
	bool has_link;                  /* what the interface counted: */
	uint64_t in_bytes, in_packets, out_bytes, out_packets;
};

struct np_meters {
	const char *root;                                  /* of proc and sys, "" in earnest */
	char device[16];                                   /* "": none */
	int stat_fd, pressure_fd, softnet_fd;              /* -1: not open */
	int rtnl;                                          /* -1 */
	int stat_why, pressure_why, softnet_why, link_why; /* errno; 0 */
	unsigned link_header; /* bytes of the link layer that the interface counts */
	uint64_t irqs_moved;
	struct np_meters_cpu cpu[NP_METERS_CLOSE];
	struct np_meters_irq irq[NP_METERS_IRQS];
	unsigned irqs;
	char *text; /* during a look: a file's, of NP_METERS_TEXT bytes */
};

/* Open them. The device may be "". Also in a confined process. */
void np_meters_open(struct np_meters *m, const char *root, const char *device);
void np_meters_close(struct np_meters *m);

/*
 * Look. `near` says on which processors the test runs, a bit for each of the first 63: there the
 * frequency is looked at, too (m->cpu).
 */
void np_meters_look(struct np_meters *m, uint64_t near, struct np_meters_seen *out);

/* Why a meter tells nothing, as unread values of those names behind the prefix. */
void np_meters_put_unread(const struct np_meters *m, const char *prefix, struct np_bag *into);

#endif
