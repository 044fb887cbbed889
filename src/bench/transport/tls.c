/*
 * TLS over TCP. After a library's handshake the kernel encrypts: send(2) and recv(2) move plain
 * bytes, for any engine. Each direction ends by an alert (close_notify) in front of TCP's FIN.
 */
#include "bench/transport/tls.h"

#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/bag.h"
#include "base/clock.h"
#include "bench/bench.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "bench/transport/tcp.h"
#include "net/sock.h"
#include "sys/file.h"

enum {
	HANDSHAKE_MS = 10000, /* longest handshake */
	TRY_MS = 100,         /* wait for room between two checks whether the test was abandoned */
	KEY_MAX = 32,         /* bytes of the longest key */
	NUMBER = 8,           /* bytes of the number of a record */
	RETRIES = 3,          /* of an alert after errors that lose nothing */
	ALERT = 21,           /* type of a record (RFC 8446, 5.1) */
	WARNING = 1,          /* level of an alert (RFC 8446, 6) */
	CLOSE_NOTIFY = 0      /* its description */
};

static const struct np_tls_suite suites[] = {
	{ "aes128-gcm", "AES-128-GCM", "TLS_AES_128_GCM_SHA256", 0x1301, TLS_CIPHER_AES_GCM_128, 16,
	  4, 32 },
	{ "aes256-gcm", "AES-256-GCM", "TLS_AES_256_GCM_SHA384", 0x1302, TLS_CIPHER_AES_GCM_256, 32,
	  4, 48 },
	{ "chacha20-poly1305", "ChaCha20-Poly1305", "TLS_CHACHA20_POLY1305_SHA256", 0x1303,
	  TLS_CIPHER_CHACHA20_POLY1305, 32, 0, 32 },
};

const struct np_tls_suite *
np_tls_suite_at(size_t i)
{
	return i < sizeof(suites) / sizeof(suites[0]) ? &suites[i] : NULL;
}

const struct np_tls_suite *
np_tls_suite_find(const char *name, uint32_t number)
{
	const struct np_tls_suite *s;

	for (size_t i = 0; (s = np_tls_suite_at(i)) != NULL; i++) {
		if (name != NULL ? strcasecmp(s->name, name) == 0
				 : number == 0 || s->number == number) {
			break;
		}
	}
	return s;
}

/* --- the kernel's half --- */

/*
 * Keys and state of one direction, as the kernel takes and returns them (tls12_crypto_info_*): the
 * nonce without its salt, the key, the salt if there is one, and the number of the next record.
 */
struct crypto {
	struct tls_crypto_info info;
	uint8_t parts[NP_TLS_NONCE + KEY_MAX + NUMBER];
};

_Static_assert(sizeof(struct tls12_crypto_info_aes_gcm_256) == sizeof(struct crypto) &&
		   sizeof(struct tls12_crypto_info_chacha20_poly1305) == sizeof(struct crypto),
	       "no gaps");

/* How many bytes of struct crypto the kernel takes for that suite. */
static socklen_t
size_of(const struct np_tls_suite *suite)
{
	return (socklen_t)(sizeof(struct crypto) - KEY_MAX + suite->key);
}

/* Have the kernel encrypt (TLS_TX) or decrypt (TLS_RX) by that secret, beginning with record 0. */
static int
give_to_kernel(int fd, const struct np_tls_suite *suite, int direction, const uint8_t *secret,
	       struct np_err *err)
{
	struct crypto c = { .info = { TLS_1_3_VERSION, suite->kernel } };
	size_t iv = NP_TLS_NONCE - suite->salt; /* bytes of the nonce behind its salt */
	uint8_t nonce[NP_TLS_NONCE];
	int rc = NP_OK;

	if (!np_tls_expand(suite, secret, "key", c.parts + iv, suite->key) ||
	    !np_tls_expand(suite, secret, "iv", nonce, sizeof(nonce))) {
		return np_fail(err, NP_EUNSUP, 0, "derive a key for TLS");
	}
	memcpy(c.parts, nonce + suite->salt, iv);
	memcpy(c.parts + iv + suite->key, nonce, suite->salt);
	if (setsockopt(fd, SOL_TLS, direction, &c, size_of(suite)) != 0) {
		rc = np_fail(err, NP_EUNSUP, errno, "this kernel does not %s TLS 1.3 with %s",
			     direction == TLS_TX ? "encrypt" : "decrypt", suite->title);
	}
	explicit_bzero(&c, sizeof(c));
	explicit_bzero(nonce, sizeof(nonce));
	return rc;
}

