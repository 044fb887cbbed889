/*
 * Rings that a process is given before it is confined: what they do, what they refuse, and that
 * tests take turns with them.
 */
#include "bench/engine/uring_ring.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "netserver/confine.h"
#include "netserver/filter.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"

enum { ODD = 200 }; /* a child's exit status for what no case is about */

static void
needs_rings(void)
{
	const char *why = np_urings_lack();

	skip_if(why != NULL, "no rings: %s", why);
}

/* What a child makes of it, which has one ring and, if so, is confined as a session. */
static int
outcome(int (*try)(void), bool confined)
{
	struct ns_sandbox box = { .urings = 1 };
	struct np_err err = { .code = NP_OK };
	pid_t pid = fork();

	if (pid == 0) {
		if (np_urings_prepare(1, &err) != NP_OK ||
		    (confined && (ns_confine_daemon(NULL, false, &err) != NP_OK ||
				  ns_confine_session(&box, &err) != NP_OK))) {
			fprintf(stderr, "%s\n", err.msg);
			_exit(ODD);
		}
		_exit(try());
	}
	return ended(pid);
}

/* The ring, in which a socket of TCP is registered that is connected to nobody. */
static struct np_uring *
ready_ring(void)
{
	struct np_err err;
	struct np_uring *u = np_uring_take(&err);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);

	if (u == NULL || fd < 0 || io_uring_register_files(&u->ring, &fd, 1) != 0) {
		_exit(ODD);
	}
	return u;
}

static void
send_by_a_registered_one(struct io_uring_sqe *sqe)
{
	io_uring_prep_send(sqe, 0, "", 1, MSG_NOSIGNAL);
	sqe->flags = IOSQE_FIXED_FILE;
}

static void
send_by_a_descriptor(struct io_uring_sqe *sqe)
{
	io_uring_prep_send(sqe, 1, "", 1, MSG_NOSIGNAL);
}

static void
send_in_a_thread_of_the_kernel(struct io_uring_sqe *sqe)
{
	io_uring_prep_send(sqe, 0, "", 1, MSG_NOSIGNAL);
	sqe->flags = IOSQE_FIXED_FILE | IOSQE_ASYNC;
}

static void
open_a_file(struct io_uring_sqe *sqe)
{
	io_uring_prep_openat(sqe, AT_FDCWD, "/etc/passwd", O_RDONLY, 0);
	sqe->flags = IOSQE_FIXED_FILE;
}

static void
connect_elsewhere(struct io_uring_sqe *sqe)
{
	static const struct sockaddr at = { .sa_family = AF_INET };

	io_uring_prep_connect(sqe, 0, &at, sizeof(at));
	sqe->flags = IOSQE_FIXED_FILE;
}

static void
send_a_descriptor(struct io_uring_sqe *sqe)
{
	static const struct msghdr none;

	io_uring_prep_sendmsg(sqe, 0, &none, 0);
	sqe->flags = IOSQE_FIXED_FILE;
}

static const struct {
	void (*prepare)(struct io_uring_sqe *sqe);
	int error;
} requests[] = {
	{ send_by_a_registered_one, EPIPE },
	{ send_by_a_descriptor, EACCES },
	{ send_in_a_thread_of_the_kernel, EACCES },
	{ open_a_file, EACCES },
	{ connect_elsewhere, EACCES },
	{ send_a_descriptor, EACCES },
};
static size_t request; /* the one to be made */

/* The errno of that request, 0: it worked. */
static int
make_request(void)
{
	struct np_uring *u = ready_ring();
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
	struct io_uring_cqe *cqe;

	if (sqe == NULL) {
		return ODD;
	}
	requests[request].prepare(sqe);
	return io_uring_submit(&u->ring) != 1 || io_uring_wait_cqe(&u->ring, &cqe) != 0 ? ODD
											: -cqe->res;
}

