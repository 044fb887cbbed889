#include "netserver/launch.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fds.h"
#include "netserver/filter.h"
#include "netserver/session.h"

/* False when the daemon has gone, or this process has no room for the descriptors. */
static bool
receive_request(int fd, struct ns_caller *request, int fds[NS_FORK_FDS])
{
	ssize_t n;

	do {
		n = np_fds_receive(fd, request, sizeof(*request), fds, NS_FORK_FDS, 0);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*request) && fds[NS_FORK_FDS - 1] >= 0;
}

void
ns_forkserver_run(struct ns_daemon *d, unsigned filter, int fd, pid_t daemon)
{
	struct ns_fork_answer answer = { .pid = 0 };
	struct ns_seal seal = { .word = { 0 } };
	char name[16] = ""; /* netserver's (prctl(2)), which sessions get again */

	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, NS_FORKSERVER_NAME);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != daemon) {
		_exit(0); /* it died before the call took effect */
	}
	(void)ns_session_confine(d, filter, fd, &seal, &answer.err);
	if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) == (ssize_t)sizeof(answer) &&
	    answer.err.code == NP_OK) {
		struct ns_caller request;
		const long first[] = { [NS_FORK_ARG] = NS_FORK, [!NS_FORK_ARG] = 0 };
		int fds[NS_FORK_FDS];

		while (receive_request(fd, &request, fds)) {
			/* fork(2), but the parent is the daemon; libc's passes no seal. */
			answer.pid = (pid_t)ns_sealed(&seal, SYS_clone, first[0], first[1], 0, 0);
			if (answer.pid == 0) {
				prctl(PR_SET_NAME, name);
				close(fd);
				request.chan.fd = fds[NS_FORK_CONTROL];
				request.chan.peer = request.text;
				ns_session_run(d, &request, fds[NS_FORK_DAEMON], daemon, &seal);
			}
			answer.err.code = NP_OK;
			if (answer.pid < 0) {
				np_fail(&answer.err, NP_ESYS, errno, "no process for a session");
			}
			for (size_t i = 0; i < NS_FORK_FDS; i++) {
				close(fds[i]);
			}
			if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) !=
			    (ssize_t)sizeof(answer)) {
				break;
			}
		}
	}
	_exit(0);
}
