/*
 * The tables of netperf's options, and the functions in their rows: read_KIND() is np_option.read,
 * set_OPTION() and take_WHAT() (one value of a pair) np_option.set, "after -X" np_option.then.
 */
#include "cli/args.h"

#include <arpa/inet.h>
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
#include "bench/open.h"
#include "bench/transport/dccp.h"
#include "bench/transport/tls.h"
#include "net/addr.h"
#include "net/sources.h"
#include "run/knee.h"

/* A port's number or a service's name, as a uint32_t; settle_ports() checks its range. */
static bool
read_port(const char *word, void *to)
{
	const struct servent *service;
	char checked[NP_PORT_TEXT];
	uint32_t *port = to;
	int64_t n;

	if (!np_option_read_port(word, checked)) {
		return false;
	}
	if (np_parse_int(word, &n) == 0) {
		*port = (uint32_t)n;
		return true;
	}
	service = getservbyname(word, NULL); /* of any protocol: the test's is not known yet */
	*port = service != NULL ? ntohs((uint16_t)service->s_port) : 0;
	return service != NULL;
}

/* to: a uint32_t, plan.service. */
static bool
read_service_code(const char *word, void *to)
{
	return np_dccp_service(word, to);
}

/* 1 to 3600 seconds, stored as milliseconds. */
static bool
read_timeout(const char *word, void *to)
{
	uint32_t *timeout_ms = to;
	int64_t n;

	if (np_parse_int(word, &n) != 0 || n < 1 || n > 3600) {
		return false;
	}
	*timeout_ms = (uint32_t)n * 1000;
	return true;
}

/* A count beyond 32 bits means no limit: scripts write 10G. */
static bool
read_burst(const char *word, void *to)
{
	uint32_t *burst = to;
	int64_t n;

	if (np_parse_count(word, &n) != 0 || n < 0) {
		return false;
	}
	*burst = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
	return true;
}

/* As in netperf: an m in the suffix means ms, else a u us, else an s seconds; none: ms. */
static bool
read_interval(const char *word, void *to)
{
	uint32_t *interval_us = to;
	char *end;
	double n = strtod(word, &end), unit = 1000;

	if (strchr(end, 'm') == NULL && strchr(end, 'u') != NULL) {
		unit = 1;
	} else if (strchr(end, 'm') == NULL && strchr(end, 's') != NULL) {
		unit = 1e6;
	}
	if (end == word || !(n >= 0 && n * unit <= 3.6e9)) { /* no NAN either */
		return false;
	}
	*interval_us = (uint32_t)(n * unit);
	return true;
}

static bool
read_tls_cipher(const char *word, void *to)
{
	const struct np_tls_suite *found = np_tls_suite_find(word, 0);
	uint32_t *suite = to;

	*suite = found != NULL ? found->number : 0;
	return found != NULL;
}

static bool
read_when(const char *word, void *to)
{
	static const char *const words[] = {
		[NP_WHEN_AUTO] = "auto",
		[NP_WHEN_ALWAYS] = "always",
		[NP_WHEN_NEVER] = "never",
	};
	enum np_when *when = to;
	int i = NP_WHEN_NEVER;

	while (i >= 0 && strcmp(word, words[i]) != 0) {
		i--;
	}
	*when = i >= 0 ? (enum np_when)i : NP_WHEN_AUTO;
	return i >= 0;
}

/* Scripts write 1400b, which netperf reads as 1400, and 0 or -1 for the system's size. */
static bool
read_mss(const char *word, void *to)
{
	int32_t *mss = to;
	char *end;
	long n = strtol(word, &end, 10);

	if (end == word || (*end != '\0' && strcmp(end, "b") != 0) || n < -1 || n > 65535) {
		return false;
	}
	*mss = n > 0 ? (int32_t)n : 0;
	return true;
}

static bool
read_engine(const char *word, void *to)
{
	const struct np_engine **engine = to;

	*engine = np_engine_find(word);
	return *engine != NULL;
}

/* Seconds, or a duration as -l takes it (1m30s), in ms. */
static bool
read_warm_up(const char *word, void *to)
{
	uint32_t *warm_up_ms = to, less_ms;
	char *end;
	double ms = strtod(word, &end) * 1000;
	int64_t s;

	/* np_parse_length() also reads counts, which are no time: 1m is a million */
	if (end == word || *end != '\0') {
		if (strpbrk(word, "sh.") == NULL || np_parse_length(word, &s, &less_ms) != 0) {
			return false;
		}
		ms = 1e3 * (double)s - less_ms;
	}
	if (!(ms >= 0 && ms <= NP_WARM_UP_MAX)) {
		return false;
	}
	*warm_up_ms = (uint32_t)(ms + 0.5);
	return true;
}

/* Connections a second, "N" or "N/s". */
static bool
read_ramp(const char *word, void *to)
{
	size_t length = strcspn(word, "/");
	uint32_t *ramp = to;
	char number[24];
	int64_t n;

	snprintf(number, sizeof(number), "%.*s", (int)length, word);
	if ((word[length] != '\0' && strcmp(word + length, "/s") != 0) ||
	    length >= sizeof(number) || np_parse_count(number, &n) != 0 || n < 1 ||
	    n > NP_RAMP_MAX) {
		return false;
	}
	*ramp = (uint32_t)n;
	return true;
}

/* When requests are due: a constant of bench/load.h, or the K of burst:K. */
static bool
read_arrivals(const char *word, void *to)
{
	uint32_t *arrivals = to;
	int64_t n;

	if (strcmp(word, "constant") == 0) {
		*arrivals = NP_ARRIVE_EVENLY;
	} else if (strcmp(word, "poisson") == 0) {
		*arrivals = NP_ARRIVE_POISSON;
	} else if (strncmp(word, "burst:", 6) == 0 && np_parse_count(word + 6, &n) == 0 && n >= 2 &&
		   n <= NP_ARRIVE_BURST_MAX) {
		*arrivals = (uint32_t)n;
	} else {
		return false;
	}
	return true;
}

static bool
read_rate_of_link(const char *word, void *to)
{
	return np_parse_rate(word, to) == 0;
}

/* As in netperf, which accepts no less than 2, though its message says 1. */
static bool
read_associations(const char *word, void *to)
{
	uint32_t *associations = to;
	int64_t n;

	if (np_parse_count(word, &n) != 0 || n > NP_FLOWS_MAX) {
		return false;
	}
	if (n < 2) {
		printf("Number of SCTP associations must be >= 1\n");
		return false;
	}
	*associations = (uint32_t)n;
	return true;
}

/* Keeps the pointer into argv. netperf has room for 37 characters. */
static bool
read_uuid(const char *word, void *to)
{
	memcpy(to, &word, sizeof(word));
	return strlen(word) <= 37;
}

