/* The daemon's half of the conversation: serves the requests of one control connection. */
#ifndef NP_RUN_SERVER_H
#define NP_RUN_SERVER_H

#include <stdbool.h>

#include "base/err.h"
#include "base/log.h"
#include "run/drive.h"
#include "run/evidence.h"
#include "wire/chan.h"
#include "wire/plan.h"

struct np_engine;

/* Memory of a session in addition to a test's buffers: its process, counters, a histogram. */
enum { NP_SESSION_BYTES = 512 << 10 };

/* What a session's tests may have. 0: no limit beyond those of the code. */
struct np_limits {
	uint64_t seconds;            /* of a test, also of one by count */
	uint64_t bytes;              /* of a test's buffers and NP_SESSION_BYTES */
	uint64_t message;            /* bytes of one send or receive call */
	uint32_t port_min, port_max; /* of data sockets, both included; port_max 0: any */
	uint32_t flows;              /* data connections of a test */
	uint32_t spin;               /* threads of a test that never sleep; 0: none */
	uint32_t engines;            /* allowed ones, np_limits_bit() of each; 0: all */
	uint64_t lacks;              /* transports that are not served, bits as np_lacks_bit() */
	uint32_t idle_s;             /* between two requests */
	uint32_t establish_s;        /* time-out for the data connection; 0: two minutes */
	bool one_port, one_port_udp; /* data use the port of the control connection */
	bool devices;                /* clients may have data sockets bound to an interface */
	bool want_echo;              /* send datagrams only to clients that have echoed a token */
};

/* The bit of an engine. */
uint32_t np_limits_bit(const struct np_engine *e);

/* May an engine drive tests? */
bool np_limits_serve(const struct np_limits *limits, const struct np_engine *e);

/* Resources that all sessions share. The daemon counts them (netserver/guard.h). */
enum np_resource {
	NP_RES_SESSIONS,
	NP_RES_MEMORY,    /* bytes */
	NP_RES_PORTS,     /* IP ports of data sockets */
	NP_RES_THREADS,   /* workers */
	NP_RES_SPIN,      /* workers that never sleep */
	NP_RES_FLOWS,     /* data sockets */
	NP_RES_FILTERS,   /* of system calls, one for a single session */
	NP_RES_PASSED,    /* descriptors passed to sessions, which have not received them yet */
	NP_RES_DATAGRAMS, /* sockets for datagrams at the port of the control connections */
	NP_RES_CAPTURES,  /* of packets, one for a session */
	NP_RESOURCES
};

/* How a test gets its data sockets, if they use the port of the control connection. */
struct np_handover {
	bool wanted;    /* the daemon passes them on; else the session makes them itself */
	bool tokens;    /* the client sends a token; else it is recognised by its address */
	bool datagrams; /* of UDP; else connections of TCP */
	bool many;      /* one connection after another, as many as there will be */
	bool blocks;    /* the engine wants blocking sockets */
	bool silent;    /* the client sends nothing before it receives data */
	uint16_t port;  /* of the client's data socket, if it named one; else 0 */
	uint32_t count; /* of sockets */
};

/* What a test needs, to be granted. */
struct np_wish {
	char test[32];    /* like "TCP_RR": transport and pattern, for people */
	uint32_t seconds; /* 0: it ends by count, within np_limits.seconds */
	/* What it needs besides its session, or is granted; how much of that it can do without. */
	uint64_t takes[NP_RESOURCES], spares[NP_RESOURCES];
	struct np_handover handover;
	/* If granted: where data sockets come from (np_terms.data_fd), and the client's token. */
	int data_fd;
	struct np_token token;
};

/* What a test did. */
struct np_served {
	int refused; /* an errno: the session itself refused it, and the rest is unused; else 0 */
	bool failed;
	uint64_t received, sent, transactions; /* bytes, bytes, transactions */
};

/*
 * Before a test takes memory or sockets, ask() returns NP_OK with the grant in wish->takes, or
 * fills err with the errno to answer and the limit's name. It may wait for a turn, until control_fd
 * closes or a signal comes. tell() gets NULL every NP_MOVED_S while data move, and at the end, or
 * if the session refused the test without asking, what it did. NULL functions grant all.
 */
enum { NP_MOVED_S = 3 };
struct np_admission {
	int (*ask)(void *ctx, struct np_wish *wish, int control_fd, struct np_err *err);
	void (*tell)(void *ctx, const struct np_served *served);
	void *ctx;
};

struct np_server {
	struct np_log *log;
	const char *peer; /* of the control connection, for the log */
	bool is_here;     /* the client is on this machine, so it may have UNIX domain tests */
	bool quiet;       /* the client may not raise the log level (-N) */
	const struct np_addr *client; /* its address; NULL: it connected in the UNIX domain */
	struct np_limits limits;
	struct np_admission admission;
	struct np_terms terms; /* of all tests: permit; eth and fill_dir, if there are any */
	struct np_signals signals;
	unsigned caps;               /* NP_CAP_* that clients may have; 0: greetings are unknown */
	unsigned granted;            /* those that the client has, by its greeting */
	const char *capture_why_not; /* for a client that wants a capture: why it has none */
	const char *link_why_not;    /* why there are no tests of the link layer */
	struct np_evidence_wants collect; /* caps, every_ms: by the greeting; rest: by the caller */
	struct np_bag *evidence;          /* of the last test; NULL: none */
	uint64_t moved;                   /* bytes and transactions of its test, by the last look */
	unsigned questions;               /* requests since the last test, up to a limit */
	unsigned unknown;                 /* unknown requests so far, a line in the log each */
	bool unbound;                     /* a processor that is not available was logged */
};

/*
 * Serve until the client closes (NP_OK between two requests), a deadline passes or a signal comes.
 * A whole message in the channel (have == size) is served first. Closes the channel's descriptor.
 */
int np_server_serve(struct np_server *s, struct np_chan *c, struct np_err *err);

#endif
