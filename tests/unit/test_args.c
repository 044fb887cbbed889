/*
 * netperf's command line: its tables, and what the words come to.
 */
#include "cli/args.h"

#include <sys/socket.h>
#include <unistd.h>

#include "bench/engine/engine.h"
#include "cli/modes.h"
#include "tests/lib/check.h"
#include "tests/lib/root.h"
#include "tests/lib/words.h"

/* Parse; the words stay alive as long as the caller's. */
static int
parse(const char *line, struct np_cli *cli, struct words *w, struct np_err *err)
{
	words_split(w, line);
	err->code = NP_OK;
	err->msg[0] = '\0';
	return np_cli_parse(cli, w->count, w->at, err);
}

static const struct np_cli *
parsed(const char *line)
{
	static struct words w;
	static struct np_cli cli;
	struct np_err err;

	np_cli_free(&cli);
	fail_if(parse(line, &cli, &w, &err) != NP_OK, "%s: %s", line, err.msg);
	return &cli;
}

static const struct np_cli *
settled(const char *line)
{
	static struct np_cli cli;
	struct np_err err;

	cli = *parsed(line);
	fail_if(np_cli_settle(&cli, &err) != NP_OK, "%s: %s", line, err.msg);
	return &cli;
}

static void
assert_wrong(const char *line, const char *part)
{
	struct words w;
	struct np_cli cli;
	struct np_err err;

	fail_if(parse(line, &cli, &w, &err) != NP_EUSAGE, "%s was taken", line);
	np_cli_free(&cli);
	assert_has(err.msg, part);
}

/* ---- The tables ---- */

TEST(the_tables_are_in_order)
{
	struct np_cli cli;

	parsed("");
	memset(&cli, 0, sizeof(cli));
	assert_table_in_order(&np_global_options, &cli);
	assert_table_in_order(&np_test_options, &cli);
}

static void
assert_letters(const struct np_option_table *t, const char *letters)
{
	for (; *letters != '\0'; letters++) {
		size_t n = 0;

		while (n < t->count && t->rows[n].letter != *letters) {
			n++;
		}
		assert_in_range(n, 0, t->count - 1);
	}
}

/* All letters that netperf 2.7 knows: one it knows must not be unknown here. */
TEST(every_letter_of_netperfs_is_known)
{
	static const char global[] = "46aAbBcCdDfFhHiIjkKlLnNoOpPrsStTvVwWyYZ";
	static const char test[] = "46abBcCdDefFgGhHiIjkKlLmMnNoOpPqrRsStTuUVwWz";

	assert_letters(&np_global_options, global);
	assert_letters(&np_test_options, test);
}

TEST(every_option_has_a_group)
{
	assert_groups(&np_global_options);
	assert_groups(&np_test_options);
}

/* What a help text says; free() it. */
static char *
told_by(void (*print)(FILE *out))
{
	return WRITTEN(out, print(out));
}

static void
assert_fits(const char *text, unsigned most_lines)
{
	unsigned lines = 0;

	for (; *text != '\0'; text += strcspn(text, "\n") + 1) {
		fail_if(strcspn(text, "\n") > 80, "more than 80 columns: %.100s", text);
		lines++;
	}
	assert_in_range(lines, 10, most_lines);
}

/* Two screens. */
TEST(the_short_help_fits_and_names_the_long_one)
{
	FREED_BY(free_memory) char *text = told_by(np_help_short);
	unsigned examples = 0;

	assert_fits(text, 48);
	assert_has(text, "--help=all");
	for (const char *at = text; (at = strstr(at, "\nnetperf -H HOST")) != NULL; at++) {
		examples++;
	}
	assert_int_equal(examples, 5);
}

TEST(the_usage_text_names_every_test)
{
	FREED_BY(free_memory) char *text = told_by(np_help_all);

	assert_fits(text, 420);
	for (size_t i = 0; np_bench_at(i) != NULL; i++) {
		assert_has(text, np_bench_at(i)->name);
	}
	assert_has(text, "OMNI");
	assert_has(text, "UUID");
	assert_has(text, "LOC_CPU");
	assert_has(text, "REM_CPU");
}

/* What `-t TEST -- -h` says; free() it. */
static char *
test_help(const char *line)
{
	char *text = WRITTEN(out, np_help_test(parsed(line), out));

	assert_fits(text, 100);
	return text;
}

/* The options that mean something in a test, and no other ones. */
TEST(a_test_has_its_own_usage_text)
{
	static const struct {
		const char *line, *has[4], *lacks[5];
	} tests[] = {
		{ "-t TCP_CC",
		  { "Test options of TCP_CC", "--nodelay", "-p min,max", "of the local end" },
		  { "--csv", "--burst", "--sizes", "--send-size", "no effect" } },
		{ "-t TCP_STREAM",
		  { "--send-size", "(socket buffer)", "--copy-avoidance", "allow routing (1)" },
		  { "--sizes", "--timeout", "--burst", "min,max", "--direction" } },
		{ "-t UDP_STREAM",
		  { "at most 65507", "allow routing (0)", "  -n  ", "connect() the daemon" },
		  { "--nodelay", "--congestion", "--mss", "UDP:", "--sizes" } },
		{ "-t TCP_RR",
		  { "--sizes", "--burst", "--nodelay", "--keyval" },
		  { "--send-size", "--timeout", "--retry", "min,max", "--protocol" } },
		{ "-t UDP_RR",
		  { "--sizes", "--burst", "count a response as lost", "--keyval" },
		  { "UDP_RR, DLCL_RR:", "--nodelay", "--send-size", "min,max", "no effect" } },
		{ "-t DLCL_STREAM",
		  { "--device", "(the MTU)", "--csv", "-s send,recv" },
		  { "--ipv4", "allow routing", "--sizes", "--timeout", "--mss" } },
		{ "-t DG_RR",
		  { "-p directory", "--sizes", "-S send,recv", "STREAM/DG UNIX" },
		  { "--keyval", "--send-size", "--ipv4", "--burst", "--device" } },
		{ "-t OMNI",
		  { "--direction", "--protocol", "--timeout", "--nodelay" },
		  { "no effect", "--device", "-p directory", "-Z", "is not a test" } },
		{ "-t UUID",
		  { "--uuid", "Output:", "Help:", "Test options of UUID" },
		  { "--keyval", "--ipv4", "-s send,recv", "--sizes", "is not a test" } },
	};

	for (size_t i = 0; i < LEN(tests); i++) {
		FREED_BY(free_memory) char *text = test_help(tests[i].line);

		for (size_t k = 0; k < LEN(tests[i].has); k++) {
			assert_has(text, tests[i].has[k]);
		}
		for (size_t k = 0; k < LEN(tests[i].lacks); k++) {
			fail_if(strstr(text, tests[i].lacks[k]) != NULL, "%s: has %s",
				tests[i].line, tests[i].lacks[k]);
		}
	}
}

