/*
 * What the daemon tells of itself: the text for people, the metrics, the file of these, and the
 * socket over which the text is asked for.
 */
#include "netserver/status.h"

#include <fcntl.h>
#include <inttypes.h>
#include <regex.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "base/clock.h"
#include "netserver/passed.h"
#include "tests/lib/check.h"
#include "tests/lib/root.h"
#include "tests/lib/sockets.h"

enum { MANY = 2000 };

struct daemon {
	struct ns_daemon of;
	struct ns_session sessions[MANY];
	uint64_t now_ns;
	char text[NS_STATUS_MAX];
};

static int
set_up(void **state)
{
	struct daemon *d = calloc(1, sizeof(*d));
	uint64_t now = np_now();

	assert_non_null(d);
	d->of.stats = (struct ns_stats){
		.started_ns = now,
		.started_at_s = 1700000000,
		.connections = 1001,
		.sessions = 902,
		.tests = 803,
		.tests_failed = 74,
		.killed = 65,
		.received_bytes = UINT64_C(18000000000000000000),
		.sent_bytes = 999,
		.transactions = 606,
		.waiting_now = 48,
		.silent_now = 39,
		.held = { 57, 210000000, 31, 32, 33, 34, 35, 36, 37, 38 },
	};
	for (int i = 0; i < NS_REFUSALS; i++) {
		d->of.stats.refused[i] = (uint64_t)(100 + i);
	}
	d->of.stats.metrics_lost = 14;
	d->of.limits = (struct ns_limits){
		.all = { 500, 512000000, 301, 302, 303, 304, 305, 306, 307, 308 },
		.per_address = 111,
		.rate = 50,
		.silent = 64,
		.each = { .seconds = 3600,
			  .bytes = 64000000,
			  .message = 1000000,
			  .flows = 77,
			  .port_min = 5000,
			  .port_max = 5100,
			  .idle_s = 300,
			  .want_echo = true },
	};
	strcpy(d->of.port, "12865");
	d->of.log_out.lost = 12;
	d->of.lines.left_out = 9;
	d->of.session_lines.left_out = 4;
	d->now_ns = now + 3661 * NP_SEC;
	*state = d;
	return 0;
}

static int
tear_down(void **state)
{
	free(*state);
	return 0;
}

/* ---- For people ---- */

/* Sessions of 192.0.2.N, the first of the list with the lowest N. */
static void
add_sessions(struct daemon *d, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ns_session *s = &d->sessions[i];
		uint8_t bytes[4] = { 192, 0, 2, (uint8_t)i };

		*s = (struct ns_session){
			.next = i + 1 < count ? s + 1 : NULL,
			.pid = (int)(1000 + i),
			.began_ns = d->now_ns - 90 * NP_SEC,
			.holds = { [NP_RES_MEMORY] = 262144 },
			.tests = i,
		};
		np_addr_make(&s->peer, AF_INET, bytes, 40000);
		strcpy(s->wish.test, "TCP_STREAM");
	}
	d->of.sessions = d->sessions;
}

static size_t
status(struct daemon *d, size_t size)
{
	size_t n = ns_status_text(&d->of, d->now_ns, d->text, size);

	assert_int_equal(strlen(d->text), n);
	assert_true(n < size);
	return n;
}

TEST_WITH(the_text_tells_all_numbers, set_up, tear_down)
{
	static const char *const says[] = {
		"netserver on port 12865, process ",
		", up 01:01:01\n",
		"sessions     57 of 500\n",
		"ports        31 of 301\n",
		"threads      32 of 302\n",
		"spinning     33 of 303\n",
		"sockets      34 of 304\n",
		"filters      35 of 305\n",
		"in-flight    36 of 306\n",
		"datagrams    37 of 307\n",
		"captures     38 of 308\n",
		"waiting      48 sessions",
		" 39 of 64 connections without a session\n",
		" 210.0 MB of 512.0 MB granted\n",
		" 111 sessions from one address\n",
		" 50 new sessions a second\n",
		" 3600 seconds for a test\n",
		" 64.0 MB of memory for a session\n",
		" 1.0 MB for a message\n",
		" 77 data connections of a test\n",
		" 300 seconds between two requests\n",
		" ports 5000 to 5100 for data\n",
		" datagrams only to clients that prove their address\n",
		" 1001\n",
		" 902 sessions, 65 of them killed\n",
		" 803, 74 of them failed\n",
		" 18.0 EB received, 999 bytes sent, 606 transactions\n",
		"log          12 lines lost, 13 left out\n",
		"metrics      14 files not written\n",
		" 100 denied\n",
		" 119 max-flows\n",
		" 122 other\n",
	};
	struct daemon *d = *state;

	status(d, sizeof(d->text));
	for (size_t i = 0; i < LEN(says); i++) {
		assert_has(d->text, says[i]);
	}
	/* No limits, nothing refused. */
	memset(&d->of.limits, 0, sizeof(d->of.limits));
	memset(d->of.stats.refused, 0, sizeof(d->of.stats.refused));
	d->now_ns = d->of.stats.started_ns + (2 * 86400 + 59) * NP_SEC;
	status(d, sizeof(d->text));
	assert_null(strstr(d->text, "limit "));
	assert_has(d->text, "57 of any number");
	assert_has(d->text, "spinning     33 of 0\n"); /* none at all */
	assert_has(d->text, "210.0 MB of any amount");
	assert_has(d->text, "refused      0\n");
	assert_has(d->text, "up 2 d 00:00:59\n");
}

