#include "tests/lib/ends.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "bench/tally.h"
#include "tests/lib/allocs.h"
#include "tests/lib/check.h"
#include "tests/lib/sockets.h"

enum { NUDGE_MS = 50 };

const struct np_eth *
lo_link(bool server)
{
	static struct np_eth links[2];
	struct np_eth *l = &links[server];
	struct np_err err;

	return l->fd > 0 || np_eth_open(l, "lo", &err) == NP_OK ? l : NULL;
}

/* Can a connection be made to the loopback address of that transport? Says why not, once. */
static bool
reaches_itself(const struct np_transport *t)
{
	static const struct np_transport *told;
	struct np_sockopts none = { .count = 0 };
	struct np_err err = { .code = NP_OK };
	struct np_addr at;
	int listener, fd;
	int family = t->family > 0 ? t->family : AF_INET;
	bool ok;

	np_addr_make_loopback(&at, family);
	listener = np_sock_open(family, t->socktype, t->protocol, &none, &at, &err);
	fd = listener < 0 ? -1 : np_sock_open(family, t->socktype, t->protocol, &none, NULL, &err);
	ok = fd >= 0 && np_sock_local(listener, &at, &err) == NP_OK &&
	     (!t->connected || listen(listener, 1) == 0) &&
	     connect(fd, (struct sockaddr *)&at.sa, at.len) == 0;
	if (!ok && told != t) {
		told = t;
		print_message("%s does not reach itself here: %s\n", t->name,
			      err.code != NP_OK ? err.msg : strerror(errno));
	}
	if (fd >= 0) {
		close(fd);
	}
	if (listener >= 0) {
		close(listener);
	}
	return ok;
}

/* Does this kernel carry it, and this build? Says why not, once. */
static bool
is_carried(const struct np_transport *t)
{
	static const struct np_transport *told;
	struct np_err err = { .code = NP_OK };

	if (t->kernel.probe == NULL || t->kernel.probe(t, &err) == NP_OK) {
		return true;
	}
	if (told != t) {
		told = t;
		print_message("%s: %s\n", t->name, err.msg);
	}
	return false;
}

bool
can_run(const struct np_bench *bench)
{
	const struct np_transport *t = bench->transport;

	if (t->link && t->connected) {
		return false; /* LLC2 has no loopback: tests/vm/llc.py */
	}
	if (!is_carried(t)) {
		return false;
	}
	if (t->link) {
		return lo_link(false) != NULL;
	}
	return !t->named || (t->family == 0 && t->kernel.module == NULL) || reaches_itself(t);
}

const struct np_bench *
next_runnable(const struct np_bench *bench)
{
	size_t i = 0;

	while (bench != NULL && np_bench_at(i++) != bench) {
	}
	while (np_bench_at(i) != NULL && !can_run(np_bench_at(i))) {
		i++;
	}
	return np_bench_at(i);
}

void
client_params(struct np_plan *p, const struct np_bench *bench, int family, int64_t length)
{
	np_plan_init(p);
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
	if (!p->transport->connected) {
		p->near.call.send_size = 512;
	}
	if (p->transport->link) {
		p->response = p->response > 0 ? 48 : -1; /* a frame has no less than 46 bytes */
	}
	if (p->transport->family > 0 && p->transport->admit == NP_ADMIT_PEER) {
		np_addr_make_loopback(&p->bind, p->transport->family); /* as np_aim_data() does */
	}
}

void
server_params(struct np_plan *p, const struct np_plan *client)
{
	*p = *client;
	p->bench = NULL;
	p->role = client->role == NP_LEAD ? NP_FOLLOW : NP_LEAD;
	p->active = false;
	p->near = client->far;
	p->far = client->near;
}

void
daemon_params(struct np_plan *p, const struct np_bench *bench, int64_t length)
{
	struct np_plan client;

	client_params(&client, bench, AF_INET, length);
	server_params(p, &client);
}

struct np_addr
peer_of(const struct np_plan *p)
{
	struct np_addr at;

	np_addr_make_loopback(&at, p->transport->named ? np_plan_family(p) : p->family);
	return at;
}

struct np_terms
terms_for(const struct np_plan *p)
{
	struct np_terms terms = { .eth = p->transport->link ? lo_link(!p->active) : NULL };

	if (p->transport->admit == NP_ADMIT_PEER && !p->active) {
		np_addr_make_loopback(&terms.only, np_plan_family(p));
	}
	return terms;
}

/* Stands in for the loop that setup chose. */
static int
watched_loop(struct np_worker *w)
{
	struct end *e = (struct end *)((char *)w->run - offsetof(struct end, run));
	int rc;

	sem_post(&e->looping);
	allocs_arm();
	rc = e->loop(w);
	e->allocated = allocs_disarm();
	return rc;
}

void
end_open(struct end *e)
{
	e->terms = terms_for(&e->plan);
	fail_if(np_run_open(&e->run, &e->plan, &e->terms, &e->stop, &e->err) != NP_OK, "%s",
		e->err.msg);
	e->loop = e->run.worker->loop;
	e->run.worker->loop = watched_loop;
	assert_int_equal(sem_init(&e->looping, 0, 0), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e->control), 0);
	e->chan.fd = e->control[0];
	e->drive = (struct np_drive){ .run = &e->run,
				      .control = &e->chan,
				      .length_ns = e->length_ns,
				      .establish_ns = LONG_MS * NP_MSEC };
}

struct np_addr
way_to(const struct np_plan *p, const struct np_addr *local)
{
	return p->transport->named ? loopback(np_plan_family(p), np_addr_port(local)) : *local;
}

