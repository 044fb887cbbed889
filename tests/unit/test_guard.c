/*
 * The daemon's limits and books: who is let in, and when no more.
 */
#include "netserver/guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/capture.h"
#include "run/evidence.h"
#include "tests/lib/check.h"

static struct np_addr
address(const char *text)
{
	struct np_addrs found;
	struct np_err err;

	assert_int_equal(np_resolve(text, NULL, AF_UNSPEC, SOCK_STREAM, &found, &err), NP_OK);
	return found.at[0];
}

/* ---- Who ---- */

static bool
lets(const struct ns_access *a, const char *text)
{
	struct np_addr peer = address(text);

	return ns_access_lets(a, &peer);
}

static void
without_rules_everybody_may(void **state)
{
	static const struct ns_access none;

	(void)state;
	assert_true(lets(&none, "192.0.2.1"));
	assert_true(lets(&none, "2001:db8::1"));
}

static void
deny_wins_over_allow(void **state)
{
	static struct ns_access a;
	struct np_err err;

	(void)state;
	assert_int_equal(ns_access_add(&a, true, "192.0.2.0/24,2001:db8::/32", &err), NP_OK);
	assert_int_equal(ns_access_add(&a, false, "192.0.2.128/25", &err), NP_OK);
	assert_true(lets(&a, "192.0.2.1"));
	assert_true(lets(&a, "::ffff:192.0.2.1"));
	assert_true(lets(&a, "2001:db8::1"));
	assert_false(lets(&a, "192.0.2.129"));
	assert_false(lets(&a, "::ffff:192.0.2.129"));
	assert_false(lets(&a, "198.51.100.1"));
	assert_false(lets(&a, "2001:db9::1"));
}

static void
deny_alone_lets_the_others_in(void **state)
{
	static struct ns_access a;
	struct np_err err;

	(void)state;
	assert_int_equal(ns_access_add(&a, false, "192.0.2.1", &err), NP_OK);
	assert_false(lets(&a, "192.0.2.1"));
	assert_true(lets(&a, "192.0.2.2"));
}

static void
ranges_that_are_none_are_named(void **state)
{
	static struct ns_access a;
	struct np_err err;

	(void)state;
	assert_int_equal(ns_access_add(&a, true, "192.0.2.0/24,nonsense", &err), NP_EUSAGE);
	assert_has(err.msg, "nonsense");
}

/* A script's variable may be empty: that must not let everybody in. */
static void
empty_lists_are_no_rules(void **state)
{
	static const char *const lists[] = { "", ",", "192.0.2.1,", ",192.0.2.1" };
	static struct ns_access a;
	struct np_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		assert_int_equal(ns_access_add(&a, true, lists[i], &err), NP_EUSAGE);
	}
}

static void
there_is_an_end_to_rules(void **state)
{
	static struct ns_access a;
	struct np_err err;

	(void)state;
	for (int i = 0; i < NS_RULES; i++) {
		assert_int_equal(ns_access_add(&a, true, "192.0.2.1", &err), NP_OK);
	}
	assert_int_equal(ns_access_add(&a, true, "192.0.2.1", &err), NP_EUSAGE);
	assert_int_equal(a.allows, NS_RULES);
}

/* Read an access file with that text. */
static int
read_text(struct ns_access *a, const char *text, struct np_err *err)
{
	char path[] = "/tmp/test_guard.XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
	close(fd);
	rc = ns_access_read(a, path, err);
	unlink(path);
	return rc;
}

static void
files_have_a_rule_a_line(void **state)
{
	static struct ns_access a;
	struct np_err err;

	(void)state;
	assert_int_equal(read_text(&a,
				   "# the laboratory\n\nallow 192.0.2.0/24 198.51.100.7 # both\n"
				   "\tdeny 192.0.2.9,192.0.2.10\r\nallow ::1",
				   &err),
			 NP_OK);
	assert_int_equal(a.allows, 3);
	assert_int_equal(a.denies, 2);
	assert_true(lets(&a, "198.51.100.7"));
	assert_true(lets(&a, "::1"));
	assert_false(lets(&a, "192.0.2.10"));
}

