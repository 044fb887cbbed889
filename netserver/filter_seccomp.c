/* Rules for libseccomp. Names are looked up at run time: unknown calls are left out. */
#include "base/fds.h"
#include "net/sock.h"
#include "netserver/filter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/net.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/sctp.h>       /* needs types of the headers above */
#include <linux/vm_sockets.h> /* uses what sys/socket.h declares */

#include "base/sanitized.h"
#include "bench/bench.h"
#include "bench/engine/engine.h"
#include "bench/lacks.h"
#include "bench/transport/dccp.h"
#include "net/addr.h"
#include "netserver/confine.h"
#include "run/server.h"
#include "run/team.h"

/* Of io_uring_register(2): <linux/io_uring.h> may be too old to have them. */
enum { RING_FILES = 2, RING_FILES_OFF = 3, RING_BUFFERS = 22, RING_BUFFERS_OFF = 23 };
#define TYPE 0xfU            /* of a socket, without SOCK_CLOEXEC and SOCK_NONBLOCK */
enum { MOST_FDS = 1 << 16 }; /* tried one by one where /proc does not list them */

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41 /* newer glibc names its threads' stacks by it */
#endif

/* Most frequent first: before Linux 5.11 each call goes through the filter. */
static const char *const allowed[] = {
	/* the loops */
	"sendto", "recvfrom", "sendmsg", "recvmsg", "read", "write", "accept4", "accept", "close",
	"connect", "send", "recv", "sendmmsg", "recvmmsg", "readv", "writev", "splice", "poll",
	"ppoll", "ppoll_time64", "select", "pselect6", "pselect6_time64", "shutdown", "getsockopt",
	"bind", "listen", "getsockname", "getpeername", "clock_nanosleep", "clock_nanosleep_time64",
	"nanosleep", "clock_gettime", "clock_gettime64", "gettimeofday", "time", "clock_getres",
	"clock_getres_time64",
	/* many data connections */
	"epoll_wait", "epoll_pwait", "epoll_pwait2", "epoll_ctl", "epoll_create1", "eventfd2",
	/* threads and signals; clone() is in allowed_if */
	"futex", "futex_time64", "set_robust_list", "rseq", "set_tid_address", "sched_yield",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigreturn", "sigaltstack",
	"restart_syscall", "membarrier", "exit", "exit_group", "arch_prctl", "set_thread_area",
	/* memory; mmap() is in allowed_if */
	"brk", "munmap", "mremap", "madvise",
	/* files: landlock limits which */
	"lseek", "_llseek", "pread64", "fstat", "fstat64", "fstatat64", "newfstatat", "statx",
	"pipe", "pipe2", "close_range",
	/* called by libc itself */
	"getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getuid32",
	"geteuid32", "getgid32", "getegid32", "getrandom", "uname", "sysinfo", "getcpu",
	"getrlimit", "ugetrlimit", "sched_getaffinity",
	/* ns_permit() */
	"capget", "capset"
};

/* For the directories and names of UNIX sockets. */
static const char *const allowed_unix[] = {
	"mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "chmod", "fchmodat", "fchmodat2",
};

/* To read what the kernel counted and how the host is set up. */
static const char *const allowed_evidence[] = {
	"getdents64", "getdents", "readlink", "readlinkat", "getrusage",
};

/* Calls that only a compromised session makes: it is killed. */
static const char *const fatal[] = {
	/* another program */
	"execve", "execveat",
	/* another process's memory and descriptors */
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
	/* another user */
	"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups",
	"setfsuid", "setfsgid", "setuid32", "setgid32", "setreuid32", "setregid32", "setresuid32",
	"setresgid32", "setgroups32", "setfsuid32", "setfsgid32",
	/* another view of the files */
	"mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen",
	"fsconfig", "fsmount", "fspick", "mount_setattr", "setns", "open_by_handle_at",
	/* the kernel itself */
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "kexec_load", "kexec_file_load",
	"init_module", "finit_module", "delete_module", "keyctl", "add_key", "request_key",
	"reboot", "swapon", "swapoff", "acct", "iopl", "ioperm", "modify_ldt", "settimeofday",
	"clock_settime", "clock_settime64", "stime", "sethostname", "setdomainname", "syslog"
};

