#include "sys/nic.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/cpulist.h"
#include "base/text.h"
#include "base/units.h"
#include "sys/ethtool.h"
#include "sys/file.h"
#include "sys/irq.h"
#include "sys/link.h"
#include "sys/tc.h"

enum { WATCH_MS = 10, QUEUES = 4096 }; /* shortest count of packets; most queues */

/* The facts that --preflight's rules judge, by where they are read. */
static const char *const from_link[] = { "host.nic.up", "host.nic.mtu", "host.nic.gso_max_size",
					 "host.nic.qdisc" };
static const char *const from_driver[] = { "host.nic.offload", "host.nic.ring", "host.nic.coalesce",
					   "host.nic.speed_mbps" };
static const char *const from_sysfs[] = { "host.nic.queues.rx", "host.nic.irq_cpus" };
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Put several values as unread. */
static void
put_unread(struct np_bag *into, const char *why, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		np_bag_unread(into, why, "%s", names[i]);
	}
}

/* Packets of both directions so far; 0 on errors. Returns 0 or an errno. */
static int
count_packets(const struct np_link *l, uint64_t *out)
{
	struct rtnl_link_stats64 stats;
	int rc = np_link_count(l, &stats);

	*out = rc == 0 ? stats.rx_packets + stats.tx_packets : 0;
	return -rc;
}

/* Put the rate of packets that were counted since began_ns, WATCH_MS ago at least. */
static void
traffic_facts(const struct np_link *l, int why, uint64_t before, uint64_t began_ns,
	      struct np_bag *into)
{
	uint64_t until = began_ns + WATCH_MS * NP_MSEC, packets = 0;
	struct timespec left;

	if (why == 0) {
		while (np_now() < until) {
			nanosleep(np_left(until, &left), NULL);
		}
		why = count_packets(l, &packets);
	}
	if (why != 0) {
		np_bag_unread(into, strerror(why), "host.nic.other_packets_per_s");
	} else {
		np_bag_real(
		    into, (double)np_excess(packets, before) * 1e9 / (double)(np_now() - began_ns),
		    "host.nic.other_packets_per_s");
	}
}

/* What netlink knows: MTU, state, GSO, queueing discipline, and a rate that netlab has set. */
static void
link_facts(const struct np_link *l, struct np_bag *into)
{
	const struct np_rtnl_link *link = &l->at_open;
	static const char prefix[] = "netlab rate=";
	const size_t len = sizeof(prefix) - 1;
	int64_t rate;
	struct np_tc tc;
	const struct np_tc_item *root;
	int rc;

	if (l->at_open_why != 0) {
		put_unread(into, strerror(l->at_open_why), from_link, COUNT(from_link));
		return;
	}
	np_bag_int(into, link->mtu, "host.nic.mtu");
	rate = strncmp(link->alias, prefix, len) == 0 ? strtoll(link->alias + len, NULL, 10) : 0;
	if (rate > 0) {
		np_bag_int(into, rate, "host.nic.link_rate_bps");
	}
	np_bag_int(into, (link->flags & IFF_UP) != 0 && link->carrier, "host.nic.up");
	if (link->gso_max_size > 0) {
		np_bag_int(into, link->gso_max_size, "host.nic.gso_max_size");
		np_bag_int(into, link->gso_max_segs, "host.nic.gso_max_segs");
	}
	rc = np_tc_queues(l->rtnl, link->index, &tc);
	root = np_tc_root(&tc);
	np_bag_text(into, root != NULL ? root->kind : link->qdisc, "host.nic.qdisc");
	if (rc != 0) {
		np_bag_unread(into, strerror(-rc), "host.nic.qdisc.rate_bps");
	} else if (tc.root_rate_bps > 0 && tc.root_rate_bps <= INT64_MAX) {
		np_bag_int(into, (int64_t)tc.root_rate_bps, "host.nic.qdisc.rate_bps");
	}
	if (!l->in_sysfs) {
		np_bag_int(into, link->rx_queues, "host.nic.queues.rx");
		np_bag_int(into, link->tx_queues, "host.nic.queues.tx");
	}
}

