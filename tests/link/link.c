#include "tests/link/link.h"

#include "base/fds.h"
#include "base/text.h"
#include "tests/link/carry.h"
#include "tests/link/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { ENDS = 2, MESSAGE_MAX = 8192 };

/* Where a link takes commands, unless it is told another name. */
#define CONTROL "netlab-link"

/* Of address space for each direction; memory is taken as packets need it. */
#define ROOM ((size_t)256 << 20)

/* How often it is looked whether the namespaces still have their names. */
#define LOOK_MS 1000

struct link {
	char device[IFNAMSIZ];
	const char *control;
	struct np_ns ns[ENDS];
	int tun[ENDS];
	int listener;
	struct np_line_plan plan;
	struct np_carry *way[ENDS]; /* from that end to the other */
};

/* --- setting up -------------------------------------------------------------------------- */

static int
read_words(struct link *l, char *const *words, const char **paths, struct np_err *err)
{
	for (; *words != NULL; words++) {
		if (strncmp(*words, "one=", 4) == 0) {
			paths[0] = *words + 4;
		} else if (strncmp(*words, "two=", 4) == 0) {
			paths[1] = *words + 4;
		} else if (strncmp(*words, "device=", 7) == 0) {
			snprintf(l->device, sizeof(l->device), "%s", *words + 7);
		} else if (strncmp(*words, "control=", 8) == 0) {
			l->control = *words + 8;
		} else if (np_line_plan_word(&l->plan, *words, err) != NP_OK) {
			return err->code;
		}
	}
	if (paths[0] == NULL || paths[1] == NULL || l->device[0] == '\0') {
		return np_usage(err, "one=PATH, two=PATH and device=NAME are needed");
	}
	return np_line_plan_check(&l->plan, err);
}

/* A TUN device in the namespace of the caller. It is gone when its descriptor is. */
static int
open_tun(const char *device, struct np_err *err)
{
	struct ifreq wanted = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		np_fail(err, NP_EUNSUP, errno, "open /dev/net/tun");
		return -1;
	}
	snprintf(wanted.ifr_name, sizeof(wanted.ifr_name), "%s", device);
	/* No offloads: what is read is what a wire would carry. */
	if (ioctl(fd, TUNSETIFF, &wanted) != 0 || ioctl(fd, TUNSETOFFLOAD, 0UL) != 0) {
		np_fail(err, NP_ESYS, errno, "a TUN device %s", device);
		close(fd);
		return -1;
	}
	return fd;
}

/* An abstract name is the namespace's own, and gone with the process. */
static socklen_t
control_address(struct sockaddr_un *sa, const char *name)
{
	const size_t len = strnlen(name, sizeof(sa->sun_path) - 1);

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(sa->sun_path + 1, name, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

static int
open_listener(struct link *l, struct np_err *err)
{
	struct sockaddr_un sa;
	socklen_t len = control_address(&sa, l->control);

	l->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (l->listener < 0 || bind(l->listener, (struct sockaddr *)&sa, len) != 0 ||
	    listen(l->listener, 4) != 0) {
		return np_fail(err, NP_ESYS, errno, "listen for commands");
	}
	return NP_OK;
}

static int
set_up(struct link *l, const char *const *paths, struct np_err *err)
{
	for (int i = 0; i < ENDS; i++) {
		if (np_ns_open(&l->ns[i], paths[i], err) != NP_OK ||
		    np_ns_enter(&l->ns[i], err) != NP_OK) {
			return err->code;
		}
		l->tun[i] = open_tun(l->device, err);
		if (l->tun[i] < 0) {
			return err->code;
		}
	}
	for (int i = 0; i < ENDS; i++) {
		l->way[i] = malloc(sizeof(*l->way[i]));
		if (l->way[i] == NULL) {
			return np_fail(err, NP_ESYS, errno, "memory");
		}
		/* Each direction chooses for itself. */
		struct np_line_plan plan = l->plan;

		plan.seed += (uint64_t)i << 32;
		if (np_carry_init(l->way[i], l->tun[i], l->tun[1 - i], &plan, ROOM, err) != NP_OK) {
			return err->code;
		}
	}
	return open_listener(l, err);
}

/* --- commands ---------------------------------------------------------------------------- */

struct text {
	char at[MESSAGE_MAX];
	size_t used;
};

#define ADD(t, ...) ((t)->used = np_text_add((t)->at, sizeof((t)->at), (t)->used, __VA_ARGS__))

static void
add_member(void *arg, const char *name, uint64_t value)
{
	struct text *t = arg;

	ADD(t, "\"%s\": %" PRIu64 ", ", name, value);
}

/* The us below which this share of the latenesses is. */
static unsigned
late_percentile(const struct np_carry_shown *s, uint64_t all, double share)
{
	uint64_t sum = 0;

	for (unsigned us = 0; us < NP_CARRY_LATE_US; us++) {
		sum += atomic_load_explicit(&s->late[us], memory_order_relaxed);
		if ((double)sum >= share * (double)all) {
			return us + 1;
		}
	}
	return NP_CARRY_LATE_US + 1;
}

static void
show_way(struct text *t, const char *name, const struct np_carry *c)
{
	const struct np_carry_shown *s = &c->shown;
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{ "received", s->received },   { "forwarded", s->forwarded },
		{ "lost", s->lost },           { "dropped", s->dropped },
		{ "no_room", s->no_room },     { "duplicated", s->duplicated },
		{ "reordered", s->reordered }, { "held", s->held },
		{ "unsent", s->unsent },
	};
	uint64_t all = 0;

	for (unsigned us = 0; us <= NP_CARRY_LATE_US; us++) {
		all += s->late[us];
	}
	ADD(t, "\"%s\": {", name);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		add_member(t, counts[i].name, counts[i].value);
	}
	ADD(t,
	    "\"late_us\": {\"packets\": %" PRIu64 ", \"mean\": %.2f, \"max\": %.2f, \"p50\": %u, "
	    "\"p90\": %u, \"p99\": %u, \"p99.9\": %u}}",
	    all, all == 0 ? 0.0 : (double)s->late_sum_ns / (double)all / 1e3,
	    (double)s->late_max_ns / 1e3, late_percentile(s, all, 0.5),
	    late_percentile(s, all, 0.9), late_percentile(s, all, 0.99),
	    late_percentile(s, all, 0.999));
}

