/* A build without libseccomp. */
#include "netserver/filter.h"

#include <unistd.h>

const char *
ns_filter_lacks(void)
{
	return "built without libseccomp";
}

int
ns_filter_make(const struct ns_sandbox *s, struct sock_fprog *program, struct np_err *err)
{
	return NP_OK;
}

int
ns_filter_install(struct sock_fprog *program, struct ns_seal *seal, struct np_err *err)
{
	return NP_OK;
}

int
ns_filter_socket(int fd, bool sends, struct np_err *err)
{
	return NP_OK;
}

long
ns_sealed(const struct ns_seal *seal, long call, long a, long b, long c, long d)
{
	return syscall(call, a, b, c, d);
}
