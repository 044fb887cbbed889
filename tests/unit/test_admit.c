/*
 * Who is let in: the state machine that a daemon's first messages go through. That messages come
 * whole is the channel's business (test_chan.c).
 */
#include "netserver/admit.h"

#include "tests/lib/check.h"

/* One message's outcome. */
struct step {
	enum ns_admission admission;
	bool has_reply;
	uint8_t reply[NP_FRAME_SIZE];
	struct np_err why;
};

static struct step
give_frame(struct ns_admit *a, const uint8_t frame[NP_FRAME_SIZE])
{
	struct step s;

	a->has_reply = true;
	s.admission = ns_admit_step(a, frame, &s.why);
	s.has_reply = a->has_reply;
	memcpy(s.reply, a->reply, sizeof(s.reply));
	return s;
}

static struct step
give(struct ns_admit *a, uint32_t code, np_layout *layout, const void *m)
{
	struct np_head head = { .code = code, .word = -1 };
	uint8_t frame[NP_FRAME_SIZE];

	np_frame_put(frame, &head, layout, m);
	return give_frame(a, frame);
}

static struct step
give_text(struct ns_admit *a, const char *text)
{
	struct np_text m = { .text = "" };

	strcpy(m.text, text);
	return give(a, NP_PASSPHRASE, np_text_layout, &m);
}

static void
assert_step(const struct step *s, enum ns_admission admission, bool has_reply)
{
	assert_int_equal(s->admission, admission);
	assert_int_equal(s->has_reply, has_reply);
}

/* Nothing that comes after a refusal helps. */
static void
assert_shut(struct ns_admit *a)
{
	static const uint32_t codes[] = { NP_PASSPHRASE, NP_OMNI, NP_AUTH_HELLO, NP_AUTH_PROOF };

	for (size_t i = 0; i < LEN(codes); i++) {
		struct np_auth_body m = { .version = NP_AUTH_VERSION };
		struct step s = give(a, codes[i], np_auth_body_layout, &m);

		assert_step(&s, NS_ADMIT_REFUSED, false);
		assert_false(ns_admit_is_in(a));
	}
}

/* Refused for good, with an error and a text, or without a word. */
static void
assert_refused(struct ns_admit *a, const struct step *s, uint32_t code, int error, const char *text)
{
	assert_step(s, NS_ADMIT_REFUSED, text != NULL);
	assert_int_equal(s->why.code, NP_EPEER);
	if (text != NULL) {
		struct np_err err;
		struct np_why m;

		assert_int_equal(np_frame_head(s->reply).code, code);
		assert_int_equal(np_frame_head(s->reply).word, error);
		assert_int_equal(np_frame_get(s->reply, np_why_layout, &m, &err), NP_OK);
		assert_int_equal(m.magic, NP_WHY_MAGIC);
		assert_string_equal(m.text, text);
	}
	assert_shut(a);
}

static const uint32_t requests[] = { 0,         NP_DEBUG_ON, NP_CPU_CALIBRATE, NP_TCP_STREAM,
				     NP_OMNI,   NP_TCP_CC,   NP_SYSINFO,       12345,
				     UINT32_MAX };

/* ---- Nothing is demanded ---- */

TEST(an_open_door_lets_everything_pass)
{
	struct ns_admit a = { .state = NS_ADMIT_NEW };

	assert_true(ns_admit_is_in(&a));
	for (size_t i = 0; i < LEN(requests); i++) {
		struct step s = give(&a, requests[i], NULL, NULL);

		assert_step(&s, NS_ADMIT_IN, false);
	}
	/* The session answers what it does not know, and a passphrase not at all. */
	assert_int_equal(give(&a, NP_AUTH_HELLO, NULL, NULL).admission, NS_ADMIT_IN);
	assert_int_equal(give_text(&a, "sesame").admission, NS_ADMIT_IN);
}

/* ---- A passphrase ---- */

