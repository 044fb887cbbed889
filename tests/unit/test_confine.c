/*
 * What the daemon and its sessions can't do any more, and what they still can: each case is a child
 * that confines itself and tries.
 */
#include "netserver/confine.h"
#include "netserver/filter.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "bench/bench.h"
#include "bench/lacks.h"
#include "net/eth.h"
#include "net/sock.h"
#include "run/drive.h"
#include "run/server.h"
#include "run/team.h"
#include "sys/cpu.h"
#include "sys/ethtool.h"
#include "sys/host.h"
#include "sys/moved.h"
#include "tests/lib/check.h"
#include "tests/lib/deadly.h"
#include "tests/lib/sockets.h"

#ifndef IPPROTO_L2TP
#define IPPROTO_L2TP 115
#endif
#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum { MIB = 1 << 20 };

/* How a child's attempt ended, beside an errno and death by a signal. */
enum { DONE = 0, NOT_CONFINED = 200, DENIED = 300 /* EACCES or EPERM */ };

struct attempt {
	struct ns_sandbox box;
	const char *user; /* of the daemon, before; "" leaves that out */
	int (*try)(void); /* returns 0, or the errno */
	bool granted; /* a test of as many threads and flows as the limits allow, before it; user ""
		       */
};

static int
outcome(const struct attempt *a)
{
	struct np_err err = { .code = NP_OK };
	int pair[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		const char *user = a->user != NULL && a->user[0] == '\0' ? NULL : a->user;
		bool daemon = a->user == NULL || a->user[0] != '\0';

		if ((daemon && ns_confine_daemon(user, false, &err) != NP_OK) ||
		    ns_confine_session(&a->box, &err) != NP_OK) {
			fprintf(stderr, "%s\n", err.msg);
			_exit(NOT_CONFINED);
		}
		if (a->granted &&
		    (send(pair[1], &byte, 1, 0) != 1 || recv(pair[1], &byte, 1, 0) != 1)) {
			_exit(NOT_CONFINED);
		}
		_exit(a->try());
	}
	close(pair[1]);
	if (a->granted && recv(pair[0], &byte, 1, 0) == 1) {
		ns_confine_descriptors(pid, NP_THREADS_MAX, NP_FLOWS_MAX);
		(void)send(pair[0], &byte, 1, MSG_NOSIGNAL);
	}
	close(pair[0]);
	return ended(pid);
}

static void
needs(bool landlock, bool seccomp)
{
	char lacks[NS_LACKS];

	ns_confine_lacks(lacks);
	skip_if((landlock && ns_landlock_version(NULL) == 0) ||
		    (seccomp && ns_filter_lacks() != NULL),
		"%s", lacks);
}

static void
needs_root(void)
{
	skip_if(geteuid() != 0, "not root");
}

/* An attempt that is one expression, and one that is one call. */
#define DO(name, expression)                                                                       \
	static int name(void)                                                                      \
	{                                                                                          \
		return expression;                                                                 \
	}
#define TRY(name, call) DO(name, tried(call))
static int
tried(long rc)
{
	return rc < 0 ? errno : 0;
}

/*
 * All of these attempts end so within that sandbox. A letter for each user that the daemon is
 * before: d what it becomes by itself, r root, n nobody, s none: there is no daemon.
 */
