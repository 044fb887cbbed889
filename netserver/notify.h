/*
 * Two conventions of systemd, without its library: passed sockets (sd_listen_fds(3)) and messages
 * about the daemon's state (sd_notify(3)).
 */
#ifndef NETSERVER_NOTIFY_H
#define NETSERVER_NOTIFY_H

#include <stddef.h>

#include "base/err.h"

/*
 * Take the passed sockets, which listen for TCP or VSOCK: LISTEN_FDS descriptors from 3 on, if
 * LISTEN_PID is this process. They become close-on-exec and non-blocking. To be called before
 * anything is opened, forked or closed. Unsets the variables. Returns their number, 0 for none; -1
 * with NP_EUSAGE if there are more than max, or one is no such socket.
 */
int ns_notify_sockets(int *fds, size_t max, struct np_err *err);

/*
 * Send "READY=1", "STOPPING=1" and the like to NOTIFY_SOCKET, a path or "@name", if it is set.
 * Never waits: the message is lost if the socket is full.
 */
void ns_notify(const char *state);

/*
 * Send that the daemon reloads, with the time that Type=notify-reload asks for
 * (systemd.service(5)); the caller sends "READY=1" afterwards.
 */
void ns_notify_reloading(void);

#endif
