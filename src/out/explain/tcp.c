/* Causes in TCP: buffers, windows, loss, reordering, queues on the path; outages, also of UDP. */
#include <math.h>

#include "out/explain/rules.h"

/* A sender that sleeps, not by choice, because the buffer is full: by the larger of two shares. */
void
np_rule_send_buffer(const struct np_facts_of_test *f, struct np_verdict *v)
{
	bool samples_say_more = f->outq_full > np_known(f->sndbuf);
	double share = samples_say_more ? f->outq_full : f->sndbuf;
	/* A sender that never sleeps, or sleeps by choice, is not held up. */
	bool holds = share >= NP_SNDBUF && f->sender.idle >= 0.15 && !(f->sender.pausing >= share);

	np_decide(v, NP_LIMIT_SEND_BUFFER, holds ? 0.4 + 0.58 * share : 0, share,
		  "limited by the send buffer for %s of the time: all of its %s was in use, with "
		  "%s in flight, and an acknowledgement takes %s",
		  np_share_words(share).text, np_size_words(f->send_buffer).text,
		  np_size_words(f->outq).text, np_time_words(f->rtt_us).text);
	v->allows = holds ? f->measured / share : (double)NAN;
	if (samples_say_more) {
		np_explain_add(v->doubts,
			       "this is from samples of the queue: the kernel's own clock says %s",
			       np_share_words(np_known(f->sndbuf)).text);
	}
}

/* Is there a queue on the path, not a busy machine (microseconds) or data waiting for a reader? */
static bool
path_has_queue(const struct np_facts_of_test *f)
{
	double window = f->cwnd * np_ceiling_segment(&f->encap);
	double queued = f->in->throughput_bps / 8e6 * f->queue_us;

	return f->queue_us >= NP_QUEUE_US && f->rtt_us >= NP_QUEUE_TIMES * f->min_rtt_us &&
	       f->cwnd >= NP_QUEUE_SEGMENTS &&
	       !(queued < NP_QUEUE_SEGMENTS * np_ceiling_segment(&f->encap)) &&
	       !(window > 0 && f->inq >= 0.5 * window);
}

/*
 * The rate that loss alone allows: RFC 8312 section 5, of CUBIC, which is never slower than Reno
 * (section 4.2). NAN for round trips of microseconds, where timers and processors decide.
 */
static double
loss_allows(const struct np_facts_of_test *f)
{
	double p = f->loss, rtt = f->min_rtt_us / 1e6;
	double bits = 8.0 * np_ceiling_segment(&f->encap);
	double reno = sqrt(1.5 / p), cubic = 1.054 * pow(rtt / p, 0.75);

	return f->min_rtt_us >= 1000 && p > 0 && bits > 0
		   ? f->connections * bits / rtt * fmax(reno, cubic)
		   : (double)NAN;
}

/* Half a percent of loss keeps windows so small that it outweighs most other causes. */
static double
loss_score(const struct np_facts_of_test *f)
{
	double allows = loss_allows(f);
	double score = f->loss >= 5 * NP_LOSSY ? 0.98 : f->loss >= 3 * NP_LOSSY ? 0.93 : 0.7;
	bool reader_holds = f->rwnd >= NP_WINDOW || f->window_full >= NP_WINDOW ||
			    (f->inq_waits >= NP_UNREAD && !f->reader.waits);

	if (!(f->loss >= NP_LOSSY)) {
		/* On a long path a little is enough, if it continues. */
		return f->cwnd_full >= 0.5 && f->by_loss && !(f->loss_times <= 2) &&
			       allows <= 2 * f->in->throughput_bps &&
			       allows >= f->in->throughput_bps / 4
			   ? 0.7
			   : 0;
	}
	if (score < 0.98 && f->sender.cpu >= 0.97) {
		score *= 0.8; /* its processor limits, too */
	}
	if (!f->by_loss && f->loss < NP_LOSS_BBR) {
		score *= 0.7;
	} else if (path_has_queue(f) || reader_holds) {
		score *= 0.75; /* a full queue drops, too: then the path's rate is the cause */
	}
	/* An outage costs more than the loss in it. */
	if (f->outage >= NP_STILL && f->outage_s >= NP_STILL_S && f->loss < NP_HEAVY) {
		score *= 0.8;
	}
	/* Lost all at once, as when a window has grown too far: it recovers from that. */
	if (f->loss_times <= 2 && !(f->outage_s >= NP_STILL_S)) {
		score *= 0.7;
	}
	/* The formula predicts a rate that is far from the one measured. */
	return allows > 4 * f->in->throughput_bps || allows < f->in->throughput_bps / 4
		   ? score * 0.75
		   : score;
}

