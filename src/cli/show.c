#include "cli/show.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bag.h"
#include "base/clock.h"
#include "base/text.h"
#include "bench/load.h"
#include "cli/document.h"
#include "cli/progress.h"

/* Part of --rate that counts as all of it. */
static const double REACHED = 0.999;
/* Part of a pace (-b, -w) that is enough on a busy machine, if more than PACE_MANY were due. */
static const double PACE_KEPT = 0.75, PACE_MANY = 1000;

/* A rate of --rate auto: bits a second of a stream, else operations. */
static void
print_rate(const struct np_plan *p, double rate)
{
	if (p->pattern->offers) {
		fprintf(stderr, "%.2f Mbit/s", rate / 1e6);
	} else {
		fprintf(stderr, "%.0f a second", rate);
	}
}

void
np_show_knee_step(const struct np_plan *p, const struct np_knee_step *s)
{
	static const char *const names[NP_KNEE_SHARES] = { "P50", "P99", "P99.9" };
	char us[24];

	fprintf(stderr, "netperf: %s: ", p->bench->name);
	print_rate(p, s->rate);
	for (int i = 0; s->timed && i < NP_KNEE_SHARES; i++) {
		np_hist_us((double)s->ns[i], us, sizeof(us));
		fprintf(stderr, "%s %s %s", i > 0 ? "," : ", in us:", names[i],
			s->high[i] > 0 ? us : "not known");
	}
	fprintf(stderr, s->why_too_high != NULL ? "; too much: %s\n" : "\n", s->why_too_high);
}

void
np_show_knee(const struct np_plan *p, const struct np_knee *k)
{
	const char *too_much = "nothing above it was tried";

	/* Of the lowest rate that was too high. */
	for (uint32_t i = 0; k->too_high > 0 && i < k->steps; i++) {
		if (k->step[i].why_too_high != NULL && k->step[i].rate <= k->too_high) {
			too_much = k->step[i].why_too_high;
		}
	}
	if (k->steps == 0) { /* the error line says why */
		return;
	}
	fprintf(stderr, "netperf: %s: ", p->bench->name);
	if (k->good > 0) {
		fputs(k->cut ? "the search was cut short; " : "the knee is at ", stderr);
		print_rate(p, k->good);
		fprintf(stderr, k->cut ? " was still good\n" : "; above it: %s\n", too_much);
	} else {
		fprintf(stderr, "no knee: the lowest rate is too much: %s\n", too_much);
	}
}

/* --rate of a stream that an end sends: tell if it was less (true) or, by long messages, more. */
static bool
show_offered(const struct np_cli *cli, const struct np_outcome *o, bool far)
{
	const struct np_tally *t = &o->tally;
	const struct np_plan *p = t->plan;
	const struct np_end *e = far ? &p->far : &p->near;
	double seconds = np_tally_sending_s(t, !far), asked = (double)e->call.offered,
	       moved = (double)(far ? t->end.count.received : t->end.count.sent) * 8 / seconds,
	       size = far ? (double)t->end.recv_size : (double)t->end.send_size;
	double message = far ? o->far.end.send_size : size; /* of the sender */
	/* Messages that may be missing: one, half a burst, or 4 sigma of a Poisson process. */
	double slack = p->arrivals == NP_ARRIVE_POISSON ? 4 * sqrt(asked * seconds / 8 / size)
							: fmax(1, p->arrivals / 2.0);
	bool less = asked > 0 && moved < REACHED * asked - slack * size * 8 / seconds;

	if (less) {
		fprintf(stderr,
			"netperf: %s: %.2f of the %.2f Mbit/s that --rate asks for were %s\n",
			cli->bench.name, moved / 1e6, asked / 1e6, far ? "received" : "sent");
	}
	if (asked > 0 && message * 8 / seconds > asked / 10 && moved > 1.1 * asked) {
		fprintf(stderr,
			"netperf: %s: %.6f Mbit/s, more than the %.6f that --rate asks for: a "
			"message alone is %.0f bytes (try -- -m %s)\n",
			cli->bench.name, moved / 1e6, asked / 1e6, message,
			far ? ",BYTES" : "BYTES");
	}
	return less;
}

