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

/* The path between the ends; 0: not known. An unknown round trip is taken to be 1 ms. */
struct np_preflight_path {
	double rate_bps, rtt_s;
};

/* What a rule found. Texts are valid during the call. */
struct np_preflight_finding {
	enum np_preflight_level level;
	const char *name; /* of the rule, or of an unread fact without one; stable */
	const char *state;
	const char *why, *remedy; /* NULL: nothing to do */
};

/* The names of the rules; NULL after the last. */
const char *np_preflight_rule(size_t i);

/*
 * Apply all rules to one end. host: its facts; peer: those of the other end, NULL or empty if not
 * known; path may be NULL. Rules that do not apply find nothing. Unread facts of no rule come last.
 */
void np_preflight_each(const struct np_bag *host, const struct np_bag *peer,
		       const struct np_preflight_path *path,
		       void (*found)(void *ctx, const struct np_preflight_finding *f), void *ctx);

/* Print a line with the number of each level: "summary: local: 1 warn (load), 2 look ...". */
void np_preflight_summary(FILE *out, const char *which, const struct np_bag *host,
			  const struct np_bag *peer, const struct np_preflight_path *path);

/* Print the machine, then the findings: "warn local governor: powersave | why | remedy". */
void np_preflight_print(FILE *out, const char *which, const struct np_bag *host,
			const struct np_bag *peer, const struct np_preflight_path *path);

#endif
