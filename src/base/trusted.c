#include "base/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/text.h"

enum { LINKS = 40 }; /* follow at most as many links as the kernel does */

struct walk {
	int dir;             /* the directory that has the next name */
	struct stat in;      /* of this directory */
	char rest[PATH_MAX]; /* the path from the next name on */
	char at[PATH_MAX];   /* the path so far, for messages */
	unsigned links;      /* how many were followed */
	enum np_trusted kind;
	struct np_trusted_spot *spot; /* to be filled for an output */
};

/* Is the user root or us, and so trusted? */
static bool
is_root_or_us(uid_t user)
{
	return user == 0 || user == geteuid();
}

static bool
is_world_writable(const struct stat *dir)
{
	return (dir->st_mode & S_IWOTH) != 0;
}

/* Refuse links of other users, and anything of theirs in a world-writable directory. For an
 * output, the directory's owner is trusted too, and so are links in other directories. */
static int
check_owner(const struct walk *w, const struct stat *st, struct np_err *err)
{
	bool is_link = S_ISLNK(st->st_mode), is_output = w->kind == NP_TRUSTED_OUTPUT;

	if (is_root_or_us(st->st_uid) || (is_output && st->st_uid == w->in.st_uid)) {
		return NP_OK;
	}
	if (is_link && is_output && is_world_writable(&w->in)) {
		return np_fail(err, NP_EUSAGE, 0,
			       "%.200s is a symbolic link that another user (%ld) owns, in a "
			       "directory where everybody may create files (try another "
			       "directory, or remove the link)",
			       w->at, (long)st->st_uid);
	}
	if (is_link && !is_output) {
		return np_fail(
		    err, NP_EUSAGE, 0,
		    "%.200s is a symbolic link that user %ld owns (try the name that it points to)",
		    w->at, (long)st->st_uid);
	}
	if (is_world_writable(&w->in)) {
		return np_fail(err, NP_EUSAGE, 0,
			       "%.200s belongs to another user (%ld), in a directory where "
			       "everybody may create files (try another directory, or chown %ld)",
			       w->at, (long)st->st_uid, (long)geteuid());
	}
	return NP_OK;
}

/* Another user may have made a hard link to root's file: root then owns the file by that name. */
static int
check_hard_links(const struct stat *st, struct np_err *err)
{
	return st->st_nlink > 1
		   ? np_fail(err, NP_EUSAGE, 0,
			     "the file has a second name (a hard link), which another user may "
			     "have made (try a copy of the file)")
		   : NP_OK;
}

/* Refuse a file that another user may have chosen, read or written. */
static int
check_file(const struct walk *w, const struct stat *st, struct np_err *err)
{
	if (!S_ISREG(st->st_mode)) {
		return np_fail(err, NP_EUSAGE, 0, "not a regular file");
	}
	if ((is_world_writable(&w->in) || !is_root_or_us(w->in.st_uid)) &&
	    check_hard_links(st, err) != NP_OK) {
		return err->code;
	}
	if (w->kind == NP_TRUSTED_SECRET) {
		if (!is_root_or_us(st->st_uid)) {
			return np_fail(err, NP_EUSAGE, 0,
				       "the file belongs to another user (try chown %ld)",
				       (long)geteuid());
		}
		if ((st->st_mode & 066) != 0) {
			return np_fail(err, NP_EUSAGE, 0,
				       "others may read or write the file (try chmod 600)");
		}
		return NP_OK;
	}
	if ((st->st_mode & S_IWOTH) != 0) {
		return np_fail(err, NP_EUSAGE, 0,
			       "everybody may write to the file (try chmod o-w)");
	}
	return NP_OK;
}

/* Fail with errno `sys` at the part of the path that the walk has reached. */
static int
fail_at(const struct walk *w, int sys, struct np_err *err)
{
	return np_fail(err, NP_ESYS, sys, "open %.300s", w->at);
}

/* Go on in `dir`, just opened, which the walk closes; if it is -1, errno says why. */
static int
walk_enter(struct walk *w, int dir, struct np_err *err)
{
	np_fds_close(w->dir);
	w->dir = dir;
	if (dir < 0 || fstat(dir, &w->in) != 0) {
		return fail_at(w, errno, err);
	}
	return NP_OK;
}

