/*
 * Sockets of the UNIX domain (unix(7)). One that others must find gets a name in a new directory
 * (mkdtemp(3)); both are removed when the test closes, or by a keeper process if the client is
 * killed. The directory's name has the process id: a daemon finds what a killed session left.
 */
#include "bench/transport/unix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fds.h"
#include "bench/bench.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"

enum {
	MAX_PAYLOAD = 65507, /* netperf has the limit of UDP here, too */
	PATH_SIZE = sizeof(((struct sockaddr_un *)0)->sun_path),
	PREFIX_MAX = 24, /* "netperf-PID." */
	RANDOM = 6       /* characters that mkdtemp(3) chooses */
};

/* The start of the directory's name; returns its length. A message has only 32 bytes for a path. */
static int
prefix_of(pid_t pid, char out[PREFIX_MAX])
{
	return snprintf(out, PREFIX_MAX, "netperf-%ld.", (long)pid);
}

/* The path in a UNIX address. */
static const char *
path_in(const struct np_addr *a)
{
	return ((const struct sockaddr_un *)&a->sa)->sun_path;
}

/* The path of socket `number`: "first", "first1" and so on. False: it is too long. */
static bool
path_of(const char *first, uint32_t number, char out[PATH_SIZE])
{
	return number > 0 ? snprintf(out, PATH_SIZE, "%s%u", first, number) < PATH_SIZE
			  : snprintf(out, PATH_SIZE, "%s", first) < PATH_SIZE;
}

bool
np_unix_another(const struct np_addr *first, uint32_t number, struct np_addr *out)
{
	char path[PATH_SIZE];
	struct np_err ignored;

	return path_of(path_in(first), number, path) &&
	       np_addr_make_path(out, path, &ignored) == NP_OK;
}

/* Remove the names of `count` sockets, and the directory that was made for them. */
static void
remove_names(const char *first, uint32_t count)
{
	char path[PATH_SIZE];

	for (uint32_t i = count; i-- > 0;) {
		if (path_of(first, i, path)) {
			unlink(path);
		}
	}
	*strrchr(path, '/') = '\0'; /* of the first, which came last */
	rmdir(path);
}

/* Remove directory `name` of /tmp, with sockets only; it must be this user's, and no link. */
static void
sweep(int tmp, const char *name)
{
	int fd = openat(tmp, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct stat st;

	if (dir == NULL) {
		np_fds_close(fd);
		return;
	}
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid()) {
		for (struct dirent *e; (e = readdir(dir)) != NULL;) {
			if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			    S_ISSOCK(st.st_mode)) {
				unlinkat(fd, e->d_name, 0);
			}
		}
		unlinkat(tmp, name, AT_REMOVEDIR);
	}
	closedir(dir);
}

void
np_unix_sweep(pid_t dead)
{
	DIR *tmp = opendir(P_tmpdir);
	char prefix[PREFIX_MAX];
	size_t len = (size_t)prefix_of(dead, prefix);

	for (struct dirent *e; tmp != NULL && (e = readdir(tmp)) != NULL;) {
		if (strncmp(e->d_name, prefix, len) == 0 && strlen(e->d_name) == len + RANDOM) {
			sweep(dirfd(tmp), e->d_name);
		}
	}
	if (tmp != NULL) {
		closedir(tmp);
	}
}

/* An endpoint's named sockets, to be removed with their directory. */
struct name {
	uint32_t count; /* sockets with names there; some may not exist yet */
	pid_t keeper;   /* process that removes them if this one is killed; 0: there is none */
	int keeper_fd;  /* a pipe: the keeper acts when this process closes it, or is killed */
};

/*
 * Start a process that removes the names if this client is killed, or do without. In a new session
 * it is out of reach of signals to the client's process group.
 */
static void
start_keeper(struct name *name, const char *path)
{
	int ends[2];
	char byte;

	if (pipe2(ends, O_CLOEXEC) != 0) {
		return;
	}
	name->keeper = fork();
	if (name->keeper == 0) {
		sigset_t all;

		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
		setsid();
		np_fds_close_except(ends, 1); /* all but the read end, and 0 to 2 */
		for (int fd = 0; fd <= 2; fd++) {
			close(fd);
		}
		while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
		}
		remove_names(path, name->count);
		_exit(0);
	}
	close(ends[0]);
	if (name->keeper < 0) {
		name->keeper = 0;
		close(ends[1]);
		return;
	}
	name->keeper_fd = ends[1];
}

/* Bind to a name in a new directory in `where`, with rights for another user's connect(2). */
static int
bind_fresh(int fd, const char *where, struct np_addr *out, struct np_err *err)
{
	char path[PATH_SIZE], prefix[PREFIX_MAX];
	size_t dir_len = strlen(where) + 1 + (size_t)prefix_of(getpid(), prefix) + RANDOM;

	if (dir_len + sizeof("/s") > sizeof(path)) {
		return np_usage(err, "-p: '%s' is too long for the path of a socket", where);
	}
	snprintf(path, sizeof(path), "%s/%sXXXXXX", where, prefix);
	if (mkdtemp(path) == NULL) {
		return np_fail(err, NP_ESYS, errno, "make a directory for a socket in %s", where);
	}
	snprintf(path + dir_len, sizeof(path) - dir_len, "/s");
	if (np_addr_make_path(out, path, err) == NP_OK) {
		bool ok = bind(fd, (const struct sockaddr *)&out->sa, out->len) == 0 &&
			  chmod(path, 0666) == 0;
		int why = errno;

		path[dir_len] = '\0';
		if (ok && chmod(path, 0711) == 0) {
			return NP_OK;
		}
		np_fail(err, NP_ESYS, ok ? errno : why, "make a socket in %s", path);
		path[dir_len] = '/';
	}
	remove_names(path, 1);
	return err->code;
}

