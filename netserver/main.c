/* netserver: the far end of netperf's tests. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/trusted.h"
#include "bench/bench.h"
#include "bench/engine/uring.h"
#include "bench/lacks.h"
#include "net/addr.h"
#include "net/sock.h"
#include "netserver/args.h"
#include "netserver/confine.h"
#include "netserver/daemon.h"
#include "netserver/notify.h"
#include "netserver/session.h"
#include "netserver/status.h"

/* How often TERM or INT came, for struct np_signals. */
static _Atomic int ends_asked;

static void
on_end(int sig)
{
	ends_asked++;
}

static void
on_child(int sig)
{
	(void)sig; /* it only interrupts the daemon's wait */
}

/* How often HUP came. */
static volatile sig_atomic_t reloads_asked;

static void
on_reload(int sig)
{
	reloads_asked++;
}

/*
 * TERM, INT, HUP, CHLD are blocked, except in waits with *let_in, which has to live as long as d.
 */
static void
take_signals(struct ns_daemon *d, sigset_t *let_in)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGCHLD, SIGHUP };
	sigset_t block;

	sigemptyset(&block);
	sigprocmask(SIG_BLOCK, NULL, let_in);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		const struct sigaction sa = { .sa_handler = signals[i] == SIGCHLD  ? on_child
							    : signals[i] == SIGHUP ? on_reload
										   : on_end };

		sigaction(signals[i], &sa, NULL);
		sigaddset(&block, signals[i]);
		sigdelset(let_in, signals[i]);
	}
	sigprocmask(SIG_BLOCK, &block, NULL);
	np_drive_prepare();
	signal(SIGXFSZ, SIG_IGN); /* write(2) then fails with EFBIG, as on a full disk */
	d->signals.let_in = let_in;
	d->signals.received = &ends_asked;
	d->reloads = &reloads_asked;
}

/* Listen, and print netperf's lines. If no more is to be printed of an error, its text is empty. */
static int
listen_and_tell(struct ns_daemon *d, struct np_err *err)
{
	const struct ns_args *a = &d->args;
	const char *host = a->host[0] != '\0' ? a->host : NULL;
	const char *shown = host != NULL ? host : "IN(6)ADDR_ANY";
	bool for_script = isatty(STDERR_FILENO) == 0;
	int rc = ns_daemon_listen(d, host, a->port, a->family, err);

	if (rc != NP_OK && for_script) {
		/* netperf's line, two blanks too: scripts look for it. */
		fprintf(stderr, "Unable to start netserver with  '%s' port '%s' and family %s\n",
			shown, a->port, np_family(a->family)->name);
	}
	if (rc == NP_ECONTROL && for_script) {
		err->msg[0] = '\0'; /* the name does not resolve: netperf's line is enough */
	} else if (rc != NP_OK) {
		np_fail_hint(err, err->sys == EADDRINUSE ? "try another port with -p" : NULL);
	}
	if (rc != NP_OK) {
		return rc;
	}
	printf("Starting netserver with host '%s' port '%s' and family %s\n", shown, a->port,
	       np_family(a->family)->name);
	if (fflush(stdout) != 0) {
		fprintf(stderr, "netserver: write to standard output: %s\n", strerror(errno));
	}
	return NP_OK;
}

/* Open the files of options, before directory and user change. */
static int
open_files(struct ns_daemon *d, struct np_err *err)
{
	const struct ns_args *a = &d->args;

	if (a->fill_dir != NULL &&
	    (d->fill_dir = np_trusted_open(a->fill_dir, NP_TRUSTED_DIR, err)) < 0) {
		return np_fail_in(err, "--fill-dir");
	}
	if (a->metrics_file != NULL &&
	    (d->metrics_dir = ns_metrics_dir(a->metrics_file, &d->metrics_name, err)) < 0) {
		return np_fail_in(err, "--metrics-file");
	}
	if ((a->access_file != NULL && np_trusted_path(d->access_file, sizeof(d->access_file),
						       a->access_file, err) != NP_OK) ||
	    ns_daemon_read_rules(d, err) != NP_OK) {
		return np_fail_in(err, "--access-file");
	}
	return NP_OK;
}

