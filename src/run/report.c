#include "run/trial.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "bench/engine/engine.h"
#include "bench/ids.h"
#include "stats/confidence.h"

/* What the figures are computed from. */
struct sums {
	const struct np_outcome *out;
	const struct np_plan *p;
	const struct np_unit *unit, *bytes_unit; /* of the throughput; of rates in bytes */
	double seconds, paced; /* of the window; of these, in which a worker's load waited */
	double led, followed;  /* --both: seconds of sending and of receiving; else all seconds */
	double sent, received, far_sent, far_received; /* bytes */
	double transactions;
};

/* Is the throughput in transactions? As in netperf, older tests ignore -f. */
static bool
by_transactions(const struct sums *s)
{
	return s->p->pattern->transactions &&
	       (s->unit->letter == 'x' || (s->p->bench->flags & NP_B_OLD) != 0);
}

/* amount / each; 0 if `each` is not above 0. */
static double
per(double amount, double each)
{
	return each > 0 ? amount / each : 0;
}

/* What netperf calls the throughput: of a stream, what arrived. */
static double
throughput(const struct sums *s)
{
	const struct np_pattern *pattern = s->p->pattern;

	if (by_transactions(s)) {
		return per(s->transactions, s->seconds);
	}
	if (s->p->both) { /* what arrived at both ends */
		return np_rate(s->unit, s->far_received, s->led) +
		       np_rate(s->unit, s->received, s->followed);
	}
	if (!pattern->transactions && s->p->role == NP_FOLLOW) {
		return np_rate(s->unit, s->received, s->seconds);
	}
	/* The receiver of a stream sends nothing; of transactions both directions count. */
	return np_rate(s->unit, s->far_received + s->far_sent, s->seconds);
}

/* A figure of both ends; id: of the near end's. */
static void
report_ends(struct np_record *r, enum np_metric_id id, int64_t near, int64_t far)
{
	np_record_int(r, id, near);
	np_record_int(r, np_metric_of(id, true), far);
}

/* Rate and mean time of transactions; without any, as in netperf, the rate is 1 with no latency. */
static void
report_transactions(const struct sums *s, struct np_record *r)
{
	bool any = s->p->pattern->transactions;
	double burst = s->p->pattern->connection_test ? 0 : s->p->burst;
	const struct np_tally *t = &s->out->tally;
	double flows = t->flows > 0 ? t->flows : 1, most = 0;
	double each = per(s->seconds - s->paced, s->transactions), in_flight; /* s; requests */

	for (uint32_t i = 0; t->flow != NULL && i < t->flows; i++) {
		most = fmax(most, (double)t->flow[i].transactions);
	}
	/* A flow that gets less of a count than another one is done before it. */
	in_flight = (1 + burst) * (s->p->length < 0 && most > 0 ? s->transactions / most : flows);

	/* Waits for a due time, or for an interval's end (-w), overlap with requests of other flows
	 * or of a burst: use the mean of the times recorded. */
	if ((s->p->rate > 0 || s->p->ramp > 0 ||
	     (s->paced > 0 && (burst > 0 || flows > t->workers))) &&
	    t->hist != NULL) {
		struct np_hist_summary times;

		np_hist_summarise(t->hist, &times);
		each = times.mean / 1e9;
		in_flight = 1;
	}
	np_record_real(r, NP_M_TRANSACTION_RATE, any ? per(s->transactions, s->seconds) : 1);
	NP_MARK_IF(!any, r, NP_M_TRANSACTION_RATE);
	np_record_real(r, NP_M_RT_LATENCY, any && each > 0 ? 1e6 * each * in_flight : -1);
	np_record_int(r, NP_M_BURST_SIZE, s->p->burst);
}

