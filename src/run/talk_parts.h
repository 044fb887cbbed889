/*
 * What the files of dialects share, and nobody else: talk.c, talk_old.c, talk_plan.c, talk_unix.c.
 */
#ifndef NP_RUN_TALK_PARTS_H
#define NP_RUN_TALK_PARTS_H

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "run/talk.h"
#include "sys/cpu.h"

/* The tests of the UNIX domain. */
extern const struct np_dialect np_unix_dialects[];
extern const size_t np_unix_dialects_count;

/* The path of a daemon's socket in the UNIX domain: NP_EPEER for one that names none. */
int np_path_from_wire(char *path, struct np_far *far, struct np_err *err);
void np_path_to_wire(const struct np_run *run, char path[NP_UNIX_PATH_MAX]);

/*
 * netperf asks for buffers of 0 bytes there unless the user wants others, and the daemon makes them
 * as small as they can be. Who compares with netperf wants the same.
 */
int32_t np_unix_buffer_to_wire(int32_t size);

/* What netperf's messages can't say. */
extern const struct np_dialect np_plan_dialect;

/* What clients before OMNI ask for; the daemon's half only. */
extern const struct np_dialect np_old_dialects[];
extern const size_t np_old_dialects_count;

/* Requests of netperf's streams that this end receives, but for where. */
void np_stream_follow(const struct np_stream_request *m, struct np_plan *p);

/* What answers requests of streams either way, and of transactions. */
void
np_stream_grant(const struct np_plan *p, const struct np_run *run, uint32_t code, uint8_t *frame);
void
np_stream_report(const struct np_plan *p, const struct np_tally *t, uint32_t code, uint8_t *frame);
void np_rr_grant(const struct np_plan *p, const struct np_run *run, uint32_t code, uint8_t *frame);
void np_rr_report(const struct np_plan *p, const struct np_tally *t, uint32_t code, uint8_t *frame);

/* netperf's family number. */
static inline uint32_t
family_to_wire(int family)
{
	return np_family_version(family) == 6 ? NP_WF_INET6 : NP_WF_INET;
}

static inline int
family_from_wire(uint32_t family, struct np_plan *p, struct np_err *err)
{
	switch (family) {
	case NP_WF_INET:
		p->family = AF_INET;
		return NP_OK;
	case NP_WF_INET6:
		p->family = AF_INET6;
		return NP_OK;
	default:
		return np_fail(err, NP_EPEER, EAFNOSUPPORT, "request for address family %u",
			       family);
	}
}

static inline int
port_from_wire(uint32_t port, uint32_t *out, struct np_err *err)
{
	if (port > UINT16_MAX) {
		return np_fail(err, NP_EPEER, EINVAL, "port %u is out of range", port);
	}
	*out = port;
	return NP_OK;
}

static inline uint32_t
named_family(uint32_t family)
{
	switch (family) {
	case NP_WF_UNSPEC:
		return NP_WF_INET;
	default:
		return family;
	}
}

/*
 * What requests before OMNI end in. No family means IPv4; 2.3 has an address, always 0.0.0.0, in
 * its place.
 */
static inline int
asked_where(int32_t port, int32_t family, struct np_plan *p, struct np_err *err)
{
	uint32_t wire = named_family((uint32_t)family);

	if (family_from_wire(wire, p, err) != NP_OK) {
		return err->code;
	}
	return port_from_wire((uint32_t)port, &p->near.sock.port, err);
}

/* A request's body; what can't be read is answered with EINVAL. */
static inline int
read_request(const uint8_t *frame, np_layout *layout, void *m, struct np_err *err)
{
	if (np_frame_get(frame, layout, m, err) != NP_OK) {
		err->sys = EINVAL;
		return err->code;
	}
	return NP_OK;
}

/* A granted port of 0 can't be connected to. */
static inline int
granted_port(uint32_t port, struct np_far *far, struct np_err *err)
{
	if (port == 0 || port > UINT16_MAX) {
		return np_fail(err, NP_EPEER, 0, "the daemon names port %u for the data connection",
			       port);
	}
	far->port = port;
	return NP_OK;
}

/* Seconds that the flow's measured part took; 0 when it never began. */
static inline float
elapsed(const struct np_tally *t)
{
	return (float)np_tally_seconds(t);
}

static inline void
put(uint8_t *frame, uint32_t code, int32_t word, np_layout *layout, const void *m)
{
	struct np_head head = { .code = code, .word = word };

	np_frame_put(frame, &head, layout, m);
}

/*
 * A figure of this end's CPU utilisation for the results. Busy and whole time are of the same two
 * readings: netperf relates the busy one to the time of the test, which gives more than 100 %.
 */
static inline float
cpu_percent(const struct np_tally *t, double percent)
{
	return t->closing.cpu.known ? (float)percent : 0;
}

/* netperf's numbers for the methods, from 0 on, and its letters for them. */
#define NP_CPU_METHODS "UIPTLRNKSCEMO"

static inline int32_t
cpu_method(const struct np_tally *t)
{
	return t->closing.cpu.known
		   ? (int32_t)(strchr(NP_CPU_METHODS, NP_CPU_METHOD) - NP_CPU_METHODS)
		   : 0;
}

/* What a far end told of its processors, over its own time already. */
static inline void
cpu_told(struct np_far *far, double util, int32_t method, int32_t cpus)
{
	bool known = method >= 0 && method < (int32_t)sizeof(NP_CPU_METHODS) - 1;

	far->cpu_method = known ? NP_CPU_METHODS[method] : '?';
	far->cpu.known = far->measures_cpu && util >= 0;
	far->cpu.util = util;
	far->cpu.count = cpus > 0 ? cpus : 0;
	if (far->cpu.known) { /* some messages say no more than this */
		far->cpu.user = far->cpu.system = far->cpu.iowait = -1;
		far->cpu.irq = far->cpu.softirq = far->cpu.peak = -1;
		far->cpu.peak_id = -1;
	}
}

/* The calibration of the processors' clock that a client asked for: ticks a second. */
static inline float
cpu_rate(const struct np_plan *p)
{
	return p->near.place.measure_cpu ? (float)np_cpu_rate() : 0;
}

#endif
