#include "bench/transport/dccp.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bag.h"
#include "base/units.h"
#include "bench/bench.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"

enum {
	USUAL_MESSAGE = 1400, /* fits an MTU of 1500, over IPv6, with all options of DCCP */
	PACKET_HEADER = 16    /* of data, with a long sequence number (RFC 4340, 5.1) */
};

int
np_dccp_ccid(const char *name)
{
	size_t n = strlen(NP_CCID_NAME);
	int64_t ccid;

	return strncmp(name, NP_CCID_NAME, n) == 0 && np_parse_int(name + n, &ccid) == 0 &&
		       ccid > 0 && ccid <= NP_CCID_MOST
		   ? (int)ccid
		   : 0;
}

/* Characters of a service code, which is padded with spaces. */
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
			      "-_+.*/?@";
enum { LETTERS = 4 };

bool
np_dccp_service(const char *text, uint32_t *code)
{
	bool hex;
	char *end;
	unsigned long long n;

	if (strncmp(text, "SC:", 3) == 0) {
		size_t count = strspn(text + 3, letters);

		*code = 0;
		for (size_t i = 0; i < LETTERS; i++) {
			*code = *code << 8 | (i < count ? (uint8_t)text[3 + i] : ' ');
		}
		return count > 0 && count <= LETTERS && text[3 + count] == '\0';
	}
	text += strncmp(text, "SC=", 3) == 0 ? 3 : 0;
	hex = text[0] == 'x' || strncmp(text, "0x", 2) == 0;
	text += !hex ? 0 : text[0] == 'x' ? 1 : 2;
	if (!isxdigit((unsigned char)text[0])) {
		return false; /* strtoull() would take a sign */
	}
	n = strtoull(text, &end, hex ? 16 : 10);
	*code = (uint32_t)n;
	return *end == '\0' && n > 0 && n < UINT32_MAX;
}

void
np_dccp_service_text(uint32_t code, char text[NP_DCCP_SERVICE_TEXT])
{
	uint32_t again;
	int n = LETTERS;

	snprintf(text, NP_DCCP_SERVICE_TEXT, "SC:%c%c%c%c", code >> 24 & 255, code >> 16 & 255,
		 code >> 8 & 255, code & 255);
	while (n > 1 && text[2 + n] == ' ') { /* padding */
		text[2 + n--] = '\0';
	}
	if (!np_dccp_service(text, &again) || again != code) {
		snprintf(text, NP_DCCP_SERVICE_TEXT, "SC=x%08X", code);
	}
}

/*
 * np_transport.options. Without a limit of queued messages (TXQLEN 0) a send waits for room in the
 * send buffer; a full queue would refuse messages (EAGAIN) even on a blocking socket.
 */
static void
dccp_options(const struct np_plan *p, struct np_sockopts *o)
{
	int ccid = np_dccp_ccid(p->near.sock.cong);
	const uint8_t byte = (uint8_t)ccid;

	np_sockopts_add(o, p->service != 0, NP_SOL_DCCP, NP_DCCP_SERVICE, "DCCP_SOCKOPT_SERVICE",
			(int)htonl(p->service), false);
	np_sockopts_add(o, true, NP_SOL_DCCP, NP_DCCP_TXQLEN, "DCCP_SOCKOPT_QPOLICY_TXQLEN", 0,
			false);
	if (ccid > 0) {
		np_sockopts_add_value(o, NP_SOL_DCCP, NP_DCCP_CCID, "DCCP_SOCKOPT_CCID", &byte, 1,
				      "%u", byte);
	}
}

/* Fail because this end's messages are longer than `most` bytes. */
static int
refuse_long(const struct np_run *run, int most, struct np_err *err)
{
	const char *peer = run->end.peer.len != 0 ? NP_ADDR_STR(&run->end.peer) : "the far end";

	return np_fail(err, NP_EUSAGE, EMSGSIZE,
		       "send %zu bytes as one DCCP message, of which the path to %s takes %d at "
		       "most (try -%c %d)",
		       run->worker->send_size, peer, most, run->plan->pattern->sized ? 'r' : 'm',
		       most);
}

/* np_transport.message.too_long: by the limit of the path now. */
static void
dccp_too_long(const struct np_run *run, struct np_err *err)
{
	refuse_long(run, np_sock_int(run->conn->fd, NP_SOL_DCCP, NP_DCCP_MPS), err);
}

