/*
 * A gate opens for all at one moment, when the last one has arrived, or for nobody.
 */
#include "run/gate.h"

#include <poll.h>
#include <pthread.h>

#include "base/clock.h"
#include "tests/lib/check.h"

enum { MANY = 50, TIMEOUT_MS = 10000 };

static bool
readable(const struct np_gate *g)
{
	struct pollfd p = { .fd = np_gate_fd(g), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

TEST(the_last_one_opens_it)
{
	struct np_gate *g = np_gate_new(3);
	uint64_t before, after;

	assert_non_null(g);
	np_gate_arrive(g);
	np_gate_arrive(g);
	assert_int_equal(np_gate_state(g), 0);
	assert_int_equal(np_gate_opened_ns(g), 0);
	assert_false(readable(g));
	before = np_now();
	np_gate_arrive(g);
	after = np_now();
	assert_int_equal(np_gate_state(g), 1);
	assert_in_range(np_gate_opened_ns(g), before, after);
	for (int i = 0; i < 3; i++) {
		assert_true(readable(g)); /* it stays so */
	}
	np_gate_free(g);
}

TEST(one_that_fails_shuts_it_for_all)
{
	struct np_gate *g = np_gate_new(2);

	np_gate_arrive(g);
	np_gate_fail(g);
	assert_int_equal(np_gate_state(g), -1);
	assert_true(readable(g));
	np_gate_arrive(g); /* too late */
	assert_int_equal(np_gate_state(g), -1);
	assert_int_equal(np_gate_opened_ns(g), 0);
	np_gate_free(g);
}

TEST(an_open_one_can_t_fail)
{
	struct np_gate *g = np_gate_new(1);
	uint64_t opened;

	np_gate_arrive(g);
	opened = np_gate_opened_ns(g);
	np_gate_fail(g);
	assert_int_equal(np_gate_state(g), 1);
	assert_int_equal(np_gate_opened_ns(g), opened);
	np_gate_free(g);
	np_gate_free(NULL);
}

struct visitor {
	struct np_gate *gate;
	pthread_t thread;
	uint64_t arrived_ns, opened_ns;
	int state;
};

static void *
visit(void *arg)
{
	struct visitor *v = arg;
	struct pollfd p = { .fd = np_gate_fd(v->gate), .events = POLLIN };

	v->arrived_ns = np_now();
	np_gate_arrive(v->gate);
	if (poll(&p, 1, TIMEOUT_MS) == 1) {
		v->state = np_gate_state(v->gate);
		v->opened_ns = np_gate_opened_ns(v->gate);
	}
	return NULL;
}

TEST(all_threads_see_one_moment)
{
	struct np_gate *g = np_gate_new(MANY);
	struct visitor v[MANY] = { 0 };

	for (int i = 0; i < MANY; i++) {
		v[i].gate = g;
		assert_int_equal(pthread_create(&v[i].thread, NULL, visit, &v[i]), 0);
	}
	for (int i = 0; i < MANY; i++) {
		pthread_join(v[i].thread, NULL);
	}
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(v[i].state, 1);
		assert_int_equal(v[i].opened_ns, v[0].opened_ns);
		assert_true(v[i].opened_ns >= v[i].arrived_ns);
	}
	np_gate_free(g);
}

TEST_MAIN()
