#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "out/format.h"

static const double tolerance = 0.01; /* share of the table's rate: more is a difference */

static const double implausible = 1e15; /* datagrams: a far end that reports more is wrong */

void
np_datagrams_print(FILE *to, const struct np_datagrams *d)
{
	const char *role = np_bag_string(d->near, "flow.role");
	const struct np_bag *receiver;
	/* -f x counts transactions, which datagrams are not. */
	const struct np_unit *unit = d->unit->letter == 'x' ? np_unit('m') : d->unit;
	double duplicates, sent, received, lost, own_bps, span_s, table_bps;
	char which[40] = "";

	if (role == NULL || np_bag_number(d->near, "flow.sessions") > 1) {
		return; /* no evidence, or that of the first session only */
	}
	if (d->iterations > 1) {
		snprintf(which, sizeof(which), " (the last of %u iterations)", d->iterations);
	}
	receiver = strcmp(role, "transmit") == 0 ? d->far : d->near;
	own_bps = np_bag_number(receiver, "udp.receive_span_bps");
	span_s = np_bag_number(receiver, "udp.receive_span_s");
	table_bps = np_bag_number(receiver, "flow.bytes_received") * 8 / d->seconds;
	/* The receiver's rate over its own time, if the table's, over this end's, differs. */
	if (own_bps >= 0 && span_s > 0 && d->seconds > 0 && table_bps > 0 &&
	    fabs(own_bps - table_bps) > tolerance * table_bps) {
		np_text_line(
		    to,
		    "netperf: %s: received at %.2f %s/s over the %.12g s from the first datagram "
		    "to the last; %.2f is over the test's %.12g s%s",
		    d->bench, np_rate(unit, own_bps / 8, 1), unit->name, np_significant(span_s, 3),
		    np_rate(unit, table_bps / 8, 1), np_significant(d->seconds, 3), which);
	}
	duplicates = np_bag_number(receiver, "udp.duplicated");
	sent = np_bag_number(receiver, "udp.sent");
	received = np_bag_number(receiver, "udp.received");
	lost = np_bag_number(receiver, "udp.lost");
	/* Not if the far end's values contradict each other, or do not fit an int64_t. */
	if (duplicates > 0 && duplicates < implausible && lost >= 0 && sent >= lost &&
	    sent < implausible && received >= duplicates && received < implausible) {
		np_text_line(to,
			     "netperf: %s: %" PRId64 " datagrams came twice: of %" PRId64
			     " sent, %" PRId64 " are lost (sent less received is %" PRId64 ")%s",
			     d->bench, (int64_t)duplicates, (int64_t)sent, (int64_t)lost,
			     (int64_t)sent - (int64_t)received, which);
	}
}
