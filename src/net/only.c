#include "net/only.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Where the source address stands in the network header (RFC 791, 8200). */
enum { SOURCE_4 = 12, SOURCE_6 = 8 };

/* The longest program: a version, four words to compare, two ends. */
struct program {
	struct sock_filter code[16];
	unsigned short count;
};

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

/* Go on if the accumulator is k, else to the last instruction; finish() fills the distance in. */
static void
require(struct program *p, uint32_t k)
{
	add(p, BPF_JMP | BPF_JEQ | BPF_K, k);
}

static void
finish(struct program *p)
{
	add(p, BPF_RET | BPF_K, UINT32_MAX); /* so many bytes of the packet: all */
	add(p, BPF_RET | BPF_K, 0);
	for (unsigned i = 0; i < p->count; i++) {
		if (p->code[i].code == (BPF_JMP | BPF_JEQ | BPF_K)) {
			p->code[i].jf = (uint8_t)(p->count - 2U - i);
		}
	}
}

/* The word of network order that begins there. */
static uint32_t
word(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* A socket of IPv6 may get IPv4 packets, too: each packet says itself which it is. */
static void
write_program(struct program *p, const struct np_addr *peer)
{
	bool six = peer->sa.ss_family == AF_INET6;
	const uint8_t *bytes = np_addr_bytes(peer);

	p->count = 0;
	load(p, BPF_B, 0);
	add(p, BPF_ALU | BPF_RSH | BPF_K, 4);
	require(p, six ? 6 : 4);
	for (uint32_t i = 0; i < (six ? 16U : 4U); i += 4) {
		load(p, BPF_W, (six ? SOURCE_6 : SOURCE_4) + i);
		require(p, word(bytes + i));
	}
	finish(p);
}

int
np_sock_only_from(int fd, const struct np_addr *peer, struct np_err *err)
{
	struct np_addr real = *peer;
	char text[NP_ADDR_TEXT];
	struct program p;
	struct sock_fprog prog;

	np_addr_unmap(&real);
	if (real.sa.ss_family != AF_INET && real.sa.ss_family != AF_INET6) {
		return np_fail(err, NP_ESYS, EAFNOSUPPORT, "filter by an address of family %s",
			       np_family_name(real.sa.ss_family));
	}
	write_program(&p, &real);
	prog = (struct sock_fprog){ .len = p.count, .filter = p.code };
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) != 0) {
		return np_fail(err, NP_ESYS, errno, "have a data socket hear %s only",
			       np_addr_host(&real, text));
	}
	return NP_OK;
}

void
np_sock_from_any(int fd)
{
	int unused = 0;

	setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
}
