/* Shared by the files of the dialects only: talk.c, talk_netperf.c, talk_plan.c. */
#ifndef NP_RUN_TALK_PARTS_H
#define NP_RUN_TALK_PARTS_H

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "run/talk.h"
#include "sys/cpu.h"

/* The dialect of one of netperf's requests; NULL: there is none. */
const struct np_dialect *np_netperf_dialect(uint32_t code);

/* The path of a daemon's socket in the UNIX domain: NP_EPEER for one that names none. */
int np_path_from_wire(char *path, struct np_far *far, struct np_err *err);
void np_path_to_wire(const struct np_run *run, char path[NP_UNIX_PATH_MAX]);

/*
 * In the UNIX domain netperf asks for buffers of 0 bytes unless the user chooses, and the daemon
 * makes them as small as possible. We do the same, so that results can be compared.
 */
int32_t np_unix_buffer_to_wire(int32_t size);

/* What netperf's messages can't say. */
extern const struct np_dialect np_plan_dialect;

/* netperf's family number. */
static inline uint32_t
family_to_wire(int family)
{
	return np_family(family)->version == 6 ? NP_WF_INET6 : NP_WF_INET;
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

/* A granted port of 0 can't be connected to. */
static inline int
decode_port(uint32_t port, struct np_far *far, struct np_err *err)
{
	if (port == 0 || port > UINT16_MAX) {
		return np_fail(err, NP_EPEER, 0, "the daemon names port %u for the data connection",
			       port);
	}
	far->port = port;
	return NP_OK;
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

/* The far end's processor figures, for its own time. */
static inline void
decode_cpu(struct np_far *far, double util, int32_t method, int32_t cpus)
{
	bool known = method >= 0 && method < (int32_t)sizeof(NP_CPU_METHODS) - 1;

	far->cpu_method = known ? NP_CPU_METHODS[method] : '?';
	far->cpu.known = far->measures_cpu && util >= 0 && method != 0;
	far->cpu.util = util;
	far->cpu.count = cpus > 0 ? cpus : 0;
}

/* The calibration of the processors' clock that a client asked for: ticks a second. */
static inline float
cpu_rate(const struct np_plan *p)
{
	return p->near.place.measure_cpu ? (float)np_cpu_rate() : 0;
}

#endif
