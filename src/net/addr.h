/* Socket addresses, their names and texts. `near` is of this end, `far` of the other end. */
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

/* An address family: a row in addr.c. One that is not in the table has no host, port or bytes. */
struct np_family {
	int family;
	int version;        /* of IP; 0: none */
	const char *name;   /* "AF_INET", "AF_UNSPEC" ... */
	const char *prefix; /* prefix of an address that names the family; NULL: none */
	socklen_t len;      /* of the socket address */
	uint32_t any_port;  /* port to bind to for any free port */
	size_t at, size;    /* offset and bytes of the host address; size 0: none */
	const void *any;    /* the wildcard's host address; NULL: none */
	const void *loop;   /* the loopback's; NULL: none */
	const void *like;   /* template of the rest of the address; NULL: zeros */
	size_t port_at;     /* offset of the port */
	size_t port_size;   /* its bytes: 1; 2: network order; 4: host order; 0: no port */
	uint8_t loop_bits;  /* prefix length of loopback addresses; 0: none */
	uint8_t owner;      /* how many first bytes all addresses of a host share; 0: none */
	uint8_t network;    /* how many those of a network share */
	bool has_edges;     /* the first and last address of a network are no hosts */
	bool is_here;       /* data never leave the machine */
	bool self_named;    /* the kernel gives sockets addresses; no bind(2) */
	bool is_number;     /* the host address is a number in host order */
	void (*host)(const struct np_addr *a, char buf[NP_ADDR_TEXT]); /* write it as text */
	/* Parse a host address; NULL: the resolver does. NP_EUSAGE. */
	int (*parse)(struct np_addr *a, const char *text, struct np_err *err);
	/* np_addr_towards() for this family; NULL: there is no such address. */
	bool (*towards)(const struct np_addr *far, struct np_addr *near);
};

/* The row of a family, or of an address's; an empty one if there is none. */
const struct np_family *np_family(int family);
const struct np_family *np_family_of(const struct np_addr *a);

/* The addresses of a name, in the order of the resolver. */
struct np_addrs {
	struct np_addr at[NP_ADDRS_MAX];
	size_t count;
	char name[256]; /* canonical name; the literal text for literal addresses */
};

/*
 * Resolve a host (NULL: the wildcard; "vsock:2" of a family without names) and a service or port
 * (NULL: 0). family may be AF_UNSPEC. "Try again" is retried, six tries a second apart, as netperf
 * does. NP_ECONTROL: nothing found, getaddrinfo(3)'s negative error is in err->sys.
 */
int np_resolve(const char *host, const char *service, int family, int socktype,
	       struct np_addrs *out, struct np_err *err);

/* Additional addresses of one host. */
enum { NP_ALSO_MAX = 4 };
struct np_also {
	struct np_addr at[NP_ALSO_MAX];
	uint32_t count;
};

/* "127.0.0.1 port 12865", IPv6 without brackets; a UNIX path; a station's address. Returns buf. */
const char *np_addr_text(const struct np_addr *a, char buf[NP_ADDR_TEXT]);

/* The numeric address alone. Returns buf. */
const char *np_addr_host(const struct np_addr *a, char buf[NP_ADDR_TEXT]);

/* These two, with a buffer that lasts as long as the block of the caller. */
#define NP_ADDR_STR(a) np_addr_text(a, (char[NP_ADDR_TEXT]){ "" })
#define NP_HOST_STR(a) np_addr_host(a, (char[NP_ADDR_TEXT]){ "" })

/* In host order. 0: none, or any free one. Of a family without ports, setting it does nothing. */
uint32_t np_addr_port(const struct np_addr *a);
void np_addr_set_port(struct np_addr *a, uint32_t port);

/* Where the port is, in network order, to set it repeatedly. NULL: it does not have 16 bits. */
uint16_t *np_addr_port_at(struct np_addr *a);

/*
 * The host address in network order, but a CID or TIPC node in host order. The size is 4 of
 * AF_INET, 16 of AF_INET6; 0: none, or unknown. np_addr_set_bytes() needs the family set.
 */
size_t np_addr_size(const struct np_addr *a);
const uint8_t *np_addr_bytes(const struct np_addr *a);
void np_addr_set_bytes(struct np_addr *a, const uint8_t *bytes);

/* Write and read these bytes as in messages: in network order, also of CIDs and TIPC nodes. */
void np_addr_to_wire(const struct np_addr *a, uint8_t *bytes);
void np_addr_from_wire(struct np_addr *a, const uint8_t *bytes);

/* Make an address; bytes: as np_addr_bytes(). len is 0 if it is NULL, or the family has none. */
void np_addr_make(struct np_addr *a, int family, const uint8_t *bytes, uint32_t port);

/* Copy an IP address; len is 0 if sa is NULL or no IP address. */
void np_addr_from(struct np_addr *a, const struct sockaddr *sa);

/* Is it a wildcard (0.0.0.0, ::)? Make one, without a port. */
bool np_addr_is_any(const struct np_addr *a);
void np_addr_make_any(struct np_addr *a, int family);

/* Give a link-local address without a scope, as read from a message, that of the other address. */
void np_addr_set_link(struct np_addr *a, const struct np_addr *of);

/* Is it an IP multicast address? */
bool np_addr_is_group(const struct np_addr *a);

/* Are the first bits equal? */
bool np_addr_bits_alike(const uint8_t *a, const uint8_t *b, unsigned bits);

bool np_addr_same_family(const struct np_addr *a, const struct np_addr *b);

/* Make an AF_UNIX address (unix(7)). NP_EUSAGE when the path is empty or too long for one. */
int np_addr_make_path(struct np_addr *a, const char *path, struct np_err *err);

/* Is it an address of this machine (np_addr_device())? True for the UNIX domain. */
bool np_addr_is_here(const struct np_addr *a);

/*
 * The name of the interface with this address (getifaddrs(3)), IPv4-mapped or not; "lo" for a
 * loopback address. Returns 0, or a negative errno and "": -ENODEV if there is none.
 */
int np_addr_device(const struct np_addr *a, char device[NP_ADDR_DEVICE]);

/* Our source address for packets to `far` at present; its port means nothing. False, len 0: none.
 */
bool np_addr_towards(const struct np_addr *far, struct np_addr *near);

/* 127.0.0.0/8, ::1 or the CID of the loopback, never in packets from other machines. */
bool np_addr_is_loopback(const struct np_addr *a);

/* Make the loopback address of a family, such as 127.0.0.1, without a port; len 0: it has none. */
void np_addr_make_loopback(struct np_addr *a, int family);

/* Turn an IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2) into the IPv4 address. */
void np_addr_unmap(struct np_addr *a);

/* Same family and address, not link-local on two links; ports may differ. False without address. */
bool np_addr_same_host(const struct np_addr *a, const struct np_addr *b);

/* False if they are link-local addresses of two links: the same one is another host there. */
bool np_addr_may_share_link(const struct np_addr *a, const struct np_addr *b);

/* The family named by the prefix of an address ("vsock:2"), or AF_UNSPEC. */
int np_family_prefixed(const char *host);

/* The largest port of the family. */
uint32_t np_family_ports(int family);

/* NP_EUSAGE if `port` is a number outside the ports of that host's family. */
int np_port_check(const char *port, const char *host, struct np_err *err);

/* family, unless it is AF_UNSPEC: then other. */
int np_family_or(int family, int other);

#endif
