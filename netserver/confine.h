/*
 * What the daemon and its sessions may do to this machine. Sanitizers need ptrace(2), /proc/self
 * and terabytes mapped: with them only user, capabilities, no_new_privs and descriptors are
 * limited.
 */
#ifndef NETSERVER_CONFINE_H
#define NETSERVER_CONFINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/err.h"
#include "run/server.h"

struct ns_seal;

enum { NS_THREAD_FDS = 8 }; /* descriptors of a thread: of epoll, pipes, samples */

/*
 * Confine the daemon, once its listeners and files are open. If started as root, become `user`
 * ("name", "name:group", numbers; NULL: nobody) for good, without root's groups; "root" stays root.
 * If the user changes: without --user CAP_NET_ADMIN stays permitted, but not effective
 * (ns_permit()); with it no capability stays. Otherwise those that tests use stay effective.
 * allow_raw: CAP_NET_RAW stays permitted, too (ns_with_raw()). Then, for any user: no_new_privs,
 * not dumpable, no core files (prctl(2)). NP_EUSAGE: unknown user. NP_ESYS: the kernel refuses.
 */
int ns_confine_daemon(const char *user, bool allow_raw, struct np_err *err);

/*
 * For a session's process, before it is confined: if `want`, call act() with CAP_NET_RAW as the
 * only effective capability. Then drop it for good. NP_ESYS if that fails: the session must end.
 */
int ns_with_raw(bool want, void (*act)(void *ctx), void *ctx, struct np_err *err);

/* Kinds of sessions, and of their filters of system calls: bits. */
enum { NS_FILTER_UNIX = 1, NS_FILTER_EVIDENCE = 2, NS_FILTER_URING = 4 };

struct ns_sandbox {
	int fill_dir; /* descriptor of the directory that it may read; 0: none */
	/* NS_FILTER_UNIX: may make sockets in /tmp (UNIX domain tests); not with packet sockets.
	 * NS_FILTER_EVIDENCE: may read the kernel's counters and the host's settings. */
	unsigned filter;
	int capture_fd;  /* a packet socket that may receive, but not send; 0: none */
	int link_fd;     /* a packet socket that may send, but only by its interface; 0: none */
	uint32_t urings; /* rings that it has already (np_urings_prepare()); 0: it can't use any */
	bool alone;      /* there is no daemon that could call ns_confine_descriptors() */
	/* Its transports and engines, and RLIMIT_NOFILE by `flows`. `bytes` is RLIMIT_DATA beyond
	 * what the process has now. */
	struct np_limits limits;
};

/* Congestion controls for clients: the loaded ones. With CAP_NET_ADMIN others load modules. */
struct ns_permit {
	char loaded[256]; /* names with blanks around; empty: none */
};
void ns_permit_init(struct ns_permit *p); /* before the process is confined */

/*
 * np_sockopts.permit; ctx: a struct ns_permit. Fails with ENOENT, without a call, if a congestion
 * control is not loaded. If the daemon was root and has no --user, CAP_NET_ADMIN is effective
 * during this call, if needed; not in a session with evidence, which could use it for netlink and
 * ethtool.
 */
int ns_permit(void *ctx, int fd, const char *congestion, socklen_t len);

/*
 * When memory runs out, have the kernel end this process, and those it forks, before the daemon. To
 * be called before it is confined, with no secret left in memory: it is dumpable meanwhile.
 */
int ns_confine_die_first(struct np_err *err);

/* What this machine lacks to confine sessions, "no landlock in this kernel; ...", or "". */
enum { NS_LACKS = 160 };
void ns_confine_lacks(char text[NS_LACKS]);

/*
 * Confine a session's process, before it reads more: landlock(7), seccomp(2), setrlimit(2). What
 * the machine lacks is left out; NP_ESYS for other failures. A fork server does it in two steps:
 * ns_confine_shared() makes the seal and all that sessions inherit, then in each session
 * ns_confine_own() adds the files, some of which are its own (/proc/self), and wipes the seal.
 */
int ns_confine_session(const struct ns_sandbox *s, struct np_err *err);
int ns_confine_shared(const struct ns_sandbox *s, struct ns_seal *seal, struct np_err *err);
int ns_confine_own(const struct ns_sandbox *s, struct ns_seal *seal, struct np_err *err);

/*
 * Limit a confined session (0: this process) to the descriptors of its test (threads and flows 0:
 * none). With more, half could watch the others by epoll(7); watches count for all sessions' user.
 */
void ns_confine_descriptors(pid_t session, uint64_t threads, uint64_t flows);

#endif
