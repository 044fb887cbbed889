/*
 * Lists and files of output selectors, and numbers as people write them.
 */
#include "tests/fuzz/fuzz.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/units.h"
#include "opt/option.h"
#include "out/format.h"
#include "out/select.h"

/* What is selected can be printed in every style, and lies within the selection. */
static void
print(const struct np_selection *sel)
{
	static const struct np_record nothing;
	const struct np_figures figures = { .record = &nothing };
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	must(out != NULL);
	for (size_t group = 0; group < NP_SELECT_GROUPS; group++) {
		must(sel->count[group] <= NP_SELECT_MAX);
		for (size_t i = 0; i < sel->count[group]; i++) {
			int id = sel->id[group][i];

			must(id >= NP_SELECT_UNKNOWN &&
			     (id < (int)NP_METRICS || np_figure_is_percentile(id)));
		}
	}
	for (int style = NP_STYLE_COLUMNS; style <= NP_STYLE_KEYVAL; style++) {
		np_omni_print(out, (enum np_style)style, sel, true, &figures);
	}
	must(fclose(out) == 0);
	free(text);
}

static void
parse(const char *word)
{
	struct np_err err = { .code = NP_OK };
	struct np_selection sel;

	if (np_selection_parse(word, &sel, &err) == NP_OK) {
		print(&sel);
	} else {
		must(err.code != NP_OK && err.msg[0] != '\0');
	}
}

static void
parse_as_file(const uint8_t *data, size_t size)
{
	char path[40];
	int fd = memfd_create("selectors", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	parse(path);
	close(fd);
}

/* A comma makes sure that it is a list, and no file's name. */
static void
parse_as_list(const char *text)
{
	size_t size = strlen(text) + 2;
	char *list = malloc(size);

	must(list != NULL);
	snprintf(list, size, "%s,", text);
	parse(list);
	free(list);
}

static void
parse_numbers(const char *text)
{
	struct np_err err = { .code = NP_OK };
	int64_t count = 0, length = 0, whole = 0;
	uint32_t less_ms = 0;
	struct np_pair pair;
	char shown[32];

	if (np_parse_int(text, &whole) == 0) {
		must(np_parse_count(text, &count) == 0 && count == whole);
	}
	if (np_parse_count(text, &count) == 0) {
		snprintf(shown, sizeof(shown), "%lld", (long long)count);
		must(np_parse_int(shown, &whole) == 0 && whole == count);
	}
	if (np_parse_length(text, &length, &less_ms) == 0 && strpbrk(text, "hs.") != NULL) {
		must(length >= 0 && less_ms < 1000 && (length > 0 || less_ms == 0));
	}
	if (np_pair_split(text, &pair, &err) == NP_OK) {
		must(pair.comma == (strchr(text, ',') != NULL));
		must(pair.first == NULL || pair.first[0] != '\0');
		must(pair.second == NULL || (pair.comma && pair.second[0] != '\0'));
	}
	(void)np_rate(np_unit(text[0]), (double)count, (double)length);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	must(text != NULL);
	fuzz_fill(text, size + 1, data, size);
	parse_as_list(text);
	parse_as_file(data, size);
	parse_numbers(text);
	free(text);
	return 0;
}
