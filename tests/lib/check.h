/*
 * What every test program includes: cmocka with the headers it forgets to ask for, and small help.
 * A test that includes this needs no other include for those headers of C.
 */
#ifndef NP_TESTS_CHECK_H
#define NP_TESTS_CHECK_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sanitized.h" /* sanitizers bring their own malloc(), and make everything slower */

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/*
 * FREED_BY(ends_free) struct ends e; is released where the block that declares it ends, unless the
 * test fails before. To clang it would be unused.
 */
#define FREED_BY(release) __attribute__((cleanup(release), unused))

/* For FREED_BY(): memory of malloc(), by the address of what points to it. */
static inline void
free_memory(void *pointer)
{
	free(*(void **)pointer);
}

/* Far beyond what any of these tests takes, so that a fault shows as an error and not as a hang. */
#define LONG_MS 20000

/* xorshift64: the same numbers in every run. *seed must not be 0. */
static inline uint64_t
next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/*
 * TEST(what_holds) { ... }: a test, by its name; `state` is cmocka's. They run in the order of
 * their lines. The second has its own setup and teardown.
 */
#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, set_up, tear_down)                                                         \
	static void name(void **state);                                                            \
	__attribute__((constructor)) static void add_##name(void)                                  \
	{                                                                                          \
		add_test(__LINE__, (struct CMUnitTest)cmocka_unit_test_setup_teardown(             \
				       name, set_up, tear_down));                                  \
	}                                                                                          \
	static void name(void **state __attribute__((unused)))
void add_test(unsigned line, struct CMUnitTest test);

/* The main() of a program whose tests need that or nothing before; others return all_tests(). */
#define TEST_MAIN(before)                                                                          \
	int main(void)                                                                             \
	{                                                                                          \
		before;                                                                            \
		return all_tests(NULL, NULL);                                                      \
	}
int all_tests(CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* The text that a statement writes to the FILE it calls `out`; to be freed. */
#define WRITTEN(out, statement)                                                                    \
	__extension__({                                                                            \
		char *written_ = NULL;                                                             \
		size_t size_;                                                                      \
		FILE *out = open_memstream(&written_, &size_);                                     \
                                                                                                   \
		assert_non_null(out);                                                              \
		statement;                                                                         \
		fclose(out);                                                                       \
		written_;                                                                          \
	})

/* Writes this and nothing else. */
#define assert_writes(out, statement, want)                                                        \
	do {                                                                                       \
		char *text_ = WRITTEN(out, statement);                                             \
                                                                                                   \
		assert_string_equal(text_, want);                                                  \
		free(text_);                                                                       \
	} while (0)

/* Fails with both texts unless `part` stands in `text`. */
#define assert_has(text, part)                                                                     \
	fail_if(strstr((text), (part)) == NULL, "no \"%s\" in \"%s\"", (part), (text))

/* Two numbers: the same to so much, or to a share of what is wanted. */
#define assert_near(is, want, within)                                                              \
	fail_if(!(fabs((is) - (want)) <= (within)), "%.17g is not %.17g to %g", (double)(is),      \
		(double)(want), (double)(within))
#define assert_close(is, want, share) assert_near(is, want, (share)*fabs((double)(want)))

/* Fails with a message, as for printf(), if that is so. */
#define fail_if(is_so, ...)                                                                        \
	do {                                                                                       \
		if (is_so) {                                                                       \
			fail_msg(__VA_ARGS__);                                                     \
		}                                                                                  \
	} while (0)

/* Ends the test, and prints why it can't run, as for printf(), if that is so. */
#define skip_if(is_so, ...)                                                                        \
	do {                                                                                       \
		if (is_so) {                                                                       \
			printf("SKIP: " __VA_ARGS__);                                              \
			printf("\n");                                                              \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

/* Runs an expression in a child, which exits with its value. The exit status, or minus a signal. */
#define IN_CHILD(status)                                                                           \
	__extension__({                                                                            \
		pid_t pid_ = fork();                                                               \
                                                                                                   \
		if (pid_ == 0) {                                                                   \
			_exit(status);                                                             \
		}                                                                                  \
		ended(pid_);                                                                       \
	})
int ended(pid_t child);

/*
 * Catch that signal, and block it but in waits with the mask *let_in, as our programs do. The mask
 * is the one before, without that signal.
 */
void catch_signal(int sig, void (*handler)(int sig), sigset_t *let_in);

/* In a child that is 0; 77: it can't be tried here, in the words of a printf(). */
#define assert_in_child(status, ...)                                                               \
	do {                                                                                       \
		int status_ = IN_CHILD(status);                                                    \
                                                                                                   \
		skip_if(status_ == 77, __VA_ARGS__);                                               \
		assert_int_equal(status_, 0);                                                      \
	} while (0)

#endif
