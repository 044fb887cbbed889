/*
 * The rules that say what limits a test. A rule looks at its figures and says how well it fits: a
 * score below NP_ENOUGH does not hold. A figure that is not known is NAN, with which no comparison
 * holds. Where it can be told, a rule says what its cause alone would have allowed.
 */
#ifndef NP_OUT_EXPLAIN_RULES_H
#define NP_OUT_EXPLAIN_RULES_H

#include <stdbool.h>

#include "out/explain/facts.h"

/* Every figure that rules are bound to: doc/explain.md has them as a table. */
#include "out/explain/constants.h"

/* ---- Figures as sentences have them; what is not known, or no figure, is "?" ---- */

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
struct np_word np_window_words(double segments);

/* A share in percent: as many digits as tell it from none and from all. */
struct np_word np_share_words(double share);

/* Another part of a text, behind "; ". */
void np_explain_add(char text[NP_EXPLAIN_TEXT], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- What a rule says ---- */

struct np_verdict {
	enum np_limit limit;
	double score;  /* 0 to 1 */
	double share;  /* of the time, or of the ceiling, as the sentence has it */
	double allows; /* bits of payload, or transactions, a second; NAN: not known */
	char sentence[NP_EXPLAIN_TEXT];
	char doubts[NP_EXPLAIN_TEXT];
};

typedef void np_rule(const struct np_facts_of_test *f, struct np_verdict *v);

/* Take down what a rule says. A score that is NAN, as a figure was not known, is 0. */
void np_decide(struct np_verdict *v, enum np_limit limit, double score, double share,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* From NP_ENOUGH at the threshold to `most` where everything is taken. */
double np_above(double value, double threshold, double most);

/* 0 in the place of what is not known. */
double np_known(double v);

/* The rate that was measured: bits of payload, or transactions, a second. */
double np_measured(const struct np_facts_of_test *f);

/* ---- The ends ---- */

/* Running, or ready to run. */
double np_thread_busy(const struct np_thread_facts *t);

/* The processor on which it ended has next to no time left, as others have it. */
bool np_thread_crowded(const struct np_thread_facts *t);

/* It gets a processor for a part of the time only, and would use more. */
bool np_thread_starved(const struct np_thread_facts *t);

/* Its process was kept from running: by a quota, or as it was stopped or frozen. */
bool np_thread_throttled(const struct np_thread_facts *t);
bool np_thread_stalled(const struct np_thread_facts *t);

/* It was found in the calls that send or receive: it waits for others. */
bool np_thread_waits(const struct np_thread_facts *t);

struct np_words np_cpu_words(const struct np_thread_facts *t, const char *which);
struct np_words np_reader_words(const struct np_facts_of_test *f);
struct np_words np_softirq_words(const struct np_facts_of_test *f);

double np_sender_cpu_score(const struct np_facts_of_test *f);
double np_reader_cpu_score(const struct np_facts_of_test *f);
double np_softirq_score(const struct np_facts_of_test *f);
double np_link_score(const struct np_facts_of_test *f);

/* The transmitter's own queueing discipline makes packets wait, all the while. */
bool np_holds_back(const struct np_facts_of_test *f);

/* What the calls of a stream cost where processors limit it, and the size that makes fewer. */
void np_calls_tell(const struct np_facts_of_test *f, struct np_explanation *out);

np_rule np_rule_sender_quota, np_rule_reader_quota, np_rule_sender_stalled, np_rule_reader_stalled,
    np_rule_pacing, np_rule_application, np_rule_slow_reads, np_rule_sender_cpu, np_rule_reader,
    np_rule_kept_up;

/* ---- TCP ---- */

np_rule np_rule_send_buffer, np_rule_loss, np_rule_path, np_rule_reordering, np_rule_outage,
    np_rule_receive_window;

/* ---- Links, and the processors that take packets in ---- */

np_rule np_rule_link, np_rule_shaper, np_rule_foreign, np_rule_policer, np_rule_softirq,
    np_rule_mtu;

/* ---- Datagrams ---- */

np_rule np_rule_udp_buffer, np_rule_datagrams_lost;

/* ---- Transactions ---- */

np_rule np_rule_turns, np_rule_turns_direction, np_rule_turns_lost, np_rule_turns_wait,
    np_rule_turns_queue, np_rule_turns_paced;

/* ---- The ceiling ---- */

void np_find_ceiling(const struct np_facts_of_test *f, struct np_explain_ceiling *c);
void np_ceiling_words(const struct np_facts_of_test *f, struct np_explanation *out);

/* The share of the link's rate that can be payload. */
double np_payload_share(const struct np_facts_of_test *f, const struct np_way *way);

/* ---- Several data connections: one cause for all, a thread's, or some flows' own ---- */

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
