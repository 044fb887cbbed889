#include "wire/token.h"

#include <string.h>
#include <sys/socket.h>

#include "base/secret.h"
#include "wire/wire.h"

/* "\xd7NP1", which is neither a code of a request nor the beginning of netperf's data. */
#define MAGIC 0xd74e5031U

void
np_token_put(uint8_t bytes[NP_TOKEN_SIZE], enum np_token_word word, const struct np_token *token)
{
	struct np_token copy = token != NULL ? *token : (struct np_token){ { 0 } };
	uint32_t magic = MAGIC, what = word;
	struct np_wire w;

	np_wire_write_to(&w, bytes, NP_TOKEN_SIZE);
	np_wire_u32(&w, "token_magic", &magic);
	np_wire_u32(&w, "token_word", &what);
	np_wire_bytes(&w, "token", copy.at, sizeof(copy.at));
}

void
np_token_say(int fd, enum np_token_word word)
{
	uint8_t bytes[NP_TOKEN_SIZE];

	np_token_put(bytes, word, NULL);
	(void)!send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
}

enum np_token_word
np_token_get(const uint8_t *bytes, size_t n, struct np_token *token)
{
	struct np_token ignored;
	uint32_t magic, word;
	struct np_wire w;

	if (n != NP_TOKEN_SIZE) {
		return NP_TOKEN_NONE;
	}
	token = token != NULL ? token : &ignored;
	np_wire_read_from(&w, bytes, n);
	np_wire_u32(&w, "token_magic", &magic);
	np_wire_u32(&w, "token_word", &word);
	np_wire_bytes(&w, "token", token->at, sizeof(token->at));
	return magic == MAGIC && word <= NP_TOKEN_UNKNOWN ? (enum np_token_word)word
							  : NP_TOKEN_NONE;
}

bool
np_token_begins(const uint8_t *bytes, size_t n)
{
	uint8_t magic[NP_TOKEN_SIZE];

	np_token_put(magic, NP_TOKEN_NONE, NULL);
	return memcmp(bytes, magic, n < sizeof(uint32_t) ? n : sizeof(uint32_t)) == 0;
}

bool
np_token_is(const struct np_token *a, const struct np_token *b)
{
	return np_secret_equal(a->at, b->at, sizeof(a->at));
}