static void
a_bad_file_changes_nothing(void **state)
{
	static const char *const bad[][2] = {
		{ "allow 192.0.2.1\npermit 192.0.2.2\n", "line 2: 'permit'" },
		{ "allow\n", "line 1: allow whom?" },
		{ "deny 192.0.2.300\n", "192.0.2.300" },
	};
	static struct ns_access a;
	struct np_err err;

	(void)state;
	assert_int_equal(ns_access_add(&a, false, "192.0.2.1", &err), NP_OK);
	for (size_t i = 0; i < LEN(bad); i++) {
		assert_int_equal(read_text(&a, bad[i][0], &err), NP_EUSAGE);
		assert_has(err.msg, bad[i][1]);
		assert_int_equal(a.allows, 0);
		assert_int_equal(a.denies, 1);
	}
	assert_int_equal(ns_access_read(&a, "/nonexistent/rules", &err), NP_ESYS);
	assert_has(err.msg, "/nonexistent/rules");
}

/* ---- How many ---- */

static int
taken(struct ns_bucket *b, uint64_t each, uint64_t window, uint64_t now)
{
	int n = 0;

	while (ns_bucket_take(b, each, window, now)) {
		assert_true(++n < 1000);
	}
	return n;
}

static void
buckets_fill_at_a_rate(void **state)
{
	const uint64_t each = NP_SEC / 10, window = 2 * NP_SEC, now = 1000 * NP_SEC;
	struct ns_bucket b = { 0 };

	(void)state;
	assert_int_equal(taken(&b, each, window, now), 20);
	assert_int_equal(ns_bucket_when(&b, each, window, now), now + each);
	assert_false(ns_bucket_take(&b, each, window, now + 99 * NP_MSEC));
	assert_true(ns_bucket_take(&b, each, window, now + 100 * NP_MSEC));
	assert_false(ns_bucket_take(&b, each, window, now + 102 * NP_MSEC));
	/* A long pause fills it, and no more than that. */
	assert_int_equal(taken(&b, each, window, now + 3600 * NP_SEC), 20);
	/* One there always is. */
	assert_int_equal(taken(&b, each, each / 2, now + 7200 * NP_SEC), 1);
}

/* What a session takes at the defaults, with evidence. */
enum { TAKES = NP_SESSION_BYTES + NP_EVIDENCE_BYTES };

/* 1.5 times the rate from one address, and now and then somebody else. */
static void
one_address_leaves_some_of_the_rate(void **state)
{
	struct np_addr greedy = address("192.0.2.1"), other = address("198.51.100.2");
	struct ns_limits l = { .rate = 100 };
	static struct ns_rates r;
	struct np_err err;
	int got = 0;

	(void)state;
	for (int i = 0; i < 1500; i++) {
		uint64_t now = 1000 * NP_SEC + (uint64_t)i * NP_SEC / 150;

		got += ns_guard_rate(&l, &greedy, &r, now, &err) == NP_OK;
		if (i % 10 == 9) {
			assert_int_equal(ns_guard_rate(&l, &other, &r, now, &err), NP_OK);
		}
	}
	assert_in_range(got, 2 * 100 + 10 * 25 - 1, 2 * 100 + 10 * 25 + 1);
	while (ns_guard_rate(&l, &greedy, &r, 1010 * NP_SEC, &err) == NP_OK) {
	}
	assert_int_equal(err.sys, EAGAIN);
	assert_has(err.msg, "netserver --max-rate");
}

static struct ns_place
place(const char *text)
{
	struct np_addr a = address(text);

	return ns_place_of(&a, 4711);
}

/* How many begin in one go, from that address. */
static int
begun(const struct ns_limits *l, struct ns_rates *r, const char *from, uint64_t now)
{
	int n = 0;

	while (ns_guard_when(l, r, place(from), now) == now) {
		ns_guard_begin(l, r, place(from), now);
		assert_true(++n < 1000);
	}
	return n;
}

