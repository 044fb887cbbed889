/* A test at the daemon's side: the data connections, the measured part, the results. */
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h> /* SIOCOUTQ needs it */
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "net/capture.h"
#include "net/sock.h"
#include "net/tcpinfo.h"
#include "run/server_parts.h"
#include "run/team.h"

/* Time-outs in seconds, the first ones for the data connection. */
enum {
	ESTABLISH_S = 120,
	PLAIN_S = 10,  /* --one-port without a token; otherwise the least */
	ECHO_S = 10,   /* for the echo of a token */
	GRACE_S = 5,   /* beyond np_limits.seconds, for the client to end a test without a time */
	BEHIND_S = 4,  /* after the length of a test: netperf's client then waits for results */
	UNREAD_S = 10, /* after the results, for a client that receives nothing more */
	UNREAD_MOST_S = 60 /* and for one that receives slowly */
};

/* If the daemon sends the first datagram: choose its peer, or a token that must be echoed first. */
static int
set_peer(const struct np_plan *p, struct np_run *run, struct np_err *err)
{
	if (p->transport->connected || p->role != NP_LEAD) {
		return NP_OK;
	}
	if (np_is_handed(run)) {
		return NP_OK; /* the socket is connected to the sender of a datagram with a token */
	}
	while (p->echo && run->end.token == 0) {
		if (getrandom(&run->end.token, sizeof(run->end.token), 0) !=
		    sizeof(run->end.token)) {
			return np_fail(err, NP_ESYS, errno, "draw a token for the client");
		}
	}
	if (run->end.token == 0) {
		run->end.peer = run->terms->only;
		np_addr_set_port(&run->end.peer, p->far.sock.port);
	}
	return NP_OK;
}

/* Limit the time for the data connection, and that for the end of the test. */
static struct np_drive
plan_drive(const struct np_server *s, struct np_chan *c, struct np_run *run)
{
	const struct np_limits *limits = &s->limits;
	uint64_t establish_s = limits->establish_s != 0 ? limits->establish_s : ESTABLISH_S;
	uint64_t trips_ns =
	    limits->establish_s != 0 ? 0 : NP_ESTABLISH_TRIPS * np_tcp_round_trip_ns(c->fd);
	uint64_t limit_s = limits->seconds + (run->plan->length == 0 ? GRACE_S : 0);

	/* netperf's client starts its clock first, and gives up the connection when it ends. */
	if (limits->establish_s == 0 && run->plan->length > 0) {
		establish_s =
		    np_min(establish_s, np_max(PLAIN_S, (uint64_t)run->plan->length + BEHIND_S));
	}
	/* Without a token, other clients of the same address wait meanwhile. */
	if (np_is_handed(run) && !run->terms->tokens && establish_s > PLAIN_S) {
		establish_s = PLAIN_S;
	}
	/* The limit includes the warm-up, which is shorter: check_limits(). */
	limit_s -= limits->seconds != 0 ? np_server_warm_up_s(run->plan) : 0;
	return (struct np_drive){
		.run = run,
		.control = c,
		.length_ns = np_plan_time_ns(run->plan),
		.limit_ns = limits->seconds != 0 ? limit_s * NP_SEC : 0,
		.establish_ns = (run->end.token != 0 ? ECHO_S : establish_s) * NP_SEC + trips_ns,
		.signals = s->signals,
	};
}

/* np_watch.look: tell the daemon if anything was moved since the last look. */
static void
tell_progress(void *ctx, const struct np_run *run, uint64_t due_ns, uint64_t now_ns)
{
	struct np_server *s = ctx;
	struct np_counts c = np_counts_of(run);
	uint64_t now = np_counts_bytes(&c) + c.transactions;

	if (now != s->moved) {
		s->admission.tell(s->admission.ctx, NULL);
	}
	s->moved = now;
}

