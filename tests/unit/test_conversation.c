/*
 * The two halves of the conversation with each other, and the client's half with daemons that do
 * not behave.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "bench/engine/engine.h"
#include "run/client_parts.h"
#include "run/trial.h"
#include "tests/lib/check.h"
#include "tests/lib/daemon.h"
#include "tests/lib/ends.h"
#include "tests/lib/root.h"
#include "tests/lib/session.h"
#include "tests/lib/sockets.h"
#include "wire/plan.h"

/* A daemon and its client, with all that a test of theirs takes. */
struct meeting {
	struct daemon d;
	struct np_client c;
	struct np_addr peer; /* of data */
	struct np_plan p;
	struct np_outcome out;
	struct np_err err;
};

/* Start a daemon that listens there, and connect to it. */
static void
meet_at(struct meeting *m, struct np_addr at, void (*script)(int fd))
{
	/* Scripts know no greetings. */
	struct np_target target = { .wants = { .version = NP_EXT_VERSION,
					       .caps = script == NULL ? NP_CAP_PLAN : 0 } };

	m->d = (struct daemon){
		.script = script, .sessions = 1, .at = at, .server.caps = NP_CAP_PLAN
	};
	daemon_begin(&m->d);
	np_addr_host(&at, target.host.text);
	snprintf(target.port, sizeof(target.port), "%s", m->d.port);
	memset(&m->c, 0, sizeof(m->c));
	memset(&m->out, 0, sizeof(m->out));
	m->err = (struct np_err){ .code = NP_OK };
	fail_if(np_client_connect(&m->c, &target, &m->err) != NP_OK, "%s", m->err.msg);
	assert_true(same_address(&m->c.used, &m->d.at));
}

static void
meet(struct meeting *m, int family, void (*script)(int fd))
{
	m->peer = loopback(family, 0);
	meet_at(m, m->peer, script);
}

static void
part(struct meeting *m)
{
	np_chan_close(&m->c.chan);
	daemon_end(&m->d);
	np_outcome_free(&m->out);
}

/* Or the test fails. */
static void
runs(struct np_client *c, const struct np_plan *p, const struct np_terms *terms,
     const struct np_addr *peer, struct np_outcome *out)
{
	struct np_err err;

	fail_if(np_client_run(c, p, terms, peer, out, &err) != NP_OK, "%s: %s", p->bench->name,
		err.msg);
}

/* ---- Whole conversations ---- */

static int64_t
count_for(const struct np_bench *b)
{
	return b->pattern->transactions ? 20 : 20000;
}

static void
check_outcome(const struct np_bench *b, const struct np_outcome *out)
{
	const struct np_counts *c = &out->tally.end.count;

	assert_true(out->measured);
	assert_true(!b->pattern->probe || out->tally.end.closing.mss > 0);
	assert_int_equal(out->cause, NP_BY_LOOP);
	if (b->pattern->transactions) {
		assert_int_equal(c->transactions, count_for(b));
	}
	if (!out->far.reported) {
		/* The report does without the daemon's word in connection tests only. */
		assert_true(b->pattern->connection_test);
		return;
	}
	if (b->code != NP_TCP_CC) {
		assert_int_equal(out->far.end.count.received, c->sent);
	}
	if (b->code == NP_OMNI) {
		assert_int_equal(out->far.end.count.sent, c->received);
	}
	assert_true(out->far.elapsed > 0);
}

static void
run_one(struct np_client *c, const struct np_bench *b, int family)
{
	struct np_outcome out;
	struct np_record record;
	struct np_addr peer;
	struct np_plan p;
	struct np_terms terms;

	client_params(&p, b, family, -count_for(b));
	terms = terms_for(&p);
	peer = peer_of(&p);
	runs(c, &p, &terms, &peer, &out);
	check_outcome(b, &out);
	np_report(&out, np_unit('m'), &record);
	assert_true(b->pattern->probe || np_record_get_real(&record, NP_M_THROUGHPUT) > 0);
	assert_true(np_record_get_real(&record, NP_M_ELAPSED_TIME) > 0);
	assert_true(record.value[NP_M_PROTOCOL].known);
	np_outcome_free(&out);
	np_outcome_free(&out);
}

static void
run_every_bench(bool by_plan)
{
	static const int families[] = { AF_INET, AF_INET6 };

	for (size_t f = 0; f < LEN(families); f++) {
		for (const struct np_bench *b = NULL;
		     has_family(families[f]) && (b = next_runnable(b)) != NULL;) {
			struct np_bench row = *b;
			struct meeting m;

			row.code = by_plan ? NP_PLAN : b->code;
			meet(&m, families[f], NULL);
			run_one(&m.c, &row, families[f]);
			part(&m);
			/* After a connection test the client may have hung up first. */
			assert_true(m.d.rc == NP_OK || b->pattern->connection_test);
		}
	}
}