static void
assert_lets_in(const char *wanted, const char *text)
{
	struct ns_admit a = { .passphrase = wanted };
	struct step s;

	assert_false(ns_admit_is_in(&a));
	s = give_text(&a, text);
	assert_step(&s, NS_ADMIT_MORE, false);
	assert_true(ns_admit_is_in(&a));
	/* From here on all is the session's, later passphrases included. */
	assert_int_equal(give(&a, NP_OMNI, NULL, NULL).admission, NS_ADMIT_IN);
	assert_int_equal(give_text(&a, "wrong").admission, NS_ADMIT_IN);
	assert_int_equal(give(&a, NP_AUTH_HELLO, NULL, NULL).admission, NS_ADMIT_IN);
}

TEST(the_right_passphrase_lets_in)
{
	char longest[NP_FRAME_SIZE - 8];

	assert_lets_in("open sesame", "open sesame");
	assert_lets_in("x", "x");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_lets_in(longest, longest);
}

TEST(what_stands_behind_a_passphrase_does_not_matter)
{
	struct np_head head = { .code = NP_PASSPHRASE, .word = -1 };
	struct ns_admit a = { .passphrase = "sesame" };
	struct np_text m = { .text = "sesame" };
	uint8_t frame[NP_FRAME_SIZE];

	/* Real clients leave there what was in the buffer before. */
	np_frame_put(frame, &head, np_text_layout, &m);
	memset(frame + 8 + 7, '!', sizeof(frame) - 8 - 7);
	assert_int_equal(give_frame(&a, frame).admission, NS_ADMIT_MORE);
}

TEST(any_other_passphrase_is_not_answered)
{
	static const char *const wrong[] = { "", "sesam", "sesame ", "sesamf", "Sesame", "tesame" };
	struct np_head head = { .code = NP_PASSPHRASE, .word = -1 };
	struct ns_admit a = { .passphrase = "sesame" };
	uint8_t frame[NP_FRAME_SIZE];
	struct step s;

	for (size_t i = 0; i < LEN(wrong); i++) {
		a = (struct ns_admit){ .passphrase = "sesame" };
		s = give_text(&a, wrong[i]);
		assert_refused(&a, &s, 0, 0, NULL);
		assert_has(s.why.msg, "wrong passphrase");
		assert_int_equal(give_text(&a, "sesame").admission, NS_ADMIT_REFUSED);
	}
	/* One without an end. */
	a = (struct ns_admit){ .passphrase = "sesame" };
	np_frame_put(frame, &head, NULL, NULL);
	memset(frame + 8, 's', sizeof(frame) - 8);
	s = give_frame(&a, frame);
	assert_refused(&a, &s, 0, 0, NULL);
}

TEST(no_request_passes_before_the_passphrase)
{
	for (size_t i = 0; i < LEN(requests); i++) {
		struct ns_admit a = { .passphrase = "sesame" };
		struct step s = give(&a, requests[i], NULL, NULL);

		assert_refused(&a, &s, 0, 0, NULL);
		assert_has(s.why.msg, "without the passphrase");
	}
}

/* ---- A key ---- */

static const struct np_auth_key key = { .bytes = "0123456789abcdef", .count = 16 };

TEST(a_key_is_wanted_before_any_request)
{
	for (size_t i = 0; i < LEN(requests); i++) {
		struct ns_admit a = { .key = &key };
		struct step s = give(&a, requests[i], NULL, NULL);
		uint32_t code = requests[i] == NP_DEBUG_ON        ? NP_DEBUG_OK
				: requests[i] == NP_CPU_CALIBRATE ? NP_CPU_CALIBRATE
								  : requests[i] + 1;

		assert_refused(&a, &s, code, EACCES, "this daemon needs --key-file");
		assert_has(s.why.msg, "without the key");
	}
}

TEST(a_passphrase_does_for_no_key)
{
	struct ns_admit a = { .key = &key, .passphrase = "sesame" };
	struct step s = give_text(&a, "sesame");

	assert_refused(&a, &s, NP_PASSPHRASE + 1, EACCES, "this daemon needs --key-file");
}

