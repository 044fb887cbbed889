/*
 * Do several flows share a cause? Slow flows are found by their rates; a property that they have,
 * and the others lack, is their own cause. f: facts of the test; w: what was found of its flows.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "out/explain/rules.h"
#include "stats/confidence.h"

/* Figures by which slow flows may differ from others: offsets in a row. */
enum {
	LOSS = offsetof(struct np_explain_flow, loss),
	RTT = offsetof(struct np_explain_flow, rtt_us),
	MIN_RTT = offsetof(struct np_explain_flow, min_rtt_us),
	HELD = offsetof(struct np_explain_flow, held)
};
static const size_t averaged[] = { RTT, MIN_RTT, HELD, offsetof(struct np_explain_flow, cwnd),
				   offsetof(struct np_explain_flow, busy) };
enum { AVERAGED = sizeof(averaged) / sizeof(averaged[0]) };

enum { KEYS = 1024 }; /* most threads, or processors, that are told apart */

/* The figures of a thread; unknown if there is no such thread. */
static struct np_explain_thread
thread_at(const struct np_facts_of_test *f, int64_t i)
{
	struct np_explain_thread t = { .busy = (double)NAN, .on = -1 };

	if (f->in->flows.thread != NULL && i >= 0 && i < f->in->flows.threads) {
		f->in->flows.thread(f->in->flows.of, (uint32_t)i, &t);
	}
	return t;
}

/* Read the figures of a flow. False: its rate is not known. */
static bool
flow_at(const struct np_facts_of_test *f, uint32_t i, struct np_explain_flow *row)
{
	f->in->flows.flow(f->in->flows.of, i, row);
	row->loss = row->segments > 0 ? row->again / row->segments : (double)NAN;
	row->busy = thread_at(f, row->thread).busy;
	return isfinite(row->rate) && row->rate >= 0;
}

/* A figure of a flow, by its offset. */
static double *
figure_at(struct np_explain_flow *row, size_t figure)
{
	return (double *)(void *)((char *)row + figure);
}

/* Is the flow slow and, if a figure sets slow flows apart (w->mark), is its own above w->above? */
static bool
is_slow(const struct np_flows_found *w, struct np_explain_flow *row)
{
	return row->rate < w->slower && (w->mark == 0 || *figure_at(row, w->mark) > w->above);
}

/* Add up the figures of the slow flows and of the others, and find their means. */
static void
group(const struct np_facts_of_test *f, struct np_flows_found *w)
{
	uint32_t known[2][AVERAGED] = { { 0 } };
	struct np_flow_group *const groups[2] = { &w->rest, &w->slow };
	struct np_explain_flow row;

	memset(&w->slow, 0, sizeof(w->slow));
	memset(&w->rest, 0, sizeof(w->rest));
	for (uint32_t i = 0; i < w->count; i++) {
		if (flow_at(f, i, &row)) {
			bool slow = is_slow(w, &row), counted = row.segments >= 0 && row.again >= 0;

			groups[slow]->count++;
			groups[slow]->rate += row.rate;
			groups[slow]->segments += counted ? row.segments : 0;
			groups[slow]->again += counted ? row.again : 0;
			for (size_t k = 0; k < AVERAGED; k++) {
				double v = *figure_at(&row, averaged[k]);

				known[slow][k] += isfinite(v);
				*figure_at(&groups[slow]->mean, averaged[k]) += isfinite(v) ? v : 0;
			}
		}
	}
	for (int i = 0; i < 2; i++) {
		for (size_t k = 0; k < AVERAGED; k++) {
			*figure_at(&groups[i]->mean, averaged[k]) /= known[i][k];
		}
		groups[i]->mean.loss = groups[i]->again / groups[i]->segments;
		groups[i]->mean.rate = groups[i]->rate / groups[i]->count;
	}
}

