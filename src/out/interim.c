#include <inttypes.h>

#include "out/format.h"

void
np_interim_print(FILE *out, enum np_style style, const struct np_interim *i)
{
	uint64_t s = i->ending_ms / 1000;
	unsigned ms = (unsigned)(i->ending_ms % 1000);
	char up[48] = "";

	if (i->ramps) {
		snprintf(up, sizeof(up),
			 style == NP_STYLE_CSV ? ",%" PRIu64 : " %" PRIu64 " flows up",
			 i->flows_up);
	}
	switch (style) {
	case NP_STYLE_CLASSIC:
	case NP_STYLE_COLUMNS:
	case NP_STYLE_HUMAN:
		fprintf(out,
			"Interim result: %7.2f %s/s over %.3f seconds ending at %" PRIu64
			".%03u%s\n",
			i->rate, i->unit, i->seconds, s, ms, up);
		break;
	case NP_STYLE_CSV:
		fprintf(out, "%7.2f,%s/s,%.3f,%" PRIu64 ".%03u%s\n", i->rate, i->unit, i->seconds,
			s, ms, up);
		break;
	case NP_STYLE_KEYVAL:
		fprintf(out,
			"NETPERF_INTERIM_RESULT[%u]=%.2f\n"
			"NETPERF_UNITS[%u]=%s/s\n"
			"NETPERF_INTERVAL[%u]=%.3f\n"
			"NETPERF_ENDING[%u]=%" PRIu64 ".%03u\n",
			i->number, i->rate, i->number, i->unit, i->number, i->seconds, i->number, s,
			ms);
		if (i->ramps) {
			fprintf(out, "NETPERF_FLOWS_UP[%u]=%" PRIu64 "\n", i->number, i->flows_up);
		}
		break;
	}
	fflush(out);
}

/* netperf's histogram: a decade has ten cells of one unit. */
enum { DECADES = 8, TENTHS = 10 };

void
np_histogram_print(FILE *out, const struct np_hist *h)
{
	static const char *const labels[DECADES] = {
		"UNIT_USEC", "TEN_USEC",     "HUNDRED_USEC", "UNIT_MSEC",
		"TEN_MSEC",  "HUNDRED_MSEC", "UNIT_SEC",     "TEN_SEC",
	};
	uint64_t count[DECADES][TENTHS] = { { 0 } }, over = 0, total = 0;

	for (unsigned i = np_hist_next(h, 0); i < NP_HIST_CELLS; i = np_hist_next(h, i + 1)) {
		uint64_t us = (uint64_t)np_hist_middle(i) / 1000; /* whole ones, as in netperf */
		uint64_t unit = 1;
		int d = 0;

		for (; d < DECADES && us >= unit * TENTHS; d++) {
			unit *= TENTHS;
		}
		*(d < DECADES ? &count[d][us / unit] : &over) += h->cell[i];
		total += h->cell[i];
	}
	for (int d = 0; d < DECADES; d++) {
		fprintf(out, "%-14s", labels[d]);
		for (int t = 0; t < TENTHS; t++) {
			fprintf(out, ": %4" PRIu64, count[d][t]);
		}
		fputc('\n', out);
	}
	fprintf(out, ">100_SECS: %" PRIu64 "\nHIST_TOTAL:      %" PRIu64 "\n", over, total);
}
