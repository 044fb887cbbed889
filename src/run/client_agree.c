#include "run/client_parts.h"

#include <string.h>

#include "base/clock.h"
#include "bench/engine/engine.h"
#include "bench/ids.h"
#include "bench/transport/endpoint.h"
#include "net/eth.h"
#include "run/gate.h"
#include "wire/plan.h"

/* Does this end receive IP datagrams, from hosts that are known? (mask > 0: from random ones.) */
static bool
receives_datagrams(const struct np_run *run)
{
	const struct np_plan *p = run->plan;

	return run->conn->fd >= 0 && !p->transport->connected &&
	       p->transport->admit == NP_ADMIT_IP &&
	       (p->role == NP_FOLLOW || p->pattern->transactions) && p->far.sock.mask <= 0;
}

/* Add an address that datagrams may come from, if it is new. */
static void
add_source(struct np_sources *s, const struct np_run *run, const struct np_addr *a)
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
		return; /* its members answer from addresses of their own */
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

/*
 * Addresses that the far end's datagrams may come from: the one that this end sends to, and the
 * daemon's, if there is one; any of this machine's if it is here. None, so that all are accepted,
 * without IP datagrams to receive, or if any host may answer (a multicast group without a daemon, a
 * random host of a network).
 */
static void
find_sources(const struct np_client *c, const struct np_run *run, struct np_sources *out)
{
	*out = (struct np_sources){ .networks = true };
	if (!receives_datagrams(run)) {
		return;
	}
	add_source(out, run, &run->end.peer);
	add_source(out, run, &c->used);
	if (out->count > 0 && np_addr_is_here(&out->at[0])) {
		struct np_addr here;

		/* Within one machine answers come from the address they go to. netperf's daemon
		 * sends to the wildcard, the loopback, unless told the client's address. */
		add_source(out, run, &run->end.local);
		if (np_sock_local(c->chan.fd, &here, NULL) == NP_OK &&
		    !np_family_of(&here)->is_here) {
			add_source(out, run, &here);
		}
		if (np_addr_towards(&run->end.peer, &here)) {
			add_source(out, run, &here);
		}
		np_addr_make_loopback(&here, run->plan->family);
		add_source(out, run, &here);
	}
}

/* For an engine that can't compare addresses, only the first one, which this end sends to. */
int
np_client_accept_sources(struct np_run *run, const struct np_sources *s, uint32_t port,
			 struct np_err *err)
{
	run->end.sources.count = 0; /* undo an earlier call */
	NP_EACH_WORKER (w, run) {
		w->codec &= ~(unsigned)NP_C_COMPARE;
	}
	if (s->count == 0) {
		return NP_OK;
	}
	if (np_sources_single(s) || !run->engine->compares) {
		return np_sock_limit_source(run->conn->fd, np_plan_family(run->plan), &s->at[0],
					    port, err);
	}
	run->end.sources = *s;
	run->end.sources.port = port;
	return np_run_check_sources(run, err);
}

/* Fail if the daemon waits for more connections, or lacks the ids that --rate needs. */
static int
check_grant(const struct np_client *c, const struct np_plan *p, const struct np_far *far,
	    struct np_err *err)
{
	if (far->flows > p->flows) {
		return np_fail(err, NP_EPEER, 0, "%s waits for %u data connections, not for %u",
			       c->peer, far->flows, p->flows);
	}
	if (p->rate > 0 && np_ids_useful(p) && !far->ids) {
		return np_fail(err, NP_ECONTROL, 0,
			       "--rate: the netserver at %s copies no ids, without which nothing "
			       "tells which request a datagram answers (try TCP_RR)",
			       c->peer);
	}
	return NP_OK;
}

/* Adapt the run to what the daemon granted. If it is less than was asked for, tell the user. */
static void
take_grant(const struct np_client *c, const struct np_plan *p, const struct np_far *far,
	   struct np_run *run)
{
	char asked[NP_CPU_TURNS_TEXT];

	if (far->flows < p->flows) {
		np_client_tell(c,
			       "%s grants %u of %u data connections (netserver --max-flows, "
			       "--max-memory, --data-ports, --one-port)",
			       c->peer, far->flows, p->flows);
		np_run_trim(run, far->flows);
	}
	(void)np_cpu_turns_text(&p->far.place.turns, asked, sizeof(asked));
	if (strcmp(asked, far->cpus) != 0) {
		np_client_tell(c, "%s binds its threads to %s of -T ,%s", c->peer,
			       far->cpus[0] != '\0' ? far->cpus : "none", asked);
	}
	run->end.token = far->token;
	run->end.shows = far->tokens && np_plan_shows_token(p);
	run->end.shown = far->token_shown;
	run->end.key = far->key;
	run->resets = p->resets && far->resets && p->role == NP_LEAD;
	NP_EACH_WORKER (w, run) {
		if (run->side->granted != NULL) {
			run->side->granted(w, far->ids);
		}
	}
}

