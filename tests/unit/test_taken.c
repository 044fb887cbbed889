/*
 * A session that was taken over: the daemon is the real one, and so is the confinement, but a
 * session whose client greets runs a script of this file's, one byte of the control connection for
 * each attempt. What it may not do fails, and whatever it does the daemon serves others.
 *
 * The linker has np_server_serve() led here (--wrap); other clients get the one of src/run.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "bench/lacks.h"
#include "netserver/daemon.h"
#include "netserver/filter.h"
#include "run/server.h"
#include "tests/lib/check.h"
#include "tests/lib/root.h"
#include "tests/lib/session.h"
#include "tests/lib/sockets.h"
#include "wire/plan.h"

enum {
	MIB = 1 << 20,
	LINGER_S = 60, /* far beyond LONG_MS */
	FLOOD = 2000,  /* lines */
	FLOWS = 16
};

int __real_np_server_serve(struct np_server *s, struct np_chan *c, struct np_err *err);
int __wrap_np_server_serve(struct np_server *s, struct np_chan *c, struct np_err *err);

/* --- what the session tries, in its process; each returns 0, an errno or a number ------------ */

struct taken {
	struct np_server *server;
	int control;
};

/* The socket that leads to the daemon: of the UNIX domain, and not the control connection. */
static int
way_to_the_daemon(void)
{
	for (int fd = 3; fd < 1024; fd++) {
		int type = 0;
		socklen_t len = sizeof(type);

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
		    type == SOCK_SEQPACKET) {
			return fd;
		}
	}
	return -1;
}

static int
set_linger(const struct taken *t)
{
	const struct linger l = { .l_onoff = 1, .l_linger = LINGER_S };

	return setsockopt(t->control, SOL_SOCKET, SO_LINGER, &l, sizeof(l)) == 0 ? 0 : errno;
}

/* What has the kernel load a module, or make a program of its own. Each is tried once. */
static int
reach_into_the_kernel(const struct taken *t)
{
	struct sock_filter all[] = { { .code = BPF_RET | BPF_K, .k = UINT32_MAX } };
	struct sock_fprog prog = { .len = 1, .filter = all };
	static const struct {
		int family, type, protocol;
	} sockets[] = {
		{ AF_INET, SOCK_STREAM, IPPROTO_SCTP }, /* which no kernel of these tests has */
		{ AF_INET, SOCK_DGRAM, 115 },           /* of L2TP */
		{ AF_INET, SOCK_STREAM, IPPROTO_UDP },
		{ AF_TIPC, SOCK_STREAM, 0 },
		{ AF_ALG, SOCK_SEQPACKET, 0 },
		{ AF_NETLINK, SOCK_RAW, 4 }, /* sock_diag(7) */
	};

	for (size_t i = 0; i < LEN(sockets); i++) {
		if (socket(sockets[i].family, sockets[i].type | SOCK_CLOEXEC,
			   sockets[i].protocol) >= 0 ||
		    errno != EPERM) {
			return 100 + (int)i;
		}
	}
	return setsockopt(t->control, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) == 0
		   ? 0
		   : errno;
}

/*
 * As many as its descriptors allow: n of epoll(7), each of which watches n others. Returns how many
 * there are.
 */
static int
watch_all(const struct taken *t)
{
	enum { MOST = 1024 };
	struct epoll_event none = { .events = 0 };
	int fds[MOST], count = 0, watches = 0;

	while (count < MOST && (fds[count] = epoll_create1(EPOLL_CLOEXEC)) >= 0) {
		count++;
	}
	for (int i = 0; i < count / 2; i++) {
		close(fds[i]);
	}
	for (int i = 0; i < count / 2; i++) {
		fds[i] = eventfd(0, EFD_CLOEXEC);
	}
	for (int i = count / 2; i < count; i++) {
		for (int j = 0; j < count / 2; j++) {
			watches += epoll_ctl(fds[i], EPOLL_CTL_ADD, fds[j], &none) == 0;
		}
	}
	for (int i = 0; i < count; i++) {
		close(fds[i]);
	}
	return watches;
}

