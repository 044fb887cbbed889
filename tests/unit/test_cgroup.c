/*
 * The quota of this process's control group, and pressure: of prepared files, and of this machine.
 */
#include "sys/cgroup.h"

#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/root.h"

#define V2 "/sys/fs/cgroup"
#define V1 "/sys/fs/cgroup/cpu,cpuacct"
#define NOISE                                                                                      \
	"22 27 0:21 / /proc rw,relatime - proc proc rw\n"                                          \
	"nonsense\n"                                                                               \
	"23 27 0:22 / /sys rw - sysfs\n"
#define MOUNT_V2 "35 24 0:30 / " V2 " rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_V1                                                                                   \
	"33 31 0:29 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"               \
	"32 31 0:28 %s " V1 " rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"

static void
put_pressures(const char *root, const char *cpu)
{
	put_file(root, "/proc/pressure/cpu", cpu);
	put_file(root, "/proc/pressure/memory",
		 "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=0 total=3\n");
	put_file(root, "/proc/pressure/io",
		 "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0 total=0\n");
}

/* A service of version 2, with a quota of its own that is wider than that above it. */
static void
put_service(const char *root)
{
	put_file(root, "/proc/self/cgroup", "0::/system.slice/netserver.service\n");
	put_file(root, "/proc/self/mountinfo", NOISE MOUNT_V2);
	put_file(root, V2 "/cgroup.procs", "1\n");
	put_file(root, V2 "/cpu.stat", "usage_usec 5\n"); /* the topmost one has no more */
	put_file(root, V2 "/system.slice/cpu.max", "50000 200000\n");
	put_file(root, V2 "/system.slice/cpu.stat",
		 "usage_usec 1\nnr_periods 10\nnr_throttled 4\nthrottled_usec 1000000\n");
	put_file(root, V2 "/system.slice/netserver.service/cpu.max", "150000 100000\n");
	put_file(root, V2 "/system.slice/netserver.service/cpu.stat",
		 "usage_usec 1\nnr_periods 100\nnr_throttled 0\nthrottled_usec 0\n");
	put_file(root, V2 "/system.slice/netserver.service/cpu.pressure",
		 "some avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\n");
	put_pressures(root, "some avg10=1.50 avg60=0.50 avg300=0.10 total=1000000\n");
}

/* The bag of a test during which a file changes, if one is named. */
static struct np_bag *
looked(const char *root, const char *path, const char *text)
{
	struct np_bag *b = np_bag_new();
	struct np_cgroup *c = np_cgroup_open(root, NULL);

	assert_non_null(c);
	np_cgroup_begin(c);
	if (path != NULL) {
		put_file(root, path, text);
	}
	np_cgroup_end(c, b);
	np_cgroup_close(c);
	return b;
}

TEST_WITH(the_least_quota_counts_and_who_was_held_up_most, root_make, root_remove)
{
	const char *root = *state;
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_cgroup *c;

	put_service(root);
	c = np_cgroup_open(root, NULL);
	assert_non_null(c);
	np_cgroup_begin(c);
	put_file(root, V2 "/system.slice/cpu.stat",
		 "usage_usec 9\nnr_periods 40\nnr_throttled 29\nthrottled_usec 3250000\n");
	put_file(root, V2 "/system.slice/netserver.service/cpu.stat",
		 "usage_usec 9\nnr_periods 400\nnr_throttled 1\nthrottled_usec 1000\n");
	put_file(root, V2 "/system.slice/netserver.service/cpu.pressure",
		 "some avg10=0.00 avg60=0.00 avg300=0.00 total=2600000\n");
	put_pressures(root, "some avg10=1.50 avg60=0.50 avg300=0.10 total=1750000\n");
	np_cgroup_end(c, b);
	np_cgroup_close(c);
	assert_bag(b, "",
		   "cgroup.cpu.quota=0.25 cgroup.cpu.period_ms=200 cgroup.cpu.periods=30 "
		   "cgroup.cpu.throttled_periods=25 cgroup.cpu.throttled_s=2.25 "
		   "pressure.cpu.some_s=0.75 pressure.memory.some_s=0 pressure.io.some_s=0 "
		   "pressure.cgroup.cpu.some_s=0.6");
}