/* In a line of its own, as which it begins. */
static bool
has_row(const char *text, const char *how)
{
	char line[NP_HELP_HOW + 8];
	size_t n = (size_t)snprintf(line, sizeof(line), "\n  %s", how);

	while ((text = strstr(text, line)) != NULL) {
		text += n;
		if (*text == ' ' || *text == '\n') {
			return true;
		}
	}
	return false;
}

/* Every option of a test is in the help of one test that it means something in. */
TEST(no_option_of_a_test_is_kept_back)
{
	char *all[64], line[64];
	size_t count = 0;

	for (size_t i = 0; np_cli_test_at(i) != NULL && count < LEN(all); i++) {
		snprintf(line, sizeof(line), "-t %s", np_cli_test_at(i));
		if (np_cli_scope(parsed(line)) != 0) {
			all[count++] = test_help(line);
		}
	}
	for (size_t o = 0; o < np_test_options.count; o++) {
		char how[NP_HELP_HOW];
		size_t i = 0;

		np_help_how(&np_test_options.rows[o], how);
		while (i < count && !has_row(all[i], how)) {
			i++;
		}
		fail_if(i == count && np_test_options.rows[o].needs != NP_FOR_NONE,
			"%s: in no test's help", how);
	}
	while (count > 0) {
		assert_null(strstr(all[--count], "no effect"));
		free(all[count]);
	}
}

TEST(a_name_that_is_no_test_gets_the_nearest)
{
	FREED_BY(free_memory) char *text = NULL;
	char like[NP_NEAREST_TEXT];

	assert_true(parsed("-t TCP_STRAEM -- -h")->test_usage);
	assert_false(parsed("-t TCP_STRAEM -- -r 1")->test_usage);
	text = WRITTEN(out, np_help_test(parsed("-t TCP_STRAEM -- -h"), out));
	assert_has(text, "TCP_STRAEM is not a test of this netperf, the nearest is TCP_STREAM");
	assert_string_equal(np_stray_test("something else entirely", like), "");
	assert_string_equal(np_stray_test("udp_stram", like), ", the nearest is UDP_STREAM");
}

/* ---- Global options ---- */

TEST(defaults_are_netperfs)
{
	const struct np_cli *cli = parsed("");

	assert_string_equal(cli->test, "TCP_STREAM");
	assert_string_equal(cli->target.port, "12865");
	assert_string_equal(cli->target.local_port, "");
	assert_false(cli->target.host.given || cli->target.local.given);
	assert_int_equal(cli->target.host.family, AF_UNSPEC);
	assert_int_equal(cli->output.verbosity, 1);
	assert_int_equal(cli->output.headers, 1);
	assert_int_equal(cli->plan.length, 10);
	assert_int_equal(cli->plan.near.call.send_align, 8);
	assert_int_equal(cli->plan.near.sock.sndbuf, -1);
	assert_null(cli->output.selectors);
	assert_null(cli->target.passphrase);
}

TEST(a_host_may_name_its_family)
{
	const struct np_cli *cli = parsed("-H example,6");

	assert_string_equal(cli->target.host.text, "example");
	assert_int_equal(cli->target.host.family, AF_INET6);
	assert_int_equal(parsed("-H example,inet")->target.host.family, AF_INET);
	assert_int_equal(parsed("-H example,inet6")->target.host.family, AF_INET6);
	assert_int_equal(parsed("-H example,4")->target.host.family, AF_INET);
	assert_int_equal(parsed("-H example,0")->target.host.family, AF_UNSPEC);
	cli = parsed("-H ,4");
	assert_false(cli->target.host.given);
	assert_int_equal(cli->target.host.family, AF_INET);
	assert_string_equal(parsed("-L %lo -L ,4")->target.local.device, "lo");
	assert_string_equal(parsed("-L 10.0.0.1%eth0/24")->target.local.device, "eth0");
	assert_string_equal(parsed("-L 10.0.0.1%eth0/24")->target.local.text, "10.0.0.1/24");
	assert_string_equal(parsed("-L %lo -L 192.0.2.1")->target.local.device, "");
	cli = parsed("-L 192.0.2.1,4 --host=example");
	assert_string_equal(cli->target.local.text, "192.0.2.1");
	assert_int_equal(cli->target.local.family, AF_INET);
	assert_string_equal(cli->target.host.text, "example");
	/* What comes later overrides. */
	assert_int_equal(parsed("-H example,6 -4")->target.host.family, AF_INET);
	assert_int_equal(parsed("-4 -H example,6")->target.host.family, AF_INET6);
}

TEST(a_later_data_name_replaces_the_network_and_the_device)
{
	assert_int_equal(parsed("-- -H 127.0.0.0/8 -H ,4")->plan.far.sock.mask, 8);
	assert_int_equal(parsed("-- -H 127.0.0.0/8 -H 127.0.0.1")->plan.far.sock.mask, -1);
	assert_int_equal(parsed("-- -L 127.0.0.0/8 -L 127.0.0.1")->plan.near.sock.mask, -1);
	assert_string_equal(parsed("-- -L ::1%lo -L ,6")->plan.near.sock.device, "lo");
	assert_string_equal(parsed("-- -L ::1%lo -L ::1")->plan.near.sock.device, "");
	assert_string_equal(parsed("-- --bind-device lo -L ::1")->plan.near.sock.device, "lo");
}

