#include "cli/stray.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "cli/args.h"
#include "cli/help.h"
#include "out/select.h"

/* Names are at most this long here: longer ones are none, and resemble none. */
enum { LONGEST = 63 };

#define NOTE(cli, ...)                                                                             \
	((cli)->notes.len = np_text_add((cli)->notes.text, sizeof((cli)->notes.text),              \
					(cli)->notes.len, __VA_ARGS__))

/* --- words -------------------------------------------------------------------------------------
 */

static bool
two_numbers(const char *word)
{
	size_t first = strspn(word, "0123456789kKmMgG");

	return first > 0 && word[first] == ',' &&
	       word[first + 1 + strspn(word + first + 1, "0123456789kKmMgG")] == '\0';
}

/* Options that take nothing before a --, while those of the test by the same letters do. */
static const struct {
	const char *option, *remedy;
} bare[] = {
	{ "-r",
	  "-r has no argument here; the sizes of request and response are a test option (-- -r "
	  "REQUEST,RESPONSE)" },
	{ "-S", "-S has no argument here; the sizes of the remote socket buffers are a test option "
		"(-- -S SIZE)" },
	{ "-d",
	  "-d has no argument here; the direction is an option of the test OMNI (-- -d WORD)" },
};

/* The word before that one. Words are told apart by where they lie: two may read the same. */
static const char *
word_before(const struct np_word_list *given, const char *word)
{
	for (int i = 1; i < given->count; i++) {
		if (given->at[i] == word) {
			return given->at[i - 1];
		}
	}
	return "";
}

static const char *
remedy_of(const struct np_cli *cli, const char *word, const char *before)
{
	for (size_t i = 0; i < sizeof(bare) / sizeof(bare[0]); i++) {
		if (strcmp(before, bare[i].option) == 0) {
			return bare[i].remedy;
		}
	}
	return cli->confidence.result_only && two_numbers(word)
		   ? bare[0].remedy
		   : "it belongs to no option (-H names a host)";
}

void
np_stray_words(struct np_cli *cli, const struct np_word_list *stray, int of_test,
	       const struct np_word_list *given)
{
	/* What follows an option that is unknown, or that netperf has given up, was its argument:
	 * there is a line already. */
	for (int i = 0; i < stray->count && cli->gone == '\0' && cli->notes.passed == '\0'; i++) {
		const char *word = stray->at[i];

		NOTE(cli, "%.60s: ignored: %s\n", word,
		     of_test ? "it belongs to no option of the test"
			     : remedy_of(cli, word, word_before(given, word)));
	}
}

/* --- options -----------------------------------------------------------------------------------
 */

enum { LONG_WAIT_S = 1024, HEADERS = 9 }; /* more can't be meant */

void
np_stray_options(struct np_cli *cli)
{
	const struct np_call_plan *call = &cli->plan.near.call;
	size_t len = strlen(cli->test);

	if (cli->wait_s >= LONG_WAIT_S) {
		NOTE(cli,
		     "-s %d: waits for that many seconds before the test; the sizes of the local "
		     "socket buffers are a test option (-- -s SIZE)\n",
		     cli->wait_s);
	}
	if (cli->output.headers > HEADERS) {
		NOTE(cli,
		     "-P %d: shows headers, as 1 does; the ports of the data connection are a test "
		     "option (-- -P LOCAL,REMOTE)\n",
		     cli->output.headers);
	}
	if (call->interval_burst > 0 && call->interval_us == 0 && len > 2 &&
	    strcasecmp(cli->test + len - 2, "RR") == 0) {
		NOTE(cli,
		     "-b %u: paces, %u transactions a millisecond (-w); requests in flight are a "
		     "test option (-- -b N)\n",
		     call->interval_burst, call->interval_burst);
	}
}

void
np_stray_letter(struct np_err *err)
{
	for (size_t i = 0; i < np_test_options_count; i++) {
		if (np_test_options[i].letter != '\0' && np_test_options[i].letter == -err->sys) {
			int letter = -err->sys;

			np_fail(err, NP_EUSAGE, 0,
				"-%c: no such option before --, but one of a test (-- -%c; -h "
				"lists them)",
				letter, letter);
			err->sys = -letter;
			return;
		}
	}
}

