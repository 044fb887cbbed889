/*
 * Parts of the request/response pattern over datagrams that its loops with and without ids share.
 */
#ifndef NP_BENCH_PATTERN_RR_H
#define NP_BENCH_PATTERN_RR_H

#include <sys/socket.h>
#include <sys/types.h>

#include "bench/engine/syscall.h"
#include "bench/extra.h"
#include "bench/run.h"

/* A response is never empty; what is, is a stray mark of some other test's end. */
NP_LOOP_BODY ssize_t
np_rr_recv_response(struct np_run *run, char *buf, const bool extras)
{
	ssize_t n;

	do {
		n = extras ? np_extra_recv(run, run->conn->fd, buf, run->worker.recv_size)
			   : np_sys_recv(run->conn->fd, buf, run->worker.recv_size);
	} while (__builtin_expect(n == 0, 0) && !np_stopped(run->stop));
	return n;
}

/* The totals that follow from the transactions need not be published one by one. */
void np_rr_settle(struct np_run *run, uint64_t sends, uint64_t receives);

/* Requests with ids (bench/ids.h): which kind of loop such a test takes. */
void np_rr_choose_ids_loop(struct np_run *run, bool extras);

/* Take to account what came behind the last transaction. */
void np_rr_drain(struct np_run *run);

#endif