/* Then no line says that the far end has none. */
TEST(evidence_may_be_for_beside_only)
{
	assert_true(settled("--beside TCP_RR:1")->evidence.for_beside);
	assert_true(settled("--beside TCP_RR:1 -T ,0")->evidence.for_beside);
	assert_false(settled("--beside TCP_RR:1 --wire")->evidence.for_beside);
	assert_false(settled("--beside TCP_RR:1 --cycles")->evidence.for_beside);
	assert_false(settled("--beside TCP_RR:1 --clean 1")->evidence.for_beside);
	assert_false(settled("--cycles")->evidence.for_beside);
}

TEST(ports_come_in_pairs)
{
	const struct np_cli *cli = parsed("-p 99");

	assert_string_equal(cli->target.port, "99");
	assert_string_equal(cli->target.local_port, "");
	cli = parsed("-p 99,77");
	assert_string_equal(cli->target.port, "99");
	assert_string_equal(cli->target.local_port, "77");
	cli = parsed("-p ,77");
	assert_string_equal(cli->target.port, "12865");
	assert_string_equal(cli->target.local_port, "77");
	assert_string_equal(parsed("-p netperf")->target.port, "netperf");
	assert_wrong("-p 65536", "-p: 65536 is not a port");
	assert_wrong("-H vsock:2 -p 4294967295", "-p: 4294967295 is not a port");
	assert_wrong("-p -1", "-p: -1 is not a port");
}

/* How long the clock lets a test be. */
static void
assert_time(const char *line, unsigned ms)
{
	const struct np_cli *cli = parsed(line);

	fail_if(np_plan_time_ns(&cli->plan) != ms * UINT64_C(1000000), "%s: %g s", line,
		np_plan_time_s(&cli->plan));
}

TEST(lengths_are_seconds_or_counts)
{
	assert_int_equal(parsed("-l 30")->plan.length, 30);
	assert_int_equal(parsed("-l 0")->plan.length, 0);
	assert_int_equal(parsed("-l -1000")->plan.length, -1000);
	assert_int_equal(parsed("-l -1k")->plan.length, -1000);
	assert_int_equal(parsed("-l 1m30s")->plan.length, 90);
	assert_time("-l 1m30s", 90000);
	assert_time("-l 0.5", 500);
	assert_time("-l500ms", 500);
	assert_time("--length=1.5s", 1500);
	assert_time("-l 500ms -l 2", 2000);
	assert_time("-l 500ms --clean 3 -l 3", 3000);
	assert_time("-l 0.0", 0);
	assert_time("-l -5.5", 0); /* a count, as before */
	assert_wrong("-l 2.5 --clean 3", "-l: --clean sets the length of the test");
	assert_int_equal(parsed("--length=1h")->plan.length, 3600);
	assert_wrong("-l never", "-l: never is not a length");
	assert_wrong("-l ,64", "-l: ,64 is not a length"); /* for ever, with netperf */
	assert_wrong("-l 3G", "-l: 3G is out of range");
}

TEST(the_other_global_options_arrive)
{
	const struct np_cli *cli =
	    parsed("-P 0 -v 2 -t tcp_rr -f g -B tag -s 3 -S -T 1,0 -Z sesame -a 16,32 -O 4 -W 5");

	assert_int_equal(cli->output.headers, 0);
	assert_int_equal(cli->output.verbosity, 2);
	assert_string_equal(cli->test, "tcp_rr");
	assert_int_equal(cli->output.unit, 'g');
	assert_string_equal(cli->output.brand, "tag");
	assert_int_equal(cli->wait_s, 3);
	assert_true(cli->plan.keepalive);
	assert_true(cli->bound);
	assert_int_equal(cli->plan.near.place.cpu, 1);
	assert_int_equal(cli->plan.far.place.cpu, 0);
	assert_string_equal(cli->target.passphrase, "sesame");
	assert_int_equal(cli->plan.near.call.send_align, 16);
	assert_int_equal(cli->plan.near.call.recv_align, 32);
	assert_int_equal(cli->plan.far.call.recv_offset, 4);
	assert_int_equal(cli->plan.near.call.recv_width, 5);
	assert_int_equal(parsed("-Y ef")->plan.far.sock.tos, 0xb8);
	assert_int_equal(parsed("-Y cs1,0x10")->plan.near.sock.tos, 0x20);
	assert_int_equal(parsed("-Y cs1,0x10")->plan.far.sock.tos, 16);
	assert_true(parsed("-h")->usage && parsed("--help")->help && parsed("-V")->version);
	assert_wrong("-T 65536", "-T: 65536 is out of range (0 to 65535)");
	assert_wrong("-a 0", "-a: 0 is out of range");
	assert_wrong("-s -1", "-s: -1 is out of range");
}

TEST(a_passphrase_is_not_to_be_seen)
{
	static const struct {
		const char *line, *left;
	} rows[] = {
		{ "word -Z sesame -t TCP_RR x -- -P 1,2 y",
		  "program word -Z * -t TCP_RR x -- -P 1,2 y" },
		{ "-Zsesame", "program -Z*" },
		{ "-4Zsesame sesam", "program -4Z* sesam" },
		{ "--passphrase sesame -l 3", "program --passphrase * -l 3" },
		{ "--passphrase=sesame", "program --passphrase=*" },
		{ "-Z x -Z sesame", "program -Z * -Z *" },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct words w;
		struct np_cli cli;
		struct np_err err;

		assert_int_equal(parse(rows[i].line, &cli, &w, &err), NP_OK);
		assert_string_equal(cli.target.passphrase, "sesame");
		assert_string_equal(cli.command_line, rows[i].left);
		assert_null(memmem(w.text, sizeof(w.text), "sesame", strlen("sesame")));
		np_cli_free(&cli);
		assert_string_equal(cli.target.passphrase, "");
	}
}

/* ---- Test options ---- */

TEST(what_stands_behind_the_dashes_is_the_tests)
{
	const struct np_cli *cli = parsed("-P 0 -- -P 5000,6000 -l 3");

	assert_int_equal(cli->output.headers, 0);
	assert_int_equal(cli->plan.near.sock.port, 5000);
	assert_int_equal(cli->plan.far.sock.port, 6000);
	assert_int_equal(cli->plan.ttl, 3);
	assert_int_equal(cli->plan.length, 10);
	assert_int_equal(parsed("-- -P 5000")->plan.far.sock.port, 5000);
	assert_int_equal(parsed("-- -P ,6000")->plan.near.sock.port, 0);
	assert_wrong("-t STREAM_RR -- -P 1", "test option of STREAM_RR: -P: no such option");
	assert_wrong("-- --x", "test option of TCP_STREAM: --x: no such option");
	assert_wrong("-- -e 0", "-e: 0 is not a time-out (1 to 3600 seconds)");
}

