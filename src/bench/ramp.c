#include "bench/ramp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/lines.h"
#include "bench/engine/io.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "net/sock.h"

bool
np_ramp_make(struct np_worker *w)
{
	const struct np_run *run = w->run;
	struct np_ramp *r;

	if (run->plan->ramp == 0 || !run->plan->active) {
		return true;
	}
	r = np_cache_lines_new(1, sizeof(*r));
	w->ramp = r;
	if (r == NULL) {
		return false;
	}
	r->hist = np_hist_new();
	return r->hist != NULL;
}

uint64_t
np_ramp_due(const struct np_worker *w)
{
	const struct np_ramp *r = w->ramp;

	if (r == NULL || r->begun >= w->conns) {
		return UINT64_MAX;
	}
	return r->load.holds ? r->load.due_ns : 0;
}

enum { AHEAD_MS = 100 }; /* by which the far end's window may begin and end earlier */

/* End a failed connection. Count it, but not at the test's end, which the far end may see first. */
static void
note_failure(struct np_worker *w, struct np_conn *c, int error)
{
	uint64_t end_ns = w->began_ns + np_plan_time_ns(w->run->plan);
	struct pollfd p = { .fd = -1, .events = POLLRDHUP };

	c->need = NP_OVER;
	for (uint32_t i = 0; i < w->conns && p.fd < 0; i++) {
		p.fd = w->conn[i].is_up ? w->conn[i].fd : -1; /* any shows the far end's close */
	}
	if (!np_stopped(w->run->stop) &&
	    (error != ECONNREFUSED || np_now() + AHEAD_MS * NP_MSEC < end_ns) &&
	    (p.fd < 0 || poll(&p, 1, 0) <= 0 || (p.revents & ~POLLERR) == 0)) {
		np_ramp_failed(&w->ramp->failed, error, 1);
	}
}

struct np_conn *
np_ramp_begin(struct np_worker *w, uint64_t now_ns)
{
	struct np_ramp *r = w->ramp;
	struct np_conn *c;
	int error;
	struct np_addr peer; /* if -H names a network, each connection gets a host of its own */

	if (r == NULL || r->begun >= w->conns || !np_load_may(&r->load, now_ns)) {
		return NULL;
	}
	c = &w->conn[r->begun++];
	c->since_ns = np_now(); /* now_ns may be older */
	c->need = NP_CONNECTING;
	peer = w->run->end.peer;
	np_endpoint_spread(&peer, w->run->plan->far.sock.mask);
	np_sock_block(c->fd, false);
	error = np_sys_connect(c->fd, &peer.sa, peer.len) == 0 ? 0 : errno;
	if (error != 0 && error != EINPROGRESS) {
		note_failure(w, c, error);
	}
	return c;
}

void
np_ramp_connect_done(struct np_worker *w, struct np_conn *c)
{
	int error = np_sock_int(c->fd, SOL_SOCKET, SO_ERROR);

	if (error != 0) {
		note_failure(w, c, error > 0 ? error : errno);
		return;
	}
	np_hist_record(w->ramp->hist, np_now() - c->since_ns);
	np_ramp_up(w, c);
}

void
np_ramp_up(struct np_worker *w, struct np_conn *c)
{
	c->is_up = true;
	c->since_ns = np_now();
	c->timeout_check_ns = c->since_ns + w->timeout_ns;
	c->need = np_io_first_need(w, (uint32_t)(c - w->conn));
	np_add(&w->count->up, 1);
	/* A follower already waits for its first message. */
	np_load_add(&w->load, &w->run->plan->near, 1, w->run->plan->role == NP_FOLLOW);
}

void
np_ramp_failed(struct np_ramp_failures *f, int error, uint32_t count)
{
	uint32_t i = 0;

	f->count += count;
	while (i < f->reasons && f->by[i].error != error) {
		i++;
	}
	if (i == NP_RAMP_REASONS) {
		i--;
	} else if (i == f->reasons) {
		f->by[f->reasons++].error = error;
	}
	f->by[i].count += count;
}

void
np_ramp_join(struct np_ramp_failures *into, const struct np_ramp_failures *from)
{
	for (uint32_t i = 0; i < from->reasons; i++) {
		np_ramp_failed(into, from->by[i].error, from->by[i].count);
	}
}

const char *
np_ramp_reason(int error, char text[16])
{
	static const struct {
		int error;
		const char *name;
	} names[] = {
		{ ECONNREFUSED, "ECONNREFUSED" },
		{ ETIMEDOUT, "ETIMEDOUT" },
		{ EADDRNOTAVAIL, "EADDRNOTAVAIL" },
		{ EADDRINUSE, "EADDRINUSE" },
		{ ECONNRESET, "ECONNRESET" },
		{ EHOSTUNREACH, "EHOSTUNREACH" },
		{ ENETUNREACH, "ENETUNREACH" },
		{ EHOSTDOWN, "EHOSTDOWN" },
		{ EMFILE, "EMFILE" },
		{ ENFILE, "ENFILE" },
		{ ENOBUFS, "ENOBUFS" },
		{ ENOMEM, "ENOMEM" },
		{ EACCES, "EACCES" },
		{ EPERM, "EPERM" },
		{ EAGAIN, "EAGAIN" },
		{ EINVAL, "EINVAL" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].error == error) {
			return names[i].name;
		}
	}
	snprintf(text, 16, "errno %d", error);
	return text;
}

void
np_ramp_reasons(const struct np_ramp_failures *f, char *out, size_t size)
{
	size_t used = 0;
	char text[16];

	out[0] = '\0';
	for (uint32_t i = 0; i < f->reasons && used < size; i++) {
		used += (size_t)snprintf(out + used, size - used, "%s%s %u", i > 0 ? ", " : "",
					 np_ramp_reason(f->by[i].error, text), f->by[i].count);
	}
}