/* Calls that only a compromised session makes if it has no rings. */
static const char *const fatal_without_rings[] = { "io_uring_enter", "io_uring_register" };

/* To use rings, which were made and restricted before. */
static const char *const allowed_uring[] = { "io_uring_enter" };

/* (argument & mask) == value, on 32 bits only: the rest of the register may hold anything. */
struct condition {
	unsigned arg;
	uint32_t mask, value;
};
enum { CONDITIONS = 3 }; /* of a rule; unused ones have mask 0 */
struct rule {
	const char *name;
	struct condition when[CONDITIONS];
};

#define ALL UINT32_MAX

/* Placeholders for the words of a seal, which are drawn when the filter is installed. */
static const uint32_t seal_blanks[] = { UINT32_C(0x73656c66), UINT32_C(0x6c616573) };
enum { FIRST_WORD = 4 }; /* the argument that has the first word */

/* Allowed with the seal only. */
static const long landlock_calls[] = { SYS_landlock_create_ruleset, SYS_landlock_add_rule,
				       SYS_landlock_restrict_self };

/* A thread, as pthread_create(3) makes it, and neither a process nor a namespace. */
enum { THREAD = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD };
#define NAMESPACES                                                                                 \
	(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | \
	 CLONE_NEWCGROUP)

/* Files are not created or truncated, nor opened for both. /dev/null is opened for writing. */
enum { CREATES = O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY) };
#define OPENED (O_ACCMODE | CREATES)

static const struct rule allowed_if[] = {
	{ "open", { { 1, OPENED, O_RDONLY } } },
	{ "open", { { 1, OPENED, O_WRONLY } } },
	{ "openat", { { 2, OPENED, O_RDONLY } } },
	{ "openat", { { 2, OPENED, O_WRONLY } } },
	/* No code, and no memory that RLIMIT_DATA does not count: shared pages and stacks. */
	{ "mmap", { { 2, PROT_EXEC, 0 }, { 3, MAP_TYPE | MAP_GROWSDOWN, MAP_PRIVATE } } },
	{ "mmap2", { { 2, PROT_EXEC, 0 }, { 3, MAP_TYPE | MAP_GROWSDOWN, MAP_PRIVATE } } },
	{ "mprotect", { { 2, PROT_EXEC, 0 } } },
	{ "clone", { { NS_FORK_ARG, THREAD | NAMESPACES, THREAD } } },
	{ "unshare", { { 0, ALL, CLONE_FILES } } }, /* np_fds_unshare() */
	/* Landlock limits it to the session's threads (Linux 6.12); other processes ignore it. */
	{ "tgkill", { { 2, ALL, NP_KICK_SIGNAL } } },
	{ "sched_setaffinity", { { 0, ALL, 0 } } },
	{ "prlimit64", { { 0, ALL, 0 }, { 2, ALL, 0 } } }, /* read only */
	{ "ioctl", { { 1, ALL, SIOCOUTQ } } },
	/* To make sockets non-blocking: F_SETFL could also take O_APPEND from a shared file. */
	{ "ioctl", { { 1, ALL, FIONBIO } } },
	{ "ioctl", { { 1, ALL, SIOCGIFNAME } } }, /* for the zone of an IPv6 address */
	{ "fcntl", { { 1, ALL, F_GETFL } } },
	{ "fcntl", { { 1, ALL, F_GETFD } } },
	{ "fcntl", { { 1, ALL, F_SETFD } } },
	{ "fcntl", { { 1, ALL, F_SETPIPE_SZ } } },
	{ "fcntl64", { { 1, ALL, F_GETFL } } },
	{ "fcntl64", { { 1, ALL, F_GETFD } } },
	{ "fcntl64", { { 1, ALL, F_SETFD } } },
	{ "fcntl64", { { 1, ALL, F_SETPIPE_SZ } } },
	{ "prctl", { { 0, ALL, PR_SET_TIMERSLACK } } },
	{ "prctl", { { 0, ALL, PR_GET_TIMERSLACK } } },
	{ "prctl", { { 0, ALL, PR_SET_NAME } } },
	{ "prctl", { { 0, ALL, PR_SET_PDEATHSIG } } },
	{ "prctl", { { 0, ALL, PR_SET_VMA } } },
};

