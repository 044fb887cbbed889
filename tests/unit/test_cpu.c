/*
 * The reader of /proc/stat: prepared files in a folder that stands for the root, and the machine's
 * own.
 */
#include "sys/cpu.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/root.h"

enum { MANY = 512 };

static struct np_cpu_times *
times(const char *root, const char *text)
{
	struct np_cpu_times *t;

	put_file(root, "/proc/stat", text);
	t = np_cpu_read(root);
	fail_if(t == NULL, "%s", strerror(errno));
	return t;
}

static struct np_cpu_use
use_between(const char *root, const char *from, const char *to)
{
	struct np_cpu_times *a = times(root, from), *b = times(root, to);
	struct np_cpu_use use;

	np_cpu_use(a, b, &use);
	free(a);
	free(b);
	return use;
}

/* Its figures are these. */
static void
assert_uses(const struct np_cpu_use *use, const char *words)
{
	FREED_BY(free_bag)
	struct np_bag *b = bag_of("known=%d count=%d util=%.17g user=%.17g system=%.17g "
				  "iowait=%.17g irq=%.17g softirq=%.17g peak=%.17g peak_id=%d",
				  use->known, use->count, use->util, use->user, use->system,
				  use->iowait, use->irq, use->softirq, use->peak, use->peak_id);

	assert_bag(b, "", "%s", words);
}

/* From one content of the file to the other. */
static void
assert_used(const char *root, const char *from, const char *to, const char *words)
{
	struct np_cpu_use use = use_between(root, from, to);

	assert_uses(&use, words);
}

static void
refused(const char *root, const char *text)
{
	put_file(root, "/proc/stat", text);
	assert_null(np_cpu_read(root));
	assert_int_equal(errno, EINVAL);
}

/* ---- What is computed ---- */

TEST(shares_are_of_all_ten_counters)
{
	/* Moved by 40 10 20 100 5 3 6 1 15 0, which is 200. */
	assert_used(*state,
		    "cpu  0 0 0 0 0 0 0 0 0 0\n"
		    "cpu0 10 20 30 40 50 60 70 80 90 100\n",
		    "cpu  7 7 7 7 7 7 7 7 7 7\n"
		    "cpu0 50 30 50 140 55 63 76 81 105 100\n",
		    "known=1 count=1 util=50 user=20 system=10 iowait=2.5 irq=1.5 softirq=3 "
		    "peak=50 peak_id=0");
}

/* A guest's time is in user, too: evidence counts it once, unlike netperf's figures above. */
TEST(shares_of_evidence_count_guests_once)
{
	struct np_cpu_times *a = times(*state, "cpu0 0 0 0 0 0 0 0 0 0 0\n");
	struct np_cpu_times *b = times(*state, "cpu0 50 20 0 30 0 0 0 0 50 20\n");
	struct np_cpu_ticks did;
	struct np_cpu_use use;
	size_t i = 0;

	assert_true(np_cpu_next(a, b, &i, &did));
	assert_int_equal(did.user, 70);
	assert_int_equal(did.idle, 30);
	assert_int_equal(did.all, 100);
	assert_false(np_cpu_next(a, b, &i, &did));
	np_cpu_use(a, b, &use);
	assert_near(use.util, 100 - 3000.0 / 170, 1e-9);
	free(a);
	free(b);
}

TEST(a_machine_is_the_mean_of_its_processors)
{
	/* 25 and 80 %, however many ticks each of them had, and one without a tick. */
	assert_used(*state,
		    "cpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n"
		    "cpu2 5 5 5 5 5 5 5 5 5 5\n",
		    "cpu0 1 0 0 3 0 0 0 0 0 0\ncpu1 0 0 40 10 0 0 0 0 0 0\n"
		    "cpu2 5 5 5 5 5 5 5 5 5 5\n",
		    "count=3 util=35 user=25.0/3 system=80.0/3 peak=80 peak_id=1");
}

TEST(all_idle_is_0_and_all_busy_is_100)
{
	static const char start[] = "cpu0 7 0 0 5 0 0 0 0 0 0\ncpu1 9 0 0 4 0 0 0 0 0 0\n";

	assert_used(*state, start, "cpu0 7 0 0 105 0 0 0 0 0 0\ncpu1 9 0 0 104 0 0 0 0 0 0\n",
		    "known=1 util=0 peak=0 peak_id=0");
	assert_used(*state, start, "cpu0 57 0 50 5 0 0 0 0 0 0\ncpu1 9 0 0 4 100 0 0 0 0 0\n",
		    "util=100 peak=100 iowait=50");
	/* No time has passed. */
	assert_used(*state, start, start, "known=1 util=0");
}

TEST(counters_of_32_bits_wrap)
{
	/* By 30 and 170. */
	assert_used(*state, "cpu0 4294967290 0 0 4294967200 0 0 0 0 0 0\n",
		    "cpu0 24 0 0 74 0 0 0 0 0 0\n", "util=15 user=15");
	/* One that goes back has not moved: a small one, and one beyond 32 bits. */
	assert_used(*state, "cpu0 0 0 0 0 100 0 0 0 0 0\n", "cpu0 10 0 0 30 90 0 0 0 0 0\n",
		    "util=25 iowait=0");
	assert_used(*state, "cpu0 0 0 0 18446744073709551615 0\n", "cpu0 10 0 0 3 0\n", "util=100");
}

