/*
 * What a processor counts for a thread. A virtual machine often has no counters of its own: the
 * way is tried with two that the kernel keeps, for every thread.
 */
#include "sys/thread.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/mman.h>

#include "tests/lib/check.h"

/*
 * A thread sanitizer's own pages are counted, too: some for each that is touched, and hundreds for
 * a thread that is begun.
 */
enum { PAGES = 2000, MANY = 6 * PAGES };

/* ns on a processor, and how many pages were touched for the first time. */
static const struct np_perf_events kernels = {
	.type = PERF_TYPE_SOFTWARE,
	.config = { PERF_COUNT_SW_TASK_CLOCK, PERF_COUNT_SW_PAGE_FAULTS },
};
enum { CLOCK, FAULTS };

static void
touch_pages(size_t count)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *at =
	    mmap(NULL, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	madvise((void *)at, count * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < count; i++) {
		at[i * page] = 1;
	}
	munmap((void *)at, count * page);
}

static void *
touch_elsewhere(void *arg)
{
	touch_pages(PAGES);
	return arg;
}

static void
open_or_skip(struct np_perf *p)
{
	np_perf_open(p, &kernels);
	skip_if(!p->is_open, "perf_event_open(2): %s", np_perf_why_not(p));
}

TEST(what_a_thread_does_is_counted)
{
	struct np_perf p;

	open_or_skip(&p);
	touch_pages(MANY);
	np_perf_begin(&p);
	touch_pages(PAGES);
	np_perf_end(&p);
	np_perf_close(&p);
	assert_null(np_perf_why_not(&p));
	/* Not those of before the begin. */
	assert_in_range(p.value[FAULTS], PAGES, MANY - 1);
	assert_true(p.value[CLOCK] > 0);
	assert_true(p.enabled_ns > 0);
	assert_int_equal(p.enabled_ns, p.running_ns);
}

TEST(what_another_thread_does_is_not)
{
	struct np_perf p;
	pthread_t other;

	open_or_skip(&p);
	np_perf_begin(&p);
	assert_int_equal(pthread_create(&other, NULL, touch_elsewhere, NULL), 0);
	pthread_join(other, NULL);
	np_perf_end(&p);
	np_perf_close(&p);
	assert_in_range(p.value[FAULTS], 0, PAGES - 1);
}

TEST(a_second_begin_forgets_the_first)
{
	struct np_perf p;

	open_or_skip(&p);
	np_perf_begin(&p);
	touch_pages(PAGES);
	np_perf_begin(&p);
	np_perf_end(&p);
	np_perf_close(&p);
	np_perf_close(&p);
	assert_in_range(p.value[FAULTS], 0, PAGES - 1);
}

/* Either there are cycles and instructions, or a reason. No descriptor is left behind. */
TEST(a_processor_counts_or_there_is_a_reason)
{
	struct np_perf p;
	int next = dup(0), again;

	close(next);
	np_perf_open(&p, &np_perf_processor);
	np_perf_begin(&p);
	touch_pages(PAGES);
	np_perf_end(&p);
	np_perf_close(&p);
	again = dup(0);
	close(again);
	assert_int_equal(again, next);
	if (np_perf_why_not(&p) == NULL) {
		assert_true(p.value[0] > 0 && p.value[1] > 0);
	} else {
		print_message("unread: %s\n", np_perf_why_not(&p));
	}
}

TEST(reasons_are_in_words)
{
	static const struct {
		int error;
		const char *part;
	} rows[] = { { ENOENT, "no such counters" },
		     { EACCES, "perf_event_paranoid" },
		     { EPERM, "perf_event_paranoid" },
		     { ENOSYS, "perf_event_open(2)" },
		     { EMFILE, "oo many open files" } };
	struct np_perf p = { .is_open = false };

	assert_null(np_perf_why_not(&p)); /* nobody asked */
	for (size_t i = 0; i < LEN(rows); i++) {
		p.error = rows[i].error;
		assert_has(np_perf_why_not(&p), rows[i].part);
	}
	p = (struct np_perf){ .never = true };
	assert_has(np_perf_why_not(&p), "other programs used");
}

TEST_MAIN()
