/*
 * The engine `segment`: the kernel or the device cuts a sent block into datagrams (UDP_SEGMENT) and
 * joins received ones (UDP_GRO). A block passes the layers once, not once a datagram. See udp(7).
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "bench/bench.h"
#include "bench/engine/calls.h"
#include "bench/run.h"

enum {
	MOST = 64,       /* datagrams that any kernel makes of a call: its UDP_MAX_SEGMENTS */
	LONGEST = 65507, /* bytes of a send: 65535 with the headers of IPv4 and UDP */
	ROOM = 1 << 16   /* bytes: more than any call sends or receives */
};

union control {
	struct cmsghdr head; /* for its alignment */
	char room[CMSG_SPACE(sizeof(int))];
};

struct segment {
	struct np_batch base; /* must be the first member: np_batch_turns uses it */
	struct np_outgoing out[MOST];
	struct np_train in;           /* base.in: the block that a call received, in room */
	struct sockaddr_storage from; /* its source, if a responder needs it */
	char block[ROOM]; /* what is sent: the buffers of base.out, one after the other */
	char room[ROOM];  /* what was received */
};

/* np_batch.put, as one block. Returns `count`, or -1; EMSGSIZE ends the test (w->err). */
static int
put(struct np_worker *w, struct np_conn *c, uint32_t first, uint32_t count)
{
	struct segment *s = w->engine.state;
	const struct np_outgoing *m = &s->base.out[first];
	struct iovec block = { .iov_base = m->buf, .iov_len = count * w->send_size };
	struct msghdr h = { .msg_iov = &block, .msg_iovlen = 1 };
	uint16_t size = (uint16_t)w->send_size;
	union control control;

	np_message_to(&h, m, w);
	if (count > 1) {
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(sizeof(size));
		control.head.cmsg_level = IPPROTO_UDP;
		control.head.cmsg_type = UDP_SEGMENT;
		control.head.cmsg_len = CMSG_LEN(sizeof(size));
		memcpy(CMSG_DATA(&control.head), &size, sizeof(size));
	}
	if (sendmsg(c->fd, &h, MSG_NOSIGNAL) >= 0) {
		w->engine.count[NP_E_CUT] += count > 1;
		return (int)count;
	}
	/* Explain why the kernel refuses to cut a block. */
	if (count > 1 && errno == EIO) {
		np_fail(
		    &w->err, NP_ESYS, EIO,
		    "the engine segment: the path to the far end does not support segmentation "
		    "offload (IPsec, or a device without checksum offload; try --engine batch)");
		errno = EMSGSIZE;
	} else if (count > 1 && (errno == EINVAL || errno == EMSGSIZE)) {
		np_fail(&w->err, NP_EUSAGE, EMSGSIZE,
			"the engine segment: datagrams of %zu bytes do not fit into the MTU of the "
			"path, and it sends no fragments (try %s)",
			w->send_size,
			w->run->plan->pattern->sized ? "-- -r 1400"
						     : "-- -m 1400, or --segment-size 1400");
		errno = EMSGSIZE;
	}
	return -1;
}