/* In one go there begin no more than the daemon does in the time that others wait at most. */
static void
sessions_begin_one_after_another(void **state)
{
	const uint64_t now = 1000 * NP_SEC;
	static struct ns_rates r;
	struct ns_limits l;

	(void)state;
	ns_limits_init(&l);
	assert_int_equal(begun(&l, &r, "192.0.2.1", now), l.rate / 20);
	assert_int_equal(begun(&l, &r, "192.0.2.1", now + NP_SEC / 100), l.rate / 200);
	/* The others' half is left. */
	assert_int_equal(begun(&l, &r, "198.51.100.1", now + NP_SEC / 100), l.rate / 20);
	assert_in_range(begun(&l, &r, "203.0.113.1", now + NP_SEC / 100), 0, l.rate / 200 + 1);
	assert_int_equal(begun(&l, &r, "203.0.113.1", now + NP_SEC), l.rate / 20);
	l.rate = 0;
	assert_int_equal(ns_guard_when(&l, &r, place("192.0.2.1"), now), now);
}

/* However many wait of one network, somebody else is next. */
static void
networks_take_turns(void **state)
{
	struct ns_place greedy = place("192.0.2.1"), near = place("192.0.2.2"),
			other = place("198.51.100.2"), six = place("2001:db8::1"),
			near_six = place("2001:db8::2");
	struct ns_rates r = { .seed = 4711 };
	struct ns_limits l;

	(void)state;
	ns_limits_init(&l);
	assert_false(ns_guard_before(&r, greedy, other));
	assert_false(ns_guard_before(&r, other, greedy));
	ns_guard_begin(&l, &r, greedy, 1000 * NP_SEC);
	assert_true(ns_guard_before(&r, other, greedy));
	assert_true(ns_guard_before(&r, other, near));
	assert_true(ns_guard_before(&r, near, greedy));
	ns_guard_begin(&l, &r, other, 1001 * NP_SEC);
	assert_true(ns_guard_before(&r, greedy, other));
	ns_guard_begin(&l, &r, six, 1002 * NP_SEC);
	assert_true(ns_guard_before(&r, greedy, near_six));
	assert_false(ns_guard_before(&r, near_six, six));
	assert_false(ns_guard_before(&r, six, near_six));
}

/* Who knows the hash finds addresses that share a group; not who does not know the seed. */
static void
the_seed_chooses_who_shares_a_group(void **state)
{
	struct np_addr a = address("192.0.2.1"), b = address("198.51.100.77");
	int together = 0;

	(void)state;
	for (uint32_t seed = 0; seed < 4096; seed++) {
		together += ns_group_of(&a, seed) == ns_group_of(&b, seed);
	}
	assert_in_range(together, 1, 4096 / 64);
}

/* Addresses that differ in the last byte are no more likely to do so than others: 1 in 256. */
static void
neighbours_share_a_group_by_chance_alone(void **state)
{
	enum { SEEDS = 4096 };

	(void)state;
	for (unsigned last = 2; last < 32; last++) {
		char text[16];
		struct np_addr a = address("127.0.0.1"), b;
		unsigned together = 0;

		snprintf(text, sizeof(text), "127.0.0.%u", last);
		b = address(text);
		for (uint32_t seed = 0; seed < SEEDS; seed++) {
			together += ns_group_of(&a, seed * 2654435761U) ==
				    ns_group_of(&b, seed * 2654435761U);
		}
		assert_in_range(together, 1, 4 * SEEDS / 256);
	}
}

enum { MANY = 8 };

/* A list of sessions from those addresses. */
static struct ns_session *
sessions_from(struct ns_session s[MANY], const char *const peers[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		s[i] = (struct ns_session){ .peer = address(peers[i]), .bytes = NP_SESSION_BYTES };
		s[i].next = i + 1 < count ? &s[i + 1] : NULL;
	}
	return count > 0 ? s : NULL;
}

