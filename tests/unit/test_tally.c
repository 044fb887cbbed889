/*
 * The tally of a run: what was counted outlives the run, each flow has its row.
 */
#include "bench/tally.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>

#include "run/talk_rows.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"

enum { TRANSACTIONS = 30 };

static void
run_rr(struct ends *e, void (*change)(struct np_plan *p))
{
	ends_open(e, np_bench_find("TCP_RR"), AF_INET, -TRANSACTIONS, change);
	ends_run(e, 0);
}

TEST(a_tally_outlives_its_run)
{
	struct np_err err = { .code = NP_OK };
	struct np_tally near, far;
	struct ends e;

	run_rr(&e, time_calls);
	assert_int_equal(np_tally_take(&e.client.run, &near, &err), NP_OK);
	assert_int_equal(np_tally_take(&e.server.run, &far, &err), NP_OK);
	ends_free(&e);
	assert_int_equal(near.end.count.transactions, TRANSACTIONS);
	assert_int_equal(near.end.count.sent, far.end.count.received);
	assert_int_equal(near.end.count.received, far.end.count.sent);
	assert_int_equal(np_counts_bytes(&near.end.count), np_counts_bytes(&far.end.count));
	assert_int_equal(near.end.count.sends, TRANSACTIONS);
	assert_int_equal(np_hist_count(near.hist), TRANSACTIONS);
	assert_true(np_tally_seconds(&near) > 0);
	assert_true(near.end.closing.mss > 0);
	assert_true(near.end.sndbuf > 0 && near.end.send_size > 0 && near.end.send_width > 0);
	assert_int_equal(near.flows, 1);
	assert_null(near.flow); /* one flow is the sum */
	np_tally_free(&near);
	np_tally_free(&near);
	np_tally_free(&far);
}

/* The counts of connections are their worker's: here nobody else fills them. */
TEST(each_flow_has_its_row)
{
	FREED_BY(np_tally_free) struct np_tally t;
	struct end e = { .rc = -1 };

	client_params(&e.plan, np_bench_find("TCP_STREAM"), AF_INET, 1);
	e.plan.flows = 3;
	end_open(&e);
	for (uint32_t i = 0; i < e.run.conns; i++) {
		e.run.conn[i].sent = 100 + i;
		e.run.conn[i].received = 200 + i;
		e.run.conn[i].transactions = 300 + i;
	}
	close(e.run.conn[2].fd);
	e.run.conn[2].fd = -1;
	assert_int_equal(np_tally_take(&e.run, &t, &e.err), NP_OK);
	end_free(&e);
	assert_int_equal(t.flows, 3);
	for (uint32_t i = 0; i < t.flows; i++) {
		assert_int_equal(t.flow[i].sent, 100 + i);
		assert_int_equal(t.flow[i].received, 200 + i);
		assert_int_equal(t.flow[i].transactions, 300 + i);
	}
	/* The kernel knows those that are open still. */
	assert_int_equal(t.flow[0].tcp.retransmitted_segments, 0);
	assert_int_equal(t.flow[1].tcp.retransmitted_segments, 0);
	assert_int_equal(t.flow[2].tcp.rtt_us, -1);
	assert_int_equal(t.end.closing.retrans, -1);
}

/* Of MPTCP's subflows the count may be less than before: one of them has gone. */
TEST(a_window_counts_what_is_known_before_and_after)
{
	static const int before[] = { 0, -1, 4, 5 }, left[] = { 4, -1, 0, -1 };

	for (size_t i = 0; i < LEN(before); i++) {
		FREED_BY(np_tally_free) struct np_tally flow, first;
		FREED_BY(end_free) struct end e = { .rc = -1 };

		client_params(&e.plan, np_bench_find("TCP_STREAM"), AF_INET, 1);
		e.plan.warm_up_ms = 1;
		end_open(&e);
		e.run.before->retransmitted_segments = before[i];
		assert_int_equal(np_tally_take(&e.run, &flow, &e.err), NP_OK);
		assert_int_equal(flow.only.tcp.retransmitted_segments, before[i] == 0 ? 0 : -1);
		np_run_close_conns(&e.run); /* so that the kernel is not asked again */
		e.run.closing.retrans = 4;
		e.run.retrans_before = before[i];
		assert_int_equal(np_tally_take(&e.run, &first, &e.err), NP_OK);
		assert_int_equal(first.end.closing.retrans, left[i]);
	}
}

#ifndef SYS_socketcall /* else src/base/multiplex.c has one of its own */
static int lossy_fd = -1;

/* In place of the C library's: that connection has sent again more than an int holds. */
int
getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int rc = (int)syscall(SYS_getsockopt, fd, level, name, value, len);

	if (fd == lossy_fd && level == IPPROTO_TCP && name == TCP_INFO) {
		((struct tcp_info *)value)->tcpi_total_retrans = UINT32_MAX - 5;
	}
	return rc;
}

TEST(no_number_of_retransmissions_is_none)
{
	const struct np_transport *const tcp = &np_transport_tcp;
	struct np_plan p;
	struct np_run run = { .plan = &p };

	lossy_fd = socket(AF_INET, SOCK_STREAM, 0);
	client_params(&p, np_bench_find("TCP_STREAM"), AF_INET, 1);
	tcp->read_closing(&run, lossy_fd);
	assert_int_equal(run.closing.retrans, INT32_MAX);
	close(lossy_fd);
	lossy_fd = -1;
}
#endif