/*
 * Attach the kernel's TLS to a socket, if it is not attached yet (EEXIST). That works only while it
 * is connected both ways; with `may_be_unconnected` it is enough that the kernel has TLS.
 */
static int
attach(const struct np_transport *t, int fd, bool may_be_unconnected, struct np_err *err)
{
	if (setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) == 0 || errno == EEXIST ||
	    (errno == ENOTCONN && may_be_unconnected)) {
		return NP_OK;
	}
	if (errno == ENOENT || errno == ENOPROTOOPT) {
		return np_fail(err, NP_EUNSUP, 0,
			       "this kernel has no %s (try 'modprobe %s'; its option is %s)",
			       t->name, t->kernel.module, t->kernel.option);
	}
	return np_fail(err, NP_ESYS, errno, "have the kernel encrypt a connection (TCP_ULP)");
}

/* Add the records of one direction so far to *records. False: the kernel does not report them. */
static bool
read_records(int fd, const struct np_tls_suite *suite, int direction, int64_t *records)
{
	struct crypto c = { .info = { TLS_1_3_VERSION, suite->kernel } };
	socklen_t len = size_of(suite);
	uint64_t number = 0;

	if (getsockopt(fd, SOL_TLS, direction, &c, &len) != 0 || len != size_of(suite)) {
		return false;
	}
	for (size_t i = 0; i < NUMBER; i++) {
		number = number << 8 | c.parts[NP_TLS_NONCE + suite->key + i];
	}
	explicit_bzero(&c, sizeof(c));
	*records += (int64_t)number;
	return true;
}

/* --- where it encrypts --- */

/* The number after a name in a text; 0: it does not have that name. */
static unsigned long
count_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at != NULL ? strtoul(at + strlen(name), NULL, 10) : 0;
}

/*
 * Where the kernel encrypts ("Tx") or decrypts ("Rx"). It only counts all open TLS connections,
 * ours included: with both kinds, that of ours is not known.
 */
static const char *
where(const char *way)
{
	char text[1024], soft[24], hard[24];
	bool in_soft, in_hard;

	snprintf(soft, sizeof(soft), "TlsCurr%sSw", way);
	snprintf(hard, sizeof(hard), "TlsCurr%sDevice", way);
	if (np_file_read(text, sizeof(text), "", "/proc/net/tls_stat") < 0) {
		text[0] = '\0';
	}
	in_soft = count_of(text, soft) > 0;
	in_hard = count_of(text, hard) > 0;
	return in_soft == in_hard ? "not known where" : in_soft ? "software" : "hardware";
}

/* The cipher suite, once the transport is open: tls_open() has refused unknown ones. */
static const struct np_tls_suite *
suite_of(const struct np_run *run)
{
	const struct np_tls_suite *s = np_tls_suite_find(NULL, run->plan->tls_suite);

	return s != NULL ? s : &suites[0];
}

/* Record which suite was used, and where this machine's kernel encrypts TLS now: where(). */
static void
note_suite(struct np_run *run)
{
	const char *sent = where("Tx"), *received = where("Rx");

	if (strcmp(sent, received) == 0) {
		snprintf(run->closing.detail, sizeof(run->closing.detail),
			 "TLS 1.3 %s, kernel (%s) both ways", suite_of(run)->title, sent);
		return;
	}
	snprintf(run->closing.detail, sizeof(run->closing.detail),
		 "TLS 1.3 %s, kernel (%s) sending, kernel (%s) receiving", suite_of(run)->title,
		 sent, received);
}

/* --- the end of a direction --- */

/* The control message with the type of a record, for types other than data. */
union record {
	struct cmsghdr head;
	char room[CMSG_SPACE(1)];
};

/*
 * np_transport.sends_again: a signal in the middle of a record leaves an error in the socket
 * (EBADMSG), which reading SO_ERROR clears. Nothing is lost: the next send first sends the rest.
 */
