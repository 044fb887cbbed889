/* A caller: a control connection that has no session yet, and what its first message asks for. */
#ifndef NETSERVER_CALLER_H
#define NETSERVER_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "netserver/admit.h"
#include "netserver/daemon.h"
#include "wire/chan.h"
#include "wire/plan.h"

enum {
	NS_HELLO_S = 5,      /* for a caller's first message, and each one until it is admitted */
	NS_HELLO_MOST_S = 30 /* at most, on a long path */
};

struct ns_caller {
	enum ns_kind kind; /* NS_CALLER */
	struct ns_caller *next;
	struct np_chan chan;
	struct np_addr peer;     /* the client, also behind a proxy; unmapped */
	char text[NP_ADDR_TEXT]; /* peer, for messages */
	uint64_t deadline_ns;    /* of its next message, its turn, or room for its session */
	struct ns_admit admit;
	bool has_asked;             /* a whole message came: it is no data connection */
	bool proxied;               /* its proxy has yet to send the client's address */
	bool full;                  /* a data connection that has no room yet (NS_DATA_FULL) */
	uint64_t quiet_ns;          /* ns_quiet_until() of one_port.h; 0: never */
	struct ns_session *session; /* if full: that it belongs to; NULL: it has ended */
	uint64_t again_ns;          /* if full: when to try again */
	uint64_t held_ns;           /* when its secret may be checked; 0: now */
	struct ns_place place;      /* of peer */
	bool queued;                /* it has asked for a session, and waits for its turn */
	uint64_t room_tried;        /* 1 + d->ended when there was no room; 0: there may be */
	uint64_t lacks_ns;          /* since when there is none */
	unsigned filter;            /* of its session, set when it is queued: ns_filter_of() */
	/* If the daemon allows captures, or the link layer, but not to this one: why. */
	struct np_err uncaptured, unlinked;
};

/* Begin an event about a client: its name, and the client's address and port. */
void ns_event_begin(struct np_event *e, const char *name, const struct np_addr *peer);

/* The deadline of a caller's next message; later on a long path, where TCP may repeat it. */
uint64_t ns_hello_until(int fd, uint64_t now_ns);

/* The initial state of admission: which secret a client on that connection must show, if any. */
struct ns_admit ns_admission_of(const struct ns_daemon *d, int fd);

/*
 * Bits: is the client on this machine (NS_FILTER_UNIX)? Is evidence allowed, and asked for by the
 * first message (NS_FILTER_EVIDENCE)? No later message can ask for it.
 */
unsigned ns_filter_of(const struct ns_daemon *d, const struct ns_caller *c);

/* Does the caller's first message ask for a capture of its test's packets? */
bool ns_wants_capture(const struct ns_caller *c);

/* Is it a greeting (an old client's is too short) that asks for this NP_CAP_*? Sets *hello then. */
bool ns_greeting_asks(const struct ns_caller *c, uint32_t cap, struct np_hello_message *hello);

/* ---- All callers (front.c) ---- */

/* Accept what waits at a listener. */
void ns_front_accept(struct ns_daemon *d, int listener);

/* Read what has come from the caller, if anything has. Drops the caller when it is finished. */
void ns_front_receive(struct ns_daemon *d, struct ns_caller *c);

/* Drop callers that are out of time. Returns when to call again, or NP_NEVER. */
uint64_t ns_front_tick(struct ns_daemon *d, uint64_t now_ns);

/*
 * Start sessions for the next callers in the queue: a few, or only one if many events came at once:
 * the next events may be of callers with an earlier turn. Returns when to call again, or NP_NEVER.
 */
uint64_t ns_front_begin(struct ns_daemon *d, bool many_events, uint64_t now_ns);

/* Free dropped callers, once no event can point to them. */
void ns_front_free_dropped(struct ns_daemon *d);

/* Drop all callers, and free them. */
void ns_front_close(struct ns_daemon *d);

#endif
