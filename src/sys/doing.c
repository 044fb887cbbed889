#include "sys/doing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#ifdef SYS_socketcall
#include <linux/net.h> /* SYS_SEND and the like */
#endif

#include "base/fds.h"
#include "sys/file.h"

static const char *const names[NP_DOING_KINDS] = { "running", "sending", "receiving",
						   "pausing", "stopped", "waiting" };

/* System calls that block in a test, and whether they send or receive there. */
static const struct {
	long number;
	enum np_doing_what what;
} calls[] = {
	{ SYS_sendto, NP_DOING_SENDS },
	{ SYS_sendmsg, NP_DOING_SENDS },
	{ SYS_sendmmsg, NP_DOING_SENDS },
	{ SYS_write, NP_DOING_SENDS },
	{ SYS_writev, NP_DOING_SENDS },
	{ SYS_recvfrom, NP_DOING_RECEIVES },
	{ SYS_recvmsg, NP_DOING_RECEIVES },
	{ SYS_read, NP_DOING_RECEIVES },
	{ SYS_readv, NP_DOING_RECEIVES },
	{ SYS_splice, NP_DOING_RECEIVES }, /* from a socket */
	{ SYS_accept4, NP_DOING_RECEIVES },
/* not on every architecture, or in every libc */
#ifdef SYS_send
	{ SYS_send, NP_DOING_SENDS },
#endif
#ifdef SYS_sendfile
	{ SYS_sendfile, NP_DOING_SENDS },
#endif
#ifdef SYS_sendfile64
	{ SYS_sendfile64, NP_DOING_SENDS },
#endif
#ifdef SYS_recv
	{ SYS_recv, NP_DOING_RECEIVES },
#endif
#ifdef SYS_recvmmsg
	{ SYS_recvmmsg, NP_DOING_RECEIVES },
#endif
#ifdef SYS_accept
	{ SYS_accept, NP_DOING_RECEIVES },
#endif
#ifdef SYS_nanosleep
	{ SYS_nanosleep, NP_DOING_PAUSES },
#endif
#ifdef SYS_clock_nanosleep
	{ SYS_clock_nanosleep, NP_DOING_PAUSES },
#endif
#ifdef SYS_clock_nanosleep_time64
	{ SYS_clock_nanosleep_time64, NP_DOING_PAUSES },
#endif
};

/* Functions of the kernel that wait; not wait_woken(), where TCP's senders and receivers do. */
static const struct {
	const char *name;
	enum np_doing_what what;
} places[] = {
	{ "sk_stream_wait_memory", NP_DOING_SENDS },
	{ "sock_alloc_send_pskb", NP_DOING_SENDS },
	{ "sock_wait_for_wmem", NP_DOING_SENDS },
	{ "unix_wait_for_peer", NP_DOING_SENDS },
	{ "sctp_wait_for_sndbuf", NP_DOING_SENDS },
	{ "packet_snd", NP_DOING_SENDS },
	{ "sk_wait_data", NP_DOING_RECEIVES },
	{ "__skb_wait_for_more_packets", NP_DOING_RECEIVES },
	{ "unix_stream_read_generic", NP_DOING_RECEIVES },
	{ "unix_stream_data_wait", NP_DOING_RECEIVES },
	{ "sctp_skb_recv_datagram", NP_DOING_RECEIVES },
	{ "inet_csk_accept", NP_DOING_RECEIVES },
	{ "inet_csk_wait_for_connect", NP_DOING_RECEIVES },
	{ "hrtimer_nanosleep", NP_DOING_PAUSES },
	{ "do_nanosleep", NP_DOING_PAUSES },
};

void
np_doing_open(struct np_doing *d, const char *root, int thread)
{
	static const char at[] = "/proc/self/task/%d/%s";

	*d = (struct np_doing){ .is_open = true, .cpu = -1 };
	d->time_fd = np_file_open(root, at, thread, "schedstat");
	d->stat_fd = np_file_open(root, at, thread, "stat");
	d->why = d->stat_fd < 0 ? -d->stat_fd : 0;
	/* "syscall" can't be read where ptrace(2) isn't allowed, as in a daemon; "wchan" can. */
	d->where_fd = np_file_open(root, at, thread, "syscall");
	d->by_call = d->where_fd >= 0;
	if (!d->by_call) {
		d->where_fd = np_file_open(root, at, thread, "wchan");
	}
}

