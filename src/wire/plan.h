/*
 * PLAN, GRANT, RESULT and the like (plan.def): a test as two ends of Plumbline agree on it, behind
 * a greeting (ext.h).
 */
#ifndef NP_WIRE_PLAN_H
#define NP_WIRE_PLAN_H

#include <stdint.h>

#include "base/cpulist.h"
#include "wire/ext.h"
#include "wire/msg.h"
#include "wire/tagged.h"

enum {
	NP_FLOWS_MAX = 10000,   /* data connections of a test */
	NP_BATCH_MAX = 1024,    /* messages of a call */
	NP_THREADS_MAX = 256,   /* workers of one end */
	NP_WARM_UP_MAX = 60000, /* milliseconds */
	NP_RAMP_MAX = 1000000,  /* connections that begin a second */
	NP_GRANT_PORTS = 64,    /* ports that a GRANT can name */
	NP_GRANT_KEY = 32,      /* bytes of a key */
	NP_PLAN_ALSO = 16 /* bytes of one end's further addresses: four of IPv4, one of IPv6 */
};

/* Bits of a PLAN's flags; of a GRANT's the first three and the last. */
#define NP_WP_NODELAY 0x1U
#define NP_WP_CPU 0x2U /* measure CPU utilisation */
#define NP_WP_IDS 0x4U /* requests and responses as datagrams have ids */
#define NP_WP_KEEPALIVE 0x8U
#define NP_WP_NO_ROUTE 0x10U
#define NP_WP_CONNECTED 0x20U /* connect() the datagram socket to the first sender */
#define NP_WP_NO_FRAGMENT 0x40U
#define NP_WP_DEFER_ACCEPT 0x80U
#define NP_WP_FAST_OPEN 0x100U
#define NP_WP_PACKET_INFO 0x200U /* answer from the address that the datagram came to */
#define NP_WP_COPY_AVOIDANCE 0x400U
#define NP_WP_ECHO 0x800U    /* the client echoes a token before datagrams are sent to it */
#define NP_WP_SPREAD 0x1000U /* only data connections that say so are kept */
/* Two bits: how far the number of the cipher suite of TLS lies above NP_WP_TLS_FIRST. */
#define NP_WP_TLS_SUITE 0x30000U
#define NP_WP_TLS_SHIFT 16
#define NP_WP_TLS_FIRST 0x1301U

/* struct np_plan_message, np_grant_message and so on. */
#define NP_T_MESSAGE(message, code, title) struct np_##message##_message {
#define NP_T_U32(message, tag, name, least, most, absent, note) uint32_t name;
#define NP_T_I32(message, tag, name, least, most, absent, note) int32_t name;
#define NP_T_I64(message, tag, name, least, most, absent, note) int64_t name;
#define NP_T_U64(message, tag, name, note) uint64_t name;
#define NP_T_F64(message, tag, name, least, most, absent, note) double name;
#define NP_T_TEXT(message, tag, name, room, note) char name[room];
#define NP_T_BYTES(message, tag, name, room, note)                                                 \
	struct {                                                                                   \
		uint32_t count;                                                                    \
		uint8_t at[room];                                                                  \
	}(name);
#define NP_T_LIST(message, tag, name, room, note)                                                  \
	struct {                                                                                   \
		uint32_t count, at[room];                                                          \
	}(name);
#define NP_T_END(message)                                                                          \
	}                                                                                          \
	;
#include "wire/plan.def"

/* As many bytes as each message has with all of its fields: struct np_plan_whole and so on. */
#define NP_T_MESSAGE(message, code, title)                                                         \
	struct np_##message##_whole {                                                              \
		uint8_t head[NP_TAGGED_AT];
#define NP_T_U32(message, tag, name, ...) uint8_t name[12];
#define NP_T_I32(message, tag, name, ...) uint8_t name[12];
#define NP_T_I64(message, tag, name, ...) uint8_t name[16];
#define NP_T_U64(message, tag, name, ...) uint8_t name[16];
#define NP_T_F64(message, tag, name, ...) uint8_t name[16];
#define NP_T_TEXT(message, tag, name, room, note) uint8_t name[8 + ((room) + 2) / 4 * 4];
#define NP_T_BYTES(message, tag, name, room, note) uint8_t name[8 + ((room) + 3) / 4 * 4];
#define NP_T_LIST(message, tag, name, room, note) uint8_t name[8 + 4 * (room)];
#define NP_T_END(message)                                                                          \
	}                                                                                          \
	;
#include "wire/plan.def"

/* Room for any of them, and for a frame of netperf's. */
enum { NP_MESSAGE_MAX = sizeof(struct np_plan_whole) };
_Static_assert(sizeof(struct np_grant_whole) <= NP_MESSAGE_MAX &&
		   sizeof(struct np_result_whole) <= NP_MESSAGE_MAX &&
		   sizeof(struct np_error_whole) <= NP_MESSAGE_MAX &&
		   sizeof(struct np_plan_whole) >= NP_FRAME_SIZE,
	       "PLAN is the largest message");

extern const struct np_tagged np_tagged_plan, np_tagged_grant, np_tagged_result, np_tagged_evidence,
    np_tagged_error;

/* ENGINES has the fields of a PLAN. */
extern const struct np_tagged np_tagged_engines;

/* Bytes of fields that a daemon, or a client, may be sent in a message of that type; 0: none such.
 */
size_t np_request_most(uint32_t type);
size_t np_answer_most(uint32_t type);

#endif
