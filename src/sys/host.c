#include "sys/host.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "base/cpulist.h"
#include "base/text.h"
#include "commit.h"
#include "config.h"
#include "sys/cpu.h"
#include "sys/file.h"
#include "sys/nic.h"

enum {
	PROCESSES = 8192, /* the most that are searched for irqbalance */
	STATES = 32,      /* idle states of a processor */
	CPUINFO = 8192    /* bytes of /proc/cpuinfo: enough for the first processor */
};

/* Put why a value could not be read: the file and its errno. */
static void
unread(struct np_bag *into, const char *name, int error, const char *path)
{
	char why[PATH_MAX + 128];

	snprintf(why, sizeof(why), "%s: %s", path, strerror(error));
	np_bag_unread(into, why, "%s", name);
}

/* Put the first line of a file. */
static void
put_line(struct np_bag *into, const char *root, const char *name, const char *path)
{
	char line[512];
	long n = np_file_line(line, sizeof(line), root, "%s", path);

	if (n >= 0) {
		np_bag_text(into, line, "%s", name);
	} else {
		unread(into, name, (int)-n, path);
	}
}

/* Put the first line of a file as up to four numbers, as in tcp_rmem. */
static void
put_numbers(struct np_bag *into, const char *root, const char *name, const char *path)
{
	char line[128], *at = line, *end;
	int64_t v[4];
	size_t count = 0;
	long n = np_file_line(line, sizeof(line), root, "%s", path);

	if (n < 0) {
		unread(into, name, (int)-n, path);
		return;
	}
	for (; count < 4; at = end) {
		v[count] = strtoll(at, &end, 10);
		if (end == at) {
			break;
		}
		count++;
	}
	np_bag_ints(into, v, count, "%s", name);
}

/* Digits of the boot id: enough to tell machines apart, but not to identify one. */
enum { DIGITS = 8 };

void
np_host_boot(const char *root, struct np_bag *into)
{
	static const char prefix[] = "time:[";
	const size_t len = sizeof(prefix) - 1;
	char id[64], link[64], text[96], why[128];
	unsigned long space = 0;
	long n;

	n = np_file_line(id, sizeof(id), root, "/proc/sys/kernel/random/boot_id");
	if (n < DIGITS) {
		snprintf(why, sizeof(why), "/proc/sys/kernel/random/boot_id: %s",
			 n < 0 ? strerror((int)-n) : "too short");
		np_bag_unread(into, why, "clock.boot");
		return;
	}
	/* "time:[4026531834]": each namespace may add its own offset to the clock
	 * (time_namespaces(7)). Old kernels have no such file. */
	if (np_file_link(link, sizeof(link), root, "/proc/self/ns/time") >= 0 &&
	    strncmp(link, prefix, len) == 0) {
		space = strtoul(link + len, NULL, 10);
	}
	snprintf(text, sizeof(text), "%.*s-%lu", DIGITS, id, space);
	np_bag_text(into, text, "clock.boot");
}

/* The value of a line like "model name\t: Intel ..." of the first processor; false: none. */
static bool
cpuinfo_line(const char *info, const char *key, char *out, size_t size)
{
	size_t len = strlen(key);

	for (const char *at = strstr(info, key); at != NULL; at = strstr(at + len, key)) {
		const char *colon = at + len + strspn(at + len, " \t");

		if ((at == info || at[-1] == '\n') && *colon == ':') {
			colon += 1 + strspn(colon + 1, " \t");
			snprintf(out, size, "%.*s", (int)strcspn(colon, "\n"), colon);
			return true;
		}
	}
	return false;
}

/* The name that the hypervisor tells its guests by CPUID; empty: not known, or this is no x86. */
static void
ask_hypervisor(char *out, size_t size)
{
	static const struct {
		const char *signature, *name;
	} known[] = {
		{ "KVMKVMKVM", "KVM" },         { "Microsoft Hv", "Hyper-V" },
		{ "VMwareVMware", "VMware" },   { "XenVMMXenVMM", "Xen" },
		{ "TCGTCGTCGTCG", "QEMU TCG" }, { "prl hyperv  ", "Parallels" },
		{ "bhyve bhyve ", "bhyve" },    { "ACRNACRNACRN", "ACRN" },
	};
	uint32_t word[4] = { 0 };
	char text[13];

	out[0] = '\0';
#if defined(__x86_64__) || defined(__i386__)
	__cpuid(0x40000000, word[0], word[1], word[2], word[3]);
#endif
	memcpy(text, &word[1], 12);
	text[12] = '\0';
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(text, known[i].signature) == 0) {
			snprintf(out, size, "%s", known[i].name);
			return;
		}
	}
}

