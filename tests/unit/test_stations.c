#include <endian.h>

#include "bench/bench.h"
#include "bench/stamps.h"
#include "run/stations.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/sockets.h"

enum { COUNT = 100, AHEAD = 7000000 /* ns of the far clock */ };

/* One end of a test that has kept the stamps of COUNT transactions. */
struct kept_end {
	struct np_plan plan;
	struct np_worker w;
	struct np_run run;
	struct np_stamps stamps;
};

static struct kept_end *
new_end(int role)
{
	struct kept_end *e = aligned_alloc(64, (sizeof(*e) + 63) / 64 * 64);

	assert_non_null(e);
	memset(e, 0, sizeof(*e));
	client_params(&e->plan, np_bench_find("UDP_RR"), AF_INET, 10);
	e->plan.role = role;
	e->plan.stations = 10;
	e->w.run = &e->run;
	e->w.stamps = &e->stamps;
	e->run = (struct np_run){ .plan = &e->plan, .worker = &e->w, .workers = 1 };
	e->stamps.every = e->plan.stations;
	e->stamps.kept_every = e->plan.stations;
	return e;
}

static void
keep(struct kept_end *e, uint64_t number, const int64_t at[NP_STAMPS])
{
	struct np_stamped *s = &e->stamps.kept[e->stamps.count++];

	s->number = number;
	memcpy(s->at, at, sizeof(s->at));
	e->stamps.asked++;
	for (int i = 0; i < NP_STAMPS; i++) {
		e->stamps.came[i]++;
	}
}

/* Near: 1, 2, ..., far: 3, 4, ... us; the wire takes 40 us there and 50 us back. */
static void
fill(struct kept_end *near, struct kept_end *far)
{
	for (int64_t i = 1; i <= COUNT; i++) {
		int64_t t = INT64_C(1790000000000000000) + i * 1000000,
			u = t + 3000 + 40000 + AHEAD;
		int64_t back = u + 3000 + 4000 + 5000 + 6000 - AHEAD + 50000;

		keep(near, (uint64_t)i * 10,
		     (int64_t[]){ t, t + 1000, t + 3000, back, back + 7000 });
		keep(far, (uint64_t)i * 10,
		     (int64_t[]){ u + 3000 + 4000, u + 3000 + 4000 + 5000,
				  u + 3000 + 4000 + 5000 + 6000, u, u + 3000 });
	}
}

TEST(stations_add_up_to_the_round_trip)
{
	static const uint64_t us[NP_STATIONS] = { 1, 2, 90, 3, 4, 5, 6, 7 };
	FREED_BY(free_memory) struct kept_end *near = new_end(NP_LEAD), *far = new_end(NP_FOLLOW);
	FREED_BY(free_bag) struct np_bag *bag = np_bag_new();
	struct np_stations *s;

	fill(near, far);
	np_bag_int(bag, 1, "flow.bytes");
	np_stamps_put(&far->run, bag);
	s = np_stations_join(&near->run, bag);
	assert_non_null(s);
	assert_int_equal(np_bag_count(bag), 1); /* the stamps are out of it */
	assert_int_equal(s->joined, COUNT);
	assert_int_equal(s->kept, COUNT);
	assert_int_equal(s->asked[1], COUNT);
	for (int i = 0; i < NP_STATIONS; i++) {
		assert_int_equal(s->hist[i]->sum, us[i] * 1000 * COUNT);
	}
	assert_int_equal(s->hist[NP_ST_WHOLE]->sum, UINT64_C(118000) * COUNT);
	assert_true(s->has_one_way && s->clocks.steps == 0);
	/* How the 90 us are divided can't be known. */
	assert_float_equal(s->clocks.last_ns, AHEAD, s->clocks.slack_ns);
	assert_true(s->clocks.slack_ns < 50000);
	np_stations_free(s);
}

/* The far end alone has kept every other one of the second half; or both lack what was lost. */
TEST(what_one_end_lacks_is_left_out)
{
	for (int lost = 0; lost < 2; lost++) {
		FREED_BY(free_memory)
		struct kept_end *near = new_end(NP_LEAD), *far = new_end(NP_FOLLOW);
		FREED_BY(free_bag) struct np_bag *bag = np_bag_new();
		struct np_stations *s;
		size_t left = 0;

		fill(near, far);
		for (size_t i = 0; i < COUNT; i++) {
			bool stays = lost ? i % 5 != 2 : i > COUNT / 2 && i % 2 == 1;

			if (stays && lost) {
				near->stamps.kept[left] = near->stamps.kept[i];
			}
			if (stays) {
				far->stamps.kept[left++] = far->stamps.kept[i];
			}
		}
		far->stamps.count = left;
		near->stamps.count = lost ? left : COUNT;
		np_stamps_put(&far->run, bag);
		s = np_stations_join(&near->run, bag);
		assert_non_null(s);
		assert_int_equal(s->joined, left);
		assert_int_equal(s->kept, left);
		assert_int_equal(s->has_one_way, lost); /* so few tell nothing of the clocks */
		np_stations_free(s);
	}
}

