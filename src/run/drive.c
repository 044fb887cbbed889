#include "run/drive.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "bench/transport/many.h"
#include "net/tcpinfo.h"

enum {
	KICK_SIGNAL = SIGUSR1,
	SLACK_S = 60,   /* the longest that a daemon's side goes on after its time */
	LAST_WORD_S = 1 /* for a client's loop to end by itself once the daemon has spoken */
};

enum phase { MEETING, LOOPING, FINISHING, DONE };

struct np_worker_thread {
	struct np_run *run;
	pthread_t thread;
	sem_t told;  /* to begin, or that it is not wanted */
	bool wanted; /* said before that */
	_Atomic int phase;
	int wake_fd;  /* a byte is written here whenever the phase changes */
	int heard_fd; /* where the controller reads them */
};

/* The controller's own state beside what the caller gave. */
struct control {
	struct np_drive *d;
	struct np_worker_thread *w;
	bool spoken; /* the control connection has said something already */
	int signals; /* taken so far */
	uint64_t meet_until;
	uint64_t heard_ns; /* when the daemon sent a message during the client's loop, or 0 */
	uint64_t kicked_ns, kicked_lost; /* the last interruption for patience, and losses then */
	uint64_t seen, seen_ns;     /* activity when last looked at, and since when it stands */
	uint64_t looks[NP_WATCHES]; /* of each watch, so far */
};

static void
on_kick(int sig)
{
	(void)sig;
}

