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
	enum np_need need = w->goes_on ? c->need : np_io_first_need(w, 0);

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

/* A put or a fetch failed with errno. Returns what is needed next, as np_io_failed(). */
static enum np_need
failed(struct np_worker *w, struct np_conn *c, enum np_need need)
{
	w->engine.count[NP_E_BLOCKED] += errno == EAGAIN;
	return np_io_failed(w, c, need);
}

/*
 * Count and take the steps of messages that one call sent. Only the last step's need matters: calls
 * send no more than the load and the budget allow.
 */
static enum np_need
take_sent(struct np_worker *w, struct np_conn *c, int count)
{
	enum np_need need = NP_SEND;

	w->engine.count[NP_E_SEND_CALLS]++;
	w->engine.count[NP_E_SENT] += (uint64_t)count;
	if (w->steps->sent_many != NULL && (w->codec & NP_C_PACE) == 0) {
		return w->steps->sent_many(w, c, (uint32_t)count);
	}
	for (int i = 0; i < count; i++) {
		need = w->steps->sent(w, c, w->send_size);
	}
	return need;
}

/* np_calls.send: in one call, as many messages as the steps allow. */
static enum np_need
batch_send(struct np_worker *w, struct np_conn *c)
{
	struct np_batch *b = w->engine.state;
	uint64_t most = w->steps->ahead != NULL ? w->steps->ahead(w, c) : 1;
	uint32_t count = most < b->most_out ? (uint32_t)most : b->most_out;
	uint64_t number = c->number, now = (w->codec & NP_C_NUMBER) != 0 ? np_now() : 0;
	int sent;

	/* Messages that the call does not send are prepared again for the next one. */
	for (uint32_t i = 0; i < count && w->codec != 0; i++) {
		np_codec_prepare(w, b->out[i].buf, number, now);
		number = c->ids != NULL ? np_ids_after(c->ids, number) : number + 1;
	}
	sent = b->put(w, c, 0, count);
	return sent >= 0 ? take_sent(w, c, sent) : failed(w, c, NP_SEND);
}

/* What is to be done after the steps of received messages. */
struct todo {
	enum np_need need; /* of the last step, without NP_HELD */
	unsigned held;     /* NP_HELD, if a step asked for it; else 0 */
	bool sends;        /* a requester has a request to send */
	uint32_t answers;  /* a responder's, prepared at the start of np_batch.out */
};

/* If the last step asked for it, wait for the load between messages of one receive. */
static void
wait_between(struct np_worker *w, struct np_conn *c, struct todo *t)
{
	/* A mark may end the wait early: all that was received is answered nevertheless. */
	if (t->held != 0) {
		(void)np_io_wait_held(w, c, NP_SEND); /* any need but NP_OVER */
		t->held = 0;
	}
}

/*
 * Send the prepared answers, and set t->need. After an error the steps decide whether to drop the
 * first one; if the socket is full, failed() has waited for room, so repeat it.
 */
static void
put_answers(struct np_worker *w, struct np_conn *c, struct todo *t)
{
	const struct np_batch *b = w->engine.state;
	enum np_need need = NP_RECV;
	uint32_t done = 0;

	while (done < t->answers && need != NP_OVER) {
		int sent;

		wait_between(w, c, t);
		sent = b->put(w, c, done, (uint32_t)np_paced_row(w, c, t->answers - done));
		if (sent >= 0) {
			need = take_sent(w, c, sent);
			t->held |= need & NP_HELD;
			need &= ~(unsigned)NP_HELD;
			done += (uint32_t)sent;
			continue;
		}
		need = failed(w, c, NP_SEND);
		if (need == NP_SEND && np_told_to_leave(&w->stop)) {
			break; /* the peer may read no more: the socket would stay full */
		}
		done += need != NP_SEND; /* else repeat this answer */
	}
	t->answers = 0;
	t->need = need == NP_OVER ? NP_OVER : NP_RECV;
}

/* The next message of a train, cut to recv_size as a single receive would. Returns its size. */
static size_t
next_message(const struct np_worker *w, struct np_batch *b, char **buf)
{
	const struct np_train *m = &b->in[b->next];
	size_t left = m->bytes - b->done, n = left < m->size ? left : m->size;

	*buf = m->buf + b->done;
	b->done += n;
	if (b->done == m->bytes) {
		b->next++;
		b->done = 0;
	}
	return n < w->recv_size ? n : w->recv_size;
}

/* Handle the messages of a train one by one, and prepare the answers. */
static void
take_each(struct np_worker *w, struct np_conn *c, struct np_batch *b, struct todo *t)
{
	const struct np_train *m = &b->in[b->next];

	if (w->steps->answers && m->addr_len > 0) { /* 0: a sender without a name (unix(7)) */
		memcpy(w->from, m->addr, m->addr_len);
		w->from_len = m->addr_len;
	}
	while (&b->in[b->next] == m && t->need != NP_OVER) { /* next_message() goes on */
		enum np_need need;
		char *buf;
		size_t n;

		wait_between(w, c, t);
		n = next_message(w, b, &buf);
		need = np_io_received(w, c, w->steps, buf, (ssize_t)n);
		if ((w->codec & NP_C_TOUCH) != 0) {
			np_codec_touch(w, buf, n); /* after the step, as it may overwrite an id */
		}
		t->held |= need & NP_HELD;
		t->need = need & ~(unsigned)NP_HELD;
		if (t->need != NP_SEND) {
			continue;
		}
		if (w->steps->answers) {
			struct np_outgoing *answer = &b->out[t->answers++];

			if (w->codec != 0) {
				np_codec_prepare(w, answer->buf, c->number, 0);
			}
			answer->addr = w->to != NULL ? m->addr : NULL; /* NULL: connected */
			answer->addr_len = m->addr_len;
			if (t->answers == b->most_out) { /* no buffer is left for another one */
				put_answers(w, c, t);
			}
		} else {
			t->sends = true;
		}
	}
}

