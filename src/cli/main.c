/*
 * netperf: runs one test against a netserver and prints what came out.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/uuid.h"
#include "bench/transport/endpoint.h"
#include "cli/args.h"
#include "cli/document.h"
#include "cli/eth.h"
#include "cli/facts.h"
#include "cli/phrases.h"
#include "cli/preflight.h"
#include "cli/saved.h"
#include "cli/show.h"
#include "cli/tell_evidence.h"
#include "cli/wire.h"
#include "config.h"
#include "net/addr.h"
#include "net/capture.h"
#include "run/client.h"
#include "run/repeat.h"
#include "run/report.h"
#include "sys/cpu.h"

/* Signals taken so far, and the last of them: the handler's, and read by the controller. */
static volatile sig_atomic_t signals_taken, signal_last;

static void
on_signal(int sig)
{
	signal_last = sig;
	signals_taken++;
}

/* What a run needs that is not the user's to say. */
struct session {
	struct np_cli cli;
	struct np_client client;
	struct np_ends ends;
	struct np_eth eth; /* of a test of the link layer; fd 0: it is none */
	struct np_show_interim interim;
	struct np_look look;
	FILE *out; /* where the result is printed; NULL: a document stands there */
	struct np_document *document; /* NULL: none is asked for */
	sigset_t let_in;
	uint64_t surplus;  /* responses of all iterations that could not be told apart */
	char partial[160]; /* what the figures of a test that failed cover; empty: there are none */
};

/* SIGINT, SIGALRM and SIGTERM end a test early, with its results. Blocked except while waiting. */
static void
take_signals(struct session *s)
{
	static const int signals[] = { SIGINT, SIGALRM, SIGTERM };
	struct sigaction sa;
	sigset_t block;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_signal;
	sigemptyset(&sa.sa_mask);
	sigemptyset(&block);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigaddset(&block, signals[i]);
		sigaction(signals[i], &sa, NULL);
	}
	sigprocmask(SIG_BLOCK, &block, &s->let_in);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigdelset(&s->let_in, signals[i]);
	}
	s->client.signals.let_in = &s->let_in;
	s->client.signals.received = &signals_taken;
}

static int
data_family(const struct session *s)
{
	const struct np_cli *cli = &s->cli;
	const int families[] = { cli->data_family, cli->data_host.family, cli->data_local.family };

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		if (families[i] != AF_UNSPEC) {
			return families[i];
		}
	}
	return cli->plan.no_control ? cli->host.family : s->client.used.sa.ss_family;
}

/* A user should know what a silent netperf is waiting for. */
enum { PATIENCE_S = 5 };

static void
say_waiting(void *session, const char *text)
{
	(void)session;
	fprintf(stderr, "netperf: %s\n", text);
}

/* For -d. */
static void
show_agreed(void *session, const struct np_run *run)
{
	const struct session *s = session;

	np_show_agreed(s->out != NULL ? s->out : stderr, run);
}

/* A datagram or stream service that answers without a netserver: RFC 862, 863 and 864. */
static int
default_service(struct np_cli *cli, uint32_t *port, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	const char *name = p->pattern->transactions ? "echo"
			   : p->role == NP_LEAD     ? "discard"
						    : "chargen";
	const struct servent *service;

	if ((p->bench->flags & NP_B_OLD) != 0 || p->transport->service == NULL) {
		return np_fail(err, NP_EPLAIN, 0,
			       "No default port known for the %s test, please set one yourself",
			       p->bench->name);
	}
	service = getservbyname(name, p->transport->service);
	if (service == NULL) {
		return np_fail(err, NP_ECONTROL, 0,
			       "-N: no port is known for the service %s (name one: -- -P 0,PORT)",
			       name);
	}
	*port = ntohs((uint16_t)service->s_port);
	snprintf(cli->data_port, sizeof(cli->data_port), "%s", name);
	return NP_OK;
}

/* Without a control connection the far end is what the user says, and its port, too. */
static int
aim_at_service(struct session *s, struct np_err *err)
{
	struct np_plan *p = &s->cli.plan;
	uint32_t port = p->far.port;

	if (port == 0 && default_service(&s->cli, &port, err) != NP_OK) {
		return err->code;
	}
	np_addr_set_port(&s->ends.remote.at[0], port);
	return NP_OK;
}