/* Send the test's request, and adapt to the response. */
static int
negotiate(struct np_client *c, struct np_client_test *t, struct np_err *err)
{
	const struct np_dialect *dialect = t->dialect;
	const struct np_plan *p = t->run.plan;
	const char *extension = np_plan_beyond(p);
	struct np_far *far = &t->out->far;
	uint8_t message[NP_MESSAGE_MAX];

	if (extension != NULL && (c->granted.caps & NP_CAP_PLAN) == 0) {
		return np_fail(err, NP_ECONTROL, 0,
			       "%s: the netserver at %s does not support this; it is not "
			       "Plumbline's (leave that out, or start Plumbline's there)",
			       extension, c->peer);
	}
	dialect->encode_request(dialect, p, &t->run, message);
	if (np_client_request(c, message, dialect->code + 1, "the response to the test's request",
			      NP_RESPONSE_MS, err) != NP_OK) {
		if (p->transport->kernel.option != NULL && np_endpoint_is_missing(err->sys)) {
			err->code = NP_EUNSUP; /* as if it were missing here */
		}
		return err->code;
	}
	if (dialect->decode_response(dialect, np_chan_message(&c->chan), far, err) != NP_OK) {
		return np_fail_in(err, c->peer);
	}
	if (check_grant(c, p, far, err) != NP_OK) {
		return err->code;
	}
	take_grant(c, p, far, &t->run);
	return NP_OK;
}

/* Complete the peer of the data connection: by the path, port or station that the daemon named. */
static int
set_peer(const struct np_client *c, struct np_client_test *t, struct np_err *err)
{
	struct np_run *run = &t->run;
	struct np_far *far = &t->out->far;
	const struct np_plan *p = run->plan;
	const struct np_transport *transport = p->transport;
	const struct np_eth *link = run->terms->eth;

	if (link != NULL) { /* a test of the link layer */
		if (transport->connected) {
			np_llc_address(link, far->mac, far->port, &run->end.peer);
		} else {
			np_eth_aim(link, far->mac, &run->end.peer);
		}
		return np_eth_check_peer(link, far->mac, err);
	}
	if (far->path[0] != '\0') {
		/* A daemon on another machine could name any socket of this one. */
		if (c->used.len != 0 && !np_addr_is_here(&c->used)) {
			return np_usage(
			    err, "%s is another machine, and this test runs within one machine",
			    c->peer);
		}
		return np_addr_make_path(&run->end.peer, far->path, err);
	}
	if (run->end.shows) {
		/* A NAT or load balancer on the path knows only the control connection's port. */
		far->port = np_addr_port(&c->used);
		for (uint32_t i = 0; i < run->conns; i++) {
			run->conn[i].port = p->flows > 1 ? far->port : 0;
		}
	}
	np_addr_set_port(&run->end.peer, far->port);
	if (np_addr_port(&run->end.peer) != far->port || /* it has too many bits */
	    (far->port == 0 && (transport->connected || p->role != NP_FOLLOW))) {
		return np_fail(err, NP_EPEER, 0, "the daemon names port %u for the data connection",
			       far->port);
	}
	/* Several flows of datagrams have a port each. */
	return p->flows > 1 && !transport->connected && !run->end.shows
		   ? np_grant_ports(np_chan_message(&c->chan), run, err)
		   : NP_OK;
}

/* np_client.awaits: wait for the probe, as a daemon that sends begins once this end connects. */
static int
await_probe(const struct np_client *c, struct np_err *err)
{
	enum { MOST_S = 3 }; /* of the 4 s and more that a daemon lets such a test idle */

	if (np_gate_await_others(c->gate, &c->signals, np_deadline(MOST_S * (uint64_t)NP_SEC))) {
		return NP_OK;
	}
	if (np_signalled(&c->signals) > 0) {
		return np_fail(err, NP_ETIME, 0, "interrupted before the test began");
	}
	np_gate_fail(c->gate);
	return np_fail(err, NP_ETIME, 0,
		       "the probe was not ready within %d s (does the netserver at %s run one test "
		       "after another, as with --exclusive?)",
		       MOST_S, c->peer);
}

/* Limit the sources of datagrams first by address, then, when the response names it, by port. */
int
np_client_agree(struct np_client *c, struct np_client_test *t, struct np_err *err)
{
	const struct np_far *granted = &t->out->far;
	struct np_run *run = &t->run;
	const struct np_plan *p = run->plan;
	struct np_sources sources;
	bool ours;

	find_sources(c, run, &sources);
	if (np_client_accept_sources(run, &sources, np_addr_port(&run->end.peer), err) != NP_OK) {
		return err->code;
	}
	np_run_drop_early(run); /* what came before sources were limited */
	if (!p->no_control) {
		if (negotiate(c, t, err) != NP_OK || set_peer(c, t, err) != NP_OK) {
			return err->code;
		}
		/* Is it our daemon? (netperf's grants none of these.) It sends no datagram before
		 * this end has sent one, so those that have arrived are from others. */
		ours = granted->ids || granted->token != 0 || c->granted.caps != 0 ||
		       np_plan_beyond(p) != NULL;
		if (ours && receives_datagrams(run)) { /* they come from where this end sends to */
			sources = (struct np_sources){ .count = 0 };
			add_source(&sources, run, &run->end.peer);
			if (sources.count == 0) {
				add_source(&sources, run, &c->used);
			}
		}
		if (np_client_accept_sources(run, &sources, granted->port, err) != NP_OK) {
			return err->code;
		}
		if (ours) {
			np_run_drop_early(run);
		}
	}
	if (c->hooks.agreed != NULL) {
		c->hooks.agreed(c->hooks.ctx, run);
	}
	return c->awaits ? await_probe(c, err) : NP_OK;
}
