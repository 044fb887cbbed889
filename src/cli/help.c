#include "cli/modes.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "bench/transport/endpoint.h"
#include "stats/record.h"

static const char usage[] = "Usage: netperf [global options] -- [test options] \n";

static const char notes[] =
    "\nPairs: \"x,y\"; \"x,\" and \",y\" leave the other one alone. Counts take k m g\n"
    "(powers of 1000) and K M G (of 1024).\n";

/* Print tests (`all`: also those that this kernel can't run), and protocols that it lacks. */
static void
print_tests(FILE *out, const char *title, bool all)
{
	char text[1024] = "";
	const struct np_transport *t;
	struct np_err err;
	size_t len = 0;

	for (size_t i = 0; np_cli_test_at(i) != NULL; i++) {
		const struct np_bench *b = np_bench_at(i);

		if (all || b == NULL || np_transport_probe(b->transport, &err) != NP_EUNSUP) {
			len = np_text_add(text, sizeof(text), len, "%s ", np_cli_test_at(i));
		}
	}
	np_help_fill(out, text, fprintf(out, "%s", title), 17); /* as np_help_brief() */
	len = 0;
	for (size_t i = 0; (t = np_transport_at(i)) != NULL; i++) {
		bool first = np_transport_by_name(t->name, 0) == t; /* of the rows with that name */

		if (first && np_transport_probe(t, &err) == NP_EUNSUP) {
			len = np_text_add(text, sizeof(text), len, "%s ", t->name);
		}
	}
	if (len > 0) {
		np_text_add(text, sizeof(text), len, "(--list-tests tells what is missing)");
		np_help_fill(out, text, fprintf(out, "Not on this host"), 17);
	}
}

static const char examples[] =
    "\nnetperf -H HOST                           what a TCP connection carries\n"
    "netperf -H HOST -t TCP_RR --explain       transactions a second, their limit\n"
    "netperf -H HOST -t UDP_STREAM -- -m 1472  what is sent, what arrives\n"
    "netperf -H HOST -I 99,5 -c -C             again until sure, with CPU utilisation\n"
    "netperf -H HOST -t TCP_RR -- -k THROUGHPUT,P50_LATENCY,P99_LATENCY\n";

void
np_help_short(FILE *out)
{
	fputs(usage, out);
	np_help_brief(out, &np_global_options, NULL);
	np_help_brief(out, &np_test_options, "After --");
	print_tests(out, "Tests (-t)", false);
	fputs(examples, out);
}

void
np_help_all(FILE *out)
{
	fprintf(out, "%sGlobal options:\n", usage);
	np_help_print(out, &np_global_options, 0, NULL, NULL);
	fputs("\nTests (netperf -t NAME -- -h lists a test's options):\n", out);
	print_tests(out, "", true);
	fputs(notes, out);
}

struct shown {
	const struct np_bench *bench; /* NULL: OMNI or UUID */
	unsigned has;                 /* np_cli_traits() */
	char words[160];              /* a help line made for this test */
};

/* A help line for this test, if its default or the option's effect differs; else NULL. */
static const char *
special_words(struct shown *s, const struct np_option *o)
{
	const struct np_bench *b = s->bench;
	const char *what = o->letter == 'm' ? "send" : "receive";

	if (b == NULL) {
		return NULL;
	}
	switch (o->letter) {
	case 'R':
		return (b->flags & NP_B_ROUTE_OFF) != 0 ? "allow routing (0)" : "allow routing (1)";
	case 'K':
		return (b->flags & NP_B_OLD) != 0 ? "TCP congestion control of the local end"
						  : NULL;
	case 'm':
	case 'M':
		if (b->transport->link) {
			snprintf(s->words, sizeof(s->words),
				 "bytes of a %s: of a frame, after its header (the MTU)", what);
			return s->words;
		}
		if (b->transport->message.max > 0) {
			snprintf(s->words, sizeof(s->words),
				 "bytes of a %s (socket buffer, at most %d)", what,
				 b->transport->message.max);
			return s->words;
		}
		return NULL;
	default:
		return NULL;
	}
}

