#include "netserver/one_port.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/units.h"
#include "bench/terms.h"
#include "net/sock.h"
#include "netserver/caller.h"
#include "netserver/passed.h"
#include "run/talk.h"
#include "wire/auth.h"

enum {
	HOLD_S = 5,       /* for a client to connect while another one of its address waits */
	QUIET_MS = 50,    /* after this silence a connection counts as a data connection */
	LATE_S = 5,       /* for datagrams that are in flight when a test ends */
	LATE_SHARE = 8,   /* of the rows for them an address has an eighth */
	OTHER_S = 1,      /* for a datagram from the named port, while strays come */
	AT_ONCE = 256,    /* datagrams read in a row */
	ANSWERS = 500,    /* a second, to datagrams with unknown tokens */
	EARLY = 1024,     /* datagrams of a queue that are searched for those of one client */
	PART = 4,         /* descriptors in flight: at most a quarter of RLIMIT_NOFILE, */
	PASSED = 1024,    /* and at most this number; */
	SHARE = 4,        /* those of one session: at most a quarter of that */
	DATAGRAMS = 2048, /* sockets at the port; all are searched for an unknown sender: 60 us */
	OTHERS = 32       /* datagrams of other clients that the search keeps */
};

/*
 * Descriptors not yet received, by SIOCOUTQ: the session is not trusted. They count for the user;
 * above the sender's RLIMIT_NOFILE no more can be sent (unix(7), ETOOMANYREFS).
 */
static uint64_t
unreceived(const struct ns_daemon *d, int fd)
{
	uint64_t bytes = (uint64_t)np_sock_queued(fd, SIOCOUTQ);

	return d->handed_bytes > 0 ? (bytes + d->handed_bytes - 1) / d->handed_bytes : 0;
}

void
ns_handovers_begin(struct ns_daemon *d)
{
	const struct np_handed h = { .error = 0 };
	struct rlimit files = { .rlim_cur = 0 };
	int pair[2];

	getrlimit(RLIMIT_NOFILE, &files);
	d->limits.all[NP_RES_PASSED] = np_max(1, np_min(files.rlim_cur / PART, PASSED));
	d->limits.all[NP_RES_DATAGRAMS] = DATAGRAMS;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		return;
	}
	if (np_fds_pass(pair[0], &h, sizeof(h), NULL, 0)) {
		d->handed_bytes = (uint32_t)np_sock_queued(pair[0], SIOCOUTQ);
	}
	close(pair[0]);
	close(pair[1]);
}

/* Set how many of the descriptors passed to the session it has not received yet. */
static void
set_in_flight(struct ns_daemon *d, struct ns_session *s, uint64_t count)
{
	d->stats.held[NP_RES_PASSED] += count - s->holds[NP_RES_PASSED];
	s->holds[NP_RES_PASSED] = count;
}

void
ns_handovers_count(struct ns_daemon *d)
{
	for (struct ns_session *s = d->sessions; s != NULL; s = s->next) {
		if (s->handover.fd > 0 && s->holds[NP_RES_PASSED] > 0) {
			set_in_flight(d, s, unreceived(d, s->handover.fd));
		}
	}
}

/* May one more descriptor be in flight? Counts again only if a limit may have been reached. */
static bool
has_room(struct ns_daemon *d, struct ns_session *s)
{
	const uint64_t session_max = np_max(1, d->limits.all[NP_RES_PASSED] / SHARE);

	s->handover.daemon_full = false;
	if (s->holds[NP_RES_PASSED] >= session_max) {
		set_in_flight(d, s, unreceived(d, s->handover.fd));
	}
	if (s->holds[NP_RES_PASSED] >= session_max) {
		return false;
	}
	if (!ns_guard_more(&d->limits, d->sessions, s, NP_RES_PASSED,
			   d->stats.held[NP_RES_PASSED])) {
		ns_handovers_count(d);
		s->handover.daemon_full = !ns_guard_more(&d->limits, d->sessions, s, NP_RES_PASSED,
							 d->stats.held[NP_RES_PASSED]);
	}
	return !s->handover.daemon_full;
}

