#include "run/trial.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "bench/bench.h"
#include "bench/engine/engine.h"
#include "run/gate.h"

/* From a session's grant to those of all others: daemons wait 10 s for data connections. */
enum { AGREE_S = 8 };

/* Descriptors of a session (two connections, an eventfd, a spare), and others (evidence: to 86). */
enum { FDS_EACH = 4, FDS_BESIDE = 112 };

struct group;

/* One of the sessions, and the thread that is its controller. */
struct session {
	struct group *group;
	struct np_client own, *client; /* &own, except that the first one has the caller's */
	struct np_plan plan;
	struct np_outcome out;
	struct np_err err;
	int rc;
	char name[40]; /* "flow 3 of 16" */
	pthread_t thread;
	bool started;

	struct np_live live; /* used by its thread */

	/* Protected by the group's lock: */
	bool over, looked;
	struct np_counts seen; /* when it last looked, or at its end */
	struct np_live_view view;
};

struct group {
	const struct np_trial *trial;
	struct np_target others; /* the netserver, as sessions after the first connect to it */
	struct np_client was;    /* copy of the first session's client, to be restored */
	struct session *session;
	uint32_t count;
	/* All wait at each: before they request tests, make data connections, and open windows. */
	struct np_gate *connected, *agreed, *gate;
	sigset_t let_in;          /* mask while a session waits: lets NP_PASS_SIGNAL in */
	_Atomic int passed;       /* signals passed on; one more when a session fails */
	_Atomic uint32_t granted; /* sessions that the daemon agreed to */
	_Atomic uint32_t in_time; /* granted in time, if not all were; 0: all were, so far */
	_Atomic uint64_t late_ns; /* when that was seen; set before in_time */
	int news_fd;              /* eventfd(2): a session is over, or late */

	pthread_mutex_t lock;
	uint32_t running;
	uint64_t since_ns;      /* when they began to connect */
	uint64_t began_ns;      /* when the windows opened; 0: no session has looked yet */
	struct session *failed; /* the first one that failed; NULL: none */
	char told[4096]; /* texts of tell_once() without digits and dots, one after another */
};

/* ---- The plans ---- */

/*
 * Does each flow need a session? With our daemon, if the test can't have several flows; with
 * netperf's, if its messages can describe one flow (else one session is refused).
 */
static bool
needs_session_each(const struct np_plan *p, const struct np_hello_message *granted)
{
	struct np_plan one = *p;

	one.flows = one.far.place.threads = 1;
	one.warm_up_ms = 0;
	return p->flows > 1 && ((granted->caps & NP_CAP_PLAN) != 0 ? !np_plan_several(p)
								   : np_plan_beyond(&one) == NULL);
}

uint32_t
np_group_sessions(const struct np_plan *p, const struct np_hello_message *granted)
{
	return (p->both ? 2 : 1) * (needs_session_each(p, granted) ? p->flows : 1);
}

const struct np_engine *
np_group_engine(const struct np_plan *p, const struct np_hello_message *granted)
{
	struct np_plan one = *p;

	one.flows = needs_session_each(p, granted) ? 1 : p->flows;
	return np_engine_of(&one);
}

/* The length of session i of several: a count is divided, that of a stream by whole messages. */
static int64_t
session_length(const struct np_plan *p, uint32_t i, uint32_t sessions)
{
	int64_t size = (p->role == NP_LEAD ? &p->near : &p->far)->call.send_size;
	int64_t unit = !p->pattern->transactions && size > 0 ? size : 1, units;

	if (p->length >= 0) {
		return p->length;
	}
	units = (-p->length + unit - 1) / unit;
	return -unit * (units / sessions + (i < units % sessions));
}