/* Loss keeps a stream's congestion window small. */
void
np_rule_loss(const struct np_facts_of_test *f, struct np_verdict *v)
{
	np_decide(
	    v, NP_LIMIT_LOSS, loss_score(f), f->loss,
	    "limited by the congestion window (%s), which loss keeps small: %s of %s segments "
	    "(%s) had to be sent again",
	    np_segments_words(f->cwnd).text, np_count_words(f->retransmits).text,
	    np_count_words(f->segments).text, np_share_words(f->loss).text);
	v->allows = loss_allows(f);
	if (f->sender.cpu >= 0.7) {
		np_explain_add(v->doubts, "%s", np_cpu_words(&f->sender, "sending").text);
	}
	if (f->doubled > 0) {
		np_explain_add(
		    v->doubts,
		    "the receiver got %s segments twice that were not sent again: the network "
		    "duplicates some, and it is not known which retransmissions were needless",
		    np_count_words(f->doubled).text);
	}
	np_explain_add(v->doubts, f->by_loss
				      ? "a policer, or a queue that is too short for bursts, "
					"loses packets in the same way"
				      : "BBR does not treat loss as congestion");
}

/* Does the path reorder? DSACK (RFC 2883) reports retransmissions of segments that had arrived. */
static bool
is_reordered(const struct np_facts_of_test *f)
{
	/* Busy processors reorder segments, too. */
	bool ends_may_reorder = !(f->sender.idle >= NP_SLEEPS) || !(f->reader.idle >= NP_SLEEPS) ||
				f->sender.stopped || f->reader.stopped;

	/* With more reports than retransmissions the network duplicates. */
	return !ends_may_reorder && f->in_vain >= NP_IN_VAIN && f->in_vain <= NP_WITHIN &&
	       np_bag_number(f->tx, "tcp.reordered") > 0 && f->again >= NP_LOSSY * f->segments;
}

/* Reordered segments look lost, which keeps the congestion window small. */
void
np_rule_reordering(const struct np_facts_of_test *f, struct np_verdict *v)
{
	np_decide(v, NP_LIMIT_REORDERING, is_reordered(f) ? 0.9 : 0, f->in_vain,
		  "limited by the congestion window (%s), which reordering keeps small: %s of the "
		  "%s segments that were sent again had not been lost, only reordered",
		  np_segments_words(f->cwnd).text, np_share_words(f->in_vain).text,
		  np_count_words(f->again).text);
	if (f->retransmits >= NP_LOSSY * f->segments) {
		np_explain_add(v->doubts, "some were lost, too: %s",
			       np_count_words(f->retransmits).text);
	}
}

