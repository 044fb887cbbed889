/*
 * netlab-link: what netlab has done in C. Not for users, who call netlab.
 */
#include "config.h"

#include "tests/link/link.h"
#include "tests/link/probe.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: netlab-link run device=NAME one=NAMESPACE two=NAMESPACE [control=NAME] [rate=BITS "
    "...]\n"
    "       netlab-link tell NAMESPACE [control=NAME] show | clear | set NAME=VALUE...\n"
    "       netlab-link probe from=NAMESPACE to=NAMESPACE source=IP target=IP kind=KIND ...\n"
    "Serves the links of netlab(1), and measures them. netlab calls it.\n";

int
main(int argc, char **argv)
{
	struct np_err err = { .code = NP_OK };

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("netlab-link (" PACKAGE_NAME ") " PACKAGE_VERSION);
		return 0;
	}
	if (argc > 2 && strcmp(argv[1], "run") == 0) {
		np_link_run(argv + 2, &err);
	} else if (argc > 2 && strcmp(argv[1], "tell") == 0) {
		np_link_tell(argv + 2, stdout, &err);
	} else if (argc > 2 && strcmp(argv[1], "probe") == 0) {
		np_probe(argv + 2, stdout, &err);
	} else {
		fputs(usage, stderr);
		return 2;
	}
	if (err.code != NP_OK) {
		fprintf(stderr, "netlab-link: %s\n", err.msg);
		return err.code == NP_EUSAGE ? 2 : 1;
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