/* Requests of netlink and ethtool can't be seen; changes need CAP_NET_ADMIN, dropped by then. */
static const struct rule allowed_evidence_if[] = {
	{ "socket", { { 0, ALL, AF_NETLINK }, { 1, TYPE, SOCK_RAW }, { 2, ALL, NETLINK_ROUTE } } },
	{ "ioctl", { { 1, ALL, SIOCETHTOOL } } },
	{ "ioctl", { { 1, ALL, SIOCINQ } } },
};

/* To register a test's sockets and buffers, and to unregister them. */
static const struct rule allowed_uring_if[] = {
	{ "io_uring_register", { { 1, ALL, RING_FILES } } },
	{ "io_uring_register", { { 1, ALL, RING_FILES_OFF } } },
	{ "io_uring_register", { { 1, ALL, RING_BUFFERS } } },
	{ "io_uring_register", { { 1, ALL, RING_BUFFERS_OFF } } },
};

/*
 * Options of sockets. Others would be of use to an attacker with CAP_NET_ADMIN, which sessions may
 * have, and SO_LINGER would make the daemon wait when it closes a socket that was passed to it.
 */
static const struct {
	uint32_t level, name;
	const struct np_transport *transport; /* only if it is served; NULL: always */
	const struct np_engine *engine;       /* only if it is allowed; NULL: always */
} options[] = {
	{ SOL_SOCKET, SO_DEBUG, NULL, NULL },
	{ SOL_SOCKET, SO_DONTROUTE, NULL, NULL },
	{ SOL_SOCKET, SO_KEEPALIVE, NULL, NULL },
	{ SOL_SOCKET, SO_MAX_PACING_RATE, NULL, NULL },
	{ SOL_SOCKET, SO_PRIORITY, NULL, NULL },
	{ SOL_SOCKET, SO_RCVBUF, NULL, NULL },
	{ SOL_SOCKET, SO_REUSEADDR, NULL, NULL },
	{ SOL_SOCKET, SO_SNDBUF, NULL, NULL },
	{ SOL_SOCKET, SO_SNDTIMEO, NULL, NULL },
	{ SOL_SOCKET, SO_TIMESTAMPING, NULL, NULL },
	{ IPPROTO_IP, IP_MTU_DISCOVER, NULL, NULL },
	{ IPPROTO_IP, IP_MULTICAST_TTL, NULL, NULL },
	{ IPPROTO_IP, IP_PKTINFO, NULL, NULL },
	{ IPPROTO_IP, IP_TOS, NULL, NULL },
	{ IPPROTO_IPV6, IPV6_MTU_DISCOVER, NULL, NULL },
	{ IPPROTO_IPV6, IPV6_MULTICAST_HOPS, NULL, NULL },
	{ IPPROTO_IPV6, IPV6_RECVPKTINFO, NULL, NULL },
	{ IPPROTO_IPV6, IPV6_TCLASS, NULL, NULL },
	{ IPPROTO_IPV6, IPV6_V6ONLY, NULL, NULL },
	{ IPPROTO_TCP, TCP_CONGESTION, NULL, NULL },
	{ IPPROTO_TCP, TCP_CORK, NULL, NULL },
	{ IPPROTO_TCP, TCP_DEFER_ACCEPT, NULL, NULL },
	{ IPPROTO_TCP, TCP_FASTOPEN, NULL, NULL },
	{ IPPROTO_TCP, TCP_FASTOPEN_CONNECT, NULL, NULL },
	{ IPPROTO_TCP, TCP_KEEPCNT, NULL, NULL },
	{ IPPROTO_TCP, TCP_KEEPIDLE, NULL, NULL },
	{ IPPROTO_TCP, TCP_KEEPINTVL, NULL, NULL },
	{ IPPROTO_TCP, TCP_MAXSEG, NULL, NULL },
	{ IPPROTO_TCP, TCP_NODELAY, NULL, NULL },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT, NULL, NULL },
	{ NP_SOL_DCCP, NP_DCCP_SERVICE, &np_transport_dccp, NULL },
	{ NP_SOL_DCCP, NP_DCCP_CCID, &np_transport_dccp, NULL },
	{ NP_SOL_DCCP, NP_DCCP_TXQLEN, &np_transport_dccp, NULL },
	{ IPPROTO_SCTP, SCTP_MAXSEG, &np_transport_sctp, NULL },
	{ IPPROTO_SCTP, SCTP_NODELAY, &np_transport_sctp, NULL },
	{ IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, &np_transport_sctp, NULL },
	{ IPPROTO_TCP, TCP_ULP, &np_transport_tls, NULL },
	{ SOL_TLS, TLS_TX, &np_transport_tls, NULL },
	{ SOL_TLS, TLS_RX, &np_transport_tls, NULL },
	{ AF_VSOCK, SO_VM_SOCKETS_BUFFER_MAX_SIZE, &np_transport_vsock, NULL },
	{ AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, &np_transport_vsock, NULL },
	{ IPPROTO_UDP, UDP_GRO, NULL, &np_engine_segment },
	{ IPPROTO_UDP, UDP_SEGMENT, NULL, &np_engine_segment },
	{ SOL_SOCKET, SO_BUSY_POLL, NULL, &np_engine_spin },
	{ SOL_SOCKET, SO_PREFER_BUSY_POLL, NULL, &np_engine_spin },
	{ SOL_SOCKET, SO_ZEROCOPY, NULL, &np_engine_zerocopy },
};

