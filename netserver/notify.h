/*
 * A service manager's two conventions, without its library: sockets handed down (sd_listen_fds(3))
 * and words about one's state (sd_notify(3)).
 */
#ifndef NETSERVER_NOTIFY_H
#define NETSERVER_NOTIFY_H

#include <stddef.h>

#include "base/err.h"

/*
 * Listening sockets of TCP or VSOCK that were handed down, descriptors 3 and up by LISTEN_FDS if
 * LISTEN_PID is this process, made close-on-exec and non-blocking. To be called before anything is
 * opened, forked or closed (np_fds_drop() takes how far to go). Unsets the variables. Returns how
 * many, 0 for none; -1 with NP_EUSAGE when there are more than max, or one is no such socket.
 */
int ns_notify_sockets(int *fds, size_t max, struct np_err *err);

/*
 * Send "READY=1", "STOPPING=1" and the like to NOTIFY_SOCKET, a path or "@name"; without a
 * receiver nothing happens. A manager that does not keep up does not get it.
 */
void ns_notify(const char *state);

/*
 * That a SIGHUP is being served, with the time that Type=notify-reload asks for
 * (systemd.service(5)); "READY=1" follows when that is done.
 */
void ns_notify_reloading(void);

#endif
