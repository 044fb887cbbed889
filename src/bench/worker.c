#include "bench/worker.h"

#include <errno.h>

#include "bench/codec.h"
#include "bench/engine/syscall.h"
#include "bench/run.h"

void
np_worker_begin(struct np_worker *w, uint64_t now_ns)
{
	const struct np_run *run = w->run;

	if (w->from == NULL && !run->plan->transport->connected && !np_run_connected(run)) {
		w->to = (const struct sockaddr *)&run->end.peer.sa;
		w->to_len = run->end.peer.len;
	}
	for (uint32_t i = 0; i < w->conns; i++) {
		w->conn[i].since_ns = now_ns;
		w->conn[i].look_at_ns = now_ns + w->patience_ns;
	}
	np_load_begin(&w->load, w->run->plan, now_ns);
}

void
np_worker_end(struct np_worker *w)
{
	if (w->steps != NULL && w->steps->open != NULL && w->conn->fd >= 0) {
		np_sys_close(w->conn->fd);
		w->conn->fd = -1;
	}
	np_codec_close(w);
}

enum np_need
np_step_failed(struct np_worker *w, struct np_conn *c, enum np_need need, int error)
{
	(void)c;
	if (error == EINTR) {
		return need;
	}
	if (error == EAGAIN) {
		return need | NP_BLOCKED;
	}
	w->error = error;
	return NP_OVER;
}
