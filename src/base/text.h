/*
 * Copying text into arrays, putting texts together, and what others wrote.
 */
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

/*
 * Append formatted text to the len bytes in out, whole or not at all. Returns the new length, which
 * stays below size (at least 1); len when there was no room.
 */
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

/* "virtio2" is a word of "virtio2-input.0", but not of "virtio21-input.0". An empty one is of none.
 */
bool np_text_has_word(const char *text, const char *word);

/*
 * What others wrote (the far end, a file) is kept as UTF-8 that does nothing to who reads it: each
 * byte of a control character, of a mark that turns the direction of writing, of a character
 * without width and of what is no UTF-8 becomes a question mark. Returns whether none was.
 */
bool np_text_clean(char *text);

/* The same for terminals and logs with an unknown character set: printable ASCII alone. */
void np_text_printable(char *text);

/*
 * Find the first character of a word that is invisible, or that web pages and PDF put in the place
 * of a hyphen, a blank or a quotation mark. false: there is none.
 */
struct np_lookalike {
	const char *at, *past; /* where it stands, and what follows */
	bool hyphen;           /* looks like a hyphen */
	char text[40];         /* "U+2013 is not a hyphen" */
};
bool np_text_lookalike(const char *word, struct np_lookalike *found);

/*
 * Find the name that is most like an unknown word. Set word, zero the rest, and look at each name.
 * like: the nearest one so far; NULL: none is similar.
 */
struct np_nearest {
	const char *word, *like;
	unsigned far; /* letters to change, add or leave out to get it, ignoring case */
};
void np_nearest_look(struct np_nearest *n, const char *name);

/*
 * The end of a message that refuses the word: ": U+2013 is not a hyphen" if it has a look-alike
 * (above), else ", the nearest is NAME" or nothing. Returns out.
 */
enum { NP_NEAREST_TEXT = 96 };
const char *np_nearest_text(const struct np_nearest *n, char out[NP_NEAREST_TEXT]);

/* Print what scripts look for, except on a terminal: people read our own words. NULL: nowhere. */
void np_text_to_script(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

enum { NP_TEXT_LINE = 8192 };

/* Print a line, which may have texts of others in it, as printable ASCII. What is longer than
 * NP_TEXT_LINE is cut. */
void np_text_line(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
