/*
 * What limited a test, in a sentence with the figures that say so, and what the link could have
 * carried: from what both ends, or one of them, know of it (the names are in doc/evidence.md).
 */
#ifndef NP_OUT_EXPLAIN_H
#define NP_OUT_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bag.h"
#include "stats/hist.h"

/* The causes told apart. */
enum np_limit {
	NP_LIMIT_UNCLEAR,        /* nothing decides */
	NP_LIMIT_APPLICATION,    /* the sending application wrote less than could go */
	NP_LIMIT_SENDER_CPU,     /* the sending thread had no more of a processor */
	NP_LIMIT_SENDER_QUOTA,   /* its cgroup had no more of a processor */
	NP_LIMIT_SENDER_STALLED, /* its process stood still: stopped, frozen */
	NP_LIMIT_PACING,         /* the rate that the user asked for */
	NP_LIMIT_SEND_BUFFER,    /* as much as SO_SNDBUF holds was under way */
	NP_LIMIT_LOSS,           /* segments or datagrams lost on the way */
	NP_LIMIT_REORDERING,     /* segments that overtake each other look lost */
	NP_LIMIT_OUTAGE,         /* times in which nothing got through */
	NP_LIMIT_PATH,           /* the congestion window, by the rate of the path */
	NP_LIMIT_CWND,           /* the congestion window, and neither loss nor a queue says why */
	NP_LIMIT_ACK_PATH,       /* acknowledgements that queue on their way back */
	NP_LIMIT_RECEIVE_WINDOW, /* the receiver's window, for an unknown reason */
	NP_LIMIT_WINDOW_CLAMP,   /* the same: not its buffer, but a route or no scaling */
	NP_LIMIT_RECEIVER_CPU,   /* the reading thread had no more of a processor */
	NP_LIMIT_READER_QUOTA,   /* its cgroup had no more of a processor */
	NP_LIMIT_READER_STALLED, /* its process stood still */
	NP_LIMIT_READER_SLOW,    /* data waited for a reader that did something else */
	NP_LIMIT_RECEIVE_BUFFER, /* the reader was quick: the window was too small for the path */
	NP_LIMIT_LINK,           /* the link's rate, or a shaper's */
	NP_LIMIT_FOREIGN,        /* the same, as others use it, too */
	NP_LIMIT_POLICER,        /* what an interface of either end dropped by its rules */
	NP_LIMIT_SOFTIRQ,        /* a processor that only handles packets, at the receiver */
	NP_LIMIT_UDP_BUFFER,     /* datagrams dropped by a full receive buffer */
	NP_LIMIT_MTU,            /* small packets: each costs a processor, or the link, as much */
	NP_LIMIT_TURNS,          /* one transaction at a time: the way there and back */
	NP_LIMITS
};

/* "sender-cpu": for documents and scripts. */
const char *np_limit_name(enum np_limit limit);

/* One of several data connections, as this end knows it. NAN, or -1: not known. */
struct np_explain_flow {
	double rate;               /* bits of payload, or transactions, a second */
	double segments, again;    /* that this end sent: with data, and sent again */
	double loss;               /* their share, which need not be filled in */
	double rtt_us, min_rtt_us; /* at the end, and the least */
	double cwnd;               /* segments, at the end */
	double held;               /* share of the time that the receiver's window held it up */
	int64_t thread, cpu;       /* who drove it, and where its packets came in */
};

/* One of the threads that drove them. */
struct np_explain_thread {
	double busy; /* share of its time on a processor; NAN: not known */
	int on;      /* that processor; -1: not known */
};

/* Rows that are asked for one after another, without making a list of them. */
struct np_explain_flows {
	uint32_t count, threads; /* fewer than two flows are nothing to compare */
	bool ramped;             /* they began one after another */
	void (*flow)(const void *of, uint32_t i, struct np_explain_flow *row);
	void (*thread)(const void *of, uint32_t i, struct np_explain_thread *row);
	const void *of;
};

/* Whether several flows have one cause. */
enum np_flows_kind {
	NP_FLOWS_NONE,      /* there is one alone */
	NP_FLOWS_SHARED,    /* what limits one limits all */
	NP_FLOWS_BY_THREAD, /* the slow ones are those of some threads */
	NP_FLOWS_OWN,       /* the slow ones have what the others have not */
	NP_FLOWS_UNCLEAR,
	NP_FLOWS_KINDS
};