/* The session with a test that expects sockets from that address, and no tokens; NULL: none. */
static struct ns_session *
session_by_address(const struct ns_daemon *d, const struct np_addr *peer, bool datagrams)
{
	struct ns_session *s = d->sessions;

	while (s != NULL &&
	       (s->handover.left == 0 || s->wish.handover.tokens ||
		s->wish.handover.datagrams != datagrams || !np_addr_same_host(&s->peer, peer))) {
		s = s->next;
	}
	return s;
}

/* The session of that token; NULL: none. Looks at all: the time does not tell which matched. */
static struct ns_session *
session_by_token(const struct ns_daemon *d, const struct np_token *token, bool datagrams)
{
	struct ns_session *found = NULL;

	for (struct ns_session *s = d->sessions; s != NULL; s = s->next) {
		bool takes = s->handover.fd > 0 && s->wish.handover.tokens &&
			     s->wish.handover.datagrams == datagrams;

		found = takes && np_token_is(&s->handover.token, token) ? s : found;
	}
	return found;
}

bool
ns_handover_make_free(struct ns_daemon *d, const struct ns_session *s)
{
	struct ns_session *other;

	if (s->wish.handover.tokens) {
		return true;
	}
	other = session_by_address(d, &s->peer, s->wish.handover.datagrams);
	if (other != NULL && np_now() - other->handover.since > HOLD_S * NP_SEC) {
		const struct np_handed h = { .error = ETIMEDOUT }; /* no more sockets come */

		if (!np_fds_pass(other->handover.fd, &h, sizeof(h), NULL, 0)) {
			/* The session sees the end once it has received what is queued. */
			shutdown(other->handover.fd, SHUT_WR);
		}
		other->handover.left = 0;
		d->freed++;
		other = NULL;
	}
	return other == NULL;
}

int
ns_handover_open(struct ns_session *s, const struct np_handover *asked, int *theirs,
		 struct np_err *err)
{
	struct np_token token;
	int pair[2];

	if (getrandom(token.at, sizeof(token.at), 0) != sizeof(token.at) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		return np_fail(err, NP_ESYS, errno, "no descriptors for data sockets");
	}
	ns_passed_refuse(pair[0]);
	s->handover = (struct ns_handover){ .fd = pair[0],
					    .since = np_now(),
					    .left = asked->many ? UINT32_MAX : asked->count,
					    .token = token };
	*theirs = pair[1];
	return NP_OK;
}

/* Close the socket for datagrams from a port that the client did not name, passed on or not. */
static void
drop_other(struct ns_session *s)
{
	np_fds_close(s->handover.other_ns != 0 ? s->handover.other_fd : -1);
	s->handover.other_ns = 0;
}

/* The session was passed a socket for datagrams from that port. */
static void
note_recent(struct ns_session *s, uint32_t port)
{
	s->handover.recent[s->handover.recents++ % NS_RECENT] = (uint16_t)port;
}

/* Is it from a port of a test that has just ended? Not if the client of s named that port. */
static bool
is_late(const struct ns_late *l, const struct ns_session *s, const struct np_addr *from)
{
	uint64_t now = np_now();
	bool is_named = s != NULL && s->wish.handover.port == np_addr_port(from);

	for (uint32_t i = 0; i < NS_LATE && !is_named; i++) {
		if (l->at[i].until_ns > now && np_addr_same_host(&l->at[i].from, from) &&
		    np_addr_port(&l->at[i].from) == np_addr_port(from)) {
			return true;
		}
	}
	return false;
}

/* The row for one more of an address: its oldest one if it has its share, else one that is over. */
static uint32_t
late_row(struct ns_late *l, const struct np_addr *peer)
{
	uint32_t own = 0, oldest = 0, over = NS_LATE;
	uint64_t now = np_now();

	for (uint32_t i = 0; i < NS_LATE; i++) {
		if (l->at[i].until_ns <= now) {
			over = i;
		} else if (np_addr_same_host(&l->at[i].from, peer)) {
			if (own++ == 0 || l->at[i].until_ns < l->at[oldest].until_ns) {
				oldest = i;
			}
		}
	}
	if (own >= NS_LATE / LATE_SHARE) {
		return oldest;
	}
	return over < NS_LATE ? over : l->next++ % NS_LATE;
}

