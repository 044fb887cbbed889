/*
 * What about a host speaks against a measurement, or for it: one table of rules over the facts of
 * doc/evidence.md, which says of each its state, why that matters, and the remedy.
 */
#ifndef NP_OUT_PREFLIGHT_RULES_H
#define NP_OUT_PREFLIGHT_RULES_H

#include <stdio.h>

#include "base/bag.h"

enum np_preflight_level {
	NP_PREFLIGHT_OK,
	NP_PREFLIGHT_LOOK,  /* may matter: for latency, at high rates, or for some tests */
	NP_PREFLIGHT_WARN,  /* figures will be those of this, and not of the network */
	NP_PREFLIGHT_UNREAD /* not known; the state says why */
};

/* What is known of the path between the ends, 0 for what is not: then a round trip takes 1 ms. */
struct np_preflight_path {
	double rate_bps, rtt_s;
};

/* What a rule found; texts are valid during the call. */
struct np_preflight_finding {
	enum np_preflight_level level;
	const char *name; /* of the rule, or of the fact that no rule is about; stable */
	const char *state;
	const char *why, *remedy; /* NULL where there is nothing to be done about it */
};

/* The names of the rules; NULL behind the last. */
const char *np_preflight_rule(size_t i);

/*
 * Apply all rules to one end. host: its facts; peer: the other end's, NULL or empty when not known;
 * path may be NULL. Rules that do not apply
 * are silent; what could not be read is found last, where no rule has named it already.
 */
void np_preflight_each(const struct np_bag *host, const struct np_bag *peer,
		       const struct np_preflight_path *path,
		       void (*found)(void *ctx, const struct np_preflight_finding *f), void *ctx);

/* A line that says how many of each level there are: "summary: local: 1 warn (load), 2 look ...".
 */
void np_preflight_summary(FILE *out, const char *which, const struct np_bag *host,
			  const struct np_bag *peer, const struct np_preflight_path *path);

/*
 * The same as lines: "warn local governor: powersave | why | remedy". which: "local" or "remote". A
 * line that begins with it and a colon says what machine that is.
 */
void np_preflight_print(FILE *out, const char *which, const struct np_bag *host,
			const struct np_bag *peer, const struct np_preflight_path *path);

#endif
