#include "out/explain.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "out/explain_facts.h"

#define FACTS const struct np_facts_of_test *f

static const char *const limit_names[NP_LIMITS] = {
	[NP_LIMIT_UNCLEAR] = "unclear",
	[NP_LIMIT_APPLICATION] = "sending-application",
	[NP_LIMIT_SENDER_CPU] = "sender-cpu",
	[NP_LIMIT_SEND_BUFFER] = "send-buffer",
	[NP_LIMIT_LOSS] = "loss",
	[NP_LIMIT_PATH] = "path-rate",
	[NP_LIMIT_RECEIVE_WINDOW] = "receive-window",
	[NP_LIMIT_RECEIVER_CPU] = "receiver-cpu",
	[NP_LIMIT_READER_SLOW] = "reader-slow",
	[NP_LIMIT_RECEIVE_BUFFER] = "receive-buffer",
	[NP_LIMIT_LINK] = "link",
	[NP_LIMIT_SOFTIRQ] = "far-softirq",
	[NP_LIMIT_UDP_BUFFER] = "udp-receive-buffer",
	[NP_LIMIT_MTU] = "mtu",
	[NP_LIMIT_TURNS] = "turns",
};

const char *
np_limit_name(enum np_limit limit)
{
	return limit_names[limit];
}

/* --- words ------------------------------------------------------------------------------------
 */

/* A figure that is not known, or none at all, is "?". */
struct word {
	char text[32];
};

static const struct word no_figure = { "?" };

struct words {
	char text[200];
};

static struct word
rate_words(double bps)
{
	struct word w = no_figure;

	if (!isfinite(bps)) {
		return w;
	}
	if (bps >= 1e9) {
		snprintf(w.text, sizeof(w.text), "%.4g Gbit/s", bps / 1e9);
	} else if (bps >= 1e6) {
		snprintf(w.text, sizeof(w.text), "%.4g Mbit/s", bps / 1e6);
	} else {
		snprintf(w.text, sizeof(w.text), "%.4g kbit/s", bps / 1e3);
	}
	return w;
}

static struct word
time_words(double us)
{
	struct word w = no_figure;

	if (!isfinite(us)) {
		return w;
	}
	if (us >= 1000) {
		snprintf(w.text, sizeof(w.text), "%.3g ms", us / 1000);
	} else {
		snprintf(w.text, sizeof(w.text), "%.3g us", us);
	}
	return w;
}

static struct word
size_words(double bytes)
{
	struct word w = no_figure;

	if (!isfinite(bytes)) {
		return w;
	}
	if (bytes >= 100 * 1024) {
		snprintf(w.text, sizeof(w.text), "%.0f KiB", bytes / 1024);
	} else {
		snprintf(w.text, sizeof(w.text), "%.0f bytes", bytes);
	}
	return w;
}

static struct word
count_words(double n)
{
	struct word w = no_figure;

	if (isfinite(n)) {
		snprintf(w.text, sizeof(w.text), "%.0f", n);
	}
	return w;
}

static struct word
window_words(double segments)
{
	struct word w = count_words(segments);

	np_text_add(w.text, sizeof(w.text), strlen(w.text), "%s",
		    segments == 1 ? " segment" : " segments");
	return w;
}

/* A share in percent: as many digits as tell it from none and from all. */
static struct word
share_words(double share)
{
	struct word w = no_figure;
	double percent = share * 100;
	int digits = percent <= 0 || percent >= 99.95 ? 0
		     : percent < 0.095                ? 3
		     : percent < 0.95                 ? 2
		     : percent < 9.5 || percent > 99  ? 1
						      : 0;

	if (percent > 0 && percent < 0.0005) {
		snprintf(w.text, sizeof(w.text), "less than 0.001 %%");
	} else if (isfinite(percent)) {
		snprintf(w.text, sizeof(w.text), "%.*f %%", digits, percent);
	}
	return w;
}

/* What a rule says. */
struct verdict {
	enum np_limit limit;
	double score;
	double share;
	char sentence[NP_EXPLAIN_TEXT];
	char doubts[NP_EXPLAIN_TEXT];
};

static void __attribute__((format(printf, 5, 6)))
decide(struct verdict *v, enum np_limit limit, double score, double share, const char *fmt, ...)
{
	va_list ap;

	v->limit = limit;
	v->score = score > 0 ? fmin(score, 1) : 0; /* NAN: a figure was not known */
	v->share = share;
	va_start(ap, fmt);
	vsnprintf(v->sentence, sizeof(v->sentence), fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 2, 3)))
add(char text[NP_EXPLAIN_TEXT], const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list ap;

	if (used > 0) {
		snprintf(text + used, NP_EXPLAIN_TEXT - used, "; ");
		used = strlen(text);
	}
	va_start(ap, fmt);
	vsnprintf(text + used, NP_EXPLAIN_TEXT - used, fmt, ap);
	va_end(ap);
}

