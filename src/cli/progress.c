#include "cli/progress.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/show.h"
#include "out/progress.h"

static const uint64_t redraw_ns = 250 * NP_MSEC;
enum {
	LONG_S = 2, /* a shorter test is over before anybody wonders */
	LOOKS = 5,  /* four intervals: the rate is that of a second */
	COLUMNS = 80
};

/* What has been moved by then. */
struct look {
	uint64_t at_ns;
	double work;
};

struct np_shown {
	const struct np_cli *cli;
	struct np_repeat_plan repeat;
	struct np_live *live;
	bool always, utf8;
	bool shares;      /* standard output is the same terminal, or file */
	bool piped;       /* it is a pipe: who reads it may print to this terminal */
	uint64_t counted; /* bytes or transactions of a test by count; 0: it is by time */
	uint64_t from_ns; /* it is drawn from then on, unless it always is */
	sigset_t before;  /* what the first thread had blocked */
	int signal_fd, stop_fd;
	pthread_t thread;
	bool ended, signals_left;

	pthread_mutex_t lock; /* of what follows, and of what is on the terminal */
	unsigned paused;
	bool drawn, was_drawn;
	unsigned iteration;
	uint64_t wait_ns; /* when the wait of -s began; 0: there is none */
	double wait_s;
	uint64_t since_ns;       /* of the step that the looks are of */
	struct look look[LOOKS]; /* the last ones, the newest first */
	unsigned looks;
};

/* ---- The terminal ---- */

static void
put(const char *text, size_t n)
{
	while (n > 0) {
		ssize_t put = write(STDERR_FILENO, text, n);

		if (put <= 0) {
			return; /* the reader is gone: the test goes on */
		}
		text += put;
		n -= (size_t)put;
	}
}

static unsigned
columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) {
		return size.ws_col;
	}
	return COLUMNS;
}

/* A program in the background leaves the terminal to the others. A terminal that cannot take the
 * line at once does not get it: the test does not wait for that. */
static bool
may_draw(const struct np_shown *s)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	pid_t front = tcgetpgrp(STDERR_FILENO);

	return (s->always || front < 0 || front == getpgrp()) && poll(&p, 1, 0) == 1 &&
	       (p.revents & POLLOUT) != 0;
}

static void
erase(struct np_shown *s)
{
	static const char gone[] = "\r\033[K";

	if (s->drawn) {
		put(gone, sizeof(gone) - 1);
		s->drawn = false;
	}
}

/* ---- What the line says ---- */

/* The newest look, in front of those before. */
static void
add_look(struct np_shown *s, uint64_t at_ns, double work)
{
	memmove(s->look + 1, s->look, (LOOKS - 1) * sizeof(s->look[0]));
	s->look[0] = (struct look){ .at_ns = at_ns, .work = work };
	s->looks += s->looks < LOOKS;
}

/* Take a look at the work. Returns the rate since the oldest look of this step; < 0: not known. */
static double
rate_of(struct np_shown *s, const struct np_live_view *view, uint64_t now)
{
	double work = np_show_work(s->cli, &s->cli->plan, &view->count);
	const struct look *oldest;

	if (view->since_ns != s->since_ns) {
		s->since_ns = view->since_ns;
		s->looks = 0;
		/* After a warm-up each worker sets its counters to 0 a moment later. */
		if (view->step < NP_LIVE_MEASURING || s->cli->plan.warm_up_ms == 0) {
			add_look(s, view->since_ns, 0);
		}
	}
	if (s->looks > 0 && work < s->look[0].work) {
		s->looks = 0;
	}
	if (s->looks == 0 ||
	    now - s->look[0].at_ns >= redraw_ns / 2) { /* a pause ended just now, else */
		add_look(s, now, work);
	}
	oldest = &s->look[s->looks - 1];
	if (now - oldest->at_ns < redraw_ns / 2) {
		return -1;
	}
	return (work - oldest->work) / ((double)(now - oldest->at_ns) / 1e9);
}

/* The unit of the rate: that of -f, else bits or transactions. */
static void
put_unit(const struct np_cli *cli, struct np_progress *p)
{
	const struct np_plan *plan = &cli->plan;
	const struct np_unit *unit = np_cli_unit(cli);

	p->sent =
	    !plan->pattern->transactions && !np_delivers(plan->transport) && plan->role == NP_LEAD;
	if (plan->pattern->transactions && (unit->letter == 'x' || !plan->pattern->sized)) {
		p->of = NP_PROGRESS_TRANSACTIONS;
	} else if (cli->output.unit != '\0') {
		p->of = NP_PROGRESS_UNITS;
		p->unit = unit->name;
		p->rate = p->rate < 0 ? -1 : np_rate(unit, p->rate, 1);
	} else {
		p->of = NP_PROGRESS_BITS;
		p->rate *= 8;
	}
}

static double
done_of(const struct np_shown *s, const struct np_counts *c)
{
	bool counts = s->cli->plan.pattern->transactions;
	uint64_t work = counts ? c->transactions : np_counts_bytes(c);

	return s->counted == 0 ? -1 : (double)work / (double)s->counted;
}

