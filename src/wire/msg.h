/*
 * The messages of netperf 2.7's control protocol, each as one struct and one layout function that
 * both reads and writes it. Values are in host form: integers as they mean, texts ended by NUL.
 * Facts and offsets: doc/protocol.md. Fields that real programs leave unfilled are not in the
 * structs: they are written as zero and skipped when read.
 */
#ifndef NP_WIRE_MSG_H
#define NP_WIRE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct np_wire;

enum {
	NP_FRAME_SIZE = 656, /* bytes of every message, both directions, 2.6.0 and later */
	NP_PORT = 12865      /* the daemon's well-known port */
};

/* Codes in the first word. A response is code + 1, results are code + 2. */
enum np_code {
	NP_DEBUG_ON = 1,
	NP_DEBUG_OFF = 2,
	NP_DEBUG_OK = 3,
	NP_CPU_CALIBRATE = 5, /* request and response */
	NP_PASSPHRASE = 6,
	NP_TCP_STREAM = 10, /* what TCP_SENDFILE sends */
	NP_TCP_RR = 13,     /* 13 to 34 and 94: what clients before 2.5 send */
	NP_UDP_STREAM = 16,
	NP_UDP_RR = 19,
	NP_TCP_CRR = 34,
	NP_STREAM_STREAM = 37, /* 37 to 46: the UNIX domain */
	NP_STREAM_RR = 40,
	NP_DG_STREAM = 43,
	NP_DG_RR = 46,
	NP_TCP_MAERTS = 94,
	NP_OMNI = 97,
	NP_TCP_CC = 300,
	NP_SYSINFO = 600,
	NP_SYSINFO_RESPONSE = 601,
	NP_LINK_STREAM = 0x504c0020, /* frames of the link layer: ours, see doc/protocol.md */
	NP_LINK_RR = 0x504c0023,
	NP_E_UNKNOWN_REQUEST = 998 /* error word of the answer to a code that is not served */
};

/* netperf's own numbers for families, socket types, directions (seen from the server). */
enum { NP_WF_UNSPEC = 0, NP_WF_INET = 4, NP_WF_INET6 = 6 };
enum { NP_WS_STREAM = 1, NP_WS_DGRAM = 2 };
enum { NP_WD_NONE = 0, NP_WD_TRANSMIT = 2, NP_WD_RECEIVE = 4, NP_WD_BOTH = 6 };

/* Bits of np_omni_request.flags. */
#define NP_WB_NODELAY 0x1U
#define NP_WB_CONNECT 0x4U /* one connection a transaction */
#define NP_WB_CPU 0x8U     /* measure CPU utilisation */
#define NP_WB_ROUTE 0x20U  /* absent: SO_DONTROUTE; present: report congestion control too */
#define NP_WB_FASTOPEN 0x800U
#define NP_WB_PKTINFO 0x2000U
#define NP_WB_CONNECTED 0x4000U
#define NP_WB_DEFER_ACCEPT 0x8000U
#define NP_WB_MTU_DISCOVER 0x10000U
#define NP_WB_KEEPALIVE 0x80000000U

/* First two words of every message. */
struct np_head {
	uint32_t code;
	int32_t word; /* request: CPU to bind the server to, -1 none; answer: 0 or error */
};

/* OMNI (97), request. Sizes in bytes; -1 means "the server's choice" or "leave alone". */
struct np_omni_request {
	int32_t send_buf_size, send_size;
	uint32_t send_alignment, send_offset, send_width;
	int32_t request_size;
	int32_t recv_buf_size, receive_size;
	uint32_t recv_alignment, recv_offset, recv_width;
	int32_t response_size;
	uint32_t flags; /* NP_WB_* */
	float cpu_rate;
	int32_t test_length; /* > 0 seconds, < 0 count, 0 no limit */
	int32_t so_rcvavoid, so_sndavoid;
	int32_t send_dirty_count, recv_dirty_count, recv_clean_count;
	uint32_t data_port, ipfamily;
	int32_t socket_type;
	uint32_t protocol, direction, netperf_port;
	uint32_t interval_burst, interval_usecs;
	uint32_t netperf_ip[4], netserver_ip[4]; /* np_words_to_ip() */
	int32_t socket_prio, socket_tos;
	char cong_control[16];
	char fill_file[32];
};

