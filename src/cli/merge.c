#include "cli/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/saved.h"
#include "out/format.h"

/* Of all documents so far. */
struct whole {
	struct np_saved_part first; /* its texts are those of a document that is still there */
	double rate, begin_s, end_s, longest_s;
	unsigned count, timed;
	struct np_hist *hist;
};

static void
put_row(FILE *out, const char *name, const struct np_saved_part *p, double rate, double seconds)
{
	char unit[32];

	snprintf(unit, sizeof(unit), "%s/s", p->unit);
	fprintf(out, "%-24.24s %-14s %14.2f %-12s %9.2f\n", name, p->test, rate, unit, seconds);
}

static int
check_same(const struct whole *all, const struct np_saved_part *p, struct np_err *err)
{
	if (strcmp(all->first.test, p->test) != 0 || strcmp(all->first.unit, p->unit) != 0) {
		return np_usage(err,
				"it is a %s in %s, and the first one a %s in %s (merge runs of one "
				"test)",
				p->test, p->unit, all->first.test, all->first.unit);
	}
	return NP_OK;
}

/* The time in which all of them ran is what they have in common. */
static void
add(struct whole *all, const struct np_saved_part *p)
{
	double end_s = p->begin_s + p->seconds;

	all->rate += p->rate;
	all->begin_s = p->begin_s > all->begin_s ? p->begin_s : all->begin_s;
	all->end_s = all->count == 0 || end_s < all->end_s ? end_s : all->end_s;
	all->longest_s = p->seconds > all->longest_s ? p->seconds : all->longest_s;
	all->count++;
	if (np_hist_count(p->hist) > 0) {
		all->timed++;
		np_hist_merge(all->hist, p->hist);
	}
}

static int
take(struct whole *all, const char *path, struct np_saved **saved, FILE *out, struct np_err *err)
{
	struct np_saved_part part;

	if (np_saved_open(path, saved, err) != NP_OK || *saved == NULL ||
	    np_saved_part(*saved, &part, err) != NP_OK) {
		return err->code;
	}
	if (all->count == 0) {
		all->first = part;
		fprintf(out, "%-24s %-14s %14s %-12s %9s\n", "document", "test", "rate", "unit",
			"seconds");
	} else if (check_same(all, &part, err) != NP_OK) {
		return err->code;
	}
	put_row(out, path, &part, part.rate, part.seconds);
	add(all, &part);
	return NP_OK;
}

/* What can't be said, or is to be known with it, is said on standard error. */
static void
put_whole(const struct whole *all, FILE *out)
{
	double together = all->end_s > all->begin_s ? all->end_s - all->begin_s : 0;

	put_row(out, "together", &all->first, all->rate, together);
	if (all->timed == all->count) {
		putc('\n', out);
		np_times_print(out, all->hist, true);
	}
	fflush(out);
	if (all->timed > 0 && all->timed < all->count) {
		fprintf(stderr,
			"netperf: --merge: %u of %u documents have no latencies, so that all of "
			"them together have no percentiles\n",
			all->count - all->timed, all->count);
	}
	if (together < 0.9 * all->longest_s) {
		fprintf(stderr,
			"netperf: --merge: they ran together for %.2f of %.2f s: their sum is no "
			"rate of any time\n",
			together, all->longest_s);
	}
}

int
np_merge(const struct np_cli_output *o, FILE *out, struct np_err *err)
{
	size_t count = o->file_count;
	struct whole all = { .hist = np_hist_new() };
	struct np_saved **saved = calloc(count, sizeof(struct np_saved *));
	int rc = NP_OK;

	if (all.hist == NULL || saved == NULL) {
		free(saved);
		free(all.hist);
		return np_fail(err, NP_ESYS, ENOMEM, "--merge: memory for %zu documents", count);
	}
	for (size_t i = 0; i < count && rc == NP_OK; i++) {
		rc = take(&all, o->files[i], &saved[i], out, err);
		if (rc != NP_OK) {
			char where[220];

			snprintf(where, sizeof(where), "--merge: %.200s", o->files[i]);
			np_text_printable(err->msg);
			np_fail_in(err, where);
		}
	}
	if (rc == NP_OK) {
		put_whole(&all, out);
	}
	for (size_t i = 0; i < count; i++) {
		np_saved_free(saved[i]);
	}
	free(saved);
	free(all.hist);
	return rc;
}
