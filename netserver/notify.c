#include "netserver/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/units.h"
#include "net/addr.h"
#include "net/sock.h"

enum { FIRST = 3 }; /* SD_LISTEN_FDS_START */

/* What is wrong with the socket, to follow "descriptor 3"; NULL: nothing. */
static const char *
fault_of(int fd)
{
	int family = np_sock_int(fd, SOL_SOCKET, SO_DOMAIN);

	if (family < 0) {
		return errno == EBADF ? "is not open" : "is not a socket";
	}
	if ((np_family(family)->version == 0 && family != AF_VSOCK) ||
	    np_sock_int(fd, SOL_SOCKET, SO_TYPE) != SOCK_STREAM) {
		return "is not a TCP or VSOCK stream socket";
	}
	return np_sock_int(fd, SOL_SOCKET, SO_ACCEPTCONN) == 1
		   ? NULL
		   : "does not listen (Accept=no is needed)";
}

/* The variable's number; -1 when there is none. */
static int64_t
number_in(const char *variable)
{
	const char *text = getenv(variable);
	int64_t n;

	return text != NULL && np_parse_int(text, &n) == 0 && n >= 0 ? n : -1;
}

int
ns_notify_sockets(int *fds, size_t max, struct np_err *err)
{
	static const char *const variables[] = { "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES",
						 "LISTEN_PIDFDID" };
	bool ours = number_in("LISTEN_PID") == getpid();
	int64_t count = number_in("LISTEN_FDS");

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		unsetenv(variables[i]);
	}
	if (!ours || count <= 0) {
		return 0;
	}
	if ((uint64_t)count > max) {
		np_usage(err, "LISTEN_FDS: %" PRId64 " sockets, more than %zu", count, max);
		return -1;
	}
	for (int i = 0; i < (int)count; i++) {
		const char *fault = fault_of(FIRST + i);

		fds[i] = FIRST + i;
		if (fault != NULL) {
			np_usage(err, "LISTEN_FDS: descriptor %d %s", fds[i], fault);
			return -1;
		}
		np_sock_block(fds[i], false);
		fcntl(fds[i], F_SETFD, FD_CLOEXEC);
	}
	return (int)count;
}

void
ns_notify(const char *state)
{
	/* Not unset: the daemon sends several messages. */
	const char *name = getenv("NOTIFY_SOCKET");
	struct np_addr to;
	struct sockaddr_un *un = (struct sockaddr_un *)&to.sa;
	int fd;

	if (name == NULL || (name[0] != '/' && name[0] != '@') ||
	    np_addr_make_path(&to, name, NULL) != NP_OK) {
		return;
	}
	if (name[0] == '@') { /* an abstract name */
		un->sun_path[0] = '\0';
		to.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	}
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
		      (const struct sockaddr *)&to.sa, to.len);
	np_fds_close(fd);
}

void
ns_notify_reloading(void)
{
	char state[64];

	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, np_now() / 1000);
	ns_notify(state);
}
