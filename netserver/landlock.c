#include "netserver/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/sanitized.h"

enum {
	WRITE_FILE = LANDLOCK_ACCESS_FS_WRITE_FILE,
	READ_FILE = LANDLOCK_ACCESS_FS_READ_FILE,
	IN_TMP = LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SOCK |
		 LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE,
};

/* All rights for files, and all scopes, that each version of the interface knows. */
static const struct {
	uint64_t files, scopes;
} known[] = {
	{ 0, 0 },      { 0x1fff, 0 }, { 0x3fff, 0 }, /* 2: moving to another directory */
	{ 0x7fff, 0 },                               /* 3: truncate(2) */
	{ 0x7fff, 0 },                               /* 4: TCP ports, any of which a test may use */
	{ 0xffff, 0 },                               /* 5: ioctl(2) of devices */
	{ 0xffff, 3 },                               /* 6: abstract UNIX sockets and signals */
};

/* landlock_ruleset_attr, of which headers of older kernels have the first member only. */
struct ruleset_attr {
	uint64_t files, ports, scopes;
};

/* Which sessions may use a path. */
enum { ALL = 0, UNIX = NS_FILTER_UNIX, EVIDENCE = NS_FILTER_EVIDENCE };

/* What sessions open after their fork, found with strace(1) and in libc's sources. */
static const struct {
	const char *path;
	uint64_t allowed;
	unsigned sessions; /* ALL, UNIX or EVIDENCE */
} paths[] = {
	{ "/proc/stat", READ_FILE, ALL },              /* counters of the processors (-c -C) */
	{ "/sys/devices/system/cpu", READ_FILE, ALL }, /* their number */
	{ "/dev/null", READ_FILE | WRITE_FILE, ALL },  /* splice(2) discards into it */
	/* To make and remove sockets in their own directories; no file can be made. */
	{ P_tmpdir, IN_TMP, UNIX },
	/* Counters (sys/moved.c, sys/thread.c) and settings (sys/host.c). Files of /proc/net get a
	 * new inode each time that they are opened, so the rule is for the directory. */
	{ "/proc/net", READ_FILE, EVIDENCE },
	{ "/proc/sys/net", READ_FILE, EVIDENCE },
	{ "/proc/self/task", READ_FILE, EVIDENCE }, /* for its threads' schedstat */
	{ "/proc/interrupts", READ_FILE, EVIDENCE },
	{ "/proc/irq", READ_FILE, EVIDENCE },
	{ "/proc/pressure/cpu", READ_FILE, EVIDENCE },
	{ "/proc/loadavg", READ_FILE, EVIDENCE },
	{ "/proc/cpuinfo", READ_FILE, EVIDENCE },
	{ "/sys/devices", READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR, EVIDENCE },
	{ "/sys/hypervisor", READ_FILE, EVIDENCE },
};

int
ns_landlock_version(const struct ns_seal *seal)
{
	static const struct ns_seal none; /* no filter checks it yet */
	long v = ns_sealed(seal != NULL ? seal : &none, SYS_landlock_create_ruleset, 0, 0,
			   LANDLOCK_CREATE_RULESET_VERSION, 0);

	return v > 0 && !NP_SANITIZED ? (int)v : 0;
}

/* Allow these rights for the file, or below the directory, that fd is. 0, or -1 with errno. */
static int
allow(const struct ns_seal *seal, int rules, int fd, uint64_t allowed)
{
	const struct landlock_path_beneath_attr a = { .allowed_access = allowed, .parent_fd = fd };

	return (int)ns_sealed(seal, SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH,
			      (long)&a, 0);
}

int
ns_landlock_install(const struct ns_sandbox *s, const struct ns_seal *seal, struct np_err *err)
{
	const int newest = (int)(sizeof(known) / sizeof(known[0])) - 1;
	int version = ns_landlock_version(seal);
	struct ruleset_attr attr = { .files = 0 };
	int rules, rc;

	if (version == 0) {
		return NP_OK;
	}
	version = version < newest ? version : newest;
	attr.files = known[version].files;
	attr.scopes = known[version].scopes;
	/* Older kernels take the longer structure as long as what they don't know is 0. */
	rules = (int)ns_sealed(seal, SYS_landlock_create_ruleset, (long)&attr, sizeof(attr), 0, 0);
	if (rules < 0) {
		return np_fail(err, NP_ESYS, errno, "make rules for files (landlock)");
	}
	rc = s->fill_dir > 0 ? allow(seal, rules, s->fill_dir, READ_FILE) : 0;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]) && rc == 0; i++) {
		if ((s->filter & paths[i].sessions) == paths[i].sessions) {
			const char *path = paths[i].path;
			int fd = open(path, O_PATH | O_CLOEXEC);

			/* A missing path needs no rule. A rule is for an inode: descriptors of
			 * /proc stay open, or the kernel may drop theirs when short of memory. */
			rc = fd >= 0 ? allow(seal, rules, fd, paths[i].allowed) : 0;
			np_fds_close(strncmp(path, "/proc/", strlen("/proc/")) != 0 ? fd : -1);
		}
	}
	if (rc == 0) {
		rc = (int)ns_sealed(seal, SYS_landlock_restrict_self, rules, 0, 0, 0);
	}
	rc = rc == 0 ? NP_OK : np_fail(err, NP_ESYS, errno, "confine to some files (landlock)");
	close(rules);
	return rc;
}
