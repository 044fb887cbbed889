/*
 * The handshake of TLS 1.3, and nothing else, by OpenSSL 1.1.1 or later: with a pre-shared key, an
 * ephemeral key exchange, no certificates, and no configuration file, which sessions may not open.
 * Its hook for key logs (SSL_CTX_set_keylog_callback(3)) gives us the traffic secrets.
 */
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "bench/run.h"
#include "bench/stop.h"
#include "bench/transport/tls.h"

enum { CHECK_MS = 100 }; /* between two checks whether the test was stopped */

struct np_tls {
	SSL_CTX *ctx;
	BIO_METHOD *bio; /* our functions to send and receive */
	const struct np_tls_suite *suite;
	const struct np_key *key;
	bool server;
};

struct handshake {
	const struct np_tls *tls;
	struct np_tls_secrets *secrets;
	unsigned known; /* secrets so far, as bits: 1 the client's, 2 the server's */
	int fd, error;  /* errno of the call that failed; 0: none */
	bool closed;    /* the far end has closed */
};

/* The name of the key, which is no secret. */
static const unsigned char identity[] = "plumbline";
enum { IDENTITY = sizeof(identity) - 1 };

const char *
np_tls_lacks(void)
{
	return NULL;
}

/* Tell OpenSSL a call's result. Its own calls would read past the handshake, and raise SIGPIPE. */
static int
note_result(BIO *bio, ssize_t n, int direction)
{
	struct handshake *h = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == EINPROGRESS)) {
		BIO_set_flags(bio, direction | BIO_FLAGS_SHOULD_RETRY);
	} else if (n < 0) {
		h->error = errno;
	} else if (n == 0) {
		h->closed = true;
	}
	return (int)n;
}

/* BIO_meth_set_write(3): send without waiting. */
static int
write_some(BIO *bio, const char *buf, int size)
{
	const struct handshake *h = BIO_get_data(bio);

	return note_result(bio, send(h->fd, buf, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT),
			   BIO_FLAGS_WRITE);
}

/* BIO_meth_set_read(3): receive without waiting. */
static int
read_some(BIO *bio, char *buf, int size)
{
	const struct handshake *h = BIO_get_data(bio);

	return note_result(bio, recv(h->fd, buf, (size_t)size, MSG_DONTWAIT), BIO_FLAGS_READ);
}

/* BIO_meth_set_ctrl(3): 1 is success. */
static long
control(BIO *bio, int command, long number, void *at)
{
	return command == BIO_CTRL_FLUSH; /* nothing is held back */
}

/* The key as a session, the form that OpenSSL takes, and frees. NULL: it failed. */
static SSL_SESSION *
session_of(SSL *ssl)
{
	const struct np_tls *tls = ((struct handshake *)SSL_get_app_data(ssl))->tls;
	const unsigned char number[2] = { (unsigned char)(tls->suite->number >> 8),
					  (unsigned char)tls->suite->number };
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, number);
	SSL_SESSION *s = SSL_SESSION_new();

	if (s == NULL || cipher == NULL || SSL_SESSION_set_cipher(s, cipher) != 1 ||
	    SSL_SESSION_set1_master_key(s, tls->key->at, tls->key->count) != 1 ||
	    SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) != 1) {
		SSL_SESSION_free(s);
		return NULL;
	}
	return s;
}

/* SSL_CTX_set_psk_use_session_callback(3): the client's key. 0: the handshake fails. */
static int
use_key(SSL *ssl, const EVP_MD *hash, const unsigned char **id, size_t *bytes,
	SSL_SESSION **session)
{
	*id = identity;
	*bytes = IDENTITY;
	*session = session_of(ssl);
	return *session != NULL;
}

/* SSL_CTX_set_psk_find_session_callback(3): the server's key; NULL for another name. 1: success. */
static int
find_key(SSL *ssl, const unsigned char *id, size_t bytes, SSL_SESSION **session)
{
	*session = NULL;
	if (bytes == IDENTITY && CRYPTO_memcmp(id, identity, IDENTITY) == 0) {
		*session = session_of(ssl);
	}
	return 1;
}

/* Read `size` bytes from hexadecimal text. False: it has more, or fewer, or others. */
static bool
read_hex(const char *text, uint8_t *out, size_t size)
{
	long count = 0;
	uint8_t *bytes = OPENSSL_hexstr2buf(text, &count);
	bool fits = bytes != NULL && count == (long)size;

	if (fits) {
		memcpy(out, bytes, size);
	}
	OPENSSL_clear_free(bytes, bytes != NULL ? (size_t)count : 0);
	return fits;
}

/* SSL_CTX_set_keylog_callback(3): a line has a label, the client's random number, the secret. */
static void
note_secret(const SSL *ssl, const char *line)
{
	static const char *const labels[] = { "CLIENT_TRAFFIC_SECRET_0 ",
					      "SERVER_TRAFFIC_SECRET_0 " };
	struct handshake *h = SSL_get_app_data(ssl);

	for (unsigned i = 0; i < 2; i++) {
		const char *last = strrchr(line, ' ');
		uint8_t *out = i == 0 ? h->secrets->client : h->secrets->server;

		if (strncmp(line, labels[i], strlen(labels[i])) == 0 && last != NULL &&
		    read_hex(last + 1, out, h->tls->suite->secret)) {
			h->known |= 1U << i;
		}
	}
}