/* Load --transports' modules, and find control groups: sessions, and users, can't do that later. */
static int
prepare_machine(struct ns_daemon *d, struct np_err *err)
{
	const struct np_transport *t;

	for (size_t i = 0; (t = np_transport_at(i)) != NULL; i++) {
		bool is_named = (d->args.transports >> i & 1) != 0;

		/* --allow-raw loads packet sockets if it can; only named ones have to be there. */
		if ((is_named || (t == &np_transport_eth && d->args.allow_raw)) &&
		    np_lacks_load(t, err) != NP_OK && is_named) {
			np_fail_in(err, t->name);
			return np_fail_in(err, "--transports");
		}
	}
	d->limits.each.lacks = np_lacks_now("");
	/* Needs privileges where ip-netns(8) has hidden them. */
	if (!d->args.no_evidence) {
		np_cgroup_find("", &d->cgroups);
	}
	return NP_OK;
}

/*
 * The kernel limits pages that a user's processes have pinned (MSG_ZEROCOPY): one session could
 * take all. Let that not matter, as it pins only granted memory. Needs CAP_SYS_RESOURCE unless the
 * hard limit is infinite. With rings it stays: it limits memory of the kernel, too.
 */
static void
allow_pinning(const struct ns_daemon *d)
{
	struct rlimit l = { RLIM_INFINITY, RLIM_INFINITY };

	if (d->args.uring == 0 && setrlimit(RLIMIT_MEMLOCK, &l) != 0 &&
	    getrlimit(RLIMIT_MEMLOCK, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &l);
	}
}

/* Become the user of --user, and drop privileges. */
static int
go_unprivileged(const struct ns_args *a, struct np_err *err)
{
	if (ns_confine_daemon(a->user, a->allow_raw, err) != NP_OK) {
		np_fail_hint(err, "--user root stays root");
		return np_fail_in(err, "--user");
	}
	return NP_OK;
}

/* Log what this kernel lacks for --uring and for confining sessions. */
static void
log_lacks(const struct ns_daemon *d)
{
	char lacks[NS_LACKS];

	ns_confine_lacks(lacks);
	if (d->args.uring > 0 && np_urings_lack() != NULL) {
		np_log(d->log, NP_LOG_ERROR, "--uring %d: %s", d->args.uring, np_urings_lack());
	}
	if (d->args.no_sandbox) {
		np_log(d->log, NP_LOG_INFO, "sessions are not confined (--no-sandbox)");
	} else if (lacks[0] != '\0') {
		np_log(d->log, NP_LOG_INFO, "sessions are less confined: %s", lacks);
	}
}

/* Set d->port, and open the socket for --status. The daemon also runs without it. */
static void
open_status(struct ns_daemon *d)
{
	struct np_err err = { .code = NP_OK };
	struct np_addr at = { .len = 0 };

	snprintf(d->port, sizeof(d->port), "%u",
		 np_sock_local(d->listeners[0], &at, &err) == NP_OK ? np_addr_port(&at) : 0U);
	if (!d->args.no_status) {
		d->status_fd = ns_status_listen(d->port, &err);
	}
	if (d->status_fd < 0) {
		np_log(d->log, NP_LOG_INFO, "--status will not find this daemon: %s", err.msg);
		d->status_fd = 0;
	}
}

