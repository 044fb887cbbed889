/*
 * The command lines of both programs: words with a newline or a NUL byte between them.
 *
 * Nothing is opened, bound or looked up by that: options that name files meet an empty directory,
 * and words with a path in them are spoilt.
 */
#include "tests/fuzz/fuzz.h"

#include <ctype.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/args.h"
#include "netserver/args.h"

enum { WORDS = 64, TEXT = 4096 };

struct words {
	char text[TEXT + 1];
	char *argv[WORDS + 1];
	int argc;
};

/* A slash stands before bits of an address, and nowhere else. */
static void
split(const uint8_t *data, size_t size, struct words *w)
{
	static char program[] = "program";
	char *at = w->text;

	memset(w, 0, sizeof(*w));
	fuzz_fill(w->text, TEXT, data, size);
	for (size_t i = 0; i < TEXT; i++) {
		if (w->text[i] == '\n') {
			w->text[i] = '\0';
		} else if (w->text[i] == '/' && !isdigit((unsigned char)w->text[i + 1])) {
			w->text[i] = '_';
		}
	}
	w->argv[w->argc++] = program;
	while (w->argc < WORDS && at < w->text + (size < TEXT ? size : TEXT)) {
		w->argv[w->argc++] = at;
		at += strlen(at) + 1;
	}
}

static void
settle(struct np_cli *cli)
{
	struct np_err err = { .code = NP_OK };

	if (np_cli_test(cli) != NP_TEST_BENCH) {
		return;
	}
	if (np_cli_settle(cli, &err) != NP_OK) {
		must(err.code != NP_OK && err.msg[0] != '\0');
		return;
	}
	must(cli->plan.pattern != NULL && cli->plan.transport != NULL);
	must(cli->plan.role == NP_LEAD || cli->plan.role == NP_FOLLOW);
	must(!cli->plan.pattern->sized || (cli->plan.request > 0 && cli->plan.response > 0));
	must(np_cli_unit(cli) != NULL);
	(void)np_cli_repeats(cli);
}

static void
be_netperf(struct words *w)
{
	struct np_err err = { .code = NP_OK };
	struct np_cli *cli = malloc(sizeof(*cli));

	must(cli != NULL);
	if (np_cli_parse(cli, w->argc, w->argv, &err) == NP_OK) {
		must(cli->command_line != NULL);
		settle(cli);
	} else {
		must(err.code != NP_OK && err.msg[0] != '\0');
	}
	np_cli_free(cli);
	free(cli);
}

static void
be_netserver(struct words *w)
{
	struct np_err err = { .code = NP_OK };
	struct ns_args *a = malloc(sizeof(*a));

	must(a != NULL);
	if (ns_args_parse(a, w->argc, w->argv, &err) != NP_OK) {
		must(err.code != NP_OK && err.msg[0] != '\0');
	}
	free(a);
}

/* A directory that nothing can be opened or made in: it is gone. */
static int nowhere = -1;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char path[] = "/tmp/fuzz_options-XXXXXX";

	must(mkdtemp(path) != NULL);
	nowhere = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(nowhere >= 0 && rmdir(path) == 0);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct words w;
	cpu_set_t cpus;

	must(here >= 0 && fchdir(nowhere) == 0);
	must(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
	split(data, size, &w);
	be_netperf(&w);
	split(data, size, &w); /* parsing moves words about */
	be_netserver(&w);
	sched_setaffinity(0, sizeof(cpus), &cpus); /* -T has bound it */
	must(fchdir(here) == 0);
	close(here);
	return 0;
}
