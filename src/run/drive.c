#include "run/drive.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "net/tcpinfo.h"
#include "run/gate.h"
#include "run/live.h"
#include "run/team.h"

enum {
	SLACK_S = 120, /* the longest that a daemon's side goes on after its time */
	IDLE_S =
	    10, /* after so long without data a daemon's watches rest; FIRST_S if none ever came */
	FIRST_S = 1,
	RESTS = 50, /* a resting watch looks this many times less often, at least each REST_S */
	REST_S = 1,
	LAST_WORD_S = 1 /* for a client's loop to end by itself after the daemon's last message */
};

/* How long a worker has waited for a response, and when its wait was interrupted. */
struct patience {
	uint64_t seen, seen_ns;
	uint64_t kicked_ns, kicked_lost; /* the last interruption, and losses then */
};

/* A watch: when it looks next. */
struct looking {
	uint64_t due_ns; /* 0: its times have not begun */
	uint32_t seed;
};

/* Since when a daemon's test has been idle. */
struct idle {
	uint64_t activity, progress, since_ns; /* when last looked at, and since when they stand */
};

/* The controller's own state beside what the caller gave. */
struct control {
	struct np_drive *d;
	struct np_team *team;
	struct patience *patience; /* of each worker */
	struct pollfd *polls;      /* FIXED and one for each worker */
	bool spoken;               /* the control connection has said something already */
	bool warm;                 /* the warm-up is over */
	bool begun;                /* it has begun */
	uint64_t ready_ns;         /* when this end was ready for it */
	uint64_t warms_ns;         /* since when it warms up */
	uint64_t first_ns;         /* when a daemon's connection test had a transaction, or 0 */
	bool saw_time_up;
	bool arrived, let_go; /* at the gate; the workers know whether it opened */
	int signals;          /* taken so far */
	uint64_t meet_until;
	uint64_t heard_ns;      /* when the daemon sent a message during the client's loop, or 0 */
	uint64_t seen, seen_ns; /* activity when last looked at, and since when it stands */
	uint64_t until_ns;      /* for how long it may, where that ends the test */
	struct looking looking[NP_WATCHES];
	struct idle idle;
	struct np_cpu_times *cpu; /* when the window opened; NULL: not measured */
};

enum { OF_TEAM, OF_CONTROL, OF_GATE, FIXED };

/* These signals only interrupt ppoll() and the calls of workers. */
static void
wake_up(int sig)
{
}

