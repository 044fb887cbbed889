#include "run/ends.h"

#include <string.h>
#include <sys/socket.h>

#include "net/sock.h"

/* Encode an address: IP version, 16 bytes of address (zeros after IPv4), port. */
static void
encode(uint8_t at[NP_AUTH_ENDS / 2], struct np_addr *a)
{
	uint32_t port;
	int version;

	memset(at, 0, NP_AUTH_ENDS / 2);
	np_addr_unmap(a);
	version = np_family_of(a)->version;
	if (version == 0) { /* not IP */
		return;
	}
	port = np_addr_port(a);
	at[0] = (uint8_t)version;
	memcpy(at + 1, np_addr_bytes(a), np_addr_size(a));
	at[17] = (uint8_t)(port >> 8);
	at[18] = (uint8_t)port;
}

void
np_ends_of(int fd, bool is_client, uint8_t ends[NP_AUTH_ENDS])
{
	struct np_addr near, far = { .len = sizeof(far.sa) };

	if (np_sock_local(fd, &near, NULL) != NP_OK ||
	    getpeername(fd, (struct sockaddr *)&far.sa, &far.len) != 0) {
		memset(ends, 0, NP_AUTH_ENDS);
		return;
	}
	encode(ends, is_client ? &near : &far);
	encode(ends + NP_AUTH_ENDS / 2, is_client ? &far : &near);
}
