/* Rules: judge_*() calls found(), which counts if it applies: all facts that it needs are known. */
#include "out/preflight_rules.h"

#include <math.h>
#include <string.h>

#include "base/cpulist.h"
#include "base/text.h"
#include "out/explain/rules.h"

enum {
	WAKE_US = 20,         /* acceptable time of an idle processor to wake up */
	COALESCE_US = 20,     /* acceptable delay of an interrupt */
	FEW_PACKETS = 100,    /* other packets a second that are negligible */
	MANY_PACKETS = 1000,  /* and that disturb */
	SMALL_GSO = 65536,    /* bytes that every kernel supports */
	LARGEST_IPV4 = 65535, /* bytes of a packet */
	GUESSED_US = 1000     /* round trip, if it is not known */
};
static const double good_rate_bps = 10e9; /* that settings should allow, if no rate is known */

/* A number among the host's facts, without which the rule does not apply. */
static double
fact(struct np_preflight *p, const char *name)
{
	double v = np_bag_number(p->host, name);

	p->applies = p->applies && !isnan(v);
	return v;
}

/* The same of a text. */
static const char *
word(struct np_preflight *p, const char *name)
{
	const char *text = np_bag_string(p->host, name);

	p->applies = p->applies && text != NULL;
	return text != NULL ? text : "";
}

/* Set the level and the state that a rule found. */
static void __attribute__((format(printf, 3, 4)))
found(struct np_preflight *p, enum np_preflight_level level, const char *fmt, ...)
{
	va_list args;

	p->level = level;
	p->state = p->text;
	va_start(args, fmt);
	vsnprintf(p->text, sizeof(p->text), fmt, args);
	va_end(args);
}

static enum np_preflight_level
level_if(bool warn, bool look)
{
	return warn ? NP_PREFLIGHT_WARN : look ? NP_PREFLIGHT_LOOK : NP_PREFLIGHT_OK;
}

static void
judge_governor(struct np_preflight *p)
{
	const char *name = word(p, "host.cpu.governor");

	found(p, level_if(strcmp(name, "performance") != 0, false), "%s", name);
}

static void
judge_idle_states(struct np_preflight *p)
{
	const char *states = word(p, "host.cpu.idle_states");
	double us = fact(p, "host.cpu.idle_latency_us");

	found(p, level_if(false, us > WAKE_US), "%s, up to %.0f us to wake up", states, us);
}

static void
judge_hypervisor(struct np_preflight *p)
{
	const char *name = word(p, "host.hypervisor");

	found(p, level_if(false, strcmp(name, "none") != 0), "%s", name);
}

static void
judge_steal(struct np_preflight *p)
{
	double share = fact(p, "host.cpu.steal_share");

	found(p, level_if(share >= 0.05, share >= 0.005), "%.1f %% of the time since boot",
	      share * 100);
}

static void
judge_clock(struct np_preflight *p)
{
	/* Clocks that are read without a system call; the second kind under a hypervisor. */
	static const char *const fast[] = { "tsc", "arch_sys_counter", "timebase", "tod",
					    "riscv_clocksource" };
	static const char *const fair[] = { "kvm-clock", "hyperv_clocksource_tsc_page" };
	const char *name = word(p, "host.clocksource");
	bool is_fast = NP_TEXT_ONE_OF(name, fast), is_fair = NP_TEXT_ONE_OF(name, fair);

	found(p, level_if(!is_fast && !is_fair, is_fair), "%s", name);
}

static void
judge_load(struct np_preflight *p)
{
	double load = fact(p, "host.load"), cpus = fact(p, "host.cpu.count");

	found(p, level_if(load >= cpus, load > 0 && 2 * load >= cpus),
	      "%.0f threads want to run on %.0f processors", load, cpus);
}

static void
judge_link(struct np_preflight *p)
{
	double up = fact(p, "host.nic.up");
	const char *name = np_bag_string(p->host, "host.nic.name");

	found(p, level_if(up == 0, false), "%s is %s", name != NULL ? name : "it",
	      up != 0 ? "up" : "down");
}

