#include "net/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void
np_sockopts_add_value(struct np_sockopts *o, int level, int name, const char *label,
		      const void *value, size_t len, const char *shown, ...)
{
	va_list ap;

	if (o->count < NP_SOCKOPTS_MAX) {
		o->at[o->count].level = level;
		o->at[o->count].name = name;
		o->at[o->count].label = label;
		o->at[o->count].optional = false;
		o->at[o->count].len = (socklen_t)len;
		memcpy(o->at[o->count].value, value, len);
		va_start(ap, shown);
		vsnprintf(o->at[o->count].shown, sizeof(o->at[o->count].shown), shown, ap);
		va_end(ap);
	}
	o->count++;
}

void
np_sockopts_add(struct np_sockopts *o, bool wanted, int level, int name, const char *label,
		int value, bool optional)
{
	if (wanted) {
		np_sockopts_add_value(o, level, name, label, &value, sizeof(value), "%d", value);
	}
	if (wanted && o->count <= NP_SOCKOPTS_MAX) {
		o->at[o->count - 1].optional = optional;
	}
}

void
np_sockopts_add_text(struct np_sockopts *o, int level, int name, const char *label,
		     const char *value)
{
	np_sockopts_add_value(o, level, name, label, value, strnlen(value, 15), "'%.15s'", value);
}

static bool
is_congestion(const struct np_sockopts *o, size_t i)
{
	return o->at[i].level == IPPROTO_TCP && o->at[i].name == TCP_CONGESTION;
}

/* Fail by errno: option i of the list was refused. */
static int
refused(const struct np_sockopts *o, size_t i, struct np_err *err)
{
#define ALLOWED "net.ipv4.tcp_allowed_congestion_control"
	const char *value = o->at[i].value, *label = o->at[i].label, *shown = o->at[i].shown;

	if (is_congestion(o, i) && errno == ENOENT) {
		return np_fail(err, NP_ESYS, errno,
			       "set %s to %s (available: see sysctl "
			       "net.ipv4.tcp_available_congestion_control)",
			       label, shown);
	}
	if (is_congestion(o, i) && errno == EPERM) { /* it exists, but is restricted */
		return np_fail(err, NP_ESYS, errno,
			       "set %s to %s (as root: sysctl -w " ALLOWED "=\"$(sysctl -n " ALLOWED
			       ") %.*s\")",
			       label, shown, (int)o->at[i].len, value);
	}
	return np_fail(err, NP_ESYS, errno, "set %s to %s", label, shown);
}

int
np_sockopts_apply(const struct np_sockopts *o, int fd, struct np_err *err)
{
	if (o->count > NP_SOCKOPTS_MAX) {
		return np_fail(err, NP_EUNSUP, 0, "%zu socket options are more than %d", o->count,
			       NP_SOCKOPTS_MAX);
	}
	for (size_t i = 0; i < o->count; i++) {
		int rc = o->permit != NULL && is_congestion(o, i)
			     ? o->permit(o->permit_ctx, fd, o->at[i].value, o->at[i].len)
			     : setsockopt(fd, o->at[i].level, o->at[i].name, o->at[i].value,
					  o->at[i].len);

		if (rc != 0 && !o->at[i].optional) {
			return refused(o, i, err);
		}
	}
	return NP_OK;
}

int
np_sock_bind(int fd, const struct np_addr *local, struct np_err *err)
{
	uint32_t port = np_addr_port(local);

	if (bind(fd, (const struct sockaddr *)&local->sa, local->len) == 0) {
		return NP_OK;
	}
	if (errno == EACCES && np_family_of(local)->version != 0 && port < IPPORT_RESERVED) {
		return np_fail(
		    err, NP_ESYS, errno,
		    "bind to %s (below 1024: run as root, netserver with --user root, or "
		    "sysctl -w net.ipv4.ip_unprivileged_port_start=%u)",
		    NP_ADDR_STR(local), port);
	}
	return np_fail(err, NP_ESYS, errno, "bind to %s", NP_ADDR_STR(local));
}

int
np_sock_open(int family, int socktype, int protocol, const struct np_sockopts *opts,
	     const struct np_addr *local, struct np_err *err)
{
	int fd = socket(family, socktype | SOCK_CLOEXEC, protocol);

	if (fd < 0) {
		np_fail(err, NP_ESYS, errno, "open a data socket (family %s, type %d, protocol %d)",
			np_family(family)->name, socktype, protocol);
		return -1;
	}
	if (np_sockopts_apply(opts, fd, err) != NP_OK ||
	    (local != NULL && np_sock_bind(fd, local, err) != NP_OK)) {
		close(fd);
		return -1;
	}
	return fd;
}

