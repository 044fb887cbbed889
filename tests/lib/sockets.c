#include "tests/lib/sockets.h"

#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "tests/lib/check.h"

void
close_fd(const int *fd)
{
	close(*fd);
}

void
close_both(int (*pair)[2])
{
	close((*pair)[0]);
	close((*pair)[1]);
}

struct np_addr
loopback(int family, uint32_t port)
{
	struct np_addr a;

	np_addr_make_loopback(&a, family);
	np_addr_set_port(&a, port);
	return a;
}

struct np_addr
address_at(uint32_t port, const char *format, ...)
{
	char text[NP_ADDR_TEXT];
	struct np_addrs found;
	struct np_err err;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fail_if(np_resolve(text, NULL, AF_UNSPEC, SOCK_STREAM, &found, &err) != NP_OK, "%s",
		err.msg);
	np_addr_set_port(&found.at[0], port);
	return found.at[0];
}

bool
same_address(const struct np_addr *a, const struct np_addr *b)
{
	return np_addr_same_host(a, b) && np_addr_port(a) == np_addr_port(b);
}

bool
has_family(int family)
{
	struct np_addr at = loopback(family, 0);
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool yes = fd >= 0 && bind(fd, (struct sockaddr *)&at.sa, at.len) == 0;

	close(fd);
	return yes;
}

int
bound_socket(int family, int socktype, struct np_addr *at)
{
	return bound_socket_of(family, socktype, 0, at);
}

int
bound_socket_of(int family, int socktype, int protocol, struct np_addr *at)
{
	*at = loopback(family, 0);
	if (np_family(family)->is_here) {
		at->len = sizeof(at->sa.ss_family); /* the kernel gives it a name (unix(7)) */
	}
	return bound_at(at, socktype, protocol);
}

int
bound_at(struct np_addr *at, int socktype, int protocol)
{
	int fd = socket(at->sa.ss_family, socktype | SOCK_CLOEXEC, protocol);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at->sa, at->len), 0);
	if ((socktype & ~SOCK_NONBLOCK) != SOCK_DGRAM) {
		assert_int_equal(listen(fd, 16), 0);
	}
	at->len = sizeof(at->sa);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at->sa, &at->len), 0);
	return fd;
}

int
connected_to(const struct np_addr *to)
{
	return connected_to_by(to, SOCK_STREAM, 0);
}

int
connected_to_by(const struct np_addr *to, int socktype, int protocol)
{
	int fd = socket(to->sa.ss_family, socktype | SOCK_CLOEXEC, protocol);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&to->sa, to->len), 0);
	return fd;
}

bool
wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, LONG_MS) == 1;
}

int
accepted_from(int listener)
{
	return wait_readable(listener) ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
}

ssize_t
send_datagram(int fd, const void *bytes, size_t n, const struct np_addr *to)
{
	return sendto(fd, bytes, n, 0, (const struct sockaddr *)&to->sa, to->len);
}

ssize_t
receive_datagram(int fd, void *bytes, size_t n, struct np_addr *from)
{
	from->len = sizeof(from->sa);
	return recvfrom(fd, bytes, n, 0, (struct sockaddr *)&from->sa, &from->len);
}

size_t
read_all(int fd)
{
	char bytes[65536];
	size_t total = 0;
	ssize_t n;

	while (wait_readable(fd) && (n = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
		total += (size_t)n;
	}
	return total;
}

bool
put_bytes(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n > 0) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		if (k <= 0) {
			return false;
		}
		p += k;
		n -= (size_t)k;
	}
	return true;
}

bool
get_bytes(int fd, void *bytes, size_t n)
{
	char *p = bytes;

	while (n > 0) {
		ssize_t k = wait_readable(fd) ? recv(fd, p, n, 0) : -1;

		if (k <= 0) {
			return false;
		}
		p += k;
		n -= (size_t)k;
	}
	return true;
}

int
lingering_socket(int seconds, int *listener)
{
	const struct linger l = { .l_onoff = 1, .l_linger = seconds };
	static const char bytes[65536];
	struct np_addr at;
	int fd;

	*listener = bound_socket(AF_INET, SOCK_STREAM, &at);
	fd = connected_to(&at);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
	}
	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool
pass_descriptors(int via, const void *bytes, size_t n, const int *fds, size_t count)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} passed;
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = n };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = &passed,
			    .msg_controllen = CMSG_SPACE(count * sizeof(int)) };

	memset(&passed, 0, sizeof(passed));
	passed.head.cmsg_level = SOL_SOCKET;
	passed.head.cmsg_type = SCM_RIGHTS;
	passed.head.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&passed.head), fds, count * sizeof(int));
	return sendmsg(via, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

bool
own_network(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;
	bool up;

	if (unshare(CLONE_NEWNET) != 0) {
		return false;
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	up = ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
	close(fd);
	return up;
}