#define assert_each(want, box, users, ...)                                                         \
	each_ends(want, box, users, (int (*const[])(void)){ __VA_ARGS__, NULL }, #__VA_ARGS__)
static void
each_ends(int want, struct ns_sandbox box, const char *users, int (*const tries[])(void),
	  const char *names)
{
	for (; *users != '\0'; users++) {
		struct attempt a = { .box = box,
				     .user = *users == 'd'   ? NULL
					     : *users == 'r' ? "root"
					     : *users == 'n' ? "nobody"
							     : "" };

		if (geteuid() != 0 && (*users == 'r' || *users == 'n')) {
			continue;
		}
		for (int i = 0; tries[i] != NULL; i++) {
			int rc;

			a.try = tries[i];
			rc = outcome(&a);
			fail_if(want == DENIED ? rc != EACCES && rc != EPERM : rc != want,
				"attempt %d of %s, user %c: %d", i + 1, names, *users, rc);
		}
	}
}

static const struct ns_sandbox plain = { 0 }, of_16_mib = { .limits.bytes = 16 * MIB };

static long
mapped(int protection, int flags)
{
	void *p = mmap(NULL, 4096, protection, flags | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? -1 : 0;
}

/* ---- The daemon ---- */

static int
look_for_no_way_back(void)
{
	uid_t r, e, s;
	gid_t groups[64];
	int n = getgroups(64, groups);

	getresuid(&r, &e, &s);
	if (r == 0 || r != e || e != s) {
		return 1;
	}
	getresgid(&r, &e, &s);
	if (r == 0 || r != e || e != s || n < 0) {
		return 2;
	}
	for (int i = 0; i < n; i++) {
		if (groups[i] == 0) {
			return 3;
		}
	}
	if (setuid(0) == 0 || seteuid(0) == 0 || setgid(0) == 0 || setgroups(0, NULL) == 0) {
		return 4;
	}
	return 0;
}

/* In a child: the daemon's part, then look. */
static int
daemon_outcome(const char *user, int (*look)(void), char *msg, size_t size)
{
	int told[2];
	pid_t pid;
	ssize_t n;

	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct np_err err;

		if (ns_confine_daemon(user, false, &err) != NP_OK) {
			(void)!write(told[1], err.msg, strlen(err.msg));
			_exit(NOT_CONFINED + (int)err.code);
		}
		_exit(look());
	}
	close(told[1]);
	n = read(told[0], msg, size - 1);
	msg[n > 0 ? n : 0] = '\0';
	close(told[0]);
	return ended(pid);
}

static void
assert_daemon(const char *user, int (*look)(void))
{
	char msg[512];
	int rc = daemon_outcome(user, look, msg, sizeof(msg));

	fail_if(rc != 0, "user %s: %d %s", user, rc, msg);
}

TEST(a_daemon_of_roots_becomes_somebody_for_good)
{
	static const char *const users[] = { NULL, "nobody", "65534", "nobody:65534", "1234:4321" };

	needs_root();
	for (size_t i = 0; i < LEN(users); i++) {
		assert_daemon(users[i], look_for_no_way_back);
	}
}

static int
is_1234_4321(void)
{
	gid_t groups[4];

	return getuid() == 1234 && getgid() == 4321 && getgroups(4, groups) == 1 &&
		       groups[0] == 4321
		   ? 0
		   : 1;
}

TEST(a_user_and_group_may_be_numbers)
{
	needs_root();
	assert_daemon("1234:4321", is_1234_4321);
}

static int
never(void)
{
	return 99;
}

TEST(a_user_that_there_is_not_is_a_wrong_option)
{
	static const struct {
		const char *user, *says;
	} cases[] = {
		{ "no-such-user", "there is no user no-such-user" },
		{ "", "names no user" },
		{ ":65534", "names no user" },
		{ "nobody:no-such-group", "there is no group no-such-group" },
		{ "nobody:", "there is no group " },
		{ "-1", "there is no user -1" },
		{ "4294967295:1", "there is no user 4294967295" },
		{ "nobody:4294967295", "there is no group 4294967295" },
		{ "3999999999", "try 3999999999:GROUP" },
	};
	char msg[512];

	for (size_t i = 0; i < LEN(cases); i++) {
		assert_int_equal(daemon_outcome(cases[i].user, never, msg, sizeof(msg)),
				 NOT_CONFINED + (int)NP_EUSAGE);
		assert_has(msg, cases[i].says);
	}
}

static uint64_t
capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[2];

	syscall(SYS_capget, &head, have);
	return have[0].permitted | (uint64_t)have[1].permitted << 32 | have[0].effective |
	       (uint64_t)have[1].effective << 32 | have[0].inheritable;
}

static uint64_t
in_force(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[2];

	syscall(SYS_capget, &head, have);
	return have[0].effective | (uint64_t)have[1].effective << 32;
}

static const uint64_t useful = UINT64_C(1) << CAP_NET_BIND_SERVICE | UINT64_C(1) << CAP_NET_ADMIN;

/* By the bare call: libc would change threads of a sanitizer's, too, which kept what they had. */
static int
look_at_root(void)
{
	if (geteuid() != 0 || (capabilities() & ~useful) != 0) {
		return 1;
	}
	if (syscall(SYS_setuid, 65534) == 0 ||
	    prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) == 1) {
		return 2;
	}
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 3;
}

TEST(root_stays_root_but_for_its_capabilities)
{
	needs_root();
	assert_daemon("root", look_at_root);
}

static int
look_at_seals(void)
{
	struct rlimit core;

	return getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_max != 0       ? 1
	       : prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1                  ? 2
	       : prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != (NP_SANITIZED ? 1 : 0) ? 3
	       : (capabilities() & ~useful) != 0                              ? 4
									      : 0;
}

TEST(whoever_runs_it_has_no_new_privileges_and_no_cores)
{
	assert_daemon(NULL, look_at_seals);
}

/* Another user than root has no other to become, but may name itself. */
static int
as_another_user(void)
{
	struct np_err err;

	if (ns_confine_daemon("root", false, &err) != NP_EUSAGE ||
	    ns_confine_daemon(NULL, false, &err) != NP_OK) {
		return 1;
	}
	return ns_confine_daemon("nobody", false, &err) == NP_OK && geteuid() == 65534 ? 0 : 2;
}

TEST(only_root_becomes_another_user)
{
	needs_root();
	assert_daemon("nobody", as_another_user);
}

/* Root of a user namespace in which there is nobody else. */
static int
in_a_user_namespace(void)
{
	struct np_err err;
	char map[32];
	int n = snprintf(map, sizeof(map), "0 %u 1", (unsigned)geteuid()), fd;

	if (unshare(CLONE_NEWUSER) != 0) {
		return 77;
	}
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, map, (size_t)n) != n) {
		return 77;
	}
	close(fd);
	if (ns_confine_daemon("1234:4321", false, &err) == NP_OK) {
		return 1;
	}
	return ns_confine_daemon(NULL, false, &err) == NP_OK && (capabilities() & ~useful) == 0 ? 0
												: 2;
}

TEST(root_of_a_namespace_without_nobody_stays)
{
	assert_in_child(in_a_user_namespace(), "no user namespaces");
}

/* ---- What a session can't do: files ---- */

TRY(open_passwd, open("/etc/passwd", O_RDONLY | O_CLOEXEC))
TRY(list_root, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC))
TRY(make_a_file, open("/tmp/netperf-test-confine", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600))

static int
make_a_directory(void)
{
	char path[] = "/tmp/netperf-XXXXXX";

	if (mkdtemp(path) == NULL) {
		return errno;
	}
	rmdir(path);
	return 0;
}

TEST(files_are_out_of_reach)
{
	needs(true, false);
	assert_each(DENIED, plain, "d", open_passwd, list_root, make_a_file, make_a_directory);
}

