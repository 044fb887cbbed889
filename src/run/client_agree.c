#include "run/client_parts.h"

#include <stdio.h>
#include <string.h>

#include "bench/engine/engine.h"
#include "bench/ids.h"
#include "bench/transport/endpoint.h"
#include "net/llc.h"
#include "run/hear.h"
#include "sys/cpu.h"
#include "wire/plan.h"

/* What netperf's messages can't say takes a daemon of ours: name the option that asks for it. */
static int
check_plan(const struct np_client *c, const struct np_plan *p, struct np_err *err)
{
	const char *what = np_plan_beyond(p);

	if (what == NULL || (c->granted.caps & NP_CAP_PLAN) != 0) {
		return NP_OK;
	}
	return np_fail(err, NP_ECONTROL, 0,
		       "%s: the netserver at %s does not support this; it is not Plumbline's, or "
		       "it is older (leave that out, or start a newer one there)",
		       what, c->peer);
}

/* The daemon's limits are its own: less than was asked for is a test, too, and the user is told. */
static void
take_fewer(struct np_client *c, struct np_client_test *t)
{
	uint32_t flows = t->out->far.flows, asked = t->run.plan->flows;
	char text[512];

	np_run_trim(&t->run, flows);
	if (c->hooks.tell != NULL) {
		snprintf(text, sizeof(text),
			 "%s grants %u of %u data connections (netserver --max-flows, "
			 "--max-memory, --data-ports)",
			 c->peer, flows, asked);
		c->hooks.tell(c->hooks.ctx, text);
	}
}

/* The same of processors: the daemon binds to those that it has, an older one to none. */
static void
tell_places(struct np_client *c, const struct np_client_test *t)
{
	const char *told = t->out->far.cpus;
	char asked[NP_CPU_TURNS_TEXT], text[512];

	(void)np_cpu_turns_text(&t->run.plan->far.place.turns, asked, sizeof(asked));
	if (c->hooks.tell != NULL && strcmp(asked, told) != 0) {
		snprintf(text, sizeof(text), "%s binds its threads to %s of -T ,%s", c->peer,
			 told[0] != '\0' ? told : "none", asked);
		c->hooks.tell(c->hooks.ctx, text);
	}
}

static int
negotiate(struct np_client *c, const struct np_dialect *dialect, const struct np_plan *p,
	  struct np_client_test *t, struct np_err *err)
{
	uint8_t message[NP_MESSAGE_MAX];

	dialect->ask(dialect, p, &t->run, message);
	if (np_client_request(c, message, dialect->code + 1, "the response to the test's request",
			      NP_RESPONSE_MS, err) != NP_OK) {
		return err->code;
	}
	if (np_client_answer_head(c).word != 0) {
		np_client_remote_error(c, "refuses", err);
		if (p->transport->kconfig != NULL && np_endpoint_is_missing(err->sys)) {
			err->code = NP_EUNSUP; /* as if it were missing here */
		}
		return err->code;
	}
	if (dialect->granted(dialect, np_chan_message(&c->chan), &t->out->far, err) != NP_OK) {
		return np_fail_in(err, c->peer);
	}
	if (t->out->far.flows > p->flows) {
		return np_fail(err, NP_EPEER, 0, "%s waits for %u data connections, not for %u",
			       c->peer, t->out->far.flows, p->flows);
	}
	if (p->sources > 1 && t->out->far.client_bits == 0) {
		return np_fail(err, NP_ECONTROL, 0,
			       "--source-range: the netserver at %s accepts one address of a "
			       "client; it is older",
			       c->peer);
	}
	if (t->out->far.also != p->also.count + p->far_also.count) {
		return np_fail(err, NP_ECONTROL, 0,
			       "--also-bind: the netserver at %s knows of one address of each end; "
			       "it is older",
			       c->peer);
	}
	if (t->out->far.ramp != p->ramp) {
		return np_fail(err, NP_ECONTROL, 0,
			       "--ramp %u: the netserver at %s waits for all data connections "
			       "first; it is older",
			       p->ramp, c->peer);
	}
	if (t->out->far.flows < p->flows) {
		take_fewer(c, t);
	}
	tell_places(c, t);
	t->run.end.token = t->out->far.token;
	t->run.end.shows = t->out->far.tokens && np_plan_shows_token(p);
	t->run.end.shown = t->out->far.token_shown;
	t->run.end.key.count = t->out->far.key_bytes;
	memcpy(t->run.end.key.at, t->out->far.key, t->out->far.key_bytes);
	t->run.spread.agreed = t->out->far.spreads;
	t->run.resets = p->resets && t->out->far.resets && p->role == NP_LEAD;
	if (p->rate > 0 && np_ids_useful(p) && !t->out->far.ids) {
		return np_fail(err, NP_ECONTROL, 0,
			       "--rate: the netserver at %s copies no ids, without which nothing "
			       "tells which request a datagram answers (try TCP_RR)",
			       c->peer);
	}
	if (t->run.end.shows && t->run.side->show_token != NULL) {
		NP_EACH_WORKER (w, &t->run) {
			t->run.side->show_token(w);
		}
	}
	if (t->run.side->without_ids != NULL && t->run.worker->id.width > 0 && !t->out->far.ids) {
		NP_EACH_WORKER (w, &t->run) {
			t->run.side->without_ids(w);
		}
	}
	return NP_OK;
}

