#include "netserver/guard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/trusted.h"
#include "net/capture.h"

enum { FORGIVE_S = 60 }; /* after the last wrong passphrase or proof of an address */

static const struct {
	const char *name;
	int sys;
} refusals[NS_REFUSALS] = {
	[NS_DENIED] = { "denied", EACCES },
	[NS_SESSIONS] = { "max-sessions", EUSERS },
	[NS_ADDRESS] = { "max-per-address", EDQUOT },
	[NS_RATE] = { "max-rate", EAGAIN },
	[NS_SILENT] = { "silent", ETIMEDOUT },
	[NS_SECRET] = { "secret", EACCES },
	[NS_TRIES] = { "tries", EAGAIN },
	[NS_GARBAGE] = { "garbage", EPROTO },
	[NS_MEMORY] = { "max-memory", ENOMEM },
	[NS_MESSAGE] = { "max-message", EMSGSIZE },
	[NS_LENGTH] = { "max-length", ERANGE },
	[NS_FLOWS] = { "max-flows", EMFILE },
	[NS_LINE] = { "line", EBUSY },
	[NS_PROCESS] = { "process", EAGAIN },
	[NS_OTHER] = { "other", EINVAL },
};

const char *
ns_refusal_name(enum ns_refusal why)
{
	return refusals[why].name;
}

int
ns_refusal_errno(enum ns_refusal why)
{
	return refusals[why].sys;
}

void
ns_limits_init(struct ns_limits *l)
{
	*l = (struct ns_limits){
		.sessions = 640,
		.per_address = 512,
		.rate = 500,
		.silent = 1024,
		.total_bytes = UINT64_C(488) << 20,
		.each = {
			.seconds = 86400,
			.bytes = UINT64_C(64) << 20,
			.message = UINT64_C(32) << 20,
			.flows = 1024,
			.idle_s = 120,
		},
	};
}

/* ---- Who ---- */