/* A directory with a file in it that anybody may read; another one lies outside. */
struct place {
	char path[32], inside[40], outside[40];
	int fd;
};

static int
make_readable(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	return fd >= 0 && write(fd, "text", 4) == 4 && close(fd) == 0 ? 0 : -1;
}

static int
make_place(void **state)
{
	static struct place p;

	strcpy(p.path, "/tmp/netperf-test-XXXXXX");
	if (mkdtemp(p.path) == NULL || chmod(p.path, 0755) != 0) {
		return -1;
	}
	snprintf(p.inside, sizeof(p.inside), "%s/inside", p.path);
	snprintf(p.outside, sizeof(p.outside), "%s.o", p.path);
	p.fd = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &p;
	return p.fd >= 0 ? make_readable(p.inside) | make_readable(p.outside) : -1;
}

static int
remove_place(void **state)
{
	struct place *p = *state;

	close(p->fd);
	unlink(p->inside);
	unlink(p->outside);
	return rmdir(p->path);
}

/* What the attempts below look at; a child's are copies. */
static struct place here;

static int
read_inside(void)
{
	char text[8];
	int fd = openat(here.fd, "inside", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? errno : read(fd, text, sizeof(text)) == 4 ? 0 : EIO;
}

TRY(read_outside, open(here.outside, O_RDONLY | O_CLOEXEC))
TRY(write_inside, openat(here.fd, "inside", O_WRONLY | O_CLOEXEC))

static int
climb_out(void)
{
	char path[48];

	snprintf(path, sizeof(path), "..%s", strrchr(here.outside, '/'));
	return tried(openat(here.fd, path, O_RDONLY | O_CLOEXEC));
}

TEST_WITH(only_the_fill_directory_is_read, make_place, remove_place)
{
	struct ns_sandbox fills;

	needs(true, false);
	here = *(struct place *)*state;
	fills = (struct ns_sandbox){ .fill_dir = here.fd };
	assert_each(0, fills, "d", read_inside);
	assert_each(EACCES, fills, "d", read_outside, climb_out, write_inside);
	assert_each(EACCES, plain, "d", read_inside);
}

/* ---- What a session can't do: system calls ---- */

static int
run_a_program(void)
{
	char *const args[] = { NULL };

	return tried(execve("/bin/true", args, args));
}

TRY(trace_itself, ptrace(PTRACE_TRACEME, 0, NULL, NULL))
TRY(become_root, setuid(0))
TRY(look_into_the_parent, syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0))
TRY(mount_something, syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL))
TRY(make_a_user_namespace, unshare(CLONE_NEWUSER))
TRY(make_a_network_namespace, unshare(CLONE_NEWNET | CLONE_FILES))
TRY(load_a_program_into_the_kernel, syscall(SYS_bpf, 0, NULL, 0))

static int
make_a_uring(void)
{
#ifdef SYS_io_uring_setup
	return tried(syscall(SYS_io_uring_setup, 1, NULL));
#else
	return tried(syscall(SYS_bpf, 0, NULL, 0));
#endif
}

TRY(set_the_clock, syscall(SYS_clock_settime, CLOCK_REALTIME, NULL))

TEST(what_is_no_accident_ends_the_session)
{
	needs(false, true);
	assert_each(-SIGSYS, plain, "d", run_a_program, trace_itself, become_root,
		    look_into_the_parent, mount_something, make_a_user_namespace,
		    make_a_network_namespace, load_a_program_into_the_kernel, make_a_uring,
		    set_the_clock);
}

TRY(open_packets, socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0))
TRY(open_raw, socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP))
TRY(open_netlink, socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0))
TRY(open_unix, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))
TRY(open_l2tp, socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_L2TP))
TRY(open_icmp, socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP))
TRY(open_another_of_unix, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 7))

/* Of a program of BPF that the kernel would make, and free at its end. One is tried. */
static int
attach_a_filter(void)
{
	struct sock_filter all[] = { { .code = BPF_RET | BPF_K, .k = UINT32_MAX } };
	struct sock_fprog prog = { .len = 1, .filter = all };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);

	return fd < 0 ? ENOSYS
		      : tried(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
}

static int
make_a_process(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		_exit(0);
	}
	return tried(pid);
}

TRY(signal_the_parent, kill(getppid(), 0))
TRY(signal_the_parent_as_a_thread, syscall(SYS_tgkill, getppid(), getppid(), SIGTERM))

/* Which is ignored wherever it is not handled; landlock keeps it from others where it can. */
TRY(kick_the_parent, syscall(SYS_tgkill, getppid(), getppid(), NP_KICK_SIGNAL))

TRY(map_code, mapped(PROT_READ | PROT_EXEC, MAP_PRIVATE))
TRY(map_uncounted_memory, mapped(PROT_READ | PROT_WRITE, MAP_SHARED))

