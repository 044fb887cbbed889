#include "tests/link/probe.h"

#include "base/clock.h"
#include "base/fds.h"
#include "tests/link/ns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/if_packet.h>
#include <math.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SIZE_MAX_UDP = 65507, LEAST_SIZE = 16, FROM = 0, TO = 1 };

/* Room for what the receiving end has not read yet. */
enum { SOCKET_ROOM = 64 << 20 };

struct probe {
	struct np_ns ns[2];
	const char *address[2], *kind, *device;
	uint64_t count, size, gap, time, skip, wait, parent;
	int sock[2];
	struct sockaddr_storage target;
	socklen_t target_len;
	uint8_t *buf;
};

/* What a datagram says. */
struct stamp {
	uint64_t number, sent; /* ns of CLOCK_REALTIME, by which the kernel stamps arrivals */
};

struct arrival {
	struct stamp stamp;
	uint64_t at;
};

/* --- words and sockets ------------------------------------------------------------------- */

static int
read_number(struct probe *p, const char *word, struct np_err *err)
{
	const struct {
		const char *name;
		uint64_t *where, most;
	} numbers[] = {
		{ "count=", &p->count, 10000000 },    { "size=", &p->size, SIZE_MAX_UDP },
		{ "gap=", &p->gap, 100 * NP_SEC },    { "time=", &p->time, 1000 * NP_SEC },
		{ "parent=", &p->parent, INT_MAX },   { "skip=", &p->skip, 1000 * NP_SEC },
		{ "wait=", &p->wait, 1000 * NP_SEC },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		size_t n = strlen(numbers[i].name);
		unsigned long long value;
		char *end;

		if (strncmp(word, numbers[i].name, n) != 0) {
			continue;
		}
		errno = 0;
		value = strtoull(word + n, &end, 10);
		if (word[n] < '0' || word[n] > '9' || *end != '\0' || errno != 0 ||
		    value > numbers[i].most) {
			break;
		}
		*numbers[i].where = value;
		return NP_OK;
	}
	return np_usage(err, "%s: a probe has no such setting", word);
}

static int
read_words(struct probe *p, char *const *words, struct np_err *err)
{
	const struct {
		const char *name, **where;
	} texts[] = {
		{ "from=", &p->ns[FROM].path },
		{ "to=", &p->ns[TO].path },
		{ "source=", &p->address[FROM] },
		{ "target=", &p->address[TO] },
		{ "kind=", &p->kind },
		{ "device=", &p->device },
	};

	for (; *words != NULL; words++) {
		bool found = false;

		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && !found; i++) {
			size_t n = strlen(texts[i].name);

			found = strncmp(*words, texts[i].name, n) == 0;
			if (found) {
				*texts[i].where = *words + n;
			}
		}
		if (!found && read_number(p, *words, err) != NP_OK) {
			return err->code;
		}
	}
	for (size_t i = 0; i < 5; i++) {
		if (*texts[i].where == NULL) {
			return np_usage(err, "%s is missing", texts[i].name);
		}
	}
	if (p->size < LEAST_SIZE) {
		p->size = LEAST_SIZE;
	}
	return NP_OK;
}

static int
make_address(const char *text, struct sockaddr_storage *ss, socklen_t *len, struct np_err *err)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof(*ss));
	if (inet_pton(AF_INET, text, &in4->sin_addr) == 1) {
		ss->ss_family = AF_INET;
		*len = sizeof(*in4);
		return NP_OK;
	}
	if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
		ss->ss_family = AF_INET6;
		*len = sizeof(*in6);
		return NP_OK;
	}
	return np_usage(err, "%s: no address", text);
}

/* A socket of an end, bound to its address at any port. Packets are not to be cut. */
static int
open_end(struct probe *p, int end, int type, struct sockaddr_storage *ss, socklen_t *len,
	 struct np_err *err)
{
	const int room = SOCKET_ROOM, yes = 1, dont = IP_PMTUDISC_DO, mode6 = IPV6_PMTUDISC_DO;
	int fd;