void
np_drive_prepare(void)
{
	const struct sigaction sa = { .sa_handler = wake_up };
	sigset_t kicks;

	sigaction(NP_PASS_SIGNAL, &sa, NULL);
	sigaction(NP_KICK_SIGNAL, &sa, NULL);
	/* The parent process may have blocked it. */
	sigemptyset(&kicks);
	sigaddset(&kicks, NP_KICK_SIGNAL);
	sigprocmask(SIG_UNBLOCK, &kicks, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Sends, receives and transactions: what shows that the far end is alive. */
static uint64_t
activity_of(const struct np_worker *w)
{
	return np_seen(&w->count->receives) + np_seen(&w->count->transactions) +
	       np_seen(&w->count->sends);
}

static uint64_t
activity(const struct np_run *run)
{
	uint64_t sum = 0;

	NP_EACH_WORKER (w, run) {
		sum += activity_of(w);
	}
	return sum;
}

/*
 * The same for a test that no clock ends, where one message may take long: what TCP has moved
 * counts, of at most LOOKS connections.
 */
static uint64_t
progress(const struct np_run *run)
{
	enum { LOOKS = 64 };
	uint32_t step = (run->conns + LOOKS - 1) / LOOKS;
	uint64_t sum = activity(run);

	if (run->plan->pattern->connection_test || !run->plan->transport->tcp_info) {
		return sum;
	}
	for (uint32_t i = 0; i < run->conns; i += step) {
		sum += np_tcp_moved(run->conn[i].fd);
	}
	return sum;
}

/* Is a worker asleep because its load lets it rest? */
static bool
rests(const struct np_run *run)
{
	NP_EACH_WORKER (w, run) {
		if (np_load_resting(&w->load)) {
			return true;
		}
	}
	return false;
}

/* For how long nothing has moved. A loop that rests within its time is not waiting. */
static uint64_t
silence(struct control *c, uint64_t did, uint64_t now, bool resting)
{
	if (did != c->seen || c->seen_ns == 0 || resting) {
		c->seen = did;
		c->seen_ns = now;
	}
	return now - c->seen_ns;
}

/* Has nothing moved for `limit`, or for longer if the path is silent? */
static bool
is_stalled(struct control *c, uint64_t did, uint64_t now, bool resting, uint64_t limit)
{
	const struct np_run *run = c->d->run;

	if (silence(c, did, now, resting) == 0 || c->until_ns == 0) {
		c->until_ns = now + limit;
	}
	c->until_ns = np_run_patience(run, np_run_lasting_fd(run), c->until_ns);
	return now >= c->until_ns;
}

static void
end(struct control *c, enum np_cause cause, int level)
{
	if (!np_stopped(c->d->run->stop)) {
		c->d->cause = cause;
	}
	np_run_stop(c->d->run, level);
}

/*
 * The time of a test that the far end ends is up at the daemon; what still arrives counts. Returns
 * when to look again, or 0 when the far end has been silent for long enough.
 */
static uint64_t
await_silence(struct control *c, uint64_t time_up, uint64_t now)
{
	const struct np_run *run = c->d->run;
	uint64_t pad = run->side->pad_ns, did = activity(run);

	if (!run->plan->transport->connected && did > 0 && pad > NP_SEC / 2) {
		pad = NP_SEC / 2; /* there is no close to wait for */
	}
	if (did == 0 && pad < 4 * NP_SEC) {
		pad = 4 * NP_SEC; /* nothing yet: the far end may have begun late */
	}
	pad = np_max(pad, run->round_trips_ns);
	if (is_stalled(c, did, now, false, pad) || now >= time_up + SLACK_S * NP_SEC) {
		return 0;
	}
	return now + 20 * NP_MSEC;
}

/*
 * The daemon has sent results or an error: it has ended the test. A receiving loop goes on while
 * data that were sent before still arrive.
 */
static uint64_t
await_own_end(struct control *c, uint64_t now)
{
	const struct np_plan *p = c->d->run->plan;
	bool transmits = !p->pattern->transactions && p->role == NP_LEAD;
	uint64_t limit = LAST_WORD_S * NP_SEC;

	if (silence(c, activity(c->d->run), now, rests(c->d->run)) >= limit ||
	    (transmits && now - c->heard_ns >= limit)) {
		end(c, NP_BY_CONTROL, 1);
		return NP_NEVER;
	}
	return now + 20 * NP_MSEC;
}

/*
 * A connection test that ends by count: the daemon's workers share the connections, and are done
 * when all have come. A warm-up does not end at the same moment at both ends: after one they are
 * done when about as many have come and no more do.
 */
static uint64_t
await_count(struct control *c, uint64_t now)
{
	const struct np_run *run = c->d->run;
	uint64_t count = (uint64_t)-run->plan->length, done = 0, silent;
	bool warmed_up = run->plan->warm_up_ms > 0;

	if (run->plan->length >= 0 || !run->plan->pattern->connection_test ||
	    (run->workers < 2 && !warmed_up)) {
		return NP_NEVER; /* the client is watched on the control connection */
	}
	NP_EACH_WORKER (w, run) {
		done += np_seen(&w->count->transactions);
	}
	silent = silence(c, done, now, rests(run));
	if (warmed_up ? done + 2ULL * run->conns >= count && silent >= NP_SEC : done >= count) {
		end(c, NP_BY_LOOP, 1);
		return NP_NEVER;
	}
	return now + 10 * NP_MSEC;
}

/* In a test that no clock ends, do not wait for ever for a far end that died silently. */
static uint64_t
await_progress(struct control *c, uint64_t now)
{
	const struct np_plan *p = c->d->run->plan;
	uint64_t pause = np_max(np_load_pause_of(&p->near), np_load_pause_of(&p->far));

	if (!p->active) {
		return await_count(c, now);
	}
	if (is_stalled(c, progress(c->d->run), now, rests(c->d->run),
		       NP_STALL_S * NP_SEC + pause)) {
		end(c, NP_BY_SILENCE, 2);
		return NP_NEVER;
	}
	return now + NP_SEC / 2;
}

/*
 * Interrupt a wait that has lasted too long; the loop then counts a loss. Repeat it if the signal
 * came just before the wait began.
 */
static void
keep_patience_of(struct control *c, const struct np_worker *w, uint64_t now)
{
	struct patience *p = &c->patience[w - c->d->run->worker];
	uint64_t lost = np_seen(&w->count->lost), did = activity_of(w);
	bool is_missed = p->kicked_ns != 0 && lost == p->kicked_lost;

	/* Behind a warm-up both count from 0 again. */
	if (did > p->seen || p->seen_ns == 0 || np_load_resting(&w->load)) {
		p->seen_ns = now;
	}
	p->seen = did;
	if (now - p->seen_ns >= w->patience_ns &&
	    (is_missed || now - p->kicked_ns >= w->patience_ns)) {
		p->kicked_ns = now;
		p->kicked_lost = lost;
		np_team_kick(c->team, w);
	}
}

/* Workers that wait for events look themselves. */
static uint64_t
keep_patience(struct control *c, uint64_t now)
{
	uint64_t patience_ns = c->d->run->worker->patience_ns;

	if (patience_ns == 0 || c->d->run->worker->stop.wake_fd != 0) {
		return NP_NEVER;
	}
	NP_EACH_WORKER (w, c->d->run) {
		if (np_team_phase_of(c->team, w) == NP_LOOPING) {
			keep_patience_of(c, w, now);
		}
	}
	return now + patience_ns / 10;
}

/*
 * May data arrive when the time is up? The end of a connection's data may be late, unless a warm-up
 * ended the far end's window earlier. Of datagrams all that were sent in the window count, at a
 * client too.
 */
static bool
hears_more(const struct np_run *run)
{
	const struct np_plan *p = run->plan;
	bool datagrams = !np_delivers(p->transport) && !p->no_control;
	bool late = !p->active && (p->warm_up_ms == 0 || p->pattern->transactions);

	return run->side->pad_ns != 0 && (datagrams || late);
}

/*
 * Has the warm-up begun? An end that waits for the first message begins with it. Datagrams of a
 * stream carry which part they belong to.
 */
static bool
warms_up(struct control *c, uint64_t now)
{
	const struct np_run *run = c->d->run;
	const struct np_plan *p = run->plan;

	if (c->ready_ns == 0) {
		c->ready_ns = c->warms_ns = run->window.started_ns;
		c->begun = p->active || p->role == NP_LEAD ||
			   (!p->pattern->transactions && !np_delivers(p->transport));
	}
	if (!c->begun) {
		c->warms_ns = now;
		c->begun = activity(run) > 0 || now - c->ready_ns >= SLACK_S * NP_SEC;
	}
	return c->begun;
}

/* The window begins for all workers when the warm-up ends. */
static uint64_t
keep_warm_up(struct control *c, uint64_t now)
{
	struct np_run *run = c->d->run;
	uint64_t until;
	struct np_err err;

	if (!warms_up(c, now)) {
		return now + NP_MSEC / 10 + np_min((now - c->ready_ns) / 16, 2 * NP_MSEC);
	}
	until = c->warms_ns + run->plan->warm_up_ms * NP_MSEC;
	if (now < until) {
		return until;
	}
	c->warm = true;
	if (run->plan->near.place.measure_cpu) {
		(void)np_cpu_read(NULL, &c->cpu, &err);
	}
	/* An open loop knows its schedule beforehand; others count from this moment. */
	run->window.started_ns = run->worker->open != NULL ? until : np_now();
	memset(c->looking, 0, sizeof(c->looking)); /* times are counted from the start */
	NP_EACH_WORKER (w, run) {
		np_stop_mark(&w->stop);
		c->patience[w - run->worker].kicked_lost = UINT64_MAX;
	}
	return now;
}

/*
 * When the time is up. A client's window opens behind its daemon's, as late as it likes: that of a
 * daemon's connection test goes on for so long from the first transaction on, so that no connection
 * of the client's window finds it gone. Up to two round trips are part of the silence that follows.
 * *again: when to look for the first one.
 */
static uint64_t
time_is_up(struct control *c, uint64_t now, uint64_t *again)
{
	const struct np_run *run = c->d->run;
	uint64_t since = run->window.started_ns;

	if (run->plan->pattern->connection_test && hears_more(run) && run->plan->warm_up_ms == 0) {
		if (c->first_ns == 0 && activity(run) > 0) {
			c->first_ns = now;
		} else if (c->first_ns == 0) {
			*again = np_min(*again, now + NP_MSEC / 10 +
						    np_min((now - since) / 16, 20 * NP_MSEC));
		}
		since = np_max(since, np_beyond(c->first_ns, run->round_trips_ns));
	}
	return since + c->d->length_ns;
}

static uint64_t
keep_test_time(struct control *c, uint64_t now)
{
	const struct np_run *run = c->d->run;
	uint64_t again = c->heard_ns != 0 ? await_own_end(c, now) : NP_NEVER;
	uint64_t limit = run->window.started_ns + c->d->limit_ns, time_up;

	again = np_min(again, keep_patience(c, now));
	if (c->d->length_ns == 0) {
		/* A test that no clock ends must not last for ever, where there is a limit. */
		if (c->d->limit_ns != 0 && now >= limit) {
			end(c, NP_BY_LIMIT, 1);
		} else if (c->d->limit_ns != 0) {
			again = np_min(again, limit);
		}
		return c->heard_ns != 0 ? again : np_min(again, await_progress(c, now));
	}
	time_up = time_is_up(c, now, &again);
	if (now < time_up) {
		return np_min(again, time_up);
	}
	c->d->late_ns = c->saw_time_up ? c->d->late_ns : now - time_up;
	c->saw_time_up = true;
	again = hears_more(run) ? await_silence(c, time_up, now) : 0;
	if (again == 0) {
		end(c, NP_BY_CLOCK, 1);
		return NP_NEVER;
	}
	return again;
}

/* All workers are ready: the window opens with the gate, if it opens. */
static void
keep_gate(struct control *c)
{
	const struct np_gate *gate = c->d->gate;
	struct np_run *run = c->d->run;

	if (gate == NULL || c->let_go) {
		return;
	}
	if (!np_stopped(run->stop)) {
		if (!c->arrived) {
			c->arrived = true;
			np_gate_arrive(c->d->gate);
		}
		if (np_gate_state(gate) == 0) {
			return;
		}
		run->window.started_ns = np_gate_opened_ns(gate);
	}
	c->let_go = true;
	np_team_go_on(c->team);
}

/* When the controller has to look next. Ends the loop when its time is up. */
static uint64_t
keep_time(struct control *c, enum np_phase phase)
{
	uint64_t now = np_now();

	if (phase == NP_LOOPING) {
		NP_EACH_WORKER (w, c->d->run) {
			if (np_team_phase_of(c->team, w) > NP_LOOPING && w->err.code != NP_OK) {
				end(c, NP_BY_LOOP, 1); /* for all */
				break;
			}
		}
		return c->warm ? keep_test_time(c, now)
			       : np_min(keep_warm_up(c, now), keep_patience(c, now));
	}
	if (phase == NP_READY) {
		keep_gate(c);
	}
	if (phase == NP_FINISHING && c->d->lost != 0) {
		np_run_stop(c->d->run, 2); /* what still comes is of no test any more */
	}
	if (phase != NP_MEETING) {
		return NP_NEVER;
	}
	if (now < c->meet_until) {
		return c->meet_until;
	}
	end(c, NP_BY_SILENCE, 2);
	return NP_NEVER;
}

/* The time to the next look. Pseudo-random numbers (linear congruence) are good enough. */
static uint64_t
until_next(const struct np_watch *w, struct looking *l)
{
	if (!w->jitters) {
		return w->every_ns;
	}
	l->seed = l->seed * 1664525U + 1013904223U;
	return w->every_ns - w->every_ns / 4 + w->every_ns / 2 * (l->seed >> 16) / 65536;
}

/*
 * Is this a daemon's test without data for a while? It is watched less often, to cost other tests
 * little. No call completes during one long message, so TCP is asked before the answer is yes.
 */
static bool
is_idle(struct control *c, uint64_t now)
{
	struct idle *s = &c->idle;
	uint64_t did = activity(c->d->run), moved;

	if (did != s->activity || s->since_ns == 0) {
		s->activity = did;
		s->since_ns = now;
	}
	if (c->d->run->plan->active || now - s->since_ns < (did > 0 ? IDLE_S : FIRST_S) * NP_SEC) {
		return false;
	}
	moved = progress(c->d->run);
	if (moved != s->progress) {
		s->progress = moved;
		s->since_ns = now;
		return false;
	}
	return true;
}

/* Let a watch look when that is due. Missed looks are not repeated. */
static uint64_t
keep_watch(struct control *c, const struct np_watch *w, struct looking *l)
{
	const struct np_run *run = c->d->run;
	uint64_t now = np_now(), start = run->window.started_ns;

	if (l->due_ns == 0) {
		l->seed = (uint32_t)(start / 1000);
		l->due_ns = w->at_once ? start : start + until_next(w, l);
	}
	if (now < l->due_ns) {
		return l->due_ns;
	}
	w->look(w->ctx, run, l->due_ns, now);
	l->due_ns += until_next(w, l);
	if (l->due_ns <= now) {
		l->due_ns = w->jitters ? now + until_next(w, l)
				       : start + ((now - start) / w->every_ns + 1) * w->every_ns;
	}
	if (is_idle(c, now)) {
		uint64_t rest = np_min(RESTS * w->every_ns, REST_S * NP_SEC);

		l->due_ns = np_max(l->due_ns, now + rest);
	}
	return l->due_ns;
}

static uint64_t
keep_watches(struct control *c, enum np_phase phase)
{
	const struct np_run *run = c->d->run;
	uint64_t next = NP_NEVER;

	for (int i = 0; i < NP_WATCHES && phase == NP_LOOPING && !np_stopped(run->stop); i++) {
		if (c->d->watch[i].every_ns != 0 && (c->warm || c->d->watch[i].warms_up)) {
			next = np_min(next, keep_watch(c, &c->d->watch[i], &c->looking[i]));
		}
	}
	return next;
}

/* Get workers out of system calls that they may sleep in. Returns false when all know. */
static bool
kick(const struct control *c)
{
	bool any = false;

	NP_EACH_WORKER (w, c->d->run) {
		enum np_phase phase = np_team_phase_of(c->team, w);

		/* A loop that waits for events is woken by one, unless its load lets it sleep. */
		if (phase == NP_LOOPING && w->stop.wake_fd > 0 && !np_load_resting(&w->load)) {
			any |= np_stopped(&w->stop);
		} else if ((np_stopped(&w->stop) && phase < NP_FINISHING) ||
			   (np_abandoned(&w->stop) && phase < NP_DONE)) {
			np_team_kick(c->team, w);
			any = true;
		}
	}
	return any;
}

/* The control connection is readable or broken: a message early on, or the far end is gone. */
static void
hear_control(struct control *c)
{
	int fd = c->d->control_fd;
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	c->spoken = true;
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		c->d->lost = errno;
	} else if (n == 0 || !c->d->run->plan->active) {
		/* A daemon that closes may have sent a reason first: the message counts. The
		 * daemon polls for nothing but the end; a reset may show as POLLERR alone, with
		 * data of the client still readable. */
		c->d->lost = ECONNRESET;
	}
	if (c->d->lost == 0) {
		c->heard_ns = np_now();
		return;
	}
	/* No peer left to drain to for a client that has lost its daemon. */
	end(c, NP_BY_CONTROL, c->d->run->plan->active ? 2 : 1);
}

/*
 * Does the end of its data connection end a daemon's test? A ramp's connections are the workers'
 * business, and an error on a datagram socket is no end.
 */
static bool
hears_data(const struct np_run *run, enum np_phase phase)
{
	const struct np_transport *t = run->plan->transport;

	return phase == NP_LOOPING && !run->plan->active && run->side->ends_on_hangup &&
	       run->plan->ramp == 0 && (t->connected || t->admit != NP_ADMIT_IP);
}

/*
 * Where poll() would return at once because of an event that can't be masked, look at the data
 * connections now and then.
 */
static uint64_t
look_at_data(struct control *c, enum np_phase phase)
{
	const struct np_run *run = c->d->run;

	if (!run->engine->borrows || !hears_data(run, phase)) {
		return NP_NEVER;
	}
	NP_EACH_WORKER (w, run) {
		struct pollfd p = { .fd = w->conn->fd, .events = POLLRDHUP };

		if (poll(&p, 1, 0) > 0 && (p.revents & ~POLLERR) != 0) {
			end(c, NP_BY_LOOP, 1);
		}
	}
	return np_deadline(20 * NP_MSEC);
}

static void
wait_for_news(struct control *c, enum np_phase phase, uint64_t until)
{
	const struct np_run *run = c->d->run;
	bool active = run->plan->active;
	struct timespec left;
	char bytes[64];
	bool wanted;

	c->polls[OF_TEAM] = (struct pollfd){ .fd = c->team->heard_fd, .events = POLLIN };
	c->polls[OF_CONTROL] = (struct pollfd){
		.fd = c->d->control_fd,
		.events = c->spoken ? 0 : (short)(active ? POLLIN | POLLRDHUP : POLLRDHUP),
	};
	c->polls[OF_GATE] = (struct pollfd){
		.fd = c->arrived && !c->let_go ? np_gate_fd(c->d->gate) : -1,
		.events = POLLIN,
	};
	/* A daemon's sender learns of the end by the first connection of each worker. */
	wanted = hears_data(run, phase) && !run->engine->borrows;
	NP_EACH_WORKER (w, run) {
		c->polls[FIXED + (w - run->worker)] = (struct pollfd){
			.fd = wanted ? w->conn->fd : -1,
			.events = POLLRDHUP,
		};
	}
	if (ppoll(c->polls, FIXED + run->workers, np_left(until, &left), c->d->signals.let_in) <=
	    0) {
		return;
	}
	while (read(c->team->heard_fd, bytes, sizeof(bytes)) > 0) {
	}
	if (c->polls[OF_CONTROL].revents != 0) {
		if (c->spoken) {
			c->d->control_fd = -1;
		} else {
			hear_control(c);
		}
	}
	for (uint32_t i = 0; i < run->workers; i++) {
		if (c->polls[FIXED + i].revents != 0) {
			end(c, NP_BY_LOOP, 1);
		}
	}
}

static void
control_team(struct control *c)
{
	enum np_phase phase;

	while ((phase = np_team_phase(c->team)) != NP_DONE) {
		uint64_t until = keep_time(c, phase);
		struct np_live *live = c->d->live;
		int n;

		if (phase < NP_LOOPING) {
			np_live_step(live, NP_LIVE_MEETING, 0);
		} else if (phase > NP_LOOPING) {
			np_live_step(live, NP_LIVE_COLLECTING, 0);
		} else if (c->warm) {
			np_live_step(live, NP_LIVE_MEASURING, c->d->length_ns);
		} else {
			np_live_step(live, NP_LIVE_WARMING_UP,
				     c->d->run->plan->warm_up_ms * NP_MSEC);
		}
		np_live_look(live, c->d->run);
		until = np_live_until(live, np_min(until, keep_watches(c, phase)));
		until = np_min(until, look_at_data(c, phase));
		if (kick(c)) {
			until = np_deadline(2 * NP_MSEC);
		}
		wait_for_news(c, phase, until);
		/* The first signal ends the loop; the next one ends the wait for the rest. */
		n = np_signalled(&c->d->signals);
		if (n != c->signals) {
			c->signals = n;
			end(c, NP_BY_SIGNAL, n > 1 || phase >= NP_FINISHING ? 2 : 1);
			/* A far end that rests between bursts sees no other end of the test. It
			 * closes at once, which must not look like a failure here: this end has
			 * stopped first. */
			if (c->d->run->plan->active &&
			    c->d->run->plan->far.call.interval_burst > 0 && c->d->control_fd >= 0) {
				shutdown(c->d->control_fd, SHUT_WR);
			}
		}
	}
}

int
np_drive_hold(struct np_drive *d, struct np_err *err)
{
	return np_team_hire(d->run, d->gate != NULL, &d->team, err);
}

void
np_drive_release(struct np_drive *d)
{
	if (d->team != NULL) {
		np_team_dismiss(d->team);
		d->team = NULL;
	}
}

/*
 * A receiver's window of datagrams has the length of the sender's: it opens with the first datagram
 * that counts, or earlier if the end mark tells that the first ones were lost or not due. Waiting
 * for the far end's last word is not part of it.
 */
static void
settle_window(const struct control *c)
{
	struct np_run *run = c->d->run;
	struct np_window *win = &run->window;
	uint64_t least_ns = c->meet_until - c->d->meet_ns + run->plan->warm_up_ms * NP_MSEC;
	uint64_t first_ns = UINT64_MAX, open_ns = win->ended_ns - win->length_ns;

	win->opened_ns = win->started_ns;
	NP_EACH_WORKER (w, run) {
		first_ns = w->opened_ns != 0 ? np_min(w->opened_ns, first_ns) : first_ns;
	}
	if (first_ns != UINT64_MAX) {
		/* Else the sender was cut short. */
		bool is_whole =
		    win->length_ns > 0 && c->d->cause == NP_BY_LOOP && open_ns >= least_ns;

		win->opened_ns = is_whole ? np_min(first_ns, open_ns) : first_ns;
	} else if (run->plan->active ? !hears_more(run) : c->d->cause != NP_BY_CLOCK) {
		return;
	}
	win->ended_ns = np_min(win->ended_ns, np_window_closes(win, win->opened_ns));
}

/* Collect from the workers the end of the window, which is the latest, and the first error. */
static void
conclude(const struct control *c)
{
	struct np_run *run = c->d->run;
	const struct np_cpu_times *from = c->cpu != NULL ? c->cpu : c->team->cpu;
	struct np_cpu_times *to = NULL;
	struct np_err err;

	if (from != NULL && np_cpu_read(NULL, &to, &err) == NP_OK) {
		np_cpu_use(from, to, &run->closing.cpu); /* else it stays unknown */
	}
	np_cpu_free(c->cpu);
	np_cpu_free(to);
	if (!c->warm) {
		run->window.started_ns = 0; /* what was moved so far is no result */
	}
	NP_EACH_WORKER (w, run) {
		uint64_t time_up = run->window.started_ns + c->d->length_ns;

		if (run->window.started_ns != 0 && w->ended_ns > run->window.ended_ns) {
			run->window.ended_ns = w->ended_ns;
		}
		if (c->warm && c->d->length_ns != 0 && !c->saw_time_up) { /* a loop saw it first */
			c->d->late_ns = np_max(c->d->late_ns, np_beyond(w->left_ns, time_up));
		}
		if (run->err.code == NP_OK && w->err.code != NP_OK) {
			run->err = w->err;
		}
	}
	if (run->window.started_ns != 0) {
		settle_window(c);
	}
	if (run->side->leave != NULL) {
		run->side->leave(run);
	}
}

int
np_drive(struct np_drive *d, struct np_err *err)
{
	/* Signals that came earlier count, too: the user wants the end. */
	struct control c = { .d = d, .meet_until = np_deadline(d->meet_ns) };
	int rc = NP_OK;

	d->cause = NP_BY_LOOP;
	d->lost = 0;
	d->run->control_fd = d->control_fd;
	d->run->round_trips_ns = 2 * np_tcp_round_trip_ns(d->control_fd);
	NP_EACH_WORKER (w, d->run) {
		if (w->patience_ns > 0) {
			w->patience_ns = np_max(w->patience_ns, d->run->round_trips_ns);
		}
	}
	d->late_ns = 0;
	d->run->window.length_ns = d->length_ns;
	if (d->team == NULL && np_drive_hold(d, err) != NP_OK) {
		return err->code;
	}
	c.team = d->team;
	c.warm = d->run->plan->warm_up_ms == 0;
	c.patience = calloc(d->run->workers, sizeof(*c.patience));
	c.polls = calloc(FIXED + d->run->workers, sizeof(*c.polls));
	if (c.patience == NULL || c.polls == NULL) {
		rc = np_fail(err, NP_ESYS, ENOMEM, "memory for %u threads", d->run->workers);
	} else {
		np_team_go_on(c.team);
		control_team(&c);
		conclude(&c);
	}
	free(c.patience);
	free(c.polls);
	np_drive_release(d);
	return rc;
}
