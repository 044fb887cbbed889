#include "tests/lib/session.h"

#include <netinet/in.h>

#include "net/sock.h"
#include "tests/lib/check.h"
#include "tests/lib/sockets.h"

static void *
serve(void *arg)
{
	struct session *s = arg;

	struct np_chan chan;

	s->rc = np_chan_open(&chan, s->served_fd, "the script", &s->err);
	chan.may_be_old = true;
	if (!s->is_stranger) {
		chan.most = np_request_most;
		s->server.granted = s->server.caps != 0 ? s->server.caps : NP_CAP_PLAN;
	}
	if (s->rc == NP_OK) {
		s->rc = np_server_serve(&s->server, &chan, &s->err);
	}
	return NULL;
}

void
session_open(struct session *s)
{
	session_open_with(s, 0);
}

void
session_open_with(struct session *s, int fill_dir)
{
	session_open_as(s, &(struct np_server){ .terms.fill_dir = fill_dir });
}

static void
open_for(struct session *s, const struct np_server *server, bool is_stranger)
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	*s = (struct session){
		.fd = fd[0], .served_fd = fd[1], .rc = -1, .is_stranger = is_stranger
	};
	s->log.level = NP_LOG_INFO;
	s->server = *server;
	s->server.log = &s->log;
	s->server.peer = "the script";
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

void
session_open_as(struct session *s, const struct np_server *server)
{
	open_for(s, server, false);
}

void
session_open_stranger(struct session *s, const struct np_server *server)
{
	open_for(s, server, true);
}

int
serve_accepted(struct np_server *server, int fd, struct np_err *err)
{
	struct np_addr client = { .len = sizeof(client.sa) };
	struct np_chan chan;

	assert_int_equal(getpeername(fd, (struct sockaddr *)&client.sa, &client.len), 0);
	np_addr_unmap(&client);
	server->client = &client;
	server->peer = "the client";
	np_sock_local(fd, &server->collect.near, NULL);
	np_addr_unmap(&server->collect.near);
	np_chan_open(&chan, fd, server->peer, err);
	chan.may_be_old = true;
	return np_server_serve(server, &chan, err);
}

int
session_close(struct session *s)
{
	close(s->fd);
	pthread_join(s->thread, NULL);
	return s->rc;
}

bool
put_frame(int fd, uint32_t code, int32_t word, np_layout *layout, const void *m)
{
	struct np_head head = { .code = code, .word = word };
	uint8_t frame[NP_FRAME_SIZE];

	np_frame_put(frame, &head, layout, m);
	return put_bytes(fd, frame, sizeof(frame));
}

void
ask(const struct session *s, uint32_t code, np_layout *layout, const void *m)
{
	assert_true(put_frame(s->fd, code, -1, layout, m));
}

void
ask_tagged(const struct session *s, const struct np_tagged *t, const void *m)
{
	uint8_t message[NP_MESSAGE_MAX];
	size_t size = np_tagged_put(t, m, message);

	assert_true(put_bytes(s->fd, message, size));
}

void
assert_serves(int fd)
{
	uint8_t frame[NP_FRAME_SIZE];

	assert_true(put_frame(fd, NP_CPU_CALIBRATE, -1, NULL, NULL));
	assert_true(wait_readable(fd));
	assert_true(get_bytes(fd, frame, sizeof(frame)));
	assert_int_equal(np_frame_head(frame).code, NP_CPU_CALIBRATE);
}

uint8_t *
next_message(int fd)
{
	uint8_t *message = calloc(1, NP_FRAME_SIZE);
	struct np_head head;
	size_t size = NP_FRAME_SIZE;

	assert_non_null(message);
	assert_true(get_bytes(fd, message, NP_TAGGED_AT));
	head = np_frame_head(message);
	if (np_is_ours(head.code)) {
		size = NP_TAGGED_AT + (size_t)(uint32_t)head.word;
		assert_true(size <= NP_EXT_BYTES);
		message = realloc(message, size);
		assert_non_null(message);
	}
	assert_true(get_bytes(fd, message + NP_TAGGED_AT, size - NP_TAGGED_AT));
	return message;
}

/* Code and error; why, unless NULL, gets the words of an ERROR. */
static struct np_head
head_of(const uint8_t *message, struct np_why *why)
{
	struct np_head head = np_frame_head(message);
	struct np_error_message m;
	struct np_err err;

	if (np_is_ours(head.code)) {
		head.word = 0;
	}
	if (head.code == NP_EXT_ERROR) {
		assert_int_equal(np_tagged_get(&np_tagged_error, message, &m, &err), NP_OK);
		head.word = (int32_t)m.number;
	}
	if (head.code == NP_EXT_ERROR && why != NULL) {
		why->magic = NP_WHY_MAGIC;
		snprintf(why->text, sizeof(why->text), "%.*s", (int)sizeof(why->text) - 1, m.text);
	}
	return head;
}

int
ask_and_connect(const struct session *s, const struct np_omni_request *request)
{
	struct np_omni_response m;
	struct np_addr at;

	ask(s, NP_OMNI, np_omni_request_layout, request);
	assert_int_equal(answer(s, np_omni_response_layout, &m).word, 0);
	at = loopback(AF_INET, (uint16_t)m.data_port);
	return connected_to(&at);
}

void
assert_why(const struct session *s, uint32_t code, int32_t error, const char *words)
{
	struct np_why why = { .magic = 0 };
	struct np_head head = answer(s, np_why_layout, &why);

	fail_if(head.word != error, "error %d (%s), not %d", head.word, why.text, error);
	assert_int_equal(head.code, code);
	assert_int_equal(why.magic, NP_WHY_MAGIC);
	assert_has(why.text, words);
}

struct np_head
answer_tagged(const struct session *s, const struct np_tagged *t, void *m)
{
	uint8_t *message = next_message(s->fd);
	struct np_head head = head_of(message, NULL);
	struct np_err err;

	if (head.code == t->type) {
		assert_int_equal(np_tagged_get(t, message, m, &err), NP_OK);
	}
	free(message);
	return head;
}

struct np_plan_message
five_by_plan(void)
{
	struct np_plan_message m;

	np_tagged_init(&np_tagged_plan, &m);
	strcpy(m.pattern, "rr");
	strcpy(m.transport, "TCP");
	m.family = NP_WF_INET;
	m.request_size = 16;
	m.response_size = 8;
	m.length = -5;
	return m;
}

struct np_head
answer(const struct session *s, np_layout *layout, void *m)
{
	uint8_t *message = next_message(s->fd);
	struct np_head head = head_of(message, layout == np_why_layout ? m : NULL);
	struct np_err err;

	if (layout != NULL && !np_is_ours(head.code)) {
		assert_int_equal(np_frame_get(message, layout, m, &err), NP_OK);
	}
	free(message);
	return head;
}

struct np_omni_request
five_transactions(void)
{
	struct np_omni_request m = {
		.send_buf_size = -1,
		.send_size = -1,
		.recv_buf_size = -1,
		.receive_size = -1,
		.send_alignment = 8,
		.recv_alignment = 8,
		.request_size = 16,
		.response_size = 8,
		.flags = NP_WB_ROUTE,
		.test_length = -5,
		.ipfamily = NP_WF_INET,
		.socket_type = NP_WS_STREAM,
		.protocol = IPPROTO_TCP,
		.direction = NP_WD_BOTH,
		.socket_prio = -1,
		.socket_tos = -1,
	};

	return m;
}
