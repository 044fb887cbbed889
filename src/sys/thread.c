#include "sys/thread.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#ifdef SYS_socketcall
#include <linux/net.h> /* SYS_SEND and the like */
#endif

#include "base/clock.h"
#include "base/fds.h"
#include "sys/file.h"

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

/* Open this thread's counters as one group, and start them. False: p->error; none is open. */
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

/* Read "12345 678 9". */
bool
np_thread_time(int fd, struct np_thread_time *t)
{
	char text[96], *at;

	if (np_file_again(text, sizeof(text), fd) <= 0) {
		return false;
	}
	t->ran_ns = strtoull(text, &at, 10);
	t->waited_ns = strtoull(at, &at, 10);
	t->turns = strtoull(at, NULL, 10);
	return true;
}

static int64_t
micros(const struct timeval *t)
{
	return (int64_t)t->tv_sec * 1000000 + t->tv_usec;
}

/* Read what the calling thread has used so far. */
static void
read_use(struct np_thread_use *u)
{
	int fd = np_file_open(u->root, "/proc/thread-self/schedstat");
	struct np_thread_time t;
	struct rusage r = { .ru_nvcsw = 0 };

	(void)getrusage(RUSAGE_THREAD, &r); /* does not fail */
	u->user_us = micros(&r.ru_utime);
	u->system_us = micros(&r.ru_stime);
	u->voluntary = r.ru_nvcsw;
	u->involuntary = r.ru_nivcsw;
	u->run_delay_ns = np_thread_time(fd, &t) ? (int64_t)t.waited_ns : -1;
	np_fds_close(fd);
}

void
np_thread_open(struct np_thread_use *u)
{
	u->thread = (int)syscall(SYS_gettid);
	if (u->counts != NULL) {
		np_perf_open(&u->perf, u->counts);
	}
}

void
np_thread_begin(struct np_thread_use *u)
{
	read_use(u);
	u->began_ns = np_now();
	np_perf_begin(&u->perf);
}

void
np_thread_end(struct np_thread_use *u)
{
	struct np_thread_use before;

	np_perf_end(&u->perf); /* first: it counts the reads below, too */
	before = *u;
	u->ended_ns = np_now();
	read_use(u);
	u->cpu = sched_getcpu();
	u->user_us -= before.user_us;
	u->system_us -= before.system_us;
	u->voluntary -= before.voluntary;
	u->involuntary -= before.involuntary;
	u->run_delay_ns = u->run_delay_ns < 0 || before.run_delay_ns < 0
			      ? -1
			      : u->run_delay_ns - before.run_delay_ns;
}

void
np_thread_put(const struct np_thread_use *u, struct np_bag *into)
{
	double seconds = (double)(u->ended_ns - u->began_ns) / 1e9;

	if (u->ended_ns == 0) {
		return; /* the loop never began */
	}
	np_bag_real(into, seconds, "thread.seconds");
	np_bag_int(into, u->cpu, "thread.cpu");
	np_bag_real(into, (double)u->user_us / 1e6, "thread.user_s");
	np_bag_real(into, (double)u->system_us / 1e6, "thread.system_s");
	np_bag_real(into, seconds > 0 ? (double)(u->user_us + u->system_us) / 1e6 / seconds : 0,
		    "thread.cpu_share");
	np_bag_int(into, u->voluntary, "thread.switches_voluntary");
	np_bag_int(into, u->involuntary, "thread.switches_involuntary");
	if (u->run_delay_ns < 0) {
		np_bag_unread(into, "this kernel does not report it, or not to this process",
			      "thread.run_delay_s");
	} else {
		np_bag_real(into, (double)u->run_delay_ns / 1e9, "thread.run_delay_s");
	}
}

static const char *const doing_names[NP_DOING_KINDS] = { "running", "sending", "receiving",
							 "pausing", "stopped", "waiting" };

