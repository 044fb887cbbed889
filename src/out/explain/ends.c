/* Causes in the processes at both ends: CPU, quota, stops, pacing, and the application. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "out/explain/rules.h"

struct np_words
np_cpu_words(const struct np_thread_facts *t, const char *which)
{
	struct np_words w;
	size_t used = 0;

	if (t->spins) {
		np_text_add(w.text, sizeof(w.text), 0,
			    "the %s process never sleeps (spin): %s of its calls found nothing, "
			    "and its CPU time does not say how busy it was",
			    which, np_share_words(t->empty).text);
		return w;
	}
	if (!(t->late >= NP_WAITS_HOG)) { /* its waits do not matter, or are not known */
		np_text_add(w.text, sizeof(w.text), 0, "the %s process was busy %s of one CPU",
			    which, np_share_words(t->cpu).text);
		return w;
	}
	used = np_text_add(w.text, sizeof(w.text), 0,
			   "the %s process ran for %s of the time and waited for a CPU for "
			   "another %s",
			   which, np_share_words(t->cpu).text, np_share_words(t->late).text);
	if (t->starved && t->crowded) {
		np_text_add(w.text, sizeof(w.text), used, ", as other threads kept CPU %d busy",
			    t->on);
	}
	return w;
}

struct np_words
np_reader_words(const struct np_facts_of_test *f)
{
	bool discards = f->discards && !f->in->transactions;
	struct np_words w = np_cpu_words(&f->reader, discards ? "discarding" : f->reader.does);

	if (f->discards) {
		np_text_add(w.text, sizeof(w.text), strlen(w.text), ", and did not copy the data");
	}
	return w;
}

/*
 * A process does not run while its cgroup's CPU quota is used up (cpu.stat of cgroup v2), or while
 * it is stopped. Much of the time with a quota used up, or half of the periods, scores high; less
 * if the thread is mostly blocked anyway. Stops fill buffers and shut windows: they score above
 * these.
 */
static void
judge_stops(const struct np_thread_facts *t, enum np_limit quota, enum np_limit stopped,
	    struct np_verdict *v)
{
	char subject[48] = "it";
	double score = np_above(t->throttled, NP_THROTTLED, 0.99);

	if (t->stopped) {
		np_decide(v, stopped, fmin(0.8 + 0.4 * t->stalled, 0.98), t->stalled,
			  "limited by the %s process, which was stalled for %s of the time, up to "
			  "%s at a time: the process or its machine was stopped or frozen",
			  t->does, np_share_words(t->stalled).text,
			  np_time_words(t->longest_s * 1e6).text);
		return;
	}
	if (t->throttled >= NP_WAITS || (score > 0 && t->often >= NP_OFTEN)) {
		score = 0.99 + 0.005 * t->throttled;
	}
	if (t->waits) {
		score *= 0.6;
	}
	if (t->quota > 0) {
		snprintf(subject, sizeof(subject), "it allows %.3g CPUs, and", t->quota);
	}
	np_decide(
	    v, quota, score, t->throttled,
	    "limited by the CPU quota of the %s process's cgroup: %s was used up for %s of the "
	    "time (the process ran %s)",
	    t->does, subject, np_share_words(t->throttled).text, np_share_words(t->cpu).text);
}

void
np_rule_sender_stops(const struct np_facts_of_test *f, struct np_verdict *v)
{
	judge_stops(&f->sender, NP_LIMIT_SENDER_QUOTA, NP_LIMIT_SENDER_STALLED, v);
}

void
np_rule_reader_stops(const struct np_facts_of_test *f, struct np_verdict *v)
{
	/* A receiver of datagrams that loses next to none does not limit their sender. */
	if (!f->in->datagrams || f->in->transactions || !(f->lost_share < NP_LOSSY_UDP)) {
		judge_stops(&f->reader, NP_LIMIT_READER_QUOTA, NP_LIMIT_READER_STALLED, v);
	}
}

