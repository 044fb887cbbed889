#include "net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int
lookup(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	static const struct timespec pause = { .tv_sec = 1 };
	int rc = getaddrinfo(host, service, hints, list);

	for (int i = 0; i < 5 && rc == EAI_AGAIN; i++) {
		nanosleep(&pause, NULL);
		rc = getaddrinfo(host, service, hints, list);
	}
	return rc;
}

int
np_resolve(const char *host, const char *service, int family, int socktype, struct np_addrs *out,
	   struct np_err *err)
{
	/* No AI_ADDRCONFIG: 127.0.0.1 must resolve where there is only a loopback interface. */
	struct addrinfo hints = {
		.ai_family = family,
		.ai_socktype = socktype,
		.ai_flags = host != NULL ? AI_CANONNAME : AI_PASSIVE,
	};
	struct addrinfo *list = NULL;
	int rc = lookup(host, service != NULL ? service : "0", &hints, &list);

	memset(out, 0, sizeof(*out));
	if (rc != 0) {
		np_fail(err, NP_ECONTROL, rc == EAI_SYSTEM ? errno : 0,
			"could not resolve host '%s' service '%s' family %s: %s",
			host != NULL ? host : "*", service != NULL ? service : "0",
			np_family_name(family), gai_strerror(rc));
		err->sys = rc;
		return err->code;
	}
	if (list->ai_canonname != NULL) {
		snprintf(out->name, sizeof(out->name), "%s", list->ai_canonname);
	}
	for (struct addrinfo *ai = list; ai != NULL && out->count < NP_ADDRS_MAX;
	     ai = ai->ai_next) {
		struct np_addr *a = &out->at[out->count++];

		memcpy(&a->sa, ai->ai_addr, ai->ai_addrlen);
		a->len = ai->ai_addrlen;
	}
	freeaddrinfo(list);
	return NP_OK;
}

/* Does such an address have a port? */
static bool
has_port(const struct np_addr *a)
{
	return a->sa.ss_family != AF_UNIX && a->sa.ss_family != AF_PACKET;
}

const char *
np_addr_host(const struct np_addr *a, char buf[NP_ADDR_TEXT])
{
	if (a->sa.ss_family == AF_PACKET) {
		const uint8_t *at = ((const struct sockaddr_ll *)&a->sa)->sll_addr;

		snprintf(buf, NP_ADDR_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", at[0], at[1], at[2],
			 at[3], at[4], at[5]);
		return buf;
	}
	if (a->sa.ss_family == AF_UNIX) {
		const char *path = ((const struct sockaddr_un *)&a->sa)->sun_path;
		bool named = a->len > sizeof(a->sa.ss_family) && path[0] != '\0';

		snprintf(buf, NP_ADDR_TEXT, "%s", named ? path : "a socket without a path");
		return buf;
	}
	if (getnameinfo((const struct sockaddr *)&a->sa, a->len, buf, NP_ADDR_TEXT, NULL, 0,
			NI_NUMERICHOST) != 0) {
		snprintf(buf, NP_ADDR_TEXT, "?");
	}
	return buf;
}

const char *
np_addr_text(const struct np_addr *a, char buf[NP_ADDR_TEXT])
{
	size_t n = strlen(np_addr_host(a, buf));

	if (!has_port(a)) {
		return buf;
	}
	snprintf(buf + n, NP_ADDR_TEXT - n, " port %u", np_addr_port(a));
	return buf;
}

static const in_port_t *
port_of(const struct np_addr *a)
{
	return a->sa.ss_family == AF_INET6 ? &((const struct sockaddr_in6 *)&a->sa)->sin6_port
					   : &((const struct sockaddr_in *)&a->sa)->sin_port;
}

uint16_t
np_addr_port(const struct np_addr *a)
{
	return has_port(a) ? ntohs(*port_of(a)) : 0;
}

in_port_t *
np_addr_port_field(struct np_addr *a)
{
	return a->sa.ss_family == AF_INET6 ? &((struct sockaddr_in6 *)&a->sa)->sin6_port
					   : &((struct sockaddr_in *)&a->sa)->sin_port;
}

void
np_addr_set_port(struct np_addr *a, uint16_t port)
{
	if (has_port(a)) {
		*np_addr_port_field(a) = htons(port);
	}
}

const uint8_t *
np_addr_bytes(const struct np_addr *a)
{
	return a->sa.ss_family == AF_INET6
		   ? (const uint8_t *)&((const struct sockaddr_in6 *)&a->sa)->sin6_addr
		   : (const uint8_t *)&((const struct sockaddr_in *)&a->sa)->sin_addr;
}