/* OMNI (98), response: what is in force on the server. */
struct np_omni_response {
	int32_t recv_buf_size, receive_size;
	uint32_t recv_width;
	int32_t send_buf_size, send_size;
	uint32_t send_width, flags; /* only bits 0x1 and 0x8 mean anything */
	float cpu_rate;
	int32_t so_rcvavoid, so_sndavoid;
	uint32_t data_port, interval_burst, interval_usecs;
	int32_t socket_prio, socket_tos;
};

/* OMNI, results. */
struct np_omni_results {
	uint64_t bytes_received; /* two words on the wire, upper half first */
	uint32_t recv_calls;
	int32_t recv_buf_size;
	uint64_t bytes_sent;
	uint32_t send_calls;
	int32_t send_buf_size;
	uint32_t trans_received;
	float elapsed_time; /* seconds */
	float cpu_util, cpu_percent_user, cpu_percent_system, cpu_percent_iowait;
	float cpu_percent_irq, cpu_percent_swintr;
	int32_t cpu_method, num_cpus, peak_cpu_id;
	float peak_cpu_util;
	int32_t transport_retrans; /* -1 not known */
	char cong_control[16];
};

/*
 * TCP_STREAM (10), as TCP_SENDFILE uses it. TCP_MAERTS (94) has the same words in the same places,
 * with sent for received: its receive_size is that of the server's sends, and so on.
 */
struct np_stream_request {
	int32_t send_buf_size, recv_buf_size, receive_size, recv_alignment, recv_offset;
	int32_t no_delay, measure_cpu;
	float cpu_rate;
	int32_t test_length; /* seconds, or the positive byte count: the server can't tell */
	int32_t so_rcvavoid, so_sndavoid, dirty_count, clean_count, port, ipfamily;
};

struct np_stream_response {
	int32_t recv_buf_size, receive_size, no_delay, measure_cpu, send_buf_size;
	int32_t data_port_number;
	float cpu_rate;
	int32_t so_rcvavoid, so_sndavoid;
};

struct np_stream_results {
	double bytes_received;
	uint32_t recv_calls;
	float elapsed_time, cpu_util;
	int32_t cpu_method, num_cpus;
};

/* TCP_CC (300); TCP_RR, TCP_CRR and UDP_RR of old clients have the same layout. */
struct np_rr_request {
	int32_t recv_buf_size, send_buf_size;
	int32_t recv_alignment, recv_offset, send_alignment, send_offset;
	int32_t request_size, response_size, no_delay, measure_cpu;
	float cpu_rate;
	int32_t test_length; /* seconds, or minus the number of transactions */
	int32_t so_rcvavoid, so_sndavoid, port, ipfamily;
};

struct np_rr_response {
	int32_t recv_buf_size, no_delay, measure_cpu, test_length, send_buf_size;
	int32_t data_port_number;
	float cpu_rate;
	int32_t so_rcvavoid, so_sndavoid;
};

struct np_rr_results {
	uint32_t bytes_received, trans_received;
	float elapsed_time, cpu_util;
	int32_t cpu_method, num_cpus;
};

/* UDP_STREAM (16) of old clients. */
struct np_udp_request {
	int32_t recv_buf_size, message_size;
	int32_t recv_connected; /* absent before 2.4.3: np_udp_242_request_layout */
	int32_t recv_alignment, recv_offset, checksum_off, measure_cpu;
	float cpu_rate;
	int32_t test_length; /* seconds */
	int32_t so_rcvavoid, so_sndavoid, port, ipfamily;
};

struct np_udp_response {
	int32_t recv_buf_size, send_buf_size, measure_cpu, test_length, data_port_number;
	float cpu_rate;
	int32_t so_rcvavoid, so_sndavoid;
};

