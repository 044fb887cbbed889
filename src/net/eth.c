#include "net/eth.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/if.h>
#include <linux/if_packet.h>
#include <linux/llc.h>
#include <net/if_arp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fds.h"

enum {
	TAG_AT = 20,      /* in the payload, after the number and the time */
	SOURCE_AT = 6,    /* in the Ethernet header */
	QUEUED = 1 << 20, /* more frames than any socket holds */
	WAITING = 8       /* connections, from any station, that wait to be accepted */
};

static const uint32_t end_word = 0x504c656e; /* "PLen", the first bytes of a test's last frame */

uint32_t
np_eth_mtu(const char *device)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r;
	uint32_t mtu = 0;

	memset(&r, 0, sizeof(r));
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", device);
	if (fd >= 0) {
		mtu = ioctl(fd, SIOCGIFMTU, &r) == 0 && r.ifr_mtu > 0 ? (uint32_t)r.ifr_mtu : 0;
		close(fd);
	}
	return mtu;
}

/* Check that a test can use the interface, and note its address and MTU. */
static int
check_interface(struct np_eth *l, const struct ifaddrs *i, struct np_err *err)
{
	const struct sockaddr_ll *ll = (const struct sockaddr_ll *)(const void *)i->ifa_addr;

	l->loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
	if (ll == NULL || (ll->sll_hatype != ARPHRD_ETHER && !l->loopback)) {
		return np_fail_verbatim(
		    err, NP_EUSAGE, EOPNOTSUPP,
		    "interface %s carries no Ethernet frames (name another with --device)",
		    l->device);
	}
	memcpy(l->mac, ll->sll_addr, NP_ETH_MAC);
	l->index = ll->sll_ifindex;
	if ((i->ifa_flags & IFF_UP) == 0) {
		return np_fail_verbatim(err, NP_EUSAGE, ENETDOWN,
					"interface %s is down (try: ip link set %s up)", l->device,
					l->device);
	}
	if ((i->ifa_flags & IFF_RUNNING) == 0) {
		return np_fail_verbatim(
		    err, NP_EUSAGE, ENETDOWN,
		    "interface %s has no carrier (is the other end of the cable up?)", l->device);
	}
	l->mtu = np_eth_mtu(l->device);
	if (l->mtu < NP_ETH_LEAST) {
		return np_fail_verbatim(
		    err, NP_EUSAGE, EINVAL,
		    "interface %s has an MTU that does not fit an Ethernet frame", l->device);
	}
	return NP_OK;
}

/* Search the list: by netdevice(7) a name of a client could make the kernel load a module. */
static int
find(struct np_eth *l, struct np_err *err)
{
	const struct ifaddrs *i;
	struct ifaddrs *all;
	int rc;

	if (getifaddrs(&all) != 0) {
		return np_fail(err, NP_ESYS, errno, "query interface %s", l->device);
	}
	for (i = all; i != NULL; i = i->ifa_next) {
		/* An interface without a link-layer address has ifa_addr NULL. */
		if ((i->ifa_addr == NULL || i->ifa_addr->sa_family == AF_PACKET) &&
		    strcmp(i->ifa_name, l->device) == 0) {
			break;
		}
	}
	rc = i != NULL
		 ? check_interface(l, i, err)
		 : np_fail_verbatim(err, NP_EUSAGE, ENODEV,
				    "there is no interface %s here (ip link lists the interfaces)",
				    l->device);
	freeifaddrs(all);
	return rc;
}

