#include "sys/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/text.h"
#include "base/units.h"
#include "sys/file.h"
#include "sys/meters.h"

enum {
	LEVELS = 8,     /* groups looked at, from this process's upwards */
	ANCESTORS = 16, /* of this process, to search the mounts of */
	TEXT = 4096
};

static const double none = 1e18; /* stands for no quota */

/* The files of a group, by the version of its hierarchy minus 1. */
enum { QUOTA, PERIOD, STAT, FILES };
static const char *const files[2][FILES] = {
	{ "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat" },
	{ "cpu.max", NULL, "cpu.stat" },
};

/* The open files of one group; negative: there is no such file. */
struct level {
	int fd[FILES];
};

/* What the files of a group say. */
struct figures {
	double quota, period_ms; /* quota: a number of processors, or `none` */
	uint64_t periods, throttled_periods, throttled_ns;
};

/* GROUP: waits for a processor in this process's group; the others are of the machine. */
enum { CPU, MEMORY, IO, GROUP, PRESSURES };
static const struct {
	const char *file, *name;
} pressures[PRESSURES] = { { "/proc/pressure/cpu", "pressure.cpu.some_s" },
			   { "/proc/pressure/memory", "pressure.memory.some_s" },
			   { "/proc/pressure/io", "pressure.io.some_s" },
			   { NULL, "pressure.cgroup.cpu.some_s" } };

struct pressure {
	int fd;      /* negative: there is no such file */
	int why;     /* errno of opening or reading it; 0: none */
	uint64_t us; /* how long some task waited, at the last reading */
};

struct np_cgroup {
	bool is_v1;
	char why[128];    /* why the quota is not known; empty: it is */
	int self_fd;      /* /proc/self/cgroup; negative: there is no such file */
	char group[TEXT]; /* its text when the files were opened */
	size_t levels;
	struct level level[LEVELS];
	struct figures from[LEVELS]; /* at np_cgroup_begin() */
	struct pressure pressure[PRESSURES];
};

/*
 * Find a process's group in the hierarchy that has a controller ("": that of version 2) in the
 * lines of its cgroup file, "3:cpu,cpuacct:/a/b" and "0::/a/b". False if there is no such line.
 */
static bool
group_in(const char *text, const char *controller, char path[PATH_MAX])
{
	char copy[TEXT], *rest = copy, *line;

	snprintf(copy, sizeof(copy), "%s", text);
	while ((line = strsep(&rest, "\n")) != NULL) {
		const char *id = strsep(&line, ":"), *list = strsep(&line, ":");

		if (line != NULL && (controller[0] == '\0' ? id[0] == '0' && list[0] == '\0'
							   : np_text_has_word(list, controller))) {
			snprintf(path, PATH_MAX, "%s", line);
			return true;
		}
	}
	return false;
}

/* The rest of a path below another: "/b" for "/a/b" below "/a", "" if equal. NULL: not below it. */
static const char *
below(const char *path, const char *top)
{
	size_t len = strcmp(top, "/") == 0 ? 0 : strlen(top);

	if (strncmp(path, top, len) != 0 || (path[len] != '/' && path[len] != '\0')) {
		return NULL;
	}
	return strcmp(path + len, "/") == 0 ? "" : path + len;
}

/* Decode mountinfo's octal escapes in place ("\040" is a space); the kernel writes 3 digits. */
static void
unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at != '\0'; at++) {
		if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] != '\0' &&
		    at[3] != '\0') {
			*to++ = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
			at += 3;
		} else {
			*to++ = *at;
		}
	}
	*to = '\0';
}

/*
 * Open the directory of the hierarchy if this line of mountinfo (proc_pid_mountinfo(5)) is its
 * mount, and shows the group; prefix: "", or /proc/N/root of the process with that mount. A
 * path that is longer than PATH_MAX with its escapes is not found.
 */
static bool
take_mount(const char *line, const char *prefix, const char *controller, const char *group,
	   struct np_cgroup_tree *tree)
{
	char top[PATH_MAX], mount_point[PATH_MAX], type[32], options[1024], path[2 * PATH_MAX];
	const char *after_dash = strstr(line, " - ");
	bool v1 = controller[0] != '\0';

