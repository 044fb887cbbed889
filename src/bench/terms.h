/*
 * The terms on which one end runs a plan: what its policy allows, and which resources it gives. The
 * other end is not asked about them, and they are no part of the plan.
 */
#ifndef NP_BENCH_TERMS_H
#define NP_BENCH_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net/addr.h"
#include "wire/token.h"

struct np_eth;

/*
 * What comes over data_fd, a pair of SOCK_SEQPACKET: with a descriptor, a data socket; without, the
 * errno by which to give up waiting for one.
 */
enum { NP_EARLY_IDS = 16 };

struct np_handed {
	int32_t error;
	/* Datagrams that came before their socket was there, and were thrown away: how many, how
	 * the first of them begin, and their bytes. */
	uint32_t early;
	char id[NP_EARLY_IDS][4];
	bool blocks; /* the descriptor is not non-blocking */
	bool ended;  /* an end mark was among them */
	uint64_t early_bytes;
};

/* All 0: no limits, and no resources of the caller's. */
struct np_terms {
	struct np_addr only; /* the only address that the data socket accepts; len 0: any */
	unsigned only_bits;  /* of that address: all that begin with them are meant; 0: it alone */
	struct np_also also; /* accepted, too; none where only_bits are said */
	size_t call_max; /* most bytes of a call that only a socket buffer's size gives; 0: any */
	/* Ports of a passive end that is asked for none, both included; 0: any. */
	uint32_t passive_min, passive_max;
	/* Sets a congestion control that the peer named, see np_sockopts; NULL: setsockopt(2). */
	int (*permit)(void *ctx, int fd, const char *congestion, socklen_t len);
	void *permit_ctx;
	const struct np_eth *eth; /* of frames without IP, open already; NULL: none */
	/*
	 * Passive data sockets come from here, made by the daemon at data_at, as struct
	 * np_handed; 0: the run makes them. Their peers have been checked.
	 */
	int data_fd;
	struct np_addr data_at;
	bool tokens; /* their far ends show a token, this one */
	struct np_token token;
	int fill_dir; /* descriptor of where the plan's fill_file must be; 0: anywhere */
};

#endif