/* Rates of what each end sent and received: of --both each direction has its own seconds. */
static void
report_rates(const struct sums *s, struct np_record *r)
{
	bool far = s->out->far.reported;

	np_record_real(r, NP_M_ELAPSED_TIME, s->seconds);
	np_record_real(r, NP_M_THROUGHPUT, throughput(s));
	np_record_text(r, NP_M_THROUGHPUT_UNITS, s->unit->name);
	np_record_real(r, NP_M_LOCAL_SEND_THROUGHPUT, np_rate(s->bytes_unit, s->sent, s->led));
	np_record_real(r, NP_M_LOCAL_RECV_THROUGHPUT,
		       np_rate(s->bytes_unit, s->received, s->followed));
	if (s->p->no_control) {
		np_record_real(r, NP_M_REMOTE_SEND_THROUGHPUT, 0);
		np_record_real(r, NP_M_REMOTE_RECV_THROUGHPUT, 0);
		NP_MARK_IF(true, r, NP_M_REMOTE_SEND_THROUGHPUT, NP_M_REMOTE_RECV_THROUGHPUT);
		return;
	}
	if (far) {
		np_record_real(r, NP_M_REMOTE_SEND_THROUGHPUT,
			       np_rate(s->bytes_unit, s->far_sent, s->followed));
		np_record_real(r, NP_M_REMOTE_RECV_THROUGHPUT,
			       np_rate(s->bytes_unit, s->far_received, s->led));
	}
	NP_MARK_IF(!far, r, NP_M_REMOTE_SEND_THROUGHPUT, NP_M_REMOTE_RECV_THROUGHPUT);
}

/* What each end was asked for; -b and -w separately, as they may be above INT32_MAX. */
static void
report_asked(const struct sums *s, struct np_record *r)
{
	static const struct {
		size_t at;
		enum np_metric_id id;
		bool always; /* also for the far end of -N, which is not asked */
	} rows[] = {
		{ offsetof(struct np_end, sock.sndbuf), NP_M_LSS_SIZE_REQ, false },
		{ offsetof(struct np_end, sock.rcvbuf), NP_M_LSR_SIZE_REQ, false },
		{ offsetof(struct np_end, call.send_offset), NP_M_LOCAL_SEND_OFFSET, false },
		{ offsetof(struct np_end, call.recv_offset), NP_M_LOCAL_RECV_OFFSET, false },
		{ offsetof(struct np_end, call.send_align), NP_M_LOCAL_SEND_ALIGN, false },
		{ offsetof(struct np_end, call.recv_align), NP_M_LOCAL_RECV_ALIGN, false },
		{ offsetof(struct np_end, call.dirty), NP_M_LOCAL_SEND_DIRTY_COUNT, true },
		{ offsetof(struct np_end, call.dirty), NP_M_LOCAL_RECV_DIRTY_COUNT, true },
		{ offsetof(struct np_end, call.clean), NP_M_LOCAL_RECV_CLEAN_COUNT, true },
	};
	const struct np_call_plan *near = &s->p->near.call, *far = &s->p->far.call;
	int32_t here, there;

	report_ends(r, NP_M_LOCAL_INTERVAL_USECS, near->interval_us, far->interval_us);
	report_ends(r, NP_M_LOCAL_INTERVAL_BURST, near->interval_burst, far->interval_burst);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memcpy(&here, (const char *)&s->p->near + rows[i].at, sizeof(here));
		memcpy(&there, (const char *)&s->p->far + rows[i].at, sizeof(there));
		report_ends(r, rows[i].id, here, s->p->no_control && !rows[i].always ? -1 : there);
	}
	np_record_int(r, NP_M_REQUEST_SIZE, s->p->request);
	np_record_int(r, NP_M_RESPONSE_SIZE, s->p->response);
}

/* The number of that name, or the largest one of a list; NAN: unknown. */
static double
largest(const struct np_bag *bag, const char *name)
{
	struct np_bag_item list;
	size_t count = np_bag_list(bag, name, 0, &list);
	double most = np_bag_number(bag, name);

	for (size_t i = 0; i < count; i++) {
		most = fmax(most, np_bag_value(&list, i));
	}
	return most;
}

/* The figures of the metric table that are in the evidence of an end, or of the receiver. */
static void
report_evidence(const struct sums *s, struct np_record *r)
{
	for (int i = 0; i < NP_METRICS; i++) {
		enum np_metric_id id = (enum np_metric_id)i;
		const struct np_metric *m = &np_metrics[id];
		double v = m->collect != NP_COLLECT_EVIDENCE || m->from == NULL ? -1
			   : m->end == NP_METRIC_NEAR ? largest(s->out->near_bag, m->from)
			   : m->end == NP_METRIC_FAR
			       ? largest(s->out->far_bag, m->from)
			       : largest(np_outcome_receiver(s->out), m->from);

		if (v >= 0 && m->type == NP_TYPE_REAL) { /* unit -f: bits a second in evidence */
			np_record_real(r, id,
				       m->unit[0] == '-' ? np_rate(s->bytes_unit, v / 8, 1) : v);
		} else if (v >= 0 && v < (double)(INT64_C(1) << 53)) { /* exact in a double */
			np_record_int(r, id, (int64_t)v);
		}
	}
}