/* --- the rules --------------------------------------------------------------------------------
 * Each looks at its figures and gives a score: below ENOUGH it does not hold. Where several do, the
 * highest has it. A figure that is not known is NAN, with which no comparison holds.
 */

#define ENOUGH 0.5
#define BUSY 0.85   /* of a processor, from which on a thread counts as held up by it */
#define LOSSY 0.001 /* share of segments from which on their loss matters */
#define NARROW 1280 /* MTUs below are not what links come with */

/* From 0.5 at the threshold to `most` where everything is taken. */
static double
above(double value, double threshold, double most)
{
	return value >= threshold ? ENOUGH + (value - threshold) / (1 - threshold) * (most - ENOUGH)
				  : 0;
}

static double
known(double v)
{
	return isnan(v) ? 0 : v;
}

/* Running, or ready to run. */
static double
busy(const struct np_thread_facts *t)
{
	double all = t->cpu + known(t->wait);

	return all > 1 ? 1 : all;
}

/* The processor on which it ended has next to no time left, as others have it. */
static bool
crowded(const struct np_thread_facts *t)
{
	return t->crowd >= 0.85 && t->crowd - t->cpu >= 0.2;
}

/*
 * It gets a processor for a part of the time only; so do the acknowledgements that are taken in
 * there, for which the thread then waits in vain. Who hardly runs is woken late, but wants no more
 * of a processor than it has.
 */
static bool
starved(const struct np_thread_facts *t)
{
	return t->cpu >= 0.03 && busy(t) >= 0.25 && t->wait >= (crowded(t) ? 0.1 : 0.25);
}

static double
sender_cpu_score(FACTS)
{
	double s = busy(&f->sender);
	/* Nothing was outstanding, and it did not wait for a processor either: it rested. */
	bool rests = 1 - f->busy - known(f->sender.wait) >= 0.4;

	return fmax(above(s, BUSY, 0.97), starved(&f->sender) && !rests ? 0.8 : 0);
}

static double
reader_cpu_score(FACTS)
{
	double s = busy(&f->reader);

	if (f->in->transactions || !np_ceiling_has_packets(f->in->family)) {
		return above(s, BUSY, 0.96); /* nothing else could hold up who waits for it */
	}
	/* One that keeps its queue empty does not hold anybody up. */
	return f->inq_waits >= 0.4 ? above(s, BUSY, 0.9) + 0.08 * f->inq_waits : 0;
}

/* The share of the link's rate that can be payload. */
static double
payload_share(FACTS, const struct np_way *way)
{
	double size = np_bag_number(f->tx, "flow.send_size");

	if (!f->in->lossy) {
		return np_ceiling_tcp(way);
	}
	return size >= 0 && size <= 65535 ? np_ceiling_udp(way, (uint32_t)size) : (double)NAN;
}

/*
 * Nearly all that a link can carry; or most of what a shaper of our own lets through, which held
 * packets back all the while: where the machine is late, a bucket runs over.
 */
static double
link_score(FACTS)
{
	if (f->reached >= 0.97 && f->reached <= 1.05) {
		return 0.99;
	}
	return f->shaped && f->qdisc_overlimits / f->seconds >= 10 && f->reached >= 0.8 &&
		       f->reached <= 1.05
		   ? 0.8
		   : 0;
}

/*
 * A processor that does nothing but take packets in, or whatever time others leave it. It makes
 * packets wait, which looks like a queue on the way. A sender on the same machine may do that work
 * itself, within its calls.
 */
static double
softirq_score(FACTS)
{
	if (f->same_machine &&
	    (busy(&f->sender) >= BUSY || starved(&f->sender) || f->sender.spins)) {
		return 0;
	}
	return f->softirq >= BUSY ? 0.8 + f->softirq - BUSY
	       : f->softirq >= 0.6 && f->softirq_crowd >= 0.9 && !f->reader.spins ? 0.77
										  : 0;
}

static struct words
cpu_words(const struct np_thread_facts *t, const char *whose)
{
	struct words w;
	size_t used = 0;

	if (t->spins) {
		np_text_add(
		    w.text, sizeof(w.text), 0,
		    "the %s process never sleeps (spin): %s of its calls found nothing, and "
		    "its time on a CPU tells nothing",
		    whose, share_words(t->empty).text);
		return w;
	}
	if (!(t->wait >= 0.1)) {
		np_text_add(w.text, sizeof(w.text), 0, "the %s process was busy %s of one CPU",
			    whose, share_words(t->cpu).text);
		return w;
	}
	used = np_text_add(w.text, sizeof(w.text), 0,
			   "the %s process ran for %s of the time and waited for a CPU for "
			   "another %s",
			   whose, share_words(t->cpu).text, share_words(t->wait).text);
	if (starved(t) && crowded(t)) {
		np_text_add(w.text, sizeof(w.text), used, ", as others kept CPU %d busy", t->on);
	}
	return w;
}

