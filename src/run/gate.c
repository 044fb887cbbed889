#include "run/gate.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "run/drive.h"

struct np_gate {
	_Atomic uint32_t missing;
	_Atomic int state;
	_Atomic uint64_t opened_ns;
	int fd; /* eventfd(2): np_gate_fd() */
};

struct np_gate *
np_gate_new(uint32_t count)
{
	struct np_gate *g = calloc(1, sizeof(*g));

	if (g == NULL) {
		return NULL;
	}
	atomic_init(&g->missing, count);
	g->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (g->fd < 0) {
		free(g);
		return NULL;
	}
	return g;
}

void
np_gate_free(struct np_gate *g)
{
	if (g != NULL) {
		close(g->fd);
		free(g);
	}
}

/* Change the state, if it is still shut, and wake those that wait. */
static void
set_state(struct np_gate *g, int state)
{
	static const uint64_t one = 1;
	int shut = NP_GATE_SHUT;

	if (atomic_compare_exchange_strong(&g->state, &shut, state)) {
		(void)!write(g->fd, &one, sizeof(one)); /* it can't overflow */
	}
}

void
np_gate_arrive(struct np_gate *g)
{
	if (atomic_fetch_sub(&g->missing, 1) == 1) {
		/* Set before the state, at which others read it. */
		atomic_store(&g->opened_ns, np_now());
		set_state(g, NP_GATE_OPEN);
	}
}

void
np_gate_fail(struct np_gate *g)
{
	set_state(g, NP_GATE_FAILED);
}

int
np_gate_fd(const struct np_gate *g)
{
	return g->fd;
}

int
np_gate_state(const struct np_gate *g)
{
	return atomic_load(&g->state);
}

bool
np_gate_await_others(const struct np_gate *g, const struct np_signals *signals, uint64_t until_ns)
{
	static const struct timespec pause = { .tv_nsec = NP_MSEC };

	while (atomic_load(&g->missing) > 1 && np_gate_state(g) == NP_GATE_SHUT) {
		if (np_signalled(signals) > 0 || np_now() >= until_ns) {
			return false;
		}
		ppoll(NULL, 0, &pause, signals->let_in);
	}
	return true;
}

uint64_t
np_gate_opened_ns(const struct np_gate *g)
{
	return np_gate_state(g) == NP_GATE_OPEN ? atomic_load(&g->opened_ns) : 0;
}
