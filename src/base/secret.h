/* Keys and passphrases: read from their owner's files, compared in constant time, and wiped. */
#ifndef NP_BASE_SECRET_H
#define NP_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * Read a file's first line, without newline, padded with zeros; *count: its length, `size` if
 * perhaps longer. Only a regular file, ours or root's, mode 0600 (NP_TRUSTED_SECRET): else
 * NP_EUSAGE says what to do. NP_ESYS. The message names the file.
 */
int np_secret_read(const char *path, void *line, size_t size, size_t *count, struct np_err *err);

/* np_secret_read() for a passphrase: NP_EUSAGE unless it has 1 to size - 1 characters. */
int np_secret_passphrase(const char *path, char *text, size_t size, struct np_err *err);

/* Are the two the same? Takes the same time wherever they differ. */
bool np_secret_equal(const void *a, const void *b, size_t n);

/* Overwrite a command line's word by "*" for ps(1). /proc still shows its length. */
void np_secret_hide(char *word);

#endif
