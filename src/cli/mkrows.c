/* Used while building: prints what netperf's manual page and completions are made of. */
#include "cli/args.h"
#include "config.h"
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
	printf("package\t%s\n", PACKAGE_STRING);
	np_doc_table(stdout, "global", &np_global_options);
	np_doc_table(stdout, "test", &np_test_options);
	np_doc_list(stdout, "tests", np_cli_test_at);
	np_doc_list(stdout, "figures", figure_at);
	np_doc_list(stdout, "rules", np_preflight_rule);
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
