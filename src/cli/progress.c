#include "cli/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"

static const uint64_t redraw_ns = 250 * NP_MSEC;
enum {
	LONG_S = 2,  /* a shorter test needs no line */
	SAMPLES = 5, /* so the rate is that of the last four intervals, a second */
	COLUMNS = 80 /* if the terminal's are not known */
};

/* The work done at some time, by np_cli_work(). */
struct sample {
	uint64_t at_ns;
	double work;
};

struct np_progress_line {
	const struct np_cli *cli;
	struct np_repeat_plan repeat; /* how often the test runs */
	struct np_live live;
	bool always;      /* --progress always */
	int fd;           /* where it is drawn: standard error, non-blocking if possible */
	bool shares;      /* standard output is the same terminal or file */
	bool piped;       /* standard output is a pipe; its reader may print to the terminal */
	uint64_t counted; /* bytes or transactions of a test by count; 0: a test by time */
	uint64_t from_ns; /* not drawn before, unless `always` */

	pthread_mutex_t lock;          /* for the members below, and for the terminal */
	bool ended;                    /* it is not to be drawn any more */
	unsigned paused;               /* calls of np_progress_pause() not resumed yet */
	atomic_int *drawn;             /* the handler of signals reads it, too */
	bool was_drawn;                /* when it was paused */
	unsigned iteration;            /* 0: there is only one */
	struct np_live_view view;      /* the last one, */
	uint64_t at_ns;                /* and when it came */
	uint64_t since_ns;             /* when the present step began */
	struct sample sample[SAMPLES]; /* in this step, the newest first */
	unsigned samples;
};

/* Write n bytes, or as many as there is room for. Called by a signal handler, too. */
static void
put(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t put = write(fd, text, n);

		if (put <= 0) {
			return; /* no room now, or the reader is gone */
		}
		text += put;
		n -= (size_t)put;
	}
}

void
np_progress_erase(atomic_int *drawn)
{
	static const char erase[] = "\r\033[K";
	int fd = atomic_exchange(drawn, 0); /* only one of thread and handler erases it */

	if (fd != 0) {
		put(fd, erase, sizeof(erase) - 1);
	}
}

/* Add the newest sample; the oldest one is dropped if there is no room. */
static void
add_sample(struct np_progress_line *s, uint64_t at_ns, double work)
{
	memmove(s->sample + 1, s->sample, (SAMPLES - 1) * sizeof(s->sample[0]));
	s->sample[0] = (struct sample){ .at_ns = at_ns, .work = work };
	s->samples += s->samples < SAMPLES;
}

/* Note the work done so far. Returns the rate since the oldest sample; < 0: unknown. */
static double
rate_of(struct np_progress_line *s)
{
	const struct np_live_view *view = &s->view;
	double work = np_cli_work(s->cli, &s->cli->plan, &view->count);
	const struct sample *oldest;
	uint64_t now = s->at_ns;

	if (view->since_ns != s->since_ns) { /* another step has begun */
		s->since_ns = view->since_ns;
		s->samples = 0;
		/* After a warm-up each worker sets its counters to 0 a moment later. */
		if (view->step < NP_LIVE_MEASURING || s->cli->plan.warm_up_ms == 0) {
			add_sample(s, view->since_ns, 0);
		}
	}
	if (s->samples > 0 && work < s->sample[0].work) { /* counters were set to 0 */
		s->samples = 0;
	}
	/* Sooner after the last sample only when output paused the line. */
	if (s->samples == 0 || now - s->sample[0].at_ns >= redraw_ns / 2) {
		add_sample(s, now, work);
	}
	oldest = &s->sample[s->samples - 1];
	if (now - oldest->at_ns < redraw_ns / 2) { /* too short for a rate */
		return -1;
	}
	return (work - oldest->work) / ((double)(now - oldest->at_ns) / 1e9);
}

