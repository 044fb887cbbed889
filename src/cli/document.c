#include "cli/document.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/output.h"
#include "base/units.h"
#include "bench/engine/engine.h"
#include "config.h"
#include "out/json.h"
#include "run/repeat.h"
#include "stats/confidence.h"

struct np_document {
	json_t *root;
	const struct np_cli *cli; /* from np_document_begin() on */
	const char *path;         /* as the user wrote it; NULL: standard output */
	char peer[300];           /* np_client.peer, or empty with -N */
	unsigned iteration;       /* the present one, from 1 */
	unsigned long left_out;   /* values of evidence for which a bag had no room */
	bool endless;             /* only a signal ends the test */
	bool concluded;           /* there is a result */
	bool failed;              /* memory ran out */
};

/* Set the member at a path such as "test/name"; null leaves it out. Takes ownership of v. */
static void
put(struct np_document *d, json_t *o, const char *path, json_t *v)
{
	d->failed |= np_json_put(o, path, v) != 0;
}

/* Adds the members of *source, as listed in the table. */
#define PUT(d, o, table, source)                                                                   \
	((d)->failed |= np_json_members(o, table, sizeof(table) / sizeof((table)[0]), source) != 0)
#define MEMBER(json, kind, type, member)                                                           \
	{                                                                                          \
		json, NP_JSON_##kind, offsetof(struct type, member)                                \
	}

/* Takes ownership of the value. */
static void
append(struct np_document *d, json_t *list, json_t *v)
{
	d->failed |= json_array_append_new(list, v) != 0;
}

/* The object at a path such as "near/tcp" in o, made if missing. NULL: no memory (d->failed). */
static json_t *
object_at(struct np_document *d, json_t *o, const char *path)
{
	json_t *inner = np_json_part(o, path);

	d->failed |= inner == NULL;
	return inner;
}

