#include "out/select.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* Is it one of the daemon's? Other ids than those of metrics are percentiles of this end. */
static bool
is_far(int id)
{
	return id >= 0 && id < NP_METRICS &&
	       (id == NP_M_RSS_SIZE_END || id == NP_M_RSR_SIZE_END ||
		np_metrics[id].collect == NP_COLLECT_EVIDENCE ||
		strncmp(np_metrics[id].name, "REMOTE_", 7) == 0);
}

/* Append a figure to a group (from 0), or NP_SELECT_UNKNOWN. Fails if the group is full. */
static int
add(struct np_selection *sel, size_t group, int id, struct np_err *err)
{
	if (sel->count[group] == NP_SELECT_MAX) {
		return np_usage(err, "more than %d output selectors in group %zu: name fewer",
				NP_SELECT_MAX, group + 1);
	}
	sel->id[group][sel->count[group]++] = id;
	sel->names++;
	sel->unknowns += id == NP_SELECT_UNKNOWN;
	sel->far |= is_far(id);
	return NP_OK;
}

/* Add the names of the list up to `end` or OUTPUT_END, and note what to collect for them. */
static int
parse_group(const char *list, const char *end, struct np_selection *sel, size_t group,
	    struct np_err *err)
{
	char name[NP_SELECT_NAME];

	_Static_assert(NP_SELECT_UNKNOWN == -1, "np_figure_find() returns it, too");
	while (list < end) {
		size_t len = strcspn(list, ", \t;");
		int id;

		snprintf(name, sizeof(name), "%.*s", (int)len, list);
		id = len < sizeof(name) ? np_figure_find(name) : NP_SELECT_UNKNOWN;
		if (id == NP_M_OUTPUT_END) {
			break;
		}
		if (len > 0 && add(sel, group, id, err) != NP_OK) {
			return err->code;
		}
		if (id != NP_SELECT_UNKNOWN) {
			enum np_metric_collect c = np_figure_collect(id);

			sel->latency |= c == NP_COLLECT_LATENCY;
			sel->congestion |= c == NP_COLLECT_CONGESTION;
			sel->evidence |= c == NP_COLLECT_EVIDENCE;
		}
		list += len + 1;
	}
	return NP_OK;
}

/* The first figure of that name or column head; OUTPUT_NONE when there is none. */
static int
find_title(const char *text)
{
	int found;

	for (int i = 0; i < NP_METRICS; i = np_metric_next(i)) {
		char title[NP_SELECT_NAME];

		np_figure_title(i, title, sizeof(title));
		if (strcasecmp(text, title) == 0 || strcasecmp(text, np_metrics[i].name) == 0) {
			return i;
		}
	}
	found = np_figure_find(text); /* a percentile is no row */
	return found >= 0 ? found : NP_M_OUTPUT_NONE;
}

/* Add the names of line 1, 2 ... of a file, up to OUTPUT_END. Unprintable bytes are ignored. */
static int
parse_line(char *text, size_t len, unsigned line, struct np_selection *sel, struct np_err *err)
{
	/* Each line is a group; more lines belong to the last one. */
	size_t group = line < NP_SELECT_GROUPS ? line - 1 : NP_SELECT_GROUPS - 1, used = 0;
	bool ended = false;
	const char *name;

	for (size_t i = 0; i < len; i++) {
		if (isprint((unsigned char)text[i])) {
			text[used++] = text[i];
		}
	}
	text[used] = '\0';
	while ((name = strsep(&text, ",")) != NULL) {
		int id = find_title(name);

		if (strlen(name) >= NP_SELECT_NAME) {
			/* netperf swaps line and column, too. */
			return np_fail(err, NP_EPLAIN, 0,
				       "Output selection starting column %u on line %d is too long",
				       line, NP_SELECT_NAME + 1);
		}
		ended |= id == NP_M_OUTPUT_END;
		if (ended) {
			continue;
		}
		if (id == NP_M_OUTPUT_NONE && sel->unknown[0] == '\0' &&
		    strcasecmp(name, "OUTPUT_NONE") != 0) {
			(void)np_text_copy(sel->unknown, sizeof(sel->unknown), name);
		}
		/* As in netperf, names in a file turn on no collection, except for our own. */
		sel->evidence |= np_figure_collect(id) == NP_COLLECT_EVIDENCE;
		sel->latency |= np_figure_is_percentile(id);
		if (add(sel, group, id, err) != NP_OK) {
			return err->code;
		}
	}
	return NP_OK;
}

