/*
 * The daemon's limits and books: who is let in, and when no more.
 */
#include "netserver/guard.h"

#include "base/clock.h"
#include "net/capture.h"
#include "netserver/args.h"
#include "run/evidence.h"
#include "tests/lib/check.h"
#include "tests/lib/root.h"
#include "tests/lib/sockets.h"

/* ---- Who ---- */

static bool
lets(const struct ns_access *a, const char *text)
{
	struct np_addr peer = address("%s", text);

	return ns_access_admits(a, &peer);
}

TEST(without_rules_everybody_may)
{
	static const struct ns_access none;

	assert_true(lets(&none, "192.0.2.1"));
	assert_true(lets(&none, "2001:db8::1"));
}

TEST(deny_wins_over_allow)
{
	static struct ns_access a;
	struct np_err err;

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

TEST(deny_alone_lets_the_others_in)
{
	static struct ns_access a;
	struct np_err err;

	assert_int_equal(ns_access_add(&a, false, "192.0.2.1", &err), NP_OK);
	assert_false(lets(&a, "192.0.2.1"));
	assert_true(lets(&a, "192.0.2.2"));
}

TEST(ranges_that_are_none_are_named)
{
	static struct ns_access a;
	struct np_err err;

	assert_int_equal(ns_access_add(&a, true, "192.0.2.0/24,nonsense", &err), NP_EUSAGE);
	assert_has(err.msg, "nonsense");
}

/* A script's variable may be empty: that must not let everybody in. */
TEST(empty_lists_are_no_rules)
{
	static const char *const lists[] = { "", ",", "192.0.2.1,", ",192.0.2.1" };
	static struct ns_access a;
	struct np_err err;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		assert_int_equal(ns_access_add(&a, true, lists[i], &err), NP_EUSAGE);
	}
}

TEST(there_is_an_end_to_rules)
{
	static struct ns_access a;
	struct np_err err;

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
	char path[32];
	int rc;

	temp_file(path, text, strlen(text), 0600);
	rc = ns_access_read(a, path, err);
	unlink(path);
	return rc;
}