/* What the line is to say now. Also called while it is hidden, so that the rate is known later. */
static void
describe(struct np_progress_line *s, struct np_progress *p)
{
	const struct np_plan *plan = &s->cli->plan;
	const struct np_unit *unit = np_cli_unit(s->cli);
	uint64_t now = np_now(), since = s->view.since_ns;
	const struct np_counts *c = &s->view.count;
	uint64_t work = plan->pattern->transactions ? c->transactions : np_counts_bytes(c);

	*p = (struct np_progress){ .test = s->cli->bench.name,
				   .host = s->cli->target.host.text,
				   .step = s->view.step,
				   .elapsed_s = now > since ? (double)(now - since) / 1e9 : 0,
				   .total_s = (double)s->view.length_ns / 1e9,
				   .done = s->counted > 0 ? (double)work / (double)s->counted : -1,
				   .iteration = s->iteration,
				   .min = s->repeat.min,
				   .max = s->repeat.clean_s > 0 ? 0 : s->repeat.max,
				   .connections = plan->flows * (plan->both ? 2 : 1),
				   .ramps = plan->ramp > 0,
				   .up = s->view.count.up,
				   .rate = rate_of(s) };
	p->sent =
	    !plan->pattern->transactions && !np_delivers(plan->transport) && plan->role == NP_LEAD;
	/* The unit of the rate: that of -f, else bits or transactions. */
	if (plan->pattern->transactions && (unit->letter == 'x' || !plan->pattern->sized)) {
		p->of = NP_PROGRESS_TRANSACTIONS;
	} else if (s->cli->output.unit != '\0') {
		p->of = NP_PROGRESS_UNITS;
		p->unit = unit->name;
		p->rate = p->rate < 0 ? -1 : np_rate(unit, p->rate, 1);
	} else {
		p->of = NP_PROGRESS_BITS;
		p->rate *= 8;
	}
}

/* Draw the line (locked). The cursor returns to column 1, so that other output overwrites it. */
static void
draw(struct np_progress_line *s)
{
	static const char ends[] = "\033[K\r";
	char line[1 + NP_PROGRESS_TEXT + sizeof(ends)] = "\r";
	unsigned columns = COLUMNS;
	struct pollfd at = { .fd = STDERR_FILENO, .events = POLLOUT };
	pid_t foreground = tcgetpgrp(STDERR_FILENO);
	struct winsize size;
	struct np_progress p;
	size_t n;

	if (s->ended) {
		return;
	}
	describe(s, &p);
	if (s->paused > 0 || (!s->always && np_now() < s->from_ns)) {
		return;
	}
	/* Only in the foreground, and if the terminal takes it at once: the test must not wait. */
	if ((!s->always && foreground >= 0 && foreground != getpgrp()) || poll(&at, 1, 0) != 1 ||
	    (at.revents & POLLOUT) == 0) {
		return;
	}
	/* The last column stays free: some terminals wrap there. */
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) {
		columns = size.ws_col;
	}
	n = 1 + np_progress_text(&p, columns - 1, line + 1);
	memcpy(line + n, ends, sizeof(ends));
	atomic_store(s->drawn, s->fd);
	put(s->fd, line, n + sizeof(ends) - 1);
	atomic_store(s->drawn, s->fd); /* again: a signal may have erased it too early */
}

/* np_live.draw. */
static void
draw_view(void *shown, const struct np_live_view *view)
{
	struct np_progress_line *s = shown;

	pthread_mutex_lock(&s->lock);
	s->view = *view;
	s->at_ns = np_now();
	draw(s);
	pthread_mutex_unlock(&s->lock);
}

