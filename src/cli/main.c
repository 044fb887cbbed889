/* netperf: runs one test against a netserver and prints the result. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/text.h"
#include "base/uuid.h"
#include "bench/ids.h"
#include "bench/transport/endpoint.h"
#include "cli/aim.h"
#include "cli/args.h"
#include "cli/beside.h"
#include "cli/document.h"
#include "cli/modes.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "config.h"
#include "net/addr.h"
#include "net/capture.h"
#include "run/client.h"
#include "run/repeat.h"
#include "run/trial.h"
#include "sys/cpu.h"
#include "sys/host.h"

/* Written by the handler, read by the controller: number of signals, and the last one. */
static _Atomic int signals_taken, signal_last;

/* While a line of --progress is on the screen, its descriptor; else 0. */
static atomic_int line_drawn;

/* The handler of signals that end a test early (take_signals()). */
static void
on_signal(int sig)
{
	signal_last = sig;
	signals_taken++;
}

static void handle_fatal(int sig);

/* Erase the line, then do what the signal does by default. Returns if a stop was continued. */
static void
on_fatal(int sig)
{
	int error = errno;
	sigset_t one;

	np_progress_erase(&line_drawn);
	signal(sig, SIG_DFL);
	raise(sig); /* takes effect once it is not blocked */
	sigemptyset(&one);
	sigaddset(&one, sig);
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
	handle_fatal(sig);
	errno = error;
}

/* Install on_fatal(), unless the signal is ignored or has a handler. */
static void
handle_fatal(int sig)
{
	struct sigaction sa = { .sa_flags = 0 };

	if (sigaction(sig, NULL, &sa) == 0 && sa.sa_handler == SIG_DFL) {
		sa.sa_handler = on_fatal;
		sa.sa_flags = SA_RESTART;
		sigaction(sig, &sa, NULL);
	}
}

/* All state of the program: the user's options, and a run by them. */
struct session {
	struct np_cli cli;
	struct np_client client;
	struct np_ends ends;
	struct np_trial trial;
	struct np_cli_beside *beside; /* what runs beside it; NULL: nothing */
	struct np_eth eth;            /* for tests of the link layer; fd 0: unused */
	struct np_show_interim interim;
	struct np_look look;
	FILE *out; /* where the result is printed; NULL: the document replaces it */
	struct np_document *document;      /* NULL: none is asked for */
	struct np_progress_line *progress; /* the line of --progress; NULL: there is none */
	sigset_t let_in;     /* the mask while waiting: signals that end the test are not blocked */
	struct np_knee knee; /* of --rate auto */
	bool limited;        /* --rate was not reached in some iteration */
	uint64_t surplus;    /* ambiguous responses of all iterations */
	char partial[160];   /* of a failed test: what its figures cover; empty: no figures */
};

/* Let signals end a test early, with its results, while we wait; no SIGHUP after nohup(1). */
static void
take_signals(struct session *s)
{
	static const int signals[] = { SIGINT, SIGALRM, SIGTERM, SIGHUP };
	const struct sigaction sa = { .sa_handler = on_signal };
	struct sigaction hup;
	sigset_t block;

	sigemptyset(&block);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigaddset(&block, signals[i]);
		sigaction(signals[i], &sa, &hup);
	}
	if (hup.sa_handler == SIG_IGN) { /* what the last one of the list, SIGHUP, did before */
		sigaction(SIGHUP, &hup, NULL);
	}
	sigprocmask(SIG_BLOCK, &block, &s->let_in);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigdelset(&s->let_in, signals[i]);
	}
	s->client.signals.let_in = &s->let_in;
	s->client.signals.received = &signals_taken;
}

enum { TELL_AFTER_S = 5 }; /* then netperf says what it waits for */

/* np_client_hooks.tell. */
static void
say_on_stderr(void *session, const char *text)
{
	struct np_progress_line *progress = ((const struct session *)session)->progress;

	np_progress_pause(progress, stderr);
	fprintf(stderr, "netperf: %s\n", text);
	np_progress_resume(progress, stderr);
}

