#include "cli/saved.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "base/units.h"
#include "out/datagrams.h"
#include "out/explain.h"
#include "out/json.h"
#include "out/ledger_table.h"
#include "out/prometheus.h"

/* Longer than any that is written: a day of interim results, or of bags full of samples. */
enum { FILE_MOST = 512 << 20 };

struct np_saved {
	json_t *root;
	const char *banner; /* NULL: it failed before there was one */
	const char *reason, *error;
	bool complete;
	bool concluded;          /* the rest is there */
	struct np_look look;     /* of the run */
	struct np_record record; /* its final figures */
	struct np_hist *hist;    /* of all iterations together */
	struct np_hist *connect; /* the last one's, of --ramp */
};

/* ---- Reading ---- */

static int
read_times(struct np_saved *s, struct np_err *err)
{
	const json_t *iterations = json_object_get(s->root, "iterations"), *one;
	size_t i;

	if (!json_is_array(iterations)) {
		return np_usage(err, "there are no iterations");
	}
	s->hist = np_hist_new();
	s->connect = np_hist_new();
	if (s->hist == NULL || s->connect == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for a histogram");
	}
	json_array_foreach((json_t *)iterations, i, one)
	{
		if (np_json_read_hist(json_object_get(one, "latency"), s->hist, err) != NP_OK) {
			return err->code;
		}
	}
	/* Older documents have no such times. */
	one = json_array_get(iterations, json_array_size(iterations) - 1);
	one = json_object_get(json_object_get(one, "ramp"), "connect");
	return one != NULL ? np_json_read_hist(one, s->connect, err) : NP_OK;
}

/* Clean a text line by line: only a banner has several, and one in another text would be a line
 * that the file forges. Returns 0, or -1: no memory. */
static int
clean_text(json_t *v, bool has_lines)
{
	char *text = strdup(json_string_value(v)), *end;
	int rc = text != NULL ? 0 : -1;

	for (char *line = text; line != NULL; line = end) {
		end = has_lines ? strchr(line, '\n') : NULL;
		if (end != NULL) {
			*end = '\0';
		}
		np_text_clean(line);
		if (end != NULL) {
			*end++ = '\n';
		}
	}
	rc = rc == 0 ? json_string_set(v, text) : rc;
	free(text);
	return rc;
}

/* All texts below v, so that no view prints one as the file has it. The parser limits the depth. */
static int
clean_texts(json_t *v, bool has_lines)
{
	const char *name;
	json_t *one;
	size_t i;
	int rc = 0;

	if (json_is_string(v)) {
		return clean_text(v, has_lines);
	}
	json_array_foreach(v, i, one)
	{
		rc |= clean_texts(one, false);
	}
	json_object_foreach(v, name, one)
	{
		rc |= clean_texts(one, strcmp(name, "banner") == 0);
	}
	return rc;
}

/* The text of that name, NULL where it is null. */
static int
read_text(const json_t *o, const char *name, const char **to, struct np_err *err)
{
	const json_t *v = json_object_get(o, name);

	*to = json_string_value(v);
	if (*to == NULL && !json_is_null(v)) {
		return np_usage(err, "%s is not a text", name);
	}
	return NP_OK;
}

static int
read_result(struct np_saved *s, struct np_err *err)
{
	const json_t *display = json_object_get(s->root, "display");
	const json_t *final = json_object_get(s->root, "final");

	const char *result;

	if (read_text(s->root, "result", &result, err) != NP_OK ||
	    read_text(s->root, "reason", &s->reason, err) != NP_OK ||
	    read_text(s->root, "error", &s->error, err) != NP_OK || read_times(s, err) != NP_OK) {
		return err->code;
	}
	if (result == NULL) {
		return np_usage(err, "result is not a text");
	}
	s->complete = strcmp(result, "complete") == 0;
	s->concluded = !json_is_null(final);
	if (json_is_null(display) && !s->concluded) {
		return NP_OK; /* it failed early */
	}
	if (read_text(display, "banner", &s->banner, err) != NP_OK ||
	    np_json_read_look(display, &s->look, err) != NP_OK) {
		return err->code;
	}
	if (!s->concluded) {
		return NP_OK;
	}
	if (np_json_read_metrics(final, &s->record, err) != NP_OK) {
		return err->code;
	}
	np_record_withdraw(&s->record);
	return np_json_read_oddities(json_object_get(display, "oddities"), &s->record, err);
}

