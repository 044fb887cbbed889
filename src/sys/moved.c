#include "sys/moved.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/cpu.h"
#include "sys/ethtool.h"
#include "sys/file.h"
#include "sys/irq.h"
#include "sys/link.h"
#include "sys/meters.h"
#include "sys/tc.h"

/* gcc takes what is stored in an array's element for leaked, as in base/bag.c. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

enum {
	NAME = 80,     /* bytes of a counter's name, with the source's */
	MANY_CPUS = 64 /* if there are more processors, idle ones are left out */
};

enum source { SNMP, SNMP6, NETSTAT, SOFTNET, IRQ, NIC, QDISC, ETHTOOL, SOURCES };

/* Names in the bag. The least important source is the last, since a bag may become full. */
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
	char *name;
	uint64_t value;
};

/* The counters of one source at one moment. */
struct list {
	int why; /* errno of reading them; 0: they were read, or don't apply */
	struct counter *at;
	size_t count, room;
};

struct reading {
	uint64_t at_ns;
	struct list list[SOURCES];
	struct np_cpu_times *cpus;
	int cpu_why;
	int tc_why; /* errno of reading traffic control; 0 */
	struct np_tc tc;
};

struct np_moved {
	struct np_link link;
	struct reading from;
};

/* Append a counter. One that has too long a name, or for which there is no memory, is left out. */
static void __attribute__((format(printf, 3, 4)))
add(struct list *l, uint64_t value, const char *fmt, ...)
{
	char name[NAME];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(name, sizeof(name), fmt, args);
	va_end(args);
	if (len <= 0 || len >= NAME) {
		return;
	}
	if (l->count == l->room) {
		size_t room = l->room == 0 ? 64 : 2 * l->room;
		struct counter *more = realloc(l->at, room * sizeof(*more));

		if (more == NULL) {
			return;
		}
		l->at = more;
		l->room = room;
	}
	np_bag_clean_name(name);
	l->at[l->count] = (struct counter){ .name = strdup(name), .value = value };
	l->count += l->at[l->count].name != NULL;
}

/* The counter of that name, which is mostly at the same index as in the other reading: guess. */
static struct counter *
find(const struct list *l, const char *name, size_t guess)
{
	if (guess < l->count && strcmp(l->at[guess].name, name) == 0) {
		return &l->at[guess];
	}
	for (size_t i = 0; i < l->count; i++) {
		if (strcmp(l->at[i].name, name) == 0) {
			return &l->at[i];
		}
	}
	return NULL;
}

/* Is it a state or a setting, among the counters of /proc/net/snmp and netstat? */
static bool
is_gauge(const char *name)
{
	static const char *const gauges[] = { "Ip.Forwarding",    "Ip.DefaultTTL",
					      "Tcp.RtoAlgorithm", "Tcp.RtoMin",
					      "Tcp.RtoMax",       "Tcp.MaxConn",
					      "Tcp.CurrEstab",    "MPTcpExt.MPCurrEstab" };

	return NP_TEXT_ONE_OF(name, gauges);
}

/* Add the counters of pairs of lines: "Tcp: RtoAlgorithm RtoMin ..." and "Tcp: 1 200 ...". */
static void
parse_pairs(char *text, struct list *l)
{
	char *rest = NULL, *names = strtok_r(text, "\n", &rest), *values;

	for (; names != NULL && (values = strtok_r(NULL, "\n", &rest)) != NULL;
	     names = strtok_r(NULL, "\n", &rest)) {
		char *rest_n = NULL, *rest_v = NULL;
		const char *group = strtok_r(names, ": ", &rest_n);
		const char *again = strtok_r(values, ": ", &rest_v), *n, *v;
		char full[NAME];

		if (group == NULL || again == NULL || strcmp(group, again) != 0) {
			continue;
		}
		while ((n = strtok_r(NULL, " ", &rest_n)) != NULL &&
		       (v = strtok_r(NULL, " ", &rest_v)) != NULL) {
			snprintf(full, sizeof(full), "%s.%s", group, n);
			if (isdigit((unsigned char)*v) && !is_gauge(full)) {
				add(l, strtoull(v, NULL, 10), "%s", full);
			}
		}
	}
}

/* Add the counters of lines like "Ip6InReceives   123". */
static void
parse_columns(char *text, struct list *l)
{
	char *line;

	while ((line = strsep(&text, "\n")) != NULL) {
		size_t len = strcspn(line, " \t");
		const char *value = line + len + strspn(line + len, " \t");

		if (isdigit((unsigned char)*value)) {
			add(l, strtoull(value, NULL, 10), "%.*s", (int)len, line);
		}
	}
}

