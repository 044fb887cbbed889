/* The table of --wire: the wire.* values of doc/evidence.md. */
#include <math.h>

#include "base/text.h"
#include "out/format.h"

enum { COLUMNS = 4, SIZES = 8 };

#define MOST 1e15 /* segments: a far end that reports more is wrong */

/* The columns: near end out and in, far end out and in. */
static const char *const ways[COLUMNS] = { "out", "in", "out", "in" };

/* A value of a column, wire.out.NAME or wire.in.NAME of its end; NAN: not known. */
static double
value(const struct np_bag *const ends[2], int column, const char *name)
{
	char full[NP_BAG_NAME];

	snprintf(full, sizeof(full), "wire.%s.%s", ways[column], name);
	return np_bag_number(ends[column / 2], full);
}

/* A row, unless all its values are 0 or not known (NAN). */
static void
print_row(FILE *out, const char *label, const double v[COLUMNS], int decimals)
{
	bool any = false;

	for (int i = 0; i < COLUMNS; i++) {
		any = any || v[i] > 0;
	}
	if (!any) {
		return;
	}
	fprintf(out, "%-22s", label);
	for (int i = 0; i < COLUMNS; i++) {
		if (isnan(v[i])) {
			fprintf(out, " %13s", "-");
		} else {
			fprintf(out, " %13.*f", decimals, v[i]);
		}
	}
	fputc('\n', out);
}

static void
print_values(FILE *out, const struct np_bag *const ends[2])
{
	static const struct {
		const char *label, *name;
		double scale;
		int decimals;
	} rows[] = {
		{ "packets seen", "packets", 1, 0 },
		{ "  bytes of them", "bytes.seen", 1, 0 },
		{ "  super-packets", "super_packets", 1, 0 },
		{ "  IP fragments", "fragments", 1, 0 },
		{ "fragments, orphaned", "fragments_orphaned", 1, 0 },
		{ "segments", "segments", 1, 0 },
		{ "  with data", "data_segments", 1, 0 },
		{ "  pure ACKs", "acks", 1, 0 },
		{ "  SYN", "syn", 1, 0 },
		{ "  FIN", "fin", 1, 0 },
		{ "payload, bytes", "bytes.payload", 1, 0 },
		{ "transport headers", "bytes.transport", 1, 0 },
		{ "IP headers", "bytes.ip", 1, 0 },
		{ "link headers", "bytes.link", 1, 0 },
		{ "retransmitted segments", "retransmitted_segments", 1, 0 },
		{ "retransmitted bytes", "retransmitted_bytes", 1, 0 },
		{ "reordered", "reordered", 1, 0 },
		{ "duplicated", "duplicated", 1, 0 },
		{ "  by the network", "doubled", 1, 0 },
		{ "resets", "rst", 1, 0 },
		{ "marked CE", "ecn_ce", 1, 0 },
		{ "echoing CE", "ecn_ece", 1, 0 },
		{ "window of zero", "zero_window", 1, 0 },
		{ "  for seconds", "zero_window_s", 1, 6 },
		{ "longest gap, ms", "gap_max_us", 1e-3, 3 },
		{ "99 % of gaps, us, <=", "gap_p99_us", 1, 1 },
	};
	double v[COLUMNS];

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		for (int i = 0; i < COLUMNS; i++) {
			v[i] = value(ends, i, rows[r].name) * rows[r].scale;
		}
		print_row(out, rows[r].label, v, rows[r].decimals);
	}
}

/* Without a capture, below the line about that end: its interface's counters, if known. */
static void
print_counters(FILE *out, const struct np_bag *end)
{
	static const char *const names[] = { "tx_packets", "tx_bytes", "rx_packets", "rx_bytes" };
	bool any = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char full[NP_BAG_NAME];
		double v;

		snprintf(full, sizeof(full), "moved.nic.%s", names[i]);
		v = np_bag_number(end, full);
		if (!isnan(v)) {
			fprintf(out, "%s %s %.0f", any ? "," : "  its interface counted", names[i],
				v);
			any = true;
		}
	}
	if (any) {
		fputs(" (with all other traffic)\n", out);
	}
}

