#include "netserver/guard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "net/capture.h"

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
	[NS_GARBAGE] = { "garbage", EPROTO },
	[NS_MEMORY] = { "max-memory", ENOMEM },
	[NS_MESSAGE] = { "max-message", EMSGSIZE },
	[NS_LENGTH] = { "max-length", ERANGE },
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
		.total_bytes = UINT64_C(448) << 20,
		.each = {
			.seconds = 86400,
			.bytes = UINT64_C(64) << 20,
			.message = UINT64_C(32) << 20,
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
	FILE *f = fopen(path, "re");
	char line[512], where[80];
	int rc = NP_OK, number = 0;

	if (f == NULL) {
		return np_fail(err, NP_ESYS, errno, "open %s", path);
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
ns_bucket_take(struct ns_bucket *b, int32_t rate, unsigned share, uint64_t now_ns)
{
	uint64_t each, due, window = UINT64_C(2) * share * NP_SEC;

	if (rate <= 0) {
		return true;
	}
	each = share * NP_SEC / (uint64_t)rate;
	due = b->due_ns > now_ns ? b->due_ns : now_ns;
	if (due + each > now_ns + window) {
		return false;
	}
	b->due_ns = due + each;
	return true;
}

unsigned
ns_group_of(const struct np_addr *a)
{
	size_t size = a->sa.ss_family == AF_INET6 ? 8 : a->sa.ss_family == AF_INET ? 4 : 0;
	const uint8_t *bytes = size > 0 ? np_addr_bytes(a) : NULL;
	unsigned hash = 0;

	for (size_t i = 0; i < size; i++) {
		hash = hash * 31 + bytes[i];
	}
	return hash % NS_GROUPS;
}

/* Who has one address of an IPv6 network has all of its lower half (RFC 4291, 2.5.4). */
static bool
is_same_site(const struct np_addr *a, const struct np_addr *b)
{
	return a->sa.ss_family == b->sa.ss_family &&
	       (a->sa.ss_family == AF_INET || a->sa.ss_family == AF_INET6) &&
	       memcmp(np_addr_bytes(a), np_addr_bytes(b), a->sa.ss_family == AF_INET ? 4 : 8) == 0;
}

int
ns_guard_session(const struct ns_limits *l, const struct ns_session *sessions,
		 const struct np_addr *peer, uint64_t takes, struct ns_rates *r, uint64_t now_ns,
		 enum ns_refusal *why, struct np_err *err)
{
	int32_t all = 0, near = 0;
	uint64_t bytes = 0;

	for (const struct ns_session *s = sessions; s != NULL; s = s->next) {
		all++;
		near += is_same_site(&s->peer, peer);
		bytes += s->bytes;
	}
	if (l->sessions > 0 && all >= l->sessions) {
		*why = NS_SESSIONS;
		np_fail(err, NP_EPEER, 0, "%d sessions are open (netserver --max-sessions)", all);
	} else if (l->per_address > 0 && near >= l->per_address) {
		*why = NS_ADDRESS;
		np_fail(err, NP_EPEER, 0,
			"%d sessions are open from this address (netserver --max-per-address)",
			near);
	} else if (l->total_bytes > 0 && bytes + takes > l->total_bytes) {
		*why = NS_MEMORY;
		np_fail(err, NP_EPEER, 0,
			"the memory for all sessions is given away (netserver --max-total-memory)");
	} else if (!ns_bucket_take(&r->near[ns_group_of(peer)], l->rate, NS_SHARE, now_ns)) {
		*why = NS_RATE;
		np_fail(err, NP_EPEER, 0,
			"more than a fair part of %d sessions a second from one address (netserver "
			"--max-rate)",
			l->rate);
	} else if (!ns_bucket_take(&r->all, l->rate, 1, now_ns)) {
		*why = NS_RATE;
		np_fail(err, NP_EPEER, 0, "more than %d sessions a second (netserver --max-rate)",
			l->rate);
	} else {
		return NP_OK;
	}
	err->sys = ns_refusal_errno(*why);
	return err->code;
}

int
ns_guard_capture(const struct ns_limits *l, const struct ns_session *sessions,
		 const struct np_addr *peer, uint64_t bytes, struct np_err *err)
{
	int all = 0, near = 0;
	uint64_t others = 0;

	for (const struct ns_session *s = sessions; s != NULL; s = s->next) {
		all += s->captures;
		near += s->captures && is_same_site(&s->peer, peer);
		others += s->bytes;
	}
	if (near >= NS_CAPTURES_NEAR) {
		return np_fail(err, NP_EPEER, 0,
			       "%d other sessions from this address have a capture now, and no "
			       "address may have more",
			       near);
	}
	if (all >= NS_CAPTURES) {
		return np_fail(err, NP_EPEER, 0,
			       "%d other sessions have a capture now, and more there are not", all);
	}
	if (l->total_bytes > 0 && others + bytes + NP_CAPTURE_BYTES > l->total_bytes) {
		return np_fail(err, NP_EPEER, 0,
			       "the memory for all sessions is given away (netserver "
			       "--max-total-memory)");
	}
	return NP_OK;
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
	uint64_t others = s->beside;

	for (const struct ns_session *i = sessions; i != NULL; i = i->next) {
		others += i == s ? 0 : i->bytes;
	}
	if (l->each.bytes > 0 && wish->bytes > l->each.bytes) {
		np_fail(err, NP_EPEER, 0,
			"a session may have %llu bytes of memory (netserver --max-memory)",
			(unsigned long long)l->each.bytes);
	} else if (l->total_bytes > 0 &&
		   (others > l->total_bytes || wish->bytes > l->total_bytes - others)) {
		np_fail(err, NP_EPEER, 0,
			"the memory for all sessions is given away (netserver --max-total-memory)");
	} else {
		return NP_OK;
	}
	err->sys = ENOMEM;
	return err->code;
}
