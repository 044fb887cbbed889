#include "netserver/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "base/units.h"
#include "netserver/filter.h"
#include "sys/file.h"
#include "wire/plan.h"

enum {
	NOBODY = 65534,    /* if there is no user of that name */
	DESCRIPTORS = 128, /* of a session beside data connections: about 10, with evidence 86 */
	STACK = 512 << 10, /* of a worker's thread, which uses some 10 KiB */
	BESIDE = 2 << 20,  /* memory for that stack, and for libc */
	MAIN_STACK = 1 << 20,
	ADDRESSES = 2 << 20, /* the main stack, guard pages, small mappings of files */
	/* What a process may have already, if /proc can't be read: VmData and VmSize. */
	UNKNOWN_DATA = 16 << 20,
	UNKNOWN_ALL = 64 << 20,
	LEFT_BELOW = 16 << 10, /* as much of the stack may hold copies of a seal */
	DIE_FIRST = 100, /* added to oom_score_adj: thousandths of memory, more than the daemon's */
	OOM_MOST = 1000,
	BUFFER = 128 << 10 /* malloc(3) maps blocks of this size, and free(3) unmaps them */
};

struct account {
	char name[64]; /* empty: a number without a name */
	uid_t uid;
	gid_t gid;
	bool own_group; /* it was given: then it is the only group */
};

/* Read the number of a user or group. Rejects -1, which means "unchanged" to setresuid(2). */
static bool
parse_id(const char *text, uint32_t *id)
{
	int64_t n;

	if (text[0] < '0' || text[0] > '9' || np_parse_int(text, &n) != 0 || n < 0 ||
	    n >= UINT32_MAX) {
		return false;
	}
	*id = (uint32_t)n;
	return true;
}

/* Look up "name" or "name:group", each of which may be a number. NP_EUSAGE; err may be NULL. */
static int
find_user(const char *text, struct account *a, struct np_err *err)
{
	const char *colon = strchr(text, ':');
	const struct passwd *p;
	const struct group *g;
	char name[sizeof(a->name)];
	int len = colon != NULL ? (int)(colon - text) : (int)strlen(text);

	memset(a, 0, sizeof(*a));
	if (len == 0 || len >= (int)sizeof(name)) {
		return np_usage(err, "%.60s names no user", text);
	}
	snprintf(name, sizeof(name), "%.*s", len, text);
	p = getpwnam(name);
	if (p == NULL && parse_id(name, &a->uid)) {
		p = getpwuid(a->uid);
		if (p == NULL && colon == NULL) {
			return np_usage(err, "user %s has no group (try %s:GROUP)", name, name);
		}
	} else if (p == NULL) {
		return np_usage(err, "there is no user %s", name);
	}
	if (p != NULL) {
		snprintf(a->name, sizeof(a->name), "%s", p->pw_name);
		a->uid = p->pw_uid;
		a->gid = p->pw_gid;
	}
	if (colon == NULL) {
		return NP_OK;
	}
	a->own_group = true;
	g = getgrnam(colon + 1);
	if (g != NULL) {
		a->gid = g->gr_gid;
	} else if (!parse_id(colon + 1, &a->gid)) {
		return np_usage(err, "there is no group %.60s", colon + 1);
	}
	return NP_OK;
}

/* Is the id mapped in this user namespace? A line: first id here, first id outside, count. */
static bool
is_mapped(const char *map, uint32_t id)
{
	FILE *f = fopen(map, "re");
	bool mapped = f == NULL; /* no file: no user namespaces */
	char line[128], *at;

	while (f != NULL && !mapped && fgets(line, sizeof(line), f) != NULL) {
		uint64_t first = strtoull(line, &at, 10), count;

		(void)strtoull(at, &at, 10);
		count = strtoull(at, &at, 10);
		mapped = id >= first && id - first < count;
	}
	if (f != NULL) {
		fclose(f);
	}
	return mapped;
}