static void
describe(struct np_shown *s, uint64_t now, struct np_progress *p)
{
	static const enum np_progress_step steps[NP_LIVE_STEPS] = {
		[NP_LIVE_CONNECTING] = NP_PROGRESS_CONNECTING,
		[NP_LIVE_ASKING] = NP_PROGRESS_ASKING,
		[NP_LIVE_MEETING] = NP_PROGRESS_MEETING,
		[NP_LIVE_WARMING_UP] = NP_PROGRESS_WARMING_UP,
		[NP_LIVE_MEASURING] = NP_PROGRESS_MEASURING,
		[NP_LIVE_COLLECTING] = NP_PROGRESS_COLLECTING,
	};
	const struct np_plan *plan = &s->cli->plan;
	struct np_live_view view;
	uint64_t since;

	np_live_look(s->live, &view);
	since = s->wait_ns != 0 ? s->wait_ns : view.since_ns;
	*p = (struct np_progress){ .test = s->cli->bench.name,
				   .host = s->cli->target.host.text,
				   .step = steps[view.step],
				   .elapsed_s = now > since ? (double)(now - since) / 1e9 : 0,
				   .done = done_of(s, &view.count),
				   .iteration = s->iteration,
				   .min = s->repeat.min,
				   .max = s->repeat.clean_s > 0 ? 0 : s->repeat.max,
				   .connections = plan->flows * (plan->both ? 2 : 1),
				   .ramps = plan->ramp > 0,
				   .up = view.count.up };
	p->rate = rate_of(s, &view, now);
	put_unit(s->cli, p);
	if (s->wait_ns != 0) {
		p->step = NP_PROGRESS_WAITING;
		p->total_s = s->wait_s;
	} else if (view.step == NP_LIVE_WARMING_UP) {
		p->total_s = plan->warm_up_ms / 1e3;
	} else if (view.step == NP_LIVE_MEASURING) {
		p->total_s = (double)view.length_ns / 1e9;
	}
}

/* The cursor goes back to the first column, so that other programs write over the line. */
static void
draw(struct np_shown *s, uint64_t now)
{
	static const char ends[] = "\033[K\r";
	char line[1 + NP_PROGRESS_TEXT + sizeof(ends)] = "\r";
	struct np_progress p;
	size_t n;

	describe(s, now, &p);
	if (s->paused > 0 || (!s->always && now < s->from_ns) || !may_draw(s)) {
		return;
	}
	/* The last column stays free: some terminals wrap there. */
	n = 1 + np_progress_text(&p, columns() - 1, s->utf8, line + 1);
	memcpy(line + n, ends, sizeof(ends));
	put(line, n + sizeof(ends) - 1);
	s->drawn = true;
}

/* ---- The thread ---- */

static void
fill(sigset_t *set, bool all)
{
	sigemptyset(set);
	if (all) {
		sigaddset(set, SIGALRM);
		sigaddset(set, SIGINT);
		sigaddset(set, SIGTERM);
	}
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGQUIT);
	sigaddset(set, SIGTSTP);
}

/* Erase the line before a signal ends or stops the program. A signal that is ignored does neither.
 */
static void
take_signal(struct np_shown *s)
{
	struct signalfd_siginfo info;
	sigset_t one;

	if (read(s->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
		return;
	}
	pthread_mutex_lock(&s->lock);
	erase(s);
	sigemptyset(&one);
	sigaddset(&one, (int)info.ssi_signo);
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
	raise((int)info.ssi_signo);
	pthread_sigmask(SIG_BLOCK, &one, NULL);
	pthread_mutex_unlock(&s->lock);
}

static void *
show(void *arg)
{
	struct np_shown *s = arg;
	struct pollfd polls[] = { { .fd = s->stop_fd, .events = POLLIN },
				  { .fd = s->signal_fd, .events = POLLIN } };
	uint64_t due = np_deadline(redraw_ns), now;
	struct timespec left;

	for (;;) {
		ppoll(polls, 2, np_left(due, &left), NULL);
		if (polls[0].revents != 0) {
			return NULL;
		}
		if (polls[1].revents != 0) {
			take_signal(s);
		}
		now = np_now();
		if (now >= due) {
			pthread_mutex_lock(&s->lock);
			draw(s, now);
			pthread_mutex_unlock(&s->lock);
			due = now - (now - due) % redraw_ns + redraw_ns;
		}
	}
}

/* The thread blocks all signals: the first thread handles them, or signal_fd delivers them. */
static bool
start(struct np_shown *s)
{
	sigset_t all, ours;
	int failed;

	fill(&ours, true);
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	s->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->stop_fd < 0 || s->signal_fd < 0) {
		return false;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &s->before);
	failed = pthread_create(&s->thread, NULL, show, s);
	pthread_sigmask(SIG_SETMASK, &s->before, NULL);
	if (failed == 0) {
		pthread_sigmask(SIG_BLOCK, &ours, NULL);
	}
	return failed == 0;
}

