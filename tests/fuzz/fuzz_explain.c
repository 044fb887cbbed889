/*
 * Evidence of a hostile far end, to everything that netperf makes of it: the explanation, its
 * ceiling, the ledger and the findings of --preflight. The input is a byte of settings, one that
 * chooses the size of messages, one for each of two bags that tells how many items are in it, and
 * these: a byte that chooses the name (NAMES of them, then free ones), one that chooses the kind
 * and eight of a value. With the highest bit of the settings what follows these is the second bag
 * as it comes over the wire.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "out/explain.h"
#include "out/format.h"
#include "out/preflight_rules.h"
#include "stats/ceiling.h"
#include "tests/fuzz/fuzz.h"
#include "wire/plan.h"
#include "wire/tagged.h"

/* What the rules look at; seeds have their numbers, so that others come last. */
static const char *const names[] = {
	"flow.seconds",
	"flow.sndbuf",
	"flow.rcvbuf",
	"flow.send_size",
	"flow.bytes_sent",
	"flow.bytes_received",
	"flow.sends",
	"flow.receives",
	"flow.socket_drops",
	"flow.device",
	"flow.samples.t_s",
	"flow.samples.bytes",
	"flow.samples.queued_in",
	"flow.samples.queued_out",
	"thread.seconds",
	"thread.cpu",
	"thread.cpu_share",
	"thread.run_delay_s",
	"cpu.count",
	"cpu.0.idle",
	"cpu.0.softirq",
	"cpu.1.idle",
	"cpu.1.softirq",
	"moved.seconds",
	"moved.softnet.0.dropped",
	"moved.qdisc.overlimits",
	"moved.snmp.Udp.RcvbufErrors",
	"moved.snmp6.Udp6RcvbufErrors",
	"moved.nic.tx_packets",
	"moved.nic.rx_bytes",
	"tcp.mss",
	"tcp.path_mtu",
	"tcp.timestamps",
	"tcp.busy_us",
	"tcp.rwnd_limited_us",
	"tcp.sndbuf_limited_us",
	"tcp.data_segments_out",
	"tcp.segments_out",
	"tcp.retransmitted_segments",
	"tcp.retransmitted_bytes",
	"tcp.dsack_dups",
	"tcp.rtt_us",
	"tcp.min_rtt_us",
	"tcp.cwnd",
	"tcp.send_window",
	"tcp.samples.t_s",
	"tcp.samples.bytes",
	"tcp.samples.rtt_us",
	"tcp.samples.cwnd",
	"tcp.samples.unacked",
	"tcp.samples.notsent_bytes",
	"tcp.samples.queued_out",
	"tcp.samples.queued_in",
	"tcp.samples.send_window",
	"udp.sent",
	"udp.lost",
	"wire",
	"wire.tap",
	"wire.dropped",
	"wire.malformed",
	"wire.out.packets",
	"wire.in.packets",
	"wire.out.segments",
	"wire.in.data_segments",
	"wire.out.retransmitted_bytes",
	"wire.out.zero_window_s",
	"wire.in.gap_max_us",
	"wire.out.size_counts",
	"wire.in.size_counts",
	"host.name",
	"host.kernel",
	"host.program",
	"host.path_mtu",
	"host.nic.mtu",
	"host.nic.name",
	"host.nic.driver",
	"host.nic.speed_mbps",
	"host.nic.qdisc",
	"host.nic.qdisc.rate_bps",
	"host.nic.queues.rx",
	"host.nic.irq_cpus",
	"host.nic.duplex",
	"host.nic.up",
	"host.cpu.count",
	"host.cpu.model",
	"host.cpu.governor",
	"host.cpu.steal_share",
	"host.clocksource",
	"host.tcp.congestion",
	"host.tcp.rmem",
	"host.tcp.wmem",
	"host.core.rmem_max",
	"host.cpu.idle_latency_us",
	"host.cpu.idle_states",
	"host.hypervisor",
	"host.irqbalance",
	"host.nic.bus",
	"host.nic.coalesce.adaptive_rx",
	"host.nic.coalesce.rx_usecs",
	"host.nic.gso_max_segs",
	"host.nic.gso_max_size",
	"host.nic.offload.tso",
	"host.nic.offloads_fixed",
	"host.nic.other_packets_per_s",
	"host.nic.queues.tx",
	"host.nic.ring.rx",
	"host.nic.ring.rx_max",
	"host.tcp.window_scaling",
	"host.load",
	"host.task.cpus",
	"engine.name",
	"engine.empty_calls",
	"cgroup.cpu.quota",
	"cgroup.cpu.throttled_s",
	"cgroup.cpu.periods",
	"cgroup.cpu.throttled_periods",
	"sampler.samples",
	"sampler.gap_max_s",
	"sampler.stopped_s",
	"thread.looks",
	"thread.seen_running",
	"thread.seen_sending",
	"thread.seen_receiving",
	"thread.seen_pausing",
	"thread.seen_stopped",
	"thread.seen_waiting",
	"flow.interval_us",
	"flow.burst",
	"flow.pacing_asked_bps",
	"flow.role",
	"flow.latency_min_us",
	"flow.latency_mean_us",
	"flow.latency_p50_us",
	"flow.requests_lost",
	"tcp.congestion",
	"tcp.window_scale",
	"tcp.send_scale",
	"tcp.reordered",
	"tcp.delivered_ce",
	"tcp.samples.bytes_acked",
	"tcp.samples.bytes_received",
	"tcp.samples.bytes_sent",
	"tcp.samples.retransmitted_bytes",
	"tcp.samples.retransmitted_segments",
	"tcp.samples.pacing_rate_bps",
	"tcp.pacing_rate_bps",
	"clock.boot",
	"clock.begin_s",
	"host.route.window",
	"host.route.cwnd",
	"tc.out.rate_bps",
	"tc.in.rate_bps",
	"tc.out.kind",
	"tc.out.drops",
	"tc.in.drops",
	"foreign.out_bytes",
	"foreign.in_bytes",
	"udp.loss_bursts",
	"moved.netstat.TcpExt.TCPTimeouts",
	"moved.netstat.TcpExt.TCPSynRetrans",
	"moved.snmp.Ip.ReasmFails",
	"mptcp.subflows",
	"mptcp.fallback",
};

