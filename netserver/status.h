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

/* For people: sessions as many as fit, then how many more. Returns the length, below size. */
size_t ns_status_text(const struct ns_view *v, char *text, size_t size);

/* For Prometheus: the port labels each series, +Inf is no limit. view: a ns_view. Returns 0. */
int ns_metrics_print(FILE *out, const void *view);

/*
 * Open the directory of a path, as a daemon leaves its own later. *name: the file's name in path.
 * Returns the descriptor; -1 as np_trusted_open(), or NP_EUSAGE if a slash ends the path.
 */
int ns_metrics_dir(const char *path, const char **name, struct np_err *err);

/* Replace the file: a new one, 0644, then rename(2). On NP_ESYS nothing is left behind. */
int ns_metrics_write(int dir_fd, const char *name, const struct ns_view *v, struct np_err *err);

/* A listener in the abstract namespace, non-blocking, for a port or service. -1: see err. */
int ns_status_listen(const char *port, struct np_err *err);

/* Answer one connection without waiting: root, this user, owner get the text, others one line. */
void ns_status_answer(int listener, uid_t owner, const struct ns_view *v);

/*
 * Copy the daemon's answer to out, without control characters, then the user of its process, if
 * neither root nor ours. NP_ECONTROL: none within 5 s; NP_EPEER: refused to this user.
 */
int ns_status_ask(const char *port, FILE *out, struct np_err *err);

#endif
