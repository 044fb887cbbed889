/* What option tables tell people: help texts, and the input of scripts/mkdoc. */
#ifndef NP_OPT_HELP_H
#define NP_OPT_HELP_H

#include <stdio.h>

#include "opt/option.h"

enum { NP_HELP_WIDTH = 80 };

/*
 * Print each row of a scope (as np_options_parse() takes it) with its help line, NP_HELP_WIDTH
 * columns wide, under the titles of groups. words: gives the row's text, or NULL to leave it out;
 * NULL: all rows have their own.
 */
void np_help_print(FILE *out, const struct np_option_table *t, unsigned scope,
		   const char *(*words)(const struct np_option *o, void *ctx), void *ctx);

/*
 * Print a line for each row of any scope that has a brief text. The left column has the given title
 * on the first line of all; title NULL: that of each group on the group's first line.
 */
void np_help_brief(FILE *out, const struct np_option_table *t, const char *title);

/* Print words from column `at` on, NP_HELP_WIDTH wide, after `used` columns. Ends the line. */
void np_help_fill(FILE *out, const char *text, int used, int at);

/* Write how an option is given, such as "-t name, --test". */
enum { NP_HELP_HOW = 96 };
void np_help_how(const struct np_option *o, char out[NP_HELP_HOW]);

/*
 * Print a table, or a list of names (at: NULL after the last), for manual pages and completions.
 * Columns are separated by tabs:
 *   table NAME          the lines below belong to this table
 *   scope TITLE         of its scopes, in the order of their bits; or, if it has none,
 *   group TITLE         of its groups, in the order of their numbers
 *   row LETTER NAME ARGUMENT CALLED RANGE PLACE HELP
 *                       an option. ARGUMENT is "needs", "may", "glued" (--name=VALUE) or "none",
 *                       CALLED its name; PLACE the bits of its scope, or the number of its group
 *   list NAME           the lines below belong to this list
 *   item NAME
 */
void np_doc_table(FILE *out, const char *name, const struct np_option_table *t);
void np_doc_list(FILE *out, const char *name, const char *(*at)(size_t i));

#endif
