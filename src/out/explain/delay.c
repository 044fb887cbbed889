#include <math.h>
#include <string.h>

#include "out/explain/rules.h"

/*
 * By Little's law: with L bytes in flight on average, at a rate of R, each byte takes L / R. In
 * flight are bytes sent, but not received in order; on the way back, received, but unacknowledged.
 */

enum {
	LEAST = 5,       /* samples that are needed */
	MOST_CONNS = 64, /* with more, a sample has only some (bench/sampler.h) */
};

static const double stamp_s = 20e-6; /* usual error of the time of a sample */

/* Lists of samples, with times from the beginning of each end's window. */
enum { T, RECEIVED, OF_RECEIVER };
enum { SENT = T + 1, AGAIN, ACKED, OF_TRANSMITTER };
static const char *const of_receiver[] = { "tcp.samples.t_s", "tcp.samples.bytes_received" };
static const char *const of_transmitter[] = { "tcp.samples.t_s", "tcp.samples.bytes_sent",
					      "tcp.samples.retransmitted_bytes",
					      "tcp.samples.bytes_acked" };

struct receiver {
	struct np_bag_item list[OF_RECEIVER];
	size_t next; /* first sample after the time of the last received_by() */
};

/* Interpolate the bytes received at t, a time that rises from call to call. False: outside. */
static bool
received_by(struct receiver *b, double t, double *bytes)
{
	const struct np_bag_item *at = &b->list[T], *received = &b->list[RECEIVED];
	double from, step_s;

	while (b->next < at->count && np_bag_value(at, b->next) < t) {
		b->next++;
	}
	if (b->next == 0 || b->next == at->count) {
		return false;
	}
	from = np_bag_value(received, b->next - 1);
	step_s = np_bag_value(at, b->next) - np_bag_value(at, b->next - 1);
	*bytes = from + (np_bag_value(received, b->next) - from) / step_s *
			    (t - np_bag_value(at, b->next - 1));
	return step_s > 0;
}

struct way {
	double byte_seconds; /* bytes in flight, integrated over time */
	double before;       /* bytes in flight at the last sample */
	double sum, squares; /* of bytes in flight over all samples */
};

/* Add a sample of the bytes in flight, `since_s` after the one before, or the first. */
static void
add(struct way *w, double bytes, double since_s, bool first)
{
	w->byte_seconds += first ? 0 : (bytes + w->before) / 2 * since_s;
	w->before = bytes;
	w->sum += bytes;
	w->squares += bytes * bytes;
}

/* Two standard errors, in bytes, of the mean in flight, from n samples. */
static double
error_of(const struct way *w, size_t n)
{
	double mean = w->sum / (double)n, variance = w->squares / (double)n - mean * mean;

	return variance > 0 ? 2 * sqrt(variance / (double)n) : 0;
}

void
np_delay_of(const struct np_bag *tx, const struct np_bag *rx, struct np_delay *d)
{
	const char *near = np_bag_string(tx, "clock.boot"), *far = np_bag_string(rx, "clock.boot");
	const char *role = np_bag_string(tx, "flow.role");
	/* How much later the receiver's window began. */
	double later = np_bag_number(rx, "clock.begin_s") - np_bag_number(tx, "clock.begin_s");
	/* The kernel of the client counts its SYN as an acknowledged byte. */
	double syn = role != NULL && strcmp(role, "request") == 0 ? 1 : 0, bytes;
	double first_s = 0, last_s = 0, first_bytes = 0, last_bytes = 0;
	double took, all, error, there, back;
	struct way data = { .sum = 0 }, acks = { .sum = 0 };
	size_t n = 0;
	struct np_bag_item a[OF_TRANSMITTER];
	struct receiver b = { .next = 0 };

	d->there_us = d->back_us = d->error_us = (double)NAN;
	if (near == NULL || far == NULL || strcmp(near, far) != 0 || isnan(later) ||
	    np_bag_number(tx, "tcp.connections") > MOST_CONNS ||
	    np_find_lists(tx, of_transmitter, OF_TRANSMITTER, a) < LEAST ||
	    np_find_lists(rx, of_receiver, OF_RECEIVER, b.list) < LEAST) {
		return; /* samples are missing, or the clocks can't be compared */
	}
	for (size_t i = 0; i < a[T].count; i++) {
		double t = np_bag_value(&a[T], i);

		if (received_by(&b, t - later, &bytes)) {
			bool first = n == 0;

			add(&data, (np_bag_value(&a[SENT], i) - np_bag_value(&a[AGAIN], i)) - bytes,
			    t - last_s, first);
			add(&acks, bytes - (np_bag_value(&a[ACKED], i) - syn), t - last_s, first);
			if (first) {
				first_s = t;
				first_bytes = bytes;
			}
			last_s = t;
			last_bytes = bytes;
			n++;
		}
	}
	took = last_s - first_s;
	all = last_bytes - first_bytes;
	if (n < LEAST || took <= 0 || all <= 0) {
		return;
	}
	/* By Little's law; the error is that of the mean bytes in flight, divided by the rate. */
	error = stamp_s + fmax(error_of(&data, n), error_of(&acks, n)) * took / all;
	there = data.byte_seconds / all;
	back = acks.byte_seconds / all;
	if (there < -2 * error || back < -2 * error) {
		return; /* clearly negative: different connections, or different clocks */
	}
	/* An error only moves time from one direction to the other: keep the sum. */
	d->there_us = fmin(fmax(there, 0), fmax(there + back, 0)) * 1e6;
	d->back_us = fmax(there + back, 0) * 1e6 - d->there_us;
	d->error_us = error * 1e6;
}