#ifdef SYS_socketcall
/* socketcall(2) of some 32-bit machines: the first argument says which call it is. */
static enum np_doing_what
by_socketcall(const char *arguments, enum np_doing_what blocked)
{
	switch (strtol(arguments, NULL, 0)) {
	case SYS_SEND:
	case SYS_SENDTO:
	case SYS_SENDMSG:
	case SYS_SENDMMSG:
		return NP_DOING_SENDS;
	case SYS_RECV:
	case SYS_RECVFROM:
	case SYS_RECVMSG:
	case SYS_RECVMMSG:
	case SYS_ACCEPT:
	case SYS_ACCEPT4:
		return NP_DOING_RECEIVES;
	default:
		return blocked;
	}
}
#endif

/* What a sleeping thread does, by the number of its system call. */
static enum np_doing_what
by_call(const char *text, enum np_doing_what blocked)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (end == text) {
		return NP_DOING_RUNS; /* the text is "running": it has woken up meanwhile */
	}
#ifdef SYS_socketcall
	if (number == SYS_socketcall) {
		return by_socketcall(end, blocked);
	}
#endif
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i].number == number) {
			return calls[i].what;
		}
	}
	return blocked;
}

/* What a sleeping thread is doing, by its file `syscall` or `wchan`; `blocked` if not known. */
static enum np_doing_what
where(const struct np_doing *d, enum np_doing_what blocked)
{
	char text[256];

	if (d->where_fd < 0 || np_file_again(text, sizeof(text), d->where_fd) <= 0) {
		return blocked;
	}
	if (d->by_call) {
		return by_call(text, blocked);
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (strcmp(places[i].name, text) == 0) {
			return places[i].what;
		}
	}
	return blocked;
}

void
np_doing_look(struct np_doing *d, enum np_doing_what blocked)
{
	char text[512];
	const char *at;
	long n;

	if (d->stat_fd < 0) {
		return;
	}
	n = np_file_again(text, sizeof(text), d->stat_fd);
	if (n == -ESRCH) {
		return; /* the thread has ended */
	}
	/* The state is the letter after the last ")"; the name before it may contain any. */
	at = strrchr(text, ')');
	if (n < 0 || at == NULL || at[1] != ' ') {
		d->why = n < 0 ? (int)-n : EINVAL;
		return;
	}
	d->looks++;
	d->seen[at[2] == 'R'                   ? NP_DOING_RUNS
		: at[2] == 'T' || at[2] == 't' ? NP_DOING_STOPPED
					       : where(d, blocked)]++;
}

bool
np_doing_did(struct np_doing *d, struct np_thread_time *did)
{
	enum { TO_PROCESSOR = 36 }; /* it is the 39th value of a line, the state the third */
	struct np_thread_time now;
	char text[512];
	const char *at;

	*did = (struct np_thread_time){ .turns = 0 };
	if (!d->is_open || !np_thread_time(d->time_fd, &now)) {
		return false;
	}
	did->ran_ns = now.ran_ns - d->time.ran_ns;
	did->waited_ns = now.waited_ns - d->time.waited_ns;
	did->turns = now.turns - d->time.turns;
	d->time = now;
	at = np_file_again(text, sizeof(text), d->stat_fd) > 0 ? strrchr(text, ')') : NULL;
	at = at != NULL && at[1] == ' ' ? at + 2 : NULL;
	for (int i = 0; i < TO_PROCESSOR && at != NULL; i++) {
		at = strchr(at, ' ');
		at = at != NULL ? at + 1 : NULL;
	}
	d->cpu = at != NULL ? (int)strtol(at, NULL, 10) : -1;
	return true;
}

void
np_doing_put(const struct np_doing *d, struct np_bag *into)
{
	if (d->looks == 0) {
		if (d->why != 0) {
			np_bag_unread(into, strerror(d->why), "thread.looks");
		}
		return;
	}
	np_bag_int(into, (int64_t)d->looks, "thread.looks");
	for (int i = 0; i < NP_DOING_KINDS; i++) {
		np_bag_int(into, (int64_t)d->seen[i], "thread.seen_%s", names[i]);
	}
}

void
np_doing_close(struct np_doing *d)
{
	if (!d->is_open) {
		return;
	}
	np_fds_close(d->time_fd);
	np_fds_close(d->stat_fd);
	np_fds_close(d->where_fd);
	d->is_open = false;
}
