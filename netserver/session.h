/*
 * A session: what its process does for one client, from its first message on. It asks the daemon
 * (sessions.h) for leave before each test, over a pair of sockets, and tells what became of it.
 */
#ifndef NETSERVER_SESSION_H
#define NETSERVER_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "netserver/daemon.h"
#include "netserver/front.h"
#include "run/server.h"
#include "wire/ext.h"

/* An event about a client, to be logged. */
void ns_event_begin(struct np_event *e, const char *name, const struct np_addr *peer);

/* ---- What the two say to each other ---- */

enum ns_verb { NS_ASK, NS_MOVED, NS_DONE, NS_REFUSED, NS_GRANT, NS_REFUSE, NS_TELL };

/* One packet each; both ends are of one program. */
struct ns_word {
	enum ns_verb verb;
	int error; /* NS_REFUSE, NS_REFUSED: an errno */
	struct np_wish wish;
	struct np_served served;
	char text[200]; /* why not */
};

/* What a session may send. */
union ns_packet {
	struct ns_word word;
	struct ns_line line; /* of NS_TELL */
};

bool ns_say(int fd, const struct ns_word *w);

/* ---- What a caller's first message wants of its session ---- */

bool ns_gathers_evidence(const struct ns_daemon *d, const struct ns_caller *c);
bool ns_wants_capture(const struct ns_caller *c);

/* Tests of the link layer? device: of that interface; empty: none is named. */
bool ns_wants_link(const struct ns_caller *c, char device[NP_EXT_DEVICE], bool *connects);

/* ---- Processes ---- */

/*
 * A session's process, which ends with its daemon, whatever becomes of that. fd: to the daemon.
 * seal: of the fork server that forked it confined, but for its files; NULL: the daemon did, and it
 * has all that the daemon had.
 */
void __attribute__((noreturn))
ns_session_run(struct ns_daemon *d, struct ns_caller *c, bool is_here, int fd, pid_t daemon,
	       struct ns_seal *seal);

/* The sessions of a fork server, whose processes all have these in common. */
struct ns_kin {
	struct ns_daemon *d;
	bool is_here, evidence;
};
struct ns_forkwork ns_session_forkwork(struct ns_kin *k);

/* Have it fork a session for the caller. fd: its end of the way to the daemon. As
 * ns_forkserver_fork().
 */
int ns_session_order(struct ns_forkserver *f, const struct ns_caller *c, int fd, pid_t *pid,
		     struct np_err *err);

/* Serve the caller in this process. Its descriptor is closed then. */
void ns_session_serve_here(struct ns_daemon *d, struct ns_caller *c);

/*
 * Serve one connected control connection in this process, as inetd's children do, once it has been
 * let in.
 */
void ns_session_serve_alone(struct ns_daemon *d, int fd);

#endif
