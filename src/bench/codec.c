#include "bench/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/units.h"
#include "bench/engine/syscall.h"
#include "bench/run.h"
#include "bench/sequence.h"
#include "bench/stamps.h"
#include "net/eth.h"

/* Indexes of np_worker.pipe: write end, read end, /dev/null. */
enum { INTO, OUT_OF, SINK, ENDS };

enum { PIPE = 64 << 10 }; /* bytes that a pipe holds, if its user has not too many (pipe(7)) */

unsigned
np_codec_of(const struct np_plan *p)
{
	const struct np_end *e = &p->near;

	/* PACE: -b and -w, or --rate of a stream. */
	return (e->call.dirty > 0 || e->call.clean > 0 ? NP_C_TOUCH : 0u) |
	       (p->use_write ? NP_C_WRITE : 0u) |
	       (p->time_calls && !p->pattern->transactions ? NP_C_TIME : 0u) |
	       (np_load_of(e) != &np_load_closed || np_plan_messages(p, 1) > 0 ? NP_C_PACE : 0u);
}

/* A number of bytes, at least 0 and at most the limit. */
static size_t
within(int32_t bytes, size_t limit)
{
	size_t wanted = bytes > 0 ? (size_t)bytes : 0;

	return wanted < limit ? wanted : limit;
}

void
np_codec_touch(struct np_worker *w, char *buf, size_t size)
{
	const struct np_end *e = &w->run->plan->near;
	size_t header = within(w->run->plan->transport->header, size); /* stays untouched */
	size_t rest = size - header;
	size_t dirty = within(e->call.dirty, rest),
	       end = dirty + within(e->call.clean, rest - dirty);
	volatile unsigned char sink; /* what is read must not be optimised away */
	unsigned char sum = 0;

	buf += header;
	memset(buf, ++w->touched, dirty);
	for (size_t i = dirty; i < end; i++) {
		sum ^= (unsigned char)buf[i];
	}
	sink = sum;
	(void)sink;
}

void
np_codec_prepare(struct np_worker *w, char *buf, uint64_t number, uint64_t now_ns)
{
	if ((w->codec & NP_C_TOUCH) != 0) { /* first, as it overwrites number and id */
		np_codec_touch(w, buf, w->send_size);
	}
	if ((w->codec & NP_C_NUMBER) != 0) {
		np_sequence_mark(buf, number, now_ns, (w->codec & NP_C_WARM) != 0);
	}
	if ((w->codec & (NP_C_ID | NP_C_MANY_IDS)) != 0) {
		np_id_write(w->id, number, buf);
	}
}

/*
 * Answer a datagram from the address that it was sent to (-B): routes might prefer another of the
 * machine's addresses, and a connected requester drops such an answer.
 */
static ssize_t
send_from(struct np_worker *w, const struct np_conn *c, char *buf)
{
	struct np_pktinfo *info = &w->pktinfo;
	struct iovec iov = { .iov_base = buf, .iov_len = w->send_size };
	struct msghdr m = {
		.msg_name = w->from,
		.msg_namelen = info->from_len,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = info->used > 0 ? info->control : NULL,
		.msg_controllen = info->used,
	};

	return sendmsg(c->fd, &m, MSG_NOSIGNAL);
}

ssize_t
np_codec_send(struct np_worker *w, struct np_conn *c, char *buf)
{
	size_t size = w->send_size;

	np_codec_prepare(w, buf, c->number, (w->codec & NP_C_NUMBER) != 0 ? np_now() : 0);
	if ((w->codec & NP_C_STAMPS) != 0) {
		return np_stamps_send(w, c, buf);
	}
	if ((w->codec & NP_C_PKTINFO) != 0) {
		return send_from(w, c, buf);
	}
	if ((w->codec & NP_C_WRITE) != 0 && w->to == NULL) { /* write(2) takes no address */
		return np_sys_write(c->fd, buf, size);
	}
	return np_sys_sendto(c->fd, buf, size, w->to, w->to_len);
}

/* Open a pipe from socket to /dev/null, in the worker's own descriptor table. False: do without. */
static bool
open_pipe(struct np_worker *w)
{
	int ends[2];

	if (w->pipe[SINK] >= 0) {
		return true;
	}
	if (pipe2(ends, O_CLOEXEC) != 0) {
		return false;
	}
	w->pipe[OUT_OF] = ends[0];
	w->pipe[INTO] = ends[1];
	w->pipe[SINK] = open("/dev/null", O_WRONLY | O_CLOEXEC);
	/* EPERM: this user has too many pipe pages (pipe(7)), so this one has two: too slow. */
	if (w->pipe[SINK] < 0 ||
	    (fcntl(w->pipe[INTO], F_SETPIPE_SZ, (int)np_min(w->recv_size, PIPE)) < 0 &&
	     errno == EPERM)) {
		return false;
	}
	/* A call moves no more than the pipe holds. If it can't grow, there are more calls. */
	if (w->recv_size <= INT32_MAX) {
		(void)fcntl(w->pipe[INTO], F_SETPIPE_SZ, (int)w->recv_size);
	}
	return true;
}

/* Discard `count` bytes of the pipe. Returns count, or -1 with errno. */
static ssize_t
empty_pipe(struct np_worker *w, ssize_t count)
{
	for (ssize_t left = count; left > 0;) {
		ssize_t n =
		    splice(w->pipe[OUT_OF], NULL, w->pipe[SINK], NULL, (size_t)left, SPLICE_F_MOVE);

		if (n == 0) {
			errno = EIO;
		}
		if (n == 0 || (n < 0 && errno != EINTR)) {
			return -1;
		}
		left -= n > 0 ? n : 0;
	}
	return count;
}

