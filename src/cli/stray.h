/*
 * What netperf passes over without a word: words that belong to no option, output selectors that
 * name no figure, units that are none. We pass over them as well, and say so.
 */
#ifndef NP_CLI_STRAY_H
#define NP_CLI_STRAY_H

#include "base/err.h"
#include "base/text.h"

struct np_cli;

struct np_word_list {
	int count;
	char **at;
};

/*
 * Of the words that the parser found to be no options, those before a -- or those behind it. given:
 * the same words, and all others, in the order that the user gave them in.
 */
void np_stray_words(struct np_cli *cli, const struct np_word_list *stray, int of_test,
		    const struct np_word_list *given);

/* Of options before a -- with a value that can't be meant there, as the test has an option like it.
 */
void np_stray_options(struct np_cli *cli);

/* Of options that the test has no use for, once it is settled which test that is. */
void np_stray_settled(struct np_cli *cli);

/* An option before a -- that is none there: err says so if the test has one like it. */
void np_stray_letter(struct np_err *err);

/* An option that read a document before netreport did: err names netreport's. */
void np_stray_reader(struct np_cli *cli, struct np_err *err);

/* Of the list of selectors and the unit that were asked for. */
void np_stray_names(struct np_cli *cli);

/* The error of selectors of which none exists. NP_EUSAGE: a list; else a word that is no file
 * either.
 */
int np_stray_selectors(const char *list, enum np_errc code, struct np_err *err);

/* Which test's name is most like it, as np_nearest_text() puts it. */
const char *np_stray_test(const char *name, char out[NP_NEAREST_TEXT]);

#endif