/* Sockets whose last holder waits when he closes them, by a word that says nothing. */
static int
pass_sockets(const struct taken *t)
{
	int fds[3], listener, rc, way = way_to_the_daemon();

	for (int i = 0; i < 3; i++) {
		fds[i] = lingering_socket(LINGER_S, &listener);
		if (fds[i] < 0) {
			fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		}
	}
	rc = pass_descriptors(way, "word", 4, fds, 3) ? 0 : errno;
	for (int i = 0; rc == 0 && i < 3; i++) { /* else it would be who waits */
		close(fds[i]);
	}
	return rc;
}

/* From here on the daemon expects a socket. */
static int
begin_a_test(const struct taken *t)
{
	const struct np_admission *admission = &t->server->admission;
	struct np_wish wish = { .test = "TCP_STREAM",
				.seconds = 10,
				.takes = { [NP_RES_MEMORY] = MIB } };
	struct np_err err;

	return admission->ask(admission->ctx, &wish, t->control, &err) == NP_OK ? 0 : 1;
}

static int
do_nothing(const struct taken *t)
{
	return 0;
}

static int
map_a_stack(const struct taken *t)
{
	return mmap(NULL, (size_t)MIB << 10, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0) == MAP_FAILED
		   ? errno
		   : 0;
}

static int
stretch_its_stack(const struct taken *t)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char below[3 * (64 << 10)]; /* three of the largest pages that there are */
	uintptr_t part = ((uintptr_t)below / page + 1) * page;

	below[0] = 1;
	return mremap((void *)part, page, (size_t)MIB << 10, MREMAP_MAYMOVE) == MAP_FAILED ? errno
											   : 0;
}

/* Returns how many files it wrote to. */
static int
rewrite_files(const struct taken *t)
{
	int written = 0;

	for (int fd = 0; fd < 1024; fd++) {
		struct stat st;

		if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
			continue;
		}
		(void)fcntl(fd, F_SETFL, 0);
		(void)lseek(fd, 0, SEEK_SET);
		written += write(fd, "FORGED", 6) == 6;
	}
	return written;
}

static int
flood_the_log(const struct taken *t)
{
	for (int i = 0; i < FLOOD; i++) {
		np_log(t->server->log, NP_LOG_ERROR, "flood %d\nlevel=info event=forged", i);
	}
	return 0;
}

/* ---- The words of its fork server's seal ---- */

ssize_t __real_getrandom(void *bytes, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);

/* Shared with all processes; what is looked for must not be found here: it is reversed. */
static struct ns_seal *drawn;

ssize_t
__wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
	ssize_t n = __real_getrandom(bytes, size, flags);

	for (size_t i = 0; size == sizeof(*drawn) && drawn != NULL && i < LEN(drawn->word); i++) {
		uint32_t word;

		memcpy(&word, (char *)bytes + i * sizeof(word), sizeof(word));
		drawn->word[i] = ~word;
	}
	return n;
}

/* As a fork server does, but with words that it has to guess. */
static int
fork_unsealed(const struct taken *t)
{
	const struct ns_seal guess = { .word = { 1, 2 } };
	pid_t pid = (pid_t)ns_sealed(&guess, SYS_clone, NS_FORK, 0, 0, 0);

	if (pid == 0) {
		_exit(0);
	}
	return pid > 0 ? 0 : errno;
}

static int
confine_further_unsealed(const struct taken *t)
{
	static const long calls[] = { SYS_landlock_create_ruleset, SYS_landlock_add_rule,
				      SYS_landlock_restrict_self };
	const struct ns_seal guess = { .word = { 1, 2 } };
	const struct ns_seal right = { .word = { ~drawn->word[0], ~drawn->word[1] } };

	for (size_t i = 0; i < LEN(calls); i++) {
		if (ns_sealed(&guess, calls[i], 0, 0, 1, 0) >= 0 || errno != EPERM) {
			return 1;
		}
	}
	/* The seal does not let it show its memory either, in which the seal is at first. */
	return ns_sealed(&right, SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0) == 0 || errno != EPERM;
}

