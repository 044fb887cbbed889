#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
np_fail(struct np_err *err, enum np_errc code, int sys, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (err == NULL) {
		return code;
	}
	err->code = code;
	err->sys = sys;
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	if (sys != 0 && n >= 0 && (size_t)n < sizeof(err->msg)) {
		snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s", strerror(sys));
	}
	return code;
}

int
np_fail_in(struct np_err *err, const char *where)
{
	char inner[sizeof(err->msg)];

	if (err->code == NP_EPLAIN) {
		return err->code;
	}
	memcpy(inner, err->msg, sizeof(inner));
	/* A message that no longer fits loses its end, not its beginning. */
	if (snprintf(err->msg, sizeof(err->msg), "%s: %s", where, inner) < 0) {
		err->msg[0] = '\0';
	}
	return err->code;
}

void
np_fail_hint(struct np_err *err, const char *hint)
{
	size_t len = strlen(err->msg);

	snprintf(err->msg + len, sizeof(err->msg) - len, " (%s)", hint);
}

int
np_errc_status(enum np_errc code)
{
	switch (code) {
	case NP_OK:
		return 0;
	case NP_ECONTROL:
	case NP_EPLAIN:
		return 255;
	case NP_EUSAGE:
	case NP_ESYS:
	case NP_EPEER:
	case NP_ETIME:
	case NP_EUNSUP:
		break;
	}
	return 1;
}
