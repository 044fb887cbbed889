/*
 * The rules that say what limited a test: each with figures that fire it, with such as nearly do,
 * and with one end alone.
 */
#include "out/explain.h"

#include "out/explain/rules.h"
#include "stats/ceiling.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"

/* Lists of samples have ten. */
static struct np_bag *
bag(const char *words)
{
	return put_lists(np_bag_new(), 10, "%s", words);
}

/* Ten seconds of TCP over a quiet path of 1 ms: both ends half idle, windows half open. */
#define TX                                                                                         \
	" flow.seconds=10 thread.seconds=10 thread.cpu_share=0.4 thread.run_delay_s=0.01"          \
	" thread.cpu=0 cpu.count=2 cpu.0.idle=0.5 cpu.1.idle=0.5 cpu.0.softirq=0.1"                \
	" tcp.mss=1448 tcp.path_mtu=1500 tcp.timestamps=1 tcp.busy_us=1e7 tcp.rwnd_limited_us=0"   \
	" tcp.sndbuf_limited_us=0 tcp.data_segments_out=100000 tcp.segments_out=100010"            \
	" tcp.retransmitted_segments=0 tcp.retransmitted_bytes=0 tcp.dsack_dups=0"                 \
	" tcp.min_rtt_us=1000 flow.sndbuf=1000000 tcp.samples.rtt_us=[1050]"                       \
	" tcp.samples.cwnd=[100] tcp.samples.unacked=[50] tcp.samples.notsent_bytes=[100000]"      \
	" tcp.samples.queued_out=[172400] tcp.samples.send_window=[300000]"                        \
	" moved.seconds=10 host.name='a'"
#define RX                                                                                         \
	" flow.seconds=10 thread.seconds=10 thread.cpu_share=0.4 thread.run_delay_s=0.01"          \
	" thread.cpu=1 cpu.count=2 cpu.0.idle=0.5 cpu.1.idle=0.5 cpu.0.softirq=0.1"                \
	" cpu.1.softirq=0.2 flow.rcvbuf=400000 tcp.samples.queued_in=[1000] moved.seconds=10"      \
	" host.name='b'"
#define BUSY " thread.cpu_share=0.98"
#define ASLEEP " thread.cpu_share=0.03"

#define SPINS                                                                                      \
	" engine.name='spin' thread.cpu_share=0.99 flow.sends=1000 flow.receives=1000"             \
	" engine.empty_calls=8000"
#define SPINS_IN_VAIN_NEVER " engine.name='spin' thread.cpu_share=0.99 flow.sends=1000"

static struct np_explain_input
tcp_input(void)
{
	return (struct np_explain_input){ .near_transmits = true,
					  .family = 4,
					  .seconds = 10,
					  .sent_bps = 115.84e6,
					  .throughput_bps = 115.84e6 };
}

static struct np_explanation
explain(struct np_explain_input in, const char *near, const char *far)
{
	struct np_bag *n = near != NULL ? bag(near) : NULL, *f = far != NULL ? bag(far) : NULL;
	struct np_explanation e;

	in.near = n;
	in.median_us = np_bag_number(n, "flow.latency_p50_us");
	in.mean_us = np_bag_number(n, "flow.latency_mean_us");
	in.far = f;
	np_explain(&in, &e);
	np_bag_free(n);
	np_bag_free(f);
	return e;
}

/* want: "LIMIT" or "LIMIT: part of the sentence". */
static void
assert_limit(const struct np_explanation *e, const char *what, const char *want)
{
	size_t name = strcspn(want, ":");

	fail_if(strlen(np_limit_name(e->best.limit)) != name ||
		    strncmp(want, np_limit_name(e->best.limit), name) != 0,
		"%s: %s, not %s: %s", what, np_limit_name(e->best.limit), want, e->best.sentence);
	if (want[name] == ':') {
		assert_has(e->best.sentence, want + name + 2);
	}
}

static struct np_explanation
explained(struct np_explain_input in, const char *near, const char *far, const char *want)
{
	struct np_explanation e = explain(in, near, far);

	assert_limit(&e, near, want);
	return e;
}

struct example {
	const char *what, *near, *far, *want;
};

static void
check(struct np_explain_input in, const struct example *x, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct np_explanation e = explain(in, x[i].near, x[i].far);

		assert_limit(&e, x[i].what, x[i].want);
		assert_null(strstr(e.best.sentence, "nan"));
		assert_null(strstr(e.best.doubts, "nan"));
		assert_null(strstr(e.ceiling_text, "nan"));
	}
}

#define CALLS                                                                                      \
	" flow.sends=1e6 flow.bytes_sent=16384e6 work.user_s=0.8 work.system_s=9"                  \
	" moved.snmp.Ip.OutRequests=1e6 host.nic.gso_max_size=65536"

TEST(small_calls_have_their_price_where_a_processor_limits)
{
	struct np_explain_input in = tcp_input();

	assert_string_equal(explain(in, TX BUSY CALLS, RX).calls,
			    "100000 a second of 16384 bytes took 9.8 us of the sender's CPU each; "
			    "they left in packets of 16384 bytes, and the kernel makes up to 65536 "
			    "of larger calls (GSO); -- -m 128K makes 8 times fewer of them");
	assert_string_equal(explain(in, TX CALLS, RX).calls, ""); /* no processor limits */
	assert_string_equal(explain(in, TX BUSY CALLS " flow.sends=1e5", RX).calls, "");
	assert_null(
	    strstr(explain(in, TX BUSY CALLS " host.nic.gso_max_size=1500", RX).calls, "GSO"));
	in.near_transmits = false;
	assert_has(explain(in, RX, TX BUSY CALLS).calls, "-- -m ,128K makes 8 times");
	in.datagrams = true;
	assert_string_equal(explain(in, RX, TX BUSY CALLS).calls, "");
}

