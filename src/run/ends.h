/*
 * The two ends of a control connection as one of them sees them, for the proof of a key
 * (wire/auth.h).
 */
#ifndef NP_RUN_ENDS_H
#define NP_RUN_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/auth.h"

/* The ends of a connected socket. Addresses that are not IP are all equal to each other. */
void np_ends_of(int fd, bool is_client, uint8_t ends[NP_AUTH_ENDS]);

#endif