static bool
tls_sends_again(int fd, int error)
{
	return error == EBADMSG && np_sock_int(fd, SOL_SOCKET, SO_ERROR) >= 0;
}

/*
 * Send close_notify, and with it the rest of an interrupted record, which a FIN would overtake. A
 * blocking send first waits for that rest. It returns success even if it gave up waiting, but then
 * it took TRY_MS: repeat it up to `until`, as two alerts do no harm. The caller blocks signals.
 */
static void
send_last_record(const struct np_stop *stop, int fd, uint64_t until)
{
	uint8_t alert[] = { WARNING, CLOSE_NOTIFY };
	struct iovec part = { .iov_base = alert, .iov_len = sizeof(alert) };
	union record control;
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	const struct timeval limit = { .tv_usec = TRY_MS * 1000L };
	int off = 0, retries = 0;
	uint64_t began;
	ssize_t n;

	memset(&control, 0, sizeof(control));
	control.head.cmsg_level = SOL_TLS;
	control.head.cmsg_type = TLS_SET_RECORD_TYPE;
	control.head.cmsg_len = CMSG_LEN(1);
	*CMSG_DATA(&control.head) = ALERT;
	if (ioctl(fd, FIONBIO, &off) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0) {
		return;
	}
	do {
		began = np_now();
		n = sendmsg(fd, &m, began < until ? MSG_NOSIGNAL : MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN &&
		    (++retries > RETRIES || !tls_sends_again(fd, errno))) {
			return;
		}
	} while ((n < 0 || np_now() - began >= TRY_MS * NP_MSEC) && np_now() < until &&
		 !np_abandoned(stop));
}

/* np_transport.ends.shut: a signal must not interrupt the last record, as no send follows it. */
static void
tls_shut(const struct np_stop *stop, int fd, uint64_t until_ns)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	send_last_record(stop, fd, until_ns);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	shutdown(fd, SHUT_WR);
}

/* recv(2) fails with EIO at a record without data: is that the close_notify of the far end? */
static bool
tls_has_ended(int fd, int error)
{
	uint8_t alert[2];
	struct iovec part = { .iov_base = alert, .iov_len = sizeof(alert) };
	union record control;
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	const struct cmsghdr *head;

	if (error != EIO || recvmsg(fd, &m, MSG_DONTWAIT) != sizeof(alert)) {
		return false;
	}
	head = CMSG_FIRSTHDR(&m);
	return head != NULL && head->cmsg_level == SOL_TLS &&
	       head->cmsg_type == TLS_GET_RECORD_TYPE && *CMSG_DATA(head) == ALERT &&
	       alert[1] == CLOSE_NOTIFY;
}

/* np_transport.kernel.probe: an unconnected socket is enough to find out. */
static int
tls_probe(const struct np_transport *t, struct np_err *err)
{
	int fd, rc;

	if (np_tls_lacks() != NULL) {
		return np_fail(err, NP_EUNSUP, 0, "%s", np_tls_lacks());
	}
	fd = np_sock_trial(AF_UNSPEC, SOCK_STREAM, IPPROTO_TCP, err);
	if (fd < 0) {
		return err->code;
	}
	rc = attach(t, fd, true, err);
	close(fd);
	return rc;
}

/* np_transport.open: the client's key comes later, but the context reads it at each handshake. */
static int
tls_open(struct np_run *run, struct np_err *err)
{
	const struct np_plan *p = run->plan;
	const struct np_tls_suite *suite = np_tls_suite_find(NULL, p->tls_suite);
	struct np_key *key = &run->end.key;

	if (np_tls_lacks() != NULL) {
		return np_fail(err, NP_EUNSUP, 0, "%s", np_tls_lacks());
	}
	if (suite == NULL) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "cipher suite 0x%04x of TLS",
			       p->tls_suite);
	}
	/* The passive end draws the key; the client gets it with the response to its request. */
	if (!p->active) {
		key->count = sizeof(key->at);
		if (getrandom(key->at, sizeof(key->at), 0) != sizeof(key->at)) {
			return np_fail(err, NP_ESYS, errno, "draw a key for TLS");
		}
	}
	if (np_endpoint_open(run, err) != NP_OK ||
	    attach(p->transport, p->active ? run->conn->fd : run->end.listen_fd, true, err) !=
		NP_OK) {
		return err->code;
	}
	run->end.state = np_tls_new(suite, &run->end.key, !p->active, err);
	return run->end.state != NULL ? NP_OK : (int)err->code;
}