TEST(a_proof_without_a_challenge_is_refused)
{
	struct np_auth_body proof = { .version = NP_AUTH_VERSION };
	struct ns_admit a = { .key = &key };
	struct step s;

	if (np_auth_built()) {
		/* Not even one that fits the nonces that the struct begins with. */
		const struct np_auth_scope scope = { a.client_nonce, a.server_nonce, a.ends };

		np_auth_prove(&key, NP_AUTH_CLIENT, &scope, proof.bytes);
	}
	s = give(&a, NP_AUTH_PROOF, np_auth_body_layout, &proof);
	assert_refused(&a, &s, NP_AUTH_WELCOME, EACCES,
		       "messages of --key-file in the wrong order");
}

/* The ends of a connection, as a client sees them. */
static const uint8_t ends[NP_AUTH_ENDS] = { 4, 192, 0, 2, 1, [19] = 4, 192, 0, 2, 2 };

static struct ns_admit
fresh(void)
{
	struct ns_admit a = { .key = &key };

	memcpy(a.ends, ends, sizeof(ends));
	return a;
}

static struct step
say_hello_as(struct ns_admit *a, struct np_auth_body *hello, uint32_t version)
{
	hello->version = version;
	np_auth_nonce(hello->bytes);
	return give(a, NP_AUTH_HELLO, np_auth_body_layout, hello);
}

static struct step
say_hello(struct ns_admit *a, struct np_auth_body *hello)
{
	return say_hello_as(a, hello, NP_AUTH_VERSION);
}

TEST(a_second_hello_is_refused)
{
	struct ns_admit a = { .key = &key };
	struct np_auth_body hello;
	struct step s = say_hello(&a, &hello);

	assert_step(&s, NS_ADMIT_MORE, true);
	assert_false(ns_admit_is_in(&a));
	s = say_hello(&a, &hello);
	assert_refused(&a, &s, NP_AUTH_CHALLENGE, EACCES,
		       "messages of --key-file in the wrong order");
}

TEST(a_request_between_hello_and_proof_is_refused)
{
	struct ns_admit a = { .key = &key };
	struct np_auth_body hello;
	struct step s;

	say_hello(&a, &hello);
	s = give(&a, NP_OMNI, NULL, NULL);
	assert_refused(&a, &s, NP_OMNI + 1, EACCES, "this daemon needs --key-file");
}

TEST(another_version_is_refused)
{
	static const uint32_t versions[] = { 0, 3, UINT32_MAX };

	for (size_t i = 0; i < LEN(versions); i++) {
		struct np_auth_body m = { .version = versions[i] };
		struct ns_admit a = { .key = &key };
		struct step s = give(&a, NP_AUTH_HELLO, np_auth_body_layout, &m);

		assert_refused(&a, &s, NP_AUTH_CHALLENGE, EPROTONOSUPPORT,
			       "this daemon has another version of --key-file");
	}
}

TEST(challenges_differ)
{
	struct np_auth_body hello = { .version = NP_AUTH_VERSION }, first, second;
	struct ns_admit a = { .key = &key }, b = { .key = &key };
	struct np_err err;
	struct step s;

	s = give(&a, NP_AUTH_HELLO, np_auth_body_layout, &hello);
	assert_int_equal(np_frame_get(s.reply, np_auth_body_layout, &first, &err), NP_OK);
	s = give(&b, NP_AUTH_HELLO, np_auth_body_layout, &hello);
	assert_int_equal(np_frame_get(s.reply, np_auth_body_layout, &second, &err), NP_OK);
	assert_memory_not_equal(first.bytes, second.bytes, NP_AUTH_BYTES / 2);
}

/* Answer the challenge with that key, as that side. */
static struct step
prove(struct ns_admit *a, const struct np_auth_body *hello, const struct step *challenge,
      const struct np_auth_key *with, enum np_auth_side side, struct np_auth_body *proof)
{
	struct np_auth_body m;
	const struct np_auth_scope scope = { hello->bytes, m.bytes,
					     hello->version == NP_AUTH_LOOSE ? NULL : ends };
	struct np_err err;

	assert_int_equal(np_frame_head(challenge->reply).code, NP_AUTH_CHALLENGE);
	assert_int_equal(np_frame_head(challenge->reply).word, 0);
	assert_int_equal(np_frame_get(challenge->reply, np_auth_body_layout, &m, &err), NP_OK);
	assert_int_equal(m.version, hello->version);
	proof->version = hello->version;
	np_auth_prove(with, side, &scope, proof->bytes);
	return give(a, NP_AUTH_PROOF, np_auth_body_layout, proof);
}