/* Print where an end's figures come from, and what they miss; or why there are none (`lacks`). */
static void
print_tap(FILE *out, const char *which, const struct np_bag *end, const char *lacks)
{
	const char *tap = np_bag_string(end, "wire.tap");
	double dropped = np_bag_number(end, "wire.dropped");
	double malformed = np_bag_number(end, "wire.malformed");
	struct np_bag_item why;

	if (tap == NULL) {
		bool known = np_bag_find(end, "wire", &why) && why.kind == NP_BAG_UNREAD;

		np_text_line(out, "%s: no ledger: %s", which,
			     known              ? why.text
			     : lacks[0] != '\0' ? lacks
						: "nothing is known about that end");
		print_counters(out, end);
		return;
	}
	np_text_line(out, "%s: %s", which, tap);
	if (dropped > 0) {
		fprintf(out,
			"  the capture itself lost %.0f packets: these figures are lower bounds, "
			"and lost packets may look like a hole\n",
			dropped);
	}
	if (malformed > 0) {
		fprintf(out, "  the headers of %.0f packets could not be read\n", malformed);
	}
	for (int i = 0; i < 2; i++) {
		double orphans =
		    value((const struct np_bag *const[]){ end, NULL }, i, "fragments_orphaned");

		if (orphans > 0) {
			fprintf(out,
				"  of %.0f fragments %s the first fragment of their datagram, "
				"which has the ports, was not captured (lost?): they are not in "
				"any other figure\n",
				orphans, i == 0 ? "going out" : "coming in");
		}
	}
	if (np_bag_number(end, "wire.open_at_end") > 0) {
		fputs("  the capture ended with the test, before the connection: later packets "
		      "(FIN, RST, queued data) are not in these figures\n",
		      out);
	}
}

/* Data segments of one direction, as captured at both ends. */
struct way {
	const char *name, *from, *to;
	double sent, arrived, doubled;
	double sent_again;   /* retransmissions, as captured at the sender */
	double taken_for_it; /* what looks like them at the receiver */
	bool open;           /* the sender's capture ended before the connection */
	bool warmed_up;      /* all counts include the warm-up */
};

/* A value with the warm-up's: what crosses as the windows open would count at one end only. */
static double
with_warm_up(const struct np_bag *const ends[2], int column, const char *name)
{
	char full[NP_BAG_NAME / 2];
	double before;

	snprintf(full, sizeof(full), "warm_up.%s", name);
	before = value(ends, column, full);
	return value(ends, column, name) + (isnan(before) ? 0 : before);
}

/* Is there a capture of this end that lost no packets? */
static bool
is_complete(const struct np_bag *end)
{
	return np_bag_string(end, "wire.tap") != NULL && np_bag_number(end, "wire.dropped") == 0;
}

/* Fill *w for one direction, out of the near end or into it. False: no data, or a bad capture. */
static bool
compare(const struct np_bag *const ends[2], bool out, struct way *w)
{
	int from = out ? 0 : 2, to = out ? 3 : 1; /* columns */

	*w = (struct way){ .name = out ? "out" : "in",
			   .from = out ? "local" : "remote",
			   .to = out ? "remote" : "local",
			   .sent = with_warm_up(ends, from, "data_segments"),
			   .arrived = with_warm_up(ends, to, "data_segments"),
			   .doubled = fmax(with_warm_up(ends, to, "doubled"), 0),
			   .sent_again = with_warm_up(ends, from, "retransmitted_segments"),
			   .taken_for_it = with_warm_up(ends, to, "retransmitted_segments"),
			   .warmed_up = value(ends, from, "warm_up.data_segments") >= 0,
			   .open = np_bag_number(ends[from / 2], "wire.open_at_end") > 0 };
	return is_complete(ends[0]) && is_complete(ends[1]) && w->sent > 0 && w->sent < MOST &&
	       w->arrived >= 0 && w->arrived < MOST && fabs(w->doubled) < MOST &&
	       !(fabs(w->sent_again) >= MOST) && !(fabs(w->taken_for_it) >= MOST);
}