static void
judge_speed(struct np_preflight *p)
{
	double near = fact(p, "host.nic.speed_mbps");
	double far = np_bag_number(p->peer, "host.nic.speed_mbps");
	const char *duplex = np_bag_string(p->host, "host.nic.duplex");
	char other[64] = "";
	bool half = duplex != NULL && strcmp(duplex, "half") == 0;
	bool differ = !isnan(far) && far != near;

	if (differ) {
		snprintf(other, sizeof(other), ", the other end's %s",
			 np_rate_words(far * 1e6).text);
	}
	found(p, level_if(half, differ), "%s%s%s%s", np_rate_words(near * 1e6).text,
	      duplex != NULL ? ", duplex " : "", duplex != NULL ? duplex : "", other);
}

static void
judge_mtu(struct np_preflight *p)
{
	double near = fact(p, "host.nic.mtu"), far = np_bag_number(p->peer, "host.nic.mtu");

	if (isnan(far) || near == far) {
		found(p, NP_PREFLIGHT_OK, "%.0f%s", near, isnan(far) ? "" : " at both ends");
	} else {
		found(p, NP_PREFLIGHT_WARN, "%.0f, the other end's %.0f", near, far);
	}
}

static void
judge_path_mtu(struct np_preflight *p)
{
	double path = fact(p, "host.path_mtu"), mtu = fact(p, "host.nic.mtu");
	double most = mtu < LARGEST_IPV4 ? mtu : LARGEST_IPV4; /* lo's MTU is larger */

	found(p, level_if(path < most, false), "%.0f, the interface's %.0f", path, mtu);
}

/* Does a comma-separated list contain a word? */
static bool
list_has(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; at != NULL; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0')) {
			return true;
		}
	}
	return false;
}

/* Judge switches, facts with that prefix: 0 is off. Those in the list `fixed` can't be changed. */
static void
judge_switches(struct np_preflight *p, const char *prefix, const char *const *names, size_t count,
	       const char *fixed)
{
	char off[sizeof(p->text)] = "", full[NP_BAG_NAME];
	bool any = false, can_change = false;
	size_t len = 0;

	for (size_t i = 0; i < count; i++) {
		double on;

		snprintf(full, sizeof(full), "%s%s", prefix, names[i]);
		on = np_bag_number(p->host, full);
		any = any || !isnan(on);
		if (on == 0) {
			bool is_fixed = list_has(fixed, names[i]);

			can_change = can_change || !is_fixed;
			len = np_text_add(off, sizeof(off), len, "%s%s%s",
					  len > 0 ? ", " : "off: ", names[i],
					  is_fixed ? " (not supported)" : "");
		}
	}
	p->applies = any;
	found(p, level_if(can_change, len > 0), "%s", len > 0 ? off : "on");
}

static void
judge_offloads(struct np_preflight *p)
{
	static const char *const names[] = {
		"tso", "gso", "gro", "sg", "rx-checksum", "tx-checksum"
	};

	judge_switches(p, "host.nic.offload.", names, sizeof(names) / sizeof(names[0]),
		       np_bag_string(p->host, "host.nic.offloads_fixed"));
}

static void
judge_ring(struct np_preflight *p)
{
	double rx = fact(p, "host.nic.ring.rx"), rx_max = fact(p, "host.nic.ring.rx_max");
	double tx = np_bag_number(p->host, "host.nic.ring.tx"),
	       tx_max = fact(p, "host.nic.ring.tx_max");

	p->applies = p->applies && rx_max + tx_max > 0;
	found(p, level_if(false, rx < rx_max || tx < tx_max),
	      "%.0f of %.0f to receive, %.0f of %.0f to send", rx, rx_max, tx, tx_max);
}

