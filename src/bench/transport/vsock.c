/*
 * Stream sockets between a virtual machine and its host (vsock(7)). The host's daemon and the
 * guest's client, or the other way round, are known by their CIDs.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h> /* uses what sys/socket.h declares */

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
			       "bind to %s (CID 1 needs the module vsock_loopback)",
			       np_addr_text(&run->end.local, text));
	}
	return err->code;
}

/* There may be sockets with nothing that carries what they send: that is a module of its own. */
static int
vsock_probe(struct np_err *err)
{
	static const struct np_sockopts none = { .count = 0 };
	struct np_addr here, host, seen;
	uint32_t cid = VMADDR_CID_HOST;
	int fd;

	np_addr_make_loopback(&here, AF_VSOCK);
	np_addr_make(&host, AF_VSOCK, (const uint8_t *)&cid, 0);
	fd = np_sock_open(AF_VSOCK, SOCK_STREAM, 0, &none, &here, err);
	if (fd >= 0) {
		close(fd);
		return NP_OK;
	}
	if (err->sys != EADDRNOTAVAIL) {
		np_endpoint_say_missing(&np_transport_vsock, err);
		return err->code;
	}
	if (np_addr_towards(&host, &seen)) {
		return NP_OK;
	}
	return np_fail(err, NP_EUNSUP, 0,
		       "this kernel has nothing that carries VSOCK (try 'modprobe vsock_loopback'; "
		       "in a virtual machine vmw_vsock_virtio_transport, on its host vhost_vsock)");
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
	.probe = vsock_probe,
	.open = vsock_open,
	.another = np_endpoint_another,
	.meet = np_endpoint_meet,
};
