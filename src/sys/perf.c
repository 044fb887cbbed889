#include "sys/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

const struct np_perf_events np_perf_processor = {
	.type = PERF_TYPE_HARDWARE,
	.config = { PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS },
};

/* What read(2) of the first descriptor, the leader of the group, returns. */
struct values {
	uint64_t count, enabled_ns, running_ns, value[NP_PERF_EVENTS];
};

/* Close the first `count` descriptors. */
static void
close_all(const struct np_perf *p, int count)
{
	for (int i = 0; i < count; i++) {
		close(p->fd[i]);
	}
}

/* Open the counters as one group. False: p->error says why not. */
static bool
open_all(struct np_perf *p, const struct np_perf_events *e)
{
	for (int i = 0; i < NP_PERF_EVENTS; i++) {
		struct perf_event_attr attr;

		memset(&attr, 0, sizeof(attr));
		attr.type = e->type;
		attr.size = sizeof(attr);
		attr.config = e->config[i];
		attr.disabled = i == 0; /* all of them begin with the first */
		attr.exclude_kernel = p->user_only;
		attr.exclude_hv = 1;
		attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
				   PERF_FORMAT_TOTAL_TIME_RUNNING;
		p->fd[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, i == 0 ? -1 : p->fd[0],
					PERF_FLAG_FD_CLOEXEC);
		if (p->fd[i] < 0) {
			p->error = errno;
			close_all(p, i);
			return false;
		}
	}
	p->error = ioctl(p->fd[0], PERF_EVENT_IOC_ENABLE, 0) == 0 ? 0 : errno;
	if (p->error != 0) {
		close_all(p, NP_PERF_EVENTS);
	}
	return p->error == 0;
}

void
np_perf_open(struct np_perf *p, const struct np_perf_events *e)
{
	memset(p, 0, sizeof(*p));
	p->is_open = open_all(p, e);
	if (!p->is_open && (p->error == EACCES || p->error == EPERM)) {
		p->user_only = true; /* perf_event_paranoid is 2 for most users */
		p->is_open = open_all(p, e);
	}
}

/* Read all counters. False: they are not open; or they can't be read, and are closed now. */
static bool
read_counters(struct np_perf *p, struct values *v)
{
	if (!p->is_open) {
		return false;
	}
	if (read(p->fd[0], v, sizeof(*v)) != (ssize_t)sizeof(*v)) {
		np_perf_close(p);
		p->error = EIO;
		return false;
	}
	return true;
}

void
np_perf_begin(struct np_perf *p)
{
	struct values v;

	if (read_counters(p, &v)) {
		p->enabled_ns = v.enabled_ns;
		p->running_ns = v.running_ns;
		memcpy(p->value, v.value, sizeof(p->value));
	}
}

void
np_perf_end(struct np_perf *p)
{
	struct values v;

	if (!read_counters(p, &v)) {
		return;
	}
	p->enabled_ns = v.enabled_ns - p->enabled_ns;
	p->running_ns = v.running_ns - p->running_ns;
	p->never = p->running_ns == 0 && p->enabled_ns > 0;
	for (int i = 0; i < NP_PERF_EVENTS; i++) {
		p->value[i] = v.value[i] - p->value[i];
		if (p->running_ns < p->enabled_ns && !p->never) {
			p->value[i] = (uint64_t)((double)p->value[i] * (double)p->enabled_ns /
						 (double)p->running_ns);
		}
	}
}

void
np_perf_close(struct np_perf *p)
{
	close_all(p, p->is_open ? NP_PERF_EVENTS : 0);
	p->is_open = false;
}

const char *
np_perf_why_not(const struct np_perf *p)
{
	switch (p->error) {
	case 0:
		return p->never ? "other programs used the processor's counters all the time"
				: NULL;
	case ENOENT:
	case EOPNOTSUPP:
	case ENODEV:
		return "this machine's processor, or its hypervisor, has no such counters";
	case ENOSYS:
		return "this kernel has no perf_event_open(2)";
	case EACCES:
	case EPERM:
		return "not permitted: kernel.perf_event_paranoid, or a sandbox, forbids it";
	default:
		return strerror(p->error);
	}
}
