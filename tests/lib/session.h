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
	struct np_err err;
	int rc;
	pthread_t thread;
};

void session_open(struct session *s);

/* The same as a daemon that has a directory of fill files. */
void session_open_with(struct session *s, int fill_dir);

/* The same with all that the daemon's program may set; log and peer are filled in here. */
void session_open_as(struct session *s, const struct np_server *server);

/* Hang up; returns what the session ended with. */
int session_close(struct session *s);

/* Send a request. */
void ask(const struct session *s, uint32_t code, np_layout *layout, const void *m);

/* The same for a message of tagged fields. */
void ask_tagged(const struct session *s, const struct np_tagged *t, const void *m);

/* The next answer's head; its body, too, unless layout is NULL. */
struct np_head answer(const struct session *s, np_layout *layout, void *m);

/* The same of a message of tagged fields, which is read if it has that code and no error. */
struct np_head answer_tagged(const struct session *s, const struct np_tagged *t, void *m);

/* A plan that is served: five requests of 16 bytes over TCP, responses of 8. */
struct np_plan_message five_by_plan(void);

/* An OMNI request that is served: five requests of 16 bytes over TCP, responses of 8. */
struct np_omni_request five_transactions(void);

#endif
