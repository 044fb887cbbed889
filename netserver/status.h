/* What the daemon reports about itself: netserver --status over a local socket, and metrics. */
#ifndef NETSERVER_STATUS_H
#define NETSERVER_STATUS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"
#include "netserver/guard.h"

/* What they report. */
struct ns_view {
	const struct ns_stats *stats;
	const struct ns_limits *limits;
	const struct ns_session *sessions; /* a list */
	const char *port;
	uint64_t lines_lost, lines_left_out; /* of the log: not written, above the limits */
	uint64_t now_ns;                     /* np_now() */
};

enum { NS_STATUS_MAX = 64 << 10 };

/*
 * For people: head, limits, totals, refusals by reason, sessions (as many as fit, and how many
 * more). Returns the length, below size.
 */
size_t ns_status_text(const struct ns_view *v, char *text, size_t size);

/*
 * Metrics for Prometheus. Every series has the port as a label, so that two daemons of a machine
 * differ. No limit is +Inf. view: a struct ns_view. Returns 0, as np_output_fill() needs.
 */
int ns_metrics_print(FILE *out, const void *view);

/*
 * Open the directory of a path, since a daemon changes its working directory later. *name: where
 * the file's name begins in path. Returns the descriptor; -1 as np_trusted_open(), or NP_EUSAGE if
 * the path ends in a slash.
 */
int ns_metrics_dir(const char *path, const char **name, struct np_err *err);

/*
 * Replace the file `name` in the directory: write a new one beside it, mode 0644, then rename(2).
 * On NP_ESYS nothing is left behind.
 */
int ns_metrics_write(int dir_fd, const char *name, const struct ns_view *v, struct np_err *err);

/*
 * A listening UNIX socket in the abstract namespace, named after the port (a number, or a service),
 * so that no file stays behind; non-blocking. -1 with err when another process has it.
 */
int ns_status_listen(const char *port, struct np_err *err);

/*
 * Accept one connection and answer it without ever waiting: root, this user and `owner` get the
 * text, other users one line (SO_PEERCRED, unix(7)).
 */
void ns_status_answer(int listener, uid_t owner, const struct ns_view *v);

/*
 * The client: copy the answer of the daemon at that port to out, without control characters, and
 * then the user of the process that answered, if that is neither root nor ours. NP_ECONTROL if
 * there is no answer within 5 s, NP_EPEER if it refuses to answer this user.
 */
int ns_status_ask(const char *port, FILE *out, struct np_err *err);

#endif
