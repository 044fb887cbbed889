/* Option tables of both programs: a parser, and texts made of the tables: help, manual pages. */
#ifndef NP_OPT_OPTION_H
#define NP_OPT_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/text.h"
#include "config.h"

/* Text after the help line of an option that needs a library which this build lacks. */
#ifdef HAVE_JANSSON
#define NP_NEEDS_JANSSON ""
#else
#define NP_NEEDS_JANSSON "; not in this build, which lacks libjansson"
#endif
#ifdef HAVE_PCAP
#define NP_NEEDS_PCAP ""
#else
#define NP_NEEDS_PCAP "; not in this build, which lacks libpcap"
#endif
#ifdef HAVE_SODIUM
#define NP_NEEDS_SODIUM ""
#else
#define NP_NEEDS_SODIUM "; not in this build, which lacks libsodium"
#endif

/* The kinds from COUNT to CUSTOM need an argument. */
enum np_opt_kind {
	NP_OPT_FLAG,  /* no argument: bool at `to` becomes true */
	NP_OPT_COUNT, /* a number, with or without a suffix of kKmMgG: int32_t */
	/* A count, or a duration such as 10s or 1m30s: int64_t, in seconds. With `to2` it may be
	 * 500ms: `to` is rounded up, and `to2` gets the excess in milliseconds, uint32_t. */
	NP_OPT_LENGTH,
	NP_OPT_TEXT, /* a word: const char * */
	NP_OPT_BOTH, /* a pair of counts, "x" sets both (netperf's pair A): int32_t, int32_t */
	NP_OPT_EACH, /* a pair of counts, "x" sets the first (pair B): int32_t, int32_t */
	/* A pair of words, each handed to set(); "x" sets both, or the first. */
	NP_OPT_BOTH_WORDS,
	NP_OPT_EACH_WORD,
	NP_OPT_CUSTOM, /* a word, handed to set() */
	NP_OPT_PLAIN,  /* no argument, set() is called with NULL */
	/* Those below may have an argument. set() gets it; NULL: there is none. */
	NP_OPT_NEXT,   /* the next word, unless it begins with a hyphen */
	NP_OPT_NUMBER, /* it, if it begins with a digit; without set(): bool at `to` becomes true */
	NP_OPT_MAYBE   /* only --name=VALUE; has no letter */
};

struct np_option;

/* A value of the command line that is to be set. */
struct np_setting {
	const struct np_option *row;
	const char *arg; /* NULL: there is none */
	void *ctx, *to;  /* the struct of all values; the member for this one, NULL in then() */
	struct np_err *err;
};

struct np_option {
	char letter; /* '\0': none */
	enum np_opt_kind kind;
	const char *name; /* long name, NULL: none */
	const char *arg;  /* what the usage text calls the argument; NULL: there is none */
	const char *help; /* one line */
	size_t to, to2;   /* offsets into the context: of the value, and a second; to2 0: none */
	int64_t min, max; /* range of numbers; both 0: that of int32_t */
	int (*set)(const struct np_setting *set); /* NULL: no effect */
	/* Instead of set(): fill the member, or return false; the error says "not `what`". */
	bool (*read)(const char *word, void *to);
	const char *what;
	int (*then)(const struct np_setting *set); /* after the value is set; NULL: nothing */
	unsigned scope;    /* bits: the caller's scopes in which it is known; 0: all */
	const char *group; /* one of the table's titles, under which help and manual list it */
	const char *brief; /* its line in the short help; NULL: none */
	unsigned needs; /* bits of the caller's: what a test must have for it to have an effect */
	bool secret;    /* the argument is overwritten in argv: set() has to copy it */
	bool unset;     /* -1 is allowed in spite of min, and means not given */
	bool wide;      /* a COUNT is int64_t */
	bool numbers;   /* set() or read() takes whole numbers, as counts are */
	/* Is it another option's argument? It is ignored, and the note ends with `instead`. */
	bool (*astray)(const char *arg);
	const char *instead;
};

/* The columns that all rows have: letter, long name, kind, argument, help line. */
#define NP_OPT_ROW(l, n, k, a, h)                                                                  \
	.letter = (l), .name = (n), .kind = NP_OPT_##k, .arg = (a), .help = (h)

/* The options of a program, or those of its tests. */
struct np_option_table {
	const struct np_option *rows;
	size_t count;
	const char *const *groups; /* titles of groups, NULL after the last */
	const char *const *scopes; /* what the bits of a row's scope mean; NULL: there are none */
};
#define NP_OPT_TABLE(list) .rows = (list), .count = sizeof(list) / sizeof((list)[0])

/* What a parser reports beside values and an error. */
enum { NP_OPT_GIVEN = 64 };
struct np_option_notes {
	/* Arguments not read as they were written, in lines such as "-l 1.5: read as 1". */
	char text[2048];
	size_t len, printed; /* bytes of text; the caller's: how many it has printed */
	int words; /* the index in the permuted argv of the first word that is no option */
	const struct np_option *given[NP_OPT_GIVEN]; /* rows of the first options given */
	int given_count;
	bool skip_unknown; /* note and skip unknown letters, as netperf does; false: an error */
	char skipped;      /* the last one skipped; '\0': none */
	/* An error that netperf's parser reports, too; the option's letter, '-' for a long name. */
	enum { NP_OPT_RIGHT, NP_OPT_UNKNOWN, NP_OPT_BARE /* no argument */ } wrong;
	char letter;
};

