/*
 * The daemon: listens, gives each control connection a process, reaps it, ends it.
 */
#ifndef NETSERVER_DAEMON_H
#define NETSERVER_DAEMON_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/log.h"
#include "run/drive.h"

enum { NS_LISTENERS = 16 };

struct ns_daemon {
	struct np_log *log;
	bool no_fork;              /* serve in this process, one client after another */
	bool quiet;                /* clients may not raise the log level */
	const char *passphrase;    /* that clients must send first; NULL: none */
	int fill_dir;              /* descriptor of where fill files may be had; 0: nowhere */
	struct np_signals signals; /* TERM and INT, counted; CHLD only interrupts */

	int listeners[NS_LISTENERS];
	size_t listener_count;
	pid_t *sessions; /* children not reaped yet */
	size_t session_count, session_room;
};

/*
 * Open the listeners: every address that host (NULL: the wildcards) and port mean. Without a host
 * IPv6 comes first and, where the system allows it, serves IPv4, too. NP_ESYS when not one could be
 * had, with the first reason.
 */
int ns_daemon_listen(struct ns_daemon *d, const char *host, const char *port, int family,
		     struct np_err *err);

/* Accept and serve until a signal comes; then end the sessions, too. */
void ns_daemon_run(struct ns_daemon *d);

/* Serve one connected control connection in this process. */
void ns_daemon_serve(struct ns_daemon *d, int fd);

#endif
