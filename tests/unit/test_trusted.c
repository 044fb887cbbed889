/*
 * Files that an operator names: what another user has planted in their place is not taken.
 */
#include "base/trusted.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/output.h"
#include "netserver/guard.h"
#include "tests/lib/check.h"
#include "tests/lib/root.h"
#include "tests/lib/sockets.h"

enum { STRANGER = 4711, ROOM = 128 };

/*
 * A directory of ours with `all`, where everybody may write, and `ours`, each with a file; the same
 * names in each test.
 */
struct place {
	void *dir;
	char all[40], ours[40], target[48];
};

static const char text[] = "deny 192.0.2.0/24\n";

static const char *
in(char out[ROOM], const char *dir, const char *name)
{
	assert_true(snprintf(out, ROOM, "%s/%s", dir, name) < ROOM);
	return out;
}

static void
make_file(const char *path, mode_t mode)
{
	FREED_BY(close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
}

static int
set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	assert_int_equal(root_make(&p->dir), 0);
	snprintf(p->all, sizeof(p->all), "%s/all", (char *)p->dir);
	snprintf(p->ours, sizeof(p->ours), "%s/ours", (char *)p->dir);
	snprintf(p->target, sizeof(p->target), "%s/target", (char *)p->dir);
	assert_int_equal(mkdir(p->all, 0700) | mkdir(p->ours, 0700), 0);
	assert_int_equal(chmod(p->dir, 0755) | chmod(p->all, 01777) | chmod(p->ours, 0755), 0);
	make_file(p->target, 0600);
	*state = p;
	return 0;
}

static int
tear_down(void **state)
{
	struct place *p = *state;
	int rc = root_remove(&p->dir);

	free(p);
	return rc;
}

static const enum np_trusted files[] = { NP_TRUSTED_RULES, NP_TRUSTED_SECRET };

static void
assert_refused(const char *path, enum np_trusted kind, const char *says)
{
	struct np_err err = { .code = NP_OK };
	int fd = np_trusted_open(path, kind, &err);

	fail_if(fd >= 0, "%s was opened, kind %d", path, (int)kind);
	assert_int_equal(err.code, NP_EUSAGE);
	assert_has(err.msg, says);
	assert_has(err.msg, path);
	assert_int_equal(np_trusted_open(path, kind, NULL), -1);
}

static void
assert_all_refused(const char *path, const char *says)
{
	for (size_t i = 0; i < LEN(files); i++) {
		assert_refused(path, files[i], says);
	}
}

