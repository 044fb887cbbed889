#include "run/client.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secret.h"
#include "base/text.h"
#include "bench/engine/engine.h"
#include "bench/ids.h"
#include "bench/ramp.h"
#include "bench/sequence.h"
#include "bench/transport/endpoint.h"
#include "net/llc.h"
#include "net/race.h"
#include "net/sock.h"
#include "run/ends.h"
#include "run/gate.h"
#include "run/hear.h"
#include "sys/cpu.h"
#include "wire/plan.h"

/* Deadlines, in milliseconds. */
enum {
	CONNECT_MS = 10000,
	ANSWER_MS = 10000, /* for a message to be taken */
	/* For the response to a test's request: a daemon may have other tests before this one and
	 * says nothing meanwhile, as netperf's clients expect. Keep-alive notices a dead one. */
	RESPONSE_MS = 120000,
	REST_MS = 10000,     /* for the rest of a message that has begun */
	MEET_MS = 10000,     /* for the data connection */
	RESULTS_MS = 14000,  /* netperf's own daemon may sit out four seconds of padding */
	CROWDED_MS = 120000, /* for them where the machine is full, and the daemon has no turn */
	SPARED_MS = 500,     /* for results that the report can do without */
	TOLD_OFF_MS = 2000,  /* for those of a sender that was interrupted */
	NUDGE_MS = 50,
	QUIET_MS = 500 /* without a transaction at the end of a connection test: is it alive? */
};

/* A test under way: the run of this end, and what comes out of it. */
struct test {
	struct np_run run;
	struct np_outcome *out;
};

static uint64_t
within(int ms)
{
	return np_deadline((uint64_t)ms * NP_MSEC);
}

static int
resolve_ends(struct np_client *c, const struct np_target *t, struct np_addrs *remote,
	     struct np_addrs *local, struct np_err *err)
{
	bool bound = t->local_host != NULL || t->local_port != NULL;
	int family;

	if (np_resolve(t->host, t->port, t->family, SOCK_STREAM, remote, err) != NP_OK) {
		c->unresolved = err->sys;
		return err->code;
	}
	local->count = 0;
	if (!bound) {
		return NP_OK;
	}
	family = np_family_or(t->local_family, t->family);
	return np_resolve(t->local_host, t->local_port, family, SOCK_STREAM, local, err);
}

/* netperf's client talks of "establishing the control connection", and scripts look for that. */
static int
not_established(const struct np_target *t, const struct np_race *race, struct np_err *err)
{
	int sys = err->sys;
	bool several = strchr(race->others, ';') != NULL;

	if (sys == EADDRNOTAVAIL && t->local_host != NULL) {
		return np_fail(err, NP_ECONTROL, 0,
			       "could not establish the control connection from %s to %s port %s: "
			       "%s (is %s an address of this machine?)",
			       t->local_host, t->host, t->port, strerror(sys), t->local_host);
	}
	return np_fail(err, NP_ECONTROL, 0,
		       "could not establish the control connection to %s port %s: %s (is netserver "
		       "running there, on that port?)",
		       t->host, t->port, several ? race->others : strerror(sys));
}

static int
send_passphrase(struct np_client *c, const char *passphrase, struct np_err *err)
{
	struct np_head head = { .code = NP_PASSPHRASE, .word = -1 };
	uint8_t frame[NP_FRAME_SIZE];
	struct np_text m;
	int rc;

	snprintf(m.text, sizeof(m.text), "%s", passphrase);
	np_frame_put(frame, &head, np_text_layout, &m);
	rc = np_chan_send(&c->chan, frame, within(ANSWER_MS), err);
	np_secret_wipe(&m, sizeof(m));
	np_secret_wipe(frame, sizeof(frame));
	return rc;
}

void
np_client_close(struct np_client *c)
{
	np_chan_close(&c->chan);
}

/* The ERROR that has come. One that can't be read is an error all the same. */
static void
read_error(const struct np_client *c, struct np_error_message *m)
{
	struct np_err ignored;

	if (np_tagged_get(&np_tagged_error, np_chan_message(&c->chan), m, &ignored) != NP_OK) {
		m->number = EPROTO;
	}
	np_text_printable(m->text);
}

/* The code of what has come, and 0 or an error: of netperf's messages and of ours. */
static struct np_head
answer_head(const struct np_client *c)
{
	struct np_head head = np_frame_head(np_chan_message(&c->chan));
	struct np_error_message m;

	if (c->chan.is_ours) {
		head.word = 0;
	}
	if (c->chan.is_ours && head.code == NP_EXT_ERROR) {
		read_error(c, &m);
		head.word = (int32_t)m.number;
	}
	return head;
}

/* What the daemon says of its error; empty: nothing. */
static void
error_text(const struct np_client *c, char *text, size_t size)
{
	struct np_error_message m;
	struct np_why why;

	if (c->chan.is_ours) {
		read_error(c, &m);
		snprintf(text, size, "%s", m.text);
		return;
	}
	/* A text without its end comes cut off. */
	np_frame_get(c->chan.in, np_why_layout, &why, NULL);
	np_text_printable(why.text);
	snprintf(text, size, "%s", why.magic == NP_WHY_MAGIC ? why.text : "");
}

/* The error that has come, in the daemon's own words if it has any. */
static int
remote_error(struct np_client *c, const char *verb, struct np_err *err)
{
	int error = answer_head(c).word;
	char text[512];

	c->remote_error = error;
	error_text(c, text, sizeof(text));
	if (text[0] != '\0') {
		np_fail(err, NP_ECONTROL, 0, "the netserver at %s %s: %s", c->peer, verb, text);
		err->sys = error;
		return err->code;
	}
	if (error == NP_E_UNKNOWN_REQUEST) {
		return np_fail(err, NP_ECONTROL, 0,
			       "the netserver at %s does not know this test (error %d): it is "
			       "older, or was built without it (try a newer netserver there)",
			       c->peer, error);
	}
	np_fail(err, NP_ECONTROL, 0, "the netserver at %s reports error %d, %s", c->peer, error,
		strerror(error));
	err->sys = error;
	return err->code;
}

/* As doc/protocol.md writes it. */
static const char *
code_text(uint32_t code, char text[16])
{
	snprintf(text, 16, code < 10000 ? "%u" : "0x%08x", code);
	return text;
}

/* What came has another code than its place in the conversation: both ends are out of step. */
static int
wrong_code(const struct np_client *c, const char *what, uint32_t wanted, struct np_err *err)
{
	uint32_t code = answer_head(c).code;
	char came[16], due[16];

	return np_fail(err, NP_EPEER, 0, "%s sent a message of code %s instead of %s, code %s",
		       c->peer, code_text(code, came), what, code_text(wanted, due));
}

/*
 * Is the message that has come an answer of that code? One with an error is, whatever its code:
 * netperf's daemons answer what they do not know by the code of an earlier message, or by 0.
 */
