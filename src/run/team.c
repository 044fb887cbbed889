#include "run/team.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "bench/open.h"
#include "sys/cpu.h"

struct np_member {
	struct np_team *team;
	struct np_worker *w;
	pthread_t thread;
	sem_t told; /* posted when it may go on */
	_Atomic int phase;
};

/* Enter a phase, and wake the controller, which then sees all that the worker wrote before. */
static void
enter_phase(struct np_member *m, enum np_phase phase)
{
	static const uint64_t one = 1;

	atomic_store_explicit(&m->phase, (int)phase, memory_order_release);
	(void)!write(m->team->news_fd, &one, sizeof(one)); /* it can't overflow */
}

/* Wait for tell_others(), also if np_team_kick() interrupts. */
static void
wait_to_be_told(struct np_member *m)
{
	while (sem_wait(&m->told) != 0) {
	}
}

/* Let each thread go on to its next wait, all but one; NULL: all. */
static void
tell_others(struct np_team *team, const struct np_member *but)
{
	for (uint32_t i = 0; i < team->count; i++) {
		if (&team->member[i] != but) {
			sem_post(&team->member[i].told);
		}
	}
}

/* Describe in w->err why a worker's loop ended with that errno, unless it was told to end. */
static void
explain_failure(struct np_worker *w, int error)
{
	const struct np_run *run = w->run;
	const struct np_transport *t = run->plan->transport;
	const char *peer = run->end.peer.len != 0 ? NP_ADDR_STR(&run->end.peer) : "the far end";
	/* The far end of a counted stream closes when it has the last message. */
	bool has_all = w->budget != UINT64_MAX && !run->plan->pattern->transactions &&
		       np_get(&w->count->sent) + w->send_size >= w->budget;

	if (np_stopped(run->stop) || w->err.code != NP_OK ||
	    ((error == ECONNRESET || error == EPIPE) && has_all)) {
		return;
	}
	if (error == t->message.too_long_as && error != 0) {
		error = EMSGSIZE;
	}
	if (error == EMSGSIZE && t->message.too_long != NULL) {
		t->message.too_long(run, &w->err);
	} else if (error == EMSGSIZE && w->send_size <= (size_t)t->message.max) {
		np_fail(&w->err, NP_EUSAGE, error,
			"%zu bytes do not fit into one packet on the path to %s (leave out -f)",
			w->send_size, peer);
	} else if (error == EMSGSIZE) {
		np_fail(&w->err, NP_EUSAGE, error,
			"send %zu bytes as one %s message (try -%c %d or less)", w->send_size,
			t->name, run->plan->pattern->sized ? 'r' : 'm', t->message.max);
	} else if (w->hung_up) {
		np_fail(&w->err, NP_EPEER, error, "data connection with %s closed early", peer);
	} else {
		np_fail(&w->err, NP_ESYS, error, "data connection with %s", peer);
	}
}

/* Unshare the descriptors: in a shared table each call counts references. False: still shared. */
static bool
unshare_descriptors(const struct np_member *m)
{
	const struct np_worker *w = m->w;
	const int others[] = { w->run->end.listen_fd, w->file.fd,      w->run->end.held_fd,
			       m->team->news_fd,      w->stop.wake_fd, w->engine.fd };
	size_t count = sizeof(others) / sizeof(others[0]);
	int *keep = malloc((count + w->conns) * sizeof(*keep));
	bool own;

	if (keep == NULL || (w->run->plan->ramp > 0 && !w->run->plan->active)) {
		free(keep); /* connections of a ramp are watched and closed by others */
		return false;
	}
	memcpy(keep, others, sizeof(others));
	for (uint32_t i = 0; i < w->conns; i++) {
		keep[count++] = w->conn[i].fd;
	}
	own = np_fds_unshare(keep, count);
	free(keep);
	return own;
}

/* Run the loop of a worker: during a warm-up, then again for the window, then for late answers. */
static int
drive_window(struct np_member *m)
{
	struct np_worker *w = m->w;
	int rc;

	if (m->team->count == 1 && !m->team->gated) { /* no other thread shares the window */
		w->run->window.started_ns = np_now();
	}
	np_worker_begin(w, np_now());
	enter_phase(m, NP_LOOPING);
	do {
		rc = w->budget > 0 ? w->loop(w) : 0; /* 0: other workers do all of a small count */
	} while (rc == 0 && np_stop_take_mark(&w->stop) && np_worker_mark(w));
	if (!w->goes_on && w->run->plan->warm_up_ms > 0) {
		/* It ended within the warm-up: nothing counts. The window may open meanwhile. */
		np_worker_forget(w);
	}
	w->ended_ns = np_now();
	w->left_ns = w->left_ns != 0 ? w->left_ns : w->ended_ns;
	if (w->use.root != NULL) {
		np_thread_end(&w->use);
	}
	if (np_open_drains(w)) { /* an open loop, with answers still to come */
		np_engine_epoll.run(w);
		w->error = 0; /* it may be the far end's close, which is no error now */
		w->err.code = NP_OK;
	}
	np_open_settle(w);
	if (w->run->side->settle != NULL) {
		w->run->side->settle(w);
	}
	np_worker_end(w);
	return rc;
}

