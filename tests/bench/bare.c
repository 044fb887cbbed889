/*
 * bare: the plainest loops that move the bytes netperf moves, as what a benchmark is measured
 * against. One process is the near end, a child of it the far end, over the loopback of IPv4; both
 * leave sockets as the kernel makes them and use the sizes netperf does: sends of the size given
 * (16384 by default for TCP), receives of 131072, unconnected UDP sockets.
 *
 *   bare TCP_STREAM|TCP_MAERTS|UDP_STREAM SECONDS [SIZE [CPU CPU]]   prints 10^6 bits/s received
 *   bare TCP_RR|UDP_RR|TCP_CRR SECONDS [SIZE [CPU CPU]]              prints transactions/s
 *
 * The same by other ways into the kernel (ways.c), what the engines are measured against:
 *
 *   bare BATCH|SEGMENT|TRUNCATE SECONDS [SIZE [CPU CPU]]             10^6 bits/s received
 *   bare SENDFILE|SENDFILE_TRUNCATE SECONDS [SIZE [CPU CPU]]         the same
 *   bare SPIN_TCP_RR|SPIN_UDP_RR SECONDS [SIZE [CPU CPU]]            transactions/s
 *
 * SIZE 0 is the default; the CPUs are the near and the far end's.
 *
 * Nothing is counted but calls or bytes, and the clock is read at the edges: a timer's signal sets
 * the flag that the near end's loop looks at.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity() */
#endif
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bare.h"

enum {
	FIRST_PORT = 5000, /* of a connection's near end, where netperf starts too */
	LAST_PORT = 65000,
	GRACE = 5, /* seconds, until an end that waits for ever is ended */
};

volatile sig_atomic_t time_is_up;

static void
on_timer(int sig)
{
	time_is_up = 1;
}

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Interrupts whatever call is under way, and again in case it was just about to begin. */
static void
start_timer(double seconds)
{
	struct sigaction act = { .sa_handler = on_timer };
	struct itimerval timer = { .it_interval = { .tv_usec = 10000 } };

	timer.it_value.tv_sec = (time_t)seconds;
	timer.it_value.tv_usec = (suseconds_t)((seconds - (double)timer.it_value.tv_sec) * 1e6);
	if (sigaction(SIGALRM, &act, NULL) != 0 || setitimer(ITIMER_REAL, &timer, NULL) != 0) {
		err(1, "timer");
	}
}

