/*
 * The calls that engines make for a connection, one a message.
 */
#ifndef NP_BENCH_ENGINE_IO_H
#define NP_BENCH_ENGINE_IO_H

#include <errno.h>

#include "bench/codec.h"
#include "bench/engine/syscall.h"
#include "bench/worker.h"

/* A file is sent again and again from its start. One that has become shorter is an error. */
NP_LOOP_BODY ssize_t
np_io_send_file(struct np_worker *w, struct np_conn *c)
{
	ssize_t n = np_sys_sendfile(c->fd, w->file_fd, &w->file_at, w->send_size);

	if (__builtin_expect(n == 0, 0)) {
		errno = EIO;
		return -1;
	}
	if (__builtin_expect(w->file_at > w->file_last, 0)) {
		w->file_at = 0;
	}
	return n;
}

NP_LOOP_BODY ssize_t
np_io_send(struct np_worker *w, struct np_conn *c, char *buf, const bool sends_file)
{
	if (sends_file) {
		return np_io_send_file(w, c);
	}
	if (__builtin_expect((w->codec & (NP_C_SENDS | NP_C_ID)) != 0, 0)) {
		if ((w->codec & NP_C_SENDS) != 0) {
			return np_codec_send(w, c, buf);
		}
		np_id_write(w->id, c->number, buf);
	}
	return np_sys_sendto(c->fd, buf, w->send_size, w->to, w->to_len);
}

/* `answers`: whoever sent the message is to be known. */
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

/*
 * The needs that are rarely had: to rest, to throw away what waits, the rest of a message to or
 * from that buffer. Returns what is needed next.
 */
enum np_need
np_io_other(struct np_worker *w, struct np_conn *c, enum np_need need, const struct np_slot *slot);

/*
 * Whom to answer is known until something else is received: a socket that does not block is waited
 * for all the same, until there is room or the worker is told to stop.
 */
void np_io_wait_for_room(const struct np_worker *w, int fd);

/* Sleep until the load's next burst is due, which is no part of what the connection does. */
void np_io_rest(struct np_worker *w, struct np_conn *c);

/*
 * Without waiting, the next message that is still in the socket, or that has been received and that
 * no step has seen: its bytes, and where they are. -1 with errno: there is none.
 */
ssize_t np_io_left(struct np_worker *w, struct np_conn *c, char **buf);

/* What a worker's connection of that number needs when the window opens. */
enum np_need np_io_first_need(const struct np_worker *w, uint32_t number);

/* One of the worker's connections is over: are all of them? */
bool np_io_ends_all(const struct np_worker *w);

/*
 * Is what a call on a datagram socket failed by what ICMP says of a datagram that was sent before,
 * rather than of this call? An end that hears its peer takes no notice, as if its socket were not
 * connected: only a send that keeps failing fails.
 */
bool np_io_is_news(const struct np_worker *w, struct np_conn *c, enum np_need need, int error);

/* What was needed failed with errno. */
enum np_need np_io_failed(struct np_worker *w, struct np_conn *c, enum np_need need);

#endif
