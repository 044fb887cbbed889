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
np_ethtool_names(int fd, const char *device, uint32_t kind, char **names, size_t *count)
{
	struct ethtool_gstrings *strings;
	int rc = count_names(fd, device, kind, count);

	*names = NULL;
	if (rc != 0) {
		return rc;
	}
	strings = calloc(1, sizeof(*strings) + *count * NP_ETHTOOL_NAME);
	if (strings == NULL) {
		return -ENOMEM;
	}
	strings->cmd = ETHTOOL_GSTRINGS;
	strings->string_set = kind;
	strings->len = (uint32_t)*count;
	rc = np_ethtool_ask(fd, device, strings);
	*names = rc == 0 ? malloc(*count * NP_ETHTOOL_NAME) : NULL;
	if (*names != NULL) {
		memcpy(*names, strings->data, *count * NP_ETHTOOL_NAME);
		for (size_t i = 0; i < *count; i++) {
			(*names)[(i + 1) * NP_ETHTOOL_NAME - 1] = '\0';
		}
	} else if (rc == 0) {
		rc = -ENOMEM;
	}
	free(strings);
	return rc;
}

int
np_ethtool_stats(int fd, const char *device, uint64_t *values, size_t count)
{
	struct ethtool_stats *stats;
	size_t now;
	int rc = count_names(fd, device, ETH_SS_STATS, &now);

	/* The kernel writes as many as the driver has now, without regard to the room for them. */
	if (rc != 0 || now != count) {
		return rc != 0 ? rc : -ERANGE;
	}
	/* Leave room for counters of queues that are added before the next request. */
	stats = calloc(1, sizeof(*stats) + 2 * count * sizeof(uint64_t));
	if (stats == NULL) {
		return -ENOMEM;
	}
	stats->cmd = ETHTOOL_GSTATS;
	stats->n_stats = (uint32_t)count;
	rc = np_ethtool_ask(fd, device, stats);
	if (rc == 0) {
		memcpy(values, stats->data, count * sizeof(*values));
	}
	free(stats);
	return rc;
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
np_ethtool_features(int fd, const char *device, bool *on, bool *fixed, size_t count)
{
	size_t blocks = (count + 31) / 32; /* of 32 features, a bit each */
	struct ethtool_gfeatures *f =
	    calloc(1, sizeof(*f) + blocks * sizeof(struct ethtool_get_features_block));
	int rc;

	if (f == NULL) {
		return -ENOMEM;
	}
	f->cmd = ETHTOOL_GFEATURES;
	f->size = (uint32_t)blocks;
	rc = np_ethtool_ask(fd, device, f);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		const struct ethtool_get_features_block *b = &f->features[i / 32];
		uint32_t bit = UINT32_C(1) << i % 32;

		on[i] = (b->active & bit) != 0;
		fixed[i] = (b->available & bit) == 0 || (b->never_changed & bit) != 0;
	}
	free(f);
	return rc;
}
