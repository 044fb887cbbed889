#include "out/explain/rules.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const limit_names[NP_LIMITS] = {
	[NP_LIMIT_UNCLEAR] = "unclear",
	[NP_LIMIT_APPLICATION] = "sending-application",
	[NP_LIMIT_SENDER_CPU] = "sender-cpu",
	[NP_LIMIT_SENDER_QUOTA] = "sender-quota",
	[NP_LIMIT_SENDER_STALLED] = "sender-stalled",
	[NP_LIMIT_PACING] = "pacing",
	[NP_LIMIT_SEND_BUFFER] = "send-buffer",
	[NP_LIMIT_LOSS] = "loss",
	[NP_LIMIT_REORDERING] = "reordering",
	[NP_LIMIT_OUTAGE] = "outage",
	[NP_LIMIT_PATH] = "path-rate",
	[NP_LIMIT_CWND] = "congestion-window",
	[NP_LIMIT_ACK_PATH] = "ack-path",
	[NP_LIMIT_RECEIVE_WINDOW] = "receive-window",
	[NP_LIMIT_WINDOW_CLAMP] = "window-clamp",
	[NP_LIMIT_RECEIVER_CPU] = "receiver-cpu",
	[NP_LIMIT_READER_QUOTA] = "receiver-quota",
	[NP_LIMIT_READER_STALLED] = "receiver-stalled",
	[NP_LIMIT_READER_SLOW] = "reader-slow",
	[NP_LIMIT_RECEIVE_BUFFER] = "receive-buffer",
	[NP_LIMIT_LINK] = "link",
	[NP_LIMIT_FOREIGN] = "foreign-traffic",
	[NP_LIMIT_POLICER] = "policer",
	[NP_LIMIT_SOFTIRQ] = "far-softirq",
	[NP_LIMIT_UDP_BUFFER] = "udp-receive-buffer",
	[NP_LIMIT_MTU] = "mtu",
	[NP_LIMIT_TURNS] = "turns",
};

const char *
np_limit_name(enum np_limit limit)
{
	return limit_names[limit];
}

void
np_decide(struct np_verdict *v, enum np_limit limit, double score, double share, const char *fmt,
	  ...)
{
	va_list ap;

	v->limit = limit;
	v->score = score > 0 ? fmin(score, 1) : 0;
	v->share = share;
	v->allows = (double)NAN;
	va_start(ap, fmt);
	vsnprintf(v->sentence, sizeof(v->sentence), fmt, ap);
	va_end(ap);
}

double
np_above(double value, double threshold, double most)
{
	return value >= threshold
		   ? NP_ENOUGH + (value - threshold) / (1 - threshold) * (most - NP_ENOUGH)
		   : 0;
}

double
np_known(double v)
{
	return isnan(v) ? 0 : v;
}

double
np_measured(const struct np_facts_of_test *f)
{
	return f->in->transactions ? f->in->per_second : f->in->throughput_bps;
}
