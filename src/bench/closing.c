/* How data connections end: record what the kernel knows of them, shut them down, close them. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/units.h"
#include "bench/engine/engine.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "net/sock.h"
#include "net/tcpinfo.h"

bool
np_run_hung_up(const struct np_run *run)
{
	NP_EACH_WORKER (w, run) {
		if (w->hung_up) {
			return true;
		}
	}
	return false;
}

/* The socket that stands for all: the first; of a ramp, the first that is up. -1: none is open. */
static int
first_fd(const struct np_run *run)
{
	const struct np_worker *w = run->worker;
	uint32_t i = 0;

	while (run->plan->ramp > 0 && i < w->conns && !w->conn[i].is_up) {
		i++;
	}
	return i < w->conns ? w->conn[i].fd : -1;
}

void
np_run_read_closing(struct np_run *run)
{
	const struct np_transport *t = run->plan->transport;
	int fd = first_fd(run);

	if (fd < 0) {
		return;
	}
	np_endpoint_buffers(t, fd, &run->closing.sndbuf_end, &run->closing.rcvbuf_end);
	if (t->read_closing != NULL) {
		t->read_closing(run, fd);
	}
	if (t->tcp_info) {
		run->closing.moved = np_tcp_moved(fd);
	}
}

void
np_run_shut_if_hung_up(struct np_run *run)
{
	uint64_t until = np_deadline(NP_SHUT_S * NP_SEC);

	/* Only a daemon, as its client waits for that. A daemon waits for no client's close. */
	if (np_run_hung_up(run) && first_fd(run) >= 0 && !run->plan->active &&
	    run->plan->transport->connected) {
		np_run_read_closing(run);
		NP_EACH_CONN (c, run) {
			np_run_shut_one(run, run->stop, c->fd, until);
		}
	}
}

uint64_t
np_run_extend(const struct np_run *run, int fd, uint64_t until_ns)
{
	uint64_t silent_ns = 0;

	if (!np_hurried(run->stop)) { /* the user has not interrupted the test */
		silent_ns = np_max(np_tcp_silent_ns(run->control_fd), np_tcp_silent_ns(fd));
	}
	return silent_ns > 0 && silent_ns < run->plan->silence_s * NP_SEC
		   ? np_max(until_ns, np_deadline(silent_ns + NP_SEC))
		   : until_ns;
}

void
np_run_shut_one(const struct np_run *run, const struct np_stop *stop, int fd, uint64_t until_ns)
{
	const struct np_transport *t = run->plan->transport;

	if (t->ends.shut != NULL && fd >= 0) {
		t->ends.shut(stop, fd, until_ns);
	} else { /* without a socket (fd -1) it fails, which does no harm */
		shutdown(fd, t->ends.shut_drops ? SHUT_RDWR : SHUT_WR);
	}
}

/* Kernel figures first, as taking back zero-copy buffers may disconnect; then end(fd) for each. */
static void
end_conns(struct np_run *run, void (*end)(int fd))
{
	np_run_read_closing(run);
	for (uint32_t i = 0; run->engine->take_all_back != NULL && i < run->workers; i++) {
		run->engine->take_all_back(&run->worker[i]);
	}
	NP_EACH_CONN (c, run) {
		if (c->fd >= 0 && !run->end.borrowed) {
			end(c->fd);
		}
		c->fd = -1;
	}
}

void
np_run_close_conns(struct np_run *run)
{
	end_conns(run, np_fds_close);
}

void
np_run_reset(struct np_run *run)
{
	end_conns(run, np_sock_reset);
}

void
np_run_close(struct np_run *run)
{
	np_run_close_conns(run);
	if (run->end.listen_fd >= 0 && !run->end.borrowed_listener) {
		close(run->end.listen_fd);
	}
	run->end.listen_fd = -1;
	if (run->plan->transport->close != NULL) {
		run->plan->transport->close(run);
	}
}
