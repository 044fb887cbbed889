/*
 * Named values: what one end knows about a test, put by collectors, read by messages, JSON and the
 * rules that explain a result. doc/evidence.md lists the names: words of letters, digits, '_', '-'
 * and ':', joined by dots ("tcp.rtt_us", "cpu.0.softirq"). A second value replaces the first.
 */
#ifndef NP_BASE_BAG_H
#define NP_BASE_BAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NP_BAG_ITEMS = 2048,      /* most values of a bag */
	NP_BAG_BYTES = 256 << 10, /* most bytes of names, texts and lists together */
	NP_BAG_NAME = 96,         /* of a name, its NUL included */
	NP_BAG_TEXT = 1024        /* of a text, its NUL included */
};

/* Kinds of values; the numbers are part of the protocol. */
enum np_bag_kind {
	NP_BAG_INT = 1,    /* int64_t */
	NP_BAG_REAL = 2,   /* double, finite */
	NP_BAG_STRING = 3, /* UTF-8 text without control characters */
	NP_BAG_REALS = 4,  /* a list of double, finite */
	NP_BAG_INTS = 5,   /* a list of int64_t */
	NP_BAG_UNREAD = 6  /* a value that could not be read: the text says why */
};

/* One value, valid until its bag is changed or freed. Which members it has depends on its kind. */
struct np_bag_item {
	const char *name;
	enum np_bag_kind kind;
	int64_t i;           /* INT */
	double r;            /* REAL */
	const char *text;    /* STRING, UNREAD; else NULL */
	const double *reals; /* REALS; else NULL */
	const int64_t *ints; /* INTS; else NULL */
	size_t count;        /* of a list */
};

struct np_bag;

/* A new bag; NULL without memory. The functions below take NULL for an empty bag. */
struct np_bag *np_bag_new(void);
void np_bag_free(struct np_bag *b);

/*
 * Put a value, or count it as left out (no room, bad name, not finite). name: as in printf(3). A
 * text is copied, cut to NP_BAG_TEXT - 1 bytes, and cleaned: np_text_clean(). A list is copied; it
 * may be empty.
 */
void np_bag_put(struct np_bag *b, struct np_bag_item v, const char *name, ...)
    __attribute__((format(printf, 3, 4)));
#define NP_BAG_VALUE(...) ((struct np_bag_item){ __VA_ARGS__ })
#define np_bag_int(b, v, ...) np_bag_put(b, NP_BAG_VALUE(.kind = NP_BAG_INT, .i = (v)), __VA_ARGS__)
#define np_bag_real(b, v, ...)                                                                     \
	np_bag_put(b, NP_BAG_VALUE(.kind = NP_BAG_REAL, .r = (v)), __VA_ARGS__)
#define np_bag_text(b, v, ...)                                                                     \
	np_bag_put(b, NP_BAG_VALUE(.kind = NP_BAG_STRING, .text = (v)), __VA_ARGS__)
#define np_bag_reals(b, v, n, ...)                                                                 \
	np_bag_put(b, NP_BAG_VALUE(.kind = NP_BAG_REALS, .reals = (v), .count = (n)), __VA_ARGS__)
#define np_bag_ints(b, v, n, ...)                                                                  \
	np_bag_put(b, NP_BAG_VALUE(.kind = NP_BAG_INTS, .ints = (v), .count = (n)), __VA_ARGS__)
/* Instead of a value: why it could not be read ("Permission denied"). */
#define np_bag_unread(b, why, ...)                                                                 \
	np_bag_put(b, NP_BAG_VALUE(.kind = NP_BAG_UNREAD, .text = (why)), __VA_ARGS__)

/* Replace by '_' what can't be in a name, and dots without a word beside. True: it was a name. */
bool np_bag_clean_name(char *name);

/* Remove all values with names that begin with the prefix. */
void np_bag_drop(struct np_bag *b, const char *prefix);

/* How many values were left out since the bag was made. */
size_t np_bag_left_out(const struct np_bag *b);

/* Number of values. */
size_t np_bag_count(const struct np_bag *b);

/* Value i, in the order in which names were first put. False: there are fewer. */
bool np_bag_at(const struct np_bag *b, size_t i, struct np_bag_item *item);

/* The value of that name. False: there is none, or b is NULL. */
bool np_bag_find(const struct np_bag *b, const char *name, struct np_bag_item *item);

/*
 * Find a list by name, of the kind REALS or INTS, or of either (0). Returns how many values it has;
 * 0: there is no such list. The far end may send any length: compare those that belong together.
 */
size_t np_bag_list(const struct np_bag *b, const char *name, int kind, struct np_bag_item *list);

/* The value at index i < count of a list of either kind. */
double np_bag_value(const struct np_bag_item *list, size_t i);

/* The INT or REAL of that name as a number; NAN: there is none. */
double np_bag_number(const struct np_bag *b, const char *name);

/* The text of that name; NULL: there is none. */
const char *np_bag_string(const struct np_bag *b, const char *name);

#endif