static void
take_softnet(void *ctx, const struct np_softnet *s)
{
	add(ctx, s->processed, "%u.processed", s->cpu);
	add(ctx, s->dropped, "%u.dropped", s->cpu);
	add(ctx, s->squeezed, "%u.time_squeeze", s->cpu);
}

/* Read a file into a list, which gets the errno if that fails. */
static void
read_text(const struct np_moved *m, struct list *l, const char *path,
	  void (*parse)(char *, struct list *))
{
	char *text = np_file_all(m->link.root, "%s", path);

	if (text != NULL) {
		parse(text, l);
	} else {
		l->why = errno;
	}
	free(text);
}

/* Add an interrupt; those of the same name are added up. */
static void
take_irq(void *ctx, const struct np_irq *irq)
{
	struct list *l = ctx;
	struct counter *same;
	char name[NAME];

	snprintf(name, sizeof(name), "%s", irq->name);
	np_bag_clean_name(name);
	same = find(l, name, 0);
	if (same != NULL) {
		same->value += irq->count;
	} else {
		add(l, irq->count, "%s", name);
	}
}

/* The driver's own counters, as ethtool -S lists them. */
static void
read_driver(const struct np_link *link, struct list *l)
{
	struct ethtool_gstrings *names = NULL;
	struct ethtool_stats *stats = NULL;
	int rc = link->inet < 0 ? link->inet
				: np_ethtool_names(link->inet, link->device, ETH_SS_STATS, &names);
	bool has_none = rc == -EOPNOTSUPP;

	if (rc == 0) {
		rc = np_ethtool_stats(link->inet, link->device, names->len, &stats);
	}
	for (size_t i = 0; rc == 0 && i < names->len; i++) {
		add(l, stats->data[i], "%s", (char *)names->data + i * ETH_GSTRING_LEN);
	}
	l->why = has_none ? 0 : -rc;
	free(stats);
	free(names);
}

/* Read all counters. A list that can't be read has its errno in `why`. */
static void
take_reading(const struct np_moved *m, struct reading *r)
{
	const struct np_tc_item *root = NULL;

	memset(r, 0, sizeof(*r));
	r->at_ns = np_now();
	read_text(m, &r->list[SNMP], "/proc/net/snmp", parse_pairs);
	read_text(m, &r->list[NETSTAT], "/proc/net/netstat", parse_pairs);
	read_text(m, &r->list[SNMP6], "/proc/net/snmp6", parse_columns);
	if (r->list[SNMP6].why == ENOENT) {
		r->list[SNMP6].why = 0; /* a kernel without IPv6 */
	}
	r->list[SOFTNET].why = -np_softnet_each(m->link.root, take_softnet, &r->list[SOFTNET]);
	if (m->link.device[0] != '\0') {
		int rc = m->link.in_sysfs
			     ? np_irq_each(m->link.root, m->link.device, take_irq, &r->list[IRQ])
			     : -ENOENT;
		struct rtnl_link_stats64 stats;
		uint64_t v;

		r->list[IRQ].why = rc == -ENOENT ? 0 : -rc; /* no hardware, no interrupts */
		r->list[NIC].why = -np_link_count(&m->link, &stats);
		for (size_t i = 0; i < NP_LINK_COUNTERS && r->list[NIC].why == 0; i++) {
			memcpy(&v, (const char *)&stats + np_link_counters[i].at, sizeof(v));
			add(&r->list[NIC], v, "%s", np_link_counters[i].name);
		}
	}
	if (m->link.device[0] != '\0' && m->link.root[0] == '\0') { /* not from a test's root */
		struct list *l = &r->list[QDISC];

		if (m->link.rtnl < 0 || m->link.at_open.index == 0) {
			l->why = m->link.rtnl < 0 ? -m->link.rtnl : ENODEV;
		} else {
			r->tc_why = -np_tc_read(m->link.rtnl, m->link.at_open.index, &r->tc);
			root = np_tc_root(&r->tc);
			/* Its root was read first; a later part may have failed. */
			l->why = root != NULL && root->has_queue ? 0 : r->tc_why;
		}
		if (root != NULL && root->has_queue) {
			add(l, root->drops, "drops");
			add(l, root->overlimits, "overlimits");
			add(l, root->requeues, "requeues");
		}
		read_driver(&m->link, &r->list[ETHTOOL]);
	}
	r->cpus = np_cpu_read(m->link.root);
	r->cpu_why = r->cpus == NULL ? errno : 0;
}

