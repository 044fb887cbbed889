#include "cli/tests.h"

#include <string.h>
#include <strings.h>

/* They move no data, or options put them together: no rows of the bench table. */
static const struct {
	const char *name;
	enum np_test test;
} others[] = {
	{ "OMNI", NP_TEST_BENCH },
	{ "UUID", NP_TEST_UUID },
	{ "LOC_CPU", NP_TEST_LOC_CPU },
	{ "REM_CPU", NP_TEST_REM_CPU },
};
enum { OTHERS = sizeof(others) / sizeof(others[0]) };

const char *
np_cli_test_at(size_t i)
{
	size_t benches = 0;

	while (np_bench_at(benches) != NULL) {
		benches++;
	}
	if (i < benches) {
		return np_bench_at(i)->name;
	}
	return i - benches < OTHERS ? others[i - benches].name : NULL;
}

enum np_test
np_cli_test(const struct np_cli *cli)
{
	for (size_t i = 0; i < OTHERS; i++) {
		if (strcasecmp(cli->test, others[i].name) == 0) {
			return others[i].test;
		}
	}
	return np_bench_find(cli->test) != NULL ? NP_TEST_BENCH : NP_TEST_UNKNOWN;
}

unsigned
np_cli_scope(const struct np_cli *cli)
{
	const struct np_bench *bench = np_bench_find(cli->test);

	if (strcasecmp(cli->test, "OMNI") == 0 || strcasecmp(cli->test, "UUID") == 0) {
		return NP_SCOPE_OMNI;
	}
	if (bench == NULL) {
		return 0;
	}
	switch (bench->transport->scanner) {
	case NP_SCAN_UNIX:
		return NP_SCOPE_UNIX;
	case NP_SCAN_LINK:
		return NP_SCOPE_LINK;
	case NP_SCAN_SCTP:
		return NP_SCOPE_SCTP;
	case NP_SCAN_OMNI:
		return NP_SCOPE_OMNI;
	case NP_SCAN_IP:
		break;
	}
	return (bench->flags & NP_B_OLD) != 0 ? NP_SCOPE_BSD : NP_SCOPE_OMNI;
}
