#include "run/drive.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/sequence.h"
#include "bench/tally.h"
#include "net/tcpinfo.h"
#include "run/gate.h"
#include "run/live.h"
#include "run/team.h"

enum {
	SLACK_S = 120,  /* how long a daemon's side may continue after its time at most */
	IDLE_S = 10,    /* without data for this long, a daemon's watches look less often; */
	FIRST_S = 1,    /* if there never were any, after this time */
	RESTS = 40,     /* by this factor: for outages every 80 ms, below their STOOD_MS, */
	REST_S = 1,     /* but at least at this interval */
	LATE_S = 10,    /* how much later than the daemon's a client's window may open */
	LAST_WORD_S = 1 /* for a client's loop to end by itself after the daemon's last message */
};

/* How long a worker has waited for a response, and when it was last interrupted. */
struct response_wait {
	uint64_t activity, since_ns; /* np_counters_activity(), and since when it has not changed */
	uint64_t kicked_ns, kicked_lost; /* the last interruption, and the losses until then */
};

/* The state of a watch. */
struct looking {
	uint64_t due_ns; /* its next look; 0: not known yet */
	uint32_t seed;   /* of its jitter */
};

/* A value that is watched, and since when it is the same. */
struct still {
	uint64_t value, since_ns;
};

/* The controller's state. */
struct control {
	struct np_drive *d;
	struct np_team *team;
	struct response_wait *waits; /* of each worker */
	struct pollfd *polls;        /* FIXED and one for each worker */
	int control_fd;              /* -1: none, or its end is known */
	bool spoken;                 /* the control connection has been readable or broken */
	bool warm;                   /* the warm-up is over */
	bool begun;                  /* the warm-up has begun */
	uint64_t ready_ns;           /* when this end was ready for the warm-up */
	uint64_t warms_ns;           /* when the warm-up began */
	uint64_t first_ns;    /* first transaction of a daemon's connection test; 0: none yet */
	bool saw_time_up;     /* d->late_ns is set */
	bool arrived, let_go; /* at the gate; the workers were told to go on */
	int signals;          /* taken so far */
	uint64_t establish_until;
	uint64_t heard_ns; /* when the daemon sent a message during the client's loop, or 0 */
	struct still seen; /* what await_silence() and the like watch */
	uint64_t until_ns; /* of check_stall(): when that counts as a stall */
	struct looking looking[NP_WATCHES];
	struct still idle;        /* of check_idle(): activity of a daemon's test, */
	uint64_t progress;        /* and progress() at its last check */
	struct np_cpu_times *cpu; /* at the end of the warm-up; NULL: no warm-up, or not measured */
};

enum { OF_TEAM, OF_CONTROL, OF_GATE, FIXED }; /* indexes into control.polls */

/* A signal handler: NP_PASS_SIGNAL and NP_KICK_SIGNAL only have to interrupt system calls. */
static void
wake_up(int sig)
{
}