/* A daemon needs a name to connect to; a client only to be answered by datagrams. */
static bool
needs_name(const struct np_plan *p)
{
	return !p->active || (!p->transport->connected && p->pattern->sized);
}

/* np_transport.open: what it names in the file system, unix_close() removes. */
static int
unix_open(struct np_run *run, struct np_err *err)
{
	const struct np_plan *p = run->plan;
	int fd = np_sock_open(AF_UNIX, p->transport->socktype, 0, &run->end.opts, NULL, err);

	run->end.local.sa.ss_family = AF_UNIX;
	if (fd < 0) {
		return err->code;
	}
	*(p->active || !p->transport->connected ? &run->conn->fd : &run->end.listen_fd) = fd;
	np_endpoint_buffers(run->plan->transport, fd, &run->end.sndbuf, &run->end.rcvbuf);
	if (needs_name(p)) {
		struct name *name = calloc(1, sizeof(*name));

		if (name == NULL) {
			return np_fail(err, NP_ESYS, ENOMEM, "memory for the name of a socket");
		}
		if (bind_fresh(fd, p->unix_dir[0] != '\0' ? p->unix_dir : P_tmpdir, &run->end.local,
			       err) != NP_OK) {
			free(name);
			return err->code;
		}
		run->end.state = name;
		name->count = p->transport->connected ? 1 : p->flows;
		if (p->active) {
			start_keeper(name, path_in(&run->end.local));
		}
	}
	return run->end.listen_fd >= 0 ? np_endpoint_listen(p, fd, &run->end.local, err) : NP_OK;
}

/* Open a further socket. If peers must find it, name it beside the first one, for any user. */
static int
unix_another(struct np_run *run, uint32_t number, struct np_err *err)
{
	const struct np_plan *p = run->plan;
	int fd = np_sock_open(AF_UNIX, p->transport->socktype, 0, &run->end.opts, NULL, err);
	struct np_addr at;

	if (fd < 0 || !needs_name(p)) {
		return fd;
	}
	if (!np_unix_another(&run->end.local, number, &at)) {
		np_usage(err, "-p: '%s' is too long for the paths of %u sockets", p->unix_dir,
			 p->flows);
	} else if (bind(fd, (const struct sockaddr *)&at.sa, at.len) != 0 ||
		   chmod(path_in(&at), 0666) != 0) {
		np_fail(err, NP_ESYS, errno, "make a socket %s", path_in(&at));
	} else {
		return fd;
	}
	close(fd);
	return -1;
}

/* A client connects even for datagrams; the daemon answers the sender of each. */
static int
unix_establish(struct np_run *run, struct np_err *err)
{
	int rc;

	if (!run->plan->active) {
		return run->plan->transport->connected ? np_endpoint_accept(run, run->conn, err)
						       : NP_OK;
	}
	rc = np_endpoint_connect(run, err);
	if (rc != NP_OK && (err->sys == ENOENT || err->sys == ECONNREFUSED)) {
		np_fail(err, NP_ESYS, err->sys,
			"connect to %s (does netserver run on this machine, and see the same "
			"files?)",
			NP_ADDR_STR(&run->end.peer));
	}
	return rc;
}

/* np_transport.close: the keeper has to end first, or it would remove the names, too. */
static void
unix_close(struct np_run *run)
{
	if (run->end.state != NULL) {
		struct name *name = run->end.state;

		if (name->keeper > 0) {
			kill(name->keeper, SIGKILL);
			while (waitpid(name->keeper, NULL, 0) < 0 && errno == EINTR) {
			}
			close(name->keeper_fd);
			name->keeper = 0;
		}
		remove_names(path_in(&run->end.local), name->count);
		free(name);
		run->end.state = NULL;
	}
}

static void
unix_too_long(const struct np_run *run, struct np_err *err)
{
	np_fail(err, NP_EUSAGE, EMSGSIZE,
		"%zu bytes do not fit into a datagram with a send buffer of %d (try a smaller -%c "
		"or a larger -s)",
		run->worker->send_size, run->end.sndbuf, run->plan->pattern->sized ? 'r' : 'm');
}

static const char no_capture[] = "tests of the UNIX domain send no packets";

/* netperf's words. */
static const char no_control[] = "The UNIX tests do not know how to run with no control connection";

/* Common to both types. Connected: else the kernel would look up the path for every datagram. */
#define UNIX                                                                                       \
	.name = "UNIX", .family = AF_UNIX, .reliable = true, .admit = NP_ADMIT_HERE,               \
	.pinned = true, .passes_fds = true, .packets.no_capture = no_capture,                      \
	.no_control = no_control, .scanner = NP_SCAN_UNIX, .open = unix_open,                      \
	.another = unix_another, .establish = unix_establish, .message.too_long = unix_too_long,   \
	.close = unix_close

const struct np_transport np_transport_unix_stream = {
	UNIX,
	.socktype = SOCK_STREAM,
	.connected = true,
};

const struct np_transport np_transport_unix_dgram = {
	UNIX,
	.socktype = SOCK_DGRAM,
	.bounded = true,
	.message.max = MAX_PAYLOAD,
};