TEST(every_bench_runs_over_both_families)
{
	run_every_bench(false);
}

/* What a plan can say is all that netperf's messages can. */
TEST(every_bench_runs_by_plan)
{
	run_every_bench(true);
}

TEST(a_plan_may_name_what_drives_the_daemons_end)
{
	static const char *const names[] = { "TCP_STREAM", "TCP_MAERTS", "TCP_RR", "UDP_RR" };
	struct meeting m;

	meet(&m, AF_INET, NULL);
	for (size_t i = 0; i < LEN(names); i++) {
		const struct np_bench *b = np_bench_find(names[i]);

		client_params(&m.p, b, AF_INET, -count_for(b));
		m.p.far.place.engine = np_engine_find("sync");
		m.p.ids = !m.p.transport->connected;
		runs(&m.c, &m.p, NULL, &m.peer, &m.out);
		check_outcome(b, &m.out);
		assert_string_equal(m.out.far.engine, "sync");
		assert_int_equal(m.out.far.flows, 1);
		assert_int_equal(m.out.far.established, 1);
		assert_int_equal(m.out.far.end.count.failed, 0);
		assert_int_equal(m.out.far.ids, m.p.ids);
		np_outcome_free(&m.out);
	}
	part(&m);
	assert_int_equal(m.d.rc, NP_OK);
}

static void
expect_no_plan(struct np_client *c, const struct np_plan *p, const char *words)
{
	struct np_addr peer = loopback(AF_INET, 0);
	FREED_BY(np_outcome_free) struct np_outcome out;
	struct np_err err = { .code = NP_OK };

	assert_int_equal(np_client_run(c, p, NULL, &peer, &out, &err), NP_ECONTROL);
	assert_int_equal(strncmp(err.msg, words, strlen(words)), 0);
	assert_has(err.msg, "does not support this; it is not Plumbline's");
}

/* A daemon of netperf's is asked for nothing that it does not know, and the option is named. */
TEST(a_plan_needs_a_daemon_of_ours)
{
	const struct np_bench *b = np_bench_find("TCP_STREAM");
	struct np_bench row = *b;
	struct meeting m;

	meet(&m, AF_INET, NULL);
	m.c.granted.caps = 0;
	client_params(&m.p, b, AF_INET, -1000);
	m.p.flows = 4;
	expect_no_plan(&m.c, &m.p, "--flows: the netserver at 127.0.0.1 port ");
	m.p.flows = 1;
	m.p.far.place.engine = np_engine_find("sync");
	expect_no_plan(&m.c, &m.p, "--engine: the netserver at 127.0.0.1 port ");
	client_params(&m.p, &row, AF_INET, -1000);
	row.code = NP_PLAN;
	expect_no_plan(&m.c, &m.p, "this test: the netserver at 127.0.0.1 port ");
	run_one(&m.c, b, AF_INET);
	part(&m);
	assert_int_equal(m.d.rc, NP_OK);
}

TEST(one_connection_carries_several_tests)
{
	static const char *const names[] = { "TCP_RR", "UDP_RR", "TCP_STREAM", "TCP_MAERTS",
					     "TCP_SENDFILE" };
	struct meeting m;

	meet(&m, AF_INET, NULL);
	for (size_t i = 0; i < LEN(names); i++) {
		run_one(&m.c, np_bench_find(names[i]), AF_INET);
	}
	part(&m);
	assert_int_equal(m.d.rc, NP_OK);
}

/* ---- Daemons that do not behave ---- */

static void
take_request(int fd)
{
	uint8_t frame[NP_FRAME_SIZE];

	get_bytes(fd, frame, sizeof(frame));
}

static void
answer_by(int fd, uint32_t code, int32_t word, uint32_t port)
{
	struct np_omni_response m = { .data_port = port };

	put_frame(fd, code, word, np_omni_response_layout, &m);
}

static void
answer_omni(int fd, int32_t word, uint32_t port)
{
	answer_by(fd, NP_OMNI + 1, word, port);
}

static void
say_error(int fd)
{
	take_request(fd);
	answer_omni(fd, EMSGSIZE, 0);
}

/* What a script says: a head and a port, or a text; set before its daemon starts. */
static struct given {
	uint32_t code;
	int32_t word;
	uint32_t port, ports, flows;
	const char *text;
} given;

static void
answer_as_given(int fd)
{
	take_request(fd);
	answer_by(fd, given.code, given.word, given.port);
	take_request(fd);
}

