/* A build without libseccomp. */
#include "netserver/filter.h"

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
