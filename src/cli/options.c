#include "cli/args.h"

#include <ctype.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/secret.h"
#include "base/text.h"
#include "bench/engine/engine.h"
#include "bench/transport/dccp.h"
#include "bench/transport/tls.h"
#include "net/cidr.h"
#include "sys/affinity.h"
#include "wire/ext.h"

/* --- values with a grammar of their own --------------------------------------------------------
 */

/* The family part of -H and -L: netperf looks for single characters of it. */
static int
parse_family(const char *word)
{
	if (strchr(word, '6') != NULL) {
		return AF_INET6;
	}
	if (strstr(word, "inet") != NULL || strchr(word, '4') != NULL) {
		return AF_INET;
	}
	if (strstr(word, "unspec") == NULL && strchr(word, '0') == NULL) {
		/* On stdout, where clients of netperf's know it from. */
		printf("WARNING! %s not recognized as an address family, using AF_UNPSEC\n"
		       "Are you sure netperf was configured for that address family?\n",
		       word);
	}
	return AF_UNSPEC;
}

static int
set_name(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_name *name = (struct np_name *)((char *)ctx + o->to);
	struct np_pair pair;

	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	if (pair.first != NULL && np_text_copy(name->text, sizeof(name->text), pair.first) != 0) {
		return np_fail(err, NP_EUSAGE, 0, "a name of more than %zu characters",
			       sizeof(name->text) - 1);
	}
	name->given = name->given || pair.first != NULL;
	if (pair.second != NULL) {
		name->family = parse_family(pair.second);
	}
	return NP_OK;
}

/* The bits of "name/bits", which is cut off; -1 when there are none. */
static int
cut_mask(char *name, int32_t *mask, struct np_err *err)
{
	char *slash = strchr(name, '/');
	int64_t bits;

	if (slash == NULL) {
		return NP_OK;
	}
	if (np_parse_count(slash + 1, &bits) != 0 || bits < 0 || bits > 128) {
		return np_fail(err, NP_EUSAGE, 0, "%s is not a number of address bits (try /24)",
			       slash + 1);
	}
	*slash = '\0';
	*mask = (int32_t)bits;
	return NP_OK;
}

/* -H and -L of the data connection: bits of the address that a mask leaves free are random. */
static int
set_data_name(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_name *name = (struct np_name *)((char *)ctx + o->to);

	if (set_name(ctx, o, arg, err) != NP_OK) {
		return err->code;
	}
	return cut_mask(name->text, (int32_t *)(void *)((char *)ctx + o->to2), err);
}

/*
 * A port number or a service's name, as text for the resolver; NULL: leave what is there. How large
 * it may be is known when the host, or the test, is.
 */
static int
copy_port(char out[32], const char *text, struct np_err *err)
{
	int64_t n;

	if (text != NULL && ((np_parse_int(text, &n) == 0 && (n < 0 || n >= UINT32_MAX)) ||
			     np_text_copy(out, 32, text) != 0)) {
		return np_fail(err, NP_EUSAGE, 0, "%.40s is not a port (0 to 65535, or a service)",
			       text);
	}
	return NP_OK;
}

static int
set_control_ports(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	struct np_pair pair;

	(void)o;
	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	if (copy_port(cli->target.port, pair.first, err) != NP_OK ||
	    copy_port(cli->target.local_port, pair.second, err) != NP_OK) {
		return err->code;
	}
	return NP_OK;
}

static int
parse_port(const char *text, uint32_t *out, struct np_err *err)
{
	const struct servent *s;
	char checked[32];
	int64_t n;

	if (copy_port(checked, text, err) != NP_OK) {
		return err->code;
	}
	if (np_parse_int(text, &n) == 0) {
		*out = (uint32_t)n;
		return NP_OK;
	}
	s = getservbyname(text, NULL);
	if (s == NULL) {
		return np_fail(err, NP_EUSAGE, 0, "%s is neither a port number nor a known service",
			       text);
	}
	*out = ntohs((uint16_t)s->s_port);
	return NP_OK;
}

/* A pair of ports of which one word means both. */
static int
parse_ports(const char *arg, uint32_t *first, uint32_t *second, struct np_err *err)
{
	struct np_pair pair;

	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	if (pair.first != NULL && parse_port(pair.first, first, err) != NP_OK) {
		return err->code;
	}
	if (!pair.comma) {
		*second = *first;
		return NP_OK;
	}
	return pair.second != NULL ? parse_port(pair.second, second, err) : NP_OK;
}

static int
set_data_ports(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	struct np_pair pair;
	const char *remote;

	(void)o;
	if (parse_ports(arg, &cli->plan.near.sock.port, &cli->plan.far.sock.port, err) != NP_OK ||
	    np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	/* As the user wrote them: that is what SOURCE_PORT and DEST_PORT show. */
	if (pair.first != NULL) {
		np_text_copy(cli->data.local_port, sizeof(cli->data.local_port), pair.first);
	}
	remote = pair.comma ? pair.second : pair.first;
	if (remote != NULL) {
		np_text_copy(cli->data.port, sizeof(cli->data.port), remote);
	}
	return NP_OK;
}

static int
set_port_range(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	if (parse_ports(arg, &cli->plan.port_min, &cli->plan.port_max, err) != NP_OK) {
		return err->code;
	}
	if (cli->plan.port_max > UINT16_MAX) {
		return np_fail(err, NP_EUSAGE, 0, "%u is not a port (0 to 65535, or a service)",
			       cli->plan.port_max);
	}
	if (cli->plan.port_min == 0 || cli->plan.port_max < cli->plan.port_min) {
		return np_fail(err, NP_EUSAGE, 0, "%s is not a range of ports (try 10000,20000)",
			       arg);
	}
	return NP_OK;
}

static int
set_unit(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	(void)err;
	cli->output.unit = *arg == '?' ? '\0' : *arg;
	return NP_OK;
}

static int
set_fill_files(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	struct np_pair pair;

	(void)o;
	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	if (pair.second != NULL && strlen(pair.second) > 31) {
		return np_fail(err, NP_ECONTROL, 0,
			       "%s: Remote fill file name must be less than 32 characters",
			       pair.second);
	}
	if (pair.first != NULL) {
		snprintf(cli->plan.near.call.fill_file, NP_FILL_MAX, "%s", pair.first);
	}
	if (pair.second != NULL) {
		snprintf(cli->plan.far.call.fill_file, NP_FILL_MAX, "%s", pair.second);
	}
	return NP_OK;
}

/* A type of service by name or number; -1 for what is neither, as netperf lets that pass. */
static int32_t
parse_tos(const char *text)
{
	static const struct {
		const char *name;
		int32_t value;
	} names[] = {
		{ "af11", 0x28 },     { "af12", 0x30 },       { "af13", 0x38 },
		{ "af21", 0x48 },     { "af22", 0x50 },       { "af23", 0x58 },
		{ "af31", 0x68 },     { "af32", 0x70 },       { "af33", 0x78 },
		{ "af41", 0x88 },     { "af42", 0x90 },       { "af43", 0x98 },
		{ "cs0", 0x00 },      { "cs1", 0x20 },        { "cs2", 0x40 },
		{ "cs3", 0x60 },      { "cs4", 0x80 },        { "cs5", 0xa0 },
		{ "cs6", 0xc0 },      { "cs7", 0xe0 },        { "ef", 0xb8 },
		{ "lowdelay", 0x10 }, { "throughput", 0x08 }, { "reliability", 0x04 },
	};
	char *end;
	long n;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(text, names[i].name) == 0) {
			return names[i].value;
		}
	}
	n = strtol(text, &end, 0);
	return *text != '\0' && *end == '\0' && n >= 0 && n <= 255 ? (int32_t)n : -1;
}

static int
set_tos(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	struct np_pair pair;

	(void)o;
	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	if (pair.first != NULL) {
		cli->plan.near.sock.tos = parse_tos(pair.first);
	}
	if (!pair.comma) {
		cli->plan.far.sock.tos = cli->plan.near.sock.tos;
	} else if (pair.second != NULL) {
		cli->plan.far.sock.tos = parse_tos(pair.second);
	}
	return NP_OK;
}

