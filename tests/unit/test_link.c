/*
 * Frames of the link layer: their header, who is heard, what is refused, and the messages that ask
 * for tests by them. What needs CAP_NET_RAW goes by lo and is left out without it.
 */
#include "net/eth.h"

#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <sys/syscall.h>

#include "bench/sequence.h"
#include "run/talk.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/deadly.h"
#include "tests/lib/ends.h"
#include "tests/lib/session.h"
#include "tests/lib/sockets.h"

static const uint8_t nobody[NP_ETH_MAC];
static const uint8_t someone[NP_ETH_MAC] = { 0x02, 0, 0, 0, 0, 0x11 };
static const uint8_t group[NP_ETH_MAC] = { 0x33, 0x33, 0, 0, 0, 1 };

static void
needs_frames(void)
{
	skip_if(lo_link(false) == NULL || lo_link(true) == NULL, "no CAP_NET_RAW");
}

/* ---- The header ---- */

TEST(a_frame_bears_its_tag_behind_number_and_time)
{
	uint8_t frame[64];

	memset(frame, 0xee, sizeof(frame));
	np_eth_mark(frame, UINT64_C(0x0102030405060708));
	for (int i = 0; i < 20; i++) {
		assert_int_equal(frame[i], 0);
	}
	for (int i = 0; i < 8; i++) {
		assert_int_equal(frame[20 + i], i + 1);
	}
	assert_int_equal(frame[NP_ETH_HEADER], 0xee);
	assert_false(np_eth_is_end(frame));
}

TEST(the_last_frame_is_known_and_as_small_as_frames_get)
{
	uint8_t end[NP_ETH_LEAST + 1], marked[NP_ETH_HEADER];

	memset(end, 0xee, sizeof(end));
	np_eth_end(end, 99);
	np_eth_mark(marked, 99);
	assert_true(np_eth_is_end(end));
	assert_memory_equal(end + 4, marked + 4, sizeof(marked) - 4);
	assert_int_equal(end[NP_ETH_LEAST], 0xee);
}

TEST(directions_differ_in_their_tags)
{
	assert_true(np_eth_tag(5, true) == 5);
	assert_true(np_eth_tag(5, false) != 5);
	assert_true(np_eth_tag(5, false) != np_eth_tag(6, false));
}

/* ---- What is refused ---- */

TEST(interfaces_that_will_not_do_are_named)
{
	static const char *const names[] = { "", "nosuch0", "a-name-of-sixteen" };
	struct np_eth l;
	struct np_err err;

	for (size_t i = 0; i < LEN(names); i++) {
		assert_int_equal(np_eth_open(&l, names[i], &err), NP_EUSAGE);
		assert_true(strstr(err.msg, "interface") != NULL);
		assert_true(strstr(err.msg, names[i]) != NULL);
		assert_int_equal(l.fd, -1);
	}
}

/* By CAP_NET_ADMIN such a question has the kernel load the module "netdev-NAME". */
TEST(the_kernel_is_asked_about_no_name_that_there_is_not)
{
	struct np_eth l;
	struct np_err err;

	/* What netdevice(7) has: a name goes with each of them. */
	assert_in_child(!deadly_call(SYS_ioctl, 1, SIOCGIFNAME, SIOCSIFTXQLEN)
			    ? 77
			    : np_eth_open(&l, "nosuch0", &err) != NP_EUSAGE || err.sys != ENODEV,
			"no seccomp here");
}

TEST(sizes_end_at_the_mtu)
{
	const struct np_eth l = { .device = "eth7", .mtu = 1500 };
	struct np_err err;

	assert_int_equal(np_eth_check_size(&l, -1, 'm', &err), NP_OK);
	assert_int_equal(np_eth_check_size(&l, 1500, 'm', &err), NP_OK);
	assert_int_equal(np_eth_check_size(&l, 1501, 'm', &err), NP_EUSAGE);
	assert_string_equal(err.msg, "-m: 1501 bytes are more than the MTU of eth7, 1500 (try -m "
				     "1500, or a larger MTU)");
	assert_int_equal(err.sys, EMSGSIZE);
}

TEST(a_peer_is_one_other_station)
{
	const struct np_eth lo = { .device = "lo", .loopback = true };
	struct np_eth eth = { .device = "eth7" };
	struct np_err err;

	memcpy(eth.mac, someone, sizeof(eth.mac));
	eth.mac[5]++;
	assert_int_equal(np_eth_check_peer(&eth, someone, &err), NP_OK);
	assert_int_equal(np_eth_check_peer(&lo, nobody, &err), NP_OK);
	assert_int_equal(np_eth_check_peer(&eth, group, &err), NP_EUSAGE);
	assert_int_equal(np_eth_check_peer(&lo, group, &err), NP_EUSAGE);
	assert_int_equal(np_eth_check_peer(&eth, nobody, &err), NP_EUSAGE);
	assert_int_equal(np_eth_check_peer(&lo, someone, &err), NP_EUSAGE);
	assert_int_equal(np_eth_check_peer(&eth, eth.mac, &err), NP_EUSAGE);
	assert_true(strstr(err.msg, "eth7") != NULL);
}

