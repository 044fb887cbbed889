#include "netserver/status.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/text.h"
#include "base/units.h"
#include "netserver/passed.h"

enum { BACKLOG = 8, ASK_S = 5, SHORT = 32, ROOM_FOR_MORE = 64 /* bytes: "and N more" */ };

struct out {
	char *text;
	size_t size, len;
};

#define PUT(o, ...) ((o)->len = np_text_add((o)->text, (o)->size, (o)->len, __VA_ARGS__))

/* "3 d 04:05:06", days only when there are any. Returns out. */
static const char *
span(char out[SHORT], uint64_t from_ns, uint64_t to_ns)
{
	uint64_t s = to_ns > from_ns ? (to_ns - from_ns) / NP_SEC : 0;
	size_t n = 0;

	if (s >= 86400) {
		n = np_text_add(out, SHORT, n, "%" PRIu64 " d ", s / 86400);
	}
	np_text_add(out, SHORT, n, "%02u:%02u:%02u", (unsigned)(s / 3600 % 24),
		    (unsigned)(s / 60 % 60), (unsigned)(s % 60));
	return out;
}

/* "12.3 MB", or the number if it is not one of bytes. Returns out. */
static const char *
amount(char out[SHORT], uint64_t count, bool is_bytes)
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB", "EB" };
	double n = (double)count / 1000;
	size_t unit = 0;

	if (!is_bytes || count < 1000) {
		snprintf(out, SHORT, "%" PRIu64 "%s", count, is_bytes ? " bytes" : "");
		return out;
	}
	while (n >= 999.95) {
		n /= 1000;
		unit++;
	}
	snprintf(out, SHORT, "%.1f %s", n, units[unit]);
	return out;
}

/* The daemon itself: its resources, in use and at most. */
static void
put_head(struct out *o, const struct ns_daemon *d, uint64_t now_ns)
{
	const struct ns_stats *s = &d->stats;
	char a[SHORT], b[SHORT];

	PUT(o, "netserver on port %s, process %ld, up %s\n", d->port, (long)getpid(),
	    span(a, s->started_ns, now_ns));
	for (int i = 0; i < NP_RESOURCES; i++) {
		const struct ns_resource *resource = &ns_resources[i];
		uint64_t limit = d->limits.all[i];
		bool is_bytes = resource->is_bytes;
		const char *most = limit > 0 || resource->none_at_0 ? amount(b, limit, is_bytes)
				   : is_bytes                       ? "any amount"
								    : "any number";

		PUT(o, "%-12s %s of %s%s\n", resource->label, amount(a, s->held[i], is_bytes), most,
		    is_bytes ? " granted" : "");
	}
	PUT(o, "waiting      %" PRIu64 " sessions for their turn\n", s->waiting_now);
	PUT(o, "silent       %" PRIu64 " of %d connections without a session\n", s->silent_now,
	    (int)d->limits.silent);
}

/* A line for a row of limits.def, unless it has no limit, or no words (what NULL). */
static void
put_limit(struct out *o, uint64_t limit, bool is_bytes, const char *what)
{
	char a[SHORT];

	if (limit > 0 && what != NULL) {
		PUT(o, "limit        %s %s\n", amount(a, limit, is_bytes), what);
	}
}

/* What a session does now, in words. Returns out, or a constant. */
static const char *
doing(char out[96], const struct ns_session *s, uint64_t now_ns)
{
	uint64_t since_ns = s->waiting_ns != 0 ? s->waiting_ns : s->test_ns;
	char of[SHORT], a[SHORT];
	const char *what = s->waiting_ns != 0     ? "waits for its turn"
			   : s->wish.seconds == 0 ? "by count"
						  : of;

	if (s->ending) {
		return "is ending";
	}
	if (since_ns == 0) {
		return "no test";
	}
	snprintf(of, sizeof(of), "of %" PRIu32 " s", s->wish.seconds);
	snprintf(out, 96, "%.*s %s, %s", (int)sizeof(s->wish.test), s->wish.test, what,
		 span(a, since_ns, now_ns));
	np_text_printable(out); /* a session may have been compromised */
	return out;
}