/* --rate: what was not answered, and why the generator was slow. True if it missed the rate. */
static bool
show_open(const struct np_cli *cli, const struct np_outcome *o)
{
	const struct np_tally *t = &o->tally;
	const struct np_open_result *r = &t->open;
	const char *name = cli->bench.name;

	if (cli->plan.pattern->offers) {
		bool less = show_offered(cli, o, false);

		return show_offered(cli, o, true) || less;
	}
	/* No open loop, or it measured nothing. */
	if (r->rate == 0 || t->hist == NULL || r->lateness == NULL) {
		return false;
	}
	if (r->answered < r->count.due) {
		fprintf(stderr,
			"netperf: %s: %" PRIu64 " of %" PRIu64 " due requests were not answered: "
			"their latency counts as infinite\n",
			name, r->count.due - r->answered, r->count.due);
	}
	if (r->limits[0] != '\0') {
		fprintf(stderr, "netperf: %s: the load generator was the bottleneck: %s\n", name,
			r->limits);
	}
	return r->limits[0] != '\0';
}

/* asked: 0 or less is not shown. got: as read back at that end; -1: unknown, -2: refused. */
static void
show_setting(FILE *out, const char *what, int32_t asked, int got, const char *hint)
{
	if (asked > 0 && got >= 0 && got != asked) {
		fprintf(out, "netperf: %s: %d, not %d\n", what, got, asked);
	} else if (asked > 0 && got == -2) {
		fprintf(out, "netperf: %s: %d was refused%s\n", what, asked, hint);
	}
}

/* Linux reports twice the size asked for, or less if capped; another system the size itself. */
static void
show_buffer(FILE *out, const char *what, int32_t asked, int got, bool is_far)
{
	if (asked > 0 && got > 0 && got / 2 < asked && !(is_far && got == asked)) {
		fprintf(out, "netperf: %s: %d bytes, not %d (net.core.%s)\n", what,
			got < asked ? got : got / 2, asked,
			strstr(what, "SND") != NULL ? "wmem_max" : "rmem_max");
	}
}

void
np_show_refused(FILE *out, const struct np_cli *cli, const struct np_outcome *o)
{
	static const char right[] = " (above 6 it takes CAP_NET_ADMIN)";
	const struct np_end *near = &cli->plan.near, *far = &cli->plan.far;
	const char *cpus = o->far_bag != NULL ? np_bag_string(o->far_bag, "host.task.cpus") : NULL;
	char cpu[16];

	snprintf(cpu, sizeof(cpu), "%d", far->place.cpu);
	if (far->place.cpu >= 0 && cpus != NULL && strcmp(cpus, cpu) != 0) {
		np_text_line(
		    out, "netperf: -T: processor %s was refused at the far end, which runs on %s",
		    cpu, cpus);
	}
	show_setting(out, "-y: SO_PRIORITY at this end", near->sock.prio, o->tally.end.prio, right);
	show_setting(out, "-y: SO_PRIORITY at the far end", far->sock.prio, o->far.end.prio, right);
	show_setting(out, "-Y: type of service at this end", near->sock.tos, o->tally.end.tos, "");
	show_setting(out, "-Y: type of service at the far end", far->sock.tos, o->far.end.tos, "");
	show_buffer(out, "-s: SO_SNDBUF at this end", near->sock.sndbuf, o->tally.end.sndbuf,
		    false);
	show_buffer(out, "-s: SO_RCVBUF at this end", near->sock.rcvbuf, o->tally.end.rcvbuf,
		    false);
	show_buffer(out, "-S: SO_SNDBUF at the far end", far->sock.sndbuf, o->far.end.sndbuf, true);
	show_buffer(out, "-S: SO_RCVBUF at the far end", far->sock.rcvbuf, o->far.end.rcvbuf, true);
	if ((near->place.measure_cpu && !o->tally.end.closing.cpu.known) ||
	    (far->place.measure_cpu && o->far.reported && !o->far.end.closing.cpu.known)) {
		fputs("netperf: -c, -C: processors could not be measured (/proc/stat)\n", out);
	}
	if (o->cause == NP_BY_CLOCK) { /* else the tally may have no plan */
		const struct np_tally *t = &o->tally;
		uint64_t did =
		    t->plan->pattern->transactions ? t->end.count.transactions : t->end.count.sends;
		uint32_t burst = near->call.interval_burst;
		/* --both: half of the flows receive. */
		double all = (double)burst * t->flows / (t->plan->both ? 2 : 1);
		double each = (double)np_load_pause_of(near) / 1e9;
		double asked = np_tally_seconds(t) / each * all;

		/* A pace that a processor, the link or the far end does not keep up with; the last
		 * burst may be missing. UINT32_MAX: no limit. */
		if (asked > PACE_MANY && cli->plan.ramp == 0 && burst < UINT32_MAX &&
		    cli->plan.role == NP_LEAD && (double)did < PACE_KEPT * asked - all) {
			fprintf(out, "netperf: -b %u -w %g: %.0f %% of this pace was kept\n", burst,
				each * 1e3, 100 * (double)did / asked);
		}
	}
}

