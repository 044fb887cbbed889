#include "tests/lib/null.h"

#include "bench/run.h"

/* One step. Returns false when the connection is over, or needs what only a kernel has. */
static bool
one_step(struct np_worker *w, struct np_conn *c, struct null_calls *calls)
{
	enum np_need need = c->need & ~(unsigned)(NP_HELD | NP_PART);

	if (need == NP_SEND) {
		calls->sent++;
		c->need = w->steps->sent(w, c, w->send_size);
	} else if (need == NP_RECV) {
		calls->arrived++;
		c->need = w->steps->arrived(w, c, w->recv_ring.slots->buf, w->recv_size);
	}
	return (need == NP_SEND || need == NP_RECV) && c->need != NP_OVER;
}

int
null_drive(struct np_worker *w, uint64_t steps, struct null_calls *calls)
{
	bool is_live = true;

	for (uint32_t i = 0; i < w->conns; i++) {
		w->conn[i].need = w->steps->first;
	}
	while (is_live && steps > 0) {
		is_live = false;
		for (uint32_t i = 0; i < w->conns && steps > 0; i++, steps--) {
			is_live = one_step(w, &w->conn[i], calls) || is_live;
		}
	}
	return -w->error;
}
