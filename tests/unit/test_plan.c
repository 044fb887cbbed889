/*
 * PLAN, GRANT, RESULT and ENGINES as bytes: every field of their tables survives the trip, keeps to
 * its bounds, and costs nothing while it is absent.
 */
#include "wire/plan.h"

#include "tests/lib/check.h"
#include "tests/lib/sockets.h"
#include "wire/wire.h"

static const struct np_tagged *const messages[] = { &np_tagged_plan,     &np_tagged_grant,
						    &np_tagged_result,   &np_tagged_engines,
						    &np_tagged_evidence, &np_tagged_error };

/* Zeroed room of exactly one message, so that a store behind it is noticed. */
static void *
room_for(const struct np_tagged *t)
{
	void *m = calloc(1, t->size);

	assert_non_null(m);
	np_tagged_init(t, m);
	return m;
}

static int64_t
random_within(const struct np_tag_row *r, uint64_t *seed)
{
	uint64_t span = (uint64_t)r->most - (uint64_t)r->least + 1;

	return (int64_t)((uint64_t)r->least +
			 (span == 0 ? next_random(seed) : next_random(seed) % span));
}

/* Any value that the row allows. */
static void
fill(const struct np_tag_row *r, uint8_t *member, uint64_t *seed)
{
	int64_t v = random_within(r, seed);
	uint32_t word = (uint32_t)v, count = (uint32_t)(next_random(seed) % (r->room + 1));
	double real = (double)v;

	switch (r->kind) {
	case NP_TAG_U32:
	case NP_TAG_I32:
		memcpy(member, &word, sizeof(word));
		break;
	case NP_TAG_I64:
		memcpy(member, &v, sizeof(v));
		break;
	case NP_TAG_F64:
		memcpy(member, &real, sizeof(real));
		break;
	case NP_TAG_TEXT:
		for (uint32_t i = 0; i + 1 < r->room && i < count; i++) {
			member[i] = (uint8_t)(1 + next_random(seed) % 255);
		}
		break;
	case NP_TAG_BYTES:
	case NP_TAG_LIST:
		memcpy(member, &count, sizeof(count));
		for (size_t i = 0; i < count * (r->kind == NP_TAG_LIST ? 4U : 1U); i++) {
			member[sizeof(count) + i] = (uint8_t)next_random(seed);
		}
		break;
	}
}

static void
expect_same(const struct np_tagged *t, const void *m)
{
	uint8_t message[NP_MESSAGE_MAX];
	FREED_BY(free_memory) void *again = room_for(t);
	struct np_err err = { .code = NP_OK };
	size_t size;

	memset(message, 0xee, sizeof(message));
	size = np_tagged_put(t, m, message);
	assert_true(size <= NP_TAGGED_AT + t->most && size % 4 == 0);
	assert_int_equal(np_frame_head(message).code, t->type);
	assert_int_equal(np_frame_head(message).word, size - NP_TAGGED_AT);
	for (size_t at = size; at < sizeof(message); at++) {
		assert_int_equal(message[at], 0xee);
	}
	fail_if(np_tagged_get(t, message, again, &err) != NP_OK, "%s", err.msg);
	assert_memory_equal(again, m, t->size);
}

TEST(every_field_survives_the_trip)
{
	uint64_t seed = 31;

	for (size_t i = 0; i < LEN(messages); i++) {
		const struct np_tagged *t = messages[i];

		for (int round = 0; round < 300; round++) {
			FREED_BY(free_memory) uint8_t *m = room_for(t);

			for (size_t k = 0; k < t->rows; k++) {
				if (round == 0 || next_random(&seed) % 2 == 0) {
					fill(&t->row[k], m + t->row[k].at, &seed);
				}
			}
			expect_same(t, m);
		}
	}
}

