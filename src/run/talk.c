#include "run/talk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text.h"
#include "run/talk_parts.h"

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
	far->flows = far->met = far->threads = 1;
	far->skew.begin_ns = far->skew.end_ns = -1;
	far->cpu_method = 'U';
}

/* -1: one of them is not told. */
static int64_t
sum_of(int64_t a, int64_t b)
{
	return a < 0 || b < 0 ? -1 : a + b;
}

void
np_far_add(struct np_far *sum, const struct np_far *far)
{
	int64_t retrans;

	/* Of a test each way it is the second one that sends. */
	sum->send_size = sum->send_size > 0 ? sum->send_size : far->send_size;
	sum->recv_size = sum->recv_size > 0 ? sum->recv_size : far->recv_size;
	sum->flows += far->flows;
	sum->met += far->met;
	sum->threads += far->threads;
	sum->skew.begin_ns = sum->skew.end_ns = -1; /* of processes that tell of none beside */
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

/* --- OMNI (97) ------------------------------------------------------------------------------- */

static uint32_t
omni_flags(const struct np_plan *p)
{
	uint32_t flags = 0;

	flags |= p->nodelay ? NP_WB_NODELAY : 0;
	flags |= p->pattern->connection_test ? NP_WB_CONNECT : 0;
	flags |= p->no_route ? 0 : NP_WB_ROUTE;
	flags |= p->keepalive ? NP_WB_KEEPALIVE : 0;
	flags |= p->defer_accept ? NP_WB_DEFER_ACCEPT : 0;
	flags |= p->far.sock.connected ? NP_WB_CONNECTED : 0;
	flags |= p->no_fragment ? NP_WB_MTU_DISCOVER : 0;
	flags |= p->fast_open ? NP_WB_FASTOPEN : 0;
	flags |= p->packet_info ? NP_WB_PKTINFO : 0;
	flags |= p->far.place.measure_cpu ? NP_WB_CPU : 0;
	return flags;
}

/* A direction as the daemon sees it: the client's leading stream is received there. */
static uint32_t
omni_direction(const struct np_plan *p)
{
	uint32_t lead = p->pattern->lead_direction;

	if (lead != NP_WD_TRANSMIT) {
		return lead;
	}
	return p->role == NP_LEAD ? NP_WD_RECEIVE : NP_WD_TRANSMIT;
}

static void
omni_ask(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	const struct np_end *far = &p->far;
	struct np_omni_request m = {
		.send_buf_size = far->sock.sndbuf,
		.send_size = far->call.send_size,
		.send_alignment = far->call.send_align,
		.send_offset = far->call.send_offset,
		.send_width = (uint32_t)np_run_used(run->worker->send_ring.width,
						    (int32_t)p->near.call.send_width),
		.request_size = p->request,
		.recv_buf_size = far->sock.rcvbuf,
		.receive_size = far->call.recv_size,
		.recv_alignment = far->call.recv_align,
		.recv_offset = far->call.recv_offset,
		.recv_width = (uint32_t)np_run_used(run->worker->recv_ring.width,
						    (int32_t)p->near.call.recv_width),
		.response_size = p->response,
		.flags = omni_flags(p),
		.test_length = (int32_t)p->length,
		.so_rcvavoid = p->copy_avoidance,
		.so_sndavoid = p->copy_avoidance,
		.send_dirty_count = far->call.dirty,
		.recv_dirty_count = far->call.dirty,
		.recv_clean_count = far->call.clean,
		.interval_burst = far->call.interval_burst,
		.interval_usecs = far->call.interval_us,
		.data_port = far->sock.port,
		.ipfamily = family_to_wire(p->family),
		.socket_type = p->transport->wire_type,
		.protocol = (uint32_t)p->transport->protocol,
		.direction = omni_direction(p),
		.netperf_port = np_addr_port(&run->end.local),
		.socket_prio = far->sock.prio,
		.socket_tos = far->sock.tos,
	};

	if (p->bind.len != 0) {
		np_ip_to_words(m.ipfamily, np_addr_bytes(&p->bind), m.netperf_ip);
	}
	if (p->far_bind.len != 0) {
		np_ip_to_words(m.ipfamily, np_addr_bytes(&p->far_bind), m.netserver_ip);
	}
	snprintf(m.cong_control, sizeof(m.cong_control), "%s", far->sock.cong);
	snprintf(m.fill_file, sizeof(m.fill_file), "%.31s", far->call.fill_file);
	put(frame, NP_OMNI, far->place.cpu, np_omni_request_layout, &m);
	np_echo_put(frame, &(struct np_echo){ .asks = !p->transport->connected &&
						      m.direction == NP_WD_TRANSMIT });
	if (p->ids) {
		np_ids_ask_put(frame);
	}
}

static int
omni_granted(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_omni_response m;
	struct np_echo echo;

	if (np_frame_get(frame, np_omni_response_layout, &m, err) != NP_OK) {
		return err->code;
	}
	np_echo_get(frame, &echo);
	far->token = echo.token;
	far->ids = np_ids_grant_get(frame);
	far->sndbuf = m.send_buf_size;
	far->rcvbuf = m.recv_buf_size;
	far->send_size = m.send_size;
	far->recv_size = m.receive_size;
	far->send_width = (int)m.send_width;
	far->recv_width = (int)m.recv_width;
	far->prio = m.socket_prio;
	far->tos = m.socket_tos;
	far->nodelay = (m.flags & NP_WB_NODELAY) != 0;
	far->measures_cpu = (m.flags & NP_WB_CPU) != 0;
	return granted_port(m.data_port, far, err);
}

static int
omni_reported(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_omni_results m;

	if (np_frame_get(frame, np_omni_results_layout, &m, err) != NP_OK) {
		return err->code;
	}
	far->reported = true;
	far->sent = m.bytes_sent;
	far->received = m.bytes_received;
	far->sends = m.send_calls;
	far->receives = m.recv_calls;
	far->sndbuf_end = m.send_buf_size;
	far->rcvbuf_end = m.recv_buf_size;
	far->retrans = m.transport_retrans;
	far->elapsed = (double)m.elapsed_time;
	far->transactions = m.trans_received;
	cpu_told(far, (double)m.cpu_util, m.cpu_method, m.num_cpus);
	far->cpu.user = (double)m.cpu_percent_user;
	far->cpu.system = (double)m.cpu_percent_system;
	far->cpu.iowait = (double)m.cpu_percent_iowait;
	far->cpu.irq = (double)m.cpu_percent_irq;
	far->cpu.softirq = (double)m.cpu_percent_swintr;
	far->cpu.peak = (double)m.peak_cpu_util;
	far->cpu.peak_id = m.peak_cpu_id;
	snprintf(far->cong, sizeof(far->cong), "%s", m.cong_control);
	np_text_printable(far->cong); /* it may be shown on a terminal */
	return NP_OK;
}

static void
omni_asked_ends(const struct np_omni_request *m, struct np_plan *p)
{
	struct np_end *near = &p->near;

	near->sock.sndbuf = m->send_buf_size;
	near->sock.rcvbuf = m->recv_buf_size;
	near->call.send_size = m->send_size;
	near->call.recv_size = m->receive_size;
	near->call.send_width = m->send_width;
	near->call.recv_width = m->recv_width;
	near->call.send_align = m->send_alignment;
	near->call.recv_align = m->recv_alignment;
	near->call.send_offset = m->send_offset;
	near->call.recv_offset = m->recv_offset;
	near->sock.prio = m->socket_prio;
	near->sock.tos = m->socket_tos;
	near->sock.connected = (m->flags & NP_WB_CONNECTED) != 0;
	near->place.measure_cpu = (m->flags & NP_WB_CPU) != 0;
	near->call.dirty =
	    m->send_dirty_count > m->recv_dirty_count ? m->send_dirty_count : m->recv_dirty_count;
	near->call.clean = m->recv_clean_count;
	near->call.interval_burst = m->interval_burst;
	near->call.interval_us = m->interval_usecs;
	snprintf(near->sock.cong, sizeof(near->sock.cong), "%s", m->cong_control);
	snprintf(near->call.fill_file, sizeof(near->call.fill_file), "%s", m->fill_file);
	p->nodelay = (m->flags & NP_WB_NODELAY) != 0;
	p->no_route = (m->flags & NP_WB_ROUTE) == 0;
	p->keepalive = (m->flags & NP_WB_KEEPALIVE) != 0;
	p->defer_accept = (m->flags & NP_WB_DEFER_ACCEPT) != 0;
	p->no_fragment = (m->flags & NP_WB_MTU_DISCOVER) != 0;
	p->fast_open = (m->flags & NP_WB_FASTOPEN) != 0;
	p->packet_info = (m->flags & NP_WB_PKTINFO) != 0;
	p->copy_avoidance = m->so_rcvavoid != 0;
}

static int
omni_asked_kind(const struct np_omni_request *m, struct np_plan *p, struct np_err *err)
{
	p->transport = np_transport_find(m->socket_type, m->protocol);
	if (p->transport == NULL) {
		return np_fail(err, NP_EUNSUP, EPROTONOSUPPORT, "request for protocol %u, type %d",
			       m->protocol, m->socket_type);
	}
	p->pattern = np_pattern_find(m->direction, (m->flags & NP_WB_CONNECT) != 0, &p->role);
	if (p->pattern == NULL) {
		return np_fail(err, NP_EUNSUP, EINVAL, "request for direction %u, flags 0x%x",
			       m->direction, m->flags);
	}
	if (p->pattern->connection_test && !np_delivers(p->transport)) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "request for %s connections",
			       p->transport->name);
	}
	if (p->pattern->sized && (m->request_size <= 0 || m->response_size <= 0)) {
		return np_fail(err, NP_EPEER, EINVAL, "request of %d, response of %d bytes",
			       m->request_size, m->response_size);
	}
	return NP_OK;
}

