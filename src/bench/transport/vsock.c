/*
 * Stream sockets between a virtual machine and its host (vsock(7)). The host's daemon and the
 * guest's client, or the other way round, are known by their CIDs.
 */
#include <errno.h>
#include <sys/socket.h>

#include "bench/bench.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"

static int
vsock_open(struct np_run *run, struct np_err *err)
{
	char text[NP_ADDR_TEXT];

	if (np_endpoint_open(run, err) == NP_OK) {
		return NP_OK;
	}
	if (err->sys == EADDRNOTAVAIL) {
		return np_fail(err, NP_ESYS, err->sys,
			       "bind to CID %s (CID 1 needs the module vsock_loopback)",
			       np_addr_text(&run->end.local, text));
	}
	return err->code;
}

const struct np_transport np_transport_vsock = {
	.name = "VSOCK",
	.family = AF_VSOCK,
	.socktype = SOCK_STREAM,
	.reliable = true,
	.connected = true,
	.admit = NP_ADMIT_PEER,
	.named = true,
	.module = "vsock",
	.kconfig = "CONFIG_VSOCKETS",
	.open = vsock_open,
	.another = np_endpoint_another,
	.meet = np_endpoint_meet,
};