/* Tags are unique, names too, and the texts of a message in full fit. */
TEST(tables_are_whole)
{
	for (size_t i = 0; i < LEN(messages); i++) {
		const struct np_tagged *t = messages[i];

		for (size_t k = 0; k < t->rows; k++) {
			const struct np_tag_row *r = &t->row[k];

			assert_true(r->tag != 0 && r->least <= r->most);
			assert_true(r->room != 0 ||
				    (r->absent >= r->least && r->absent <= r->most));
			assert_ptr_equal(np_tagged_row(t, r->tag), r);
			for (size_t n = 0; n < k; n++) {
				assert_string_not_equal(r->name, t->row[n].name);
			}
		}
		assert_null(np_tagged_row(t, 0));
		assert_null(np_tagged_row(t, 999));
	}
}

TEST(absent_fields_take_no_room)
{
	for (size_t i = 0; i < LEN(messages); i++) {
		uint8_t message[NP_MESSAGE_MAX], *m = room_for(messages[i]);

		assert_int_equal(np_tagged_put(messages[i], m, message), NP_TAGGED_AT);
		expect_same(messages[i], m);
		free(m);
	}
}

/* More than any message has. */
enum { ROOM = 2 * NP_MESSAGE_MAX };

/* A message with one field of `length` bytes. */
static void
one_field(uint8_t frame[ROOM], const struct np_tagged *t, uint32_t tag, uint64_t value,
	  size_t length)
{
	uint32_t word = (uint32_t)value;
	struct np_wire w;

	memset(frame, 0, ROOM);
	np_tagged_head(frame, t->type, 8 + np_tag_padded(length));
	np_wire_write_to(&w, frame + NP_TAGGED_AT, ROOM - NP_TAGGED_AT);
	np_tag_put(&w, tag, length);
	if (length == 8) {
		np_wire_u64_hilo(&w, "value", &value);
	} else if (length == 4) {
		np_wire_u32(&w, "value", &word);
	} else {
		memset(frame + NP_TAGGED_AT + 8, 'x', length);
	}
}

static void
expect_refused(const struct np_tagged *t, const uint8_t *frame, const char *name)
{
	struct np_err err = { .code = NP_OK };
	FREED_BY(free_memory) void *m = room_for(t);

	fail_if(np_tagged_get(t, frame, m, &err) != NP_EPEER, "%s: %s was taken", t->name, name);
	assert_int_equal(err.sys, EINVAL);
	assert_has(err.msg, t->name);
	assert_has(err.msg, name);
}

static uint64_t
bits_of(const struct np_tag_row *r, int64_t v)
{
	double real = (double)v;
	uint64_t bits = (uint64_t)v;

	if (r->kind == NP_TAG_F64) {
		memcpy(&bits, &real, sizeof(bits));
	}
	return bits;
}

static bool
is_number(const struct np_tag_row *r)
{
	return r->kind != NP_TAG_TEXT && r->kind != NP_TAG_BYTES && r->kind != NP_TAG_LIST;
}

/* One below the least and one above the most, where the field has room to say so. */
static void
try_bounds(const struct np_tagged *t, const struct np_tag_row *r)
{
	bool word = r->kind == NP_TAG_U32 || r->kind == NP_TAG_I32;
	int64_t floor = r->kind == NP_TAG_U32 ? 0 : word ? INT32_MIN : INT64_MIN;
	int64_t roof = r->kind == NP_TAG_U32 ? UINT32_MAX : word ? INT32_MAX : INT64_MAX;
	uint8_t frame[ROOM];

	if (r->least > floor) {
		one_field(frame, t, r->tag, bits_of(r, r->least - 1), word ? 4 : 8);
		expect_refused(t, frame, r->name);
	}
	if (r->most < roof) {
		one_field(frame, t, r->tag, bits_of(r, r->most + 1), word ? 4 : 8);
		expect_refused(t, frame, r->name);
	}
}

TEST(each_field_keeps_to_its_bounds)
{
	uint8_t frame[ROOM];

	for (size_t i = 0; i < LEN(messages); i++) {
		for (size_t k = 0; k < messages[i]->rows; k++) {
			const struct np_tag_row *r = &messages[i]->row[k];
			size_t most = r->kind == NP_TAG_LIST   ? 4 * r->room
				      : r->kind == NP_TAG_TEXT ? r->room - 1
							       : r->room;

			one_field(frame, messages[i], r->tag, 0,
				  is_number(r) ? 3 : most + (r->kind == NP_TAG_LIST ? 4 : 1));
			expect_refused(messages[i], frame, r->name);
			if (is_number(r)) {
				try_bounds(messages[i], r);
			}
		}
	}
}

