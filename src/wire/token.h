/*
 * One port for control and data (netserver --one-port): a daemon draws a token for a test, and
 * connections or datagrams that bring it to its port are the test's. One message serves every step:
 * in unused bytes of requests and responses, first on each data connection, as a datagram each way.
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
	NP_TOKEN_NONE,    /* not a message about a token */
	NP_TOKEN_WANTED,  /* in a request: the client asks for a token; the token is 0 */
	NP_TOKEN_GIVEN,   /* in a response: the test's token */
	NP_TOKEN_SHOWN,   /* client, on a data connection: wait for TAKEN or UNKNOWN */
	NP_TOKEN_PASSED,  /* client, going on at once: a daemon without that test resets */
	NP_TOKEN_TAKEN,   /* the test has the connection; the token is 0 */
	NP_TOKEN_UNKNOWN, /* this daemon has no such test; the token is 0 */
};

/* Write a message; token NULL: zeros. */
void
np_token_put(uint8_t bytes[NP_TOKEN_SIZE], enum np_token_word word, const struct np_token *token);

/* Send a message without a token, if the socket has room. The caller notices a lost peer later. */
void np_token_say(int fd, enum np_token_word word);

/* Read a message of n bytes; token may be NULL. */
enum np_token_word np_token_get(const uint8_t *bytes, size_t n, struct np_token *token);

/* Could n > 0 bytes begin such a message? No request begins like that. */
bool np_token_begins(const uint8_t *bytes, size_t n);

/* Are they the same? Takes the same time wherever they differ. */
bool np_token_is(const struct np_token *a, const struct np_token *b);

#endif