static int
omni_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	static const uint32_t wildcard[4];
	struct np_omni_request m;
	struct np_echo echo;
	uint8_t ip[16];

	if (read_request(frame, np_omni_request_layout, &m, err) != NP_OK) {
		return err->code;
	}
	np_echo_get(frame, &echo);
	p->echo = echo.asks;
	p->ids = np_ids_ask_get(frame);
	omni_asked_ends(&m, p);
	p->request = m.request_size;
	p->response = m.response_size;
	p->length = m.test_length;
	if (omni_asked_kind(&m, p, err) != NP_OK || family_from_wire(m.ipfamily, p, err) != NP_OK ||
	    port_from_wire(m.data_port, &p->near.sock.port, err) != NP_OK ||
	    port_from_wire(m.netperf_port, &p->far.sock.port, err) != NP_OK) {
		return err->code;
	}
	if (memcmp(m.netserver_ip, wildcard, sizeof(wildcard)) != 0) {
		np_words_to_ip(m.ipfamily, m.netserver_ip, ip);
		np_addr_make(&p->bind, p->family, ip, 0);
	}
	if (memcmp(m.netperf_ip, wildcard, sizeof(wildcard)) != 0) {
		np_words_to_ip(m.ipfamily, m.netperf_ip, ip);
		np_addr_make(&p->far_bind, p->family, ip, p->far.sock.port);
	}
	return NP_OK;
}

