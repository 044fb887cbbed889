#include "wire/msg.h"

#include <string.h>

#include "wire/wire.h"

/*
 * The layouts, field by field in the order of the wire (doc/protocol.md has the offsets). A skip
 * is named after the fields that real programs leave unfilled there, or don't look at.
 */

static void
head_layout(struct np_wire *w, struct np_head *h)
{
	np_wire_u32(w, "code", &h->code);
	np_wire_i32(w, "error or CPU", &h->word);
}

static void
omni_request_buffers(struct np_wire *w, struct np_omni_request *r)
{
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "send_size", &r->send_size);
	np_wire_u32(w, "send_alignment", &r->send_alignment);
	np_wire_u32(w, "send_offset", &r->send_offset);
	np_wire_u32(w, "send_width", &r->send_width);
	np_wire_i32(w, "request_size", &r->request_size);
	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "receive_size", &r->receive_size);
	np_wire_u32(w, "recv_alignment", &r->recv_alignment);
	np_wire_u32(w, "recv_offset", &r->recv_offset);
	np_wire_u32(w, "recv_width", &r->recv_width);
	np_wire_i32(w, "response_size", &r->response_size);
}

static void
omni_request_run(struct np_wire *w, struct np_omni_request *r)
{
	np_wire_u32(w, "flags", &r->flags);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_i32(w, "test_length", &r->test_length);
	np_wire_i32(w, "so_rcvavoid", &r->so_rcvavoid);
	np_wire_i32(w, "so_sndavoid", &r->so_sndavoid);
	np_wire_i32(w, "send_dirty_count", &r->send_dirty_count);
	np_wire_i32(w, "recv_dirty_count", &r->recv_dirty_count);
	np_wire_i32(w, "recv_clean_count", &r->recv_clean_count);
}

static void
address_words(struct np_wire *w, const char *field, uint32_t words[4])
{
	for (int i = 0; i < 4; i++) {
		np_wire_u32(w, field, &words[i]);
	}
}

static void
omni_request_sockets(struct np_wire *w, struct np_omni_request *r)
{
	np_wire_u32(w, "data_port", &r->data_port);
	np_wire_u32(w, "ipfamily", &r->ipfamily);
	np_wire_i32(w, "socket_type", &r->socket_type);
	np_wire_u32(w, "protocol", &r->protocol);
	np_wire_u32(w, "direction", &r->direction);
	np_wire_u32(w, "netperf_port", &r->netperf_port);
	np_wire_u32(w, "interval_burst", &r->interval_burst);
	np_wire_u32(w, "interval_usecs", &r->interval_usecs);
	address_words(w, "netperf_ip", r->netperf_ip);
	address_words(w, "netserver_ip", r->netserver_ip);
	np_wire_i32(w, "socket_prio", &r->socket_prio);
	np_wire_i32(w, "socket_tos", &r->socket_tos);
	np_wire_text(w, "cong_control", r->cong_control, sizeof(r->cong_control));
	np_wire_text(w, "fill_file", r->fill_file, sizeof(r->fill_file));
}

void
np_omni_request_layout(struct np_wire *w, void *m)
{
	omni_request_buffers(w, m);
	omni_request_run(w, m);
	omni_request_sockets(w, m);
}

void
np_omni_response_layout(struct np_wire *w, void *m)
{
	struct np_omni_response *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "receive_size", &r->receive_size);
	np_wire_u32(w, "recv_width", &r->recv_width);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "send_size", &r->send_size);
	np_wire_u32(w, "send_width", &r->send_width);
	np_wire_u32(w, "flags", &r->flags);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_skip(w, 4); /* test_length */
	np_wire_i32(w, "so_rcvavoid", &r->so_rcvavoid);
	np_wire_i32(w, "so_sndavoid", &r->so_sndavoid);
	np_wire_u32(w, "data_port", &r->data_port);
	np_wire_u32(w, "interval_burst", &r->interval_burst);
	np_wire_u32(w, "interval_usecs", &r->interval_usecs);
	np_wire_skip(w, 8); /* cpu_frequency, security_info */
	np_wire_i32(w, "socket_prio", &r->socket_prio);
	np_wire_i32(w, "socket_tos", &r->socket_tos);
}

