"""The vectors that the unit test of src/stats/ceiling.c goes by are what netkit.ceiling says:
netperf and netreport speak of the same ceilings. `ceilings.py --write` makes the table again.
"""

import itertools
import sys
from typing import Iterator

import lib

sys.path.insert(0, str(lib.TOP / "scripts"))

from netkit import ceiling  # noqa: E402

TABLE = lib.TOP / "tests" / "vectors" / "ceilings.def"
HEAD = """\
/*
 * What links carry at most, by scripts/netkit/ceiling.py; tests/e2e/ceilings.py --write made it.
 * VECTOR_STREAM(test, mtu, IP version, time-stamps, VLAN, MSS, size, share of the rate)
 * VECTOR_TURNS(test, mtu, IP version, time-stamps, request, response, rate, delay, in flight,
 *              a second)
 */
"""
MTUS = {4: (68, 256, 576, 1006, 1500, 9000), 6: (1280, 1500, 9000)}
SIZES = (0, 1, 18, 64, 228, 229, 1452, 1453, 1472, 1473, 1500, 8972, 65000, 65507)


def streams() -> Iterator[str]:
    for family in (4, 6):
        for mtu, stamps, vlan, mss in itertools.product(MTUS[family], (True, False),
                                                        (False, True), (None, 536)):
            share = ceiling.stream("TCP_STREAM", mtu, family, stamps, vlan, mss=mss)
            yield (f"VECTOR_STREAM(TCP, {mtu}, {family}, {stamps:d}, {vlan:d}, {mss or 0}, 0, "
                   f"{share!r})")
        for mtu, size in itertools.product(MTUS[family], SIZES):
            share = ceiling.stream("UDP_STREAM", mtu, family, size=size)
            yield f"VECTOR_STREAM(UDP, {mtu}, {family}, 1, 0, 0, {size}, {share!r})"


def turns() -> Iterator[str]:
    sizes = ((1, 1), (1, 0), (2000, 1), (1, 1449), (1448, 65000))
    for test, family, stamps, (request, response) in itertools.product(
            ceiling.TRANSACTIONS, (4, 6), (True, False), sizes):
        for rate, mtu, delay, flying in ((1e8, 1500, 0.0, 1), (1e9, 9000, 0.01, 4),
                                         (2.5e9, 1500, 50e-6, 1000)):
            most = ceiling.transactions(test, request, response, rate, mtu, family, stamps,
                                        delay=delay, in_flight=flying)
            yield (f"VECTOR_TURNS({test}, {mtu}, {family}, {stamps:d}, {request}, {response}, "
                   f"{rate!r}, {delay!r}, {flying}, {most!r})")


def table() -> str:
    return HEAD + "".join(f"{line}\n" for line in itertools.chain(streams(), turns()))


def suite(report: lib.Report) -> None:
    report.check("tests/vectors/ceilings.def is what netkit.ceiling says",
                 TABLE.read_text() == table(), "ceilings.py --write makes it again")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        TABLE.write_text(table())
    else:
        lib.main(suite)