static int
lift_the_restrictions(void)
{
	struct np_uring *u = ready_ring();

	return syscall(SYS_io_uring_register, u->ring.ring_fd, IORING_REGISTER_RESTRICTIONS, NULL,
		       0) == 0
		   ? 0
		   : errno;
}

static int
register_memory(void)
{
	struct np_uring *u = ready_ring();
	char byte;
	struct iovec v = { .iov_base = &byte, .iov_len = 1 };

	return -io_uring_register_buffers(&u->ring, &v, 1);
}

static int
make_another(void)
{
	struct io_uring another;

	return -io_uring_queue_init(4, &another, 0);
}

TEST(a_prepared_ring_does_nothing_else)
{
	needs_rings();
	for (int confined = 0; confined <= !NP_SANITIZED; confined++) {
		bool filtered = confined != 0;

		for (request = 0; request < LEN(requests); request++) {
			assert_int_equal(outcome(make_request, filtered), requests[request].error);
		}
		filtered = filtered && ns_filter_lacks() == NULL;
		assert_int_equal(outcome(lift_the_restrictions, filtered),
				 filtered ? EPERM : EACCES);
		assert_int_equal(outcome(register_memory, filtered), filtered ? EPERM : EACCES);
		assert_int_equal(outcome(make_another, filtered), filtered ? -SIGSYS : 0);
	}
}

TEST(a_process_that_was_given_none_has_none)
{
	struct np_err err;

	needs_rings();
	assert_int_equal(np_urings_unused(), UINT32_MAX);
	assert_int_equal(np_urings_prepare(0, &err), NP_OK);
	assert_int_equal(np_urings_unused(), 0);
	assert_non_null(strstr(np_urings_lack(), "--uring"));
	assert_null(np_uring_take(&err));
	np_urings_release();
	assert_null(np_urings_lack());
}

/* Both ends' are there again for the next test. */
TEST(tests_take_turns)
{
	struct np_err err;
	struct ends e;

	needs_rings();
	assert_int_equal(np_urings_prepare(2, &err), NP_OK);
	for (int i = 0; i < 3; i++) {
		ends_plan(&e, np_bench_find("TCP_RR"), AF_INET, -500);
		e.client.plan.near.place.engine = e.client.plan.far.place.engine = &np_engine_uring;
		e.client.plan.flows = 3;
		e.client.plan.burst = 4;
		ends_make(&e);
		assert_int_equal(np_urings_unused(), 0);
		ends_run(&e, 0);
		assert_transactions(&e, 500);
		assert_true(e.client.run.worker->engine.count[NP_E_SUBMISSIONS] > 0);
		assert_true(e.client.run.worker->engine.count[NP_E_COMPLETIONS] >= 500);
		ends_free(&e);
		assert_int_equal(np_urings_unused(), 2);
	}
	np_urings_release();
}

/* From here on making a ring fails. */
static void
refuse_rings(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = LEN(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
		_exit(ODD);
	}
}

/* Does a process that can have no ring for that reason say this of it? Then 0. */
static int
says(int error, const char *words)
{
	struct np_err err;

	refuse_rings(error);
	return np_urings_lack() != NULL && strstr(np_urings_lack(), words) != NULL &&
		       np_uring_take(&err) == NULL && strstr(err.msg, words) != NULL &&
		       np_urings_prepare(2, &err) == NP_ESYS && strstr(err.msg, words) != NULL &&
		       np_urings_unused() == 0 && strstr(np_urings_lack(), words) != NULL
		   ? 0
		   : ODD;
}

TEST(a_machine_without_rings_is_told_of)
{
	needs_rings();
	assert_int_equal(IN_CHILD(says(ENOSYS, "no io_uring in this kernel")), 0);
	assert_int_equal(IN_CHILD(says(EPERM, "forbidden here")), 0);
	assert_int_equal(IN_CHILD(says(EINVAL, "too old")), 0);
	assert_int_equal(IN_CHILD(says(ENOMEM, "ulimit -l")), 0);
}

TEST_MAIN(np_drive_prepare())
