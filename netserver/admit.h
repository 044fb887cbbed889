/* Admission by passphrase or key, from a connection's first messages (doc/protocol.md); no I/O. */
#ifndef NETSERVER_ADMIT_H
#define NETSERVER_ADMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/auth.h"
#include "wire/msg.h"

enum ns_admit_state {
	NS_ADMIT_NEW = 0, /* nothing came yet */
	NS_ADMIT_ASKED,   /* a challenge was sent */
	NS_ADMIT_OPEN,    /* all that follows belongs to the session */
	NS_ADMIT_SHUT     /* refused */
};

/* State of a connection. Set the first four members, zero the rest. With a key, no passphrases. */
struct ns_admit {
	const struct np_auth_key *key; /* NULL: none is demanded */
	const char *passphrase;        /* NULL: none is demanded */
	bool nat;                      /* a proof need not cover the ends */
	uint8_t ends[NP_AUTH_ENDS];    /* addresses of the connection, for a proof of the key */
	int state;                     /* enum ns_admit_state */
	uint32_t version;              /* of AUTH_HELLO; NP_AUTH_LOOSE: a proof covers no ends */
	bool wrong;                    /* a wrong secret came */
	uint8_t client_nonce[NP_AUTH_BYTES], server_nonce[NP_AUTH_BYTES];
	bool has_reply; /* to the last message */
	uint8_t reply[NP_FRAME_SIZE];
};

enum ns_admission {
	NS_ADMIT_IN,     /* the message belongs to the session */
	NS_ADMIT_MORE,   /* consumed; send the reply if there is one, wait for the next message */
	NS_ADMIT_REFUSED /* send the reply if there is one, then close */
};

/*
 * Handle a whole message (a short one padded with zeros). If refused, *why is NP_EPEER with sys
 * EACCES or EPROTONOSUPPORT. Unless NS_ADMIT_IN, the caller wipes it: it may hold a passphrase.
 */
enum ns_admission
ns_admit_step(struct ns_admit *a, const uint8_t frame[NP_FRAME_SIZE], struct np_err *why);

/* The code of the answer to a request: the next number, but for two exceptions of netperf. */
uint32_t ns_reply_code(uint32_t code);

/* Would that message be compared with the secret? That is delayed if a client tried too often. */
bool ns_admit_tries(const struct ns_admit *a, const uint8_t frame[NP_FRAME_SIZE]);

/* Would any message be NS_ADMIT_IN now: no secret is demanded, or it was shown already? */
bool ns_admit_is_in(const struct ns_admit *a);

#endif
