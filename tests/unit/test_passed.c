/*
 * Descriptors that are passed to the daemon: none has it wait.
 */
#include "netserver/passed.h"

#include <sys/un.h>

#include "base/clock.h"
#include "netserver/status.h"
#include "tests/lib/check.h"
#include "tests/lib/sockets.h"

/* As in passed.c: headers may be older than the kernel. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

enum { LINGER_S = 60 }; /* far beyond LONG_MS, within which all of this has to be done */

static bool
kernel_refuses(int fd)
{
	int on;
	socklen_t len = sizeof(on);

	return getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, &len) == 0;
}

struct pair {
	int daemon, session;
	uint64_t began_ns;
};

static void
open_pair(struct pair *p)
{
	int fd[2];

	ns_passed_begin();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
	p->daemon = fd[0];
	p->session = fd[1];
	p->began_ns = np_now();
}

static void
close_pair(struct pair *p)
{
	ns_passed_close(p->daemon);
	close(p->session);
	assert_true(np_now() - p->began_ns < LONG_MS * NP_MSEC);
}

/* Sends a word with `count` sockets that linger, which only the receiver has then. */
static void
send_lingering(int via, size_t count, int *listeners)
{
	int fds[8];

	for (size_t i = 0; i < count; i++) {
		fds[i] = lingering_socket(LINGER_S, &listeners[i]);
		assert_true(fds[i] >= 0);
	}
	assert_true(pass_descriptors(via, "word", 4, fds, count));
	for (size_t i = 0; i < count; i++) {
		close(fds[i]);
	}
}

static void
close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		close(fds[i]);
	}
}

TEST(they_are_gone_when_their_word_is_read)
{
	FREED_BY(close_pair) struct pair p;
	char word[8];
	bool more;
	int listeners[3];

	open_pair(&p);
	assert_int_equal(ns_passed_recv(p.daemon, word, sizeof(word), &more), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(send(p.session, "word", 4, 0), 4);
	assert_int_equal(ns_passed_recv(p.daemon, word, sizeof(word), &more), 4);
	assert_memory_equal(word, "word", 4);
	assert_false(more);
	assert_int_equal(send(p.session, "word", 4, 0), 4);
	assert_int_equal(ns_passed_recv(p.daemon, word, 2, &more), 2);
	assert_true(more);
	send_lingering(p.session, LEN(listeners), listeners);
	assert_int_equal(ns_passed_recv(p.daemon, word, sizeof(word), &more), 4);
	assert_true(more);
	close_all(listeners, LEN(listeners));
}

TEST(what_was_not_read_is_closed_with_its_socket)
{
	struct pair p;
	int listeners[2];

	open_pair(&p);
	send_lingering(p.session, LEN(listeners), listeners);
	close_pair(&p); /* while the far ends are there: then closing would linger */
	close_all(listeners, LEN(listeners));
}

TEST(who_may_not_is_refused)
{
	struct pair p;
	int none = 0;

	open_pair(&p);
	if (!kernel_refuses(p.daemon)) {
		close_pair(&p);
		printf("SKIP: no SO_PASSRIGHTS in this kernel\n");
		skip();
	}
	ns_passed_refuse(p.daemon);
	assert_false(pass_descriptors(p.session, "word", 4, &none, 1));
	assert_int_equal(errno, EPERM);
	assert_int_equal(send(p.session, "word", 4, 0), 4);
	close_pair(&p);
}

/* --- the status socket, which every user of the machine reaches --- */

static int
ask_status(const char *port)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "plumbline/netserver/%s/status",
			 port);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);

	assert_int_equal(connect(fd, (struct sockaddr *)&un, len), 0);
	return fd;
}

TEST(who_asks_for_status_holds_nobody_up)
{
	static const int on = 1;
	static struct ns_daemon d = { .port = "1" };
	int listener, asker, stuck, none = 0;
	uint64_t began_ns = np_now();
	char port[8];
	struct np_err err;

	ns_passed_begin();
	snprintf(port, sizeof(port), "%u", 60000U + (unsigned)getpid() % 5000);
	listener = ns_status_listen(port, &err);
	fail_if(listener < 0, "%s", err.msg);
	d.status_fd = listener;
	d.owner = geteuid();
	if (kernel_refuses(listener)) {
		asker = ask_status(port);
		assert_false(pass_descriptors(asker, "?", 1, &none, 1));
		ns_status_answer(&d);
		close(asker);
		/* As with an older kernel. */
		assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on)),
				 0);
	}
	asker = ask_status(port);
	send_lingering(asker, 1, &stuck);
	ns_status_answer(&d);
	close(asker);
	assert_true(np_now() - began_ns < LONG_MS * NP_MSEC);
	close(stuck);
	close(listener);
}

TEST_MAIN()
