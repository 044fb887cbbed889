/*
 * The decoders: whatever the bytes of a message are, every layout reads something of it that, once
 * written, reads the same again.
 */
#include "tests/fuzz/fuzz.h"
#include "wire/msg.h"
#include "wire/plan.h"

static const struct {
	np_layout *layout;
	size_t size;
} kinds[] = {
	{ np_omni_request_layout, sizeof(struct np_omni_request) },
	{ np_omni_response_layout, sizeof(struct np_omni_response) },
	{ np_omni_results_layout, sizeof(struct np_omni_results) },
	{ np_stream_request_layout, sizeof(struct np_stream_request) },
	{ np_stream_response_layout, sizeof(struct np_stream_response) },
	{ np_stream_results_layout, sizeof(struct np_stream_results) },
	{ np_rr_request_layout, sizeof(struct np_rr_request) },
	{ np_rr_response_layout, sizeof(struct np_rr_response) },
	{ np_rr_results_layout, sizeof(struct np_rr_results) },
	{ np_udp_request_layout, sizeof(struct np_udp_request) },
	{ np_udp_242_request_layout, sizeof(struct np_udp_request) },
	{ np_udp_response_layout, sizeof(struct np_udp_response) },
	{ np_udp_results_layout, sizeof(struct np_udp_results) },
	{ np_unix_stream_request_layout, sizeof(struct np_unix_stream_request) },
	{ np_unix_stream_response_layout, sizeof(struct np_unix_stream_response) },
	{ np_unix_stream_results_layout, sizeof(struct np_unix_stream_results) },
	{ np_unix_rr_results_layout, sizeof(struct np_unix_rr_results) },
	{ np_stream_rr_request_layout, sizeof(struct np_unix_rr_request) },
	{ np_stream_rr_response_layout, sizeof(struct np_unix_rr_response) },
	{ np_dg_rr_request_layout, sizeof(struct np_unix_rr_request) },
	{ np_dg_rr_response_layout, sizeof(struct np_unix_rr_response) },
	{ np_dg_stream_request_layout, sizeof(struct np_dg_stream_request) },
	{ np_dg_stream_response_layout, sizeof(struct np_dg_stream_response) },
	{ np_dg_stream_results_layout, sizeof(struct np_dg_stream_results) },
	{ np_calibrate_response_layout, sizeof(struct np_calibrate_response) },
	{ np_text_layout, sizeof(struct np_text) },
	{ np_why_layout, sizeof(struct np_why) },
};

/* Zeroed memory of exactly the message's size, so that a store behind it is noticed. */
static void *
room_for(size_t size)
{
	void *m = calloc(1, size);

	must(m != NULL);
	return m;
}

static void
read_and_write(size_t kind, const uint8_t *frame)
{
	void *came = room_for(kinds[kind].size), *again = room_for(kinds[kind].size);
	uint8_t written[NP_FRAME_SIZE], rewritten[NP_FRAME_SIZE];
	struct np_head head = np_frame_head(frame);
	struct np_err err = { .code = NP_OK };

	if (np_frame_get(frame, kinds[kind].layout, came, &err) != NP_OK) {
		must(err.code == NP_EPEER && err.msg[0] != '\0');
	}
	np_frame_put(written, &head, kinds[kind].layout, came);
	must(np_frame_get(written, kinds[kind].layout, again, &err) == NP_OK);
	must(memcmp(came, again, kinds[kind].size) == 0);
	np_frame_put(rewritten, &head, kinds[kind].layout, again);
	must(memcmp(written, rewritten, sizeof(written)) == 0);
	free(came);
	free(again);
}

/* What is taken of tagged fields keeps to its table, and survives another trip. */
static void
read_fields(const struct np_tagged *t, const uint8_t *data, size_t size)
{
	uint8_t *came = room_for(t->size), *again = room_for(t->size);
	uint8_t *message = room_for(NP_TAGGED_AT + size), written[NP_MESSAGE_MAX];
	struct np_err err = { .code = NP_OK };

	np_tagged_head(message, t->type, size);
	memcpy(message + NP_TAGGED_AT, data, size);
	if (np_tagged_get(t, message, came, &err) != NP_OK) {
		must(err.code == NP_EPEER && err.sys > 0 && err.msg[0] != '\0');
	} else {
		must(np_tagged_put(t, came, written) <= NP_TAGGED_AT + t->most);
		must(np_tagged_get(t, written, again, &err) == NP_OK);
		for (size_t i = 0; i < t->rows; i++) {
			const char *text = (const char *)came + t->row[i].at;

			must(t->row[i].kind != NP_TAG_TEXT ||
			     (memchr(text, '\0', t->row[i].room) != NULL &&
			      strcmp(text, (const char *)again + t->row[i].at) == 0));
		}
	}
	free(message);
	free(came);
	free(again);
}

/* The addresses that an OMNI request carries. */
static void
read_addresses(const uint8_t *frame)
{
	static const uint32_t families[] = { NP_WF_UNSPEC, NP_WF_INET, NP_WF_INET6, 99 };
	struct np_omni_request m;
	struct np_err err;

	(void)np_frame_get(frame, np_omni_request_layout, &m, &err);
	for (size_t i = 0; i < LEN(families); i++) {
		uint8_t ip[16] = { 0 }, again[16] = { 0 };
		uint32_t words[4];

		np_words_to_ip(families[i], m.netperf_ip, ip);
		np_ip_to_words(families[i], ip, words);
		np_words_to_ip(families[i], words, again);
		must(memcmp(ip, again, sizeof(ip)) == 0);
	}
}

static const struct np_tagged *const ours[] = { &np_tagged_plan, &np_tagged_grant,
						&np_tagged_result, &np_tagged_evidence,
						&np_tagged_error };

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t frame[NP_FRAME_SIZE];

	fuzz_fill(frame, sizeof(frame), data, size);
	for (size_t i = 0; i < LEN(kinds); i++) {
		read_and_write(i, frame);
	}
	read_addresses(frame);
	/* A seed has a whole message, of which the fields are read. */
	for (size_t i = 0, at = size < NP_TAGGED_AT ? size : NP_TAGGED_AT; i < LEN(ours); i++) {
		read_fields(ours[i], data + at, size - at);
	}
	(void)np_frame_is_text(data, size);
	return 0;
}
