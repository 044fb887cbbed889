#include "netserver/args.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "wire/msg.h"

static int
set_family(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct ns_args *a = ctx;

	(void)arg;
	(void)err;
	a->family = o->letter == '6' ? AF_INET6 : AF_INET;
	return NP_OK;
}

/* Sets the bool at o->to, and notes that this is no inetd child. */
static int
set_standalone(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	static const bool yes = true;
	struct ns_args *a = ctx;

	(void)arg;
	(void)err;
	a->bound = true;
	memcpy((char *)ctx + o->to, &yes, sizeof(yes));
	return NP_OK;
}

static int
set_host(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct ns_args *a = ctx;
	struct np_pair pair;

	(void)o;
	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	if (pair.first != NULL && np_text_copy(a->host, sizeof(a->host), pair.first) != 0) {
		return np_fail(err, NP_EUSAGE, 0, "a name of more than %zu characters",
			       sizeof(a->host) - 1);
	}
	if (pair.second != NULL) {
		a->family = strchr(pair.second, '6') != NULL      ? AF_INET6
			    : strchr(pair.second, '4') != NULL    ? AF_INET
			    : strstr(pair.second, "inet") != NULL ? AF_INET
								  : AF_UNSPEC;
	}
	a->bound = true;
	return NP_OK;
}

static int
set_port(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct ns_args *a = ctx;
	int64_t n;

	(void)o;
	if ((np_parse_int(arg, &n) == 0 && (n < 0 || n > 65535)) ||
	    np_text_copy(a->port, sizeof(a->port), arg) != 0) {
		return np_fail(err, NP_EUSAGE, 0, "%.40s is no port (0 to 65535, or a service)",
			       arg);
	}
	a->bound = true;
	return NP_OK;
}

static int
set_passphrase(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	struct ns_args *a = ctx;

	(void)o;
	if (arg[0] == '\0' || np_text_copy(a->passphrase, sizeof(a->passphrase), arg) != 0) {
		return np_fail(err, NP_EUSAGE, 0, "a passphrase has 1 to %zu characters",
			       sizeof(a->passphrase) - 1);
	}
	return NP_OK;
}

/*
 * The file's first line. Who may read the file could as well be told; and so could its owner, who
 * can change its mode at any time.
 */
static int
read_passphrase(int fd, char *text, size_t size, struct np_err *err)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) != 0) {
		return np_fail(err, NP_ESYS, errno, "look at the file");
	}
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		return np_fail(err, NP_EUSAGE, 0, "the file is another user's (try chown %ld)",
			       (long)geteuid());
	}
	if ((st.st_mode & 066) != 0) {
		return np_fail(err, NP_EUSAGE, 0,
			       "others may read or write the file (try chmod 600)");
	}
	n = read(fd, text, size - 1);
	if (n < 0) {
		return np_fail(err, NP_ESYS, errno, "read the file");
	}
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return NP_OK;
}

static int
set_passphrase_file(void *ctx, const struct np_option *o, const char *arg, struct np_err *err)
{
	char text[sizeof(((struct ns_args *)0)->passphrase) + 1] = "";
	int fd = open(arg, O_RDONLY | O_CLOEXEC);
	int rc;

	if (fd < 0) {
		return np_fail(err, NP_ESYS, errno, "open %s", arg);
	}
	rc = read_passphrase(fd, text, sizeof(text), err);
	close(fd);
	if (rc == NP_OK) {
		rc = set_passphrase(ctx, o, text, err);
	}
	return rc == NP_OK ? rc : (np_fail_in(err, arg), rc);
}

#define ARG(member) offsetof(struct ns_args, member)

