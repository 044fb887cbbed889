#include "sys/ethtool.h"

#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { MOST = 65536 }; /* names of a driver; none has nearly as many */

int
np_ethtool_ask(int fd, const char *device, void *request)
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", device);
	ifr.ifr_data = request;
	return ioctl(fd, SIOCETHTOOL, &ifr) == 0 ? 0 : -errno;
}

/* How many names of a kind the driver has. 0, or a negative errno: -EOPNOTSUPP for none. */
static int
count_names(int fd, const char *device, uint32_t kind, size_t *count)
{
	union {
		struct ethtool_sset_info head;
		uint8_t room[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)];
	} info;
	int rc;

	memset(&info, 0, sizeof(info));
	info.head.cmd = ETHTOOL_GSSET_INFO;
	info.head.sset_mask = UINT64_C(1) << kind;
	rc = np_ethtool_ask(fd, device, &info);
	if (rc != 0) {
		return rc;
	}
	*count = info.head.sset_mask != 0 ? info.head.data[0] : 0;
	return *count == 0 || *count > MOST ? -EOPNOTSUPP : 0;
}

int
np_ethtool_names(int fd, const char *device, uint32_t kind, struct ethtool_gstrings **answer)
{
	size_t count = 0;
	int rc = count_names(fd, device, kind, &count);
	struct ethtool_gstrings *a = calloc(1, sizeof(*a) + count * ETH_GSTRING_LEN);

	*answer = a;
	if (a == NULL || rc != 0) {
		return rc != 0 ? rc : -ENOMEM;
	}
	a->cmd = ETHTOOL_GSTRINGS;
	a->string_set = kind;
	a->len = (uint32_t)count;
	rc = np_ethtool_ask(fd, device, a);
	for (size_t i = 0; i < count; i++) {
		a->data[(i + 1) * ETH_GSTRING_LEN - 1] = '\0';
	}
	a->len = (uint32_t)count;
	return rc;
}

int
np_ethtool_stats(int fd, const char *device, size_t count, struct ethtool_stats **answer)
{
	/* Leave room for counters of queues that are added before the next request. */
	struct ethtool_stats *a = calloc(1, sizeof(*a) + 2 * count * sizeof(uint64_t));
	size_t now = 0;
	int rc = count_names(fd, device, ETH_SS_STATS, &now);

	*answer = a;
	if (a == NULL) {
		return -ENOMEM;
	}
	if (rc != 0 || now != count) { /* the kernel writes as many as there are now */
		return rc != 0 ? rc : -ERANGE;
	}
	a->cmd = ETHTOOL_GSTATS;
	a->n_stats = (uint32_t)count;
	return np_ethtool_ask(fd, device, a);
}

/* The first request returns, negated, how many words three bitmaps need; the second offers them. */
int
np_ethtool_settings(int fd, const char *device, struct ethtool_link_settings *out)
{
	union {
		struct ethtool_link_settings head;
		uint8_t room[sizeof(struct ethtool_link_settings) + sizeof(uint32_t) * 3 * 127];
	} s;
	int rc;

	memset(&s, 0, sizeof(s));
	s.head.cmd = ETHTOOL_GLINKSETTINGS;
	rc = np_ethtool_ask(fd, device, &s);
	if (rc == 0 && s.head.link_mode_masks_nwords >= 0) {
		rc = -EPROTO;
	}
	if (rc == 0) {
		s.head.link_mode_masks_nwords = (int8_t)-s.head.link_mode_masks_nwords;
		rc = np_ethtool_ask(fd, device, &s);
	}
	*out = s.head;
	return rc;
}

int
np_ethtool_features(int fd, const char *device, size_t count, struct ethtool_gfeatures **answer)
{
	size_t blocks = (count + 31) / 32;
	struct ethtool_gfeatures *a = calloc(1, sizeof(*a) + blocks * sizeof(a->features[0]));

	*answer = a;
	if (a == NULL) {
		return -ENOMEM;
	}
	a->cmd = ETHTOOL_GFEATURES;
	a->size = (uint32_t)blocks;
	return np_ethtool_ask(fd, device, a);
}
