#include "netserver/caller.h"

#include "base/clock.h"
#include "base/units.h"
#include "net/tcpinfo.h"
#include "run/drive.h"
#include "run/ends.h"

void
ns_event_begin(struct np_event *e, const char *name, const struct np_addr *peer)
{
	np_event_begin(e, name);
	if (np_addr_size(peer) > 0) { /* not over a UNIX socket */
		np_event_text(e, "peer", NP_HOST_STR(peer));
		np_event_number(e, "port", np_addr_port(peer));
	}
}

uint64_t
ns_hello_until(int fd, uint64_t now_ns)
{
	uint64_t trips_ns = NP_ESTABLISH_TRIPS * np_tcp_round_trip_ns(fd);

	return now_ns + np_max(NS_HELLO_S * NP_SEC, np_min(trips_ns, NS_HELLO_MOST_S * NP_SEC));
}

struct ns_admit
ns_admission_of(const struct ns_daemon *d, int fd)
{
	const struct ns_args *args = &d->args;
	struct ns_admit a = { .key = args->key.count > 0 ? &args->key : NULL,
			      .passphrase = args->passphrase[0] != '\0' ? args->passphrase : NULL,
			      .nat = args->nat };

	if (a.key != NULL) {
		np_ends_of(fd, false, a.ends); /* not the client's socket */
	}
	return a;
}

unsigned
ns_filter_of(const struct ns_daemon *d, const struct ns_caller *c)
{
	bool evidence = !d->args.no_evidence && np_frame_head(c->chan.in).code == NP_EXT_HELLO;

	return (np_addr_is_here(&c->peer) ? NS_FILTER_UNIX : 0U) |
	       (evidence ? NS_FILTER_EVIDENCE : 0U);
}

bool
ns_greeting_asks(const struct ns_caller *c, uint32_t cap, struct np_hello_message *hello)
{
	struct np_err ignored;

	return c->chan.have == NP_FRAME_SIZE && np_frame_head(c->chan.in).code == NP_EXT_HELLO &&
	       np_hello_get(c->chan.in, hello, &ignored) == NP_OK && (hello->caps & cap) != 0;
}

/* A capture needs the client's address for its filter, which a UNIX socket does not have. */
bool
ns_wants_capture(const struct ns_caller *c)
{
	struct np_hello_message hello;

	return !np_family_of(&c->peer)->is_here && ns_greeting_asks(c, NP_CAP_WIRE, &hello);
}