static int
open_socket(int type, uint16_t port, struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int one = 1;
	int fd = socket(AF_INET, type, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0) {
		err(1, "socket");
	}
	if (bind(fd, (struct sockaddr *)addr, sizeof(*addr)) != 0 ||
	    getsockname(fd, (struct sockaddr *)addr, &len) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

int
connect_far(const struct ends *e, uint16_t port)
{
	struct sockaddr_in near_addr;
	int fd = open_socket(SOCK_STREAM, port, &near_addr);

	if (fd >= 0 &&
	    connect(fd, (const struct sockaddr *)&e->far_addr, sizeof(e->far_addr)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

int
accept_near(const struct ends *e)
{
	int fd = accept(e->listener, NULL, NULL);

	if (fd < 0) {
		err(1, "accept");
	}
	return fd;
}

/* Sends until the time is up, or the far end is gone. */
static void
send_all(int fd, const struct ends *e)
{
	const struct slot *out = e->out;

	while (!time_is_up && send(fd, out->buf, e->size, MSG_NOSIGNAL) > 0) {
		out = out->next;
	}
	shutdown(fd, SHUT_WR);
}

/* Receives to the end of file, as that comes when the sender's time is up. */
uint64_t
recv_all(int fd, const struct ends *e)
{
	const struct slot *in = e->in;
	uint64_t bytes = 0;

	for (;;) {
		ssize_t n = recv(fd, in->buf, RECV_SIZE, 0);

		if (n > 0) {
			bytes += (uint64_t)n;
			in = in->next;
		} else if (n == 0 || errno != EINTR) {
			return bytes;
		}
	}
}

uint64_t
stream_near(const struct ends *e)
{
	int fd = connect_far(e, 0);

	send_all(fd, e);
	recv_all(fd, e);
	close(fd);
	return 0;
}

uint64_t
stream_far(const struct ends *e)
{
	int fd = accept_near(e);
	uint64_t bytes = recv_all(fd, e);

	close(fd);
	return bytes;
}

/* The receiver's time ends this one; the sender sees the connection close. */
static uint64_t
maerts_near(const struct ends *e)
{
	int fd = connect_far(e, 0);
	const struct slot *in = e->in;
	uint64_t bytes = 0;
	ssize_t n;

	while (!time_is_up && (n = recv(fd, in->buf, RECV_SIZE, 0)) > 0) {
		bytes += (uint64_t)n;
		in = in->next;
	}
	close(fd);
	return bytes;
}

static uint64_t
maerts_far(const struct ends *e)
{
	int fd = accept_near(e);

	send_all(fd, e);
	close(fd);
	return 0;
}

static uint64_t
rr_near(const struct ends *e)
{
	int fd = connect_far(e, 0);
	uint64_t done = 0;

	while (!time_is_up && send(fd, e->buf, e->size, MSG_NOSIGNAL) > 0 &&
	       recv(fd, e->buf, e->size, 0) > 0) {
		done++;
	}
	close(fd);
	return done;
}

static uint64_t
rr_far(const struct ends *e)
{
	int fd = accept_near(e);

	while (recv(fd, e->buf, e->size, 0) > 0 && send(fd, e->buf, e->size, MSG_NOSIGNAL) > 0) {
	}
	close(fd);
	return 0;
}

/* The next port for every connection, as netperf does; one still in use is skipped. */
static uint64_t
crr_near(const struct ends *e)
{
	uint64_t done = 0;
	uint16_t port = FIRST_PORT;

	while (!time_is_up) {
		int fd = connect_far(e, port);

		port = port < LAST_PORT ? (uint16_t)(port + 1) : FIRST_PORT;
		if (fd >= 0) {
			done += send(fd, e->buf, e->size, MSG_NOSIGNAL) > 0 &&
				recv(fd, e->buf, e->size, 0) > 0 &&
				recv(fd, e->buf, e->size, 0) == 0;
			close(fd);
		}
	}
	return done;
}

static uint64_t
crr_far(const struct ends *e)
{
	for (;;) {
		int fd = accept_near(e);

		if (recv(fd, e->buf, e->size, 0) > 0) {
			send(fd, e->buf, e->size, MSG_NOSIGNAL);
		}
		close(fd);
	}
	return 0;
}

ssize_t
send_near(const struct ends *e, size_t size)
{
	return sendto(e->near, e->buf, size, 0, (const struct sockaddr *)&e->far_addr,
		      sizeof(e->far_addr));
}

static uint64_t
udp_stream_near(const struct ends *e)
{
	while (!time_is_up && send_near(e, e->size) > 0) {
	}
	return 0;
}

/* Empty datagrams tell the far end that this was all; the pauses let it make room for one. */
void
udp_stream_finish(const struct ends *e)
{
	struct timespec pause = { .tv_nsec = 5000000 };
	int i;

	for (i = 0; i < 3; i++) {
		nanosleep(&pause, NULL);
		send_near(e, 0);
	}
}

static uint64_t
udp_stream_far(const struct ends *e)
{
	uint64_t bytes = 0;
	ssize_t n;

	while ((n = recvfrom(e->far, e->buf, RECV_SIZE, 0, NULL, NULL)) > 0) {
		bytes += (uint64_t)n;
	}
	return bytes;
}

static uint64_t
udp_rr_near(const struct ends *e)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	uint64_t done = 0;

	while (!time_is_up && send_near(e, e->size) > 0 &&
	       recvfrom(e->near, e->buf, e->size, 0, (struct sockaddr *)&from, &len) > 0) {
		done++;
	}
	return done;
}

static uint64_t
udp_rr_far(const struct ends *e)
{
	for (;;) {
		struct sockaddr_in from;
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(e->far, e->buf, e->size, 0, (struct sockaddr *)&from, &len);

		if (n > 0) {
			sendto(e->far, e->buf, e->size, 0, (struct sockaddr *)&from, len);
		}
	}
	return 0;
}

static const struct pattern patterns[] = {
	{ "TCP_STREAM", SOCK_STREAM, TCP_SEND_SIZE, 8e-6, stream_near, stream_far, NULL, true },
	{ "TCP_MAERTS", SOCK_STREAM, TCP_SEND_SIZE, 8e-6, maerts_near, maerts_far, NULL, false },
	{ "UDP_STREAM", SOCK_DGRAM, UDP_SEND_SIZE, 8e-6, udp_stream_near, udp_stream_far,
	  udp_stream_finish, true },
	{ "TCP_RR", SOCK_STREAM, 1, 1, rr_near, rr_far, NULL, false },
	{ "UDP_RR", SOCK_DGRAM, 1, 1, udp_rr_near, udp_rr_far, NULL, false },
	{ "TCP_CRR", SOCK_STREAM, 1, 1, crr_near, crr_far, NULL, false },
};

static const struct pattern *
find_pattern(const char *name)
{
	const struct pattern *p;
	size_t i;

	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		if (strcasecmp(name, patterns[i].name) == 0) {
			return &patterns[i];
		}
	}
	for (p = bare_ways; p->name != NULL; p++) {
		if (strcasecmp(name, p->name) == 0) {
			return p;
		}
	}
	errx(2, "%s: no such loop", name);
}

/*
 * Buffers that begin `behind` bytes after a multiple of `align`, as src/base/ring.c places them.
 * They are written to: what never was is one page of zeros, which is sent faster.
 */
static struct slot *
make_slots(size_t count, size_t size, size_t align, size_t behind)
{
	struct slot *slots = calloc(count, sizeof(*slots));

	if (slots == NULL) {
		err(1, "buffers");
	}
	for (size_t i = 0; i < count; i++) {
		char *memory = aligned_alloc(align, (size + behind + align - 1) / align * align);

		if (memory == NULL) {
			err(1, "buffers");
		}
		slots[i].buf = memset(memory + behind, 'n', size);
		slots[i].next = &slots[(i + 1) % count];
	}
	return slots;
}

/* How many sends fill the socket buffer, and one more. */
static size_t
slots_to_send(int fd, size_t size)
{
	int sndbuf = 0;
	socklen_t len = sizeof(sndbuf);

	return getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, &len) == 0 ? (size_t)sndbuf / size + 1
									 : 2;
}

static void
open_ends(struct ends *e, const struct pattern *p)
{
	struct sockaddr_in near_addr;
	int fd = open_socket(p->type, 0, &e->far_addr);

	if (fd < 0 || e->size == 0 || e->size > RECV_SIZE) {
		errx(1, "cannot set up %s", p->name);
	}
	e->out = make_slots(slots_to_send(fd, e->size), e->size, 64, 0);
	e->in = make_slots(2, RECV_SIZE, 4096, 16);
	e->buf = e->in->buf;
	if (p->type == SOCK_DGRAM) {
		e->far = fd;
		e->near = open_socket(p->type, 0, &near_addr);
	} else if (listen(e->listener = fd, 128) != 0) {
		err(1, "listen");
	}
}

static void
bind_to_cpu(const char *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)atoi(cpu), &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0) {
		err(1, "CPU %s", cpu);
	}
}

