#include "netserver/guard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/trusted.h"
#include "base/units.h"

const struct ns_refusal_row ns_refusals[NS_REFUSALS] = {
	[NS_DENIED] = { "denied", EACCES },
	[NS_SESSIONS] = { "max-sessions", EUSERS },
	[NS_ADDRESS] = { "max-per-address", EDQUOT },
	[NS_RATE] = { "max-rate", EAGAIN },
	[NS_SILENT] = { "silent", ETIMEDOUT },
	[NS_SECRET] = { "secret", EACCES },
	[NS_TRIES] = { "tries", EAGAIN },
	[NS_GARBAGE] = { "garbage", EPROTO },
	[NS_MEMORY] = { "max-memory", ENOMEM },
	[NS_PORTS] = { "data-ports", EADDRINUSE },
	[NS_THREADS] = { "max-threads", EAGAIN },
	[NS_SPIN] = { "spin", EBUSY },
	[NS_SOCKETS] = { "max-total-flows", EMFILE },
	[NS_FILTERED] = { "max-filters", EAGAIN },
	[NS_PASSED] = { "in-flight", EAGAIN },
	[NS_DATAGRAMS] = { "datagrams", EMFILE },
	[NS_CAPTURED] = { "captures", EAGAIN },
	[NS_MESSAGE] = { "max-message", EMSGSIZE },
	[NS_LENGTH] = { "max-length", ERANGE },
	[NS_FLOWS] = { "max-flows", EMFILE },
	[NS_LINE] = { "line", EBUSY },
	[NS_PROCESS] = { "process", EAGAIN },
	[NS_OTHER] = { "other", EINVAL },
};

const struct ns_resource ns_resources[NP_RESOURCES] = {
	[NP_RES_SESSIONS] = { "sessions", "sessions", "--max-sessions", "sessions", NS_SESSIONS,
			      .first = 2 },
	[NP_RES_MEMORY] = { "memory", "bytes of memory", "--max-total-memory", "memory_bytes",
			    NS_MEMORY, .first = 2 << 20, .is_bytes = true },
	[NP_RES_PORTS] = { "ports", "data ports", "--data-ports", "data_ports", NS_PORTS,
			   .first = 2 },
	[NP_RES_THREADS] = { "threads", "threads", "--max-threads", "threads", NS_THREADS,
			     .first = 2 },
	[NP_RES_SPIN] = { "spinning", "spinning threads", "--spin", "spinning_threads", NS_SPIN,
			  .first = 1, .reserve = 1, .none_at_0 = true },
	[NP_RES_FLOWS] = { "sockets", "data sockets", "--max-total-flows", "data_sockets",
			   NS_SOCKETS, .first = 2 },
	[NP_RES_FILTERS] = { "filters", "filters of system calls", "--max-filters", "call_filters",
			     NS_FILTERED, .first = 1 },
	[NP_RES_PASSED] = { "in-flight", "descriptors in flight", "--one-port",
			    "descriptors_in_flight", NS_PASSED, .first = 2, .none_at_0 = true },
	[NP_RES_DATAGRAMS] = { "datagrams", "datagram sockets at one port", "--one-port",
			       "one_port_datagram_sockets", NS_DATAGRAMS, .first = 2,
			       .none_at_0 = true },
	[NP_RES_CAPTURES] = { "captures", "captures of packets", "--allow-raw", "captures",
			      NS_CAPTURED, .first = 1, .reserve = 2, .none_at_0 = true },
};

enum np_resource
ns_resource_of(enum ns_refusal why)
{
	unsigned i = 0;

	while (i < NP_RESOURCES && ns_resources[i].why != why) {
		i++;
	}
	return (enum np_resource)i;
}

void
ns_limits_init(struct ns_limits *l)
{
	*l = (struct ns_limits){
#define NS_LIMIT(unit, option, least, most, member, usual, tells, metric, text) .member = (usual),
#include "netserver/limits.def"
#undef NS_LIMIT
	};
}

int
ns_access_add(struct ns_access *a, bool allow, const char *list, struct np_err *err)
{
	struct np_cidr *rules = allow ? a->allow : a->deny;
	size_t *count = allow ? &a->allows : &a->denies;

	/* An empty list must fail: without any allow rule, all addresses are allowed. */
	for (bool more = true; more;) {
		size_t n = strcspn(list, ",");
		char text[64];

		if (*count == NS_RULES) {
			return np_usage(err, "more than %d address ranges", NS_RULES);
		}
		snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : sizeof(text)),
			 list);
		if (np_cidr_parse(&rules[*count], text, err) != NP_OK) {
			return err->code;
		}
		(*count)++;
		more = list[n] == ',';
		list += n + more;
	}
	return NP_OK;
}