static int
check_answer(const struct np_client *c, const char *what, uint32_t wanted, struct np_err *err)
{
	struct np_head head = answer_head(c);

	/* No system has error numbers as large as that. */
	bool noise = head.code != wanted && (head.word > 4095 || head.word < -4095);

	if (noise || (!c->chan.is_ours && np_frame_is_text(c->chan.in, NP_FRAME_SIZE))) {
		return np_fail(err, NP_EPEER, 0,
			       "the program that listens at %s is not a netserver (see -p)",
			       c->peer);
	}
	return head.word != 0 || head.code == wanted ? NP_OK : wrong_code(c, what, wanted, err);
}

/*
 * The results of that test. Most of those of netperf's daemons still have the response's code: with
 * its bytes reversed, or as it is where the daemon's machine has the network's byte order.
 */
static int
check_results(const struct np_client *c, uint32_t asked, struct np_err *err)
{
	struct np_head head = answer_head(c);

	if (!c->chan.is_ours &&
	    (head.code == asked + 1 || head.code == __builtin_bswap32(asked + 1))) {
		return NP_OK;
	}
	return check_answer(c, "the test's results", asked + 2, err);
}

/* Receive a message. A signal is NP_ETIME: the caller's wait is over before its time. */
static int
receive(struct np_client *c, const char *what, uint64_t deadline, struct np_err *err)
{
	int before = np_signalled(&c->signals);
	int rc;

	do {
		rc = np_chan_recv(&c->chan, what, deadline, c->signals.let_in, err);
	} while (rc == NP_ESYS && err->sys == EINTR && np_signalled(&c->signals) == before);
	if (rc == NP_ESYS && err->sys == EINTR) {
		np_fail(err, NP_ETIME, 0, "interrupted while waiting for %s from %s", what,
			c->peer);
		err->sys = EINTR;
		return err->code;
	}
	return rc;
}

/* Tell whom the wait is for, why that may be, and how long it may last. */
static void
tell_wait(struct np_client *c, uint64_t since, uint64_t deadline)
{
	uint64_t now = np_now();
	char text[512];

	snprintf(text, sizeof(text),
		 "%s accepted the connection, and has not answered for %.0f s: it hangs, or other "
		 "tests run first; waiting for up to %.0f s more",
		 c->peer, (double)(now - since) / 1e9, (double)(deadline - now) / 1e9);
	c->told = true;
	c->hooks.tell(c->hooks.ctx, text);
}

/* Receive an answer, for which the user may have to wait for long. */
static int
receive_answer(struct np_client *c, const char *what, int answer_ms, struct np_err *err)
{
	uint64_t since = np_now(), deadline = within(answer_ms);
	uint64_t tell = since + c->hooks.patience_ns;
	int rc;

	if (c->hooks.tell == NULL || c->told || tell >= deadline) {
		return receive(c, what, deadline, err);
	}
	rc = receive(c, what, tell, err);
	if (rc != NP_ETIME || err->sys == EINTR || np_now() >= deadline) {
		return rc;
	}
	if (c->chan.have == 0) {
		tell_wait(c, since, deadline);
	}
	c->chan.since = since; /* it is one wait, and an error says how long it was */
	return receive(c, what, deadline, err);
}

/*
 * No answer to the first request, or the beginning of one: what may that be? netserver closes
 * without a word where the passphrase is another one, and so do other services.
 */
static int
unheard(const struct np_client *c, struct np_err *err)
{
	bool closed =
	    err->code == NP_EPEER && (err->sys == 0 || err->sys == ECONNRESET || err->sys == EPIPE);

	if (c->heard || np_frame_is_text(c->chan.in, c->chan.have)) {
		return err->code;
	}
	if (c->chan.have > 0 && c->chan.have % NP_OLD_FRAME_SIZE == 0) {
		np_fail_hint(err, "try a newer netserver there");
	} else if (closed && c->chan.have > 0) {
		np_fail_hint(err, "is that a netserver?");
	} else if (closed) {
		np_fail_hint(err, "is that a netserver? does it want another passphrase? see -Z");
	}
	return err->code;
}

static int
knows_no_key(const struct np_client *c, struct np_err *err)
{
	return np_fail(err, NP_ECONTROL, 0,
		       "the netserver at %s does not use --key-file: is it Plumbline's, and "
		       "started with --key-file?",
		       c->peer);
}

/* Send one message of the proof of a key, and receive its answer: the head, and the body in *m. */
static int
exchange(struct np_client *c, uint32_t code, struct np_auth_body *m, struct np_head *head,
	 struct np_err *err)
{
	struct np_head asking = { .code = code, .word = -1 };
	uint8_t frame[NP_FRAME_SIZE];

	np_frame_put(frame, &asking, np_auth_body_layout, m);
	if (np_chan_send(&c->chan, frame, within(ANSWER_MS), err) != NP_OK ||
	    receive(c, "the answer to --key-file", within(ANSWER_MS), err) != NP_OK) {
		return err->code;
	}
	*head = np_frame_head(c->chan.in);
	if (head->word == 0 && head->code == code + 1 &&
	    np_frame_get(c->chan.in, np_auth_body_layout, m, err) != NP_OK) {
		return err->code;
	}
	return NP_OK;
}

/* Say hello, and get the daemon's nonce. Who has never heard of that answers so, or hangs up. */
static int
get_challenge(struct np_client *c, uint32_t version, const uint8_t *near_nonce, uint8_t *far_nonce,
	      struct np_err *err)
{
	struct np_auth_body m = { .version = version };
	struct np_head head = { .code = 0 };
	int rc;

	memcpy(m.bytes, near_nonce, sizeof(m.bytes));
	rc = exchange(c, NP_AUTH_HELLO, &m, &head, err);
	if (rc == NP_EPEER && c->chan.have == 0) {
		return knows_no_key(c, err);
	}
	if (rc != NP_OK) {
		return rc;
	}
	if (np_frame_is_text(c->chan.in, NP_FRAME_SIZE)) {
		return np_fail(err, NP_EPEER, 0,
			       "the program that listens at %s is not a netserver", c->peer);
	}
	if (head.word != 0 && head.word != NP_E_UNKNOWN_REQUEST) {
		return remote_error(c, "refuses", err);
	}
	if (head.word != 0 || head.code != NP_AUTH_CHALLENGE || m.version != version) {
		return knows_no_key(c, err);
	}
	memcpy(far_nonce, m.bytes, sizeof(m.bytes));
	return NP_OK;
}

/* Both ends prove that they have the key; whoever listens in learns nothing that is of use again.
 */
