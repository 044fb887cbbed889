/*
 * What the other end says of itself: greetings and bags. The first byte says
 * which; what is read of a bag survives another trip.
 */
#include "bench/engine/engine.h"
#include "tests/fuzz/fuzz.h"
#include "wire/plan.h"
#include "wire/tagged.h"

static void
check_item(const struct np_bag_item *it)
{
	must(strlen(it->name) > 0 && strlen(it->name) < NP_BAG_NAME);
	must(it->text == NULL || strlen(it->text) < NP_BAG_TEXT);
	for (const char *at = it->text; at != NULL && *at != '\0'; at++) {
		must((unsigned char)*at >= ' ');
	}
}

/* As if it were the answer to ENGINES. */
static void
read_engines(const struct np_bag *b)
{
	struct np_engine_told e;
	size_t at = 0;

	while (np_engine_next(b, &at, &e)) {
		must(at <= np_bag_count(b) && strlen(e.name) < NP_BAG_NAME && e.help != NULL);
	}
}

static void
read_bag(const uint8_t *data, size_t size)
{
	struct np_bag *b = np_bag_new(), *again = np_bag_new();
	struct np_bag_item one, two;
	struct np_err err = { .code = NP_OK };
	uint8_t *bytes, *message = malloc(NP_TAGGED_AT + size);

	must(b != NULL && again != NULL && message != NULL);
	np_tagged_head(message, NP_EXT_BAG, size);
	memcpy(message + NP_TAGGED_AT, data, size);
	if (np_bag_decode(message, b, &err) != NP_OK) {
		must(err.code == NP_EPEER && err.msg[0] != '\0');
	}
	must(np_bag_encode(b, &bytes, &err) == NP_OK);
	must((uint32_t)np_frame_head(bytes).word <= NP_EXT_BYTES);
	must(np_bag_decode(bytes, again, &err) == NP_OK);
	must(np_bag_count(b) == np_bag_count(again) && np_bag_left_out(again) == 0);
	for (size_t i = 0; np_bag_at(b, i, &one); i++) {
		check_item(&one);
		must(np_bag_find(again, one.name, &two) && one.kind == two.kind);
		must(one.count == two.count && one.i == two.i);
	}
	read_engines(b);
	free(bytes);
	free(message);
	np_bag_free(b);
	np_bag_free(again);
}

static void
read_hello(const uint8_t *frame)
{
	uint8_t written[NP_FRAME_SIZE];
	struct np_err err = { .code = NP_OK };
	struct np_hello_message m, again;

	if (np_hello_get(frame, &m, &err) != NP_OK) {
		must(err.code == NP_EPEER && err.msg[0] != '\0');
		return;
	}
	np_hello_put(written, NP_EXT_WELCOME, &m);
	must(np_hello_get(written, &again, &err) == NP_OK);
	must(m.version == again.version && m.caps == again.caps && m.every_ms == again.every_ms);
	must(strcmp(m.identity, again.identity) == 0 && strcmp(m.device, again.device) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t frame[NP_FRAME_SIZE];

	if (size == 0) {
		return -1;
	}
	if (data[0] % 2 == 0) {
		read_bag(data + 1, size - 1);
		return 0;
	}
	fuzz_fill(frame, sizeof(frame), data + 1, size - 1);
	read_hello(frame);
	return 0;
}
