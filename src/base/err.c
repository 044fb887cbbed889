#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
np_fail_with(struct np_err *err, enum np_errc code, int sys, bool explain, const char *fmt, ...)
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
	if (explain && sys != 0 && n >= 0 && (size_t)n < sizeof(err->msg)) {
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
	/* A message that is too long loses its end. (gcc warns unless the result is used.) */
	if (snprintf(err->msg, sizeof(err->msg), "%s: %s", where, inner) < 0) {
		err->msg[0] = '\0';
	}
	return err->code;
}

void
np_fail_hint(struct np_err *err, const char *hint)
{
	size_t len = strlen(err->msg);

	if (hint != NULL) {
		snprintf(err->msg + len, sizeof(err->msg) - len, " (%s)", hint);
	}
}

int
np_errc_status(enum np_errc code)
{
	return code == NP_OK ? 0 : code == NP_ECONTROL || code == NP_EPLAIN ? 255 : 1;
}
