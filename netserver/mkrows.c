/* Used while building: print the options that netserver's manual page and completions list. */
#include "config.h"
#include "netserver/args.h"

int
main(void)
{
	printf("package\t%s\n", PACKAGE_STRING);
	np_doc_table(stdout, "daemon", &ns_options);
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
