/*
 * Ethernet frames without IP (packet(7)), with the first EtherType for local experiments (IEEE Std
 * 802). The payload begins with 20 bytes for a number and a time, if agreed on (bench/sequence.h),
 * and the test's tag, 8 bytes. The socket's filter passes only one station's frames of one tag.
 */
#ifndef NP_NET_ETH_H
#define NP_NET_ETH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

enum {
	NP_ETH_TYPE = 0x88b5,
	NP_ETH_LEAST = 46,  /* bytes of the smallest frame's payload */
	NP_ETH_HEADER = 28, /* bytes of the test's own header in it */
	NP_ETH_NAME = 16,   /* of an interface, its NUL included */
	NP_ETH_MAC = 6
};

/* An interface that a test's frames go by, and the socket for them. */
struct np_eth {
	int fd, index;
	int llc_fd;   /* a listener for np_llc_open(); -1: none */
	uint32_t mtu; /* largest payload of a frame */
	bool loopback;
	char device[NP_ETH_NAME];
	uint8_t mac[NP_ETH_MAC];
};

/*
 * Open a socket on that interface, which receives nothing yet. Only this needs CAP_NET_RAW.
 * NP_EUSAGE: no such interface, down, or no Ethernet; NP_ESYS. The message says what to do.
 */
int np_eth_open(struct np_eth *l, const char *device, struct np_err *err);
void np_eth_close(struct np_eth *l);

/* Receive only frames from that station (of np_eth_aim()) with that tag. NP_ESYS. */
int np_eth_limit_source(const struct np_eth *l, const struct np_addr *station, uint64_t tag,
			struct np_err *err);

/* Drop all frames from now on, and discard queued ones. */
void np_eth_drop_all(const struct np_eth *l);

/* Frames dropped since the last call because the receive buffer was full. False: not known. */
bool np_eth_drops(const struct np_eth *l, uint64_t *frames);

/* Make the address of a station, to send it frames by this interface. */
void np_eth_aim(const struct np_eth *l, const uint8_t mac[NP_ETH_MAC], struct np_addr *out);

/* The MTU of an interface; 0: unknown. It must exist, or the kernel may load a module. */
uint32_t np_eth_mtu(const char *device);

/*
 * Check the other end: no group address; the zero address if, and only if, this is a loopback; not
 * this interface itself, which does not receive its own frames. NP_EUSAGE.
 */
int np_eth_check_peer(const struct np_eth *l, const uint8_t mac[NP_ETH_MAC], struct np_err *err);

/* Does a message of `size` bytes, given by option -letter, fit into a frame? NP_EUSAGE. */
int np_eth_check_size(const struct np_eth *l, int64_t size, char letter, struct np_err *err);

/* The two directions of a test have different tags: one interface might receive both. */
static inline uint64_t
np_eth_tag(uint64_t token, bool from_client)
{
	return from_client ? token : ~token;
}

/* Write the header of a frame: the tag, and zeros in place of a number and a time. */
void np_eth_mark(void *payload, uint64_t tag);

/* Make the frame that ends a test. It has NP_ETH_LEAST bytes, as an empty one would be padded. */
void np_eth_end(uint8_t payload[NP_ETH_LEAST], uint64_t tag);

/* Is a received frame one that ends a test? */
bool np_eth_is_end(const void *payload);

/*
 * Logical link control, type 2 (IEEE 802.2), by AF_LLC: connections between stations' service
 * access points (SAP).
 */
enum {
	NP_LLC_HEADER = 4, /* bytes of a frame before the data */
	NP_SOL_LLC = 268   /* only in the kernel's <linux/socket.h> */
};

/* A socket on that interface and a free SAP; needs CAP_NET_RAW. The descriptor, or -1 with err. */
int np_llc_open(const struct np_eth *l, struct np_err *err);

/* Open one that listens, l->llc_fd, which np_eth_close() closes. NP_OK, or err->code. */
int np_llc_listen(struct np_eth *l, struct np_err *err);

/* Make the address of a station's SAP, 1 to 255; 0: any, of which bind(2) chooses a free one. */
void np_llc_address(const struct np_eth *l, const uint8_t mac[NP_ETH_MAC], uint32_t sap,
		    struct np_addr *out);

/* Close the connections that wait to be accepted: they are not of the test that begins. */
void np_llc_forget(int fd);

#endif
