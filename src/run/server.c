#include "run/server.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/engine/engine.h"
#include "bench/lacks.h"
#include "config.h"
#include "net/capture.h"
#include "net/llc.h"
#include "net/sock.h"
#include "run/talk.h"
#include "sys/affinity.h"
#include "wire/chan.h"
#include "wire/plan.h"

/* Deadlines of a session, in seconds. */
enum {
	/* For the next request where there is no limit; keep-alive notices a dead client. */
	REQUEST_S = 86400,
	SILENCE_S = 120, /* where no limit is set */
	SILENCE_LEAST_S = 10,
	ANSWER_S = 10, /* for an answer to be taken */
	MEET_S = 120,  /* for the client to make the data connection */
	PLAIN_S = 10,  /* the same where it shows no token: another daemon may have got it */
	ECHO_S = 10    /* for the echo without which no datagram is sent */
};

/*
 * Requests that are not tests cost only processor time, some of them 10 ms of it. QUESTIONS of
 * them are answered at once, which is more than a client has between two tests. Then one is
 * answered in each QUESTION_MS.
 */
enum { QUESTIONS = 64, QUESTION_MS = 10 };

enum { SAMPLE_MS = 10 }; /* the least between two samples: each takes some 10 us of a processor */

static int
answer(struct np_chan *c, const uint8_t *message, struct np_err *err)
{
	return np_chan_send(c, message, np_deadline(ANSWER_S * NP_SEC), err);
}

static int
answer_code(struct np_chan *c, uint32_t code, int32_t word, np_layout *layout, const void *m,
	    struct np_err *err)
{
	struct np_head head = { .code = code, .word = word };
	uint8_t frame[NP_FRAME_SIZE];

	np_frame_put(frame, &head, layout, m);
	return answer(c, frame, err);
}

static int
serve_calibrate(struct np_chan *c, struct np_err *err)
{
	/* On Linux the "rate" is the clock ticks of /proc/stat: nothing has to be measured. */
	struct np_calibrate_response m = {
		.rate = (float)sysconf(_SC_CLK_TCK),
		.num_cpus = (int32_t)sysconf(_SC_NPROCESSORS_ONLN),
	};

	return answer_code(c, NP_CPU_CALIBRATE, 0, np_calibrate_response_layout, &m, err);
}

static int
serve_sysinfo(struct np_chan *c, struct np_err *err)
{
	/* What daemons of 2.7 answer, too: who asked here once never got more from them. */
	static const struct np_text m = { .text = ",Deprecated,Deprecated,Deprecated,Deprecated" };

	return answer_code(c, NP_SYSINFO_RESPONSE, 0, np_text_layout, &m, err);
}

static int
serve_debug(const struct np_server *s, struct np_chan *c, bool on, struct np_err *err)
{
	if (!s->quiet) {
		s->log->level = on ? NP_LOG_DEBUG : NP_LOG_INFO;
	}
	return answer_code(c, NP_DEBUG_OK, 0, NULL, NULL, err);
}

static void
log_result(const struct np_server *s, const struct np_plan *p, const struct np_counts *c)
{
	np_log(s->log, NP_LOG_DEBUG,
	       "%s: %s %s ended: %llu bytes received, %llu sent, %llu transactions", s->peer,
	       p->transport->name, p->pattern->name, (unsigned long long)c->received,
	       (unsigned long long)c->sent, (unsigned long long)c->transactions);
}

/* An answer that is an error, in netperf's words or in ours, as the request was. */
static int
answer_error(struct np_chan *c, uint32_t code, const struct np_err *why, struct np_err *err)
{
	int number = why->sys != 0 ? why->sys : EINVAL;
	struct np_why m = { .magic = NP_WHY_MAGIC };
	struct np_error_message ours;
	uint8_t message[NP_MESSAGE_MAX];

	if (!np_is_ours(code)) {
		snprintf(m.text, sizeof(m.text), "%.*s", (int)sizeof(m.text) - 1, why->msg);
		return answer_code(c, code, number, np_why_layout, &m, err);
	}
	np_tagged_init(&np_tagged_error, &ours);
	ours.number = (uint32_t)number;
	snprintf(ours.text, sizeof(ours.text), "%s", why->msg);
	np_tagged_put(&np_tagged_error, &ours, message);
	return answer(c, message, err);
}

/* A test that can't be run, or failed: say so on the wire and in the log. */
static int
refuse(const struct np_server *s, struct np_chan *c, uint32_t code, const struct np_err *why,
       struct np_err *err)
{
	np_log(s->log, NP_LOG_ERROR, "%s: %s", s->peer, why->msg);
	if (answer_error(c, code, why, err) != NP_OK) {
		return err->code;
	}
	*err = *why;
	return why->code;
}

/* What the client wants of the tests to come. It may ask again. */
static int
serve_hello(struct np_server *s, struct np_chan *c, struct np_err *err)
{
	struct np_hello asked, granted = { .version = NP_EXT_VERSION };
	struct np_err why = { .code = NP_OK };
	uint8_t frame[NP_FRAME_SIZE];

	if (np_hello_get(c->in, &asked, &why) != NP_OK) {
		return refuse(s, c, NP_EXT_WELCOME, &why, err);
	}
	granted.caps = asked.caps & s->caps;
	granted.every_ms =
	    asked.every_ms != 0 && asked.every_ms < SAMPLE_MS ? SAMPLE_MS : asked.every_ms;
	snprintf(granted.identity, sizeof(granted.identity), "%s", PACKAGE_STRING);
	s->collect.caps = granted.caps & NP_CAPS_EVIDENCE;
	s->collect.every_ms = granted.every_ms;
	s->collect.capture_why_not =
	    (asked.caps & ~granted.caps & NP_CAP_WIRE) != 0 ? s->capture_why_not : NULL;
	np_hello_put(frame, NP_EXT_WELCOME, &granted);
	s->granted = granted.caps;
	c->most = np_request_most;
	return answer(c, frame, err);
}

