/*
 * The daemon's limits, and its accounts of what it granted and refused. Pure: the time is an
 * argument, and nothing here touches a socket.
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

/* What is refused, by reason. */
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

extern const struct ns_refusal_row {
	const char *name; /* "max-sessions": for logs, status and metrics */
	int sys;          /* the errno that a refused client is answered with */
} ns_refusals[NS_REFUSALS];

/* What sessions share, of which each has a limit. */
extern const struct ns_resource {
	const char *label;  /* "ports": in the status */
	const char *words;  /* "data ports": in refusals and metrics */
	const char *option; /* that limits it */
	const char *metric; /* its name, netserver_limit_data_ports without the beginning */
	enum ns_refusal why;
	uint32_t first;   /* a little: what two tests at the defaults take */
	uint32_t reserve; /* at least this is reserved, unless the limit is lower */
	bool is_bytes;
	bool none_at_0; /* a limit of 0 means none of it, not any number */
} ns_resources[NP_RESOURCES];

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

/* Deny rules win. If there are allow rules, an address that matches none of them is refused. */
struct ns_access {
	struct np_cidr allow[NS_RULES], deny[NS_RULES];
	size_t allows, denies;
};

/* Append "CIDR[,CIDR...]". NP_EUSAGE names the one that can't be parsed. */
int ns_access_add(struct ns_access *a, bool allow, const char *list, struct np_err *err);

/*
 * Append a file's rules: lines "allow CIDR..." and "deny CIDR...", # begins a comment. NP_ESYS, or
 * NP_EUSAGE naming the line; then *a is as it was.
 */
int ns_access_read(struct ns_access *a, const char *path, struct np_err *err);

/* Checked for each session and each test, so that changed rules apply at once. */
bool ns_access_lets(const struct ns_access *a, const struct np_addr *peer);
#define NS_DENIED_WORDS "this address is not allowed (netserver --allow, --deny)"

/* A rate limit: one in each interval, and a burst of as many as fit in a window, at least one. */
struct ns_bucket {
	uint64_t due_ns; /* when it is full again; zeroed: it is full */
};
bool ns_bucket_take(struct ns_bucket *b, uint64_t each_ns, uint64_t window_ns, uint64_t now_ns);

/* When the next one is allowed: now_ns, or later. */
uint64_t
ns_bucket_when(const struct ns_bucket *b, uint64_t each_ns, uint64_t window_ns, uint64_t now_ns);

enum { NS_GROUPS = 256 };

/* The groups, by a hash, of an address (an IPv6 /64) and its network (IPv4 /24, IPv6 /48). */
struct ns_place {
	unsigned near, net;
};
struct ns_place ns_place_of(const struct np_addr *a, uint32_t seed);

enum {
	NS_SHARE = 4,       /* an address gets this part of the rate in the long run, */
	NS_PACE = 2,        /* and this part until then */
	NS_AT_ONCE_MS = 100 /* a burst has the sessions of this many milliseconds */
};

/*
 * How fast sessions begin: in total, and for each group of addresses, so that no group can use up
 * the whole rate.
 */
struct ns_rates {
	struct ns_bucket near[NS_GROUPS];                   /* NS_SHARE */
	struct ns_bucket all, pace[NS_GROUPS];              /* NS_PACE */
	uint64_t turn_near[NS_GROUPS], turn_net[NS_GROUPS]; /* when one last got a session */
	uint32_t seed;                                      /* of the hash */
};

/*
 * Wrong passphrases and proofs, by address (an IPv6 /64 being one) and by network: a burst of them
 * is checked at once, further ones at intervals. If all rows are in use, the one that would be free
 * first is replaced.
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

/* When a secret from that address may be checked: now_ns, or later. */
uint64_t ns_guard_try(const struct ns_tries *t, const struct np_addr *peer, uint64_t now_ns);

/* It was wrong. */
void ns_guard_wrong(struct ns_tries *t, const struct np_addr *peer, uint64_t now_ns);

/* For status and metrics: counts since the start, except for the `now` ones. */
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

/* The data sockets of a test that the daemon passes on (one_port.h). Zeroed: there are none. */
enum { NS_RECENT = 32 };
struct ns_way {
	int fd;           /* to the session; 0: nothing is passed on */
	uint64_t since;   /* the earliest time at which the client can have opened them */
	uint32_t left;    /* how many more may come */
	uint32_t waiting; /* connections that found no room (ns_caller.of) */
	uint64_t full_ns; /* when one found no room; 0: the last one did */
	bool lacks;       /* then it was the daemon's limit, and not the session's */
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

/* The sources of the datagrams of tests that have ended: some may still be in flight. */
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
	uint64_t end_ns;        /* when it is killed, np_now(); 0: never */
	uint64_t test_ns;       /* when its test was granted; 0: it has none */
	uint64_t waiting_ns;    /* since when it waits for its turn; 0: it does not */
	uint64_t room_until_ns; /* until when its test waits for room; 0: it does not */
	uint64_t room_tried;    /* 1 + ns_daemon.freed when there was no room; 0: there may be */
	uint64_t moved_ns;      /* when it last moved data, or began or ended a test */
	uint64_t holds[NP_RESOURCES]; /* granted to it */
	uint64_t bare[NP_RESOURCES];  /* of that, what it holds without a test */
	struct np_wish wish;          /* of the test that runs or waits */
	uint64_t tests;               /* ended */
	int nice;                     /* of its threads; it only rises */
	bool ending;                  /* SIGTERM was sent */
	bool yields;                  /* to others that wait for room */
	bool captures;                /* its packets, by a buffer of the kernel's */
	struct ns_bucket lines;       /* in the log */
	struct ns_way way; /* of its test's data sockets, where the daemon hands them over */
};

