#include "run/client_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/race.h"
#include "net/sock.h"
#include "run/ends.h"

/* Is it a link-local address without the interface that it needs (fe80::1 for fe80::1%eth0)? */
static bool
lacks_interface(const char *host)
{
	return host != NULL && strncasecmp(host, "fe80:", 5) == 0 && strchr(host, '%') == NULL;
}

/* Describe why there is no control connection. Scripts look for netperf's words for it. */
static int
fail_to_connect(const struct np_target *t, const struct np_race *race, struct np_err *err)
{
	const char *host = t->host.text, *local = t->local.given ? t->local.text : NULL;
	const char *bare = lacks_interface(host) ? host : local;
	int sys = err->sys;
	bool several = strchr(race->others, ';') != NULL;

	if (local != NULL && (sys == EADDRNOTAVAIL || sys == EAFNOSUPPORT)) {
		return np_fail(err, NP_ECONTROL, 0,
			       "could not establish the control connection from %s to %s port %s: "
			       "%s (%s)",
			       local, host, t->port, strerror(sys),
			       sys == EAFNOSUPPORT ? "are both of IPv4, or both of IPv6?"
						   : "is the first an address of this machine?");
	}
	if (t->local_port[0] != '\0' && (sys == EADDRINUSE || sys == EACCES)) {
		return np_fail(err, NP_ECONTROL, 0,
			       "could not establish the control connection from port %s: %s (try "
			       "another one: -p %s,PORT)",
			       t->local_port, strerror(sys), t->port);
	}
	if (sys == ENODEV && t->local.device[0] != '\0') {
		return np_fail(err, NP_ECONTROL, 0, "-L: no interface is called %s",
			       t->local.device);
	}
	if (sys == EINVAL && lacks_interface(bare)) {
		return np_fail(err, NP_ECONTROL, 0,
			       "could not establish the control connection to %s port %s: the "
			       "link-local address %s needs its interface (try %s%%eth0)",
			       host, t->port, bare, bare);
	}
	return np_fail(err, NP_ECONTROL, 0,
		       "could not establish the control connection to %s port %s: %s (%s)", host,
		       t->port, several ? race->others : strerror(sys),
		       !several && (sys == ENETUNREACH || sys == EHOSTUNREACH)
			   ? "is there a route, is the host up, and does no firewall refuse it?"
			   : "is netserver running there, on that port?");
}

/* Send the passphrase. A daemon does not answer this, but hangs up if it is wrong. */
static int
send_passphrase(struct np_client *c, const char *passphrase, struct np_err *err)
{
	struct np_head head = { .code = NP_PASSPHRASE, .word = -1 };
	uint8_t frame[NP_FRAME_SIZE];
	struct np_text m;
	int rc;

	snprintf(m.text, sizeof(m.text), "%s", passphrase);
	np_frame_put(frame, &head, np_text_layout, &m);
	rc = np_chan_send(&c->chan, frame, np_deadline(NP_ANSWER_MS * NP_MSEC), err);
	explicit_bzero(&m, sizeof(m));
	explicit_bzero(frame, sizeof(frame));
	return rc;
}

static int
fail_no_key(const struct np_client *c, struct np_err *err)
{
	return np_fail(err, NP_ECONTROL, 0,
		       "the netserver at %s does not use --key-file: is it Plumbline's, and "
		       "started with --key-file?",
		       c->peer);
}

/* Send a message of the proof of a key and receive the answer: its head, and its body in *m. */
static int
exchange(struct np_client *c, uint32_t code, struct np_auth_body *m, struct np_head *head,
	 struct np_err *err)
{
	struct np_head asking = { .code = code, .word = -1 };
	uint8_t frame[NP_FRAME_SIZE];

