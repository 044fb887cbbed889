/* The daemon, one process that never waits for a peer; see caller.h, sessions.h and guard.h. */
#ifndef NETSERVER_DAEMON_H
#define NETSERVER_DAEMON_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/log.h"
#include "netserver/args.h"
#include "netserver/confine.h"
#include "netserver/guard.h"
#include "netserver/launch.h"
#include "netserver/lines.h"
#include "run/drive.h"
#include "sys/cgroup.h"

enum { NS_LISTENERS = 16, NS_FORKSERVERS = NS_FILTER_UNIX + NS_FILTER_EVIDENCE + 1 };

struct ns_caller;

struct ns_daemon {
	/* The operator's settings. Secrets are overwritten in a session's process. */
	struct ns_args args;
	struct np_log *log;
	struct np_log_out log_out;      /* its output, which counts lost lines */
	char port[12];                  /* for status; empty: not used */
	struct np_cgroup_trees cgroups; /* found before privileges were dropped; may be empty */
	int fill_dir;                   /* descriptor of the directory of fill files; 0: none */
	struct ns_limits limits;        /* those of args, and what this system adds */
	char access_file[PATH_MAX];     /* has more rules, read again at SIGHUP; empty: none */
	int metrics_dir;                /* descriptor; 0: no metrics are written */
	uid_t owner;                    /* who started it, and may ask for its status */
	const char *metrics_name;
	struct np_signals signals; /* TERM and INT, counted; CHLD and HUP only interrupt */
	const volatile sig_atomic_t *reloads; /* HUP, counted; NULL: never */

	/* The state. */
	struct ns_access access; /* the rules in force: of the command line and the file */
	int listeners[NS_LISTENERS];
	int datagrams[NS_LISTENERS]; /* of UDP at the same ports (one_port.h); 0: none */
	size_t listener_count;
	int status_fd; /* of ns_status_listen(); 0: none */
	int epoll;     /* 0: ns_daemon_run() makes it */
	bool accept_paused, metrics_failed;
	rlim_t callers_files; /* descriptors from this one on are kept for sessions */
	uint64_t accept_ns;   /* when to accept again, having run out of descriptors; 0: now */
	struct ns_late late;
	uint64_t stray_ns;             /* when a datagram last came that belongs to no test */
	int accepts;                   /* flags of accept4(2) (one_port.h) */
	int defers;                    /* TCP_DEFER_ACCEPT of the listeners */
	uint32_t handed_bytes;         /* SIOCOUTQ of one descriptor in flight (one_port.c) */
	struct ns_bucket room;         /* of attempts to make room for data connections */
	struct ns_bucket unknown;      /* of answers to datagrams with unknown tokens */
	struct ns_bucket scarce;       /* of log lines about scarce resources */
	struct ns_lines lines;         /* limits log lines that callers cause, */
	struct ns_lines session_lines; /* and those of all sessions */
	uint64_t metrics_ns;           /* when to write the metrics file again */
	int reloads_done;              /* of *reloads */
	struct ns_caller *callers, **callers_end; /* the oldest first */
	struct ns_caller *dropped;                /* events may still point to these */
	struct ns_session *sessions;
	/* By NS_FILTER_UNIX and NS_FILTER_EVIDENCE; started when one is needed. */
	struct ns_forkserver forkserver[NS_FORKSERVERS];
	struct ns_rates rates;
	struct ns_tries tries;
	uint64_t shared_ns;    /* until when addresses share the processors (processors.h) */
	uint64_t freed;        /* how often a session released a resource, */
	uint64_t ended;        /* and how often one ended */
	struct ns_turns turns; /* --exclusive: of tests */
	struct ns_stats stats;
};

/* The daemon's descriptors of a session, or a listener: with --one-port one more for its data. */
static inline unsigned
ns_fds_each(const struct ns_daemon *d)
{
	return d->args.one_port ? 2 : 1;
}

/* The first member of what epoll(7) events point to: callers and sessions. */
enum ns_kind { NS_CALLER, NS_SESSION, NS_DROPPED };

/*
 * Open the listeners, one for each address that host (NULL: the wildcards) and port resolve to.
 * Without a host IPv6 comes first and, where the system allows it, serves IPv4, too. If none could
 * be opened, the first error: NP_ECONTROL if host or port does not resolve, else NP_ESYS.
 */
int ns_daemon_listen(struct ns_daemon *d, const char *host, const char *port, int family,
		     struct np_err *err);

/*
 * Raise RLIMIT_NOFILE to what the limits can need, as far as the system allows. NP_EUNSUP if that
 * is too little for even one session. To be called once the listeners are open.
 */
int ns_daemon_descriptors(const struct ns_daemon *d, struct np_err *err);

/* Read the access file, if there is one. On failure the rules are as they were. */
int ns_daemon_read_rules(struct ns_daemon *d, struct np_err *err);

/* Accept and serve until a signal comes; then end the sessions, too. NP_ESYS: it cannot begin. */
int ns_daemon_run(struct ns_daemon *d, struct np_err *err);

#endif
