/*
 * Connections that come through a proxy, which first sends the client's address: version 2 of the
 * PROXY protocol (https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt). Accepted only from
 * addresses that the operator names (--proxy-protocol), as a proxy can claim any client address.
 */
#ifndef NETSERVER_PROXIED_H
#define NETSERVER_PROXIED_H

#include "net/addr.h"

enum ns_proxied {
	NS_PROXIED_MORE, /* its header is not there yet */
	NS_PROXIED_DONE, /* it was read */
	NS_PROXIED_WRONG /* no header, one of another version, or cut off by the stream's end */
};

/* Read the header. *peer: the client's address; for the proxy's own connections, the proxy's. */
enum ns_proxied ns_proxied_read(int fd, struct np_addr *peer);

#endif
