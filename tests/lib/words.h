/*
 * Command lines and option tables.
 */
#ifndef NP_TESTS_WORDS_H
#define NP_TESTS_WORDS_H

#include <stddef.h>

#include "opt/option.h"

/* A command line as main() gets it; at[0] is the program's name. */
struct words {
	char text[512];
	char *at[64];
	int count;
};

/* Split at single blanks. An empty line is the program's name alone. */
void words_split(struct words *w, const char *line);

/*
 * What holds for every option table: letters and long names are unique, every row has its help and
 * a place or a setter for its value, and the usage text shows each row. ctx is what the table
 * fills.
 */
void assert_table_in_order(const struct np_option_table *t, void *ctx);

/* Each row has one of the groups. */
void assert_groups(const struct np_option_table *t);

#endif
