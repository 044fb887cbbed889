#include "netserver/lines.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"

bool
ns_lines_take(struct ns_lines *l, const struct ns_place *who, uint64_t now_ns)
{
	const uint64_t each_ns = NP_SEC / NS_LINES, window_ns = NS_LINES_S * NP_SEC;
	bool may = who != NULL ? ns_share_take(&l->share, *who, each_ns, window_ns, now_ns)
			       : ns_bucket_take(&l->share.all, each_ns, window_ns, now_ns);

	l->left_out += !may;
	return may;
}

/* If lines were left out, log how many, as an event of that kind. */
static void
tell_left_out(struct ns_lines *l, const struct np_log *log, const char *kind)
{
	struct np_event e;

	if (l->left_out > l->told) {
		np_event_begin(&e, kind);
		np_event_number(&e, "lines", l->left_out - l->told);
		np_log_event(log, NP_LOG_INFO, &e, NULL);
		l->told = l->left_out;
	}
}

bool
ns_lines_may(struct ns_lines *l, const struct ns_place *who, const struct np_log *log)
{
	if (!ns_lines_take(l, who, np_now())) {
		return false;
	}
	tell_left_out(l, log, "lines-not-logged");
	return true;
}

/* A sink, with a struct ns_limited as its context. */
static void
limited_sink(void *ctx, enum np_log_level level, bool is_event, const char *line)
{
	const struct ns_limited *to = ctx;

	/* Debug lines are limited if a client has raised the level, not if the operator has. */
	if ((level == NP_LOG_DEBUG && to->log.level == NP_LOG_DEBUG) ||
	    ns_lines_may(to->lines, NULL, &to->log)) {
		to->log.sink(to->log.ctx, level, is_event, line);
	}
}

void
ns_limit_log(struct ns_limited *ctx, struct np_log *log, struct ns_lines *lines)
{
	if (log->sink == NULL) {
		return;
	}
	*ctx = (struct ns_limited){ .log = *log, .lines = lines };
	log->sink = limited_sink;
	log->ctx = ctx;
}

void
ns_relay_sink(void *ctx, enum np_log_level level, bool is_event, const char *line)
{
	struct ns_relay *r = ctx;
	struct ns_line l;

	memset(&l, 0, sizeof(l));
	l.type = r->type;
	l.level = (int)level;
	l.dropped = r->dropped;
	l.is_event = is_event;
	snprintf(l.text, sizeof(l.text), "%s", line);
	if (send(r->fd, &l, sizeof(l), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(l)) {
		r->dropped = 0;
	} else {
		r->dropped++;
	}
}

void
ns_relay_write(const struct np_log *log, struct ns_lines *all, struct ns_session *s,
	       struct ns_line *line, bool quiet)
{
	static const char kind[] = "event=session-";
	bool is_level = line->level >= NP_LOG_ERROR && line->level <= NP_LOG_DEBUG;
	enum np_log_level level = is_level ? (enum np_log_level)line->level : NP_LOG_DEBUG;
	bool wanted = level == NP_LOG_DEBUG && log->level >= NP_LOG_DEBUG; /* by the operator */
	const uint64_t each_ns = NS_RELAYED_SHARE * NP_SEC / NS_LINES;
	struct np_log all_levels = *log;
	uint64_t now_ns = np_now();

	if (quiet && level > log->level) {
		return;
	}
	all_levels.level = NP_LOG_DEBUG; /* a client may have raised its session's level */
	all->left_out += np_min(line->dropped, NS_LINES); /* it may be a lie */
	if (!ns_bucket_take(&s->lines, each_ns, UINT64_C(2) * NS_LINES * each_ns, now_ns)) {
		all->left_out++;
		return;
	}
	if (!wanted && !ns_lines_take(all, &s->place, now_ns)) {
		return;
	}
	tell_left_out(all, &all_levels, "session-lines-not-logged");
	line->text[sizeof(line->text) - 1] = '\0';
	np_text_printable(line->text);
	/* Sessions have events of one kind; others would be the daemon's. */
	if (line->is_event && strncmp(line->text, kind, sizeof(kind) - 1) == 0 &&
	    strstr(line->text + 1, "event=") == NULL) {
		struct np_event e;

		e.len = (size_t)snprintf(e.line, sizeof(e.line), "process=%ld %.*s", (long)s->pid,
					 (int)sizeof(e.line) - 32, line->text); /* 32: process=N */
		np_log_event(&all_levels, level, &e, NULL);
	} else {
		np_log(&all_levels, level, "process %ld: %s", (long)s->pid, line->text);
	}
}
