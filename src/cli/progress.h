/*
 * The progress line: where a test stands, on standard error, drawn four times a second by a thread
 * of its own and gone when the test is over. Where none is to be drawn there is no thread, and a
 * NULL in its place, which all functions take.
 */
#ifndef NP_CLI_PROGRESS_H
#define NP_CLI_PROGRESS_H

#include <stdio.h>

#include "cli/args.h"
#include "run/live.h"

struct np_shown; /* a line that may be drawn */

/*
 * Draw from now on, of a test whose options are settled. NULL: --progress, the terminal or want of
 * memory say no. SIGINT, SIGTERM and others that end or stop the program are blocked in this
 * thread then; the line's thread takes them, erases the line, and lets them do what they do.
 */
struct np_shown *np_progress_begin(const struct np_cli *cli);

/* Where the test's sessions say what they do. NULL: nowhere. */
struct np_live *np_progress_live(const struct np_shown *s);

/* SIGINT, SIGTERM and SIGALRM are the caller's from now on. */
void np_progress_leave_signals(struct np_shown *s);

/* The user has the test wait for so many seconds; 0: that is over. */
void np_progress_wait(struct np_shown *s, double seconds);

/* The number of the iteration that begins, from 1 on, of a test that is repeated. */
void np_progress_iteration(struct np_shown *s, unsigned number);

/*
 * Around whatever is written to `to`, standard output or error, while the line may be there: it is
 * erased first, and drawn again behind that. May be nested.
 */
void np_progress_pause(struct np_shown *s, FILE *to);
void np_progress_resume(struct np_shown *s, FILE *to);

/* Erase the line for good. Twice is the same as once. */
void np_progress_end(struct np_shown *s);

/* After np_progress_end(), and when all sessions have left their seats. */
void np_progress_free(struct np_shown *s);

#endif
