#include "netserver/args.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/secret.h"
#include "base/text.h"
#include "base/units.h"
#include "bench/bench.h"
#include "bench/engine/engine.h"
#include "bench/engine/uring.h"
#include "sys/host.h"
#include "wire/msg.h"
#include "wire/plan.h"

enum {
	EXCLUSIVE_S = 60, /* how long a client waits for its turn by default */
	TURN_S = 10       /* for a client to connect when its turn has come: ours needs no longer */
};

/* -4, -6. */
static int
set_family(const struct np_setting *set)
{
	struct ns_args *a = set->ctx;

	a->family = set->row->letter == '6' ? AF_INET6 : AF_INET;
	return NP_OK;
}

/* -L NAME,FAMILY. A family with a 6 means IPv6, one with a 4 or "inet" IPv4, any other both. */
static int
set_host(const struct np_setting *set)
{
	struct ns_args *a = set->ctx;
	struct np_pair pair;

	if (np_pair_split(set->arg, &pair, set->err) != NP_OK) {
		return set->err->code;
	}
	if (pair.first != NULL && np_text_copy(a->host, sizeof(a->host), pair.first) != 0) {
		return np_usage(set->err, "a name of more than %zu characters",
				sizeof(a->host) - 1);
	}
	if (pair.second != NULL) {
		a->family = strchr(pair.second, '6') != NULL      ? AF_INET6
			    : strchr(pair.second, '4') != NULL    ? AF_INET
			    : strstr(pair.second, "inet") != NULL ? AF_INET
								  : AF_UNSPEC;
	}
	a->no_inetd = true;
	return NP_OK;
}

/* -Z. An empty one is refused: in ns_args it means that none is demanded. */
static int
set_passphrase(const struct np_setting *set)
{
	struct ns_args *a = set->ctx;

	if (set->arg[0] == '\0' ||
	    np_text_copy(a->passphrase, sizeof(a->passphrase), set->arg) != 0) {
		return np_usage(set->err, "a passphrase has 1 to %zu characters",
				sizeof(a->passphrase) - 1);
	}
	return NP_OK;
}

static int
set_passphrase_file(const struct np_setting *set)
{
	struct ns_args *a = set->ctx;

	return np_secret_passphrase(set->arg, a->passphrase, sizeof(a->passphrase), set->err);
}

/* Adds rules to a struct ns_access: --deny denies, --allow and --proxy-protocol allow. */
static int
set_rules(const struct np_setting *set)
{
	return ns_access_add(set->to, set->row->name[0] != 'd', set->arg, set->err);
}

/* For BYTES in limits.def: sets a uint64_t. */
static int
set_bytes(const struct np_setting *set)
{
	uint64_t *bytes = set->to;
	int64_t n;

	if (np_parse_count(set->arg, &n) != 0 || n < 0) {
		return np_usage(set->err, "%.40s is not a number of bytes (try 64M)", set->arg);
	}
	*bytes = (uint64_t)n;
	return NP_OK;
}

/* --data-ports FIRST-LAST. Their number is the limit of all tests together. */
static int
set_data_ports(const struct np_setting *set)
{
	struct ns_args *a = set->ctx;
	char text[16];
	char *dash;
	int64_t first, last;

	if (np_text_copy(text, sizeof(text), set->arg) != 0 || (dash = strchr(text, '-')) == NULL ||
	    (*dash = '\0', np_parse_int(text, &first)) != 0 || np_parse_int(dash + 1, &last) != 0 ||
	    first < 1 || first > last || last > 65535) {
		return np_usage(set->err, "'%.40s' is not a range of ports (try 20000-20999)",
				set->arg);
	}
	a->limits.each.port_min = (uint32_t)first;
	a->limits.each.port_max = (uint32_t)last;
	a->limits.all[NP_RES_PORTS] = (uint64_t)(last - first + 1);
	return NP_OK;
}