/* A name for each end, with room for size bytes; one word means both ends. limit: words before the
 * number of characters that there may be. */
static int
set_names(const char *arg, char *near, char *far, size_t size, const char *limit,
	  struct np_err *err)
{
	struct np_pair pair;
	const char *remote;

	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	remote = pair.comma ? pair.second : pair.first;
	if ((pair.first != NULL && np_text_copy(near, size, pair.first) != 0) ||
	    (remote != NULL && np_text_copy(far, size, remote) != 0)) {
		return np_fail(err, NP_EUSAGE, 0, "%s: %s %zu characters", arg, limit, size - 1);
	}
	return NP_OK;
}

static int
set_cong(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	return set_names(arg, cli->plan.near.sock.cong, cli->plan.far.sock.cong,
			 sizeof(cli->plan.near.sock.cong), "a name of more than", err);
}

/* A congestion control of DCCP's, which both ends have to announce. */
static int
set_ccid(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	struct np_plan *p = &cli->plan;
	int64_t n;

	(void)o;
	if (np_parse_int(arg, &n) != 0 || n < 1 || n > NP_CCID_MOST) {
		return np_fail(err, NP_EUSAGE, 0, "'%.40s' is not a CCID (try 2 or 3)", arg);
	}
	snprintf(p->near.sock.cong, sizeof(p->near.sock.cong), NP_CCID_NAME "%d", (int)n);
	memcpy(p->far.sock.cong, p->near.sock.cong, sizeof(p->far.sock.cong));
	return NP_OK;
}

static int
set_service(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	if (!np_dccp_service(arg, &cli->plan.service)) {
		return np_fail(err, NP_EUSAGE, 0, "'%.40s' is not a service code (try SC:test)",
			       arg);
	}
	return NP_OK;
}

/* One end's processor, or its list of them. NULL: leave what is there. */
static int
take_cpus(const char *text, struct np_place *place, struct np_err *err)
{
	static const struct np_option one = {
		.kind = NP_OPT_COUNT,
		.to = offsetof(struct np_place, cpu),
		.max = 65535,
	};
	char again[NP_CPU_TURNS_TEXT];
	const char *why;

	if (text == NULL) {
		return NP_OK;
	}
	place->turns.count = 0;
	if (text[0] == '\0' || strpbrk(text + 1, "-+:") == NULL) {
		return np_option_set(&one, text, place, err);
	}
	place->cpu = -1;
	why = np_cpu_turns_parse(&place->turns, text);
	if (why != NULL) {
		return np_fail(err, NP_EUSAGE, 0, "%.40s is %s", text, why);
	}
	if (!np_cpu_turns_text(&place->turns, again, sizeof(again))) {
		return np_fail(err, NP_EUSAGE, 0,
			       "%.40s is longer than %zu characters (ranges are shorter: 0-7, "
			       "0-14:2)",
			       text, sizeof(again) - 1);
	}
	return NP_OK;
}

static int
set_cpus(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	struct np_pair pair;

	(void)o;
	cli->bound = true;
	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	if (pair.first == NULL && pair.second == NULL) {
		return np_fail(err, NP_EUSAGE, 0, "'%s' holds no value", arg);
	}
	if (take_cpus(pair.first, &cli->plan.near.place, err) != NP_OK) {
		return err->code;
	}
	return take_cpus(pair.comma ? pair.second : pair.first, &cli->plan.far.place, err);
}

static int
set_timeout(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	int64_t n;

	(void)o;
	if (np_parse_int(arg, &n) != 0 || n < 1 || n > 3600) {
		return np_fail(err, NP_EUSAGE, 0, "%s is not a time-out (1 to 3600 seconds)", arg);
	}
	cli->plan.timeout_ms = (uint32_t)n * 1000;
	return NP_OK;
}

static int
set_family(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	int family = o->letter == '6' ? AF_INET6 : AF_INET;

	(void)arg;
	(void)err;
	memcpy((char *)ctx + o->to, &family, sizeof(family));
	return NP_OK;
}

static int
set_control_family(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	/* What -H and -L said before is overridden, and what they say later overrides. */
	set_family(ctx, o, arg, err);
	cli->target.host.family = cli->target.local.family = cli->target.family;
	return NP_OK;
}

/* Counts beyond 32 bits mean "as many as you like", as scripts write 10G. */
static int
set_bursts(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	struct np_pair pair;
	uint32_t *to[] = { &cli->plan.near.call.interval_burst,
			   &cli->plan.far.call.interval_burst };

	(void)o;
	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	for (int i = 0; i < 2; i++) {
		const char *word = i == 0 ? pair.first : pair.second;
		int64_t n;

		if (word == NULL) {
			continue;
		}
		if (np_parse_count(word, &n) != 0 || n < 0) {
			return np_fail(err, NP_EUSAGE, 0,
				       "%s is not a number of operations (try 16)", word);
		}
		*to[i] = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
	}
	return NP_OK;
}

/* netperf's times: the first of m, u and s in the word is the unit; without one, milliseconds. */
static int
parse_interval(const char *word, uint32_t *out, struct np_err *err)
{
	double unit = 1000;
	char *end;
	double n = strtod(word, &end);

	if (strchr(end, 'm') == NULL && strchr(end, 'u') != NULL) {
		unit = 1;
	} else if (strchr(end, 'm') == NULL && strchr(end, 's') != NULL) {
		unit = 1e6;
	}
	if (end == word || !(n >= 0 && n * unit <= 3.6e9)) {
		return np_fail(err, NP_EUSAGE, 0, "%s is not an interval (try 10ms or 500us)",
			       word);
	}
	*out = (uint32_t)(n * unit);
	return NP_OK;
}

static int
set_intervals(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	struct np_pair pair;

	(void)o;
	if (np_pair_split(arg, &pair, err) != NP_OK ||
	    (pair.first != NULL &&
	     parse_interval(pair.first, &cli->plan.near.call.interval_us, err) != NP_OK) ||
	    (pair.second != NULL &&
	     parse_interval(pair.second, &cli->plan.far.call.interval_us, err) != NP_OK)) {
		return err->code;
	}
	return NP_OK;
}

/* -c and -C: netperf takes a calibration rate, of which Linux has no need. */
static int
set_cpu(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	static const bool yes = true;

	(void)arg;
	(void)err;
	memcpy((char *)ctx + o->to, &yes, sizeof(yes));
	return NP_OK;
}

static int
set_debug(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	(void)arg;
	(void)err;
	cli->output.debug++;
	return NP_OK;
}

/* Seconds, negative ones too: netperf then reads the clock more often, which ours need not. */
static int
set_interim(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	struct np_pair pair;
	char *end;
	double s = 1;

	(void)o;
	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	if (pair.first != NULL) {
		s = strtod(pair.first, &end);
		if (end == pair.first || !(s > -86400 && s < 86400)) {
			return np_fail(err, NP_EUSAGE, 0, "%s is not a number of seconds (try 0.5)",
				       pair.first);
		}
	}
	s = s < 0 ? -s : s;
	cli->output.interim_s = s >= 0.001 ? s : s > 0 ? 0.001 : 1;
	return NP_OK;
}

static int
set_tls_cipher(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	const struct np_tls_suite *suite = np_tls_suite_named(arg);
	struct np_cli *cli = ctx;

	(void)o;
	if (suite == NULL) {
		return np_fail(err, NP_EUSAGE, 0,
			       "%s: unknown (try aes128-gcm, aes256-gcm or chacha20-poly1305)",
			       arg);
	}
	cli->plan.tls_suite = suite->number;
	return NP_OK;
}

