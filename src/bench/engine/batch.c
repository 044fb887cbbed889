/*
 * The engine `batch`: many datagrams a call, sendmmsg(2) and recvmmsg(2). A receiver takes what is
 * there and does not wait for more; but see moderate().
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "bench/engine/calls.h"
#include "bench/run.h"

/* gcc's analyzer loses sight of what w->engine_own holds once buffers are laid out, and takes it
 * for leaked when the second allocation fails: batch_close() frees it. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

struct batch {
	struct np_batch turns; /* the first: np_batch_turns' */
	struct mmsghdr *out, *in;
	struct sockaddr_storage *from; /* of each of `in`; NULL: nobody asks */
	bool moderates;                /* may wait a moment for more to come */
	int last;                      /* how many the last call brought */
};

enum {
	SOME = 4,        /* datagrams of a call that came faster than they were fetched */
	MOMENT_NS = 5000 /* to which the kernel adds its timer slack, usually 50 us */
};

/*
 * A receiver that is asleep has the sender of the next datagram wake it, which costs more than the
 * datagram. While they come fast it sleeps for a moment of its own instead, as network cards do
 * between two interrupts. No socket buffer is full by then: it would not have been empty before.
 */
static void
moderate(const struct batch *b)
{
	const struct timespec moment = { .tv_nsec = MOMENT_NS };

	if (b->moderates && b->last >= SOME && b->last < (int)b->turns.most_in) {
		nanosleep(&moment, NULL);
	}
}

/* Of a stream whose datagrams wait for nobody, by calls that block. */
static bool
may_moderate(const struct np_plan *p)
{
	return !p->pattern->transactions && !p->transport->reliable &&
	       np_engine_blocks(&np_engine_batch, p);
}

static int
put(struct np_worker *w, struct np_conn *c, uint32_t first, uint32_t count)
{
	struct batch *b = w->engine_own;

	for (uint32_t i = first; i < first + count; i++) {
		np_message_to(&b->out[i].msg_hdr, &b->turns.out[i], w);
	}
	return sendmmsg(c->fd, b->out + first, count, MSG_NOSIGNAL);
}

/* No more than a paced end may take now: what it leaves in the socket is not due. */
static uint32_t
wanted(const struct np_worker *w, const struct batch *b)
{
	uint32_t most = b->turns.most_in;

	return (w->codec & NP_C_PACE) != 0 && w->load.left < most ? w->load.left : most;
}

static int
fetch(struct np_worker *w, struct np_conn *c, int flags)
{
	struct batch *b = w->engine_own;
	uint32_t most = wanted(w, b);
	int came;

	for (uint32_t i = 0; i < b->turns.most_in && b->from != NULL; i++) {
		b->in[i].msg_hdr.msg_namelen = sizeof(*b->from);
	}
	if (flags == 0) {
		moderate(b);
	}
	came = recvmmsg(c->fd, b->in, most, flags | MSG_WAITFORONE, NULL);
	b->last = came;
	b->turns.may_be_more = came == (int)most;
	for (int i = 0; i < came; i++) {
		b->turns.in[i].bytes = b->turns.in[i].size = b->in[i].msg_len;
		b->turns.in[i].addr_len = b->in[i].msg_hdr.msg_namelen;
	}
	return came;
}

static const struct np_batch_calls calls = { .put = put, .fetch = fetch };

/* Headers of `count` messages in the buffers of a ring, one in each. NULL: no memory. */
static struct mmsghdr *
headers_of(const struct np_ring *ring, uint32_t count)
{
	/* The vectors stand behind the headers. */
	struct mmsghdr *h = calloc(count, sizeof(*h) + sizeof(struct iovec));
	struct iovec *v = h != NULL ? (struct iovec *)(h + count) : NULL;
	const struct np_slot *slot = ring->slots;

	for (uint32_t i = 0; i < count && h != NULL; i++, slot = slot->next) {
		v[i] = (struct iovec){ .iov_base = slot->buf, .iov_len = ring->size };
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

static bool
take_out(struct np_worker *w, struct batch *b, uint32_t count)
{
	const struct np_slot *slot = w->send_ring.slots;

	if (slot == NULL) {
		return true;
	}
	b->turns.most_out = count;
	b->turns.out = calloc(count, sizeof(*b->turns.out));
	b->out = headers_of(&w->send_ring, count);
	for (uint32_t i = 0; i < count && b->turns.out != NULL; i++, slot = slot->next) {
		b->turns.out[i].buf = slot->buf;
	}
	return b->turns.out != NULL && b->out != NULL;
}

static bool
take_in(struct np_worker *w, struct batch *b, uint32_t count)
{
	const struct np_slot *slot = w->recv_ring.slots;

	if (slot == NULL) {
		return true;
	}
	b->turns.most_in = count;
	b->turns.in = calloc(count, sizeof(*b->turns.in));
	b->in = headers_of(&w->recv_ring, count);
	for (uint32_t i = 0; i < count && b->turns.in != NULL; i++, slot = slot->next) {
		b->turns.in[i].buf = slot->buf;
	}
	return b->turns.in != NULL && b->in != NULL &&
	       (!w->steps->answers || take_addresses(b, count));
}

static void
batch_close(struct np_worker *w)
{
	struct batch *b = w->engine_own;

	if (b != NULL) {
		free(b->turns.out);
		free(b->turns.in);
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
	const struct np_plan *p = w->run->plan;
	struct batch *b = calloc(1, sizeof(*b));

	w->engine_own = b;
	if (b == NULL || !take_out(w, b, p->batch) ||
	    !take_in(w, b, np_batch_receives_one(p) ? 1 : p->batch)) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for --batch %u", p->batch);
	}
	b->turns.calls = &calls;
	b->moderates = may_moderate(p);
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
	size_t each = sizeof(struct np_train) + sizeof(struct mmsghdr) + sizeof(struct iovec);

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
	.help = "many datagrams in a call (sendmmsg, recvmmsg; --batch)",
	.why_not = np_batch_why_not,
	.lacks = batch_lacks,
	.width = batch_width,
	.bytes = batch_bytes,
	.open = batch_open,
	.close = batch_close,
	.calls = &np_batch_turns,
};