static void
omni_results_traffic(struct np_wire *w, struct np_omni_results *r)
{
	np_wire_u64_hilo(w, "bytes_received", &r->bytes_received);
	np_wire_u32(w, "recv_calls", &r->recv_calls);
	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_u64_hilo(w, "bytes_sent", &r->bytes_sent);
	np_wire_u32(w, "send_calls", &r->send_calls);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_skip(w, 4); /* failed_sends */
	np_wire_u32(w, "trans_received", &r->trans_received);
	np_wire_f32(w, "elapsed_time", &r->elapsed_time);
}

static void
omni_results_cpu(struct np_wire *w, struct np_omni_results *r)
{
	np_wire_f32(w, "cpu_util", &r->cpu_util);
	np_wire_f32(w, "cpu_percent_user", &r->cpu_percent_user);
	np_wire_f32(w, "cpu_percent_system", &r->cpu_percent_system);
	np_wire_f32(w, "cpu_percent_iowait", &r->cpu_percent_iowait);
	np_wire_f32(w, "cpu_percent_irq", &r->cpu_percent_irq);
	np_wire_f32(w, "cpu_percent_swintr", &r->cpu_percent_swintr);
	np_wire_skip(w, 4); /* serv_dem */
	np_wire_i32(w, "cpu_method", &r->cpu_method);
	np_wire_i32(w, "num_cpus", &r->num_cpus);
	np_wire_i32(w, "peak_cpu_id", &r->peak_cpu_id);
	np_wire_f32(w, "peak_cpu_util", &r->peak_cpu_util);
}

void
np_omni_results_layout(struct np_wire *w, void *m)
{
	struct np_omni_results *r = m;

	omni_results_traffic(w, r);
	omni_results_cpu(w, r);
	np_wire_skip(w, 16); /* PCI ids: vendor, device, subvendor, subdevice */
	np_wire_i32(w, "transport_retrans", &r->transport_retrans);
	np_wire_skip(w, 160); /* texts: ifname, driver, version, firmware, bus, ifslot */
	np_wire_text(w, "cong_control", r->cong_control, sizeof(r->cong_control));
}

void
np_stream_request_layout(struct np_wire *w, void *m)
{
	struct np_stream_request *r = m;

	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "receive_size", &r->receive_size);
	np_wire_i32(w, "recv_alignment", &r->recv_alignment);
	np_wire_i32(w, "recv_offset", &r->recv_offset);
	np_wire_i32(w, "no_delay", &r->no_delay);
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_i32(w, "test_length", &r->test_length);
	np_wire_i32(w, "so_rcvavoid", &r->so_rcvavoid);
	np_wire_i32(w, "so_sndavoid", &r->so_sndavoid);
	np_wire_i32(w, "dirty_count", &r->dirty_count);
	np_wire_i32(w, "clean_count", &r->clean_count);
	np_wire_i32(w, "port", &r->port);
	np_wire_i32(w, "ipfamily", &r->ipfamily);
	np_wire_skip(w, 4); /* recv_aio, which only some builds of 2.7.1 know */
}

void
np_stream_response_layout(struct np_wire *w, void *m)
{
	struct np_stream_response *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "receive_size", &r->receive_size);
	np_wire_i32(w, "no_delay", &r->no_delay);
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_skip(w, 4); /* test_length */
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "data_port_number", &r->data_port_number);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_i32(w, "so_rcvavoid", &r->so_rcvavoid);
	np_wire_i32(w, "so_sndavoid", &r->so_sndavoid);
}

void
np_stream_results_layout(struct np_wire *w, void *m)
{
	struct np_stream_results *r = m;

	np_wire_f64(w, "bytes_received", &r->bytes_received);
	np_wire_u32(w, "recv_calls", &r->recv_calls);
	np_wire_f32(w, "elapsed_time", &r->elapsed_time);
	np_wire_f32(w, "cpu_util", &r->cpu_util);
	np_wire_skip(w, 4); /* serv_dem */
	np_wire_i32(w, "cpu_method", &r->cpu_method);
	np_wire_i32(w, "num_cpus", &r->num_cpus);
	np_wire_skip(w, 8); /* recv_buf_size, send_buf_size */
}

void
np_rr_request_layout(struct np_wire *w, void *m)
{
	struct np_rr_request *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "recv_alignment", &r->recv_alignment);
	np_wire_i32(w, "recv_offset", &r->recv_offset);
	np_wire_i32(w, "send_alignment", &r->send_alignment);
	np_wire_i32(w, "send_offset", &r->send_offset);
	np_wire_i32(w, "request_size", &r->request_size);
	np_wire_i32(w, "response_size", &r->response_size);
	np_wire_i32(w, "no_delay", &r->no_delay);
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_i32(w, "test_length", &r->test_length);
	np_wire_i32(w, "so_rcvavoid", &r->so_rcvavoid);
	np_wire_i32(w, "so_sndavoid", &r->so_sndavoid);
	np_wire_i32(w, "port", &r->port);
	np_wire_i32(w, "ipfamily", &r->ipfamily);
}

