#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"

/* By line, as constructors come in any order; cmocka passes over those without a name. */
static struct CMUnitTest tests[4096];

void
add_test(unsigned line, struct CMUnitTest test)
{
	if (line >= LEN(tests)) {
		abort();
	}
	tests[line] = test;
}

int
ended(pid_t child)
{
	int status;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void
catch_signal(int sig, void (*handler)(int sig), sigset_t *let_in)
{
	struct sigaction sa = { .sa_handler = handler };
	sigset_t block;

	assert_int_equal(sigaction(sig, &sa, NULL), 0);
	sigemptyset(&block);
	sigaddset(&block, sig);
	pthread_sigmask(SIG_BLOCK, &block, let_in);
	sigdelset(let_in, sig);
}

int
all_tests(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	int failed = cmocka_run_group_tests(tests, set_up, tear_down);

	if (failed != 0) { /* by longjmp(3): what such a test has taken is no leak to report */
		fflush(NULL);
		_exit(1);
	}
	return 0;
}
