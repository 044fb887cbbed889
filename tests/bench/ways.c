/*
 * Bare loops by other ways into the kernel than one blocking call a message: many datagrams a call,
 * segments, discarding what came without copying it, never sleeping. As plain as those of bare.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sendmmsg(), memfd_create() */
#endif
#include <err.h>
#include <errno.h>
#include <linux/udp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bare.h"

enum {
	BATCH = 64,   /* datagrams a call, as many as the kernel takes as segments of one send */
	MOST = 65507, /* bytes of a call that sends segments */
	GRO_SIZE = 65535, /* of one that receives them */
	SMALL_SIZE = 64,  /* of a datagram, unless the user says */
	FILE_SIZE = 1 << 20
};

/* --- many datagrams a call -------------------------------------------------------------------- */

struct batch {
	struct mmsghdr head[BATCH];
	struct iovec part[BATCH];
};

/* Messages of that size, all in one buffer: their contents do not matter. */
static void
prepare(struct batch *b, const struct ends *e, size_t size)
{
	memset(b, 0, sizeof(*b));
	for (int i = 0; i < BATCH; i++) {
		b->part[i] = (struct iovec){ .iov_base = e->buf, .iov_len = size };
		b->head[i].msg_hdr.msg_iov = &b->part[i];
		b->head[i].msg_hdr.msg_iovlen = 1;
	}
}

static uint64_t
batch_near(const struct ends *e)
{
	struct sockaddr_in to = e->far_addr;
	struct batch b;

	prepare(&b, e, e->size);
	for (int i = 0; i < BATCH; i++) {
		b.head[i].msg_hdr.msg_name = &to;
		b.head[i].msg_hdr.msg_namelen = sizeof(to);
	}
	while (!time_is_up && sendmmsg(e->near, b.head, BATCH, 0) > 0) {
	}
	return 0;
}

static uint64_t
batch_far(const struct ends *e)
{
	uint64_t bytes = 0;
	struct batch b;

	prepare(&b, e, e->size);
	for (;;) {
		int came = recvmmsg(e->far, b.head, BATCH, MSG_WAITFORONE, NULL);

		for (int i = 0; i < came; i++) {
			if (b.head[i].msg_len == 0) {
				return bytes;
			}
			bytes += b.head[i].msg_len;
		}
	}
}

/* --- segments --------------------------------------------------------------------------------- */

static void
set_udp(int fd, int option, int value)
{
	if (setsockopt(fd, IPPROTO_UDP, option, &value, sizeof(value)) != 0) {
		err(1, "UDP option %d", option);
	}
}

static uint64_t
segment_near(const struct ends *e)
{
	size_t most = MOST / e->size, block = (most < BATCH ? most : BATCH) * e->size;

	set_udp(e->near, UDP_SEGMENT, (int)e->size);
	while (!time_is_up && send_near(e, block) > 0) {
	}
	return 0;
}

/* The end mark is a datagram alone, but may come with others. */
static void
segment_finish(const struct ends *e)
{
	set_udp(e->near, UDP_SEGMENT, 0);
	udp_stream_finish(e);
}

/* The kernel says of what size the datagrams were that it put together; each of them is counted. */
static uint64_t
segment_far(const struct ends *e)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec part = { .iov_base = e->buf, .iov_len = GRO_SIZE };
	uint64_t datagrams = 0, odd = 0;

	set_udp(e->far, UDP_GRO, 1);
	for (;;) {
		struct msghdr m = { .msg_iov = &part,
				    .msg_iovlen = 1,
				    .msg_control = control,
				    .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(e->far, &m, 0);
		const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
		int size = (int)n;

		if (n == 0) {
			return datagrams * e->size + odd;
		}
		if (c != NULL && c->cmsg_type == UDP_GRO) {
			memcpy(&size, CMSG_DATA(c), sizeof(size));
		}
		if (n > 0 && (size_t)size == e->size) {
			datagrams += (uint64_t)(n / size);
		} else if (n > 0) {
			odd += (uint64_t)n;
		}
	}
}

/* --- no copy to user space -------------------------------------------------------------------- */

