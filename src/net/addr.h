/*
 * Socket addresses: resolving names, and writing addresses for people.
 */
#ifndef NP_NET_ADDR_H
#define NP_NET_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"

struct np_addr {
	struct sockaddr_storage sa;
	socklen_t len;
};

enum { NP_ADDRS_MAX = 16, NP_ADDR_TEXT = 112, NP_ADDR_DEVICE = 16 /* IF_NAMESIZE */ };

/*
 * What there is to know of a family of addresses. A new one is a row in addr.c; a family without a
 * row has no host, no port and no bytes, and says so.
 */
struct np_family {
	int family;
	int version;        /* of IP; 0: none */
	const char *name;   /* "AF_INET", "AF_UNSPEC" ... */
	const char *prefix; /* of an address, where no other option says the family; NULL: none */
	socklen_t len;      /* of the socket address */
	uint32_t any_port;  /* what a socket is bound to that may get any port */
	size_t at, size;    /* the bytes by which a host is known; 0: there are none */
	const void *any;    /* these of all addresses of a host */
	const void *loop;   /* of the loopback */
	const void *like;   /* what all addresses have beside bytes and port; NULL: nothing */
	size_t port_at;     /* the port */
	size_t port_size;   /* 1; 2: in network order; 4: in the machine's; 0: there is none */
	uint8_t loop_bits;  /* leading bits that all loopback addresses share */
	uint8_t owner;      /* bytes that all addresses of an owner begin with; 0: they have none */
	uint8_t network;    /* bytes that all addresses of a network begin with */
	bool has_edges;     /* the first and the last address of a network are no hosts */
	bool is_here;       /* such an address never leaves the machine */
	bool self_named;    /* the kernel names each socket, and none is bound */
	bool is_number;     /* its bytes are a number in the machine's order */
	void (*host)(const struct np_addr *a, char buf[NP_ADDR_TEXT]);
	/* An address as a user writes it; NULL: the resolver knows. */
	int (*parse)(struct np_addr *a, const char *text, struct np_err *err);
	/* Which address of ours `far` would see. Returns false if there is none. May be NULL. */
	bool (*towards)(const struct np_addr *far, struct np_addr *near);
};

/* The row; of a family that has none one that knows nothing. */
const struct np_family *np_family(int family);
const struct np_family *np_family_of(const struct np_addr *a);

/* What a name resolved to, in the resolver's order. */
struct np_addrs {
	struct np_addr at[NP_ADDRS_MAX];
	size_t count;
	char name[256]; /* canonical name; the literal text for literal addresses */
};

/*
 * Resolve a host name or literal address (of families without names: the address, "vsock:2") and a
 * service name or number (NULL: port 0) for a stream or datagram socket; host NULL means the
 * wildcard. family may be AF_UNSPEC. "Try again" answers of the resolver are retried, six tries in
 * all, a second apart, as netperf does. NP_ECONTROL when nothing was found, with getaddrinfo(3)'s
 * error, which is negative, in err->sys.
 */
int np_resolve(const char *host, const char *service, int family, int socktype,
	       struct np_addrs *out, struct np_err *err);

/* Addresses of one host beside the one that is named first. */
enum { NP_ALSO_MAX = 4 };
struct np_also {
	struct np_addr at[NP_ALSO_MAX];
	uint32_t count;
};

/*
 * "127.0.0.1 port 12865"; for IPv6 the address without brackets, for the UNIX domain the path, for
 * the link layer the station's. Returns buf.
 */
const char *np_addr_text(const struct np_addr *a, char buf[NP_ADDR_TEXT]);

/* The numeric address alone. Returns buf. */
const char *np_addr_host(const struct np_addr *a, char buf[NP_ADDR_TEXT]);

/* 0 where a family has no ports; there setting it does nothing. */
uint32_t np_addr_port(const struct np_addr *a);
void np_addr_set_port(struct np_addr *a, uint32_t port);

/*
 * Where the port stands, in network order, for who sets one address again and again. NULL where it
 * has no 16 bits.
 */
uint16_t *np_addr_port_at(struct np_addr *a);

/*
 * The bytes by which a host is known, as they stand in the address: in network order, 4 of AF_INET,
 * 16 of AF_INET6; 0 where a family has none or is not known.
 */
size_t np_addr_size(const struct np_addr *a);
const uint8_t *np_addr_bytes(const struct np_addr *a);
void np_addr_set_bytes(struct np_addr *a, const uint8_t *bytes);

/* The same bytes as messages have them: in network order, which those of a CID are not here. */
void np_addr_to_wire(const struct np_addr *a, uint8_t *bytes);
void np_addr_from_wire(struct np_addr *a, const uint8_t *bytes);

/* Make an address from such bytes; len is 0 afterwards where the family has none. */
void np_addr_make(struct np_addr *a, int family, const uint8_t *bytes, uint32_t port);

/* Take over an IP address that stands elsewhere; len is 0 where it is NULL or another one. */
void np_addr_from(struct np_addr *a, const struct sockaddr *sa);

/* Stands it for all addresses of a host (0.0.0.0, ::)? Make such a one, without a port. */
bool np_addr_is_any(const struct np_addr *a);
void np_addr_make_any(struct np_addr *a, int family);

/* The number of the link that an IPv6 address is said to be of; 0: of any. */
uint32_t np_addr_scope(const struct np_addr *a);

/* Let an address that means something on one link only, and names none, be of that one's link. */
void np_addr_set_link(struct np_addr *a, const struct np_addr *of);

/* Of a multicast group? */
bool np_addr_is_group(const struct np_addr *a);

/* Do these bytes begin with the same bits? */
bool np_addr_bits_alike(const uint8_t *a, const uint8_t *b, unsigned bits);

bool np_addr_same_family(const struct np_addr *a, const struct np_addr *b);

/* Make an AF_UNIX address (unix(7)). NP_EUSAGE when the path is empty or too long for one. */
int np_addr_make_path(struct np_addr *a, const char *path, struct np_err *err);

/*
 * Is this address one of this machine's own: of the loopback, or of an interface (getifaddrs(3))?
 * True for the UNIX domain.
 */
bool np_addr_is_here(const struct np_addr *a);

/*
 * The interface that has this address, mapped or not; a loopback address has lo. 0, or a negative
 * errno and "": -ENODEV, no interface has it.
 */
int np_addr_device(const struct np_addr *a, char device[NP_ADDR_DEVICE]);

/*
 * Which of this machine's addresses packets to `far` would bear, as the routes are now. Nothing is
 * sent. False when there is no way there.
 */
bool np_addr_towards(const struct np_addr *far, struct np_addr *near);

/* 127.0.0.0/8 or ::1, which no packet from another machine has. */
bool np_addr_is_loopback(const struct np_addr *a);

/* Make the loopback address of that family: 127.0.0.1 or ::1; len 0 where it has none. */
void np_addr_make_loopback(struct np_addr *a, int family);

/* Turn an IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2) into the IPv4 address that it stands for. */
void np_addr_unmap(struct np_addr *a);

/* Same family and address; the ports may differ. */
bool np_addr_same_host(const struct np_addr *a, const struct np_addr *b);

/* The family that the text in front of an address names ("vsock:2"), or AF_UNSPEC. */
int np_family_prefixed(const char *host);

/* The largest port of the family. */
uint32_t np_family_ports(int family);

/* Is the text no number, hence a service, or a port that a socket at that host can have? NP_EUSAGE.
 */
int np_port_check(const char *port, const char *host, struct np_err *err);

/* The family; the other one where it is AF_UNSPEC. */
int np_family_or(int family, int other);

#endif
