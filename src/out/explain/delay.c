#include "out/explain/facts.h"

#include <math.h>
#include <string.h>

/*
 * By Little's law: with L bytes in flight on average, at a rate of R, each byte takes L / R. In
 * flight are bytes sent, but not received in order; on the way back, received, but unacknowledged.
 */

enum {
	LEAST = 5,       /* samples that are needed */
	MOST_CONNS = 64, /* with more, a sample has only some (bench/sampler.h) */
};

static const double stamp_s = 20e-6; /* usual error of the time of a sample */

/* Find a list of samples, of that length if it is not 0. */
static bool
find_list(const struct np_bag *b, const char *name, size_t count, struct np_bag_item *out)
{
	size_t n = np_bag_list(b, name, 0, out);

	return n >= LEAST && (count == 0 || n == count);
}

/* The samples of both ends, with times from the beginning of their windows. */
struct transmitter {
	struct np_bag_item t, sent, again, acked;
};
struct receiver {
	struct np_bag_item t, received;
	size_t next; /* first sample after the time of the last received_by() */
};

/* Find the lists of both ends. False: one is missing, or has samples of some connections only. */
static bool
find_samples(const struct np_bag *tx, const struct np_bag *rx, struct transmitter *a,
	     struct receiver *b)
{
	double connections = np_bag_number(tx, "tcp.connections");

	b->next = 0;
	return !(connections > MOST_CONNS) && find_list(tx, "tcp.samples.t_s", 0, &a->t) &&
	       find_list(tx, "tcp.samples.bytes_sent", a->t.count, &a->sent) &&
	       find_list(tx, "tcp.samples.retransmitted_bytes", a->t.count, &a->again) &&
	       find_list(tx, "tcp.samples.bytes_acked", a->t.count, &a->acked) &&
	       find_list(rx, "tcp.samples.t_s", 0, &b->t) &&
	       find_list(rx, "tcp.samples.bytes_received", b->t.count, &b->received);
}

/* Interpolate the bytes received at t, a time that rises from call to call. False: outside. */
static bool
received_by(struct receiver *b, double t, double *bytes)
{
	double from, to, step_s;

	while (b->next < b->t.count && np_bag_value(&b->t, b->next) < t) {
		b->next++;
	}
	if (b->next == 0 || b->next == b->t.count) {
		return false;
	}
	from = np_bag_value(&b->received, b->next - 1);
	to = np_bag_value(&b->received, b->next);
	step_s = np_bag_value(&b->t, b->next) - np_bag_value(&b->t, b->next - 1);
	*bytes = from + (to - from) / step_s * (t - np_bag_value(&b->t, b->next - 1));
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
	struct transmitter a;
	struct receiver b;

	*d = (struct np_delay){ .there_us = (double)NAN,
				.back_us = (double)NAN,
				.error_us = (double)NAN };
	if (near == NULL || far == NULL || strcmp(near, far) != 0 || isnan(later) ||
	    !find_samples(tx, rx, &a, &b)) {
		return; /* samples are missing, or the clocks can't be compared */
	}
	for (size_t i = 0; i < a.t.count; i++) {
		double t = np_bag_value(&a.t, i);

		if (received_by(&b, t - later, &bytes)) {
			bool first = n == 0;

			add(&data, (np_bag_value(&a.sent, i) - np_bag_value(&a.again, i)) - bytes,
			    t - last_s, first);
			add(&acks, bytes - (np_bag_value(&a.acked, i) - syn), t - last_s, first);
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