/* What an engine has thrown away in the kernel its receiver did not copy. */
static struct words
reader_words(FACTS)
{
	const char *whose = f->discards ? "discarding" : "reading";
	struct words w = cpu_words(&f->reader, f->in->transactions ? "responding" : whose);

	if (f->discards) {
		np_text_add(w.text, sizeof(w.text), strlen(w.text),
			    ", and copied none of the data");
	}
	return w;
}

static struct words
softirq_words(FACTS)
{
	struct words w;

	snprintf(w.text, sizeof(w.text),
		 "CPU %d of the receiver, which spent %s of its time taking packets in (softirq)%s",
		 f->softirq_cpu, share_words(f->softirq).text,
		 f->softirq < BUSY ? " and had none left" : "");
	return w;
}

static void
rule_link(FACTS, struct verdict *v)
{
	double score = link_score(f);
	const char *shaper = f->shaped && f->in->link_rate_bps <= 0 ? f->rate_known : NULL;

	if (shaper != NULL) {
		decide(v, NP_LIMIT_LINK, score, f->reached,
		       "limited by the shaper on the sender's interface (%s, %s): %s of what that "
		       "lets through",
		       shaper, rate_words(f->rate_bps).text, share_words(f->reached).text);
	} else {
		decide(v, NP_LIMIT_LINK, score, f->reached,
		       "limited by the link: %s of what %s can carry (rate by %s)",
		       share_words(f->reached).text, rate_words(f->rate_bps).text, f->rate_known);
	}
	if (f->reached > 1.005) {
		add(v->doubts, "that is more than Ethernet's framing allows: not all of it is "
			       "counted there");
	}
}

/* The signature of a shaper whose rate nobody told: its queue made packets wait, at one rate. */
static void
rule_shaper(FACTS, struct verdict *v)
{
	double a_second = f->qdisc_overlimits / f->seconds;
	bool holds = f->rate_bps <= 0 && a_second >= 10 && f->steady <= 0.1 && f->sender.idle > 0.3;

	decide(v, NP_LIMIT_LINK, holds ? 0.85 : 0, (double)NAN,
	       "limited by a shaper on the sender's interface: its queue held packets back %.0f "
	       "times a second, and the rate of %s kept within %s",
	       a_second, rate_words(f->in->throughput_bps).text, share_words(f->steady).text);
	add(v->doubts, "the rate it is set to could not be read (--link-rate tells it)");
}

static void
rule_application(FACTS, struct verdict *v)
{
	/* By the kernel's clock, or by samples: of these two it may be that one is not known. */
	double share = f->in->lossy ? f->app_short : fmax(f->app_short, 1 - f->busy);
	double score = f->sender.idle < share ? f->sender.idle : share;

	/* Whether it slept is not known, or it never does. */
	score = isnan(f->sender.idle) ? 0 : score;
	decide(v, NP_LIMIT_APPLICATION, score, share,
	       "limited by the sending application: it slept %s of the time, and nothing waited to "
	       "be sent for %s of it",
	       share_words(f->sender.idle).text, share_words(share).text);
}

static void
rule_sender_cpu(FACTS, struct verdict *v)
{
	double score = sender_cpu_score(f);

	if (f->in->lossy && f->lost_share >= 0.01) {
		score *= 0.8; /* more of them would be lost, too */
	}
	decide(v, NP_LIMIT_SENDER_CPU, score, busy(&f->sender), "limited by the %s CPU: %s",
	       f->in->transactions ? "client's" : "sender's",
	       cpu_words(&f->sender, f->in->transactions ? "requesting" : "sending").text);
	if (busy(&f->reader) >= BUSY) {
		add(v->doubts, "the receiver was busy, too: %s", reader_words(f).text);
	}
}

static void
rule_send_buffer(FACTS, struct verdict *v)
{
	bool sampled = f->outq_full > known(f->sndbuf);
	double share = sampled ? f->outq_full : f->sndbuf;
	bool holds = share >= 0.3 && f->sender.idle >= 0.15;

	decide(v, NP_LIMIT_SEND_BUFFER, holds ? 0.4 + 0.58 * share : 0, share,
	       "limited by the send buffer for %s of the time: its %s were all under way, and an "
	       "acknowledgement takes %s",
	       share_words(share).text, size_words(f->send_buffer).text,
	       time_words(f->rtt_us).text);
	if (sampled) {
		add(v->doubts, "by samples of the queue: the kernel's own clock says %s",
		    share_words(known(f->sndbuf)).text);
	}
}