/* Do vendor and product name a virtual machine's maker? Clouds call real machines ".metal". */
static bool
names_virtual_machine(const char *dmi)
{
	static const char *const makers[] = { "QEMU",   "KVM",       "VMware",         "VirtualBox",
					      "Xen",    "Bochs",     "Parallels",      "Amazon EC2",
					      "Google", "OpenStack", "Virtual Machine" };

	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		if (strstr(dmi, makers[i]) != NULL) {
			return strstr(dmi, ".metal") == NULL;
		}
	}
	return false;
}

/*
 * Put the hypervisor's name, then maker and product of the machine: "KVM (Amazon EC2 m5.large)". On
 * x86 a flag of the processor shows a guest; elsewhere the maker's name has to do.
 */
static void
hypervisor_facts(const char *root, const char *info, struct np_bag *into)
{
	char name[64] = "", dmi[180], flags[4096], text[256];
	bool is_x86 = cpuinfo_line(info, "flags", flags, sizeof(flags));
	char vendor[80], product[80], *rest = NULL;
	bool guest = false;

	for (const char *flag = is_x86 ? strtok_r(flags, " ", &rest) : NULL; flag != NULL;
	     flag = strtok_r(NULL, " ", &rest)) {
		guest = guest || strcmp(flag, "hypervisor") == 0;
	}
	np_file_line(vendor, sizeof(vendor), root, "/sys/class/dmi/id/sys_vendor");
	np_file_line(product, sizeof(product), root, "/sys/class/dmi/id/product_name");
	snprintf(dmi, sizeof(dmi), "%s%s%s", vendor,
		 vendor[0] != '\0' && product[0] != '\0' ? " " : "", product);
	/* CPUID is this machine's, so not with a test's root. */
	if (np_file_line(name, sizeof(name), root, "/sys/hypervisor/type") <= 0 &&
	    np_file_line(name, sizeof(name), root, "/proc/device-tree/hypervisor/compatible") <=
		0 &&
	    guest && root[0] == '\0') {
		ask_hypervisor(name, sizeof(name));
	}
	guest = guest || name[0] != '\0' || (!is_x86 && names_virtual_machine(dmi));
	if (!guest && !is_x86 && dmi[0] == '\0') {
		np_bag_unread(into, "neither /proc/cpuinfo nor the firmware says",
			      "host.hypervisor");
		return;
	}
	snprintf(text, sizeof(text), "%s%s%s%s", name[0] != '\0' ? name : "unnamed",
		 dmi[0] != '\0' ? " (" : "", dmi, dmi[0] != '\0' ? ")" : "");
	np_bag_text(into, guest ? text : "none", "host.hypervisor");
}

/* Put each governor in use once: "performance", "powersave,performance". */
static void
governor_facts(const char *root, const struct np_cpulist *online, struct np_bag *into)
{
	char all[128] = "", one[32], path[80] = "";
	size_t len = 0;
	long n = 0;

	for (unsigned cpu = 0; cpu < NP_CPULIST_MOST; cpu++) {
		if (!np_cpulist_has(online, cpu)) {
			continue;
		}
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor", cpu);
		n = np_file_line(one, sizeof(one), root, "%s", path);
		if (n < 0) {
			break; /* without cpufreq none has a governor */
		}
		if (strstr(all, one) == NULL) {
			len = np_text_add(all, sizeof(all), len, "%s%s", len > 0 ? "," : "", one);
		}
	}
	if (len > 0) {
		np_bag_text(into, all, "host.cpu.governor");
	} else {
		unread(into, "host.cpu.governor", (int)-n, path);
	}
}

/* Put the idle states of a processor that are enabled, and the longest latency to leave one. */
static void
idle_facts(const char *root, unsigned cpu, struct np_bag *into)
{
	char dir[64], all[256] = "", name[32];
	int64_t latency, worst = 0, off;
	size_t len = 0;
	long n = 0;
	int i;

	snprintf(dir, sizeof(dir), "/sys/devices/system/cpu/cpu%u/cpuidle/state", cpu);
	for (i = 0; i < STATES; i++) {
		n = np_file_line(name, sizeof(name), root, "%s%d/name", dir, i);
		if (n < 0) {
			break;
		}
		if (np_file_number(&off, root, "%s%d/disable", dir, i) == 0 && off != 0) {
			continue;
		}
		len = np_text_add(all, sizeof(all), len, "%s%s", len > 0 ? "," : "", name);
		if (np_file_number(&latency, root, "%s%d/latency", dir, i) == 0 &&
		    latency > worst) {
			worst = latency;
		}
	}
	if (i == 0) {
		*strrchr(dir, '/') = '\0';
		unread(into, "host.cpu.idle_states", (int)-n, dir);
		return;
	}
	np_bag_text(into, all, "host.cpu.idle_states");
	np_bag_int(into, worst, "host.cpu.idle_latency_us");
}