/* Are most slow flows above that, and most others not? (Means may be due to a few.) */
static bool
separates(const struct np_facts_of_test *f, const struct np_flows_found *w, size_t figure,
	  double above)
{
	uint32_t slow = 0, rest = 0;
	struct np_explain_flow row;

	for (uint32_t i = 0; i < w->count; i++) {
		if (flow_at(f, i, &row)) {
			bool has = *figure_at(&row, figure) > above;

			slow += has && is_slow(w, &row);
			rest += has && !is_slow(w, &row);
		}
	}
	return slow >= NP_MEMBERS * w->slow.count && rest <= (1 - NP_MEMBERS) * w->rest.count;
}

/* Did the slow flows send about a window in each round trip, so that they did not lack data? */
static bool
fills_window(const struct np_facts_of_test *f, const struct np_flows_found *w)
{
	double rtt_s = w->slow.mean.rtt_us / 1e6;
	double each = f->seconds > 0 ? w->slow.segments / w->slow.count / f->seconds : (double)NAN;

	return each * rtt_s >= 0.5 * w->slow.mean.cwnd;
}

/* Does loss slow them? A little may also be due to late threads, which do not fill windows. */
static bool
loss_slows(const struct np_facts_of_test *f, const struct np_flows_found *w)
{
	double each = w->slow.again / w->slow.count;

	if (f->in->transactions) {
		return each * NP_TIMER_S >= 0.3 * f->seconds;
	}
	return w->slow.mean.loss >= NP_LOSS_STOPS || fills_window(f, w);
}

/* Is loss the slow flows' own? Not if others lose 1 % (a shared queue). *above divides both. */
static bool
own_loss(const struct np_facts_of_test *f, const struct np_flows_found *w, double *above)
{
	double slow = w->slow.mean.loss, rest = w->rest.mean.loss;
	double expected = rest * w->slow.segments;
	double by_chance = 4 * sqrt(expected + 1); /* four standard deviations */

	*above = sqrt(slow * fmax(rest, slow / 16)); /* geometric mean; slow / 4 at least */
	return slow >= NP_LOSSY && slow >= NP_TIMES_LOSS * rest && rest < 10 * NP_LOSSY &&
	       w->slow.again - expected >= by_chance + w->slow.count && loss_slows(f, w) &&
	       separates(f, w, LOSS, *above);
}

/* Do longer round trips explain the rates? By up to the square of their ratio; 1.5 is a margin. */
static bool
rtt_explains(const struct np_flows_found *w, double long_us, double short_us)
{
	double times = long_us / short_us, slower = w->rest.mean.rate / w->slow.mean.rate;

	return times >= NP_TIMES_RTT && long_us - short_us >= NP_APART_US &&
	       slower <= 1.5 * times * times;
}

/* Find causes of the slow flows themselves. Then only flows with the first one found are slow. */
static void
look_at_own(const struct np_facts_of_test *f, struct np_flows_found *w)
{
	const struct np_explain_flow *slow = &w->slow.mean, *rest = &w->rest.mean;
	/* Thresholds between them: geometric means, as times differ by factors. */
	double least_us = sqrt(slow->min_rtt_us * rest->min_rtt_us);
	double us = sqrt(slow->rtt_us * rest->rtt_us), held = 0.7 * slow->held, least_loss;

	w->has.loss = own_loss(f, w, &least_loss);
	w->has.rtt = rtt_explains(w, slow->min_rtt_us, rest->min_rtt_us) &&
		     separates(f, w, MIN_RTT, least_us);
	w->has.queue = !w->has.rtt && rtt_explains(w, slow->rtt_us, rest->rtt_us) &&
		       fills_window(f, w) && separates(f, w, RTT, us);
	w->has.held =
	    slow->held >= NP_WINDOW && rest->held <= slow->held / 2 && separates(f, w, HELD, held);
	w->mark = w->has.loss    ? LOSS
		  : w->has.rtt   ? MIN_RTT
		  : w->has.queue ? RTT
		  : w->has.held  ? HELD
				 : 0;
	w->above = w->has.loss ? least_loss : w->has.rtt ? least_us : w->has.queue ? us : held;
	group(f, w); /* again: flows without the mark have a low rate by chance */
}

