/*
 * What a controller is witness to: times in which it could not look, and what a thread was found
 * doing, by prepared files and by threads that do it.
 */
#include "run/disturbed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/root.h"
#include "tests/lib/sockets.h"

enum { THREAD = 4711, LOOKS_S = 20 };

static void
put_thread(const char *root, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", THREAD, file);
	put_file(root, path, text);
}

static void
put_state(const char *root, char state)
{
	char text[128];

	/* A name may look like the end of one. */
	snprintf(text, sizeof(text), "%d (net) R (perf) %c 1 2 3 4 5\n", THREAD, state);
	put_thread(root, "stat", text);
}

static void
put_call(const char *root, long number)
{
	char text[128];

	snprintf(text, sizeof(text), "%ld 0x3 0x7f00 0x20000 0x0 0x0 0x0 0x7ffe 0x7fa7\n", number);
	put_thread(root, "syscall", text);
}

static void
assert_seen(const struct np_doing *d, uint64_t runs, uint64_t sends, uint64_t receives,
	    uint64_t pauses, uint64_t stopped, uint64_t waits)
{
	const uint64_t want[NP_DOING_KINDS] = { runs, sends, receives, pauses, stopped, waits };

	assert_memory_equal(d->seen, want, sizeof(want));
	assert_int_equal(d->looks, runs + sends + receives + pauses + stopped + waits);
}

TEST_WITH(a_thread_is_told_by_its_call, root_make, root_remove)
{
	const char *root = *state;
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_doing d;

	put_state(root, 'R');
	put_thread(root, "syscall", "running\n");
	put_thread(root, "wchan", "hrtimer_nanosleep"); /* not asked, where the call is told */
	np_doing_open(&d, root, THREAD);
	np_doing_look(&d, NP_DOING_WAITS);
	assert_seen(&d, 1, 0, 0, 0, 0, 0);
	put_state(root, 'S');
	np_doing_look(&d, NP_DOING_WAITS); /* it woke up between the two readings */
	assert_seen(&d, 2, 0, 0, 0, 0, 0);
	put_call(root, SYS_sendto);
	np_doing_look(&d, NP_DOING_WAITS);
	put_call(root, SYS_recvmsg);
	np_doing_look(&d, NP_DOING_WAITS);
	put_state(root, 'D');
	put_call(root, SYS_clock_nanosleep);
	np_doing_look(&d, NP_DOING_WAITS);
	put_call(root, 9999);
	np_doing_look(&d, NP_DOING_WAITS);
	np_doing_look(&d, NP_DOING_SENDS);
	put_state(root, 'T');
	np_doing_look(&d, NP_DOING_SENDS);
	assert_seen(&d, 2, 2, 1, 1, 1, 1);
	np_doing_put(&d, b);
	np_doing_close(&d);
	np_doing_close(&d);
	assert_bag(b, "thread.",
		   "looks=8 seen_running=2 seen_sending=2 seen_receiving=1 seen_pausing=1 "
		   "seen_stopped=1 seen_waiting=1");
}

/* As a session of the daemon has it. */
TEST_WITH(or_by_its_place_in_the_kernel, root_make, root_remove)
{
	const char *root = *state;
	FREED_BY(np_doing_close) struct np_doing d;

	put_state(root, 'S');
	put_thread(root, "wchan", "sock_alloc_send_pskb");
	np_doing_open(&d, root, THREAD);
	np_doing_look(&d, NP_DOING_WAITS);
	put_thread(root, "wchan", "__skb_wait_for_more_packets");
	np_doing_look(&d, NP_DOING_WAITS);
	put_thread(root, "wchan", "hrtimer_nanosleep");
	np_doing_look(&d, NP_DOING_WAITS);
	assert_seen(&d, 0, 1, 1, 1, 0, 0);
	put_thread(root, "wchan", "wait_woken"); /* TCP's, whichever way */
	np_doing_look(&d, NP_DOING_RECEIVES);
	put_thread(root, "wchan", "0");
	np_doing_look(&d, NP_DOING_WAITS);
	put_thread(root, "wchan", "");
	np_doing_look(&d, NP_DOING_SENDS);
	assert_seen(&d, 0, 2, 2, 1, 0, 1);
}

