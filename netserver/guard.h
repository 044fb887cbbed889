/* The daemon's limits, and what it granted and refused. No I/O; the time is an argument. */
#ifndef NETSERVER_GUARD_H
#define NETSERVER_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/terms.h"
#include "net/addr.h"
#include "net/sources.h"
#include "run/server.h"

/* What is refused, by reason. */
enum ns_refusal {
	NS_DENIED,    /* the address is on the deny list, or not on the allow list */
	NS_SESSIONS,  /* --max-sessions */
	NS_ADDRESS,   /* --max-per-address */
	NS_RATE,      /* --max-rate */
	NS_SILENT,    /* no whole first message in time, or pushed out by --max-silent */
	NS_SECRET,    /* no passphrase or proof of the key, or a wrong one */
	NS_TRIES,     /* too many wrong ones came from the address before */
	NS_GARBAGE,   /* the client, or its proxy, sent something else than it should */
	NS_MEMORY,    /* --max-memory, --max-total-memory */
	NS_PORTS,     /* --data-ports */
	NS_THREADS,   /* --max-threads */
	NS_SPIN,      /* --spin */
	NS_SOCKETS,   /* --max-total-flows */
	NS_FILTERED,  /* --max-filters */
	NS_PASSED,    /* --one-port: too many descriptors in flight */
	NS_DATAGRAMS, /* --one-port: too many sockets for datagrams */
	NS_CAPTURED,  /* --allow-raw: too many captures, or too little memory for one more */
	NS_MESSAGE,   /* --max-message */
	NS_LENGTH,    /* --max-length */
	NS_FLOWS,     /* --max-flows */
	NS_LINE,      /* --exclusive: the turn did not come in time */
	NS_PROCESS,   /* no process, descriptor or memory for a session */
	NS_OTHER,     /* the test can't be run as requested */
	NS_REFUSALS
};

extern const struct ns_refusal_row {
	const char *name; /* "max-sessions": for logs, status and metrics */
	int sys;          /* the errno that a refused client is answered with */
} ns_refusals[NS_REFUSALS];

enum { NS_CAPTURES = 4 }; /* sessions with one, with --allow-raw */

/* The resources that sessions share. Each has a limit. */
extern const struct ns_resource {
	const char *label;  /* "ports": in the status */
	const char *words;  /* "data ports": in refusals and metrics */
	const char *option; /* sets the limit */
	const char *metric; /* "data_ports": of the metric netserver_limit_data_ports */
	enum ns_refusal why;
	uint32_t first;   /* what two default tests take; the reserve is for those that hold less */
	uint32_t reserve; /* at least this is reserved, unless the limit is lower */
	bool is_bytes;
	bool none_at_0; /* a limit of 0 allows none of it; of others, any number */
} ns_resources[NP_RESOURCES];

/* The resource of the limit that led to the refusal; NP_RESOURCES: none. */
enum np_resource ns_resource_of(enum ns_refusal why);

/* 0 means no limit, except for silent, which is at least 1, and resources with none_at_0. */
struct ns_limits {
	uint64_t all[NP_RESOURCES]; /* of all sessions together, at once */
	int32_t per_address;        /* sessions at once from one address */
	int32_t rate;   /* new sessions a second; one address: twice as many in a burst */
	int32_t silent; /* connections without a session, at once */
	struct np_limits each;
};

/* The defaults suit a laboratory of 500 clients; all sessions together stay under 512 MB. */
void ns_limits_init(struct ns_limits *l);

enum { NS_RULES = 256 };

/* Deny rules win. If there are allow rules, an address that matches none of them is refused. */
struct ns_access {
	struct np_cidr allow[NS_RULES], deny[NS_RULES];
	size_t allows, denies;
};

/* Append "CIDR[,CIDR...]". NP_EUSAGE names the one that can't be parsed; those before it remain. */
int ns_access_add(struct ns_access *a, bool allow, const char *list, struct np_err *err);

