/* What a client may ask for, and which peers its test accepts data from and sends data to. */
#include <errno.h>

#include "bench/lacks.h"
#include "net/eth.h"
#include "run/server_parts.h"

/* Refuse what no limit is about: that the kernel would load code, reach files or other hosts. */
static int
check_request(const struct np_server *s, const struct np_plan *p, struct np_err *err)
{
	const struct np_eth *eth = s->terms.eth;

	if (np_lacks(s->limits.lacks, p->transport, np_plan_family(p))) {
		/* Opening a socket could make the kernel load a module for a stranger. */
		return np_lacks_fail(s->limits.lacks, p->transport, err);
	}
	if (p->transport->link && eth == NULL) {
		return np_deny(err, EACCES, "request for a test of the link layer: %s",
			       s->link_why_not != NULL ? s->link_why_not : "there is none here");
	}
	/* Frames are only exchanged with the client's station, not with a group address. A
	 * connection divides what is larger than a frame. */
	if (p->transport->link &&
	    (np_eth_check_peer(eth, p->far.sock.mac, err) != NP_OK ||
	     (p->transport->bounded &&
	      (np_eth_check_size(eth, p->near.call.recv_size, 'm', err) != NP_OK ||
	       np_eth_check_size(eth, p->request, 'r', err) != NP_OK ||
	       np_eth_check_size(eth, p->response, 'r', err) != NP_OK)))) {
		return err->code;
	}
	if (p->transport->admit == NP_ADMIT_HERE && !s->is_here) {
		/* A test of another machine could only leave files in /tmp. */
		return np_fail(err, NP_EUNSUP, EACCES,
			       "request for a %s domain test from another machine",
			       p->transport->name);
	}
	if (p->transport->passes_fds && s->collect.capture != NULL) {
		/* The filter that forbids the capture's socket to send knows its descriptor only:
		 * by such a test the session could duplicate it. */
		return np_fail(err, NP_EUNSUP, EACCES,
			       "request for a %s domain test beside a capture of packets",
			       p->transport->name);
	}
	if (p->near.call.fill_file != NULL && !np_fills_zeros(&p->near.call) &&
	    s->terms.fill_dir == 0) {
		/* A client must not read this machine's files. */
		return np_fail(err, NP_EUNSUP, EACCES, "request to fill buffers from %s",
			       p->near.call.fill_file);
	}
	return NP_OK;
}

/* Addresses of the control connection: loopback in the UNIX domain. */
static void
control_addresses(const struct np_server *s, int family, struct np_addr *near, struct np_addr *far)
{
	if (s->client != NULL) {
		*far = *s->client;
		*near = s->collect.near;
	} else {
		np_addr_make_loopback(far, family);
		*near = *far;
	}
}

/* Is the address of that family? A loopback address is replaced by that of the family. */
static bool
match_family(struct np_addr *a, int family)
{
	if (np_family_of(a)->version != np_family(family)->version && np_addr_is_loopback(a)) {
		np_addr_make_loopback(a, family);
	}
	return np_family_of(a)->version == np_family(family)->version;
}

/* Accept only the control connection's address, which is proved: any other can be forged. */
static int
accept_client(const struct np_plan *p, const struct np_addr *client, struct np_addr *only,
	      struct np_err *err)
{
	bool fits;

	*only = *client;
	fits = p->transport->admit != NP_ADMIT_IP || match_family(only, p->family);
	if (fits && (p->far_bind.len == 0 || np_addr_same_host(only, &p->far_bind))) {
		return NP_OK;
	}
	return np_deny(err, EACCES,
		       "%s of %s%s: the daemon exchanges them only with the address of the control "
		       "connection, %s",
		       p->transport->connected ? "connections" : "datagrams", fits ? "" : "family ",
		       fits ? NP_HOST_STR(&p->far_bind) : np_family(p->family)->name,
		       NP_HOST_STR(client));
}

/*
 * Bind to the control connection's address, where our clients send datagrams to unless they name
 * one. netperf's, which have neither ids nor echoes, may use another address here.
 */
