/*
 * Bytes of others at an interface: what is left of its counters when the test's own are taken away,
 * by the ways in which interfaces count. Most figures are of tests that were run.
 */
#include "run/foreign.h"

#include "tests/lib/bags.h"
#include "tests/lib/check.h"

static const struct np_link ethernet = { .header = 14, .mtu = 1500 };
static const struct np_link bare = { .header = 0, .mtu = 65535 };

enum { NONE = -1, UNREAD = -2 };

static void
assert_told(const struct np_bag *b, const char *name, double want)
{
	struct np_bag_item it;
	bool is_there = np_bag_find(b, name, &it);

	if (want == NONE) {
		assert_false(is_there);
	} else if (want == UNREAD) {
		assert_true(is_there && it.kind == NP_BAG_UNREAD);
	} else {
		assert_true(is_there);
		fail_if((double)it.i < want * 0.99 || (double)it.i > want * 1.01,
			"%s is %lld, not %g", name, (long long)it.i, want);
	}
}

#define VETH "flow.protocol='TCP' flow.device='v0' flow.family=4 tcp.timestamps=1 tcp.mss=1448"
#define SENT                                                                                       \
	" tcp.segments_out=731275 tcp.data_segments_out=731272 tcp.bytes_sent=1057030704"          \
	" tcp.segments_in=7379 tcp.data_segments_in=0 tcp.bytes_received=1"                        \
	" moved.nic.rx_packets=7382 moved.nic.rx_bytes=487348"
#define UDP "flow.protocol='UDP' flow.device='v0' flow.family=4"