/* Eight values that begin with this one and go up by eighths of it. */
static void
put_list(struct np_bag *b, uint8_t kind, int64_t i, double r, const char *name)
{
	int64_t ints[8];
	double reals[8];

	for (unsigned n = 0; n < 8; n++) {
		ints[n] = i / 8 * (n % 2 == 0 ? 7 : 1);
		reals[n] = r + r / 8 * n;
	}
	if (kind == NP_BAG_INTS) {
		np_bag_ints(b, ints, LEN(ints), "%s", name);
	} else {
		np_bag_reals(b, reals, LEN(reals), "%s", name);
	}
}

static void
put_item(struct fuzz_input *in, struct np_bag *b)
{
	size_t which = fuzz_byte(in);
	const char *name = names[which % LEN(names)];
	uint8_t kind = fuzz_byte(in) % 8, bytes[8];
	char text[9] = "";
	int64_t i;
	double r;

	fuzz_take(in, bytes, sizeof(bytes), sizeof(bytes));
	memcpy(&i, bytes, sizeof(i));
	memcpy(&r, bytes, sizeof(r));
	memcpy(text, bytes, sizeof(bytes));
	switch (kind) {
	case NP_BAG_INT:
		np_bag_int(b, i, "%s", name);
		break;
	case NP_BAG_STRING:
		np_bag_text(b, text, "%s", name);
		break;
	case NP_BAG_REALS:
	case NP_BAG_INTS:
		put_list(b, kind, i, r, name);
		break;
	case NP_BAG_UNREAD:
		np_bag_unread(b, text, "%s", name);
		break;
	case 7: /* numbers that fuzzing finds at once */
		np_bag_int(b, (int16_t)(bytes[0] | bytes[1] << 8), "%s", name);
		break;
	default:
		np_bag_real(b, r, "%s", name);
		break;
	}
}

