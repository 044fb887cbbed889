#include "run/live.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/units.h"
#include "net/sock.h"

void
np_live_step(struct np_live *l, enum np_live_step step, uint64_t length_ns)
{
	if (l != NULL && l->view.step != step) {
		l->view.step = step;
		l->view.since_ns = np_now();
		l->view.length_ns = length_ns;
	}
}

uint64_t
np_live_until(const struct np_live *l, uint64_t deadline)
{
	return l != NULL && l->due_ns < deadline ? l->due_ns : deadline;
}

/* What streams have left in their buffers, which may be megabytes, has not been carried. */
static uint64_t
queued(const struct np_run *run)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < run->conns && np_delivers(run->plan->transport); i++) {
		sum += (uint64_t)np_sock_queued(run->conn[i].fd, SIOCOUTQ);
	}
	return sum;
}

void
np_live_look(struct np_live *l, const struct np_run *run)
{
	uint64_t now;

	if (l == NULL || (now = np_now()) < l->due_ns) {
		return;
	}
	if (run != NULL) {
		l->view.count = np_counts_of(run);
		if (l->view.step == NP_LIVE_MEASURING) {
			l->view.count.sent -= np_min(queued(run), l->view.count.sent);
		}
	}
	l->draw(l->ctx, &l->view);
	l->due_ns = now - (now - l->due_ns) % l->every_ns + l->every_ns;
}

void
np_live_add(struct np_live_view *all, const struct np_live_view *one)
{
	struct np_counts count = all->count;

	np_counts_add(&count, &one->count);
	if (one->step < all->step) {
		*all = *one;
	} else if (one->step == all->step) {
		all->since_ns = one->since_ns < all->since_ns ? one->since_ns : all->since_ns;
		all->length_ns = one->length_ns > all->length_ns ? one->length_ns : all->length_ns;
	}
	all->count = count;
}