/* The transport and its options at both ends, and what the kernel told at the close. */
static void
report_transport(const struct sums *s, struct np_record *r)
{
	const struct np_tally *t = &s->out->tally;
	const struct np_far *far = &s->out->far;

	np_record_text(r, NP_M_PROTOCOL, s->p->transport->name);
	np_record_text(r, NP_M_PROTOCOL_DETAIL, t->end.closing.detail);
	np_record_text(r, NP_M_DIRECTION, s->p->pattern->words[s->p->role].direction);
	np_record_int(r, NP_M_TRANSPORT_MSS, t->end.closing.mss);
	np_record_text(r, NP_M_LOCAL_CONG_CONTROL, t->end.closing.cong);
	np_record_text(r, NP_M_REMOTE_CONG_CONTROL, far->end.closing.cong);
	report_ends(r, NP_M_LOCAL_NODELAY, s->p->nodelay,
		    s->p->no_control ? -1 : (int64_t)far->nodelay);
	report_ends(r, NP_M_LOCAL_CORK, s->p->cork, s->p->cork);
}

/* The slowest and the fastest flow, and Jain's fairness index (1: all have the same rate). */
static void
report_flows(const struct sums *s, struct np_record *r)
{
	const struct np_tally *t = &s->out->tally;
	const struct np_far *far = &s->out->far;
	double slowest = throughput(s), fastest = slowest, sum = 0, squares = 0;

	for (uint32_t i = 0; t->flow != NULL && i < t->flows; i++) {
		const struct np_flow_result *f = &t->flow[i];
		double bytes = np_rate(s->unit, (double)f->sent, s->led) +
			       np_rate(s->unit, (double)f->received, s->followed);
		double rate = by_transactions(s) ? per((double)f->transactions, s->seconds) : bytes;

		slowest = i == 0 || rate < slowest ? rate : slowest;
		fastest = i == 0 || rate > fastest ? rate : fastest;
		sum += rate;
		squares += rate * rate;
	}
	np_record_real(r, NP_M_MIN_FLOW_THROUGHPUT, slowest);
	np_record_real(r, NP_M_MAX_FLOW_THROUGHPUT, fastest);
	np_record_real(r, NP_M_JAIN_INDEX, squares > 0 ? np_jain_index(sum, squares, t->flows) : 1);
	np_record_int(r, NP_M_FLOWS, t->flows);
	report_ends(r, NP_M_THREADS, t->workers, far->threads);
	np_record_text(r, NP_M_LOCAL_ENGINE, t->engine != NULL ? t->engine->name : "");
	np_record_text(r, NP_M_REMOTE_ENGINE, far->engine);
	NP_MARK_IF(far->engine[0] == '\0', r, NP_M_REMOTE_THREADS);
}

/* The throughput of the undisturbed part is that of the whole times the ratio of the two rates. */
static void
report_clean(const struct sums *s, struct np_record *r)
{
	const struct np_clean *c = s->out->clean;

	np_record_text(r, NP_M_DISTURBED_REASONS, c != NULL ? s->out->reasons : "");
	if (c == NULL) {
		return;
	}
	np_record_real(r, NP_M_DISTURBED_SHARE, 1 - c->clean_s / c->seconds);
	np_record_real(r, NP_M_CLEAN_SECONDS, c->clean_s);
	if (!isnan(c->rate_ratio)) {
		np_record_real(r, NP_M_CLEAN_THROUGHPUT, throughput(s) * c->rate_ratio);
	}
}

/* The longest outage; ms 0: there was none, NAN: not looked for. */
static void
report_outage(double ms, double begin_s, struct np_record *r)
{
	if (ms >= 0) {
		np_record_real(r, NP_M_OUTAGE, ms);
	}
	if (ms > 0) {
		np_record_real(r, NP_M_OUTAGE_BEGIN, begin_s);
	}
}