static int
send_bag(struct np_chan *c, const struct np_bag *b, struct np_err *err)
{
	uint8_t *message;
	int rc = np_bag_encode(b, &message, err);

	if (rc == NP_OK) {
		rc = answer(c, message, err);
		free(message);
	}
	return rc;
}

static int
serve_host(struct np_chan *c, const struct np_server *s, struct np_err *err)
{
	struct np_bag *b = np_bag_new();
	int rc;

	np_evidence_host(&s->collect, -1, b);
	rc = send_bag(c, b, err);
	np_bag_free(b);
	return rc;
}

static int
serve_evidence(const struct np_server *s, struct np_chan *c, struct np_err *err)
{
	struct np_err why = { .code = NP_OK };
	struct np_evidence_message m;

	if (np_tagged_get(&np_tagged_evidence, np_chan_message(c), &m, &why) != NP_OK) {
		return refuse(s, c, NP_EXT_BAG, &why, err);
	}
	if (s->collect.caps == 0 ||
	    (m.about == NP_ABOUT_HOST && (s->collect.caps & NP_CAP_HOST) == 0)) {
		np_refuse(&why, NP_EUNSUP, EACCES, "evidence: the greeting did not ask for it");
		return refuse(s, c, NP_EXT_BAG, &why, err);
	}
	if (m.about == NP_ABOUT_HOST) {
		return serve_host(c, s, err);
	}
	return send_bag(c, s->evidence, err);
}