/* Does a rate that was asked for limit? If NP_ASKED to NP_WITHIN of it came. what: it, in words. */
static void
judge_asked(double rate, double asked, const char *what, enum np_limit limit, double score,
	    struct np_verdict *v)
{
	bool holds = rate >= NP_ASKED * asked && rate <= NP_WITHIN * asked;

	np_decide(v, limit, holds ? score : 0, rate / asked,
		  "limited by %s %s, of which %s was reached", what, np_rate_words(asked).text,
		  np_share_words(rate / asked).text);
	v->allows = asked;
}

/* The rate is that of -q, which the kernel paces. */
void
np_rule_pacing(const struct np_facts_of_test *f, struct np_verdict *v)
{
	judge_asked(f->given_bps, f->pacing_bps, "the requested pacing rate (-q):", NP_LIMIT_PACING,
		    0.988, v);
}

/* The application sends less than it could: by -b and -w, by --rate, or because it sleeps. */
void
np_rule_application(const struct np_facts_of_test *f, struct np_verdict *v)
{
	/* By samples or by the kernel's clock, whichever is known. */
	double share = f->in->datagrams ? f->app_short : fmax(f->app_short, 1 - f->busy);
	double score = f->sender.idle < share ? f->sender.idle : share;
	bool more_is_lost = f->in->datagrams && f->lost_share >= NP_LOSSY_UDP;

	judge_asked(f->given_bps, f->writes_bps,
		    f->open_loop ? "the sending application: --rate asks it for"
				 : "the sending application: -b and -w allow it to write",
		    NP_LIMIT_APPLICATION, more_is_lost ? 0.8 : 0.988, v);
	if (v->score > 0) {
		np_explain_add(v->sentence, "it slept %s of the time",
			       np_share_words(f->sender.idle).text);
		return;
	}
	v->allows = f->measured;
	score *= more_is_lost ? 0.8 : 1;
	/* Not if it is unknown whether it slept, or if it was blocked in a send. */
	if (isnan(f->sender.idle) || f->sender.waits) {
		score = 0;
	} else if (f->sender.pausing >= NP_MOSTLY_BLOCKED && score > 0) {
		share = score = f->sender.pausing; /* asleep by choice: the surest figure */
	}
	np_decide(
	    v, NP_LIMIT_APPLICATION, score, share,
	    "limited by the sending application: it slept %s of the time, and nothing waited to "
	    "be sent for %s of it",
	    np_share_words(f->sender.idle).text, np_share_words(share).text);
}

/* The receiver reads no more than -b and -w let it. */
void
np_rule_slow_reads(const struct np_facts_of_test *f, struct np_verdict *v)
{
	judge_asked(f->in->throughput_bps, f->reads_bps, "the reader: -b and -w allow it to read",
		    NP_LIMIT_READER_SLOW, 0.987, v);
	np_explain_add(v->sentence, "it slept %s of the time", np_share_words(f->reader.idle).text);
}

/* The score of a wait for a processor in transactions, if about the longest of their parts. */
static double
waits_in_turn(const struct np_facts_of_test *f, const struct np_thread_facts *t,
	      const struct np_thread_facts *other)
{
	double path = f->min_rtt_us * f->in->per_second / 1e6; /* share of the time on the path */

	return t->late >= NP_WAITS && t->late >= 0.7 * np_known(other->late) && !t->spins &&
		       !(path > t->late)
		   ? 0.65 + 0.3 * t->late
		   : 0;
}

/* Samples usually find unread data at the receiver, more than a segment that just arrived. */
static bool
is_left_unread(const struct np_facts_of_test *f)
{
	return f->inq_left >= NP_LEFT && f->inq >= 2 * np_ceiling_segment(&f->encap);
}

