/* Results and interim results in the style that the user asked for. */
#include <inttypes.h>

#include "out/format.h"

void
np_look_print(FILE *out, const struct np_look *l, const struct np_figures *f)
{
	struct np_record shown = *f->record;
	struct np_figures figures = *f;
	struct np_classic classic = l->classic;

	if (l->style == NP_STYLE_HUMAN) {
		np_human_print(out, l, f);
		return;
	}
	/* As in netperf, figures that were not asked for are printed as unknown, or as "". */
	for (int id = 0; id < NP_METRICS && !l->latency; id++) {
		if (np_metrics[id].collect == NP_COLLECT_LATENCY) {
			shown.value[id].known = false;
		}
	}
	if (!l->congestion) {
		np_record_text(&shown, NP_M_LOCAL_CONG_CONTROL, "");
		np_record_text(&shown, NP_M_REMOTE_CONG_CONTROL, "");
	}
	figures.record = &shown;
	if (l->style == NP_STYLE_CLASSIC) {
		if (l->missed) {
			np_confidence_warn(out, &shown);
		}
		/* For whichever of the two the layout prints. */
		classic.hist = l->histogram || l->average ? f->latency : NULL;
		np_classic_print(out, &classic, &shown);
	} else {
		np_omni_print(out, l->style, &l->list, classic.headers, &figures);
		if (l->histogram && f->latency != NULL) {
			fprintf(out, "\nHistogram of %s times\n", l->histogram_of);
			np_histogram_print(out, f->latency);
		}
	}
	if (l->times && l->classic.verbosity > 0) {
		np_times_print(out, f->latency, l->classic.headers);
	}
}

void
np_interim_print(FILE *out, enum np_style style, const struct np_interim *i)
{
	char up[48] = "", ending[32];

	snprintf(ending, sizeof(ending), "%" PRIu64 ".%03u", i->ending_ms / 1000,
		 (unsigned)(i->ending_ms % 1000));
	if (i->ramps) {
		snprintf(up, sizeof(up),
			 style == NP_STYLE_CSV ? ",%" PRIu64 : " %" PRIu64 " flows up",
			 i->flows_up);
	}
	switch (style) {
	case NP_STYLE_CLASSIC:
	case NP_STYLE_COLUMNS:
	case NP_STYLE_HUMAN:
		fprintf(out, "Interim result: %7.2f %s/s over %.3f seconds ending at %s%s\n",
			i->rate, i->unit, i->seconds, ending, up);
		break;
	case NP_STYLE_CSV:
		fprintf(out, "%7.2f,%s/s,%.3f,%s%s\n", i->rate, i->unit, i->seconds, ending, up);
		break;
	case NP_STYLE_KEYVAL:
		fprintf(out,
			"NETPERF_INTERIM_RESULT[%u]=%.2f\n"
			"NETPERF_UNITS[%u]=%s/s\n"
			"NETPERF_INTERVAL[%u]=%.3f\n"
			"NETPERF_ENDING[%u]=%s\n",
			i->number, i->rate, i->number, i->unit, i->number, i->seconds, i->number,
			ending);
		if (i->ramps) {
			fprintf(out, "NETPERF_FLOWS_UP[%u]=%" PRIu64 "\n", i->number, i->flows_up);
		}
		break;
	}
	fflush(out);
}
