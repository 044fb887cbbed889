/* Rules: judge_*() sets *s and returns true; false: it does not apply, or a fact is not known. */
#include "out/preflight_rules.h"

#include <math.h>
#include <string.h>

#include "base/cpulist.h"
#include "base/text.h"
#include "out/explain/rules.h"

enum {
	STATE = 256,          /* bytes of a text */
	WAKE_US = 20,         /* acceptable time of an idle processor to wake up */
	COALESCE_US = 20,     /* acceptable delay of an interrupt */
	FEW_PACKETS = 100,    /* other packets a second that are negligible */
	MANY_PACKETS = 1000,  /* and that disturb */
	SMALL_GSO = 65536,    /* bytes that every kernel supports */
	LARGEST_IPV4 = 65535, /* bytes of a packet */
	GUESSED_US = 1000     /* round trip, if it is not known */
};
static const double good_rate_bps = 10e9; /* that settings should allow, if no rate is known */

/* What rules judge: the host, its peer and the path between them. */
struct view {
	const struct np_bag *host, *peer;
	double rate_bps, rtt_s; /* 0: not known */
	const char *needs;      /* facts of the current rule */
};

/* What a rule found: np_preflight_finding.state and its level. */
struct state {
	enum np_preflight_level level;
	char text[STATE];
};

/* A number among the host's facts; NAN: not known. */
static double
fact(const struct view *v, const char *name)
{
	return np_bag_number(v->host, name);
}

/* Set the state that a rule found. Returns true. */
static bool __attribute__((format(printf, 3, 4)))
found(struct state *s, enum np_preflight_level level, const char *fmt, ...)
{
	va_list args;

	s->level = level;
	va_start(args, fmt);
	vsnprintf(s->text, sizeof(s->text), fmt, args);
	va_end(args);
	return true;
}

static enum np_preflight_level
ok_unless(bool wrong, enum np_preflight_level level)
{
	return wrong ? level : NP_PREFLIGHT_OK;
}

static bool
judge_governor(const struct view *v, struct state *s)
{
	const char *name = np_bag_string(v->host, "host.cpu.governor");

	return name != NULL &&
	       found(s, ok_unless(strcmp(name, "performance") != 0, NP_PREFLIGHT_WARN), "%s", name);
}

static bool
judge_idle_states(const struct view *v, struct state *s)
{
	const char *states = np_bag_string(v->host, "host.cpu.idle_states");
	double us = fact(v, "host.cpu.idle_latency_us");

	return states != NULL && !isnan(us) &&
	       found(s, ok_unless(us > WAKE_US, NP_PREFLIGHT_LOOK), "%s, up to %.0f us to wake up",
		     states, us);
}

static bool
judge_hypervisor(const struct view *v, struct state *s)
{
	const char *name = np_bag_string(v->host, "host.hypervisor");

	return name != NULL &&
	       found(s, ok_unless(strcmp(name, "none") != 0, NP_PREFLIGHT_LOOK), "%s", name);
}

static bool
judge_steal(const struct view *v, struct state *s)
{
	double share = fact(v, "host.cpu.steal_share");

	return !isnan(share) && found(s,
				      share >= 0.05    ? NP_PREFLIGHT_WARN
				      : share >= 0.005 ? NP_PREFLIGHT_LOOK
						       : NP_PREFLIGHT_OK,
				      "%.1f %% of the time since boot", share * 100);
}

static bool
judge_clock(const struct view *v, struct state *s)
{
	/* Clocks that are read without a system call; the second kind under a hypervisor. */
	static const char *const fast[] = { "tsc", "arch_sys_counter", "timebase", "tod",
					    "riscv_clocksource" };
	static const char *const fair[] = { "kvm-clock", "hyperv_clocksource_tsc_page" };
	const char *name = np_bag_string(v->host, "host.clocksource");

	return name != NULL && found(s,
				     NP_TEXT_ONE_OF(name, fast)   ? NP_PREFLIGHT_OK
				     : NP_TEXT_ONE_OF(name, fair) ? NP_PREFLIGHT_LOOK
								  : NP_PREFLIGHT_WARN,
				     "%s", name);
}

