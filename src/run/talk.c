#include "run/talk_rows.h"

void
np_far_init(struct np_far *far)
{
	memset(far, 0, sizeof(*far));
	far->end = (struct np_result){
		.sndbuf = -1,
		.rcvbuf = -1,
		.prio = -1,
		.tos = -1,
		.send_size = -1,
		.recv_size = -1,
		.send_width = -1,
		.recv_width = -1,
		.count = { .sends = UINT64_MAX, .receives = UINT64_MAX, .failed = UINT64_MAX },
		.closing = { .sndbuf_end = -1, .rcvbuf_end = -1, .retrans = -1 },
		.skew = { .begin_ns = -1, .end_ns = -1 },
	};
	far->flows = far->established = far->threads = 1;
	far->cpu_method = 'U';
}

void
np_far_add(struct np_far *sum, const struct np_far *far)
{
	np_result_add(&sum->end, &far->end);
	sum->flows += far->flows;
	sum->established += far->established;
	sum->threads += far->threads;
	sum->reported = sum->reported && far->reported;
	sum->elapsed = far->elapsed > sum->elapsed ? far->elapsed : sum->elapsed;
}

const struct np_dialect *
np_dialect(uint32_t code)
{
	return code == np_plan_dialect.code ? &np_plan_dialect : np_netperf_dialect(code);
}

const struct np_dialect *
np_dialect_of(const struct np_plan *p)
{
	return np_plan_beyond(p) != NULL ? &np_plan_dialect : np_dialect(p->bench->code);
}
