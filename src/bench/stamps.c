#include "bench/stamps.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/lines.h"
#include "base/units.h"
#include "bench/bench.h"
#include "bench/engine/syscall.h"
#include "bench/run.h"

enum {
	SEND_FLAGS = SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_TX_SOFTWARE,
	SOCKET_FLAGS = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE |
		       SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY,
	OPT_ID_TCP = 1 << 16, /* SOF_TIMESTAMPING_OPT_ID_TCP, of Linux 6.2 */
	CONTROL = 512         /* bytes of control messages: an error with an address, and stamps */
};

const char *
np_stamps_why_none(const struct np_plan *p)
{
	if (!p->pattern->ids || !p->transport->stamps) {
		return "only TCP_RR and UDP_RR have stations";
	}
	if (p->flows > 1 || p->burst > 0 || p->rate > 0) {
		return "one transaction has to follow the other (leave out --flows, --rate and -- "
		       "-b)";
	}
	if (p->ramp > 0 ||
	    (p->near.place.engine != NULL && p->near.place.engine != &np_engine_sync)) {
		return "the engine has to be sync";
	}
	if (p->no_control) {
		return "it needs a netserver, which -N leaves out";
	}
	return p->packet_info || p->fast_open ? "not with -- -B or -F" : NULL;
}

int
np_stamps_make(struct np_worker *w, struct np_err *err)
{
	uint32_t every = w->run->plan->stations;

	if (every == 0) {
		return NP_OK;
	}
	w->stamps = np_cache_lines_new(1, sizeof(*w->stamps));
	if (w->stamps == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for the stamps of transactions");
	}
	w->stamps->every = every;
	w->stamps->kept_every = w->stamps->due = every;
	w->codec |= NP_C_STAMPS;
	return NP_OK;
}

int
np_stamps_open(const struct np_run *run, struct np_err *err)
{
	int fd = run->conn->fd, flags = SOCKET_FLAGS | OPT_ID_TCP, ahead = 0;

	if (run->plan->transport->connected &&
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)) == 0) {
		return NP_OK; /* the kernel counts bytes from here on */
	}
	flags = SOCKET_FLAGS; /* it counts from the first unacknowledged byte on */
	if (run->plan->transport->connected && ioctl(fd, SIOCOUTQ, &ahead) == 0) {
		run->worker->stamps->ahead = (uint32_t)ahead;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)) != 0) {
		return np_fail(err, NP_EUNSUP, errno, "SO_TIMESTAMPING, for --stations");
	}
	return NP_OK;
}

/*
 * The software stamp in the control messages of a receive; 0: none. From the error queue (info not
 * NULL) also where it was taken, *info (SCM_TSTAMP_*), and the *key of the send.
 */
static int64_t
stamp_in(struct msghdr *h, uint32_t *info, uint32_t *key)
{
	struct sock_extended_err e;
	struct timespec three[3];
	int64_t at = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPING &&
		    c->cmsg_len >= CMSG_LEN(sizeof(three))) {
			memcpy(three, CMSG_DATA(c), sizeof(three));
			at = (int64_t)np_clock_ns(three); /* [0] is the software stamp */
		} else if (info != NULL && c->cmsg_len >= CMSG_LEN(sizeof(e)) &&
			   ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
			    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))) {
			memcpy(&e, CMSG_DATA(c), sizeof(e));
			if (e.ee_origin == SO_EE_ORIGIN_TIMESTAMPING) {
				*info = e.ee_info;
				*key = e.ee_data;
			}
		}
	}
	return at;
}