	np_frame_put(frame, &asking, np_auth_body_layout, m);
	if (np_chan_send(&c->chan, frame, np_deadline(NP_ANSWER_MS * NP_MSEC), err) != NP_OK ||
	    np_client_receive(c, "the answer to --key-file", np_deadline(NP_ANSWER_MS * NP_MSEC),
			      err) != NP_OK) {
		return err->code;
	}
	*head = np_frame_head(c->chan.in);
	if (head->word == 0 && head->code == code + 1 &&
	    np_frame_get(c->chan.in, np_auth_body_layout, m, err) != NP_OK) {
		return err->code;
	}
	return NP_OK;
}

/* Both ends prove that they have the key; nonces make a recorded proof useless. */
static int
authenticate(struct np_client *c, const struct np_target *t, struct np_err *err)
{
	uint8_t near_nonce[NP_AUTH_BYTES], far_nonce[NP_AUTH_BYTES], ends[NP_AUTH_ENDS];
	const struct np_auth_scope scope = { near_nonce, far_nonce, t->nat ? NULL : ends };
	struct np_auth_body m = { .version = t->nat ? NP_AUTH_LOOSE : NP_AUTH_VERSION };
	uint32_t version = m.version;
	struct np_head head = { .code = 0 };
	int rc;

	np_auth_nonce(near_nonce);
	np_ends_of(c->chan.fd, true, ends);
	/* A daemon without keys answers a nonce with an error, or hangs up. */
	memcpy(m.bytes, near_nonce, sizeof(m.bytes));
	rc = exchange(c, NP_AUTH_HELLO, &m, &head, err);
	if (rc == NP_EPEER && c->chan.have == 0) { /* it hung up */
		return fail_no_key(c, err);
	}
	if (rc != NP_OK) {
		return rc;
	}
	if (np_frame_is_text(c->chan.in, NP_FRAME_SIZE)) {
		return np_fail(err, NP_EPEER, 0,
			       "the program that listens at %s is not a netserver", c->peer);
	}
	if (head.word != 0 && head.word != NP_E_UNKNOWN_REQUEST) {
		return np_client_remote_error(c, "refuses", err);
	}
	if (head.word != 0 || head.code != NP_AUTH_CHALLENGE || m.version != version) {
		return fail_no_key(c, err);
	}
	memcpy(far_nonce, m.bytes, sizeof(m.bytes));
	np_auth_prove(t->key, NP_AUTH_CLIENT, &scope, m.bytes);
	if (exchange(c, NP_AUTH_PROOF, &m, &head, err) != NP_OK) {
		return err->code;
	}
	if (head.word == EACCES) {
		return np_fail(err, NP_ECONTROL, 0,
			       "the netserver at %s refuses the key of --key-file: is it the same "
			       "at both ends?%s",
			       c->peer, t->nat ? "" : " (if there is a NAT on the path: --nat)");
	}
	if (head.word != 0) {
		return np_client_remote_error(c, "refuses", err);
	}
	if (head.code != NP_AUTH_WELCOME || m.version != version ||
	    !np_auth_check(t->key, NP_AUTH_SERVER, &scope, m.bytes)) {
		return np_fail(err, NP_ECONTROL, 0,
			       "the netserver at %s does not know the key of --key-file: this may "
			       "be the wrong daemon",
			       c->peer);
	}
	c->heard = true;
	return NP_OK;
}

/* np_race.tick */
static void
draw_progress(void *live)
{
	np_live_look(live, NULL);
}