/* To the end of file; what came is thrown away by the kernel. */
static uint64_t
truncate_far(const struct ends *e)
{
	int fd = accept_near(e);
	uint64_t bytes = 0;

	for (;;) {
		ssize_t n = recv(fd, e->buf, RECV_SIZE, MSG_TRUNC);

		if (n > 0) {
			bytes += (uint64_t)n;
		} else if (n == 0 || errno != EINTR) {
			close(fd);
			return bytes;
		}
	}
}

/* A file in memory, of which two calls' size is sent again and again, as netperf's is. */
static uint64_t
sendfile_near(const struct ends *e)
{
	int fd = connect_far(e, 0), file = memfd_create("bare", 0);
	char zeroes[4096] = { 0 };
	off_t from = 0;

	for (size_t done = 0; done < FILE_SIZE; done += sizeof(zeroes)) {
		if (file < 0 || write(file, zeroes, sizeof(zeroes)) != sizeof(zeroes)) {
			err(1, "file in memory");
		}
	}
	while (!time_is_up && sendfile(fd, file, &from, e->size) > 0) {
		from = from < (off_t)(2 * e->size) ? from : 0;
	}
	shutdown(fd, SHUT_WR);
	recv_all(fd, e);
	close(file);
	close(fd);
	return 0;
}

/* --- never asleep ----------------------------------------------------------------------------- */

/* Something has come: true; the time is up or the peer is gone: false. */
static bool
spin_recv(int fd, const struct ends *e, struct sockaddr_in *from)
{
	socklen_t len = sizeof(*from);

	while (!time_is_up) {
		ssize_t n = recvfrom(fd, e->buf, e->size, MSG_DONTWAIT, (struct sockaddr *)from,
				     from != NULL ? &len : NULL);

		if (n >= 0) {
			return n > 0;
		}
		if (errno != EAGAIN && errno != EINTR) {
			return false;
		}
	}
	return false;
}

static uint64_t
spin_rr_near(const struct ends *e)
{
	int fd = connect_far(e, 0);
	uint64_t done = 0;

	while (send(fd, e->buf, e->size, MSG_NOSIGNAL) > 0 && spin_recv(fd, e, NULL)) {
		done++;
	}
	close(fd);
	return done;
}

static uint64_t
spin_rr_far(const struct ends *e)
{
	int fd = accept_near(e);

	while (spin_recv(fd, e, NULL) && send(fd, e->buf, e->size, MSG_NOSIGNAL) > 0) {
	}
	close(fd);
	return 0;
}

static uint64_t
spin_udp_near(const struct ends *e)
{
	struct sockaddr_in from;
	uint64_t done = 0;

	while (send_near(e, e->size) > 0 && spin_recv(e->near, e, &from)) {
		done++;
	}
	return done;
}

static uint64_t
spin_udp_far(const struct ends *e)
{
	struct sockaddr_in from;

	while (spin_recv(e->far, e, &from)) {
		sendto(e->far, e->buf, e->size, 0, (struct sockaddr *)&from, sizeof(from));
	}
	return 0;
}

const struct pattern bare_ways[] = {
	{ "BATCH", SOCK_DGRAM, SMALL_SIZE, 8e-6, batch_near, batch_far, udp_stream_finish, true },
	{ "SEGMENT", SOCK_DGRAM, SMALL_SIZE, 8e-6, segment_near, segment_far, segment_finish,
	  true },
	{ "TRUNCATE", SOCK_STREAM, TCP_SEND_SIZE, 8e-6, stream_near, truncate_far, NULL, true },
	{ "SENDFILE", SOCK_STREAM, TCP_SEND_SIZE, 8e-6, sendfile_near, stream_far, NULL, true },
	{ "SENDFILE_TRUNCATE", SOCK_STREAM, TCP_SEND_SIZE, 8e-6, sendfile_near, truncate_far, NULL,
	  true },
	{ "SPIN_TCP_RR", SOCK_STREAM, 1, 1, spin_rr_near, spin_rr_far, NULL, false },
	{ "SPIN_UDP_RR", SOCK_DGRAM, 1, 1, spin_udp_near, spin_udp_far, NULL, false },
	{ .name = NULL },
};
