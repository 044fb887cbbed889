/* The two ends of a control connection, for the proof of a key (wire/auth.h). */
#ifndef NP_RUN_ENDS_H
#define NP_RUN_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/auth.h"

/* The ends of a connected socket, the client's first (is_client: this one); zeros if not IP. */
void np_ends_of(int fd, bool is_client, uint8_t ends[NP_AUTH_ENDS]);

#endif