/* The plan of session i: of --both half of them receive; of several flows each has one. */
static void
session_plan(const struct np_plan *whole, uint32_t i, uint32_t sessions, struct np_plan *one)
{
	uint32_t each_way = whole->both ? sessions / 2 : sessions;

	*one = *whole;
	if (whole->both) {
		one->both = false;
		one->role = i < each_way ? NP_LEAD : NP_FOLLOW;
		/* An end that receives has no rate. */
		*(one->role == NP_LEAD ? &one->far.call.offered : &one->near.call.offered) = 0;
	}
	if (each_way > 1) {
		one->flows = 1;
		one->length = session_length(one, i % each_way, each_way);
	}
	np_plan_place(one, i);
}

/* Several sessions cannot share a port that the user named. */
static int
check_ports(const struct np_plan *p, const struct np_target *t, uint32_t sessions,
	    struct np_err *err)
{
	const char *option = p->both ? "--both" : "--flows";
	uint32_t port = p->far.sock.port != 0 ? p->far.sock.port : p->near.sock.port;

	if (port != 0) {
		return np_fail(err, NP_EUSAGE, 0,
			       "%s: the data connections of %u sessions cannot share port %u "
			       "(leave out -- -P)",
			       option, sessions, port);
	}
	if (t->local_port[0] != '\0') {
		return np_fail(err, NP_EUSAGE, 0,
			       "%s: %u control connections cannot all come from port %s (leave the "
			       "local port out of -p)",
			       option, sessions, t->local_port);
	}
	return NP_OK;
}

int
np_trial_sessions(const struct np_trial *trial, uint32_t *out, struct np_err *err)
{
	const struct np_plan *p = trial->plan;
	const struct np_target *t = trial->target;
	const struct np_hello_message *granted = &trial->client->granted;
	uint32_t sessions = np_group_sessions(p, granted);
	uint32_t each_way = p->both ? sessions / 2 : sessions;
	uint32_t flows = p->flows > sessions ? p->flows : sessions;
	uint64_t wanted = (uint64_t)FDS_EACH * sessions + (flows - sessions) + FDS_BESIDE;
	bool threads = p->far.place.threads > 1;
	struct rlimit has;

	*out = sessions;
	if (sessions == 1) {
		return NP_OK;
	}
	if ((granted->caps & NP_CAP_PLAN) == 0 && (threads || p->warm_up_ms > 0)) {
		return np_fail(err, NP_EUSAGE, 0,
			       "%s: the netserver at %s port %s serves one flow in each session, "
			       "by one thread, and has no warm-up (%s)",
			       threads ? "--threads" : "--warm-up", t->host.text, t->port,
			       threads ? "--threads N,1, or leave it out" : "leave it out");
	}
	if (check_ports(p, t, sessions, err) != NP_OK) {
		return err->code;
	}
	if (sessions > NP_SESSIONS_MAX) {
		return np_fail(
		    err, NP_EUSAGE, 0,
		    "--flows %u: the netserver at %s port %s serves one in each session, and %d "
		    "sessions are the limit (a netserver of Plumbline serves more)",
		    p->flows, t->host.text, t->port, NP_SESSIONS_MAX);
	}
	if (p->length < 0 && session_length(p, each_way - 1, each_way) == 0) {
		return np_fail(err, NP_EUSAGE, 0,
			       "-l %lld: some of %u flows would get nothing to send (a larger -l, "
			       "or a smaller --flows)",
			       (long long)p->length, p->flows);
	}
	np_fds_raise_limit((uint32_t)wanted);
	if (getrlimit(RLIMIT_NOFILE, &has) == 0 && has.rlim_cur < wanted) {
		return np_fail(err, NP_EUSAGE, 0,
			       "--flows %u: %u sessions take %llu descriptors, and %llu are "
			       "allowed (a smaller --flows, or a larger ulimit -n)",
			       p->flows, sessions, (unsigned long long)wanted,
			       (unsigned long long)has.rlim_cur);
	}
	return NP_OK;
}

/* ---- While they run ---- */

