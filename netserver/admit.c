#include "netserver/admit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/secret.h"

/* The exchange is over: wipe the nonces, and open or shut the connection. Returns `admission`. */
static enum ns_admission
conclude(struct ns_admit *a, enum ns_admission admission)
{
	explicit_bzero(a->client_nonce, sizeof(a->client_nonce));
	explicit_bzero(a->server_nonce, sizeof(a->server_nonce));
	a->state = admission == NS_ADMIT_REFUSED ? NS_ADMIT_SHUT : NS_ADMIT_OPEN;
	return admission;
}

/* Write a->reply, which the caller of ns_admit_step() sends. error: an errno in its head, or 0. */
static void
answer(struct ns_admit *a, uint32_t code, int error, np_layout *layout, const void *m)
{
	const struct np_head head = { .code = code, .word = error };

	np_frame_put(a->reply, &head, layout, m);
	a->has_reply = true;
}

uint32_t
ns_reply_code(uint32_t code)
{
	if (code == NP_CPU_CALIBRATE) {
		return code;
	}
	/* Clients up to 2.3 look at NP_DEBUG_OK. */
	return code == NP_DEBUG_ON || code == NP_DEBUG_OFF ? NP_DEBUG_OK : code + 1;
}

/* Refuse a request of that code: *why is for the log, its errno and the text for the client. */
static enum ns_admission
refuse(struct ns_admit *a, uint32_t code, const struct np_err *why, const char *text)
{
	struct np_why m = { .magic = NP_WHY_MAGIC };

	snprintf(m.text, sizeof(m.text), "%s", text);
	answer(a, ns_reply_code(code), why->sys, np_why_layout, &m);
	return conclude(a, NS_ADMIT_REFUSED);
}

/* Check the client's proof of the key, and answer with this end's. */
static enum ns_admission
take_proof(struct ns_admit *a, const struct np_auth_body *proof, struct np_err *why)
{
	const struct np_auth_scope scope = { a->client_nonce, a->server_nonce,
					     a->version == NP_AUTH_LOOSE ? NULL : a->ends };
	struct np_auth_body welcome = { .version = a->version };

	if (!np_auth_check(a->key, NP_AUTH_CLIENT, &scope, proof->bytes)) {
		a->wrong = true;
		np_fail(why, NP_EPEER, EACCES, "wrong key%s",
			a->version == NP_AUTH_LOOSE ? ""
						    : ", or there is a relay or a NAT on the path");
		return refuse(a, NP_AUTH_PROOF, why,
			      "this daemon has another key in its --key-file");
	}
	np_auth_prove(a->key, NP_AUTH_SERVER, &scope, welcome.bytes);
	answer(a, NP_AUTH_WELCOME, 0, np_auth_body_layout, &welcome);
	return conclude(a, NS_ADMIT_MORE);
}

/* Accepts AUTH_HELLO, then AUTH_PROOF of the same version, and nothing else. */
static enum ns_admission
step_by_key(struct ns_admit *a, const uint8_t *frame, struct np_err *why)
{
	static const char disorder[] = "messages of --key-file in the wrong order";
	uint32_t code = np_frame_head(frame).code;
	struct np_auth_body m;

	if (code != NP_AUTH_HELLO && code != NP_AUTH_PROOF) {
		np_fail(why, NP_EPEER, EACCES, "request %u came without the key", code);
		return refuse(a, code, why, "this daemon needs --key-file");
	}
	if (np_frame_get(frame, np_auth_body_layout, &m, why) != NP_OK) {
		why->sys = EACCES; /* refuse() sends it; np_frame_get() sets none */
		return refuse(a, code, why, why->msg);
	}
	if (m.version == NP_AUTH_LOOSE && !a->nat) {
		np_fail(why, NP_EPEER, EPROTONOSUPPORT,
			"a proof that covers no addresses (netserver --nat)");
		return refuse(a, code, why,
			      "a proof of the key without addresses (for a NAT) is not accepted "
			      "here (netserver --nat)");
	}
	if (m.version != NP_AUTH_VERSION && m.version != NP_AUTH_LOOSE) {
		np_fail(why, NP_EPEER, EPROTONOSUPPORT, "version %u of --key-file", m.version);
		return refuse(a, code, why, "this daemon has another version of --key-file");
	}
	if (code == NP_AUTH_HELLO && a->state == NS_ADMIT_NEW) {
		struct np_auth_body challenge = { .version = m.version };

		a->version = m.version;
		memcpy(a->client_nonce, m.bytes, sizeof(a->client_nonce));
		np_auth_nonce(a->server_nonce);
		memcpy(challenge.bytes, a->server_nonce, sizeof(challenge.bytes));
		answer(a, NP_AUTH_CHALLENGE, 0, np_auth_body_layout, &challenge);
		a->state = NS_ADMIT_ASKED;
		return NS_ADMIT_MORE;
	}
	if (code == NP_AUTH_PROOF && a->state == NS_ADMIT_ASKED && m.version == a->version) {
		return take_proof(a, &m, why);
	}
	np_fail(why, NP_EPEER, EACCES, "%s", disorder);
	return refuse(a, code, why, disorder);
}

/* Without the passphrase in its first message a client gets no reply, as from netperf's daemon. */
static enum ns_admission
step_by_passphrase(struct ns_admit *a, const uint8_t *frame, struct np_err *why)
{
	uint32_t code = np_frame_head(frame).code;
	struct np_err misfit;
	struct np_text came, padded = { .text = "" };
	bool right;

	if (code != NP_PASSPHRASE) {
		np_fail(why, NP_EPEER, EACCES, "request %u came without the passphrase", code);
		return conclude(a, NS_ADMIT_REFUSED);
	}
	right = np_frame_get(frame, np_text_layout, &came, &misfit) == NP_OK;
	/* Both are padded with zeros, so the comparison takes the same time for any text. */
	snprintf(padded.text, sizeof(padded.text), "%s", a->passphrase);
	right = np_secret_equal(padded.text, came.text, sizeof(padded.text)) && right;
	explicit_bzero(&padded, sizeof(padded));
	explicit_bzero(&came, sizeof(came));
	if (!right) {
		a->wrong = true;
		np_fail(why, NP_EPEER, EACCES, "wrong passphrase");
		return conclude(a, NS_ADMIT_REFUSED);
	}
	return conclude(a, NS_ADMIT_MORE);
}

enum ns_admission
ns_admit_step(struct ns_admit *a, const uint8_t frame[NP_FRAME_SIZE], struct np_err *why)
{
	a->has_reply = false;
	if (ns_admit_is_in(a)) {
		a->state = NS_ADMIT_OPEN;
		return NS_ADMIT_IN;
	}
	if (a->state == NS_ADMIT_SHUT) {
		np_fail(why, NP_EPEER, EACCES, "refused before");
		return NS_ADMIT_REFUSED;
	}
	return a->key != NULL ? step_by_key(a, frame, why) : step_by_passphrase(a, frame, why);
}

bool
ns_admit_tries(const struct ns_admit *a, const uint8_t frame[NP_FRAME_SIZE])
{
	uint32_t code = np_frame_head(frame).code;

	if (ns_admit_is_in(a)) {
		return false;
	}
	return a->key != NULL ? a->state == NS_ADMIT_ASKED && code == NP_AUTH_PROOF
			      : a->state == NS_ADMIT_NEW && code == NP_PASSPHRASE;
}

bool
ns_admit_is_in(const struct ns_admit *a)
{
	return a->state == NS_ADMIT_OPEN || (a->key == NULL && a->passphrase == NULL);
}
