/*
 * The log file: what a line looks like, and what becomes of it when the file, its directory or the
 * room on the disk goes away.
 */
#include "netserver/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/check.h"

enum { TEXT = 1 << 20 };

/* A directory, a file in it, and the log as it was before. */
struct place {
	char dir[32], path[64], old[64];
	char text[TEXT];
	char told[1000]; /* what the sink before was given last */
	unsigned told_count;
	struct np_log before;
	struct ns_logfile file;
	struct np_log log;
	struct np_err err;
};

static void
note_before(void *ctx, enum np_log_level level, bool is_event, const char *line)
{
	struct place *p = ctx;

	assert_int_equal(level, NP_LOG_ERROR);
	assert_false(is_event);
	p->told_count++;
	snprintf(p->told, sizeof(p->told), "%s", line);
}

static int
set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	strcpy(p->dir, "/tmp/np-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->path, sizeof(p->path), "%s/log", p->dir);
	snprintf(p->old, sizeof(p->old), "%s/log.1", p->dir);
	p->before = (struct np_log){ .sink = note_before, .ctx = p };
	p->log = (struct np_log){ .level = NP_LOG_DEBUG, .sink = ns_logfile_sink, .ctx = &p->file };
	p->file.fd = -1;
	*state = p;
	return 0;
}

static int
tear_down(void **state)
{
	struct place *p = *state;

	ns_logfile_close(&p->file);
	unlink(p->path);
	unlink(p->old);
	rmdir(p->dir);
	free(p);
	return 0;
}

static void
open_log(struct place *p)
{
	if (ns_logfile_open(&p->file, p->path, &p->before, &p->err) != NP_OK) {
		fail_msg("%s", p->err.msg);
	}
}

/* The file's text, in p->text. */
static const char *
text_of(struct place *p, const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, p->text, TEXT - 1);

	assert_true(n >= 0);
	p->text[n] = '\0';
	close(fd);
	return p->text;
}

/* Check a line's head, which all have, and return what stands behind it. */
static const char *
behind_head(const char *line, long pid, const char *level)
{
	struct tm tm = { .tm_isdst = 0 };
	struct timespec now;
	const char *rest;
	long micros, who;
	char name[8];
	int end = 0;

	assert_int_equal(strncmp(line, "time=", 5), 0);
	rest = strptime(line + 5, "%Y-%m-%dT%H:%M:%S", &tm);
	assert_non_null(rest);
	clock_gettime(CLOCK_REALTIME, &now); /* time(2) may still be in the second before */
	assert_in_range(now.tv_sec - timegm(&tm), 0, 60);
	assert_int_equal(sscanf(rest, ".%6ldZ pid=%ld level=%7s%n", &micros, &who, name, &end), 3);
	assert_int_equal(strchr(rest, 'Z') - rest, 7);
	assert_int_equal(who, pid);
	assert_string_equal(name, level);
	return rest + end;
}

static size_t
count_of(const char *text, const char *part)
{
	size_t n = 0;

	while ((text = strstr(text, part)) != NULL) {
		text += strlen(part);
		n++;
	}
	return n;
}

static void
a_line_is_fields_all_of_it(void **state)
{
	struct place *p = *state;
	struct np_event e;
	struct stat st;
	const char *text;

	umask(022);
	open_log(p);
	np_log(&p->log, NP_LOG_INFO, "%s", "192.0.2.1 port 7: says \"no\"\nlevel=error");
	np_event_begin(&e, "refused");
	np_event_text(&e, "peer", "192.0.2.1");
	np_log_event(&p->log, NP_LOG_ERROR, &e, "too many");
	text = behind_head(text_of(p, p->path), getpid(), "info");
	assert_int_equal(
	    strncmp(text, " msg=\"192.0.2.1 port 7: says \\\"no\\\"?level=error\"\n",
		    strlen(" msg=\"192.0.2.1 port 7: says \\\"no\\\"?level=error\"\n")),
	    0);
	text = behind_head(strchr(text, '\n') + 1, getpid(), "error");
	assert_string_equal(text, " event=refused peer=192.0.2.1 msg=\"too many\"\n");
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_true((fcntl(p->file.fd, F_GETFD) & FD_CLOEXEC) != 0);
	assert_int_equal(p->told_count, 0);
}

static void
a_file_is_appended_to(void **state)
{
	struct place *p = *state;
	FILE *out = fopen(p->path, "w");

	assert_non_null(out);
	fputs("what was there\n", out);
	fclose(out);
	open_log(p);
	np_log(&p->log, NP_LOG_INFO, "one");
	/* As logrotate's copytruncate does. */
	assert_int_equal(count_of(text_of(p, p->path), "what was there\ntime="), 1);
	assert_int_equal(truncate(p->path, 0), 0);
	np_log(&p->log, NP_LOG_INFO, "two");
	assert_string_equal(behind_head(text_of(p, p->path), getpid(), "info"), " msg=two\n");
}

