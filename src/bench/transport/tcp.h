/* Functions of TCP that transports on top of it use, too. */
#ifndef NP_BENCH_TRANSPORT_TCP_H
#define NP_BENCH_TRANSPORT_TCP_H

#include "base/err.h"

struct np_plan;
struct np_run;
struct np_sockopts;

/* np_transport.options, .establish and .read_closing_first of TCP. */
void np_tcp_options(const struct np_plan *p, struct np_sockopts *o);
int np_tcp_establish(struct np_run *run, struct np_err *err);
void np_tcp_read_closing_first(struct np_run *run, int fd);

/* Members common to the rows of TCP and of transports on top of it. */
#define NP_ON_TCP                                                                                  \
	.socktype = SOCK_STREAM, .reliable = true, .connected = true, .named = true,               \
	.ip_protocol = IPPROTO_TCP, .options = np_tcp_options, .another = np_endpoint_another,     \
	.establish = np_tcp_establish

/* Part of np_transport.read_closing: record the MSS and the congestion control of a connection. */
void np_tcp_read_settings(struct np_run *run, int fd);

#endif
