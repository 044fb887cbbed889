/*
 * STREAM_STREAM, STREAM_RR, DG_STREAM and DG_RR: requests of their own, since OMNI has no room for
 * paths. The request's path is neither filled nor looked at: a daemon answers the address that a
 * datagram came from, as the kernel tells it.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "run/talk_parts.h"

int32_t
np_unix_buffer_to_wire(int32_t size)
{
	return size < 0 ? 0 : size;
}

int
np_path_from_wire(char *path, struct np_far *far, struct np_err *err)
{
	/* One that has to be cleaned names no socket any more. */
	bool clean = np_text_clean(path);

	if (!clean || path[0] != '/') {
		np_text_printable(path);
		return np_fail(err, NP_EPEER, 0, "the daemon names '%s' for the data connection",
			       path);
	}
	snprintf(far->path, sizeof(far->path), "%s", path);
	return NP_OK;
}

void
np_path_to_wire(const struct np_run *run, char path[NP_UNIX_PATH_MAX])
{
	char text[NP_ADDR_TEXT];

	snprintf(path, NP_UNIX_PATH_MAX, "%.*s", NP_UNIX_PATH_MAX - 1,
		 np_addr_host(&run->end.local, text));
}

/* Real daemons don't tell how many processors they have; but they run on this machine. */
static void
far_cpu(float util, struct np_far *far)
{
	cpu_told(far, (double)util, 0, np_cpu_count());
	far->cpu_method = NP_CPU_METHOD;
}

/* --- STREAM_STREAM (37) ---------------------------------------------------------------------- */

static void
ss_ask(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	struct np_unix_stream_request m = {
		.recv_buf_size = np_unix_buffer_to_wire(p->far.sock.rcvbuf),
		.send_buf_size = np_unix_buffer_to_wire(p->far.sock.sndbuf),
		.receive_size = p->far.call.recv_size > 0 ? p->far.call.recv_size : 0,
		.recv_alignment = (int32_t)p->far.call.recv_align,
		.recv_offset = (int32_t)p->far.call.recv_offset,
		.measure_cpu = p->far.place.measure_cpu,
		.test_length = (int32_t)(p->length < 0 ? -p->length : p->length),
	};

	(void)run;
	put(frame, NP_STREAM_STREAM, p->far.place.cpu, np_unix_stream_request_layout, &m);
}

static int
ss_granted(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_unix_stream_response m;

	if (np_frame_get(frame, np_unix_stream_response_layout, &m, err) != NP_OK) {
		return err->code;
	}
	far->sndbuf = m.send_buf_size;
	far->rcvbuf = m.recv_buf_size;
	far->recv_size = m.receive_size;
	far->measures_cpu = m.measure_cpu != 0;
	return np_path_from_wire(m.unix_path, far, err);
}

static int
ss_reported(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_unix_stream_results m;

	if (np_frame_get(frame, np_unix_stream_results_layout, &m, err) != NP_OK) {
		return err->code;
	}
	far->reported = true;
	far->received = m.bytes_received;
	far->brief = true;
	far->receives = m.recv_calls;
	far->elapsed = (double)m.elapsed_time;
	far_cpu(m.cpu_util, far);
	return NP_OK;
}

static int
ss_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	struct np_unix_stream_request m;

	if (read_request(frame, np_unix_stream_request_layout, &m, err) != NP_OK) {
		return err->code;
	}
	p->pattern = &np_pattern_stream;
	p->transport = &np_transport_unix_stream;
	p->role = NP_FOLLOW;
	p->near.sock.sndbuf = m.send_buf_size;
	p->near.sock.rcvbuf = m.recv_buf_size;
	p->near.call.recv_size = m.receive_size;
	p->near.call.recv_align = (uint32_t)m.recv_alignment;
	p->near.call.recv_offset = (uint32_t)m.recv_offset;
	p->near.place.measure_cpu = m.measure_cpu != 0;
	/* Seconds, or a count of bytes: as it can't be told, only the far end's close counts. */
	p->length = 0;
	return NP_OK;
}

static void
ss_grant(const struct np_plan *p, const struct np_run *run, uint32_t code, uint8_t *frame)
{
	struct np_unix_stream_response m = {
		.recv_buf_size = run->end.rcvbuf,
		.send_buf_size = run->end.sndbuf,
		.receive_size = (int32_t)run->worker->recv_size,
		.measure_cpu = p->near.place.measure_cpu,
		.cpu_rate = cpu_rate(p),
	};

	np_path_to_wire(run, m.unix_path);
	put(frame, code, 0, np_unix_stream_response_layout, &m);
}

static void
ss_report(const struct np_plan *p, const struct np_tally *t, uint32_t code, uint8_t *frame)
{
	struct np_unix_stream_results m = {
		.bytes_received = (uint32_t)t->count.received,
		.recv_calls = (uint32_t)t->count.receives,
		.elapsed_time = elapsed(t),
		.cpu_util = cpu_percent(t, t->closing.cpu.util),
		.num_cpus = t->closing.cpu.count,
	};

	(void)p;
	put(frame, code, 0, np_unix_stream_results_layout, &m);
}

