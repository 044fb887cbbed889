/*
 * The messages of netperf 2.7's control protocol (messages.def, doc/protocol.md): a struct and a
 * layout function each, which reads and writes. Values are in this machine's byte order, texts end
 * with NUL; fields that real programs leave unfilled are written as zero and skipped when read.
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
	NP_HEAD_SIZE = 8,    /* bytes of the two words each begins with */
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
	NP_SCTP_STREAM = 500, /* 500 to 530: clients with netperf's own tests over SCTP */
	NP_SCTP_RR_RESULTS = 502,
	NP_SCTP_STREAM_MANY = 510,
	NP_SCTP_RR = 520,
	NP_SCTP_RR_MANY = 530,
	NP_SYSINFO = 600,
	NP_SYSINFO_RESPONSE = 601,
	NP_PLAN = 0x504c0030,      /* any test between ends of ours, see wire/plan.h */
	NP_E_UNKNOWN_REQUEST = 998 /* error word of the answer to a code that is not served */
};

/* netperf's own numbers for families, socket types, directions (seen from the server). */
enum { NP_WF_UNSPEC = 0, NP_WF_INET = 4, NP_WF_INET6 = 6 };
enum { NP_WS_STREAM = 1, NP_WS_DGRAM = 2, NP_WS_DCCP = 3, NP_WS_SEQPACKET = 4 /* in PLAN alone */ };
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

/* First two words of every message. In a message of ours the second is the fields' length. */
struct np_head {
	uint32_t code;
	int32_t word; /* request: CPU to bind the server to, -1 none; answer: 0 or error */
};

enum { NP_UNIX_PATH_MAX = 32 }; /* bytes of a socket's path in a message, its NUL included */

/* The types of numbers, as rows have them. */
#define NP_C_I32 int32_t
#define NP_C_I64 int64_t
#define NP_C_U32 uint32_t
#define NP_C_U64 uint64_t
#define NP_C_F32 float
#define NP_C_F64 double

/* A struct for each message, as np_omni_request, and for each order of fields. */
#define NP_MESSAGE(layout, type, title) struct np_##type {
#define NP_ORDER(layout, type, title) struct np_##layout##_order {
#define NP_NUMBER(type, name, note) NP_C_##type name;
#define NP_TEXT(name, bytes, note) char name[bytes];
#define NP_TEXT4(name, bytes, note) char name[bytes];
#define NP_WORDS(name, count, note) uint32_t name[count];
#define NP_END                                                                                     \
	}                                                                                          \
	;
#include "wire/messages.def"

/* Begins struct np_why: after an error's head, why a request was refused; netperf ignores it. */
#define NP_WHY_MAGIC 0x504c5721U /* "PLW!" */

/*
 * What our programs say in unused bytes of OMNI. A client that will receive datagrams offers to
 * echo a token; a daemon that names one sends no data before the echo: the same bytes, from the
 * client's data socket. Or a client asks for ids in requests and responses (bench/ids.h); in a
 * stream of a connection, for resets to be no failure (np_plan_may_reset()).
 */
enum np_spare { NP_SPARE_NONE, NP_ECHO_ASKED, NP_ECHO_NAMED, NP_IDS_ASKED, NP_IDS_GRANTED };

/* Offsets in OMNI messages: of these, and of what asks for or gives another token (token.h). */
enum { NP_ECHO_SIZE = 16, NP_SPARE_AT = 600, NP_TOKEN_AT = 616 };

/* Write, or read, one of them with a token; 0: none. */
void np_spare_put(uint8_t bytes[NP_ECHO_SIZE], enum np_spare what, uint64_t token);
enum np_spare np_spare_get(const uint8_t bytes[NP_ECHO_SIZE], uint64_t *token);

/* Reads *m, the struct a layout is named after, from w or writes it; w keeps the first misfit. */
typedef void np_layout(struct np_wire *w, void *m);

#define NP_MESSAGE(layout, type, title) np_layout np_##layout##_layout;
#define NP_ORDER(layout, type, title) np_layout np_##layout##_layout;
#include "wire/messages.def"

/* Write a whole message, zeros elsewhere. layout NULL: the head alone. Texts are cut for a NUL. */
void np_frame_put(uint8_t frame[NP_FRAME_SIZE], const struct np_head *head, np_layout *layout,
		  const void *m);

/* The two words every message starts with. */
struct np_head np_frame_head(const uint8_t message[NP_HEAD_SIZE]);

/* Read all of *m; texts get a NUL, the caller checks ranges. NP_EPEER names a text without NUL. */
int
np_frame_get(const uint8_t frame[NP_FRAME_SIZE], np_layout *layout, void *m, struct np_err *err);

/* Do the bytes begin a text, such as another service's banner? Fewer than four bytes: false. */
bool np_frame_is_text(const uint8_t *bytes, size_t n);

/*
 * Addresses of OMNI requests: 4 (NP_WF_INET) or 16 bytes in network order to the four words and
 * back. As in netperf, each word of an IPv6 address is in the sender's own byte order, so that two
 * machines of different byte order can't use it. Any other family: zero words, no bytes.
 */
void np_ip_to_words(uint32_t ipfamily, const uint8_t *ip, uint32_t words[4]);
void np_words_to_ip(uint32_t ipfamily, const uint32_t words[4], uint8_t *ip);

#endif
