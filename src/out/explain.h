/* What limited a test, and what the link could have carried, by either end's evidence or both. */
#ifndef NP_OUT_EXPLAIN_H
#define NP_OUT_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bag.h"
#include "stats/hist.h"

enum np_limit {
#define NP_LIMIT(name, text) NP_LIMIT_##name,
#include "out/explain/limits.def"
	NP_LIMITS
};

/* "sender-cpu": for documents and scripts. */
const char *np_limit_name(enum np_limit limit);

/* One of several data connections, as this end knows it. NAN, or -1: not known. */
struct np_explain_flow {
	double rate;               /* bits of payload, or transactions, a second */
	double segments, again;    /* that this end sent: with data, and retransmitted */
	double loss;               /* again / segments; flows.c computes it */
	double rtt_us, min_rtt_us; /* at the end of the test, and the least */
	double cwnd;               /* segments, at the end */
	double held;               /* share of the time that the receiver's window held it up */
	double busy;               /* as its thread; flows.c looks it up */
	int64_t thread, cpu;       /* that drove it, and that received its packets */
};

/* One of the threads that drove them. */
struct np_explain_thread {
	double busy; /* share of its time on a processor; NAN: not known */
	int on;      /* the processor on which it ended; -1: not known */
};

/* The flows and threads of a test, read row by row. */
struct np_explain_flows {
	uint32_t count, threads; /* with fewer than two flows nothing is compared */
	bool ramped;             /* they began one after another */
	void (*flow)(const void *of, uint32_t i, struct np_explain_flow *row);
	void (*thread)(const void *of, uint32_t i, struct np_explain_thread *row);
	const void *of;
};

/* Whether several flows have one cause. */
enum np_flows_kind {
	NP_FLOWS_NONE,      /* there is only one flow */
	NP_FLOWS_SHARED,    /* one cause limits all */
	NP_FLOWS_BY_THREAD, /* the slow ones belong to some threads */
	NP_FLOWS_OWN,       /* the slow ones have a cause of their own */
	NP_FLOWS_UNCLEAR,
	NP_FLOWS_KINDS
};

/* What is known of a test. */
struct np_explain_input {
	const struct np_bag *near, *far; /* NULL: not known */
	const char *far_lacks;           /* why the far end tells nothing; NULL or "": it does */
	bool datagrams;                  /* else TCP */
	bool messages;                   /* SCTP: TCP's figures and rules do not apply */
	bool transactions;               /* request/response and connection tests */
	bool near_transmits;             /* streams: else the far end does */
	bool both;                       /* streams both ways, of which this explains one */
	uint32_t options;       /* np_encap.options, unless the connection fell back to TCP */
	int family;             /* 4 or 6; NP_FRAMES; 0: no packets cross a link (UNIX domain) */
	uint32_t packet_header; /* as np_encap.message_header */
	double seconds;         /* of the measured part */
	double sent_bps;        /* payload given to the transmitter's kernel; 0: not known */
	double throughput_bps;  /* payload, the receiver's figure where that is known */
	double per_second;      /* transactions; 0: none */
	uint32_t request, response;          /* bytes, of transactions */
	double least_us, median_us, mean_us; /* their latency; NAN or 0: not known */
	uint32_t in_flight;                  /* transactions at a time */
	bool connections;                    /* a connection for each transaction */
	const struct np_hist *closed;        /* latencies of a closed loop; NULL: none */
	double link_rate_bps;                /* --link-rate; 0: find out */
	double disturbed;         /* disturbed share of the time; 0: none, or not known */
	const char *disturbed_by; /* "switches:1.2 steal:0.3", in s; NULL: none */
	uint32_t iterations;      /* this is the last one; 0: not known */
	uint32_t sessions; /* at a time: bags and rates are of the first one; 0, 1: only one */
	double beside;     /* throughput_bps, or per_second, of the other sessions together */
	struct np_explain_flows flows; /* of all sessions */
};

/* The most this test could have carried; all NAN if the link's rate is not known. */
struct np_explain_ceiling {
	double rate_bps; /* of the link, as far as it is known */
	double most;     /* bits of payload, or transactions, a second */
	double reached;  /* share of it, 0 to 1 */
	/* Where the rest went, as shares of `most`; NAN: not known, or transactions. */
	double retransmits, small_segments, acks, lost, idle;
};

enum { NP_EXPLAIN_TEXT = 800 };

/* What a rule says of a cause. */
struct np_verdict {
	enum np_limit limit;
	double score;  /* 0 to 1: how well the rule fits */
	double share;  /* of the time, or of the ceiling, as in the sentence; NAN: none */
	double allows; /* rate that this cause alone allows; not finite: not known */
	char sentence[NP_EXPLAIN_TEXT]; /* without a full stop */
	char doubts[NP_EXPLAIN_TEXT];   /* empty: none */
};

struct np_explanation {
	struct np_verdict best;
	struct np_verdict also;      /* another that holds; NP_LIMIT_UNCLEAR: none */
	struct np_verdict next;      /* the limit without that cause; NP_LIMIT_UNCLEAR: not known */
	char calls[NP_EXPLAIN_TEXT]; /* cost of the sender's calls; empty: it does not matter */
	enum np_flows_kind flows;
	char flows_sentence[NP_EXPLAIN_TEXT];
	struct np_explain_ceiling ceiling;
	char ceiling_text[NP_EXPLAIN_TEXT];
};

/* Put explain.limit ... (doc/evidence.md). transactions: rates are these a second, not bit/s. */
void np_explain_put(const struct np_explanation *e, bool transactions, struct np_bag *into);

/* Print the values that np_explain_put() has put, as lines for people. */
void np_explain_print(FILE *out, const struct np_bag *values);

/* Apply the rules. Never fails: if none fits, the result is NP_LIMIT_UNCLEAR. */
void np_explain(const struct np_explain_input *in, struct np_explanation *out);

#endif
