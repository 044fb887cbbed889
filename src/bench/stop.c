#include "bench/stop.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

void
np_stop(struct np_stop *s, int level)
{
	static const uint64_t one = 1;

	if (atomic_load_explicit(&s->level, memory_order_relaxed) >= level) {
		return;
	}
	atomic_store_explicit(&s->level, level, memory_order_relaxed);
	if (s->wake_fd > 0) {
		(void)!write(s->wake_fd, &one, sizeof(one)); /* it can't overflow */
	}
}

int
np_stop_open(struct np_stop *s)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0) {
		return -errno;
	}
	s->wake_fd = fd;
	return 0;
}

void
np_stop_close(struct np_stop *s)
{
	if (s->wake_fd > 0) {
		close(s->wake_fd);
		s->wake_fd = 0;
	}
}