/* A line for each session, as many as fit. */
static void
put_sessions(struct out *o, const struct ns_session *s, uint64_t now_ns)
{
	size_t size = o->size, left = 0;

	if (s == NULL) {
		return;
	}
	PUT(o, "\nprocess  %-26s  %12s  %5s  %9s  %s\n", "client", "for", "tests", "memory", "now");
	/* Leave room for the line that says how many did not fit. */
	o->size = size > o->len + ROOM_FOR_MORE ? size - ROOM_FOR_MORE : o->len + 1;
	for (; s != NULL; s = s->next) {
		size_t len = o->len;
		char age[SHORT], memory[SHORT], words[96];

		PUT(o, "%7d  %-26s  %12s  %5" PRIu64 "  %9s  %s\n", s->pid, NP_ADDR_STR(&s->peer),
		    span(age, s->began_ns, now_ns), s->tests,
		    amount(memory, s->holds[NP_RES_MEMORY], true), doing(words, s, now_ns));
		if (o->len == len) { /* no room for this line */
			break;
		}
	}
	o->size = size;
	for (; s != NULL; s = s->next) {
		left++;
	}
	if (left > 0) {
		PUT(o, "and %zu more\n", left);
	}
}

size_t
ns_status_text(const struct ns_daemon *d, uint64_t now_ns, char *text, size_t size)
{
	enum { COUNT, SECONDS, SHARED, LENGTH, BYTES }; /* units of limits.def */
	struct out o = { .text = text, .size = size };
	const struct ns_stats *s = &d->stats;
	char a[SHORT], b[SHORT];
	bool any = false;

	text[0] = '\0';
	put_head(&o, d, now_ns);
#define NS_LIMIT(unit, option, least, most, member, usual, tells, metric, text)                    \
	put_limit(&o, (uint64_t)d->limits.member, (unit) == BYTES, tells);
#include "netserver/limits.def"
#undef NS_LIMIT

	if (d->limits.each.port_max > 0) {
		PUT(&o, "limit        ports %u to %u for data\n", d->limits.each.port_min,
		    d->limits.each.port_max);
	}
	if (d->limits.each.want_echo) {
		PUT(&o, "limit        datagrams only to clients that prove their address\n");
	}
	PUT(&o, "connections  %" PRIu64 "\n", s->connections);
	PUT(&o, "served       %" PRIu64 " sessions, %" PRIu64 " of them killed\n", s->sessions,
	    s->killed);
	PUT(&o, "tests        %" PRIu64 ", %" PRIu64 " of them failed\n", s->tests,
	    s->tests_failed);
	PUT(&o, "data         %s received, %s sent, %" PRIu64 " transactions\n",
	    amount(a, s->received_bytes, true), amount(b, s->sent_bytes, true), s->transactions);
	PUT(&o, "log          %" PRIu64 " lines lost, %" PRIu64 " left out\n", d->log_out.lost,
	    d->lines.left_out + d->session_lines.left_out);
	if (s->metrics_lost > 0) {
		PUT(&o, "metrics      %" PRIu64 " files not written\n", s->metrics_lost);
	}
	for (int i = 0; i < NS_REFUSALS; i++) {
		if (s->refused[i] > 0) {
			PUT(&o, "refused      %" PRIu64 " %s\n", s->refused[i],
			    ns_refusals[i].name);
			any = true;
		}
	}
	if (!any) {
		PUT(&o, "refused      0\n");
	}
	put_sessions(&o, d->sessions, now_ns);
	return o.len;
}

