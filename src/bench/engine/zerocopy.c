/*
 * The engine `zerocopy`: streams without copies to or from user space. A sender gives its buffers
 * to the kernel (MSG_ZEROCOPY), and does not write to one until the socket's error queue says that
 * it is released. Each connection has its own slots. A receiver has data discarded (MSG_TRUNC).
 */
#include "bench/engine/zerocopy.h"

#include <time.h> /* errqueue.h needs it */

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/fds.h"
#include "bench/engine/calls.h"
#include "bench/engine/io.h"
#include "bench/run.h"
#include "bench/sequence.h"

enum {
	RING_LEAST = 64,  /* slots of a ring, unless they are too large */
	CONN_MOST = 1024, /* slots of one connection */
	CONN_LEAST = 2,   /* slots of each, with very many connections */
	/*
	 * Bytes in flight on one connection. A receiver acknowledges two full segments, of up to
	 * 64 KB each, at once, but fewer only after 40 ms.
	 */
	CONN_BYTES = 256 << 10,
	RING_BYTES = 64 << 20, /* at most, if each connection has CONN_LEAST slots then */
	USUAL_SIZE = 16 << 10, /* of a message, if the socket buffer sets it */
	RECHECK_MS = 100,      /* between checks whether to wait longer */
	QUEUED_MS = 500,       /* wait for packets in the interface's queue, and */
	RELEASE_MS = 10,       /* between checks of that */
	LAST_WAIT_S = 60       /* longest wait for the last buffers */
};

bool
np_released_of(struct msghdr *m, struct np_released *out)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		bool is_error = (c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) ||
				(c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR);
		size_t before = (size_t)((const char *)c - (const char *)m->msg_control);
		struct sock_extended_err e;

		if (!is_error || c->cmsg_len < CMSG_LEN(sizeof(e)) ||
		    m->msg_controllen - before < CMSG_LEN(sizeof(e))) {
			continue;
		}
		memcpy(&e, CMSG_DATA(c), sizeof(e));
		if (e.ee_origin != SO_EE_ORIGIN_ZEROCOPY || e.ee_errno != 0) {
			continue;
		}
		out->first = e.ee_info;
		out->last = e.ee_data;
		out->copied = (e.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0;
		return true;
	}
	return false;
}

uint32_t
np_borrowed_release(struct np_borrowed *b, const struct np_released *r)
{
	uint32_t age = b->next - r->first; /* sends since the first one, itself included */
	uint32_t count = r->last - r->first + 1, released = 0; /* modulo 2^32, as the numbers */

	if (age > b->depth || count > age) {
		return 0;
	}
	for (; count > 0; count--, age--) {
		bool *held = &b->held[(b->next - age) & (b->depth - 1)];

		released += *held && age <= b->since;
		b->count -= *held;
		*held = false;
	}
	return released;
}

/* np_worker.engine.state is one for each connection; NULL: this end receives. */
static struct np_borrowed *
borrowed_of(const struct np_worker *w, const struct np_conn *c)
{
	return (struct np_borrowed *)w->engine.state + (c - w->conn);
}

/* np_calls.take_back: read a message of the error queue, which releases buffers. False: none. */
static bool
take_back(struct np_worker *w, struct np_conn *c)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(struct sock_extended_err) +
				     sizeof(struct sockaddr_in6))];
	} control;
	struct msghdr m = { .msg_control = &control, .msg_controllen = sizeof(control) };
	struct np_released r;

	if (w->engine.state == NULL || recvmsg(c->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
		return false;
	}
	if (np_released_of(&m, &r)) {
		uint32_t released = np_borrowed_release(borrowed_of(w, c), &r);

		w->engine.count[NP_E_RELEASED] += released;
		w->engine.count[NP_E_COPIED] += r.copied ? released : 0;
	}
	return true;
}

/* Wait for a release of a buffer. False: `epoll` has to wait (need_of()), or the worker stops. */
static bool
wait_for_release(struct np_worker *w, struct np_conn *c)
{
	bool blocks = np_engine_blocks(&np_engine_zerocopy, w->run->plan);
	struct pollfd p = { .fd = c->fd }; /* POLLERR is always reported */

	w->engine.count[NP_E_RELEASE_WAITS]++;
	c->waits_release = !blocks;
	return blocks && !np_stopped(&w->stop) && (poll(&p, 1, -1) >= 0 || errno == EINTR);
}