/* Read the stamps of the last send from the error queue, as far as they are there. */
static void
read_send_stamps(struct np_stamps *s, int fd)
{
	_Alignas(struct cmsghdr) char control[CONTROL];

	while (s->current.at[NP_STAMP_QUEUE] == 0 || s->current.at[NP_STAMP_GONE] == 0) {
		struct msghdr h = { .msg_control = control, .msg_controllen = sizeof(control) };
		uint32_t info = UINT32_MAX, key = 0;
		int64_t at;

		if (recvmsg(fd, &h, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
			return;
		}
		at = stamp_in(&h, &info, &key);
		if (key == s->key && (info == SCM_TSTAMP_SCHED || info == SCM_TSTAMP_SND)) {
			s->current.at[info == SCM_TSTAMP_SND ? NP_STAMP_GONE : NP_STAMP_QUEUE] = at;
		}
	}
}

/* Finish the transaction that is in progress: count its stamps, and keep it if it has all. */
static void
finish_one(struct np_stamps *s, int fd)
{
	bool whole = true;

	if (!s->in_progress) {
		return;
	}
	s->in_progress = false;
	if (s->current.at[NP_STAMP_SEND] != 0) {
		read_send_stamps(s, fd);
	}
	for (int i = 0; i < NP_STAMPS; i++) {
		s->came[i] += s->current.at[i] != 0;
		whole = whole && s->current.at[i] != 0;
	}
	if (!whole || s->current.number % s->kept_every != 0) {
		return;
	}
	if (s->count == NP_STAMPS_KEPT && s->kept_every <= INT64_MAX) {
		/* Full: keep every other one from now on, perhaps not this one. */
		s->kept_every *= 2;
		s->count = 0;
		for (size_t i = 0; i < NP_STAMPS_KEPT; i++) {
			if (s->kept[i].number % s->kept_every == 0) {
				s->kept[s->count++] = s->kept[i];
			}
		}
	}
	if (s->count < NP_STAMPS_KEPT && s->current.number % s->kept_every == 0) {
		s->kept[s->count++] = s->current;
	}
}

static bool
is_due(const struct np_stamps *s, uint64_t number)
{
	return number >= s->due && number % s->every == 0; /* `due` saves most divisions */
}

/* Begin the stamps of the transaction with that number. */
static void
begin_one(struct np_stamps *s, uint64_t number)
{
	memset(&s->current, 0, sizeof(s->current));
	s->current.number = number;
	s->due = number + s->every;
	s->in_progress = true;
	s->asked++;
}

/* Send a message, and ask the kernel for stamps of it. */
static ssize_t
send_stamped(struct np_worker *w, const struct np_conn *c, char *buf)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(uint32_t))] = { 0 };
	struct iovec v = { .iov_base = buf, .iov_len = w->send_size };
	struct msghdr h = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *m = CMSG_FIRSTHDR(&h);
	struct np_stamps *s = w->stamps;
	uint32_t flags = SEND_FLAGS;
	ssize_t n;

	memcpy(&h.msg_name, &w->to, sizeof(h.msg_name)); /* not const, but only read */
	h.msg_namelen = w->to_len;
	m->cmsg_level = SOL_SOCKET;
	m->cmsg_type = SO_TIMESTAMPING;
	m->cmsg_len = CMSG_LEN(sizeof(flags));
	memcpy(CMSG_DATA(m), &flags, sizeof(flags));
	/* The key: in TCP the number of the last byte, in UDP the count of stamped datagrams. */
	s->key = w->run->plan->transport->connected
		     ? s->ahead + (uint32_t)((s->current.number + 1) * w->send_size - 1)
		     : s->sent++;
	s->current.at[NP_STAMP_SEND] = (int64_t)np_clock(CLOCK_REALTIME);
	n = sendmsg(c->fd, &h, MSG_NOSIGNAL);
	if (n == (ssize_t)w->send_size) {
		read_send_stamps(s, c->fd); /* while the far end works */
	} else { /* no stamps of a send that failed or was short; one interrupted is repeated */
		s->in_progress = s->in_progress && n < 0 && errno == EINTR;
		s->current.at[NP_STAMP_SEND] = 0;
	}
	return n;
}

ssize_t
np_stamps_send(struct np_worker *w, struct np_conn *c, char *buf)
{
	struct np_stamps *s = w->stamps;
	bool leads = w->run->plan->role == NP_LEAD;

	/* A leader begins the stamps, unless it repeats an interrupted send. */
	if (leads && !(s->in_progress && s->current.number == c->number)) {
		finish_one(s, c->fd);
		if (is_due(s, c->number)) {
			begin_one(s, c->number);
		}
	}
	if (s->in_progress && s->current.at[NP_STAMP_SEND] == 0) {
		return send_stamped(w, c, buf);
	}
	return np_sys_sendto(c->fd, buf, w->send_size, w->to, w->to_len);
}

/* Receive with the kernel's stamp of the last packet, then read the clock. */
static ssize_t
recv_stamped(struct np_worker *w, const struct np_conn *c, char *buf, size_t size,
	     struct np_stamped *into)
{
	_Alignas(struct cmsghdr) char control[CONTROL];
	struct iovec v = { .iov_base = buf, .iov_len = size };
	struct msghdr h = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_name = w->from,
			    .msg_namelen = w->from != NULL ? w->from_len : 0,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(c->fd, &h, 0);

	if (n > 0) {
		into->at[NP_STAMP_RECV] = (int64_t)np_clock(CLOCK_REALTIME);
		into->at[NP_STAMP_CAME] = stamp_in(&h, NULL, NULL);
	}
	w->from_len = n >= 0 ? h.msg_namelen : w->from_len;
	return n;
}

