#include "bench/transport/endpoint.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fds.h"
#include "bench/engine/syscall.h"
#include "bench/run.h"
#include "net/sources.h"

int
np_run_check_sources(struct np_run *run, struct np_err *err)
{
	if (!run->engine->compares) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP,
			       "the engine %s cannot tell where datagrams come from",
			       run->engine->name);
	}
	NP_EACH_WORKER (w, run) {
		w->codec |= NP_C_COMPARE;
	}
	return NP_OK;
}

/* Limit the peers of a socket to those of the terms; np_endpoint_take() checks a listener's. */
static int
limit_peers(struct np_run *run, int fd, bool listens, struct np_err *err)
{
	const struct np_terms *t = run->terms;
	const struct np_plan *p = run->plan;
	enum np_admit admit = p->transport->admit;
	bool is_limited = t->only.len != 0;

	if (listens && admit == NP_ADMIT_PEER && !is_limited) {
		return np_fail(err, NP_EUNSUP, EACCES,
			       "a listener for %s that would accept any peer", p->transport->name);
	}
	if (!is_limited || (admit != NP_ADMIT_PEER && admit != NP_ADMIT_IP)) {
		return NP_OK; /* not limited by address */
	}
	/*
	 * Connect a datagram socket, so that the kernel drops other peers' datagrams. On the
	 * wildcard address that would also choose a local address: there the loops compare peers.
	 */
	if (!listens && p->bind.len != 0 && !np_addr_is_any(&p->bind)) {
		return np_sock_limit_source(fd, np_plan_family(p), &t->only, 0, err);
	}
	run->end.sources =
	    (struct np_sources){ .at = { t->only }, .count = 1, .bits = t->only_bits };
	for (uint32_t i = 0; i < t->also.count; i++) {
		run->end.sources.at[run->end.sources.count++] = t->also.at[i];
	}
	return listens ? NP_OK : np_run_check_sources(run, err);
}

void
np_run_drop_early(const struct np_run *run)
{
	NP_EACH_CONN (c, run) {
		if (run->plan->transport->admit == NP_ADMIT_IP && /* open to other hosts */
		    !run->plan->transport->connected && c->fd >= 0) {
			np_sock_forget(c->fd);
		}
	}
}

void
np_endpoint_ask_buffers(const struct np_plan *p, struct np_sockopts *o)
{
	const struct np_end *e = &p->near;

	if (p->transport->buffers.ask != NULL) {
		p->transport->buffers.ask(p, o);
		return;
	}
	NP_SOCKOPT(o, e->sock.sndbuf >= 0, SOL_SOCKET, SO_SNDBUF, e->sock.sndbuf);
	NP_SOCKOPT(o, e->sock.rcvbuf >= 0, SOL_SOCKET, SO_RCVBUF, e->sock.rcvbuf);
}

void
np_endpoint_buffers(const struct np_transport *t, int fd, int *sndbuf, int *rcvbuf)
{
	if (t->buffers.read != NULL) {
		t->buffers.read(fd, sndbuf, rcvbuf);
	} else {
		*sndbuf = np_sock_int(fd, SOL_SOCKET, SO_SNDBUF);
		*rcvbuf = np_sock_int(fd, SOL_SOCKET, SO_RCVBUF);
	}
}

/* All flows connect at once. net.core.somaxconn may limit the backlog further. */
int
np_endpoint_listen(const struct np_plan *p, int fd, const struct np_addr *at, struct np_err *err)
{
	return listen(fd, p->flows > NP_BACKLOG ? (int)p->flows : NP_BACKLOG) == 0
		   ? NP_OK
		   : np_fail(err, NP_ESYS, errno, "listen on %s", NP_ADDR_STR(at));
}

void
np_endpoint_put_option(int fd, int level, int option, const char *name, struct np_bag *bag)
{
	int v = np_sock_int(fd, level, option);

	if (v > 0) {
		np_bag_int(bag, v, "%s", name);
	}
}

bool
np_endpoint_is_missing(int sys)
{
	return sys == EPROTONOSUPPORT || sys == EAFNOSUPPORT || sys == ESOCKTNOSUPPORT ||
	       sys == ENOPROTOOPT;
}

