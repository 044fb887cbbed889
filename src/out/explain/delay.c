#include "out/explain/facts.h"

#include <math.h>
#include <string.h>

/*
 * By Little's law: of a direction in which L bytes are under way on average, at a rate of R, each
 * byte takes L / R. Under way to the receiver is what was sent for the first time and not received
 * in order; under way back is what was received and not acknowledged. The receiver's figure is
 * interpolated to the instants of the transmitter's samples.
 */

enum {
	LEAST = 5,       /* samples, to say anything */
	MOST_CONNS = 64, /* of which samples have all (bench/sampler.h) */
};

static const double stamp_s = 20e-6; /* between a sample and its time stamp, usually at most */

/* A list of samples; all of a bag's are of equal length. */
static bool
find(const struct np_bag *b, const char *name, size_t count, struct np_bag_item *out)
{
	size_t n = np_bag_list(b, name, 0, out);

	return n >= LEAST && (count == 0 || n == count);
}

/* What an end saw, and the time between its clock's zero and the beginning of its window. */
struct transmitter {
	struct np_bag_item t, sent, again, acked;
};
struct receiver {
	struct np_bag_item t, received;
	size_t next; /* the first sample that is later than what was asked for last */
};

static bool
has_all(const struct np_bag *tx, const struct np_bag *rx, struct transmitter *a, struct receiver *b)
{
	double connections = np_bag_number(tx, "tcp.connections");

	b->next = 0;
	return !(connections > MOST_CONNS) && find(tx, "tcp.samples.t_s", 0, &a->t) &&
	       find(tx, "tcp.samples.bytes_sent", a->t.count, &a->sent) &&
	       find(tx, "tcp.samples.retransmitted_bytes", a->t.count, &a->again) &&
	       find(tx, "tcp.samples.bytes_acked", a->t.count, &a->acked) &&
	       find(rx, "tcp.samples.t_s", 0, &b->t) &&
	       find(rx, "tcp.samples.bytes_received", b->t.count, &b->received);
}

/* Bytes received by then; false outside of the samples. Times rise. */
static bool
received_by(struct receiver *b, double t, double *bytes)
{
	double from, to, took;

	while (b->next < b->t.count && np_bag_value(&b->t, b->next) < t) {
		b->next++;
	}
	if (b->next == 0 || b->next == b->t.count) {
		return false;
	}
	from = np_bag_value(&b->received, b->next - 1);
	to = np_bag_value(&b->received, b->next);
	took = np_bag_value(&b->t, b->next) - np_bag_value(&b->t, b->next - 1);
	*bytes = from + (to - from) / took * (t - np_bag_value(&b->t, b->next - 1));
	return took > 0;
}

/* One direction. */
struct way {
	double byte_seconds; /* the integral of bytes under way over time */
	double before;       /* those of the sample before */
	double sum, squares; /* of those bytes */
};

static void
add(struct way *w, double bytes, double since_s, bool first)
{
	w->byte_seconds += first ? 0 : (bytes + w->before) / 2 * since_s;
	w->before = bytes;
	w->sum += bytes;
	w->squares += bytes * bytes;
}

/* How far the mean bytes under way of `n` samples may be off: two standard errors. */
static double
error_of(const struct way *w, size_t n)
{
	double mean = w->sum / (double)n, variance = w->squares / (double)n - mean * mean;

	return variance > 0 ? 2 * sqrt(variance / (double)n) : 0;
}

/* The sums over all samples. */
struct sums {
	struct way there, back;
	double first_s, last_s, first_bytes, last_bytes;
	size_t n;
};

/*
 * The delay of a direction is its bytes under way, integrated over time, divided by the bytes
 * received. The error of their mean, divided by the rate, is one of time.
 */
static void
conclude(const struct sums *s, struct np_delay *d)
{
	double took = s->last_s - s->first_s, bytes = s->last_bytes - s->first_bytes;
	double error, there, back;

	if (s->n < LEAST || took <= 0 || bytes <= 0) {
		return;
	}
	error = stamp_s + fmax(error_of(&s->there, s->n), error_of(&s->back, s->n)) * took / bytes;
	there = s->there.byte_seconds / bytes;
	back = s->back.byte_seconds / bytes;
	if (there < -2 * error || back < -2 * error) {
		return; /* clearly negative: not of one connection, or not by one clock */
	}
	/* An error moves time from one to the other: keep their sum, which has no such error. */
	d->there_us = fmin(fmax(there, 0), fmax(there + back, 0)) * 1e6;
	d->back_us = fmax(there + back, 0) * 1e6 - d->there_us;
	d->error_us = error * 1e6;
	d->samples = s->n;
}

void
np_delay_of(const struct np_bag *tx, const struct np_bag *rx, struct np_delay *d)
{
	const char *near = np_bag_string(tx, "clock.boot"), *far = np_bag_string(rx, "clock.boot");
	const char *role = np_bag_string(tx, "flow.role");
	/* By how much the receiver's window began later. */
	double later = np_bag_number(rx, "clock.begin_s") - np_bag_number(tx, "clock.begin_s");
	/* The kernel counts the SYN of the end that connects among the bytes acknowledged. One
	 * byte is nothing in a stream, and may be a whole request. */
	double syn = role != NULL && strcmp(role, "request") == 0 ? 1 : 0, bytes;
	struct sums s = { .n = 0 };
	struct transmitter a;
	struct receiver b;

	*d = (struct np_delay){ .there_us = (double)NAN,
				.back_us = (double)NAN,
				.error_us = (double)NAN };
	if (near == NULL || far == NULL || strcmp(near, far) != 0 || isnan(later) ||
	    !has_all(tx, rx, &a, &b)) {
		return; /* without both, or by clocks that can't be compared */
	}
	for (size_t i = 0; i < a.t.count; i++) {
		double t = np_bag_value(&a.t, i);

		if (received_by(&b, t - later, &bytes)) {
			bool first = s.n == 0;

			add(&s.there,
			    (np_bag_value(&a.sent, i) - np_bag_value(&a.again, i)) - bytes,
			    t - s.last_s, first);
			add(&s.back, bytes - (np_bag_value(&a.acked, i) - syn), t - s.last_s,
			    first);
			if (first) {
				s.first_s = t;
				s.first_bytes = bytes;
			}
			s.last_s = t;
			s.last_bytes = bytes;
			s.n++;
		}
	}
	conclude(&s, d);
}