/* Answers with an errno and a reason, before it has read anything. */
static void
turn_away(int fd)
{
	const char *text = given.text;
	struct np_head head = { .code = NP_OMNI + 1, .word = EMSGSIZE };
	struct np_why why = { .magic = NP_WHY_MAGIC };
	uint8_t frame[NP_FRAME_SIZE];

	memcpy(why.text, text, strlen(text) < sizeof(why.text) ? strlen(text) : sizeof(why.text));
	np_frame_put(frame, &head, np_why_layout, &why);
	if (strlen(text) >= sizeof(why.text)) {
		memset(frame + 12, 'x', sizeof(frame) - 12); /* no end at all */
	}
	put_bytes(fd, frame, sizeof(frame));
}

static void
say_why(int fd)
{
	take_request(fd);
	turn_away(fd);
}

static void
leave_after_request(int fd)
{
	take_request(fd);
}

static void
leave_at_once(int fd)
{
}

static void
say_banner(int fd)
{
	static const char banner[] = "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n";

	put_bytes(fd, banner, sizeof(banner) - 1);
	take_request(fd);
}

/* More of a web page than a message has room for. */
static void
say_page(int fd)
{
	char page[NP_FRAME_SIZE];

	take_request(fd);
	memset(page, 'x', sizeof(page));
	memcpy(page, "HTTP/1.1 400 Bad Request\r\n", 26);
	put_bytes(fd, page, sizeof(page));
	take_request(fd);
}

static void
grant_closed_port(int fd)
{
	struct np_addr at;

	take_request(fd);
	close(bound_socket(AF_INET, SOCK_STREAM, &at));
	answer_omni(fd, 0, np_addr_port(&at));
	take_request(fd);
}

/* Grants a test, takes the data connection, and dies. */
static void
die_in_the_test(int fd)
{
	struct np_addr at;
	FREED_BY(close_fd) int listener = -1, data = -1;
	char byte;

	take_request(fd);
	listener = bound_socket(AF_INET, SOCK_STREAM, &at);
	answer_omni(fd, 0, np_addr_port(&at));
	data = accepted_from(listener);
	get_bytes(data, &byte, 1);
	shutdown(fd, SHUT_RDWR);
	/* The data connection stays: what ends the client is the control connection. */
	read_all(data);
}

/* Takes a stream to its end, and sends results with that head. */
static void
end_as_given(int fd)
{
	struct np_omni_results m = { .bytes_received = 1234 };
	struct np_addr at;
	int listener, data;

	take_request(fd);
	listener = bound_socket(AF_INET, SOCK_STREAM, &at);
	answer_omni(fd, 0, np_addr_port(&at));
	data = accepted_from(listener);
	read_all(data);
	close(data);
	close(listener);
	put_frame(fd, given.code, given.word, np_omni_results_layout, &m);
	take_request(fd);
}

#define TELLS(head, body) ((struct given){ .code = (head), .word = (body) })
#define SAYS(words) ((struct given){ .text = (words) })

/* The client fails as it should, in the words it should, and waits for no time-out before. */
static void
assert_fails(void (*script)(int fd), struct given says, int64_t length, enum np_errc code,
	     const char *words)
{
	struct meeting m;
	uint64_t begun;

	given = says;
	meet(&m, AF_INET, script);
	client_params(&m.p, np_bench_find("TCP_STREAM"), AF_INET, length);
	begun = np_now();
	np_client_run(&m.c, &m.p, NULL, &m.peer, &m.out, &m.err);
	assert_true(np_now() - begun < 10 * NP_SEC);
	fail_if(m.err.code != code || strstr(m.err.msg, words) == NULL,
		"error %d, \"%s\", not %d, \"%s\"", (int)m.err.code, m.err.msg, (int)code, words);
	part(&m);
}

TEST(a_daemon_that_refuses_is_quoted)
{
	assert_fails(say_error, TELLS(0, 0), 1, NP_ECONTROL, "error 90, Message too long");
	assert_fails(answer_as_given, TELLS(NP_OMNI + 1, NP_E_UNKNOWN_REQUEST), 1, NP_ECONTROL,
		     "does not know this test (error 998)");
	assert_fails(end_as_given, TELLS(NP_OMNI + 2, EIO), -1000, NP_ECONTROL,
		     "error 5, Input/output error");
}

/* A file of the client's counters that is a pipe: its first reader waits for somebody to write. */
static struct {
	char path[128];
	bool before_request;
} counters;

