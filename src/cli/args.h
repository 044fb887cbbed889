/* The user's options: their tables, what they fill, and what checks and notes say of them. */
#ifndef NP_CLI_ARGS_H
#define NP_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/units.h"
#include "bench/bench.h"
#include "bench/terms.h"
#include "opt/option.h"
#include "out/select.h"
#include "run/client.h"
#include "run/repeat.h"

/* netperf's groups of tests that share test-specific options. A row of options has one or more. */
enum np_scope {
	NP_SCOPE_OMNI = 1, /* OMNI, UUID and the tests that netperf calls migrated */
	NP_SCOPE_BSD = 2,  /* TCP_CC, TCP_MSS, TCP_SENDFILE */
	NP_SCOPE_UNIX = 4,
	NP_SCOPE_LINK = 8, /* DLCL_STREAM, DLCO_STREAM and their like */
	NP_SCOPE_SCTP = 16
};

/* What a test must have for an option to make sense: bits of np_option.needs. */
enum np_for {
	NP_FOR_DATA = 1 << 0, /* data sockets */
	NP_FOR_IP = 1 << 1,   /* IP addresses */
	NP_FOR_TCP = 1 << 2,
	NP_FOR_UDP = 1 << 3,
	NP_FOR_NAMED = 1 << 4,     /* ends that the user may name */
	NP_FOR_BYTES = 1 << 5,     /* a stream: messages that are counted in bytes */
	NP_FOR_PIPE = 1 << 6,      /* a stream over a connection that loses nothing */
	NP_FOR_SIZED = 1 << 7,     /* requests and responses of given sizes */
	NP_FOR_BURST = 1 << 8,     /* several requests in flight */
	NP_FOR_LOSSES = 1 << 9,    /* responses that may be lost */
	NP_FOR_CONNECTS = 1 << 10, /* a connection for each transaction */
	NP_FOR_PATH = 1 << 11,     /* a socket in the file system at this end */
	NP_FOR_CHOICE = 1 << 12,   /* a pattern and protocol chosen by options (OMNI) */
	NP_FOR_NONE = 1 << 13,     /* no test has it: the option has no effect */
	NP_FOR_SEGMENTS = 1 << 14, /* a transport that sends segments, and may delay small ones */
	NP_FOR_SCTP = 1 << 15,
	NP_FOR_DCCP = 1 << 16,
	NP_FOR_TLS = 1 << 17
};

#define NP_LENGTH_NOT_GIVEN INT64_MIN /* as length of a plan: -l was not given */

/* What the test-specific options of an OMNI test choose. */
struct np_omni_choice {
	bool direction_given; /* -d; sizes then do not imply it */
	uint32_t direction;   /* NP_WD_*, as this end sees it */
	bool connections;     /* -c */
	const char *protocol; /* -T; NULL: by test */
	const char *type;     /* -t; NULL: by test */
};

/* The data connection's ends, where they differ from the control connection's. */
struct np_cli_data {
	struct np_name host, local;
	char port[NP_PORT_TEXT], local_port[NP_PORT_TEXT]; /* as the user wrote them */
	int family;                                        /* test-specific -4, -6 */
	char device[NP_ETH_NAME], far_device[NP_ETH_NAME]; /* --device; empty: by address */
};

/* auto: where standard error is a terminal. */
enum np_when { NP_WHEN_AUTO, NP_WHEN_ALWAYS, NP_WHEN_NEVER };

/* What is printed or written, and how. */
struct np_cli_output {
	enum np_style style;
	enum np_when progress; /* --progress */
	const char *selectors; /* the argument of -o, -O or -k; NULL: none */
	struct np_selection selection;
	int32_t verbosity, headers; /* -v, -P */
	int debug;                  /* -d, as often as it was given */
	char unit;                  /* letter of -f, '\0' not chosen */
	bool latency;               /* -j */
	bool human;                 /* --human */
	bool times;                 /* --latency: a table of latencies below the result */
	bool histogram;             /* of latencies: -j with -v 2 */
	bool json;                  /* --json */
	double interim_s;           /* -D; 0: no interim results */
	const char *brand;          /* -B; NULL: none */
	const char *json_file;      /* of --json; NULL: standard output */
	const char *uuid;           /* -u, or uuid_made */
	char uuid_made[40];
};

