/* A result in the style that the user asked for. */
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