static const struct rule fatal_if[] = {
	{ "unshare", { { 0, CLONE_NEWUSER, CLONE_NEWUSER } } },
	{ "unshare", { { 0, CLONE_NEWNS, CLONE_NEWNS } } },
	{ "unshare", { { 0, CLONE_NEWNET, CLONE_NEWNET } } },
	{ "unshare", { { 0, CLONE_NEWPID, CLONE_NEWPID } } },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Add a rule for a call by its number. Returns 0 or a negative errno, as libseccomp does. */
static int
add_by_number(scmp_filter_ctx ctx, uint32_t action, int call,
	      const struct condition when[CONDITIONS])
{
	struct scmp_arg_cmp cmp[CONDITIONS];
	unsigned count = 0;

	for (; count < CONDITIONS && when[count].mask != 0; count++) {
		cmp[count] = (struct scmp_arg_cmp){ .arg = when[count].arg,
						    .op = SCMP_CMP_MASKED_EQ,
						    .datum_a = when[count].mask,
						    .datum_b = when[count].value };
	}
	return seccomp_rule_add_array(ctx, action, call, count, cmp);
}

/* Add a rule for a call by its name, if this architecture has it. 0, or a negative errno. */
static int
add(scmp_filter_ctx ctx, uint32_t action, const struct rule *r)
{
	int call = seccomp_syscall_resolve_name(r->name);
	int rc = call == __NR_SCMP_ERROR ? 0 : add_by_number(ctx, action, call, r->when);

	/* Not on this architecture, or only by calls that the filter can't tell apart. */
	return rc == -EDOM || rc == -EINVAL ? 0 : rc;
}

/* Allow a call with the seal; if it forks, only with NS_FORK. By number: names may be unknown. */
static int
add_sealed(scmp_filter_ctx ctx, long call, bool forks)
{
	const struct condition sealed[CONDITIONS] = { { FIRST_WORD, ALL, seal_blanks[0] },
						      { FIRST_WORD + 1, ALL, seal_blanks[1] },
						      { NS_FORK_ARG, forks ? ALL : 0, NS_FORK } };

	return add_by_number(ctx, SCMP_ACT_ALLOW, (int)call, sealed);
}

/* Allow setsockopt(2) of that option. */
static int
add_option(scmp_filter_ctx ctx, uint32_t level, uint32_t name)
{
	const struct rule r = { "setsockopt", { { 1, ALL, level }, { 2, ALL, name } } };

	return add(ctx, SCMP_ACT_ALLOW, &r);
}

/* Allow socket(2) with these arguments. */
static int
add_socket(scmp_filter_ctx ctx, int family, int type, int protocol)
{
	const struct rule r = { "socket",
				{ { 0, ALL, (uint32_t)family },
				  { 1, TYPE, (uint32_t)type },
				  { 2, ALL, (uint32_t)protocol } } };
	int rc = add(ctx, SCMP_ACT_ALLOW, &r);

	return rc == -EEXIST ? 0 : rc; /* another transport has the same */
}

/* May sessions use the transport over that family? */
static bool
serves(const struct ns_sandbox *s, const struct np_transport *t, int family)
{
	return !np_lacks(s->limits.lacks, t, family);
}

/* Allow the sockets of a transport, as tests make them. 0, or a negative errno. */
static int
add_transport(scmp_filter_ctx ctx, const struct ns_sandbox *s, const struct np_transport *t)
{
	static const int of_ip[] = { AF_INET, AF_INET6 };
	int rc = 0;

	if (t->link || (t->admit == NP_ADMIT_HERE && (s->filter & NS_FILTER_UNIX) == 0)) {
		return 0; /* frames: opened before; UNIX: not for this client */
	}
	if (t->family > 0) {
		return serves(s, t, t->family)
			   ? add_socket(ctx, t->family, t->socktype, t->protocol)
			   : 0;
	}
	for (size_t i = 0; i < COUNT(of_ip) && rc == 0; i++) {
		if (serves(s, t, of_ip[i])) {
			rc = add_socket(ctx, of_ip[i], t->socktype, t->protocol);
		}
		/* Code that asks about interfaces and routes uses protocol 0. */
		if (rc == 0 && t == &np_transport_udp && serves(s, t, of_ip[i])) {
			rc = add_socket(ctx, of_ip[i], t->socktype, 0);
		}
	}
	return rc;
}

#define NAMES(list) .names = (list), .name_count = COUNT(list)
#define RULES(list) .rules = (list), .rule_count = COUNT(list)
#define IF(kind) .mask = (kind), .value = (kind)

/* Calls for filters of some kinds: (kind & mask) == value. */
static const struct list {
	unsigned mask, value;
	uint32_t action;
	const char *const *names;
	size_t name_count;
	const struct rule *rules;
	size_t rule_count;
} lists[] = {
	{ .action = SCMP_ACT_ALLOW, NAMES(allowed), RULES(allowed_if) },
	{ .action = SCMP_ACT_ALLOW,
	  IF(NS_FILTER_EVIDENCE),
	  NAMES(allowed_evidence),
	  RULES(allowed_evidence_if) },
	{ .action = SCMP_ACT_ALLOW, IF(NS_FILTER_UNIX), NAMES(allowed_unix) },
	{ .action = SCMP_ACT_ALLOW,
	  IF(NS_FILTER_URING),
	  NAMES(allowed_uring),
	  RULES(allowed_uring_if) },
	{ .action = SCMP_ACT_KILL_PROCESS, .mask = NS_FILTER_URING, NAMES(fatal_without_rings) },
	{ .action = SCMP_ACT_KILL_PROCESS, NAMES(fatal), RULES(fatal_if) },
};

/* Allow the socket options of the transports and engines that sessions may use. */
static int
add_options(scmp_filter_ctx ctx, const struct ns_sandbox *s)
{
	const struct np_limits *most = &s->limits;
	int rc = most->devices ? add_option(ctx, SOL_SOCKET, SO_BINDTODEVICE) : 0;

	for (size_t i = 0; i < COUNT(options) && rc == 0; i++) {
		const struct np_transport *t = options[i].transport;
		const struct np_engine *e = options[i].engine;

		/* An engine that spins needs --spin. */
		if ((t == NULL || serves(s, t, AF_INET) || serves(s, t, AF_INET6)) &&
		    (e == NULL || (np_limits_serve(most, e) && (!e->spins || most->spin > 0)))) {
			rc = add_option(ctx, options[i].level, options[i].name);
		}
	}
	return rc;
}

/* Add all rules of a filter. Returns 0 or a negative errno. */
static int
add_rules(scmp_filter_ctx ctx, const struct ns_sandbox *s)
{
	/* A filter can't see its flags, which are in memory; with ENOSYS, libc calls clone(2). */
	const struct rule clone3 = { .name = "clone3" };
	/* This socket needs a new filter of frames for each test (net/eth.c); others have none. */
	const struct rule attach = { "setsockopt",
				     { { 0, ALL, (uint32_t)s->link_fd },
				       { 1, ALL, SOL_SOCKET },
				       { 2, ALL, SO_ATTACH_FILTER } } };
	unsigned kind = s->filter | (s->urings > 0 ? NS_FILTER_URING : 0U);
	const struct np_transport *t;
	int rc = add_options(ctx, s);

	for (size_t i = 0; i < COUNT(lists) && rc == 0; i++) {
		const struct list *l = &lists[i];
		bool applies = (kind & l->mask) == l->value;

		for (size_t n = 0; n < l->name_count && rc == 0 && applies; n++) {
			rc = add(ctx, l->action, &(struct rule){ .name = l->names[n] });
		}
		for (size_t n = 0; n < l->rule_count && rc == 0 && applies; n++) {
			rc = add(ctx, l->action, &l->rules[n]);
		}
	}
	for (size_t i = 0; rc == 0 && (t = np_transport_at(i)) != NULL; i++) {
		rc = add_transport(ctx, s, t);
	}
	rc = rc == 0 && s->link_fd > 0 ? add(ctx, SCMP_ACT_ALLOW, &attach) : rc;
	rc = rc != 0 ? rc : add_sealed(ctx, SYS_clone, true);
	for (size_t i = 0; i < COUNT(landlock_calls) && rc == 0; i++) {
		rc = add_sealed(ctx, landlock_calls[i], false);
	}
	return rc != 0 ? rc : add(ctx, SCMP_ACT_ERRNO(ENOSYS), &clone3);
}

/* Not inlined, so that both calls below use the same registers and part of the stack. */
static long __attribute__((noinline))
call_sealed(const struct ns_seal *seal, long call, long a, long b, long c, long d)
{
	return syscall(call, a, b, c, d, (unsigned long)seal->word[0],
		       (unsigned long)seal->word[1]);
}

long
ns_sealed(const struct ns_seal *seal, long call, long a, long b, long c, long d)
{
	static const struct ns_seal none;
	long rc = call_sealed(seal, call, a, b, c, d);
	int error = errno;

	/* Overwrite the words in registers, and in the stack below. */
	(void)call_sealed(&none, SYS_getpid, 0, 0, 0, 0);
	errno = error;
	return rc;
}

const char *
ns_filter_lacks(void)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS; /* the newest one that the filters use */

	return NP_SANITIZED ? "built with a sanitizer"
	       : syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0
		   ? NULL
		   : "no system call filters (seccomp) in this kernel or container";
}