void
end_aim(struct end *client, const struct np_addr *at)
{
	if (client->terms.eth != NULL) {
		np_eth_aim(client->terms.eth, client->terms.eth->mac, &client->run.end.peer);
		return;
	}
	client->run.end.peer = way_to(&client->plan, at);
}

static void *
drive(void *arg)
{
	struct end *e = arg;

	e->rc = np_drive(&e->drive, &e->err);
	e->over = true;
	/* As in real life: a client that drains waits for this, and keeps its own end open. */
	if (!e->plan.active) {
		np_run_close(&e->run);
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
end_begin(struct end *client, const struct np_addr *at)
{
	end_open(client);
	end_aim(client, at);
	end_start(client);
}

void
end_run(struct end *client, const struct np_addr *at)
{
	end_begin(client, at);
	end_join(client);
}

void
end_hang_up(struct end *e)
{
	close(e->control[1]);
	e->control[1] = -1;
}

void
end_stop(struct end *e)
{
	end_hang_up(e);
	end_join(e);
}

void
end_free(struct end *e)
{
	np_run_free(&e->run);
	sem_destroy(&e->looping);
	close(e->control[0]);
	if (e->control[1] >= 0) {
		end_hang_up(e);
	}
}

void
ends_plan(struct ends *e, const struct np_bench *bench, int family, int64_t length)
{
	memset(e, 0, sizeof(*e));
	client_params(&e->client.plan, bench, family, length);
}

void
ends_make(struct ends *e)
{
	const struct np_plan *p = &e->server.plan;
	struct np_run *server = &e->server.run, *client = &e->client.run;

	server_params(&e->server.plan, &e->client.plan);
	end_open(&e->server);
	end_open(&e->client);
	end_aim(&e->client, &server->end.local);
	/* Without connections the daemon has several sockets: as its GRANT tells. */
	for (uint32_t i = 0; i < server->conns && i < client->conns; i++) {
		client->conn[i].port = server->conn[i].port;
	}
	/* A daemon sends datagrams to a client that echoes a token. */
	if (!p->transport->connected && !p->pattern->transactions && p->role == NP_LEAD) {
		server->end.token = 4711;
	}
	client->end.token = server->end.token;
	client->end.key = server->end.key;
}

void
ends_open(struct ends *e, const struct np_bench *bench, int family, int64_t length,
	  void (*change)(struct np_plan *p))
{
	ends_plan(e, bench, family, length);
	if (change != NULL) {
		change(&e->client.plan);
	}
	ends_make(e);
}

/* As in real life: a network may have lost all marks of the end that the client sent. */
static void
join_server(struct ends *e)
{
	const struct np_side *side = e->client.run.side;

	while (side->nudge != NULL && !e->server.over && e->client.run.err.code == NP_OK) {
		poll(NULL, 0, NUDGE_MS);
		side->nudge(&e->client.run);
		e->nudges++;
	}
	end_join(&e->server);
}

void
ends_drive(struct ends *e, uint64_t length_ns)
{
	e->client.drive.length_ns = e->server.drive.length_ns = length_ns;
	end_start(&e->server);
	end_start(&e->client);
	end_join(&e->client);
	if (e->client.run.err.code != NP_OK) {
		end_hang_up(
		    &e->server); /* it would wait for the rest, and no test would ever fail */
	}
	join_server(e);
}

void
change_nothing(struct np_plan *p)
{
}

void
make_burst(struct np_plan *p)
{
	p->burst = 3;
}

void
pace(struct np_call_plan *c, uint32_t burst, uint32_t interval_us)
{
	c->interval_burst = burst;
	c->interval_us = interval_us;
}

void
connect_datagrams(struct np_plan *p)
{
	p->near.sock.connected = true;
}

void
time_calls(struct np_plan *p)
{
	p->time_calls = true;
}

void
ends_run(struct ends *e, uint64_t length_ns)
{
	ends_drive(e, length_ns);
	fail_if(e->client.run.err.code != NP_OK, "the client: %s", e->client.run.err.msg);
	fail_if(e->server.run.err.code != NP_OK, "the server: %s", e->server.run.err.msg);
}

void
assert_sums(const struct np_run *run)
{
	const struct np_conn *next = run->conn;

	NP_EACH_WORKER (w, run) {
		uint64_t sent = 0, received = 0, transactions = 0;

		assert_ptr_equal(w->conn, next);
		for (uint32_t i = 0; i < w->conns; i++) {
			sent += w->conn[i].sent;
			received += w->conn[i].received;
			transactions += w->conn[i].transactions;
		}
		assert_int_equal(sent, np_get(&w->count->sent));
		assert_int_equal(received, np_get(&w->count->received));
		assert_int_equal(transactions, np_get(&w->count->transactions));
		next += w->conns;
	}
	assert_ptr_equal(next, run->conn + run->conns);
}

void
assert_carried(const struct ends *e)
{
	struct np_counts here = np_counts_of(&e->client.run), there = np_counts_of(&e->server.run);

	assert_int_equal(here.sent, there.received);
	assert_int_equal(here.received, there.sent);
}

void
assert_transactions(const struct ends *e, uint64_t count)
{
	assert_int_equal(np_counts_of(&e->client.run).transactions, count);
	assert_int_equal(np_counts_of(&e->server.run).transactions, count);
}

void
assert_no_allocation(const struct ends *e)
{
	assert_int_equal(e->client.allocated, 0);
	assert_int_equal(e->server.allocated, 0);
}

void
ends_free(struct ends *e)
{
	end_free(&e->client);
	end_free(&e->server);
}
