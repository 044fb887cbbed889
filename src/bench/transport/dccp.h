/* DCCP (RFC 4340): datagrams with congestion control. Linux's headers lack it since 6.16. */
#ifndef NP_BENCH_TRANSPORT_DCCP_H
#define NP_BENCH_TRANSPORT_DCCP_H

#include <stdbool.h>
#include <stdint.h>

enum { NP_SOCK_DCCP = 6, NP_IPPROTO_DCCP = 33, NP_SOL_DCCP = 269 };

/* Socket options (Linux's include/uapi/linux/dccp.h). */
enum {
	NP_DCCP_SERVICE = 2, /* in network order */
	NP_DCCP_MPS = 5,     /* largest message that the path takes now */
	NP_DCCP_CCID = 13,
	NP_DCCP_TX_CCID = 14,
	NP_DCCP_RX_CCID = 15,
	NP_DCCP_TXQLEN = 17, /* most queued messages; 0: as many as the send buffer holds */
	NP_DCCP_TX_INFO = 192
};

/* A CCID as the name of a congestion control: "ccid3". */
#define NP_CCID_NAME "ccid"
enum { NP_CCID_MOST = 255 };

/* The number in such a name; 0: another kind of name. */
int np_dccp_ccid(const char *name);

/*
 * Read a service code as in RFC 4340, 8.1.2: SC:fdpz, SC=1717858426 or SC=x6664707A, where SC= may
 * be left out. False: not a code, or one that means none (0, 0xffffffff).
 */
bool np_dccp_service(const char *text, uint32_t *code);

enum { NP_DCCP_SERVICE_TEXT = sizeof("SC=x6664707A") };

/* Write it as SC:fdpz if possible, else as SC=x6664707A. */
void np_dccp_service_text(uint32_t code, char text[NP_DCCP_SERVICE_TEXT]);

/* State of CCID 3 at a sender: struct tfrc_tx_info of Linux's include/linux/tfrc.h. */
struct np_dccp_tfrc {
	uint64_t rate, rate_received; /* bytes a second, times 64 */
	uint32_t rate_calculated;     /* bytes a second */
	uint32_t rtt_us;
	uint32_t loss; /* loss events per million packets */
	uint32_t timeout_us, interval_us;
};

#endif
