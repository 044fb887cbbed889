/*
 * The rules that say what limited a test, judged by what both ends knew of tests whose limit was
 * planted: tests/unit/explain/NAME.json, which tests/record-explain makes of what explain_bed.py
 * keeps. None may be judged worse than it was then. `test_explain_bed FILE...` judges others than
 * those, by shares.
 */
#include <dirent.h>
#include <jansson.h>

#include "base/bag.h"
#include "out/explain.h"
#include "out/json.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"

enum { NAME_BYTES = 256 };

/* Shares of what is judged. */
#define MOST_WRONG 0.02
#define LEAST_RIGHT 0.90

/* The same as explain_bed.py's; `bare` is half of the truth without a word of the rest. */
enum verdict { RIGHT, HALF, UNCLEAR, BARE, WRONG, VERDICTS };

static const char *const verdict_names[VERDICTS] = { "right", "half", "unclear", "bare", "wrong" };

struct planted {
	char name[NAME_BYTES], right[NAME_BYTES], half[NAME_BYTES]; /* names, blanks between */
	char verdict[NAME_BYTES];                                   /* when it was recorded */
	struct np_explain_input in;
	struct np_bag *near, *far;
};

static char *const *files;
static size_t file_count; /* 0: those of the source tree */

/* ---- Reading ---- */

/* A word of a list of names, or of a text, whole: "loss" is no part of "loss-free". */
static bool
has_name(const char *text, const char *name, size_t len)
{
	static const char within[] = "abcdefghijklmnopqrstuvwxyz-";

	for (const char *at = text; (at = strstr(at, name)) != NULL; at++) {
		bool begins = at == text || strchr(within, at[-1]) == NULL;

		if (begins && (at[len] == '\0' || strchr(within, at[len]) == NULL)) {
			return true;
		}
	}
	return false;
}

static void
take_input(struct np_explain_input *in, const struct np_bag *b)
{
	in->datagrams = np_bag_number(b, "lossy") > 0;
	in->transactions = np_bag_number(b, "transactions") > 0;
	in->near_transmits = np_bag_number(b, "near_transmits") > 0;
	in->family = (int)np_bag_number(b, "family");
	in->seconds = np_bag_number(b, "seconds");
	in->sent_bps = np_bag_number(b, "sent_bps");
	in->throughput_bps = np_bag_number(b, "throughput_bps");
	in->in_flight = (uint32_t)np_bag_number(b, "in_flight");
	in->connections = np_bag_number(b, "connections") > 0;
	in->iterations = (uint32_t)np_bag_number(b, "iterations");
	if (in->transactions) {
		in->per_second = np_bag_number(b, "per_second");
		in->request = (uint32_t)np_bag_number(b, "request");
		in->response = (uint32_t)np_bag_number(b, "response");
	}
}

static void
take_text(char into[NAME_BYTES], const struct np_bag *b, const char *name)
{
	const char *text = np_bag_string(b, name);

	snprintf(into, NAME_BYTES, "%s", text != NULL ? text : "");
}

/* A list of integers if it has no other numbers. 0, or -1: it has something else. */
static int
read_list(const json_t *list, const char *name, struct np_bag *b)
{
	size_t n = json_array_size(list);
	double *reals = malloc((n + 1) * sizeof(*reals));
	int64_t *ints = malloc((n + 1) * sizeof(*ints));
	bool whole_numbers = true;
	int rc = reals != NULL && ints != NULL ? 0 : -1;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		const json_t *v = json_array_get(list, i);

		rc = json_is_number(v) ? 0 : -1;
		whole_numbers = whole_numbers && json_is_integer(v);
		reals[i] = json_number_value(v);
		ints[i] = json_integer_value(v);
	}
	if (rc == 0 && whole_numbers) {
		np_bag_ints(b, ints, n, "%s", name);
	} else if (rc == 0) {
		np_bag_reals(b, reals, n, "%s", name);
	}
	free(reals);
	free(ints);
	return rc;
}

static int
read_unread(const json_t *o, struct np_bag *b)
{
	const char *name;
	json_t *v;
	int rc = json_is_object(o) ? 0 : -1;

	json_object_foreach((json_t *)o, name, v)
	{
		if (!json_is_string(v)) {
			return -1;
		}
		np_bag_unread(b, json_string_value(v), "%s", name);
	}
	return rc;
}