/* -m names the local size first, -M the remote one. */
TEST(sizes_have_the_order_of_netperf)
{
	const struct np_cli *cli = parsed("-- -m 10,20 -M 30,40");

	assert_int_equal(cli->plan.near.call.send_size, 10);
	assert_int_equal(cli->plan.far.call.send_size, 20);
	assert_int_equal(cli->plan.far.call.recv_size, 30);
	assert_int_equal(cli->plan.near.call.recv_size, 40);
	assert_int_equal(parsed("-- -m 10")->plan.far.call.send_size, -1);
	assert_int_equal(parsed("-- -M 30")->plan.near.call.recv_size, -1);
	cli = parsed("-- -s 1K -S 2K,4K -r 5");
	assert_int_equal(cli->plan.near.sock.sndbuf, 1024);
	assert_int_equal(cli->plan.near.sock.rcvbuf, 1024);
	assert_int_equal(cli->plan.far.sock.sndbuf, 2048);
	assert_int_equal(cli->plan.far.sock.rcvbuf, 4096);
	assert_int_equal(cli->plan.request, 5);
	assert_int_equal(cli->plan.response, 5);
	assert_wrong("-- -m 0", "-m: 0 is out of range");
	assert_wrong("-- -r 1,0", "-r: 0 is out of range");
}

/* As scripts have them: netperf makes do with atoi(3). */
TEST(numbers_may_be_as_netperf_reads_them)
{
	static const char *const quiet[] = {
		"-l 1.0 -v 1.0 -i 10.0,3.0 -I 95.0%,5% -T 0.0 -b 4.0 -s 0.0 -W 2.0",
		"-t UDP_RR -- -r 1.0,64.0K -e 2.0",
		"-t TCP_STREAM -- -m 1400.0 -M ,8.0K -s 64.0K -G 1400.0 -b 0.0",
	};
	const struct np_cli *cli;

	assert_true(parsed("-t TCP_CC -- -xD")->plan.nodelay);
	assert_null(strstr(parsed("-- -x 5")->notes.text, "5: ignored")); /* it was an argument */
	for (size_t i = 0; i < LEN(quiet); i++) {
		assert_string_equal(parsed(quiet[i])->notes.text, "");
	}
	cli = parsed("-I 95%");
	assert_int_equal(cli->confidence.level, 95);
	assert_true(cli->confidence.width > 94.9 && cli->confidence.width < 95.1); /* sic */
	assert_string_equal(cli->notes.text, "");
	cli = parsed("-t TCP_RR -- -b 2.5");
	assert_int_equal(cli->plan.burst, 2);
	assert_has(cli->notes.text, "-b 2.5: read as 2");
	cli = parsed("-P 0-t TCP_RR");
	assert_int_equal(cli->output.headers, 0);
	assert_string_equal(cli->test, "TCP_STREAM");
	assert_has(cli->notes.text, "-P 0-t: read as 0");
	assert_wrong("-l 0.5x", "0.5x is not a length");
	assert_wrong("-l 1e6", "1e6 is not a length");
	assert_wrong("-l 1.5k", "1.5k is not a length");
	assert_wrong("-l 5us", "5us is not a length");
	assert_wrong("-- -m 1.5K", "1.5K is not a number");
}

/* -o, -O and -k are other options before the dashes than behind them. */
TEST(selectors_before_the_dashes_change_nothing)
{
	static const char *const lines[] = { "-O THROUGHPUT,P99_LATENCY", "-o throughput", "-k all",
					     "-k THROUGHPUT;PROTOCOL" };

	for (size_t i = 0; i < LEN(lines); i++) {
		const struct np_cli *cli = parsed(lines[i]);

		assert_int_equal(cli->output.style, NP_STYLE_CLASSIC);
		assert_int_equal(cli->plan.far.call.send_offset, 0);
		assert_int_equal(cli->plan.near.call.send_offset, 0);
		assert_int_equal(cli->plan.near.call.dirty, -1);
		assert_has(cli->notes.text, "output selectors are a test option (-- -");
	}
	assert_has(parsed("-O MIN_LAETENCY")->notes.text, "test option (-- -O NAMES)");
	assert_has(parsed("-O nonsense")->notes.text, "test option (-- -O NAMES)");
	assert_wrong("-O x", "x is not a number");
	assert_int_equal(parsed("-O 16.0")->plan.far.call.send_offset, 16);
}

TEST(people_get_one_table_and_no_other_style)
{
	assert_int_equal(parsed("--human")->output.style, NP_STYLE_HUMAN);
	assert_int_equal(parsed("--human --explain")->output.style, NP_STYLE_HUMAN);
	assert_wrong("--human -- -k", "--human: together with -k, -o or -O (choose one of them)");
	assert_wrong("--human -- -o THROUGHPUT", "--human: together with -k, -o or -O");
	assert_wrong("--human --json", "--human: --json prints the document in its place");
}

TEST(latency_is_a_table_where_no_figures_are_selected)
{
	const struct np_cli *cli;

	cli = parsed("-j");
	assert_true(cli->output.latency && !cli->output.times);
	cli = parsed("--latency -t TCP_RR");
	assert_true(cli->output.latency && cli->output.times);
	cli = parsed("--latency -- -k THROUGHPUT");
	assert_true(cli->output.latency && !cli->output.times);
}

