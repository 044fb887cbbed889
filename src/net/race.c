#include "net/race.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/text.h"
#include "net/sock.h"

struct attempt {
	const struct np_addr *to;
	int fd;  /* -1: not begun, or over */
	int sys; /* errno; 0: not over */
};

struct race {
	const struct np_addrs *local;
	struct attempt at[NP_ADDRS_MAX];
	size_t count, begun;
	bool alone; /* one attempt at a time */
	const struct np_race *out;
	uint64_t deadline, next_ns; /* next_ns: when the next attempt is due */
};

/* Does a local address have the family of `to`? Without local addresses, any will do. */
static bool
may_reach(const struct np_addrs *local, const struct np_addr *to)
{
	bool may = local == NULL || local->count == 0;

	for (size_t i = 0; !may && i < local->count; i++) {
		may = np_addr_same_family(&local->at[i], to);
	}
	return may;
}

/* The next address from *i on, of the first's family or not, that `local` may reach. NULL: none. */
static const struct np_addr *
next_of(const struct np_addrs *remote, const struct np_addrs *local, bool first_family, size_t *i)
{
	while (*i < remote->count) {
		const struct np_addr *a = &remote->at[(*i)++];

		if (np_addr_same_family(a, &remote->at[0]) == first_family && may_reach(local, a)) {
			return a;
		}
	}
	return NULL;
}

/* Start connecting. Returns a descriptor, or -errno. */
static int
begin_from(const struct np_addr *to, const struct np_addr *from, const char *device)
{
	int fd = socket(to->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc;

	if (fd < 0) {
		return -errno;
	}
	/* Fails only for families without segments. */
	setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &(int){ NP_RACE_MSS }, sizeof(int));
	rc = device != NULL && device[0] != '\0'
		 ? setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, (socklen_t)strlen(device))
		 : 0;
	if (rc == 0 && from != NULL) {
		rc = bind(fd, (const struct sockaddr *)&from->sa, from->len);
	}
	if (rc == 0) {
		rc = connect(fd, (const struct sockaddr *)&to->sa, to->len);
	}
	if (rc != 0 && errno != EINPROGRESS) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/* End an attempt with that errno. */
static void
give_up(struct attempt *a, int sys)
{
	np_fds_close(a->fd);
	a->fd = -1;
	a->sys = sys;
}

static bool
any_pending(const struct race *r)
{
	for (size_t i = 0; i < r->begun; i++) {
		if (r->at[i].fd >= 0) {
			return true;
		}
	}
	return false;
}

/* Begin the next attempt, from the first local address that works, and say when another is due. */
static void
begin_next(struct race *r, uint64_t now)
{
	struct attempt *a = &r->at[r->begun];
	uint64_t left_ns = r->deadline > now ? r->deadline - now : 0;
	size_t count = r->local != NULL ? r->local->count : 0;

	for (size_t i = 0; i < r->begun && r->alone; i++) {
		if (r->at[i].fd >= 0) { /* it has the local port, and its time is over */
			give_up(&r->at[i], ETIMEDOUT);
		}
	}
	r->next_ns = now + (r->alone ? left_ns / (r->count - r->begun) : NP_RACE_GAP_MS * NP_MSEC);
	r->begun++;
	a->fd = count == 0 ? begin_from(a->to, NULL, r->out->device) : -EADDRNOTAVAIL;
	for (size_t i = 0; i < count && a->fd < 0; i++) {
		if (np_addr_same_family(&r->local->at[i], a->to)) {
			a->fd = begin_from(a->to, &r->local->at[i], r->out->device);
		}
	}
	if (a->fd < 0) {
		give_up(a, -a->fd);
	}
}