/* Names that users know (ethtool -k), and the kernel's: one or more, in adjacent rows. */
static const struct {
	const char *name, *kernel;
} offloads[] = {
	{ "tso", "tx-tcp-segmentation" },
	{ "tso6", "tx-tcp6-segmentation" },
	{ "gso", "tx-generic-segmentation" },
	{ "gro", "rx-gro" },
	{ "gro-hw", "rx-gro-hw" },
	{ "lro", "rx-lro" },
	{ "ufo", "tx-udp-fragmentation" },
	{ "uso", "tx-udp-segmentation" },
	{ "sg", "tx-scatter-gather" },
	{ "rx-checksum", "rx-checksum" },
	{ "tx-checksum", "tx-checksum-ip-generic" },
	{ "tx-checksum", "tx-checksum-ipv4" },
	{ "rx-udp-gro-forwarding", "rx-udp-gro-forwarding" },
	{ "rx-gro-list", "rx-gro-list" },
};
enum { OFFLOADS = sizeof(offloads) / sizeof(offloads[0]) };

/* The number of a name; names->len: it is not among them. */
static uint32_t
index_of(const struct ethtool_gstrings *names, const char *name)
{
	uint32_t i = 0;

	while (i < names->len &&
	       strcmp((const char *)names->data + (size_t)i * ETH_GSTRING_LEN, name) != 0) {
		i++;
	}
	return i;
}

/* Put offloads: on if one of the kernel's names is on, fixed if all of them can't be changed. */
static void
put_offloads(const struct ethtool_gstrings *names, const struct ethtool_gfeatures *features,
	     struct np_bag *into)
{
	char unchangeable[NP_BAG_TEXT] = "";
	size_t len = 0;

	for (size_t k = 0; k < OFFLOADS; k++) {
		bool known = false, is_on = false, is_fixed = true;

		if (k > 0 && strcmp(offloads[k].name, offloads[k - 1].name) == 0) {
			continue; /* another kernel name of the one before */
		}
		for (size_t j = k; j < OFFLOADS; j++) {
			const struct ethtool_get_features_block *b;
			uint32_t i = index_of(names, offloads[j].kernel), bit = 1U << i % 32;

			if (i == names->len || strcmp(offloads[j].name, offloads[k].name) != 0) {
				continue;
			}
			b = &features->features[i / 32];
			known = true;
			is_on = is_on || (b->active & bit) != 0;
			is_fixed = is_fixed && (b->available & ~b->never_changed & bit) == 0;
		}
		if (known) {
			np_bag_int(into, is_on, "host.nic.offload.%s", offloads[k].name);
		}
		if (known && is_fixed) {
			len = np_text_add(unchangeable, sizeof(unchangeable), len, "%s%s",
					  len > 0 ? "," : "", offloads[k].name);
		}
	}
	np_bag_text(into, unchangeable, "host.nic.offloads_fixed");
}

/* Put the sizes of rings, and how interrupts are coalesced. */
static void
ring_facts(const struct np_link *l, struct np_bag *into)
{
	struct ethtool_ringparam ring = { .cmd = ETHTOOL_GRINGPARAM };
	struct ethtool_coalesce c = { .cmd = ETHTOOL_GCOALESCE };
	int rc = np_ethtool_ask(l->inet, l->device, &ring);

	if (rc == 0) {
		np_bag_int(into, ring.rx_pending, "host.nic.ring.rx");
		np_bag_int(into, ring.rx_max_pending, "host.nic.ring.rx_max");
		np_bag_int(into, ring.tx_pending, "host.nic.ring.tx");
		np_bag_int(into, ring.tx_max_pending, "host.nic.ring.tx_max");
	} else {
		np_bag_unread(into, strerror(-rc), "host.nic.ring");
	}
	rc = np_ethtool_ask(l->inet, l->device, &c);
	if (rc == 0) {
		np_bag_int(into, c.rx_coalesce_usecs, "host.nic.coalesce.rx_usecs");
		np_bag_int(into, c.rx_max_coalesced_frames, "host.nic.coalesce.rx_frames");
		np_bag_int(into, c.tx_coalesce_usecs, "host.nic.coalesce.tx_usecs");
		np_bag_int(into, c.use_adaptive_rx_coalesce != 0, "host.nic.coalesce.adaptive_rx");
	} else {
		np_bag_unread(into, strerror(-rc), "host.nic.coalesce");
	}
}