static void
omni_grant(const struct np_plan *p, const struct np_run *run, uint32_t code, uint8_t *frame)
{
	struct np_omni_response m = {
		.recv_buf_size = run->end.rcvbuf,
		.receive_size = np_run_used(run->worker->recv_size, p->near.call.recv_size),
		.recv_width = (uint32_t)np_run_used(run->worker->recv_ring.width,
						    (int32_t)p->near.call.recv_width),
		.send_buf_size = run->end.sndbuf,
		.send_size = np_run_used(run->worker->send_size, p->near.call.send_size),
		.send_width = (uint32_t)np_run_used(run->worker->send_ring.width,
						    (int32_t)p->near.call.send_width),
		.flags =
		    (p->nodelay ? NP_WB_NODELAY : 0) | (p->near.place.measure_cpu ? NP_WB_CPU : 0),
		.cpu_rate = cpu_rate(p),
		.data_port = np_addr_port(&run->end.local),
		.interval_burst = p->near.call.interval_burst,
		.interval_usecs = p->near.call.interval_us,
		.socket_prio = run->end.prio,
		.socket_tos = run->end.tos,
	};

	put(frame, code, 0, np_omni_response_layout, &m);
	np_echo_put(frame, &(struct np_echo){ .token = run->end.token });
	if (run->worker->id.width > 0) {
		np_ids_grant_put(frame);
	}
}