TEST(files_have_a_rule_a_line)
{
	static struct ns_access a;
	struct np_err err;

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

TEST(a_bad_file_changes_nothing)
{
	static const char *const bad[][2] = {
		{ "allow 192.0.2.1\npermit 192.0.2.2\n", "line 2: 'permit'" },
		{ "allow\n", "line 1: allow needs an address range" },
		{ "deny 192.0.2.300\n", "192.0.2.300" },
	};
	static struct ns_access a;
	struct np_err err;

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

TEST(buckets_fill_at_a_rate)
{
	const uint64_t each = NP_SEC / 10, window = 2 * NP_SEC, now = 1000 * NP_SEC;
	struct ns_bucket b = { 0 };

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
TEST(one_address_leaves_some_of_the_rate)
{
	struct np_addr greedy = address("192.0.2.1"), other = address("198.51.100.2");
	struct ns_limits l = { .rate = 100 };
	static struct ns_rates r;
	struct np_err err;
	int got = 0;

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
	struct np_addr a = address("%s", text);

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
TEST(sessions_begin_one_after_another)
{
	const uint64_t now = 1000 * NP_SEC;
	static struct ns_rates r;
	struct ns_limits l;

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

TEST(filters_of_a_second_are_shared)
{
	static const struct {
		const char *peer;
		int gets;
	} rows[] = {
		{ "192.0.2.1", 16 }, { "192.0.2.2", 8 }, { "198.51.100.1", 8 }, { "203.0.113.1", 0 }
	};
	static struct ns_rates r;
	struct ns_limits l = { .all = { [NP_RES_FILTERS] = 32 } };

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_addr peer = address("%s", rows[i].peer);
		struct np_err err;
		int got = 0;

		while (ns_guard_filter(&l, NULL, &peer, &r, 1000 * NP_SEC, &err) == NP_OK) {
			got++;
		}
		assert_int_equal(got, rows[i].gets);
	}
}

/* However many wait of one network, somebody else is next. */
TEST(networks_take_turns)
{
	struct ns_place greedy = place("192.0.2.1"), near = place("192.0.2.2"),
			other = place("198.51.100.2"), six = place("2001:db8::1"),
			near_six = place("2001:db8::2");
	struct ns_rates r = { .seed = 4711 };
	struct ns_limits l;

	ns_limits_init(&l);
	assert_false(ns_turns_before(&r.turns, greedy, other));
	assert_false(ns_turns_before(&r.turns, other, greedy));
	ns_guard_begin(&l, &r, greedy, 1000 * NP_SEC);
	assert_true(ns_turns_before(&r.turns, other, greedy));
	assert_true(ns_turns_before(&r.turns, other, near));
	assert_true(ns_turns_before(&r.turns, near, greedy));
	ns_guard_begin(&l, &r, other, 1001 * NP_SEC);
	assert_true(ns_turns_before(&r.turns, greedy, other));
	ns_guard_begin(&l, &r, six, 1002 * NP_SEC);
	assert_true(ns_turns_before(&r.turns, greedy, near_six));
	assert_false(ns_turns_before(&r.turns, near_six, six));
	assert_false(ns_turns_before(&r.turns, six, near_six));
}

/* Who knows the hash finds addresses that share a group; not who does not know the seed. */
TEST(the_seed_chooses_who_shares_a_group)
{
	struct np_addr a = address("192.0.2.1"), b = address("198.51.100.77");
	int together = 0;

	for (uint32_t seed = 0; seed < 4096; seed++) {
		together += ns_place_of(&a, seed).host == ns_place_of(&b, seed).host;
	}
	assert_in_range(together, 1, 4096 / 64);
}

/* Addresses that differ in the last byte are no more likely to do so than others: 1 in 256. */
TEST(neighbours_share_a_group_by_chance_alone)
{
	enum { SEEDS = 4096 };

	for (unsigned last = 2; last < 32; last++) {
		struct np_addr a = address("127.0.0.1"), b = address("127.0.0.%u", last);
		unsigned together = 0;

		for (uint32_t seed = 0; seed < SEEDS; seed++) {
			together += ns_place_of(&a, seed * 2654435761U).host ==
				    ns_place_of(&b, seed * 2654435761U).host;
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
		s[i] = (struct ns_session){
			.peer = address("%s", peers[i]),
			.idle_holds = { [NP_RES_SESSIONS] = 1, [NP_RES_MEMORY] = NP_SESSION_BYTES }
		};
		memcpy(s[i].holds, s[i].idle_holds, sizeof(s[i].holds));
		s[i].next = i + 1 < count ? &s[i + 1] : NULL;
	}
	return count > 0 ? s : NULL;
}

static enum ns_refusal
refusal(const struct ns_limits *l, const struct ns_session *list, const char *peer)
{
	struct np_addr a = address("%s", peer);
	enum ns_refusal why = NS_REFUSALS;
	struct np_err err = { .code = NP_OK };
	const uint64_t takes[NP_RESOURCES] = {
		[NP_RES_SESSIONS] = 1, [NP_RES_MEMORY] = NP_SESSION_BYTES
	};
	int rc = ns_guard_session(l, list, &a, takes, &why, &err);

	assert_int_equal(rc == NP_OK, why == NS_REFUSALS);
	if (rc != NP_OK) {
		assert_int_equal(err.sys, ns_refusals[why].sys);
		assert_has(err.msg, "netserver --max-");
	}
	return why;
}

TEST(sessions_are_limited_in_all_and_by_address)
{
	static const char *const peers[] = { "192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1" };
	struct ns_session s[MANY];
	struct ns_limits l;

	ns_limits_init(&l);
	sessions_from(s, peers, LEN(peers));
	assert_int_equal(refusal(&l, s, "192.0.2.1"), NS_REFUSALS);
	l.per_address = 2;
	assert_int_equal(refusal(&l, s, "192.0.2.1"), NS_ADDRESS);
	assert_int_equal(refusal(&l, s, "192.0.2.2"), NS_REFUSALS);
	l.per_address = 1; /* of IPv6 the /64 counts */
	assert_int_equal(refusal(&l, s, "2001:db8::ffff:1"), NS_ADDRESS);
	assert_int_equal(refusal(&l, s, "2001:db8:0:1::1"), NS_REFUSALS);
	l.all[NP_RES_SESSIONS] = 4;
	assert_int_equal(refusal(&l, s, "192.0.2.9"), NS_SESSIONS);
	l.all[NP_RES_SESSIONS] = 0;
	l.per_address = 0;
	assert_int_equal(refusal(&l, s, "192.0.2.1"), NS_REFUSALS);
	l.all[NP_RES_MEMORY] = 5 * NP_SESSION_BYTES;
	assert_int_equal(refusal(&l, s, "192.0.2.9"), NS_REFUSALS);
	l.all[NP_RES_MEMORY]--;
	assert_int_equal(refusal(&l, s, "192.0.2.9"), NS_MEMORY);
}

/* Each machine has one, which it cannot choose; so each is an owner and a network. */
TEST(a_cid_is_limited_like_an_address)
{
	static const char *const peers[] = { "vsock:3", "vsock:3", "vsock:4", "192.0.2.1" };
	struct ns_access access = { .allows = 0 };
	struct np_addr three = address("vsock:3"), four = address("vsock:4"),
		       ip = address("192.0.2.1");
	struct ns_session s[MANY];
	struct ns_limits l;
	struct np_err err;

	ns_limits_init(&l);
	sessions_from(s, peers, LEN(peers));
	l.per_address = 2;
	assert_int_equal(refusal(&l, s, "vsock:3"), NS_ADDRESS);
	assert_int_equal(refusal(&l, s, "vsock:4"), NS_REFUSALS);
	assert_int_equal(refusal(&l, s, "vsock:5"), NS_REFUSALS);
	assert_int_not_equal(ns_place_of(&three, 1).host, ns_place_of(&four, 1).host);
	assert_int_equal(ns_access_add(&access, true, "vsock:3,127.0.0.0/8", &err), NP_OK);
	assert_true(ns_access_admits(&access, &three));
	assert_false(ns_access_admits(&access, &four) || ns_access_admits(&access, &ip));
	assert_int_equal(ns_access_add(&access, false, "vsock:any", &err), NP_OK);
	assert_false(ns_access_admits(&access, &three));
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

/* Is that session's test granted that much memory beside what the session has? */
static bool
gets_memory(const struct ns_limits *l, const struct ns_session *list, const struct ns_session *s,
	    uint64_t bytes, const char *limit)
{
	struct np_wish wish = { .takes = { [NP_RES_MEMORY] = bytes } };
	struct np_err err = { .code = NP_OK };
	enum ns_refusal why;

	if (ns_guard_test(l, list, s, &wish, &why, &err) == NP_OK) {
		assert_true(wish.takes[NP_RES_MEMORY] == bytes);
		return true;
	}
	assert_int_equal(why, NS_MEMORY);
	assert_int_equal(err.sys, ENOMEM);
	assert_has(err.msg, limit);
	return false;
}

TEST(memory_is_shared)
{
	static const char *const peers[] = { "192.0.2.1", "192.0.2.2" };
	static const char total[] = "--max-total-memory", each[] = "--max-memory";
	const uint64_t all = (100 << 20) + 2 * NP_SESSION_BYTES, most = 64 << 20;
	struct ns_limits l = { .all = { [NP_RES_MEMORY] = total_with(all) },
			       .each.bytes = most + NP_SESSION_BYTES };
	struct ns_session s[MANY];

	sessions_from(s, peers, LEN(peers));
	assert_true(gets_memory(&l, s, &s[0], most, NULL));
	s[0].holds[NP_RES_MEMORY] += most;
	assert_false(gets_memory(&l, s, &s[1], most, total));
	assert_false(gets_memory(&l, s, &s[1], (36 << 20) + 1, total));
	assert_true(gets_memory(&l, s, &s[1], 36 << 20, NULL));
	/* A wish near the end of the numbers does not wrap around. */
	assert_false(gets_memory(&l, s, &s[1], UINT64_MAX, each));
	l.each.bytes = 0;
	assert_false(gets_memory(&l, s, &s[1], UINT64_MAX, total));
}

/* What a session that wants a capture asks for. */
static int
may_capture(const struct ns_limits *l, const struct ns_session *sessions,
	    const struct np_addr *peer, const uint64_t holds[NP_RESOURCES], struct np_err *err)
{
	uint64_t takes[NP_RESOURCES];
	enum ns_refusal why;

	memcpy(takes, holds, sizeof(takes));
	takes[NP_RES_CAPTURES] = 1;
	takes[NP_RES_MEMORY] += NP_CAPTURE_BYTES;
	return ns_guard_session(l, sessions, peer, takes, &why, err);
}

TEST(captures_are_shared)
{
	static const char *const peers[] = { "192.0.2.1", "192.0.2.1", "198.51.100.1",
					     "2001:db8::1" };
	struct np_addr greedy = address("192.0.2.1"), second = address("198.51.100.1"),
		       other = address("2001:db8::1");
	const uint64_t none[NP_RESOURCES] = { 0 },
		       takes[NP_RESOURCES] = { [NP_RES_MEMORY] = NP_SESSION_BYTES };
	struct ns_limits l = { .all = { [NP_RES_CAPTURES] = NS_CAPTURES } };
	struct ns_session s[MANY];
	struct np_err err;

	assert_int_equal(may_capture(&l, NULL, &greedy, none, &err), NP_OK);
	sessions_from(s, peers, LEN(peers));
	s[0].holds[NP_RES_CAPTURES] = 1;
	assert_int_equal(may_capture(&l, s, &greedy, none, &err), NP_OK);
	s[1].holds[NP_RES_CAPTURES] = 1;
	assert_int_equal(may_capture(&l, s, &greedy, none, &err), NP_EPEER);
	assert_has(err.msg, "--allow-raw");
	/* Two addresses do not have all of them. */
	assert_int_equal(may_capture(&l, s, &second, none, &err), NP_OK);
	s[2].holds[NP_RES_CAPTURES] = 1;
	assert_int_equal(may_capture(&l, s, &second, none, &err), NP_EPEER);
	assert_has(err.msg, "3 of 4 captures");
	/* Their memory counts. */
	l.all[NP_RES_MEMORY] = total_with(5 * NP_SESSION_BYTES + NP_CAPTURE_BYTES);
	assert_int_equal(may_capture(&l, s, &other, takes, &err), NP_OK);
	l.all[NP_RES_MEMORY]--;
	assert_int_equal(may_capture(&l, s, &other, takes, &err), NP_EPEER);
	assert_has(err.msg, "--max-total-memory");
}

/* What a session has beside its test counts while that runs, too, but not as the test's. */
TEST(memory_beside_a_test_counts)
{
	static const char *const peers[] = { "192.0.2.1" };
	struct ns_limits l = { .all = { [NP_RES_MEMORY] = total_with(10 << 20) },
			       .each.bytes = 9 << 20 };
	struct ns_session s[MANY];

	sessions_from(s, peers, LEN(peers));
	s[0].idle_holds[NP_RES_MEMORY] = 2 << 20;
	assert_true(gets_memory(&l, s, &s[0], 8 << 20, NULL));
	s[0].idle_holds[NP_RES_MEMORY]++;
	assert_false(gets_memory(&l, s, &s[0], 8 << 20, "--max-total-memory"));
}

TEST(no_wish_is_longer_than_a_test_may_be)
{
	struct ns_limits l = { .each.seconds = 60 };
	struct np_wish wish = { .seconds = 60 };

	assert_true(ns_guard_plausible(&l, &wish));
	wish.seconds = 61;
	assert_false(ns_guard_plausible(&l, &wish));
	wish.seconds = UINT32_MAX;
	assert_false(ns_guard_plausible(&l, &wish));
	l.each.seconds = 0;
	assert_true(ns_guard_plausible(&l, &wish));
}

TEST(no_wish_takes_what_only_the_daemon_counts)
{
	static const enum np_resource own[] = { NP_RES_SESSIONS, NP_RES_FILTERS, NP_RES_PASSED };
	const struct ns_limits l = { .all = { 0 } };

	for (size_t i = 0; i < LEN(own); i++) {
		struct np_wish wish = { .takes = { [NP_RES_FLOWS] = 1 } };

		assert_true(ns_guard_plausible(&l, &wish));
		wish.takes[own[i]] = 1;
		assert_false(ns_guard_plausible(&l, &wish));
	}
}

/* The defaults: 500 clients of one address, each with a test, and all of them under 512 MB. */
TEST(a_laboratory_meets_no_limit)
{
	/* TCP_STREAM at Linux's default of 128 KiB: a ring of two. With evidence, too. */
	const struct np_wish wanted = { .takes = { [NP_RES_MEMORY] = 256 << 10,
						   [NP_RES_PORTS] = 1,
						   [NP_RES_THREADS] = 1,
						   [NP_RES_FLOWS] = 1 } };
	struct np_addr peer = address("192.0.2.1");
	static struct ns_session s[500];
	enum ns_refusal why;
	struct ns_limits l;
	struct np_err err;

	ns_limits_init(&l);
	l.all[NP_RES_PORTS] = 28232;
	assert_true(l.all[NP_RES_MEMORY] < UINT64_C(512) * 1000 * 1000);
	for (size_t i = 0; i < LEN(s); i++) {
		struct ns_session *others = i > 0 ? &s[i - 1] : NULL;
		struct np_wish wish = wanted;

		s[i] = (struct ns_session){ .peer = peer,
					    .next = others,
					    .idle_holds = {
						[NP_RES_SESSIONS] = 1, [NP_RES_MEMORY] = TAKES } };
		assert_int_equal(ns_guard_session(&l, others, &peer, s[i].idle_holds, &why, &err),
				 NP_OK);
		assert_int_equal(ns_guard_test(&l, &s[i], &s[i], &wish, &why, &err), NP_OK);
		for (int g = 0; g < NP_RESOURCES; g++) {
			s[i].holds[g] = s[i].idle_holds[g] + wish.takes[g];
		}
	}
}

/* ---- Shares: what holds for one resource holds for each ---- */

enum { CROWD = 700, SHARES = 100, RESERVE = SHARES / NS_KEPT, BEGAN_S = 1000 };

/* A daemon that has SHARES shares of one resource, and any amount of all others. */
struct house {
	enum np_resource resource;
	uint64_t share, first; /* first: shares that are next to nothing */
	struct ns_limits l;
	struct ns_session s[CROWD];
	size_t count;
};

static struct house *
house(enum np_resource resource)
{
	static struct house h;

	memset(&h, 0, sizeof(h));
	h.resource = resource;
	h.share = ns_resources[resource].first > 1 ? ns_resources[resource].first / 2 : 1;
	h.first = ns_resources[resource].first / h.share;
	h.l.all[resource] = SHARES * h.share;
	h.l.all[NP_RES_SPIN] = resource == NP_RES_SPIN ? h.l.all[resource] : UINT32_MAX;
	return &h;
}

static struct ns_session *
all_of(struct house *h)
{
	return h->count > 0 ? &h->s[0] : NULL;
}

/* One more session of that address wants that many shares, and can do without some. How many it
 * gets. */
static uint64_t
gets(struct house *h, const char *from, uint64_t shares, uint64_t spares)
{
	struct ns_session *s = &h->s[h->count];
	struct np_err err = { .code = NP_OK };
	enum ns_refusal why = NS_REFUSALS;
	uint64_t wants[NP_RESOURCES] = { 0 };
	struct np_wish wish = { .seconds = 1 };
	int rc;

	assert_true(h->count < CROWD);
	wants[h->resource] = wish.takes[h->resource] = shares * h->share;
	wish.spares[h->resource] = spares * h->share;
	*s = (struct ns_session){ .peer = address("%s", from),
				  .place = place(from),
				  .fd = 1,
				  .moved_ns = BEGAN_S * NP_SEC };
	rc = h->resource == NP_RES_SESSIONS
		 ? ns_guard_session(&h->l, all_of(h), &s->peer, wants, &why, &err)
		 : ns_guard_test(&h->l, all_of(h), s, &wish, &why, &err);
	if (rc != NP_OK) {
		assert_int_equal(why, ns_resources[h->resource].why);
		assert_int_equal(err.sys, ns_refusals[why].sys);
		assert_has(err.msg, ns_resources[h->resource].option);
		return 0;
	}
	s->holds[h->resource] = wish.takes[h->resource];
	if (h->count > 0) {
		h->s[h->count - 1].next = s;
	}
	h->count++;
	return s->holds[h->resource] / h->share;
}

/* As many as it gets, one each. */
static uint64_t
gets_all(struct house *h, const char *from)
{
	uint64_t n = 0;

	while (gets(h, from, 1, 0) == 1) {
		n++;
	}
	return n;
}

static void
one_address_leaves_the_reserve(struct house *h)
{
	uint64_t left = RESERVE / 2;
	char text[40];

	assert_int_equal(gets_all(h, "192.0.2.1"), SHARES - RESERVE);
	for (int i = 2; left > 0; i++) {
		uint64_t got = left < h->first ? left : h->first;

		snprintf(text, sizeof(text), "192.0.2.%d", i);
		assert_int_equal(gets_all(h, text), got);
		left -= got;
	}
	assert_int_equal(gets(h, "192.0.2.77", 1, 0), 0);
	assert_int_equal(gets_all(h, "198.51.100.1"), h->first);
	assert_int_equal(gets_all(h, "198.51.100.2"), 0);
}

/* Many addresses of one network, one share each: IPv4 and IPv6. */
static void
one_network_leaves_half_of_the_reserve(struct house *h)
{
	char text[40];
	uint64_t got = 0;

	for (int i = 1; i < 255; i++) {
		snprintf(text, sizeof(text), "192.0.2.%d", i);
		got += gets(h, text, 1, 0);
	}
	assert_int_equal(got, SHARES - RESERVE / 2);
	h = house(h->resource);
	got = 0;
	for (int i = 0; i < 255; i++) {
		snprintf(text, sizeof(text), "2001:db8:7:%x::1", i);
		got += gets(h, text, 1, 0);
	}
	assert_int_equal(got, SHARES - RESERVE / 2);
	assert_int_equal(gets_all(h, "2001:db8:8::1"), h->first);
	assert_int_equal(gets(h, "203.0.113.1", 1, 0), 1);
}

static struct ns_session *
still(struct house *h, const char *from, uint64_t now_s)
{
	struct np_addr peer = address("%s", from);

	return ns_guard_idle(all_of(h), &peer, h->resource, 4711, now_s * NP_SEC);
}

/* Who moves nothing makes room for any other address, whichever network that is of. */
static void
the_still_one_is_ended(struct house *h)
{
	static const char *const others[] = { "192.0.2.2", "198.51.100.1", "2001:db8::1" };

	assert_int_equal(gets(h, "192.0.2.2", 1, 0), 1);
	assert_int_equal(gets(h, "198.51.100.1", 1, 0), 1);
	assert_int_equal(gets_all(h, "192.0.2.1"), SHARES - RESERVE - 2);
	for (size_t i = 0; i < LEN(others); i++) {
		assert_null(still(h, others[i], BEGAN_S + NS_IDLE_S - 1));
		assert_ptr_equal(still(h, others[i], BEGAN_S + NS_IDLE_S), &h->s[2]);
	}
	/* Nobody gets room from who has less than he. */
	assert_null(still(h, "192.0.2.1", 2 * BEGAN_S));
	for (size_t i = 2; i < h->count; i++) {
		h->s[i].moved_ns = 2 * BEGAN_S * NP_SEC;
	}
	/* It is the network that holds most; its own neighbour has no more than this one. */
	assert_ptr_equal(still(h, "2001:db8::1", 2 * BEGAN_S), &h->s[0]);
	assert_ptr_equal(still(h, "198.51.100.1", 2 * BEGAN_S), &h->s[0]);
	assert_null(still(h, "192.0.2.1", 2 * BEGAN_S));
	/* Who has none of it gives none. */
	h->s[0].holds[h->resource] = 0;
	assert_ptr_equal(still(h, "2001:db8::1", 2 * BEGAN_S), &h->s[1]);
	/* Between networks it is what they hold that counts, not what one address has. */
	h = house(h->resource);
	gets(h, "192.0.2.1", 1, 0);
	gets(h, "192.0.2.1", 1, 0);
	gets(h, "198.51.100.1", 1, 0);
	gets(h, "198.51.100.2", 1, 0);
	assert_null(still(h, "198.51.100.1", 2 * BEGAN_S));
}

/* What is left is granted to who can do with it, and to nobody else. */
static void
less_will_do(struct house *h)
{
	if (h->resource == NP_RES_SESSIONS) {
		return;
	}
	assert_int_equal(gets(h, "192.0.2.1", SHARES, SHARES - 1), SHARES - RESERVE);
	assert_int_equal(gets(h, "192.0.2.1", 5, 4), 0);
	assert_int_equal(gets(h, "198.51.100.1", 5, 4 - h->first), 0);
	assert_int_equal(gets(h, "198.51.100.1", 5, 4), h->first);
}

/* It is scarce as soon as somebody has a part of the reserve. */
static bool
is_scarce(const struct house *h, const struct ns_session *sessions)
{
	uint64_t held = 0;

	for (; sessions != NULL; sessions = sessions->next) {
		held += sessions->holds[h->resource];
	}
	return ns_guard_scarce(&h->l, h->resource, held);
}

static void
the_reserve_is_refilled(struct house *h)
{
	assert_false(is_scarce(h, NULL));
	gets_all(h, "192.0.2.1");
	assert_false(is_scarce(h, all_of(h)));
	assert_int_equal(gets(h, "192.0.2.2", 1, 0), 1);
	assert_true(is_scarce(h, all_of(h)));
	h->l.all[h->resource] = 0;
	assert_false(is_scarce(h, all_of(h)));
}

TEST(each_resource_has_shares_a_reserve_and_an_end)
{
	static void (*const rules[])(struct house *) = { one_address_leaves_the_reserve,
							 one_network_leaves_half_of_the_reserve,
							 the_still_one_is_ended, less_will_do,
							 the_reserve_is_refilled };

	for (int g = 0; g < NP_RESOURCES; g++) {
		for (size_t i = 0; i < LEN(rules); i++) {
			print_message("%s, rule %zu\n", ns_resources[g].label, i);
			rules[i](house((enum np_resource)g));
		}
	}
}

/* Each is limited by an option that there is, and told by metrics of its own. */
TEST(each_resource_has_an_option_and_metrics)
{
	for (int g = 0; g < NP_RESOURCES; g++) {
		const struct ns_resource *row = &ns_resources[g];
		size_t at = 0;

		assert_int_equal(ns_resource_of(row->why), g);
		while (at < ns_options.count &&
		       (ns_options.rows[at].name == NULL ||
			strcmp(ns_options.rows[at].name, row->option + 2) != 0)) {
			at++;
		}
		assert_true(at < ns_options.count);
		for (int other = 0; other < g; other++) {
			assert_string_not_equal(row->metric, ns_resources[other].metric);
		}
	}
	assert_int_equal(ns_resource_of(NS_RATE), NP_RESOURCES);
}

/* Of what is taken one by one: as long as enough is left nobody is counted. */
TEST(one_more_has_room_by_the_same_rule)
{
	struct house *h = house(NP_RES_PASSED);
	struct ns_session newcomer = { .peer = address("198.51.100.1") };

	assert_int_equal(gets_all(h, "192.0.2.1"), SHARES - RESERVE);
	assert_true(ns_guard_more(&h->l, all_of(h), &h->s[0], h->resource, 1));
	assert_false(ns_guard_more(&h->l, all_of(h), &h->s[0], h->resource, SHARES - RESERVE));
	newcomer.next = all_of(h);
	for (uint64_t n = 0; n < h->first; n++) {
		assert_true(
		    ns_guard_more(&h->l, &newcomer, &newcomer, h->resource, SHARES - RESERVE + n));
		newcomer.holds[h->resource]++;
	}
	assert_false(
	    ns_guard_more(&h->l, &newcomer, &newcomer, h->resource, SHARES - RESERVE + h->first));
}

/* Many addresses with one each are more than one address with two, if they are of one network. */
TEST(a_network_makes_room_before_an_address)
{
	const struct ns_place many = { .host = 1, .net = 1 }, one = { .host = 7, .net = 2 };
	struct ns_weights w = { .net = { 0 } };

	ns_weights_add(&w, one, 2);
	for (unsigned i = 1; i <= 3; i++) {
		ns_weights_add(&w, (struct ns_place){ .host = i, .net = 1 }, 1);
	}
	assert_true(ns_holds_more(&w, many, one));
	assert_false(ns_holds_more(&w, one, many));
	ns_weights_add(&w, (struct ns_place){ .host = 2, .net = 1 }, 1);
	assert_true(ns_holds_more(&w, (struct ns_place){ .host = 2, .net = 1 }, many));
	assert_false(ns_holds_more(&w, many, many));
}

/* Of two there is one for somebody else; of one there is none. */
TEST(few_processors_are_shared)
{
	struct house *h = house(NP_RES_SPIN);

	h->l.all[NP_RES_SPIN] = 2;
	assert_int_equal(gets(h, "192.0.2.1", 2, 0), 0);
	assert_int_equal(gets(h, "192.0.2.1", 2, 1), 1);
	assert_int_equal(gets(h, "192.0.2.1", 1, 0), 0);
	assert_int_equal(gets(h, "192.0.2.2", 1, 0), 1);
	h = house(NP_RES_SPIN);
	h->l.all[NP_RES_SPIN] = 1;
	assert_int_equal(gets(h, "192.0.2.1", 4, 3), 1);
	assert_int_equal(gets(h, "198.51.100.1", 1, 0), 0);
	h = house(NP_RES_SPIN);
	h->l.all[NP_RES_SPIN] = 0;
	assert_int_equal(gets(h, "192.0.2.1", 1, 0), 0);
}

static bool
fits_alone(const struct house *h, const struct ns_session *s, const struct np_wish *wish)
{
	struct np_wish granted = *wish;
	enum ns_refusal why;

	return ns_guard_test(&h->l, NULL, s, &granted, &why, NULL) == NP_OK;
}

/* Whoever waits for room can have it one day. */
TEST(nobody_waits_for_what_there_never_is)
{
	struct house *h = house(NP_RES_PORTS);
	struct np_wish wish = { .takes = { [NP_RES_PORTS] = SHARES - RESERVE } };
	struct ns_session s = { .fd = 1 };

	assert_true(fits_alone(h, &s, &wish));
	wish.takes[NP_RES_PORTS]++;
	assert_false(fits_alone(h, &s, &wish));
	wish.spares[NP_RES_PORTS] = 1;
	assert_true(fits_alone(h, &s, &wish));
	wish.takes[NP_RES_MEMORY] = 1;
	h->l.each.bytes = NP_SESSION_BYTES;
	assert_false(fits_alone(h, &s, &wish));
}

/* Who waits for his turn, or is told to go already, makes no room. */
TEST(only_the_still_make_room)
{
	struct house *h = house(NP_RES_MEMORY);
	struct ns_session *s = &h->s[0];

	assert_int_equal(gets(h, "192.0.2.1", 50, 0), 50);
	assert_ptr_equal(still(h, "203.0.113.1", 2 * BEGAN_S), s);
	s->waiting_ns = 1;
	assert_null(still(h, "203.0.113.1", 2 * BEGAN_S));
	s->waiting_ns = 0;
	s->room_until_ns = 1;
	assert_null(still(h, "203.0.113.1", 2 * BEGAN_S));
	s->room_until_ns = 0;
	s->ending = true;
	assert_null(still(h, "203.0.113.1", 2 * BEGAN_S));
	s->ending = false;
	s->fd = -1;
	assert_null(still(h, "203.0.113.1", 2 * BEGAN_S));
}

/* ---- Processors ---- */

TEST(an_address_has_its_share_of_the_processors)
{
	struct ns_session s[4] = { 0 };
	const struct np_addr honest = address("203.0.113.1"), greedy = address("192.0.2.1");

	for (int i = 0; i < 4; i++) {
		s[i].next = i < 3 ? &s[i + 1] : NULL;
		s[i].peer = i < 3 ? greedy : honest;
	}
	s[0].holds[NP_RES_THREADS] = 2;
	assert_false(ns_guard_shared(s, &greedy)); /* a session without a test is no matter */
	assert_true(ns_guard_shared(s, &honest));
	s[3].holds[NP_RES_THREADS] = 2;
	assert_true(ns_guard_shared(s, &greedy));
	/* As long as there is a processor for each thread nothing is changed. */
	assert_int_equal(ns_guard_nice(s, &greedy, 4), 0);
	assert_int_equal(ns_guard_nice(s, &greedy, 2), NS_NICE);
	assert_int_equal(ns_guard_nice(s, &honest, 2), NS_NICE);
	/* Twice as many threads, in all its sessions, are four steps of a fifth each. */
	s[1].holds[NP_RES_THREADS] = 2;
	assert_int_equal(ns_guard_nice(s, &greedy, 2), NS_NICE + 4);
	assert_int_equal(ns_guard_nice(s, &honest, 2), NS_NICE);
	s[2].holds[NP_RES_THREADS] = 1000;
	assert_int_equal(ns_guard_nice(s, &greedy, 2), NS_NICE_MOST);
	assert_int_equal(ns_guard_nice(s, &greedy, 1000), NS_NICE + 1);
}

/* ---- Wrong secrets ---- */

/* How many can be tried from there by then, each as soon as it may be. */
static unsigned
tried(struct ns_tries *t, const char *from, uint64_t begin_s, uint64_t end_s)
{
	struct np_addr peer = address("%s", from);
	uint64_t now = begin_s * NP_SEC;
	unsigned n = 0;

	while ((now = ns_guard_try(t, &peer, now)) < end_s * NP_SEC) {
		ns_guard_wrong(t, &peer, now);
		assert_true(++n < 100000);
	}
	return n;
}

TEST(wrong_secrets_of_an_address_are_few)
{
	static struct ns_tries t;
	struct np_addr neighbour = address("192.0.2.2"), other = address("2001:db8:1::1");

	/* An hour. Neighbours do not notice one address. */
	assert_in_range(tried(&t, "192.0.2.1", 1000, 4600), 1800, 1800 + NS_TRY_BURST);
	assert_int_equal(ns_guard_try(&t, &neighbour, 4600 * NP_SEC), 4600 * NP_SEC);
	/* Who has one address of IPv6 has a /64. */
	assert_in_range(tried(&t, "2001:db8::1", 2000, 5600), 1800, 1800 + NS_TRY_BURST);
	assert_int_equal(tried(&t, "2001:db8::2", 5599, 5600), 0);
	assert_int_equal(ns_guard_try(&t, &other, 5600 * NP_SEC), 5600 * NP_SEC);
	/* After a while without one all are free again. */
	assert_int_equal(tried(&t, "2001:db8::2", 5610, 5611), NS_TRY_BURST);
}

/* All /64s of a site in turn, each until it has to wait. */
static unsigned
tried_by_site(struct ns_tries *t, unsigned site, uint64_t begin_s, uint64_t end_s)
{
	unsigned n = 0, waits = 0;
	uint64_t now = begin_s * NP_SEC;

	for (unsigned host = 0; now < end_s * NP_SEC; host = (host + 1) % 3000) {
		struct np_addr peer = address("2001:db8:%x:%x::1", site, host);
		uint64_t when = ns_guard_try(t, &peer, now);

		if (when <= now) {
			ns_guard_wrong(t, &peer, now);
			n++;
			waits = 0;
		} else if (++waits == 100) { /* it is not this address alone that waits */
			now += NS_TRY_NET_MS * NP_MSEC / 10;
			waits = 0;
		}
	}
	return n;
}

TEST(wrong_secrets_of_a_network_are_few_and_no_stranger_pays)
{
	static struct ns_tries t;
	unsigned most = NS_TRY_NET_BURST + 60 * 1000 / NS_TRY_NET_MS, strangers = 0;

	assert_in_range(tried_by_site(&t, 1, 1000, 1060), most / 2, most);
	for (unsigned i = 0; i < 5000; i++) { /* there are more than rows */
		struct np_addr peer = address("2001:db8:%x::1", 2 + i);

		strangers += ns_guard_try(&t, &peer, 1060 * NP_SEC) == 1060 * NP_SEC;
	}
	assert_int_equal(strangers, 5000);
}

TEST(who_has_more_networks_than_rows_is_forgotten_first)
{
	static struct ns_tries t;
	struct np_addr greedy = address("192.0.2.1");
	const uint64_t now = 1000 * NP_SEC;

	for (int i = 0; i < NS_TRY_BURST; i++) {
		ns_guard_wrong(&t, &greedy, now);
	}
	for (unsigned i = 0; i < 4 * NS_TRY_ROWS; i++) {
		struct np_addr peer = address("2001:db8:%x::1", i);

		assert_int_equal(ns_guard_try(&t, &peer, now), now);
		ns_guard_wrong(&t, &peer, now);
	}
	assert_true(ns_guard_try(&t, &greedy, now) > now);
}

TEST(every_refusal_has_a_name_and_an_error)
{
	for (int why = 0; why < NS_REFUSALS; why++) {
		assert_non_null(ns_refusals[why].name);
		assert_true(ns_refusals[why].sys > 0);
	}
}

TEST_MAIN()