/* Allocate the program, which libseccomp writes to a descriptor. 0, or a negative errno. */
static int export(scmp_filter_ctx ctx, struct sock_fprog *program)
{
	int fd = memfd_create("netserver-filter", MFD_CLOEXEC);
	int rc = fd < 0 ? -errno : seccomp_export_bpf(ctx, fd);
	off_t end = rc == 0 ? lseek(fd, 0, SEEK_END) : 0;

	if (rc == 0) {
		program->filter = malloc((size_t)end);
		program->len = (unsigned short)((size_t)end / sizeof(struct sock_filter));
		rc = program->filter == NULL                             ? -ENOMEM
		     : pread(fd, program->filter, (size_t)end, 0) != end ? -EIO
									 : 0;
	}
	np_fds_close(fd);
	return rc;
}

int
ns_filter_make(const struct ns_sandbox *s, struct sock_fprog *program, struct np_err *err)
{
	scmp_filter_ctx ctx;
	int rc;

	if (ns_filter_lacks() != NULL) {
		return NP_OK;
	}
	ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	rc = ctx != NULL ? add_rules(ctx, s) : -ENOMEM;
	rc = rc == 0 ? export(ctx, program) : rc;
	seccomp_release(ctx);
	return rc == 0 ? NP_OK : np_fail(err, NP_ESYS, -rc, "make a filter of system calls");
}

