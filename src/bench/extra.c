#include "bench/extra.h"

#include <string.h>

#include "bench/engine/syscall.h"
#include "bench/run.h"

bool
np_extra_wanted(const struct np_run *run)
{
	const struct np_end *e = &run->plan->near;

	return e->interval_burst > 0 || e->dirty > 0 || e->clean > 0 || run->plan->use_write;
}

static size_t
within(int32_t bytes, size_t limit)
{
	return bytes > 0 && (size_t)bytes < limit ? (size_t)bytes : bytes > 0 ? limit : 0;
}

void
np_extra_touch(struct np_run *run, char *buf, size_t size)
{
	const struct np_end *e = &run->plan->near;
	size_t head = within(run->plan->transport->header, size); /* is not the user's */
	size_t rest = size - head;
	size_t dirty = within(e->dirty, rest), end = dirty + within(e->clean, rest - dirty);
	volatile unsigned char sink; /* what is read must not be optimised away */
	unsigned char sum = 0;

	buf += head;
	memset(buf, ++run->worker.ink, dirty);
	for (size_t i = dirty; i < end; i++) {
		sum ^= (unsigned char)buf[i];
	}
	sink = sum;
	(void)sink;
}

ssize_t
np_extra_put(struct np_run *run, int fd, const char *buf, size_t size, const void *to,
	     socklen_t to_len)
{
	if (run->plan->use_write && to == NULL) {
		return np_sys_write(fd, buf, size);
	}
	return np_sys_sendto(fd, buf, size, to, to_len);
}

ssize_t
np_extra_send(struct np_run *run, int fd, char *buf, size_t size, const void *to, socklen_t to_len)
{
	np_extra_touch(run, buf, size);
	return np_extra_put(run, fd, buf, size, to, to_len);
}

ssize_t
np_extra_recv(struct np_run *run, int fd, char *buf, size_t size)
{
	np_extra_touch(run, buf, size);
	return np_sys_recv(fd, buf, size);
}