/* np_selection_parse() of a file: a line of names, separated by commas, for each group. */
static int
parse_file(const char *path, struct np_selection *sel, struct np_err *err)
{
	enum { MOST = 1 << 20 }; /* bytes: more than the groups hold; a pipe may never end */
	FILE *file = fopen(path, "re");
	char *text;
	size_t len;
	int rc = NP_OK;

	if (file == NULL) {
		return np_fail(err, NP_ECONTROL, errno, "open output selectors '%s'", path);
	}
	text = malloc(MOST + 1); /* and a NUL */
	len = text != NULL ? fread(text, 1, MOST, file) : 0;
	if (text == NULL || ferror(file)) {
		rc = np_fail(err, NP_ECONTROL, errno, "read output selectors from '%s'", path);
	}
	for (size_t at = 0, line = 1, n; rc == NP_OK && at < len; at += n + 1, line++) {
		const char *end = memchr(text + at, '\n', len - at);

		n = end != NULL ? (size_t)(end - text) - at : len - at;
		rc = parse_line(text + at, n, (unsigned)line, sel, err);
	}
	free(text);
	fclose(file);
	return rc;
}

int
np_selection_parse(const char *word, struct np_selection *sel, struct np_err *err)
{
	_Static_assert((int)NP_METRICS <= NP_SELECT_MAX, "`all` fits");

	memset(sel, 0, sizeof(*sel));
	if (strcasecmp(word, "all") == 0) {
		for (int i = 0; i < NP_METRICS; i = np_metric_next(i)) {
			int group = np_metrics[i].group;

			if (group > 0) {
				sel->id[group - 1][sel->count[group - 1]++] = i;
			}
		}
		sel->latency = sel->congestion = sel->far =
		    true; /* but evidence is not collected */
		return NP_OK;
	}
	if (strpbrk(word, ",;") != NULL || np_figure_find(word) >= 0) {
		for (size_t group = 0; group < NP_SELECT_GROUPS && word != NULL; group++) {
			const char *end = strchrnul(word, ';');

			if (parse_group(word, end, sel, group, err) != NP_OK) {
				return err->code;
			}
			word = *end != '\0' ? end + 1 : NULL;
		}
		return NP_OK;
	}
	return parse_file(word, sel, err);
}

#define END NP_M_OUTPUT_END /* of a list of figures */

/* Append figures up to END to the first group. */
static void
append(struct np_selection *sel, const enum np_metric_id *ids)
{
	for (; *ids != END; ids++) {
		sel->id[0][sel->count[0]++] = (int)*ids;
	}
}

#define CPU_OF(end)                                                                                \
	NP_M_##end##_CPU_UTIL, NP_M_##end##_CPU_PERCENT_USER, NP_M_##end##_CPU_PERCENT_SYSTEM,     \
	    NP_M_##end##_CPU_PERCENT_IOWAIT, NP_M_##end##_CPU_PERCENT_IRQ,                         \
	    NP_M_##end##_CPU_PERCENT_SWINTR, NP_M_##end##_CPU_METHOD

void
np_selection_default(enum np_select_kind kind, bool cpu, struct np_selection *sel)
{
	static const enum np_metric_id first[][7] = {
		[NP_SELECT_SEND] = { NP_M_LSS_SIZE_END, NP_M_RSR_SIZE_END, NP_M_LOCAL_SEND_SIZE,
				     END },
		[NP_SELECT_RECEIVE] = { NP_M_RSS_SIZE_END, NP_M_LSR_SIZE_END, NP_M_REMOTE_SEND_SIZE,
					END },
		[NP_SELECT_BOTH] = { NP_M_LOCAL_SEND_SIZE, NP_M_REMOTE_SEND_SIZE,
				     NP_M_LOCAL_SEND_THROUGHPUT, NP_M_LOCAL_RECV_THROUGHPUT, END },
		[NP_SELECT_BOTH_LOSSY] = { NP_M_LOCAL_SEND_SIZE, NP_M_REMOTE_SEND_SIZE,
					   NP_M_LOCAL_SEND_THROUGHPUT, NP_M_REMOTE_RECV_THROUGHPUT,
					   NP_M_REMOTE_SEND_THROUGHPUT, NP_M_LOCAL_RECV_THROUGHPUT,
					   END },
		[NP_SELECT_TRANSACTIONS] = { NP_M_LSS_SIZE_END, NP_M_LSR_SIZE_END,
					     NP_M_RSR_SIZE_END, NP_M_RSS_SIZE_END,
					     NP_M_REQUEST_SIZE, NP_M_RESPONSE_SIZE, END },
	};
	static const enum np_metric_id result[] = { NP_M_ELAPSED_TIME, NP_M_THROUGHPUT,
						    NP_M_THROUGHPUT_UNITS, END };
	static const enum np_metric_id load[] = { CPU_OF(LOCAL),  CPU_OF(REMOTE), NP_M_LOCAL_SD,
						  NP_M_REMOTE_SD, NP_M_SD_UNITS,  END };

	memset(sel, 0, sizeof(*sel));
	append(sel, first[kind]);
	append(sel, result);
	if (cpu) {
		append(sel, load);
	}
}

void
np_selection_names(FILE *out, enum np_style style)
{
	char between = style == NP_STYLE_COLUMNS ? '\n' : ',';

	for (int i = 0; i < NP_METRICS; i = np_metric_next(i)) {
		fputs(np_metrics[i].name, out);
		fputc(np_metric_next(i) < NP_METRICS ? between : '\n', out);
	}
}
