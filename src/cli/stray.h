/* Input that is ignored with a note, as netperf does silently: stray words, selectors, units. */
#ifndef NP_CLI_STRAY_H
#define NP_CLI_STRAY_H

#include <stdio.h>

#include "base/err.h"
#include "base/text.h"

struct np_cli;
struct np_target;
struct np_client;
struct np_option_notes;

/* Note words of argv[from..to) that are no options. given: all in original order, then NULL. */
void np_stray_words(struct np_cli *cli, char **argv, int from, int to, char *const *given);

/* Note values of options that only make sense after a --, where the letter is another option. */
void np_stray_options(struct np_cli *cli);

/* Note options that have no effect in the settled test, or without another option. */
void np_stray_settled(struct np_cli *cli);

/* If the option that could not be parsed is unknown, but one of tests: let err say so. */
void np_stray_unparsed(struct np_err *err);

/* Note unknown selectors and an unknown unit. */
void np_stray_names(struct np_cli *cli);

/* Fail by `code`. NP_EUSAGE: all selectors in the list are unknown; else it is no file, either. */
int np_stray_selectors(const char *list, enum np_errc code, struct np_err *err);

/* A hint at the test with the most similar name, by np_nearest_text(). */
const char *np_stray_test(const char *name, char out[NP_NEAREST_TEXT]);

/* Fail for an unknown test: NP_EUSAGE. */
int np_stray_refuse_test(const char *name, struct np_err *err);

/*
 * netperf's own messages for failures (phrases.c): scripts look for them on standard output. A line
 * on standard error says more; a terminal gets only that.
 */

/* For a control connection that could not be made, if netperf has a message for the reason. */
void np_phrases_control(FILE *out, const struct np_target *t, const struct np_client *c);

/* For a test that -t names, and that there is not. */
void np_phrases_unknown_test(FILE *out, const struct np_cli *cli);

/* For an unknown option or one without argument: getopt(3)'s line and usage, on standard error. */
void np_phrases_option(FILE *out, const char *program, const struct np_option_notes *notes);

#endif
