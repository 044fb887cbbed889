/* Causes in transactions ("turns"): where the time of each one goes. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "out/explain/rules.h"

/* Time-outs for a lost packet that no other packet follows: of TCP, and of our UDP requester. */
#define TCP_RTO_S 0.2
#define SYN_TIMEOUT_S 1.0
#define REQUEST_TIMEOUT_S 1.0

#define OVERHEAD 768   /* bytes of the kernel's memory for a queued datagram, at least */
#define LONGER_US 1000 /* beyond the time of the path, at least: an end or a queue adds it */

/* The round trip limits if nothing else does: a low score that holds in any closed loop. */
void
np_rule_turns(const struct np_facts_of_test *f, struct np_verdict *v)
{
	np_decide(v, NP_LIMIT_TURNS, f->turn_us > 0 ? 0.6 : 0, f->sender.idle,
		  "limited by the round trip: with %u in flight at a time, a transaction takes %s",
		  (unsigned)f->in->in_flight, np_time_words(f->turn_us).text);
	if (f->sender.spins) {
		np_explain_add(v->sentence, "%s", np_cpu_words(&f->sender, "requesting").text);
	} else {
		np_text_add(v->sentence, sizeof(v->sentence), strlen(v->sentence),
			    ", and the requesting process slept %s of the time",
			    np_share_words(f->sender.idle).text);
	}
}

/* The requester makes as many as -b and -w, or --rate, allow. */
void
np_rule_turns_paced(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double share = f->in->per_second / f->pace_per_s;

	np_decide(v, NP_LIMIT_APPLICATION, share >= NP_ASKED && share <= NP_WITHIN ? 0.988 : 0,
		  share,
		  "limited by the requesting application: %s %.0f transactions a second, of which "
		  "%s were reached",
		  f->open_loop ? "--rate asks it for" : "-b and -w allow it to make",
		  np_known(f->pace_per_s), np_share_words(share).text);
	v->allows = f->pace_per_s;
}

/* The share of one direction's capacity that its messages of `bytes` use; NAN: no known rate. */
static double
direction_use(const struct np_facts_of_test *f, double rate_bps, uint32_t bytes)
{
	double share = !f->in->datagrams ? np_ceiling_tcp(&f->encap)
		       : bytes <= 65535  ? np_ceiling_udp(&f->encap, bytes)
					 : (double)NAN;

	return rate_bps > 0 ? f->in->per_second * bytes * 8 / (rate_bps * share) : (double)NAN;
}

/* One direction of the link is full. */
void
np_rule_turns_direction(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double out = direction_use(f, f->rate_out_bps, f->in->request);
	double back = direction_use(f, f->rate_back_bps, f->in->response);
	/* With one in flight the directions take turns: their shares add up. */
	double most = f->in->in_flight <= 1 ? np_known(out) + np_known(back) : fmax(out, back);
	bool holds = most >= NP_FULL_TURNS && most <= NP_WITHIN;
	/* It takes most of a transaction, or the link is full but for pauses of TCP. */
	bool mostly = most >= (f->in->in_flight <= 1 ? NP_STATION : NP_FULL_MOSTLY) &&
		      most <= NP_WITHIN && f->sender.idle >= 0.5 && f->reader.idle >= 0.5;
	/* With equal rates both ways np_rule_link() also holds: it goes first. */
	double score = f->rate_out_bps > 0 && f->rate_out_bps <= f->rate_back_bps &&
			       f->rate_back_bps <= f->rate_out_bps
			   ? 0.97
			   : 0.995;

	np_decide(v, NP_LIMIT_LINK,
		  holds    ? score
		  : mostly ? 0.72
			   : 0,
		  most,
		  "limited by the link, mostly in the direction of the %s, at %s: %s of what it "
		  "can carry",
		  back >= np_known(out) ? "responses" : "requests",
		  np_rate_words(back >= np_known(out) ? f->rate_back_bps : f->rate_out_bps).text,
		  np_share_words(most).text);
	v->allows = f->measured / most;
}

/* Judge whether large messages (`which`) form a queue on the path, as a stream does. */
static void
turns_queue(const struct np_facts_of_test *f, double rtt_us, double least_us, const char *which,
	    struct np_verdict *v)
{
	double queue = rtt_us - least_us;
	bool holds = queue >= NP_QUEUE_US && rtt_us >= NP_QUEUE_TIMES * least_us &&
		     queue >= 0.1 * f->turn_us && f->sender.idle >= 0.5 && f->reader.idle >= 0.5;

	np_decide(v, NP_LIMIT_PATH, holds ? 0.75 : 0, queue / f->turn_us,
		  "limited by the rate of the path: the %s wait in a queue on the path for %s of a "
		  "round trip of %s, and a transaction takes %s",
		  which, np_time_words(queue).text, np_time_words(rtt_us).text,
		  np_time_words(f->turn_us).text);
}