/* np_client_hooks.agreed, for -d: netperf's lines, which parsers look for while the test runs. */
static void
show_agreed(void *session, const struct np_run *run)
{
	const struct session *s = session;
	FILE *out = s->out != NULL ? s->out : stderr;

	if (np_addr_port(&run->end.peer) == 0) { /* a family without ports, such as AF_UNIX */
		return;
	}
	np_progress_pause(s->progress, out);
	fprintf(out, "remote listen done.\nremote port is %u\n", np_addr_port(&run->end.peer));
	fflush(out);
	np_progress_resume(s->progress, out);
}

/* Wait for -s, then measure without load (--beside). Reconnects: the daemon would not wait. */
static int
wait_before_test(struct session *s, struct np_err *err)
{
	static const struct linger reset = { .l_onoff = 1 };
	uint64_t until = np_deadline((uint64_t)s->cli.wait_s * NP_SEC);
	bool reconnects = (s->cli.wait_s > 0 && !s->cli.plan.no_control) || s->beside != NULL;
	struct timespec left;

	if (reconnects && s->cli.target.local_port[0] != '\0') {
		/* The user's local port has to be free again at once. */
		setsockopt(s->client.chan.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	}
	if (reconnects) {
		np_chan_close(&s->client.chan);
	}
	if (s->cli.wait_s > 0) {
		np_live_step(s->client.live, NP_LIVE_WAITING, (uint64_t)s->cli.wait_s * NP_SEC);
	}
	while (signals_taken == 0 && np_now() < until) {
		ppoll(NULL, 0, np_left(np_live_until(s->client.live, until), &left), &s->let_in);
		np_live_look(s->client.live, NULL);
	}
	if (signals_taken > 0) {
		np_fail(err, NP_ETIME, 0, "interrupted before the test began");
		return np_fail_in(err, s->cli.bench.name);
	}
	if (s->beside != NULL && np_beside_alone(&s->beside->run, &s->trial, err) != NP_OK) {
		return np_fail_in(err, s->cli.bench.name);
	}
	if (!reconnects || np_trial_connect(&s->trial, err) == NP_OK) {
		return NP_OK;
	}
	return s->beside != NULL ? np_fail_in(err, "with --beside") : (int)err->code;
}

/* Print the result as --human does. */
static void
print_human(struct session *s, const struct np_repeat *repeat, const struct np_outcome *last,
	    const struct np_figures *figures)
{
	const struct np_cli *cli = &s->cli;
	struct np_bag *limits =
	    cli->evidence.explain ? np_cli_explain(cli, last, repeat->done) : NULL;
	const struct np_addr *local = &last->tally.local, *remote = &last->tally.peer;
	struct np_human human = { .test = cli->bench.name,
				  .host = cli->target.host.text,
				  .local = np_addr_port(local) != 0 ? NP_ADDR_STR(local) : "",
				  .remote = np_addr_port(remote) != 0 ? NP_ADDR_STR(remote) : "",
				  .limits = limits };

	if (cli->confidence.clean_s == 0) { /* else iterations differ in length */
		human.rates = repeat->figure[NP_REPEAT_THROUGHPUT];
	}
	s->look.human = &human;
	np_look_print(s->out, &s->look, figures);
	s->look.human = NULL;
	np_bag_free(limits);
}

/* Print and record the result of all iterations. record: of the last one; gets their figures. */
static void
tell_result(struct session *s, struct np_repeat *repeat, const struct np_outcome *last,
	    struct np_record *record)
{
	const struct np_figures figures = { .record = record,
					    .latency = repeat->hist,
					    .connect = last->tally.ramp.hist };
	const struct np_cli *cli = &s->cli;
	bool timed = /* a document has latencies even if they were not asked for */
	    cli->output.latency || (s->document != NULL && np_hist_count(repeat->hist) > 0);

	np_cli_record_options(cli, record);
	np_repeat_conclude(repeat, timed, record);
	s->look.missed = np_repeat_missed(repeat) && np_cli_repeats(cli);
	np_document_result(s->document, &s->look, &figures);
	if (s->beside != NULL) {
		np_document_beside(s->document, &s->beside->cli.plan, s->beside->run.idle,
				   s->beside->run.loaded);
	}
	if (s->out != NULL && s->look.style == NP_STYLE_HUMAN) {
		print_human(s, repeat, last, &figures);
	} else if (s->out != NULL) {
		np_look_print(s->out, &s->look, &figures);
		if (s->look.times && np_hist_count(repeat->hist) == 0) {
			fflush(s->out);
			fprintf(stderr, "netperf: --latency: no %s ended within the test\n",
				s->look.histogram_of);
		}
	}
}

/* np_knee.tell. */
static void
show_step(void *session, const struct np_plan *p, const struct np_knee_step *step)
{
	struct np_progress_line *progress = ((const struct session *)session)->progress;

	np_progress_pause(progress, stderr);
	np_show_knee_step(p, step);
	np_progress_resume(progress, stderr);
}

/* Run the test once; or with --rate auto until the knee is found, or with the probe of --beside. */
static int
run_trial(struct session *s, struct np_trial_result *one, struct np_err *err)
{
	int rc;

	if (s->knee.times > 0) { /* np_check_test(): without a probe */
		rc = np_knee_find(&s->knee, &s->trial, one, err);
		np_document_curve(s->document, &s->cli.plan, &s->knee);
		np_progress_pause(s->progress, stderr);
		np_show_knee(&s->cli.plan, &s->knee);
		np_progress_resume(s->progress, stderr);
	} else {
		rc = s->beside != NULL ? np_beside_trial(&s->beside->run, &s->trial, one, err)
				       : np_trial(&s->trial, one, err);
	}
	np_beside_report(s->beside != NULL ? &s->beside->run : NULL, &one->record);
	return rc;
}

/*
 * Repeat the test as needed, with the results alternately in two[0] and two[1]: they point into
 * themselves, so can't be copied. *newest: the last one; *one: the last with figures, to print.
 */
static int
repeat_trial(struct session *s, struct np_repeat *repeat, struct np_trial_result two[2],
	     struct np_trial_result **newest, struct np_trial_result **one, struct np_err *err)
{
	struct np_err why; /* *err must keep the trial's */
	int rc, taken;

	do {
		struct np_trial_result *r = *one == &two[0] ? &two[1] : &two[0];

		*newest = r;
		if (repeat->plan.clean_s > 0) {
			s->cli.plan.length = np_repeat_next_s(repeat);
			s->cli.plan.length_less_ms = 0; /* whole seconds */
		}
		np_outcome_free(&r->out);
		np_progress_iteration(s->progress, repeat->done + 1);
		rc = run_trial(s, r, err);
		if (rc != NP_OK && !r->out.measured) {
			/* A signal leaves the whole iterations before it. */
			repeat->cut = signals_taken > 0 && repeat->done > 0;
			return repeat->cut ? NP_OK : rc;
		}
		*one = r;
		np_progress_pause(s->progress, stderr);
		s->limited |=
		    np_show_iteration(&s->interim, s->client.watch.every_ns != 0, &r->out);
		s->surplus += r->out.tally.end.count.surplus;
		np_document_iteration(s->document, &r->out, &r->record, rc == NP_OK);
		taken = np_repeat_add(repeat, &r->record, r->out.tally.hist, r->out.clean, &why);
		repeat->cut = rc != NP_OK || r->out.cause == NP_BY_SIGNAL;
		np_progress_resume(s->progress, stderr);
		if (rc == NP_OK && taken != NP_OK) {
			*err = why;
			rc = taken;
		}
	} while (rc == NP_OK && signals_taken == 0 && np_repeat_more(repeat));
	return rc;
}

/* Run the test and print its result. */
static int
measure(struct session *s, struct np_err *err)
{
	struct np_cli *cli = &s->cli;
	struct np_repeat repeat = { .done = 0 };
	struct np_trial_result two[2] = { { .out = { .measured = false } } };
	struct np_trial_result *newest = &two[1], *one = &two[0];
	int rc;

	np_cli_plan_repeats(cli, &repeat.plan);
	rc = repeat_trial(s, &repeat, two, &newest, &one, err);
	np_progress_end(s->progress);
	if (rc != NP_OK && repeat.done > 0) {
		np_show_partial(s->partial, sizeof(s->partial), &newest->out, &cli->plan,
				repeat.done);
	}
	if (repeat.done > 0) {
		tell_result(s, &repeat, &one->out, &one->record);
		fflush(stdout);
		/* of a single iteration the result has the seconds, of --clean a line below */
		if (rc == NP_OK && repeat.cut && (repeat.done > 1 || newest != one) &&
		    repeat.plan.clean_s == 0) {
			char text[sizeof(s->partial)];

			np_show_partial(text, sizeof(text), &newest->out, &cli->plan, repeat.done);
			fprintf(stderr, "netperf: %s: %s\n", cli->bench.name, text);
		}
		if (s->surplus > 0) {
			fprintf(stderr,
				"netperf: %s: %" PRIu64 " response%s came twice or too late, and "
				"could not be matched: rate and latencies may be wrong (%s)\n",
				cli->bench.name, s->surplus, s->surplus == 1 ? "" : "s",
				np_ids_why_none(&cli->plan));
		}
		np_show_refused(stderr, cli, &one->out);
		np_show_clean(stderr, cli, &repeat);
		/* The table of --human has it, and selected figures may. */
		np_cli_beside_show(s->beside,
				   s->out != NULL && s->look.style != NP_STYLE_HUMAN &&
				       cli->output.selectors == NULL,
				   stderr);
		np_cli_tell_evidence(cli, &one->out, repeat.done, rc == NP_OK, s->document, stderr);
	}
	np_capture_free(s->client.collect.capture);
	s->client.collect.capture = NULL;
	s->limited |= s->beside != NULL && s->beside->run.limits[0] != '\0';
	if (rc == NP_OK && s->limited && cli->strict) {
		rc = np_fail(err, NP_EUNSUP, 0,
			     "--strict: what was sent is not what --rate asks for");
	}
	if (rc != NP_OK) {
		np_fail_in(err, cli->bench.name);
	}
	np_outcome_free(&two[0].out);
	np_outcome_free(&two[1].out);
	np_repeat_free(&repeat);
	return rc;
}

/* With the daemon known, before the test: complete the plan, check it, print the banner. */
static int
prepare(struct session *s, struct np_err *err)
{
	struct np_cli *cli = &s->cli;
	uint32_t sessions;

	if (cli->bench.transport->link && np_cli_open_eth(cli, &s->client, &s->eth, err) != NP_OK) {
		return err->code;
	}
	if (cli->bench.transport->named &&
	    np_aim_data(cli, &s->client, &s->ends, s->out, err) != NP_OK) {
		return err->code;
	}
	if (np_cli_beside_aim(s->beside, &s->client, err) != NP_OK ||
	    np_trial_sessions(&s->trial, &sessions, err) != NP_OK ||
	    np_check_sessions(cli, s->client.peer, sessions, err) != NP_OK) {
		return err->code;
	}
	if (cli->plan.length == 0 && !cli->plan.pattern->probe) {
		fputs("netperf: -l 0: the test runs until SIGINT or SIGTERM\n", stderr);
	}
	if (cli->output.debug > 0) {
		np_show_plan(s->out != NULL ? s->out : stderr, cli, &s->client);
		s->client.hooks.agreed = show_agreed;
	}
	np_cli_look(cli, &s->look);
	if (s->out != NULL) {
		np_cli_banner(s->out, cli, &s->look, &s->ends);
	}
	np_document_begin(s->document, cli, &s->client);
	return NP_OK;
}

/* Run a test with data connections, from its addresses to its result. */
static int
run_bench(struct session *s, struct np_err *err)
{
	struct np_cli *cli = &s->cli;
	const struct np_cli_output *o = &cli->output;
	int rc;

	if (cli->plan.no_control && (cli->bench.flags & NP_B_OLD) != 0 &&
	    cli->bench.transport->no_control != NULL) {
		return np_fail(err, NP_EPLAIN, 0, "%s", cli->bench.transport->no_control);
	}
	/* Before the banner: does the kernel have a protocol that not all have? */
	if (cli->bench.transport->kernel.option != NULL &&
	    np_transport_probe(cli->bench.transport, err) == NP_EUNSUP) {
		return np_fail_in(err, cli->bench.name);
	}
	np_progress_pause(s->progress, stderr);
	rc = prepare(s, err);
	np_progress_resume(s->progress, stderr);
	if (rc != NP_OK || wait_before_test(s, err) != NP_OK) {
		return err->code;
	}
	np_progress_pause(s->progress, stderr);
	/* netperf's default lists have figures of the daemon, too */
	s->client.want_far =
	    cli->plan.far.place.measure_cpu || o->json ||
	    (o->style != NP_STYLE_CLASSIC && (o->selectors == NULL || o->selection.far));
	s->client.collect.caps = cli->evidence.caps;
	s->client.collect.every_ms = (uint32_t)cli->evidence.sample_ms;
	s->client.collect.cycles = cli->evidence.cycles;
	rc = np_cli_capture_open(&cli->evidence, &s->ends.local.at[0], &s->ends.remote.at[0],
				 &s->client.collect, err);
	np_progress_resume(s->progress, stderr);
	if (rc != NP_OK) {
		return rc;
	}
	s->trial.unit = np_cli_unit(cli);
	s->knee.times = cli->knee_times;
	s->knee.no_loss = cli->no_loss;
	s->knee.tell = show_step;
	s->knee.ctx = s;
	s->interim.cli = cli;
	s->interim.out = s->out;
	s->interim.doc = s->document;
	s->interim.progress = s->progress;
	if (cli->output.interim_s > 0 && (cli->bench.flags & NP_B_SPARSE) == 0) {
		np_show_interim_flows(&s->interim);
		s->client.watch.every_ns = (uint64_t)(cli->output.interim_s * 1e9);
		s->client.watch.look = np_show_interim;
		s->client.watch.ctx = &s->interim;
		s->trial.look = np_show_interim_sum;
	}
	return measure(s, err);
}

/* netperf's "calibration rate", on Linux clock ticks a second; with -v 2 also the processors. */
static void
print_cpu_rate(const struct np_cli *cli, const char *which, double rate, int cpus)
{
	printf("%g", rate);
	if (cli->output.verbosity > 1) {
		printf(cpus == 1 ? "\nThere is %d %s cpu\n" : "\nThere are %d %s cpus\n", cpus,
		       which);
	}
}

/* Run what -t names, and print its result. Tests that ask the daemon have a connection. */
static int
run_test(struct session *s, struct np_err *err)
{
	const struct np_cli *cli = &s->cli;
	struct np_calibrate_response m;

	switch (np_cli_test(cli)) {
	case NP_TEST_BENCH:
		return run_bench(s, err);
	case NP_TEST_UUID:
		fputs(cli->output.uuid, stdout);
		return NP_OK;
	case NP_TEST_LOC_CPU:
		print_cpu_rate(cli, "local", np_cpu_ticks_per_s(), np_cpu_count());
		return NP_OK;
	case NP_TEST_REM_CPU:
	case NP_TEST_UNKNOWN: /* settle() has refused it */
		break;
	}
	if (cli->plan.no_control) {
		return np_fail(err, NP_ECONTROL, 0,
			       "-N: REM_CPU asks the daemon, and needs a control connection");
	}
	if (np_client_calibrate(&s->client, &m, err) != NP_OK) {
		return err->code;
	}
	print_cpu_rate(cli, "remote", (double)m.rate, m.num_cpus);
	return NP_OK;
}

/* Print the notes that were not printed yet. */
static void
print_notes(struct np_option_notes *notes)
{
	fputs(notes->text + notes->printed, stderr);
	notes->printed = notes->len;
}

/* Before anything is connected, also for --dry-run: check and complete options, print notes. */
static int
settle(struct session *s, struct np_err *err)
{
	struct np_cli *cli = &s->cli;
	enum np_test test = np_cli_test(cli);

	if (test == NP_TEST_UNKNOWN) {
		np_phrases_unknown_test(s->out, cli);
		return np_stray_refuse_test(cli->test, err);
	}
	if ((test == NP_TEST_BENCH ? np_cli_settle(cli, err) : np_check_no_flows(cli, err)) !=
		NP_OK ||
	    np_cli_capture_settle(cli, err) != NP_OK) {
		return err->code;
	}
	print_notes(&cli->notes);
	return np_cli_beside_new(cli, &s->beside, err);
}

/* --dry-run. Options that netperf ignores are errors, too. The document's file is only checked. */
static int
dry_run(struct session *s, struct np_err *err)
{
	int rc = np_document_new(&s->cli, &s->document, err);

	np_document_free(s->document);
	s->document = NULL;
	rc = rc == NP_OK ? settle(s, err) : rc;
	return rc != NP_OK || s->cli.notes.len == 0
		   ? rc
		   : np_usage(err, "--dry-run: the test would not be what was asked for");
}

/* Connect, run what -t names, and close. */
static int
connect_and_run(struct session *s, struct np_err *err)
{
	const struct np_cli *cli = &s->cli;
	int rc;

	if (!cli->plan.no_control && np_trial_connect(&s->trial, err) != NP_OK) {
		np_progress_end(s->progress);
		np_phrases_control(s->out, &cli->target, &s->client);
		return err->code;
	}
	take_signals(s);
	rc = run_test(s, err);
	np_progress_end(s->progress);
	/* netperf's message; it has none for a partial result */
	if (rc == NP_ECONTROL && s->client.remote_error != 0 && s->partial[0] == '\0') {
		np_text_to_script(s->out, "netperf: remote error %d\n", s->client.remote_error);
	}
	if (s->client.chan.fd >= 0) {
		np_chan_close(&s->client.chan);
	}
	if (cli->terms.eth != NULL) {
		np_eth_close(&s->eth);
	}
	return rc;
}

/* Do what the options ask for, except printing texts. Returns enum np_errc. */
static int
run(struct session *s, struct np_err *err)
{
	/* They end or stop the program; once connected, take_signals() changes some of them. */
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGALRM, SIGTERM, SIGTSTP };
	struct np_cli *cli = &s->cli;
	int rc;

	if (cli->ceilings) {
		np_ceilings_answer(stdin, stdout);
		return NP_OK;
	}
	np_aim_default_host(&cli->target);
	np_uuid_make(cli->output.uuid_made);
	if (cli->dry_run) {
		return dry_run(s, err);
	}
	if (cli->list_engines) {
		return np_engines_list(cli, &s->client, err);
	}
	if (np_document_new(cli, &s->document, err) != NP_OK) {
		return err->code;
	}
	s->out = s->document != NULL && cli->output.json_file == NULL ? NULL : stdout;
	if (settle(s, err) != NP_OK) {
		return err->code;
	}
	np_aim_control(cli);
	s->trial = (struct np_trial){ .client = &s->client,
				      .target = &cli->target,
				      .plan = &cli->plan,
				      .terms = &cli->terms,
				      .peer = &s->ends.remote.at[0] };
	s->client.chan.fd = -1; /* not connected */
	s->client.hooks.ctx = s;
	s->client.hooks.tell = say_on_stderr;
	s->client.hooks.tell_after_ns = TELL_AFTER_S * NP_SEC;
	if (cli->preflight) {
		return np_preflight_run(cli, &s->client, err);
	}
	if (np_cli_test(cli) == NP_TEST_BENCH) {
		s->progress = np_progress_begin(cli, &line_drawn, &s->client.live);
	}
	for (size_t i = 0; s->progress != NULL && i < sizeof(signals) / sizeof(signals[0]); i++) {
		handle_fatal(signals[i]);
	}
	rc = connect_and_run(s, err);
	s->client.live = NULL;
	np_progress_free(s->progress);
	return rc;
}