/* Fail the gates that are not open: sessions that wait there fail, too. */
static void
fail_gates(struct group *g)
{
	np_gate_fail(g->connected);
	np_gate_fail(g->agreed);
	np_gate_fail(g->gate);
}

/* Wake watch_over(): a session is over, or late. */
static void
wake_watcher(struct group *g)
{
	static const uint64_t one = 1;

	(void)!write(g->news_fd, &one, sizeof(one)); /* the counter can't overflow */
}

/* Arrive, and wait for the others, or for a signal, until then. Returns the gate's state. */
static int
arrive_and_wait(struct session *s, struct np_gate *gate, uint64_t until)
{
	struct pollfd open = { .fd = np_gate_fd(gate), .events = POLLIN };
	struct timespec left;

	np_gate_arrive(gate);
	while (np_gate_state(gate) == NP_GATE_SHUT && np_signalled(&s->client->signals) == 0 &&
	       np_now() < until) {
		ppoll(&open, 1, np_left(until, &left), &s->group->let_in);
	}
	return np_gate_state(gate);
}

/*
 * np_client_hooks.agreed: wait until all sessions are granted, as data connections made before that
 * would be idle. If that takes too long, end all sessions.
 */
static void
await_grants(void *ctx, const struct np_run *run)
{
	struct session *s = ctx;
	struct group *g = s->group;
	uint64_t until = np_deadline(AGREE_S * NP_SEC);

	if (s == g->session && g->was.hooks.agreed != NULL) {
		g->was.hooks.agreed(g->was.hooks.ctx, run);
	}
	g->granted++;
	if (arrive_and_wait(s, g->agreed, until) == NP_GATE_SHUT &&
	    np_signalled(&s->client->signals) == 0) {
		g->late_ns = np_now();
		g->in_time = g->granted;
		wake_watcher(g);
	}
	if (np_gate_state(g->agreed) != NP_GATE_OPEN) {
		fail_gates(g);
	} else if (s->client->opens_first) {
		/* A receiving half: its daemon sends as soon as it has its connections, and both
		 * halves, and the probe of --beside, are to run at the same time. */
		(void)np_gate_await_others(g->gate, &s->client->signals, until);
	}
}

/*
 * np_client_hooks.tell. Sessions tell much the same: of texts that differ in numbers only (ports,
 * seconds, bytes) the user sees the first one. Once g->told is full, nothing more is told.
 */
static void
tell_once(void *ctx, const char *text)
{
	const struct session *s = ctx;
	struct group *g = s->group;
	char *kind, *end;

	pthread_mutex_lock(&g->lock);
	kind = end = g->told + strlen(g->told);
	for (const char *c = text; *c != '\0' && end < g->told + sizeof(g->told) - 1; c++) {
		if (!isdigit((unsigned char)*c) && *c != '.') {
			*end++ = *c;
		}
	}
	*end = '\0';
	if (strstr(g->told, kind) == kind) {
		g->was.hooks.tell(g->was.hooks.ctx, text);
	} else {
		*kind = '\0';
	}
	pthread_mutex_unlock(&g->lock);
}

/* np_live.draw: keep the view for watch_over(). */
static void
note_view(void *ctx, const struct np_live_view *view)
{
	struct session *s = ctx;

	pthread_mutex_lock(&s->group->lock);
	s->view = *view;
	pthread_mutex_unlock(&s->group->lock);
}

/* When all running sessions have looked, report the sum. To be called with the lock held. */
static void
tell_sum(struct group *g, uint64_t now_ns)
{
	struct np_counts sum = { .sent = 0 };
	bool any_running = false;

	for (uint32_t i = 0; i < g->count; i++) {
		if (!g->session[i].over && !g->session[i].looked) {
			return;
		}
		any_running |= !g->session[i].over;
	}
	for (uint32_t i = 0; i < g->count; i++) {
		np_counts_add(&sum, &g->session[i].seen);
		g->session[i].looked = false;
	}
	if (any_running) { /* else the result itself follows */
		g->trial->look(g->was.watch.ctx, g->trial->plan, &sum, g->began_ns, now_ns);
	}
}

