/*
 * Ethernet frames of one interface, without IP (packet(7)): what tests of the link layer send.
 *
 * Their EtherType is the first one that IEEE Std 802 leaves to local experiments, and their payload
 * begins with a header: 20 bytes for a number and a time, where both ends agreed on
 * these (bench/sequence.h), and the tag of the test, 8 bytes. The filter of a socket lets nothing
 * through but frames from one station with one tag: what else has that EtherType is never counted.
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
	NP_ETH_HEADER = 28, /* of which the test's own header takes these */
	NP_ETH_NAME = 16,   /* of an interface, its NUL included */
	NP_ETH_MAC = 6
};

/* An interface that frames go by, and the socket for them. */
struct np_eth {
	int fd, index;
	int llc_fd;   /* a listener (net/llc.h); -1: none */
	uint32_t mtu; /* most of a frame's payload */
	bool loopback;
	char device[NP_ETH_NAME];
	uint8_t mac[NP_ETH_MAC];
};

/*
 * Open a socket on that interface, one that hears nothing yet; CAP_NET_RAW is needed here and
 * nowhere else. NP_EUSAGE for an interface that there is not, that is down or has no Ethernet
 * frames, NP_ESYS where it is not permitted: one line that says what to do.
 */
int np_eth_open(struct np_eth *l, const char *device, struct np_err *err);
void np_eth_close(struct np_eth *l);

/* Hear frames from that station (of np_eth_aim()) with that tag, and no others. NP_ESYS. */
int np_eth_limit_source(const struct np_eth *l, const struct np_addr *station, uint64_t tag,
			struct np_err *err);

/* Drop all frames from now on, and discard queued ones. */
void np_eth_drop_all(const struct np_eth *l);

/*
 * Frames that it should have heard and had no room for, since this was asked last. False: the
 * kernel does not tell.
 */
bool np_eth_drops(const struct np_eth *l, uint64_t *frames);

/* Where frames to that station are sent. */
void np_eth_aim(const struct np_eth *l, const uint8_t mac[NP_ETH_MAC], struct np_addr *out);

/*
 * The MTU of an interface that there is; 0: it is not known. By a name that it lacks the kernel
 * would look for a module.
 */
uint32_t np_eth_mtu(const char *device);

/*
 * May that be the other end of a test by this interface? Not a group address, not the zero address,
 * and not this interface itself, as its frames do not come back: NP_EUSAGE.
 */
int np_eth_check_peer(const struct np_eth *l, const uint8_t mac[NP_ETH_MAC], struct np_err *err);

/* Does one frame carry a message of `size` bytes, asked for by option -letter? NP_EUSAGE. */
int np_eth_check_size(const struct np_eth *l, int64_t size, char letter, struct np_err *err);

/* The two directions of a test have different tags: on one interface both could be heard. */
static inline uint64_t
np_eth_tag(uint64_t token, bool from_client)
{
	return from_client ? token : ~token;
}

/* Write the header of a frame that has no number. */
void np_eth_mark(void *payload, uint64_t tag);

/* A frame that says that this was all, NP_ETH_LEAST bytes: an empty one comes with padding. */
void np_eth_end(uint8_t payload[NP_ETH_LEAST], uint64_t tag);

/* Is a frame that passed the filter such a one? */
bool np_eth_is_end(const void *payload);

#endif
