#include "wire/auth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/secret.h"
#include "config.h"
#include "wire/wire.h"

#ifdef HAVE_SODIUM
#include <sodium.h>
#endif

void
np_auth_body_layout(struct np_wire *w, void *m)
{
	struct np_auth_body *b = m;

	np_wire_u32(w, "version", &b->version);
	np_wire_bytes(w, "nonce or mac", b->bytes, sizeof(b->bytes));
}

void
np_auth_nonce(uint8_t nonce[NP_AUTH_BYTES])
{
	/* So few bytes are never cut short. A nonce that can be guessed would be worthless. */
	while (getrandom(nonce, NP_AUTH_BYTES, 0) != NP_AUTH_BYTES) {
		if (errno != EINTR) {
			abort();
		}
	}
}

bool
np_auth_check(const struct np_auth_key *key, enum np_auth_side side,
	      const struct np_auth_scope *scope, const uint8_t mac[NP_AUTH_BYTES])
{
	uint8_t expected[NP_AUTH_BYTES];
	bool same;

	if (!np_auth_built()) {
		return false;
	}
	np_auth_prove(key, side, scope, expected);
	same = np_secret_equal(expected, mac, sizeof(expected));
	explicit_bzero(expected, sizeof(expected)); /* leave no valid proof in memory */
	return same;
}

#ifdef HAVE_SODIUM

_Static_assert(crypto_auth_hmacsha256_BYTES == NP_AUTH_BYTES, "HMAC-SHA-256 has 32 bytes");

bool
np_auth_built(void)
{
	return true;
}

int
np_auth_read_key(struct np_auth_key *key, const char *path, struct np_err *err)
{
	uint8_t line[NP_AUTH_KEY_MAX + 1];
	size_t count;

	key->count = 0;
	if (sodium_init() < 0) {
		return np_fail(err, NP_ESYS, 0, "libsodium cannot be initialised");
	}
	if (np_secret_read(path, line, sizeof(line), &count, err) != NP_OK) {
		return err->code;
	}
	if (count >= NP_AUTH_KEY_MIN && count <= NP_AUTH_KEY_MAX) {
		memcpy(key->bytes, line, count);
		key->count = count;
	}
	explicit_bzero(line, sizeof(line));
	if (key->count == 0) {
		return np_usage(err,
				"%s: a key, the first line of its file, has %d to %d characters "
				"(try openssl rand -hex 32)",
				path, NP_AUTH_KEY_MIN, NP_AUTH_KEY_MAX);
	}
	return NP_OK;
}

void
np_auth_prove(const struct np_auth_key *key, enum np_auth_side side,
	      const struct np_auth_scope *scope, uint8_t mac[NP_AUTH_BYTES])
{
	/* All have one length, so that no two inputs of the HMAC are the same bytes. */
	static const char *const domains[][2] = {
		[NP_AUTH_CLIENT] = { "plumbline auth 1 client", "plumbline auth 2 client" },
		[NP_AUTH_SERVER] = { "plumbline auth 1 server", "plumbline auth 2 server" },
	};
	const char *domain = domains[side][scope->ends != NULL];
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, key->bytes, key->count);
	crypto_auth_hmacsha256_update(&state, (const uint8_t *)domain, strlen(domain));
	crypto_auth_hmacsha256_update(&state, scope->client_nonce, NP_AUTH_BYTES);
	crypto_auth_hmacsha256_update(&state, scope->server_nonce, NP_AUTH_BYTES);
	if (scope->ends != NULL) {
		crypto_auth_hmacsha256_update(&state, scope->ends, NP_AUTH_ENDS);
	}
	crypto_auth_hmacsha256_final(&state, mac);
	explicit_bzero(&state, sizeof(state));
}

#else

bool
np_auth_built(void)
{
	return false;
}

int
np_auth_read_key(struct np_auth_key *key, const char *path, struct np_err *err)
{
	key->count = 0;
	return np_fail(err, NP_EUNSUP, 0,
		       "%s: this program was built without libsodium, which a proof of a key needs "
		       "(install libsodium-dev, then configure and make again)",
		       path);
}

/* Never called: there is no key to prove. */
void
np_auth_prove(const struct np_auth_key *key, enum np_auth_side side,
	      const struct np_auth_scope *scope, uint8_t mac[NP_AUTH_BYTES])
{
	abort();
}

#endif