/* One that is taken away, or set, while the test goes on. */
TEST_WITH(a_quota_of_either_end_of_the_test_counts, root_make, root_remove)
{
	static const char *const when[][2] = { { "20000 100000\n", "max 100000\n" },
					       { "max 100000\n", "20000 100000\n" } };
	const char *root = *state;

	for (size_t i = 0; i < LEN(when); i++) {
		FREED_BY(free_bag) struct np_bag *b = NULL;

		put_service(root);
		put_file(root, V2 "/system.slice/cpu.max", when[i][0]);
		b = looked(root, V2 "/system.slice/cpu.max", when[i][1]);
		assert_bag(b, "cgroup.cpu.", "quota=0.2 period_ms=100 throttled_s=0");
	}
}

TEST_WITH(without_a_quota_nothing_is_said, root_make, root_remove)
{
	const char *root = *state;
	FREED_BY(free_bag) struct np_bag *b = NULL;

	put_service(root);
	put_file(root, V2 "/system.slice/cpu.max", "max 100000\n");
	put_file(root, V2 "/system.slice/netserver.service/cpu.max", "junk\n");
	b = looked(root, NULL, NULL);
	assert_bag(b, "cgroup.cpu.", "quota=none throttled_s=none periods=none");
}

static void
put_v1(const char *root, const char *group, const char *mounted, const char *files)
{
	char text[1024], path[256];

	snprintf(text, sizeof(text), "4:memory:/x\n3:cpu,cpuacct:%s\n1:name=systemd:/\n0::/a\n",
		 group);
	put_file(root, "/proc/self/cgroup", text);
	snprintf(text, sizeof(text), NOISE MOUNT_V1, mounted);
	put_file(root, "/proc/self/mountinfo", text);
	snprintf(path, sizeof(path), V1 "%s/cpu.cfs_quota_us", files);
	put_file(root, path, "30000\n");
	snprintf(path, sizeof(path), V1 "%s/cpu.cfs_period_us", files);
	put_file(root, path, "100000\n");
	snprintf(path, sizeof(path), V1 "%s/cpu.stat", files);
	put_file(root, path, "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
	put_file(root, V1 "/cpu.cfs_quota_us", "-1\n");
	put_file(root, V1 "/cpu.cfs_period_us", "100000\n");
	put_file(root, V1 "/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
}

TEST_WITH(version_1_says_the_same, root_make, root_remove)
{
	const char *root = *state;
	FREED_BY(free_bag) struct np_bag *b = NULL;

	put_v1(root, "/jobs/a", "/", "/jobs/a");
	b = looked(root, V1 "/jobs/a/cpu.stat",
		   "nr_periods 30\nnr_throttled 28\nthrottled_time 1500000000\n");
	assert_bag(b, "cgroup.cpu.",
		   "quota=0.3 period_ms=100 periods=30 throttled_periods=28 throttled_s=1.5");
	/* Version 2 is not mounted. */
	assert_bag(b, "pressure.", "cgroup.cpu.some_s=none cpu.some_s=?'No such file'");
}

/* A container sees its own group as the top of what is mounted. */
TEST_WITH(a_mount_may_begin_at_a_group, root_make, root_remove)
{
	const char *root = *state;
	struct np_bag *b;

	put_v1(root, "/docker/1f/job", "/docker/1f", "/job");
	b = looked(root, NULL, NULL);
	assert_number(b, "cgroup.cpu.quota", 0.3);
	np_bag_free(b);

	put_v1(root, "/docker/1fa", "/docker/1f", "/job"); /* which is another one */
	b = looked(root, NULL, NULL);
	assert_bag(b, "", "cgroup.cpu.quota=?'not mounted here'");
	np_bag_free(b);
}

/* As under ip-netns(8): who started our parent still sees them. */
TEST_WITH(what_is_not_mounted_here_is_looked_for_above, root_make, root_remove)
{
	static const char *const path = "/proc/70/root" V2 "/job/cpu.max";
	const char *root = *state;
	struct np_cgroup_trees trees;
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_cgroup *c;

	put_file(root, "/proc/self/cgroup", "0::/job\n");
	put_file(root, "/proc/self/mountinfo", NOISE);
	put_file(root, "/proc/self/status", "Name:\tnetserver\nPPid:\t90\nUid:\t0\n");
	put_file(root, "/proc/90/mountinfo", NOISE);
	put_file(root, "/proc/90/status", "Name:\tip\nPPid:\t70\n");
	put_file(root, "/proc/70/mountinfo", MOUNT_V2);
	put_file(root, path, "10000 100000\n");
	put_file(root, "/proc/70/root" V2 "/job/cpu.stat", "nr_periods 1\n");
	np_cgroup_find(root, &trees);
	assert_true(trees.quota.fd > 0);
	c = np_cgroup_open(root, &trees);
	np_cgroup_forget(&trees);
	np_cgroup_begin(c);
	np_cgroup_end(c, b);
	np_cgroup_close(c);
	assert_number(b, "cgroup.cpu.quota", 0.1);
}

TEST_WITH(another_group_meanwhile_is_no_number, root_make, root_remove)
{
	const char *root = *state;
	FREED_BY(free_bag) struct np_bag *b = NULL;

	put_service(root);
	b = looked(root, "/proc/self/cgroup", "0::/user.slice\n");
	assert_bag(b, "cgroup.cpu.", "quota=?'moved to another control group' throttled_s=none");
}

/* As where descriptors run out: what could not be looked at is not said to be without a quota. */
TEST_WITH(a_group_that_can_t_be_opened_is_named, root_make, root_remove)
{
	const char *root = *state;
	FREED_BY(free_bag) struct np_bag *b = NULL;

	put_file(root, "/proc/self/cgroup", "0::/job/a\n");
	put_file(root, "/proc/self/mountinfo", NOISE MOUNT_V2);
	put_file(root, V2 "/cpu.stat", "usage_usec 5\n");
	put_file(root, V2 "/job", "no directory\n");
	b = looked(root, NULL, NULL);
	assert_bag(b, "", "cgroup.cpu.quota=?'Not a directory'");
}

TEST_WITH(nothing_to_read_is_named, root_make, root_remove)
{
	const char *root = *state;
	struct np_bag *b = looked(root, NULL, NULL);

	assert_bag(b, "",
		   "cgroup.cpu.quota=?'not known' pressure.cpu.some_s=?'No such file' "
		   "pressure.memory.some_s=?'No such file'");
	np_bag_free(b);
	np_cgroup_begin(NULL);
	np_cgroup_end(NULL, NULL);
	np_cgroup_close(NULL);
}

TEST_WITH(junk_does_no_harm, root_make, root_remove)
{
	static const char *const junk[] = { "",
					    "\n\n",
					    "0::",
					    "0:",
					    ":",
					    ":::",
					    "cpu\n3:cpu:\n0::/..\n",
					    " - \n - - -\n1 2 3 4 5 - cgroup2\n",
					    "1 2 3 \\0 \\04 x - cgroup2 a b\n",
					    "PPid:\nPPid: -4",
					    "some total=\n",
					    "some avg\ntotal=99999999999999999999999",
					    "nr_periods\nthrottled_usec -1" };
	const char *root = *state;

	for (size_t i = 0; i < LEN(junk) * LEN(junk); i++) {
		const char *one = junk[i % LEN(junk)], *other = junk[i / LEN(junk)];
		FREED_BY(free_bag) struct np_bag *b = NULL;

		put_service(root);
		put_file(root, i % 2 == 0 ? "/proc/self/cgroup" : V2 "/system.slice/cpu.max", one);
		put_file(root, "/proc/self/mountinfo", i % 3 == 0 ? other : MOUNT_V2);
		put_file(root, "/proc/self/status", other);
		put_pressures(root, other);
		b = looked(root, V2 "/system.slice/cpu.stat", other);
		assert_int_equal(np_bag_left_out(b), 0);
	}
}

/* Whatever this machine has: times are none of the future, and what is missing is named. */
TEST(the_machine_itself)
{
	FREED_BY(free_bag) struct np_bag *b = looked("", NULL, NULL);
	struct np_bag_item it;

	assert_true(np_bag_find(b, "pressure.cpu.some_s", &it));
	assert_true(it.kind == NP_BAG_UNREAD || (it.r >= 0 && it.r < 3600));
	if (np_bag_find(b, "cgroup.cpu.quota", &it)) {
		assert_true(it.kind == NP_BAG_UNREAD || it.r > 0);
	}
}

TEST_MAIN()