void
np_drive_prepare(void)
{
	struct sigaction sa;
	sigset_t kicks;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_kick;
	sigemptyset(&sa.sa_mask);
	sigaction(KICK_SIGNAL, &sa, NULL);
	/* Whoever started the program may have had it blocked. */
	sigemptyset(&kicks);
	sigaddset(&kicks, KICK_SIGNAL);
	sigprocmask(SIG_UNBLOCK, &kicks, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void
enter(struct np_worker_thread *w, enum phase phase)
{
	ssize_t n;

	atomic_store_explicit(&w->phase, phase, memory_order_release);
	do {
		n = write(w->wake_fd, "", 1);
	} while (n < 0 && errno == EINTR);
}

/* A counted stream has got everything across when the far end has closed on its last message. */
static bool
counted_out(const struct np_run *run)
{
	return run->worker.budget != UINT64_MAX && !run->plan->pattern->transactions &&
	       np_seen(&run->worker.count->sent) + run->worker.send_size >= run->worker.budget;
}

static void
explain(struct np_run *run, int error)
{
	const struct np_transport *t = run->plan->transport;
	char peer[NP_ADDR_TEXT] = "the far end";

	if (np_stopped(run->stop) || run->err.code != NP_OK ||
	    ((error == ECONNRESET || error == EPIPE) && counted_out(run))) {
		return;
	}
	if (run->end.peer.len != 0) {
		np_addr_text(&run->end.peer, peer);
	}
	if (error == EMSGSIZE && t->too_long != NULL) {
		t->too_long(run, &run->err);
	} else if (error == EMSGSIZE && run->worker.send_size <= (size_t)t->max_message) {
		np_fail(&run->err, NP_EUSAGE, error,
			"%zu bytes are more than the path to %s takes in one piece (leave out -f)",
			run->worker.send_size, peer);
	} else if (error == EMSGSIZE) {
		np_fail(&run->err, NP_EUSAGE, error,
			"send %zu bytes as one %s message (try -%c %d or less)",
			run->worker.send_size, t->name, run->plan->pattern->sized ? 'r' : 'm',
			t->max_message);
	} else if (error == ENETUNREACH && run->plan->no_route) {
		np_fail(&run->err, NP_ESYS, error,
			"%s is not on a network of this machine (try -R 1)", peer);
	} else if (run->hung_up) {
		np_fail(&run->err, NP_EPEER, error, "data connection with %s closed early", peer);
	} else {
		np_fail(&run->err, NP_ESYS, error, "data connection with %s", peer);
	}
}

/* This machine's CPU utilisation since the reading `from`; what can't be read stays unknown. */
static void
note_cpu(struct np_run *run, struct np_cpu_times *from)
{
	struct np_cpu_times *to = NULL;
	struct np_err err;

	if (from != NULL && np_cpu_read(NULL, &to, &err) == NP_OK) {
		np_cpu_use(from, to, &run->closing.cpu);
	}
	np_cpu_free(from);
	np_cpu_free(to);
}

/*
 * A table of descriptors of the worker's own, with those of its connections and what it needs
 * beside. Returns false where it has the one of all, which is slower.
 */
static bool
own_table(const struct np_worker_thread *w)
{
	const struct np_run *run = w->run;
	const int others[] = { run->end.listen_fd, run->worker.file_fd, run->end.held_fd,
			       w->wake_fd, run->stop->wake_fd };
	size_t count = sizeof(others) / sizeof(others[0]);
	int *keep = malloc((count + run->conns) * sizeof(*keep));
	bool own;

	if (keep == NULL) {
		return false;
	}
	memcpy(keep, others, sizeof(others));
	for (uint32_t i = 0; i < run->conns; i++) {
		keep[count++] = run->conn[i].fd;
	}
	own = np_fds_own(keep, count);
	free(keep);
	return own;
}

/* Copies: the caller's stay open, and are the last ones when it closes them. */
static void
close_copies(const struct np_run *run)
{
	for (uint32_t i = 0; i < run->conns; i++) {
		close(run->conn[i].fd);
	}
	close(run->end.listen_fd);
}

/* The window: the worker's connections are driven. */
static int
drive_window(struct np_worker_thread *w)
{
	struct np_run *run = w->run;
	int rc;

	if (run->worker.thread != NULL) {
		np_thread_begin(run->worker.thread);
	}
	run->window.started_ns = np_now();
	np_worker_begin(&run->worker, run->window.started_ns);
	enter(w, LOOPING);
	rc = run->worker.loop(&run->worker);
	run->window.ended_ns = np_now();
	if (run->worker.thread != NULL) {
		np_thread_end(run->worker.thread);
	}
	if (run->side->settle != NULL) {
		run->side->settle(&run->worker);
	}
	np_worker_end(&run->worker);
	return rc;
}

/* The measured part and what follows. */
static void
measure(struct np_worker_thread *w)
{
	struct np_run *run = w->run;
	bool own = own_table(w);
	struct np_cpu_times *cpu = NULL;
	struct np_err err;
	int rc;

	if (run->plan->near.place.measure_cpu && np_cpu_read(NULL, &cpu, &err) != NP_OK) {
		cpu = NULL;
	}
	rc = drive_window(w);
	if (rc < 0) {
		explain(run, -rc);
	}
	enter(w, FINISHING);
	if (run->side->finish != NULL) {
		run->side->finish(run);
	}
	note_cpu(run, cpu);
	if (own) {
		close_copies(run);
	}
}

static bool
has_all(const struct np_run *run)
{
	for (uint32_t i = 0; i < run->conns; i++) {
		if (run->conn[i].fd < 0) {
			return false;
		}
	}
	return true;
}

static void *
work(void *arg)
{
	struct np_worker_thread *w = arg;
	struct np_run *run = w->run;
	bool met = run->side->steps != NULL && run->side->steps->open != NULL;

	while (sem_wait(&w->told) != 0) {
	}
	if (!w->wanted) {
		return NULL;
	}
	if (!met) {
		met = np_run_meet(run, &run->err) == NP_OK && has_all(run);
	}
	if (met) {
		measure(w);
	}
	enter(w, DONE);
	return NULL;
}

static enum phase
phase_of(const struct control *c)
{
	return (enum phase)atomic_load_explicit(&c->w->phase, memory_order_acquire);
}

/* What this side can see of the far end's work, and of what the far end takes. */
static uint64_t
activity(const struct np_run *run)
{
	return np_seen(&run->worker.count->receives) + np_seen(&run->worker.count->transactions) +
	       np_seen(&run->worker.count->sends);
}

/* The same for a test without an end in sight, where one message may take long to get across. */
static uint64_t
progress(const struct np_run *run)
{
	int fd = np_run_lasting_fd(run);
	bool tcp = fd >= 0 && run->plan->transport->tcp_info;

	return activity(run) + (tcp ? np_tcp_moved(fd) : 0);
}

/* For how long nothing has moved. A loop that sleeps by its own will is not waiting for anything.
 */
static uint64_t
silence(struct control *c, uint64_t did, uint64_t now)
{
	if (did != c->seen || c->seen_ns == 0 || np_load_resting(&c->d->run->worker.load)) {
		c->seen = did;
		c->seen_ns = now;
	}
	return now - c->seen_ns;
}

static void
end(struct control *c, enum np_cause cause, int level)
{
	if (!np_stopped(c->d->run->stop)) {
		c->d->cause = cause;
	}
	np_stop(c->d->run->stop, level);
}

/*
 * A daemon's side whose far end times the test: its own time is up, but what still comes in counts.
 * Returns when to look again, or 0 when the far end has been silent for long enough.
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
	if (silence(c, did, now) >= pad || now >= time_up + SLACK_S * NP_SEC) {
		return 0;
	}
	return now + 20 * NP_MSEC;
}

/*
 * The daemon has sent its results, or an error: for it the test is over. What it sent before that
 * may still be on its way, so a receiving loop goes on while something comes.
 */
static uint64_t
await_own_end(struct control *c, uint64_t now)
{
	const struct np_plan *p = c->d->run->plan;
	bool transmits = !p->pattern->transactions && p->role == NP_LEAD;
	uint64_t limit = LAST_WORD_S * NP_SEC;

	if (silence(c, activity(c->d->run), now) >= limit ||
	    (transmits && now - c->heard_ns >= limit)) {
		end(c, NP_BY_CONTROL, 1);
		return NP_NEVER;
	}
	return now + 20 * NP_MSEC;
}

/* A loop that no clock ends must not wait for a far end that has died without a word. */
static uint64_t
await_progress(struct control *c, uint64_t now)
{
	if (!c->d->run->plan->active) {
		return NP_NEVER; /* the client is watched on the control connection */
	}
	if (silence(c, progress(c->d->run), now) >=
	    NP_STALL_S * NP_SEC + np_load_longest(c->d->run->plan)) {
		end(c, NP_BY_SILENCE, 2);
		return NP_NEVER;
	}
	return now + NP_SEC / 2;
}

/*
 * Interrupt a wait that has lasted too long; the loop then counts a loss. An interruption that came
 * a moment before the wait is not heard, and repeated.
 */
static uint64_t
keep_patience(struct control *c, uint64_t now)
{
	const struct np_run *run = c->d->run;
	uint64_t lost = np_seen(&run->worker.count->lost);
	bool unheard = c->kicked_ns != 0 && lost == c->kicked_lost;

	if (silence(c, activity(run), now) >= run->worker.patience_ns &&
	    (unheard || now - c->kicked_ns >= run->worker.patience_ns)) {
		c->kicked_ns = now;
		c->kicked_lost = lost;
		pthread_kill(c->w->thread, KICK_SIGNAL);
	}
	return now + run->worker.patience_ns / 10;
}

static uint64_t
sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A test that no clock ends must not last for ever, either, where somebody set a limit. */
static uint64_t
keep_limit(struct control *c, uint64_t now)
{
	uint64_t until = c->d->run->window.started_ns + c->d->limit_ns;

	if (c->d->limit_ns == 0 || c->d->length_ns != 0) {
		return NP_NEVER;
	}
	if (now < until) {
		return until;
	}
	end(c, NP_BY_LIMIT, 1);
	return NP_NEVER;
}

static uint64_t
keep_test_time(struct control *c, uint64_t now)
{
	const struct np_run *run = c->d->run;
	uint64_t again = c->heard_ns != 0 ? await_own_end(c, now) : NP_NEVER;
	uint64_t time_up = run->window.started_ns + c->d->length_ns;
	bool waits = !run->plan->active && run->side->pad_ns != 0;

	if (run->worker.patience_ns != 0 && run->stop->wake_fd == 0) {
		again = sooner(again, keep_patience(c, now));
	}
	again = sooner(again, keep_limit(c, now));
	if (c->d->length_ns == 0) {
		return c->heard_ns != 0 ? again : sooner(again, await_progress(c, now));
	}
	if (now < time_up) {
		return sooner(again, time_up);
	}
	again = waits ? await_silence(c, time_up, now) : 0;
	if (again == 0) {
		end(c, NP_BY_CLOCK, 1);
		return NP_NEVER;
	}
	return again;
}

/* The controller's next appointment; ends the loop when it is due. */
static uint64_t
keep_time(struct control *c, enum phase phase)
{
	uint64_t now = np_now();

	if (phase == LOOPING) {
		return keep_test_time(c, now);
	}
	if (phase != MEETING) {
		return NP_NEVER;
	}
	if (now < c->meet_until) {
		return c->meet_until;
	}
	end(c, NP_BY_SILENCE, 2);
	return NP_NEVER;
}

/* Let a watch look when that is due. Times are counted from the start: they do not drift. */
static uint64_t
keep_watch(const struct np_run *run, const struct np_watch *w, uint64_t *looks)
{
	uint64_t now = np_now();
	uint64_t due = run->window.started_ns + (*looks + 1) * w->every_ns;

	if (now < due) {
		return due;
	}
	w->look(w->ctx, run, now);
	*looks = (now - run->window.started_ns) / w->every_ns;
	return run->window.started_ns + (*looks + 1) * w->every_ns;
}

static uint64_t
keep_watches(struct control *c, enum phase phase)
{
	const struct np_run *run = c->d->run;
	uint64_t next = NP_NEVER;

	for (int i = 0; i < NP_WATCHES && phase == LOOPING && !np_stopped(run->stop); i++) {
		if (c->d->watch[i].every_ns != 0) {
			next = sooner(next, keep_watch(run, &c->d->watch[i], &c->looks[i]));
		}
	}
	return next;
}

/* Get a worker out of the system call it may sleep in, until it has heard. */
static bool
kick(struct control *c, enum phase phase)
{
	const struct np_stop *stop = c->d->run->stop;

	/* A loop that waits for events hears by the stop's own, unless its load lets it sleep. */
	if (phase == LOOPING && stop->wake_fd > 0 && !np_load_resting(&c->d->run->worker.load)) {
		return np_stopped(stop);
	}
	if ((np_stopped(stop) && phase < FINISHING) || (np_abandoned(stop) && phase < DONE)) {
		pthread_kill(c->w->thread, KICK_SIGNAL);
		return true;
	}
	return false;
}

/* The first signal ends the loop; one that comes when it has ended ends the wait for the rest. */
static void
take_signals(struct control *c, enum phase phase)
{
	int n = np_signalled(&c->d->signals);

	if (n != c->signals) {
		c->signals = n;
		end(c, NP_BY_SIGNAL, n > 1 || phase >= FINISHING ? 2 : 1);
	}
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
		/*
		 * A daemon that closes may have said why before: then the message counts. At the
		 * daemon's side any event is an end, as it asks for no others; a reset may show as
		 * POLLERR alone at first, and what the client had sent before it be readable still.
		 */
		c->d->lost = ECONNRESET;
	}
	if (c->d->lost == 0) {
		c->heard_ns = np_now();
		return;
	}
	/* A client that has lost its daemon has nobody to drain towards. */
	end(c, NP_BY_CONTROL, c->d->run->plan->active ? 2 : 1);
}

static void
wait_for_news(struct control *c, enum phase phase, uint64_t until)
{
	const struct np_run *run = c->d->run;
	bool active = run->plan->active;
	bool watch_data = phase == LOOPING && !active && run->side->ends_on_hangup;
	struct pollfd p[3] = {
		{ .fd = c->w->heard_fd, .events = POLLIN },
		{ .fd = c->d->control_fd,
		  .events = c->spoken ? 0 : (short)(active ? POLLIN | POLLRDHUP : POLLRDHUP) },
		{ .fd = watch_data ? np_run_lasting_fd(run) : -1, .events = POLLRDHUP },
	};
	struct timespec left;
	char bytes[16];

	if (ppoll(p, 3, np_left(until, &left), c->d->signals.let_in) <= 0) {
		return;
	}
	while (read(c->w->heard_fd, bytes, sizeof(bytes)) > 0) {
	}
	if (p[1].revents != 0) {
		if (c->spoken) {
			c->d->control_fd = -1;
		} else {
			hear_control(c);
		}
	}
	if (p[2].revents != 0) {
		end(c, NP_BY_LOOP, 1);
	}
}

static void
control_worker(struct control *c)
{
	enum phase phase;

	while ((phase = phase_of(c)) != DONE) {
		uint64_t until = keep_time(c, phase);

		until = sooner(until, keep_watches(c, phase));
		if (kick(c, phase)) {
			until = np_deadline(2 * NP_MSEC);
		}
		wait_for_news(c, phase, until);
		take_signals(c, phase);
	}
}

static int
start(struct np_worker_thread *w, struct np_err *err)
{
	int wake[2], rc;

	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) {
		return np_fail(err, NP_ESYS, errno, "make a pipe between two threads");
	}
	w->heard_fd = wake[0];
	w->wake_fd = wake[1];
	sem_init(&w->told, 0, 0);
	rc = pthread_create(&w->thread, NULL, work, w);
	if (rc != 0) {
		close(wake[0]);
		close(wake[1]);
		return np_fail(err, NP_ESYS, rc, "start a thread");
	}
	return NP_OK;
}