static void
lets_in_by(struct ns_admit a, uint32_t version)
{
	static const uint8_t zeros[NP_AUTH_BYTES];
	struct np_auth_body hello, proof, challenge, welcome;
	const struct np_auth_scope scope = { hello.bytes, challenge.bytes,
					     version == NP_AUTH_LOOSE ? NULL : ends };
	struct np_err err;
	struct step s, last;

	s = say_hello_as(&a, &hello, version);
	last = prove(&a, &hello, &s, &key, NP_AUTH_CLIENT, &proof);
	assert_step(&last, NS_ADMIT_MORE, true);
	assert_true(ns_admit_is_in(&a));
	assert_int_equal(np_frame_head(last.reply).code, NP_AUTH_WELCOME);
	assert_int_equal(np_frame_head(last.reply).word, 0);
	assert_int_equal(np_frame_get(s.reply, np_auth_body_layout, &challenge, &err), NP_OK);
	assert_int_equal(np_frame_get(last.reply, np_auth_body_layout, &welcome, &err), NP_OK);
	assert_int_equal(welcome.version, version);
	assert_true(np_auth_check(&key, NP_AUTH_SERVER, &scope, welcome.bytes));
	assert_memory_equal(a.client_nonce, zeros, sizeof(zeros));
	assert_memory_equal(a.server_nonce, zeros, sizeof(zeros));
	assert_int_equal(give(&a, NP_OMNI, NULL, NULL).admission, NS_ADMIT_IN);
	/* The session answers that it does not know it. */
	assert_int_equal(give(&a, NP_AUTH_HELLO, NULL, NULL).admission, NS_ADMIT_IN);
}

TEST(the_right_key_lets_in)
{
	struct ns_admit a = fresh();

	skip_if(!np_auth_built(), "built without libsodium");
	lets_in_by(a, NP_AUTH_VERSION);
	a.nat = true;
	lets_in_by(a, NP_AUTH_VERSION);
}

/* It matters only where it is allowed to, and then the ends do not. */
TEST(a_proof_without_the_ends_is_for_a_nat)
{
	struct ns_admit a = fresh();
	struct np_auth_body m;
	struct step s;

	skip_if(!np_auth_built(), "built without libsodium");
	s = say_hello_as(&a, &m, NP_AUTH_LOOSE);
	assert_refused(&a, &s, NP_AUTH_CHALLENGE, EPROTONOSUPPORT,
		       "a proof of the key without addresses (for a NAT) is not accepted here "
		       "(netserver --nat)");
	a = fresh();
	a.nat = true;
	a.ends[4]++;
	lets_in_by(a, NP_AUTH_LOOSE);
}

/* Whoever stands between has a connection of his own: other ports at least. */
TEST(a_relayed_proof_is_refused)
{
	skip_if(!np_auth_built(), "built without libsodium");
	for (size_t i = 0; i < NP_AUTH_ENDS; i++) {
		struct ns_admit a = fresh();
		struct np_auth_body hello, proof;
		struct step s;

		a.nat = i % 2 == 1; /* who proves them is held to them */
		a.ends[i] ^= 1;
		s = say_hello(&a, &hello);
		s = prove(&a, &hello, &s, &key, NP_AUTH_CLIENT, &proof);
		assert_refused(&a, &s, NP_AUTH_WELCOME, EACCES,
			       "this daemon has another key in its --key-file");
		assert_has(s.why.msg, "there is a relay or a NAT on the path");
		assert_true(a.wrong);
	}
}

