/*
 * A thread that carries packets one way between two TUN devices, through a line (line.h).
 */
#ifndef NP_TESTS_LINK_CARRY_H
#define NP_TESTS_LINK_CARRY_H

#include "tests/link/line.h"

#include <pthread.h>
#include <stdatomic.h>

/* Latenesses up to this are told apart by the microsecond. */
enum { NP_CARRY_LATE_US = 2048 };

/* How late the kernel wakes a thread that sleeps until a packet is due. */
struct np_waking {
	uint64_t late_ns; /* of late, and mostly */
};

/* It was late by so much. */
void np_waking_note(struct np_waking *w, uint64_t late);

/* How much before its time a thread should ask to be woken that would sleep for so long, where so
 * much time lies between packets on the average. */
uint64_t np_waking_early(const struct np_waking *w, uint64_t sleep, uint64_t gap);

/* What others see of the thread: written by it alone, but for plan, planned and clear. */
struct np_carry_shown {
	_Atomic uint64_t received, forwarded, lost, dropped, no_room, duplicated, reordered, held;
	_Atomic uint64_t unsent; /* that the device at the far end did not take */

	/* By how much packets left later than they should have: their number, by us. */
	_Atomic uint64_t late[NP_CARRY_LATE_US + 1];
	_Atomic uint64_t late_sum_ns, late_max_ns;
};

struct np_carry {
	int in, out; /* TUN devices; `in` does not block */
	struct np_line line;
	uint64_t came, gap_ns; /* when the last packet came; the time between two, on the average */
	uint64_t slept;        /* when the thread last woke */
	struct np_waking waking;
	struct np_carry_shown shown;

	pthread_mutex_t lock; /* of plan */
	struct np_line_plan plan;
	_Atomic unsigned planned; /* how often plan has been set */
	_Atomic bool clear;       /* forget the latenesses */
	pthread_t thread;
};

/* Prepares it: memory for `room` bytes under way. NP_ESYS. */
int np_carry_init(struct np_carry *c, int in, int out, const struct np_line_plan *plan, size_t room,
		  struct np_err *err);

/* One that was prepared and not started. */
void np_carry_free(struct np_carry *c);

/* Starts the thread, which ends the process when a device is gone. It gets the machine's attention
 * before all else where we may ask for that: a packet that is due cannot wait. NP_ESYS. */
int np_carry_start(struct np_carry *c, struct np_err *err);

/* It is to be like that from the next packet on. */
void np_carry_set(struct np_carry *c, const struct np_line_plan *plan);

#endif