TEST(limits_of_tcp_streams)
{
	static const struct example examples[] = {
		{ "nothing stands out", TX, RX, "unclear: no figure stands out" },
		{ "a sender that sleeps", TX ASLEEP " tcp.busy_us=1e6", RX,
		  "sending-application: it slept 97 % of the time, and nothing waited to be sent "
		  "for 90 % of it" },
		{ "the same on a long path, by the samples",
		  TX ASLEEP " tcp.samples.notsent_bytes=[0]", RX, "sending-application" },
		{ "asleep, with data waiting", TX ASLEEP, RX, "unclear" },
		{ "by the samples alone, of an old kernel",
		  "flow.seconds=10 thread.seconds=10 thread.cpu_share=0.03 tcp.mss=1448"
		  " flow.sndbuf=1000000 tcp.samples.cwnd=[100] tcp.samples.unacked=[0]"
		  " tcp.samples.notsent_bytes=[0] tcp.samples.queued_out=[0]"
		  " tcp.samples.send_window=[300000]",
		  RX, "sending-application: nothing waited to be sent for 100 % of it" },
		{ "asleep, and nothing tells what was under way",
		  "thread.seconds=10 thread.cpu_share=0.03", RX, "unclear" },
		{ "not asleep, with gaps", TX " tcp.busy_us=7e6", RX, "unclear" },
		{ "sender's CPU", TX BUSY, RX, "sender-cpu: busy 98 % of one CPU" },
		{ "nearly its CPU", TX " thread.cpu_share=0.8", RX, "unclear" },
		{ "a share of its CPU", TX " thread.cpu_share=0.5 thread.run_delay_s=4.9", RX,
		  "sender-cpu: ran for 50 % of the time and waited for a CPU for another 49 %" },
		{ "beside a hog", TX " thread.cpu_share=0.25 thread.run_delay_s=3 cpu.0.idle=0.01",
		  RX, "sender-cpu: other threads kept CPU 0 busy" },
		{ "a sleeper beside a hog",
		  TX " thread.cpu_share=0.05 thread.run_delay_s=3 cpu.0.idle=0.01 tcp.busy_us=1e6",
		  RX, "sending-application" },
		{ "a sleeper that is woken late",
		  TX " thread.cpu_share=0.007 thread.run_delay_s=6.5 cpu.0.idle=0 tcp.busy_us=1e6",
		  RX, "sending-application" },
		{ "beside a hog, and the reader's processor busy, too",
		  TX
		  " thread.cpu_share=0.414 thread.run_delay_s=1.1 cpu.0.idle=0 tcp.busy_us=8.89e6"
		  " tcp.min_rtt_us=1 tcp.samples.rtt_us=[519] tcp.samples.cwnd=[244]"
		  " tcp.samples.unacked=[240] tcp.samples.send_window=[3000000]",
		  RX " thread.cpu_share=0.248 thread.run_delay_s=6.06 cpu.1.idle=0.03"
		     " tcp.samples.queued_in=[377928] flow.rcvbuf=6170339",
		  "receiver-cpu: waited for a CPU for another 61 %, as other threads kept CPU 1 "
		  "busy" },
		{ "beside a hog",
		  TX
		  " thread.cpu_share=0.414 thread.run_delay_s=1.1 cpu.0.idle=0 tcp.busy_us=8.89e6",
		  RX " thread.cpu_share=0.248 thread.run_delay_s=0.1",
		  "sender-cpu: waited for a CPU for another 11 %, as other threads kept CPU 0 "
		  "busy" },
		{ "beside a hog, on a machine that is all but stuck",
		  TX
		  " thread.cpu_share=0.036 thread.run_delay_s=2.88 cpu.0.idle=0 tcp.busy_us=6.92e6"
		  " tcp.min_rtt_us=1 tcp.samples.rtt_us=[17929] tcp.samples.cwnd=[198]"
		  " tcp.samples.unacked=[198]",
		  RX " thread.cpu_share=0.023 thread.run_delay_s=6.87 cpu.1.idle=0"
		     " tcp.samples.queued_in=[0]",
		  "sender-cpu" },
		{ "all processors are wanted, none quite taken",
		  TX " thread.cpu_share=0.604 thread.run_delay_s=2.11 cpu.0.idle=0.138", RX,
		  "sender-cpu: ran for 60 % of the time" },
		{ "a processor that has time left",
		  TX " thread.cpu_share=0.604 thread.run_delay_s=2.11 cpu.0.idle=0.2", RX,
		  "unclear" },
		{ "hardly ever waits",
		  TX " thread.cpu_share=0.604 thread.run_delay_s=0.9 cpu.0.idle=0", RX, "unclear" },
		{ "another processor is busy",
		  TX " thread.cpu_share=0.25 thread.run_delay_s=2 cpu.1.idle=0", RX, "unclear" },
		{ "ready to run, and not let, by softirq or whom",
		  TX " thread.cpu_share=0.267 thread.run_delay_s=4.29 cpu.0.idle=0.344", RX,
		  "sender-cpu: waited for a CPU for another 43 %" },
		{ "send buffer, by the kernel", TX ASLEEP " tcp.sndbuf_limited_us=8e6", RX,
		  "send-buffer: send buffer for 80 % of the time" },
		{ "send buffer, of a paced sender", TX ASLEEP " tcp.sndbuf_limited_us=3.96e6", RX,
		  "send-buffer: send buffer for 40 % of the time" },
		{ "send buffer, of one that also waits for a CPU",
		  TX " thread.cpu_share=0.22 thread.run_delay_s=3.2 tcp.sndbuf_limited_us=4e6", RX,
		  "send-buffer: send buffer for 40 % of the time" },
		{ "send buffer, now and then", TX ASLEEP " tcp.sndbuf_limited_us=2.6e6", RX,
		  "unclear" },
		{ "send buffer, by the samples",
		  TX ASLEEP " flow.sndbuf=32768 tcp.samples.unacked=[15]"
			    " tcp.samples.queued_out=[21720] tcp.samples.notsent_bytes=[0]",
		  RX,
		  "send-buffer: all of its 32768 bytes was in use, with 21720 bytes in flight" },
		{ "a full send buffer that the window holds up",
		  TX ASLEEP " flow.sndbuf=32768 tcp.samples.unacked=[8]"
			    " tcp.samples.queued_out=[21720] tcp.samples.notsent_bytes=[10136]"
			    " tcp.samples.send_window=[11584] tcp.rwnd_limited_us=9e6",
		  RX " flow.rcvbuf=23168", "receive-buffer" },
		{ "loss", TX " tcp.retransmitted_segments=1000", RX,
		  "loss: 1000 of 100000 segments (1.0 %) had to be sent again" },
		{ "loss on a link that takes all of the sender's CPU",
		  TX " thread.cpu_share=0.988 tcp.busy_us=9.81e6 tcp.data_segments_out=275040"
		     " tcp.retransmitted_segments=2522 tcp.min_rtt_us=1 tcp.samples.rtt_us=[42]"
		     " tcp.samples.cwnd=[14] tcp.samples.unacked=[8]",
		  RX " thread.cpu_share=0.478 tcp.samples.queued_in=[9144]",
		  "loss: congestion window (14 segments), which loss keeps small: 2522 of 275040 "
		  "segments (0.92 %)" },
		{ "less of it there", TX BUSY " tcp.retransmitted_segments=400", RX, "sender-cpu" },
		{ "sent again in vain", TX " tcp.retransmitted_segments=1000 tcp.dsack_dups=980",
		  RX, "unclear" },
		{ "hardly any loss", TX " tcp.retransmitted_segments=90", RX, "unclear" },
		{ "loss, and a window too small for a queue",
		  TX ASLEEP
		  " tcp.retransmitted_segments=1187 tcp.min_rtt_us=1"
		  " tcp.samples.rtt_us=[309] tcp.samples.cwnd=[1] tcp.samples.unacked=[1]",
		  RX, "loss: congestion window (1 segment)" },
		{ "a queue on the way",
		  TX ASLEEP " tcp.samples.rtt_us=[21000] tcp.samples.unacked=[100]", RX,
		  "path-rate: 20 ms of a round trip of 21 ms" },
		{ "a full queue drops, too",
		  TX ASLEEP " tcp.samples.rtt_us=[21000] tcp.samples.unacked=[100]"
			    " tcp.retransmitted_segments=200",
		  RX, "path-rate" },
		{ "loss, and round trips that a busy machine makes long",
		  TX
		  " thread.cpu_share=0.268 thread.run_delay_s=1.55 cpu.0.idle=0 tcp.busy_us=8.55e6"
		  " tcp.retransmitted_segments=1013 tcp.min_rtt_us=1 tcp.samples.rtt_us=[420]"
		  " tcp.samples.cwnd=[18] tcp.samples.unacked=[17]",
		  RX " thread.cpu_share=0.206 thread.run_delay_s=3.73 cpu.1.idle=0"
		     " tcp.samples.queued_in=[23168]",
		  "loss: 1013 of 100000 segments" },
		{ "round trips that the reader's queue makes long",
		  TX ASLEEP " tcp.samples.rtt_us=[21000]", RX " tcp.samples.queued_in=[90000]",
		  "unclear" },
		{ "a queue on the way, to a reader that is woken late",
		  TX " thread.cpu_share=0.001 thread.run_delay_s=0 cpu.0.idle=0 tcp.busy_us=9.77e6"
		     " tcp.retransmitted_segments=344 tcp.min_rtt_us=5406"
		     " tcp.samples.rtt_us=[36026] tcp.samples.cwnd=[58] tcp.samples.unacked=[56]",
		  RX " thread.cpu_share=0.006 thread.run_delay_s=1.63 cpu.1.idle=0"
		     " tcp.samples.queued_in=[0]",
		  "path-rate: 30.6 ms of a round trip of 36 ms" },
		{ "the congestion window alone", TX ASLEEP " tcp.samples.unacked=[100]", RX,
		  "congestion-window: without loss" },
		{ "window: reader busy", TX " tcp.rwnd_limited_us=8.4e6",
		  RX " thread.cpu_share=0.96",
		  "receiver-cpu: receiver's window for 84 % of the time: the reading process was "
		  "busy 96 % of one CPU" },
		{ "window: a busy one that discards", TX " tcp.rwnd_limited_us=8.4e6",
		  RX " thread.cpu_share=0.96 engine.bytes_truncated=1e9",
		  "receiver-cpu: the discarding process was busy 96 % of one CPU, and did not copy "
		  "the data" },
		{ "window: reader asleep", TX " tcp.rwnd_limited_us=8.4e6",
		  RX ASLEEP " tcp.samples.queued_in=[200000]",
		  "reader-slow: slept 97 % of it while 195 KiB waited to be read" },
		{ "window: reader neither asleep nor quick", TX " tcp.rwnd_limited_us=8.4e6",
		  RX " thread.cpu_share=0.5 thread.run_delay_s=3 tcp.samples.queued_in=[200000]",
		  "receiver-cpu: ran for 50 % of the time" },
		{ "window: reader asleep, paced as it reads",
		  TX ASLEEP " tcp.rwnd_limited_us=4.16e6 tcp.min_rtt_us=3 tcp.samples.rtt_us=[4944]"
			    " tcp.samples.cwnd=[20] tcp.samples.unacked=[3]",
		  RX ASLEEP " flow.rcvbuf=32768 tcp.samples.queued_in=[3888]",
		  "reader-slow: slept 97 % of it while 3888 bytes waited" },
		{ "and less often in want of window",
		  TX ASLEEP " tcp.rwnd_limited_us=3.04e6 tcp.min_rtt_us=5 tcp.samples.rtt_us=[4935]"
			    " tcp.samples.cwnd=[20] tcp.samples.unacked=[3]",
		  RX ASLEEP " flow.rcvbuf=32768 tcp.samples.queued_in=[4344]", "reader-slow" },
		{ "a queue on the way, and nothing unread",
		  TX ASLEEP " tcp.rwnd_limited_us=3.04e6 tcp.min_rtt_us=5 tcp.samples.rtt_us=[4935]"
			    " tcp.samples.cwnd=[20] tcp.samples.unacked=[20]",
		  RX ASLEEP " flow.rcvbuf=32768 tcp.samples.queued_in=[0]", "path-rate" },
		{ "window: buffer", TX " tcp.rwnd_limited_us=8.4e6",
		  RX ASLEEP " tcp.samples.queued_in=[0]",
		  "receive-buffer: buffer of 391 KiB is too small" },
		{ "window: the reason is unknown", TX " tcp.rwnd_limited_us=8.4e6", NULL,
		  "receive-window: receiver's window for 84 % of the time" },
		{ "window now and then", TX " tcp.rwnd_limited_us=3e6",
		  RX ASLEEP " tcp.samples.queued_in=[0]", "unclear" },
		{ "the reader's queue is full, the sender's buffer not yet", TX,
		  RX BUSY " tcp.samples.queued_in=[200000]", "receiver-cpu: receiver's CPU" },
		{ "the queue of one that discards is full", TX,
		  RX BUSY " tcp.samples.queued_in=[200000] engine.bytes_truncated=1e9",
		  "receiver-cpu: discarding process was busy 98 % of one CPU, and did not copy" },
		{ "a busy reader that keeps up", TX, RX BUSY, "unclear" },
		{ "softirq", TX, RX " cpu.1.softirq=0.99",
		  "far-softirq: CPU 1 of the receiver, which spent 99 % of its time" },
		{ "softirq where processors in between are offline", TX, RX " cpu.6.softirq=0.99",
		  "far-softirq: CPU 6 of the receiver, which spent 99 % of its time" },
		{ "softirq, and a queue before that",
		  TX ASLEEP " tcp.min_rtt_us=67 tcp.samples.rtt_us=[2893]"
			    " tcp.samples.cwnd=[153] tcp.samples.unacked=[150]",
		  RX " cpu.1.softirq=0.93 cpu.1.idle=0.07", "far-softirq" },
		{ "softirq, and a sender that hogs let run late",
		  TX
		  " thread.cpu_share=0.009 thread.run_delay_s=2.84 cpu.0.idle=0 tcp.busy_us=7.99e6"
		  " tcp.min_rtt_us=67 tcp.samples.rtt_us=[3422] tcp.samples.cwnd=[247]"
		  " tcp.samples.unacked=[150]",
		  RX " thread.cpu_share=0.088 thread.run_delay_s=4.33 cpu.1.softirq=0.65"
		     " cpu.1.idle=0",
		  "far-softirq" },
		{ "softirq beside a hog",
		  TX ASLEEP " tcp.min_rtt_us=67 tcp.samples.rtt_us=[2893]"
			    " tcp.samples.cwnd=[153] tcp.samples.unacked=[150]",
		  RX " cpu.1.softirq=0.77 cpu.1.idle=0.06",
		  "far-softirq: 77 % of its time receiving packets (softirq) and had no time "
		  "left" },
		{ "loss in softirq's queue", TX " tcp.retransmitted_segments=1000",
		  RX " moved.softnet.1.dropped=900",
		  "far-softirq: their queues dropped 900 packets, 0.90 % of what was sent" },
		{ "loss in the queue of one with a high number",
		  TX " tcp.retransmitted_segments=1000", RX " moved.softnet.9.dropped=900",
		  "far-softirq: their queues dropped 900 packets, 0.90 % of what was sent" },
		{ "loss, little of it there", TX " tcp.retransmitted_segments=1000",
		  RX " moved.softnet.1.dropped=400", "loss" },
		{ "small packets for softirq", TX ASLEEP " tcp.path_mtu=256 tcp.mss=204",
		  RX " cpu.1.softirq=0.99",
		  "mtu: (1448 with an MTU of 1500); CPU 1 of the receiver" },
		{ "some softirq", TX, RX " cpu.1.softirq=0.8", "unclear" },
		{ "softirq of the sender's own", TX BUSY, RX " cpu.1.softirq=1 host.name='a'",
		  "sender-cpu" },
		{ "small packets", TX BUSY " tcp.path_mtu=256 tcp.mss=204", RX,
		  "mtu: the MTU of 256" },
		{ "small packets, no trouble", TX " tcp.path_mtu=256 tcp.mss=204", RX, "unclear" },
		{ "no evidence at all", NULL, NULL, "unclear: neither end has any evidence" },
		{ "bags without figures", "host.name='a'", "host.name='b'", "unclear" },
	};

	check(tcp_input(), examples, LEN(examples));
}