static int
set_progress(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	static const char *const words[] = {
		[NP_WHEN_AUTO] = "auto",
		[NP_WHEN_ALWAYS] = "always",
		[NP_WHEN_NEVER] = "never",
	};
	struct np_cli *cli = ctx;

	(void)o;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(arg, words[i]) == 0) {
			cli->output.progress = (enum np_when)i;
			return NP_OK;
		}
	}
	return np_fail(err, NP_EUSAGE, 0, "%s: unknown (try always, never or auto)", arg);
}

static int32_t
clamp_iterations(int32_t n)
{
	return n < 3 ? 3 : n > 30 ? 30 : n;
}

static int
set_iterations(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	static const struct np_option pair = {
		.kind = NP_OPT_BOTH,
		.to = offsetof(struct np_cli, confidence.max),
		.to2 = offsetof(struct np_cli, confidence.min),
	};
	struct np_cli *cli = ctx;

	(void)o;
	if (np_option_set(&pair, arg, ctx, err) != NP_OK) {
		return err->code;
	}
	if (cli->confidence.max < cli->confidence.min) {
		cli->confidence.max = cli->confidence.min;
	}
	cli->confidence.max = clamp_iterations(cli->confidence.max);
	cli->confidence.min = clamp_iterations(cli->confidence.min);
	cli->confidence.level = cli->confidence.level != 0 ? cli->confidence.level : 99;
	cli->confidence.width = cli->confidence.width >= 0 ? cli->confidence.width : 5;
	return NP_OK;
}

/* A whole percentage: 95, 95.0 or 95%. Returns 0 or -1. */
static int
parse_level(const char *text, int64_t *level)
{
	char *end;
	double n = strtod(text, &end);

	if (end == text || strcmp(end, *end == '%' ? "%" : "") != 0 || !(n > 0 && n < 100)) {
		return -1;
	}
	*level = (int64_t)n;
	return (double)*level < n ? -1 : 0;
}

/* Sic: a level without a comma is the width, too. */
static int
set_confidence(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	struct np_pair pair;
	const char *width;
	int64_t level = cli->confidence.level;
	char *end;

	(void)o;
	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	if ((pair.first != NULL && parse_level(pair.first, &level) != 0) ||
	    (level != 95 && level != 99)) {
		return np_fail(err, NP_EPLAIN, 0,
			       "Only 95%% and 99%% confidence level is supported");
	}
	width = pair.comma ? pair.second : pair.first;
	if (width != NULL) {
		cli->confidence.width = strtod(width, &end);
		if (end == width || !(cli->confidence.width >= 0)) {
			return np_fail(err, NP_EUSAGE, 0, "%s is not a width in percent (try 5)",
				       width);
		}
	}
	cli->confidence.level = (int32_t)level;
	if (cli->confidence.max == 1) {
		cli->confidence.min = 3;
		cli->confidence.max = 10;
	}
	cli->confidence.width = cli->confidence.width >= 0 ? cli->confidence.width : 5;
	return NP_OK;
}

/* The style that comes last wins, and forgets what the ones before it selected. */
static int
set_style(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)err;
	cli->output.style = o->letter == 'o'   ? NP_STYLE_CSV
			    : o->letter == 'O' ? NP_STYLE_COLUMNS
					       : NP_STYLE_KEYVAL;
	cli->output.selectors = arg;
	return NP_OK;
}

/* A direction: words joined by bars; what is none of them is a number, or nothing. */
static int
set_direction(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	static const struct {
		const char *word;
		uint32_t bits;
	} words[] = {
		{ "send", NP_WD_TRANSMIT },     { "stream", NP_WD_TRANSMIT },
		{ "transmit", NP_WD_TRANSMIT }, { "xmit", NP_WD_TRANSMIT },
		{ "recv", NP_WD_RECEIVE },      { "receive", NP_WD_RECEIVE },
		{ "maerts", NP_WD_RECEIVE },    { "rr", NP_WD_BOTH },
	};
	struct np_cli *cli = ctx;
	char list[128], *rest = NULL;

	(void)o;
	snprintf(list, sizeof(list), "%s", arg);
	cli->omni.direction_given = true;
	cli->omni.direction = NP_WD_NONE;
	for (char *w = strtok_r(list, "|", &rest); w != NULL; w = strtok_r(NULL, "|", &rest)) {
		uint32_t bits = (uint32_t)strtoul(w, NULL, 0) & NP_WD_BOTH;

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			bits = strcasecmp(w, words[i].word) == 0 ? words[i].bits : bits;
		}
		cli->omni.direction |= bits;
	}
	(void)err;
	return NP_OK;
}

/* The sizes of an OMNI test imply its direction. */
static void
imply(struct np_cli *cli, const struct np_pair *pair, uint32_t first, uint32_t second)
{
	if (!cli->omni.direction_given) {
		cli->omni.direction |= pair->first != NULL ? first : 0;
		cli->omni.direction |= pair->second != NULL ? second : 0;
	}
}

static int
set_call_sizes(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	const struct np_option sizes = {
		.kind = NP_OPT_EACH, .to = o->to, .to2 = o->to2, .min = 1, .max = INT32_MAX
	};
	struct np_pair pair;

	if (np_pair_split(arg, &pair, err) != NP_OK ||
	    np_option_set(&sizes, arg, ctx, err) != NP_OK) {
		return err->code;
	}
	imply(ctx, &pair, NP_WD_TRANSMIT, NP_WD_RECEIVE);
	return NP_OK;
}

static int
set_message_sizes(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	const struct np_option sizes = {
		.kind = NP_OPT_BOTH, .to = o->to, .to2 = o->to2, .min = 1, .max = INT32_MAX
	};
	struct np_cli *cli = ctx;

	if (np_option_set(&sizes, arg, ctx, err) != NP_OK) {
		return err->code;
	}
	if (!cli->omni.direction_given) {
		cli->omni.direction |= NP_WD_BOTH;
	}
	return NP_OK;
}

/* An option that netperf has given up; it says so, and goes on. */
static int
set_gone(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)arg;
	(void)err;
	cli->gone = o->letter;
	return NP_OK;
}

static int
set_unix_dir(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	if (np_text_copy(cli->plan.unix_dir, sizeof(cli->plan.unix_dir), arg) != 0) {
		return np_fail(err, NP_EUSAGE, 0, "%s: longer than %zu characters", arg,
			       sizeof(cli->plan.unix_dir) - 1);
	}
	return NP_OK;
}

static int
set_devices(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	return set_names(arg, cli->data.device, cli->data.far_device, sizeof(cli->data.device),
			 "the name of an interface has up to", err);
}

static int
set_uuid(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	if (strlen(arg) > 37) {
		return np_fail(err, NP_EUSAGE, 0, "%s: an identifier of more than 37 characters",
			       arg);
	}
	cli->output.uuid = arg;
	return NP_OK;
}

/* Scripts write 1400b, which netperf reads as 1400. */
static int
set_mss(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	char *end;
	long n = strtol(arg, &end, 10);

	(void)o;
	if (end == arg || (*end != '\0' && strcmp(end, "b") != 0) || n < 1 || n > 65535) {
		return np_fail(err, NP_EUSAGE, 0, "%s is not a segment size (1 to 65535 bytes)",
			       arg);
	}
	cli->plan.mss = (int32_t)n;
	return NP_OK;
}

/* What is longer than a message holds is cut, as netperf does. */
static int
set_passphrase(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	(void)err;
	snprintf(cli->target.passphrase_text, sizeof(cli->target.passphrase_text), "%s", arg);
	cli->target.passphrase = cli->target.passphrase_text;
	return NP_OK;
}

static int
set_passphrase_file(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	char text[sizeof(cli->target.passphrase_text) + 1] = "";
	size_t count, most = sizeof(cli->target.passphrase_text) - 1;

	if (np_secret_read(arg, text, sizeof(text) - 1, &count, err) != NP_OK) {
		return err->code;
	}
	set_passphrase(ctx, o, text, err);
	np_secret_wipe(text, sizeof(text));
	if (count == 0 || count > most) {
		return np_fail(err, NP_EUSAGE, 0, "%s: a passphrase has 1 to %zu characters", arg,
			       most);
	}
	return NP_OK;
}