/*
 * The daemon binds to the address that the data goes to. Where a mask makes that one random, it is
 * chosen here; but connections, of which each one has its own, need a daemon that takes them all.
 */
static void
aim_at_network(struct np_cli *cli, struct np_addr *remote)
{
	struct np_plan *p = &cli->plan;

	if (p->far.mask > 0 && p->pattern->connection_test) {
		return;
	}
	np_endpoint_spread(remote, p->far.mask);
	p->far.mask = -1;
	p->far_bind = *remote;
}

/* Where the data goes to and comes from. */
static int
resolve_data(struct session *s, struct np_err *err)
{
	struct np_cli *cli = &s->cli;
	const struct np_name *local = np_facts_local(cli);
	const char *remote = cli->data_host.given ? cli->data_host.text : cli->host.text;
	int socktype = cli->bench.transport->socktype;
	const struct np_transport *t = cli->bench.transport;
	int family = t->family > 0 ? t->family : data_family(s);

	if (np_resolve(remote, NULL, family, socktype, &s->ends.remote, err) != NP_OK) {
		if (s->out != NULL) {
			np_phrases_data_name(s->out, remote, family, err->sys);
		}
		return np_fail_in(err, "data connection");
	}
	family = np_family_or(family, s->ends.remote.at[0].sa.ss_family);
	if (np_resolve(local != NULL ? local->text : NULL, NULL, family, socktype, &s->ends.local,
		       err) != NP_OK) {
		return np_fail_in(err, "data connection");
	}
	cli->plan.family = family;
	if (!cli->plan.no_control && !cli->data_host.given &&
	    np_addr_same_family(&s->ends.remote.at[0], &s->client.used)) {
		/* Of a host with several addresses the one that answered. */
		s->ends.remote.at[0] = s->client.used;
		np_addr_set_port(&s->ends.remote.at[0], 0);
	}
	if (local != NULL) {
		cli->plan.bind = s->ends.local.at[0];
	} else if (t->admit == NP_ADMIT_PEER &&
		   !np_addr_towards(&s->ends.remote.at[0], &cli->plan.bind)) {
		cli->plan.bind.len = 0; /* the daemon says that it admits nobody then */
	}
	if (cli->data_host.given) {
		aim_at_network(cli, &s->ends.remote.at[0]);
	}
	return cli->plan.no_control ? aim_at_service(s, err) : NP_OK;
}

static void
fill_target(const struct np_cli *cli, struct np_target *t)
{
	t->host = cli->host.text;
	t->port = cli->port;
	t->family = cli->host.family;
	t->local_host = cli->local.given ? cli->local.text : NULL;
	t->local_port = cli->local_port[0] != '\0' ? cli->local_port : NULL;
	t->local_family = cli->local.family;
	t->passphrase = cli->passphrase;
	t->key = cli->key.count > 0 ? &cli->key : NULL;
	t->nat = cli->nat;
	memset(&t->wants, 0, sizeof(t->wants));
	t->wants.version = NP_EXT_VERSION;
	/* Who asks for a test's figures gets those of its datagrams, too. */
	t->wants.caps = cli->caps | ((cli->caps & NP_CAP_TEST) != 0 ? NP_CAP_SEQUENCE : 0);
	t->wants.every_ms = (uint32_t)cli->sample_ms;
	if (cli->bench.transport != NULL && cli->bench.transport->link) {
		t->wants.caps |= NP_CAP_LINK;
		snprintf(t->wants.device, sizeof(t->wants.device), "%s", cli->far_device);
	}
	snprintf(t->wants.identity, sizeof(t->wants.identity), "%s", PACKAGE_STRING);
}

static int
connect_control(struct session *s, const struct np_target *target, struct np_err *err)
{
	int rc = np_client_connect(&s->client, target, err);

	s->cli.plan.sequence = rc == NP_OK && (s->client.granted.caps & NP_CAP_SEQUENCE) != 0;
	return rc;
}

static int
connect_again(struct session *s, struct np_err *err)
{
	struct np_target target;

	fill_target(&s->cli, &target);
	return connect_control(s, &target, err);
}

