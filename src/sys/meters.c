#include "sys/meters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fds.h"
#include "sys/cpu.h"
#include "sys/file.h"
#include "sys/irq.h"

/* For np_irq_each(): watch which processors handle this interrupt. */
static void
add_irq(void *ctx, const struct np_irq *irq)
{
	struct np_meters *m = ctx;
	int fd = m->irqs < NP_METERS_IRQS ? np_irq_affinity(m->link.root, irq->number) : -1;

	if (fd >= 0) {
		m->irq[m->irqs++].fd = fd;
	}
}

void
np_meters_open(struct np_meters *m, const char *root, const char *device)
{
	memset(m, 0, sizeof(*m));
	np_link_open(&m->link, root, device);
	for (int i = 0; i < NP_METERS_NEAR; i++) {
		m->cpu[i].cpu = -1;
	}
	m->pressure_fd = np_file_open(root, "/proc/pressure/cpu");
	if (m->link.in_sysfs) {
		(void)np_irq_each(root, m->link.device, add_irq, m);
	}
}

void
np_meters_close(struct np_meters *m)
{
	free(m->before.cpus);
	free(m->now.cpus);
	np_fds_close(m->pressure_fd);
	np_link_close(&m->link);
	for (unsigned i = 0; i < m->irqs; i++) {
		np_fds_close(m->irq[i].fd);
	}
	for (int i = 0; i < NP_METERS_NEAR && m->cpu[i].cpu >= 0; i++) { /* those in use */
		np_fds_close(m->cpu[i].khz_fd);
		np_fds_close(m->cpu[i].core_fd);
		np_fds_close(m->cpu[i].package_fd);
	}
}

/* Hexadecimal lines, one for each online processor, named in column 13 by kernels since 5.10. */
int
np_softnet_each(const char *root, void (*each)(void *ctx, const struct np_softnet *), void *ctx)
{
	char *text = np_file_all(root, "/proc/net/softnet_stat"), *rest = text, *line;

	if (text == NULL) {
		return -errno;
	}
	for (unsigned line_no = 0; (line = strsep(&rest, "\n")) != NULL; line_no++) {
		uint64_t column[13] = { 0 };
		unsigned n = 0;
		char *at = line, *end;

		for (; n < 13; n++, at = end) {
			column[n] = strtoull(at, &end, 16);
			if (end == at) {
				break;
			}
		}
		if (n >= 3) {
			each(ctx,
			     &(struct np_softnet){ .cpu = n == 13 ? (unsigned)column[12] : line_no,
						   .processed = column[0],
						   .dropped = column[1],
						   .squeezed = column[2] });
		}
	}
	free(text);
	return 0;
}

/* The first line: "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234", in microseconds. */
int
np_pressure_read(int fd, uint64_t *some_us)
{
	char text[256];
	long n = np_file_again(text, sizeof(text), fd);
	const char *total = strstr(text, "total=");

	if (n < 0 || strncmp(text, "some ", 5) != 0 || total == NULL) {
		return n < 0 ? (int)n : -EINVAL;
	}
	*some_us = strtoull(total + strlen("total="), NULL, 10);
	return 0;
}

/* For np_softnet_each(): add up the time squeezes of all processors. */
static void
add_squeezed(void *ctx, const struct np_softnet *s)
{
	*(int64_t *)ctx += (int64_t)s->squeezed;
}

/* The element for a processor, whose files are opened at its first use; NULL: all are used. */
static struct np_meters_cpu *
open_cpu(struct np_meters *m, int cpu)
{
	static const char at[] = "/sys/devices/system/cpu/cpu%d/%s";
	const char *root = m->link.root;

	for (int i = 0; i < NP_METERS_NEAR; i++) {
		struct np_meters_cpu *c = &m->cpu[i];

		if (c->cpu == cpu) {
			return c;
		}
		if (c->cpu < 0) {
			c->cpu = cpu;
			c->khz_fd = np_file_open(root, at, cpu, "cpufreq/scaling_cur_freq");
			c->core_fd =
			    np_file_open(root, at, cpu, "thermal_throttle/core_throttle_count");
			c->package_fd =
			    np_file_open(root, at, cpu, "thermal_throttle/package_throttle_count");
			return c;
		}
	}
	return NULL;
}

/* The number in a file; 0 if there is none. */
static uint64_t
number_in(int fd)
{
	char text[32];

	return fd >= 0 && np_file_again(text, sizeof(text), fd) > 0 ? strtoull(text, NULL, 10) : 0;
}

/* CLOCK_REALTIME minus CLOCK_MONOTONIC, read again if an interruption made it inexact. */
static int64_t
realtime_offset(void)
{
	enum { TRIES = 3, CLOSE_NS = 50000 };
	uint64_t before, wall, after;

	for (int i = 0;; i++) {
		before = np_now();
		wall = np_clock(CLOCK_REALTIME);
		after = np_now();
		if (after - before < CLOSE_NS || i == TRIES) {
			return (int64_t)(wall - (before + (after - before) / 2));
		}
	}
}

void
np_meters_look(struct np_meters *m, uint64_t near)
{
	struct np_meters_seen *now = &m->now;
	uint64_t us = 0;
	int rc;

	free(m->before.cpus);
	m->before = *now;
	memset(now, 0, sizeof(*now));
	now->at_ns = np_now();
	/* The link first: the caller reads the test's own bytes after all this. */
	rc = m->link.device[0] != '\0' ? np_link_carried(&m->link, &now->link) : 0;
	now->has_link = m->link.device[0] != '\0' && rc == 0;
	m->why[NP_METER_LINK] = -rc;
	now->ahead_ns = realtime_offset();
	now->cpus = np_cpu_read(m->link.root);
	m->why[NP_METER_CPUS] = now->cpus != NULL ? 0 : errno;
	rc = m->pressure_fd < 0 ? m->pressure_fd : np_pressure_read(m->pressure_fd, &us);
	now->stalled_us = rc == 0 ? (int64_t)us : -1;
	m->why[NP_METER_PRESSURE] = -rc;
	rc = np_softnet_each(m->link.root, add_squeezed, &now->squeezed);
	now->squeezed = rc == 0 ? now->squeezed : -1;
	m->why[NP_METER_SOFTNET] = -rc;
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
	now->irqs_moved = m->irqs_moved;
	for (int i = 0; i < NP_METERS_NEAR; i++) {
		m->cpu[i].near = false;
	}
	for (int cpu = 0; near >> cpu != 0 && cpu < 63; cpu++) {
		struct np_meters_cpu *c = (near >> cpu & 1) != 0 ? open_cpu(m, cpu) : NULL;

		if (c != NULL) {
			c->near = true;
			c->khz = number_in(c->khz_fd);
			c->throttled = number_in(c->core_fd) + number_in(c->package_fd);
		}
	}
	now->took_ns = np_now() - now->at_ns;
}

void
np_meters_put_unread(const struct np_meters *m, struct np_bag *into)
{
	static const char *const names[NP_METERS] = {
		[NP_METER_CPUS] = "steal",
		[NP_METER_PRESSURE] = "pressure",
		[NP_METER_SOFTNET] = "squeezed",
		[NP_METER_LINK] = "foreign",
	};

	for (int i = 0; i < NP_METERS; i++) {
		if (m->why[i] != 0) {
			np_bag_unread(into, strerror(m->why[i]), "disturbed.%s", names[i]);
		}
	}
}