static enum ns_refusal
refusal(const struct ns_limits *l, const struct ns_session *list, const char *peer)
{
	struct np_addr a = address(peer);
	enum ns_refusal why = NS_REFUSALS;
	struct np_err err = { .code = NP_OK };
	int rc = ns_guard_session(l, list, &a, NP_SESSION_BYTES, &why, &err);

	assert_int_equal(rc == NP_OK, why == NS_REFUSALS);
	if (rc != NP_OK) {
		assert_int_equal(err.sys, ns_refusal_errno(why));
		assert_has(err.msg, "netserver --max-");
	}
	return why;
}

static void
sessions_are_limited_in_all_and_by_address(void **state)
{
	static const char *const peers[] = { "192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1" };
	struct ns_session s[MANY];
	struct ns_limits l;

	(void)state;
	ns_limits_init(&l);
	sessions_from(s, peers, LEN(peers));
	assert_int_equal(refusal(&l, s, "192.0.2.1"), NS_REFUSALS);
	l.per_address = 2;
	assert_int_equal(refusal(&l, s, "192.0.2.1"), NS_ADDRESS);
	assert_int_equal(refusal(&l, s, "192.0.2.2"), NS_REFUSALS);
	l.per_address = 1; /* of IPv6 the network counts */
	assert_int_equal(refusal(&l, s, "2001:db8::ffff:1"), NS_ADDRESS);
	assert_int_equal(refusal(&l, s, "2001:db8:0:1::1"), NS_REFUSALS);
	l.sessions = 4;
	assert_int_equal(refusal(&l, s, "192.0.2.9"), NS_SESSIONS);
	l.sessions = l.per_address = 0;
	assert_int_equal(refusal(&l, s, "192.0.2.1"), NS_REFUSALS);
	l.total_bytes = 5 * NP_SESSION_BYTES;
	assert_int_equal(refusal(&l, s, "192.0.2.9"), NS_REFUSALS);
	l.total_bytes--;
	assert_int_equal(refusal(&l, s, "192.0.2.9"), NS_MEMORY);
}

/* Each machine has one, which it cannot choose; so each is an owner and a network. */
static void
a_cid_is_limited_like_an_address(void **state)
{
	static const char *const peers[] = { "vsock:3", "vsock:3", "vsock:4", "192.0.2.1" };
	struct ns_access access = { .allows = 0 };
	struct np_addr three = address("vsock:3"), four = address("vsock:4"),
		       ip = address("192.0.2.1");
	struct ns_session s[MANY];
	struct ns_limits l;
	struct np_err err;

	(void)state;
	ns_limits_init(&l);
	sessions_from(s, peers, LEN(peers));
	l.per_address = 2;
	assert_int_equal(refusal(&l, s, "vsock:3"), NS_ADDRESS);
	assert_int_equal(refusal(&l, s, "vsock:4"), NS_REFUSALS);
	assert_int_equal(refusal(&l, s, "vsock:5"), NS_REFUSALS);
	assert_int_not_equal(ns_group_of(&three, 1), ns_group_of(&four, 1));
	assert_int_equal(ns_access_add(&access, true, "vsock:3,127.0.0.0/8", &err), NP_OK);
	assert_true(ns_access_lets(&access, &three));
	assert_false(ns_access_lets(&access, &four) || ns_access_lets(&access, &ip));
	assert_int_equal(ns_access_add(&access, false, "vsock:any", &err), NP_OK);
	assert_false(ns_access_lets(&access, &three));
}

/* The total of which this part is not reserved for those who have nothing. */
static uint64_t
total_with(uint64_t bytes)
{
	uint64_t total = bytes;

	while (total - total / NS_KEPT < bytes) {
		total++;
	}
	return total;
}