/* The family of -H and -L. As in netperf a 6, else inet or a 4 anywhere in the word decides. */
static int
parse_family(struct np_cli *cli, const struct np_option *o, const char *word)
{
	bool invalid = word[strspn(word, "AF_afINETinetPVpvUSCusc046")] != '\0';
	int family = AF_UNSPEC;

	if (strchr(word, '6') != NULL) {
		family = AF_INET6;
	} else if (strstr(word, "inet") != NULL || strchr(word, '4') != NULL) {
		family = AF_INET;
	} else if (strstr(word, "unspec") == NULL && strchr(word, '0') == NULL) {
		np_text_to_script(
		    stdout,
		    "WARNING! %s not recognized as an address family, using AF_UNPSEC\n"
		    "Are you sure netperf was configured for that address family?\n",
		    word);
		invalid = true;
	}
	if (invalid) {
		NP_NOTE(&cli->notes,
			"-%c: %.60s is not an address family (4 or 6): %s, as in netperf\n",
			o->letter, word, np_family(family)->name);
	}
	return family;
}

/* Move the device of "NAME%eth0" out of the name, unless it is a link-local address's scope. */
static int
split_device(const struct np_setting *set, struct np_name *name)
{
	char *sign = strchr(name->text, '%');
	struct in6_addr a;
	size_t n;

	if (set->arg[0] != ',') { /* the family alone leaves the name as it is */
		name->device[0] = '\0';
	}
	if (sign == NULL || np_family_prefixed(name->text) != AF_UNSPEC) {
		return NP_OK;
	}
	*sign = '\0';
	n = strcspn(sign + 1, "/"); /* "/BITS" may follow */
	if (inet_pton(AF_INET6, name->text, &a) == 1 &&
	    (IN6_IS_ADDR_LINKLOCAL(&a) || IN6_IS_ADDR_MC_LINKLOCAL(&a))) {
		*sign = '%';
	} else if (n == 0 || n >= sizeof(name->device)) {
		return np_usage(set->err, "'%.40s' is not the name of an interface", sign + 1);
	} else {
		memcpy(name->device, sign + 1, n);
		name->device[n] = '\0';
		memmove(sign, sign + 1 + n, strlen(sign + 1 + n) + 1);
	}
	name->given = name->text[0] != '\0'; /* "%eth0" alone names no host */
	return NP_OK;
}

/* -H: NAME,FAMILY. */
static int
set_name(const struct np_setting *set)
{
	struct np_name *name = set->to;
	struct np_pair pair;

	if (np_pair_split(set->arg, &pair, set->err) != NP_OK) {
		return set->err->code;
	}
	if (pair.first != NULL && np_text_copy(name->text, sizeof(name->text), pair.first) != 0) {
		return np_usage(set->err, "a name of more than %zu characters",
				sizeof(name->text) - 1);
	}
	name->given = name->given || pair.first != NULL;
	if (pair.second != NULL) {
		name->family = parse_family(set->ctx, set->row, pair.second);
	}
	return NP_OK;
}

/* -L: NAME,FAMILY, where the name may have a device: "NAME%eth0". */
static int
set_local_name(const struct np_setting *set)
{
	return set_name(set) == NP_OK ? split_device(set, set->to) : (int)set->err->code;
}

/* -- -H and -- -L: NAME[%DEVICE],FAMILY; of ADDRESS/BITS all but the first BITS are random. */
static int
set_data_name(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;
	struct np_name *name = set->to;
	struct np_sock_plan *end =
	    name == &cli->data.local ? &cli->plan.near.sock : &cli->plan.far.sock;
	/* Else it is that of --bind-device, which stays; not if both have named the same one. */
	bool is_ours = strcmp(end->device, name->device) == 0;
	char *slash;
	int64_t bits;

	if (set_local_name(set) != NP_OK) {
		return set->err->code;
	}
	if (is_ours || name->device[0] != '\0') {
		snprintf(end->device, sizeof(end->device), "%s", name->device);
	}
	slash = strchr(name->text, '/');
	if (slash == NULL) {
		end->mask = set->arg[0] == ',' ? end->mask : -1; /* an earlier option's */
		return NP_OK;
	}
	if (np_parse_count(slash + 1, &bits) != 0 || bits < 0 || bits > 128) {
		return np_usage(set->err, "%s is not a number of address bits (try /24)",
				slash + 1);
	}
	*slash = '\0';
	end->mask = (int32_t)bits;
	return NP_OK;
}

/* After -- -P: keep the ports as the user wrote them, for SOURCE_PORT and DEST_PORT. */
static int
keep_data_ports(const struct np_setting *set)
{
	static const struct np_option names = {
		.kind = NP_OPT_BOTH_WORDS,
		.to = offsetof(struct np_cli, data.local_port),
		.to2 = offsetof(struct np_cli, data.port),
		.read = np_option_read_port,
	};

	return np_option_set(&names, set->arg, set->ctx, set->err);
}

static int
set_unit(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;

	cli->output.unit = *set->arg == '?' ? '\0' : *set->arg; /* '?': netperf's default */
	return NP_OK;
}

/* A path of one end's plan. */
static int
take_path(const struct np_setting *set)
{
	return np_plan_path(set->to, set->arg, set->err);
}

/*
 * After -F: warn of pages of zeros, which neper sends, too: they stay in the processor's cache.
 * netperf's messages have 32 bytes for the far end's file; NP_ECONTROL has netperf's exit status.
 */
static int
check_fill_files(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;
	const char *far = cli->plan.far.call.fill_file;

	if (np_fills_zeros(&cli->plan.near.call) || np_fills_zeros(&cli->plan.far.call)) {
		NP_NOTE(&cli->notes,
			"-F %s: the buffers stay in the cache: compare with neper, not netperf\n",
			NP_FILL_ZEROS);
	}
	return far == NULL || strlen(far) < 32
		   ? NP_OK
		   : np_fail(set->err, NP_ECONTROL, 0,
			     "%s: Remote fill file name must be less than 32 characters", far);
}

/* A type of service by name or number; -1 for anything else, which netperf accepts. */
static int
take_tos(const struct np_setting *set)
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
	struct np_cli *cli = set->ctx;
	int32_t *tos = set->to;
	char *end;
	long n = strtol(set->arg, &end, 0);

	*tos = *end == '\0' && n >= 0 && n <= 255 ? (int32_t)n : -1;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(set->arg, names[i].name) == 0) {
			*tos = names[i].value;
		}
	}
	if (*tos < 0) {
		NP_NOTE(&cli->notes,
			"-Y %.40s: ignored, as in netperf: not a type of service (try cs1, ef or "
			"0x10)\n",
			set->arg);
	}
	return NP_OK;
}

/* --ccid: a congestion control of DCCP, the same for both ends; a prefix tells it from TCP's. */
static int
set_ccid(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;
	struct np_plan *p = &cli->plan;
	int64_t n;

	if (np_parse_int(set->arg, &n) != 0 || n < 1 || n > NP_CCID_MOST) {
		return np_usage(set->err, "'%.40s' is not a CCID (try 2 or 3)", set->arg);
	}
	snprintf(p->near.sock.cong, sizeof(p->near.sock.cong), NP_CCID_NAME "%d", (int)n);
	memcpy(p->far.sock.cong, p->near.sock.cong, sizeof(p->far.sock.cong));
	return NP_OK;
}