void
np_rr_response_layout(struct np_wire *w, void *m)
{
	struct np_rr_response *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "no_delay", &r->no_delay);
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_i32(w, "test_length", &r->test_length);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "data_port_number", &r->data_port_number);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_i32(w, "so_rcvavoid", &r->so_rcvavoid);
	np_wire_i32(w, "so_sndavoid", &r->so_sndavoid);
}

void
np_rr_results_layout(struct np_wire *w, void *m)
{
	struct np_rr_results *r = m;

	np_wire_u32(w, "bytes_received", &r->bytes_received);
	np_wire_skip(w, 4); /* recv_calls */
	np_wire_u32(w, "trans_received", &r->trans_received);
	np_wire_f32(w, "elapsed_time", &r->elapsed_time);
	np_wire_f32(w, "cpu_util", &r->cpu_util);
	np_wire_skip(w, 4); /* serv_dem */
	np_wire_i32(w, "cpu_method", &r->cpu_method);
	np_wire_i32(w, "num_cpus", &r->num_cpus);
}

static void
udp_request_rest(struct np_wire *w, struct np_udp_request *r)
{
	np_wire_i32(w, "recv_alignment", &r->recv_alignment);
	np_wire_i32(w, "recv_offset", &r->recv_offset);
	np_wire_i32(w, "checksum_off", &r->checksum_off);
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_i32(w, "test_length", &r->test_length);
	np_wire_i32(w, "so_rcvavoid", &r->so_rcvavoid);
	np_wire_i32(w, "so_sndavoid", &r->so_sndavoid);
	np_wire_i32(w, "port", &r->port);
	np_wire_i32(w, "ipfamily", &r->ipfamily);
}

void
np_udp_request_layout(struct np_wire *w, void *m)
{
	struct np_udp_request *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "message_size", &r->message_size);
	np_wire_i32(w, "recv_connected", &r->recv_connected);
	udp_request_rest(w, r);
}

void
np_udp_242_request_layout(struct np_wire *w, void *m)
{
	struct np_udp_request *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "message_size", &r->message_size);
	udp_request_rest(w, r);
}

void
np_udp_response_layout(struct np_wire *w, void *m)
{
	struct np_udp_response *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_i32(w, "test_length", &r->test_length);
	np_wire_i32(w, "data_port_number", &r->data_port_number);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_i32(w, "so_rcvavoid", &r->so_rcvavoid);
	np_wire_i32(w, "so_sndavoid", &r->so_sndavoid);
}

void
np_udp_results_layout(struct np_wire *w, void *m)
{
	struct np_udp_results *r = m;

	np_wire_u32(w, "messages_recvd", &r->messages_recvd);
	np_wire_u32(w, "bytes_received", &r->bytes_received);
	np_wire_f32(w, "elapsed_time", &r->elapsed_time);
	np_wire_f32(w, "cpu_util", &r->cpu_util);
	np_wire_i32(w, "cpu_method", &r->cpu_method);
	np_wire_i32(w, "num_cpus", &r->num_cpus);
}

void
np_unix_stream_request_layout(struct np_wire *w, void *m)
{
	struct np_unix_stream_request *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "receive_size", &r->receive_size);
	np_wire_i32(w, "recv_alignment", &r->recv_alignment);
	np_wire_i32(w, "recv_offset", &r->recv_offset);
	np_wire_i32(w, "so_rcvavoid", &r->so_rcvavoid);
	np_wire_i32(w, "so_sndavoid", &r->so_sndavoid);
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_i32(w, "test_length", &r->test_length);
	np_wire_i32(w, "dirty_count", &r->dirty_count);
	np_wire_i32(w, "clean_count", &r->clean_count);
	np_wire_skip(w, 36); /* path_name_len, unix_path */
}

void
np_unix_stream_response_layout(struct np_wire *w, void *m)
{
	struct np_unix_stream_response *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "receive_size", &r->receive_size);
	np_wire_skip(w, 8); /* so_rcvavoid, so_sndavoid */
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_skip(w, 8); /* test_length, data_port_number */
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_skip(w, 4); /* path_name_len */
	np_wire_text4(w, "unix_path", r->unix_path, sizeof(r->unix_path));
}