/*
 * Before the request, so that it takes nothing from the far end's time. A daemon does not wait for
 * long for what a connection is about: the test gets another one.
 */
static int
wait_before(struct session *s, struct np_err *err)
{
	static const struct linger reset = { .l_onoff = 1 };
	uint64_t until = np_deadline((uint64_t)s->cli.wait_s * NP_SEC);
	bool again = s->cli.wait_s > 0 && !s->cli.plan.no_control;
	struct timespec left;

	if (again && s->cli.local_port[0] != '\0') {
		/* The port that the user named is to be free again at once. */
		setsockopt(s->client.chan.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	}
	if (again) {
		np_client_close(&s->client);
	}
	while (signals_taken == 0 && np_now() < until) {
		ppoll(NULL, 0, np_left(until, &left), &s->let_in);
	}
	return again ? connect_again(s, err) : NP_OK;
}

/* A figure that comes with the daemon's results: REMOTE_ ones, and its socket buffers at the end.
 */
static bool
is_far(enum np_metric_id id)
{
	return id == NP_M_RSS_SIZE_END || id == NP_M_RSR_SIZE_END ||
	       strncmp(np_metric(id)->name, "REMOTE_", strlen("REMOTE_")) == 0;
}

/* Is something wanted that only the daemon knows? netperf's default lists hold such. */
static bool
wants_far(const struct np_cli *cli)
{
	if (cli->plan.far.measure_cpu || cli->json ||
	    (cli->style != NP_STYLE_CLASSIC && cli->selectors == NULL)) {
		return true;
	}
	for (int g = 0; cli->style != NP_STYLE_CLASSIC && g < NP_SELECT_GROUPS; g++) {
		for (size_t i = 0; i < cli->selection.count[g]; i++) {
			int id = cli->selection.id[g][i];

			if (id >= 0 && is_far((enum np_metric_id)id)) {
				return true;
			}
		}
	}
	return false;
}

/* One iteration: its figures go into *record and *repeat. */
static int
run_once(struct session *s, struct np_outcome *out, struct np_record *record,
	 struct np_repeat *repeat, struct np_err *err)
{
	const struct np_cli *cli = &s->cli;
	struct np_err ignored;
	int rc =
	    np_client_run(&s->client, &cli->plan, &cli->terms, &s->ends.remote.at[0], out, err);

	if (rc != NP_OK && !out->measured) {
		return rc;
	}
	if (s->client.watch.every_ns != 0) {
		np_show_interim_end(&s->interim, &out->run);
	}
	if (cli->debug > 0) {
		np_show_outcome(s->out != NULL ? s->out : stderr, out);
	}
	if ((cli->debug > 1 || getenv("DUMP_TCP_INFO") != NULL) &&
	    (cli->bench.flags & NP_B_OLD) == 0 && !cli->plan.pattern->connection_test &&
	    out->run.closing.info.tcpi_rto != 0) {
		np_show_tcp_info(&out->run);
	}
	s->surplus += np_seen(&out->run.worker.count->surplus);
	np_report(out, np_cli_unit(cli), record);
	np_document_iteration(s->document, out, record, rc == NP_OK);
	if (rc != NP_OK) {
		np_repeat_add(repeat, record, out->run.worker.hist, &ignored);
		return rc;
	}
	return np_repeat_add(repeat, record, out->run.worker.hist, err);
}

static void
plan_repeats(const struct np_cli *cli, struct np_repeat_plan *plan)
{
	plan->max = (unsigned)cli->confidence.max;
	plan->min = (unsigned)cli->confidence.min;
	plan->level = cli->confidence.level;
	plan->width = cli->confidence.width;
	plan->result_only = cli->confidence.result_only;
	if (!np_cli_repeats(cli)) {
		plan->max = plan->min = 1;
	} else if ((cli->bench.flags & NP_B_OLD) != 0 && plan->max > plan->min) {
		plan->max--; /* netperf's older tests stop one earlier */
	}
}

/*
 * A connection test ends by closing this end of the control connection, see run/client.c: another
 * iteration needs another one.
 */
static int
renew_control(struct session *s, struct np_err *err)
{
	if (!s->cli.plan.pattern->connection_test || s->cli.plan.no_control) {
		return NP_OK;
	}
	np_client_close(&s->client);
	return connect_again(s, err);
}

/*
 * What was measured until something failed is shown, too: how much that is, for a line on standard
 * error. The last iteration may have failed before it had any figures.
 */
static void
say_partial(struct session *s, const struct np_outcome *out, const struct np_repeat *repeat)
{
	const struct np_plan *p = &s->cli.plan;
	double seconds = (double)(out->run.window.ended_ns - out->run.window.started_ns) / 1e9;
	char which[40] = "it", of[80] = "";

	if (!out->measured) {
		snprintf(s->partial, sizeof(s->partial),
			 "the result is partial: it covers %u whole iteration%s", repeat->done,
			 repeat->done == 1 ? "" : "s");
		return;
	}
	if (repeat->done > 1) {
		snprintf(which, sizeof(which), "iteration %u", repeat->done);
	}
	if (p->length > 0 && seconds >= (double)p->length) {
		snprintf(s->partial, sizeof(s->partial),
			 "the result is partial: %s is without the far end's figures", which);
		return;
	}
	if (p->length > 0) {
		snprintf(of, sizeof(of), " of %lld s", (long long)p->length);
	} else if (p->length < 0) {
		bool counts = p->pattern->transactions;
		uint64_t done = counts ? np_seen(&out->run.worker.count->transactions)
				       : np_seen(&out->run.worker.count->sent) +
					     np_seen(&out->run.worker.count->received);

		snprintf(of, sizeof(of), " and %llu of %lld %s", (unsigned long long)done,
			 (long long)-p->length, counts ? "transactions" : "bytes");
	}
	snprintf(s->partial, sizeof(s->partial), "the result is partial: %s covers %.2f s%s", which,
		 seconds, of);
}

/* What all iterations come to: in its style, and in the document. */
static void
tell_result(struct session *s, const struct np_repeat *repeat, struct np_record *record)
{
	const struct np_cli *cli = &s->cli;
	bool timed = cli->latency || (s->document != NULL && np_hist_count(repeat->hist) > 0);

	np_facts(cli, record);
	np_repeat_conclude(repeat, timed, record);
	np_show_look(cli, &s->look);
	s->look.missed = np_repeat_missed(repeat) && np_cli_repeats(cli);
	np_document_result(s->document, &s->look, record);
	if (s->out != NULL) {
		np_look_print(s->out, &s->look, record, repeat->hist);
	}
}

/* The test, as often as it takes, and its result. */
static int
repeat_test(struct session *s, struct np_err *err)
{
	struct np_cli *cli = &s->cli;
	struct np_repeat repeat = { .done = 0 };
	struct np_outcome out;
	struct np_record record;
	int rc;

	plan_repeats(cli, &repeat.plan);
	memset(&out, 0, sizeof(out));
	do {
		np_outcome_free(&out);
		out.measured = false;
		rc = repeat.done > 0 ? renew_control(s, err) : NP_OK;
		rc = rc == NP_OK ? run_once(s, &out, &record, &repeat, err) : rc;
	} while (rc == NP_OK && signals_taken == 0 && np_repeat_more(&repeat));
	if (rc != NP_OK && repeat.done > 0) {
		say_partial(s, &out, &repeat);
	}
	if (repeat.done > 0) {
		tell_result(s, &repeat, &record);
		fflush(stdout);
		np_show_surplus(stderr, cli, s->surplus);
		np_cli_tell_evidence(cli, &out, repeat.done, rc == NP_OK, s->document, stderr);
	}
	np_capture_free(s->client.collect.capture);
	s->client.collect.capture = NULL;
	if (rc != NP_OK) {
		np_fail_in(err, cli->bench.name);
	}
	np_outcome_free(&out);
	np_repeat_free(&repeat);
	return rc;
}

static int
run_bench(struct session *s, struct np_err *err)
{
	struct np_cli *cli = &s->cli;

	if (cli->plan.no_control && cli->bench.transport->no_control != NULL) {
		return np_fail(err, NP_EPLAIN, 0, "%s", cli->bench.transport->no_control);
	}
	if (cli->bench.transport->link && np_cli_open_eth(cli, &s->client, &s->eth, err) != NP_OK) {
		return err->code;
	}
	if (cli->bench.transport->named && resolve_data(s, err) != NP_OK) {
		return err->code;
	}
	if (cli->debug > 0) {
		np_show_plan(s->out != NULL ? s->out : stderr, cli, &s->client);
		s->client.hooks.agreed = show_agreed;
	}
	if (s->out != NULL) {
		np_show_banner(s->out, cli, &s->ends);
	}
	np_document_begin(s->document, cli, &s->client, &s->ends);
	if (wait_before(s, err) != NP_OK) {
		return err->code;
	}
	s->client.want_far = wants_far(cli);
	s->client.collect.caps = cli->caps;
	s->client.collect.every_ms = (uint32_t)cli->sample_ms;
	if (np_wire_open(cli, &s->ends.local.at[0], &s->ends.remote.at[0], &s->client.collect,
			 err) != NP_OK) {
		return err->code;
	}
	s->interim.cli = cli;
	s->interim.out = s->out;
	s->interim.doc = s->document;
	if (cli->interim_s > 0 && (cli->bench.flags & NP_B_SPARSE) == 0) {
		s->client.watch.every_ns = (uint64_t)(cli->interim_s * 1e9);
		s->client.watch.look = np_show_interim;
		s->client.watch.ctx = &s->interim;
	}
	return repeat_test(s, err);
}

/* The "calibration rate" of a CPU, which on Linux is the clock tick; -v 2 counts processors. */
static void
print_rate(const struct np_cli *cli, const char *whose, double rate, int cpus)
{
	printf("%g", rate);
	if (cli->verbosity > 1) {
		printf(cpus == 1 ? "\nThere is %d %s cpu\n" : "\nThere are %d %s cpus\n", cpus,
		       whose);
	}
}

static int
ask_rate(struct session *s, struct np_err *err)
{
	struct np_calibrate_response m;

	if (s->cli.plan.no_control) {
		return np_fail(err, NP_ECONTROL, 0,
			       "-N: REM_CPU asks the daemon, and needs a control connection");
	}
	if (np_client_calibrate(&s->client, &m, err) != NP_OK) {
		return err->code;
	}
	print_rate(&s->cli, "remote", (double)m.rate, m.num_cpus);
	return NP_OK;
}

static int
run_test(struct session *s, struct np_err *err)
{
	const struct np_cli *cli = &s->cli;

	switch (np_cli_test(cli)) {
	case NP_TEST_BENCH:
		return run_bench(s, err);
	case NP_TEST_UUID:
		fputs(cli->uuid != NULL ? cli->uuid : cli->uuid_made, stdout);
		return NP_OK;
	case NP_TEST_LOC_CPU:
		print_rate(cli, "local", np_cpu_rate(), np_cpu_count());
		return NP_OK;
	case NP_TEST_REM_CPU:
		return ask_rate(s, err);
	case NP_TEST_UNKNOWN:
		break;
	}
	if (s->out != NULL) {
		np_phrases_unknown_test(s->out, cli);
	}
	return np_fail(err, NP_EUSAGE, 0, "-t: %s is no test of this netperf (-h lists them)",
		       cli->test);
}

static void
default_host(struct np_cli *cli)
{
	if (!cli->host.given) {
		snprintf(cli->host.text, sizeof(cli->host.text), "%s",
			 np_family_version(cli->host.family) == 6 ||
				 np_family_version(cli->local.family) == 6
			     ? "::1"
			     : "localhost");
	}
}

/* Connect first, as netperf does: an unknown test is told from a missing daemon. */
static int
run(struct session *s, struct np_err *err)
{
	struct np_cli *cli = &s->cli;
	struct np_target target;
	int rc;

	default_host(cli);
	np_uuid_make(cli->uuid_made);
	if (np_document_new(cli, &s->document, err) != NP_OK) {
		return err->code;
	}
	s->out = s->document != NULL && cli->json_file == NULL ? NULL : stdout;
	if (np_cli_test(cli) == NP_TEST_BENCH && np_cli_settle(cli, err) != NP_OK) {
		return err->code;
	}
	if (np_wire_settle(cli, err) != NP_OK) {
		return err->code;
	}
	fill_target(cli, &target);
	s->client.chan.fd = -1;
	s->client.hooks.ctx = s;
	s->client.hooks.waiting = say_waiting;
	s->client.hooks.patience_ns = PATIENCE_S * NP_SEC;
	if (cli->preflight) {
		return np_preflight_run(cli, &s->client, &target, err);
	}
	if (!cli->plan.no_control && connect_control(s, &target, err) != NP_OK) {
		if (s->out != NULL) {
			np_phrases_control(s->out, cli, &s->client);
		}
		return err->code;
	}
	take_signals(s);
	rc = run_test(s, err);
	if (rc == NP_ECONTROL && s->client.remote_error != 0 && s->out != NULL &&
	    s->partial[0] == '\0') { /* else a result, of which netperf prints none, is the end */
		np_phrases_remote_error(s->out, s->client.remote_error);
	}
	if (s->client.chan.fd >= 0) {
		np_client_close(&s->client);
	}
	if (cli->terms.eth != NULL) {
		np_eth_close(&s->eth);
	}
	return rc;
}

/* Also of a run that failed. Returns 0, or the exit status of what went wrong here. */
static int
write_document(struct session *s, int rc, const struct np_err *failed)
{
	const struct np_verdict verdict = {
		.rc = rc, .err = failed, .partial = s->partial, .signal = signal_last
	};
	struct np_err err;
	int status = 0;

	if (np_document_write(s->document, &verdict, stdout, &err) != NP_OK) {
		fflush(stdout);
		fprintf(stderr, "netperf: %s\n", err.msg);
		status = np_errc_status(err.code);
	}
	np_document_free(s->document);
	return status;
}

static void
print_version(void)
{
	/* The first line is what scripts ask a netperf for. */
	printf("Netperf version 2.7.0\n");
}

/* The exit status; written results that did not arrive are an error like any other. */
static int
conclude(int rc, struct session *s, const struct np_err *err)
{
	int status = np_errc_status((enum np_errc)rc), unwritten;
	bool plain = rc == NP_EPLAIN && (s->document == NULL || s->out != NULL);

	if (plain) {
		puts(err->msg);
	}
	unwritten = write_document(s, rc, err);
	status = status != 0 ? status : unwritten;
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "netperf: write the results to standard output: %s\n",
			strerror(errno));
		status = status != 0 ? status : 1;
	}
	if (rc != NP_OK && !plain) {
		fprintf(stderr, s->partial[0] != '\0' ? "netperf: %s (%s)\n" : "netperf: %s\n",
			err->msg, s->partial);
		return status;
	}
	/* The caller of kill(1) sees what the shell shows of a process that TERM has ended. */
	return signal_last == SIGTERM ? 128 + SIGTERM : status;
}

/* Texts that are asked for in place of a test. Returns the exit status, or -1: there is a test. */
static int
print_texts(const struct np_cli *cli)
{
	if (cli->usage) {
		np_cli_usage(stderr);
		return 1;
	}
	if (cli->help || cli->version) {
		cli->help ? np_cli_usage(stdout) : print_version();
		return 0;
	}
	if (cli->test_usage) {
		np_cli_test_usage(cli, stdout);
		return 1;
	}
	if (cli->selectors != NULL && strcmp(cli->selectors, "?") == 0) {
		np_selection_names(stdout, cli->style);
		return 1;
	}
	for (const char *note = cli->notes.text; *note != '\0'; note = strchr(note, '\n') + 1) {
		fprintf(stderr, "netperf: %.*s\n", (int)strcspn(note, "\n"), note);
	}
	if (cli->gone != '\0') {
		fprintf(stderr,
			"netperf: test option -%c: has no effect, netperf has given it up\n",
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
		rc = s.cli.show != NULL ? np_saved_show(&s.cli, stdout, &err) : run(&s, &err);
	}
	np_cli_free(&s.cli);
	return status >= 0 ? (fflush(stdout) == 0 ? status : 1) : conclude(rc, &s, &err);
}