static int
check_schema(const json_t *root, struct np_err *err)
{
	const char *name = json_string_value(json_object_get(root, "schema")), *number = "";
	int64_t n;

	if (name != NULL && strncmp(name, NP_JSON_SCHEMA, strlen(NP_JSON_SCHEMA)) == 0) {
		number = name + strlen(NP_JSON_SCHEMA);
	}
	if (strspn(number, "0123456789") != strlen(number) || np_parse_count(number, &n) != 0 ||
	    n < 1) {
		return np_usage(err, "it is not a document of a run by --json");
	}
	if (n > NP_JSON_NUMBER) {
		return np_usage(err,
				"it is a document of number %.20s, and this netperf reads 1 to %d "
				"(a newer netperf is needed)",
				number, NP_JSON_NUMBER);
	}
	return NP_OK;
}

static int
read_document(struct np_saved *s, const char *bytes, size_t size, struct np_err *err)
{
	json_error_t fault;

	s->root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &fault);
	if (s->root == NULL) {
		return np_usage(err, "line %d, column %d: %s", fault.line, fault.column,
				fault.text);
	}
	if (clean_texts(s->root, false) != 0) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for a document");
	}
	if (check_schema(s->root, err) != NP_OK) {
		return err->code;
	}
	return read_result(s, err);
}

int
np_saved_read(const char *bytes, size_t size, struct np_saved **saved, struct np_err *err)
{
	struct np_saved *s = calloc(1, sizeof(*s));
	int rc;

	*saved = s;
	if (s == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for a document");
	}
	rc = read_document(s, bytes, size, err);
	if (rc != NP_OK) {
		np_text_printable(err->msg); /* some of it is the file's */
	}
	return rc;
}

void
np_saved_free(struct np_saved *s)
{
	if (s != NULL) {
		json_decref(s->root);
		free(s->hist);
		free(s->connect);
		free(s);
	}
}

/* ---- Printing ---- */

/* Ignore what is not an interim result. */
static void
print_interim(const struct np_saved *s, FILE *out)
{
	const json_t *list = json_object_get(s->root, "interim"), *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		const char *unit = json_string_value(json_object_get(one, "unit"));
		/* Older documents have none. */
		const json_t *up = json_object_get(one, "flows_up");
		const struct np_interim interim = {
			.number = (unsigned)json_integer_value(json_object_get(one, "number")),
			.rate = json_number_value(json_object_get(one, "rate")),
			.unit = unit != NULL ? unit : "",
			.seconds = json_number_value(json_object_get(one, "seconds")),
			.ending_ms =
			    (uint64_t)json_integer_value(json_object_get(one, "ending_ms")),
			.ramps = json_is_integer(up),
			.flows_up = (uint64_t)json_integer_value(up),
		};

		if (unit != NULL) {
			np_interim_print(out, s->look.style, &interim);
		}
	}
}

static const char *
text_in(const struct np_saved *s, const char *object, const char *name)
{
	const json_t *o = json_object_get(s->root, object);

	return json_string_value(json_object_get(o, name));
}

static void
print_prometheus(const struct np_saved *s, FILE *out)
{
	const struct np_label labels[] = {
		{ "test", text_in(s, "test", "name") },
		{ "host", text_in(s, "test", "host") },
		{ "protocol", text_in(s, "test", "protocol") },
		{ "brand", text_in(s, "test", "brand") },
	};
	const size_t count = sizeof(labels) / sizeof(labels[0]);

	np_prometheus_head(out, "netperf_complete", "gauge",
			   "1: the run is complete; 0: a part of it, or nothing, was measured");
	np_prometheus_value(out, "netperf_complete", labels, count, s->complete);
	if (s->concluded) {
		np_prometheus_print(out, labels, count, &s->record, s->hist);
	}
}

/* Other figures than those of the run, or in another style: all that is known may be shown. */
static void
choose(const struct np_saved *s, const struct np_cli_output *o, struct np_look *look)
{
	if (o->style != NP_STYLE_CLASSIC) {
		look->style = o->style;
		look->times = false;
		look->latency = look->congestion = true;
		look->histogram = false;
	}
	if (o->selectors != NULL) {
		look->list = o->selection;
	}
	if (o->verbosity_said) {
		look->classic.verbosity = o->verbosity;
		look->histogram = np_hist_count(s->hist) > 0 && o->verbosity > 1;
	}
	if (o->headers_said) {
		look->classic.headers = o->headers != 0;
	}
}

static struct np_bag *
read_bag(const json_t *o)
{
	struct np_bag *b = json_is_object(o) ? np_bag_new() : NULL;
	struct np_err ignored;

	np_json_read_bag(o, b, &ignored);
	return b;
}

