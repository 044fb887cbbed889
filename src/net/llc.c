#include "net/llc.h"

#include <errno.h>
#include <linux/if_arp.h>
#include <linux/llc.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fds.h"

enum { WAITING = 8 }; /* connections, from any station, that wait to be accepted */

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
fail(struct np_err *err, const struct np_eth *l)
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
		fail(err, l);
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
		fail(err, l);
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
