/* OMNI tests: test-specific options choose the protocol, the direction and the connections. */
#include <string.h>
#include <strings.h>

#include "cli/args.h"

/* Use protocol 0, the kernel's default for the socket type of base: TCP, or UDP for datagrams. */
static void
take_default(struct np_cli *cli, const struct np_transport *base)
{
	cli->transport = *base;
	cli->transport.name = "IP Default";
	cli->transport.protocol = 0;
	/* By the protocol's number netperf decides what to read of a connection: of 0 nothing. */
	cli->transport.read_closing = cli->transport.read_closing_first = NULL;
	cli->transport.ramps = false; /* the daemon knows none of that name */
	cli->bench.transport = &cli->transport;
}

/* The transport of -- -T and -t. Unknown words are ignored with a note, as netperf does. */
static int
choose_transport(struct np_cli *cli, struct np_err *err)
{
	const char *protocol = cli->omni.protocol, *type = cli->omni.type;
	const struct np_transport *t;

	/* netperf has SDP; this version does not. */
	if (protocol != NULL && strcasecmp(protocol, "sdp") == 0) {
		return np_usage(err, "-T: %s is not in this version (try tcp, udp or sctp)",
				protocol);
	}
	if (type != NULL && strstr(type, "seqpacket") != NULL) {
		return np_usage(err, "-t: %s sockets are not in OMNI tests (try stream or dgram)",
				type);
	}
	t = protocol != NULL ? np_transport_by_name(protocol, 0) : NULL;
	t = t != NULL && t->wire_type != 0 ? t : NULL; /* else OMNI has no number for it */
	if (t != NULL) {
		cli->bench.transport = t;
	} else if (protocol != NULL) {
		NP_NOTE(&cli->notes,
			"-- -T %.40s: not a protocol: using the default, as netperf does\n",
			protocol);
		take_default(cli, cli->bench.transport);
	}
	if (type != NULL && strstr(type, "stream") == NULL && strstr(type, "dgram") == NULL) {
		NP_NOTE(&cli->notes,
			"-- -t %.40s: not a type of socket (stream, dgram): using that of "
			"the protocol, as netperf does\n",
			type);
	}
	if (type != NULL && strstr(type, "dgram") != NULL && cli->bench.transport->connected) {
		if (protocol != NULL && t != NULL) {
			return np_usage(err, "-t: %s does not send datagrams (try -T udp)",
					protocol);
		}
		take_default(cli, &np_transport_udp);
	}
	return NP_OK;
}

/* direction: NP_WD_* as this end sees it. np_pattern_find() takes and gives the daemon's view. */
static int
choose_pattern(struct np_cli *cli, uint32_t direction, struct np_err *err)
{
	struct np_bench *b = &cli->bench;
	int far_role;

	if (direction == NP_WD_NONE && !cli->omni.connections) {
		direction = NP_WD_TRANSMIT;
	}
	b->pattern = np_pattern_find(direction == NP_WD_TRANSMIT  ? NP_WD_RECEIVE
				     : direction == NP_WD_RECEIVE ? NP_WD_TRANSMIT
								  : direction,
				     cli->omni.connections, &far_role);
	if (b->pattern == NULL) {
		return np_usage(err, "-c: connections need requests and responses (try -d rr)");
	}
	b->near_role = far_role == NP_LEAD ? NP_FOLLOW : NP_LEAD;
	return NP_OK;
}

int
np_omni_choose(struct np_cli *cli, struct np_err *err)
{
	bool omni = strcasecmp(cli->test, "OMNI") == 0;
	const struct np_bench *row = np_bench_find(omni ? "TCP_STREAM" : cli->test);
	int rc = NP_OK;

	cli->bench = *row;
	if (row->code != NP_OMNI) {
		const struct np_omni_choice *o = &cli->omni;
		const char *option = o->protocol != NULL ? "-T"
				     : o->type != NULL   ? "-t"
				     : o->connections    ? "-c"
							 : "-d";

		/* The test's row decides this, not options. */
		if (o->protocol == NULL && o->type == NULL && !o->connections &&
		    !o->direction_given) {
			return NP_OK;
		}
		return np_usage(err, "%s: the test %s does not allow it (try -t OMNI)", option,
				cli->bench.name);
	}
	if (choose_transport(cli, err) != NP_OK) {
		return err->code;
	}
	cli->omni.connections = cli->omni.connections || row->pattern->connection_test;
	if (omni) {
		struct np_bench *b = &cli->bench;

		if (choose_pattern(cli, cli->omni.direction, err) != NP_OK) {
			return err->code;
		}
		/* netperf's title has room for 31 characters. */
		snprintf(cli->title, sizeof(cli->title), "OMNI %s TEST",
			 b->pattern->words[b->near_role].direction);
		b->title = cli->title;
		b->name = "OMNI";
		cli->output.style = /* OMNI has no classic table */
		    cli->output.style == NP_STYLE_CLASSIC ? NP_STYLE_COLUMNS : cli->output.style;
		cli->bench.flags =
		    !cli->bench.transport->connected && !cli->bench.pattern->transactions
			? NP_B_ROUTE_OFF
			: 0;
	} else if (cli->omni.connections != row->pattern->connection_test) {
		/* -- -c, such as TCP_RR with a connection for each transaction */
		rc = choose_pattern(cli,
				    row->pattern->transactions  ? row->pattern->lead_direction
				    : row->near_role == NP_LEAD ? NP_WD_TRANSMIT
								: NP_WD_RECEIVE,
				    err);
	}
	if (rc == NP_OK && cli->bench.pattern->connection_test &&
	    !np_delivers(cli->bench.transport)) {
		return np_usage(err, "-c: %s %s (try -T tcp)", cli->bench.transport->name,
				cli->bench.transport->connected ? "may lose a transaction"
								: "has no connections");
	}
	return rc;
}