/* --- STREAM_RR (40) and DG_RR (46) ----------------------------------------------------------- */

static void
rr_ask(const struct np_plan *p, uint32_t code, np_layout *layout, uint8_t *frame)
{
	struct np_unix_rr_request m = {
		.recv_buf_size = np_unix_buffer_to_wire(p->far.sock.rcvbuf),
		.send_buf_size = np_unix_buffer_to_wire(p->far.sock.sndbuf),
		.recv_alignment = (int32_t)p->far.call.recv_align,
		.recv_offset = (int32_t)p->far.call.recv_offset,
		.send_alignment = (int32_t)p->far.call.send_align,
		.send_offset = (int32_t)p->far.call.send_offset,
		.request_size = p->request,
		.response_size = p->response,
		.measure_cpu = p->far.place.measure_cpu,
		.test_length = (int32_t)p->length,
	};

	put(frame, code, p->far.place.cpu, layout, &m);
}

static void
stream_rr_ask(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	(void)run;
	rr_ask(p, NP_STREAM_RR, np_stream_rr_request_layout, frame);
}

static void
dg_rr_ask(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	(void)run;
	rr_ask(p, NP_DG_RR, np_dg_rr_request_layout, frame);
}

static int
rr_granted(const uint8_t *frame, np_layout *layout, struct np_far *far, struct np_err *err)
{
	struct np_unix_rr_response m;

	if (np_frame_get(frame, layout, &m, err) != NP_OK) {
		return err->code;
	}
	far->sndbuf = m.send_buf_size;
	far->rcvbuf = m.recv_buf_size;
	far->measures_cpu = m.measure_cpu != 0;
	return np_path_from_wire(m.unix_path, far, err);
}

static int
stream_rr_granted(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	return rr_granted(frame, np_stream_rr_response_layout, far, err);
}

static int
dg_rr_granted(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	return rr_granted(frame, np_dg_rr_response_layout, far, err);
}

static int
rr_reported(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_unix_rr_results m;

	if (np_frame_get(frame, np_unix_rr_results_layout, &m, err) != NP_OK) {
		return err->code;
	}
	/* Bytes are told as if responses had been received, too: no use. */
	far->reported = true;
	far->brief = true;
	far->transactions = m.trans_received;
	far->elapsed = (double)m.elapsed_time;
	far_cpu(m.cpu_util, far);
	return NP_OK;
}

static int
rr_asked(const uint8_t *frame, np_layout *layout, struct np_plan *p, struct np_err *err)
{
	struct np_unix_rr_request m;

	if (read_request(frame, layout, &m, err) != NP_OK) {
		return err->code;
	}
	if (m.request_size <= 0 || m.response_size <= 0) {
		return np_fail(err, NP_EPEER, EINVAL, "request of %d, response of %d bytes",
			       m.request_size, m.response_size);
	}
	p->pattern = &np_pattern_rr;
	p->role = NP_FOLLOW;
	p->near.sock.sndbuf = m.send_buf_size;
	p->near.sock.rcvbuf = m.recv_buf_size;
	p->near.call.recv_align = (uint32_t)m.recv_alignment;
	p->near.call.recv_offset = (uint32_t)m.recv_offset;
	p->near.call.send_align = (uint32_t)m.send_alignment;
	p->near.call.send_offset = (uint32_t)m.send_offset;
	p->near.place.measure_cpu = m.measure_cpu != 0;
	p->request = m.request_size;
	p->response = m.response_size;
	p->length = m.test_length;
	return NP_OK;
}

static int
stream_rr_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	p->transport = &np_transport_unix_stream;
	return rr_asked(frame, np_stream_rr_request_layout, p, err);
}

static int
dg_rr_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	p->transport = &np_transport_unix_dgram;
	return rr_asked(frame, np_dg_rr_request_layout, p, err);
}

static void
rr_grant(const struct np_plan *p, const struct np_run *run, uint32_t code, np_layout *layout,
	 uint8_t *frame)
{
	struct np_unix_rr_response m = {
		.recv_buf_size = run->end.rcvbuf,
		.send_buf_size = run->end.sndbuf,
		.measure_cpu = p->near.place.measure_cpu,
		.cpu_rate = cpu_rate(p),
	};

	np_path_to_wire(run, m.unix_path);
	put(frame, code, 0, layout, &m);
}

static void
stream_rr_grant(const struct np_plan *p, const struct np_run *run, uint32_t code, uint8_t *frame)
{
	rr_grant(p, run, code, np_stream_rr_response_layout, frame);
}

static void
dg_rr_grant(const struct np_plan *p, const struct np_run *run, uint32_t code, uint8_t *frame)
{
	rr_grant(p, run, code, np_dg_rr_response_layout, frame);
}

