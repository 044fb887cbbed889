/*
 * System calls of the loops, without libc where possible: its wrappers are cancellation points,
 * which with threads cost some 50 instructions (glibc 2.36, by callgrind), as much as the rest of a
 * loop. Signals interrupt ours, not cancellation. Results and errno are as in the manual pages.
 */
#ifndef NP_BENCH_ENGINE_SYSCALL_H
#define NP_BENCH_ENGINE_SYSCALL_H

#include <errno.h>
#include <stddef.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/sanitized.h"

/* Sanitizers check the buffers of libc's wrappers, but do not see direct system calls. */
#if defined(SYS_sendto) && defined(SYS_recvfrom) && defined(SYS_connect) &&                        \
    defined(SYS_accept4) && !NP_SANITIZED
#define NP_SYS_DIRECT 1
#else
#define NP_SYS_DIRECT 0
#endif

/* On x86-64 inline: unlike syscall(2), that moves no argument, and saves 15 instructions a call. */
#if defined(__x86_64__) && !defined(__ILP32__)
/* The kernel returns -errno; turn it into -1 with errno. */
static inline long
np_syscall_result(long rc)
{
	if (__builtin_expect(rc < 0, 0)) {
		errno = (int)-rc;
		return -1;
	}
	return rc;
}

static inline long
np_syscall4(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long rc;

	__asm__ volatile("syscall"
			 : "=a"(rc)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return np_syscall_result(rc);
}

static inline long
np_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long rc;

	__asm__ volatile("syscall"
			 : "=a"(rc)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return np_syscall_result(rc);
}
#else
static inline long
np_syscall4(long number, long a, long b, long c, long d)
{
	return syscall(number, a, b, c, d);
}

static inline long
np_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	return syscall(number, a, b, c, d, e, f);
}
#endif

/* The direct call where there is one, else libc's. */
#if NP_SYS_DIRECT
#define NP_SYS(direct, by_libc) (direct)
#else
#define NP_SYS(direct, by_libc) (by_libc)
#endif

/* sendto(2) with flags, which must include MSG_NOSIGNAL. to NULL, len 0: a connected socket. */
static inline ssize_t
np_sys_sendto_flags(int fd, const void *buf, size_t size, int flags, const void *to, socklen_t len)
{
	return NP_SYS(np_syscall(SYS_sendto, fd, (long)buf, (long)size, flags, (long)to, len),
		      sendto(fd, buf, size, flags, to, len));
}

static inline ssize_t
np_sys_sendto(int fd, const void *buf, size_t size, const void *to, socklen_t len)
{
	return np_sys_sendto_flags(fd, buf, size, MSG_NOSIGNAL, to, len);
}

/* recv(2) with flags. */
static inline ssize_t
np_sys_recv(int fd, void *buf, size_t size, int flags)
{
	return NP_SYS(np_syscall(SYS_recvfrom, fd, (long)buf, (long)size, flags, 0, 0),
		      recv(fd, buf, size, flags));
}

static inline ssize_t
np_sys_recvfrom(int fd, void *buf, size_t size, void *from, socklen_t *len)
{
	return NP_SYS(np_syscall(SYS_recvfrom, fd, (long)buf, (long)size, 0, (long)from, (long)len),
		      recvfrom(fd, buf, size, 0, from, len));
}

static inline ssize_t
np_sys_sendfile(int fd, int from, off_t *at, size_t size)
{
#if NP_SYS_DIRECT && defined(SYS_sendfile) && defined(__LP64__)
	return np_syscall4(SYS_sendfile, fd, from, (long)at, (long)size);
#else
	return sendfile(fd, from, at, size);
#endif
}

static inline ssize_t
np_sys_write(int fd, const void *buf, size_t size)
{
	return NP_SYS(np_syscall4(SYS_write, fd, (long)buf, (long)size, 0), write(fd, buf, size));
}

static inline int
np_sys_connect(int fd, const void *to, socklen_t len)
{
	return (int)NP_SYS(np_syscall4(SYS_connect, fd, (long)to, len, 0), connect(fd, to, len));
}

/* accept4(2), always with SOCK_CLOEXEC. from and len NULL: the address is not wanted. */
static inline int
np_sys_accept(int fd, int flags, void *from, socklen_t *len)
{
	flags |= SOCK_CLOEXEC;
	return (int)NP_SYS(np_syscall4(SYS_accept4, fd, (long)from, (long)len, flags),
			   accept4(fd, from, len, flags));
}

static inline int
np_sys_close(int fd)
{
	return (int)NP_SYS(np_syscall4(SYS_close, fd, 0, 0, 0), close(fd));
}

#endif
