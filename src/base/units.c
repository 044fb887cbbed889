#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
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

static int64_t
suffix_factor(char c)
{
	switch (c) {
	case 'k':
		return 1000;
	case 'm':
		return INT64_C(1000) * 1000;
	case 'g':
		return INT64_C(1000) * 1000 * 1000;
	case 'K':
		return 1024;
	case 'M':
		return INT64_C(1024) * 1024;
	case 'G':
		return INT64_C(1024) * 1024 * 1024;
	default:
		return 0;
	}
}

int
np_parse_count(const char *text, int64_t *out)
{
	const char *end;
	int64_t n, factor;

	if (parse_digits(text, &n, &end) != 0) {
		return -1;
	}
	if (*end != '\0') {
		factor = suffix_factor(*end);
		if (factor == 0 || end[1] != '\0' || __builtin_mul_overflow(n, factor, &n)) {
			return -1;
		}
	}
	*out = n;
	return 0;
}

static int64_t
duration_factor(char c)
{
	return c == 'h' ? 3600 : c == 'm' ? 60 : c == 's' ? 1 : 0;
}

/* "1h0m5s": whole numbers with falling units. */
static int
parse_duration(const char *text, int64_t *out)
{
	int64_t total = 0, last = INT64_MAX;

	while (*text != '\0') {
		int64_t n, factor;
		const char *end;

		if (!isdigit((unsigned char)*text) || parse_digits(text, &n, &end) != 0) {
			return -1;
		}
		factor = duration_factor(*end);
		if (factor == 0 || factor >= last || __builtin_mul_overflow(n, factor, &n) ||
		    __builtin_add_overflow(total, n, &total)) {
			return -1;
		}
		last = factor;
		text = end + 1;
	}
	*out = total;
	return 0;
}

int
np_parse_length(const char *text, int64_t *out)
{
	size_t len = strlen(text);
	bool duration = len > 1 && (text[len - 1] == 's' || strchr(text, 'h') != NULL);

	return duration ? parse_duration(text, out) : np_parse_count(text, out);
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
