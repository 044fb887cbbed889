#include "wire/chan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "wire/tagged.h"

enum {
	OLD_PAUSE_MS = 1000, /* after 256 bytes, shows that they are an old client's message */
	QUOTED = 40          /* bytes of another service */
};

int
np_chan_open(struct np_chan *c, int fd, const char *peer, struct np_err *err)
{
	int flags = fcntl(fd, F_GETFL);

	*c =
	    (struct np_chan){ .fd = fd, .peer = peer, .size = NP_FRAME_SIZE, .due = NP_FRAME_SIZE };
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
		return np_fail(err, NP_ESYS, errno,
			       "control connection to %s: make it non-blocking", peer);
	}
	return NP_OK;
}

void
np_chan_close(struct np_chan *c)
{
	close(c->fd);
	c->fd = -1;
	free(c->ours);
	c->ours = NULL;
	c->room = 0;
	c->is_ours = false;
}

void
np_chan_half_close(struct np_chan *c)
{
	shutdown(c->fd, SHUT_WR);
	c->half_closed = true;
}

const uint8_t *
np_chan_message(const struct np_chan *c)
{
	return c->is_ours ? c->ours : c->in;
}

/* Is an error of a socket the fault of the peer or the network (NP_EPEER), or of this machine? */
static enum np_errc
fault_of(int sys)
{
	switch (sys) {
	case ECONNRESET:
	case ECONNABORTED:
	case ECONNREFUSED:
	case EPIPE:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case EHOSTDOWN:
	case ENETUNREACH:
	case ENETDOWN:
	case EPROTO:
		return NP_EPEER;
	default:
		return NP_ESYS;
	}
}

/* Write ": " and the incomplete message, often of another service or an old netperf; "" if none. */
static void
explain_fragment(const struct np_chan *c, char *out, size_t size)
{
	out[0] = '\0';
	if (c->have > 0 && !c->is_ours && np_frame_is_text(c->in, c->have)) {
		size_t n = 0;

		/* Quote at most the first line of what another service sent. */
		while (n < QUOTED && n < c->have && c->in[n] >= ' ' && c->in[n] <= '~') {
			n++;
		}
		snprintf(out, size,
			 ": the peer sent %zu bytes that are not a netperf message (\"%.*s\")",
			 c->have, (int)n, (const char *)c->in);
	} else if (c->have > 0 && !c->is_ours && c->have % NP_OLD_FRAME_SIZE == 0) {
		snprintf(out, size, ": %zu of %d bytes came (is it netperf 2.5.0 or older?)",
			 c->have, NP_FRAME_SIZE);
	} else if (c->have > 0) {
		snprintf(out, size, ": %zu of %zu bytes came", c->have, c->due);
	}
}

/* Report that the connection is lost: sys is the errno, 0 when the peer closed it. */
static int
report_loss(const struct np_chan *c, int sys, const char *what, struct np_err *err)
{
	const char *how = sys == 0 ? "closed by the peer" : "broken";
	enum np_errc code = sys == 0 ? NP_EPEER : fault_of(sys);
	char fragment[200];

	explain_fragment(c, fragment, sizeof(fragment));
	return np_fail(err, code, sys, "control connection to %s: %s while waiting for %s%s",
		       c->peer, how, what, fragment);
}

/* The head of a message was read: set how many bytes are due, and make room if it is ours. */
static int
set_due(struct np_chan *c, struct np_err *err)
{
	struct np_head head = np_frame_head(c->in);
	size_t length = (uint32_t)head.word, most;
	uint8_t *larger;

	if (!np_is_ours(head.code)) {
		c->due = c->size;
		return NP_OK;
	}
	most = c->most(head.code);
	if (most == 0 || length > most) {
		return np_fail(err, NP_EPEER, EINVAL,
			       "control connection to %s: a message of type 0x%08x with %zu bytes, "
			       "where at most %zu are expected",
			       c->peer, head.code, length, most);
	}
	c->due = NP_TAGGED_AT + length;
	if (c->due > c->room) {
		larger = realloc(c->ours, c->due);
		if (larger == NULL) {
			return np_fail(err, NP_ESYS, ENOMEM, "memory for a message of %s", c->peer);
		}
		c->ours = larger;
		c->room = c->due;
	}
	memcpy(c->ours, c->in, NP_TAGGED_AT);
	c->is_ours = true;
	return NP_OK;
}