/* Draw the seal's 64 random bits, and put them in place of the blanks. Returns 0 or an errno. */
static int
draw_seal(struct ns_seal *seal, const struct sock_fprog *program)
{
	if (getrandom(seal, sizeof(*seal), 0) != (ssize_t)sizeof(*seal)) {
		return EIO;
	}
	for (size_t i = 0; i < COUNT(seal_blanks); i++) {
		size_t found = 0;

		for (unsigned j = 0; j < program->len; j++) {
			struct sock_filter *at = &program->filter[j];

			if (at->code == (BPF_JMP | BPF_JEQ | BPF_K) && at->k == seal_blanks[i]) {
				at->k = seal->word[i];
				found++;
			}
		}
		if (found == 0) {
			return EINVAL;
		}
	}
	return 0;
}

int
ns_filter_install(struct sock_fprog *program, struct ns_seal *seal, struct np_err *err)
{
	int rc;

	if (program->len == 0) {
		return NP_OK;
	}
	rc = draw_seal(seal, program);
	/* Without this flag (Linux 4.17), kernels before 5.16 slow us down, against speculative
	 * stores. No foreign code runs here, and figures must be those of an unfiltered process. */
	if (rc == 0 &&
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		    program) != 0 &&
	    (errno != EINVAL || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) != 0)) {
		rc = errno;
	}
	explicit_bzero(program->filter, program->len * sizeof(struct sock_filter));
	return rc == 0 ? NP_OK : np_fail(err, NP_ESYS, rc, "install a filter of system calls");
}

