#include "stats/oneway.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/confidence.h"

enum {
	WINDOWS = 128, /* most windows into which the transactions are divided */
	EACH = 12,     /* least transactions of a window */
	FLAT = 3,      /* equal windows in a row that make a path */
	FIT = 48       /* knots that show how a clock ran before and after a change of path */
};

static const double least_alike_ns = 4000; /* sums that differ by less are always equal */
static const double least_step_ns = 50000; /* a clock that jumps by less was not set */
static const double least_path_ns = 20000; /* changes of a path's sum to report */

/* A transaction in which nothing waited: it shows the difference of the clocks. */
struct knot {
	double at;    /* when: ns since the first transaction */
	double clock; /* far clock less near clock: half of the difference of its delays, in ns */
	int path;
	bool set; /* a clock was set between the knot before and this one */
};

/* All in ns. "Sum": of a transaction's delays. A path: a run of windows with one smallest sum. */
struct work {
	size_t count, windows, knots; /* count: transactions */
	double sum_min[WINDOWS];
	int path[WINDOWS];     /* of each window; -1: none, something always waited */
	double level[WINDOWS]; /* smallest sum of each path */
	double shift[WINDOWS]; /* of each path: what its asymmetry adds to knot.clock */
	int paths;
	double alike; /* sums that differ by less are equal */
	struct knot *knot;
};

/* The window of transaction i: all have about as many. */
static size_t
window_of(const struct work *w, size_t i)
{
	return i * w->windows / w->count;
}

/* Do enough windows with equal smallest sums begin at i to be a path? */
static bool
is_flat(const struct work *w, size_t i)
{
	double low = w->sum_min[i], high = low;

	if (i + FLAT > w->windows) {
		return false;
	}
	for (size_t k = i + 1; k < i + FLAT; k++) {
		low = fmin(low, w->sum_min[k]);
		high = fmax(high, w->sum_min[k]);
	}
	return high - low <= w->alike;
}

/* Find the paths, in order of time, and the path of each window. */
static void
find_paths(struct work *w)
{
	int now = -1; /* the current path */

	for (size_t i = 0; i < w->windows; i++) {
		if (now >= 0 && fabs(w->sum_min[i] - w->level[now]) <= w->alike) {
			w->level[now] = fmin(w->level[now], w->sum_min[i]);
		} else if (is_flat(w, i)) {
			now = w->paths++;
			w->level[now] = w->sum_min[i];
		} else {
			w->path[i] = -1;
			continue;
		}
		w->path[i] = now;
	}
	if (w->paths > 0) {
		return;
	}
	/* The sums never settle: take all as one path, with the smallest of each window. */
	w->paths = 1;
	w->level[0] = w->sum_min[0];
	for (size_t i = 0; i < w->windows; i++) {
		w->level[0] = fmin(w->level[0], w->sum_min[i]);
		w->path[i] = 0;
	}
}

/* The last window of a path. */
static size_t
last_of(const struct work *w, int path)
{
	size_t last = 0;

	for (size_t i = 0; i < w->windows; i++) {
		last = w->path[i] == path ? i : last;
	}
	return last;
}

/* Find the transactions in which nothing waited: their sum is that of their path. */
static void
find_knots(struct work *w, const int64_t *when_ns, const double *there, const double *back)
{
	size_t last = last_of(w, 0);
	int path = 0;

	for (size_t i = 0; i < w->count; i++) {
		size_t in = window_of(w, i);
		double sum = there[i] + back[i];
		bool is_least = w->path[in] == path && sum <= w->sum_min[in];

		/* The path changes within its last window or the next, at the new one's sum. */
		if (in >= last && path + 1 < w->paths &&
		    (in > last + 1 || fabs(sum - w->level[path + 1]) <= w->alike)) {
			last = last_of(w, ++path);
		}
		if (is_least || fabs(sum - w->level[path]) <= w->alike) {
			w->knot[w->knots++] =
			    (struct knot){ (double)(when_ns[i] - when_ns[0]),
					   (there[i] - back[i]) / 2, path, false };
		}
	}
}

/* A line fitted to knots: their mean, and sums of squares around it. */
struct line {
	double x, y, xx, xy;
};

