#include <stddef.h>
#include <strings.h>

#include "bench/bench.h"

static const struct np_bench benches[] = {
#define NP_BENCH(name, title, pattern, transport, role, code, flags, layout)                       \
	{                                                                                          \
		#name, title, &np_pattern_##pattern, &np_transport_##transport, role, code,        \
		flags, layout                                                                      \
	},
#include "bench/modules.def"
#undef NP_BENCH
};

static const struct np_transport *const transports[] = {
#define NP_TRANSPORT(name) &np_transport_##name,
#include "bench/transports.def"
#undef NP_TRANSPORT
};

/* The patterns that an OMNI request can ask for. */
static const struct np_pattern *const omni_patterns[] = {
	&np_pattern_stream,
	&np_pattern_rr,
	&np_pattern_crr,
	&np_pattern_cc,
};

const struct np_bench *
np_bench_at(size_t i)
{
	return i < sizeof(benches) / sizeof(benches[0]) ? &benches[i] : NULL;
}

const struct np_bench *
np_bench_find(const char *name)
{
	const struct np_bench *b;

	for (size_t i = 0; (b = np_bench_at(i)) != NULL; i++) {
		if (strcasecmp(b->name, name) == 0) {
			return b;
		}
	}
	return NULL;
}

const struct np_transport *
np_transport_at(size_t i)
{
	return i < sizeof(transports) / sizeof(transports[0]) ? transports[i] : NULL;
}

uint32_t
np_transport_type(const struct np_transport *t)
{
	return t->socktype == SOCK_STREAM      ? NP_WS_STREAM
	       : t->socktype == SOCK_DGRAM     ? NP_WS_DGRAM
	       : t->socktype == SOCK_SEQPACKET ? NP_WS_SEQPACKET
					       : 0;
}

const struct np_transport *
np_transport_find(int32_t wire_type, uint32_t protocol)
{
	const struct np_transport *t;

	for (size_t i = 0; (t = np_transport_at(i)) != NULL; i++) {
		if (t->wire_type != 0 && t->wire_type == wire_type &&
		    (protocol == 0 || (uint32_t)t->protocol == protocol)) {
			return t;
		}
	}
	return NULL;
}

const struct np_pattern *
np_pattern_find(uint32_t direction, bool connection_test, int *role)
{
	for (size_t i = 0; i < sizeof(omni_patterns) / sizeof(omni_patterns[0]); i++) {
		const struct np_pattern *p = omni_patterns[i];

		if (p->connection_test == connection_test &&
		    (direction == p->lead_direction || /* or the daemon follows in a stream */
		     (p->lead_direction == NP_WD_TRANSMIT && direction == NP_WD_RECEIVE))) {
			/* A daemon that transmits a stream leads it; else the client leads. */
			*role =
			    !p->transactions && direction == NP_WD_TRANSMIT ? NP_LEAD : NP_FOLLOW;
			return p;
		}
	}
	return NULL;
}

const struct np_transport *
np_transport_by_name(const char *name, uint32_t type)
{
	const struct np_transport *t;

	for (size_t i = 0; (t = np_transport_at(i)) != NULL; i++) {
		if (strcasecmp(t->name, name) == 0 && (type == 0 || np_transport_type(t) == type)) {
			return t;
		}
	}
	return NULL;
}

const struct np_pattern *
np_pattern_by_name(const char *name)
{
	const struct np_bench *b;

	for (size_t i = 0; (b = np_bench_at(i)) != NULL; i++) {
		if (strcasecmp(b->pattern->name, name) == 0) {
			return b->pattern;
		}
	}
	return NULL;
}

bool
np_pattern_fits(const struct np_pattern *p, const struct np_transport *t)
{
	const struct np_bench *b;

	for (size_t i = 0; (b = np_bench_at(i)) != NULL; i++) {
		if (b->pattern == p && b->transport == t) { /* a named test */
			return true;
		}
	}
	for (size_t i = 0; i < sizeof(omni_patterns) / sizeof(omni_patterns[0]); i++) {
		if (omni_patterns[i] == p) { /* over any transport that OMNI requests can name */
			return t->wire_type != 0 && !(p->connection_test && !np_delivers(t));
		}
	}
	return false;
}