/* System calls that block in a test, and whether they send or receive there. */
static const struct {
	long number;
	enum np_doing_what what;
} calls[] = {
	{ SYS_sendto, NP_DOING_SENDS },
	{ SYS_sendmsg, NP_DOING_SENDS },
	{ SYS_sendmmsg, NP_DOING_SENDS },
	{ SYS_write, NP_DOING_SENDS },
	{ SYS_writev, NP_DOING_SENDS },
	{ SYS_recvfrom, NP_DOING_RECEIVES },
	{ SYS_recvmsg, NP_DOING_RECEIVES },
	{ SYS_read, NP_DOING_RECEIVES },
	{ SYS_readv, NP_DOING_RECEIVES },
	{ SYS_splice, NP_DOING_RECEIVES }, /* from a socket */
	{ SYS_accept4, NP_DOING_RECEIVES },
/* not on every architecture, or in every libc */
#ifdef SYS_send
	{ SYS_send, NP_DOING_SENDS },
	{ SYS_recv, NP_DOING_RECEIVES },
#endif
#ifdef SYS_sendfile
	{ SYS_sendfile, NP_DOING_SENDS },
#endif
#ifdef SYS_sendfile64
	{ SYS_sendfile64, NP_DOING_SENDS },
#endif
#ifdef SYS_recvmmsg
	{ SYS_recvmmsg, NP_DOING_RECEIVES },
#endif
#ifdef SYS_accept
	{ SYS_accept, NP_DOING_RECEIVES },
#endif
#ifdef SYS_nanosleep
	{ SYS_nanosleep, NP_DOING_PAUSES },
#endif
#ifdef SYS_clock_nanosleep
	{ SYS_clock_nanosleep, NP_DOING_PAUSES },
#endif
#ifdef SYS_clock_nanosleep_time64
	{ SYS_clock_nanosleep_time64, NP_DOING_PAUSES },
#endif
};

/* Functions of the kernel that wait; not wait_woken(), where TCP's senders and receivers do. */
static const struct {
	const char *name;
	enum np_doing_what what;
} places[] = {
	{ "sk_stream_wait_memory", NP_DOING_SENDS },
	{ "sock_alloc_send_pskb", NP_DOING_SENDS },
	{ "sock_wait_for_wmem", NP_DOING_SENDS },
	{ "unix_wait_for_peer", NP_DOING_SENDS },
	{ "sctp_wait_for_sndbuf", NP_DOING_SENDS },
	{ "packet_snd", NP_DOING_SENDS },
	{ "sk_wait_data", NP_DOING_RECEIVES },
	{ "__skb_wait_for_more_packets", NP_DOING_RECEIVES },
	{ "unix_stream_read_generic", NP_DOING_RECEIVES },
	{ "unix_stream_data_wait", NP_DOING_RECEIVES },
	{ "sctp_skb_recv_datagram", NP_DOING_RECEIVES },
	{ "inet_csk_accept", NP_DOING_RECEIVES },
	{ "inet_csk_wait_for_connect", NP_DOING_RECEIVES },
	{ "hrtimer_nanosleep", NP_DOING_PAUSES },
	{ "do_nanosleep", NP_DOING_PAUSES },
};

void
np_doing_open(struct np_doing *d, const char *root, int thread)
{
	static const char at[] = "/proc/self/task/%d/%s";

	*d = (struct np_doing){ .is_open = true, .cpu = -1 };
	d->time_fd = np_file_open(root, at, thread, "schedstat");
	d->stat_fd = np_file_open(root, at, thread, "stat");
	d->why = d->stat_fd < 0 ? -d->stat_fd : 0;
	/* "syscall" can't be read where ptrace(2) isn't allowed, as in a daemon; "wchan" can. */
	d->where_fd = np_file_open(root, at, thread, "syscall");
	d->by_call = d->where_fd >= 0;
	if (!d->by_call) {
		d->where_fd = np_file_open(root, at, thread, "wchan");
	}
}

