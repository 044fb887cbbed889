#include "netserver/args.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/secret.h"
#include "base/text.h"
#include "base/units.h"
#include "bench/engine/engine.h"
#include "bench/engine/uring.h"
#include "opt/help.h"
#include "sys/host.h"
#include "wire/msg.h"
#include "wire/plan.h"

enum {
	LINE_S = 60, /* how long a client waits for its turn, unless told */
	TURN_S = 10  /* for a turn to be used: as long as our client takes at most to connect */
};

static int
set_family(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct ns_args *a = ctx;

	(void)arg;
	(void)err;
	a->family = o->letter == '6' ? AF_INET6 : AF_INET;
	return NP_OK;
}

/* Sets the bool at o->to, and notes that this is no inetd child. */
static int
set_standalone(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	static const bool yes = true;
	struct ns_args *a = ctx;

	(void)arg;
	(void)err;
	a->bound = true;
	memcpy((char *)ctx + o->to, &yes, sizeof(yes));
	return NP_OK;
}

static int
set_host(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct ns_args *a = ctx;
	struct np_pair pair;

	(void)o;
	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	if (pair.first != NULL && np_text_copy(a->host, sizeof(a->host), pair.first) != 0) {
		return np_fail(err, NP_EUSAGE, 0, "a name of more than %zu characters",
			       sizeof(a->host) - 1);
	}
	if (pair.second != NULL) {
		a->family = strchr(pair.second, '6') != NULL      ? AF_INET6
			    : strchr(pair.second, '4') != NULL    ? AF_INET
			    : strstr(pair.second, "inet") != NULL ? AF_INET
								  : AF_UNSPEC;
	}
	a->bound = true;
	return NP_OK;
}

static int
set_port(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct ns_args *a = ctx;
	int64_t n;

	(void)o;
	if ((np_parse_int(arg, &n) == 0 && (n < 0 || n >= UINT32_MAX)) ||
	    np_text_copy(a->port, sizeof(a->port), arg) != 0) {
		return np_fail(err, NP_EUSAGE, 0, "%.40s is not a port (0 to 65535, or a service)",
			       arg);
	}
	a->bound = true;
	return NP_OK;
}

static int
set_passphrase(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct ns_args *a = ctx;

	(void)o;
	if (arg[0] == '\0' || np_text_copy(a->passphrase, sizeof(a->passphrase), arg) != 0) {
		return np_fail(err, NP_EUSAGE, 0, "a passphrase has 1 to %zu characters",
			       sizeof(a->passphrase) - 1);
	}
	return NP_OK;
}

static int
set_passphrase_file(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	char text[sizeof(((struct ns_args *)0)->passphrase) + 1] = "";
	size_t count;
	int rc = np_secret_read(arg, text, sizeof(text) - 1, &count, err);

	if (rc != NP_OK) {
		return rc;
	}
	rc = set_passphrase(ctx, o, text, err);
	np_secret_wipe(text, sizeof(text));
	return rc == NP_OK ? rc : (np_fail_in(err, arg), rc);
}

static int
set_rules(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct ns_args *a = ctx;

	return ns_access_add(&a->rules, o->name[0] == 'a', arg, err);
}

/* Sets the uint64_t at o->to. */
static int
set_bytes(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	uint64_t bytes;
	int64_t n;

	if (np_parse_count(arg, &n) != 0 || n < 0) {
		return np_fail(err, NP_EUSAGE, 0, "%.40s is not a number of bytes (try 64M)", arg);
	}
	bytes = (uint64_t)n;
	memcpy((char *)ctx + o->to, &bytes, sizeof(bytes));
	return NP_OK;
}

/* Sets the uint64_t at o->to as NP_OPT_COUNT does its own. */
static int
set_shared(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_option count = *o;
	int32_t n;
	uint64_t wide;

	count.kind = NP_OPT_COUNT;
	count.to = 0;
	if (np_option_set(&count, arg, &n, err) != NP_OK) {
		return err->code;
	}
	wide = (uint64_t)n;
	memcpy((char *)ctx + o->to, &wide, sizeof(wide));
	return NP_OK;
}