void
np_ledger_compare(const struct np_bag *near, const struct np_bag *far, struct np_bag *into)
{
	const struct np_bag *const ends[2] = { near, far };
	struct way w;

	for (int out = 0; out < 2; out++) {
		if (!compare(ends, out != 0, &w)) {
			continue;
		}
		np_bag_int(into, (int64_t)(w.sent + w.doubled - w.arrived), "wire.way.%s.missing",
			   w.name);
		if (!isnan(w.sent_again) && !isnan(w.taken_for_it)) {
			np_bag_int(into, (int64_t)w.doubled, "wire.way.%s.doubled", w.name);
			np_bag_int(into, (int64_t)w.sent_again, "wire.way.%s.sent_again", w.name);
			np_bag_int(into, (int64_t)(w.taken_for_it - w.sent_again),
				   "wire.way.%s.mistaken", w.name);
		}
	}
}

/* Print the segments of one direction: sent by one end's capture, arrived by the other's. */
static void
print_way(FILE *out, const struct way *w)
{
	double missing = w->sent + w->doubled - w->arrived;

	fprintf(out, "%s to %s%s: %.0f segments with data sent, %.0f arrived", w->from, w->to,
		w->warmed_up ? ", with the warm-up" : "", w->sent, w->arrived);
	if (w->doubled > 0) {
		fprintf(out, ", %.0f of them duplicated on the path", w->doubled);
	}
	if (missing > 0) {
		fprintf(out, ", %.0f missing (lost, or in flight when a capture ended)", missing);
	} else if (missing < 0) {
		fprintf(out,
			", %.0f more than sent (duplicated on the path, or after the end of the "
			"sender's capture)",
			-missing);
	}
	fputc('\n', out);
	/* If the receiver saw more than the sender's capture has, some of that was sent again. */
	if (w->taken_for_it > w->sent_again && missing >= 0) {
		fprintf(out,
			"  %.0f were sent again; what the %s tap has beyond, %.0f, was reordered "
			"or duplicated on the path%s\n",
			w->sent_again, w->to, w->taken_for_it - w->sent_again,
			w->open ? ", or sent after the end of the sender's capture" : "");
	}
}

void
np_ledger_print(FILE *out, const struct np_bag *near, const struct np_bag *far,
		const char *far_lacks)
{
	static const char *const labels[SIZES] = { "IP bytes up to 64", "up to 128",  "up to 256",
						   "up to 512",         "up to 1024", "up to 1518",
						   "up to 9018",        "beyond 9018" };
	const struct np_bag *const ends[2] = { near, far };
	struct np_bag_item item;
	char name[NP_BAG_NAME];
	double v[COLUMNS];
	struct way w;

	fputs("Wire ledger\n", out);
	if (np_bag_string(near, "wire.tap") != NULL || np_bag_string(far, "wire.tap") != NULL) {
		fprintf(out, "%-22s %13s %13s %13s %13s\n", "", "local out", "local in",
			"remote out", "remote in");
		print_values(out, ends);
		for (size_t size = 0; size < SIZES; size++) {
			for (int i = 0; i < COLUMNS; i++) {
				snprintf(name, sizeof(name), "wire.%s.size_counts", ways[i]);
				v[i] = size < np_bag_list(ends[i / 2], name, NP_BAG_INTS, &item)
					   ? np_bag_value(&item, size)
					   : (double)NAN;
			}
			print_row(out, labels[size], v, 0);
		}
		for (int i = 0; i < 2; i++) {
			if (compare(ends, i == 0, &w)) {
				print_way(out, &w);
			}
		}
	}
	print_tap(out, "local", near, "");
	print_tap(out, "remote", far, far_lacks != NULL ? far_lacks : "");
	fflush(out);
}