int
np_sock_trial(int family, int socktype, int protocol, struct np_err *err)
{
	static const struct np_sockopts none = { .count = 0 };
	int fd = np_sock_open(np_family_or(family, AF_INET), socktype, protocol, &none, NULL, err);

	return fd < 0 && family == AF_UNSPEC
		   ? np_sock_open(AF_INET6, socktype, protocol, &none, NULL, NULL)
		   : fd;
}

int
np_sock_int(int fd, int level, int name)
{
	int v = -1;
	socklen_t len = sizeof(v);

	return getsockopt(fd, level, name, &v, &len) == 0 ? v : -1;
}

int
np_sock_path_mtu(int fd, const struct np_addr *to)
{
	bool six = to->sa.ss_family == AF_INET6;
	int level = six ? IPPROTO_IPV6 : IPPROTO_IP, name = six ? IPV6_MTU : IP_MTU;
	int mtu = np_sock_int(fd, level, name);

	/* A socket of datagrams that is connected there knows it, and sends nothing. */
	if (mtu > 0 || (fd = socket(to->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)) < 0) {
		return mtu;
	}
	if (connect(fd, (const struct sockaddr *)&to->sa, to->len) == 0) {
		mtu = np_sock_int(fd, level, name);
	}
	close(fd);
	return mtu;
}

int
np_sock_queued(int fd, unsigned long which)
{
	int bytes;

	return ioctl(fd, which, &bytes) == 0 ? bytes : 0;
}

/* Not SIOCINQ: for UDP it moves datagrams where a reader about to sleep does not look. */
uint32_t
np_sock_memory(int fd, int part)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(memory);

	return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &len) == 0 ? memory[part] : 0;
}

bool
np_sock_peer_closed(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP)) != 0;
}

void
np_sock_block(int fd, bool block)
{
	int at_once = !block;

	ioctl(fd, FIONBIO, &at_once);
}

void
np_sock_forget(int fd)
{
	enum { MOST = 1 << 16 };
	bool had_error = false; /* an ICMP error, which hides queued data once */
	char byte;

	for (int i = 0; i < MOST; i++) {
		if (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) < 0) {
			if (errno == EAGAIN || had_error) {
				return;
			}
			had_error = true;
		}
	}
}

int
np_sock_local(int fd, struct np_addr *out, struct np_err *err)
{
	memset(out, 0, sizeof(*out));
	out->len = sizeof(out->sa);
	if (getsockname(fd, (struct sockaddr *)&out->sa, &out->len) != 0) {
		return np_fail(err, NP_ESYS, errno, "read back the address of a data socket");
	}
	return NP_OK;
}

void
np_sock_watch_peer(int fd, uint32_t silence_s)
{
	enum { PROBES = 127 }; /* the most; they count where TCP_USER_TIMEOUT is missing */
	int s = (int)silence_s;
	const struct {
		int level, name, value;
	} set[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 2 }, /* s */
		{ IPPROTO_TCP, TCP_KEEPINTVL, 1 },
		{ IPPROTO_TCP, TCP_KEEPCNT, s < PROBES ? s : PROBES },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, s * 1000 },
	};

	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
		setsockopt(fd, set[i].level, set[i].name, &set[i].value, sizeof(set[i].value));
	}
}

void
np_sock_reset(int fd)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	const int at_once_ms = 1;

	if (connect(fd, &nowhere, sizeof(nowhere)) != 0) { /* kernel TLS */
		setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &at_once_ms, sizeof(at_once_ms));
	}
	close(fd);
}

int
np_sock_listen(const struct np_addr *at, int backlog, struct np_err *err)
{
	struct np_sockopts opts = { .count = 0 };
	int fd;

	NP_SOCKOPT(&opts, true, SOL_SOCKET, SO_REUSEADDR, 1);
	/* Non-blocking: a connection may be gone again before it is accepted. */
	fd = np_sock_open(at->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0, &opts, at, err);
	if (fd >= 0 && listen(fd, backlog) != 0) {
		np_fail(err, NP_ESYS, errno, "listen on %s", NP_ADDR_STR(at));
		close(fd);
		fd = -1;
	}
	return fd;
}