/* Add the rules of a line of an access file; its comment was cut off. NP_EUSAGE. */
static int
add_line(struct ns_access *a, char *line, struct np_err *err)
{
	static const char blanks[] = " \t\r\n";
	char *rest = NULL, *keyword = strtok_r(line, blanks, &rest), *ranges;

	if (keyword == NULL) {
		return NP_OK;
	}
	if (strcmp(keyword, "allow") != 0 && strcmp(keyword, "deny") != 0) {
		return np_usage(err, "'%.40s' is neither allow nor deny", keyword);
	}
	ranges = strtok_r(NULL, blanks, &rest);
	if (ranges == NULL) {
		return np_usage(err, "%s needs an address range", keyword);
	}
	for (; ranges != NULL; ranges = strtok_r(NULL, blanks, &rest)) {
		if (ns_access_add(a, keyword[0] == 'a', ranges, err) != NP_OK) {
			return err->code;
		}
	}
	return NP_OK;
}

int
ns_access_read(struct ns_access *a, const char *path, struct np_err *err)
{
	struct ns_access rules = *a;
	int fd = np_trusted_open(path, NP_TRUSTED_RULES, err);
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	char line[512], where[80];
	int rc = NP_OK, number = 0;

	if (fd < 0) {
		return err->code;
	}
	if (f == NULL) {
		close(fd);
		return np_fail(err, NP_ESYS, ENOMEM, "open %s", path);
	}
	while (rc == NP_OK && fgets(line, sizeof(line), f) != NULL) {
		bool whole = strchr(line, '\n') != NULL || feof(f);

		number++;
		line[strcspn(line, "#")] = '\0';
		rc = whole
			 ? add_line(&rules, line, err)
			 : np_usage(err, "more than %zu bytes", sizeof(line) - 2); /* \n and NUL */
	}
	if (rc == NP_OK && ferror(f)) {
		rc = np_fail(err, NP_ESYS, errno, "read %s", path);
	} else if (rc != NP_OK) {
		snprintf(where, sizeof(where), "line %d", number);
		np_fail_in(err, where);
		np_fail_in(err, path);
	}
	fclose(f);
	if (rc == NP_OK) {
		*a = rules;
	}
	return rc;
}

static bool
any_matches(const struct np_cidr *rules, size_t count, const struct np_addr *peer)
{
	for (size_t i = 0; i < count; i++) {
		if (np_cidr_has(&rules[i], peer)) {
			return true;
		}
	}
	return false;
}

bool
ns_access_admits(const struct ns_access *a, const struct np_addr *peer)
{
	return !any_matches(a->deny, a->denies, peer) &&
	       (a->allows == 0 || any_matches(a->allow, a->allows, peer));
}

bool
ns_bucket_take(struct ns_bucket *b, uint64_t each_ns, uint64_t window_ns, uint64_t now_ns)
{
	if (ns_bucket_when(b, each_ns, window_ns, now_ns) > now_ns) {
		return false;
	}
	b->due_ns = (b->due_ns > now_ns ? b->due_ns : now_ns) + each_ns;
	return true;
}

uint64_t
ns_bucket_when(const struct ns_bucket *b, uint64_t each_ns, uint64_t window_ns, uint64_t now_ns)
{
	uint64_t due = b->due_ns > now_ns ? b->due_ns : now_ns;
	uint64_t window = window_ns > each_ns ? window_ns : each_ns; /* one always fits */

	/* One moves due_ns on by each_ns, to at most `window` from now. */
	return due + each_ns > now_ns + window ? due + each_ns - window : now_ns;
}

bool
ns_share_take(struct ns_share *s, struct ns_place who, uint64_t each_ns, uint64_t window_ns,
	      uint64_t now_ns)
{
	const struct {
		struct ns_bucket *rate;
		uint64_t each_ns;
	} parts[] = { { &s->all, each_ns },
		      { &s->net[who.net], each_ns * 4 / 3 },
		      { &s->host[who.host], each_ns * 2 } };

	for (size_t i = 0; i < 3; i++) {
		if (ns_bucket_when(parts[i].rate, parts[i].each_ns, window_ns, now_ns) > now_ns) {
			return false;
		}
	}
	for (size_t i = 0; i < 3; i++) {
		ns_bucket_take(parts[i].rate, parts[i].each_ns, window_ns, now_ns);
	}
	return true;
}

