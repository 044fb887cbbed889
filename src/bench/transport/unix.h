/*
 * The names of sockets of the UNIX domain, and what is left of them where others look for them.
 */
#ifndef NP_BENCH_TRANSPORT_UNIX_H
#define NP_BENCH_TRANSPORT_UNIX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct np_addr;

/* The path of one of several sockets, of which number 0 has that one. False: it is too long. */
bool np_unix_another(const struct np_addr *first, uint32_t number, struct np_addr *out);

/*
 * Remove the names that a process of this user's has left in /tmp, being dead without having had a
 * chance to do so itself.
 */
void np_unix_sweep(pid_t dead);

#endif