/* Fail if this process could become another user again: try it. */
static int
check_no_way_back(const struct account *a, struct np_err *err)
{
	uid_t r, e, s;

	if (getresuid(&r, &e, &s) != 0 || r != a->uid || e != a->uid || s != a->uid ||
	    setresuid((uid_t)-1, 0, (uid_t)-1) == 0 || setuid(0) == 0) {
		return np_fail(err, NP_ESYS, 0, "user %lu could become root again",
			       (unsigned long)a->uid);
	}
	if (getresgid(&r, &e, &s) != 0 || r != a->gid || e != a->gid || s != a->gid ||
	    (a->gid != 0 && setgid(0) == 0)) {
		return np_fail(err, NP_ESYS, 0, "group %lu could become root's again",
			       (unsigned long)a->gid);
	}
	return NP_OK;
}

/*
 * As root, become the user of --user (NULL: nobody); *changed: the user is no longer root. In
 * a user namespace that has no such user (unshare -r), root is an ordinary user outside, and stays
 * one unless --user is given.
 */
static int
change_user(const char *user, struct account *a, bool *changed, struct np_err *err)
{
	int parent_death = 0;

	*changed = false;
	if (user == NULL) {
		if (find_user("nobody", a, NULL) != NP_OK) {
			*a = (struct account){ .uid = NOBODY, .gid = NOBODY, .own_group = true };
		}
		if (geteuid() != 0 || !is_mapped("/proc/self/uid_map", a->uid) ||
		    !is_mapped("/proc/self/gid_map", a->gid)) {
			return NP_OK;
		}
	} else if (find_user(user, a, err) != NP_OK) {
		return err->code;
	} else if (geteuid() != 0 && a->uid != geteuid()) {
		return np_usage(err, "only root can become user %.60s", user);
	}
	if (geteuid() != 0 || (a->uid == 0 && !a->own_group)) { /* it is that user already */
		return NP_OK;
	}
	*changed = a->uid != 0;
	/* The kernel clears this signal when the user changes: set it again. */
	(void)prctl(PR_GET_PDEATHSIG, &parent_death, 0, 0, 0);
	/* Capabilities stay until limit_capabilities() has chosen among them. */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 ||
	    (a->own_group || a->name[0] == '\0' ? setgroups(1, &a->gid)
						: initgroups(a->name, a->gid)) != 0 ||
	    setresgid(a->gid, a->gid, a->gid) != 0 || setresuid(a->uid, a->uid, a->uid) != 0 ||
	    prctl(PR_SET_PDEATHSIG, parent_death, 0, 0, 0) != 0) {
		return np_fail(err, NP_ESYS, errno, "become user %lu, group %lu",
			       (unsigned long)a->uid, (unsigned long)a->gid);
	}
	return NP_OK;
}

/*
 * For tests, if the daemon stays root or has AmbientCapabilities= (systemd.exec(5)): ports below
 * 1024, priorities above 6, SO_DEBUG, restricted congestion controls. The daemon needs none.
 */
static const uint64_t kept = UINT64_C(1) << CAP_NET_BIND_SERVICE | UINT64_C(1) << CAP_NET_ADMIN;

/* Permitted after root has become nobody without --user, and effective only in ns_permit(). */
static const uint64_t kept_as_nobody = UINT64_C(1) << CAP_NET_ADMIN;

/* --allow-raw: a session opens its packet sockets by it, and drops it. */
static const uint64_t raw = UINT64_C(1) << CAP_NET_RAW;
/* No CAP_NET_ADMIN: with it, netlink and ethtool (opaque to filters) could change interfaces. */
static const uint64_t kept_with_evidence = UINT64_C(1) << CAP_NET_BIND_SERVICE;