void
np_unix_stream_results_layout(struct np_wire *w, void *m)
{
	struct np_unix_stream_results *r = m;

	np_wire_u32(w, "bytes_received", &r->bytes_received);
	np_wire_u32(w, "recv_calls", &r->recv_calls);
	np_wire_f32(w, "elapsed_time", &r->elapsed_time);
	np_wire_f32(w, "cpu_util", &r->cpu_util);
	np_wire_skip(w, 4); /* serv_dem */
	np_wire_i32(w, "num_cpus", &r->num_cpus);
}

void
np_stream_rr_request_layout(struct np_wire *w, void *m)
{
	struct np_unix_rr_request *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "recv_alignment", &r->recv_alignment);
	np_wire_i32(w, "recv_offset", &r->recv_offset);
	np_wire_i32(w, "send_alignment", &r->send_alignment);
	np_wire_i32(w, "send_offset", &r->send_offset);
	np_wire_i32(w, "request_size", &r->request_size);
	np_wire_i32(w, "response_size", &r->response_size);
	np_wire_i32(w, "so_rcvavoid", &r->so_rcvavoid);
	np_wire_i32(w, "so_sndavoid", &r->so_sndavoid);
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_i32(w, "test_length", &r->test_length);
	np_wire_skip(w, 36); /* path_name_len, unix_path */
}

void
np_stream_rr_response_layout(struct np_wire *w, void *m)
{
	struct np_unix_rr_response *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_skip(w, 8); /* so_rcvavoid, so_sndavoid */
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_skip(w, 4); /* test_length */
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_skip(w, 4); /* path_name_len */
	np_wire_text4(w, "unix_path", r->unix_path, sizeof(r->unix_path));
}

void
np_dg_rr_request_layout(struct np_wire *w, void *m)
{
	struct np_unix_rr_request *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "recv_alignment", &r->recv_alignment);
	np_wire_i32(w, "recv_offset", &r->recv_offset);
	np_wire_i32(w, "send_alignment", &r->send_alignment);
	np_wire_i32(w, "send_offset", &r->send_offset);
	np_wire_i32(w, "request_size", &r->request_size);
	np_wire_i32(w, "response_size", &r->response_size);
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_i32(w, "test_length", &r->test_length);
	np_wire_i32(w, "so_rcvavoid", &r->so_rcvavoid);
	np_wire_i32(w, "so_sndavoid", &r->so_sndavoid);
	np_wire_skip(w, 36); /* path_name_len, unix_path */
}

void
np_dg_rr_response_layout(struct np_wire *w, void *m)
{
	struct np_unix_rr_response *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_skip(w, 4); /* no_delay */
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_skip(w, 4); /* test_length */
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_skip(w, 12); /* so_rcvavoid, so_sndavoid, path_name_len */
	np_wire_text4(w, "unix_path", r->unix_path, sizeof(r->unix_path));
}

void
np_unix_rr_results_layout(struct np_wire *w, void *m)
{
	struct np_unix_rr_results *r = m;

	np_wire_u32(w, "bytes_received", &r->bytes_received);
	np_wire_skip(w, 4); /* recv_calls */
	np_wire_u32(w, "trans_received", &r->trans_received);
	np_wire_f32(w, "elapsed_time", &r->elapsed_time);
	np_wire_f32(w, "cpu_util", &r->cpu_util);
	np_wire_skip(w, 4); /* serv_dem */
	np_wire_i32(w, "num_cpus", &r->num_cpus);
}

void
np_dg_stream_request_layout(struct np_wire *w, void *m)
{
	struct np_dg_stream_request *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "message_size", &r->message_size);
	np_wire_i32(w, "recv_alignment", &r->recv_alignment);
	np_wire_i32(w, "recv_offset", &r->recv_offset);
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_i32(w, "test_length", &r->test_length);
	np_wire_i32(w, "so_rcvavoid", &r->so_rcvavoid);
	np_wire_i32(w, "so_sndavoid", &r->so_sndavoid);
	np_wire_skip(w, 36); /* path_name_len, unix_path */
}

void
np_dg_stream_response_layout(struct np_wire *w, void *m)
{
	struct np_dg_stream_response *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_i32(w, "test_length", &r->test_length);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_skip(w, 12); /* so_rcvavoid, so_sndavoid, path_name_len */
	np_wire_text4(w, "unix_path", r->unix_path, sizeof(r->unix_path));
}

