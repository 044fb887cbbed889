/*
 * The daemon as a process: sessions, and how signals end both them and a test. Where it listens is
 * in tests/e2e/daemon.py.
 */
#include "netserver/daemon.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/session.h"
#include "tests/lib/sockets.h"
#include "wire/msg.h"

static _Atomic int received;
static sem_t came;

static void
on_end(int sig)
{
	received++;
	sem_post(&came);
}

static void
on_child(int sig)
{
}

/* TERM and CHLD only come where the daemon waits, as its main() has it. */
static void
take_signals(struct np_signals *s, sigset_t *let_in)
{
	catch_signal(SIGTERM, on_end, let_in);
	catch_signal(SIGCHLD, on_child, let_in);
	sigdelset(let_in, SIGTERM);
	received = 0;
	s->let_in = let_in;
	s->received = &received;
}

static void
close_all(struct ns_daemon *d)
{
	while (d->listener_count > 0) {
		close(d->listeners[--d->listener_count]);
	}
}

static uint16_t
port_of(int fd)
{
	struct np_addr at = { .len = sizeof(at.sa) };

	assert_int_equal(getsockname(fd, (struct sockaddr *)&at.sa, &at.len), 0);
	return np_addr_port(&at);
}

/* ---- Processes ---- */

/* A daemon in a process of its own. */
struct process {
	pid_t pid;
	struct np_addr at;
};

static void
process_start(struct process *p)
{
	struct np_log log = { .level = NP_LOG_ERROR };
	FREED_BY(close_all) struct ns_daemon d = { .log = &log };
	struct np_err err;
	sigset_t let_in;

	assert_int_equal(ns_daemon_listen(&d, NULL, "0", AF_INET, &err), NP_OK);
	p->at = loopback(AF_INET, port_of(d.listeners[0]));
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid == 0) {
		take_signals(&d.signals, &let_in);
		/* No session is left, not even as a zombie, and no listener. */
		_exit(ns_daemon_run(&d, &err) != NP_OK || d.sessions != NULL ||
		      d.listener_count != 0 || waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD);
	}
}

/* It ends in good order when it is told. Returns whether its sessions did, too, before it had to
 * kill them after 2 s.
 */
static bool
ends(const struct process *p)
{
	uint64_t told = np_now();

	assert_int_equal(kill(p->pid, SIGTERM), 0);
	assert_int_equal(ended(p->pid), 0);
	return np_now() - told < 1500 * NP_MSEC;
}

/* A busy machine may keep sessions from ending for that long now and then. */
static void
assert_ends(bool (*scene)(void))
{
	for (int tries = 0; tries < 5; tries++) {
		if (scene()) {
			return;
		}
	}
	fail_msg("the sessions do not end by themselves");
}

static bool
three_sessions(void)
{
	struct process p;
	bool ended;
	int fd[3];

	process_start(&p);
	for (size_t i = 0; i < LEN(fd); i++) {
		fd[i] = connected_to(&p.at);
	}
	/* The last one is served while the first ones are open. */
	for (size_t i = LEN(fd); i-- > 0;) {
		assert_serves(fd[i]);
	}
	close(fd[0]);
	assert_serves(fd[1]);
	ended = ends(&p);
	for (size_t i = 1; i < LEN(fd); i++) {
		assert_int_equal(read_all(fd[i]), 0);
		close(fd[i]);
	}
	return ended;
}

TEST(sessions_run_side_by_side_and_end_with_their_daemon)
{
	assert_ends(three_sessions);
}

/* Signals come where it waits; one that is never out of work does not wait. */
TEST(a_busy_daemon_ends_at_once)
{
	struct np_log log = { .level = NP_LOG_ERROR };
	FREED_BY(close_all) struct ns_daemon d = { .log = &log };
	struct np_err err;
	sigset_t let_in;
	int always[2], ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(ns_daemon_listen(&d, NULL, "0", AF_INET, &err), NP_OK);
	assert_int_equal(pipe(always), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ready), 0);
	assert_int_equal(write(always[1], "", 1), 1);
	d.status_fd = always[0]; /* readable for ever: accept(2) takes nothing from it */
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		take_signals(&d.signals, &let_in);
		put_bytes(ready[1], "", 1);
		_exit(ns_daemon_run(&d, &err) != NP_OK);
	}
	assert_true(get_bytes(ready[0], &byte, 1));
	usleep(200000); /* so that it works; the signal must end it before that, too */
	assert_int_equal(kill(pid, SIGTERM), 0);
	alarm(20);
	assert_int_equal(ended(pid), 0);
	alarm(0);
	close(always[0]);
	close(always[1]);
	close(ready[0]);
	close(ready[1]);
}

static bool
one_that_has_gone(void)
{
	struct process p;
	int fd;

	process_start(&p);
	fd = connected_to(&p.at);
	assert_serves(fd);
	close(fd);
	return ends(&p);
}

TEST(an_idle_daemon_ends_at_once)
{
	assert_ends(one_that_has_gone);
}

/* ---- Signals in a test ---- */

/* The first one ends the loop, the second one the draining of what nobody takes. */
TEST(signals_end_a_test)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr at;
	sigset_t let_in;
	FREED_BY(close_fd) int mute = bound_socket(AF_INET, SOCK_STREAM, &at);

	client_params(&e.plan, np_bench_find("TCP_STREAM"), AF_INET, 0);
	end_open(&e);
	end_aim(&e, &at);
	take_signals(&e.drive.signals, &let_in);
	end_start(&e);
	assert_int_equal(sem_wait(&e.looping), 0);
	assert_int_equal(pthread_kill(e.thread, SIGTERM), 0);
	assert_int_equal(sem_wait(&came), 0);
	assert_int_equal(pthread_kill(e.thread, SIGTERM), 0);
	end_join(&e);
	assert_int_equal(e.drive.cause, NP_BY_SIGNAL);
	assert_int_equal(e.run.err.code, NP_OK);
	assert_true(np_now() - e.run.window.started_ns < LONG_MS * NP_MSEC);
}

static int
set_up(void **state)
{
	np_drive_prepare();
	return sem_init(&came, 0, 0);
}

int
main(void)
{
	return all_tests(set_up, NULL);
}
