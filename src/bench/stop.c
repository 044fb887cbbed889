#include "bench/stop.h"

#include <stdint.h>
#include <unistd.h>

static void
wake(const struct np_stop *s)
{
	static const uint64_t one = 1;

	if (s->wake_fd > 0) {
		(void)!write(s->wake_fd, &one, sizeof(one)); /* it can't overflow */
	}
}

void
np_stop(struct np_stop *s, int level)
{
	if (atomic_load(&s->level) >= level) {
		return;
	}
	atomic_store(&s->level, level);
	wake(s);
}

void
np_stop_mark(struct np_stop *s)
{
	int going = 0;

	if (atomic_compare_exchange_strong(&s->level, &going, NP_MARK)) {
		wake(s);
	}
}

/* Empty the eventfd before the level is set, so that a later np_stop() wakes the worker again. */
bool
np_stop_take_mark(struct np_stop *s)
{
	int marked = NP_MARK;
	uint64_t count;

	if (atomic_load(&s->level) != NP_MARK) {
		return false;
	}
	if (s->wake_fd > 0) {
		(void)!read(s->wake_fd, &count, sizeof(count));
	}
	return atomic_compare_exchange_strong(&s->level, &marked, 0);
}
