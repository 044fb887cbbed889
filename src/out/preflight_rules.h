/* Is a host fit for measurements? By rules over the facts of doc/evidence.md, with remedies. */
#ifndef NP_OUT_PREFLIGHT_RULES_H
#define NP_OUT_PREFLIGHT_RULES_H

#include <stdio.h>

#include "base/bag.h"

enum np_preflight_level {
	NP_PREFLIGHT_OK,
	NP_PREFLIGHT_LOOK,  /* may matter: for latency, at high rates, or for some tests */
	NP_PREFLIGHT_WARN,  /* results will show this, rather than the network */
	NP_PREFLIGHT_UNREAD /* not known; the state says why */
};

/* One end, what is known of the path to the other one, and the last finding. */
struct np_preflight {
	const struct np_bag *host, *peer; /* facts of both ends; NULL or empty: not known */
	double rate_bps, rtt_s; /* of the path; 0: not known, and the round trip taken to be 1 ms */
	/* What np_preflight_next() found. */
	enum np_preflight_level level;
	const char *name; /* of the rule, or of an unread fact without one; stable */
	const char *state;
	const char *why, *remedy; /* NULL: nothing to do */
	/* Its own. */
	size_t next;       /* rule, or after all rules fact of the host */
	const char *needs; /* facts of the current rule */
	bool applies;      /* they are known */
	char text[256], mend[256];
};

/* The names of the rules; NULL after the last. */
const char *np_preflight_rule(size_t i);

/*
 * Apply rules until one finds something; after the last one, tell the next unread fact of no rule.
 * False: there is no more, and the next call begins again.
 */
bool np_preflight_next(struct np_preflight *p);

/* Print a line with the number of each level: "summary: local: 1 warn (load), 2 look ...". */
void np_preflight_summary(FILE *out, const char *which, struct np_preflight *p);

/* Print the machine, then the findings: "warn local governor: powersave | why | remedy". */
void np_preflight_print(FILE *out, const char *which, struct np_preflight *p);

#endif
