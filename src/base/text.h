/*
 * Copying text into arrays.
 */
#ifndef NP_BASE_TEXT_H
#define NP_BASE_TEXT_H

#include <stddef.h>
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

#endif