/* A series that does not change is recorded as its one value: as many as its times; of others 0. */
static size_t
series_length(const json_t *document, const char *end, const char *name)
{
	const char *at = strstr(name, ".samples.");
	char times[NAME_BYTES];
	size_t n;

	snprintf(times, sizeof(times), "%.*s.samples.t_s", at != NULL ? (int)(at - name) : 0, name);
	n = json_array_size(json_object_get(json_object_get(document, end), times));
	return n > 0 ? n
		     : json_array_size(json_object_get(json_object_get(document, "both"), times));
}

static int
read_bag_value(json_t *v, const char *name, size_t n, struct np_bag *b)
{
	if (strcmp(name, "unread") == 0) {
		return read_unread(v, b);
	}
	if (n > 0 && !json_is_array(v)) {
		json_t *list = json_array();
		int rc = 0;

		while (n-- > 0) {
			rc |= json_array_append(list, v);
		}
		rc |= read_list(list, name, b);
		json_decref(list);
		return rc;
	}
	switch (json_typeof(v)) {
	case JSON_INTEGER:
		np_bag_int(b, json_integer_value(v), "%s", name);
		return 0;
	case JSON_REAL:
		np_bag_real(b, json_real_value(v), "%s", name);
		return 0;
	case JSON_STRING:
		np_bag_text(b, json_string_value(v), "%s", name);
		return 0;
	case JSON_ARRAY:
		return read_list(v, name, b);
	case JSON_OBJECT:
	case JSON_TRUE:
	case JSON_FALSE:
	case JSON_NULL:
		break;
	}
	return -1;
}

/* What a part of the document says of an end, or of another subject. */
static void
read_part(const json_t *document, const char *path, const char *part, const char *end,
	  struct np_bag *b)
{
	json_t *o = json_object_get(document, part), *v;
	const char *key;

	assert_true(json_is_object(o));
	json_object_foreach(o, key, v)
	{
		fail_if(read_bag_value(v, key, series_length(document, end, key), b) != 0,
			"%s: %s: %s is not a valid value", path, part, key);
	}
}

static struct np_bag *
read_end(const json_t *document, const char *path, const char *end)
{
	struct np_bag *b = np_bag_new();

	read_part(document, path, "both", end, b);
	read_part(document, path, end, end, b);
	return b;
}

/* What common/KIND.json beside the document says, unless the document does. */
static void
add_common(json_t *document, const char *path, const char *kind)
{
	const char *name = strrchr(path, '/'), *part;
	char file[4096];
	json_error_t fault;
	json_t *common, *o, *own, *v;
	const char *key;

	snprintf(file, sizeof(file), "%.*scommon/%s.json",
		 name != NULL ? (int)(name + 1 - path) : 0, path, kind);
	common = json_load_file(file, 0, &fault);
	fail_if(common == NULL, "%s:%d: %s", file, fault.line, fault.text);
	json_object_foreach(common, part, o)
	{
		own = json_object_get(document, part);
		assert_int_equal(json_object_update_missing(own, o), 0);
		json_object_foreach(o, key, v)
		{
			if (json_is_null(json_object_get(own, key))) { /* it lacks that */
				json_object_del(own, key);
			}
		}
	}
	json_decref(common);
}

static void
read_planted(const char *path, struct planted *p)
{
	FREED_BY(free_bag) struct np_bag *expect = np_bag_new(), *input = np_bag_new();
	json_error_t fault;
	json_t *document = json_load_file(path, 0, &fault);

	fail_if(document == NULL, "%s:%d: %s", path, fault.line, fault.text);
	memset(p, 0, sizeof(*p));
	read_part(document, path, "expect", "", expect);
	if (np_bag_string(expect, "like") != NULL) {
		add_common(document, path, np_bag_string(expect, "like"));
	}
	read_part(document, path, "input", "", input);
	p->near = read_end(document, path, "near");
	p->far = read_end(document, path, "far");
	json_decref(document);
	take_text(p->name, expect, "name");
	take_text(p->right, expect, "right");
	take_text(p->half, expect, "half");
	take_text(p->verdict, expect, "verdict");
	take_input(&p->in, input);
	p->in.near = p->near;
	p->in.least_us = np_bag_number(p->near, "flow.latency_min_us");
	p->in.median_us = np_bag_number(p->near, "flow.latency_p50_us");
	p->in.mean_us = np_bag_number(p->near, "flow.latency_mean_us");
	p->in.far = p->far;
	assert_true(p->right[0] != '\0' && p->in.seconds > 0);
	assert_int_equal(np_bag_left_out(p->near) + np_bag_left_out(p->far), 0);
}

/* ---- Judging ---- */

/* Whether one of the names that are right stands in the text. */
static bool
names_right(const struct planted *p, const char *text)
{
	const char *at = p->right;

	while (*at != '\0') {
		char name[NAME_BYTES];
		size_t len = strcspn(at, " ");

		memcpy(name, at, len);
		name[len] = '\0';
		if (has_name(text, name, len)) {
			return true;
		}
		at += len + (at[len] == ' ');
	}
	return false;
}

