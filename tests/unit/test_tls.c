/*
 * TLS as far as no kernel has to encrypt: keys by the vectors of RFC 8448, and handshakes between
 * two ends over a connection of this machine.
 */
#include "bench/transport/tls.h"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <sys/socket.h>

#include "bench/run.h"
#include "bench/stop.h"
#include "tests/lib/check.h"

enum { TIMEOUT_MS = 20000 };

struct side {
	struct np_tls *tls;
	int fd, rc;
	struct np_stop stop;
	unsigned timeout_ms;
	struct np_tls_secrets secrets;
	struct np_err err;
	pthread_t thread;
};

static const struct np_key one = { 32, { 1, 2, 3 } }, other = { 32, { 1, 2, 4 } };

/* Keys of a server's application data (RFC 8448, 3). */
TEST(keys_are_those_of_the_standard)
{
	static const uint8_t secret[] = { 0xa1, 0x1a, 0xf9, 0xf0, 0x55, 0x31, 0xf8, 0x56,
					  0xad, 0x47, 0x11, 0x6b, 0x45, 0xa9, 0x50, 0x32,
					  0x82, 0x04, 0xb4, 0xf4, 0x4b, 0xfb, 0x6b, 0x3a,
					  0x4b, 0x4f, 0x1f, 0x3f, 0xcb, 0x63, 0x16, 0x43 };
	static const uint8_t key[] = { 0x9f, 0x02, 0x28, 0x3b, 0x6c, 0x9c, 0x07, 0xef,
				       0xc2, 0x6b, 0xb9, 0xf2, 0xac, 0x92, 0xe3, 0x56 };
	static const uint8_t iv[] = { 0xcf, 0x78, 0x2b, 0x88, 0xdd, 0x83,
				      0x54, 0x9a, 0xad, 0xf1, 0xe9, 0x84 };
	const struct np_tls_suite *suite = np_tls_suite_find(NULL, 0x1301);
	uint8_t out[64];

	assert_true(np_tls_expand(suite, secret, "key", out, sizeof(key)));
	assert_memory_equal(out, key, sizeof(key));
	assert_true(np_tls_expand(suite, secret, "iv", out, sizeof(iv)));
	assert_memory_equal(out, iv, sizeof(iv));
	assert_false(np_tls_expand(suite, secret, "key", out, 33)); /* more than a block */
}

TEST(suites_have_names_and_numbers)
{
	const struct np_tls_suite *s;
	size_t i;

	for (i = 0; (s = np_tls_suite_at(i)) != NULL; i++) {
		assert_ptr_equal(np_tls_suite_find(s->name, 0), s);
		assert_ptr_equal(np_tls_suite_find(NULL, s->number), s);
		assert_int_equal(s->number, 0x1301 + i);
	}
	assert_int_equal(i, 3);
	assert_ptr_equal(np_tls_suite_find("AES256-GCM", 0), np_tls_suite_at(1));
	assert_ptr_equal(np_tls_suite_find(NULL, 0), np_tls_suite_at(0));
	assert_null(np_tls_suite_find("rc4", 0));
	assert_null(np_tls_suite_find(NULL, 0x1304));
}

static void *
shake(void *arg)
{
	struct side *s = arg;

	s->rc = np_tls_handshake(s->tls, s->fd, &s->stop, s->timeout_ms, &s->secrets, &s->err);
	return NULL;
}

/* A client's end and a server's, of these suites and keys. */
static void
make(struct side side[2], const struct np_tls_suite *suite[2], const struct np_key *key[2])
{
	struct np_err err;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (int i = 0; i < 2; i++) {
		side[i] = (struct side){ .fd = pair[i], .timeout_ms = TIMEOUT_MS };
		side[i].tls = np_tls_new(suite[i], key[i], i == 1, &err);
		fail_if(side[i].tls == NULL, "%s", err.msg);
	}
}

static void
run(struct side side[2])
{
	assert_int_equal(pthread_create(&side[0].thread, NULL, shake, &side[0]), 0);
	shake(&side[1]);
	if (side[1].rc != NP_OK) {
		shutdown(side[1].fd, SHUT_RDWR);
	}
	assert_int_equal(pthread_join(side[0].thread, NULL), 0);
}

static void
end(struct side side[2])
{
	for (int i = 0; i < 2; i++) {
		np_tls_free(side[i].tls);
		close(side[i].fd);
	}
}