/* Open one connection and give the daemon the key or passphrase that it may demand. */
static int
open_control(struct np_client *c, const struct np_target *t, const struct np_addrs *remote,
	     const struct np_addrs *local, struct np_err *err)
{
	struct np_race race = { .tick = draw_progress, .ctx = c->live, .device = t->local.device };
	struct np_addrs order = *remote;
	int fd;

	/* Try the address first that answered before. */
	for (size_t i = 1; i < order.count; i++) {
		if (c->used.len != 0 && np_addr_same_host(&order.at[i], &c->used)) {
			order.at[0] = remote->at[i];
			order.at[i] = remote->at[0];
			break;
		}
	}
	fd = np_race_connect(&order, local, np_deadline(NP_ANSWER_MS * NP_MSEC), &race, err);
	if (fd < 0) {
		c->unreachable = remote->at[0].sa.ss_family;
		return fail_to_connect(t, &race, err);
	}
	np_sock_watch_peer(fd, t->silence_s);
	if (race.others[0] != '\0' && !np_addr_is_loopback(&race.used)) {
		np_client_tell(c, "%s: %s is used (%s)", t->host.text, NP_HOST_STR(&race.used),
			       race.others);
	}
	c->used = race.used;
	c->heard = false;
	c->owed = 0;
	snprintf(c->peer, sizeof(c->peer), "%s port %s", t->host.text, t->port);
	if (np_chan_open(&c->chan, fd, c->peer, err) != NP_OK) {
		close(fd);
		return err->code;
	}
	c->chan.rest_ns = NP_ANSWER_MS * NP_MSEC;
	if ((t->key != NULL && authenticate(c, t, err) != NP_OK) ||
	    (t->key == NULL && t->passphrase != NULL &&
	     send_passphrase(c, t->passphrase, err) != NP_OK)) {
		np_chan_close(&c->chan);
		return err->code;
	}
	return NP_OK;
}

/* Greet the daemon. NP_EUNSUP if it does not know the greeting; very old ones hang up. */
static int
greet(struct np_client *c, const struct np_hello_message *wants, struct np_err *err)
{
	uint8_t frame[NP_FRAME_SIZE];
	int rc;

	np_hello_put(frame, NP_EXT_HELLO, wants);
	rc = np_client_request(c, frame, NP_EXT_WELCOME, "the answer to the greeting",
			       NP_RESPONSE_MS, err);
	if (rc == NP_EPEER && c->chan.have == 0) {
		return np_fail(err, NP_EUNSUP, 0, "hung up");
	}
	if (rc == NP_ECONTROL && c->remote_error == NP_E_UNKNOWN_REQUEST) {
		c->remote_error = 0; /* netperf's daemon */
		return np_fail(err, NP_EUNSUP, 0, "not known");
	}
	if (rc != NP_OK) {
		return rc;
	}
	if (np_hello_get(c->chan.in, &c->granted, err) != NP_OK) {
		return np_fail_in(err, c->peer);
	}
	c->granted.caps &= wants->caps; /* believe no others */
	c->chan.most = np_answer_most;
	return NP_OK;
}

int
np_client_connect(struct np_client *c, const struct np_target *t, struct np_err *err)
{
	static const struct linger reset = { .l_onoff = 1 };
	const char *local_host = t->local.given ? t->local.text : NULL;
	const char *local_port = t->local_port[0] != '\0' ? t->local_port : NULL;
	struct np_addrs remote, local;
	int rc;

	memset(&c->granted, 0, sizeof(c->granted));
	np_live_step(c->live, NP_LIVE_CONNECTING, 0);
	np_live_look(c->live, NULL); /* draw it now: resolving a name may take long */
	if (np_resolve(t->host.text, t->port, t->host.family, SOCK_STREAM, &remote, err) != NP_OK) {
		c->unresolved = err->sys;
		return err->code;
	}
	local.count = 0;
	if ((local_host != NULL || local_port != NULL) &&
	    np_resolve(local_host, local_port, np_family_or(t->local.family, t->host.family),
		       SOCK_STREAM, &local, err) != NP_OK) {
		return err->code;
	}
	if (open_control(c, t, &remote, &local, err) != NP_OK) {
		return err->code;
	}
	if (t->wants.caps == 0) {
		return NP_OK;
	}
	np_live_step(c->live, NP_LIVE_ASKING, 0);
	rc = greet(c, &t->wants, err);
	if (rc == NP_OK) {
		return NP_OK;
	}
	/* Close by a reset: the next connection may need the same local port at once. */
	setsockopt(c->chan.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	np_chan_close(&c->chan);
	return rc == NP_EUNSUP ? open_control(c, t, &remote, &local, err) : rc;
}
