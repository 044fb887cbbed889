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
 * Read a file's first line without its newline; *count is its length, and zeros fill the rest. A
 * line of `size` bytes may have been longer in the file. Only a regular file of ours or root's that
 * no one else may read or write (mode 0600, NP_TRUSTED_SECRET) is read: NP_EUSAGE says what to do;
 * NP_ESYS if reading fails. The message names the file.
 */
int np_secret_read(const char *path, void *line, size_t size, size_t *count, struct np_err *err);

/* The same for a passphrase: NP_EUSAGE unless the line has 1 to size - 1 characters. */
int np_secret_passphrase(const char *path, char *text, size_t size, struct np_err *err);

/* Are the two the same? Takes the same time wherever they differ. */
bool np_secret_equal(const void *a, const void *b, size_t n);

/* Overwrite bytes; the compiler does not remove it, even if nothing reads them again. */
void np_secret_wipe(void *bytes, size_t n);

/*
 * Replace a word of the command line by "*", so that ps(1) doesn't show it. Its length can still be
 * seen in /proc.
 */
void np_secret_hide(char *word);

#endif