void
np_endpoint_say_missing(const struct np_transport *t, struct np_err *err)
{
	bool off = err->sys == ENOPROTOOPT && t->kernel.off != NULL; /* MPTCP's errno for that */
	struct np_err ignored;
	int fd;

	if (!np_endpoint_is_missing(err->sys)) {
		return;
	}
	fd = np_sock_trial(t->family, t->socktype, t->protocol, &ignored);
	if (fd >= 0) {
		close(fd); /* the protocol is there: the same errno was for a socket option */
		return;
	}
	if (off) {
		np_fail(err, NP_EUNSUP, err->sys, "%s is switched off (try '%s')", t->name,
			t->kernel.off);
	} else if (t->kernel.dropped != NULL) {
		np_fail(err, NP_EUNSUP, err->sys,
			"this kernel has no %s: Linux has dropped it in %s; before, it is the "
			"module %s, option %s (scripts/netvm boots a kernel that has it)",
			t->name, t->kernel.dropped, t->kernel.module, t->kernel.option);
	} else if (t->kernel.module != NULL) {
		np_fail(err, NP_EUNSUP, err->sys,
			"this kernel has no %s (try 'modprobe %s'; its option is %s)", t->name,
			t->kernel.module, t->kernel.option);
	} else if (t->kernel.option != NULL) {
		np_fail(err, NP_EUNSUP, err->sys, "this kernel has no %s (its option is %s)",
			t->name, t->kernel.option);
	}
}

int
np_transport_probe(const struct np_transport *t, struct np_err *err)
{
	int fd;

	if (t->kernel.probe != NULL) {
		return t->kernel.probe(t, err);
	}
	fd = np_sock_trial(t->family, t->socktype, t->protocol, err);
	if (fd < 0) {
		np_endpoint_say_missing(t, err);
		return err->code;
	}
	close(fd);
	return NP_OK;
}

/* Open a socket, bound to `at` unless that is NULL, and listening if it accepts. -1: failed. */
static int
open_at(struct np_run *run, const struct np_addr *at, struct np_err *err)
{
	const struct np_plan *p = run->plan;
	const struct np_transport *t = p->transport;
	bool listens = !p->active && t->connected;
	int fd =
	    np_sock_open(np_plan_family(p), t->socktype, t->protocol, &run->end.opts, NULL, err);

	if (fd < 0) {
		np_endpoint_say_missing(t, err);
		return -1;
	}
	if ((at != NULL && !np_family_of(at)->self_named && np_sock_bind(fd, at, err) != NP_OK) ||
	    limit_peers(run, fd, listens, err) != NP_OK ||
	    (listens && np_endpoint_listen(p, fd, at, err) != NP_OK)) {
		close(fd);
		return -1;
	}
	return fd;
}

void
np_endpoint_random(void *bytes, size_t count)
{
	while (getrandom(bytes, count, 0) < 0 && errno == EINTR) { /* the machine is just booting */
	}
}

void
np_endpoint_spread(struct np_addr *a, int32_t mask)
{
	size_t size = np_addr_size(a), whole = (uint32_t)mask / 8;    /* bytes of the network */
	uint8_t at[16], bits = (uint8_t)(0xff >> (uint32_t)mask % 8); /* the host's, of the next */
	uint32_t last = UINT32_MAX >> (uint32_t)mask % 32, host;      /* of an IPv4 network */

	if (mask <= 0 || mask >= 8 * (int32_t)size || size > sizeof(at)) {
		return;
	}
	do {
		const uint8_t *now = np_addr_bytes(a);

		np_endpoint_random(at, size);
		memcpy(at, now, whole);
		at[whole] = (uint8_t)((now[whole] & ~bits) | (at[whole] & bits));
		memcpy(&host, at, sizeof(host));
		host = ntohl(host) & last;
		/* Of two addresses both are hosts. */
	} while (np_family_of(a)->has_edges && last > 1 && (host == 0 || host == last));
	np_addr_set_bytes(a, at);
}

/* Set an option. Returns its value now, for the results; -1: it can't be read, -2: was refused. */
static int
set_and_read(int fd, int level, int name, int32_t value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) == 0
		   ? np_sock_int(fd, level, name)
		   : -2;
}

