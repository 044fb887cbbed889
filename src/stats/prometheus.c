#include "stats/prometheus.h"

#include <math.h>
#include <stdbool.h>

enum { DIGITS = 20 }; /* of the largest whole numbers, 64 bits */

/* Within quotes, if `quoted`; help texts have no quotes to escape. */
static void
put_escaped(FILE *out, const char *text, bool quoted)
{
	for (; *text != '\0'; text++) {
		if (*text == '\n') {
			fputs("\\n", out);
		} else {
			fputs(*text == '\\' || (*text == '"' && quoted) ? "\\" : "", out);
			putc(*text, out);
		}
	}
}

void
np_prometheus_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s ", name);
	put_escaped(out, help, false);
	fprintf(out, "\n# TYPE %s %s\n", name, type);
}

void
np_prometheus_value(FILE *out, const char *name, const struct np_label *labels, size_t count,
		    double value)
{
	const char *between = "{";

	fputs(name, out);
	for (size_t i = 0; i < count; i++) {
		if (labels[i].value != NULL) {
			fprintf(out, "%s%s=\"", between, labels[i].name);
			put_escaped(out, labels[i].value, true);
			putc('"', out);
			between = ",";
		}
	}
	fputs(*between == ',' ? "} " : " ", out);
	if (isnan(value)) {
		fputs("NaN\n", out);
	} else if (isinf(value)) {
		fputs(value > 0 ? "+Inf\n" : "-Inf\n", out);
	} else {
		fprintf(out, "%.*g\n", value > floor(value) ? 17 : DIGITS, value);
	}
}