static int
say_who_it_is(const struct taken *t)
{
	return getpid();
}

static int (*const script[])(const struct taken *t) = {
	['r'] = reach_into_the_kernel,
	['e'] = watch_all,
	['l'] = set_linger,
	['p'] = pass_sockets,
	['t'] = begin_a_test,
	['m'] = map_a_stack,
	['s'] = stretch_its_stack,
	['w'] = rewrite_files,
	['f'] = flood_the_log,
	['n'] = do_nothing,
	['k'] = fork_unsealed,
	['c'] = confine_further_unsealed,
	['i'] = say_who_it_is,
};

int
__wrap_np_server_serve(struct np_server *s, struct np_chan *c, struct np_err *err)
{
	const struct taken t = { .server = s, .control = c->fd };
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	unsigned char step;

	if (np_frame_head(c->in).code != NP_EXT_HELLO) {
		return __real_np_server_serve(s, c, err);
	}
	while (poll(&p, 1, -1) == 1 && recv(c->fd, &step, 1, 0) == 1) {
		int result = script[step](&t);

		if (send(c->fd, &result, sizeof(result), MSG_NOSIGNAL) != sizeof(result)) {
			break;
		}
	}
	return NP_OK;
}

/* --- the daemon, and its clients -------------------------------------------------------------- */

struct place {
	pid_t daemon;
	struct np_addr at;
	char dir[32], log[40];
	char text[1 << 20];
};

static int
run_daemon(struct ns_daemon *d, const struct place *p)
{
	static struct np_log_out out = { .fd = -1 };
	static struct np_log log = { .level = NP_LOG_INFO, .sink = np_log_write, .ctx = &out };
	struct np_err err;
	int file = open(p->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);

	d->log = &log;
	if (file < 0 || dup2(file, STDERR_FILENO) < 0) { /* as by a shell's 2>> */
		return 1;
	}
	np_log(&log, NP_LOG_INFO, "the first line");
	return ns_confine_daemon(NULL, false, &err) == NP_OK && ns_daemon_run(d, &err) == NP_OK ? 0
												: 2;
}

