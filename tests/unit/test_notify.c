/*
 * The conventions of a service manager, which these tests play: sockets that it hands down, and
 * what it is told.
 */
#include "netserver/notify.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <linux/vm_sockets.h> /* uses what sys/socket.h declares */

#include "base/clock.h"
#include "base/fds.h"
#include "tests/lib/check.h"
#include "tests/lib/sockets.h"

enum { ROOM = 4 };

/* ---- Sockets handed down ---- */

/* What a process says that was started with sockets from 3 on. */
struct started {
	int count, fds[ROOM];
	int flags[ROOM], fd_flags[ROOM];
	bool variables; /* one of them is still set */
	struct np_err err;
};

struct handed {
	const char *pid; /* NULL: the process's own; "": LISTEN_PID is not set */
	const char *fds; /* LISTEN_FDS; NULL: not set */
	int at[ROOM];    /* descriptors to be 3 and up; 0: closed */
};

static void
look(const struct handed *h, struct started *s)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	if (h->pid == NULL || h->pid[0] != '\0') {
		setenv("LISTEN_PID", h->pid != NULL ? h->pid : pid, 1);
	}
	if (h->fds != NULL) {
		setenv("LISTEN_FDS", h->fds, 1);
	}
	setenv("LISTEN_FDNAMES", "control:other", 1);
	s->count = ns_notify_sockets(s->fds, ROOM, &s->err);
	for (int i = 0; i < s->count; i++) {
		s->flags[i] = fcntl(s->fds[i], F_GETFL);
		s->fd_flags[i] = fcntl(s->fds[i], F_GETFD);
	}
	s->variables = getenv("LISTEN_PID") != NULL || getenv("LISTEN_FDS") != NULL ||
		       getenv("LISTEN_FDNAMES") != NULL;
	/* As the daemon does that leaves for the background. */
	np_fds_close_except(s->fds, s->count > 0 ? (size_t)s->count : 0);
	for (int i = 0; i < s->count; i++) {
		if (fcntl(s->fds[i], F_GETFD) < 0) {
			s->count = -2;
		}
	}
}

static struct started
start_with(const struct handed *h)
{
	struct started s = { .count = -3 };
	int pair[2], status;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int copies[ROOM];

		/* What is above 2 will be closed. */
		dup2(pair[1], 1);
		for (int i = 0; i < ROOM; i++) {
			copies[i] = h->at[i] > 0 ? fcntl(h->at[i], F_DUPFD, 50) : -1;
		}
		for (int i = 0; i < ROOM; i++) {
			close(3 + i);
			if (copies[i] >= 0) {
				dup2(copies[i], 3 + i);
			}
		}
		look(h, &s);
		_exit(write(1, &s, sizeof(s)) == sizeof(s) ? 0 : 1);
	}
	close(pair[1]);
	assert_true(get_bytes(pair[0], &s, sizeof(s)));
	close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(s.variables);
	return s;
}

TEST(listening_sockets_are_taken)
{
	struct np_addr at;
	FREED_BY(close_fd) int first = bound_socket(AF_INET, SOCK_STREAM, &at);
	FREED_BY(close_fd) int second = bound_socket(AF_INET, SOCK_STREAM, &at);
	struct handed two = { .fds = "2", .at = { first, second } };
	struct started s;

	s = start_with(&two);
	assert_int_equal(s.count, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(s.fds[i], 3 + i);
		assert_true((s.flags[i] & O_NONBLOCK) != 0);
		assert_true((s.fd_flags[i] & FD_CLOEXEC) != 0);
	}
}

TEST(a_vsock_socket_is_taken)
{
	const struct sockaddr_vm any = { .svm_family = AF_VSOCK,
					 .svm_cid = VMADDR_CID_ANY,
					 .svm_port = VMADDR_PORT_ANY };
	FREED_BY(close_fd) int fd = socket(AF_VSOCK, SOCK_STREAM, 0);
	struct handed one = { .fds = "1", .at = { fd } };
	struct started s;

	skip_if(fd < 0 || bind(fd, (const struct sockaddr *)&any, sizeof(any)) != 0,
		"no VSOCK here: %s", strerror(errno));
	assert_int_equal(listen(fd, 1), 0);
	s = start_with(&one);
	assert_int_equal(s.count, 1);
	assert_true((s.flags[0] & O_NONBLOCK) != 0);
}

TEST(sockets_of_another_process_are_not_ours)
{
	struct np_addr at;
	FREED_BY(close_fd) int fd = bound_socket(AF_INET, SOCK_STREAM, &at);
	const struct handed none[] = {
		{ .pid = "", .fds = "1", .at = { fd } },
		{ .pid = "1", .fds = "1", .at = { fd } },
		{ .pid = "me", .fds = "1", .at = { fd } },
		{ .fds = NULL, .at = { fd } },
		{ .fds = "0", .at = { fd } },
		{ .fds = "-1", .at = { fd } },
		{ .fds = "", .at = { fd } },
		{ .fds = "1x", .at = { fd } },
		{ .pid = "", .fds = NULL },
	};

	for (size_t i = 0; i < LEN(none); i++) {
		assert_int_equal(start_with(&none[i]).count, 0);
	}
}

