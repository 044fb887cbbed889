/*
 * Files that a program writes for its user: not where another user has put something in their place
 * (base/trusted.h), and whole where they are replaced.
 */
#ifndef NP_BASE_OUTPUT_H
#define NP_BASE_OUTPUT_H

#include <limits.h>
#include <stdio.h>

#include "base/err.h"

/* Whether a file is written where it is, or another one takes its place when that is complete. What
 * is no file (a pipe, a device) is written to in any case. */
enum np_output_how { NP_OUTPUT_IN_PLACE, NP_OUTPUT_REPLACE };

struct np_output {
	int fd;  /* to write to, close-on-exec */
	int dir; /* -1: it is written in place */
	char name[NAME_MAX + 1], beside[NAME_MAX + 1];
};

/* Could that file be written now? Nothing is made or changed. Returns err->code. */
int np_output_check(const char *path, enum np_output_how how, struct np_err *err);

/* Open it, empty. A new one has the mode that umask(2) leaves, another one that of the file that it
 * is to replace. Returns err->code. */
int
np_output_open(struct np_output *o, const char *path, enum np_output_how how, struct np_err *err);

/* A file of that mode, -1 for what umask(2) leaves, that is to replace that name in that directory.
 * Its own name begins with a dot. Returns 0, or the errno. */
int np_output_beside(struct np_output *o, int dir, const char *name, int mode);

/* Close the descriptor unless it is -1, which the caller sets when it did, and put the file in its
 * place, or remove it if writing failed (an errno) or this does. Returns 0, or the first errno. */
int np_output_end(struct np_output *o, int failed);

/* Have put() write all of it, which returns 0 or, beside the stream's own faults, -1; and end it.
 * Returns 0, or the first errno. */
int np_output_fill(struct np_output *o, int (*put)(FILE *out, const void *ctx), const void *ctx);

#endif
