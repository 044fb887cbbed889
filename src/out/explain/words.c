#include "out/explain/words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const struct np_word no_figure = { "?" };

struct np_word
np_rate_words(double bps)
{
	struct np_word w = no_figure;

	if (!isfinite(bps)) {
		return w;
	}
	if (bps >= 1e9) {
		snprintf(w.text, sizeof(w.text), "%.4g Gbit/s", bps / 1e9);
	} else if (bps >= 1e6) {
		snprintf(w.text, sizeof(w.text), "%.4g Mbit/s", bps / 1e6);
	} else {
		snprintf(w.text, sizeof(w.text), "%.4g kbit/s", bps / 1e3);
	}
	return w;
}

struct np_word
np_time_words(double us)
{
	struct np_word w = no_figure;

	if (!isfinite(us)) {
		return w;
	}
	if (us >= 1e6) {
		snprintf(w.text, sizeof(w.text), "%.3g s", us / 1e6);
	} else if (us >= 1000) {
		snprintf(w.text, sizeof(w.text), "%.3g ms", us / 1000);
	} else {
		snprintf(w.text, sizeof(w.text), "%.3g us", us);
	}
	return w;
}

struct np_word
np_size_words(double bytes)
{
	struct np_word w = no_figure;

	if (!isfinite(bytes)) {
		return w;
	}
	if (bytes >= 100 * 1024) {
		snprintf(w.text, sizeof(w.text), "%.0f KiB", bytes / 1024);
	} else {
		snprintf(w.text, sizeof(w.text), "%.0f bytes", bytes);
	}
	return w;
}

struct np_word
np_count_words(double n)
{
	struct np_word w = no_figure;

	if (isfinite(n)) {
		snprintf(w.text, sizeof(w.text), "%.0f", n);
	}
	return w;
}

struct np_word
np_window_words(double segments)
{
	struct np_word w = np_count_words(segments);

	np_text_add(w.text, sizeof(w.text), strlen(w.text), "%s",
		    segments == 1 ? " segment" : " segments");
	return w;
}

struct np_word
np_share_words(double share)
{
	struct np_word w = no_figure;
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