/* One end's processor, or its list of them. */
static int
take_cpus(const struct np_setting *set)
{
	static const struct np_option one = {
		.kind = NP_OPT_COUNT,
		.to = offsetof(struct np_place, cpu),
		.max = 65535,
		.unset = true,
	};
	struct np_place *place = set->to;
	char again[NP_CPU_TURNS_TEXT];
	const char *why;

	place->turns.count = 0;
	if (set->arg[0] == '\0' || strpbrk(set->arg + 1, "-+:") == NULL) { /* "-1" is no range */
		return np_option_set(&one, set->arg, place, set->err);
	}
	place->cpu = -1;
	why = np_cpu_turns_parse(&place->turns, set->arg);
	if (why != NULL) {
		return np_usage(set->err, "%.40s is %s", set->arg, why);
	}
	if (!np_cpu_turns_text(&place->turns, again, sizeof(again))) { /* PLAN has no room for it */
		return np_usage(set->err,
				"%.40s is longer than %zu characters (ranges are shorter: 0-7, "
				"0-14:2)",
				set->arg, sizeof(again) - 1);
	}
	return NP_OK;
}

/* After -T: at least one end must have a processor. */
static int
check_cpus(const struct np_setting *set)
{
	((struct np_cli *)set->ctx)->bound = true;
	return strcmp(set->arg, "") != 0 && strcmp(set->arg, ",") != 0
		   ? NP_OK
		   : np_usage(set->err, "'%s' holds no value", set->arg);
}

/* -- -4 and -- -6: the data connection's family. set_control_family() calls it, too. */
static int
set_family(const struct np_setting *set)
{
	*(int *)set->to = set->row->letter == '6' ? AF_INET6 : AF_INET;
	return NP_OK;
}

/* -4 and -6: overrides the families of earlier -H and -L, and is overridden by later ones. */
static int
set_control_family(const struct np_setting *set)
{
	struct np_target *t = &((struct np_cli *)set->ctx)->target;

	set_family(set);
	t->local.family = t->host.family;
	return NP_OK;
}

/* -d, as often as it is given. */
static int
set_debug(const struct np_setting *set)
{
	++*(int *)set->to;
	return NP_OK;
}

/* -D SECONDS,UNITS; 0 is 1 s. A minus, for which netperf reads the clock more often, is dropped. */
static int
set_interim(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;
	struct np_pair pair;
	char *end;
	double s = 1;

	if (np_pair_split(set->arg, &pair, set->err) != NP_OK) {
		return set->err->code;
	}
	if (pair.first != NULL) {
		s = strtod(pair.first, &end);
		if (end == pair.first || !(s > -86400 && s < 86400)) {
			return np_usage(set->err, "%s is not a number of seconds (try 0.5)",
					pair.first);
		}
	}
	s = s < 0 ? -s : s;
	if (s > 0 && s < 0.001) {
		NP_NOTE(&cli->notes, "-D %s: read as 0.001\n", set->arg);
	}
	cli->output.interim_s = s >= 0.001 ? s : s > 0 ? 0.001 : 1;
	return NP_OK;
}

/* netperf's limits. */
static int32_t
clamp_iterations(int32_t n)
{
	return n < 3 ? 3 : n > 30 ? 30 : n;
}

/* After -i: as in netperf, 3 to 30 iterations, and 99 % and 5 % unless -I says more. */
static int
settle_iterations(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;
	struct np_repeat_plan *confidence = &cli->confidence;
	int32_t asked_max = confidence->max;

	confidence->max =
	    clamp_iterations(confidence->max < confidence->min ? confidence->min : confidence->max);
	confidence->min = clamp_iterations(confidence->min);
	if (confidence->max < asked_max) {
		NP_NOTE(&cli->notes, "-i %d: %d iterations at most, as in netperf\n", asked_max,
			confidence->max);
	}
	confidence->level = confidence->level != 0 ? confidence->level : 99;
	confidence->width = confidence->width >= 0 ? confidence->width : 5;
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

/* -I LEVEL,WIDTH. As in netperf, a level without a comma is the width, too. */
static int
set_confidence(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;
	struct np_pair pair;
	const char *width;
	int64_t level = cli->confidence.level;
	char *end;

	if (np_pair_split(set->arg, &pair, set->err) != NP_OK) {
		return set->err->code;
	}
	if ((pair.first != NULL && parse_level(pair.first, &level) != 0) ||
	    (level != 95 && level != 99)) {
		return np_fail(set->err, NP_EPLAIN, 0,
			       "Only 95%% and 99%% confidence level is supported");
	}
	width = pair.comma ? pair.second : pair.first;
	if (width != NULL) {
		cli->confidence.width = strtod(width, &end);
		if (end == width || !(cli->confidence.width >= 0)) {
			return np_usage(set->err, "%s is not a width in percent (try 5)", width);
		}
	}
	cli->confidence.level = (int32_t)level;
	if (cli->confidence.max == 1) { /* no -i so far */
		cli->confidence.min = 3;
		cli->confidence.max = 10;
	}
	cli->confidence.width = cli->confidence.width > 0 ? cli->confidence.width : 5;
	return NP_OK;
}

/* -o, -O or -k: the last one counts. */
static int
set_style(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;

	cli->output.style = set->row->letter == 'o'   ? NP_STYLE_CSV
			    : set->row->letter == 'O' ? NP_STYLE_COLUMNS
						      : NP_STYLE_KEYVAL;
	cli->output.selectors = set->arg;
	return NP_OK;
}

/* -d of OMNI: words joined by bars; other words are read as numbers, bits NP_WD_*. */
static int
set_direction(const struct np_setting *set)
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
	struct np_cli *cli = set->ctx;
	char list[128], *rest = NULL;

	snprintf(list, sizeof(list), "%s", set->arg);
	cli->omni.direction_given = true;
	cli->omni.direction = NP_WD_NONE;
	for (char *w = strtok_r(list, "|", &rest); w != NULL; w = strtok_r(NULL, "|", &rest)) {
		uint32_t bits = (uint32_t)strtoul(w, NULL, 0) & NP_WD_BOTH;

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			bits = strcasecmp(w, words[i].word) == 0 ? words[i].bits : bits;
		}
		if (bits == NP_WD_NONE) {
			NP_NOTE(&cli->notes, "-- -d %.40s: not a direction (send, recv, rr)\n", w);
		}
		cli->omni.direction |= bits;
	}
	return NP_OK;
}

/* After -m or -M: the first size implies an OMNI test that sends, the second one that receives. */
static int
imply_by_call_sizes(const struct np_setting *set)
{
	struct np_omni_choice *omni = &((struct np_cli *)set->ctx)->omni;
	struct np_pair pair;

	if (np_pair_split(set->arg, &pair, set->err) == NP_OK && !omni->direction_given) {
		omni->direction |= pair.first != NULL ? NP_WD_TRANSMIT : 0;
		omni->direction |= pair.second != NULL ? NP_WD_RECEIVE : 0;
	}
	return NP_OK;
}