void
np_show_interim_flows(struct np_show_interim *s)
{
	uint32_t flows = s->cli->plan.flows;

	/* Only a document shows them. Those of a ramp are not there from the start. */
	if (s->doc == NULL || flows < 2 || s->cli->plan.ramp > 0) {
		return;
	}
	s->flow_work = calloc(flows, sizeof(*s->flow_work));
	s->flow_rate = calloc(flows, sizeof(*s->flow_rate));
	s->flows = s->flow_work != NULL && s->flow_rate != NULL ? flows : 0;
}

void
np_show_interim_free(struct np_show_interim *s)
{
	free(s->flow_work);
	free(s->flow_rate);
}

/* Put each flow's work (np_cli_work(); run NULL: of the tally) into flow_rate. False: not known. */
static bool
note_flow_work(struct np_show_interim *s, const struct np_plan *p, const struct np_run *run,
	       const struct np_tally *t)
{
	uint32_t flows = run != NULL ? run->conns : t->flows;

	/* The daemon may have granted fewer. */
	if (flows != s->flows || (run == NULL && t->flow == NULL)) {
		return false;
	}
	for (uint32_t i = 0; i < flows; i++) {
		struct np_counts c;

		if (run != NULL) {
			c = np_counts_of_flow(run, i);
		} else {
			c = (struct np_counts){ .sent = t->flow[i].sent,
						.received = t->flow[i].received,
						.transactions = t->flow[i].transactions };
		}
		s->flow_rate[i] = np_cli_work(s->cli, p, &c);
	}
	return flows > 0;
}

/* Show what was counted since the last interim result. by_flow: flow_rate has each flow's work. */
static void
show_interim(struct np_show_interim *s, const struct np_plan *p, const struct np_counts *c,
	     bool by_flow, uint64_t started_ns, uint64_t now_ns)
{
	const struct np_unit *unit = np_cli_unit(s->cli);
	double work = np_cli_work(s->cli, p, c);
	uint64_t then = np_max(s->then_ns, started_ns);
	struct np_interim i = {
		.number = s->number++,
		.seconds = (double)(now_ns - then) / 1e9,
		.ending_ms = np_wall_ms(now_ns),
	};

	if (then == started_ns) { /* the first one of a run */
		s->work = 0;
		for (uint32_t n = 0; n < s->flows; n++) {
			s->flow_work[n] = 0;
		}
	}
	if (p->pattern->transactions && !p->pattern->sized) {
		unit = np_unit('x'); /* connections have no size in bytes */
	}
	i.ramps = p->ramp > 0;
	i.flows_up = c->up;
	i.unit = unit->name;
	i.rate = np_rate(unit, work - s->work, i.seconds);
	s->work = work;
	s->then_ns = now_ns;
	for (uint32_t n = 0; by_flow && n < s->flows; n++) { /* work becomes a rate */
		work = s->flow_rate[n];
		s->flow_rate[n] = np_rate(unit, work - s->flow_work[n], i.seconds);
		s->flow_work[n] = work;
	}
	if (by_flow) {
		i.flow = s->flow_rate;
		i.flows = s->flows;
	}
	np_progress_pause(s->progress, stdout);
	if (s->out != NULL) {
		np_interim_print(s->out, s->cli->output.style, &i);
	}
	np_progress_resume(s->progress, stdout);
	np_document_interim(s->doc, &i);
}

