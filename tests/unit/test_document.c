/*
 * The document of a run (--json): what it says of several data connections; and what is printed
 * beside it of a run that failed before it began.
 */
#include "cli/document.h"

#include <jansson.h>

#include "base/clock.h"
#include "bench/engine/engine.h"
#include "cli/show.h"
#include "tests/lib/check.h"

enum { FLOWS = 3 };

static bool both; /* the last flow comes back, for one second */

/* Two seconds of a test by that name, in rows of 1000, 2000 and 3000 bytes. */
static void
fill(struct np_outcome *out, struct np_flow_result *rows, struct np_plan *p)
{
	memset(out, 0, sizeof(*out));
	np_far_init(&out->far);
	out->measured = true;
	out->tally.plan = p;
	out->tally.started_ns = 5 * NP_SEC;
	out->tally.ended_ns = 7 * NP_SEC;
	out->tally.led_ns = 2 * NP_SEC;
	out->tally.flows = p->flows;
	out->tally.flow = p->flows > 1 ? rows : NULL;
	for (int i = 0; i < FLOWS; i++) {
		rows[i] = (struct np_flow_result){ .sent = (uint64_t)(i + 1) * 1000,
						   .transactions = (uint64_t)i * 10,
						   .tcp = { .retransmitted_segments = i - 1,
							    .rtt_us = -1 } };
	}
	if (p->both) {
		out->tally.followed_ns = NP_SEC;
		rows[FLOWS - 1].received = rows[FLOWS - 1].sent;
		rows[FLOWS - 1].sent = 0;
	}
}

/* Interim results: of several sessions a sum after a second; of each test the rest at its end. */
static void
add_interims(struct np_document *d, const struct np_cli *cli, const struct np_outcome *out,
	     bool sessions)
{
	const struct np_counts sum = { .transactions = 10 };
	struct np_show_interim interim = { .cli = cli, .doc = d };

	np_show_interim_flows(&interim);
	if (sessions) {
		np_show_interim_sum(&interim, &cli->plan, &sum, out->tally.started_ns,
				    out->tally.started_ns + NP_SEC);
	}
	np_show_iteration(&interim, true, out);
	np_show_interim_free(&interim);
}

/* The document of one iteration, read back. */
static json_t *
document_from(const char *test, uint32_t flows, unsigned caps)
{
	static struct np_cli cli;
	static struct np_client client;
	struct np_flow_result rows[FLOWS];
	struct np_document *d;
	struct np_outcome out;
	struct np_record r;
	struct np_err err;
	char *argv[] = { (char *)"netperf", (char *)"--json", (char *)"-t", (char *)test, NULL };
	char *text = NULL;
	size_t size;
	json_t *root;
	FILE *to = open_memstream(&text, &size);

	assert_int_equal(np_cli_parse(&cli, 4, argv, &err), NP_OK);
	assert_int_equal(np_cli_settle(&cli, &err), NP_OK);
	cli.plan.flows = flows;
	cli.plan.both = both;
	client.granted.caps = caps;
	assert_int_equal(np_document_new(&cli, &d, &err), NP_OK);
	np_document_begin(d, &cli, &client);
	fill(&out, rows, &cli.plan);
	add_interims(d, &cli, &out, caps == 0);
	np_report(&out, np_unit('m'), &r);
	np_document_iteration(d, &out, &r, true);
	assert_int_equal(np_document_write(d, NULL, "", 0, to, &err), NP_OK);
	fclose(to);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	free(text);
	np_document_free(d);
	np_cli_free(&cli);
	return root;
}

static json_t *
flows_of(const json_t *root)
{
	return json_object_get(json_array_get(json_object_get(root, "iterations"), 0), "flows");
}

static json_t *
document_of(const char *test, uint32_t flows)
{
	return document_from(test, flows, NP_CAP_PLAN);
}

