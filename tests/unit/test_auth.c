/*
 * The proofs of a key: that the library's HMAC is the standard's, that ours covers what it should,
 * how its messages look, and which files are keys.
 */
#include "wire/auth.h"

#include <sys/stat.h>

#include "config.h"
#include "tests/lib/check.h"
#include "tests/lib/root.h"
#include "wire/wire.h"

#ifdef HAVE_SODIUM
#include <sodium.h>
#endif

static void
count_up(uint8_t *bytes, uint8_t from, int step)
{
	for (int i = 0; i < NP_AUTH_BYTES; i++) {
		bytes[i] = (uint8_t)(from + i * step);
	}
}

static struct np_auth_key
key_of(const char *text)
{
	struct np_auth_key key = { .count = strlen(text) };

	memcpy(key.bytes, text, key.count);
	return key;
}

#ifdef HAVE_SODIUM

/* "0b1c..." as bytes; returns their number. */
static size_t
from_hex(const char *hex, uint8_t *out)
{
	size_t n = 0;

	for (unsigned byte; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++) {
		out[n] = (uint8_t)byte;
	}
	return n;
}

/* Cases 1 to 4, 6 and 7 of RFC 4231 (5 is of a shortened code), by the calls that auth.c makes. */
TEST(the_library_computes_the_standards_hmac)
{
	static const struct {
		char key[132];
		size_t key_size;
		const char *data, *mac;
	} rows[] = {
		{ "\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"
		  "\x0b",
		  20, "Hi There",
		  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
		{ "Jefe", 4, "what do ya want for nothing?",
		  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
		{ "", 20, "", "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
		{ "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14"
		  "\x15\x16\x17\x18\x19",
		  25, "", "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
		{ "", 131, "Test Using Larger Than Block-Size Key - Hash Key First",
		  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
		{ "", 131,
		  "This is a test using a larger than block-size key and a larger than block-size "
		  "data. The key needs to be hashed before being used by the HMAC algorithm.",
		  "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
	};

	assert_true(sodium_init() >= 0);
	for (size_t i = 0; i < LEN(rows); i++) {
		uint8_t key[132], data[200], want[32], mac[32];
		size_t size = strlen(rows[i].data);
		crypto_auth_hmacsha256_state hmac;

		memcpy(key, rows[i].key, sizeof(key));
		if (rows[i].key[0] == '\0') {
			memset(key, 0xaa, sizeof(key));
		}
		memcpy(data, rows[i].data, size);
		if (size == 0) {
			size = 50;
			memset(data, rows[i].key_size == 20 ? 0xdd : 0xcd, size);
		}
		assert_int_equal(from_hex(rows[i].mac, want), sizeof(want));
		crypto_auth_hmacsha256_init(&hmac, key, rows[i].key_size);
		crypto_auth_hmacsha256_update(&hmac, data, size / 3);
		crypto_auth_hmacsha256_update(&hmac, data + size / 3, size - size / 3);
		crypto_auth_hmacsha256_final(&hmac, mac);
		assert_memory_equal(mac, want, sizeof(mac));
	}
}

/*
 * Computed by Python's hmac:
 *   c, s = bytes(range(32)), bytes(range(255, 223, -1))
 *   hmac.new(key, b"plumbline auth 1 client" + c + s, "sha256").hexdigest()
 * and the same with "server", for the keys b"0123456789abcdef" and 512 * b"k"; and with 2 for 1 and
 * bytes(range(64, 102)) for the ends behind it.
 */
TEST(a_proof_covers_the_side_both_nonces_and_the_ends)
{
	static const struct {
		bool longest, bound;
		enum np_auth_side side;
		const char *mac;
	} rows[] = {
		{ false, false, NP_AUTH_CLIENT,
		  "f4b0a65fad397912618c9419ecc4b85bdb25000f8421c97835b6cf435d039116" },
		{ false, false, NP_AUTH_SERVER,
		  "8c51f1b05ffdeadd03cb7225aef2d89038f1c960a9b27d71c4aa7f8fac51a967" },
		{ true, false, NP_AUTH_CLIENT,
		  "143a77c8cab5feb25c9ddede772b4aa835cc47c167664cf4d72d7dc84be1bb44" },
		{ true, false, NP_AUTH_SERVER,
		  "7f861dc0fdf2fe99eca65e25d5fc5d344bd0a9b570c468bee220de434d5230e6" },
		{ false, true, NP_AUTH_CLIENT,
		  "0a4a6af4dee964d0692b4fca66d0c9e5d4a114e2a154726f16ae8ada4a14c0f3" },
		{ false, true, NP_AUTH_SERVER,
		  "6ca671aca5290c6af062ef9c4fdc24cd3d83915bab7f04baa6eb8930ebe40385" },
		{ true, true, NP_AUTH_CLIENT,
		  "86b08905a6ba73e40af9f57f8c603ac8a02520729117e8b7f191cf98099b5656" },
		{ true, true, NP_AUTH_SERVER,
		  "d53517f49f58128016c575bafccbd3e3b558604a45d020cd854dc061174b3243" },
	};
	uint8_t client[NP_AUTH_BYTES], server[NP_AUTH_BYTES], ends[NP_AUTH_ENDS];

	count_up(client, 0, 1);
	count_up(server, 255, -1);
	for (size_t i = 0; i < sizeof(ends); i++) {
		ends[i] = (uint8_t)(64 + i);
	}
	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_auth_key key = key_of("0123456789abcdef");
		struct np_auth_scope scope = { client, server, rows[i].bound ? ends : NULL };
		uint8_t mac[NP_AUTH_BYTES], want[NP_AUTH_BYTES];

		if (rows[i].longest) {
			memset(key.bytes, 'k', sizeof(key.bytes));
			key.count = sizeof(key.bytes);
		}
		from_hex(rows[i].mac, want);
		np_auth_prove(&key, rows[i].side, &scope, mac);
		assert_memory_equal(mac, want, sizeof(mac));
	}
}

/* Each bit of a part of what a proof covers, or of the proof itself, is one that matters. */
static void
assert_bits_matter(const struct np_auth_key *key, const struct np_auth_scope *scope,
		   const uint8_t *mac, uint8_t *part, size_t size)
{
	for (size_t bit = 0; bit < 8 * size; bit++) {
		uint8_t flip = (uint8_t)(1U << bit % 8);

		part[bit / 8] ^= flip;
		assert_false(np_auth_check(key, NP_AUTH_CLIENT, scope, mac));
		part[bit / 8] ^= flip;
	}
	assert_true(np_auth_check(key, NP_AUTH_CLIENT, scope, mac));
}

TEST(only_the_right_proof_is_one)
{
	struct np_auth_key key = key_of("0123456789abcdef"), other = key_of("0123456789abcdeF");
	struct np_auth_key longer = key_of("0123456789abcdef0");
	uint8_t client[NP_AUTH_BYTES], server[NP_AUTH_BYTES], mac[NP_AUTH_BYTES];
	uint8_t ends[NP_AUTH_ENDS] = { 4, 192, 0, 2, 1 };
	const struct np_auth_scope scope = { client, server, ends },
				   loose = { client, server, NULL },
				   turned = { server, client, ends };

	count_up(client, 7, 3);
	count_up(server, 99, 5);
	np_auth_prove(&key, NP_AUTH_CLIENT, &scope, mac);
	assert_true(np_auth_check(&key, NP_AUTH_CLIENT, &scope, mac));
	assert_false(np_auth_check(&key, NP_AUTH_SERVER, &scope, mac));
	assert_false(np_auth_check(&key, NP_AUTH_CLIENT, &turned, mac));
	assert_false(np_auth_check(&key, NP_AUTH_CLIENT, &loose, mac));
	assert_false(np_auth_check(&other, NP_AUTH_CLIENT, &scope, mac));
	assert_false(np_auth_check(&longer, NP_AUTH_CLIENT, &scope, mac));
	assert_bits_matter(&key, &scope, mac, mac, sizeof(mac));
	assert_bits_matter(&key, &scope, mac, client, sizeof(client));
	assert_bits_matter(&key, &scope, mac, server, sizeof(server));
	assert_bits_matter(&key, &scope, mac, ends, sizeof(ends));
	np_auth_prove(&key, NP_AUTH_CLIENT, &loose, mac);
	assert_true(np_auth_check(&key, NP_AUTH_CLIENT, &loose, mac));
	assert_false(np_auth_check(&key, NP_AUTH_CLIENT, &scope, mac));
}

#else

/* What the library is not there to prove, nobody may pass for having proved. */
TEST(without_the_library_no_proof_holds)
{
	struct np_auth_key key = key_of("0123456789abcdef");
	uint8_t zeros[NP_AUTH_BYTES] = { 0 };
	const struct np_auth_scope scope = { zeros, zeros, NULL };

	assert_false(np_auth_built());
	assert_false(np_auth_check(&key, NP_AUTH_CLIENT, &scope, zeros));
}

#endif

TEST(nonces_do_not_repeat)
{
	uint8_t nonces[64][NP_AUTH_BYTES];

	for (size_t i = 0; i < LEN(nonces); i++) {
		np_auth_nonce(nonces[i]);
		for (size_t n = 0; n < i; n++) {
			/* Not even by half: 16 bytes the same come once in 2^128. */
			assert_memory_not_equal(nonces[i], nonces[n], 16);
			assert_memory_not_equal(nonces[i] + 16, nonces[n] + 16, 16);
		}
	}
}

TEST(a_body_is_a_version_and_32_bytes)
{
	static const uint8_t head[] = { 0x50, 0x4c, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2 };
	struct np_head h = { .code = NP_AUTH_HELLO, .word = -1 };
	struct np_auth_body m = { .version = NP_AUTH_VERSION }, back;
	uint8_t frame[NP_FRAME_SIZE];
	struct np_wire w;
	struct np_err err;

	count_up(m.bytes, 1, 1);
	np_frame_put(frame, &h, np_auth_body_layout, &m);
	assert_memory_equal(frame, head, sizeof(head));
	for (size_t i = 0; i < NP_FRAME_SIZE - sizeof(head); i++) {
		assert_int_equal(frame[sizeof(head) + i], i < NP_AUTH_BYTES ? i + 1 : 0);
	}
	assert_int_equal(np_frame_get(frame, np_auth_body_layout, &back, &err), NP_OK);
	assert_int_equal(back.version, NP_AUTH_VERSION);
	assert_memory_equal(back.bytes, m.bytes, NP_AUTH_BYTES);
	assert_false(np_frame_is_text(frame, sizeof(frame)));

	/* One byte short: nothing half-read, and nothing written behind the end. */
	np_wire_read_from(&w, frame, 4 + NP_AUTH_BYTES - 1);
	np_auth_body_layout(&w, &back);
	assert_int_equal(np_wire_check(&w, &err), NP_EPEER);
	assert_has(err.msg, "nonce or mac");
	assert_int_equal(back.bytes[0] | back.bytes[NP_AUTH_BYTES - 1], 0);
	memset(frame, 0x77, sizeof(frame));
	np_wire_write_to(&w, frame, 4 + NP_AUTH_BYTES - 1);
	np_auth_body_layout(&w, &m);
	assert_int_equal(np_wire_check(&w, &err), NP_EPEER);
	assert_int_equal(frame[4], 0x77);
}

/* A file of n characters and what follows them. */
static void
make_key(char path[32], size_t n, const char *more, mode_t mode)
{
	char text[4096];

	assert_true(n + strlen(more) < sizeof(text));
	for (size_t i = 0; i < n; i++) {
		text[i] = (char)('a' + i % 26);
	}
	strcpy(text + n, more);
	temp_file(path, text, strlen(text), mode);
}

TEST(keys_are_lines_of_16_to_512_characters)
{
	static const struct {
		size_t n;
		const char *more;
		mode_t mode;
		const char *says; /* NULL: it is one */
	} rows[] = {
		{ 16, "", 0600, NULL },           { 16, "\n", 0600, NULL },
		{ 512, "", 0400, NULL },          { 512, "\nmore\n", 0600, NULL },
		{ 15, "", 0600, "16 to 512" },    { 15, "\nmore of it\n", 0600, "16 to 512" },
		{ 0, "", 0600, "16 to 512" },     { 513, "", 0600, "16 to 512" },
		{ 600, "\n", 0600, "16 to 512" }, { 32, "\n", 0644, "chmod 600" },
		{ 32, "\n", 0620, "chmod 600" },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_err err = { .code = NP_OK };
		struct np_auth_key key = { .count = 1 };
		char path[32];
		int rc;

		make_key(path, rows[i].n, rows[i].more, rows[i].mode);
		rc = np_auth_read_key(&key, path, &err);
		unlink(path);
		if (!np_auth_built()) {
			assert_int_equal(rc, NP_EUNSUP);
			assert_has(err.msg, "libsodium-dev");
			assert_int_equal(key.count, 0);
		} else if (rows[i].says == NULL) {
			assert_int_equal(rc, NP_OK);
			assert_int_equal(key.count, rows[i].n);
			assert_memory_equal(key.bytes, "abcdefghijklmnop", 16);
		} else {
			assert_int_equal(rc, NP_EUSAGE);
			assert_has(err.msg, path);
			assert_has(err.msg, rows[i].says);
			assert_int_equal(key.count, 0);
		}
	}
}

TEST_MAIN()