TEST(test_copies_to_just_after_a_page)
{
	struct np_explain_input in = tcp_input();
	struct np_explanation e;

	e = explained(in, TX, RX BUSY " tcp.samples.queued_in=[200000] flow.receive_offset=16",
		      "receiver-cpu");
	assert_has(e.best.doubts, "begin 16 bytes after a page boundary");
	assert_has(e.best.doubts, "(try -A 64)");
	e = explain(in, TX, RX BUSY " tcp.samples.queued_in=[200000] flow.receive_offset=0");
	assert_null(strstr(e.best.doubts, "after a page boundary"));
	e = explain(in, TX, RX ASLEEP " flow.receive_offset=16");
	assert_null(strstr(e.best.doubts, "after a page boundary")); /* it has time to copy */
}

/* netserver transmits, and is a stock one: what the near end knows is the reader's side. */
TEST(a_reader_without_its_far_end)
{
	static const struct example examples[] = {
		{ "it keeps up", RX, NULL, "unclear: the reader at this end kept up" },
		{ "it does not", RX BUSY " tcp.samples.queued_in=[200000]", NULL,
		  "receiver-cpu: busy 98 % of one CPU" },
		{ "it sleeps", RX ASLEEP " tcp.samples.queued_in=[200000]", NULL,
		  "reader-slow: slept 97 %" },
	};
	struct np_explain_input in = tcp_input();
	struct np_explanation e;

	in.near_transmits = false;
	in.far_lacks = "the daemon is netperf's own";
	check(in, examples, LEN(examples));
	e = explain(in, RX, NULL);
	assert_has(e.best.doubts, "the far end reported nothing about its side");
	assert_null(strstr(e.best.doubts, "one machine"));
	e = explain(in, RX " flow.device='lo'", NULL);
	assert_has(e.best.doubts, "both ends share the processors of one machine");
	explained(in, RX, TX BUSY, "sender-cpu");
}

TEST(links_shapers_and_mtu_that_limit)
{
	/* 115.84 Mbit/s are 99.97 % of the ceiling of 123.08 Mbit/s: 94.148 %. */
	static const struct example examples[] = {
		{ "told by the user", TX, RX, "link: what 123.1 Mbit/s can carry" },
		{ "loss matters less", TX " tcp.retransmitted_segments=1000", RX, "link" },
	};
	static const struct example found[] = {
		{ "a shaper of our own",
		  TX " host.nic.qdisc.rate_bps=123.08e6 host.nic.qdisc='tbf'"
		     " host.nic.speed_mbps=10000 host.nic.driver='veth'",
		  RX, "link: (tbf, 123.1 Mbit/s)" },
		{ "a shaper that a late machine does not fill",
		  TX
		  " host.nic.qdisc.rate_bps=135e6 host.nic.qdisc='tbf' moved.qdisc.overlimits=9999",
		  RX, "link: 91 % of what it can carry" },
		{ "a shaper that holds nothing back",
		  TX " host.nic.qdisc.rate_bps=135e6 host.nic.qdisc='tbf'", RX, "unclear" },
		{ "an interface", TX " host.nic.speed_mbps=123.08 host.nic.driver='e1000e'", RX,
		  "link: rate from the transmitter's interface" },
		{ "a lab's", TX " host.nic.link_rate_bps=123.08e6 host.nic.driver='tun'", RX,
		  "link: (rate from netlab)" },
		{ "the far one", TX " host.nic.speed_mbps=10000 host.nic.driver='e1000e'",
		  RX " host.nic.speed_mbps=123.08 host.nic.driver='e1000e'",
		  "link: rate from the receiver's interface" },
		{ "a rate that is made up", TX " host.nic.speed_mbps=123.08 host.nic.driver='veth'",
		  RX, "unclear" },
		{ "less than the link has", TX " host.nic.speed_mbps=130 host.nic.driver='e1000e'",
		  RX, "unclear" },
		{ "more than the link has", TX " host.nic.speed_mbps=100 host.nic.driver='e1000e'",
		  RX, "unclear" },
		{ "a shaper with an unknown rate",
		  TX ASLEEP " moved.qdisc.overlimits=30000 tcp.samples.t_s=[1]", RX, "unclear" },
	};
	struct np_explain_input in = tcp_input();

	check(in, found, LEN(found));
	in.link_rate_bps = 123.08e6;
	check(in, examples, LEN(examples));

	/* A hundredth too much is as much as the buffers of 1.4 MB hold, of 145; 3 % is not. */
	in.link_rate_bps = 122e6;
	assert_has(explain(in, TX, RX).best.doubts,
		   "were in queues when the time began or ended count, too (a longer -l)");
	in.link_rate_bps = 119.5e6;
	assert_has(explain(in, TX, RX).best.doubts, "the rate does not count all of it");

	/* 204 of 294 bytes with an MTU of 256. */
	in.link_rate_bps = 115.84e6 / 204 * 294;
	explained(in, TX " tcp.path_mtu=256 tcp.mss=204", RX,
		  "mtu: it allows 69 % of the link's rate as payload (an MTU of 1500 allows 94 %)");
}

/* A queue of one's own that holds packets back, at a steady rate. */
TEST(a_shaper_whose_rate_is_not_known)
{
#define HELD TX ASLEEP " moved.qdisc.overlimits=30000"
#define CAME RX " tcp.samples.t_s=[0+0.1] tcp.samples.bytes="
	struct np_explanation e = explained(
	    tcp_input(), HELD,
	    CAME "[0,1448100,2896000,4344100,5792000,7240100,8688000,10136100,11584000,13032100]",
	    "link: held packets back 3000 times a second, and the rate of 115.8 Mbit/s");
	assert_has(e.best.doubts, "--link-rate");
	/* At a rate that jumps it is something else. */
	explained(tcp_input(), HELD,
		  CAME
		  "[0,2316800,2896000,5212800,5792000,8108800,8688000,11004800,11584000,13900800]",
		  "unclear");
}

#define UDP_TX                                                                                     \
	" flow.seconds=10 thread.seconds=10 thread.cpu_share=0.4 thread.run_delay_s=0.01"          \
	" flow.sends=100000 flow.bytes_sent=147200000 flow.send_size=1472 flow.sndbuf=212992"      \
	" flow.samples.queued_out=[150000] host.path_mtu=1500 host.name='a' moved.seconds=10"
#define UDP_RX                                                                                     \
	" flow.seconds=10 thread.seconds=10 thread.cpu_share=0.4 thread.run_delay_s=0.01"          \
	" flow.receives=100000 flow.bytes_received=147200000 flow.rcvbuf=4608 host.name='b'"       \
	" cpu.count=1 cpu.0.softirq=0.1 moved.seconds=10"
#define LOSSY_RX UDP_RX " flow.receives=80000 flow.bytes_received=117760000"

static struct np_explain_input
udp_input(void)
{
	return (struct np_explain_input){ .near_transmits = true,
					  .datagrams = true,
					  .family = 4,
					  .seconds = 10,
					  .sent_bps = 117.76e6,
					  .throughput_bps = 117.76e6 };
}