static void
the_longest_lines_are_whole(void **state)
{
	struct place *p = *state;
	char text[NP_LOG_TEXT + 1];
	struct np_event e;

	open_log(p);
	memset(text, '"', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	np_log(&p->log, NP_LOG_DEBUG, "%s", text);
	assert_int_equal(count_of(text_of(p, p->path), "\\\""), NP_LOG_TEXT - 1);
	assert_int_equal(count_of(p->text, "\"\n"), 1);
	np_event_begin(&e, "x");
	np_log_event(&p->log, NP_LOG_DEBUG, &e, "%s", text);
	assert_int_equal(count_of(text_of(p, p->path), "\"\n"), 2);
	assert_int_equal(p->told_count, 0);
}

static void
what_could_make_the_daemon_wait_is_refused(void **state)
{
	struct place *p = *state;
	int reader;

	assert_int_equal(mkfifo(p->path, 0600), 0);
	assert_int_equal(ns_logfile_open(&p->file, p->path, &p->before, &p->err), NP_EUSAGE);
	assert_has(p->err.msg, "not a regular file");
	reader = open(p->path, O_RDONLY | O_NONBLOCK);
	assert_int_equal(ns_logfile_open(&p->file, p->path, &p->before, &p->err), NP_EUSAGE);
	close(reader);
	assert_int_equal(ns_logfile_open(&p->file, "/dev/null", &p->before, &p->err), NP_EUSAGE);
	assert_int_equal(ns_logfile_open(&p->file, "", &p->before, &p->err), NP_EUSAGE);
	assert_int_equal(ns_logfile_open(&p->file, p->dir, &p->before, &p->err), NP_EUSAGE);
	assert_int_equal(ns_logfile_open(&p->file, "/nosuch/log", &p->before, &p->err), NP_ESYS);
	assert_has(p->err.msg, "/nosuch/log");
	assert_int_equal(p->file.fd, -1);
}

static void
a_file_moved_away_is_left_by_reopening(void **state)
{
	struct place *p = *state;

	open_log(p);
	np_log(&p->log, NP_LOG_INFO, "one");
	assert_int_equal(rename(p->path, p->old), 0);
	np_log(&p->log, NP_LOG_INFO, "two");
	assert_int_equal(ns_logfile_reopen(&p->file, &p->err), NP_OK);
	np_log(&p->log, NP_LOG_INFO, "three");
	assert_int_equal(count_of(text_of(p, p->old), "\n"), 2);
	assert_has(p->text, "msg=two\n");
	assert_string_equal(behind_head(text_of(p, p->path), getpid(), "info"), " msg=three\n");
}

static void
a_daemon_that_leaves_its_directory_finds_the_file_again(void **state)
{
	struct place *p = *state;
	char here[PATH_MAX];

	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(p->dir), 0);
	assert_int_equal(ns_logfile_open(&p->file, "log", &p->before, &p->err), NP_OK);
	assert_string_equal(p->file.path, p->path);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(ns_logfile_reopen(&p->file, &p->err), NP_OK);
	assert_int_equal(chdir(here), 0);
}

