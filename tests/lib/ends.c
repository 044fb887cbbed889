#include "tests/lib/ends.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/lib/allocs.h"
#include "tests/lib/check.h"
#include "tests/lib/sockets.h"

const struct np_eth *
lo_link(bool server)
{
	static struct np_eth links[2];
	struct np_eth *l = &links[server];
	struct np_err err;

	return l->fd > 0 || np_eth_open(l, "lo", &err) == NP_OK ? l : NULL;
}

bool
can_run(const struct np_bench *bench)
{
	return bench->transport->family != AF_PACKET || lo_link(false) != NULL;
}

void
client_params(struct np_params *p, const struct np_bench *bench, int family, int64_t length)
{
	np_params_init(p);
	p->bench = bench;
	p->pattern = bench->pattern;
	p->transport = bench->transport;
	p->role = bench->near_role;
	p->active = true;
	p->family = family;
	p->length = length;
	if (p->pattern->transactions) {
		p->request = 64;
		p->response = 32;
	}
	if (p->transport->datagram) {
		p->near.send_size = 512;
	}
	if (p->transport->family == AF_PACKET) {
		p->eth = lo_link(false);
		p->response = p->response > 0 ? 48 : -1; /* a frame has no less than 46 bytes */
	}
}

void
server_params(struct np_params *p, const struct np_params *client)
{
	*p = *client;
	p->bench = NULL;
	p->role = client->role == NP_LEAD ? NP_FOLLOW : NP_LEAD;
	p->active = false;
	p->near = client->far;
	p->far = client->near;
	if (p->eth != NULL) {
		p->eth = lo_link(true);
	}
}

/* Stands in for the loop that setup chose. */
static int
watched_loop(struct np_flow *f)
{
	struct end *e = (struct end *)((char *)f - offsetof(struct end, flow));
	int rc;

	sem_post(&e->looping);
	allocs_arm();
	rc = e->loop(f);
	e->allocated = allocs_disarm();
	return rc;
}

void
end_open(struct end *e)
{
	if (np_flow_open(&e->flow, &e->par, &e->stop, &e->err) != NP_OK) {
		fail_msg("%s", e->err.msg);
	}
	e->loop = e->flow.loop;
	e->flow.loop = watched_loop;
	assert_int_equal(sem_init(&e->looping, 0, 0), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e->control), 0);
	e->drive = (struct np_drive){ .flow = &e->flow,
				      .control_fd = e->control[0],
				      .meet_ns = LONG_MS * NP_MSEC };
}

void
end_aim(struct end *client, const struct np_addr *at)
{
	if (client->par.eth != NULL) {
		np_eth_aim(client->par.eth, client->par.eth->mac, &client->flow.peer);
		return;
	}
	client->flow.peer =
	    at->sa.ss_family == AF_UNIX ? *at : loopback(client->par.family, np_addr_port(at));
}

static void *
drive(void *arg)
{
	struct end *e = arg;

	e->rc = np_drive(&e->drive, &e->err);
	/* As in real life: a client that drains waits for this, and keeps its own end open. */
	if (!e->par.active) {
		np_flow_close(&e->flow);
	}
	return NULL;
}

void
end_start(struct end *e)
{
	assert_int_equal(pthread_create(&e->thread, NULL, drive, e), 0);
}

void
end_join(struct end *e)
{
	assert_int_equal(pthread_join(e->thread, NULL), 0);
	assert_int_equal(e->rc, NP_OK);
}

void
end_hang_up(struct end *e)
{
	close(e->control[1]);
	e->control[1] = -1;
}

void
end_free(struct end *e)
{
	np_flow_free(&e->flow);
	sem_destroy(&e->looping);
	close(e->control[0]);
	if (e->control[1] >= 0) {
		end_hang_up(e);
	}
}

void
ends_open(struct ends *e, const struct np_bench *bench, int family, int64_t length,
	  void (*change)(struct np_params *p))
{
	memset(e, 0, sizeof(*e));
	client_params(&e->client.par, bench, family, length);
	if (change != NULL) {
		change(&e->client.par);
	}
	server_params(&e->server.par, &e->client.par);
	end_open(&e->server);
	end_open(&e->client);
	end_aim(&e->client, &e->server.flow.local);
	e->client.flow.token = e->server.flow.token;
}

void
ends_run(struct ends *e, uint64_t length_ns)
{
	e->client.drive.length_ns = e->server.drive.length_ns = length_ns;
	end_start(&e->server);
	end_start(&e->client);
	end_join(&e->client);
	end_join(&e->server);
	if (e->client.flow.err.code != NP_OK) {
		fail_msg("the client: %s", e->client.flow.err.msg);
	}
	if (e->server.flow.err.code != NP_OK) {
		fail_msg("the server: %s", e->server.flow.err.msg);
	}
}

void
ends_free(struct ends *e)
{
	end_free(&e->client);
	end_free(&e->server);
}