static int
make_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? 0 : tried(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

/* Pages of such a mapping count as stack, wherever it is. */
TRY(map_a_stack, mapped(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_GROWSDOWN))

/* Whoever closes such a socket last waits; it is whom it was passed to. */
static int
linger(void)
{
	const struct linger l = { .l_onoff = 1, .l_linger = 60 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);

	return fd < 0 ? ENOSYS : tried(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
}

TRY(change_what_others_write_by, fcntl(2, F_SETFL, O_RDWR | O_NONBLOCK))
TRY(make_a_file_in_memory, memfd_create("x", MFD_CLOEXEC))

static int
raise_a_limit(void)
{
	const struct rlimit l = { 64, 64 };

	return tried(setrlimit(RLIMIT_NOFILE, &l));
}

static int
fake_input(void)
{
	char c = 'x';

	return tried(ioctl(0, TIOCSTI, &c));
}

TRY(make_an_empty_file, open("/tmp/netperf-test-confine", O_RDONLY | O_CREAT | O_CLOEXEC, 0600))

TEST(other_calls_are_refused)
{
	needs(false, true);
	assert_each(EPERM, plain, "ds", open_packets, open_raw, open_netlink, open_unix, open_l2tp,
		    open_icmp, open_another_of_unix, attach_a_filter, make_a_process,
		    signal_the_parent, signal_the_parent_as_a_thread, map_code, make_code,
		    map_uncounted_memory, map_a_stack, linger, change_what_others_write_by,
		    make_a_file_in_memory, raise_a_limit, fake_input, make_an_empty_file);
}

/* An option of a socket of UDP, which is 1. */
static int
set(int level, int name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP), on = 1;

	return fd < 0 ? ENOSYS : tried(setsockopt(fd, level, name, &on, sizeof(on)));
}

TRY(open_sctp, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP))
TRY(open_udplite, socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDPLITE))
TRY(open_udp6, socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP))
TRY(open_vsock, socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0))

DO(set_ulp, set(IPPROTO_TCP, TCP_ULP))
DO(set_segment, set(IPPROTO_UDP, UDP_SEGMENT))

/* Its transports and engines say what a session may ask of the kernel. */
TEST(what_only_some_tests_need_others_have_not)
{
	static int (*const attempts[])(void) = { open_sctp,  open_udplite, open_udp6,
						 open_vsock, set_ulp,      set_segment };
	const struct np_limits none = { .lacks = UINT64_MAX & ~np_lacks_bit(2, false), /* UDP */
					.engines = 1 };                                /* sync */
	const struct np_limits all = { .lacks = 0 };

	needs(false, true);
	assert_ptr_equal(np_transport_at(2), &np_transport_udp);
	for (size_t i = 0; i < LEN(attempts); i++) {
		struct attempt a = { .try = attempts[i], .box.limits = none };

		assert_int_equal(outcome(&a), EPERM);
		a.box.limits = all;
		assert_int_not_equal(outcome(&a), EPERM);
	}
}

TEST(others_are_not_kicked)
{
	needs(true, true);
	skip_if(ns_landlock_version(NULL) < 6, "landlock of this kernel knows nothing of signals");
	assert_each(EPERM, plain, "d", kick_the_parent);
}

/* ---- What a session can't do: take too much ---- */

/* A compiler that saw what becomes of it would do without the memory. */
static void *
get(size_t bytes)
{
	void *volatile p = malloc(bytes);

	return p;
}

/* Touches what it gets. */
static int
take(size_t bytes)
{
	char *p = get(bytes);

	if (p == NULL) {
		return errno;
	}
	memset(p, 1, bytes);
	return p[bytes / 2] == 1 ? 0 : EIO;
}

DO(take_14, take(14 * MIB))
DO(take_20, take(20 * MIB))

/*
 * What one test had is there for the next: libc would keep the second buffer, below something small
 * that stays, for others of its size.
 */
static int
take_again(void)
{
	free(get(11 * MIB));
	for (int i = 0; i < 3; i++) {
		char *p = get(10 * MIB), *stays = get(100000);

		if (p == NULL || stays == NULL) {
			return ENOMEM;
		}
		memset(stays, 1, 100000);
		free(p);
	}
	return take(14 * MIB);
}

/* The first thread's stack is there already, moved and grown as far as it gets. */
static int
stretch_the_stack(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char below[3 * (64 << 10)]; /* three of the largest pages that there are */
	uintptr_t part = ((uintptr_t)below / page + 1) * page;

	below[0] = 1;
	return mremap((void *)part, page, (size_t)MIB << 10, MREMAP_MAYMOVE) == MAP_FAILED ? errno
											   : 0;
}

static int
grow_the_stack(void)
{
	struct rlimit l;

	return getrlimit(RLIMIT_STACK, &l) == 0 && l.rlim_max <= 4 * MIB ? 0 : 1;
}

TEST(stacks_count_too)
{
	skip_if(NP_SANITIZED, "built with a sanitizer");
	assert_each(ENOMEM, of_16_mib, "d", stretch_the_stack);
	assert_each(0, of_16_mib, "d", grow_the_stack);
}

TEST(memory_is_what_was_granted)
{
	skip_if(NP_SANITIZED, "built with a sanitizer");
	assert_each(0, of_16_mib, "d", take_14, take_again);
	assert_each(ENOMEM, of_16_mib, "d", take_20);
	assert_each(0, plain, "d", take_20); /* no limit */
}

static int
open_sockets(int count)
{
	for (int i = 0; i < count; i++) {
		if (socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) < 0) {
			return errno;
		}
	}
	return 0;
}

static int
open_many(void)
{
	return open_sockets(200 + NP_THREADS_MAX);
}

static int
open_more(void)
{
	return open_sockets(200 + NS_THREAD_FDS * NP_THREADS_MAX);
}

TEST(descriptors_are_few)
{
	struct attempt a = { .try = open_many, .user = "", .box.limits.flows = 1, .granted = true };

	assert_int_equal(outcome(&a), 0); /* threads may share a table */
	a.try = open_more;
	assert_int_equal(outcome(&a), EMFILE);
	a = (struct attempt){ .try = open_many, .box.limits.flows = NP_FLOWS_MAX };
	assert_int_equal(outcome(&a), EMFILE); /* before a test is granted */
	a.user = "";
	a.box.alone = true; /* started by inetd */
	assert_int_equal(outcome(&a), 0);
}