/* Milliseconds since 1970 as "2026-11-21T20:33:25.123Z". */
static json_t *
utc_date(uint64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	char day[32];

	gmtime_r(&seconds, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	return json_sprintf("%s.%03uZ", day, (unsigned)(ms % 1000));
}

int
np_document_new(const struct np_cli *cli, struct np_document **doc, struct np_err *err)
{
	enum np_test test = np_cli_test(cli);
	struct np_document *d;

	*doc = NULL;
	if (!cli->output.json) {
		return NP_OK;
	}
	if (test != NP_TEST_BENCH && test != NP_TEST_UNKNOWN) { /* which fails, in a document */
		return np_usage(err, "--json: %s measures nothing to write", cli->test);
	}
	if (cli->output.json_file != NULL &&
	    np_output_check(cli->output.json_file, NP_OUTPUT_REPLACE, err) != NP_OK) {
		return np_fail_in(err, "--json");
	}
	d = calloc(1, sizeof(*d));
	if (d == NULL || (d->root = json_object()) == NULL) {
		free(d);
		return np_fail(err, NP_ESYS, ENOMEM, "memory for a document");
	}
	d->path = cli->output.json_file;
	d->iteration = 1;
	/* The members of every document, in the order in which people read them. */
	put(d, d->root, "schema", json_sprintf("%s%d", NP_JSON_SCHEMA, NP_JSON_NUMBER));
	put(d, d->root, "program", json_string(PACKAGE_STRING));
	put(d, d->root, "command_line", np_json_text(cli->command_line));
	put(d, d->root, "started", utc_date(np_wall_ms(np_now())));
	put(d, d->root, "test/name", np_json_text(cli->test));
	put(d, d->root, "iterations", json_array());
	put(d, d->root, "interim", json_array());
	*doc = d;
	return NP_OK;
}

void
np_document_free(struct np_document *d)
{
	if (d != NULL) {
		json_decref(d->root);
		free(d);
	}
}

/* The rows of wire/plan.def, for an end and for the whole test. */
#define END_FIELD(json, kind, member) MEMBER(json, kind, np_end, member),
#define PLAN_FIELD(json, kind, member) MEMBER(json, kind, np_plan, member),
static const struct np_json_member end_members[] = {
#define NP_E_NUMBER(type, group, member, json, kind, ...) END_FIELD(json, kind, group.member)
#define NP_E_TEXT(group, member, json, ...) END_FIELD(json, TEXT, group.member)
#define NP_E_PATH(group, member, json, ...) END_FIELD(json, STRING, group.member)
#define NP_E_FLAG(bit, group, member, json, ...) END_FIELD(json, FLAG, group.member)
#include "wire/plan.def"
};
static const struct np_json_member plan_members[] = {
#define NP_P_NUMBER(type, member, json, kind, ...) PLAN_FIELD(json, kind, member)
#define NP_P_FLAG(bit, member, json, ...) PLAN_FIELD(json, FLAG, member)
#define NP_H_NUMBER(type, member, json, kind, ...) PLAN_FIELD(json, kind, member)
#define NP_H_FLAG(member, json, ...) PLAN_FIELD(json, FLAG, member)
#include "wire/plan.def"
};

/* What was asked for at one end. */
static void
put_asked_end(struct np_document *d, json_t *o, const struct np_end *e)
{
	char cpus[NP_CPU_TURNS_TEXT];

	PUT(d, o, end_members, e);
	(void)np_cpu_turns_text(&e->place.turns, cpus, sizeof(cpus));
	put(d, o, "cpus", np_json_text(cpus[0] != '\0' ? cpus : NULL));
}

/* The object "test": what was asked for, and how often. */
static void
put_test(struct np_document *d, const struct np_cli *cli)
{
	const struct np_plan *p = &cli->plan;
	json_t *test = object_at(d, d->root, "test"), *plan, *length;
	const struct np_repeat_plan *c = &cli->confidence;
	bool counts = p->pattern->transactions, cleans = c->clean_s > 0;

	put(d, test, "name", np_json_text(cli->bench.name));
	put(d, test, "title", np_json_text(cli->bench.title));
	put(d, test, "pattern", np_json_text(p->pattern->name));
	put(d, test, "protocol", np_json_text(p->transport->name));
	put(d, test, "family", np_json_text(np_family(np_plan_family(p))->name));
	put(d, test, "direction", json_string(p->both ? "both" : p->pattern->words[p->role].flow));
	put(d, test, "host", np_json_text(cli->target.host.text));
	put(d, test, "uuid", np_json_text(cli->output.uuid));
	put(d, test, "brand", np_json_text(cli->output.brand));
	length = object_at(d, test, "length");
	if (p->length > 0) {
		put(d, length, "seconds",
		    p->length_less_ms == 0 ? json_integer(p->length)
					   : np_json_real(np_plan_time_s(p)));
	} else if (p->length < 0) {
		put(d, length, counts ? "transactions" : "bytes", json_integer(-p->length));
	}
	plan = object_at(d, test, "iterations");
	/* with --clean each iteration takes a second or more */
	put(d, plan, "max", json_integer(cleans ? c->at_most_s : np_cli_repeats(cli) ? c->max : 1));
	put(d, plan, "min", json_integer(np_cli_repeats(cli) ? c->min : 1));
	put(d, plan, "result_only", json_boolean(c->result_only));
	if (c->level != 0) {
		put(d, plan, "confidence_level", json_integer(c->level));
		put(d, plan, "confidence_width", np_json_real(c->width));
	}
	if (cleans) {
		put(d, plan, "clean_seconds", json_integer(c->clean_s));
		put(d, plan, "at_most_seconds", json_integer(c->at_most_s));
	}
}

/* Begin "near" and "far" anew: without evidence of an end, with a few facts, or far_lacks. */
static void
put_ends(struct np_document *d, const struct np_bag *near, const struct np_bag *far,
	 const char *far_lacks)
{
	struct utsname here;

	put(d, d->root, "near", json_object());
	put(d, d->root, "far", json_object());
	if (near == NULL && uname(&here) == 0) {
		put(d, d->root, "near/why", json_string("no evidence was collected"));
		put(d, d->root, "near/program", json_string(PACKAGE_STRING));
		put(d, d->root, "near/name", np_json_text(here.nodename));
		put(d, d->root, "near/kernel", np_json_text(here.release));
		put(d, d->root, "near/machine", np_json_text(here.machine));
	}
	put(d, d->root, "far/why", np_json_text(far == NULL ? far_lacks : NULL));
	put(d, d->root, "far/peer", np_json_text(d->peer[0] != '\0' ? d->peer : NULL));
}

void
np_document_begin(struct np_document *d, const struct np_cli *cli, const struct np_client *c)
{
	const struct np_plan *p = &cli->plan;
	json_t *plan, *asked;

	if (d == NULL) {
		return;
	}
	d->cli = cli;
	d->endless = p->length == 0;
	put_test(d, cli);
	plan = object_at(d, d->root, "plan");
	put(d, plan, "engine/near", json_string(np_group_engine(p, &c->granted)->name));
	put(d, plan, "threads/near", json_integer(np_plan_workers(p)));
	put(d, plan, "flows", json_integer(p->flows));
	put(d, plan, "warm_up_s", np_json_real(p->warm_up_ms / 1e3));
	put(d, plan, "ramp_per_s", p->ramp > 0 ? json_integer(p->ramp) : json_null());
	put(d, plan, "sessions", json_integer(np_group_sessions(p, &c->granted)));
	put(d, plan, "both", json_boolean(p->both));
	asked = object_at(d, d->root, "parameters/asked");
	PUT(d, asked, plan_members, p);
	put_asked_end(d, object_at(d, asked, "near"), &p->near);
	put_asked_end(d, object_at(d, asked, "far"), &p->far);
	if (!p->no_control) {
		snprintf(d->peer, sizeof(d->peer), "%s", c->peer);
	}
	put_ends(d, NULL, NULL, "nothing was measured"); /* until an iteration ends */
}

enum { FLOWS_SHOWN = 64, QUARTERS = 4 };

void
np_document_interim(struct np_document *d, const struct np_interim *i)
{
	static const struct np_json_member members[] = {
		MEMBER("number", COUNT, np_interim, number),
		MEMBER("rate", REAL, np_interim, rate),
		MEMBER("unit", STRING, np_interim, unit),
		MEMBER("seconds", REAL, np_interim, seconds),
		MEMBER("ending_ms", COUNT64, np_interim, ending_ms),
	};
	double sum = 0, squares = 0;
	json_t *o;

	if (d == NULL) {
		return;
	}
	o = json_object();
	put(d, o, "iteration", json_integer(d->iteration));
	PUT(d, o, members, i);
	put(d, o, "flows_up", i->ramps ? json_integer((json_int_t)i->flows_up) : json_null());
	if (i->flow != NULL) {
		json_t *rates = json_array(), *quartiles = json_array();

		/* Rates of flows (of many, only quartiles), and Jain's index of their fairness. */
		for (uint32_t n = 0; n < i->flows; n++) {
			sum += i->flow[n];
			squares += i->flow[n] * i->flow[n];
			if (i->flows <= FLOWS_SHOWN) {
				append(d, rates, np_json_real(i->flow[n]));
			}
		}
		qsort(i->flow, i->flows, sizeof(*i->flow), np_by_size);
		for (uint64_t n = 0; n <= QUARTERS; n++) {
			append(d, quartiles, np_json_real(i->flow[(i->flows - 1) * n / QUARTERS]));
		}
		put(d, o, "flows", rates);
		put(d, o, "flow_quartiles", quartiles);
		put(d, o, "jain_index", np_json_real(np_jain_index(sum, squares, i->flows)));
	}
	append(d, json_object_get(d->root, "interim"), o);
}

/* The address of an end's data socket; null if it is not known, or is of a family without ports. */
static json_t *
address_json(const struct np_addr *a)
{
	if (a->len == 0 || np_addr_port(a) == 0) {
		return json_null();
	}
	return np_json_text(NP_ADDR_STR(a));
}

/* A row for each data connection of an iteration. */
static json_t *
flow_rows(struct np_document *d, const struct np_tally *t)
{
	static const struct np_json_member members[] = {
		MEMBER("bytes_sent", COUNT64, np_flow_result, sent),
		MEMBER("bytes_received", COUNT64, np_flow_result, received),
		MEMBER("data_segments", SIGNED64, np_flow_result, tcp.data_segments),
		MEMBER("retransmissions", SIGNED64, np_flow_result, tcp.retransmitted_segments),
		MEMBER("rtt_us", SIGNED64, np_flow_result, tcp.rtt_us),
		MEMBER("min_rtt_us", SIGNED64, np_flow_result, tcp.min_rtt_us),
		MEMBER("cwnd", SIGNED64, np_flow_result, tcp.cwnd),
		MEMBER("rwnd_limited_us", SIGNED64, np_flow_result, tcp.rwnd_limited_us),
		MEMBER("incoming_cpu", SIGNED64, np_flow_result, cpu),
		MEMBER("napi_id", SIGNED64, np_flow_result, napi_id),
		MEMBER("local_port", SIGNED64, np_flow_result, local_port),
		MEMBER("remote_port", SIGNED64, np_flow_result, remote_port),
		MEMBER("worker", COUNT, np_flow_result, worker),
	};
	const struct np_plan *p = t->plan;
	json_t *rows = json_array();

	for (uint32_t i = 0; i < t->flows; i++) {
		struct np_flow_result f = t->flow[i];
		double bits = 8 * (double)(f.sent + f.received), count = (double)f.transactions;
		/* --both: each half has a window of its own. */
		double seconds = !p->both     ? np_tally_seconds(t)
				 : f.sent > 0 ? (double)t->led_ns / 1e9
					      : (double)t->followed_ns / 1e9;
		json_t *o = json_object();

		if (f.sent == 0) { /* only a sender counts them */
			f.tcp.retransmitted_segments = -1;
		}
		PUT(d, o, members, &f);
		put(d, o, "bits_per_s", np_json_real(seconds > 0 ? bits / seconds : 0));
		if (p->pattern->transactions) {
			put(d, o, "transactions", json_integer((json_int_t)f.transactions));
			put(d, o, "transactions_per_s",
			    np_json_real(seconds > 0 ? count / seconds : 0));
		}
		append(d, rows, o);
	}
	return rows;
}

/* --ramp: how the connections were made. */
static json_t *
ramp_json(struct np_document *d, const struct np_ramp_result *r)
{
	static const struct np_json_member members[] = {
		MEMBER("flows", COUNT, np_ramp_result, asked),
		MEMBER("up", COUNT, np_ramp_result, established),
		MEMBER("connect", HIST, np_ramp_result, hist),
	};
	json_t *o = json_object(), *failed = object_at(d, o, "failed");
	char text[16];

	PUT(d, o, members, r);
	for (uint32_t i = 0; i < r->failed.reasons; i++) {
		put(d, failed, np_ramp_reason(r->failed.by[i].error, text),
		    json_integer(r->failed.by[i].count));
	}
	return o;
}

/* --rate, an open loop: when requests were due, sent and answered. */
static json_t *
open_json(struct np_document *d, const struct np_tally *t)
{
	static const struct np_json_member members[] = {
		MEMBER("spin_us", NS, np_open_result, spin_ns),
		MEMBER("since_sent", HIST, np_open_result, sent),
		MEMBER("lateness", HIST, np_open_result, lateness),
	};
	const struct np_open_result *r = &t->open;
	char text[NP_ARRIVALS_TEXT];
	json_t *o = json_object();

	put(d, o, "arrivals", json_string(np_arrivals_text(t->plan->arrivals, text)));
	put(d, o, "lost", json_integer((json_int_t)t->end.count.lost));
	put(d, o, "outage_flow", r->outage.ns > 0 ? json_integer(r->outage.flow) : json_null());
	PUT(d, o, members, r);
	return o;
}

/* --stations: where the time of transactions went. */
static json_t *
stations_json(struct np_document *d, const struct np_stations *s)
{
	static const struct np_json_member members[] = {
		MEMBER("every", COUNT, np_stations, every),
		MEMBER("round_trip", HIST, np_stations, hist[NP_ST_WHOLE]),
		MEMBER("kept", SIZE, np_stations, kept),
		MEMBER("matched", SIZE, np_stations, joined),
		MEMBER("near/asked", COUNT64, np_stations, asked[0]),
		MEMBER("near/queued", COUNT64, np_stations, came[0][NP_STAMP_QUEUE]),
		MEMBER("near/sent", COUNT64, np_stations, came[0][NP_STAMP_GONE]),
		MEMBER("near/received", COUNT64, np_stations, came[0][NP_STAMP_CAME]),
		MEMBER("far/asked", COUNT64, np_stations, asked[1]),
		MEMBER("far/queued", COUNT64, np_stations, came[1][NP_STAMP_QUEUE]),
		MEMBER("far/sent", COUNT64, np_stations, came[1][NP_STAMP_GONE]),
		MEMBER("far/received", COUNT64, np_stations, came[1][NP_STAMP_CAME]),
	};
	static const struct np_json_member one_way[] = {
		MEMBER("one_way/first_offset_us", REAL_NS, np_stations, clocks.first_ns),
		MEMBER("one_way/last_offset_us", REAL_NS, np_stations, clocks.last_ns),
		MEMBER("one_way/within_us", REAL_NS, np_stations, clocks.slack_ns),
		MEMBER("one_way/clock_steps", COUNT, np_stations, clocks.steps),
		MEMBER("one_way/clock_step_us", REAL_NS, np_stations, clocks.step_ns),
		MEMBER("one_way/path_changes", COUNT, np_stations, clocks.paths),
		MEMBER("one_way/path_there_us", REAL_NS, np_stations, clocks.path_ns[NP_THERE]),
		MEMBER("one_way/path_back_us", REAL_NS, np_stations, clocks.path_ns[NP_BACK]),
		MEMBER("one_way/there", HIST, np_stations, hist[NP_ST_THERE]),
		MEMBER("one_way/back", HIST, np_stations, hist[NP_ST_BACK]),
	};
	json_t *o = json_object(), *parts = object_at(d, o, "stations");

	PUT(d, o, members, s);
	for (int i = 0; i < NP_STATIONS; i++) {
		put(d, parts, np_station_name[i], np_json_hist(s->hist[i]));
	}
	if (s->has_one_way) {
		PUT(d, o, one_way, s);
		put(d, o, "one_way/skew_ppm", np_json_real(1e6 * s->clocks.skew));
	}
	return o;
}

/* A row for each thread of this end. */
static json_t *
worker_rows(struct np_document *d, const struct np_tally *t)
{
	static const struct np_json_member members[] = {
		MEMBER("flows", COUNT, np_worker_result, flows),
		MEMBER("bytes_sent", COUNT64, np_worker_result, sent),
		MEMBER("bytes_received", COUNT64, np_worker_result, received),
		MEMBER("user_s", US, np_worker_result, user_us),
		MEMBER("system_s", US, np_worker_result, system_us),
		MEMBER("cpu", SIGNED, np_worker_result, cpu),
		MEMBER("bound", SIGNED, np_worker_result, bound),
	};
	json_t *rows = json_array();

	for (uint32_t i = 0; i < t->workers; i++) {
		const struct np_worker_result *w = &t->worker[i];
		json_t *o = json_object();

		PUT(d, o, members, w);
		put(d, o, "began_us",
		    np_json_real((double)np_excess(w->began_ns, t->started_ns) / 1e3));
		put(d, o, "ended_us",
		    np_json_real((double)np_excess(w->ended_ns, t->started_ns) / 1e3));
		if (t->plan->pattern->transactions) {
			put(d, o, "transactions", json_integer((json_int_t)w->transactions));
		}
		append(d, rows, o);
	}
	return rows;
}

/* --spread: how the connections are distributed over receive queues. */
static json_t *
spread_json(struct np_document *d, const struct np_spread *s)
{
	static const struct np_json_member members[] = {
		MEMBER("queues", CHOICE, np_spread, queues),
		MEMBER("of", CHOICE, np_spread, has),
		MEMBER("reconnected", COUNT, np_spread, reconnected),
	};
	json_t *o = json_object();

	PUT(d, o, members, s);
	put(d, o, "collisions", s->queues > 0 ? json_integer(s->collisions) : json_null());
	return o;
}

/* Seconds that each kind of disturbance lasted, if it occurred. */
static json_t *
reasons_json(struct np_document *d, const double reason_s[NP_REASONS])
{
	json_t *o = json_object();

	for (int i = 0; i < NP_REASONS; i++) {
		if (reason_s[i] > 0) {
			put(d, o, np_reason_name((enum np_reason)i), np_json_real(reason_s[i]));
		}
	}
	return o;
}

/* Why an end ("near", "far") could not look for some disturbances: members like "near.steal". */
static void
put_unseen(struct np_document *d, json_t *o, const char *end, const struct np_bag *b)
{
	static const char prefix[] = "disturbed.";
	struct np_bag_item it;
	char name[NP_BAG_NAME + 8];

	for (size_t i = 0; np_bag_at(b, i, &it); i++) {
		if (it.kind == NP_BAG_UNREAD && strncmp(it.name, prefix, strlen(prefix)) == 0) {
			snprintf(name, sizeof(name), "%s.%s", end, it.name + strlen(prefix));
			put(d, o, name, np_json_text(it.text));
		}
	}
}

/* What disturbed the test, and when. */
static json_t *
disturbed_json(struct np_document *d, const struct np_outcome *out, const char *far_lacks)
{
	static const struct np_json_member members[] = {
		MEMBER("interval_s", REAL, np_clean, every_s),
		MEMBER("seconds", REAL, np_clean, seconds),
	};
	static const struct np_json_member not_seen[] = {
		MEMBER("switches", STRING, np_clean, switches_why),
		MEMBER("pressure", STRING, np_clean, switches_why),
		MEMBER("processor", STRING, np_clean, switches_why),
		MEMBER("foreign", STRING, np_clean, foreign_why),
	};
	const struct np_clean *c = out->clean;
	json_t *o = json_object(), *unread = object_at(d, o, "unread"), *rows = json_array();

	PUT(d, o, members, c);
	put(d, o, "reasons", reasons_json(d, c->reason_s));
	put(d, o, "near", reasons_json(d, c->near_s));
	put(d, o, "far", c->far_reported ? reasons_json(d, c->far_s) : json_null());
	/* Rows such as [2.0, 3.2, ["steal"]]: seconds, and names of reasons. */
	for (size_t i = 0; i < c->runs; i++) {
		json_t *names = json_array();

		for (int r = 0; r < NP_REASONS; r++) {
			if ((c->run[i].marks >> r & 1) != 0) {
				append(d, names, json_string(np_reason_name((enum np_reason)r)));
			}
		}
		append(d, rows,
		       json_pack("[o, o, o]", np_json_real(c->run[i].from_s),
				 np_json_real(c->run[i].to_s), names));
	}
	put(d, o, "intervals", rows);
	put(d, o, "counted_by", json_string(c->by_far ? "far" : "near"));
	put_unseen(d, unread, "near", out->near_bag);
	put_unseen(d, unread, "far", out->far_bag);
	put(d, unread, "far", np_json_text(c->far_reported ? NULL : far_lacks));
	PUT(d, unread, not_seen, c);
	return o;
}

void
np_document_iteration(struct np_document *d, const struct np_outcome *out,
		      const struct np_record *record, bool whole)
{
	static const char *const causes[] = {
		[NP_BY_LOOP] = "loop",       [NP_BY_CLOCK] = "clock", [NP_BY_SIGNAL] = "signal",
		[NP_BY_CONTROL] = "control", [NP_BY_LIMIT] = "limit", [NP_BY_SILENCE] = "silence",
	};
	static const struct np_json_member skew[] = {
		MEMBER("begin_us", NS, np_skew, begin_ns),
		MEMBER("end_us", NS, np_skew, end_ns),
	};
	const struct np_tally *t = &out->tally;
	const char *far_lacks = out->far_lacks[0] != '\0' ? out->far_lacks : "it reported nothing";
	const struct np_far *told = &out->far;
	struct np_record r = *record;
	json_t *o, *near, *far;

	if (d == NULL) {
		return;
	}
	if (t->hist != NULL && np_hist_count(t->hist) > 0) {
		np_record_times(&r, "latency", t->hist);
	}
	np_cli_record_options(d->cli, &r);
	near = object_at(d, d->root, "parameters/granted/near");
	far = object_at(d, d->root, "parameters/granted/far");
	o = json_object();
	put(d, o, "number", json_integer(d->iteration++));
	put(d, o, "complete", json_boolean(whole));
	put(d, o, "ended_by", json_string(causes[out->cause]));
	put(d, o, "started", utc_date(np_wall_ms(t->started_ns)));
	put(d, o, "metrics", np_json_metrics(&r));
	PUT(d, object_at(d, o, "skew/near"), skew, &t->end.skew);
	PUT(d, object_at(d, o, "skew/far"), skew, &out->far.end.skew);
	put(d, o, "flows", t->flow != NULL ? flow_rows(d, t) : json_null());
	put(d, o, "workers", t->worker != NULL && t->workers > 1 ? worker_rows(d, t) : json_null());
	put(d, o, "spread", t->plan->spread ? spread_json(d, &t->spread) : json_null());
	put(d, o, "ramp", t->ramp.rate != 0 ? ramp_json(d, &t->ramp) : json_null());
	put(d, o, "open", t->open.rate != 0 ? open_json(d, t) : json_null());
	put(d, o, "stations",
	    out->stations != NULL ? stations_json(d, out->stations) : json_null());
	put(d, o, "disturbed",
	    out->clean != NULL ? disturbed_json(d, out, far_lacks) : json_null());
	put(d, o, "latency", np_json_hist(t->hist));
	put(d, o, "near", np_json_bag(out->near_bag));
	put(d, o, "far", np_json_bag(out->far_bag));
	append(d, json_object_get(d->root, "iterations"), o);
	/* of all iterations */
	d->left_out += np_bag_left_out(out->near_bag) + np_bag_left_out(out->far_bag);
	if (d->left_out > 0) {
		put(d, d->root, "left_out", json_integer((json_int_t)d->left_out));
	}
	/* What is known of the ends when the test is over; of iterations the last one counts. */
	put(d, near, "address", address_json(&t->local));
	put(d, far, "address", address_json(&t->peer));
	put(d, far, "cpus", np_json_text(told->cpus[0] != '\0' ? told->cpus : NULL));
	if (told->engine[0] != '\0') {
		put(d, d->root, "plan/engine/far", np_json_text(told->engine));
		put(d, d->root, "plan/threads/far", json_integer(told->threads));
	}
	put_ends(d, out->near_bag, out->far_bag, far_lacks);
}

/* [low, high] in microseconds, of times in ns. */
static json_t *
interval_us(uint64_t low, uint64_t high)
{
	return json_pack("[o, o]", np_json_us((double)low), np_json_us((double)high));
}

void
np_document_result(struct np_document *d, const struct np_look *look,
		   const struct np_figures *figures)
{
	static const struct {
		const char *name;
		double share;
	} rows[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p99.9", 0.999 } };
	const struct np_hist *h = figures->latency;
	char name[NP_FIGURE_NAME];
	json_t *final, *intervals;
	uint64_t low, high;

	if (d == NULL) {
		return;
	}
	d->concluded = true;
	put(d, d->root, "final", np_json_metrics(figures->record));
	final = json_object_get(d->root, "final");
	/* Selected percentiles that are no metrics; not by put(): an infinite one is to be null. */
	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		for (size_t i = 0; i < look->list.count[g]; i++) {
			int id = look->list.id[g][i];
			double ns =
			    np_figure_is_percentile(id) ? np_figure_percentile(figures, id) : -1;

			if (ns >= 0) {
				d->failed |= json_object_set_new(final, np_figure_name(id, name),
								 np_json_us(ns)) != 0;
			}
		}
	}
	if (h != NULL && np_hist_count(h) > 0) {
		/* What was timed, and the confidence intervals of its percentiles. */
		put(d, d->root, "latency/of", np_json_text(look->histogram_of));
		intervals = object_at(d, d->root, "latency/intervals");
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			if (np_hist_interval(h, rows[i].share, &low, &high)) {
				put(d, intervals, rows[i].name, interval_us(low, high));
			}
		}
	}
}

