#include "run/clean.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two intervals that overlap by less than this share do not affect each other. */
static const double min_overlap = 0.2;

/* How much longer than this end's window a far end's may be, in s: it may report anything. */
static const double outlasts = 1;

/* The intervals that an end reported, see struct np_interval. */
struct end {
	size_t count;
	double edge_s[NP_DISTURBED_MOST + 1]; /* [0] is 0; interval i ends at [i + 1] */
	double work[NP_DISTURBED_MOST];
	double waited_s[NP_DISTURBED_MOST], kept_s[NP_DISTURBED_MOST], short_s[NP_DISTURBED_MOST];
	double used_s[NP_DISTURBED_MOST], stalled_s[NP_DISTURBED_MOST];
	double others_s[NP_DISTURBED_MOST];         /* zeros if an end does not tell */
	double marked[NP_MARKS][NP_DISTURBED_MOST]; /* share of the interval */
	double clean_work[NP_DISTURBED_MOST];       /* the part of work in its unmarked time */
	uint64_t cpus[NP_DISTURBED_MOST];
};

static double
length_of(const struct end *e, size_t i)
{
	return e->edge_s[i + 1] - e->edge_s[i];
}

/* Find a list of as many values as those found before; the first one decides. NULL: none. */
static const int64_t *
find_list(const struct np_bag *b, const char *name, struct end *e)
{
	struct np_bag_item it;
	size_t n = np_bag_list(b, name, NP_BAG_INTS, &it);

	if (n == 0 || n > NP_DISTURBED_MOST || (e->count != 0 && n != e->count)) {
		return NULL;
	}
	e->count = n;
	return it.ints;
}

/* Read a list in units of `unit`. Impossible values, which a far end may send, become 0. */
static bool
read_list(const struct np_bag *b, const char *name, double unit, struct end *e, double *into)
{
	static const int64_t most = INT64_C(1) << 53; /* exact in a double */
	const int64_t *list = find_list(b, name, e);

	for (size_t i = 0; list != NULL && i < e->count; i++) {
		into[i] = list[i] >= 0 && list[i] <= most ? (double)list[i] * unit : 0;
	}
	return list != NULL;
}

/* Read the intervals that an end has told. False: it has none. */
static bool
read_end(const struct np_bag *b, struct end *e)
{
	const int64_t *cpus;

	if (!read_list(b, "disturbed.end_us", 1e-6, e, &e->edge_s[1]) ||
	    !read_list(b, "disturbed.work", 1, e, e->work) ||
	    !read_list(b, "disturbed.waited_us", 1e-6, e, e->waited_s) ||
	    !read_list(b, "disturbed.kept_us", 1e-6, e, e->kept_s) ||
	    !read_list(b, "disturbed.short_us", 1e-6, e, e->short_s) ||
	    !read_list(b, "disturbed.used_us", 1e-6, e, e->used_s) ||
	    !read_list(b, "disturbed.stalled_us", 1e-6, e, e->stalled_s) ||
	    (cpus = find_list(b, "disturbed.cpus", e)) == NULL) {
		e->count = 0;
		return false;
	}
	(void)read_list(b, "disturbed.others_us", 1e-6, e, e->others_s);
	for (int r = 0; r < NP_MARKS; r++) { /* a reason without a list marked nothing */
		char name[NP_BAG_NAME];

		snprintf(name, sizeof(name), "disturbed.%s_us", np_reason_name((enum np_reason)r));
		(void)read_list(b, name, 1e-6, e, e->marked[r]);
		for (size_t i = 0; i < e->count; i++) {
			double s = e->marked[r][i], length = length_of(e, i);

			e->marked[r][i] = s > length - 1e-9 ? 1 : s / length; /* 1e-9: rounding */
		}
	}
	(void)read_list(b, "disturbed.marked_work", 1, e, e->clean_work); /* until the loop below */
	for (size_t i = 0; i < e->count; i++) {
		e->clean_work[i] = fmax(e->work[i] - e->clean_work[i], 0);
		e->cpus[i] = (uint64_t)cpus[i];
		if (length_of(e, i) <= 0) {
			e->count = i; /* time must increase: ignore the rest */
		}
	}
	return e->count > 0;
}

static void
mark_interval(struct end *e, size_t i, enum np_reason r)
{
	e->marked[r][i] = e->marked[NP_R_ANY][i] = 1;
	e->clean_work[i] = 0;
}