/* With what the far end sends right behind its handshake, which is the kernel's to decrypt. */
TEST(both_ends_have_the_same_secrets)
{
	static const uint8_t none[NP_TLS_SECRET_MAX];
	const struct np_tls_suite *suite;

	for (size_t i = 0; (suite = np_tls_suite_at(i)) != NULL; i++) {
		struct side side[2];
		char byte;

		make(side, (const struct np_tls_suite *[]){ suite, suite },
		     (const struct np_key *[]){ &one, &one });
		run(side);
		fail_if(side[0].rc != NP_OK || side[1].rc != NP_OK, "%s: %s; %s", suite->name,
			side[0].err.msg, side[1].err.msg);
		assert_memory_equal(&side[0].secrets, &side[1].secrets, sizeof(side[0].secrets));
		assert_memory_not_equal(side[0].secrets.client, none, suite->secret);
		assert_memory_not_equal(side[0].secrets.client, side[0].secrets.server,
					suite->secret);
		for (int k = 0; k < 2; k++) { /* nothing is left over */
			assert_int_equal(recv(side[k].fd, &byte, 1, MSG_DONTWAIT), -1);
			assert_int_equal(errno, EAGAIN);
			assert_int_equal(fcntl(side[k].fd, F_GETFL) & O_NONBLOCK, 0);
		}
		end(side);
	}
}

TEST(another_key_completes_no_handshake)
{
	const struct np_tls_suite *suite = np_tls_suite_at(0);
	struct side side[2];

	make(side, (const struct np_tls_suite *[]){ suite, suite },
	     (const struct np_key *[]){ &one, &other });
	run(side);
	assert_int_equal(side[0].rc, NP_EPEER);
	assert_int_equal(side[1].rc, NP_EPEER);
	assert_has(side[1].err.msg, "TLS handshake: ");
	end(side);
}

/* A server with a certificate of its own, and without any key of ours. */
static SSL_CTX *
impostor(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
	EVP_PKEY *key = NULL;
	X509 *cert = X509_new();

	assert_int_equal(EVP_PKEY_keygen_init(maker), 1);
	assert_int_equal(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(maker, NID_X9_62_prime256v1), 1);
	assert_int_equal(EVP_PKEY_keygen(maker, &key), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	assert_int_equal(X509_set_pubkey(cert, key), 1);
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	assert_int_equal(SSL_CTX_use_certificate(ctx, cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
	EVP_PKEY_CTX_free(maker);
	EVP_PKEY_free(key);
	X509_free(cert);
	return ctx;
}

TEST(a_certificate_stands_for_no_key)
{
	const struct np_tls_suite *suite = np_tls_suite_at(0);
	SSL_CTX *ctx = impostor();
	SSL *ssl = SSL_new(ctx);
	struct side side[2];

	make(side, (const struct np_tls_suite *[]){ suite, suite },
	     (const struct np_key *[]){ &one, &one });
	SSL_set_fd(ssl, side[1].fd);
	assert_int_equal(pthread_create(&side[0].thread, NULL, shake, &side[0]), 0);
	SSL_accept(ssl);
	shutdown(side[1].fd, SHUT_RDWR);
	assert_int_equal(pthread_join(side[0].thread, NULL), 0);
	assert_int_equal(side[0].rc, NP_EPEER);
	assert_has(side[0].err.msg, "TLS handshake: ");
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	end(side);
}

TEST(another_cipher_completes_no_handshake)
{
	struct side side[2];

	make(side, (const struct np_tls_suite *[]){ np_tls_suite_at(0), np_tls_suite_at(2) },
	     (const struct np_key *[]){ &one, &one });
	run(side);
	assert_int_not_equal(side[0].rc, NP_OK);
	assert_int_not_equal(side[1].rc, NP_OK);
	end(side);
}

TEST(who_says_nothing_is_not_waited_for)
{
	const struct np_tls_suite *suite = np_tls_suite_at(0);
	struct side side[2];

	for (int stops = 0; stops < 2; stops++) {
		make(side, (const struct np_tls_suite *[]){ suite, suite },
		     (const struct np_key *[]){ &one, &one });
		side[1].timeout_ms = stops != 0 ? TIMEOUT_MS : 1;
		if (stops != 0) {
			np_stop(&side[1].stop, 1);
		}
		shake(&side[1]);
		assert_int_equal(side[1].rc, stops != 0 ? NP_ESYS : NP_ETIME);
		assert_int_equal(side[1].err.sys, stops != 0 ? EINTR : ETIMEDOUT);
		end(side);
	}
}

TEST(nonsense_is_an_error)
{
	static const char *const what[] = { "", "GET / HTTP/1.0\r\n\r\n",
					    "\x16\x03\x01\x00\x02xx" };
	const struct np_tls_suite *suite = np_tls_suite_at(0);

	for (size_t i = 0; i < LEN(what); i++) {
		struct side side[2];

		make(side, (const struct np_tls_suite *[]){ suite, suite },
		     (const struct np_key *[]){ &one, &one });
		assert_true(send(side[0].fd, what[i], strlen(what[i]), 0) >= 0);
		shutdown(side[0].fd, SHUT_WR);
		shake(&side[1]);
		assert_int_not_equal(side[1].rc, NP_OK);
		end(side);
	}
}

TEST_MAIN()
