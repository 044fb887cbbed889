#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Fill *err. Returns the length of the text, even if it was cut; -1 if err is NULL. */
static int __attribute__((format(printf, 4, 0)))
fill_err(struct np_err *err, enum np_errc code, int sys, const char *fmt, va_list ap)
{
	if (err == NULL) {
		return -1;
	}
	err->code = code;
	err->sys = sys;
	return vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
}

int
np_fail(struct np_err *err, enum np_errc code, int sys, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = fill_err(err, code, sys, fmt, ap);
	va_end(ap);
	if (sys != 0 && n >= 0 && (size_t)n < sizeof(err->msg)) {
		snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s", strerror(sys));
	}
	return code;
}

int
np_fail_verbatim(struct np_err *err, enum np_errc code, int sys, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill_err(err, code, sys, fmt, ap);
	va_end(ap);
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