struct np_udp_results {
	uint32_t messages_recvd, bytes_received;
	float elapsed_time;
	float cpu_util; /* -1 not measured */
	int32_t cpu_method, num_cpus;
};

enum { NP_UNIX_PATH_MAX = 32 }; /* bytes of a socket's path in a message, its NUL included */

/* STREAM_STREAM (37). Sizes of socket buffers are obeyed even when they are 0. */
struct np_unix_stream_request {
	int32_t recv_buf_size, send_buf_size, receive_size, recv_alignment, recv_offset;
	int32_t so_rcvavoid, so_sndavoid, measure_cpu;
	float cpu_rate;
	int32_t test_length; /* seconds, or the positive byte count */
	int32_t dirty_count, clean_count;
};

struct np_unix_stream_response {
	int32_t recv_buf_size, send_buf_size, receive_size, measure_cpu;
	float cpu_rate;
	char unix_path[NP_UNIX_PATH_MAX];
};

struct np_unix_stream_results {
	uint32_t bytes_received; /* the lower 32 bits */
	uint32_t recv_calls;
	float elapsed_time, cpu_util;
	int32_t num_cpus; /* real daemons don't fill it */
};

/* STREAM_RR (40) and, in another order of words, DG_RR (46). */
struct np_unix_rr_request {
	int32_t recv_buf_size, send_buf_size;
	int32_t recv_alignment, recv_offset, send_alignment, send_offset;
	int32_t request_size, response_size, so_rcvavoid, so_sndavoid, measure_cpu;
	float cpu_rate;
	int32_t test_length; /* seconds, or minus the number of transactions */
};

struct np_unix_rr_response {
	int32_t recv_buf_size, send_buf_size, measure_cpu;
	float cpu_rate;
	char unix_path[NP_UNIX_PATH_MAX];
};

struct np_unix_rr_results {
	uint32_t bytes_received, trans_received;
	float elapsed_time, cpu_util;
	int32_t num_cpus; /* real daemons don't fill it */
};

/* DG_STREAM (43). */
struct np_dg_stream_request {
	int32_t recv_buf_size, message_size, recv_alignment, recv_offset, measure_cpu;
	float cpu_rate;
	int32_t test_length, so_rcvavoid, so_sndavoid;
};

struct np_dg_stream_response {
	int32_t recv_buf_size, send_buf_size, measure_cpu, test_length;
	float cpu_rate;
	char unix_path[NP_UNIX_PATH_MAX];
};

struct np_dg_stream_results {
	uint32_t messages_recvd, bytes_received; /* the lower 32 bits */
	float elapsed_time;
	float cpu_util;   /* -1 not measured */
	int32_t num_cpus; /* real daemons don't fill it */
};

/*
 * NP_LINK_STREAM and NP_LINK_RR: tests of the link layer, which netperf has not on Linux. The
 * addresses are of the sender's interface.
 */
struct np_link_request {
	int32_t recv_buf_size, send_buf_size;
	int32_t recv_alignment, recv_offset, send_alignment, send_offset;
	int32_t message_size;                /* of a stream; else 0 */
	int32_t request_size, response_size; /* of requests and responses; else 0 */
	int32_t measure_cpu, test_length;    /* > 0 seconds, < 0 count, 0 no limit */
	int32_t dirty_count, clean_count;
	uint32_t interval_burst, interval_usecs;
	int32_t socket_prio;
	uint8_t address[6];
};

struct np_link_response {
	int32_t recv_buf_size, send_buf_size, receive_size, send_size;
	int32_t measure_cpu;
	float cpu_rate;
	uint32_t mtu;
	int32_t socket_prio;
	uint64_t token; /* in the frames of this test */
	uint8_t address[6];
};

struct np_link_results {
	uint64_t bytes_received, frames_received, bytes_sent, frames_sent, transactions;
	double elapsed_time; /* seconds */
	float cpu_util;
	int32_t cpu_method, num_cpus, recv_buf_size, send_buf_size;
};

/* CPU_CALIBRATE (5), answer. */
struct np_calibrate_response {
	float rate; /* Linux: clock ticks a second; 0.0 without a calibration */
	int32_t num_cpus;
};