/* A test has as many data connections as the daemon allows, whose events it waits for. */
static int
open_what_flows_take(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int events = epoll_create1(EPOLL_CLOEXEC), stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), on = 1;

	if (fd < 0 || ioctl(fd, FIONBIO, &on) != 0) {
		return errno;
	}
	if (events < 0 || stop < 0 || epoll_ctl(events, EPOLL_CTL_ADD, stop, &event) != 0 ||
	    eventfd_write(stop, 1) != 0 || epoll_wait(events, &event, 1, 1000) != 1 ||
	    epoll_pwait(events, &event, 1, 1000, NULL) != 1) {
		return errno;
	}
	return open_many();
}

TEST(descriptors_are_as_many_as_flows_take)
{
	struct attempt a = {
		.try = open_what_flows_take, .user = "", .box.limits.flows = 100, .granted = true
	};

	assert_int_equal(outcome(&a), 0);
	a.box.limits.flows = 0; /* no limit */
	assert_int_equal(outcome(&a), 0);
}

/* ---- What a session can do ---- */

static int
read_processors(void)
{
	struct np_cpu_times *t = np_cpu_read("");

	free(t);
	return t != NULL ? 0 : 1;
}

static int
count_processors(void)
{
	cpu_set_t set;

	/* As many as before, which the kernel's list in /sys says; 1 is libc's guess without it. */
	if (sched_getaffinity(0, sizeof(set), &set) != 0) {
		return errno;
	}
	return np_cpu_count() >= CPU_COUNT(&set) ? 0 : 1;
}

/* Without it libc would look into /proc/stat, a long file on a large machine. */
static int
read_the_list_of_processors(void)
{
	int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);

	return fd >= 0 || errno == ENOENT ? 0 : errno;
}

static int
bind_to_a_processor(void)
{
	cpu_set_t set;
	struct np_err err;

	if (sched_getaffinity(0, sizeof(set), &set) != 0) {
		return errno;
	}
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set)) {
			return np_bind_cpu(cpu, &err) == NP_OK ? 0 : 1;
		}
	}
	return 2;
}

static void *
send_a_word(void *arg)
{
	const int *fd = arg;

	/* Half of np_fds_unshare(), which leaves it at that where it can't be had. */
	if (unshare(CLONE_FILES) != 0) {
		return NULL;
	}
	return send(*fd, "word", 4, MSG_NOSIGNAL) == 4 ? arg : NULL;
}

/* Over loopback, from a thread that a signal could reach. */
static int
send_to_itself(int family, int socktype)
{
	struct np_addr at = loopback(family, 0);
	int protocol = socktype == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
	int listener = socket(family, socktype | SOCK_CLOEXEC, protocol), client, server = listener;
	pthread_t thread;
	void *sent = NULL;
	char word[8];
	struct np_err err;

	np_drive_prepare();
	if (listener < 0 || bind(listener, (struct sockaddr *)&at.sa, at.len) != 0 ||
	    np_sock_local(listener, &at, &err) != NP_OK ||
	    (socktype == SOCK_STREAM && listen(listener, 1) != 0)) {
		return errno;
	}
	client = socket(family, socktype | SOCK_CLOEXEC, protocol);
	if (client < 0 || connect(client, (struct sockaddr *)&at.sa, at.len) != 0) {
		return errno;
	}
	if (socktype == SOCK_STREAM) {
		server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	}
	if (pthread_create(&thread, NULL, send_a_word, &client) != 0) {
		return 101;
	}
	if (pthread_kill(thread, NP_KICK_SIGNAL) != 0) {
		return 103;
	}
	pthread_join(thread, &sent);
	return sent != NULL && recv(server, word, sizeof(word), 0) == 4 ? 0 : 102;
}

DO(tcp, send_to_itself(AF_INET, SOCK_STREAM))
DO(udp, send_to_itself(AF_INET, SOCK_DGRAM))
DO(udp6, send_to_itself(AF_INET6, SOCK_DGRAM))
TRY(open_null, open("/dev/null", O_WRONLY | O_CLOEXEC))

TEST(tests_find_what_they_need)
{
	const struct ns_sandbox of_4_mib = { .limits.bytes = 4 * MIB };

	assert_each(0, of_4_mib, "drs", read_processors, count_processors,
		    read_the_list_of_processors, bind_to_a_processor, tcp, udp, open_null);
	if (has_family(AF_INET6)) {
		assert_each(0, of_4_mib, "drs", udp6);
	}
}

/* A socket with a name in a fresh directory, and back to nothing. */
static int
name_a_socket(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "/tmp/netperf-XXXXXX" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *end = at.sun_path + strlen(at.sun_path);
	int rc = 0;

	if (fd < 0 || mkdtemp(at.sun_path) == NULL) {
		return errno;
	}
	strcpy(end, "/s");
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || chmod(at.sun_path, 0666) != 0 ||
	    unlink(at.sun_path) != 0) {
		rc = errno;
	}
	*end = '\0';
	return rmdir(at.sun_path) == 0 ? rc : errno;
}

TEST(unix_tests_make_sockets_in_tmp_and_nothing_else)
{
	const struct ns_sandbox unix_tests = { .filter = NS_FILTER_UNIX };

	assert_each(0, unix_tests, "d", name_a_socket);
	needs(true, true);
	assert_each(EPERM, unix_tests, "d", make_a_file, open_raw);
	assert_each(EACCES, unix_tests, "d", open_passwd);
}

