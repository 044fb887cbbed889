/*
 * What the operator asked of netserver.
 */
#ifndef NETSERVER_ARGS_H
#define NETSERVER_ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "opt/option.h"

struct ns_args {
	char host[256]; /* -L; empty: every address */
	char port[32];
	int family;           /* AF_UNSPEC: both */
	int32_t verbose;      /* 0 errors, 1 also starts and refusals, 2 every test */
	bool foreground;      /* -D */
	bool no_fork;         /* -f */
	bool debug;           /* -d */
	bool quiet;           /* -N */
	int32_t cpus;         /* -n: to be taken where they can't be counted, which Linux can */
	char passphrase[648]; /* -Z, --passphrase-file; empty: none is demanded */
	const char *fill_dir; /* --fill-dir; NULL: clients may name no files */
	bool usage, help, version;
	bool bound; /* one of -D -f -L -p was given: never an inetd child */
};

/*
 * NP_EUSAGE, or NP_ESYS for a file that can't be read, names the option that is wrong.
 */
int ns_args_parse(struct ns_args *a, int argc, char **argv, struct np_err *err);

void ns_args_usage(FILE *out);

/* The option table, for the tests that go over all rows. */
extern const struct np_option ns_options[];
extern const size_t ns_options_count;

#endif
