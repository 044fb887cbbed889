/*
 * Used while building: fills netserver's manual page and completions in, from standard input to
 * standard output.
 */
#include "config.h"
#include "netserver/args.h"
#include "opt/doc.h"

int
main(void)
{
	const struct np_doc_table tables[] = { { "daemon", ns_options, ns_options_count, NULL,
						 ns_groups } };
	const struct np_doc doc = { PACKAGE_STRING, tables, 1, NULL, 0 };
	struct np_err err;

	if (np_doc_fill(&doc, stdin, stdout, &err) != NP_OK) {
		fprintf(stderr, "mkdoc: %s\n", err.msg);
		return 1;
	}
	return 0;
}