static void
rr_report(const struct np_plan *p, const struct np_tally *t, uint32_t code, uint8_t *frame)
{
	uint32_t done = (uint32_t)t->count.transactions;
	struct np_unix_rr_results m = {
		.bytes_received = done * ((uint32_t)p->request + (uint32_t)p->response),
		.trans_received = done,
		.elapsed_time = elapsed(t),
		.cpu_util = cpu_percent(t, t->closing.cpu.util),
		.num_cpus = t->closing.cpu.count,
	};

	put(frame, code, 0, np_unix_rr_results_layout, &m);
}

/* --- DG_STREAM (43) -------------------------------------------------------------------------- */

static void
ds_ask(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	struct np_dg_stream_request m = {
		.recv_buf_size = np_unix_buffer_to_wire(p->far.sock.rcvbuf),
		.message_size = (int32_t)run->worker->send_size,
		.recv_alignment = (int32_t)p->far.call.recv_align,
		.recv_offset = (int32_t)p->far.call.recv_offset,
		.measure_cpu = p->far.place.measure_cpu,
		.test_length = (int32_t)(p->length < 0 ? 0 : p->length),
	};

	put(frame, NP_DG_STREAM, p->far.place.cpu, np_dg_stream_request_layout, &m);
}

static int
ds_granted(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_dg_stream_response m;

	if (np_frame_get(frame, np_dg_stream_response_layout, &m, err) != NP_OK) {
		return err->code;
	}
	far->sndbuf = m.send_buf_size;
	far->rcvbuf = m.recv_buf_size;
	far->measures_cpu = m.measure_cpu != 0;
	return np_path_from_wire(m.unix_path, far, err);
}

static int
ds_reported(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_dg_stream_results m;

	if (np_frame_get(frame, np_dg_stream_results_layout, &m, err) != NP_OK) {
		return err->code;
	}
	far->reported = true;
	far->received = m.bytes_received;
	far->brief = true;
	far->receives = m.messages_recvd;
	far->elapsed = (double)m.elapsed_time;
	far_cpu(m.cpu_util, far);
	return NP_OK;
}

static int
ds_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	struct np_dg_stream_request m;

	if (read_request(frame, np_dg_stream_request_layout, &m, err) != NP_OK) {
		return err->code;
	}
	if (m.message_size <= 0 || m.test_length < 0) {
		return np_fail(err, NP_EPEER, EINVAL, "messages of %d bytes for %d s",
			       m.message_size, m.test_length);
	}
	p->pattern = &np_pattern_stream;
	p->transport = &np_transport_unix_dgram;
	p->role = NP_FOLLOW;
	p->near.sock.rcvbuf = m.recv_buf_size;
	p->near.call.recv_size = m.message_size;
	p->near.call.recv_align = (uint32_t)m.recv_alignment;
	p->near.call.recv_offset = (uint32_t)m.recv_offset;
	p->near.place.measure_cpu = m.measure_cpu != 0;
	p->length = m.test_length;
	return NP_OK;
}

static void
ds_grant(const struct np_plan *p, const struct np_run *run, uint32_t code, uint8_t *frame)
{
	struct np_dg_stream_response m = {
		.recv_buf_size = run->end.rcvbuf,
		.send_buf_size = run->end.sndbuf,
		.measure_cpu = p->near.place.measure_cpu,
		.test_length = (int32_t)p->length,
		.cpu_rate = cpu_rate(p),
	};

	np_path_to_wire(run, m.unix_path);
	put(frame, code, 0, np_dg_stream_response_layout, &m);
}

static void
ds_report(const struct np_plan *p, const struct np_tally *t, uint32_t code, uint8_t *frame)
{
	struct np_dg_stream_results m = {
		.messages_recvd = (uint32_t)t->count.receives,
		.bytes_received = (uint32_t)t->count.received,
		.elapsed_time = elapsed(t),
		.cpu_util = t->closing.cpu.known ? cpu_percent(t, t->closing.cpu.util) : -1,
		.num_cpus = t->closing.cpu.count,
	};

	(void)p;
	put(frame, code, 0, np_dg_stream_results_layout, &m);
}

const struct np_dialect np_unix_dialects[] = {
	{ NP_STREAM_STREAM, ss_ask, ss_granted, ss_reported, ss_asked, ss_grant, ss_report },
	{ NP_STREAM_RR, stream_rr_ask, stream_rr_granted, rr_reported, stream_rr_asked,
	  stream_rr_grant, rr_report },
	{ NP_DG_STREAM, ds_ask, ds_granted, ds_reported, ds_asked, ds_grant, ds_report },
	{ NP_DG_RR, dg_rr_ask, dg_rr_granted, rr_reported, dg_rr_asked, dg_rr_grant, rr_report },
};
const size_t np_unix_dialects_count = sizeof(np_unix_dialects) / sizeof(np_unix_dialects[0]);
