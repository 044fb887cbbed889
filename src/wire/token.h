/*
 * One port for control and data (netserver --one-port): the daemon draws a token for a test, and
 * what comes to its port with that token is a data connection of this test, or its datagrams. One
 * message for all that is said of it: in bytes of requests and responses that netperf leaves as
 * they are, first on each data connection, and as a datagram of its own in each direction.
 */
#ifndef NP_WIRE_TOKEN_H
#define NP_WIRE_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NP_TOKEN_BYTES = 16, NP_TOKEN_SIZE = 24 };

struct np_token {
	uint8_t at[NP_TOKEN_BYTES];
};

enum np_token_word {
	NP_TOKEN_NONE,    /* it is no such message */
	NP_TOKEN_WANTED,  /* request: the client would show one; the token is 0 */
	NP_TOKEN_GIVEN,   /* response */
	NP_TOKEN_SHOWN,   /* by the client, who waits for one of the two below */
	NP_TOKEN_PASSED,  /* by the client, who goes on at once: who has no such test resets */
	NP_TOKEN_TAKEN,   /* the test has the connection; the token is 0 */
	NP_TOKEN_UNKNOWN, /* this daemon has no such test; the token is 0 */
};

/* Write one; token NULL: 0. */
void
np_token_put(uint8_t bytes[NP_TOKEN_SIZE], enum np_token_word word, const struct np_token *token);

/* Send one without a token, if there is room. A peer that is gone is noticed later. */
void np_token_say(int fd, enum np_token_word word);

/* What n bytes say; token may be NULL. */
enum np_token_word np_token_get(const uint8_t *bytes, size_t n, struct np_token *token);

/* May n bytes, of which there are any, be the beginning of one? No request begins so. */
bool np_token_begins(const uint8_t *bytes, size_t n);

/* In the same time wherever they differ. */
bool np_token_is(const struct np_token *a, const struct np_token *b);

#endif
