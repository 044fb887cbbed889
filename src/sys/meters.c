#include "sys/meters.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/if_ether.h>
#include <net/if_arp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sys/file.h"
#include "sys/irq.h"
#include "sys/rtnl.h"

static int __attribute__((format(printf, 2, 3))) open_file(const char *root, const char *fmt, ...)
{
	char path[PATH_MAX];
	size_t used = (size_t)snprintf(path, sizeof(path), "%s", root);
	va_list args;
	int fd;

	if (used >= sizeof(path)) {
		return -ENAMETOOLONG;
	}
	va_start(args, fmt);
	vsnprintf(path + used, sizeof(path) - used, fmt, args);
	va_end(args);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

/* A descriptor, or -1 and the reason. */
static int
or_why(int fd, int *why)
{
	*why = fd < 0 ? -fd : 0;
	return fd < 0 ? -1 : fd;
}

static void
add_irq(void *ctx, const struct np_irq *irq)
{
	struct np_meters *m = ctx;
	int fd;

	if (m->irqs == NP_METERS_IRQS) {
		return;
	}
	fd = open_file(m->root, "/proc/irq/%d/effective_affinity_list", irq->number);
	if (fd < 0) {
		fd = open_file(m->root, "/proc/irq/%d/smp_affinity_list", irq->number);
	}
	if (fd >= 0) {
		m->irq[m->irqs++].fd = fd;
	}
}

/* Tests have no interface: what is below their root are files. */
static void
open_link(struct np_meters *m)
{
	struct np_rtnl_link link;
	bool is_ours = m->root[0] != '\0';

	if (!is_ours) {
		m->rtnl = or_why(np_rtnl_open(), &m->link_why);
	}
	if (m->rtnl >= 0) {
		m->link_why = -np_rtnl_link(m->rtnl, m->device, &link);
		if (m->link_why == 0) {
			m->link_header = link.type == ARPHRD_ETHER ? ETH_HLEN : 0;
			is_ours = np_rtnl_is_in_sysfs(&link, m->device);
		}
	}
	if (is_ours) {
		(void)np_irq_each(m->root, m->device, add_irq, m);
	}
}

void
np_meters_open(struct np_meters *m, const char *root, const char *device)
{
	memset(m, 0, sizeof(*m));
	m->root = root;
	m->rtnl = -1;
	for (int i = 0; i < NP_METERS_CLOSE; i++) {
		m->cpu[i].cpu = -1;
	}
	snprintf(m->device, sizeof(m->device), "%s", device);
	m->stat_fd = or_why(open_file(root, "/proc/stat"), &m->stat_why);
	m->pressure_fd = or_why(open_file(root, "/proc/pressure/cpu"), &m->pressure_why);
	m->softnet_fd = or_why(open_file(root, "/proc/net/softnet_stat"), &m->softnet_why);
	if (device[0] != '\0') {
		open_link(m);
	}
}

static void
shut(int fd)
{
	if (fd >= 0) {
		close(fd);
	}
}

void
np_meters_close(struct np_meters *m)
{
	shut(m->stat_fd);
	shut(m->pressure_fd);
	shut(m->softnet_fd);
	shut(m->rtnl);
	for (unsigned i = 0; i < m->irqs; i++) {
		shut(m->irq[i].fd);
	}
	for (int i = 0; i < NP_METERS_CLOSE; i++) {
		if (m->cpu[i].cpu >= 0) {
			shut(m->cpu[i].khz_fd);
			shut(m->cpu[i].core_fd);
			shut(m->cpu[i].package_fd);
		}
	}
}

/* --- a look ------------------------------------------------------------------------------------
 */

/* Read again what is open; false when there is nothing. */
static bool
again(struct np_meters *m, int fd, int *why)
{
	long n = fd >= 0 ? np_file_again_whole(m->text, NP_METERS_TEXT, fd) : 0;

	if (n < 0) {
		*why = (int)-n;
	}
	return n > 0;
}

/* "cpu3 user nice system idle iowait irq softirq steal ..." */
static void
take_cpu(const char *line, struct np_meters_seen *out)
{
	uint64_t column[8] = { 0 };
	char *at;
	unsigned long cpu = strtoul(line, &at, 10);

	for (int i = 0; i < 8; i++) {
		column[i] = strtoull(at, &at, 10);
	}
	if (cpu < NP_METERS_CPUS) {
		out->user[cpu] = column[0] + column[1];
		out->idle[cpu] = column[3] + column[4];
		out->steal[cpu] = column[7];
	}
}

static void
look_at_cpus(struct np_meters *m, struct np_meters_seen *out)
{
	if (!again(m, m->stat_fd, &m->stat_why)) {
		return;
	}
	for (const char *line = m->text; strncmp(line, "cpu", 3) == 0;) {
		const char *end = strchr(line, '\n');

		if (end == NULL) {
			return; /* cut by the end of the buffer */
		}
		if (line[3] != ' ') {
			take_cpu(line + 3, out);
		}
		line = end + 1;
	}
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" */
static void
look_at_pressure(struct np_meters *m, struct np_meters_seen *out)
{
	const char *at =
	    again(m, m->pressure_fd, &m->pressure_why) ? strstr(m->text, "total=") : NULL;

	out->stalled_us = at != NULL ? strtoll(at + strlen("total="), NULL, 10) : -1;
}

/* The third column of each processor's line, in hexadecimal. */
static void
look_at_softnet(struct np_meters *m, struct np_meters_seen *out)
{
	out->squeezed = -1;
	if (!again(m, m->softnet_fd, &m->softnet_why)) {
		return;
	}
	out->squeezed = 0;
	for (char *line = m->text; line != NULL && *line != '\0';) {
		strtoull(line, &line, 16);
		strtoull(line, &line, 16);
		out->squeezed += (int64_t)strtoull(line, &line, 16);
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
}

static void
look_at_irqs(struct np_meters *m)
{
	for (unsigned i = 0; i < m->irqs; i++) {
		char on[sizeof(m->irq[i].on)];

		if (np_file_again(on, sizeof(on), m->irq[i].fd) <= 0) {
			continue;
		}
		if (m->irq[i].on[0] != '\0' && strcmp(on, m->irq[i].on) != 0) {
			m->irqs_moved++;
		}
		memcpy(m->irq[i].on, on, sizeof(on));
	}
}

/* The place of that processor, opened if need be; NULL: all are taken. */
static struct np_meters_cpu *
place_of(struct np_meters *m, int cpu)
{
	static const char at[] = "/sys/devices/system/cpu/cpu%d/%s";

	for (int i = 0; i < NP_METERS_CLOSE; i++) {
		struct np_meters_cpu *c = &m->cpu[i];

		if (c->cpu == cpu) {
			return c;
		}
		if (c->cpu < 0) {
			c->cpu = cpu;
			c->khz_fd = open_file(m->root, at, cpu, "cpufreq/scaling_cur_freq");
			c->core_fd =
			    open_file(m->root, at, cpu, "thermal_throttle/core_throttle_count");
			c->package_fd =
			    open_file(m->root, at, cpu, "thermal_throttle/package_throttle_count");
			return c;
		}
	}
	return NULL;
}

static uint64_t
number_in(int fd)
{
	char text[32];

	return fd >= 0 && np_file_again(text, sizeof(text), fd) > 0 ? strtoull(text, NULL, 10) : 0;
}

static void
look_closely(struct np_meters *m, uint64_t near)
{
	for (int i = 0; i < NP_METERS_CLOSE; i++) {
		m->cpu[i].near = false;
	}
	for (int cpu = 0; near >> cpu != 0 && cpu < 63; cpu++) {
		struct np_meters_cpu *c = (near >> cpu & 1) != 0 ? place_of(m, cpu) : NULL;

		if (c != NULL) {
			c->near = true;
			c->khz = number_in(c->khz_fd);
			c->throttled = number_in(c->core_fd) + number_in(c->package_fd);
		}
	}
}

static void
look_at_link(struct np_meters *m, struct np_meters_seen *out)
{
	struct np_rtnl_link link;
	int rc;

	if (m->rtnl < 0 || m->link_why != 0) {
		return;
	}
	rc = np_rtnl_link(m->rtnl, m->device, &link);
	if (rc != 0 || !link.has_stats) {
		m->link_why = rc != 0 ? -rc : EOPNOTSUPP;
		return;
	}
	out->has_link = true;
	out->in_bytes = link.stats.rx_bytes;
	out->in_packets = link.stats.rx_packets;
	out->out_bytes = link.stats.tx_bytes;
	out->out_packets = link.stats.tx_packets;
}

/* Taken twice where something came between the two readings: a step is what it is to show. */
static int64_t
ahead(void)
{
	enum { TRIES = 3, CLOSE_NS = 50000 };
	struct timespec ts;
	uint64_t before, after;

	for (int i = 0;; i++) {
		before = np_now();
		clock_gettime(CLOCK_REALTIME, &ts);
		after = np_now();
		if (after - before < CLOSE_NS || i == TRIES) {
			return (int64_t)ts.tv_sec * (int64_t)NP_SEC + ts.tv_nsec -
			       (int64_t)(before + (after - before) / 2);
		}
	}
}

void
np_meters_look(struct np_meters *m, uint64_t near, struct np_meters_seen *out)
{
	char text[NP_METERS_TEXT];

	m->text = text;
	memset(out, 0, sizeof(*out));
	out->at_ns = np_now();
	look_at_link(m, out); /* first, and what is the test's own last: the caller's */
	out->ahead_ns = ahead();
	look_at_cpus(m, out);
	look_at_pressure(m, out);
	look_at_softnet(m, out);
	look_at_irqs(m);
	out->irqs_moved = m->irqs_moved;
	look_closely(m, near);
	m->text = NULL;
	out->took_ns = np_now() - out->at_ns;
}

void
np_meters_put_unread(const struct np_meters *m, const char *prefix, struct np_bag *into)
{
	const struct {
		const char *name;
		int why;
	} all[] = { { "steal", m->stat_why },
		    { "pressure", m->pressure_why },
		    { "squeezed", m->softnet_why },
		    { "foreign", m->link_why } };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i].why != 0) {
			np_bag_unread(into, strerror(all[i].why), "%s.%s", prefix, all[i].name);
		}
	}
}