/* Let only those frames pass that the BPF program accepts. 0, or -1 with errno. */
static int
attach_filter(int fd, struct sock_filter *code, size_t count)
{
	struct sock_fprog prog = { .len = (unsigned short)count, .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
}

static int
attach_drop_all(int fd)
{
	struct sock_filter none[] = { { .code = BPF_RET | BPF_K, .k = 0 } };

	return attach_filter(fd, none, 1);
}

void
np_eth_drop_all(const struct np_eth *l)
{
	char byte;

	if (attach_drop_all(l->fd) != 0) {
		return; /* more frames would keep coming */
	}
	for (int i = 0; i < QUEUED && recv(l->fd, &byte, 1, MSG_DONTWAIT) >= 0; i++) {
	}
}

int
np_eth_limit_source(const struct np_eth *l, const struct np_addr *station, uint64_t tag,
		    struct np_err *err)
{
	const uint8_t *mac = ((const struct sockaddr_ll *)&station->sa)->sll_addr;
	const uint32_t source = (uint32_t)SKF_LL_OFF + SOURCE_AT;
	const uint32_t type = (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE);
	const uint32_t head =
	    (uint32_t)mac[0] << 24 | (uint32_t)mac[1] << 16 | (uint32_t)mac[2] << 8 | mac[3];
	const uint32_t tail = (uint32_t)mac[4] << 8 | mac[5];
	/* A jump's second number: how many instructions are left out where it differs. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, TAG_AT), /* the tag, in two halves */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(tag >> 32), 0, 9),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, TAG_AT + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)tag, 0, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, source), /* the source: four bytes, then two */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, head, 0, 5),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, source + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, tail, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, type), /* addressed to this interface */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_HOST, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX), /* keep all its bytes */
		BPF_STMT(BPF_RET | BPF_K, 0),          /* drop it */
	};

	if (attach_filter(l->fd, code, sizeof(code) / sizeof(code[0])) != 0) {
		return np_fail(err, NP_ESYS, errno, "limit a socket on %s to frames of one station",
			       l->device);
	}
	return NP_OK;
}

bool
np_eth_drops(const struct np_eth *l, uint64_t *frames)
{
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);

	if (getsockopt(l->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) != 0) {
		return false;
	}
	*frames = stats.tp_drops; /* reading them has set them to 0 */
	return true;
}

/* Open it without a protocol, so that it receives nothing before the filter that drops all. */
static int
open_socket(struct np_eth *l, struct np_err *err)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(NP_ETH_TYPE),
				  .sll_ifindex = l->index };

	l->fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (l->fd < 0 && (errno == EPERM || errno == EACCES)) {
		return np_fail_verbatim(
		    err, NP_EUSAGE, EPERM,
		    "raw frames need the capability CAP_NET_RAW, which this process does "
		    "not have (run it as root, or: setcap cap_net_raw+ep PROGRAM)");
	}
	if (l->fd < 0 || attach_drop_all(l->fd) != 0 ||
	    bind(l->fd, (const struct sockaddr *)&at, sizeof(at)) != 0) {
		return np_fail(err, NP_ESYS, errno, "open a socket for frames on %s", l->device);
	}
	return NP_OK;
}

int
np_eth_open(struct np_eth *l, const char *device, struct np_err *err)
{
	memset(l, 0, sizeof(*l));
	l->fd = l->llc_fd = -1;
	if (device[0] == '\0' || strlen(device) >= sizeof(l->device)) {
		return np_fail_verbatim(err, NP_EUSAGE, ENODEV,
					"'%.40s' is not the name of an interface", device);
	}
	memcpy(l->device, device, strlen(device));
	if (find(l, err) != NP_OK || open_socket(l, err) != NP_OK) {
		np_eth_close(l);
		return err->code;
	}
	return NP_OK;
}

void
np_eth_close(struct np_eth *l)
{
	np_fds_close(l->fd);
	l->fd = -1;
	np_fds_close(l->llc_fd);
	l->llc_fd = -1;
}

void
np_eth_aim(const struct np_eth *l, const uint8_t mac[NP_ETH_MAC], struct np_addr *out)
{
	struct sockaddr_ll *to = (struct sockaddr_ll *)&out->sa;

	memset(out, 0, sizeof(*out));
	to->sll_family = AF_PACKET;
	to->sll_protocol = htons(NP_ETH_TYPE);
	to->sll_ifindex = l->index;
	to->sll_halen = NP_ETH_MAC;
	memcpy(to->sll_addr, mac, NP_ETH_MAC);
	out->len = sizeof(*to);
}

int
np_eth_check_peer(const struct np_eth *l, const uint8_t mac[NP_ETH_MAC], struct np_err *err)
{
	static const uint8_t none[NP_ETH_MAC];

	if ((mac[0] & 1) != 0) {
		return np_fail_verbatim(err, NP_EUSAGE, EINVAL,
					"a test sends no frames to a group address");
	}
	if (l->loopback != (memcmp(mac, none, NP_ETH_MAC) == 0)) {
		return np_fail_verbatim(
		    err, NP_EUSAGE, EINVAL,
		    "one end is a loopback interface, and the other is not (name both "
		    "with --device LOCAL,REMOTE)");
	}
	if (!l->loopback && memcmp(mac, l->mac, NP_ETH_MAC) == 0) {
		return np_fail_verbatim(
		    err, NP_EUSAGE, EINVAL,
		    "both ends are interface %s, which does not receive its own frames "
		    "(name two with --device LOCAL,REMOTE)",
		    l->device);
	}
	return NP_OK;
}

