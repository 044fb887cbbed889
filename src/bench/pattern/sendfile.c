/* sendfile: sends a file (-F, or one in memory, as large as a send ring) again and again. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/engine/io.h"
#include "bench/pattern/stream.h"

/* Write all buffers of a ring to a file. Returns 0, or -1 with errno. */
static int
write_ring(int fd, const struct np_ring *ring)
{
	for (size_t i = 0; i < ring->width; i++) {
		ssize_t n = write(fd, ring->slots[i].buf, ring->size);

		if (n != (ssize_t)ring->size) { /* a file in memory takes all, if there is room */
			errno = n < 0 ? errno : ENOSPC;
			return -1;
		}
	}
	return 0;
}

/* np_side.setup: open or make the file, which needs room for one call (w->file). */
static int
sendfile_setup(struct np_worker *w, struct np_err *err)
{
	const char *path = w->run->plan->near.call.fill_file;
	struct stat st;

	/* The ring sets the size of a call and, without -F, the contents of the file. */
	if (np_worker_send_ring(w, w->run->plan->near.call.send_size, true, err) != NP_OK) {
		return err->code;
	}
	w->codec |= NP_C_FILE;
	if (path != NULL) {
		w->file.fd = open(path, O_RDONLY | O_CLOEXEC);
		if (w->file.fd < 0 || fstat(w->file.fd, &st) != 0) {
			return np_fail(err, NP_ESYS, errno, "open %s to be sent", path);
		}
		if (!S_ISREG(st.st_mode) || st.st_size < (off_t)w->send_size) {
			return np_usage(
			    err, "%s is not a file of at least one message of %zu bytes (see -m)",
			    path, w->send_size);
		}
		w->file.last = st.st_size - (off_t)w->send_size;
		return NP_OK;
	}
	/* A file without a name: no path to choose, and nothing is left behind. */
	w->file.fd = memfd_create("netperf-sendfile", MFD_CLOEXEC);
	if (w->file.fd < 0 || write_ring(w->file.fd, &w->send_ring) != 0) {
		return np_fail(err, NP_ESYS, errno, "make a temporary file to send");
	}
	w->file.last = (off_t)((w->send_ring.width - 1) * w->send_ring.size);
	return NP_OK;
}

/* sync.h's loop with half the instructions. c->number is set at the end, c->sent at each call. */
static int
transmit_file_sync(struct np_worker *w)
{
	struct np_conn *c = w->conn;
	struct np_counters *count = w->count;
	const uint64_t before = np_get(&count->sends);
	uint64_t sent = np_get(&count->sent), sends = before;
	enum np_need need = w->goes_on ? c->need : np_io_first_need(w, 0);

	if (w->codec != NP_C_FILE) { /* an option adds to each call, such as -k */
		return np_stream_transmit_sync(w);
	}
	while (need == NP_SEND && !np_stopped(&w->stop)) {
		ssize_t n = np_io_send_file(w, c);

		if (__builtin_expect(n < 0, 0)) {
			need = np_io_failed(w, c, NP_SEND);
			if (need != NP_SEND) {
				need = np_io_other(w, c, need, w->send_ring.slots);
			}
			continue;
		}
		sent += (size_t)n;
		c->sent += (size_t)n;
		np_set(&count->sent, sent);
		np_set(&count->sends, ++sends);
		if (__builtin_expect(sent >= w->budget, 0)) {
			need = NP_OVER;
		}
	}
	c->number += sends - before;
	c->need = need;
	return -w->error;
}

static const struct np_side transmit_file = {
	.setup = sendfile_setup,
	.steps = &np_stream_transmit_steps,
	.sync = transmit_file_sync,
	.finish = np_stream_transmit_finish,
	.ends_on_hangup = true,
};

const struct np_pattern np_pattern_sendfile = {
	.name = "sendfile",
	.words = { [NP_LEAD] = { "Send", "send", "send", "transmit" },
		   [NP_FOLLOW] = { "Receive", "receive", "recv", "receive" } },
	.side = { [NP_LEAD] = &transmit_file, [NP_FOLLOW] = &np_stream_receive },
	.lead_direction = NP_WD_TRANSMIT,
	.sends_file = true,
	.several = true,
};