/* np_transport.upgrade: do the handshake, then have the kernel encrypt both directions. */
static int
tls_upgrade(struct np_run *run, struct np_conn *conn, struct np_err *err)
{
	const struct np_tls_suite *suite = suite_of(run);
	const bool active = run->plan->active;
	struct np_tls_secrets secrets;
	const uint8_t *near = active ? secrets.client : secrets.server; /* for what we send */
	const uint8_t *far = active ? secrets.server : secrets.client;
	bool done;

	if (run->end.key.count == 0) {
		return np_fail(err, NP_EPEER, 0, "the daemon named no key for TLS");
	}
	/*
	 * Attach before the handshake, as the far end may close right after it. Attach again
	 * after it: with TCP Fast Open there may have been no connection before.
	 */
	done = attach(run->plan->transport, conn->fd, true, err) == NP_OK &&
	       np_tls_handshake(run->end.state, conn->fd, run->stop, HANDSHAKE_MS, &secrets, err) ==
		   NP_OK &&
	       attach(run->plan->transport, conn->fd, false, err) == NP_OK &&
	       give_to_kernel(conn->fd, suite, TLS_TX, near, err) == NP_OK &&
	       give_to_kernel(conn->fd, suite, TLS_RX, far, err) == NP_OK;
	explicit_bzero(&secrets, sizeof(secrets));
	return done ? NP_OK : (int)err->code;
}

static void
tls_read_closing(struct np_run *run, int fd)
{
	np_transport_tcp.read_closing(run, fd);
	note_suite(run);
}

static void
tls_read_closing_first(struct np_run *run, int fd)
{
	np_tcp_read_closing_first(run, fd);
	note_suite(run);
}

/* np_transport.put_kernel: records are summed over all connections, alerts included. */
static void
tls_put_kernel(const struct np_run *run, int fd, struct np_bag *bag)
{
	const struct np_tls_suite *suite = suite_of(run);
	int64_t sent = 0, received = 0;
	bool known = true;

	for (uint32_t i = 0; i < run->conns; i++) {
		known = known && read_records(run->conn[i].fd, suite, TLS_TX, &sent) &&
			read_records(run->conn[i].fd, suite, TLS_RX, &received);
	}
	np_bag_text(bag, "1.3", "tls.version");
	np_bag_text(bag, suite->title, "tls.cipher");
	np_bag_text(bag, where("Tx"), "tls.encrypted_by");
	np_bag_text(bag, where("Rx"), "tls.decrypted_by");
	if (known) {
		np_bag_int(bag, sent, "tls.records_sent");
		np_bag_int(bag, received, "tls.records_received");
	} else {
		np_bag_unread(bag, "this kernel does not tell", "tls.records_sent");
	}
}

/* np_transport.close: free the context, and forget the key. */
static void
tls_close(struct np_run *run)
{
	np_tls_free(run->end.state);
	run->end.state = NULL;
	explicit_bzero(&run->end.key, sizeof(run->end.key));
}

const struct np_transport np_transport_tls = {
	NP_ON_TCP,
	.name = "TLS",
	.protocol = IPPROTO_TCP,
	.kernel.listed = "TCP",
	.kernel.listed_six = "TCPv6",
	.admit = NP_ADMIT_IP,
	.tcp_info = true,
	.acked = np_tcp_acked,
	.kernel.module = "tls",
	.kernel.option = "CONFIG_TLS",
	.encrypts = true,
	.scanner = NP_SCAN_OMNI,
	.no_control = "netperf: -N: TLS needs the key that netserver draws",
	.kernel.probe = tls_probe,
	.open = tls_open,
	.upgrade = tls_upgrade,
	.ends.shut = tls_shut,
	.ends.is_end = tls_has_ended,
	.sends_again = tls_sends_again,
	.read_closing = tls_read_closing,
	.read_closing_first = tls_read_closing_first,
	.put_kernel = tls_put_kernel,
	.close = tls_close,
};
