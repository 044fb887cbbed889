#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "out/explain/rules.h"
#include "stats/confidence.h"

enum {
	SAMPLES = 1000,     /* most of a list, doc/evidence.md */
	LOOKS = 5,          /* samples: fewer are too few to conclude anything */
	TIMESTAMPS = 12,    /* bytes of the option */
	MOST_MTU = 1 << 20, /* bytes */
	MOST_CPUS = 1 << 20,
	MOST_CONNECTIONS = 1 << 20
};

/* A thread that waited LATE_AT_MOST times its run time, and slept SOME_IDLE, only woke up late. */
enum { LATE_AT_MOST = 40 };
#define SOME_IDLE 0.25

/* A thread that never sleeps has time to spare if this share of its calls finds nothing. */
#define SPARE 0.1

static double
number(const struct np_bag *b, const char *name)
{
	return np_bag_number(b, name);
}

/* By how much a counter grew. If counters were read, one that is not in the bag did not grow. */
static double
moved(const struct np_bag *b, const char *name)
{
	double v = number(b, name);

	return isnan(v) && !isnan(number(b, "moved.seconds")) ? 0 : v;
}

static double
or_else(double v, double otherwise)
{
	return isnan(v) ? otherwise : v;
}

/* A share, limited to 0..1: if it is from two clocks it may be a little outside. */
static double
clamp(double share)
{
	return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* The median of values, which it sorts; NAN: of none. */
static double
median_of(double *values, size_t count)
{
	if (count == 0) {
		return (double)NAN;
	}
	qsort(values, count, sizeof(*values), np_by_size);
	return values[count / 2];
}

/* The median of a list of samples; NAN: none were taken. */
static double
median(const struct np_bag *b, const char *name)
{
	struct np_bag_item list;
	double values[SAMPLES];
	size_t count = np_bag_list(b, name, 0, &list);

	count = count < SAMPLES ? count : SAMPLES;
	for (size_t i = 0; i < count; i++) {
		values[i] = np_bag_value(&list, i);
	}
	return median_of(values, count);
}

/* What held a sender up, as shares of samples. Half of a send buffer is the kernel's overhead. */
static void
judge_samples(struct np_facts_of_test *f)
{
	enum { CWND, UNACKED, NOTSENT, QUEUED, WINDOW, LISTS };
	static const char *const names[LISTS] = { "tcp.samples.cwnd", "tcp.samples.unacked",
						  "tcp.samples.notsent_bytes",
						  "tcp.samples.queued_out",
						  "tcp.samples.send_window" };
	double mss = number(f->tx, "tcp.mss");
	double cwnd_full = 0, app_short = 0, outq_full = 0, window_full = 0;
	struct np_bag_item s[LISTS];
	size_t count = mss > 0 ? np_find_lists(f->tx, names, LISTS, s) : 0;

	for (size_t i = 0; i < count; i++) {
		double unacked = np_bag_value(&s[UNACKED], i);
		/* Open: there is room for two more segments. */
		bool window_open = (unacked + 2) * mss <= np_bag_value(&s[WINDOW], i);
		bool cwnd_open = unacked + 2 <= 0.9 * np_bag_value(&s[CWND], i);
		bool all_sent = np_bag_value(&s[NOTSENT], i) < 2 * mss;
		bool full = np_bag_value(&s[QUEUED], i) >= 0.45 * f->send_buffer;

		cwnd_full += !cwnd_open && window_open;
		window_full += !window_open && cwnd_open;
		app_short += all_sent && !full && cwnd_open && window_open;
		outq_full += all_sent && full && cwnd_open && window_open;
	}
	f->cwnd_full = cwnd_full / (double)count; /* NAN without samples */
	f->app_short = app_short / (double)count;
	f->outq_full = outq_full / (double)count;
	f->window_full = window_full / (double)count;
}

/* How often a list of samples grew; NAN: there are too few. */
static double
count_growth(const struct np_bag *b, const char *name)
{
	struct np_bag_item list;
	size_t count = np_bag_list(b, name, 0, &list);
	double steps = 0;

	for (size_t i = 1; i < count; i++) {
		steps += np_bag_value(&list, i) > np_bag_value(&list, i - 1);
	}
	return count >= (size_t)2 * LOOKS ? steps : (double)NAN;
}

/* Outages: times in which data were in flight, a window was open, and nothing got through. */
static void
find_outages(struct np_facts_of_test *f)
{
	enum { T, BYTES, UNACKED, WINDOW, LISTS };
	static const char *const tcp[LISTS] = { "tcp.samples.t_s", "tcp.samples.bytes_acked",
						"tcp.samples.unacked", "tcp.samples.send_window" };
	static const char *const datagrams[] = { "flow.samples.t_s", "flow.samples.bytes" };
	double still = 0, current = 0, all, mss = number(f->tx, "tcp.mss");
	size_t first = 0;
	struct np_bag_item p[LISTS], sent;
	/* Of datagrams the lists T and BYTES, before UNACKED. */
	size_t count = f->in->datagrams ? np_find_lists(f->rx, datagrams, UNACKED, p)
					: np_find_lists(f->tx, tcp, LISTS, p);
	/* As a whole window may be acknowledged at once, progress may pause for two round trips. */
	double least = f->in->datagrams ? 0 : 2 * np_known(f->rtt_us) / 1e6;

	f->outage = f->outage_s = (double)NAN;
	if (count < LOOKS) {
		return;
	}
	/* A sender of datagrams may pause: then it is no outage. */
	if (f->in->datagrams &&
	    (np_bag_list(f->tx, datagrams[BYTES], 0, &sent) == 0 ||
	     !(count_growth(f->tx, datagrams[BYTES]) >= (double)sent.count - 1))) {
		return;
	}
	/* A receiver's samples begin a round trip before the first datagram can arrive. */
	while (f->in->datagrams && first + 1 < count && np_bag_value(&p[BYTES], first) <= 0) {
		first++;
	}
	f->outage_s = 0;
	for (size_t i = first + 1; i < count; i++) {
		bool stopped = np_bag_value(&p[BYTES], i) <= np_bag_value(&p[BYTES], i - 1) &&
			       (f->in->datagrams || (np_bag_value(&p[UNACKED], i) > 0 &&
						     np_bag_value(&p[WINDOW], i) >= mss));
		double step = np_bag_value(&p[T], i) - np_bag_value(&p[T], i - 1);

		current = stopped ? current + step : 0;
		/* Count all of a pause once it exceeds `least`. */
		if (current > least) {
			still += current - step > least ? step : current;
			f->outage_s = fmax(f->outage_s, current);
		}
	}
	all = np_bag_value(&p[T], count - 1) - np_bag_value(&p[T], first);
	f->outage = all > 0 ? clamp(still / all) : (double)NAN;
}

/* Mean deviation of the rates between samples from their median, as a share of it. */
static double
relative_spread(const struct np_bag *b)
{
	static const char *const tcp[] = { "tcp.samples.t_s", "tcp.samples.bytes" };
	static const char *const others[] = { "flow.samples.t_s", "flow.samples.bytes" };
	struct np_bag_item s[2];
	double rates[SAMPLES], middle, off = 0;
	size_t count = 0, values = np_find_lists(b, tcp, 2, s);

	values = values > 0 ? values : np_find_lists(b, others, 2, s);
	for (size_t i = 1; i < values && count < SAMPLES; i++) {
		double seconds = np_bag_value(&s[0], i) - np_bag_value(&s[0], i - 1);

		if (seconds > 0) {
			rates[count++] =
			    (np_bag_value(&s[1], i) - np_bag_value(&s[1], i - 1)) / seconds;
		}
	}
	if (count < 4) {
		return (double)NAN;
	}
	middle = median_of(rates, count);
	for (size_t i = 0; i < count; i++) {
		off += fabs(rates[i] - middle) / (double)count;
	}
	return middle > 0 ? off / middle : (double)NAN;
}

/* A thread of the engine `spin` always runs, but has time to spare if many calls find nothing. */
static void
look_at_engine(const struct np_bag *b, struct np_thread_facts *t)
{
	const char *name = np_bag_string(b, "engine.name");
	double empty = np_known(number(b, "engine.empty_calls"));
	double useful = np_known(number(b, "flow.sends")) + np_known(number(b, "flow.receives"));
	bool is_spin = name != NULL && strcmp(name, "spin") == 0;

	t->empty = is_spin ? empty / (empty + useful) : (double)NAN;
	t->spins = t->empty >= SPARE;
	if (t->spins) {
		t->cpu = t->idle = (double)NAN;
	}
}

/* What its shares of time, unknown ones too, say of a thread. */
static void
judge_thread(struct np_thread_facts *t)
{
	double wait = np_known(t->wait);
	bool throttled = t->throttled >= NP_THROTTLED;

	t->busy = t->cpu + wait > 1 ? 1 : t->cpu + wait;
	t->crowded = t->crowd >= NP_CROWDED && t->crowd - t->cpu >= 0.2;
	/* A shorter wait will do if crowded: ACKs wait, too. Below NP_RUNS it only wakes up late.
	 */
	t->starved = t->cpu >= NP_RUNS && t->busy >= NP_WAITS &&
		     t->wait >= (t->crowded ? NP_WAITS_HOG : NP_WAITS);
	t->waits = t->blocked >= NP_MOSTLY_BLOCKED;
	t->stopped = !throttled && t->stalled >= NP_STALLED; /* a quota stops it, too */
	t->kept_off = throttled || t->stopped;
	t->lacks_quota = throttled && wait <= t->throttled + NP_WAITS_HOG && t->cpu < NP_BUSY;
}

/* How the thread spent its time, as shares of it. NAN: unknown. */
static void
look_at_thread(const struct np_bag *b, struct np_thread_facts *t)
{
	double seconds =
	    number(b, "thread.seconds") > 0 ? number(b, "thread.seconds") : (double)NAN;
	double on = number(b, "thread.cpu"), asleep;
	double looks = number(b, "thread.looks");
	double blocked = np_known(number(b, "thread.seen_sending")) +
			 np_known(number(b, "thread.seen_receiving")) +
			 np_known(number(b, "thread.seen_waiting"));
	double pausing = np_known(number(b, "thread.seen_pausing")), found = blocked + pausing;
	char name[64];

	t->cpu = clamp(number(b, "thread.cpu_share"));
	t->wait = clamp(number(b, "thread.run_delay_s") / seconds);
	/* In a short test the two clocks may differ a little. */
	t->wait = t->wait > 1 - t->cpu ? 1 - t->cpu : t->wait;
	t->late = t->wait;
	/* Was the process throttled by a quota, or stopped? */
	asleep = 1 - np_known(t->cpu) - np_known(t->wait);
	t->quota = number(b, "cgroup.cpu.quota");
	t->throttled = clamp(number(b, "cgroup.cpu.throttled_s") / seconds);
	/* The time is a sum over processors; while the thread ran it was not throttled. */
	t->throttled = t->throttled > 1 - t->cpu ? 1 - t->cpu : t->throttled;
	t->often = number(b, "cgroup.cpu.throttled_periods") / number(b, "cgroup.cpu.periods");
	t->stalled = number(b, "sampler.stopped_s") / seconds;
	if (looks >= LOOKS) {
		t->stalled = fmax(t->stalled, number(b, "thread.seen_stopped") / looks);
	}
	/* Nor was it stopped while it ran, or was ready to. */
	t->stalled = clamp(t->stalled > asleep ? asleep : t->stalled);
	t->longest_s = number(b, "sampler.gap_max_s");
	if (t->wait > LATE_AT_MOST * t->cpu && 1 - t->cpu - t->wait >= SOME_IDLE &&
	    !(t->throttled > 0)) {
		t->wait = 0;
	}
	t->idle = clamp(1 - t->cpu - np_known(t->wait));
	look_at_engine(b, t);
	/* Split the time asleep by the states in which samples found the thread. */
	t->blocked = t->pausing = (double)NAN;
	if (looks >= LOOKS && found > 0) {
		/* At most the share of samples: part of the idle time may be due to a quota. */
		t->blocked = fmin(clamp(t->idle) * blocked / found, blocked / looks);
		t->pausing = fmin(clamp(t->idle) * pausing / found, pausing / looks);
	} else if (looks >= LOOKS) {
		t->blocked = t->pausing = 0; /* it was never found asleep */
	}
	t->on = on >= 0 && on < MOST_CPUS ? (int)on : -1;
	snprintf(name, sizeof(name), "cpu.%d.idle", t->on);
	t->crowd = clamp(1 - number(b, name));
	judge_thread(t);
}

/* The transmitter's counter, a mean of the connections in us, as a share (0 to 1) of the test. */
static double
share_of_time(const struct np_facts_of_test *f, const char *name)
{
	return f->seconds > 0 ? clamp(number(f->tx, name) / 1e6 / f->seconds) : (double)NAN;
}

/* What the sender's TCP tells: shares of time, loss, round trips, windows. */
static void
look_at_tcp(struct np_facts_of_test *f)
{
	double again = number(f->tx, "tcp.retransmitted_segments");
	double in_vain = np_known(number(f->tx, "tcp.dsack_dups"));
	const char *cong = np_bag_string(f->tx, "tcp.congestion");
	struct np_bag_item windows;
	size_t samples = np_bag_list(f->tx, "tcp.samples.send_window", 0, &windows);

	f->busy = share_of_time(f, "tcp.busy_us");
	f->rwnd = share_of_time(f, "tcp.rwnd_limited_us");
	f->sndbuf = share_of_time(f, "tcp.sndbuf_limited_us");
	f->segments = number(f->tx, "tcp.data_segments_out");
	/* With more DSACKs than retransmissions the network duplicates: all these may be needed. */
	f->doubled = in_vain > again ? in_vain - again : 0;
	f->retransmits = in_vain <= again ? again - in_vain : again;
	f->again = again;
	f->marked = f->segments > 0 ? number(f->tx, "tcp.delivered_ce") / f->segments : (double)NAN;
	f->in_vain = again > 0 ? in_vain / again : (double)NAN;
	f->loss_times = count_growth(f->tx, "tcp.samples.retransmitted_segments");
	f->by_loss = cong == NULL || strncmp(cong, "bbr", 3) != 0;
	f->loss = f->segments > 0 ? f->retransmits / f->segments : (double)NAN;
	f->rtt_us = or_else(median(f->tx, "tcp.samples.rtt_us"), number(f->tx, "tcp.rtt_us"));
	f->min_rtt_us = number(f->tx, "tcp.min_rtt_us");
	if (f->in->transactions) {
		f->min_rtt_us =
		    or_else(f->min_rtt_us, f->in->least_us > 0 ? f->in->least_us : (double)NAN);
	}
	f->queue_us = f->rtt_us - f->min_rtt_us;
	f->cwnd = or_else(median(f->tx, "tcp.samples.cwnd"), number(f->tx, "tcp.cwnd"));
	f->window =
	    or_else(median(f->tx, "tcp.samples.send_window"), number(f->tx, "tcp.send_window"));
	f->widest = f->window;
	for (size_t i = 0; i < samples; i++) {
		f->widest = fmax(f->widest, np_bag_value(&windows, i));
	}
	f->paces_bps = or_else(median(f->tx, "tcp.samples.pacing_rate_bps"),
			       number(f->tx, "tcp.pacing_rate_bps"));
	f->outq = median(f->tx, "tcp.samples.queued_out");
	f->send_buffer = number(f->tx, "flow.sndbuf") * f->connections;
	judge_samples(f);
	find_outages(f);
}

/* Datagrams that full receive buffers dropped. UDP-Lite has counters of its own. */
static double
buffer_drops(const struct np_facts_of_test *f)
{
	const char *protocol = np_bag_string(f->rx, "flow.protocol");
	bool lite = protocol != NULL && strcmp(protocol, "UDPLite") == 0;

	switch (f->in->family) {
	case NP_FRAMES:
		return number(f->rx, "flow.socket_drops");
	case 6:
		return moved(f->rx, lite ? "moved.snmp6.UdpLite6RcvbufErrors"
					 : "moved.snmp6.Udp6RcvbufErrors");
	default:
		return moved(f->rx, lite ? "moved.snmp.UdpLite.RcvbufErrors"
					 : "moved.snmp.Udp.RcvbufErrors");
	}
}

/* How many datagrams were lost, and where; NAN: not known. How full the send buffer was. */
static void
look_at_datagrams(struct np_facts_of_test *f)
{
	double bytes_sent = number(f->tx, "flow.bytes_sent");
	double bytes_received = number(f->rx, "flow.bytes_received");
	double received = number(f->rx, "flow.receives"), full = 0;
	/* Datagrams per receive: the kernel counts a block of joined ones as one drop. */
	double joined = number(f->rx, "engine.joined_receives");
	double each =
	    number(f->rx, "engine.messages_received") / number(f->rx, "engine.receive_calls");
	struct np_bag_item list;
	size_t samples = np_bag_list(f->tx, "flow.samples.queued_out", 0, &list);

	f->sent = or_else(number(f->rx, "udp.sent"), number(f->tx, "flow.sends"));
	f->lost = or_else(number(f->rx, "udp.lost"), f->sent - received);
	f->lost_share = f->sent > 0 ? clamp(f->lost / f->sent) : (double)NAN;
	if (isnan(f->lost_share) && bytes_sent > 0) {
		f->lost_share = clamp(1 - bytes_received / bytes_sent);
	}
	if (isnan(f->lost_share) && f->in->sent_bps > 0) {
		f->lost_share = clamp(1 - f->in->throughput_bps / f->in->sent_bps);
	}
	f->unassembled = f->in->family == 6 ? moved(f->rx, "moved.snmp6.Ip6ReasmFails")
					    : moved(f->rx, "moved.snmp.Ip.ReasmFails");
	f->buffer_drops = buffer_drops(f);
	if (joined > 0 && f->buffer_drops * each > f->buffer_drops) {
		f->buffer_drops = fmax(f->buffer_drops, fmin(f->buffer_drops * each, f->lost));
	}
	/* How often the sender had a full buffer, in which the kernel's overhead counts, too. */
	for (size_t i = 0; i < samples; i++) {
		full += np_bag_value(&list, i) >= 0.3 * f->send_buffer;
	}
	if (samples > 0 && f->send_buffer > 0) {
		f->outq_full = full / (double)samples;
		f->app_short = 1 - f->outq_full;
	}
}

/* The processor's number in a name such as "cpu.12.softirq"; -1: it has another form. */
static int
softirq_cpu(const char *name)
{
	char *end;
	long cpu;

	if (strncmp(name, "cpu.", 4) != 0 || !isdigit((unsigned char)name[4])) {
		return -1;
	}
	cpu = strtol(name + 4, &end, 10);
	return strcmp(end, ".softirq") == 0 && cpu <= INT_MAX ? (int)cpu : -1;
}

/* The processor of the receiver with the most softirq time. Numbers of processors may have gaps. */
static void
look_at_softirq(struct np_facts_of_test *f)
{
	struct np_bag_item it;

	f->softirq = f->softirq_crowd = (double)NAN;
	f->backlog_drops = number(f->rx, "cpu.count") > 0 ? 0 : (double)NAN;
	f->softirq_cpu = -1;
	for (size_t i = 0; np_bag_at(f->rx, i, &it); i++) {
		int cpu = softirq_cpu(it.name);
		double share = cpu >= 0 ? clamp(number(f->rx, it.name)) : (double)NAN;

		if (share >= 0 && !(share <= f->softirq)) {
			char idle[64];

			f->softirq = share;
			f->softirq_cpu = cpu;
			snprintf(idle, sizeof(idle), "cpu.%d.idle", cpu);
			f->softirq_crowd = clamp(1 - number(f->rx, idle));
		}
		if (fnmatch("moved.softnet.[0-9]*.dropped", it.name, 0) == 0) {
			f->backlog_drops =
			    np_known(f->backlog_drops) + np_known(moved(f->rx, it.name));
		}
	}
}

/* Did the test's packets go over this end's loopback device? */
static bool
over_loopback(const struct np_bag *b)
{
	const char *device = np_bag_string(b, "flow.device");

	return device != NULL && strcmp(device, "lo") == 0;
}

/* Do both ends run on one machine? By its boot id, else by its name. */
static bool
same_machine(const struct np_explain_input *in)
{
	const char *near = np_bag_string(in->near, "host.name");
	const char *far = np_bag_string(in->far, "host.name");
	const char *near_boot = np_bag_string(in->near, "clock.boot");
	const char *far_boot = np_bag_string(in->far, "clock.boot");

	if (over_loopback(in->near)) {
		return true;
	}
	if (near_boot != NULL && far_boot != NULL) {
		/* Leave out the time namespace after "-": a machine may have several. */
		size_t len = strcspn(near_boot, "-");

		return len == strcspn(far_boot, "-") && strncmp(near_boot, far_boot, len) == 0;
	}
	return near != NULL && far != NULL && strcmp(near, far) == 0;
}

/* The rate of an end's interface; NAN: not known, as virtual ones report what means nothing. */
static double
interface_bps(const struct np_bag *b)
{
	static const char *const drivers[] = { "veth", "tun", "bridge", "dummy", "openvswitch" };
	const char *driver = np_bag_string(b, "host.nic.driver");
	bool is_virtual = (driver != NULL && NP_TEXT_ONE_OF(driver, drivers)) || over_loopback(b);

	return is_virtual ? (double)NAN : number(b, "host.nic.speed_mbps") * 1e6;
}

/* Keep the lowest rate, and where it is known from. */
static void
take_rate(struct np_facts_of_test *f, double bps, const char *rate_source)
{
	if (bps > 0 && (f->rate_bps <= 0 || bps < f->rate_bps)) {
		f->rate_bps = bps;
		f->rate_source = rate_source;
	}
}

/* A value of the transmitter, else of the receiver. */
static double
of_either(const struct np_facts_of_test *f, const char *name)
{
	return or_else(number(f->tx, name), number(f->rx, name));
}

/* The lowest of the known rates; one that the user gives counts alone. */
static void
look_at_rate(struct np_facts_of_test *f)
{
	double shaper = number(f->tx, "host.nic.qdisc.rate_bps");

	f->rate_bps = 0;
	f->rate_source = "";
	f->shaped = shaper > 0;
	if (f->in->link_rate_bps > 0) {
		take_rate(f, f->in->link_rate_bps, "--link-rate");
		return;
	}
	take_rate(f, interface_bps(f->tx), "the transmitter's interface");
	take_rate(f, interface_bps(f->rx), "the receiver's interface");
	if (f->in->transactions) {
		take_rate(f, number(f->rx, "host.nic.qdisc.rate_bps"),
			  np_bag_string(f->rx, "host.nic.qdisc"));
	}
	take_rate(f, shaper, np_bag_string(f->tx, "host.nic.qdisc"));
	/* Shapers and policers that are no root qdisc. */
	take_rate(f, number(f->tx, "tc.out.rate_bps"), np_bag_string(f->tx, "tc.out.kind"));
	take_rate(f, number(f->rx, "tc.in.rate_bps"), np_bag_string(f->rx, "tc.in.kind"));
	f->policed = np_known(number(f->rx, "tc.in.drops"));
	f->own_drops = np_known(number(f->tx, "tc.out.drops"));
	take_rate(f, of_either(f, "host.nic.link_rate_bps"), "netlab");
	f->rate_source = f->rate_source != NULL ? f->rate_source : "a queueing discipline";
	f->bucket = strcmp(f->rate_source, "tbf") == 0 || strcmp(f->rate_source, "htb") == 0;
}

/* Bytes of other traffic at an end's interface; 0 if that is faster than the link, and has room. */
static double
foreign_at(const struct np_facts_of_test *f, const struct np_bag *b, bool out)
{
	/* The interface's rate, or a shaper's or policer's on it. */
	double own_bps = interface_bps(b);

	own_bps = fmin(own_bps, number(b, out ? "tc.out.rate_bps" : "tc.in.rate_bps"));
	own_bps = out ? fmin(own_bps, number(b, "host.nic.qdisc.rate_bps")) : own_bps;
	if (f->in->link_rate_bps <= 0 && own_bps > NP_WITHIN * f->rate_bps) {
		return 0;
	}
	return np_known(number(b, out ? "foreign.out_bytes" : "foreign.in_bytes"));
}

/* The MTU, headers and rate of the path, and how much foreign traffic it carried. */
static void
look_at_link(struct np_facts_of_test *f)
{
	double v = of_either(f, "tcp.path_mtu"), stamps = of_either(f, "tcp.timestamps");
	double mss = number(f->tx, "tcp.mss"), tls_send = number(f->tx, "flow.send_size");
	double bytes;
	bool drops;

	v = v > 0 ? v : of_either(f, "host.path_mtu");
	v = v > 0 ? v : of_either(f, "host.nic.mtu");
	f->encap =
	    (struct np_encap){ .mtu = v > 0 && v <= MOST_MTU ? (uint32_t)v : 0,
			       .family = f->in->family,
			       .timestamps = !(stamps <= 0),
			       .options = of_either(f, "mptcp.fallback") > 0 ? 0 : f->in->options,
			       .framing = NP_FRAMING_ETHERNET,
			       .message_header = f->in->packet_header };
	/* Not if the far end sent an impossible value. */
	f->mtu = np_ceiling_possible(&f->encap) ? f->encap.mtu : (double)NAN;
	f->held_back = moved(f->tx, "moved.qdisc.overlimits") / f->seconds;
	look_at_rate(f);
	f->subflows = or_else(of_either(f, "mptcp.subflows"), 1);
	if (f->subflows > 1 && f->in->link_rate_bps <= 0) {
		f->rate_bps = 0; /* each may use a link of its own */
	}
	/* The ends agreed on clearly smaller segments. The kernel's MSS is already less theirs. */
	if (mss > 0 && f->mtu >= mss && mss + TIMESTAMPS < np_ceiling_segment(&f->encap)) {
		f->encap.mss = (uint32_t)mss + (f->encap.timestamps ? TIMESTAMPS : 0);
	}
	if (np_bag_string(f->tx, "tls.cipher") != NULL && tls_send >= 1 && tls_send <= UINT32_MAX) {
		f->encap.tls_send = (uint32_t)tls_send;
	}
	/* Other traffic in the direction of the data; of transactions in both directions. */
	drops = number(f->rx, "tc.in.drops") > 0; /* not received, they would look like others' */
	bytes = fmax(foreign_at(f, f->tx, true), drops ? 0 : foreign_at(f, f->rx, false));
	if (f->in->transactions) {
		bytes = fmax(bytes, fmax(foreign_at(f, f->tx, false), foreign_at(f, f->rx, true)));
	}
	f->foreign = f->rate_bps > 0 && f->seconds > 0 ? clamp(bytes * 8 / f->seconds / f->rate_bps)
						       : (double)NAN;
}

/* Operations a second that --rate asks of an end, or that -b and -w allow to all its threads. */
static double
pace_per_s(const struct np_bag *b)
{
	double us = number(b, "flow.interval_us"), rate = number(b, "flow.asked_per_s");

	if (rate > 0) {
		return rate;
	}
	return us > 0 ? or_else(number(b, "flow.burst"), 1) * 1e6 / us *
			    or_else(number(b, "work.threads"), 1)
		      : (double)NAN;
}

/* Transactions: the rate of each direction, and what lost packets and timers cost. */
static void
look_at_turns(struct np_facts_of_test *f)
{
	double all = f->in->link_rate_bps, lab = of_either(f, "host.nic.link_rate_bps");
	/* Each end's shaper, else the link that netlab made. */
	double near = or_else(number(f->tx, "host.nic.qdisc.rate_bps"), lab);
	double far = or_else(number(f->rx, "host.nic.qdisc.rate_bps"), lab);

	f->open_loop = number(f->tx, "flow.asked_per_s") > 0;
	if (!f->in->transactions) {
		return;
	}
	if (all > 0) {
		f->rate_out_bps = f->rate_back_bps = all;
	} else if (f->subflows <= 1) { /* else each may use a link of its own */
		f->rate_out_bps = or_else(near, np_known(number(f->tx, "tc.out.rate_bps")));
		f->rate_back_bps = or_else(far, np_known(number(f->rx, "tc.out.rate_bps")));
	}
	f->timeouts = moved(f->tx, "moved.netstat.TcpExt.TCPTimeouts") +
		      np_known(moved(f->rx, "moved.netstat.TcpExt.TCPTimeouts"));
	f->syn_timeouts = np_known(moved(f->tx, "moved.netstat.TcpExt.TCPSynRetrans"));
	f->far_rtt_us = or_else(median(f->rx, "tcp.samples.rtt_us"), number(f->rx, "tcp.rtt_us"));
	f->pace_per_s = pace_per_s(f->tx);
	f->sent_again = number(f->tx, "tcp.retransmitted_segments") +
			np_known(number(f->rx, "tcp.retransmitted_segments"));
	f->tail = 1 - f->in->median_us / f->in->mean_us;
	f->turn_us = f->open_loop || !(f->in->per_second > 0)
			 ? (double)NAN
			 : 1e6 * f->in->in_flight / f->in->per_second;
}

/* The delay of each direction, if both ends have samples and the error is small enough. */
static void
look_at_delay(struct np_facts_of_test *f)
{
	struct np_delay *d = &f->delay, responses;

	np_delay_of(f->tx, f->rx, d);
	f->far_us = (double)NAN;
	if (f->in->datagrams || !(d->error_us <= 0.25 * (d->there_us + d->back_us))) {
		d->there_us = d->back_us = d->error_us = (double)NAN;
	} else if (f->in->transactions) {
		np_delay_of(f->rx, f->tx, &responses);
		/* The response carries the acknowledgement, after the far end's time. */
		f->far_us = fmax(d->back_us - responses.there_us, 0);
		d->back_us = responses.there_us;
	}
}

void
np_facts_of_test(const struct np_explain_input *in, struct np_facts_of_test *f)
{
	const char *queued = "tcp.samples.queued_in";
	struct np_bag_item list;
	double n, asked_bps, waits = 0, left = 0;
	size_t samples;

	memset(f, 0, sizeof(*f));
	f->in = in;
	f->near_leads = in->near_transmits || in->transactions;
	f->tx = f->near_leads ? in->near : in->far;
	f->rx = f->near_leads ? in->far : in->near;
	f->seconds = number(f->tx, "flow.seconds");
	f->seconds = f->seconds > 0 ? f->seconds : in->seconds;
	/* TCP's figures are sums over connections, and samples of queues those over all flows. */
	n = or_else(of_either(f, "tcp.connections"), in->flows.count / fmax(in->sessions, 1));
	f->connections = n >= 1 && n <= MOST_CONNECTIONS ? n : 1;
	f->same_machine = same_machine(in);
	f->measured = in->transactions ? in->per_second : in->throughput_bps;
	f->given_bps = in->datagrams ? in->sent_bps : in->throughput_bps;
	f->sender.does = in->transactions ? "requesting" : "sending";
	f->reader.does = in->transactions ? "responding" : "reading";
	look_at_thread(f->tx, &f->sender);
	look_at_thread(f->rx, &f->reader);
	look_at_tcp(f);
	/* How much waited in the receiver's buffer to be read. Not only TCP has such samples. */
	queued = np_bag_list(f->rx, queued, 0, &list) > 0 ? queued : "flow.samples.queued_in";
	f->receive_buffer = number(f->rx, "flow.rcvbuf") * f->connections;
	f->inq = median(f->rx, queued);
	f->near_inq = median(f->tx, queued);
	samples = f->receive_buffer > 0 ? np_bag_list(f->rx, queued, 0, &list) : 0;
	for (size_t i = 0; i < samples; i++) {
		/* The buffer holds payload and overhead: a quarter of it as payload is a lot. */
		waits += np_bag_value(&list, i) >= 0.25 * f->receive_buffer;
		left += np_bag_value(&list, i) > 0;
	}
	f->inq_waits = waits / (double)samples; /* NAN without samples */
	f->inq_left = left / (double)samples;
	f->discards = number(f->rx, "engine.bytes_truncated") > 0;
	if (in->datagrams) {
		look_at_datagrams(f);
	}
	look_at_softirq(f);
	look_at_link(f);
	asked_bps = number(f->tx, "flow.pacing_asked_bps");
	f->pacing_bps = asked_bps > 0 ? asked_bps * f->connections : (double)NAN;
	f->writes_bps = pace_per_s(f->tx) * number(f->tx, "flow.send_size") * 8;
	f->reads_bps = pace_per_s(f->rx) * number(f->rx, "flow.receive_size") * 8;
	look_at_turns(f);
	look_at_delay(f);
	f->spread = relative_spread(f->rx);
	if (!in->datagrams) {
		f->spread = or_else(f->spread, relative_spread(f->tx));
	}
}
