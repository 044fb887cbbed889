/*
 * Plain loopback sockets for tests to play the far end with. A test that includes this needs no
 * other include for netinet/in.h and sys/socket.h.
 */
#ifndef NP_TESTS_SOCKETS_H
#define NP_TESTS_SOCKETS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net/addr.h"

/* For FREED_BY(). */
void close_fd(const int *fd);
void close_both(int (*pair)[2]);

/* 127.0.0.1 or ::1 with that port. */
struct np_addr loopback(int family, uint32_t port);

/* An address in words, as for printf(); of port 0, or of that one. */
#define address(...) address_at(0, __VA_ARGS__)
struct np_addr
address_at(uint32_t port, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same host and port. */
bool same_address(const struct np_addr *a, const struct np_addr *b);

/* Can this machine use the family on its loopback interface? */
bool has_family(int family);

/* A socket bound to a free loopback port (AF_UNIX: an abstract name), which *at tells; all but
 * datagrams listen. Fails the test if not.
 */
int bound_socket(int family, int socktype, struct np_addr *at);
int bound_socket_of(int family, int socktype, int protocol, struct np_addr *at);

/* The same at the address that *at has. */
int bound_at(struct np_addr *at, int socktype, int protocol);

/* A connected socket: of a stream, or of another kind. */
int connected_to(const struct np_addr *to);
int connected_to_by(const struct np_addr *to, int socktype, int protocol);

/* Wait until the descriptor is readable; false after LONG_MS. */
bool wait_readable(int fd);

/* Accept one connection within LONG_MS, or -1. */
int accepted_from(int listener);

/* As sendto(2) and recvfrom(2). */
ssize_t send_datagram(int fd, const void *bytes, size_t n, const struct np_addr *to);
ssize_t receive_datagram(int fd, void *bytes, size_t n, struct np_addr *from);

/* Read to the end; returns the number of bytes. */
size_t read_all(int fd);

/* Move exactly n bytes, or return false. */
bool put_bytes(int fd, const void *bytes, size_t n);
bool get_bytes(int fd, void *bytes, size_t n);

/*
 * A connected socket with data that nobody takes, and `seconds` to linger: where it is closed
 * last, close(2) waits. *listener keeps its other end. -1 where this process may not set that.
 */
int lingering_socket(int seconds, int *listener);

/* Enter a network namespace of its own: no test beside this one has its ports or frames. */
bool own_network(void);

/* Send bytes with descriptors, at most 8. False with errno, as sendmsg(2). */
bool pass_descriptors(int via, const void *bytes, size_t n, const int *fds, size_t count);

#endif
