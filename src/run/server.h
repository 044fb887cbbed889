/*
 * The daemon's half of the conversation: serves the requests of one control connection.
 */
#ifndef NP_RUN_SERVER_H
#define NP_RUN_SERVER_H

#include <stdbool.h>

#include "base/err.h"
#include "base/log.h"
#include "run/drive.h"

struct np_server {
	struct np_log *log;
	const char *peer;       /* of the control connection, for the log */
	bool quiet;             /* the client may not raise the log level (-N) */
	const char *passphrase; /* must come first, within 20 s; NULL: none is wanted */
	int fill_dir; /* descriptor of where files to fill buffers from may be had; 0: nowhere */
	struct np_signals signals;
};

/*
 * Serve until the client closes, a deadline passes or a signal comes. Takes the descriptor over and
 * closes it. NP_OK when the client closed between two requests.
 */
int np_server_serve(struct np_server *s, int fd, struct np_err *err);

#endif
