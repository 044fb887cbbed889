#include "base/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitized.h"

void
np_fds_fill(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
			/* open() returns this number, the lowest free one, but its use fails. */
			(void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
		}
	}
}

void
np_fds_close(int fd)
{
	if (fd >= 0) {
		close(fd);
	}
}

int
np_fds_to_null(void)
{
	int null = open("/dev/null", O_RDWR);

	if (null < 0) {
		return -1;
	}
	for (int fd = 0; fd <= 2; fd++) {
		if (dup2(null, fd) < 0) {
			return -1;
		}
	}
	if (null > 2) {
		close(null);
	}
	return 0;
}

/* Close descriptors first to last by one system call. Returns -1 if the system can't do that. */
static int
close_range_at_once(unsigned first, unsigned last)
{
	return first > last ? 0 : (int)syscall(SYS_close_range, first, last, 0U);
}

/* Close descriptors first to last, one by one if need be. */
static void
close_all(unsigned first, unsigned last)
{
	long most = sysconf(_SC_OPEN_MAX); /* no descriptor has this number, or a higher one */

	if (close_range_at_once(first, last) != 0) {
		for (long fd = first; fd <= (long)last && fd < most; fd++) {
			close((int)fd);
		}
	}
}

static int
by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

void
np_fds_close_except(int *keep, size_t count)
{
	unsigned first = 3;

	qsort(keep, count, sizeof(*keep), by_number);
	for (size_t i = 0; i <= count; i++) {
		if (i == count) {
			close_all(first, INT_MAX);
		} else if (keep[i] >= (int)first) {
			close_all(first, (unsigned)keep[i] - 1);
			first = (unsigned)keep[i] + 1;
		}
	}
}

bool
np_fds_unshare(int *keep, size_t count)
{
	/* ThreadSanitizer knows only one table for all threads. Is there close_range(2)? (Nothing
	 * has the number ~0U.) Else it would take a close(2) for each possible descriptor. */
	if (NP_THREAD_SANITIZED || close_range_at_once(~0U, ~0U) != 0 ||
	    unshare(CLONE_FILES) != 0) {
		return false;
	}
	np_fds_close_except(keep, count);
	return true;
}

unsigned
np_fds_raise_limit(unsigned count)
{
	enum { OTHERS = 128 }; /* descriptors for other purposes: evidence alone holds up to 86 */
	rlim_t wanted = (rlim_t)count + OTHERS;
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) != 0) {
		return UINT_MAX;
	}
	if (now.rlim_cur < wanted) {
		struct rlimit more = now;

		more.rlim_cur = now.rlim_max < wanted ? now.rlim_max : wanted;
		now = setrlimit(RLIMIT_NOFILE, &more) == 0 ? more : now;
	}
	return now.rlim_cur < UINT_MAX ? (unsigned)now.rlim_cur : UINT_MAX;
}

/* A buffer for the descriptors sent with a packet. */
union passed {
	struct cmsghdr head;
	char room[CMSG_SPACE(NP_FDS_PASSED * sizeof(int))];
};

bool
np_fds_pass(int over, const void *bytes, size_t size, const int *fds, size_t count)
{
	struct iovec part = { .iov_len = size };
	union passed passed = { .room = { 0 } };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	memcpy(&part.iov_base, &bytes, sizeof(part.iov_base)); /* which the kernel only reads */
	if (count > 0) {
		passed.head.cmsg_level = SOL_SOCKET;
		passed.head.cmsg_type = SCM_RIGHTS;
		passed.head.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&passed.head), fds, count * sizeof(int));
		m.msg_control = &passed;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	return sendmsg(over, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

ssize_t
np_fds_receive(int over, void *bytes, size_t size, int *fds, size_t count, int flags)
{
	struct iovec part = { .iov_base = bytes, .iov_len = size };
	union passed passed;
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = &passed,
			    .msg_controllen = CMSG_LEN(count * sizeof(int)) };
	ssize_t n = recvmsg(over, &m, flags | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL;

	for (size_t i = 0; i < count; i++) {
		fds[i] = -1;
	}
	if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len > CMSG_LEN(0) && c->cmsg_len <= CMSG_LEN(count * sizeof(int))) {
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	}
	return n;
}