/* ---- What evidence takes ---- */

static int
gather_counters(void)
{
	struct np_bag *b = np_bag_new();
	struct np_bag_item it;
	int rc = 0;

	np_moved_end(np_moved_begin("", "lo"), b);
	for (size_t i = 0; np_bag_at(b, i, &it); i++) {
		if (it.kind == NP_BAG_UNREAD) {
			fprintf(stderr, "%s: %s\n", it.name, it.text);
			rc = 1;
		}
	}
	return np_bag_count(b) == 0 ? 2 : rc;
}

/* But for the names of other processes, nothing is refused; some machines lack this or that. */
static int
gather_facts(void)
{
	struct np_bag *b = np_bag_new();
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(1) };
	char device[IF_NAMESIZE];
	struct np_bag_item it;
	struct np_addr a;
	int rc = 0;

	np_addr_from(&a, (const struct sockaddr *)&at);
	np_addr_device(&a, device); /* by netlink: no such address */
	np_host_facts("", "lo", -1, b);
	for (size_t i = 0; np_bag_at(b, i, &it); i++) {
		if (it.kind == NP_BAG_UNREAD && strcmp(it.name, "host.irqbalance") != 0 &&
		    (strstr(it.text, strerror(EPERM)) != NULL ||
		     strstr(it.text, strerror(EACCES)) != NULL)) {
			fprintf(stderr, "%s: %s\n", it.name, it.text);
			rc = 1;
		}
	}
	return np_bag_number(b, "host.nic.mtu") > 0 && np_bag_number(b, "host.cpu.count") > 0 ? rc
											      : 2;
}

TRY(read_own_delay, open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC))
TRY(read_counters, open("/proc/net/snmp", O_RDONLY | O_CLOEXEC))

TEST(evidence_is_gathered_where_that_was_asked_for)
{
	struct ns_sandbox box = { .limits.bytes = 4 * MIB, .filter = NS_FILTER_EVIDENCE };

	for (int i = 0; i < 2; i++, box.filter |= NS_FILTER_UNIX) {
		assert_each(0, box, "drs", gather_counters, gather_facts, read_own_delay,
			    read_counters);
	}
}

/* What the kernel knows of names goes when memory is short; by root's hand here, in another
 * process.
 */
TEST(what_may_be_read_stays_readable)
{
	static int (*const attempts[])(void) = { read_processors, read_counters, read_own_delay };
	struct ns_sandbox box = { .filter = NS_FILTER_EVIDENCE };
	int there[2], back[2];
	char word = 0;
	pid_t pid;

	needs_root();
	needs(true, false);
	assert_int_equal(pipe2(there, O_CLOEXEC) | pipe2(back, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct np_err err;
		int rc = ns_confine_session(&box, &err) == NP_OK ? 0 : NOT_CONFINED;

		(void)!write(back[1], &word, 1);
		(void)!read(there[0], &word, 1);
		for (size_t i = 0; i < LEN(attempts) && rc == 0; i++) {
			rc = attempts[i]();
		}
		_exit(rc);
	}
	assert_int_equal(read(back[0], &word, 1), 1);
	{
		FREED_BY(close_fd) int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

		if (fd < 0 || write(fd, "2", 1) != 1) {
			printf("SKIP: no drop_caches here\n");
		}
	}
	assert_int_equal(write(there[1], &word, 1), 1);
	assert_int_equal(ended(pid), 0);
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
}

static int
ask_ethtool(void)
{
	struct ethtool_drvinfo d = { .cmd = ETHTOOL_GDRVINFO };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? errno : -np_ethtool_ask(fd, "lo", &d);
}

TEST(other_sessions_gather_none)
{
	needs(true, true);
	assert_each(EACCES, plain, "d", read_counters, read_own_delay);
	assert_each(EPERM, plain, "d", open_netlink, ask_ethtool);
}

/* As a session that is not itself any more would: take what there is, then change something. */
static void
take_every_capability(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[2];

	syscall(SYS_capget, &head, have);
	have[0].effective = have[0].permitted;
	have[1].effective = have[1].permitted;
	syscall(SYS_capset, &head, have);
}

/* lo's MTU as it is, so that the machine stays as it was, should it work. */
static int
change_by_netlink(void)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg body;
		struct rtattr mtu;
		uint32_t value;
	} q = { .head = { .nlmsg_len = sizeof(q),
			  .nlmsg_type = RTM_NEWLINK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.body = { .ifi_index = 1 },
		.mtu = { .rta_type = IFLA_MTU, .rta_len = RTA_LENGTH(4) },
		.value = 65536 };
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char room[512];
	} reply;
	int fd;

	take_every_capability();
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0 || send(fd, &q, sizeof(q), 0) != (ssize_t)sizeof(q) ||
	    recv(fd, &reply, sizeof(reply), 0) < (ssize_t)sizeof(reply.head)) {
		return errno;
	}
	return reply.head.nlmsg_type == NLMSG_ERROR ? -reply.error.error : 0;
}

static int
change_by_ethtool(void)
{
	struct ethtool_value v = { .cmd = ETHTOOL_SGRO, .data = 1 };
	struct ifreq ifr;
	int fd;

	take_every_capability();
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memset(&ifr, 0, sizeof(ifr));
	strcpy(ifr.ifr_name, "lo");
	ifr.ifr_data = (void *)&v;
	return tried(ioctl(fd, SIOCETHTOOL, &ifr));
}

