/*
 * main() of a fuzz target where there is no libFuzzer: run it over the files and directories given,
 * or over its seeds, tests/fuzz/seeds/NAME below $top_builddir, when none are.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#pragma weak LLVMFuzzerInitialize

enum { INPUT_MAX = 1 << 20 };

static void
give_up(const char *path)
{
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	exit(2);
}

static size_t
run_file(const char *path)
{
	FILE *file = fopen(path, "re");
	uint8_t *input = malloc(INPUT_MAX), *exact;
	size_t n;

	if (file == NULL || input == NULL) {
		give_up(path);
	}
	n = fread(input, 1, INPUT_MAX, file);
	if (ferror(file)) {
		give_up(path);
	}
	fclose(file);
	/* Not a byte more, so that reading beyond the input is noticed. */
	exact = malloc(n > 0 ? n : 1);
	if (exact == NULL) {
		give_up(path);
	}
	memcpy(exact, input, n);
	free(input);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	return 1;
}

static size_t
run(const char *path)
{
	struct dirent **entries;
	struct stat st;
	size_t files = 0;
	int n;

	if (stat(path, &st) != 0) {
		give_up(path);
	}
	if (!S_ISDIR(st.st_mode)) {
		return run_file(path);
	}
	n = scandir(path, &entries, NULL, alphasort);
	if (n < 0) {
		give_up(path);
	}
	for (int i = 0; i < n; i++) {
		char inner[4096];

		snprintf(inner, sizeof(inner), "%s/%s", path, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.') {
			files += run(inner);
		}
		free(entries[i]);
	}
	free(entries);
	return files;
}

/* The directory of the seeds: the program is called fuzz_NAME. */
static size_t
run_seeds(const char *program)
{
	const char *top = getenv("top_builddir"), *name = strstr(program, "fuzz_");
	char path[4096];

	for (const char *next = name; next != NULL; next = strstr(next + 1, "fuzz_")) {
		name = next;
	}
	if (top == NULL || name == NULL) {
		fprintf(stderr, "%s: name files to run, or set top_builddir\n", program);
		exit(2);
	}
	snprintf(path, sizeof(path), "%s/tests/fuzz/seeds/%s", top, name + strlen("fuzz_"));
	return run(path);
}

int
main(int argc, char **argv)
{
	size_t files = 0;

	if (LLVMFuzzerInitialize != NULL) {
		LLVMFuzzerInitialize(&argc, &argv);
	}
	for (int i = 1; i < argc; i++) {
		files += run(argv[i]);
	}
	if (argc == 1) {
		files = run_seeds(argv[0]);
	}
	printf("%zu inputs\n", files);
	return files > 0 ? 0 : 1;
}
