#include "run/client_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Read the received ERROR message, a tagged one; if it can't be read, the number is EPROTO. */
static void
read_error(const struct np_client *c, struct np_error_message *m)
{
	struct np_err ignored;

	if (np_tagged_get(&np_tagged_error, np_chan_message(&c->chan), m, &ignored) != NP_OK) {
		m->number = EPROTO;
	}
	np_text_printable(m->text);
}

void
np_client_tell(const struct np_client *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (c->hooks.tell != NULL) {
		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		c->hooks.tell(c->hooks.ctx, text);
	}
}

struct np_head
np_client_answer_head(const struct np_client *c)
{
	struct np_head head = np_frame_head(np_chan_message(&c->chan));
	struct np_error_message m;

	if (c->chan.is_ours) {
		head.word = 0; /* its length, and no error */
	}
	if (c->chan.is_ours && head.code == NP_EXT_ERROR) {
		read_error(c, &m);
		head.word = (int32_t)m.number;
	}
	return head;
}

int
np_client_remote_error(struct np_client *c, const char *verb, struct np_err *err)
{
	int error = np_client_answer_head(c).word;
	struct np_error_message m = { .text = "" };
	struct np_why why = { .text = "" };
	const char *text = m.text;

	c->remote_error = error;
	if (c->chan.is_ours) {
		read_error(c, &m);
	} else {
		/* A text without a NUL is truncated. */
		np_frame_get(c->chan.in, np_why_layout, &why, NULL);
		np_text_printable(why.text);
		text = why.magic == NP_WHY_MAGIC ? why.text : "";
	}
	if (text[0] != '\0') {
		return np_fail_verbatim(err, NP_ECONTROL, error, "the netserver at %s %s: %s",
					c->peer, verb, text);
	}
	if (error == NP_E_UNKNOWN_REQUEST) {
		return np_fail(err, NP_ECONTROL, 0,
			       "the netserver at %s does not know this test (error %d): it is "
			       "netperf's, or was built without it (try a newer netserver there)",
			       c->peer, error);
	}
	return np_fail_verbatim(err, NP_ECONTROL, error, "the netserver at %s reports error %d, %s",
				c->peer, error, strerror(error));
}

/* A message's code as in doc/protocol.md: netperf's are small, in decimal; ours in hex. */
static const char *
code_text(uint32_t code, char text[16])
{
	snprintf(text, 16, code < 10000 ? "%u" : "0x%08x", code);
	return text;
}

/* Fail unless the message is the answer, or an error, of any code: netperf's daemons vary it. */
static int
check_answer(const struct np_client *c, const char *what, uint32_t wanted, struct np_err *err)
{
	struct np_head head = np_client_answer_head(c);
	char came[16], due[16];

	/* No system has error numbers above 4095. */
	bool is_garbage = head.code != wanted && (head.word > 4095 || head.word < -4095);

	if (is_garbage || (!c->chan.is_ours && np_frame_is_text(c->chan.in, NP_FRAME_SIZE))) {
		return np_fail(err, NP_EPEER, 0,
			       "the program that listens at %s is not a netserver (see -p)",
			       c->peer);
	}
	if (head.word == 0 && head.code != wanted) { /* both ends are out of step */
		return np_fail(err, NP_EPEER, 0,
			       "%s sent a message of code %s instead of %s, code %s", c->peer,
			       code_text(head.code, came), what, code_text(wanted, due));
	}
	return NP_OK;
}

/* netperf's results mostly have the response's code, with reversed bytes if little-endian. */
int
np_client_check_results(const struct np_client *c, uint32_t request, struct np_err *err)
{
	struct np_head head = np_client_answer_head(c);

	if (!c->chan.is_ours &&
	    (head.code == request + 1 || head.code == __builtin_bswap32(request + 1))) {
		return NP_OK;
	}
	return check_answer(c, "the test's results", request + 2, err);
}

int
np_client_receive(struct np_client *c, const char *what, uint64_t deadline, struct np_err *err)
{
	uint64_t since = c->chan.since != 0 ? c->chan.since : np_now(), until;
	int before = np_signalled(&c->signals);
	int rc;

	do {
		until = np_live_until(c->live, deadline);
		c->chan.since = since; /* errors tell the duration of the whole wait */
		rc = np_chan_recv(&c->chan, what, until, c->signals.let_in, err);
		np_live_look(c->live, NULL);
		/* Go on if that was only the time to draw, or a signal that asks for no end. */
	} while ((rc == NP_ETIME && until < deadline && np_now() >= until) ||
		 (rc == NP_ESYS && err->sys == EINTR && np_signalled(&c->signals) == before));
	if (rc == NP_ESYS && err->sys == EINTR) {
		return np_fail_verbatim(err, NP_ETIME, EINTR,
					"interrupted while waiting for %s from %s", what, c->peer);
	}
	return rc;
}

