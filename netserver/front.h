/*
 * Callers: control connections that have no session yet. Each costs a descriptor and some memory
 * until its first message is whole, it is let in, it is its turn, and there is room for a session.
 */
#ifndef NETSERVER_FRONT_H
#define NETSERVER_FRONT_H

#include <stdint.h>

#include "net/eth.h"
#include "netserver/admit.h"
#include "netserver/daemon.h"
#include "wire/chan.h"

enum { NS_HELLO_S = 5 }; /* for a caller's first message, and each one until it is let in */

struct ns_caller {
	enum ns_kind kind; /* NS_CALLER */
	struct ns_caller *next;
	struct np_chan chan;
	struct np_addr peer; /* unmapped */
	char text[NP_ADDR_TEXT];
	uint64_t deadline_ns;
	struct ns_admit admit;
	bool denied;      /* by address: to be told so when it has spoken */
	uint64_t held_ns; /* when its secret may be looked at; 0: nothing is held back */
	struct ns_place place;
	bool queued;          /* it has asked for a session, and waits for its turn */
	uint64_t short_of;    /* 1 + d->freed when there was no room for one; 0: there may be */
	enum ns_refusal lack; /* of what */
	/* In its session's process. */
	struct np_capture *capture; /* that it asked for at once; NULL: none */
	struct np_err uncaptured;   /* why not, if there was one to be had */
	struct np_eth eth;          /* of the tests of the link layer that it wants */
	bool linked;                /* there is such a one */
	struct np_err unlinked;     /* why not, if it was to be had */
};

/* What somebody at that connection must say first. */
struct ns_admit ns_admission_of(const struct ns_daemon *d, int fd);

/* Take what a listener has. */
void ns_front_accept(struct ns_daemon *d, int listener);

/* Something came from the caller, or may have. It is gone afterwards, if it is done with. */
void ns_front_hear(struct ns_daemon *d, struct ns_caller *c);

/* Drop those whose time is up. Returns when to call again, NP_NEVER. */
uint64_t ns_front_tick(struct ns_daemon *d, uint64_t now_ns);

/*
 * Give sessions to those whose turn it is, a few at a time, or one where there is more to be heard:
 * somebody whose turn is sooner may be among that. Returns when to call again, NP_NEVER.
 */
uint64_t ns_front_begin(struct ns_daemon *d, bool has_more, uint64_t now_ns);

/* Release what was dropped, once no event can name it any more. */
void ns_front_bury(struct ns_daemon *d);

/* Close all. */
void ns_front_close(struct ns_daemon *d);

#endif
