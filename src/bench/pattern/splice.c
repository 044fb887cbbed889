#include "bench/pattern/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/pattern/stream.h"
#include "bench/run.h"

/* The way from the socket: into the pipe, out of the pipe, into nothing. */
struct drain {
	int in, out, null;
};

/* The loop's own descriptors: the table of those is its worker's. */
static bool
drain_open(struct drain *d, size_t size)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) != 0) {
		return false;
	}
	d->out = pair[0];
	d->in = pair[1];
	d->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	/* A call moves no more than the pipe holds; where it can't be made larger, so be it. */
	if (d->null >= 0 && size <= INT32_MAX) {
		(void)fcntl(d->in, F_SETPIPE_SZ, (int)size);
	}
	return d->null >= 0;
}

static void
drain_close(const struct drain *d)
{
	for (int i = 0; i < 3; i++) {
		int fd = i == 0 ? d->in : i == 1 ? d->out : d->null;

		if (fd >= 0) {
			close(fd);
		}
	}
}

/* What is in the pipe leaves it at once; a signal in between changes nothing. */
static int
drain_empty(const struct drain *d, ssize_t left)
{
	while (left > 0) {
		ssize_t n = splice(d->out, NULL, d->null, NULL, (size_t)left, SPLICE_F_MOVE);

		if (n == 0 || (n < 0 && errno != EINTR)) {
			return n < 0 ? -errno : -EIO;
		}
		left -= n > 0 ? n : 0;
	}
	return 0;
}

/* Not for this kind of socket or file: nothing has been moved when the kernel says so. */
static bool
is_unsupported(int error)
{
	return error == -EINVAL || error == -ENOSYS || error == -EOPNOTSUPP;
}

static int
receive(struct np_run *run, const struct drain *d)
{
	uint64_t received = 0, receives = 0, then = run->window.started_ns;
	int rc = 0;

	np_pace_begin(run);
	while (!np_stopped(run->stop) && rc == 0) {
		ssize_t n =
		    splice(run->conn->fd, NULL, d->in, NULL, run->worker.recv_size, SPLICE_F_MOVE);

		if (n == 0) {
			run->hung_up = true;
			break;
		}
		if (n < 0) {
			rc = errno == EINTR ? 0 : -errno;
			continue;
		}
		np_show(&run->worker.count->received, received += (uint64_t)n);
		np_show(&run->worker.count->receives, ++receives);
		rc = drain_empty(d, n);
		if (run->plan->time_calls) {
			then = np_stream_lap(run, then);
		}
		if (np_pace(run)) {
			then = np_now();
		}
	}
	return receives == 0 && is_unsupported(rc) ? -ENOSYS : rc;
}

int
np_splice_receive(struct np_run *run)
{
	struct drain d = { -1, -1, -1 };
	int rc = drain_open(&d, run->worker.recv_size) ? receive(run, &d) : -ENOSYS;

	drain_close(&d);
	return rc;
}