/* As the far end would tell it. */
static struct np_bag *
next_bag(struct fuzz_input *in, size_t items, bool raw)
{
	struct np_bag *made = np_bag_new(), *read = np_bag_new();
	struct np_err err;
	uint8_t *bytes;

	must(made != NULL && read != NULL);
	for (size_t i = 0; i < items && in->left > 0; i++) {
		put_item(in, made);
	}
	if (raw) {
		bytes = malloc(NP_TAGGED_AT + in->left);
		must(bytes != NULL);
		np_tagged_head(bytes, NP_EXT_BAG, in->left);
		memcpy(bytes + NP_TAGGED_AT, in->at, in->left);
		(void)np_bag_decode(bytes, read, &err);
		free(bytes);
		in->left = 0;
	} else {
		must(np_bag_encode(made, &bytes, &err) == NP_OK);
		must(np_bag_decode(bytes, read, &err) == NP_OK);
		free(bytes);
	}
	np_bag_free(made);
	return read;
}

static bool
is_share(double v)
{
	return v >= 0 && v <= 1;
}

static void
explain(const struct np_explain_input *in)
{
	struct np_bag *values = np_bag_new();
	struct np_explanation e;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	must(values != NULL && out != NULL);
	np_explain(in, &e);
	must(e.best.limit < NP_LIMITS && is_share(e.best.score));
	must(isnan(e.ceiling.most) || e.ceiling.most >= 0);
	must(in->family != 0 || isnan(e.ceiling.most));
	must(strlen(e.best.sentence) > 0 && strstr(e.best.sentence, "nan") == NULL);
	np_explain_put(&e, in->transactions, values);
	np_explain_print(out, values);
	np_ledger_print(out, in->near, in->far, in->far_lacks);
	np_preflight_print(out, "remote",
			   &(struct np_preflight){ .host = in->far, .peer = in->near });
	must(fclose(out) == 0 && size > 0);
	for (size_t i = 0; i < size; i++) {
		must(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
	}
	free(text);
	np_bag_free(values);
}

/* The ceilings alone, which have to take any number. */
static void
find_ceilings(const struct np_encap *e, uint32_t request, uint32_t response)
{
	double share[] = { np_ceiling_tcp(e), np_ceiling_udp(e, request),
			   np_ceiling_udp(e, response) };

	for (size_t i = 0; i < LEN(share); i++) {
		must(isnan(share[i]) || is_share(share[i]));
	}
	(void)np_ceiling_fragments(e, request);
	for (enum np_turns t = NP_TURNS_TCP_RR; t <= NP_TURNS_TCP_CC; t++) {
		double most = np_ceiling_turns(e, t, request, response, 1e9, 0, 1);

		must(isnan(most) || most > 0);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int families[] = { 0, NP_FRAMES, 4, 6 };
	struct fuzz_input in = { .at = data, .left = size };
	uint8_t set = fuzz_byte(&in), bytes = fuzz_byte(&in);
	size_t near_items = fuzz_byte(&in), far_items = fuzz_byte(&in);
	struct np_bag *near, *far;
	struct np_explain_input x = {
		.datagrams = (set & 4) != 0,
		.transactions = (set & 8) != 0,
		.near_transmits = (set & 24) == 16,
		.connections = (set & 24) == 24,
		.family = families[set & 3],
		.seconds = 10,
		.sent_bps = 1e8,
		.throughput_bps = 9e7,
		.per_second = 1000,
		.request = (uint32_t)bytes * bytes,
		.response = bytes,
		.in_flight = 1,
		.link_rate_bps = (set & 32) != 0 ? 1e8 : 0,
		.far_lacks = (set & 64) != 0 ? "told nothing" : "",
	};
	struct np_encap encap = { .family = x.family,
				  .timestamps = (set & 32) != 0,
				  .framing = NP_FRAMING_ETHERNET };

	fuzz_take(&in, &encap.mtu, sizeof(encap.mtu), sizeof(encap.mtu));
	encap.mss = fuzz_byte(&in);
	find_ceilings(&encap, x.request, x.response);
	find_ceilings(&encap, UINT32_MAX - bytes, bytes);
	near = next_bag(&in, near_items, false);
	far = next_bag(&in, far_items, (set & 128) != 0);
	x.near = near;
	x.far = far;
	explain(&x);
	np_bag_free(near);
	np_bag_free(far);
	return 0;
}