/* Does irqbalance run, as its directory in /run or a process's name shows? 1, 0; -1 with errno. */
static int
runs_irqbalance(const char *root)
{
	char path[PATH_MAX], name[32];
	const struct dirent *e;
	struct stat st;
	int found = 0, left = PROCESSES;
	long n;
	DIR *d;

	snprintf(path, sizeof(path), "%s/run/irqbalance", root);
	if (stat(path, &st) == 0) {
		return 1;
	}
	snprintf(path, sizeof(path), "%s/proc", root);
	d = opendir(path);
	if (d == NULL) {
		return -1;
	}
	while (found == 0 && left-- > 0 && (e = readdir(d)) != NULL) {
		if (isdigit((unsigned char)e->d_name[0])) {
			np_file_line(name, sizeof(name), root, "/proc/%.20s/comm", e->d_name);
			found = strcmp(name, "irqbalance") == 0;
		}
	}
	closedir(d);
	/* If process 1 can't be read, other users' processes are hidden. */
	n = found == 0 ? np_file_line(name, sizeof(name), root, "/proc/1/comm") : 0;
	if (n < 0) {
		errno = (int)-n;
		return -1;
	}
	return found;
}

/* Put facts that hardly change while this process runs. info gets /proc/cpuinfo. */
static void
lasting_facts(const char *root, char info[CPUINFO], struct np_bag *into)
{
	char model[128];
	long n = np_file_read(info, CPUINFO, root, "/proc/cpuinfo");
	char *second = strstr(info, "\n\n");
	int balanced = runs_irqbalance(root);

	if (second != NULL) {
		*second = '\0'; /* the other processors */
	}
	if (balanced < 0) {
		unread(into, "host.irqbalance", errno, "the list of processes");
	} else {
		np_bag_int(into, balanced, "host.irqbalance");
	}
	if (n < 0) {
		unread(into, "host.cpu.model", (int)-n, "/proc/cpuinfo");
	} else if (cpuinfo_line(info, "model name", model, sizeof(model))) {
		np_bag_text(into, model, "host.cpu.model");
	} else {
		np_bag_unread(into, "no model name in /proc/cpuinfo", "host.cpu.model");
	}
	hypervisor_facts(root, info, into);
}

void
np_host_lasting(struct np_bag *into)
{
	char info[CPUINFO];

	lasting_facts("", info, into);
	np_host_boot("", into);
}

/* Put host.cpu.*, the load, the processors of this process, and the clock sources. */
static void
cpu_facts(const char *root, struct np_bag *into)
{
	struct np_cpulist online, may;
	char info[CPUINFO], text[1024], mhz[32];
	int64_t khz;
	struct np_cpu_times *t;
	long running;

	/* Numbers have gaps where processors are offline. */
	memset(&online, 0, sizeof(online));
	if (np_file_line(text, sizeof(text), root, "/sys/devices/system/cpu/online") <= 0 ||
	    !np_cpulist_add(&online, text)) {
		for (int cpu = 0; cpu < np_cpu_count(); cpu++) {
			CPU_SET_S((unsigned)cpu, sizeof(online.set), online.set);
		}
	}
	lasting_facts(root, info, into);
	if (np_file_number(&khz, root, "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq",
			   np_cpulist_first(&online)) == 0) {
		np_bag_real(into, (double)khz / 1000, "host.cpu.mhz");
	} else if (cpuinfo_line(info, "cpu MHz", mhz, sizeof(mhz))) {
		np_bag_real(into, strtod(mhz, NULL), "host.cpu.mhz");
	} else {
		np_bag_unread(into, "neither cpufreq nor /proc/cpuinfo says", "host.cpu.mhz");
	}
	np_bag_int(into, np_cpu_count(), "host.cpu.count");
	governor_facts(root, &online, into);
	idle_facts(root, np_cpulist_first(&online), into);
	t = np_cpu_read(root);
	if (t != NULL) {
		np_bag_real(into, np_cpu_stolen(t), "host.cpu.steal_share");
	} else {
		unread(into, "host.cpu.steal_share", errno, "/proc/stat");
	}
	free(t);
	/* Threads that run or are ready to run, without this one. */
	running = np_cpu_load(root);
	if (running < 0) {
		unread(into, "host.load", errno, "/proc/loadavg");
	} else {
		np_bag_int(into, running > 0 ? running - 1 : 0, "host.load");
	}
	if (np_cpus_save(&may)) {
		np_bag_text(into, np_cpulist_text(&may, text, sizeof(text)), "host.task.cpus");
	} else {
		np_bag_unread(into, strerror(errno), "host.task.cpus");
	}
	put_line(into, root, "host.clocksource",
		 "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	put_line(into, root, "host.clocksource_available",
		 "/sys/devices/system/clocksource/clocksource0/available_clocksource");
}

