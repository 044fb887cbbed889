/* What the operator asked of netserver. */
#ifndef NETSERVER_ARGS_H
#define NETSERVER_ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "netserver/guard.h"
#include "opt/option.h"
#include "wire/auth.h"

struct ns_args {
	char host[256]; /* -L; empty: every address */
	char port[NP_PORT_TEXT];
	int family;             /* AF_UNSPEC: both */
	int32_t verbose;        /* 0 errors, 1 also starts and refusals, 2 every test */
	bool foreground;        /* -D */
	bool no_fork;           /* -f */
	bool debug;             /* -d */
	bool quiet;             /* -N */
	int32_t cpus;           /* -n: not used, since Linux can count them */
	char passphrase[648];   /* -Z, --passphrase-file; empty: none is demanded */
	struct np_auth_key key; /* --key-file; count 0: none is demanded */
	const char *fill_dir;   /* --fill-dir; NULL: clients may name no files */

	struct ns_limits limits;
	bool exclusive, nat, one_port;
	int32_t exclusive_s; /* that a client waits for its turn */

	struct ns_access rules;   /* --allow, --deny */
	struct ns_access proxies; /* --proxy-protocol */
	const char *access_file, *user, *metrics_file;
	bool no_sandbox;
	bool allow_raw;
	int32_t uring;       /* rings of a session, 0 or more */
	uint32_t transports; /* to load at the start: bit i for np_transport_at(i) */
	bool no_evidence;
	bool no_status;
	bool status;               /* --status: ask a daemon that runs */
	bool usage, help, version; /* -h, --help, -V */
	const char *stray;         /* a word that belongs to no option; NULL: none */
	bool no_inetd;             /* one of -D -f -L -p was given, so this is no child of inetd */
};

/* Fill *a. NP_EUSAGE (err->sys: minus an unknown letter), NP_EUNSUP; NP_ESYS: unreadable file. */
int ns_args_parse(struct ns_args *a, int argc, char **argv, struct np_err *err);

/* Print the help text, which begins as netperf's (-h, --help). */
void ns_args_usage(FILE *out);

/* The option table, for the tests that go over all rows. */
extern const struct np_option_table ns_options;

#endif
