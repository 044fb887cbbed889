/*
 * Files that an operator names, opened so that another user of the machine can't put one of his
 * choice in their place. netserver opens its files as root, and some lie where anybody may write.
 */
#ifndef NP_BASE_TRUSTED_H
#define NP_BASE_TRUSTED_H

#include <stddef.h>

#include "base/err.h"

enum np_trusted {
	NP_TRUSTED_DIR,    /* a directory, for openat(2) */
	NP_TRUSTED_RULES,  /* to read: nobody but its owner and group may write it */
	NP_TRUSTED_SECRET, /* to read: nobody but its owner may read or write it, root or we */
	NP_TRUSTED_LOG     /* to append to, made with mode 0640 where there is none */
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
 * Returns the descriptor; -1 with err, whose message says what is wrong with which part of the path
 * and what to try: NP_EUSAGE for a file that is not trusted, NP_ESYS where the system refuses.
 */
int np_trusted_open(const char *path, enum np_trusted kind, struct np_err *err);

/*
 * The path from the root, for who leaves his directory; no link in it is resolved. NP_EUSAGE when
 * it has no room or is empty.
 */
int np_trusted_path(char *out, size_t size, const char *path, struct np_err *err);

#endif