/*
 * A queue on the way: not what a busy machine makes of microseconds, nor what has come out of the
 * way and waits for the reader.
 */
static bool
queues(FACTS)
{
	double way_out = f->cwnd * np_ceiling_segment(&f->way);

	return f->queue_us >= 300 && f->rtt_us >= 2 * f->min_rtt_us && f->cwnd >= 4 &&
	       !(way_out > 0 && f->inq >= 0.5 * way_out);
}

/* Half a percent keeps a window so small that it is to be named whatever else is at its limit. */
static void
rule_loss(FACTS, struct verdict *v)
{
	double score = f->loss >= 5 * LOSSY ? 0.98 : f->loss >= 3 * LOSSY ? 0.93 : 0.7;

	if (score < 0.98 && f->sender.cpu >= 0.97) {
		score *= 0.8;
	}
	if (queues(f)) {
		score *= 0.75; /* a full queue drops, too: then it is the path's rate */
	}
	decide(v, NP_LIMIT_LOSS, f->loss >= LOSSY ? score : 0, f->loss,
	       "limited by the congestion window (%s), which loss keeps small: %s of %s segments "
	       "(%s) had to be sent again",
	       window_words(f->cwnd).text, count_words(f->retransmits).text,
	       count_words(f->segments).text, share_words(f->loss).text);
	if (f->sender.cpu >= 0.7) {
		add(v->doubts, "%s", cpu_words(&f->sender, "sending").text);
	}
}

static void
rule_path(FACTS, struct verdict *v)
{
	double score = 0;

	if (queues(f) && f->sender.idle >= 0.3 && !(f->rwnd >= 0.4) && !(f->outq_full >= 0.4)) {
		score = f->steady <= 0.1 || f->cwnd_full >= 0.5 ? 0.75 : 0.6;
		/* What waits for a processor looks like a queue on the way. */
		score *= starved(&f->sender) || starved(&f->reader) ? 0.75 : 1;
	}
	if (score > 0) {
		decide(v, NP_LIMIT_PATH, score, f->cwnd_full,
		       "limited by the rate of the path: what the congestion window (%s) "
		       "lets go queues on the way, %s of a round trip of %s",
		       window_words(f->cwnd).text, time_words(f->queue_us).text,
		       time_words(f->rtt_us).text);
		return;
	}
	decide(v, NP_LIMIT_PATH, f->cwnd_full >= 0.5 && f->sender.idle >= 0.3 ? 0.55 : 0,
	       f->cwnd_full,
	       "limited by the congestion window (%s) for %s of the time, without loss "
	       "and without a queue on the way",
	       window_words(f->cwnd).text, share_words(f->cwnd_full).text);
	add(v->doubts, "it may still have been growing, or be paced by the sender");
}

/* It sleeps, and whenever one looks there is something that it has not read. */
static bool
reader_sleeps(FACTS)
{
	return f->reader.idle >= 0.3 &&
	       (f->inq_waits >= 0.4 || (f->reader.idle >= 0.7 && f->inq_left >= 0.8));
}

/* Why the window is small, which only the receiver knows. */
static void
rule_receive_window(FACTS, struct verdict *v)
{
	double score = f->rwnd >= 0.4 ? 0.55 + 0.44 * f->rwnd : 0;
	struct word share = share_words(f->rwnd);

	if (isnan(f->reader.cpu)) {
		decide(v, NP_LIMIT_RECEIVE_WINDOW, score, f->rwnd,
		       "limited by the receiver's window for %s of the time (%s)", share.text,
		       size_words(f->window).text);
		add(v->doubts, "%s",
		    f->reader.spins ? cpu_words(&f->reader, "reading").text
				    : "whether its reader, its CPU or its buffer keeps it small, "
				      "only the far end knows");
	} else if (busy(&f->reader) >= BUSY || (f->inq_waits >= 0.4 && f->reader.idle < 0.3)) {
		decide(v, NP_LIMIT_RECEIVER_CPU, score, f->rwnd,
		       "limited by the receiver's window for %s of the time: %s", share.text,
		       reader_words(f).text);
	} else if (reader_sleeps(f)) {
		decide(v, NP_LIMIT_READER_SLOW, score, f->rwnd,
		       "limited by the receiver's window for %s of the time: the reading process "
		       "slept %s of it while %s waited to be read",
		       share.text, share_words(f->reader.idle).text, size_words(f->inq).text);
	} else {
		decide(v, NP_LIMIT_RECEIVE_BUFFER, score, f->rwnd,
		       "limited by the receiver's window for %s of the time: its buffer of %s is "
		       "too small, as the reader kept up (busy %s of one CPU, %s unread)",
		       share.text, size_words(f->receive_buffer).text,
		       share_words(f->reader.cpu).text, size_words(f->inq).text);
	}
}

