/*
 * What a bag of values holds, or the test fails and says what it has.
 */
#ifndef NP_TESTS_BAGS_H
#define NP_TESTS_BAGS_H

#include "base/bag.h"

/* For FREED_BY(). */
void free_bag(struct np_bag **b);

/* A number, of either kind, to 1e-9. */
void assert_number(const struct np_bag *b, const char *name, double want);

/* Nothing of that name. */
void assert_none(const struct np_bag *b, const char *name);

/*
 * Values of names that begin with `prefix`: numbers, to 1e-12 of each, lists of integers, and of
 * what must not be there none: "a=1 b.c=2*30+0.5 list=[1,2] d=none". The rest is as for printf().
 */
#define assert_bag(b, prefix, ...) assert_bag_at(__FILE__, __LINE__, b, prefix, __VA_ARGS__)
void assert_bag_at(const char *file, int line, const struct np_bag *b, const char *prefix,
		   const char *format, ...) __attribute__((format(printf, 5, 6)));

/* A value that could not be read, for a reason that has these words in it. */
void assert_unread(const struct np_bag *b, const char *name, const char *why);

#endif
