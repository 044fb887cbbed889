/* Files for the user: never written into another user's (base/trusted.h), never half replaced. */
#ifndef NP_BASE_OUTPUT_H
#define NP_BASE_OUTPUT_H

#include <limits.h>
#include <stdio.h>

#include "base/err.h"

/* Written in place, or replaced once complete? Pipes and devices are written in either case. */
enum np_output_how { NP_OUTPUT_IN_PLACE, NP_OUTPUT_REPLACE };

struct np_output {
	int fd;  /* to write to, close-on-exec */
	int dir; /* its directory; -1: it is written in place */
	char name[NAME_MAX + 1], beside[NAME_MAX + 1]; /* its name, and the temporary one */
};

/* Could the file be written now? Changes nothing. Returns err->code. */
int np_output_check(const char *path, enum np_output_how how, struct np_err *err);

/* Open it, empty, with the mode of the file that it replaces, or umask(2)'s. Returns err->code. */
int
np_output_open(struct np_output *o, const char *path, enum np_output_how how, struct np_err *err);

/* Open a temporary file that is to replace `name` in that directory, where its name begins with a
 * dot. mode -1: what umask(2) leaves. Returns 0, or the errno. */
int np_output_beside(struct np_output *o, int dir, const char *name, int mode);

/* Close o->fd (-1: the caller did), and rename the temporary file; or remove it if that, or the
 * caller's writing, failed (an errno). Returns 0, or the first errno. */
int np_output_end(struct np_output *o, int failed);

/* Have put() (0 or -1) write it, then end it. Also checks the stream. Returns 0 or an errno. */
int np_output_fill(struct np_output *o, int (*put)(FILE *out, const void *ctx), const void *ctx);

#endif