/* Run the measured part. NP_OK if there are results to report. */
static int
run_flow(struct np_server *s, struct np_drive *d, struct np_evidence *ev, struct np_err *err)
{
	struct np_run *run = d->run;
	int rc;

	s->moved = 0;
	np_evidence_watches(ev, &d->watch[1]); /* the other NP_EVIDENCE_WATCHES */
	if (s->admission.tell != NULL) {
		d->watch[0] = (struct np_watch){ .every_ns = NP_MOVED_S * NP_SEC,
						 .look = tell_progress,
						 .ctx = s,
						 .warms_up = true };
	}
	rc = np_drive(d, err);
	s->evidence = np_evidence_end(ev, run);
	if (rc != NP_OK) {
		return rc;
	}
	if (d->cause == NP_BY_LIMIT) {
		return np_deny(
		    err, ERANGE,
		    "test ended after %llu s: the daemon allows no longer tests (netserver "
		    "--max-length)",
		    (unsigned long long)s->limits.seconds);
	}
	if (run->err.code != NP_OK) {
		*err = run->err;
		return err->code;
	}
	if (d->cause == NP_BY_SIGNAL) {
		/* Send no results, which would look complete. */
		return np_fail(err, NP_ESYS, ECANCELED,
			       "test aborted: netserver was stopped, or gave up this idle test "
			       "for waiting clients");
	}
	return NP_OK;
}

/* Connections with data that the client has not received. */
struct unread {
	int *fd;
	uint32_t count;
};

/*
 * Move connections with unread data from the run to *u, unless some were before: after a close(2)
 * the kernel would keep the data for minutes, in no session's account. See end_unread().
 */
static void
keep_unread(struct unread *u, struct np_run *run)
{
	const struct np_transport *t = run->plan->transport;
	bool kernel_tls = t->ends.shut != NULL;
	char byte;

	/* An engine that takes all back leaves nothing. */
	if (t->acked == NULL || run->engine->take_all_back != NULL || run->end.borrowed ||
	    u->fd != NULL) {
		return;
	}
	for (uint32_t i = 0; i < run->conns; i++) {
		int *fd = &run->conn[i].fd;

		/* With data of the client unread, close(2) resets TCP. */
		if (*fd < 0 || np_sock_queued(*fd, SIOCOUTQ) == 0 ||
		    (!kernel_tls && recv(*fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)) {
			continue;
		}
		if (u->fd == NULL) {
			u->fd = calloc(run->conns, sizeof(*u->fd));
		}
		if (u->fd != NULL) {
			if (!kernel_tls) { /* which may have part of a record to send */
				shutdown(*fd, SHUT_WR);
			}
			u->fd[u->count++] = *fd;
			*fd = -1;
		}
	}
}

/*
 * Bytes that clients have not acknowledged, of connections that were not reset: after a reset there
 * is no peer any more, and poll(2) has no error if send(2) has returned it already.
 */
static uint64_t
unread_bytes(const struct unread *u)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < u->count; i++) {
		struct pollfd p = { .fd = u->fd[i] };
		struct sockaddr_storage peer;
		socklen_t len = sizeof(peer);

		if ((poll(&p, 1, 0) <= 0 || (p.revents & POLLERR) == 0) &&
		    getpeername(p.fd, (struct sockaddr *)&peer, &len) == 0) {
			sum += (uint64_t)np_sock_queued(p.fd, SIOCOUTQ);
		}
	}
	return sum;
}

/*
 * Close connections with unread data. The test holds what it was granted until then: wait while
 * the client receives, but not once it asks for something or closes its control connection.
 */
static void
end_unread(struct unread *u, const struct np_server *s, const struct np_chan *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	uint64_t most = np_deadline(UNREAD_MOST_S * NP_SEC);
	uint64_t least = UINT64_MAX, until = most, left;
	struct timespec pause;

	while ((left = unread_bytes(u)) > 0 && np_now() < until && !np_signalled(&s->signals)) {
		if (left < least) { /* the client receives: wait UNREAD_S from now on */
			least = left;
			until = np_min(np_deadline(UNREAD_S * NP_SEC), most);
		}
		if (ppoll(&p, 1, np_left(np_deadline(20 * NP_MSEC), &pause), s->signals.let_in) >
		    0) {
			break;
		}
	}
	for (uint32_t i = 0; i < u->count; i++) {
		if (np_sock_queued(u->fd[i], SIOCOUTQ) > 0) {
			np_sock_reset(u->fd[i]);
		} else {
			close(u->fd[i]);
		}
	}
	free(u->fd);
}