/* np_watch.look: note what has arrived, and report the sum once all have looked. */
static void
take_look(void *ctx, const struct np_run *run, uint64_t due_ns, uint64_t now_ns)
{
	struct session *s = ctx;

	pthread_mutex_lock(&s->group->lock);
	s->seen = np_counts_arrived(run);
	s->looked = true;
	/* The earliest window. With a warm-up they open one by one, after the gate. */
	if (s->group->began_ns == 0 || run->window.started_ns < s->group->began_ns) {
		s->group->began_ns = run->window.started_ns;
	}
	tell_sum(s->group, now_ns);
	pthread_mutex_unlock(&s->group->lock);
}

/* A session is over: its figures are final, and if it failed, so do the others that still wait. */
static void
note_over(struct session *s)
{
	struct group *g = s->group;

	pthread_mutex_lock(&g->lock);
	s->over = true;
	s->seen = s->view.count = s->out.tally.end.count;
	s->view.step = NP_LIVE_COLLECTING;
	if (s->rc != NP_OK) {
		g->failed = g->failed == NULL ? s : g->failed;
		fail_gates(g); /* waiting sessions fail; no effect once the windows are open */
	}
	g->running--;
	if (g->began_ns != 0) { /* the others may have looked already */
		tell_sum(g, np_now());
	}
	pthread_mutex_unlock(&g->lock);
	wake_watcher(g);
}

/* The thread of a session: connect, unless it is the first, and run its test. */
static void *
run_session(void *arg)
{
	struct session *s = arg;
	const struct np_trial *t = s->group->trial;

	if (s->client->chan.fd < 0) {
		s->rc = np_client_connect(s->client, &s->group->others, &s->err);
	}
	if (s->rc == NP_OK) {
		/* Before any test is asked for: daemons wait for datagrams from the grant on. A
		 * session that does not come is missed at the next gate. */
		(void)arrive_and_wait(s, s->group->connected, np_deadline(AGREE_S * NP_SEC));
		s->plan.sequence = (s->client->granted.caps & NP_CAP_SEQUENCE) != 0;
		s->rc = np_client_run(s->client, &s->plan, t->terms, t->peer, &s->out, &s->err);
	}
	note_over(s);
	return NULL;
}

/* ---- The group ---- */

/* Set up session i: its plan, its name, and a client like that of the first one. */
static void
make_session(struct group *g, uint32_t i)
{
	struct session *s = &g->session[i];
	bool both = g->trial->plan->both;
	uint32_t each_way = both ? g->count / 2 : g->count;
	const char *way = !both ? "" : i < each_way ? "sending " : "receiving ";
	struct np_client *c;

	s->group = g;
	s->client = i == 0 ? g->trial->client : &s->own;
	s->own.chan.fd = -1;
	s->own.used = g->trial->client->used; /* try the daemon's address that answered first */
	session_plan(g->trial->plan, i, g->count, &s->plan);
	if (each_way > 1) {
		snprintf(s->name, sizeof(s->name), "%sflow %u of %u", way, i % each_way + 1,
			 each_way);
	} else {
		snprintf(s->name, sizeof(s->name), "the %shalf", way);
	}
	c = s->client;
	c->hooks = (struct np_client_hooks){
		.ctx = s,
		.agreed = await_grants,
		.tell = g->was.hooks.tell != NULL ? tell_once : NULL,
		.tell_after_ns = g->was.hooks.tell_after_ns,
	};
	c->signals = (struct np_signals){ .let_in = &g->let_in, .received = &g->passed };
	c->watch =
	    (struct np_watch){ .every_ns = g->trial->look != NULL ? g->was.watch.every_ns : 0,
			       .look = take_look,
			       .ctx = s };
	c->want_far = g->was.want_far;
	c->gate = g->gate;
	/* With more sessions each way their windows would be of different seconds. */
	c->opens_first = g->trial->plan->both && g->count == 2 && s->plan.role == NP_FOLLOW;
	if (g->was.live != NULL) {
		s->view = (struct np_live_view){ .since_ns = np_now() };
		s->live = (struct np_live){ .every_ns = g->was.live->every_ns,
					    .draw = note_view,
					    .ctx = s,
					    .due_ns = s->view.since_ns,
					    .view = s->view };
		c->live = &s->live;
	}
}