static void
refuse_when_counters_are_read(int fd)
{
	struct pollfd request = { .fd = fd, .events = POLLIN };
	int pipe = -1;

	for (uint64_t until = np_deadline(LONG_MS * NP_MSEC); np_now() < until && pipe < 0;) {
		pipe = open(counters.path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		if (poll(&request, 1, 1) > 0) {
			break;
		}
	}
	counters.before_request = pipe >= 0;
	unlink(counters.path);
	close(pipe);
	say_error(fd);
}

/* The time of a daemon without evidence runs from its answer on. */
TEST_WITH(collecting_begins_before_the_request, root_make, root_remove)
{
	const char *root = *state;
	struct meeting m;

	put_file(root, "/proc/net/snmp", "");
	snprintf(counters.path, sizeof(counters.path), "%s/proc/net/snmp", root);
	assert_int_equal(unlink(counters.path), 0);
	assert_int_equal(mkfifo(counters.path, 0600), 0);
	meet(&m, AF_INET, refuse_when_counters_are_read);
	m.c.collect = (struct np_evidence_wants){ .caps = NP_CAP_TEST, .root = root };
	client_params(&m.p, np_bench_find("TCP_CRR"), AF_INET, 1);
	np_client_run(&m.c, &m.p, NULL, &m.peer, &m.out, &m.err);
	assert_int_equal(m.err.code, NP_ECONTROL);
	part(&m);
	assert_true(counters.before_request);
}

/* ---- Answers to something else ---- */

TEST(an_answer_to_something_else_is_an_error)
{
	assert_fails(
	    answer_as_given, TELLS(NP_OMNI + 2, 0), 1, NP_EPEER,
	    "sent a message of code 99 instead of the response to the test's request, code 98");
	assert_fails(answer_as_given, TELLS(NP_OMNI, 0), 1, NP_EPEER, "of code 97 instead of");
	assert_fails(end_as_given, TELLS(NP_EXT_WELCOME, 0), -1000, NP_EPEER,
		     "of code 0x504c0011 instead of the test's results, code 99");
	assert_fails(end_as_given, TELLS(NP_TCP_STREAM + 2, 0), -1000, NP_EPEER,
		     "of code 12 instead of");
}

/* A GRANT with that many ports, for that many flows. */
static void
grant_wrongly(int fd)
{
	struct np_grant_message m;
	uint8_t message[NP_MESSAGE_MAX];

	free(next_message(fd));
	np_tagged_init(&np_tagged_grant, &m);
	for (m.ports.count = 0; m.ports.count < given.ports; m.ports.count++) {
		m.ports.at[m.ports.count] = 4711;
	}
	m.flows = given.flows;
	assert_true(put_bytes(fd, message, np_tagged_put(&np_tagged_grant, &m, message)));
}

/* A plan of four flows, which such a grant ends. */
static void
assert_grant_fails(uint32_t ports, uint32_t flows, const char *bench, const char *says)
{
	struct meeting m;

	given = (struct given){ .ports = ports, .flows = flows };
	meet(&m, AF_INET, grant_wrongly);
	m.c.granted.caps = NP_CAP_PLAN;
	m.c.chan.most = np_answer_most;
	client_params(&m.p, np_bench_find(bench), AF_INET, -1000);
	m.p.flows = 4;
	assert_int_equal(np_client_run(&m.c, &m.p, NULL, &m.peer, &m.out, &m.err), NP_EPEER);
	assert_has(m.err.msg, says);
	part(&m);
}

TEST(a_grant_of_more_flows_is_an_error)
{
	assert_grant_fails(1, 5, "TCP_STREAM", "waits for 5 data connections, not for 4");
}

TEST(a_grant_of_fewer_ports_than_flows_is_an_error)
{
	assert_grant_fails(3, 4, "UDP_RR", "names 3 ports for 4 data connections");
}

/* A RESULT, where a bag is due. */
static void
tell_wrongly(int fd)
{
	struct np_result_message m;
	uint8_t message[NP_MESSAGE_MAX];

	free(next_message(fd));
	np_tagged_init(&np_tagged_result, &m);
	put_bytes(fd, message, np_tagged_put(&np_tagged_result, &m, message));
	take_request(fd);
}

/* More than a bag may have, of which nothing is waited for. */
static void
tell_too_much(int fd)
{
	uint8_t head[NP_TAGGED_AT];

	free(next_message(fd));
	np_tagged_head(head, NP_EXT_BAG, NP_EXT_BYTES + 1);
	put_bytes(fd, head, sizeof(head));
	take_request(fd);
}

TEST(a_calibration_and_evidence_have_codes_of_their_own)
{
	struct np_calibrate_response rate;
	struct np_bag *bag;
	struct meeting m;

	given = TELLS(NP_SYSINFO_RESPONSE, 0);
	meet(&m, AF_INET, answer_as_given);
	assert_int_equal(np_client_calibrate(&m.c, &rate, &m.err), NP_EPEER);
	assert_has(m.err.msg, "of code 601 instead of the calibration, code 5");
	part(&m);

	meet(&m, AF_INET, tell_wrongly);
	m.c.granted.caps = NP_CAP_HOST;
	m.c.chan.most = np_answer_most;
	assert_int_equal(np_client_host(&m.c, &bag, &m.err), NP_EPEER);
	assert_has(m.err.msg, "of code 0x504c0032 instead of the evidence, code 0x504c0035");
	part(&m);

	meet(&m, AF_INET, tell_too_much);
	m.c.granted.caps = NP_CAP_HOST;
	m.c.chan.most = np_answer_most;
	assert_int_equal(np_client_host(&m.c, &bag, &m.err), NP_EPEER);
	assert_has(m.err.msg, "a message of type 0x504c0035 with 524289 bytes");
	part(&m);
}

TEST(results_bear_any_code_that_real_daemons_give_them)
{
	/* netperf's daemons on little-endian machines reverse the bytes of the response's code. */
	static const uint32_t codes[] = { (NP_OMNI + 1U) << 24, NP_OMNI + 1, NP_OMNI + 2 };

	for (size_t i = 0; i < LEN(codes); i++) {
		struct meeting m;

		given = TELLS(codes[i], 0);
		meet(&m, AF_INET, end_as_given);
		client_params(&m.p, np_bench_find("TCP_STREAM"), AF_INET, -1000);
		runs(&m.c, &m.p, NULL, &m.peer, &m.out);
		assert_int_equal(m.out.far.end.count.received, 1234);
		part(&m);
	}
}

TEST(a_daemon_that_says_why_is_quoted_with_care)
{
	char most[220] = " refuses: ", endless[300];

	assert_fails(say_why,
		     SAYS("message of 9 bytes: the daemon allows 8 (netserver --max-message)"), 1,
		     NP_ECONTROL,
		     " refuses: message of 9 bytes: the daemon allows 8 (netserver --max-message)");
	assert_fails(say_why, SAYS("a\n\033[2J\377b"), 1, NP_ECONTROL, " refuses: a??[2J?b");
	assert_fails(turn_away, SAYS("10 sessions are all there may be"), 1, NP_ECONTROL,
		     " refuses: 10 sessions are all there may be");
	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	memset(most + strlen(most), 'x', sizeof(((struct np_why *)0)->text) - 1);
	assert_fails(say_why, SAYS(endless), 1, NP_ECONTROL, most);
}

TEST(a_daemon_that_leaves_is_noticed)
{
	assert_fails(leave_after_request, TELLS(0, 0), 1, NP_EPEER,
		     "closed by the peer while waiting for");
	/* What the kernel says first is a race. */
	assert_fails(leave_at_once, TELLS(0, 0), 1, NP_EPEER,
		     "control connection to 127.0.0.1 port");
	assert_fails(die_in_the_test, TELLS(0, 0), 10, NP_EPEER,
		     "lost the control connection to 127.0.0.1");
}

TEST(another_service_is_told_from_a_daemon)
{
	assert_fails(say_banner, TELLS(0, 0), 1, NP_EPEER,
		     "(\"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\")");
	assert_fails(say_page, TELLS(0, 0), 1, NP_EPEER, "is not a netserver");
}

TEST(a_port_that_leads_nowhere_is_an_error)
{
	assert_fails(answer_as_given, TELLS(NP_OMNI + 1, 0), 1, NP_EPEER,
		     "names port 0 for the data connection");
	assert_fails(grant_closed_port, TELLS(0, 0), 1, NP_ESYS, "Connection refused");
}

static void
assert_no_control(const char *host, const char *port, const char *words)
{
	struct np_target target = { .nat = false };
	struct np_client c = { .owed = 0 };
	struct np_err err = { .code = NP_OK };

	snprintf(target.host.text, sizeof(target.host.text), "%s", host);
	snprintf(target.port, sizeof(target.port), "%s", port);
	assert_int_equal(np_client_connect(&c, &target, &err), NP_ECONTROL);
	assert_has(err.msg, words);
}

TEST(where_nothing_listens_there_is_no_control_connection)
{
	struct np_addr at;
	char port[8];

	close(bound_socket(AF_INET, SOCK_STREAM, &at));
	snprintf(port, sizeof(port), "%u", np_addr_port(&at));
	assert_no_control("127.0.0.1", port, "establish the control connection to 127.0.0.1 port");
	assert_no_control("127.0.0.1", port, "Connection refused");
	assert_no_control("127.0.0.1", "no-such-service",
			  "port 'no-such-service' is neither a number nor a service");
}

/* ---- Strangers' datagrams ---- */

enum { OURS = 10, THEIRS = 30 };

/* The daemon's data socket and those of others, who send to the client what it might count. */
static struct {
	int family, protocol;
	int data;
	struct np_addr at;
	int others[2];
	long silence_ms; /* before the results */
} scene;

/* One of the others has the daemon's address and another port, one another address and its port. */
static void
set_scene(int family, int protocol)
{
	struct np_addr neighbour = loopback(family, 0), stranger;

	scene.family = family;
	scene.protocol = protocol;
	scene.at = loopback(family, 0);
	scene.data = bound_at(&scene.at, SOCK_DGRAM, scene.protocol);
	scene.others[0] = bound_at(&neighbour, SOCK_DGRAM, scene.protocol);
	scene.others[1] = -1;
	if (family == AF_INET) {
		stranger = address_at(np_addr_port(&scene.at), "127.0.0.9");
		scene.others[1] = bound_at(&stranger, SOCK_DGRAM, scene.protocol);
	}
}

static void
clear_scene(void)
{
	close(scene.data);
	close(scene.others[0]);
	if (scene.others[1] >= 0) {
		close(scene.others[1]);
	}
}

static void
send_datagrams(int fd, const struct np_addr *to, size_t size, unsigned count)
{
	static const char bytes[512];

	for (unsigned i = 0; i < count && fd >= 0; i++) {
		assert_int_equal(send_datagram(fd, bytes, size, to), size);
	}
}

/* What ends a test, too: an empty one. */
static void
interfere(int fd, const struct np_addr *client, size_t size)
{
	send_datagrams(fd, client, size, THEIRS);
	send_datagrams(fd, client, 0, 1);
}

static void
send_results(int fd)
{
	struct np_omni_results m = { .bytes_sent = 512 * OURS };

	put_frame(fd, NP_OMNI + 2, 0, np_omni_results_layout, &m);
	take_request(fd);
}

/* A datagram and its sender. */
static size_t
take_datagram(struct np_addr *from)
{
	char bytes[1024];
	ssize_t n;

	assert_true(wait_readable(scene.data));
	n = receive_datagram(scene.data, bytes, sizeof(bytes), from);
	assert_true(n >= 0);
	return (size_t)n;
}

static void
stream_among_strangers(int fd)
{
	struct np_head head = { .code = NP_OMNI + 1 };
	struct np_omni_response m = { .data_port = np_addr_port(&scene.at) };
	struct np_omni_request asked;
	uint8_t frame[NP_FRAME_SIZE];
	struct np_addr client;
	struct np_err err;

	get_bytes(fd, frame, sizeof(frame));
	np_frame_get(frame, np_omni_request_layout, &asked, &err);
	client = loopback(scene.family, (uint16_t)asked.netperf_port);
	interfere(scene.others[1], &client, 100);
	np_frame_put(frame, &head, np_omni_response_layout, &m);
	np_spare_put(frame + NP_SPARE_AT, NP_ECHO_NAMED, 4711);
	put_bytes(fd, frame, sizeof(frame));
	assert_int_equal(take_datagram(&client), NP_ECHO_SIZE);
	interfere(scene.others[0], &client, 100);
	interfere(scene.others[1], &client, 100);
	send_datagrams(scene.data, &client, 512, OURS);
	send_results(fd);
}

/* Requests are answered, but not before others have. */
static void
respond_among_strangers(void)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct np_addr client;

		assert_int_equal(take_datagram(&client), 64);
		send_datagrams(scene.others[0], &client, 32, 3);
		send_datagrams(scene.others[1], &client, 32, 3);
		send_datagrams(scene.data, &client, 32, 1);
	}
}

