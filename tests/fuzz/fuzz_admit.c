/*
 * What a caller says before it is let in, where a passphrase or a key is demanded; and the files
 * and lists that say who may call at all.
 */
#include "tests/fuzz/fuzz.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "netserver/admit.h"
#include "netserver/guard.h"

enum { F_KEY = 1, F_RULES = 2, F_LIST = 4 };
enum { ROUNDS = 8 };

/* A stranger never gets in: no input holds a proof of a key that is drawn anew each time. */
static void
talk(const uint8_t *data, size_t size, bool with_key)
{
	struct np_auth_key key = { .count = NP_AUTH_BYTES };
	struct ns_admit a = { .key = with_key ? &key : NULL, .passphrase = "open sesame" };

	np_auth_nonce(key.bytes);
	for (int i = 0; i < ROUNDS && size > 0; i++) {
		uint8_t frame[NP_FRAME_SIZE];
		size_t n = fuzz_fill(frame, sizeof(frame), data, size);
		struct np_err why = { .code = NP_OK };
		enum ns_admission got = ns_admit_step(&a, frame, &why);

		must(!with_key || got != NS_ADMIT_IN);
		must(got != NS_ADMIT_REFUSED || why.msg[0] != '\0');
		if (got != NS_ADMIT_MORE) {
			break;
		}
		data += n;
		size -= n;
	}
}

static void
check(const struct ns_access *a)
{
	static const uint8_t bytes[16] = { 192, 0, 2, 1 };
	struct np_addr peer;

	must(a->allows <= NS_RULES && a->denies <= NS_RULES);
	for (int family = 0; family < 2; family++) {
		np_addr_make(&peer, family == 0 ? AF_INET : AF_INET6, bytes, 1);
		(void)ns_access_admits(a, &peer);
	}
}

static void
read_rules(const uint8_t *data, size_t size)
{
	static struct ns_access a;
	struct np_err err = { .code = NP_OK };
	char path[40];
	int fd = memfd_create("rules", MFD_CLOEXEC);

	a.allows = a.denies = 0;
	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (ns_access_read(&a, path, &err) != NP_OK) {
		must(a.allows == 0 && a.denies == 0 && err.msg[0] != '\0');
	}
	close(fd);
	check(&a);
}

static void
read_list(const uint8_t *data, size_t size)
{
	static struct ns_access a;
	struct np_err err = { .code = NP_OK };
	char *text = malloc(size + 1);

	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	a.allows = a.denies = 0;
	if (ns_access_add(&a, true, text, &err) != NP_OK) {
		must(err.msg[0] != '\0');
	}
	free(text);
	check(&a);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2) {
		return -1;
	}
	if ((data[0] & F_RULES) != 0) {
		read_rules(data + 1, size - 1);
	} else if ((data[0] & F_LIST) != 0) {
		read_list(data + 1, size - 1);
	} else {
		talk(data + 1, size - 1, np_auth_built() && (data[0] & F_KEY) != 0);
	}
	return 0;
}
