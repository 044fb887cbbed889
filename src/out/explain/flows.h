/*
 * Several flows: whether what limits them is shared, or is each one's own. Flows that are slow are
 * told from the others by their rates; what the slow ones have and the others have not is theirs.
 */
#ifndef NP_OUT_EXPLAIN_FLOWS_H
#define NP_OUT_EXPLAIN_FLOWS_H

#include <stdbool.h>

#include "out/explain/facts.h"
#include "out/explain/words.h"

/* The mean of what is known. */
struct np_flow_mean {
	double sum;
	uint32_t count;
};

/* The slow ones, or the others. */
struct np_flow_group {
	uint32_t count;
	double rate, least, most; /* of all together; of one */
	double segments, again;
	struct np_flow_mean rtt_us, min_rtt_us, cwnd, held;
	struct np_flow_mean busy; /* of their threads */
};

/* What the slow ones have and the others have not. */
struct np_flow_marks {
	bool loss, rtt, queue, held;      /* each one's own */
	bool busy, divided, starved, one; /* their thread's: "one" has no reason that is known */
	bool cpu;                         /* packets come in at the same processor */
};

struct np_flows_found {
	uint32_t count, known; /* flows; those with a known rate */
	double least, most, all, jain;
	double slower; /* a rate below it is slow */
	size_t mark;   /* place in a row that slow ones have beyond `above`, too; 0: all do */
	double above;
	bool apart; /* there are slow ones and others */
	struct np_flow_group slow, rest;
	struct np_flow_marks has;
	int64_t thread, cpu;      /* of the slow ones, if all are of one; -1 */
	struct np_flow_mean busy; /* of all threads */
	double least_busy;        /* of them; NAN: not known */
	enum np_flows_kind kind;  /* NP_FLOWS_NONE: it takes the cause to tell */
};

void np_flows_find(const struct np_facts_of_test *f, struct np_flows_found *found);

/*
 * Sums mislead where a few flows have what is named of all: the figures become those of the others
 * if these carry most.
 */
void np_flows_correct(const struct np_flows_found *found, struct np_facts_of_test *f);

/* Set flows, flows_sentence and doubts of an explanation that is there. */
void np_flows_tell(const struct np_flows_found *found, const struct np_facts_of_test *f,
		   struct np_explanation *out);

#endif
