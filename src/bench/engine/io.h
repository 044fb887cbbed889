/* Calls that engines make for a connection, one per message. */
#ifndef NP_BENCH_ENGINE_IO_H
#define NP_BENCH_ENGINE_IO_H

#include <errno.h>

#include "bench/codec.h"
#include "bench/engine/syscall.h"
#include "bench/worker.h"

/* Send the next part of w->file, from its start again after `last`. EIO: the file has shrunk. */
NP_LOOP_BODY ssize_t
np_io_send_file(struct np_worker *w, const struct np_conn *c)
{
	ssize_t n = np_sys_sendfile(c->fd, w->file.fd, &w->file.at, w->send_size);

	if (__builtin_expect(n <= 0, 0)) {
		errno = n == 0 ? EIO : errno;
		return -1;
	}
	if (w->file.at > w->file.last) {
		w->file.at = 0;
	}
	return n;
}

/* Send a message from buf, with all that w->codec adds. Results are those of send(2). */
NP_LOOP_BODY ssize_t
np_io_send(struct np_worker *w, struct np_conn *c, char *buf)
{
	if (__builtin_expect((w->codec & (NP_C_SENDS | NP_C_ID)) != 0, 0)) {
		if ((w->codec & NP_C_FILE) != 0) {
			return np_io_send_file(w, c);
		}
		if ((w->codec & NP_C_SENDS) != 0) {
			return np_codec_send(w, c, buf);
		}
		np_id_write(w->id, c->number, buf);
	}
	return np_sys_sendto(c->fd, buf, w->send_size, w->to, w->to_len);
}

/* Receive into buf. With `answers`, the source is stored in w->from, if that is not NULL. */
NP_LOOP_BODY ssize_t
np_io_recv(struct np_worker *w, struct np_conn *c, char *buf, const bool answers)
{
	if (answers) {
		w->from_len = sizeof(struct sockaddr_storage);
	}
	if (__builtin_expect((w->codec & NP_C_RECEIVES) != 0, 0)) {
		return np_codec_recv(w, c, buf);
	}
	return np_sys_recvfrom(c->fd, buf, w->recv_size, answers ? w->from : NULL,
			       answers ? &w->from_len : NULL);
}

/* Set a send aside and receive a response first, of which `part` bytes are received already. */
static inline void
np_io_put_aside(struct np_conn *c, size_t part)
{
	c->is_aside = true;
	c->aside_part = c->part;
	c->aside_since_ns = c->since_ns;
	c->need = part > 0 ? NP_RECV | NP_PART : NP_RECV;
	c->part = part;
}

/* The call for `need` failed with errno. Returns the next need, with NP_BLOCKED after EAGAIN. */
enum np_need np_io_failed(struct np_worker *w, struct np_conn *c, enum np_need need);

/* c->part bytes were received, less than a message. Returns what is needed next. */
enum np_need np_io_no_message(struct np_worker *w, struct np_conn *c);

/* Handle the result of a send, and take the step. Errors first, to merge comparisons. */
NP_LOOP_BODY enum np_need
np_io_sent(struct np_worker *w, struct np_conn *c, const struct np_steps *const s, ssize_t n)
{
	if (__builtin_expect(n < 0, 0)) {
		return np_io_failed(w, c, NP_SEND);
	}
	if (!s->takes_parts && __builtin_expect((size_t)n < w->send_size, 0)) {
		c->part = (size_t)n;
		return NP_SEND | NP_PART;
	}
	return s->sent(w, c, (size_t)n);
}

/* Handle the result of a receive into buf, and take the step. */
NP_LOOP_BODY enum np_need
np_io_received(struct np_worker *w, struct np_conn *c, const struct np_steps *const s,
	       const char *buf, ssize_t n)
{
	if (__builtin_expect(n < 0, 0)) {
		return np_io_failed(w, c, NP_RECV);
	}
	if (__builtin_expect((size_t)n < w->whole, 0)) {
		c->part = (size_t)n;
		return np_io_no_message(w, c);
	}
	return s->arrived(w, c, buf, (size_t)n);
}

/* Serve rare needs: wait for the load, purge the socket, move the rest of the message in `slot`. */
enum np_need
np_io_other(struct np_worker *w, struct np_conn *c, enum np_need need, const struct np_slot *slot);

/* For NP_HELD: sleep until the load allows the operation; if np_stopped(), it stays NP_HELD. */
enum np_need np_io_wait_held(struct np_worker *w, struct np_conn *c, enum np_need need);

/* Begin the operation of c->need (NP_HELD) if the load allows it now. False: not yet. */
bool np_io_begins(struct np_worker *w, struct np_conn *c);

/*
 * The next connection, from *turn on, that may begin an operation now; *begun counts them, from 0.
 * NULL: none may until the load's next time, or this call has begun enough: the engine handles
 * other events, then calls again at once. While w->load.holds, other operations wait behind these.
 */
struct np_conn *np_io_next_due(struct np_worker *w, uint32_t *turn, uint32_t *begun);

/* Take a message left in the socket, or unprocessed. Returns its size and *buf; -1 with errno. */
ssize_t np_io_left(struct np_worker *w, struct np_conn *c, char **buf);

/* What connection `number` needs first when the window opens. */
enum np_need np_io_first_need(const struct np_worker *w, uint32_t number);

/* Does the end of one connection, which has just ended, end the loop of the worker? */
bool np_io_ends_all(const struct np_worker *w);

/*
 * Note an error of a call, NP_SEND or another need. True: ICMP for an earlier datagram caused it,
 * so ignore it, as an unconnected socket would. A send that fails many times in a row is an error.
 */
bool np_io_note_icmp(const struct np_worker *w, struct np_conn *c, enum np_need need, int error);

/* Wait for the far end's close: each call discards a byte of data, or finds the end. */
NP_LOOP_BODY enum np_need
np_io_await_close(struct np_worker *w, struct np_conn *c)
{
	char byte;
	ssize_t n = np_sys_recv(c->fd, &byte, 1, 0);

	return n == 0 ? NP_CLOSE : n > 0 ? NP_AWAIT : np_io_failed(w, c, NP_AWAIT);
}

#endif
