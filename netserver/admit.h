/*
 * Who may begin a session, where the daemon demands a passphrase or a key: what each first message
 * of a connection leads to. A state machine over whole messages; it never touches a socket. What is
 * said on the wire is in doc/protocol.md.
 */
#ifndef NETSERVER_ADMIT_H
#define NETSERVER_ADMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/auth.h"
#include "wire/msg.h"

enum ns_admit_state {
	NS_ADMIT_NEW = 0, /* nothing came yet */
	NS_ADMIT_ASKED,   /* a challenge is out */
	NS_ADMIT_OPEN,    /* all that follows belongs to the session */
	NS_ADMIT_SHUT     /* refused */
};

/* One connection's. Begin with the first four set and the rest zero; a key makes passphrases moot.
 */
struct ns_admit {
	const struct np_auth_key *key; /* NULL: none is demanded */
	const char *passphrase;        /* NULL: none is demanded */
	bool nat;                      /* a proof need not cover the ends */
	uint8_t ends[NP_AUTH_ENDS];    /* of the connection, with a key */
	int state;                     /* enum ns_admit_state */
	uint32_t version;              /* of the client's proof */
	bool wrong;                    /* a secret came, and it is another one */
	uint8_t client_nonce[NP_AUTH_BYTES], server_nonce[NP_AUTH_BYTES];
};

enum ns_admission {
	NS_ADMIT_IN,     /* this message belongs to the session itself: hand it over */
	NS_ADMIT_MORE,   /* consumed; send reply if *has_reply, wait for the next message */
	NS_ADMIT_REFUSED /* send reply if *has_reply, then close */
};

/*
 * Take a whole message (of an old client: its 256 bytes and zeros). Where it is refused, *why says
 * so for the log: NP_EPEER, with err->sys EACCES or EPROTONOSUPPORT. A consumed or refused message
 * may hold a passphrase: np_secret_wipe() the caller's copy.
 */
enum ns_admission ns_admit_step(struct ns_admit *a, const uint8_t frame[NP_FRAME_SIZE],
				uint8_t reply[NP_FRAME_SIZE], bool *has_reply, struct np_err *why);

/*
 * Would that message be compared with the secret? A caller that tries too often has to wait for it.
 * And was the last one that was compared wrong?
 */
bool ns_admit_tries(const struct ns_admit *a, const uint8_t frame[NP_FRAME_SIZE]);
bool ns_admit_was_wrong(const struct ns_admit *a);

/* Would any message now be NS_ADMIT_IN? Then its client may take its time to send one. */
bool ns_admit_is_in(const struct ns_admit *a);

#endif
