#include "out/datagrams.h"

#include <inttypes.h>
#include <math.h>

static const double differs = 0.01; /* by more than that share of the table's rate */

static const double most = 1e15; /* of datagrams, that a far end can have counted */

static void
print_last(FILE *to, const struct np_datagrams *d)
{
	if (d->iterations > 1) {
		fprintf(to, " (the last of %u iterations)", d->iterations);
	}
	putc('\n', to);
}

static void
print_span(FILE *to, const struct np_datagrams *d)
{
	double own = np_bag_number(d->receiver, "udp.receive_span_bps");
	double span = np_bag_number(d->receiver, "udp.receive_span_s");

	if (!(own >= 0) || !(span > 0) || !(d->received_bps > 0) ||
	    fabs(own - d->received_bps) <= differs * d->received_bps) {
		return;
	}
	fprintf(to,
		"netperf: %s: received at %.2f %s/s over the %.3g s from the first datagram to the "
		"last; %.2f is over the test's %.3g s",
		d->bench, np_rate(d->unit, own / 8, 1), d->unit->name, span,
		np_rate(d->unit, d->received_bps / 8, 1), d->seconds);
	print_last(to, d);
}

static void
print_duplicates(FILE *to, const struct np_datagrams *d)
{
	double twice = np_bag_number(d->receiver, "udp.duplicated");
	double sent = np_bag_number(d->receiver, "udp.sent");
	double received = np_bag_number(d->receiver, "udp.received");
	double lost = np_bag_number(d->receiver, "udp.lost");

	if (!(twice > 0 && twice < most && lost >= 0 && sent >= lost && sent < most &&
	      received >= twice && received < most)) {
		return;
	}
	fprintf(to,
		"netperf: %s: %" PRId64 " datagrams came twice: of %" PRId64 " sent %" PRId64
		" are lost, where sent less received is %" PRId64,
		d->bench, (int64_t)twice, (int64_t)sent, (int64_t)lost,
		(int64_t)sent - (int64_t)received);
	print_last(to, d);
}

void
np_datagrams_print(FILE *to, const struct np_datagrams *d)
{
	print_span(to, d);
	print_duplicates(to, d);
}
