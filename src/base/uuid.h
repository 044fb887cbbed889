/* Identifiers of tests. */
#ifndef NP_BASE_UUID_H
#define NP_BASE_UUID_H

enum { NP_UUID_SIZE = 37 }; /* 8-4-4-4-12 digits and a NUL */

/*
 * Make a new identifier in lower case. Like netperf's it is of version 1 (RFC 9562, 5.1): the time
 * of day, then a clock sequence and a node, 61 random bits here. The node's multicast bit says that
 * it is not a MAC address.
 */
void np_uuid_make(char out[NP_UUID_SIZE]);

#endif
