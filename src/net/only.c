#include "net/only.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Where the source address stands in the network header (RFC 791, 8200). */
enum { SOURCE_4 = 12, SOURCE_6 = 8 };

/*
 * A program: for each source a block that goes on to the next one where the packet is not from
 * there, and to the end where it is.
 */
/* Most instructions: version, four words to compare, one of them in part, and a jump. */
enum { BLOCK = 13, REST = 8 };
struct program {
	struct sock_filter code[NP_SOURCES_MAX * BLOCK + REST];
	unsigned short count;
};

static const uint16_t if_equal = BPF_JMP | BPF_JEQ | BPF_K, go_on = BPF_JMP | BPF_JA;

static void
add(struct program *p, uint16_t code, uint32_t k)
{
	p->code[p->count++] = (struct sock_filter){ .code = code, .k = k };
}

/* Load what stands at that offset of the network header, wherever the socket's own data begin. */
static void
load(struct program *p, uint16_t size, uint32_t offset)
{
	add(p, (uint16_t)(BPF_LD | BPF_ABS | size), (uint32_t)SKF_NET_OFF + offset);
}

/* Go on if the accumulator is k, else to where fail_to() says. */
static void
require(struct program *p, uint32_t k)
{
	add(p, if_equal, k);
}

/* The jumps that require() left open since `from` skip the next `ahead` instructions. */
static void
fail_to(struct program *p, unsigned from, unsigned ahead)
{
	for (unsigned i = from; i < p->count; i++) {
		if (p->code[i].code == if_equal) {
			p->code[i].jf = (uint8_t)(p->count + ahead - 1 - i);
		}
	}
}

/* The word of network order that begins there. */
static uint32_t
word(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Is its /64 meant with such an address? */
static bool
is_network(const struct np_addr *a)
{
	return !np_addr_is_loopback(a) &&
	       !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)&a->sa)->sin6_addr);
}

/* A socket of IPv6 may get IPv4 packets, too: each packet says itself which it is. */
static void
write_block(struct program *p, const struct np_addr *source, const struct np_sources *s)
{
	bool six = np_addr_version(source) == 6;
	uint32_t all = !six ? 32 : s->networks && is_network(source) ? 64 : 128;
	uint32_t bits = s->bits > 0 && s->bits < all ? s->bits : all;
	const uint8_t *bytes = np_addr_bytes(source);
	unsigned from = p->count;

	load(p, BPF_B, 0);
	add(p, BPF_ALU | BPF_RSH | BPF_K, 4);
	require(p, six ? 6 : 4);
	for (uint32_t i = 0; 8 * i < bits; i += 4) {
		uint32_t left = bits - 8 * i, mask = left < 32 ? ~(UINT32_MAX >> left) : UINT32_MAX;

		load(p, BPF_W, (six ? SOURCE_6 : SOURCE_4) + i);
		if (left < 32) {
			add(p, BPF_ALU | BPF_AND | BPF_K, mask);
		}
		require(p, word(bytes + i) & mask);
	}
	add(p, go_on, 0);
	fail_to(p, from, 0);
}

static void
write_program(struct program *p, const struct np_sources *s)
{
	unsigned end;

	p->count = 0;
	for (size_t i = 0; i < s->count; i++) {
		write_block(p, &s->at[i], s);
	}
	add(p, BPF_RET | BPF_K, 0);
	end = p->count;
	if (s->port != 0) {
		add(p, BPF_LD | BPF_ABS | BPF_H, 0); /* RFC 768: it begins with the source's port */
		require(p, s->port);
		fail_to(p, end, 1);
	}
	add(p, BPF_RET | BPF_K, UINT32_MAX); /* bytes of the packet to accept: all */
	add(p, BPF_RET | BPF_K, 0);
	for (unsigned i = 0; i < end; i++) {
		if (p->code[i].code == go_on) {
			p->code[i].k = end - i - 1;
		}
	}
}

int
np_sock_only_sources(int fd, const struct np_sources *s, struct np_err *err)
{
	struct np_sources real = *s;
	char text[NP_ADDR_TEXT];
	struct program p;
	struct sock_fprog prog;

	for (size_t i = 0; i < real.count; i++) {
		np_addr_unmap(&real.at[i]);
		if (np_addr_version(&real.at[i]) == 0) {
			return np_fail(err, NP_ESYS, EAFNOSUPPORT,
				       "filter by an address of family %s",
				       np_family_name(real.at[i].sa.ss_family));
		}
	}
	write_program(&p, &real);
	prog = (struct sock_fprog){ .len = p.count, .filter = p.code };
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) != 0) {
		return np_fail(err, NP_ESYS, errno, "limit a data socket to packets from %s",
			       real.count > 0 ? np_addr_host(&real.at[0], text) : "nobody");
	}
	return NP_OK;
}

int
np_sock_only_network(int fd, const struct np_addr *peer, unsigned bits, struct np_err *err)
{
	struct np_sources s = { .at = { *peer }, .count = 1, .bits = bits };

	return np_sock_only_sources(fd, &s, err);
}

int
np_sock_only_from(int fd, const struct np_addr *peer, struct np_err *err)
{
	return np_sock_only_network(fd, peer, 0, err);
}

void
np_sock_from_any(int fd)
{
	int unused = 0;

	setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
}