/* The line of least squares through knots [from, to). */
static struct line
line_of(const struct knot *k, size_t from, size_t to)
{
	struct line l = { 0 };
	double n = (double)(to - from);

	for (size_t i = from; i < to; i++) {
		l.x += k[i].at / n;
		l.y += k[i].clock / n;
	}
	for (size_t i = from; i < to; i++) {
		l.xx += (k[i].at - l.x) * (k[i].at - l.x);
		l.xy += (k[i].at - l.x) * (k[i].clock - l.y);
	}
	return l;
}

/* The clock at that time, by a line through knots without a step. */
static double
line_at(const struct knot *k, size_t from, size_t to, double at)
{
	struct line l = line_of(k, from, to);

	return l.y + (l.xx > 0 ? l.xy / l.xx : 0) * (at - l.x);
}

/* The end of the run of knots without a step that begins at `from`; at most `to`. */
static size_t
until_step(const struct knot *k, size_t from, size_t to)
{
	size_t i = from + 1;

	while (i < to && !k[i].set) {
		i++;
	}
	return i;
}

/* The first knot of the run without a step that ends before `to`; `from` or later. */
static size_t
since_step(const struct knot *k, size_t from, size_t to)
{
	size_t i = to - 1;

	while (i > from && !k[i].set) {
		i--;
	}
	return i;
}

/* Find the shifts: clocks run on evenly, so that a jump where the path changes is asymmetry. */
static void
join_paths(struct work *w)
{
	size_t begin = 0; /* of the knots of the path before */

	for (size_t i = 1; i < w->knots; i++) {
		size_t end = i;
		double at;
		int path = w->knot[i].path;

		if (path == w->knot[i - 1].path) {
			continue;
		}
		while (end < w->knots && end < i + FIT && w->knot[end].path == path) {
			end++;
		}
		begin = since_step(w->knot, i - begin > FIT ? i - FIT : begin, i);
		at = (w->knot[i - 1].at + w->knot[i].at) / 2;
		/* The new line less the old one, where they meet. */
		w->shift[path] = w->shift[w->knot[i - 1].path] +
				 line_at(w->knot, i, until_step(w->knot, i, end), at) -
				 line_at(w->knot, begin, i, at);
		begin = i;
	}
}

/*
 * The clock at a time between two knots. If it was set between them, `seen`, half the difference of
 * the transaction at that time, shows whether that was before or after.
 */
static double
clock_between(const struct knot *a, const struct knot *b, double at, double seen)
{
	if (b->set) { /* no line leads across a step: take the nearer clock */
		return fabs(seen - a->clock) < fabs(seen - b->clock) ? a->clock : b->clock;
	}
	return b->at > a->at && at > a->at
		   ? a->clock + (b->clock - a->clock) * (at - a->at) / (b->at - a->at)
		   : a->clock;
}

/* The clock before the first knot or after the last, by a line through the knots next to it. */
static double
clock_outside(const struct work *w, double at)
{
	enum { NEXT = 16 }; /* knots */
	bool before = at <= w->knot[0].at;
	size_t from = before || w->knots < NEXT ? 0 : w->knots - NEXT;
	size_t to = before && w->knots > NEXT ? NEXT : w->knots;

	return before ? line_at(w->knot, from, until_step(w->knot, from, to), at)
		      : line_at(w->knot, since_step(w->knot, from, to), to, at);
}

/* Take the clocks' difference out of all delays, and then subtract each direction's smallest. */
static void
remove_clock(const struct work *w, const int64_t *when_ns, double *there, double *back)
{
	double least[2] = { (double)INFINITY, (double)INFINITY };
	size_t k = 0; /* the last knot until now */

	for (size_t i = 0; i < w->count; i++) {
		double at = (double)(when_ns[i] - when_ns[0]), clock;

		while (k + 1 < w->knots && w->knot[k + 1].at <= at) {
			k++;
		}
		clock =
		    k + 1 < w->knots && at >= w->knot[0].at
			? clock_between(&w->knot[k], &w->knot[k + 1], at, (there[i] - back[i]) / 2)
			: clock_outside(w, at);
		there[i] -= clock;
		back[i] += clock;
		least[0] = fmin(least[0], there[i]);
		least[1] = fmin(least[1], back[i]);
	}
	for (size_t i = 0; i < w->count; i++) {
		there[i] -= least[0];
		back[i] -= least[1];
	}
}

