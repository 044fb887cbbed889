/*
 * Requests to an interface's driver by SIOCETHTOOL (linux/ethtool.h), without privilege. fd: any IP
 * socket. All return 0 or a negative errno; -EOPNOTSUPP if the driver does not support it. *answer
 * has to be freed in either case.
 */
#ifndef NP_SYS_ETHTOOL_H
#define NP_SYS_ETHTOOL_H

#include <linux/ethtool.h>
#include <stddef.h>
#include <stdint.h>

/* Make a request: a struct of linux/ethtool.h that begins with its command, and gets the answer. */
int np_ethtool_ask(int fd, const char *device, void *request);

/* The names of one kind (ETH_SS_STATS, ETH_SS_FEATURES), ETH_GSTRING_LEN bytes each with a NUL. */
int np_ethtool_names(int fd, const char *device, uint32_t kind, struct ethtool_gstrings **answer);

/* The driver's counters, `count` as their names (ETH_SS_STATS), and in their order. */
int np_ethtool_stats(int fd, const char *device, size_t count, struct ethtool_stats **answer);

/* The link's settings, without the bitmaps behind them: its speed in Mbit/s, and duplex. */
int np_ethtool_settings(int fd, const char *device, struct ethtool_link_settings *out);

/* 32 features in each block, a bit each, `count` as their names (ETH_SS_FEATURES). */
int
np_ethtool_features(int fd, const char *device, size_t count, struct ethtool_gfeatures **answer);

#endif