/* Write the document and the error. status: the exit status for rc. Returns that of the program. */
static int
conclude(int rc, int status, struct session *s, const struct np_err *err)
{
	const struct np_err *failed = rc != NP_OK ? err : NULL;
	struct np_err unwritten;
	/* netperf prints it on standard output, which a document may have to itself */
	bool plain = rc == NP_EPLAIN && (s->document == NULL || s->out != NULL);

	if (plain) {
		puts(err->msg);
	}
	if (np_document_write(s->document, failed, s->partial, signal_last, stdout, &unwritten) !=
	    NP_OK) {
		fflush(stdout);
		fprintf(stderr, "netperf: %s\n", unwritten.msg);
		status = status != 0 ? status : np_errc_status(unwritten.code);
	}
	np_show_interim_free(&s->interim);
	np_document_free(s->document);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "netperf: write to standard output: %s\n", strerror(errno));
		status = status != 0 ? status : 1;
	}
	if (rc != NP_OK && !plain) {
		fprintf(stderr, s->partial[0] != '\0' ? "netperf: %s (%s)\n" : "netperf: %s\n",
			err->msg, s->partial);
		return status;
	}
	/* as a shell reports a process that was ended by a signal; SIGINT and SIGALRM are usual */
	return signal_last == SIGTERM || signal_last == SIGHUP ? 128 + signal_last : status;
}