/* Of the first `size` bytes, by factors of xxHash. Seeded: clients can't predict what collides. */
static uint32_t
hash_of(const struct np_addr *a, size_t size, uint32_t seed)
{
	const uint8_t *bytes = size > 0 ? np_addr_bytes(a) : NULL;
	uint32_t hash = seed;

	for (size_t i = 0; i < size; i++) {
		hash = (hash ^ bytes[i]) * UINT32_C(0x9e3779b1);
		hash ^= hash >> 15;
	}
	/* Spread the last byte over all bits: neighbouring addresses should rarely collide. */
	hash = (hash ^ hash >> 16) * UINT32_C(0x9e3779b1);
	hash = (hash ^ hash >> 15) * UINT32_C(0x85ebca77);
	return hash ^ hash >> 16;
}

struct ns_place
ns_place_of(const struct np_addr *a, uint32_t seed)
{
	const struct np_family *f = np_family_of(a);

	return (struct ns_place){ .host = hash_of(a, f->owner, seed) % NS_GROUPS,
				  .net = hash_of(a, f->network, seed) % NS_GROUPS };
}

/* Are their first `size` bytes the same? False for 0: the family has no prefixes. */
static bool
share_prefix(const struct np_addr *a, const struct np_addr *b, size_t size)
{
	return np_addr_same_family(a, b) && size > 0 &&
	       memcmp(np_addr_bytes(a), np_addr_bytes(b), size) == 0;
}

bool
ns_guard_has_session(const struct ns_session *sessions, const struct np_addr *peer)
{
	const struct ns_session *s = sessions;

	while (s != NULL && !share_prefix(&s->peer, peer, np_family_of(peer)->owner)) {
		s = s->next;
	}
	return s != NULL;
}

int
ns_guard_rate(const struct ns_limits *l, const struct np_addr *peer, struct ns_rates *r,
	      uint64_t now_ns, struct np_err *err)
{
	const uint64_t window = UINT64_C(2) * NS_SHARE * NP_SEC; /* a burst of twice `rate` */

	if (l->rate > 0 && !ns_bucket_take(&r->host[ns_place_of(peer, r->seed).host],
					   NS_SHARE * NP_SEC / (uint64_t)l->rate, window, now_ns)) {
		return np_fail_verbatim(
		    err, NP_EPEER, ns_refusals[NS_RATE].sys,
		    "more than a fair share of %d sessions a second from one address "
		    "(netserver --max-rate)",
		    l->rate);
	}
	return NP_OK;
}

/* Time between two sessions at the full rate, which is not 0. */
static uint64_t
pace_ns(const struct ns_limits *l)
{
	return NP_SEC / (uint64_t)l->rate;
}

uint64_t
ns_guard_when(const struct ns_limits *l, const struct ns_rates *r, struct ns_place who,
	      uint64_t now_ns)
{
	const uint64_t window = NS_AT_ONCE_MS * NP_MSEC;

	if (l->rate <= 0) {
		return now_ns;
	}
	return np_max(ns_bucket_when(&r->all, pace_ns(l), window, now_ns),
		      ns_bucket_when(&r->pace[who.host], NS_PACE * pace_ns(l), window, now_ns));
}

void
ns_guard_begin(const struct ns_limits *l, struct ns_rates *r, struct ns_place who, uint64_t now_ns)
{
	const uint64_t window = NS_AT_ONCE_MS * NP_MSEC;

	if (l->rate > 0) {
		ns_bucket_take(&r->all, pace_ns(l), window, now_ns);
		ns_bucket_take(&r->pace[who.host], NS_PACE * pace_ns(l), window, now_ns);
	}
	ns_turns_take(&r->turns, who, now_ns);
}

void
ns_turns_take(struct ns_turns *t, struct ns_place who, uint64_t now_ns)
{
	t->host[who.host] = t->net[who.net] = now_ns;
}

bool
ns_turns_before(const struct ns_turns *t, struct ns_place a, struct ns_place b)
{
	uint64_t net_a = t->net[a.net], net_b = t->net[b.net];

	return net_a != net_b ? net_a < net_b : t->host[a.host] < t->host[b.host];
}