void
ns_handover_close(struct ns_daemon *d, struct ns_session *s)
{
	if (s->handover.fd > 0 && s->wish.handover.datagrams && !s->wish.handover.tokens) {
		/* Late datagrams without a token must not be taken for those of the next test. */
		for (uint32_t i = 0; i < s->handover.recents && i < NS_RECENT; i++) {
			uint32_t at = late_row(&d->late, &s->peer);

			d->late.at[at].from = s->peer;
			np_addr_set_port(&d->late.at[at].from, s->handover.recent[i]);
			d->late.at[at].until_ns = np_now() + LATE_S * NP_SEC;
		}
	}
	for (struct ns_caller *c = d->callers; c != NULL && s->handover.waiting > 0; c = c->next) {
		if (c->session == s) {
			c->session = NULL;
			s->handover.waiting--;
		}
	}
	if (s->handover.fd > 0) {
		if (s->pid > 0 && unreceived(d, s->handover.fd) > 0) {
			kill(s->pid, SIGKILL); /* it should have received and closed them */
		}
		ns_passed_close(s->handover.fd);
		d->freed++;
	}
	drop_other(s);
	set_in_flight(d, s, 0);
	s->handover = (struct ns_handover){ .fd = 0 };
}

void
ns_handovers_set_listeners(struct ns_daemon *d)
{
	int defers = 0;
	bool silent = false, blocks = false;

	for (struct ns_session *s = d->sessions; s != NULL; s = s->next) {
		const struct np_handover *wish = &s->wish.handover;
		bool many = s->handover.fd > 0 && wish->many;

		defers = defers || (many && !wish->silent);
		blocks = blocks || (many && wish->blocks);
		/* Without a first byte, such as a token's, the kernel would keep it for a second.
		 */
		silent = silent || (s->handover.fd > 0 && wish->silent && !wish->tokens);
	}
	defers = defers && !silent;
	d->accepts = SOCK_CLOEXEC | (blocks ? 0 : SOCK_NONBLOCK);
	for (size_t i = 0; i < d->listener_count && d->defers != defers; i++) {
		setsockopt(d->listeners[i], IPPROTO_TCP, TCP_DEFER_ACCEPT, &defers, sizeof(defers));
	}
	d->defers = defers;
}

/* Hand a socket over to a session. UNKNOWN: its test takes none; FULL: not now. */
static enum ns_data
pass_on(struct ns_daemon *d, struct ns_session *s, int fd, const struct np_handed *h)
{
	if (s->handover.left == 0) {
		return NS_DATA_UNKNOWN;
	}
	if (!has_room(d, s)) {
		return NS_DATA_FULL;
	}
	if (!np_fds_pass(s->handover.fd, h, sizeof(*h), &fd, 1)) {
		return errno == EPIPE || errno == ECONNRESET ? NS_DATA_UNKNOWN : NS_DATA_FULL;
	}
	set_in_flight(d, s, s->holds[NP_RES_PASSED] + 1);
	s->handover.since = np_now();
	s->handover.left -= s->handover.left != UINT32_MAX;
	d->freed += s->handover.left == 0; /* the next test of this address may begin */
	return NS_DATA_PASSED;
}

uint64_t
ns_handover_tick(struct ns_daemon *d, struct ns_session *s, uint64_t now_ns)
{
	if (s->handover.other_ns > now_ns) {
		return s->handover.other_ns;
	}
	if (pass_on(d, s, s->handover.other_fd, &s->handover.other) == NS_DATA_PASSED) {
		note_recent(s, s->handover.other_port);
	}
	drop_other(s);
	return NP_NEVER;
}