/* Set priority and type of service again, and record what the kernel made of them. */
static void
mark_packets(struct np_run *run, int fd)
{
	const struct np_end *e = &run->plan->near;
	bool six = np_family(run->plan->family)->version == 6;

	if (e->sock.tos >= 0) {
		run->end.tos = set_and_read(fd, six ? IPPROTO_IPV6 : IPPROTO_IP,
					    six ? IPV6_TCLASS : IP_TOS, e->sock.tos);
	}
	if (e->sock.prio >= 0) {
		run->end.prio = set_and_read(fd, SOL_SOCKET, SO_PRIORITY, e->sock.prio);
	}
}

/* Record what the kernel made of the options that results report. */
static void
read_back(struct np_run *run, int fd)
{
	np_endpoint_buffers(run->plan->transport, fd, &run->end.sndbuf, &run->end.rcvbuf);
	mark_packets(run, fd);
}

/*
 * Open socket `number` of the run, bound to `at` with a port set here. A passive end uses the
 * port asked for, and those after it for further sockets; if it is in use, any allowed port.
 */
static int
open_bound(struct np_run *run, uint32_t number, struct np_addr *at, struct np_err *err)
{
	const struct np_plan *p = run->plan;
	uint32_t port = p->near.sock.port, first = 0;
	uint32_t min = run->terms->passive_min, max = run->terms->passive_max;
	uint32_t count = min <= max ? max - min + 1 : 0;
	int fd;

	if (!p->active && port != 0 && !run->end.port_moved) {
		np_addr_set_port(at, port + number);
		fd = open_at(run, at, err);
		if (fd >= 0 || err->sys != EADDRINUSE) {
			return fd;
		}
		run->end.port_moved = number == 0; /* further sockets then take any port, too */
	}
	if (!p->active && max != 0) {
		/* Any free port of the range, starting at a random one. */
		np_endpoint_random(&first, sizeof(first));
		for (uint32_t i = 0; i < count; i++) {
			np_addr_set_port(at, min + (uint32_t)(((uint64_t)first + i) % count));
			fd = open_at(run, at, err);
			if (fd >= 0 || err->sys != EADDRINUSE) {
				return fd;
			}
		}
		np_fail(err, NP_ESYS, EADDRINUSE, "none of the ports %u to %u for data is free",
			min, max);
		return -1;
	}
	np_addr_set_port(at, p->active && number == 0 ? port : 0);
	return open_at(run, at, err);
}

int
np_endpoint_another(struct np_run *run, uint32_t number, struct np_err *err)
{
	const struct np_plan *p = run->plan;
	struct np_addr at = run->end.local;

	if (p->active && p->bind.len == 0) {
		return open_at(run, NULL, err);
	}
	if (p->sources > 1) {
		np_range_at(&p->bind, number % p->sources, &at); /* each address in turn */
	}
	return open_bound(run, number, &at, err);
}

int
np_endpoint_open(struct np_run *run, struct np_err *err)
{
	const struct np_plan *p = run->plan;
	bool listens = !p->active && p->transport->connected;
	bool want_bind =
	    !p->active || !p->transport->connected || p->near.sock.port != 0 || p->bind.len != 0;
	int fd;

	if (np_is_handed(run)) {
		/* Learn the buffer sizes from a socket like those that will be handed over. */
		fd = np_sock_open(np_plan_family(p), p->transport->socktype, p->transport->protocol,
				  &run->end.opts, NULL, err);
		if (fd < 0) {
			return err->code;
		}
		read_back(run, fd);
		close(fd);
		run->end.local = run->terms->data_at;
		run->end.listen_fd = run->terms->data_fd;
		run->end.borrowed_listener = true;
		return NP_OK;
	}
	np_addr_make_any(&run->end.local, np_plan_family(p));
	if (p->bind.len != 0) {
		run->end.local = p->bind;
	}
	if (p->active) {
		np_endpoint_spread(&run->end.local, p->near.sock.mask);
	}
	fd = want_bind ? open_bound(run, 0, &run->end.local, err) : open_at(run, NULL, err);
	if (fd < 0) {
		return err->code;
	}
	read_back(run, fd);
	*(listens ? &run->end.listen_fd : &run->conn->fd) = fd;
	return np_sock_local(fd, &run->end.local, err);
}