static void
free_reading(struct reading *r)
{
	for (int s = 0; s < SOURCES; s++) {
		for (size_t i = 0; i < r->list[s].count; i++) {
			free(r->list[s].at[i].name);
		}
		free(r->list[s].at);
	}
	free(r->cpus);
}

struct np_moved *
np_moved_begin(const char *root, const char *device)
{
	struct np_moved *m = calloc(1, sizeof(*m));

	if (m == NULL) {
		return NULL;
	}
	np_link_open(&m->link, root, device);
	take_reading(m, &m->from);
	return m;
}

void
np_moved_restart(struct np_moved *m)
{
	if (m != NULL) {
		free_reading(&m->from);
		take_reading(m, &m->from);
	}
}

/* Put by how much the counters of a source have grown. */
static void
put_list(const struct list *from, const struct list *to, enum source s, struct np_bag *into)
{
	int why = from->why != 0 ? from->why : to->why;

	if (why != 0) {
		np_bag_unread(into, strerror(why), "moved.%s", sources[s].name);
		return;
	}
	for (size_t i = 0; i < to->count; i++) {
		const char *name = to->at[i].name;
		const struct counter *before = find(from, name, i);
		uint64_t by, was;

		if (before == NULL || before->value == to->at[i].value) {
			continue; /* it is new, or unchanged */
		}
		/* A lower 32-bit counter wrapped if it grew by less than 2^30, else was reset. */
		was = before->value;
		by = to->at[i].value - was;
		if (to->at[i].value < was) {
			by += UINT64_C(1) << 32;
			by = sources[s].narrow && was <= UINT32_MAX && by < UINT64_C(1) << 30
				 ? by
				 : UINT64_MAX;
		}
		if (by <= INT64_MAX) {
			np_bag_int(into, (int64_t)by, "moved.%s.%s", sources[s].name, name);
		} else {
			np_bag_unread(into, "went back: it was reset, or has wrapped",
				      "moved.%s.%s", sources[s].name, name);
		}
	}
}

/* Put how a processor spent its time. */
static void
put_cpu(const struct np_cpu_ticks *spent, struct np_bag *into)
{
	const struct {
		const char *name;
		uint64_t ticks;
	} parts[] = {
		{ "user", spent->user }, { "system", spent->system }, { "softirq", spent->softirq },
		{ "irq", spent->irq },   { "iowait", spent->iowait }, { "steal", spent->steal },
		{ "idle", spent->idle },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		np_bag_real(into, (double)parts[i].ticks / (double)spent->all, "cpu.%d.%s",
			    spent->id, parts[i].name);
	}
}

/* Put the processors; of more than MANY_CPUS, those that were idle for less than 99 %. */
static void
put_cpus(const struct np_cpu_times *from, const struct np_cpu_times *to, struct np_bag *into)
{
	struct np_cpu_ticks spent;
	size_t count = 0;

	for (size_t i = 0; np_cpu_next(from, to, &i, &spent);) {
		count++;
	}
	np_bag_int(into, (int64_t)count, "cpu.count");
	for (size_t i = 0; np_cpu_next(from, to, &i, &spent);) {
		if (spent.all > 0 &&
		    (count <= MANY_CPUS || (double)spent.idle / (double)spent.all < 0.99)) {
			put_cpu(&spent, into);
		}
	}
}

void
np_moved_end(struct np_moved *m, struct np_bag *into)
{
	const struct np_tc_item *root;
	struct reading to;
	int why;

	if (m == NULL) {
		return;
	}
	take_reading(m, &to);
	np_bag_real(into, (double)(to.at_ns - m->from.at_ns) / 1e9, "moved.seconds");
	why = m->from.cpu_why != 0 ? m->from.cpu_why : to.cpu_why;
	if (why != 0) {
		np_bag_unread(into, strerror(why), "cpu.count");
	} else {
		put_cpus(m->from.cpus, to.cpus, into);
	}
	for (int s = 0; s < SOURCES; s++) {
		put_list(&m->from.list[s], &to.list[s], (enum source)s, into);
	}
	why = m->from.tc_why != 0 ? m->from.tc_why : to.tc_why;
	if (why != 0) {
		np_bag_unread(into, strerror(why), "moved.tc");
	} else {
		np_tc_put(&m->from.tc, &to.tc, into);
	}
	root = np_tc_root(&to.tc);
	if (root != NULL && root->has_queue) {
		np_bag_int(into, root->backlog, "moved.qdisc.backlog_end");
	}
	np_link_close(&m->link);
	free_reading(&m->from);
	free_reading(&to);
	free(m);
}
