/*
 * On i386, s390 and others libc uses socketcall(2), with arguments in memory, where no filter of
 * system calls sees them (netserver/filter_seccomp.c). These replace libc's functions by the
 * separate calls of Linux 4.3. musl does so itself.
 */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(SYS_socketcall) && defined(SYS_socket) && defined(__GLIBC__)

int
socket(int family, int type, int protocol)
{
	return (int)syscall(SYS_socket, family, type, protocol);
}

int
bind(int fd, const struct sockaddr *to, socklen_t len)
{
	return (int)syscall(SYS_bind, fd, to, len);
}

int
connect(int fd, const struct sockaddr *to, socklen_t len)
{
	return (int)syscall(SYS_connect, fd, to, len);
}

int
listen(int fd, int backlog)
{
	return (int)syscall(SYS_listen, fd, backlog);
}

int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}

ssize_t
sendto(int fd, const void *buf, size_t size, int flags, const struct sockaddr *to, socklen_t len)
{
	return syscall(SYS_sendto, fd, buf, size, flags, to, len);
}

ssize_t
send(int fd, const void *buf, size_t size, int flags)
{
	return sendto(fd, buf, size, flags, NULL, 0);
}

ssize_t
sendmsg(int fd, const struct msghdr *m, int flags)
{
	return syscall(SYS_sendmsg, fd, m, flags);
}
#else
typedef int np_multiplex_none; /* a source file must declare something */
#endif
