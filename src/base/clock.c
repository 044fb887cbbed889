#include "base/clock.h"

#include <stddef.h>

#include "base/units.h"

struct timespec *
np_left(uint64_t deadline, struct timespec *out)
{
	uint64_t now = np_now();
	uint64_t left = np_excess(deadline, now);

	if (deadline == NP_NEVER) {
		return NULL;
	}
	out->tv_sec = (time_t)(left / NP_SEC);
	out->tv_nsec = (long)(left % NP_SEC);
	return out;
}

uint64_t
np_first_wake(uint64_t deadline, uint64_t now)
{
	return deadline == NP_NEVER || deadline < now + 100 * NP_MSEC
		   ? deadline
		   : deadline - (deadline - now) / 128;
}

uint64_t
np_wall_ms(uint64_t then_ns)
{
	return (np_clock(CLOCK_REALTIME) - (np_now() - then_ns)) / NP_MSEC;
}
