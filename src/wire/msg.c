#include "wire/msg.h"

#include <arpa/inet.h>
#include <string.h>

#include "wire/wire.h"

/* The two words that each message begins with. */
static void
head_layout(struct np_wire *w, struct np_head *h)
{
	np_wire_u32(w, "code", &h->code);
	np_wire_i32(w, "error or CPU", &h->word);
}

static void
words_layout(struct np_wire *w, const char *field, uint32_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		np_wire_u32(w, field, &words[i]);
	}
}

#define NP_MESSAGE(layout, type, title)                                                            \
	void np_##layout##_layout(struct np_wire *w, void *m)                                      \
	{                                                                                          \
		struct np_##type *r = m;
#define NP_ORDER(layout, type, title) NP_MESSAGE(layout, type, title)
#define NP_NUMBER(type, name, note) NUMBER_##type(w, #name, &r->name);
#define NUMBER_I32 np_wire_i32
#define NUMBER_U32 np_wire_u32
#define NUMBER_U64 np_wire_u64_hilo
#define NUMBER_F32 np_wire_f32
#define NUMBER_F64 np_wire_f64
#define NP_TEXT(name, bytes, note) np_wire_text(w, #name, r->name, bytes);
#define NP_TEXT4(name, bytes, note) np_wire_text4(w, #name, r->name, bytes);
#define NP_WORDS(name, count, note) words_layout(w, #name, r->name, count);
#define NP_SKIP(bytes, names) np_wire_skip(w, bytes);
#define NP_END }
#include "wire/messages.def"

/*
 * NP_SPARE_AT is behind all fields of OMNI. Programs may leave parts of an earlier message there,
 * but only a long passphrase reaches so far, and two of its words would have to equal these.
 */
#define SPARE_MAGIC 0x504c4543U /* "PLEC" */
#define SPARE_FIRST 0x81f0e05dU /* NP_ECHO_ASKED; the others follow */

void
np_spare_put(uint8_t bytes[NP_ECHO_SIZE], enum np_spare what, uint64_t token)
{
	uint32_t words[] = { SPARE_MAGIC, SPARE_FIRST + (what - NP_ECHO_ASKED),
			     (uint32_t)(token >> 32), (uint32_t)token };
	struct np_wire w;

	np_wire_write_to(&w, bytes, NP_ECHO_SIZE);
	words_layout(&w, "echo", words, 4);
}

enum np_spare
np_spare_get(const uint8_t bytes[NP_ECHO_SIZE], uint64_t *token)
{
	uint32_t words[4], after;
	struct np_wire w;

	np_wire_read_from(&w, bytes, NP_ECHO_SIZE);
	words_layout(&w, "echo", words, 4);
	*token = (uint64_t)words[2] << 32 | words[3];
	after = words[1] - SPARE_FIRST;
	return words[0] == SPARE_MAGIC && after <= NP_IDS_GRANTED - NP_ECHO_ASKED
		   ? (enum np_spare)(NP_ECHO_ASKED + after)
		   : NP_SPARE_NONE;
}

void
np_frame_put(uint8_t frame[NP_FRAME_SIZE], const struct np_head *head, np_layout *layout,
	     const void *m)
{
	struct np_head h = *head;
	struct np_wire w;

	np_wire_write_to(&w, frame, NP_FRAME_SIZE);
	head_layout(&w, &h);
	if (layout != NULL) {
		/* The cast is safe: when it writes, a layout stores nothing to m. */
		layout(&w, (void *)m);
	}
	np_wire_skip(&w, np_wire_left(&w));
}

struct np_head
np_frame_head(const uint8_t message[NP_HEAD_SIZE])
{
	struct np_head h;
	struct np_wire w;

	np_wire_read_from(&w, message, NP_HEAD_SIZE);
	head_layout(&w, &h);
	return h;
}

int
np_frame_get(const uint8_t frame[NP_FRAME_SIZE], np_layout *layout, void *m, struct np_err *err)
{
	struct np_head h;
	struct np_wire w;

	np_wire_read_from(&w, frame, NP_FRAME_SIZE);
	head_layout(&w, &h);
	layout(&w, m);
	return np_wire_check(&w, err);
}

bool
np_frame_is_text(const uint8_t *bytes, size_t n)
{
	size_t looked_at = n < 8 ? n : 8;

	for (size_t i = 0; i < looked_at; i++) {
		bool printable = bytes[i] >= ' ' && bytes[i] <= '~';

		if (!printable && bytes[i] != '\t' && bytes[i] != '\r' && bytes[i] != '\n') {
			return false;
		}
	}
	/* The first byte or two of a netperf answer may look like letters (0x62 is 'b'). */
	return n >= 4;
}

/* Bytes of an address of this family. */
static size_t
ip_bytes(uint32_t ipfamily)
{
	return ipfamily == NP_WF_INET ? 4 : ipfamily == NP_WF_INET6 ? 16 : 0;
}

void
np_ip_to_words(uint32_t ipfamily, const uint8_t *ip, uint32_t words[4])
{
	memset(words, 0, 4 * sizeof(words[0]));
	if (ip_bytes(ipfamily) > 0) {
		memcpy(words, ip, ip_bytes(ipfamily));
	}
	words[0] = ipfamily == NP_WF_INET ? ntohl(words[0]) : words[0];
}

void
np_words_to_ip(uint32_t ipfamily, const uint32_t words[4], uint8_t *ip)
{
	const uint32_t four = htonl(words[0]);

	if (ip_bytes(ipfamily) > 0) {
		memcpy(ip, ipfamily == NP_WF_INET ? &four : words, ip_bytes(ipfamily));
	}
}