static void
show_all(struct link *l, struct text *t)
{
	ADD(t, "{\"pid\": %d, \"plan\": {", (int)getpid());
	np_line_plan_tell(&l->plan, add_member, t);
	ADD(t, "\"ends\": %d}, ", ENDS);
	show_way(t, "client", l->way[0]);
	ADD(t, ", ");
	show_way(t, "server", l->way[1]);
	ADD(t, "}\n");
}

static int
set_all(struct link *l, char *words, struct np_err *err)
{
	struct np_line_plan plan = l->plan;
	char *rest = NULL;

	for (char *w = strtok_r(words, " ", &rest); w != NULL; w = strtok_r(NULL, " ", &rest)) {
		if (np_line_plan_word(&plan, w, err) != NP_OK) {
			return err->code;
		}
	}
	if (np_line_plan_check(&plan, err) != NP_OK) {
		return err->code;
	}
	l->plan = plan;
	for (int i = 0; i < ENDS; i++) {
		struct np_line_plan each = plan;

		each.seed += (uint64_t)i << 32;
		np_carry_set(l->way[i], &each);
	}
	return NP_OK;
}

/* The answer to a command; one that begins with '!' is a refusal. */
static void
obey(struct link *l, char *command, struct text *answer)
{
	struct np_err err = { 0 };

	if (strcmp(command, "show") == 0) {
		show_all(l, answer);
	} else if (strcmp(command, "clear") == 0) {
		for (int i = 0; i < ENDS; i++) {
			atomic_store(&l->way[i]->clear, true);
		}
	} else if (strncmp(command, "set ", 4) == 0) {
		if (set_all(l, command + 4, &err) != NP_OK) {
			ADD(answer, "!%s", err.msg);
		}
	} else {
		ADD(answer, "!%s: no such command", command);
	}
}

static bool
may_command(int fd)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.uid == geteuid();
}

static void
answer_one(struct link *l)
{
	const struct timeval soon = { .tv_sec = 2 };
	char command[1024];
	struct text answer = { .used = 0 };
	int fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC);
	ssize_t n;

	if (fd < 0) {
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	n = may_command(fd) ? recv(fd, command, sizeof(command) - 1, MSG_TRUNC) : -1;
	if (n >= (ssize_t)sizeof(command)) {
		ADD(&answer, "!a command of %zd bytes is too long", n);
	} else if (n > 0) {
		command[n] = '\0';
		obey(l, command, &answer);
	}
	if (n > 0) {
		/* With its NUL: no answer is as empty as what a process that ends sends. */
		send(fd, answer.at, answer.used + 1, MSG_NOSIGNAL);
	}
	close(fd);
}

/* --- in the background ------------------------------------------------------------------- */

