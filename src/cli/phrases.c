#include "cli/args.h"

#include <ctype.h>
#include <netdb.h>
#include <sys/socket.h>

#include "base/text.h"
#include "cli/look.h"
#include "net/addr.h"

void
np_phrases_control(FILE *out, const struct np_target *t, const struct np_client *c)
{
	/* the family of -H or, if the host resolved, of its first address */
	int given_family = t->host.family;
	int family = t->host.given ? np_family_or(given_family, c->unreachable) : given_family;
	const char *from = t->local.given ? t->local.text : np_cli_any_address(family);

	if (c->unresolved != 0) {
		np_text_to_script(out,
				  "resolve_host: could not resolve host '%s' port '%s' af %s\n"
				  "\tgetaddrinfo returned %d %s\n"
				  "Netperf could not resolve %s as a host name\n",
				  t->host.text, t->port, np_family(given_family)->name,
				  c->unresolved, gai_strerror(c->unresolved), t->host.text);
	} else if (c->unreachable != AF_UNSPEC) {
		np_text_to_script(
		    out,
		    "establish control: are you sure there is a netserver listening on %s at port "
		    "%s?\n"
		    "establish_control could not establish the control connection from %s port %s "
		    "address family %s to %s port %s address family %s\n",
		    t->host.text, t->port, from, t->local_port[0] != '\0' ? t->local_port : "0",
		    np_family(t->local.family)->name, t->host.text, t->port,
		    np_family(family)->name);
	}
}

void
np_phrases_unknown_test(FILE *out, const struct np_cli *cli)
{
	np_text_to_script(out, "The test you requested (");
	for (const char *at = cli->test; *at != '\0'; at++) {
		np_text_to_script(out, "%c", toupper((unsigned char)*at));
	}
	/* The blank at the second line's end is netperf's. */
	np_text_to_script(out, ") is unknown to this netperf.\n"
			       "Please verify that you have the correct test name, \n"
			       "and that test family has been compiled into this netperf.\n");
}

void
np_phrases_option(FILE *out, const char *program, const struct np_option_notes *notes)
{
	if (notes->wrong == NP_OPT_RIGHT) {
		return;
	}
	np_text_to_script(
	    out, "%s: %s -- '%c'\nUsage: netperf [global options] -- [test options] \n", program,
	    notes->wrong == NP_OPT_UNKNOWN ? "invalid option" : "option requires an argument",
	    notes->letter);
}