/* Starts the process that is the far end. */
static pid_t
start_far_end(const struct ends *e, const struct pattern *p, const char *cpu)
{
	uint64_t count;
	pid_t pid = fork();

	if (pid != 0) {
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/*
	 * A session of its own, as a daemon has: the scheduler's autogroups make switching between
	 * two sessions dearer than within one, by some 5 % of a transaction.
	 */
	setsid();
	if (cpu != NULL) {
		bind_to_cpu(cpu);
	}
	count = p->far(e);
	_exit(write(e->result, &count, sizeof(count)) == sizeof(count) ? 0 : 1);
}

/* The far end's count, or 0 if it has none to give. */
static uint64_t
far_count(int fd)
{
	uint64_t count = 0;

	alarm(GRACE);
	if (read(fd, &count, sizeof(count)) != sizeof(count)) {
		warnx("the far end did not say what it received");
		count = 0;
	}
	alarm(0);
	return count;
}

/* Runs the near end for that long; the result, in the pattern's unit a second. */
static double
measure(const struct ends *e, const struct pattern *p, double seconds, int far_result)
{
	double start, elapsed;
	uint64_t count;

	start_timer(seconds);
	start = now();
	count = p->near(e);
	elapsed = now() - start;
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	if (p->finish != NULL) {
		p->finish(e);
	}
	if (p->far_counts) {
		count = far_count(far_result);
	}
	return (double)count * p->per_unit / elapsed;
}

int
main(int argc, char **argv)
{
	const struct pattern *p;
	struct ends e = { 0 };
	double rate;
	int result[2];
	pid_t child;

	if (argc < 3 || argc > 6 || argc == 5) {
		errx(2, "usage: bare LOOP SECONDS [SIZE [CPU CPU]]");
	}
	p = find_pattern(argv[1]);
	e.size = argc > 3 && atoi(argv[3]) != 0 ? (size_t)atol(argv[3]) : p->size;
	open_ends(&e, p);
	if (pipe(result) != 0) {
		err(1, "pipe");
	}
	e.result = result[1];
	child = start_far_end(&e, p, argc > 5 ? argv[5] : NULL);
	if (child < 0) {
		err(1, "fork");
	}
	if (argc > 5) {
		bind_to_cpu(argv[4]);
	}
	rate = measure(&e, p, atof(argv[2]), result[0]);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf("%.2f\n", rate);
	return rate > 0 ? 0 : 1;
}