/* A worker's part of a test, once connected: the wait for the others, the window, its finish. */
static void
run_member(struct np_member *m)
{
	struct np_worker *w = m->w;
	bool own = unshare_descriptors(m);
	struct np_team *team = m->team;
	bool is_last;
	int rc = 0;

	/* Once for the whole machine. */
	if (w == w->run->worker && w->run->plan->near.place.measure_cpu) {
		team->cpu = np_cpu_read("");
	}
	if (w->use.root != NULL) { /* evidence is collected */
		np_thread_open(&w->use);
		np_thread_begin(&w->use);
	}
	/* Wait until all are ready. The last one opens the window, unless the gate does. */
	enter_phase(m, NP_READY);
	is_last = atomic_fetch_add(&team->ready, 1) + 1 == team->count;
	if (is_last && !team->gated) {
		team->run->window.started_ns = np_now();
		tell_others(team, m);
	} else {
		wait_to_be_told(m);
	}
	if (w->run->window.started_ns != 0) { /* 0: stopped, or the gate failed */
		rc = drive_window(m);
	}
	np_perf_close(&w->use.perf);
	if (rc < 0) { /* before enter_phase(), after which the controller reads w->err */
		explain_failure(w, -rc);
	}
	enter_phase(m, NP_FINISHING);
	if (w->run->side->finish != NULL && w->run->window.started_ns != 0) {
		w->run->side->finish(w);
	}
	if (w->run->engine->finish != NULL && w->run->window.started_ns != 0) {
		w->run->engine->finish(w);
	}
	if (own) {
		/* These are duplicates; the caller closes the originals. */
		for (uint32_t i = 0; i < w->conns; i++) {
			close(w->conn[i].fd);
		}
		close(w->run->end.listen_fd);
	}
}

/* The thread of a worker; the first one makes the connections of all. */
static void *
run_thread(void *arg)
{
	struct np_member *m = arg;
	struct np_team *team = m->team;
	struct np_run *run = team->run;
	int cpu = np_cpu_turn(&run->plan->near.place.turns, (uint32_t)(m->w - run->worker));

	wait_to_be_told(m);
	if (!team->wanted) { /* np_team_dismiss() without a test */
		return NULL;
	}
	if (cpu >= 0) {
		(void)np_bind_cpu(cpu, NULL); /* if it fails, `bound` shows it */
	}
	m->w->bound = np_cpu_bound();
	if (m->w == run->worker) {
		bool later = run->plan->ramp > 0 || /* they are made in the loop */
			     (run->side->steps != NULL && run->side->steps->open != NULL);

		team->established = later || np_run_establish(run, &run->err) == NP_OK;
		for (uint32_t i = 0; i < run->conns && !later; i++) {
			team->established &= run->conn[i].fd >= 0; /* missing: it was stopped */
		}
		tell_others(team, m);
	} else {
		wait_to_be_told(m);
	}
	if (team->established) {
		run_member(m);
	}
	enter_phase(m, NP_DONE);
	return NULL;
}

enum np_phase
np_team_phase_of(const struct np_team *team, const struct np_worker *w)
{
	const struct np_member *m = &team->member[w - team->run->worker];

	return (enum np_phase)atomic_load_explicit(&m->phase, memory_order_acquire);
}

enum np_phase
np_team_phase(const struct np_team *team)
{
	enum np_phase least = NP_DONE;

	NP_EACH_WORKER (w, team->run) {
		enum np_phase phase = np_team_phase_of(team, w);

		least = phase < least ? phase : least;
	}
	return least;
}

void
np_team_kick(const struct np_team *team, const struct np_worker *w)
{
	pthread_kill(team->member[w - team->run->worker].thread, NP_KICK_SIGNAL);
}

void
np_team_go_on(struct np_team *team)
{
	team->wanted = true;
	tell_others(team, NULL);
}

int
np_team_hire(struct np_run *run, bool gated, struct np_team **out, struct np_err *err)
{
	struct np_team *team = calloc(1, sizeof(*team));
	int rc;

	*out = team;
	if (team == NULL || (team->member = calloc(run->workers, sizeof(*team->member))) == NULL ||
	    (team->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
		np_fail(err, NP_ESYS, errno, "start a thread");
		free(team != NULL ? team->member : NULL);
		free(team);
		*out = NULL;
		return err->code;
	}
	team->run = run;
	team->gated = gated;
	for (; team->count < run->workers; team->count++) {
		struct np_member *m = &team->member[team->count];

		m->team = team;
		m->w = &run->worker[team->count];
		sem_init(&m->told, 0, 0);
		rc = pthread_create(&m->thread, NULL, run_thread, m);
		if (rc != 0) {
			np_fail(err, NP_ESYS, rc, "start thread %u of %u (fewer --threads?)",
				team->count + 1, run->workers);
			sem_destroy(&m->told);
			np_team_dismiss(team);
			*out = NULL;
			return err->code;
		}
	}
	return NP_OK;
}

void
np_team_dismiss(struct np_team *team)
{
	if (!team->wanted) {
		tell_others(team, NULL);
	}
	for (uint32_t i = 0; i < team->count; i++) {
		pthread_join(team->member[i].thread, NULL);
		sem_destroy(&team->member[i].told);
	}
	close(team->news_fd);
	free(team->cpu);
	free(team->member);
	free(team);
}
