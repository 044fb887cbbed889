#include "bench/run.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/lines.h"
#include "bench/codec.h"
#include "bench/engine/calls.h"
#include "bench/engine/engine.h"
#include "bench/open.h"
#include "bench/ramp.h"
#include "bench/stamps.h"
#include "bench/transport/endpoint.h"
#include "bench/transport/many.h"

/* The analyzer loses track of pointers in array elements: see base/bag.c. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

enum { UPGRADE_CHECK_MS = 100 }; /* between two checks whether the test is over */

static const struct np_terms no_terms;

/* Append the socket options that several transports have. */
static void
common_options(const struct np_plan *p, const struct np_terms *terms, struct np_sockopts *o)
{
	const struct np_end *e = &p->near;

	o->permit = terms->permit;
	o->permit_ctx = terms->permit_ctx;
	np_endpoint_ask_buffers(p, o);
	NP_SOCKOPT_OR_NOT(o, p->keepalive, SOL_SOCKET, SO_KEEPALIVE, 1);
	/* Not for datagrams: two sockets could share a port. Those handed over have it already. */
	NP_SOCKOPT(o, p->transport->connected && terms->data_fd == 0, SOL_SOCKET, SO_REUSEADDR, 1);
	NP_SOCKOPT(o, p->no_route, SOL_SOCKET, SO_DONTROUTE, 1);
	NP_SOCKOPT(o, p->debug, SOL_SOCKET, SO_DEBUG, 1);
	NP_SOCKOPT(o, e->sock.mark >= 0, SOL_SOCKET, SO_MARK, e->sock.mark);
	if (e->sock.device[0] != '\0') {
		np_sockopts_add_text(o, SOL_SOCKET, SO_BINDTODEVICE, "SO_BINDTODEVICE",
				     e->sock.device);
	}
	if (p->transport->ip_protocol != 0) {
		unsigned version = np_family(p->family)->version;
		int tos = p->near.sock.tos;

		NP_SOCKOPT_OR_NOT(o, tos >= 0 && version == 6, IPPROTO_IPV6, IPV6_TCLASS, tos);
		NP_SOCKOPT_OR_NOT(o, tos >= 0 && version != 6, IPPROTO_IP, IP_TOS, tos);
		NP_SOCKOPT(o, p->no_fragment && version == 4, IPPROTO_IP, IP_MTU_DISCOVER,
			   IP_PMTUDISC_DO);
		NP_SOCKOPT(o, p->pacing > 0, SOL_SOCKET, SO_MAX_PACING_RATE, (int)p->pacing);
	}
	/* After the type of service, which sets a priority, too. */
	NP_SOCKOPT_OR_NOT(o, e->sock.prio >= 0, SOL_SOCKET, SO_PRIORITY, e->sock.prio);
}

/* Release all that a worker owns, but its sockets. Safe on a zeroed one, and twice. */
static void
free_worker(struct np_worker *w)
{
	if (w->run == NULL) {
		return;
	}
	NP_EACH_CONN (c, w) {
		free(c->ids);
		c->ids = NULL;
	}
	if (w->engine.state != NULL && w->run->engine->close != NULL) {
		w->run->engine->close(w);
	}
	free(w->engine.state);
	if (w->open != NULL) {
		free(w->open->sent);
		free(w->open->lateness);
	}
	free(w->open);
	if (w->ramp != NULL) {
		free(w->ramp->hist);
	}
	free(w->ramp);
	free(w->stamps);
	free(w->sequence);
	free(w->state);
	np_fds_close(w->file.fd);
	np_ring_free(&w->send_ring);
	np_ring_free(&w->recv_ring);
	if (w->stop.wake_fd > 0) {
		close(w->stop.wake_fd);
	}
	free(w->count);
	free(w->hist);
	w->run = NULL;
}

static int
no_memory(const struct np_plan *p, struct np_err *err)
{
	return np_fail(err, NP_ESYS, ENOMEM, "memory for %u data connections and their counters",
		       p->flows);
}

/* Worker `number`'s share of a count; the first workers get the remainder. */
static uint64_t
share(uint64_t count, uint32_t number, uint32_t workers)
{
	return count / workers + (number < count % workers);
}

/* A worker's share of the bytes or transactions that end a test; UINT64_MAX: time ends it. */
static uint64_t
budget_of(const struct np_run *run, const struct np_worker *w)
{
	int64_t length = run->plan->length;

	return length < 0 ? share((uint64_t)-length, (uint32_t)(w - run->worker), run->workers)
			  : UINT64_MAX;
}

