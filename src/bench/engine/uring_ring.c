#include "bench/engine/uring_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Entries of a ring. If requests do not fit, they are submitted a little sooner; the kernel keeps
 * completions that do not fit. TRIAL: requests of a ring that is only made to see if it can be.
 */
enum { REQUESTS = 1024, COMPLETIONS = 4096, TRIAL = 4 };

/* Rings prepared for this process: like its filter, made before it reads anything from a client. */
static struct {
	bool settled; /* this process makes no others */
	uint32_t count;
	struct np_uring *ring;
	const char *why; /* why there are none, as text for a message */
} prepared;

/*
 * Make a ring; 0 or -errno. Completions are made when the thread that uses it makes a system call.
 * Deferred task work (IORING_SETUP_DEFER_TASKRUN) makes only 20 receives in each, which is slower
 * with many connections, and binds a ring to one thread.
 */
static int
make_ring(struct io_uring *ring, unsigned requests, unsigned flags)
{
	struct io_uring_params p;

	memset(&p, 0, sizeof(p));
	p.flags = flags | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL;
	p.cq_entries = requests == TRIAL ? 2 * TRIAL : COMPLETIONS;
	return io_uring_queue_init_params(requests, ring, &p);
}

/* io_uring_register(2): liburing 2.3 has no function for two of the codes. Returns 0 or -errno. */
static int
do_register(struct io_uring *ring, unsigned code, void *arg, unsigned count)
{
	return syscall(SYS_io_uring_register, ring->ring_fd, code, arg, count) == 0 ? 0 : -errno;
}

/* Why a ring could not be made, by errno. */
static const char *
explain(int error)
{
	switch (error) {
	case EPERM:
	case EACCES:
		return "io_uring is forbidden here (kernel.io_uring_disabled, or a container's "
		       "rules)";
	case ENOSYS:
		return "no io_uring in this kernel";
	case ENOMEM:
		return "no memory for a ring (ulimit -l)";
	case EINVAL:
		return "its io_uring is too old: it needs multishot receives (Linux 6.0)";
	default:
		return "a ring cannot be made";
	}
}

const char *
np_urings_lack(void)
{
	struct io_uring ring;
	int rc;
	struct io_uring_probe *p;
	bool has;

	if (prepared.settled) {
		return prepared.count > 0 ? NULL : prepared.why;
	}
	rc = make_ring(&ring, TRIAL, 0);
	if (rc != 0) {
		return explain(-rc);
	}
	/* Multishot receives cannot be probed; SEND_ZC came in the same release of Linux. */
	p = io_uring_get_probe_ring(&ring);
	has = p != NULL && io_uring_opcode_supported(p, IORING_OP_SEND_ZC);
	io_uring_free_probe(p);
	io_uring_queue_exit(&ring);
	return has ? NULL : explain(EINVAL);
}

uint32_t
np_urings_unused(void)
{
	uint32_t count = 0;

	if (!prepared.settled) {
		return UINT32_MAX;
	}
	for (uint32_t i = 0; i < prepared.count; i++) {
		count += !prepared.ring[i].taken;
	}
	return count;
}

/* All that the engine needs: a few operations, on registered sockets only. */
static const struct io_uring_restriction rules[] = {
	{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_SEND },
	{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_RECV },
	{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_POLL_ADD },
	{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_ASYNC_CANCEL },
	{ .opcode = IORING_RESTRICTION_SQE_FLAGS_REQUIRED, .sqe_flags = IOSQE_FIXED_FILE },
	{ .opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED,
	  .sqe_flags = IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT | IOSQE_IO_LINK },
	{ .opcode = IORING_RESTRICTION_REGISTER_OP, .register_op = IORING_REGISTER_FILES },
	{ .opcode = IORING_RESTRICTION_REGISTER_OP, .register_op = IORING_UNREGISTER_FILES },
	{ .opcode = IORING_RESTRICTION_REGISTER_OP, .register_op = IORING_REGISTER_PBUF_RING },
	{ .opcode = IORING_RESTRICTION_REGISTER_OP, .register_op = IORING_UNREGISTER_PBUF_RING },
};

/* Make a ring that obeys `rules`: they are set while it is disabled. Returns 0 or -errno. */
static int
make_restricted(struct np_uring *u)
{
	struct io_uring *ring = &u->ring;
	struct io_uring_restriction copy[sizeof(rules) / sizeof(rules[0])];
	int rc = make_ring(ring, REQUESTS, IORING_SETUP_R_DISABLED);

	if (rc != 0) {
		return rc;
	}
	memcpy(copy, rules, sizeof(rules)); /* which are const */
	rc =
	    do_register(ring, IORING_REGISTER_RESTRICTIONS, copy, sizeof(rules) / sizeof(rules[0]));
	if (rc == 0) {
		rc = do_register(ring, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
	}
	if (rc != 0) {
		io_uring_queue_exit(ring);
	}
	return rc;
}

int
np_urings_prepare(uint32_t count, struct np_err *err)
{
	np_urings_release();
	prepared.settled = true;
	prepared.why =
	    "this session has no rings: start netserver with --uring N, or wait until fewer than "
	    "--max-filters sessions have some";
	prepared.ring = count > 0 ? np_cache_lines_new(count, sizeof(*prepared.ring)) : NULL;
	if (prepared.ring == NULL && count > 0) {
		prepared.why = explain(ENOMEM);
		return np_fail(err, NP_ESYS, ENOMEM, "memory for %u rings", count);
	}
	for (; prepared.count < count; prepared.count++) {
		struct np_uring *u = &prepared.ring[prepared.count];
		int rc = make_restricted(u);

		if (rc != 0) {
			prepared.why = explain(-rc);
			return np_fail(err, NP_ESYS, -rc, "make ring %u of --uring %u: %s",
				       prepared.count + 1, count, prepared.why);
		}
		u->prepared = true;
	}
	return NP_OK;
}

void
np_urings_release(void)
{
	for (uint32_t i = 0; i < prepared.count; i++) {
		io_uring_queue_exit(&prepared.ring[i].ring);
	}
	free(prepared.ring);
	memset(&prepared, 0, sizeof(prepared));
}

struct np_uring *
np_uring_take(struct np_err *err)
{
	struct np_uring *u;
	int rc = -ENOMEM;

	if (prepared.settled) {
		for (uint32_t i = 0; i < prepared.count; i++) {
			if (!prepared.ring[i].taken) {
				prepared.ring[i].taken = true;
				return &prepared.ring[i];
			}
		}
		np_fail(err, NP_EUNSUP, 0,
			"the engine uring needs a ring for each thread, and there are only %u",
			prepared.count);
		return NULL;
	}
	u = np_cache_lines_new(1, sizeof(*u));
	if (u != NULL) {
		rc = make_ring(&u->ring, REQUESTS, 0);
	}
	if (rc != 0) {
		np_fail(err, NP_ESYS, -rc, "make a ring: %s", explain(-rc));
		free(u);
		return NULL;
	}
	return u;
}

void
np_uring_give(struct np_uring *u)
{
	if (u->prepared) {
		u->taken = u->is_lost; /* a lost one stays taken */
		return;
	}
	io_uring_queue_exit(&u->ring);
	free(u);
}
