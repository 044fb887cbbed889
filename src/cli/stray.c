#include "cli/args.h"

#include <string.h>
#include <strings.h>

enum { LONGEST = 63 }; /* of a name that is shown */

/* Options without an argument; after a -- the same letters are options with one. */
static const struct {
	const char *option, *remedy;
} no_argument[] = {
	{ "-r",
	  "-r has no argument here; the sizes of request and response are a test option (-- -r "
	  "REQUEST,RESPONSE)" },
	{ "-S", "-S has no argument here; the sizes of the remote socket buffers are a test option "
		"(-- -S SIZE)" },
	{ "-d",
	  "-d has no argument here; the direction is an option of the test OMNI (-- -d WORD)" },
};

/* Why a word was ignored, from the option before it; `given` has the order of the user. */
static const char *
remedy_of(const struct np_cli *cli, const char *word, char *const *given)
{
	static const char count[] = "0123456789kKmMgG";
	size_t first = strspn(word, count);
	const char *before = "";

	/* Compare pointers: the same word may occur twice. */
	for (size_t i = 1; given[i] != NULL; i++) {
		before = given[i] == word ? given[i - 1] : before;
	}
	for (size_t i = 0; i < sizeof(no_argument) / sizeof(no_argument[0]); i++) {
		if (strcmp(before, no_argument[i].option) == 0) {
			return no_argument[i].remedy;
		}
	}
	/* Two numbers look like sizes, and an -r is somewhere else. */
	if (cli->confidence.result_only && first > 0 && word[first] == ',' &&
	    word[first + 1 + strspn(word + first + 1, count)] == '\0') {
		return no_argument[0].remedy;
	}
	return "unexpected argument (-H names a host)";
}

void
np_stray_words(struct np_cli *cli, char **argv, int from, int to, char *const *given)
{
	/* Not after an unknown or withdrawn option, which has a line: it may be the argument. */
	for (int i = from + cli->notes.words;
	     i < to && cli->gone == '\0' && cli->notes.skipped == '\0'; i++) {
		NP_NOTE(&cli->notes, "%.60s: ignored: %s\n", argv[i],
			from > 0 ? "unexpected argument of the test"
				 : remedy_of(cli, argv[i], given));
	}
}

enum { LONG_WAIT_S = 1024, HEADERS = 9 }; /* larger values must be mistakes */

void
np_stray_options(struct np_cli *cli)
{
	const struct np_call_plan *call = &cli->plan.near.call;
	size_t len = strlen(cli->test);

	if (cli->wait_s >= LONG_WAIT_S) {
		NP_NOTE(
		    &cli->notes,
		    "-s %d: waits for that many seconds before the test; the sizes of the local "
		    "socket buffers are a test option (-- -s SIZE)\n",
		    cli->wait_s);
	}
	if (cli->output.headers > HEADERS) {
		NP_NOTE(
		    &cli->notes,
		    "-P %d: shows headers, as 1 does; the ports of the data connection are a test "
		    "option (-- -P LOCAL,REMOTE)\n",
		    cli->output.headers);
	}
	if (call->interval_burst > 0 && call->interval_us == 0 && len > 2 &&
	    strcasecmp(cli->test + len - 2, "RR") == 0) {
		NP_NOTE(
		    &cli->notes,
		    "-b %u: paces, %u transactions a millisecond (-w); requests in flight are a "
		    "test option (-- -b N)\n",
		    call->interval_burst, call->interval_burst);
	}
}

/* Note a -m or -M for the wrong end only. near_uses: the near end uses it, else the far end. */
static void
note_wrong_end(struct np_cli *cli, char letter, int32_t used, int32_t unused, bool near_uses,
	       bool near_first)
{
	if (used < 0 && unused > 0) {
		NP_NOTE(&cli->notes,
			"-- -%c: ignored: the end that %s is the %s one (-- -%c %s%d)\n", letter,
			letter == 'm' ? "sends" : "receives", near_uses ? "near" : "far", letter,
			near_uses == near_first ? "" : ",", unused);
	}
}

/* Note an option that was given without the one that it needs. */
static void
note_alone(struct np_cli *cli, bool alone, const char *option, const char *with)
{
	if (alone) {
		NP_NOTE(&cli->notes, "%s: ignored: it goes with %s\n", option, with);
	}
}

void
np_stray_settled(struct np_cli *cli)
{
	/* Options that need one of these are ignored in a test without it; TCP's, for datagrams. */
	static const unsigned traits = NP_FOR_UDP | NP_FOR_BYTES | NP_FOR_PIPE | NP_FOR_SIZED |
				       NP_FOR_BURST | NP_FOR_LOSSES | NP_FOR_CONNECTS;
	unsigned lacks = (traits | (cli->bench.transport->connected ? 0u : (unsigned)NP_FOR_TCP)) &
			 ~np_cli_traits(&cli->bench);

	bool near = cli->plan.role == NP_LEAD;
	const struct np_call_plan *from = near ? &cli->plan.near.call : &cli->plan.far.call,
				  *to = near ? &cli->plan.far.call : &cli->plan.near.call;

	/* Options with only a long name are refused instead (checks.c). */
	for (int i = 0; i < cli->notes.given_count; i++) {
		const struct np_option *o = cli->notes.given[i];

		if ((o->needs & lacks) != 0 && o->letter != '\0') {
			NP_NOTE(&cli->notes,
				"-- -%c: ignored, as in netperf: %s has no use for it\n", o->letter,
				cli->bench.name);
		}
	}
	if (!cli->plan.pattern->transactions && !cli->plan.both) {
		note_wrong_end(cli, 'm', from->send_size, to->send_size, near, true);
		note_wrong_end(cli, 'M', to->recv_size, from->recv_size, !near, false);
	}
	if (cli->output.interim_s > 0 && (cli->bench.flags & NP_B_SPARSE) != 0) {
		NP_NOTE(&cli->notes, "-D: ignored, as in netperf: %s has no interim results\n",
			cli->bench.name);
	}
	note_alone(cli, cli->target.nat && cli->target.key == NULL, "--nat", "--key-file");
	note_alone(cli, cli->strict && cli->rate == 0, "--strict", "--rate");
	note_alone(cli, cli->evidence.sample_ms > 0 && (cli->evidence.caps & NP_CAP_TEST) == 0,
		   "--sample-interval", "--json, --explain or the like");
}

