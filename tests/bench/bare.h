/*
 * What the bare loops share: the two ends of one, and what a loop is. See bare.c.
 */
#ifndef NP_BENCH_BARE_H
#define NP_BENCH_BARE_H

#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	TCP_SEND_SIZE = 16384,
	UDP_SEND_SIZE = 65507,
	RECV_SIZE = 131072,
};

/* A buffer of a ring. */
struct slot {
	char *buf;
	struct slot *next;
};

struct ends {
	int listener;  /* TCP: the far end's */
	int near, far; /* UDP */
	struct sockaddr_in far_addr;
	size_t size;
	int result;            /* the writing end of a pipe that brings the far end's count */
	char *buf;             /* RECV_SIZE bytes */
	struct slot *out, *in; /* of streams, used in turn as netperf's rings */
};

struct pattern {
	const char *name;
	int type; /* SOCK_STREAM or SOCK_DGRAM */
	size_t size;
	double per_unit;
	uint64_t (*near)(const struct ends *e);
	uint64_t (*far)(const struct ends *e);
	void (*finish)(const struct ends *e); /* the near end's, out of the measured time */
	bool far_counts;                      /* what the far end returns is the result */
};

/* What the timer's handler sets; the only state that is not passed on. */
extern volatile sig_atomic_t time_is_up;

/* The loops of ways.c; the last one has no name. */
extern const struct pattern bare_ways[];

/* A connection to the far end from that port, 0: any; -1: the port is in use. */
int connect_far(const struct ends *e, uint16_t port);

int accept_near(const struct ends *e);

/* Receive to the end of file, as that comes when the sender's time is up. */
uint64_t recv_all(int fd, const struct ends *e);

/* The ends of a stream. */
uint64_t stream_near(const struct ends *e);
uint64_t stream_far(const struct ends *e);

/* One datagram to the far end. */
ssize_t send_near(const struct ends *e, size_t size);

/* Empty datagrams tell the far end that this was all. */
void udp_stream_finish(const struct ends *e);

#endif