/* What there is to go by. */
struct np_explain_input {
	const struct np_bag *near, *far; /* NULL: not known */
	const char *far_lacks;           /* why the far end tells nothing; NULL or "": it does */
	bool lossy;                      /* UDP and its like; else TCP */
	bool messages;                   /* SCTP, of which TCP's facts and rules say nothing */
	bool transactions;               /* request/response and connection tests */
	bool near_transmits;             /* streams: else the far end does */
	bool both;              /* streams: the other way, too, of which this does not tell */
	uint32_t options;       /* np_way.options, unless the connection fell back to TCP */
	int family;             /* 4 or 6; NP_FRAMES; 0: no packets cross a link (UNIX domain) */
	uint32_t packet_header; /* as np_way.message_header */
	double seconds;         /* of the measured part */
	double sent_bps;        /* payload given to the transmitter's kernel; 0: not known */
	double throughput_bps;  /* payload, the receiver's figure where that is known */
	double per_second;      /* transactions; 0: none */
	uint32_t request, response;          /* bytes, of transactions */
	double least_us, median_us, mean_us; /* that they took; NAN or 0: not known */
	uint32_t in_flight;                  /* transactions under way at once */
	bool connections;                    /* one for each transaction */
	const struct np_hist *closed; /* latencies, where each request followed an answer; NULL */
	double link_rate_bps;         /* as the user says it; 0: find out */
	double disturbed; /* share of the time that others disturbed; 0: none, or not known */
	const char *disturbed_by; /* "switches:1.2 steal:0.3", in s; NULL: none */
	uint32_t iterations;      /* of which this is the last one; 0: no matter */
	uint32_t sessions; /* at once: bags and rates are of the first one; 0, 1: there is one */
	double beside;     /* throughput_bps, or per_second, of the other sessions together */
	struct np_explain_flows flows; /* of all sessions */
};

/* The most this test could have carried; all NAN where the link's rate is not known. */
struct np_explain_ceiling {
	double rate_bps; /* of the link, as far as it is known */
	const char
	    *known;  /* whence: "--link-rate", "the interface", "tbf"; valid as long as the bags */
	double most; /* bits of payload, or transactions, a second */
	double reached; /* share of it, 0 to 1 */
	/* Where the rest went, as shares of the most; NAN: not known, or of transactions. */
	double retransmits, small_segments, acks, lost, idle;
};

enum { NP_EXPLAIN_TEXT = 800 };

struct np_explanation {
	enum np_limit limit;
	double score; /* 0 to 1: how well the rule fits */
	double share; /* of the time, or of the ceiling, as the sentence has it; NAN: no such */
	char sentence[NP_EXPLAIN_TEXT]; /* without a full stop */
	char doubts[NP_EXPLAIN_TEXT];   /* empty: none */
	double allows;                  /* what this cause alone would have; NAN: not known */
	enum np_limit also;             /* another that holds; NP_LIMIT_UNCLEAR: none */
	char also_sentence[NP_EXPLAIN_TEXT];
	enum np_limit next;          /* what would limit without it; NP_LIMIT_UNCLEAR: not known */
	double next_allows;          /* bits of payload, or transactions, a second */
	char calls[NP_EXPLAIN_TEXT]; /* what the sender's calls cost; empty: it does not matter */
	enum np_flows_kind flows;
	char flows_sentence[NP_EXPLAIN_TEXT];
	struct np_explain_ceiling ceiling;
	char ceiling_text[NP_EXPLAIN_TEXT];
};

/* For documents: explain.limit, explain.sentence, explain.ceiling_bps ... (doc/evidence.md). */
void np_explain_put(const struct np_explanation *e, bool transactions, struct np_bag *into);

/* As lines for people, from the values that np_explain_put() has put; nothing without such. */
void np_explain_print(FILE *out, const struct np_bag *values);

/* Decide by the rules of explain.c. Never fails: what does not decide is NP_LIMIT_UNCLEAR. */
void np_explain(const struct np_explain_input *in, struct np_explanation *out);

#endif
