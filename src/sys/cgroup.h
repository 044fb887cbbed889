/*
 * What this process was granted of the processors: the quota of its control group and of those
 * above it (cgroups(7), both versions), how often that held it up, and for how long any task had to
 * wait for a processor, for memory or for a disk (/proc/pressure, of the machine and of the group).
 */
#ifndef NP_SYS_CGROUP_H
#define NP_SYS_CGROUP_H

#include <limits.h>
#include <stdbool.h>

#include "base/bag.h"

/* A hierarchy of groups as it is mounted. */
struct np_cgroup_tree {
	int fd;            /* its top directory (O_PATH); 0: there is none */
	char at[PATH_MAX]; /* the group which that is, named as /proc/self/cgroup does */
};

/* What takes rights that a daemon gives up. A zeroed one is empty. */
struct np_cgroup_trees {
	bool is_v1;                  /* of the first one */
	struct np_cgroup_tree quota; /* with the controller of processors */
	struct np_cgroup_tree other; /* version 2's, where that is not the same */
};

/*
 * Find the hierarchies. Where they are not mounted here they are looked for where those that
 * started this process see them: ip-netns(8) hides them from the programs it starts. root: where
 * proc and sys are mounted below, "" in earnest.
 */
void np_cgroup_find(const char *root, struct np_cgroup_trees *trees);
void np_cgroup_forget(struct np_cgroup_trees *trees);

struct np_cgroup;

/*
 * Open the files of the group that this process is in: reading them again needs no more rights. A
 * tree of NULL is looked for. NULL without memory, which the other functions accept.
 */
struct np_cgroup *np_cgroup_open(const char *root, const struct np_cgroup_trees *trees);
void np_cgroup_close(struct np_cgroup *c);

/* Read them; read them again, and put what they tell as cgroup.* and pressure.* */
void np_cgroup_begin(struct np_cgroup *c);
void np_cgroup_end(struct np_cgroup *c, struct np_bag *into);

#endif