/* ---- Who is heard ---- */

static bool
arrives(const struct np_eth *from, const struct np_eth *to, const uint8_t *frame)
{
	uint8_t came[NP_ETH_LEAST];
	struct np_addr at;

	np_eth_aim(from, to->mac, &at);
	assert_int_equal(send_datagram(from->fd, frame, NP_ETH_LEAST, &at), NP_ETH_LEAST);
	return recv(to->fd, came, sizeof(came), MSG_DONTWAIT) == NP_ETH_LEAST &&
	       memcmp(came, frame, sizeof(came)) == 0;
}

TEST(only_one_tag_of_one_station_is_heard)
{
	static const uint64_t tag = UINT64_C(0x1234567800000009);
	const struct np_eth *from = lo_link(false), *to = lo_link(true);
	uint8_t frame[NP_ETH_LEAST] = "x";
	struct np_addr station;
	struct np_err err;

	needs_frames();
	np_eth_aim(to, from->mac, &station);
	np_eth_mark(frame, tag);
	assert_false(arrives(from, to, frame)); /* deaf at first */
	assert_int_equal(np_eth_limit_source(to, &station, tag, &err), NP_OK);
	assert_true(arrives(from, to, frame));
	np_eth_end(frame, tag);
	assert_true(arrives(from, to, frame));
	np_eth_mark(frame, tag + 1);
	assert_false(arrives(from, to, frame));
	np_eth_mark(frame, tag ^ UINT64_C(1) << 40);
	assert_false(arrives(from, to, frame));
	np_eth_aim(to, someone, &station);
	assert_int_equal(np_eth_limit_source(to, &station, tag, &err), NP_OK);
	np_eth_mark(frame, tag);
	assert_false(arrives(from, to, frame));
	np_eth_drop_all(to);
	assert_false(arrives(from, to, frame));
}