#ifdef SYS_socketcall
/* socketcall(2) of some 32-bit machines: the first argument says which call it is. */
static enum np_doing_what
by_socketcall(const char *arguments, enum np_doing_what blocked)
{
	switch (strtol(arguments, NULL, 0)) {
	case SYS_SEND:
	case SYS_SENDTO:
	case SYS_SENDMSG:
	case SYS_SENDMMSG:
		return NP_DOING_SENDS;
	case SYS_RECV:
	case SYS_RECVFROM:
	case SYS_RECVMSG:
	case SYS_RECVMMSG:
	case SYS_ACCEPT:
	case SYS_ACCEPT4:
		return NP_DOING_RECEIVES;
	default:
		return blocked;
	}
}
#endif

/* What a sleeping thread does, by the number of its system call. */
static enum np_doing_what
by_call(const char *text, enum np_doing_what blocked)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (end == text) {
		return NP_DOING_RUNS; /* the text is "running": it has woken up meanwhile */
	}
#ifdef SYS_socketcall
	if (number == SYS_socketcall) {
		return by_socketcall(end, blocked);
	}
#endif
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i].number == number) {
			return calls[i].what;
		}
	}
	return blocked;
}

/* What a sleeping thread is doing, by its file `syscall` or `wchan`; `blocked` if not known. */
static enum np_doing_what
where(const struct np_doing *d, enum np_doing_what blocked)
{
	char text[256];

	if (d->where_fd < 0 || np_file_again(text, sizeof(text), d->where_fd) <= 0) {
		return blocked;
	}
	if (d->by_call) {
		return by_call(text, blocked);
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (strcmp(places[i].name, text) == 0) {
			return places[i].what;
		}
	}
	return blocked;
}

void
np_doing_look(struct np_doing *d, enum np_doing_what blocked)
{
	char text[512];
	const char *at;
	long n;

	if (d->stat_fd < 0) {
		return;
	}
	n = np_file_again(text, sizeof(text), d->stat_fd);
	if (n == -ESRCH) {
		return; /* the thread has ended */
	}
	/* The state is the letter after the last ")"; the name before it may contain any. */
	at = strrchr(text, ')');
	if (n < 0 || at == NULL || at[1] != ' ') {
		d->why = n < 0 ? (int)-n : EINVAL;
		return;
	}
	d->looks++;
	d->seen[at[2] == 'R'                   ? NP_DOING_RUNS
		: at[2] == 'T' || at[2] == 't' ? NP_DOING_STOPPED
					       : where(d, blocked)]++;
}

bool
np_doing_did(struct np_doing *d, struct np_thread_time *did)
{
	enum { TO_PROCESSOR = 36 }; /* it is the 39th value of a line, the state the third */
	struct np_thread_time now;
	char text[512];
	const char *at;

	*did = (struct np_thread_time){ .turns = 0 };
	if (!d->is_open || !np_thread_time(d->time_fd, &now)) {
		return false;
	}
	did->ran_ns = now.ran_ns - d->time.ran_ns;
	did->waited_ns = now.waited_ns - d->time.waited_ns;
	did->turns = now.turns - d->time.turns;
	d->time = now;
	at = np_file_again(text, sizeof(text), d->stat_fd) > 0 ? strrchr(text, ')') : NULL;
	at = at != NULL && at[1] == ' ' ? at + 2 : NULL;
	for (int i = 0; i < TO_PROCESSOR && at != NULL; i++) {
		at = strchr(at, ' ');
		at = at != NULL ? at + 1 : NULL;
	}
	d->cpu = at != NULL ? (int)strtol(at, NULL, 10) : -1;
	return true;
}

void
np_doing_put(const struct np_doing *d, struct np_bag *into)
{
	if (d->looks == 0) {
		if (d->why != 0) {
			np_bag_unread(into, strerror(d->why), "thread.looks");
		}
		return;
	}
	np_bag_int(into, (int64_t)d->looks, "thread.looks");
	for (int i = 0; i < NP_DOING_KINDS; i++) {
		np_bag_int(into, (int64_t)d->seen[i], "thread.seen_%s", doing_names[i]);
	}
}

void
np_doing_close(struct np_doing *d)
{
	if (!d->is_open) {
		return;
	}
	np_fds_close(d->time_fd);
	np_fds_close(d->stat_fd);
	np_fds_close(d->where_fd);
	d->is_open = false;
}