/* The budget applies after the warm-up; until then there is no limit. */
static void
set_budget(struct np_worker *w, uint64_t budget)
{
	w->budget_after = budget;
	w->budget = w->run->plan->warm_up_ms > 0 ? UINT64_MAX : budget;
}

/* Divide the connections among the workers, and free workers that would have none. */
static void
divide_conns(struct np_run *run)
{
	struct np_conn *next = run->conn;

	while (run->workers > run->conns) {
		free_worker(&run->worker[--run->workers]);
	}
	NP_EACH_WORKER (w, run) {
		w->conn = next;
		w->conns = (uint32_t)share(run->conns, (uint32_t)(w - run->worker), run->workers);
		next += w->conns;
	}
}

/* Make the workers with what does not depend on sockets: loop, budget, counters, way to stop. */
static int
take_workers(struct np_run *run, struct np_err *err)
{
	const struct np_plan *p = run->plan;
	const struct np_engine *engine = run->engine;
	uint32_t count = np_plan_workers(p);

	run->worker = np_cache_lines_new(count, sizeof(*run->worker));
	if (run->worker == NULL) {
		return no_memory(p, err);
	}
	run->workers = count;
	NP_EACH_WORKER (w, run) {
		bool blocks = np_engine_blocks(engine, p);

		w->run = run;
		w->loop = engine->calls == NULL
			      ? (engine->run != NULL ? engine->run : run->side->sync)
			  : blocks ? np_calls_drive
				   : np_engine_epoll.run;
		w->calls = engine->calls;
		w->steps = run->side->steps;
		w->budget = budget_of(run, w);
		if (p->role == NP_FOLLOW && (run->workers > 1 || p->warm_up_ms > 0)) {
			/* Only the far end knows what this worker will get. */
			w->budget = UINT64_MAX;
		}
		w->codec = np_codec_of(p);
		w->depth = 1;
		/* The client reports its threads; np_evidence_begin() sets it for evidence. */
		w->use.root = p->active && (run->workers > 1 || p->rate > 0) ? "" : NULL;
		w->engine.fd = w->file.fd = w->pipe[0] = w->pipe[1] = w->pipe[2] = -1;
		w->count = np_cache_lines_new(1, sizeof(*w->count));
		w->hist = np_hist_new();
		if (w->count == NULL || w->hist == NULL || !np_ramp_make(w) || !np_open_make(w)) {
			return no_memory(p, err);
		}
		/* An engine that waits for events is stopped by an event. */
		w->stop.wake_fd = blocks ? 0 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (w->stop.wake_fd < 0) {
			return np_fail(err, NP_ESYS, errno, "make an eventfd to stop a worker");
		}
	}
	return NP_OK;
}

/* Once sockets are open, as their buffers' sizes decide: the memory of side and engine. */
static int
set_up_workers(struct np_run *run, struct np_err *err)
{
	const struct np_engine *engine = run->engine;

	divide_conns(run);
	NP_EACH_WORKER (w, run) {
		uint64_t bytes = engine->bytes != NULL ? engine->bytes(run->plan) : 0;

		if (run->side->setup != NULL && run->side->setup(w, err) != NP_OK) {
			return err->code;
		}
		if (bytes > 0 && (bytes > SIZE_MAX || (w->engine.state = np_cache_lines_new(
							   1, (size_t)bytes)) == NULL)) {
			return np_fail(err, NP_ESYS, ENOMEM, "memory for the engine %s",
				       engine->name);
		}
		if (engine->open != NULL && engine->open(w, err) != NP_OK) {
			return err->code;
		}
		set_budget(w, w->budget); /* which the side's setup may have changed */
	}
	return NP_OK;
}

int
np_run_open(struct np_run *run, const struct np_plan *plan, const struct np_terms *terms,
	    struct np_stop *stop, struct np_err *err)
{
	const struct np_engine *engine = np_engine_of(plan);
	const char *why = np_engine_why_not(engine, plan);