	if (after_dash == NULL ||
	    sscanf(line, "%*s %*s %*s %4095s %4095s", top, mount_point) != 2 ||
	    sscanf(after_dash, " - %31s %*s %1023s", type, options) != 2) {
		return false;
	}
	unescape(top);
	unescape(mount_point);
	if (strcmp(type, v1 ? "cgroup" : "cgroup2") != 0 || below(group, top) == NULL ||
	    (v1 && !np_text_has_word(options, controller))) {
		return false;
	}
	snprintf(path, sizeof(path), "%s%s", prefix, mount_point);
	tree->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (tree->fd < 0) {
		tree->fd = 0;
		return false;
	}
	snprintf(tree->at, sizeof(tree->at), "%s", top);
	return true;
}

/* Find the hierarchy in the mounts of process "self", or N, where paths are below /proc/N/root. */
static bool
find_tree_of(const char *root, const char *process, const char *controller, const char *group,
	     struct np_cgroup_tree *tree)
{
	char *text = np_file_all(root, "/proc/%s/mountinfo", process), *rest = text, *line;
	char prefix[PATH_MAX];
	bool found = false;

	snprintf(prefix, sizeof(prefix), "%s", root);
	if (strcmp(process, "self") != 0) {
		snprintf(prefix, sizeof(prefix), "%s/proc/%s/root", root, process);
	}
	while (!found && (line = strsep(&rest, "\n")) != NULL) {
		found = take_mount(line, prefix, controller, group, tree);
	}
	free(text);
	return found;
}

/* The number after a word, such as the first of a line; 0: the text does not have it. */
static uint64_t
number_after(const char *text, const char *word)
{
	const char *at = strstr(text, word);

	return at != NULL ? strtoull(at + strlen(word), NULL, 10) : 0;
}

/* Replace the number of a process by its parent's. False: it has none, or it is not visible. */
static bool
parent_of(const char *root, char process[16])
{
	char text[TEXT];
	uint64_t parent;

	np_file_read(text, sizeof(text), root, "/proc/%s/status", process);
	parent = number_after(text, "\nPPid:");
	snprintf(process, 16, "%" PRIu64, parent);
	return parent > 0;
}

/* Find the hierarchy in the mounts of this process, or of a parent that sees more of them. */
static void
find_tree(const char *root, const char *text, const char *controller, struct np_cgroup_tree *tree)
{
	char group[PATH_MAX], process[16] = "self";
	int processes = 0;

	tree->fd = 0;
	if (!group_in(text, controller, group)) {
		return;
	}
	while (!find_tree_of(root, process, controller, group, tree) && ++processes < ANCESTORS &&
	       parent_of(root, process)) {
	}
}

void
np_cgroup_find(const char *root, struct np_cgroup_trees *trees)
{
	char text[TEXT], path[PATH_MAX];

	memset(trees, 0, sizeof(*trees));
	if (np_file_read(text, sizeof(text), root, "/proc/self/cgroup") < 0) {
		return;
	}
	trees->is_v1 = group_in(text, "cpu", path);
	find_tree(root, text, trees->is_v1 ? "cpu" : "", &trees->quota);
	if (trees->is_v1) {
		find_tree(root, text, "", &trees->other);
	}
}

void
np_cgroup_forget(struct np_cgroup_trees *trees)
{
	if (trees->quota.fd > 0) {
		close(trees->quota.fd);
	}
	if (trees->other.fd > 0) {
		close(trees->other.fd);
	}
	memset(trees, 0, sizeof(*trees));
}