/* Where a daemon that leads with datagrams sends them, or what must come before it knows. */
static int
aim(const struct np_plan *p, struct np_run *run, struct np_err *err)
{
	if (p->transport->connected || p->role != NP_LEAD) {
		return NP_OK;
	}
	if (np_is_handed(run)) {
		return NP_OK; /* by a datagram of the client's, which proves more than an echo */
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

static uint32_t
warm_up_s(const struct np_plan *p)
{
	return (p->warm_up_ms + 999) / 1000;
}

static struct np_drive
plan_drive(const struct np_server *s, const struct np_chan *c, struct np_run *run)
{
	const struct np_limits *most = &s->limits;
	uint64_t meet_s = most->meet_s != 0 ? most->meet_s : MEET_S;
	uint64_t limit_s = most->seconds + (run->plan->length == 0 ? NP_LIMIT_GRACE_S : 0);

	if (np_is_handed(run) && !run->terms->tokens && meet_s > PLAIN_S) {
		meet_s = PLAIN_S;
	}
	limit_s -=
	    most->seconds != 0 ? warm_up_s(run->plan) : 0; /* check_limits() has seen to it */
	return (struct np_drive){
		.run = run,
		.control_fd = c->fd,
		.length_ns = np_plan_time_ns(run->plan),
		.limit_ns = most->seconds != 0 ? limit_s * NP_SEC : 0,
		.meet_ns = (run->end.token != 0 ? ECHO_S : meet_s) * NP_SEC,
		.signals = s->signals,
	};
}

/* All that may be refused, before the test is promised: a worker, too. */
static int
get_ready(const struct np_server *s, const struct np_chan *c, struct np_run *run,
	  struct np_drive *d, struct np_err *err)
{
	if (aim(run->plan, run, err) != NP_OK) {
		return err->code;
	}
	*d = plan_drive(s, c, run);
	return np_drive_hold(d, err);
}

/* What a session tells of while its test runs. */
struct progress {
	const struct np_leave *leave;
	uint64_t seen;
};

static void
tell_progress(void *ctx, const struct np_run *run, uint64_t due_ns, uint64_t now_ns)
{
	struct progress *p = ctx;
	struct np_counts c = np_counts_of(run);
	uint64_t now = np_counts_bytes(&c) + c.transactions;

	if (now != p->seen) {
		p->leave->moved(p->leave->ctx);
	}
	p->seen = now;
}

/* The part between response and results. Returns NP_OK when the flow has results to report. */
static int
run_flow(struct np_server *s, struct np_drive *d, struct np_evidence *ev, struct np_err *err)
{
	struct progress progress = { .leave = &s->leave };
	struct np_run *run = d->run;
	int rc;

	np_evidence_watches(ev, &d->watch[1]);
	if (s->leave.moved != NULL) {
		d->watch[0] = (struct np_watch){ .every_ns = NP_MOVED_S * NP_SEC,
						 .look = tell_progress,
						 .ctx = &progress,
						 .warms_up = true };
	}
	rc = np_drive(d, err);
	s->evidence = np_evidence_end(ev, run);
	if (rc != NP_OK) {
		return rc;
	}
	if (d->cause == NP_BY_LIMIT) {
		return np_refuse(
		    err, NP_EUNSUP, ERANGE,
		    "test ended after %llu s: the daemon allows no longer tests (netserver "
		    "--max-length)",
		    (unsigned long long)s->limits.seconds);
	}
	if (run->err.code != NP_OK) {
		*err = run->err;
		return err->code;
	}
	if (d->cause == NP_BY_SIGNAL) {
		/* Results of a test cut short here must not pass for those of a whole one. */
		return np_fail(err, NP_ESYS, ECANCELED,
			       "test aborted: netserver stops, or other clients wait and no data "
			       "move in this test");
	}
	return NP_OK;
}

/*
 * Frames go to one station, the client's, and never to a group of them; and only as answers to what
 * comes from there.
 */
static int
check_link(const struct np_server *s, const struct np_plan *p, struct np_err *err)
{
	if (s->eth == NULL) {
		return np_refuse(err, NP_EUNSUP, EACCES, "request for a test of the link layer: %s",
				 s->link_why_not != NULL ? s->link_why_not : "there is none here");
	}
	if (np_eth_check_peer(s->eth, p->far.sock.mac, err) != NP_OK) {
		return err->code;
	}
	if (!p->transport->bounded) {
		return NP_OK; /* a connection cuts what is larger than a frame */
	}
	if (np_eth_check_size(s->eth, p->near.call.recv_size, 'm', err) != NP_OK ||
	    np_eth_check_size(s->eth, p->request, 'r', err) != NP_OK ||
	    np_eth_check_size(s->eth, p->response, 'r', err) != NP_OK) {
		return err->code;
	}
	return NP_OK;
}

static int
check_request(const struct np_server *s, const struct np_plan *p, struct np_err *err)
{
	if (np_lacks(s->limits.lacks, p->transport, np_plan_family(p))) {
		/* A socket of it might have the kernel load a module for a stranger. */
		return np_lacks_tell(s->limits.lacks, p->transport, err);
	}
	if (p->transport->link && check_link(s, p, err) != NP_OK) {
		return err->code;
	}
	if (p->transport->admit == NP_ADMIT_HERE && !s->is_here) {
		/* Another machine's would only leave things in /tmp. */
		return np_fail(err, NP_EUNSUP, EACCES,
			       "request for a %s domain test from another machine",
			       p->transport->name);
	}
	if (p->transport->passes_fds && s->collect.capture != NULL) {
		/* By such sockets descriptors get copies, with numbers that its filter misses. */
		return np_fail(err, NP_EUNSUP, EACCES,
			       "request for a %s domain test beside a capture of packets",
			       p->transport->name);
	}
	if (p->near.call.fill_file != NULL && s->fill_dir == 0) {
		/* A client must not be sent this machine's files. */
		return np_fail(err, NP_EUNSUP, EACCES, "request to fill buffers from %s",
			       p->near.call.fill_file);
	}
	return NP_OK;
}

/* A control connection of the UNIX domain comes from this machine. */
static int
ends_of_control(int fd, int family, struct np_addr *near, struct np_addr *far, struct np_err *err)
{
	near->len = far->len = sizeof(far->sa);
	if (getpeername(fd, (struct sockaddr *)&far->sa, &far->len) != 0 ||
	    getsockname(fd, (struct sockaddr *)&near->sa, &near->len) != 0) {
		return np_fail(err, NP_ESYS, errno, "address of the client");
	}
	if (np_family_of(far)->is_here) {
		np_addr_make_loopback(far, family);
		np_addr_make_loopback(near, family);
	}
	np_addr_unmap(near);
	np_addr_unmap(far);
	return NP_OK;
}

/*
 * Anybody can put any address into a datagram, or into a request: so datagrams come from, and go
 * to, nowhere but the address that the control connection has proved.
 */
static int
only_datagrams(const struct np_plan *p, const struct np_addr *client, struct np_addr *only,
	       struct np_err *err)
{
	char text[NP_ADDR_TEXT], asked[NP_ADDR_TEXT];

	*only = *client;
	if (np_family_of(client)->version != np_family(p->family)->version &&
	    np_addr_is_loopback(client)) {
		np_addr_make_loopback(only, p->family); /* this machine, by its other name */
	}
	if (np_family_of(only)->version != np_family(p->family)->version) {
		return np_refuse(
		    err, NP_EUNSUP, EACCES,
		    "datagrams of family %s: the daemon exchanges them only with the address "
		    "of the control connection, %s",
		    np_family(p->family)->name, np_addr_host(client, text));
	}
	if (p->far_bind.len != 0 && !np_addr_same_host(only, &p->far_bind)) {
		return np_refuse(
		    err, NP_EUNSUP, EACCES,
		    "datagrams of %s: the daemon exchanges them only with the address of the "
		    "control connection, %s",
		    np_addr_host(&p->far_bind, asked), np_addr_host(client, text));
	}
	return NP_OK;
}

/*
 * Our clients send to the address of the control connection unless they name another, and hear it
 * alone: so they are answered from it, whichever the routes would choose. Others may mean another
 * one by their host's name.
 */
static int
answer_from(struct np_plan *p, int control_fd, struct np_err *err)
{
	struct np_addr here = { .len = 0 }, client;

	if (p->transport->connected || p->transport->admit != NP_ADMIT_IP || p->bind.len != 0 ||
	    (!p->ids && !p->echo)) {
		return NP_OK;
	}
	if (ends_of_control(control_fd, p->family, &here, &client, err) != NP_OK) {
		return err->code;
	}
	if (np_family_of(&here)->version != np_family(p->family)->version &&
	    np_addr_is_loopback(&here)) {
		np_addr_make_loopback(&here, p->family); /* this machine, by its other name */
	}
	if (np_family_of(&here)->version == np_family(p->family)->version) {
		p->bind = here;
		np_addr_set_port(&p->bind, 0);
	}
	return NP_OK;
}

/*
 * The control connection is of another family, and proves no address of this one: the client has to
 * say its own, and a connection that comes from elsewhere is none of the test's.
 */
static int
only_named(const struct np_plan *p, struct np_addr *only, struct np_err *err)
{
	if (p->far_bind.len == 0) {
		return np_refuse(err, NP_EUNSUP, EACCES,
				 "%s connections from a client that does not name its own address",
				 p->transport->name);
	}
	*only = p->far_bind;
	return NP_OK;
}

/* In the family of the control connection the client's address is known, and its alone counts. */
static int
only_client(const struct np_plan *p, const struct np_addr *client, struct np_addr *only,
	    struct np_err *err)
{
	char text[NP_ADDR_TEXT], asked[NP_ADDR_TEXT];

	if (p->far_bind.len != 0 && !np_addr_same_host(client, &p->far_bind)) {
		return np_refuse(
		    err, NP_EUNSUP, EACCES,
		    "%s connections from %s: the daemon accepts them only from the address of "
		    "the control connection, %s",
		    p->transport->name, np_addr_host(&p->far_bind, asked),
		    np_addr_host(client, text));
	}
	*only = *client;
	return NP_OK;
}

/*
 * The peers that the data socket accepts. A TCP handshake proves an address, so the client may have
 * named another one of its own. It need not have named it where the data takes another way than the
 * control connection: in another family, or to another address of ours. The few addresses beside it
 * that it may name are proved alike, each by its own handshakes.
 */
static int
choose_only(const struct np_plan *p, int control_fd, struct np_terms *out, struct np_err *err)
{
	struct np_addr *only = &out->only;
	struct np_addr here, client;

	if (p->transport->link && p->transport->connected) {
		np_llc_aim(out->eth, p->far.sock.mac, 0, only);
		return NP_OK;
	}
	if (p->transport->admit != NP_ADMIT_PEER && p->transport->admit != NP_ADMIT_IP) {
		return NP_OK; /* check_request() has seen to it, or np_run_open() does */
	}
	if (ends_of_control(control_fd, np_plan_family(p), &here, &client, err) != NP_OK) {
		return err->code;
	}
	if (p->transport->admit == NP_ADMIT_PEER && p->transport->family > 0) {
		return client.sa.ss_family == np_plan_family(p) ? only_client(p, &client, only, err)
								: only_named(p, only, err);
	}
	if (!p->transport->connected) {
		return only_datagrams(p, &client, only, err);
	}
	if (p->far_bind.len != 0) {
		*only = p->far_bind;
		out->only_bits = p->far_bits;
		out->also = p->far_also;
	} else if (np_family_of(&client)->version == 0) {
		return only_named(p, only, err);
	} else if (np_family_of(&client)->version == np_family(p->family)->version &&
		   (p->bind.len == 0 || np_addr_same_host(&p->bind, &here))) {
		*only = client;
	}
	return NP_OK;
}

/* In another VRF the client's address may be another host's. */
static int
check_device(const struct np_server *s, const struct np_plan *p, struct np_err *err)
{
	if (p->near.sock.device[0] == '\0' || (s->limits.devices && !s->limits.one_port)) {
		return NP_OK;
	}
	return np_refuse(err, NP_EUNSUP, EACCES,
			 "data sockets bound to the device %s: the daemon allows none (netserver "
			 "--allow-device, without --one-port)",
			 p->near.sock.device);
}

/*
 * May datagrams be sent to that client? Newer ones echo a token; others get them at the port that
 * they name.
 */
static int
check_sending(const struct np_server *s, const struct np_plan *p, struct np_err *err)
{
	if (p->transport->connected || p->role != NP_LEAD || p->echo) {
		return NP_OK;
	}
	if (s->limits.want_echo) {
		return np_refuse(
		    err, NP_EUNSUP, EACCES,
		    "datagrams to a client that does not echo a token: the daemon sends none "
		    "(netserver --want-echo)");
	}
	if (p->far.sock.port == 0) {
		return np_refuse(err, NP_EUNSUP, EACCES,
				 "datagrams to a client that names no port for them");
	}
	return NP_OK;
}

/* The largest call that the request itself names; 0: it leaves the sizes to us. */
static int32_t
largest_call(const struct np_plan *p)
{
	int32_t size = p->role == NP_LEAD ? p->near.call.send_size : p->near.call.recv_size;

	if (p->pattern->sized) {
		size = p->request > p->response ? p->request : p->response;
	}
	return p->pattern->transactions && !p->pattern->sized ? 0 : size;
}

/* A listener's, or one of each flow. */
static uint32_t
ports_of(const struct np_plan *p)
{
	return p->transport->connected ? 1 : p->flows;
}

static int
check_limits(const struct np_limits *most, struct np_plan *p, const struct np_wish *wish,
	     struct np_err *err)
{
	uint64_t bytes = wish->takes[NP_G_MEMORY] + NP_SESSION_BYTES;
	uint32_t first = p->near.sock.port, last = first + ports_of(p) - 1;
	int32_t call = largest_call(p);

	if (most->seconds != 0 && wish->seconds > most->seconds) {
		return np_refuse(err, NP_EUNSUP, ERANGE,
				 "test of %u s: the daemon allows %llu (netserver --max-length)",
				 wish->seconds, (unsigned long long)most->seconds);
	}
	if (most->seconds != 0 && wish->seconds == 0 && warm_up_s(p) >= most->seconds) {
		return np_refuse(
		    err, NP_EUNSUP, ERANGE,
		    "warm-up of %u s: the daemon allows tests of %llu (netserver --max-length)",
		    warm_up_s(p), (unsigned long long)most->seconds);
	}
	if (most->message != 0 && call > 0 && (uint64_t)call > most->message) {
		return np_refuse(
		    err, NP_EUNSUP, EMSGSIZE,
		    "message of %d bytes: the daemon allows %llu (netserver --max-message)", call,
		    (unsigned long long)most->message);
	}
	if (most->bytes != 0 && bytes > most->bytes) {
		return np_refuse(err, NP_EUNSUP, ENOMEM,
				 "test of %llu bytes of buffers: the daemon allows %llu (netserver "
				 "--max-memory)",
				 (unsigned long long)bytes, (unsigned long long)most->bytes);
	}
	if (most->port_max != 0 && first != 0 &&
	    (first < most->port_min || last > most->port_max)) {
		return np_refuse(
		    err, NP_EUNSUP, EACCES,
		    "data port %u: the daemon allows ports %u to %u (netserver --data-ports)",
		    first < most->port_min ? first : last, most->port_min, most->port_max);
	}
	return NP_OK;
}

bool
np_limits_serve(const struct np_limits *most, const struct np_engine *e)
{
	size_t i = 0;

	while (np_engine_at(i) != e) {
		i++;
	}
	return most->engines == 0 || (most->engines >> i & 1) != 0;
}

/* Why an engine does not drive this end of that plan; NULL: it does. */
static const char *
why_no_engine(const struct np_limits *most, const struct np_engine *e, const struct np_plan *p)
{
	if (!np_limits_serve(most, e)) {
		return "netserver --engines does not name it";
	}
	if (e->spins && most->spin == 0) {
		return "netserver was not started with --spin N, which lets N threads spin";
	}
	return np_engine_why_not(e, p);
}

/* Can what drives this end's data connections do so in this test? */
static int
check_engine(const struct np_limits *most, const struct np_plan *p, struct np_err *err)
{
	const struct np_engine *engine = np_engine_of(p);
	const char *why = why_no_engine(most, engine, p);

	if (why == NULL) {
		return NP_OK;
	}
	return np_refuse(err, NP_EUNSUP, EOPNOTSUPP,
			 "engine %s at the daemon: %s (try --engine list)", engine->name, why);
}

static void
name_test(const struct np_plan *p, char *out, size_t size)
{
	bool sends = p->pattern->lead_direction == NP_WD_TRANSMIT && p->role == NP_LEAD;

	snprintf(out, size, "%s_%s", p->transport->name, sends ? "maerts" : p->pattern->name);
	for (char *at = out; *at != '\0'; at++) {
		*at = (char)toupper((unsigned char)*at);
	}
}

/* A test's own bytes, and what its session takes. */
static int
bytes_of(const struct np_plan *p, const struct np_terms *terms, uint64_t *bytes, struct np_err *err)
{
	if (np_run_bytes(p, terms, bytes, err) != NP_OK) {
		return err->code;
	}
	*bytes = *bytes > UINT64_MAX - NP_SESSION_BYTES ? UINT64_MAX : *bytes + NP_SESSION_BYTES;
	return NP_OK;
}

/* More threads than that would only wait for each other. */
enum { THREADS_A_CPU = 4 };

/*
 * Grant no more flows and workers than there may be; the client learns how many they are. What does
 * not fit with one of each is refused later.
 */
static int
fit(const struct np_limits *most, struct np_plan *p, const struct np_terms *terms, uint64_t *bytes,
    struct np_err *err)
{
	uint32_t *threads = &p->near.place.threads, cpus = (uint32_t)np_cpu_count();
	const struct np_engine *e = np_engine_of(p);
	uint32_t engine_most = e->most != NULL ? e->most() : UINT32_MAX;

	if (engine_most > 0 && *threads > engine_most) {
		*threads = engine_most; /* with none at all the engine is refused */
	}
	*threads = *threads > THREADS_A_CPU * cpus ? THREADS_A_CPU * cpus : *threads;
	if (e->spins && most->spin > 0 && *threads > most->spin) {
		*threads = most->spin;
	}
	if (most->flows != 0 && p->flows > most->flows) {
		p->flows = most->flows;
	}
	while (bytes_of(p, terms, bytes, err) == NP_OK) {
		if (most->bytes == 0 || *bytes <= most->bytes || (*threads <= 1 && p->flows <= 1)) {
			return NP_OK;
		}
		*threads = *threads > 1 ? *threads / 2 : 1;
		p->flows = *threads == 1 && p->flows > 1 ? p->flows / 2 : p->flows;
	}
	return err->code;
}

/*
 * The control connection's port is the data's, too, unless the client names other places. Where the
 * daemon is to send datagrams first it has to be shown a token: nothing else says where to. So it
 * has where many connections say nothing: it would be the daemon's patience that they measure.
 */
static void
choose_way(const struct np_server *s, const struct np_plan *p, struct np_way *way)
{
	const struct np_addr *here = &s->collect.near;
	bool datagrams = !p->transport->connected;
	bool elsewhere = p->near.sock.port != 0 || p->also.count > 0 || p->far_also.count > 0 ||
			 (p->bind.len != 0 && !np_addr_same_host(&p->bind, here)) ||
			 np_family_of(here)->version != np_family(p->family)->version;

	if (!(datagrams ? s->limits.one_port_udp : s->limits.one_port) || elsewhere ||
	    !np_plan_shows_token(p) ||
	    (!p->tokens &&
	     (datagrams ? p->role == NP_LEAD : p->pattern->transactions && !p->pattern->sized))) {
		return;
	}
	*way = (struct np_way){ .wanted = true,
				.tokens = p->tokens,
				.datagrams = datagrams,
				.many = p->pattern->connection_test,
				.port = p->flows == 1 ? (uint16_t)p->far.sock.port : 0,
				.count = p->flows };
	way->silent = !datagrams && (p->role == NP_LEAD || p->pattern->probe);
}

/* What it takes beside memory. */
static void
count_goods(const struct np_plan *p, struct np_wish *wish)
{
	wish->takes[NP_G_THREADS] = np_plan_workers(p);
	wish->takes[NP_G_FLOWS] = p->flows;
	if (np_engine_of(p)->spins) {
		wish->takes[NP_G_SPIN] = wish->takes[NP_G_THREADS];
		wish->spares[NP_G_SPIN] = wish->takes[NP_G_SPIN] - 1;
	}
	if (p->transport->ip_protocol != 0 && !wish->way.wanted) {
		wish->takes[NP_G_PORTS] = ports_of(p);
		wish->spares[NP_G_PORTS] = wish->takes[NP_G_PORTS] - 1;
	}
}

/* What was granted may be less than what was asked for. */
static void
take_goods(const struct np_wish *wish, struct np_plan *p)
{
	if (wish->takes[NP_G_SPIN] > 0) {
		p->near.place.threads = (uint32_t)wish->takes[NP_G_SPIN];
	}
	if (p->transport->ip_protocol != 0 && !p->transport->connected && !wish->way.wanted) {
		p->flows = (uint32_t)wish->takes[NP_G_PORTS];
	}
}

/* Where its data sockets come from. Those of datagrams are connected when they come. */
static void
take_way(const struct np_server *s, const struct np_wish *wish, struct np_plan *p,
	 struct np_terms *terms)
{
	if (wish->data_fd <= 0) {
		return;
	}
	terms->data_fd = wish->data_fd;
	terms->data_at = s->collect.near;
	terms->tokens = wish->way.tokens;
	terms->token = wish->token;
	p->near.sock.connected = wish->way.datagrams || p->near.sock.connected;
}

/* What the test would take; and its parameters made to fit what is not the client's to say. */
static int
make_wish(const struct np_server *s, struct np_plan *p, const struct np_terms *terms,
	  struct np_wish *wish, struct np_err *err)
{
	uint64_t bytes, ns = np_plan_time_ns(p);

	p->sequence = (s->collect.caps & NP_CAP_SEQUENCE) != 0;
	memset(wish, 0, sizeof(*wish));
	name_test(p, wish->test, sizeof(wish->test));
	wish->seconds =
	    ns > 0 ? (uint32_t)((ns + p->warm_up_ms * NP_MSEC + NP_SEC - 1) / NP_SEC) : 0;
	if (fit(&s->limits, p, terms, &bytes, err) != NP_OK) {
		return err->code;
	}
	wish->takes[NP_G_MEMORY] = bytes - NP_SESSION_BYTES;
	choose_way(s, p, &wish->way);
	count_goods(p, wish);
	return NP_OK;
}

/* The data connection is closed before the results go out. */
static int
report(struct np_server *s, struct np_chan *c, const struct np_dialect *dialect, struct np_run *run,
       struct np_err *err)
{
	uint8_t message[NP_MESSAGE_MAX];
	struct np_tally tally;
	struct np_err why;
	int rc = np_tally_take(run, &tally, &why);

	np_run_close(run);
	if (rc != NP_OK) {
		rc = refuse(s, c, dialect->code + 2, &why, err);
	} else {
		log_result(s, run->plan, &tally.count);
		dialect->report(dialect, run->plan, &tally, message);
		rc = answer(c, message, err);
	}
	np_tally_free(&tally);
	return rc;
}

static void
note_served(const struct np_run *run, struct np_served *served)
{
	struct np_counts c = np_counts_of(run);

	served->received = c.received;
	served->sent = c.sent;
	served->transactions = c.transactions;
}

/* A request that is granted: the test itself, from taking memory and sockets to the results. */
static int
run_test(struct np_server *s, struct np_chan *c, const struct np_dialect *dialect,
	 const struct np_plan *p, const struct np_terms *terms, struct np_served *served,
	 struct np_err *err)
{
	struct np_err why = { .code = NP_OK };
	struct np_evidence *ev;
	struct np_stop stop = { 0 };
	struct np_run run;
	struct np_drive d = { .run = &run };
	uint8_t message[NP_MESSAGE_MAX];
	char text[NP_ADDR_TEXT], length[NP_LENGTH_TEXT];
	int rc;

	served->failed = true;
	np_bag_free(s->evidence);
	s->evidence = NULL;
	if (np_run_open(&run, p, terms, &stop, &why) != NP_OK) {
		return refuse(s, c, dialect->code + 1, &why, err);
	}
	if (get_ready(s, c, &run, &d, &why) != NP_OK) {
		np_run_free(&run);
		return refuse(s, c, dialect->code + 1, &why, err);
	}
	np_log(s->log, NP_LOG_DEBUG, "%s: %s %s, length %s, data at %s%s", s->peer,
	       p->transport->name, p->pattern->name, np_plan_length_text(p, length),
	       np_addr_text(&run.end.local, text),
	       run.end.port_moved ? " (the one asked for is in use)" : "");
	dialect->grant(dialect, p, &run, message);
	/* What the session must not send by is known to its filter by number. */
	run.end.held_fd = s->collect.capture != NULL ? np_capture_fd(s->collect.capture) : -1;
	ev = np_evidence_begin(&s->collect, &run);
	np_evidence_capture(ev, &run);
	np_run_hear_afresh(&run);
	rc = answer(c, message, err);
	if (rc != NP_OK) {
		np_drive_release(&d);
		np_bag_free(np_evidence_end(ev, &run));
	} else if (run_flow(s, &d, ev, &why) != NP_OK) {
		/* While the data connection still stands: its end shall not be what is noticed. */
		rc = refuse(s, c, dialect->code + 2, &why, err);
	} else {
		rc = report(s, c, dialect, &run, err);
		served->failed = rc != NP_OK;
	}
	note_served(&run, served);
	np_run_free(&run);
	return rc;
}

/* What no request can change, and the peers that its test may accept. */
static int
make_terms(const struct np_server *s, const struct np_plan *p, int control_fd, struct np_terms *out,
	   struct np_err *err)
{
	*out = (struct np_terms){
		.call_max = s->limits.message,
		.passive_min = s->limits.port_min,
		.passive_max = s->limits.port_max,
		.permit = s->permit,
		.permit_ctx = s->permit_ctx,
		.eth = p->transport->link ? s->eth : NULL,
		.fill_dir = s->fill_dir,
	};
	return choose_only(p, control_fd, out, err);
}

/* Those that can't be had are left out; with none left the workers run where they like. */
static void
place_workers(struct np_server *s, struct np_place *place)
{
	int missing = np_cpus_leave_out(&place->turns);

	if (missing >= 0 && !s->unbound) {
		s->unbound = true;
		np_log(s->log, NP_LOG_INFO, "%s: no worker is bound to processor %d as asked",
		       s->peer, missing);
	}
}

/* By this daemon's rules, and its limits: the plan becomes what it would grant of it. */
static int
settle(const struct np_server *s, const struct np_chan *c, struct np_plan *p,
       struct np_terms *terms, struct np_wish *wish, struct np_err *err)
{
	if (check_request(s, p, err) != NP_OK || make_terms(s, p, c->fd, terms, err) != NP_OK ||
	    answer_from(p, c->fd, err) != NP_OK || check_sending(s, p, err) != NP_OK ||
	    check_device(s, p, err) != NP_OK || make_wish(s, p, terms, wish, err) != NP_OK) {
		return err->code;
	}
	return check_limits(&s->limits, p, wish, err);
}

/* Why that engine would not drive the test that was asked for; NULL: it would. */
static const char *
engine_why_not(const struct np_server *s, const struct np_chan *c, const struct np_engine *e,
	       const struct np_plan *asked, struct np_err *err)
{
	struct np_plan p = *asked;
	struct np_terms terms;
	struct np_wish wish;

	p.near.place.engine = e;
	return settle(s, c, &p, &terms, &wish, err) == NP_OK ? why_no_engine(&s->limits, e, &p)
							     : err->msg;
}

/* What each engine of this end could do in a test. None is begun. */
static int
serve_engines(const struct np_server *s, struct np_chan *c, struct np_err *err)
{
	struct np_err why = { .code = NP_OK };
	const struct np_engine *e;
	struct np_plan p;
	struct np_bag *b;
	int rc;

	np_plan_init(&p);
	if (np_engines_asked(np_chan_message(c), &p, &why) != NP_OK) {
		rc = refuse(s, c, NP_EXT_BAG, &why, err);
	} else {
		b = np_bag_new();
		for (size_t i = 0; (e = np_engine_at(i)) != NULL; i++) {
			np_engine_tell(e, engine_why_not(s, c, e, &p, &why), b);
		}
		rc = send_bag(c, b, err);
		np_bag_free(b);
	}
	np_plan_free(&p);
	return rc;
}

/* -1: the client wishes no processor. */
static void
bind_as_asked(struct np_server *s, int cpu)
{
	struct np_err err;

	if (cpu != -1 && np_bind_cpu(cpu, &err) != NP_OK && !s->unbound) {
		s->unbound = true; /* once is enough */
		np_log(s->log, NP_LOG_INFO, "%s: not bound as asked: %s", s->peer, err.msg);
	}
}

/* No message says which link an address is of: it is the control connection's. */
static void
name_links(const struct np_addr *here, struct np_plan *p)
{
	np_addr_set_link(&p->bind, here);
	np_addr_set_link(&p->far_bind, here);
	for (uint32_t i = 0; i < NP_ALSO_MAX; i++) {
		np_addr_set_link(&p->also.at[i], here);
		np_addr_set_link(&p->far_also.at[i], here);
	}
}

static int
ask_dialect(const struct np_server *s, struct np_chan *c, const struct np_dialect *dialect,
	    struct np_plan *p, struct np_err *err)
{
	int rc = dialect->asked(dialect, np_chan_message(c), p, err);

	name_links(&s->collect.near, p);
	return rc;
}

/* *p is new, and freed by who calls. */
static int
serve_plan(struct np_server *s, struct np_chan *c, const struct np_dialect *dialect,
	   struct np_plan *p, struct np_err *err)
{
	const struct np_leave *leave = &s->leave;
	struct np_err why = { .code = NP_OK };
	struct np_served served = { .failed = false };
	struct np_terms terms;
	struct np_wish wish = { .seconds = 0 };
	int rc;

	if (ask_dialect(s, c, dialect, p, &why) != NP_OK ||
	    settle(s, c, p, &terms, &wish, &why) != NP_OK ||
	    check_engine(&s->limits, p, &why) != NP_OK) {
		if (leave->refused != NULL) {
			leave->refused(leave->ctx, why.sys != 0 ? why.sys : EINVAL);
		}
		return refuse(s, c, dialect->code + 1, &why, err);
	}
	if (leave->ask != NULL && leave->ask(leave->ctx, &wish, c->fd, &why) != NP_OK) {
		return refuse(s, c, dialect->code + 1, &why, err);
	}
	take_goods(&wish, p);
	take_way(s, &wish, p, &terms);
	if (c->is_ours) {
		bind_as_asked(s, p->near.place.cpu);
	}
	place_workers(s, &p->near.place);
	rc = run_test(s, c, dialect, p, &terms, &served, err);
	if (terms.data_fd > 0) {
		close(terms.data_fd);
	}
	if (leave->done != NULL) {
		leave->done(leave->ctx, &served);
	}
	return rc;
}

static int
serve_test(struct np_server *s, struct np_chan *c, const struct np_dialect *dialect,
	   struct np_err *err)
{
	struct np_plan p;
	int rc;

	np_plan_init(&p);
	rc = serve_plan(s, c, dialect, &p, err);
	np_plan_free(&p);
	return rc;
}

/* The second word of netperf's requests. */
static void
obey_affinity(struct np_server *s, const struct np_chan *c, const struct np_head *head)
{
	if (c->is_ours || (c->size == NP_OLD_FRAME_SIZE &&
			   (c->first == NP_DEBUG_ON || c->first == NP_DEBUG_OFF))) {
		return; /* up to 2.3, which begins like this, the word is 0 and no wish */
	}
	bind_as_asked(s, head->word);
}

static int
serve_oddity(struct np_server *s, struct np_chan *c, uint32_t code, struct np_err *err)
{
	s->oddities++;
	np_log(s->log, NP_LOG_INFO, "%s: request %u is not served", s->peer, code);
	return answer_code(c, 0, NP_E_UNKNOWN_REQUEST, NULL, NULL, err);
}

/* Others' tests must not pay for a client that asks and asks. A signal ends the wait. */
static void
take_time(struct np_server *s)
{
	static const struct timespec pause = { .tv_nsec = QUESTION_MS * NP_MSEC };

	if (++s->questions > QUESTIONS) {
		s->questions = QUESTIONS;
		ppoll(NULL, 0, &pause, s->signals.let_in);
	}
}

/* Messages of ours, which only those send who have greeted. */
static int
serve_ours(struct np_server *s, struct np_chan *c, uint32_t type, struct np_err *err)
{
	struct np_err why;

	if (type != NP_EXT_EVIDENCE && (s->granted & NP_CAP_PLAN) == 0) {
		np_refuse(&why, NP_EUNSUP, EACCES,
			  "a test by PLAN: the greeting did not ask for that");
		return refuse(s, c, type, &why, err);
	}
	switch (type) {
	case NP_EXT_EVIDENCE:
		return serve_evidence(s, c, err);
	case NP_EXT_ENGINES:
		return serve_engines(s, c, err);
	default:
		return serve_test(s, c, np_dialect(type), err);
	}
}

static int
serve_request(struct np_server *s, struct np_chan *c, struct np_err *err)
{
	struct np_head head = np_frame_head(np_chan_message(c));
	const struct np_dialect *dialect = np_dialect(head.code);

	obey_affinity(s, c, &head);
	if (dialect != NULL && c->is_ours == np_is_ours(head.code)) {
		s->questions = 0;
	} else {
		take_time(s);
	}
	if (c->is_ours) {
		return serve_ours(s, c, head.code, err);
	}
	if (dialect != NULL && !np_is_ours(head.code)) {
		return serve_test(s, c, dialect, err);
	}
	switch (head.code) {
	case NP_DEBUG_ON:
	case NP_DEBUG_OFF:
		return serve_debug(s, c, head.code == NP_DEBUG_ON, err);
	case NP_CPU_CALIBRATE:
		return serve_calibrate(c, err);
	case NP_PASSPHRASE:
		return NP_OK; /* none is wanted here: no answer, as netperf's daemon does */
	case NP_SYSINFO:
		return serve_sysinfo(c, err);
	case NP_EXT_HELLO:
		if (s->caps != 0) {
			return serve_hello(s, c, err);
		}
		break;
	default:
		break;
	}
	return serve_oddity(s, c, head.code, err);
}

/* The next request; NP_OK with *closed when the client closed instead. */
static int
next_request(const struct np_server *s, struct np_chan *c, bool *closed, struct np_err *err)
{
	uint64_t idle_s = s->limits.idle_s != 0 ? s->limits.idle_s : REQUEST_S;
	uint64_t deadline = np_deadline(idle_s * NP_SEC);
	int rc;

	do {
		rc = np_chan_recv(c, "a request", deadline, s->signals.let_in, err);
	} while (rc == NP_ESYS && err->sys == EINTR && !np_signalled(&s->signals));
	*closed = rc == NP_EPEER && err->sys == 0 && c->have == 0;
	return *closed ? NP_OK : rc;
}

int
np_server_serve(struct np_server *s, struct np_chan *c, struct np_err *err)
{
	uint32_t idle_s = s->limits.idle_s;
	bool closed = false;
	int rc = NP_OK;

	np_sock_watch_peer(c->fd, idle_s == 0                ? SILENCE_S
				  : idle_s < SILENCE_LEAST_S ? SILENCE_LEAST_S
							     : idle_s);
	if (c->have == c->due) {
		rc = serve_request(s, c, err);
	}
	while (rc == NP_OK && !closed && !np_signalled(&s->signals)) {
		rc = next_request(s, c, &closed, err);
		if (rc == NP_OK && !closed) {
			rc = serve_request(s, c, err);
		}
		if (rc == NP_OK && s->oddities >= NP_ODDITIES) {
			rc = np_fail(err, NP_EPEER, 0, "%u unknown requests: the session ends",
				     s->oddities);
		}
	}
	np_bag_free(s->evidence);
	s->evidence = NULL;
	np_chan_close(c);
	return rc;
}
