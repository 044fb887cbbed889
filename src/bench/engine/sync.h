/*
 * The engine `sync`: one connection with blocking calls, interrupted by a signal. The default, and
 * the one that compares with netperf. Each role compiles its own copy of the loop, to inline its
 * steps.
 */
#ifndef NP_BENCH_ENGINE_SYNC_H
#define NP_BENCH_ENGINE_SYNC_H

#include <errno.h>

#include "bench/engine/io.h"

/* Serve a need of connection tests, NP_OPEN to NP_CLOSE. Returns what is needed next. */
NP_LOOP_BODY enum np_need
np_sync_connection(struct np_worker *w, struct np_conn *c, const struct np_steps *const s,
		   enum np_need need)
{
	if (need == NP_OPEN) {
		int fd = s->open(w, 0);

		if (__builtin_expect(fd >= 0, 1)) {
			c->fd = fd;
			return s->opened(w, c);
		}
		errno = -fd;
		return np_io_failed(w, c, need);
	}
	if (need == NP_SHUT) {
		shutdown(c->fd, SHUT_WR);
		need = NP_AWAIT;
	}
	if (need == NP_AWAIT) {
		need = np_io_await_close(w, c);
	}
	if (__builtin_expect(need == NP_CLOSE, 1)) {
		np_sys_close(c->fd);
		c->fd = -1;
		need = s->closed(w, c);
	}
	return need;
}

/* np_worker.loop, usual needs in their order. Branches of missing steps are compiled away. */
NP_LOOP_BODY int
np_sync_drive(struct np_worker *w, const struct np_steps *const s)
{
	const struct np_slot *out = w->send_ring.slots, *in = w->recv_ring.slots;
	const struct np_stop *const stop = &w->stop;
	struct np_conn *const c = w->conn;
	enum np_need need = w->goes_on ? c->need : np_io_first_need(w, 0);

	while (need != NP_OVER && !np_stopped(stop)) {
		if (s->sent != NULL && need == NP_SEND) {
			ssize_t n = np_io_send(w, c, out->buf);

			out = out->next;
			need = np_io_sent(w, c, s, n);
			if (need != NP_RECV) {
				continue;
			}
		}
		if (s->arrived != NULL && need == NP_RECV) {
			ssize_t n = np_io_recv(w, c, in->buf, s->answers);

			need = np_io_received(w, c, s, in->buf, n);
			in = in->next;
		} else if (s->open != NULL && need >= NP_OPEN && need <= NP_CLOSE) {
			need = np_sync_connection(w, c, s, need);
		} else {
			need = np_io_other(w, c, need, (need & NP_SEND) != 0 ? out : in);
		}
	}
	c->need = need;
	return -w->error;
}

/* Define np_side.sync of a role: its copy of the loop. */
#define NP_SYNC_LOOP(name, steps)                                                                  \
	static int name(struct np_worker *w)                                                       \
	{                                                                                          \
		return np_sync_drive(w, &(steps));                                                 \
	}

#endif
