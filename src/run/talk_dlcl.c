/*
 * DLCL_STREAM and DLCL_RR: tests of the link layer. netperf has such tests over DLPI, which Linux
 * has not: the messages are ours, of the usual size. Before them the client greets the daemon,
 * which has to know the interface at once (wire/ext.h).
 */
#include <string.h>

#include "run/talk_parts.h"

/* NULL where a run was not opened. */
static const struct np_eth *
link_of(const struct np_run *run)
{
	return run->terms != NULL ? run->terms->eth : NULL;
}

static void
ask(const struct np_plan *p, const struct np_run *run, uint32_t code, uint8_t *frame)
{
	const struct np_eth *link = link_of(run);
	bool sized = p->pattern->sized;
	struct np_dlcl_request m = {
		.recv_buf_size = p->far.rcvbuf,
		.send_buf_size = p->far.sndbuf,
		.recv_alignment = (int32_t)p->far.recv_align,
		.recv_offset = (int32_t)p->far.recv_offset,
		.send_alignment = (int32_t)p->far.send_align,
		.send_offset = (int32_t)p->far.send_offset,
		.message_size = sized ? 0 : (int32_t)run->worker.send_size,
		.request_size = sized ? p->request : 0,
		.response_size = sized ? p->response : 0,
		.measure_cpu = p->far.measure_cpu,
		.test_length = (int32_t)p->length,
		.dirty_count = p->far.dirty,
		.clean_count = p->far.clean,
		.interval_burst = p->far.interval_burst,
		.interval_usecs = p->far.interval_us,
		.socket_prio = p->far.prio,
	};

	if (link != NULL) {
		memcpy(m.address, link->mac, sizeof(m.address));
	}
	put(frame, code, p->far.cpu, np_dlcl_request_layout, &m);
	if (p->ids) {
		np_ids_ask_put(frame);
	}
}

static void
stream_ask(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	ask(p, run, NP_DLCL_STREAM, frame);
}

static void
rr_ask(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	ask(p, run, NP_DLCL_RR, frame);
}

static int
granted(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_dlcl_response m;

	if (np_frame_get(frame, np_dlcl_response_layout, &m, err) != NP_OK) {
		return err->code;
	}
	if (m.token == 0) {
		return np_fail(err, NP_EPEER, 0, "the daemon names no tag for the frames");
	}
	far->token = m.token;
	far->ids = np_ids_grant_get(frame);
	memcpy(far->mac, m.address, sizeof(far->mac));
	far->sndbuf = m.send_buf_size;
	far->rcvbuf = m.recv_buf_size;
	far->send_size = m.send_size;
	far->recv_size = m.receive_size;
	far->prio = m.socket_prio;
	far->measures_cpu = m.measure_cpu != 0;
	return NP_OK;
}

static int
reported(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_dlcl_results m;

	if (np_frame_get(frame, np_dlcl_results_layout, &m, err) != NP_OK) {
		return err->code;
	}
	if (m.frames_received > INT64_MAX || m.frames_sent > INT64_MAX ||
	    m.transactions > INT64_MAX) {
		return np_fail(err, NP_EPEER, 0, "the daemon reports %llu frames received",
			       (unsigned long long)m.frames_received);
	}
	far->reported = true;
	far->received = m.bytes_received;
	far->receives = (int64_t)m.frames_received;
	far->sent = m.bytes_sent;
	far->sends = (int64_t)m.frames_sent;
	far->transactions = (int64_t)m.transactions;
	far->elapsed = m.elapsed_time;
	far->sndbuf_end = m.send_buf_size;
	far->rcvbuf_end = m.recv_buf_size;
	cpu_told(far, (double)m.cpu_util, m.cpu_method, m.num_cpus);
	return NP_OK;
}

