/*
 * The engine `zerocopy`: streams whose bytes nobody copies to or from user space.
 *
 * A sender gives its buffers to the kernel (MSG_ZEROCOPY), and does not write to one before the
 * kernel has released it, which the socket's error queue says. Each connection has slots of its own
 * in the ring, so that none waits for another one's buffers. A receiver lets the kernel discard
 * what came (MSG_TRUNC).
 */
#include "bench/engine/zerocopy.h"

#include <time.h> /* of which errqueue.h is made */

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/engine/calls.h"
#include "bench/engine/io.h"
#include "bench/run.h"
#include "bench/sequence.h"

enum {
	LEAST = 64,  /* slots of a ring, unless they are too large */
	MOST = 1024, /* of one connection */
	FEW = 2,     /* of one of very many connections */
	/*
	 * Bytes of one: an acknowledgement comes at once for two full segments, which are of 64 KB
	 * where packets are that large, and for less after 40 ms.
	 */
	WANTED = 256 << 10,
	MOST_BYTES = 64 << 20, /* of a ring, as long as there are a few slots for each */
	USUAL_SIZE = 16 << 10, /* of a message, where the kernel's buffer makes it */
	LOOK_MS = 100,         /* between looks at whether to wait any longer */
	REST_S = 60            /* the longest wait for the last ones */
};

struct zerocopy {
	bool blocks; /* its calls wait; else the engine `epoll` does */
	struct np_lent lent[];
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
np_lent_release(struct np_lent *l, const struct np_released *r)
{
	uint32_t behind = l->next - r->first, count = r->last - r->first + 1, released = 0;

	if (behind > l->depth || count > behind) {
		return 0;
	}
	for (; count > 0; count--, behind--) {
		bool *held = &l->held[(l->next - behind) & (l->depth - 1)];

		released += *held && behind <= l->since;
		l->count -= *held;
		*held = false;
	}
	return released;
}

/* --- sending ---------------------------------------------------------------------------------- */

static struct np_lent *
lent_of(const struct np_worker *w, const struct np_conn *c)
{
	struct zerocopy *z = w->engine_own;

	return &z->lent[c - w->conn];
}

/* One message of the error queue. False: there is none. */
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

