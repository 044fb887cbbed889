/* A build without OpenSSL. */
#include <errno.h>

#include "bench/transport/tls.h"

const char *
np_tls_lacks(void)
{
	return "this build has no TLS (it was made without OpenSSL)";
}

struct np_tls *
np_tls_new(const struct np_tls_suite *suite, const struct np_key *key, bool server,
	   struct np_err *err)
{
	np_fail(err, NP_EUNSUP, EOPNOTSUPP, "%s", np_tls_lacks());
	return NULL;
}

void
np_tls_free(struct np_tls *tls)
{
}

int
np_tls_handshake(const struct np_tls *tls, int fd, const struct np_stop *stop, unsigned timeout_ms,
		 struct np_tls_secrets *secrets, struct np_err *err)
{
	return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "%s", np_tls_lacks());
}

bool
np_tls_expand(const struct np_tls_suite *suite, const uint8_t *secret, const char *label,
	      uint8_t *out, size_t size)
{
	return false;
}
