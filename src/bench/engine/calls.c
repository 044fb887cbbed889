#include "bench/engine/calls.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "bench/engine/io.h"
#include "bench/run.h"

int
np_calls_drive(struct np_worker *w)
{
	const struct np_calls *calls = w->calls;
	struct np_conn *c = w->conn;
	enum np_need need = w->goes_on ? c->need : w->steps->first;

	while (need != NP_OVER && !np_stopped(&w->stop)) {
		if (need == NP_SEND) {
			need = calls->send(w, c);
		} else if (need == NP_RECV) {
			need = calls->recv(w, c);
		} else {
			need = np_io_other(w, c, need,
					   (need & NP_SEND) != 0 ? w->send_ring.slots
								 : w->recv_ring.slots);
		}
		need &= ~(unsigned)NP_BLOCKED; /* the next call waits */
	}
	c->need = need;
	return -w->error;
}

/* --- datagrams -------------------------------------------------------------------------------- */

static uint32_t
ahead(const struct np_worker *w, const struct np_conn *c, uint32_t most)
{
	uint64_t n = w->steps->ahead != NULL ? w->steps->ahead(w, c) : 1;

	return n < most ? (uint32_t)n : most;
}

/* The messages that the connection is to send next. */
static void
prepare(struct np_worker *w, const struct np_conn *c, struct np_batch *b, uint32_t count)
{
	uint64_t number = c->number, now = 0;

	if (w->codec == 0) {
		return; /* they are as they always are */
	}
	if ((w->codec & NP_C_NUMBER) != 0) {
		now = np_now();
	}
	for (uint32_t i = 0; i < count; i++) {
		np_codec_prepare(w, b->out[i].buf, number, now);
		number = c->ids != NULL ? np_ids_behind(c->ids, number) : number + 1;
	}
}

static enum np_need
failed(struct np_worker *w, struct np_conn *c, enum np_need need)
{
	w->engine_count[NP_E_BLOCKED] += errno == EAGAIN;
	return np_io_failed(w, c, need);
}

/* So many have left by a call. What is needed next. */
static enum np_need
have_left(struct np_worker *w, struct np_conn *c, int count)
{
	enum np_need need = NP_SEND;

	w->engine_count[NP_E_SEND_CALLS]++;
	w->engine_count[NP_E_SENT] += (uint64_t)count;
	for (int i = 0; i < count; i++) {
		need = w->steps->sent(w, c, w->send_size);
	}
	return need;
}

static enum np_need
batch_send(struct np_worker *w, struct np_conn *c)
{
	struct np_batch *b = w->engine_own;
	uint32_t count = ahead(w, c, b->most_out);
	int left;

	prepare(w, c, b, count);
	left = b->calls->put(w, c, 0, count);
	return left >= 0 ? have_left(w, c, left) : failed(w, c, NP_SEND);
}

/* Responses to the messages that have come. One that the kernel refuses is for the steps to judge.
 */
static enum np_need
put_answers(struct np_worker *w, struct np_conn *c, uint32_t count)
{
	const struct np_batch *b = w->engine_own;
	enum np_need need = NP_RECV;
	uint32_t done = 0;

	while (done < count && need != NP_OVER && !np_stopped(&w->stop)) {
		int left = b->calls->put(w, c, done, count - done);

		if (left >= 0) {
			need = have_left(w, c, left);
			done += (uint32_t)left;
		} else {
			need = failed(w, c, NP_SEND); /* where there is no room it waits */
			done += need != NP_SEND;
		}
	}
	return need == NP_SEND ? NP_RECV : need;
}

/* The response to a message that has had its step. */
static void
prepare_answer(struct np_worker *w, const struct np_conn *c, struct np_message *answer,
	       const struct np_message *question)
{
	if (w->codec != 0) {
		np_codec_prepare(w, answer->buf, c->number, 0);
	}
	answer->addr = w->to != NULL ? question->addr : NULL;
	answer->addr_len = question->addr_len;
}

/* The steps of all that came. If one of them has something to send, that is what is needed. */
static enum np_need
take_messages(struct np_worker *w, struct np_conn *c, struct np_batch *b)
{
	const struct np_steps *s = w->steps;
	enum np_need need = NP_RECV, plain;
	unsigned rest = 0;
	uint32_t answers = 0;
	bool sends = false;

	while (b->next < b->came && need != NP_OVER) {
		const struct np_message *m = &b->in[b->next++];

		if (s->answers && m->addr_len > 0) {
			memcpy(w->from, m->addr, m->addr_len);
			w->from_len = m->addr_len;
		}
		need = s->arrived(w, c, m->buf, m->size);
		rest |= need & NP_REST;
		plain = need & ~(unsigned)NP_REST;
		if (s->answers && plain == NP_SEND) {
			prepare_answer(w, c, &b->out[answers++], m);
		}
		sends = sends || plain == NP_SEND;
	}
	if (answers > 0) {
		enum np_need behind = put_answers(w, c, answers);

		return need == NP_OVER ? need : behind;
	}
	if (need == NP_OVER) {
		return need;
	}
	return (sends ? NP_SEND : need & ~(unsigned)NP_REST) | rest;
}

static enum np_need
batch_recv(struct np_worker *w, struct np_conn *c)
{
	struct np_batch *b = w->engine_own;
	int came = b->calls->fetch(w, c, 0);
	enum np_need need;

	if (came < 0) {
		return failed(w, c, NP_RECV);
	}
	w->engine_count[NP_E_RECEIVE_CALLS]++;
	w->engine_count[NP_E_RECEIVED] += (uint64_t)came;
	b->came = (uint32_t)came;
	b->next = 0;
	b->of = c;
	need = take_messages(w, c, b);
	return need == NP_RECV && b->came < b->most_in ? NP_RECV | NP_BLOCKED : need;
}

static ssize_t
batch_left(struct np_worker *w, struct np_conn *c, char **buf)
{
	struct np_batch *b = w->engine_own;

	if (b->of != c || b->next == b->came) {
		int came = b->calls->fetch(w, c, MSG_DONTWAIT);

		b->came = came > 0 ? (uint32_t)came : 0;
		b->next = 0;
		b->of = c;
		if (came <= 0) {
			return -1;
		}
	}
	*buf = b->in[b->next].buf;
	return (ssize_t)b->in[b->next++].size;
}

const struct np_calls np_batch_turns = {
	.send = batch_send,
	.recv = batch_recv,
	.left = batch_left,
};

const char *
np_batch_why_not(const struct np_plan *p)
{
	if (!p->transport->bounded || p->transport->connected || p->transport->header > 0) {
		return "it carries several datagrams a call";
	}
	if (p->packet_info) {
		return "it does not ask for the address that each datagram was sent to (-B)";
	}
	if (p->use_write) {
		return "write(2), which -I asks for, carries one message";
	}
	if (p->time_calls && !p->pattern->transactions) {
		return "the time of each message can't be told from that of its call";
	}
	return NULL;
}
