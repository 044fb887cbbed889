/*
 * The client's half of the proof of a key: with the daemon's half, and with daemons that do not
 * know it, know another one, or only pretend.
 */
#include "netserver/admit.h"
#include "run/client.h"
#include "run/ends.h"
#include "tests/lib/check.h"
#include "tests/lib/daemon.h"
#include "tests/lib/session.h"
#include "tests/lib/sockets.h"

static const struct np_auth_key key = { .bytes = "0123456789abcdef", .count = 16 };
static const struct np_auth_key other = { .bytes = "fedcba9876543210", .count = 16 };

/* Connect to a daemon that follows the script. */
static int
meet(void (*script)(int fd), struct np_err *err)
{
	struct daemon d = { .script = script, .sessions = 1 };
	struct np_target target = { .host.text = "127.0.0.1", .key = &key };
	struct np_client c = { .heard = false };
	int rc;

	err->code = NP_OK;
	err->msg[0] = '\0';
	daemon_begin(&d);
	snprintf(target.port, sizeof(target.port), "%s", d.port);
	rc = np_client_connect(&c, &target, err);
	if (rc == NP_OK) {
		assert_true(c.heard);
		np_chan_close(&c.chan);
	} else {
		assert_int_equal(c.chan.fd, -1);
	}
	daemon_end(&d);
	return rc;
}

static void
assert_fails(void (*script)(int fd), enum np_errc code, const char *says)
{
	struct np_err err;

	assert_int_equal(meet(script, &err), code);
	assert_has(err.msg, says);
	assert_has(err.msg, "127.0.0.1 port ");
}

static void
reply(int fd, uint32_t code, int32_t word, const struct np_auth_body *m)
{
	put_frame(fd, code, word, m != NULL ? np_auth_body_layout : NULL, m);
}

/* The next message of the client. */
static struct np_auth_body
heard(int fd, uint32_t code)
{
	uint8_t frame[NP_FRAME_SIZE];
	struct np_auth_body m;
	struct np_err err;

	assert_true(get_bytes(fd, frame, sizeof(frame)));
	assert_int_equal(np_frame_head(frame).code, code);
	assert_int_equal(np_frame_head(frame).word, -1);
	assert_int_equal(np_frame_get(frame, np_auth_body_layout, &m, &err), NP_OK);
	assert_int_equal(m.version, NP_AUTH_VERSION);
	return m;
}

/* ---- Daemons that have a key ---- */

static void
admit_by(const struct np_auth_key *with, int fd)
{
	struct ns_admit a = { .key = with };
	uint8_t frame[NP_FRAME_SIZE];
	struct np_err err;

	np_ends_of(fd, false, a.ends);
	while (!ns_admit_is_in(&a) && get_bytes(fd, frame, sizeof(frame))) {
		ns_admit_step(&a, frame, &err);
		assert_true(!a.has_reply || put_bytes(fd, a.reply, sizeof(a.reply)));
	}
}

static void
have_the_key(int fd)
{
	admit_by(&key, fd);
}

static void
have_another_key(int fd)
{
	admit_by(&other, fd);
}

TEST(both_ends_with_the_key_meet)
{
	struct np_err err;

	skip_if(!np_auth_built(), "built without libsodium");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(meet(have_the_key, &err), NP_OK);
	}
}

TEST(another_key_is_refused)
{
	skip_if(!np_auth_built(), "built without libsodium");
	assert_fails(have_another_key, NP_ECONTROL, "is it the same at both ends?");
}

/* ---- Daemons that pretend ---- */

static const struct np_auth_body nothing = { .version = NP_AUTH_VERSION };

static void
welcome_without_the_key(int fd)
{
	heard(fd, NP_AUTH_HELLO);
	reply(fd, NP_AUTH_CHALLENGE, 0, &nothing);
	heard(fd, NP_AUTH_PROOF);
	reply(fd, NP_AUTH_WELCOME, 0, &nothing);
}

static void
send_the_proof_back(int fd)
{
	struct np_auth_body hello = heard(fd, NP_AUTH_HELLO), proof;

	reply(fd, NP_AUTH_CHALLENGE, 0, &hello);
	proof = heard(fd, NP_AUTH_PROOF);
	reply(fd, NP_AUTH_WELCOME, 0, &proof);
}

/* That key, for these ends; NULL: for none. */
static void
prove(int fd, const struct np_auth_key *with, const uint8_t *ends)
{
	struct np_auth_body hello = heard(fd, NP_AUTH_HELLO), m = nothing;
	const struct np_auth_scope scope = { hello.bytes, nothing.bytes, ends };

	reply(fd, NP_AUTH_CHALLENGE, 0, &nothing);
	heard(fd, NP_AUTH_PROOF);
	np_auth_prove(with, NP_AUTH_SERVER, &scope, m.bytes);
	reply(fd, NP_AUTH_WELCOME, 0, &m);
}

