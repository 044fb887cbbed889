/* What a client says of results that are none, or fall short. */
#include <netinet/in.h>

#include "run/client_parts.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"

static char said[512];

static void
note(void *ctx, const char *text)
{
	snprintf(said, sizeof(said), "%s", text);
}

/* A run that has ended, at the client. */
struct bed {
	struct np_plan plan;
	struct np_outcome out;
	struct np_client_test t;
	struct np_client c;
	struct np_drive d;
};

static void
begin(struct bed *b, const char *bench, int64_t length)
{
	struct np_err err = { .code = NP_OK };
	static struct np_stop stop;

	*b = (struct bed){ .t.out = &b->out, .c.hooks.tell = note, .d.cause = NP_BY_CLOCK };
	client_params(&b->plan, np_bench_find(bench), AF_INET, length);
	assert_int_equal(np_run_open(&b->t.run, &b->plan, NULL, &stop, &err), NP_OK);
	np_far_init(&b->out.far);
	b->out.far.reported = true;
	b->out.cause = b->d.cause;
}

static const char *
judged(struct bed *b)
{
	struct np_err err = { .code = NP_OK };

	said[0] = '\0';
	assert_int_equal(np_client_judge_results(&b->c, &b->d, &b->t, &err), NP_OK);
	np_run_free(&b->t.run);
	return said;
}

TEST(what_was_never_acknowledged_was_too_large)
{
	/* A handshake that lost a packet: TCP sends again after 3 s, and the window is over. */
	for (unsigned retransmitted = 0; retransmitted < 2; retransmitted++) {
		struct bed b;

		begin(&b, "TCP_STREAM", 1);
		b.t.run.closing.mss = 1448;
		b.t.run.closing.info.tcpi_unacked = 10;
		b.t.run.closing.info.tcpi_total_retrans = retransmitted;
		b.t.run.closing.info.tcpi_rto = retransmitted > 0 ? 200000 : 3000000;
		assert_has(judged(&b), "those of 1448 bytes do not");
	}
}

TEST(a_count_that_falls_short_is_told)
{
	static const struct {
		int64_t length;
		uint64_t received;
		enum np_cause cause;
		const char *says;
	} rows[] = {
		{ -2000, 1500, NP_BY_CONTROL, "1500 of 2000 bytes" },
		{ -2000, 2000, NP_BY_CONTROL, "" },
		{ -2000, 1500, NP_BY_SIGNAL, "" },
		{ 1, 1500, NP_BY_CONTROL, "" },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct bed b;

		begin(&b, "TCP_MAERTS", rows[i].length);
		b.d.cause = rows[i].cause;
		np_set(&b.t.run.worker->count->received, rows[i].received);
		if (rows[i].says[0] == '\0') {
			assert_string_equal(judged(&b), "");
		} else {
			assert_has(judged(&b), rows[i].says);
		}
	}
}

TEST_MAIN()
