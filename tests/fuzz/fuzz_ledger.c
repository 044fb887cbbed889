/*
 * Packets as strangers send them, to a ledger. The input is a byte of settings (link, protocol,
 * connections, MTU known) and packets, each three bytes of time, two of length on the wire, one of
 * bytes captured, and these.
 */
#include "tests/fuzz/fuzz.h"

#include "net/ledger.h"

static double
number(const struct np_bag *b, const char *way, const char *name)
{
	char full[NP_BAG_NAME];

	snprintf(full, sizeof(full), "wire.%s.%s", way, name);
	return np_bag_number(b, full);
}

static void
adds_up(const struct np_bag *b, const char *way, bool followed)
{
	double segments = number(b, way, "segments"), in_classes = 0;
	char full[NP_BAG_NAME];
	struct np_bag_item sizes;

	snprintf(full, sizeof(full), "wire.%s.size_counts", way);
	must(np_bag_find(b, full, &sizes));
	for (size_t i = 0; i < sizes.count; i++) {
		must(sizes.ints[i] >= 0);
		in_classes += (double)sizes.ints[i];
	}
	must(in_classes == segments);
	must(number(b, way, "packets") <= segments);
	must(number(b, way, "data_segments") <= segments);
	must(!(number(b, way, "gap_p99_us") > number(b, way, "gap_max_us")));
	must(!followed || number(b, way, "retransmitted_bytes") <= number(b, way, "bytes.payload"));
	must(!followed || number(b, way, "doubled") <= number(b, way, "duplicated"));
	must(number(b, way, "fragments_orphaned") >= 0);
	must(number(b, way, "bytes.orphaned") >= 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t near[] = { 192, 0, 2, 1 }, far[] = { 192, 0, 2, 2 };
	unsigned set = size > 0 ? data[0] : 0;
	struct np_ledger_flow f = {
		.link = (enum np_ledger_link)((set & 7) % 5),
		.protocol = (set & 8) != 0 ? IPPROTO_UDP : IPPROTO_TCP,
		.many_connections = (set & 16) != 0,
		.mtu = (set & 32) != 0 ? 1500 : 0,
	};
	struct np_bag *b = np_bag_new();
	struct np_ledger *l;
	uint64_t at_ns = 1, ours = 0;

	if ((set & 64) == 0) {
		np_addr_make(&f.near, AF_INET, near, 0);
		np_addr_make(&f.far, AF_INET, far, 50000);
	}
	l = np_ledger_new(&f);
	must(l != NULL && b != NULL);
	for (size_t at = 1; at + 6 <= size;) {
		size_t wire = (size_t)data[at + 3] << 8 | data[at + 4], n = data[at + 5];
		uint8_t *bytes;

		at_ns += (uint64_t)data[at] << 20 | (uint64_t)data[at + 1] << 8 | data[at + 2];
		at += 6;
		n = n < size - at ? n : size - at;
		bytes = malloc(n); /* of its size, for a sanitizer to watch its end */
		must(bytes != NULL || n == 0);
		if (n > 0) {
			memcpy(bytes, data + at, n);
		}
		ours += np_ledger_packet(l, at_ns, bytes, n, wire);
		free(bytes);
		at += n;
	}
	np_ledger_put(l, b);
	must(np_bag_left_out(b) == 0);
	/* Beside those a fragment may have been of a datagram that turned out to be another's. */
	must(np_bag_number(b, "wire.captured") + np_bag_number(b, "wire.malformed") +
		 number(b, "out", "fragments_orphaned") + number(b, "in", "fragments_orphaned") <=
	     (double)ours);
	adds_up(b, "out", f.protocol == IPPROTO_TCP && !f.many_connections);
	adds_up(b, "in", f.protocol == IPPROTO_TCP && !f.many_connections);
	np_bag_free(b);
	free(l);
	return 0;
}
