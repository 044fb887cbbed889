/*
 * The two ends of a control connection as one of them sees them, for the proof of a key
 * (wire/auth.h).
 */
#ifndef NP_RUN_ENDS_H
#define NP_RUN_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/auth.h"

/*
 * Of a connected socket. What is no IP address counts as none: two such ends agree, but not with
 * others.
 */
void np_ends_of(int fd, bool is_client, uint8_t ends[NP_AUTH_ENDS]);

#endif
