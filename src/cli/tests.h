/* The tests that -t can name. */
#ifndef NP_CLI_TESTS_H
#define NP_CLI_TESTS_H

#include <stddef.h>

#include "cli/args.h"

/*
 * What kind of test -t names. NP_TEST_BENCH has data connections, and a row of the table of benches
 * or options (OMNI); the others have neither.
 */
enum np_test { NP_TEST_UNKNOWN, NP_TEST_BENCH, NP_TEST_UUID, NP_TEST_LOC_CPU, NP_TEST_REM_CPU };
enum np_test np_cli_test(const struct np_cli *cli);

/* Name i of all tests, those of the bench table first; NULL after the last. */
const char *np_cli_test_at(size_t i);

/* The test's group of test-specific options, NP_SCOPE_*; 0: it has none. */
unsigned np_cli_scope(const struct np_cli *cli);

/* What the test has, bits of enum np_for. */
unsigned np_cli_traits(const struct np_bench *b);

#endif