/* Where the kernel's clock of the window is not to be had, or a large buffer has not filled yet. */
static void
rule_reader(FACTS, struct verdict *v)
{
	if (f->rwnd >= 0.4) {
		return;
	}
	if (reader_cpu_score(f) >= ENOUGH) {
		decide(v, NP_LIMIT_RECEIVER_CPU, reader_cpu_score(f), busy(&f->reader),
		       "limited by the %s CPU: %s", f->in->transactions ? "daemon's" : "receiver's",
		       reader_words(f).text);
		if (f->tx == NULL) {
			add(v->doubts, "what the sender was busy with is not known");
		}
	} else if (reader_sleeps(f) && (f->rwnd >= 0.2 || (f->tx == NULL && f->inq_waits >= 0.4))) {
		decide(v, NP_LIMIT_READER_SLOW, 0.8, f->reader.idle,
		       "limited by the reader: it slept %s of the time while %s waited to be read",
		       share_words(f->reader.idle).text, size_words(f->inq).text);
	}
}

/* What of the sent packets the receiver's processors had no room for in their queues. */
static double
dropped_by_softirq(FACTS)
{
	double lost = f->in->lossy ? f->lost : f->retransmits;
	double sent = f->in->lossy ? f->sent : f->segments;
	bool matters = lost >= (f->in->lossy ? 0.01 : LOSSY) * sent;

	return matters && f->backlog_drops >= 0.5 * lost ? f->backlog_drops / sent : 0;
}

static void
rule_softirq(FACTS, struct verdict *v)
{
	double dropped = dropped_by_softirq(f);

	if (dropped > 0) {
		decide(v, NP_LIMIT_SOFTIRQ, 0.985, dropped,
		       "limited by the receiver's processors that take packets in: their queues "
		       "dropped %.0f, %s of what was sent",
		       f->backlog_drops, share_words(dropped).text);
		return;
	}
	decide(v, NP_LIMIT_SOFTIRQ, softirq_score(f), f->softirq, "limited by %s",
	       softirq_words(f).text);
}

static void
rule_udp_buffer(FACTS, struct verdict *v)
{
	/* On a quiet machine a reader is hardly ever too late for even the smallest buffer. */
	bool holds = f->lost_share >= 0.002 && f->buffer_drops >= 0.5 * f->lost;

	decide(v, NP_LIMIT_UDP_BUFFER, holds ? 0.98 : 0, f->lost_share,
	       "limited by the receive buffer: full at %s, it dropped %.0f datagrams, %s of what "
	       "was sent; %s",
	       size_words(f->receive_buffer).text, f->buffer_drops, share_words(f->lost_share).text,
	       reader_words(f).text);
}

static void
rule_datagrams_lost(FACTS, struct verdict *v)
{
	bool holds = f->lost_share >= 0.01;

	if (isnan(f->buffer_drops)) {
		decide(v, NP_LIMIT_UNCLEAR, holds ? 0.9 : 0, f->lost_share,
		       "%s of the datagrams were lost, on the way or in the receiver's "
		       "buffer, which only the far end can tell",
		       share_words(f->lost_share).text);
		return;
	}
	decide(v, NP_LIMIT_LOSS, holds && f->buffer_drops < 0.5 * f->lost ? 0.9 : 0, f->lost_share,
	       "limited by loss on the way: %s of the datagrams did not arrive, and %s of these "
	       "%s were dropped by the receiver's buffer",
	       share_words(f->lost_share).text, count_words(f->buffer_drops).text,
	       count_words(f->lost).text);
}

static void
rule_mtu_of_datagrams(FACTS, double score, const char *cpu, struct verdict *v)
{
	struct np_way usual = f->way;
	double bytes = np_bag_number(f->tx, "flow.send_size");
	uint32_t size = bytes >= 0 && bytes <= 65535 ? (uint32_t)bytes : 0;
	uint32_t packets = np_ceiling_fragments(&f->way, size);

	usual.mtu = 1500;
	decide(v, NP_LIMIT_MTU, packets > np_ceiling_fragments(&usual, size) ? score : 0,
	       busy(&f->sender),
	       "limited by the MTU of %.0f: a datagram of %u bytes takes %u packets, with 1500 it "
	       "takes %u; %s",
	       f->mtu, (unsigned)size, (unsigned)packets,
	       (unsigned)np_ceiling_fragments(&usual, size), cpu);
}