/* How often a wrong secret of an address, and of a network, is allowed. */
static const struct {
	uint64_t each_ns, burst;
} paces[NS_TRY_KINDS] = {
	[NS_TRY_HOST] = { NS_TRY_MS * NP_MSEC, NS_TRY_BURST },
	[NS_TRY_NET] = { NS_TRY_NET_MS * NP_MSEC, NS_TRY_NET_BURST },
};

/* The row to look for: of the address (NS_TRY_HOST), or of its network. */
static struct ns_try
try_key(const struct np_addr *a, int kind)
{
	const struct np_family *f = np_family_of(a);
	struct ns_try key = { .family = (sa_family_t)f->family };

	memcpy(key.bytes, np_addr_bytes(a), kind == NS_TRY_HOST ? f->owner : f->network);
	return key;
}

/* Compares prefixes and not hashes: no address is delayed because of another. NS_TRY_ROWS: none. */
static size_t
find_try(const struct ns_try *rows, const struct ns_try *key)
{
	size_t i = 0;

	while (i < NS_TRY_ROWS && (rows[i].family != key->family ||
				   memcmp(rows[i].bytes, key->bytes, sizeof(key->bytes)) != 0)) {
		i++;
	}
	return i;
}

uint64_t
ns_guard_try(const struct ns_tries *t, const struct np_addr *peer, uint64_t now_ns)
{
	uint64_t when = now_ns;

	for (int kind = 0; kind < NS_TRY_KINDS; kind++) {
		struct ns_try key = try_key(peer, kind);
		size_t at = find_try(t->of[kind], &key);

		if (at < NS_TRY_ROWS) {
			when = np_max(
			    when, ns_bucket_when(&t->of[kind][at].wrong, paces[kind].each_ns,
						 paces[kind].burst * paces[kind].each_ns, now_ns));
		}
	}
	return when;
}

void
ns_guard_wrong(struct ns_tries *t, const struct np_addr *peer, uint64_t now_ns)
{
	for (int kind = 0; kind < NS_TRY_KINDS; kind++) {
		struct ns_try *rows = t->of[kind], key = try_key(peer, kind);
		size_t at = find_try(rows, &key);

		if (at == NS_TRY_ROWS) {
			at = 0; /* reuse the row that expires first */
			for (size_t i = 1; i < NS_TRY_ROWS; i++) {
				at = rows[i].wrong.due_ns < rows[at].wrong.due_ns ? i : at;
			}
			rows[at] = key;
		}
		ns_bucket_take(&rows[at].wrong, paces[kind].each_ns,
			       paces[kind].burst * paces[kind].each_ns, now_ns);
	}
}

/* What sessions hold: all of them, and those of one client's address and of its network. */
struct usage {
	uint64_t all[NP_RESOURCES], host[NP_RESOURCES], net[NP_RESOURCES];
};

/* Count what sessions hold, for the client `peer`. except: left out; NULL: none is. */
static struct usage
usage_of(const struct ns_session *sessions, const struct ns_session *except,
	 const struct np_addr *peer)
{
	struct usage u = { .all = { 0 } };

	for (const struct ns_session *s = sessions; s != NULL; s = s->next) {
		bool same_host = share_prefix(&s->peer, peer, np_family_of(peer)->owner);
		bool same_net = share_prefix(&s->peer, peer, np_family_of(peer)->network);

		for (int g = 0; g < NP_RESOURCES && s != except; g++) {
			u.all[g] += s->holds[g];
			u.host[g] += same_host ? s->holds[g] : 0;
			u.net[g] += same_net ? s->holds[g] : 0;
		}
	}
	return u;
}

/* The part of a limit that is kept back: a fixed share, or the least that ns_resources asks for. */
static uint64_t
reserved(uint64_t limit, enum np_resource resource)
{
	uint64_t part = limit / NS_KEPT;

	return part < ns_resources[resource].reserve && limit > ns_resources[resource].reserve
		   ? ns_resources[resource].reserve
		   : part;
}

/* The most that one session may hold beside u; of the reserve, only up to ns_resource.first. */
static uint64_t
room_for(const struct ns_limits *l, const struct usage *u, enum np_resource g)
{
	uint64_t limit = l->all[g], kept = reserved(limit, g), first = ns_resources[g].first;
	uint64_t open = np_excess(limit - kept, u->all[g]);
	uint64_t to_address = np_excess(limit - kept / 2, u->all[g]);
	uint64_t to_network = np_excess(limit, u->all[g]);

	if (limit == 0 && !ns_resources[g].none_at_0) {
		return UINT64_MAX;
	}
	to_address = np_min(to_address, np_excess(first, u->host[g]));
	to_network = np_min(to_network, np_excess(first, u->net[g]));
	return np_max(open, np_max(to_address, to_network));
}

