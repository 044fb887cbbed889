/* Causes of lost datagrams. */
#include <math.h>

#include "out/explain/rules.h"

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
