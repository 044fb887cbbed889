/*
 * A log file: one line, one write(2), all of it key=value (base/log.h).
 */
#ifndef NETSERVER_LOGFILE_H
#define NETSERVER_LOGFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"

/*
 * Lines that can't be written are counted, and how many they were is the first line once there is
 * room again. Sessions do not have the file, see relay.h.
 */
struct ns_logfile {
	char path[PATH_MAX];  /* absolute: a daemon leaves its directory */
	int fd;               /* -1: none */
	bool regular;         /* else it is standard error, which is not waited for */
	bool torn;            /* the last line is there in part only */
	uint64_t dropped;     /* since the last line that was written */
	int why;              /* errno of the first of them */
	struct np_log before; /* the sink that was there first: told of what becomes of a file */
};

/*
 * Open it to append, mode 0640 where it is new: a regular file that NP_TRUSTED_LOG takes, or
 * /dev/stderr by that name, whatever that is. `before` is where the log went until now. NP_EUSAGE
 * for other kinds of files (a FIFO would make the daemon wait), NP_ESYS when it can't be had.
 */
int ns_logfile_open(struct ns_logfile *f, const char *path, const struct np_log *before,
		    struct np_err *err);

/*
 * Open it anew by its name, as after log rotation. When that fails the file that was open is
 * written on, both that and `before` are told, and the next call tries again.
 */
int ns_logfile_reopen(struct ns_logfile *f, struct np_err *err);

/*
 * A sink, with the struct as its context: "time=2026-11-21T17:22:11.123456Z pid=4711 level=info "
 * and the event, or the text as msg. Never waits for a reader.
 */
void ns_logfile_sink(void *ctx, enum np_log_level level, bool is_event, const char *line);

void ns_logfile_close(struct ns_logfile *f);

#endif
