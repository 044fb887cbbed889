/*
 * What the kernel knows of a TCP connection beyond what libc's header has fields for.
 */
#ifndef NP_NET_TCPINFO_H
#define NP_NET_TCPINFO_H

#include <stdint.h>

/*
 * Bytes that the far end has acknowledged and bytes received from it, added up: grows as long as
 * the connection carries anything (TCP_INFO, linux/tcp.h). 0 when the kernel does not say.
 */
uint64_t np_tcp_moved(int fd);

#endif