/* Does the driver report a constant as speed, having no hardware? */
static bool
invents_speed(const char *driver)
{
	return strcmp(driver, "veth") == 0 || strcmp(driver, "tun") == 0;
}

/* Is it hardware, real or a virtual machine's, which has rings and a speed? */
static bool
is_hardware(const struct ethtool_drvinfo *d)
{
	static const char *const soft[] = { "", "N/A", "tun", "tap" };

	return !NP_TEXT_ONE_OF(d->bus_info, soft);
}

/* Put a text of the driver, unless it stands for none. */
static void
put_known(struct np_bag *into, const char *text, const char *name)
{
	if (text[0] != '\0' && strcmp(text, "N/A") != 0) {
		np_bag_text(into, text, "%s", name);
	}
}

/* Put what the driver tells by ethtool(8): its names, offloads, rings and speed. */
static void
driver_facts(const struct np_link *l, struct np_bag *into)
{
	struct ethtool_drvinfo d = { .cmd = ETHTOOL_GDRVINFO };
	struct ethtool_link_settings s;
	struct ethtool_gstrings *names;
	struct ethtool_gfeatures *features = NULL;
	int rc = l->inet < 0 ? l->inet : np_ethtool_ask(l->inet, l->device, &d);

	if (rc != 0 && rc != -EOPNOTSUPP) { /* its other requests may be supported */
		np_bag_unread(into, strerror(-rc), "host.nic.driver");
		put_unread(into, strerror(-rc), from_driver, COUNT(from_driver));
		return;
	}
	/* The driver may have filled them without a NUL. */
	d.driver[31] = d.version[31] = d.fw_version[31] = d.bus_info[31] = '\0';
	put_known(into, d.driver, "host.nic.driver");
	put_known(into, d.version, "host.nic.driver_version");
	put_known(into, d.fw_version, "host.nic.firmware");
	put_known(into, d.bus_info, "host.nic.bus");
	rc = np_ethtool_names(l->inet, l->device, ETH_SS_FEATURES, &names);
	if (rc == 0) {
		rc = np_ethtool_features(l->inet, l->device, names->len, &features);
	}
	if (rc == 0) {
		put_offloads(names, features, into);
	} else {
		np_bag_unread(into, strerror(-rc), "host.nic.offload");
	}
	free(features);
	free(names);
	if (is_hardware(&d)) {
		ring_facts(l, into);
	}
	if (!is_hardware(&d) && !invents_speed(d.driver)) {
		return; /* not hardware: it has no speed */
	}
	rc = np_ethtool_settings(l->inet, l->device, &s);
	if (rc == 0 && invents_speed(d.driver)) {
		np_bag_unread(into, "it has none: the driver reports an invented speed",
			      "host.nic.speed_mbps");
	} else if (rc == 0 && s.speed > 0 && s.speed != (uint32_t)SPEED_UNKNOWN) {
		np_bag_int(into, s.speed, "host.nic.speed_mbps");
		np_bag_text(into,
			    s.duplex == DUPLEX_FULL   ? "full"
			    : s.duplex == DUPLEX_HALF ? "half"
						      : "unknown",
			    "host.nic.duplex");
	} else {
		np_bag_unread(into, rc != 0 ? strerror(-rc) : "the driver does not know it",
			      "host.nic.speed_mbps");
	}
}

struct irq_cpus {
	const char *root;
	struct np_cpulist cpus;
};

