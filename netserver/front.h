/*
 * Callers come and go. Each costs a descriptor and some memory until its first message is whole, it
 * is let in, it is its turn, and there is room for a session.
 */
#ifndef NETSERVER_FRONT_H
#define NETSERVER_FRONT_H

#include <stdint.h>

#include "netserver/caller.h"

/* Take what a listener has. */
void ns_front_accept(struct ns_daemon *d, int listener);

/* Something came from the caller, or may have. It is gone afterwards, if it is done with. */
void ns_front_hear(struct ns_daemon *d, struct ns_caller *c);

/* Drop callers that are out of time. Returns when to call again, NP_NEVER. */
uint64_t ns_front_tick(struct ns_daemon *d, uint64_t now_ns);

/*
 * Start sessions for the next callers in the queue, a few at a time, or one where there is more to
 * be heard: a caller with a better place may be among that. Returns when to call again, NP_NEVER.
 */
uint64_t ns_front_begin(struct ns_daemon *d, bool has_more, uint64_t now_ns);

/* Release what was dropped, once no event can name it any more. */
void ns_front_bury(struct ns_daemon *d);

/* Close all. */
void ns_front_close(struct ns_daemon *d);

#endif