/*
 * Append a file's rules: lines "allow CIDR..." and "deny CIDR...", # begins a comment. NP_ESYS, or
 * NP_EUSAGE naming the line; then *a is as it was.
 */
int ns_access_read(struct ns_access *a, const char *path, struct np_err *err);

/* Without an allow rule all others are admitted. Checked for each test: new rules act at once. */
bool ns_access_admits(const struct ns_access *a, const struct np_addr *peer);
#define NS_DENIED_WORDS "this address is not allowed (netserver --allow, --deny)"

/* A token bucket: one per each_ns; bursts of window_ns / each_ns, or 1. Keep both values. */
struct ns_bucket {
	uint64_t due_ns; /* when a whole burst is allowed again; zeroed: now */
};
/* Take one, if it is allowed now. */
bool ns_bucket_take(struct ns_bucket *b, uint64_t each_ns, uint64_t window_ns, uint64_t now_ns);

/* When the next one is allowed: now_ns, or later. */
uint64_t
ns_bucket_when(const struct ns_bucket *b, uint64_t each_ns, uint64_t window_ns, uint64_t now_ns);

enum { NS_GROUPS = 256 };

/* Hashes, below NS_GROUPS, of an address (IPv6: its /64) and its network (IPv4 /24, IPv6 /48). */
struct ns_place {
	unsigned host, net;
};
struct ns_place ns_place_of(const struct np_addr *a, uint32_t seed);

/* A rate that clients share: an address gets at most half, a network at most three quarters. */
struct ns_share {
	struct ns_bucket all, net[NS_GROUPS], host[NS_GROUPS];
};
bool ns_share_take(struct ns_share *s, struct ns_place who, uint64_t each_ns, uint64_t window_ns,
		   uint64_t now_ns);

enum {
	NS_SHARE = 4,       /* in the long run an address gets a quarter of the rate, */
	NS_PACE = 2,        /* for some seconds half of it */
	NS_AT_ONCE_MS = 100 /* a burst has the sessions of this many milliseconds */
};

/* When an address and a network last had a turn. Networks take turns, and the addresses of each. */
struct ns_turns {
	uint64_t host[NS_GROUPS], net[NS_GROUPS];
};
void ns_turns_take(struct ns_turns *t, struct ns_place who, uint64_t now_ns);

/* Is a's turn before that of b? */
bool ns_turns_before(const struct ns_turns *t, struct ns_place a, struct ns_place b);

/* How fast sessions begin: all together, and those of each address, which can't use up the rate. */
struct ns_rates {
	struct ns_bucket host[NS_GROUPS];      /* sessions an address asked for (NS_SHARE) */
	struct ns_bucket all, pace[NS_GROUPS]; /* begun: in total; of an address (NS_PACE) */
	struct ns_turns turns;                 /* to begin a session */
	struct ns_share filters;               /* sessions with a filter of their own */
	uint32_t seed;                         /* of the hash */
};

/*
 * Wrong passphrases and proofs, by address (of IPv6: its /64) and by network: the first few are
 * checked at once, further ones at intervals. A full table drops the row that expires first.
 */
enum {
	NS_TRY_ROWS = 1024,
	NS_TRY_MS = 2000, /* of an address */
	NS_TRY_BURST = 3,
	NS_TRY_NET_MS = 250, /* of a network: as for eight addresses */
	NS_TRY_NET_BURST = 32
};
enum { NS_TRY_HOST, NS_TRY_NET, NS_TRY_KINDS };
struct ns_try {
	uint8_t bytes[8]; /* the prefix */
	sa_family_t family;
	struct ns_bucket wrong;
};
struct ns_tries {
	struct ns_try of[NS_TRY_KINDS][NS_TRY_ROWS];
};

/* The earliest time, from now_ns on, at which a secret from that address may be checked. */
uint64_t ns_guard_try(const struct ns_tries *t, const struct np_addr *peer, uint64_t now_ns);

