#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"

#ifdef HAVE_SODIUM
#include <sodium.h>
#endif

/*
 * Who may read the file could as well be told; and so could its owner, who can change its mode at
 * any time.
 */
static int
check_file(int fd, struct np_err *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0) {
		return np_fail(err, NP_ESYS, errno, "look at the file");
	}
	if (!S_ISREG(st.st_mode)) {
		return np_fail(err, NP_EUSAGE, 0, "not a regular file");
	}
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		return np_fail(err, NP_EUSAGE, 0, "the file is another user's (try chown %ld)",
			       (long)geteuid());
	}
	if ((st.st_mode & 066) != 0) {
		return np_fail(err, NP_EUSAGE, 0,
			       "others may read or write the file (try chmod 600)");
	}
	return NP_OK;
}

static int
read_line(int fd, void *line, size_t size, size_t *count, struct np_err *err)
{
	const uint8_t *end;
	ssize_t n = read(fd, line, size);

	if (n < 0) {
		return np_fail(err, NP_ESYS, errno, "read the file");
	}
	end = memchr(line, '\n', (size_t)n);
	*count = end != NULL ? (size_t)(end - (const uint8_t *)line) : (size_t)n;
	np_secret_wipe((uint8_t *)line + *count, size - *count);
	return NP_OK;
}

int
np_secret_read(const char *path, void *line, size_t size, size_t *count, struct np_err *err)
{
	/* Whoever put a FIFO there must not make us wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int rc;

	if (fd < 0) {
		return np_fail(err, NP_ESYS, errno, "open %s", path);
	}
	rc = check_file(fd, err);
	rc = rc == NP_OK ? read_line(fd, line, size, count, err) : rc;
	close(fd);
	return rc == NP_OK ? rc : (np_fail_in(err, path), rc);
}

bool
np_secret_equal(const void *a, const void *b, size_t n)
{
#ifdef HAVE_SODIUM
	return sodium_memcmp(a, b, n) == 0;
#else
	const volatile uint8_t *x = a, *y = b;
	unsigned difference = 0;

	for (size_t i = 0; i < n; i++) {
		difference |= (unsigned)(x[i] ^ y[i]);
	}
	return difference == 0;
#endif
}

void
np_secret_wipe(void *bytes, size_t n)
{
	explicit_bzero(bytes, n);
}

void
np_secret_hide(char *word)
{
	size_t n = strlen(word);

	np_secret_wipe(word, n);
	if (n > 0) {
		word[0] = '*';
	}
}