void
np_addr_make(struct np_addr *a, int family, const uint8_t *bytes, uint16_t port)
{
	memset(a, 0, sizeof(*a));
	a->sa.ss_family = (sa_family_t)family;
	if (family == AF_INET6) {
		memcpy(&((struct sockaddr_in6 *)&a->sa)->sin6_addr, bytes, 16);
		a->len = sizeof(struct sockaddr_in6);
	} else {
		memcpy(&((struct sockaddr_in *)&a->sa)->sin_addr, bytes, 4);
		a->len = sizeof(struct sockaddr_in);
	}
	np_addr_set_port(a, port);
}

int
np_addr_make_path(struct np_addr *a, const char *path, struct np_err *err)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&a->sa;
	size_t n = strlen(path);

	memset(a, 0, sizeof(*a));
	if (n == 0 || n >= sizeof(un->sun_path)) {
		return np_fail(err, NP_EUSAGE, 0,
			       "'%.120s' is no path for a socket (1 to %zu bytes)", path,
			       sizeof(un->sun_path) - 1);
	}
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, n + 1);
	a->len = sizeof(*un);
	return NP_OK;
}

bool
np_addr_towards(const struct np_addr *far, struct np_addr *near)
{
	enum { DISCARD = 9 };
	int fd = socket(far->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct np_addr to = *far;
	bool known;

	if (fd < 0) {
		return false;
	}
	if (np_addr_port(&to) == 0) {
		np_addr_set_port(&to, DISCARD); /* some port it must be */
	}
	near->len = sizeof(near->sa);
	known = connect(fd, (const struct sockaddr *)&to.sa, to.len) == 0 &&
		getsockname(fd, (struct sockaddr *)&near->sa, &near->len) == 0;
	close(fd);
	return known;
}

bool
np_addr_is_loopback(const struct np_addr *a)
{
	return a->sa.ss_family == AF_INET6
		   ? IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&a->sa)->sin6_addr)
		   : np_addr_bytes(a)[0] == IN_LOOPBACKNET;
}

/* Is that the address of an interface of ours? A link-local one counts on its own link only. */
static bool
is_same_place(const struct np_addr *a, const struct sockaddr *own)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&a->sa;
	struct np_addr b = { .len = 0 };

	if (own == NULL || own->sa_family != a->sa.ss_family) {
		return false;
	}
	memcpy(&b.sa, own,
	       own->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					  : sizeof(struct sockaddr_in));
	return np_addr_same_host(a, &b) &&
	       (own->sa_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ||
		six->sin6_scope_id == ((const struct sockaddr_in6 *)&b.sa)->sin6_scope_id);
}

bool
np_addr_is_here(const struct np_addr *a)
{
	struct ifaddrs *list;
	bool found = false;

	if (a->sa.ss_family == AF_UNIX || np_addr_is_loopback(a)) {
		return true;
	}
	/* Binding to it would tell nothing where net.ipv4.ip_nonlocal_bind is set. */
	if (getifaddrs(&list) != 0) {
		return false;
	}
	for (const struct ifaddrs *i = list; i != NULL && !found; i = i->ifa_next) {
		found = is_same_place(a, i->ifa_addr);
	}
	freeifaddrs(list);
	return found;
}

void
np_addr_make_loopback(struct np_addr *a, int family)
{
	static const uint8_t four[4] = { IN_LOOPBACKNET, 0, 0, 1 }, six[16] = { [15] = 1 };

	np_addr_make(a, family, family == AF_INET6 ? six : four, 0);
}

void
np_addr_unmap(struct np_addr *a)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&a->sa;
	uint8_t four[4];

	if (a->sa.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
		memcpy(four, six->sin6_addr.s6_addr + 12, sizeof(four));
		np_addr_make(a, AF_INET, four, np_addr_port(a));
	}
}

int
np_addr_same_host(const struct np_addr *a, const struct np_addr *b)
{
	size_t n = a->sa.ss_family == AF_INET6 ? 16 : 4;

	return a->sa.ss_family == b->sa.ss_family &&
	       memcmp(np_addr_bytes(a), np_addr_bytes(b), n) == 0;
}

const char *
np_family_name(int family)
{
	return family == AF_INET    ? "AF_INET"
	       : family == AF_INET6 ? "AF_INET6"
	       : family == AF_UNIX  ? "AF_UNIX"
				    : "AF_UNSPEC";
}