	if (make_address(p->address[end], ss, len, err) != NP_OK ||
	    np_ns_enter(&p->ns[end], err) != NP_OK) {
		return err->code;
	}
	fd = socket(ss->ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)ss, *len) != 0 ||
	    getsockname(fd, (struct sockaddr *)ss, len) != 0) {
		return np_fail(err, NP_ESYS, errno, "a socket at %s", p->address[end]);
	}
	p->sock[end] = fd;
	if (type == SOCK_DGRAM) {
		setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
		setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof(yes));
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &dont, sizeof(dont));
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &mode6, sizeof(mode6));
	}
	return NP_OK;
}

static int
open_datagrams(struct probe *p, struct np_err *err)
{
	struct sockaddr_storage source;
	socklen_t len = 0;

	if (open_end(p, TO, SOCK_DGRAM, &p->target, &p->target_len, err) != NP_OK ||
	    open_end(p, FROM, SOCK_DGRAM, &source, &len, err) != NP_OK) {
		return err->code;
	}
	if (connect(p->sock[FROM], (struct sockaddr *)&p->target, p->target_len) != 0) {
		return np_fail(err, NP_ESYS, errno, "connect to %s", p->address[TO]);
	}
	/* The kernel begins to stamp arrivals a moment after it was asked to. */
	usleep(20000);
	return NP_OK;
}

/* Sends one datagram; false when there is no room for it now. */
static bool
send_one(const struct probe *p, uint64_t number, size_t size)
{
	const struct stamp stamp = { number, np_clock(CLOCK_REALTIME) };

	memcpy(p->buf, &stamp, sizeof(stamp));
	return send(p->sock[FROM], p->buf, size, 0) == (ssize_t)size;
}

/* One arrival, with its size; 0 when there is none now. */
static size_t
receive_one(const struct probe *p, struct arrival *a)
{
	union {
		char room[CMSG_SPACE(sizeof(struct timespec))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { &a->stamp, sizeof(a->stamp) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(p->sock[TO], &msg, MSG_TRUNC);

	if (n < (ssize_t)sizeof(a->stamp)) {
		return 0;
	}
	a->at = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			struct timespec ts;

			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			a->at = np_clock_ns(&ts);
		}
	}
	return (size_t)n;
}

/* Until that time, awake for the last moment of it. */
static void
wait_until(uint64_t when)
{
	const uint64_t awake = 60000;
	uint64_t now = np_now();

	if (when > now + awake) {
		const uint64_t left = when - now - awake;
		const struct timespec ts = { (time_t)(left / NP_SEC), (long)(left % NP_SEC) };

		nanosleep(&ts, NULL);
	}
	while (np_now() < when) {
	}
}

/* --- a counted train --------------------------------------------------------------------- */

struct train {
	struct arrival *came;
	uint64_t n, room;
};

static void
collect(const struct probe *p, struct train *t)
{
	while (t->n < t->room && receive_one(p, &t->came[t->n]) != 0) {
		t->n++;
	}
}

static void
collect_until(const struct probe *p, struct train *t, uint64_t end, uint64_t enough)
{
	struct pollfd in = { .fd = p->sock[TO], .events = POLLIN };
	struct timespec left;

	while (np_now() < end && t->n < enough) {
		ppoll(&in, 1, np_left(end, &left), NULL);
		collect(p, t);
	}
}

/* How many numbers have to be moved to put them in order: all but the longest rising sequence. */
static uint64_t
out_of_order(const struct arrival *came, uint64_t n, uint64_t *least)
{
	uint64_t length = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t low = 0, high = length;

		while (low < high) {
			uint64_t middle = (low + high) / 2;

			if (least[middle] < came[i].stamp.number) {
				low = middle + 1;
			} else {
				high = middle;
			}
		}
		least[low] = came[i].stamp.number;
		length += low == length;
	}
	return n - length;
}