void
np_document_curve(struct np_document *d, const struct np_plan *p, const struct np_knee *k)
{
	static const struct np_json_member members[] = {
		MEMBER("rate", REAL, np_knee_step, rate),
		MEMBER("runs", COUNT, np_knee_step, runs),
		MEMBER("sent", REAL, np_knee_step, sent),
		MEMBER("lost", REAL, np_knee_step, lost),
		MEMBER("arrived", REAL, np_knee_step, arrived),
		MEMBER("near_cpu", REAL, np_knee_step, near_cpu),
		MEMBER("far_cpu", REAL, np_knee_step, far_cpu),
		MEMBER("too_much", STRING, np_knee_step, why_too_high),
	};
	static const char *const names[NP_KNEE_SHARES] = { "p50", "p99", "p99.9" };
	json_t *o, *steps;

	if (d == NULL) {
		return;
	}
	o = object_at(d, d->root, "curve");
	put(d, o, "unit", json_string(p->pattern->offers ? "bit/s" : "1/s"));
	put(d, o, "knee", k->good > 0 ? np_json_real(k->good) : json_null());
	put(d, o, "steps", json_array());
	steps = json_object_get(o, "steps");
	for (uint32_t i = 0; i < k->steps; i++) {
		const struct np_knee_step *s = &k->step[i];
		json_t *row = json_object(), *intervals = object_at(d, row, "intervals");

		PUT(d, row, members, s);
		for (int n = 0; n < NP_KNEE_SHARES; n++) {
			if (s->timed && s->high[n] > 0) {
				put(d, row, names[n], np_json_us((double)s->ns[n]));
				put(d, intervals, names[n], interval_us(s->low[n], s->high[n]));
			}
		}
		append(d, steps, row);
	}
}