TEST(old_kernels_have_fewer_columns_and_new_ones_more)
{
	assert_used(*state, "cpu 1 2 3 4\ncpu0 0 0 0 0\ndisk 0 0\n", "cpu0 10 0 20 70\n",
		    "util=30 system=20 irq=0");
	assert_used(*state, "cpu0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		    "cpu0 10 0 20 70 0 0 0 0 0 0 1000 x\n", "util=30");
	/* No line end behind the last line, blanks where there may be some. */
	assert_used(*state, "cpu0 0 0 0 0", "cpu0  10  0 20 70 ", "util=30");
}

/* ---- Which processors there are ---- */

/* All processors but `missing`; number i is at i ticks of user time and 1000 - i of idle time. */
static char *
many(int missing, int factor)
{
	size_t room = 256 << 10, n;
	char *text = malloc(room);

	assert_non_null(text);
	n = (size_t)snprintf(text, room, "cpu  1 2 3 4 5 6 7 8 9 10\n");
	for (int i = 0; i < MANY; i++) {
		if (i != missing) {
			n += (size_t)snprintf(text + n, room - n, "cpu%d %d 0 0 %d 0 0 0 0 0 0\n",
					      i, i * factor, (1000 - i) * factor);
		}
	}
	/* The line that is longest on a real machine. */
	n += (size_t)snprintf(text + n, room - n, "intr 12345");
	while (n < room - 8) {
		n += (size_t)snprintf(text + n, room - n, " 0");
	}
	return text;
}

static struct np_cpu_use
use_of_many(const char *root, int missing_from, int missing_to)
{
	char *from = many(missing_from, 1), *to = many(missing_to, 3);
	struct np_cpu_use use = use_between(root, from, to);

	free(from);
	free(to);
	return use;
}

TEST(there_may_be_hundreds_of_processors)
{
	struct np_cpu_use use = use_of_many(*state, -1, -1);

	/* Number i was busy for i tenths of a percent. */
	assert_int_equal(use.count, MANY);
	assert_near(use.util, (MANY - 1) / 20.0, 1e-9);
	assert_near(use.user, use.util, 1e-9);
	assert_near(use.peak, (MANY - 1) / 10.0, 1e-9);
	assert_int_equal(use.peak_id, MANY - 1);
}

TEST(a_processor_that_goes_or_comes_does_not_count)
{
	/* The sum without number 511 is 51.1 % less. */
	double rest = (MANY * (MANY - 1) / 20.0 - (MANY - 1) / 10.0) / (MANY - 1);
	struct np_cpu_use use = use_of_many(*state, -1, MANY - 1);

	assert_int_equal(use.count, MANY - 1);
	assert_near(use.util, rest, 1e-9);
	assert_int_equal(use.peak_id, MANY - 2);
	use = use_of_many(*state, MANY - 1, -1);
	assert_int_equal(use.count, MANY - 1);
	assert_near(use.util, rest, 1e-9);
	/* A hole in the midst: all behind it keep their numbers. */
	use = use_of_many(*state, 100, 100);
	assert_int_equal(use.count, MANY - 1);
	assert_near(use.util, (MANY * (MANY - 1) / 20.0 - 10) / (MANY - 1), 1e-9);
	assert_int_equal(use.peak_id, MANY - 1);
	use = use_of_many(*state, 7, 9);
	assert_int_equal(use.count, MANY - 2);
}

TEST(lines_may_stand_in_any_order)
{
	assert_used(*state, "cpu3 0 0 0 0\nintr 1\ncpu10 0 0 0 0\ncpu1 0 0 0 0\n",
		    "cpu10 30 0 0 70\ncpu1 10 0 0 90\ncpu3 20 0 0 80\n",
		    "count=3 util=20 peak_id=10");
}

TEST(readings_without_a_common_processor_say_nothing)
{
	assert_used(*state, "cpu0 1 1 1 1\n", "cpu1 2 2 2 2\n", "known=0 count=0 util=0");
}

/* ---- What is no /proc/stat ---- */

TEST(broken_content_is_refused)
{
	const char *root = *state;

	refused(root, "");
	refused(root, "cpu  1 2 3 4 5 6 7 8 9 10\nintr 5\n");
	refused(root, "cpuX 1 2 3 4\ncpu 1\n");
	refused(root, "cpu0 1 2 3\n");
	refused(root, "cpu0\n");
	refused(root, "cpu0 1 2 -3 4\n");
	refused(root, "cpu0 1 2 3 4 five\n");
	refused(root, "cpu0 1 2 3 4x 5\n");
	refused(root, "cpu0 18446744073709551616 2 3 4\n");
	refused(root, "cpu0x 1 2 3 4\n");
	refused(root, "cpu2147483648 1 2 3 4\n");
	refused(root, "cpu0 1 2 3 4\ncpu1 1 2 3 4\ncpu0 1 2 3 4\n");
}

TEST(a_file_that_cannot_be_read_has_its_errno)
{
	char path[PATH_MAX];

	assert_null(np_cpu_read("/nowhere"));
	assert_int_equal(errno, ENOENT);
	put_file(*state, "/proc/stat", "");
	snprintf(path, sizeof(path), "%s/proc/stat", (const char *)*state);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_null(np_cpu_read(*state));
	assert_int_equal(errno, EISDIR);
	assert_int_equal(rmdir(path), 0);
	/* One that never ends. */
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_null(np_cpu_read(*state));
	assert_int_equal(errno, EFBIG);
	assert_int_equal(unlink(path), 0);
}

/* Bytes of all kinds, and a good file with some of its bytes changed: no figure is out of range. */
TEST(garbage_does_no_harm)
{
	static const char good[] = "cpu  1 2 3 4 5 6 7 8 9 10\n"
				   "cpu0 4294967290 20 30 40 50 60 70 80 90 100\n"
				   "cpu17 1 2 3 4 5 6 7 8 9 10\nintr 5 6 7\nctxt 1234\n";
	static const char chars[] = "cpu0123456789  \n\n-x";
	struct np_cpu_times *base = times(*state, good);
	char bytes[sizeof(good)];
	uint64_t seed = 20;
	int read = 0;

	for (int round = 0; round < 3000; round++) {
		struct np_cpu_times *t;
		struct np_cpu_use use;
		bool mutate = round % 3 != 0;

		memcpy(bytes, good, sizeof(bytes));
		for (size_t i = 0; i < (mutate ? 1 + (size_t)round % 5 : sizeof(bytes)); i++) {
			size_t at = mutate ? next_random(&seed) % (sizeof(bytes) - 1) : i;

			bytes[at] = round % 2 != 0 ? chars[next_random(&seed) % (sizeof(chars) - 1)]
						   : (char)next_random(&seed);
		}
		put_bytes_into(*state, "/proc/stat", bytes, next_random(&seed) % sizeof(bytes));
		t = np_cpu_read(*state);
		if (t == NULL) {
			continue;
		}
		read++;
		np_cpu_use(base, t, &use);
		assert_true(use.util >= 0 && use.util <= 100 && use.peak <= 100);
		assert_in_range(use.count, 0, 2);
		np_cpu_use(t, base, &use);
		assert_true(use.util >= 0 && use.util <= 100 && use.peak <= 100);
		free(t);
	}
	free(base);
	assert_in_range(read, 100, 2900);
}

/* ---- This machine ---- */

static atomic_bool spin_end;

static void *
spin(void *cpu)
{
	np_bind_cpu(*(const int *)cpu, NULL);
	while (!atomic_load(&spin_end)) {
	}
	return NULL;
}

static void
use_of_half_a_second(struct np_cpu_use *use)
{
	struct np_cpu_times *from, *to;
	const struct timespec half = { .tv_nsec = 500000000 };

	from = np_cpu_read("");
	assert_non_null(from);
	nanosleep(&half, NULL);
	to = np_cpu_read("");
	assert_non_null(to);
	np_cpu_use(from, to, use);
	free(from);
	free(to);
}

/* Whatever else runs: a processor on which a thread turns round is not idle. */
TEST(a_busy_loop_shows)
{
	struct np_cpu_use use;
	pthread_t thread;
	int cpu = sched_getcpu();

	assert_int_equal(pthread_create(&thread, NULL, spin, &cpu), 0);
	use_of_half_a_second(&use);
	atomic_store(&spin_end, true);
	pthread_join(thread, NULL);
	assert_true(use.known);
	assert_in_range(use.count, 1, 65536);
	/* A tick at each end may be missing, and a virtual machine's clock be rough. */
	assert_true(use.peak >= 50 && use.peak <= 100);
	assert_true(use.util >= 50.0 / use.count && use.util <= 100);
}

TEST(this_machine_has_processors_and_ticks)
{
	assert_int_equal(np_cpu_count(), sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(np_cpu_ticks_per_s() >= 1);
	assert_near(np_cpu_ticks_per_s(), (double)sysconf(_SC_CLK_TCK), 1e-9);
}

static bool
crowded(const char *root, const char *text)
{
	put_file(root, "/proc/loadavg", text);
	return np_cpu_crowded(root);
}

TEST(a_crowd_is_more_than_processors_get_through)
{
	char text[80];

	assert_false(np_cpu_crowded(*state));
	assert_false(crowded(*state, ""));
	assert_false(crowded(*state, "99.00 99.00 99.00 some/1000 1\n"));
	assert_false(crowded(*state, "99.00 99.00 99.00 2/1000 1\n"));
	snprintf(text, sizeof(text), "0.10 0.20 0.30 %d/999 1\n", 32 * np_cpu_count());
	assert_false(crowded(*state, text));
	snprintf(text, sizeof(text), "0.10 0.20 0.30 %d/999 1\n", 32 * np_cpu_count() + 1);
	assert_true(crowded(*state, text));
}

int
main(void)
{
	return all_tests(root_make, root_remove);
}
