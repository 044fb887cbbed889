/*
 * A file that somebody gives for the document of a run: read, and printed in every way. No line
 * does anything to who reads it.
 */
#include "base/text.h"
#include "cli/saved.h"
#include "tests/fuzz/fuzz.h"

static void
must_be_clean(char *text)
{
	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		must(np_text_clean(line));
	}
}

static void
print(const struct np_saved *s, const struct np_cli *cli)
{
	struct np_err err = { .code = NP_OK };
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	int rc;

	must(out != NULL);
	rc = np_saved_print(s, &cli->output, out, &err);
	np_saved_print_evidence(s, &cli->evidence, out);
	must(rc == NP_OK || (rc == NP_EPEER && err.msg[0] != '\0'));
	must(fclose(out) == 0);
	must(!cli->output.prometheus || n > 0);
	must(strlen(text) == n);
	must_be_clean(text);
	free(text);
}

static void
print_all_ways(const struct np_saved *s, struct np_cli *cli)
{
	struct np_err err;

	print(s, cli);
	cli->evidence.explain = cli->evidence.wire = true;
	cli->output.verbosity_said = cli->output.headers_said = true;
	for (cli->output.verbosity = 0; cli->output.verbosity < 4; cli->output.verbosity++) {
		cli->output.headers = cli->output.verbosity % 2;
		print(s, cli);
	}
	for (int style = NP_STYLE_COLUMNS; style <= NP_STYLE_HUMAN; style++) {
		cli->output.style = (enum np_style)style;
		cli->output.times = cli->output.limits = style == NP_STYLE_HUMAN;
		print(s, cli);
	}
	must(np_selection_parse("all", &cli->output.selection, &err) == NP_OK);
	cli->output.selectors = "all";
	print(s, cli);
	cli->output.prometheus = true;
	print(s, cli);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct np_err err = { .code = NP_OK };
	struct np_cli *cli = calloc(1, sizeof(*cli));
	struct np_saved *s = NULL;
	int rc = np_saved_read((const char *)data, size, &s, &err);

	must(cli != NULL);
	if (rc == NP_OK) {
		print_all_ways(s, cli);
	} else {
		must((int)err.code == rc && err.msg[0] != '\0' && strchr(err.msg, '\n') == NULL);
	}
	np_saved_free(s);
	free(cli);
	return 0;
}
