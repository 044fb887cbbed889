/*
 * What a bag of values holds, or the test fails and says what it has.
 */
#ifndef NP_TESTS_BAGS_H
#define NP_TESTS_BAGS_H

#include "base/bag.h"

/* For FREED_BY(). */
void free_bag(struct np_bag **b);

/*
 * Values in words, "NAME=VALUE NAME=VALUE": a number, a list [1,2,3], a text 'in quotes', or ? for
 * what could not be read. A list ends with its last number, or has `least` numbers: that number
 * again, or larger by a step each, "[0+0.1]". Numbers are integers unless they are written
 * otherwise.
 */
#define bag_of(...) put_bag(np_bag_new(), __VA_ARGS__)
#define put_bag(b, ...) put_lists(b, 0, __VA_ARGS__)
struct np_bag *put_lists(struct np_bag *b, size_t least, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A number, of either kind, to 1e-9. */
void assert_number(const struct np_bag *b, const char *name, double want);

/* A sum of products and quotients, "3*1460+7/2"; NAN if the text is none, or it is not finite. */
double computed(const char *text);

/*
 * Values of names that begin with `prefix`: numbers, to the last bit, lists of integers, texts,
 * what is unread, with words of the reason if they matter, and of what must not be there none:
 * "a=1 b.c=2*30+0.5 list=[1,2] t='x' u=? v=?'why' d=none". The rest is as for printf().
 */
#define assert_bag(b, prefix, ...) assert_bag_at(__FILE__, __LINE__, b, prefix, __VA_ARGS__)
void assert_bag_at(const char *file, int line, const struct np_bag *b, const char *prefix,
		   const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
