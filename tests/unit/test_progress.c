/*
 * The progress line's text: what it says of each step, what is left out where there is no room.
 */

#include "cli/progress.h"
#include "tests/lib/check.h"

static const struct np_progress measuring = {
	.test = "TCP_STREAM",
	.host = "box",
	.step = NP_LIVE_MEASURING,
	.elapsed_s = 3.24,
	.total_s = 10,
	.done = -1,
	.connections = 1,
	.rate = 9.414e9,
	.of = NP_PROGRESS_BITS,
};

static void
assert_text(const struct np_progress *p, unsigned columns, const char *want)
{
	char text[NP_PROGRESS_TEXT];

	memset(text, 'x', sizeof(text));
	assert_int_equal(np_progress_text(p, columns, text), strlen(want));
	assert_string_equal(text, want);
}

TEST(a_line_has_the_time_a_bar_and_the_rate)
{
	assert_text(&measuring, 79,
		    "TCP_STREAM: measuring 3.2 of 10 s  [######--------------]  9.41 Gbit/s");
}

TEST(each_step_has_its_words)
{
	struct np_progress p = measuring;

	p.elapsed_s = 0.5;
	p.total_s = 0;
	p.step = NP_LIVE_CONNECTING;
	assert_text(&p, 79, "TCP_STREAM: connecting to box");
	p.step = NP_LIVE_ASKING;
	assert_text(&p, 79, "TCP_STREAM: waiting for netserver at box");
	p.step = NP_LIVE_ESTABLISHING;
	assert_text(&p, 79, "TCP_STREAM: making the data connection");
	p.connections = 8;
	assert_text(&p, 79, "TCP_STREAM: making 8 data connections");
	p.step = NP_LIVE_COLLECTING;
	assert_text(&p, 79, "TCP_STREAM: collecting the results");
	p.elapsed_s = 4.2;
	assert_text(&p, 79, "TCP_STREAM: collecting the results, 4 s");
	p.step = NP_LIVE_CONNECTING;
	assert_text(&p, 79, "TCP_STREAM: connecting to box, 4 s");
	p.step = NP_LIVE_WAITING;
	p.total_s = 8.4;
	assert_text(&p, 60, "TCP_STREAM: waiting 4.2 of 8.4 s  [##########----------]");
	p.step = NP_LIVE_WARMING_UP;
	assert_text(&p, 60, "TCP_STREAM: warming up 4.2 of 8.4 s  [####----]  9.41 Gbit/s");
}

TEST(a_test_by_count_has_its_share)
{
	struct np_progress p = measuring;

	p.total_s = 0;
	p.done = 0.255;
	p.of = NP_PROGRESS_TRANSACTIONS;
	p.rate = 45210.4;
	assert_text(&p, 79,
		    "TCP_STREAM: measuring 3.2 s, 26 %  [#####---------------]  45210 "
		    "transactions/s");
	p.done = 1.5; /* what is in flight at the end */
	assert_text(&p, 90,
		    "TCP_STREAM: measuring 3.2 s, 100 %  [####################]  45210 "
		    "transactions/s");
	p.done = -1; /* until a signal comes */
	assert_text(&p, 79, "TCP_STREAM: measuring 3.2 s  45210 transactions/s");
}

TEST(a_ramp_has_its_connections)
{
	struct np_progress p = measuring;

	p.ramps = true;
	p.connections = 1000;
	p.up = 340;
	assert_text(&p, 90,
		    "TCP_STREAM: measuring 3.2 of 10 s, 340 of 1000 connections  "
		    "[####-----------]  9.41 Gbit/s");
}

TEST(iterations_are_counted)
{
	struct np_progress p = measuring;

	p.iteration = 2;
	p.min = 3;
	p.max = 10;
	assert_text(&p, 63, "iteration 2 of 3 to 10: measuring 3.2 of 10 s  9.41 Gbit/s");
	assert_text(&p, 79,
		    "TCP_STREAM: iteration 2 of 3 to 10: measuring 3.2 of 10 s  [#----]  9.41 "
		    "Gbit/s");
	p.min = p.max = 3;
	assert_text(&p, 70, "TCP_STREAM: iteration 2 of 3: measuring 3.2 of 10 s  9.41 Gbit/s");
	p.max = 0;
	assert_text(&p, 60, "TCP_STREAM: iteration 2: measuring 3.2 of 10 s  9.41 Gbit/s");
}

TEST(rates_have_three_digits)
{
	static const struct {
		double rate;
		const char *text;
	} rates[] = {
		{ 0, "0 bit/s" },          { 999.4, "999 bit/s" },    { 999.6, "1.00 kbit/s" },
		{ 12345, "12.3 kbit/s" },  { 999600, "1.00 Mbit/s" }, { 9.996e6, "10.0 Mbit/s" },
		{ 99.96e6, "100 Mbit/s" }, { 1.5e9, "1.50 Gbit/s" },  { 2e12, "2.00 Tbit/s" },
		{ 5e15, "5000 Tbit/s" },
	};
	struct np_progress p = measuring;
	char want[80];

	p.total_s = 0;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		p.rate = rates[i].rate;
		snprintf(want, sizeof(want), "TCP_STREAM: measuring 3.2 s  %s", rates[i].text);
		assert_text(&p, 79, want);
	}
	p.of = NP_PROGRESS_UNITS;
	p.unit = "MBytes";
	p.rate = 112.345;
	p.sent = true;
	assert_text(&p, 79, "TCP_STREAM: measuring 3.2 s  112.34 MBytes/s sent");
	p.unit = "10^6bits";
	assert_text(&p, 79, "TCP_STREAM: measuring 3.2 s  112.34 Mbit/s sent");
	p.rate = -1; /* at the first look */
	assert_text(&p, 79, "TCP_STREAM: measuring 3.2 s");
}

TEST(no_line_is_wider_than_the_terminal)
{
	struct np_progress p = measuring;
	char text[NP_PROGRESS_TEXT];

	p.iteration = 12;
	p.min = 3;
	p.max = 30;
	for (int step = NP_LIVE_CONNECTING; step <= NP_LIVE_COLLECTING; step++) {
		p.step = (enum np_live_step)step;
		for (unsigned columns = 1; columns < 600; columns++) {
			size_t n = np_progress_text(&p, columns, text);

			assert_int_equal(n, strlen(text));
			assert_true(n > 0 && n <= columns);
		}
	}
	p.step = NP_LIVE_MEASURING;
	assert_text(&p, 60, "iteration 12 of 3 to 30: measuring 3.2 of 10 s  9.41 Gbit/s");
	assert_text(&p, 50, "measuring 3.2 of 10 s  [###---------]  9.41 Gbit/s");
	assert_text(&p, 36, "measuring 3.2 of 10 s  9.41 Gbit/s");
	assert_text(&p, 30, "measuring 3.2 of 10 s  [#----]");
	assert_text(&p, 29, "measuring 3.2 of 10 s");
	assert_text(&p, 9, "measuring");
}

TEST(names_of_others_do_nothing_to_the_terminal)
{
	struct np_progress p = measuring;
	char host[1200], text[NP_PROGRESS_TEXT];

	p.step = NP_LIVE_CONNECTING;
	p.host = "a\033[2J\nb\xc3\xa9";
	p.elapsed_s = 0;
	assert_text(&p, 79, "TCP_STREAM: connecting to a?[2J?b??");
	memset(host, 'h', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	p.host = host;
	assert_true(np_progress_text(&p, 4000, text) < sizeof(text));
	assert_int_equal(np_progress_text(&p, 79, text), 79);
}

TEST_MAIN()
