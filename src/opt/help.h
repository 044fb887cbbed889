/* Help texts from the option tables: all options by group, or the most used ones in short. */
#ifndef NP_OPT_HELP_H
#define NP_OPT_HELP_H

#include <stdio.h>

#include "opt/option.h"

enum { NP_HELP_WIDTH = 80 };

struct np_help {
	const struct np_option *rows;
	size_t count;
	const char *const *groups; /* titles by a row's group, NULL after the last */
	unsigned scope;            /* as np_options_parse() takes it */
	/* The row's text, or NULL to leave it out. NULL: all rows have their own. */
	const char *(*words)(const struct np_option *o, void *ctx);
	void *ctx;
};

/* Print each row with its help line, NP_HELP_WIDTH columns wide, under the titles of groups. */
void np_help_print(FILE *out, const struct np_help *h);

/*
 * Print a line for each row of any scope that has a brief text. The left column has the given title
 * on the first line of all; title NULL: that of each group on the group's first line.
 */
void np_help_brief(FILE *out, const struct np_help *h, const char *title);

/* Print words from column `at` on, NP_HELP_WIDTH wide, after `used` columns. Ends the line. */
void np_help_fill(FILE *out, const char *text, int used, int at);

/* Write how an option is given, such as "-t name, --test". */
enum { NP_HELP_HOW = 96 };
void np_help_how(const struct np_option *o, char out[NP_HELP_HOW]);

#endif