TEST(limits_of_datagrams)
{
	static const struct example examples[] = {
		{ "nothing stands out", UDP_TX, UDP_RX, "unclear" },
		{ "receive buffer", UDP_TX BUSY, LOSSY_RX " moved.snmp.Udp.RcvbufErrors=20000",
		  "udp-receive-buffer: full at 4608 bytes and dropped 20000 datagrams, 20 % of "
		  "what was sent" },
		{ "receive buffer, of one that discards", UDP_TX BUSY,
		  LOSSY_RX " moved.snmp.Udp.RcvbufErrors=20000 engine.bytes_truncated=1e8",
		  "udp-receive-buffer: did not copy the data" },
		{ "receive buffer, of joined datagrams", UDP_TX BUSY,
		  LOSSY_RX " moved.snmp.Udp.RcvbufErrors=400 engine.joined_receives=1600"
			   " engine.receive_calls=1600 engine.messages_received=80000",
		  "udp-receive-buffer: dropped 20000 datagrams, 20 %" },
		{ "receive buffer, of a reader that hardly ever is late", UDP_TX BUSY,
		  UDP_RX " flow.receives=99100 moved.snmp.Udp.RcvbufErrors=900",
		  "udp-receive-buffer: dropped 900 datagrams, 0.90 % of what was sent" },
		{ "receive buffer, full once", UDP_TX BUSY,
		  UDP_RX " flow.receives=99900 moved.snmp.Udp.RcvbufErrors=100", "sender-cpu" },
		{ "other people's drops", UDP_TX BUSY, LOSSY_RX " moved.snmp.Udp.RcvbufErrors=5000",
		  "loss: 5000 of these 20000" },
		{ "lost on the path", UDP_TX, LOSSY_RX,
		  "loss: 20 % of the datagrams did not arrive" },
		{ "lost, by the sequence numbers", UDP_TX,
		  UDP_RX " udp.sent=100000 udp.lost=50000 flow.receives=100000",
		  "loss: 50 % of the datagrams did not arrive" },
		{ "lost by the processors", UDP_TX, LOSSY_RX " moved.softnet.0.dropped=19000",
		  "far-softirq: dropped 19000 packets, 19 %" },
		{ "a few are lost", UDP_TX, UDP_RX " flow.receives=99500", "unclear" },
		{ "sender's CPU", UDP_TX BUSY, UDP_RX, "sender-cpu" },
		{ "small packets", UDP_TX BUSY " host.path_mtu=256", UDP_RX,
		  "mtu: a datagram of 1472 bytes takes 7 packets (1 with an MTU of 1500)" },
		{ "small datagrams", UDP_TX BUSY " host.path_mtu=256 flow.send_size=64", UDP_RX,
		  "sender-cpu" },
		{ "a sender that sleeps", UDP_TX ASLEEP " flow.samples.queued_out=[0]", UDP_RX,
		  "sending-application: slept 97 %" },
		{ "one that waits for its queue", UDP_TX ASLEEP, UDP_RX, "unclear" },
		{ "lost in one's own queue", UDP_TX " tc.out.drops=19000", LOSSY_RX,
		  "link: dropped 19000 packets while 20000 datagrams were lost" },
		{ "lost there, and of the rest in the receive buffer", UDP_TX " tc.out.drops=15000",
		  LOSSY_RX " moved.snmp.Udp.RcvbufErrors=4000", "udp-receive-buffer" },
		{ "receive buffer of UDP-Lite", UDP_TX,
		  LOSSY_RX " flow.protocol='UDPLite' moved.snmp.UdpLite.RcvbufErrors=20000",
		  "udp-receive-buffer: and dropped 20000 datagrams" },
		{ "UDP's drops beside UDP-Lite", UDP_TX,
		  LOSSY_RX " flow.protocol='UDPLite' moved.snmp.Udp.RcvbufErrors=20000",
		  "loss: the receiver's buffer dropped only 0 of these 20000" },
		{ "lost in one's own queue, which counts fragments", UDP_TX " tc.out.drops=25000",
		  LOSSY_RX " moved.snmp.Udp.RcvbufErrors=10",
		  "link: dropped 25000 packets while 20000 datagrams were lost" },
	};
	struct np_explain_input in = udp_input();
	struct np_explanation e;

	check(in, examples, LEN(examples));
	e = explained(in, UDP_TX BUSY,
		      UDP_RX " flow.receives=99700 moved.snmp.Udp.RcvbufErrors=100000",
		      "udp-receive-buffer");
	assert_has(e.best.doubts, "drops of all sockets together");
	assert_null(strstr(e.best.doubts, "was cut"));
	e = explain(in, UDP_TX, UDP_RX " flow.receive_size=1000");
	assert_null(strstr(e.best.doubts, "was cut")); /* as many bytes have come as were sent */
	e = explain(in, UDP_TX, UDP_RX " flow.receive_size=1000 flow.bytes_received=100000000");
	assert_has(e.best.doubts,
		   "each datagram of 1472 bytes was cut to the 1000 bytes of a receive");
	e = explained(in, UDP_TX, LOSSY_RX " tc.in.drops=900000", "policer");
	assert_has(e.best.doubts, "it also drops other traffic");
	assert_true(e.best.share == 1); /* of what was lost */
	e = explained(in, UDP_TX, LOSSY_RX " tc.in.drops=20000", "policer");
	assert_null(strstr(e.best.doubts, "other traffic"));
	/* A link that is full has dropped the rest, and its queue went on after the time. */
	in.link_rate_bps = 100e6 * 1538 / 1472;
	in.throughput_bps = 107e6;
	e = explained(in, UDP_TX,
		      LOSSY_RX " udp.receive_span_bps=99.8e6 udp.lost=50000 udp.sent=100000",
		      "link");
	assert_int_equal(e.also.limit, NP_LIMIT_UNCLEAR);
	assert_has(e.ceiling_text, "99.8 % of it reached");
	in.link_rate_bps = 0;
	in.throughput_bps = 94e6;
	e = explained(in, UDP_TX, NULL, "unclear: 20 % of the datagrams were lost");
	assert_has(e.best.sentence, "only the far end knows where");
}

/* n times of ns each, and some others. */
static struct np_hist *
latencies(int n, uint64_t ns, int others, uint64_t other_ns)
{
	struct np_hist *h = np_hist_new();

	for (int i = 0; i < n + others; i++) {
		np_hist_record(h, i < n ? ns : other_ns);
	}
	return h;
}

TEST(limits_of_transactions)
{
	static const struct example examples[] = {
		{ "the way there and back", TX, RX,
		  "turns: with 1 in flight at a time, a transaction takes 50 us" },
		{ "requester's CPU", TX BUSY, RX, "sender-cpu: the requesting process" },
		{ "responder's CPU", TX, RX BUSY, "receiver-cpu: the responding process" },
		{ "one end alone", TX, NULL, "turns" },
	};
	struct np_explain_input in = tcp_input();
	struct np_explanation e;

	in.near_transmits = false;
	in.transactions = true;
	in.per_second = 20000;
	in.request = in.response = in.in_flight = 1;
	check(in, examples, LEN(examples));
	/* A closed loop that stood still for 100 ms of each second has it in a few of its times. */
	in.closed = latencies(20000, 50000, 10, 100000000);
	assert_has(explain(in, TX, RX).best.doubts,
		   "for 1 % of the time a transaction took 100 ms or more");
	free((void *)in.closed);
	in.closed = latencies(20000, 50000, 10, 200000);
	assert_null(strstr(explain(in, TX, RX).best.doubts, "nothing was asked"));
	free((void *)in.closed);
	in.closed = NULL;
	/* 68,681 a second on 100 Mbit/s, doc/ceilings.md. */
	in.link_rate_bps = 100e6;
	in.per_second = 68600;
	e = explained(in, TX, RX, "link");
	assert_has(e.ceiling_text, "68681 transactions a second");
	in.per_second = 686810;
	e = explain(in, TX, RX);
	assert_has(e.ceiling_text,
		   "; 10 times as much arrived: the data did not go over that link");
	/* A request that finds tokens waits for none of its bytes. */
	in.link_rate_bps = 0;
	in.per_second = 120000;
	e = explain(in, TX " host.nic.qdisc.rate_bps=1e8 host.nic.qdisc='tbf'", RX);
	assert_has(
	    e.ceiling_text,
	    "137363 transactions a second at 100 Mbit/s (tbf), MTU 1500; 87 % of it reached");
}

#define RECEIVES ASLEEP " thread.looks=50 thread.seen_receiving=50"
#define WAITS(end) end RECEIVES

