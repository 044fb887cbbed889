#include "netserver/lines.h"

#include <sys/mman.h>

#include "base/clock.h"

enum { WINDOW_S = 2 };

struct ns_lines *
ns_lines_new(void)
{
	void *page = mmap(NULL, sizeof(struct ns_lines), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return page != MAP_FAILED ? page : NULL; /* all zeros */
}

void
ns_lines_free(struct ns_lines *l)
{
	if (l != NULL) {
		munmap(l, sizeof(*l));
	}
}

bool
ns_lines_take(struct ns_lines *l, uint64_t now_ns)
{
	const uint64_t each = NP_SEC / NS_LINES, empty = now_ns + WINDOW_S * NP_SEC;
	uint64_t old = atomic_load(&l->due_ns), due;
	bool may;

	do {
		due = old > now_ns ? old : now_ns;
		may = due + each <= empty && due <= empty;
		/* Further ahead than that is no process's doing that is in its right mind. */
		due = may ? due + each : due > empty ? empty : due;
	} while (!atomic_compare_exchange_weak(&l->due_ns, &old, due));
	if (!may) {
		atomic_fetch_add(&l->left_out, 1);
	}
	return may;
}

bool
ns_lines_may(struct ns_lines *l, const struct np_log *log)
{
	struct np_event e;
	uint64_t left_out;

	if (!ns_lines_take(l, np_now())) {
		return false;
	}
	left_out = atomic_exchange(&l->left_out, 0);
	if (left_out > 0) {
		np_event_begin(&e, "lines-not-logged");
		np_event_number(&e, "lines", left_out);
		np_log_event(log, NP_LOG_INFO, &e, NULL);
	}
	return true;
}

void
ns_limited_sink(void *ctx, enum np_log_level level, bool is_event, const char *line)
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
	if (lines == NULL || log->sink == NULL) {
		return;
	}
	*ctx = (struct ns_limited){ .log = *log, .lines = lines };
	log->sink = ns_limited_sink;
	log->ctx = ctx;
}
