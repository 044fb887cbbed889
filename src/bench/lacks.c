#include "bench/lacks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/transport/endpoint.h"
#include "net/addr.h"
#include "net/sock.h"
#include "sys/file.h"

enum { LIST = 16 << 10 }; /* bytes of /proc/net/protocols: about 140 lines of 110 bytes */

/* What any kernel has, if it shows no list. */
static const char least[] = "\nTCP \nTCPv6 \nUDP \nUDPv6 \n";

/* Does a line of the list, which begins with an empty one, begin with this name and a space? */
static bool
begins_a_line(const char *list, const char *name)
{
	char wanted[32];

	snprintf(wanted, sizeof(wanted), "\n%s ", name);
	return strstr(list, wanted) != NULL;
}

/* Has the kernel loaded this TCP upper-layer protocol (TLS)? */
static bool
has_ulp(const char *root, const char *module)
{
	char line[256];

	/* Only the first network namespace has this list. In others look for the module. */
	if (np_file_line(line, sizeof(line), root, "/proc/sys/net/ipv4/tcp_available_ulp") <= 0) {
		return np_file_line(line, sizeof(line), root, "/sys/module/%s/initstate", module) >
		       0;
	}
	return np_text_has_word(line, module);
}

uint64_t
np_lacks_now(const char *root)
{
	const struct np_transport *t;
	char list[LIST] = "\n";
	uint64_t lacks = 0;

	if (np_file_read(list + 1, sizeof(list) - 1, root, "/proc/net/protocols") <= 0 ||
	    !begins_a_line(list, "TCP")) {
		memcpy(list, least, sizeof(least));
	}
	for (size_t i = 0; (t = np_transport_at(i)) != NULL; i++) {
		bool has_module = !t->encrypts || has_ulp(root, t->kernel.module);

		for (int six = 0; six <= 1; six++) {
			const char *name = six != 0 ? t->kernel.listed_six : t->kernel.listed;

			if (!has_module || (name != NULL && !begins_a_line(list, name))) {
				lacks |= np_lacks_bit(i, six != 0);
			}
		}
	}
	return lacks;
}

bool
np_lacks(uint64_t lacks, const struct np_transport *t, int family)
{
	size_t i = 0;

	while (np_transport_at(i) != t) {
		i++;
	}
	return (lacks & np_lacks_bit(i, t->family == 0 && np_family(family)->version == 6)) != 0;
}

int
np_lacks_fail(uint64_t lacks, const struct np_transport *t, struct np_err *err)
{
	static const char when[] = "the daemon's kernel did not have it when netserver started";

	if (t->kernel.listed_six != NULL && !np_lacks(lacks, t, AF_INET)) { /* IPv4 is there */
		return np_fail_verbatim(err, NP_EUNSUP, EAFNOSUPPORT, "%s by IPv6: %s", t->name,
					when);
	}
	return np_fail_verbatim(err, NP_EUNSUP, EPROTONOSUPPORT,
				"%s: %s (try --transports %s there%s%s%s%s%s%s)", t->name, when,
				t->name, t->kernel.module != NULL ? "; its module is " : "",
				t->kernel.module != NULL ? t->kernel.module : "",
				t->kernel.option != NULL ? "; its option is " : "",
				t->kernel.option != NULL ? t->kernel.option : "",
				t->kernel.dropped != NULL ? "; Linux has dropped it in " : "",
				t->kernel.dropped != NULL ? t->kernel.dropped : "");
}

int
np_lacks_load(const struct np_transport *t, struct np_err *err)
{
	static const struct np_sockopts none = { .count = 0 };
	struct np_err ignored;
	int fd;

	if (np_transport_probe(t, err) == NP_EUNSUP) {
		return err->code;
	}
	/* Some have a module of their own for IPv6: this loads it, if the kernel has it. */
	fd = t->kernel.listed_six != NULL
		 ? np_sock_open(AF_INET6, t->socktype, t->protocol, &none, NULL, &ignored)
		 : -1;
	np_fds_close(fd);
	return NP_OK;
}