static void
omni_report_cpu(const struct np_tally *t, struct np_omni_results *m)
{
	m->cpu_util = cpu_percent(t, t->closing.cpu.util);
	m->cpu_percent_user = cpu_percent(t, t->closing.cpu.user);
	m->cpu_percent_system = cpu_percent(t, t->closing.cpu.system);
	m->cpu_percent_iowait = cpu_percent(t, t->closing.cpu.iowait);
	m->cpu_percent_irq = cpu_percent(t, t->closing.cpu.irq);
	m->cpu_percent_swintr = cpu_percent(t, t->closing.cpu.softirq);
	m->cpu_method = cpu_method(t);
	m->num_cpus = t->closing.cpu.count;
	m->peak_cpu_util = cpu_percent(t, t->closing.cpu.peak);
	m->peak_cpu_id = t->closing.cpu.peak_id;
}

static void
omni_report(const struct np_plan *p, const struct np_tally *t, uint32_t code, uint8_t *frame)
{
	struct np_omni_results m = {
		.bytes_received = t->count.received,
		.recv_calls = (uint32_t)t->count.receives,
		.recv_buf_size = t->closing.rcvbuf_end,
		.bytes_sent = t->count.sent,
		.send_calls = (uint32_t)t->count.sends,
		.send_buf_size = t->closing.sndbuf_end,
		.trans_received = (uint32_t)t->count.transactions,
		.elapsed_time = elapsed(t),
		.transport_retrans = t->closing.retrans,
	};

	if (t->closing.cpu.known) {
		omni_report_cpu(t, &m);
	}
	if (!p->no_route) {
		/* The bit that allows routing also asks for the algorithm's name. */
		snprintf(m.cong_control, sizeof(m.cong_control), "%s", t->closing.cong);
	}
	put(frame, code, 0, np_omni_results_layout, &m);
}

/* --- TCP_STREAM (10), spoken by TCP_SENDFILE ---------------------------------------------------
 */

static void
stream_ask(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	struct np_stream_request m = {
		.send_buf_size = p->far.sock.sndbuf,
		.recv_buf_size = p->far.sock.rcvbuf,
		.receive_size = p->far.call.recv_size > 0 ? p->far.call.recv_size : 0,
		.recv_alignment = (int32_t)p->far.call.recv_align,
		.recv_offset = (int32_t)p->far.call.recv_offset,
		.no_delay = p->nodelay,
		.measure_cpu = p->far.place.measure_cpu,
		.test_length = (int32_t)(p->length < 0 ? -p->length : p->length),
		.port = p->far.sock.port,
		.ipfamily = (int32_t)family_to_wire(p->family),
	};

	(void)run;
	put(frame, NP_TCP_STREAM, p->far.place.cpu, np_stream_request_layout, &m);
}

static int
stream_granted(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_stream_response m;

	if (np_frame_get(frame, np_stream_response_layout, &m, err) != NP_OK) {
		return err->code;
	}
	far->sndbuf = m.send_buf_size;
	far->rcvbuf = m.recv_buf_size;
	far->recv_size = m.receive_size;
	far->nodelay = m.no_delay != 0;
	far->measures_cpu = m.measure_cpu != 0;
	return granted_port((uint32_t)m.data_port_number, far, err);
}

static int
stream_reported(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_stream_results m;

	if (np_frame_get(frame, np_stream_results_layout, &m, err) != NP_OK) {
		return err->code;
	}
	/* Beyond 2^63 or not a number: a double that can't be a byte count. */
	if (!(m.bytes_received >= 0 && m.bytes_received < 9.2e18)) {
		return np_fail(err, NP_EPEER, 0, "the daemon reports %g bytes received",
			       m.bytes_received);
	}
	far->reported = true;
	far->received = (uint64_t)m.bytes_received;
	far->receives = m.recv_calls;
	far->elapsed = (double)m.elapsed_time;
	cpu_told(far, (double)m.cpu_util, m.cpu_method, m.num_cpus);
	return NP_OK;
}