/* Judge a queue: of acknowledgements, in the sender's shaper, or of data on the path. */
static void
path_with_a_queue(const struct np_facts_of_test *f, double score, struct np_verdict *v)
{
	double both = f->delay.there_us + f->delay.back_us;

	if (f->delay.back_us >= NP_ONE_WAY * both &&
	    f->delay.back_us - f->delay.there_us >= NP_QUEUE_US) {
		np_decide(v, NP_LIMIT_ACK_PATH, score + 0.1, f->delay.back_us / both,
			  "limited by the path of the acknowledgements: they take %s back, and the "
			  "data only %s there",
			  np_time_words(f->delay.back_us).text,
			  np_time_words(fmax(f->delay.there_us, f->delay.error_us)).text);
		return;
	}
	if (f->shaped && f->held_back >= NP_OVERLIMITS && f->reached >= 0.5) {
		np_decide(v, NP_LIMIT_LINK, score, f->reached,
			  "limited by the shaper on the sender's interface (%s, %s): its queue "
			  "takes %s of a round trip of %s; %s of what it can carry",
			  f->rate_source, np_rate_words(f->rate_bps).text,
			  np_time_words(f->queue_us).text, np_time_words(f->rtt_us).text,
			  np_share_words(f->reached).text);
		return;
	}
	np_decide(v, NP_LIMIT_PATH, score, f->cwnd_full,
		  "limited by the rate of the path: the packets that the congestion window (%s) "
		  "allows wait in a queue on the path, for %s of a round trip of %s",
		  np_segments_words(f->cwnd).text, np_time_words(f->queue_us).text,
		  np_time_words(f->rtt_us).text);
	if (isnan(both)) {
		np_explain_add(
		    v->doubts,
		    "the direction is not known: the acknowledgements may be in that queue");
	}
}

/* The path, by its queue, BBR's pace or ECN marks; if by none of these, the congestion window. */
void
np_rule_path(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double score = 0, pace = f->paces_bps / f->in->throughput_bps;
	double clamp = np_bag_number(f->tx, "host.route.cwnd") * f->connections;
	bool sleeps = f->sender.idle >= 0.3;     /* else its processor may be the cause */
	bool fills_buffer = f->outq_full >= 0.4; /* then the send buffer limits */

	if (path_has_queue(f) && !is_reordered(f) && sleeps && !(f->rwnd >= NP_WINDOW) &&
	    !fills_buffer) {
		score = f->spread <= NP_STEADY || f->cwnd_full >= 0.5 ? 0.75 : 0.6;
		/* Waiting for a processor looks like a queue on the path. */
		score *= f->sender.starved || f->reader.starved ? 0.75 : 1;
	}
	if (score > 0) {
		path_with_a_queue(f, score, v);
		return;
	}
	/* BBR keeps queues short: it paces at the rate that it has measured. */
	if (!f->by_loss && pace >= 0.7 && pace <= 1.6 && sleeps &&
	    !(f->rwnd >= NP_WINDOW || fills_buffer || f->sender.pausing >= NP_MOSTLY_BLOCKED)) {
		np_decide(v, NP_LIMIT_PATH, 0.8, pace,
			  "limited by the rate of the path, as BBR has measured it: it paces at %s",
			  np_rate_words(f->paces_bps).text);
		return;
	}
	if (f->marked >= NP_LOSSY && sleeps) {
		np_decide(v, NP_LIMIT_PATH, 0.8, f->marked,
			  "limited by the rate of the path: the path marks %s of the segments for "
			  "congestion (ECN), which keeps the congestion window small (%s)",
			  np_share_words(f->marked).text, np_segments_words(f->cwnd).text);
		return;
	}
	np_decide(v, NP_LIMIT_CWND, f->cwnd_full >= 0.5 && sleeps ? 0.55 : 0, f->cwnd_full,
		  "limited by the congestion window (%s) for %s of the time, %s and without a "
		  "queue on the path",
		  np_segments_words(f->cwnd).text, np_share_words(f->cwnd_full).text,
		  f->loss >= NP_LOSSY  ? "with loss"
		  : f->retransmits > 0 ? "with almost no loss"
				       : "without loss");
	if (clamp > 0 && f->cwnd >= 0.9 * clamp) {
		v->score = v->score >= NP_ENOUGH ? 0.9 : 0;
		np_explain_add(v->doubts, "a route keeps it small (ip route: cwnd)");
	} else {
		np_explain_add(
		    v->doubts,
		    "it may still have been growing, or the sender may pace its packets");
	}
}