static int
authenticate(struct np_client *c, const struct np_target *t, struct np_err *err)
{
	uint8_t near_nonce[NP_AUTH_BYTES], far_nonce[NP_AUTH_BYTES], ends[NP_AUTH_ENDS];
	const struct np_auth_scope scope = { near_nonce, far_nonce, t->nat ? NULL : ends };
	struct np_auth_body m = { .version = t->nat ? NP_AUTH_LOOSE : NP_AUTH_VERSION };
	uint32_t version = m.version;
	struct np_head head = { .code = 0 };

	np_auth_nonce(near_nonce);
	np_ends_of(c->chan.fd, true, ends);
	if (get_challenge(c, version, near_nonce, far_nonce, err) != NP_OK) {
		return err->code;
	}
	np_auth_prove(t->key, NP_AUTH_CLIENT, &scope, m.bytes);
	if (exchange(c, NP_AUTH_PROOF, &m, &head, err) != NP_OK) {
		return err->code;
	}
	if (head.word == EACCES) {
		return np_fail(err, NP_ECONTROL, 0,
			       "the netserver at %s refuses the key of --key-file: is it the same "
			       "at both ends?%s",
			       c->peer, t->nat ? "" : " (if there is a NAT on the path: --nat)");
	}
	if (head.word != 0) {
		return remote_error(c, "refuses", err);
	}
	if (head.code != NP_AUTH_WELCOME || m.version != version ||
	    !np_auth_check(t->key, NP_AUTH_SERVER, &scope, m.bytes)) {
		return np_fail(err, NP_ECONTROL, 0,
			       "the netserver at %s does not know the key of --key-file: this may "
			       "be the wrong daemon",
			       c->peer);
	}
	c->heard = true;
	return NP_OK;
}

/*
 * A daemon that owes results is still at its test, which was interrupted here: it hears a
 * half-close as the end of it. Its results then come before the answer to what was asked.
 */
static int
receive_next(struct np_client *c, const char *what, int answer_ms, struct np_err *err)
{
	int rc;

	if (c->owed != 0) {
		shutdown(c->chan.fd, SHUT_WR);
	}
	rc = receive_answer(c, what, answer_ms, err);
	if (rc == NP_OK && c->owed != 0 && answer_head(c).code == c->owed) {
		c->owed = 0;
		rc = receive_answer(c, what, answer_ms, err);
	}
	return rc;
}

/* Send a request and wait for its answer, which has that code or an error. */
static int
request(struct np_client *c, const uint8_t *message, uint32_t code, const char *what, int answer_ms,
	struct np_err *err)
{
	struct np_err ignored;

	if (np_chan_send(&c->chan, message, within(ANSWER_MS), err) != NP_OK) {
		/* A daemon that turns clients away need not read what they want. */
		if (err->code != NP_EPEER ||
		    receive(c, what, within(SPARED_MS), &ignored) != NP_OK) {
			return unheard(c, err);
		}
	} else if (receive_next(c, what, answer_ms, err) != NP_OK) {
		return unheard(c, err);
	}
	c->heard = true;
	return check_answer(c, what, code, err);
}

/* What the daemon may demand before the first request. */
static int
introduce(struct np_client *c, const struct np_target *t, struct np_err *err)
{
	if (t->key != NULL) {
		return authenticate(c, t, err);
	}
	return t->passphrase != NULL ? send_passphrase(c, t->passphrase, err) : NP_OK;
}

/* The address that answered before is the one to begin with. */
static int
connect_again(const struct np_client *c, const struct np_addrs *remote,
	      const struct np_addrs *local, struct np_race *race, struct np_err *err)
{
	struct np_addrs order = *remote;

	for (size_t i = 1; i < order.count; i++) {
		if (c->used.len != 0 && np_addr_same_host(&order.at[i], &c->used)) {
			struct np_addr first = order.at[0];

			order.at[0] = order.at[i];
			order.at[i] = first;
			break;
		}
	}
	return np_race_connect(&order, local, within(CONNECT_MS), race, err);
}

/* A user should know which of several addresses is measured, where it is not the first one. */
static void
tell_address(const struct np_client *c, const struct np_target *t, const struct np_race *race)
{
	char text[512], host[NP_ADDR_TEXT];

	if (race->others[0] == '\0' || c->hooks.tell == NULL || np_addr_is_loopback(&race->used)) {
		return;
	}
	snprintf(text, sizeof(text), "%s: %s is used (%s)", t->host,
		 np_addr_host(&race->used, host), race->others);
	c->hooks.tell(c->hooks.ctx, text);
}

/* One connection, of which the daemon knows whatever it may demand. */
static int
open_control(struct np_client *c, const struct np_target *t, const struct np_addrs *remote,
	     const struct np_addrs *local, struct np_err *err)
{
	struct np_race race;
	int fd = connect_again(c, remote, local, &race, err);

	if (fd < 0) {
		c->unreachable = remote->at[0].sa.ss_family;
		return not_established(t, &race, err);
	}
	np_sock_watch_peer(fd);
	tell_address(c, t, &race);
	c->used = race.used;
	c->heard = false;
	c->owed = 0;
	snprintf(c->peer, sizeof(c->peer), "%s port %s", t->host, t->port);
	if (np_chan_open(&c->chan, fd, c->peer, err) != NP_OK) {
		close(fd);
		return err->code;
	}
	c->chan.rest_ns = REST_MS * NP_MSEC;
	if (introduce(c, t, err) != NP_OK) {
		np_client_close(c);
		return err->code;
	}
	return NP_OK;
}

/*
 * Say what is wanted beyond netperf's protocol. A daemon that has never heard of that says so or,
 * if it is a very old one, hangs up: NP_EUNSUP.
 */
static int
greet(struct np_client *c, const struct np_hello *wants, struct np_err *err)
{
	uint8_t frame[NP_FRAME_SIZE];
	struct np_head head;
	int rc;

	np_hello_put(frame, NP_EXT_HELLO, wants);
	rc = request(c, frame, NP_EXT_WELCOME, "the answer to the greeting", RESPONSE_MS, err);
	if (rc == NP_EPEER && c->chan.have == 0) {
		return np_fail(err, NP_EUNSUP, 0, "hung up");
	}
	if (rc != NP_OK) {
		return rc;
	}
	head = np_frame_head(c->chan.in);
	if (head.word == NP_E_UNKNOWN_REQUEST) {
		return np_fail(err, NP_EUNSUP, 0, "not known");
	}
	if (head.word != 0) {
		return remote_error(c, "refuses", err);
	}
	if (np_hello_get(c->chan.in, &c->granted, err) != NP_OK) {
		return np_fail_in(err, c->peer);
	}
	c->granted.caps &= wants->caps;
	c->chan.most = np_answer_most;
	return NP_OK;
}