/* Limit what is permitted and effective. *were: effective before; may be NULL. -1 with errno. */
static int
set_capabilities(uint64_t keep, uint64_t effective, uint64_t *were)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[_LINUX_CAPABILITY_U32S_3];

	memset(have, 0, sizeof(have));
	if (syscall(SYS_capget, &head, have) != 0) {
		return -1;
	}
	if (were != NULL) {
		*were = have[0].effective | (uint64_t)have[1].effective << 32;
	}
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		have[i].permitted &= (uint32_t)(keep >> 32 * i);
		have[i].effective = have[i].permitted & (uint32_t)(effective >> 32 * i);
		have[i].inheritable = 0;
	}
	return (int)syscall(SYS_capset, &head, have);
}

/* Drop all capabilities but these, which become effective, or only stay permitted. */
static int
limit_capabilities(uint64_t keep, bool effective, struct np_err *err)
{
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); /* fails before Linux 4.3 */
	return set_capabilities(keep, effective ? keep : 0, NULL) == 0
		   ? NP_OK
		   : np_fail(err, NP_ESYS, errno, "drop capabilities");
}

/* Against core files, and reading by the same user. Sanitizers need a dumpable process. */
static int
hide_memory(struct np_err *err)
{
	return prctl(PR_SET_DUMPABLE, NP_SANITIZED, 0, 0, 0) == 0
		   ? NP_OK
		   : np_fail(err, NP_ESYS, errno, "hide this process's memory");
}

int
ns_confine_daemon(const char *user, bool allow_raw, struct np_err *err)
{
	const struct rlimit none = { 0, 0 };
	uint64_t more = allow_raw ? raw : 0;
	struct account a;
	bool changed;

	*err = (struct np_err){ .code = NP_OK };
	tzset(); /* log lines have local times, and the zone's file may be unreadable later */
	/* So that no program started from here can get other capabilities. Only root may do it. */
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0 && cap < 64; cap++) {
		if (((kept | more) >> cap & 1) == 0) {
			(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
		}
	}
	if (change_user(user, &a, &changed, err) != NP_OK ||
	    limit_capabilities((!changed       ? kept
				: user == NULL ? kept_as_nobody
					       : 0) |
				   more,
			       !changed, err) != NP_OK ||
	    (changed && check_no_way_back(&a, err) != NP_OK) || hide_memory(err) != NP_OK) {
		return err->code;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		return np_fail(err, NP_ESYS, errno, "give up new privileges");
	}
	return setrlimit(RLIMIT_CORE, &none) == 0
		   ? NP_OK
		   : np_fail(err, NP_ESYS, errno, "switch core files off");
}

int
ns_confine_die_first(struct np_err *err)
{
	static const char path[] = "/proc/self/oom_score_adj";
	int64_t adj;
	int fd;

	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* else the file is root's */
	if (np_file_number(&adj, "", path) == 0 && (fd = open(path, O_WRONLY | O_CLOEXEC)) >= 0) {
		adj += DIE_FIRST;
		dprintf(fd, "%d", adj < OOM_MOST ? (int)adj : OOM_MOST);
		close(fd);
	}
	return hide_memory(err);
}

/* The size that /proc/self/status has in the line of that name, in bytes; or `unknown`. */
static uint64_t
memory_now(const char *name, uint64_t unknown)
{
	uint64_t bytes = unknown;
	char *text = np_file_all("", "/proc/self/status");
	const char *at = text != NULL ? strstr(text, name) : NULL;

	if (at != NULL) {
		bytes = strtoull(at + strlen(name), NULL, 10) << 10; /* of kB */
	}
	free(text);
	return bytes;
}

/* Lower a limit RLIMIT_*, hard and soft. One that is lower already stays. name: for the error. */
static int
limit(int what, const char *name, uint64_t value, struct np_err *err)
{
	struct rlimit l;

	if (getrlimit(what, &l) == 0) {
		l.rlim_max = l.rlim_max < value ? l.rlim_max : (rlim_t)value;
		l.rlim_cur = l.rlim_cur < l.rlim_max ? l.rlim_cur : l.rlim_max;
		if (setrlimit(what, &l) == 0) {
			return NP_OK;
		}
	}
	return np_fail(err, NP_ESYS, errno, "limit %s to %llu", name, (unsigned long long)value);
}