	if (w->engine_own == NULL || recvmsg(c->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
		return false;
	}
	if (np_released_of(&m, &r)) {
		uint32_t released = np_lent_release(lent_of(w, c), &r);

		w->engine_count[NP_E_RELEASED] += released;
		w->engine_count[NP_E_COPIED] += r.copied ? released : 0;
	}
	return true;
}

/* Nothing has been released. False: another one is to wait, or the worker to stop. */
static bool
wait_for_release(struct np_worker *w, struct np_conn *c)
{
	const struct zerocopy *z = w->engine_own;
	struct pollfd p = { .fd = c->fd }; /* POLLERR is always told */

	w->engine_count[NP_E_RELEASE_WAITS]++;
	c->waits_release = !z->blocks;
	return z->blocks && !np_stopped(&w->stop) && (poll(&p, 1, -1) >= 0 || errno == EINTR);
}

/* The kernel reads a slot. False: it still does. */
static bool
await_slot(struct np_worker *w, struct np_conn *c, const bool *held)
{
	while (*held) {
		if (!take_back(w, c) && !wait_for_release(w, c)) {
			return false;
		}
	}
	return true;
}

static enum np_need
need_of(const struct np_conn *c)
{
	return c->waits_release ? NP_SEND | NP_BLOCKED : NP_SEND;
}

/*
 * The buffers in use take all memory that the kernel allows (net.core.optmem_max, RLIMIT_MEMLOCK):
 * wait for some of them.
 */
static enum np_need
await_room(struct np_worker *w, struct np_conn *c)
{
	if (!take_back(w, c)) {
		(void)wait_for_release(w, c);
	}
	return need_of(c);
}

static enum np_need
send_failed(struct np_worker *w, struct np_conn *c)
{
	int error = errno;

	if (error == EAGAIN) {
		/* Else there would be an event for what has been released. */
		while (take_back(w, c)) {
		}
		w->engine_count[NP_E_BLOCKED]++;
	}
	errno = error;
	return np_io_failed(w, c, NP_SEND);
}

static enum np_need
send_file(struct np_worker *w, struct np_conn *c)
{
	ssize_t n = np_io_send_file(w, c);

	return n >= 0 ? w->steps->sent(w, c, (size_t)n) : np_io_failed(w, c, NP_SEND);
}

static enum np_need
zerocopy_send(struct np_worker *w, struct np_conn *c)
{
	struct np_lent *l = lent_of(w, c);
	uint32_t slot = np_lent_slot(l);
	char *buf = w->send_ring.slots[(size_t)(c - w->conn) * l->depth + slot].buf;
	ssize_t n;

	c->waits_release = false;
	if (l->held[slot] && !await_slot(w, c, &l->held[slot])) {
		return need_of(c);
	}
	if ((w->codec & NP_C_SENDS) != 0) {
		np_codec_prepare(w, buf, c->number, (w->codec & NP_C_NUMBER) != 0 ? np_now() : 0);
	}
	n = np_sys_send_by(c->fd, buf, w->send_size, MSG_ZEROCOPY | MSG_NOSIGNAL, w->to, w->to_len);
	if (__builtin_expect(n > 0, 1)) {
		np_lent_add(l);
		w->engine_count[NP_E_LENT]++;
		return w->steps->sent(w, c, (size_t)n);
	}
	if (n < 0 && errno == ENOBUFS && l->count > 0) {
		return await_room(w, c);
	}
	if (n < 0 && errno == ENOBUFS) { /* others use all memory for it: copy */
		n = np_sys_sendto(c->fd, buf, w->send_size, w->to, w->to_len);
		w->engine_count[NP_E_REFUSED] += n >= 0;
	}
	return n >= 0 ? w->steps->sent(w, c, (size_t)n) : send_failed(w, c);
}

static enum np_need
either_send(struct np_worker *w, struct np_conn *c)
{
	return w->steps->sends_file ? send_file(w, c) : zerocopy_send(w, c);
}

/* --- receiving -------------------------------------------------------------------------------- */

/* Bytes of the next message, of which the head of a numbered one is at buf, and no other is. */
static ssize_t
discard(struct np_worker *w, struct np_conn *c, char *buf, int flags)
{
	bool stream = w->run->plan->transport->connected;
	size_t head = w->sequence != NULL ? NP_SEQUENCE_HEADER : 0, copied;
	ssize_t n = np_sys_recv_by(c->fd, buf, stream ? w->recv_size : head, MSG_TRUNC | flags);

	if (n <= 0) {
		return n;
	}
	copied = (size_t)n < head ? (size_t)n : head;
	w->engine_count[NP_E_TRUNCATED] += (size_t)n - copied;
	/* What is longer than asked for does not count elsewhere, either. */
	return (size_t)n < w->recv_size ? n : (ssize_t)w->recv_size;
}

static enum np_need
zerocopy_recv(struct np_worker *w, struct np_conn *c)
{
	char *buf = w->recv_ring.slots->buf;
	ssize_t n = discard(w, c, buf, 0);
	enum np_need need;

	if (n < 0) {
		w->engine_count[NP_E_BLOCKED] += errno == EAGAIN;
		return np_io_failed(w, c, NP_RECV);
	}
	need = w->steps->arrived(w, c, buf, (size_t)n);
	/* Of a stream that was all there is. */
	return need == NP_RECV && (size_t)n < w->recv_size && w->run->plan->transport->connected
		   ? NP_RECV | NP_BLOCKED
		   : need;
}

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

/* --- the row ---------------------------------------------------------------------------------- */

static bool
lends(const struct np_plan *p)
{
	return p->role == NP_LEAD && !p->pattern->side[NP_LEAD]->steps->sends_file;
}

static const char *
zerocopy_why_not(const struct np_plan *p)
{
	const struct np_call_plan *call = &p->near.call;

	if (p->pattern->transactions || p->pattern->probe) {
		return "it is for streams only: a request must be read, and is short";
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

/* A kernel without it does not know the option; a session may have no socket of one family. */
static const char *
zerocopy_lacks(void)
{
	static const int families[] = { AF_INET, AF_INET6 };
	int fd = -1, one = 1, rc, error;

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]) && fd < 0; i++) {
		fd = socket(families[i], SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
	}
	if (fd < 0) {
		return NULL; /* there is no test either, and that says why */
	}
	rc = setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one));
	error = errno;
	close(fd);
	if (rc == 0) {
		return NULL;
	}
	return error == EPERM || error == EACCES
		   ? "this machine does not permit SO_ZEROCOPY"
		   : "this kernel has no SO_ZEROCOPY (Linux 4.14 has, 5.0 for UDP)";
}

