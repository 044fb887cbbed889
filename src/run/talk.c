#include "run/talk_rows.h"

void
np_far_init(struct np_far *far)
{
	memset(far, 0, sizeof(*far));
	far->sndbuf = far->rcvbuf = far->send_size = far->recv_size = -1;
	far->sndbuf_end = far->rcvbuf_end = far->retrans = -1;
	far->sends = far->receives = -1;
	far->send_width = far->recv_width = -1;
	far->prio = far->tos = -1;
	far->failed_sends = -1;
	far->flows = far->established = far->threads = 1;
	far->skew.begin_ns = far->skew.end_ns = -1;
	far->cpu_method = 'U';
}

/* -1 if one of them is unknown. */
static int64_t
sum_of(int64_t a, int64_t b)
{
	return a < 0 || b < 0 ? -1 : a + b;
}

void
np_far_add(struct np_far *sum, const struct np_far *far)
{
	int64_t retrans;

	/* With --both, only the other session has a size. */
	sum->send_size = sum->send_size > 0 ? sum->send_size : far->send_size;
	sum->recv_size = sum->recv_size > 0 ? sum->recv_size : far->recv_size;
	sum->flows += far->flows;
	sum->established += far->established;
	sum->threads += far->threads;
	sum->skew.begin_ns = sum->skew.end_ns = -1; /* unknown between processes */
	sum->reported = sum->reported && far->reported;
	sum->sent += far->sent;
	sum->received += far->received;
	sum->sends = sum_of(sum->sends, far->sends);
	sum->receives = sum_of(sum->receives, far->receives);
	sum->transactions += far->transactions;
	sum->failed_sends = sum_of(sum->failed_sends, far->failed_sends);
	retrans = sum_of(sum->retrans, far->retrans);
	sum->retrans = retrans < INT32_MAX ? (int)retrans : INT32_MAX;
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
