/* Causes on the link, in the processors that receive packets, and of lost datagrams. */
#include <math.h>
#include <stdio.h>

#include "out/explain/rules.h"

/* Is the link full? Less will do for a shaper here: on a busy machine its bucket overflows. */
double
np_link_score(const struct np_facts_of_test *f)
{
	if (f->reached >= NP_FULL && f->reached <= NP_TOO_FULL) {
		return 0.99;
	}
	return f->shaped && f->held_back >= NP_OVERLIMITS && f->reached >= NP_FULL_SHAPER &&
		       f->reached <= NP_TOO_FULL
		   ? 0.8
		   : 0;
}

/* Do packets wait for a processor that receives them? Not if a busy sender may do that work. */
static double
softirq_score(const struct np_facts_of_test *f)
{
	if (f->same_machine &&
	    (f->sender.busy >= NP_BUSY || f->sender.starved || f->sender.spins)) {
		return 0;
	}
	/* crowd: others use the rest of that processor; not a reader that only spins. */
	return f->softirq >= NP_SOFTIRQ ? 0.8 + f->softirq - NP_SOFTIRQ
	       : f->softirq >= 0.6 && f->softirq_crowd >= 0.9 && !f->reader.spins ? 0.77
										  : 0;
}

/* "CPU 3 of the receiver, which spent 90 % of its time receiving packets (softirq)" */
static struct np_words
softirq_words(const struct np_facts_of_test *f)
{
	struct np_words w;

	snprintf(w.text, sizeof(w.text),
		 "CPU %d of the receiver, which spent %s of its time receiving packets (softirq)%s",
		 f->softirq_cpu, np_share_words(f->softirq).text,
		 f->softirq < NP_SOFTIRQ ? " and had no time left" : "");
	return w;
}

/* The link, or a known shaper on the sender's interface, is full. */
void
np_rule_link(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double score = np_link_score(f);
	double buffers = np_known(f->send_buffer) + np_known(f->receive_buffer), queued;
	const char *shaper = f->shaped && f->in->link_rate_bps <= 0 ? f->rate_source : NULL;

	if (shaper != NULL) {
		np_decide(v, NP_LIMIT_LINK, score, f->reached,
			  "limited by the shaper on the sender's interface (%s, %s): %s of what it "
			  "can carry",
			  shaper, np_rate_words(f->rate_bps).text, np_share_words(f->reached).text);
	} else {
		np_decide(v, NP_LIMIT_LINK, score, f->reached,
			  "limited by the link: %s of what %s can carry (rate from %s)",
			  np_share_words(f->reached).text, np_rate_words(f->rate_bps).text,
			  f->rate_source);
	}
	v->allows = f->measured / f->reached;
	if (f->encap.mss > 0 && v->score >= NP_ENOUGH) {
		np_explain_add(v->doubts,
			       "segments carry %u bytes (MSS), less than the MTU of %.0f allows",
			       (unsigned)np_ceiling_segment(&f->encap), f->mtu);
	}
	/* Bytes above the ceiling: no more can have been in queues than the ends' buffers hold. */
	queued = (1 - 1 / f->reached) * f->in->throughput_bps * f->seconds / 8;
	if (f->reached > 1.005 && !f->in->transactions && queued <= buffers) {
		np_explain_add(
		    v->doubts,
		    "that is more than Ethernet's framing allows: %s that were in queues "
		    "when the time began or ended count, too (a longer -l)",
		    np_size_words(queued).text);
	} else if (f->reached > 1.005) {
		np_explain_add(v->doubts, "that is more than Ethernet's framing allows: the rate "
					  "does not count all of it");
	}
}

/* A shaper of unknown rate: its queue held packets back, and the rate was steady. */
void
np_rule_shaper(const struct np_facts_of_test *f, struct np_verdict *v)
{
	bool holds = f->rate_bps <= 0 && f->held_back >= NP_OVERLIMITS && f->spread <= NP_STEADY &&
		     f->sender.idle > 0.3;

	np_decide(v, NP_LIMIT_LINK, holds ? 0.85 : 0, (double)NAN,
		  "limited by a shaper on the sender's interface: its queue held packets back %.0f "
		  "times a second, and the rate of %s varied by only %s",
		  f->held_back, np_rate_words(f->in->throughput_bps).text,
		  np_share_words(f->spread).text);
	np_explain_add(v->doubts, "the shaper's rate could not be read (give it with --link-rate)");
}

/* The link is full, with traffic of others. */
void
np_rule_foreign(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double all = f->foreign + f->reached;
	bool holds = f->foreign >= 0.05 && all >= NP_FULL_OTHERS && all <= NP_WITHIN;

	np_decide(v, NP_LIMIT_FOREIGN, holds ? 0.98 : 0, f->foreign,
		  "limited by the link, which also carries other traffic: %s of its rate of %s "
		  "(%s) is other traffic, and %s of the ceiling was reached",
		  np_share_words(f->foreign).text, np_rate_words(f->rate_bps).text, f->rate_source,
		  np_share_words(f->reached).text);
}