/* Count a wrong secret from that address, and its network. */
void ns_guard_wrong(struct ns_tries *t, const struct np_addr *peer, uint64_t now_ns);

/* For status and metrics: counts since the start, except for members ending in _now, and held. */
struct ns_stats {
	uint64_t started_ns;   /* np_now() at the start */
	uint64_t started_at_s; /* and the time then, in seconds since 1970 */
	uint64_t connections, sessions, tests, tests_failed;
	uint64_t killed; /* sessions that overran their end, or died of a signal */
	uint64_t received_bytes, sent_bytes, transactions;
	uint64_t refused[NS_REFUSALS];
	uint64_t metrics_lost; /* files that could not be written (--metrics-file) */
	uint64_t waiting_now, silent_now;
	uint64_t held[NP_RESOURCES]; /* now, by all sessions */
};

/* The data sockets of a test that the daemon passes on (one_port.h). Zeroed: there are none. */
enum { NS_RECENT = 32 };
struct ns_handover {
	int fd;           /* to the session; 0: nothing is passed on */
	uint64_t since;   /* when the test was granted, or a socket last passed on */
	uint32_t left;    /* how many more are expected; UINT32_MAX: any number */
	uint32_t waiting; /* connections that found no room (ns_caller.session) */
	uint64_t full_ns; /* when one found no room; 0: the last one found some */
	bool daemon_full; /* then: the daemon's limit was reached, not the session's */
	struct np_token token;
	uint16_t recent[NS_RECENT]; /* ports that its datagrams came from */
	uint32_t recents;           /* noted so far: the last NS_RECENT are kept */
	/* A socket for datagrams from another port than the client named: passed on at other_ns, if
	 * none has come from the named one until then. 0: there is none. */
	uint64_t other_ns;
	int other_fd;
	uint16_t other_port;
	struct np_handed other;
};

/* The sources of the datagrams of tests that have ended: some may still be in flight. */
enum { NS_LATE = 64 };
struct ns_late {
	struct {
		struct np_addr from;
		uint64_t until_ns;
	} at[NS_LATE];
	uint32_t next; /* modulo NS_LATE: the one to overwrite next */
};

/* One session, as the daemon sees it. */
struct ns_session {
	int kind; /* NS_SESSION of daemon.h */
	struct ns_session *next;
	int pid;
	int fd;                /* the daemon's end of the pair; -1: closed already */
	struct np_addr peer;   /* unmapped */
	struct ns_place place; /* of peer */
	uint64_t began_ns;
	uint64_t end_ns;        /* when to end it, np_now(); 0: never */
	uint64_t test_ns;       /* when its test was granted; 0: it has none */
	uint64_t waiting_ns;    /* since when it waits for its turn (--exclusive); 0: it does not */
	uint64_t room_until_ns; /* until when its test waits for resources; 0: it does not */
	uint64_t lacks_ns;      /* since when a resource is lacking: since the first attempt */
	uint64_t room_tried;    /* 1 + ns_daemon.freed at the last attempt */
	uint64_t room_again_ns; /* when to try again even if nothing is freed */
	uint64_t moved_ns;      /* when it last moved data, or began or ended a test */
	uint64_t holds[NP_RESOURCES];      /* granted to it */
	uint64_t idle_holds[NP_RESOURCES]; /* of that, what it holds between tests */
	struct np_wish wish;               /* of the test that runs or waits */
	uint64_t tests;                    /* ended */
	int nice;                          /* of its threads; it only rises */
	bool ending;                       /* SIGTERM was sent */
	bool yields;                       /* ending: it makes room for others */
	struct ns_bucket lines;            /* of its log lines */
	struct ns_handover handover;       /* of its test's data sockets */
};

/* May that address ask for one more session? NP_OK: it is counted. NP_EPEER: refuse (NS_RATE). */
int ns_guard_rate(const struct ns_limits *l, const struct np_addr *peer, struct ns_rates *r,
		  uint64_t now_ns, struct np_err *err);