static int
set_key_file(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	return np_auth_read_key(&cli->target.key, arg, err);
}

/* What drives the data connections of one end. NULL: leave what is there. */
static int
take_engine(const char *name, const struct np_engine **engine, struct np_err *err)
{
	const struct np_engine *found = name != NULL ? np_engine_find(name) : NULL;

	if (name != NULL && found == NULL) {
		return np_fail(err, NP_EUSAGE, 0, "%.40s is not an engine (try --engine list)",
			       name);
	}
	*engine = found != NULL ? found : *engine;
	return NP_OK;
}

static int
set_engine(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	struct np_pair pair;

	(void)o;
	if (strcasecmp(arg, "list") == 0) {
		cli->list_engines = true;
		return NP_OK;
	}
	if (np_pair_split(arg, &pair, err) != NP_OK ||
	    take_engine(pair.first, &cli->plan.near.place.engine, err) != NP_OK ||
	    take_engine(pair.comma ? pair.second : pair.first, &cli->plan.far.place.engine, err) !=
		NP_OK) {
		return err->code;
	}
	return NP_OK;
}

static int
take_threads(const char *text, uint32_t *threads, struct np_err *err)
{
	int64_t n;

	if (text == NULL) {
		return NP_OK;
	}
	if (np_parse_count(text, &n) != 0 || n < 1 || n > NP_THREADS_MAX) {
		return np_fail(err, NP_EUSAGE, 0, "%.40s is not a number of threads (1 to %d)",
			       text, NP_THREADS_MAX);
	}
	*threads = (uint32_t)n;
	return NP_OK;
}

static int
set_threads(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	struct np_pair pair;

	(void)o;
	if (np_pair_split(arg, &pair, err) != NP_OK ||
	    take_threads(pair.first, &cli->plan.near.place.threads, err) != NP_OK) {
		return err->code;
	}
	return take_threads(pair.comma ? pair.second : pair.first, &cli->plan.far.place.threads,
			    err);
}

static int
set_warm_up(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	char *end;
	double s = strtod(arg, &end);

	(void)o;
	if (end == arg || *end != '\0' || !(s >= 0 && s * 1000 <= NP_WARM_UP_MAX)) {
		return np_fail(err, NP_EUSAGE, 0, "%.40s is not a time to warm up (0 to %d s)", arg,
			       NP_WARM_UP_MAX / 1000);
	}
	cli->plan.warm_up_ms = (uint32_t)(s * 1000 + 0.5);
	return NP_OK;
}

static int
set_ramp(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	size_t length = strcspn(arg, "/");
	char number[24];
	int64_t n;

	(void)o;
	snprintf(number, sizeof(number), "%.*s", (int)length, arg);
	if ((arg[length] != '\0' && strcmp(arg + length, "/s") != 0) || length >= sizeof(number) ||
	    np_parse_count(number, &n) != 0 || n < 1 || n > NP_RAMP_MAX) {
		return np_fail(err, NP_EUSAGE, 0,
			       "%.40s is not a number of connections a second (1 to %d)", arg,
			       NP_RAMP_MAX);
	}
	cli->plan.ramp = (uint32_t)n;
	return NP_OK;
}

/* The first one is as if -L had named it. */
static int
set_source_range(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	struct np_name *local = &cli->data.local;
	char text[NP_ADDR_TEXT];

	(void)o;
	if (np_range_parse(&cli->source, &cli->plan.sources, arg, err) != NP_OK) {
		return err->code;
	}
	snprintf(local->text, sizeof(local->text), "%s", np_addr_host(&cli->source, text));
	local->family = cli->source.sa.ss_family;
	local->given = true;
	return NP_OK;
}

static int
set_json(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	if (arg != NULL && *arg == '\0') {
		return np_fail(err, NP_EUSAGE, 0, "the file has no name");
	}
	cli->output.json = true;
	cli->evidence.caps |= NP_CAP_TEST | NP_CAP_HOST;
	cli->output.json_file = arg != NULL && strcmp(arg, "-") != 0 ? arg : NULL;
	return NP_OK;
}

static int
set_explain(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	(void)arg;
	(void)err;
	cli->evidence.explain = true;
	cli->evidence.caps |= NP_CAP_TEST | NP_CAP_HOST;
	return NP_OK;
}

static int
set_link_rate(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	if (np_parse_rate(arg, &cli->evidence.link_rate) != 0) {
		return np_fail(err, NP_EUSAGE, 0,
			       "%s is not a rate of a link (try 100mbit, 2.5gbit)", arg);
	}
	return NP_OK;
}

/* Without the permission there are the interface's counters, which come with the test's figures. */
static int
set_wire(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	static const char file[] = "pcap:";
	struct np_cli *cli = ctx;

	(void)o;
	if (arg != NULL && strncmp(arg, file, sizeof(file) - 1) != 0) {
		return np_fail(err, NP_EUSAGE, 0, "%s: nothing that can be written (try pcap:FILE)",
			       arg);
	}
	cli->evidence.wire_file = arg != NULL ? arg + sizeof(file) - 1 : NULL;
	if (arg != NULL &&
	    (cli->evidence.wire_file[0] == '\0' || strcmp(cli->evidence.wire_file, "-") == 0)) {
		return np_fail(err, NP_EUSAGE, 0, "%s: needs the name of a file", arg);
	}
	cli->evidence.wire = true;
	cli->evidence.caps |= NP_CAP_WIRE | NP_CAP_TEST;
	return NP_OK;
}

/*
 * -o, -O and -k mean offsets and dirty bytes here, and output selectors behind "--": does the
 * argument begin with the name of one?
 */
static bool
names_figures(const char *arg)
{
	char name[80];
	size_t len = strcspn(arg, ",; ");

	if (len >= sizeof(name)) {
		return false;
	}
	memcpy(name, arg, len);
	name[len] = '\0';
	return strcasecmp(name, "all") == 0 || np_figure_find(name) >= 0;
}

static int
set_help(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;

	(void)o;
	if (arg != NULL && strcmp(arg, "all") != 0) {
		return np_fail(err, NP_EUSAGE, 0, "%.40s is not a help text (try --help=all)", arg);
	}
	cli->help = true;
	cli->help_all = arg != NULL;
	return NP_OK;
}

/* What netperf takes as well, and has no use for either. */
static int
set_nothing(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	(void)ctx;
	(void)o;
	(void)arg;
	(void)err;
	return NP_OK;
}

static int
set_also(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	struct np_pair pair;
	const char *words[2];

	(void)o;
	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	words[0] = pair.first;
	words[1] = pair.second;
	for (int i = 0; i < 2; i++) {
		if (words[i] != NULL &&
		    np_text_copy(cli->also[i], sizeof(cli->also[i]), words[i]) != 0) {
			return np_fail(err, NP_EUSAGE, 0, "more than %zu characters",
				       sizeof(cli->also[i]) - 1);
		}
	}
	return NP_OK;
}

/* netperf counts from 1 in its message, and takes no less than 2. */
static int
set_associations(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct np_cli *cli = ctx;
	int64_t n;

	(void)o;
	if (np_parse_count(arg, &n) != 0 || n > NP_FLOWS_MAX) {
		return np_fail(err, NP_EUSAGE, 0, "%.40s is not a number of associations (2 to %d)",
			       arg, NP_FLOWS_MAX);
	}
	if (n < 2) {
		printf("Number of SCTP associations must be >= 1\n");
		return np_fail(err, NP_EUSAGE, 0, "%.40s is not a number of associations (2 to %d)",
			       arg, NP_FLOWS_MAX);
	}
	cli->associations = (uint32_t)n;
	return NP_OK;
}

/* --- the tables --------------------------------------------------------------------------------
 */

