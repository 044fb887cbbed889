/*
 * Files that an operator names, opened so that another user of the machine can't put one of his
 * choice in their place. netserver opens its files as root, and some lie where anybody may write.
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
	NP_TRUSTED_RULES,  /* to read: only its owner and group may write it */
	NP_TRUSTED_SECRET, /* to read: only its owner, root or we, may read or write it */
	NP_TRUSTED_OUTPUT  /* of np_trusted_find() */
};

/*
 * Open it, close-on-exec, without waiting (a FIFO's other end may be anybody's). The path is walked
 * directory by directory, each opened below the one before, and what was opened is what was looked
 * at:
 *
 * - a symbolic link is followed if root or we made it, whichever part of the path it is;
 * - in a directory that everybody may write to (/tmp) everything has to be root's or ours:
 *   directories, links, the file;
 * - a file is a regular one, which others can't write; in such a directory, and in one of another
 *   user's, it has one name only, since a hard link to a file of root's is as good as a symbolic
 *   one.
 *
 * Returns the descriptor; -1 with err. The message says what is wrong with which part of the path
 * and what to try: NP_EUSAGE for a file that is not trusted, NP_ESYS where the system refuses.
 */
int np_trusted_open(const char *path, enum np_trusted kind, struct np_err *err);

/* Where an output goes. */
struct np_trusted_spot {
	int dir;                 /* its directory, of an O_PATH descriptor to be closed; -1: none */
	char name[NAME_MAX + 1]; /* in it, no link but one of the kernel's own */
	bool is_there;           /* something */
	bool is_the_kernels;     /* below /proc, where names are links: /proc/self/fd/3 */
	struct stat seen;        /* what is there */
};

/*
 * Find where a file is to be written that the user of a command names, who may have links and pipes
 * in that place. Directories are walked as by np_trusted_open(), and the rules are those of
 * fs.protected_symlinks, _regular and _fifos whatever they are set to:
 *
 * - in a directory that everybody may write to, everything on the way and at its end has to be
 *   root's, ours or the directory's owner's, and a file has one name only;
 * - elsewhere all links are followed, and anything but a directory may be written.
 *
 * base/output.h writes there. Returns err->code as np_trusted_open() would.
 */
int np_trusted_find(const char *path, struct np_trusted_spot *spot, struct np_err *err);

/*
 * The absolute path, for a process that changes its directory; links are not resolved. NP_EUSAGE
 * for an empty path, or one without room.
 */
int np_trusted_path(char *out, size_t size, const char *path, struct np_err *err);

#endif