/* Find the clock's steps and skew and the changes of path, and take the clock out of all delays. */
static void
conclude(struct work *w, const int64_t *when_ns, double *there, double *back, struct np_oneway *out)
{
	int best, last;
	double xx = 0, xy = 0;

	find_knots(w, when_ns, there, back);
	/* Find steps of a clock, within paths: a jump between two paths may be that of the path. */
	for (size_t i = 1; i < w->knots; i++) {
		double after = w->knot[i].at - w->knot[i - 1].at;
		double by = w->knot[i].clock - w->knot[i - 1].clock;

		/* A clock may be 500 ppm fast, and be slewed by another 500 (adjtimex(2)). */
		if (w->knot[i].path == w->knot[i - 1].path &&
		    fabs(by) > least_step_ns + 4 * w->alike + 1e-3 * after) {
			w->knot[i].set = true;
			out->steps++;
			out->step_ns = fabs(by) > fabs(out->step_ns) ? by : out->step_ns;
		}
	}
	/* Take the clock from the shortest path, and correct the others by their shift. */
	best = 0;
	join_paths(w);
	for (int p = 1; p < w->paths; p++) {
		best = w->level[p] < w->level[best] ? p : best;
	}
	for (size_t i = 0; i < w->knots; i++) {
		w->knot[i].clock -= w->shift[w->knot[i].path] - w->shift[best];
	}
	last = w->knot[w->knots - 1].path;
	/* The skew: the common slope of all parts between steps. */
	for (size_t from = 0, to; from < w->knots; from = to) {
		struct line l;

		to = until_step(w->knot, from, w->knots);
		l = line_of(w->knot, from, to);
		xx += l.xx;
		xy += l.xy;
	}
	out->skew = xx > 0 ? xy / xx : 0;
	out->first_ns = clock_outside(w, 0);
	out->last_ns = clock_outside(w, (double)(when_ns[w->count - 1] - when_ns[0]));
	/* How the smallest sum is divided between the directions is not known: half of it. */
	out->slack_ns = (w->level[best] + w->alike) / 2 + (w->paths > 1 ? w->alike : 0);
	for (int p = 1; p < w->paths; p++) {
		out->paths += fabs(w->level[p] - w->level[p - 1]) >= least_path_ns;
	}
	for (int way = 0; way < 2; way++) {
		double sign = way == 0 ? 1 : -1;

		out->path_ns[way] =
		    (w->level[last] - w->level[0]) / 2 + sign * (w->shift[last] - w->shift[0]);
	}
	remove_clock(w, when_ns, there, back);
}

bool
np_oneway(size_t count, const int64_t *when_ns, double *there_ns, double *back_ns,
	  struct np_oneway *out)
{
	struct work *w = count >= NP_ONEWAY_LEAST ? calloc(1, sizeof(*w)) : NULL;
	double differ[WINDOWS] = { 0 };

	memset(out, 0, sizeof(*out));
	if (w == NULL) {
		return false;
	}
	w->count = count;
	w->windows = count / EACH < WINDOWS ? count / EACH : WINDOWS;
	w->knot = calloc(count, sizeof(*w->knot));
	if (w->knot == NULL) {
		free(w);
		return false;
	}
	for (size_t i = 0; i < w->windows; i++) {
		w->sum_min[i] = (double)INFINITY;
	}
	for (size_t i = 0; i < count; i++) {
		double *least = &w->sum_min[window_of(w, i)];

		*least = fmin(*least, there_ns[i] + back_ns[i]);
	}
	/* The noise: how much the smallest sums of neighbouring windows usually differ. */
	for (size_t i = 1; i < w->windows; i++) {
		differ[i - 1] = fabs(w->sum_min[i] - w->sum_min[i - 1]);
	}
	qsort(differ, w->windows - 1, sizeof(differ[0]), np_by_size);
	w->alike = fmax(least_alike_ns, 4 * differ[(w->windows - 1) / 2]); /* the median */
	find_paths(w);
	conclude(w, when_ns, there_ns, back_ns, out);
	free(w->knot);
	free(w);
	return true;
}
