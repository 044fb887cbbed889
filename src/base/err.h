/* Errors: what was attempted, on what, and errno, for the caller; only main() prints and exits. */
#ifndef NP_BASE_ERR_H
#define NP_BASE_ERR_H

#include <stdbool.h>

/* The kind of failure; np_errc_status() turns it into the exit status. */
enum np_errc {
	NP_OK = 0,
	NP_EUSAGE,   /* the command line is at fault */
	NP_ESYS,     /* a system call failed on this machine */
	NP_ECONTROL, /* a name was not resolved, or no control connection made */
	NP_EPEER,    /* the peer reported an error, vanished or is no netperf peer */
	NP_ETIME,    /* a deadline passed */
	NP_EUNSUP,   /* this program, or this machine, can't do that */
	NP_EPLAIN    /* netperf prints it on standard output, without a prefix, status 255 */
};

struct np_err {
	enum np_errc code;
	int sys; /* errno of the failure (NP_EPEER: the peer's); 0: none */
	char msg[512];
};

/* Fill *err (or NULL): the text and, if `explain` and unless sys is 0, ": " and strerror(sys). */
int np_fail_with(struct np_err *err, enum np_errc code, int sys, bool explain, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Fill *err (or NULL) with the text, and why by strerror(sys); sys 0: not. Returns code. */
#define np_fail(err, code, sys, ...) np_fail_with(err, code, sys, true, __VA_ARGS__)

/* np_fail() for a mistake on the command line. */
#define np_usage(err, ...) np_fail(err, NP_EUSAGE, 0, __VA_ARGS__)

/* np_fail(), but strerror(sys) is not added to the text. */
#define np_fail_verbatim(err, code, sys, ...) np_fail_with(err, code, sys, false, __VA_ARGS__)

/* np_fail_verbatim() for what this end could do, but does not allow. */
#define np_deny(err, sys, ...) np_fail_verbatim(err, NP_EUNSUP, sys, __VA_ARGS__)

/* Put "where: " in front of the message, unless it is NP_EPLAIN. Returns err->code. */
int np_fail_in(struct np_err *err, const char *where);

/* Append, in parentheses, what the user may try; NULL: nothing. */
void np_fail_hint(struct np_err *err, const char *hint);

/* The exit status, as scripts for netperf expect: 255 for NP_ECONTROL and NP_EPLAIN, else 1. */
int np_errc_status(enum np_errc code);

#endif