/* A policer on the receiver's interface dropped packets. */
void
np_rule_policer(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double lost = f->in->datagrams ? f->lost : f->retransmits;
	bool holds = lost > 0 && f->policed >= 0.5 * lost &&
		     (f->in->datagrams ? f->lost_share >= NP_LOSSY_UDP : f->loss >= NP_LOSSY);

	np_decide(
	    v, NP_LIMIT_POLICER, holds ? 0.986 : 0,
	    lost > 0 ? fmin(1, f->policed / lost) : (double)NAN,
	    "limited by a policer or a short queue of the receiver's interface (tc): it dropped "
	    "%.0f packets",
	    f->policed);
	if (f->policed > NP_WITHIN * lost) {
		np_explain_add(v->doubts,
			       "it also drops other traffic: it dropped more than this test lost, "
			       "and it is not known how much of that was the test's");
	}
}

/* The receiver's processors dropped packets, or one was busy with receiving them. */
void
np_rule_softirq(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double lost = f->in->datagrams ? f->lost : f->retransmits;
	double sent = f->in->datagrams ? f->sent : f->segments;
	double dropped = f->backlog_drops / sent;

	if (lost >= (f->in->datagrams ? NP_LOSSY_UDP : NP_LOSSY) * sent &&
	    f->backlog_drops >= 0.5 * lost && dropped > 0) {
		np_decide(v, NP_LIMIT_SOFTIRQ, 0.985, dropped,
			  "limited by the receiver's processors that receive packets: their queues "
			  "dropped %.0f packets, %s of what was sent",
			  f->backlog_drops, np_share_words(dropped).text);
		return;
	}
	np_decide(v, NP_LIMIT_SOFTIRQ, softirq_score(f), f->softirq, "limited by %s",
		  softirq_words(f).text);
	v->allows = f->softirq >= NP_SOFTIRQ_NEXT ? f->measured / f->softirq : (double)NAN;
}

/* A path drops large segments; or a small MTU, as more packets load the link or a processor. */
void
np_rule_mtu(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double sender = np_sender_cpu_score(f), reader = np_reader_cpu_score(f);
	double softirq = softirq_score(f), score = fmax(fmax(sender, reader), softirq);
	struct np_encap usual = f->encap; /* the same with Ethernet's MTU */
	struct np_bag_item acked;
	size_t samples = np_bag_list(f->tx, "tcp.samples.bytes_acked", 0, &acked);
	double acked_bytes = samples > 0 ? np_bag_value(&acked, samples - 1)
					 : np_bag_number(f->tx, "tcp.bytes_acked");
	struct np_words by;

	usual.mtu = 1500;
	/* Small segments pass: of each connection the SYN, as a byte, was acknowledged, no data. */
	if (f->again > 0 && acked_bytes <= f->connections && f->in->throughput_bps <= 0) {
		np_decide(v, NP_LIMIT_MTU, 0.995, 1,
			  "limited by the MTU of the path: nothing was acknowledged, as small "
			  "segments pass, and those of %.0f bytes do not",
			  np_bag_number(f->tx, "tcp.mss"));
		return;
	}
	if (!(f->mtu < NP_NARROW)) {
		return;
	}
	if (np_link_score(f) > score) {
		np_decide(v, NP_LIMIT_MTU, np_link_score(f) + 0.005, f->reached,
			  "limited by the MTU of %.0f: it allows %s of the link's rate as payload "
			  "(an MTU of 1500 allows %s); %s of that ceiling was reached",
			  f->mtu, np_share_words(np_payload_share(f, &f->encap)).text,
			  np_share_words(np_payload_share(f, &usual)).text,
			  np_share_words(f->reached).text);
		return;
	}
	/* Of the processor that limits, and just above the score of that processor's own rule. */
	by = score <= sender   ? np_cpu_words(&f->sender, "sending")
	     : score <= reader ? np_reader_words(f)
			       : softirq_words(f);
	score = score > 0 ? score + 0.02 : 0;
	if (f->in->datagrams) {
		double bytes = np_bag_number(f->tx, "flow.send_size");
		uint32_t size = bytes >= 0 && bytes <= 65535 ? (uint32_t)bytes : 0;
		uint32_t packets = np_ceiling_fragments(&f->encap, size);

		np_decide(v, NP_LIMIT_MTU, packets > np_ceiling_fragments(&usual, size) ? score : 0,
			  f->sender.busy,
			  "limited by the MTU of %.0f: a datagram of %u bytes takes %u packets (%u "
			  "with an MTU of 1500); %s",
			  f->mtu, (unsigned)size, (unsigned)packets,
			  (unsigned)np_ceiling_fragments(&usual, size), by.text);
		return;
	}
	np_decide(v, NP_LIMIT_MTU, score, f->sender.busy,
		  "limited by the MTU of %.0f: %s segments a second carried %u bytes each (%u with "
		  "an MTU of 1500); %s",
		  f->mtu, np_count_words(f->segments / f->seconds).text,
		  np_ceiling_segment(&f->encap), np_ceiling_segment(&usual), by.text);
}

