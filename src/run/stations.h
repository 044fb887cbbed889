/*
 * Stations of transactions: where their time goes, by both ends' time stamps (bench/stamps.h). Each
 * end's clock measures its part, the rest is the network's (each direction: stats/oneway.h).
 */
#ifndef NP_RUN_STATIONS_H
#define NP_RUN_STATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bag.h"
#include "bench/run.h"
#include "bench/stamps.h"
#include "stats/hist.h"
#include "stats/oneway.h"

enum np_station {
	NP_ST_NEAR_SEND,   /* from the call to the queueing discipline */
	NP_ST_NEAR_QUEUE,  /* from there until the driver has sent it */
	NP_ST_WIRE,        /* in both directions, between driver and the other end's stack */
	NP_ST_FAR_RECV,    /* from the far end's stack to its process */
	NP_ST_FAR_PROCESS, /* from there to its call */
	NP_ST_FAR_SEND,
	NP_ST_FAR_QUEUE,
	NP_ST_NEAR_RECV, /* from the stack to the process */
	NP_STATIONS,
	/* Histograms besides those of the stations: */
	NP_ST_WHOLE = NP_STATIONS, /* of round trips */
	NP_ST_THERE, /* of the delay in a direction above the smallest, if has_one_way */
	NP_ST_BACK,
	NP_ST_HISTS
};

extern const char *const np_station_name[NP_STATIONS];

enum { NP_THERE, NP_BACK, NP_WAYS };

struct np_stations {
	struct np_hist *hist[NP_ST_HISTS]; /* in ns */
	bool has_one_way;                  /* clocks, and the delays of each direction, are valid */
	struct np_oneway clocks;
	uint32_t every; /* one transaction in that many should have stamps */
	/* At the near and the far end: how many should have stamps; how many of each kind came. */
	uint64_t asked[2], came[2][NP_STAMPS];
	size_t kept, joined; /* transactions that both ends should have; those that both have */
};

/* Join a run's stamps with the far bag's, which are removed. NULL: none, or no memory. */
struct np_stations *np_stations_join(const struct np_run *run, struct np_bag *far_bag);
void np_stations_free(struct np_stations *s);

/* Put mean times: stations.near_send_us for np_station_name "near_send". None joined: nothing. */
void np_stations_put(const struct np_stations *s, struct np_bag *into);

#endif