/* The help line of a row for this test; NULL: it does not have the option. */
static const char *
words_for(const struct np_option *o, void *ctx)
{
	struct shown *s = ctx;
	const char *other, *colon = strstr(o->help, ": ");

	if ((o->needs & ~s->has) != 0) {
		return NULL;
	}
	other = special_words(s, o);
	if (other != NULL) {
		return other;
	}
	/* omit "UDP: " and the like, but keep a colon within the sentence */
	if (s->bench != NULL && o->needs != 0 && colon != NULL &&
	    strcspn(o->help, ";(") > (size_t)(colon - o->help)) {
		return colon + 2;
	}
	return o->help;
}

void
np_help_test(const struct np_cli *cli, FILE *out)
{
	/* As in netperf, which has none for other tests. */
	static const struct {
		unsigned scope;
		const char *heading;
	} headings[] = {
		{ NP_SCOPE_OMNI, "OMNI and Migrated BSD Sockets Test Options:\n" },
		{ NP_SCOPE_BSD, "TCP/UDP BSD Sockets Test Options:\n" },
		{ NP_SCOPE_UNIX, "STREAM/DG UNIX Sockets Test Options:\n" },
		{ NP_SCOPE_SCTP, "SCTP Sockets Test Options:\n" },
	};
	struct shown shown = { .bench = np_bench_find(cli->test) };
	unsigned scope = np_cli_scope(cli);
	char like[NP_NEAREST_TEXT];

	fputs(usage, out);
	for (size_t i = 0; i < sizeof(headings) / sizeof(headings[0]); i++) {
		fputs(headings[i].scope == scope ? headings[i].heading : "", out);
	}
	if (scope == 0 && np_cli_test(cli) != NP_TEST_UNKNOWN) {
		fprintf(out, "%.40s has no options of its own.\n", cli->test);
		return;
	}
	if (scope == 0) {
		fprintf(out, "%.40s is not a test of this netperf%s (--help lists them).\n",
			cli->test, np_stray_test(cli->test, like));
		return;
	}
	if (shown.bench != NULL) {
		shown.has = np_cli_traits(shown.bench);
	} else if (strcasecmp(cli->test, "OMNI") == 0) { /* else UUID, which has no data */
		/* OMNI may have all but TLS, for which it has no number. */
		shown.has = ~(unsigned)(NP_FOR_NONE | NP_FOR_TLS);
	}
	fprintf(out, "Test options of %.40s:\n", cli->test);
	np_help_print(out, &np_test_options, scope, words_for, &shown);
	fputs(notes, out);
}

/* A line of --list-tests: can this machine run the test? If not, why. */
static void
print_test(FILE *out, const char *name, const struct np_transport *t)
{
	struct np_err err;
	int rc = np_transport_probe(t, &err);

	np_text_line(out, "%-23s %-8s %s%s%s", name, t->name, rc == NP_OK ? "yes" : "no",
		     rc == NP_OK ? "" : "   ", rc == NP_OK ? "" : err.msg);
}

/* Does a row of the bench table use it? */
static bool
has_test(const struct np_transport *t)
{
	const struct np_bench *b;

	for (size_t i = 0; (b = np_bench_at(i)) != NULL; i++) {
		if (b->transport == t) {
			return true;
		}
	}
	return false;
}

void
np_help_tests(FILE *out)
{
	const struct np_transport *t;
	const struct np_bench *b;
	char name[64];

	np_text_line(out, "%-23s %-8s %s", "test", "protocol", "can this machine run it?");
	for (size_t i = 0; (b = np_bench_at(i)) != NULL; i++) {
		print_test(out, b->name, b->transport);
	}
	/* Transports that only an OMNI test can have. */
	for (size_t i = 0; (t = np_transport_at(i)) != NULL; i++) {
		if (!has_test(t)) {
			snprintf(name, sizeof(name), "OMNI -- -T %s", t->name);
			print_test(out, name, t);
		}
	}
}

void
np_help_figures(FILE *out)
{
	fputs("Figures for test options -k, -o and -O, and their units (-f: by option -f).\n"
	      "Local is the end of netperf, remote that of netserver; -1 is not known.\n",
	      out);
	for (int s = NP_SUBJECT_NONE + 1; s < NP_SUBJECTS; s++) {
		fprintf(out, "\n%s:\n", np_subject_title((enum np_subject)s));
		for (int i = 0; i < NP_METRICS; i = np_metric_next(i)) {
			const struct np_metric *m = &np_metrics[i];

			if (m->subject == (enum np_subject)s) {
				int used = fprintf(out, "  %-27s %-8s", m->name, m->unit);

				np_help_fill(out, m->words, used, 39); /* past both columns */
			}
		}
	}
}
