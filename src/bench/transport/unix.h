/* Names of sockets of the UNIX domain in the file system. */
#ifndef NP_BENCH_TRANSPORT_UNIX_H
#define NP_BENCH_TRANSPORT_UNIX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct np_addr;

/* The address of socket `number`; `first` is that of number 0. False: its path is too long. */
bool np_unix_another(const struct np_addr *first, uint32_t number, struct np_addr *out);

/* Remove the names that a killed process of this user has left in /tmp. */
void np_unix_sweep(pid_t dead);

#endif
