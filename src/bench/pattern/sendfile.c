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

#include "bench/flow.h"
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
make_file(struct np_flow *f, struct np_err *err)
{
	f->file_fd = memfd_create("netperf-sendfile", MFD_CLOEXEC);
	if (f->file_fd < 0 || write_ring(f->file_fd, &f->send_ring) != 0) {
		return np_fail(err, NP_ESYS, errno, "make a temporary file to send");
	}
	f->file_length = (off_t)(f->send_ring.width * f->send_ring.size);
	return NP_OK;
}

static int
open_file(struct np_flow *f, struct np_err *err)
{
	const char *path = f->par->near.fill_file;
	struct stat st;

	f->file_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (f->file_fd < 0 || fstat(f->file_fd, &st) != 0) {
		return np_fail(err, NP_ESYS, errno, "open %s to be sent", path);
	}
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)f->send_size) {
		return np_fail(err, NP_EUSAGE, 0,
			       "%s is no file of at least one message of %zu bytes (see -m)", path,
			       f->send_size);
	}
	f->file_length = st.st_size;
	return NP_OK;
}

NP_LOOP_BODY int
sendfile_loop(struct np_flow *f, const bool extras)
{
	const off_t last = f->file_length - (off_t)f->send_size;
	const bool timed = extras && f->par->time_calls;
	uint64_t sent = 0, sends = 0, then = f->started_ns;
	off_t at = 0;

	while (!np_stopped(f->stop) && sent < f->budget) {
		ssize_t n = sendfile(f->fd, f->file_fd, &at, f->send_size);

		if (n < 0 && errno != EINTR) {
			return -errno;
		}
		if (n == 0) {
			return -EIO; /* the file has become shorter */
		}
		if (n > 0) {
			np_show(&f->count->sent, sent += (uint64_t)n);
			np_show(&f->count->sends, ++sends);
		}
		if (at > last) {
			at = 0;
		}
		if (extras && n > 0) {
			then = timed ? np_stream_lap(f, then) : then;
			np_pace(f);
		}
	}
	return 0;
}

static int
sendfile_plain(struct np_flow *f)
{
	return sendfile_loop(f, false);
}

/* The other extras have no hold on a file. */
static int
sendfile_extras(struct np_flow *f)
{
	np_pace_begin(f);
	return sendfile_loop(f, true);
}

static int
sendfile_setup(struct np_flow *f, struct np_err *err)
{
	f->loop = f->par->near.interval_burst > 0 || f->par->time_calls ? sendfile_extras
									: sendfile_plain;
	/* The ring gives the size of a call and, without -F, what the file holds. */
	if (np_flow_send_ring(f, f->par->near.send_size, true, err) != NP_OK) {
		return err->code;
	}
	return f->par->near.fill_file[0] != '\0' ? open_file(f, err) : make_file(f, err);
}

static void
sendfile_release(struct np_flow *f)
{
	if (f->file_fd >= 0) {
		close(f->file_fd);
		f->file_fd = -1;
	}
}

static const struct np_side transmit_file = {
	.setup = sendfile_setup,
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