/* What to collect in addition to the result. */
struct np_cli_evidence {
	unsigned caps;         /* NP_CAP_* (wire/plan.h): what both ends are to collect */
	bool explain, wire;    /* --explain, --wire */
	const char *wire_file; /* of --wire; NULL: none is written */
	double link_rate;      /* --link-rate, bits a second; 0: not given */
	int32_t sample_ms;     /* --sample-interval; 0: not given */
	bool cycles;           /* --cycles */
	bool for_beside;       /* NP_CAP_TEST is for figures of --beside only */
};

struct np_cli {
	const char *test;             /* -t */
	char *command_line;           /* all words as given, without secrets */
	struct np_option_notes notes; /* for the user: arguments that were ignored or changed */
	char gone; /* letter of an option that netperf no longer has; '\0': none */
	bool usage, test_usage, help, help_all; /* -h, -- -h, --help, --help=all */
	bool version, program;                  /* -V, --version */
	bool preflight;                         /* --preflight: look at the hosts, run no test */
	bool dry_run;                           /* --dry-run: check the options, run no test */
	bool list_engines;                      /* --engine list */
	bool list_figures;                      /* --list-figures */
	bool list_tests;                        /* --list-tests */
	bool ceilings;   /* --ceiling: read lines and compute limits, run no test */
	double rate;     /* --rate, operations or bits a second, by the test; 0: not given */
	double far_rate; /* with --both, what the far end sends; 0: the same */
	bool rate_bits;  /* it was given in bits */
	/* --rate auto: at the knee P99 is this multiple of the lowest rate's; 0: no search. */
	double knee_times;
	bool no_loss;          /* --rate ndr */
	bool strict;           /* --strict: fail if --rate was not reached */
	const char *beside;    /* --beside, test:rate; NULL: nothing runs beside the test */
	uint32_t segment_size; /* --segment-size, bytes; 0: that of the message */

	struct np_target target;            /* np_aim_control() completes it */
	char passphrase[NP_FRAME_SIZE - 8]; /* -Z, --passphrase-file: a frame less its head */
	struct np_auth_key key;             /* --key-file */
	struct np_cli_data data;
	struct np_cli_output output;
	struct np_repeat_plan confidence; /* -i, -I, -r, --clean; width < 0: not given */
	struct np_cli_evidence evidence;

	int32_t wait_s;        /* -s, seconds */
	int32_t allow_routing; /* test-specific -R; -1: by test */
	char also[2][256];     /* --also-bind, near and far; empty: none */
	uint32_t associations; /* -T of tests over SCTP; 0: not given */
	int32_t messages;      /* -N of tests over SCTP; 0: -l is the length */
	int32_t cpus;          /* -n; not used, since Linux can count them */
	bool bound, unbound;   /* -T was given; binding this end failed */
	struct np_omni_choice omni;
	struct np_bench bench;         /* the row of the test, or what the options make of it */
	struct np_transport transport; /* of bench, if no row has the protocol */
	char title[32];                /* of bench, for OMNI */
	struct np_plan plan;
	struct np_terms terms; /* of this end */
	struct np_addr source; /* the first one of --source-range; how many: plan.sources */
};

/* Read the command line into *cli. NP_EUSAGE: a wrong option; an unknown test is no error. */
int np_cli_parse(struct np_cli *cli, int argc, char **argv, struct np_err *err);

/* To be called after np_cli_parse(), even if it failed. Wipes the secrets, too. */
void np_cli_free(struct np_cli *cli);

/* Find the test, check the options against it, complete the plan, and bind to -T's processor. */
int np_cli_settle(struct np_cli *cli, struct np_err *err);

/* Can it be repeated for confidence? As in netperf, not TCP_CC, TCP_MSS or AF_UNIX tests. */
bool np_cli_repeats(const struct np_cli *cli);

