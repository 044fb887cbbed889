#include "base/uuid.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

/* From the start of the Gregorian calendar, 15 October 1582, to 1970, in units of 100 ns. */
#define GREGORIAN UINT64_C(0x01b21dd213814000)

void
np_uuid_make(char out[NP_UUID_SIZE])
{
	uint64_t time = GREGORIAN + np_clock(CLOCK_REALTIME) / 100, bits;

	/* Without random bits of the kernel, spread what differs between processes and calls. */
	if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != (ssize_t)sizeof(bits)) {
		bits = (np_now() ^ ((uint64_t)getpid() << 32)) * UINT64_C(0x9e3779b97f4a7c15);
	}
	snprintf(out, NP_UUID_SIZE, "%08x-%04x-1%03x-%04x-%012llx", (unsigned)(time & 0xffffffff),
		 (unsigned)(time >> 32 & 0xffff), (unsigned)(time >> 48 & 0xfff),
		 (unsigned)(0x8000 | (bits >> 48 & 0x3fff)),
		 (unsigned long long)((bits & 0xffffffffffff) | UINT64_C(1) << 40));
}