double
np_sender_cpu_score(const struct np_facts_of_test *f)
{
	double s = f->sender.busy;
	/* For much of the time it had no data in flight, for another reason than its processor. */
	bool rests = 1 - f->busy - np_known(f->sender.wait) >= 0.4;
	/* It sleeps because its buffer is full, or reordering keeps its window small. */
	bool is_held_up = f->sender.idle >= NP_SLEEPS &&
			  (fmax(np_known(f->outq_full), np_known(f->sndbuf)) >= NP_SNDBUF ||
			   (f->in_vain >= NP_IN_VAIN && f->again >= NP_LOSSY * f->segments));

	if (f->sender.lacks_quota) {
		return 0; /* np_rule_sender_stops() names it */
	}
	if (f->in->transactions) {
		return fmax(np_above(s, NP_BUSY, 0.97), waits_in_turn(f, &f->sender, &f->reader));
	}
	s = fmax(np_above(s, NP_BUSY, 0.97), f->sender.starved && !rests && !is_held_up ? 0.8 : 0);
	/* Less if data lie unread, and the reader lacks a processor even more. */
	return is_left_unread(f) && f->reader.starved && f->reader.wait > np_known(f->sender.wait)
		   ? 0.9 * s
		   : s;
}

double
np_reader_cpu_score(const struct np_facts_of_test *f)
{
	double s = f->reader.busy;

	if (f->reader.lacks_quota) {
		return 0; /* np_rule_reader_stops() names it */
	}
	if (f->in->transactions) {
		return fmax(np_above(s, NP_BUSY, 0.96), waits_in_turn(f, &f->reader, &f->sender));
	}
	if (np_ceiling_least_mtu(f->in->family) == 0) {
		return np_above(s, NP_BUSY, 0.96); /* nothing else can be the limit */
	}
	if (is_left_unread(f) && f->reader.starved) {
		return 0.7 + 0.25 * f->reader.wait; /* more, the longer it waits */
	}
	/* A reader that keeps its queue empty holds up no sender. */
	return f->inq_waits >= NP_UNREAD ? np_above(s, NP_BUSY, 0.9) + 0.08 * f->inq_waits
	       : f->sender.waits         ? np_above(s, NP_BUSY, 0.9)
					 : 0;
}

/* The sending or requesting process needs more time of a processor. */
void
np_rule_sender_cpu(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double score = np_sender_cpu_score(f);

	if (f->in->datagrams && f->lost_share >= NP_LOSSY_UDP) {
		score *= 0.8; /* a faster sender would also lose more */
	}
	np_decide(v, NP_LIMIT_SENDER_CPU, score, f->sender.busy, "limited by the %s CPU: %s",
		  f->in->transactions ? "client's" : "sender's",
		  np_cpu_words(&f->sender, f->sender.does).text);
	v->allows = f->measured / f->sender.busy;
	if (f->reader.busy >= NP_BUSY) {
		np_explain_add(v->doubts, "the receiver was busy, too: %s",
			       np_reader_words(f).text);
	}
}

/* The reader sleeps by choice, though data wait to be read. */
static bool
reader_sleeps(const struct np_facts_of_test *f)
{
	return f->reader.idle >= 0.3 && !f->reader.waits &&
	       (f->inq_waits >= NP_UNREAD || (f->reader.idle >= 0.7 && f->inq_left >= 0.8));
}

/* Judge a small window if it is due to the reader, which lacks a processor or sleeps by choice. */
static void
window_by_reader(const struct np_facts_of_test *f, struct np_verdict *v)
{
	double score = 0.55 + 0.44 * f->rwnd;
	struct np_word share = np_share_words(f->rwnd);

	if (f->reader.busy >= NP_BUSY || (f->inq_waits >= NP_UNREAD && f->reader.idle < 0.3 &&
					  f->receive_buffer >= NP_SMALL_RCVBUF)) {
		np_decide(v, NP_LIMIT_RECEIVER_CPU, score, f->rwnd,
			  "limited by the receiver's window for %s of the time: %s", share.text,
			  np_reader_words(f).text);
		v->allows = f->measured / f->reader.busy;
	} else if (reader_sleeps(f)) {
		np_decide(
		    v, NP_LIMIT_READER_SLOW, score, f->rwnd,
		    "limited by the receiver's window for %s of the time: the reading process "
		    "slept %s of it while %s waited to be read",
		    share.text, np_share_words(f->reader.idle).text, np_size_words(f->inq).text);
	}
}

