/*
 * Keys and passphrases: read from files that only their owner can read, compared in constant time,
 * and wiped when they are no longer needed.
 */
#ifndef NP_BASE_SECRET_H
#define NP_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * Read a file's first line into line, without its newline and filled up with zeros; *count says how
 * long it is. One that takes all of size bytes may have been longer. The file has to be a regular
 * one of ours or root's that only its owner may read or write (mode 0600), see NP_TRUSTED_SECRET:
 * NP_EUSAGE says what to do; NP_ESYS when it can't be read. The message names the file.
 */
int np_secret_read(const char *path, void *line, size_t size, size_t *count, struct np_err *err);

/* The same of a passphrase: NP_EUSAGE unless the line has 1 to size - 1 characters. */
int np_secret_passphrase(const char *path, char *text, size_t size, struct np_err *err);

/* Are the two the same? Takes the same time wherever they differ. */
bool np_secret_equal(const void *a, const void *b, size_t n);

/* Overwrite, even where a compiler sees that it is not read again. */
void np_secret_wipe(void *bytes, size_t n);

/*
 * Overwrite a word of the command line, so that ps(1) doesn't show it: what is left is "*", or
 * nothing of an empty one. How long it was can still be seen in /proc.
 */
void np_secret_hide(char *word);

#endif