/* What a daemon's result says of connections that came about, in a window that never opened. */
static uint32_t
told_of(const char *bench, uint32_t flows, uint64_t began_ns)
{
	uint8_t frame[NP_MESSAGE_MAX];
	FREED_BY(np_tally_free) struct np_tally t;
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_far far;

	daemon_params(&e.plan, np_bench_find(bench), 1);
	e.plan.flows = flows;
	end_open(&e);
	e.run.worker->began_ns = began_ns;
	assert_int_equal(np_tally_take(&e.run, &t, &e.err), NP_OK);
	np_plan_dialect.encode_results(&np_plan_dialect, &e.plan, &t, frame);
	assert_int_equal(np_plan_dialect.decode_results(&np_plan_dialect, frame, &far, &e.err),
			 NP_OK);
	return far.established;
}

TEST(a_result_says_how_many_flows_there_were)
{
	assert_int_equal(told_of("TCP_RR", 3, 1), 3);
	assert_int_equal(told_of("UDP_RR", 70, 1), 70); /* by 64 sockets */
	assert_int_equal(told_of("UDP_RR", 70, 0), 0);
}

TEST(a_window_that_never_opened_has_no_seconds)
{
	const struct np_tally t = { .ended_ns = 1000 };

	assert_true(np_tally_seconds(&t) == 0);
}

/* Rows of those that have them, and one of a tally of one flow. */
TEST(tallies_are_joined)
{
	struct np_flow_result *rows = calloc(2, sizeof(*rows));
	FREED_BY(np_tally_free)
	struct np_tally a = { .started_ns = 200, .ended_ns = 300, .flows = 1, .end.send_size = 10 };
	struct np_tally b = { .started_ns = 100, .ended_ns = 250, .flows = 2, .end.recv_size = 20 };
	struct np_err err;

	a.led_ns = 100; /* each half is divided by its own window */
	b.followed_ns = 150;

	a.end.count = (struct np_counts){ .sent = 1, .sends = 2, .transactions = 3, .lost = 4 };
	b.end.count =
	    (struct np_counts){ .sent = 10, .received = 5, .transactions = 30, .late = 1 };
	a.end.closing.retrans = 7;
	a.only = (struct np_flow_result){
		.transactions = 3, .tcp = { 9, 7, -1, -1, -1, -1 }, .cpu = -1, .napi_id = -1
	};
	b.end.closing.retrans = 70;
	a.hist = np_hist_new();
	b.hist = np_hist_new();
	np_hist_record(a.hist, 1000);
	np_hist_record(b.hist, 3000);
	rows[1].transactions = 30;
	rows[1].tcp.retransmitted_segments = rows[1].tcp.rtt_us = -1;
	b.flow = rows;
	a.workers = 1;
	a.worker = calloc(1, sizeof(*a.worker));
	*a.worker = (struct np_worker_result){ .flows = 1, .began_ns = 205, .ended_ns = 300 };
	b.workers = 2;
	b.worker = calloc(2, sizeof(*b.worker));
	b.worker[0] = (struct np_worker_result){ .flows = 1, .began_ns = 101, .ended_ns = 250 };
	b.worker[1] = (struct np_worker_result){ .flows = 1, .began_ns = 102, .ended_ns = 240 };
	rows[1].worker = 1;
	assert_int_equal(np_tally_join(&a, &b, &err), NP_OK);
	assert_null(b.flow);
	assert_null(b.hist);
	assert_int_equal(a.started_ns, 100);
	assert_int_equal(a.ended_ns, 300);
	assert_int_equal(a.led_ns, 100);
	assert_int_equal(a.followed_ns, 150);
	assert_int_equal(a.end.count.sent, 11);
	assert_int_equal(a.end.count.received, 5);
	assert_int_equal(a.end.count.transactions, 33);
	assert_int_equal(a.end.count.lost, 4);
	assert_int_equal(a.end.count.late, 1);
	assert_int_equal(a.end.closing.retrans, 77);
	assert_int_equal(np_hist_count(a.hist), 2);
	assert_int_equal(a.end.send_size, 10);
	assert_int_equal(a.end.recv_size, 20);
	assert_int_equal(a.flows, 3);
	assert_int_equal(a.flow[0].transactions, 3);
	assert_int_equal(a.flow[0].tcp.data_segments, 9);
	assert_int_equal(a.flow[0].tcp.retransmitted_segments, 7);
	assert_int_equal(a.flow[0].tcp.cwnd, -1);
	assert_int_equal(a.flow[0].cpu, -1);
	assert_int_equal(a.flow[0].napi_id, -1);
	assert_int_equal(a.flow[2].transactions, 30);
	assert_int_equal(a.flow[2].worker, 2);
	assert_int_equal(a.workers, 3);
	assert_int_equal(a.worker[0].began_ns, 205);
	assert_int_equal(a.worker[2].ended_ns, 240);
	assert_int_equal(a.end.skew.begin_ns, 104);
	assert_int_equal(a.end.skew.end_ns, 60);
	b = (struct np_tally){ .flows = 1, .end.closing.retrans = -1 };
	assert_int_equal(np_tally_join(&a, &b, &err), NP_OK);
	assert_int_equal(a.end.closing.retrans, -1);
	assert_int_equal(a.flows, 4);
	assert_int_equal(a.started_ns, 100); /* that one never began */
}

TEST_MAIN()
