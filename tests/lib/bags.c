#include "tests/lib/bags.h"

#include <float.h>

#include "tests/lib/check.h"

void
free_bag(struct np_bag **b)
{
	np_bag_free(*b);
}

void
assert_number(const struct np_bag *b, const char *name, double want)
{
	double have = np_bag_number(b, name);

	fail_if(!(fabs(have - want) < 1e-9), "%s is %g, not %g", name, have, want);
}

/* A list, from behind its '['. */
static void
put_list(struct np_bag *b, const char *name, char *at, size_t least)
{
	bool whole = strcspn(at, "+.e") >= strcspn(at, "]");
	double list[32] = { 0 }, step = 0;
	int64_t ints[LEN(list)];
	size_t n = 0;

	for (; *at != ']'; at += *at == ',') {
		assert_true(n < LEN(list) && least <= LEN(list));
		list[n++] = strtod(at, &at);
		step = *at == '+' ? strtod(at + 1, &at) : step;
		assert_true(*at == ',' || *at == ']');
	}
	for (; n > 0 && n < least; n++) {
		list[n] = list[n - 1] + step;
	}
	for (size_t i = 0; i < n && whole; i++) {
		ints[i] = (int64_t)list[i];
	}
	if (whole) {
		np_bag_ints(b, ints, n, "%s", name);
	} else {
		np_bag_reals(b, list, n, "%s", name);
	}
}

static void
put_value(struct np_bag *b, const char *name, char *value, size_t least)
{
	char *end;

	if (*value == '\'') {
		np_bag_text(b, value + 1, "%s", name);
	} else if (*value == '?') {
		np_bag_unread(b, value[1] == '\'' ? value + 2 : "Permission denied", "%s", name);
	} else if (*value == '[') {
		put_list(b, name, value + 1, least);
	} else if (value[strspn(value, "-0123456789")] == '\0') {
		np_bag_int(b, strtoll(value, &end, 10), "%s", name);
	} else {
		np_bag_real(b, strtod(value, &end), "%s", name);
		assert_int_equal(*end, '\0');
	}
}

/* The next "NAME=VALUE" or "NAME='VALUE'" of a text, which it divides. */
static bool
next_word(char **at, char **name, char **value)
{
	char *text;

	*name = *at + strspn(*at, " ");
	if (**name == '\0') {
		return false;
	}
	text = strchr(*name, '=');
	assert_non_null(text);
	*text++ = '\0';
	*value = text;
	text += *text == '?';
	*at = text + (*text == '\'' ? 1 + strcspn(text + 1, "'") : strcspn(text, " "));
	if (**at != '\0') {
		*(*at)++ = '\0';
	}
	return true;
}

struct np_bag *
put_lists(struct np_bag *b, size_t least, const char *format, ...)
{
	char *words, *at, *name, *value;
	va_list args;

	va_start(args, format);
	assert_true(vasprintf(&words, format, args) >= 0 && b != NULL);
	va_end(args);
	for (at = words; next_word(&at, &name, &value);) {
		put_value(b, name, value, least);
	}
	free(words);
	assert_int_equal(np_bag_left_out(b), 0);
	return b;
}

double
computed(const char *text)
{
	double sum = 0;

	for (;;) {
		char *at;
		double product = strtod(text, &at);

		while (*at == '*' || *at == '/') {
			bool divides = *at == '/';
			double by = strtod(at + 1, &at);

			product = divides ? product / by : product * by;
		}
		sum += product;
		if (at == text || (*at != '+' && *at != '-')) {
			return at > text && *at == '\0' && isfinite(sum) ? sum : (double)NAN;
		}
		text = at + (*at == '+');
	}
}

/* Whether it is a list of these integers, "[1,2]". */
static bool
is_list(const struct np_bag *b, const char *name, const char *list)
{
	struct np_bag_item it;
	char *at = (char *)list;
	size_t n = 0;

	if (!np_bag_find(b, name, &it) || it.kind != NP_BAG_INTS) {
		return false;
	}
	while (*at != ']' && at[1] != ']') {
		if (n == it.count || it.ints[n++] != strtoll(at + 1, &at, 10)) {
			return false;
		}
	}
	return n == it.count;
}

static bool
is_value(const struct np_bag *b, const char *name, const char *value)
{
	double want = computed(value);
	const char *text;
	struct np_bag_item it;

	switch (*value) {
	case 'n':
		return strcmp(value, "none") == 0 && !np_bag_find(b, name, &it);
	case '?':
		return np_bag_find(b, name, &it) && it.kind == NP_BAG_UNREAD &&
		       (value[1] == '\0' || strstr(it.text, value + 2) != NULL);
	case '\'':
		text = np_bag_string(b, name);
		return text != NULL && strcmp(text, value + 1) == 0;
	case '[':
		return is_list(b, name, value);
	default: /* but for the last bit, which 32-bit processors round otherwise */
		return fabs(np_bag_number(b, name) - want) <= DBL_EPSILON * fabs(want);
	}
}

void
assert_bag_at(const char *file, int line, const struct np_bag *b, const char *prefix,
	      const char *format, ...)
{
	char words[1000], name[100], *at = words, *word, *value;
	va_list args;

	va_start(args, format);
	assert_in_range(vsnprintf(words, sizeof(words), format, args), 1, sizeof(words) - 1);
	va_end(args);
	while (next_word(&at, &word, &value)) {
		snprintf(name, sizeof(name), "%s%s", prefix, word);
		if (!is_value(b, name, value)) {
			const char *text = np_bag_string(b, name);

			print_error("%s is %.17g '%s', not %s\n", name, np_bag_number(b, name),
				    text != NULL ? text : "", value);
			_fail(file, line);
		}
	}
}