TEST_WITH(the_text_tells_what_sessions_do, set_up, tear_down)
{
	static const char *const does[] = { "no test", "TCP_STREAM of 10 s, 00:00:05",
					    "TCP?STREAM by count, 00:00:05",
					    "TCP_STREAM waits for its turn, 00:00:07",
					    "is ending" };
	struct daemon *d = *state;

	add_sessions(d, LEN(does));
	d->sessions[1].test_ns = d->now_ns - 5 * NP_SEC;
	d->sessions[1].wish.seconds = 10;
	d->sessions[2].test_ns = d->now_ns - 5 * NP_SEC;
	d->sessions[2].wish.test[3] = '\n'; /* of a compromised session */
	d->sessions[3].waiting_ns = d->now_ns - 7 * NP_SEC;
	d->sessions[4].ending = true;
	status(d, sizeof(d->text));
	for (size_t i = 0; i < LEN(does); i++) {
		char line[200];

		snprintf(line, sizeof(line), "   %d  192.0.2.%d port 40000       ", (int)(1000 + i),
			 (int)i);
		assert_has(d->text, line);
		snprintf(line, sizeof(line), "      00:01:30  %5d   262.1 kB  %s\n", (int)i,
			 does[i]);
		assert_has(d->text, line);
	}
	assert_null(strstr(d->text, "more"));
}

TEST_WITH(sessions_that_do_not_fit_are_counted, set_up, tear_down)
{
	struct daemon *d = *state;

	add_sessions(d, MANY);
	for (size_t size = 1800; size <= sizeof(d->text); size += size < 2300 ? 1 : 4999) {
		const char *table, *more;
		size_t shown = 0;

		status(d, size);
		table = strstr(d->text, "\nprocess ");
		more = strstr(d->text, "\nand ");
		assert_non_null(table);
		assert_non_null(more);
		for (table = strchr(table + 1, '\n'); table != more;
		     table = strchr(table + 1, '\n')) {
			shown++;
		}
		assert_int_equal(strtoul(more + 5, NULL, 10) + shown, MANY);
		assert_string_equal(more + strlen(more) - 6, " more\n");
	}
	/* Also where there is no room for anything. */
	for (size_t size = 1; size < 1800; size++) {
		status(d, size);
	}
}

/* ---- Metrics ---- */

/* A strict reader of the text format 0.0.4: every family with HELP and TYPE, and at once. */

struct family {
	char name[80], type[16];
	unsigned samples;
};

struct reader {
	struct family families[100];
	size_t count;
};

static bool
matches(const char *pattern, const char *text, regmatch_t *parts, size_t count)
{
	regex_t regex;
	bool found;

	assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED), 0);
	found = regexec(&regex, text, count, parts, 0) == 0;
	regfree(&regex);
	return found;
}

static void
part(char *out, size_t size, const char *text, regmatch_t at)
{
	snprintf(out, size, "%.*s", (int)(at.rm_eo - at.rm_so), text + at.rm_so);
}

static void
read_help(struct reader *r, const char *line, const regmatch_t *m)
{
	struct family *f = &r->families[r->count++];

	assert_true(r->count <= LEN(r->families));
	part(f->name, sizeof(f->name), line, m[1]);
	for (size_t i = 0; i + 1 < r->count; i++) {
		assert_string_not_equal(f->name, r->families[i].name);
	}
}