TEST_WITH(one_that_can_t_be_looked_at_is_named, root_make, root_remove)
{
	const char *root = *state;
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_bag_item it;
	struct np_doing d;

	np_doing_open(&d, root, THREAD);
	np_doing_look(&d, NP_DOING_WAITS);
	np_doing_put(&d, b);
	np_doing_close(&d);
	assert_bag(b, "", "thread.looks=?'No such file'");
	assert_false(np_bag_find(b, "thread.seen_running", &it));
	put_thread(root, "stat", "4711 (x");
	np_doing_open(&d, root, THREAD);
	np_doing_look(&d, NP_DOING_WAITS);
	assert_int_equal(d.looks, 0);
	np_doing_put(&d, b);
	np_doing_close(&d);
	assert_bag(b, "", "thread.looks=?'Invalid'");
}

/* ---- Threads that do it ---- */

struct doer {
	void (*act)(struct doer *d);
	int fd;
	_Atomic int thread;
	_Atomic int stop;
};

static void *
do_it(void *arg)
{
	struct doer *d = arg;

	atomic_store(&d->thread, (int)syscall(SYS_gettid));
	d->act(d);
	return NULL;
}

static void
sends(struct doer *d)
{
	char block[4096] = { 0 };

	while (send(d->fd, block, sizeof(block), MSG_NOSIGNAL) > 0) {
	}
}

static void
receives(struct doer *d)
{
	char byte;

	(void)recv(d->fd, &byte, 1, 0);
}

static void
pauses(struct doer *d)
{
	const struct timespec moment = { .tv_nsec = 50000000 };

	while (!atomic_load(&d->stop)) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
	}
}

/* It gets there, sooner or later: a look that finds it doing so ends the test. */
static void
look_until(struct doer *d, enum np_doing_what wanted)
{
	uint64_t until = np_deadline(LOOKS_S * NP_SEC);
	const struct timespec moment = { .tv_nsec = 2000000 };
	struct np_doing doing;

	while (atomic_load(&d->thread) == 0) {
		nanosleep(&moment, NULL);
	}
	np_doing_open(&doing, "", atomic_load(&d->thread));
	while (doing.why == 0 && doing.seen[wanted] == 0 && np_now() < until) {
		np_doing_look(&doing, NP_DOING_WAITS);
		nanosleep(&moment, NULL);
	}
	np_doing_close(&doing);
	fail_if(doing.seen[wanted] == 0, "not seen in %d s: %llu looks, errno %d", LOOKS_S,
		(unsigned long long)doing.looks, doing.why);
}