/* A frame that is too short for a tag is none of ours. */
TEST(short_frames_are_not_heard)
{
	const struct np_eth *from = lo_link(false), *to = lo_link(true);
	struct np_addr station;
	struct np_err err;
	char byte = 0;

	needs_frames();
	np_eth_aim(to, from->mac, &station);
	assert_int_equal(np_eth_limit_source(to, &station, 0, &err), NP_OK);
	np_eth_aim(from, to->mac, &station);
	assert_int_equal(send_datagram(from->fd, &byte, 1, &station), 1);
	assert_true(recv(to->fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	np_eth_drop_all(to);
}

/* What was heard in one test is not there in the next. */
TEST(a_deaf_socket_forgets)
{
	const struct np_eth *from = lo_link(false), *to = lo_link(true);
	uint8_t frame[NP_ETH_LEAST];
	struct np_addr at;
	struct np_err err;

	needs_frames();
	np_eth_aim(to, from->mac, &at);
	assert_int_equal(np_eth_limit_source(to, &at, 7, &err), NP_OK);
	np_eth_mark(frame, 7);
	np_eth_aim(from, to->mac, &at);
	for (int i = 0; i < 5; i++) {
		assert_true(send_datagram(from->fd, frame, sizeof(frame), &at) > 0);
	}
	np_eth_drop_all(to);
	assert_true(recv(to->fd, frame, sizeof(frame), MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

/* ---- Whole flows ---- */

/* Filled up to what Ethernet carries, and touched behind the header alone. */
TEST(small_messages_are_frames_of_the_least_size)
{
	FREED_BY(ends_free) struct ends e;

	needs_frames();
	ends_plan(&e, np_bench_find("DLCL_STREAM"), AF_INET, -20 * NP_ETH_LEAST);
	e.client.plan.near.call.send_size = 1;
	e.client.plan.near.call.dirty = e.client.plan.far.call.dirty = 1 << 20;
	ends_make(&e);
	ends_run(&e, 0);
	assert_int_equal(e.client.run.worker->send_size, NP_ETH_LEAST);
	assert_int_equal(np_get(&e.client.run.worker->count->sends), 20);
	assert_int_equal(np_get(&e.server.run.worker->count->receives), 20);
	assert_int_equal(np_get(&e.server.run.worker->count->received), 20 * NP_ETH_LEAST);
}

TEST(frames_are_numbered_where_datagrams_are)
{
	FREED_BY(free_bag) struct np_bag *bag = np_bag_new();
	FREED_BY(ends_free) struct ends e;

	needs_frames();
	ends_plan(&e, np_bench_find("DLCL_STREAM"), AF_INET, -20 * 512);
	e.client.plan.sequence = true;
	ends_make(&e);
	ends_run(&e, 0);
	np_sequence_put(&e.server.run, bag);
	assert_true(np_bag_number(bag, "udp.unique") == 20);
	assert_true(np_bag_number(bag, "udp.foreign") == 0);
}

/* Only its owner closes the socket. */
TEST(a_borrowed_socket_survives_its_flow)
{
	struct end e = { .rc = -1 };
	int fd;

	needs_frames();
	fd = lo_link(true)->fd;
	daemon_params(&e.plan, np_bench_find("DLCL_STREAM"), 1);
	end_open(&e);
	assert_int_equal(e.run.conn->fd, fd);
	np_run_close(&e.run);
	end_free(&e);
	assert_true(np_sock_int(fd, SOL_SOCKET, SO_RCVBUF) > 0);
}

/* ---- Messages ---- */

static struct np_plan_message
a_stream(void)
{
	struct np_plan_message m;

	np_tagged_init(&np_tagged_plan, &m);
	strcpy(m.pattern, "stream");
	strcpy(m.transport, "DLCL");
	m.receive_size = 1000;
	m.length = 1;
	m.station.count = NP_ETH_MAC;
	return m;
}

/* A daemon with that link, or without one, is asked for that test. */
static void
assert_refused(const struct np_eth *link, const struct np_plan_message *m, int error,
	       const char *says)
{
	const struct np_server server = { .terms.eth = link, .link_why_not = "no --allow-raw" };
	FREED_BY(session_close) struct session s;

	session_open_as(&s, &server);
	ask_tagged(&s, &np_tagged_plan, m);
	assert_why(&s, NP_EXT_ERROR, error, says);
}

TEST(a_daemon_refuses_what_is_no_test)
{
	const struct np_eth eth = { .fd = -1, .device = "eth7", .mtu = 1500, .mac = { 2, 2 } };
	struct np_plan_message m = a_stream();

	assert_refused(NULL, &m, EACCES, "no --allow-raw");
	memcpy(m.station.at, group, sizeof(group));
	assert_refused(&eth, &m, EINVAL, "group");
	memcpy(m.station.at, someone, sizeof(someone));
	m.station.count = 5;
	assert_refused(&eth, &m, EINVAL, "station");
	m.station.count = NP_ETH_MAC;
	m.receive_size = 1501;
	assert_refused(&eth, &m, EMSGSIZE, "MTU of eth7");
	m.receive_size = 0;
	assert_refused(&eth, &m, EINVAL, "");
	strcpy(m.pattern, "rr");
	assert_refused(&eth, &m, EINVAL, "");
	m.request_size = 1;
	m.response_size = 1501;
	assert_refused(&eth, &m, EMSGSIZE, "");
	/* What frames can't do. */
	m.response_size = 1;
	m.leads = 1;
	assert_refused(&eth, &m, EOPNOTSUPP, "");
	m.leads = 0;
	strcpy(m.pattern, "crr");
	assert_refused(&eth, &m, EOPNOTSUPP, "");
}

/* What a client makes of the daemon's grant. */
static int
understood(const struct np_grant_message *m, struct np_err *err)
{
	const struct np_dialect *d = np_dialect(NP_PLAN);
	uint8_t frame[NP_MESSAGE_MAX];
	struct np_far far;

	np_far_init(&far);
	np_tagged_put(&np_tagged_grant, m, frame);
	return d->decode_response(d, frame, &far, err);
}

TEST(a_grant_without_a_tag_is_none)
{
	struct np_grant_message m;
	struct np_err err;

	np_tagged_init(&np_tagged_grant, &m);
	m.mtu = 1500;
	m.station.count = NP_ETH_MAC;
	assert_int_equal(understood(&m, &err), NP_EPEER);
	assert_has(err.msg, "tag");
	m.token = 1;
	assert_int_equal(understood(&m, &err), NP_OK);
	m.station.count--;
	assert_int_equal(understood(&m, &err), NP_EPEER);
}

TEST(counts_of_more_than_32_bits_come_whole)
{
	const struct np_dialect *d = np_dialect(NP_PLAN);
	struct np_result_message m;
	uint8_t frame[NP_MESSAGE_MAX];
	struct np_far far;
	struct np_err err;

	np_far_init(&far);
	np_tagged_init(&np_tagged_result, &m);
	m.bytes_received = INT64_C(5) << 40;
	m.recv_calls = INT64_C(3) << 33;
	m.elapsed_ns = 2500000000;
	np_tagged_put(&np_tagged_result, &m, frame);
	assert_int_equal(d->decode_results(d, frame, &far, &err), NP_OK);
	assert_true(far.end.count.received == UINT64_C(5) << 40);
	assert_true(far.end.count.receives == INT64_C(3) << 33);
	assert_true(far.elapsed > 2.4 && far.elapsed < 2.6);
	assert_false(far.truncated);
	memset(frame + 16, 0xff, 8); /* the value of the first field */
	assert_int_equal(d->decode_results(d, frame, &far, &err), NP_EPEER);
}

TEST_MAIN((own_network(), np_drive_prepare()))
