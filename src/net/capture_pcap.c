#include "net/capture.h"

#include <errno.h>
#include <netinet/in.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/output.h"
#include "base/text.h"
#include "net/eth.h"
#include "net/ledger.h"

enum {
	SNAPLEN = 128,     /* Ethernet, a VLAN, IPv6 and TCP with all options: 118 */
	RETIRE_MS = 20,    /* time-out of a block that is not full */
	DRAIN_MS = 2000,   /* longest wait for the rest at the end */
	STACK = 256 << 10, /* of the thread */
	NICE = 5           /* the threads of the test come first */
};

struct np_capture {
	pcap_t *pcap;
	pcap_dumper_t *dump; /* NULL: no file is written */
	const char *file;
	char device[NP_ADDR_DEVICE];
	bool is_any; /* of all interfaces */
	bool is_loopback, locked;
	struct np_addr far; /* as opened for; len 0: not known */
	enum np_ledger_link link;
	uint32_t mtu;
	/* While it runs; owned by the thread until joined. */
	pthread_t thread;
	atomic_bool stop;
	struct np_ledger *ledger;
	uint64_t begin_ns, end_ns;   /* by the clock of packets; end 0: not stopped */
	_Atomic uint64_t restart_ns; /* the end of the warm-up, by that clock; 0: none yet */
	bool restarted;
	bool is_after;           /* a packet was after the end */
	uint32_t read;           /* packets read since the start */
	struct pcap_stat before; /* what the kernel counted before the start */
};

/* Is a host not known, or any address? */
static bool
is_wildcard(const struct np_addr *a)
{
	return a->len == 0 || np_addr_is_any(a);
}

/* Can the ledger read packets with that link header (DLT_*)? */
static bool
understand_link(int type, enum np_ledger_link *link)
{
	static const struct {
		int type;
		enum np_ledger_link link;
	} known[] = {
		{ DLT_EN10MB, NP_LINK_ETHERNET }, { DLT_LINUX_SLL, NP_LINK_SLL },
		{ DLT_LINUX_SLL2, NP_LINK_SLL2 }, { DLT_RAW, NP_LINK_RAW },
		{ DLT_NULL, NP_LINK_NULL },       { DLT_LOOP, NP_LINK_NULL },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].type == type) {
			*link = known[i].link;
			return true;
		}
	}
	return false;
}

/* Add a host, if known, to a filter, without the zone, unknown to filters: np_text_add(). */
static size_t
add_host(char *text, size_t size, size_t len, const struct np_addr *a)
{
	const char *host = NP_HOST_STR(a);

	return is_wildcard(a)
		   ? len
		   : np_text_add(text, size, len, "%s%s host %.*s", len > 0 ? " and " : "",
				 np_family_of(a)->version == 6 ? "ip6" : "ip",
				 (int)strcspn(host, "%"), host);
}

/* pcap_handler that ignores the packet. */
static void
discard(unsigned char *ctx, const struct pcap_pkthdr *head, const unsigned char *bytes)
{
}

/* Pass packets of these hosts and, if TCP or UDP, ports. An address of len 0 matches any. */
static int
set_filter(struct np_capture *c, const struct np_addr *near, const struct np_addr *far,
	   int protocol, struct np_err *err)
{
	const char *name = protocol == IPPROTO_TCP ? "tcp" : protocol == IPPROTO_UDP ? "udp" : NULL;
	unsigned ports[] = { near->len != 0 ? np_addr_port(near) : 0,
			     far->len != 0 ? np_addr_port(far) : 0 };
	char text[800] = "";
	struct bpf_program program;
	size_t len = 0;
	int rc;

	/* See pcap-filter(7). Fragments after the first have no ports, and after IPv6 extension
	 * headers ports are hard to find: the ledger does that. First fragments of others pass,
	 * too: they tell it which later ones are not ours. */
	len = add_host(text, sizeof(text), len, near);
	len = add_host(text, sizeof(text), len, far);
	for (int i = 0; i < 2 && name != NULL; i++) {
		if (ports[i] != 0) {
			len = np_text_add(
			    text, sizeof(text), len,
			    "%s(%s port %u or ip[6:2] & 0x3fff != 0 or"
			    " (ip6 and not ip6[6] = 6 and not ip6[6] = 17 and not ip6[6] = 58))",
			    len > 0 ? " and " : "", name, ports[i]);
		}
	}
	if (pcap_compile(c->pcap, &program, text, 1, PCAP_NETMASK_UNKNOWN) != 0) {
		return np_fail(err, NP_ESYS, 0, "filter \"%s\": %s", text, pcap_geterr(c->pcap));
	}
	rc = pcap_setfilter(c->pcap, &program);
	pcap_freecode(&program);
	if (rc != 0) {
		return np_fail(err, NP_ESYS, 0, "set a filter on %s: %s", c->device,
			       pcap_geterr(c->pcap));
	}
	/* Discard packets from before the filter, which may fill the ring. */
	return pcap_dispatch(c->pcap, -1, discard, NULL) >= 0
		   ? NP_OK
		   : np_fail(err, NP_ESYS, 0, "read a capture on %s: %s", c->device,
			     pcap_geterr(c->pcap));
}