/* May that address ask for one more session? NP_OK, and it is counted; else it is NS_RATE. */
int ns_guard_rate(const struct ns_limits *l, const struct np_addr *peer, struct ns_rates *r,
		  uint64_t now_ns, struct np_err *err);

/*
 * When that address may begin the session (now_ns, or later). Then networks take turns, and the
 * addresses of each: does a come before b?
 */
uint64_t ns_guard_when(const struct ns_limits *l, const struct ns_rates *r, struct ns_place who,
		       uint64_t now_ns);
bool ns_guard_before(const struct ns_rates *r, struct ns_place a, struct ns_place b);
void
ns_guard_begin(const struct ns_limits *l, struct ns_rates *r, struct ns_place who, uint64_t now_ns);

/*
 * The last tenth of each resource is reserved: half of it for addresses that have little
 * (ns_resource.first), the other half for networks that have little. So an address can't lock out
 * its neighbours, nor a network the others.
 */
enum { NS_KEPT = 10 };

/* May one more session begin, which holds that? If not, *why and err say why. */
int ns_guard_session(const struct ns_limits *l, const struct ns_session *sessions,
		     const struct np_addr *peer, const uint64_t holds[NP_RESOURCES],
		     enum ns_refusal *why, struct np_err *err);

/*
 * May session s have what its test takes, beside what the others hold? The grant is in
 * wish->takes: less than was asked for, if wish->spares allows it.
 */
int ns_guard_test(const struct ns_limits *l, const struct ns_session *sessions,
		  const struct ns_session *s, struct np_wish *wish, enum ns_refusal *why,
		  struct np_err *err);

/* Have they one owner: the same address, or IPv6 /64? */
bool ns_same_owner(const struct np_addr *a, const struct np_addr *b);

/* Does any other address have a test now? */
bool ns_guard_shared(const struct ns_session *sessions, const struct np_addr *peer);

/*
 * The nice value of an address's threads: 0 while all tests have no more threads than there are
 * processors; else at least NS_NICE, and so high that the address's threads together have no more
 * weight than one per processor.
 */
enum { NS_NICE = 5, NS_NICE_MOST = 19 };
int ns_guard_nice(const struct ns_session *sessions, const struct np_addr *peer, uint32_t cpus);

/* Would that fit if no other session held anything? */
bool
ns_guard_could(const struct ns_limits *l, const struct ns_session *s, const struct np_wish *wish);

/*
 * May session s hold one more of a resource? total: what all hold together. Unless the reserve is
 * reached, the list of sessions is not searched.
 */
bool ns_guard_more(const struct ns_limits *l, const struct ns_session *sessions,
		   const struct ns_session *s, enum np_resource resource, uint64_t total);

/* Is only the reserve left of it? */
bool ns_guard_scarce(const struct ns_limits *l, const struct ns_session *sessions,
		     enum np_resource resource);

/*
 * What groups of networks and of addresses hold of something. The network that holds most has to
 * make room, and there the address that holds most.
 */
struct ns_weights {
	uint64_t net[NS_GROUPS], near[NS_GROUPS];
};
void ns_weights_add(struct ns_weights *w, struct ns_place at, uint64_t n);

/* Does a have to make room before b? */
bool ns_holds_more(const struct ns_weights *w, struct ns_place a, struct ns_place b);

/*
 * The session to be ended to make room for that address: one that has moved no data for NS_IDLE_S,
 * of the network that holds most of the resource, and there of the address that holds most. That
 * network, or address of the same network, holds more than the given one. NULL: there is none.
 */
enum { NS_IDLE_S = 10 };
struct ns_session *ns_guard_idle(struct ns_session *sessions, const struct np_addr *peer,
				 enum np_resource resource, uint32_t seed, uint64_t now_ns);

/*
 * May one more session, which holds that, also have a capture of NP_CAPTURE_BYTES? There may be
 * NS_CAPTURES, and NS_CAPTURES_NEAR of one address. If not, err says why, for the client.
 */
enum { NS_CAPTURES = 4, NS_CAPTURES_NEAR = 2 };
int ns_guard_capture(const struct ns_limits *l, const struct ns_session *sessions,
		     const struct np_addr *peer, const uint64_t holds[NP_RESOURCES],
		     struct np_err *err);

/*
 * May one more session have a filter of system calls of its own, for packet sockets or rings? The
 * limit is also that of new ones in a second, so that few are freed at once: some kernels hang when
 * many are. If not, err says why, for the client.
 */
int ns_guard_filter(const struct ns_limits *l, const struct ns_session *sessions,
		    const struct np_addr *peer, struct ns_bucket *rate, uint64_t now_ns,
		    struct np_err *err);

/*
 * Could an honest session ask for that? It checks the length of its test; a compromised one must
 * not get a later deadline by another length.
 */
bool ns_guard_plausible(const struct ns_limits *l, const struct np_wish *wish);

#endif