const struct np_option ns_options[] = {
	{ .letter = '4', .kind = NP_OPT_PLAIN, .help = "listen on IPv4 only", .set = set_family },
	{ .letter = '6',
	  .kind = NP_OPT_PLAIN,
	  .help = "listen on IPv6; as in netperf, IPv4 finds that too",
	  .set = set_family },
	{ .letter = 'd',
	  .name = "debug",
	  .kind = NP_OPT_FLAG,
	  .to = ARG(debug),
	  .help = "log everything, as if -v 2 were given" },
	{ .letter = 'D',
	  .name = "foreground",
	  .kind = NP_OPT_PLAIN,
	  .to = ARG(foreground),
	  .set = set_standalone,
	  .help = "stay in the foreground, log to standard error" },
	{ .letter = 'f',
	  .name = "no-fork",
	  .kind = NP_OPT_PLAIN,
	  .to = ARG(no_fork),
	  .set = set_standalone,
	  .help = "serve one client after another, without a process each" },
	{ .letter = 'h',
	  .kind = NP_OPT_PLAIN,
	  .to = ARG(usage),
	  .set = set_standalone,
	  .help = "show this text" },
	{ .letter = 'L',
	  .name = "listen",
	  .kind = NP_OPT_CUSTOM,
	  .arg = "name,family",
	  .set = set_host,
	  .help = "the address to listen on (every one)" },
	{ .letter = 'N',
	  .kind = NP_OPT_FLAG,
	  .to = ARG(quiet),
	  .help = "no debugging output, even if a client asks for it" },
	{ .letter = 'p',
	  .name = "port",
	  .kind = NP_OPT_CUSTOM,
	  .arg = "port",
	  .set = set_port,
	  .help = "the port to listen on (12865)" },
	{ .letter = 'v',
	  .name = "verbosity",
	  .kind = NP_OPT_COUNT,
	  .arg = "n",
	  .to = ARG(verbose),
	  .max = 9,
	  .help = "log 0: faults, 1: starts, too, 2: every test (1)" },
	{ .letter = 'V',
	  .kind = NP_OPT_PLAIN,
	  .to = ARG(version),
	  .set = set_standalone,
	  .help = "show the version" },
	{ .name = "help",
	  .kind = NP_OPT_PLAIN,
	  .to = ARG(help),
	  .set = set_standalone,
	  .help = "show this text on standard output" },
	{ .name = "version",
	  .kind = NP_OPT_PLAIN,
	  .to = ARG(version),
	  .set = set_standalone,
	  .help = "show the version" },
	{ .letter = 'n',
	  .kind = NP_OPT_COUNT,
	  .arg = "n",
	  .to = ARG(cpus),
	  .max = 256,
	  .help = "processors, where they can't be counted; here they can" },
	{ .letter = 'Z',
	  .kind = NP_OPT_CUSTOM,
	  .arg = "text",
	  .set = set_passphrase,
	  .help = "serve only who sends this first, by netperf's -Z; ps(1) shows it" },
	{ .name = "passphrase-file",
	  .kind = NP_OPT_CUSTOM,
	  .arg = "file",
	  .set = set_passphrase_file,
	  .help = "the same from a file's first line; a file of mode 600" },
	{ .name = "fill-dir",
	  .kind = NP_OPT_TEXT,
	  .arg = "dir",
	  .to = ARG(fill_dir),
	  .help = "where clients may name files to be sent, by netperf's -F (nowhere)" },
};
const size_t ns_options_count = sizeof(ns_options) / sizeof(ns_options[0]);

int
ns_args_parse(struct ns_args *a, int argc, char **argv, struct np_err *err)
{
	int words = 1;

	memset(a, 0, sizeof(*a));
	a->family = AF_UNSPEC;
	a->verbose = 1;
	snprintf(a->port, sizeof(a->port), "%d", NP_PORT);
	/* What stands behind "--" is let pass, as netperf's daemon does. */
	while (words < argc && strcmp(argv[words], "--") != 0) {
		words++;
	}
	return np_options_parse(ns_options, ns_options_count, 0, words, argv, a, err);
}

void
ns_args_usage(FILE *out)
{
	fputs("Usage: netserver [options] \nOptions:\n", out);
	np_options_print(out, ns_options, ns_options_count, 0);
}
