#!/usr/bin/env python3
"""The wire ledger compared with the kernel's counters on a link that loses, duplicates and reorders packets: the
short version of wire_bed.py, which has more links and witnesses. Needs root, for scripts/netlab."""

import shutil
import tempfile
from functools import partial
from pathlib import Path

import lib
import wire_bed

STREAM = wire_bed.Test("TCP_STREAM", ("-l", "-1500000"))
PIECES = wire_bed.Test("UDP_STREAM", ("-l", "1", "-b", "1", "-w", "4ms"), ("-m", "4000"))
TESTS = ((STREAM, 4), (STREAM, 6), (PIECES, 4))


def case(link: wire_bed.Link, port: int, test: wire_bed.Test, family: int) -> str:
    ends = {name: wire_bed.Counters(end, port, name == "near")
            for name, end in (("near", link.near), ("far", link.far))}
    for end in ends.values():
        end.begin()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "run.json"
        got = lib.run([*link.near.prefix, lib.netperf(), "-H", link.hosts[family], "-p", str(port), "-t",
                       test.name, *test.how, "-P", "0", "--wire", f"--json={path}", "--", *test.more], 60)
        if "without libpcap" in got.err or "jansson" in got.err:
            raise lib.Skipped(got.err.splitlines()[0])
        assert got.rc == 0, got.err
        made = lib.document(path.read_text())
    last, between = made["iterations"][-1], made["explanation"]["values"]
    if any(last[name]["wire.dropped"] for name in ends):
        raise lib.Skipped("a capture lost packets")
    for end in ends.values():
        end.end_now()
    said = [compare(last[name], ends[name], name, way, test.protocol)
            for name in ends for way in wire_bed.WAYS]
    assert "wire.way.out.missing" in between, between
    near = last["near"]
    if test.protocol == wire_bed.TCP:   # what the kernel reports as sent
        sent, kernels = near["wire.out.data_segments"], near["tcp.data_segments_out"]
        assert abs(sent / kernels - 1) <= 0.005, f"{sent} segments with data, TCP_INFO has {kernels}"
    else:
        pieces, datagrams = near["wire.out.fragments"], near["wire.out.data_segments"]
        # pieces of the last one may still be in the link's queue when the capture stops
        assert datagrams > 100 and 0 <= 3 * datagrams - pieces <= 2, f"{datagrams} datagrams in {pieces} pieces"
    if family == 4 and test.protocol == wire_bed.TCP and not last["near"]["wire.open_at_end"]:
        assert between["wire.way.out.mistaken"] <= 0, between
        assert between["wire.way.out.doubled"] > 0, between
    return ", ".join(said)


def compare(ledger: "dict[str, float]", counted: wire_bed.Counters, name: str, way: str, protocol: int) -> str:
    have = ledger[f"wire.{way}.packets"] + ledger[f"wire.{way}.fragments_orphaned"]
    # outgoing packets are segmented after the filter
    cut = ledger[f"wire.{way}.fragments"] if way == "out" else 0
    have = have - cut + ledger[f"wire.{way}.data_segments"] if cut else have
    late = counted.filtered[way] - have
    assert late >= 0, f"{name} {way}: the ledger has {have:.0f}, nft {counted.filtered[way]}"
    assert late == 0 or protocol == wire_bed.UDP or ledger["wire.open_at_end"], \
        f"{name} {way}: the ledger has {have:.0f}, nft {counted.filtered[way]}, and no word of it"
    assert late <= 3 or protocol == wire_bed.TCP, f"{name} {way}: {late:.0f} datagrams are missing"
    return f"{name} {way} {have:.0f}"


def suite(report: lib.Report) -> None:
    lib.skip_if(lib.no_line() or ("" if shutil.which("nft") else "no nft"))
    with wire_bed.LINKS["all"]() as link, lib.Daemon(link.far.prefix, ["--allow-raw"]) as daemon:
        for test, family in TESTS:
            report.case(f"{test}, IPv{family}", partial(case, link, daemon.port, test, family))


if __name__ == "__main__":
    lib.main(suite)