/* Close the other sessions, and give the first client its own hooks back. */
static void
end_group(struct group *g)
{
	struct np_client *first = g->trial->client;

	first->hooks = g->was.hooks;
	first->signals = g->was.signals;
	first->watch = g->was.watch;
	first->gate = g->was.gate;
	first->live = g->was.live;
	for (uint32_t i = 1; i < g->count; i++) {
		if (g->session[i].own.chan.fd >= 0) {
			np_chan_close(&g->session[i].own.chan);
		}
	}
	np_gate_free(g->connected);
	np_gate_free(g->agreed);
	if (g->gate != g->was.gate) {
		np_gate_free(g->gate);
	}
	np_fds_close(g->news_fd);
	pthread_mutex_destroy(&g->lock);
	free(g->session);
}

/* Set up all sessions. The first one uses the client of the caller. */
static int
begin_group(struct group *g, const struct np_trial *t, struct np_err *err)
{
	memset(g, 0, sizeof(*g));
	g->trial = t;
	g->was = *t->client;
	g->since_ns = np_now();
	g->count = np_group_sessions(t->plan, &t->client->granted);
	pthread_mutex_init(&g->lock, NULL);
	g->session = calloc(g->count, sizeof(*g->session));
	g->connected = np_gate_new(g->count);
	g->agreed = np_gate_new(g->count);
	g->gate = g->was.gate != NULL ? g->was.gate : np_gate_new(g->count);
	g->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (g->session == NULL || g->connected == NULL || g->agreed == NULL || g->gate == NULL ||
	    g->news_fd < 0) {
		np_fail(err, NP_ESYS, errno, "make ready for %u sessions", g->count);
		g->count = 0; /* no session has been set up */
		end_group(g);
		return err->code;
	}
	g->running = g->count;
	/* The first session knows what the far end can do: the others ask for no more. */
	g->others = *g->trial->target;
	g->others.wants.caps &= g->trial->client->granted.caps & (NP_CAP_PLAN | NP_CAP_SEQUENCE);
	for (uint32_t i = 0; i < g->count; i++) {
		make_session(g, i);
	}
	return NP_OK;
}

/* End all sessions as signals would: signals have come, or a session has failed. */
static void
pass_on(struct group *g, int signals)
{
	atomic_fetch_add(&g->passed, signals);
	for (uint32_t i = 0; i < g->count; i++) {
		if (g->session[i].started) {
			pthread_kill(g->session[i].thread, NP_PASS_SIGNAL);
		}
	}
}

/* Wait until all sessions are over, and pass signals and failures on to them. */
static void
watch_over(struct group *g)
{
	struct pollfd news = { .fd = g->news_fd, .events = POLLIN };
	struct np_live *live = g->was.live;
	bool ended = false, told = false; /* told: of a failure */
	struct timespec left;
	uint64_t ignored;
	int passed = 0;

	while (!ended) {
		int signals = np_signalled(&g->was.signals);

		if (signals != passed) {
			pass_on(g, signals - passed);
			passed = signals;
		}
		ppoll(&news, 1, np_left(np_live_until(g->was.live, NP_NEVER), &left),
		      g->was.signals.let_in);
		(void)!read(g->news_fd, &ignored, sizeof(ignored));
		pthread_mutex_lock(&g->lock);
		for (uint32_t i = 0; live != NULL && i < g->count; i++) {
			if (i == 0) {
				live->view = g->session[i].view;
			} else {
				np_live_add(&live->view, &g->session[i].view);
			}
		}
		ended = g->running == 0;
		if ((g->failed != NULL || g->in_time > 0) && !told && !ended) { /* one is late */
			told = true;
			pass_on(g, 1);
		}
		pthread_mutex_unlock(&g->lock);
		np_live_look(live, NULL);
	}
	for (uint32_t i = 0; i < g->count; i++) {
		if (g->session[i].started) {
			pthread_join(g->session[i].thread, NULL);
		}
	}
}

