/* Callers: control connections until they are admitted and there is room for a session. */
#ifndef NETSERVER_FRONT_H
#define NETSERVER_FRONT_H

#include <stdint.h>

#include "netserver/caller.h"

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

/* Drop all callers. */
void ns_front_close(struct ns_daemon *d);

#endif