/* What was promised in HELLO holds for the proof. */
TEST(a_proof_of_the_other_version_is_refused)
{
	static const uint32_t versions[] = { NP_AUTH_LOOSE, NP_AUTH_VERSION };

	for (size_t i = 0; i < LEN(versions); i++) {
		struct ns_admit a = fresh();
		struct np_auth_body m;
		struct step s;

		a.nat = true;
		say_hello_as(&a, &m, versions[i]);
		m.version = versions[1 - i];
		s = give(&a, NP_AUTH_PROOF, np_auth_body_layout, &m);
		assert_refused(&a, &s, NP_AUTH_WELCOME, EACCES,
			       "messages of --key-file in the wrong order");
	}
}

/* A secret is tried once, and only then counts as one that was. */
TEST(tries_are_told)
{
	struct np_auth_body m = { .version = NP_AUTH_VERSION };
	struct ns_admit by_key = { .key = &key }, by_word = { .passphrase = "sesame" };
	uint8_t frame[NP_FRAME_SIZE];
	struct np_head head = { .code = NP_AUTH_PROOF, .word = -1 };

	np_frame_put(frame, &head, np_auth_body_layout, &m);
	assert_false(ns_admit_tries(&by_key, frame));
	assert_false(ns_admit_tries(&by_word, frame));
	say_hello(&by_key, &m);
	assert_true(ns_admit_tries(&by_key, frame));
	assert_false(by_key.wrong);
	head.code = NP_PASSPHRASE;
	np_frame_put(frame, &head, NULL, NULL);
	assert_false(ns_admit_tries(&by_key, frame));
	assert_true(ns_admit_tries(&by_word, frame));
	assert_int_equal(give_frame(&by_word, frame).admission, NS_ADMIT_REFUSED);
	assert_true(by_word.wrong);
	assert_false(ns_admit_tries(&by_word, frame));
	by_word = (struct ns_admit){ .passphrase = "sesame" };
	assert_int_equal(give(&by_word, NP_OMNI, NULL, NULL).admission, NS_ADMIT_REFUSED);
	assert_false(by_word.wrong);
}

TEST(a_wrong_proof_is_refused)
{
	static const struct np_auth_key other = { .bytes = "0123456789abcdeF", .count = 16 };
	static const struct {
		const struct np_auth_key *with;
		enum np_auth_side side;
	} rows[] = {
		{ &other, NP_AUTH_CLIENT },
		{ &key, NP_AUTH_SERVER }, /* what the daemon itself would say */
	};

	skip_if(!np_auth_built(), "built without libsodium");
	for (size_t i = 0; i < LEN(rows); i++) {
		struct ns_admit a = fresh();
		struct np_auth_body hello, proof;
		struct step s = say_hello(&a, &hello);

		s = prove(&a, &hello, &s, rows[i].with, rows[i].side, &proof);
		assert_refused(&a, &s, NP_AUTH_WELCOME, EACCES,
			       "this daemon has another key in its --key-file");
		assert_has(s.why.msg, "wrong key");
	}
}

TEST(a_replayed_proof_is_refused)
{
	struct ns_admit a = fresh(), b = fresh();
	struct np_auth_body hello, proof;
	struct step s;

	skip_if(!np_auth_built(), "built without libsodium");
	s = say_hello(&a, &hello);
	s = prove(&a, &hello, &s, &key, NP_AUTH_CLIENT, &proof);
	assert_int_equal(s.admission, NS_ADMIT_MORE);
	/* The same messages, byte for byte, on another connection. */
	s = give(&b, NP_AUTH_HELLO, np_auth_body_layout, &hello);
	assert_step(&s, NS_ADMIT_MORE, true);
	s = give(&b, NP_AUTH_PROOF, np_auth_body_layout, &proof);
	assert_refused(&b, &s, NP_AUTH_WELCOME, EACCES,
		       "this daemon has another key in its --key-file");
}

TEST(a_proof_of_another_version_is_refused)
{
	struct ns_admit a = { .key = &key };
	struct np_auth_body m;
	struct step s;

	say_hello(&a, &m);
	m.version = 3;
	s = give(&a, NP_AUTH_PROOF, np_auth_body_layout, &m);
	assert_refused(&a, &s, NP_AUTH_WELCOME, EPROTONOSUPPORT,
		       "this daemon has another version of --key-file");
}

TEST_MAIN()
