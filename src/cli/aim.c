#include "cli/aim.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text.h"
#include "bench/engine/engine.h"
#include "bench/transport/endpoint.h"
#include "config.h"
#include "net/addr.h"
#include "net/eth.h"
#include "net/sock.h"
#include "net/sources.h"

void
np_aim_default_host(struct np_target *t)
{
	if (!t->host.given) {
		snprintf(t->host.text, sizeof(t->host.text), "%s",
			 np_family(t->host.family)->version == 6 ||
				 np_family(t->local.family)->version == 6
			     ? "::1"
			     : "localhost");
	}
}

void
np_aim_control(struct np_cli *cli)
{
	struct np_target *t = &cli->target;

	t->silence_s = cli->plan.silence_s;
	memset(&t->wants, 0, sizeof(t->wants));
	t->wants.version = NP_EXT_VERSION;
	/* Evidence of a test includes counts by sequence numbers of datagrams. */
	t->wants.caps =
	    cli->evidence.caps | ((cli->evidence.caps & NP_CAP_TEST) != 0 ? NP_CAP_SEQUENCE : 0);
	t->wants.every_ms = (uint32_t)cli->evidence.sample_ms;
	if (cli->bench.transport != NULL && cli->bench.transport->link) {
		t->wants.caps |= NP_CAP_LINK;
		t->wants.caps |= cli->bench.transport->connected ? NP_CAP_LLC : 0u;
		snprintf(t->wants.device, sizeof(t->wants.device), "%s", cli->data.far_device);
	}
	/* A bench beyond netperf's messages; the plan gets the addresses of --also-bind later. */
	if (cli->plan.bench != NULL && (np_plan_beyond(&cli->plan) != NULL ||
					cli->also[0][0] != '\0' || cli->also[1][0] != '\0')) {
		t->wants.caps |= NP_CAP_PLAN;
	}
	snprintf(t->wants.identity, sizeof(t->wants.identity), "%s", PACKAGE_STRING);
}

/* The family of an IP test's data: as an option says, else that of the control connection. */
static int
data_family(const struct np_cli *cli, const struct np_client *c)
{
	int asked = np_family_or(cli->data.family,
				 np_family_or(cli->data.host.family, cli->data.local.family));
	/* IP data with a control connection of another family: the resolver chooses. */
	int used = np_family_of(&c->used)->version > 0 ? c->used.sa.ss_family : AF_UNSPEC;

	return np_family_or(asked, cli->plan.no_control ? cli->target.host.family : used);
}

/* -N: set the port of ends->remote; by default of echo, discard or chargen (RFC 862 to 864). */
static int
aim_at_service(struct np_cli *cli, struct np_ends *ends, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	const char *name = p->pattern->transactions ? "echo"
			   : p->role == NP_LEAD     ? "discard"
						    : "chargen";
	uint32_t port = p->far.sock.port;
	const struct servent *service;

	/* netperf's older tests have no default, and say so in these words. */
	if (port == 0 &&
	    ((p->bench->flags & NP_B_OLD) != 0 || p->transport->service_protocol == NULL)) {
		return np_fail(err, NP_EPLAIN, 0,
			       "No default port known for the %s test, please set one yourself",
			       p->bench->name);
	}
	if (port == 0) {
		service = getservbyname(name, p->transport->service_protocol);
		if (service == NULL) {
			return np_fail(
			    err, NP_ECONTROL, 0,
			    "-N: no port is known for the service %s (name one: -- -P 0,PORT)",
			    name);
		}
		port = ntohs((uint16_t)service->s_port);
		snprintf(cli->data.port, sizeof(cli->data.port), "%s", name); /* for DEST_PORT */
	}
	np_addr_set_port(&ends->remote.at[0], port);
	return NP_OK;
}

/*
 * Ask the daemon to bind to *remote; of a network (-- -H ADDRESS/BITS), to a random address of it.
 * In a connection test each connection uses another one of the network: then do not ask.
 */
static void
bind_far(struct np_cli *cli, struct np_addr *remote)
{
	struct np_plan *p = &cli->plan;

	if (p->far.sock.mask > 0 && p->pattern->connection_test) {
		return;
	}
	np_endpoint_spread(remote, p->far.sock.mask);
	p->far.sock.mask = -1;
	p->far_bind = *remote;
}

/*
 * Set our data address in the plan, as -- -L does. The daemon accepts no other, but can't see it;
 * or --also-bind adds further ones, which need a first.
 */
static void
bind_near(struct np_cli *cli, struct np_ends *ends)
{
	if (np_addr_towards(&ends->remote.at[0], &cli->plan.bind)) {
		ends->local.at[0] = cli->plan.bind;
		np_addr_host(&cli->plan.bind, cli->data.local.text);
		cli->data.local.given = true;
	} /* else there is no route; the daemon will refuse the test */
	np_addr_host(&ends->local.at[0], ends->local.name); /* for the banner */
}