static void
memory_is_shared(void **state)
{
	static const char *const peers[] = { "192.0.2.1", "192.0.2.2" };
	struct ns_limits l = { .total_bytes = total_with(100 << 20), .each.bytes = 64 << 20 };
	struct np_wish wish = { .bytes = 64 << 20 };
	struct ns_session s[MANY];
	struct np_err err;

	(void)state;
	sessions_from(s, peers, LEN(peers));
	assert_int_equal(ns_guard_memory(&l, s, &s[0], &wish, &err), NP_OK);
	s[0].bytes = wish.bytes;
	assert_int_equal(ns_guard_memory(&l, s, &s[1], &wish, &err), NP_EPEER);
	assert_int_equal(err.sys, ENOMEM);
	assert_has(err.msg, "--max-total-memory");
	wish.bytes = 36 << 20;
	assert_int_equal(ns_guard_memory(&l, s, &s[1], &wish, &err), NP_OK);
	/* A wish near the end of the numbers does not wrap around. */
	wish.bytes = UINT64_MAX;
	assert_int_equal(ns_guard_memory(&l, s, &s[1], &wish, &err), NP_EPEER);
	assert_has(err.msg, "--max-memory");
	l.each.bytes = 0;
	assert_int_equal(ns_guard_memory(&l, s, &s[1], &wish, &err), NP_EPEER);
}

static void
captures_are_shared(void **state)
{
	static const char *const peers[] = { "192.0.2.1", "192.0.2.1", "2001:db8::1",
					     "2001:db8::2" };
	struct np_addr greedy = address("192.0.2.1"), other = address("192.0.2.2"),
		       six = address("2001:db8::3");
	struct ns_limits l = { .total_bytes = 0 };
	struct ns_session s[MANY];
	struct np_err err;

	(void)state;
	assert_int_equal(ns_guard_capture(&l, NULL, &greedy, 0, &err), NP_OK);
	sessions_from(s, peers, LEN(peers));
	s[0].captures = true;
	assert_int_equal(ns_guard_capture(&l, s, &greedy, 0, &err), NP_OK);
	s[1].captures = true;
	assert_int_equal(ns_guard_capture(&l, s, &greedy, 0, &err), NP_EPEER);
	assert_has(err.msg, "from this address");
	assert_int_equal(ns_guard_capture(&l, s, &other, 0, &err), NP_OK);
	s[2].captures = s[3].captures = true;
	assert_int_equal(ns_guard_capture(&l, s, &six, 0, &err), NP_EPEER);
	assert_has(err.msg, "from this address");
	assert_int_equal(ns_guard_capture(&l, s, &other, 0, &err), NP_EPEER);
	assert_has(err.msg, "4 other sessions have");
	/* Their memory counts. */
	s[3].captures = false;
	l.total_bytes = total_with(5 * NP_SESSION_BYTES + NP_CAPTURE_BYTES);
	assert_int_equal(ns_guard_capture(&l, s, &other, NP_SESSION_BYTES, &err), NP_OK);
	l.total_bytes--;
	assert_int_equal(ns_guard_capture(&l, s, &other, NP_SESSION_BYTES, &err), NP_EPEER);
	assert_has(err.msg, "--max-total-memory");
}

/* What a session has beside its test counts while that runs, too, but not as the test's. */
static void
memory_beside_a_test_counts(void **state)
{
	static const char *const peers[] = { "192.0.2.1" };
	struct ns_limits l = { .total_bytes = total_with(10 << 20), .each.bytes = 8 << 20 };
	struct np_wish wish = { .bytes = 8 << 20 };
	struct ns_session s[MANY];
	struct np_err err;

	(void)state;
	sessions_from(s, peers, LEN(peers));
	s[0].beside = 2 << 20;
	assert_int_equal(ns_guard_memory(&l, s, &s[0], &wish, &err), NP_OK);
	s[0].beside++;
	assert_int_equal(ns_guard_memory(&l, s, &s[0], &wish, &err), NP_EPEER);
	assert_has(err.msg, "--max-total-memory");
}

static void
no_wish_is_longer_than_a_test_may_be(void **state)
{
	struct ns_limits l = { .each.seconds = 60 };
	struct np_wish wish = { .seconds = 60 };

	(void)state;
	assert_true(ns_guard_believes(&l, &wish));
	wish.seconds = 61;
	assert_false(ns_guard_believes(&l, &wish));
	wish.seconds = UINT32_MAX;
	assert_false(ns_guard_believes(&l, &wish));
	l.each.seconds = 0;
	assert_true(ns_guard_believes(&l, &wish));
}