/* Open the interface, with a ring that is large enough. */
static int
activate(struct np_capture *c, struct np_err *err)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	int rc;

	c->pcap = pcap_create(c->device, why);
	if (c->pcap == NULL) {
		return np_fail(err, NP_ESYS, 0, "capture on %s: %s", c->device, why);
	}
	pcap_set_snaplen(c->pcap, SNAPLEN);
	/* Enough for 70 ms of 1.2 M packets/s of 128 bytes. */
	pcap_set_buffer_size(c->pcap, NP_CAPTURE_RING);
	pcap_set_timeout(c->pcap, RETIRE_MS);
	/* If not supported, the ledger uses microseconds. */
	(void)pcap_set_tstamp_precision(c->pcap, PCAP_TSTAMP_PRECISION_NANO);
	rc = pcap_activate(c->pcap);
	if (rc == PCAP_ERROR_PERM_DENIED) {
		return np_fail(err, NP_ESYS, 0,
			       "capture on %s: not permitted (needs CAP_NET_RAW: run it as root, "
			       "or \"setcap cap_net_raw+ep\" the program)",
			       c->device);
	}
	if (rc < 0) { /* > 0: a warning */
		return np_fail(err, NP_ESYS, 0, "capture on %s: %s: %s", c->device,
			       pcap_statustostr(rc), pcap_geterr(c->pcap));
	}
	if (!understand_link(pcap_datalink(c->pcap), &c->link)) {
		return np_fail(err, NP_EUNSUP, 0,
			       "capture on %s: its packet format is not supported", c->device);
	}
	if (pcap_setnonblock(c->pcap, 1, why) != 0) {
		return np_fail(err, NP_ESYS, 0, "capture on %s: %s", c->device, why);
	}
	return NP_OK;
}

/* Open the file that the headers are written to. */
static int
open_file(struct np_capture *c, const char *path, struct np_err *err)
{
	struct np_output out;
	FILE *file;

	if (np_output_open(&out, path, NP_OUTPUT_IN_PLACE, err) != NP_OK) {
		return err->code;
	}
	file = fdopen(out.fd, "w");
	if (file == NULL) {
		np_fail(err, NP_ESYS, errno, "write %s", path);
		close(out.fd);
		return err->code;
	}
	c->file = path;
	c->dump = pcap_dump_fopen(c->pcap, file);
	if (c->dump == NULL) {
		fclose(file);
		return np_fail(err, NP_ESYS, 0, "%s", pcap_geterr(c->pcap));
	}
	return NP_OK;
}

int
np_capture_open(struct np_capture **out, const struct np_capture_place *place, struct np_err *err)
{
	struct np_capture *c = calloc(1, sizeof(*c));
	struct np_addr near = place->near, at;
	int rc;

	*out = NULL;
	if (c == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for a capture");
	}
	c->far = place->far;
	np_addr_unmap(&c->far);
	np_addr_unmap(&near);
	/* Find the interface: the loopback within this machine, or an address's; else "any". */
	at = near;
	c->is_loopback = (c->far.len != 0 && np_addr_is_here(&c->far)) ||
			 (near.len != 0 && np_addr_is_loopback(&near));
	if (is_wildcard(&at) && (c->far.len == 0 || !np_addr_towards(&c->far, &at))) {
		at.len = 0; /* not known: capture on all */
	}
	if (c->is_loopback) {
		np_addr_make_loopback(&at, AF_INET);
	}
	c->is_any = at.len == 0 || np_addr_device(&at, c->device) != 0;
	if (c->is_any) {
		snprintf(c->device, sizeof(c->device), "any");
	}
	c->mtu = c->is_any ? 0 : np_eth_mtu(c->device);
	rc = activate(c, err);
	rc = rc == NP_OK ? set_filter(c, &near, &c->far, 0, err) : rc;
	c->locked = place->lock;
	if (rc == NP_OK && c->locked &&
	    setsockopt(pcap_fileno(c->pcap), SOL_SOCKET, SO_LOCK_FILTER, &(int){ 1 },
		       sizeof(int)) != 0) {
		rc = np_fail(err, NP_ESYS, errno, "lock the filter of a capture on %s", c->device);
	}
	if (rc == NP_OK && place->file != NULL && open_file(c, place->file, err) != NP_OK) {
		rc = err->code = NP_EUSAGE; /* the user has chosen the file */
	}
	if (rc != NP_OK) {
		np_capture_free(c);
		return rc;
	}
	*out = c;
	return NP_OK;
}

