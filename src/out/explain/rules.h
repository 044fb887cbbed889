/*
 * The rules that say what limits a test. A rule scores how well a cause fits: below NP_ENOUGH it
 * does not hold. Fixed scores, such as 0.988, only order the causes that hold. Unknown figures are
 * NAN, with which comparisons are false. If possible a rule says what rate its cause alone allows.
 */
#ifndef NP_OUT_EXPLAIN_RULES_H
#define NP_OUT_EXPLAIN_RULES_H

#include <stdbool.h>

#include "out/explain/constants.h"
#include "out/explain/facts.h"

/* Figures as text for a sentence; "?" if not known. */
struct np_word {
	char text[32];
};

struct np_words {
	char text[200];
};

struct np_word np_rate_words(double bps);
struct np_word np_time_words(double us);
struct np_word np_size_words(double bytes);
struct np_word np_count_words(double n);
struct np_word np_segments_words(double segments);

/* A share in percent, with enough digits not to look like none or all. */
struct np_word np_share_words(double share);

/* Add a part to a text, after "; " if it has any; a part that does not fit is left out. */
void np_explain_add(char text[NP_EXPLAIN_TEXT], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A rule judges one cause: its score, the sentence, and the rate that it allows. */
typedef void np_rule(const struct np_facts_of_test *f, struct np_verdict *v);

/* Set a verdict; `allows`: what was measured, unless the rule says otherwise. NAN scores 0. */
void np_decide(struct np_verdict *v, enum np_limit limit, double score, double share,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* A score that rises from NP_ENOUGH at the threshold to `most` at a value of 1; 0 below. */
double np_above(double value, double threshold, double most);

/* The value; 0 if it is not known. */
double np_known(double v);

/* Find lists of samples, all taken at the same times. Returns their length; 0: one is missing. */
size_t np_find_lists(const struct np_bag *b, const char *const *names, size_t lists,
		     struct np_bag_item *list);

/* "the sending process was busy 96 % of one CPU"; which: "sending", "reading" ... */
struct np_words np_cpu_words(const struct np_thread_facts *t, const char *which);

/* np_cpu_words() of the receiver's process: "reading", "discarding" or "responding". */
struct np_words np_reader_words(const struct np_facts_of_test *f);

/* The scores (0 to 1) of the rules of these names, for other rules to compare with. */
double np_sender_cpu_score(const struct np_facts_of_test *f);
double np_reader_cpu_score(const struct np_facts_of_test *f);
double np_link_score(const struct np_facts_of_test *f);

/* If a processor limits a byte stream, say what its calls cost, and which size needs fewer. */
void np_calls_tell(const struct np_facts_of_test *f, struct np_explanation *out);

#define NP_RULE(tests, name) np_rule np_rule_##name;
#include "out/explain/rules.def"

/* Find the ceiling and how much of it was reached. Say that, or why it is not known. */
void np_ceiling_tell(struct np_facts_of_test *f, struct np_explanation *out);

/* The share (0 to 1) of the link's rate that can be payload; NAN: not known, or none can be. */
double np_payload_share(const struct np_facts_of_test *f, const struct np_encap *encap);

/* The slow ones, or the others. */
struct np_flow_group {
	uint32_t count;
	double rate;                 /* of all together */
	double segments, again;      /* with data, and retransmitted, of flows that count both */
	struct np_explain_flow mean; /* of known values; NAN: none is known */
};

struct np_flows_found {
	uint32_t count, known; /* flows; those with a known rate */
	double least, most, all, jain;
	double slower; /* rates below it are slow */
	size_t mark; /* figure (offset in a row) that slow flows also have above `above`; 0: none */
	double above;
	bool apart; /* there are slow flows and others */
	struct np_flow_group slow, rest;
	const char *others; /* the rest, in sentences */
	struct {
		bool loss, rtt, queue, held; /* of the flows themselves */
		bool busy, divided, starved; /* of their threads */
		bool few;                    /* on fewer threads than by chance; why is not known */
		bool cpu;                    /* the same processor receives their packets */
	} has;                               /* properties of the slow flows that the others lack */
	int64_t thread, cpu;                 /* of all slow flows; -1: of several */
	uint32_t threads;                    /* for which it is known how busy they were */
	double least_busy;                   /* the least of them; NAN: not known */
	bool left_out;                       /* the facts are those of the rest */
	enum np_flows_kind kind;             /* NP_FLOWS_NONE: it depends on the test's limit */
};

/* Fill *w. If slow flows have a cause of their own, and carry less, leave them out of *f. */
void np_flows_find(struct np_facts_of_test *f, struct np_flows_found *w);

/* Add flows, flows_sentence and doubts to an explanation. */
void np_flows_tell(const struct np_flows_found *found, const struct np_facts_of_test *f,
		   struct np_explanation *out);

#endif
