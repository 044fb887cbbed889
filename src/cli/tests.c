#include "cli/args.h"

#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "bench/transport/dccp.h"

/* Tests without a row in the table of benches: defined by options (OMNI), or without any data. */
static const struct {
	const char *name;
	enum np_test test;
} others[] = {
	{ "OMNI", NP_TEST_BENCH },
	{ "UUID", NP_TEST_UUID },
	{ "LOC_CPU", NP_TEST_LOC_CPU },
	{ "REM_CPU", NP_TEST_REM_CPU },
};
enum { OTHERS = sizeof(others) / sizeof(others[0]) };

const char *
np_cli_test_at(size_t i)
{
	size_t benches = 0;

	while (np_bench_at(benches) != NULL) {
		benches++;
	}
	if (i < benches) {
		return np_bench_at(i)->name;
	}
	return i - benches < OTHERS ? others[i - benches].name : NULL;
}

enum np_test
np_cli_test(const struct np_cli *cli)
{
	for (size_t i = 0; i < OTHERS; i++) {
		if (strcasecmp(cli->test, others[i].name) == 0) {
			return others[i].test;
		}
	}
	return np_bench_find(cli->test) != NULL ? NP_TEST_BENCH : NP_TEST_UNKNOWN;
}

unsigned
np_cli_scope(const struct np_cli *cli)
{
	static const unsigned scopes[] = {
		[NP_SCAN_IP] = NP_SCOPE_OMNI,   [NP_SCAN_OMNI] = NP_SCOPE_OMNI,
		[NP_SCAN_UNIX] = NP_SCOPE_UNIX, [NP_SCAN_LINK] = NP_SCOPE_LINK,
		[NP_SCAN_SCTP] = NP_SCOPE_SCTP,
	};
	const struct np_bench *bench = np_bench_find(cli->test);

	if (strcasecmp(cli->test, "OMNI") == 0 || strcasecmp(cli->test, "UUID") == 0) {
		return NP_SCOPE_OMNI; /* netperf parses the options of UUID as those of OMNI */
	}
	if (bench == NULL) {
		return 0;
	}
	return bench->transport->scanner == NP_SCAN_IP && (bench->flags & NP_B_OLD) != 0
		   ? NP_SCOPE_BSD
		   : scopes[bench->transport->scanner];
}

unsigned
np_cli_traits(const struct np_bench *b)
{
	const struct np_pattern *p = b->pattern;
	const struct np_transport *t = b->transport;
	unsigned has = NP_FOR_DATA;

	has |= t->family == AF_UNSPEC && !t->link ? NP_FOR_IP : 0u;
	has |= t->ip_protocol == IPPROTO_TCP ? NP_FOR_TCP : 0u;
	has |= t->ip_protocol != 0 && np_delivers(t) ? NP_FOR_SEGMENTS : 0u;
	has |= t->scanner == NP_SCAN_SCTP ? NP_FOR_SCTP : 0u;
	has |= t->ip_protocol != 0 && !t->connected ? NP_FOR_UDP : 0u;
	has |= t->ip_protocol == NP_IPPROTO_DCCP ? NP_FOR_DCCP : 0u;
	has |= t->named ? NP_FOR_NAMED : 0u;
	has |= t->encrypts ? NP_FOR_TLS : 0u;
	has |= !p->transactions && !p->probe ? NP_FOR_BYTES : 0u;
	has |= (has & NP_FOR_BYTES) != 0 && np_delivers(t) ? NP_FOR_PIPE : 0u;
	has |= p->sized ? NP_FOR_SIZED : 0u;
	has |= p->sized && !p->connection_test ? NP_FOR_BURST : 0u;
	has |= p->transactions && !t->reliable ? NP_FOR_LOSSES : 0u;
	has |= p->connection_test ? NP_FOR_CONNECTS : 0u;
	has |= p->transactions && t->family == AF_UNIX && !t->connected ? NP_FOR_PATH : 0u;
	return has;
}
