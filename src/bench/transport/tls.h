/*
 * TLS 1.3 on a TCP connection. A library does the handshake, with a key that the daemon draws for
 * each test and sends by the control connection; then the kernel encrypts (networking/tls.rst).
 */
#ifndef NP_BENCH_TRANSPORT_TLS_H
#define NP_BENCH_TRANSPORT_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct np_key;
struct np_stop;
struct np_tls;

enum {
	NP_TLS_SECRET_MAX = 48, /* bytes of a traffic secret */
	NP_TLS_NONCE = 12       /* bytes of an initialisation vector */
};

struct np_tls_suite {
	const char *name;  /* for --tls-cipher */
	const char *title; /* in results */
	const char *iana;  /* name in the standard */
	uint32_t number;   /* in the standard (RFC 8446, B.4), and in a PLAN */
	uint16_t kernel;   /* TLS_CIPHER_* of <linux/tls.h> */
	uint8_t key;       /* bytes of a key */
	uint8_t salt;      /* bytes of a nonce that the kernel takes apart from it */
	uint8_t secret;    /* bytes of a traffic secret, and of the suite's hash */
};

/* Row i of the table, NULL after the last; the first one is the default. */
const struct np_tls_suite *np_tls_suite_at(size_t i);

/* Find a suite by name, in any case; without one by number, 0: the default. NULL: unknown. */
const struct np_tls_suite *np_tls_suite_find(const char *name, uint32_t number);

/* The traffic secrets of both ends, when the handshake is complete (RFC 8446, 7.1). */
struct np_tls_secrets {
	uint8_t client[NP_TLS_SECRET_MAX], server[NP_TLS_SECRET_MAX];
};

/* --- the library: tls_openssl.c, or tls_none.c in a build without it --- */

/* Why there is no TLS in this build, as text for a message; NULL: there is. */
const char *np_tls_lacks(void);

/*
 * A context for handshakes with that suite and key, for any number of threads. Ends with different
 * keys can't complete one. The key may be filled later: it is read at each handshake. NULL with
 * err.
 */
struct np_tls *np_tls_new(const struct np_tls_suite *suite, const struct np_key *key, bool server,
			  struct np_err *err);
void np_tls_free(struct np_tls *tls);

/*
 * Do a handshake on a TCP connection, and read nothing after it. Gives up once np_stopped()
 * (EINTR), when the far end has closed (ECONNRESET), or after timeout_ms.
 */
int np_tls_handshake(const struct np_tls *tls, int fd, const struct np_stop *stop,
		     unsigned timeout_ms, struct np_tls_secrets *secrets, struct np_err *err);

/* HKDF-Expand-Label of RFC 8446, 7.1, without context. size: at most a block of the hash. */
bool np_tls_expand(const struct np_tls_suite *suite, const uint8_t *secret, const char *label,
		   uint8_t *out, size_t size);

#endif
