/*
 * Records of results, from words.
 */
#ifndef NP_TESTS_RECORDS_H
#define NP_TESTS_RECORDS_H

#include "stats/record.h"

/* Adds figures, "NAME=value NAME=value", by their types in the table: numbers and letters. */
void put_figures(struct np_record *r, const char *words);

/* Has these, "NAME=VALUE NAME=none": texts and letters, and numbers as computed() makes them. */
void assert_figures(const struct np_record *r, const char *words);

#endif