static void
answer_among_strangers(int fd)
{
	take_request(fd);
	answer_omni(fd, 0, np_addr_port(&scene.at));
	respond_among_strangers();
	send_results(fd);
}

static void
datagram_params(struct np_plan *p, const char *bench)
{
	client_params(p, np_bench_find(bench), scene.family,
		      strcmp(bench, "UDP_RR") == 0 ? -OURS : -512 * OURS);
	if (scene.protocol == IPPROTO_UDPLITE) {
		p->transport = &np_transport_udplite;
	}
}

static void
assert_only_ours(const struct np_outcome *out)
{
	const struct np_counts *n = &out->tally.end.count;

	assert_int_equal(n->receives, OURS);
	assert_int_equal(n->received,
			 out->tally.plan->pattern->transactions ? 32 * OURS : 512 * OURS);
	assert_int_equal(n->surplus, 0);
	assert_int_equal(n->lost, 0);
}

static void
run_among_strangers(int family, int protocol, const char *bench, void (*script)(int fd))
{
	struct meeting m;

	set_scene(family, protocol);
	datagram_params(&m.p, bench);
	if (!m.p.pattern->transactions) {
		m.p.role = NP_FOLLOW;
	}
	meet(&m, family, script);
	runs(&m.c, &m.p, NULL, &m.peer, &m.out);
	assert_only_ours(&m.out);
	part(&m);
	clear_scene();
}

