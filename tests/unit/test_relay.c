/*
 * Lines of sessions on their way to the log: whose they are, what they may say, and how many.
 */
#include "netserver/lines.h"

#include <sys/socket.h>

#include "tests/lib/check.h"
#include "tests/lib/sockets.h"

struct seen {
	unsigned count;
	enum np_log_level level;
	bool is_event;
	char line[NP_LOG_EVENT];
};

static void
note(void *ctx, enum np_log_level level, bool is_event, const char *line)
{
	struct seen *s = ctx;

	s->count++;
	s->level = level;
	s->is_event = is_event;
	snprintf(s->line, sizeof(s->line), "%s", line);
}

/* One line of process 4711's, with nothing before it. */
static void
write_one(struct seen *seen, enum np_log_level of_log, int level, bool is_event, const char *text,
	  bool quiet)
{
	const struct np_log log = { .level = of_log, .sink = note, .ctx = seen };
	struct ns_line line = { .level = level, .is_event = is_event };
	struct ns_lines all = { .left_out = 0 };
	struct ns_session own = { .pid = 4711 };

	memset(seen, 0, sizeof(*seen));
	snprintf(line.text, sizeof(line.text), "%s", text);
	ns_relay_write(&log, &all, &own, &line, quiet);
}

TEST(lines_are_marked_with_their_process)
{
	static const struct {
		bool is_event, stays_event;
		const char *text, *line;
	} rows[] = {
		{ true, true, "event=session-end peer=::1",
		  "process=4711 event=session-end peer=::1" },
		{ false, false, "a line", "process 4711: a line" },
		/* What only the daemon says, or looks like more than one. */
		{ true, false, "event=refused peer=::1", "process 4711: event=refused peer=::1" },
		{ true, false, "event=session-end x=y event=refused",
		  "process 4711: event=session-end x=y event=refused" },
		{ false, false, "two\nlines\x1b[2J", "process 4711: two?lines?[2J" },
		{ true, false, "", "process 4711: " },
	};
	struct seen seen;

	for (size_t i = 0; i < LEN(rows); i++) {
		write_one(&seen, NP_LOG_INFO, NP_LOG_INFO, rows[i].is_event, rows[i].text, false);
		assert_int_equal(seen.count, 1);
		assert_string_equal(seen.line, rows[i].line);
		assert_int_equal(seen.is_event, rows[i].stays_event);
	}
}

/* A client may have raised the level of its session, unless the daemon is quiet. */
TEST(levels_are_those_of_the_session)
{
	struct seen seen;

	write_one(&seen, NP_LOG_ERROR, NP_LOG_DEBUG, false, "x", false);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.level, NP_LOG_DEBUG);
	write_one(&seen, NP_LOG_ERROR, NP_LOG_DEBUG, false, "x", true);
	assert_int_equal(seen.count, 0);
	write_one(&seen, NP_LOG_INFO, NP_LOG_ERROR, false, "x", true);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.level, NP_LOG_ERROR);
	write_one(&seen, NP_LOG_INFO, 4711, false, "x", false);
	assert_int_equal(seen.level, NP_LOG_DEBUG);
	write_one(&seen, NP_LOG_INFO, -1, false, "x", true);
	assert_int_equal(seen.count, 0);
}

static unsigned
flood(struct ns_lines *all, struct ns_session *own, enum np_log_level of_log, int level,
      struct seen *seen)
{
	const struct np_log log = { .level = of_log, .sink = note, .ctx = seen };

	seen->count = 0;
	for (int i = 0; i < 3 * NS_LINES; i++) {
		struct ns_line line = { .level = level, .text = "x" };

		ns_relay_write(&log, all, own, &line, false);
	}
	return seen->count;
}

TEST(neither_a_session_nor_a_network_has_all_of_the_log)
{
	struct ns_session one = { .place = { 1, 1 } }, same = one, near = { .place = { 2, 1 } },
			  far = { .place = { 3, 3 } };
	struct ns_lines all = { .left_out = 0 };
	struct seen seen;

	assert_in_range(flood(&all, &one, NP_LOG_INFO, NP_LOG_INFO, &seen), NS_LINES,
			3 * NS_LINES - 1);
	/* Of a burst an address has half at most, and a network three quarters. */
	assert_true(flood(&all, &near, NP_LOG_INFO, NP_LOG_INFO, &seen) >= NS_LINES / 2);
	assert_true(flood(&all, &far, NP_LOG_INFO, NP_LOG_INFO, &seen) >= NS_LINES / 2);
	/* What the operator wants to see of others is there. */
	assert_true(flood(&all, &same, NP_LOG_DEBUG, NP_LOG_DEBUG, &seen) >= 2 * NS_LINES);
}

TEST(what_has_no_room_is_counted_and_told)
{
	struct ns_relay relay = { .type = 42 };
	struct ns_lines all = { .left_out = 0 };
	struct ns_session own = { .pid = 4711 };
	struct seen seen = { .count = 0 };
	const struct np_log log = { .level = NP_LOG_INFO, .sink = note, .ctx = &seen };
	struct ns_line line;
	FREED_BY(close_both) int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	relay.fd = pair[1];
	while (relay.dropped < 3) { /* nobody reads, and it does not wait */
		ns_relay_sink(&relay, NP_LOG_INFO, false, "line");
	}
	while (recv(pair[0], &line, sizeof(line), MSG_DONTWAIT) == sizeof(line)) {
		assert_int_equal(line.type, 42);
		assert_int_equal(line.dropped, 0);
		assert_string_equal(line.text, "line");
	}
	ns_relay_sink(&relay, NP_LOG_INFO, false, "again");
	assert_int_equal(relay.dropped, 0);
	assert_int_equal(recv(pair[0], &line, sizeof(line), MSG_DONTWAIT), sizeof(line));
	assert_int_equal(line.dropped, 3);
	ns_relay_write(&log, &all, &own, &line, false);
	assert_int_equal(seen.count, 2);
	assert_string_equal(seen.line, "process 4711: again");
	assert_int_equal(all.told, all.left_out);
	line.dropped = UINT32_MAX; /* a lie */
	ns_relay_write(&log, &all, &own, &line, false);
	assert_int_equal(all.left_out, 3 + NS_LINES);
}

TEST_MAIN()