/* Whatever is exhausted by packets is exhausted sooner by small ones. */
static void
rule_mtu(FACTS, struct verdict *v)
{
	double sender = sender_cpu_score(f), reader = reader_cpu_score(f);
	double softirq = softirq_score(f), score = fmax(fmax(sender, reader), softirq);
	struct np_way usual = f->way;
	struct words by;

	usual.mtu = 1500;
	if (!(f->mtu < NARROW)) {
		return;
	}
	if (link_score(f) > score) {
		decide(v, NP_LIMIT_MTU, link_score(f) + 0.005, f->reached,
		       "limited by the MTU of %.0f: with it %s of the link's rate can be payload, "
		       "with 1500 it is %s; %s of that ceiling was reached",
		       f->mtu, share_words(payload_share(f, &f->way)).text,
		       share_words(payload_share(f, &usual)).text, share_words(f->reached).text);
		return;
	}
	by = score <= sender   ? cpu_words(&f->sender, "sending")
	     : score <= reader ? reader_words(f)
			       : softirq_words(f);
	score = score > 0 ? score + 0.02 : 0;
	if (f->in->lossy) {
		rule_mtu_of_datagrams(f, score, by.text, v);
		return;
	}
	decide(v, NP_LIMIT_MTU, score, busy(&f->sender),
	       "limited by the MTU of %.0f: %s segments a second carried %u bytes each, with "
	       "1500 each carries %u; %s",
	       f->mtu, count_words(f->segments / f->seconds).text, np_ceiling_segment(&f->way),
	       np_ceiling_segment(&usual), by.text);
}

static void
rule_turns(FACTS, struct verdict *v)
{
	double each_us =
	    f->in->per_second > 0 ? 1e6 * f->in->in_flight / f->in->per_second : (double)NAN;

	if (f->sender.spins) {
		decide(v, NP_LIMIT_TURNS, each_us > 0 ? 0.6 : 0, (double)NAN,
		       "limited by the way there and back: with %u under way at once a transaction "
		       "takes %s; %s",
		       (unsigned)f->in->in_flight, time_words(each_us).text,
		       cpu_words(&f->sender, "requesting").text);
		return;
	}
	decide(v, NP_LIMIT_TURNS, each_us > 0 ? 0.6 : 0, f->sender.idle,
	       "limited by the way there and back: with %u under way at once a transaction takes "
	       "%s, and the requesting process slept %s of the time",
	       (unsigned)f->in->in_flight, time_words(each_us).text,
	       share_words(f->sender.idle).text);
}

/* Only what one end knows: it did its part. */
static void
rule_kept_up(FACTS, struct verdict *v)
{
	if (f->tx != NULL || !(f->reader.idle >= 0.3) || f->inq_waits >= 0.2) {
		return;
	}
	decide(v, NP_LIMIT_UNCLEAR, ENOUGH, f->reader.idle,
	       "the reader here kept up (busy %s of one CPU), so that the sender or the "
	       "path is what limits",
	       share_words(f->reader.cpu).text);
}

enum { TCP = 1, UDP = 2, TURNS = 4, UNIX = 8 };
static const struct {
	unsigned tests;
	void (*judge)(FACTS, struct verdict *v);
} rules[] = {
	{ TCP | UDP | TURNS, rule_link },
	{ TCP | UDP, rule_shaper },
	{ TCP | UDP, rule_application },
	{ TCP | UDP | TURNS | UNIX, rule_sender_cpu },
	{ TCP, rule_send_buffer },
	{ TCP, rule_loss },
	{ TCP, rule_path },
	{ TCP, rule_receive_window },
	{ TCP | TURNS | UNIX, rule_reader },
	{ TCP | UDP, rule_softirq },
	{ UDP, rule_udp_buffer },
	{ UDP, rule_datagrams_lost },
	{ TCP | UDP, rule_mtu },
	{ TURNS, rule_turns },
	{ TCP | UDP, rule_kept_up },
};

/* --- the ceiling ------------------------------------------------------------------------------
 */

static enum np_turns
turns_of(const struct np_explain_input *in)
{
	if (in->lossy) {
		return NP_TURNS_UDP_RR;
	}
	if (!in->connections) {
		return NP_TURNS_TCP_RR;
	}
	return in->request > 0 || in->response > 0 ? NP_TURNS_TCP_CRR : NP_TURNS_TCP_CC;
}

/* By the sender's kernel, else by the ledger of either end (doc/evidence.md, wire.). */
static double
sent(FACTS, const char *kernels, const char *out, const char *in)
{
	double v = np_bag_number(f->tx, kernels);

	v = isnan(v) ? np_bag_number(f->tx, out) : v;
	return isnan(v) ? np_bag_number(f->rx, in) : v;
}