/* Read the bytes that are due, as far as they have arrived. */
static enum np_chan_state
read_due(struct np_chan *c, const char *what, struct np_err *err)
{
	while (c->have < c->due) {
		uint8_t *into = c->is_ours ? c->ours : c->in;
		ssize_t n = recv(c->fd, into + c->have, c->due - c->have, 0);

		if (n > 0) {
			c->have += (size_t)n;
		} else if (n == 0 && c->have == 0) {
			return NP_CHAN_CLOSED;
		} else if (n == 0) {
			report_loss(c, 0, what, err);
			return NP_CHAN_BROKEN;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			return NP_CHAN_MORE;
		} else if (errno != EINTR) {
			report_loss(c, errno, what, err);
			return NP_CHAN_BROKEN;
		}
	}
	return NP_CHAN_WHOLE;
}

/* Read a message as far as it has arrived, beginning a new one after a complete one. */
static enum np_chan_state
read_message(struct np_chan *c, const char *what, struct np_err *err)
{
	enum np_chan_state state;

	if (c->have == c->due || c->have == 0) {
		/* Of a message that may be ours, the head alone is due: it holds the length. */
		c->have = 0;
		c->is_ours = false;
		c->due = c->most != NULL ? NP_TAGGED_AT : c->size;
	}
	if (c->has_later && c->have == 0) {
		memcpy(c->in, c->later, sizeof(c->later));
		c->have = sizeof(c->later);
		c->has_later = false;
	}
	state = read_due(c, what, err);
	if (state != NP_CHAN_WHOLE || c->most == NULL || c->is_ours || c->due != NP_TAGGED_AT) {
		return state;
	} /* else it is the head alone, which has the length */
	return set_due(c, err) == NP_OK ? read_due(c, what, err) : NP_CHAN_BROKEN;
}

/* Sleep. Returns 1 when the descriptor is ready, 0 at the deadline, -1 with errno otherwise. */
static int
wait_for(const struct np_chan *c, short events, uint64_t deadline, const sigset_t *sigmask)
{
	struct pollfd p = { .fd = c->fd, .events = events };
	struct timespec left;

	return ppoll(&p, 1, np_left(deadline, &left), sigmask);
}

/* The time between two readings of the clock in seconds, rounded to milliseconds, for messages. */
static double
seconds_between(uint64_t from, uint64_t to)
{
	uint64_t ms = (np_excess(to, from) + NP_MSEC / 2) / NP_MSEC;

	return (double)ms / 1000.0;
}

/* Could these begin a message of a client before 2.6? Codes up to SYSINFO's; never OMNI first. */
static bool
begins_old(const uint8_t *bytes, bool first)
{
	uint32_t code = np_frame_head(bytes).code;

	return code == NP_OMNI ? !first : code != 0 && code <= NP_SYSINFO;
}

/* Could the bytes read be one old (short) message, or a passphrase and the request after it? */
static bool
could_be_old(const struct np_chan *c)
{
	if (!c->may_be_old || c->have % NP_OLD_FRAME_SIZE != 0 || c->have == 0 ||
	    !begins_old(c->in, true)) {
		return false;
	}
	return c->have == NP_OLD_FRAME_SIZE || begins_old(c->in + NP_OLD_FRAME_SIZE, false);
}

/* The peer is an old client: from now on messages are short. */
static void
become_old(struct np_chan *c)
{
	c->has_later = c->have > NP_OLD_FRAME_SIZE;
	memcpy(c->later, c->in + NP_OLD_FRAME_SIZE, sizeof(c->later));
	memset(c->in + NP_OLD_FRAME_SIZE, 0, sizeof(c->in) - NP_OLD_FRAME_SIZE);
	c->size = c->have = c->due = NP_OLD_FRAME_SIZE;
}

/* A message is whole. NP_EPEER: code 0 shows that the old client is a new one that had paused. */
static int
note_whole(struct np_chan *c, struct np_err *err)
{
	uint32_t code = np_frame_head(np_chan_message(c)).code;

	if (c->size == NP_OLD_FRAME_SIZE && c->first != 0 && code == 0) {
		return np_fail(err, NP_EPEER, 0,
			       "control connection to %s: a message came in parts more than %d ms "
			       "apart, and its beginning looked like an old client's message",
			       c->peer, OLD_PAUSE_MS);
	}
	if (c->first == 0) {
		c->first = code;
	}
	c->may_be_old = false;
	c->since = 0;
	c->begun = 0;
	return NP_OK;
}

uint64_t
np_chan_again(const struct np_chan *c)
{
	return could_be_old(c) ? c->moved + OLD_PAUSE_MS * NP_MSEC : NP_NEVER;
}

