/*
 * The input of scripts/mkdoc for manual pages and completions: option tables and lists of names.
 * Columns are separated by tabs:
 *   package NAME        with its version
 *   table NAME          the lines below belong to this table
 *   group TITLE         of its groups, in the order of their numbers; or
 *   scope TITLE         of its scopes, in the order of their bits
 *   row LETTER NAME ARGUMENT CALLED RANGE PLACE HELP
 *                       an option. ARGUMENT is "needs", "may", "glued" (--name=VALUE) or "none",
 *                       CALLED its name; PLACE the number of its group, or the bits of its scope
 *   list NAME           the lines below belong to this list
 *   item NAME
 */
#ifndef NP_OPT_DOC_H
#define NP_OPT_DOC_H

#include <stddef.h>
#include <stdio.h>

#include "opt/option.h"

struct np_doc_table {
	const char *name;
	const struct np_option *rows;
	size_t count;
	const char *const *scopes; /* what the bits of a row's scope mean; NULL: there are none */
	const char *const *groups; /* titles by a row's group, NULL after the last; NULL: none */
};

struct np_doc_list {
	const char *name;
	const char *(*at)(size_t i); /* NULL after the last */
};

struct np_doc {
	const char *package; /* with its version */
	const struct np_doc_table *tables;
	size_t table_count;
	const struct np_doc_list *lists;
	size_t list_count;
};

/* Print all of it. Returns 0, or -1 with errno. */
int np_doc_print(const struct np_doc *doc, FILE *out);

#endif
