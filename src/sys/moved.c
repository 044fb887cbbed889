#include "sys/moved.h"

#include <ctype.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <net/if.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "sys/cpu.h"
#include "sys/ethtool.h"
#include "sys/file.h"
#include "sys/irq.h"
#include "sys/rtnl.h"
#include "sys/tc.h"

enum {
	NAME = 80,     /* of a counter, with the source's */
	MANY_CPUS = 64 /* more of them, and those that did nothing are left out */
};

enum source { SNMP, SNMP6, NETSTAT, SOFTNET, IRQ, NIC, QDISC, ETHTOOL, SOURCES };

/* The least important last: a bag has room for so much. */
static const struct {
	const char *name;
	bool narrow; /* counts in 32 bits, and may wrap */
} sources[SOURCES] = {
	[SNMP] = { "snmp", sizeof(long) == 4 },
	[SNMP6] = { "snmp6", sizeof(long) == 4 },
	[NETSTAT] = { "netstat", sizeof(long) == 4 },
	[SOFTNET] = { "softnet", true },
	[IRQ] = { "irq", true },
	[NIC] = { "nic", false },
	[QDISC] = { "qdisc", true },
	[ETHTOOL] = { "ethtool", false },
};

struct counter {
	size_t name; /* in the list's text */
	uint64_t value;
};

/* The counters of one source at one moment. */
struct list {
	int why; /* errno that it could not be read for; 0: it was, or does not apply */
	char *text;
	size_t text_len, text_room;
	struct counter *at;
	size_t count, room;
};

struct reading {
	uint64_t at_ns;
	struct list list[SOURCES];
	struct np_cpu_times *cpus;
	int cpu_why;
	bool has_backlog;
	uint32_t backlog; /* bytes in the qdisc: no counter */
	int tc_why;       /* as why, of traffic control */
	struct np_tc tc;
};

struct np_moved {
	char root[256], device[IF_NAMESIZE];
	bool own_root;      /* the root is that of tests: only files are looked at */
	int inet, rtnl;     /* sockets, or negative errnos; 0: not wanted */
	bool sysfs_is_ours; /* of this network namespace */
	char *names;        /* of the driver's counters */
	size_t name_count;
	int names_why;
	unsigned type;
	uint32_t mtu;
	struct reading from;
};

/* --- lists of counters -------------------------------------------------------------------------
 */

static bool
make_room(void **at, size_t *room, size_t need, size_t each)
{
	size_t more = *room * 2 > need ? *room * 2 : need + 64;
	void *fresh;

	if (need <= *room) {
		return true;
	}
	fresh = realloc(*at, more * each);
	if (fresh != NULL) {
		*at = fresh;
		*room = more;
	}
	return fresh != NULL;
}

/* What names of values may not hold becomes '_' (base/bag.h). */
static void
make_name_good(char *name)
{
	char before = '.';

	for (char *at = name; *at != '\0'; before = *at++) {
		bool good = isalnum((unsigned char)*at) || strchr("_-:", *at) != NULL;

		if (*at == '.' ? before == '.' || at[1] == '\0' : !good) {
			*at = '_';
		}
	}
}

static void __attribute__((format(printf, 3, 4)))
add(struct list *l, uint64_t value, const char *fmt, ...)
{
	char name[NAME];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(name, sizeof(name), fmt, args);
	va_end(args);
	if (len <= 0 || len >= NAME ||
	    !make_room((void **)&l->text, &l->text_room, l->text_len + (size_t)len + 1, 1) ||
	    !make_room((void **)&l->at, &l->room, l->count + 1, sizeof(l->at[0]))) {
		return;
	}
	make_name_good(name);
	memcpy(l->text + l->text_len, name, (size_t)len + 1);
	l->at[l->count++] = (struct counter){ .name = l->text_len, .value = value };
	l->text_len += (size_t)len + 1;
}

static const char *
name_of(const struct list *l, size_t i)
{
	return l->text + l->at[i].name;
}