/* netperf passes over these without a word. */
TEST(what_means_nothing_is_said)
{
	static const struct {
		const char *line, *note;
	} cases[] = {
		{ "192.0.2.1", "192.0.2.1: ignored: unexpected argument (-H names a host)" },
		{ "-t TCP_RR -r 100,200", "(-- -r REQUEST,RESPONSE)" },
		{ "-S 64K", "64K: ignored: -S has no argument here; the sizes of the remote" },
		{ "-d recv", "recv: ignored: -d has no argument here; the direction" },
		{ "-d -l 5 recv", "recv: ignored: unexpected argument" },
		{ "-s 64K", "-s 65536: waits for that many seconds before the test; the sizes" },
		{ "-P 5001", "-P 5001: shows headers, as 1 does; the ports" },
		{ "-t TCP_RR -b 16", "-b 16: paces, 16 transactions a millisecond" },
		{ "-- -m 1000 more", "more: ignored: unexpected argument of the test" },
		{ "-- -x", "-x: ignored, as in netperf: the test has no such option" },
		{ "-t TCP_CC -- -xD", "-x: ignored, as in netperf" },
		{ "-t TCP_CC -- -o THROUGHPUT",
		  "-o: ignored, as in netperf: the test has no such option (its figures are in "
		  "--json)" },
		{ "-- -k THROUGHPUT,P95_LATENCIE",
		  "P95_LATENCIE: there is no such output selector, the "
		  "nearest is P95_LATENCY" },
		{ "-- -k PRIO_LATENCY,UUID",
		  "PRIO_LATENCY: there is no such output selector, the nearest" },
		{ "-- -k THROUGHPUT,P101_LATENCY",
		  "P101_LATENCY: not a percentile (above 0 and at most 100, " },
		{ "-- -k THROUGHPUT,CONNECT_P99.1234567",
		  "CONNECT_P99.1234567: not a percentile (" },
		{ "-- -o thruput,UUID", "thruput: there is no such output selector, the nearest is "
					"THROUGHPUT" },
		{ "-- -O XYZZY;THROUGHPUT", "XYZZY: there is no such output selector (" },
		{ "-f Z", "-f Z: not a unit (" },
		{ "-Y foo", "-Y foo: ignored, as in netperf: not a type of service (" },
		{ "-H a,127.0.0.2",
		  "-H: 127.0.0.2 is not an address family (4 or 6): AF_UNSPEC, as in netperf" },
		{ "-L a,e", "-L: e is not an address family (4 or 6): AF_UNSPEC, as in netperf" },
		{ "-- -L a,fe80::6",
		  "-L: fe80::6 is not an address family (4 or 6): AF_INET6, as in" },
		{ "--beside UDP_RR:1 --beside UDP_RR:2",
		  "--beside UDP_RR:1: ignored: the one after it counts" },
	};
	static const char *const quiet[] = { "-f G",
					     "-S -d -s 60 -P 1",
					     "-t TCP_RR -b 16 -w 10ms",
					     "-t TCP_RR -- -b 16",
					     "-b 16",
					     "-f x",
					     "-f ?",
					     "-Y ef,0x10 -H a,AF_INET6 -L b,inet",
					     "-H a,4 -L b,unspec -- -H c,ipv6 -L d,0",
					     "-r -t TCP_RR -- -r 100,200",
					     "-- -k throughput,Elapsed_Time",
					     "-- -k P95_LATENCY,p99.99_latency,connect_p5",
					     "-- -o all" };

	for (size_t i = 0; i < LEN(cases); i++) {
		assert_has(parsed(cases[i].line)->notes.text, cases[i].note);
	}
	for (size_t i = 0; i < LEN(quiet); i++) {
		assert_string_equal(parsed(quiet[i])->notes.text, "");
	}
}

TEST(what_a_file_of_selectors_names_in_vain_is_said)
{
	static const char text[] = "THROUGHPUT, THROUGHPUT\n\nUUID";
	char path[32], line[64];

	temp_file(path, text, strlen(text), 0600);
	snprintf(line, sizeof(line), "-- -k %s", path);
	assert_has(parsed(line)->notes.text,
		   "' THROUGHPUT': there is no such output selector, the nearest is THROUGHPUT");
	unlink(path);
}

/* A result without any figure is none. */
TEST(selectors_that_name_nothing_are_refused)
{
	assert_wrong("-- -o thruput,foo",
		     "thruput: there is no such output selector, the nearest is "
		     "THROUGHPUT (--list-figures shows them)");
	assert_wrong("-- -k ;foo", "foo: there is no such output selector (");
	assert_int_equal(parsed("-- -o ;PROTOCOL")->output.selection.count[1], 1);
}

TEST(a_port_range_must_be_one)
{
	const struct np_cli *cli = parsed("-- -p 10000,20000");

	assert_int_equal(cli->plan.port_min, 10000);
	assert_int_equal(cli->plan.port_max, 20000);
	cli = settled("-t TCP_CC -- -p 0,0");
	assert_int_equal(cli->plan.port_min + cli->plan.port_max, 0);
	cli = settled("-t TCP_CRR -- -p 0,30000");
	assert_int_equal(cli->plan.port_min, 1024);
	assert_int_equal(cli->plan.port_max, 30000);
	cli = settled("-t TCP_CRR -- -p 30000,20000");
	assert_int_equal(cli->plan.port_min, 30000);
	assert_int_equal(cli->plan.port_max, 30000);
	assert_has(cli->notes.text, "-p 30000,20000: all connections come from port 30000");
	settled("-t TCP_RR -- -p 70000,0");
}

/* -1 is netperf's mark of what was not given. */
TEST(minus_one_leaves_the_default)
{
	const struct np_cli *cli = settled("-t TCP_RR -T -1,0 -n -1 -k -1 -- -r 5,-1");

	assert_int_equal(cli->plan.near.place.cpu, -1);
	assert_int_equal(cli->plan.far.place.cpu, 0);
	assert_int_equal(cli->plan.request, 5);
	assert_int_equal(cli->plan.response, 1);
	assert_int_equal(settled("-- -m -1 -M -1 -G -1")->plan.near.call.send_size, -1);
	assert_true(settled("-I 99,0")->confidence.width == 5);
	assert_wrong("-- -m -2", "-m: -2 is out of range (1 to");
}

/* Web pages and PDF have it in the place of a hyphen, or of a blank. */
TEST(what_looks_like_a_hyphen_is_named)
{
	assert_wrong("\xe2\x80\x93H host", "\xe2\x80\x93H: U+2013 is not a hyphen (type -H)");
	assert_wrong("\xe2\x80\x94"
		     "flows 4 -q",
		     "U+2014 is not a hyphen (type --flows)");
	assert_wrong("-l 1 \xe2\x80\x94 -m 1", "U+2014 is not a hyphen (type --)");
	assert_wrong("-- \xe2\x88\x92m 1", "U+2212 is not a hyphen (type -m)");
	assert_wrong("--\xe2\x80\x8blatency", "(U+200B is invisible)");
	assert_wrong("-l 5\xc2\xa0",
		     "is not a length (try 10, 1m30s, 500ms or -1000000) (U+00A0 is not a blank)");
	assert_wrong("-- -k MEAN_LATENCY\xc2\xa0,",
		     "there is no such output selector: U+00A0 is not a blank");
	assert_string_equal(parsed("-B \xe2\x80\x93 -H h\xc3\xb6st")->output.brand, "\xe2\x80\x93");
}