/* --rate of a stream: was it reached? And outages, of streams and of what is sent by TCP. */
static void
report_offered(const struct sums *s, struct np_record *r)
{
	const struct np_plan *p = s->p;
	const struct np_tally *t = &s->out->tally;
	double messages = np_plan_messages(p, t->end.send_size);
	/* The receiver sees gaps in numbered datagrams, the sender those of connections. */
	bool numbered = !np_delivers(p->transport), far = (p->role == NP_LEAD) == numbered;
	const struct np_bag *observer = far ? s->out->far_bag : s->out->near_bag;

	if (messages > 0) {
		np_record_real(r, NP_M_ASKED_RATE, messages);
		np_record_real(r, NP_M_SENT_RATE,
			       per((double)t->end.count.sent / (double)t->end.send_size,
				   np_tally_sending_s(t, true)));
	}
	if (p->rate > 0 || p->near.call.offered > 0 || p->far.call.offered > 0) {
		report_outage(
		    np_bag_number(observer, numbered ? "udp.outage_us" : "flow.outage_us") / 1e3,
		    np_bag_number(observer,
				  numbered ? "udp.outage_begin_s" : "flow.outage_begin_s"),
		    r);
	}
}

/* --rate of transactions: was it reached, and how late were requests? */
static void
report_open_loop(const struct sums *s, struct np_record *r)
{
	const struct np_open_result *o = &s->out->tally.open;
	const struct np_open_counts *n = &o->count;

	if (o->rate == 0 || o->lateness == NULL || s->out->tally.hist == NULL) { /* no open loop */
		np_record_text(r, NP_M_GENERATOR_LIMITS, "");
		return;
	}
	np_record_real(r, NP_M_ASKED_RATE, o->rate);
	np_record_real(r, NP_M_SENT_RATE, per((double)n->begun, s->seconds));
	np_record_int(r, NP_M_DUE_OPERATIONS, (int64_t)n->due);
	np_record_int(r, NP_M_SENT_OPERATIONS, (int64_t)n->begun);
	np_record_int(r, NP_M_UNANSWERED_OPERATIONS, (int64_t)(n->due - o->answered));
	np_record_int(r, NP_M_LATE_OPERATIONS, (int64_t)n->late);
	np_record_real(r, NP_M_P99_LATENESS, (double)np_hist_percentile(o->lateness, 0.99) / 1e3);
	np_record_real(r, NP_M_MAX_LATENESS, (double)np_hist_percentile(o->lateness, 1) / 1e3);
	if (!isnan(o->fit)) {
		np_record_real(r, NP_M_ARRIVALS_P_VALUE, o->fit);
	}
	if (np_ids_used(s->p)) {
		report_outage((double)o->outage.ns / 1e6, (double)o->outage.at_ns / 1e9, r);
	}
	np_record_text(r, NP_M_GENERATOR_LIMITS, o->limits[0] == '\0' ? "no" : o->limits);
}

/* The row of that end; name: of the near one's. */
#define OF(name) np_metric_of(NP_M_##name, far)

/*
 * One end's use of processors, and the service demand. Busy time is divided by the time between the
 * two readings; netperf divides it by the test's time, which may give more than 100 %.
 */
static void
report_cpu(const struct sums *s, bool far, const struct np_cpu_use *cpu, struct np_record *r)
{
	const struct np_plan *p = s->p;
	bool arrived = (p->bench->flags & NP_B_OLD) != 0 && (far || np_delivers(p->transport));
	/* What the service demand divides by: transactions or KB; as in netperf's older tests those
	 * that arrived, except for a sender of datagrams. */
	double done = by_transactions(s)
			  ? s->transactions
			  : (arrived ? s->far_received : s->sent + s->received) / 1024;
	bool told = cpu->known || (far && !s->p->no_control);

	np_record_real(r, OF(LOCAL_CPU_UTIL), cpu->known ? cpu->util : -1);
	np_record_real(r, OF(LOCAL_CPU_PERCENT_USER), cpu->user);
	np_record_real(r, OF(LOCAL_CPU_PERCENT_SYSTEM), cpu->system);
	np_record_real(r, OF(LOCAL_CPU_PERCENT_IOWAIT), cpu->iowait);
	np_record_real(r, OF(LOCAL_CPU_PERCENT_IRQ), cpu->irq);
	np_record_real(r, OF(LOCAL_CPU_PERCENT_SWINTR), cpu->softirq);
	np_record_int(r, OF(LOCAL_CPU_COUNT), cpu->known ? cpu->count : 0);
	/* Without a measurement netperf has -1 here, and 0 for a daemon. */
	np_record_real(r, OF(LOCAL_CPU_PEAK_UTIL), told ? cpu->peak : -1);
	np_record_int(r, OF(LOCAL_CPU_PEAK_ID), told ? cpu->peak_id : -1);
	np_record_real(r, OF(LOCAL_SD), /* us of processor time; 1 % of a second is 1e4 us */
		       cpu->known && done > 0 ? cpu->util * 1e4 * cpu->count * s->seconds / done
					      : -1);
	NP_MARK_IF(!cpu->known, r, OF(LOCAL_CPU_PERCENT_USER), OF(LOCAL_CPU_PERCENT_SYSTEM),
		   OF(LOCAL_CPU_PERCENT_IOWAIT), OF(LOCAL_CPU_PERCENT_IRQ),
		   OF(LOCAL_CPU_PERCENT_SWINTR), OF(LOCAL_CPU_COUNT), OF(LOCAL_CPU_PEAK_UTIL),
		   OF(LOCAL_CPU_PEAK_ID));
}