/* The counter of that name; it mostly stands where it stood before. */
static const struct counter *
find(const struct list *l, const char *name, size_t guess)
{
	if (guess < l->count && strcmp(name_of(l, guess), name) == 0) {
		return &l->at[guess];
	}
	for (size_t i = 0; i < l->count; i++) {
		if (strcmp(name_of(l, i), name) == 0) {
			return &l->at[i];
		}
	}
	return NULL;
}

static void
clear(struct list *l)
{
	free(l->text);
	free(l->at);
	memset(l, 0, sizeof(*l));
}

/* --- the sources -------------------------------------------------------------------------------
 */

/* What of /proc/net/snmp and netstat is a state or a setting. */
static bool
is_gauge(const char *name)
{
	static const char *const gauges[] = { "Ip.Forwarding",    "Ip.DefaultTTL",
					      "Tcp.RtoAlgorithm", "Tcp.RtoMin",
					      "Tcp.RtoMax",       "Tcp.MaxConn",
					      "Tcp.CurrEstab",    "MPTcpExt.MPCurrEstab" };

	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++) {
		if (strcmp(name, gauges[i]) == 0) {
			return true;
		}
	}
	return false;
}

static void
take_pair(char *names, char *values, struct list *l)
{
	char *rest_n = NULL, *rest_v = NULL;
	const char *group = strtok_r(names, ": ", &rest_n);
	const char *again = strtok_r(values, ": ", &rest_v), *n, *v;
	char full[NAME];

	if (group == NULL || again == NULL || strcmp(group, again) != 0) {
		return;
	}
	while ((n = strtok_r(NULL, " ", &rest_n)) != NULL &&
	       (v = strtok_r(NULL, " ", &rest_v)) != NULL) {
		snprintf(full, sizeof(full), "%s.%s", group, n);
		if (isdigit((unsigned char)*v) && !is_gauge(full)) {
			add(l, strtoull(v, NULL, 10), "%s", full);
		}
	}
}

/* "Tcp: RtoAlgorithm RtoMin ..." and "Tcp: 1 200 ...", line after line. */
static void
parse_pairs(char *text, struct list *l)
{
	char *rest = NULL;
	char *names = strtok_r(text, "\n", &rest);

	while (names != NULL) {
		char *values = strtok_r(NULL, "\n", &rest);

		if (values != NULL) {
			take_pair(names, values, l);
		}
		names = strtok_r(NULL, "\n", &rest);
	}
}

/* "Ip6InReceives   123" */
static void
parse_columns(char *text, struct list *l)
{
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\n", &rest)) {
		size_t len = strcspn(line, " \t");
		const char *value = line + len + strspn(line + len, " \t");

		if (isdigit((unsigned char)*value)) {
			add(l, strtoull(value, NULL, 10), "%.*s", (int)len, line);
		}
	}
}

/*
 * A line for each processor that is online, in hexadecimal; the 13th column, of kernels since 5.10,
 * says which one.
 */
static void
parse_softnet(char *text, struct list *l)
{
	char *rest = NULL;
	unsigned line_no = 0;

	for (char *line = strtok_r(text, "\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\n", &rest)) {
		uint64_t column[13] = { 0 };
		unsigned n = 0, id;
		char *at = line, *end;

		for (; n < 13; n++, at = end) {
			column[n] = strtoull(at, &end, 16);
			if (end == at) {
				break;
			}
		}
		id = n == 13 ? (unsigned)column[12] : line_no;
		line_no++;
		if (n >= 3) {
			add(l, column[0], "%u.processed", id);
			add(l, column[1], "%u.dropped", id);
			add(l, column[2], "%u.time_squeeze", id);
		}
	}
}

static void
read_text(const struct np_moved *m, struct list *l, const char *path,
	  void (*parse)(char *, struct list *))
{
	size_t len;
	char *text = np_file_all(&len, &l->why, m->root, "%s", path);

	if (text != NULL) {
		parse(text, l);
		free(text);
	}
}

