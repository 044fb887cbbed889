/*
 * A daemon in a thread, at a port of its own, for a number of control connections.
 */
#ifndef NP_TESTS_DAEMON_H
#define NP_TESTS_DAEMON_H

#include <pthread.h>

#include "net/addr.h"
#include "run/server.h"

struct daemon {
	int sessions;            /* served one after the other */
	void (*script)(int fd);  /* what it does with the first instead; NULL: it serves it */
	struct np_server server; /* how; daemon_begin() fills in what every test has */
	struct np_addr at;       /* where it listens; len 0: at 127.0.0.1 */
	char port[8];
	int listener;
	int rc; /* of the last session */
	pthread_t thread;
};

void daemon_begin(struct daemon *d);

/* Wait until all are served. */
void daemon_end(struct daemon *d);

#endif
