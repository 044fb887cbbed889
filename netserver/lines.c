#include "netserver/lines.h"

#include "base/clock.h"

enum { WINDOW_S = 2 };

bool
ns_lines_take(struct ns_lines *l, uint64_t now_ns)
{
	bool may = ns_bucket_take(&l->bucket, NP_SEC / NS_LINES, WINDOW_S * NP_SEC, now_ns);

	l->left_out += !may;
	return may;
}

void
ns_lines_tell(struct ns_lines *l, const struct np_log *log, const char *kind)
{
	struct np_event e;

	if (l->left_out > 0) {
		np_event_begin(&e, kind);
		np_event_number(&e, "lines", l->left_out);
		np_log_event(log, NP_LOG_INFO, &e, NULL);
		l->all += l->left_out;
		l->left_out = 0;
	}
}

bool
ns_lines_may(struct ns_lines *l, const struct np_log *log)
{
	if (!ns_lines_take(l, np_now())) {
		return false;
	}
	ns_lines_tell(l, log, "lines-not-logged");
	return true;
}

static void
limited_sink(void *ctx, enum np_log_level level, bool is_event, const char *line)
{
	const struct ns_limited *to = ctx;

	/* A client may raise the level of its session; what the operator wants to see, he gets. */
	if ((level == NP_LOG_DEBUG && to->log.level == NP_LOG_DEBUG) ||
	    ns_lines_may(to->lines, &to->log)) {
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