/* Large responses or requests wait in a queue; those below two segments form none. */
void
np_rule_turns_queue(const struct np_facts_of_test *f, struct np_verdict *v)
{
	if (f->in->response >= 2 * np_ceiling_segment(&f->encap)) {
		turns_queue(f, f->far_rtt_us, np_bag_number(f->rx, "tcp.min_rtt_us"), "responses",
			    v);
	}
	if (v->score < NP_ENOUGH && f->in->request >= 2 * np_ceiling_segment(&f->encap)) {
		turns_queue(f, f->rtt_us, f->min_rtt_us, "requests", v);
	}
}

/* A lost packet costs its transaction a time-out: TCP's, or that of the requester of datagrams. */
void
np_rule_turns_lost(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double lost = f->in->datagrams ? np_bag_number(f->tx, "flow.requests_lost") : f->timeouts;
	double flows = f->in->in_flight > 0 ? f->in->in_flight : 1; /* other transactions go on */
	double waited = f->in->datagrams ? lost * REQUEST_TIMEOUT_S
					 : (lost - f->syn_timeouts) * TCP_RTO_S +
					       f->syn_timeouts * SYN_TIMEOUT_S;
	double share = waited / flows / f->seconds, score;

	if (f->in->datagrams && f->in->in_flight > fmax(f->in->flows.count, 1) &&
	    isnan(np_bag_number(f->tx, "flow.id_bytes"))) {
		return; /* without ids the next response is taken for the lost one: no time-out */
	}
	if (!f->in->datagrams && f->sent_again > 0 && f->tail > share) {
		/* Tail loss probes (RFC 8985) repair before the timer, but wait, too. */
		lost = fmax(lost, f->sent_again);
		share = fmin(f->tail, lost * TCP_RTO_S / flows / f->seconds);
	}
	share = share > 1 ? 1 : share;
	score = share >= 0.1 ? fmin(0.75 + 0.3 * share, 0.98) : 0;
	if (f->outage_s >= NP_STILL_S) {
		score *= 0.85; /* several in a row are an outage */
	}
	np_decide(v, NP_LIMIT_LOSS, score, share,
		  "limited by loss: %s %s, each of which costs a wait, about %s of the time in all",
		  np_count_words(lost).text,
		  f->in->datagrams ? "requests or responses were lost" : "segments were sent again",
		  np_share_words(share).text);
}

/* Judge the part that takes half of a transaction or more, by stamps (--stations). False: none. */
static bool
by_stamps(const struct np_facts_of_test *f, struct np_verdict *v)
{
	static const struct {
		const char *name, *what;
		enum np_limit limit;
	} rows[] = {
		{ "stations.near_send_us", "from the call to this end's queue", NP_LIMIT_UNCLEAR },
		{ "stations.near_queue_us", "in this end's queue", NP_LIMIT_PATH },
		{ "stations.wire_us", "between the two ends", NP_LIMIT_PATH },
		{ "stations.far_receive_us", "until the far process runs", NP_LIMIT_READER_SLOW },
		{ "stations.far_work_us", "in the far process", NP_LIMIT_READER_SLOW },
		{ "stations.far_send_us", "from the call to the far end's queue",
		  NP_LIMIT_UNCLEAR },
		{ "stations.far_queue_us", "in the far end's queue", NP_LIMIT_PATH },
		{ "stations.near_receive_us", "until this end's process runs", NP_LIMIT_UNCLEAR },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double us = np_bag_number(f->tx, rows[i].name);

		if (us / f->turn_us >= NP_STATION) {
			np_decide(v, rows[i].limit, 0.75, us / f->turn_us,
				  "a transaction takes %s, of which %s pass %s, by the stamps of "
				  "its packets",
				  np_time_words(f->turn_us).text, np_time_words(us).text,
				  rows[i].what);
			return true;
		}
	}
	return false;
}

/* Judge the part that takes half of a transaction or more: by stamps, else samples. False: none. */
static bool
by_station(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double far = f->far_us / f->turn_us,
	       ways = (f->delay.there_us + f->delay.back_us) / f->turn_us;

	if (by_stamps(f, v)) {
		return true;
	}
	if (far >= NP_STATION) {
		np_decide(
		    v, NP_LIMIT_READER_SLOW, 0.75, far,
		    "limited by the far end: a transaction takes %s, of which %s pass between the "
		    "arrival of the request and the departure of the response; %s",
		    np_time_words(f->turn_us).text, np_time_words(f->far_us).text,
		    np_reader_words(f).text);
		return true;
	}
	if (ways >= NP_STATION) {
		np_decide(v, NP_LIMIT_PATH, 0.75, ways,
			  "limited by the path: a transaction takes %s, of which the way there "
			  "takes %s and the way back %s, and the shortest round trip took %s",
			  np_time_words(f->turn_us).text, np_time_words(f->delay.there_us).text,
			  np_time_words(f->delay.back_us).text, np_time_words(f->min_rtt_us).text);
		return true;
	}
	return false;
}

