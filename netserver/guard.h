/*
 * Who may, how much and how long: the daemon's limits, and its books about what it granted and
 * refused. Pure: time comes in as an argument, nothing here touches a socket.
 */
#ifndef NETSERVER_GUARD_H
#define NETSERVER_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/terms.h"
#include "net/addr.h"
#include "net/cidr.h"
#include "run/server.h"

/* What is refused, by reason; ns_refusal_name() has the words. */
enum ns_refusal {
	NS_DENIED,   /* the address is on the deny list, or not on the allow list */
	NS_SESSIONS, /* --max-sessions */
	NS_ADDRESS,  /* --max-per-address */
	NS_RATE,     /* --max-rate */
	NS_SILENT,   /* no whole first message in time, or pushed out by --max-silent */
	NS_SECRET,   /* no passphrase or proof of the key, or a wrong one */
	NS_TRIES,    /* too many wrong ones came from the address before it */
	NS_GARBAGE,  /* what came is no message of netperf's */
	NS_MEMORY,   /* --max-memory, --max-total-memory */
	NS_PORTS,    /* --data-ports */
	NS_THREADS,  /* --max-threads */
	NS_SPIN,     /* --spin */
	NS_SOCKETS,  /* --max-total-flows */
	NS_FILTERED, /* --max-filters */
	NS_PASSED,   /* --one-port: too many descriptors in flight */
	NS_MESSAGE,  /* --max-message */
	NS_LENGTH,   /* --max-length */
	NS_FLOWS,    /* --max-flows */
	NS_LINE,     /* --exclusive: the turn did not come in time */
	NS_PROCESS,  /* no process, descriptor or memory for a session */
	NS_OTHER,    /* a test that can't be run as asked */
	NS_REFUSALS
};

/* "max-sessions" and so on: a word for logs, status and metrics. */
const char *ns_refusal_name(enum ns_refusal why);

/* The errno that a refused client is answered with. */
int ns_refusal_errno(enum ns_refusal why);

/* What sessions share: a row for each. */
struct ns_resource {
	const char *label;  /* "ports": in the status */
	const char *words;  /* "data ports": in refusals and metrics */
	const char *option; /* that limits it */
	const char *metric; /* its name, netserver_limit_data_ports without the beginning */
	enum ns_refusal why;
	uint64_t first;   /* next to nothing: what two tests at the defaults take */
	uint64_t reserve; /* the least that is reserved, if that is not all */
	bool is_bytes;
	bool none_at_0; /* a limit of 0 means none of it, not any number */
};
const struct ns_resource *ns_resource(enum np_resource g);

/* The resource that was refused, NP_RESOURCES if it was none. */
enum np_resource ns_resource_of(enum ns_refusal why);

/* 0 means no limit, but for silent, which is at least 1, and resources with none_at_0. */
struct ns_limits {
	uint64_t all[NP_RESOURCES]; /* of all sessions together, at once */
	int32_t per_address;        /* sessions at once from one address */
	int32_t rate;   /* new sessions a second; one address: twice as many in one go */
	int32_t silent; /* connections without a session, at once */
	struct np_limits each;
};

/* Sane for a laboratory of 500 clients; all sessions together stay under 512 MB. */
void ns_limits_init(struct ns_limits *l);

enum { NS_RULES = 256 };

/* Deny rules win; once there is an allow rule, who matches none is refused. */
struct ns_access {
	struct np_cidr allow[NS_RULES], deny[NS_RULES];
	size_t allows, denies;
};

/* Append "CIDR[,CIDR...]". NP_EUSAGE names the one that is none. */
int ns_access_add(struct ns_access *a, bool allow, const char *list, struct np_err *err);

/*
 * Append a file's rules: lines "allow CIDR..." and "deny CIDR...", # begins a comment. NP_ESYS, or
 * NP_EUSAGE naming the line; then *a is as it was.
 */
int ns_access_read(struct ns_access *a, const char *path, struct np_err *err);

/* Asked for each session and each test: rules that change hold from then on. */
bool ns_access_lets(const struct ns_access *a, const struct np_addr *peer);
#define NS_DENIED_WORDS "this address is not allowed (netserver --allow, --deny)"

/* One in each interval, and in a burst as many as a window has room for, which is one at least. */
struct ns_bucket {
	uint64_t due_ns; /* when it would be full again; zeroed: it is */
};
bool ns_bucket_take(struct ns_bucket *b, uint64_t each_ns, uint64_t window_ns, uint64_t now_ns);

/* When one is to be had: now_ns, or later. */
uint64_t
ns_bucket_when(const struct ns_bucket *b, uint64_t each_ns, uint64_t window_ns, uint64_t now_ns);

enum { NS_GROUPS = 256 };

/* The groups of an address (an IPv6 /64 is one) and of its network (IPv4 /24, IPv6 /48), by a hash.
 */
struct ns_place {
	unsigned near, net;
};
struct ns_place ns_place_of(const struct np_addr *a, uint32_t seed);

