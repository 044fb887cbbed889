/*
 * The engine `batch`: many datagrams a call, sendmmsg(2) and recvmmsg(2). A receiver takes what is
 * there and does not wait for more.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "bench/engine/calls.h"
#include "bench/run.h"

struct batch {
	struct np_batch turns; /* the first: np_batch_turns' */
	struct mmsghdr *out, *in;
	struct sockaddr_storage *from; /* of each of `in`; NULL: nobody asks */
};

static int
put(struct np_worker *w, struct np_conn *c, uint32_t first, uint32_t count)
{
	struct batch *b = w->engine_own;

	for (uint32_t i = first; i < first + count; i++) {
		const struct np_message *m = &b->turns.out[i];
		struct msghdr *h = &b->out[i].msg_hdr;

		/* The kernel only reads it. */
		h->msg_name = (void *)(uintptr_t)(m->addr != NULL ? m->addr : w->to);
		h->msg_namelen = m->addr != NULL ? m->addr_len : w->to_len;
	}
	return sendmmsg(c->fd, b->out + first, count, MSG_NOSIGNAL);
}

static int
fetch(struct np_worker *w, struct np_conn *c, int flags)
{
	struct batch *b = w->engine_own;
	int came;

	for (uint32_t i = 0; i < b->turns.most_in && b->from != NULL; i++) {
		b->in[i].msg_hdr.msg_namelen = sizeof(*b->from);
	}
	came = recvmmsg(c->fd, b->in, b->turns.most_in, flags | MSG_WAITFORONE, NULL);
	for (int i = 0; i < came; i++) {
		b->turns.in[i].size = b->in[i].msg_len;
		b->turns.in[i].addr_len = b->in[i].msg_hdr.msg_namelen;
	}
	return came;
}

static const struct np_batch_calls calls = { .put = put, .fetch = fetch };

/* So many messages in the buffers of a ring, one in each. NULL: no memory. */
static struct mmsghdr *
headers_of(const struct np_ring *ring, size_t size, struct np_message *messages, uint32_t count)
{
	/* The vectors stand behind the headers. */
	struct mmsghdr *h = calloc(count, sizeof(*h) + sizeof(struct iovec));
	struct iovec *v = h != NULL ? (struct iovec *)(h + count) : NULL;
	const struct np_slot *slot = ring->slots;

	for (uint32_t i = 0; i < count && h != NULL; i++, slot = slot->next) {
		messages[i].buf = slot->buf;
		messages[i].size = size;
		v[i] = (struct iovec){ .iov_base = slot->buf, .iov_len = size };
		h[i].msg_hdr.msg_iov = &v[i];
		h[i].msg_hdr.msg_iovlen = 1;
	}
	return h;
}

/* The addresses of those who are answered. */
static bool
take_addresses(struct batch *b, uint32_t count)
{
	b->from = calloc(count, sizeof(*b->from));
	for (uint32_t i = 0; i < count && b->from != NULL; i++) {
		b->turns.in[i].addr = (const struct sockaddr *)&b->from[i];
		b->in[i].msg_hdr.msg_name = &b->from[i];
	}
	return b->from != NULL;
}

/* What stays the same from call to call. */
static bool
take(struct np_worker *w, struct batch *b, uint32_t count)
{
	struct np_batch *t = &b->turns;

	t->out = calloc(2 * (size_t)count, sizeof(*t->out));
	if (t->out == NULL) {
		return false;
	}
	t->in = t->out + count;
	if (w->send_ring.slots != NULL) {
		t->most_out = count;
		b->out = headers_of(&w->send_ring, w->send_size, t->out, count);
	}
	if (w->recv_ring.slots != NULL) {
		t->most_in = count;
		b->in = headers_of(&w->recv_ring, w->recv_size, t->in, count);
	}
	return (t->most_out == 0 || b->out != NULL) && (t->most_in == 0 || b->in != NULL) &&
	       (!w->steps->answers || take_addresses(b, count));
}

static void
batch_close(struct np_worker *w)
{
	struct batch *b = w->engine_own;

	if (b != NULL) {
		free(b->turns.out);
		free(b->out);
		free(b->in);
		free(b->from);
		free(b);
		w->engine_own = NULL;
	}
}

static int
batch_open(struct np_worker *w, struct np_err *err)
{
	struct batch *b = calloc(1, sizeof(*b));

	w->engine_own = b;
	if (b == NULL || !take(w, b, w->run->plan->batch)) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for --batch %u", w->run->plan->batch);
	}
	b->turns.calls = &calls;
	return NP_OK;
}

static uint32_t
batch_width(const struct np_plan *p)
{
	return p->batch;
}

static uint64_t
batch_bytes(const struct np_plan *p)
{
	size_t each = sizeof(struct np_message) + sizeof(struct mmsghdr) + sizeof(struct iovec);

	return p->batch * (uint64_t)(2 * each + sizeof(struct sockaddr_storage));
}

/* What is there finds that the descriptor is none. */
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
	.help = "many datagrams a call (sendmmsg, recvmmsg; --batch)",
	.why_not = np_batch_why_not,
	.lacks = batch_lacks,
	.width = batch_width,
	.bytes = batch_bytes,
	.open = batch_open,
	.close = batch_close,
	.calls = &np_batch_turns,
};