TEST(what_is_no_number_is_refused)
{
	static const double nasty[] = { (double)NAN, (double)INFINITY, -(double)INFINITY };
	uint8_t frame[ROOM];

	for (size_t k = 0; k < np_tagged_result.rows; k++) {
		const struct np_tag_row *r = &np_tagged_result.row[k];

		for (size_t i = 0; i < LEN(nasty) && r->kind == NP_TAG_F64; i++) {
			uint64_t bits;

			memcpy(&bits, &nasty[i], sizeof(bits));
			one_field(frame, &np_tagged_result, r->tag, bits, 8);
			expect_refused(&np_tagged_result, frame, r->name);
		}
	}
}

TEST(no_flows_and_too_many_are_none)
{
	static const uint32_t counts[] = { 0, 10001, UINT32_MAX };
	uint8_t frame[ROOM];

	for (size_t i = 0; i < LEN(counts); i++) {
		one_field(frame, &np_tagged_plan, 32, counts[i], 4);
		expect_refused(&np_tagged_plan, frame, "flows");
	}
}

TEST(unknown_tags_are_skipped)
{
	struct np_grant_message m, again;
	uint8_t frame[NP_MESSAGE_MAX], longer[NP_MESSAGE_MAX] = { 0 };
	size_t size;
	struct np_err err = { .code = NP_OK };
	struct np_wire w;

	np_tagged_init(&np_tagged_grant, &m);
	m.flows = 77;
	m.token = 5;
	size = np_tagged_put(&np_tagged_grant, &m, frame);
	np_tagged_head(longer, NP_PLAN + 1, size - NP_TAGGED_AT + 16);
	np_wire_write_to(&w, longer + NP_TAGGED_AT, 8);
	np_tag_put(&w, 4711, 7);
	memcpy(longer + NP_TAGGED_AT + 16, frame + NP_TAGGED_AT, size - NP_TAGGED_AT);
	assert_int_equal(np_tagged_get(&np_tagged_grant, longer, &again, &err), NP_OK);
	assert_int_equal(again.flows, 77);
	assert_true(again.token == 5);
}

TEST(what_is_cut_off_is_refused)
{
	static const uint32_t lengths[] = { NP_FRAME_SIZE, UINT32_MAX, UINT32_MAX - 3, 5 };
	uint8_t frame[ROOM];
	struct np_err err;

	for (size_t i = 0; i < LEN(lengths); i++) {
		for (uint32_t tag = 1; tag < 1000; tag += 37) {
			struct np_plan_message m;
			struct np_wire w;

			one_field(frame, &np_tagged_plan, tag, 0, 4);
			np_wire_write_to(&w, frame + NP_TAGGED_AT, 8);
			np_tag_put(&w, tag, lengths[i]);
			assert_int_equal(np_tagged_get(&np_tagged_plan, frame, &m, &err), NP_EPEER);
			assert_int_equal(err.sys, EINVAL);
		}
	}
}

/* Of two fields of one tag the second counts, and nothing of the first. */
TEST(a_field_may_come_twice)
{
	uint8_t frame[NP_MESSAGE_MAX], twice[NP_MESSAGE_MAX] = { 0 };
	size_t first, second;
	struct np_plan_message m;
	struct np_err err = { .code = NP_OK };

	np_tagged_init(&np_tagged_plan, &m);
	strcpy(m.pattern, "sendfile");
	first = np_tagged_put(&np_tagged_plan, &m, twice);
	strcpy(m.pattern, "rr");
	second = np_tagged_put(&np_tagged_plan, &m, frame) - NP_TAGGED_AT;
	memcpy(twice + first, frame + NP_TAGGED_AT, second);
	np_tagged_head(twice, NP_PLAN, first - NP_TAGGED_AT + second);
	assert_int_equal(np_tagged_get(&np_tagged_plan, twice, &m, &err), NP_OK);
	assert_string_equal(m.pattern, "rr");
}

TEST_MAIN()