/* Pass a connection on, unless others of its session wait already. */
static enum ns_data
pass_connection(struct ns_daemon *d, struct ns_session *s, int fd, enum ns_look when)
{
	/* A caller's socket was made non-blocking. */
	const struct np_handed h = { .blocks =
					 when == NS_LOOK_NEW && (d->accepts & SOCK_NONBLOCK) == 0 };

	return s->handover.waiting > 0 ? NS_DATA_FULL : pass_on(d, s, fd, &h);
}

enum ns_data
ns_data_again(struct ns_daemon *d, struct ns_session *s, int fd, uint64_t now_ns)
{
	static const struct np_handed h = { .error = 0 };
	enum ns_data kind;

	if (s == NULL) {
		return NS_DATA_UNKNOWN;
	}
	if (s->handover.full_ns == now_ns) {
		return NS_DATA_FULL;
	}
	kind = pass_on(d, s, fd, &h);
	s->handover.full_ns = kind == NS_DATA_FULL ? now_ns : 0;
	return kind;
}

/* Do these bytes begin a message of a control connection? Data rarely look like one. */
static bool
is_request(const uint8_t *bytes, size_t n)
{
	uint32_t code = n >= 4 ? np_frame_head(bytes).code : 0;

	switch (code) {
	case NP_DEBUG_ON:
	case NP_DEBUG_OFF:
	case NP_CPU_CALIBRATE:
	case NP_PASSPHRASE:
	case NP_SYSINFO:
	case NP_EXT_HELLO:
	case NP_AUTH_HELLO:
		return true;
	default:
		return n >= 4 && np_dialect(code) != NULL;
	}
}

/* A connection that begins with a token belongs to the session of that token. */
static enum ns_data
take_token(struct ns_daemon *d, int fd, enum ns_look when, struct ns_session **owner)
{
	static const struct linger reset = { .l_onoff = 1 };
	uint8_t bytes[NP_TOKEN_SIZE];
	struct np_token token = { { 0 } };
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	enum np_token_word word = np_token_get(bytes, n > 0 ? (size_t)n : 0, &token);
	struct ns_session *s = session_by_token(d, &token, false);
	int one_byte = 1;

	if (when != NS_LOOK_NEW) { /* ns_data_look() may have set it */
		setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one_byte, sizeof(one_byte));
	}
	if (s != NULL && (word == NP_TOKEN_SHOWN || word == NP_TOKEN_PASSED)) {
		enum ns_data kind = pass_connection(d, s, fd, when);

		if (kind != NS_DATA_UNKNOWN) {
			*owner = s;
			return kind;
		}
	}
	if (word == NP_TOKEN_SHOWN) {
		np_token_say(fd, NP_TOKEN_UNKNOWN);
	} else { /* the client waits for no answer: close(2) is to reset it */
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	}
	return NS_DATA_UNKNOWN;
}

enum ns_data
ns_data_look(struct ns_daemon *d, int fd, const struct np_addr *peer, enum ns_look when,
	     struct ns_session **owner)
{
	uint8_t bytes[NP_TOKEN_SIZE] = { 0 };
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	struct ns_session *s;
	int token_size = NP_TOKEN_SIZE;

	if (n > 0 && np_token_begins(bytes, (size_t)n)) {
		if (n == NP_TOKEN_SIZE) {
			return take_token(d, fd, when, owner);
		}
		if (np_sock_peer_closed(fd)) {
			return NS_DATA_NONE; /* the rest won't come, and waiting would spin */
		}
		setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &token_size, sizeof(token_size));
		return NS_DATA_MORE;
	}
	/* Without a token: data from a test's client, or silence if that client waits for data. */
	s = n > 0 || when == NS_LOOK_QUIET ? session_by_address(d, peer, false) : NULL;
	if (s == NULL || n == 0 ||
	    (n > 0 ? is_request(bytes, (size_t)n) : !s->wish.handover.silent)) {
		return NS_DATA_NONE;
	}
	*owner = s;
	return pass_connection(d, s, fd, when);
}

uint64_t
ns_quiet_until(const struct ns_daemon *d, const struct np_addr *peer, uint64_t now_ns)
{
	const struct ns_session *s = session_by_address(d, peer, false);

	return s != NULL && s->wish.handover.silent ? now_ns + QUIET_MS * NP_MSEC : 0;
}