static void
judge_coalescing(struct np_preflight *p)
{
	double us = fact(p, "host.nic.coalesce.rx_usecs");
	bool adaptive = np_bag_number(p->host, "host.nic.coalesce.adaptive_rx") == 1;

	found(p, level_if(false, adaptive || us > COALESCE_US), "%.0f us%s", us,
	      adaptive ? ", adaptive" : "");
}

static void
judge_qdisc(struct np_preflight *p)
{
	static const char *const plain[] = { "noqueue",    "mq",     "fq",    "fq_codel",
					     "pfifo_fast", "mqprio", "pfifo", "bfifo" };
	const char *kind = word(p, "host.nic.qdisc");
	double bps = np_bag_number(p->host, "host.nic.qdisc.rate_bps");

	if (bps > 0) {
		found(p, NP_PREFLIGHT_WARN, "%s, at most %s", kind, np_rate_words(bps).text);
	} else {
		found(p, level_if(false, !NP_TEXT_ONE_OF(kind, plain)), "%s", kind);
	}
}

static void
judge_gso(struct np_preflight *p)
{
	double size = fact(p, "host.nic.gso_max_size"), segs = fact(p, "host.nic.gso_max_segs");

	found(p, level_if(false, size < SMALL_GSO || segs < 64), "up to %.0f bytes, %.0f segments",
	      size, segs);
}

static void
judge_queues(struct np_preflight *p)
{
	double rx = fact(p, "host.nic.queues.rx"), tx = fact(p, "host.nic.queues.tx");
	double cpus = fact(p, "host.cpu.count");

	(void)word(p, "host.nic.bus"); /* not of software, such as veth */
	found(p, level_if(false, rx < 2 && cpus >= 4),
	      "%.0f to receive, %.0f to send, %.0f processors", rx, tx, cpus);
}

/* Must the process share all its processors with interrupts? Not if each has two to choose from. */
static void
judge_irq_cpus(struct np_preflight *p)
{
	const char *irqs = word(p, "host.nic.irq_cpus");
	const char *task = word(p, "host.task.cpus");
	struct np_cpulist of_irqs = { 0 }, of_task = { 0 };
	bool apart = false;
	unsigned task_cpus = 0, irq_cpus = 0;

	if (!np_cpulist_add(&of_irqs, irqs) || !np_cpulist_add(&of_task, task)) {
		return;
	}
	for (unsigned cpu = 0; cpu < NP_CPULIST_MOST; cpu++) {
		apart = apart || (np_cpulist_has(&of_task, cpu) && !np_cpulist_has(&of_irqs, cpu));
		task_cpus += np_cpulist_has(&of_task, cpu);
		irq_cpus += np_cpulist_has(&of_irqs, cpu);
	}
	found(p, level_if(false, !apart && (task_cpus < 2 || irq_cpus < 2)),
	      "interrupts on %s, this process on %s", irqs, task);
}

static void
judge_irqbalance(struct np_preflight *p)
{
	double runs = fact(p, "host.irqbalance");

	found(p, level_if(false, runs != 0), "%s", runs != 0 ? "runs" : "does not run");
}

static void
judge_others(struct np_preflight *p)
{
	double rate = fact(p, "host.nic.other_packets_per_s");

	found(p, level_if(rate >= MANY_PACKETS, rate >= FEW_PACKETS), "%.0f packets/s", rate);
}

static void
judge_congestion(struct np_preflight *p)
{
	static const char *const usual[] = { "cubic", "bbr" };
	const char *near = word(p, "host.tcp.congestion");
	const char *far = np_bag_string(p->peer, "host.tcp.congestion");

	if (far != NULL && strcmp(near, far) != 0) {
		found(p, NP_PREFLIGHT_LOOK, "%s, the other end's %s", near, far);
	} else {
		found(p, level_if(false, !NP_TEXT_ONE_OF(near, usual)), "%s", near);
	}
}

static void
judge_tcp_options(struct np_preflight *p)
{
	static const char *const names[] = { "window_scaling", "sack", "timestamps" };

	judge_switches(p, "host.tcp.", names, sizeof(names) / sizeof(names[0]), NULL);
}

