/* The output selectors: which figures the user wants, in which groups (-- -o, -O and -k). */
#ifndef NP_OUT_SELECT_H
#define NP_OUT_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "stats/record.h"

/* How a result is printed. */
enum np_style {
	NP_STYLE_CLASSIC, /* netperf's tables */
	NP_STYLE_COLUMNS, /* -O */
	NP_STYLE_CSV,     /* -o */
	NP_STYLE_KEYVAL,  /* -k: NAME=value */
	NP_STYLE_HUMAN    /* --human: one table in SI units */
};

enum {
	NP_SELECT_GROUPS = 4,
	NP_SELECT_MAX = 512,   /* selectors of one group; more are an error that says so */
	NP_SELECT_NAME = 80,   /* netperf's limit for a name in a file of selectors, with its NUL */
	NP_SELECT_UNKNOWN = -1 /* a name that is not a figure: accepted, and left blank */
};

struct np_selection {
	int id[NP_SELECT_GROUPS][NP_SELECT_MAX]; /* np_figure_find(), or NP_SELECT_UNKNOWN */
	size_t count[NP_SELECT_GROUPS];
	size_t names, unknowns;             /* in all groups; NP_SELECT_UNKNOWN */
	bool latency, congestion, evidence; /* the selected figures need these collected */
	bool far;                           /* some of them only the daemon knows */
	char unknown[NP_SELECT_NAME];       /* the first name in a file that is not a figure */
};

/* The kind of test, which determines the default list. */
enum np_select_kind {
	NP_SELECT_SEND,
	NP_SELECT_RECEIVE,
	NP_SELECT_BOTH,       /* a stream each way */
	NP_SELECT_BOTH_LOSSY, /* of datagrams */
	NP_SELECT_TRANSACTIONS
};

/*
 * Fill *sel from "all", a list (with comma, semicolon or a figure's name), or a file of selectors.
 * NP_ECONTROL: the file can't be read; NP_EPLAIN: a name of over 79 characters; NP_EUSAGE: too
 * many.
 */
int np_selection_parse(const char *word, struct np_selection *sel, struct np_err *err);

/* netperf's default list. */
void np_selection_default(enum np_select_kind kind, bool cpu, struct np_selection *sel);

/* Print all names that can be selected, netperf's first: -o ?, -k ?, -O ?. */
void np_selection_names(FILE *out, enum np_style style);

#endif