/* The data connection goes to the path or the port that the daemon named. */
static int
aim(const struct np_client *c, struct np_client_test *t, const struct np_addr *peer,
    struct np_err *err)
{
	const struct np_transport *transport = t->run.plan->transport;
	const struct np_eth *link = t->run.terms->eth;

	if (link != NULL) {
		if (transport->connected) {
			np_llc_aim(link, t->out->far.mac, t->out->far.port, &t->run.end.peer);
		} else {
			np_eth_aim(link, t->out->far.mac, &t->run.end.peer);
		}
		return np_eth_check_peer(link, t->out->far.mac, err);
	}
	if (t->out->far.path[0] != '\0') {
		/* A daemon elsewhere would name whatever socket of this machine it likes. */
		if (c->used.len != 0 && !np_addr_is_here(&c->used)) {
			return np_usage(
			    err, "%s is another machine, and this test runs within one machine",
			    c->peer);
		}
		return np_addr_make_path(&t->run.end.peer, t->out->far.path, err);
	}
	if (t->run.end.shows) {
		/* Whatever stands between the two translates that of the control connection alone.
		 */
		t->out->far.port = np_addr_port(&c->used);
		for (uint32_t i = 0; i < t->run.conns; i++) {
			t->run.conn[i].port = t->run.plan->flows > 1 ? t->out->far.port : 0;
		}
	}
	t->run.end.peer = *peer;
	np_addr_set_port(&t->run.end.peer, t->out->far.port);
	if (np_addr_port(&t->run.end.peer) != t->out->far.port) {
		return np_fail(err, NP_EPEER, 0, "the daemon names port %u for the data connection",
			       t->out->far.port);
	}
	return t->run.plan->flows > 1 && !transport->connected && !t->run.end.shows
		   ? np_grant_ports(np_chan_message(&c->chan), &t->run, err)
		   : NP_OK;
}

/*
 * The daemon has answered: now its port is known. Ours sends nothing before it is asked to again,
 * so that what has come is no answer of it.
 */
static int
hear_daemon(struct np_client *c, struct np_client_test *t, const struct np_addr *data,
	    struct np_sources *far, struct np_err *err)
{
	bool ours = t->out->far.ids || t->out->far.token != 0 || c->granted.caps != 0 ||
		    np_plan_beyond(t->run.plan) != NULL;

	if (ours) {
		np_hear_ours(&t->run, data, &c->used, far);
	}
	if (np_hear_only(&t->run, far, t->out->far.port, err) != NP_OK) {
		return err->code;
	}
	if (ours) {
		np_run_hear_afresh(&t->run);
	}
	return NP_OK;
}

/*
 * Agree with the daemon, if there is one, on what is to be done. The peer's address is known
 * before anything is asked for, its port only when the daemon has answered.
 */
int
np_client_agree(struct np_client *c, const struct np_plan *p, const struct np_addr *peer,
		struct np_client_test *t, struct np_err *err)
{
	static const struct np_addr none = { .len = 0 };
	struct np_run *run = &t->run;
	struct np_sources far;

	run->end.peer = *peer;
	np_hear_find(run, peer, p->no_control ? &none : &c->used, p->no_control ? -1 : c->chan.fd,
		     &far);
	if (np_hear_only(run, &far, np_addr_port(peer), err) != NP_OK) {
		return err->code;
	}
	np_run_hear_afresh(run);
	if (!p->no_control &&
	    (check_plan(c, p, err) != NP_OK || negotiate(c, np_dialect_of(p), p, t, err) != NP_OK ||
	     aim(c, t, peer, err) != NP_OK || hear_daemon(c, t, peer, &far, err) != NP_OK)) {
		return err->code;
	}
	if (c->hooks.agreed != NULL) {
		c->hooks.agreed(c->hooks.ctx, run);
	}
	return NP_OK;
}