/* Close the data connection, then send the results. */
static int
report_results(struct np_server *s, struct np_chan *c, const struct np_dialect *dialect,
	       struct np_run *run, struct unread *u, struct np_err *err)
{
	uint8_t message[NP_MESSAGE_MAX];
	struct np_tally tally;
	int rc = np_tally_take(run, &tally, err);

	keep_unread(u, run);
	np_run_close(run);
	if (rc != NP_OK) {
		rc = np_server_refuse(s, c, dialect->code + 2, err);
	} else {
		np_log(s->log, NP_LOG_DEBUG,
		       "%s: %s %s ended: %llu bytes received, %llu sent, %llu transactions",
		       s->peer, run->plan->transport->name, run->plan->pattern->name,
		       (unsigned long long)tally.end.count.received,
		       (unsigned long long)tally.end.count.sent,
		       (unsigned long long)tally.end.count.transactions);
		dialect->encode_results(dialect, run->plan, &tally, message);
		rc = np_server_answer(c, message, err);
	}
	np_tally_free(&tally);
	return rc;
}

int
np_server_test(struct np_server *s, struct np_chan *c, const struct np_dialect *dialect,
	       const struct np_plan *p, const struct np_terms *terms, struct np_served *served,
	       struct np_err *err)
{
	struct np_evidence *ev;
	struct np_stop stop = { 0 };
	struct np_run run;
	struct np_drive d;
	struct np_counts counts;
	struct unread unread = { .count = 0 };
	uint8_t message[NP_MESSAGE_MAX];
	char length[NP_LENGTH_TEXT];
	int rc;

	np_bag_free(s->evidence);
	s->evidence = NULL;
	rc = np_run_open(&run, p, terms, &stop, err);
	rc = rc == NP_OK ? set_peer(p, &run, err) : rc;
	if (rc == NP_OK) {
		d = plan_drive(s, c, &run);
		rc = np_team_hire(&run, false, &d.team, err); /* threads may be lacking */
	}
	if (rc != NP_OK) {
		np_run_free(&run);
		return np_server_refuse(s, c, dialect->code + 1, err);
	}
	np_log(s->log, NP_LOG_DEBUG, "%s: %s %s, length %s, data at %s%s", s->peer,
	       p->transport->name, p->pattern->name, np_plan_length_text(p, length),
	       NP_ADDR_STR(&run.end.local),
	       run.end.port_moved ? " (the one asked for is in use)" : "");
	dialect->encode_response(dialect, p, &run, message);
	/* The filter of system calls knows this descriptor by its number, so it must stay open. */
	run.end.held_fd = s->collect.capture != NULL ? np_capture_fd(s->collect.capture) : -1;
	ev = np_evidence_begin(&s->collect, &run);
	np_evidence_capture(ev, &run);
	np_run_drop_early(&run); /* the client does not know the port before the answer */
	rc = np_server_answer(c, message, err);
	if (rc != NP_OK) {
		np_team_dismiss(d.team);
		np_bag_free(np_evidence_end(ev, &run));
	} else if (run_flow(s, &d, ev, err) != NP_OK) {
		/* Refuse before the data connection closes: the client must not see that first. */
		rc = np_server_refuse(s, c, dialect->code + 2, err);
	} else {
		rc = report_results(s, c, dialect, &run, &unread, err);
	}
	counts = np_counts_of(&run); /* also of a test that failed */
	*served = (struct np_served){ .failed = rc != NP_OK,
				      .received = counts.received,
				      .sent = counts.sent,
				      .transactions = counts.transactions };
	keep_unread(&unread, &run);
	np_run_free(&run);
	end_unread(&unread, s, c);
	return rc;
}