/* What keeps an end from running is named, not what that makes of buffers and windows. */
TEST(quotas_stops_and_crowded_processors)
{
	static const struct example streams[] = {
		{ "a sender's quota",
		  TX " thread.cpu_share=0.2 thread.run_delay_s=7.8 cgroup.cpu.quota=0.2"
		     " cgroup.cpu.throttled_s=7.7 tcp.busy_us=3e6",
		  RX, "sender-quota: it allows 0.2 CPUs, and was used up for 77 %" },
		{ "a reader's, which makes the window small", TX " tcp.rwnd_limited_us=8e6",
		  RX " thread.cpu_share=0.2 thread.run_delay_s=7.8 cgroup.cpu.throttled_s=7.7"
		     " tcp.samples.queued_in=[300000]",
		  "receiver-quota: the reading process's cgroup: it was used up for 77 %" },
		{ "a quota that is hardly ever used up",
		  TX BUSY " cgroup.cpu.quota=1 cgroup.cpu.throttled_s=0.5", RX, "sender-cpu" },
		{ "a quota of a sender that waits for others",
		  TX ASLEEP " cgroup.cpu.throttled_s=1.5 thread.looks=100 thread.seen_sending=90"
			    " tcp.rwnd_limited_us=9e6",
		  RX BUSY " tcp.samples.queued_in=[200000]", "receiver-cpu" },
		{ "a sender that waited for a processor all the time",
		  TX " thread.cpu_share=0.02 thread.run_delay_s=9.8", RX,
		  "sender-cpu: waited for a CPU for another 98 %" },
		{ "a reader that was stopped", TX " tcp.rwnd_limited_us=5e6",
		  RX ASLEEP " sampler.stopped_s=4.9 sampler.gap_max_s=1"
			    " tcp.samples.queued_in=[300000]",
		  "receiver-stalled: stalled for 49 % of the time, up to 1" },
		{ "a sender that ran all the time, which leaves no room for a stop",
		  TX BUSY " sampler.stopped_s=5.3 sampler.gap_max_s=1", RX, "sender-cpu" },
		{ "a sender that ran half of the time, and waited for a processor",
		  TX " thread.cpu_share=0.5 thread.run_delay_s=4 sampler.stopped_s=5", RX,
		  "sender-cpu" },
		{ "a sender that was stopped for a moment", TX BUSY " sampler.stopped_s=1", RX,
		  "sender-cpu" },
		{ "a crowded reader with data unread", TX " cpu.0.idle=0.4",
		  RX " thread.cpu_share=0.28 thread.run_delay_s=5.7 cpu.1.idle=0"
		     " flow.rcvbuf=6000000 tcp.samples.queued_in=[240000]",
		  "receiver-cpu: waited for a CPU for another 57 %" },
	};
	struct np_explain_input in = udp_input();
	struct np_explanation e;

	check(tcp_input(), streams, LEN(streams));
	explained(in, UDP_TX BUSY,
		  LOSSY_RX " flow.rcvbuf=212992 moved.snmp.Udp.RcvbufErrors=20000"
			   " cgroup.cpu.throttled_s=6 thread.cpu_share=0.2",
		  "receiver-quota");
	e = explained(in, UDP_TX BUSY,
		      LOSSY_RX BUSY " flow.rcvbuf=212992 moved.snmp.Udp.RcvbufErrors=20000",
		      "receiver-cpu");
	assert_int_equal(e.also.limit, NP_LIMIT_SENDER_CPU);
}

/* What the user asked for, and what a thread was found doing. */
TEST(pacing_and_pauses_that_were_asked_for)
{
	static const struct example examples[] = {
		{ "pacing", TX ASLEEP " flow.pacing_asked_bps=120e6 tcp.samples.rtt_us=[9000]", RX,
		  "pacing: (-q): 120 Mbit/s, of which 97 % was reached" },
		{ "pacing that is not reached", TX ASLEEP " flow.pacing_asked_bps=240e6", RX,
		  "unclear" },
		{ "-b and -w",
		  TX ASLEEP " flow.interval_us=10000 flow.burst=1 flow.send_size=145000", RX,
		  "sending-application: allow it to write 116 Mbit/s, of which 99.9 %" },
		{ "the reader's -b and -w", TX ASLEEP " tcp.rwnd_limited_us=9e6",
		  RX ASLEEP " flow.interval_us=10000 flow.burst=1 flow.receive_size=145000"
			    " tcp.samples.queued_in=[200000]",
		  "reader-slow: allow it to read 116 Mbit/s" },
		{ "found pausing",
		  TX ASLEEP " thread.looks=50 thread.seen_pausing=45 tcp.busy_us=3e6", RX,
		  "sending-application" },
		{ "found sending: it would have written more",
		  TX ASLEEP " thread.looks=50 thread.seen_sending=45 tcp.busy_us=1e6", RX,
		  "unclear" },
	};
	struct np_explanation e = explain(tcp_input(), TX ASLEEP, RX);

	assert_has(e.best.sentence,
		   "it is not known whether the ends were blocked in calls or slept by choice");
	check(tcp_input(), examples, LEN(examples));
}

/* Windows, queues, and what gets through. */
TEST(windows_loss_policers_and_reordering)
{
#define WINDOW " tcp.rwnd_limited_us=9e6"
	static const struct example examples[] = {
		{ "no window scaling",
		  TX ASLEEP WINDOW " tcp.window_scale=0 tcp.samples.send_window=[65535]"
				   " host.tcp.window_scaling=0",
		  RX ASLEEP " flow.rcvbuf=8388608 tcp.samples.queued_in=[0]",
		  "window-clamp: (net.ipv4.tcp_window_scaling)" },
		{ "no window scaling, and nobody says why",
		  TX ASLEEP WINDOW " tcp.send_scale=0 tcp.samples.send_window=[65535]",
		  RX ASLEEP " flow.rcvbuf=131072 tcp.samples.queued_in=[0]",
		  "window-clamp: a route or a middlebox" },
		{ "a route", TX ASLEEP WINDOW " tcp.samples.send_window=[32768]",
		  RX ASLEEP " host.route.window=32768 tcp.samples.queued_in=[0]",
		  "window-clamp: (ip route: window)" },
		{ "a small buffer is not scaled either",
		  TX ASLEEP WINDOW " tcp.window_scale=0 tcp.samples.send_window=[18824]",
		  RX ASLEEP " flow.rcvbuf=32768 tcp.samples.queued_in=[0]", "receive-buffer" },
		{ "doubled segments hide no loss",
		  TX " tcp.retransmitted_segments=1000 tcp.dsack_dups=5000", RX,
		  "loss: 1000 of 100000" },
		{ "a little loss, on a long path",
		  TX ASLEEP " tcp.retransmitted_segments=20 tcp.min_rtt_us=20000"
			    " tcp.samples.rtt_us=[21000] tcp.samples.unacked=[100]",
		  RX, "loss: 20 of 100000" },
		{ "as little on a short one",
		  TX ASLEEP " tcp.retransmitted_segments=20 tcp.samples.unacked=[100]", RX,
		  "congestion-window: with almost no loss" },
		{ "loss, of BBR on a path that it has measured",
		  TX ASLEEP " tcp.retransmitted_segments=1000 tcp.congestion='bbr'"
			    " tcp.samples.pacing_rate_bps=[120e6]",
		  RX, "path-rate: as BBR has measured it: it paces at 120 Mbit/s" },
		{ "a policer at the receiver", TX " tcp.retransmitted_segments=1000",
		  RX " tc.in.drops=990", "policer: dropped 990 packets" },
		{ "drops of the own queue, which TCP notices",
		  TX " tcp.retransmitted_segments=1000 tc.out.drops=990", RX, "loss" },
		{ "marks of congestion", TX ASLEEP " tcp.delivered_ce=2000", RX,
		  "path-rate: marks 2.0 % of the segments" },
		{ "reordering",
		  TX ASLEEP " tcp.retransmitted_segments=1000 tcp.dsack_dups=800 tcp.reordered=900"
			    " tcp.samples.rtt_us=[9000] tcp.samples.unacked=[100]",
		  RX, "reordering: 80 % of the 1000 segments" },
		{ "reordering, and a sender that waits for a CPU at times",
		  TX " thread.cpu_share=0.22 thread.run_delay_s=3.2"
		     " tcp.retransmitted_segments=1000 tcp.dsack_dups=800 tcp.reordered=900",
		  RX, "reordering" },
		{ "a window that a route keeps small, and loss",
		  TX ASLEEP " tcp.retransmitted_segments=200 tcp.samples.unacked=[100]"
			    " host.route.cwnd=100 tcp.samples.pacing_rate_bps=[1e9]"
			    " tcp.congestion='bbr'",
		  RX, "congestion-window: of the time, with loss and" },
		{ "loss that a slow reader makes harmless",
		  TX " tcp.retransmitted_segments=500 tcp.rwnd_limited_us=9e6",
		  RX ASLEEP " tcp.samples.queued_in=[200000]", "reader-slow" },
	};
	struct np_explain_input in = tcp_input();
	struct np_explanation e;

	check(in, examples, LEN(examples));
	e = explain(in, TX " tcp.retransmitted_segments=500 tcp.rwnd_limited_us=9e6",
		    RX ASLEEP " tcp.samples.queued_in=[200000]");
	assert_int_equal(e.also.limit, NP_LIMIT_LOSS);
	in.throughput_bps = 0;
	explained(in, TX ASLEEP " tcp.retransmitted_segments=4 tcp.bytes_acked=1", RX,
		  "mtu: small segments pass, and those of 1448 bytes do not");
	/* Those of a warm-up did pass. */
	e = explain(in,
		    TX ASLEEP " tcp.retransmitted_segments=4 tcp.bytes_acked=0"
			      " tcp.samples.bytes_acked=[9000000]",
		    RX);
	assert_true(e.best.limit != NP_LIMIT_MTU);
	in.throughput_bps = 115.84e6;
	/* A link of 200 Mbit/s, of which others take what is left. */
	in.link_rate_bps = 200e6;
	e = explained(in, TX ASLEEP " foreign.out_bytes=95e6", RX,
		      "foreign-traffic: 38 % of its rate");
	assert_has(e.ceiling_text, "other traffic 38 %");
}

/* Both ends' samples on one clock: 1,000,000 bytes a step of 100 ms. */
TEST(acknowledgements_that_wait_on_the_way_back)
{
#define CLOCK " clock.boot='x' clock.begin_s=5 tcp.samples.t_s=[0.1+0.1]"
#define SENDS                                                                                      \
	TX ASLEEP CLOCK " tcp.samples.rtt_us=[21000] tcp.samples.unacked=[100]"                    \
			" tcp.samples.bytes_sent=[1.21e6+1e6] tcp.samples.bytes_acked=[1e6+1e6]"   \
			" tcp.samples.retransmitted_bytes=[0]"
	static const struct example examples[] = {
		{ "acknowledgements wait", SENDS,
		  RX CLOCK " tcp.samples.queued_in=[0] tcp.samples.bytes_received=[1.2e6+1e6]",
		  "ack-path: they take 20 ms back, and the data only 1 ms there" },
		{ "data wait", SENDS,
		  RX CLOCK " tcp.samples.queued_in=[0] tcp.samples.bytes_received=[1.01e6+1e6]",
		  "path-rate" },
	};

	check(tcp_input(), examples, LEN(examples));
}

