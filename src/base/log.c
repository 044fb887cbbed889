#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>
#include <unistd.h>

void
np_log(const struct np_log *log, enum np_log_level level, const char *fmt, ...)
{
	char line[600];
	va_list ap;

	if (log == NULL || log->sink == NULL || level > log->level) {
		return;
	}
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	for (char *c = line; *c != '\0'; c++) {
		/* What a peer sent may stand in here: it must not look like lines of ours. */
		*c = (char)(iscntrl((unsigned char)*c) ? '?' : *c);
	}
	log->sink(level, line);
}

void
np_log_to_stderr(enum np_log_level level, const char *line)
{
	(void)level;
	fprintf(stderr, "%s[%ld]: %s\n", program_invocation_short_name, (long)getpid(), line);
}

void
np_log_to_syslog(enum np_log_level level, const char *line)
{
	static const int priority[] = { LOG_ERR, LOG_INFO, LOG_DEBUG };

	syslog(priority[level], "%s", line);
}
