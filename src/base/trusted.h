/* Open files that an operator names, so that no other user can substitute them, even for root. */
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
 * Open it, close-on-exec, not waiting for a FIFO's other end. Directories are opened one below the
 * other, so that nothing is replaced between a check and its use:
 *
 * - a symbolic link anywhere in the path is followed if root or we own it;
 * - in a world-writable directory (/tmp), links, directories and the file must be root's or ours;
 * - the file has to be a regular one that others can't write; in such a directory, and in another
 *   user's, it may have one name only, as others can hard-link root's files.
 *
 * The descriptor, or -1: NP_EUSAGE, which part is not trusted and what to try, or NP_ESYS.
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
 * Find the place of a file to write, as np_trusted_open() walks, but links and pipes may be there,
 * by the rules of fs.protected_symlinks, _regular and _fifos, even where these are off:
 *
 * - in a world-writable directory, each part of the path has to be root's, ours or the directory's
 *   owner's, and a file may have one name only;
 * - elsewhere all links are followed, and anything but a directory may be written.
 *
 * base/output.h writes there. NP_OK, NP_EUSAGE or NP_ESYS, as np_trusted_open().
 */
int np_trusted_find(const char *path, struct np_trusted_spot *spot, struct np_err *err);

/* The absolute path, before chdir(2); links stay. NP_EUSAGE: it is empty or too long. */
int np_trusted_path(char *out, size_t size, const char *path, struct np_err *err);

#endif