/* After -r: sizes imply an OMNI test of requests and responses. */
static int
imply_by_message_sizes(const struct np_setting *set)
{
	struct np_omni_choice *omni = &((struct np_cli *)set->ctx)->omni;

	omni->direction |= omni->direction_given ? 0 : NP_WD_BOTH;
	return NP_OK;
}

/* An option that netperf no longer has: main() prints a warning, as netperf does. */
static int
set_gone(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;

	cli->gone = set->row->letter;
	return NP_OK;
}

/* A longer passphrase is cut, as netperf does. */
static int
set_passphrase(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;

	snprintf(cli->passphrase, sizeof(cli->passphrase), "%s", set->arg);
	cli->target.passphrase = cli->passphrase;
	return NP_OK;
}

static int
set_passphrase_file(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;

	cli->target.passphrase = cli->passphrase;
	return np_secret_passphrase(set->arg, cli->passphrase, sizeof(cli->passphrase), set->err);
}

static int
set_key_file(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;

	cli->target.key = &cli->key;
	return np_auth_read_key(&cli->key, set->arg, set->err);
}

/* --engine: LOCAL,REMOTE or list. */
static int
set_engine(const struct np_setting *set)
{
	static const struct np_option engines = {
		.kind = NP_OPT_BOTH_WORDS,
		.to = offsetof(struct np_cli, plan.near.place.engine),
		.to2 = offsetof(struct np_cli, plan.far.place.engine),
		.read = read_engine,
		.what = "an engine (try --engine list)",
	};
	struct np_cli *cli = set->ctx;

	if (strcasecmp(set->arg, "list") == 0) {
		cli->list_engines = true;
		return NP_OK;
	}
	return np_option_set(&engines, set->arg, set->ctx, set->err);
}

/* times: ":N" or nothing, after "auto". The search sets its own rates; rate 1: one is given. */
static int
set_rate_auto(struct np_cli *cli, const char *times, struct np_err *err)
{
	int64_t n = NP_KNEE_TIMES;

	if (*times != '\0' &&
	    (*times != ':' || np_parse_int(times + 1, &n) != 0 || n < 2 || n > 1000000)) {
		return np_usage(
		    err,
		    "auto%.40s: the knee is found by auto or auto:N, where P99 is N times "
		    "(2 to 1000000) that of the lowest rate",
		    times);
	}
	cli->knee_times = (double)n;
	cli->rate = 1;
	cli->far_rate = 0;
	cli->rate_bits = false;
	return NP_OK;
}

/* Read bits a second (2.5gbit: *bits is true), or operations a second (10M, 10m: ten million). */
static int
parse_rate(const char *word, size_t length, double *rate, bool *bits, struct np_err *err)
{
	char text[32];
	int64_t n;

	snprintf(text, sizeof(text), "%.*s", (int)length, word);
	for (char *c = text; *c != '\0'; c++) {
		*c = (char)tolower((unsigned char)*c);
	}
	*bits = length < sizeof(text) && np_parse_rate(text, rate) == 0;
	if (*bits) {
		return NP_OK;
	}
	if (length >= sizeof(text) || np_parse_count(text, &n) != 0) {
		return np_usage(err, "%.*s is not a rate (try 2000, 10M, 2.5gbit)",
				length < 40 ? (int)length : 40, word);
	}
	if (n < 1) {
		return np_usage(err, "%s is out of range (1 to %d)", text, NP_RATE_MAX);
	}
	*rate = (double)n;
	return NP_OK;
}

/* --rate: auto, auto:N, ndr, one rate, or one for each end (LOCAL,REMOTE, for --both). */
static int
set_rate(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;
	size_t first = strcspn(set->arg, ",");
	bool far_bits;

	cli->no_loss = strcmp(set->arg, "ndr") == 0; /* non-drop rate */
	if (cli->no_loss || strncmp(set->arg, "auto", 4) == 0) {
		return set_rate_auto(cli, cli->no_loss ? "" : set->arg + 4, set->err);
	}
	cli->knee_times = cli->far_rate = 0;
	if (set->arg[first] == ',' && parse_rate(set->arg + first + 1, strlen(set->arg + first + 1),
						 &cli->far_rate, &far_bits, set->err) != NP_OK) {
		return set->err->code;
	}
	return parse_rate(set->arg, first, &cli->rate, &cli->rate_bits, set->err);
}

/* --source-range: the first address counts as that of -- -L. */
static int
set_source_range(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;
	struct np_name *local = &cli->data.local;

	if (np_range_parse(&cli->source, &cli->plan.sources, set->arg, set->err) != NP_OK) {
		return set->err->code;
	}
	snprintf(local->text, sizeof(local->text), "%s", NP_HOST_STR(&cli->source));
	local->family = cli->source.sa.ss_family;
	local->given = true;
	return NP_OK;
}

/* --json[=FILE]; "-" is standard output, too. */
static int
set_json(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;

	if (set->arg != NULL && *set->arg == '\0') {
		return np_usage(set->err, "the file has no name");
	}
	cli->output.json = true;
	cli->output.json_file = set->arg != NULL && strcmp(set->arg, "-") != 0 ? set->arg : NULL;
	return NP_OK;
}

/* --stations[=N], 100 by default: one transaction in N. */
static int
set_stations(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;
	char *end;
	unsigned long n = set->arg != NULL ? strtoul(set->arg, &end, 10) : 100;

	if (set->arg != NULL &&
	    (set->arg[0] < '1' || set->arg[0] > '9' || *end != '\0' || n > INT32_MAX)) {
		return np_usage(set->err, "%s is not a sampling interval (try 100)", set->arg);
	}
	cli->plan.stations = (uint32_t)n;
	return NP_OK;
}

/* --wire[=pcap:FILE]. */
static int
set_wire(const struct np_setting *set)
{
	static const char file[] = "pcap:";
	struct np_cli *cli = set->ctx;

	if (set->arg != NULL && strncmp(set->arg, file, sizeof(file) - 1) != 0) {
		return np_usage(set->err, "%s: unknown capture format (try pcap:FILE)", set->arg);
	}
	cli->evidence.wire_file = set->arg != NULL ? set->arg + sizeof(file) - 1 : NULL;
	if (set->arg != NULL &&
	    (cli->evidence.wire_file[0] == '\0' || strcmp(cli->evidence.wire_file, "-") == 0)) {
		return np_usage(set->err, "%s: needs the name of a file", set->arg);
	}
	cli->evidence.wire = true;
	return NP_OK;
}

/* np_option.astray: after -o, -O or -k two letters, or one and a _, begin a figure's name. */
static bool
names_figures(const char *arg)
{
	return isalpha((unsigned char)arg[0]) && (isalpha((unsigned char)arg[1]) || arg[1] == '_');
}

/* --help[=all]. */
static int
set_help(const struct np_setting *set)
{
	struct np_cli *cli = set->ctx;

	if (set->arg != NULL && strcmp(set->arg, "all") != 0) {
		return np_usage(set->err, "%.40s is not a help text (try --help=all)", set->arg);
	}
	cli->help = true;
	cli->help_all = set->arg != NULL;
	return NP_OK;
}

