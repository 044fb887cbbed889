/*
 * Whole messages over a connected stream descriptor, which becomes non-blocking; only functions
 * with a deadline (base/clock.h) block. Messages are netperf's, all of one size, and, between ends
 * that have greeted each other, ours (wire/tagged.h), which begin with type and length.
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
	uint8_t in[NP_FRAME_SIZE]; /* the netperf message being read, zeros after a short one */
	size_t have, due; /* bytes read; bytes at which it, or its head alone, is complete */
	uint64_t since;   /* np_now() when np_chan_recv() began to wait; 0: no wait */
	uint64_t moved;   /* np_now() when np_chan_read() last read a part of it */

	/* For a client: how long np_chan_recv() waits for the rest of a message, as a peer may take
	 * long to begin an answer, but not to finish it. 0: until the deadline. */
	uint64_t rest_ns;
	uint64_t begun; /* when the first byte of this message was seen; 0: none has come */

	bool half_closed; /* by np_chan_half_close(): nothing more can be sent */

	/* May the peer be an old client, with messages of NP_OLD_FRAME_SIZE bytes? A daemon sets it
	 * after np_chan_open(); the first message clears it. 256 bytes that begin like an old
	 * request, with nothing after them for a second, show one. */
	bool may_be_old;
	uint32_t first; /* code of the first message; 0: none has come */

	/* Set after a greeting: how many bytes of fields a message of ours with this type may have;
	 * 0: none is expected. NULL: only netperf's messages are. */
	size_t (*most)(uint32_t type);
	bool is_ours;  /* the message being read is one of ours, and is in `ours` */
	uint8_t *ours; /* a buffer that grows with the largest message of ours; NULL: none yet */
	size_t room;   /* its size */
	uint8_t later[NP_OLD_FRAME_SIZE]; /* an old client's next message, read with the first */
	bool has_later;
};

enum np_chan_state {
	NP_CHAN_MORE,   /* the message is incomplete */
	NP_CHAN_WHOLE,  /* np_chan_message() is complete */
	NP_CHAN_CLOSED, /* the peer closed between two messages; err is left alone */
	NP_CHAN_BROKEN  /* closed within a message, reset, unreachable: err says which */
};

/* Take over a connected socket. NP_ESYS: it can't be non-blocking. err must not be NULL. */
int np_chan_open(struct np_chan *c, int fd, const char *peer, struct np_err *err);

/* Close the connection and free its buffer. */
void np_chan_close(struct np_chan *c);

/* Tell the peer that this end sends nothing more. What it still sends can be received. */
void np_chan_half_close(struct np_chan *c);

/* The message just read: a netperf frame, or one of ours with its head. */
const uint8_t *np_chan_message(const struct np_chan *c);

/*
 * Read without waiting; `what` as below. After NP_CHAN_WHOLE the next call starts a new message,
 * which may have arrived already: call again before sleeping. If the peer is another service, err
 * quotes it.
 */
enum np_chan_state np_chan_read(struct np_chan *c, const char *what, struct np_err *err);

/* When to read again after NP_CHAN_MORE without new bytes (an old client?). NP_NEVER: no need. */
uint64_t np_chan_again(const struct np_chan *c);

/*
 * Wait for one whole message; `what` names it in errors ("the test results"). sigmask: for
 * ppoll(2); NULL: unchanged. NP_ETIME at the deadline; NP_EPEER if the connection ended; NP_ESYS
 * with EINTR after a signal (call again to go on waiting: nothing is lost).
 */
int np_chan_recv(struct np_chan *c, const char *what, uint64_t deadline, const sigset_t *sigmask,
		 struct np_err *err);

/*
 * Send one whole message, a frame of NP_FRAME_SIZE or one of ours, without SIGPIPE or interruption
 * by signals. An old client gets the beginning of a frame. NP_ETIME, NP_EPEER, or NP_ESYS for a
 * fault of this machine. After a failure don't send again: a part may have been sent.
 */
int np_chan_send(struct np_chan *c, const uint8_t *message, uint64_t deadline, struct np_err *err);

#endif