/* The defaults: 500 clients of one address, each with a test, and all of them under 512 MB. */
static void
a_laboratory_meets_no_limit(void **state)
{
	struct np_addr peer = address("192.0.2.1");
	static struct ns_session s[500];
	const uint64_t bytes = NP_SESSION_BYTES + NP_EVIDENCE_BYTES;
	enum ns_refusal why;
	struct ns_limits l;
	struct np_err err;

	(void)state;
	ns_limits_init(&l);
	assert_true(l.total_bytes < UINT64_C(512) * 1000 * 1000);
	/* With evidence, too. */
	for (size_t i = 0; i < LEN(s); i++) {
		assert_int_equal(
		    ns_guard_session(&l, i > 0 ? &s[i - 1] : NULL, &peer, bytes, &why, &err),
		    NP_OK);
		/* TCP_STREAM at Linux's default of 128 KiB: a ring of two. */
		s[i] = (struct ns_session){ .peer = peer,
					    .next = i > 0 ? &s[i - 1] : NULL,
					    .bytes = bytes + (256 << 10) };
	}
}

/* ---- Shares ---- */

enum { CROWD = 700 };

/* What an attacker or a guest has of a daemon at the defaults. */
struct house {
	struct ns_limits l;
	struct ns_session s[CROWD];
	size_t count;
};

static struct ns_session *
all_of(struct house *h)
{
	return h->count > 0 ? &h->s[0] : NULL;
}

/* One more session of that address, with a test of `bytes`; false if either is refused. */
static bool
enters(struct house *h, const char *from, uint64_t test_bytes)
{
	struct np_wish wish = { .bytes = NP_SESSION_BYTES + test_bytes };
	struct np_addr peer = address(from);
	struct ns_session *s = &h->s[h->count];
	enum ns_refusal why;
	struct np_err err;

	assert_true(h->count < CROWD);
	if (ns_guard_session(&h->l, all_of(h), &peer, TAKES, &why, &err) != NP_OK) {
		return false;
	}
	*s = (struct ns_session){ .peer = peer,
				  .bytes = TAKES,
				  .beside = TAKES - NP_SESSION_BYTES,
				  .fd = 1,
				  .moved_ns = 1000 * NP_SEC };
	if (h->count > 0) {
		h->s[h->count - 1].next = s;
	}
	h->count++;
	if (ns_guard_memory(&h->l, all_of(h), s, &wish, &err) != NP_OK) {
		return false;
	}
	s->bytes = s->beside + wish.bytes;
	return true;
}

static struct house *
house(void)
{
	static struct house h;

	memset(&h, 0, sizeof(h));
	ns_limits_init(&h.l);
	return &h;
}

enum { ORDINARY = 256 << 10 }; /* a test at the defaults: TCP_STREAM, a ring of two 128 KiB */

/* Nine connections whose tests take what a session may have, and those of a neighbour. */
static void
big_tests_of_one_network_leave_room(void **state)
{
	struct house *h = house();
	int got = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		got += enters(h, i % 2 == 0 ? "192.0.2.1" : "192.0.2.99", (64 << 20) - (1 << 20));
	}
	assert_in_range(got, 5, 7);
	for (int i = 0; i < 300; i++) {
		enters(h, "192.0.2.1", ORDINARY);
	}
	assert_false(enters(h, "192.0.2.2", ORDINARY));
	assert_true(enters(h, "198.51.100.1", ORDINARY));
	assert_true(enters(h, "198.51.100.1", ORDINARY));
	assert_true(enters(h, "2001:db8::1", ORDINARY));
	assert_false(enters(h, "203.0.113.1", 4 << 20)); /* that would be others' share */
	assert_true(enters(h, "203.0.113.2", ORDINARY));
}