void
np_dg_stream_results_layout(struct np_wire *w, void *m)
{
	struct np_dg_stream_results *r = m;

	np_wire_u32(w, "messages_recvd", &r->messages_recvd);
	np_wire_u32(w, "bytes_received", &r->bytes_received);
	np_wire_f32(w, "elapsed_time", &r->elapsed_time);
	np_wire_f32(w, "cpu_util", &r->cpu_util);
	np_wire_i32(w, "num_cpus", &r->num_cpus);
}

static void
station(struct np_wire *w, uint8_t address[6])
{
	np_wire_bytes(w, "address", address, 6);
	np_wire_skip(w, 2);
}

void
np_link_request_layout(struct np_wire *w, void *m)
{
	struct np_link_request *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "recv_alignment", &r->recv_alignment);
	np_wire_i32(w, "recv_offset", &r->recv_offset);
	np_wire_i32(w, "send_alignment", &r->send_alignment);
	np_wire_i32(w, "send_offset", &r->send_offset);
	np_wire_i32(w, "message_size", &r->message_size);
	np_wire_i32(w, "request_size", &r->request_size);
	np_wire_i32(w, "response_size", &r->response_size);
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_i32(w, "test_length", &r->test_length);
	np_wire_i32(w, "dirty_count", &r->dirty_count);
	np_wire_i32(w, "clean_count", &r->clean_count);
	np_wire_u32(w, "interval_burst", &r->interval_burst);
	np_wire_u32(w, "interval_usecs", &r->interval_usecs);
	np_wire_i32(w, "socket_prio", &r->socket_prio);
	station(w, r->address);
}

void
np_link_response_layout(struct np_wire *w, void *m)
{
	struct np_link_response *r = m;

	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
	np_wire_i32(w, "receive_size", &r->receive_size);
	np_wire_i32(w, "send_size", &r->send_size);
	np_wire_i32(w, "measure_cpu", &r->measure_cpu);
	np_wire_f32(w, "cpu_rate", &r->cpu_rate);
	np_wire_u32(w, "mtu", &r->mtu);
	np_wire_i32(w, "socket_prio", &r->socket_prio);
	np_wire_u64_hilo(w, "token", &r->token);
	station(w, r->address);
}

void
np_link_results_layout(struct np_wire *w, void *m)
{
	struct np_link_results *r = m;

	np_wire_u64_hilo(w, "bytes_received", &r->bytes_received);
	np_wire_u64_hilo(w, "frames_received", &r->frames_received);
	np_wire_u64_hilo(w, "bytes_sent", &r->bytes_sent);
	np_wire_u64_hilo(w, "frames_sent", &r->frames_sent);
	np_wire_u64_hilo(w, "transactions", &r->transactions);
	np_wire_f64(w, "elapsed_time", &r->elapsed_time);
	np_wire_f32(w, "cpu_util", &r->cpu_util);
	np_wire_i32(w, "cpu_method", &r->cpu_method);
	np_wire_i32(w, "num_cpus", &r->num_cpus);
	np_wire_i32(w, "recv_buf_size", &r->recv_buf_size);
	np_wire_i32(w, "send_buf_size", &r->send_buf_size);
}

void
np_calibrate_response_layout(struct np_wire *w, void *m)
{
	struct np_calibrate_response *r = m;

	np_wire_f32(w, "rate", &r->rate);
	np_wire_i32(w, "num_cpus", &r->num_cpus);
}

void
np_text_layout(struct np_wire *w, void *m)
{
	struct np_text *t = m;

	np_wire_text(w, "text", t->text, sizeof(t->text));
}

void
np_why_layout(struct np_wire *w, void *m)
{
	struct np_why *y = m;

	np_wire_u32(w, "magic", &y->magic);
	np_wire_text(w, "text", y->text, sizeof(y->text));
}

/*
 * Behind all fields of OMNI, and of what real programs may have left there from other messages: a
 * long passphrase alone reaches so far, and two words of it would have to be these.
 */
enum { ECHO_AT = 600 };
#define ECHO_MAGIC 0x504c4543U /* "PLEC" */
#define ECHO_ASKS 0x81f0e05dU
#define ECHO_GIVES 0x81f0e05eU