static int
take_the_link_down(void)
{
	struct ifreq ifr;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	take_every_capability();
	memset(&ifr, 0, sizeof(ifr));
	strcpy(ifr.ifr_name, "lo");
	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	return tried(ioctl(fd, SIOCSIFFLAGS, &ifr));
}

TRY(open_another_netlink, socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC))

/* By the one call for all that some architectures have, whose arguments no filter sees. */
static int
open_another_netlink_by_socketcall(void)
{
#ifdef SYS_socketcall
	unsigned long args[] = { AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC };

	return tried((int)syscall(SYS_socketcall, SYS_SOCKET, args));
#else
	return open_another_netlink();
#endif
}

TRY(set_a_sysctl, open("/proc/sys/net/ipv4/tcp_sack", O_WRONLY | O_CLOEXEC))
TRY(read_own_words, open("/proc/self/environ", O_RDONLY | O_CLOEXEC))
TRY(list_processes, open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC))
TRY(read_another_process, open("/proc/1/comm", O_RDONLY | O_CLOEXEC))

static int
set_any_option(void)
{
	const int mark = 1;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	take_every_capability();
	return tried(setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)));
}

TEST(who_gathers_evidence_changes_nothing)
{
	const struct ns_sandbox gathers = { .filter = NS_FILTER_EVIDENCE };

	needs(true, true);
	assert_each(DENIED, gathers, "drns", change_by_netlink, change_by_ethtool,
		    take_the_link_down, open_another_netlink, set_a_sysctl, read_own_words,
		    list_processes, read_another_process, open_passwd, list_root, make_a_file,
		    set_any_option, open_another_netlink_by_socketcall);
}

static int
confine_twice(void)
{
	const struct ns_sandbox box = { .limits.bytes = MIB };
	struct np_err err;

	return ns_confine_session(&box, &err) == NP_OK ? 1 : err.code == NP_ESYS ? 0 : 2;
}

/* A fault is reported and not ignored. */
TEST(what_the_kernel_refuses_is_an_error)
{
	needs(false, true);
	assert_each(0, plain, "d", confine_twice);
}

TEST(the_means_are_told)
{
	char lacks[NS_LACKS];

	ns_confine_lacks(lacks);
	assert_int_equal(lacks[0] == '\0',
			 ns_landlock_version(NULL) > 0 && ns_filter_lacks() == NULL);
	if (NP_SANITIZED) {
		assert_string_equal(lacks, ns_filter_lacks()); /* which says it all */
	}
	printf("missing: \"%s\"\n", lacks);
}

/* ---- Congestion controls ---- */

/* Returns 0, or the number of what was wrong. */
static int
try_congestion(const char *user)
{
	struct ns_permit p;
	struct np_err err;
	char name[16] = "";
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ns_permit_init(&p);
	if (ns_confine_daemon(user, false, &err) != NP_OK || p.loaded[0] == '\0') {
		return 77;
	}
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(p.loaded + 1, " "), p.loaded + 1);
	if (ns_permit(&p, fd, name, (socklen_t)strlen(name)) != 0 && errno != EPERM) {
		return 1;
	}
	if (!deadly_call(SYS_setsockopt, 2, TCP_CONGESTION, TCP_CONGESTION)) {
		return 77;
	}
	if (ns_permit(&p, fd, "nosuch", 6) == 0 || errno != ENOENT ||
	    ns_permit(&p, fd, " ", 1) == 0 || ns_permit(&p, fd, "", 0) == 0 ||
	    ns_permit(&p, fd, "a-name-of-more-than-thirty-characters", 37) == 0 ||
	    ns_permit(&p, fd, name, (socklen_t)strlen(name) - 1) == 0) {
		return 2;
	}
	p.loaded[0] = '\0';
	if (ns_permit(&p, fd, name, (socklen_t)strlen(name)) == 0 || errno != ENOENT) {
		return 3;
	}
	return in_force() == 0 || geteuid() == 0 || user == NULL ? 0 : 4;
}

TEST(the_kernel_hears_of_no_congestion_control_that_is_not_loaded)
{
	static const char *const users[] = { NULL, "nobody", "root" };

	for (size_t i = 0; i < (geteuid() == 0 ? LEN(users) : 1); i++) {
		assert_in_child(try_congestion(users[i]),
				"no list of congestion controls, or no seccomp");
	}
}

/* ---- Captures ---- */

/* By CAP_NET_ADMIN, were it in force, a client's word could have a module loaded. */
static void
open_packet_socket(void *ctx)
{
	int *fd = ctx;

	if (in_force() != UINT64_C(1) << CAP_NET_RAW) {
		_exit(99);
	}
	*fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
}

