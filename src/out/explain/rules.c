#include "out/explain/rules.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

static const char *const limit_names[NP_LIMITS] = {
#define NP_LIMIT(name, text) text,
#include "out/explain/limits.def"
};

const char *
np_limit_name(enum np_limit limit)
{
	return limit_names[limit];
}

void
np_decide(struct np_verdict *v, enum np_limit limit, double score, double share, const char *fmt,
	  ...)
{
	va_list ap;

	v->limit = limit;
	v->score = score > 0 ? fmin(score, 1) : 0;
	v->share = share;
	va_start(ap, fmt);
	vsnprintf(v->sentence, sizeof(v->sentence), fmt, ap);
	va_end(ap);
}

double
np_above(double value, double threshold, double most)
{
	return value >= threshold
		   ? NP_ENOUGH + (value - threshold) / (1 - threshold) * (most - NP_ENOUGH)
		   : 0;
}

double
np_known(double v)
{
	return isnan(v) ? 0 : v;
}

size_t
np_find_lists(const struct np_bag *b, const char *const *names, size_t lists,
	      struct np_bag_item *list)
{
	size_t count = np_bag_list(b, names[0], 0, &list[0]);

	for (size_t i = 1; i < lists; i++) {
		count = np_bag_list(b, names[i], 0, &list[i]) == count ? count : 0;
	}
	return count;
}

/* A value in the best of three units, which differ by 1000; `first` is the size of the smallest. */
static struct np_word
scaled(double value, double first, int digits, const char *const unit[3])
{
	struct np_word w = { "?" };
	double size = first;
	int i = 0;

	value = np_significant(value, digits);
	for (; i < 2 && value >= 1e3 * size; i++) {
		size *= 1e3;
	}
	if (isfinite(value)) {
		snprintf(w.text, sizeof(w.text), "%.12g %s", value / size, unit[i]);
	}
	return w;
}

struct np_word
np_rate_words(double bps)
{
	static const char *const unit[] = { "kbit/s", "Mbit/s", "Gbit/s" };

	return scaled(bps, 1e3, 4, unit);
}

struct np_word
np_time_words(double us)
{
	static const char *const unit[] = { "us", "ms", "s" };

	return scaled(us, 1, 3, unit);
}

struct np_word
np_size_words(double bytes)
{
	struct np_word w = { "?" };
	bool large = bytes >= 100 * 1024;

	if (isfinite(bytes)) {
		snprintf(w.text, sizeof(w.text), "%.0f %s", large ? bytes / 1024 : bytes,
			 large ? "KiB" : "bytes");
	}
	return w;
}

struct np_word
np_count_words(double n)
{
	struct np_word w = { "?" };

	if (isfinite(n)) {
		snprintf(w.text, sizeof(w.text), "%.0f", n);
	}
	return w;
}

struct np_word
np_segments_words(double segments)
{
	struct np_word w = np_count_words(segments);

	np_text_add(w.text, sizeof(w.text), strlen(w.text), "%s",
		    segments == 1 ? " segment" : " segments");
	return w;
}

struct np_word
np_share_words(double share)
{
	struct np_word w = { "?" };
	double percent = share * 100;
	int digits = percent <= 0 || percent >= 99.95 ? 0
		     : percent < 0.095                ? 3
		     : percent < 0.95                 ? 2
		     : percent < 9.5 || percent > 99  ? 1
						      : 0;

	if (percent > 0 && percent < 0.0005) {
		snprintf(w.text, sizeof(w.text), "less than 0.001 %%");
	} else if (isfinite(percent)) {
		snprintf(w.text, sizeof(w.text), "%.*f %%", digits, percent);
	}
	return w;
}

void
np_explain_add(char text[NP_EXPLAIN_TEXT], const char *fmt, ...)
{
	size_t before = strlen(text), used = before;
	va_list ap;
	int len;

	if (used > 0) {
		used = np_text_add(text, NP_EXPLAIN_TEXT, used, "; ");
	}
	va_start(ap, fmt);
	len = vsnprintf(text + used, NP_EXPLAIN_TEXT - used, fmt, ap);
	va_end(ap);
	if (before > 0 && (len < 0 || used + (size_t)len >= NP_EXPLAIN_TEXT)) {
		text[before] = '\0'; /* no half sentences */
	}
}
