/*
 * The delay of each direction, told from samples composed of planted ones.
 */
#include "out/explain/facts.h"

#include "tests/lib/bags.h"
#include "tests/lib/check.h"

enum { SAMPLES = 30 };

/* A steady stream of which samples are taken, at both ends. */
struct plant {
	double rate;          /* bytes a second */
	double there, back;   /* s */
	double rx_begins;     /* s after the transmitter's window */
	double tx_at, rx_at;  /* s after each end's beginning, of the first sample */
	double every;         /* s */
	double clocks_differ; /* s, of two machines' clocks */
	int64_t again;        /* bytes that were sent twice */
};

static const struct plant usual = { .rate = 12.5e6,
				    .there = 0.020,
				    .back = 0.005,
				    .rx_begins = 0.021,
				    .tx_at = 0.1,
				    .rx_at = 0.137,
				    .every = 0.1 };

/* What went out of something that began then, by this time; one direction of the stream. */
static int64_t
bytes_by(const struct plant *p, double t)
{
	return t > 0 ? (int64_t)(t * p->rate) : 0;
}

struct lists {
	double t[SAMPLES];
	int64_t sent[SAMPLES], again[SAMPLES], acked[SAMPLES], received[SAMPLES];
};

static struct np_bag *
transmitter(const struct plant *p)
{
	struct np_bag *b = np_bag_new();
	struct lists l;

	for (int i = 0; i < SAMPLES; i++) {
		l.t[i] = p->tx_at + i * p->every;
		l.again[i] = p->again;
		l.sent[i] = bytes_by(p, l.t[i]) + p->again;
		l.acked[i] = bytes_by(p, l.t[i] - p->there - p->back) + 1;
	}
	np_bag_reals(b, l.t, SAMPLES, "tcp.samples.t_s");
	np_bag_ints(b, l.sent, SAMPLES, "tcp.samples.bytes_sent");
	np_bag_ints(b, l.again, SAMPLES, "tcp.samples.retransmitted_bytes");
	np_bag_ints(b, l.acked, SAMPLES, "tcp.samples.bytes_acked");
	np_bag_text(b, "11111111-1", "clock.boot");
	np_bag_real(b, 1000, "clock.begin_s");
	return b;
}

static struct np_bag *
receiver(const struct plant *p)
{
	struct np_bag *b = np_bag_new();
	struct lists l;

	for (int i = 0; i < SAMPLES; i++) {
		l.t[i] = p->rx_at + i * p->every;
		l.received[i] = bytes_by(p, l.t[i] + p->rx_begins - p->there);
	}
	np_bag_reals(b, l.t, SAMPLES, "tcp.samples.t_s");
	np_bag_ints(b, l.received, SAMPLES, "tcp.samples.bytes_received");
	np_bag_text(b, p->clocks_differ == 0 ? "11111111-1" : "22222222-1", "clock.boot");
	np_bag_real(b, 1000 + p->rx_begins + p->clocks_differ, "clock.begin_s");
	return b;
}

static struct np_delay
told(const struct plant *p)
{
	struct np_bag *tx = transmitter(p), *rx = receiver(p);
	struct np_delay d;

	np_delay_of(tx, rx, &d);
	np_bag_free(tx);
	np_bag_free(rx);
	return d;
}

/* Whichever is longer, whenever each end looks, and whatever was sent twice. */
TEST(each_direction_has_its_own)
{
	struct plant p[6];

	for (size_t i = 0; i < LEN(p); i++) {
		p[i] = usual;
	}
	p[1].there = 0.005;
	p[1].back = 0.2;
	p[2].there = 0.0003;
	p[2].back = 0.0001;
	p[3].rx_begins = -0.4;
	p[4].rx_at = 0.02;
	p[4].tx_at = 0.33;
	p[5].again = 5000000;
	for (size_t i = 0; i < LEN(p); i++) {
		struct np_delay d = told(&p[i]);

		/* Little's law holds of long times: what had not come back yet is missed. */
		assert_near(d.there_us, p[i].there * 1e6, 2);
		assert_near(d.back_us, p[i].back * 1e6, 2 + p[i].back * 1e3);
		assert_true(d.error_us < 22 + p[i].back * 0.1e6);
	}
}

static void
assert_nothing(const struct np_bag *tx, const struct np_bag *rx)
{
	struct np_delay d;

	np_delay_of(tx, rx, &d);
	assert_true(isnan(d.there_us));
	assert_true(isnan(d.back_us));
	assert_true(isnan(d.error_us));
}

TEST(what_is_missing_is_not_told)
{
	FREED_BY(free_bag) struct np_bag *tx = transmitter(&usual), *rx = receiver(&usual);
	struct plant idle = usual, wrong = usual, far = usual;
	struct np_bag *none, *early, *other;

	assert_nothing(tx, NULL);
	assert_nothing(NULL, rx);
	assert_nothing(rx, tx); /* the wrong way round */
	/* Nothing moved. */
	idle.rate = 0;
	none = receiver(&idle);
	assert_nothing(tx, none);
	np_bag_free(none);
	/* They never looked at the same time. */
	wrong.rx_begins = 100;
	early = receiver(&wrong);
	assert_nothing(tx, early);
	np_bag_free(early);
	/* Two machines. */
	far.clocks_differ = 86400;
	other = receiver(&far);
	assert_nothing(tx, other);
	np_bag_free(other);
	/* Some of the connections alone are in the samples. */
	np_bag_int(tx, 65, "tcp.connections");
	assert_nothing(tx, rx);
	np_bag_int(tx, 64, "tcp.connections");
	np_bag_text(tx, "not a list", "tcp.samples.bytes_sent");
	assert_nothing(tx, rx);
}

/* The SYN is among what was acknowledged to who connects, and as large as such a request. */
TEST(requests_of_a_byte_are_told)
{
	struct plant p = usual;
	FREED_BY(free_bag) struct np_bag *tx = NULL, *rx = NULL;
	struct np_delay d;

	p.rate = 40; /* transactions a second, of 25 ms each */
	p.every = 0.1037;
	tx = transmitter(&p);
	rx = receiver(&p);
	np_bag_text(tx, "request", "flow.role");
	np_delay_of(tx, rx, &d);
	assert_near(d.there_us + d.back_us, 25000, 2500);
	assert_near(d.there_us, 20000, d.error_us);
}

/* A clock that says it is the same, and is not (a copy of a virtual machine, say). */
TEST(times_below_zero_are_no_times)
{
	FREED_BY(free_bag) struct np_bag *tx = transmitter(&usual), *rx = receiver(&usual);

	np_bag_real(rx, 1000 + usual.rx_begins + 0.5, "clock.begin_s");
	assert_nothing(tx, rx);
}

TEST_MAIN()
