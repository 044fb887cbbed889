#include "cli/document.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/output.h"
#include "bench/engine/engine.h"
#include "cli/facts.h"
#include "cli/tests.h"
#include "config.h"
#include "out/json.h"
#include "run/group.h"
#include "run/repeat.h"
#include "stats/confidence.h"

struct np_document {
	json_t *root;
	const struct np_cli *cli; /* of a test that has begun */
	const char *path;         /* the user's word; NULL: standard output */
	char peer[300];
	unsigned iteration;     /* that runs, from 1 */
	unsigned long left_out; /* values of evidence that found no room */
	bool endless;           /* the test has no end but that of a signal */
	bool concluded;         /* there is a result */
	bool failed;            /* for want of memory */
};

/* Takes the value over, which may be NULL for want of memory. */
static void
put(struct np_document *d, json_t *o, const char *name, json_t *v)
{
	d->failed |= json_object_set_new(o, name, v) != 0;
}

/* The object of that name, made if it is not there yet. */
static json_t *
part(struct np_document *d, json_t *o, const char *name)
{
	if (!json_is_object(json_object_get(o, name))) {
		put(d, o, name, json_object());
	}
	return json_object_get(o, name);
}

/* "2026-11-21T20:33:25.123Z" */
static json_t *
date(uint64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	char day[32], text[48];

	gmtime_r(&seconds, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%03uZ", day, (unsigned)(ms % 1000));
	return json_string(text);
}

/* ---- Beginning ---- */

/* All that is there in any document, in the order in which people read. */
static void
outline(struct np_document *d, const struct np_cli *cli)
{
	static const char *const later[] = { "ended",      "result", "reason",  "error",
					     "near",       "far",    "test",    "plan",
					     "parameters", "final",  "latency", "explanation" };
	json_t *o = d->root;

	put(d, o, "schema", json_sprintf("%s%d", NP_JSON_SCHEMA, NP_JSON_NUMBER));
	put(d, o, "program", json_string(PACKAGE_STRING));
	put(d, o, "command_line", np_json_text(cli->command_line));
	put(d, o, "started", date(np_wall_ms(np_now())));
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		put(d, o, later[i], json_null());
	}
	put(d, part(d, o, "test"), "name", np_json_text(cli->test));
	put(d, o, "iterations", json_array());
	put(d, o, "interim", json_array());
	put(d, o, "left_out", json_integer(0));
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
	if (test != NP_TEST_BENCH && test != NP_TEST_UNKNOWN) {
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
	outline(d, cli);
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

/* ---- What was asked for ---- */

enum kind { SIGNED, COUNT, CHOICE, FLAG, PORT, TEXT, PATH };

struct field {
	const char *name; /* NULL: the document has it elsewhere, or not at all */
	enum kind kind;
	size_t at;
};

/* What wire/plan.def says of an end, and of the whole test. */
#define END_FIELD(json, kind, member) { json, kind, offsetof(struct np_end, member) },
#define PLAN_FIELD(json, kind, member) { json, kind, offsetof(struct np_plan, member) },
static const struct field end_fields[] = {
#define NP_E_NUMBER(type, group, member, json, kind, ...) END_FIELD(json, kind, group.member)
#define NP_E_TEXT(group, member, json, ...) END_FIELD(json, TEXT, group.member)
#define NP_E_PATH(group, member, json, ...) END_FIELD(json, PATH, group.member)
#define NP_E_FLAG(bit, group, member, json, ...) END_FIELD(json, FLAG, group.member)
#include "wire/plan.def"
};
static const struct field plan_fields[] = {
#define NP_P_NUMBER(type, member, json, kind, ...) PLAN_FIELD(json, kind, member)
#define NP_P_FLAG(bit, member, json, ...) PLAN_FIELD(json, FLAG, member)
#define NP_H_NUMBER(type, member, json, kind, ...) PLAN_FIELD(json, kind, member)
#define NP_H_FLAG(member, json, ...) PLAN_FIELD(json, FLAG, member)
#include "wire/plan.def"
};

/* A number that is not negative; else it was left to the system, or is not known: null. */
static json_t *
known(int64_t v)
{
	return v >= 0 ? json_integer(v) : json_null();
}

/* A number above 0; else there is no such thing: null. */
static json_t *
chosen(int64_t v)
{
	return v > 0 ? json_integer(v) : json_null();
}

static json_t *
field_value(const struct field *field, const void *of)
{
	const char *at = (const char *)of + field->at;
	int32_t i;
	uint32_t u;
	bool flag;
	const char *path;

	switch (field->kind) {
	case SIGNED:
		memcpy(&i, at, sizeof(i));
		return known(i);
	case COUNT:
		memcpy(&u, at, sizeof(u));
		return json_integer(u);
	case CHOICE: /* 0: left to the system, or not asked for */
	case PORT:
		memcpy(&u, at, sizeof(u));
		return u != 0 ? json_integer(u) : json_null();
	case FLAG:
		memcpy(&flag, at, sizeof(flag));
		return json_boolean(flag);
	case PATH:
		memcpy(&path, at, sizeof(path));
		return np_json_text(path);
	case TEXT:
		break;
	}
	return np_json_text(*at != '\0' ? at : NULL);
}

static void
put_fields(struct np_document *d, json_t *o, const struct field *fields, size_t count,
	   const void *of)
{
	for (size_t i = 0; i < count; i++) {
		if (fields[i].name != NULL) {
			put(d, o, fields[i].name, field_value(&fields[i], of));
		}
	}
}

static void
put_asked_end(struct np_document *d, json_t *o, const struct np_end *e)
{
	char cpus[NP_CPU_TURNS_TEXT];

	put_fields(d, o, end_fields, sizeof(end_fields) / sizeof(end_fields[0]), e);
	(void)np_cpu_turns_text(&e->place.turns, cpus, sizeof(cpus));
	put(d, o, "cpus", np_json_text(cpus[0] != '\0' ? cpus : NULL));
}

static void
put_asked(struct np_document *d, const struct np_plan *p)
{
	json_t *asked = part(d, part(d, d->root, "parameters"), "asked");

	put_fields(d, asked, plan_fields, sizeof(plan_fields) / sizeof(plan_fields[0]), p);
	put_asked_end(d, part(d, asked, "near"), &p->near);
	put_asked_end(d, part(d, asked, "far"), &p->far);
	put(d, part(d, d->root, "parameters"), "granted", json_null());
}

static void
put_test(struct np_document *d, const struct np_cli *cli)
{
	const struct np_plan *p = &cli->plan;
	json_t *test = part(d, d->root, "test"), *plan, *length;
	bool confident = cli->confidence.level != 0, counts = p->pattern->transactions;

	put(d, test, "name", np_json_text(cli->bench.name));
	put(d, test, "title", np_json_text(cli->bench.title));
	put(d, test, "pattern", np_json_text(p->pattern->name));
	put(d, test, "protocol", np_json_text(p->transport->name));
	put(d, test, "family", np_json_text(np_family(np_plan_family(p))->name));
	put(d, test, "direction", json_string(p->both ? "both" : np_plan_words(p)->flow));
	put(d, test, "host", np_json_text(cli->target.host.text));
	put(d, test, "uuid",
	    np_json_text(cli->output.uuid != NULL ? cli->output.uuid : cli->output.uuid_made));
	put(d, test, "brand", np_json_text(cli->output.brand));
	length = part(d, test, "length");
	put(d, length, "seconds",
	    p->length <= 0           ? json_null()
	    : p->length_less_ms == 0 ? json_integer(p->length)
				     : np_json_real(np_plan_time_s(p)));
	put(d, length, "bytes", p->length < 0 && !counts ? json_integer(-p->length) : json_null());
	put(d, length, "transactions",
	    p->length < 0 && counts ? json_integer(-p->length) : json_null());
	plan = part(d, test, "iterations");
	put(d, plan, "max",
	    json_integer(cli->confidence.clean_s > 0 ? cli->confidence.at_most_s
			 : np_cli_repeats(cli)       ? cli->confidence.max
						     : 1));
	put(d, plan, "min", json_integer(np_cli_repeats(cli) ? cli->confidence.min : 1));
	put(d, plan, "confidence_level",
	    confident ? json_integer(cli->confidence.level) : json_null());
	put(d, plan, "confidence_width",
	    confident ? np_json_real(cli->confidence.width) : json_null());
	put(d, plan, "result_only", json_boolean(cli->confidence.result_only));
	put(d, plan, "clean_seconds",
	    cli->confidence.clean_s > 0 ? json_integer(cli->confidence.clean_s) : json_null());
	put(d, plan, "at_most_seconds",
	    cli->confidence.clean_s > 0 ? json_integer(cli->confidence.at_most_s) : json_null());
}

/* How many connections, and what drives them; the far end tells its engine later, if at all. */
static void
put_plan(struct np_document *d, const struct np_plan *p, const struct np_hello *granted)
{
	json_t *plan = part(d, d->root, "plan"), *engine = part(d, plan, "engine");
	json_t *threads = part(d, plan, "threads");

	put(d, plan, "flows", json_integer(p->flows));
	put(d, plan, "warm_up_s", np_json_real(p->warm_up_ms / 1e3));
	put(d, plan, "ramp_per_s", p->ramp > 0 ? json_integer(p->ramp) : json_null());
	put(d, threads, "near", json_integer(np_plan_workers(p)));
	put(d, threads, "far", json_null());
	put(d, plan, "sessions", json_integer(np_group_sessions(p, granted)));
	put(d, plan, "both", json_boolean(p->both));
	put(d, engine, "near", json_string(np_group_engine(p, granted)->name));
	put(d, engine, "far", json_null());
}

/* ---- The two ends ---- */

static const struct {
	const char *name, *fact;
	bool number;
} facts[] = {
	{ "program", "host.program", false },        { "name", "host.name", false },
	{ "kernel", "host.kernel", false },          { "machine", "host.machine", false },
	{ "cpu", "host.cpu.model", false },          { "cpus", "host.cpu.count", true },
	{ "nic", "host.nic.name", false },           { "driver", "host.nic.driver", false },
	{ "nic_mbps", "host.nic.speed_mbps", true },
};

/* Null where it is not told, or the far end tells nonsense. */
static json_t *
fact(const struct np_bag *b, const char *name, bool number)
{
	struct np_bag_item it;

	if (!np_bag_find(b, name, &it)) {
		return json_null();
	}
	if (number) {
		return it.kind == NP_BAG_INT ? known(it.i) : json_null();
	}
	return np_json_text(it.kind == NP_BAG_STRING ? it.text : NULL);
}

/* What evidence tells of an end. */
static json_t *
put_identity(struct np_document *d, const char *end, const struct np_bag *b, const char *why)
{
	json_t *o = part(d, d->root, end);

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		put(d, o, facts[i].name, fact(b, facts[i].fact, facts[i].number));
	}
	put(d, o, "why", np_json_text(b != NULL ? NULL : why));
	return o;
}

/* Without evidence this program still knows where it runs. */
static void
identify(struct np_document *d, const struct np_bag *near, const struct np_bag *far,
	 const char *far_lacks)
{
	json_t *o = put_identity(d, "near", near, "no evidence was collected");
	struct utsname here;

	if (np_bag_string(near, "host.program") == NULL) {
		put(d, o, "program", json_string(PACKAGE_STRING));
	}
	if (np_bag_string(near, "host.kernel") == NULL && uname(&here) == 0) {
		put(d, o, "name", np_json_text(here.nodename));
		put(d, o, "kernel", np_json_text(here.release));
		put(d, o, "machine", np_json_text(here.machine));
	}
	o = put_identity(d, "far", far, far_lacks);
	put(d, o, "peer", np_json_text(d->peer[0] != '\0' ? d->peer : NULL));
}

void
np_document_begin(struct np_document *d, const struct np_cli *cli, const struct np_client *c)
{
	if (d == NULL) {
		return;
	}
	d->cli = cli;
	d->endless = cli->plan.length == 0;
	put_test(d, cli);
	put_plan(d, &cli->plan, &c->granted);
	put_asked(d, &cli->plan);
	if (!cli->plan.no_control) {
		snprintf(d->peer, sizeof(d->peer), "%s", c->peer);
	}
	identify(d, NULL, NULL, "nothing was measured");
}

/* ---- What came out ---- */

enum { FLOWS_SHOWN = 64, QUARTERS = 4 };

/* How alike the rates of flows are, and these or, of many, their quartiles. Sorts them. */
static void
interim_flows(struct np_document *d, json_t *o, const struct np_interim *i)
{
	json_t *rates = json_array(), *quartiles = json_array();
	double sum = 0, squares = 0;

	for (uint32_t n = 0; n < i->flows; n++) {
		sum += i->flow[n];
		squares += i->flow[n] * i->flow[n];
		d->failed |= i->flows <= FLOWS_SHOWN &&
			     json_array_append_new(rates, np_json_real(i->flow[n])) != 0;
	}
	qsort(i->flow, i->flows, sizeof(*i->flow), np_by_size);
	for (uint32_t n = 0; n <= QUARTERS; n++) {
		uint32_t at = (uint32_t)((uint64_t)(i->flows - 1) * n / QUARTERS);

		d->failed |= json_array_append_new(quartiles, np_json_real(i->flow[at])) != 0;
	}
	put(d, o, "flows", rates);
	put(d, o, "flow_quartiles", quartiles);
	put(d, o, "jain_index", np_json_real(np_jain_index(sum, squares, i->flows)));
}

void
np_document_interim(struct np_document *d, const struct np_interim *i)
{
	json_t *o;

	if (d == NULL) {
		return;
	}
	o = json_object();
	put(d, o, "iteration", json_integer(d->iteration));
	put(d, o, "number", json_integer(i->number));
	put(d, o, "rate", np_json_real(i->rate));
	put(d, o, "unit", np_json_text(i->unit));
	put(d, o, "seconds", np_json_real(i->seconds));
	put(d, o, "ending_ms", json_integer((json_int_t)i->ending_ms));
	put(d, o, "flows_up", i->ramps ? json_integer((json_int_t)i->flows_up) : json_null());
	if (i->flow != NULL) {
		interim_flows(d, o, i);
	}
	d->failed |= json_array_append_new(json_object_get(d->root, "interim"), o) != 0;
}

/* The address of an end's data socket; null where it is not known, or has no port. */
static json_t *
address(const struct np_addr *a)
{
	char text[NP_ADDR_TEXT];

	if (a->len == 0 || np_addr_port(a) == 0) {
		return json_null();
	}
	return np_json_text(np_addr_text(a, text));
}

static void
put_granted(struct np_document *d, const struct np_outcome *out)
{
	const struct np_tally *t = &out->tally;
	const struct np_far *far = &out->far;
	bool sends = t->send_size > 0, receives = t->recv_size > 0;
	json_t *parameters = part(d, d->root, "parameters"), *granted, *o;

	put(d, parameters, "granted", json_object());
	granted = part(d, parameters, "granted");
	o = part(d, granted, "near");
	put(d, o, "address", address(&t->local));
	put(d, o, "send_buffer", known(t->sndbuf));
	put(d, o, "receive_buffer", known(t->rcvbuf));
	put(d, o, "send_buffer_end", known(t->closing.sndbuf_end));
	put(d, o, "receive_buffer_end", known(t->closing.rcvbuf_end));
	put(d, o, "send_size", sends ? json_integer((json_int_t)t->send_size) : json_null());
	put(d, o, "receive_size", receives ? json_integer((json_int_t)t->recv_size) : json_null());
	put(d, o, "send_width", chosen((int64_t)t->send_width));
	put(d, o, "receive_width", chosen((int64_t)t->recv_width));
	put(d, o, "priority", known(t->prio));
	put(d, o, "tos", known(t->tos));
	put(d, o, "mss", known(t->closing.mss));
	put(d, o, "congestion", np_json_text(t->closing.cong[0] != '\0' ? t->closing.cong : NULL));
	put(d, o, "nodelay", json_boolean(t->plan->nodelay));
	o = part(d, granted, "far");
	put(d, o, "address", address(&t->peer));
	put(d, o, "send_buffer", chosen(far->sndbuf));
	put(d, o, "receive_buffer", chosen(far->rcvbuf));
	put(d, o, "send_buffer_end", chosen(far->sndbuf_end));
	put(d, o, "receive_buffer_end", chosen(far->rcvbuf_end));
	put(d, o, "send_size", known(far->send_size));
	put(d, o, "receive_size", known(far->recv_size));
	put(d, o, "send_width", chosen(far->send_width));
	put(d, o, "receive_width", chosen(far->recv_width));
	put(d, o, "priority", known(far->prio));
	put(d, o, "tos", known(far->tos));
	put(d, o, "congestion", np_json_text(far->cong[0] != '\0' ? far->cong : NULL));
	put(d, o, "nodelay", t->plan->no_control ? json_null() : json_boolean(far->nodelay));
	put(d, o, "cpus", np_json_text(far->cpus[0] != '\0' ? far->cpus : NULL));
}

/* Each connection's share of what the metrics are the sum of; null where there is one alone. */
static json_t *
flows(struct np_document *d, const struct np_tally *t)
{
	double seconds = np_tally_seconds(t);
	bool counts = t->plan->pattern->transactions;
	json_t *rows = t->flow != NULL ? json_array() : json_null();

	for (uint32_t i = 0; t->flow != NULL && i < t->flows; i++) {
		const struct np_flow_result *f = &t->flow[i];
		double bits = 8 * (double)(f->sent + f->received);
		json_t *o = json_object();

		put(d, o, "bytes_sent", json_integer((json_int_t)f->sent));
		put(d, o, "bytes_received", json_integer((json_int_t)f->received));
		put(d, o, "transactions",
		    counts ? json_integer((json_int_t)f->transactions) : json_null());
		put(d, o, "bits_per_s", np_json_real(seconds > 0 ? bits / seconds : 0));
		put(d, o, "transactions_per_s",
		    counts ? np_json_real(seconds > 0 ? (double)f->transactions / seconds : 0)
			   : json_null());
		put(d, o, "data_segments", known(f->tcp.data_segments));
		/* A flow that only receives can't know what the far end sends again. */
		put(d, o, "retransmissions",
		    f->sent > 0 ? known(f->tcp.retransmitted_segments) : json_null());
		put(d, o, "rtt_us", known(f->tcp.rtt_us));
		put(d, o, "min_rtt_us", known(f->tcp.min_rtt_us));
		put(d, o, "cwnd", known(f->tcp.cwnd));
		put(d, o, "rwnd_limited_us", known(f->tcp.rwnd_limited_us));
		put(d, o, "incoming_cpu", known(f->cpu));
		put(d, o, "napi_id", known(f->napi_id));
		put(d, o, "local_port", known(f->local_port));
		put(d, o, "remote_port", known(f->remote_port));
		put(d, o, "worker", json_integer(f->worker));
		d->failed |= json_array_append_new(rows, o) != 0;
	}
	return rows;
}

/* How the connections came about; null where they had done so before the window opened. */
static json_t *
ramp(struct np_document *d, const struct np_ramp_result *r)
{
	json_t *o, *failed;
	char text[16];

	if (r->rate == 0) {
		return json_null();
	}
	o = json_object();
	put(d, o, "flows", json_integer(r->asked));
	put(d, o, "up", json_integer(r->came));
	failed = part(d, o, "failed");
	for (uint32_t i = 0; i < r->failed.reasons; i++) {
		put(d, failed, np_ramp_reason(r->failed.by[i].error, text),
		    json_integer(r->failed.by[i].count));
	}
	put(d, o, "connect", np_json_hist(r->hist));
	return o;
}

/* When requests were due; null where each followed an answer. */
static json_t *
open_loop(struct np_document *d, const struct np_tally *t)
{
	const struct np_open_result *r = &t->open;
	char text[NP_ARRIVALS_TEXT];
	json_t *o;

	if (r->rate == 0) {
		return json_null();
	}
	o = json_object();
	put(d, o, "arrivals", json_string(np_arrivals_text(t->plan->arrivals, text)));
	put(d, o, "lost", json_integer((json_int_t)t->count.lost));
	put(d, o, "spin_us", np_json_real((double)r->spin_ns / 1e3));
	put(d, o, "outage_flow", r->outage.ns > 0 ? json_integer(r->outage.flow) : json_null());
	put(d, o, "since_sent", np_json_hist(r->sent));
	put(d, o, "lateness", np_json_hist(r->lateness));
	return o;
}

/* Which stamps there were, of how many transactions that were to have some. */
static json_t *
stamps(struct np_document *d, uint64_t asked, const uint64_t came[NP_STAMPS])
{
	json_t *o = json_object();

	put(d, o, "asked", json_integer((json_int_t)asked));
	put(d, o, "queued", json_integer((json_int_t)came[NP_STAMP_QUEUE]));
	put(d, o, "sent", json_integer((json_int_t)came[NP_STAMP_GONE]));
	put(d, o, "received", json_integer((json_int_t)came[NP_STAMP_CAME]));
	return o;
}

static json_t *
one_way(struct np_document *d, const struct np_stations *s)
{
	const struct np_oneway *c = &s->clocks;
	json_t *o = json_object();

	put(d, o, "first_offset_us", np_json_real(c->first_ns / 1e3));
	put(d, o, "last_offset_us", np_json_real(c->last_ns / 1e3));
	put(d, o, "within_us", np_json_real(c->slack_ns / 1e3));
	put(d, o, "skew_ppm", np_json_real(1e6 * c->skew));
	put(d, o, "clock_steps", json_integer(c->steps));
	put(d, o, "clock_step_us", np_json_real(c->step_ns / 1e3));
	put(d, o, "path_changes", json_integer(c->paths));
	put(d, o, "path_there_us", np_json_real(c->path_ns[NP_THERE] / 1e3));
	put(d, o, "path_back_us", np_json_real(c->path_ns[NP_BACK] / 1e3));
	put(d, o, "there", np_json_hist(s->way[NP_THERE]));
	put(d, o, "back", np_json_hist(s->way[NP_BACK]));
	return o;
}

/* Where the time of transactions went; null if not asked for. */
static json_t *
stations(struct np_document *d, const struct np_stations *s)
{
	json_t *o, *parts;

	if (s == NULL) {
		return json_null();
	}
	o = json_object();
	put(d, o, "every", json_integer(s->every));
	put(d, o, "near", stamps(d, s->asked[0], s->came[0]));
	put(d, o, "far", stamps(d, s->asked[1], s->came[1]));
	put(d, o, "kept", json_integer((json_int_t)s->kept));
	put(d, o, "matched", json_integer((json_int_t)s->joined));
	parts = part(d, o, "stations");
	for (int i = 0; i < NP_STATIONS; i++) {
		put(d, parts, np_station_name[i], np_json_hist(s->hist[i]));
	}
	put(d, o, "round_trip", np_json_hist(s->whole));
	put(d, o, "one_way", s->told ? one_way(d, s) : json_null());
	return o;
}

/* Seconds of the processors' time; null where it is not known. */
static json_t *
seconds_of(int64_t us)
{
	return us >= 0 ? np_json_real((double)us / 1e6) : json_null();
}

/* Each worker's share; null where there is one alone. */
static json_t *
workers(struct np_document *d, const struct np_tally *t)
{
	bool several = t->worker != NULL && t->workers > 1;
	json_t *rows = several ? json_array() : json_null();

	for (uint32_t i = 0; several && i < t->workers; i++) {
		const struct np_worker_result *w = &t->worker[i];
		json_t *o = json_object();

		put(d, o, "flows", json_integer(w->flows));
		put(d, o, "bytes_sent", json_integer((json_int_t)w->sent));
		put(d, o, "bytes_received", json_integer((json_int_t)w->received));
		put(d, o, "transactions",
		    t->plan->pattern->transactions ? json_integer((json_int_t)w->transactions)
						   : json_null());
		put(d, o, "began_us", np_json_real((double)w->began_ns / 1e3));
		put(d, o, "ended_us", np_json_real((double)w->ended_ns / 1e3));
		put(d, o, "user_s", seconds_of(w->user_us));
		put(d, o, "system_s", seconds_of(w->system_us));
		put(d, o, "cpu", known(w->cpu));
		put(d, o, "bound", known(w->bound));
		d->failed |= json_array_append_new(rows, o) != 0;
	}
	return rows;
}

/* How the connections lie on receive queues; null if not asked for. */
static json_t *
spread(struct np_document *d, const struct np_tally *t)
{
	const struct np_spread *s = &t->spread;
	json_t *o;

	if (!t->plan->spread) {
		return json_null();
	}
	o = json_object();
	put(d, o, "queues", chosen(s->queues));
	put(d, o, "of", chosen(s->has));
	put(d, o, "collisions", s->queues > 0 ? json_integer(s->collisions) : json_null());
	put(d, o, "reconnected", json_integer(s->reconnected));
	return o;
}

static void
put_skew(struct np_document *d, json_t *skew, const char *name, const struct np_skew *s)
{
	json_t *o = part(d, skew, name);

	put(d, o, "begin_us",
	    s->begin_ns >= 0 ? np_json_real((double)s->begin_ns / 1e3) : json_null());
	put(d, o, "end_us", s->end_ns >= 0 ? np_json_real((double)s->end_ns / 1e3) : json_null());
}

/* How far the workers of each end were apart. */
static json_t *
skews(struct np_document *d, const struct np_outcome *out)
{
	json_t *o = json_object();

	put_skew(d, o, "near", &out->tally.skew);
	put_skew(d, o, "far", &out->far.skew);
	return o;
}

/* What the far end told of its part in the plan. */
static void
put_far_plan(struct np_document *d, const struct np_far *far)
{
	json_t *plan = part(d, d->root, "plan");
	bool told = far->engine[0] != '\0';

	put(d, part(d, plan, "engine"), "far", np_json_text(told ? far->engine : NULL));
	put(d, part(d, plan, "threads"), "far", told ? json_integer(far->threads) : json_null());
}

/* Seconds of each reason that there was. */
static json_t *
reasons(struct np_document *d, const double reason_s[NP_REASONS])
{
	json_t *o = json_object();

	for (int i = 0; i < NP_REASONS; i++) {
		if (reason_s[i] > 0) {
			put(d, o, np_reason_name((enum np_reason)i), np_json_real(reason_s[i]));
		}
	}
	return o;
}

/* [2.0, 3.2, ["steal"]] */
static json_t *
disturbed_runs(struct np_document *d, const struct np_clean *c)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < c->runs; i++) {
		json_t *names = json_array(), *row = json_array();

		for (int r = 0; r < NP_REASONS; r++) {
			if ((c->run[i].marks >> r & 1) != 0) {
				d->failed |=
				    json_array_append_new(
					names, json_string(np_reason_name((enum np_reason)r))) != 0;
			}
		}
		d->failed |= json_array_append_new(row, np_json_real(c->run[i].from_s)) != 0;
		d->failed |= json_array_append_new(row, np_json_real(c->run[i].to_s)) != 0;
		d->failed |= json_array_append_new(row, names) != 0;
		d->failed |= json_array_append_new(rows, row) != 0;
	}
	return rows;
}

