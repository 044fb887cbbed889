#include "base/secret.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/trusted.h"

int
np_secret_read(const char *path, void *line, size_t size, size_t *count, struct np_err *err)
{
	int fd = np_trusted_open(path, NP_TRUSTED_SECRET, err);
	const uint8_t *end;
	ssize_t n;

	if (fd < 0) {
		return err != NULL ? err->code : NP_EUSAGE;
	}
	n = read(fd, line, size);
	if (n < 0) {
		np_fail(err, NP_ESYS, errno, "%s: read the file", path);
		close(fd);
		return NP_ESYS;
	}
	close(fd);
	end = memchr(line, '\n', (size_t)n);
	*count = end != NULL ? (size_t)(end - (const uint8_t *)line) : (size_t)n;
	explicit_bzero((uint8_t *)line + *count, size - *count);
	return NP_OK;
}

int
np_secret_passphrase(const char *path, char *text, size_t size, struct np_err *err)
{
	size_t count;

	text[0] = '\0';
	if (np_secret_read(path, text, size, &count, err) != NP_OK) {
		return err->code;
	}
	if (text[0] == '\0' || count == size) {
		explicit_bzero(text, size);
		return np_usage(err, "%s: a passphrase has 1 to %zu characters", path, size - 1);
	}
	return NP_OK;
}

bool
np_secret_equal(const void *a, const void *b, size_t n)
{
	const volatile uint8_t *x = a, *y = b;
	unsigned difference = 0;

	for (size_t i = 0; i < n; i++) {
		difference |= (unsigned)(x[i] ^ y[i]);
	}
	return difference == 0;
}

void
np_secret_hide(char *word)
{
	size_t n = strlen(word);

	explicit_bzero(word, n);
	if (n > 0) {
		word[0] = '*';
	}
}
