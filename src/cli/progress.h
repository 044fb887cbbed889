/*
 * The progress line shows on standard error how far a test is, four times a second; it is gone when
 * the test is over. The thread that waits draws it (run/live.h). Where no line is drawn
 * np_progress_begin() returns NULL, which all functions accept.
 */
#ifndef NP_CLI_PROGRESS_H
#define NP_CLI_PROGRESS_H

#include <stdatomic.h>
#include <stdio.h>

#include "cli/args.h"
#include "run/live.h"

struct np_shown; /* a line that may be drawn */

/*
 * Draw from now on, for a test with settled options. NULL: --progress or the terminal forbid
 * it, or there is no memory. *drawn is 0, or the descriptor by which it is there.
 */
struct np_shown *np_progress_begin(const struct np_cli *cli, atomic_int *drawn);

/* Erase it, if it is there. Also in the handler of a signal that ends or stops the program. */
void np_progress_erase(atomic_int *drawn);

/* Where the test's client says what it does. NULL: nowhere. */
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
