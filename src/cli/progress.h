/*
 * The progress line on standard error. The thread that waits (run/live.h) draws it four times a
 * second. np_progress_begin() returns NULL if there is none, which all functions accept.
 */
#ifndef NP_CLI_PROGRESS_H
#define NP_CLI_PROGRESS_H

#include <stdatomic.h>
#include <stdio.h>

#include "cli/args.h"
#include "run/live.h"

struct np_shown; /* a line that may be drawn */

/*
 * Begin, for a test with settled options. NULL: --progress or the terminal do not allow a line, or
 * memory ran out. *drawn is 0, or the descriptor on which the line is visible.
 */
struct np_shown *np_progress_begin(const struct np_cli *cli, atomic_int *drawn);

/* Erase the line, if it is visible. May be called by a signal handler. */
void np_progress_erase(atomic_int *drawn);

/* What the test's client reports its steps to; NULL: to nothing. */
struct np_live *np_progress_live(struct np_shown *s);

/* This iteration begins, from 1 on. Has no effect where a test runs once. */
void np_progress_iteration(struct np_shown *s, unsigned number);

/*
 * Call these before and after writing to `to`, standard output or error, while the line may be
 * there: it is erased first, and drawn again afterwards. Calls may be nested.
 */
void np_progress_pause(struct np_shown *s, FILE *to);
void np_progress_resume(struct np_shown *s, FILE *to);

/* Erase the line for good. Twice is the same as once. */
void np_progress_end(struct np_shown *s);

void np_progress_free(struct np_shown *s);

#endif
