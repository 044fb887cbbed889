/*
 * Plumbline's extension of the control protocol (doc/protocol.md). A client that needs it sends
 * HELLO; it and WELCOME are netperf frames, as a stock daemon answers NP_E_UNKNOWN_REQUEST. Then
 * both may send our messages (tagged.h): PLAN for a test (plan.h), EVIDENCE after it.
 */
#ifndef NP_WIRE_EXT_H
#define NP_WIRE_EXT_H

#include <stdint.h>

#include "base/bag.h"
#include "base/err.h"
#include "wire/msg.h"

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
	NP_CAP_PLAN = 1 << 5,     /* tests that PLAN asks for, see wire/plan.h */
	NP_CAP_LLC = 1 << 8,      /* tests of the link layer with connections */
	/* Those that make an end collect facts during a test and send them after it. */
	NP_CAPS_EVIDENCE = NP_CAP_TEST | NP_CAP_HOST | NP_CAP_WIRE | NP_CAP_SEQUENCE
};

enum { NP_EXT_DEVICE = 16 };

struct np_hello_message; /* of plan.def */

/* Write a frame with that code (HELLO or WELCOME); read either. NP_EPEER: no valid greeting. */
void np_hello_put(uint8_t frame[NP_FRAME_SIZE], uint32_t code, const struct np_hello_message *m);
int
np_hello_get(const uint8_t frame[NP_FRAME_SIZE], struct np_hello_message *m, struct np_err *err);

/*
 * A bag travels as a message of ours with a field for each value: its kind is the tag; its bytes
 * are the name's length, the name, padded to 4, and the value. Values that can't be used (kind,
 * name) are skipped; a message that is cut off is NP_EPEER. The encoded message is to be freed.
 */
enum { NP_EXT_BYTES = 512 << 10 }; /* most bytes of a bag's fields */
int np_bag_encode(const struct np_bag *b, uint8_t **message, struct np_err *err);
int np_bag_decode(const uint8_t *message, struct np_bag *into, struct np_err *err);

/* What an EVIDENCE message asks about. */
enum np_ext_about { NP_ABOUT_TEST = 1, NP_ABOUT_HOST = 2 };

#endif