/* Receive a request, with stamps if the number that is expected next should have them. */
static ssize_t
recv_request(struct np_worker *w, struct np_conn *c, char *buf)
{
	struct np_stamps *s = w->stamps;
	bool stamped = is_due(s, s->next);
	struct np_stamped got = { .number = 0 };
	ssize_t n = stamped ? recv_stamped(w, c, buf, w->recv_size, &got)
			    : np_sys_recvfrom(c->fd, buf, w->recv_size, w->from, &w->from_len);
	uint64_t number;

	if (n <= 0) {
		return n;
	}
	finish_one(s, c->fd);
	number = s->next;
	if (w->id.width > 0 && (size_t)n >= w->id.at + w->id.width) {
		/* Its number is near the expected one; a narrow id has only the lowest byte. */
		uint32_t off = (uint32_t)np_id_read(w->id, buf) - (uint32_t)number;

		number += (uint64_t)(w->id.width == NP_IDS_WIDE ? (int32_t)off : (int8_t)off);
	}
	s->next = number + 1;
	s->due = np_min(s->due, number + s->every); /* a stray one may have been far ahead */
	if (is_due(s, number)) {
		begin_one(s, number);
		/* Not if it was received without stamps, or a datagram is too short. */
		s->in_progress =
		    stamped && ((size_t)n >= w->whole || w->run->plan->transport->connected);
	}
	if (s->in_progress) {
		s->current.at[NP_STAMP_CAME] = got.at[NP_STAMP_CAME];
		s->current.at[NP_STAMP_RECV] = got.at[NP_STAMP_RECV];
	}
	return n;
}

ssize_t
np_stamps_recv(struct np_worker *w, struct np_conn *c, char *buf)
{
	struct np_stamps *s = w->stamps;
	ssize_t n;

	if (w->run->plan->role == NP_FOLLOW) {
		return recv_request(w, c, buf);
	}
	if (!s->in_progress) {
		return np_sys_recvfrom(c->fd, buf, w->recv_size, w->from, &w->from_len);
	}
	n = recv_stamped(w, c, buf, w->recv_size, &s->current);
	/* A datagram that is too short is no response. */
	s->in_progress = n < 0 || (size_t)n >= w->whole || w->run->plan->transport->connected;
	return n;
}

ssize_t
np_stamps_recv_rest(struct np_worker *w, struct np_conn *c, char *buf, size_t size)
{
	return w->stamps->in_progress ? recv_stamped(w, c, buf, size, &w->stamps->current)
				      : np_sys_recv(c->fd, buf, size, 0);
}

void
np_stamps_forget(struct np_stamps *s)
{
	if (s != NULL) {
		s->count = 0;
		s->asked = s->in_progress;
		s->kept_every = s->every;
		memset(s->came, 0, sizeof(s->came));
	}
}

void
np_stamps_end(struct np_worker *w)
{
	if (w->stamps != NULL) {
		/* A request without a complete response counts at neither end. */
		bool is_half = w->stamps->in_progress &&
			       (w->stamps->current.at[NP_STAMP_RECV] == 0 || w->conn->part > 0);

		w->stamps->asked -= is_half;
		w->stamps->in_progress = w->stamps->in_progress && !is_half;
		finish_one(w->stamps, w->conn->fd);
	}
}

/* A transaction in a bag is a row of numbers. */
enum { ROW = NP_STAMPS + 1 };
_Static_assert(sizeof(struct np_stamped) == ROW * sizeof(int64_t), "a row, without gaps");

void
np_stamps_put(const struct np_run *run, struct np_bag *into)
{
	const struct np_stamps *s = run->worker->stamps;

	if (s != NULL && run->plan->role == NP_FOLLOW) {
		np_bag_ints(into, s->counts, ROW, "stamps.counts");
		np_bag_ints(into, (const int64_t *)s->kept, s->count * ROW, "stamps.rows");
	}
}

/* Find a list of rows whose values are small enough to be subtracted without overflow. */
static bool
find_rows(const struct np_bag *b, const char *name, size_t most, struct np_bag_item *item)
{
	if (!np_bag_find(b, name, item) || item->kind != NP_BAG_INTS || item->count > most * ROW ||
	    item->count % ROW != 0) {
		return false;
	}
	for (size_t i = 0; i < item->count; i++) {
		if (item->ints[i] < 0 || item->ints[i] > INT64_MAX / 4) {
			return false;
		}
	}
	return true;
}

bool
np_stamps_get(const struct np_bag *b, struct np_stamps *into)
{
	struct np_bag_item counts, rows;

	memset(into, 0, sizeof(*into));
	if (!find_rows(b, "stamps.counts", 1, &counts) || counts.count != ROW ||
	    !find_rows(b, "stamps.rows", NP_STAMPS_KEPT, &rows)) {
		return false;
	}
	memcpy(into->counts, counts.ints, sizeof(into->counts));
	into->count = rows.count / ROW;
	if (rows.count > 0) { /* else there is no list to copy from */
		memcpy(into->kept, rows.ints, rows.count * sizeof(rows.ints[0]));
	}
	return true;
}