/* The need after a wait: to send, and if `epoll` has to wait, as after a call that would block. */
static enum np_need
need_of(const struct np_conn *c)
{
	return c->waits_release ? NP_SEND | NP_BLOCKED : NP_SEND;
}

/* Send a message with MSG_ZEROCOPY, from a buffer that the kernel has released. */
static enum np_need
zerocopy_send(struct np_worker *w, struct np_conn *c)
{
	struct np_borrowed *b = borrowed_of(w, c);
	uint32_t slot = np_borrowed_slot(b);
	char *buf = w->send_ring.slots[(size_t)(c - w->conn) * b->depth + slot].buf;
	ssize_t n;

	c->waits_release = false;
	while (b->held[slot]) {
		if (!take_back(w, c) && !wait_for_release(w, c)) {
			return need_of(c);
		}
	}
	if ((w->codec & NP_C_SENDS) != 0) {
		np_codec_prepare(w, buf, c->number, (w->codec & NP_C_NUMBER) != 0 ? np_now() : 0);
	}
	n = np_sys_sendto_flags(c->fd, buf, w->send_size, MSG_ZEROCOPY | MSG_NOSIGNAL, w->to,
				w->to_len);
	if (__builtin_expect(n > 0, 1)) {
		np_borrowed_add(b);
		w->engine.count[NP_E_BORROWED]++;
		return w->steps->sent(w, c, (size_t)n);
	}
	if (n < 0 && errno == ENOBUFS && b->count > 0) {
		/* Buffers in use are at the limit of net.core.optmem_max or RLIMIT_MEMLOCK. */
		if (!take_back(w, c)) {
			(void)wait_for_release(w, c);
		}
		return need_of(c);
	}
	if (n < 0 && errno == ENOBUFS) { /* no memory left: copy */
		n = np_sys_sendto(c->fd, buf, w->send_size, w->to, w->to_len);
		w->engine.count[NP_E_REFUSED] += n >= 0;
	}
	if (n >= 0) {
		return w->steps->sent(w, c, (size_t)n);
	}
	if (errno == EAGAIN) {
		/* Empty the error queue, or epoll would report it at once. */
		while (take_back(w, c)) {
		}
		w->engine.count[NP_E_BLOCKED]++;
		errno = EAGAIN; /* which take_back() has changed */
	}
	return np_io_failed(w, c, NP_SEND);
}

/* np_calls.send, with MSG_ZEROCOPY or by sendfile(2). */
static enum np_need
either_send(struct np_worker *w, struct np_conn *c)
{
	/* sendfile(2) never copies, and sends from no buffer (NULL). */
	return (w->codec & NP_C_FILE) != 0 ? np_io_sent(w, c, w->steps, np_io_send(w, c, NULL))
					   : zerocopy_send(w, c);
}

/* As recv(2) of recv_size bytes, but the kernel discards all but a numbered datagram's header. */
static ssize_t
discard(struct np_worker *w, struct np_conn *c, char *buf, int flags)
{
	bool stream = w->run->plan->transport->connected;
	size_t header = w->sequence != NULL ? NP_SEQUENCE_HEADER : 0, copied;
	ssize_t n = np_sys_recv(c->fd, buf, stream ? w->recv_size : header, MSG_TRUNC | flags);

	if (n <= 0) {
		return n;
	}
	copied = (size_t)n < header ? (size_t)n : header;
	w->engine.count[NP_E_TRUNCATED] += (size_t)n - copied;
	/* As elsewhere, bytes beyond the size of a call do not count. */
	return (size_t)n < w->recv_size ? n : (ssize_t)w->recv_size;
}

/* np_calls.recv: receive, discard, and take the step. */
static enum np_need
zerocopy_recv(struct np_worker *w, struct np_conn *c)
{
	char *buf = w->recv_ring.slots->buf;
	ssize_t n = discard(w, c, buf, 0);
	enum np_need need;

	w->engine.count[NP_E_BLOCKED] += n < 0 && errno == EAGAIN;
	need = np_io_received(w, c, w->steps, buf, n);
	/* A short read of a stream means that the socket is empty: do not try again. */
	return need == NP_RECV && n < (ssize_t)w->recv_size && w->run->plan->transport->connected
		   ? NP_RECV | NP_BLOCKED
		   : need;
}