/* A port that the user named is to be free again at once for the second connection. */
static void
close_for_another(struct np_client *c)
{
	static const struct linger reset = { .l_onoff = 1 };

	setsockopt(c->chan.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	np_client_close(c);
}

static void
note_no_evidence(struct np_client *c)
{
	snprintf(c->lacks, sizeof(c->lacks),
		 "the netserver at %s gives only netperf's results: it is not Plumbline's, or was "
		 "started with --no-evidence",
		 c->peer);
}

int
np_client_connect(struct np_client *c, const struct np_target *t, struct np_err *err)
{
	struct np_addrs remote, local;
	int rc;

	memset(&c->granted, 0, sizeof(c->granted));
	c->lacks[0] = '\0';
	np_live_step(c->seat, NP_LIVE_CONNECTING);
	if (resolve_ends(c, t, &remote, &local, err) != NP_OK ||
	    open_control(c, t, &remote, &local, err) != NP_OK) {
		return err->code;
	}
	if (t->wants.caps == 0) {
		return NP_OK;
	}
	np_live_step(c->seat, NP_LIVE_ASKING);
	rc = greet(c, &t->wants, err);
	if (rc == NP_OK) {
		if ((t->wants.caps & NP_CAPS_EVIDENCE) != 0 &&
		    (c->granted.caps & NP_CAPS_EVIDENCE) == 0) {
			note_no_evidence(c);
		}
		return NP_OK;
	}
	close_for_another(c);
	if (rc != NP_EUNSUP) {
		return rc;
	}
	note_no_evidence(c);
	return open_control(c, t, &remote, &local, err);
}

int
np_client_calibrate(struct np_client *c, struct np_calibrate_response *out, struct np_err *err)
{
	static const struct np_head head = { .code = NP_CPU_CALIBRATE, .word = -1 };
	uint8_t frame[NP_FRAME_SIZE];

	np_frame_put(frame, &head, NULL, NULL);
	if (request(c, frame, NP_CPU_CALIBRATE, "the calibration", RESPONSE_MS, err) != NP_OK) {
		return err->code;
	}
	if (np_frame_head(c->chan.in).word != 0) {
		return remote_error(c, "refuses", err);
	}
	return np_frame_get(c->chan.in, np_calibrate_response_layout, out, err);
}

static const char the_evidence[] = "the evidence";

/* Ask the daemon something that it answers by a bag. */
static int
fetch_bag(struct np_client *c, const uint8_t *message, struct np_bag **out, struct np_err *err)
{
	*out = NULL;
	if (request(c, message, NP_EXT_BAG, the_evidence, ANSWER_MS, err) != NP_OK) {
		return err->code;
	}
	if (answer_head(c).word != 0) {
		return remote_error(c, "refuses", err);
	}
	*out = np_bag_new();
	if (*out == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for the evidence of %s", c->peer);
	}
	if (np_bag_decode(np_chan_message(&c->chan), *out, err) != NP_OK) {
		np_bag_free(*out);
		*out = NULL;
		return np_fail_in(err, c->peer);
	}
	return NP_OK;
}

/* What the daemon knows of the last test, or of its host. */
static int
fetch_evidence(struct np_client *c, enum np_ext_about about, struct np_bag **out,
	       struct np_err *err)
{
	struct np_evidence_message m = { .about = about };
	uint8_t message[NP_MESSAGE_MAX];

	np_tagged_put(&np_tagged_evidence, &m, message);
	return fetch_bag(c, message, out, err);
}

int
np_client_host(struct np_client *c, struct np_bag **far, struct np_err *err)
{
	*far = NULL;
	if (c->lacks[0] != '\0') {
		return np_fail(err, NP_ECONTROL, 0, "%s", c->lacks);
	}
	if ((c->granted.caps & NP_CAP_HOST) == 0) {
		return np_fail(err, NP_ECONTROL, 0,
			       "the netserver at %s reports nothing about its host", c->peer);
	}
	return fetch_evidence(c, NP_ABOUT_HOST, far, err);
}

int
np_client_engines(struct np_client *c, const struct np_plan *p, const struct np_terms *terms,
		  struct np_bag **far, struct np_err *err)
{
	uint8_t message[NP_MESSAGE_MAX];
	struct np_calibrate_response any;
	struct np_stop stop = { 0 };
	struct np_run run;

	*far = NULL;
	if ((c->granted.caps & NP_CAP_PLAN) == 0) {
		/* One that hung up on the greeting may be stock, or want a passphrase. */
		if (!c->heard && np_client_calibrate(c, &any, err) != NP_OK) {
			return err->code;
		}
		return np_fail(err, NP_EUNSUP, 0,
			       "the netserver at %s does not say what its engines are (it is "
			       "netperf's, or older)",
			       c->peer);
	}
	if (np_run_open(&run, p, terms, &stop, err) != NP_OK) {
		return err->code;
	}
	np_engines_ask(p, &run, message);
	np_run_free(&run);
	return fetch_bag(c, message, far, err);
}

/* What netperf's messages can't say takes a daemon of ours: name the option that asks for it. */
static int
check_plan(const struct np_client *c, const struct np_plan *p, struct np_err *err)
{
	char what[64];

	if (!np_plan_needs_trio(p) || (c->granted.caps & NP_CAP_PLAN) != 0) {
		return NP_OK;
	}
	if (p->far.place.engine != NULL) {
		snprintf(what, sizeof(what), "--engine ,%s", p->far.place.engine->name);
	} else if (p->far.place.threads > 1) {
		snprintf(what, sizeof(what), "--threads ,%u", p->far.place.threads);
	} else if (p->sources > 1) {
		snprintf(what, sizeof(what), "--source-range");
	} else if (p->also.count > 0 || p->far_also.count > 0) {
		snprintf(what, sizeof(what), "--also-bind");
	} else if (p->service != 0) {
		snprintf(what, sizeof(what), "--service-code");
	} else if (p->ramp > 0) {
		snprintf(what, sizeof(what), "--ramp %u", p->ramp);
	} else if (p->warm_up_ms > 0) {
		snprintf(what, sizeof(what), "--warm-up");
	} else if (p->flows > 1) {
		snprintf(what, sizeof(what), "--flows %u", p->flows);
	} else if (p->transport->ours) {
		snprintf(what, sizeof(what), "%s", p->transport->name);
	} else {
		snprintf(what, sizeof(what), "this test");
	}
	return np_fail(err, NP_ECONTROL, 0,
		       "%s: the netserver at %s does not support this; it is not Plumbline's, or "
		       "it is older (leave that out, or start a newer one there)",
		       what, c->peer);
}

/* The daemon's limits are its own: less than was asked for is a test, too, and the user is told. */
static void
take_fewer(struct np_client *c, struct test *t)
{
	uint32_t flows = t->out->far.flows, asked = t->run.plan->flows;
	char text[512];

	np_run_trim(&t->run, flows);
	if (c->hooks.tell != NULL) {
		snprintf(text, sizeof(text),
			 "%s grants %u of %u data connections (netserver --max-flows, "
			 "--max-memory)",
			 c->peer, flows, asked);
		c->hooks.tell(c->hooks.ctx, text);
	}
}

/* The same of processors: the daemon binds to those that it has, an older one to none. */
static void
tell_places(struct np_client *c, const struct test *t)
{
	const char *told = t->out->far.cpus;
	char asked[NP_CPU_TURNS_TEXT], text[512];

	(void)np_cpu_turns_text(&t->run.plan->far.place.turns, asked, sizeof(asked));
	if (c->hooks.tell != NULL && strcmp(asked, told) != 0) {
		snprintf(text, sizeof(text), "%s binds its threads to %s of -T ,%s", c->peer,
			 told[0] != '\0' ? told : "none", asked);
		c->hooks.tell(c->hooks.ctx, text);
	}
}

/* How --spread went. */
static void
tell_spread(struct np_client *c, const struct test *t)
{
	const struct np_spread *s = &t->run.spread;
	uint32_t flows = t->run.conns;
	char text[512];

	if (c->hooks.tell == NULL || !t->run.plan->spread || t->run.window.started_ns == 0) {
		return;
	}
	if (s->queues == 0) {
		snprintf(text, sizeof(text),
			 "--spread: the receive queues of the data connections are not known, so "
			 "nothing was spread");
	} else if (!s->agreed) {
		snprintf(text, sizeof(text),
			 "--spread: %u flows on %u receive queues, %u of them beyond an even share "
			 "(the netserver at %s is older and does not spread them)",
			 flows, s->queues, s->collisions, c->peer);
	} else {
		snprintf(text, sizeof(text),
			 "--spread: %u flows on %u receive queues, %u of them beyond an even share "
			 "(connected again: %u)",
			 flows, s->queues, s->collisions, s->reconnected);
	}
	c->hooks.tell(c->hooks.ctx, text);
}

static int
negotiate(struct np_client *c, const struct np_dialect *dialect, const struct np_plan *p,
	  struct test *t, struct np_err *err)
{
	uint8_t message[NP_MESSAGE_MAX];

	dialect->ask(p, &t->run, message);
	if (request(c, message, dialect->code + 1, "the response to the test's request",
		    RESPONSE_MS, err) != NP_OK) {
		return err->code;
	}
	if (answer_head(c).word != 0) {
		remote_error(c, "refuses", err);
		if (p->transport->kconfig != NULL && np_endpoint_is_missing(err->sys)) {
			err->code = NP_EUNSUP; /* as if it were missing here */
		}
		return err->code;
	}
	if (dialect->granted(np_chan_message(&c->chan), &t->out->far, err) != NP_OK) {
		return np_fail_in(err, c->peer);
	}
	if (t->out->far.flows > p->flows) {
		return np_fail(err, NP_EPEER, 0, "%s waits for %u data connections, not for %u",
			       c->peer, t->out->far.flows, p->flows);
	}
	if (p->sources > 1 && t->out->far.client_bits == 0) {
		return np_fail(err, NP_ECONTROL, 0,
			       "--source-range: the netserver at %s accepts one address of a "
			       "client; it is older",
			       c->peer);
	}
	if (t->out->far.also != p->also.count + p->far_also.count) {
		return np_fail(err, NP_ECONTROL, 0,
			       "--also-bind: the netserver at %s knows of one address of each end; "
			       "it is older",
			       c->peer);
	}
	if (t->out->far.ramp != p->ramp) {
		return np_fail(err, NP_ECONTROL, 0,
			       "--ramp %u: the netserver at %s waits for all data connections "
			       "first; it is older",
			       p->ramp, c->peer);
	}
	if (t->out->far.flows < p->flows) {
		take_fewer(c, t);
	}
	tell_places(c, t);
	t->run.end.token = t->out->far.token;
	t->run.end.key.count = t->out->far.key_bytes;
	memcpy(t->run.end.key.at, t->out->far.key, t->out->far.key_bytes);
	t->run.spread.agreed = t->out->far.spreads;
	if (t->run.conn->ids != NULL && !t->out->far.ids) {
		NP_EACH_WORKER (w, &t->run) {
			t->run.side->without_ids(w);
		}
	}
	return NP_OK;
}

/* When a connection test's last transaction ended. */
static uint64_t
last_ns(const struct np_run *run)
{
	uint64_t last = 0;

	NP_EACH_WORKER (w, run) {
		last = w->last_ns > last ? w->last_ns : last;
	}
	return last;
}

/*
 * Did a connection test end in the middle of a long wait? Then its daemon may have hung for most of
 * the time, while the kernel still took connections for it.
 */
static bool
ended_in_silence(const struct test *t)
{
	const struct np_run *run = &t->run;

	return run->plan->pattern->connection_test && t->out->cause == NP_BY_CLOCK &&
	       run->window.ended_ns - last_ns(run) >= QUIET_MS * NP_MSEC;
}

/*
 * Can the report do without the daemon's results? A connection test counts at this end, and
 * netperf's own daemon would keep them back for four seconds more; a sender may
 * not have seen the half-close. A probe has what it needs.
 */
static bool
can_spare(const struct np_client *c, const struct test *t)
{
	const struct np_plan *p = t->run.plan;

	/* Evidence is told after the results, over the connection that sparing them would end. */
	if ((c->want_far || (c->granted.caps & NP_CAPS_EVIDENCE) != 0) &&
	    t->out->cause != NP_BY_SIGNAL && !p->pattern->probe) {
		return false;
	}
	if (t->out->cause == NP_BY_CONTROL) {
		return false; /* the daemon ended the test, and has said why */
	}
	if (ended_in_silence(t)) {
		return false;
	}
	return p->pattern->connection_test || p->pattern->probe ||
	       (p->role == NP_FOLLOW && t->out->cause == NP_BY_SIGNAL);
}

/* Wait for the results, telling the far end again and again that the test is over. */
static int
collect(struct np_client *c, struct test *t, uint64_t deadline, struct np_err *err)
{
	struct np_run *run = &t->run;
	/* A nudged connection test ends with an error in place of results. */
	bool may =
	    run->side->nudge != NULL && (can_spare(c, t) || !run->plan->pattern->connection_test);
	int rc;

	for (;;) {
		uint64_t next = within(NUDGE_MS);
		bool nudge = may && next < deadline;

		rc = receive(c, "the test's results", nudge ? next : deadline, err);
		if (rc != NP_ETIME || err->sys == EINTR || !nudge) {
			return rc;
		}
		run->side->nudge(run);
	}
}

/* Wait for results that would be nice to have. A daemon's error at this point means nothing. */
static int
collect_spare(struct np_client *c, const struct np_dialect *dialect, struct test *t,
	      struct np_err *err)
{
	const struct np_plan *p = t->run.plan;
	bool floods = !np_delivers(p->transport) && p->role == NP_FOLLOW;
	struct np_err ignored;
	int rc;

	c->owed = dialect->code + 2;
	if (floods && (c->granted.caps & NP_CAPS_EVIDENCE) != 0) {
		return NP_OK; /* it hears of the end behind the next question */
	}
	if (floods || p->pattern->connection_test) {
		/* Our own daemon takes this for the end of the test; netperf's does not look. */
		shutdown(c->chan.fd, SHUT_WR);
	}
	rc = collect(c, t, within(SPARED_MS), &ignored);
	if (rc == NP_ETIME && p->role == NP_FOLLOW) {
		/* A sender that did not listen: a reset makes it stop. */
		np_run_close(&t->run);
		rc = collect(c, t, within(TOLD_OFF_MS - SPARED_MS), &ignored);
	}
	c->owed = rc == NP_ETIME ? c->owed : 0;
	if (rc != NP_OK || answer_head(c).word != 0) {
		return NP_OK;
	}
	if (check_results(c, dialect->code, err) != NP_OK) {
		return err->code;
	}
	dialect->reported(np_chan_message(&c->chan), &t->out->far, &ignored);
	return NP_OK;
}

/* Bytes from transactions, or the lower 32 bits and what this end sent: less is under way. */
static void
complete_count(struct test *t)
{
	const struct np_plan *p = t->run.plan;
	struct np_far *far = &t->out->far;
	uint64_t sent = np_counts_of(&t->run).sent;
	uint32_t missing = (uint32_t)(sent - far->received);

	if (p->pattern->sized) {
		far->received = (uint64_t)far->transactions * (uint64_t)p->request;
		far->sent = (uint64_t)far->transactions * (uint64_t)p->response;
	} else if (missing <= sent) {
		far->received = sent - missing;
	}
}

static int
no_results(const struct np_client *c, const struct test *t, int waited_s, struct np_err *err)
{
	double quiet_s = (double)(t->run.window.ended_ns - last_ns(&t->run)) / 1e9;

	if (ended_in_silence(t)) {
		return np_fail(err, NP_ETIME, 0,
			       "no results from %s within %d s of the test's end, and no "
			       "transaction in its last %.1f s (does that netserver hang?)",
			       c->peer, waited_s, quiet_s);
	}
	return np_fail(err, NP_ETIME, 0, "no results from %s within %d s of the test's end",
		       c->peer, waited_s);
}

static int
collect_needed(struct np_client *c, const struct np_dialect *dialect, struct test *t,
	       struct np_err *err)
{
	int rc, waited = 0;

	do {
		rc = collect(c, t, within(RESULTS_MS), err);
		waited += RESULTS_MS;
	} while (rc == NP_ETIME && err->sys != EINTR && waited < CROWDED_MS &&
		 np_cpu_crowded(NULL));
	if (rc == NP_ETIME && err->sys != EINTR) {
		return no_results(c, t, waited / 1000, err);
	}
	if (rc != NP_OK) {
		return rc;
	}
	if (check_results(c, dialect->code, err) != NP_OK) {
		return err->code;
	}
	if (answer_head(c).word != 0) {
		return remote_error(c, "reports", err);
	}
	if (dialect->reported(np_chan_message(&c->chan), &t->out->far, err) != NP_OK) {
		return err->code;
	}
	if (t->out->far.brief) {
		complete_count(t);
	}
	return NP_OK;
}

static int
lost_control(const struct np_client *c, const struct test *t, int error, struct np_err *err)
{
	const struct np_run *run = &t->run;
	double after = run->window.started_ns != 0
			   ? (double)(run->window.ended_ns - run->window.started_ns) / 1e9
			   : 0;

	return np_fail(err, NP_EPEER, error,
		       "lost the control connection to %s after %.1f s of the test", c->peer,
		       after);
}

static bool
something_counted(const struct np_run *run)
{
	struct np_counts count = np_counts_of(run);

	if (run->plan->pattern->transactions) {
		return count.transactions > 0;
	}
	if (run->plan->pattern->probe) {
		return run->closing.mss > 0;
	}
	return np_counts_bytes(&count) > 0;
}

/*
 * What keeps the data from getting through while the daemon can be reached, most often. NULL: not
 * that, as nothing of the test goes through a network.
 */
static const char *
firewall_hint(const struct np_plan *p)
{
	if (p->transport->ip_protocol == 0) {
		return NULL;
	}
	return p->no_control ? "is that service there? a firewall?"
			     : "a firewall? see netserver --data-ports";
}

/* No data connection came about, or no datagram got there: what does an error like this mean? */
static void
hint_at_firewall(const struct np_run *run, struct np_err *err)
{
	static const int by_firewall[] = { ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH,
					   EPERM,        EACCES,    ENOPROTOOPT };
	struct np_counts c = np_counts_of(run);
	const char *hint = firewall_hint(run->plan);

	if (err->sys == ENETUNREACH && run->plan->no_route) {
		return;
	}
	for (size_t i = 0; i < sizeof(by_firewall) / sizeof(by_firewall[0]); i++) {
		if (err->sys == by_firewall[i] && c.received == 0 && c.transactions == 0 &&
		    hint != NULL) {
			np_fail_hint(err, hint);
		}
	}
}

/* Datagrams that get nowhere are a result, and look like a loss of all of them. */
static void
tell_none_arrived(const struct np_client *c, const struct test *t)
{
	const struct np_plan *p = t->run.plan;
	struct np_counts sent = np_counts_of(&t->run);
	const char *hint = firewall_hint(p);
	char text[512];

	if (c->hooks.tell == NULL || hint == NULL || p->transport->connected ||
	    p->pattern->transactions || p->role != NP_LEAD || sent.sent == 0 ||
	    !t->out->far.reported || t->out->far.received != 0) {
		return;
	}
	snprintf(text, sizeof(text), "%s: nothing of what was sent has arrived at %s (%s)",
		 p->bench->name, c->peer, hint);
	c->hooks.tell(c->hooks.ctx, text);
}

/* Where a close drops what is on its way, and the kernel loses data in silence: the counts show it.
 */
static void
tell_some_lost(const struct np_client *c, const struct test *t)
{
	const struct np_plan *p = t->run.plan;
	uint64_t sent = np_counts_of(&t->run).sent, received = t->out->far.received;
	char text[512];

	if (c->hooks.tell == NULL || !p->transport->shut_drops || p->pattern->transactions ||
	    p->warm_up_ms > 0 || !t->out->far.reported || received >= sent) {
		return;
	}
	snprintf(text, sizeof(text),
		 "%s: %" PRIu64 " of %" PRIu64 " bytes were acknowledged, and did not arrive: the "
		 "kernel's LLC2 has lost them, and the rate is that of what was sent",
		 p->bench->name, sent - received, sent);
	c->hooks.tell(c->hooks.ctx, text);
}

/* An engine that copied after all: the result is not that of what was asked for. */
static void
tell_copied(const struct np_client *c, const struct test *t)
{
	uint64_t copied = 0, lent = 0;
	char text[512];

	NP_EACH_WORKER (w, &t->run) {
		copied += w->engine_count[NP_E_REFUSED];
		lent += w->engine_count[NP_E_LENT];
	}
	if (c->hooks.tell != NULL && copied > lent) {
		snprintf(text, sizeof(text),
			 "--engine zerocopy: %.0f %% of the sends were copied, for the kernel may "
			 "not pin more memory (ulimit -l, net.core.optmem_max)",
			 100 * (double)copied / (double)(copied + lent));
		c->hooks.tell(c->hooks.ctx, text);
	}
}

static int
silent_flow(const struct np_run *run, struct np_err *err)
{
	const char *hint = firewall_hint(run->plan);

	char text[NP_ADDR_TEXT];

	np_addr_text(&run->end.peer, text);
	if (run->window.started_ns != 0) {
		return np_fail(err, NP_ETIME, 0, "nothing moved for %d s between here and %s",
			       NP_STALL_S, text);
	}
	np_fail(err, NP_ETIME, 0, "no data connection with %s within %d s", text, MEET_MS / 1000);
	if (hint != NULL) {
		np_fail_hint(err, hint);
	}
	return err->code;
}

/* A ramp that brought nothing: there is no test. */
static int
no_flow_came(const struct np_run *run, struct np_err *err)
{
	struct np_ramp_failures failed = { .count = 0 };
	char text[NP_ADDR_TEXT], reasons[256];

	NP_EACH_WORKER (w, run) {
		np_ramp_join(&failed, &w->ramp->failed);
	}
	np_addr_text(&run->end.peer, text);
	np_ramp_reasons(&failed, reasons, sizeof(reasons));
	np_fail(err, NP_EPEER, 0,
		"none of %u data connections with %s came about within %.1f s: %s", run->conns,
		text, (double)(run->window.ended_ns - run->window.started_ns) / 1e9,
		failed.count > 0 ? reasons : "no answer");
	if (firewall_hint(run->plan) != NULL) {
		np_fail_hint(err, firewall_hint(run->plan));
	}
	return err->code;
}

/* What the drive left: an error of the flow, of the control connection, or neither. */
static int
judge_drive(struct np_client *c, const struct np_drive *d, struct test *t, struct np_err *err)
{
	const struct np_run *run = d->run;

	t->out->cause = d->cause;
	t->out->measured = run->window.ended_ns > run->window.started_ns && something_counted(run);
	if (d->lost != 0) {
		return lost_control(c, t, d->lost, err);
	}
	if (run->err.code != NP_OK && d->cause != NP_BY_SILENCE && d->cause != NP_BY_CONTROL) {
		*err = run->err;
		hint_at_firewall(run, err);
		return err->code;
	}
	if (run->plan->ramp > 0 && d->cause != NP_BY_CONTROL && np_ramp_came(run) == 0) {
		if (d->cause == NP_BY_SIGNAL) {
			return np_fail(err, NP_ETIME, 0,
				       "interrupted before a data connection came about");
		}
		return no_flow_came(run, err);
	}
	if (d->cause == NP_BY_SILENCE) {
		return silent_flow(run, err);
	}
	if (d->gate != NULL && np_gate_state(d->gate) < 0) {
		return np_fail(err, NP_ETIME, 0, "another session failed before the test began");
	}
	if (d->cause == NP_BY_SIGNAL && run->plan->warm_up_ms > 0 && run->window.started_ns == 0) {
		return np_fail(err, NP_ETIME, 0, "interrupted within the %g s of --warm-up",
			       run->plan->warm_up_ms / 1e3);
	}
	if (np_abandoned(run->stop)) {
		/* By a signal: whoever sent it will not wait for results, either. */
		return np_fail(err, NP_ETIME, 0, "interrupted before the far end had all data");
	}
	return NP_OK;
}

/* Has the far end no part in it? Who sends datagrams hears of a daemon by ICMP alone. */
static bool
failed_alone(const struct np_run *run)
{
	return run->err.sys == ENETUNREACH ||
	       (!run->plan->transport->connected && run->err.sys != ECONNREFUSED);
}

/*
 * The data connection broke: a daemon that gave up has said why by now, or does so at once. What it
 * says explains more than a reset does. One that goes on owes its results.
 */
static void
ask_why(struct np_client *c, const struct np_dialect *dialect, const struct np_drive *d,
	struct np_err *err)
{
	const struct np_run *run = d->run;
	struct np_err why = { .code = NP_OK };

	if (d->control_fd < 0 || d->lost != 0 || d->cause == NP_BY_CONTROL) {
		return;
	}
	c->owed = dialect->code + 2;
	if (run->err.code == NP_OK || d->cause != NP_BY_LOOP || failed_alone(run) ||
	    receive(c, "the test's results", within(SPARED_MS), &why) != NP_OK) {
		return;
	}
	c->owed = 0;
	if (answer_head(c).word != 0) {
		remote_error(c, "reports", err);
	}
}

/* The measured part and all that follows from it. */
static int
measure(struct np_client *c, const struct np_dialect *dialect, struct test *t,
	struct np_evidence *ev, struct np_err *err)
{
	struct np_run *run = &t->run;
	struct np_drive d = {
		.run = run,
		.control_fd = run->plan->no_control ? -1 : c->chan.fd,
		.length_ns = np_plan_time_ns(run->plan),
		.meet_ns = MEET_MS * NP_MSEC,
		.signals = c->signals,
		.gate = c->gate,
		.seat = c->seat,
		.watch = { c->watch },
	};
	int rc;

	d.watch[1] = np_evidence_watch(ev);
	d.watch[2] = np_evidence_guard(ev);
	np_live_begin(c->seat, run, d.length_ns);
	rc = np_drive(&d, err);
	np_live_end(c->seat);
	t->out->near_bag = np_evidence_end(ev, run);
	if (rc != NP_OK) {
		return rc;
	}
	tell_spread(c, t);
	if (judge_drive(c, &d, t, err) != NP_OK) {
		ask_why(c, dialect, &d, err);
		return err->code;
	}
	if (!run->plan->no_control && can_spare(c, t)) {
		rc = collect_spare(c, dialect, t, err);
	} else if (!run->plan->no_control) {
		rc = collect_needed(c, dialect, t, err);
	}
	if (rc != NP_OK) {
		return rc;
	}
	NP_EACH_WORKER (w, run) {
		if (run->side->drain != NULL) {
			run->side->drain(w);
		}
	}
	if (!run->plan->no_control && d.cause == NP_BY_CLOCK && run->plan->pattern->transactions &&
	    !something_counted(run)) {
		const char *hint = firewall_hint(run->plan);

		return np_fail(err, NP_ETIME, 0,
			       "not one transaction was completed within %g s (a longer -l? a "
			       "smaller -r or -b?%s%s)",
			       np_plan_time_s(run->plan), hint != NULL ? " " : "",
			       hint != NULL ? hint : "");
	}
	tell_none_arrived(c, t);
	tell_some_lost(c, t);
	tell_copied(c, t);
	return NP_OK;
}

/* The data connection goes to the path or the port that the daemon named. */
static int
aim(const struct np_client *c, struct test *t, const struct np_addr *peer, struct np_err *err)
{
	uint32_t n = 0;
	const struct np_eth *link = t->run.terms->eth;

	if (link != NULL) {
		if (t->run.plan->transport->connected) {
			np_llc_aim(link, t->out->far.mac, t->out->far.port, &t->run.end.peer);
		} else {
			np_eth_aim(link, t->out->far.mac, &t->run.end.peer);
		}
		return np_eth_check_peer(link, t->out->far.mac, err);
	}
	if (t->out->far.path[0] != '\0') {
		/* A daemon elsewhere would name whatever socket of this machine it likes. */
		if (c->used.len != 0 && !np_addr_is_here(&c->used)) {
			return np_fail(
			    err, NP_EUSAGE, 0,
			    "%s is another machine, and this test runs within one machine",
			    c->peer);
		}
		return np_addr_make_path(&t->run.end.peer, t->out->far.path, err);
	}
	t->run.end.peer = *peer;
	np_addr_set_port(&t->run.end.peer, t->out->far.port);
	if (np_addr_port(&t->run.end.peer) != t->out->far.port) {
		return np_fail(err, NP_EPEER, 0, "the daemon names port %u for the data connection",
			       t->out->far.port);
	}
	while (n < NP_GRANT_PORTS && t->out->far.ports[n] != 0) {
		t->run.end.far_port[n] = t->out->far.ports[n];
		n++;
	}
	t->run.end.far_ports = n;
	return NP_OK;
}

/*
 * What the daemon knows of the test, if it tells such things: a result is good without it. Nobody
 * waits for one that was silent already, or once more when the user has had enough.
 */
static void
ask_far(struct np_client *c, struct test *t, int rc)
{
	const char *why = c->lacks;
	struct np_err err = { .code = NP_OK };

	if (t->out->near_bag == NULL) {
		return;
	}
	if (t->run.plan->no_control) {
		why = "there is no control connection (-N)";
	} else if (rc == NP_ETIME) {
		why = "the test was aborted";
	} else if (t->out->cause == NP_BY_SIGNAL && (t->run.plan->pattern->connection_test ||
						     t->run.plan->far.call.interval_burst > 0)) {
		why = "the test was interrupted, which ends the control connection";
	} else if (why[0] == '\0' &&
		   fetch_evidence(c, NP_ABOUT_TEST, &t->out->far_bag, &err) != NP_OK) {
		why = err.msg;
	}
	snprintf(t->out->far_lacks, sizeof(t->out->far_lacks), "%s", why);
	if (t->run.plan->role == NP_LEAD) {
		np_sequence_join(t->out->near_bag, t->out->far_bag);
	} else {
		np_sequence_join(t->out->far_bag, t->out->near_bag);
	}
}

/* Is it our daemon that has answered? It says something that netperf's can't. */
static bool
is_ours(const struct np_client *c, const struct test *t)
{
	return t->out->far.ids || t->out->far.token != 0 || c->granted.caps != 0 ||
	       np_plan_needs_trio(t->run.plan);
}

/*
 * The daemon has answered: now its port is known. Ours sends nothing before it is asked to again,
 * so that what has come is no answer of it.
 */
static int
hear_daemon(struct np_client *c, struct test *t, const struct np_addr *data, struct np_sources *far,
	    struct np_err *err)
{
	bool ours = is_ours(c, t);

	if (ours) {
		np_hear_ours(&t->run, data, &c->used, far);
	}
	if (np_hear_only(&t->run, far, t->out->far.port, err) != NP_OK) {
		return err->code;
	}
	if (ours) {
		np_run_hear_afresh(&t->run);
	}
	return NP_OK;
}

/*
 * Agree with the daemon, if there is one, on what is to be done. Whom to hear is known before
 * anything is asked for, from which port only when the daemon has answered.
 */
static int
agree(struct np_client *c, const struct np_plan *p, const struct np_addr *peer, struct test *t,
      struct np_err *err)
{
	static const struct np_addr nobody = { .len = 0 };
	struct np_run *run = &t->run;
	struct np_sources far;

	run->end.peer = *peer;
	np_hear_find(run, peer, p->no_control ? &nobody : &c->used, p->no_control ? -1 : c->chan.fd,
		     &far);
	if (np_hear_only(run, &far, np_addr_port(peer), err) != NP_OK) {
		return err->code;
	}
	np_run_hear_afresh(run);
	if (!p->no_control &&
	    (check_plan(c, p, err) != NP_OK || negotiate(c, np_dialect_of(p), p, t, err) != NP_OK ||
	     aim(c, t, peer, err) != NP_OK || hear_daemon(c, t, peer, &far, err) != NP_OK)) {
		return err->code;
	}
	if (c->hooks.agreed != NULL) {
		c->hooks.agreed(c->hooks.ctx, run);
	}
	return NP_OK;
}

/* What all of that leaves: the sockets are closed, and the run is over. */
static int
conclude(struct test *t, int rc, struct np_err *err)
{
	struct np_err why;

	if (np_tally_take(&t->run, &t->out->tally, &why) != NP_OK && rc == NP_OK) {
		*err = why;
		rc = why.code;
	}
	np_run_free(&t->run);
	return rc;
}

int
np_client_run(struct np_client *c, const struct np_plan *p, const struct np_terms *terms,
	      const struct np_addr *peer, struct np_outcome *out, struct np_err *err)
{
	/* Does the daemon's time begin with its answer? One that collects waits with it, as we do.
	 */
	bool at_once = (c->granted.caps & NP_CAPS_EVIDENCE) == 0;
	struct test test = { .out = out };
	struct np_evidence *ev = NULL;
	struct np_stop stop = { 0 };
	int rc;

	memset(out, 0, sizeof(*out));
	np_far_init(&out->far);
	np_live_step(c->seat, p->no_control ? NP_LIVE_MEETING : NP_LIVE_ASKING);
	if (np_run_open(&test.run, p, terms, &stop, err) != NP_OK) {
		return err->code;
	}
	if (at_once) {
		test.run.end.peer = *peer;
		ev = np_evidence_begin(&c->collect, &test.run);
	}
	rc = agree(c, p, peer, &test, err);
	if (rc != NP_OK) {
		np_bag_free(np_evidence_end(ev, &test.run));
	} else {
		ev = at_once ? ev : np_evidence_begin(&c->collect, &test.run);
		np_evidence_capture(ev, &test.run);
		rc = measure(c, np_dialect_of(p), &test, ev, err);
		np_ids_put(&test.run, out->near_bag);
		ask_far(c, &test, rc);
	}
	if (rc != NP_OK && err->sys == ENETUNREACH && p->no_route) {
		np_fail_hint(err, "no router is used: try -R 1");
	}
	return conclude(&test, rc, err);
}

const struct np_bag *
np_outcome_receiver(const struct np_outcome *out)
{
	const struct np_plan *p = out->tally.plan;

	if (p == NULL || p->pattern->transactions || out->sessions > 1) {
		return NULL;
	}
	return p->role == NP_LEAD ? out->far_bag : out->near_bag;
}

void
np_outcome_free(struct np_outcome *out)
{
	np_tally_free(&out->tally);
	np_bag_free(out->near_bag);
	np_bag_free(out->far_bag);
	free(out->clean);
	out->near_bag = out->far_bag = NULL;
	out->clean = NULL;
}
