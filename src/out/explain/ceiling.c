/* The ceiling: the most that the link could have carried for a test, and where the rest went. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "out/explain/rules.h"

double
np_payload_share(const struct np_facts_of_test *f, const struct np_encap *encap)
{
	double size = np_bag_number(f->tx, "flow.send_size");

	if (f->in->messages) {
		return size >= 0 && size <= UINT32_MAX ? np_ceiling_sctp(encap, (uint32_t)size)
						       : (double)NAN;
	}
	if (!f->in->datagrams) {
		return np_ceiling_tcp(encap);
	}
	return size >= 0 && size <= 65535 ? np_ceiling_udp(encap, (uint32_t)size) : (double)NAN;
}

/* The kind of transaction, as each has its own sequence of packets. */
static enum np_turns
turns_of(const struct np_explain_input *in)
{
	if (in->datagrams) {
		return NP_TURNS_UDP_RR;
	}
	if (in->messages) {
		return NP_TURNS_SCTP_RR;
	}
	if (!in->connections) {
		return NP_TURNS_TCP_RR;
	}
	return in->request > 0 || in->response > 0 ? NP_TURNS_TCP_CRR : NP_TURNS_TCP_CC;
}

/* A count of the sender's kernel, else of its capture (`out`), else of the receiver's (`in`). */
static double
sent_count(const struct np_facts_of_test *f, const char *kernels, const char *out, const char *in)
{
	double v = np_bag_number(f->tx, kernels);

	v = isnan(v) ? np_bag_number(f->tx, out) : v;
	return isnan(v) ? np_bag_number(f->rx, in) : v;
}

/* How much of a stream's ceiling was used for anything but payload that arrived. */
static void
where_it_went(const struct np_facts_of_test *f, struct np_explain_ceiling *c)
{
	double headers = f->encap.framing.header + f->encap.framing.rest +
			 np_ceiling_ip_header(&f->encap) + 20 + (f->encap.timestamps ? 12 : 0);
	/* What the link could carry in the time, headers included; and its payload. */
	double link_bytes = f->rate_bps * f->seconds / 8, most_bytes = c->most * f->seconds / 8;
	double again = sent_count(f, "tcp.retransmitted_bytes", "wire.out.retransmitted_bytes",
				  "wire.in.retransmitted_bytes");
	double out = sent_count(f, "tcp.segments_out", "wire.out.segments", "wire.in.segments");
	double segments = sent_count(f, "tcp.data_segments_out", "wire.out.data_segments",
				     "wire.in.data_segments");
	double payload = f->in->throughput_bps * f->seconds / 8;
	double fewest = payload / np_ceiling_segment(&f->encap);

	if (f->in->datagrams) {
		if (f->in->sent_bps > 0) {
			c->lost = (f->in->sent_bps - f->in->throughput_bps) / c->most;
		}
		c->idle = 1 - c->reached - np_known(c->lost);
		return;
	}
	c->retransmits = again / most_bytes;
	c->acks = (out - segments) * headers / link_bytes;
	c->small_segments = (segments - fewest) * headers / link_bytes;
	/* Retransmitted segments are counted already. */
	c->small_segments -= again / np_ceiling_segment(&f->encap) * headers / link_bytes;
	c->small_segments = c->small_segments < 0 ? 0 : c->small_segments;
	c->idle = 1 - c->reached - np_known(c->retransmits) - np_known(c->acks) -
		  np_known(c->small_segments);
}

/* Find the ceiling; its figures are NAN if the link's rate or the MTU is not known. */
static void
find_ceiling(const struct np_facts_of_test *f, struct np_explain_ceiling *c)
{
	const struct np_explain_input *in = f->in;
	double arrived;

	c->rate_bps = f->rate_bps > 0 ? f->rate_bps : (double)NAN;
	c->most = c->reached = (double)NAN;
	c->retransmits = c->small_segments = c->acks = c->lost = c->idle = (double)NAN;
	if (!(f->rate_bps > 0) || isnan(f->mtu)) {
		return;
	}
	if (in->messages && in->connections) {
		return; /* SCTP associations of a transaction each: there is no formula */
	}
	if (in->transactions) {
		uint32_t in_flight = in->in_flight > 0 ? in->in_flight : 1;

		/* No delay (0). A token bucket limits only the average, as with many in flight. */
		c->most = np_ceiling_turns(&f->encap, turns_of(in), in->request, in->response,
					   f->rate_bps, 0, f->bucket ? UINT32_MAX : in_flight);
		c->reached = (in->per_second + in->beside) / c->most;
		return;
	}
	c->most = f->rate_bps * np_payload_share(f, &f->encap);
	c->most = c->most > 0 ? c->most : (double)NAN; /* datagrams of 0 bytes carry nothing */
	/* What a queue delivers after the end exceeds the test's time: use the receiver's. */
	arrived = in->datagrams
		      ? fmin(in->throughput_bps, np_bag_number(f->rx, "udp.receive_span_bps"))
		      : in->throughput_bps;
	c->reached = (arrived + in->beside) / c->most;
	/* The evidence is that of the first session. */
	if (!isnan(c->most) && in->sessions < 2 && !in->messages) {
		where_it_went(f, c);
	}
}

/* Add a part of the ceiling, if it is not negligible. */
static void
part(char *text, double share, const char *what)
{
	if (share >= 0.0005) {
		np_text_add(text, NP_EXPLAIN_TEXT, strlen(text), ", %s %s", what,
			    np_share_words(share).text);
	}
}

void
np_ceiling_tell(struct np_facts_of_test *f, struct np_explanation *out)
{
	struct np_explain_ceiling *c = &out->ceiling;
	char *text = out->ceiling_text;

	find_ceiling(f, c);
	f->reached = c->reached;
	if (isnan(c->most)) {
		if (np_ceiling_least_mtu(f->in->family) == 0) {
			return;
		}
		snprintf(text, NP_EXPLAIN_TEXT, "not known: %s",
			 f->subflows > 1 && !(f->rate_bps > 0)
			     ? "subflows may use several links (give the sum of their rates with "
			       "--link-rate)"
			 : !(f->rate_bps > 0) ? "no link rate was found (give it with --link-rate)"
			 : isnan(f->mtu)      ? "the MTU could not be read"
					      : "messages of that size have none");
		return;
	}
	if (f->in->transactions) {
		snprintf(text, NP_EXPLAIN_TEXT, "%.0f transactions a second", c->most);
	} else {
		snprintf(text, NP_EXPLAIN_TEXT, "%s of payload", np_rate_words(c->most).text);
	}
	np_text_add(text, NP_EXPLAIN_TEXT, strlen(text), " at %s (%s), MTU %.0f",
		    np_rate_words(c->rate_bps).text, f->rate_source, f->mtu);
	if (c->reached > NP_TOO_FULL) {
		np_explain_add(text,
			       "%.12g times as much arrived: the data did not go over that link",
			       np_significant(c->reached, 3));
		return;
	}
	np_explain_add(text, "%s of it reached", np_share_words(c->reached).text);
	part(text, c->retransmits, "retransmitted");
	part(text, c->small_segments, "headers of small segments");
	part(text, c->acks, "ACKs beside data");
	if (c->lost > 1) { /* more than the link carries: rather as a share of what was sent */
		part(text, 1 - f->in->throughput_bps / f->in->sent_bps, "lost after sending");
	} else {
		part(text, c->lost, "lost");
	}
	part(text, f->foreign, "other traffic");
	part(text, c->idle - np_known(f->foreign), "idle");
}