/* Receive an answer. If it takes long, and there is still time to wait, tell the user. */
static int
receive_answer(struct np_client *c, const char *what, uint64_t answer_ms, struct np_err *err)
{
	uint64_t since = np_now(), deadline = np_deadline(answer_ms * NP_MSEC);
	uint64_t tell = since + c->hooks.tell_after_ns, now;
	int rc;

	if (c->hooks.tell == NULL || c->told || tell + NP_SEC > deadline) {
		return np_client_receive(c, what, deadline, err);
	}
	rc = np_client_receive(c, what, tell, err);
	now = np_now();
	if (rc != NP_ETIME || err->sys == EINTR || now >= deadline) {
		return rc;
	}
	if (c->chan.have == 0) { /* else a part of the answer has come */
		np_client_tell(
		    c, "%s %shas not answered for %.0f s: it %s; waiting for up to %.0f s more",
		    c->peer, c->heard ? "" : "accepted the connection, and ",
		    (double)(now - since) / 1e9,
		    c->heard ? "did before, and that end or the path to it is down"
			     : "hangs, or other tests run first",
		    (double)(deadline - now) / 1e9);
		c->told = true;
	}
	c->chan.since = since; /* errors tell the duration of the whole wait */
	return np_client_receive(c, what, deadline, err);
}

/* If a daemon never answered, hint why: a wrong passphrase, another service, an old netserver. */
static int
hint_at_no_answer(const struct np_client *c, struct np_err *err)
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

/* Receive an answer, after the results that are owed: half-close to end their test. */
static int
receive_next(struct np_client *c, const char *what, uint64_t answer_ms, struct np_err *err)
{
	int rc;

	if (c->owed != 0) {
		np_chan_half_close(&c->chan);
	}
	rc = receive_answer(c, what, answer_ms, err);
	if (rc == NP_OK && c->owed != 0 && np_client_answer_head(c).code == c->owed) {
		c->owed = 0;
		rc = receive_answer(c, what, answer_ms, err);
	}
	return rc;
}

int
np_client_request(struct np_client *c, const uint8_t *message, uint32_t code, const char *what,
		  uint64_t answer_ms, struct np_err *err)
{
	struct np_err ignored;
	int rc = np_chan_send(&c->chan, message, np_deadline(NP_ANSWER_MS * NP_MSEC), err);

	if (rc == NP_OK) {
		rc = receive_next(c, what, answer_ms, err);
	} else if (rc == NP_EPEER) {
		/* A daemon that refuses clients may not read their request, but send an error. */
		rc = np_client_receive(c, what, np_deadline(NP_SPARED_MS * NP_MSEC), &ignored);
	}
	if (rc != NP_OK) {
		return hint_at_no_answer(c, err);
	}
	c->heard = true;
	if (check_answer(c, what, code, err) != NP_OK) {
		return err->code;
	}
	return np_client_answer_head(c).word == 0 ? NP_OK
						  : np_client_remote_error(c, "refuses", err);
}

/* ---- Questions to the daemon ---- */

int
np_client_calibrate(struct np_client *c, struct np_calibrate_response *out, struct np_err *err)
{
	static const struct np_head head = { .code = NP_CPU_CALIBRATE, .word = -1 };
	uint8_t frame[NP_FRAME_SIZE];

	np_frame_put(frame, &head, NULL, NULL);
	if (np_client_request(c, frame, NP_CPU_CALIBRATE, "the calibration", NP_RESPONSE_MS, err) !=
	    NP_OK) {
		return err->code;
	}
	return np_frame_get(c->chan.in, np_calibrate_response_layout, out, err);
}

/* Send a question that the daemon answers with a bag: of evidence, or of its engines. */
static int
fetch_bag(struct np_client *c, const uint8_t *message, uint64_t answer_ms, struct np_bag **out,
	  struct np_err *err)
{
	*out = NULL;
	if (np_client_request(c, message, NP_EXT_BAG, "the evidence", answer_ms, err) != NP_OK) {
		return err->code;
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

int
np_client_fetch(struct np_client *c, enum np_ext_about about, uint64_t answer_ms,
		struct np_bag **out, struct np_err *err)
{
	struct np_evidence_message m = { .about = about };
	uint8_t message[NP_MESSAGE_MAX];

	*out = NULL;
	if ((c->granted.caps & NP_CAPS_EVIDENCE) == 0) {
		return np_fail(err, NP_ECONTROL, 0,
			       "the netserver at %s gives only netperf's results: it is not "
			       "Plumbline's, or was started with --no-evidence",
			       c->peer);
	}
	np_tagged_put(&np_tagged_evidence, &m, message);
	return fetch_bag(c, message, answer_ms, out, err);
}

int
np_client_host(struct np_client *c, struct np_bag **far, struct np_err *err)
{
	return np_client_fetch(c, NP_ABOUT_HOST, NP_ANSWER_MS, far, err);
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
		/* A daemon that hangs up on this as on greetings wants a passphrase. */
		if (!c->heard && np_client_calibrate(c, &any, err) != NP_OK) {
			return err->code;
		}
		return np_fail(err, NP_EUNSUP, 0,
			       "the netserver at %s does not say what its engines are (it is "
			       "netperf's)",
			       c->peer);
	}
	if (np_run_open(&run, p, terms, &stop, err) != NP_OK) { /* the request has its sizes */
		return err->code;
	}
	np_engines_dialect.encode_request(&np_engines_dialect, p, &run, message);
	np_run_free(&run);
	return fetch_bag(c, message, NP_ANSWER_MS, far, err);
}