TEST(each_flow_has_a_row)
{
	json_t *root = document_of("TCP_RR", FLOWS), *flows = flows_of(root);

	assert_int_equal(json_array_size(flows), FLOWS);
	for (int i = 0; i < FLOWS; i++) {
		json_t *row = json_array_get(flows, (size_t)i);

		assert_int_equal(json_integer_value(json_object_get(row, "bytes_sent")),
				 1000 * (i + 1));
		assert_int_equal(json_integer_value(json_object_get(row, "transactions")), 10 * i);
		assert_true(json_real_value(json_object_get(row, "transactions_per_s")) == 5 * i);
		assert_true(json_real_value(json_object_get(row, "bits_per_s")) == 4000 * (i + 1));
		assert_null(json_object_get(row, "rtt_us"));
		assert_true((json_object_get(row, "retransmissions") == NULL) == (i == 0));
	}
	json_decref(root);
}

TEST(a_stream_has_no_transactions)
{
	json_t *root = document_of("TCP_STREAM", FLOWS);
	json_t *row = json_array_get(flows_of(root), 0);

	assert_null(json_object_get(row, "transactions"));
	assert_null(json_object_get(row, "transactions_per_s"));
	assert_true(json_real_value(json_object_get(row, "bits_per_s")) == 4000);
	json_decref(root);
}

TEST(flows_of_both_ways_have_the_time_of_their_way)
{
	json_t *root, *rows;

	both = true;
	root = document_from("TCP_STREAM", FLOWS, NP_CAP_PLAN);
	both = false;
	rows = flows_of(root);
	assert_near(json_number_value(json_object_get(json_array_get(rows, 1), "bits_per_s")), 8000,
		    1e-6);
	assert_near(json_number_value(json_object_get(json_array_get(rows, 2), "bits_per_s")),
		    24000, 1e-6);
	json_decref(root);
}

TEST(one_flow_is_the_sum)
{
	json_t *root = document_of("TCP_RR", 1);

	assert_null(flows_of(root));
	json_decref(root);
}

TEST(the_plan_says_flows_and_engines)
{
	json_t *root = document_of("TCP_RR", FLOWS), *plan = json_object_get(root, "plan");
	json_t *engine = json_object_get(plan, "engine");
	struct np_plan p;

	np_plan_init(&p);
	p.flows = FLOWS;
	assert_int_equal(json_integer_value(json_object_get(plan, "flows")), FLOWS);
	assert_string_equal(json_string_value(json_object_get(engine, "near")),
			    np_engine_of(&p)->name);
	assert_null(json_object_get(engine, "far"));
	assert_int_equal(json_integer_value(json_object_get(plan, "sessions")), 1);
	assert_true(json_is_false(json_object_get(plan, "both")));
	json_decref(root);
}

/* With a daemon that knows no plans. */
TEST(the_plan_says_how_many_sessions)
{
	json_t *root = document_from("TCP_RR", FLOWS, 0), *plan = json_object_get(root, "plan");
	json_t *engine = json_object_get(plan, "engine");

	assert_int_equal(json_integer_value(json_object_get(plan, "flows")), FLOWS);
	assert_int_equal(json_integer_value(json_object_get(plan, "sessions")), FLOWS);
	assert_string_equal(json_string_value(json_object_get(engine, "near")), "sync");
	json_decref(root);
}

/* The rates of flows since the sum of all sessions, which had none, are not known. */
TEST(interim_results_have_rates_of_flows_unless_there_are_sessions)
{
	json_t *root = document_from("TCP_RR", FLOWS, NP_CAP_PLAN);
	json_t *list = json_object_get(root, "interim");

	assert_int_equal(json_array_size(list), 1);
	assert_int_equal(json_array_size(json_object_get(json_array_get(list, 0), "flows")), FLOWS);
	json_decref(root);
	root = document_from("TCP_RR", FLOWS, 0);
	list = json_object_get(root, "interim");
	assert_int_equal(json_array_size(list), 2);
	assert_null(json_object_get(json_array_get(list, 1), "flows"));
	json_decref(root);
}

/* As a later iteration whose daemon is gone: its tally has no plan. */
TEST(a_run_that_has_not_begun_was_refused_nothing)
{
	static struct np_cli cli;
	const struct np_outcome none = { .measured = false };
	struct np_err err;
	char *argv[] = { (char *)"netperf", (char *)"-t", (char *)"TCP_CRR", NULL };

	assert_int_equal(np_cli_parse(&cli, 3, argv, &err), NP_OK);
	assert_int_equal(np_cli_settle(&cli, &err), NP_OK);
	assert_writes(out, np_show_refused(out, &cli, &none), "");
	np_cli_free(&cli);
}

TEST_MAIN()
