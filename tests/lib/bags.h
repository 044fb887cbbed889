/*
 * What a bag of values holds, or the test fails and says what it has.
 */
#ifndef NP_TESTS_BAGS_H
#define NP_TESTS_BAGS_H

#include "base/bag.h"

/* A number, of either kind, to 1e-9. */
void assert_number(const struct np_bag *b, const char *name, double want);

/* Nothing of that name. */
void assert_none(const struct np_bag *b, const char *name);

/* A value that could not be read, for a reason that has these words in it. */
void assert_unread(const struct np_bag *b, const char *name, const char *why);

#endif
