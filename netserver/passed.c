#include "netserver/passed.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#if !defined(SO_PASSRIGHTS) && !defined(__sparc__) && !defined(__hppa__)
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

enum {
	INTERVAL_US = 5000
}; /* before the first signal that ends a lingering close, and after each */

static void
on_alarm(int sig)
{
	(void)sig; /* the signal itself ends the wait in the kernel */
}

void
ns_passed_begin(void)
{
	const struct sigaction sa = { .sa_handler = on_alarm };
	sigset_t alarm_only;

	sigaction(SIGALRM, &sa, NULL);
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &alarm_only, NULL);
}

/* Send SIGALRM at intervals, to end a linger in close(2): a single one may come too early. */
static void
interrupt_linger(bool on)
{
	const struct timeval each = { .tv_usec = on ? INTERVAL_US : 0 };
	const struct itimerval timer = { .it_interval = each, .it_value = each };

	setitimer(ITIMER_REAL, &timer, NULL);
}

void
ns_passed_refuse(int fd)
{
#ifdef SO_PASSRIGHTS
	const int on = 0;

	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
#endif
}

ssize_t
ns_passed_recv(int from, void *bytes, size_t size, bool *more)
{
	struct iovec part = { .iov_base = bytes, .iov_len = size };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;
	int error;

	interrupt_linger(true); /* recvmsg() closes what was sent beside it, which may linger */
	n = recvmsg(from, &m, MSG_DONTWAIT);
	error = errno;
	interrupt_linger(false);
	errno = error;
	*more = n >= 0 && (m.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0;
	return n;
}

void
ns_passed_close(int fd)
{
	const struct linger none = { .l_onoff = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	interrupt_linger(true);
	close(fd);
	interrupt_linger(false);
}
