#include "cli/place.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* By the user and group that files are made as. */
static int
may(const char *path, int what)
{
	return faccessat(AT_FDCWD, path, what, AT_EACCESS) == 0 ? 0 : errno;
}

static int
directory_lacks(const char *path)
{
	char *copy = strdup(path);
	int lacks = copy != NULL ? may(dirname(copy), W_OK | X_OK) : ENOMEM;

	free(copy);
	return lacks;
}

/* There is no such file. A link that leads nowhere is accepted where it is written through. */
static int
new_one_lacks(const char *path, bool replaced)
{
	size_t len = strlen(path);
	struct stat st;

	if (len > 0 && path[len - 1] == '/') {
		return EISDIR;
	}
	return replaced || lstat(path, &st) != 0 ? directory_lacks(path) : 0;
}

int
np_place_lacks(const char *path, bool replaced)
{
	struct stat st;
	char *real;
	int lacks;

	if (stat(path, &st) != 0) {
		return errno == ENOENT ? new_one_lacks(path, replaced) : errno;
	}
	if (S_ISDIR(st.st_mode)) {
		return EISDIR;
	}
	if (!replaced || !S_ISREG(st.st_mode)) {
		return may(path, W_OK);
	}
	real = realpath(path, NULL);
	lacks = directory_lacks(real != NULL ? real : path);
	free(real);
	return lacks;
}
