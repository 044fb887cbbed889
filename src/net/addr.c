#include "net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <linux/llc.h>
#include <linux/tipc.h>
#include <linux/vm_sockets.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/units.h"

static void
ip_host(const struct np_addr *a, char buf[NP_ADDR_TEXT])
{
	if (getnameinfo((const struct sockaddr *)&a->sa, a->len, buf, NP_ADDR_TEXT, NULL, 0,
			NI_NUMERICHOST) != 0) {
		snprintf(buf, NP_ADDR_TEXT, "?");
	}
}

static void
unix_host(const struct np_addr *a, char buf[NP_ADDR_TEXT])
{
	const char *path = ((const struct sockaddr_un *)&a->sa)->sun_path;
	bool named = a->len > sizeof(a->sa.ss_family) && path[0] != '\0';

	snprintf(buf, NP_ADDR_TEXT, "%s", named ? path : "a socket without a path");
}

/* "02:00:00:00:00:01" */
static void
mac_host(const struct np_addr *a, char buf[NP_ADDR_TEXT])
{
	const uint8_t *at = np_addr_bytes(a);

	snprintf(buf, NP_ADDR_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", at[0], at[1], at[2], at[3],
		 at[4], at[5]);
}

/* np_addr_towards() by the routes: connecting a socket for datagrams sends nothing. */
static bool
source_by_route(const struct np_addr *far, struct np_addr *near)
{
	enum { DISCARD = 9 };
	int fd = socket(far->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct np_addr to = *far;
	bool known;

	if (fd < 0) {
		return false;
	}
	if (np_addr_port(&to) == 0) {
		np_addr_set_port(&to, DISCARD); /* any port will do, but not 0 */
	}
	near->len = sizeof(near->sa);
	known = connect(fd, (const struct sockaddr *)&to.sa, to.len) == 0 &&
		getsockname(fd, (struct sockaddr *)&near->sa, &near->len) == 0;
	close(fd);
	return known;
}

static void
cid_host(const struct np_addr *a, char buf[NP_ADDR_TEXT])
{
	unsigned cid = ((const struct sockaddr_vm *)&a->sa)->svm_cid;

	snprintf(buf, NP_ADDR_TEXT, cid == VMADDR_CID_ANY ? "vsock:any" : "vsock:%u", cid);
}

/* np_family's parse(): a CID, or "any". */
static int
read_cid(struct np_addr *a, const char *text, struct np_err *err)
{
	int64_t n = VMADDR_CID_ANY;
	uint32_t cid;

	if (strcmp(text, "any") != 0 &&
	    (np_parse_int(text, &n) != 0 || n < 0 || n >= VMADDR_CID_ANY)) {
		return np_usage(err, "'%.40s' is not a CID (vsock(7)), which is a number or any",
				text);
	}
	cid = (uint32_t)n;
	np_addr_make(a, AF_VSOCK, (const uint8_t *)&cid, 0);
	return NP_OK;
}

/* np_addr_towards(): this machine's CID; towards the machine itself, that of the loopback. */
static bool
own_cid(const struct np_addr *far, struct np_addr *near)
{
	bool here = np_addr_is_loopback(far);
	int fd = here ? -1 : open("/dev/vsock", O_RDONLY | O_CLOEXEC);
	uint32_t own = VMADDR_CID_LOCAL;
	bool known = here || (fd >= 0 && ioctl(fd, IOCTL_VM_SOCKETS_GET_LOCAL_CID, &own) == 0 &&
			      own != VMADDR_CID_ANY); /* ANY: there is no transport */

	np_fds_close(fd);
	np_addr_make(near, AF_VSOCK, (const uint8_t *)&own, 0);
	if (np_addr_same_host(far, near)) {
		np_addr_make_loopback(near, AF_VSOCK);
	}
	return known;
}

/* The host in words of a TIPC address: its node. */
static void
node_host(const struct np_addr *a, char buf[NP_ADDR_TEXT])
{
	snprintf(buf, NP_ADDR_TEXT, "node %x",
		 ((const struct sockaddr_tipc *)&a->sa)->addr.id.node);
}

/* np_family's parse(): the number of a TIPC node, in hexadecimal. */
static int
read_node(struct np_addr *a, const char *text, struct np_err *err)
{
	uint32_t node = (uint32_t)strtoul(text, NULL, 16);
	size_t digits = strspn(text, "0123456789abcdefABCDEF");

	if (digits == 0 || digits > 2 * sizeof(node) || text[digits] != '\0') {
		return np_usage(err, "'%.40s' is no TIPC node, a hexadecimal number (0: this one)",
				text);
	}
	np_addr_make(a, AF_TIPC, (const uint8_t *)&node, 0);
	return NP_OK;
}

/* np_addr_towards(): a new socket's address, which has the number of this node. */
static bool
own_node(const struct np_addr *far, struct np_addr *near)
{
	int fd = socket(AF_TIPC, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool known;

	near->len = sizeof(near->sa);
	known = fd >= 0 && getsockname(fd, (struct sockaddr *)&near->sa, &near->len) == 0;
	np_fds_close(fd);
	np_addr_set_port(near, 0);
	return known;
}

static const struct sockaddr_tipc node_template = { .addrtype = TIPC_ADDR_ID };
static const uint32_t any_cid = VMADDR_CID_ANY, loop_cid = VMADDR_CID_LOCAL;
static const uint8_t any_ip[16], loop_4[4] = { IN_LOOPBACKNET, 0, 0, 1 }, loop_6[16] = { [15] = 1 };

static const struct np_family families[] = {
	{ .family = AF_INET,
	  .name = "AF_INET",
	  .version = 4,
	  .len = sizeof(struct sockaddr_in),
	  .at = offsetof(struct sockaddr_in, sin_addr),
	  .size = 4,
	  .any = any_ip,
	  .loop = loop_4,
	  .port_at = offsetof(struct sockaddr_in, sin_port),
	  .port_size = 2,
	  .loop_bits = 8,
	  .owner = 4,
	  .network = 3,
	  .has_edges = true,
	  .host = ip_host,
	  .towards = source_by_route },
	{ .family = AF_INET6,
	  .name = "AF_INET6",
	  .version = 6,
	  .len = sizeof(struct sockaddr_in6),
	  .at = offsetof(struct sockaddr_in6, sin6_addr),
	  .size = 16,
	  .any = any_ip,
	  .loop = loop_6,
	  .port_at = offsetof(struct sockaddr_in6, sin6_port),
	  .port_size = 2,
	  .loop_bits = 128,
	  .owner = 8,   /* a host may have all addresses of a /64 (RFC 4291, 2.5.4) */
	  .network = 6, /* a site may have all of a /48 (RFC 6177) */
	  .host = ip_host,
	  .towards = source_by_route },
	{ .family = AF_UNIX,
	  .name = "AF_UNIX",
	  .len = sizeof(struct sockaddr_un),
	  .is_here = true,
	  .host = unix_host,
	  .parse = np_addr_make_path },
	{ .family = AF_PACKET,
	  .name = "AF_PACKET",
	  .len = sizeof(struct sockaddr_ll),
	  .at = offsetof(struct sockaddr_ll, sll_addr),
	  .size = 6,
	  .host = mac_host },
	{ .family = AF_LLC,
	  .name = "AF_LLC",
	  .len = sizeof(struct sockaddr_llc),
	  .at = offsetof(struct sockaddr_llc, sllc_mac),
	  .size = 6,
	  .port_at = offsetof(struct sockaddr_llc, sllc_sap),
	  .port_size = 1,
	  .host = mac_host },
	{ .family = AF_VSOCK,
	  .name = "AF_VSOCK",
	  .prefix = "vsock:",
	  .len = sizeof(struct sockaddr_vm),
	  .at = offsetof(struct sockaddr_vm, svm_cid),
	  .size = 4,
	  .any = &any_cid,
	  .loop = &loop_cid,
	  .port_at = offsetof(struct sockaddr_vm, svm_port),
	  .port_size = 4,
	  .any_port = VMADDR_PORT_ANY,
	  .loop_bits = 32,
	  .owner = 4,
	  .network = 4,
	  .is_number = true,
	  .host = cid_host,
	  .parse = read_cid,
	  .towards = own_cid },
	{ .family = AF_TIPC,
	  .name = "AF_TIPC",
	  .len = sizeof(struct sockaddr_tipc),
	  .at = offsetof(struct sockaddr_tipc, addr.id.node),
	  .size = 4,
	  .any = any_ip,
	  .port_at = offsetof(struct sockaddr_tipc, addr.id.ref),
	  .port_size = 4,
	  .owner = 4,
	  .network = 4,
	  .is_number = true,
	  .self_named = true,
	  .like = &node_template,
	  .host = node_host,
	  .parse = read_node,
	  .towards = own_node },
	{ .family = AF_UNSPEC, .name = "AF_UNSPEC" },
};

const struct np_family *
np_family(int family)
{
	static const struct np_family unknown = { .name = "an unknown family" };

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		if (families[i].family == family) {
			return &families[i];
		}
	}
	return &unknown;
}

const struct np_family *
np_family_of(const struct np_addr *a)
{
	return np_family(a->sa.ss_family);
}

/* getaddrinfo(3), tried again up to five times if the resolver asks for it. Returns its error. */
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

/* np_resolve() for a family that the resolver does not know. */
static int
parse_host_and_port(const char *host, const char *service, int family, struct np_addrs *out,
		    struct np_err *err)
{
	const struct np_family *f = np_family(family);
	const struct servent *known;
	int64_t port;

	out->count = 1;
	snprintf(out->name, sizeof(out->name), "%s", host != NULL ? host : "");
	if (host == NULL) {
		np_addr_make_any(&out->at[0], family);
	} else {
		host += np_family_prefixed(host) == family ? strlen(f->prefix) : 0;
		if (f->parse(&out->at[0], host, err) != NP_OK) {
			return err->code;
		}
	}
	if (service == NULL || f->port_size == 0) {
		return NP_OK;
	}
	/* Not a number: a service of services(5), with its IP port as the port here. */
	if (np_parse_int(service, &port) != 0) {
		known = getservbyname(service, NULL);
		port = known != NULL ? ntohs((uint16_t)known->s_port) : -1;
	}
	if (port < 0 || port > np_family_ports(out->at[0].sa.ss_family)) {
		return np_usage(err, "%.40s is not a port of %s", service,
				np_family_of(&out->at[0])->name);
	}
	np_addr_set_port(&out->at[0], (uint32_t)port);
	return NP_OK;
}

/* What to try: "[::1]", "192.0.2.0/24", "host:port" are no address alone. Several ':' are IPv6. */
static const char *
hint_for(const char *host, bool has_port)
{
	const char *colon = strchr(host, ':');

	if (strchr(host, '%') != NULL) {
		return " (is there such an interface?)";
	}
	if (strpbrk(host, "[/") == NULL && (colon == NULL || strchr(colon + 1, ':') != NULL)) {
		return "";
	}
	return has_port ? " (give the address alone, and a port by -p)"
			: " (give the address alone)";
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
	int rc, named;

	memset(out, 0, sizeof(*out));
	named = host != NULL ? np_family_prefixed(host) : AF_UNSPEC;
	if (np_family_or(family, named) != np_family_or(named, family)) { /* two families */
		return np_usage(err, "%.60s is not an address of %s", host,
				np_family(family)->name);
	}
	family = np_family_or(family, named);
	if (np_family(family)->parse != NULL) {
		return parse_host_and_port(host, service, family, out, err);
	}
	rc = lookup(host, service != NULL ? service : "0", &hints, &list);
	if (rc == EAI_SERVICE) {
		np_fail(err, NP_ECONTROL, 0, "port '%s' is neither a number nor a service",
			service);
	} else if (rc != 0) {
		np_fail(err, NP_ECONTROL, rc == EAI_SYSTEM ? errno : 0,
			"could not resolve host '%s' service '%s' family %s: %s%s",
			host != NULL ? host : "*", service != NULL ? service : "0",
			np_family(family)->name, gai_strerror(rc),
			rc == EAI_NONAME && host != NULL ? hint_for(host, service != NULL) : "");
	}
	if (rc != 0) {
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
		if (family == AF_UNSPEC) { /* IPv6 was not asked for */
			np_addr_unmap(a);
		}
	}
	freeaddrinfo(list);
	return NP_OK;
}

const char *
np_addr_host(const struct np_addr *a, char buf[NP_ADDR_TEXT])
{
	if (np_family_of(a)->host == NULL) {
		snprintf(buf, NP_ADDR_TEXT, "an address of unknown family %d", a->sa.ss_family);
		return buf;
	}
	np_family_of(a)->host(a, buf);
	return buf;
}

const char *
np_addr_text(const struct np_addr *a, char buf[NP_ADDR_TEXT])
{
	size_t n = strlen(np_addr_host(a, buf));

	if (np_family_of(a)->port_size > 0) {
		snprintf(buf + n, NP_ADDR_TEXT - n, " port %u", np_addr_port(a));
	}
	return buf;
}

uint32_t
np_addr_port(const struct np_addr *a)
{
	const struct np_family *f = np_family_of(a);
	const char *at = (const char *)&a->sa + f->port_at;
	uint16_t narrow;
	uint32_t wide = 0;

	if (f->port_size == 1) {
		return *(const uint8_t *)at;
	}
	if (f->port_size == sizeof(narrow)) {
		memcpy(&narrow, at, sizeof(narrow));
		return ntohs(narrow);
	}
	if (f->port_size == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		wide = wide == f->any_port ? 0 : wide;
	}
	return wide;
}

uint16_t *
np_addr_port_at(struct np_addr *a)
{
	const struct np_family *f = np_family_of(a);

	return f->port_size == sizeof(uint16_t) ? (void *)((char *)&a->sa + f->port_at) : NULL;
}

void
np_addr_set_port(struct np_addr *a, uint32_t port)
{
	const struct np_family *f = np_family_of(a);
	char *at = (char *)&a->sa + f->port_at;
	uint16_t narrow = htons((uint16_t)port);

	port = port == 0 ? f->any_port : port;
	if (f->port_size == 1) {
		*(uint8_t *)at = (uint8_t)port;
	}
	if (f->port_size == sizeof(narrow)) {
		memcpy(at, &narrow, sizeof(narrow));
	} else if (f->port_size == sizeof(port)) {
		memcpy(at, &port, sizeof(port));
	}
}

size_t
np_addr_size(const struct np_addr *a)
{
	return np_family_of(a)->size;
}

const uint8_t *
np_addr_bytes(const struct np_addr *a)
{
	return (const uint8_t *)&a->sa + np_family_of(a)->at;
}

void
np_addr_set_bytes(struct np_addr *a, const uint8_t *bytes)
{
	memcpy((uint8_t *)&a->sa + np_family_of(a)->at, bytes, np_family_of(a)->size);
}

/* Copy a host address between the byte orders of this machine and of messages, either way. */
static void
convert_order(const struct np_family *f, uint8_t *to, const uint8_t *from)
{
	uint32_t number;

	memcpy(to, from, f->size);
	if (f->is_number) {
		memcpy(&number, from, sizeof(number));
		number = htonl(number);
		memcpy(to, &number, sizeof(number));
	}
}

void
np_addr_to_wire(const struct np_addr *a, uint8_t *bytes)
{
	convert_order(np_family_of(a), bytes, np_addr_bytes(a));
}

void
np_addr_from_wire(struct np_addr *a, const uint8_t *bytes)
{
	convert_order(np_family_of(a), (uint8_t *)&a->sa + np_family_of(a)->at, bytes);
}

void
np_addr_make(struct np_addr *a, int family, const uint8_t *bytes, uint32_t port)
{
	const struct np_family *f = np_family(family);

	memset(a, 0, sizeof(*a));
	if (f->like != NULL) {
		memcpy(&a->sa, f->like, f->len);
	}
	a->sa.ss_family = (sa_family_t)family;
	if (bytes != NULL && f->size > 0) {
		a->len = f->len;
		np_addr_set_bytes(a, bytes);
		np_addr_set_port(a, port);
	}
}

void
np_addr_make_any(struct np_addr *a, int family)
{
	np_addr_make(a, family, np_family(family)->any, 0);
}

bool
np_addr_is_any(const struct np_addr *a)
{
	const struct np_family *f = np_family_of(a);

	return f->any != NULL && memcmp(np_addr_bytes(a), f->any, f->size) == 0;
}

bool
np_addr_is_group(const struct np_addr *a)
{
	const uint8_t *bytes = np_addr_bytes(a);
	int version = np_family_of(a)->version;

	return version == 6 ? bytes[0] == 0xff : version == 4 && bytes[0] >> 4 == 14; /* 224/4 */
}

bool
np_addr_bits_alike(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	return memcmp(a, b, whole) == 0 &&
	       (rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0);
}

bool
np_addr_same_family(const struct np_addr *a, const struct np_addr *b)
{
	return a->sa.ss_family == b->sa.ss_family;
}

int
np_addr_make_path(struct np_addr *a, const char *path, struct np_err *err)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&a->sa;
	size_t n = strlen(path);

	memset(a, 0, sizeof(*a));
	if (n == 0 || n >= sizeof(un->sun_path)) {
		return np_usage(err, "'%.120s' is not a path for a socket (1 to %zu bytes)", path,
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
	const struct np_family *f = np_family_of(far);

	if (f->towards != NULL && f->towards(far, near)) {
		return true;
	}
	near->len = 0;
	return false;
}

bool
np_addr_is_loopback(const struct np_addr *a)
{
	const struct np_family *f = np_family_of(a);

	return f->loop_bits > 0 && memcmp(np_addr_bytes(a), f->loop, f->loop_bits / 8) == 0;
}

/* The scope (link) of an IPv6 address; 0: none. */
static uint32_t
scope_of(const struct np_addr *a)
{
	return np_family_of(a)->version == 6 ? ((const struct sockaddr_in6 *)&a->sa)->sin6_scope_id
					     : 0;
}

/* Does the address mean something on one link only? */
static bool
is_link_local(const struct np_addr *a)
{
	return np_family_of(a)->version == 6 &&
	       IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)&a->sa)->sin6_addr);
}