/* By what was opened, not by name. */
static void
assert_opens(const char *path, enum np_trusted kind, const char *that)
{
	struct np_err err = { .code = NP_OK };
	FREED_BY(close_fd) int fd = np_trusted_open(path, kind, &err);
	struct stat got, wanted;

	fail_if(fd < 0, "%s", err.msg);
	assert_int_equal(fstat(fd, &got) | stat(that, &wanted), 0);
	assert_int_equal(got.st_ino, wanted.st_ino);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

static void
needs_root(void)
{
	skip_if(geteuid() != 0, "only root can make files of others'");
}

static void
give_away(const char *path)
{
	assert_int_equal(lchown(path, STRANGER, (gid_t)-1), 0);
}

/* ---- What is opened ---- */

TEST_WITH(files_of_ours_are_opened_wherever_they_are, set_up, tear_down)
{
	struct place *p = *state;
	char path[ROOM], link[ROOM], relative[ROOM];
	const char *dirs[] = { p->all, p->ours };

	for (size_t d = 0; d < LEN(dirs); d++) {
		make_file(in(path, dirs[d], "file"), 0600);
		assert_int_equal(symlink("../target", in(link, dirs[d], "relative")), 0);
		assert_int_equal(symlink(path, in(relative, dirs[d], "absolute")), 0);
		for (size_t i = 0; i < LEN(files); i++) {
			assert_opens(path, files[i], path);
			assert_opens(link, files[i], p->target);
			assert_opens(relative, files[i], path);
		}
		assert_opens(dirs[d], NP_TRUSTED_DIR, dirs[d]);
	}
	assert_opens("/", NP_TRUSTED_DIR, "/");
	assert_opens("/proc/self/../self/./cwd//.", NP_TRUSTED_DIR, ".");
}

TEST_WITH(a_path_is_one_from_here_too, set_up, tear_down)
{
	struct place *p = *state;
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char whole[ROOM], wanted[ROOM];
	struct np_err err;

	assert_int_equal(chdir(p->ours), 0);
	make_file("file", 0600);
	assert_opens("file", NP_TRUSTED_SECRET, "file");
	assert_opens("../ours/./file", NP_TRUSTED_SECRET, "file");
	assert_int_equal(np_trusted_path(whole, sizeof(whole), "file", &err), NP_OK);
	assert_int_equal(fchdir(here), 0);
	close(here);
	assert_string_equal(whole, in(wanted, p->ours, "file"));
	assert_opens(whole, NP_TRUSTED_SECRET, wanted);
	assert_int_equal(np_trusted_path(whole, sizeof(whole), "", &err), NP_EUSAGE);
	assert_int_equal(np_trusted_path(whole, 8, "/longer-than-that", &err), NP_EUSAGE);
}

/* A shell's 3<FILE: such a name is a link whose text is no path, and the kernel's own. */
TEST_WITH(descriptors_are_files, set_up, tear_down)
{
	struct place *p = *state;
	char path[ROOM];
	FREED_BY(close_fd) int fd = open(p->target, O_RDONLY | O_CLOEXEC);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_opens(path, NP_TRUSTED_SECRET, p->target);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	assert_opens(path, NP_TRUSTED_RULES, p->target);
}

TEST_WITH(a_log_is_made_and_nothing_else_is, set_up, tear_down)
{
	struct place *p = *state;
	const char *dirs[] = { p->all, p->ours };
	struct np_err err;
	struct stat st;
	char path[ROOM];

	for (size_t d = 0; d < LEN(dirs); d++) {
		in(path, dirs[d], "new");
		assert_int_equal(np_trusted_open(path, NP_TRUSTED_RULES, &err), -1);
		assert_int_equal(err.sys, ENOENT);
		assert_int_equal(np_trusted_open(path, NP_TRUSTED_SECRET, &err), -1);
		assert_int_equal(np_trusted_open(path, NP_TRUSTED_DIR, &err), -1);
		assert_int_equal(stat(path, &st), -1);
	}
}

/* ---- What is not ---- */

TEST_WITH(what_is_no_file_is_refused, set_up, tear_down)
{
	struct place *p = *state;
	struct np_err err;
	char path[ROOM];

	assert_int_equal(mkfifo(in(path, p->ours, "fifo"), 0600), 0);
	assert_all_refused(path, "not a regular file"); /* at once: nobody has its other end */
	assert_all_refused("/dev/null", "not a regular file");
	assert_all_refused(p->ours, "not a regular file");
	assert_all_refused("", "not a name of a file");
	assert_all_refused("/tmp/", "not a name of a file");
	assert_int_equal(np_trusted_open("/", NP_TRUSTED_RULES, &err), -1);
	assert_int_equal(np_trusted_open(p->target, NP_TRUSTED_DIR, &err), -1);
	assert_int_equal(err.sys, ENOTDIR);
	assert_int_equal(symlink("loop", in(path, p->ours, "loop")), 0);
	assert_int_equal(np_trusted_open(path, NP_TRUSTED_RULES, &err), -1);
	assert_int_equal(err.sys, ELOOP);
	assert_int_equal(np_trusted_open("/nosuch/file", NP_TRUSTED_RULES, &err), -1);
	assert_int_equal(err.sys, ENOENT);
	assert_has(err.msg, "/nosuch");
}

TEST_WITH(files_that_everybody_may_write_are_refused, set_up, tear_down)
{
	struct place *p = *state;
	char path[ROOM];

	make_file(in(path, p->ours, "file"), 0666);
	assert_refused(path, NP_TRUSTED_RULES, "chmod o-w");
	assert_refused(path, NP_TRUSTED_SECRET, "chmod 600");
	assert_int_equal(chmod(path, 0664), 0);
	assert_opens(path, NP_TRUSTED_RULES, path);
	for (mode_t mode = 0; mode <= 0177; mode++) {
		assert_int_equal(chmod(path, 0400 | mode), 0);
		if ((mode & 0066) != 0) {
			assert_refused(path, NP_TRUSTED_SECRET, "chmod 600");
		} else {
			assert_opens(path, NP_TRUSTED_SECRET, path);
		}
	}
}

/* In /tmp, say: whoever is first has the name. */
TEST_WITH(what_others_planted_is_refused, set_up, tear_down)
{
	struct place *p = *state;
	char path[ROOM], below[ROOM];

	needs_root();
	make_file(in(path, p->all, "file"), 0644);
	give_away(path);
	assert_all_refused(path, "another user (4711)");
	assert_int_equal(symlink(p->target, in(path, p->all, "link")), 0);
	give_away(path);
	assert_all_refused(path, "a symbolic link that user 4711 owns");
	assert_int_equal(symlink("/nosuch", in(path, p->all, "dangling")), 0);
	give_away(path);
	assert_refused(path, NP_TRUSTED_RULES, "a symbolic link that user 4711 owns");
	assert_int_equal(symlink(p->ours, in(path, p->all, "way")), 0);
	give_away(path);
	assert_refused(path, NP_TRUSTED_DIR, "a symbolic link that user 4711 owns");
	make_file(in(below, p->ours, "file"), 0600);
	assert_all_refused(in(below, path, "file"), "a symbolic link that user 4711 owns");
	assert_int_equal(mkdir(in(path, p->all, "dir"), 0755), 0);
	give_away(path);
	assert_refused(path, NP_TRUSTED_DIR, "another user (4711)");
	make_file(in(below, path, "file"), 0600);
	assert_all_refused(below, "another user (4711)");
}

TEST_WITH(files_with_a_second_name_are_refused_where_others_give_names, set_up, tear_down)
{
	struct place *p = *state;
	char path[ROOM];

	assert_int_equal(link(p->target, in(path, p->all, "hard")), 0);
	assert_all_refused(path, "a hard link");
	assert_int_equal(link(p->target, in(path, p->ours, "hard")), 0);
	assert_opens(path, NP_TRUSTED_RULES, path);
	if (geteuid() == 0) {
		give_away(p->ours);
		assert_all_refused(path, "a hard link");
	}
}

/* That of a daemon's user, in which root opens the access file before it becomes him. */
TEST_WITH(a_directory_of_another_users_holds_his_files, set_up, tear_down)
{
	struct place *p = *state;
	char path[ROOM], link[ROOM];

	needs_root();
	give_away(p->ours);
	make_file(in(path, p->ours, "log"), 0640);
	assert_opens(path, NP_TRUSTED_RULES, path);
	give_away(path);
	assert_opens(path, NP_TRUSTED_RULES, path);
	assert_refused(path, NP_TRUSTED_SECRET, "another user");
	assert_int_equal(symlink(p->target, in(link, p->ours, "link")), 0);
	assert_opens(link, NP_TRUSTED_RULES, p->target);
	give_away(link);
	assert_refused(link, NP_TRUSTED_RULES, "a symbolic link that user 4711 owns");
}

/* ---- Who opens that way ---- */

TEST_WITH(rules_that_everybody_may_write_are_not_read, set_up, tear_down)
{
	struct place *p = *state;
	struct ns_access access = { .allows = 0 };
	struct np_err err;
	char path[ROOM];

	make_file(in(path, p->ours, "rules"), 0666);
	assert_int_equal(ns_access_read(&access, path, &err), NP_EUSAGE);
	assert_has(err.msg, "chmod o-w");
	assert_int_equal(access.denies, 0);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(ns_access_read(&access, path, &err), NP_OK);
	assert_int_equal(access.denies, 1);
}

/* ---- What a command writes for its user ---- */

static const enum np_output_how hows[] = { NP_OUTPUT_IN_PLACE, NP_OUTPUT_REPLACE };

static void
assert_holds(const char *path, const char *want)
{
	char have[64];

	read_file(path, have, sizeof(have));
	assert_string_equal(have, want);
}

/* Something that is longer than what is written, and is gone afterwards. */
static void
assert_written(const char *path, enum np_output_how how)
{
	struct np_err err = { .code = NP_OK };
	struct np_output o;

	assert_int_equal(np_output_check(path, how, &err), NP_OK);
	fail_if(np_output_open(&o, path, how, &err) != NP_OK, "%s", err.msg);
	assert_int_equal(fcntl(o.fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(o.fd, "new", 3), 3);
	assert_int_equal(np_output_end(&o, 0), 0);
}

static void
assert_not_written(const char *path, const char *says)
{
	for (size_t i = 0; i < LEN(hows); i++) {
		struct np_err err = { .code = NP_OK };
		struct np_output o;

		assert_int_equal(np_output_check(path, hows[i], &err), NP_EUSAGE);
		assert_has(err.msg, says);
		assert_has(err.msg, path);
		assert_int_equal(np_output_open(&o, path, hows[i], &err), NP_EUSAGE);
		assert_has(err.msg, says);
		assert_int_equal(o.fd, -1);
	}
}

TEST_WITH(outputs_are_written_wherever_they_are_ours, set_up, tear_down)
{
	struct place *p = *state;
	const char *dirs[] = { p->all, p->ours };
	char path[ROOM], link[ROOM];
	struct stat old, new;

	umask(022);
	for (size_t d = 0; d < LEN(dirs); d++) {
		assert_int_equal(symlink("file", in(link, dirs[d], "link")), 0);
		for (size_t i = 0; i < LEN(hows); i++) {
			assert_written(link, hows[i]); /* it leads nowhere yet */
			assert_holds(in(path, dirs[d], "file"), "new");
			assert_int_equal(lstat(link, &old) | stat(path, &new), 0);
			assert_true(S_ISLNK(old.st_mode));
			assert_int_equal(new.st_mode, S_IFREG | 0644);
			assert_int_equal(unlink(path), 0);
			make_file(path, 0640);
			assert_int_equal(stat(path, &old), 0);
			assert_written(path, hows[i]);
			assert_holds(path, "new");
			assert_int_equal(stat(path, &new), 0);
			assert_int_equal(new.st_mode, S_IFREG | 0640);
			assert_int_equal(new.st_ino != old.st_ino, hows[i] == NP_OUTPUT_REPLACE);
			assert_int_equal(unlink(path), 0);
		}
		assert_int_equal(names_in(dirs[d]), 1);
	}
}

TEST_WITH(pipes_and_descriptors_are_written_to, set_up, tear_down)
{
	struct place *p = *state;
	char path[ROOM];
	int fd;

	for (size_t i = 0; i < LEN(hows); i++) {
		assert_int_equal(mkfifo(in(path, p->all, "fifo"), 0600), 0);
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		assert_written(path, hows[i]);
		close(fd);
		assert_int_equal(unlink(path), 0);
		assert_written("/dev/null", hows[i]);
		make_file(in(path, p->ours, "file"), 0600);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_int_equal(unlink(path), 0); /* no other name than the descriptor's */
		snprintf(path, sizeof(path), "/dev/fd/%d", fd);
		assert_written(path, hows[i]);
		assert_holds(path, "new");
		close(fd);
		assert_int_equal(names_in(p->all) + names_in(p->ours), 0);
	}
}

TEST_WITH(outputs_that_others_planted_are_not_written, set_up, tear_down)
{
	struct place *p = *state;
	char path[ROOM], below[ROOM];

	needs_root();
	make_file(in(path, p->all, "file"), 0666);
	give_away(path);
	assert_not_written(path, "another user (4711)");
	assert_holds(path, text);
	assert_int_equal(symlink(p->target, in(path, p->all, "link")), 0);
	give_away(path);
	assert_not_written(path, "a symbolic link that another user (4711) owns");
	assert_int_equal(symlink(in(below, p->ours, "new"), in(path, p->all, "dangling")), 0);
	give_away(path);
	assert_not_written(path, "a symbolic link that another user (4711) owns");
	assert_int_equal(symlink(p->ours, in(path, p->all, "way")), 0);
	give_away(path);
	assert_not_written(in(below, path, "new"), "a symbolic link that another user (4711) owns");
	assert_int_equal(mkfifo(in(path, p->all, "fifo"), 0666), 0);
	give_away(path);
	assert_not_written(path, "another user (4711)"); /* at once: nobody has its other end */
	assert_int_equal(mkdir(in(path, p->all, "dir"), 0755), 0);
	give_away(path);
	assert_not_written(in(below, path, "new"), "another user (4711)");
	assert_int_equal(link(p->target, in(path, p->all, "hard")), 0);
	assert_not_written(path, "a hard link");
	assert_holds(p->target, text);
	assert_int_equal(names_in(p->ours), 0);
	assert_int_equal(names_in(p->all), 7);
}

/* As with sudo, in the user's directory. */
TEST_WITH(outputs_follow_the_links_of_a_directorys_owner, set_up, tear_down)
{
	struct place *p = *state;
	const char *dirs[] = { p->ours, p->all };
	char link[ROOM];
	struct stat st;

	needs_root();
	for (size_t d = 0; d < LEN(dirs); d++) {
		assert_int_equal(symlink(p->target, in(link, dirs[d], "link")), 0);
		give_away(link);
		give_away(dirs[d]);
		for (size_t i = 0; i < LEN(hows); i++) {
			assert_written(link, hows[i]);
			assert_holds(p->target, "new");
			assert_int_equal(lstat(link, &st), 0);
			assert_true(S_ISLNK(st.st_mode));
		}
	}
}

TEST_WITH(a_name_that_is_taken_in_the_meantime_is_replaced, set_up, tear_down)
{
	struct place *p = *state;
	struct np_err err = { .code = NP_OK };
	struct np_output o;
	struct stat st;
	char path[ROOM];

	assert_int_equal(np_output_open(&o, in(path, p->all, "new"), NP_OUTPUT_REPLACE, &err), 0);
	assert_int_equal(symlink(p->target, path), 0);
	assert_int_equal(write(o.fd, "new", 3), 3);
	assert_int_equal(np_output_end(&o, 0), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_holds(p->target, text);
	assert_int_equal(np_output_open(&o, path, NP_OUTPUT_REPLACE, &err), 0);
	assert_int_equal(np_output_end(&o, ENOSPC), ENOSPC);
	assert_holds(path, "new"); /* the one that was complete */
	assert_int_equal(names_in(p->all), 1);
}

TEST_MAIN()