struct datagram {
	struct np_addr from, to; /* of the same family, IPv4 or IPv6 */
	size_t size;
	uint8_t bytes[NP_TOKEN_SIZE]; /* its beginning */
};

/* Receive a datagram of fd, bound to `port`; to.len 0: destination not known. False: none waits. */
static bool
receive(int fd, uint32_t port, struct datagram *dgram)
{
	_Alignas(struct cmsghdr) char control[256];
	struct iovec part = { .iov_base = dgram->bytes, .iov_len = sizeof(dgram->bytes) };
	struct msghdr m = { .msg_name = &dgram->from.sa,
			    .msg_namelen = sizeof(dgram->from.sa),
			    .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_TRUNC);
	struct in_pktinfo four;
	struct in6_pktinfo six;

	if (n < 0) {
		return false;
	}
	dgram->size = (size_t)n;
	dgram->from.len = m.msg_namelen;
	np_addr_unmap(&dgram->from);
	dgram->to = (struct np_addr){ .len = 0 };
	/* The local address from PKTINFO (ip(7), ipv6(7)), with the port of the socket. */
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h != NULL; h = CMSG_NXTHDR(&m, h)) {
		if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_PKTINFO) {
			memcpy(&four, CMSG_DATA(h), sizeof(four));
			np_addr_make(&dgram->to, AF_INET, (const uint8_t *)&four.ipi_addr, port);
			break;
		}
		if (h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_PKTINFO) {
			memcpy(&six, CMSG_DATA(h), sizeof(six));
			np_addr_make(&dgram->to, AF_INET6, (const uint8_t *)&six.ipi6_addr, port);
			((struct sockaddr_in6 *)&dgram->to.sa)->sin6_scope_id =
			    IN6_IS_ADDR_LINKLOCAL(&six.ipi6_addr) ? (uint32_t)six.ipi6_ifindex : 0;
			np_addr_unmap(&dgram->to);
			break;
		}
	}
	return true;
}

