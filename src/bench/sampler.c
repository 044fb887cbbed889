#include "bench/sampler.h"

#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>

#include "bench/worker.h"
#include "net/sock.h"

/* What all come to, by those looked at. */
static int64_t
of_all(int64_t seen, uint32_t looked, uint32_t all)
{
	return looked > 0 ? seen * all / looked : 0;
}

void
np_sampler_answer(struct np_worker *w)
{
	uint32_t step = (w->conns + NP_SAMPLER_MOST - 1) / NP_SAMPLER_MOST, looked = 0;
	struct np_sample *s = &w->sampler.sample;
	struct np_tcp_sum sum;

	memset(s, 0, sizeof(*s));
	memset(&sum, 0, sizeof(sum));
	for (uint32_t i = 0; i < w->conns; i += step) {
		np_tcp_sum_add(&sum, w->conn[i].fd);
		s->queued_in += np_sock_queued(w->conn[i].fd, SIOCINQ);
		s->queued_out += np_sock_queued(w->conn[i].fd, SIOCOUTQ);
		looked++;
	}
	s->tcp = sum.count > 0;
	np_tcp_sum_sample(&sum, w->conns, s->info);
	s->queued_in = of_all(s->queued_in, looked, w->conns);
	s->queued_out = of_all(s->queued_out, looked, w->conns);
	atomic_store_explicit(&w->sampler.state, 2, memory_order_release);
}

bool
np_sampler_take(struct np_sampler *s, struct np_sample *out)
{
	int state = atomic_load_explicit(&s->state, memory_order_acquire);

	if (state == 2) {
		*out = s->sample;
	}
	if (state != 1) {
		atomic_store_explicit(&s->state, 1, memory_order_release);
	}
	return state == 2;
}
