/* Passed sockets (sd_listen_fds(3)) and notifications (sd_notify(3)) without systemd's library. */
#ifndef NETSERVER_NOTIFY_H
#define NETSERVER_NOTIFY_H

#include <stddef.h>

#include "base/err.h"

/*
 * Take passed sockets, for TCP or VSOCK: LISTEN_FDS descriptors from 3 on, if LISTEN_PID is ours;
 * they become close-on-exec and non-blocking. Call it before anything is opened, forked or closed.
 * Unsets the variables. Returns their number; -1, NP_EUSAGE: more than max, or other sockets.
 */
int ns_notify_sockets(int *fds, size_t max, struct np_err *err);

/* Send "READY=1" or the like to NOTIFY_SOCKET (path or "@name"), if set; lost if that is full. */
void ns_notify(const char *state);

/* Send that the daemon reloads, and when (Type=notify-reload); "READY=1" has to follow. */
void ns_notify_reloading(void);

#endif
