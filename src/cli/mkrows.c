/* Used while building: prints what netperf's manual page and completions are made of. */
#include "cli/args.h"
#include "config.h"
#include "opt/doc.h"
#include "out/preflight_rules.h"

/* All figures, by their place in the lists, except the two that mark begin and end. */
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

	if (np_doc_print(&doc, stdout) != 0) {
		perror("mkrows: print the options");
		return 1;
	}
	return 0;
}