/* Nothing is acknowledged from the third sample to the seventh. */
TEST(outages_of_tcp)
{
#define SILENT                                                                                     \
	TX ASLEEP " tcp.samples.unacked=[60] tcp.samples.t_s=[0.1+0.1]"                            \
		  " tcp.samples.bytes_acked=[1,2,3,3,3,3,3,4,5,6]"
	struct np_explanation e =
	    explained(tcp_input(), SILENT, RX,
		      "outage: nothing got through for 44 % of the time, once for 400 ms");
	assert_has(e.best.doubts, "it is not known whether data or acknowledgements were lost");
	/* With a window that is shut it is the reader. */
	e = explain(tcp_input(), SILENT " tcp.samples.send_window=[0]", RX);
	assert_int_not_equal(e.best.limit, NP_LIMIT_OUTAGE);
}

/* Datagrams that stay away for a while, though they were sent all the time; or were not. */
TEST(outages_of_datagrams)
{
#define AWAY " flow.samples.bytes=[1,2,3,3,3,3,3,4,5,6]"
	static const struct example examples[] = {
		{ "sent all the time", UDP_TX " flow.samples.bytes=[1+1]",
		  LOSSY_RX AWAY " flow.samples.t_s=[0.1+0.1]", "outage" },
		{ "not sent", UDP_TX AWAY, LOSSY_RX AWAY " flow.samples.t_s=[0.1+0.1]", "loss" },
		{ "on their way", UDP_TX " flow.samples.bytes=[1+1]",
		  LOSSY_RX " flow.samples.bytes=[0,0,0,0,0,1,2,3,4,5]"
			   " flow.samples.t_s=[0.1+0.1]",
		  "loss" },
	};

	check(udp_input(), examples, LEN(examples));
}

/* A window that grew too far once, and what the formula of loss can't be. */
TEST(loss_in_one_burst_limits_nothing)
{
#define AGAIN TX ASLEEP " tcp.retransmitted_segments=600 tcp.sndbuf_limited_us=9e6"
	static const struct example examples[] = {
		{ "lost at some time", AGAIN, RX, "loss" },
		{ "lost at once", AGAIN " tcp.samples.retransmitted_segments=[0,0,600]", RX,
		  "send-buffer" },
	};
	struct np_explanation e;

	check(tcp_input(), examples, LEN(examples));
	/* 1.4 Mbit/s is what 1 % of loss would allow at 500 ms. */
	e = explained(tcp_input(),
		      TX ASLEEP " tcp.retransmitted_segments=1000 tcp.min_rtt_us=500000"
				" tcp.sndbuf_limited_us=9e6",
		      RX, "send-buffer");
	assert_int_equal(e.also.limit, NP_LIMIT_LOSS);
}

TEST(transactions_that_take_long)
{
	static const struct example examples[] = {
		{ "an end that waits", TX ASLEEP, RX ASLEEP,
		  "unclear: a transaction takes 200 ms, a round trip of the path can be as short "
		  "as 1 ms" },
		{ "an end of which nothing is known", TX ASLEEP, NULL,
		  "unclear: no processor is known to be busy" },
		{ "a queue that has stamps", TX ASLEEP " stations.near_queue_us=190000", RX ASLEEP,
		  "path-rate: 190 ms pass in this end's queue, by the stamps" },
		{ "ends that never sleep", TX SPINS, RX SPINS,
		  "unclear: no processor is known to be busy" },
		{ "a responder that pauses", TX ASLEEP,
		  RX ASLEEP " thread.looks=50 thread.seen_pausing=48", "reader-slow" },
		{ "a requester that is asked to", TX ASLEEP " flow.interval_us=200000", RX ASLEEP,
		  "sending-application" },
		{ "one of which no samples are known", TX ASLEEP " flow.interval_us=100000",
		  RX ASLEEP, "sending-application: which -b and -w delay: a transaction takes" },
		{ "timers", TX ASLEEP " moved.netstat.TcpExt.TCPTimeouts=20", RX ASLEEP,
		  "loss: 20 segments were sent again, each of which costs a wait" },
		{ "probes that repair",
		  TX ASLEEP " tcp.retransmitted_segments=20 flow.latency_p50_us=150000"
			    " flow.latency_mean_us=200000",
		  RX ASLEEP, "loss: about 25 % of the time" },
		{ "a requester that makes what it may",
		  TX ASLEEP " flow.interval_us=600000 flow.burst=3", RX ASLEEP,
		  "sending-application: allow it to make 5 transactions a second, of which 100 %" },
		{ "the same over two subflows",
		  TX ASLEEP " flow.interval_us=600000 flow.burst=3 mptcp.subflows=2", RX ASLEEP,
		  "sending-application: allow it to make 5 transactions a second" },
		{ "timers of two subflows",
		  TX ASLEEP " moved.netstat.TcpExt.TCPTimeouts=20 mptcp.subflows=2", RX ASLEEP,
		  "loss: 20 segments were sent again" },
		{ "responses that queue", TX ASLEEP,
		  RX ASLEEP " tcp.samples.rtt_us=[90000] tcp.min_rtt_us=1000",
		  "path-rate: the responses wait in a queue on the path for 89 ms" },
		{ "a responder that waits for a processor", TX ASLEEP,
		  RX " thread.cpu_share=0.1 thread.run_delay_s=6", "receiver-cpu" },
		{ "a responder that is stopped", TX ASLEEP,
		  RX ASLEEP " sampler.stopped_s=5 sampler.gap_max_s=0.5", "receiver-stalled" },
		{ "a full direction back", TX ASLEEP, RX ASLEEP " host.nic.qdisc.rate_bps=8.5e6",
		  "link: mostly in the direction of the responses" },
	};
	/* Neither end tells a rate, as with a shaper of a router's. */
	static const struct example connections[] = {
		{ "connections that both ends wait for", WAITS(TX), WAITS(RX),
		  "path-rate: takes 200 ms, and without a queue no more than 5 ms" },
		{ "those of a long path", WAITS(TX) " tcp.min_rtt_us=39000", WAITS(RX), "turns" },
		{ "those of an end that is not known to wait", TX ASLEEP, RX ASLEEP, "unclear" },
	};
	static const struct example datagrams[] = {
		{ "datagrams that both ends wait for", UDP_TX RECEIVES, UDP_RX RECEIVES,
		  "path-rate: both ends wait to receive, and have little to read" },
		{ "datagrams that wait in a buffer", UDP_TX RECEIVES,
		  UDP_RX RECEIVES " flow.samples.queued_in=[90000]", "unclear" },
	};
	struct np_explain_input in = tcp_input(), before;

	in.near_transmits = false;
	in.transactions = true;
	in.per_second = 5;
	in.request = in.in_flight = 1;
	in.response = 200000;
	before = in;
	check(in, examples, LEN(examples));
	in.connections = true;
	check(in, connections, LEN(connections));
	in.connections = false;
	in.datagrams = true;
	in.per_second = 500;
	in.in_flight = 100;
	in.least_us = 60000;
	check(in, datagrams, LEN(datagrams));
	in = before;
	/* The responses take three quarters of the time of a link of 12 Mbit/s. */
	in.link_rate_bps = 12e6;
	assert_int_equal(explain(in, TX ASLEEP, RX ASLEEP).best.limit, NP_LIMIT_LINK);
	in.link_rate_bps = 30e6;
	assert_int_not_equal(explain(in, TX ASLEEP, RX ASLEEP).best.limit, NP_LIMIT_LINK);
}

/* What comes next, and what the cause alone allows. */
TEST(the_next_limit_and_what_it_allows)
{
	struct np_explain_input in = tcp_input();
	struct np_explanation e;

	in.link_rate_bps = 2 * 123.04e6;
	e = explained(in, TX BUSY " thread.run_delay_s=0", RX, "sender-cpu");
	assert_true(fabs(e.best.allows - 115.84e6 / 0.98) < 1e4);
	assert_int_equal(e.next.limit, NP_LIMIT_LINK);
	assert_true(fabs(e.next.allows - 2 * 115.84e6) < 1e4);
	explained(in, TX BUSY " flow.seconds=0.001 thread.seconds=0.001", RX,
		  "unclear: too short to decide");
	in.link_rate_bps = 0;
	e = explain(in, TX BUSY, RX " cpu.1.softirq=0.5");
	assert_int_equal(e.next.limit, NP_LIMIT_SOFTIRQ);
	assert_true(fabs(e.next.allows - 2 * 115.84e6) < 1e4);
}

