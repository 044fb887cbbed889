/*
 * The messages between the daemon and a session's process, over a pair of sockets. Both run the
 * same program.
 */
#ifndef NETSERVER_WORD_H
#define NETSERVER_WORD_H

#include "netserver/lines.h"
#include "run/server.h"

enum ns_verb { NS_ASK, NS_MOVED, NS_DONE, NS_REFUSED, NS_GRANT, NS_REFUSE, NS_TELL };

/* One packet each. */
struct ns_word {
	enum ns_verb verb;
	int error; /* NS_REFUSE, NS_REFUSED: an errno */
	struct np_wish wish;
	struct np_served served;
	char text[200]; /* why not */
};

/* What a session may send. */
union ns_packet {
	struct ns_word word;
	struct ns_line line; /* of NS_TELL */
};

#endif