/* Print the text that an option asks for. Returns the exit status, or -1: run a test. */
static int
print_texts(struct np_cli *cli)
{
	if (cli->usage) {
		np_help_all(stderr);
		return 1;
	}
	if (cli->help) {
		cli->help_all ? np_help_all(stdout) : np_help_short(stdout);
		return 0;
	}
	if (cli->version || cli->program) {
		puts("Netperf version 2.7.0"); /* as netperf -V, for scripts */
		if (cli->program) {
			puts(np_host_program());
		}
		return 0;
	}
	if (cli->list_figures) {
		np_help_figures(stdout);
		return 0;
	}
	if (cli->list_tests) {
		np_help_tests(stdout);
		return 0;
	}
	if (cli->test_usage) {
		np_help_test(cli, stdout);
		return 1;
	}
	if (cli->output.selectors != NULL && strcmp(cli->output.selectors, "?") == 0) {
		/* At a terminal a readable list, else netperf's. */
		isatty(STDOUT_FILENO) ? np_help_figures(stdout)
				      : np_selection_names(stdout, cli->output.style);
		return 1;
	}
	print_notes(&cli->notes);
	if (cli->gone != '\0') {
		fprintf(stderr, "netperf: test option -%c: has no effect any more, as in netperf\n",
			cli->gone);
	}
	return -1;
}

int
main(int argc, char **argv)
{
	static struct session s; /* too large for a small stack */
	struct np_err err = { .code = NP_OK };
	int rc, status;

	np_fds_fill();
	np_drive_prepare();
	rc = np_cli_parse(&s.cli, argc, argv, &err);
	np_phrases_option(stderr, argv[0], &s.cli.notes);
	status = rc == NP_OK ? print_texts(&s.cli) : -1;
	if (rc == NP_OK && status < 0) {
		rc = run(&s, &err);
	}
	np_cli_beside_free(s.beside);
	np_cli_free(&s.cli);
	return conclude(rc, status < 0 ? np_errc_status((enum np_errc)rc) : status, &s, &err);
}
