#include "cli/facts.h"

#include <sys/socket.h>

const struct np_name *
np_facts_local(const struct np_cli *cli)
{
	if (cli->data.local.given) {
		return &cli->data.local;
	}
	return cli->target.local.given && !cli->data.host.given ? &cli->target.local : NULL;
}

const char *
np_facts_any(int family)
{
	return np_family(family)->version == 6 ? "::0" : "0.0.0.0";
}

static void
addresses(const struct np_cli *cli, struct np_record *r)
{
	const struct np_name *local = np_facts_local(cli);
	int family = cli->data.family;
	int asked = np_family_or(cli->data.host.family, cli->target.host.family);

	if (cli->data.local.given) {
		family = np_family_or(family, cli->data.local.family);
	}
	np_record_text(r, NP_M_SOURCE_PORT, cli->data.local_port);
	np_record_text(r, NP_M_SOURCE_ADDR,
		       local != NULL ? local->text : np_facts_any(cli->plan.family));
	np_record_int(r, NP_M_SOURCE_FAMILY, family);
	np_record_text(r, NP_M_DEST_PORT, cli->data.port);
	np_record_text(r, NP_M_DEST_ADDR,
		       cli->data.host.given ? cli->data.host.text : cli->target.host.text);
	/* Sic: a family that netperf was not told of it takes from the control connection. */
	np_record_int(r, NP_M_DEST_FAMILY, cli->plan.no_control ? asked : cli->plan.family);
	NP_MARK_IF(family == AF_UNSPEC, r, NP_M_SOURCE_FAMILY); /* the user named none */
}

/* Sic: of the row that -t names, whatever -T and -t make of it. */
static const char *
socket_type(const struct np_cli *cli)
{
	const struct np_bench *row = np_bench_find(cli->test);

	if (row != NULL && row->transport->socktype == SOCK_SEQPACKET) {
		return "Seqpacket";
	}
	return row != NULL && row->transport->bounded ? "Datagram" : "Stream";
}

static const char *
text_or_none(const char *text)
{
	return text != NULL ? text : "";
}

void
np_facts(const struct np_cli *cli, struct np_record *r)
{
	np_record_text(r, NP_M_OUTPUT_NONE, " ");
	np_record_text(r, NP_M_SOCKET_TYPE, socket_type(cli));
	np_record_int(r, NP_M_LOCAL_CPU_BIND, cli->plan.near.place.cpu);
	np_record_int(r, NP_M_REMOTE_CPU_BIND, cli->plan.far.place.cpu);
	np_record_text(r, NP_M_LOCAL_FILL_FILE, text_or_none(cli->plan.near.call.fill_file));
	np_record_text(r, NP_M_REMOTE_FILL_FILE, text_or_none(cli->plan.far.call.fill_file));
	np_record_text(r, NP_M_COMMAND_LINE, cli->command_line);
	np_record_text(r, NP_M_UUID,
		       cli->output.uuid != NULL ? cli->output.uuid : cli->output.uuid_made);
	if (cli->output.brand != NULL) {
		np_record_text(r, NP_M_RESULT_BRAND, cli->output.brand);
	}
	addresses(cli, r);
	np_record_withdraw(r);
}
