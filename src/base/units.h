/* Numbers as people write them on netperf's command line, and the units of its output. */
#ifndef NP_BASE_UNITS_H
#define NP_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t
np_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t
np_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* By how much a exceeds b; 0 if it doesn't. */
static inline uint64_t
np_excess(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* "[+-]digits[kKmMgG]": k m g are powers of 1000, K M G of 1024. -1: no number, or too large. */
int np_parse_count(const char *text, int64_t *out);

/*
 * A test length in seconds: a count ("5m": 5 million; netperf's negative ones are bytes or
 * transactions), or "10s", "1m30s", "0.5", "500ms", rounded up by *less_ms milliseconds. 0 or -1.
 */
int np_parse_length(const char *text, int64_t *out, uint32_t *less_ms);

/*
 * A link's rate in bits/s, as of netlab and tc(8): "100mbit", "2.5gbit", also kbit; in any case,
 * powers of 1000. Returns 0; -1: it is no such rate, or 0.
 */
int np_parse_rate(const char *text, double *bps);

/* A whole number without suffix, in base 10. Returns 0 or -1. */
int np_parse_int(const char *text, int64_t *out);

/* A unit of throughput that -f names. */
struct np_unit {
	char letter;
	const char *name; /* "10^6bits" */
	double divisor;   /* bytes (transactions for 'x') of one unit */
};

/* The unit of a letter of -f; unknown letters mean KBytes, as in netperf. Never NULL. */
const struct np_unit *np_unit(char letter);

/* Units per second for an amount moved in that time; for 'u', microseconds per unit of work. */
double np_rate(const struct np_unit *unit, double amount, double seconds);

/* Write a number with that many significant digits, an SI prefix and its unit: "9.41 Gbit/s". */
void np_si(double v, int digits, const char *unit, char *out, size_t size);

/* Rounded to that many significant digits, for "%.12g": "%.3g" prints 1000 as 1e+03. */
double np_significant(double value, int digits);

#endif