/* Is what a setting of `bytes` allows in flight, `data`, enough? by_default: without -s and -S. */
static void
judge_memory(struct np_preflight *p, double bytes, double data, bool by_default)
{
	double rtt_s = p->rtt_s > 0 ? p->rtt_s : GUESSED_US / 1e6;
	double allows_bps = data * 8 / rtt_s;
	double wanted_bps = p->rate_bps > 0 ? p->rate_bps : good_rate_bps;
	bool is_little = !(allows_bps >= wanted_bps);

	found(p, level_if(is_little && p->rate_bps > 0 && by_default, is_little),
	      "%.0f bytes: enough for %s at %s RTT%s%s%s", bytes, np_rate_words(allows_bps).text,
	      np_time_words(rtt_s * 1e6).text, p->rtt_s > 0 ? "" : " (assumed)",
	      p->rate_bps > 0 ? ", the link has " : "",
	      p->rate_bps > 0 ? np_rate_words(p->rate_bps).text : "");
}

/* Limits tests without -s and -S. Half of it is overhead (tcp(7), tcp_adv_win_scale). */
static void
judge_tcp_memory(struct np_preflight *p)
{
	struct np_bag_item it; /* least, default, largest */
	double bytes;

	p->applies = np_bag_list(p->host, p->needs, NP_BAG_INTS, &it) > 2;
	bytes = p->applies ? np_bag_value(&it, 2) : 0;
	judge_memory(p, bytes, bytes / 2, true);
}

/* Limits only -s and -S. The kernel doubles these (socket(7)), so all of the setting is data. */
static void
judge_core_memory(struct np_preflight *p)
{
	double bytes = fact(p, p->needs);

	judge_memory(p, bytes, bytes, false);
}