static void
start(struct place *p, bool sandbox)
{
	struct ns_daemon d = { .args.no_sandbox = !sandbox };
	struct np_err err;

	d.limits.each.bytes = 64 * MIB;
	d.limits.each.flows = FLOWS;
	d.limits.each.lacks = np_lacks_now("");
	memset(p, 0, sizeof(*p));
	strcpy(p->dir, "/tmp/np-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->log, sizeof(p->log), "%s/log", p->dir);
	assert_int_equal(ns_daemon_listen(&d, "127.0.0.1", "0", AF_INET, &err), NP_OK);
	p->at.len = sizeof(p->at.sa);
	assert_int_equal(getsockname(d.listeners[0], (struct sockaddr *)&p->at.sa, &p->at.len), 0);
	p->daemon = fork();
	assert_true(p->daemon >= 0);
	if (p->daemon == 0) {
		_exit(run_daemon(&d, p));
	}
	close(d.listeners[0]);
}

static void
stop(struct place *p)
{
	if (p->daemon > 0) {
		kill(p->daemon, SIGKILL); /* its sessions end with it */
		waitpid(p->daemon, NULL, 0);
		p->daemon = 0;
		unlink(p->log);
		rmdir(p->dir);
	}
}

static int
take_over(const struct place *p)
{
	const struct np_hello_message hello = { .version = NP_EXT_VERSION, .caps = NP_CAP_TEST };
	uint8_t frame[NP_FRAME_SIZE];
	int fd = connected_to(&p->at);

	np_hello_put(frame, NP_EXT_HELLO, &hello);
	assert_true(put_bytes(fd, frame, sizeof(frame)));
	return fd;
}

/* Have it try; -1 when the session is gone. */
static int
attempt(int fd, char step)
{
	int result = -1;

	assert_true(put_bytes(fd, &step, 1));
	return wait_readable(fd) && get_bytes(fd, &result, sizeof(result)) ? result : -1;
}

/* Somebody else is, within LONG_MS. */
static void
assert_serves_others(const struct place *p)
{
	FREED_BY(close_fd) int fd = connected_to(&p->at);

	assert_serves(fd);
}

static const char *
log_of(struct place *p)
{
	read_file(p->log, p->text, sizeof(p->text));
	return p->text;
}

static unsigned
count_of(const char *text, const char *part)
{
	unsigned n = 0;

	for (; (text = strstr(text, part)) != NULL; text++) {
		n++;
	}
	return n;
}

static void
needs_seccomp(void)
{
	skip_if(ns_filter_lacks() != NULL, "%s", ns_filter_lacks());
}

/* --- cases ----------------------------------------------------------------------------------- */

static int
set_up(void **state)
{
	*state = calloc(1, sizeof(struct place));
	signal(SIGPIPE, SIG_IGN);
	return *state != NULL ? 0 : -1;
}

static int
tear_down(void **state)
{
	stop(*state);
	free(*state);
	return 0;
}

/*
 * It makes no socket that lingers, has the kernel load nothing, attaches no filter, gets no memory
 * by stacks, forks nothing and settles nothing.
 */
TEST_WITH(what_it_may_not_do_fails, set_up, tear_down)
{
	static const struct {
		char what;
		int error;
	} rows[] = {
		{ 'l', EPERM },  { 'r', EPERM }, { 'm', EPERM },
		{ 's', ENOMEM }, { 'k', EPERM }, { 'c', 0 },
	};
	struct place *p = *state;
	FREED_BY(close_fd) int fd = -1;

	needs_seccomp();
	start(p, true);
	fd = take_over(p);
	for (size_t i = 0; i < LEN(rows); i++) {
		int error = attempt(fd, rows[i].what);

		fail_if(error != rows[i].error, "%c: %s", rows[i].what, strerror(error));
	}
}

/* In one table of descriptors, and without a test: doc/security.md says what one adds. */
TEST_WITH(its_epoll_watches_are_bounded_by_its_descriptors, set_up, tear_down)
{
	const int half = 128 / 2;
	struct place *p = *state;
	int fd, watches;

	needs_seccomp();
	start(p, true);
	fd = take_over(p);
	watches = attempt(fd, 'e');
	assert_in_range(watches, half * half / 2, half * half);
	assert_serves_others(p);
	close(fd);
}

/* Confined, and as where the kernel has no seccomp. */
TEST_WITH(sockets_that_it_passes_hold_nobody_up, set_up, tear_down)
{
	struct place *p = *state;

	for (int sandbox = 0; sandbox < 2; sandbox++) {
		static const char before[] = { 'n', 't' };

		start(p, sandbox != 0);
		for (size_t i = 0; i < LEN(before); i++) {
			int fd = take_over(p);

			assert_int_equal(attempt(fd, before[i]), 0);
			/* It has closed its own when the daemon gets to them. */
			kill(p->daemon, SIGSTOP);
			assert_int_equal(waitpid(p->daemon, NULL, WUNTRACED), p->daemon);
			(void)attempt(fd, 'p');
			kill(p->daemon, SIGCONT);
			assert_serves_others(p);
			close(fd);
			assert_serves_others(p);
		}
		stop(p);
	}
}

/* Nor where it is not confined. */
TEST_WITH(it_has_no_file_to_write_to, set_up, tear_down)
{
	struct place *p = *state;

	skip_if(NP_SANITIZED, "a sanitizer's reports go to standard error");
	for (int sandbox = 0; sandbox < 2; sandbox++) {
		FREED_BY(close_fd) int fd = -1;

		start(p, sandbox != 0);
		fd = take_over(p);
		assert_int_equal(attempt(fd, 'w'), 0);
		assert_has(log_of(p), "the first line");
		assert_null(strstr(p->text, "FORGED"));
		stop(p);
	}
}

TEST_WITH(its_lines_are_few_and_its_own, set_up, tear_down)
{
	struct place *p = *state;
	const char *at;
	FREED_BY(close_fd) int fd = -1;

	start(p, true);
	fd = take_over(p);
	assert_int_equal(attempt(fd, 'f'), 0);
	for (int i = 0; i < LONG_MS / 10 && strstr(log_of(p), "flood 0") == NULL; i++) {
		usleep(10000);
	}
	assert_serves_others(p);
	assert_has(log_of(p), "flood 0?level=info event=forged");
	for (at = p->text; (at = strstr(at, "flood")) != NULL; at++) {
		assert_memory_equal(at - 2, ": ", 2);
	}
	assert_int_equal(count_of(p->text, ": process "), count_of(p->text, "flood"));
	assert_in_range(count_of(p->text, "flood"), 1, FLOOD / 2);
	assert_in_range(count_of(p->text, "\n"), 2, FLOOD / 2);
}

/* How often the words of the seal stand in a part of a process's memory. */
static unsigned
count_words(int mem, unsigned long from, unsigned long to)
{
	static uint32_t page[1024];
	unsigned found = 0;

	for (; from < to; from += sizeof(page)) {
		ssize_t n = pread(mem, page, sizeof(page), (off_t)from);

		for (ssize_t i = 0; i < n / (ssize_t)sizeof(page[0]); i++) {
			found += page[i] == ~drawn->word[0] || page[i] == ~drawn->word[1];
		}
	}
	return found;
}

/* In all that it can write to. */
static unsigned
words_in(int pid)
{
	char path[64], line[512];
	unsigned found = 0;
	FILE *maps;
	int mem;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	assert_true(mem >= 0);
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps) != NULL) {
		char *at = line;
		unsigned long from = strtoul(at, &at, 16), to = strtoul(at + 1, &at, 16);

		if (at[1] == 'r' && at[2] == 'w') {
			found += count_words(mem, from, to);
		}
	}
	fclose(maps);
	close(mem);
	return found;
}