static bool
gets(const int64_t *rows, size_t numbers)
{
	static const int64_t counts[1 + NP_STAMPS];
	struct np_stamps *got = malloc(sizeof(*got));
	struct np_bag *bag = np_bag_new();
	bool told;

	np_bag_ints(bag, counts, 1 + NP_STAMPS, "stamps.counts");
	np_bag_ints(bag, rows, numbers, "stamps.rows");
	told = np_stamps_get(bag, got);
	assert_int_equal(got->count, told ? numbers / (1 + NP_STAMPS) : 0);
	np_bag_free(bag);
	free(got);
	return told;
}

/* A far end whose kernel stamped nothing sends an empty list. */
TEST(a_far_end_without_stamps_joins_nothing)
{
	FREED_BY(free_memory) struct kept_end *near = new_end(NP_LEAD), *far = new_end(NP_FOLLOW);
	FREED_BY(free_bag) struct np_bag *bag = np_bag_new();
	struct np_stations *s;

	fill(near, far);
	far->stamps.count = 0;
	np_stamps_put(&far->run, bag);
	s = np_stations_join(&near->run, bag);
	assert_non_null(s);
	assert_int_equal(s->joined, 0);
	assert_false(s->has_one_way);
	np_stations_free(s);
}

TEST(lists_that_do_not_fit_are_not_believed)
{
	enum { ROW = 1 + NP_STAMPS };
	static int64_t rows[(NP_STAMPS_KEPT + 1) * ROW];

	assert_true(gets(rows, (size_t)2 * ROW));
	assert_true(gets(rows, (size_t)NP_STAMPS_KEPT * ROW));
	assert_false(gets(rows, (size_t)(NP_STAMPS_KEPT + 1) * ROW));
	assert_false(gets(rows, (size_t)2 * ROW + 1));
	rows[3] = INT64_MAX;
	assert_false(gets(rows, (size_t)2 * ROW));
	rows[3] = -5;
	assert_false(gets(rows, (size_t)2 * ROW));
}

/* One transaction, whose id a client has chosen. */
static void
respond(struct kept_end *e, struct np_conn *c, int client, uint32_t id)
{
	char in[4], out[4] = { 0 };
	uint32_t wide = htobe32(id);

	assert_int_equal(send(client, &wide, sizeof(wide), 0), sizeof(wide));
	assert_int_equal(np_stamps_recv(&e->w, c, in), sizeof(in));
	assert_int_equal(np_stamps_send(&e->w, c, out), sizeof(out));
	assert_int_equal(recv(client, in, sizeof(in), 0), sizeof(in));
}

/*
 * All of them have to be kept, by their numbers, and there is no room for that. The kernel begins
 * to stamp a while after it was asked to, so it is not known how many come without.
 */
TEST(ids_that_a_client_chooses_take_no_more_room)
{
	FREED_BY(free_memory) struct kept_end *e = new_end(NP_FOLLOW);
	struct np_conn c = { .need = NP_RECV };
	struct np_addr here, there;
	struct np_err err;
	FREED_BY(close_fd) int client = bound_socket(AF_INET, SOCK_DGRAM, &there);
	uint32_t asked = 0;

	c.fd = bound_socket(AF_INET, SOCK_DGRAM, &here);
	assert_int_equal(connect(client, (struct sockaddr *)&here.sa, here.len), 0);
	assert_int_equal(connect(c.fd, (struct sockaddr *)&there.sa, there.len), 0);
	e->run.conn = e->w.conn = &c;
	e->w.send_size = e->w.recv_size = e->w.whole = 4;
	e->w.id = (struct np_id_place){ .at = 0, .width = NP_IDS_WIDE };
	e->stamps.every = 1;
	e->stamps.kept_every = 1;
	skip_if(np_stamps_open(&e->run, &err) != NP_OK, "%s", err.msg);
	while (e->stamps.kept_every <= 16 && asked < 50 * NP_STAMPS_KEPT) {
		respond(e, &c, client, ++asked << 20);
	}
	np_stamps_end(&e->w);
	assert_int_equal(e->stamps.asked, asked);
	assert_true(e->stamps.came[NP_STAMP_GONE] > NP_STAMPS_KEPT);
	assert_true(e->stamps.count <= NP_STAMPS_KEPT && e->stamps.kept_every > 16);
	close(c.fd);
}

TEST_MAIN()