static void
echo_layout(struct np_wire *w, uint32_t words[4])
{
	static const char *const names[] = { "echo_magic", "echo_kind", "echo_token_hi",
					     "echo_token_lo" };

	for (size_t i = 0; i < 4; i++) {
		np_wire_u32(w, names[i], &words[i]);
	}
}

void
np_echo_put(uint8_t frame[NP_FRAME_SIZE], const struct np_echo *echo)
{
	uint32_t words[4] = { ECHO_MAGIC, echo->asks ? ECHO_ASKS : ECHO_GIVES,
			      (uint32_t)(echo->token >> 32), (uint32_t)echo->token };
	struct np_wire w;

	if (echo->asks || echo->token != 0) {
		np_wire_write_to(&w, frame + ECHO_AT, NP_FRAME_SIZE - ECHO_AT);
		echo_layout(&w, words);
	}
}

void
np_echo_get(const uint8_t frame[NP_FRAME_SIZE], struct np_echo *echo)
{
	uint32_t words[4];
	struct np_wire w;

	np_wire_read_from(&w, frame + ECHO_AT, NP_FRAME_SIZE - ECHO_AT);
	echo_layout(&w, words);
	*echo = (struct np_echo){ .asks = false };
	if (words[0] == ECHO_MAGIC) {
		echo->asks = words[1] == ECHO_ASKS;
		echo->token = words[1] == ECHO_GIVES ? (uint64_t)words[2] << 32 | words[3] : 0;
	}
}

void
np_echo_datagram(uint64_t token, uint8_t bytes[NP_ECHO_SIZE])
{
	uint32_t words[4] = { ECHO_MAGIC, ECHO_GIVES, (uint32_t)(token >> 32), (uint32_t)token };
	struct np_wire w;

	np_wire_write_to(&w, bytes, NP_ECHO_SIZE);
	echo_layout(&w, words);
}

void
np_frame_put(uint8_t frame[NP_FRAME_SIZE], const struct np_head *head, np_layout *layout,
	     const void *m)
{
	struct np_head h = *head;
	struct np_wire w;

	np_wire_write_to(&w, frame, NP_FRAME_SIZE);
	head_layout(&w, &h);
	if (layout != NULL) {
		/* A layout is for both directions; a wire that writes stores nothing to m. */
		layout(&w, (void *)m);
	}
	np_wire_skip(&w, np_wire_left(&w));
}

struct np_head
np_frame_head(const uint8_t frame[NP_FRAME_SIZE])
{
	struct np_head h;
	struct np_wire w;

	np_wire_read_from(&w, frame, NP_FRAME_SIZE);
	head_layout(&w, &h);
	return h;
}

int
np_frame_get(const uint8_t frame[NP_FRAME_SIZE], np_layout *layout, void *m, struct np_err *err)
{
	struct np_head h;
	struct np_wire w;

	np_wire_read_from(&w, frame, NP_FRAME_SIZE);
	head_layout(&w, &h);
	layout(&w, m);
	return np_wire_check(&w, err);
}

bool
np_frame_is_text(const uint8_t *bytes, size_t n)
{
	size_t heads = n < 8 ? n : 8;

	for (size_t i = 0; i < heads; i++) {
		bool printable = bytes[i] >= ' ' && bytes[i] <= '~';

		if (!printable && bytes[i] != '\t' && bytes[i] != '\r' && bytes[i] != '\n') {
			return false;
		}
	}
	/* The first byte or two of a netperf answer may look like letters (0x62 is 'b'). */
	return n >= 4;
}

void
np_ip_to_words(uint32_t ipfamily, const uint8_t *ip, uint32_t words[4])
{
	memset(words, 0, 4 * sizeof(words[0]));
	if (ipfamily == NP_WF_INET) {
		words[0] =
		    (uint32_t)ip[0] << 24 | (uint32_t)ip[1] << 16 | (uint32_t)ip[2] << 8 | ip[3];
	} else if (ipfamily == NP_WF_INET6) {
		memcpy(words, ip, 16);
	}
}

void
np_words_to_ip(uint32_t ipfamily, const uint32_t words[4], uint8_t *ip)
{
	if (ipfamily == NP_WF_INET) {
		ip[0] = (uint8_t)(words[0] >> 24);
		ip[1] = (uint8_t)(words[0] >> 16);
		ip[2] = (uint8_t)(words[0] >> 8);
		ip[3] = (uint8_t)words[0];
	} else if (ipfamily == NP_WF_INET6) {
		memcpy(ip, words, 16);
	}
}