/* Remove the marks of foreign traffic. Work in time that no other reason marks is clean again. */
static void
unmark_foreign(struct end *e)
{
	for (size_t i = 0; i < e->count; i++) {
		double was = e->marked[NP_R_ANY][i], rest = 0;

		e->marked[NP_R_FOREIGN][i] = 0;
		for (int r = 0; r < NP_REASONS; r++) {
			rest += e->marked[r][i];
		}
		if (rest < was) {
			e->clean_work[i] += (e->work[i] - e->clean_work[i]) * (1 - rest / was);
			e->marked[NP_R_ANY][i] = rest;
		}
	}
}

/* The time in s that interval i of a and interval j of b have in common; negative if none. */
static double
overlap(const struct end *a, size_t i, const struct end *b, size_t j)
{
	return fmin(a->edge_s[i + 1], b->edge_s[j + 1]) - fmax(a->edge_s[i], b->edge_s[j]);
}

/* The first interval that ends after that time. */
static size_t
first_after(const struct end *e, double s)
{
	size_t i = 0;

	while (i < e->count && e->edge_s[i + 1] <= s) {
		i++;
	}
	return i;
}

/* Set the marks that need both ends' figures. other: the other end if on this machine, or NULL. */
static void
mark_waits(struct end *e, const struct end *other)
{
	/* A wait is reported when it ends: move the excess into earlier intervals. */
	for (size_t i = e->count; i-- > 1;) {
		double beyond = e->kept_s[i] - length_of(e, i);

		if (beyond > 0) {
			e->kept_s[i] -= beyond;
			e->kept_s[i - 1] += beyond;
		}
	}
	for (size_t i = 0; i < e->count; i++) {
		double length = length_of(e, i), used = 0, waited = 0, kept, crowd;

		if (other != NULL) {
			/* How much the other end's threads ran and waited in this interval. */
			for (size_t j = first_after(other, e->edge_s[i]);
			     j < other->count && other->edge_s[j] < e->edge_s[i + 1]; j++) {
				double part = overlap(e, i, other, j) / length_of(other, j);

				waited += part * other->waited_s[j];
				used += (e->cpus[i] & other->cpus[j]) != 0 ? part * other->used_s[j]
									   : 0;
			}
		}
		/* Short waits, and those for the other end, do not count. */
		kept = e->kept_s[i] - fmax(used, e->short_s[i]);
		crowd = e->stalled_s[i] - e->waited_s[i] - waited; /* of other programs */
		/* A shorter wait disturbs a process that ran for even less. */
		if (kept >= NP_D_WAITED * length ||
		    (kept >= NP_D_TOUCHED * length && kept >= e->used_s[i])) {
			mark_interval(e, i, NP_R_SWITCHES);
		}
		/* Or if many other threads compete. */
		if (kept >= NP_D_TOUCHED * length && crowd >= NP_D_STALLED * length) {
			mark_interval(e, i, NP_R_PRESSURE);
		}
		if (e->others_s[i] - used >= NP_D_OTHERS * length) {
			mark_interval(e, i, NP_R_PROCESSOR);
		}
	}
}

/* The largest share, for that reason, of the other end's intervals that overlap interval i of e. */
static double
other_share(const struct end *e, size_t i, const struct end *other, int reason)
{
	double most = 0;

	for (size_t j = first_after(other, e->edge_s[i]);
	     j < other->count && other->edge_s[j] < e->edge_s[i + 1]; j++) {
		double least = fmin(length_of(e, i), length_of(other, j));

		if (overlap(e, i, other, j) > min_overlap * least) {
			most = fmax(most, other->marked[reason][j]);
		}
	}
	return most;
}

/* The probability of a or b, if they are independent. */
static double
either(double a, double b)
{
	return a + b - a * b;
}

/* Add the seconds of each reason in interval i of e, which counts the work. Returns their bits. */
static uint32_t
add_reasons(struct np_clean *c, const struct end *e, const struct end *other, size_t i)
{
	double length = length_of(e, i);
	uint32_t marks = 0;

	for (int r = 0; r < NP_REASONS; r++) {
		double own = e->marked[r][i], others = other_share(e, i, other, r);

		c->reason_s[r] += either(own, others) * length;
		(c->by_far ? c->far_s : c->near_s)[r] += own * length;
		(c->by_far ? c->near_s : c->far_s)[r] += others * length;
		marks |= own + others > 0 ? UINT32_C(1) << r : 0;
	}
	return marks;
}