	memset(run, 0, sizeof(*run));
	if (plan->transport->admit == NP_ADMIT_UNSAID) {
		return np_fail(err, NP_EUNSUP, EACCES,
			       "%s has no rule which peers a data socket admits",
			       plan->transport->name);
	}
	if (why != NULL) {
		return np_fail(err, NP_EUSAGE, EINVAL, "the engine %s cannot drive this test: %s",
			       engine->name, why);
	}
	run->plan = plan;
	run->terms = terms != NULL ? terms : &no_terms;
	run->stop = stop;
	run->control_fd = -1;
	run->engine = engine;
	run->side = plan->pattern->side[plan->role];
	run->end.listen_fd = run->end.held_fd = -1;
	run->closing.mss = run->closing.retrans = -1;
	run->end.prio = run->end.tos = -1;
	common_options(plan, run->terms, &run->end.opts);
	if (plan->transport->options != NULL) {
		plan->transport->options(plan, &run->end.opts);
	}
	if (engine->options != NULL) {
		engine->options(plan, &run->end.opts);
	}
	run->conn = np_cache_lines_new(plan->flows, sizeof(*run->conn));
	run->conns = run->conn != NULL ? plan->flows : 0;
	NP_EACH_CONN (c, run) {
		c->fd = -1;
	}
	if (run->conns > 0 && plan->warm_up_ms > 0 && plan->transport->tcp_info) {
		run->before = calloc(run->conns, sizeof(*run->before)); /* or do without */
	}
	if ((run->conn == NULL && no_memory(plan, err) != NP_OK) ||
	    take_workers(run, err) != NP_OK || plan->transport->open(run, err) != NP_OK ||
	    np_many_open(run, err) != NP_OK || set_up_workers(run, err) != NP_OK) {
		np_run_free(run);
		return err->code;
	}
	return NP_OK;
}

void
np_run_stop(struct np_run *run, int level)
{
	np_stop(run->stop, level);
	NP_EACH_WORKER (w, run) {
		np_stop(&w->stop, level);
	}
}

void
np_run_trim(struct np_run *run, uint32_t flows)
{
	for (uint32_t i = flows; i < run->conns; i++) {
		np_fds_close(run->conn[i].fd);
		free(run->conn[i].ids);
		run->conn[i] = (struct np_conn){ .fd = -1 };
	}
	run->conns = flows < run->conns ? flows : run->conns;
	divide_conns(run);
	NP_EACH_WORKER (w, run) {
		for (uint32_t i = 0; i < w->conns && w->conn->ids != NULL; i++) {
			w->conn[i].ids->count = w->count; /* it may have another worker now */
		}
		if (run->plan->role == NP_LEAD) { /* only the leader ends a test by count */
			set_budget(w, budget_of(run, w));
		}
	}
}

/* For np_many_wait(): upgrade connections in the order in which the far end speaks on them. */
static int
upgrade_accepted(struct np_run *run, struct pollfd *waits, struct np_err *err)
{
	uint32_t left = run->conns; /* one without a socket shows that the run is stopped */

	while (left > 0 && !np_stopped(run->stop)) {
		if (poll(waits, run->conns, UPGRADE_CHECK_MS) <= 0) {
			continue;
		}
		for (uint32_t i = 0; i < run->conns; i++) {
			if (waits[i].fd < 0 || waits[i].revents == 0) {
				continue;
			}
			if (run->plan->transport->upgrade(run, &run->conn[i], err) != NP_OK) {
				return err->code;
			}
			waits[i].fd = -1;
			left--;
		}
	}
	return NP_OK;
}

int
np_run_establish(struct np_run *run, struct np_err *err)
{
	const struct np_transport *t = run->plan->transport;
	bool spread = run->plan->spread, accepts = spread && !run->plan->active;

	if ((accepts ? np_many_wait(run, np_spread_accept, err) : t->establish(run, err)) !=
	    NP_OK) {
		return err->code;
	}
	/* t->establish made the first connection, now the others. fd -1: stopped meanwhile. */
	if (!accepts && run->conn->fd >= 0 &&
	    (spread ? np_spread_connect(run, err) : np_many_establish(run, err)) != NP_OK) {
		return err->code;
	}
	if ((run->end.shows && run->conn->fd >= 0 &&
	     np_many_wait(run, np_show_token, err) != NP_OK) ||
	    (t->greet != NULL && t->greet(run, err) != NP_OK)) {
		return err->code;
	}
	if (run->plan->stations > 0 && run->conn->fd >= 0 && np_stamps_open(run, err) != NP_OK) {
		return err->code;
	}
	if (t->upgrade == NULL) {
		return NP_OK;
	}
	if (!run->plan->active && run->conns > 1) {
		return np_many_wait(run, upgrade_accepted, err);
	}
	NP_EACH_CONN (c, run) {
		if (c->fd >= 0 && t->upgrade(run, c, err) != NP_OK) {
			return err->code;
		}
	}
	return NP_OK;
}

void
np_run_free(struct np_run *run)
{
	if (run->plan == NULL) {
		return;
	}
	if (run->conns > 0) { /* else nothing was opened */
		np_run_close(run);
	}
	NP_EACH_WORKER (w, run) {
		free_worker(w);
	}
	free(run->worker);
	free(run->conn);
	free(run->before);
	run->worker = NULL;
	run->conn = NULL;
	run->workers = run->conns = 0;
	run->plan = NULL;
}