/* Flows by a key: the thread that drove them, or the processor that received their packets. */
struct table {
	struct {
		uint32_t slow, all;
	} key[KEYS];
	int64_t first_slow; /* the lowest key with slow flows */
	uint32_t keys;      /* keys with flows */
	uint32_t slow_keys; /* keys with slow flows */
	uint32_t of_slow;   /* flows of these keys */
};

/* False: a key has slow and other flows, or a flow has no key, or one that is too great. */
static bool
fill_table(const struct np_facts_of_test *f, const struct np_flows_found *w, bool by_cpu,
	   struct table *t)
{
	struct np_explain_flow row;
	bool clear = true;

	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < w->count; i++) {
		int64_t key;

		if (!flow_at(f, i, &row)) {
			continue;
		}
		key = by_cpu ? row.cpu : row.thread;
		if (key < 0 || key >= KEYS) {
			return false;
		}
		t->key[key].all++;
		t->key[key].slow += is_slow(w, &row);
	}
	for (int i = 0; i < KEYS; i++) {
		uint32_t slow = t->key[i].slow, all = t->key[i].all;

		t->keys += all > 0;
		if (all > 0 && slow >= NP_MEMBERS * all) {
			t->first_slow = t->slow_keys == 0 ? i : t->first_slow;
			t->slow_keys++;
			t->of_slow += all;
		} else if (slow > (1 - NP_MEMBERS) * all) {
			clear = false;
		}
	}
	return clear && t->slow_keys > 0 && t->slow_keys < t->keys;
}