/* Sum over the intervals of the end that counts the work. */
static void
sum_up(struct np_clean *c, const struct end *e, const struct end *other)
{
	double work = 0, clean_work = 0;

	for (size_t i = first_after(e, 0); i < e->count; i++) { /* 0: see leave_out_wait() */
		double length = length_of(e, i), others = other_share(e, i, other, NP_R_ANY);
		double from_s = e->edge_s[i], to_s = e->edge_s[i + 1];
		uint32_t marks = add_reasons(c, e, other, i);
		struct np_clean_run *last = c->runs > 0 ? &c->run[c->runs - 1] : NULL;

		if (last != NULL && last->to_s == from_s && last->marks == marks) {
			last->to_s = to_s;
		} else if (marks != 0) {
			c->run[c->runs++] = (struct np_clean_run){ from_s, to_s, marks };
		}
		c->seconds += length;
		c->clean_s += (1 - either(e->marked[NP_R_ANY][i], others)) * length;
		work += e->work[i];
		clean_work += e->clean_work[i] * (1 - others); /* of it, what both left unmarked */
	}
	if (c->clean_s <= 0) {
		c->rate_ratio = (double)NAN;
	} else { /* without any work both rates are 0 */
		c->rate_ratio = work > 0 ? clean_work / c->clean_s / (work / c->seconds) : 1;
	}
}

/* Shift a far window that opened before data came, by at most the difference of the lengths. */
static void
leave_out_wait(const struct end *near, struct end *far)
{
	double more = far->edge_s[far->count] - near->edge_s[near->count], wait = 0;

	/* The last interval ends after `more`. */
	for (size_t i = 0; far->work[i] <= 0 && far->edge_s[i + 1] <= more; i++) {
		wait = far->edge_s[i + 1];
	}
	for (size_t i = 1; i <= far->count; i++) {
		far->edge_s[i] -= wait;
	}
}

/* Read the far end's intervals into end[1], and judge those of the end that counts the work. */
static void
judge_ends(struct np_clean *c, const struct np_bag *near, const struct np_bag *far,
	   struct end end[2], bool far_counts)
{
	const char *a = np_bag_string(near, "clock.boot"), *b = np_bag_string(far, "clock.boot");
	bool same_machine = a != NULL && b != NULL && strcmp(a, b) == 0;
	double ends_s = end[0].edge_s[end[0].count] + outlasts;

	c->far_reported = read_end(far, &end[1]);
	for (size_t i = 0; i < end[1].count; i++) {
		if (end[1].edge_s[i + 1] >= ends_s) { /* a far end may report anything */
			end[1].edge_s[i + 1] = ends_s;
			end[1].count = i + 1;
		}
	}
	if (c->far_reported) {
		leave_out_wait(&end[0], &end[1]);
	}
	c->every_s = np_bag_number(near, "disturbed.every_s");
	c->by_far = far_counts && c->far_reported;
	if (np_bag_number(near, "flow.sessions") > 1) {
		/* Each session only knows its own threads and connections. */
		c->switches_why =
		    "the other sessions' threads cannot be distinguished from other programs";
		c->foreign_why =
		    "the other sessions' bytes cannot be distinguished from other traffic";
		unmark_foreign(&end[0]);
		unmark_foreign(&end[1]);
	} else if (!c->far_reported && np_bag_number(near, "disturbed.peer_here") > 0) {
		c->switches_why = "the far end is on this machine, and does not report the time of "
				  "its threads";
	}
	if (c->switches_why == NULL) {
		mark_waits(&end[0], same_machine ? &end[1] : NULL);
		mark_waits(&end[1], same_machine ? &end[0] : NULL);
	}
	sum_up(c, &end[c->by_far], &end[!c->by_far]);
}

struct np_clean *
np_clean_judge(const struct np_bag *near, const struct np_bag *far, bool far_counts)
{
	struct np_clean *c = calloc(1, sizeof(*c));
	struct end *end = calloc(2, sizeof(*end));

	if (c != NULL && end != NULL && read_end(near, &end[0])) {
		judge_ends(c, near, far, end, far_counts);
	} else {
		free(c);
		c = NULL;
	}
	free(end);
	return c;
}

char *
np_clean_reasons(const double reason_s[NP_REASONS], char out[NP_CLEAN_TEXT])
{
	bool written[NP_REASONS] = { false };
	size_t len = 0;

	snprintf(out, NP_CLEAN_TEXT, "none");
	for (;;) {
		int longest = -1;

		for (int r = 0; r < NP_REASONS; r++) {
			if (!written[r] && reason_s[r] > 0 &&
			    (longest < 0 || reason_s[r] > reason_s[longest])) {
				longest = r;
			}
		}
		if (longest < 0 || len >= NP_CLEAN_TEXT) {
			return out;
		}
		written[longest] = true;
		len += (size_t)snprintf(out + len, NP_CLEAN_TEXT - len, "%s%s:%.1f",
					len > 0 ? " " : "", np_reason_name((enum np_reason)longest),
					reason_s[longest]);
	}
}