/* Open a file of a group, "/a/b", or "" for tree->fd itself. Returns a descriptor, or -errno. */
static int
open_in(const struct np_cgroup_tree *tree, const char *group, const char *file)
{
	char path[PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), ".%s/%s", group, file);
	fd = openat(tree->fd, path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

static void
close_level(const struct level *l)
{
	for (int f = 0; f < FILES; f++) {
		np_fds_close(l->fd[f]);
	}
}

/* Add the files of a group. The topmost group has none: it has no quota. */
static void
open_level(struct np_cgroup *c, const struct np_cgroup_tree *tree, const char *group)
{
	struct level *l = &c->level[c->levels];
	bool complete = true;

	for (int f = 0; f < FILES; f++) {
		const char *file = files[c->is_v1 ? 0 : 1][f];

		l->fd[f] = file != NULL ? open_in(tree, group, file) : -ENOENT;
		complete &= file == NULL || l->fd[f] >= 0;
		if (l->fd[f] < 0 && l->fd[f] != -ENOENT && c->why[0] == '\0') {
			snprintf(c->why, sizeof(c->why), "this process's control group: %s",
				 strerror(-l->fd[f]));
		}
	}
	if (complete) {
		c->levels++;
	} else {
		close_level(l);
	}
}

/* Open the files of the group and of those above it, as each may have a quota. */
static void
open_quota(struct np_cgroup *c, const struct np_cgroup_tree *tree)
{
	char path[PATH_MAX], *group, *slash;
	const char *own;

	if (c->self_fd < 0 || !group_in(c->group, c->is_v1 ? "cpu" : "", path)) {
		snprintf(c->why, sizeof(c->why), "this process's control group is not known");
		return;
	}
	own = tree->fd > 0 ? below(path, tree->at) : NULL;
	if (own == NULL) {
		snprintf(c->why, sizeof(c->why),
			 "this process's control group is not mounted here");
		return;
	}
	group = path + strlen(path) - strlen(own); /* the same text, to be shortened */
	for (int i = 0; i < LEVELS; i++) {
		open_level(c, tree, group);
		slash = strrchr(group, '/');
		if (slash == NULL) {
			break;
		}
		*slash = '\0';
	}
}

struct np_cgroup *
np_cgroup_open(const char *root, const struct np_cgroup_trees *trees)
{
	struct np_cgroup *c = calloc(1, sizeof(*c));
	struct np_cgroup_trees found = { .is_v1 = false };
	const struct np_cgroup_tree *v2;
	char path[PATH_MAX];
	const char *group;

	if (c == NULL) {
		return NULL;
	}
	if (trees == NULL) {
		np_cgroup_find(root, &found);
		trees = &found;
	}
	c->self_fd = np_file_open(root, "/proc/self/cgroup");
	if (c->self_fd >= 0) {
		(void)np_file_again(c->group, sizeof(c->group), c->self_fd);
	}
	c->is_v1 = trees->is_v1;
	v2 = c->is_v1 ? &trees->other : &trees->quota;
	open_quota(c, &trees->quota);
	for (int i = 0; i < GROUP; i++) {
		struct pressure *p = &c->pressure[i];

		p->fd = np_file_open(root, "%s", pressures[i].file);
		p->why = p->fd < 0 ? -p->fd : 0;
	}
	c->pressure[GROUP].fd = -1;
	group = v2->fd > 0 && group_in(c->group, "", path) ? below(path, v2->at) : NULL;
	if (group != NULL) {
		c->pressure[GROUP].fd = open_in(v2, group, "cpu.pressure");
	}
	np_cgroup_forget(&found);
	return c;
}

void
np_cgroup_close(struct np_cgroup *c)
{
	if (c == NULL) {
		return;
	}
	for (size_t i = 0; i < c->levels; i++) {
		close_level(&c->level[i]);
	}
	for (int i = 0; i < PRESSURES; i++) {
		np_fds_close(c->pressure[i].fd);
	}
	np_fds_close(c->self_fd);
	free(c);
}

/* Version 2 has "20000 100000" or "max 100000", version 1 two files, and -1 for no quota. */
static void
read_quota(const struct level *l, struct figures *g)
{
	char text[96], *end;
	double quota, period;

	g->quota = none;
	if (np_file_again(text, sizeof(text), l->fd[QUOTA]) <= 0) {
		return;
	}
	quota = strtod(text, &end);
	if (end == text || quota <= 0) {
		return;
	}
	if (np_file_again(text, sizeof(text), l->fd[PERIOD]) > 0) {
		end = text;
	}
	period = strtod(end, NULL);
	if (period > 0) {
		g->quota = quota / period;
		g->period_ms = period / 1e3;
	}
}

/* A group's quota, and how often and for how long it was used up. */
static void
read_level(const struct np_cgroup *c, const struct level *l, struct figures *g)
{
	char text[TEXT] = "\n";

	memset(g, 0, sizeof(*g));
	read_quota(l, g);
	np_file_again(text + 1, sizeof(text) - 1, l->fd[STAT]);
	g->periods = number_after(text, "\nnr_periods ");
	g->throttled_periods = number_after(text, "\nnr_throttled ");
	g->throttled_ns = c->is_v1 ? number_after(text, "\nthrottled_time ")
				   : number_after(text, "\nthrottled_usec ") * 1000;
}

/* Read how long some task waited, or note why that is not known. */
static void
read_pressure(struct pressure *p)
{
	int rc = p->fd >= 0 ? np_pressure_read(p->fd, &p->us) : 0;

	p->why = rc != 0 ? -rc : p->why;
}

/* If this process was moved, the open files are no longer those of its group. */
static void
note_if_moved(struct np_cgroup *c)
{
	char now[TEXT];

	if (c->self_fd >= 0 && np_file_again(now, sizeof(now), c->self_fd) > 0 &&
	    strcmp(now, c->group) != 0) {
		snprintf(c->why, sizeof(c->why),
			 "this process was moved to another control group meanwhile");
	}
}

void
np_cgroup_begin(struct np_cgroup *c)
{
	if (c == NULL) {
		return;
	}
	note_if_moved(c);
	for (size_t i = 0; i < c->levels; i++) {
		read_level(c, &c->level[i], &c->from[i]);
	}
	for (int i = 0; i < PRESSURES; i++) {
		read_pressure(&c->pressure[i]);
	}
}

/*
 * Put the smallest quota at either end of the test, and the figures of the group that was throttled
 * longest, or has had most periods.
 */
static void
put_quota(const struct np_cgroup *c, struct np_bag *into)
{
	struct figures least = { .quota = none }, most = { .quota = 0 };

	if (c->why[0] != '\0') {
		np_bag_unread(into, c->why, "cgroup.cpu.quota");
		return;
	}
	for (size_t i = 0; i < c->levels; i++) {
		const struct figures *from = &c->from[i];
		struct figures to;

		read_level(c, &c->level[i], &to);
		least = from->quota < least.quota ? *from : least;
		least = to.quota < least.quota ? to : least;
		to.periods = np_excess(to.periods, from->periods);
		to.throttled_periods = np_excess(to.throttled_periods, from->throttled_periods);
		to.throttled_ns = np_excess(to.throttled_ns, from->throttled_ns);
		/* Only groups with a quota count periods. */
		if (to.throttled_ns > most.throttled_ns ||
		    (most.throttled_ns == 0 && to.periods > most.periods)) {
			most = to;
		}
	}
	if (least.quota < none) {
		np_bag_real(into, least.quota, "cgroup.cpu.quota");
		np_bag_real(into, least.period_ms, "cgroup.cpu.period_ms");
		np_bag_int(into, (int64_t)most.periods, "cgroup.cpu.periods");
		np_bag_int(into, (int64_t)most.throttled_periods, "cgroup.cpu.throttled_periods");
		np_bag_real(into, (double)most.throttled_ns / 1e9, "cgroup.cpu.throttled_s");
	}
}

void
np_cgroup_end(struct np_cgroup *c, struct np_bag *into)
{
	if (c == NULL) {
		return;
	}
	note_if_moved(c);
	put_quota(c, into);
	for (int i = 0; i < PRESSURES; i++) {
		struct pressure *p = &c->pressure[i];
		uint64_t from = p->us;

		read_pressure(p);
		if (p->why != 0) {
			np_bag_unread(into, strerror(p->why), "%s", pressures[i].name);
		} else if (p->fd >= 0) {
			np_bag_real(into, (double)np_excess(p->us, from) / 1e6, "%s",
				    pressures[i].name);
		}
	}
}
