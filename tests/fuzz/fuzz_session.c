/*
 * Whole sessions of the daemon: a client sends messages, closes its half at once and never makes a
 * data connection, so that every test that is granted ends where it would meet.
 *
 * The input is a byte of FLAGS and messages, each a byte that tells how many bytes follow (the rest
 * of netperf's are zeros). As root it runs in a network of its own, where there is nothing but a
 * loopback interface: nobody's ports are touched, and datagrams and frames go nowhere.
 */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run/server.h"
#include "wire/tagged.h"

enum { MESSAGES = 12 };
enum { F_OLD = 1, F_TCP = 2, F_QUIET = 8, F_READ = 16, F_CUT = 32 };

/* Of that network, for tests of the link layer. To open one takes milliseconds. */
static struct np_eth own_link;

static void
sink(void *ctx, enum np_log_level level, bool is_event, const char *line)
{
	must(level <= NP_LOG_DEBUG && strlen(line) < (is_event ? NP_LOG_EVENT : NP_LOG_TEXT));
}

static bool
bring_up_loopback(void)
{
	struct ifreq lo = { .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool up;

	snprintf(lo.ifr_name, sizeof(lo.ifr_name), "lo");
	up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
	close(fd);
	return up;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct np_err err;

	if (unshare(CLONE_NEWNET) == 0) {
		must(bring_up_loopback());
		(void)np_eth_open(&own_link, "lo", &err);
		setenv("FUZZ_OWN_NETWORK", "yes", 1);
	}
	np_drive_prepare();
	return 0;
}

/*
 * Both ends of a connection over loopback, for what goes by the client's address. False where there
 * is none to be had: thousands of ports may be waiting for their time to be over.
 */
static bool
tcp_pair(int fd[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(listener >= 0 && fd[0] >= 0);
	fd[1] = -1;
	if (bind(listener, (struct sockaddr *)&at, len) == 0 && listen(listener, 1) == 0 &&
	    getsockname(listener, (struct sockaddr *)&at, &len) == 0 &&
	    connect(fd[0], (struct sockaddr *)&at, len) == 0) {
		fd[1] = accept(listener, NULL, NULL);
	}
	close(listener);
	if (fd[1] < 0) {
		close(fd[0]);
	}
	return fd[1] >= 0;
}

/* Bytes of the message of which there are n: one of ours ends there, as its length says. */
static size_t
whole(uint8_t *frame, size_t n, size_t frame_size)
{
	uint32_t type = np_frame_head(frame).code;

	if (n < NP_TAGGED_AT || !np_is_ours(type)) {
		return frame_size;
	}
	np_tagged_head(frame, type, n - NP_TAGGED_AT);
	return n;
}

/* The messages; with F_READ the first one is not sent but in the channel already. */
static void
send_all(struct fuzz_input *in, uint8_t flags, int fd, struct np_chan *c)
{
	size_t frame_size = (flags & F_OLD) != 0 ? NP_OLD_FRAME_SIZE : NP_FRAME_SIZE;
	uint8_t frame[NP_FRAME_SIZE];

	for (int i = 0; i < MESSAGES && in->left > 0; i++) {
		size_t n = fuzz_take(in, frame, frame_size, fuzz_byte(in));

		if (i == 0 && (flags & F_READ) != 0) {
			memset(c->in, 0, sizeof(c->in));
			memcpy(c->in, frame, frame_size);
			c->size = c->have = c->due = frame_size;
			c->first = np_frame_head(frame).code;
			continue;
		}
		if (in->left > 0 || (flags & F_CUT) == 0) {
			n = whole(frame, n, frame_size);
		}
		must(send(fd, frame, n, MSG_NOSIGNAL) == (ssize_t)n);
	}
	must(shutdown(fd, SHUT_WR) == 0);
}

static void
serve(struct np_chan *c, uint8_t flags)
{
	struct np_log log = { .level = NP_LOG_DEBUG, .sink = sink };
	struct np_server s = {
		.log = &log,
		.peer = "the fuzzer",
		.quiet = (flags & F_QUIET) != 0,
		.caps = NP_CAP_TEST | NP_CAP_HOST | NP_CAP_SEQUENCE | NP_CAP_PLAN,
		.limits = { .seconds = 1,
			    .bytes = 16 << 20,
			    .message = 1 << 20,
			    .flows = 64,
			    .idle_s = 1 },
	};
	struct np_err err = { .code = NP_OK };
	cpu_set_t cpus;

	if (own_link.fd > 0) {
		s.terms.eth = &own_link;
		s.caps |= NP_CAP_LINK;
	}
	must(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
	if (np_server_serve(&s, c, &err) != NP_OK) {
		must(err.code != NP_OK && err.msg[0] != '\0');
	}
	sched_setaffinity(0, sizeof(cpus), &cpus); /* a request may bind it to a processor */
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { .at = data, .left = size };
	uint8_t flags = fuzz_byte(&in);
	struct np_chan c;
	struct np_err err;
	int fd[2];

	if (size == 0) {
		return -1;
	}
	if ((flags & F_TCP) == 0 || getenv("FUZZ_OWN_NETWORK") == NULL || !tcp_pair(fd)) {
		must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
	}
	must(np_chan_open(&c, fd[1], "the fuzzer", &err) == NP_OK);
	send_all(&in, flags, fd[0], &c);
	serve(&c, flags);
	close(fd[0]);
	return 0;
}
