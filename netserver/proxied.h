/*
 * Connections that come by a proxy, which says first whose they are: version 2 of the PROXY
 * protocol (https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt). Only those of addresses
 * that the operator names (--proxy-protocol), as whoever may say it can be anybody.
 */
#ifndef NETSERVER_PROXIED_H
#define NETSERVER_PROXIED_H

#include "net/addr.h"

enum ns_proxied {
	NS_PROXIED_MORE, /* its header is not there yet */
	NS_PROXIED_DONE, /* and it was taken */
	NS_PROXIED_WRONG /* it is none, or of another version */
};

/* Take the header. *peer: whose connection it is; the proxy's own ones are the proxy's. */
enum ns_proxied ns_proxied_read(int fd, struct np_addr *peer);

#endif
