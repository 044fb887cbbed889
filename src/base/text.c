#include "base/text.h"

#include <ctype.h>
#include <stdint.h>
#include <strings.h>
#include <unistd.h>

enum { LONGEST_NAME = 63 }; /* a longer word resembles no name */

/* The bytes of the UTF-8 character (RFC 3629) at text, 0 if it is invalid; *code: its number. */
static size_t
decode_utf8(const char *text, uint32_t *code)
{
	static const struct {
		uint8_t mask, lead; /* the first byte's fixed bits, and their values */
		uint32_t least;     /* smaller ones have a shorter form, which is required */
	} forms[] = {
		{ 0x80, 0, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 }
	};
	const unsigned char *at = (const unsigned char *)text;

	for (size_t len = 1; len <= sizeof(forms) / sizeof(forms[0]); len++) {
		size_t i = 1;

		if ((at[0] & forms[len - 1].mask) != forms[len - 1].lead) {
			continue;
		}
		*code = at[0] & (uint8_t)~forms[len - 1].mask;
		for (; i < len && (at[i] & 0xc0) == 0x80; i++) {
			*code = *code << 6 | (at[i] & 0x3fU);
		}
		return i == len && *code >= forms[len - 1].least && *code <= 0x10ffff &&
			       (*code < 0xd800 || *code > 0xdfff)
			   ? len
			   : 0;
	}
	return 0;
}

/* Does a terminal obey the character, reorder the text after it, or draw nothing for it? */
static bool
is_harmful(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0, 0x1f },        /* C0 */
		{ 0x7f, 0x9f },     /* DEL, C1 */
		{ 0x61c, 0x61c },   /* Arabic letter mark */
		{ 0x200b, 0x200f }, /* no width, marks of direction */
		{ 0x2028, 0x202e }, /* line separators, embeddings and overrides of direction */
		{ 0x2060, 0x2060 }, /* word joiner */
		{ 0x2066, 0x2069 }, /* isolates */
		{ 0xfeff, 0xfeff }, /* byte order mark */
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (c >= ranges[i].first && c <= ranges[i].last) {
			return true;
		}
	}
	return false;
}

/* What a character is that looks like another one, "not a hyphen" for example; NULL: harmless. */
static const char *
lookalike_text(uint32_t c)
{
	static const char hyphen[] = "not a hyphen", blank[] = "not a blank";
	static const struct {
		uint32_t first, last;
		const char *is;
	} ranges[] = {
		{ 0xa0, 0xa0, blank },      { 0xad, 0xad, hyphen },
		{ 0x2000, 0x200a, blank },  { 0x2010, 0x2015, hyphen },
		{ 0x202f, 0x202f, blank },  { 0x205f, 0x205f, blank },
		{ 0x2212, 0x2212, hyphen }, { 0x3000, 0x3000, blank },
		{ 0xfe58, 0xfe58, hyphen }, { 0xfe63, 0xfe63, hyphen },
		{ 0xff0d, 0xff0d, hyphen }, { 0x2018, 0x201f, "no quote" },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (c >= ranges[i].first && c <= ranges[i].last) {
			return ranges[i].is;
		}
	}
	return c > 0x7f && is_harmful(c) ? "invisible" : NULL;
}

bool
np_text_lookalike(const char *word, struct np_lookalike *found)
{
	const char *is = NULL;

	for (; *word != '\0' && is == NULL; word = found->past) {
		uint32_t c = 0;
		size_t len = decode_utf8(word, &c);

		is = len > 0 ? lookalike_text(c) : NULL;
		found->at = word;
		found->past = word + (len > 0 ? len : 1);
		if (is != NULL) {
			found->hyphen = strstr(is, "hyphen") != NULL;
			snprintf(found->text, sizeof(found->text), "U+%04X is %s", (unsigned)c, is);
		}
	}
	return is != NULL;
}

bool
np_text_one_of(const char *text, const char *const *list, size_t count)
{
	size_t i = 0;

	while (i < count && strcmp(text, list[i]) != 0) {
		i++;
	}
	return i < count;
}

bool
np_text_has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = len > 0 ? strstr(text, word) : NULL; at != NULL;
	     at = strstr(at + 1, word)) {
		if ((at == text || !isalnum((unsigned char)at[-1])) &&
		    !isalnum((unsigned char)at[len])) {
			return true;
		}
	}
	return false;
}

bool
np_text_clean(char *text)
{
	bool clean = true;

	while (*text != '\0') {
		uint32_t c = 0;
		size_t len = decode_utf8(text, &c);

		if (len == 0 || is_harmful(c)) {
			len = len > 0 ? len : 1;
			memset(text, '?', len);
			clean = false;
		}
		text += len;
	}
	return clean;
}

void
np_text_printable(char *text)
{
	for (; *text != '\0'; text++) {
		if (*text < ' ' || *text > '~') {
			*text = '?';
		}
	}
}

void
np_text_to_script(FILE *out, const char *fmt, ...)
{
	va_list ap;

	if (out != NULL && isatty(fileno(out)) == 0) {
		va_start(ap, fmt);
		vfprintf(out, fmt, ap);
		va_end(ap);
	}
}

void
np_text_line(FILE *out, const char *fmt, ...)
{
	char line[NP_TEXT_LINE];
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(line, sizeof(line), fmt, ap) < 0) {
		line[0] = '\0';
	}
	va_end(ap);
	np_text_printable(line);
	fprintf(out, "%s\n", line);
}

/* How many letters to change, add or leave out (Levenshtein's distance), ignoring case. */
static unsigned
edit_distance(const char *a, const char *b)
{
	unsigned row[LONGEST_NAME + 1]; /* [j]: from the part of a so far to the first j of b */
	size_t n = strlen(b);

	if (n > LONGEST_NAME) {
		return LONGEST_NAME;
	}
	for (unsigned j = 0; j <= n; j++) {
		row[j] = j;
	}
	for (unsigned i = 1; a[i - 1] != '\0'; i++) {
		unsigned corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			unsigned above = row[j];
			unsigned changed = corner + (strncasecmp(&a[i - 1], &b[j - 1], 1) != 0);

			row[j] = above < row[j - 1] ? above + 1 : row[j - 1] + 1;
			row[j] = changed < row[j] ? changed : row[j];
			corner = above;
		}
	}
	return row[n];
}

void
np_nearest_look(struct np_nearest *n, const char *name)
{
	size_t len = strlen(n->word);
	unsigned far = len <= LONGEST_NAME ? edit_distance(n->word, name) : LONGEST_NAME;

	if (far < (n->like != NULL ? n->far : len / 3 + 2)) { /* more is not similar */
		n->like = name;
		n->far = far;
	}
}

const char *
np_nearest_text(const struct np_nearest *n, char out[NP_NEAREST_TEXT])
{
	struct np_lookalike l;

	if (np_text_lookalike(n->word, &l)) {
		snprintf(out, NP_NEAREST_TEXT, ": %s", l.text);
	} else {
		snprintf(out, NP_NEAREST_TEXT, "%s%s", n->like != NULL ? ", the nearest is " : "",
			 n->like != NULL ? n->like : "");
	}
	return out;
}
