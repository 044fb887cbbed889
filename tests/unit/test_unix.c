/*
 * Sockets of the UNIX domain: where their names are, who gets at them, and that nothing stays.
 */
#include <sys/stat.h>
#include <sys/un.h>

#include "bench/transport/many.h"
#include "bench/transport/unix.h"
#include "net/sock.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/root.h"
#include "tests/lib/sockets.h"

/* The path of a flow's socket and the directory made for it. */
static void
paths_of(const struct np_run *run, char path[NP_ADDR_TEXT], char dir[NP_ADDR_TEXT])
{
	np_addr_host(&run->end.local, path);
	strcpy(dir, path);
	*strrchr(dir, '/') = '\0';
}

static mode_t
mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	return st.st_mode & (S_IFMT | 07777);
}

static void
open_daemon(struct end *e, const char *name)
{
	*e = (struct end){ .rc = -1 };
	daemon_params(&e->plan, np_bench_find(name), 1);
	end_open(e);
}

TEST(a_daemons_socket_is_for_all_and_its_directory_to_pass)
{
	static const char *const names[] = { "STREAM_STREAM", "STREAM_RR", "DG_STREAM", "DG_RR" };
	mode_t mask = umask(077);

	for (size_t i = 0; i < LEN(names); i++) {
		char path[NP_ADDR_TEXT], dir[NP_ADDR_TEXT];
		FREED_BY(end_free) struct end e;

		open_daemon(&e, names[i]);
		paths_of(&e.run, path, dir);
		assert_true(strlen(path) < NP_UNIX_PATH_MAX);
		assert_int_equal(mode_of(path), S_IFSOCK | 0666);
		assert_int_equal(mode_of(dir), S_IFDIR | 0711);
		np_run_close(&e.run);
		assert_int_equal(access(dir, F_OK), -1);
	}
	umask(mask);
}

TEST(no_two_sockets_share_a_directory)
{
	char path[2][NP_ADDR_TEXT], dir[2][NP_ADDR_TEXT];
	struct end e[2];

	for (int i = 0; i < 2; i++) {
		open_daemon(&e[i], "DG_RR");
		paths_of(&e[i].run, path[i], dir[i]);
	}
	assert_string_not_equal(dir[0], dir[1]);
	end_free(&e[0]);
	assert_int_equal(mode_of(path[1]), S_IFSOCK | 0666);
	end_free(&e[1]);
	assert_int_equal(access(dir[1], F_OK), -1);
}

