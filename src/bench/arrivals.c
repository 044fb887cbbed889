#include "bench/arrivals.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"

/* A random number in (0, 1], by splitmix64. */
static double
draw(struct np_arrivals *a)
{
	uint64_t z = a->seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return ((double)(z >> 11) + 1) / (double)(UINT64_C(1) << 53);
}

/*
 * The workers' Poisson processes are independent, and add up to one of the whole rate. Else the
 * times are exact multiples, so that no errors of rounding add up.
 */
static void
place(struct np_arrivals *a)
{
	uint64_t first;

	if (a->how == NP_ARRIVE_POISSON) {
		a->at -= log(draw(a)) * 1e9 * a->of / a->rate;
		a->due_ns = a->start_ns + (uint64_t)a->at;
		return;
	}
	first = a->place - a->place % a->how;
	a->due_ns = a->start_ns + (uint64_t)((double)first * 1e9 / a->rate);
}

void
np_arrivals_begin(struct np_arrivals *a, double rate, uint32_t how, uint32_t number, uint32_t of,
		  uint64_t start_ns)
{
	*a = (struct np_arrivals){ .start_ns = start_ns,
				   .place = number,
				   .rate = rate,
				   .of = of,
				   .how = how,
				   .seed = start_ns * of + number };
	place(a);
}

void
np_arrivals_next(struct np_arrivals *a)
{
	a->place += a->of;
	place(a);
}

const char *
np_arrivals_text(uint32_t how, char text[NP_ARRIVALS_TEXT])
{
	if (how > NP_ARRIVE_EVENLY) {
		snprintf(text, NP_ARRIVALS_TEXT, "burst:%u", how);
		return text;
	}
	return how == NP_ARRIVE_POISSON ? "poisson" : "constant";
}
