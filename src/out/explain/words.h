/*
 * Figures as the sentences of an explanation have them. What is not known, or no figure, is "?".
 */
#ifndef NP_OUT_EXPLAIN_WORDS_H
#define NP_OUT_EXPLAIN_WORDS_H

#include "out/explain.h"

struct np_word {
	char text[32];
};

struct np_words {
	char text[200];
};

struct np_word np_rate_words(double bps);
struct np_word np_time_words(double us);
struct np_word np_size_words(double bytes);
struct np_word np_count_words(double n);
struct np_word np_window_words(double segments);

/* A share in percent: as many digits as tell it from none and from all. */
struct np_word np_share_words(double share);

/* Another part of a text, behind "; ". */
void np_explain_add(char text[NP_EXPLAIN_TEXT], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