/* Allow `bytes` more. RLIMIT_DATA misses stacks and mremap(2) of them, which RLIMIT_AS counts. */
static int
limit_memory(uint64_t bytes, struct np_err *err)
{
	uint64_t more = BESIDE + bytes;
	pthread_attr_t attr;

	/* Threads' stacks count, and would take the 8 MiB of RLIMIT_STACK each. Freed buffers must
	 * not stay in libc's heap: those of the next test would come on top. */
	if (pthread_attr_init(&attr) == 0) {
		if (pthread_attr_setstacksize(&attr, STACK) == 0) {
			pthread_setattr_default_np(&attr);
		}
		pthread_attr_destroy(&attr);
	}
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, BUFFER);
#endif
	if (limit(RLIMIT_STACK, "the stack", MAIN_STACK, err) != NP_OK ||
	    limit(RLIMIT_DATA, "memory", memory_now("VmData:", UNKNOWN_DATA) + more, err) !=
		NP_OK) {
		return err->code;
	}
	return limit(RLIMIT_AS, "addresses", memory_now("VmSize:", UNKNOWN_ALL) + more + ADDRESSES,
		     err);
}

void
ns_confine_descriptors(pid_t session, uint64_t threads, uint64_t flows)
{
	struct rlimit l;

	if (prlimit(session, RLIMIT_NOFILE, NULL, &l) == 0) {
		l.rlim_cur = np_min(l.rlim_max, DESCRIPTORS + NS_THREAD_FDS * threads + flows);
		(void)prlimit(session, RLIMIT_NOFILE, &l, NULL); /* it may have ended */
	}
}

/*
 * Limit a session's descriptors, core files, memory and capabilities. No RLIMIT_NPROC or _FSIZE:
 * the filter and landlock already forbid forking and writing.
 */
static int
limit_session(const struct ns_sandbox *s, struct np_err *err)
{
	/* Only a filter limits what capabilities are used for: without one, drop them all. */
	bool can_filter = NP_SANITIZED || ns_filter_lacks() == NULL;
	uint64_t flows = s->limits.flows != 0 ? s->limits.flows : NP_FLOWS_MAX;

	if (limit(RLIMIT_NOFILE, "descriptors",
		  DESCRIPTORS + NS_THREAD_FDS * NP_THREADS_MAX + s->urings + flows, err) != NP_OK ||
	    limit(RLIMIT_CORE, "core files", 0, err) != NP_OK ||
	    (s->limits.bytes != 0 && !NP_SANITIZED &&
	     limit_memory(s->limits.bytes, err) != NP_OK) ||
	    (!can_filter && limit_capabilities(0, false, err) != NP_OK)) {
		return err->code;
	}
	if (!s->alone) {
		ns_confine_descriptors(0, 0, 0); /* for no test, until the daemon grants one */
	}
	return (s->filter & NS_FILTER_EVIDENCE) != 0
		   ? limit_capabilities(kept_with_evidence, can_filter, err)
		   : NP_OK;
}

/* Wipe copies of a seal that function calls left on the stack. */
static void __attribute__((noinline)) wipe_stack(void)
{
	uint8_t below[LEFT_BELOW];

	explicit_bzero(below, sizeof(below));
}