/* What an end could not look at, by the reasons' names behind the end's. */
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

/* What disturbed the test, and when; null if that was not watched. */
static json_t *
disturbed(struct np_document *d, const struct np_outcome *out, const struct np_record *r)
{
	const struct np_clean *c = out->clean;
	bool carried = np_record_known(r, NP_M_CLEAN_THROUGHPUT);
	json_t *o, *unread;

	if (c == NULL) {
		return json_null();
	}
	o = json_object();
	put(d, o, "interval_s", np_json_real(c->every_s));
	put(d, o, "seconds", np_json_real(c->seconds));
	put(d, o, "clean_seconds", np_json_real(c->clean));
	put(d, o, "share", np_json_real(1 - c->clean / c->seconds));
	put(d, o, "reasons", reasons(d, c->reason_s));
	put(d, o, "near", reasons(d, c->near_s));
	put(d, o, "far", c->far_told ? reasons(d, c->far_s) : json_null());
	put(d, o, "intervals", disturbed_runs(d, c));
	put(d, o, "clean_throughput",
	    carried ? np_json_real(np_record_get_real(r, NP_M_CLEAN_THROUGHPUT)) : json_null());
	put(d, o, "counted_by", json_string(c->by_far ? "far" : "near"));
	unread = part(d, o, "unread");
	put_unseen(d, unread, "near", out->near_bag);
	put_unseen(d, unread, "far", out->far_bag);
	if (!c->far_told) {
		put(d, unread, "far",
		    np_json_text(out->far_lacks[0] != '\0' ? out->far_lacks
							   : "it reported nothing"));
	}
	if (c->switches_why != NULL) {
		put(d, unread, "switches", json_string(c->switches_why));
		put(d, unread, "pressure", json_string(c->switches_why));
		put(d, unread, "processor", json_string(c->switches_why));
	}
	if (c->foreign_why != NULL) {
		put(d, unread, "foreign", json_string(c->foreign_why));
	}
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
	const struct np_tally *t = &out->tally;
	const struct np_bag *near = out->near_bag, *far = out->far_bag;
	struct np_record r = *record;
	json_t *o;

	if (d == NULL) {
		return;
	}
	if (t->hist != NULL && np_hist_count(t->hist) > 0) {
		np_repeat_latency(t->hist, &r);
	}
	np_facts(d->cli, &r);
	o = json_object();
	put(d, o, "number", json_integer(d->iteration++));
	put(d, o, "complete", json_boolean(whole));
	put(d, o, "ended_by", json_string(causes[out->cause]));
	put(d, o, "started", date(np_wall_ms(t->started_ns)));
	put(d, o, "elapsed", np_json_real(np_tally_seconds(t)));
	put(d, o, "metrics", np_json_metrics(&r));
	put(d, o, "flows", flows(d, t));
	put(d, o, "workers", workers(d, t));
	put(d, o, "skew", skews(d, out));
	put(d, o, "spread", spread(d, t));
	put(d, o, "ramp", ramp(d, &t->ramp));
	put(d, o, "open", open_loop(d, t));
	put(d, o, "stations", stations(d, out->stations));
	put(d, o, "disturbed", disturbed(d, out, record));
	put(d, o, "latency", np_json_hist(t->hist));
	put(d, o, "near", np_json_bag(near));
	put(d, o, "far", np_json_bag(far));
	d->failed |= json_array_append_new(json_object_get(d->root, "iterations"), o) != 0;
	d->left_out += np_bag_left_out(near) + np_bag_left_out(far);
	put(d, d->root, "left_out", json_integer((json_int_t)d->left_out));
	put_granted(d, out);
	put_far_plan(d, &out->far);
	identify(d, near, far, out->far_lacks[0] != '\0' ? out->far_lacks : "it reported nothing");
}