static bool
has_udplite(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDPLITE);

	if (fd >= 0) {
		close(fd);
	}
	return fd >= 0;
}

TEST(strangers_datagrams_do_not_count_in_a_stream)
{
	run_among_strangers(AF_INET, IPPROTO_UDP, "UDP_STREAM", stream_among_strangers);
	if (has_family(AF_INET6)) {
		run_among_strangers(AF_INET6, IPPROTO_UDP, "UDP_STREAM", stream_among_strangers);
	}
	if (has_udplite()) {
		run_among_strangers(AF_INET, IPPROTO_UDPLITE, "UDP_STREAM", stream_among_strangers);
	}
}

TEST(strangers_datagrams_are_no_responses)
{
	run_among_strangers(AF_INET, IPPROTO_UDP, "UDP_RR", answer_among_strangers);
	if (has_family(AF_INET6)) {
		run_among_strangers(AF_INET6, IPPROTO_UDP, "UDP_RR", answer_among_strangers);
	}
}

/* The first request is answered by others alone. Ends with the client's end mark, or the scene. */
static void *
be_service(void *unused)
{
	struct np_addr client;
	size_t asked;

	for (unsigned i = 0; (asked = take_datagram(&client)) > 0; i++) {
		assert_int_equal(asked, 64);
		send_datagrams(scene.others[0], &client, 32, 3);
		send_datagrams(scene.others[1], &client, 32, 3);
		send_datagrams(scene.data, &client, 32, i > 0);
	}
	return unused;
}

