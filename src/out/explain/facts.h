/* Figures for the rules, by transmitter and receiver. NAN: not known; comparisons are false. */
#ifndef NP_OUT_EXPLAIN_FACTS_H
#define NP_OUT_EXPLAIN_FACTS_H

#include "out/explain.h"
#include "stats/ceiling.h"

/* A worker's thread: shares of its time. */
struct np_thread_facts {
	double cpu;   /* on a processor */
	double late;  /* ready to run, waiting for one */
	double wait;  /* the same, but 0 if that is no lack of a processor: it only woke up late */
	double idle;  /* the rest: it slept */
	double crowd; /* busy share of the processor on which it ended */
	double empty; /* share of its calls that found nothing, if the engine never sleeps */
	double blocked;   /* within a call that sends or receives */
	double pausing;   /* asleep by choice, as with -w */
	double quota;     /* processors that the cgroup of its process allows */
	double throttled; /* that quota was used up */
	double often;     /* share of the periods in which it was used up */
	double stalled;   /* its process was stopped */
	double busy;      /* it was running, or ready to run */
	double longest_s; /* longest time between two samples */
	const char *does; /* "sending", "reading" ... */
	int on;           /* the processor on which it ended; -1: not known */
	bool spins;       /* it never sleeps, but has time to spare: `cpu` and `idle` are NAN */
	bool crowded;     /* its last processor was busy, a fifth or more for others */
	bool starved;     /* it gets a processor only for part of the time that it needs */
	bool waits;       /* for others: it was blocked in calls for most of the time */
	bool stopped;     /* for NP_STALLED of the time or more, and not by a quota */
	bool kept_off;    /* stopped, or its quota was used up for NP_THROTTLED or more */
	bool lacks_quota; /* the quota explains why it waits for a processor */
};

/* Delays of data and of acknowledgements, by the bytes that both ends of TCP count over time. */
struct np_delay {
	double there_us, back_us; /* NAN: not known */
	double error_us;          /* of each; their sum is exact */
};

struct np_facts_of_test {
	const struct np_explain_input *in;
	const struct np_bag *tx, *rx; /* transmitter, receiver (requester, responder) */
	double seconds;
	double measured;  /* the rate: bits of payload, or transactions, a second */
	double given_bps; /* payload given to the transmitter's kernel, as far as it is known */
	struct np_thread_facts sender, reader;
	double connections; /* data connections, 1 or more; figures are sums, shares means */

	/* TCP, of the transmitter. */
	double busy, rwnd, sndbuf; /* shares of time: data outstanding; held up by these */
	double segments;           /* with data */
	double retransmits;        /* retransmitted segments that were needed */
	double loss;               /* retransmits as a share of the segments */
	double doubled;            /* segments that the network duplicated */
	double again;              /* all retransmitted segments */
	double in_vain;            /* share of these that had not been lost */
	double unassembled;        /* datagrams with missing fragments */
	double rtt_us, min_rtt_us; /* medians of the samples, where there are any */
	double queue_us;           /* rtt_us beyond min_rtt_us */
	double cwnd;               /* segments */
	double paces_bps;          /* the kernel's pacing rate: the median */
	double cwnd_full;          /* share of samples: the congestion window is full */
	double app_short;   /* share of samples: nothing waits to be sent, all windows have room */
	double outq;        /* bytes in the send buffer: the median */
	double outq_full;   /* share of samples: the send buffer is full of data in flight */
	double window_full; /* share of samples: the receiver's window is full */
	double window;      /* the receiver's, in bytes: the median */
	double widest;      /* largest sample of it */
	double send_buffer; /* SO_SNDBUF, of all */
	struct np_delay delay;
	double far_us;     /* part of a transaction that the responder takes */
	double marked;     /* share of segments with a congestion mark (ECN) */
	double loss_times; /* samples with new retransmissions */
	double outage;     /* share of time without progress, with data in flight */
	double outage_s;   /* the longest such time */

	/* Of the receiver. */
	double inq;            /* bytes that wait to be read: the median */
	double near_inq;       /* the same of the requester */
	double inq_waits;      /* share of samples with a quarter of the buffer or more to read */
	double inq_left;       /* share of samples with anything to read */
	double receive_buffer; /* SO_RCVBUF, of all */

	/* Datagrams. */
	double sent, lost; /* datagrams */
	double lost_share;
	double buffer_drops;  /* by a full receive buffer */
	double backlog_drops; /* by the receiver's softirq queues (softnet_stat) */

	/* What the user asked for. */
	double pacing_bps; /* SO_MAX_PACING_RATE, as payload */
	double writes_bps; /* what -b and -w, or --rate, let the sender write */
	double reads_bps;  /* and let the reader read */

	/* Machines. */
	double softirq;       /* softirq share of the receiver's processor that has the most */
	double softirq_crowd; /* busy share of that processor */

	/* The link. */
	double mtu;
	struct np_encap encap;              /* valid if mtu is known */
	double rate_bps;                    /* 0: not known */
	double subflows;                    /* of MPTCP; 1 without */
	const char *rate_source;            /* where the rate is from */
	double reached;                     /* share of the ceiling, once that is known */
	double rate_out_bps, rate_back_bps; /* of transactions, each direction; 0: not known */
	double timeouts;                    /* retransmission time-outs of TCP at both ends */
	double syn_timeouts;                /* those of SYNs */
	double sent_again;                  /* retransmitted segments, by both ends */
	double turn_us;    /* of one transaction; NAN in an open loop, where several overlap */
	double tail;       /* share of a transaction's mean time that is above the median */
	double pace_per_s; /* transactions a second that -b and -w, or --rate, allow */
	double far_rtt_us; /* of the responses, as the responder measures it */
	double foreign;    /* share of the link's rate that other traffic used */
	double policed;    /* packets that tc rules of the receiver's device dropped */
	double own_drops;  /* packets that the transmitter's queueing discipline dropped */
	double held_back;  /* packets a second that it held back */
	double spread; /* mean deviation of rates between samples from their median, as a share */

	/* Flags and numbers of the above, here to save padding. */
	bool near_leads;   /* the transmitter, or requester, is this end */
	bool by_loss;      /* its congestion control reacts to loss */
	bool discards;     /* the kernel discarded received data without a copy */
	int softirq_cpu;   /* number of that processor */
	bool same_machine; /* both ends share processors */
	bool shaped;       /* the transmitter's own queueing discipline has a rate */
	bool bucket;    /* the rate is that of a token bucket, which does not delay each packet */
	bool open_loop; /* --rate: how many are in flight is not known */
};

/* Fill *f. Figures of an end are NAN if its bag is NULL: there is no evidence. */
void np_facts_of_test(const struct np_explain_input *in, struct np_facts_of_test *f);

/*
 * tx: evidence of the transmitter; rx: of the receiver. "There" lasts from a byte's first
 * transmission until it is received in order, with queues and retransmissions; "back" until its
 * acknowledgement arrives. In transactions tx is the requester, or the responder; as responses
 * acknowledge requests, "back" of requests less "there" of responses is the far end's time. Both
 * ends must read one clock: else the samples fit any division of the round trip.
 */
void np_delay_of(const struct np_bag *tx, const struct np_bag *rx, struct np_delay *d);

#endif