/* ---- For main() ---- */

/* Is there a terminal that knows how to erase a line? */
static bool
has_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term != NULL && term[0] != '\0' &&
	       strcmp(term, "dumb") != 0;
}

static void
look_at_output(struct np_shown *s)
{
	struct stat out, err;

	if (fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0) {
		s->shares = out.st_dev == err.st_dev && out.st_ino == err.st_ino;
		s->piped = S_ISFIFO(out.st_mode);
	}
}

/* When the line is first drawn: at once if the test is known to be long. */
static uint64_t
begin_of(const struct np_shown *s)
{
	const struct np_plan *p = &s->cli->plan;
	double each_s = p->warm_up_ms / 1e3 + np_plan_time_s(p);
	bool is_long = p->length == 0 || each_s * s->repeat.min > LONG_S;

	return np_now() + (is_long || s->cli->wait_s > LONG_S ? 0 : LONG_S * NP_SEC);
}

struct np_shown *
np_progress_begin(const struct np_cli *cli)
{
	enum np_when when = cli->output.progress;
	pthread_mutexattr_t nests;
	struct np_shown *s;

	if (when == NP_WHEN_NEVER || (when == NP_WHEN_AUTO && !has_terminal())) {
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL) {
		return NULL;
	}
	s->cli = cli;
	np_cli_plan_repeats(cli, &s->repeat);
	s->always = when == NP_WHEN_ALWAYS;
	s->utf8 = np_progress_utf8(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG"));
	look_at_output(s);
	s->counted =
	    cli->plan.length < 0 ? (uint64_t)-cli->plan.length * (cli->plan.both ? 2 : 1) : 0;
	s->from_ns = begin_of(s);
	s->signal_fd = s->stop_fd = -1;
	pthread_mutexattr_init(&nests);
	pthread_mutexattr_settype(&nests, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&s->lock, &nests);
	pthread_mutexattr_destroy(&nests);
	s->live = np_live_new();
	s->ended = s->live == NULL || !start(s);
	if (s->ended) {
		np_progress_free(s);
		return NULL;
	}
	return s;
}

struct np_live *
np_progress_live(const struct np_shown *s)
{
	return s != NULL ? s->live : NULL;
}

void
np_progress_leave_signals(struct np_shown *s)
{
	sigset_t rest;

	if (s != NULL) {
		fill(&rest, false);
		(void)signalfd(s->signal_fd, &rest, 0);
		s->signals_left = true;
	}
}

void
np_progress_wait(struct np_shown *s, double seconds)
{
	if (s != NULL) {
		pthread_mutex_lock(&s->lock);
		s->wait_ns = seconds > 0 ? np_now() : 0;
		s->wait_s = seconds;
		pthread_mutex_unlock(&s->lock);
	}
}

void
np_progress_iteration(struct np_shown *s, unsigned number)
{
	if (s != NULL && (s->repeat.clean_s > 0 || s->repeat.max > 1)) {
		pthread_mutex_lock(&s->lock);
		s->iteration = number;
		pthread_mutex_unlock(&s->lock);
	}
}

/* Can output to this stream appear on the terminal that has the line? */
static bool
is_seen(const struct np_shown *s, const FILE *to)
{
	return s != NULL && (to == stderr || s->shares || s->piped);
}

void
np_progress_pause(struct np_shown *s, FILE *to)
{
	if (!is_seen(s, to)) {
		return;
	}
	pthread_mutex_lock(&s->lock);
	if (s->paused++ == 0) {
		s->was_drawn = s->drawn;
		erase(s);
	}
}

void
np_progress_resume(struct np_shown *s, FILE *to)
{
	if (!is_seen(s, to)) {
		return;
	}
	fflush(s->shares ? stdout : to);
	/* What goes through a pipe appears a moment later: the line is drawn again at its next
	 * time. */
	if (--s->paused == 0 && s->was_drawn && (to == stderr || s->shares)) {
		draw(s, np_now());
	}
	pthread_mutex_unlock(&s->lock);
}

void
np_progress_end(struct np_shown *s)
{
	static const uint64_t one = 1;
	sigset_t back;

	if (s == NULL || s->ended) {
		return;
	}
	s->ended = true;
	(void)!write(s->stop_fd, &one, sizeof(one)); /* it can't overflow */
	pthread_join(s->thread, NULL);
	erase(s);
	fill(&back, !s->signals_left);
	for (int sig = 1; sig < NSIG; sig++) {
		if (sigismember(&s->before, sig) == 1) {
			sigdelset(&back, sig);
		}
	}
	pthread_sigmask(SIG_UNBLOCK, &back, NULL);
}

void
np_progress_free(struct np_shown *s)
{
	if (s == NULL) {
		return;
	}
	np_progress_end(s);
	if (s->signal_fd >= 0) {
		close(s->signal_fd);
	}
	if (s->stop_fd >= 0) {
		close(s->stop_fd);
	}
	pthread_mutex_destroy(&s->lock);
	np_live_free(s->live);
	free(s);
}
