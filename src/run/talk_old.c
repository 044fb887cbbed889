/*
 * The requests of clients before OMNI (netperf 2.2 to 2.4, and later ones built without it):
 * TCP_RR, TCP_CRR, UDP_RR, UDP_STREAM and TCP_MAERTS, and those of netperf's own tests over SCTP,
 * which ours asks for by OMNI: the daemon's half only. TCP_STREAM and
 * TCP_CC, which today's clients send as well, stand in talk.c.
 */
#include <string.h>

#include "run/talk_parts.h"

/* --- TCP_RR (13), UDP_RR (19), TCP_CRR (34) --------------------------------------------------- */

static int
rr_asked(const uint8_t *frame, const struct np_pattern *pattern,
	 const struct np_transport *transport, struct np_plan *p, struct np_err *err)
{
	struct np_rr_request m;

	if (read_request(frame, np_rr_request_layout, &m, err) != NP_OK) {
		return err->code;
	}
	if (m.request_size <= 0 || m.response_size <= 0) {
		return np_fail(err, NP_EPEER, EINVAL, "request of %d, response of %d bytes",
			       m.request_size, m.response_size);
	}
	p->pattern = pattern;
	p->transport = transport;
	p->role = NP_FOLLOW;
	p->near.sock.sndbuf = m.send_buf_size;
	p->near.sock.rcvbuf = m.recv_buf_size;
	p->near.call.send_align = (uint32_t)m.send_alignment;
	p->near.call.send_offset = (uint32_t)m.send_offset;
	p->near.call.recv_align = (uint32_t)m.recv_alignment;
	p->near.call.recv_offset = (uint32_t)m.recv_offset;
	p->near.place.measure_cpu = m.measure_cpu != 0;
	p->nodelay = m.no_delay != 0;
	p->request = m.request_size;
	p->response = m.response_size;
	p->length = m.test_length;
	p->no_end_mark = !transport->connected;
	return asked_where(m.port, m.ipfamily, p, err);
}

static int
tcp_rr_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	return rr_asked(frame, &np_pattern_rr, &np_transport_tcp, p, err);
}

static int
udp_rr_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	return rr_asked(frame, &np_pattern_rr, &np_transport_udp, p, err);
}

static int
tcp_crr_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	return rr_asked(frame, &np_pattern_crr, &np_transport_tcp, p, err);
}

/* --- UDP_STREAM (16) ------------------------------------------------------------------------- */

/*
 * Before 2.4.3 there was no recv_connected, and all that follows stood one word earlier. Where the
 * test's length stood then there is now the processors' rate, a float: of numbers below 2^24 only
 * an integer has the bits.
 */
static np_layout *
udp_layout_of(const uint8_t *frame)
{
	struct np_udp_request m;
	uint32_t bits;

	np_frame_get(frame, np_udp_request_layout, &m, NULL);
	memcpy(&bits, &m.cpu_rate, sizeof(bits));
	return bits > 0 && bits < 1U << 24 ? np_udp_242_request_layout : np_udp_request_layout;
}

static int
udp_stream_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	struct np_udp_request m = { .recv_connected = 0 };

	if (read_request(frame, udp_layout_of(frame), &m, err) != NP_OK) {
		return err->code;
	}
	if (m.message_size <= 0 || m.test_length < 0) {
		return np_fail(err, NP_EPEER, EINVAL, "messages of %d bytes for %d s",
			       m.message_size, m.test_length);
	}
	p->pattern = &np_pattern_stream;
	p->transport = &np_transport_udp;
	p->role = NP_FOLLOW;
	p->near.sock.rcvbuf = m.recv_buf_size;
	p->near.call.recv_size = m.message_size;
	p->near.call.recv_align = (uint32_t)m.recv_alignment;
	p->near.call.recv_offset = (uint32_t)m.recv_offset;
	p->near.sock.connected = m.recv_connected != 0;
	p->near.place.measure_cpu = m.measure_cpu != 0;
	p->length = m.test_length;
	return asked_where(m.port, m.ipfamily, p, err);
}

static void
udp_stream_grant(const struct np_plan *p, const struct np_run *run, uint32_t code, uint8_t *frame)
{
	struct np_udp_response m = {
		.recv_buf_size = run->end.rcvbuf,
		.send_buf_size = run->end.sndbuf,
		.measure_cpu = p->near.place.measure_cpu,
		.test_length = (int32_t)p->length,
		.data_port_number = np_addr_port(&run->end.local),
		.cpu_rate = cpu_rate(p),
	};

	put(frame, code, 0, np_udp_response_layout, &m);
}