void
np_document_beside(struct np_document *d, const struct np_plan *plan, const struct np_hist *idle,
		   const struct np_hist *loaded)
{
	json_t *o;

	if (d == NULL) {
		return;
	}
	o = object_at(d, d->root, "beside");
	put(d, o, "test", json_string(plan->bench->name));
	put(d, o, "rate_per_s", json_integer(plan->rate));
	put(d, o, "idle", np_json_hist(idle));
	put(d, o, "loaded", np_json_hist(loaded));
}

void
np_document_explain(struct np_document *d, const char *text, const struct np_bag *values)
{
	json_t *written;

	if (d == NULL) {
		return;
	}
	put(d, d->root, "explanation", json_object());
	put(d, d->root, "explanation/text", np_json_text(text));
	put(d, d->root, "explanation/values", np_json_bag(values));
	written = json_object_get(json_object_get(d->root, "explanation"), "values");
	json_object_del(json_object_get(written, "explain"), "sentence"); /* it is the text */
}

/* As np_output_fill() calls it. */
static int
write_out(FILE *out, const void *root)
{
	int failed = json_dumpf(root, out, NP_JSON_FLAGS);

	putc('\n', out);
	return failed;
}

/* Write to the file of that path; NULL: to `out`. A file is replaced whole, unless it is a pipe. */
static int
write_to(const json_t *root, const char *path, FILE *out, struct np_err *err)
{
	struct np_output file;
	int failed;

	if (path == NULL) {
		/* The caller checks the stream for errors. */
		(void)write_out(out, root);
		return NP_OK;
	}
	if (np_output_open(&file, path, NP_OUTPUT_REPLACE, err) != NP_OK) {
		return np_fail_in(err, "--json");
	}
	failed = np_output_fill(&file, write_out, root);
	return failed != 0 ? np_fail(err, NP_ESYS, failed, "--json: write %s", path) : NP_OK;
}