#define CLI(member) offsetof(struct np_cli, member)
#define OMNI NP_SCOPE_OMNI
#define BSD NP_SCOPE_BSD
#define UNIX NP_SCOPE_UNIX
#define LINK NP_SCOPE_LINK
#define SCTP NP_SCOPE_SCTP
#define IP (NP_SCOPE_OMNI | NP_SCOPE_BSD)

#define ROW NP_OPT_ROW
#define TO(m) .to = CLI(m)
#define TO2(m1, m2) .to = CLI(m1), .to2 = CLI(m2)
/* How a value for one or both ends (m1, m2) is read: by take_WHAT(), by read_KIND(), as a name. */
#define TAKES(what, m1, m2) TO2(m1, m2), .set = take_##what
#define READS(kind, m, words) TO(m), .read = read_##kind, .what = (words)
#define READS2(kind, m1, m2, words) TO2(m1, m2), .read = read_##kind, .what = (words)
#define A_PORT "a port (0 to 65535, or a service)"
#define NAMES(m1, m2)                                                                              \
	TO2(m1, m2), .set = np_option_set_name, .max = sizeof(((struct np_cli *)0)->m1) - 1
/* The row's group in help texts, its short help, and what a test must have to use it. */
#define IN(g) .group = (g)
#define BRIEF(words) .brief = (words)
#define FOR(trait) .needs = NP_FOR_##trait
#define RANGE(lo, hi) .min = (lo), .max = (hi)
#define OR_DEFAULT .unset = true
#define ASTRAY(l)                                                                                  \
	.astray = names_figures, .instead = "output selectors are a test option (-- -" l " NAMES)"

/* Titles of groups in help texts. */
static const char WHERE[] = "Target", WHAT[] = "Test", LONG[] = "Duration", SURE[] = "Confidence",
		  PRINT[] = "Output", WHY[] = "Evidence", FLOWS[] = "Flows", PACE[] = "Pacing",
		  TUNE[] = "Tuning", HELP[] = "Help";
static const char *const global_groups[] = { WHERE, WHAT, LONG, SURE, PRINT, WHY,
					     FLOWS, PACE, TUNE, HELP, NULL };