/* The receiving process: a small window due to it, its processor's time, or sleep by choice. */
void
np_rule_reader(const struct np_facts_of_test *f, struct np_verdict *v)
{
	if (f->rwnd >= NP_WINDOW) {
		if (!f->reader.kept_off && !isnan(f->reader.cpu)) { /* else another rule names it */
			window_by_reader(f, v);
		}
		return;
	}
	/* The window is unknown or open: a large buffer may not have filled yet. */
	np_decide(v, NP_LIMIT_RECEIVER_CPU, np_reader_cpu_score(f), f->reader.busy,
		  "limited by the %s CPU: %s", f->in->transactions ? "daemon's" : "receiver's",
		  np_reader_words(f).text);
	v->allows = f->measured / f->reader.busy;
	if (v->score >= NP_ENOUGH && f->tx == NULL) {
		np_explain_add(v->doubts, "it is not known what kept the sender busy");
	}
	if (v->score < NP_ENOUGH && reader_sleeps(f) &&
	    (f->rwnd >= 0.2 || (f->tx == NULL && f->inq_waits >= NP_UNREAD) ||
	     (f->sender.waits && f->reader.pausing >= NP_MOSTLY_BLOCKED))) {
		np_decide(
		    v, NP_LIMIT_READER_SLOW, 0.8, f->reader.idle,
		    "limited by the reader: it slept %s of the time while %s waited to be read",
		    np_share_words(f->reader.idle).text, np_size_words(f->inq).text);
		v->allows = f->measured;
	}
}

/* Is the cause a busy processor? */
static bool
is_processor(enum np_limit limit)
{
	return limit == NP_LIMIT_SENDER_CPU || limit == NP_LIMIT_RECEIVER_CPU ||
	       limit == NP_LIMIT_SOFTIRQ;
}

void
np_calls_tell(const struct np_facts_of_test *f, struct np_explanation *out)
{
	double calls = np_bag_number(f->tx, "flow.sends"),
	       sent = np_bag_number(f->tx, "flow.bytes_sent"), bytes = sent / calls;
	double cpu = np_bag_number(f->tx, "work.user_s") + np_bag_number(f->tx, "work.system_s");
	double packets = np_bag_number(f->tx, f->in->family == 6 ? "moved.snmp6.Ip6OutRequests"
								 : "moved.snmp.Ip.OutRequests");
	double most = fmin(np_bag_number(f->tx, "host.nic.gso_max_size"), NP_CALL);

	if (f->in->datagrams || f->in->messages || f->in->transactions || !(bytes < NP_CALL) ||
	    (!is_processor(out->best.limit) && !is_processor(out->also.limit))) {
		return;
	}
	snprintf(out->calls, sizeof(out->calls),
		 "%.0f a second of %.0f bytes took %s of the sender's CPU each", calls / f->seconds,
		 bytes, np_time_words(1e6 * cpu / calls).text);
	if (sent / packets < most / 2) {
		np_explain_add(
		    out->calls,
		    "they left in packets of %.0f bytes, and the kernel makes up to %.0f "
		    "of larger calls (GSO)",
		    sent / packets, most);
	}
	np_explain_add(out->calls, "-- -m %s%dK makes %.0f times fewer of them",
		       f->in->near_transmits ? "" : ",", 2 * NP_CALL / 1024, 2 * NP_CALL / bytes);
}

/* Without the sender's evidence: the reader at this end did its part. */
void
np_rule_kept_up(const struct np_facts_of_test *f, struct np_verdict *v)
{
	if (f->tx != NULL || !(f->reader.idle >= 0.3) || f->inq_waits >= 0.2) {
		return;
	}
	np_decide(v, NP_LIMIT_UNCLEAR, NP_ENOUGH, f->reader.idle,
		  "the reader at this end kept up (busy %s of one CPU), so the sender or the path "
		  "is the limit",
		  np_share_words(f->reader.cpu).text);
}
