/*
 * A control connection that np_server_serve() serves in a thread, and the script's end of it.
 */
#ifndef NP_TESTS_SESSION_H
#define NP_TESTS_SESSION_H

#include <pthread.h>

#include "run/server.h"
#include "wire/msg.h"
#include "wire/plan.h"

struct session {
	int fd, served_fd;
	struct np_log log;
	struct np_server server;
	bool is_stranger; /* who has not greeted */
	struct np_err err;
	int rc;
	pthread_t thread;
};

void session_open(struct session *s);

/* The same as a daemon that has a directory of fill files. */
void session_open_with(struct session *s, int fill_dir);

/*
 * The same with all that the daemon's program may set; log and peer are filled in here. As if the
 * ends had greeted each other, and all of server->caps were granted, NP_CAP_PLAN if that is 0.
 */
void session_open_as(struct session *s, const struct np_server *server);

/* The same without a greeting. */
void session_open_stranger(struct session *s, const struct np_server *server);

/*
 * Serve an accepted connection of IP to its end, as netserver does. server has the rest: the peer's
 * name and the addresses are filled in here.
 */
int serve_accepted(struct np_server *server, int fd, struct np_err *err);

/* Hang up; returns what the session ended with. */
int session_close(struct session *s);

/* Send a message of netperf's. False: it could not be sent. */
bool put_frame(int fd, uint32_t code, int32_t word, np_layout *layout, const void *m);

/* Send a request. */
void ask(const struct session *s, uint32_t code, np_layout *layout, const void *m);

/* Ask for that test, which is granted, and make its data connection. */
int ask_and_connect(const struct session *s, const struct np_omni_request *request);

/* Send a message of ours. */
void ask_tagged(const struct session *s, const struct np_tagged *t, const void *m);

/*
 * The next answer's code and error; its body, too, unless layout is NULL. ERROR is read as if it
 * were netperf's, with a struct np_why.
 */
struct np_head answer(const struct session *s, np_layout *layout, void *m);

/* The same of a message of ours, which is read if it has that type. */
struct np_head answer_tagged(const struct session *s, const struct np_tagged *t, void *m);

/* The next answer is an error with a reason in which these words stand. */
void assert_why(const struct session *s, uint32_t code, int32_t error, const char *words);

/* A daemon at the other end of that connection answers, within LONG_MS. */
void assert_serves(int fd);

/* The whole message that comes next, which the caller frees. */
uint8_t *next_message(int fd);

/* A plan that is served: five requests of 16 bytes over TCP, responses of 8. */
struct np_plan_message five_by_plan(void);

/* An OMNI request that is served: five requests of 16 bytes over TCP, responses of 8. */
struct np_omni_request five_transactions(void);

#endif