/* The result of one end, as both have it. Rows that nothing was measured for are marked. */
static void
report_end(const struct sums *s, bool far, const struct np_result *e, struct np_record *r)
{
	const struct np_counts *n = &e->count;
	double sent = far ? s->far_sent : s->sent, received = far ? s->far_received : s->received;
	double sends = (double)(int64_t)n->sends, receives = (double)(int64_t)n->receives;
	bool told = !far || s->out->far.reported;

	np_record_int(r, OF(LSS_SIZE), e->sndbuf);
	np_record_int(r, OF(LSR_SIZE), e->rcvbuf);
	np_record_int(r, OF(LSS_SIZE_END), e->closing.sndbuf_end);
	np_record_int(r, OF(LSR_SIZE_END), e->closing.rcvbuf_end);
	np_record_int(r, OF(LOCAL_SEND_WIDTH), e->send_width);
	np_record_int(r, OF(LOCAL_RECV_WIDTH), e->recv_width);
	np_record_int(r, OF(LOCAL_SEND_SIZE), e->send_size);
	np_record_int(r, OF(LOCAL_RECV_SIZE), e->recv_size);
	np_record_int(r, OF(LOCAL_SEND_CALLS), (int64_t)n->sends);
	np_record_int(r, OF(LOCAL_RECV_CALLS), (int64_t)n->receives);
	np_record_int(r, OF(LOCAL_BYTES_SENT), (int64_t)n->sent);
	np_record_int(r, OF(LOCAL_BYTES_RECVD), (int64_t)n->received);
	np_record_real(r, OF(LOCAL_BYTES_XFERD), told ? sent + received : s->sent);
	np_record_real(r, OF(LOCAL_BYTES_PER_SEND), per(sent, sends));
	np_record_real(r, OF(LOCAL_BYTES_PER_RECV), per(received, receives));
	np_record_int(r, OF(LOCAL_TRANSPORT_RETRANS), e->closing.retrans);
	np_record_int(r, OF(LOCAL_SOCKET_PRIO), e->prio);
	np_record_int(r, OF(LOCAL_SOCKET_TOS), e->tos);
	report_cpu(s, far, &e->closing.cpu, r);
	NP_MARK_IF(!told || sends <= 0, r, OF(LOCAL_BYTES_PER_SEND));
	NP_MARK_IF(!told || receives <= 0, r, OF(LOCAL_BYTES_PER_RECV));
	NP_MARK_IF(!told, r, OF(LOCAL_SEND_CALLS), OF(LOCAL_RECV_CALLS), OF(LOCAL_BYTES_SENT),
		   OF(LOCAL_BYTES_RECVD), OF(LOCAL_BYTES_XFERD));
	NP_MARK_IF(far && s->p->no_control, r, OF(LSS_SIZE), OF(LSR_SIZE), OF(LSS_SIZE_END),
		   OF(LSR_SIZE_END), OF(LOCAL_SEND_WIDTH), OF(LOCAL_RECV_WIDTH),
		   OF(LOCAL_SEND_SIZE), OF(LOCAL_RECV_SIZE));
}

#undef OF

