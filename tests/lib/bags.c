#include "tests/lib/bags.h"

#include <math.h>

#include "tests/lib/check.h"

void
assert_number(const struct np_bag *b, const char *name, double want)
{
	double have = np_bag_number(b, name);

	if (!(fabs(have - want) < 1e-9)) {
		fail_msg("%s is %g, not %g", name, have, want);
	}
}

void
assert_none(const struct np_bag *b, const char *name)
{
	struct np_bag_item it;

	if (np_bag_find(b, name, &it)) {
		fail_msg("%s should not be there", name);
	}
}

void
assert_unread(const struct np_bag *b, const char *name, const char *why)
{
	struct np_bag_item it;

	if (!np_bag_find(b, name, &it)) {
		fail_msg("no %s", name);
	}
	assert_int_equal(it.kind, NP_BAG_UNREAD);
	assert_has(it.text, why);
}