/* Put limits and settings of the network stack, from /proc/sys/net. */
static void
stack_facts(const char *root, struct np_bag *into)
{
	static const struct {
		const char *name, *path;
	} numbers[] = {
		{ "host.core.rmem_max", "/proc/sys/net/core/rmem_max" },
		{ "host.core.wmem_max", "/proc/sys/net/core/wmem_max" },
		{ "host.core.netdev_max_backlog", "/proc/sys/net/core/netdev_max_backlog" },
		{ "host.tcp.timestamps", "/proc/sys/net/ipv4/tcp_timestamps" },
		{ "host.tcp.sack", "/proc/sys/net/ipv4/tcp_sack" },
		{ "host.tcp.window_scaling", "/proc/sys/net/ipv4/tcp_window_scaling" },
		{ "host.tcp.mtu_probing", "/proc/sys/net/ipv4/tcp_mtu_probing" },
		{ "host.tcp.slow_start_after_idle",
		  "/proc/sys/net/ipv4/tcp_slow_start_after_idle" },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		int64_t v;
		int rc = np_file_number(&v, root, "%s", numbers[i].path);

		if (rc == 0) {
			np_bag_int(into, v, "%s", numbers[i].name);
		} else {
			unread(into, numbers[i].name, -rc, numbers[i].path);
		}
	}
	put_numbers(into, root, "host.tcp.rmem", "/proc/sys/net/ipv4/tcp_rmem");
	put_numbers(into, root, "host.tcp.wmem", "/proc/sys/net/ipv4/tcp_wmem");
	put_line(into, root, "host.tcp.congestion", "/proc/sys/net/ipv4/tcp_congestion_control");
}

const char *
np_host_program(void)
{
	return NP_COMMIT[0] != '\0' ? "Plumbline " PACKAGE_VERSION " (" NP_COMMIT ")"
				    : "Plumbline " PACKAGE_VERSION;
}

void
np_host_facts(const char *root, const char *device, int fd, struct np_bag *into)
{
	char cong[32] = "";
	socklen_t len = sizeof(cong) - 1;
	int family = AF_UNSPEC, mtu = 0;
	struct utsname u;

	root = root != NULL ? root : "";
	if (uname(&u) == 0) {
		np_bag_text(into, u.nodename, "host.name");
		np_bag_text(into, u.release, "host.kernel");
		np_bag_text(into, u.machine, "host.machine");
	}
	np_bag_text(into, np_host_program(), "host.program");
	cpu_facts(root, into);
	if (device != NULL && device[0] != '\0') {
		np_nic_facts(root, device, into);
	}
	stack_facts(root, into);
	if (fd >= 0) {
		/* The connection's own replaces the default, which is for new ones. */
		if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cong, &len) == 0 &&
		    cong[0] != '\0') {
			np_bag_text(into, cong, "host.tcp.congestion");
		}
		len = sizeof(family);
		getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
		len = sizeof(mtu);
		if (family == AF_INET    ? getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len) == 0
		    : family == AF_INET6 ? getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &len) == 0
					 : false) {
			np_bag_int(into, mtu, "host.path_mtu");
		} else if (family == AF_INET || family == AF_INET6) { /* others have no route */
			np_bag_unread(into, strerror(errno), "host.path_mtu");
		}
	}
}

bool
np_host_ports(unsigned long *first, unsigned long *last)
{
	char text[64], *end, *behind;

	np_file_line(text, sizeof(text), "", "/proc/sys/net/ipv4/ip_local_port_range");
	*first = strtoul(text, &end, 10);
	*last = strtoul(end, &behind, 10);
	return end != text && behind != end && *first <= *last && *last <= UINT16_MAX;
}