TEST(threads_are_seen_at_what_they_do)
{
	static const struct {
		void (*act)(struct doer *d);
		enum np_doing_what what;
	} kinds[] = { { sends, NP_DOING_SENDS },
		      { receives, NP_DOING_RECEIVES },
		      { pauses, NP_DOING_PAUSES } };

	for (size_t i = 0; i < LEN(kinds); i++) {
		struct doer d = { .act = kinds[i].act };
		pthread_t thread;
		FREED_BY(close_both) int ends[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		d.fd = ends[0];
		assert_int_equal(pthread_create(&thread, NULL, do_it, &d), 0);
		look_until(&d, kinds[i].what);
		atomic_store(&d.stop, 1);
		shutdown(ends[1], SHUT_RDWR);
		shutdown(ends[0], SHUT_RDWR);
		pthread_join(thread, NULL);
	}
}

/* ---- Looks that did not come ---- */

TEST(times_without_a_look_are_told)
{
	const uint64_t start = 5000 * NP_SEC;
	struct np_witness w = { .root = "", .every_ns = 100 * NP_MSEC };
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_plan plan = { .length = -1000 };
	struct np_run run = { .window.started_ns = start, .plan = &plan };

	np_witness_look(&w, &run, start + 90 * NP_MSEC);
	np_witness_look(&w, &run, start + 1240 * NP_MSEC);
	run.window.ended_ns = start + 1640 * NP_MSEC;
	w.stopped_ns = 850 * NP_MSEC;
	np_witness_end(&w, &run, run.worker, b);
	assert_bag(b, "sampler.", "every_s=0.1 samples=2 gap_max_s=1.15 stopped_s=0.85");
}

TEST(a_look_is_late_by_what_no_other_look_took)
{
	struct np_witness w = { .root = "", .every_ns = 100 * NP_MSEC };

	np_witness_begin(&w, 100 * NP_MSEC, 102 * NP_MSEC); /* as timers are */
	np_witness_done(&w, 162 * NP_MSEC);
	assert_int_equal(w.late_ns, 0);
	np_witness_begin(&w, 120 * NP_MSEC, 162 * NP_MSEC); /* the first one was in its way */
	np_witness_done(&w, 163 * NP_MSEC);
	assert_int_equal(w.late_ns, 0);
	np_witness_begin(&w, 200 * NP_MSEC, 240 * NP_MSEC);
	np_witness_done(&w, 241 * NP_MSEC);
	assert_int_equal(w.late_ns, 40 * NP_MSEC);
	assert_int_equal(w.looking_ns, 62 * NP_MSEC);
}

/* The last call of a stream may wait long for an acknowledgement. */
TEST(behind_its_time_a_test_is_not_looked_at)
{
	const uint64_t start = 5000 * NP_SEC;
	struct np_witness w = { .root = "", .every_ns = 100 * NP_MSEC };
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_plan plan = { .length = 1 };
	struct np_run run = { .window.started_ns = start, .plan = &plan };

	np_witness_look(&w, &run, start + 900 * NP_MSEC);
	run.window.ended_ns = start + 3000 * NP_MSEC;
	np_witness_end(&w, &run, run.worker, b);
	assert_number(b, "sampler.gap_max_s", 0.9);
}

/* However often samples are taken, threads are looked at some 100 times a second at most. */
TEST(threads_are_not_looked_at_all_the_time)
{
	const uint64_t start = 5000 * NP_SEC;
	struct np_witness w = { .root = "", .every_ns = NP_MSEC };
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_plan p;
	struct np_worker worker = { .use.thread = (int)syscall(SYS_gettid) };
	struct np_run run = {
		.plan = &p, .window.started_ns = start, .worker = &worker, .workers = 1
	};

	client_params(&p, np_bench_find("TCP_STREAM"), AF_INET, 1);
	worker.run = &run;
	for (uint64_t i = 1; i <= 70; i++) {
		np_witness_look(&w, &run, start + i * NP_MSEC);
	}
	run.window.ended_ns = start + 70 * NP_MSEC;
	np_witness_end(&w, &run, &worker, b);
	assert_bag(b, "", "sampler.samples=70 thread.looks=10");
	assert_number(b, "thread.seen_running", 10); /* it looks at itself */
}

/* A warm-up's end begins again while the controller may read whose thread it is. */
TEST(beginning_again_leaves_whose_thread_it_is)
{
	struct np_thread_use u = { .root = "" };

	np_thread_open(&u);
	assert_int_equal(u.thread, syscall(SYS_gettid));
	u.thread = -1;
	np_thread_begin(&u);
	assert_int_equal(u.thread, -1);
	np_perf_close(&u.perf);
}

TEST(nobody_looks_and_nothing_is_told)
{
	struct np_witness w = { .root = "" };
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_run run = { .window.started_ns = 0 };

	np_witness_end(&w, &run, run.worker, b);
	assert_int_equal(np_bag_count(b), 0);
	w.every_ns = NP_SEC; /* and of a window that never opened */
	np_witness_end(&w, &run, run.worker, b);
	assert_int_equal(np_bag_count(b), 0);
}

TEST_MAIN()