/* One that waits to be told; NULL, and err says why. */
static struct np_worker_thread *
hire(struct np_run *run, struct np_err *err)
{
	struct np_worker_thread *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		np_fail(err, NP_ESYS, ENOMEM, "start a thread");
		return NULL;
	}
	w->run = run;
	if (start(w, err) != NP_OK) {
		free(w);
		return NULL;
	}
	return w;
}

int
np_drive_hold(struct np_drive *d, struct np_err *err)
{
	d->worker = hire(d->run, err);
	return d->worker != NULL ? NP_OK : err->code;
}

static void
tell(struct np_worker_thread *w, bool wanted)
{
	w->wanted = wanted;
	sem_post(&w->told);
}

static void
dismiss(struct np_drive *d)
{
	struct np_worker_thread *w = d->worker;

	pthread_join(w->thread, NULL);
	sem_destroy(&w->told);
	close(w->heard_fd);
	close(w->wake_fd);
	free(w);
	d->worker = NULL;
}

void
np_drive_release(struct np_drive *d)
{
	if (d->worker != NULL) {
		tell(d->worker, false);
		dismiss(d);
	}
}

int
np_drive(struct np_drive *d, struct np_err *err)
{
	/* Signals that came before, while nothing ran, count as well: the user wants the end. */
	struct control c = { .d = d, .meet_until = np_deadline(d->meet_ns) };

	d->cause = NP_BY_LOOP;
	d->lost = 0;
	if (d->worker == NULL) {
		d->worker = hire(d->run, err);
	}
	if (d->worker == NULL) {
		return err->code;
	}
	c.w = d->worker;
	tell(d->worker, true);
	control_worker(&c);
	dismiss(d);
	return NP_OK;
}