int
np_document_write(struct np_document *d, const struct np_err *failed, const char *partial, int sig,
		  FILE *out, struct np_err *err)
{
	const char *by_signal = sig == SIGINT    ? "ended by SIGINT"
				: sig == SIGTERM ? "ended by SIGTERM"
				: sig == SIGALRM ? "ended by SIGALRM"
						 : "ended by SIGHUP";
	const char *reason = NULL, *name;
	json_t *o, *final, *iteration, *value;
	size_t i;

	if (d == NULL) {
		return NP_OK;
	}
	o = d->root;
	if (!d->concluded) {
		reason = "nothing was measured";
	} else if (failed != NULL) {
		reason = partial[0] != '\0' ? partial : "the run failed";
	} else if (sig != 0 && !d->endless) {
		reason = by_signal;
	}
	put(d, o, "ended", utc_date(np_wall_ms(np_now())));
	put(d, o, "result",
	    json_string(!d->concluded    ? "failed"
			: reason != NULL ? "partial"
					 : "complete"));
	put(d, o, "reason", np_json_text(reason));
	put(d, o, "error", np_json_text(failed != NULL ? failed->msg : NULL));
	/* Of iterations list only what differs from `final`: null for figures that they lack. */
	final = json_object_get(o, "final");
	json_array_foreach(json_object_get(o, "iterations"), i, iteration)
	{
		json_t *metrics = json_object_get(iteration, "metrics");

		json_object_foreach(final, name, value)
		{
			if (json_object_get(metrics, name) == NULL) {
				d->failed |= json_object_set_new(metrics, name, json_null()) != 0;
			} else if (json_equal(json_object_get(metrics, name), value)) {
				json_object_del(metrics, name);
			}
		}
	}
	if (d->failed) {
		return np_fail(err, NP_ESYS, ENOMEM, "--json: build the document");
	}
	return write_to(d->root, d->path, out, err);
}

/* An end's engines, or null if they are not known. */
static json_t *
engines_of(const struct np_bag *list)
{
	json_t *all = list != NULL ? json_array() : json_null();
	struct np_engine_told e;
	size_t at = 0;

	while (np_engine_next(list, &at, &e)) {
		json_array_append_new(
		    all, json_pack("{s:o, s:o, s:o}", "name", np_json_text(e.name), "help",
				   np_json_text(e.help), "why", np_json_text(e.why)));
	}
	return all;
}

int
np_document_engines(const struct np_cli *cli, const struct np_engine_lists *lists, FILE *out,
		    struct np_err *err)
{
	const char *lacks = lists->far_lacks[0] != '\0' ? lists->far_lacks : NULL;
	json_t *root = json_pack("{s:s, s:i, s:o, s:o, s:o}", "test", cli->bench.name, "flows",
				 (int)cli->plan.flows, "near", engines_of(lists->near), "far",
				 engines_of(lists->far), "far_lacks", np_json_text(lacks));
	int rc;

	if (root == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "--json: build the document");
	}
	rc = write_to(root, cli->output.json_file, out, err);
	json_decref(root);
	return rc;
}