TEST(names_have_an_end)
{
	const struct np_cli *cli = parsed("-- -K reno,cubic");

	assert_string_equal(cli->plan.near.sock.cong, "reno");
	assert_string_equal(cli->plan.far.sock.cong, "cubic");
	assert_string_equal(parsed("-- -K reno")->plan.far.sock.cong, "reno");
	assert_string_equal(parsed("-- -K abcdefghijklmno")->plan.near.sock.cong,
			    "abcdefghijklmno");
	assert_wrong("-- -K abcdefghijklmnop", "a name of more than 15 characters");
	assert_wrong("-- -K ,abcdefghijklmnop", "a name of more than 15 characters");
}

/* ---- What follows ---- */

TEST(figures_are_found_by_name)
{
	const struct np_cli *cli = parsed("-- -k throughput,PROTOCOL");

	assert_int_equal(cli->output.style, NP_STYLE_KEYVAL);
	assert_int_equal(cli->output.selection.count[0], 2);
	assert_int_equal(cli->output.selection.id[0][0], NP_M_THROUGHPUT);
	assert_int_equal(cli->output.selection.id[0][1], NP_M_PROTOCOL);
	assert_int_equal(parsed("-- -o THROUGHPUT -O")->output.style, NP_STYLE_COLUMNS);
	assert_null(parsed("-- -o THROUGHPUT -O")->output.selectors);
	assert_null(parsed("-- -k -D")->output.selectors);
	assert_true(parsed("-- -k -D")->plan.nodelay);
	/* The latencies are collected when one is named, the algorithm's name likewise. */
	assert_true(parsed("-- -o p99_latency")->output.selection.latency);
	assert_true(parsed("-- -o all")->output.selection.congestion);
	assert_false(parsed("-- -o throughput")->output.selection.latency);
	/* Unknown names are accepted, even where there is no other one. */
	assert_int_equal(parsed("-- -o THROUGHPUT,NONE_SUCH")->output.selection.id[0][1],
			 NP_SELECT_UNKNOWN);
}

TEST(confidence_follows_netperfs_rules)
{
	const struct np_cli *cli = parsed("-i 5");

	assert_int_equal(cli->confidence.max, 5);
	assert_int_equal(cli->confidence.min, 5);
	assert_int_equal(cli->confidence.level, 99);
	assert_true(cli->confidence.width == 5);
	cli = parsed("-i 2,100 -I 95,7 -r");
	assert_int_equal(cli->confidence.max, 30);
	assert_int_equal(cli->confidence.min, 30);
	assert_int_equal(cli->confidence.level, 95);
	assert_true(cli->confidence.width == 7 && cli->confidence.result_only);
	cli = parsed("-I 99,");
	assert_int_equal(cli->confidence.min, 3);
	assert_int_equal(cli->confidence.max, 10);
	assert_true(cli->confidence.width == 5);
	/* A level without a comma is the width as well. */
	assert_true(parsed("-I 95")->confidence.width == 95);
	assert_int_equal(parsed("-i 3 -I ,7")->confidence.level, 99);
	assert_wrong("-I 99,wide", "-I: wide is not a width");
}

TEST(pacing_has_times_and_bursts)
{
	const struct np_cli *cli = parsed("-w 10,500us -b 16,2");

	assert_int_equal(cli->plan.near.call.interval_us, 10000);
	assert_int_equal(cli->plan.far.call.interval_us, 500);
	assert_int_equal(cli->plan.near.call.interval_burst, 16);
	assert_int_equal(cli->plan.far.call.interval_burst, 2);
	assert_int_equal(parsed("-w 2s")->plan.near.call.interval_us, 2000000);
	assert_int_equal(parsed("-w 3ms")->plan.near.call.interval_us, 3000);
	assert_int_equal(parsed("-b 10G")->plan.near.call.interval_burst, UINT32_MAX);
	assert_int_equal(parsed("-b ,4")->plan.near.call.interval_burst, 0);
	assert_wrong("-w soon", "-w: soon is not an interval");
	assert_wrong("-b -1", "-b: -1 is not a number of operations");
}

TEST(interim_results_have_a_time)
{
	assert_true(parsed("")->output.interim_s == 0);
	assert_true(parsed("-D 0.5")->output.interim_s == 0.5);
	assert_true(parsed("-D -0.20")->output.interim_s == 0.2);
	assert_true(parsed("-D 2,1000")->output.interim_s == 2);
	assert_true(parsed("-D ,1000")->output.interim_s == 1);
	assert_wrong("-D often", "-D: often is not a number of seconds");
}

/* A rate behind -c and -C is taken as netperf takes it, another word is ignored. */
TEST(cpu_options_may_have_a_rate)
{
	const struct np_cli *cli = parsed("-c 100 -C -P 0");

	assert_true(cli->plan.near.place.measure_cpu && cli->plan.far.place.measure_cpu);
	assert_int_equal(cli->output.headers, 0);
	assert_int_equal(parsed("-cCd -d")->output.debug, 2);
}

/* What OMNI's options make of it: direction, connections, protocol. */
static const struct np_bench *
chosen(const char *line)
{
	return &settled(line)->bench;
}

static void
assert_unfit(const char *line, const char *part)
{
	struct np_cli cli = *parsed(line);
	struct np_err err;

	assert_int_equal(np_cli_settle(&cli, &err), NP_EUSAGE);
	assert_has(err.msg, part);
}

