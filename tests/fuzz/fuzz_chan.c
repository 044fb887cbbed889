/*
 * A peer's bytes in arbitrary pieces: whole messages come out as they went in, be they of 656 or,
 * from old clients, of 256 bytes, or of ours, of a length of their own. The input is a byte (1: an
 * old client may come, 2: the ends have greeted) and pieces, each two bytes of length and that many
 * bytes.
 *
 * The clock stands in for itself: a wait with nothing to read ends at once, as at its deadline.
 */
#undef _FORTIFY_SOURCE /* it would make ppoll() a macro */
#include "tests/fuzz/fuzz.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/chan.h"
#include "wire/tagged.h"

/* In place of libc's. */
int
ppoll(struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask)
{
	return poll(fds, n, 0);
}

struct peer {
	struct np_chan chan;
	const uint8_t *sent; /* all bytes so far, in one piece */
	size_t sent_size, taken;
};

enum { MOST = 1000 };

/* Messages of ours of even types are expected. */
static size_t
most_of(uint32_t type)
{
	return type % 2 == 0 ? MOST : 0;
}

/* A message is there: it is what was sent next. */
static void
take_whole(struct peer *p)
{
	size_t size = p->chan.have;

	must(size == p->chan.due);
	must(p->chan.is_ours || size == NP_FRAME_SIZE || size == NP_OLD_FRAME_SIZE);
	must(!p->chan.is_ours || size <= NP_TAGGED_AT + MOST);
	must(p->taken + size <= p->sent_size);
	must(memcmp(np_chan_message(&p->chan), p->sent + p->taken, size) == 0);
	p->taken += size;
}

/* Takes what there is. Returns false when the channel is of no more use. */
static bool
take(struct peer *p, bool wait)
{
	struct np_err err = { .code = NP_OK };

	for (;;) {
		enum np_chan_state state;

		if (wait) {
			int rc = np_chan_recv(&p->chan, "a message", np_deadline(5 * NP_SEC), NULL,
					      &err);

			state = rc == NP_OK      ? NP_CHAN_WHOLE
				: rc == NP_ETIME ? NP_CHAN_MORE
						 : NP_CHAN_BROKEN;
		} else {
			state = np_chan_read(&p->chan, "a message", &err);
		}
		must(state != NP_CHAN_BROKEN || err.msg[0] != '\0');
		must(p->chan.have <= p->chan.due);
		if (state != NP_CHAN_WHOLE) {
			return state == NP_CHAN_MORE;
		}
		take_whole(p);
	}
}

static void
talk(struct peer *p, int fd, bool wait, const uint8_t *data, size_t size, uint8_t *sent)
{
	bool usable = true;

	while (size >= 2 && usable) {
		size_t n = (size_t)data[0] << 8 | data[1];

		data += 2, size -= 2;
		n = n < size ? n : size;
		must(send(fd, data, n, MSG_NOSIGNAL) == (ssize_t)n);
		memcpy(sent + p->sent_size, data, n);
		p->sent_size += n;
		data += n, size -= n;
		usable = take(p, wait);
	}
	must(shutdown(fd, SHUT_WR) == 0);
	must(!usable || !take(p, wait));
	must(!usable || p->taken + p->chan.have == p->sent_size || p->chan.has_later);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool old = size > 0 && (data[0] & 1) != 0;
	uint8_t *sent = malloc(size + 1);
	struct peer p = { .sent = sent };
	struct np_err err;
	int fd[2];

	must(sent != NULL && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
	must(np_chan_open(&p.chan, fd[1], "the fuzzer", &err) == NP_OK);
	p.chan.may_be_old = old;
	p.chan.most = size > 0 && (data[0] & 2) != 0 ? most_of : NULL;
	if (size > 0 && size < 1 << 16) {
		talk(&p, fd[0], old, data + 1, size - 1, sent);
	}
	close(fd[0]);
	np_chan_close(&p.chan);
	free(sent);
	return 0;
}