bool
np_tls_expand(const struct np_tls_suite *suite, const uint8_t *secret, const char *label,
	      uint8_t *out, size_t size)
{
	const EVP_MD *hash = suite->secret == 48 ? EVP_sha384() : EVP_sha256(); /* by its size */
	unsigned char info[64], block[EVP_MAX_MD_SIZE];
	int n = snprintf((char *)info + 3, sizeof(info) - 5, "tls13 %s", label);
	unsigned made = 0;

	if (n < 0 || (size_t)n >= sizeof(info) - 5 || size > suite->secret) {
		return false;
	}
	info[0] = (unsigned char)(size >> 8);
	info[1] = (unsigned char)size;
	info[2] = (unsigned char)n;
	info[3 + n] = 0; /* no context */
	info[4 + n] = 1; /* the first block of HKDF-Expand (RFC 5869) */
	if (HMAC(hash, secret, suite->secret, info, 5 + (size_t)n, block, &made) == NULL ||
	    made < size) {
		return false;
	}
	memcpy(out, block, size);
	OPENSSL_cleanse(block, sizeof(block));
	return true;
}

/* OpenSSL's last error as text, perhaps in the caller's buffer. */
static const char *
reason(char *text, size_t size)
{
	unsigned long error = ERR_peek_last_error();

	if (error == 0) {
		return "no reason given";
	}
	ERR_error_string_n(error, text, size);
	return text;
}

struct np_tls *
np_tls_new(const struct np_tls_suite *suite, const struct np_key *key, bool server,
	   struct np_err *err)
{
	struct np_tls *tls = calloc(1, sizeof(*tls));
	char text[200];

	if (tls == NULL) {
		np_fail(err, NP_ESYS, ENOMEM, "memory for TLS");
		return NULL;
	}
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
	ERR_clear_error();
	tls->suite = suite;
	tls->server = server;
	tls->key = key;
	tls->ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	tls->bio = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "connection");
	if (tls->ctx == NULL || tls->bio == NULL ||
	    SSL_CTX_set_min_proto_version(tls->ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_ciphersuites(tls->ctx, tls->suite->iana) != 1 ||
	    SSL_CTX_set_num_tickets(tls->ctx, 0) != 1 || /* nothing follows the handshake */
	    BIO_meth_set_write(tls->bio, write_some) != 1 ||
	    BIO_meth_set_read(tls->bio, read_some) != 1 ||
	    BIO_meth_set_ctrl(tls->bio, control) != 1) {
		np_fail(err, NP_EUNSUP, EOPNOTSUPP, "set up TLS with %s: %s", suite->title,
			reason(text, sizeof(text)));
		np_tls_free(tls);
		return NULL;
	}
	SSL_CTX_clear_options(tls->ctx, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
	SSL_CTX_set_keylog_callback(tls->ctx, note_secret);
	SSL_CTX_set_session_cache_mode(tls->ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_psk_use_session_callback(tls->ctx, use_key);
	SSL_CTX_set_psk_find_session_callback(tls->ctx, find_key);
	return tls;
}

void
np_tls_free(struct np_tls *tls)
{
	if (tls == NULL) {
		return;
	}
	SSL_CTX_free(tls->ctx);
	BIO_meth_free(tls->bio);
	free(tls);
}

/* Do the handshake within timeout_ms, and check that both ends used the key. */
static int
do_handshake(SSL *ssl, const struct handshake *h, const struct np_stop *stop, unsigned timeout_ms,
	     struct np_err *err)
{
	uint64_t until = np_deadline(timeout_ms * (uint64_t)NP_MSEC);
	struct pollfd p = { .fd = h->fd };
	int rc;

	while ((rc = SSL_do_handshake(ssl)) != 1) {
		int why = SSL_get_error(ssl, rc);

		if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
			char text[200];

			if (h->error != 0) {
				return np_fail(err, NP_ESYS, h->error, "TLS handshake");
			}
			if (h->closed) {
				return np_fail(err, NP_ESYS, ECONNRESET,
					       "TLS handshake: the far end closed");
			}
			return np_fail(err, NP_EPEER, EPROTO, "TLS handshake: %s",
				       reason(text, sizeof(text)));
		}
		if (np_stopped(stop)) {
			return np_fail(err, NP_ESYS, EINTR, "TLS handshake");
		}
		if (np_now() >= until) {
			return np_fail(err, NP_ETIME, ETIMEDOUT,
				       "TLS handshake: the far end is silent");
		}
		p.events = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
		poll(&p, 1, CHECK_MS);
	}
	if (SSL_session_reused(ssl) != 1) { /* the server used a certificate, not the key */
		return np_fail(err, NP_EPEER, EPROTO,
			       "TLS handshake: the far end does not have the key");
	}
	if (h->known != 3 || SSL_has_pending(ssl)) { /* 3: both secrets */
		return np_fail(err, NP_EPEER, EPROTO, "TLS handshake: %s",
			       h->known != 3 ? "no keys" : "more came than belongs to it");
	}
	return NP_OK;
}

int
np_tls_handshake(const struct np_tls *tls, int fd, const struct np_stop *stop, unsigned timeout_ms,
		 struct np_tls_secrets *secrets, struct np_err *err)
{
	struct handshake h = { .tls = tls, .secrets = secrets, .fd = fd };
	SSL *ssl = SSL_new(tls->ctx);
	BIO *bio = BIO_new(tls->bio);
	int rc;

	ERR_clear_error();
	if (ssl == NULL || bio == NULL) {
		SSL_free(ssl);
		BIO_free(bio);
		return np_fail(err, NP_ESYS, ENOMEM, "memory for a TLS handshake");
	}
	BIO_set_data(bio, &h);
	BIO_set_init(bio, 1);
	SSL_set_bio(ssl, bio, bio);
	SSL_set_app_data(ssl, &h);
	if (tls->server) {
		SSL_set_accept_state(ssl);
	} else {
		SSL_set_connect_state(ssl);
	}
	rc = do_handshake(ssl, &h, stop, timeout_ms, err);
	SSL_free(ssl);
	return rc;
}
