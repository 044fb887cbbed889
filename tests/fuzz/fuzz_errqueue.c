/*
 * Messages of a socket's error queue against the parser, and what it makes of them against the
 * account of buffers in use: the input is the control data, behind 8 bytes that say what was sent.
 */
#include "tests/fuzz/fuzz.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "bench/engine/zerocopy.h"

enum { ROOM = 512, DEPTH = 8 };

static uint32_t
held_of(const struct np_borrowed *l)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < l->depth; i++) {
		count += l->held[i];
	}
	return count;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct head {
		uint32_t next;
		uint8_t sent, since, depth, spare;
	} head;
	size_t taken = fuzz_fill(&head, sizeof(head), data, size), rest = size - taken;
	/* Its end is the end of what may be read. */
	size_t room = rest < ROOM ? rest : ROOM;
	char *control = room > 0 ? malloc(room) : NULL;
	struct msghdr m = { .msg_control = control, .msg_controllen = room };
	bool held[DEPTH] = { false };
	struct np_borrowed l = { .next = head.next, .depth = 1U << head.depth % 4, .held = held };
	struct np_released r;

	must(room == 0 || control != NULL);
	if (room > 0) {
		memcpy(control, data + taken, room);
	}
	for (uint32_t i = 0; i < head.sent % (l.depth + 1); i++) {
		np_borrowed_add(&l);
	}
	l.since = head.since;
	if (np_released_of(&m, &r)) {
		uint32_t before = l.count, released = np_borrowed_release(&l, &r);

		must(released <= before - l.count);
		must(l.count <= before);
		must(l.count == held_of(&l));
	}
	free(control);
	return 0;
}
