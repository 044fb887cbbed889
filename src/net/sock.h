/* Sockets: a list of options to set, sockets made with it, control connections and listeners. */
#ifndef NP_NET_SOCK_H
#define NP_NET_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

enum { NP_SOCKOPTS_MAX = 24 };

/* setsockopt() calls in order, built once: connection tests open thousands of sockets a second. */
struct np_sockopts {
	struct {
		int level, name;
		const char *label; /* for messages: "SO_SNDBUF" */
		char shown[24];    /* the value, for messages */
		bool optional;     /* a refusal is ignored, as netperf does */
		socklen_t len;
		_Alignas(uint64_t) char value[16];
	} at[NP_SOCKOPTS_MAX];
	size_t count; /* more than NP_SOCKOPTS_MAX: np_sockopts_apply() fails */

	/* Replaces setsockopt(2) of TCP_CONGESTION, where a name may load a module. Or NULL. */
	int (*permit)(void *ctx, int fd, const char *congestion, socklen_t len);
	void *permit_ctx;
};

/* Append an option of `len` bytes, 16 at most, `shown` in messages: as in printf(3). */
void np_sockopts_add_value(struct np_sockopts *o, int level, int name, const char *label,
			   const void *value, size_t len, const char *shown, ...)
    __attribute__((format(printf, 7, 8)));

/* Append an option with a text of at most 15 characters (TCP_CONGESTION). */
void np_sockopts_add_text(struct np_sockopts *o, int level, int name, const char *label,
			  const char *value);

/* Append one of type int if it is wanted. */
void np_sockopts_add(struct np_sockopts *o, bool wanted, int level, int name, const char *label,
		     int value, bool optional);
#define NP_SOCKOPT(o, wanted, level, name, value)                                                  \
	np_sockopts_add(o, wanted, level, name, #name, value, false)
#define NP_SOCKOPT_OR_NOT(o, wanted, level, name, value)                                           \
	np_sockopts_add(o, wanted, level, name, #name, value, true)

/* Make the calls. NP_ESYS names the option that was refused, and its value. */
int np_sockopts_apply(const struct np_sockopts *o, int fd, struct np_err *err);

/* A close-on-exec socket, options set, bound to `local` (or NULL). A descriptor, or -1 with err. */
int np_sock_open(int family, int socktype, int protocol, const struct np_sockopts *opts,
		 const struct np_addr *local, struct np_err *err);

/* Has the kernel such sockets? AF_UNSPEC: IPv4, or IPv6 without it. A descriptor, or -1. */
int np_sock_trial(int family, int socktype, int protocol, struct np_err *err);

/* Bind a socket that np_sock_open() did not. NP_ESYS. */
int np_sock_bind(int fd, const struct np_addr *local, struct np_err *err);

/* Read an option of type int back; -1: the kernel does not have it. */
int np_sock_int(int fd, int level, int name);

/* The MTU in bytes of the route to an IP address: by fd if that is connected. -1: unknown. */
int np_sock_path_mtu(int fd, const struct np_addr *to);

/* Bytes in a queue: SIOCINQ not read, SIOCOUTQ not sent (TCP: not acknowledged); 0 if unknown. */
int np_sock_queued(int fd, unsigned long which);

/*
 * SK_MEMINFO_* of linux/sock_diag.h, also while others wait in recv(2); 0: unknown. RMEM_ALLOC:
 * used receive buffer, with overhead. WMEM_ALLOC: of a connection, not acknowledged. DROPS:
 * datagrams dropped since the socket was made.
 */
uint32_t np_sock_memory(int fd, int part);

/* Has the peer closed its direction of a stream? Nothing follows what can still be read. */
bool np_sock_peer_closed(int fd);

/* Make its calls block, or return at once. */
void np_sock_block(int fd, bool block);

/* Discard received datagrams; at most 65536, as the peer may still be sending. */
void np_sock_forget(int fd);

/* The local address of a socket (getsockname(2)). NP_ESYS; err may be NULL. */
int np_sock_local(int fd, struct np_addr *out, struct np_err *err);

/*
 * Make a control connection send at once (TCP_NODELAY), and fail after silence_s of the peer's
 * kernel: keep-alive, TCP_USER_TIMEOUT (RFC 5482), if there. np_tcp_silent_ns() sees it within 4 s.
 */
void np_sock_watch_peer(int fd, uint32_t silence_s);

/*
 * Close by a reset, which the peer sees as failure: by AF_UNSPEC, as sessions lack SO_LINGER. With
 * kernel TLS that fails: then the kernel drops the data the next time that it would send again.
 */
void np_sock_reset(int fd);

/* A non-blocking, listening stream socket with SO_REUSEADDR. Returns the descriptor, or -1. */
int np_sock_listen(const struct np_addr *at, int backlog, struct np_err *err);

#endif
