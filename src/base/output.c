#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/trusted.h"

/* Tries to find an unused temporary name, and bytes of the name that it repeats. */
enum { TRIES = 16, KEPT = 200 };

/* np_trusted_find(), but a name with a slash at its end gets the error that open(2) has for it. */
static int
find_spot(const char *path, struct np_trusted_spot *spot, struct np_err *err)
{
	size_t len = strlen(path);

	*spot = (struct np_trusted_spot){ .dir = -1 };
	return len > 0 && path[len - 1] == '/' ? np_fail(err, NP_ESYS, EISDIR, "%s", path)
					       : np_trusted_find(path, spot, err);
}

/* Is a new file to take this name? Not that of a pipe, a device, or a link in /proc. */
static bool
is_replaced(const struct np_trusted_spot *s, enum np_output_how how)
{
	return how == NP_OUTPUT_REPLACE &&
	       (!s->is_there || (S_ISREG(s->seen.st_mode) && !s->is_the_kernels));
}

int
np_output_check(const char *path, enum np_output_how how, struct np_err *err)
{
	struct np_trusted_spot s;
	bool makes;

	if (find_spot(path, &s, err) != NP_OK) {
		return err->code;
	}
	/* Is a directory written to, or the file itself? */
	makes = !s.is_there || is_replaced(&s, how);
	/* AT_EACCESS: by the user and group that would create the file. */
	if (faccessat(s.dir, makes ? "." : s.name, makes ? W_OK | X_OK : W_OK, AT_EACCESS) != 0) {
		np_fail(err, NP_ESYS, errno, "write %s", path);
	}
	close(s.dir);
	return err->code;
}

/* Open exactly the file that was found, or create one where there was none. */
static int
open_in_place(const struct np_trusted_spot *s)
{
	int flags = O_WRONLY | O_NOCTTY | O_CLOEXEC | (s->is_the_kernels ? 0 : O_NOFOLLOW) |
		    (s->is_there ? 0 : O_CREAT | O_EXCL);
	int fd = openat(s->dir, s->name, flags, 0666), failed;
	struct stat st;

	if (fd < 0) {
		return -1;
	}
	failed = fstat(fd, &st) != 0 ? errno : 0;
	if (failed == 0 && s->is_there &&
	    (st.st_ino != s->seen.st_ino || st.st_dev != s->seen.st_dev)) {
		failed = EBUSY; /* it was replaced meanwhile */
	}
	if (failed == 0 && S_ISREG(st.st_mode) && ftruncate(fd, 0) != 0) {
		failed = errno;
	}
	if (failed != 0) {
		close(fd);
		errno = failed;
		return -1;
	}
	return fd;
}

int
np_output_open(struct np_output *o, const char *path, enum np_output_how how, struct np_err *err)
{
	struct np_trusted_spot s;
	int failed = 0;

	*o = (struct np_output){ .fd = -1, .dir = -1 };
	if (find_spot(path, &s, err) != NP_OK) {
		return err->code;
	}
	if (is_replaced(&s, how)) {
		failed = np_output_beside(o, s.dir, s.name,
					  s.is_there ? (int)(s.seen.st_mode & 0777) : -1);
	} else {
		o->fd = open_in_place(&s);
		failed = o->fd < 0 ? errno : 0;
	}
	close(s.dir);
	return failed != 0 ? np_fail(err, NP_ESYS, failed, "write %s", path) : NP_OK;
}

int
np_output_beside(struct np_output *o, int dir, const char *name, int mode)
{
	int failed = EEXIST;

	*o = (struct np_output){ .fd = -1, .dir = fcntl(dir, F_DUPFD_CLOEXEC, 0) };
	if (o->dir < 0) {
		return errno;
	}
	if (np_text_copy(o->name, sizeof(o->name), name) != 0) {
		failed = ENAMETOOLONG;
	}
	for (int i = 0; i < TRIES && failed == EEXIST; i++) {
		uint32_t number = 0;

		(void)!getrandom(&number, sizeof(number), GRND_NONBLOCK); /* else i alone */
		snprintf(o->beside, sizeof(o->beside), ".%.*s.%08x", KEPT, o->name,
			 number + (unsigned)i);
		o->fd = openat(o->dir, o->beside,
			       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		failed = o->fd < 0 ? errno : 0;
	}
	if (failed == 0 && mode >= 0 && fchmod(o->fd, (mode_t)mode) != 0) {
		failed = errno;
	}
	return failed != 0 ? np_output_end(o, failed) : 0;
}

int
np_output_end(struct np_output *o, int failed)
{
	if (o->fd >= 0 && close(o->fd) != 0 && failed == 0) {
		failed = errno;
	}
	if (o->dir >= 0) {
		if (failed == 0 && renameat(o->dir, o->beside, o->dir, o->name) != 0) {
			failed = errno;
		}
		if (failed != 0) {
			unlinkat(o->dir, o->beside, 0);
		}
		close(o->dir);
	}
	o->fd = o->dir = -1;
	return failed;
}

int
np_output_fill(struct np_output *o, int (*put)(FILE *out, const void *ctx), const void *ctx)
{
	FILE *out = fdopen(o->fd, "w");
	int failed = out == NULL ? errno : 0;

	if (out != NULL) {
		errno = 0;
		if (put(out, ctx) != 0 || ferror(out)) {
			failed = errno != 0 ? errno : EIO;
		}
		if (fclose(out) != 0 && failed == 0) {
			failed = errno;
		}
		o->fd = -1;
	}
	return np_output_end(o, failed);
}