/* A thread that never sleeps has all of a processor, whatever it does with that. */
TEST(threads_that_never_sleep)
{
	static const struct example streams[] = {
		{ "a sender with time to spare", TX SPINS, RX,
		  "unclear: the sending process never sleeps (spin): 80 % of its calls found "
		  "nothing" },
		{ "one that finds work in each call", TX SPINS_IN_VAIN_NEVER, RX,
		  "sender-cpu: busy 99 % of one CPU" },
		{ "a sender that often finds no data under way", TX SPINS " tcp.busy_us=1e6", RX,
		  "unclear" },
		{ "a reader with time to spare", TX, RX SPINS,
		  "unclear: the reading process never sleeps" },
		{ "a reader that may keep the window small", TX " tcp.rwnd_limited_us=9e6",
		  RX SPINS, "receive-window" },
		{ "another engine", TX BUSY " engine.name='epoll' engine.empty_calls=8000", RX,
		  "sender-cpu" },
		{ "a processor that both use", TX,
		  RX SPINS " cpu.1.softirq=0.7 cpu.1.idle=0 thread.cpu=1", "unclear" },
		{ "loss, though the sender spins", TX SPINS " tcp.retransmitted_segments=1000", RX,
		  "loss" },
	};
	static const struct example turns[] = {
		{ "both", TX SPINS, RX SPINS,
		  "turns: takes 50 us; the requesting process never sleeps (spin): 80 % of its "
		  "calls" },
		{ "a responder without a moment to spare", TX SPINS, RX SPINS_IN_VAIN_NEVER,
		  "receiver-cpu" },
	};
	struct np_explain_input in = tcp_input();
	struct np_explanation e = explain(in, TX " tcp.rwnd_limited_us=9e6", RX SPINS);

	assert_has(e.best.doubts, "its CPU time does not say how busy it was");
	check(in, streams, LEN(streams));
	in.transactions = true;
	in.per_second = 20000;
	in.request = in.response = in.in_flight = 1;
	check(in, turns, LEN(turns));
	assert_true(explain(in, TX SPINS, RX SPINS).best.allows == in.per_second);
	assert_true(explain(in, TX ASLEEP, RX ASLEEP).best.allows == in.per_second);
}

/* The rate of one link bounds what goes by one link, and the segments have MPTCP's options. */
TEST(ceilings_of_mptcp)
{
	static const char link[] = " host.nic.qdisc='tbf' host.nic.qdisc.rate_bps=1e8";
	char sender[4096];
	struct np_explain_input in = tcp_input();
	struct np_explanation e;

	in.options = 24;
	snprintf(sender, sizeof(sender), "%s%s mptcp.fallback=0 mptcp.subflows=1", TX, link);
	e = explain(in, sender, RX);
	assert_true(fabs(e.ceiling.most - 1e8 * 1424 / 1538) < 1);
	snprintf(sender, sizeof(sender), "%s%s mptcp.fallback=1", TX, link);
	e = explain(in, sender, RX);
	assert_true(fabs(e.ceiling.most - 1e8 * 1448 / 1538) < 1);
	snprintf(sender, sizeof(sender), "%s%s mptcp.fallback=0 mptcp.subflows=2", TX, link);
	e = explain(in, sender, RX);
	assert_true(isnan(e.ceiling.most));
	assert_has(e.ceiling_text, "not known: subflows may use several links");
	in.link_rate_bps = 2e8;
	e = explain(in, sender, RX);
	assert_true(fabs(e.ceiling.most - 2e8 * 1424 / 1538) < 1);
}

TEST(ceilings_and_what_uses_them_up)
{
	struct np_explain_input in = tcp_input();
	struct np_explanation e;

	e = explain(in, TX, RX);
	assert_true(isnan(e.ceiling.most));
	assert_has(e.ceiling_text, "--link-rate");

	/* 100,000 full segments in 10 s, on a link that would carry twice as many. */
	in.link_rate_bps = 2 * 123.04e6;
	e = explain(in, TX, RX);
	assert_true(fabs(e.ceiling.most - 2 * 115.84e6) < 1);
	assert_true(fabs(e.ceiling.reached - 0.5) < 1e-6);
	assert_true(fabs(e.ceiling.idle - 0.5) < 1e-4);
	assert_true(fabs(e.ceiling.small_segments) < 1e-6);
	assert_has(e.ceiling_text, "231.7 Mbit/s of payload at 246.1 Mbit/s (--link-rate), MTU "
				   "1500; 50 % of it reached");

	/* A rate that nothing fills, and one that nothing keeps to. */
	in.link_rate_bps = 1e18;
	e = explain(in, TX, RX);
	assert_has(e.ceiling_text, "; less than 0.001 % of it reached, idle 100 %");
	in.link_rate_bps = 1e3;
	e = explain(in, TX, RX);
	assert_has(e.ceiling_text, "0.9415 kbit/s of payload at 1 kbit/s (--link-rate), MTU 1500; "
				   "123000 times as much arrived");
	in.link_rate_bps = 2 * 123.04e6;

	/* Twice as many segments for it, a tenth of the payload twice. */
	e = explain(in,
		    TX " tcp.data_segments_out=210000 tcp.segments_out=210000"
		       " tcp.retransmitted_segments=10000 tcp.retransmitted_bytes=14480000",
		    RX);
	assert_true(fabs(e.ceiling.retransmits - 0.05) < 1e-6);
	assert_true(fabs(e.ceiling.small_segments - 0.5 * 90 / 1538) < 1e-6);
	assert_true(fabs(e.ceiling.acks) < 1e-9);
	assert_has(e.ceiling_text, "retransmitted 5.0 %");
	assert_has(e.ceiling_text, "headers of small segments 2.9 %");
	assert_has(e.ceiling_text, "idle 42 %");

	/* The same by the far end's ledger alone, of a sender that tells nothing. */
	in.near_transmits = false;
	e = explain(in,
		    RX " tcp.path_mtu=1500 tcp.timestamps=1 wire.in.data_segments=210000"
		       " wire.in.segments=210000 wire.in.retransmitted_bytes=14480000",
		    NULL);
	assert_true(fabs(e.ceiling.retransmits - 0.05) < 1e-6);
	assert_true(fabs(e.ceiling.small_segments - 0.5 * 90 / 1538) < 1e-6);
}

/* Within the machine, where a sender waits for nobody but the reader. */
TEST(limits_within_a_machine)
{
	static const struct example examples[] = {
		{ "a busy reader", "thread.seconds=10 thread.cpu_share=0.51",
		  "thread.seconds=10 thread.cpu_share=0.991",
		  "receiver-cpu: busy 99.1 % of one CPU" },
		{ "neither", "thread.seconds=10 thread.cpu_share=0.51",
		  "thread.seconds=10 thread.cpu_share=0.8",
		  "unclear: the sending process was busy 51 % of one CPU; the reading process was "
		  "busy 80 %" },
		{ "a reader that sleeps",
		  "thread.seconds=10 thread.cpu_share=0.1 thread.looks=50 thread.seen_sending=45",
		  "thread.seconds=10 thread.cpu_share=0.02 thread.looks=50 thread.seen_pausing=48"
		  " flow.rcvbuf=200000 flow.samples.queued_in=[150000]",
		  "reader-slow: while 146 KiB waited to be read" },
	};
	struct np_explain_input in = tcp_input();

	in.family = 0;
	check(in, examples, LEN(examples));
}

TEST(several_iterations_are_a_doubt)
{
	struct np_explain_input in = tcp_input();
	struct np_explanation e;

	in.iterations = 1;
	e = explain(in, TX BUSY, RX);
	assert_string_equal(e.best.doubts, "");
	in.iterations = 3;
	e = explain(in, TX BUSY, RX);
	assert_string_equal(e.best.doubts, "this covers only the last of 3 iterations");
}

TEST(an_explanation_as_evidence)
{
	struct np_explain_input in = tcp_input();
	struct np_explanation e = explain(in, TX BUSY, RX);
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();

	np_explain_put(&e, false, b);
	assert_string_equal(np_bag_string(b, "explain.limit"), "sender-cpu");
	assert_true(np_bag_number(b, "explain.share") >= 0.98);
	assert_true(isnan(np_bag_number(b, "explain.ceiling_bps")));
	assert_int_equal(np_bag_left_out(b), 0);
}

/* Other threads of its group were held up, on other processors. */
TEST(quotas_used_by_other_threads)
{
	static const struct example examples[] = {
		{ "a thread that runs all the time",
		  TX " thread.cpu_share=0.95 cgroup.cpu.quota=8 cgroup.cpu.throttled_s=50"
		     " cgroup.cpu.periods=100 cgroup.cpu.throttled_periods=50",
		  RX, "sender-cpu" },
		{ "one that runs half of it",
		  TX " thread.cpu_share=0.5 cgroup.cpu.quota=8 cgroup.cpu.throttled_s=50"
		     " cgroup.cpu.periods=100 cgroup.cpu.throttled_periods=50",
		  RX, "sender-quota: used up for 50 % of the time (the process ran 50 %)" },
	};

	check(tcp_input(), examples, LEN(examples));
}

/* What was asked for is more than the full link can carry. */
TEST(pacing_beyond_a_full_link)
{
	struct np_explain_input in = tcp_input();
	struct np_explanation e;

	in.link_rate_bps = 123.08e6;
	e = explained(in, TX " flow.pacing_asked_bps=130e6", RX, "link");
	assert_int_equal(e.also.limit, NP_LIMIT_PACING);
}

