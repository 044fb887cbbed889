/*
 * Facts of the host: prepared files in a folder that stands for the root, and the machine's own.
 */
#include "sys/host.h"

#include "base/clock.h"
#include "base/cpulist.h"
#include "base/text.h"
#include "sys/cpu.h"
#include "sys/rtnl.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/root.h"
#include "tests/lib/sockets.h"

static struct np_bag *
facts(const char *root, const char *device)
{
	struct np_bag *b = np_bag_new();

	assert_non_null(b);
	np_host_facts(root, device, -1, b);
	assert_int_equal(np_bag_left_out(b), 0);
	return b;
}

TEST_WITH(what_stands_in_files_is_told, root_make, root_remove)
{
	const char *root = *state;
	FREED_BY(free_bag) struct np_bag *b = NULL;

	put_file(root, "/proc/cpuinfo",
		 "processor\t: 0\nmodel name\t: Fast One\ncpu MHz\t\t: 2400.5\n"
		 "flags\t\t: fpu hypervisor-like tsc\n\nprocessor\t: 1\n");
	put_file(root, "/proc/stat", "cpu  1 1 1 1\ncpu0 10 0 10 70 0 0 0 10 0 0\n");
	put_file(root, "/proc/loadavg", "0.00 0.34 2.25 3/110 9441\n");
	put_file(root, "/proc/1/comm", "init\n");
	put_file(root, "/proc/77/comm", "irqbalance\n");
	put_file(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
	put_file(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1200000\n");
	put_file(root, "/sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL\n");
	put_file(root, "/sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0\n");
	put_file(root, "/sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1\n");
	put_file(root, "/sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2\n");
	put_file(root, "/sys/devices/system/cpu/cpu0/cpuidle/state2/name", "C6\n");
	put_file(root, "/sys/devices/system/cpu/cpu0/cpuidle/state2/latency", "133\n");
	put_file(root, "/sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "1\n");
	put_file(root, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		 "hpet\n");
	put_file(root, "/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
	put_file(root, "/proc/sys/net/ipv4/tcp_congestion_control", "cubic\n");
	put_file(root, "/proc/sys/net/core/rmem_max", "212992\n");
	put_link(root, "/sys/class/net/eth9/device", "../../../0000:05:00.1");
	put_file(root, "/sys/0000:05:00.1/msi_irqs/51", "msix\n");
	put_file(root, "/sys/class/net/eth9/mtu", "9000\n");
	put_file(root, "/sys/class/net/eth9/queues/rx-0/x", "");
	put_file(root, "/sys/class/net/eth9/queues/rx-1/x", "");
	put_file(root, "/sys/class/net/eth9/queues/tx-0/x", "");
	put_file(root, "/sys/class/net/eth9/statistics/rx_packets", "5\n");
	put_file(root, "/sys/class/net/eth9/statistics/tx_packets", "5\n");
	put_file(root, "/proc/interrupts",
		 "     CPU0\n 50: 1 PCI-MSI 7-edge other\n 51: 2 PCI-MSI renamed-rx-0\n"
		 " 52: 2 PCI-MSI comp@pci:0000:05:00.1\n");
	put_file(root, "/proc/irq/50/smp_affinity_list", "9\n");
	put_file(root, "/proc/irq/51/effective_affinity_list", "2\n");
	put_file(root, "/proc/irq/51/smp_affinity_list", "0-7\n");
	put_file(root, "/proc/irq/52/smp_affinity_list", "3,6-7\n");

	b = facts(root, "eth9");
	assert_bag(b, "host.cpu.",
		   "model='Fast One' governor='powersave' idle_states='POLL,C1' idle_latency_us=2 "
		   "mhz=1200 steal_share=0.1");
	assert_bag(b, "host.", "hypervisor='none' load=2 irqbalance=1 clocksource='hpet'");
	assert_bag(b, "host.nic.",
		   "name='eth9' mtu=9000 queues.rx=2 queues.tx=1 irq_cpus='2-3,6-7' "
		   "other_packets_per_s=0");
	assert_bag(b, "host.",
		   "tcp.congestion='cubic' core.rmem_max=212992 tcp.rmem=[4096,131072,6291456]");
	assert_bag(b, "host.",
		   "tcp.wmem=?'/proc/sys/net/ipv4/tcp_wmem: ' clocksource_available=?'%s'",
		   strerror(ENOENT));
}

/* All odd processors of 256: a list of 454 bytes. */
TEST_WITH(long_lists_of_processors_are_read, root_make, root_remove)
{
	const char *root = *state;
	FREED_BY(free_bag) struct np_bag *b = NULL;
	char odd[1024];
	size_t len = 0;

	for (int cpu = 1; cpu < 256; cpu += 2) {
		len = np_text_add(odd, sizeof(odd), len, len > 0 ? ",%d" : "%d", cpu);
	}
	put_link(root, "/sys/class/net/eth9/device", "../../../0000:05:00.1");
	put_file(root, "/proc/interrupts", "     CPU0\n 51: 2 PCI-MSI eth9-rx-0\n");
	put_file(root, "/proc/irq/51/smp_affinity_list", odd);
	b = facts(root, "eth9");
	assert_bag(b, "host.nic.", "irq_cpus='%s'", odd);
}

/* Without SMT every other processor is offline, and the first one may be, too. */
TEST_WITH(numbers_of_processors_may_have_gaps, root_make, root_remove)
{
	const char *root = *state;
	FREED_BY(free_bag) struct np_bag *b = NULL;

	put_file(root, "/sys/devices/system/cpu/online", "2,4-5\n");
	put_file(root, "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n");
	put_file(root, "/sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "1300000\n");
	put_file(root, "/sys/devices/system/cpu/cpu2/cpuidle/state0/name", "C9\n");
	put_file(root, "/sys/devices/system/cpu/cpu4/cpufreq/scaling_governor", "powersave\n");
	put_file(root, "/sys/devices/system/cpu/cpu5/cpufreq/scaling_governor", "performance\n");
	b = facts(root, "");
	assert_bag(b, "host.cpu.", "governor='powersave,performance' idle_states='C9' mhz=1300");
}

TEST_WITH(guests_are_told_from_machines, root_make, root_remove)
{
	static const struct {
		const char *cpuinfo, *vendor, *product, *says, *hypervisor;
	} cases[] = {
		{ "flags\t: fpu hypervisor tsc\n", "QEMU\n", "Standard PC\n",
		  "'unnamed (QEMU Standard PC)'", NULL },
		{ "flags\t: fpu tsc\n", "Amazon EC2\n", "m5.metal\n", "'none'", NULL },
		{ "Features\t: fp asimd\n", "QEMU\n", "KVM Virtual Machine\n",
		  "'unnamed (QEMU KVM Virtual Machine)'", NULL },
		{ "Features\t: fp asimd\n", "Amazon EC2\n", "a1.metal\n", "'none'", NULL },
		{ "Features\t: fp asimd\n", "Ampere\n", "eMAG\n", "'none'", NULL },
		{ "Features\t: fp asimd\n", "", "", "?'says'", NULL },
		{ "Features\t: fp asimd\n", "", "", "'xen'", "xen\n" },
	};
	const char *root = *state;

	for (size_t i = 0; i < LEN(cases); i++) {
		FREED_BY(free_bag) struct np_bag *b;

		put_file(root, "/proc/cpuinfo", cases[i].cpuinfo);
		put_file(root, "/sys/class/dmi/id/sys_vendor", cases[i].vendor);
		put_file(root, "/sys/class/dmi/id/product_name", cases[i].product);
		if (cases[i].hypervisor != NULL) {
			put_file(root, "/sys/hypervisor/type", cases[i].hypervisor);
		}
		b = facts(root, "");
		assert_bag(b, "host.", "hypervisor=%s", cases[i].says);
	}
}

TEST_WITH(what_is_missing_is_named, root_make, root_remove)
{
	static const char *const names[] = {
		"host.cpu.model",       "host.cpu.governor",
		"host.cpu.idle_states", "host.cpu.mhz",
		"host.cpu.steal_share", "host.hypervisor",
		"host.clocksource",     "host.load",
		"host.irqbalance",      "host.tcp.congestion",
		"host.tcp.rmem",        "host.core.wmem_max",
		"host.nic.mtu",         "host.nic.other_packets_per_s"
	};
	FREED_BY(free_bag) struct np_bag *b = facts(*state, "eth9");

	for (size_t i = 0; i < LEN(names); i++) {
		assert_bag(b, "", "%s=?", names[i]);
	}
}

TEST(lists_of_processors)
{
	static const struct {
		const char *text, *again;
		bool good;
	} cases[] = {
		{ "0", "0", true },
		{ "0-3,8", "0-3,8", true },
		{ "8,0-2,1,3", "0-3,8", true },
		{ "", "", false },
		{ "x", "", false },
		{ "3-1", "", false },
		{ "1,", "1", false },
		{ "8191", "8191", true },
		{ "0-8192", "", false },
		{ "4294967296", "", false },
	};
	char text[64];

	for (size_t i = 0; i < LEN(cases); i++) {
		struct np_cpulist l = { 0 };

		assert_int_equal(np_cpulist_add(&l, cases[i].text), cases[i].good);
		assert_string_equal(np_cpulist_text(&l, text, sizeof(text)), cases[i].again);
	}
}

/* In the order of the user's words, and written as briefly as can be. */
TEST(turns_of_processors_are_read_and_written)
{
	static const struct {
		const char *text, *again; /* NULL: no such list */
		uint32_t count;
		int last;
	} cases[] = {
		{ "3", "3", 1, 3 },
		{ "0-3", "0-3", 4, 3 },
		{ "0-3+8", "0-3+8", 5, 8 },
		{ "4+0", "4+0", 2, 0 },
		{ "0+1+2", "0-2", 3, 2 },
		{ "0-7:2", "0-6:2", 4, 6 },
		{ "0+2", "0+2", 2, 2 },
		{ "0-1:7", "0", 1, 0 },
		{ "1+1+0", "1+1+0", 3, 0 },
		{ "8191", "8191", 1, 8191 },
		{ "0-1023", "0-1023", 1024, 1023 },
		{ "0-1024", NULL, 0, 0 },
		{ "8192", NULL, 0, 0 },
		{ "0-99999", NULL, 0, 0 },
		{ "4294967296", NULL, 0, 0 },
		{ "", NULL, 0, 0 },
		{ "3-1", NULL, 0, 0 },
		{ "0-", NULL, 0, 0 },
		{ "-1", NULL, 0, 0 },
		{ "0+", NULL, 0, 0 },
		{ "+0", NULL, 0, 0 },
		{ "0-3:0", NULL, 0, 0 },
		{ "0:2", NULL, 0, 0 },
		{ "0-3,8", NULL, 0, 0 },
		{ " 0", NULL, 0, 0 },
		{ "0x1", NULL, 0, 0 },
	};
	char text[NP_CPU_TURNS_TEXT];

	for (size_t i = 0; i < LEN(cases); i++) {
		struct np_cpu_turns t = { .count = 7 };
		const char *why = np_cpu_turns_parse(&t, cases[i].text);

		fail_if((why == NULL) != (cases[i].again != NULL) || t.count != cases[i].count,
			"'%s': %s, %u", cases[i].text, why != NULL ? why : "read", t.count);
		if (why == NULL) {
			assert_true(np_cpu_turns_text(&t, text, sizeof(text)));
			assert_string_equal(text, cases[i].again);
			assert_int_equal(np_cpu_turn(&t, t.count - 1), cases[i].last);
			assert_int_equal(np_cpu_turn(&t, t.count), t.cpu[0]);
		} else {
			assert_int_equal(np_cpu_turn(&t, 0), -1);
		}
	}
}

TEST(turns_may_begin_elsewhere_and_be_too_long)
{
	struct np_cpu_turns t;
	char text[NP_CPU_TURNS_TEXT] = "x";

	assert_null(np_cpu_turns_parse(&t, "0-3"));
	np_cpu_turns_begin(&t, 6);
	assert_true(np_cpu_turns_text(&t, text, sizeof(text)));
	assert_string_equal(text, "2-3+0-1");
	assert_null(np_cpu_turns_parse(&t, "9+7+5+3+1+0+8191+44+33+22+11+100"));
	assert_false(np_cpu_turns_text(&t, text, sizeof(text)));
	assert_string_equal(text, "");
	t.count = 0;
	np_cpu_turns_begin(&t, 1);
	assert_true(np_cpu_turns_text(&t, text, sizeof(text)));
	assert_string_equal(text, "");
}

/* There is no processor 8191 here; the thread's own set stays. */
TEST(what_cannot_be_had_is_left_out)
{
	struct np_cpulist before, after;
	struct np_cpu_turns t = { .count = 0 };
	int first = 0;

	assert_true(np_cpus_save(&before));
	while (!np_cpulist_has(&before, (unsigned)first)) {
		first++;
	}
	t.cpu[t.count++] = 8191;
	t.cpu[t.count++] = (uint16_t)first;
	t.cpu[t.count++] = 8190;
	assert_int_equal(np_cpus_leave_out(&t), 8191);
	assert_int_equal(t.count, 1);
	assert_int_equal(t.cpu[0], first);
	assert_int_equal(np_cpus_leave_out(&t), -1);
	np_cpus_save(&after);
	assert_memory_equal(&before, &after, sizeof(before));
	if (np_bind_cpu(first, NULL) == NP_OK) {
		assert_int_equal(np_cpu_bound(), first);
	}
	np_cpus_restore(&before);
}

/* By the start of the machine, and by the time namespace, each of which has a clock of its own. */
TEST_WITH(a_clock_has_a_name, root_make, root_remove)
{
	static const struct {
		const char *id, *space, *want;
	} rows[] = {
		{ "62927db6-7211-4f0c-8a3e-2f6ad2b6a3f1\n", "time:[4026531834]",
		  "'62927db6-4026531834'" },
		{ "62927db6-7211-4f0c-8a3e-2f6ad2b6a3f1\n", "time:[4026532561]",
		  "'62927db6-4026532561'" },
		{ "0a000000-7211-4f0c-8a3e-2f6ad2b6a3f1\n", "mnt:[1]", "'0a000000-0'" },
		{ "short\n", "time:[1]", "?'too short'" },
	};
	const char *root = *state;
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();

	np_host_boot(root, b);
	assert_bag(b, "", "clock.boot=?'boot_id: No such file'");
	for (size_t i = 0; i < LEN(rows); i++) {
		char path[512];

		put_file(root, "/proc/sys/kernel/random/boot_id", rows[i].id);
		snprintf(path, sizeof(path), "%s/proc/self/ns/time", root);
		unlink(path);
		put_link(root, "/proc/self/ns/time", rows[i].space);
		np_host_boot(root, b);
		assert_bag(b, "clock.", "boot=%s", rows[i].want);
	}
}

/* Of a connection over lo, and in time: 50 ms is the promise. */
TEST(the_machine_itself)
{
	struct np_addr at;
	uint64_t best = UINT64_MAX;
	FREED_BY(close_fd) int listener = bound_socket(AF_INET, SOCK_STREAM, &at);
	FREED_BY(close_fd) int fd = connected_to(&at);
	int rtnl = np_rtnl_open();

	for (int i = 0; i < 99 && (i < 5 || best >= 50 * NP_MSEC); i++) {
		FREED_BY(free_bag) struct np_bag *b = np_bag_new();
		uint64_t began = np_now(), took;

		np_host_facts("", "lo", fd, b);
		took = np_now() - began;
		best = took < best ? took : best;
		assert_true(np_bag_number(b, "host.cpu.count") >= 1);
		assert_true(np_bag_number(b, "host.path_mtu") >= 1280);
		assert_non_null(np_bag_string(b, "host.kernel"));
		assert_non_null(np_bag_string(b, "host.tcp.congestion"));
		if (rtnl >= 0) {
			assert_true(np_bag_number(b, "host.nic.mtu") >= 1280);
			assert_bag(b, "host.nic.", "qdisc='noqueue'");
			assert_true(np_bag_number(b, "host.nic.other_packets_per_s") >= 0);
		}
	}
	printf("the facts took %.1f ms, the best of some\n", (double)best / 1e6);
	if (!NP_SANITIZED) {
		assert_true(best < 50 * NP_MSEC);
	}
	if (rtnl >= 0) {
		close(rtnl);
	}
}

TEST_MAIN()
