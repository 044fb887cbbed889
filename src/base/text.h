/* Copying and appending texts in arrays, and making texts of others safe to print. */
#ifndef NP_BASE_TEXT_H
#define NP_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Copy text with its NUL into out, if it fits. Returns 0, or -1 with out untouched. */
static inline int
np_text_copy(char *out, size_t size, const char *text)
{
	size_t need = strlen(text) + 1;

	if (need > size) {
		return -1;
	}
	memcpy(out, text, need);
	return 0;
}

/* Append to the len bytes in out, all or nothing. Returns the new length < size; len: no room. */
static inline size_t __attribute__((format(printf, 4, 5)))
np_text_add(char *out, size_t size, size_t len, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out + len, size - len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= size - len) {
		out[len] = '\0';
		return len;
	}
	return len + (size_t)n;
}

/* Is it one of the texts of an array? */
bool np_text_one_of(const char *text, const char *const *list, size_t count);
#define NP_TEXT_ONE_OF(text, list) np_text_one_of((text), (list), sizeof(list) / sizeof((list)[0]))

/* Is it a word of the text? "virtio2" is one of "virtio2-input.0", not of "virtio21-input.0". */
bool np_text_has_word(const char *text, const char *word);

/*
 * Make a stranger's text safe to print: bytes of control characters, marks of direction, characters
 * without width, invalid UTF-8 become question marks. False if there were any.
 */
bool np_text_clean(char *text);

/* Replace all but printable ASCII by '?': the character set of the reader is unknown. */
void np_text_printable(char *text);

/* The first invisible character, or look-alike of a hyphen, blank or quote. false: none. */
struct np_lookalike {
	const char *at, *past; /* the character, and the text after it */
	bool hyphen;           /* looks like a hyphen */
	char text[40];         /* "U+2013 is not a hyphen" */
};
bool np_text_lookalike(const char *word, struct np_lookalike *found);

/* Finds the name nearest to an unknown word: set word, zero the rest, and look at each name. */
struct np_nearest {
	const char *word, *like; /* the nearest name so far; NULL: none is similar */
	unsigned far; /* its distance: letters to change, add or leave out, ignoring case */
};
void np_nearest_look(struct np_nearest *n, const char *name);

/* Ends a message about the word: ": U+2013 is not a hyphen", ", the nearest is NAME" or "". */
enum { NP_NEAREST_TEXT = 96 };
const char *np_nearest_text(const struct np_nearest *n, char out[NP_NEAREST_TEXT]);

/* Print what only scripts look for, unless `out` is a terminal or NULL. */
void np_text_to_script(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

enum { NP_TEXT_LINE = 8192 };

/* Print a line as printable ASCII, since texts of others may be in it, cut to NP_TEXT_LINE. */
void np_text_line(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