/*
 * Take whole trains, a step for each. Numbered datagrams after the end mark are left to the drain,
 * which counts them as late; those of several connections are not, as it may begin with another.
 */
static void
take_trains(struct np_worker *w, struct np_conn *c, struct np_batch *b, struct todo *t)
{
	uint64_t now = (w->codec & NP_C_WINDOW) != 0 ? np_now() : 0;
	bool over = false;

	while (b->next < b->trains && (!over || w->sequence == NULL || w->conns > 1)) {
		const struct np_train *m = &b->in[b->next++];
		enum np_need need = /* an empty datagram is the end mark */
		    m->bytes > 0 ? w->steps->arrived_many(w, c, m->buf, m->bytes, m->size, now)
				 : w->steps->ended(w, c, 0);

		over = need == NP_OVER || over;
	}
	t->need = over ? NP_OVER : NP_RECV;
}

/* Take the steps of all received messages. Returns what is needed next: sending comes first. */
static enum np_need
take_messages(struct np_worker *w, struct np_conn *c, struct np_batch *b)
{
	struct todo t = { .need = NP_RECV };
	/* Trains go in one step unless messages are paced, touched or longer than recv_size. */
	bool whole = w->steps->arrived_many != NULL && (w->codec & (NP_C_PACE | NP_C_TOUCH)) == 0;

	for (uint32_t i = 0; i < b->trains && whole; i++) {
		whole = b->in[i].size <= w->recv_size;
	}
	if (whole) {
		take_trains(w, c, b, &t);
	}
	while (b->next < b->trains && t.need != NP_OVER) {
		take_each(w, c, b, &t);
	}
	if (t.answers > 0) {
		enum np_need last = t.need;

		put_answers(w, c, &t); /* which sets the need anew */
		t.need = last == NP_OVER ? NP_OVER : t.need;
	}
	if (t.need == NP_OVER) {
		return NP_OVER;
	}
	return (t.sends ? NP_SEND : t.need) | t.held;
}

/* Receive trains, and count them and their messages. False with errno: none. */
static bool
fetch(struct np_worker *w, struct np_conn *c, struct np_batch *b, int flags)
{
	int trains = b->fetch(w, c, flags);

	b->trains = trains > 0 ? (uint32_t)trains : 0;
	b->next = 0;
	b->done = 0;
	b->conn = c;
	for (uint32_t i = 0; i < b->trains; i++) {
		size_t bytes = b->in[i].bytes, size = b->in[i].size;

		/* Both are 0 of an empty datagram. */
		w->engine.count[NP_E_RECEIVED] += bytes <= size ? 1 : (bytes + size - 1) / size;
	}
	w->engine.count[NP_E_RECEIVE_CALLS] += trains > 0;
	return trains > 0;
}

/* np_calls.recv: one receive, and the steps of its messages. */
static enum np_need
batch_recv(struct np_worker *w, struct np_conn *c)
{
	struct np_batch *b = w->engine.state;
	enum np_need need;

	if (!fetch(w, c, b, 0)) {
		return failed(w, c, NP_RECV);
	}
	need = take_messages(w, c, b);
	return need == NP_RECV && !b->may_be_more ? NP_RECV | NP_BLOCKED : need;
}

/* np_calls.left: the next message of the last receive, or of a new one. */
static ssize_t
batch_left(struct np_worker *w, struct np_conn *c, char **buf)
{
	struct np_batch *b = w->engine.state;

	if ((b->conn != c || b->next == b->trains) && !fetch(w, c, b, MSG_DONTWAIT)) {
		return -1;
	}
	return (ssize_t)next_message(w, b, buf);
}

const struct np_calls np_batch_turns = {
	.send = batch_send,
	.recv = batch_recv,
	.left = batch_left,
};

bool
np_batch_must_receive_singly(const struct np_plan *p)
{
	return p->pattern->transactions && p->role == NP_LEAD && p->burst == 0 && p->rate == 0;
}

const char *
np_batch_why_not(const struct np_plan *p)
{
	if (!p->transport->bounded || p->transport->connected || p->transport->header > 0) {
		return "it is for datagrams only, and carries several in one call";
	}
	if (p->packet_info) {
		return "it cannot read the address that each datagram was sent to (-B)";
	}
	if (p->use_write) {
		return "write(2), which -I asks for, carries one message";
	}
	if (p->time_calls && !p->pattern->transactions) {
		return "it knows the time of a call, and not of each message in it";
	}
	return NULL;
}