/* Refuse what is wanted of a resource: *why, and how much of it is in use, for the client. */
static int
no_room(const struct ns_limits *l, const struct usage *u, enum np_resource g, uint64_t wants,
	enum ns_refusal *why, struct np_err *err)
{
	bool is_left = wants <= np_excess(l->all[g], u->all[g]);

	*why = ns_resources[g].why;
	return np_fail_verbatim(
	    err, NP_EPEER, ns_refusals[ns_resources[g].why].sys,
	    "%llu of %llu %s are in use%s (netserver %s)", (unsigned long long)u->all[g],
	    (unsigned long long)l->all[g], ns_resources[g].words,
	    is_left ? ", the rest is for addresses and networks with next to none" : "",
	    ns_resources[g].option);
}

/* Is there room for what is wanted of each resource? If not, *why and err say of which. */
static int
all_have_room(const struct ns_limits *l, const struct usage *u, const uint64_t wants[NP_RESOURCES],
	      enum ns_refusal *why, struct np_err *err)
{
	for (int g = 0; g < NP_RESOURCES; g++) {
		if (wants[g] > 0 && wants[g] > room_for(l, u, (enum np_resource)g)) {
			return no_room(l, u, (enum np_resource)g, wants[g], why, err);
		}
	}
	return NP_OK;
}

int
ns_guard_session(const struct ns_limits *l, const struct ns_session *sessions,
		 const struct np_addr *peer, const uint64_t holds[NP_RESOURCES],
		 enum ns_refusal *why, struct np_err *err)
{
	struct usage u = usage_of(sessions, NULL, peer);

	if (l->per_address > 0 && u.host[NP_RES_SESSIONS] >= (uint64_t)l->per_address) {
		*why = NS_ADDRESS;
		return np_fail_verbatim(
		    err, NP_EPEER, ns_refusals[NS_ADDRESS].sys,
		    "%llu sessions are open from this address (netserver --max-per-address)",
		    (unsigned long long)u.host[NP_RES_SESSIONS]);
	}
	return all_have_room(l, &u, holds, why, err);
}

int
ns_guard_test(const struct ns_limits *l, const struct ns_session *sessions,
	      const struct ns_session *s, struct np_wish *wish, enum ns_refusal *why,
	      struct np_err *err)
{
	struct usage u = usage_of(sessions, s, &s->peer);

	if (l->each.bytes != 0 &&
	    wish->takes[NP_RES_MEMORY] > np_excess(l->each.bytes, NP_SESSION_BYTES)) {
		*why = NS_MEMORY;
		return np_fail_verbatim(
		    err, NP_EPEER, ns_refusals[NS_MEMORY].sys,
		    "a session may have %llu bytes of memory (netserver --max-memory)",
		    (unsigned long long)l->each.bytes);
	}
	for (int g = 0; g < NP_RESOURCES; g++) {
		/* u leaves out s, which keeps what it holds between tests. */
		uint64_t room = np_excess(room_for(l, &u, (enum np_resource)g), s->idle_holds[g]);

		if (wish->takes[g] > room + np_min(wish->spares[g], UINT64_MAX - room)) {
			u.all[g] += s->idle_holds[g]; /* the message shows the total */
			return no_room(l, &u, (enum np_resource)g, wish->takes[g], why, err);
		}
		wish->takes[g] = np_min(wish->takes[g], room);
	}
	return NP_OK;
}

bool
ns_same_owner(const struct np_addr *a, const struct np_addr *b)
{
	return np_addr_same_family(a, b) &&
	       memcmp(np_addr_bytes(a), np_addr_bytes(b), np_family_of(a)->owner) == 0;
}

bool
ns_guard_shared(const struct ns_session *sessions, const struct np_addr *peer)
{
	for (const struct ns_session *s = sessions; s != NULL; s = s->next) {
		if (s->holds[NP_RES_THREADS] > 0 && !ns_same_owner(&s->peer, peer)) {
			return true;
		}
	}
	return false;
}

