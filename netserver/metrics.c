#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "base/trusted.h"
#include "netserver/status.h"

enum { NAME = 80 }; /* bytes of a name or help text */

struct metrics {
	FILE *out;
	const char *port; /* the label of all series */
};

/* The lines before a metric's values. */
static void
put_head(const struct metrics *m, const char *name, const char *help)
{
	fprintf(m->out, "# HELP netserver_%s %s\n# TYPE netserver_%s %s\n", name, help, name,
		strstr(name, "_total") != NULL ? "counter" : "gauge");
}

/* A metric of one value: a counter if its name ends in _total. */
static void
put(const struct metrics *m, const char *name, const char *help, uint64_t value)
{
	put_head(m, name, help);
	fprintf(m->out, "netserver_%s{port=\"%s\"} %" PRIu64 "\n", name, m->port, value);
}

/* A limit. 0 stands for no limit, unless none_at_0. */
static void
put_limit(const struct metrics *m, const char *name, const char *help, uint64_t limit,
	  bool none_at_0)
{
	if (limit != 0 || none_at_0) {
		put(m, name, help, limit);
	} else {
		put_head(m, name, help);
		fprintf(m->out, "netserver_%s{port=\"%s\"} +Inf\n", name, m->port);
	}
}

/* A row of limits.def, if it has a metric; tells: what is limited. */
static void
put_row(const struct metrics *m, const char *name, bool is_bytes, const char *tells, uint64_t n)
{
	char help[NAME];

	if (name != NULL) {
		snprintf(help, sizeof(help), "Limit of %s%s.", is_bytes ? "bytes " : "", tells);
		put_limit(m, name, help, n, false);
	}
}

int
ns_metrics_print(FILE *out, const void *ctx)
{
	const struct ns_daemon *d = ctx;
	const struct metrics m = { .out = out, .port = d->port };
	enum { COUNT, SECONDS, SHARED, LENGTH, BYTES }; /* units of limits.def */
	const struct ns_stats *s = &d->stats;

	put(&m, "start_time_seconds", "When the daemon started, in Unix time.", s->started_at_s);
	put(&m, "connections_total", "Connections accepted at the control port.", s->connections);
	put(&m, "sessions_total", "Sessions begun.", s->sessions);
	put(&m, "sessions_killed_total",
	    "Sessions that ran too long and were ended, or that a signal ended.", s->killed);
	put(&m, "tests_total", "Tests ended, failed ones included.", s->tests);
	put(&m, "tests_failed_total", "Tests that failed.", s->tests_failed);
	put(&m, "received_bytes_total", "Bytes received in tests.", s->received_bytes);
	put(&m, "sent_bytes_total", "Bytes sent in tests.", s->sent_bytes);
	put(&m, "transactions_total", "Transactions of tests.", s->transactions);
	put(&m, "log_lines_lost_total", "Lines of the log for which there was no room.",
	    d->log_out.lost);
	put(&m, "log_lines_left_out_total",
	    "Lines of the log that clients caused beyond the limit.",
	    d->lines.left_out + d->session_lines.left_out);
	put(&m, "metrics_lost_total", "Times that this file could not be written.",
	    s->metrics_lost);
	/* All reasons, also those at 0: a rate needs the series before the first refusal. */
	put_head(&m, "refused_total", "Clients and tests refused.");
	for (int i = 0; i < NS_REFUSALS; i++) {
		fprintf(m.out, "netserver_refused_total{port=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
			m.port, ns_refusals[i].name, s->refused[i]);
	}
	put(&m, "waiting_sessions", "Sessions that wait for their turn now.", s->waiting_now);
	put(&m, "silent_connections", "Connections without a session.", s->silent_now);
	put(&m, "limit_silent_connections", "Limit of connections without a session.",
	    (uint64_t)d->limits.silent);
	for (int i = 0; i < NP_RESOURCES; i++) {
		const struct ns_resource *resource = &ns_resources[i];
		char text[NAME], name[NAME];

		snprintf(name, sizeof(name), "%s%s", i == NP_RES_SESSIONS ? "active_" : "",
			 resource->metric);
		snprintf(text, sizeof(text), "The %s in use now.", resource->words);
		put(&m, name, text, s->held[i]);
		snprintf(name, sizeof(name), "limit_%s", resource->metric);
		snprintf(text, sizeof(text), "Limit of %s for all sessions together.",
			 resource->words);
		put_limit(&m, name, text, d->limits.all[i], resource->none_at_0);
	}
#define NS_LIMIT(unit, option, least, most, member, usual, tells, metric, text)                    \
	put_row(&m, metric, (unit) == BYTES, tells, (uint64_t)d->limits.member);
#include "netserver/limits.def"
#undef NS_LIMIT
	return 0;
}

int
ns_metrics_dir(const char *path, const char **name, struct np_err *err)
{
	const char *slash = strrchr(path, '/');
	char dir[4096] = ".";

	*name = slash != NULL ? slash + 1 : path;
	if (slash != NULL) {
		int n = snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path + 1), path);

		if (n < 0 || (size_t)n >= sizeof(dir)) {
			np_fail(err, NP_ESYS, ENAMETOOLONG, "open %.60s...", path);
			return -1;
		}
	}
	if ((*name)[0] == '\0') {
		np_usage(err, "'%.300s' is not a name of a file", path);
		return -1;
	}
	return np_trusted_open(dir, NP_TRUSTED_DIR, err);
}

int
ns_metrics_write(const struct ns_daemon *d, struct np_err *err)
{
	struct np_output file;
	/* Collectors skip its temporary name, which begins with a dot. 0644 despite the umask. */
	int failed = np_output_beside(&file, d->metrics_dir, d->metrics_name, 0644);

	failed = failed == 0 ? np_output_fill(&file, ns_metrics_print, d) : failed;
	return failed != 0
		   ? np_fail(err, NP_ESYS, failed, "write metrics to %.260s", d->metrics_name)
		   : NP_OK;
}
