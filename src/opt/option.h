/*
 * A parser driven by option tables, for both programs. A row says how an option is written, what it
 * takes and where its value goes; parsing, usage texts and the tests over all options come from the
 * same rows.
 */
#ifndef NP_OPT_OPTION_H
#define NP_OPT_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "config.h"

/* Text behind the help line of an option that needs a library which this build lacks. */
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

/* From COUNT to CUSTOM they take an argument. */
enum np_opt_kind {
	NP_OPT_FLAG,  /* no argument: bool at `to` becomes true */
	NP_OPT_COUNT, /* a number with one of the suffixes kKmMgG: int32_t */
	/* A count, or a duration such as 10s or 1m30s: int64_t. With `to2` durations such as 500ms,
	 * too: there go the milliseconds by which it is shorter, uint32_t. */
	NP_OPT_LENGTH,
	NP_OPT_TEXT, /* a word: const char * */
	NP_OPT_BOTH, /* a pair of counts, "x" sets both (netperf's pair A): int32_t, int32_t */
	NP_OPT_EACH, /* a pair of counts, "x" sets the first (pair B): int32_t, int32_t */
	/* A pair of words, each handed to set(); "x" is the word of both, or of the first. */
	NP_OPT_BOTH_WORDS,
	NP_OPT_EACH_WORD,
	NP_OPT_CUSTOM, /* a word, handed to set() */
	NP_OPT_PLAIN,  /* no argument, set() is called with NULL */
	NP_OPT_NEXT, /* may have an argument, the next word if that is no option: set(), or NULL */
	/* May have one, the next word if that starts with a digit: set(), or NULL. Without set()
	 * the number has no meaning, and bool at `to` becomes true. */
	NP_OPT_NUMBER,
	NP_OPT_MAYBE /* may have one, only as --name=VALUE; has no letter: set(), or NULL */
};

struct np_option;

/* One value on its way from the command line to its place. */
struct np_setting {
	const struct np_option *row;
	const char *arg; /* NULL: there is none */
	void *ctx, *to;  /* the whole, and the member that the row names */
	struct np_err *err;
};

struct np_option {
	char letter; /* '\0': none */
	enum np_opt_kind kind;
	const char *name; /* long name, NULL: none */
	const char *arg;  /* what the usage text calls the argument; NULL: there is none */
	const char *help; /* one line */
	size_t to, to2;   /* offsets into the context: of the value, and a pair's second */
	int64_t min, max; /* range of numbers; both 0: that of the type */
	int (*set)(const struct np_setting *set); /* NULL: no effect */
	/* In place of set() of a word: fill the member, or return false: it is not `what`. */
	bool (*read)(const char *word, void *to);
	const char *what;
	int (*then)(const struct np_setting *set); /* of the whole, once it is set; NULL: nothing */
	unsigned scope;    /* in which of the caller's scopes it is known, a bit each; 0: in all */
	int group;         /* of the caller's titles, the one that help and manual have it under */
	const char *brief; /* its line in the short help; NULL: it is not there */
	unsigned needs; /* what a test must have for it to have an effect, bits of the caller's */
	bool secret;    /* the argument is overwritten in argv: set() has to copy it */
	bool unset;     /* -1, which no other number is, means not given */
	bool wide;      /* a COUNT is int64_t */
	bool numbers;   /* set() takes whole numbers, as the kinds of counts do */
	/* Is the argument meant for another option? Then it is ignored, with a note of
	 * `instead`. NULL: no. */
	bool (*astray)(const char *arg);
	const char *instead;
};

/* The columns that all rows have: letter, long name, kind, argument, help line. */
#define NP_OPT_ROW(l, n, k, a, h)                                                                  \
	.letter = (l), .name = (n), .kind = NP_OPT_##k, .arg = (a), .help = (h)

/* What a parser reports beside values and an error. */
enum { NP_OPT_GIVEN = 64 };
struct np_option_notes {
	/* Arguments not read as they were written, in lines such as "-l 1.5: read as 1". */
	char text[2048];
	size_t len, told; /* told: those that were printed */
	int words;        /* where those that are no options begin in argv, which is permuted */
	const struct np_option *given[NP_OPT_GIVEN]; /* the rows of the first words */
	int given_count;
	/* Unknown letters: refused, or noted and skipped as netperf does; the last such. */
	bool skip_unknown;
	char skipped;
	/* Of an option that netperf's parser refuses as well, its letter; '-' of a long name. */
	enum { NP_OPT_RIGHT, NP_OPT_UNKNOWN, NP_OPT_BARE /* no argument */ } wrong;
	char letter;
};

/* Add a line of netperf's, with its newline. */
#define NP_NOTE(notes, ...)                                                                        \
	((notes)->len = np_text_add((notes)->text, sizeof((notes)->text), (notes)->len,            \
				    "netperf: " __VA_ARGS__))

/* Two values separated by the first comma; a part that is not there is NULL. */
struct np_pair {
	char text[1024];
	const char *first, *second;
	bool comma;
};

/* Split; NP_EUSAGE when the text is too long. */
int np_pair_split(const char *arg, struct np_pair *out, struct np_err *err);

/*
 * Parse the words argv[1] .. argv[argc - 1] as GNU getopt does: letters may be bundled, arguments
 * glued on, words that are not options stand anywhere and are left alone. Rows outside of the scope
 * (0: none is) are unknown. Values go into *ctx. NP_EUSAGE names the option and what to try
 * instead. argv is permuted.
 *
 * Numbers that netperf reads and we would not (opt/tidy.h), and arguments gone astray, are read as
 * it reads them, and *notes tells of each one where something was cut off. notes NULL: they are
 * refused.
 */
int np_options_parse(const struct np_option *table, size_t count, unsigned scope, int argc,
		     char **argv, void *ctx, struct np_option_notes *notes, struct np_err *err);

/* Set an option's value as if it stood on the command line: for setters that extend a kind. */
int np_option_set(const struct np_option *o, const char *arg, void *ctx, struct np_err *err);

/* A set() that copies the word into an array of max + 1 characters. */
int np_option_set_name(const struct np_setting *set);

/*
 * A read() of a port number or a service's name, as text for the resolver, into NP_PORT_TEXT
 * characters. Its range is checked when the host or the test is known.
 */
enum { NP_PORT_TEXT = 32 };
bool np_option_read_port(const char *word, void *to);

/* Are its words whole numbers? */
bool np_option_is_number(const struct np_option *o);

/* Is the row known in that scope? */
bool np_option_in(const struct np_option *o, unsigned scope);

#endif
