#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/engine/engine.h"
#include "config.h"
#include "net/sock.h"
#include "run/server_parts.h"
#include "sys/cpu.h"
#include "wire/plan.h"

/* Deadlines of a session, in seconds. */
enum {
	/* For the next request, without --max-idle; keep-alive notices a dead client. */
	REQUEST_S = 86400,
	SILENCE_S = 120,     /* of the client's kernel; --max-idle if that is given, */
	SILENCE_LEAST_S = 10 /* but not less */
};

/*
 * Requests other than tests may cost 10 ms of CPU each: QUESTIONS of them, more than clients send
 * between tests, are answered at once, the next after QUESTION_MS, then twice as long, up to 1.3 s.
 */
enum { QUESTIONS = 16, QUESTION_MS = 10, DOUBLINGS = 7 };

/* A peer that sends this many unknown requests is no client: the session ends. */
enum { UNKNOWN_MOST = 32 };

enum { SAMPLE_MS = 10 }; /* at least, between two samples: each takes some 10 us */

/* CPU_CALIBRATE: netperf's client asks how fast processors are before it measures them. */
static int
serve_calibrate(struct np_chan *c, struct np_err *err)
{
	/* On Linux the "rate" is the number of clock ticks a second: nothing has to be measured. */
	struct np_calibrate_response m = {
		.rate = (float)sysconf(_SC_CLK_TCK),
		.num_cpus = (int32_t)sysconf(_SC_NPROCESSORS_ONLN),
	};

	return np_server_answer_code(c, NP_CPU_CALIBRATE, 0, np_calibrate_response_layout, &m, err);
}