static bool
judge_load(const struct view *v, struct state *s)
{
	double load = fact(v, "host.load"), cpus = fact(v, "host.cpu.count");

	return !isnan(load) && !isnan(cpus) &&
	       found(s,
		     load >= cpus                   ? NP_PREFLIGHT_WARN
		     : load > 0 && 2 * load >= cpus ? NP_PREFLIGHT_LOOK
						    : NP_PREFLIGHT_OK,
		     "%.0f threads want to run on %.0f processors", load, cpus);
}

static bool
judge_link(const struct view *v, struct state *s)
{
	double up = fact(v, "host.nic.up");
	const char *name = np_bag_string(v->host, "host.nic.name");

	return !isnan(up) && found(s, ok_unless(up == 0, NP_PREFLIGHT_WARN), "%s is %s",
				   name != NULL ? name : "it", up != 0 ? "up" : "down");
}

static bool
judge_speed(const struct view *v, struct state *s)
{
	double near = fact(v, "host.nic.speed_mbps");
	double far = np_bag_number(v->peer, "host.nic.speed_mbps");
	const char *duplex = np_bag_string(v->host, "host.nic.duplex");
	char other[64] = "";
	bool half = duplex != NULL && strcmp(duplex, "half") == 0;
	bool differ = !isnan(far) && far != near;

	if (differ) {
		snprintf(other, sizeof(other), ", the other end's %s",
			 np_rate_words(far * 1e6).text);
	}
	return !isnan(near) &&
	       found(s,
		     half     ? NP_PREFLIGHT_WARN
		     : differ ? NP_PREFLIGHT_LOOK
			      : NP_PREFLIGHT_OK,
		     "%s%s%s%s", np_rate_words(near * 1e6).text, duplex != NULL ? ", duplex " : "",
		     duplex != NULL ? duplex : "", other);
}

static bool
judge_mtu(const struct view *v, struct state *s)
{
	double near = fact(v, "host.nic.mtu"), far = np_bag_number(v->peer, "host.nic.mtu");

	if (isnan(near)) {
		return false;
	}
	if (isnan(far) || near == far) {
		return found(s, NP_PREFLIGHT_OK, "%.0f%s", near, isnan(far) ? "" : " at both ends");
	}
	return found(s, NP_PREFLIGHT_WARN, "%.0f, the other end's %.0f", near, far);
}

