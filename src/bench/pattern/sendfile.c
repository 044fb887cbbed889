/*
 * sendfile: a stream whose transmitter hands a file to the kernel by sendfile(2), again and again
 * from its start. The file is -F's, or one in memory that is made as large as a send ring.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/pattern/stream.h"

static int
write_ring(int fd, const struct np_ring *ring)
{
	for (size_t i = 0; i < ring->width; i++) {
		size_t done = 0;

		while (done < ring->size) {
			ssize_t n = write(fd, ring->slots[i].buf + done, ring->size - done);

			if (n < 0 && errno != EINTR) {
				return -1;
			}
			done += n > 0 ? (size_t)n : 0;
		}
	}
	return 0;
}

/* A file without a name (memfd_create(2)): nothing to guess, nothing to be left behind. */
static int
make_file(struct np_run *run, struct np_err *err)
{
	run->worker.file_fd = memfd_create("netperf-sendfile", MFD_CLOEXEC);
	if (run->worker.file_fd < 0 ||
	    write_ring(run->worker.file_fd, &run->worker.send_ring) != 0) {
		return np_fail(err, NP_ESYS, errno, "make a temporary file to send");
	}
	run->worker.file_last =
	    (off_t)((run->worker.send_ring.width - 1) * run->worker.send_ring.size);
	return NP_OK;
}

static int
open_file(struct np_run *run, struct np_err *err)
{
	const char *path = run->plan->near.call.fill_file;
	struct stat st;

	run->worker.file_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (run->worker.file_fd < 0 || fstat(run->worker.file_fd, &st) != 0) {
		return np_fail(err, NP_ESYS, errno, "open %s to be sent", path);
	}
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)run->worker.send_size) {
		return np_fail(err, NP_EUSAGE, 0,
			       "%s is no file of at least one message of %zu bytes (see -m)", path,
			       run->worker.send_size);
	}
	run->worker.file_last = st.st_size - (off_t)run->worker.send_size;
	return NP_OK;
}

static int
sendfile_setup(struct np_run *run, struct np_err *err)
{
	/* The ring gives the size of a call and, without -F, what the file holds. */
	if (np_run_send_ring(run, run->plan->near.call.send_size, true, err) != NP_OK) {
		return err->code;
	}
	return run->plan->near.call.fill_file[0] != '\0' ? open_file(run, err)
							 : make_file(run, err);
}

static void
sendfile_release(struct np_run *run)
{
	if (run->worker.file_fd >= 0) {
		close(run->worker.file_fd);
		run->worker.file_fd = -1;
	}
}

static const struct np_side transmit_file = {
	.setup = sendfile_setup,
	.steps = &np_stream_file_steps,
	.sync = np_stream_file_sync,
	.finish = np_stream_transmit_finish,
	.release = sendfile_release,
	.ends_on_hangup = true,
};

const struct np_pattern np_pattern_sendfile = {
	.name = "sendfile",
	.words = { [NP_LEAD] = { "Send", "send", "send", "transmit" },
		   [NP_FOLLOW] = { "Receive", "receive", "recv", "receive" } },
	.side = { [NP_LEAD] = &transmit_file, [NP_FOLLOW] = &np_stream_receive },
	.lead_direction = NP_WD_TRANSMIT,
};