static void
zerocopy_options(const struct np_plan *p, struct np_sockopts *o)
{
	if (lends(p)) {
		np_sockopts_add(o, SOL_SOCKET, SO_ZEROCOPY, "SO_ZEROCOPY", 1);
	}
}

static uint64_t
within(uint64_t least, uint64_t n, uint64_t most)
{
	return n > most ? most : n < least ? least : n;
}

/* Bytes of a message: the kernel doubles what a socket buffer is to have, or has less of it. */
static uint64_t
size_of(const struct np_plan *p)
{
	int32_t asked = p->near.call.send_size, sndbuf = p->near.sock.sndbuf;

	return asked > 0 ? (uint64_t)asked : sndbuf > 0 ? 2 * (uint64_t)sndbuf : USUAL_SIZE;
}

static uint32_t
zerocopy_width(const struct np_plan *p)
{
	uint64_t flows = (p->flows + np_plan_workers(p) - 1) / np_plan_workers(p);
	uint64_t size = size_of(p), each;

	if (!lends(p)) {
		return 1;
	}
	each = within(FEW, WANTED / size, MOST);
	each = within(FEW, MOST_BYTES / size / flows, each);
	return (uint32_t)within(within(FEW, MOST_BYTES / size, LEAST), flows * each, UINT32_MAX);
}

static uint64_t
zerocopy_bytes(const struct np_plan *p)
{
	return sizeof(struct zerocopy) + p->flows * (uint64_t)sizeof(struct np_lent) +
	       zerocopy_width(p) * (uint64_t)sizeof(bool);
}

static void
zerocopy_close(struct np_worker *w)
{
	free(w->engine_own);
	w->engine_own = NULL;
}

/* The slots' flags stand behind struct np_lent. */
static int
zerocopy_open(struct np_worker *w, struct np_err *err)
{
	const struct np_plan *p = w->run->plan;
	size_t flags = w->send_ring.width;
	uint32_t depth = 1;
	struct zerocopy *z;

	if (!lends(p)) {
		return NP_OK;
	}
	z = calloc(1, sizeof(*z) + w->conns * sizeof(z->lent[0]) + flags * sizeof(bool));
	w->engine_own = z;
	if (z == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for the engine zerocopy");
	}
	z->blocks = np_engine_blocks(&np_engine_zerocopy, p);
	while (2 * (size_t)depth * w->conns <= flags) {
		depth *= 2;
	}
	for (uint32_t i = 0; i < w->conns; i++) {
		z->lent[i].depth = depth;
		z->lent[i].held = (bool *)&z->lent[w->conns] + (size_t)i * depth;
	}
	return NP_OK;
}

static void
zerocopy_mark(struct np_worker *w)
{
	struct zerocopy *z = w->engine_own;

	for (uint32_t i = 0; z != NULL && i < w->conns; i++) {
		z->lent[i].since = 0;
	}
}

/* Wait as long as anything moves, and not beyond the last moment: it may go on moving for ever. */
static void
await_all(struct np_worker *w, struct np_conn *c, const struct np_lent *l, uint64_t last_ns)
{
	uint64_t until = np_deadline(NP_PART_S * NP_SEC), now;

	while (l->count > 0 && !np_abandoned(&w->stop) && (now = np_now()) < until &&
	       now < last_ns) {
		struct pollfd p = { .fd = c->fd };

		if (take_back(w, c)) {
			until = np_deadline(NP_PART_S * NP_SEC);
		} else {
			poll(&p, 1, LOOK_MS);
		}
	}
}

/*
 * The kernel must have let go of all buffers before they are used for anything else, or that would
 * be sent. TCP does once it is told to forget the connection; what is left otherwise is not freed.
 */
static void
zerocopy_finish(struct np_worker *w)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	uint64_t last_ns = np_deadline(REST_S * NP_SEC);
	struct zerocopy *z = w->engine_own;

	for (uint32_t i = 0; z != NULL && i < w->conns; i++) {
		struct np_conn *c = &w->conn[i];

		await_all(w, c, &z->lent[i], last_ns);
		if (z->lent[i].count > 0 && w->run->plan->transport->connected) {
			(void)connect(c->fd, &nowhere, sizeof(nowhere));
			while (take_back(w, c)) {
			}
		}
		if (z->lent[i].count > 0) {
			memset(&w->send_ring, 0, sizeof(w->send_ring));
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
	.close = zerocopy_close,
	.mark = zerocopy_mark,
	.finish = zerocopy_finish,
	.lends = true,
	.calls = &calls,
};