int
ns_guard_nice(const struct ns_session *sessions, const struct np_addr *peer, uint32_t cpus)
{
	uint64_t threads = 0, weight = 0;
	int nice = NS_NICE;

	for (const struct ns_session *s = sessions; s != NULL; s = s->next) {
		threads += s->holds[NP_RES_THREADS];
		weight += ns_same_owner(&s->peer, peer) ? s->holds[NP_RES_THREADS] : 0;
	}
	if (threads <= cpus || cpus == 0) {
		return 0; /* cpus 0: their number is unknown */
	}
	/* In thousandths of a thread. Each step of nice takes a fifth of the weight (sched(7)). */
	for (weight *= 1000; weight > cpus * UINT64_C(1000) && nice < NS_NICE_MOST; nice++) {
		weight = weight * 4 / 5;
	}
	return nice;
}

bool
ns_guard_more(const struct ns_limits *l, const struct ns_session *sessions,
	      const struct ns_session *s, enum np_resource resource, uint64_t total)
{
	struct usage u;

	if (total < l->all[resource] - reserved(l->all[resource], resource)) {
		return true;
	}
	u = usage_of(sessions, s, &s->peer);
	return s->holds[resource] < room_for(l, &u, resource);
}

bool
ns_guard_scarce(const struct ns_limits *l, enum np_resource resource, uint64_t held)
{
	return l->all[resource] > 0 &&
	       held > l->all[resource] - reserved(l->all[resource], resource);
}

void
ns_weights_add(struct ns_weights *w, struct ns_place at, uint64_t n)
{
	w->net[at.net] += n;
	w->host[at.host] += n;
}

bool
ns_holds_more(const struct ns_weights *w, struct ns_place a, struct ns_place b)
{
	return w->net[a.net] != w->net[b.net] ? w->net[a.net] > w->net[b.net]
					      : a.net == b.net && w->host[a.host] > w->host[b.host];
}

struct ns_session *
ns_guard_idle(struct ns_session *sessions, const struct np_addr *peer, enum np_resource resource,
	      uint32_t seed, uint64_t now_ns)
{
	struct ns_weights w = { .net = { 0 } };
	struct ns_place asking = ns_place_of(peer, seed);
	struct ns_session *found = NULL;

	for (const struct ns_session *s = sessions; s != NULL; s = s->next) {
		ns_weights_add(&w, s->place, s->holds[resource]);
	}
	for (struct ns_session *s = sessions; s != NULL; s = s->next) {
		/* Those that end or wait are not idle. */
		if (s->ending || s->fd < 0 || s->waiting_ns != 0 || s->room_until_ns != 0 ||
		    now_ns < s->moved_ns + NS_IDLE_S * NP_SEC || s->holds[resource] == 0 ||
		    !ns_holds_more(&w, s->place, asking)) {
			continue;
		}
		if (found == NULL || ns_holds_more(&w, s->place, found->place) ||
		    (!ns_holds_more(&w, found->place, s->place) &&
		     s->holds[resource] > found->holds[resource])) {
			found = s;
		}
	}
	return found;
}

int
ns_guard_filter(const struct ns_limits *l, const struct ns_session *sessions,
		const struct np_addr *peer, struct ns_rates *r, uint64_t now_ns, struct np_err *err)
{
	static const uint64_t wants[NP_RESOURCES] = { [NP_RES_FILTERS] = 1 };
	struct usage u = usage_of(sessions, NULL, peer);
	uint64_t most = l->all[NP_RES_FILTERS];
	enum ns_refusal why;

	if (all_have_room(l, &u, wants, &why, err) != NP_OK) {
		return err->code;
	}
	if (most > 0 && !ns_share_take(&r->filters, ns_place_of(peer, r->seed), NP_SEC / most,
				       NP_SEC, now_ns)) {
		return np_fail(err, NP_EPEER, 0,
			       "more than a fair share of %llu filters of system calls in a second "
			       "(netserver --max-filters)",
			       (unsigned long long)most);
	}
	return NP_OK;
}

bool
ns_guard_plausible(const struct ns_limits *l, const struct np_wish *wish)
{
	for (int g = 0; g < NP_RESOURCES; g++) {
		if (wish->spares[g] > wish->takes[g]) {
			return false;
		}
	}
	return wish->takes[NP_RES_SESSIONS] == 0 && wish->takes[NP_RES_FILTERS] == 0 &&
	       wish->takes[NP_RES_PASSED] == 0 && wish->takes[NP_RES_CAPTURES] == 0 &&
	       (l->each.seconds == 0 || wish->seconds <= l->each.seconds);
}