/*
 * The routes would choose 127.0.0.1 for answers to the client, whose socket is connected: it hears
 * none but 127.0.0.3.
 */
TEST(our_daemon_answers_from_the_address_that_was_asked)
{
	struct np_addr at = address("127.0.0.3");
	struct meeting m;

	meet_at(&m, at, NULL);
	client_params(&m.p, np_bench_find("UDP_RR"), AF_INET, -OURS);
	m.p.ids = true;
	m.p.near.sock.connected = true;
	runs(&m.c, &m.p, NULL, &at, &m.out);
	assert_only_ours(&m.out);
	part(&m);
}

/*
 * netperf's daemon is on the wildcard, and answers 127.0.0.3's requests as the routes choose:
 * it is told from strangers by the loop.
 */
TEST(answers_may_come_from_another_address_of_this_machine)
{
	static const char *const engines[] = { "sync", "epoll", "spin" };

	for (size_t i = 0; i < LEN(engines); i++) {
		struct np_addr peer = address("127.0.0.3"), stranger = address("127.0.0.9");
		struct meeting m;

		set_scene(AF_INET, IPPROTO_UDP);
		close(scene.data);
		close(scene.others[1]);
		np_addr_make_any(&scene.at, AF_INET);
		scene.data = bound_at(&scene.at, SOCK_DGRAM, scene.protocol);
		scene.others[1] = bound_at(&stranger, SOCK_DGRAM, scene.protocol);
		datagram_params(&m.p, "UDP_RR");
		m.p.near.place.engine = np_engine_find(engines[i]);
		meet(&m, AF_INET, answer_among_strangers);
		runs(&m.c, &m.p, NULL, &peer, &m.out);
		assert_only_ours(&m.out);
		part(&m);
		clear_scene();
	}
}

/* Each request has two responses, and when all are under way nobody hears the client any more. */
static void
answer_twice_and_go(int fd)
{
	const struct timespec marks = { .tv_nsec = scene.silence_ms * 1000000 };

	take_request(fd);
	answer_omni(fd, 0, np_addr_port(&scene.at));
	for (unsigned i = 0; i < OURS; i++) {
		struct np_addr client;

		assert_int_equal(take_datagram(&client), 64);
		send_datagrams(scene.data, &client, 32, 2);
	}
	close(scene.data);
	scene.data = -1;
	nanosleep(&marks, NULL);
	send_results(fd);
}

/*
 * The client's socket is connected, and its end marks, one in 50 ms, come to a port that is closed:
 * ICMP's news of every other one wait in front of the responses.
 */