void
np_stream_follow(const struct np_stream_request *m, struct np_plan *p)
{
	p->pattern = &np_pattern_stream;
	p->role = NP_FOLLOW;
	p->near.sock.sndbuf = m->send_buf_size;
	p->near.sock.rcvbuf = m->recv_buf_size;
	p->near.call.recv_size = m->receive_size;
	p->near.call.recv_align = (uint32_t)m->recv_alignment;
	p->near.call.recv_offset = (uint32_t)m->recv_offset;
	p->near.place.measure_cpu = m->measure_cpu != 0;
	p->nodelay = m->no_delay != 0;
	/* Seconds, or a count of bytes: as it can't be told, only the far end's close counts. */
	p->length = 0;
}

static int
stream_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	struct np_stream_request m;

	if (read_request(frame, np_stream_request_layout, &m, err) != NP_OK) {
		return err->code;
	}
	p->transport = &np_transport_tcp;
	np_stream_follow(&m, p);
	return asked_where(m.port, m.ipfamily, p, err);
}

void
np_stream_grant(const struct np_plan *p, const struct np_run *run, uint32_t code, uint8_t *frame)
{
	struct np_stream_response m = {
		.recv_buf_size = run->end.rcvbuf,
		.receive_size =
		    (int32_t)(p->role == NP_LEAD ? run->worker->send_size : run->worker->recv_size),
		.no_delay = p->nodelay,
		.measure_cpu = p->near.place.measure_cpu,
		.send_buf_size = run->end.sndbuf,
		.data_port_number = np_addr_port(&run->end.local),
		.cpu_rate = cpu_rate(p),
	};

	put(frame, code, 0, np_stream_response_layout, &m);
}

void
np_stream_report(const struct np_plan *p, const struct np_tally *t, uint32_t code, uint8_t *frame)
{
	bool leads = p->role == NP_LEAD;
	struct np_stream_results m = {
		.bytes_received = (double)(leads ? t->count.sent : t->count.received),
		.recv_calls = (uint32_t)(leads ? t->count.sends : t->count.receives),
		.elapsed_time = elapsed(t),
		.cpu_util = cpu_percent(t, t->closing.cpu.util),
		.cpu_method = cpu_method(t),
		.num_cpus = t->closing.cpu.count,
	};

	put(frame, code, 0, np_stream_results_layout, &m);
}

/* --- TCP_CC (300) ------------------------------------------------------------------------------
 */

static void
cc_ask(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	struct np_rr_request m = {
		.recv_buf_size = p->far.sock.rcvbuf,
		.send_buf_size = p->far.sock.sndbuf,
		.recv_alignment = (int32_t)p->far.call.recv_align,
		.recv_offset = (int32_t)p->far.call.recv_offset,
		.send_alignment = (int32_t)p->far.call.send_align,
		.send_offset = (int32_t)p->far.call.send_offset,
		.request_size = p->request,
		.response_size = p->response,
		.no_delay = p->nodelay,
		.measure_cpu = p->far.place.measure_cpu,
		.test_length = (int32_t)p->length,
		.port = p->far.sock.port,
		.ipfamily = (int32_t)family_to_wire(p->family),
	};

	(void)run;
	put(frame, NP_TCP_CC, p->far.place.cpu, np_rr_request_layout, &m);
}

static int
cc_granted(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_rr_response m;

	if (np_frame_get(frame, np_rr_response_layout, &m, err) != NP_OK) {
		return err->code;
	}
	far->sndbuf = m.send_buf_size;
	far->rcvbuf = m.recv_buf_size;
	far->nodelay = m.no_delay != 0;
	far->measures_cpu = m.measure_cpu != 0;
	return granted_port((uint32_t)m.data_port_number, far, err);
}

static int
cc_reported(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_rr_results m;

	if (np_frame_get(frame, np_rr_results_layout, &m, err) != NP_OK) {
		return err->code;
	}
	far->reported = true;
	far->elapsed = (double)m.elapsed_time;
	far->transactions = m.trans_received;
	cpu_told(far, (double)m.cpu_util, m.cpu_method, m.num_cpus);
	return NP_OK;
}

