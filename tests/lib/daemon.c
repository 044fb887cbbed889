#include "tests/lib/daemon.h"

#include "base/log.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/session.h"
#include "tests/lib/sockets.h"

static void *
serve_all(void *arg)
{
	struct daemon *d = arg;

	for (int i = 0; i < d->sessions; i++) {
		struct np_server server = d->server;
		struct np_err err;
		int fd = accepted_from(d->listener);

		if (i == 0 && d->script != NULL) {
			d->script(fd);
			close(fd);
			continue;
		}
		d->rc = serve_accepted(&server, fd, &err);
	}
	return NULL;
}

void
daemon_begin(struct daemon *d)
{
	static struct np_log log = { .level = NP_LOG_ERROR };

	if (d->at.len == 0) {
		d->at = loopback(AF_INET, 0);
	}
	d->listener = bound_at(&d->at, SOCK_STREAM, 0);
	snprintf(d->port, sizeof(d->port), "%u", np_addr_port(&d->at));
	d->server.log = d->server.log != NULL ? d->server.log : &log;
	d->server.is_here = true;
	d->server.terms.eth = lo_link(true);
	d->rc = -1;
	assert_int_equal(pthread_create(&d->thread, NULL, serve_all, d), 0);
}

void
daemon_end(struct daemon *d)
{
	pthread_join(d->thread, NULL);
	close(d->listener);
}