int
np_capture_fd(const struct np_capture *c)
{
	return pcap_fileno(c->pcap);
}

void
np_capture_free(struct np_capture *c)
{
	if (c == NULL) {
		return;
	}
	if (c->dump != NULL) {
		pcap_dump_close(c->dump);
	}
	if (c->pcap != NULL) {
		pcap_close(c->pcap);
	}
	free(c);
}

/* Count anew after the warm-up: at its first packet, or when the capture ends without one. */
static void
restart(struct np_capture *c)
{
	c->restarted = true;
	np_ledger_restart(c->ledger, c->restart_ns);
}

/* pcap_handler: count a packet, if it is of the time of the test. */
static void
take_packet(unsigned char *ctx, const struct pcap_pkthdr *head, const unsigned char *bytes)
{
	struct np_capture *c = (struct np_capture *)ctx;
	bool in_ns = pcap_get_tstamp_precision(c->pcap) == PCAP_TSTAMP_PRECISION_NANO;
	uint64_t at_ns =
	    (uint64_t)head->ts.tv_sec * NP_SEC + (uint64_t)head->ts.tv_usec * (in_ns ? 1 : 1000);

	if (at_ns < c->begin_ns) {
		return; /* captured before the start, and read only now */
	}
	c->read++;
	if (!c->restarted && c->restart_ns != 0 && at_ns >= c->restart_ns) {
		restart(c);
	}
	if (c->end_ns != 0 && at_ns > c->end_ns) {
		c->is_after = true;
		return;
	}
	if (np_ledger_packet(c->ledger, at_ns, bytes, head->caplen, head->len) && c->dump != NULL) {
		pcap_dump((unsigned char *)c->dump, head, bytes);
	}
}

/* Read packets, waiting for a block if there are none. Returns how many; < 0: it failed. */
static int
read_some(struct np_capture *c)
{
	struct pollfd p = { .fd = pcap_fileno(c->pcap), .events = POLLIN };

	(void)poll(&p, 1, 2 * RETIRE_MS);
	return pcap_dispatch(c->pcap, -1, take_packet, (unsigned char *)c);
}

/* What the kernel has counted since the start; zeros if not known. */
static struct pcap_stat
count_packets(struct np_capture *c)
{
	struct pcap_stat s = { .ps_recv = 0 };

	if (pcap_stats(c->pcap, &s) == 0) {
		s.ps_recv -= c->before.ps_recv;
		s.ps_drop -= c->before.ps_drop;
		s.ps_ifdrop -= c->before.ps_ifdrop;
	}
	return s;
}

