#include "sys/thread.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "sys/file.h"

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