enum np_chan_state
np_chan_read(struct np_chan *c, const char *what, struct np_err *err)
{
	size_t had = c->have == c->due ? 0 : c->have; /* of a message that is not whole yet */
	enum np_chan_state state = read_message(c, what, err);

	if (c->have != had || c->moved == 0) {
		c->moved = np_now();
	}
	if (state == NP_CHAN_MORE && np_chan_again(c) <= np_now()) {
		become_old(c);
		state = NP_CHAN_WHOLE;
	}
	if (state == NP_CHAN_WHOLE && note_whole(c, err) != NP_OK) {
		state = NP_CHAN_BROKEN;
	}
	return state;
}

/* When a message's rest is due: rest_ns after its first byte (noted), by the caller's deadline. */
static uint64_t
rest_deadline(struct np_chan *c, uint64_t deadline)
{
	if (c->rest_ns == 0 || c->have == 0) {
		return deadline;
	}
	if (c->begun == 0) {
		c->begun = np_now();
	}
	return np_min(c->begun + c->rest_ns, deadline);
}

/* Wait for more bytes, or until none have come for so long that the peer is an old client. */
static int
wait_more(struct np_chan *c, const char *what, uint64_t deadline, const sigset_t *sigmask,
	  struct np_err *err)
{
	uint64_t until = np_min(np_chan_again(c), deadline);
	int ready = wait_for(c, POLLIN, until, sigmask);
	char fragment[200];
	double waited;

	if (ready > 0 || (ready == 0 && until < deadline)) {
		return NP_OK;
	}
	if (ready < 0) {
		return np_fail(err, NP_ESYS, errno, "control connection to %s: waiting for %s",
			       c->peer, what);
	}
	waited = seconds_between(c->since, deadline);
	c->since = 0;
	explain_fragment(c, fragment, sizeof(fragment));
	return np_fail(err, NP_ETIME, 0, "control connection to %s: %s did not come within %g s%s",
		       c->peer, what, waited, fragment);
}

int
np_chan_recv(struct np_chan *c, const char *what, uint64_t deadline, const sigset_t *sigmask,
	     struct np_err *err)
{
	char fragment[200];

	/* A wait that a signal interrupted goes on: the time it took counts from its beginning. */
	if (c->since == 0) {
		c->since = np_now();
	}
	for (;;) {
		switch (np_chan_read(c, what, err)) {
		case NP_CHAN_WHOLE:
			return NP_OK;
		case NP_CHAN_CLOSED:
			return report_loss(c, 0, what, err);
		case NP_CHAN_BROKEN:
			return (int)err->code;
		case NP_CHAN_MORE:
			break;
		}
		/* To a client: both words are text, as of another service: no message follows. */
		if (c->rest_ns != 0 && c->have >= 8 && !c->is_ours &&
		    np_frame_is_text(c->in, c->have)) {
			explain_fragment(c, fragment, sizeof(fragment));
			return np_fail(err, NP_EPEER, 0,
				       "control connection to %s%s (is netserver at another port? "
				       "see -p)",
				       c->peer, fragment);
		}
		if (wait_more(c, what, rest_deadline(c, deadline), sigmask, err) != NP_OK) {
			return err->code;
		}
	}
}

int
np_chan_send(struct np_chan *c, const uint8_t *message, uint64_t deadline, struct np_err *err)
{
	struct np_head head = np_frame_head(message);
	bool is_ours = c->most != NULL && np_is_ours(head.code);
	size_t size = is_ours ? NP_TAGGED_AT + (size_t)(uint32_t)head.word : c->size, sent = 0;
	uint64_t since = np_now();

	while (sent < size) {
		ssize_t n = send(c->fd, message + sent, size - sent, MSG_NOSIGNAL);
		int ready;

		if (n >= 0) {
			sent += (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
			return np_fail(err, fault_of(errno), errno,
				       "control connection to %s: send", c->peer);
		}
		ready = errno != EINTR ? wait_for(c, POLLOUT, deadline, NULL) : 1;
		if (ready == 0) {
			return np_fail(err, NP_ETIME, 0,
				       "control connection to %s: the peer did not take a message "
				       "within %g s",
				       c->peer, seconds_between(since, deadline));
		}
		if (ready < 0 && errno != EINTR) {
			return np_fail(err, NP_ESYS, errno,
				       "control connection to %s: waiting to send", c->peer);
		}
	}
	return NP_OK;
}
