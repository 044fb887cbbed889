/* Messages by which two ends of Plumbline greet each other and agree on a test: plan.def. */
#ifndef NP_WIRE_PLAN_H
#define NP_WIRE_PLAN_H

#include <stdint.h>

#include "base/cpulist.h"
#include "wire/ext.h"
#include "wire/msg.h"
#include "wire/tagged.h"
#include "wire/token.h"

enum {
	NP_FLOWS_MAX = 10000,     /* data connections of a test */
	NP_BATCH_MAX = 1024,      /* messages of a call */
	NP_THREADS_MAX = 256,     /* workers of one end */
	NP_WARM_UP_MAX = 3600000, /* milliseconds */
	NP_RAMP_MAX = 1000000,    /* connections that begin a second */
	NP_GRANT_KEY = 32,        /* bytes of a key */
	NP_PLAN_ALSO = 16 /* bytes of one end's further addresses: four of IPv4, one of IPv6 */
};

/* Bits of a PLAN's flags, as NP_WP_NODELAY; a GRANT's are some of them. */
enum {
#define NP_P_FLAG(bit, member, json, value, note) NP_WP_##bit = (value),
#define NP_E_FLAG(bit, group, member, json, value, note) NP_WP_##bit = (value),
#include "wire/plan.def"
	/* Two bits: how far the number of the cipher suite of TLS lies above NP_WP_TLS_FIRST. */
	NP_WP_TLS_SUITE = 0x30000,
	NP_WP_TLS_SHIFT = 16,
	NP_WP_TLS_FIRST = 0x1301
};

/* A struct for each message, as np_plan_message. */
#define NP_T_MESSAGE(message, code, title) struct np_##message##_message {
#define NP_T_NUMBER(type, message, tag, name, ...) NP_C_##type name;
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

/* A struct of the size of each message with all of its fields, as np_plan_whole. */
#define NP_T_MESSAGE(message, code, title)                                                         \
	struct np_##message##_whole {                                                              \
		uint8_t head[NP_TAGGED_AT];
#define NP_T_NUMBER(type, message, tag, name, ...) uint8_t name[8 + sizeof(NP_C_##type)];
#define NP_T_TEXT(message, tag, name, room, note) uint8_t name[8 + ((room) + 2) / 4 * 4];
#define NP_T_BYTES(message, tag, name, room, note) uint8_t name[8 + ((room) + 3) / 4 * 4];
#define NP_T_LIST(message, tag, name, room, note) uint8_t name[8 + 4 * (room)];
#define NP_T_END(message)                                                                          \
	}                                                                                          \
	;
#include "wire/plan.def"

/* Room for any of them, and for a frame of netperf's. */
enum { NP_MESSAGE_MAX = sizeof(struct np_grant_whole) };
_Static_assert(sizeof(struct np_plan_whole) <= NP_MESSAGE_MAX &&
		   sizeof(struct np_result_whole) <= NP_MESSAGE_MAX &&
		   sizeof(struct np_error_whole) <= NP_MESSAGE_MAX &&
		   sizeof(struct np_grant_whole) >= NP_FRAME_SIZE,
	       "GRANT is the largest message");

/* HELLO is also WELCOME, in frames of netperf's (ext.h). ENGINES has the fields of a PLAN. */
extern const struct np_tagged np_tagged_hello, np_tagged_plan, np_tagged_engines, np_tagged_grant,
    np_tagged_result, np_tagged_evidence, np_tagged_error;

/* Most bytes of fields in a message of this type to a daemon or client; 0: it gets none. */
size_t np_request_most(uint32_t type);
size_t np_answer_most(uint32_t type);

#endif