/*
 * Must the daemon bind to `far`, where we send datagrams? Else it may answer from another address,
 * of the same IPv6 network or any of this machine. Engines that compare sources accept those;
 * connect(2) of others filters them. Beyond netperf's messages the daemon decides.
 */
static bool
must_bind_far(const struct np_plan *p, const struct np_addr *far)
{
	const struct np_sources one = { .at = { *far }, .count = 1, .networks = true };

	/* There is a daemon, datagrams come back, and -H has chosen no network. */
	return !p->no_control && !p->transport->connected && p->transport->admit == NP_ADMIT_IP &&
	       (p->role == NP_FOLLOW || p->pattern->transactions) && !np_engine_of(p)->compares &&
	       np_plan_beyond(p) == NULL && p->far.sock.mask <= 0 &&
	       (!np_sources_single(&one) || np_addr_is_here(far));
}

_Static_assert(NP_PLAN_ALSO / 4 <= NP_ALSO_MAX, "addresses of IPv4");

/* Add the further addresses of one end to *out. text: names joined by "+"; empty: none. */
static int
resolve_also(const char *text, const struct np_cli *cli, int family, struct np_also *out,
	     struct np_err *err)
{
	char copy[sizeof(cli->also[0])], *rest = copy, *word;
	struct np_addrs found;
	size_t max;

	snprintf(copy, sizeof(copy), "%s", text);
	while ((word = strsep(&rest, "+")) != NULL && copy[0] != '\0') {
		if (np_resolve(word, NULL, family, cli->bench.transport->socktype, &found, err) !=
		    NP_OK) {
			return np_fail_in(err, "--also-bind");
		}
		max = NP_PLAN_ALSO / np_addr_size(&found.at[0]); /* as PLAN has room for */
		if (out->count == max) {
			return np_usage(err, "--also-bind: no more than %zu of %s for each end",
					max, np_family(family)->name);
		}
		out->at[out->count++] = found.at[0];
	}
	return NP_OK;
}

/* Set the further addresses of --also-bind. An end with some has to bind to a first one, too. */
static int
set_also(struct np_cli *cli, struct np_ends *ends, struct np_err *err)
{
	struct np_plan *p = &cli->plan;

	p->also.count = p->far_also.count = 0;
	if (resolve_also(cli->also[0], cli, p->family, &p->also, err) != NP_OK ||
	    resolve_also(cli->also[1], cli, p->family, &p->far_also, err) != NP_OK) {
		return err->code;
	}
	if (p->also.count > 0 && p->bind.len == 0) {
		bind_near(cli, ends);
	}
	if (p->far_also.count > 0 && p->far_bind.len == 0) {
		p->far_bind = ends->remote.at[0];
	}
	return NP_OK;
}

/* For a family beside IP: the data stay on this machine, unless -H has its prefix ("vsock:2"). */
static void
name_loopback(struct np_cli *cli, int family)
{
	struct np_addr loopback;

	if (family > 0 && !cli->data.host.given &&
	    np_family_prefixed(cli->target.host.text) != family) {
		np_addr_make_loopback(&loopback, family);
		np_addr_host(&loopback, cli->data.host.text);
		cli->data.host.given = true;
	}
}

/* If routes choose the source by port, bind to the control connection's: others are refused. */
static void
bind_if_source_varies(struct np_plan *p, const struct np_addr *far, const struct np_client *c)
{
	enum { PORTS = 16 }; /* of two next hops, all miss one once in 65536 */
	struct np_addr to = *far, own, near;

	/* Not for another host or family, SCTP (which uses all addresses), or a bound device. */
	if (!np_addr_same_host(far, &c->used) || np_family_of(far)->version == 0 ||
	    p->transport->several_paths || p->near.sock.device[0] != '\0' ||
	    np_sock_local(c->chan.fd, &own, NULL) != NP_OK) {
		return;
	}
	np_addr_set_port(&own, 0);
	for (uint32_t port = 1; port <= PORTS && p->bind.len == 0; port++) {
		np_addr_set_port(&to, port);
		if (np_addr_towards(&to, &near) && !np_addr_same_host(&near, &own)) {
			p->bind = own;
		}
	}
}

/* Netperf's daemon sends a stream of datagrams where the request says: if nowhere, to itself. */
static bool
must_bind_near(const struct np_plan *p, const struct np_addr *far, const struct np_client *c)
{
	return !p->no_control && c->granted.caps == 0 && !p->transport->connected &&
	       p->near.sock.device[0] == '\0' && !p->pattern->transactions &&
	       (p->both || p->role == NP_FOLLOW) && np_family_of(far)->version != 0;
}

/* Is it one of the addresses, whatever the ports? */
static bool
has_host(const struct np_addrs *all, const struct np_addr *one)
{
	for (size_t i = 0; i < all->count; i++) {
		if (np_addr_same_host(&all->at[i], one)) {
			return true;
		}
	}
	return false;
}

/* Of the data host's addresses, prefer the one that answered on the control connection. */
static void
prefer_used(const struct np_cli *cli, const struct np_client *c, struct np_addrs *remote)
{
	if (!cli->plan.no_control &&
	    (cli->data.host.given ? has_host(remote, &c->used)
				  : np_addr_same_family(&remote->at[0], &c->used))) {
		remote->at[0] = c->used;
		np_addr_set_port(&remote->at[0], 0);
	}
}