/* What of a TCP stream's ceiling went into other things than payload that arrived. */
static void
where_it_went(FACTS, struct np_explain_ceiling *c)
{
	double per_packet = f->way.framing.header + f->way.framing.rest +
			    np_ceiling_ip_header(&f->way) + 20 + (f->way.timestamps ? 12 : 0);
	double link_bytes = f->rate_bps * f->seconds / 8, most_bytes = c->most * f->seconds / 8;
	double again = sent(f, "tcp.retransmitted_bytes", "wire.out.retransmitted_bytes",
			    "wire.in.retransmitted_bytes");
	double out = sent(f, "tcp.segments_out", "wire.out.segments", "wire.in.segments");
	double segments =
	    sent(f, "tcp.data_segments_out", "wire.out.data_segments", "wire.in.data_segments");
	double payload = f->in->throughput_bps * f->seconds / 8;
	double fewest = payload / np_ceiling_segment(&f->way);

	c->lost = f->in->lossy && f->in->sent_bps > 0 && c->most > 0
		      ? (f->in->sent_bps - f->in->throughput_bps) / c->most
		      : (double)NAN;
	if (f->in->lossy) {
		c->idle = 1 - c->reached - (isnan(c->lost) ? 0 : c->lost);
		return;
	}
	c->retransmits = again / most_bytes;
	c->acks = (out - segments) * per_packet / link_bytes;
	c->small_segments = (segments - fewest) * per_packet / link_bytes;
	/* Retransmissions are segments, too, and have been counted. */
	c->small_segments -= again / np_ceiling_segment(&f->way) * per_packet / link_bytes;
	c->small_segments = c->small_segments < 0 ? 0 : c->small_segments;
	c->idle =
	    1 - c->reached - known(c->retransmits) - known(c->acks) - known(c->small_segments);
}

static void
part(char *text, double share, const char *what)
{
	if (share >= 0.0005) {
		size_t used = strlen(text);

		snprintf(text + used, NP_EXPLAIN_TEXT - used, ", %s %s", what,
			 share_words(share).text);
	}
}

static void
ceiling_words(FACTS, struct np_explanation *out)
{
	const struct np_explain_ceiling *c = &out->ceiling;
	char *text = out->ceiling_text;

	if (isnan(c->most)) {
		if (!np_ceiling_has_packets(f->in->family)) {
			return;
		}
		snprintf(text, NP_EXPLAIN_TEXT, "not known: %s",
			 f->rate_bps > 0 ? "the MTU could not be had"
					 : "nobody tells the link's rate (--link-rate does)");
		return;
	}
	if (f->in->transactions) {
		snprintf(text, NP_EXPLAIN_TEXT, "%.0f transactions a second", c->most);
	} else {
		snprintf(text, NP_EXPLAIN_TEXT, "%s of payload", rate_words(c->most).text);
	}
	np_text_add(text, NP_EXPLAIN_TEXT, strlen(text), " at %s (%s), MTU %.0f",
		    rate_words(c->rate_bps).text, c->known, f->mtu);
	if (c->reached > 1.05) {
		add(text,
		    "%.3g times as much got through: that link is not what the data went over",
		    c->reached);
		return;
	}
	add(text, "%s of it reached", share_words(c->reached).text);
	part(text, c->retransmits, "retransmitted");
	part(text, c->small_segments, "headers of small segments");
	part(text, c->acks, "ACKs beside data");
	part(text, c->lost, "lost");
	part(text, c->idle, "idle");
}

static void
find_ceiling(FACTS, struct np_explain_ceiling *c)
{
	const struct np_explain_input *in = f->in;

	*c = (struct np_explain_ceiling){ .rate_bps = f->rate_bps > 0 ? f->rate_bps : (double)NAN,
					  .known = f->rate_known,
					  .most = (double)NAN,
					  .reached = (double)NAN,
					  .retransmits = (double)NAN,
					  .small_segments = (double)NAN,
					  .acks = (double)NAN,
					  .lost = (double)NAN,
					  .idle = (double)NAN };
	if (!(f->rate_bps > 0) || isnan(f->mtu)) {
		return;
	}
	if (in->transactions) {
		c->most = np_ceiling_turns(&f->way, turns_of(in), in->request, in->response,
					   f->rate_bps, 0, in->in_flight > 0 ? in->in_flight : 1);
		c->reached = in->per_second / c->most;
		return;
	}
	c->most = f->rate_bps * payload_share(f, &f->way);
	c->reached = in->throughput_bps / c->most;
	if (!isnan(c->most)) {
		where_it_went(f, c);
	}
}

/* --- the choice -------------------------------------------------------------------------------
 */