static int
set_data_ports(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct ns_args *a = ctx;
	char text[16];
	char *dash;
	int64_t first, last;

	(void)o;
	if (np_text_copy(text, sizeof(text), arg) != 0 || (dash = strchr(text, '-')) == NULL ||
	    (*dash = '\0', np_parse_int(text, &first)) != 0 || np_parse_int(dash + 1, &last) != 0 ||
	    first < 1 || first > last || last > 65535) {
		return np_fail(err, NP_EUSAGE, 0,
			       "'%.40s' is not a range of ports (try 20000-20999)", arg);
	}
	a->limits.each.port_min = (uint32_t)first;
	a->limits.each.port_max = (uint32_t)last;
	a->limits.all[NP_G_PORTS] = (uint64_t)(last - first + 1);
	return NP_OK;
}

/* How long the others wait may follow. */
static int
set_exclusive(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	static const struct np_option seconds = {
		.name = "exclusive",
		.kind = NP_OPT_COUNT,
		.arg = "s",
		.to = offsetof(struct ns_args, line),
		.min = 1,
		.max = 86400,
	};
	struct ns_args *a = ctx;

	(void)o;
	a->exclusive = true;
	a->limits.each.meet_s = TURN_S;
	return arg != NULL ? np_option_set(&seconds, arg, ctx, err) : NP_OK;
}

static int
set_key_file(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct ns_args *a = ctx;

	(void)o;
	return np_auth_read_key(&a->key, arg, err);
}

/* An engine's in np_limits.engines; 0: there is none of that name. */
static uint32_t
bit_of(const char *name)
{
	const struct np_engine *wanted = np_engine_find(name), *e;

	for (size_t i = 0; (e = np_engine_at(i)) != NULL; i++) {
		if (e == wanted) {
			return UINT32_C(1) << i;
		}
	}
	return 0;
}

