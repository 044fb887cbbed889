#include "run/stations.h"

#include <stdlib.h>
#include <string.h>

const char *const np_station_name[NP_STATIONS] = {
	"near_send", "near_queue", "wire",      "far_receive",
	"far_work",  "far_send",   "far_queue", "near_receive",
};

/* Transactions that both ends stamped, for np_oneway(). */
struct series {
	int64_t when[NP_STAMPS_KEPT];        /* the request left, by the near clock */
	double way[NP_WAYS][NP_STAMPS_KEPT]; /* receipt less sending, each by its end's clock */
};

/* Record one transaction by its stamps at both ends, unless a clock's step made a time negative. */
static void
join_one(struct np_stations *s, const struct np_stamped *n, const struct np_stamped *f,
	 struct series *all)
{
	const int64_t *near = n->at, *far = f->at;
	const int64_t times[NP_STATIONS] = {
		[NP_ST_NEAR_SEND] = near[NP_STAMP_QUEUE] - near[NP_STAMP_SEND],
		[NP_ST_NEAR_QUEUE] = near[NP_STAMP_GONE] - near[NP_STAMP_QUEUE],
		[NP_ST_WIRE] = near[NP_STAMP_CAME] - near[NP_STAMP_GONE] -
			       (far[NP_STAMP_GONE] - far[NP_STAMP_CAME]),
		[NP_ST_FAR_RECV] = far[NP_STAMP_RECV] - far[NP_STAMP_CAME],
		[NP_ST_FAR_PROCESS] = far[NP_STAMP_SEND] - far[NP_STAMP_RECV],
		[NP_ST_FAR_SEND] = far[NP_STAMP_QUEUE] - far[NP_STAMP_SEND],
		[NP_ST_FAR_QUEUE] = far[NP_STAMP_GONE] - far[NP_STAMP_QUEUE],
		[NP_ST_NEAR_RECV] = near[NP_STAMP_RECV] - near[NP_STAMP_CAME],
	};

	for (int i = 0; i < NP_STATIONS; i++) {
		if (times[i] < 0) {
			return;
		}
	}
	for (int i = 0; i < NP_STATIONS; i++) {
		np_hist_record(s->hist[i], (uint64_t)times[i]);
	}
	np_hist_record(s->hist[NP_ST_WHOLE], (uint64_t)(near[NP_STAMP_RECV] - near[NP_STAMP_SEND]));
	all->when[s->joined] = near[NP_STAMP_GONE];
	all->way[NP_THERE][s->joined] = (double)(far[NP_STAMP_CAME] - near[NP_STAMP_GONE]);
	all->way[NP_BACK][s->joined] = (double)(near[NP_STAMP_CAME] - far[NP_STAMP_GONE]);
	s->joined++;
}

/* Record all transactions that both ends have. Both arrays are sorted by number. */
static void
join_all(struct np_stations *s, const struct np_stamps *near, const struct np_stamps *far,
	 struct series *all)
{
	size_t f = 0;

	for (size_t n = 0; n < near->count; n++) {
		while (f < far->count && far->kept[f].number < near->kept[n].number) {
			f++;
		}
		if (f < far->count && far->kept[f].number == near->kept[n].number) {
			join_one(s, &near->kept[n], &far->kept[f], all);
		}
	}
	s->has_one_way =
	    np_oneway(s->joined, all->when, all->way[NP_THERE], all->way[NP_BACK], &s->clocks);
	for (int way = 0; way < NP_WAYS && s->has_one_way; way++) {
		for (size_t i = 0; i < s->joined; i++) {
			np_hist_record(s->hist[NP_ST_THERE + way], (uint64_t)all->way[way][i]);
		}
	}
}

/* Fewer numbers may all be even by chance. */
enum { FEW = 16 };

/* How many of the near end's transactions the far end should have: it may keep one in 2, 4, ... */
static size_t
count_expected(const struct np_stamps *near, const struct np_stamps *far)
{
	size_t count = 0;
	uint64_t every = near->kept_every, times = 0, first, last;

	if (far->count < FEW) {
		return near->count;
	}
	first = far->kept[0].number;
	last = far->kept[far->count - 1].number;
	for (size_t i = 0; i < far->count; i++) {
		uint64_t number = far->kept[i].number;

		times |= number / every | (number % every != 0); /* its low 0 bits are common */
	}
	for (; times > 0 && times % 2 == 0; times /= 2) {
		every *= 2;
	}
	for (size_t i = 0; i < near->count; i++) {
		uint64_t number = near->kept[i].number;

		count += number % every == 0 && number >= first && number <= last;
	}
	return count;
}

/* Allocate the histograms. False: no memory; np_stations_free() releases those that exist. */
static bool
take_memory(struct np_stations *s)
{
	for (int i = 0; i < NP_ST_HISTS; i++) {
		s->hist[i] = np_hist_new();
		if (s->hist[i] == NULL) {
			return false;
		}
	}
	return true;
}

struct np_stations *
np_stations_join(const struct np_run *run, struct np_bag *far_bag)
{
	const struct np_stamps *near = run->worker->stamps;
	struct np_stations *s;
	struct np_stamps *far;
	struct series *all;

	if (near == NULL) {
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	far = malloc(sizeof(*far));
	all = calloc(1, sizeof(*all));
	if (s != NULL && far != NULL && all != NULL && take_memory(s)) {
		(void)np_stamps_get(far_bag, far); /* without any, nothing is joined */
		s->every = near->every;
		s->asked[0] = near->asked;
		s->asked[1] = far->asked;
		memcpy(s->came[0], near->came, sizeof(near->came));
		memcpy(s->came[1], far->came, sizeof(far->came));
		s->kept = count_expected(near, far);
		join_all(s, near, far, all);
	} else {
		np_stations_free(s);
		s = NULL;
	}
	np_bag_drop(far_bag, "stamps.");
	free(far);
	free(all);
	return s;
}

void
np_stations_free(struct np_stations *s)
{
	for (int i = 0; s != NULL && i < NP_ST_HISTS; i++) {
		free(s->hist[i]);
	}
	free(s);
}

void
np_stations_put(const struct np_stations *s, struct np_bag *into)
{
	for (int i = 0; s != NULL && s->joined > 0 && i < NP_STATIONS; i++) {
		struct np_hist_summary h;

		np_hist_summarise(s->hist[i], &h);
		np_bag_real(into, h.mean / 1e3, "stations.%s_us", np_station_name[i]);
	}
}