/* np_batch.fetch: one train, a datagram or several of one size that the kernel has joined. */
static int
fetch(struct np_worker *w, struct np_conn *c, int flags)
{
	struct segment *s = w->engine.state;
	bool want_from = s->in.addr != NULL;
	union control control;
	struct iovec room = { .iov_base = s->room, .iov_len = sizeof(s->room) };
	struct msghdr h = { .msg_name = want_from ? &s->from : NULL,
			    .msg_namelen = want_from ? sizeof(s->from) : 0,
			    .msg_iov = &room,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(c->fd, &h, flags);
	const struct cmsghdr *m;
	int size = 0;

	if (n < 0) {
		return -1;
	}
	s->in.bytes = (size_t)n;
	m = CMSG_FIRSTHDR(&h); /* the size, if the datagrams were joined */
	if (m != NULL && m->cmsg_level == IPPROTO_UDP && m->cmsg_type == UDP_GRO &&
	    m->cmsg_len >= CMSG_LEN(sizeof(size))) {
		memcpy(&size, CMSG_DATA(m), sizeof(size));
	}
	s->in.size = size > 0 && (size_t)size < s->in.bytes ? (size_t)size : s->in.bytes;
	s->in.addr_len = h.msg_namelen;
	s->base.may_be_more = s->in.size < s->in.bytes; /* joined: more may be queued */
	w->engine.count[NP_E_JOINED] += s->base.may_be_more;
	return 1;
}

uint32_t
np_segment_most(const struct np_plan *p, size_t size)
{
	uint32_t batch = np_plan_batch(p), most = batch < MOST ? batch : MOST;
	size_t fit = LONGEST / size;

	return fit == 0 ? 1 : fit < most ? (uint32_t)fit : most;
}

/* np_engine.open: give each message to send a buffer, in one row; receive into `room`. */
static int
segment_open(struct np_worker *w, struct np_err *err)
{
	struct segment *s = w->engine.state;
	const struct np_slot *slot = w->send_ring.slots;
	uint32_t count = slot != NULL ? np_segment_most(w->run->plan, w->send_size) : 0;

	s->base.most_out = count;
	s->base.out = s->out;
	for (uint32_t i = 0; i < count; i++, slot = slot->next) {
		/* A block is contiguous: copy its messages. A single one stays: it may not fit. */
		s->out[i].buf = count > 1 ? s->block + i * w->send_size : slot->buf;
		memmove(s->out[i].buf, slot->buf, w->send_size);
	}
	memset(s->room, 0xff, sizeof(s->room)); /* no page faults in the loop */
	s->in.buf = s->room;
	s->in.addr = w->steps->answers ? (const struct sockaddr *)&s->from : NULL;
	s->base.in = &s->in;
	s->base.most_in = 1;
	s->base.put = put;
	s->base.fetch = fetch;
	return NP_OK;
}

static uint64_t
segment_bytes(const struct np_plan *p)
{
	return sizeof(struct segment);
}

static const char *
segment_why_not(const struct np_plan *p)
{
	const char *why = np_batch_why_not(p);

	if (why == NULL && p->transport->ip_protocol != IPPROTO_UDP) {
		return "it is for UDP datagrams only";
	}
	return why;
}

/* np_engine.lacks: try the options on a socket. */
static const char *
segment_lacks(void)
{
	struct np_err ignored;
	int fd = np_sock_trial(AF_UNSPEC, SOCK_DGRAM, 0, &ignored), size = 1000, on = 1;
	const char *lacks = NULL;

	/* Without a socket the test itself will fail, and say why. */
	if (fd >= 0 && setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)) != 0) {
		lacks = "the kernel has no UDP_SEGMENT, or forbids it (Linux 4.18 has it)";
	} else if (fd >= 0 && setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) != 0) {
		lacks = "the kernel has no UDP_GRO, or forbids it (Linux 5.0 has it)";
	}
	np_fds_close(fd);
	return lacks;
}

/* np_engine.options: have the kernel join what this end receives, unless it must come singly. */
static void
segment_options(const struct np_plan *p, struct np_sockopts *o)
{
	bool receives = p->role == NP_FOLLOW || p->pattern->transactions;

	NP_SOCKOPT(o, receives && !np_batch_must_receive_singly(p), IPPROTO_UDP, UDP_GRO, 1);
}

const struct np_engine np_engine_segment = {
	.name = "segment",
	.help = "the kernel splits and joins datagrams (UDP_SEGMENT, UDP_GRO; --segment-size)",
	.why_not = segment_why_not,
	.lacks = segment_lacks,
	.options = segment_options,
	.bytes = segment_bytes,
	.open = segment_open,
	.calls = &np_batch_turns,
};