/* Round trips of a message in slow start: ten segments in the first, then doubled. */
static double
rounds(const struct np_facts_of_test *f, uint32_t bytes)
{
	return fmax(ceil(log2(bytes / 10.0 / np_ceiling_segment(&f->encap) + 1)), 1);
}

/* The time of a transaction on an empty path; with a connection of its own, several round trips. */
static double
least_us(const struct np_facts_of_test *f)
{
	bool has_rtt = f->in->connections && np_bag_number(f->tx, "tcp.min_rtt_us") > 0;

	return f->min_rtt_us *
	       (has_rtt ? rounds(f, f->in->request) + rounds(f, f->in->response) : 1);
}

/* By its own conditions, judge a queue on the path: both ends wait, with little unread. */
static bool
waits_on_path(const struct np_facts_of_test *f, double least, struct np_verdict *v)
{
	/* With many datagrams in flight, some wait at this end for those before them. */
	double times = f->in->datagrams && f->in->in_flight > 1 ? NP_QUEUE_TIMES : NP_TURN_TIMES;
	double bytes = fmin(f->in->request, f->in->response) + OVERHEAD;
	double unread = f->in->datagrams ? fmax(np_known(f->inq), np_known(f->near_inq)) : 0;
	/* TCP_RR: np_rule_turns_queue() judges that, by round trips. */
	bool holds = least > 0 && f->turn_us >= times * least && f->turn_us - least >= LONGER_US &&
		     !(np_link_score(f) > 0) && f->sender.blocked >= NP_MOSTLY_BLOCKED &&
		     f->reader.blocked >= NP_MOSTLY_BLOCKED &&
		     unread <= 0.25 * bytes * f->in->in_flight &&
		     (f->in->datagrams || f->in->connections);

	if (holds) {
		np_decide(
		    v, NP_LIMIT_PATH, 0.75, 1 - least / f->turn_us,
		    "limited by the rate of the path: a transaction takes %s, and without a "
		    "queue no more than %s; both ends wait to receive, and have little to read",
		    np_time_words(f->turn_us).text, np_time_words(least).text);
	}
	return holds;
}

/* Transactions take longer than their path, with idle processors: an end sleeps, or data queue. */
void
np_rule_turns_wait(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double least = least_us(f);
	/* An end that spins, or has no evidence, may be idle. */
	bool may_be_idle = !(f->sender.idle < 0.5) && !(f->reader.idle < 0.5);
	bool both_idle = f->sender.idle >= 0.5 && f->reader.idle >= 0.5;
	bool holds = may_be_idle && least > 0 && f->turn_us >= NP_TURN_TIMES * least &&
		     f->turn_us - least >= LONGER_US;
	bool pauses = f->sender.pausing >= NP_MOSTLY_BLOCKED;

	if (holds && f->reader.pausing >= NP_MOSTLY_BLOCKED) {
		np_decide(v, NP_LIMIT_READER_SLOW, 0.8, f->reader.pausing,
			  "limited by the responding process, which slept by choice for %s of the "
			  "time: a transaction takes %s, a round trip %s",
			  np_share_words(f->reader.pausing).text, np_time_words(f->turn_us).text,
			  np_time_words(least).text);
	} else if (holds && (pauses || f->pace_per_s > 0)) {
		np_decide(v, NP_LIMIT_APPLICATION, 0.8, f->sender.pausing,
			  "limited by the requesting process, which %s%s%s: a transaction takes "
			  "%s, a round trip %s",
			  pauses ? "slept by choice for " : "-b and -w delay",
			  pauses ? np_share_words(f->sender.pausing).text : "",
			  pauses ? " of the time" : "", np_time_words(f->turn_us).text,
			  np_time_words(least).text);
	} else if (!(holds && by_station(f, v)) && !waits_on_path(f, least, v)) {
		np_decide(v, NP_LIMIT_UNCLEAR, holds ? 0.7 : 0, least / f->turn_us,
			  "a transaction takes %s, a round trip of the path can be as short as %s, "
			  "and %s: an end or a queue makes it wait, and it is not known which",
			  np_time_words(f->turn_us).text, np_time_words(least).text,
			  both_idle ? "neither processor is busy"
				    : "no processor is known to be busy");
	}
}
