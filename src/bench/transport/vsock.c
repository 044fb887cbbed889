/* Sockets between a virtual machine and its host (vsock(7)). An address is a CID and a port. */
#include <errno.h>
#include <inttypes.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h> /* uses what sys/socket.h declares */

#include "base/units.h"
#include "bench/bench.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"

/* np_transport.open. If there is no such address, a hint: CID 1 needs a module. */
static int
vsock_open(struct np_run *run, struct np_err *err)
{
	if (np_endpoint_open(run, err) == NP_OK) {
		return NP_OK;
	}
	if (err->sys == EADDRNOTAVAIL) {
		return np_fail(err, NP_ESYS, err->sys,
			       "bind to %s (CID 1 needs the module vsock_loopback)",
			       NP_ADDR_STR(&run->end.local));
	}
	return err->code;
}

/* Sockets are of no use without a module that carries their data: bind one to find out. */
static int
vsock_probe(const struct np_transport *t, struct np_err *err)
{
	static const struct np_sockopts none = { .count = 0 };
	struct np_addr loopback, host, near;
	uint32_t cid = VMADDR_CID_HOST;
	int fd;

	np_addr_make_loopback(&loopback, AF_VSOCK);
	np_addr_make(&host, AF_VSOCK, (const uint8_t *)&cid, 0);
	fd = np_sock_open(AF_VSOCK, t->socktype, 0, &none, &loopback, err);
	if (fd >= 0) {
		close(fd);
		return NP_OK;
	}
	if (err->sys != EADDRNOTAVAIL) {
		np_endpoint_say_missing(t, err);
		return err->code;
	}
	if (np_addr_towards(&host, &near)) { /* a guest that can reach its host */
		return NP_OK;
	}
	return np_fail(err, NP_EUNSUP, 0,
		       "this kernel has nothing that carries VSOCK (try 'modprobe vsock_loopback'; "
		       "in a virtual machine vmw_vsock_virtio_transport, on its host vhost_vsock)");
}

enum { USUAL_BYTES = 256 << 10, MOST_BYTES = 4 << 20 };

/*
 * A connection has one buffer size: the larger of both. It is charged to no process, and any client
 * can ask for it: BUFFER_MAX_SIZE keeps the sum to MOST_BYTES, but allows each the usual size.
 */
static void
vsock_set_buffers(const struct np_plan *p, struct np_sockopts *o)
{
	uint64_t most = np_max(MOST_BYTES / p->flows, USUAL_BYTES), size;
	int32_t wanted =
	    p->near.sock.sndbuf > p->near.sock.rcvbuf ? p->near.sock.sndbuf : p->near.sock.rcvbuf;

	if (wanted < 0) {
		return; /* not asked for */
	}
	size = (uint64_t)wanted;
	np_sockopts_add_value(o, AF_VSOCK, SO_VM_SOCKETS_BUFFER_MAX_SIZE,
			      "SO_VM_SOCKETS_BUFFER_MAX_SIZE", &most, sizeof(most), "%" PRIu64,
			      most);
	np_sockopts_add_value(o, AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, "SO_VM_SOCKETS_BUFFER_SIZE",
			      &size, sizeof(size), "%" PRIu64, size);
}

/* np_transport.buffers.read: the one size is that of both; -1 if it does not fit into an int. */
static void
vsock_get_buffers(int fd, int *sndbuf, int *rcvbuf)
{
	uint64_t size;
	socklen_t len = sizeof(size);

	*rcvbuf = getsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, &size, &len) == 0 &&
			  size <= INT32_MAX
		      ? (int)size
		      : -1;
	*sndbuf = *rcvbuf;
}

/* A whole message has to fit into the far end's buffer. */
static void
seqpacket_too_long(const struct np_run *run, struct np_err *err)
{
	np_fail(err, NP_EUSAGE, EMSGSIZE,
		"a message of %zu bytes is larger than the far end's buffer (-- -S, -m)",
		run->worker->send_size);
}

/* Members common to both socket types. */
#define VSOCK                                                                                      \
	.name = "VSOCK", .family = AF_VSOCK, .kernel.listed = "AF_VSOCK", .reliable = true,        \
	.connected = true, .admit = NP_ADMIT_PEER, .named = true, .kernel.module = "vsock",        \
	.kernel.option = "CONFIG_VSOCKETS", .kernel.probe = vsock_probe,                           \
	.buffers.ask = vsock_set_buffers, .buffers.read = vsock_get_buffers, .open = vsock_open,   \
	.another = np_endpoint_another, .establish = np_endpoint_establish

const struct np_transport np_transport_vsock = {
	VSOCK,
	.socktype = SOCK_STREAM,
};

const struct np_transport np_transport_vsock_seqpacket = {
	VSOCK,
	.socktype = SOCK_SEQPACKET,
	.bounded = true,
	.message.max = 65536,
	.message.too_long = seqpacket_too_long,
	.message.too_long_as = ENOMEM /* Linux 6.1 */,
};
