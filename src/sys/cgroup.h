/*
 * The processor quota of this process's control group and of the groups above it (cgroups(7), both
 * versions), how often they were throttled, and for how long any task waited for a processor,
 * memory or a disk (/proc/pressure, of the machine and of the group).
 */
#ifndef NP_SYS_CGROUP_H
#define NP_SYS_CGROUP_H

#include <limits.h>
#include <stdbool.h>

#include "base/bag.h"

/* A mounted hierarchy of groups. */
struct np_cgroup_tree {
	int fd;            /* its top directory here (O_PATH); 0: it was not found */
	char at[PATH_MAX]; /* the group of that directory, as named in /proc/self/cgroup */
};

/* The hierarchies. A daemon finds them before it drops its rights. A zeroed struct is empty. */
struct np_cgroup_trees {
	bool is_v1;                  /* is `quota` of version 1? */
	struct np_cgroup_tree quota; /* the one that controls processors */
	struct np_cgroup_tree other; /* that of version 2, if `quota` is not */
};

/*
 * Find the hierarchies as mounted for this process, or else for an ancestor: ip-netns(8) hides them
 * from its programs. root: the directory above proc and sys; "" except in tests.
 */
void np_cgroup_find(const char *root, struct np_cgroup_trees *trees);
void np_cgroup_forget(struct np_cgroup_trees *trees);

struct np_cgroup;

/*
 * Open the files of this process's group; reading them later needs no rights. trees NULL: find them
 * now. Returns NULL without memory, which the other functions accept.
 */
struct np_cgroup *np_cgroup_open(const char *root, const struct np_cgroup_trees *trees);
void np_cgroup_close(struct np_cgroup *c);

/* Read the figures from which np_cgroup_end() counts. May be called again. */
void np_cgroup_begin(struct np_cgroup *c);

/* Put the quota, and the differences since np_cgroup_begin(), as cgroup.* and pressure.* */
void np_cgroup_end(struct np_cgroup *c, struct np_bag *into);

#endif