TEST(omni_tests_are_made_of_options)
{
	static const struct {
		const char *options;
		const struct np_pattern *pattern;
		int role;
	} rows[] = {
		{ "", &np_pattern_stream, NP_LEAD },
		{ "-d recv", &np_pattern_stream, NP_FOLLOW },
		{ "-d MAERTS", &np_pattern_stream, NP_FOLLOW },
		{ "-d rr", &np_pattern_rr, NP_LEAD },
		{ "-d send|recv", &np_pattern_rr, NP_LEAD },
		{ "-d 6", &np_pattern_rr, NP_LEAD },
		{ "-d CRR", &np_pattern_stream, NP_LEAD },
		{ "-c", &np_pattern_cc, NP_LEAD },
		{ "-c -d rr", &np_pattern_crr, NP_LEAD },
		{ "-r 10", &np_pattern_rr, NP_LEAD },
		{ "-M 100", &np_pattern_stream, NP_LEAD },
		{ "-m ,100", &np_pattern_stream, NP_FOLLOW },
		{ "-d send -r 10", &np_pattern_stream, NP_LEAD },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		const struct np_bench *b;
		char line[80];

		snprintf(line, sizeof(line), "-t omni -- %s", rows[i].options);
		b = chosen(line);
		fail_if(b->pattern != rows[i].pattern || b->near_role != rows[i].role,
			"%s: %s, role %d", line, b->pattern->name, b->near_role);
	}
	assert_string_equal(chosen("-t omni -- -c -d rr")->title, "OMNI Connect|Send|Recv TEST");
	assert_unfit("-t omni -- -c -d send", "-c: connections need requests");
	assert_unfit("-t omni -- -c -d rr -T udp", "-c: UDP has no connections");
}

TEST(protocols_are_chosen_by_name)
{
	assert_string_equal(chosen("-t omni -- -T UDP")->transport->name, "UDP");
	assert_true((chosen("-t omni -- -T UDP")->flags & NP_B_ROUTE_OFF) != 0);
	assert_string_equal(chosen("-t TCP_STREAM -- -T udp")->transport->name, "UDP");
	assert_string_equal(chosen("-t omni -- -T bogus")->transport->name, "IP Default");
	assert_false(chosen("-t omni -- -t dgram")->transport->connected);
	assert_unfit("-t omni -- -T sdp", "-T: sdp is not in this version");
	assert_unfit("-t omni -- -T sctp -t seqpacket", "-t: seqpacket sockets");
	/* The direction of a named test is its own. */
	assert_ptr_equal(chosen("-t TCP_STREAM -- -d rr")->pattern, &np_pattern_stream);
	assert_ptr_equal(chosen("-t TCP_RR -- -c")->pattern, &np_pattern_crr);
}

static char
unit_of(const char *line)
{
	return np_cli_unit(settled(line))->letter;
}

TEST(the_unit_goes_by_the_test)
{
	assert_int_equal(unit_of(""), 'm');
	assert_int_equal(unit_of("-t TCP_RR"), 'x');
	assert_int_equal(unit_of("-t TCP_CRR -f k"), 'k');
	assert_int_equal(unit_of("-f x"), 'm');
	assert_int_equal(unit_of("-f G"), 'G');
	assert_int_equal(unit_of("-f ?"), 'm');
	assert_int_equal(unit_of("-f !"), 'K');
	assert_int_equal(unit_of("-t omni -- -d rr"), 'x');
	assert_int_equal(unit_of("-t omni"), 'm');
}

TEST(a_test_settles_what_was_left_open)
{
	const struct np_cli *cli = settled("-t TCP_RR");

	assert_int_equal(cli->plan.request, 1);
	assert_int_equal(cli->plan.response, 1);
	assert_false(cli->plan.no_route);
	assert_true(cli->plan.active);
	cli = settled("-t UDP_STREAM -- -r 9");
	assert_int_equal(cli->plan.request, -1);
	assert_true(cli->plan.no_route);
	assert_false(settled("-t UDP_STREAM -- -R 1")->plan.no_route);
	cli = settled("-b 4");
	assert_int_equal(cli->plan.near.call.interval_us, 1000);
	assert_int_equal(cli->plan.far.call.interval_us, 0);
	cli = settled("-j -v 2");
	assert_true(cli->output.histogram && cli->plan.time_calls);
	cli = settled("-T 65535");
	assert_true(cli->bound && cli->unbound);
}

/* One number is netperf's; a list is of either end. */
TEST(processors_may_be_lists)
{
	const struct np_place *near = &parsed("")->plan.near.place;
	const struct np_place *far = &parsed("")->plan.far.place;
	const struct np_cli *cli;

	near = &parsed("-T 0-3,4+6")->plan.near.place;
	assert_int_equal(near->cpu, -1);
	assert_int_equal(near->turns.count, 4);
	assert_int_equal(near->turns.cpu[3], 3);
	assert_int_equal(far->cpu, -1);
	assert_int_equal(far->turns.count, 2);
	assert_int_equal(far->turns.cpu[1], 6);
	parsed("-T 0-2:2");
	assert_int_equal(near->turns.count, 2);
	assert_int_equal(far->turns.count, 2);
	parsed("-T ,1-2");
	assert_int_equal(near->turns.count, 0);
	assert_int_equal(far->turns.count, 2);
	parsed("-T 5,1-2");
	assert_int_equal(near->cpu, 5);
	parsed("-T 0-3,4+6 -T 1,2");
	assert_int_equal(near->turns.count + far->turns.count, 0);
	assert_int_equal(near->cpu, 1);
	assert_int_equal(far->cpu, 2);
	parsed("-T 1,2 -T ,0-1");
	assert_int_equal(near->cpu, 1);
	assert_int_equal(far->cpu, -1);
	assert_wrong("-T 0-", "-T: 0- is not a list of processors (try 0-3");
	assert_wrong("-T 3-1", "3-1 is not a list");
	assert_wrong("-T 0,1+x", "1+x is not a list");
	assert_wrong("-T 0-1024", "more than 1024");
	assert_wrong("-T 9+7+5+3+1+0+8191+44+33+22+11+100", "longer than 31 characters");
	assert_wrong("-T ,", "holds no value");
	assert_unfit("-T 8190+8191,0", "-T: processor 8190 is not available at this end");
	/* One worker at the far end needs no list, which old daemons could not be told. */
	cli = settled("-T ,8190+8191");
	assert_int_equal(cli->plan.far.place.cpu, 8190);
	assert_int_equal(cli->plan.far.place.turns.count, 0);
	cli = settled("-T ,8190+8191 --flows 2");
	assert_int_equal(cli->plan.far.place.cpu, -1);
	assert_int_equal(cli->plan.far.place.turns.count, 2);
}

