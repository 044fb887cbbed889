/*
 * The figures that the rules go by, taken out of the bags of both ends and turned to
 * who transmits and who receives. NAN: not known; comparisons with it are false.
 */
#ifndef NP_OUT_EXPLAIN_FACTS_H
#define NP_OUT_EXPLAIN_FACTS_H

#include "out/explain.h"
#include "stats/ceiling.h"

/* A worker's thread: shares of its time. */
struct np_thread_facts {
	double cpu;   /* on a processor */
	double late;  /* the same as `wait`, of those that want next to nothing, too */
	double wait;  /* ready to run, waiting for one */
	double idle;  /* the rest: it slept */
	double crowd; /* of the processor on which it ended: the share in which that was not idle */
	double empty; /* share of its calls that found nothing, if the engine never sleeps */
	double blocked;   /* within a call that sends or receives */
	double pausing;   /* asleep by its own will, as -w has it */
	double quota;     /* processors that the cgroup of its process allows */
	double throttled; /* that cgroup had used them up */
	double often;     /* share of its periods in which it had */
	double stalled;   /* its process stood still, or it was found stopped */
	double longest_s; /* time between two looks, at most */
	int on;           /* that processor; -1: not known */
	bool spins; /* it never sleeps, and has found nothing now and then: whether it could do
		     * more, its time does not tell. `cpu` and `idle` are NAN then */
};

struct np_facts_of_test {
	const struct np_explain_input *in;
	const struct np_bag *tx, *rx; /* transmitter, receiver (requester, responder) */
	double seconds;
	struct np_thread_facts sender, reader;
	double connections; /* of TCP; figures are their sums: 1 or more */

	/* TCP, of the transmitter. */
	double busy, rwnd, sndbuf;    /* shares of time: data outstanding, and what held it up */
	double segments, retransmits; /* with data; sent again, and not in vain */
	double loss;                  /* of the segments, share */
	double doubled;   /* segments that the receiver got twice, beyond those sent again */
	double again;     /* segments sent again */
	double in_vain;   /* of what was sent again the share that had not been lost */
	double reordered; /* times that segments were seen to have overtaken others */
	double unjoined;  /* datagrams of which fragments were missing */
	double rtt_us, min_rtt_us; /* medians of the samples, where there are any */
	double queue_us;           /* what the way there and back takes beyond the least */
	double cwnd;               /* segments */
	double paces_bps;          /* what the kernel paces at: the median */
	double cwnd_clamp;         /* the congestion window that a route allows all of them */
	double cwnd_full;   /* share of samples: all that the congestion window lets go has gone */
	double app_short;   /* share of samples: nothing waits to be sent, all windows have room */
	double outq;        /* bytes in the send buffer: the median */
	double outq_full;   /* share of samples: the send buffer is full of what is under way */
	double window_full; /* share of samples: all that the receiver's window lets go has gone */
	double window;      /* the receiver's, bytes */
	double widest;      /* of the samples of it */
	double scale;       /* of the window that the sender was told: 0 to 14 */
	double clamp;       /* the window that a route of the receiver's allows, bytes, of all */
	double send_buffer; /* SO_SNDBUF, of all */
	double there_us, back_us; /* what each direction takes; see delay.h */
	double delay_error_us;
	double far_us; /* of a transaction: what the responder takes; there and back are the ways */
	double marked; /* share of segments that came with a mark of congestion (ECN) */
	double loss_times; /* samples in which more segments had been sent again */
	double still;      /* share of time: data under way, and nothing arrived */
	double still_s;    /* the longest of these times */

	/* Of the receiver. */
	double inq;            /* bytes read late: the median of its queue */
	double inq_waits;      /* share of samples with a quarter of the buffer or more to read */
	double inq_left;       /* share of samples with anything to read */
	double near_inq;       /* of the requester, the median, as inq is of the responder */
	double receive_buffer; /* SO_RCVBUF, of all */

	/* Datagrams. */
	double sent, lost; /* datagrams */
	double burst;      /* datagrams lost in a row, on average */
	double lost_share;
	double buffer_drops;  /* by a full receive buffer */
	double backlog_drops; /* by the receiver's softirq queues (softnet_stat) */

	/* What the user asked for. */
	double pacing_bps; /* SO_MAX_PACING_RATE, as payload */
	double writes_bps; /* what -b and -w let the sender write */
	double reads_bps;  /* and the reader read */

	/* Machines. */
	double softirq; /* the largest share of a processor of the receiver's spent in softirq */
	double softirq_crowd; /* of that: the share in which it was not idle */

	/* The link. */
	double mtu;
	struct np_way way;                  /* valid if mtu is known */
	double rate_bps;                    /* 0: not known */
	double subflows;                    /* of MPTCP; 1 without */
	const char *rate_known;             /* whence */
	double reached;                     /* share of the ceiling; set when that is known */
	double rate_out_bps, rate_back_bps; /* of transactions, each direction; 0: not known */
	double syn_timeouts; /* of these the ones of connections that did not come about */
	double sent_again;   /* segments, by both ends */
	double tail;     /* of the mean time of a transaction the share that is above the median */
	double asks;     /* transactions a second that -b and -w let the requester make */
	double timeouts; /* of TCP at both ends: each has waited for a timer */
	double far_rtt_us, far_min_rtt_us; /* as the responder has it: of its responses */
	double foreign;                    /* share of the link's rate that others used beside */
	double policed;   /* packets that the receiver's device dropped by its rules */
	double own_drops; /* packets that the transmitter's queueing discipline dropped */
	double qdisc_overlimits;
	double steady; /* relative spread of the rate between samples (mean deviation from the
			  median) */

	/* Flags and numbers of the above, here for the sake of padding. */
	bool by_loss;      /* its congestion control takes loss for congestion */
	bool scaling_off;  /* by the sysctl of either end */
	bool discards;     /* what came was thrown away in the kernel, uncopied */
	int softirq_cpu;   /* which */
	bool same_machine; /* both ends share processors */
	bool shaped;       /* the transmitter's own queueing discipline has a rate */
	bool bucket;       /* the rate is a token bucket's: it delays nothing that finds tokens */
	bool paced;        /* -b and -w, or --rate, have the requester wait */
	bool open_loop;    /* --rate does: how many are in flight is not known */
};

void np_facts_of_test(const struct np_explain_input *in, struct np_facts_of_test *f);

/*
 * How long data took to get there and acknowledgements to come back, from what both ends of a TCP
 * connection saw of its sequence numbers: neither end alone can tell the two directions apart.
 */
struct np_delay {
	double there_us, back_us; /* NAN: not known */
	double error_us;          /* of either; what one has too much the other one lacks */
	size_t samples;           /* of the transmitter's, that were used */
};

/*
 * tx: of the end that transmits; rx: of the one that receives. "There" is the time from a byte's
 * first sending to its being received in order: queues on the way, and what is sent again. "Back"
 * is the time from then on until the transmitter has its acknowledgement.
 *
 * Of transactions, tx is who requests or who responds. A response brings the acknowledgement of its
 * request: the way back of requests less the way there of responses is what the far end took.
 *
 * Ends that read different clocks tell nothing: from the samples alone any share of the round trip
 * may be either direction's.
 */
void np_delay_of(const struct np_bag *tx, const struct np_bag *rx, struct np_delay *d);

#endif