static void
print_datagrams(const struct np_saved *s, const struct np_bag *near, const struct np_bag *far,
		FILE *out)
{
	const char *bench = text_in(s, "test", "name");
	const struct np_datagrams d = {
		.bench = bench != NULL ? bench : "",
		.near = near,
		.far = far,
		.unit = s->look.classic.unit,
		.iterations = (unsigned)json_array_size(json_object_get(s->root, "iterations")),
	};

	if (d.unit != NULL) { /* else the run came to no table */
		np_datagrams_print(out, &d);
	}
}

void
np_saved_print_evidence(const struct np_saved *s, const struct np_cli_evidence *wanted, FILE *out)
{
	const json_t *iterations = json_object_get(s->root, "iterations");
	const json_t *last = json_array_get(iterations, json_array_size(iterations) - 1);
	const json_t *explanation = json_object_get(s->root, "explanation");
	struct np_bag *values = read_bag(json_object_get(explanation, "values"));
	struct np_bag *near = read_bag(json_object_get(last, "near"));
	struct np_bag *far = read_bag(json_object_get(last, "far"));

	if (wanted->explain && values != NULL) {
		np_explain_print(out, values);
	} else if (wanted->explain) {
		fputs("netperf: --explain: the document has no explanation\n", out);
	}
	if (wanted->wire) {
		np_look_which(out, (unsigned)json_array_size(iterations));
		np_ledger_print(out, near, far, text_in(s, "far", "why"));
	}
	print_datagrams(s, near, far, out);
	np_bag_free(values);
	np_bag_free(near);
	np_bag_free(far);
}

/* What --human says beside the figures. The texts are the document's. */
static void
read_human(const struct np_saved *s, struct np_human *h)
{
	const json_t *parameters = json_object_get(s->root, "parameters");
	const json_t *granted = json_object_get(parameters, "granted");
	const json_t *near = json_object_get(granted, "near"),
		     *far = json_object_get(granted, "far");
	const json_t *plan = json_object_get(json_object_get(s->root, "test"), "iterations");
	const json_t *one;
	size_t i;

	memset(h, 0, sizeof(*h));
	h->test = text_in(s, "test", "name");
	h->host = text_in(s, "test", "host");
	h->local = json_string_value(json_object_get(near, "address"));
	h->remote = json_string_value(json_object_get(far, "address"));
	if (json_is_integer(json_object_get(plan, "clean_seconds"))) {
		return; /* iterations differ in length */
	}
	json_array_foreach(json_object_get(s->root, "iterations"), i, one)
	{
		const json_t *metrics = json_object_get(one, "metrics");

		np_series_add(&h->rates, json_number_value(json_object_get(metrics, "THROUGHPUT")));
	}
}

static void
print_result(const struct np_saved *s, const struct np_look *how, FILE *out)
{
	struct np_look look = *how;
	const struct np_figures figures = { .record = &s->record,
					    .latency = s->hist,
					    .connect = s->connect };
	const json_t *explanation = json_object_get(s->root, "explanation");
	struct np_human human;
	struct np_bag *limits =
	    how->limits ? read_bag(json_object_get(explanation, "values")) : NULL;

	read_human(s, &human);
	human.limits = limits;
	look.human = &human;
	np_look_print(out, &look, &figures);
	np_bag_free(limits);
}

int
np_saved_print(const struct np_saved *s, const struct np_cli_output *o, FILE *out,
	       struct np_err *err)
{
	bool as_it_was = o->style == NP_STYLE_CLASSIC && !o->verbosity_said && !o->headers_said &&
			 !o->prometheus;
	struct np_look look = s->look;

	if (o->prometheus) {
		print_prometheus(s, out);
	} else if (as_it_was) {
		fputs(s->banner != NULL ? s->banner : "", out);
		print_interim(s, out);
	} else {
		choose(s, o, &look);
		if (o->style == NP_STYLE_CLASSIC && look.classic.headers) {
			fputs(s->banner != NULL ? s->banner : "", out);
		}
	}
	if (!s->concluded) {
		return np_fail(err, NP_EPEER, 0, "the run has no result: %.300s",
			       s->error != NULL ? s->error : "nothing was measured");
	}
	if (!o->prometheus) {
		look.times |= o->times;
		look.limits |= o->limits;
		print_result(s, &look, out);
		if (o->times && np_hist_count(s->hist) == 0) {
			fflush(out);
			fputs("netperf: --latency: the document has no latencies (those of a "
			      "stream are kept with --latency or -j)\n",
			      stderr);
		}
	}
	return NP_OK;
}

