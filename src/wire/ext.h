/*
 * Plumbline's extension of the control protocol, in codes that netperf does not use: a client that
 * needs more than netperf's protocol carries says HELLO before its test, and asks for EVIDENCE
 * after it. A stock daemon answers HELLO with NP_E_UNKNOWN_REQUEST. All of it travels in frames of
 * the usual size. doc/protocol.md describes it.
 */
#ifndef NP_WIRE_EXT_H
#define NP_WIRE_EXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bag.h"
#include "base/err.h"
#include "wire/msg.h"

enum np_ext_code {
	NP_EXT_HELLO = 0x504c0010,    /* what the client would like to have of the tests to come */
	NP_EXT_WELCOME = 0x504c0011,  /* what of it the daemon does */
	NP_EXT_EVIDENCE = 0x504c0012, /* give me what you know of the last test, or of the host */
	NP_EXT_PART = 0x504c0013,     /* one frame of the answer */
	NP_EXT_ENGINES = 0x504c0014   /* a PLAN: what could each of your engines do in that test? */
};

enum { NP_EXT_VERSION = 1 };

/* What one end may want of the other: bits. */
enum {
	NP_CAP_TEST = 1 << 0,     /* figures of the test: TCP_INFO sampled, counters, threads */
	NP_CAP_HOST = 1 << 1,     /* facts of the host, for --preflight and JSON */
	NP_CAP_WIRE = 1 << 2,     /* a capture of the test's own flow */
	NP_CAP_SEQUENCE = 1 << 3, /* datagrams of streams carry sequence numbers and times */
	NP_CAP_LINK = 1 << 4,     /* tests of the link layer */
	NP_CAP_PLAN = 1 << 5,     /* tests that PLAN asks for, see wire/plan.h */
	NP_CAP_ENGINES = 1 << 6,  /* what each engine could do, which ENGINES asks for */
	NP_CAP_FRACTION = 1 << 7, /* a PLAN's length has a fraction of a second: length_less */
	NP_CAP_LLC = 1 << 8,      /* of tests of the link layer, those with connections */
	/* Of these, what is collected around a test and told after it. */
	NP_CAPS_EVIDENCE = NP_CAP_TEST | NP_CAP_HOST | NP_CAP_WIRE | NP_CAP_SEQUENCE
};

enum { NP_EXT_IDENTITY = 64, NP_EXT_DEVICE = 16 };

/*
 * HELLO and WELCOME, whose fields are tagged: each a tag, a length and that many bytes, padded
 * to 4. Unknown tags are skipped, so that later versions may have more of them.
 */
struct np_hello {
	uint32_t version;               /* the sender's */
	uint32_t caps;                  /* wanted, or granted: NP_CAP_* */
	uint32_t every_ms;              /* between two samples; 0: the receiver's choice */
	char identity[NP_EXT_IDENTITY]; /* program and version, for people */
	char device[NP_EXT_DEVICE]; /* of link-layer tests, as the receiver calls it; or empty */
};

/* Write one; read one. NP_EPEER for what is no such message. */
void np_hello_put(uint8_t frame[NP_FRAME_SIZE], uint32_t code, const struct np_hello *m);
int np_hello_get(const uint8_t frame[NP_FRAME_SIZE], struct np_hello *m, struct np_err *err);

/*
 * A bag as bytes: fields of a kind, the lengths of name and value, and these. What a receiver
 * does not know (another kind, a bad name) is skipped; what is cut is NP_EPEER.
 */
enum { NP_EXT_BYTES = 512 << 10 }; /* most of a bag */
int np_bag_encode(const struct np_bag *b, uint8_t **bytes, size_t *size, struct np_err *err);
int np_bag_decode(const uint8_t *bytes, size_t size, struct np_bag *into, struct np_err *err);

/* EVIDENCE: whose. */
enum np_ext_about { NP_ABOUT_TEST = 1, NP_ABOUT_HOST = 2 };
void np_ext_ask_put(uint8_t frame[NP_FRAME_SIZE], enum np_ext_about about);
int
np_ext_ask_get(const uint8_t frame[NP_FRAME_SIZE], enum np_ext_about *about, struct np_err *err);

/* PART: `number` counts from 0; all but the last are full. */
struct np_part {
	uint32_t total;       /* bytes of the whole */
	uint32_t number;      /* of this one */
	uint32_t size;        /* bytes in it */
	const uint8_t *bytes; /* put: what goes into it; get: within the frame */
};
enum { NP_PART_MAX = NP_FRAME_SIZE - 8 - 12 };
void np_part_put(uint8_t frame[NP_FRAME_SIZE], const struct np_part *p);
/* A part is within its bounds when NP_OK; whether it is the one that was due is for the caller to
 * see. */
int np_part_get(const uint8_t frame[NP_FRAME_SIZE], struct np_part *p, struct np_err *err);

#endif