int
ns_confine_shared(const struct ns_sandbox *asked, struct ns_seal *seal, struct np_err *err)
{
	struct ns_sandbox box = *asked;
	const struct ns_sandbox *s = &box;
	struct sock_fprog filter = { .filter = NULL };
	int rc;

	tzset(); /* the zone's file can't be read later */
	/* UNIX sockets could duplicate a packet socket (SCM_RIGHTS), unknown to the filter. */
	if (box.capture_fd > 0 || box.link_fd > 0) {
		box.filter &= ~(unsigned)NS_FILTER_UNIX;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		return np_fail(err, NP_ESYS, errno, "give up new privileges");
	}
	/* Needs /proc/self/fd, and seccomp(2), which the filter of system calls forbids. */
	if ((s->capture_fd > 0 && ns_filter_socket(s->capture_fd, false, err) != NP_OK) ||
	    (s->link_fd > 0 && ns_filter_socket(s->link_fd, true, err) != NP_OK)) {
		return err->code;
	}
	/* Before the limits, as its memory does not count for the session. */
	rc = ns_filter_make(s, &filter, err);
	rc = rc == NP_OK ? limit_session(s, err) : rc;
	if (rc == NP_OK) {
		rc = ns_filter_install(&filter, seal, err);
		wipe_stack();
	}
	free(filter.filter);
	return rc;
}

int
ns_confine_own(const struct ns_sandbox *s, struct ns_seal *seal, struct np_err *err)
{
	int rc = ns_landlock_install(s, seal, err);

	explicit_bzero(seal, sizeof(*seal));
	return rc;
}

int
ns_confine_session(const struct ns_sandbox *s, struct np_err *err)
{
	struct ns_seal seal = { .word = { 0 } };
	int rc = ns_confine_shared(s, &seal, err);

	return rc == NP_OK ? ns_confine_own(s, &seal, err) : rc;
}

int
ns_with_raw(bool want, void (*act)(void *ctx), void *ctx, struct np_err *err)
{
	uint64_t were = 0;
	/* without CAP_NET_ADMIN, so that an interface's name from a client can't load a module */
	bool is_ready = set_capabilities(UINT64_MAX, want ? raw : 0, &were) == 0;

	if (want && is_ready) {
		act(ctx);
	}
	return is_ready && set_capabilities(~raw, were, NULL) == 0
		   ? NP_OK
		   : np_fail(err, NP_ESYS, errno, "give up CAP_NET_RAW");
}

void
ns_permit_init(struct ns_permit *p)
{
	char line[sizeof(p->loaded) - 2];

	p->loaded[0] = '\0';
	if (np_file_line(line, sizeof(line), "",
			 "/proc/sys/net/ipv4/tcp_available_congestion_control") > 0) {
		snprintf(p->loaded, sizeof(p->loaded), " %s ", line);
	}
}

int
ns_permit(void *ctx, int fd, const char *congestion, socklen_t len)
{
	const int level = IPPROTO_TCP, name = TCP_CONGESTION;
	const struct ns_permit *p = ctx;
	char wanted[32];
	int rc, error;

	snprintf(wanted, sizeof(wanted), " %.*s ", (int)len, congestion);
	if (len == 0 || len > sizeof(wanted) - 3 || memchr(congestion, ' ', len) != NULL ||
	    strstr(p->loaded, wanted) == NULL) {
		errno = ENOENT;
		return -1;
	}
	/* Some need no capability, and a daemon that stayed root has it. */
	rc = setsockopt(fd, level, name, congestion, len);
	if (rc == 0 || errno != EPERM) {
		return rc;
	}
	if (set_capabilities(UINT64_MAX, kept_as_nobody, NULL) != 0) {
		errno = EPERM;
		return -1;
	}
	rc = setsockopt(fd, level, name, congestion, len);
	error = errno;
	if (set_capabilities(UINT64_MAX, 0, NULL) != 0) {
		abort(); /* it must not stay effective */
	}
	errno = error;
	return rc;
}

void
ns_confine_lacks(char text[NS_LACKS])
{
	const char *filter = ns_filter_lacks();
	bool landlock = ns_landlock_version(NULL) > 0 || NP_SANITIZED; /* filter says that */

	snprintf(text, NS_LACKS, "%s%s%s",
		 landlock ? "" : "no landlock in this kernel or container",
		 landlock || filter == NULL ? "" : "; ", filter != NULL ? filter : "");
}