/* Serves until the lab is taken down: by a signal, or because its names are gone. */
static void __attribute__((noreturn)) serve(struct link *l)
{
	struct pollfd listener = { .fd = l->listener, .events = POLLIN };

	while (np_ns_there(&l->ns[0]) && np_ns_there(&l->ns[1])) {
		if (poll(&listener, 1, LOOK_MS) > 0) {
			answer_one(l);
		}
	}
	_exit(0);
}

/* The process in the background. It writes a byte to `ready` when all of it runs. */
static void __attribute__((noreturn)) background(struct link *l, int ready)
{
	struct np_err err = { 0 };
	int rc = np_fds_to_null() == 0 && setsid() >= 0 && chdir("/") == 0 ? NP_OK : NP_ESYS;

	for (int i = 0; i < ENDS && rc == NP_OK; i++) {
		rc = np_carry_start(l->way[i], &err);
	}
	if (rc != NP_OK || write(ready, "", 1) != 1) {
		_exit(1);
	}
	close(ready);
	serve(l);
}

/* Lets a process in the background serve the link, and waits until it does. */
static int
start(struct link *l, struct np_err *err)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) != 0) {
		return np_fail(err, NP_ESYS, errno, "pipe");
	}
	pid = fork();
	if (pid < 0) {
		return np_fail(err, NP_ESYS, errno, "fork");
	}
	if (pid == 0) {
		close(ready[0]);
		background(l, ready[1]);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		return np_fail(err, NP_ESYS, 0, "the process of the link ended at once");
	}
	return NP_OK;
}

/* What the process in the background has of its own by now. */
static void
let_go(struct link *l)
{
	for (int i = 0; i < ENDS; i++) {
		if (l->way[i] != NULL) {
			np_carry_free(l->way[i]);
			free(l->way[i]);
		}
		np_fds_close(l->tun[i]);
		np_ns_close(&l->ns[i]);
	}
	np_fds_close(l->listener);
}

int
np_link_run(char *const *words, struct np_err *err)
{
	static const struct link none = { .control = CONTROL,
					  .ns = { { .fd = -1 }, { .fd = -1 } },
					  .tun = { -1, -1 },
					  .listener = -1 };
	const char *paths[ENDS] = { NULL };
	struct link l = none;

	if (read_words(&l, words, paths, err) == NP_OK && set_up(&l, paths, err) == NP_OK) {
		start(&l, err);
	}
	let_go(&l);
	return err->code;
}

/* --- from outside ------------------------------------------------------------------------ */

static int
connect_to(const char *path, const char *control, struct np_err *err)
{
	struct sockaddr_un sa;
	socklen_t len = control_address(&sa, control);
	struct np_ns ns;
	int fd = -1;

	if (np_ns_open(&ns, path, err) != NP_OK || np_ns_enter(&ns, err) != NP_OK) {
		return -1;
	}
	np_ns_close(&ns);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, len) != 0) {
		np_fail(err, NP_EPEER, errno, "the link's process does not answer");
		np_fds_close(fd);
		return -1;
	}
	return fd;
}

int
np_link_tell(char *const *words, FILE *out, struct np_err *err)
{
	const struct timeval patience = { .tv_sec = 5 };
	const char *control = CONTROL;
	struct text text = { .used = 0 };
	size_t first = 1;
	ssize_t n;
	int fd;

	if (words[0] != NULL && words[1] != NULL && strncmp(words[1], "control=", 8) == 0) {
		control = words[1] + 8;
		first = 2;
	}
	if (words[0] == NULL || words[first] == NULL) {
		return np_usage(err, "tell: a namespace and a command are needed");
	}
	for (size_t i = first; words[i] != NULL; i++) {
		size_t before = text.used;

		if (ADD(&text, "%s%s", i == first ? "" : " ", words[i]) == before) {
			return np_usage(err, "tell: the command is empty or too long");
		}
	}
	fd = connect_to(words[0], control, err);
	if (fd < 0) {
		return err->code;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	n = send(fd, text.at, text.used, MSG_NOSIGNAL) < 0 ? -1
							   : recv(fd, text.at, MESSAGE_MAX - 1, 0);
	close(fd);
	if (n <= 0) {
		return np_fail(err, NP_EPEER, n < 0 ? errno : 0,
			       "the link's process does not answer");
	}
	text.at[n] = '\0';
	if (text.at[0] == '!') {
		return np_fail(err, NP_EPEER, 0, "%s", text.at + 1);
	}
	fputs(text.at, out);
	return NP_OK;
}