void
np_stray_unparsed(struct np_err *err)
{
	int letter = -err->sys; /* of an unknown option; else no letter has this value */

	for (size_t i = 0; i < np_test_options.count && letter != 0; i++) {
		if (np_test_options.rows[i].letter == letter) {
			np_fail_verbatim(err, NP_EUSAGE, -letter,
					 "-%c: no such option before --, but one of a test (-- "
					 "-%c; -h lists them)",
					 letter, letter);
			return;
		}
	}
}

/* Is it spelled like P99_LATENCY or CONNECT_P99? */
static bool
looks_like_percentile(const char *name)
{
	static const char connect[] = "CONNECT_P", latency[] = "_LATENCY", digits[] = "0123456789.";
	bool connects = strncasecmp(name, connect, strlen(connect)) == 0;
	const char *number = name + (connects ? strlen(connect) : 1);
	size_t n = connects || strncasecmp(name, "P", 1) == 0 ? strspn(number, digits) : 0;

	return n > 0 && strcasecmp(number + n, connects ? "" : latency) == 0;
}

/* The hint at the nearest figure. No table has percentiles: for P95_LATENCIES try P95_LATENCY. */
static const char *
nearest_figure(const char *name, char out[NP_NEAREST_TEXT])
{
	size_t digits = strncasecmp(name, "P", 1) == 0 ? strspn(name + 1, "0123456789.") : 0;
	struct np_nearest n = { .word = name };
	char percentile[LONGEST + 1];

	snprintf(percentile, sizeof(percentile), "P%.*s_LATENCY", (int)digits, name + 1);
	if (digits > 0 && np_figure_find(percentile) >= 0) {
		np_nearest_look(&n, percentile);
	}
	for (size_t i = 0; np_metric_name_at(i) != NULL; i++) {
		np_nearest_look(&n, np_metric_name_at(i));
	}
	return np_nearest_text(&n, out);
}

const char *
np_stray_test(const char *name, char out[NP_NEAREST_TEXT])
{
	struct np_nearest n = { .word = name };
	const char *one;

	for (size_t i = 0; (one = np_cli_test_at(i)) != NULL; i++) {
		np_nearest_look(&n, one);
	}
	return np_nearest_text(&n, out);
}

int
np_stray_refuse_test(const char *name, struct np_err *err)
{
	char like[NP_NEAREST_TEXT];

	return np_usage(err, "-t: %s is not a test of this netperf%s (--help lists them)", name,
			np_stray_test(name, like));
}

int
np_stray_selectors(const char *list, enum np_errc code, struct np_err *err)
{
	static const char separators[] = ", \t;";
	char name[LONGEST + 1], like[NP_NEAREST_TEXT];
	bool file = code != NP_EUSAGE;

	list += strspn(list, separators);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(list, separators), list);
	return np_fail(err, code, 0,
		       "%s: there is no such output selector%s%s (--list-figures shows them)",
		       file ? list : name, file ? " or file" : "", nearest_figure(name, like));
}

void
np_stray_names(struct np_cli *cli)
{
	const char *at = cli->output.selectors;
	char name[LONGEST + 1], like[NP_NEAREST_TEXT];

	if (cli->output.unit != '\0' && strchr("GMKBgmkx", cli->output.unit) == NULL) {
		NP_NOTE(
		    &cli->notes,
		    "-f %c: not a unit (G M K B are bytes, g m k bits, x transactions): KBytes/s "
		    "as in netperf\n",
		    cli->output.unit);
	}
	if (cli->output.selection.unknown[0] != '\0') {
		NP_NOTE(&cli->notes,
			"%s: '%s': there is no such output selector%s (--list-figures "
			"shows them)\n",
			at, cli->output.selection.unknown,
			nearest_figure(cli->output.selection.unknown, like));
	}
	/* Without a comma it may be the name of a file. */
	while (at != NULL && strpbrk(cli->output.selectors, ",;") != NULL && *at != '\0') {
		size_t len = strcspn(at, ", \t;");

		snprintf(name, sizeof(name), "%.*s", (int)len, at);
		if (len > 0 && np_figure_find(name) < 0 && looks_like_percentile(name)) {
			NP_NOTE(&cli->notes,
				"%s: not a percentile (above 0 and at most 100, with at most 6 "
				"decimals, as P99.9_LATENCY)\n",
				name);
		} else if (len > 0 && np_figure_find(name) < 0) {
			NP_NOTE(&cli->notes,
				"%s: there is no such output selector%s (--list-figures shows "
				"them)\n",
				name, nearest_figure(name, like));
		}
		at += len + (at[len] != '\0');
	}
}