enum {
	NS_SHARE = 4,       /* this part of the rate is one address's in the long run */
	NS_PACE = 2,        /* and this part as long as it has not had too many */
	NS_AT_ONCE_MS = 100 /* sessions of this many milliseconds begin in a burst */
};

/*
 * How fast sessions begin: in all, and for each group of addresses. In the long run a group gets an
 * NS_SHAREth of the rate, or it could use up all of it and no other client would be served.
 */
struct ns_rates {
	struct ns_bucket near[NS_GROUPS];                   /* in the long run */
	struct ns_bucket all, pace[NS_GROUPS];              /* one after another */
	uint64_t turn_near[NS_GROUPS], turn_net[NS_GROUPS]; /* when one last got a session */
	uint32_t seed;                                      /* of the hash */
};

/*
 * Wrong passphrases and proofs, by address (an IPv6 /64 being one) and by network: some may be
 * looked at at once, and then one in each interval. Where all rows are in use, the one goes that
 * would be free first.
 */
enum {
	NS_TRY_ROWS = 1024,
	NS_TRY_MS = 2000, /* of an address */
	NS_TRY_BURST = 3,
	NS_TRY_NET_MS = 250, /* of a network: eight addresses' */
	NS_TRY_NET_BURST = 32
};
enum { NS_TRY_NEAR, NS_TRY_NET, NS_TRY_KINDS };
struct ns_try {
	uint8_t bytes[8]; /* that the addresses begin with */
	sa_family_t family;
	struct ns_bucket wrong;
};
struct ns_tries {
	struct ns_try of[NS_TRY_KINDS][NS_TRY_ROWS];
};

/* When a secret from that address may be looked at: now_ns, or later. */
uint64_t ns_guard_try(const struct ns_tries *t, const struct np_addr *peer, uint64_t now_ns);

/* It was a wrong one. */
void ns_guard_wrong(struct ns_tries *t, const struct np_addr *peer, uint64_t now_ns);

/* What status and metrics tell. Counts since the start, but for the `now` ones. */
struct ns_stats {
	uint64_t started_ns;   /* np_now() at the start */
	uint64_t started_at_s; /* and the time then, in seconds since 1970 */
	uint64_t connections, sessions, tests, tests_failed;
	uint64_t killed; /* sessions that overran their end, or died of a signal */
	uint64_t received_bytes, sent_bytes, transactions;
	uint64_t refused[NS_REFUSALS];
	uint64_t metrics_lost; /* files that could not be written (--metrics-file) */
	uint64_t waiting_now, silent_now;
	uint64_t held[NP_RESOURCES]; /* by all sessions now */
};

/* Data sockets of a test that the daemon hands over (one_port.h). Zeroed: there are none. */
enum { NS_RECENT = 32 };
struct ns_way {
	int fd;           /* to the session; 0: nothing is handed over */
	uint64_t since;   /* when the client may have begun to make them */
	uint32_t left;    /* how many may come still */
	uint32_t waiting; /* connections that there was no room for (ns_caller.of) */
	uint64_t full_ns; /* when there last was none; 0: there was */
	bool lacks;       /* then, in all: not because of what the session itself has in flight */
	struct np_token token;
	uint16_t recent[NS_RECENT]; /* ports that its datagrams came from */
	uint32_t recents;
	/* A socket for datagrams from another port than the client named, taken at other_ns if
	 * none has come from the named one. 0: there is none. */
	uint64_t other_ns;
	int other_fd;
	uint16_t other_port;
	struct np_handed other;
};

/* Where the datagrams of a test came from that has ended: some may still be on their way. */
enum { NS_LATE = 64 };
struct ns_late {
	struct {
		struct np_addr from;
		uint64_t until_ns;
	} at[NS_LATE];
	uint32_t next;
};

/* One session, as the daemon sees it. */
struct ns_session {
	int kind; /* NS_SESSION of daemon.h */
	struct ns_session *next;
	int pid;
	int fd;              /* the daemon's end of the pair; -1: closed already */
	struct np_addr peer; /* unmapped */
	uint64_t began_ns;
	uint64_t end_ns;     /* when it is killed, np_now(); 0: never */
	uint64_t test_ns;    /* when its test got its leave; 0: none has */
	uint64_t waiting_ns; /* since when it waits for its turn; 0: it does not */
	uint64_t short_ns;   /* until when its test waits for room; 0: it does not */
	uint64_t short_of;   /* what the daemon's count of things given back was then, and 1 */
	uint64_t moved_ns;   /* when it last moved data, or began or ended a test */
	uint64_t holds[NP_RESOURCES]; /* granted to it */
	uint64_t bare[NP_RESOURCES];  /* of that, what it holds without a test */
	struct np_wish wish;          /* of the test that runs or waits */
	uint64_t tests;               /* ended */
	int nice;                     /* of its threads; it only rises */
	bool told;                    /* SIGTERM was sent */
	bool yields;                  /* to others that wait for room */
	bool captures;                /* its packets, by a buffer of the kernel's */
	bool gathers;                 /* evidence */
	struct ns_bucket lines;       /* in the log */
	struct ns_way way; /* of its test's data sockets, where the daemon hands them over */
};

