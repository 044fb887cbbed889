/* The engine `batch`: sendmmsg(2), recvmmsg(2). A stream's receiver may let datagrams collect. */
#include <errno.h>
#include <sys/socket.h>
#include <time.h>

#include "bench/engine/calls.h"
#include "bench/run.h"

struct batch {
	struct np_batch base; /* must be the first member: np_batch_turns uses it */
	struct mmsghdr *out, *in;
	struct iovec *out_iov, *in_iov; /* the buffer of each of them */
	struct sockaddr_storage *from;  /* of each of `in` */
	bool moderates;                 /* may sleep for MOMENT_NS before a receive */
	int last;                       /* datagrams of the last recvmmsg(2), or -1 */
};

enum {
	FAST = 4, /* datagrams of a call, from which on they arrive faster than they are fetched */
	MOMENT_NS = 5000 /* of sleep, to which the kernel adds its timer slack, usually 50 us */
};

/* np_batch.put: one sendmmsg(2). */
static int
put(struct np_worker *w, struct np_conn *c, uint32_t first, uint32_t count)
{
	struct batch *b = w->engine.state;

	for (uint32_t i = first; i < first + count; i++) {
		np_message_to(&b->out[i].msg_hdr, &b->base.out[i], w);
	}
	return sendmmsg(c->fd, b->out + first, count, MSG_NOSIGNAL);
}

/* np_batch.fetch: one recvmmsg(2), perhaps after a short sleep. A train is one datagram. */
static int
fetch(struct np_worker *w, struct np_conn *c, int flags)
{
	static const struct timespec moment = { .tv_nsec = MOMENT_NS };
	struct batch *b = w->engine.state;
	/* A paced end leaves in the socket what it may not process yet. */
	uint32_t most = (uint32_t)np_paced_row(w, c, b->base.most_in);
	int count;

	for (uint32_t i = 0; i < b->base.most_in && w->steps->answers; i++) {
		b->in[i].msg_hdr.msg_namelen = sizeof(*b->from); /* the last call changed it */
	}
	/*
	 * A sender on this machine spends more on waking a receiver than on a datagram. While
	 * datagrams arrive fast, sleep for a moment instead of blocking. Only if the last call
	 * emptied the socket: in that moment its buffer does not fill up.
	 */
	if (flags == 0 && b->moderates && b->last >= FAST && !b->base.may_be_more) {
		nanosleep(&moment, NULL);
	}
	count = recvmmsg(c->fd, b->in, most, flags | MSG_WAITFORONE, NULL);
	b->last = count;
	b->base.may_be_more = count == (int)most;
	for (int i = 0; i < count; i++) {
		b->base.in[i].bytes = b->base.in[i].size = b->in[i].msg_len;
		b->base.in[i].addr_len = b->in[i].msg_hdr.msg_namelen;
	}
	return count;
}

/* Take the arrays for a call from `room`; without memory only their size is added up. */
static struct batch
lay_out(const struct np_plan *p, struct np_room *room)
{
	uint32_t out = np_plan_batch(p), in = np_batch_must_receive_singly(p) ? 1 : out;

	return (struct batch){
		.base = { .put = put,
			  .fetch = fetch,
			  .most_out = out,
			  .most_in = in,
			  .out = np_room_take(room, out, sizeof(struct np_outgoing)),
			  .in = np_room_take(room, in, sizeof(struct np_train)) },
		.out = np_room_take(room, out, sizeof(struct mmsghdr)),
		.in = np_room_take(room, in, sizeof(struct mmsghdr)),
		.out_iov = np_room_take(room, out, sizeof(struct iovec)),
		.in_iov = np_room_take(room, in, sizeof(struct iovec)),
		.from = np_room_take(room, in, sizeof(struct sockaddr_storage)),
		/* Not where a sleep delays answers, a sender that waits for room, or events. */
		.moderates = !p->pattern->transactions && !p->transport->reliable &&
			     np_engine_blocks(&np_engine_batch, p),
	};
}

static uint64_t
batch_bytes(const struct np_plan *p)
{
	struct np_room room = { .used = sizeof(struct batch) };

	(void)lay_out(p, &room);
	return room.used;
}

/* Have a header describe one message, in a buffer of w->send_ring or w->recv_ring. */
static void
point_at(struct mmsghdr *h, struct iovec *v, char *buf, size_t size)
{
	*v = (struct iovec){ .iov_base = buf, .iov_len = size };
	h->msg_hdr.msg_iov = v;
	h->msg_hdr.msg_iovlen = 1;
}

/* np_engine.open: lay out the state, and give each message a buffer of the rings. */
static int
batch_open(struct np_worker *w, struct np_err *err)
{
	struct np_room room = { .at = w->engine.state, .used = sizeof(struct batch) };
	struct np_slot *out = w->send_ring.slots, *in = w->recv_ring.slots;
	struct batch *b = w->engine.state;

	*b = lay_out(w->run->plan, &room);
	/* `out` is NULL at an end that only receives, `in` at one that only sends. */
	for (uint32_t i = 0; i < b->base.most_out && out != NULL; i++, out = out->next) {
		b->base.out[i].buf = out->buf;
		point_at(&b->out[i], &b->out_iov[i], out->buf, w->send_ring.size);
	}
	for (uint32_t i = 0; i < b->base.most_in && in != NULL; i++, in = in->next) {
		b->base.in[i].buf = in->buf;
		point_at(&b->in[i], &b->in_iov[i], in->buf, w->recv_ring.size);
		if (w->steps->answers) {
			b->base.in[i].addr = (const struct sockaddr *)&b->from[i];
			b->in[i].msg_hdr.msg_name = &b->from[i];
		}
	}
	return NP_OK;
}

/* np_engine.lacks: calls that the kernel has and allows fail with EBADF for descriptor -1. */
static const char *
batch_lacks(void)
{
	struct mmsghdr none = { .msg_len = 0 };

	if ((sendmmsg(-1, &none, 1, 0) < 0 && errno != EBADF) ||
	    (recvmmsg(-1, &none, 1, 0, NULL) < 0 && errno != EBADF)) {
		return errno == ENOSYS
			   ? "the kernel has no sendmmsg(2) or recvmmsg(2)"
			   : "sendmmsg(2) or recvmmsg(2) is forbidden (a filter of system calls?)";
	}
	return NULL;
}

const struct np_engine np_engine_batch = {
	.name = "batch",
	.help = "many datagrams in a call (sendmmsg, recvmmsg; --batch)",
	.why_not = np_batch_why_not,
	.lacks = batch_lacks,
	.width = np_plan_batch,
	.bytes = batch_bytes,
	.open = batch_open,
	.calls = &np_batch_turns,
};