static const struct np_option global_rows[] = {
	{ ROW('4', "ipv4", PLAIN, NULL, "use IPv4 for the control connection"),
	  TO(target.host.family), .set = set_control_family, IN(WHERE) },
	{ ROW('6', "ipv6", PLAIN, NULL, "use IPv6 for the control connection"),
	  TO(target.host.family), .set = set_control_family, IN(WHERE) },
	{ ROW('a', "local-align", BOTH, "send,recv", "align the local buffers (8)"),
	  TO2(plan.near.call.send_align, plan.near.call.recv_align), RANGE(1, 1 << 24), IN(TUNE) },
	{ ROW('A', "remote-align", BOTH, "send,recv", "align the remote buffers (8)"),
	  TO2(plan.far.call.send_align, plan.far.call.recv_align), RANGE(1, 1 << 24), IN(TUNE) },
	{ ROW('b', "interval-burst", EACH_WORD, "local,remote",
	      "pace: run N operations in each interval of -w (0: no pacing)"),
	  READS2(burst, plan.near.call.interval_burst, plan.far.call.interval_burst,
		 "a number of operations (try 16)"),
	  .numbers = true, IN(PACE), BRIEF("send N messages each time") },
	{ ROW('B', "brand", TEXT, "text", "print this text after a result without headers"),
	  TO(output.brand), IN(PRINT) },
	{ ROW('c', "local-cpu", NUMBER, "rate", "measure the CPU utilisation of this end"),
	  TO(plan.near.place.measure_cpu), IN(WHY), BRIEF("measure the CPU of this end") },
	{ ROW('C', "remote-cpu", NUMBER, "rate", "measure the CPU utilisation of the far end"),
	  TO(plan.far.place.measure_cpu), IN(WHY), BRIEF("measure the CPU of the far end") },
	{ ROW('d', "debug", PLAIN, NULL, "print each step on standard output; twice: more"),
	  TO(output.debug), .set = set_debug, IN(PRINT) },
	{ ROW('D', "interim", CUSTOM, "seconds,units",
	      "print an interim result every N seconds (1); units are ignored"),
	  .set = set_interim, IN(PRINT), BRIEF("print a result every N seconds") },
	{ ROW('f', "units", CUSTOM, "letter",
	      "set the unit of throughput: G M K B (bytes), g m k (bits), x (transactions)"),
	  .set = set_unit, IN(PRINT), BRIEF("set the unit: G M K B bytes, g m k bits") },
	{ ROW('F', "fill-file", EACH_WORD, "local,remote",
	      "fill the send buffers from this file; TCP_SENDFILE sends it; zero-page: of a "
	      "stream, "
	      "send the kernel's page of zeros, which is never written and stays in the cache"),
	  TAKES(path, plan.near.call.fill_file, plan.far.call.fill_file), .then = check_fill_files,
	  IN(WHAT) },
	{ ROW('h', NULL, FLAG, NULL, "show this text"), TO(usage), IN(HELP) },
	{ ROW('H', "host", CUSTOM, "name,family",
	      "test against the netserver on this host (localhost)"),
	  TO(target.host), .set = set_name, IN(WHERE),
	  BRIEF("test against netserver on this host") },
	{ ROW('i', "iterations", BOTH, "max,min",
	      "repeat the test until the confidence of -I is reached (1; with -I 10,3)"),
	  TO2(confidence.max, confidence.min), .then = settle_iterations, IN(SURE) },
	{ ROW('I', "confidence", CUSTOM, "level,width",
	      "set confidence level, 95 or 99 percent, and full width of its interval (99,5)"),
	  .set = set_confidence, IN(SURE), BRIEF("repeat until this confidence (99,5)") },
	{ ROW('\0', "clean", COUNT, "s",
	      "repeat until N seconds were free of disturbances, instead of -l"),
	  TO(confidence.clean_s), RANGE(1, 86400), IN(SURE),
	  BRIEF("repeat until N seconds were undisturbed") },
	{ ROW('\0', "at-most", COUNT, "s",
	      "with --clean: stop after N seconds in all (four times --clean)"),
	  TO(confidence.at_most_s), RANGE(1, 604800), IN(SURE) },
	{ ROW('j', NULL, FLAG, NULL, "keep latency statistics; -v 2 shows their histogram"),
	  TO(output.latency), IN(PRINT) },
	{ ROW('\0', "latency", FLAG, NULL,
	      "print a table of latencies below the result: mean, percentiles and others (implies "
	      "-j)"),
	  TO(output.times), IN(PRINT), BRIEF("also print a table of latencies") },
	{ ROW('k', "local-dirty", BOTH, "dirty,clean",
	      "write and read these numbers of bytes in a local buffer before each send"),
	  TO2(plan.near.call.dirty, plan.near.call.clean), RANGE(-1, 1 << 30), ASTRAY("k"),
	  IN(TUNE) },
	{ ROW('K', "remote-dirty", BOTH, "dirty,clean", "do the same at the far end"),
	  TO2(plan.far.call.dirty, plan.far.call.clean), RANGE(-1, 1 << 30), IN(TUNE) },
	{ ROW('l', "length", LENGTH, "length",
	      "run for seconds (10s, 1m30s, 0.5, 500ms); negative: bytes or transactions; 0: until "
	      "SIGINT (10)"),
	  TO2(plan.length, plan.length_less_ms), IN(LONG),
	  BRIEF("run N seconds; -N: bytes, transactions") },
	{ ROW('L', "local", CUSTOM, "name,family",
	      "use this local address, or interface (10.1.2.3%eth0, %eth0)"),
	  TO(target.local), .set = set_local_name, IN(WHERE), BRIEF("use this local address") },
	{ ROW('n', NULL, COUNT, "n", "set the number of processors, if it cannot be found out"),
	  TO(cpus), IN(TUNE) },
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
	{ ROW('p', "port", EACH_WORD, "remote,local",
	      "set the ports of the control connection (12865,any)"),
	  TO2(target.port, target.local_port), .read = np_option_read_port, .what = A_PORT,
	  IN(WHERE), BRIEF("set its port, and ours (12865,any)") },
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
	{ ROW('T', "cpu", BOTH_WORDS, "local,remote",
	      "bind netperf and netserver to a processor, or their threads to several: 0-3+8, "
	      "0-6:2"),
	  TAKES(cpus, plan.near.place, plan.far.place), .then = check_cpus, .numbers = true,
	  IN(TUNE), BRIEF("bind to processors: 0, or 0-3+8") },
	{ ROW('v', "verbosity", COUNT, "n",
	      "print 0: one figure, 1: the table, 2: also details, 3: only details (1)"),
	  TO(output.verbosity), IN(PRINT), BRIEF("0: one figure, 1: table, 2: details") },
	{ ROW('V', NULL, FLAG, NULL, "show the version"), TO(version), IN(HELP) },
	{ ROW('w', "interval", EACH_WORD, "local,remote",
	      "set the pacing interval: 10ms, 500us, 1s; see -b (1ms)"),
	  READS2(interval, plan.near.call.interval_us, plan.far.call.interval_us,
		 "an interval (try 10ms or 500us)"),
	  IN(PACE), BRIEF("do so at intervals: 10ms, 500us (1ms)") },
	{ ROW('W', "width", BOTH, "send,recv",
	      "use N buffers in turn, at both ends (by socket buffer)"),
	  TO2(plan.near.call.send_width, plan.near.call.recv_width), RANGE(0, 1 << 20), IN(TUNE) },
	{ ROW('y', "priority", BOTH, "local,remote", "set SO_PRIORITY of the data socket"),
	  TO2(plan.near.sock.prio, plan.far.sock.prio), IN(TUNE) },
	{ ROW('\0', "socket-mark", EACH, "local,remote",
	      "set SO_MARK of the data socket for routing rules and filters; needs CAP_NET_ADMIN"),
	  TO2(plan.near.sock.mark, plan.far.sock.mark), IN(TUNE) },
	{ ROW('\0', "flows", COUNT, "n", "use N data connections (1)"), TO(plan.flows),
	  RANGE(1, NP_FLOWS_MAX), IN(FLOWS), BRIEF("use N data connections (1)") },
	{ ROW('Y', "tos", BOTH_WORDS, "local,remote",
	      "set the type of service of the data socket: number, ef, af11, cs1"),
	  TAKES(tos, plan.near.sock.tos, plan.far.sock.tos), IN(TUNE) },
	{ ROW('Z', "passphrase", CUSTOM, "text",
	      "send this passphrase to the daemon; ps(1) shows it briefly"),
	  .set = set_passphrase, .secret = true, IN(WHERE) },
	{ ROW('\0', "passphrase-file", CUSTOM, "file",
	      "read the passphrase from a file's first line; mode 600"),
	  .set = set_passphrase_file, IN(WHERE) },
	{ ROW('\0', "key-file", CUSTOM, "file",
	      "authenticate both ends with the key in the file's first line; mode "
	      "600" NP_NEEDS_SODIUM),
	  .set = set_key_file, IN(WHERE), BRIEF("authenticate both ends with this key") },
	{ ROW('\0', "nat", FLAG, NULL,
	      "with --key-file: do not include addresses in the proof, for a NAT on the path"),
	  TO(target.nat), IN(WHERE) },
	{ ROW('\0', "threads", BOTH, "local,remote",
	      "drive the data connections with N threads at most (1)"),
	  TO2(plan.near.place.threads, plan.far.place.threads), RANGE(1, NP_THREADS_MAX), IN(FLOWS),
	  BRIEF("drive them with N threads (1)") },
	{ ROW('\0', "spread", FLAG, NULL,
	      "connect again until the flows use different receive queues of this end"),
	  TO(plan.spread), IN(FLOWS) },
	{ ROW('\0', "silence", COUNT, "s",
	      "wait for S seconds where the path or the far machine is silent (60)"),
	  TO(plan.silence_s), RANGE(1, 86400), IN(LONG) },
	{ ROW('\0', "warm-up", CUSTOM, "s",
	      "drive the data connections for N seconds before the measurement (0)"),
	  READS(warm_up, plan.warm_up_ms, "a warm-up time of 0 to 1h (try 60s or 1m30s)"), IN(LONG),
	  BRIEF("run N seconds before measuring (0)") },
	{ ROW('\0', "ramp", CUSTOM, "n",
	      "begin N data connections a second, up to --flows; also written N/s"),
	  READS(ramp, plan.ramp, "a number of connections a second (1 to 1000000)"), IN(FLOWS) },
	{ ROW('\0', "rate", CUSTOM, "n",
	      "begin N transactions a second in total, on a fixed schedule, regardless of "
	      "replies: times count from when each was due; a stream sends N bits a second (10M, "
	      "2.5gbit; of --both: 10M,2M); "
	      "auto finds the highest rate, ndr that of datagrams without loss"),
	  .set = set_rate, IN(FLOWS) },
	{ ROW('\0', "arrivals", CUSTOM, "how",
	      "with --rate: when requests are due, constant (the default), poisson or burst:K"),
	  READS(arrivals, plan.arrivals, "constant, poisson or burst:K (2 to 65536)"), IN(FLOWS) },
	{ ROW('\0', "beside", TEXT, "test:rate",
	      "run N transactions a second (100) beside the test: latency without it and under "
	      "its load"),
	  TO(beside), IN(WHY) },
	{ ROW('\0', "stations", MAYBE, "n",
	      "show where the time of one transaction in N (100) goes, by time stamps of its "
	      "packets at both ends, and the delay of each direction"),
	  .set = set_stations, IN(WHY) },
	{ ROW('\0', "strict", FLAG, NULL,
	      "with --rate: fail if the load generator could not keep up"),
	  TO(strict), IN(LONG) },
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
	  TO(plan.batch), RANGE(1, NP_BATCH_MAX), IN(TUNE) },
	{ ROW('\0', "segment-size", COUNT, "bytes",
	      "set the size of a datagram, with --engine segment; -- -m is then the size of a "
	      "call"),
	  TO(segment_size), RANGE(1, 65507), IN(TUNE) },
	{ ROW('\0', "json", MAYBE, "file",
	      "write the run as a JSON document, to the file or instead of the "
	      "output" NP_NEEDS_JANSSON),
	  .set = set_json, IN(PRINT), BRIEF("write the run as a JSON document") },
	{ ROW('\0', "human", FLAG, NULL,
	      "print one table in SI units in place of the classic one: rate and its interval, "
	      "loss, latencies, processors"),
	  TO(output.human), IN(PRINT), BRIEF("one table in SI units, with intervals") },
	{ ROW('\0', "explain", FLAG, NULL,
	      "print on standard error what limited the test, and what the link can carry"),
	  TO(evidence.explain), IN(WHY), BRIEF("print what limited the test") },
	{ ROW('\0', "link-rate", CUSTOM, "rate",
	      "give the link's rate, if it cannot be read: 100mbit, 2.5gbit"),
	  READS(rate_of_link, evidence.link_rate, "a rate of a link (try 100mbit, 2.5gbit)"),
	  IN(WHY) },
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
	  READS(when, output.progress, "always, never or auto"), IN(PRINT) },
	{ ROW('\0', "help", MAYBE, "all",
	      "show the most used options, on standard output; all: every option"),
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
	{ ROW('\0', "dry-run", FLAG, NULL, "run no test: check the options without connecting"),
	  TO(dry_run), IN(WHY) },
	{ ROW('\0', "ceiling", FLAG, NULL,
	      "run no test: read lines such as test=UDP_STREAM size=64 rate=100mbit, and print "
	      "what such a link can carry, as JSON"),
	  TO(ceilings), IN(WHY) },
};
const struct np_option_table np_global_options = { NP_OPT_TABLE(global_rows),
						   .groups = global_groups };