/* Lines of one name are counted together. */
static void
take_irq(void *ctx, const struct np_irq *irq)
{
	struct list *l = ctx;
	char name[NAME];

	snprintf(name, sizeof(name), "%s", irq->name);
	make_name_good(name);
	for (size_t i = 0; i < l->count; i++) {
		if (strcmp(name_of(l, i), name) == 0) {
			l->at[i].value += irq->count;
			return;
		}
	}
	add(l, irq->count, "%s", name);
}

static void
read_irqs(const struct np_moved *m, struct list *l)
{
	int rc = m->sysfs_is_ours ? np_irq_each(m->root, m->device, take_irq, l) : -ENOENT;

	l->why = rc == -ENOENT ? 0 : -rc; /* no hardware, no interrupts */
}

/* The names in sysfs are the members'. */
#define STAT(name)                                                                                 \
	{                                                                                          \
#name, offsetof(struct rtnl_link_stats64, name)                                    \
	}
static const struct {
	const char *name;
	size_t at;
} nic_counters[] = {
	STAT(rx_packets),       STAT(tx_packets),          STAT(rx_bytes),
	STAT(tx_bytes),         STAT(rx_errors),           STAT(tx_errors),
	STAT(rx_dropped),       STAT(tx_dropped),          STAT(multicast),
	STAT(collisions),       STAT(rx_length_errors),    STAT(rx_over_errors),
	STAT(rx_crc_errors),    STAT(rx_frame_errors),     STAT(rx_fifo_errors),
	STAT(rx_missed_errors), STAT(tx_aborted_errors),   STAT(tx_carrier_errors),
	STAT(tx_fifo_errors),   STAT(tx_heartbeat_errors), STAT(tx_window_errors),
};
enum { NIC_COUNTERS = sizeof(nic_counters) / sizeof(nic_counters[0]) };

static void
read_nic_files(const struct np_moved *m, struct list *l)
{
	for (size_t i = 0; i < NIC_COUNTERS; i++) {
		int64_t v;
		int rc = np_file_number(&v, m->root, "/sys/class/net/%s/statistics/%s", m->device,
					nic_counters[i].name);

		if (rc == 0) {
			add(l, (uint64_t)v, "%s", nic_counters[i].name);
		} else if (i == 0) {
			l->why = -rc;
			return;
		}
	}
}

/* The kernel gives all of them, and the right namespace's, in one answer. */
static void
read_nic(const struct np_moved *m, struct reading *r)
{
	struct list *nic = &r->list[NIC], *queue = &r->list[QDISC];
	struct np_rtnl_link link;
	struct np_qdisc q;
	int rc;

	if (m->rtnl < 0) {
		queue->why = -m->rtnl;
		read_nic_files(m, nic);
		return;
	}
	rc = np_rtnl_link(m->rtnl, m->device, &link);
	if (rc != 0) {
		nic->why = queue->why = -rc;
		return;
	}
	for (size_t i = 0; i < NIC_COUNTERS && link.has_stats; i++) {
		uint64_t v;

		memcpy(&v, (const char *)&link.stats + nic_counters[i].at, sizeof(v));
		add(nic, v, "%s", nic_counters[i].name);
	}
	rc = np_rtnl_qdisc(m->rtnl, link.index, false, &q);
	queue->why = rc == -ENOENT ? 0 : -rc;
	if (rc == 0 && q.has_stats) {
		add(queue, q.drops, "drops");
		add(queue, q.overlimits, "overlimits");
		add(queue, q.requeues, "requeues");
		r->has_backlog = true;
		r->backlog = q.backlog;
	}
	r->tc_why = -np_tc_read(m->rtnl, link.index, &r->tc);
}