static json_t *
microseconds(double ns)
{
	return ns >= 0 && ns < (double)NP_HIST_NEVER ? np_json_real(ns / 1e3) : json_null();
}

/* The percentiles that the user has named beside netperf's. */
static void
put_percentiles(struct np_document *d, const struct np_look *look, const struct np_figures *f)
{
	json_t *final = json_object_get(d->root, "final");

	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		for (size_t i = 0; i < look->list.count[g]; i++) {
			int id = look->list.id[g][i];
			char name[NP_FIGURE_NAME];

			if (np_figure_is_percentile(id)) {
				put(d, final, np_figure_name(id, name),
				    microseconds(np_figure_percentile(f, id)));
			}
		}
	}
}

/* Two times in ns, in us; null: they are not known. */
static json_t *
between(bool told, uint64_t low, uint64_t high)
{
	return told ? json_pack("[o, o]", microseconds((double)low), microseconds((double)high))
		    : json_null();
}

/* What the times of all iterations come to, with fractions of microseconds; null without times. */
static json_t *
latency(struct np_document *d, const struct np_look *look, const struct np_hist *h)
{
	static const struct {
		const char *name;
		double share;
	} rows[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p99.9", 0.999 } };
	struct np_hist_summary s;
	json_t *o, *intervals;

	np_hist_summarise(h, &s);
	if (s.count == 0) {
		return json_null();
	}
	o = json_object();
	put(d, o, "unit", json_string("us"));
	put(d, o, "of", np_json_text(look->histogram_of));
	put(d, o, "count", json_integer((json_int_t)s.count));
	put(d, o, "min", microseconds((double)s.min));
	put(d, o, "mean", microseconds(s.mean));
	intervals = json_object();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t low, high;
		bool told = np_hist_interval(h, rows[i].share, &low, &high);

		put(d, o, rows[i].name, microseconds((double)np_hist_percentile(h, rows[i].share)));
		put(d, intervals, rows[i].name, between(told, low, high));
	}
	put(d, o, "max", microseconds((double)s.max));
	put(d, o, "stddev", microseconds(s.stddev));
	put(d, o, "intervals", intervals);
	return o;
}