static void
asked_end(const struct np_dlcl_request *m, struct np_plan *p)
{
	struct np_end *near = &p->near;

	near->sndbuf = m->send_buf_size;
	near->rcvbuf = m->recv_buf_size;
	near->recv_align = (uint32_t)m->recv_alignment;
	near->recv_offset = (uint32_t)m->recv_offset;
	near->send_align = (uint32_t)m->send_alignment;
	near->send_offset = (uint32_t)m->send_offset;
	near->measure_cpu = m->measure_cpu != 0;
	near->dirty = m->dirty_count;
	near->clean = m->clean_count;
	near->interval_burst = m->interval_burst;
	near->interval_us = m->interval_usecs;
	near->prio = m->socket_prio;
	memcpy(p->far.mac, m->address, sizeof(p->far.mac));
	p->transport = &np_transport_eth;
	p->role = NP_FOLLOW;
	p->length = m->test_length;
}

static int
stream_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	struct np_dlcl_request m;

	if (read_request(frame, np_dlcl_request_layout, &m, err) != NP_OK) {
		return err->code;
	}
	if (m.message_size <= 0) {
		return np_fail(err, NP_EPEER, EINVAL, "frames of %d bytes", m.message_size);
	}
	asked_end(&m, p);
	p->pattern = &np_pattern_stream;
	p->near.recv_size = m.message_size;
	return NP_OK;
}

static int
rr_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	struct np_dlcl_request m;

	if (read_request(frame, np_dlcl_request_layout, &m, err) != NP_OK) {
		return err->code;
	}
	if (m.request_size <= 0 || m.response_size <= 0) {
		return np_fail(err, NP_EPEER, EINVAL, "request of %d, response of %d bytes",
			       m.request_size, m.response_size);
	}
	asked_end(&m, p);
	p->pattern = &np_pattern_rr;
	p->ids = np_ids_ask_get(frame);
	p->request = m.request_size;
	p->response = m.response_size;
	return NP_OK;
}

static void
grant(const struct np_plan *p, const struct np_run *run, uint32_t code, uint8_t *frame)
{
	const struct np_eth *link = link_of(run);
	struct np_dlcl_response m = {
		.recv_buf_size = run->end.rcvbuf,
		.send_buf_size = run->end.sndbuf,
		.receive_size = (int32_t)run->worker.recv_size,
		.send_size = (int32_t)run->worker.send_size,
		.measure_cpu = p->near.measure_cpu,
		.cpu_rate = cpu_rate(p),
		.socket_prio = run->end.prio,
		.token = run->end.token,
	};

	if (link != NULL) {
		m.mtu = link->mtu;
		memcpy(m.address, link->mac, sizeof(m.address));
	}
	put(frame, code, 0, np_dlcl_response_layout, &m);
	if (run->worker.id.width > 0) {
		np_ids_grant_put(frame);
	}
}

static void
stream_grant(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	grant(p, run, NP_DLCL_STREAM + 1, frame);
}

static void
rr_grant(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	grant(p, run, NP_DLCL_RR + 1, frame);
}

static void
report(const struct np_run *run, uint32_t code, uint8_t *frame)
{
	struct np_dlcl_results m = {
		.bytes_received = np_seen(&run->worker.count->received),
		.frames_received = np_seen(&run->worker.count->receives),
		.bytes_sent = np_seen(&run->worker.count->sent),
		.frames_sent = np_seen(&run->worker.count->sends),
		.transactions = np_seen(&run->worker.count->transactions),
		.elapsed_time = (double)elapsed(run),
		.cpu_util = cpu_percent(run, run->closing.cpu.util),
		.cpu_method = cpu_method(run),
		.num_cpus = run->closing.cpu.count,
		.recv_buf_size = run->closing.rcvbuf_end,
		.send_buf_size = run->closing.sndbuf_end,
	};

	put(frame, code, 0, np_dlcl_results_layout, &m);
}

static void
stream_report(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	(void)p;
	report(run, NP_DLCL_STREAM + 2, frame);
}

static void
rr_report(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	(void)p;
	report(run, NP_DLCL_RR + 2, frame);
}

const struct np_dialect np_dlcl_dialects[] = {
	{ NP_DLCL_STREAM, stream_ask, granted, reported, stream_asked, stream_grant,
	  stream_report },
	{ NP_DLCL_RR, rr_ask, granted, reported, rr_asked, rr_grant, rr_report },
};
const size_t np_dlcl_dialects_count = sizeof(np_dlcl_dialects) / sizeof(np_dlcl_dialects[0]);