/* Natural logarithm of n choose k. */
static double
log_choose(double n, double k)
{
	return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* Would slow flows chosen at random rarely have so few keys? By the numbers of ways to choose. */
static bool
is_significant(const struct np_flows_found *w, const struct table *t)
{
	return log_choose(t->keys, t->slow_keys) - log_choose(w->known, w->slow.count) <=
	       log(NP_CHANCE);
}

/* t: by thread. Do those of slow flows, and few others, share their CPU with other busy threads? */
static bool
starved_alone(const struct np_facts_of_test *f, const struct table *t)
{
	uint32_t slow = 0, rest = 0;

	for (int i = 0; i < KEYS; i++) {
		struct np_explain_thread one = thread_at(f, i);
		char name[64];
		double taken; /* busy share of the thread's processor */

		snprintf(name, sizeof(name), "cpu.%d.idle", one.on);
		taken = 1 - np_bag_number(f->in->near, name);
		if (t->key[i].all > 0 && one.on >= 0 && taken >= NP_CROWDED &&
		    one.busy <= taken - 0.15) {
			bool drives_slow = t->key[i].slow >= NP_MEMBERS * t->key[i].all;

			slow += drives_slow;
			rest += !drives_slow;
		}
	}
	return slow >= NP_MEMBERS * t->slow_keys &&
	       rest <= (1 - NP_MEMBERS) * (t->keys - t->slow_keys);
}

/* Do the threads of slow flows carry as much as others, but divide it among more flows? */
static bool
divided(const struct np_flows_found *w, const struct table *t)
{
	double slow = t->slow_keys, rest = t->keys - t->slow_keys;
	double of_slow = w->slow.rate / slow, of_rest = w->rest.rate / rest;
	double flows_slow = t->of_slow / slow, flows_rest = (w->known - t->of_slow) / rest;

	return flows_slow >= 1.4 * flows_rest && of_slow >= 0.75 * of_rest &&
	       of_rest >= 0.75 * of_slow;
}

/* Find causes in what drives the slow flows, and what receives their packets. */
static void
look_at_threads(const struct np_facts_of_test *f, struct np_flows_found *w)
{
	double busy = w->slow.mean.busy, others = w->rest.mean.busy;
	struct table t;

	if (fill_table(f, w, false, &t)) {
		w->thread = t.slow_keys == 1 ? t.first_slow : -1;
		w->has.busy = busy >= NP_BUSY && others < NP_BUSY && busy - others >= NP_BUSIER;
		w->has.divided = divided(w, &t);
		w->has.starved = starved_alone(f, &t);
		w->has.few = is_significant(w, &t);
	}
	if (fill_table(f, w, true, &t)) {
		w->cpu = t.slow_keys == 1 ? t.first_slow : -1;
		w->has.cpu = is_significant(w, &t) && w->cpu >= 0;
	}
}

/* Leave slow flows that have a cause of their own, and carry less, out of the facts. */
static void
leave_out_slow(const struct np_flows_found *w, struct np_facts_of_test *f)
{
	if (w->has.loss) {
		f->segments = w->rest.segments;
		f->retransmits = w->rest.again;
		f->loss = w->rest.mean.loss;
	}
	if (w->has.rtt || w->has.queue) {
		f->rtt_us = w->rest.mean.rtt_us;
		f->min_rtt_us = w->rest.mean.min_rtt_us;
		f->queue_us = f->rtt_us - f->min_rtt_us;
	}
	if (w->has.held) {
		f->rwnd = w->rest.mean.held;
	}
}

void
np_flows_find(struct np_facts_of_test *f, struct np_flows_found *w)
{
	struct np_explain_flow row;
	double squares = 0;

	memset(w, 0, sizeof(*w));
	w->thread = w->cpu = -1;
	w->count = f->in->flows.flow != NULL ? f->in->flows.count : 0;
	if (w->count < 2) {
		return;
	}
	w->least = (double)INFINITY;
	for (uint32_t i = 0; i < w->count; i++) {
		if (flow_at(f, i, &row)) {
			w->known++;
			w->all += row.rate;
			squares += row.rate * row.rate;
			w->least = fmin(w->least, row.rate);
			w->most = fmax(w->most, row.rate);
		}
	}
	w->jain = np_jain_index(w->all, squares, w->known);
	w->least_busy = (double)NAN;
	for (uint32_t i = 0; i < f->in->flows.threads; i++) {
		double busy = thread_at(f, i).busy;

		w->threads += isfinite(busy);
		w->least_busy = fmin(w->least_busy, busy);
	}
	if (w->known < 2 || !(w->all > 0) || f->in->flows.ramped) {
		w->kind = NP_FLOWS_UNCLEAR;
		return;
	}
	w->slower = NP_SLOW * w->most;
	group(f, w);
	w->apart = w->slow.count > 0 && w->rest.count > 0 &&
		   w->slow.mean.rate <= NP_SLOW * w->rest.mean.rate;
	if (w->apart) {
		look_at_own(f, w);
		look_at_threads(f, w);
	}
	w->others = w->rest.count > 1 ? "the others" : "the other";
	/*
	 * The cause that slows them. Load of threads is proof; lack of a CPU, or an unknown reason,
	 * is weaker evidence than a cause of the flows.
	 */
	w->kind = w->has.busy || w->has.divided  ? NP_FLOWS_BY_THREAD
		  : w->mark != 0                 ? NP_FLOWS_OWN
		  : w->has.starved || w->has.few ? NP_FLOWS_BY_THREAD
		  : w->has.cpu                   ? NP_FLOWS_OWN
						 : NP_FLOWS_NONE;
	w->left_out = w->kind == NP_FLOWS_OWN && w->mark != 0 && w->rest.rate > w->slow.rate &&
		      f->in->sessions < 2;
	if (w->left_out) {
		leave_out_slow(w, f);
	}
}

/* A flow's rate in words. */
static struct np_word
rate_of(const struct np_facts_of_test *f, double rate)
{
	struct np_word w = np_count_words(rate);

	if (!f->in->transactions) {
		return np_rate_words(rate);
	}
	np_text_add(w.text, sizeof(w.text), strlen(w.text), " a second");
	return w;
}

#define SAY(text, ...) np_text_add(text, NP_EXPLAIN_TEXT, strlen(text), __VA_ARGS__)

/* What the slow flows have in common, beside the same of the others. */
static void
say_own(const struct np_flows_found *w, char *text)
{
	const struct np_explain_flow *slow = &w->slow.mean, *rest = &w->rest.mean;
	const struct {
		bool has;
		const char *before, *behind;
		struct np_word slow, rest;
	} rows[] = {
		{ w->has.loss, " sent", "of their segments again", np_share_words(slow->loss),
		  np_share_words(rest->loss) },
		{ w->has.rtt, " had round trips of", "or more", np_time_words(slow->min_rtt_us),
		  np_time_words(rest->min_rtt_us) },
		{ w->has.queue, " had round trips of", "at the end", np_time_words(slow->rtt_us),
		  np_time_words(rest->rtt_us) },
		{ w->has.held, " were limited by the receiver's window for", "of the time",
		  np_share_words(slow->held), np_share_words(rest->held) },
	};
	const char *and = "";

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].has) {
			SAY(text, "%s%s %s %s (%s %s)", and, rows[i].before, rows[i].slow.text,
			    rows[i].behind, w->others, rows[i].rest.text);
			and = " and";
		}
	}
	if (and[0] == '\0') {
		SAY(text, " were received by processor %d", (int)w->cpu);
	}
}

