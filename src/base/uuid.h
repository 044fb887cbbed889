/* Identifiers of tests. */
#ifndef NP_BASE_UUID_H
#define NP_BASE_UUID_H

enum { NP_UUID_SIZE = 37 }; /* 8-4-4-4-12 digits and a NUL */

/*
 * Make a version 1 identifier, as netperf's (RFC 9562, 5.1), in lower case: time of day and 61
 * random bits. The node's multicast bit says that it is not a MAC address.
 */
void np_uuid_make(char out[NP_UUID_SIZE]);

#endif
