/*
 * What netperf passes over without a word: words that belong to no option, output selectors that
 * name no figure, units that are none. We pass over them as well, and say so.
 */
#ifndef NP_CLI_STRAY_H
#define NP_CLI_STRAY_H

struct np_cli;

/* Of the words that the parser found to be no options, those before a -- or those behind it. */
void np_stray_words(struct np_cli *cli, int count, char **words, int of_test);

/* Of the list of selectors and the unit that were asked for. */
void np_stray_names(struct np_cli *cli);

/* The test whose name is most like it; NULL when none is. */
const char *np_stray_test(const char *name);

#endif
