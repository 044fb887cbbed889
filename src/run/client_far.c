#include "run/client_parts.h"

#include <errno.h>

#include "wire/plan.h"

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
	if (np_frame_head(c->chan.in).word != 0) {
		return np_client_remote_error(c, "refuses", err);
	}
	return np_frame_get(c->chan.in, np_calibrate_response_layout, out, err);
}

/* Send a question that the daemon answers with a bag. */
static int
fetch_bag(struct np_client *c, const uint8_t *message, int answer_ms, struct np_bag **out,
	  struct np_err *err)
{
	*out = NULL;
	if (np_client_request(c, message, NP_EXT_BAG, "the evidence", answer_ms, err) != NP_OK) {
		return err->code;
	}
	if (np_client_answer_head(c).word != 0) {
		return np_client_remote_error(c, "refuses", err);
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
np_client_fetch(struct np_client *c, enum np_ext_about about, int answer_ms, struct np_bag **out,
		struct np_err *err)
{
	struct np_evidence_message m = { .about = about };
	uint8_t message[NP_MESSAGE_MAX];

	np_tagged_put(&np_tagged_evidence, &m, message);
	return fetch_bag(c, message, answer_ms, out, err);
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
		/* A daemon that hung up on the greeting may be netperf's, or want a passphrase. */
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
	np_engines_encode(p, &run, message);
	np_run_free(&run);
	return fetch_bag(c, message, NP_ANSWER_MS, far, err);
}