/* np_calls.left: receive and discard without waiting, and without a step. */
static ssize_t
zerocopy_left(struct np_worker *w, struct np_conn *c, char **buf)
{
	*buf = w->recv_ring.slots->buf;
	return discard(w, c, *buf, MSG_DONTWAIT);
}

static const struct np_calls calls = {
	.send = either_send,
	.recv = zerocopy_recv,
	.left = zerocopy_left,
	.take_back = take_back,
};

/* Does this end send with MSG_ZEROCOPY, from buffers that the kernel has to release? */
static bool
borrows(const struct np_plan *p)
{
	return p->role == NP_LEAD && !p->pattern->sends_file;
}

static const char *
zerocopy_why_not(const struct np_plan *p)
{
	const struct np_call_plan *call = &p->near.call;

	if (p->pattern->transactions || p->pattern->probe) {
		return "it is for streams only: requests are short, and must be read";
	}
	if (p->transport->protocol != IPPROTO_TCP && p->transport->protocol != IPPROTO_UDP) {
		return "only TCP and UDP can send without a copy";
	}
	if (p->transport->encrypts) {
		return "the kernel encrypts and decrypts into other buffers";
	}
	if (p->role == NP_LEAD && p->use_write) {
		return "write(2), which -I asks for, always copies";
	}
	if (p->role == NP_FOLLOW && (call->dirty > 0 || call->clean > 0)) {
		return "it discards data unread, and -k or -K needs them read";
	}
	if (p->role == NP_FOLLOW && p->copy_avoidance && p->transport->connected) {
		return "it discards data at once, and -V needs them spliced";
	}
	return NULL;
}

/* np_engine.lacks: try the option on a socket. */
static const char *
zerocopy_lacks(void)
{
	struct np_err ignored;
	int fd = np_sock_trial(AF_UNSPEC, SOCK_STREAM, IPPROTO_TCP, &ignored), one = 1;
	const char *lacks = NULL;

	/* Without a socket the test itself will fail, and say why. */
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)) != 0) {
		lacks = errno == EPERM || errno == EACCES
			    ? "this machine does not permit SO_ZEROCOPY"
			    : "this kernel has no SO_ZEROCOPY (Linux 4.14 has, 5.0 for UDP)";
	}
	np_fds_close(fd);
	return lacks;
}

static void
zerocopy_options(const struct np_plan *p, struct np_sockopts *o)
{
	NP_SOCKOPT(o, borrows(p), SOL_SOCKET, SO_ZEROCOPY, 1);
}

/* n, but not below `least`, nor above `most`; if `least` is larger, `most`. */
static uint64_t
within(uint64_t least, uint64_t n, uint64_t most)
{
	return n > most ? most : n < least ? least : n;
}

/* Bytes of a message: as asked for, else those of the socket buffer (the kernel doubles -s). */
static uint64_t
message_size(const struct np_plan *p)
{
	int32_t asked = p->near.call.send_size, sndbuf = p->near.sock.sndbuf;

	return asked > 0 ? (uint64_t)asked : sndbuf > 0 ? 2 * (uint64_t)sndbuf : USUAL_SIZE;
}

/* np_engine.width: slots for CONN_BYTES on each connection, within the limits above. */
static uint32_t
zerocopy_width(const struct np_plan *p)
{
	uint64_t flows = np_plan_worker_flows(p), size = message_size(p), each, least;

	if (!borrows(p)) {
		return 1; /* every receive discards into the same buffer */
	}
	each = within(CONN_LEAST, CONN_BYTES / size, CONN_MOST);
	each = within(CONN_LEAST, RING_BYTES / size / flows, each);
	least = within(CONN_LEAST, RING_BYTES / size, RING_LEAST);
	return (uint32_t)within(least, flows * each, UINT32_MAX);
}

/* The most slots that the ring can get: by -W, by -s (as in netperf: its size / message + 1). */
static uint64_t
slots_of(const struct np_plan *p)
{
	uint64_t asked = p->near.call.send_width, width = zerocopy_width(p);
	int32_t sndbuf = p->near.sock.sndbuf;

	if (asked == 0 && sndbuf > 0) {
		asked = 2 * (uint64_t)sndbuf / message_size(p) + 1;
	}
	return asked > width ? asked : width;
}