/* That of its kind is started last. */
static int
fork_server_of(const struct place *p, int session)
{
	char path[64], list[256] = "", *at = list;
	int fd, pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)p->daemon, (int)p->daemon);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, list, sizeof(list) - 1) > 0);
	close(fd);
	for (int n; (n = (int)strtol(at, &at, 10)) > 0;) {
		pid = n != session ? n : pid;
	}
	return pid;
}

TEST_WITH(it_has_forgotten_the_seal, set_up, tear_down)
{
	struct place *p = *state;
	int fd, pid;

	needs_seccomp();
	skip_if(geteuid() != 0, "not root, who alone may look into its memory");
	start(p, true);
	fd = take_over(p);
	pid = attempt(fd, 'i');
	assert_true(pid > 0);
	assert_true(words_in(fork_server_of(p, pid)) > 0);
	assert_int_equal(words_in(pid), 0);
	close(fd);
}

/* Another one takes its place, and the sessions that it forked go on. */
TEST_WITH(a_fork_server_that_dies_is_replaced, set_up, tear_down)
{
	struct place *p = *state;
	int fd, server;

	needs_seccomp();
	start(p, true);
	fd = take_over(p);
	server = fork_server_of(p, attempt(fd, 'i'));
	assert_serves_others(
	    p); /* the daemon has heard of the first session by then, and does not refuse it */
	assert_int_equal(kill(server, SIGKILL), 0);
	assert_serves_others(p);
	close(take_over(p));
	assert_int_equal(attempt(fd, 'n'), 0);
	close(fd);
}

int
main(void)
{
	drawn =
	    mmap(NULL, sizeof(*drawn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (drawn == MAP_FAILED) {
		return 1;
	}
	return all_tests(NULL, NULL);
}