static void
read_driver(const struct np_moved *m, struct list *l)
{
	uint64_t *values;
	int rc = m->names_why;

	if (rc != 0) {
		l->why = rc;
		return;
	}
	if (m->name_count == 0) {
		return;
	}
	values = calloc(m->name_count, sizeof(*values));
	rc = values != NULL ? np_ethtool_stats(m->inet, m->device, values, m->name_count) : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < m->name_count; i++) {
		add(l, values[i], "%s", m->names + i * NP_ETHTOOL_NAME);
	}
	l->why = -rc;
	free(values);
}

static void
take_reading(const struct np_moved *m, struct reading *r)
{
	struct np_err err = { .code = NP_OK };
	char proc[sizeof(m->root) + 8];

	memset(r, 0, sizeof(*r));
	r->at_ns = np_now();
	read_text(m, &r->list[SNMP], "/proc/net/snmp", parse_pairs);
	read_text(m, &r->list[NETSTAT], "/proc/net/netstat", parse_pairs);
	read_text(m, &r->list[SNMP6], "/proc/net/snmp6", parse_columns);
	if (r->list[SNMP6].why == ENOENT) {
		r->list[SNMP6].why = 0; /* a kernel without IPv6 */
	}
	read_text(m, &r->list[SOFTNET], "/proc/net/softnet_stat", parse_softnet);
	if (m->device[0] != '\0') {
		read_irqs(m, &r->list[IRQ]);
		if (m->own_root) {
			read_nic_files(m, &r->list[NIC]);
		} else {
			read_nic(m, r);
			read_driver(m, &r->list[ETHTOOL]);
		}
	}
	snprintf(proc, sizeof(proc), "%s/proc", m->root);
	if (np_cpu_read(proc, &r->cpus, &err) != NP_OK) {
		r->cpu_why = err.sys != 0 ? err.sys : EINVAL;
	}
}

static void
free_reading(struct reading *r)
{
	for (int i = 0; i < SOURCES; i++) {
		clear(&r->list[i]);
	}
	np_cpu_free(r->cpus);
	r->cpus = NULL;
}

/* --- two of them -------------------------------------------------------------------------------
 */

/* What the driver and the interface are asked by. */
static void
open_device(struct np_moved *m)
{
	struct np_rtnl_link link;

	m->rtnl = np_rtnl_open();
	if (m->rtnl >= 0 && np_rtnl_link(m->rtnl, m->device, &link) == 0) {
		m->sysfs_is_ours = np_rtnl_is_in_sysfs(&link, m->device);
		m->type = link.type;
		m->mtu = link.mtu;
	}
	m->inet = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (m->inet < 0) {
		m->names_why = errno;
		return;
	}
	m->names_why =
	    -np_ethtool_names(m->inet, m->device, ETH_SS_STATS, &m->names, &m->name_count);
	if (m->names_why == EOPNOTSUPP) {
		m->names_why = 0; /* a driver without counters of its own */
		m->name_count = 0;
	}
}

struct np_moved *
np_moved_begin(const char *root, const char *device)
{
	struct np_moved *m = calloc(1, sizeof(*m));

	if (m == NULL) {
		return NULL;
	}
	snprintf(m->root, sizeof(m->root), "%s", root != NULL ? root : "");
	snprintf(m->device, sizeof(m->device), "%s", device != NULL ? device : "");
	m->own_root = m->root[0] != '\0';
	m->sysfs_is_ours = m->own_root;
	m->inet = m->rtnl = -1;
	if (m->device[0] != '\0' && !m->own_root) {
		open_device(m);
	}
	take_reading(m, &m->from);
	return m;
}

/*
 * How far it went. A counter of 32 bits that is lower than before has wrapped if it was about to,
 * and has not gone further than one can within a test; else it went back.
 */
static bool
difference(uint64_t from, uint64_t to, bool narrow, uint64_t *out)
{
	static const uint64_t far_enough = UINT64_C(1) << 30;

	*out = to - from;
	if (to >= from) {
		return true;
	}
	*out = to + (UINT64_C(1) << 32) - from;
	return narrow && from <= UINT32_MAX && *out < far_enough;
}