/* In a remedy, DEV is replaced by the interface. */
static const struct rule {
	const char *name;
	const char *needs; /* the facts that it needs, separated by commas */
	void (*judge)(struct np_preflight *p);
	const char *why, *remedy;
} rules[] = {
	{ "governor", "host.cpu.governor", judge_governor,
	  "processors change their clock rate with the load, so results vary and are lower",
	  "cpupower frequency-set -g performance" },
	{ "idle-states", "host.cpu.idle_states", judge_idle_states,
	  "a processor in deep sleep takes that long to wake up, which adds to the latency",
	  "cpupower idle-set -D 10, or hold /dev/cpu_dma_latency open during the test" },
	{ "hypervisor", "host.hypervisor", judge_hypervisor,
	  "other virtual machines share processors and network, so results vary with their load",
	  "repeat at different times, and compare results of one run only" },
	{ "steal", "host.cpu.steal_share", judge_steal,
	  "the hypervisor gave this time to other machines, and packets waited meanwhile",
	  "use another machine, or dedicated processors" },
	{ "clock-source", "host.clocksource", judge_clock,
	  "the test reads the clock for each transaction, and this clock is slow to read",
	  "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource" },
	{ "load", "host.load", judge_load, "other programs use the processors that the test needs",
	  "stop other programs, or bind to a processor (-T)" },
	{ "link", "host.nic.up", judge_link, "an interface that is down carries no packets",
	  "ip link set DEV up, and check the cable" },
	{ "speed", "host.nic.speed_mbps", judge_speed,
	  "the slower end, or a half-duplex link, is the limit",
	  "ethtool DEV, and check the switch's port" },
	{ "mtu", "host.nic.mtu", judge_mtu,
	  "larger packets of one end are lost, or limited to the smaller MTU",
	  "ip link set DEV mtu N at one end" },
	{ "path-mtu", "host.path_mtu,host.nic.mtu", judge_path_mtu,
	  "the path carries only smaller packets: more headers, and loss if a router does not "
	  "report it",
	  "find the place with tracepath, or set the MTU of DEV to this value" },
	{ "offloads", "host.nic.offload", judge_offloads,
	  "the processor splits, joins or checksums each segment itself",
	  "ethtool -K DEV tso on gso on gro on sg on rx on tx on" },
	{ "ring", "host.nic.ring", judge_ring, "a burst that finds the ring full is lost",
	  "ethtool -G DEV rx N tx N, up to the maximum" },
	{ "coalescing", "host.nic.coalesce", judge_coalescing,
	  "packets wait for a common interrupt, which adds to the latency, and varies if adaptive",
	  "for latency: ethtool -C DEV adaptive-rx off rx-usecs 0" },
	{ "qdisc", "host.nic.qdisc", judge_qdisc,
	  "a shaper limits the rate, or a queue treats flows differently",
	  "compare figures with its rate if it is there on purpose (tc qdisc show dev DEV)" },
	{ "gso-max", "host.nic.gso_max_size", judge_gso,
	  "the kernel passes smaller packets to the interface, which costs more processor time",
	  "ip link set DEV gso_max_size 65536 gso_max_segs 65535" },
	{ "queues", "host.nic.queues.rx", judge_queues,
	  "one processor serves each queue: the other processors cannot help",
	  "ethtool -L DEV combined N" },
	{ "irq-cpus", "host.nic.irq_cpus,host.task.cpus", judge_irq_cpus,
	  "interrupts take processor time from the tested process",
	  "use different processors: -T, and /proc/irq/N/smp_affinity_list" },
	{ "irqbalance", "host.irqbalance", judge_irqbalance,
	  "interrupts may move to other processors during a test",
	  "systemctl stop irqbalance during the test" },
	{ "other-traffic", "host.nic.other_packets_per_s", judge_others,
	  "other traffic shares the interface with the test", "stop the programs that send it" },
	{ "congestion", "host.tcp.congestion", judge_congestion,
	  "results of different congestion controls cannot be compared", "-- -K cubic,cubic" },
	{ "tcp-options", "host.tcp.window_scaling", judge_tcp_options,
	  "windows stay below 64 KiB, or recovery from loss takes longer",
	  "sysctl -w net.ipv4.tcp_OPTION=1" },
	{ "tcp-rmem", "host.tcp.rmem", judge_tcp_memory,
	  "the receive window cannot grow to the data in flight",
	  "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 N\"" },
	{ "tcp-wmem", "host.tcp.wmem", judge_tcp_memory,
	  "a sender cannot have more than that in flight",
	  "sysctl -w net.ipv4.tcp_wmem=\"4096 16384 N\"" },
	{ "rmem-max", "host.core.rmem_max", judge_core_memory,
	  "-s and -S get no larger receive buffers, also for UDP",
	  "sysctl -w net.core.rmem_max=N" },
	{ "wmem-max", "host.core.wmem_max", judge_core_memory,
	  "-s and -S get no larger send buffers", "sysctl -w net.core.wmem_max=N" },
};
enum { RULES = sizeof(rules) / sizeof(rules[0]) };

const char *
np_preflight_rule(size_t i)
{
	return i < RULES ? rules[i].name : NULL;
}

/* Set the remedy, with the name of the interface for DEV, if it is known. */
static void
set_remedy(struct np_preflight *p, const char *remedy)
{
	const char *device = np_bag_string(p->host, "host.nic.name"), *dev;
	size_t len = 0;

	for (; device != NULL && (dev = strstr(remedy, "DEV")) != NULL; remedy = dev + 3) {
		len = np_text_add(p->mend, sizeof(p->mend), len, "%.*s%s", (int)(dev - remedy),
				  remedy, device);
	}
	np_text_add(p->mend, sizeof(p->mend), len, "%s", remedy);
	p->remedy = p->mend;
}

