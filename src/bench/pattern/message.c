#include "bench/pattern/message.h"

#include <errno.h>

int
np_message_send_rest(struct np_run *run, int fd, const char *buf, size_t size, ssize_t n)
{
	size_t done = n > 0 ? (size_t)n : 0;

	while (done < size) {
		if (n < 0 && errno != EINTR) {
			return -errno;
		}
		if (np_stopped(run->stop)) {
			return NP_LEAVE;
		}
		n = run->plan->use_write ? np_sys_write(fd, buf + done, size - done)
					 : np_sys_send(fd, buf + done, size - done);
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int
np_message_recv_rest(struct np_run *run, int fd, char *buf, size_t size, ssize_t n, uint64_t *more)
{
	size_t done = n > 0 ? (size_t)n : 0;

	while (done < size) {
		if (n == 0) {
			run->hung_up = true;
			return NP_LEAVE;
		}
		if (n < 0 && errno != EINTR) {
			return -errno;
		}
		if (np_stopped(run->stop)) {
			return NP_LEAVE;
		}
		n = np_sys_recv(fd, buf + done, size - done);
		if (n > 0) {
			*more += done > 0;
			done += (size_t)n;
		}
	}
	return 0;
}