/* Open what needs privileges, drop them, and serve until a signal. */
static int
run_daemon(struct ns_daemon *d, struct np_err *err)
{
	sigset_t let_in;
	int rc, count = ns_notify_sockets(d->listeners, NS_LISTENERS, err);

	if (count < 0) {
		return err->code;
	}
	d->listener_count = (size_t)count;
	if (!d->args.foreground) {
		/* Its caller's pipes must not stay open; sockets of a service manager are kept. */
		np_fds_close_except(d->listeners, d->listener_count);
	}
	if (open_files(d, err) != NP_OK || (count == 0 && listen_and_tell(d, err) != NP_OK)) {
		return err->code;
	}
	open_status(d);
	if (prepare_machine(d, err) != NP_OK) {
		return err->code;
	}
	if (ns_daemon_descriptors(d, err) != NP_OK) {
		np_cgroup_forget(&d->cgroups); /* a leak checker needs descriptors, too */
		return err->code;
	}
	allow_pinning(d);
	/* Its watches count for the user that makes it, which must not be that of sessions. If this
	 * fails, ns_daemon_run() tries again. */
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (go_unprivileged(&d->args, err) != NP_OK) {
		return err->code;
	}
	/* Tried as the daemon's user. A full disk may have room later. */
	if (d->metrics_dir > 0 && ns_metrics_write(d, err) != NP_OK && err->sys != ENOSPC &&
	    err->sys != EDQUOT) {
		np_fail_hint(err, "may the daemon's user, see --user, write there?");
		return np_fail_in(err, "--metrics-file");
	}
	if (!d->args.foreground) {
		if (daemon(0, 0) != 0) {
			return np_fail(err, NP_ESYS, errno, "go to the background");
		}
		np_log_open_syslog(&d->log_out);
	}
	take_signals(d, &let_in);
	/* In the foreground, standard output has said so already. */
	np_log(d->log, d->args.foreground ? NP_LOG_DEBUG : NP_LOG_INFO, "listening on port %s",
	       d->port);
	log_lacks(d);
	ns_notify("READY=1");
	rc = ns_daemon_run(d, err);
	np_log(d->log, rc != NP_OK ? NP_LOG_ERROR : NP_LOG_INFO, "%s",
	       rc != NP_OK ? err->msg : "stopped by a signal");
	err->msg[0] = '\0'; /* it was told */
	return rc;
}

/* Started by inetd: standard input is the control connection. */
static int
run_for_inetd(struct ns_daemon *d, struct np_err *err)
{
	sigset_t let_in;

	np_log_open_syslog(&d->log_out);
	if (open_files(d, err) != NP_OK || prepare_machine(d, err) != NP_OK ||
	    go_unprivileged(&d->args, err) != NP_OK) {
		return err->code;
	}
	log_lacks(d);
	take_signals(d, &let_in);
	ns_session_serve_alone(d, 0);
	return NP_OK;
}

/* Run as the options and standard input say. */
static int
run(struct ns_daemon *d, struct np_err *err)
{
	struct stat in;

	d->log->level = d->args.debug || d->args.verbose > 1 ? NP_LOG_DEBUG
			: d->args.verbose == 1               ? NP_LOG_INFO
							     : NP_LOG_ERROR;
	d->limits = d->args.limits;
	d->owner = getuid(); /* before go_unprivileged() */
	d->stats.started_ns = np_now();
	d->stats.started_at_s = np_clock(CLOCK_REALTIME) / NP_SEC;
	if (d->args.status) {
		return ns_status_ask(d->args.port, stdout, err) == NP_OK
			   ? NP_OK
			   : np_fail_in(err, "--status");
	}
	if (!d->args.no_inetd && fstat(0, &in) == 0 && S_ISSOCK(in.st_mode)) {
		return run_for_inetd(d, err);
	}
	if (d->args.stray != NULL) {
		fprintf(stderr,
			"netserver: %.200s: ignored: unexpected argument (-p sets a port)\n",
			d->args.stray);
	}
	return run_daemon(d, err);
}

int
main(int argc, char **argv)
{
	struct np_log log = { .level = NP_LOG_INFO, .sink = np_log_write };
	struct ns_daemon d = { .log = &log, .log_out.fd = -1 };
	struct np_err err = { .code = NP_OK };
	int rc;

	log.ctx = &d.log_out;
	np_fds_fill();
	rc = ns_args_parse(&d.args, argc, argv, &err);
	if (rc != NP_OK && err.sys < 0) {
		/* For an unknown letter, the message of getopt(3) and netperf's daemon. */
		fprintf(stderr, "%s: invalid option -- '%c'\nUsage: netserver [options] \n",
			argv[0], -err.sys);
		return 1;
	}
	if (rc == NP_OK && (d.args.usage || d.args.help)) {
		ns_args_usage(d.args.help ? stdout : stderr);
		return d.args.help ? 0 : 1;
	}
	if (rc == NP_OK && d.args.version) {
		printf("Netperf version 2.7.0\n");
		return fflush(stdout) == 0 ? 0 : 1;
	}
	rc = rc == NP_OK ? run(&d, &err) : rc;
	if (rc != NP_OK && err.msg[0] != '\0') {
		fprintf(stderr, "netserver: %s\n", err.msg);
	}
	return rc == NP_OK ? 0 : 1;
}
