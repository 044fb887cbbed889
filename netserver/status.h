/* What the daemon reports about itself: netserver --status over a local socket, and metrics. */
#ifndef NETSERVER_STATUS_H
#define NETSERVER_STATUS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "netserver/daemon.h"

enum { NS_STATUS_MAX = 64 << 10 };

/* For people: sessions as many as fit, then how many more. Returns the length, below size. */
size_t ns_status_text(const struct ns_daemon *d, uint64_t now_ns, char *text, size_t size);

/* For Prometheus: the port labels each series, +Inf is no limit. ctx: a ns_daemon. Returns 0. */
int ns_metrics_print(FILE *out, const void *ctx);

/*
 * Open the directory of a path, as a daemon leaves its own later. *name: the file's name in path.
 * Returns the descriptor; -1 as np_trusted_open(), or NP_EUSAGE if a slash ends the path.
 */
int ns_metrics_dir(const char *path, const char **name, struct np_err *err);

/* Replace the file: a new one, 0644, then rename(2). On NP_ESYS nothing is left behind. */
int ns_metrics_write(const struct ns_daemon *d, struct np_err *err);

/* A listener in the abstract namespace, non-blocking, for a port or service. -1: see err. */
int ns_status_listen(const char *port, struct np_err *err);

/* Answer one connection without waiting: root, this user, owner get the text, others one line. */
void ns_status_answer(const struct ns_daemon *d);

/*
 * Copy the daemon's answer to out, without control characters, then the user of its process, if
 * neither root nor ours. NP_ECONTROL: none within 5 s; NP_EPEER: refused to this user.
 */
int ns_status_ask(const char *port, FILE *out, struct np_err *err);

#endif
