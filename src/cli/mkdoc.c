/*
 * Used while building: fills netperf's manual page and completions in, from standard input to
 * standard output.
 */
#include <string.h>

#include "cli/args.h"
#include "config.h"
#include "opt/doc.h"
#include "out/preflight_rules.h"

/* Tests that are no row of the bench table, as they move no data or are put together by options. */
static const char *const other_tests[] = { "OMNI", "UUID", "LOC_CPU", "REM_CPU", NULL };

static const char *
test_at(size_t i)
{
	size_t benches = 0;

	while (np_bench_at(benches) != NULL) {
		benches++;
	}
	return i < benches ? np_bench_at(i)->name : other_tests[i - benches];
}

/* All but the two that mark begin and end. */
static const char *
figure_at(size_t i)
{
	size_t id = i + NP_M_OUTPUT_NONE + 1;

	id += id >= NP_M_OUTPUT_END;
	return id < NP_METRICS ? np_metric((enum np_metric_id)id)->name : NULL;
}

/*
 * The table of transports is checked here, too, as a build runs this program: a listener that
 * admits strangers would be found by whoever finds it.
 */
static int
check_transports(struct np_err *err)
{
	const struct np_transport *t;

	for (size_t i = 0; (t = np_transport_at(i)) != NULL; i++) {
		if (t->admit == NP_ADMIT_UNSAID) {
			return np_fail(err, NP_EUSAGE, 0,
				       "the transport %s does not say whom its listener admits: "
				       "give it .admit (doc/architecture.md, \"A transport\")",
				       t->name);
		}
	}
	return NP_OK;
}

int
main(void)
{
	const struct np_doc_table tables[] = {
		{ "global", np_global_options, np_global_options_count, NULL, np_global_groups },
		{ "test", np_test_options, np_test_options_count, np_test_scopes, NULL },
	};
	static const struct np_doc_list lists[] = {
		{ "tests", test_at },
		{ "figures", figure_at },
		{ "rules", np_preflight_rule },
	};
	const struct np_doc doc = { PACKAGE_STRING, tables, 2, lists, 3 };
	struct np_err err;

	if (check_transports(&err) != NP_OK || np_doc_fill(&doc, stdin, stdout, &err) != NP_OK) {
		fprintf(stderr, "mkdoc: %s\n", err.msg);
		return 1;
	}
	return 0;
}