/* np_engine.bytes: the `held` flags of all slots follow the array of struct np_borrowed. */
static uint64_t
zerocopy_bytes(const struct np_plan *p)
{
	uint64_t each = sizeof(struct np_borrowed);

	return borrows(p) ? np_plan_worker_flows(p) * each + slots_of(p) * sizeof(bool) : 0;
}

/* np_engine.open: divide the ring's slots equally, into a power of two for each connection. */
static int
zerocopy_open(struct np_worker *w, struct np_err *err)
{
	uint64_t slots = slots_of(w->run->plan);
	struct np_borrowed *b = w->engine.state;
	uint32_t depth = 1;

	if (b == NULL) {
		return NP_OK; /* this end gives no buffers to the kernel */
	}
	slots = slots < w->send_ring.width ? slots : w->send_ring.width;
	while (2 * (uint64_t)depth * w->conns <= slots) {
		depth *= 2;
	}
	for (uint32_t i = 0; i < w->conns; i++) {
		b[i].depth = depth;
		b[i].held = (bool *)&b[w->conns] + (size_t)i * depth;
	}
	return NP_OK;
}

/* np_engine.mark: releases of what the warm-up sent do not count. */
static void
zerocopy_mark(struct np_worker *w)
{
	struct np_borrowed *b = w->engine.state;

	for (uint32_t i = 0; b != NULL && i < w->conns; i++) {
		b[i].since = 0;
	}
}

/* Has a signal or a client's half-close ended the test? The peer may read no more then. */
static bool
may_stay_unread(const struct np_worker *w, const struct np_conn *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLRDHUP };

	return np_hurried(&w->stop) || w->run->cut ||
	       (!w->run->plan->active && poll(&p, 1, 0) > 0 && (p.revents & POLLRDHUP) != 0);
}

/*
 * np_engine.finish: wait while the kernel releases buffers: if they were reused, their new content
 * would be sent. Up to NP_PART_S without a release, but not for a far end that leaves data unread.
 */
static void
zerocopy_finish(struct np_worker *w)
{
	uint64_t last_ns = np_deadline(LAST_WAIT_S * NP_SEC);
	struct np_borrowed *b = w->engine.state;

	for (uint32_t i = 0; b != NULL && i < w->conns; i++) {
		struct np_conn *c = &w->conn[i];
		uint64_t until = np_deadline(NP_PART_S * NP_SEC), now;

		while (b[i].count > 0 && !np_abandoned(&w->stop) && (now = np_now()) < until &&
		       now < last_ns) {
			struct pollfd p = { .fd = c->fd };

			if (take_back(w, c)) {
				until = np_deadline(NP_PART_S * NP_SEC);
			} else if (may_stay_unread(w, c)) {
				break;
			} else {
				poll(&p, 1, RECHECK_MS);
				until = np_run_extend(w->run, c->fd, until); /* a silent path */
			}
		}
	}
}

/*
 * np_engine.take_all_back: disconnect TCP, which releases all buffers but those in the interface's
 * queue: wait for these. Memory still in use then is not freed: its next content could be sent.
 */
static void
zerocopy_take_all_back(struct np_worker *w)
{
	const struct sockaddr disconnect = { .sa_family = AF_UNSPEC };
	uint64_t until = np_deadline(QUEUED_MS * NP_MSEC);
	struct np_borrowed *b = w->engine.state;

	for (uint32_t i = 0; b != NULL && i < w->conns; i++) {
		struct pollfd p = { .fd = w->conn[i].fd };

		if (b[i].count > 0 && w->run->plan->transport->connected) {
			(void)connect(p.fd, &disconnect, sizeof(disconnect));
		}
		while (take_back(w, &w->conn[i]) || (b[i].count > 0 && np_now() < until)) {
			poll(&p, 1, RELEASE_MS);
		}
		if (b[i].count > 0) {
			memset(&w->send_ring, 0, sizeof(w->send_ring)); /* leak it */
		}
	}
}

const struct np_engine np_engine_zerocopy = {
	.name = "zerocopy",
	.help = "streams without copies: MSG_ZEROCOPY sends, MSG_TRUNC discards",
	.why_not = zerocopy_why_not,
	.lacks = zerocopy_lacks,
	.options = zerocopy_options,
	.width = zerocopy_width,
	.bytes = zerocopy_bytes,
	.open = zerocopy_open,
	.mark = zerocopy_mark,
	.finish = zerocopy_finish,
	.take_all_back = zerocopy_take_all_back,
	.borrows = true,
	.calls = &calls,
};
