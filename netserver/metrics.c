#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/output.h"
#include "base/text.h"
#include "base/trusted.h"
#include "netserver/status.h"

/* ---- The text ---- */

enum { LABEL = 80 };

struct metrics {
	char *text;
	size_t size, len;
	char port[LABEL]; /* escaped */
};

/* A label's value: backslash, quote and newline are all that has to be escaped. */
static void
escape(char out[LABEL], const char *value)
{
	size_t n = 0;

	for (; *value != '\0' && n + 3 < LABEL; value++) {
		if (*value == '\\' || *value == '"' || *value == '\n') {
			out[n++] = '\\';
		}
		out[n++] = (char)(*value == '\n' ? 'n' : *value);
	}
	out[n] = '\0';
}

/* A metric of one value; the value as text, since some have no number. */
static void
put(struct metrics *m, const char *name, const char *type, const char *help, const char *value)
{
	m->len = np_text_add(m->text, m->size, m->len,
			     "# HELP netserver_%s %s\n# TYPE netserver_%s %s\n"
			     "netserver_%s{port=\"%s\"} %s\n",
			     name, help, name, type, name, m->port, value);
}

static void
put_number(struct metrics *m, const char *name, const char *type, const char *help, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	put(m, name, type, help, text);
}

static void
put_limit(struct metrics *m, const char *name, const char *help, uint64_t n)
{
	if (n == 0) {
		put(m, name, "gauge", help, "+Inf");
	} else {
		put_number(m, name, "gauge", help, n);
	}
}

/* When it started by the clock on the wall: the same in every scrape, unless that clock is set. */
static uint64_t
start_time(const struct ns_stats *s)
{
	struct timespec wall;
	uint64_t now;

	clock_gettime(CLOCK_REALTIME, &wall);
	now = np_now();
	return ((uint64_t)wall.tv_sec * NP_SEC + (uint64_t)wall.tv_nsec -
		(now > s->started_ns ? now - s->started_ns : 0)) /
	       NP_SEC;
}

static void
put_counters(struct metrics *m, const struct ns_stats *s)
{
	static const char counter[] = "counter";

	put_number(m, "start_time_seconds", "gauge", "When the daemon started, in Unix time.",
		   start_time(s));
	put_number(m, "connections_total", counter, "Control connections accepted.",
		   s->connections);
	put_number(m, "sessions_total", counter, "Sessions begun.", s->sessions);
	put_number(m, "sessions_killed_total", counter,
		   "Sessions that ran too long and were ended, or that a signal ended.", s->killed);
	put_number(m, "tests_total", counter, "Tests ended, failed ones included.", s->tests);
	put_number(m, "tests_failed_total", counter, "Tests that failed.", s->tests_failed);
	put_number(m, "received_bytes_total", counter, "Bytes received in tests.",
		   s->received_bytes);
	put_number(m, "sent_bytes_total", counter, "Bytes sent in tests.", s->sent_bytes);
	put_number(m, "transactions_total", counter, "Transactions of tests.", s->transactions);
}

/* All reasons, also those at 0: a rate needs the series before the first refusal. */
static void
put_refusals(struct metrics *m, const struct ns_stats *s)
{
	m->len = np_text_add(m->text, m->size, m->len,
			     "# HELP netserver_refused_total Clients and tests refused.\n"
			     "# TYPE netserver_refused_total counter\n");
	for (int i = 0; i < NS_REFUSALS; i++) {
		m->len =
		    np_text_add(m->text, m->size, m->len,
				"netserver_refused_total{port=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
				m->port, ns_refusal_name((enum ns_refusal)i), s->refused[i]);
	}
}

static void
put_states(struct metrics *m, const struct ns_stats *s)
{
	static const char gauge[] = "gauge";

	put_number(m, "waiting_sessions", gauge, "Sessions that wait for their turn now.",
		   s->waiting_now);
	put_number(m, "silent_connections", gauge, "Connections without a session.", s->silent_now);
}

/* What all sessions share. */
static void
put_goods(struct metrics *m, const struct ns_stats *s, const struct ns_limits *l)
{
	for (int i = 0; i < NP_GOODS; i++) {
		const struct ns_good *g = ns_good((enum np_good)i);
		char help[LABEL];

		snprintf(help, sizeof(help), "The %s in use now.", g->words);
		put_number(m, g->now, "gauge", help, s->held[i]);
		snprintf(help, sizeof(help), "Limit of %s for all sessions together.", g->words);
		if (g->none_at_0) {
			put_number(m, g->most, "gauge", help, l->all[i]);
		} else {
			put_limit(m, g->most, help, l->all[i]);
		}
	}
}

static void
put_limits(struct metrics *m, const struct ns_limits *l)
{
	put_limit(m, "limit_sessions_per_address", "Limit of sessions at once from one address.",
		  (uint64_t)l->per_address);
	put_limit(m, "limit_new_sessions_per_second", "Limit of new sessions a second.",
		  (uint64_t)l->rate);
	put_number(m, "limit_silent_connections", "gauge",
		   "Limit of connections without a session.", (uint64_t)l->silent);
	put_limit(m, "limit_session_memory_bytes", "Limit of the memory of one session.",
		  l->each.bytes);
	put_limit(m, "limit_test_seconds", "Limit of the length of a test.", l->each.seconds);
	put_limit(m, "limit_message_bytes", "Limit of the size of a message.", l->each.message);
	put_limit(m, "limit_test_flows", "Limit of the data connections of a test.", l->each.flows);
	put_limit(m, "limit_idle_seconds", "Limit of the time between two requests.",
		  l->each.idle_s);
}

size_t
ns_metrics_text(const struct ns_view *v, char *text, size_t size)
{
	struct metrics m = { .text = text, .size = size };

	text[0] = '\0';
	escape(m.port, v->port);
	put_counters(&m, v->stats);
	put_refusals(&m, v->stats);
	put_states(&m, v->stats);
	put_goods(&m, v->stats, v->limits);
	put_limits(&m, v->limits);
	return m.len;
}

/* ---- The file ---- */

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
		np_fail(err, NP_EUSAGE, 0, "'%.300s' is not a name of a file", path);
		return -1;
	}
	return np_trusted_open(dir, NP_TRUSTED_DIR, err);
}

int
ns_metrics_write(int dir_fd, const char *name, const struct ns_view *v, struct np_err *err)
{
	char text[NS_STATUS_MAX];
	struct np_output file;
	int failed;

	ns_metrics_text(v, text, sizeof(text));
	/* Its other name begins with a dot and has no ending that collectors read. Whatever the
	 * umask is, it is to be read. */
	failed = np_output_beside(&file, dir_fd, name, 0644);
	if (failed == 0) {
		failed = dprintf(file.fd, "%s", text) < 0 ? errno : 0;
		failed = np_output_end(&file, failed);
	}
	return failed != 0 ? np_fail(err, NP_ESYS, failed, "write metrics to %.260s", name) : NP_OK;
}
