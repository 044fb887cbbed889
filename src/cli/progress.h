/*
 * The progress line shows on standard error how far a test is. A thread of its own draws it four
 * times a second; it is gone when the test is over. Where no line is drawn there is no thread, and
 * np_progress_begin() returns NULL, which all functions accept.
 */
#ifndef NP_CLI_PROGRESS_H
#define NP_CLI_PROGRESS_H

#include <stdio.h>

#include "cli/args.h"
#include "run/live.h"

struct np_shown; /* a line that may be drawn */

/*
 * Draw from now on, for a test whose options are settled. NULL: --progress or the terminal forbid
 * it, or there is no memory. Signals that end or stop the program are blocked in this thread
 * afterwards. The line's thread receives them, erases the line, and raises them again.
 */
struct np_shown *np_progress_begin(const struct np_cli *cli);

/* Where the test's sessions say what they do. NULL: nowhere. */
struct np_live *np_progress_live(const struct np_shown *s);

/* The caller handles SIGINT, SIGTERM and SIGALRM from now on. */
void np_progress_leave_signals(struct np_shown *s);

/* The test waits for this number of seconds (-s); 0: the wait is over. */
void np_progress_wait(struct np_shown *s, double seconds);

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

/* Call this when all sessions have left their seats. */
void np_progress_free(struct np_shown *s);

#endif