/* Why a rule that found nothing can't judge: a fact is unread. NULL: the rule does not apply. */
static const char *
why_not(const struct np_bag *host, const struct rule *r)
{
	for (const char *at = r->needs; *at != '\0';) {
		size_t len = strcspn(at, ",");
		char name[NP_BAG_NAME];
		struct np_bag_item it;

		snprintf(name, sizeof(name), "%.*s", (int)len, at);
		if (!np_bag_find(host, name, &it)) {
			return NULL;
		}
		if (it.kind == NP_BAG_UNREAD) {
			return it.text;
		}
		at += len + (at[len] == ',');
	}
	return NULL;
}

bool
np_preflight_next(struct np_preflight *p)
{
	struct np_bag_item it;

	p->why = p->remedy = NULL;
	while (p->next < RULES) {
		const struct rule *r = &rules[p->next++];

		p->name = r->name;
		p->needs = r->needs;
		p->state = NULL;
		p->applies = true;
		r->judge(p);
		if (p->applies && p->state != NULL) {
			if (p->level != NP_PREFLIGHT_OK) {
				p->why = r->why;
				set_remedy(p, r->remedy);
			}
			return true;
		}
		p->level = NP_PREFLIGHT_UNREAD;
		p->state = why_not(p->host, r);
		if (p->state != NULL) {
			return true;
		}
	}
	/* Unread facts that no rule needs. */
	while (np_bag_at(p->host, p->next - RULES, &it)) {
		bool is_reported = it.kind != NP_BAG_UNREAD;

		p->next++;
		for (size_t r = 0; r < RULES && !is_reported; r++) {
			is_reported = list_has(rules[r].needs, it.name);
		}
		if (!is_reported) {
			p->level = NP_PREFLIGHT_UNREAD;
			p->name = it.name;
			p->state = it.text;
			return true;
		}
	}
	p->next = 0;
	return false;
}

void
np_preflight_summary(FILE *out, const char *which, struct np_preflight *p)
{
	unsigned count[NP_PREFLIGHT_UNREAD + 1] = { 0 };
	char warned[256] = ""; /* names of warnings: " (governor, load" */

	while (np_preflight_next(p)) {
		count[p->level]++;
		if (p->level == NP_PREFLIGHT_WARN) {
			np_text_add(warned, sizeof(warned), strlen(warned), "%s%s",
				    warned[0] != '\0' ? ", " : " (", p->name);
		}
	}
	np_text_line(out, "summary: %s: %u warn%s%s, %u look, %u ok, %u unread", which,
		     count[NP_PREFLIGHT_WARN], warned, warned[0] != '\0' ? ")" : "",
		     count[NP_PREFLIGHT_LOOK], count[NP_PREFLIGHT_OK], count[NP_PREFLIGHT_UNREAD]);
}

static const char *
or_unknown(const char *text)
{
	return text != NULL ? text : "?";
}

void
np_preflight_print(FILE *out, const char *which, struct np_preflight *p)
{
	static const char *const words[] = { "ok", "look", "warn", "unread" };
	const struct np_bag *host = p->host;
	const char *device = np_bag_string(host, "host.nic.name");
	const char *driver = device != NULL ? np_bag_string(host, "host.nic.driver") : NULL;

	np_text_line(out, "%s: %s, kernel %s, %s, %.0f x %s%s%s%s%s%s", which,
		     or_unknown(np_bag_string(host, "host.name")),
		     or_unknown(np_bag_string(host, "host.kernel")),
		     or_unknown(np_bag_string(host, "host.program")),
		     np_bag_number(host, "host.cpu.count"),
		     or_unknown(np_bag_string(host, "host.cpu.model")), device != NULL ? ", " : "",
		     device != NULL ? device : "", driver != NULL ? " (" : "",
		     driver != NULL ? driver : "", driver != NULL ? ")" : "");
	while (np_preflight_next(p)) {
		bool more = p->why != NULL;

		np_text_line(out, "%-6s %-6s %s: %s%s%s%s%s", words[p->level], which, p->name,
			     p->state, more ? " | " : "", more ? p->why : "", more ? " | " : "",
			     more ? p->remedy : "");
	}
}
