/*
 * Copying text into arrays, and putting texts together.
 */
#ifndef NP_BASE_TEXT_H
#define NP_BASE_TEXT_H

#include <stdarg.h>
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

/* Make of what came from elsewhere something that terminals and logs take: printable ASCII. */
static inline void
np_text_printable(char *text)
{
	for (; *text != '\0'; text++) {
		if (*text < ' ' || *text > '~') {
			*text = '?';
		}
	}
}

#endif