/* Two addresses that take all sessions they can get: others have two each. */
static void
sessions_of_two_networks_leave_room(void **state)
{
	struct house *h = house();
	char text[40];
	int got = 0;

	(void)state;
	h->l.total_bytes = 0;
	for (int i = 0; i < 600; i++) {
		got += enters(h, "192.0.2.1", 0);
	}
	assert_int_equal(got, 512);
	for (int i = 0; i < 200; i++) {
		got += enters(h, "198.51.100.1", 0);
		got += enters(h, "192.0.2.2", 0); /* the first one's neighbour */
	}
	assert_int_equal(got, 576);
	for (int i = 0; i < 64 / NS_FIRST; i++) {
		snprintf(text, sizeof(text), "2001:db8:0:%x::1", i);
		assert_true(enters(h, text, 0));
		assert_true(enters(h, text, 0));
		assert_false(enters(h, text, 0));
	}
	assert_false(enters(h, "203.0.113.1", 0));
}

static struct ns_session *
still(struct house *h, const char *from, enum ns_refusal why, uint64_t now_s)
{
	struct np_addr peer = address(from);

	return ns_guard_still(all_of(h), &peer, why, 4711, now_s * NP_SEC);
}

/* Who moves nothing makes room, the one who has the most first. */
static void
still_tests_make_room(void **state)
{
	struct house *h = house();

	(void)state;
	assert_true(enters(h, "192.0.2.1", 8 << 20));
	assert_true(enters(h, "192.0.2.1", 32 << 20));
	assert_true(enters(h, "198.51.100.1", 30 << 20));
	assert_true(enters(h, "198.51.100.1", 0));
	assert_true(enters(h, "198.51.100.1", 0));
	/* Not before its time. */
	assert_null(still(h, "203.0.113.1", NS_MEMORY, 1000 + NS_STILL_S - 1));
	assert_ptr_equal(still(h, "203.0.113.1", NS_MEMORY, 1000 + NS_STILL_S), &h->s[1]);
	assert_ptr_equal(still(h, "203.0.113.1", NS_SESSIONS, 1000 + NS_STILL_S), &h->s[2]);
	/* Nobody gets room from who has less than he. */
	assert_null(still(h, "192.0.2.2", NS_MEMORY, 2000));
	assert_ptr_equal(still(h, "198.51.100.2", NS_MEMORY, 2000), &h->s[1]);
	/* What moves stays; so does who waits for his turn, and who is told to go already. */
	h->s[1].moved_ns = 2000 * NP_SEC;
	assert_ptr_equal(still(h, "203.0.113.1", NS_MEMORY, 2000), &h->s[0]);
	h->s[0].waiting_ns = 1;
	assert_ptr_equal(still(h, "203.0.113.1", NS_MEMORY, 2000), &h->s[2]);
	h->s[2].told = true;
	h->s[3].short_ns = 1;
	h->s[4].fd = -1;
	assert_null(still(h, "203.0.113.1", NS_MEMORY, 2000));
}

static void
what_is_left_for_some_is_scarce(void **state)
{
	struct house *h = house();
	enum ns_refusal what;

	(void)state;
	assert_false(ns_guard_scarce(&h->l, NULL, &what));
	for (int i = 0; i < 6; i++) {
		assert_true(enters(h, "192.0.2.1", 60 << 20));
	}
	assert_true(enters(h, "198.51.100.1", 60 << 20));
	assert_false(ns_guard_scarce(&h->l, all_of(h), &what));
	for (int i = 0; i < 30; i++) {
		enters(h, "192.0.2.1", ORDINARY);
	}
	for (int i = 0; i < 20 && enters(h, "203.0.113.1", ORDINARY); i++) {
	}
	assert_true(ns_guard_scarce(&h->l, all_of(h), &what));
	assert_int_equal(what, NS_MEMORY);
	h->l.sessions = (int32_t)h->count;
	assert_true(ns_guard_scarce(&h->l, all_of(h), &what) || h->l.sessions < NS_KEPT);
	assert_int_equal(what, NS_SESSIONS);
}

/* ---- Wrong secrets ---- */