void
np_document_result(struct np_document *d, const struct np_look *look,
		   const struct np_figures *figures)
{
	if (d == NULL) {
		return;
	}
	d->concluded = true;
	put(d, d->root, "final", np_json_metrics(figures->record));
	put_percentiles(d, look, figures);
	put(d, d->root, "latency", latency(d, look, figures->latency));
}

/* What a step came to. */
static json_t *
curve_row(struct np_document *d, const struct np_knee_step *s)
{
	static const char *const names[NP_KNEE_SHARES] = { "p50", "p99", "p99.9" };
	json_t *o = json_object(), *intervals = part(d, o, "intervals");

	put(d, o, "rate", np_json_real(s->rate));
	put(d, o, "runs", json_integer(s->runs));
	put(d, o, "sent", np_json_real(s->sent));
	put(d, o, "lost", np_json_real(s->lost));
	put(d, o, "arrived", np_json_real(s->arrived));
	put(d, o, "near_cpu", np_json_real(s->near_cpu));
	put(d, o, "far_cpu", np_json_real(s->far_cpu));
	for (int i = 0; i < NP_KNEE_SHARES; i++) {
		bool known = s->timed && s->high[i] > 0;

		put(d, o, names[i], known ? microseconds((double)s->ns[i]) : json_null());
		put(d, intervals, names[i], between(known, s->low[i], s->high[i]));
	}
	put(d, o, "too_much", np_json_text(s->much));
	return o;
}