static void
doubt(FACTS, const struct verdict *best, const struct verdict *second, char doubts[NP_EXPLAIN_TEXT])
{
	const char *lacks = f->in->far_lacks;

	snprintf(doubts, NP_EXPLAIN_TEXT, "%s", best->doubts);
	if (second->score >= ENOUGH && second->score >= best->score - 0.15 &&
	    second->limit != best->limit && second->limit != NP_LIMIT_UNCLEAR &&
	    best->limit != NP_LIMIT_UNCLEAR && best->limit != NP_LIMIT_MTU) {
		add(doubts, "nearly as much speaks for %s", np_limit_name(second->limit));
	}
	if (lacks != NULL && lacks[0] != '\0') {
		add(doubts, "the far end told nothing of its side");
	}
	if (f->in->iterations > 1) {
		add(doubts, "this is of the last of %u iterations alone",
		    (unsigned)f->in->iterations);
	}
	if (f->seconds < 0.5) {
		add(doubts, "the test took no more than %.2g s", f->seconds);
	}
	if (f->same_machine && np_ceiling_has_packets(f->in->family)) {
		add(doubts, "both ends share the processors of one machine");
	}
}

static void
unclear(FACTS, const struct verdict *best, struct verdict *v)
{
	memset(v, 0, sizeof(*v));
	decide(v, NP_LIMIT_UNCLEAR, 0, (double)NAN, "%s",
	       f->tx == NULL && f->rx == NULL ? "neither end could tell anything"
					      : "no figure stands out");
	if (!isnan(f->sender.cpu) || f->sender.spins) {
		add(v->sentence, "%s", cpu_words(&f->sender, "sending").text);
	}
	if (!isnan(f->reader.cpu) || f->reader.spins) {
		add(v->sentence, "%s", reader_words(f).text);
	}
	if (f->rwnd >= 0) {
		add(v->sentence, "the receiver's window held it up for %s of the time",
		    share_words(f->rwnd).text);
	}
	if (best->score >= 0.25) {
		add(v->doubts, "most, but not enough, speaks for %s", np_limit_name(best->limit));
	}
}

static void
put(struct np_bag *into, double v, const char *name)
{
	if (!isnan(v)) {
		np_bag_real(into, v, "explain.%s", name);
	}
}

void
np_explain_put(const struct np_explanation *e, bool transactions, struct np_bag *into)
{
	const struct np_explain_ceiling *c = &e->ceiling;

	np_bag_text(into, np_limit_name(e->limit), "explain.limit");
	np_bag_text(into, e->sentence, "explain.sentence");
	np_bag_text(into, e->doubts, "explain.doubts");
	np_bag_text(into, e->ceiling_text, "explain.ceiling");
	put(into, e->score, "score");
	put(into, e->share, "share");
	put(into, c->rate_bps, "link_rate_bps");
	put(into, c->most, transactions ? "ceiling_transactions_per_s" : "ceiling_bps");
	put(into, c->reached, "reached");
	put(into, c->retransmits, "retransmitted");
	put(into, c->small_segments, "small_segments");
	put(into, c->acks, "acks");
	put(into, c->lost, "lost");
	put(into, c->idle, "idle");
}

void
np_explain_print(FILE *out, const struct np_bag *values)
{
	const char *limit = np_bag_string(values, "explain.limit");
	const char *sentence = np_bag_string(values, "explain.sentence");
	const char *doubts = np_bag_string(values, "explain.doubts");
	const char *ceiling = np_bag_string(values, "explain.ceiling");

	if (limit != NULL && sentence != NULL) {
		np_text_line(out, "explain: %s: %s", limit, sentence);
	}
	if (doubts != NULL && doubts[0] != '\0') {
		np_text_line(out, "doubts: %s", doubts);
	}
	if (ceiling != NULL && ceiling[0] != '\0') {
		np_text_line(out, "ceiling: %s", ceiling);
	}
}

static unsigned
kind_of(const struct np_explain_input *in)
{
	return in->transactions                      ? TURNS
	       : !np_ceiling_has_packets(in->family) ? UNIX
	       : in->lossy                           ? UDP
						     : TCP;
}

void
np_explain(const struct np_explain_input *in, struct np_explanation *out)
{
	struct np_facts_of_test f;
	struct verdict best = { .score = 0 }, second = { .score = 0 };

	memset(out, 0, sizeof(*out));
	np_facts_of_test(in, &f);
	find_ceiling(&f, &out->ceiling);
	f.reached = out->ceiling.reached;
	ceiling_words(&f, out);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct verdict v = { .score = 0 };

		if ((rules[i].tests & kind_of(in)) != 0) {
			rules[i].judge(&f, &v);
		}
		if (v.score > best.score) {
			second = best;
			best = v;
		} else if (v.score > second.score) {
			second = v;
		}
	}
	if (best.score < ENOUGH) {
		struct verdict none;

		unclear(&f, &best, &none);
		best = none;
	}
	out->limit = best.limit;
	out->score = best.score;
	out->share = best.share;
	memcpy(out->sentence, best.sentence, sizeof(out->sentence));
	doubt(&f, &best, &second, out->doubts);
}