/* ---- Several connections ---- */

TEST(flows_and_engines_arrive)
{
	const struct np_cli *cli = parsed("");

	assert_int_equal(cli->plan.flows, 1);
	assert_null(cli->plan.near.place.engine);
	assert_null(cli->plan.far.place.engine);
	cli = parsed("--flows 10000 --engine sync,EPOLL");
	assert_int_equal(cli->plan.flows, 10000);
	assert_ptr_equal(cli->plan.near.place.engine, np_engine_find("sync"));
	assert_ptr_equal(cli->plan.far.place.engine, np_engine_find("epoll"));
	cli = parsed("--engine epoll");
	assert_ptr_equal(cli->plan.near.place.engine, cli->plan.far.place.engine);
	cli = parsed("--engine ,sync");
	assert_null(cli->plan.near.place.engine);
	assert_ptr_equal(cli->plan.far.place.engine, np_engine_find("sync"));
	assert_true(parsed("--engine list")->list_engines);
	assert_wrong("--flows 0", "1 to 10000");
	assert_wrong("--flows 10001", "1 to 10000");
	assert_wrong("--engine steam", "--engine list");
	assert_wrong("--engine sync,steam", "steam is not an engine");
}

TEST(what_excludes_flows_is_named)
{
	static const char *const single[] = { "-t TCP_MSS", "-t DLCL_RR", "-t DLCL_STREAM" };
	char line[100];

	for (size_t i = 0; i < LEN(single); i++) {
		snprintf(line, sizeof(line), "--flows 2 %s", single[i]);
		assert_unfit(line, "--flows: ");
		assert_unfit(line, "has one data connection");
		snprintf(line, sizeof(line), "--flows 1 %s", single[i]);
		chosen(line);
	}
	assert_unfit("--flows 7 -t OMNI --engine ,epoll -- -d recv -T udp -P ,65530",
		     "is a session with one connection");
	assert_unfit("--flows 2 -N -H 127.0.0.1", "-N");
	assert_unfit("--flows 2 -- -P 5000,6000", "port 5000");
	assert_unfit("--flows 2 --engine sync",
		     "--engine sync: not for TCP_STREAM with --flows 2: it drives one connection");
	assert_unfit("--flows 2 --engine ,sync", "--engine ,sync");
}

/* Connections of IP that last until the end, several of them. */
TEST(what_can_be_spread)
{
	static const char *const others[] = {
		"-t UDP_RR",     "-t TCP_CRR", "-t STREAM_RR",    "-t DLCL_RR",
		"-t UDP_STREAM", "-t TCP_CC",  "--both",          "-- -F",
		"-t VSOCK_RR",   "-t TCP_MSS", "-N -H 127.0.0.1",
	};
	char line[100];

	assert_false(parsed("")->plan.spread);
	chosen("--spread --flows 2");
	chosen("--spread --flows 2 -t TCP_SENDFILE");
	chosen("--spread --flows 2 -t TCP_MAERTS --threads 2");
	chosen("--spread --flows 2 -t OMNI -- -d rr");
	assert_unfit("--spread", "--spread: one data connection");
	assert_unfit("--spread --flows 2 -t TCP_CRR", "--spread: TCP_CRR has no lasting");
	for (size_t i = 0; i < LEN(others); i++) {
		snprintf(line, sizeof(line), "--spread --flows 2 %s", others[i]);
		assert_unfit(line, "-");
	}
}

/* What no session can have several of has as many sessions. */
TEST(other_flows_are_sessions)
{
	static const char *const others[] = {
		"-t TCP_CRR",       "-t TCP_CC", "-t UDP_STREAM",
		"-t TCP_SENDFILE",  "-t DG_RR",  "-t OMNI -- -T udp -d send",
		"-t STREAM_STREAM", "-t TCP_RR", "-t OMNI -- -d rr -c",
	};
	char line[100];

	for (size_t i = 0; i < LEN(others); i++) {
		snprintf(line, sizeof(line), "--flows 2 %s", others[i]);
		chosen(line);
	}
}

TEST(streams_that_either_end_can_send_go_both_ways)
{
	static const char *const others[] = { "TCP_RR",        "TCP_CRR",     "TCP_SENDFILE",
					      "STREAM_STREAM", "DLCL_STREAM", "VSOCK_STREAM" };
	char line[100];

	chosen("--both");
	chosen("--both -t TCP_MAERTS --flows 10");
	chosen("--both -t UDP_STREAM");
	chosen("--both -t OMNI -- -d recv");
	for (size_t i = 0; i < LEN(others); i++) {
		snprintf(line, sizeof(line), "--both -t %s", others[i]);
		assert_unfit(line, "--both: ");
	}
	assert_unfit("--both -t OMNI -- -d rr", "--both: ");
	assert_unfit("--both -N -H 127.0.0.1", "-N");
	chosen("--both --explain");
}

TEST(some_tests_may_have_several_connections)
{
	static const struct {
		const char *line;
		bool several;
	} rows[] = {
		{ "-t TCP_STREAM", true },
		{ "-t TCP_MAERTS", true },
		{ "-t TCP_RR", true },
		{ "-t UDP_RR", true },
		{ "-t OMNI -- -d rr -T udp", true },
		{ "-t OMNI -- -d recv", true },
		{ "-t UDP_STREAM", true },
		{ "-t OMNI -- -d recv -T udp", true },
		{ "-t OMNI -- -d recv -T udplite", true },
		{ "--flows 10000 -t OMNI -- -d recv -T udp", true },
		{ "--flows 6 -t OMNI -- -d recv -T udp -P ,65530", true },
		{ "--flows 7 -t OMNI -- -d recv -T udp -P ,65530", false }, /* 65536 is none */
		{ "-t TCP_SENDFILE", true },
		{ "-t STREAM_STREAM", true },
		{ "-t DG_RR", true },
		{ "-t VSOCK_RR -H 1", true },
		{ "-t TCP_MSS", false },
		{ "-t TCP_CRR", true },
		{ "-t TCP_CC", true },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		assert_int_equal(np_plan_several(&settled(rows[i].line)->plan), rows[i].several);
	}
}

TEST_MAIN()
