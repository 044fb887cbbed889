/* What one end's policy allows a plan, and the resources it gives; not agreed with the far end. */
#ifndef NP_BENCH_TERMS_H
#define NP_BENCH_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net/addr.h"
#include "wire/token.h"

struct np_eth;

enum { NP_EARLY_IDS = 16 };

/* A message on data_fd (SOCK_SEQPACKET): a data socket, or that there will be none, and why. */
struct np_handed {
	int32_t error; /* errno; 0 with a descriptor */
	/* Datagrams that came before the socket existed: how many, ids of the first, bytes. */
	uint32_t early;
	char id[NP_EARLY_IDS][4];
	bool blocks; /* the descriptor is a blocking one */
	bool ended;  /* an end mark was among them */
	uint64_t early_bytes;
};

/* All 0: no limits, and no resources of the caller's. */
struct np_terms {
	struct np_addr only; /* the only address that the data socket accepts; len 0: any */
	unsigned only_bits;  /* length of the prefix that matters; 0: the whole address */
	struct np_also also; /* further accepted addresses; none with only_bits */
	size_t call_max; /* most bytes of a call whose size follows from a socket buffer; 0: any */
	/* Range of ports for a passive end, unless the client names one; 0: any. */
	uint32_t passive_min, passive_max;
	/* Sets the congestion control that the peer asked for; NULL: setsockopt(2). */
	int (*permit)(void *ctx, int fd, const char *congestion, socklen_t len);
	void *permit_ctx;
	const struct np_eth *eth; /* an open socket for raw frames; NULL: none */
	/*
	 * The daemon hands over passive data sockets here (struct np_handed), bound to data_at and
	 * with a checked peer; 0: the run makes its own.
	 */
	int data_fd;
	struct np_addr data_at;
	bool tokens; /* their far ends have to send this token */
	struct np_token token;
	int fill_dir; /* descriptor of the directory that must have the fill_file; 0: any */
};

#endif