static void
read_type(struct reader *r, const char *line, const regmatch_t *m)
{
	struct family *f = &r->families[r->count - 1];
	size_t n = strlen(f->name);
	char name[80];

	assert_true(r->count > 0 && f->samples == 0 && f->type[0] == '\0');
	part(name, sizeof(name), line, m[1]);
	assert_string_equal(name, f->name);
	part(f->type, sizeof(f->type), line, m[2]);
	assert_int_equal(strcmp(f->type, "counter") == 0,
			 n > 6 && strcmp(f->name + n - 6, "_total") == 0);
}

static void
read_sample(struct reader *r, const char *line, const regmatch_t *m)
{
	struct family *f = &r->families[r->count - 1];
	char name[80];

	assert_true(r->count > 0 && f->type[0] != '\0');
	part(name, sizeof(name), line, m[1]);
	assert_string_equal(name, f->name);
	f->samples++;
}

static void
read_line(struct reader *r, const char *line)
{
	static const char help[] = "^# HELP (netserver_[a-z_]+) [A-Z][A-Za-z ,]+\\.$";
	static const char type[] = "^# TYPE (netserver_[a-z_]+) (counter|gauge)$";
	static const char sample[] =
	    "^(netserver_[a-z_]+)\\{port=\"([^\"\\]|\\\\[\\n\"])*\"(,reason=\"[a-z-]+\")?\\} "
	    "([0-9]+|\\+Inf)$";
	regmatch_t m[3];

	if (matches(help, line, m, LEN(m))) {
		read_help(r, line, m);
	} else if (matches(type, line, m, LEN(m))) {
		read_type(r, line, m);
	} else if (matches(sample, line, m, LEN(m))) {
		read_sample(r, line, m);
	} else {
		fail_msg("no line of metrics: %s", line);
	}
}

/* Returns the number of families. */
static size_t
read_metrics(const char *text)
{
	struct reader r = { .count = 0 };
	const char *end;
	char line[512];

	for (; *text != '\0'; text = end + 1) {
		end = strchr(text, '\n');
		assert_non_null(end); /* also behind the last one */
		assert_true((size_t)(end - text) < sizeof(line));
		snprintf(line, sizeof(line), "%.*s", (int)(end - text), text);
		read_line(&r, line);
	}
	for (size_t i = 0; i < r.count; i++) {
		assert_true(r.families[i].samples >= 1);
	}
	return r.count;
}

/* The value of a series, from its name's end; NAN when there is none. */
static double
value_of(const char *text, const char *series)
{
	char line[200];
	const char *at;

	snprintf(line, sizeof(line), "\nnetserver_%s ", series);
	at = strstr(text, line);
	return at != NULL ? strtod(at + strlen(line), NULL) : (double)NAN;
}

#define assert_metric(text, series, value)                                                         \
	assert_true(value_of((text), (series)) == (double)(value)) /* NAN equals nothing */

static void
metrics(struct daemon *d)
{
	FILE *out = fmemopen(d->text, sizeof(d->text), "w");

	assert_non_null(out);
	ns_metrics_print(out, &d->of);
	assert_int_equal(fclose(out), 0);
}

TEST_WITH(metrics_have_all_numbers, set_up, tear_down)
{
	static const struct {
		const char *series;
		double value;
	} wanted[] = {
		{ "start_time_seconds", 1700000000 },
		{ "connections_total", 1001 },
		{ "sessions_total", 902 },
		{ "sessions_killed_total", 65 },
		{ "tests_total", 803 },
		{ "tests_failed_total", 74 },
		{ "received_bytes_total", 18e18 },
		{ "sent_bytes_total", 999 },
		{ "transactions_total", 606 },
		{ "log_lines_lost_total", 12 },
		{ "log_lines_left_out_total", 13 },
		{ "metrics_lost_total", 14 },
		{ "active_sessions", 57 },
		{ "waiting_sessions", 48 },
		{ "silent_connections", 39 },
		{ "memory_bytes", 210e6 },
		{ "limit_sessions", 500 },
		{ "limit_sessions_per_address", 111 },
		{ "limit_new_sessions_per_second", 50 },
		{ "limit_silent_connections", 64 },
		{ "limit_memory_bytes", 512e6 },
		{ "data_ports", 31 },
		{ "limit_data_ports", 301 },
		{ "threads", 32 },
		{ "limit_threads", 302 },
		{ "spinning_threads", 33 },
		{ "limit_spinning_threads", 303 },
		{ "data_sockets", 34 },
		{ "limit_data_sockets", 304 },
		{ "call_filters", 35 },
		{ "limit_call_filters", 305 },
		{ "descriptors_in_flight", 36 },
		{ "limit_descriptors_in_flight", 306 },
		{ "one_port_datagram_sockets", 37 },
		{ "limit_one_port_datagram_sockets", 307 },
		{ "captures", 38 },
		{ "limit_captures", 308 },
		{ "limit_session_memory_bytes", 64e6 },
		{ "limit_test_seconds", 3600 },
		{ "limit_message_bytes", 1e6 },
		{ "limit_test_flows", 77 },
		{ "limit_idle_seconds", 300 },
	};
	struct daemon *d = *state;
	char series[100];

	metrics(d);
	/* Beside these: the refusals. */
	assert_int_equal(read_metrics(d->text), LEN(wanted) + 1);
	for (size_t i = 0; i < LEN(wanted); i++) {
		snprintf(series, sizeof(series), "%s{port=\"12865\"}", wanted[i].series);
		assert_metric(d->text, series, wanted[i].value);
	}
	for (int i = 0; i < NS_REFUSALS; i++) {
		snprintf(series, sizeof(series), "refused_total{port=\"12865\",reason=\"%s\"}",
			 ns_refusals[i].name);
		assert_metric(d->text, series, 100 + i);
	}
}