void
np_show_interim(void *ctx, const struct np_run *run, uint64_t due_ns, uint64_t now_ns)
{
	struct np_counts c = np_counts_arrived(run);

	show_interim(ctx, run->plan, &c, note_flow_work(ctx, run->plan, run, NULL),
		     run->window.started_ns, now_ns);
}

void
np_show_interim_sum(void *ctx, const struct np_plan *whole, const struct np_counts *sum,
		    uint64_t started_ns, uint64_t now_ns)
{
	/* The sum tells no rates of flows: neither here nor in the last interim result. */
	((struct np_show_interim *)ctx)->flows = 0;
	show_interim(ctx, whole, sum, false, started_ns, now_ns);
}

void
np_show_plan(FILE *out, const struct np_cli *cli, const struct np_client *c)
{
	const struct np_plan *p = &cli->plan;
	char length[NP_LENGTH_TEXT];

	if (!p->no_control) {
		fprintf(out, "debug: control connection to %s, which is %s\n", c->peer,
			NP_ADDR_STR(&c->used));
	}
	if (cli->unbound) {
		fprintf(out, "debug: not bound to processor %d\n", p->near.place.cpu);
	}
	fprintf(out, "debug: %s is %s over %s, this end %s; request code %u, length %s\n",
		cli->bench.name, p->pattern->name, p->transport->name,
		p->role == NP_LEAD ? "leads" : "follows", cli->bench.code,
		np_plan_length_text(p, length));
}

void
np_show_clean(FILE *out, const struct np_cli *cli, const struct np_repeat *r)
{
	const struct np_repeat_clean *c = &r->clean;
	const struct np_unit *unit = np_cli_unit(cli);
	char figures[200] = "";

	if (r->plan.clean_s == 0) {
		return;
	}
	if (c->seconds <= 0) {
		fprintf(out,
			"netperf: --clean %d: this end could not measure what disturbs the test\n",
			r->plan.clean_s);
		return;
	}
	if (c->clean > 0) {
		snprintf(figures, sizeof(figures), ": %.2f %s/s in these, %.2f in all",
			 c->throughput, unit->name,
			 r->by_time[NP_REPEAT_THROUGHPUT] / r->elapsed_s);
	}
	fprintf(out, "netperf: %s%.1f of %.1f s were clean%s\n",
		np_repeat_unclean(r) ? "no more than " : "", c->clean, c->seconds, figures);
	if (c->seconds > c->clean) {
		fprintf(out, "netperf: disturbed for %.1f s (seconds by reason: %s)%s\n",
			c->seconds - c->clean, c->reasons,
			np_repeat_unclean(r) ? "; for more time: --at-most" : "");
	}
}

/* For -d: what ended the test, and what each end counted. */
static void
show_outcome(FILE *out, const struct np_outcome *o)
{
	static const char *const causes[] = {
		[NP_BY_LOOP] = "its count or the far end's close",
		[NP_BY_CLOCK] = "the clock",
		[NP_BY_SIGNAL] = "a signal",
		[NP_BY_CONTROL] = "the control connection",
		[NP_BY_SILENCE] = "silence", /* NP_BY_LIMIT is the daemon's */
	};
	const struct np_tally *t = &o->tally;
	const struct np_far *far = &o->far;

	fprintf(out, "debug: data from %s to %s, ended by %s after %.6f s\n",
		NP_ADDR_STR(&t->local), NP_ADDR_STR(&t->peer), causes[o->cause],
		np_tally_seconds(t));
	fprintf(out,
		"debug: here: %" PRIu64 " bytes in %" PRIu64 " sends, %" PRIu64 " bytes in %" PRIu64
		" receives, %" PRIu64 " transactions\n",
		t->end.count.sent, t->end.count.sends, t->end.count.received, t->end.count.receives,
		t->end.count.transactions);
	if (far->reported) {
		fprintf(out,
			"debug: there: %" PRIu64 " bytes in %lld sends, %" PRIu64
			" bytes in %lld receives, %.6f s\n",
			far->end.count.sent, (long long)far->end.count.sends,
			far->end.count.received, (long long)far->end.count.receives, far->elapsed);
	}
}

