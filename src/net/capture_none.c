/* Built without libpcap. */
#include "net/capture.h"

int
np_capture_open(struct np_capture **out, const struct np_capture_place *place, struct np_err *err)
{
	*out = NULL;
	return np_fail(err, NP_EUNSUP, 0,
		       "capture packets: this program was built without libpcap (libpcap-dev)");
}

int
np_capture_fd(const struct np_capture *c)
{
	return -1;
}

int
np_capture_start(struct np_capture *c, const struct np_ledger_flow *flow, struct np_err *err)
{
	return np_fail(err, NP_EUNSUP, 0, "built without libpcap");
}

void
np_capture_restart(struct np_capture *c, uint64_t opened_ns)
{
}

void
np_capture_stop(struct np_capture *c, struct np_bag *into)
{
}

void
np_capture_free(struct np_capture *c)
{
}