static enum verdict
judge(const struct planted *p, const char *limit, const char *also, const char *doubts)
{
	if (has_name(p->right, limit, strlen(limit))) {
		return RIGHT;
	}
	if (strcmp(limit, np_limit_name(NP_LIMIT_UNCLEAR)) == 0) {
		return UNCLEAR;
	}
	if (has_name(p->half, limit, strlen(limit))) {
		return names_right(p, also) || names_right(p, doubts) ? HALF : BARE;
	}
	return names_right(p, also) ? HALF : WRONG;
}

/* And a line of the table. */
static enum verdict
judge_file(const char *path)
{
	struct np_bag *values = np_bag_new();
	struct np_explanation e;
	struct planted p;
	const char *also;
	enum verdict v, recorded = RIGHT;

	read_planted(path, &p);
	np_explain(&p.in, &e);
	np_explain_put(&e, p.in.transactions, values);
	also = np_bag_string(values, "explain.also");
	also = also != NULL ? also : "";
	v = judge(&p, np_limit_name(e.best.limit), also, e.best.doubts);
	printf("%-34s %-7s %s%s%s (right: %s)\n", p.name, verdict_names[v],
	       np_limit_name(e.best.limit), also[0] != '\0' ? " and " : "", also, p.right);
	if (v != RIGHT) {
		printf("    | %s\n    | doubts: %s\n", e.best.sentence, e.best.doubts);
	}
	while (recorded < VERDICTS && strcmp(p.verdict, verdict_names[recorded]) != 0) {
		recorded++;
	}
	fail_if(v > recorded, "%s: %s, and was %s", path, verdict_names[v], p.verdict);
	assert_null(strstr(e.best.sentence, "nan"));
	assert_null(strstr(e.best.doubts, "nan"));
	np_bag_free(values);
	np_bag_free(p.near);
	np_bag_free(p.far);
	return v;
}

static void
total(const unsigned counts[VERDICTS])
{
	unsigned all = 0;

	for (size_t i = 0; i < VERDICTS; i++) {
		all += counts[i];
	}
	for (size_t i = 0; i < VERDICTS; i++) {
		printf("%s %u (%.1f %%)%s", verdict_names[i], counts[i], 100.0 * counts[i] / all,
		       i + 1 < VERDICTS ? ", " : "\n");
	}
	assert_true(all > 0);
	assert_true(counts[WRONG] <= MOST_WRONG * all);
	assert_true(counts[RIGHT] + counts[HALF] >= LEAST_RIGHT * all);
}

static int
is_recorded(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot != NULL && strcmp(dot, ".json") == 0;
}

TEST(recorded_evidence_is_explained)
{
	const char *top = getenv("top_srcdir");
	unsigned counts[VERDICTS] = { 0 };
	char dir[2048], path[4096];
	struct dirent **entries;
	int found;

	if (file_count > 0) {
		for (size_t i = 0; i < file_count; i++) {
			counts[judge_file(files[i])]++;
		}
		total(counts);
		return;
	}
	snprintf(dir, sizeof(dir), "%s/tests/unit/explain", top != NULL ? top : "..");
	found = scandir(dir, &entries, is_recorded, alphasort);
	fail_if(found < 0, "%s: %s", dir, strerror(errno));
	for (int i = 0; i < found; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		judge_file(path);
		free(entries[i]);
	}
	free(entries);
	assert_true(found > 0);
}

TEST(verdicts_are_right_half_or_wrong)
{
	const struct planted p = { .right = "policer outage", .half = "loss" };

	assert_int_equal(judge(&p, "outage", "", ""), RIGHT);
	assert_int_equal(judge(&p, "unclear", "", "policer"), UNCLEAR);
	assert_int_equal(judge(&p, "loss", "", ""), BARE);
	assert_int_equal(judge(&p, "loss", "outage", ""), HALF);
	assert_int_equal(judge(&p, "loss", "", "a policer would do the same"), HALF);
	assert_int_equal(judge(&p, "loss", "", "policers-r-us"), BARE);
	assert_int_equal(judge(&p, "link", "", "policer"), WRONG);
	assert_int_equal(judge(&p, "link", "policer", ""), HALF);
	assert_int_equal(judge(&p, "police", "", ""), WRONG);
}

int
main(int argc, char **argv)
{
	files = argv + 1;
	file_count = (size_t)argc - 1;
	return all_tests(NULL, NULL);
}