static void
without_its_directory_the_old_file_is_written_on(void **state)
{
	struct place *p = *state;
	char text[8192];
	ssize_t n;
	int old;

	open_log(p);
	old = open(p->path, O_RDONLY);
	assert_int_equal(unlink(p->path), 0);
	assert_int_equal(rmdir(p->dir), 0);
	np_log(&p->log, NP_LOG_INFO, "one");
	assert_int_equal(ns_logfile_reopen(&p->file, &p->err), NP_ESYS);
	assert_int_equal(p->err.sys, ENOENT);
	assert_int_equal(p->told_count, 1);
	assert_has(p->told, p->path);
	assert_has(p->told, "the old one is kept");
	np_log(&p->log, NP_LOG_INFO, "two");
	n = read(old, text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	close(old);
	assert_int_equal(count_of(text, "\n"), 3);
	assert_has(text, "the old one is kept");
	assert_has(text, "msg=two\n");
	/* It comes back. */
	assert_int_equal(mkdir(p->dir, 0700), 0);
	assert_int_equal(ns_logfile_reopen(&p->file, &p->err), NP_OK);
	np_log(&p->log, NP_LOG_INFO, "three");
	assert_string_equal(behind_head(text_of(p, p->path), getpid(), "info"), " msg=three\n");
	assert_int_equal(p->told_count, 1);
}

static void
limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A limit for files stands for the end of the disk: write(2) answers in the same way. */
static void
lines_without_room_are_counted(void **state)
{
	struct place *p = *state;
	const char *line;

	signal(SIGXFSZ, SIG_IGN);
	open_log(p);
	np_log(&p->log, NP_LOG_INFO, "one");
	limit_files(100); /* in the midst of the second */
	for (int i = 0; i < 7; i++) {
		np_log(&p->log, NP_LOG_INFO, "lost");
	}
	assert_int_equal(p->told_count, 1);
	assert_has(p->told, "lines are lost");
	assert_int_equal(p->file.dropped, 7);
	assert_int_equal(strlen(text_of(p, p->path)), 100);
	limit_files(RLIM_INFINITY);
	np_log(&p->log, NP_LOG_INFO, "two");
	np_log(&p->log, NP_LOG_INFO, "three");
	assert_int_equal(count_of(text_of(p, p->path), "\n"), 5);
	line = strchr(strchr(p->text, '\n') + 1, '\n') + 1;
	line = behind_head(line, getpid(), "error");
	assert_int_equal(strncmp(line,
				 " event=log-lines-dropped lines=7 reason=\"No space left on "
				 "device\"\n",
				 strlen(line) < 66 ? strlen(line) : 66),
			 0);
	line = behind_head(strchr(line, '\n') + 1, getpid(), "info");
	assert_int_equal(strncmp(line, " msg=two\n", 9), 0);
	line = behind_head(strchr(line, '\n') + 1, getpid(), "info");
	assert_string_equal(line, " msg=three\n");
	/* Once more: every time that it begins is told. */
	limit_files(strlen(p->text));
	np_log(&p->log, NP_LOG_INFO, "lost");
	assert_int_equal(p->told_count, 2);
	assert_has(p->told, "File too large");
	limit_files(RLIM_INFINITY);
	np_log(&p->log, NP_LOG_INFO, "four");
	assert_has(text_of(p, p->path), "lines=1 reason=\"File too large\"\n");
}

/* Run body in a process of its own whose standard error is a pipe that nobody reads. */
static void
with_a_stuck_pipe(void (*body)(struct place *, int), struct place *p)
{
	int fd[2], status;
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	if (pid == 0) {
		alarm(20); /* should it wait after all */
		dup2(fd[1], STDERR_FILENO);
		body(p, fd[0]);
		_exit(0);
	}
	close(fd[0]);
	close(fd[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define OR_EXIT(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			_exit(__LINE__ % 250 + 1);                                                 \
		}                                                                                  \
	} while (0)

static void
log_into_the_pipe(struct place *p, int reader)
{
	ssize_t n;

	OR_EXIT(ns_logfile_open(&p->file, "/dev/stderr", &p->before, &p->err) == NP_OK);
	OR_EXIT((fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) == 0);
	for (int i = 0; i < 5000; i++) {
		np_log(&p->log, NP_LOG_INFO, "%0100d", i);
	}
	/* The sink before may lead into the same pipe. */
	OR_EXIT(p->file.dropped > 1000 && p->told_count == 0);
	n = read(reader, p->text, TEXT);
	OR_EXIT(n > 30000);
	np_log(&p->log, NP_LOG_INFO, "room");
	OR_EXIT(p->file.dropped == 0);
	n = read(reader, p->text, TEXT - 1);
	OR_EXIT(n > 0);
	p->text[n] = '\0';
	OR_EXIT(strstr(p->text, "event=log-lines-dropped lines=") != NULL);
	OR_EXIT(strstr(p->text, " msg=room\n") != NULL);
}

static void
nobody_waits_for_a_reader_of_standard_error(void **state)
{
	with_a_stuck_pipe(log_into_the_pipe, *state);
}

static void
sessions_write_whole_lines(void **state)
{
	struct place *p = *state;
	const char *line;
	size_t lines = 0;

	open_log(p);
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			for (int n = 0; n < 200; n++) {
				np_log(&p->log, NP_LOG_INFO, "%0*d", 100 * (i + 1), 0);
			}
			_exit(0);
		}
	}
	while (wait(NULL) > 0) {
	}
	line = text_of(p, p->path);
	for (; *line != '\0'; line = strchr(line, '\n') + 1) {
		const char *msg = strstr(line, "level=info msg=0");

		assert_int_equal(strncmp(line, "time=", 5), 0);
		assert_non_null(msg);
		assert_int_equal(strspn(msg + 15, "0") % 100, 0);
		assert_int_equal(msg[15 + strspn(msg + 15, "0")], '\n');
		lines++;
	}
	assert_int_equal(lines, 800);
}

#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOG_TEST(a_line_is_fields_all_of_it),
		LOG_TEST(a_file_is_appended_to),
		LOG_TEST(the_longest_lines_are_whole),
		LOG_TEST(what_could_make_the_daemon_wait_is_refused),
		LOG_TEST(a_file_moved_away_is_left_by_reopening),
		LOG_TEST(a_daemon_that_leaves_its_directory_finds_the_file_again),
		LOG_TEST(without_its_directory_the_old_file_is_written_on),
		LOG_TEST(lines_without_room_are_counted),
		LOG_TEST(nobody_waits_for_a_reader_of_standard_error),
		LOG_TEST(sessions_write_whole_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