int
np_eth_check_size(const struct np_eth *l, int64_t size, char letter, struct np_err *err)
{
	if (size > (int64_t)l->mtu) {
		return np_fail_verbatim(
		    err, NP_EUSAGE, EMSGSIZE,
		    "-%c: %lld bytes are more than the MTU of %s, %u (try -%c %u, or a larger MTU)",
		    letter, (long long)size, l->device, l->mtu, letter, l->mtu);
	}
	return NP_OK;
}

void
np_eth_mark(void *payload, uint64_t tag)
{
	char *at = payload;

	tag = htobe64(tag);
	memset(at, 0, TAG_AT);
	memcpy(at + TAG_AT, &tag, sizeof(tag));
}

void
np_eth_end(uint8_t payload[NP_ETH_LEAST], uint64_t tag)
{
	uint32_t word = htobe32(end_word);

	memset(payload, 0, NP_ETH_LEAST);
	np_eth_mark(payload, tag);
	memcpy(payload, &word, sizeof(word));
}

bool
np_eth_is_end(const void *payload)
{
	uint32_t word;

	memcpy(&word, payload, sizeof(word));
	return word == htobe32(end_word);
}

void
np_llc_address(const struct np_eth *l, const uint8_t mac[NP_ETH_MAC], uint32_t sap,
	       struct np_addr *out)
{
	struct sockaddr_llc *at = (struct sockaddr_llc *)&out->sa;

	memset(out, 0, sizeof(*out));
	at->sllc_family = AF_LLC;
	at->sllc_arphrd = l->loopback ? ARPHRD_LOOPBACK : ARPHRD_ETHER;
	at->sllc_sap = (uint8_t)sap;
	memcpy(at->sllc_mac, mac, NP_ETH_MAC);
	out->len = sizeof(*at);
}

/* Fail by errno, which socket(2), bind(2) or listen(2) set, and say what is missing. */
static int
fail_llc(struct np_err *err, const struct np_eth *l)
{
	switch (errno) {
	case EPERM:
	case EACCES:
		return np_fail(err, NP_EUSAGE, EPERM,
			       "connections of the link layer need the capability CAP_NET_RAW");
	case EAFNOSUPPORT:
	case EPROTONOSUPPORT:
	case ESOCKTNOSUPPORT:
		return np_fail(err, NP_EUNSUP, errno,
			       "this kernel has no LLC2 here (try 'modprobe llc2'; its option is "
			       "CONFIG_LLC2; it serves the first network namespace alone)");
	default:
		return np_fail(err, NP_ESYS, errno, "open a connection of the link layer on %s",
			       l->device);
	}
}

int
np_llc_open(const struct np_eth *l, struct np_err *err)
{
	struct np_addr at;
	int fd;

	if (l->loopback) {
		np_fail(err, NP_EUSAGE, EOPNOTSUPP,
			"LLC2 has no loopback (name two interfaces with --device LOCAL,REMOTE)");
		return -1;
	}
	fd = socket(AF_LLC, SOCK_STREAM | SOCK_CLOEXEC, 0);
	np_llc_address(l, l->mac, 0, &at);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&at.sa, at.len) != 0) {
		fail_llc(err, l);
		np_fds_close(fd);
		return -1;
	}
	return fd;
}

int
np_llc_listen(struct np_eth *l, struct np_err *err)
{
	l->llc_fd = np_llc_open(l, err);
	if (l->llc_fd >= 0 && listen(l->llc_fd, WAITING) != 0) {
		fail_llc(err, l);
		close(l->llc_fd);
		l->llc_fd = -1;
	}
	return l->llc_fd >= 0 ? NP_OK : (int)err->code;
}

void
np_llc_forget(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	/* Not without end: a station may connect again and again. */
	for (int i = 0; i < 2 * WAITING && poll(&p, 1, 0) > 0; i++) {
		int stranger = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		np_fds_close(stranger);
	}
}