void
np_show_partial(char *text, size_t size, const struct np_outcome *out, const struct np_plan *p,
		unsigned done)
{
	double seconds = np_tally_seconds(&out->tally);
	char which[40] = "it", of[80] = "", length[NP_LENGTH_TEXT];
	/* Does only the sender know how many datagrams there were? */
	bool guesses = !np_delivers(p->transport) && !p->pattern->transactions &&
		       (p->both || p->role == NP_LEAD) && !out->far.reported &&
		       out->far.end.count.received == 0;
	const char *rate = guesses ? "; the rate is the sender's, what arrived is not known" : "";

	if (!out->measured) {
		snprintf(text, size, "the result is partial: it covers %u whole iteration%s", done,
			 done == 1 ? "" : "s");
		return;
	}
	if (done > 1) {
		snprintf(which, sizeof(which), "iteration %u", done);
	}
	if (p->length > 0 && seconds >= np_plan_time_s(p) && !out->far.reported) {
		snprintf(text, size, "the result is partial: %s %s%s", which,
			 p->no_control ? "counts data that the far end did not read"
				       : "is without the far end's figures",
			 rate);
		return;
	}
	if (p->length > 0) {
		snprintf(of, sizeof(of), " of %s s", np_plan_length_text(p, length));
	} else if (p->length < 0) {
		bool counts = p->pattern->transactions;
		const struct np_counts *c = &out->tally.end.count;
		uint64_t work = counts ? c->transactions : np_counts_bytes(c);

		snprintf(of, sizeof(of), " and %" PRIu64 " of %" PRId64 " %s", work,
			 -p->length * (p->both ? 2 : 1), counts ? "transactions" : "bytes");
	}
	snprintf(text, size, "the result is partial: %s covers %.2f s%s%s", which, seconds, of,
		 rate);
}

/* A row of the table of --stations: times, and the mean's share of whole_ns unless that is 0. */
static void
show_times(const char *name, const struct np_hist *h, double whole_ns)
{
	struct np_hist_summary s;
	char p50[24], p99[24], max[24], mean[24];

	np_hist_summarise(h, &s);
	np_hist_us(s.mean, mean, sizeof(mean));
	np_hist_us((double)s.p50, p50, sizeof(p50));
	np_hist_us((double)s.p99, p99, sizeof(p99));
	np_hist_us((double)s.max, max, sizeof(max));
	fprintf(stderr, "%-16s %10s %10s %10s %10s", name, mean, p50, p99, max);
	if (whole_ns > 0) {
		fprintf(stderr, " %6.1f %%", 100 * s.mean / whole_ns);
	}
	fputc('\n', stderr);
}

