/*
 * Datagrams of a stranger against the account of numbered ones, and bags of a far end that are
 * joined with it. The input is a series of arrivals, each a byte that says how the next number
 * follows from the last one, and its operand: the sums hold whatever comes, and no step takes long.
 */
#include "tests/fuzz/fuzz.h"

#include <math.h>

#include "bench/bench.h"
#include "bench/sequence.h"

enum { ARRIVALS = 1024 };

/* How far from the last number. */
static uint64_t
step(uint8_t how, uint8_t by)
{
	return (uint64_t)by << (how >> 2 & 0x3f);
}

static int64_t
value(const struct np_bag *b, const char *name)
{
	double v = np_bag_number(b, name);

	must(!isnan(v) && v >= 0);
	return (int64_t)v;
}

static void
check_sums(const struct np_bag *b, int64_t arrivals)
{
	struct np_bag_item it;
	int64_t bursts = 0;

	must(value(b, "udp.received") + value(b, "udp.foreign") == arrivals);
	must(value(b, "udp.unique") + value(b, "udp.duplicated") + value(b, "udp.too_old") ==
	     value(b, "udp.received"));
	must(value(b, "udp.reordered") <= value(b, "udp.unique"));
	must(value(b, "udp.reorder_extent_max") < NP_SEQUENCE_WINDOW);
	must(value(b, "udp.unique") <= value(b, "udp.span"));
	must(value(b, "udp.late") <= value(b, "udp.received"));
	must(value(b, "udp.loss_burst_longest") <= value(b, "udp.span"));
	must(np_bag_find(b, "udp.loss_burst_lengths", &it) && it.kind == NP_BAG_INTS);
	for (size_t i = 0; i < it.count; i++) {
		bursts += it.ints[i];
	}
	must(bursts == value(b, "udp.loss_bursts"));
}

/* A transmitter that says how many it sent. */
static void
check_join(struct np_bag *near, int64_t sent)
{
	struct np_bag *far = np_bag_new();
	int64_t span = value(near, "udp.span"), unique = value(near, "udp.unique");
	int64_t bursts = value(near, "udp.loss_bursts");

	np_bag_int(far, sent, "udp.sent");
	np_sequence_join(far, near, 0);
	if (sent >= span && sent <= (int64_t)1 << NP_SEQUENCE_BITS) {
		must(value(near, "udp.lost") == sent - unique);
		must(value(near, "udp.loss_bursts") == bursts + (sent > span));
	} else {
		must(isnan(np_bag_number(near, "udp.lost")));
	}
	np_bag_free(far);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct np_err err = { .code = NP_OK };
	struct np_plan p = { .flows =
				 size > 0 ? data[0] % 80 + 1u : 1 }; /* by which windows differ */
	struct np_sequence *s = np_sequence_new(&p, 1, &err), all = { .flows = 0 };
	struct np_bag *b = np_bag_new();
	uint64_t number = 0, now = 0;
	int64_t arrivals = 0;

	must(s != NULL && b != NULL);
	for (size_t i = 0; i + 1 < size && arrivals < ARRIVALS; i += 2, arrivals++) {
		uint8_t how = data[i], datagram[32];
		size_t room = (how & 3) == 3 ? data[i + 1] % sizeof(datagram) : sizeof(datagram);

		number += (how & 1) != 0 ? -step(how, data[i + 1]) : step(how, data[i + 1]);
		now += step(data[i + 1], how);
		np_sequence_mark(datagram, number, how % 7 == 0 ? now : number, how % 5 == 0);
		datagram[how % 64 == 63 ? 2 : 31] ^= data[i + 1];
		arrivals -=
		    np_sequence_arrived(s, datagram, room, now, (how & 2) != 0) == NP_IS_OF_WARM_UP;
	}
	np_sequence_add(&all, s);
	np_sequence_put_sum(&all, b);
	check_sums(b, arrivals);
	check_join(b, size > 0 ? (int64_t)(step(data[size - 1], data[0]) >> 1) : 0);
	np_bag_free(b);
	free(s);
	return 0;
}
