#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* strtoll() that accepts neither blanks nor an empty number; *end is what follows the digits. */
static int
parse_digits(const char *text, int64_t *out, const char **end)
{
	const char *digits = text + (*text == '-' || *text == '+');
	char *rest;

	if (!isdigit((unsigned char)*digits)) {
		return -1;
	}
	errno = 0;
	*out = strtoll(text, &rest, 10);
	*end = rest;
	return errno == 0 ? 0 : -1;
}

int
np_parse_count(const char *text, int64_t *out)
{
	/* Powers of 1000, and of 1024: the 1st, 2nd and 3rd. */
	static const char letters[] = "kmgKMG";
	const char *end, *letter;
	int64_t n;

	if (parse_digits(text, &n, &end) != 0) {
		return -1;
	}
	letter = *end != '\0' ? strchr(letters, *end) : NULL;
	if (*end != '\0' && (letter == NULL || end[1] != '\0')) {
		return -1;
	}
	for (ptrdiff_t i = letter != NULL ? (letter - letters) % 3 : -1; i >= 0; i--) {
		if (__builtin_mul_overflow(n, letter - letters < 3 ? 1000 : 1024, &n)) {
			return -1;
		}
	}
	*out = n;
	return 0;
}

/* The milliseconds of the unit that text begins with (ms before m); 0: none. *end is after it. */
static int64_t
duration_factor(const char *text, const char **end)
{
	static const struct {
		const char *name;
		int64_t ms;
	} units[] = { { "h", 3600000 }, { "ms", 1 }, { "m", 60000 }, { "s", 1000 } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t n = strlen(units[i].name);

		if (strncmp(text, units[i].name, n) == 0) {
			*end = text + n;
			return units[i].ms;
		}
	}
	return 0;
}

/* Read ".25" in billionths, at least one unless all digits are 0. NULL: no digit; else the rest. */
static const char *
parse_fraction(const char *text, int64_t *billionths)
{
	int64_t worth = 100000000;

	*billionths = 0;
	if (*text != '.') {
		return text;
	}
	if (!isdigit((unsigned char)*++text)) {
		return NULL;
	}
	for (; isdigit((unsigned char)*text); text++) {
		*billionths += (*text - '0') * worth;
		if (*text != '0' && *billionths == 0) {
			*billionths = 1; /* after the ninth digit */
		}
		worth /= 10;
	}
	return text;
}

/* Read "1h0m5s", "1.5s", "500ms" (each unit smaller than the one before), or seconds, "0.5". */
static int
parse_duration(const char *text, int64_t *ms)
{
	enum { BILLION = 1000000000 };
	int64_t total = 0, last = INT64_MAX;

	while (*text != '\0') {
		int64_t n = 0, billionths, part, factor;
		const char *end = text;

		if (*text != '.' &&
		    (!isdigit((unsigned char)*text) || parse_digits(text, &n, &end) != 0)) {
			return -1;
		}
		end = parse_fraction(end, &billionths);
		if (end == NULL) {
			return -1;
		}
		factor = *end == '\0' && last == INT64_MAX ? 1000 : duration_factor(end, &end);
		part = (billionths * factor + BILLION / 2) / BILLION;
		if (n == 0 && billionths > 0 && part == 0) {
			part = 1; /* rounding must not make a duration 0 */
		}
		if (factor == 0 || factor >= last || __builtin_mul_overflow(n, factor, &n) ||
		    __builtin_add_overflow(n, part, &n) ||
		    __builtin_add_overflow(total, n, &total)) {
			return -1;
		}
		last = factor;
		text = end;
	}
	*ms = total;
	return 0;
}

int
np_parse_length(const char *text, int64_t *out, uint32_t *less_ms)
{
	size_t len = strlen(text);
	bool duration = len > 1 && (text[len - 1] == 's' || strpbrk(text, "h.") != NULL);
	int64_t ms;

	*less_ms = 0;
	if (!duration) {
		return np_parse_count(text, out);
	}
	if (parse_duration(text, &ms) != 0) {
		return -1;
	}
	*out = ms / 1000 + (ms % 1000 != 0);
	*less_ms = (uint32_t)((1000 - ms % 1000) % 1000);
	return 0;
}

int
np_parse_int(const char *text, int64_t *out)
{
	const char *end;
	int64_t n;

	if (parse_digits(text, &n, &end) != 0 || *end != '\0') {
		return -1;
	}
	*out = n;
	return 0;
}

int
np_parse_rate(const char *text, double *bps)
{
	static const struct {
		const char *name;
		double factor;
	} units[] = { { "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 } };
	size_t digits = strspn(text, "0123456789");
	size_t fraction = text[digits] == '.' ? strspn(text + digits + 1, "0123456789") : 0;
	const char *unit = text + digits + (fraction > 0 ? fraction + 1 : 0);
	double n;

	if (digits == 0 || digits > 9) {
		return -1;
	}
	n = strtod(text, NULL);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcasecmp(unit, units[i].name) == 0 && n > 0) {
			*bps = n * units[i].factor;
			return 0;
		}
	}
	return -1;
}

const struct np_unit *
np_unit(char letter)
{
	/* 'b' really is bytes a second under that name: scripts know it so. */
	static const struct np_unit units[] = {
		{ 'K', "KBytes", 1024.0 },
		{ 'M', "MBytes", 1024.0 * 1024.0 },
		{ 'G', "GBytes", 1024.0 * 1024.0 * 1024.0 },
		{ 'B', "Bytes", 1.0 },
		{ 'k', "10^3bits", 1e3 / 8 },
		{ 'm', "10^6bits", 1e6 / 8 },
		{ 'g', "10^9bits", 1e9 / 8 },
		{ 'b', "10^0bits", 1.0 },
		{ 'x', "Trans", 1.0 },
		{ 'u', "Usec", 1.0 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].letter == letter) {
			return &units[i];
		}
	}
	return &units[0];
}

double
np_rate(const struct np_unit *unit, double amount, double seconds)
{
	if (unit->letter == 'u') {
		return amount > 0 ? 1e6 * seconds / amount : 0;
	}
	return seconds > 0 ? amount / unit->divisor / seconds : 0;
}

void
np_si(double v, int digits, const char *unit, char *out, size_t size)
{
	static const char *const prefixes[] = { "n", "u", "m", "", "k", "M", "G", "T" };
	enum { NONE = 3, LAST = 7 };
	const double half = 0.5 * pow(10, -digits); /* of the last digit: what printf() rounds up */
	int p = NONE, before = 1;                   /* digits before the decimal point */

	for (; v >= 1000 * (1 - half) && p < LAST; p++) {
		v /= 1000;
	}
	for (bool small = p == NONE; small && v > 0 && v < 1 - half && p > 0; p--) {
		v *= 1000;
	}
	before = v >= 100 * (1 - half) ? 3 : v >= 10 * (1 - half) ? 2 : 1;
	snprintf(out, size, "%.*f %s%s", digits > before ? digits - before : 0, v, prefixes[p],
		 unit);
}

double
np_significant(double value, int digits)
{
	char text[32];

	snprintf(text, sizeof(text), "%.*e", digits - 1, value);
	return strtod(text, NULL);
}
