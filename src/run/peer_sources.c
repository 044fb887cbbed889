#include "run/peer_sources.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "bench/engine/engine.h"

/* Does this end receive IP datagrams, which any host could send? */
static bool
receives(const struct np_run *run)
{
	const struct np_plan *p = run->plan;

	return run->conn->fd >= 0 && !p->transport->connected &&
	       p->transport->admit == NP_ADMIT_IP &&
	       (p->role == NP_FOLLOW || p->pattern->transactions) && p->far.sock.mask <= 0;
}

/* Add an address that datagrams may come from, if it is new. */
static void
add(struct np_sources *s, const struct np_run *run, const struct np_addr *a)
{
	struct np_addr real = *a;

	if (a->len == 0) {
		return;
	}
	np_addr_unmap(&real);
	if (np_family_of(&real)->version == 0 ||
	    np_family_of(&real)->version > np_family(run->plan->family)->version) {
		return; /* a socket of IPv6 receives IPv4, too, but not the other way round */
	}
	if (np_addr_is_group(&real)) {
		return;
	}
	if (np_addr_is_any(&real)) {
		np_addr_make_loopback(&real, real.sa.ss_family); /* packets to it go there */
	}
	for (size_t i = 0; i < s->count; i++) {
		if (np_addr_same_host(&s->at[i], &real)) {
			return;
		}
	}
	if (s->count < NP_SOURCES_MAX) {
		s->at[s->count++] = real;
	}
}

void
np_peer_sources_find(const struct np_run *run, const struct np_addr *data,
		     const struct np_addr *daemon, int control_fd, struct np_sources *out)
{
	*out = (struct np_sources){ .networks = true };
	if (!receives(run)) {
		return;
	}
	add(out, run, data);
	add(out, run, daemon);
	if (out->count > 0 && np_addr_is_here(&out->at[0])) {
		struct np_addr here = { .len = sizeof(here.sa) };

		/*
		 * Within one machine, answers come from the address they go to. netperf's daemon,
		 * unless told the client's address, sends to the wildcard, which is the loopback.
		 */
		add(out, run, &run->end.local);
		if (control_fd >= 0 &&
		    getsockname(control_fd, (struct sockaddr *)&here.sa, &here.len) == 0 &&
		    !np_family_of(&here)->is_here) {
			add(out, run, &here);
		}
		if (np_addr_towards(data, &here)) {
			add(out, run, &here);
		}
		np_addr_make_loopback(&here, run->plan->family);
		add(out, run, &here);
	}
}

void
np_peer_sources_ours(const struct np_run *run, const struct np_addr *data,
		     const struct np_addr *daemon, struct np_sources *out)
{
	*out = (struct np_sources){ .count = 0 };
	if (receives(run)) {
		add(out, run, data);
		add(out, run, daemon);
		out->count = out->count > 1 ? 1 : out->count;
	}
}

/* For an engine that can't compare addresses, only the first one, which this end sends to. */
int
np_peer_sources_accept(struct np_run *run, const struct np_sources *s, uint32_t port,
		       struct np_err *err)
{
	run->end.sources.count = 0;
	NP_EACH_WORKER (w, run) {
		w->codec &= ~(unsigned)NP_C_COMPARE;
	}
	if (s->count == 0) {
		return NP_OK;
	}
	if (np_sources_are_one(s) || !run->engine->compares) {
		return np_sock_limit_source(run->conn->fd, np_plan_family(run->plan), &s->at[0],
					    port, err);
	}
	run->end.sources = *s;
	run->end.sources.port = port;
	return np_run_check_sources(run, err);
}