/* Text of PASSPHRASE requests (6) and SYSINFO answers (601). */
struct np_text {
	char text[NP_FRAME_SIZE - 8];
};

/*
 * Why a request was refused, in words, behind the head of an answer whose word is an error. Clients
 * of netperf look no further than the head; ours prints the text when the magic is there.
 */
#define NP_WHY_MAGIC 0x504c5721U /* "PLW!" */
struct np_why {
	uint32_t magic;
	char text[200];
};

/*
 * In bytes of OMNI messages that netperf leaves as they are: a client that is to receive datagrams
 * says that it will echo a token (asks), and the daemon names one (token not 0), to which it sends
 * nothing before the echo, a datagram of NP_ECHO_SIZE bytes, has come from the client's data
 * socket.
 */
struct np_echo {
	bool asks;      /* request */
	uint64_t token; /* response; 0: none */
};
enum { NP_ECHO_SIZE = 16 };

/* Put it into a message that is written already; frames without it are left as they are. */
void np_echo_put(uint8_t frame[NP_FRAME_SIZE], const struct np_echo *echo);
void np_echo_get(const uint8_t frame[NP_FRAME_SIZE], struct np_echo *echo);

/* The datagram that echoes the token. */
void np_echo_datagram(uint64_t token, uint8_t bytes[NP_ECHO_SIZE]);

/*
 * A layout reads its message out of, or writes it into, what the wire stands on; m points to the
 * struct it is named after. The first misfit sticks in the wire.
 */
typedef void np_layout(struct np_wire *w, void *m);

np_layout np_omni_request_layout, np_omni_response_layout, np_omni_results_layout;
np_layout np_stream_request_layout, np_stream_response_layout, np_stream_results_layout;
np_layout np_rr_request_layout, np_rr_response_layout, np_rr_results_layout;
np_layout np_udp_request_layout, np_udp_242_request_layout, np_udp_response_layout;
np_layout np_udp_results_layout;
np_layout np_unix_stream_request_layout, np_unix_stream_response_layout;
np_layout np_unix_stream_results_layout, np_unix_rr_results_layout;
np_layout np_stream_rr_request_layout, np_stream_rr_response_layout;
np_layout np_dg_rr_request_layout, np_dg_rr_response_layout;
np_layout np_dg_stream_request_layout, np_dg_stream_response_layout, np_dg_stream_results_layout;
np_layout np_link_request_layout, np_link_response_layout, np_link_results_layout;
np_layout np_calibrate_response_layout, np_text_layout, np_why_layout;

/*
 * Write one whole message; what the layout does not fill is zero. layout NULL: the head alone. A
 * text that is not ended is cut by its last character.
 */
void np_frame_put(uint8_t frame[NP_FRAME_SIZE], const struct np_head *head, np_layout *layout,
		  const void *m);

/* The two words every message starts with. */
struct np_head np_frame_head(const uint8_t frame[NP_FRAME_SIZE]);

/*
 * Read a message's body into *m. Texts always come out ended; NP_EPEER with the field's name in
 * err where the sender's was not (all of *m is read even so). Ranges are the caller's to check.
 */
int
np_frame_get(const uint8_t frame[NP_FRAME_SIZE], np_layout *layout, void *m, struct np_err *err);

/*
 * Do these first bytes of a would-be message read as text, as another service's banner or a web
 * browser's request does? No netperf message looks like that. False for fewer than four bytes.
 */
bool np_frame_is_text(const uint8_t *bytes, size_t n);

/*
 * Addresses of OMNI requests: 4 (NP_WF_INET) or 16 bytes in network order to the four words and
 * back. IPv6 goes in groups of 4 in the sender's own byte order, as netperf sends it, so that two
 * machines of different byte order can't use it. Any other family: zero words, no bytes.
 */
void np_ip_to_words(uint32_t ipfamily, const uint8_t *ip, uint32_t words[4]);
void np_words_to_ip(uint32_t ipfamily, const uint32_t words[4], uint8_t *ip);

#endif