/* TCP's figures are sums of all connections; buffers and what -q asks for are of one. */
TEST(figures_of_many_connections)
{
	static const struct example eight[] = {
		{ "buffers of which an eighth is in use",
		  TX ASLEEP " tcp.connections=8 tcp.samples.cwnd=[400] tcp.samples.unacked=[320]"
			    " tcp.samples.send_window=[3000000] tcp.samples.queued_out=[463360]"
			    " tcp.samples.notsent_bytes=[0]",
		  RX, "sending-application" },
		{ "a little unread in each", TX " tcp.connections=8",
		  RX BUSY " tcp.connections=8 tcp.samples.queued_in=[120000]", "unclear" },
		{ "paced, each of them",
		  TX ASLEEP " tcp.connections=8 flow.pacing_asked_bps=15e6"
			    " tcp.samples.unacked=[100]",
		  RX, "pacing: (-q): 120 Mbit/s" },
		{ "two connections that write as they may",
		  TX ASLEEP " work.threads=2 flow.interval_us=1000 flow.burst=1"
			    " flow.send_size=7240",
		  RX, "sending-application: allow it to write 115.8 Mbit/s" },
		{ "windows that are not scaled",
		  TX ASLEEP " tcp.connections=8 tcp.rwnd_limited_us=9e6 tcp.send_scale=0"
			    " tcp.samples.send_window=[520000]",
		  RX ASLEEP " flow.rcvbuf=131072 tcp.samples.queued_in=[0]",
		  "window-clamp: it is not scaled" },
	};
	struct np_explain_input in = tcp_input();

	check(in, eight, LEN(eight));
	/* A route that would let the window be ten times as wide. */
	explained(in, TX " tcp.rwnd_limited_us=8.4e6",
		  RX ASLEEP " host.route.window=3000000 tcp.samples.queued_in=[0]",
		  "receive-buffer");
	/* Of a hundred at 10 ms one segment is not why they carry 10 Gbit/s and no more. */
	in.throughput_bps = 10e9;
	explained(in,
		  TX " tcp.connections=100 tcp.data_segments_out=8e6"
		     " tcp.retransmitted_segments=1 tcp.min_rtt_us=10000"
		     " tcp.samples.rtt_us=[12000] tcp.samples.cwnd=[10000]"
		     " tcp.samples.unacked=[9900] tcp.samples.send_window=[300000000]",
		  RX, "congestion-window");
}

TEST(little_loss_by_the_rate_it_allows)
{
#define FEW                                                                                        \
	TX " tcp.data_segments_out=860000 tcp.retransmitted_segments=50 tcp.min_rtt_us=10000"      \
	   " tcp.samples.rtt_us=[12000] tcp.samples.cwnd=[100] tcp.samples.unacked=[99]"           \
	   " tcp.samples.retransmitted_segments="
#define BY_AND_BY FEW "[0,5,10,15,20,25,30,35,40,50]"
	struct np_explain_input in = tcp_input();

	in.throughput_bps = 200e6;
	assert_int_equal(explain(in, BY_AND_BY, RX).best.limit, NP_LIMIT_LOSS);
	/* A window that grew too far once. */
	assert_int_equal(explain(in, FEW "[0,50]", RX).best.limit, NP_LIMIT_CWND);
	/* It would have allowed 200 Mbit/s: what carries five times as much it does not limit. */
	in.throughput_bps = 1e9;
	assert_int_equal(explain(in, BY_AND_BY, RX).best.limit, NP_LIMIT_CWND);
}

/* By satellite a window goes, and is acknowledged 600 ms later, all at once. */
TEST(round_trips_of_a_satellite)
{
#define SATELLITE                                                                                  \
	TX ASLEEP " tcp.samples.unacked=[100] tcp.min_rtt_us=600000 tcp.samples.rtt_us=[610000]"   \
		  " tcp.samples.bytes_acked=[1,2,2,2,2,2,3] tcp.samples.t_s="
	static const struct example examples[] = {
		{ "at once", SATELLITE "[0.1+0.1]", RX, "congestion-window" },
		{ "for longer than that it is an outage", SATELLITE "[0.1+0.4]", RX,
		  "outage: 44 % of the time, once for 1.6 s" },
	};

	check(tcp_input(), examples, LEN(examples));
}

/* Machines may have one name, and containers of one machine several. */
TEST(both_ends_on_one_machine)
{
	struct np_explain_input in = tcp_input();
	struct np_explanation e;

	e = explain(in, TX " clock.boot='0123456789ab-1'", RX " clock.boot='0123456789ab-2'");
	assert_has(e.best.doubts, "one machine");
	e = explain(in, TX " clock.boot='0123456789ab-1'",
		    RX " host.name='a' clock.boot='ba9876543210-1'");
	assert_null(strstr(e.best.doubts, "one machine"));
	e = explain(in, TX " clock.boot='0123456789ab-1'", RX " host.name='a'");
	assert_has(e.best.doubts, "one machine");
	e = explain(in, TX, RX);
	assert_null(strstr(e.best.doubts, "one machine"));
}

/* A server of 10 Gbit/s serves others beside a client of one. */
TEST(other_traffic_on_a_faster_interface)
{
#define ONE " host.nic.speed_mbps=1000 host.nic.driver='igb'"
#define TEN " host.nic.speed_mbps=10000 host.nic.driver='ixgbe'"
	static const struct example examples[] = {
		{ "at the receiver's faster interface", TX ONE, RX TEN " foreign.in_bytes=1.1e9",
		  "unclear" },
		{ "a link with room left, and a busy sender",
		  TX BUSY " host.nic.speed_mbps=162 host.nic.driver='igb' foreign.out_bytes=2.4e7",
		  RX, "sender-cpu" },
		{ "at the receiver's own", TX TEN, RX ONE " foreign.in_bytes=1.1e9",
		  "foreign-traffic" },
		{ "at the sender's, behind the same shaper",
		  TX TEN
		  " host.nic.qdisc.rate_bps=1e9 host.nic.qdisc='tbf' foreign.out_bytes=1.1e9",
		  RX TEN, "foreign-traffic" },
	};

	check(tcp_input(), examples, LEN(examples));
#undef ONE
#undef TEN
}

/* Nothing ends in the middle of a word. */
TEST(doubts_are_not_cut_in_a_word)
{
	struct np_explain_input in = tcp_input();
	char text[NP_EXPLAIN_TEXT] = "";
	struct np_explanation e;

	in.iterations = 3;
	in.sessions = 4;
	e = explain(in, TX " tcp.retransmitted_segments=1000 tcp.dsack_dups=2000 flow.seconds=0.4",
		    RX " host.name='a'");
	assert_has(e.best.doubts, "only the last of 3 iterations");
	assert_has(e.best.doubts, "both ends share the processors of one machine");
	for (int i = 0; i < 100; i++) {
		np_explain_add(text, "a doubt of %d bytes", 19);
	}
	assert_int_equal(strlen(text) % strlen("a doubt of 19 bytes; "),
			 strlen("a doubt of 19 bytes"));
}

/* Sentences and doubts fit, whatever the figures are. */
TEST(sentences_fit_whatever_the_figures)
{
	FREED_BY(free_bag)
	struct np_bag *known =
	    bag(TX UDP_TX UDP_RX " host.nic.speed_mbps=1"
				 " moved.qdisc.overlimits=1 host.nic.qdisc.rate_bps=1"
				 " tcp.samples.queued_in=[1]");
	static const double values[] = { 0, -1, 1, 1e-300, 1e300, -1e300, 4294967295.0, 0.5 };
	uint64_t seed = 20260101;

	for (int round = 0; round < 2000; round++) {
		struct np_explain_input in = tcp_input();
		struct np_bag *b[2] = { np_bag_new(), np_bag_new() };
		struct np_explanation e;
		struct np_bag_item it;

		for (size_t i = 0; np_bag_at(known, i / 2, &it); i++) {
			double v = values[next_random(&seed) % LEN(values)], list[2] = { v, v };

			if (next_random(&seed) % 4 == 0) {
				continue;
			}
			if (it.count > 0) {
				np_bag_reals(b[i % 2], list, LEN(list), "%s", it.name);
			} else if (it.kind != NP_BAG_STRING) {
				np_bag_real(b[i % 2], v, "%s", it.name);
			}
		}
		in.near = b[0];
		in.far = b[1];
		in.datagrams = next_random(&seed) % 2 == 0;
		in.transactions = next_random(&seed) % 2 == 0;
		in.near_transmits = next_random(&seed) % 2 == 0;
		in.family = (int)(next_random(&seed) % 3) * 2 + 2;
		in.throughput_bps = in.per_second = values[next_random(&seed) % LEN(values)];
		np_explain(&in, &e);
		assert_true(e.best.limit < NP_LIMITS);
		assert_true(e.best.score >= 0 && e.best.score <= 1);
		assert_true(strlen(e.best.sentence) > 0 &&
			    strlen(e.best.sentence) < sizeof(e.best.sentence));
		assert_null(strstr(e.best.sentence, "nan"));
		assert_null(strstr(e.best.doubts, "nan"));
		assert_null(strstr(e.ceiling_text, "nan"));
		np_bag_free(b[0]);
		np_bag_free(b[1]);
	}
}

/* DLCL_RR takes what this end does not know from the far one, which may say anything. */
TEST(a_far_end_may_say_anything)
{
	static const char *const mtus[] = { "0.5", "1", "4", "7.9", "8", "99", "1e300", "-1" };
	struct np_explain_input in = { .transactions = true,
				       .datagrams = true,
				       .family = NP_FRAMES,
				       .seconds = 10,
				       .per_second = 1000,
				       .request = 100,
				       .response = 100,
				       .in_flight = 1,
				       .link_rate_bps = 1e9 };
	struct np_explanation e;

	for (size_t i = 0; i < LEN(mtus); i++) {
		char far[128];

		snprintf(far, sizeof(far), "thread.cpu=1e300 flow.seconds=-1 host.nic.mtu=%s",
			 mtus[i]);
		e = explain(in, TX, far);
		assert_false(isnan(e.ceiling.most)); /* TX has an MTU of its own */
		e = explain(in, "flow.seconds=10", far);
		assert_true(isnan(e.ceiling.most));
		assert_has(e.ceiling_text, "not known");
	}
	e = explain(in, "flow.seconds=10", "host.nic.mtu=100");
	assert_false(isnan(e.ceiling.most));
	in = udp_input();
	in.link_rate_bps = 1e9;
	e = explain(in, UDP_TX " flow.send_size=0", UDP_RX);
	assert_has(e.ceiling_text, "not known: messages of that size have none");
	in = tcp_input();
	in.link_rate_bps = 1e9;
	e = explain(in, "flow.seconds=10 tcp.path_mtu=67", NULL);
	assert_true(isnan(e.ceiling.most));
	assert_has(e.ceiling_text, "not known: the MTU");
}

TEST_MAIN()