bool
np_addr_may_share_link(const struct np_addr *a, const struct np_addr *b)
{
	/* An address without a scope may be on any link. */
	return !is_link_local(a) || scope_of(a) == 0 || scope_of(b) == 0 ||
	       scope_of(a) == scope_of(b);
}

void
np_addr_set_link(struct np_addr *a, const struct np_addr *of)
{
	if (is_link_local(a) && scope_of(a) == 0) {
		((struct sockaddr_in6 *)&a->sa)->sin6_scope_id = scope_of(of);
	}
}

void
np_addr_from(struct np_addr *a, const struct sockaddr *sa)
{
	memset(a, 0, sizeof(*a));
	if (sa != NULL && np_family(sa->sa_family)->version > 0) {
		a->len = np_family(sa->sa_family)->len;
		memcpy(&a->sa, sa, a->len);
	}
}

/* bind(2) would not tell: with net.ipv4.ip_nonlocal_bind it takes any address. */
int
np_addr_device(const struct np_addr *address, char device[NP_ADDR_DEVICE])
{
	struct np_addr plain = *address;
	const struct np_addr *a = &plain;
	struct ifaddrs *list;

	np_addr_unmap(&plain);
	device[0] = '\0';
	if (np_addr_is_loopback(a)) { /* lo has all of 127.0.0.0/8, though it lists only one */
		snprintf(device, NP_ADDR_DEVICE, "lo");
		return 0;
	}
	if (getifaddrs(&list) != 0) {
		return -errno;
	}
	for (const struct ifaddrs *i = list; i != NULL && device[0] == '\0'; i = i->ifa_next) {
		struct np_addr own;

		/* A link-local address counts on its own link only. */
		np_addr_from(&own, i->ifa_addr);
		if (own.len > 0 && np_addr_same_host(a, &own) &&
		    (!is_link_local(a) || scope_of(a) == scope_of(&own))) {
			/* The name of an IPv4 address may have a label: "eth0:1". */
			snprintf(device, NP_ADDR_DEVICE, "%.*s", (int)strcspn(i->ifa_name, ":"),
				 i->ifa_name);
		}
	}
	freeifaddrs(list);
	return device[0] != '\0' ? 0 : -ENODEV;
}

