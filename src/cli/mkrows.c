/* Used while building: prints what netperf's manual page and completions are made of. */
#include <errno.h>

#include "cli/args.h"
#include "config.h"
#include "opt/doc.h"
#include "out/preflight_rules.h"

/* All figures except the two that mark begin and end. */
static const char *
figure_at(size_t i)
{
	i++;
	return np_metric_name_at(i + (i >= NP_M_OUTPUT_END));
}

int
main(void)
{
	const struct np_doc_table tables[] = {
		{ "global", np_global_options, np_global_options_count, NULL, np_global_groups },
		{ "test", np_test_options, np_test_options_count, np_test_scopes, NULL },
	};
	static const struct np_doc_list lists[] = {
		{ "tests", np_cli_test_at },
		{ "figures", figure_at },
		{ "rules", np_preflight_rule },
	};
	const struct np_doc doc = { PACKAGE_STRING, tables, 2, lists, 3 };
	struct np_err err = { .code = NP_OK };
	const struct np_transport *t;

	/* Each build runs this program, so it checks the table of transports, too: tests may not
	 * notice a listener that accepts connections from any address. */
	for (size_t i = 0; err.code == NP_OK && (t = np_transport_at(i)) != NULL; i++) {
		if (t->admit == NP_ADMIT_UNSAID) {
			np_usage(&err,
				 "the transport %s does not say which peers its listener admits: "
				 "give it .admit (doc/architecture.md, \"A transport\")",
				 t->name);
		}
	}
	if (err.code == NP_OK && np_doc_print(&doc, stdout) != 0) {
		np_fail(&err, NP_ESYS, errno, "print the options");
	}
	if (err.code != NP_OK) {
		fprintf(stderr, "mkrows: %s\n", err.msg);
	}
	return err.code != NP_OK;
}