/* Which threads drive the slow flows, and what is wrong with them. */
static void
say_threads(const struct np_flows_found *w, char *text)
{
	const char *were = w->thread >= 0 ? "was" : "were";

	if (w->thread >= 0) {
		SAY(text, " belong to thread %d", (int)w->thread);
	} else {
		SAY(text, " belong to threads");
	}
	if (w->has.busy) {
		SAY(text, " that %s busy %s (%s %s)", were, np_share_words(w->slow.mean.busy).text,
		    w->others, np_share_words(w->rest.mean.busy).text);
	} else if (w->has.divided) {
		SAY(text, " that carried as much as others, but drove more flows");
	} else if (w->has.starved) {
		SAY(text, " that %s given %s of a processor that other work keeps busy", were,
		    np_share_words(w->slow.mean.busy).text);
	} else {
		SAY(text, "%s and to no other: the reason is not known",
		    w->thread >= 0 ? "" : " of their own");
	}
}

/* "4 Mbit/s each, the others 94 Mbit/s" */
static void
say_rates(const struct np_facts_of_test *f, const struct np_flows_found *w, char *text)
{
	SAY(text, "%s%s, %s %s", rate_of(f, w->slow.mean.rate).text,
	    w->slow.count > 1 ? " each" : "", w->others, rate_of(f, w->rest.mean.rate).text);
}

/* "4 Mbit/s to 94 Mbit/s each (Jain's index 0.71)" */
static void
say_range(const struct np_facts_of_test *f, const struct np_flows_found *w, char *text)
{
	SAY(text, "%s to %s each (Jain's index %.2f)", rate_of(f, w->least).text,
	    rate_of(f, w->most).text, w->jain);
}

/* Is the cause shared by all flows, however they divide what it allows? */
static bool
is_common(const struct np_facts_of_test *f, const struct np_flows_found *w, enum np_limit limit)
{
	double times = w->slow.mean.rtt_us / w->rest.mean.rtt_us;

	switch (limit) {
	case NP_LIMIT_LINK:
	case NP_LIMIT_FOREIGN:
	case NP_LIMIT_POLICER:
	case NP_LIMIT_SENDER_QUOTA:
	case NP_LIMIT_SENDER_STALLED:
	case NP_LIMIT_READER_QUOTA:
	case NP_LIMIT_READER_STALLED:
		return true;
	case NP_LIMIT_PATH:
		/* They wait in the same queue if their round trips are alike. */
		return !w->apart || (times <= 1.5 && times >= 1 / 1.5);
	case NP_LIMIT_SENDER_CPU:
		return f->near_leads && f->in->flows.threads == 1;
	case NP_LIMIT_RECEIVER_CPU:
		return !f->near_leads && f->in->flows.threads == 1;
	default:
		return false;
	}
}

