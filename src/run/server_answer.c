/* The daemon's answers: messages, and errors on the wire and in the log. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "run/server_parts.h"

enum { ANSWER_S = 10 }; /* for sending an answer */

int
np_server_answer(struct np_chan *c, const uint8_t *message, struct np_err *err)
{
	return np_chan_send(c, message, np_deadline(ANSWER_S * NP_SEC), err);
}

int
np_server_answer_code(struct np_chan *c, uint32_t code, int32_t word, np_layout *layout,
		      const void *m, struct np_err *err)
{
	struct np_head head = { .code = code, .word = word };
	uint8_t frame[NP_FRAME_SIZE];

	np_frame_put(frame, &head, layout, m);
	return np_server_answer(c, frame, err);
}

int
np_server_refuse(const struct np_server *s, struct np_chan *c, uint32_t code, struct np_err *err)
{
	const struct np_err why = *err;
	int number = why.sys != 0 ? why.sys : EINVAL, rc;
	struct np_why m = { .magic = NP_WHY_MAGIC };
	struct np_error_message ours;
	uint8_t message[NP_MESSAGE_MAX];

	np_log(s->log, NP_LOG_ERROR, "%s: %s", s->peer, why.msg);
	if (np_is_ours(code)) {
		np_tagged_init(&np_tagged_error, &ours);
		ours.number = (uint32_t)number;
		snprintf(ours.text, sizeof(ours.text), "%s", why.msg);
		np_tagged_put(&np_tagged_error, &ours, message);
		rc = np_server_answer(c, message, err);
	} else {
		snprintf(m.text, sizeof(m.text), "%.*s", (int)sizeof(m.text) - 1, why.msg);
		rc = np_server_answer_code(c, code, number, np_why_layout, &m, err);
	}
	if (rc == NP_OK) {
		*err = why;
	}
	return err->code;
}
