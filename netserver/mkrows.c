/* Used while building: print the options that netserver's manual page and completions list. */
#include "config.h"
#include "netserver/args.h"
#include "opt/doc.h"

int
main(void)
{
	const struct np_doc_table tables[] = { { "daemon", ns_options, ns_options_count, NULL,
						 ns_groups } };
	const struct np_doc doc = { PACKAGE_STRING, tables, 1, NULL, 0 };

	if (np_doc_print(&doc, stdout) != 0) {
		perror("mkrows: print the options");
		return 1;
	}
	return 0;
}