TEST_WITH(metrics_tell_missing_limits_from_zero, set_up, tear_down)
{
	struct daemon *d = *state;

	memset(&d->of.limits, 0, sizeof(d->of.limits));
	metrics(d);
	read_metrics(d->text);
	assert_metric(d->text, "limit_sessions{port=\"12865\"}", INFINITY);
	assert_metric(d->text, "limit_memory_bytes{port=\"12865\"}", INFINITY);
	/* None of these at all: that is a limit. */
	assert_metric(d->text, "limit_spinning_threads{port=\"12865\"}", 0);
	assert_metric(d->text, "limit_silent_connections{port=\"12865\"}", 0);
}

/* ---- The file of metrics ---- */

static void
limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST_WITH(a_file_of_metrics_is_replaced_whole, set_up, tear_down)
{
	char dir[] = "/tmp/np-test-XXXXXX", path[64];
	struct daemon *d = *state;
	struct np_err err;
	struct stat old, new;
	int fd, reader;

	umask(077);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/netserver.prom", dir);
	d->of.metrics_dir = fd = ns_metrics_dir(path, &d->of.metrics_name, &err);
	assert_true(fd >= 0);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	assert_string_equal(d->of.metrics_name, "netserver.prom");
	assert_int_equal(ns_metrics_write(&d->of, &err), NP_OK);
	assert_int_equal(stat(path, &old), 0);
	assert_int_equal(old.st_mode & 07777, 0644);
	reader = open(path, O_RDONLY);
	d->of.stats.sessions = 903;
	assert_int_equal(ns_metrics_write(&d->of, &err), NP_OK);
	assert_int_equal(stat(path, &new), 0);
	assert_true(old.st_ino != new.st_ino);
	read_file(path, d->text, NS_STATUS_MAX);
	read_metrics(d->text);
	assert_metric(d->text, "sessions_total{port=\"12865\"}", 903);
	/* Who was reading reads on in what it began with. */
	d->text[read(reader, d->text, NS_STATUS_MAX - 1)] = '\0';
	read_metrics(d->text);
	assert_metric(d->text, "sessions_total{port=\"12865\"}", 902);
	close(reader);
	assert_int_equal(names_in(dir), 1);

	/* No room: what was there stays, and nothing else does. */
	signal(SIGXFSZ, SIG_IGN);
	limit_files(1000);
	d->of.stats.sessions = 904;
	assert_int_equal(ns_metrics_write(&d->of, &err), NP_ESYS);
	limit_files(RLIM_INFINITY);
	assert_int_equal(err.sys, EFBIG);
	assert_has(err.msg, "netserver.prom");
	assert_int_equal(names_in(dir), 1);
	read_file(path, d->text, NS_STATUS_MAX);
	read_metrics(d->text);
	assert_metric(d->text, "sessions_total{port=\"12865\"}", 903);

	/* No directory. */
	unlink(path);
	rmdir(dir);
	assert_int_equal(ns_metrics_write(&d->of, &err), NP_ESYS);
	assert_int_equal(err.sys, ENOENT);
	close(fd);
}

