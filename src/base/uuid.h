/*
 * Identifiers of tests.
 */
#ifndef NP_BASE_UUID_H
#define NP_BASE_UUID_H

enum { NP_UUID_SIZE = 37 }; /* 8-4-4-4-12 digits and a NUL */

/*
 * A new identifier in lower case, of version 1 (RFC 9562, 5.1) as netperf's: the time of day, and
 * random bits, from getrandom(2), for clock sequence and node; the node's multicast bit says that
 * it is no address. Two of one instant differ by 61 random bits.
 */
void np_uuid_make(char out[NP_UUID_SIZE]);

#endif
