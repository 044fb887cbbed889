#include "cli/modes.h"

#include <stdio.h>

#include "base/text.h"
#include "bench/engine/engine.h"
#include "cli/aim.h"
#include "cli/document.h"

/* The plan of one of the test's sessions: it has one flow where each flow needs a session. */
static struct np_plan
session_plan(const struct np_cli *cli)
{
	struct np_plan p = cli->plan;

	p.flows = np_plan_several(&p) ? p.flows : 1;
	return p;
}

/* Ask the connected daemon for its engines, with a test's data addresses or interface. */
static int
ask_far(struct np_cli *cli, struct np_client *c, struct np_engine_lists *lists, struct np_err *err)
{
	struct np_eth eth = { .fd = 0 };
	struct np_ends ends;
	struct np_plan p;
	int rc = NP_OK;

	if (cli->bench.transport->link) {
		rc = np_cli_open_eth(cli, c, &eth, err);
	} else if (cli->bench.transport->named) {
		rc = np_aim_data(cli, c, &ends, NULL, err);
	}
	if (rc == NP_OK) {
		p = session_plan(cli);
		rc = np_client_engines(c, &p, &cli->terms, &lists->far, err);
	}
	if (cli->terms.eth != NULL) {
		np_eth_close(&eth);
		cli->terms.eth = NULL;
	}
	return rc;
}

/* Get the far end's list, or note in lists->far_lacks why there is none. */
static int
list_far(struct np_cli *cli, struct np_client *c, struct np_engine_lists *lists, struct np_err *err)
{
	int rc;

	if (!cli->target.host.given || cli->plan.no_control) {
		snprintf(lists->far_lacks, sizeof(lists->far_lacks), "%s",
			 cli->plan.no_control ? "without a control connection (-N)"
					      : "no host was named (-H)");
		return NP_OK;
	}
	np_aim_control(cli);
	cli->target.wants.caps |= NP_CAP_PLAN;
	rc = np_client_connect(c, &cli->target, err);
	if (rc == NP_OK) {
		/* as np_trial_connect() sets it */
		cli->plan.sequence = (c->granted.caps & NP_CAP_SEQUENCE) != 0;
		rc = ask_far(cli, c, lists, err);
		np_chan_close(&c->chan);
	}
	if (rc != NP_OK) {
		snprintf(lists->far_lacks, sizeof(lists->far_lacks), "%s", err->msg);
	}
	/* A daemon that is not ours cannot tell. */
	return rc == NP_EUNSUP && (c->granted.caps & NP_CAP_PLAN) == 0 ? NP_OK : rc;
}

static void
print_list(const struct np_cli *cli, const char *where, const struct np_bag *list, FILE *out)
{
	struct np_engine_told e;
	size_t at = 0;

	np_text_line(out, "engines at %s, for %s with --flows %u:", where, cli->bench.name,
		     cli->plan.flows);
	while (np_engine_next(list, &at, &e)) {
		np_text_line(out, "  %-8s %s%s%s", e.name, e.help,
			     e.why != NULL ? "; not here: " : "", e.why != NULL ? e.why : "");
	}
}

/* Make and print both lists. If the far end fails, that of this end is printed nevertheless. */
static int
make_lists(struct np_cli *cli, struct np_client *c, struct np_engine_lists *lists,
	   struct np_err *err)
{
	int rc = list_far(cli, c, lists, err);
	struct np_err unwritten;
	struct np_plan p = session_plan(cli);
	const struct np_engine *e;

	for (size_t i = 0; (e = np_engine_at(i)) != NULL; i++) {
		np_engine_tell(e, np_engine_why_not(e, &p), lists->near);
	}
	if (!cli->output.json || cli->output.json_file != NULL) {
		char where[sizeof(c->peer) + 32];

		print_list(cli, "this end", lists->near, stdout);
		if (lists->far != NULL) {
			snprintf(where, sizeof(where), "the netserver at %s", c->peer);
			print_list(cli, where, lists->far, stdout);
		} else if (rc == NP_OK) { /* else an error line says why */
			np_text_line(stdout, "only this end is shown: %s", lists->far_lacks);
		}
	}
	if (cli->output.json && np_document_engines(cli, lists, stdout, &unwritten) != NP_OK &&
	    rc == NP_OK) {
		*err = unwritten;
		rc = err->code;
	}
	return rc;
}

int
np_engines_list(struct np_cli *cli, struct np_client *c, struct np_err *err)
{
	struct np_engine_lists lists = { .near = NULL };
	int rc;

	if (np_cli_test(cli) == NP_TEST_UNKNOWN) {
		return np_stray_refuse_test(cli->test, err);
	}
	if (np_cli_test(cli) != NP_TEST_BENCH) {
		return np_usage(err, "--engine list: %s has no data connection", cli->test);
	}
	if (np_cli_settle(cli, err) != NP_OK) {
		return err->code;
	}
	lists.near = np_bag_new();
	rc = make_lists(cli, c, &lists, err);
	np_bag_free(lists.near);
	np_bag_free(lists.far);
	return rc;
}