/* A full receive buffer dropped at least half of what was lost, and that is 0.2 % or more. */
void
np_rule_udp_buffer(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double beyond = f->lost - f->own_drops; /* lost after leaving the sender's queue */
	bool holds = f->lost_share >= 0.002 && beyond > 0 && f->buffer_drops >= 0.5 * beyond;
	/* A reader that does not run fills any buffer: then the rules for that score higher. */
	double score = f->reader.kept_off ? 0.75 : 0.98;
	double buffer = f->receive_buffer / f->connections;
	/* A buffer of a usual size is full because the reader is slow: its processor limits. */
	bool by_reader =
	    buffer >= NP_USUAL_RCVBUF && (f->reader.busy >= NP_BUSY || f->reader.starved);

	np_decide(v, by_reader ? NP_LIMIT_RECEIVER_CPU : NP_LIMIT_UDP_BUFFER, holds ? score : 0,
		  f->lost_share,
		  "limited by the receive buffer: it was full at %s and dropped %.0f datagrams, %s "
		  "of what was sent; %s",
		  np_size_words(buffer).text, f->buffer_drops, np_share_words(f->lost_share).text,
		  np_reader_words(f).text);
	if (f->buffer_drops > NP_WITHIN * f->lost) {
		np_explain_add(v->doubts, "the kernel counts the drops of all sockets together: it "
					  "counted more than this test lost");
	}
}

/* Add a doubt if datagrams with missing fragments are at least a tenth as many as those lost. */
static void
add_unassembled(const struct np_facts_of_test *f, struct np_verdict *v)
{
	if (f->unassembled > 0 && f->unassembled >= 0.1 * f->lost) {
		np_explain_add(v->doubts,
			       "%.0f datagrams could not be put together from their fragments "
			       "(ReasmFails): with one fragment all of its datagram is lost",
			       f->unassembled);
	}
}

/* Datagrams were lost elsewhere: in the sender's queue, to a rate on the path, or at random. */
void
np_rule_datagrams_lost(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double beyond = f->lost - f->own_drops; /* lost after leaving the sender's queue */
	bool holds = f->lost_share >= NP_LOSSY_UDP;
	/* How many are lost in a row, and how many would be if losses were random. */
	double burst = np_bag_number(f->rx, "udp.lost") / np_bag_number(f->rx, "udp.loss_bursts");
	double random = 1 / (1 - f->lost_share);

	if (isnan(f->buffer_drops)) {
		np_decide(v, NP_LIMIT_UNCLEAR, holds ? 0.9 : 0, f->lost_share,
			  "%s of the datagrams were lost, on the path or in the receiver's buffer; "
			  "only the far end knows where",
			  np_share_words(f->lost_share).text);
		return;
	}
	if (holds && f->own_drops >= 0.5 * f->lost) {
		np_decide(
		    v, NP_LIMIT_LINK, 0.93, f->lost_share,
		    "limited by the queue of the sender's interface, which dropped %.0f packets "
		    "while %s datagrams were lost: the sender sends more than the queue passes on",
		    f->own_drops, np_count_words(f->lost).text);
		add_unassembled(f, v);
		return;
	}
	/* Not if the link is full: then it drops the rest. */
	holds = holds && f->buffer_drops < 0.5 * beyond &&
		!(f->reached >= NP_FULL && f->reached <= NP_TOO_FULL);
	/* A steady rate arrives, and losses are not random: a rate limits. */
	if (holds && f->in->throughput_bps > 0 && f->spread <= NP_STEADY &&
	    f->lost_share >= NP_LOST_TO_RATE &&
	    !(burst >= 0.75 * random && burst <= 1.33 * random)) {
		np_decide(
		    v, NP_LIMIT_PATH, 0.9, f->lost_share,
		    "limited by the rate of the path: %s arrived, and that rate varied by only %s; "
		    "a full queue or a policer dropped the rest, %s of the datagrams",
		    np_rate_words(f->in->throughput_bps).text, np_share_words(f->spread).text,
		    np_share_words(f->lost_share).text);
		np_explain_add(v->doubts,
			       "random loss among that many datagrams also leaves a steady rate");
		return;
	}
	np_decide(v, NP_LIMIT_LOSS, holds ? 0.9 : 0, f->lost_share,
		  "limited by loss on the path: %s of the datagrams did not arrive, and the "
		  "receiver's buffer dropped only %s of these %s",
		  np_share_words(f->lost_share).text, np_count_words(f->buffer_drops).text,
		  np_count_words(f->lost).text);
	np_explain_add(v->doubts, "a policer or a full queue drops datagrams in the same way");
	add_unassembled(f, v);
}
