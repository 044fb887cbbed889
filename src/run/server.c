#include "run/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/sock.h"
#include "run/talk.h"
#include "sys/affinity.h"
#include "wire/chan.h"

/* Deadlines of a session, in seconds. */
enum {
	/* For the next request, as long as a client may wait by -s; keep-alive notices a dead one.
	 */
	REQUEST_S = 86400,
	ANSWER_S = 10, /* for an answer to be taken */
	MEET_S = 120,  /* for the client to make the data connection */
	ADMIT_S = 20   /* for the passphrase, as netperf's own daemon waits */
};

static int
answer(struct np_chan *c, const uint8_t *frame, struct np_err *err)
{
	return np_chan_send(c, frame, np_deadline(ANSWER_S * NP_SEC), err);
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
log_result(const struct np_server *s, const struct np_params *p, const struct np_flow *f)
{
	np_log(s->log, NP_LOG_DEBUG,
	       "%s: %s %s ended: %llu bytes received, %llu sent, %llu transactions", s->peer,
	       p->transport->name, p->pattern->name,
	       (unsigned long long)np_seen(&f->count->received),
	       (unsigned long long)np_seen(&f->count->sent),
	       (unsigned long long)np_seen(&f->count->transactions));
}

/* A test that can't be run, or failed: say so on the wire and in the log. */
static int
refuse(const struct np_server *s, struct np_chan *c, uint32_t code, const struct np_err *why,
       struct np_err *err)
{
	np_log(s->log, NP_LOG_ERROR, "%s: %s", s->peer, why->msg);
	if (answer_code(c, code, why->sys != 0 ? why->sys : EINVAL, NULL, NULL, err) != NP_OK) {
		return err->code;
	}
	*err = *why;
	return why->code;
}

/* The part between response and results. Returns NP_OK when the flow has results to report. */
static int
run_flow(const struct np_server *s, struct np_chan *c, struct np_flow *f, struct np_err *err)
{
	struct np_drive d = {
		.flow = f,
		.control_fd = c->fd,
		.length_ns = f->par->length > 0 ? (uint64_t)f->par->length * NP_SEC : 0,
		.meet_ns = MEET_S * NP_SEC,
		.signals = s->signals,
	};

	if (np_drive(&d, err) != NP_OK) {
		return err->code;
	}
	if (d.cause == NP_BY_CLOCK && f->ended_ns > f->started_ns + d.length_ns) {
		/* The wait for a client that says nothing at its end is no part of the test. */
		f->ended_ns = f->started_ns + d.length_ns;
	}
	if (f->err.code != NP_OK) {
		*err = f->err;
		return err->code;
	}
	if (d.cause == NP_BY_SIGNAL) {
		/* Results of a test cut short here must not pass for those of a whole one. */
		return np_fail(err, NP_ESYS, ECANCELED, "test given up, as netserver is ended");
	}
	return NP_OK;
}

/* The test is of this machine alone: a stranger's request would only leave things in /tmp. */
static bool
is_from_here(int control_fd)
{
	struct np_addr peer = { .len = sizeof(peer.sa) };

	if (getpeername(control_fd, (struct sockaddr *)&peer.sa, &peer.len) != 0) {
		return false;
	}
	np_addr_unmap(&peer);
	return np_addr_is_here(&peer);
}

static int
check_request(const struct np_server *s, struct np_params *p, int control_fd, struct np_err *err)
{
	if (p->transport->family == AF_UNIX && !is_from_here(control_fd)) {
		return np_fail(err, NP_EUNSUP, EACCES,
			       "request for a UNIX domain test from another machine");
	}
	if (p->near.fill_file[0] != '\0' && s->fill_dir == 0) {
		/* Whoever may ask must not be sent this machine's files. */
		return np_fail(err, NP_EUNSUP, EACCES, "request to fill buffers from %s",
			       p->near.fill_file);
	}
	p->near.fill_dir = s->fill_dir;
	return NP_OK;
}

/*
 * Where a daemon that leads with datagrams sends them: only to the machine that asked, whatever
 * address the request names.
 */
static int
aim(const struct np_params *p, int control_fd, struct np_flow *f, struct np_err *err)
{
	struct np_addr peer = { .len = sizeof(peer.sa) };

	if (!p->transport->datagram || p->role != NP_LEAD) {
		return NP_OK;
	}
	if (getpeername(control_fd, (struct sockaddr *)&peer.sa, &peer.len) != 0) {
		return np_fail(err, NP_ESYS, errno, "address of the client");
	}
	np_addr_unmap(&peer);
	if (peer.sa.ss_family != p->family || p->far.port == 0 ||
	    (p->far_bind.len != 0 && !np_addr_same_host(&peer, &p->far_bind))) {
		return np_fail(err, NP_EUNSUP, EACCES,
			       "request to send datagrams elsewhere than to the client");
	}
	np_addr_set_port(&peer, p->far.port);
	f->peer = peer;
	return NP_OK;
}

static int
serve_test(const struct np_server *s, struct np_chan *c, const struct np_dialect *dialect,
	   struct np_err *err)
{
	struct np_params p;
	struct np_stop stop = { 0 };
	struct np_flow f;
	struct np_err why = { .code = NP_OK };
	uint8_t frame[NP_FRAME_SIZE];
	char text[NP_ADDR_TEXT];
	int rc;

	np_params_init(&p);
	if (dialect->asked(c->in, &p, &why) != NP_OK ||
	    check_request(s, &p, c->fd, &why) != NP_OK ||
	    np_flow_open(&f, &p, &stop, &why) != NP_OK) {
		return refuse(s, c, dialect->code + 1, &why, err);
	}
	if (aim(&p, c->fd, &f, &why) != NP_OK) {
		np_flow_free(&f);
		return refuse(s, c, dialect->code + 1, &why, err);
	}
	np_log(s->log, NP_LOG_DEBUG, "%s: %s %s, length %lld, data at %s%s", s->peer,
	       p.transport->name, p.pattern->name, (long long)p.length,
	       np_addr_text(&f.local, text), f.port_moved ? " (the one asked for is in use)" : "");
	dialect->grant(&p, &f, frame);
	rc = answer(c, frame, err);
	if (rc == NP_OK) {
		rc = run_flow(s, c, &f, &why);
		np_flow_close(&f);
		if (rc != NP_OK) {
			rc = refuse(s, c, dialect->code + 2, &why, err);
		} else {
			log_result(s, &p, &f);
			dialect->report(&p, &f, frame);
			rc = answer(c, frame, err);
		}
	}
	np_flow_free(&f);
	return rc;
}

static void
obey_affinity(const struct np_server *s, const struct np_chan *c, const struct np_head *head)
{
	struct np_err err;

	if (c->size == NP_OLD_FRAME_SIZE && (c->first == NP_DEBUG_ON || c->first == NP_DEBUG_OFF)) {
		return; /* up to 2.3, which begins like this, the word is 0 and no wish */
	}
	if (head->word != -1 && np_bind_cpu(head->word, &err) != NP_OK) {
		np_log(s->log, NP_LOG_INFO, "%s: not bound as asked: %s", s->peer, err.msg);
	}
}

static int
serve_request(const struct np_server *s, struct np_chan *c, struct np_err *err)
{
	struct np_head head = np_frame_head(c->in);
	const struct np_dialect *dialect = np_dialect(head.code);

	obey_affinity(s, c, &head);
	if (dialect != NULL) {
		return serve_test(s, c, dialect, err);
	}
	switch (head.code) {
	case NP_DEBUG_ON:
	case NP_DEBUG_OFF:
		return serve_debug(s, c, head.code == NP_DEBUG_ON, err);
	case NP_CPU_CALIBRATE:
		return serve_calibrate(c, err);
	case NP_PASSPHRASE:
		return NP_OK; /* none is wanted any more: no answer, as netperf's daemon does */
	case NP_SYSINFO:
		return serve_sysinfo(c, err);
	default:
		np_log(s->log, NP_LOG_INFO, "%s: request %u is not served", s->peer, head.code);
		return answer_code(c, 0, NP_E_UNKNOWN_REQUEST, NULL, NULL, err);
	}
}

/* The next request; NP_OK with *closed when the client closed instead. */
static int
next_request(const struct np_server *s, struct np_chan *c, bool *closed, struct np_err *err)
{
	uint64_t deadline = np_deadline(REQUEST_S * NP_SEC);
	int rc;

	do {
		rc = np_chan_recv(c, "a request", deadline, s->signals.let_in, err);
	} while (rc == NP_ESYS && err->sys == EINTR && !np_signalled(&s->signals));
	*closed = rc == NP_EPEER && err->sys == 0 && c->have == 0;
	return *closed ? NP_OK : rc;
}

/* Takes the same time wherever the two differ: texts are padded with zeros. */
static bool
is_passphrase(const struct np_server *s, const struct np_text *came)
{
	struct np_text wanted = { .text = "" };
	unsigned difference = 0;

	snprintf(wanted.text, sizeof(wanted.text), "%s", s->passphrase);
	for (size_t i = 0; i < sizeof(wanted.text); i++) {
		difference |= (unsigned)(wanted.text[i] ^ came->text[i]);
	}
	return difference == 0;
}

/* Without the passphrase in its first message a client gets no word, as from netperf's daemon. */
static int
admit(const struct np_server *s, struct np_chan *c, struct np_err *err)
{
	uint64_t deadline = np_deadline(ADMIT_S * NP_SEC);
	struct np_text came;
	struct np_head head;
	int rc;

	do {
		rc = np_chan_recv(c, "the passphrase", deadline, s->signals.let_in, err);
	} while (rc == NP_ESYS && err->sys == EINTR && !np_signalled(&s->signals));
	if (rc != NP_OK) {
		return rc;
	}
	head = np_frame_head(c->in);
	if (head.code != NP_PASSPHRASE) {
		return np_fail(err, NP_EPEER, EACCES, "request %u came without the passphrase",
			       head.code);
	}
	if (np_frame_get(c->in, np_text_layout, &came, err) != NP_OK || !is_passphrase(s, &came)) {
		return np_fail(err, NP_EPEER, EACCES, "wrong passphrase");
	}
	obey_affinity(s, c, &head);
	return NP_OK;
}

int
np_server_serve(struct np_server *s, int fd, struct np_err *err)
{
	struct np_chan c;
	bool closed = false;
	int rc;

	np_sock_watch_peer(fd);
	rc = np_chan_open(&c, fd, s->peer, err);
	c.may_be_old = true;
	if (rc == NP_OK && s->passphrase != NULL) {
		rc = admit(s, &c, err);
	}
	while (rc == NP_OK && !closed && !np_signalled(&s->signals)) {
		rc = next_request(s, &c, &closed, err);
		if (rc == NP_OK && !closed) {
			rc = serve_request(s, &c, err);
		}
	}
	close(fd);
	return rc;
}
