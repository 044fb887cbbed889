#include "tests/link/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include "base/fds.h"

int
np_ns_open(struct np_ns *ns, const char *path, struct np_err *err)
{
	ns->path = path;
	ns->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (ns->fd < 0) {
		return np_fail(err, NP_ESYS, errno, "open %s", path);
	}
	return NP_OK;
}

int
np_ns_enter(const struct np_ns *ns, struct np_err *err)
{
	if (setns(ns->fd, CLONE_NEWNET) != 0) {
		return np_fail(err, NP_ESYS, errno, "enter %s", ns->path);
	}
	return NP_OK;
}

bool
np_ns_there(const struct np_ns *ns)
{
	struct stat mine, named;

	return fstat(ns->fd, &mine) == 0 && stat(ns->path, &named) == 0 &&
	       mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

void
np_ns_close(struct np_ns *ns)
{
	np_fds_close(ns->fd);
	ns->fd = -1;
}
