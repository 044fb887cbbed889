/*
 * Plumbline's extension of the control protocol (doc/protocol.md, plan.def). A client that needs it
 * sends HELLO; it and WELCOME are netperf frames, as a stock daemon answers NP_E_UNKNOWN_REQUEST.
 * Then both may send our messages (tagged.h): PLAN for a test, EVIDENCE after it.
 */
#ifndef NP_WIRE_PLAN_H
#define NP_WIRE_PLAN_H

#include <stdint.h>

#include "base/bag.h"
#include "base/cpulist.h"
#include "base/err.h"
#include "wire/msg.h"
#include "wire/tagged.h"
#include "wire/token.h"

enum np_ext_code {
	NP_EXT_HELLO = 0x504c0010,   /* what the client wants of the daemon in the coming tests */
	NP_EXT_WELCOME = 0x504c0011, /* which of these the daemon will do */
	/* Types of messages of ours, after those of PLAN, GRANT and RESULT. */
	NP_EXT_ENGINES = 0x504c0033,  /* a PLAN: which engines could run this test, and how? */
	NP_EXT_EVIDENCE = 0x504c0034, /* send what you know about the last test, or the host */
	NP_EXT_BAG = 0x504c0035,      /* the answer to either */
	NP_EXT_ERROR = 0x504c0036     /* the answer to anything that fails */
};

enum { NP_EXT_VERSION = 1 };

/* Bits: what one end may ask the other to do. */
enum {
	NP_CAP_TEST = 1 << 0,     /* figures of the test: TCP_INFO sampled, counters, threads */
	NP_CAP_HOST = 1 << 1,     /* facts of the host, for --preflight and JSON */
	NP_CAP_WIRE = 1 << 2,     /* a capture of the test's own flow */
	NP_CAP_SEQUENCE = 1 << 3, /* datagrams of streams carry sequence numbers and times */
	NP_CAP_LINK = 1 << 4,     /* tests of the link layer */
	NP_CAP_PLAN = 1 << 5,     /* tests that PLAN asks for */
	NP_CAP_LLC = 1 << 8,      /* tests of the link layer with connections */
	/* Those that make an end collect facts during a test and send them after it. */
	NP_CAPS_EVIDENCE = NP_CAP_TEST | NP_CAP_HOST | NP_CAP_WIRE | NP_CAP_SEQUENCE
};

/* What an EVIDENCE message asks about. */
enum np_ext_about { NP_ABOUT_TEST = 1, NP_ABOUT_HOST = 2 };

enum {
	NP_FLOWS_MAX = 10000,     /* data connections of a test */
	NP_BATCH_MAX = 1024,      /* messages of a call */
	NP_THREADS_MAX = 256,     /* workers of one end */
	NP_WARM_UP_MAX = 3600000, /* milliseconds */
	NP_RAMP_MAX = 1000000,    /* connections that begin a second */
	NP_GRANT_KEY = 32,        /* bytes of a key */
	NP_EXT_DEVICE = 16,       /* bytes of an interface's name */
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

/* HELLO is also WELCOME, in frames of netperf's. ENGINES has the fields of a PLAN. */
extern const struct np_tagged np_tagged_hello, np_tagged_plan, np_tagged_engines, np_tagged_grant,
    np_tagged_result, np_tagged_evidence, np_tagged_error;

/* Most bytes of fields in a message of this type to a daemon or client; 0: it gets none. */
size_t np_request_most(uint32_t type);
size_t np_answer_most(uint32_t type);

/* ---- Greetings and bags (ext.c) ---- */

/* Write a frame with that code (HELLO or WELCOME); read either. NP_EPEER: no valid greeting. */
void np_hello_put(uint8_t frame[NP_FRAME_SIZE], uint32_t code, const struct np_hello_message *m);
int
np_hello_get(const uint8_t frame[NP_FRAME_SIZE], struct np_hello_message *m, struct np_err *err);

/*
 * A bag travels as a message of ours with a field for each value: its kind is the tag; its bytes
 * are the name's length, the name, padded to 4, and the value. When read, values that can't be used
 * (kind, name) are skipped; a message that is cut off is NP_EPEER. The encoded one is to be freed.
 */
enum { NP_EXT_BYTES = 512 << 10 }; /* most bytes of a bag's fields */
int np_bag_encode(const struct np_bag *b, uint8_t **message, struct np_err *err);
int np_bag_decode(const uint8_t *message, struct np_bag *into, struct np_err *err);

#endif