/* Data in flight did not arrive, though both processes ran. Of TCP, perhaps only ACKs were lost. */
void
np_rule_outage(const struct np_facts_of_test *f, struct np_verdict *v)
{
	bool holds = f->outage >= NP_STILL && f->outage_s >= NP_STILL_S && !f->reader.kept_off &&
		     !f->sender.kept_off;

	np_decide(v, NP_LIMIT_OUTAGE,
		  holds ? (f->in->datagrams ? 0.92 : 0.8) + 0.07 * f->outage : 0, f->outage,
		  "limited by outages: nothing got through for %s of the time, once for %s, while "
		  "data were in flight",
		  np_share_words(f->outage).text, np_time_words(f->outage_s * 1e6).text);
	if (!f->in->datagrams) {
		np_explain_add(v->doubts,
			       "it is not known whether data or acknowledgements were lost");
	}
	if (f->outage >= NP_HOLE && !f->in->datagrams) {
		np_explain_add(v->doubts,
			       "perhaps only small packets get through: a smaller MTU on the path");
	}
	if (f->loss >= NP_LOSSY) {
		np_explain_add(v->doubts,
			       "loss of %s may be the whole reason, with a time-out for each loss",
			       np_share_words(f->loss).text);
	}
}

/* What else than the buffer limits the window; NULL: nothing known. */
static const char *
clamped_by(const struct np_facts_of_test *f)
{
	double each = f->widest / f->connections;
	double clamp = np_bag_number(f->rx, "host.route.window") * f->connections;
	bool scaled = np_bag_number(f->tx, "tcp.window_scale") != 0 &&
		      np_bag_number(f->tx, "tcp.send_scale") != 0;

	if (clamp > 0 && f->window <= NP_WITHIN * clamp && f->widest >= clamp / 2) {
		return "a route at the receiver limits it (ip route: window)";
	}
	if (!scaled && each <= 65535 && each >= NP_UNSCALED) {
		return np_bag_number(f->tx, "host.tcp.window_scaling") == 0 ||
			       np_bag_number(f->rx, "host.tcp.window_scaling") == 0
			   ? "an end has window scaling switched off (net.ipv4.tcp_window_scaling)"
			   : "it is not scaled: an end, a route or a middlebox prevents that";
	}
	return f->widest < NP_WINDOW_SHUT * f->receive_buffer
		   ? "something other than the buffer keeps it small, such as a route or an old "
		     "sysctl"
		   : NULL;
}

/* Why the receiver's window is small. */
void
np_rule_receive_window(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double score = f->rwnd >= NP_WINDOW ? 0.55 + 0.44 * f->rwnd : 0;
	struct np_word share = np_share_words(f->rwnd);
	const char *why = clamped_by(f);
	struct np_verdict reader = { .score = 0 };

	if (isnan(f->reader.cpu)) {
		np_decide(v, NP_LIMIT_RECEIVE_WINDOW, score, f->rwnd,
			  "limited by the receiver's window for %s of the time (%s)", share.text,
			  np_size_words(f->window).text);
		np_explain_add(v->doubts, "%s",
			       f->reader.spins ? np_cpu_words(&f->reader, "reading").text
					       : "only the far end knows whether its reader, its "
						 "CPU or its buffer keeps it small");
		return;
	}
	if (f->reader.kept_off) {
		return; /* other rules name these causes */
	}
	np_rule_reader(f, &reader);
	if (reader.score >= NP_ENOUGH) {
		return; /* that rule names the cause */
	}
	/* The reader keeps up, so the buffer, or something else, limits the window. */
	if (why != NULL) {
		np_decide(
		    v, NP_LIMIT_WINDOW_CLAMP, score, f->rwnd,
		    "limited by the receiver's window for %s of the time: it is %s of a buffer "
		    "of %s, as %s",
		    share.text, np_size_words(f->window).text,
		    np_size_words(f->receive_buffer).text, why);
	} else {
		np_decide(
		    v, NP_LIMIT_RECEIVE_BUFFER, score, f->rwnd,
		    "limited by the receiver's window for %s of the time: its buffer of %s is "
		    "too small, as the reader kept up (busy %s of one CPU, %s unread)",
		    share.text, np_size_words(f->receive_buffer).text,
		    np_share_words(f->reader.cpu).text, np_size_words(f->inq).text);
	}
	v->allows = f->measured / f->rwnd;
}