/* Have these calls fail with EPERM if their first argument is fd. */
static int
forbid(scmp_filter_ctx ctx, const char *const *calls, size_t count, int fd)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++) {
		const struct rule r = { calls[i], { { 0, ALL, (uint32_t)fd } } };

		rc = add(ctx, SCMP_ACT_ERRNO(EPERM), &r);
	}
	return rc;
}

static const char *const reconnecting[] = { "bind", "connect", "listen" };

/* Forbid these calls on a descriptor, if it is a UNIX socket. */
static int
forbid_reconnecting_of(scmp_filter_ctx ctx, int fd)
{
	return np_family(np_sock_int(fd, SOL_SOCKET, SO_DOMAIN))->is_here
		   ? forbid(ctx, reconnecting, COUNT(reconnecting), fd)
		   : 0;
}

/*
 * UNIX sockets lead to the daemon and syslog. Connected to each other they could pass copies of
 * descriptors (unix(7)): none may be rebound. All are checked: some may exceed RLIMIT_NOFILE.
 */
static int
forbid_reconnecting(scmp_filter_ctx ctx)
{
	DIR *list = opendir("/proc/self/fd");
	const struct dirent *e;
	int rc = 0;

	if (list == NULL) {
		for (int fd = 0; fd < MOST_FDS && rc == 0; fd++) {
			rc = forbid_reconnecting_of(ctx, fd);
		}
		return rc;
	}
	while (rc == 0 && (e = readdir(list)) != NULL) {
		if (e->d_name[0] != '.') {
			rc = forbid_reconnecting_of(ctx, (int)strtol(e->d_name, NULL, 10));
		}
	}
	closedir(list);
	return rc;
}

int
ns_filter_socket(int fd, bool sends, struct np_err *err)
{
	/* Calls that send, or bind it elsewhere. The first two are left to a socket that sends. */
	static const char *const calls[] = { "sendto",   "send",   "sendmsg",  "sendmmsg",
					     "write",    "writev", "pwrite64", "pwritev",
					     "pwritev2", "bind",   "connect" };
	const size_t left_out = sends ? 2 : 0;
	static const uint32_t socketcalls[] = { SYS_BIND,   SYS_CONNECT, SYS_LISTEN,  SYS_SEND,
						SYS_SENDTO, SYS_SENDMSG, SYS_SENDMMSG };
	const struct rule spliced = { "splice", { { 2, ALL, (uint32_t)fd } } };
	scmp_filter_ctx ctx;
	int rc;

	if (ns_filter_lacks() != NULL) {
		return NP_OK;
	}
	ctx = seccomp_init(SCMP_ACT_ALLOW);
	if (ctx == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "make a filter for a packet socket");
	}
	rc = forbid(ctx, calls + left_out, COUNT(calls) - left_out, fd);
	rc = rc == 0 ? forbid_reconnecting(ctx) : rc;
	/* Forbid socketcall(2), which hides the descriptor; we avoid it (base/multiplex.c). */
	for (size_t i = 0; i < COUNT(socketcalls) && rc == 0; i++) {
		const struct rule r = { "socketcall", { { 0, ALL, socketcalls[i] } } };

		rc = add(ctx, SCMP_ACT_ERRNO(EPERM), &r);
	}
	rc = rc == 0 ? add(ctx, SCMP_ACT_ERRNO(EPERM), &spliced) : rc;
	rc = rc == 0 ? seccomp_load(ctx) : rc;
	seccomp_release(ctx);
	return rc == 0 ? NP_OK : np_fail(err, NP_ESYS, -rc, "install a filter for a packet socket");
}