static void
use_control_address(const struct np_server *s, struct np_plan *p)
{
	struct np_addr here, client;

	if (p->transport->connected || p->transport->admit != NP_ADMIT_IP || p->bind.len != 0 ||
	    (!p->ids && !p->echo)) {
		return;
	}
	control_addresses(s, p->family, &here, &client);
	if (match_family(&here, p->family)) {
		p->bind = here;
		np_addr_set_port(&p->bind, 0);
	}
}

/* Another family proves no address here: accept only connections from the one the client names. */
static int
accept_named(const struct np_plan *p, struct np_addr *only, struct np_err *err)
{
	if (p->far_bind.len == 0) {
		return np_deny(err, EACCES,
			       "%s connections from a client that does not name its own address",
			       p->transport->name);
	}
	*only = p->far_bind;
	return NP_OK;
}

/*
 * Choose accepted peers. A TCP handshake proves an address, so the client may name other ones; it
 * need not if data use another family or local address than control: then any peer is accepted.
 */
static int
choose_peers(const struct np_server *s, const struct np_plan *p, struct np_terms *out,
	     struct np_err *err)
{
	struct np_addr *only = &out->only;
	struct np_addr here, client;

	if (p->transport->link && p->transport->connected) {
		np_llc_address(out->eth, p->far.sock.mac, 0, only);
		return NP_OK;
	}
	if (p->transport->admit != NP_ADMIT_PEER && p->transport->admit != NP_ADMIT_IP) {
		return NP_OK; /* the peer is checked by check_request() or np_run_open() */
	}
	control_addresses(s, np_plan_family(p), &here, &client);
	if (p->transport->admit == NP_ADMIT_PEER && p->transport->family > 0) { /* vsock, TIPC */
		return client.sa.ss_family == np_plan_family(p)
			   ? accept_client(p, &client, only, err)
			   : accept_named(p, only, err);
	}
	if (!p->transport->connected) {
		return accept_client(p, &client, only, err);
	}
	if (p->far_bind.len != 0) {
		*only = p->far_bind;
		out->only_bits = p->far_bits;
		out->also = p->far_also;
	} else if (np_family_of(&client)->version == 0) {
		return accept_named(p, only, err);
	} else if (np_family_of(&client)->version == np_family(p->family)->version &&
		   (p->bind.len == 0 || np_addr_same_host(&p->bind, &here))) {
		*only = client;
	} /* else any peer */
	return NP_OK;
}

int
np_server_allow(const struct np_server *s, struct np_plan *p, struct np_terms *out,
		struct np_wish *wish, struct np_err *err)
{
	/* No request can change these. */
	*out = s->terms;
	out->call_max = s->limits.message;
	out->passive_min = s->limits.port_min;
	out->passive_max = s->limits.port_max;
	out->eth = p->transport->link ? s->terms.eth : NULL;
	if (check_request(s, p, err) != NP_OK || choose_peers(s, p, out, err) != NP_OK) {
		return err->code;
	}
	use_control_address(s, p);
	/* May datagrams be sent to this client? Newer ones echo a token; others name a port. */
	if (!p->transport->connected && p->role == NP_LEAD && !p->echo) {
		if (s->limits.want_echo) {
			return np_deny(err, EACCES,
				       "datagrams to a client that does not echo a token: "
				       "the daemon sends none "
				       "(netserver --want-echo)");
		}
		if (p->far.sock.port == 0) {
			return np_deny(err, EACCES,
				       "datagrams to a client that names no port for them");
		}
	}
	/* In another VRF the client's address may belong to another host. */
	if (p->near.sock.device[0] != '\0' && (!s->limits.devices || s->limits.one_port)) {
		return np_deny(err, EACCES,
			       "data sockets bound to the device %s: the daemon allows none "
			       "(netserver --allow-device, without --one-port)",
			       p->near.sock.device);
	}
	return np_server_wish(s, p, out, wish, err);
}