int
ns_access_add(struct ns_access *a, bool allow, const char *list, struct np_err *err)
{
	struct np_cidr *rules = allow ? a->allow : a->deny;
	size_t *count = allow ? &a->allows : &a->denies;

	/* An empty list is a mistake: with no rule to allow anybody, everybody would be. */
	for (bool more = true; more;) {
		size_t n = strcspn(list, ",");
		char text[64];

		if (*count == NS_RULES) {
			return np_fail(err, NP_EUSAGE, 0, "more than %d address ranges", NS_RULES);
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

/* One line of an access file; what # begins is gone already. */
static int
add_line(struct ns_access *a, char *line, struct np_err *err)
{
	static const char blanks[] = " \t\r\n";
	char *rest = NULL, *verb = strtok_r(line, blanks, &rest), *list;

	if (verb == NULL) {
		return NP_OK;
	}
	if (strcmp(verb, "allow") != 0 && strcmp(verb, "deny") != 0) {
		return np_fail(err, NP_EUSAGE, 0, "'%.40s' is neither allow nor deny", verb);
	}
	list = strtok_r(NULL, blanks, &rest);
	if (list == NULL) {
		return np_fail(err, NP_EUSAGE, 0, "%s whom?", verb);
	}
	for (; list != NULL; list = strtok_r(NULL, blanks, &rest)) {
		if (ns_access_add(a, verb[0] == 'a', list, err) != NP_OK) {
			return err->code;
		}
	}
	return NP_OK;
}

int
ns_access_read(struct ns_access *a, const char *path, struct np_err *err)
{
	struct ns_access grown = *a;
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
		rc = whole ? add_line(&grown, line, err)
			   : np_fail(err, NP_EUSAGE, 0, "more than %zu bytes", sizeof(line) - 2);
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
		*a = grown;
	}
	return rc;
}

static bool
any_has(const struct np_cidr *rules, size_t count, const struct np_addr *peer)
{
	for (size_t i = 0; i < count; i++) {
		if (np_cidr_has(&rules[i], peer)) {
			return true;
		}
	}
	return false;
}

bool
ns_access_lets(const struct ns_access *a, const struct np_addr *peer)
{
	return !any_has(a->deny, a->denies, peer) &&
	       (a->allows == 0 || any_has(a->allow, a->allows, peer));
}

/* ---- How many ---- */

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
	uint64_t window = window_ns > each_ns ? window_ns : each_ns; /* one there always is */

	return due + each_ns > now_ns + window ? due + each_ns - window : now_ns;
}

/* Without the seed nobody knows who falls into one group with whom. */
static uint32_t
hash_of(const struct np_addr *a, size_t size, uint32_t seed)
{
	const uint8_t *bytes = size > 0 ? np_addr_bytes(a) : NULL;
	uint32_t hash = seed;

	for (size_t i = 0; i < size; i++) {
		hash = (hash ^ bytes[i]) * UINT32_C(0x9e3779b1);
		hash ^= hash >> 15;
	}
	/* The last byte has to reach all bits, too: else neighbours would often share a group. */
	hash = (hash ^ hash >> 16) * UINT32_C(0x9e3779b1);
	hash = (hash ^ hash >> 15) * UINT32_C(0x85ebca77);
	return hash ^ hash >> 16;
}

unsigned
ns_group_of(const struct np_addr *a, uint32_t seed)
{
	return hash_of(a, np_addr_owner(a), seed) % NS_GROUPS;
}

unsigned
ns_network_of(const struct np_addr *a, uint32_t seed)
{
	return hash_of(a, np_addr_network(a), seed) % NS_GROUPS;
}

static bool
begin_alike(const struct np_addr *a, const struct np_addr *b, size_t size)
{
	return np_addr_same_family(a, b) && size > 0 &&
	       memcmp(np_addr_bytes(a), np_addr_bytes(b), size) == 0;
}

int
ns_guard_rate(const struct ns_limits *l, const struct np_addr *peer, struct ns_rates *r,
	      uint64_t now_ns, struct np_err *err)
{
	const uint64_t window = UINT64_C(2) * NS_SHARE * NP_SEC;

	if (l->rate > 0 && !ns_bucket_take(&r->near[ns_group_of(peer, r->seed)],
					   NS_SHARE * NP_SEC / (uint64_t)l->rate, window, now_ns)) {
		np_fail(err, NP_EPEER, 0,
			"more than a fair share of %d sessions a second from one address "
			"(netserver --max-rate)",
			l->rate);
		err->sys = ns_refusal_errno(NS_RATE);
		return err->code;
	}
	return NP_OK;
}

struct ns_place
ns_place_of(const struct np_addr *a, uint32_t seed)
{
	return (struct ns_place){ .near = ns_group_of(a, seed), .net = ns_network_of(a, seed) };
}

/* Time between two sessions of everybody's. */
static uint64_t
pace_ns(const struct ns_limits *l)
{
	return NP_SEC / (uint64_t)l->rate;
}

uint64_t
ns_guard_when(const struct ns_limits *l, const struct ns_rates *r, struct ns_place who,
	      uint64_t now_ns)
{
	uint64_t all, own;

	if (l->rate <= 0) {
		return now_ns;
	}
	all = ns_bucket_when(&r->all, pace_ns(l), NS_AT_ONCE_MS * NP_MSEC, now_ns);
	own = ns_bucket_when(&r->pace[who.near], NS_PACE * pace_ns(l), NS_AT_ONCE_MS * NP_MSEC,
			     now_ns);
	return all > own ? all : own;
}

void
ns_guard_begin(const struct ns_limits *l, struct ns_rates *r, struct ns_place who, uint64_t now_ns)
{
	if (l->rate > 0) {
		ns_bucket_take(&r->all, pace_ns(l), NS_AT_ONCE_MS * NP_MSEC, now_ns);
		ns_bucket_take(&r->pace[who.near], NS_PACE * pace_ns(l), NS_AT_ONCE_MS * NP_MSEC,
			       now_ns);
	}
	r->turn_near[who.near] = now_ns;
	r->turn_net[who.net] = now_ns;
}

bool
ns_guard_before(const struct ns_rates *r, struct ns_place a, struct ns_place b)
{
	uint64_t net_a = r->turn_net[a.net], net_b = r->turn_net[b.net];

	return net_a != net_b ? net_a < net_b : r->turn_near[a.near] < r->turn_near[b.near];
}

static unsigned
try_group(const struct np_addr *a, uint32_t seed)
{
	return hash_of(a, np_addr_owner(a), seed) % NS_TRY_GROUPS;
}

uint64_t
ns_guard_try(const struct ns_tries *t, const struct np_addr *peer, uint32_t seed, uint64_t now_ns)
{
	uint64_t until = t->near[try_group(peer, seed)].until_ns;

	return until > now_ns ? until : now_ns;
}

void
ns_guard_wrong(struct ns_tries *t, const struct np_addr *peer, uint32_t seed, uint64_t now_ns)
{
	unsigned at = try_group(peer, seed);
	uint64_t pause = NS_PAUSE_MS * NP_MSEC;

	if (now_ns > t->near[at].until_ns + FORGIVE_S * NP_SEC) {
		t->near[at].wrong = 0;
	}
	t->near[at].wrong++;
	if (t->near[at].wrong < NS_TRIES_FREE) {
		pause = 0;
	}
	for (uint32_t i = NS_TRIES_FREE; i < t->near[at].wrong && pause < NS_PAUSE_MAX_MS * NP_MSEC;
	     i++) {
		pause *= 2;
	}
	t->near[at].until_ns =
	    now_ns + (pause < NS_PAUSE_MAX_MS * NP_MSEC ? pause : NS_PAUSE_MAX_MS * NP_MSEC);
}

/* What is in use, by everybody and by the neighbours of an address. */
struct usage {
	int32_t all, near, net; /* sessions: near from the address, net from its network */
	uint64_t bytes, net_bytes;
};

/* But of one session, which may be NULL. */
static struct usage
usage_of(const struct ns_session *sessions, const struct ns_session *but,
	 const struct np_addr *peer)
{
	struct usage u = { .all = 0 };

	for (const struct ns_session *s = sessions; s != NULL; s = s->next) {
		bool is_net = begin_alike(&s->peer, peer, np_addr_network(peer));

		if (s == but) {
			continue;
		}
		u.all++;
		u.near += begin_alike(&s->peer, peer, np_addr_owner(peer));
		u.net += is_net;
		u.bytes += s->bytes;
		u.net_bytes += is_net ? s->bytes : 0;
	}
	return u;
}

/*
 * Is there memory for `bytes` more? The last part of it is for networks that have next to
 * nothing.
 */
static bool
has_memory(const struct ns_limits *l, const struct usage *u, uint64_t bytes)
{
	uint64_t kept = l->total_bytes / NS_KEPT;

	if (l->total_bytes == 0) {
		return true;
	}
	if (u->bytes > l->total_bytes || bytes > l->total_bytes - u->bytes) {
		return false;
	}
	return u->bytes + bytes <= l->total_bytes - kept || u->net_bytes + bytes <= NS_FIRST_BYTES;
}

static int
no_memory(struct np_err *err)
{
	return np_fail(err, NP_EPEER, 0,
		       "the memory for all sessions is in use (netserver --max-total-memory)");
}

int
ns_guard_session(const struct ns_limits *l, const struct ns_session *sessions,
		 const struct np_addr *peer, uint64_t takes, enum ns_refusal *why,
		 struct np_err *err)
{
	struct usage u = usage_of(sessions, NULL, peer);

	if (l->sessions > 0 && u.all >= l->sessions) {
		*why = NS_SESSIONS;
		np_fail(err, NP_EPEER, 0, "%d sessions are open (netserver --max-sessions)", u.all);
	} else if (l->per_address > 0 && u.near >= l->per_address) {
		*why = NS_ADDRESS;
		np_fail(err, NP_EPEER, 0,
			"%d sessions are open from this address (netserver --max-per-address)",
			u.near);
	} else if (l->sessions > 0 && u.net >= NS_FIRST &&
		   u.all >= l->sessions - l->sessions / NS_KEPT) {
		*why = NS_SESSIONS;
		np_fail(err, NP_EPEER, 0,
			"%d sessions are open, and the rest is reserved for networks with less "
			"than %d (netserver --max-sessions)",
			u.all, NS_FIRST);
	} else if (!has_memory(l, &u, takes)) {
		*why = NS_MEMORY;
		no_memory(err);
	} else {
		return NP_OK;
	}
	err->sys = ns_refusal_errno(*why);
	return err->code;
}

bool
ns_guard_scarce(const struct ns_limits *l, const struct ns_session *sessions, enum ns_refusal *why)
{
	static const struct np_addr nobody;
	struct usage u = usage_of(sessions, NULL, &nobody);

	*why = NS_SESSIONS;
	if (l->sessions > 0 && u.all > l->sessions - l->sessions / NS_KEPT) {
		return true;
	}
	*why = NS_MEMORY;
	return l->total_bytes > 0 && u.bytes > l->total_bytes - l->total_bytes / NS_KEPT;
}

static bool
is_still(const struct ns_session *s, uint64_t now_ns)
{
	return !s->told && s->fd >= 0 && s->waiting_ns == 0 && s->short_ns == 0 &&
	       now_ns >= s->moved_ns + NS_STILL_S * NP_SEC;
}

struct ns_session *
ns_guard_still(struct ns_session *sessions, const struct np_addr *peer, enum ns_refusal why,
	       uint32_t seed, uint64_t now_ns)
{
	uint64_t weight[NS_GROUPS] = { 0 }, own;
	struct ns_session *found = NULL;

	for (const struct ns_session *s = sessions; s != NULL; s = s->next) {
		weight[ns_network_of(&s->peer, seed)] += why == NS_MEMORY ? s->bytes : 1;
	}
	own = weight[ns_network_of(peer, seed)];
	for (struct ns_session *s = sessions; s != NULL; s = s->next) {
		uint64_t mine = weight[ns_network_of(&s->peer, seed)], best;

		best = found != NULL ? weight[ns_network_of(&found->peer, seed)] : own;
		if (is_still(s, now_ns) &&
		    (mine > best || (found != NULL && mine == best && s->bytes > found->bytes))) {
			found = s;
		}
	}
	return found;
}

int
ns_guard_capture(const struct ns_limits *l, const struct ns_session *sessions,
		 const struct np_addr *peer, uint64_t bytes, struct np_err *err)
{
	struct usage u = usage_of(sessions, NULL, peer);
	int all = 0, near = 0;

	for (const struct ns_session *s = sessions; s != NULL; s = s->next) {
		all += s->captures;
		near += s->captures && begin_alike(&s->peer, peer, np_addr_owner(peer));
	}
	if (near >= NS_CAPTURES_NEAR) {
		return np_fail(err, NP_EPEER, 0,
			       "%d other sessions from this address have a capture now, which is "
			       "the limit for an address",
			       near);
	}
	if (all >= NS_CAPTURES) {
		return np_fail(err, NP_EPEER, 0,
			       "%d other sessions have a capture now, which is the limit", all);
	}
	return has_memory(l, &u, bytes + NP_CAPTURE_BYTES) ? NP_OK : no_memory(err);
}

bool
ns_guard_believes(const struct ns_limits *l, const struct np_wish *wish)
{
	return l->each.seconds == 0 || wish->seconds <= l->each.seconds;
}

int
ns_guard_memory(const struct ns_limits *l, const struct ns_session *sessions,
		const struct ns_session *s, const struct np_wish *wish, struct np_err *err)
{
	struct usage u = usage_of(sessions, s, &s->peer);

	u.bytes += s->beside;
	u.net_bytes += s->beside;
	if (l->each.bytes > 0 && wish->bytes > l->each.bytes) {
		np_fail(err, NP_EPEER, 0,
			"a session may have %llu bytes of memory (netserver --max-memory)",
			(unsigned long long)l->each.bytes);
	} else if (!has_memory(l, &u, wish->bytes)) {
		no_memory(err);
	} else {
		return NP_OK;
	}
	err->sys = ENOMEM;
	return err->code;
}
