#include "cli/modes.h"

#include <math.h>
#include <sys/socket.h>

#include "net/addr.h"
#include "net/tcpinfo.h"
#include "out/preflight_rules.h"
#include "run/evidence.h"

/* Print both ends' facts and findings, or only this end's if the daemon reports none. */
static int
print_both_ends(struct np_client *c, struct np_err *err)
{
	struct np_bag *near = np_bag_new(), *far = NULL;
	double near_mbps, far_mbps;
	struct np_tcp_brief tcp;
	struct np_preflight local, remote;
	struct np_evidence_wants wants = { .near.len = sizeof(wants.near.sa) }; /* the interface */
	int rc = np_client_host(c, &far, err);

	if (getsockname(c->chan.fd, (struct sockaddr *)&wants.near.sa, &wants.near.len) != 0) {
		wants.near.len = 0;
	} else {
		np_addr_unmap(&wants.near);
	}
	np_evidence_host(&wants, c->chan.fd, near);
	/* The shortest round trip so far, and the rate of the slower interface; 0: unknown. */
	(void)np_tcp_read(c->chan.fd, &tcp, NULL); /* -1 in *tcp if it fails */
	local = (struct np_preflight){ .host = near, .peer = far };
	local.rtt_s = fmax((double)(tcp.min_rtt_us > 0 ? tcp.min_rtt_us : tcp.rtt_us) / 1e6, 0);
	near_mbps = np_bag_number(near, "host.nic.speed_mbps");
	far_mbps = np_bag_number(far, "host.nic.speed_mbps");
	local.rate_bps = isnan(near_mbps) && isnan(far_mbps) ? 0 : fmin(near_mbps, far_mbps) * 1e6;
	remote = local;
	remote.host = far;
	remote.peer = near;
	np_preflight_summary(stdout, "local", &local);
	if (rc == NP_OK) {
		np_preflight_summary(stdout, "remote", &remote);
	}
	np_preflight_print(stdout, "local", &local);
	if (rc == NP_OK) {
		np_preflight_print(stdout, "remote", &remote);
	} else if (rc == NP_ECONTROL) { /* the daemon reports none */
		printf("only this end is shown: %s\n", err->msg);
		rc = NP_OK;
	}
	np_bag_free(near);
	np_bag_free(far);
	return rc;
}

/* No daemon is asked: print this end's facts and findings. here: its address; len 0: unknown. */
static void
print_only_this_end(const struct np_addr *here)
{
	const struct np_evidence_wants wants = { .near = *here };
	struct np_bag *near = np_bag_new();
	struct np_preflight local = { .host = near };

	np_evidence_host(&wants, -1, near); /* -1: no connection */
	np_preflight_summary(stdout, "local", &local);
	np_preflight_print(stdout, "local", &local);
	np_bag_free(near);
}

int
np_preflight_run(struct np_cli *cli, struct np_client *c, struct np_err *err)
{
	/* Documentation addresses (RFC 5737, RFC 3849), to which nothing is sent. */
	static const struct {
		int family;
		const char *host;
	} outside[] = { { AF_INET, "192.0.2.1" }, { AF_INET6, "2001:db8::1" } };
	struct np_addr here = { .len = 0 };
	struct np_addrs a;
	int rc;

	if (!cli->target.host.given) {
		/* The local address of the default route. */
		for (size_t i = 0; i < 2 && here.len == 0; i++) {
			int of = outside[i].family;

			if (np_family_or(cli->target.host.family, of) == of &&
			    np_resolve(outside[i].host, "9", of, SOCK_DGRAM, &a, NULL) == NP_OK) {
				(void)np_addr_towards(&a.at[0], &here);
			}
		}
		print_only_this_end(&here);
		printf("only this end is shown: no host was named (-H)\n");
		return NP_OK;
	}
	cli->target.wants.caps = NP_CAP_HOST;
	rc = cli->plan.no_control ? NP_OK : np_client_connect(c, &cli->target, err);
	if (rc == NP_OK && !cli->plan.no_control) {
		rc = print_both_ends(c, err);
		np_chan_close(&c->chan);
		return rc;
	}
	if (rc == NP_OK) {
		rc = np_resolve(cli->target.host.text, "9", cli->target.host.family, SOCK_DGRAM, &a,
				err);
	}
	if (rc == NP_OK) {
		(void)np_addr_towards(&a.at[0], &here);
		print_only_this_end(&here);
		printf("only this end is shown: without a control connection (-N)\n");
	}
	return rc;
}