/* Agree on what later tests may have. A client may send a greeting again. */
static int
serve_hello(struct np_server *s, struct np_chan *c, struct np_err *err)
{
	struct np_hello_message asked, granted = { .version = NP_EXT_VERSION };
	uint8_t frame[NP_FRAME_SIZE];

	if (np_hello_get(c->in, &asked, err) != NP_OK) {
		return np_server_refuse(s, c, NP_EXT_WELCOME, err);
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
	c->most = np_request_most; /* from now on there are messages of ours */
	return np_server_answer(c, frame, err);
}

/* Answer with a bag; b NULL: an empty one. */
static int
send_bag(struct np_chan *c, const struct np_bag *b, struct np_err *err)
{
	uint8_t *message;
	int rc = np_bag_encode(b, &message, err);

	if (rc == NP_OK) {
		rc = np_server_answer(c, message, err);
		free(message);
	}
	return rc;
}

/* Answer with facts of this host, or evidence of the last test, if the greeting asked for it. */
static int
serve_evidence(const struct np_server *s, struct np_chan *c, struct np_err *err)
{
	struct np_evidence_message m;
	struct np_bag *host;
	int rc;

	if (np_tagged_get(&np_tagged_evidence, np_chan_message(c), &m, err) != NP_OK) {
		return np_server_refuse(s, c, NP_EXT_BAG, err);
	}
	if (s->collect.caps == 0 ||
	    (m.about == NP_ABOUT_HOST && (s->collect.caps & NP_CAP_HOST) == 0)) {
		np_deny(err, EACCES, "evidence: the greeting did not ask for it");
		return np_server_refuse(s, c, NP_EXT_BAG, err);
	}
	if (m.about != NP_ABOUT_HOST) {
		return send_bag(c, s->evidence, err);
	}
	host = np_bag_new();
	np_evidence_host(&s->collect, -1, host); /* -1: of no connection */
	rc = send_bag(c, host, err);
	np_bag_free(host);
	return rc;
}

/* Tell which engines of this end could drive a test, without running it. */
static int
serve_engines(const struct np_server *s, struct np_chan *c, struct np_err *err)
{
	const struct np_engine *e;
	struct np_plan p;
	struct np_terms terms;
	struct np_wish wish;
	struct np_bag *b = np_bag_new();
	int rc;

	np_plan_init(&p);
	rc = np_engines_dialect.decode_request(&np_engines_dialect, np_chan_message(c), &p, err);
	for (size_t i = 0; rc == NP_OK && (e = np_engine_at(i)) != NULL; i++) {
		struct np_plan one = p; /* the limits may reduce it */
		const char *why_not;

		one.near.place.engine = e;
		why_not = np_server_allow(s, &one, &terms, &wish, err) == NP_OK
			      ? np_server_why_no_engine(&s->limits, e, &one)
			      : err->msg;
		np_engine_tell(e, why_not, b);
	}
	rc = rc == NP_OK ? send_bag(c, b, err) : np_server_refuse(s, c, NP_EXT_BAG, err);
	np_bag_free(b);
	np_plan_free(&p);
	return rc;
}

/* Bind to the processor that the client asked for; -1: none. */
static void
bind_to_processor(struct np_server *s, int cpu)
{
	struct np_err err;

	if (cpu != -1 && np_bind_cpu(cpu, &err) != NP_OK && !s->unbound) {
		s->unbound = true; /* logged once */
		np_log(s->log, NP_LOG_INFO, "%s: not bound to a processor: %s", s->peer, err.msg);
	}
}

/* Serve a request: decode it, ask for admission, run the test. A refusal is answered: an error. */
static int
serve_test(struct np_server *s, struct np_chan *c, const struct np_dialect *dialect,
	   struct np_err *err)
{
	const struct np_admission *admission = &s->admission;
	struct np_served served = { .failed = true };
	struct np_terms terms;
	struct np_wish wish = { .seconds = 0 };
	const char *why_not;
	struct np_plan p;
	int rc, missing;

	np_plan_init(&p);
	rc = dialect->decode_request(dialect, np_chan_message(c), &p, err);
	/* Link-local addresses in messages lack an interface: use the control connection's. */
	np_addr_set_link(&p.bind, &s->collect.near);
	np_addr_set_link(&p.far_bind, &s->collect.near);
	for (uint32_t i = 0; i < NP_ALSO_MAX; i++) {
		np_addr_set_link(&p.also.at[i], &s->collect.near);
		np_addr_set_link(&p.far_also.at[i], &s->collect.near);
	}
	rc = rc == NP_OK ? np_server_allow(s, &p, &terms, &wish, err) : rc;
	if (rc == NP_OK &&
	    (why_not = np_server_why_no_engine(&s->limits, np_engine_of(&p), &p)) != NULL) {
		rc = np_deny(err, EOPNOTSUPP, "engine %s at the daemon: %s (try --engine list)",
			     np_engine_of(&p)->name, why_not);
	}
	if (rc != NP_OK && admission->tell != NULL) {
		served.refused = err->sys != 0 ? err->sys : EINVAL;
		admission->tell(admission->ctx, &served);
	} else if (rc == NP_OK && admission->ask != NULL) {
		rc = admission->ask(admission->ctx, &wish, c->fd, err);
	}
	if (rc != NP_OK) {
		np_plan_free(&p);
		return np_server_refuse(s, c, dialect->code + 1, err);
	}
	np_server_apply_grant(s, &wish, &p, &terms);
	if (c->is_ours) { /* serve_request() did it for netperf's messages */
		bind_to_processor(s, p.near.place.cpu);
	}
	/* Leave out processors that are not available; with none left, workers run anywhere. */
	missing = np_cpus_leave_out(&p.near.place.turns); /* the first; -1: none */
	if (missing >= 0 && !s->unbound) {
		s->unbound = true;
		np_log(s->log, NP_LOG_INFO,
		       "%s: no worker is bound to processor %d, which is not available", s->peer,
		       missing);
	}
	rc = np_server_test(s, c, dialect, &p, &terms, &served, err);
	if (terms.data_fd > 0) { /* of the grant */
		close(terms.data_fd);
	}
	if (admission->tell != NULL) {
		admission->tell(admission->ctx, &served);
	}
	np_plan_free(&p);
	return rc;
}

/* Requests in our own format, after a greeting. */
static int
serve_ours(struct np_server *s, struct np_chan *c, uint32_t type, struct np_err *err)
{
	if (type == NP_EXT_EVIDENCE) {
		return serve_evidence(s, c, err);
	}
	if ((s->granted & NP_CAP_PLAN) == 0) {
		np_deny(err, EACCES, "a test by PLAN: the greeting did not ask for that");
		return np_server_refuse(s, c, type, err);
	}
	return type == NP_EXT_ENGINES ? serve_engines(s, c, err)
				      : serve_test(s, c, np_dialect(type), err);
}

/* Serve one request. One that is no test waits if QUESTIONS of them came before, in a row. */
static int
serve_request(struct np_server *s, struct np_chan *c, struct np_err *err)
{
	static const struct np_text sysinfo = { ",Deprecated,Deprecated,Deprecated,Deprecated" };
	struct np_head head = np_frame_head(np_chan_message(c));
	const struct np_dialect *dialect = np_dialect(head.code);

	/* The second word of netperf's requests is a processor. Clients up to 2.3, which begin with
	 * NP_DEBUG_ON or _OFF, always send 0. */
	if (!c->is_ours && (c->size != NP_OLD_FRAME_SIZE ||
			    (c->first != NP_DEBUG_ON && c->first != NP_DEBUG_OFF))) {
		bind_to_processor(s, head.word);
	}
	if (dialect != NULL && c->is_ours == np_is_ours(head.code)) {
		s->questions = 0;
	} else if (++s->questions > QUESTIONS) {
		unsigned further = s->questions - QUESTIONS - 1;
		struct timespec left;

		s->questions -= further == DOUBLINGS; /* the next wait is as long */
		ppoll(NULL, 0, np_left(np_deadline((QUESTION_MS * NP_MSEC) << further), &left),
		      s->signals.let_in);
	}
	if (c->is_ours) {
		return serve_ours(s, c, head.code, err);
	}
	if (dialect != NULL && !np_is_ours(head.code)) { /* PLAN needs a greeting */
		return serve_test(s, c, dialect, err);
	}
	if (head.code == NP_EXT_HELLO && s->caps != 0) {
		return serve_hello(s, c, err);
	}
	switch (head.code) {
	case NP_DEBUG_ON:
	case NP_DEBUG_OFF:
		if (!s->quiet) {
			s->log->level = head.code == NP_DEBUG_ON ? NP_LOG_DEBUG : NP_LOG_INFO;
		}
		return np_server_answer_code(c, NP_DEBUG_OK, 0, NULL, NULL, err);
	case NP_CPU_CALIBRATE:
		return serve_calibrate(c, err);
	case NP_PASSPHRASE:
		return NP_OK; /* not needed here; like netperf's daemon, do not answer */
	case NP_SYSINFO:
		/* The same answer as that of netperf 2.7. */
		return np_server_answer_code(c, NP_SYSINFO_RESPONSE, 0, np_text_layout, &sysinfo,
					     err);
	default:
		s->unknown++;
		np_log(s->log, NP_LOG_INFO, "%s: request %u is not served", s->peer, head.code);
		return np_server_answer_code(c, 0, NP_E_UNKNOWN_REQUEST, NULL, NULL, err);
	}
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
	if (c->have == c->due) { /* read already, when the client was admitted */
		rc = serve_request(s, c, err);
	}
	while (rc == NP_OK && !closed && !np_signalled(&s->signals)) {
		uint64_t deadline = np_deadline((idle_s != 0 ? idle_s : REQUEST_S) * NP_SEC);

		do {
			rc = np_chan_recv(c, "a request", deadline, s->signals.let_in, err);
		} while (rc == NP_ESYS && err->sys == EINTR && !np_signalled(&s->signals));
		if (rc == NP_EPEER && err->sys == 0 && c->have == 0) {
			closed = true; /* between two requests */
			rc = NP_OK;
		} else if (rc == NP_OK) {
			rc = serve_request(s, c, err);
		}
		if (rc == NP_OK && s->unknown >= UNKNOWN_MOST) {
			rc = np_fail(err, NP_EPEER, 0, "%u unknown requests: the session ends",
				     s->unknown);
		}
	}
	np_bag_free(s->evidence);
	s->evidence = NULL;
	np_chan_close(c);
	return rc;
}