/* Both ends, and the counts that only this one has. */
static void
report_both(const struct sums *s, struct np_record *r)
{
	/* What netperf prints of a far end with -N. */
	static const struct np_result no_daemon = {
		.prio = -1,
		.tos = -1,
		.send_size = -1,
		.recv_size = -1,
		.closing = { .sndbuf_end = -1, .rcvbuf_end = -1, .retrans = -2 },
	};
	const struct np_call_plan *asked = &s->p->near.call;
	struct np_result near = s->out->tally.end, far = s->out->far.end;
	const struct np_counts *n = &near.count;
	bool stream = !s->p->pattern->transactions;
	bool sends = stream && (s->p->both || s->p->role == NP_LEAD);
	bool receives = stream && (s->p->both || s->p->role == NP_FOLLOW);
	int idle = s->p->no_control && stream ? -1 : 0; /* as netperf prints an unused size */

	near.send_width = np_run_used((size_t)near.send_width, (int32_t)asked->send_width);
	near.recv_width = np_run_used((size_t)near.recv_width, (int32_t)asked->recv_width);
	near.send_size = sends ? near.send_size : idle;
	near.recv_size = receives ? near.recv_size : idle;
	if (!s->out->far.reported) {
		memset(&far.count, 0xff, sizeof(far.count)); /* -1: not told */
	}
	report_end(s, false, &near, r);
	report_end(s, true, s->p->no_control ? &no_daemon : &far, r);
	NP_MARK_IF(!sends, r, NP_M_LOCAL_SEND_SIZE);
	NP_MARK_IF(!receives, r, NP_M_LOCAL_RECV_SIZE);
	np_record_int(r, NP_M_FAILED_SENDS, (int64_t)n->failed);
	np_record_int(r, NP_M_LOST_REQUESTS, (int64_t)n->lost);
	np_record_int(r, NP_M_DUPLICATE_RESPONSES, (int64_t)n->duplicated);
	np_record_int(r, NP_M_LATE_RESPONSES, (int64_t)n->late);
	np_record_int(r, NP_M_STRAY_RESPONSES, (int64_t)n->stray);
	np_record_int(r, NP_M_SURPLUS_RESPONSES, (int64_t)n->surplus);
}

void
np_report(const struct np_outcome *out, const struct np_unit *unit, struct np_record *r)
{
	const struct np_tally *t = &out->tally;
	const struct np_far *far = &out->far;
	const struct np_plan *p = t->plan;
	double seconds = np_tally_seconds(t);
	struct sums s = {
		.out = out,
		.p = p,
		.unit = unit,
		.bytes_unit = unit->letter == 'x' ? np_unit('m') : unit,
		.seconds = seconds,
		.paced = (double)t->paced_ns / 1e9,
		.led = p->both ? (double)t->led_ns / 1e9 : seconds,
		.followed = p->both ? (double)t->followed_ns / 1e9 : seconds,
		.sent = (double)t->end.count.sent,
		.received = (double)t->end.count.received,
		.transactions = (double)t->end.count.transactions,
	};

	/* If the far end reports nothing, assume that all that was sent has arrived. Of both
	 * directions an interrupted test may lack the report of the one that it received. */
	s.far_received = far->reported || (p->both && far->end.count.received > 0)
			     ? (double)far->end.count.received
			     : s.sent;
	s.far_sent = far->reported ? (double)far->end.count.sent : s.received;
	memset(r, 0, sizeof(*r));
	report_rates(&s, r);
	report_transactions(&s, r);
	report_asked(&s, r);
	report_both(&s, r);
	report_evidence(&s, r);
	report_transport(&s, r);
	report_flows(&s, r);
	report_offered(&s, r);
	report_open_loop(&s, r);
	if (t->ramp.hist != NULL && np_hist_count(t->ramp.hist) > 0) {
		np_record_times(r, "connect", t->ramp.hist);
	}
	report_clean(&s, r);
	np_record_char(r, NP_M_LOCAL_CPU_METHOD, t->end.closing.cpu.known ? NP_CPU_METHOD : 'U');
	/* As in netperf, empty without a control connection. */
	np_record_char(r, NP_M_REMOTE_CPU_METHOD,
		       p->no_control                ? '\0'
		       : far->end.closing.cpu.known ? far->cpu_method
						    : 'U');
	np_record_text(r, NP_M_SD_UNITS, unit->letter == 'x' ? "usec/Tran" : "usec/KB");
}