/* Are flows' datagrams counted as sent, and were more than a few lost, or is that not known? */
static bool
sent_only(const struct np_facts_of_test *f)
{
	return f->in->datagrams && f->in->near_transmits && !f->in->transactions &&
	       !(f->lost_share < NP_LOSSY_UDP);
}

/* Say what is known of flows if nothing explains their rates. */
static void
say_unclear(const struct np_facts_of_test *f, const struct np_flows_found *w, char *text)
{
	if (f->in->flows.ramped) {
		SAY(text,
		    "%u flows began one after another: what each of them carried is not a rate",
		    (unsigned)w->count);
	} else if (w->known < 2) {
		SAY(text, "it is not known what each of %u flows got", (unsigned)w->count);
	} else if (!(w->all > 0)) {
		SAY(text, "none of %u flows got anything", (unsigned)w->known);
	} else if (sent_only(f)) {
		SAY(text, "%u flows were sent at ", (unsigned)w->known);
		say_range(f, w, text);
		SAY(text, ", and it is not known which of them lost datagrams");
	} else if (w->apart) {
		SAY(text, "%u of %u flows got ", (unsigned)w->slow.count, (unsigned)w->known);
		say_rates(f, w, text);
		SAY(text, ": no known figure differs between them");
	} else {
		SAY(text, "%u flows got ", (unsigned)w->known);
		say_range(f, w, text);
		SAY(text, ", and no known figure explains it");
	}
}

void
np_flows_tell(const struct np_flows_found *w, const struct np_facts_of_test *f,
	      struct np_explanation *out)
{
	const struct np_thread_facts *thread = f->near_leads ? &f->sender : &f->reader;
	enum np_limit busy = f->near_leads ? NP_LIMIT_SENDER_CPU : NP_LIMIT_RECEIVER_CPU;
	char *text = out->flows_sentence;

	if (w->count < 2) {
		return;
	}
	out->flows = w->kind;
	if (w->kind == NP_FLOWS_NONE) {
		bool shared = !sent_only(f) && ((!w->apart && w->jain >= NP_ALIKE) ||
						is_common(f, w, out->best.limit));

		out->flows = shared ? NP_FLOWS_SHARED : NP_FLOWS_UNCLEAR;
	}
	if (out->flows == NP_FLOWS_SHARED) {
		SAY(text, "%u flows got ", (unsigned)w->known);
		say_range(f, w, text);
		if (w->apart || w->jain < NP_ALIKE) {
			SAY(text, ", and share what limits all of them (%s)",
			    np_limit_name(out->best.limit));
		} else if (out->best.limit != NP_LIMIT_UNCLEAR) {
			SAY(text, ": the same cause (%s) limits all of them",
			    np_limit_name(out->best.limit));
		} else {
			SAY(text, ": the same cause limits all of them, and it is not known");
		}
	} else if (out->flows == NP_FLOWS_UNCLEAR) {
		say_unclear(f, w, text);
	} else {
		/* "3 of 16 flows ..., and got 4 Mbit/s each, the others 94 Mbit/s". */
		SAY(text, "%u of %u flows", (unsigned)w->slow.count, (unsigned)w->known);
		if (w->kind == NP_FLOWS_BY_THREAD) {
			say_threads(w, text);
		} else {
			say_own(w, text);
		}
		SAY(text, ", and got ");
		say_rates(f, w, text);
	}
	if (w->left_out) {
		np_explain_add(out->best.doubts, "this covers the %u flows that got more",
			       (unsigned)w->rest.count);
	}
	if (out->best.limit == busy && w->kind != NP_FLOWS_BY_THREAD && w->threads > 1 &&
	    w->least_busy < NP_BUSY && thread->cpu >= NP_BUSY) {
		np_explain_add(out->best.doubts,
			       "that is the busiest of %u threads: the least busy one was busy %s",
			       (unsigned)w->threads, np_share_words(w->least_busy).text);
	}
}
