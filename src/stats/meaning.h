/*
 * What the figures mean (metrics.def), for people who choose some.
 */
#ifndef NP_STATS_MEANING_H
#define NP_STATS_MEANING_H

#include "stats/record.h"

/* In the order in which they are listed. */
enum np_subject {
	NP_SUBJECT_NONE,
	NP_SUBJECT_RESULT,
	NP_SUBJECT_LATENCY,
	NP_SUBJECT_SURE,
	NP_SUBJECT_CPU,
	NP_SUBJECT_EVIDENCE,
	NP_SUBJECT_FLOWS,
	NP_SUBJECT_SIZES,
	NP_SUBJECT_SOCKET,
	NP_SUBJECT_CALLS,
	NP_SUBJECT_TEST,
	NP_SUBJECT_HOST,
	NP_SUBJECT_NIC,
	NP_SUBJECT_OTHER,
	NP_SUBJECTS
};

struct np_meaning {
	enum np_subject subject;
	const char *unit; /* "": none; "-f": the one of that option */
	const char *words;
};

const struct np_meaning *np_meaning(enum np_metric_id id);

/* The heading of a subject. */
const char *np_subject_title(enum np_subject subject);

#endif