/* Seconds since 1970 of a time in a document; NAN: it is none. */
static double
seconds_of(const char *text)
{
	struct tm at = { .tm_year = 0 };
	const char *rest = text != NULL ? strptime(text, "%Y-%m-%dT%H:%M:%S", &at) : NULL;

	return rest != NULL ? (double)timegm(&at) + strtod(rest, NULL) : (double)NAN;
}

int
np_saved_part(const struct np_saved *s, struct np_saved_part *p, struct np_err *err)
{
	const json_t *iterations = json_object_get(s->root, "iterations");
	const json_t *last = json_array_get(iterations, json_array_size(iterations) - 1);
	const char *begin =
	    json_string_value(json_object_get(json_array_get(iterations, 0), "started"));
	double end_s;

	if (!s->concluded) {
		return np_fail(err, NP_EPEER, 0, "the run has no result");
	}
	*p = (struct np_saved_part){
		.test = text_in(s, "test", "name"),
		.unit = np_record_get_text(&s->record, NP_M_THROUGHPUT_UNITS),
		.rate = np_record_get_real(&s->record, NP_M_THROUGHPUT),
		.begin_s = seconds_of(begin),
		.hist = s->hist,
	};
	end_s = seconds_of(json_string_value(json_object_get(last, "started"))) +
		json_number_value(json_object_get(last, "elapsed"));
	p->seconds = end_s - p->begin_s;
	if (p->test == NULL || p->unit == NULL || !isfinite(p->seconds)) {
		return np_usage(err, "it does not say what ran, or when");
	}
	return NP_OK;
}

/* ---- Files ---- */

/* All of it; NULL where it can't be read. */
static char *
slurp(FILE *in, size_t *size, struct np_err *err)
{
	size_t room = 1 << 16;
	char *bytes = NULL;

	*size = 0;
	for (;;) {
		char *more = realloc(bytes, room);

		if (more == NULL) {
			np_fail(err, NP_ESYS, ENOMEM, "memory for a document");
			break;
		}
		bytes = more;
		*size += fread(bytes + *size, 1, room - *size, in);
		if (ferror(in)) {
			np_fail(err, NP_ESYS, errno, "read it");
			break;
		}
		if (*size < room) {
			return bytes;
		}
		if (room >= FILE_MOST) {
			np_usage(err, "it is too long for a document");
			break;
		}
		room *= 2;
	}
	free(bytes);
	return NULL;
}

int
np_saved_open(const char *path, struct np_saved **s, struct np_err *err)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *in;
	size_t size;
	char *bytes;
	int rc;

	*s = NULL;
	if (path[0] == '\0') {
		return np_usage(err, "the file has no name");
	}
	in = standard ? stdin : fopen(path, "re");
	if (in == NULL) {
		return np_fail(err, NP_ESYS, errno, "open it");
	}
	bytes = slurp(in, &size, err);
	rc = bytes != NULL ? np_saved_read(bytes, size, s, err) : (int)err->code;
	free(bytes);
	if (!standard) {
		fclose(in);
	}
	return rc;
}

static int
show(const struct np_cli *cli, const struct np_saved *s, FILE *out, struct np_err *err)
{
	struct np_cli_evidence wanted = cli->evidence;

	if (np_saved_print(s, &cli->output, out, err) != NP_OK) {
		return err->code;
	}
	fflush(out);
	if (s->reason != NULL) {
		char why[600];

		snprintf(why, sizeof(why), "%s%s%s", s->error != NULL ? s->error : "",
			 s->error != NULL ? ": " : "", s->reason);
		np_text_printable(why);
		fprintf(stderr, "netperf: --show: %s: not a complete run: %s\n", cli->output.show,
			why);
	}
	wanted.explain = wanted.explain && !cli->output.limits; /* it has been shown */
	np_saved_print_evidence(s, &wanted, stderr);
	return NP_OK;
}

int
np_saved_show(const struct np_cli *cli, FILE *out, struct np_err *err)
{
	const char *path = cli->output.show;
	struct np_saved *s;
	int rc = np_saved_open(path, &s, err);

	rc = rc == NP_OK && s != NULL ? show(cli, s, out, err) : rc;
	if (rc != NP_OK) {
		char where[200];

		snprintf(where, sizeof(where), "--show%s%.180s", path[0] != '\0' ? ": " : "",
			 strcmp(path, "-") == 0 ? "standard input" : path);
		np_text_printable(err->msg);
		np_fail_in(err, where);
	}
	np_saved_free(s);
	return rc;
}