/* Receive a datagram, with the address that it was sent to, for send_from(). */
static ssize_t
recv_to(struct np_worker *w, const struct np_conn *c, char *buf)
{
	struct np_pktinfo *info = &w->pktinfo;
	struct iovec iov = { .iov_base = buf, .iov_len = w->recv_size };
	struct msghdr m = {
		.msg_name = w->from,
		.msg_namelen = sizeof(struct sockaddr_storage),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = info->control,
		.msg_controllen = sizeof(info->control),
	};
	ssize_t n = recvmsg(c->fd, &m, 0);
	struct cmsghdr *h = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL;
	struct in_pktinfo four;
	struct in6_pktinfo six;

	info->used = 0;
	info->from_len = m.msg_namelen;
	/* Turn what was received into what is sent with the answer. Routes choose the interface,
	 * except that a link-local address is only valid on its own. */
	if (h != NULL && h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_PKTINFO) {
		memcpy(&four, CMSG_DATA(h), sizeof(four));
		four.ipi_ifindex = 0;
		memcpy(CMSG_DATA(h), &four, sizeof(four));
		info->used = CMSG_SPACE(sizeof(four));
	} else if (h != NULL && h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_PKTINFO) {
		memcpy(&six, CMSG_DATA(h), sizeof(six));
		if (!IN6_IS_ADDR_LINKLOCAL(&six.ipi6_addr)) {
			six.ipi6_ifindex = 0;
		}
		memcpy(CMSG_DATA(h), &six, sizeof(six));
		/* A multicast address can't be a source; in IPv4 ipi_spec_dst is one of ours. */
		info->used = IN6_IS_ADDR_MULTICAST(&six.ipi6_addr) ? 0 : CMSG_SPACE(sizeof(six));
	}
	return n;
}

/* Receive a message; its source goes to `from`, if that is not NULL. */
static ssize_t
recv_one(struct np_worker *w, struct np_conn *c, char *buf, struct sockaddr *from)
{
	if ((w->codec & NP_C_PKTINFO) != 0) {
		return recv_to(w, c, buf);
	}
	if ((w->codec & NP_C_STAMPS) != 0) {
		return np_stamps_recv(w, c, buf);
	}
	return np_sys_recvfrom(c->fd, buf, w->recv_size, from, &w->from_len);
}

/* Receive the next datagram of an allowed peer. EINTR also if stopped, or at the time-out. */
static ssize_t
recv_compared(struct np_worker *w, struct np_conn *c, char *buf)
{
	struct np_addr *from = /* where w->from points */
	    w->from == (struct sockaddr *)&w->run->end.peer.sa ? &w->run->end.peer : &w->peer;
	ssize_t n;

	do {
		w->from_len = sizeof(from->sa);
		n = recv_one(w, c, buf, (struct sockaddr *)&from->sa);
		if (n < 0 || np_run_accepts_from(w->run, from)) {
			return n;
		}
		/* A stream of other peers' datagrams must not delay a stop or a time-out. */
	} while (!np_stopped(&w->stop) &&
		 (w->timeout_ns == 0 || np_now() - c->since_ns < w->timeout_ns));
	errno = EINTR;
	return -1;
}

ssize_t
np_codec_left(struct np_worker *w, struct np_conn *c, char *buf)
{
	enum { MOST = 1 << 16 }; /* other peers may send for ever */
	struct np_addr from;

	if ((w->codec & NP_C_COMPARE) == 0) {
		return recv(c->fd, buf, w->recv_size, MSG_DONTWAIT);
	}
	for (int i = 0; i < MOST; i++) {
		socklen_t len = sizeof(from.sa);
		ssize_t n = recvfrom(c->fd, buf, w->recv_size, MSG_DONTWAIT,
				     (struct sockaddr *)&from.sa, &len);

		if (n < 0 || np_run_accepts_from(w->run, &from)) {
			return n;
		}
	}
	errno = EAGAIN;
	return -1;
}

ssize_t
np_codec_recv(struct np_worker *w, struct np_conn *c, char *buf)
{
	size_t size = w->recv_size;
	ssize_t n;

	if ((w->codec & NP_C_SPLICE) != 0 && open_pipe(w)) {
		n = splice(c->fd, NULL, w->pipe[INTO], NULL, size, SPLICE_F_MOVE);
		/* On these errors nothing was moved: this kind of socket has no splice(2). */
		if (n >= 0 || (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)) {
			return n > 0 ? empty_pipe(w, n) : n;
		}
	}
	w->codec &= ~(unsigned)NP_C_SPLICE; /* receive as usual from now on */
	if ((w->codec & NP_C_TOUCH) != 0) {
		np_codec_touch(w, buf, size);
	}
	if ((w->codec & NP_C_COMPARE) != 0) {
		return recv_compared(w, c, buf);
	}
	n = recv_one(w, c, buf, w->from);
	return (w->codec & NP_C_FRAME) != 0 && n > 0 && np_eth_is_end(buf) ? 0 : n; /* 0: the end */
}

void
np_codec_close(struct np_worker *w)
{
	for (int i = 0; i < ENDS; i++) {
		np_fds_close(w->pipe[i]);
		w->pipe[i] = -1;
	}
}