/* A copy of a descriptor has another number. log: a socket as that to syslog. */
static bool
can_hand_descriptors_to_itself(int log)
{
	const struct sockaddr_un any = { .sun_family = AF_UNIX };
	struct sockaddr_un own;
	socklen_t len = sizeof(own);
	int made[2];

	if (socket(AF_UNIX, SOCK_DGRAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ||
	    socketpair(AF_UNIX, SOCK_DGRAM, 0, made) == 0) {
		return true;
	}
	return bind(log, (const struct sockaddr *)&any, sizeof(sa_family_t)) == 0 ||
	       errno != EPERM || getsockname(log, (struct sockaddr *)&own, &len) != 0 ||
	       connect(log, (const struct sockaddr *)&own, len) == 0 || errno != EPERM;
}

/* Returns 0, or the number of what was wrong. */
static int
try_capture(const char *user, bool want)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = 1 };
	struct ns_sandbox box = { .limits.bytes = 16 * MIB,
				  .filter = NS_FILTER_UNIX | NS_FILTER_EVIDENCE };
	uint8_t frame[60] = { 0 };
	struct np_err err = { .code = NP_OK };
	/* Of a high number: the limit of descriptors will be below it. */
	int fd = -1, log = fcntl(socket(AF_UNIX, SOCK_DGRAM, 0), F_DUPFD_CLOEXEC, 300);

	if (ns_confine_daemon(user, true, &err) != NP_OK ||
	    (capabilities() & UINT64_C(1) << CAP_NET_RAW) == 0) {
		return 1;
	}
	if (socket(AF_PACKET, SOCK_RAW, 0) >= 0 && geteuid() != 0) {
		return 2; /* permitted, but not in force */
	}
	if (ns_with_raw(want, open_packet_socket, &fd, &err) != NP_OK || (fd >= 0) != want) {
		return 3;
	}
	if ((capabilities() & UINT64_C(1) << CAP_NET_RAW) != 0 ||
	    socket(AF_PACKET, SOCK_RAW, 0) >= 0) {
		return 4;
	}
	if (user != NULL && strcmp(user, "root") == 0 && in_force() != useful) {
		return 11; /* what root had in force it has again */
	}
	box.capture_fd = want ? fd : 0;
	if (ns_confine_session(&box, &err) != NP_OK) {
		return 5;
	}
	if (!want) {
		return 0;
	}
	if (recv(fd, frame, sizeof(frame), MSG_DONTWAIT) < 0 && errno != EAGAIN) {
		return 6;
	}
	if (sendto(fd, frame, sizeof(frame), 0, (const struct sockaddr *)&to, sizeof(to)) >= 0 ||
	    errno != EPERM) {
		return 7;
	}
	if (write(fd, frame, sizeof(frame)) >= 0 || errno != EPERM ||
	    bind(fd, (const struct sockaddr *)&to, sizeof(to)) == 0 || errno != EPERM) {
		return 8;
	}
	if (fcntl(fd, F_DUPFD_CLOEXEC, 3) >= 0 || dup(fd) >= 0) {
		return 9;
	}
	return can_hand_descriptors_to_itself(log) ? 10 : 0;
}

TEST(a_session_that_captures_hears_and_does_not_send)
{
	static const char *const users[] = { NULL, "nobody", "root" };

	needs_root();
	needs(false, true);
	for (size_t i = 0; i < 2 * LEN(users); i++) {
		assert_int_equal(IN_CHILD(try_capture(users[i / 2], i % 2 == 0)), 0);
	}
}

/* ---- Frames ---- */

static void
open_frames(void *ctx)
{
	struct np_err err;

	(void)np_eth_open(ctx, "lo", &err);
}

/* Whether a call that is refused for this descriptor is so by socketcall(2), too. */
static bool
is_refused_by_socketcall(int fd, const struct sockaddr_ll *to)
{
#ifdef SYS_socketcall
	unsigned long args[] = { (unsigned long)fd, (unsigned long)to, sizeof(*to) };

	return syscall(SYS_socketcall, SYS_BIND, args) != 0 && errno == EPERM;
#else
	return true;
#endif
}

/* Returns 0, or the number of what was wrong. */
static int
try_frames(void)
{
	struct sockaddr_ll other = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct iovec part = { .iov_base = &other, .iov_len = NP_ETH_LEAST };
	uint8_t frame[NP_ETH_LEAST] = { 0 };
	struct ns_sandbox box = { .limits.bytes = 16 * MIB };
	struct np_err err = { .code = NP_OK };
	struct np_eth l = { .fd = -1 };
	struct np_addr to;
	struct msghdr m;

	if (ns_confine_daemon(NULL, true, &err) != NP_OK ||
	    ns_with_raw(true, open_frames, &l, &err) != NP_OK || l.fd < 0) {
		return 1;
	}
	box.link_fd = l.fd;
	if (ns_confine_session(&box, &err) != NP_OK || socket(AF_PACKET, SOCK_DGRAM, 0) >= 0) {
		return 2;
	}
	np_eth_aim(&l, l.mac, &to);
	if (np_eth_limit_source(&l, &to, 4711, &err) != NP_OK) {
		return 3;
	}
	np_eth_mark(frame, 4711);
	if (sendto(l.fd, frame, sizeof(frame), 0, (const struct sockaddr *)&to.sa, to.len) < 0 ||
	    recv(l.fd, frame, sizeof(frame), MSG_DONTWAIT) != sizeof(frame)) {
		return 4;
	}
	m = (struct msghdr){
		.msg_name = &to.sa, .msg_namelen = to.len, .msg_iov = &part, .msg_iovlen = 1
	};
	if (sendmsg(l.fd, &m, 0) >= 0 || errno != EPERM || write(l.fd, frame, sizeof(frame)) >= 0 ||
	    errno != EPERM) {
		return 5;
	}
	if (!is_refused_by_socketcall(l.fd, &other)) {
		return 6;
	}
	if (attach_a_filter() != EPERM) {
		return 8; /* by any other socket */
	}
	return bind(l.fd, (const struct sockaddr *)&other, sizeof(other)) != 0 && errno == EPERM
		   ? 0
		   : 7;
}

TEST(a_session_with_frames_stays_on_its_interface)
{
	needs_root();
	needs(false, true);
	assert_int_equal(IN_CHILD(try_frames()), 0);
}

TEST_MAIN()
