/*
 * Identifiers of tests: their form, their time, and that no two are the same.
 */
#include "base/uuid.h"

#include <time.h>

#include "tests/lib/check.h"

enum { MANY = 2000 };

static void
assert_form(const char *id)
{
	static const char form[] = "xxxxxxxx-xxxx-1xxx-Vxxx-xMxxxxxxxxxx";

	assert_int_equal(strlen(id), sizeof(form) - 1);
	for (size_t i = 0; i < sizeof(form) - 1; i++) {
		const char *may = form[i] == 'x'   ? "0123456789abcdef"
				  : form[i] == 'V' ? "89ab"
				  : form[i] == 'M' ? "13579bdf"
				  : form[i] == '1' ? "1"
						   : "-";

		fail_if(strchr(may, id[i]) == NULL, "%s: character %zu is none of %s", id, i, may);
	}
}

TEST(the_form_is_of_version_1)
{
	for (int i = 0; i < MANY; i++) {
		char id[NP_UUID_SIZE];

		memset(id, 'x', sizeof(id));
		np_uuid_make(id);
		assert_form(id);
	}
}

/* The seconds since 1970 that an identifier tells. */
static double
time_of(const char *id)
{
	unsigned low, mid, high;

	assert_int_equal(sscanf(id, "%8x-%4x-1%3x-", &low, &mid, &high), 3);
	return ((double)((uint64_t)high << 48 | (uint64_t)mid << 32 | low) - 122192928e9) / 1e7;
}

TEST(the_time_is_now)
{
	double before = (double)time(NULL);
	char id[NP_UUID_SIZE];

	np_uuid_make(id);
	assert_true(time_of(id) >= before - 1);
	assert_true(time_of(id) <= (double)time(NULL) + 2);
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

TEST(no_two_are_the_same)
{
	static char ids[MANY][NP_UUID_SIZE];

	for (int i = 0; i < MANY; i++) {
		np_uuid_make(ids[i]);
		/* What is random: clock sequence and node. */
		memmove(ids[i], ids[i] + strlen("xxxxxxxx-xxxx-xxxx-"),
			sizeof("xxxx-xxxxxxxxxxxx"));
	}
	qsort(ids, MANY, sizeof(ids[0]), by_text);
	for (int i = 1; i < MANY; i++) {
		assert_string_not_equal(ids[i], ids[i - 1]);
	}
}

TEST_MAIN()