static void
put_list(const struct list *from, const struct list *to, enum source s, struct np_bag *into)
{
	int why = from->why != 0 ? from->why : to->why;

	if (why != 0) {
		np_bag_unread(into, strerror(why), "moved.%s", sources[s].name);
		return;
	}
	for (size_t i = 0; i < to->count; i++) {
		const char *name = name_of(to, i);
		const struct counter *before = find(from, name, i);
		uint64_t by;

		if (before == NULL || before->value == to->at[i].value) {
			continue; /* one that has come about meanwhile says nothing */
		}
		if (difference(before->value, to->at[i].value, sources[s].narrow, &by) &&
		    by <= INT64_MAX) {
			np_bag_int(into, (int64_t)by, "moved.%s.%s", sources[s].name, name);
		} else {
			np_bag_unread(into, "went back: it was reset, or has wrapped",
				      "moved.%s.%s", sources[s].name, name);
		}
	}
}

static void
put_share(const struct np_cpu_share *c, struct np_bag *into)
{
	const struct {
		const char *name;
		double share;
	} parts[] = {
		{ "user", c->user }, { "system", c->system }, { "softirq", c->softirq },
		{ "irq", c->irq },   { "iowait", c->iowait }, { "steal", c->steal },
		{ "idle", c->idle },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		np_bag_real(into, parts[i].share, "cpu.%d.%s", c->id, parts[i].name);
	}
}

static void
put_cpus(const struct reading *from, const struct reading *to, struct np_bag *into)
{
	int why = from->cpu_why != 0 ? from->cpu_why : to->cpu_why;
	struct np_cpu_share *shares;
	size_t count;

	if (why != 0) {
		np_bag_unread(into, strerror(why), "cpu.count");
		return;
	}
	count = np_cpu_shares(from->cpus, to->cpus, NULL, 0);
	shares = calloc(count + 1, sizeof(*shares));
	if (shares == NULL) {
		np_bag_unread(into, strerror(ENOMEM), "cpu.count");
		return;
	}
	np_cpu_shares(from->cpus, to->cpus, shares, count);
	np_bag_int(into, (int64_t)count, "cpu.count");
	for (size_t i = 0; i < count; i++) {
		if (shares[i].known && (count <= MANY_CPUS || shares[i].idle < 0.99)) {
			put_share(&shares[i], into);
		}
	}
	free(shares);
}

void
np_moved_link(const struct np_moved *m, unsigned *type, uint32_t *mtu)
{
	*type = m != NULL ? m->type : 0;
	*mtu = m != NULL ? m->mtu : 0;
}

static void
put_tc(const struct reading *from, const struct reading *to, struct np_bag *into)
{
	int why = from->tc_why != 0 ? from->tc_why : to->tc_why;

	if (why != 0) {
		np_bag_unread(into, strerror(why), "moved.tc");
	} else {
		np_tc_put(&from->tc, &to->tc, into);
	}
}

void
np_moved_end(struct np_moved *m, struct np_bag *into)
{
	struct reading to;

	if (m == NULL) {
		return;
	}
	take_reading(m, &to);
	np_bag_real(into, (double)(to.at_ns - m->from.at_ns) / 1e9, "moved.seconds");
	put_cpus(&m->from, &to, into);
	for (int s = 0; s < SOURCES; s++) {
		put_list(&m->from.list[s], &to.list[s], (enum source)s, into);
	}
	put_tc(&m->from, &to, into);
	if (to.has_backlog) {
		np_bag_int(into, to.backlog, "moved.qdisc.backlog_end");
	}
	if (m->inet >= 0) {
		close(m->inet);
	}
	if (m->rtnl >= 0) {
		close(m->rtnl);
	}
	free_reading(&m->from);
	free_reading(&to);
	free(m->names);
	free(m);
}