/* The names, and those that tests have which name none. */
static int
set_engines(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct ns_args *a = ctx;
	char text[128], *rest = NULL, *name;

	(void)o;
	if (np_text_copy(text, sizeof(text), arg) != 0) {
		return np_fail(err, NP_EUSAGE, 0, "a list of more than %zu characters",
			       sizeof(text) - 1);
	}
	a->limits.each.engines = bit_of(np_engine_sync.name) | bit_of(np_engine_epoll.name);
	for (name = strtok_r(text, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
		uint32_t bit = bit_of(name);

		if (bit == 0) {
			return np_fail(err, NP_EUSAGE, 0,
				       "there is no engine '%.40s' (netperf --engine list)", name);
		}
		a->limits.each.engines |= bit;
	}
	return NP_OK;
}

#define ARG(member) offsetof(struct ns_args, member)

/* Units of limits.def. */
#define IS_COUNT .kind = NP_OPT_COUNT, .arg = "n"
#define IS_SECONDS .kind = NP_OPT_COUNT, .arg = "s"
#define IS_SHARED .kind = NP_OPT_CUSTOM, .arg = "n", .set = set_shared, .numbers = true
#define IS_LENGTH .kind = NP_OPT_LENGTH, .arg = "s"
#define IS_BYTES .kind = NP_OPT_CUSTOM, .arg = "bytes", .set = set_bytes

/* In the order of the help text. */
enum group { NONE, LISTEN, WHO, LIMITS, RUN, TELL, HELP };
const char *const ns_groups[] = { [NONE] = "Other",        [LISTEN] = "Where to listen",
				  [WHO] = "Who is served", [LIMITS] = "Limits",
				  [RUN] = "How it runs",   [TELL] = "What it tells",
				  [HELP] = "Help",         NULL };

const struct np_option ns_options[] = {
	{ .letter = '4',
	  .kind = NP_OPT_PLAIN,
	  .help = "listen on IPv4 only",
	  .set = set_family,
	  .group = LISTEN },
	{ .letter = '6',
	  .kind = NP_OPT_PLAIN,
	  .help = "listen on IPv6; as in netperf, IPv4 clients are served, too",
	  .set = set_family,
	  .group = LISTEN },
	{ .letter = 'd',
	  .name = "debug",
	  .kind = NP_OPT_FLAG,
	  .to = ARG(debug),
	  .help = "log everything, as if -v 2 were given",
	  .group = TELL },
	{ .letter = 'D',
	  .name = "foreground",
	  .kind = NP_OPT_PLAIN,
	  .to = ARG(foreground),
	  .set = set_standalone,
	  .help = "stay in the foreground, and log to standard error",
	  .group = RUN },
	{ .letter = 'f',
	  .name = "no-fork",
	  .kind = NP_OPT_PLAIN,
	  .to = ARG(no_fork),
	  .set = set_standalone,
	  .help = "serve one client after another, without a process for each",
	  .group = RUN },
	{ .letter = 'h',
	  .kind = NP_OPT_PLAIN,
	  .to = ARG(usage),
	  .set = set_standalone,
	  .help = "show this text",
	  .group = HELP },
	{ .letter = 'L',
	  .name = "listen",
	  .kind = NP_OPT_CUSTOM,
	  .arg = "name,family",
	  .set = set_host,
	  .help = "listen on this address (all of IP); vsock:any is for virtual machines",
	  .group = LISTEN },
	{ .letter = 'N',
	  .kind = NP_OPT_FLAG,
	  .to = ARG(quiet),
	  .help = "write no debugging output, even if a client asks for it",
	  .group = TELL },
	{ .letter = 'p',
	  .name = "port",
	  .kind = NP_OPT_CUSTOM,
	  .arg = "port",
	  .set = set_port,
	  .help = "listen on this port (12865)",
	  .group = LISTEN },
	{ .letter = 'v',
	  .name = "verbosity",
	  .kind = NP_OPT_COUNT,
	  .arg = "n",
	  .to = ARG(verbose),
	  .max = 9,
	  .help = "log 0: faults, 1: also starts, 2: also every test (1)",
	  .group = TELL },
	{ .letter = 'V',
	  .kind = NP_OPT_PLAIN,
	  .to = ARG(version),
	  .set = set_standalone,
	  .help = "show the version",
	  .group = HELP },
	{ .name = "help",
	  .kind = NP_OPT_PLAIN,
	  .to = ARG(help),
	  .set = set_standalone,
	  .help = "show this text on standard output",
	  .group = HELP },
	{ .name = "version",
	  .kind = NP_OPT_PLAIN,
	  .to = ARG(version),
	  .set = set_standalone,
	  .help = "show the version",
	  .group = HELP },
	{ .letter = 'n',
	  .kind = NP_OPT_COUNT,
	  .arg = "n",
	  .to = ARG(cpus),
	  .max = 256,
	  .help = "set the number of processors; not needed here",
	  .group = RUN },
	{ .letter = 'Z',
	  .kind = NP_OPT_CUSTOM,
	  .arg = "text",
	  .set = set_passphrase,
	  .secret = true,
	  .help = "serve only clients that send this passphrase (netperf -Z); ps(1) shows it for a "
		  "moment",
	  .group = WHO },
	{ .name = "passphrase-file",
	  .kind = NP_OPT_CUSTOM,
	  .arg = "file",
	  .set = set_passphrase_file,
	  .help = "read the passphrase from a file's first line; mode 600",
	  .group = WHO },
	{ .name = "key-file",
	  .kind = NP_OPT_CUSTOM,
	  .arg = "file",
	  .set = set_key_file,
	  .help = "serve only clients that prove to have the key in the file's first line; mode "
		  "600" NP_NEEDS_SODIUM,
	  .group = WHO },
	{ .name = "nat",
	  .kind = NP_OPT_FLAG,
	  .to = ARG(nat),
	  .help = "with --key-file: also serve clients behind a NAT (netperf --nat)",
	  .group = WHO },
	{ .name = "fill-dir",
	  .kind = NP_OPT_TEXT,
	  .arg = "dir",
	  .to = ARG(fill_dir),
	  .help = "allow clients to send files of this directory (netperf -F; none)",
	  .group = WHO },
	{ .name = "allow",
	  .kind = NP_OPT_CUSTOM,
	  .arg = "cidr,...",
	  .set = set_rules,
	  .help = "serve only addresses of these ranges (all)",
	  .group = WHO },
	{ .name = "deny",
	  .kind = NP_OPT_CUSTOM,
	  .arg = "cidr,...",
	  .set = set_rules,
	  .help = "refuse addresses of these ranges, whatever --allow says",
	  .group = WHO },
	{ .name = "access-file",
	  .kind = NP_OPT_TEXT,
	  .arg = "file",
	  .to = ARG(access_file),
	  .help = "read lines of allow and deny from a file; SIGHUP reads it again",
	  .group = WHO },
#define NS_LIMIT(unit, option, least, most, member, usual, tells, text)                            \
	{ .name = (option),                                                                        \
	  IS_##unit,                                                                               \
	  .to = ARG(limits.member),                                                                \
	  .min = (least),                                                                          \
	  .max = (most),                                                                           \
	  .help = (text),                                                                          \
	  .group = LIMITS },
#include "netserver/limits.def"
#undef NS_LIMIT
	{ .name = "exclusive",
	  .kind = NP_OPT_NUMBER,
	  .arg = "s",
	  .set = set_exclusive,
	  .help = "run one test at a time; others wait up to N seconds (60)",
	  .group = LIMITS },
	{ .name = "data-ports",
	  .kind = NP_OPT_CUSTOM,
	  .arg = "a-b",
	  .set = set_data_ports,
	  .help = "use data ports of this range, for firewall rules (any)",
	  .group = LISTEN },
	{ .name = "want-echo",
	  .kind = NP_OPT_FLAG,
	  .to = ARG(limits.each.want_echo),
	  .help = "send datagrams only to clients that echo a token; stock netperf does not",
	  .group = WHO },
	{ .name = "user",
	  .kind = NP_OPT_TEXT,
	  .arg = "name[:group]",
	  .to = ARG(user),
	  .help = "become this user if started by root (nobody); root: stay root",
	  .group = RUN },
	{ .name = "no-sandbox",
	  .kind = NP_OPT_FLAG,
	  .to = ARG(no_sandbox),
	  .help = "do not confine sessions by landlock, seccomp and limits",
	  .group = RUN },
	{ .name = "allow-raw",
	  .kind = NP_OPT_FLAG,
	  .to = ARG(allow_raw),
	  .help = "allow captures (netperf --wire) and tests in raw frames (DLCL_RR)",
	  .group = WHO },
	{ .name = "spin",
	  IS_SHARED,
	  .to = ARG(limits.all[NP_G_SPIN]),
	  .max = NP_THREADS_MAX,
	  .help = "let N threads of all tests together have the engine spin, a processor each (0)",
	  .group = LIMITS },
	{ .name = "engines",
	  .kind = NP_OPT_CUSTOM,
	  .arg = "name,...",
	  .set = set_engines,
	  .help = "serve tests by these engines only, and by sync and epoll (all)",
	  .group = WHO },
	{ .name = "uring",
	  .kind = NP_OPT_COUNT,
	  .arg = "n",
	  .to = ARG(uring),
	  .max = NP_URINGS_MAX,
	  .help = "give each session N rings for the engine uring, one for each thread (0)",
	  .group = LIMITS },
	{ .name = "no-evidence",
	  .kind = NP_OPT_FLAG,
	  .to = ARG(no_evidence),
	  .help = "report nothing about this host to clients but a test's results",
	  .group = TELL },
	{ .name = "metrics-file",
	  .kind = NP_OPT_TEXT,
	  .arg = "file",
	  .to = ARG(metrics_file),
	  .help = "write figures for Prometheus to this file every 10 s",
	  .group = TELL },
	{ .name = "no-status",
	  .kind = NP_OPT_FLAG,
	  .to = ARG(no_status),
	  .help = "open no socket for --status",
	  .group = TELL },
	{ .name = "status",
	  .kind = NP_OPT_PLAIN,
	  .to = ARG(status),
	  .set = set_standalone,
	  .help = "print the status of the daemon that runs here, at the port of -p",
	  .group = TELL },
};
const size_t ns_options_count = sizeof(ns_options) / sizeof(ns_options[0]);

int
ns_args_parse(struct ns_args *a, int argc, char **argv, struct np_err *err)
{
	unsigned long first, last;
	int words = 1;

	memset(a, 0, sizeof(*a));
	ns_limits_init(&a->limits);
	if (np_host_ports(&first, &last)) {
		a->limits.all[NP_G_PORTS] = last - first + 1;
	}
	a->line = LINE_S;
	a->family = AF_UNSPEC;
	a->verbose = 1;
	snprintf(a->port, sizeof(a->port), "%d", NP_PORT);
	/* What stands behind "--" is ignored, as netperf's daemon does. */
	while (words < argc && strcmp(argv[words], "--") != 0) {
		words++;
	}
	if (np_options_parse(ns_options, ns_options_count, 0, words, argv, a, NULL, err) != NP_OK) {
		return err->code;
	}
	a->limits.each.spin = (uint32_t)a->limits.all[NP_G_SPIN];
	if (a->key.count > 0 && a->passphrase[0] != '\0') {
		return np_fail(err, NP_EUSAGE, 0,
			       "--key-file: together with -Z or --passphrase-file (choose one)");
	}
	return np_port_check(a->port, a->host, err) == NP_OK ? NP_OK : np_fail_in(err, "-p");
}

void
ns_args_usage(FILE *out)
{
	const struct np_help help = { .rows = ns_options,
				      .count = ns_options_count,
				      .groups = ns_groups };

	fputs("Usage: netserver [options] \nOptions:\n", out);
	np_help_print(out, &help);
}
