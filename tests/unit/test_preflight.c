/*
 * The rules of --preflight: facts in, findings out.
 */
#include "out/preflight_rules.h"

#include "tests/lib/bags.h"
#include "tests/lib/check.h"

struct looking {
	const char *name;
	int level; /* -1: it did not come up */
	char state[300], remedy[300];
	int all;
};

static void
look(struct np_preflight f, struct looking *l)
{
	while (np_preflight_next(&f)) {
		l->all++;
		assert_non_null(f.name);
		assert_non_null(f.state);
		assert_int_equal(f.why != NULL,
				 f.level == NP_PREFLIGHT_LOOK || f.level == NP_PREFLIGHT_WARN);
		assert_int_equal(f.remedy != NULL, f.why != NULL);
		if (l->name != NULL && strcmp(f.name, l->name) == 0) {
			assert_int_equal(l->level, -1); /* once each */
			l->level = (int)f.level;
			snprintf(l->state, sizeof(l->state), "%s", f.state);
			snprintf(l->remedy, sizeof(l->remedy), "%s",
				 f.remedy != NULL ? f.remedy : "");
		}
	}
}

enum { OK, LOOK, WARN, UNREAD, SILENT = -1 };

/* Each rule: facts of this end, of the other one, and what is to be said of it. */
static const struct {
	const char *rule, *host, *peer;
	int level;
	const char *state;
} cases[] = {
	{ "governor", "host.cpu.governor='performance'", "", OK, "performance" },
	{ "governor", "host.cpu.governor='powersave'", "", WARN, "powersave" },
	{ "governor", "host.cpu.governor='performance,schedutil'", "", WARN, "schedutil" },
	{ "governor", "host.cpu.governor=?", "", UNREAD, "Permission denied" },
	{ "governor", "", "", SILENT, "" },
	{ "idle-states", "host.cpu.idle_states='POLL,C1' host.cpu.idle_latency_us=2", "", OK,
	  "POLL,C1, up to 2 us" },
	{ "idle-states", "host.cpu.idle_states='POLL,C1,C6' host.cpu.idle_latency_us=133", "", LOOK,
	  "133 us" },
	{ "hypervisor", "host.hypervisor='none'", "", OK, "none" },
	{ "hypervisor", "host.hypervisor='KVM'", "", LOOK, "KVM" },
	{ "hypervisor", "host.hypervisor=?", "", UNREAD, "" },
	{ "steal", "host.cpu.steal_share=0.001", "", OK, "0.1 %" },
	{ "steal", "host.cpu.steal_share=0.01", "", LOOK, "1.0 %" },
	{ "steal", "host.cpu.steal_share=0.2", "", WARN, "20.0 %" },
	{ "clock-source", "host.clocksource='tsc'", "", OK, "tsc" },
	{ "clock-source", "host.clocksource='kvm-clock'", "", LOOK, "kvm-clock" },
	{ "clock-source", "host.clocksource='hpet'", "", WARN, "hpet" },
	{ "load", "host.load=0 host.cpu.count=1", "", OK, "0 threads" },
	{ "load", "host.load=2 host.cpu.count=4", "", LOOK, "2 threads" },
	{ "load", "host.load=4 host.cpu.count=4", "", WARN, "4 threads" },
	{ "link", "host.nic.up=1 host.nic.name='eth0'", "", OK, "eth0 is up" },
	{ "link", "host.nic.up=0 host.nic.name='eth0'", "", WARN, "eth0 is down" },
	{ "speed", "host.nic.speed_mbps=10000 host.nic.duplex='full'", "", OK,
	  "10 Gbit/s, duplex full" },
	{ "speed", "host.nic.speed_mbps=10000 host.nic.duplex='full'", "host.nic.speed_mbps=1000",
	  LOOK, "the other end's 1 Gbit/s" },
	{ "speed", "host.nic.speed_mbps=100 host.nic.duplex='half'", "", WARN, "half" },
	{ "speed", "host.nic.speed_mbps=?", "", UNREAD, "" },
	{ "mtu", "host.nic.mtu=1500", "", OK, "1500" },
	{ "mtu", "host.nic.mtu=1500", "host.nic.mtu=1500", OK, "1500 at both ends" },
	{ "mtu", "host.nic.mtu=9000", "host.nic.mtu=1500", WARN, "9000, the other end's 1500" },
	{ "path-mtu", "host.nic.mtu=1500 host.path_mtu=1500", "", OK, "1500" },
	{ "path-mtu", "host.nic.mtu=1500 host.path_mtu=1400", "", WARN, "1400" },
	{ "path-mtu", "host.nic.mtu=65536 host.path_mtu=65535", "", OK, "65535" },
	{ "path-mtu", "host.nic.mtu=1500", "", SILENT, "" },
	{ "path-mtu", "host.nic.mtu=? host.path_mtu=1500", "", UNREAD, "Permission denied" },
	{ "path-mtu", "host.nic.mtu=?", "", SILENT, "" },
	{ "offloads", "host.nic.offload.tso=1 host.nic.offload.gro=1", "", OK, "on" },
	{ "offloads", "host.nic.offload.tso=0 host.nic.offload.gro=0 host.nic.offloads_fixed='lro'",
	  "", WARN, "off: tso, gro" },
	{ "offloads", "host.nic.offload.tso=0 host.nic.offload.gro=1 host.nic.offloads_fixed='tso'",
	  "", LOOK, "off: tso (not supported)" },
	{ "offloads",
	  "host.nic.offload.tso=0 host.nic.offload.gro=0 host.nic.offloads_fixed='tso6,tso'", "",
	  WARN, "off: tso (not supported), gro" },
	{ "offloads", "host.nic.offload.tso=0 host.nic.offloads_fixed='tso6'", "", WARN,
	  "off: tso" },
	{ "offloads", "host.nic.offload=?", "", UNREAD, "" },
	{ "ring",
	  "host.nic.ring.rx=256 host.nic.ring.rx_max=256 host.nic.ring.tx=9 host.nic.ring.tx_max=9",
	  "", OK, "256 of 256" },
	{ "ring",
	  "host.nic.ring.rx=256 host.nic.ring.rx_max=4096 host.nic.ring.tx=9 "
	  "host.nic.ring.tx_max=9",
	  "", LOOK, "256 of 4096" },
	{ "ring", "host.nic.ring=?", "", UNREAD, "" },
	{ "coalescing", "host.nic.coalesce.rx_usecs=0 host.nic.coalesce.adaptive_rx=0", "", OK,
	  "0 us" },
	{ "coalescing", "host.nic.coalesce.rx_usecs=8 host.nic.coalesce.adaptive_rx=1", "", LOOK,
	  "8 us, adaptive" },
	{ "coalescing", "host.nic.coalesce.rx_usecs=50 host.nic.coalesce.adaptive_rx=0", "", LOOK,
	  "50 us" },
	{ "qdisc", "host.nic.qdisc='fq_codel'", "", OK, "fq_codel" },
	{ "qdisc", "host.nic.qdisc='prio'", "", LOOK, "prio" },
	{ "qdisc", "host.nic.qdisc='tbf' host.nic.qdisc.rate_bps=100e6", "", WARN,
	  "tbf, at most 100 Mbit/s" },
	{ "qdisc", "host.nic.qdisc='tbf' host.nic.qdisc.rate_bps=999.6e6", "", WARN,
	  "999.6 Mbit/s" },
	{ "gso-max", "host.nic.gso_max_size=65536 host.nic.gso_max_segs=65535", "", OK,
	  "65536 bytes" },
	{ "gso-max", "host.nic.gso_max_size=2000 host.nic.gso_max_segs=1", "", LOOK, "1 segments" },
	{ "queues",
	  "host.nic.queues.rx=1 host.nic.queues.tx=1 host.cpu.count=8 host.nic.bus='0000:00:03.0'",
	  "", LOOK, "1 to receive" },
	{ "queues",
	  "host.nic.queues.rx=8 host.nic.queues.tx=8 host.cpu.count=8 host.nic.bus='0000:00:03.0'",
	  "", OK, "8 to receive" },
	{ "queues", "host.nic.queues.rx=1 host.nic.queues.tx=1 host.cpu.count=8", "", SILENT, "" },
	{ "irq-cpus", "host.nic.irq_cpus='0' host.task.cpus='0-1'", "", OK, "interrupts on 0," },
	{ "irq-cpus", "host.nic.irq_cpus='1' host.task.cpus='1'", "", LOOK, "this process on 1" },
	{ "irq-cpus", "host.nic.irq_cpus='0-1' host.task.cpus='1'", "", LOOK, "on 0-1" },
	{ "irq-cpus", "host.nic.irq_cpus='0-1' host.task.cpus='0-1'", "", OK, "on 0-1" },
	{ "irqbalance", "host.irqbalance=0", "", OK, "does not run" },
	{ "irqbalance", "host.irqbalance=1", "", LOOK, "runs" },
	{ "other-traffic", "host.nic.other_packets_per_s=12", "", OK, "12 packets/s" },
	{ "other-traffic", "host.nic.other_packets_per_s=500", "", LOOK, "500 packets/s" },
	{ "other-traffic", "host.nic.other_packets_per_s=5000", "", WARN, "5000 packets/s" },
	{ "congestion", "host.tcp.congestion='cubic'", "host.tcp.congestion='cubic'", OK, "cubic" },
	{ "congestion", "host.tcp.congestion='cubic'", "host.tcp.congestion='bbr'", LOOK,
	  "cubic, the other end's bbr" },
	{ "congestion", "host.tcp.congestion='reno'", "", LOOK, "reno" },
	{ "tcp-options", "host.tcp.sack=1 host.tcp.timestamps=1 host.tcp.window_scaling=1", "", OK,
	  "on" },
	{ "tcp-options", "host.tcp.sack=0 host.tcp.timestamps=1 host.tcp.window_scaling=0", "",
	  WARN, "off: window_scaling, sack" },
	{ "tcp-rmem", "host.tcp.rmem=[4096,131072,6291456]", "", OK,
	  "6291456 bytes: enough for 25.17 Gbit/s at 1 ms RTT (assumed)" },
	{ "tcp-rmem", "host.tcp.rmem=[4096,131072,262144]", "", LOOK, "1.049 Gbit/s" },
	{ "tcp-wmem", "host.tcp.wmem=[4096,131072,262144]", "", LOOK, "1.049 Gbit/s" },
	{ "tcp-wmem", "host.tcp.wmem=?", "", UNREAD, "" },
	{ "rmem-max", "host.core.rmem_max=212992", "", LOOK,
	  "212992 bytes: enough for 1.704 Gbit/s" },
	{ "wmem-max", "host.core.wmem_max=4194304", "", OK,
	  "4194304 bytes: enough for 33.55 Gbit/s" },
	{ "host.cpu.mhz", "host.cpu.mhz=?", "", UNREAD, "Permission denied" },
	{ "host.path_mtu", "host.path_mtu=?", "", SILENT, "" }, /* its rule says it */
};