/* Add a line, which has to end with a newline, to the notes. */
#define NP_NOTE(notes, ...)                                                                        \
	((notes)->len = np_text_add((notes)->text, sizeof((notes)->text), (notes)->len,            \
				    "netperf: " __VA_ARGS__))

/* Two values separated by the first comma; a missing one is NULL. */
struct np_pair {
	char text[1024];
	const char *first, *second; /* into text */
	bool comma;                 /* there was one */
};

/* Split a copy of arg; NP_EUSAGE if it is too long for out->text. */
int np_pair_split(const char *arg, struct np_pair *out, struct np_err *err);

/*
 * Parse argv[1] .. argv[argc - 1] as GNU getopt does: letters may be bundled, arguments may follow
 * a letter without a blank, words that are no options are moved after the options. Options outside
 * the scope (0: there is no scope) are unknown. Values go into *ctx. NP_EUSAGE names the option and
 * what to try instead; err->sys is minus the letter of an unknown one. Numbers that only netperf
 * accepts (below), and arguments gone astray, are read as netperf does, and *notes tells what was
 * ignored. notes NULL: they are errors.
 */
int np_options_parse(const struct np_option_table *t, unsigned scope, int argc, char **argv,
		     void *ctx, struct np_option_notes *notes, struct np_err *err);

/* Set a value as if the option were on the command line: for setters that extend a kind. */
int np_option_set(const struct np_option *o, const char *arg, void *ctx, struct np_err *err);

/* A set() that copies the word into an array of row->max + 1 characters. */
int np_option_set_name(const struct np_setting *set);

/* A read() of a port number or service name for the resolver, into NP_PORT_TEXT characters. */
enum { NP_PORT_TEXT = 32 };
bool np_option_read_port(const char *word, void *to);

/* Does it take whole numbers, which np_tidy_numbers() may rewrite? Not NUMBER, which ignores it. */
bool np_option_is_number(const struct np_option *o);

/* Is the row known in that scope? scope 0: the table has none, so each row is. */
bool np_option_in(const struct np_option *o, unsigned scope);

/* Whole numbers in scripts for netperf, which reads "1.0", "1.5" and "0-t" by atoi(3). */
enum np_tidy {
	NP_TIDY_AS_IS,  /* nothing to do: don't use out */
	NP_TIDY_SAME,   /* written differently, 1 for 1.0 */
	NP_TIDY_CUT,    /* a fraction was cut off */
	NP_TIDY_RUN_ON, /* an option without a blank before it was cut off */
};

/*
 * Rewrite numbers, separated by commas, for base/units.h; return the largest change. Left to be
 * refused: "1.5K", which people and netperf read differently, and "0.5", which would become 0.
 */
enum np_tidy np_tidy_numbers(const char *word, char *out, size_t size);

/* ---- Help texts, and the input of scripts/mkdoc (help.c) ---- */

enum { NP_HELP_WIDTH = 80 };

/*
 * Print each row of a scope (as np_options_parse() takes it) with its help line, NP_HELP_WIDTH
 * columns wide, under the titles of groups. words: gives the row's text, or NULL to leave it out;
 * NULL: all rows have their own.
 */
void np_help_print(FILE *out, const struct np_option_table *t, unsigned scope,
		   const char *(*words)(const struct np_option *o, void *ctx), void *ctx);

/*
 * Print a line for each row of any scope that has a brief text. The left column has the given title
 * on the first line of all; title NULL: that of each group on the group's first line.
 */
void np_help_brief(FILE *out, const struct np_option_table *t, const char *title);

/* Print words from column `at` on, NP_HELP_WIDTH wide, after `used` columns. Ends the line. */
void np_help_fill(FILE *out, const char *text, int used, int at);

/* Write how an option is given, such as "-t name, --test". */
enum { NP_HELP_HOW = 96 };
void np_help_how(const struct np_option *o, char out[NP_HELP_HOW]);

/*
 * Print a table, or a list of names (at: NULL after the last), for manual pages and completions.
 * Columns are separated by tabs:
 *   table NAME          the lines below belong to this table
 *   scope TITLE         of its scopes, in the order of their bits; or, if it has none,
 *   group TITLE         of its groups, in the order of their numbers
 *   row LETTER NAME ARGUMENT CALLED RANGE PLACE HELP
 *                       an option. ARGUMENT is "needs", "may", "glued" (--name=VALUE) or "none",
 *                       CALLED its name; PLACE the bits of its scope, or the number of its group
 *   list NAME           the lines below belong to this list
 *   item NAME
 */
void np_doc_table(FILE *out, const char *name, const struct np_option_table *t);
void np_doc_list(FILE *out, const char *name, const char *(*at)(size_t i));

#endif