struct np_progress_line *
np_progress_begin(const struct np_cli *cli, atomic_int *drawn, struct np_live **live)
{
	enum np_when when = cli->output.progress;
	const char *term = getenv("TERM");
	pthread_mutexattr_t recursive;
	struct np_progress_line *s;
	const struct np_plan *p = &cli->plan;
	struct stat out, err;
	bool is_long;

	if (when == NP_WHEN_NEVER ||
	    (when == NP_WHEN_AUTO && (!isatty(STDERR_FILENO) || term == NULL || term[0] == '\0' ||
				      strcmp(term, "dumb") == 0))) {
		return NULL; /* a dumb terminal can't erase a line */
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL) {
		return NULL;
	}
	s->cli = cli;
	s->drawn = drawn;
	/* Open standard error again, non-blocking: the thread that draws also controls the test.
	 * O_NONBLOCK on the descriptor itself would be shared with other processes. */
	if (fstat(STDERR_FILENO, &err) == 0 && (S_ISCHR(err.st_mode) || S_ISFIFO(err.st_mode))) {
		s->fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	s->fd = s->fd > 0 ? s->fd : STDERR_FILENO; /* not opened: 0, or -1 */
	np_cli_plan_repeats(cli, &s->repeat);
	s->always = when == NP_WHEN_ALWAYS;
	if (fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0) {
		s->shares = out.st_dev == err.st_dev && out.st_ino == err.st_ino;
		s->piped = S_ISFIFO(out.st_mode);
	}
	s->counted = p->length < 0 ? (uint64_t)-p->length * (p->both ? 2 : 1) : 0;
	/* Draw it at once if the test is known to be long. */
	is_long =
	    p->length == 0 || (p->warm_up_ms / 1e3 + np_plan_time_s(p)) * s->repeat.min > LONG_S;
	s->from_ns = np_now() + (is_long || s->cli->wait_s > LONG_S ? 0 : LONG_S * NP_SEC);
	/* Recursive: calls of pause, which keep it locked, may be nested. */
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&s->lock, &recursive);
	pthread_mutexattr_destroy(&recursive);
	s->live = (struct np_live){ .every_ns = redraw_ns,
				    .draw = draw_view,
				    .ctx = s,
				    .due_ns = np_now(),
				    .view.since_ns = np_now() };
	*live = &s->live;
	return s;
}

void
np_progress_iteration(struct np_progress_line *s, unsigned number)
{
	if (s != NULL && (s->repeat.clean_s > 0 || s->repeat.max > 1)) {
		pthread_mutex_lock(&s->lock);
		s->iteration = number;
		pthread_mutex_unlock(&s->lock);
	}
}

/* Can output to this stream appear on the terminal that has the line? */
static bool
is_seen(const struct np_progress_line *s, const FILE *to)
{
	return s != NULL && (to == stderr || s->shares || s->piped);
}

void
np_progress_pause(struct np_progress_line *s, FILE *to)
{
	if (!is_seen(s, to)) {
		return;
	}
	pthread_mutex_lock(&s->lock); /* until np_progress_resume() */
	if (s->paused++ == 0) {
		s->was_drawn = atomic_load(s->drawn) != 0;
		np_progress_erase(s->drawn);
	}
}

void
np_progress_resume(struct np_progress_line *s, FILE *to)
{
	if (!is_seen(s, to)) {
		return;
	}
	fflush(s->shares ? stdout : to); /* standard error has no buffer */
	/* Output through a pipe appears later: then wait for the next redraw. */
	if (--s->paused == 0 && s->was_drawn && (to == stderr || s->shares)) {
		draw(s);
	}
	pthread_mutex_unlock(&s->lock);
}

void
np_progress_end(struct np_progress_line *s)
{
	if (s != NULL) {
		pthread_mutex_lock(&s->lock);
		s->ended = true;
		np_progress_erase(s->drawn);
		pthread_mutex_unlock(&s->lock);
	}
}

void
np_progress_free(struct np_progress_line *s)
{
	if (s != NULL) {
		np_progress_end(s);
		if (s->fd != STDERR_FILENO) {
			close(s->fd);
		}
		pthread_mutex_destroy(&s->lock);
		free(s);
	}
}
