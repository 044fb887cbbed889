/*
 * Network namespaces by the names that iproute2 gives them.
 */
#ifndef NP_TESTS_LINK_NS_H
#define NP_TESTS_LINK_NS_H

#include "base/err.h"

#include <stdbool.h>

/* A namespace that was entered, by its name in the file system. */
struct np_ns {
	const char *path; /* such as /run/netns/NAME */
	int fd;
};

/* Opens the namespace of a path. NP_ESYS. */
int np_ns_open(struct np_ns *ns, const char *path, struct np_err *err);

/* Puts the calling thread into it (setns(2)). NP_ESYS. */
int np_ns_enter(const struct np_ns *ns, struct np_err *err);

/* Whether the path still names this namespace. */
bool np_ns_there(const struct np_ns *ns);

void np_ns_close(struct np_ns *ns);

#endif
