#include "cli/beside.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/aim.h"

enum { USUAL_RATE = 100 }; /* a second: a thousand in ten seconds, enough for P99 */

/* Settle options as of netperf -t NAME --rate N --arrivals poisson, with the load's ends. */
static int
settle_probe(struct np_cli_beside *p, const struct np_cli *load, struct np_err *err)
{
	char rate[24], program[] = "netperf", t[] = "-t", r[] = "--rate", a[] = "--arrivals",
		       how[] = "poisson";
	const char *colon = strchr(load->beside, ':');
	int length = colon != NULL ? (int)(colon - load->beside) : (int)strlen(load->beside);
	char *words[] = { program, t, p->name, r, rate, a, how, NULL };
	struct np_cli *cli = &p->cli;

	snprintf(p->name, sizeof(p->name), "%.*s", length, load->beside);
	snprintf(rate, sizeof(rate), "%d", USUAL_RATE);
	if (colon != NULL) {
		snprintf(rate, sizeof(rate), "%s", colon + 1);
	}
	if (np_cli_parse(cli, 7, words, err) != NP_OK) {
		return np_fail_in(err, "--beside");
	}
	if (np_bench_find(p->name) == NULL) {
		return np_usage(err, "--beside: %s is not a test of this netperf (try TCP_RR)",
				p->name);
	}
	cli->target = load->target;
	cli->target.local_port[0] = '\0'; /* in use by the load */
	cli->data = load->data;
	cli->plan.warm_up_ms = load->plan.warm_up_ms; /* so np_aim_control() asks for PLAN */
	if (np_cli_settle(cli, err) != NP_OK) {
		return np_fail_in(err, "--beside");
	}
	if (cli->knee_times > 0) { /* NAME:auto */
		return np_usage(err, "--beside %s: needs one rate (try %s:%d)", load->beside,
				p->name, USUAL_RATE);
	}
	if (cli->plan.rate == 0) { /* the rate of a stream is elsewhere, in bits */
		return np_usage(err, "--beside: %s has no requests and responses (try TCP_RR)",
				p->name);
	}
	return cli->bench.transport->named
		   ? NP_OK
		   : np_usage(err, "--beside: %s uses no network (try TCP_RR)", p->name);
}

int
np_cli_beside_new(const struct np_cli *load, struct np_cli_beside **probe, struct np_err *err)
{
	struct np_cli_beside *p;

	*probe = NULL;
	if (load->beside == NULL) {
		return NP_OK;
	}
	p = *probe = calloc(1, sizeof(*p));
	if (p == NULL) {
		return np_fail(err, NP_ESYS, 0, "--beside: not enough memory");
	}
	p->client.chan.fd = -1;
	if (settle_probe(p, load, err) != NP_OK) {
		return err->code;
	}
	p->run.probe = (struct np_trial){ .client = &p->client,
					  .target = &p->cli.target,
					  .plan = &p->cli.plan,
					  .terms = &p->cli.terms,
					  .peer = &p->ends.remote.at[0] };
	np_aim_control(&p->cli);
	return NP_OK;
}

int
np_cli_beside_aim(struct np_cli_beside *p, const struct np_client *load, struct np_err *err)
{
	if (p == NULL) {
		return NP_OK;
	}
	p->client.hooks = load->hooks; /* for -d main() adds one later, of the load alone */
	return np_aim_data(&p->cli, load, &p->ends, NULL, err) == NP_OK
		   ? NP_OK
		   : np_fail_in(err, "--beside");
}

/* Print latencies after the word `when`, with numbers as --latency has them. */
static void
show_times(FILE *out, const char *when, const struct np_hist *h)
{
	char p50[24], p99[24];

	np_hist_us((double)np_hist_percentile(h, 0.5), p50, sizeof(p50));
	np_hist_us((double)np_hist_percentile(h, 0.99), p99, sizeof(p99));
	fprintf(out, "%s P50 %s us, P99 %s us, %.0f round trips a minute", when, p50, p99,
		np_beside_rpm(h));
}

void
np_cli_beside_show(const struct np_cli_beside *p, bool line, FILE *out)
{
	const struct np_beside *b = p != NULL ? &p->run : NULL;
	uint64_t due;
	bool silent;

	if (b == NULL || b->idle == NULL || b->loaded == NULL) {
		return;
	}
	if (b->limits[0] != '\0') {
		fprintf(out, "netperf: --beside: the load generator was the bottleneck: %s\n",
			b->limits);
	}
	due = np_hist_count(b->loaded);
	silent = 2 * b->unanswered > due; /* their latency is unknown, and the longest */
	if (b->died[0] != '\0') {
		fprintf(out, "netperf: --beside: no latency under load: %s\n", b->died);
	} else if (silent) {
		fprintf(out,
			"netperf: --beside: no median under load: %" PRIu64 " of %" PRIu64
			" transactions were not answered (try a longer -l)\n",
			b->unanswered, due);
	}
	if (line) {
		fprintf(out, "netperf: --beside: %s: ", p->cli.bench.name);
		show_times(out, "alone", b->idle);
		if (b->died[0] == '\0' && !silent && due > 0) {
			show_times(out, "; under load", b->loaded);
			if (b->own_us > 0) {
				fprintf(out, "; over the load's own connections %.0f us",
					b->own_us);
			}
		}
		fputc('\n', out);
	}
}

void
np_cli_beside_free(struct np_cli_beside *p)
{
	if (p != NULL) {
		np_beside_free(&p->run);
		np_cli_free(&p->cli);
		free(p);
	}
}
