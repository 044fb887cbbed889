/* Stream sockets of a cluster (tipc(7), linux/tipc.h). The kernel assigns node and number. */
#include <sys/socket.h>

#include "bench/bench.h"
#include "bench/transport/endpoint.h"

const struct np_transport np_transport_tipc = {
	.name = "TIPC",
	.family = AF_TIPC,
	.socktype = SOCK_STREAM,
	.kernel.listed = "TIPC",
	.reliable = true,
	.connected = true,
	.admit = NP_ADMIT_PEER,
	.named = true,
	.kernel.module = "tipc",
	.kernel.option = "CONFIG_TIPC",
	.open = np_endpoint_open,
	.another = np_endpoint_another,
	.establish = np_endpoint_establish,
};