TEST(what_can_not_be_served_is_named)
{
	struct np_addr at, path;
	FREED_BY(close_fd)
	int tcp = bound_socket(AF_INET, SOCK_STREAM, &at), client = connected_to(&at);
	FREED_BY(close_fd) int udp = bound_socket(AF_INET, SOCK_DGRAM, &at);
	FREED_BY(close_fd) int local = bound_socket(AF_UNIX, SOCK_STREAM, &path);
	FREED_BY(close_fd) int file = open("/dev/null", O_RDONLY);
	const struct {
		struct handed handed;
		const char *says;
	} bad[] = {
		{ { .fds = "1", .at = { client } }, "descriptor 3 does not listen" },
		{ { .fds = "2", .at = { tcp, udp } }, "descriptor 4 is not a TCP or VSOCK" },
		{ { .fds = "1", .at = { local } }, "descriptor 3 is not a TCP or VSOCK" },
		{ { .fds = "3", .at = { tcp, tcp, file } }, "descriptor 5 is not a socket" },
		{ { .fds = "2", .at = { tcp } }, "descriptor 4 is not open" },
		{ { .fds = "5", .at = { tcp, tcp, tcp, tcp } }, "5 sockets, more than 4" },
		{ { .fds = "99999999999", .at = { tcp } }, "sockets, more than 4" },
	};

	for (size_t i = 0; i < LEN(bad); i++) {
		struct started s = start_with(&bad[i].handed);

		assert_int_equal(s.count, -1);
		assert_int_equal(s.err.code, NP_EUSAGE);
		assert_has(s.err.msg, bad[i].says);
	}
}

/* ---- What the manager is told ---- */

/* A manager's socket under that name, which NOTIFY_SOCKET is set to. */
static int
manager(const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t n = strlen(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	memcpy(un.sun_path, name, n);
	if (name[0] == '@') {
		un.sun_path[0] = '\0';
	}
	assert_int_equal(bind(fd, (struct sockaddr *)&un,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)),
			 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
	return fd;
}

static void
assert_told(int fd, const char *state)
{
	char got[256];
	ssize_t n = recv(fd, got, sizeof(got) - 1, 0);

	assert_true(n >= 0);
	got[n] = '\0';
	assert_string_equal(got, state);
}

TEST(states_reach_a_path)
{
	char dir[] = "/tmp/np-test-XXXXXX", path[64];
	FREED_BY(close_fd) int fd = -1;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/notify", dir);
	fd = manager(path);
	ns_notify("READY=1");
	assert_told(fd, "READY=1");
	ns_notify("STOPPING=1\nSTATUS=3 sessions end");
	assert_told(fd, "STOPPING=1\nSTATUS=3 sessions end");
	assert_non_null(getenv("NOTIFY_SOCKET"));
	unlink(path);
	ns_notify("nobody is there");
	rmdir(dir);
}

TEST(states_reach_an_abstract_name)
{
	char name[108];
	int fd;

	/* As long as such a name can be: no NUL fits behind it. */
	snprintf(name, sizeof(name), "@plumbline-test-notify-%ld", (long)getpid());
	memset(name + strlen(name), 'x', sizeof(name) - strlen(name) - 1);
	name[sizeof(name) - 1] = '\0';
	fd = manager(name);
	ns_notify("READY=1");
	assert_told(fd, "READY=1");
	close(fd);
	ns_notify("nobody is there");
}

TEST(a_reload_tells_its_time)
{
	uint64_t before = np_now() / 1000, usec;
	char name[64], got[128];
	ssize_t n;
	int fd, end = 0;

	snprintf(name, sizeof(name), "@plumbline-test-reload-%ld", (long)getpid());
	fd = manager(name);
	ns_notify_reloading();
	n = recv(fd, got, sizeof(got) - 1, 0);
	assert_true(n > 0);
	got[n] = '\0';
	assert_int_equal(sscanf(got, "RELOADING=1\nMONOTONIC_USEC=%" SCNu64 "%n", &usec, &end), 1);
	assert_int_equal(end, n);
	assert_true(usec >= before && usec <= np_now() / 1000);
	close(fd);
}

TEST(without_a_manager_nothing_happens)
{
	static const char *const names[] = {
		"", "/", "@", "relative", "vsock:2:1234", "/nosuch/x"
	};
	char long_name[200];

	unsetenv("NOTIFY_SOCKET");
	ns_notify("READY=1");
	for (size_t i = 0; i < LEN(names); i++) {
		setenv("NOTIFY_SOCKET", names[i], 1);
		ns_notify("READY=1");
	}
	memset(long_name, 'x', sizeof(long_name));
	long_name[0] = '/';
	long_name[sizeof(long_name) - 1] = '\0';
	setenv("NOTIFY_SOCKET", long_name, 1);
	ns_notify("READY=1");
}

/* It may be stuck: the daemon has clients to serve. */
TEST(a_manager_that_does_not_read_holds_nobody_up)
{
	enum { MANY = 5000 }; /* more than its queue has room for */
	char name[64], got[16];
	int fd, came = 0;

	snprintf(name, sizeof(name), "@plumbline-test-stuck-%ld", (long)getpid());
	fd = manager(name);
	for (int i = 0; i < MANY; i++) {
		ns_notify("STATUS=x"); /* would wait for ever */
	}
	while (recv(fd, got, sizeof(got), 0) > 0) {
		came++;
	}
	assert_in_range(came, 1, MANY - 1);
	ns_notify("READY=1");
	assert_told(fd, "READY=1");
	close(fd);
}

TEST_MAIN()