int
np_aim_data(struct np_cli *cli, const struct np_client *c, struct np_ends *ends, FILE *out,
	    struct np_err *err)
{
	const struct np_transport *t = cli->bench.transport;
	int socktype = t->socktype == SOCK_DGRAM ? SOCK_DGRAM : SOCK_STREAM;
	int family = t->family > 0 ? t->family : data_family(cli, c);
	const struct np_name *local;
	const char *remote;

	name_loopback(cli, t->family);
	local = np_cli_local_name(cli);
	remote = cli->data.host.given ? cli->data.host.text : cli->target.host.text;
	if (np_resolve(remote, NULL, family, socktype, &ends->remote, err) != NP_OK) {
		if (t->family == 0) { /* by getaddrinfo(3) */
			np_text_to_script(
			    out,
			    "complete_addrinfo: could not resolve '%s' port '0' af %d\n"
			    "\tgetaddrinfo returned %d %s\n",
			    remote, family, err->sys, gai_strerror(err->sys));
		}
		return np_fail_in(err, "data connection");
	}
	family = np_family_or(family, ends->remote.at[0].sa.ss_family);
	if (t->family == AF_UNSPEC && np_family(family)->version == 0) {
		return np_usage(
		    err,
		    "data connection: %s is no address for a test over IP (name one: -- -H HOST)",
		    remote);
	}
	if (np_resolve(local != NULL ? local->text : NULL, NULL, family, socktype, &ends->local,
		       err) != NP_OK) {
		return np_fail_in(err, "data connection");
	}
	cli->plan.family = family;
	/* The device of the global -L, unless a test option says where the data go. */
	if (cli->plan.near.sock.device[0] == '\0' && !cli->data.local.given &&
	    !cli->data.host.given && np_family(family)->version != 0) {
		snprintf(cli->plan.near.sock.device, sizeof(cli->plan.near.sock.device), "%s",
			 cli->target.local.device);
	}
	prefer_used(cli, c, &ends->remote);
	if (local != NULL) {
		cli->plan.bind = ends->local.at[0];
	} else if ((t->admit == NP_ADMIT_PEER &&
		    (cli->data.host.given ||
		     !np_addr_same_family(&ends->remote.at[0], &c->used))) ||
		   (!cli->plan.no_control && np_family_of(&c->used)->version == 0)) {
		bind_near(cli, ends); /* the daemon accepts no other, but cannot see it */
	} else if (must_bind_near(&cli->plan, &ends->remote.at[0], c)) {
		(void)np_addr_towards(&ends->remote.at[0], &cli->plan.bind);
	} else if (!cli->plan.no_control) {
		bind_if_source_varies(&cli->plan, &ends->remote.at[0], c);
	}
	if (cli->data.host.given || must_bind_far(&cli->plan, &ends->remote.at[0])) {
		bind_far(cli, &ends->remote.at[0]);
	}
	if (set_also(cli, ends, err) != NP_OK) {
		return err->code;
	}
	return cli->plan.no_control ? aim_at_service(cli, ends, err) : NP_OK;
}

int
np_cli_open_eth(struct np_cli *cli, const struct np_client *c, struct np_eth *link,
		struct np_err *err)
{
	struct np_plan *p = &cli->plan;

	if (p->no_control) {
		return np_usage(
		    err, "-N: %s needs a control connection, which gives the address to send to",
		    cli->bench.name);
	}
	if ((c->granted.caps & NP_CAP_PLAN) == 0) {
		return np_fail(err, NP_EUNSUP, 0,
			       "%s: the netserver at %s has no tests of the link layer (is it "
			       "Plumbline's, and started with --allow-raw?)",
			       cli->bench.name, c->peer);
	}
	if (cli->data.device[0] == '\0') {
		struct np_addr near = { .len = sizeof(near.sa) };

		/* The interface that the control connection goes by. */
		if (getsockname(c->chan.fd, (struct sockaddr *)&near.sa, &near.len) == 0) {
			(void)np_addr_device(&near, cli->data.device);
		}
	}
	if (np_eth_open(link, cli->data.device, err) != NP_OK) {
		return np_fail_in(err, cli->bench.name);
	}
	cli->terms.eth = link;
	if (p->near.call.send_size <= 0) { /* LLC, of connections, takes a part of the MTU */
		p->near.call.send_size =
		    (int32_t)link->mtu - (p->transport->bounded ? 0 : NP_LLC_HEADER);
	}
	if (p->transport->bounded &&
	    (np_eth_check_size(link, p->near.call.send_size, 'm', err) != NP_OK ||
	     np_eth_check_size(link, p->request, 'r', err) != NP_OK ||
	     np_eth_check_size(link, p->response, 'r', err) != NP_OK)) {
		return np_fail_in(err, cli->bench.name);
	}
	return NP_OK;
}