/* Who put something else into the directory keeps it; nothing but the socket is removed. */
TEST(only_what_was_made_is_removed)
{
	char path[NP_ADDR_TEXT], dir[NP_ADDR_TEXT], other[NP_ADDR_TEXT + 8];
	struct end e;

	open_daemon(&e, "STREAM_RR");
	paths_of(&e.run, path, dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	put_file(dir, "/other", "");
	end_free(&e);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* ---- The client's own socket ---- */

static void
plan_client(struct end *e, const char *name, const char *dir)
{
	*e = (struct end){ .rc = -1 };
	client_params(&e->plan, np_bench_find(name), AF_INET, 1);
	snprintf(e->plan.unix_dir, sizeof(e->plan.unix_dir), "%s", dir);
}

/* Each of several is answered by a path of its own; all of them go with their directory. */
TEST(each_flow_has_a_name_of_its_own)
{
	enum { FLOWS = 12 };
	char path[NP_ADDR_TEXT], dir[NP_ADDR_TEXT], other[FLOWS][NP_ADDR_TEXT];
	struct end e;

	plan_client(&e, "DG_RR", "");
	e.plan.flows = FLOWS;
	end_open(&e);
	paths_of(&e.run, path, dir);
	for (uint32_t i = 0; i < FLOWS; i++) {
		struct np_addr at;

		assert_int_equal(np_sock_local(e.run.conn[i].fd, &at, &e.err), NP_OK);
		np_addr_host(&at, other[i]);
		assert_int_equal(strncmp(other[i], dir, strlen(dir)), 0);
		assert_int_equal(mode_of(other[i]), S_IFSOCK | 0666);
		for (uint32_t k = 0; k < i; k++) {
			assert_string_not_equal(other[i], other[k]);
		}
	}
	end_free(&e);
	assert_int_equal(access(dir, F_OK), -1);
}

TEST(a_client_has_a_name_only_where_it_is_answered_by_datagrams)
{
	static const char *const names[] = { "STREAM_STREAM", "STREAM_RR", "DG_STREAM", "DG_RR" };
	char where[] = "/tmp/np-test-XXXXXX";

	assert_non_null(mkdtemp(where));
	for (size_t i = 0; i < LEN(names); i++) {
		char path[NP_ADDR_TEXT], dir[NP_ADDR_TEXT];
		FREED_BY(end_free) struct end e;

		plan_client(&e, names[i], where);
		end_open(&e);
		assert_int_equal(e.run.end.state != NULL, i == 3);
		if (e.run.end.state != NULL) {
			paths_of(&e.run, path, dir);
			assert_int_equal(strncmp(dir, where, strlen(where)), 0);
			assert_int_equal(mode_of(path), S_IFSOCK | 0666);
		}
	}
	assert_int_equal(rmdir(where), 0);
}

TEST(a_listener_may_go_once_it_has_accepted)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	FREED_BY(close_fd) int accepted = -1, fd = socket(AF_UNIX, SOCK_STREAM, 0);
	FREED_BY(end_free) struct end e;

	plan_client(&e, "STREAM_STREAM", "");
	e.plan.flows = 2;
	end_open(&e);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(np_sock_local(fd, &e.run.end.peer, &e.err), NP_OK);
	assert_int_equal(np_many_begin(&e.run, &e.run.conn[1], &e.err), NP_OK);
	accepted = accept(fd, NULL, NULL);
	close_fd(&fd);
	fd = -1;
	assert_int_equal(np_many_await(&e.run, &e.run.conn[1], &e.err), NP_OK);
}

static void
assert_no_place(const char *dir, const char *says)
{
	struct end e;

	plan_client(&e, "DG_RR", dir);
	assert_int_equal(np_run_open(&e.run, &e.plan, NULL, &e.stop, &e.err), NP_ESYS);
	assert_int_equal(e.err.sys, ENOENT);
	assert_has(e.err.msg, says);
}

TEST(a_directory_that_will_not_do_is_named)
{
	char longest[NP_UNIX_DIR_MAX];

	assert_no_place("/no/such/place", "/no/such/place");
	/* The longest one that fits leaves room for the rest of the path. */
	memset(longest, 'x', sizeof(longest) - 1);
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	assert_no_place(longest, "");
}

/* ---- What the dead leave ---- */

/* A process that opens a flow and is killed. Its pid, and the path of its socket. */
static pid_t
die_with_socket(bool active, const char *where, char path[NP_ADDR_TEXT])
{
	FREED_BY(close_both) int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		struct end e;
		char own[NP_ADDR_TEXT] = "";

		if (active) {
			plan_client(&e, "DG_RR", where);
			end_open(&e);
		} else {
			open_daemon(&e, "STREAM_RR");
		}
		np_addr_host(&e.run.end.local, own);
		(void)!write(ends[1], own, sizeof(own));
		raise(SIGKILL);
	}
	assert_int_equal(read(ends[0], path, NP_ADDR_TEXT), NP_ADDR_TEXT);
	assert_int_equal(ended(pid), -SIGKILL);
	return pid;
}

TEST(a_killed_sessions_socket_is_found_by_its_process)
{
	char path[NP_ADDR_TEXT], dir[NP_ADDR_TEXT], other[NP_ADDR_TEXT + 8];
	pid_t pid = die_with_socket(false, NULL, path);

	strcpy(dir, path);
	*strrchr(dir, '/') = '\0';
	np_unix_sweep(pid + 1);
	np_unix_sweep(pid / 10);
	assert_int_equal(mode_of(path), S_IFSOCK | 0666);
	np_unix_sweep(pid);
	assert_int_equal(access(dir, F_OK), -1);
	/* What is there under such a name, but is no such thing, stays. */
	snprintf(other, sizeof(other), "%s/s", dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(mkdir(other, 0700), 0);
	np_unix_sweep(pid);
	assert_int_equal(rmdir(other), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(symlink("/tmp", dir), 0);
	np_unix_sweep(pid);
	assert_int_equal(unlink(dir), 0);
}

TEST(a_killed_clients_socket_is_removed_by_its_keeper)
{
	char where[] = "/tmp/np-test-XXXXXX", path[NP_ADDR_TEXT];
	int tries = 500;

	assert_non_null(mkdtemp(where));
	die_with_socket(true, where, path);
	assert_int_equal(strncmp(path, where, strlen(where)), 0);
	while (rmdir(where) != 0 && tries-- > 0) {
		usleep(20000);
	}
	assert_true(tries > 0);
}

TEST(a_datagram_beyond_the_buffer_names_both_sizes)
{
	FREED_BY(ends_free) struct ends e;

	ends_plan(&e, np_bench_find("DG_STREAM"), AF_INET, -60000);
	e.client.plan.near.sock.sndbuf = 2048;
	e.client.plan.near.call.send_size = 60000;
	ends_make(&e);
	end_start(&e.server);
	end_start(&e.client);
	end_join(&e.client);
	assert_int_equal(e.client.run.err.code, NP_EUSAGE);
	assert_has(e.client.run.err.msg, "60000 bytes");
	assert_has(e.client.run.err.msg, "larger -s");
	end_stop(&e.server);
}

TEST_MAIN(np_drive_prepare())