static int
by_value(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The us that this share of the sorted delays is not above. */
static double
at_share(const int64_t *delay, uint64_t n, double share)
{
	return (double)delay[(uint64_t)(share * (double)(n - 1) + 0.5)] / 1e3;
}

static void
print_delays(int64_t *delay, uint64_t n, FILE *out)
{
	static const double shares[] = { 0, 0.5, 0.9, 0.99, 0.999, 1 };
	static const char *const names[] = { "min", "p50", "p90", "p99", "p99.9", "max" };
	double mean = 0, squares = 0;

	qsort(delay, n, sizeof(*delay), by_value);
	for (uint64_t i = 0; i < n; i++) {
		mean += (double)delay[i] / (double)n;
	}
	for (uint64_t i = 0; i < n; i++) {
		squares += ((double)delay[i] - mean) * ((double)delay[i] - mean);
	}
	fprintf(out, ", \"delay_us\": {\"mean\": %.3f, \"deviation\": %.3f", mean / 1e3,
		sqrt(squares / (double)n) / 1e3);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		fprintf(out, ", \"%s\": %.3f", names[i], at_share(delay, n, shares[i]));
	}
	fputs(", \"centiles\": [", out);
	for (int i = 0; i <= 100; i++) {
		fprintf(out, "%s%.3f", i == 0 ? "" : ", ", at_share(delay, n, i / 100.0));
	}
	fputs("]}", out);
}

static void
print_train(const struct probe *p, struct train *t, uint64_t sent, uint64_t *scratch, FILE *out)
{
	uint64_t first = 0, again = 0;
	int64_t *delay;

	/* The first copy of each counts for order and delay. */
	memset(scratch, 0, p->count * sizeof(*scratch));
	for (uint64_t i = 0; i < t->n; i++) {
		if (t->came[i].stamp.number >= p->count) {
			continue;
		}
		if (scratch[t->came[i].stamp.number]++ != 0) {
			again++;
			continue;
		}
		t->came[first++] = t->came[i];
	}
	fprintf(out,
		"{\"sent\": %" PRIu64 ", \"arrived\": %" PRIu64 ", \"lost\": %" PRIu64
		", \"duplicated\": %" PRIu64 ", \"reordered\": %" PRIu64,
		sent, first, sent - first, again, out_of_order(t->came, first, scratch));
	delay = (int64_t *)scratch;
	for (uint64_t i = 0; i < first; i++) {
		delay[i] = (int64_t)(t->came[i].at - t->came[i].stamp.sent);
	}
	if (first > 0) {
		print_delays(delay, first, out);
	}
	fputs("}\n", out);
}

static void
run_train(struct probe *p, struct train *t, uint64_t *scratch, FILE *out)
{
	uint64_t next, sent = 0;

	memset(t->came, 0, t->room * sizeof(*t->came)); /* no page is to be fetched later */
	next = np_now() + NP_MSEC;
	for (uint64_t i = 0; i < p->count; i++) {
		if (p->gap > NP_MSEC) {
			collect_until(p, t, next - NP_MSEC / 2, t->room);
		} else {
			collect(p, t);
		}
		wait_until(next);
		sent += send_one(p, i, p->size);
		next += p->gap;
	}
	collect_until(p, t, np_deadline(p->wait), t->room);
	print_train(p, t, sent, scratch, out);
}

static int
train(struct probe *p, FILE *out, struct np_err *err)
{
	struct train t = { .room = 2 * p->count };
	uint64_t *scratch = malloc(p->count * sizeof(*scratch) + 1);

	t.came = malloc(t.room * sizeof(*t.came) + 1);
	if (t.came == NULL || scratch == NULL) {
		np_fail(err, NP_ESYS, ENOMEM, "%" PRIu64 " datagrams", p->count);
	} else if (open_datagrams(p, err) == NP_OK) {
		run_train(p, &t, scratch, out);
	}
	free(t.came);
	free(scratch);
	return err->code;
}

/* --- the rate ---------------------------------------------------------------------------- */

struct window {
	uint64_t begin, first, last, packets; /* ns of CLOCK_REALTIME */
	uint64_t arrived;
};

