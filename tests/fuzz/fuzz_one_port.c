/*
 * The first bytes of a connection to a daemon's one port, in pieces: a session gets it only if they
 * are its token, or the test's client is known by that address. A byte of flags, then pieces: each
 * a byte of length and that many bytes.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fds.h"
#include "netserver/one_port.h"
#include "netserver/passed.h"
#include "netserver/proxied.h"

enum { F_PLAIN = 1, F_SILENT = 2, F_PROXIED = 4, F_QUIET = 8, F_RIGHT = 16 };

/* A token that an input can have. */
static const struct np_token known = { "fuzz_one_port.c" };

static bool
was_handed(int theirs)
{
	struct np_handed h;
	int fd;

	if (np_fds_receive(theirs, &h, sizeof(h), &fd, 1, MSG_DONTWAIT) != sizeof(h)) {
		return false;
	}
	must(fd >= 0 && h.error == 0);
	close(fd);
	return true;
}

/* Until it is known what the connection is. */
static enum ns_data
hear(struct ns_daemon *d, const int pair[2], const uint8_t *data, size_t size, unsigned flags,
     struct np_addr *peer)
{
	bool proxied = (flags & F_PROXIED) != 0;
	enum ns_data got = NS_DATA_MORE;
	struct ns_session *of;

	while (got == NS_DATA_MORE && size > 0) {
		size_t n = data[0] < size - 1 ? data[0] : size - 1;

		if (send(pair[1], data + 1, n, MSG_DONTWAIT) != (ssize_t)n) {
			break; /* short pieces take more room than their bytes */
		}
		data += n + 1;
		size -= n + 1;
		if (proxied) {
			enum ns_proxied what = ns_proxied_read(pair[0], peer);

			if (what == NS_PROXIED_WRONG) {
				return NS_DATA_UNKNOWN;
			}
			proxied = what == NS_PROXIED_MORE;
		}
		if (!proxied) {
			got = ns_data_look(d, pair[0], peer,
					   (flags & F_QUIET) != 0 ? NS_LOOK_QUIET : NS_LOOK_LATE,
					   &of);
		}
	}
	return got;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	ns_passed_begin(); /* a slow close(2) is hurried by signals */
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned flags = size > 0 ? data[0] : 0;
	const struct np_handover handover = { .wanted = true,
					      .tokens = (flags & F_PLAIN) == 0,
					      .silent = (flags & F_SILENT) != 0,
					      .count = 1 };
	struct ns_session s = { .wish.handover = handover };
	struct ns_daemon d = { .sessions = &s };
	struct np_addr peer;
	struct np_err err;
	enum ns_data got;
	int pair[2], theirs;

	np_addr_make(&peer, AF_INET, (const uint8_t[]){ 192, 0, 2, 1 }, 1);
	s.peer = peer;
	ns_handovers_begin(&d);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	must(ns_handover_open(&s, &handover, &theirs, &err) == NP_OK);
	if ((flags & F_RIGHT) != 0) {
		s.handover.token = known;
	}
	got = size > 1 ? hear(&d, pair, data + 1, size - 1, flags, &peer) : NS_DATA_NONE;
	must(got != NS_DATA_PASSED || (flags & (F_PLAIN | F_RIGHT)) != 0);
	must(was_handed(theirs) == (got == NS_DATA_PASSED));
	ns_handover_close(&d, &s);
	close(theirs);
	close(pair[0]);
	close(pair[1]);
	return 0;
}
