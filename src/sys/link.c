#include "sys/link.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "base/text.h"
#include "sys/file.h"

void
np_link_open(struct np_link *l, const char *root, const char *device)
{
	bool test_root = root[0] != '\0';
	const struct np_rtnl_link *link = &l->at_open;

	*l = (struct np_link){ .root = root,
			       .rtnl = -ENOSYS,
			       .inet = -ENOSYS,
			       .in_sysfs = test_root && device[0] != '\0' };
	snprintf(l->device, sizeof(l->device), "%s", device);
	if (test_root || device[0] == '\0') {
		return;
	}
	l->rtnl = np_rtnl_open();
	l->inet = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	l->inet = l->inet < 0 ? -errno : l->inet;
	l->at_open_why = l->rtnl >= 0 ? -np_rtnl_link(l->rtnl, device, &l->at_open) : 0;
	if (link->index != 0) {
		char here[3 * sizeof(link->address) + 1] = "", there[sizeof(here)];
		int64_t index;
		size_t len = 0;

		for (unsigned i = 0; i < link->address_size && i < sizeof(link->address); i++) {
			len = np_text_add(here, sizeof(here), len, "%s%02x", i > 0 ? ":" : "",
					  link->address[i]);
		}
		/* The interface that /sys shows: of the same number and address? */
		l->in_sysfs =
		    (link->flags & IFF_LOOPBACK) == 0 &&
		    np_file_number(&index, "", "/sys/class/net/%s/ifindex", device) == 0 &&
		    index == link->index &&
		    np_file_line(there, sizeof(there), "", "/sys/class/net/%s/address", device) >=
			0 &&
		    strcmp(here, there) == 0;
		/* lo and tun count bytes of IP packets alone. */
		l->header = link->type == ARPHRD_ETHER ? ETH_HLEN : 0;
		l->mtu = link->mtu;
	}
}

void
np_link_close(const struct np_link *l)
{
	np_fds_close(l->rtnl);
	np_fds_close(l->inet);
}

/* Files in sysfs have the names of the members. */
#define STAT(name) #name, offsetof(struct rtnl_link_stats64, name)
const struct np_link_counter np_link_counters[NP_LINK_COUNTERS] = {
	{ STAT(rx_packets) },       { STAT(tx_packets) },          { STAT(rx_bytes) },
	{ STAT(tx_bytes) },         { STAT(rx_errors) },           { STAT(tx_errors) },
	{ STAT(rx_dropped) },       { STAT(tx_dropped) },          { STAT(multicast) },
	{ STAT(collisions) },       { STAT(rx_length_errors) },    { STAT(rx_over_errors) },
	{ STAT(rx_crc_errors) },    { STAT(rx_frame_errors) },     { STAT(rx_fifo_errors) },
	{ STAT(rx_missed_errors) }, { STAT(tx_aborted_errors) },   { STAT(tx_carrier_errors) },
	{ STAT(tx_fifo_errors) },   { STAT(tx_heartbeat_errors) }, { STAT(tx_window_errors) },
};

/* Read the first `count` of np_link_counters from files. 0, or a negative errno. */
static int
read_files(const struct np_link *l, size_t count, struct rtnl_link_stats64 *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < count; i++) {
		int64_t v;
		int rc = np_file_number(&v, l->root, "/sys/class/net/%s/statistics/%s", l->device,
					np_link_counters[i].name);

		if (rc == 0) {
			memcpy((char *)out + np_link_counters[i].at, &v, sizeof(v));
		} else if (i == 0) {
			return rc; /* there is no interface; a single counter may be missing */
		}
	}
	return 0;
}

int
np_link_count(const struct np_link *l, struct rtnl_link_stats64 *out)
{
	struct np_rtnl_link link;
	int rc;

	if (l->rtnl < 0) {
		/* Files of this machine may be those of another namespace. */
		return l->root[0] == '\0' ? l->rtnl : read_files(l, NP_LINK_COUNTERS, out);
	}
	rc = np_rtnl_link(l->rtnl, l->device, &link);
	*out = link.stats;
	return rc == 0 && !link.has_stats ? -EOPNOTSUPP : rc;
}

int
np_link_carried(const struct np_link *l, struct rtnl_link_stats64 *out)
{
	return l->in_sysfs ? read_files(l, NP_LINK_CARRIED, out) : np_link_count(l, out);
}