/* --exclusive: its argument, how long the others wait, is optional. */
static int
set_exclusive(const struct np_setting *set)
{
	static const struct np_option seconds = {
		.name = "exclusive",
		.kind = NP_OPT_COUNT,
		.arg = "s",
		.to = offsetof(struct ns_args, exclusive_s),
		.min = 1,
		.max = 86400,
	};
	struct ns_args *a = set->ctx;

	a->exclusive = true;
	a->limits.each.establish_s = TURN_S;
	return set->arg != NULL ? np_option_set(&seconds, set->arg, set->ctx, set->err) : NP_OK;
}

static int
set_key_file(const struct np_setting *set)
{
	struct ns_args *a = set->ctx;

	return np_auth_read_key(&a->key, set->arg, set->err);
}

/* --engines: allow those listed, and always the defaults, which tests without --engine use. */
static int
set_engines(const struct np_setting *set)
{
	struct ns_args *a = set->ctx;
	char text[128], *rest = NULL, *name;

	if (np_text_copy(text, sizeof(text), set->arg) != 0) {
		return np_usage(set->err, "a list of more than %zu characters", sizeof(text) - 1);
	}
	a->limits.each.engines = np_limits_bit(&np_engine_sync) | np_limits_bit(&np_engine_epoll);
	for (name = strtok_r(text, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
		const struct np_engine *e = np_engine_find(name);

		if (e == NULL) {
			return np_usage(set->err,
					"there is no engine '%.40s' (netperf --engine list)", name);
		}
		a->limits.each.engines |= np_limits_bit(e);
	}
	return NP_OK;
}

/* --transports: sets bits of ns_args.transports. */
static int
set_transports(const struct np_setting *set)
{
	struct ns_args *a = set->ctx;
	char text[128], *rest = NULL, *name;
	const struct np_transport *t;

	if (np_text_copy(text, sizeof(text), set->arg) != 0) {
		return np_usage(set->err, "a list of more than %zu characters", sizeof(text) - 1);
	}
	for (name = strtok_r(text, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
		if (np_transport_by_name(name, 0) == NULL) {
			return np_usage(set->err, "'%.40s' is no transport (try sctp,dccp,tls)",
					name);
		}
		for (size_t i = 0; (t = np_transport_at(i)) != NULL; i++) {
			a->transports |= strcasecmp(t->name, name) == 0 ? UINT32_C(1) << i : 0;
		}
	}
	return NP_OK;
}

#define ARG(member) offsetof(struct ns_args, member)
#define ROW NP_OPT_ROW
#define TO(member) .to = ARG(member)
#define RANGE(least, most) .min = (least), .max = (most)
#define IN(g) .group = (g)

/* Units of limits.def. */
#define IS_COUNT .kind = NP_OPT_COUNT, .arg = "n"
#define IS_SECONDS .kind = NP_OPT_COUNT, .arg = "s"
#define IS_SHARED .kind = NP_OPT_COUNT, .arg = "n", .wide = true
#define IS_LENGTH .kind = NP_OPT_LENGTH, .arg = "s"
#define IS_BYTES .kind = NP_OPT_CUSTOM, .arg = "bytes", .set = set_bytes

/* Titles of groups in the help text. */
static const char LISTEN[] = "Where to listen", WHO[] = "Who is served", LIMITS[] = "Limits",
		  RUN[] = "How it runs", TELL[] = "What it tells", HELP[] = "Help";
static const char *const groups[] = { LISTEN, WHO, LIMITS, RUN, TELL, HELP, NULL };

static const struct np_option rows[] = {
	{ ROW('4', NULL, PLAIN, NULL, "listen on IPv4 only"), .set = set_family, IN(LISTEN) },
	{ ROW('6', NULL, PLAIN, NULL,
	      "listen on IPv6; as in netperf, IPv4 clients are served, too"),
	  .set = set_family, IN(LISTEN) },
	{ ROW('d', "debug", FLAG, NULL, "log everything, as if -v 2 were given"), TO(debug),
	  IN(TELL) },
	{ ROW('D', "foreground", FLAG, NULL, "stay in the foreground, and log to standard error"),
	  TO(foreground), IN(RUN) },
	{ ROW('f', "no-fork", FLAG, NULL,
	      "serve one client after another, without a process for each"),
	  TO(no_fork), IN(RUN) },
	{ ROW('h', NULL, FLAG, NULL, "show this text"), TO(usage), IN(HELP) },
	{ ROW('L', "listen", CUSTOM, "name,family",
	      "listen on this address (all of IP); vsock:any is for virtual machines"),
	  .set = set_host, IN(LISTEN) },
	{ ROW('N', NULL, FLAG, NULL, "write no debugging output, even if a client asks for it"),
	  TO(quiet), IN(TELL) },
	{ ROW('p', "port", CUSTOM, "port", "listen on this port (12865)"), TO(port),
	  .read = np_option_read_port, .what = "a port (0 to 65535, or a service)", IN(LISTEN) },
	{ ROW('v', "verbosity", COUNT, "n",
	      "log 0: faults, 1: also starts, 2: also every test (1)"),
	  TO(verbose), RANGE(0, 9), IN(TELL) },
	{ ROW('V', NULL, FLAG, NULL, "show the version"), TO(version), IN(HELP) },
	{ ROW('\0', "help", FLAG, NULL, "show this text on standard output"), TO(help), IN(HELP) },
	{ ROW('\0', "version", FLAG, NULL, "show the version"), TO(version), IN(HELP) },
	{ ROW('n', NULL, COUNT, "n", "set the number of processors; not needed here"), TO(cpus),
	  RANGE(0, 256), IN(RUN) },
	{ ROW('Z', NULL, CUSTOM, "text",
	      "serve only clients that send this passphrase (netperf -Z); ps(1) shows it for a "
	      "moment"),
	  .set = set_passphrase, .secret = true, IN(WHO) },
	{ ROW('\0', "passphrase-file", CUSTOM, "file",
	      "read the passphrase from a file's first line; mode 600"),
	  .set = set_passphrase_file, IN(WHO) },
	{ ROW('\0', "key-file", CUSTOM, "file",
	      "serve only clients that prove to have the key in the file's first line; mode "
	      "600" NP_NEEDS_SODIUM),
	  .set = set_key_file, IN(WHO) },
	{ ROW('\0', "nat", FLAG, NULL,
	      "with --key-file: also serve clients behind a NAT (netperf --nat)"),
	  TO(nat), IN(WHO) },
	{ ROW('\0', "fill-dir", TEXT, "dir",
	      "allow clients to send files of this directory (netperf -F; none)"),
	  TO(fill_dir), IN(WHO) },
	{ ROW('\0', "allow", CUSTOM, "cidr,...", "serve only addresses of these ranges (all)"),
	  TO(rules), .set = set_rules, IN(WHO) },
	{ ROW('\0', "deny", CUSTOM, "cidr,...",
	      "refuse addresses of these ranges, whatever --allow says"),
	  TO(rules), .set = set_rules, IN(WHO) },
	{ ROW('\0', "access-file", TEXT, "file",
	      "read lines of allow and deny from a file; SIGHUP reads it again"),
	  TO(access_file), IN(WHO) },
#define NS_LIMIT(unit, option, least, most, member, usual, tells, metric, text)                    \
	{ .name = (option),                                                                        \
	  IS_##unit,                                                                               \
	  .to = ARG(limits.member),                                                                \
	  .min = (least),                                                                          \
	  .max = (most),                                                                           \
	  .help = (text),                                                                          \
	  .group = LIMITS },
#include "netserver/limits.def"
#undef NS_LIMIT
	{ ROW('\0', "exclusive", NUMBER, "s",
	      "run one test at a time; others wait up to N seconds (60)"),
	  .set = set_exclusive, IN(LIMITS) },
	{ ROW('\0', "data-ports", CUSTOM, "a-b",
	      "use data ports of this range, for firewall rules (any)"),
	  .set = set_data_ports, IN(LISTEN) },
	{ ROW('\0', "one-port", FLAG, NULL,
	      "have TCP and UDP data at the port of control connections, for firewalls and NAT"),
	  TO(one_port), IN(LISTEN) },
	{ ROW('\0', "proxy-protocol", CUSTOM, "cidr,...",
	      "accept PROXY protocol v2 from these addresses"),
	  TO(proxies), .set = set_rules, IN(LISTEN) },
	{ ROW('\0', "allow-device", FLAG, NULL,
	      "allow clients to have data sockets bound to an interface or VRF (-- --bind-device)"),
	  TO(limits.each.devices), IN(WHO) },
	{ ROW('\0', "want-echo", FLAG, NULL,
	      "send datagrams only to clients that echo a token; stock netperf does not"),
	  TO(limits.each.want_echo), IN(WHO) },
	{ ROW('\0', "user", TEXT, "name[:group]",
	      "become this user if started by root (nobody); root: stay root"),
	  TO(user), IN(RUN) },
	{ ROW('\0', "no-sandbox", FLAG, NULL,
	      "do not confine sessions by landlock, seccomp and limits"),
	  TO(no_sandbox), IN(RUN) },
	{ ROW('\0', "allow-raw", FLAG, NULL,
	      "allow captures (netperf --wire) and tests in raw frames (DLCL_RR)"),
	  TO(allow_raw), IN(WHO) },
	{ ROW('\0', "engines", CUSTOM, "name,...",
	      "serve tests by these engines only, and by sync and epoll (all)"),
	  .set = set_engines, IN(WHO) },
	{ ROW('\0', "transports", CUSTOM, "name,...",
	      "load these at the start and serve them, too (those that the kernel has)"),
	  .set = set_transports, IN(WHO) },
	{ ROW('\0', "uring", COUNT, "n",
	      "give each session N rings for the engine uring, one for each thread (0)"),
	  TO(uring), RANGE(0, NP_URINGS_MAX), IN(LIMITS) },
	{ ROW('\0', "no-evidence", FLAG, NULL,
	      "report nothing about this host to clients but a test's results"),
	  TO(no_evidence), IN(TELL) },
	{ ROW('\0', "metrics-file", TEXT, "file",
	      "write figures for Prometheus to this file every 10 s"),
	  TO(metrics_file), IN(TELL) },
	{ ROW('\0', "no-status", FLAG, NULL, "open no socket for --status"), TO(no_status),
	  IN(TELL) },
	{ ROW('\0', "status", FLAG, NULL,
	      "print the status of the daemon that runs here, at the port of -p"),
	  TO(status), IN(TELL) },
};
const struct np_option_table ns_options = { NP_OPT_TABLE(rows), .groups = groups };

int
ns_args_parse(struct ns_args *a, int argc, char **argv, struct np_err *err)
{
	unsigned long first_port, last_port;
	int count = 1;

	memset(a, 0, sizeof(*a));
	ns_limits_init(&a->limits);
	if (np_host_ports(&first_port, &last_port)) { /* unless --data-ports says otherwise */
		a->limits.all[NP_RES_PORTS] = last_port - first_port + 1;
	}
	a->exclusive_s = EXCLUSIVE_S;
	a->family = AF_UNSPEC;
	a->verbose = 1;
	/* Ignore what follows "--", as netperf's daemon does. */
	while (count < argc && strcmp(argv[count], "--") != 0) {
		count++;
	}
	if (np_options_parse(&ns_options, 0, count, argv, a, NULL, err) != NP_OK) {
		return err->code;
	}
	a->stray = optind < count ? argv[optind] : NULL;
	a->no_inetd = a->no_inetd || a->foreground || a->no_fork || a->port[0] != '\0';
	if (a->port[0] == '\0') {
		snprintf(a->port, sizeof(a->port), "%d", NP_PORT);
	}
	a->limits.each.spin = (uint32_t)a->limits.all[NP_RES_SPIN]; /* one test may have all */
	a->limits.all[NP_RES_CAPTURES] = a->allow_raw ? NS_CAPTURES : 0;
	if (a->one_port && a->no_fork) {
		return np_usage(err,
				"--one-port: together with -f, by which one client is served at a "
				"time (leave one out)");
	}
	if (a->key.count > 0 && a->passphrase[0] != '\0') {
		return np_usage(err,
				"--key-file: together with -Z or --passphrase-file (choose one)");
	}
	return np_port_check(a->port, a->host, err) == NP_OK ? NP_OK : np_fail_in(err, "-p");
}

void
ns_args_usage(FILE *out)
{
	fputs("Usage: netserver [options] \nOptions:\n", out);
	np_help_print(out, &ns_options, 0, NULL, NULL);
}