/* How often the test is run, and until when: -i and -I, within what the test allows. */
void np_cli_plan_repeats(const struct np_cli *cli, struct np_repeat_plan *plan);

/* The unit of throughput by -f and the kind of test. */
const struct np_unit *np_cli_unit(const struct np_cli *cli);

/* The work counted, as np_rate() takes it for np_cli_unit(): transactions ('x') or bytes. */
double np_cli_work(const struct np_cli *cli, const struct np_plan *p, const struct np_counts *c);

/* Rows of test options have scopes by enum np_scope. */
extern const struct np_option_table np_global_options, np_test_options;

/* NP_TEST_BENCH has data connections, by a row of the bench table or by options (OMNI). */
enum np_test { NP_TEST_UNKNOWN, NP_TEST_BENCH, NP_TEST_UUID, NP_TEST_LOC_CPU, NP_TEST_REM_CPU };
enum np_test np_cli_test(const struct np_cli *cli);

/* Name i of all tests, those of the bench table first; NULL after the last. */
const char *np_cli_test_at(size_t i);

/* The test's group of test-specific options, NP_SCOPE_*; 0: it has none. */
unsigned np_cli_scope(const struct np_cli *cli);

/* What the test has, bits of enum np_for. */
unsigned np_cli_traits(const struct np_bench *b);

/* Fill cli->bench from the row that -t (a known test) names, or for OMNI from the options. */
int np_omni_choose(struct np_cli *cli, struct np_err *err);

/* Checks of the options, for each other and for the test: NP_EUSAGE names the option. */

/* Conflicts that do not depend on the test: before the length gets its default. */
int np_check_options(const struct np_cli *cli, struct np_err *err);

/* Conflicts that depend on the test, once it is chosen. */
int np_check_test(const struct np_cli *cli, struct np_err *err);

/* Once the plan is complete: can the test have these flows, and can the engines drive them? */
int np_check_flows(const struct np_cli *cli, struct np_err *err);

/* For a test without data connections: refuse options about them. */
int np_check_no_flows(const struct np_cli *cli, struct np_err *err);

/* Can the test run in that many sessions of the daemon at `peer`? Notes go to standard error. */
int np_check_sessions(const struct np_cli *cli, const char *peer, uint32_t sessions,
		      struct np_err *err);

/* Input that is ignored with a note, as netperf does silently (stray.c). */

/* Note words of argv[from..to) that are no options. given: all in original order, then NULL. */
void np_stray_words(struct np_cli *cli, char **argv, int from, int to, char *const *given);

/* Note values of options that only make sense after a --, where the letter is another option. */
void np_stray_options(struct np_cli *cli);

/* Note options that have no effect in the settled test, or without another option. */
void np_stray_settled(struct np_cli *cli);

/* If the option that could not be parsed is unknown, but one of tests: let err say so. */
void np_stray_unparsed(struct np_err *err);

/* Note unknown selectors and an unknown unit. */
void np_stray_names(struct np_cli *cli);

/* Fail by `code`. NP_EUSAGE: all selectors in the list are unknown; else it is no file, either. */
int np_stray_selectors(const char *list, enum np_errc code, struct np_err *err);

/* A hint at the test with the most similar name, by np_nearest_text(). */
const char *np_stray_test(const char *name, char out[NP_NEAREST_TEXT]);

/* Fail for an unknown test: NP_EUSAGE. */
int np_stray_refuse_test(const char *name, struct np_err *err);

/*
 * netperf's own messages for failures (phrases.c): scripts look for them on standard output. A line
 * on standard error says more; a terminal gets only that.
 */

/* For a control connection that could not be made, if netperf has a message for the reason. */
void np_phrases_control(FILE *out, const struct np_target *t, const struct np_client *c);

/* For a test that -t names, and that there is not. */
void np_phrases_unknown_test(FILE *out, const struct np_cli *cli);

/* For an unknown option or one without argument: getopt(3)'s line and usage, on standard error. */
void np_phrases_option(FILE *out, const char *program, const struct np_option_notes *notes);

#endif
