/* A build without liburing. */
#include <stddef.h>

#include "bench/engine/engine.h"
#include "bench/engine/uring.h"

const char *
np_urings_lack(void)
{
	return "built without liburing";
}

int
np_urings_prepare(uint32_t count, struct np_err *err)
{
	return count == 0 ? NP_OK : np_fail(err, NP_EUNSUP, 0, "--uring: built without liburing");
}

/* np_engine.why_not: `lacks` gives the reason. */
static const char *
why_not(const struct np_plan *p)
{
	return NULL;
}

const struct np_engine np_engine_uring = {
	.name = "uring",
	.help = "one call submits and waits; receives stay armed (io_uring)",
	.why_not = why_not,
	.lacks = np_urings_lack,
};