/* Read packets until told to stop, then those that arrived before that. */
static void *
capture_thread(void *ctx)
{
	struct np_capture *c = ctx;
	bool counts_twice = c->is_loopback || c->is_any;
	int n = 0, empty_reads = 0;
	struct pcap_stat counted;
	uint64_t deadline;
	uint32_t passed;

	(void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
	while (n >= 0 && !atomic_load(&c->stop)) {
		n = read_some(c);
	}
	c->end_ns = np_clock(CLOCK_REALTIME);
	deadline = np_now() + DRAIN_MS * NP_MSEC;
	counted = count_packets(c);
	passed = counted.ps_recv - counted.ps_drop;
	n = 0; /* even if a read has failed, try once more */
	/*
	 * Read the rest of what the kernel has passed. A busy kernel may be late to hand over a
	 * block that is not full, so one empty read does not mean the end. Some packets never come:
	 * those from before begin_ns, or half of those on an interface that counts them twice. So
	 * ten empty reads end it, or two on such an interface that has delivered any.
	 */
	while (n >= 0 && (int32_t)(passed - c->read) > 0 &&
	       empty_reads < (counts_twice && c->read > 0 ? 2 : 10) && !c->is_after &&
	       np_now() < deadline) {
		n = read_some(c);
		empty_reads = n == 0 ? empty_reads + 1 : 0;
	}
	return NULL;
}

/* Start the thread, with all signals blocked: the test's threads receive them. 0, or an errno. */
static int
make_thread(struct np_capture *c)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int rc;

	pthread_attr_init(&attr); /* does not fail on Linux */
	(void)pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&c->thread, &attr, capture_thread, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

int
np_capture_start(struct np_capture *c, const struct np_ledger_flow *flow, struct np_err *err)
{
	struct np_ledger_flow f = *flow;
	struct np_addr near, far;
	uint16_t port = flow->far.len != 0 ? np_addr_port(&flow->far) : 0;
	int rc;

	f.link = c->link;
	f.mtu = c->mtu;
	np_addr_unmap(&f.near);
	np_addr_unmap(&f.far);
	if (f.protocol == 0) {
		return np_fail(err, NP_EUNSUP, 0, "this test sends no packets");
	}
	if (!is_wildcard(&f.far) && !is_wildcard(&c->far) && !np_addr_same_host(&f.far, &c->far)) {
		return np_fail(err, NP_EUNSUP, 0,
			       "the data go to a host that the capture was not opened for");
	}
	if (is_wildcard(&f.far) && c->far.len != 0) {
		f.far = c->far; /* fragments have no ports: the host shows their direction */
		np_addr_set_port(&f.far, port);
	}
	/* Let the kernel filter by port; several ports are left to the ledger. */
	near = f.near;
	far = f.far;
	if (f.ports.count > 1) {
		np_addr_set_port(&near, 0);
		np_addr_set_port(&far, 0);
	}
	/* A locked filter stays as it is: for the hosts, without ports. */
	if (!c->locked && set_filter(c, &near, &far, f.protocol, err) != NP_OK) {
		return err->code;
	}
	c->ledger = np_ledger_new(&f);
	if (c->ledger == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for a ledger");
	}
	c->before = (struct pcap_stat){ .ps_recv = 0 };
	c->before = count_packets(c);
	c->read = 0;
	c->begin_ns = np_clock(CLOCK_REALTIME);
	c->end_ns = 0;
	c->restart_ns = 0;
	c->is_after = c->restarted = false;
	atomic_store(&c->stop, false);
	rc = make_thread(c);
	if (rc != 0) {
		free(c->ledger);
		c->ledger = NULL;
		return np_fail(err, NP_ESYS, rc, "a thread for a capture");
	}
	return NP_OK;
}

void
np_capture_restart(struct np_capture *c, uint64_t opened_ns)
{
	/* Packets have times of CLOCK_REALTIME. */
	c->restart_ns = np_clock(CLOCK_REALTIME) - (np_now() - opened_ns);
}

void
np_capture_stop(struct np_capture *c, struct np_bag *into)
{
	struct pcap_stat counted;
	const char *where;
	char text[320];

	if (c->ledger == NULL) {
		return;
	}
	atomic_store(&c->stop, true);
	pthread_join(c->thread, NULL);
	counted = count_packets(c);
	if (!c->restarted && c->restart_ns != 0) {
		restart(c); /* no packet came after the warm-up */
	}
	where = c->is_loopback
		    ? "packets as they arrive; large packets (GSO) are not split into segments"
		    : "outgoing: after the queue (qdisc), after segmentation by the kernel (GSO), "
		      "before segmentation by the interface (TSO); incoming: after GRO, before the "
		      "firewall";
	snprintf(text, sizeof(text), "%s: %s; %s until the end of the test",
		 c->is_any ? "all interfaces (a packet may pass several)" : c->device, where,
		 c->restarted ? "counted from the end of the warm-up" : "captured");
	np_bag_text(into, text, "wire.tap");
	np_bag_int(into, (int64_t)counted.ps_drop + counted.ps_ifdrop, "wire.dropped");
	np_ledger_put(c->ledger, into);
	if (c->dump != NULL && pcap_dump_flush(c->dump) == 0 && !ferror(pcap_dump_file(c->dump))) {
		np_bag_text(into, c->file, "wire.file");
	} else if (c->dump != NULL) {
		np_bag_unread(into, strerror(errno), "wire.file");
	}
	free(c->ledger);
	c->ledger = NULL;
}
