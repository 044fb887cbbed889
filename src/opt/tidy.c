#include "opt/option.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"

static size_t
count_digits(const char *at)
{
	return strspn(at, "0123456789");
}

/* Is the rest of the word an option without a blank before it (-l10-H)? Not in a list (1-x,y). */
static bool
runs_on(const char *at)
{
	return at[0] == '-' && isalpha((unsigned char)at[1]) && strchr(at, ',') == NULL;
}

/* Append the tidied number at the beginning of word, up to a comma, to the *len bytes in out. */
static enum np_tidy
tidy_one(const char *word, char *out, size_t size, size_t *len)
{
	const char *number = word + (*word == '-' || *word == '+');
	size_t whole = count_digits(number);
	const char *point = number + whole; /* if there is one */
	size_t fraction = *point == '.' ? count_digits(point + 1) : 0;
	const char *rest = *point == '.' ? point + 1 + fraction : point;
	const char *end = rest + strspn(rest, "0123456789abcdefghijklmnopqrstuvwxyz"
					      "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	size_t suffix = (size_t)(end - rest);
	bool fraction_is_0 = strspn(point + (rest != point), "0") >= fraction;
	bool below_one = strspn(number, "0") >= whole;
	/* With K or M, a cut would change more than a fraction. */
	bool is_plain_unit = suffix == 0 || (suffix == 1 && *rest == 's');
	bool ends = *end == ',' || *end == '\0' || runs_on(end);

	/* No number, or one for its parser to refuse. */
	if (whole == 0 || !ends || (!fraction_is_0 && (below_one || !is_plain_unit))) {
		*len = np_text_add(out, size, *len, "%.*s", (int)strcspn(word, ","), word);
		return NP_TIDY_AS_IS;
	}
	*len =
	    np_text_add(out, size, *len, "%.*s%.*s", (int)(point - word), word, (int)suffix, rest);
	if (runs_on(end)) {
		return NP_TIDY_RUN_ON;
	}
	return !fraction_is_0 ? NP_TIDY_CUT : rest != point ? NP_TIDY_SAME : NP_TIDY_AS_IS;
}

enum np_tidy
np_tidy_numbers(const char *word, char *out, size_t size)
{
	enum np_tidy most = NP_TIDY_AS_IS;
	size_t len = 0;

	if (strlen(word) >= size) {
		return NP_TIDY_AS_IS;
	}
	for (;;) {
		enum np_tidy what = tidy_one(word, out, size, &len);

		most = what > most ? what : most;
		word += strcspn(word, ",");
		if (*word == '\0') {
			return most;
		}
		len = np_text_add(out, size, len, ",");
		word++;
	}
}