static void
count_arrivals(const struct probe *p, struct window *w)
{
	struct arrival a;

	while (receive_one(p, &a) != 0) {
		w->arrived++;
		if (a.at < w->begin) {
			continue;
		}
		if (w->first == 0) {
			w->first = a.at;
		}
		w->last = a.at;
		w->packets++;
	}
}

static int
rate(struct probe *p, FILE *out, struct np_err *err)
{
	struct window w = { .begin = 0 };
	uint64_t next, end, sent = 0;

	if (open_datagrams(p, err) != NP_OK) {
		return err->code;
	}
	w.begin = np_clock(CLOCK_REALTIME) + p->skip;
	next = np_now();
	end = next + p->time;
	while (np_now() < end) {
		for (int i = 0; i < 8 && np_now() >= next; i++) {
			if (!send_one(p, sent, p->size)) {
				break;
			}
			sent++;
			next += p->gap;
		}
		count_arrivals(p, &w);
	}
	/* The first packet of the window ends what went before it. */
	fprintf(out,
		"{\"sent\": %" PRIu64 ", \"arrived\": %" PRIu64 ", \"packets\": %" PRIu64
		", \"ns\": %" PRIu64 "}\n",
		sent, w.arrived, w.packets == 0 ? 0 : w.packets - 1, w.last - w.first);
	return NP_OK;
}

/* --- the MTU ----------------------------------------------------------------------------- */

static bool
arrives(const struct probe *p, size_t size)
{
	struct pollfd in = { .fd = p->sock[TO], .events = POLLIN };
	struct arrival a;
	size_t got;

	for (int attempt = 0; attempt < 20; attempt++) {
		struct timespec left;
		uint64_t end = np_deadline(p->wait);

		send_one(p, 0, size);
		while (np_now() < end) {
			ppoll(&in, 1, np_left(end, &left), NULL);
			while ((got = receive_one(p, &a)) != 0) {
				if (got == size) {
					return true;
				}
			}
		}
	}
	return false;
}

static int
mtu(struct probe *p, FILE *out, struct np_err *err)
{
	size_t low = LEAST_SIZE, high = SIZE_MAX_UDP + 1, headers;

	if (open_datagrams(p, err) != NP_OK) {
		return err->code;
	}
	headers = p->target.ss_family == AF_INET ? 28 : 48; /* of IP and UDP */
	/* The largest that may leave in one piece; one that no buffer has room for is not tried. */
	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (send_one(p, 1, middle)) {
			low = middle;
		} else if (errno == EMSGSIZE) {
			high = middle;
		} else {
			return np_fail(err, NP_ESYS, errno, "send %zu bytes to %s", middle,
				       p->address[TO]);
		}
	}
	fprintf(out, "{\"mtu\": %zu, \"arrives\": %s}\n", low + headers,
		arrives(p, low) ? "true" : "false");
	return NP_OK;
}

/* --- a TCP connection, looked at --------------------------------------------------------- */

static int
open_tap(const struct probe *p, int end, struct np_err *err)
{
	struct sockaddr_ll ll = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int fd;

	if (np_ns_enter(&p->ns[end], err) != NP_OK) {
		return -1;
	}
	ll.sll_ifindex = (int)if_nametoindex(p->device);
	/* A cooked socket: sizes without a link's header. */
	fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
	if (fd < 0 || bind(fd, (struct sockaddr *)&ll, sizeof(ll)) != 0) {
		np_fail(err, NP_ESYS, errno, "read the state of device %s", p->device);
		np_fds_close(fd);
		return -1;
	}
	return fd;
}

static void
look(int tap, uint64_t *packets, uint64_t *largest)
{
	char byte;
	ssize_t n;

	while ((n = recv(tap, &byte, 1, MSG_TRUNC)) >= 0) {
		++*packets;
		if ((uint64_t)n > *largest) {
			*largest = (uint64_t)n;
		}
	}
}