/* Void a session's foreign traffic, which is mostly that of the other sessions. */
static void
void_foreign(struct np_bag *b)
{
	static const char *const names[] = { "foreign.out_bytes", "foreign.in_bytes" };
	struct np_bag_item it;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (np_bag_find(b, names[i], &it)) {
			np_bag_unread(b, "it includes the other sessions' traffic", "%s", names[i]);
		}
	}
}

/* Has the far end not said what it received from this session? */
static bool
lacks_report(const struct session *s)
{
	return s->plan.role == NP_LEAD && !s->out.far.reported;
}

/* Add up the outcomes of all sessions. */
static int
sum_up(struct group *g, struct np_outcome *out, struct np_err *err)
{
	struct np_client *first = g->trial->client;
	bool lacks = lacks_report(g->session);
	int rc = NP_OK;

	*out = g->session[0].out;
	for (uint32_t i = 1; i < g->count; i++) {
		struct np_outcome *one = &g->session[i].out;

		lacks |= lacks_report(&g->session[i]);
		if (np_tally_join(&out->tally, &one->tally, err) != NP_OK) {
			rc = err->code;
		}
		np_far_add(&out->far, &one->far);
		out->measured |= one->measured;
		np_outcome_free(one);
	}
	if (lacks) {
		out->far.end.count.received = 0; /* not known, rather than some of it */
	}
	out->tally.plan = g->trial->plan;
	out->tally.paced_ns /= g->count; /* a mean */
	out->sessions = g->count;
	if (out->near_bag != NULL) {
		np_bag_int(out->near_bag, g->count, "flow.sessions");
	}
	void_foreign(out->near_bag);
	void_foreign(out->far_bag);
	if (g->in_time > 0) {
		return np_fail(
		    err, NP_ETIME, 0,
		    "%u of %u sessions were granted within %.0f s (does the netserver at "
		    "%s run one test after another, as with --exclusive?)",
		    (unsigned)g->in_time, g->count, (double)(g->late_ns - g->since_ns) / 1e9,
		    first->peer);
	}
	if (g->failed != NULL) {
		*err = g->failed->err;
		out->cause = g->failed->out.cause;
		first->remote_error = g->failed->client->remote_error;
		rc = np_fail_in(err, g->failed->name);
	}
	return rc;
}

int
np_group_run(const struct np_trial *t, struct np_outcome *out, struct np_err *err)
{
	struct group g;
	sigset_t block;
	int rc;

	memset(out, 0, sizeof(*out));
	np_far_init(&out->far);
	if (begin_group(&g, t, err) != NP_OK) {
		return err->code;
	}
	/* Block the signal here and in all threads: it must interrupt only a session's waits. */
	sigemptyset(&block);
	sigaddset(&block, NP_PASS_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &block, &g.let_in);
	for (uint32_t i = 0; i < g.count; i++) {
		struct session *s = &g.session[i];
		int failed = pthread_create(&s->thread, NULL, run_session, s);

		s->started = failed == 0;
		if (failed != 0) {
			s->rc = np_fail(&s->err, NP_ESYS, failed, "start a thread");
			note_over(s);
		}
	}
	watch_over(&g);
	pthread_sigmask(SIG_SETMASK, &g.let_in, NULL);
	rc = sum_up(&g, out, err);
	end_group(&g);
	return rc;
}