/* May that address ask for one more session? NP_OK, and it counts; else the refusal is NS_RATE. */
int ns_guard_rate(const struct ns_limits *l, const struct np_addr *peer, struct ns_rates *r,
		  uint64_t now_ns, struct np_err *err);

/*
 * Who may have one waits until his address may begin one more (now_ns, or later); networks take
 * turns, and addresses within them.
 */
uint64_t ns_guard_when(const struct ns_limits *l, const struct ns_rates *r, struct ns_place who,
		       uint64_t now_ns);
bool ns_guard_before(const struct ns_rates *r, struct ns_place a, struct ns_place b);
void
ns_guard_begin(const struct ns_limits *l, struct ns_rates *r, struct ns_place who, uint64_t now_ns);

/*
 * The last tenth of each resource is reserved: half of it for addresses that have next to nothing
 * (ns_resource.first), the other half for networks that have. Who has more gets none of it, so that
 * neither an address keeps out its neighbours, nor a network other ones.
 */
enum { NS_KEPT = 10 };

/* May one more session begin, which holds that? Else err is filled and *why set. */
int ns_guard_session(const struct ns_limits *l, const struct ns_session *sessions,
		     const struct np_addr *peer, const uint64_t holds[NP_RESOURCES],
		     enum ns_refusal *why, struct np_err *err);

/*
 * May session s have what its test takes, beside what the others hold? The grant is in
 * wish->takes then: less than was wanted where wish->spares allows it.
 */
int ns_guard_test(const struct ns_limits *l, const struct ns_session *sessions,
		  const struct ns_session *s, struct np_wish *wish, enum ns_refusal *why,
		  struct np_err *err);

/* Are they one address, an IPv6 /64 being one? */
bool ns_one_owner(const struct np_addr *a, const struct np_addr *b);

/* Does another address than that have a test now? */
bool ns_guard_shared(const struct ns_session *sessions, const struct np_addr *peer);

/*
 * The nice value of an address's threads beside those of others: 0 while all tests have no more
 * threads than there are processors; else NS_NICE, and so much more that the address's have no more
 * weight together than one a processor.
 */
enum { NS_NICE = 5, NS_NICE_MOST = 19 };
int ns_guard_nice(const struct ns_session *sessions, const struct np_addr *peer, uint32_t cpus);

/* Could it have that if no other session held anything? */
bool
ns_guard_could(const struct ns_limits *l, const struct ns_session *s, const struct np_wish *wish);

/*
 * May session s hold one more of a resource than it does? total: what all hold together. As long as
 * that is less than what is not reserved, the sessions are not looked at.
 */
bool ns_guard_more(const struct ns_limits *l, const struct ns_session *sessions,
		   const struct ns_session *s, enum np_resource resource, uint64_t total);

/* Is what is left of it only for some? */
bool ns_guard_scarce(const struct ns_limits *l, const struct ns_session *sessions,
		     enum np_resource resource);

/*
 * What groups of networks and of addresses hold of something. What has to make room is that of the
 * network that holds most, and there of the address that does.
 */
struct ns_weights {
	uint64_t net[NS_GROUPS], near[NS_GROUPS];
};
void ns_weights_add(struct ns_weights *w, struct ns_place at, uint64_t n);

/* Does it concern place a sooner than b? */
bool ns_outweighs(const struct ns_weights *w, struct ns_place a, struct ns_place b);

/*
 * The session to be ended so that there is more of a resource for that address: one that
 * has moved nothing for NS_STILL_S, of the network that holds most, and there of the address that
 * does. It holds more than his: the network, or the address where they have one network. NULL:
 * there is none.
 */
enum { NS_STILL_S = 10 };
struct ns_session *ns_guard_still(struct ns_session *sessions, const struct np_addr *peer,
				  enum np_resource resource, uint32_t seed, uint64_t now_ns);

/*
 * May one more session, which holds that, also have a capture of NP_CAPTURE_BYTES? There are
 * some, and no address has all of them. Else err says why not, for the client to read.
 */
enum { NS_CAPTURES = 4, NS_CAPTURES_NEAR = 2 };
int ns_guard_capture(const struct ns_limits *l, const struct ns_session *sessions,
		     const struct np_addr *peer, const uint64_t holds[NP_RESOURCES],
		     struct np_err *err);

/*
 * May one more session have a filter of system calls of its own, for packet sockets or rings? As
 * many may begin a second as there may be, so that few are freed at once, which some kernels do not
 * survive. Else err says why not, for the client to read.
 */
int ns_guard_filter(const struct ns_limits *l, const struct ns_session *sessions,
		    const struct np_addr *peer, struct ns_bucket *rate, uint64_t now_ns,
		    struct np_err *err);

/*
 * Could an honest session ask for that? It has turned longer tests down by itself; a deadline or a
 * turn must not be had by a number.
 */
bool ns_guard_believes(const struct ns_limits *l, const struct np_wish *wish);

#endif