/* The abstract address for a port, which may be the name of a service. Its length, or 0. */
static socklen_t
socket_of(const char *port, struct sockaddr_un *un, struct np_err *err)
{
	struct np_addrs found;
	int64_t n;
	int len;

	if (np_parse_int(port, &n) != 0) {
		if (np_resolve(NULL, port, AF_INET, SOCK_STREAM, &found, err) != NP_OK) {
			return 0;
		}
		n = np_addr_port(&found.at[0]);
	}
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1,
		       "plumbline/netserver/%" PRId64 "/status", n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

int
ns_status_listen(const char *port, struct np_err *err)
{
	struct sockaddr_un un;
	socklen_t len = socket_of(port, &un, err);
	int fd;

	if (len == 0) {
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&un, len) != 0 || listen(fd, BACKLOG) != 0) {
		np_fail(err, NP_ESYS, errno, "the status socket of port %s", port);
		np_fds_close(fd);
		return -1;
	}
	ns_passed_refuse(fd);
	return fd;
}

enum { UNKNOWN = -1 };

/* The user that made the connection or listener at the other end; UNKNOWN: the kernel can't say. */
static uid_t
user_of(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? cred.uid
									 : (uid_t)UNKNOWN;
}

static const char refusal[] = "netserver: the status is for root and the daemon's users\n";

void
ns_status_answer(const struct ns_daemon *d)
{
	const int room = 2 * NS_STATUS_MAX;
	int fd = accept4(d->status_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	char text[NS_STATUS_MAX];
	size_t len;
	uid_t user;

	if (fd < 0) {
		return;
	}
	user = user_of(fd);
	if (user == 0 || user == geteuid() || user == d->owner) {
		len = ns_status_text(d, np_now(), text, sizeof(text));
	} else {
		len = sizeof(refusal) - 1;
		memcpy(text, refusal, len);
	}
	/* All of it fits into the socket, so this does not wait for the reader. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	ns_passed_close(fd); /* descriptors may have been passed to it */
}

/* Connect to the status socket of the daemon for this port. Returns -1 with err filled. */
static int
connect_to(const char *port, struct np_err *err)
{
	const struct timeval timeout = { .tv_sec = ASK_S }; /* of connect(2), too */
	struct sockaddr_un un;
	socklen_t len = socket_of(port, &un, err);
	int fd = len > 0 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;

	if (len == 0) {
		return -1;
	}
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) != 0 ||
	    connect(fd, (struct sockaddr *)&un, len) != 0) {
		np_fail(err, NP_ECONTROL, errno == ECONNREFUSED ? 0 : errno,
			"no netserver reports its status for port %s here", port);
		np_fds_close(fd);
		return -1;
	}
	return fd;
}

/* Read to the end, an error or a full buffer. Returns the length; -1: the deadline came first. */
static ssize_t
read_answer(int fd, char *text, size_t size, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timespec left;
	size_t len = 0;

	while (len < size) {
		ssize_t n;

		if (ppoll(&p, 1, np_left(deadline, &left), NULL) == 0) {
			return -1;
		}
		n = recv(fd, text + len, size - len, MSG_DONTWAIT);
		if (n > 0) {
			len += (size_t)n;
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			break;
		}
	}
	return (ssize_t)len;
}

int
ns_status_ask(const char *port, FILE *out, struct np_err *err)
{
	uint64_t deadline = np_deadline(ASK_S * NP_SEC);
	int fd = connect_to(port, err);
	char text[NS_STATUS_MAX];
	uid_t user;
	ssize_t len;

	if (fd < 0) {
		return err->code;
	}
	len = read_answer(fd, text, sizeof(text), deadline);
	user = user_of(fd);
	close(fd);
	if (len <= 0) {
		return np_fail(err, NP_ECONTROL, 0, "the netserver of port %s does not answer",
			       port);
	}
	if (len == sizeof(refusal) - 1 && memcmp(text, refusal, (size_t)len) == 0) {
		return np_fail(err, NP_EPEER, 0,
			       "the status of port %s is for root and the daemon's users", port);
	}
	/* Another program may have taken the name: do not print its control characters. */
	for (size_t i = 0; i < (size_t)len; i++) {
		bool plain = (text[i] >= ' ' && text[i] <= '~') || text[i] == '\n';

		putc(plain ? text[i] : '?', out);
	}
	if (user != 0 && user != geteuid() && user != (uid_t)UNKNOWN) {
		fprintf(out, "(answered by a process of user %lu)\n", (unsigned long)user);
	}
	return NP_OK;
}