/* The earliest time, from now_ns on, at which a session from there may begin. */
uint64_t ns_guard_when(const struct ns_limits *l, const struct ns_rates *r, struct ns_place who,
		       uint64_t now_ns);

/* Count a session that begins, as ns_guard_when() allows. */
void
ns_guard_begin(const struct ns_limits *l, struct ns_rates *r, struct ns_place who, uint64_t now_ns);

/*
 * The last tenth of each resource is reserved, half for addresses, half for networks that hold
 * little (ns_resource.first): an address can't lock out its neighbours, nor a network the others.
 */
enum { NS_KEPT = 10 };

/* May one more session begin, which needs these resources? If not, *why and err say why. */
int ns_guard_session(const struct ns_limits *l, const struct ns_session *sessions,
		     const struct np_addr *peer, const uint64_t holds[NP_RESOURCES],
		     enum ns_refusal *why, struct np_err *err);

/*
 * May s have what its test needs, beside these sessions? The grant replaces wish->takes: less by up
 * to wish->spares.
 */
int ns_guard_test(const struct ns_limits *l, const struct ns_session *sessions,
		  const struct ns_session *s, struct np_wish *wish, enum ns_refusal *why,
		  struct np_err *err);

/* Do they count as one: the same address, or IPv6 /64? True if the family has no addresses. */
bool ns_same_owner(const struct np_addr *a, const struct np_addr *b);

/* Does any other address have a test now? */
bool ns_guard_shared(const struct ns_session *sessions, const struct np_addr *peer);

/*
 * The nice value of an address's threads: 0 while all tests have no more threads than processors;
 * else NS_NICE or more, so that they weigh no more than one thread of NS_NICE per processor.
 */
enum { NS_NICE = 5, NS_NICE_MOST = 19 };
int ns_guard_nice(const struct ns_session *sessions, const struct np_addr *peer, uint32_t cpus);

/* May s hold one more? total: what all hold; only if it reaches the reserve, look who holds it. */
bool ns_guard_more(const struct ns_limits *l, const struct ns_session *sessions,
		   const struct ns_session *s, enum np_resource resource, uint64_t total);

/* Is a part of the resource's reserve in use, if all sessions together hold that? */
bool ns_guard_scarce(const struct ns_limits *l, enum np_resource resource, uint64_t held);

/* What networks and addresses hold, by hash: the largest network's largest address makes room. */
struct ns_weights {
	uint64_t net[NS_GROUPS], host[NS_GROUPS];
};
void ns_weights_add(struct ns_weights *w, struct ns_place at, uint64_t n);

/* Does a have to make room before b? */
bool ns_holds_more(const struct ns_weights *w, struct ns_place a, struct ns_place b);

/* Has the peer's address a session? */
bool ns_guard_has_session(const struct ns_session *sessions, const struct np_addr *peer);

/*
 * The session to end for peer: idle for NS_IDLE_S, of the network and in it the address that hold
 * most, and more than peer's network (or, if it is that one, than peer). NULL: none.
 */
enum { NS_IDLE_S = 10 };
struct ns_session *ns_guard_idle(struct ns_session *sessions, const struct np_addr *peer,
				 enum np_resource resource, uint32_t seed, uint64_t now_ns);

/*
 * May one more session have its own filter, for packet sockets or rings? Limited per second, too:
 * some kernels hang when many are freed at once. err says why not, for the client.
 */
int ns_guard_filter(const struct ns_limits *l, const struct ns_session *sessions,
		    const struct np_addr *peer, struct ns_rates *r, uint64_t now_ns,
		    struct np_err *err);

/*
 * Could a correct session ask for that? It has checked the length of its test already; a
 * compromised one must not get a later deadline by claiming another length, nor hold what the
 * daemon counts itself: no test takes sessions, filters, captures or descriptors in flight.
 */
bool ns_guard_plausible(const struct ns_limits *l, const struct np_wish *wish);

#endif