bool
np_addr_is_here(const struct np_addr *a)
{
	char device[NP_ADDR_DEVICE];

	return np_family_of(a)->is_here || np_addr_device(a, device) == 0;
}

void
np_addr_make_loopback(struct np_addr *a, int family)
{
	np_addr_make(a, family, np_family(family)->loop, 0);
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

bool
np_addr_same_host(const struct np_addr *a, const struct np_addr *b)
{
	size_t n = np_addr_size(a);

	return n > 0 && np_addr_same_family(a, b) &&
	       memcmp(np_addr_bytes(a), np_addr_bytes(b), n) == 0 && np_addr_may_share_link(a, b);
}

int
np_family_prefixed(const char *host)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		const char *prefix = families[i].prefix;

		if (prefix != NULL && strncmp(host, prefix, strlen(prefix)) == 0) {
			return families[i].family;
		}
	}
	return AF_UNSPEC;
}

uint32_t
np_family_ports(int family)
{
	return np_family(family)->port_size == sizeof(uint32_t) ? np_family(family)->any_port - 1
								: UINT16_MAX;
}

int
np_port_check(const char *port, const char *host, struct np_err *err)
{
	uint32_t most = np_family_ports(np_family_prefixed(host));
	int64_t n;

	if (np_parse_int(port, &n) == 0 && (n < 0 || n > most)) {
		return np_usage(err, "%.40s is not a port (0 to %u, or a service)", port, most);
	}
	return NP_OK;
}

int
np_family_or(int family, int other)
{
	return family != AF_UNSPEC ? family : other;
}
