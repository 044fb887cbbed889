/*
 * netserver: the far end of netperf's tests.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/log.h"
#include "net/addr.h"
#include "netserver/args.h"
#include "netserver/daemon.h"

/* How often TERM or INT came: the handler's, read wherever the daemon waits. */
static volatile sig_atomic_t ends_asked;

static void
on_end(int sig)
{
	(void)sig;
	ends_asked++;
}

static void
on_child(int sig)
{
	(void)sig; /* waking the daemon's ppoll() is all it is for */
}

/* TERM, INT and CHLD are blocked but while the daemon or a session waits. */
static void
take_signals(struct ns_daemon *d, sigset_t *let_in)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGCHLD };
	struct sigaction sa;
	sigset_t block;

	memset(&sa, 0, sizeof(sa));
	sigemptyset(&sa.sa_mask);
	sigemptyset(&block);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sa.sa_handler = signals[i] == SIGCHLD ? on_child : on_end;
		sigaction(signals[i], &sa, NULL);
		sigaddset(&block, signals[i]);
	}
	sigprocmask(SIG_BLOCK, &block, let_in);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigdelset(let_in, signals[i]);
	}
	np_drive_prepare();
	d->signals.let_in = let_in;
	d->signals.received = &ends_asked;
}

/*
 * Go to the background: the caller gets its prompt back and keeps all of its streams to itself.
 * Returns 1 in the parent, 0 in the daemon, -1 with errno.
 */
static int
detach(void)
{
	pid_t pid = fork();
	int null;

	if (pid != 0) {
		return pid > 0 ? 1 : -1;
	}
	setsid();
	null = open("/dev/null", O_RDWR);
	if (null < 0 || chdir("/") != 0) {
		return -1;
	}
	for (int fd = 0; fd <= 2; fd++) {
		dup2(null, fd);
	}
	if (null > 2) {
		close(null);
	}
	return 0;
}

static bool
is_socket(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

static int
listen_or_say(struct ns_daemon *d, const struct ns_args *a)
{
	const char *host = a->host[0] != '\0' ? a->host : NULL;
	const char *shown = host != NULL ? host : "IN(6)ADDR_ANY";
	struct np_err err = { .code = NP_OK };

	int rc = ns_daemon_listen(d, host, a->port, a->family, &err);

	if (rc == NP_ECONTROL) {
		/* A name that is none: the line shows them all, and is netperf's, two blanks too.
		 */
		fprintf(stderr, "Unable to start netserver with  '%s' port '%s' and family %s\n",
			shown, a->port, np_family_name(a->family));
		return 1;
	}
	if (rc != NP_OK) {
		fprintf(stderr,
			"netserver: Unable to start netserver with '%s' port '%s' and family "
			"%s: %s%s\n",
			shown, a->port, np_family_name(a->family), err.msg,
			err.sys == EADDRINUSE ? " (try another port with -p)" : "");
		return 1;
	}
	printf("Starting netserver with host '%s' port '%s' and family %s\n", shown, a->port,
	       np_family_name(a->family));
	if (fflush(stdout) != 0) {
		fprintf(stderr, "netserver: write to standard output: %s\n", strerror(errno));
	}
	return 0;
}

/* Before the daemon leaves for another directory. */
static int
open_fill_dir(struct ns_daemon *d, const struct ns_args *a)
{
	if (a->fill_dir == NULL) {
		return 0;
	}
	d->fill_dir = open(a->fill_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fill_dir < 0) {
		fprintf(stderr, "netserver: --fill-dir: open %s: %s\n", a->fill_dir,
			strerror(errno));
		return 1;
	}
	return 0;
}

static int
run_daemon(struct ns_daemon *d, const struct ns_args *a)
{
	sigset_t let_in;

	if (!a->foreground) {
		np_fds_drop(2);
	}
	if (open_fill_dir(d, a) != 0 || listen_or_say(d, a) != 0) {
		return 1;
	}
	if (!a->foreground) {
		int rc = detach();

		if (rc != 0) {
			if (rc < 0) {
				fprintf(stderr, "netserver: go to the background: %s\n",
					strerror(errno));
			}
			return rc < 0;
		}
		np_log_open_syslog("netserver");
		d->log->sink = np_log_to_syslog;
	}
	take_signals(d, &let_in);
	np_log(d->log, a->foreground ? NP_LOG_DEBUG : NP_LOG_INFO, "listening on port %s", a->port);
	ns_daemon_run(d);
	np_log(d->log, NP_LOG_INFO, "ended by a signal");
	return 0;
}

/* An unknown letter is told as getopt(3) and netperf's daemon tell it, and where to look. */
static int
complain(const char *name, const struct np_err *err)
{
	if (err->sys < 0) {
		fprintf(stderr, "%s: invalid option -- '%c'\nUsage: netserver [options] \n", name,
			-err->sys);
	} else {
		fprintf(stderr, "netserver: %s\n", err->msg);
	}
	return 1;
}

int
main(int argc, char **argv)
{
	struct ns_args args;
	struct np_log log = { .level = NP_LOG_INFO, .sink = np_log_to_stderr };
	struct ns_daemon d = { .log = &log };
	struct np_err err = { .code = NP_OK };

	np_fds_fill();
	if (ns_args_parse(&args, argc, argv, &err) != NP_OK) {
		return complain(argv[0], &err);
	}
	if (args.usage || args.help) {
		ns_args_usage(args.help ? stdout : stderr);
		return args.help ? 0 : 1;
	}
	if (args.version) {
		printf("Netperf version 2.7.0\n");
		return fflush(stdout) == 0 ? 0 : 1;
	}
	log.level = args.debug || args.verbose > 1 ? NP_LOG_DEBUG
		    : args.verbose == 1            ? NP_LOG_INFO
						   : NP_LOG_ERROR;
	d.no_fork = args.no_fork;
	d.quiet = args.quiet;
	d.passphrase = args.passphrase[0] != '\0' ? args.passphrase : NULL;
	if (!args.bound && is_socket(0)) {
		/* Started by inetd: standard input is the control connection. */
		sigset_t let_in;

		log.sink = np_log_to_syslog;
		np_log_open_syslog("netserver");
		if (open_fill_dir(&d, &args) != 0) {
			return 1;
		}
		take_signals(&d, &let_in);
		ns_daemon_serve(&d, 0);
		return 0;
	}
	return run_daemon(&d, &args);
}