static const char CHOICE[] = "Choices of OMNI", SIZES[] = "Sizes", FLIGHT[] = "Requests in flight",
		  ENDS[] = "Addresses, ports and routes", SOCKET[] = "Socket options",
		  CALLS[] = "Calls and buffers", GONE[] = "Without effect";
static const char *const test_groups[] = { CHOICE, SIZES, FLIGHT, ENDS, SOCKET,
					   CALLS,  PRINT, HELP,   GONE, NULL };
static const char *const test_scopes[] = { "OMNI tests",        "TCP_CC, TCP_MSS, TCP_SENDFILE",
					   "UNIX-domain tests", "DLCL tests",
					   "SCTP tests",        NULL };

/* What netperf accepts and ignores. */
#define NO_EFFECT(l, k, a, s)                                                                      \
	ROW(l, NULL, k, a, "no effect, as in netperf"), .scope = (s), IN(GONE), FOR(NONE)

static const struct np_option test_rows[] = {
	{ ROW('4', "ipv4", PLAIN, NULL, "use IPv4 for the data connection"), TO(data.family),
	  .set = set_family, .scope = IP | SCTP, IN(ENDS), FOR(IP) },
	{ ROW('6', "ipv6", PLAIN, NULL, "use IPv6 for the data connection"), TO(data.family),
	  .set = set_family, .scope = IP | SCTP, IN(ENDS), FOR(IP) },
	{ ROW('a', "defer-accept", FLAG, NULL, "set TCP_DEFER_ACCEPT at the daemon"),
	  TO(plan.defer_accept), .scope = OMNI, IN(SOCKET), FOR(TCP) },
	{ ROW('\0', "also-bind", EACH_WORD, "local,remote",
	      "SCTP: bind the data sockets to these addresses, too; several are joined by +"),
	  NAMES(also[0], also[1]), .scope = OMNI | SCTP, IN(ENDS), FOR(SCTP) },
	{ ROW('b', "burst", COUNT, "n", "request/response: keep N more requests in flight (0)"),
	  TO(plan.burst), RANGE(0, 65535), .scope = IP | LINK | SCTP, IN(FLIGHT), FOR(BURST) },
	{ ROW('B', "packet-info", FLAG, NULL,
	      "UDP: answer from the address that was asked (IP_PKTINFO)"),
	  TO(plan.packet_info), .scope = OMNI, IN(SOCKET), FOR(UDP) },
	{ ROW('B', NULL, PLAIN, NULL, "no effect: calls that need not wait never do"),
	  .scope = SCTP, IN(GONE), FOR(NONE) },
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
	{ ROW('\0', "device", BOTH_WORDS, "local,remote",
	      "use these interfaces (those of the control connection's addresses)"),
	  NAMES(data.device, data.far_device), .scope = LINK, IN(ENDS), FOR(DATA) },
	{ ROW('\0', "bind-device", EACH_WORD, "local,remote",
	      "bind the data sockets to these interfaces, or VRFs; a daemon may not allow it"),
	  NAMES(plan.near.sock.device, plan.far.sock.device), .scope = IP | SCTP, IN(ENDS),
	  FOR(IP) },
	{ ROW('e', "timeout", CUSTOM, "seconds",
	      "UDP_RR, DLCL_RR: count a response as lost after N seconds, or two round trips (1)"),
	  READS(timeout, plan.timeout_ms, "a time-out (1 to 3600 seconds)"), .numbers = true,
	  .scope = OMNI | LINK, IN(FLIGHT), FOR(LOSSES) },
	{ ROW('f', "no-fragment", FLAG, NULL, "do not fragment packets (IPv4)"),
	  TO(plan.no_fragment), .scope = OMNI, IN(SOCKET), FOR(IP) },
	{ ROW('F', "fast-open", FLAG, NULL, "TCP Fast Open"), TO(plan.fast_open), .scope = OMNI,
	  IN(SOCKET), FOR(TCP) },
	{ ROW('g', NULL, FLAG, NULL, "set SO_DEBUG on the data socket"), TO(plan.debug),
	  .scope = OMNI, IN(SOCKET), FOR(TCP) },
	{ ROW('G', "mss", CUSTOM, "bytes",
	      "set the largest segment (TCP_MAXSEG), or fragment of a message (SCTP_MAXSEG)"),
	  READS(mss, plan.mss, "a segment size (1 to 65535 bytes)"), .numbers = true,
	  .scope = OMNI | SCTP, IN(SOCKET), FOR(SEGMENTS) },
	{ ROW('h', NULL, FLAG, NULL, "show this text"), TO(test_usage), IN(HELP),
	  BRIEF("list all options of the test of -t") },
	{ ROW('H', NULL, CUSTOM, "name/bits,family",
	      "set the remote address of the data connection (-H); after BITS it is random"),
	  TO(data.host), .set = set_data_name, .scope = IP | SCTP, IN(ENDS), FOR(NAMED) },
	{ ROW('i', NULL, PLAIN, NULL, "no effect, as in netperf"), .set = set_gone, .scope = OMNI,
	  IN(GONE), FOR(NONE) },
	{ ROW('I', "write", FLAG, NULL, "use write() instead of send()"), TO(plan.use_write),
	  .scope = OMNI, IN(CALLS), FOR(DATA) },
	{ NO_EFFECT('I', CUSTOM, "x", SCTP) },
	{ NO_EFFECT('j', CUSTOM, "n", OMNI) },
	{ ROW('k', "keyval", NEXT, "list|file|all|?", "print these figures as NAME=value"),
	  .set = set_style, .scope = OMNI | LINK | SCTP, IN(PRINT),
	  BRIEF("print NAME=value; ? lists the figures"), FOR(DATA) },
	{ ROW('K', "congestion", BOTH_WORDS, "local,remote", "set the TCP congestion control"),
	  NAMES(plan.near.sock.cong, plan.far.sock.cong), .scope = IP, IN(SOCKET), FOR(TCP) },
	{ ROW('\0', "ccid", CUSTOM, "n",
	      "DCCP: control congestion by CCID 2 (like TCP) or 3 (TFRC), both ways"),
	  .set = set_ccid, .numbers = true, .scope = OMNI, IN(SOCKET), FOR(DCCP) },
	{ ROW('\0', "service-code", CUSTOM, "code",
	      "DCCP: set the service code of both ends: SC:test, SC=1, SC=xA1"),
	  READS(service_code, plan.service, "a service code (try SC:test)"), .scope = OMNI,
	  IN(SOCKET), FOR(DCCP) },
	{ ROW('l', NULL, COUNT, "hops", "set the time to live of multicast datagrams"),
	  TO(plan.ttl), RANGE(0, 255), .scope = OMNI, IN(ENDS), FOR(UDP) },
	{ ROW('L', NULL, CUSTOM, "name/bits,family",
	      "set the local address of the data connection"),
	  TO(data.local), .set = set_data_name, .scope = IP | SCTP, IN(ENDS), FOR(NAMED) },
	{ ROW('m', "send-size", EACH, "local,remote", "send N bytes in a call (socket buffer)"),
	  TO2(plan.near.call.send_size, plan.far.call.send_size), .then = imply_by_call_sizes,
	  RANGE(1, INT32_MAX), OR_DEFAULT, IN(SIZES), BRIEF("send N bytes in a call"), FOR(BYTES) },
	{ ROW('M', "recv-size", EACH, "remote,local", "receive N bytes in a call (socket buffer)"),
	  TO2(plan.far.call.recv_size, plan.near.call.recv_size), .then = imply_by_call_sizes,
	  RANGE(1, INT32_MAX), OR_DEFAULT, IN(SIZES), FOR(BYTES) },
	{ ROW('n', NULL, FLAG, NULL, "UDP: connect() the local socket"),
	  TO(plan.near.sock.connected), .scope = OMNI, IN(SOCKET), FOR(UDP) },
	{ NO_EFFECT('n', PLAIN, NULL, BSD) },
	{ ROW('N', NULL, COUNT, "n", "send N messages or requests, instead of -l"), TO(messages),
	  RANGE(0, INT32_MAX), .scope = SCTP, IN(SIZES), FOR(DATA) },
	{ ROW('N', NULL, FLAG, NULL, "UDP: connect() the daemon's socket"),
	  TO(plan.far.sock.connected), .scope = OMNI, IN(SOCKET), FOR(UDP) },
	{ NO_EFFECT('N', PLAIN, NULL, BSD) },
	{ ROW('o', "csv", NEXT, "list|file|all|?", "print these figures as comma-separated values"),
	  .set = set_style, .scope = OMNI | LINK | SCTP, IN(PRINT), FOR(DATA) },
	{ ROW('O', "columns", NEXT, "list|file|all|?", "print these figures in columns"),
	  .set = set_style, .scope = OMNI | LINK | SCTP, IN(PRINT), FOR(DATA) },
	{ ROW('p', NULL, BOTH_WORDS, "min,max",
	      "use local ports of this range in connection tests (5000,65535); 0,0: any"),
	  READS2(port, plan.port_min, plan.port_max, A_PORT), .scope = IP, IN(ENDS),
	  FOR(CONNECTS) },
	{ ROW('p', NULL, CUSTOM, "directory",
	      "make netperf's socket of DG_RR in this directory (/tmp)"),
	  NAMES(plan.unix_dir, plan.unix_dir), .scope = UNIX, IN(ENDS), FOR(PATH) },
	{ ROW('P', NULL, BOTH_WORDS, "local,remote", "set the ports of the data sockets (any)"),
	  READS2(port, plan.near.sock.port, plan.far.sock.port, A_PORT), .then = keep_data_ports,
	  .scope = IP | SCTP, IN(ENDS), FOR(NAMED) },
	{ ROW('q', "pacing-rate", COUNT, "bytes/s",
	      "set SO_MAX_PACING_RATE of the local data socket"),
	  TO(plan.pacing), RANGE(0, INT32_MAX), .scope = OMNI, IN(SOCKET), FOR(IP) },
	{ ROW('r', "sizes", BOTH, "request,response",
	      "set the bytes of a request and a response (1,1)"),
	  TO2(plan.request, plan.response), .then = imply_by_message_sizes, RANGE(1, INT32_MAX),
	  OR_DEFAULT, IN(SIZES), BRIEF("set the request and response size (1,1)"), FOR(SIZED) },
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
	{ NO_EFFECT('T', CUSTOM, "x", BSD) },
	{ ROW('T', NULL, CUSTOM, "n", "_MANY: use N associations, as --flows does (1)"),
	  READS(associations, associations, "a number of associations (2 to 10000)"), .scope = SCTP,
	  IN(ENDS), FOR(SCTP) },
	{ ROW('\0', "tls-cipher", CUSTOM, "aes128-gcm|aes256-gcm|chacha20-poly1305",
	      "TLS tests: encrypt by this cipher (aes128-gcm)"),
	  READS(tls_cipher, plan.tls_suite,
		"a cipher (try aes128-gcm, aes256-gcm or chacha20-poly1305)"),
	  .scope = OMNI, IN(SOCKET), FOR(TLS) },
	{ ROW('u', "uuid", CUSTOM, "text", "report this UUID, up to 37 characters"),
	  READS(uuid, output.uuid, "an identifier of at most 37 characters"),
	  .scope = OMNI | LINK | SCTP, IN(PRINT) },
	{ ROW('U', "retry", FLAG, NULL, "connection tests: try a failed connect again"),
	  TO(plan.retry_connect), .scope = OMNI, IN(CALLS), FOR(CONNECTS) },
	{ ROW('V', "copy-avoidance", FLAG, NULL, "receive without copying (splice)"),
	  TO(plan.copy_avoidance), .scope = IP | SCTP, IN(CALLS), FOR(PIPE) },
	{ NO_EFFECT('w', CUSTOM, "x", IP) },
	{ ROW('W', NULL, COUNT, "n", "use N send buffers in turn"), TO(plan.near.call.send_width),
	  RANGE(0, 1 << 20), .scope = IP | LINK | SCTP, IN(CALLS), FOR(DATA) },
	{ NO_EFFECT('z', PLAIN, NULL, BSD) },
};
const struct np_option_table np_test_options = { NP_OPT_TABLE(test_rows), .groups = test_groups,
						 .scopes = test_scopes };