static void
udp_stream_report(const struct np_plan *p, const struct np_tally *t, uint32_t code, uint8_t *frame)
{
	struct np_udp_results m = {
		.messages_recvd = (uint32_t)t->count.receives,
		.bytes_received = (uint32_t)t->count.received,
		.elapsed_time = elapsed(t),
		.cpu_util = t->closing.cpu.known ? cpu_percent(t, t->closing.cpu.util) : -1,
		.cpu_method = cpu_method(t),
		.num_cpus = t->closing.cpu.count,
	};

	(void)p;
	put(frame, code, 0, np_udp_results_layout, &m);
}

/* --- TCP_MAERTS (94): the words of TCP_STREAM, the other way round -----------------------------
 */

static int
maerts_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	struct np_stream_request m;

	if (read_request(frame, np_stream_request_layout, &m, err) != NP_OK) {
		return err->code;
	}
	if (m.test_length < 0) {
		return np_fail(err, NP_EPEER, EINVAL, "a test of %d s", m.test_length);
	}
	p->pattern = &np_pattern_stream;
	p->transport = &np_transport_tcp;
	p->role = NP_LEAD;
	p->near.sock.sndbuf = m.send_buf_size;
	p->near.sock.rcvbuf = m.recv_buf_size;
	p->near.call.send_size = m.receive_size;
	p->near.call.send_align = (uint32_t)m.recv_alignment;
	p->near.call.send_offset = (uint32_t)m.recv_offset;
	p->near.place.measure_cpu = m.measure_cpu != 0;
	p->nodelay = m.no_delay != 0;
	p->length = m.test_length;
	return asked_where(m.port, m.ipfamily, p, err);
}

/* --- SCTP_STREAM (500), SCTP_RR (520), and those of many associations (510, 530) ---------------
 */

/*
 * They turn the port round twice: from a machine of the other byte order it comes so, and then is
 * out of range as it stands.
 */
static uint32_t
turned_back(int32_t port)
{
	uint32_t wire = (uint32_t)port;

	return wire <= UINT16_MAX ? wire : wire >> 24 | (wire >> 8 & 0xff00U);
}

/* Only the far end's close ends it, as in TCP_STREAM. */
static int
sctp_stream_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	struct np_stream_request m;

	if (read_request(frame, np_stream_request_layout, &m, err) != NP_OK) {
		return err->code;
	}
	p->transport = &np_transport_sctp;
	np_stream_follow(&m, p);
	return asked_where((int32_t)turned_back(m.port), m.ipfamily, p, err);
}

static int
sctp_rr_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	return rr_asked(frame, &np_pattern_rr, &np_transport_sctp, p, err);
}

static void
sctp_rr_report(const struct np_plan *p, const struct np_tally *t, uint32_t code, uint8_t *frame)
{
	(void)code; /* netperf has another one */
	np_rr_report(p, t, NP_SCTP_RR_RESULTS, frame);
}

/* They do not say how many associations they bring to the one socket. */
static int
many_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	(void)frame;
	(void)p;
	return np_fail(err, NP_EUNSUP, EOPNOTSUPP,
		       "request for a socket that many SCTP associations share (SCTP_STREAM and "
		       "SCTP_RR are served)");
}

const struct np_dialect np_old_dialects[] = {
	{ .code = NP_SCTP_STREAM,
	  .asked = sctp_stream_asked,
	  .grant = np_stream_grant,
	  .report = np_stream_report },
	{ .code = NP_SCTP_RR,
	  .asked = sctp_rr_asked,
	  .grant = np_rr_grant,
	  .report = sctp_rr_report },
	{ .code = NP_SCTP_STREAM_MANY, .asked = many_asked },
	{ .code = NP_SCTP_RR_MANY, .asked = many_asked },
	{ .code = NP_TCP_RR, .asked = tcp_rr_asked, .grant = np_rr_grant, .report = np_rr_report },
	{ .code = NP_UDP_STREAM,
	  .asked = udp_stream_asked,
	  .grant = udp_stream_grant,
	  .report = udp_stream_report },
	{ .code = NP_UDP_RR, .asked = udp_rr_asked, .grant = np_rr_grant, .report = np_rr_report },
	{ .code = NP_TCP_CRR,
	  .asked = tcp_crr_asked,
	  .grant = np_rr_grant,
	  .report = np_rr_report },
	{ .code = NP_TCP_MAERTS,
	  .asked = maerts_asked,
	  .grant = np_stream_grant,
	  .report = np_stream_report },
};
const size_t np_old_dialects_count = sizeof(np_old_dialects) / sizeof(np_old_dialects[0]);
