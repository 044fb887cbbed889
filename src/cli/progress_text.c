#include "cli/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

enum {
	BAR_MOST = 20, /* cells of a bar, */
	BAR_LEAST = 5,
	FRAME = 4, /* and columns of "  [" and "]" */
	PART = 400 /* bytes of a part of the line */
};

enum { LONG_WAIT_S = 1 }; /* from here on its seconds are shown */

/* "measuring 3.2 of 10 s". Workers may continue a little after the end, to empty a queue. */
static void
put_times(const struct np_progress *p, const char *what, char text[PART])
{
	if (p->total_s <= 0) {
		snprintf(text, PART, "%s %.1f s", what, p->elapsed_s);
	} else {
		double elapsed = p->elapsed_s < p->total_s ? p->elapsed_s : p->total_s;

		snprintf(text, PART, "%s %.1f of %g s", what, elapsed, p->total_s);
	}
}

/* "connecting to HOST", with the seconds of a long wait. */
static void
put_wait(const struct np_progress *p, const char *what, const char *host, char text[PART])
{
	size_t n = np_text_add(text, PART, 0, "%s%.300s", what, host);

	if (p->elapsed_s >= LONG_WAIT_S) {
		np_text_add(text, PART, n, ", %.0f s", p->elapsed_s);
	}
}

/* The step of the test in words, like "measuring" and how much of it is done. */
static void
put_step(const struct np_progress *p, char text[PART])
{
	static const struct {
		const char *what;
		bool timed, names_host;
	} steps[] = {
		[NP_LIVE_CONNECTING] = { .what = "connecting to ", .names_host = true },
		[NP_LIVE_WAITING] = { .what = "waiting", .timed = true },
		[NP_LIVE_ASKING] = { .what = "waiting for netserver at ", .names_host = true },
		[NP_LIVE_ESTABLISHING] = { .what = "making the data connection" },
		[NP_LIVE_WARMING_UP] = { .what = "warming up", .timed = true },
		[NP_LIVE_MEASURING] = { .what = "measuring", .timed = true },
		[NP_LIVE_COLLECTING] = { .what = "collecting the results" },
	};
	const char *what = steps[p->step].what;
	char making[64];
	size_t n;

	if (p->step == NP_LIVE_ESTABLISHING && p->connections > 1) {
		snprintf(making, sizeof(making), "making %" PRIu32 " data connections",
			 p->connections);
		what = making;
	}
	if (steps[p->step].timed) {
		put_times(p, what, text);
	} else {
		put_wait(p, what, steps[p->step].names_host ? p->host : "", text);
	}
	n = strlen(text);
	if (p->step == NP_LIVE_MEASURING && p->done >= 0) {
		n = np_text_add(text, PART, n, ", %.0f %%", 100 * (p->done < 1 ? p->done : 1));
	}
	if (p->step == NP_LIVE_MEASURING && p->ramps) {
		np_text_add(text, PART, n, ", %" PRIu64 " of %" PRIu32 " connections", p->up,
			    p->connections);
	}
	np_text_printable(text);
}

/* "iteration 2 of 3 to 10: " for min 3 and max 10 */
static void
put_iteration(const struct np_progress *p, char text[PART])
{
	text[0] = '\0';
	if (p->iteration == 0) {
		return;
	}
	if (p->max == 0) {
		snprintf(text, PART, "iteration %u: ", p->iteration);
	} else if (p->min == p->max) {
		snprintf(text, PART, "iteration %u of %u: ", p->iteration, p->max);
	} else {
		snprintf(text, PART, "iteration %u of %u to %u: ", p->iteration, p->min, p->max);
	}
}

/* The rate; empty unless data move, and a rate is known. */
static void
put_rate(const struct np_progress *p, char text[PART])
{
	bool moves = p->step == NP_LIVE_MEASURING || p->step == NP_LIVE_WARMING_UP;

	text[0] = '\0';
	if (!moves || p->rate < 0) {
		return;
	}
	switch (p->of) {
	case NP_PROGRESS_BITS:
		if (p->rate < 999.5) { /* no fractions of a bit */
			snprintf(text, PART, "%.0f bit/s", p->rate);
		} else {
			np_si(p->rate, 3, "bit/s", text, PART);
		}
		break;
	case NP_PROGRESS_TRANSACTIONS:
		snprintf(text, PART, "%.0f transactions/s", p->rate);
		break;
	case NP_PROGRESS_UNITS:
		snprintf(text, PART, "%.2f %s/s", p->rate,
			 strcmp(p->unit, "10^3bits") == 0   ? "kbit"
			 : strcmp(p->unit, "10^6bits") == 0 ? "Mbit"
			 : strcmp(p->unit, "10^9bits") == 0 ? "Gbit"
							    : p->unit);
		break;
	}
	if (p->sent) {
		np_text_add(text, PART, strlen(text), " sent");
	}
}

size_t
np_progress_text(const struct np_progress *p, unsigned columns, char out[NP_PROGRESS_TEXT])
{
	char step[PART], iteration[PART], rate[PART];
	double share = -1; /* how much of this step is done, 0 to 1; < 0: unknown */
	size_t n, used;

	if (p->step == NP_LIVE_MEASURING && p->done >= 0) {
		share = fmin(p->done, 1);
	} else if (p->total_s > 0 &&
		   (p->step == NP_LIVE_MEASURING || p->step == NP_LIVE_WARMING_UP ||
		    p->step == NP_LIVE_WAITING)) {
		share = fmin(p->elapsed_s / p->total_s, 1);
	}
	columns = columns < PART ? columns : PART - 1;
	put_step(p, step);
	put_iteration(p, iteration);
	put_rate(p, rate);
	used = strlen(step) + (rate[0] != '\0' ? 2 + strlen(rate) : 0); /* columns */
	out[0] = '\0';
	n = 0;
	if (used + strlen(p->test) + 2 + strlen(iteration) <= columns) {
		n = np_text_add(out, NP_PROGRESS_TEXT, n, "%s: %s", p->test, iteration);
	} else if (used + strlen(iteration) <= columns) {
		n = np_text_add(out, NP_PROGRESS_TEXT, n, "%s", iteration);
	} else if (used > columns) {
		rate[0] = '\0';
		step[columns] = '\0';
	}
	n = np_text_add(out, NP_PROGRESS_TEXT, n, "%s", step);
	used = n + (rate[0] != '\0' ? 2 + strlen(rate) : 0);
	if (share >= 0 && used + FRAME + BAR_LEAST <= columns) {
		size_t cells = np_min(columns - used - FRAME, BAR_MOST);
		size_t full = (size_t)(share * (double)cells);

		n = np_text_add(out, NP_PROGRESS_TEXT, n, "  [");
		for (size_t i = 0; i < cells; i++) {
			n = np_text_add(out, NP_PROGRESS_TEXT, n, i < full ? "#" : "-");
		}
		n = np_text_add(out, NP_PROGRESS_TEXT, n, "]");
	}
	return rate[0] != '\0' ? np_text_add(out, NP_PROGRESS_TEXT, n, "  %s", rate) : n;
}
