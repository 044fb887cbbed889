/*
 * Requests of a hostile client and answers of a hostile daemon, in every dialect: what is taken
 * makes sense, what is not names its fault.
 */
#include <sys/socket.h>

#include "bench/bench.h"
#include "run/talk.h"
#include "tests/fuzz/fuzz.h"
#include "wire/tagged.h"

static void
check_plan(const struct np_plan *p)
{
	must(p->pattern != NULL && p->transport != NULL);
	must((p->role == NP_LEAD || p->role == NP_FOLLOW) && p->pattern->side[p->role] != NULL);
	must(p->transport->family != 0 || p->family == AF_INET || p->family == AF_INET6);
	must(!p->pattern->sized || (p->request > 0 && p->response > 0));
	must(memchr(p->near.sock.cong, '\0', sizeof(p->near.sock.cong)) != NULL);
	must(!p->active);
}

static void
be_asked(const struct np_dialect *d, const uint8_t *frame)
{
	struct np_err err = { .code = NP_OK };
	struct np_plan p;

	np_plan_init(&p);
	if (d->decode_request(d, frame, &p, &err) != NP_OK) {
		must(err.code != NP_OK && err.sys > 0 && err.msg[0] != '\0');
	} else {
		check_plan(&p);
	}
	np_plan_free(&p);
}

static void
be_answered(const struct np_dialect *d, const uint8_t *frame)
{
	struct np_err err = { .code = NP_OK };
	struct np_far far;

	np_far_init(&far);
	if (d->decode_response != NULL && d->decode_response(d, frame, &far, &err) != NP_OK) {
		must(err.code == NP_EPEER && err.msg[0] != '\0');
	} else if (d->decode_response != NULL) {
		/* An omni test's datagrams may come from any port. */
		must(far.port != 0 || far.path[0] != '\0' || far.token != 0 ||
		     d == np_dialect(NP_OMNI));
		must(memchr(far.path, '\0', sizeof(far.path)) != NULL);
	}
	if (d->decode_results != NULL && d->decode_results(d, frame, &far, &err) != NP_OK) {
		must(err.code == NP_EPEER && err.msg[0] != '\0');
	} else if (d->decode_results != NULL) {
		must(far.reported);
		must(memchr(far.end.closing.cong, '\0', sizeof(far.end.closing.cong)) != NULL);
	}
}

static void
try_code(uint32_t code, const uint8_t *frame)
{
	const struct np_dialect *d = np_dialect(code);

	if (d != NULL) {
		be_asked(d, frame);
		be_answered(d, frame);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t frame[NP_FRAME_SIZE];

	fuzz_fill(frame, sizeof(frame), data, size);
	for (uint32_t code = 0; code < 1000; code++) {
		try_code(code, frame);
	}
	/* A message of ours of as many bytes as there are. */
	np_tagged_head(frame, NP_PLAN, sizeof(frame) - NP_TAGGED_AT);
	try_code(NP_PLAN, frame);
	be_asked(&np_engines_dialect, frame);
	return 0;
}