/* --stations: the stamps, a table of where transactions spent their time, and the clocks. */
static void
show_stations(const struct np_cli *cli, const struct np_stations *s)
{
	static const char *const ends[] = { "near", "far" };
	const struct np_oneway *c = &s->clocks;
	struct np_hist_summary whole;

	for (int end = 0; end < 2; end++) {
		const uint64_t *came = s->came[end];

		fprintf(stderr,
			"netperf: --stations: %s end: %" PRIu64 " transactions; stamps: %" PRIu64
			" queued, %" PRIu64 " sent, %" PRIu64 " received\n",
			ends[end], s->asked[end], came[NP_STAMP_QUEUE], came[NP_STAMP_GONE],
			came[NP_STAMP_CAME]);
	}
	fprintf(stderr, "netperf: --stations: matched %zu of %zu transactions\n", s->joined,
		s->kept);
	if (s->joined == 0) {
		if (s->asked[0] == 0) {
			fprintf(stderr,
				"netperf: --stations: too few transactions for one in %u (a longer "
				"-l, or --stations=1)\n",
				cli->plan.stations);
		}
		return;
	}
	fprintf(stderr, "%-16s %10s %10s %10s %10s %8s\n", cli->bench.name, "mean us", "p50 us",
		"p99 us", "max us", "share");
	np_hist_summarise(s->hist[NP_ST_WHOLE], &whole);
	for (int i = 0; i < NP_STATIONS; i++) {
		show_times(np_station_name[i], s->hist[i], whole.mean);
	}
	show_times("round trip", s->hist[NP_ST_WHOLE], whole.mean);
	if (!s->has_one_way) {
		return;
	}
	/* Delays of each direction beyond the smallest, by both clocks. */
	show_times("there, waiting", s->hist[NP_ST_THERE], 0);
	show_times("back, waiting", s->hist[NP_ST_BACK], 0);
	fprintf(stderr,
		"netperf: --stations: the far clock was %+.3f us beside the near one at the end, "
		"within %.3f us; it gained %+.2f ppm\n",
		c->last_ns / 1e3, c->slack_ns / 1e3, 1e6 * c->skew);
	if (c->steps > 0) {
		fprintf(stderr,
			"netperf: --stations: a clock was set %u times, by %+.3f us at most\n",
			c->steps, c->step_ns / 1e3);
	}
	if (c->paths > 0) {
		fprintf(stderr,
			"netperf: --stations: the path changed %u times, and took %+.3f us there "
			"and %+.3f us back in the end\n",
			c->paths, c->path_ns[NP_THERE] / 1e3, c->path_ns[NP_BACK] / 1e3);
	}
}

bool
np_show_iteration(struct np_show_interim *i, bool interim_lines, const struct np_outcome *o)
{
	const struct np_cli *cli = i->cli;
	const struct np_tally *t = &o->tally;
	const struct np_ramp_result *ramp = &t->ramp;
	const struct tcp_info *info = &t->end.closing.info;
	int debug = cli->output.debug;
	char reasons[256];
	bool limited;

	/* What remains since the last one; netperf's older tests do not print it. */
	if (interim_lines && (cli->bench.flags & NP_B_OLD) == 0 && t->ended_ns > i->then_ns) {
		show_interim(i, t->plan, &t->end.count, note_flow_work(i, t->plan, NULL, t),
			     t->started_ns, t->ended_ns);
	}
	if (debug > 0) {
		show_outcome(i->out != NULL ? i->out : stderr, o);
	}
	if ((debug > 1 || getenv("DUMP_TCP_INFO") != NULL) && (cli->bench.flags & NP_B_OLD) == 0 &&
	    !cli->plan.pattern->connection_test && info->tcpi_rto != 0) {
		/* netperf's text, which scripts parse: tpci is its misspelling. */
		fprintf(stderr,
			"tcpi_rto %u tcpi_ato %u tcpi_pmtu %u tcpi_rcv_ssthresh %u\n"
			"tcpi_rtt %u tcpi_rttvar %u tcpi_snd_ssthresh %u tpci_snd_cwnd %u\n"
			"tcpi_reordering %u tcpi_total_retrans %u\n",
			info->tcpi_rto, info->tcpi_ato, info->tcpi_pmtu, info->tcpi_rcv_ssthresh,
			info->tcpi_rtt, info->tcpi_rttvar, info->tcpi_snd_ssthresh,
			info->tcpi_snd_cwnd, info->tcpi_reordering, info->tcpi_total_retrans);
	}
	if (ramp->failed.count > 0) {
		np_ramp_reasons(&ramp->failed, reasons, sizeof(reasons));
		fprintf(stderr, "netperf: %s: %u of %u data connections failed: %s\n",
			cli->bench.name, ramp->failed.count, ramp->asked, reasons);
	}
	limited = show_open(cli, o);
	if (i->out != NULL && o->stations != NULL) {
		show_stations(cli, o->stations);
	}
	if (t->end.closing.degraded) {
		fprintf(stderr, "netperf: %s: %s\n", cli->bench.name, t->end.closing.detail);
	}
	return limited;
}
