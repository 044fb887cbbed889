/*
 * The processor quota of this process: that of its control group and of those above it (cgroups(7),
 * both versions), how often it was throttled, and for how long any task waited for a processor,
 * memory or a disk (/proc/pressure, of the machine and of the group).
 */
#ifndef NP_SYS_CGROUP_H
#define NP_SYS_CGROUP_H

#include <limits.h>
#include <stdbool.h>

#include "base/bag.h"

/* A hierarchy of groups as it is mounted. */
struct np_cgroup_tree {
	int fd;            /* its top directory (O_PATH); 0: there is none */
	char at[PATH_MAX]; /* its group, as /proc/self/cgroup names it */
};

/* To be opened before a daemon drops its rights. A zeroed one is empty. */
struct np_cgroup_trees {
	bool is_v1;                  /* of the first one */
	struct np_cgroup_tree quota; /* with the controller of processors */
	struct np_cgroup_tree other; /* version 2's, where that is not the same */
};

/*
 * Find the hierarchies; if they are not mounted here, then where the processes that started this
 * one see them: ip-netns(8) hides them from the programs that it starts. root: the directory above
 * proc and sys; "" except in tests.
 */
void np_cgroup_find(const char *root, struct np_cgroup_trees *trees);
void np_cgroup_forget(struct np_cgroup_trees *trees);

struct np_cgroup;

/*
 * Open the files of this process's group; no rights are needed to read them later. trees: NULL to
 * find them now. NULL without memory, which the other functions accept.
 */
struct np_cgroup *np_cgroup_open(const char *root, const struct np_cgroup_trees *trees);
void np_cgroup_close(struct np_cgroup *c);

/* Read them; read them again, and put cgroup.* and pressure.* */
void np_cgroup_begin(struct np_cgroup *c);
void np_cgroup_end(struct np_cgroup *c, struct np_bag *into);

#endif