#define CLI(member) offsetof(struct np_cli, member)
#define OMNI NP_SCOPE_OMNI
#define BSD NP_SCOPE_BSD
#define UNIX NP_SCOPE_UNIX
#define LINK NP_SCOPE_LINK
#define SCTP NP_SCOPE_SCTP
#define IP (NP_SCOPE_OMNI | NP_SCOPE_BSD)

/* The columns of a row: letter, long name, kind, argument, help, where to. */
#define ROW(l, n, k, a, h) .letter = (l), .name = (n), .kind = NP_OPT_##k, .arg = (a), .help = (h)
#define TO(m) .to = CLI(m)
#define TO2(m1, m2) .to = CLI(m1), .to2 = CLI(m2)
/* Where help texts have the row, the words of the short one, and which tests have a use for it. */
#define IN(g) .group = GROUP_##g
#define BRIEF(words) .brief = (words)
#define FOR(trait) .needs = NP_FOR_##trait
#define RANGE(lo, hi) .min = (lo), .max = (hi)
#define ASTRAY(l)                                                                                  \
	.astray = names_figures, .instead = "output selectors are a test option (-- -" l " NAMES)"

/* In the order of help texts. */
enum global_group {
	GROUP_NONE,
	GROUP_WHERE,
	GROUP_WHAT,
	GROUP_LONG,
	GROUP_SURE,
	GROUP_PRINT,
	GROUP_WHY,
	GROUP_FLOWS,
	GROUP_PACE,
	GROUP_TUNE,
	GROUP_HELP
};
const char *const np_global_groups[] = {
	[GROUP_NONE] = "Other",    [GROUP_WHERE] = "Where to",   [GROUP_WHAT] = "What to measure",
	[GROUP_LONG] = "How long", [GROUP_SURE] = "How sure",    [GROUP_PRINT] = "Output",
	[GROUP_WHY] = "Evidence",  [GROUP_FLOWS] = "Many flows", [GROUP_PACE] = "Pacing",
	[GROUP_TUNE] = "Tuning",   [GROUP_HELP] = "Help",        NULL
};