/* Switch SO_REUSEADDR of the daemon's sockets for datagrams on or off. */
static void
let_reuse(const struct ns_daemon *d, int on)
{
	for (size_t i = 0; i < d->listener_count; i++) {
		if (d->datagrams[i] > 0) {
			setsockopt(d->datagrams[i], SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		}
	}
}

/* A socket from dgram->to to dgram->from, or -1. SO_REUSEADDR lets others bind: only meanwhile. */
static int
connect_back(const struct ns_daemon *d, const struct datagram *dgram)
{
	struct np_sockopts reuse = { .count = 0 };
	int fd;

	NP_SOCKOPT_OR_NOT(&reuse, true, SOL_SOCKET, SO_REUSEADDR, 1);
	let_reuse(d, 1);
	fd = np_sock_open(dgram->to.sa.ss_family, SOCK_DGRAM | SOCK_NONBLOCK, 0, &reuse, &dgram->to,
			  NULL);
	if (fd >= 0 &&
	    connect(fd, (const struct sockaddr *)&dgram->from.sa, dgram->from.len) != 0) {
		close(fd);
		fd = -1;
	}
	let_reuse(d, 0);
	return fd;
}

/* Datagrams of other clients that were found in a queue. */
struct others {
	struct datagram at[OTHERS];
	size_t count;
};

/* Take one client's datagrams out of a queue and count them. Those of others go to *others. */
static void
count_early(int fd, const struct np_addr *to, const struct np_addr *from, struct np_handed *h,
	    struct others *others)
{
	struct datagram dgram;

	for (int i = 0; i < EARLY && receive(fd, np_addr_port(to), &dgram); i++) {
		if (np_addr_same_host(&dgram.from, from) &&
		    np_addr_port(&dgram.from) == np_addr_port(from)) {
			if (h->early < NP_EARLY_IDS) {
				memcpy(h->id[h->early], dgram.bytes, sizeof(h->id[0]));
			}
			h->early += dgram.size > 0;
			h->early_bytes += dgram.size;
			h->ended = h->ended || dgram.size == 0;
		} else if (others->count < OTHERS) {
			others->at[others->count++] = dgram;
		}
	}
}

/*
 * Give s a socket for that sender. Earlier datagrams wait in it, or in the port's: count_early().
 */
static void
pass_datagrams(struct ns_daemon *d, struct ns_session *s, int port_fd, const struct datagram *dgram,
	       struct others *others)
{
	uint32_t port = np_addr_port(&dgram->from);
	bool no_token = !s->wish.handover.tokens;
	/* A client that shows no token has named its port. While strays come, a datagram from
	 * another port of its address may be forged, or changed by a NAT: wait for the named one.
	 */
	bool waits = no_token && s->wish.handover.port != 0 && s->wish.handover.port != port &&
		     np_now() - d->stray_ns < OTHER_S * NP_SEC;
	struct np_handed h = { .early = no_token, .early_bytes = no_token ? dgram->size : 0 };
	int fd;

	d->stray_ns = waits ? np_now() : d->stray_ns; /* it may be another stray */
	if (s->handover.left == 0 || (waits && s->handover.other_ns != 0) || !has_room(d, s)) {
		return; /* a client with a token sends it again */
	}
	fd = connect_back(d, dgram);
	if (fd < 0) {
		return;
	}
	if (waits) {
		s->handover.other_ns = d->stray_ns + OTHER_S * NP_SEC;
		s->handover.other_fd = fd;
		s->handover.other_port = (uint16_t)port;
		s->handover.other = h;
		return;
	}
	if (no_token) {
		memcpy(h.id[0], dgram->bytes, sizeof(h.id[0]));
		count_early(port_fd, &dgram->to, &dgram->from, &h, others);
	}
	if (pass_on(d, s, fd, &h) == NS_DATA_PASSED) {
		note_recent(s, port);
	}
	close(fd);
}

/* Does the session have a socket for that port already? It answers repeated datagrams itself. */
static bool
has_socket_for(const struct ns_session *s, uint32_t port)
{
	uint32_t count = s->handover.recents < NS_RECENT ? s->handover.recents : NS_RECENT;
	uint32_t i = 0;

	while (i < count && s->handover.recent[i] != port) {
		i++;
	}
	return i < count;
}

/* Give the session that expects this datagram a socket for it, or drop the datagram. */
static void
take_datagram(struct ns_daemon *d, int fd, const struct datagram *dgram, struct others *others)
{
	struct np_token token;
	enum np_token_word word = np_token_get(dgram->bytes, dgram->size, &token);
	struct ns_session *s = word == NP_TOKEN_SHOWN ? session_by_token(d, &token, true)
						      : session_by_address(d, &dgram->from, true);
	int back;

	/* Its client may have forged the source, to have the test send to that host. */
	if (s != NULL && !np_addr_same_host(&s->peer, &dgram->from)) {
		s = NULL;
	}
	if (dgram->to.len == 0 || np_addr_port(&dgram->from) == 0 ||
	    (word != NP_TOKEN_SHOWN && (dgram->size == 0 || is_late(&d->late, s, &dgram->from)))) {
		return; /* it can't be answered, or is an end mark or late: begins no test */
	}
	if (s == NULL && word == NP_TOKEN_SHOWN) {
		/* The answer is as long as the datagram, so it amplifies nothing. */
		if (ns_bucket_take(&d->unknown, NP_SEC / ANSWERS, NP_SEC, np_now()) &&
		    (back = connect_back(d, dgram)) >= 0) {
			np_token_say(back, NP_TOKEN_UNKNOWN);
			close(back);
		}
	} else if (s == NULL) {
		d->stray_ns = np_now();
	} else if (!has_socket_for(s, np_addr_port(&dgram->from))) {
		pass_datagrams(d, s, fd, dgram, others);
	}
}

void
ns_datagrams_receive(struct ns_daemon *d, int fd)
{
	struct others others = { .count = 0 };
	struct np_addr here;
	struct datagram dgram;

	if (np_sock_local(fd, &here, NULL) != NP_OK) {
		return;
	}
	for (int i = 0; i < AT_ONCE && receive(fd, np_addr_port(&here), &dgram); i++) {
		take_datagram(d, fd, &dgram, &others);
	}
	while (others.count > 0) {
		dgram = others.at[--others.count];
		take_datagram(d, fd, &dgram, &others);
	}
}

/* A socket for datagrams, bound to that address; -1 with err. */
static int
bind_datagrams(const struct np_addr *at, bool only_six, struct np_err *err)
{
	struct np_sockopts opts = { .count = 0 };
	bool six = at->sa.ss_family == AF_INET6;

	NP_SOCKOPT_OR_NOT(&opts, true, IPPROTO_IP, IP_PKTINFO, 1);
	NP_SOCKOPT_OR_NOT(&opts, true, SOL_SOCKET, SO_RCVBUF,
			  4 << 20); /* the system may allow less */
	NP_SOCKOPT_OR_NOT(&opts, six, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	NP_SOCKOPT_OR_NOT(&opts, six, IPPROTO_IPV6, IPV6_V6ONLY, only_six);
	return np_sock_open(at->sa.ss_family, SOCK_DGRAM | SOCK_NONBLOCK, 0, &opts, at, err);
}

/* Do a peer's datagrams reach the socket connected to it? Not in some sandboxes: try it. */
static bool
sorts_by_peer(void)
{
	struct ns_daemon trial = { .listener_count = 1 };
	struct datagram dgram = { .size = 0 };
	struct np_addr any;
	int one = -1, other = -1, back = -1;
	struct pollfd p = { .events = POLLIN };
	bool works = false;

	np_addr_make_loopback(&any, AF_INET);
	trial.datagrams[0] = bind_datagrams(&any, false, NULL);
	one = bind_datagrams(&any, false, NULL);
	other = bind_datagrams(&any, false, NULL);
	if (trial.datagrams[0] >= 0 && one >= 0 && other >= 0 &&
	    np_sock_local(trial.datagrams[0], &dgram.to, NULL) == NP_OK &&
	    np_sock_local(one, &dgram.from, NULL) == NP_OK &&
	    (back = connect_back(&trial, &dgram)) >= 0) {
		const struct sockaddr *to = (const struct sockaddr *)&dgram.to.sa;
		uint8_t byte = 1;

		p.fd = back;
		works = sendto(other, &byte, 1, 0, to, dgram.to.len) == 1 &&
			sendto(one, &byte, 1, 0, to, dgram.to.len) == 1 && poll(&p, 1, 1000) == 1 &&
			recv(back, &byte, 1, MSG_DONTWAIT) == 1 &&
			recv(back, &byte, 1, MSG_DONTWAIT) < 0 &&
			recv(trial.datagrams[0], &byte, 1, MSG_DONTWAIT) == 1 &&
			recv(trial.datagrams[0], &byte, 1, MSG_DONTWAIT) < 0;
	}
	for (int *fd = (int[]){ trial.datagrams[0], one, other, back, -2 }; *fd != -2; fd++) {
		np_fds_close(*fd);
	}
	return works;
}

void
ns_datagrams_open(struct ns_daemon *d)
{
	const char *why =
	    sorts_by_peer() ? NULL : "this system does not deliver datagrams by their sender";
	struct np_err err;
	struct np_addr at;

	for (size_t i = 0; i < d->listener_count && why == NULL; i++) {
		int only_six = np_sock_int(d->listeners[i], IPPROTO_IPV6, IPV6_V6ONLY);

		if (np_sock_local(d->listeners[i], &at, NULL) != NP_OK ||
		    np_family_of(&at)->version == 0) {
			continue; /* not an IP listener: no UDP */
		}
		d->datagrams[i] = bind_datagrams(&at, only_six > 0, &err);
		why = d->datagrams[i] < 0 ? strerror(err.sys) : NULL;
	}
	d->limits.each.one_port_udp = why == NULL;
	if (why != NULL) {
		np_log(d->log, NP_LOG_ERROR, "--one-port: tests of UDP have ports of their own: %s",
		       why);
	}
}
