/*
 * Requests to an interface's driver by SIOCETHTOOL (linux/ethtool.h), without privilege. fd: any IP
 * socket. All return 0 or a negative errno; -EOPNOTSUPP if the driver does not support it.
 */
#ifndef NP_SYS_ETHTOOL_H
#define NP_SYS_ETHTOOL_H

#include <linux/ethtool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NP_ETHTOOL_NAME = 32 };

/* Make a request: a struct of linux/ethtool.h that begins with its command, and gets the answer. */
int np_ethtool_ask(int fd, const char *device, void *request);

/* The names of one kind (ETH_SS_STATS, ETH_SS_FEATURES), each in NP_ETHTOOL_NAME bytes with a NUL.
 * *names has to be freed. */
int np_ethtool_names(int fd, const char *device, uint32_t kind, char **names, size_t *count);

/* The driver's counters, in the order of their names (ETH_SS_STATS), into values[count]. */
int np_ethtool_stats(int fd, const char *device, uint64_t *values, size_t count);

/* The link's settings, without the bitmaps behind them: its speed in Mbit/s, and duplex. */
int np_ethtool_settings(int fd, const char *device, struct ethtool_link_settings *out);

/* Which features are on, and which can't be changed, in the order of names (ETH_SS_FEATURES). */
int np_ethtool_features(int fd, const char *device, bool *on, bool *fixed, size_t count);

#endif