const struct np_option np_global_options[] = {
	{ ROW('4', "ipv4", PLAIN, NULL, "use IPv4 for the control connection"), TO(target.family),
	  .set = set_control_family, IN(WHERE) },
	{ ROW('6', "ipv6", PLAIN, NULL, "use IPv6 for the control connection"), TO(target.family),
	  .set = set_control_family, IN(WHERE) },
	{ ROW('a', "local-align", BOTH, "send,recv", "align the local buffers (8)"),
	  TO2(plan.near.call.send_align, plan.near.call.recv_align), RANGE(1, 1 << 24), IN(TUNE) },
	{ ROW('A', "remote-align", BOTH, "send,recv", "align the remote buffers (8)"),
	  TO2(plan.far.call.send_align, plan.far.call.recv_align), RANGE(1, 1 << 24), IN(TUNE) },
	{ ROW('b', "interval-burst", CUSTOM, "local,remote",
	      "pace: run N operations in each interval of -w (0: no pacing)"),
	  .set = set_bursts, .numbers = true, IN(PACE), BRIEF("send N messages each time") },
	{ ROW('B', "brand", TEXT, "text", "print this text after a result without headers"),
	  TO(output.brand), IN(PRINT) },
	{ ROW('c', "local-cpu", NUMBER, "rate", "measure the CPU utilisation of this end"),
	  TO(plan.near.place.measure_cpu), .set = set_cpu, IN(WHY),
	  BRIEF("measure the CPU of this end") },
	{ ROW('C', "remote-cpu", NUMBER, "rate", "measure the CPU utilisation of the far end"),
	  TO(plan.far.place.measure_cpu), .set = set_cpu, IN(WHY),
	  BRIEF("measure the CPU of the far end") },
	{ ROW('d', "debug", PLAIN, NULL, "print each step on standard output; twice: more"),
	  .set = set_debug, IN(PRINT) },
	{ ROW('D', "interim", CUSTOM, "seconds,units",
	      "print an interim result every N seconds (1); units are ignored"),
	  .set = set_interim, IN(PRINT), BRIEF("print a result every N seconds") },
	{ ROW('f', "units", CUSTOM, "letter",
	      "set the unit of throughput: G M K B (bytes), g m k (bits), x (transactions)"),
	  .set = set_unit, IN(PRINT), BRIEF("set the unit: G M K B bytes, g m k bits") },
	{ ROW('F', "fill-file", CUSTOM, "local,remote",
	      "fill the send buffers from this file; TCP_SENDFILE sends it"),
	  .set = set_fill_files, IN(WHAT) },
	{ ROW('h', NULL, FLAG, NULL, "show this text"), TO(usage), IN(HELP) },
	{ ROW('H', "host", CUSTOM, "name,family",
	      "test against the netserver on this host (localhost)"),
	  TO(target.host), .set = set_name, IN(WHERE),
	  BRIEF("test against netserver on this host") },
	{ ROW('i', "iterations", CUSTOM, "max,min",
	      "repeat the test until the confidence of -I is reached (1; with -I 10,3)"),
	  .set = set_iterations, .numbers = true, IN(SURE) },
	{ ROW('I', "confidence", CUSTOM, "level,width",
	      "set confidence level, 95 or 99 percent, and full width of its interval (99,5)"),
	  .set = set_confidence, IN(SURE), BRIEF("repeat until it is that sure (99,5)") },
	{ ROW('\0', "clean", COUNT, "s",
	      "repeat until N seconds were free of disturbances, instead of -l"),
	  TO(clean.seconds), RANGE(1, 86400), IN(SURE),
	  BRIEF("repeat until N seconds were undisturbed") },
	{ ROW('\0', "at-most", COUNT, "s",
	      "with --clean: stop after N seconds in all (four times --clean)"),
	  TO(clean.at_most), RANGE(1, 604800), IN(SURE) },
	{ ROW('j', NULL, FLAG, NULL, "keep latency statistics; -v 2 shows their histogram"),
	  TO(output.latency), IN(PRINT) },
	{ ROW('\0', "latency", FLAG, NULL,
	      "print a table of latencies below the result: mean, percentiles and others (implies "
	      "-j)"),
	  TO(output.times), IN(PRINT), BRIEF("also print a table of latencies") },
	{ ROW('k', "local-dirty", BOTH, "dirty,clean",
	      "write and read these numbers of bytes in a local buffer before each send"),
	  TO2(plan.near.call.dirty, plan.near.call.clean), RANGE(0, 1 << 30), ASTRAY("k"),
	  IN(TUNE) },
	{ ROW('K', "remote-dirty", BOTH, "dirty,clean", "do the same at the far end"),
	  TO2(plan.far.call.dirty, plan.far.call.clean), RANGE(0, 1 << 30), IN(TUNE) },
	{ ROW('l', "length", LENGTH, "length",
	      "run for seconds (10s, 1m30s, 0.5, 500ms); negative: bytes or transactions; 0: until "
	      "SIGINT "
	      "(10)"),
	  TO2(plan.length, plan.length_less_ms), IN(LONG),
	  BRIEF("run N seconds; -N: bytes, transactions") },
	{ ROW('L', "local", CUSTOM, "name,family", "use this local address"), TO(target.local),
	  .set = set_name, IN(WHERE) },
	{ ROW('n', NULL, COUNT, "n", "set the number of processors, if it cannot be found out"),
	  TO(cpus), RANGE(0, INT32_MAX), IN(TUNE) },
	{ ROW('N', "no-control", FLAG, NULL,
	      "use no control connection: test against a plain service (discard, chargen, echo)"),
	  TO(plan.no_control), IN(WHERE) },
	{ ROW('o', "local-offset", BOTH, "send,recv", "shift the local buffers by this offset (0)"),
	  TO2(plan.near.call.send_offset, plan.near.call.recv_offset), RANGE(0, 1 << 24),
	  ASTRAY("o"), IN(TUNE) },
	{ ROW('O', "remote-offset", BOTH, "send,recv",
	      "shift the remote buffers by this offset (0)"),
	  TO2(plan.far.call.send_offset, plan.far.call.recv_offset), RANGE(0, 1 << 24), ASTRAY("O"),
	  IN(TUNE) },
	{ ROW('p', "port", CUSTOM, "remote,local",
	      "set the ports of the control connection (12865,any)"),
	  .set = set_control_ports, IN(WHERE), BRIEF("set its port, and ours (12865,any)") },
	{ ROW('P', "headers", COUNT, "0|1", "print no banner and no column headers with 0 (1)"),
	  TO(output.headers), IN(PRINT) },
	{ ROW('r', "result-only", FLAG, NULL,
	      "judge confidence by the result only, not by CPU utilisation"),
	  TO(confidence.result_only), IN(SURE) },
	{ ROW('s', "wait", COUNT, "seconds", "wait before the traffic starts (0)"), TO(wait_s),
	  RANGE(0, 86400), IN(LONG) },
	{ ROW('S', "keep-alive", FLAG, NULL, "set SO_KEEPALIVE on the data socket"),
	  TO(plan.keepalive), IN(TUNE) },
	{ ROW('t', "test", TEXT, "name", "run this test (TCP_STREAM)"), TO(test), IN(WHAT),
	  BRIEF("run this test (TCP_STREAM)") },
	{ ROW('T', "cpu", CUSTOM, "local,remote",
	      "bind netperf and netserver to a processor, or their threads to several: 0-3+8, "
	      "0-6:2"),
	  .set = set_cpus, .numbers = true, IN(TUNE), BRIEF("bind to processors: 0, or 0-3+8") },
	{ ROW('v', "verbosity", COUNT, "n",
	      "print 0: one figure, 1: the table, 2: also details, 3: only details (1)"),
	  TO(output.verbosity), IN(PRINT), BRIEF("0: one figure, 1: table, 2: details") },
	{ ROW('V', NULL, FLAG, NULL, "show the version"), TO(version), IN(HELP) },
	{ ROW('w', "interval", CUSTOM, "local,remote",
	      "set the pacing interval: 10ms, 500us, 1s; see -b (1ms)"),
	  .set = set_intervals, IN(PACE), BRIEF("do so at intervals: 10ms, 500us (1ms)") },
	{ ROW('W', "width", BOTH, "send,recv",
	      "use N buffers in turn, at both ends (by socket buffer)"),
	  TO2(plan.near.call.send_width, plan.near.call.recv_width), RANGE(0, 1 << 20), IN(TUNE) },
	{ ROW('y', "priority", BOTH, "local,remote", "set SO_PRIORITY of the data socket"),
	  TO2(plan.near.sock.prio, plan.far.sock.prio), IN(TUNE) },
	{ ROW('Y', "tos", CUSTOM, "local,remote",
	      "set the type of service of the data socket: number, ef, af11, cs1"),
	  .set = set_tos, IN(TUNE) },
	{ ROW('Z', "passphrase", CUSTOM, "text",
	      "send this passphrase to the daemon; ps(1) shows it for a moment"),
	  .set = set_passphrase, .secret = true, IN(WHERE) },
	{ ROW('\0', "passphrase-file", CUSTOM, "file",
	      "read the passphrase from a file's first line; mode 600"),
	  .set = set_passphrase_file, IN(WHERE) },
	{ ROW('\0', "key-file", CUSTOM, "file",
	      "prove to each other the key in the file's first line; mode 600" NP_NEEDS_SODIUM),
	  .set = set_key_file, IN(WHERE), BRIEF("prove to each other to have this key") },
	{ ROW('\0', "nat", FLAG, NULL,
	      "with --key-file: do not prove the addresses, for a NAT on the path"),
	  TO(target.nat), IN(WHERE) },
	{ ROW('\0', "flows", COUNT, "n", "use N data connections (1)"), TO(plan.flows),
	  RANGE(1, NP_FLOWS_MAX), IN(FLOWS), BRIEF("use N data connections (1)") },
	{ ROW('\0', "threads", CUSTOM, "local,remote",
	      "drive the data connections with N threads at most (1)"),
	  .set = set_threads, IN(FLOWS), BRIEF("drive them with N threads (1)") },
	{ ROW('\0', "spread", FLAG, NULL,
	      "connect again until the flows use different receive queues of this end"),
	  TO(plan.spread), IN(FLOWS) },
	{ ROW('\0', "warm-up", CUSTOM, "s",
	      "drive the data connections for N seconds before the measurement (0)"),
	  .set = set_warm_up, IN(LONG), BRIEF("run N seconds before it counts (0)") },
	{ ROW('\0', "ramp", CUSTOM, "n",
	      "begin N data connections a second, up to --flows; also written N/s"),
	  .set = set_ramp, IN(FLOWS) },
	{ ROW('\0', "source-range", CUSTOM, "first-last",
	      "use these local addresses in turn for the data connections of --flows"),
	  .set = set_source_range, IN(FLOWS) },
	{ ROW('\0', "both", FLAG, NULL,
	      "run a stream in each direction at the same time: THROUGHPUT is the sum, see also "
	      "LOCAL_SEND_THROUGHPUT and LOCAL_RECV_THROUGHPUT"),
	  TO(plan.both), IN(WHAT), BRIEF("run a stream in each direction") },
	{ ROW('\0', "engine", CUSTOM, "local,remote",
	      "choose how data are sent and received: sync (default for one connection), epoll "
	      "(for several); list shows all"),
	  .set = set_engine, IN(TUNE), BRIEF("choose how data are sent, or list") },
	{ ROW('\0', "batch", COUNT, "messages",
	      "carry N messages in a call, with --engine batch or segment (64)"),
	  TO(batch), RANGE(1, NP_BATCH_MAX), IN(TUNE) },
	{ ROW('\0', "segment-size", COUNT, "bytes",
	      "set the size of a datagram, with --engine segment; -- -m is then the size of a "
	      "call"),
	  TO(segment_size), RANGE(1, 65507), IN(TUNE) },
	{ ROW('\0', "json", MAYBE, "file",
	      "write the run as a JSON document, to the file or instead of the "
	      "output" NP_NEEDS_JANSSON),
	  .set = set_json, IN(PRINT), BRIEF("write the run as a JSON document") },
	{ ROW('\0', "show", TEXT, "file",
	      "print the run of a JSON document again; -- -o -O -k choose the "
	      "figures" NP_NEEDS_JANSSON),
	  TO(output.show), IN(PRINT) },
	{ ROW('\0', "human", FLAG, NULL,
	      "print one table in SI units in place of the classic one: rate and its interval, "
	      "loss, "
	      "latencies, processors"),
	  TO(output.human), IN(PRINT), BRIEF("one table in SI units, with intervals") },
	{ ROW('\0', "prometheus", FLAG, NULL,
	      "with --show: print in the format of Prometheus" NP_NEEDS_JANSSON),
	  TO(output.prometheus), IN(PRINT) },
	{ ROW('\0', "explain", PLAIN, NULL,
	      "print on standard error what limited the test, and what the link can carry"),
	  .set = set_explain, IN(WHY), BRIEF("print what limited the test") },
	{ ROW('\0', "link-rate", CUSTOM, "rate",
	      "give the link's rate, if it cannot be read: 100mbit, 2.5gbit"),
	  .set = set_link_rate, IN(WHY) },
	{ ROW('\0', "sample-interval", COUNT, "ms",
	      "sample TCP_INFO every N milliseconds, at both ends (100; with --explain 20)"),
	  TO(evidence.sample_ms), RANGE(1, 60000), IN(WHY) },
	{ ROW('\0', "cycles", FLAG, NULL,
	      "count processor cycles and instructions of this end's threads"),
	  TO(evidence.cycles), IN(WHY) },
	{ ROW('\0', "wire", MAYBE, "pcap:file",
	      "capture packet headers: a summary on standard error, the headers in the "
	      "file" NP_NEEDS_PCAP),
	  .set = set_wire, IN(WHY), BRIEF("count the packets, by a capture") },
	{ ROW('\0', "progress", CUSTOM, "always|never|auto",
	      "show on standard error, in one line, how far the test is (auto: on a terminal)"),
	  .set = set_progress, IN(PRINT) },
	{ ROW('\0', "help", MAYBE, "all",
	      "show the options that most people need, on standard output; all: every option"),
	  .set = set_help, IN(HELP), BRIEF("show this text; --help=all: all options") },
	{ ROW('\0', "list-figures", FLAG, NULL,
	      "list all figures for -- -k, -o and -O, with unit and meaning"),
	  TO(list_figures), IN(HELP) },
	{ ROW('\0', "list-tests", FLAG, NULL,
	      "list all tests, their protocols, and what this machine lacks to run them"),
	  TO(list_tests), IN(HELP) },
	{ ROW('\0', "version", FLAG, NULL,
	      "show the version of netperf's interface, and this program's"),
	  TO(program), IN(HELP) },
	{ ROW('\0', "preflight", FLAG, NULL,
	      "run no test: list what disturbs a measurement on both hosts"),
	  TO(preflight), IN(WHY), BRIEF("list what would disturb a test") },
	{ ROW('\0', "ceiling", FLAG, NULL,
	      "run no test: read lines such as test=UDP_STREAM size=64 rate=100mbit, and print "
	      "what such a link can carry, as JSON"),
	  TO(ceilings), IN(WHY) },
};
const size_t np_global_options_count = sizeof(np_global_options) / sizeof(np_global_options[0]);