void
np_drive_prepare(void)
{
	const struct sigaction sa = { .sa_handler = wake_up };
	sigset_t ours;

	sigaction(NP_PASS_SIGNAL, &sa, NULL);
	sigaction(NP_KICK_SIGNAL, &sa, NULL);
	/* The parent process may have blocked them. */
	sigemptyset(&ours);
	sigaddset(&ours, NP_PASS_SIGNAL);
	sigaddset(&ours, NP_KICK_SIGNAL);
	sigprocmask(SIG_UNBLOCK, &ours, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* A number that changes whenever a worker moves data (np_counters_activity()). */
static uint64_t
activity(const struct np_run *run)
{
	uint64_t sum = 0;

	NP_EACH_WORKER (w, run) {
		sum += np_counters_activity(w->count);
	}
	return sum;
}

/* activity(), plus what TCP has moved on up to LOOKS connections, as one message may take long. */
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

/* Does a worker sleep because its load makes it pause? */
static bool
any_load_pauses(const struct np_run *run)
{
	NP_EACH_WORKER (w, run) {
		if (np_load_is_waiting(&w->load)) {
			return true;
		}
	}
	return false;
}

/* How long the value is the same. held: the test's own load makes workers pause, begin anew. */
static uint64_t
unchanged_ns(struct still *s, uint64_t value, uint64_t now, bool held)
{
	if (value != s->value || s->since_ns == 0 || held) {
		*s = (struct still){ value, now };
	}
	return now - s->since_ns;
}

/* Has the value `did` not changed for `limit`, or for longer while the path is silent? */
static bool
check_stall(struct control *c, uint64_t did, uint64_t now, bool held, uint64_t limit)
{
	const struct np_run *run = c->d->run;

	if (unchanged_ns(&c->seen, did, now, held) == 0 || c->until_ns == 0) {
		c->until_ns = now + limit;
	}
	c->until_ns = np_run_extend(run, np_run_lasting_fd(run), c->until_ns);
	return now >= c->until_ns;
}

/* Stop the workers, to that level of enum np_stop_level. The first call decides the cause. */
static void
end_test(struct control *c, enum np_cause cause, int level)
{
	if (!np_stopped(c->d->run->stop)) {
		c->d->cause = cause;
	}
	np_run_stop(c->d->run, level);
}

/* After the time, await the far end's last data. Returns when to look again; 0: it is silent. */
static uint64_t
await_silence(struct control *c, uint64_t time_up, uint64_t now)
{
	const struct np_run *run = c->d->run;
	uint64_t pad = run->side->pad_ns, did = activity(run), warm_up = 0;
	/* A client that numbers its datagrams repeats its end mark. */
	bool is_marked = !run->plan->active && np_sequence_wanted(run->plan);

	NP_EACH_WORKER (w, run) {
		warm_up += np_get(&w->count->ignored); /* `did` includes them */
	}
	if (!run->plan->transport->connected && did > warm_up && pad > NP_SEC / 2 && !is_marked) {
		pad = NP_SEC / 2; /* there is no close to wait for */
	}
	if (did == warm_up && pad < 4 * NP_SEC) {
		pad = 4 * NP_SEC; /* the far end may have begun late */
	}
	pad = np_max(pad, run->round_trips_ns); /* a path with delay is silent for longer */
	if (check_stall(c, did, now, false, pad) || now >= time_up + SLACK_S * NP_SEC) {
		return 0;
	}
	return now + 20 * NP_MSEC;
}

/*
 * The daemon has ended the test by results or an error. Let a receiving loop have data in flight:
 * with connections until their end, as TCP sends each window a round trip after the one before.
 */
static uint64_t
await_own_end(struct control *c, uint64_t now)
{
	const struct np_plan *p = c->d->run->plan;
	bool transmits = !p->pattern->transactions && p->role == NP_LEAD;
	uint64_t last_word = LAST_WORD_S * NP_SEC;
	uint64_t limit = np_delivers(p->transport) && !transmits
			     ? NP_STALL_S * NP_SEC
			     : last_word + c->d->run->round_trips_ns;

	if (unchanged_ns(&c->seen, activity(c->d->run), now, any_load_pauses(c->d->run)) >= limit ||
	    (transmits && now - c->heard_ns >= last_word)) {
		end_test(c, NP_BY_CONTROL, NP_LEAVE);
		return NP_NEVER;
	}
	return now + 20 * NP_MSEC;
}

/*
 * The daemon's end of a connection test by count: its workers share the connections, and are done
 * when all have come. A warm-up does not end at the same moment at both ends: after one they are
 * done when about that many have come and no more do, even if a SYN was lost (a time-out of 1 s).
 */
static uint64_t
await_count(struct control *c, uint64_t now)
{
	const struct np_run *run = c->d->run;
	uint64_t count = (uint64_t)-run->plan->length, done = 0;
	bool warmed_up = run->plan->warm_up_ms > 0, is_over;

	if (run->plan->length >= 0 || !run->plan->pattern->connection_test ||
	    (run->workers < 2 && !warmed_up)) {
		return NP_NEVER; /* the client is watched on the control connection */
	}
	NP_EACH_WORKER (w, run) {
		done += np_get(&w->count->transactions);
	}
	is_over = done >= count;
	if (warmed_up) {
		uint64_t silent = unchanged_ns(&c->seen, activity(run), now, any_load_pauses(run));

		is_over = done + 2ULL * run->conns >= count &&
			  silent >= 2 * NP_SEC + 2 * run->round_trips_ns;
	}
	if (is_over) {
		end_test(c, NP_BY_LOOP, NP_LEAVE);
		return NP_NEVER;
	}
	return now + 10 * NP_MSEC;
}

uint64_t
np_drive_stall_ns(const struct np_run *run)
{
	return np_max(NP_STALL_S * NP_SEC, run->worker->timeout_ns + NP_SEC) +
	       np_load_pause(run->plan);
}

/* Without a time limit, end the test if a far end died silently. Returns when to look again. */
static uint64_t
await_progress(struct control *c, uint64_t now)
{
	const struct np_run *run = c->d->run;

	if (!run->plan->active) { /* a daemon: its client ends the test */
		return await_count(c, now);
	}
	if (check_stall(c, progress(run), now, any_load_pauses(run), np_drive_stall_ns(run))) {
		end_test(c, NP_BY_SILENCE, NP_ABANDON);
		return NP_NEVER;
	}
	return now + NP_SEC / 2;
}

/*
 * A response's time-out begins as two round trips of the control connection, which may be slower
 * than the data's; after the first response, allow twice its time. True: it is set.
 */
static bool
fit_timeout(const struct control *c, struct np_worker *w, uint64_t now)
{
	const struct np_run *run = c->d->run;
	uint64_t since = c->ready_ns != 0 ? c->ready_ns : run->window.started_ns;

	if (w->timeout_ns != run->round_trips_ns) {
		return true; /* it is done, a late response made it longer, or -e is longer */
	}
	if (np_get(&w->count->transactions) == 0) {
		return false;
	}
	w->timeout_ns = np_min(np_max(run->plan->timeout_ms * NP_MSEC, 2 * (now - since)),
			       run->round_trips_ns - 1); /* - 1: differs from the first */
	return true;
}

/*
 * Interrupt workers that have blocked for too long, which then count a loss; again if the signal
 * came before the wait. Those that wait for events check the time. Returns when to call it again.
 */
static uint64_t
interrupt_late_workers(struct control *c, uint64_t now)
{
	uint64_t timeout_ns = c->d->run->worker->timeout_ns;
	bool all_fit = true;

	if (timeout_ns == 0) {
		return NP_NEVER;
	}
	NP_EACH_WORKER (w, c->d->run) {
		all_fit = fit_timeout(c, w, now) && all_fit;
	}
	if (c->d->run->worker->stop.wake_fd != 0) {
		return all_fit ? NP_NEVER : now + timeout_ns / 10;
	}
	NP_EACH_WORKER (w, c->d->run) {
		struct response_wait *p = &c->waits[w - c->d->run->worker];
		uint64_t lost = np_get(&w->count->lost), moved = np_counters_activity(w->count);
		bool is_missed = p->kicked_ns != 0 && lost == p->kicked_lost;

		if (np_team_phase_of(c->team, w) != NP_LOOPING) {
			continue;
		}
		/* Not `!=`: less means that the counts were reset after the warm-up. */
		if (moved > p->activity || p->since_ns == 0 || np_load_is_waiting(&w->load)) {
			p->since_ns = now;
		}
		p->activity = moved;
		if (now - p->since_ns >= w->timeout_ns &&
		    (is_missed || now - p->kicked_ns >= w->timeout_ns)) {
			p->kicked_ns = now;
			p->kicked_lost = lost;
			np_team_kick(c->team, w);
		}
	}
	return now + timeout_ns / 10;
}

/*
 * Do data count that arrive after the time is up? At a daemon a connection's last data, unless a
 * warm-up made the far end's window end earlier; at either end datagrams sent in the window.
 */
static bool
counts_late_data(const struct np_run *run)
{
	const struct np_plan *p = run->plan;
	bool datagrams = !np_delivers(p->transport) && !p->no_control;
	bool late = !p->active && (p->warm_up_ms == 0 || p->pattern->transactions);

	return run->side->pad_ns != 0 && (datagrams || late);
}

/*
 * Begin the warm-up when due; has it begun? An end that waits for the first message begins with
 * that or after SLACK_S; with a stream of datagrams at once, as the receiver judges each one.
 */
static bool
begin_warm_up(struct control *c, uint64_t now)
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

/* Open the window for all workers when the warm-up ends. Returns when to call it again. */
static uint64_t
keep_warm_up(struct control *c, uint64_t now)
{
	struct np_run *run = c->d->run;
	uint64_t until;

	if (!begin_warm_up(c, now)) {
		/* Look often at first, later every 2 ms. */
		return now + NP_MSEC / 10 + np_min((now - c->ready_ns) / 16, 2 * NP_MSEC);
	}
	until = c->warms_ns + run->plan->warm_up_ms * NP_MSEC;
	if (now < until) {
		return until;
	}
	c->warm = true;
	if (run->plan->near.place.measure_cpu) {
		c->cpu = np_cpu_read("");
	}
	/* An open loop has a fixed schedule; for others the window opens now. */
	run->window.started_ns = run->worker->open != NULL ? until : np_now();
	memset(c->looking, 0, sizeof(c->looking)); /* times are counted from the start */
	NP_EACH_WORKER (w, run) {
		np_stop_mark(&w->stop); /* have it reset its counts, and go on */
		c->waits[w - run->worker].kicked_lost = UINT64_MAX; /* losses count anew */
	}
	return now;
}

/*
 * When the time is up. A daemon's connection test lasts its length from the first transaction on,
 * as the client's window may open much later, and no connection must find the daemon gone (less two
 * round trips, as a silence follows). A transaction later than LATE_S was held up by the path, and
 * the client waits for results. *again: when to look for the first one.
 */
static uint64_t
time_up_at(struct control *c, uint64_t now, uint64_t *again)
{
	const struct np_run *run = c->d->run;
	uint64_t since = run->window.started_ns;

	if (run->plan->pattern->connection_test && counts_late_data(run) &&
	    run->plan->warm_up_ms == 0) {
		if (c->first_ns == 0 && activity(run) > 0) {
			c->first_ns = now;
		} else if (c->first_ns == 0) {
			*again = np_min(*again, now + NP_MSEC / 10 +
						    np_min((now - since) / 16, 20 * NP_MSEC));
		}
		since = np_max(since, np_min(np_excess(c->first_ns, run->round_trips_ns),
					     since + LATE_S * NP_SEC));
	}
	return since + c->d->length_ns;
}

/* End the loops when the test is over. Returns when to call it again. */
static uint64_t
keep_test_time(struct control *c, uint64_t now)
{
	const struct np_run *run = c->d->run;
	uint64_t again = c->heard_ns != 0 ? await_own_end(c, now) : NP_NEVER;
	uint64_t limit = run->window.started_ns + c->d->limit_ns, time_up;

	again = np_min(again, interrupt_late_workers(c, now));
	if (c->d->length_ns == 0) {
		if (c->d->limit_ns != 0 && now >= limit) {
			end_test(c, NP_BY_LIMIT, NP_LEAVE);
		} else if (c->d->limit_ns != 0) {
			again = np_min(again, limit);
		}
		return c->heard_ns != 0 ? again : np_min(again, await_progress(c, now));
	}
	time_up = time_up_at(c, now, &again);
	if (now < time_up) {
		return np_min(again, time_up);
	}
	c->d->late_ns = c->saw_time_up ? c->d->late_ns : now - time_up;
	c->saw_time_up = true;
	again = counts_late_data(run) ? await_silence(c, time_up, now) : 0;
	if (again == 0) {
		end_test(c, NP_BY_CLOCK, NP_LEAVE);
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
	if (!np_stopped(run->stop)) { /* else they go on to their end, without a window */
		int state;

		if (!c->arrived) {
			c->arrived = true;
			np_gate_arrive(c->d->gate);
		}
		state = np_gate_state(gate);
		if (state == NP_GATE_SHUT && !c->d->opens_first) {
			return;
		}
		run->window.started_ns = state == NP_GATE_SHUT ? np_now() : np_gate_opened_ns(gate);
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
				end_test(c, NP_BY_LOOP, NP_LEAVE); /* it failed: end the others */
				break;
			}
		}
		return c->warm ? keep_test_time(c, now)
			       : np_min(keep_warm_up(c, now), interrupt_late_workers(c, now));
	}
	if (phase == NP_READY) {
		keep_gate(c);
	}
	if (phase == NP_FINISHING && c->d->lost != 0) {
		/* do not drain: results can't be exchanged any more */
		np_run_stop(c->d->run, NP_ABANDON);
	}
	if (phase != NP_ESTABLISHING) {
		return NP_NEVER;
	}
	if (now < c->establish_until) {
		return c->establish_until;
	}
	end_test(c, NP_BY_SILENCE, NP_ABANDON);
	return NP_NEVER;
}

/* The time to the next look; with jitter 3/4 to 5/4 of it, by a linear congruential generator. */
static uint64_t
until_next(const struct np_watch *w, struct looking *l)
{
	if (!w->jitters) {
		return w->every_ns;
	}
	l->seed = l->seed * 1664525U + 1013904223U;
	return w->every_ns - w->every_ns / 4 + w->every_ns / 2 * (l->seed >> 16) / 65536;
}

/* Is a daemon's test idle, to be watched less often? TCP knows of calls that have not returned. */
static bool
check_idle(struct control *c, uint64_t now)
{
	uint64_t did = activity(c->d->run), moved;

	if (unchanged_ns(&c->idle, did, now, false) < (did > 0 ? IDLE_S : FIRST_S) * NP_SEC ||
	    c->d->run->plan->active) {
		return false;
	}
	moved = progress(c->d->run);
	if (moved != c->progress) {
		c->progress = moved;
		c->idle.since_ns = now;
		return false;
	}
	return true;
}

/* Let the watches look that are due. Missed looks are not made up for. Returns the next time. */
static uint64_t
keep_watches(struct control *c, enum np_phase phase)
{
	const struct np_run *run = c->d->run;
	uint64_t next = NP_NEVER, start = run->window.started_ns;

	for (int i = 0; i < NP_WATCHES && phase == NP_LOOPING && !np_stopped(run->stop); i++) {
		const struct np_watch *w = &c->d->watch[i];
		struct looking *l = &c->looking[i];
		uint64_t now;

		if (w->every_ns == 0 || (!c->warm && !w->warms_up)) {
			continue;
		}
		now = np_now();
		if (l->due_ns == 0) {
			l->seed = (uint32_t)(start / 1000);
			l->due_ns = w->at_once ? start : start + until_next(w, l);
		}
		if (now >= l->due_ns) {
			w->look(w->ctx, run, l->due_ns, now);
			l->due_ns += until_next(w, l);
			if (l->due_ns <= now) {
				l->due_ns = w->jitters ? now + until_next(w, l)
						       : start + ((now - start) / w->every_ns + 1) *
								     w->every_ns;
			}
			if (check_idle(c, now)) {
				uint64_t rest = np_min(RESTS * w->every_ns, REST_S * NP_SEC);

				l->due_ns = np_max(l->due_ns, now + rest);
			}
		}
		next = np_min(next, l->due_ns);
	}
	return next;
}

/* Interrupt the system calls of workers that were told to stop. False: none has to be. */
static bool
kick_stopped(const struct control *c)
{
	bool any = false;

	NP_EACH_WORKER (w, c->d->run) {
		enum np_phase phase = np_team_phase_of(c->team, w);

		/* An event wakes a loop that waits for events, unless its load makes it pause. */
		if (phase == NP_LOOPING && w->stop.wake_fd > 0 && !np_load_is_waiting(&w->load)) {
			any |= np_stopped(&w->stop); /* look again: it may be about to pause */
		} else if ((np_stopped(&w->stop) && phase < NP_FINISHING) ||
			   (np_abandoned(&w->stop) && phase < NP_DONE)) {
			np_team_kick(c->team, w);
			any = true;
		}
	}
	return any;
}

/* The control connection is readable or broken: the daemon sent a message, or the far end left. */
static void
read_control(struct control *c)
{
	char byte;
	ssize_t n = recv(c->control_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	c->spoken = true;
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		c->d->lost = errno;
	} else if (n == 0 || !c->d->run->plan->active) {
		/* A client reads messages first: a closing daemon may have sent a reason. A daemon
		 * polls for the end; a reset may be POLLERR alone, with data still readable. */
		c->d->lost = ECONNRESET;
	}
	if (c->d->lost == 0) {
		c->heard_ns = np_now();
		return;
	}
	/* A client that has lost its daemon does not drain. */
	end_test(c, NP_BY_CONTROL, c->d->run->plan->active ? NP_ABANDON : NP_LEAVE);
}

/*
 * Does the end of a data connection end this daemon's test? Not in a ramp, where workers watch
 * them, and not for IP datagrams, where an error is no end.
 */
static bool
ends_by_data(const struct np_run *run, enum np_phase phase)
{
	const struct np_transport *t = run->plan->transport;

	return phase == NP_LOOPING && !run->plan->active && run->side->ends_on_hangup &&
	       run->plan->ramp == 0 && (t->connected || t->admit != NP_ADMIT_IP);
}

/* Poll for the data's end every 20 ms if POLLERR may be of completions (the engine borrows). */
static uint64_t
poll_data_end(struct control *c, enum np_phase phase)
{
	const struct np_run *run = c->d->run;

	if (!run->engine->borrows || !ends_by_data(run, phase)) {
		return NP_NEVER;
	}
	NP_EACH_WORKER (w, run) {
		struct pollfd p = { .fd = w->conn->fd, .events = POLLRDHUP };

		if (poll(&p, 1, 0) > 0 && (p.revents & ~POLLERR) != 0) {
			end_test(c, NP_BY_LOOP, NP_LEAVE);
		}
	}
	return np_deadline(20 * NP_MSEC);
}

/* Sleep until `until`, or until a worker, the far end, the gate or a signal has news. */
static void
wait_for_news(struct control *c, enum np_phase phase, uint64_t until)
{
	const struct np_run *run = c->d->run;
	bool active = run->plan->active;
	struct timespec left;
	uint64_t changes;
	bool wanted;

	c->polls[OF_TEAM] = (struct pollfd){ .fd = c->team->news_fd, .events = POLLIN };
	c->polls[OF_CONTROL] = (struct pollfd){
		.fd = c->control_fd,
		.events = c->spoken ? 0 : (short)(active ? POLLIN | POLLRDHUP : POLLRDHUP),
	};
	c->polls[OF_GATE] = (struct pollfd){
		.fd = c->arrived && !c->let_go ? np_gate_fd(c->d->gate) : -1,
		.events = POLLIN,
	};
	/* A daemon that sends notices the end by the first connection of each worker. */
	wanted = ends_by_data(run, phase) && !run->engine->borrows;
	NP_EACH_WORKER (w, run) {
		c->polls[FIXED + (w - run->worker)] = (struct pollfd){
			.fd = wanted ? w->conn->fd : -1,
			.events = POLLRDHUP,
		};
	}
	if (ppoll(c->polls, FIXED + run->workers, np_left(np_first_wake(until, np_now()), &left),
		  c->d->signals.let_in) <= 0) {
		return;
	}
	(void)!read(c->team->news_fd, &changes, sizeof(changes));
	if (c->polls[OF_CONTROL].revents != 0) {
		if (c->spoken) {
			c->control_fd = -1; /* it broke after that: poll it no more */
		} else {
			read_control(c);
		}
	}
	for (uint32_t i = 0; i < run->workers; i++) {
		if (c->polls[FIXED + i].revents != 0) {
			end_test(c, NP_BY_LOOP, NP_LEAVE);
		}
	}
}

/* The loop of the controller, until all workers are done. */
static void
control_team(struct control *c)
{
	const struct np_run *run = c->d->run;
	const struct np_plan *p = run->plan;
	enum np_phase phase;

	while ((phase = np_team_phase(c->team)) != NP_DONE) {
		uint64_t until = keep_time(c, phase);
		struct np_live *live = c->d->live;
		int n;

		if (phase < NP_LOOPING) {
			np_live_step(live, NP_LIVE_ESTABLISHING, 0);
		} else if (phase > NP_LOOPING) {
			np_live_step(live, NP_LIVE_COLLECTING, 0);
		} else if (c->warm) {
			np_live_step(live, NP_LIVE_MEASURING, c->d->length_ns);
		} else {
			np_live_step(live, NP_LIVE_WARMING_UP, p->warm_up_ms * NP_MSEC);
		}
		np_live_look(live, run);
		until = np_live_until(live, np_min(until, keep_watches(c, phase)));
		until = np_min(until, poll_data_end(c, phase));
		if (kick_stopped(c)) {
			until = np_deadline(2 * NP_MSEC); /* a kick may come too early */
		}
		wait_for_news(c, phase, until);
		/* The first signal ends the loop; the next one ends the wait for data in flight,
		 * and that for results (run/client.c). */
		n = np_signalled(&c->d->signals);
		if (n != c->signals) {
			/* Is there a transaction, or more than a warm-up, to finish for? */
			bool has_result = c->warm && (!p->pattern->transactions ||
						      np_counts_of(run).transactions > 0);

			c->signals = n;
			end_test(c, NP_BY_SIGNAL,
				 n > 1 || phase >= NP_FINISHING || (p->active && !has_result)
				     ? NP_ABANDON
				     : NP_HURRY);
			/* A far end that pauses between bursts notices only this. It then closes,
			 * after end_test(), so that does not look like a failure. */
			if (p->active && c->d->control != NULL && p->far.call.interval_burst > 0) {
				np_chan_half_close(c->d->control);
			}
		}
	}
}

/*
 * A receiver's window of datagrams has the length of the sender's: it opens with the first datagram
 * that counts, or earlier if the end mark shows that the first ones were lost or not due. No window
 * includes the wait for late data or the end mark.
 */
static void
settle_window(const struct control *c)
{
	struct np_run *run = c->d->run;
	struct np_window *win = &run->window;
	/* A sender's window opens one warm-up after connecting began, at the earliest. */
	uint64_t earliest_ns =
	    c->establish_until - c->d->establish_ns + run->plan->warm_up_ms * NP_MSEC;
	/* open_ns: when it opened if it had its whole length. */
	uint64_t first_ns = UINT64_MAX, open_ns = win->ended_ns - win->length_ns;
	bool has_waited = run->plan->active ? counts_late_data(run) : c->d->cause == NP_BY_CLOCK;

	win->opened_ns = win->started_ns;
	NP_EACH_WORKER (w, run) {
		first_ns = w->opened_ns != 0 ? np_min(w->opened_ns, first_ns) : first_ns;
	}
	if (first_ns != UINT64_MAX) {
		/* Did the sender use its whole length? If end marks are lost, a client uses its
		 * clock, or the daemon's results end the test. */
		bool is_whole = win->length_ns > 0 && open_ns >= earliest_ns &&
				(c->d->cause == NP_BY_LOOP ||
				 (run->plan->active &&
				  (c->d->cause == NP_BY_CLOCK || c->d->cause == NP_BY_CONTROL)));

		win->opened_ns = is_whole ? np_min(first_ns, open_ns) : first_ns;
	} else if (!has_waited) {
		return;
	}
	win->ended_ns = np_min(win->ended_ns, np_window_closes(win, win->opened_ns));
}

/* Collect the workers' results: the latest end is that of the window, the first error the run's. */
static void
conclude(const struct control *c)
{
	struct np_run *run = c->d->run;
	const struct np_cpu_times *from = c->cpu != NULL ? c->cpu : c->team->cpu;
	struct np_cpu_times *to = from != NULL ? np_cpu_read("") : NULL;

	if (to != NULL) {
		np_cpu_use(from, to, &run->closing.cpu); /* else it stays unknown */
	}
	free(c->cpu);
	free(to);
	if (!c->warm) {
		run->window.started_ns = 0; /* it ended within the warm-up: no result */
	}
	NP_EACH_WORKER (w, run) {
		uint64_t time_up = run->window.started_ns + c->d->length_ns;

		if (run->window.started_ns != 0 && w->ended_ns > run->window.ended_ns) {
			run->window.ended_ns = w->ended_ns;
		}
		if (c->warm && c->d->length_ns != 0 && !c->saw_time_up) { /* loops ended it first */
			c->d->late_ns = np_max(c->d->late_ns, np_excess(w->left_ns, time_up));
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
	/* c.signals, those taken so far, is 0: signals from before this call are taken, too. */
	struct control c = { .d = d,
			     .control_fd = d->control != NULL ? d->control->fd : -1,
			     .establish_until = np_deadline(d->establish_ns) };
	int rc = NP_OK;

	d->run->control_fd = c.control_fd;
	d->run->round_trips_ns = 2 * np_tcp_round_trip_ns(c.control_fd);
	NP_EACH_WORKER (w, d->run) {
		if (w->timeout_ns > 0) { /* see fit_timeout() */
			w->timeout_ns = np_max(w->timeout_ns, d->run->round_trips_ns);
		}
	}
	d->run->window.length_ns = d->length_ns;
	if (d->team == NULL && np_team_hire(d->run, d->gate != NULL, &d->team, err) != NP_OK) {
		return err->code;
	}
	c.team = d->team;
	c.warm = d->run->plan->warm_up_ms == 0;
	c.waits = calloc(d->run->workers, sizeof(*c.waits));
	c.polls = calloc(FIXED + d->run->workers, sizeof(*c.polls));
	if (c.waits == NULL || c.polls == NULL) {
		rc = np_fail(err, NP_ESYS, ENOMEM, "memory for %u threads", d->run->workers);
	} else {
		np_team_go_on(c.team);
		control_team(&c);
		conclude(&c);
	}
	free(c.waits);
	free(c.polls);
	np_team_dismiss(d->team);
	d->team = NULL;
	return rc;
}