void
np_document_curve(struct np_document *d, const struct np_plan *p, const struct np_knee *k)
{
	json_t *o, *steps = json_array();

	if (d == NULL) {
		json_decref(steps);
		return;
	}
	o = part(d, d->root, "curve");
	put(d, o, "unit", json_string(p->pattern->offers ? "bit/s" : "1/s"));
	put(d, o, "knee", k->good > 0 ? np_json_real(k->good) : json_null());
	for (uint32_t i = 0; i < k->steps; i++) {
		d->failed |= json_array_append_new(steps, curve_row(d, &k->step[i])) != 0;
	}
	put(d, o, "steps", steps);
}

void
np_document_beside(struct np_document *d, const struct np_plan *plan, const struct np_hist *idle,
		   const struct np_hist *loaded)
{
	json_t *o;

	if (d == NULL) {
		return;
	}
	o = part(d, d->root, "beside");
	put(d, o, "test", json_string(plan->bench->name));
	put(d, o, "rate_per_s", json_integer(plan->rate));
	put(d, o, "idle", np_json_hist(idle));
	put(d, o, "loaded", np_json_hist(loaded));
}

void
np_document_explain(struct np_document *d, const char *text, const struct np_bag *values)
{
	json_t *o;

	if (d == NULL) {
		return;
	}
	put(d, d->root, "explanation", json_object());
	o = part(d, d->root, "explanation");
	put(d, o, "text", np_json_text(text));
	put(d, o, "values", np_json_bag(values));
}