static bool
judge_path_mtu(const struct view *v, struct state *s)
{
	double path = fact(v, "host.path_mtu"), mtu = fact(v, "host.nic.mtu");
	double most = mtu < LARGEST_IPV4 ? mtu : LARGEST_IPV4; /* lo's MTU is larger */

	return !isnan(path) && !isnan(mtu) &&
	       found(s, ok_unless(path < most, NP_PREFLIGHT_WARN), "%.0f, the interface's %.0f",
		     path, mtu);
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
static bool
judge_switches(const struct view *v, const char *prefix, const char *const *names, size_t count,
	       const char *fixed, struct state *s)
{
	char off[STATE] = "", full[NP_BAG_NAME];
	bool any = false, can_change = false;
	size_t len = 0;

	for (size_t i = 0; i < count; i++) {
		double on;

		snprintf(full, sizeof(full), "%s%s", prefix, names[i]);
		on = fact(v, full);
		any = any || !isnan(on);
		if (on == 0) {
			bool is_fixed = list_has(fixed, names[i]);

			can_change = can_change || !is_fixed;
			len = np_text_add(off, sizeof(off), len, "%s%s%s",
					  len > 0 ? ", " : "off: ", names[i],
					  is_fixed ? " (not supported)" : "");
		}
	}
	return any && found(s,
			    can_change ? NP_PREFLIGHT_WARN
			    : len > 0  ? NP_PREFLIGHT_LOOK
				       : NP_PREFLIGHT_OK,
			    "%s", len > 0 ? off : "on");
}

static bool
judge_offloads(const struct view *v, struct state *s)
{
	static const char *const names[] = {
		"tso", "gso", "gro", "sg", "rx-checksum", "tx-checksum"
	};

	return judge_switches(v, "host.nic.offload.", names, sizeof(names) / sizeof(names[0]),
			      np_bag_string(v->host, "host.nic.offloads_fixed"), s);
}

static bool
judge_ring(const struct view *v, struct state *s)
{
	double rx = fact(v, "host.nic.ring.rx"), rx_max = fact(v, "host.nic.ring.rx_max");
	double tx = fact(v, "host.nic.ring.tx"), tx_max = fact(v, "host.nic.ring.tx_max");

	return !isnan(rx) && rx_max + tx_max > 0 && /* they are known */
	       found(s, ok_unless(rx < rx_max || tx < tx_max, NP_PREFLIGHT_LOOK),
		     "%.0f of %.0f to receive, %.0f of %.0f to send", rx, rx_max, tx, tx_max);
}

static bool
judge_coalescing(const struct view *v, struct state *s)
{
	double us = fact(v, "host.nic.coalesce.rx_usecs");
	bool adaptive = fact(v, "host.nic.coalesce.adaptive_rx") == 1;

	return !isnan(us) && found(s, ok_unless(adaptive || us > COALESCE_US, NP_PREFLIGHT_LOOK),
				   "%.0f us%s", us, adaptive ? ", adaptive" : "");
}

static bool
judge_qdisc(const struct view *v, struct state *s)
{
	static const char *const plain[] = { "noqueue",    "mq",     "fq",    "fq_codel",
					     "pfifo_fast", "mqprio", "pfifo", "bfifo" };
	const char *kind = np_bag_string(v->host, "host.nic.qdisc");
	double bps = fact(v, "host.nic.qdisc.rate_bps");

	if (kind == NULL) {
		return false;
	}
	if (bps > 0) {
		return found(s, NP_PREFLIGHT_WARN, "%s, at most %s", kind, np_rate_words(bps).text);
	}
	return found(s, ok_unless(!NP_TEXT_ONE_OF(kind, plain), NP_PREFLIGHT_LOOK), "%s", kind);
}

static bool
judge_gso(const struct view *v, struct state *s)
{
	double size = fact(v, "host.nic.gso_max_size"), segs = fact(v, "host.nic.gso_max_segs");

	return !isnan(size) && !isnan(segs) &&
	       found(s, ok_unless(size < SMALL_GSO || segs < 64, NP_PREFLIGHT_LOOK),
		     "up to %.0f bytes, %.0f segments", size, segs);
}

static bool
judge_queues(const struct view *v, struct state *s)
{
	double rx = fact(v, "host.nic.queues.rx"), tx = fact(v, "host.nic.queues.tx");
	double cpus = fact(v, "host.cpu.count");
	bool is_software = np_bag_string(v->host, "host.nic.bus") == NULL; /* such as veth */

	return !isnan(rx) && !isnan(tx) && !isnan(cpus) && !is_software &&
	       found(s, ok_unless(rx < 2 && cpus >= 4, NP_PREFLIGHT_LOOK),
		     "%.0f to receive, %.0f to send, %.0f processors", rx, tx, cpus);
}

/* Must the process share all its processors with interrupts? Not if each has two to choose from. */
static bool
judge_irq_cpus(const struct view *v, struct state *s)
{
	const char *irqs = np_bag_string(v->host, "host.nic.irq_cpus");
	const char *task = np_bag_string(v->host, "host.task.cpus");
	struct np_cpulist of_irqs = { 0 }, of_task = { 0 };
	bool apart = false;
	unsigned task_cpus = 0, irq_cpus = 0;

	if (irqs == NULL || task == NULL || !np_cpulist_add(&of_irqs, irqs) ||
	    !np_cpulist_add(&of_task, task)) {
		return false;
	}
	for (unsigned cpu = 0; cpu < NP_CPULIST_MOST; cpu++) {
		apart = apart || (np_cpulist_has(&of_task, cpu) && !np_cpulist_has(&of_irqs, cpu));
		task_cpus += np_cpulist_has(&of_task, cpu);
		irq_cpus += np_cpulist_has(&of_irqs, cpu);
	}
	return found(s, ok_unless(!apart && (task_cpus < 2 || irq_cpus < 2), NP_PREFLIGHT_LOOK),
		     "interrupts on %s, this process on %s", irqs, task);
}

static bool
judge_irqbalance(const struct view *v, struct state *s)
{
	double runs = fact(v, "host.irqbalance");

	return !isnan(runs) && found(s, ok_unless(runs != 0, NP_PREFLIGHT_LOOK), "%s",
				     runs != 0 ? "runs" : "does not run");
}

static bool
judge_others(const struct view *v, struct state *s)
{
	double rate = fact(v, "host.nic.other_packets_per_s");

	return !isnan(rate) && found(s,
				     rate >= MANY_PACKETS  ? NP_PREFLIGHT_WARN
				     : rate >= FEW_PACKETS ? NP_PREFLIGHT_LOOK
							   : NP_PREFLIGHT_OK,
				     "%.0f packets/s", rate);
}

static bool
judge_congestion(const struct view *v, struct state *s)
{
	static const char *const usual[] = { "cubic", "bbr" };
	const char *near = np_bag_string(v->host, "host.tcp.congestion");
	const char *far = np_bag_string(v->peer, "host.tcp.congestion");

	if (near == NULL) {
		return false;
	}
	if (far != NULL && strcmp(near, far) != 0) {
		return found(s, NP_PREFLIGHT_LOOK, "%s, the other end's %s", near, far);
	}
	return found(s, ok_unless(!NP_TEXT_ONE_OF(near, usual), NP_PREFLIGHT_LOOK), "%s", near);
}

static bool
judge_tcp_options(const struct view *v, struct state *s)
{
	static const char *const names[] = { "window_scaling", "sack", "timestamps" };

	return judge_switches(v, "host.tcp.", names, sizeof(names) / sizeof(names[0]), NULL, s);
}

/* Is what a setting of `bytes` allows in flight, `data`, enough? by_default: without -s and -S. */
static bool
judge_memory(const struct view *v, double bytes, double data, bool by_default, struct state *s)
{
	double rtt_s = v->rtt_s > 0 ? v->rtt_s : GUESSED_US / 1e6;
	double allows_bps = data * 8 / rtt_s;
	double wanted_bps = v->rate_bps > 0 ? v->rate_bps : good_rate_bps;

	if (isnan(bytes)) {
		return false;
	}
	return found(s,
		     allows_bps >= wanted_bps        ? NP_PREFLIGHT_OK
		     : v->rate_bps > 0 && by_default ? NP_PREFLIGHT_WARN
						     : NP_PREFLIGHT_LOOK,
		     "%.0f bytes: enough for %s at %s RTT%s%s%s", bytes,
		     np_rate_words(allows_bps).text, np_time_words(rtt_s * 1e6).text,
		     v->rtt_s > 0 ? "" : " (assumed)", v->rate_bps > 0 ? ", the link has " : "",
		     v->rate_bps > 0 ? np_rate_words(v->rate_bps).text : "");
}

/* Limits tests without -s and -S. Half of it is overhead (tcp(7), tcp_adv_win_scale). */
static bool
judge_tcp_memory(const struct view *v, struct state *s)
{
	struct np_bag_item it; /* least, default, largest */
	bool known = np_bag_list(v->host, v->needs, NP_BAG_INTS, &it) > 2;
	double bytes = known ? np_bag_value(&it, 2) : (double)NAN;

	return judge_memory(v, bytes, bytes / 2, true, s);
}

/* Limits only -s and -S. The kernel doubles these (socket(7)), so all of the setting is data. */
static bool
judge_core_memory(const struct view *v, struct state *s)
{
	double bytes = fact(v, v->needs);

	return judge_memory(v, bytes, bytes, false, s);
}

/* In a remedy, DEV is replaced by the interface. */
static const struct rule {
	const char *name;
	const char *needs; /* the facts that it needs, separated by commas */
	bool (*judge)(const struct view *v, struct state *s); /* false: it does not apply */
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

/* A remedy with the name of the interface for DEV. */
static const char *
put_device(const char *remedy, const char *device, char *out, size_t size)
{
	size_t len = 0;

	if (device == NULL) {
		return remedy; /* with DEV */
	}
	for (const char *dev; (dev = strstr(remedy, "DEV")) != NULL; remedy = dev + 3) {
		len = np_text_add(out, size, len, "%.*s%s", (int)(dev - remedy), remedy, device);
	}
	np_text_add(out, size, len, "%s", remedy);
	return out;
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

void
np_preflight_each(const struct np_bag *host, const struct np_bag *peer,
		  const struct np_preflight_path *path,
		  void (*found_one)(void *ctx, const struct np_preflight_finding *f), void *ctx)
{
	struct view v = { .host = host,
			  .peer = peer,
			  .rate_bps = path != NULL ? path->rate_bps : 0,
			  .rtt_s = path != NULL ? path->rtt_s : 0 };
	const char *device = np_bag_string(host, "host.nic.name");
	struct np_bag_item it;
	char remedy[STATE];

	for (size_t i = 0; i < RULES; i++) {
		const struct rule *r = &rules[i];
		struct np_preflight_finding f = { .name = r->name };
		struct state s;

		v.needs = r->needs;
		if (r->judge(&v, &s)) {
			f.level = s.level;
			f.state = s.text;
		} else if ((f.state = why_not(host, r)) != NULL) {
			f.level = NP_PREFLIGHT_UNREAD;
		} else {
			continue;
		}
		if (f.level == NP_PREFLIGHT_LOOK || f.level == NP_PREFLIGHT_WARN) {
			f.why = r->why;
			f.remedy = put_device(r->remedy, device, remedy, sizeof(remedy));
		}
		found_one(ctx, &f);
	}
	/* Unread facts that no rule needs. */
	for (size_t i = 0; np_bag_at(host, i, &it); i++) {
		bool is_reported = it.kind != NP_BAG_UNREAD;

		for (size_t r = 0; r < RULES && !is_reported; r++) {
			is_reported = list_has(rules[r].needs, it.name);
		}
		if (!is_reported) {
			found_one(ctx, &(struct np_preflight_finding){ .level = NP_PREFLIGHT_UNREAD,
								       .name = it.name,
								       .state = it.text });
		}
	}
}

struct printing {
	FILE *out;
	const char *which;
};

/* Print a finding, with reason and remedy if it is not ok. ctx: struct printing. */
static void
print_one(void *ctx, const struct np_preflight_finding *f)
{
	static const char *const words[] = { "ok", "look", "warn", "unread" };
	const struct printing *p = ctx;
	bool more = f->why != NULL;

	np_text_line(p->out, "%-6s %-6s %s: %s%s%s%s%s", words[f->level], p->which, f->name,
		     f->state, more ? " | " : "", more ? f->why : "", more ? " | " : "",
		     more ? f->remedy : "");
}

/* The number of findings of each level, and the names of warnings: " (governor, load". */
struct summary {
	unsigned count[NP_PREFLIGHT_UNREAD + 1];
	char warned[STATE];
};

/* Count a finding. ctx: struct summary. */
static void
count_one(void *ctx, const struct np_preflight_finding *f)
{
	struct summary *s = ctx;

	s->count[f->level]++;
	if (f->level == NP_PREFLIGHT_WARN) {
		np_text_add(s->warned, sizeof(s->warned), strlen(s->warned), "%s%s",
			    s->warned[0] != '\0' ? ", " : " (", f->name);
	}
}

void
np_preflight_summary(FILE *out, const char *which, const struct np_bag *host,
		     const struct np_bag *peer, const struct np_preflight_path *path)
{
	struct summary s = { .warned = "" };

	np_preflight_each(host, peer, path, count_one, &s);
	np_text_line(out, "summary: %s: %u warn%s%s, %u look, %u ok, %u unread", which,
		     s.count[NP_PREFLIGHT_WARN], s.warned, s.warned[0] != '\0' ? ")" : "",
		     s.count[NP_PREFLIGHT_LOOK], s.count[NP_PREFLIGHT_OK],
		     s.count[NP_PREFLIGHT_UNREAD]);
}

static const char *
or_unknown(const char *text)
{
	return text != NULL ? text : "?";
}

void
np_preflight_print(FILE *out, const char *which, const struct np_bag *host,
		   const struct np_bag *peer, const struct np_preflight_path *path)
{
	const char *device = np_bag_string(host, "host.nic.name");
	const char *driver = device != NULL ? np_bag_string(host, "host.nic.driver") : NULL;
	struct printing p = { .out = out, .which = which };

	np_text_line(out, "%s: %s, kernel %s, %s, %.0f x %s%s%s%s%s%s", which,
		     or_unknown(np_bag_string(host, "host.name")),
		     or_unknown(np_bag_string(host, "host.kernel")),
		     or_unknown(np_bag_string(host, "host.program")),
		     np_bag_number(host, "host.cpu.count"),
		     or_unknown(np_bag_string(host, "host.cpu.model")), device != NULL ? ", " : "",
		     device != NULL ? device : "", driver != NULL ? " (" : "",
		     driver != NULL ? driver : "", driver != NULL ? ")" : "");
	np_preflight_each(host, peer, path, print_one, &p);
}