/* For np_irq_each(): add the processors that handle this interrupt. */
static void
add_irq(void *ctx, const struct np_irq *irq)
{
	struct irq_cpus *i = ctx;
	char *list = np_file_all_of(np_irq_affinity(i->root, irq->number));

	if (list != NULL) {
		list[strcspn(list, "\n")] = '\0';
		np_cpulist_add(&i->cpus, list);
		free(list);
	}
}

/* Queues of a kind, "rx" or "tx", that /sys/class/net shows: those in use. */
static int
count_queues(const struct np_link *l, const char *kind)
{
	char path[512];
	struct stat st;
	int i = 0;

	do {
		snprintf(path, sizeof(path), "%s/sys/class/net/%s/queues/%s-%d", l->root, l->device,
			 kind, i);
	} while (stat(path, &st) == 0 && i++ < QUEUES);
	return i;
}

uint32_t
np_nic_rx_queues(const char *device)
{
	struct np_link l;
	uint32_t queues;

	np_link_open(&l, "", device);
	queues = l.in_sysfs ? (uint32_t)count_queues(&l, "rx") : l.at_open.rx_queues;
	np_link_close(&l);
	return queues;
}

/* Put queues, the processors that handle interrupts, and the MTU where netlink is not allowed. */
static void
sysfs_facts(const struct np_link *l, struct np_bag *into)
{
	int queues = count_queues(l, "rx");
	int64_t v;
	struct irq_cpus i = { .root = l->root };
	char text[NP_BAG_TEXT];
	int rc;

	if (queues > 0) {
		np_bag_int(into, queues, "host.nic.queues.rx");
		np_bag_int(into, count_queues(l, "tx"), "host.nic.queues.tx");
	} else {
		np_bag_unread(into, "none in /sys/class/net", "host.nic.queues.rx");
	}
	rc = np_irq_each(l->root, l->device, add_irq, &i);
	np_cpulist_text(&i.cpus, text, sizeof(text));
	if (rc == 0 && text[0] != '\0') {
		np_bag_text(into, text, "host.nic.irq_cpus");
	} else if (rc != -ENOENT) {
		np_bag_unread(into, rc != 0 ? strerror(-rc) : "none of its interrupts is known",
			      "host.nic.irq_cpus");
	}
	if (l->rtnl < 0) {
		rc = np_file_number(&v, l->root, "/sys/class/net/%s/mtu", l->device);
		if (rc == 0) {
			np_bag_int(into, v, "host.nic.mtu");
		} else {
			np_bag_unread(into, strerror(-rc), "host.nic.mtu");
		}
	}
}

void
np_nic_facts(const char *root, const char *device, struct np_bag *into)
{
	bool is_test = root[0] != '\0'; /* /proc and /sys are a test's: don't ask the kernel */
	struct np_link link, *l = &link;
	uint64_t packets, began_ns;
	int why;

	np_link_open(l, root, device);
	why = count_packets(l, &packets);
	began_ns = np_now();
	np_bag_text(into, device, "host.nic.name");
	if (l->rtnl >= 0) {
		link_facts(l, into);
	} else if (!is_test) {
		put_unread(into, strerror(-l->rtnl), from_link, COUNT(from_link));
	}
	if (!is_test) {
		driver_facts(l, into);
	}
	if (l->in_sysfs || l->rtnl < 0) { /* < 0: /sys is all there is */
		sysfs_facts(l, into);
	} else if (np_bag_string(into, "host.nic.bus") != NULL) { /* hardware */
		np_bag_unread(into, "/sys/class/net shows another network namespace",
			      "host.nic.irq_cpus");
	}
	traffic_facts(l, why, packets, began_ns, into);
	np_link_close(l);
}

void
np_nic_unread(const char *why, struct np_bag *into)
{
	put_unread(into, why, from_link, COUNT(from_link));
	put_unread(into, why, from_driver, COUNT(from_driver));
	put_unread(into, why, from_sysfs, COUNT(from_sysfs));
	np_bag_unread(into, why, "host.nic.other_packets_per_s");
}