/* Start at the root or in the working directory, as the path says. */
static int
walk_begin(struct walk *w, struct np_err *err)
{
	const char *from = w->rest[0] == '/' ? "/" : ".";

	if (w->rest[0] == '/') {
		strcpy(w->at, "/");
	}
	return walk_enter(w, open(from, O_PATH | O_DIRECTORY | O_CLOEXEC), err);
}

/* Take the next name off the rest of the path. False at its end, or if a name is too long (err). */
static bool
next_name(struct walk *w, char name[NAME_MAX + 1], bool *is_last, struct np_err *err)
{
	size_t skip = strspn(w->rest, "/"), len = strcspn(w->rest + skip, "/"), at = strlen(w->at);

	if (len == 0) {
		return false;
	}
	if (len > NAME_MAX || at + len + 2 > sizeof(w->at)) {
		np_fail(err, NP_ESYS, ENAMETOOLONG, "open %.300s", w->rest);
		return false;
	}
	memcpy(name, w->rest + skip, len);
	name[len] = '\0';
	snprintf(w->at + at, sizeof(w->at) - at, "%s%s", at > 0 && w->at[at - 1] != '/' ? "/" : "",
		 name);
	memmove(w->rest, w->rest + skip + len, strlen(w->rest + skip + len) + 1);
	*is_last = w->rest[strspn(w->rest, "/")] == '\0';
	return true;
}

