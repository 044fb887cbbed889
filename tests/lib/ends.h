/*
 * Both ends of a bench in one process, over the loopback interface, without the conversation that
 * brings them together in real life.
 */
#ifndef NP_TESTS_ENDS_H
#define NP_TESTS_ENDS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "bench/run.h"
#include "run/drive.h"

/* One end: a flow, what drives it, and what came of it. */
struct end {
	struct np_plan plan;
	struct np_terms terms; /* as end_open() makes them by terms_for() */
	struct np_stop stop;
	struct np_run run;
	struct np_drive drive;
	struct np_err err;
	int rc;                           /* of np_drive() */
	_Atomic bool over;                /* it has returned */
	unsigned long allocated;          /* by the loop */
	int (*loop)(struct np_worker *w); /* what setup chose */
	sem_t looping;                    /* posted when the loop begins */
	uint64_t length_ns;               /* of end_open()'s drive; 0: no limit */
	int control[2];                   /* of end_hang_up(); -1 */
	struct np_chan chan;              /* this end of it */
	pthread_t thread;
};

/*
 * Can that bench run here? Frames without IP take a privilege: their tests go by lo, where each end
 * has a socket for all of a program's time.
 */
bool can_run(const struct np_bench *bench);
const struct np_eth *lo_link(bool server); /* NULL: not permitted */

/* The next of the table that can; NULL: the first, and at the end. */
const struct np_bench *next_runnable(const struct np_bench *bench);

/* A client's parameters for that bench, as np_cli_settle() leaves them, in short messages. */
void client_params(struct np_plan *p, const struct np_bench *bench, int family, int64_t length);

/* The daemon's parameters that go with a client's; and with those of client_params() over IPv4. */
void server_params(struct np_plan *p, const struct np_plan *client);
void daemon_params(struct np_plan *p, const struct np_bench *bench, int64_t length);

/* Where a client's data goes to, as far as it is known before the daemon has named a port. */
struct np_addr peer_of(const struct np_plan *p);

/* The terms that go with such parameters: of frames the end's socket, and whom it admits. */
struct np_terms terms_for(const struct np_plan *p);

/* Open e->run for e->plan, and make it ready to be driven. Fails the test when it can't be had. */
void end_open(struct end *e);

/* Where a client of that plan finds an end that is bound to that address. */
struct np_addr way_to(const struct np_plan *p, const struct np_addr *local);

/* Let the client's flow know where the other one is. */
void end_aim(struct end *client, const struct np_addr *at);

/* Drive in a thread of its own; end_join() waits for the end. */
void end_start(struct end *e);
void end_join(struct end *e);

/* Open, aim and start a client; and wait for its end. */
void end_begin(struct end *client, const struct np_addr *at);
void end_run(struct end *client, const struct np_addr *at);

/* What ends a flow from outside: its control connection closes; end_stop() joins it then. */
void end_hang_up(struct end *e);
void end_stop(struct end *e);

/* Release all. */
void end_free(struct end *e);

/* The two ends of one run. */
struct ends {
	struct end client, server;
	unsigned nudges; /* how often the client said again that it is over */
};

/* Parameters of both in e->client.plan, to be changed, and then both opened. */
void ends_plan(struct ends *e, const struct np_bench *bench, int family, int64_t length);
void ends_make(struct ends *e);

/* The same in one; change, unless NULL, may adapt the client's parameters before. */
void ends_open(struct ends *e, const struct np_bench *bench, int family, int64_t length,
	       void (*change)(struct np_plan *p));

/* Such changes. */
void change_nothing(struct np_plan *p);
void make_burst(struct np_plan *p); /* of 3 */
void pace(struct np_call_plan *c, uint32_t burst, uint32_t interval_us);
void connect_datagrams(struct np_plan *p);
void time_calls(struct np_plan *p);

/* Run both to the end, as long as length_ns says (0: no limit) and check that neither failed. */
void ends_run(struct ends *e, uint64_t length_ns);

/* Each worker's connections are its own, and what they count is what it counts. */
void assert_sums(const struct np_run *run);

/* What either end sent the other one received; both have made that many transactions. */
void assert_carried(const struct ends *e);
void assert_transactions(const struct ends *e, uint64_t count);

/* The loops of both ends have allocated nothing. */
void assert_no_allocation(const struct ends *e);

/* The same, whatever they say of it. */
void ends_drive(struct ends *e, uint64_t length_ns);

void ends_free(struct ends *e);

#endif
