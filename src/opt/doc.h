/*
 * Manual pages and shell completions out of the option tables, so that they cannot disagree with
 * the parser: a text written by hand, in which lines that begin with "@" are filled in.
 *
 *   @title NAME         a manual page's title line, of section 1
 *   @options TABLE      the options, for a manual page, under a heading for each scope, or in a
 * table without scopes for each group
 *   @words TABLE        the options as words: -t --test
 *   @case TABLE LETTER  the pattern of a case in a shell that matches this option: TABLE:-t |
 *                       TABLE:--test)
 *   @arguments TABLE    such a pattern of all options that must have an argument
 *   @files TABLE        likewise, of those whose argument names a file or a directory
 *   @choices TABLE      the cases in a shell for options that take one of a few words (a|b|c)
 *   @glued-files TABLE  of those that may have one, as --name=FILE
 *   @fish COMMAND TABLE a fish completion of each option
 *   @zsh FUNCTION TABLE each option for zsh's _arguments; for arguments that are no files the
 *                       function is called with TABLE:-t or TABLE:--test
 *   @list NAME          the names of a list, as words
 *   @names NAME         the names of a list, for a manual page
 *   @if NAME ... @end   a passage that stands there if NAME is in one of the lists
 */
#ifndef NP_OPT_DOC_H
#define NP_OPT_DOC_H

#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "opt/option.h"

struct np_doc_table {
	const char *name;
	const struct np_option *rows;
	size_t count;
	const char *const *scopes; /* what the bits of a row's scope mean; NULL: there are none */
	const char *const *groups; /* titles by a row's group, NULL behind the last; NULL: none */
};

struct np_doc_list {
	const char *name;
	const char *(*at)(size_t i); /* NULL behind the last */
};

struct np_doc {
	const char *package; /* with its version */
	const struct np_doc_table *tables;
	size_t table_count;
	const struct np_doc_list *lists;
	size_t list_count;
};

/*
 * Copy the text, filled in. NP_EUSAGE names the line that cannot be filled in, NP_ESYS means that
 * reading or writing failed.
 */
int np_doc_fill(const struct np_doc *doc, FILE *in, FILE *out, struct np_err *err);

/* The options of a table, as by @options; for tests. -1: a row's scope has a bit without a name. */
int np_doc_options(const struct np_doc_table *t, FILE *out);

#endif
