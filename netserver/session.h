/* A process that serves one client. It asks the daemon (sessions.h) before each test. */
#ifndef NETSERVER_SESSION_H
#define NETSERVER_SESSION_H

#include <sys/types.h>

#include "netserver/caller.h"
#include "run/server.h"

/* One packet each. Sessions send the functions of np_admission; GRANT and REFUSE answer ASK. */
enum ns_message_type { NS_ASK, NS_MOVED, NS_DONE, NS_GRANT, NS_REFUSE, NS_LOG_LINE };

struct ns_message {
	enum ns_message_type type;
	int error;               /* NS_REFUSE: an errno */
	struct np_wish wish;     /* NS_ASK; NS_GRANT: what is granted */
	struct np_served served; /* NS_DONE */
	char text[200];          /* NS_REFUSE: why, for the client */
};

/* What a session may send. */
union ns_packet {
	struct ns_message message;
	struct ns_line line; /* of NS_LOG_LINE */
};

/*
 * Run a session's process, which ends with its daemon. fd: to the daemon. seal: of the fork server
 * that forked and confined it, but for files; NULL: the daemon forked it, and it is not confined.
 */
void __attribute__((noreturn)) ns_session_run(struct ns_daemon *d, struct ns_caller *c, int fd,
					      pid_t daemon, struct ns_seal *seal);

/* In a fork server: confine this process, which needs only fd, except for files. NP_ESYS. */
int ns_session_confine(struct ns_daemon *d, unsigned filter, int fd, struct ns_seal *seal,
		       struct np_err *err);

/* Serve the caller in the daemon's process (-f). Its descriptor is closed then. */
void ns_session_serve_here(struct ns_daemon *d, struct ns_caller *c);

/* Serve one control connection in this process, as inetd's children do, once it is admitted. */
void ns_session_serve_alone(struct ns_daemon *d, int fd);

#endif