/* How many can be tried from there by then, each as soon as it may be. */
static unsigned
tried(struct ns_tries *t, const char *from, uint64_t begin_s, uint64_t end_s)
{
	struct np_addr peer = address(from);
	uint64_t now = begin_s * NP_SEC;
	unsigned n = 0;

	while ((now = ns_guard_try(t, &peer, 4711, now)) < end_s * NP_SEC) {
		ns_guard_wrong(t, &peer, 4711, now);
		assert_true(++n < 100000);
	}
	return n;
}

static void
wrong_secrets_cost_a_pause_that_grows(void **state)
{
	static struct ns_tries t;
	struct np_addr peer = address("192.0.2.1"), other = address("198.51.100.1");
	const uint64_t now = 1000 * NP_SEC;
	uint64_t pause = 0;

	(void)state;
	for (int i = 0; i < NS_TRIES_FREE; i++) {
		assert_int_equal(ns_guard_try(&t, &peer, 4711, now), now);
		ns_guard_wrong(&t, &peer, 4711, now);
	}
	for (uint64_t at = now; pause < NS_PAUSE_MAX_MS * NP_MSEC;) {
		uint64_t next = ns_guard_try(&t, &peer, 4711, at);

		assert_true(next - at > pause);
		pause = next - at;
		at = next;
		ns_guard_wrong(&t, &peer, 4711, at);
	}
	assert_int_equal(pause, NS_PAUSE_MAX_MS * NP_MSEC);
	assert_int_equal(ns_guard_try(&t, &other, 4711, now), now);
	/* An hour of one address, which is a network of IPv6: others of it share the pause. */
	assert_in_range(tried(&t, "2001:db8::1", 2000, 5600), 1790, 1820);
	assert_int_equal(tried(&t, "2001:db8::2", 5600, 5601), 0);
	/* After a minute without one all is forgiven. */
	assert_int_equal(tried(&t, "2001:db8::2", 5700, 5701), NS_TRIES_FREE + 3);
}

static void
every_refusal_has_a_name_and_an_error(void **state)
{
	(void)state;
	for (int why = 0; why < NS_REFUSALS; why++) {
		assert_non_null(ns_refusal_name(why));
		assert_true(ns_refusal_errno(why) > 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_rules_everybody_may),
		cmocka_unit_test(deny_wins_over_allow),
		cmocka_unit_test(deny_alone_lets_the_others_in),
		cmocka_unit_test(ranges_that_are_none_are_named),
		cmocka_unit_test(empty_lists_are_no_rules),
		cmocka_unit_test(there_is_an_end_to_rules),
		cmocka_unit_test(files_have_a_rule_a_line),
		cmocka_unit_test(a_bad_file_changes_nothing),
		cmocka_unit_test(buckets_fill_at_a_rate),
		cmocka_unit_test(one_address_leaves_some_of_the_rate),
		cmocka_unit_test(sessions_begin_one_after_another),
		cmocka_unit_test(networks_take_turns),
		cmocka_unit_test(the_seed_chooses_who_shares_a_group),
		cmocka_unit_test(neighbours_share_a_group_by_chance_alone),
		cmocka_unit_test(sessions_are_limited_in_all_and_by_address),
		cmocka_unit_test(a_cid_is_limited_like_an_address),
		cmocka_unit_test(memory_is_shared),
		cmocka_unit_test(captures_are_shared),
		cmocka_unit_test(memory_beside_a_test_counts),
		cmocka_unit_test(no_wish_is_longer_than_a_test_may_be),
		cmocka_unit_test(a_laboratory_meets_no_limit),
		cmocka_unit_test(big_tests_of_one_network_leave_room),
		cmocka_unit_test(sessions_of_two_networks_leave_room),
		cmocka_unit_test(still_tests_make_room),
		cmocka_unit_test(what_is_left_for_some_is_scarce),
		cmocka_unit_test(wrong_secrets_cost_a_pause_that_grows),
		cmocka_unit_test(every_refusal_has_a_name_and_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