TEST(what_is_left_is_others)
{
	static const struct {
		const char *what, *words;
		const struct np_link *link;
		double out, in;
	} rows[] = {
		{ "super-packets",
		  VETH SENT " moved.nic.tx_packets=19146 moved.nic.tx_bytes=1058294368", &ethernet,
		  0, 0 },
		{ "the same on a wire",
		  VETH SENT " moved.nic.tx_packets=731300 moved.nic.tx_bytes=1105296504", &ethernet,
		  0, 0 },
		{ "super-packets beside 100 MB of others",
		  VETH SENT " moved.nic.tx_packets=85200 moved.nic.tx_bytes=1158294368", &ethernet,
		  95640000, 0 },
		{ "a wire beside 100 MB of others",
		  VETH SENT " moved.nic.tx_packets=800000 moved.nic.tx_bytes=1205296504", &ethernet,
		  100003000, 0 },
		{ "others alone come in",
		  VETH SENT " moved.nic.tx_packets=19146 moved.nic.tx_bytes=1058294368"
			    " moved.nic.rx_bytes=50487348 moved.nic.rx_packets=40000",
		  &ethernet, 0, 50000334 },
		{ "acknowledgements with holes in them are the test's",
		  VETH SENT " moved.nic.rx_packets=7382 moved.nic.rx_bytes=660000", &ethernet, NONE,
		  0 },
		{ "not by this interface",
		  VETH SENT " moved.nic.tx_packets=100 moved.nic.tx_bytes=10000", &ethernet, UNREAD,
		  0 },
		{ "dropped by a queue here, and sent again",
		  VETH SENT " tcp.retransmitted_segments=60000 tc.out.drops=60000"
			    " moved.nic.tx_packets=671275 moved.nic.tx_bytes=1014400000",
		  &ethernet, 0, 0 },
		{ "others' may hide behind what was dropped",
		  VETH SENT " tcp.retransmitted_segments=60000 tc.out.drops=60000"
			    " moved.nic.tx_packets=731275 moved.nic.tx_bytes=1105300000",
		  &ethernet, UNREAD, 0 },
		{ "lo has both directions in each counter",
		  "flow.protocol='TCP' flow.device='lo' flow.family=4 tcp.timestamps=1 "
		  "tcp.segments_out=21984"
		  " tcp.data_segments_out=21978 tcp.segments_in=21982 tcp.data_segments_in=21978"
		  " tcp.bytes_sent=21978 tcp.bytes_received=21979 moved.nic.tx_packets=43967"
		  " moved.nic.tx_bytes=2330258 moved.nic.rx_packets=43967 "
		  "moved.nic.rx_bytes=2330258",
		  &bare, 0, 0 },
		{ "datagrams, most of which found no room",
		  UDP
		  " flow.sends=0 flow.bytes_sent=0 flow.receives=80899 flow.bytes_received=80899000"
		  " moved.snmp.Udp.RcvbufErrors=64139 moved.nic.rx_packets=145042"
		  " moved.nic.rx_bytes=151129788 moved.nic.tx_packets=2 moved.nic.tx_bytes=812",
		  &ethernet, 0, 0 },
		{ "fragments",
		  UDP " flow.sends=32737 flow.bytes_sent=261896000 flow.receives=0 "
		      "flow.bytes_received=0"
		      " moved.nic.tx_packets=196426 moved.nic.tx_bytes=268836436",
		  &ethernet, 0, NONE },
		{ "fragments whose datagrams lack one",
		  UDP " flow.sends=0 flow.bytes_sent=0 flow.receives=7 flow.bytes_received=458549"
		      " moved.snmp.Ip.ReasmReqds=15685 moved.nic.rx_packets=15690"
		      " moved.nic.rx_bytes=23696357",
		  &ethernet, NONE, UNREAD },
		{ "a blast into a shaper, which dropped it",
		  UDP " flow.sends=100000 flow.bytes_sent=100000000 flow.receives=0"
		      " flow.bytes_received=0 tc.out.drops=90000 moved.nic.tx_packets=10000"
		      " moved.nic.tx_bytes=10420000",
		  &ethernet, 0, NONE },
		{ "a blast beside others",
		  UDP
		  " flow.sends=1000 flow.bytes_sent=1000000 flow.receives=0 flow.bytes_received=0"
		  " moved.nic.tx_packets=3000 moved.nic.tx_bytes=4042000",
		  &ethernet, 3000000, NONE },
		{ "dropped by a policer as they came in",
		  UDP
		  " flow.sends=0 flow.bytes_sent=0 flow.receives=115 flow.bytes_received=7536640"
		  " tc.in.drops=66 moved.nic.rx_packets=185 moved.nic.rx_bytes=12113996",
		  &ethernet, NONE, UNREAD },
		{ "far more of others than a policer dropped",
		  UDP
		  " flow.sends=0 flow.bytes_sent=0 flow.receives=115 flow.bytes_received=7536640"
		  " tc.in.drops=66 moved.nic.rx_packets=90185 moved.nic.rx_bytes=112113996",
		  &ethernet, NONE, 100e6 },
		{ "a policer that drops segments",
		  VETH SENT " tc.in.drops=480 moved.nic.rx_packets=7862 moved.nic.rx_bytes=1200000",
		  &ethernet, NONE, UNREAD },
		{ "a policer that had nothing to drop of others'", VETH SENT " tc.in.drops=480",
		  &ethernet, NONE, 0 },
		{ "joined datagrams, most of which found no room",
		  "flow.protocol='UDP' flow.device='lo' flow.family=4 flow.sends=0 "
		  "flow.bytes_sent=0 "
		  "flow.receives=3361472 flow.bytes_received=3361472000 "
		  "engine.joined_receives=52523"
		  " moved.snmp.Udp.RcvbufErrors=54249 moved.nic.rx_packets=106777"
		  " moved.nic.rx_bytes=6836398460 moved.nic.tx_packets=106777"
		  " moved.nic.tx_bytes=6836398460",
		  &bare, UNREAD, UNREAD },
		{ "a reader that read none of them",
		  UDP " flow.sends=0 flow.bytes_sent=0 flow.receives=0 flow.bytes_received=0"
		      " moved.snmp.Udp.RcvbufErrors=64139 moved.nic.rx_packets=64142"
		      " moved.nic.rx_bytes=66833000",
		  &ethernet, NONE, UNREAD },
		{ "connections that come and go",
		  "flow.protocol='TCP' flow.device='v0' flow.family=4 moved.nic.tx_packets=3000"
		  " moved.nic.tx_bytes=4042000",
		  &ethernet, NONE, NONE },
		{ "frames without IP",
		  "flow.protocol='DLCL' flow.device='v0' flow.family=0 flow.sends=1000 "
		  "flow.bytes_sent=1000000"
		  " moved.nic.tx_packets=3000 moved.nic.tx_bytes=4042000",
		  &ethernet, NONE, NONE },
		{ "no interface", "flow.protocol='TCP' flow.device='' " SENT, &ethernet, NONE,
		  NONE },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		FREED_BY(free_bag) struct np_bag *b = bag_of("%s", rows[i].words);

		printf("%s\n", rows[i].what);
		np_foreign_put(b, rows[i].link, 0);
		assert_told(b, "foreign.out_bytes", rows[i].out);
		assert_told(b, "foreign.in_bytes", rows[i].in);
	}
}

TEST(what_may_be_of_a_warm_up_is_not_told)
{
	static const struct {
		double edge, out;
	} rows[] = { { 0, 95640000 }, { 0.05, 95640000 }, { 0.1, 0 } };

	for (size_t i = 0; i < LEN(rows); i++) {
		FREED_BY(free_bag)
		struct np_bag *b =
		    bag_of(VETH SENT " moved.nic.tx_packets=85200 moved.nic.tx_bytes=1158294368");

		np_foreign_put(b, &ethernet, rows[i].edge);
		assert_told(b, "foreign.out_bytes", rows[i].out);
	}
}

TEST_MAIN()
