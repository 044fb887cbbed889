/* mss: reads the segment size of a connection. The far end receives a stream without data. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "bench/pattern/stream.h"
#include "bench/run.h"

/* np_side.sync: read the size into run->closing. Returns 0 or -errno. */
static int
read_mss(struct np_worker *w)
{
	struct np_run *run = w->run;
	socklen_t len = sizeof(run->closing.mss);

	return getsockopt(run->conn->fd, IPPROTO_TCP, TCP_MAXSEG, &run->closing.mss, &len) == 0
		   ? 0
		   : -errno;
}

static const struct np_side read_mss_side = {
	.sync = read_mss, .finish = np_worker_shut, /* no data are in flight */
};

const struct np_pattern np_pattern_mss = {
	.name = "mss",
	.words = { [NP_LEAD] = { "Send", "send", "send", "transmit" },
		   [NP_FOLLOW] = { "Receive", "receive", "recv", "receive" } },
	.side = { [NP_LEAD] = &read_mss_side, [NP_FOLLOW] = &np_stream_receive },
	.lead_direction = NP_WD_TRANSMIT,
	.probe = true,
};
