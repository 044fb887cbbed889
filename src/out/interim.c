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
