/*
 * Open files that an operator names, so that another user of the machine can't substitute one.
 * netserver opens its files as root, and some are in world-writable directories.
 */
#ifndef NP_BASE_TRUSTED_H
#define NP_BASE_TRUSTED_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"

enum np_trusted {
	NP_TRUSTED_DIR,    /* a directory, for openat(2) */
	NP_TRUSTED_RULES,  /* a file to read that only its owner and group may write */
	NP_TRUSTED_SECRET, /* a file to read, ours or root's, that others may not read or write */
	NP_TRUSTED_OUTPUT  /* a file to write; for np_trusted_find() alone */
};

/*
 * Open it, close-on-exec, without waiting for the other end of a FIFO. The path is walked directory
 * by directory, each opened below the one before, so that nothing is replaced between a check and
 * its use:
 *
 * - a symbolic link anywhere in the path is followed if root or we own it;
 * - in a world-writable directory (/tmp), links, directories and the file must be root's or ours;
 * - the file has to be a regular one that others can't write; in such a directory, and in another
 *   user's, it may have one name only, since another user can make a hard link to root's files.
 *
 * Returns the descriptor; -1 with err. The message says what is wrong with which part of the path
 * and what to try: NP_EUSAGE for a file that is not trusted, NP_ESYS where the system refuses.
 */
int np_trusted_open(const char *path, enum np_trusted kind, struct np_err *err);

/* The place of a file to be written. */
struct np_trusted_spot {
	int dir;                 /* O_PATH descriptor of its directory, to be closed; -1: none */
	char name[NAME_MAX + 1]; /* its name there; not a link, except in /proc */
	bool is_there;           /* something has this name already */
	bool is_the_kernels;     /* it is in /proc, where names are links: /proc/self/fd/3 */
	struct stat seen;        /* of what has the name */
};

/*
 * Find the place of a file that the user of a command wants written; links and pipes may be there.
 * Directories are walked as by np_trusted_open(), with the rules of the kernel's settings
 * fs.protected_symlinks, _regular and _fifos, even where these are off:
 *
 * - in a world-writable directory, each part of the path has to be root's, ours or the directory's
 *   owner's, and a file may have one name only;
 * - elsewhere all links are followed, and anything but a directory may be written.
 *
 * base/output.h writes there. Returns err->code as np_trusted_open() would.
 */
int np_trusted_find(const char *path, struct np_trusted_spot *spot, struct np_err *err);

/*
 * The absolute path, for a process that changes its directory; links are not resolved. NP_EUSAGE
 * for a path that is empty or too long.
 */
int np_trusted_path(char *out, size_t size, const char *path, struct np_err *err);

#endif