/* Wait for the current attempts. Returns the connected one, or NULL. */
static struct attempt *
await_any(struct race *r)
{
	uint64_t until = r->begun < r->count && r->next_ns < r->deadline ? r->next_ns : r->deadline;
	struct pollfd p[NP_ADDRS_MAX];
	uint64_t tick = r->out->tick != NULL ? np_deadline(NP_RACE_TICK_MS * NP_MSEC) : NP_NEVER;
	struct timespec left;
	int ready;

	for (size_t i = 0; i < r->begun; i++) {
		p[i] = (struct pollfd){ .fd = r->at[i].fd, .events = POLLOUT };
	}
	ready = ppoll(p, (nfds_t)r->begun, np_left(tick < until ? tick : until, &left), NULL);
	if (r->out->tick != NULL) {
		r->out->tick(r->out->ctx);
	}
	if (ready <= 0) {
		return NULL;
	}
	for (size_t i = 0; i < r->begun; i++) {
		int sys;

		if (p[i].revents == 0) {
			continue;
		}
		sys = np_sock_int(r->at[i].fd, SOL_SOCKET, SO_ERROR); /* -1: it cannot be read */
		if (sys == 0) {
			return &r->at[i];
		}
		give_up(&r->at[i], sys > 0 ? sys : EIO);
	}
	return NULL;
}

/* Connect in turn, when due (RFC 8305) or all before failed. Returns the connected one, or NULL. */
static struct attempt *
run(struct race *r)
{
	struct attempt *won = NULL;

	while (won == NULL) {
		uint64_t now = np_now();
		/* The first one always: np_race_connect() reports an attempt's error. */
		bool more = r->begun < r->count && (r->begun == 0 || now < r->deadline);

		if (more && (!any_pending(r) || now >= r->next_ns)) {
			begin_next(r, now);
		} else if (!any_pending(r)) {
			break;
		} else {
			won = await_any(r);
			if (won == NULL && now >= r->deadline) {
				break;
			}
		}
	}
	return won;
}

int
np_race_connect(const struct np_addrs *remote, const struct np_addrs *local, uint64_t deadline,
		struct np_race *out, struct np_err *err)
{
	struct race r = { .local = local, .deadline = deadline, .out = out };
	struct attempt *won;
	size_t at[2] = { 0, 0 }, len = 0;

	*out = (struct np_race){ .tick = out->tick, .ctx = out->ctx, .device = out->device };
	if (remote->count == 0) {
		np_fail(err, NP_ECONTROL, EADDRNOTAVAIL, "connect to nowhere");
		return -1;
	}
	r.alone = local != NULL && local->count > 0 && np_addr_port(&local->at[0]) != 0;
	/* Alternate families, so that a broken one does not delay the other. */
	for (size_t turn = 0; at[0] < remote->count || at[1] < remote->count; turn++) {
		const struct np_addr *a = next_of(remote, local, turn % 2 == 0, &at[turn % 2]);

		if (a != NULL) {
			r.at[r.count++] = (struct attempt){ .to = a, .fd = -1 };
		}
	}
	if (r.count == 0) {
		np_fail(err, NP_ECONTROL, EAFNOSUPPORT, "connect to another family's address");
		return -1;
	}
	won = run(&r);
	/* Close the others, and describe their errors; one that was only slower has none. */
	for (size_t i = 0; i < r.begun; i++) {
		struct attempt *a = &r.at[i];

		if (a == won) {
			continue;
		}
		if (a->fd >= 0) {
			give_up(a, ETIMEDOUT);
		}
		len = np_text_add(out->others, NP_RACE_TEXT, len, "%s%s: %s", len > 0 ? "; " : "",
				  NP_HOST_STR(a->to),
				  won != NULL && a->sys == ETIMEDOUT ? "no answer"
								     : strerror(a->sys));
	}
	if (won != NULL) {
		out->used = *won->to;
		return won->fd;
	}
	np_fail(err, NP_ECONTROL, r.at[r.begun - 1].sys, "connect to %s",
		NP_ADDR_STR(r.at[r.begun - 1].to));
	return -1;
}