/* --- names -------------------------------------------------------------------------------------
 */

static unsigned
least(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* How many letters one has to change, add or leave out (Levenshtein's distance), cases alike. */
static unsigned
distance(const char *a, const char *b)
{
	unsigned row[LONGEST + 1];
	size_t n = strlen(b);

	if (n > LONGEST) {
		return LONGEST;
	}
	for (unsigned j = 0; j <= n; j++) {
		row[j] = j;
	}
	for (unsigned i = 1; a[i - 1] != '\0'; i++) {
		unsigned corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			unsigned above = row[j];

			row[j] = least(above + 1, row[j - 1] + 1,
				       corner + (strncasecmp(&a[i - 1], &b[j - 1], 1) != 0));
			corner = above;
		}
	}
	return row[n];
}

/* Of the names, of which the last one is NULL, the one that is most like it; NULL when none is. */
static const char *
nearest(const char *name, const char *(*at)(size_t i))
{
	unsigned best = (unsigned)strlen(name) / 3 + 2;
	const char *found = NULL, *one;

	for (size_t i = 0; strlen(name) <= LONGEST && (one = at(i)) != NULL; i++) {
		unsigned far = distance(name, one);

		if (far < best) {
			best = far;
			found = one;
		}
	}
	return found;
}

/* Does the name begin as one of a percentile, and go on to its end with digits and points? */
static bool
of_percentile(const char *name)
{
	static const char connect[] = "CONNECT_P", latency[] = "_LATENCY", digits[] = "0123456789.";
	bool connects = strncasecmp(name, connect, strlen(connect)) == 0;
	const char *number = name + (connects ? strlen(connect) : 1);
	size_t n = connects || strncasecmp(name, "P", 1) == 0 ? strspn(number, digits) : 0;

	return n > 0 && strcasecmp(number + n, connects ? "" : latency) == 0;
}

/* "P95_LATENCIES" is most like P95_LATENCY, which is in no table; NULL: it is not like one. */
static const char *
nearest_percentile(const char *name, char out[LONGEST + 1])
{
	size_t n = strncasecmp(name, "P", 1) == 0 ? strspn(name + 1, "0123456789.") : 0;

	snprintf(out, LONGEST + 1, "P%.*s_LATENCY", (int)n, name + 1);
	return n > 0 && np_figure_find(out) >= 0 && distance(name, out) <= strlen(name) / 3 ? out
											    : NULL;
}

static const char *
figure_at(size_t i)
{
	return i < NP_METRICS ? np_metric((enum np_metric_id)i)->name : NULL;
}

const char *
np_stray_test(const char *name)
{
	return nearest(name, np_help_test_at);
}

static void
stray_selector(struct np_cli *cli, const char *word, size_t len)
{
	char name[LONGEST + 1], percentile[LONGEST + 1];
	const char *like = NULL;

	snprintf(name, sizeof(name), "%.*s", (int)len, word);
	if (len == 0 || np_figure_find(name) >= 0) {
		return;
	}
	if (of_percentile(name)) {
		NOTE(cli,
		     "%s: not a percentile (above 0 and at most 100, with at most 6 digits behind "
		     "the point, as P99.9_LATENCY)\n",
		     name);
		return;
	}
	if (len <= LONGEST) {
		like = nearest_percentile(name, percentile);
		like = like != NULL ? like : nearest(name, figure_at);
	}
	NOTE(cli, "%s: there is no such output selector%s%s (--list-figures shows them)\n", name,
	     like != NULL ? ", the nearest is " : "", like != NULL ? like : "");
}

void
np_stray_names(struct np_cli *cli)
{
	const char *at = cli->output.selectors;

	if (cli->output.unit != '\0' && strchr("GMKBgmkx", cli->output.unit) == NULL) {
		NOTE(cli,
		     "-f %c: not a unit (G M K B are bytes, g m k bits, x transactions): KBytes/s "
		     "as in netperf\n",
		     cli->output.unit);
	}
	/* A word without a comma that names no figure is the name of a file. */
	while (at != NULL && strpbrk(cli->output.selectors, ",;") != NULL && *at != '\0') {
		size_t len = strcspn(at, ", \t;");

		stray_selector(cli, at, len);
		at += len + (at[len] != '\0');
	}
}
