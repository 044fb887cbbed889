#include "bench/plan.h"

#include <string.h>

#include "bench/bench.h"

static void
end_init(struct np_end *e)
{
	memset(e, 0, sizeof(*e));
	e->sndbuf = e->rcvbuf = -1;
	e->send_size = e->recv_size = -1;
	e->send_align = e->recv_align = 8;
	e->prio = e->tos = -1;
	e->cpu = -1;
	e->dirty = e->clean = -1;
}

void
np_plan_init(struct np_plan *p)
{
	memset(p, 0, sizeof(*p));
	end_init(&p->near);
	end_init(&p->far);
	p->flows = 1;
	p->length = 10;
	p->request = p->response = -1;
	p->timeout_ms = 1000;
	p->port_min = 5000;
	p->port_max = 65535;
	p->ttl = -1;
}

const struct np_words *
np_plan_words(const struct np_plan *p)
{
	return &p->pattern->words[p->role];
}

bool
np_plan_several(const struct np_plan *p)
{
	return p->pattern->several && p->transport->several &&
	       (p->pattern->transactions || p->transport->connected);
}

int
np_plan_family(const struct np_plan *p)
{
	return p->transport->family > 0 ? p->transport->family : p->family;
}