/* np_transport.upgrade: check the size of messages, now that the handshake has found the limit. */
static int
dccp_upgrade(struct np_run *run, struct np_conn *conn, struct np_err *err)
{
	int most = np_sock_int(conn->fd, NP_SOL_DCCP, NP_DCCP_MPS);

	return most > 0 && run->worker->send_size > (size_t)most ? refuse_long(run, most, err)
								 : NP_OK;
}

/* Record the CCIDs that both ends agreed on; a closed connection has none. */
static void
dccp_read_closing(struct np_run *run, int fd)
{
	struct np_closing *c = &run->closing;
	int tx = np_sock_int(fd, NP_SOL_DCCP, NP_DCCP_TX_CCID);
	int rx = np_sock_int(fd, NP_SOL_DCCP, NP_DCCP_RX_CCID);
	int asked = np_dccp_ccid(run->plan->near.sock.cong);

	if (tx <= 0 || rx <= 0) {
		return;
	}
	snprintf(c->cong, sizeof(c->cong), NP_CCID_NAME "%d", tx);
	c->degraded = asked > 0 && (tx != asked || rx != asked);
	if (tx == rx && !c->degraded) {
		snprintf(c->detail, sizeof(c->detail), "CCID %d", tx);
	} else {
		snprintf(c->detail, sizeof(c->detail),
			 "CCID %d for what is sent, %d for the rest%s", tx, rx,
			 c->degraded ? " (another one was asked for)" : "");
	}
}

static void
dccp_put_kernel(const struct np_run *run, int fd, struct np_bag *bag)
{
	char text[NP_DCCP_SERVICE_TEXT];
	uint32_t code = 0;
	socklen_t len = sizeof(code);
	struct np_dccp_tfrc t = { .rtt_us = 0 };

	np_endpoint_put_option(fd, NP_SOL_DCCP, NP_DCCP_TX_CCID, "dccp.tx_ccid", bag);
	np_endpoint_put_option(fd, NP_SOL_DCCP, NP_DCCP_RX_CCID, "dccp.rx_ccid", bag);
	np_endpoint_put_option(fd, NP_SOL_DCCP, NP_DCCP_MPS, "dccp.message_max", bag);
	if (getsockopt(fd, NP_SOL_DCCP, NP_DCCP_SERVICE, &code, &len) == 0 && code != 0) {
		np_dccp_service_text(ntohl(code), text);
		np_bag_text(bag, text, "dccp.service");
	}
	len = sizeof(t);
	if (getsockopt(fd, NP_SOL_DCCP, NP_DCCP_TX_INFO, &t, &len) == 0 && len == sizeof(t)) {
		/* Only CCID 3 has these. Bytes in units of 1/64 become bits. */
		np_bag_int(bag, (int64_t)(t.rate / 64 * 8), "dccp.rate_bps");
		np_bag_int(bag, (int64_t)(t.rate_received / 64 * 8), "dccp.received_bps");
		np_bag_int(bag, (int64_t)t.rate_calculated * 8, "dccp.calculated_bps");
		np_bag_real(bag, t.rtt_us / 1e6, "dccp.rtt");
		np_bag_real(bag, t.loss / 1e6, "dccp.loss_events");
	}
}

const struct np_transport np_transport_dccp = {
	.name = "DCCP",
	.socktype = NP_SOCK_DCCP,
	.protocol = NP_IPPROTO_DCCP,
	.wire_type = NP_WS_DCCP,
	.kernel.listed = "DCCP",
	.kernel.listed_six = "DCCPv6",
	.connected = true,
	.bounded = true,
	.admit = NP_ADMIT_IP,
	.named = true,
	.ip_protocol = NP_IPPROTO_DCCP,
	.packets.header = PACKET_HEADER,
	.kernel.module = "dccp_ipv4",
	.packets.no_capture = "packets of DCCP are not read",
	.kernel.option = "CONFIG_IP_DCCP",
	.kernel.dropped = "6.16",
	.message.max = USUAL_MESSAGE,
	.options = dccp_options,
	.open = np_endpoint_open,
	.another = np_endpoint_another,
	.establish = np_endpoint_establish,
	.upgrade = dccp_upgrade,
	.read_closing = dccp_read_closing,
	.put_kernel = dccp_put_kernel,
	.message.too_long = dccp_too_long,
};
