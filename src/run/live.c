#include "run/live.h"

#include "base/clock.h"

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

void
np_live_look(struct np_live *l, const struct np_run *run)
{
	uint64_t now;

	if (l == NULL || (now = np_now()) < l->due_ns) {
		return;
	}
	if (run != NULL) {
		/* np_counts_arrived() reads the sockets, which exist while the window is open. */
		l->view.count =
		    l->view.step == NP_LIVE_MEASURING ? np_counts_arrived(run) : np_counts_of(run);
	}
	l->draw(l->ctx, &l->view);
	l->due_ns = now - (now - l->due_ns) % l->every_ns + l->every_ns; /* skips missed ones */
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