/* Is the directory in /proc? The texts of links there are no paths (/proc/self/fd/3). */
static bool
is_the_kernels(int dir)
{
	struct statfs fs;

	return fstatfs(dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Put the link's text before the rest of the path, and take its name off the path so far. */
static int
follow_link(struct walk *w, int link, struct np_err *err)
{
	char to[PATH_MAX];
	ssize_t n = readlinkat(link, "", to, sizeof(to) - 1);
	size_t rest = strlen(w->rest);
	char *slash;

	if (n < 0 || ++w->links > LINKS) {
		return fail_at(w, n < 0 ? errno : ELOOP, err);
	}
	if ((size_t)n + 1 + rest >= sizeof(w->rest)) {
		return fail_at(w, ENAMETOOLONG, err);
	}
	memmove(w->rest + n + 1, w->rest, rest + 1);
	memcpy(w->rest, to, (size_t)n);
	w->rest[n] = '/';
	if (rest == 0) {
		w->rest[n] = '\0';
	}
	slash = strrchr(w->at, '/');
	*(slash != NULL ? slash + (slash == w->at) : w->at) = '\0';
	return w->rest[0] == '/' ? walk_begin(w, err) : NP_OK;
}

static int
open_flags(enum np_trusted kind)
{
	return O_RDONLY | O_CLOEXEC |
	       (kind == NP_TRUSTED_DIR ? O_DIRECTORY : O_NONBLOCK | O_NOCTTY);
}

/* Open the last part, no link. Check before, as opening a device may act, and after. -1: err. */
static int
open_last(const struct walk *w, const char *name, const struct stat *seen, int more_flags,
	  struct np_err *err)
{
	struct stat st;
	int fd;

	if (w->kind != NP_TRUSTED_DIR && check_file(w, seen, err) != NP_OK) {
		return -1;
	}
	fd = openat(w->dir, name, open_flags(w->kind) | more_flags);
	if (fd < 0 || fstat(fd, &st) != 0) {
		fail_at(w, errno, err);
	} else if (check_owner(w, &st, err) == NP_OK &&
		   (w->kind == NP_TRUSTED_DIR || check_file(w, &st, err) == NP_OK)) {
		return fd;
	}
	np_fds_close(fd);
	return -1;
}

/* Fill the place of an output, which gets the walk's directory. seen NULL: the name is free. */
static int
take_spot(struct walk *w, const char *name, const struct stat *seen, struct np_err *err)
{
	struct np_trusted_spot *s = w->spot;

	if (seen != NULL && S_ISDIR(seen->st_mode)) {
		return fail_at(w, EISDIR, err);
	}
	if (seen != NULL && S_ISREG(seen->st_mode) && is_world_writable(&w->in) &&
	    check_hard_links(seen, err) != NP_OK) {
		return err->code;
	}
	s->is_there = seen != NULL;
	s->is_the_kernels = is_the_kernels(w->dir);
	s->seen = seen != NULL ? *seen : (struct stat){ .st_mode = 0 };
	memcpy(s->name, name, strlen(name) + 1); /* next_name() has checked its length */
	s->dir = w->dir;
	w->dir = -1;
	return NP_OK;
}

/* Walk one name further. Returns 1 to go on, 0 at the end (*fd is set), -1 with err. */
static int
walk_step(struct walk *w, const char *name, bool is_last, int *fd, struct np_err *err)
{
	int no_follow = is_the_kernels(w->dir) ? 0 : O_NOFOLLOW, rc = -1;
	int at = openat(w->dir, name, O_PATH | O_CLOEXEC | no_follow);
	struct stat st;

	if (at < 0 && errno == ENOENT && is_last && w->kind == NP_TRUSTED_OUTPUT) {
		return take_spot(w, name, NULL, err) == NP_OK ? 0 : -1;
	}
	if (at < 0) {
		fail_at(w, errno, err);
		return -1;
	}
	if (fstat(at, &st) != 0) {
		fail_at(w, errno, err);
	} else if (check_owner(w, &st, err) == NP_OK) {
		if (S_ISLNK(st.st_mode)) {
			rc = follow_link(w, at, err) == NP_OK ? 1 : -1;
		} else if (is_last && w->kind == NP_TRUSTED_OUTPUT) {
			rc = take_spot(w, name, &st, err) == NP_OK ? 0 : -1;
		} else if (is_last) {
			*fd = open_last(w, name, &st, no_follow, err);
			rc = *fd >= 0 ? 0 : -1;
		} else {
			return walk_enter(w, at, err) == NP_OK ? 1 : -1; /* the walk closes it */
		}
	}
	close(at);
	return rc;
}

/* Walk the whole path. Returns the file's descriptor, or -1: see err; NP_OK: the spot is set. */
static int
walk_path(struct walk *w, const char *path, struct np_err *err)
{
	size_t len = strlen(path);
	char name[NAME_MAX + 1];
	bool is_last = false;
	int fd = -1, rc = 1;

	*err = (struct np_err){ .code = NP_OK };
	if (len == 0 || (w->kind != NP_TRUSTED_DIR && path[len - 1] == '/') ||
	    np_text_copy(w->rest, sizeof(w->rest), path) != 0) {
		np_fail(err, NP_EUSAGE, 0, "'%.60s' is not a name of a file", path);
		return -1;
	}
	if (walk_begin(w, err) == NP_OK) {
		while (rc > 0 && next_name(w, name, &is_last, err)) {
			rc = walk_step(w, name, is_last, &fd, err);
		}
	}
	if (rc > 0 && err->code == NP_OK) { /* "/", or a link to it */
		fd = w->kind == NP_TRUSTED_DIR ? openat(w->dir, ".", open_flags(w->kind)) : -1;
		if (fd < 0) {
			fail_at(w, w->kind == NP_TRUSTED_DIR ? errno : EISDIR, err);
		}
	}
	np_fds_close(w->dir);
	if (err->code != NP_OK && strstr(err->msg, path) == NULL) {
		char shown[301];

		snprintf(shown, sizeof(shown), "%s", path);
		np_fail_in(err, shown);
	}
	return fd;
}

int
np_trusted_open(const char *path, enum np_trusted kind, struct np_err *err)
{
	struct walk w = { .dir = -1, .kind = kind };
	struct np_err ignored;

	return walk_path(&w, path, err != NULL ? err : &ignored);
}

int
np_trusted_find(const char *path, struct np_trusted_spot *spot, struct np_err *err)
{
	struct walk w = { .dir = -1, .kind = NP_TRUSTED_OUTPUT, .spot = spot };

	*spot = (struct np_trusted_spot){ .dir = -1 };
	walk_path(&w, path, err);
	return err->code;
}

int
np_trusted_path(char *out, size_t size, const char *path, struct np_err *err)
{
	char here[PATH_MAX] = "";
	bool is_whole = path[0] == '/';

	if (!is_whole && getcwd(here, sizeof(here)) == NULL) {
		return np_fail(err, NP_ESYS, errno, "the working directory");
	}
	if (path[0] == '\0' ||
	    (size_t)snprintf(out, size, "%s%s%s", here, is_whole ? "" : "/", path) >= size) {
		return np_fail(err, NP_EUSAGE, 0, "'%.60s' is not a name of a file", path);
	}
	return NP_OK;
}
