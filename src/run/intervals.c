#include "run/intervals.h"

#include <stdio.h>
#include <string.h>

const char *
np_reason_name(enum np_reason r)
{
	static const char *const names[NP_MARKS] = {
		[NP_R_STEAL] = "steal",           [NP_R_PRESSURE] = "pressure",
		[NP_R_SWITCHES] = "switches",     [NP_R_FREQUENCY] = "frequency",
		[NP_R_THROTTLING] = "throttling", [NP_R_IRQ] = "irq",
		[NP_R_SQUEEZED] = "squeezed",     [NP_R_FOREIGN] = "foreign",
		[NP_R_CLOCK] = "clock",           [NP_R_STOPPED] = "stopped",
		[NP_R_PROCESSOR] = "processor",   [NP_R_ANY] = "marked",
	};

	return names[r];
}

/* Extend *into by the interval after it. */
static void
extend(struct np_interval *into, const struct np_interval *i)
{
	into->end_us = i->end_us;
	into->work += i->work;
	into->marked_work += i->marked_work;
	into->cpus |= i->cpus;
	for (int r = 0; r < NP_MARKS; r++) {
		into->marked_us[r] += i->marked_us[r];
	}
	into->waited_us += i->waited_us;
	into->kept_us += i->kept_us;
	into->short_us += i->short_us;
	into->used_us += i->used_us;
	into->stalled_us += i->stalled_us;
	into->others_us += i->others_us;
}

void
np_intervals_keep(struct np_intervals *all, struct np_interval seen, uint32_t marks)
{
	uint64_t begin_us = all->count > 0 ? all->interval[all->count - 1].end_us : 0;

	all->every = all->every > 0 ? all->every : 1; /* 0 before the first look */
	for (int r = 0; r < NP_REASONS; r++) {
		seen.marked_us[r] = (marks >> r & 1) != 0 ? seen.end_us - begin_us : 0;
	}
	if (marks != 0) {
		seen.marked_us[NP_R_ANY] = seen.end_us - begin_us;
		seen.marked_work = seen.work;
	}
	if (all->looks++ % all->every != 0) { /* the last interval is not full yet */
		extend(&all->interval[all->count - 1], &seen);
		return;
	}
	if (all->count == NP_DISTURBED_MOST) {
		/* Join pairs, and from now on twice as many looks in an interval. */
		for (size_t i = 0; i < NP_DISTURBED_MOST / 2; i++) {
			all->interval[i] = all->interval[2 * i];
			extend(&all->interval[i], &all->interval[2 * i + 1]);
		}
		all->count = NP_DISTURBED_MOST / 2;
		all->every *= 2;
	}
	all->interval[all->count++] = seen;
}

/* Put a member of all intervals as the list disturbed.NAME. at: its offset in np_interval. */
static void
put_list(const struct np_intervals *all, size_t at, const char *name, struct np_bag *into)
{
	int64_t list[NP_DISTURBED_MOST];

	for (size_t i = 0; i < all->count; i++) {
		uint64_t v;

		memcpy(&v, (const char *)&all->interval[i] + at, sizeof(v));
		list[i] = (int64_t)(v & INT64_MAX); /* lists of a bag are signed */
	}
	np_bag_ints(into, list, all->count, "disturbed.%s", name);
}

#define PUT(member) put_list(all, offsetof(struct np_interval, member), #member, into)

void
np_intervals_put(const struct np_intervals *all, struct np_bag *into)
{
	uint64_t marked[NP_MARKS] = { 0 };

	np_bag_real(into, (double)all->every * NP_DISTURBED_MS / 1e3, "disturbed.every_s");
	PUT(end_us);
	PUT(work);
	PUT(cpus);
	PUT(waited_us);
	PUT(kept_us);
	PUT(short_us);
	PUT(used_us);
	PUT(stalled_us);
	PUT(others_us);
	for (size_t i = 0; i < all->count; i++) {
		for (int r = 0; r < NP_MARKS; r++) {
			marked[r] += all->interval[i].marked_us[r];
		}
	}
	if (marked[NP_R_ANY] > 0) {
		PUT(marked_work);
	}
	for (size_t r = 0; r < NP_MARKS; r++) {
		if (marked[r] > 0) {
			char name[32];

			snprintf(name, sizeof(name), "%s_us", np_reason_name((enum np_reason)r));
			put_list(all,
				 offsetof(struct np_interval, marked_us) + r * sizeof(uint64_t),
				 name, into);
		}
	}
}