TEST_WITH(a_directory_of_metrics_is_found, set_up, tear_down)
{
	struct daemon *d = *state;
	const char *name;
	struct np_err err;
	char path[5000];
	int fd;

	fd = ns_metrics_dir("file", &name, &err);
	assert_true(fd >= 0);
	assert_string_equal(name, "file");
	close(fd);
	fd = ns_metrics_dir("/file", &name, &err);
	assert_true(fd >= 0);
	assert_string_equal(name, "file");
	close(fd);
	assert_int_equal(ns_metrics_dir("/tmp/", &name, &err), -1);
	assert_int_equal(err.code, NP_EUSAGE);
	assert_int_equal(ns_metrics_dir("", &name, &err), -1);
	assert_int_equal(err.code, NP_EUSAGE);
	assert_int_equal(ns_metrics_dir("/nosuch/file", &name, &err), -1);
	assert_int_equal(err.code, NP_ESYS);
	assert_has(err.msg, "/nosuch/");
	memset(path, 'x', sizeof(path));
	path[4998] = '/';
	path[4999] = '\0';
	assert_int_equal(ns_metrics_dir(path, &name, &err), -1);
	assert_int_equal(err.sys, ENAMETOOLONG);
	path[0] = '\0';
	memset(path, 'x', 298);
	path[298] = '\0';
	d->of.metrics_dir = AT_FDCWD;
	d->of.metrics_name = path;
	assert_int_equal(ns_metrics_write(&d->of, &err), NP_ESYS);
}

/* ---- The socket ---- */

enum { SOMEBODY = 12345, ANOTHER = 12346 };

static char port[16]; /* nothing listens: it is a name only, this process's number */

/* Ask as that user in a process of its own; what it prints, and how it ended. */
struct asked {
	int rc;
	size_t len;
	char msg[512], text[NS_STATUS_MAX];
};

static void
ask_as(uid_t user, const char *at, int to)
{
	struct asked *a = calloc(1, sizeof(*a));
	char *text = NULL;
	FILE *out = open_memstream(&text, &a->len);
	struct np_err err = { .code = NP_OK };

	if (user != 0 && (setgid(user) != 0 || setuid(user) != 0)) {
		_exit(1);
	}
	a->rc = ns_status_ask(at, out, &err);
	fclose(out);
	strcpy(a->msg, err.msg);
	memcpy(a->text, text, a->len + 1);
	_exit(put_bytes(to, a, sizeof(*a)) ? 0 : 1);
}

/* The daemon at a listener, which runs as SOMEBODY unless as is 0, is asked by a user. */
static struct asked *
asked_by(uid_t user, uid_t as, int listener, uid_t owner, struct daemon *d)
{
	struct asked *a = calloc(1, sizeof(*a));
	int pair[2];
	pid_t asker, daemon;

	assert_non_null(a);
	d->of.status_fd = listener;
	d->of.owner = owner;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	asker = fork();
	if (asker == 0) {
		ask_as(user, port, pair[1]);
	}
	daemon = fork();
	if (daemon == 0) {
		if (as != 0 && (setgid(as) != 0 || setuid(as) != 0)) {
			_exit(1);
		}
		_exit(wait_readable(listener) ? (ns_status_answer(&d->of), 0) : 1);
	}
	assert_true(get_bytes(pair[0], a, sizeof(*a)));
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(ended(asker), 0);
	assert_int_equal(ended(daemon), 0);
	return a;
}

TEST_WITH(the_status_is_asked_over_a_socket, set_up, tear_down)
{
	struct daemon *d = *state;
	struct np_err err;
	struct asked *a;
	int fd = ns_status_listen(port, &err);

	assert_true(fd >= 0);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
	add_sessions(d, MANY); /* all that it can hold */
	a = asked_by(0, 0, fd, SOMEBODY, d);
	assert_int_equal(a->rc, NP_OK);
	assert_true(a->len > NS_STATUS_MAX - 200);
	assert_has(a->text, "netserver on port 12865, process ");
	assert_has(a->text, " more\n");
	free(a);
	assert_int_equal(ns_status_listen(port, &err), -1);
	assert_int_equal(err.sys, EADDRINUSE);
	close(fd);
	/* The name is free again. */
	fd = ns_status_listen(port, &err);
	assert_true(fd >= 0);
	close(fd);
}

