/*
 * How our client and our daemon authenticate each other when a session begins: each proves by
 * HMAC-SHA-256 (RFC 2104, 6234) that it has the key. The nonces of both ends make a recorded proof
 * useless; so do the addresses and ports that each end sees for one that a man in the middle
 * relays. Nothing is encrypted.
 *
 *   client                                   daemon
 *   NP_AUTH_HELLO  version, nonce C  ---->
 *                                    <----   NP_AUTH_CHALLENGE  nonce S
 *   NP_AUTH_PROOF  mac(client,C,S)   ---->
 *                                    <----   NP_AUTH_WELCOME  mac(server,C,S), or an error word
 */
#ifndef NP_WIRE_AUTH_H
#define NP_WIRE_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/msg.h"

/* Codes far from netperf's; a daemon that does not know them answers NP_E_UNKNOWN_REQUEST. */
enum {
	NP_AUTH_HELLO = 0x504c0001,
	NP_AUTH_CHALLENGE = 0x504c0002,
	NP_AUTH_PROOF = 0x504c0003,
	NP_AUTH_WELCOME = 0x504c0004
};

enum { NP_AUTH_BYTES = 32, NP_AUTH_KEY_MAX = 512, NP_AUTH_KEY_MIN = 16 };

/* Versions of these messages. NP_AUTH_LOOSE is for a NAT: its proof covers no addresses. */
enum { NP_AUTH_LOOSE = 1, NP_AUTH_VERSION = 2 };

/* IP version, address and port of the client's end, then of the daemon's (run/ends.h). */
enum { NP_AUTH_ENDS = 2 * (1 + 16 + 2) };

struct np_auth_key {
	uint8_t bytes[NP_AUTH_KEY_MAX];
	size_t count;
};

/* The body of HELLO, CHALLENGE (version, nonce), PROOF and WELCOME (version, mac). */
struct np_auth_body {
	uint32_t version;
	uint8_t bytes[NP_AUTH_BYTES];
};
np_layout np_auth_body_layout;

enum np_auth_side { NP_AUTH_CLIENT, NP_AUTH_SERVER };

/* Was this program built with libsodium, which proofs need? */
bool np_auth_built(void);

/*
 * Read a key: the first line, 16 to 512 bytes, of a regular file of ours that only its owner may
 * access (mode 0600). NP_ESYS, NP_EUSAGE; NP_EUNSUP where np_auth_built() is false.
 */
int np_auth_read_key(struct np_auth_key *key, const char *path, struct np_err *err);

/* Fill with unpredictable bytes (getrandom(2)). */
void np_auth_nonce(uint8_t nonce[NP_AUTH_BYTES]);

/* What a proof covers. */
struct np_auth_scope {
	const uint8_t *client_nonce, *server_nonce; /* NP_AUTH_BYTES each */
	const uint8_t *ends;                        /* NP_AUTH_ENDS; NULL: NP_AUTH_LOOSE */
};

/* Compute a side's proof: the HMAC of its name, the nonces and the ends. */
void np_auth_prove(const struct np_auth_key *key, enum np_auth_side side,
		   const struct np_auth_scope *scope, uint8_t mac[NP_AUTH_BYTES]);

/* Is `mac` the side's proof? Takes the same time wherever it differs. */
bool np_auth_check(const struct np_auth_key *key, enum np_auth_side side,
		   const struct np_auth_scope *scope, const uint8_t mac[NP_AUTH_BYTES]);

#endif
