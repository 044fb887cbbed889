/*
 * What a hostile daemon says of a test, from its messages to what netperf prints of them. The input
 * is a byte that chooses the test, one that chooses the style, the daemon's response and its
 * results, each a byte that tells how many bytes of it follow; the rest of it is zeros.
 */
#include <stdbool.h>

#include "base/clock.h"
#include "out/format.h"
#include "run/repeat.h"
#include "run/trial.h"
#include "tests/fuzz/fuzz.h"
#include "wire/tagged.h"

/* Two seconds of a test of which this end counted a little. */
static void
measure(const struct np_bench *bench, struct np_plan *p, struct np_outcome *out)
{
	np_plan_init(p);
	p->bench = bench;
	p->pattern = bench->pattern;
	p->transport = bench->transport;
	p->role = bench->near_role;
	p->active = true;
	p->request = p->response = p->pattern->sized ? 1 : -1;
	p->near.place.measure_cpu = p->far.place.measure_cpu = true;
	memset(out, 0, sizeof(*out));
	out->tally.end.count.sent = 1000;
	out->tally.end.count.sends = 10;
	out->tally.end.count.received = 1000;
	out->tally.end.count.receives = 10;
	out->tally.end.count.transactions = 10;
	np_far_init(&out->far);
	out->tally.plan = p;
	out->tally.started_ns = 5 * NP_SEC;
	out->tally.ended_ns = 7 * NP_SEC;
	out->tally.end.closing.cpu.known = true;
	out->tally.end.closing.cpu.util = 50;
	out->tally.end.closing.cpu.count = 4;
}

static void
print(const struct np_bench *bench, uint8_t style, const struct np_record *r, const char *unit)
{
	static const char layouts[] = "012";
	struct np_classic c = {
		.layout = bench->layout,
		.unit = np_unit(*unit),
		.verbosity = (int)(style % (sizeof(layouts) - 1)),
		.headers = (style & 0x40) != 0,
		.local_cpu = (style & 0x10) != 0,
		.remote_cpu = (style & 0x20) != 0,
	};
	struct np_selection all;
	struct np_err err;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	must(out != NULL);
	np_classic_print(out, &c, r);
	must(np_selection_parse("all", &all, &err) == NP_OK);
	np_omni_print(out, NP_STYLE_COLUMNS + style % 3, &all, c.headers,
		      &(struct np_figures){ .record = r });
	must(fclose(out) == 0 && n > 0);
	free(text);
}

static void
report(const struct np_outcome *out, const struct np_bench *bench, uint8_t style)
{
	static const char units[] = "xmKgGbBu";
	const char *unit = &units[style % (sizeof(units) - 1)];
	struct np_repeat repeat = { .plan = { .max = 3, .min = 2, .level = 99, .width = 5 } };
	struct np_hist *hist = np_hist_new();
	struct np_record r;
	struct np_err err;

	must(hist != NULL);
	for (int i = 0; i < 2; i++) {
		np_report(out, np_unit(*unit), &r);
		must(np_repeat_add(&repeat, &r, hist, NULL, &err) == NP_OK);
	}
	np_repeat_conclude(&repeat, true, &r);
	(void)np_repeat_more(&repeat);
	print(bench, style, &r, unit);
	np_repeat_free(&repeat);
	free(hist);
}

/* One of ours has as many bytes as there are. */
static void
next_message(struct fuzz_input *in, uint32_t code, uint8_t frame[NP_FRAME_SIZE])
{
	fuzz_take(in, frame, NP_FRAME_SIZE, fuzz_byte(in));
	if (np_is_ours(code)) {
		np_tagged_head(frame, code, NP_FRAME_SIZE - NP_TAGGED_AT);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { .at = data, .left = size };
	const struct np_bench *bench = np_bench_at(fuzz_byte(&in));
	uint8_t style = fuzz_byte(&in), frame[NP_FRAME_SIZE];
	const struct np_dialect *dialect;
	struct np_outcome out;
	struct np_plan p;
	struct np_err err;

	if (bench == NULL) {
		return -1; /* not worth keeping */
	}
	measure(bench, &p, &out);
	dialect = np_dialect(bench->code);
	must(dialect != NULL && dialect->decode_response != NULL &&
	     dialect->decode_results != NULL);
	next_message(&in, bench->code + 1, frame);
	(void)dialect->decode_response(dialect, frame, &out.far, &err);
	next_message(&in, bench->code + 2, frame);
	(void)dialect->decode_results(dialect, frame, &out.far, &err);
	report(&out, bench, style);
	return 0;
}