int
np_endpoint_establish(struct np_run *run, struct np_err *err)
{
	return run->plan->active ? np_endpoint_connect(run, err)
				 : np_endpoint_accept(run, run->conn, err);
}

int
np_endpoint_connect(struct np_run *run, struct np_err *err)
{
	if (run->plan->active) { /* a passive end connects to the client's own address */
		np_endpoint_spread(&run->end.peer, run->plan->far.sock.mask);
	}
	return np_sys_connect(run->conn->fd, &run->end.peer.sa, run->end.peer.len) == 0
		   ? NP_OK
		   : np_fail(err, NP_ESYS, errno, "connect the data socket to %s",
			     NP_ADDR_STR(&run->end.peer));
}

/*
 * Count datagrams that the daemon received before this socket existed (np_handed), and answer
 * requests. If they end the test, shut down the socket: it then returns 0 bytes, as an end mark.
 */
static void
take_early(const struct np_run *run, int fd, const struct np_handed *h)
{
	bool answers = run->plan->pattern->transactions;
	struct np_worker *w = run->worker;
	uint64_t done;

	for (uint32_t i = 0; answers && i < h->early; i++) {
		if (w->id.width > 0 && i < NP_EARLY_IDS) {
			memcpy(w->send_ring.slots->buf + w->id.at, h->id[i], w->id.width);
		}
		(void)!send(fd, w->send_ring.slots->buf, w->send_size, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	if (answers) {
		done = np_add(&w->count->transactions, h->early);
	} else {
		np_add(&w->count->receives, h->early);
		done = np_add(&w->count->received, h->early_bytes);
		w->conn->received += h->early_bytes;
	}
	if (h->ended || done >= w->budget) {
		(void)shutdown(fd, SHUT_RD);
	}
}

/* np_endpoint_take() from the daemon (np_handed). -1: its errno, or ENOTCONN: it has ended. */
static int
take_handed(struct np_run *run, int flags)
{
	struct np_err err;
	struct np_handed h;
	int fd;
	ssize_t n = np_fds_receive(run->end.listen_fd, &h, sizeof(h), &fd, 1, 0);

	if (n < 0) {
		return -1;
	}
	if (n != (ssize_t)sizeof(h) || fd < 0) {
		np_fds_close(fd);
		errno = n == (ssize_t)sizeof(h) && h.error != 0 ? h.error : ENOTCONN;
		return -1;
	}
	if (np_sockopts_apply(&run->end.opts, fd, &err) != NP_OK) {
		close(fd);
		errno = err.sys;
		return -1;
	}
	mark_packets(run, fd);
	if (h.blocks != ((flags & SOCK_NONBLOCK) == 0)) {
		np_sock_block(fd, !h.blocks);
	}
	/* In connection tests the client does not wait for this answer (NP_TOKEN_PASSED). */
	if (run->terms->tokens && !run->plan->pattern->connection_test) {
		np_token_say(fd, NP_TOKEN_TAKEN);
	}
	if (h.early > 0) {
		take_early(run, fd, &h);
	}
	return fd;
}

int
np_endpoint_take(struct np_run *run, int flags)
{
	struct np_addr peer;
	int fd;

	if (np_is_handed(run)) {
		return take_handed(run, flags);
	}
	if (run->end.sources.count == 0) {
		return np_sys_accept(run->end.listen_fd, flags, NULL, NULL);
	}
	peer.len = sizeof(peer.sa);
	fd = np_sys_accept(run->end.listen_fd, flags, &peer.sa, &peer.len);
	if (fd < 0 || np_sources_have(&run->end.sources, &peer)) {
		return fd;
	}
	np_sock_reset(fd); /* from a peer that is not allowed */
	errno = ECONNABORTED;
	return -1;
}

int
np_endpoint_accept(struct np_run *run, struct np_conn *c, struct np_err *err)
{
	while (c->fd < 0 && !np_stopped(run->stop)) {
		c->fd = np_endpoint_take(run, 0);
		if (c->fd < 0 && errno != EINTR && errno != ECONNABORTED) {
			return np_fail(err, NP_ESYS, errno, "accept a data connection on %s",
				       NP_ADDR_STR(&run->end.local));
		}
	}
	return NP_OK;
}