TEST_WITH(strangers_get_one_line, set_up, tear_down)
{
	static const struct {
		uid_t user, as, owner;
		bool told;
	} cases[] = {
		{ 0, SOMEBODY, ANOTHER, true },
		{ SOMEBODY, SOMEBODY, 0, true },
		{ SOMEBODY, ANOTHER, SOMEBODY, true },
		{ SOMEBODY, ANOTHER, 0, false },
		{ SOMEBODY, 0, 0, false },
		{ SOMEBODY, 0, ANOTHER, false },
	};
	struct daemon *d = *state;
	struct np_err err;
	FREED_BY(close_fd) int fd = -1;

	skip_if(geteuid() != 0, "not root");
	fd = ns_status_listen(port, &err);
	assert_true(fd >= 0);
	for (size_t i = 0; i < LEN(cases); i++) {
		struct asked *a = asked_by(cases[i].user, cases[i].as, fd, cases[i].owner, d);

		assert_int_equal(a->rc, cases[i].told ? NP_OK : NP_EPEER);
		if (cases[i].told) {
			assert_has(a->text, "netserver on port");
			assert_null(strstr(a->text, "answered by"));
		} else {
			assert_int_equal(a->len, 0);
			assert_has(a->msg, "is for root");
		}
		free(a);
	}
}

/* Nobody keeps others from taking the name first: then what is said is not believed blindly. */
TEST_WITH(an_impostor_is_named_and_kept_off_the_terminal, set_up, tear_down)
{
	struct np_err err;
	struct asked *a;
	int pair[2];
	pid_t impostor, asker;

	skip_if(geteuid() != 0, "not root");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	impostor = fork();
	if (impostor == 0) {
		int fd, conn;

		if (setuid(SOMEBODY) != 0 || (fd = ns_status_listen(port, &err)) < 0 ||
		    !put_bytes(pair[1], "x", 1) || (conn = accepted_from(fd)) < 0) {
			_exit(1);
		}
		_exit(put_bytes(conn, "all \033[2Jwell\n\233", 14) ? 0 : 1);
	}
	a = calloc(1, sizeof(*a));
	assert_non_null(a);
	assert_true(get_bytes(pair[0], a, 1));
	asker = fork();
	if (asker == 0) {
		ask_as(0, port, pair[1]);
	}
	assert_true(get_bytes(pair[0], a, sizeof(*a)));
	assert_int_equal(a->rc, NP_OK);
	assert_string_equal(a->text, "all ?[2Jwell\n?(answered by a process of user 12345)\n");
	free(a);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(ended(asker), 0);
	assert_int_equal(ended(impostor), 0);
}

TEST_WITH(asking_ends_when_nobody_answers, set_up, tear_down)
{
	struct np_err err;
	uint64_t start = np_now();
	FREED_BY(close_fd) int fd = -1;

	assert_int_equal(ns_status_ask(port, stdout, &err), NP_ECONTROL);
	assert_has(err.msg, port);
	assert_true(np_now() - start < 4 * NP_SEC); /* less than the wait for an answer */
	assert_int_equal(ns_status_ask("no-such-service", stdout, &err), NP_ECONTROL);
	fd = ns_status_listen(port, &err);
	assert_int_equal(ns_status_ask(port, stdout, &err), NP_ECONTROL);
	assert_has(err.msg, "does not answer");
	assert_in_range(np_now() - start, 4 * NP_SEC, 30 * NP_SEC);
}

/* One that asks and never reads, or has gone again. */
TEST_WITH(an_answer_waits_for_nobody, set_up, tear_down)
{
	struct daemon *d = *state;
	struct np_err err;
	struct sockaddr_un un;
	socklen_t len = sizeof(un);
	uint64_t start = np_now();
	FREED_BY(close_fd) int fd = ns_status_listen(port, &err);

	add_sessions(d, MANY);
	assert_true(fd >= 0);
	d->of.status_fd = fd;
	ns_status_answer(&d->of); /* no client has connected */
	assert_int_equal(getsockname(fd, (struct sockaddr *)&un, &len), 0);
	for (int i = 0; i < 50; i++) {
		int asker = socket(AF_UNIX, SOCK_STREAM, 0);

		assert_int_equal(connect(asker, (struct sockaddr *)&un, len), 0);
		if (i % 2 == 0) {
			close(asker);
		}
		ns_status_answer(&d->of);
		if (i % 2 != 0) {
			close(asker);
		}
	}
	assert_true(np_now() - start < LONG_MS * NP_MSEC);
}

int
main(void)
{
	ns_passed_begin(); /* as the daemon does: a slow close(2) is hurried by signals */
	signal(SIGPIPE, SIG_IGN);
	snprintf(port, sizeof(port), "%ld", (long)getpid());
	return all_tests(NULL, NULL);
}