/* ---- Writing ---- */

static const char *
signal_name(int number)
{
	return number == SIGINT    ? "SIGINT"
	       : number == SIGTERM ? "SIGTERM"
	       : number == SIGALRM ? "SIGALRM"
	       : number == SIGHUP  ? "SIGHUP"
				   : "a signal";
}

static void
put_verdict(struct np_document *d, const struct np_verdict *v)
{
	json_t *o = d->root;
	char reason[200] = "";

	if (!d->concluded) {
		snprintf(reason, sizeof(reason), "nothing was measured");
	} else if (v->rc != NP_OK) {
		snprintf(reason, sizeof(reason), "%s",
			 v->partial[0] != '\0' ? v->partial : "the run failed");
	} else if (v->signal != 0 && !d->endless) {
		snprintf(reason, sizeof(reason), "ended by %s", signal_name(v->signal));
	}
	put(d, o, "ended", date(np_wall_ms(np_now())));
	put(d, o, "result",
	    json_string(!d->concluded       ? "failed"
			: reason[0] != '\0' ? "partial"
					    : "complete"));
	put(d, o, "reason", np_json_text(reason[0] != '\0' ? reason : NULL));
	put(d, o, "error", np_json_text(v->rc != NP_OK ? v->err->msg : NULL));
}

static int
write_out(FILE *out, const void *root)
{
	int failed = json_dumpf(root, out, NP_JSON_FLAGS);

	putc('\n', out);
	return failed;
}

/* path NULL: to that stream. Else a reader never sees half a document, unless it is a pipe. */
static int
write_where(const json_t *root, const char *path, FILE *out, struct np_err *err)
{
	struct np_output file;
	int failed;

	if (path == NULL) {
		/* The owner of the stream checks whether it arrives. */
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
np_document_write(struct np_document *d, const struct np_verdict *v, FILE *out, struct np_err *err)
{
	if (d == NULL) {
		return NP_OK;
	}
	put_verdict(d, v);
	if (d->failed) {
		return np_fail(err, NP_ESYS, ENOMEM, "--json: build the document");
	}
	return write_where(d->root, d->path, out, err);
}

/* ---- The list of engines, a document of its own ---- */

/* null for NULL. */
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
	rc = write_where(root, cli->output.json_file, out, err);
	json_decref(root);
	return rc;
}
