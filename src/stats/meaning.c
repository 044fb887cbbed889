#include "stats/meaning.h"

static const struct np_meaning table[NP_METRICS] = {
#define NP_METRIC(name, type, print, group, collect, h1, h2, h3, h4, subject, unit, words)         \
	{ NP_SUBJECT_##subject, unit, words },
#include "stats/metrics.def"
#undef NP_METRIC
};

const struct np_meaning *
np_meaning(enum np_metric_id id)
{
	return &table[id];
}

const char *
np_subject_title(enum np_subject subject)
{
	static const char *const titles[NP_SUBJECTS] = {
		[NP_SUBJECT_NONE] = "",           [NP_SUBJECT_RESULT] = "Result",
		[NP_SUBJECT_LATENCY] = "Latency", [NP_SUBJECT_SURE] = "Confidence",
		[NP_SUBJECT_CPU] = "CPU",         [NP_SUBJECT_EVIDENCE] = "Evidence",
		[NP_SUBJECT_FLOWS] = "Flows",     [NP_SUBJECT_SIZES] = "Sizes and pacing",
		[NP_SUBJECT_SOCKET] = "Sockets",  [NP_SUBJECT_CALLS] = "Calls and buffers",
		[NP_SUBJECT_TEST] = "The test",   [NP_SUBJECT_HOST] = "Hosts",
		[NP_SUBJECT_NIC] = "Interfaces",  [NP_SUBJECT_OTHER] = "Marks in lists",
	};

	return titles[subject];
}
