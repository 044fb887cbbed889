/*
 * Secrets: which files they are read from, how they are compared and overwritten.
 */
#include "base/secret.h"

#include <sys/stat.h>

#include "tests/lib/check.h"
#include "tests/lib/root.h"

TEST(the_first_line_is_read)
{
	static const struct {
		const char *text;
		size_t n;
		const char *line;
		size_t count;
	} rows[] = {
		{ "", 0, "", 0 },
		{ "\n", 1, "", 0 },
		{ "sesame", 6, "sesame", 6 },
		{ "sesame\n", 7, "sesame", 6 },
		{ "sesame\nx", 8, "sesame", 6 },
		{ "sesam e ", 8, "sesam e ", 8 },
		{ "12345678\n", 9, "12345678", 8 },
		{ "123456789", 9, "12345678", 8 },
		{ "a\0b\n", 4, "a\0b", 3 },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		static const char zeros[8];
		struct np_err err = { .code = NP_OK };
		char path[32], line[8];
		size_t count = 99;

		memset(line, '#', sizeof(line));
		temp_file(path, rows[i].text, rows[i].n, 0600);
		assert_int_equal(np_secret_read(path, line, sizeof(line), &count, &err), NP_OK);
		assert_int_equal(count, rows[i].count);
		assert_memory_equal(line, rows[i].line, count);
		assert_memory_equal(line + count, zeros, sizeof(line) - count);
		unlink(path);
	}
}

static void
assert_refused(const char *path, enum np_errc code, const char *says)
{
	struct np_err err = { .code = NP_OK };
	char line[8];
	size_t count;

	assert_int_equal(np_secret_read(path, line, sizeof(line), &count, &err), code);
	assert_has(err.msg, path);
	assert_has(err.msg, says);
}

TEST(a_passphrase_is_neither_empty_nor_cut)
{
	static const struct {
		const char *text;
		size_t n;
		enum np_errc code;
	} rows[] = {
		{ "sesame\n", 7, NP_OK },    { "1234567", 7, NP_OK },
		{ "", 0, NP_EUSAGE },        { "\n", 1, NP_EUSAGE },
		{ "\0abc\n", 5, NP_EUSAGE }, { "12345678\n", 9, NP_EUSAGE },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_err err = { .code = NP_OK };
		char path[32], text[8];

		temp_file(path, rows[i].text, rows[i].n, 0600);
		assert_int_equal(np_secret_passphrase(path, text, sizeof(text), &err),
				 rows[i].code);
		assert_int_equal(strncmp(text, rows[i].text, strlen(text)), 0);
		unlink(path);
	}
}

/* Which these are stands in test_trusted.c. */
TEST(a_file_that_is_not_to_be_trusted_is_refused)
{
	char path[32], line[8];
	size_t count;

	temp_file(path, "sesame", 6, 0640);
	assert_refused(path, NP_EUSAGE, "chmod 600");
	assert_int_equal(np_secret_read(path, line, sizeof(line), &count, NULL), NP_EUSAGE);
	assert_int_equal(chmod(path, 0400), 0);
	assert_int_equal(np_secret_read(path, line, sizeof(line), &count, NULL), NP_OK);
	unlink(path);
	assert_refused(path, NP_ESYS, "No such file");
}

TEST(every_bit_counts_when_compared)
{
	uint8_t a[40], b[40];

	memset(a, 0x5a, sizeof(a));
	memcpy(b, a, sizeof(b));
	assert_true(np_secret_equal(a, b, sizeof(a)));
	assert_true(np_secret_equal(a, b, 0));
	for (size_t bit = 0; bit < 8 * sizeof(a); bit++) {
		b[bit / 8] ^= (uint8_t)(1U << bit % 8);
		assert_false(np_secret_equal(a, b, sizeof(a)));
		assert_true(np_secret_equal(a, b, bit / 8));
		b[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
}

TEST(a_hidden_word_leaves_a_star)
{
	static const char left[] = "*\0\0\0\0\0";
	char word[] = "sesame", empty[] = "";

	np_secret_hide(word);
	assert_memory_equal(word, left, sizeof(word));
	np_secret_hide(empty);
	assert_string_equal(empty, "");
}

TEST_MAIN()