TEST(each_rule_says_what_it_should)
{
	for (size_t i = 0; i < LEN(cases); i++) {
		FREED_BY(free_bag)
		struct np_bag *host = bag_of("%s", cases[i].host),
			      *peer = bag_of("%s", cases[i].peer);
		struct looking l = { .name = cases[i].rule, .level = -1 };

		look((struct np_preflight){ .host = host, .peer = peer }, &l);
		fail_if(l.level != cases[i].level || strstr(l.state, cases[i].state) == NULL,
			"%s of %s: level %d, \"%s\"", cases[i].rule, cases[i].host, l.level,
			l.state);
	}
}

/* 10 Gbit/s times 10 ms are 12.5 MB. */
TEST(limits_are_held_against_bandwidth_times_delay)
{
	struct np_bag *host =
	    bag_of("host.tcp.rmem=[4096,131072,6291456] host.tcp.wmem=[4096,16384,33554432] "
		   "host.core.rmem_max=212992");
	struct np_preflight far = { .host = host, .rate_bps = 10e9, .rtt_s = 0.01 };
	struct np_preflight near = { .host = host, .rate_bps = 1e9, .rtt_s = 0.0009996 };
	struct looking l = { .name = "tcp-rmem", .level = -1 };

	look(far, &l);
	assert_int_equal(l.level, WARN);
	assert_string_equal(l.state,
			    "6291456 bytes: enough for 2.517 Gbit/s at 10 ms RTT, the link has "
			    "10 Gbit/s");
	l = (struct looking){ .name = "tcp-wmem", .level = -1 };
	look(far, &l);
	assert_int_equal(l.level, OK);
	l = (struct looking){ .name = "rmem-max", .level = -1 };
	look(far, &l);
	assert_int_equal(l.level, LOOK); /* it limits who asks for a size only */
	l = (struct looking){ .name = "tcp-rmem", .level = -1 };
	look(near, &l);
	assert_int_equal(l.level, OK);
	assert_non_null(strstr(l.state, " at 1 ms RTT,"));
	np_bag_free(host);
}