/* A connected pair, p->sock. */
static int
open_connection(struct probe *p, struct np_err *err)
{
	struct sockaddr_storage source;
	struct pollfd in = { .events = POLLIN };
	socklen_t len = 0;
	int listener;

	if (open_end(p, TO, SOCK_STREAM, &p->target, &p->target_len, err) != NP_OK) {
		return err->code;
	}
	listener = p->sock[TO];
	if (listen(listener, 1) != 0) {
		return np_fail(err, NP_ESYS, errno, "listen at %s", p->address[TO]);
	}
	if (open_end(p, FROM, SOCK_STREAM, &source, &len, err) != NP_OK) {
		return err->code;
	}
	if (connect(p->sock[FROM], (struct sockaddr *)&p->target, p->target_len) != 0 &&
	    errno != EINPROGRESS) {
		return np_fail(err, NP_ESYS, errno, "connect to %s", p->address[TO]);
	}
	in.fd = listener;
	poll(&in, 1, 10000);
	p->sock[TO] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	close(listener);
	if (p->sock[TO] < 0) {
		return np_fail(err, NP_ESYS, errno, "no connection to %s", p->address[TO]);
	}
	return NP_OK;
}

static int
tcp(struct probe *p, FILE *out, struct np_err *err)
{
	uint64_t packets = 0, largest = 0, bytes = 0, end;
	char name[32] = "";
	socklen_t len = sizeof(name);
	int tap[2];

	if (p->device == NULL) {
		return np_usage(err, "device= is missing");
	}
	tap[FROM] = open_tap(p, FROM, err);
	tap[TO] = tap[FROM] < 0 ? -1 : open_tap(p, TO, err);
	if (tap[TO] < 0 || open_connection(p, err) != NP_OK) {
		return err->code;
	}
	getsockopt(p->sock[FROM], IPPROTO_TCP, TCP_CONGESTION, name, &len);
	end = np_deadline(p->time);
	while (np_now() < end) {
		struct pollfd any[2] = { { .fd = p->sock[FROM], .events = POLLOUT },
					 { .fd = p->sock[TO], .events = POLLIN } };
		ssize_t n;

		poll(any, 2, 10);
		send(p->sock[FROM], p->buf, SIZE_MAX_UDP, MSG_NOSIGNAL);
		while ((n = recv(p->sock[TO], NULL, INT_MAX, MSG_TRUNC)) > 0) {
			bytes += (uint64_t)n;
		}
		look(tap[FROM], &packets, &largest);
		look(tap[TO], &packets, &largest);
	}
	fprintf(out,
		"{\"bytes\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"largest\": %" PRIu64
		", \"congestion\": \"%s\"}\n",
		bytes, packets, largest, name);
	return NP_OK;
}

/* ----------------------------------------------------------------------------------------- */

int
np_probe(char *const *words, FILE *out, struct np_err *err)
{
	static const struct {
		const char *name;
		int (*run)(struct probe *p, FILE *out, struct np_err *err);
	} kinds[] = { { "train", train }, { "rate", rate }, { "mtu", mtu }, { "tcp", tcp } };
	struct probe p = {
		.size = 64, .count = 100, .gap = NP_MSEC, .wait = 200 * NP_MSEC, .sock = { -1, -1 }
	};
	int rc;

	if (read_words(&p, words, err) != NP_OK) {
		return err->code;
	}
	if (np_ns_open(&p.ns[FROM], p.ns[FROM].path, err) != NP_OK ||
	    np_ns_open(&p.ns[TO], p.ns[TO].path, err) != NP_OK) {
		return err->code;
	}
	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	/* netlab starts us out of reach of the terminal: end when it dies. It may be dead already.
	 */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (p.parent != 0 && (uint64_t)getppid() != p.parent) {
		return np_fail(err, NP_ESYS, ESRCH, "the process that wants to know");
	}
	p.buf = calloc(1, SIZE_MAX_UDP);
	rc = np_usage(err, "kind=%s: train, rate, mtu or tcp", p.kind);
	for (size_t i = 0; p.buf != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(p.kind, kinds[i].name) == 0) {
			err->code = NP_OK;
			rc = kinds[i].run(&p, out, err);
			break;
		}
	}
	free(p.buf);
	return rc;
}
