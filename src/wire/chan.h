/*
 * Whole messages over a connected stream descriptor, with absolute deadlines (base/clock.h). The
 * descriptor is made non-blocking; nothing here blocks but the two functions that take a deadline.
 *
 * Messages are netperf's, all of one size. Two ends that have greeted each other exchange messages
 * of ours as well (wire/tagged.h), which begin with their type and their length.
 */
#ifndef NP_WIRE_CHAN_H
#define NP_WIRE_CHAN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/msg.h"

enum { NP_OLD_FRAME_SIZE = 256 }; /* bytes of a message of netperf 2.5.0 and older */

struct np_chan {
	int fd;
	const char *peer;          /* for messages: "127.0.0.1 port 12865"; the caller's */
	size_t size;               /* bytes of netperf's messages, in both directions */
	uint8_t in[NP_FRAME_SIZE]; /* netperf's message being read, whole when have is due; then
				      zeros */
	size_t have, due;
	uint64_t since; /* when np_chan_recv() began to wait for it; 0: it isn't waiting */
	uint64_t moved; /* when np_chan_read() last found something of it */

	/*
	 * How long the rest of a message may take np_chan_recv() once its first byte has come, so
	 * that a long wait for an answer does not allow a slow message. 0: until the deadline. For
	 * the caller to set.
	 */
	uint64_t rest_ns;
	uint64_t begun; /* when the first byte was seen; 0: none was */

	/*
	 * May the first message turn out to be of NP_OLD_FRAME_SIZE, and size with it? For daemons:
	 * set after np_chan_open(), cleared by the first message. When 256 bytes have come that
	 * begin like an old client's request, and nothing more for a second, they are one.
	 */
	bool may_be_old;
	uint32_t first; /* code of the first message; 0: none came */

	/*
	 * How many bytes of fields a message of ours of that type may have; 0: such a message is
	 * not expected. The caller sets it when both ends have greeted each other. NULL: all
	 * messages are netperf's.
	 */
	size_t (*most)(uint32_t type);
	bool is_ours;  /* the message being read is one of ours, in `ours` */
	uint8_t *ours; /* room for the largest that has come; NULL: none has */
	size_t room;
	uint8_t later[NP_OLD_FRAME_SIZE]; /* an old client's next message, read too early */
	bool has_later;
};

enum np_chan_state {
	NP_CHAN_MORE,   /* not whole yet */
	NP_CHAN_WHOLE,  /* c->in holds a message */
	NP_CHAN_CLOSED, /* the peer closed between two messages; err is left alone */
	NP_CHAN_BROKEN  /* closed within a message, reset, unreachable: err says which */
};

/*
 * Take over a connected socket. NP_ESYS when it can't be made non-blocking. Here and below err
 * must not be NULL.
 */
int np_chan_open(struct np_chan *c, int fd, const char *peer, struct np_err *err);

/* Close the connection, and free what is held for it. */
void np_chan_close(struct np_chan *c);

/* The message that has come: a frame of netperf's, or one of ours with its head. */
const uint8_t *np_chan_message(const struct np_chan *c);

/*
 * Take what is there without waiting. After NP_CHAN_WHOLE the next call starts a new message, and
 * another may be there already: call again before sleeping. A peer that is another service shows in
 * err: what it sent is quoted.
 */
enum np_chan_state np_chan_read(struct np_chan *c, struct np_err *err);

/*
 * After NP_CHAN_MORE: when to call np_chan_read() again though nothing comes, since what is there
 * may be all of an old client's message; NP_NEVER.
 */
uint64_t np_chan_again(const struct np_chan *c);

/*
 * Wait for one whole message, `what` names it in errors ("the test results"). While there is
 * nothing to read, signals of the program are let in as sigmask says (ppoll(2)); NULL: as they are.
 * NP_OK; NP_ETIME at the deadline; NP_EPEER closed, cut or reset; NP_ESYS with err->sys EINTR when
 * a signal came (call again to go on waiting: nothing is lost).
 */
int np_chan_recv(struct np_chan *c, const char *what, uint64_t deadline, const sigset_t *sigmask,
		 struct np_err *err);

/*
 * Send one whole message, a frame of NP_FRAME_SIZE or one of ours, before the deadline, never
 * raising SIGPIPE; signals don't interrupt it. An old client gets the beginning of a frame. NP_OK,
 * NP_ETIME, NP_EPEER, or NP_ESYS for a fault of this machine. After anything but NP_OK part of the
 * message may be on its way: the connection is of no more use for sending.
 */
int np_chan_send(struct np_chan *c, const uint8_t *message, uint64_t deadline, struct np_err *err);

#endif