TEST(a_mend_names_the_interface)
{
	FREED_BY(free_bag)
	struct np_bag *host = bag_of("host.nic.name='enp3s0' host.nic.offload.tso=0");
	struct looking l = { .name = "offloads", .level = -1 };

	look((struct np_preflight){ .host = host }, &l);
	assert_int_equal(l.level, WARN);
	assert_has(l.remedy, "ethtool -K enp3s0 tso on");
}

TEST(nothing_known_is_nothing_said)
{
	struct looking l = { .name = NULL };

	look((struct np_preflight){ .host = NULL }, &l);
	assert_int_equal(l.all, 0);
}

TEST(lines_are_for_scripts_and_people)
{
	struct np_bag *host =
	    bag_of("host.name='here' host.kernel='6.1' host.program='X' host.cpu.count=2 "
		   "host.cpu.model='M' host.nic.name='eth0' host.nic.driver='virtio_net' "
		   "host.cpu.governor='powersave' host.clocksource='tsc' host.cpu.mhz=?");
	struct np_preflight end = { .host = host };
	FREED_BY(free_memory) char *text = NULL;
	assert_writes(
	    out, np_preflight_print(out, "local", &end),
	    "local: here, kernel 6.1, X, 2 x M, eth0 (virtio_net)\n"
	    "warn   local  governor: powersave | processors change their clock rate with the "
	    "load, so results vary and are lower | cpupower frequency-set -g performance\n"
	    "ok     local  clock-source: tsc\n"
	    "unread local  host.cpu.mhz: Permission denied\n");
	assert_writes(out, np_preflight_summary(out, "local", &end),
		      "summary: local: 1 warn (governor), 0 look, 1 ok, 1 unread\n");
	np_bag_free(host);
	host = bag_of("host.nic.qdisc='tbf' host.nic.qdisc.rate_bps=100e6 host.nic.name='lab0'");
	end.host = host;
	text = WRITTEN(out, np_preflight_print(out, "local", &end));
	assert_has(text, "with its rate if it is there on purpose (tc qdisc show dev lab0)");
	np_bag_free(host);
}

/* The far end's words, on a terminal of whatever character set. */
TEST(lines_are_printable_ascii)
{
	FREED_BY(free_bag) struct np_bag *host = np_bag_new();
	FREED_BY(free_memory) char *text = NULL;
	struct np_preflight end = { .host = host };

	np_bag_text(host,
		    "\xc4\x9b"
		    "2J",
		    "host.name");
	np_bag_text(host, "\xe2\x80\xae|\xe2\x80\x8b", "host.nic.name");
	np_bag_text(host, "\xc4\x9b", "host.cpu.governor");
	np_bag_unread(host, "\xc4\x9b", "host.cpu.mhz");
	text = WRITTEN(out, np_preflight_print(out, "remote", &end));
	assert_has(text, "remote: ??2J, kernel ");
	assert_has(text, "???|???");
	assert_has(text, "governor: ??");
	assert_has(text, "host.cpu.mhz: ??");
	assert_int_equal(text[strlen(text) - 1], '\n');
	for (size_t i = 0; text[i] != '\0'; i++) {
		assert_true(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
	}
}

TEST_MAIN()