#undef IN
#define IN(g) .group = TEST_##g
enum test_group {
	TEST_NONE,
	TEST_CHOICE,
	TEST_SIZES,
	TEST_FLIGHT,
	TEST_ENDS,
	TEST_SOCKET,
	TEST_CALLS,
	TEST_PRINT,
	TEST_HELP,
	TEST_GONE
};
const char *const np_test_groups[] = { [TEST_NONE] = "Other",
				       [TEST_CHOICE] = "What OMNI does",
				       [TEST_SIZES] = "Sizes",
				       [TEST_FLIGHT] = "Requests in flight",
				       [TEST_ENDS] = "Addresses, ports and routes",
				       [TEST_SOCKET] = "Socket options",
				       [TEST_CALLS] = "Calls and buffers",
				       [TEST_PRINT] = "Output",
				       [TEST_HELP] = "Help",
				       [TEST_GONE] = "Without effect",
				       NULL };
const char *const np_test_scopes[] = { "OMNI tests",        "TCP_CC, TCP_MSS, TCP_SENDFILE",
				       "UNIX-domain tests", "DLCL tests",
				       "SCTP tests",        NULL };

const struct np_option np_test_options[] = {
	{ ROW('4', "ipv4", PLAIN, NULL, "use IPv4 for the data connection"), TO(data.family),
	  .set = set_family, .scope = IP | SCTP, IN(ENDS), FOR(IP) },
	{ ROW('6', "ipv6", PLAIN, NULL, "use IPv6 for the data connection"), TO(data.family),
	  .set = set_family, .scope = IP | SCTP, IN(ENDS), FOR(IP) },
	{ ROW('a', "defer-accept", FLAG, NULL, "set TCP_DEFER_ACCEPT at the daemon"),
	  TO(plan.defer_accept), .scope = OMNI, IN(SOCKET), FOR(TCP) },
	{ ROW('\0', "also-bind", CUSTOM, "local,remote",
	      "SCTP: bind the data sockets to these addresses, too; several are joined by +"),
	  .set = set_also, .scope = OMNI | SCTP, IN(ENDS), FOR(SCTP) },
	{ ROW('b', "burst", COUNT, "n", "request/response: keep N more requests in flight (0)"),
	  TO(plan.burst), RANGE(0, 65535), .scope = IP | LINK | SCTP, IN(FLIGHT), FOR(BURST) },
	{ ROW('B', "packet-info", FLAG, NULL,
	      "UDP: answer from the address that was asked (IP_PKTINFO)"),
	  TO(plan.packet_info), .scope = OMNI, IN(SOCKET), FOR(UDP) },
	{ ROW('B', NULL, PLAIN, NULL, "no effect: calls that need not wait never do"),
	  .set = set_nothing, .scope = SCTP, IN(GONE), FOR(NOBODY) },
	{ ROW('c', "connections", FLAG, NULL, "use a connection for each transaction"),
	  TO(omni.connections), .scope = OMNI, IN(CHOICE), FOR(CHOICE) },
	{ ROW('C', "cork", FLAG, NULL, "set TCP_CORK on the local data socket"), TO(plan.cork),
	  .scope = IP, IN(SOCKET), FOR(TCP) },
	{ ROW('d', "direction", CUSTOM, "word",
	      "OMNI: set the direction: send, recv, rr, or several joined by |"),
	  .set = set_direction, .scope = OMNI, IN(CHOICE), FOR(CHOICE) },
	{ ROW('D', "nodelay", FLAG, NULL, "set TCP_NODELAY or SCTP_NODELAY at both ends"),
	  TO(plan.nodelay), .scope = IP | SCTP, IN(SOCKET), BRIEF("set TCP_NODELAY at both ends"),
	  FOR(SEGMENTS) },
	{ ROW('\0', "device", CUSTOM, "local,remote",
	      "use these interfaces (those of the control connection's addresses)"),
	  .set = set_devices, .scope = LINK, IN(ENDS), FOR(DATA) },
	{ ROW('e', "timeout", CUSTOM, "seconds",
	      "UDP_RR, DLCL_RR: count a response as lost after N seconds (1)"),
	  .set = set_timeout, .numbers = true, .scope = OMNI | LINK, IN(FLIGHT), FOR(LOSSES) },
	{ ROW('f', "no-fragment", FLAG, NULL, "do not fragment packets (IPv4)"),
	  TO(plan.no_fragment), .scope = OMNI, IN(SOCKET), FOR(IP) },
	{ ROW('F', "fast-open", FLAG, NULL, "TCP Fast Open"), TO(plan.fast_open), .scope = OMNI,
	  IN(SOCKET), FOR(TCP) },
	{ ROW('g', NULL, FLAG, NULL, "set SO_DEBUG on the data socket"), TO(plan.debug),
	  .scope = OMNI, IN(SOCKET), FOR(TCP) },
	{ ROW('G', "mss", CUSTOM, "bytes",
	      "set the largest segment (TCP_MAXSEG), or fragment of a message (SCTP_MAXSEG)"),
	  .set = set_mss, .numbers = true, .scope = OMNI | SCTP, IN(SOCKET), FOR(SEGMENTS) },
	{ ROW('h', NULL, FLAG, NULL, "show this text"), TO(test_usage), IN(HELP),
	  BRIEF("list all options of the test of -t") },
	{ ROW('H', NULL, CUSTOM, "name/bits,family",
	      "set the remote address of the data connection (-H); after BITS it is random"),
	  TO2(data.host, plan.far.sock.mask), .set = set_data_name, .scope = IP | SCTP, IN(ENDS),
	  FOR(NAMED) },
	{ ROW('i', NULL, PLAIN, NULL, "no effect, as in netperf"), .set = set_gone, .scope = OMNI,
	  IN(GONE), FOR(NOBODY) },
	{ ROW('I', "write", FLAG, NULL, "use write() instead of send()"), TO(plan.use_write),
	  .scope = OMNI, IN(CALLS), FOR(DATA) },
	{ ROW('I', NULL, CUSTOM, "x", "no effect, as in netperf"), .set = set_nothing,
	  .scope = SCTP, IN(GONE), FOR(NOBODY) },
	{ ROW('j', NULL, CUSTOM, "n", "no effect, as in netperf"), .set = set_nothing,
	  .scope = OMNI, IN(GONE), FOR(NOBODY) },
	{ ROW('k', "keyval", NEXT, "list|file|all|?", "print these figures as NAME=value"),
	  .set = set_style, .scope = OMNI | LINK | SCTP, IN(PRINT),
	  BRIEF("print NAME=value; ? lists the figures"), FOR(DATA) },
	{ ROW('K', "congestion", CUSTOM, "local,remote", "set the TCP congestion control"),
	  .set = set_cong, .scope = IP, IN(SOCKET), FOR(TCP) },
	{ ROW('\0', "ccid", CUSTOM, "n",
	      "DCCP: control congestion by CCID 2 (like TCP) or 3 (TFRC), both ways"),
	  .set = set_ccid, .numbers = true, .scope = OMNI, IN(SOCKET), FOR(DCCP) },
	{ ROW('\0', "service-code", CUSTOM, "code",
	      "DCCP: set the service code of both ends: SC:test, SC=1, SC=xA1"),
	  .set = set_service, .scope = OMNI, IN(SOCKET), FOR(DCCP) },
	{ ROW('l', NULL, COUNT, "hops", "set the time to live of multicast datagrams"),
	  TO(plan.ttl), RANGE(0, 255), .scope = OMNI, IN(ENDS), FOR(UDP) },
	{ ROW('L', NULL, CUSTOM, "name/bits,family",
	      "set the local address of the data connection"),
	  TO2(data.local, plan.near.sock.mask), .set = set_data_name, .scope = IP | SCTP, IN(ENDS),
	  FOR(NAMED) },
	{ ROW('m', "send-size", CUSTOM, "local,remote", "send N bytes in a call (socket buffer)"),
	  TO2(plan.near.call.send_size, plan.far.call.send_size), .set = set_call_sizes,
	  .numbers = true, IN(SIZES), BRIEF("send N bytes in a call"), FOR(BYTES) },
	{ ROW('M', "recv-size", CUSTOM, "remote,local",
	      "receive N bytes in a call (socket buffer)"),
	  TO2(plan.far.call.recv_size, plan.near.call.recv_size), .set = set_call_sizes,
	  .numbers = true, IN(SIZES), FOR(BYTES) },
	{ ROW('n', NULL, FLAG, NULL, "UDP: connect() the local socket"),
	  TO(plan.near.sock.connected), .scope = OMNI, IN(SOCKET), FOR(UDP) },
	{ ROW('n', NULL, PLAIN, NULL, "no effect, as in netperf"), .set = set_nothing, .scope = BSD,
	  IN(GONE), FOR(NOBODY) },
	{ ROW('N', NULL, COUNT, "n", "send N messages or requests, whatever -l says"), TO(messages),
	  RANGE(0, INT32_MAX), .scope = SCTP, IN(SIZES), FOR(DATA) },
	{ ROW('N', NULL, FLAG, NULL, "UDP: connect() the daemon's socket"),
	  TO(plan.far.sock.connected), .scope = OMNI, IN(SOCKET), FOR(UDP) },
	{ ROW('N', NULL, PLAIN, NULL, "no effect, as in netperf"), .set = set_nothing, .scope = BSD,
	  IN(GONE), FOR(NOBODY) },
	{ ROW('o', "csv", NEXT, "list|file|all|?", "print these figures as comma-separated values"),
	  .set = set_style, .scope = OMNI | LINK | SCTP, IN(PRINT), FOR(DATA) },
	{ ROW('O', "columns", NEXT, "list|file|all|?", "print these figures in columns"),
	  .set = set_style, .scope = OMNI | LINK | SCTP, IN(PRINT), FOR(DATA) },
	{ ROW('p', NULL, CUSTOM, "min,max",
	      "use local ports of this range in connection tests (5000,65535)"),
	  .set = set_port_range, .scope = IP, IN(ENDS), FOR(CONNECTS) },
	{ ROW('p', NULL, CUSTOM, "directory",
	      "make netperf's socket of DG_RR in this directory (/tmp)"),
	  .set = set_unix_dir, .scope = UNIX, IN(ENDS), FOR(PATH) },
	{ ROW('P', NULL, CUSTOM, "local,remote", "set the ports of the data sockets (any)"),
	  .set = set_data_ports, .scope = IP | SCTP, IN(ENDS), FOR(NAMED) },
	{ ROW('q', "pacing-rate", COUNT, "bytes/s",
	      "set SO_MAX_PACING_RATE of the local data socket"),
	  TO(plan.pacing), RANGE(0, INT32_MAX), .scope = OMNI, IN(SOCKET), FOR(IP) },
	{ ROW('r', "sizes", CUSTOM, "request,response",
	      "set the bytes of a request and a response (1,1)"),
	  TO2(plan.request, plan.response), .set = set_message_sizes, .numbers = true, IN(SIZES),
	  BRIEF("set the request and response size (1,1)"), FOR(SIZED) },
	{ ROW('R', NULL, COUNT, "0|1", "allow routing (1; UDP_STREAM: 0)"), TO(allow_routing),
	  RANGE(0, 1), .scope = IP, IN(ENDS), FOR(IP) },
	{ ROW('s', NULL, BOTH, "send,recv", "set the local socket buffers (system's)"),
	  TO2(plan.near.sock.sndbuf, plan.near.sock.rcvbuf), IN(SOCKET),
	  BRIEF("set the local socket buffers"), FOR(DATA) },
	{ ROW('S', NULL, BOTH, "send,recv", "set the remote socket buffers (system's)"),
	  TO2(plan.far.sock.sndbuf, plan.far.sock.rcvbuf), IN(SOCKET), FOR(DATA) },
	{ ROW('t', NULL, TEXT, "stream|dgram", "OMNI: set the socket's type"), TO(omni.type),
	  .scope = OMNI, IN(CHOICE), FOR(CHOICE) },
	{ ROW('T', "protocol", TEXT, "name",
	      "use tcp, mptcp, udp, udplite, sctp or dccp; others mean the default"),
	  TO(omni.protocol), .scope = OMNI, IN(CHOICE), FOR(CHOICE) },
	{ ROW('T', NULL, CUSTOM, "x", "no effect, as in netperf"), .set = set_nothing, .scope = BSD,
	  IN(GONE), FOR(NOBODY) },
	{ ROW('T', NULL, CUSTOM, "n", "_MANY: use N associations, as --flows does (1)"),
	  .set = set_associations, .scope = SCTP, IN(ENDS), FOR(SCTP) },
	{ ROW('\0', "tls-cipher", CUSTOM, "aes128-gcm|aes256-gcm|chacha20-poly1305",
	      "TLS tests: encrypt by this cipher (aes128-gcm)"),
	  .set = set_tls_cipher, .scope = OMNI, IN(SOCKET), FOR(TLS) },
	{ ROW('u', "uuid", CUSTOM, "text", "report this UUID, up to 37 characters"),
	  .set = set_uuid, .scope = OMNI | LINK | SCTP, IN(PRINT) },
	{ ROW('U', "retry", FLAG, NULL, "connection tests: try a failed connect again"),
	  TO(plan.retry_connect), .scope = OMNI, IN(CALLS), FOR(CONNECTS) },
	{ ROW('V', "copy-avoidance", FLAG, NULL, "receive without copying (splice)"),
	  TO(plan.copy_avoidance), .scope = IP | SCTP, IN(CALLS), FOR(PIPE) },
	{ ROW('w', NULL, CUSTOM, "x", "no effect, as in netperf"), .set = set_nothing, .scope = IP,
	  IN(GONE), FOR(NOBODY) },
	{ ROW('W', NULL, COUNT, "n", "use N send buffers in turn"), TO(plan.near.call.send_width),
	  RANGE(0, 1 << 20), .scope = IP | LINK | SCTP, IN(CALLS), FOR(DATA) },
	{ ROW('z', NULL, PLAIN, NULL, "no effect, as in netperf"), .set = set_nothing, .scope = BSD,
	  IN(GONE), FOR(NOBODY) },
};
const size_t np_test_options_count = sizeof(np_test_options) / sizeof(np_test_options[0]);