static void
prove_another_key(int fd)
{
	uint8_t ends[NP_AUTH_ENDS];

	np_ends_of(fd, false, ends);
	prove(fd, &other, ends);
}

/* It knows the key, and proves it for another connection: somebody relays between the two. */
static void
prove_other_ends(int fd)
{
	uint8_t ends[NP_AUTH_ENDS];

	np_ends_of(fd, false, ends);
	ends[NP_AUTH_ENDS / 2 - 1] ^= 1; /* the client's port */
	prove(fd, &key, ends);
}

/* Or for none, though the client did not say that there is a NAT. */
static void
prove_no_ends(int fd)
{
	prove(fd, &key, NULL);
}

static void
challenge_twice(int fd)
{
	heard(fd, NP_AUTH_HELLO);
	reply(fd, NP_AUTH_CHALLENGE, 0, &nothing);
	heard(fd, NP_AUTH_PROOF);
	reply(fd, NP_AUTH_CHALLENGE, 0, &nothing);
}

TEST(a_daemon_that_only_pretends_is_found_out)
{
	static const char says[] =
	    "does not know the key of --key-file: this may be the wrong daemon";

	skip_if(!np_auth_built(), "built without libsodium");
	assert_fails(welcome_without_the_key, NP_ECONTROL, says);
	assert_fails(send_the_proof_back, NP_ECONTROL, says);
	assert_fails(prove_another_key, NP_ECONTROL, says);
	assert_fails(prove_other_ends, NP_ECONTROL, says);
	assert_fails(prove_no_ends, NP_ECONTROL, says);
	assert_fails(challenge_twice, NP_ECONTROL, says);
}

/* ---- Daemons that know nothing of it, or that something is wrong with ---- */

static void
not_know_the_request(int fd)
{
	heard(fd, NP_AUTH_HELLO);
	reply(fd, 0, NP_E_UNKNOWN_REQUEST, NULL);
}

/* With a nonce behind it that must not be taken. */
static void
not_know_the_request_in_a_challenge(int fd)
{
	heard(fd, NP_AUTH_HELLO);
	reply(fd, NP_AUTH_CHALLENGE, NP_E_UNKNOWN_REQUEST, &nothing);
}

static void
hang_up(int fd)
{
	heard(fd, NP_AUTH_HELLO);
}

static void
hang_up_at_once(int fd)
{
	(void)fd; /* with the hello unread: a reset */
	assert_true(wait_readable(fd));
}

static void
answer_something_else(int fd)
{
	heard(fd, NP_AUTH_HELLO);
	reply(fd, NP_OMNI + 1, 0, &nothing);
}

static void
be_of_another_version(int fd)
{
	struct np_auth_body m = { .version = NP_AUTH_LOOSE };

	heard(fd, NP_AUTH_HELLO);
	reply(fd, NP_AUTH_CHALLENGE, 0, &m);
}

TEST(who_knows_no_key_is_named)
{
	static void (*const scripts[])(int fd) = { not_know_the_request,
						   not_know_the_request_in_a_challenge,
						   hang_up,
						   hang_up_at_once,
						   answer_something_else,
						   be_of_another_version };

	for (size_t i = 0; i < LEN(scripts); i++) {
		assert_fails(scripts[i], NP_ECONTROL, "does not use --key-file: is it Plumbline's");
	}
}

static void
be_full(int fd)
{
	heard(fd, NP_AUTH_HELLO);
	reply(fd, NP_AUTH_CHALLENGE, EBUSY, NULL);
}

static void
be_a_mail_server(int fd)
{
	char banner[NP_FRAME_SIZE];

	memset(banner, '.', sizeof(banner));
	assert_true(put_bytes(fd, banner, sizeof(banner)));
	heard(fd, NP_AUTH_HELLO);
}

static void
hang_up_on_the_proof(int fd)
{
	heard(fd, NP_AUTH_HELLO);
	reply(fd, NP_AUTH_CHALLENGE, 0, &nothing);
	if (np_auth_built()) {
		heard(fd, NP_AUTH_PROOF);
	}
}

TEST(other_faults_keep_their_names)
{
	assert_fails(be_full, NP_ECONTROL, "busy");
	assert_fails(be_a_mail_server, NP_EPEER, "is not a netserver");
	if (np_auth_built()) {
		assert_fails(hang_up_on_the_proof, NP_EPEER,
			     "closed by the peer while waiting for the answer to --key-file");
	}
}

TEST_MAIN()