TEST(what_icmp_says_hides_no_response)
{
	for (scene.silence_ms = 70; scene.silence_ms < 250; scene.silence_ms += 50) {
		struct meeting m;

		set_scene(AF_INET, IPPROTO_UDP);
		datagram_params(&m.p, "UDP_RR");
		meet(&m, AF_INET, answer_twice_and_go);
		runs(&m.c, &m.p, NULL, &m.peer, &m.out);
		assert_int_equal(m.out.tally.end.count.transactions, OURS);
		assert_int_equal(m.out.tally.end.count.surplus, OURS);
		part(&m);
		clear_scene();
	}
}

/* -N: the far end is what the user named. */
TEST(nor_are_they_beside_a_service)
{
	struct np_client c = { .owed = 0 };
	FREED_BY(np_outcome_free) struct np_outcome out;
	struct np_plan p;
	pthread_t thread;

	set_scene(AF_INET, IPPROTO_UDP);
	datagram_params(&p, "UDP_RR");
	p.no_control = true;
	p.timeout_ms = 300;
	assert_int_equal(pthread_create(&thread, NULL, be_service, NULL), 0);
	runs(&c, &p, NULL, &scene.at, &out);
	send_datagrams(scene.others[0], &scene.at, 0, 1);
	pthread_join(thread, NULL);
	/* That no stranger answered the first one shows in its being given up. */
	assert_true(out.tally.end.count.lost >= 1);
	assert_int_equal(out.tally.end.count.transactions, OURS);
	clear_scene();
}

/* ---- Waiting ---- */

/* What a client told of its wait; the daemon goes on when it has. */
static struct {
	sem_t told;
	unsigned count;
	char text[512];
} wait;

static void
note_wait(void *ctx, const char *text)
{
	assert_ptr_equal(ctx, &wait);
	wait.count++;
	snprintf(wait.text, sizeof(wait.text), "%s", text);
	sem_post(&wait.told);
}

static void
say_error_when_told(int fd)
{
	take_request(fd);
	sem_wait(&wait.told);
	answer_omni(fd, EMSGSIZE, 0);
}

/* One request that is refused, of a client that tells the user of a wait after that time. */
static void
ask_told_after(struct meeting *m, void (*script)(int fd), uint64_t tell_after_ns)
{
	bool told = m->c.told, heard = m->c.heard;

	meet(m, AF_INET, script);
	m->c.told = told;
	m->c.heard = heard;
	m->c.hooks.ctx = &wait;
	m->c.hooks.tell = note_wait;
	m->c.hooks.tell_after_ns = tell_after_ns;
	client_params(&m->p, np_bench_find("TCP_STREAM"), AF_INET, 1);
	assert_int_equal(np_client_run(&m->c, &m->p, NULL, &m->peer, &m->out, &m->err),
			 NP_ECONTROL);
	assert_has(m->err.msg, "error 90, Message too long"); /* which came, however late */
	part(m);
}

TEST(a_client_tells_once_whom_it_waits_for)
{
	struct meeting m = { .c.told = false };

	assert_int_equal(sem_init(&wait.told, 0, 0), 0);
	ask_told_after(&m, say_error, 60 * NP_SEC);
	assert_int_equal(wait.count, 0);
	m.c.heard = false;
	ask_told_after(&m, say_error_when_told, 20 * NP_MSEC);
	assert_int_equal(wait.count, 1);
	assert_has(wait.text, m.c.peer);
	assert_has(wait.text, " s: it hangs, or other tests run first; waiting for up to 1");
	sem_post(&wait.told);
	ask_told_after(&m, say_error_when_told, 20 * NP_MSEC);
	assert_int_equal(wait.count, 1);
	m.c.told = false; /* of a later request */
	ask_told_after(&m, say_error_when_told, 20 * NP_MSEC);
	assert_has(wait.text, " s: it did before, and that end or the path to it is down; ");
	sem_destroy(&wait.told);
}

static void
say_nothing(int fd)
{
	take_request(fd);
	take_request(fd);
}

TEST(a_wait_that_is_almost_over_is_not_told)
{
	uint8_t frame[NP_FRAME_SIZE] = { 0 };
	struct meeting m;

	meet(&m, AF_INET, say_nothing);
	m.c.hooks.ctx = &wait;
	m.c.hooks.tell = note_wait;
	m.c.hooks.tell_after_ns = 20 * NP_MSEC;
	wait.count = 0;
	assert_int_equal(np_client_request(&m.c, frame, NP_OMNI, "an answer", 200, &m.err),
			 NP_ETIME);
	assert_int_equal(wait.count, 0);
	part(&m);
}

/* SIGPIPE as both programs have it: sendfile(2) has no MSG_NOSIGNAL. */
TEST_MAIN(np_drive_prepare(); signal(SIGPIPE, SIG_IGN))
