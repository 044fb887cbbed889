/*
 * The engine `spin`: `epoll` that never waits, but repeats a call in the connection's next turn. No
 * message waits for a wake-up; the price is a processor for each thread. Idle passive ends sleep.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bag.h"
#include "bench/engine/engine.h"
#include "bench/run.h"
#include "net/sock.h"
#include "sys/cpu.h"

enum {
	BUSY_POLL_US = 50, /* any value: a call that does not block polls only once */
	OPTIONS = 2        /* socket options for polling */
};

static const struct {
	const char *name; /* in the evidence */
	int option, value;
} polling[OPTIONS] = {
	{ "engine.busy_poll_us", SO_BUSY_POLL, BUSY_POLL_US },
	{ "engine.prefer_busy_poll", SO_PREFER_BUSY_POLL, 1 }, /* to interrupts */
};

/* Have the kernel poll for receives of a socket. Returns 0, or -1 with errno. */
static int
set_polling(int fd, int n)
{
	return setsockopt(fd, SOL_SOCKET, polling[n].option, &polling[n].value,
			  sizeof(polling[n].value));
}

/* np_engine.put: the processors, and whether receives polled the receive queue, or why not. */
static void
spin_put(const struct np_run *run, struct np_bag *into)
{
	int fd = run->conn->fd; /* the first connection stands for all */
	bool can_poll = np_sock_int(fd, SOL_SOCKET, SO_INCOMING_NAPI_ID) > 0;

	np_bag_int(into, np_cpus_usable(), "engine.processors");
	for (int i = 0; i < OPTIONS && run->plan->transport->ip_protocol != 0; i++) {
		int set = np_sock_int(fd, SOL_SOCKET, polling[i].option);

		if (!can_poll) {
			np_bag_unread(into,
				      "the packets come from no receive queue that can be polled",
				      "%s", polling[i].name);
		} else if (set > 0) {
			np_bag_int(into, set, "%s", polling[i].name);
		} else { /* the kernel says once more why not */
			np_bag_unread(into, set_polling(fd, i) != 0 ? strerror(errno) : "not set",
				      "%s", polling[i].name);
		}
	}
}

/* np_engine.run: set up polling; then the loop of `epoll`, which does not wait with `spins`. */
static int
spin_run(struct np_worker *w)
{
	const struct np_transport *t = w->run->plan->transport;

	/*
	 * Once, have receives poll the queue, if possible: only a connection knows its NAPI id yet.
	 * Without CAP_NET_ADMIN some kernels allow the first option, none the other.
	 */
	for (uint32_t i = 0; i < w->conns && !w->goes_on && t->ip_protocol != 0; i++) {
		int fd = w->conn[i].fd;

		if (t->connected && np_sock_int(fd, SOL_SOCKET, SO_INCOMING_NAPI_ID) <= 0) {
			continue;
		}
		for (int n = 0; n < OPTIONS; n++) {
			/* net.core.busy_read may have set it already. */
			if (np_sock_int(fd, SOL_SOCKET, polling[n].option) <= 0) {
				(void)set_polling(fd, n);
			}
		}
	}
	return np_engine_epoll.run(w);
}

static const char *
spin_why_not(const struct np_plan *p)
{
	if (p->pattern->connection_test) {
		return "it drives only connections that exist before the test";
	}
	if (p->ramp > 0) {
		return "it drives only connections that exist before the test, and a ramp makes "
		       "them during the test";
	}
	return np_engine_epoll.why_not(p);
}

const struct np_engine np_engine_spin = {
	.name = "spin",
	.help = "never sleeps: tries again at once (each thread takes a whole processor)",
	.spins = true,
	.compares = true,
	.why_not = spin_why_not,
	.run = spin_run,
	.put = spin_put,
};