static int
cc_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	struct np_rr_request m;

	if (read_request(frame, np_rr_request_layout, &m, err) != NP_OK) {
		return err->code;
	}
	p->pattern = &np_pattern_cc;
	p->transport = &np_transport_tcp;
	p->role = NP_FOLLOW;
	p->near.sock.sndbuf = m.send_buf_size;
	p->near.sock.rcvbuf = m.recv_buf_size;
	p->request = m.request_size;
	p->response = m.response_size;
	p->near.place.measure_cpu = m.measure_cpu != 0;
	p->nodelay = m.no_delay != 0;
	p->length = m.test_length;
	return asked_where(m.port, m.ipfamily, p, err);
}

void
np_rr_grant(const struct np_plan *p, const struct np_run *run, uint32_t code, uint8_t *frame)
{
	struct np_rr_response m = {
		.recv_buf_size = run->end.rcvbuf,
		.no_delay = p->nodelay,
		.measure_cpu = p->near.place.measure_cpu,
		.test_length = (int32_t)p->length,
		.send_buf_size = run->end.sndbuf,
		.data_port_number = np_addr_port(&run->end.local),
		.cpu_rate = cpu_rate(p),
	};

	put(frame, code, 0, np_rr_response_layout, &m);
}

void
np_rr_report(const struct np_plan *p, const struct np_tally *t, uint32_t code, uint8_t *frame)
{
	uint64_t done = t->count.transactions;
	uint32_t bytes = (uint32_t)p->request + (uint32_t)p->response;
	struct np_rr_results m = {
		/* As if each connection had carried its request and response; wraps at 32 bits. */
		.bytes_received = (uint32_t)done * bytes,
		.trans_received = (uint32_t)done,
		.elapsed_time = elapsed(t),
		.cpu_util = cpu_percent(t, t->closing.cpu.util),
		.cpu_method = cpu_method(t),
		.num_cpus = t->closing.cpu.count,
	};

	put(frame, code, 0, np_rr_results_layout, &m);
}

static const struct np_dialect *
dialect_of(uint32_t code, const struct np_dialect *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i].code == code) {
			return &list[i];
		}
	}
	return NULL;
}

const struct np_dialect *
np_dialect(uint32_t code)
{
	static const struct np_dialect dialects[] = {
		{ NP_OMNI, omni_ask, omni_granted, omni_reported, omni_asked, omni_grant,
		  omni_report },
		{ NP_TCP_STREAM, stream_ask, stream_granted, stream_reported, stream_asked,
		  np_stream_grant, np_stream_report },
		{ NP_TCP_CC, cc_ask, cc_granted, cc_reported, cc_asked, np_rr_grant, np_rr_report },
	};

	const struct np_dialect *d;

	d = dialect_of(code, dialects, sizeof(dialects) / sizeof(dialects[0]));
	if (d == NULL) {
		d = dialect_of(code, np_unix_dialects, np_unix_dialects_count);
	}
	if (d == NULL) {
		d = dialect_of(code, &np_plan_dialect, 1);
	}
	return d != NULL ? d : dialect_of(code, np_old_dialects, np_old_dialects_count);
}

bool
np_plan_far_fraction(const struct np_plan *p)
{
	/* LOC_CPU and the like have no pattern, nor has a test that there is not. */
	return p->length_less_ms > 0 && p->pattern != NULL && np_plan_far_times(p);
}

bool
np_plan_needs_trio(const struct np_plan *p)
{
	return p->flows > 1 || p->far.place.engine != NULL || p->bench->code == NP_PLAN ||
	       (p->transport != NULL && p->transport->ours) || p->far.place.threads > 1 ||
	       p->warm_up_ms > 0 || p->ramp > 0 || p->sources > 1 || p->also.count > 0 ||
	       p->far_also.count > 0 || p->service != 0 || np_plan_far_fraction(p);
}

const struct np_dialect *
np_dialect_of(const struct np_plan *p)
{
	return np_plan_needs_trio(p) ? &np_plan_dialect : np_dialect(p->bench->code);
}
