#include "netserver/proxied.h"

#include <string.h>
#include <sys/socket.h>

#include "net/sock.h"

enum {
	HEAD = 16,      /* bytes before the addresses */
	LENGTH_AT = 14, /* where the length of what follows HEAD is, 2 bytes */
	MOST = 536,     /* bytes of a header: the specification puts it into the first segment */
	LOCAL = 0x20,   /* version and command */
	PROXY = 0x21,
	TCP_4 = 0x11, /* family and protocol */
	TCP_6 = 0x21,
	SIZE_4 = 12, /* bytes of both addresses and both ports */
	SIZE_6 = 36
};

/* 16 bits in network order. */
static uint32_t
short_at(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 8 | bytes[1];
}

/* Let poll(2) report the socket as readable only when it has that many bytes. */
static void
wait_for(int fd, int bytes)
{
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

enum ns_proxied
ns_proxied_read(int fd, struct np_addr *peer)
{
	static const uint8_t signature[] = "\r\n\r\n\0\r\nQUIT\n";
	uint8_t header[MOST];
	const uint8_t *at = header + HEAD;
	ssize_t n = recv(fd, header, sizeof(header), MSG_PEEK | MSG_DONTWAIT);
	size_t have = n > 0 ? (size_t)n : 0, whole = HEAD;

	if (have > 0 && memcmp(header, signature, have < 12 ? have : 12) != 0) {
		return NS_PROXIED_WRONG;
	}
	if (have >= HEAD) {
		whole += short_at(header + LENGTH_AT);
	}
	if (whole > sizeof(header)) {
		return NS_PROXIED_WRONG;
	}
	if (have < HEAD || have < whole) {
		if (np_sock_peer_closed(fd)) {
			return NS_PROXIED_WRONG; /* the rest won't come, and waiting would spin */
		}
		wait_for(fd, (int)whole);
		return NS_PROXIED_MORE;
	}
	wait_for(fd, 1);
	/* After the header: the source's address, the destination's, the source's port. */
	if (header[12] == PROXY && header[13] == TCP_4 && whole - HEAD >= SIZE_4) {
		np_addr_make(peer, AF_INET, at, short_at(at + 8));
	} else if (header[12] == PROXY && header[13] == TCP_6 && whole - HEAD >= SIZE_6) {
		np_addr_make(peer, AF_INET6, at, short_at(at + 32));
		np_addr_unmap(peer);
	} else if (header[12] != LOCAL) { /* the proxy's own: *peer stays */
		return NS_PROXIED_WRONG;
	}
	return recv(fd, header, whole, MSG_DONTWAIT) == (ssize_t)whole ? NS_PROXIED_DONE
								       : NS_PROXIED_WRONG;
}
