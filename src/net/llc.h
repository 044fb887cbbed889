/* Logical link control, type 2 (IEEE 802.2), by AF_LLC: stations' service access points (SAP). */
#ifndef NP_NET_LLC_H
#define NP_NET_LLC_H

#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"
#include "net/eth.h"

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
