#!/usr/bin/env python3
"""The account of numbered datagrams against what nftables dropped and doubled on the way: equal,
to the last one. Needs root, for scripts/netlab, and nftables with rules at a device's egress."""

import os
import re
import tempfile
from itertools import product
from pathlib import Path
from typing import Any, Dict, NamedTuple, Tuple

import lib
from netns import IPV4, IPV6

MARK = 0x504c7371                       # of numbered datagrams, protocol.md
RATE = 20.0                             # Mbit/s: any machine's receiver keeps up with that
SIZE = 1000
COUNT = 400 if lib.QUICK else 2000      # datagrams of a counted run
ATTEMPTS = 3                            # at a run without overruns, on a machine that others use

Evidence = Dict[str, Any]


class Wrong(Exception):
    """The account is not what the rules did."""


class Overrun(Exception):
    """The receiver was not there in time: the kernel lost datagrams, too."""


class Plan(NamedTuple):
    """What happens to the datagrams on their way: statements that match, of nft."""
    name: str
    drop: str = ""
    double: str = ""
    burst: int = 1              # length of each loss
    block: int = 1              # datagrams of what is one packet to the rules: it is cut behind them
    host: str = IPV4
    options: Tuple[str, ...] = ("-l", f"-{COUNT * SIZE}")
    specific: Tuple[str, ...] = ("-m", str(SIZE))


PLANS = (
    Plan("nothing"),
    Plan("every 10th lost", drop="numgen inc mod 10 == 3"),
    Plan("bursts of 5 lost", drop="numgen inc mod 100 20-24", burst=5),
    Plan("every 7th doubled", double="numgen inc mod 7 == 5"),
    Plan("lost and doubled", drop="numgen inc mod 9 == 2", double="numgen inc mod 4 == 1"),
    Plan("random ones", drop="numgen random mod 100 < 7", double="numgen random mod 100 < 9",
         burst=0),
    Plan("by time", drop="numgen inc mod 10 == 3", double="numgen inc mod 7 == 5",
         options=("-l", "1")),
    Plan("over IPv6", drop="numgen inc mod 10 == 3", double="numgen inc mod 7 == 5", host=IPV6),
    Plan("connected, in 20 bytes", drop="numgen inc mod 10 == 3", double="numgen inc mod 7 == 5",
         options=("-l", "-20000"), specific=("-m", "20", "-n")),
    Plan("by batches", drop="numgen inc mod 10 == 3", double="numgen inc mod 7 == 5",
         options=("--engine", "batch", "-l", f"-{COUNT * SIZE}")),
    Plan("of three flows", drop="numgen inc mod 10 == 3", double="numgen inc mod 7 == 5", burst=0,
         options=("--flows", "3", "--threads", "2", "-l", f"-{COUNT * SIZE}")),
    Plan("in blocks", drop="numgen inc mod 5 == 3", double="numgen inc mod 7 == 5", burst=10, block=10,
         options=("--engine", "segment", "--batch", "10", "-l", f"-{COUNT * SIZE}")),
    Plan("never asleep", drop="numgen inc mod 10 == 3", double="numgen inc mod 7 == 5",
         options=("-l", f"-{COUNT * SIZE}", "--engine", "spin,spin")),
    Plan("dirty buffers, paced", drop="numgen inc mod 10 == 3", double="numgen inc mod 7 == 5",
         # On one processor: woken on another one, a sender overtakes what waits on the first.
         options=("-T", "0", "-l", f"-{COUNT * SIZE}", "-b", "20", "-w", "10", "-k", "100")),
)


# Flows at ports that the daemon chooses, and at ports in a row from the one that is named. Their buffers
# together hold more than the link's queue does: so they are paced.
FLOWS = tuple((*flows, "-b", "20", "-w", "10", "--", "-R", "1", "-m", str(SIZE), *specific) for flows, specific in (
    (("--flows", "5", "-l", "1"), ()),
    (("--flows", "100", "-l", f"-{COUNT * SIZE}"), ()),
    (("--flows", "20", "-l", "1"), ("-P", ",4999")),
    (("--flows", "20", "-l", f"-{COUNT * SIZE}"), ("-P", ",4999")),
))


def spoil(lab: lib.Lab, plan: Plan) -> None:
    """At the sender's egress, where no socket is told. Counters: sent, lost, doubled."""
    numbered = f"meta l4proto udp @th,64,32 {MARK:#x}"
    lines = ["add table netdev lab",
             "add chain netdev lab out { type filter hook egress device lab0 priority 0; }",
             *(f"add counter netdev lab {name}" for name in ("sent", "lost", "doubled")),
             "add rule netdev lab out meta mark 1 accept",  # a copy comes here once more
             f"add rule netdev lab out {numbered} counter name sent"]
    if plan.drop:
        lines.append(f"add rule netdev lab out {numbered} {plan.drop} counter name lost drop")
    if plan.double:
        lines.append(f"add rule netdev lab out {numbered} {plan.double} counter name doubled "
                     "meta mark set 1 dup to lab0")
    lib.must([*lab.client, "nft", "; ".join(lines)])


def counters(lab: lib.Lab) -> "Dict[str, int]":
    got = lib.run([*lab.client, "nft", "list counters netdev"], 20)
    found = re.findall(r"counter (\w+) {\s*packets (\d+)", got.out)
    assert len(found) == 3, got.out + got.err
    return {name: int(packets) for name, packets in found}


def overruns(lab: lib.Lab) -> int:
    """Datagrams that the server's sockets had no room for."""
    text = lib.run([*lab.server, "cat", "/proc/net/snmp", "/proc/net/snmp6"], 20).out
    heads, row = (line.split() for line in text.splitlines() if line.startswith("Udp:"))
    six = re.search(r"Udp6RcvbufErrors\s+(\d+)", text)
    return int(row[heads.index("RcvbufErrors")]) + int(six[1] if six else 0)


def evidence(lab: lib.Lab, port: int, plan: Plan) -> "Tuple[Evidence, Evidence]":
    """The bags of both ends of one run."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "run.json"
        got = lib.run([*lab.client, lib.netperf(), "-H", plan.host, "-p", str(port),
                       "-t", "UDP_STREAM", "-P", "0", f"--json={file}", *plan.options,
                       "--", "-R", "1", *plan.specific], 60)
        if got.rc != 0:
            raise Wrong(f"status {got.rc}: {got.err.strip()}")
        run = lib.document(file.read_text())["iterations"][0]
        return run["near"], run["far"]


def need(what: str, have: Any, want: Any) -> None:
    if have != want:
        raise Wrong(f"{what}: {have} instead of {want}")


def judge(plan: Plan, near: Evidence, far: Evidence, nft: "Dict[str, int]") -> str:
    need("udp.sent of the sender", near.get("udp.sent"), nft["sent"])
    need("udp.sent", far.get("udp.sent"), nft["sent"])
    need("udp.lost", far["udp.lost"], nft["lost"])
    need("udp.duplicated", far["udp.duplicated"], nft["doubled"])
    need("udp.received", far["udp.received"], nft["sent"] - nft["lost"] + nft["doubled"])
    need("udp.received", far["udp.received"], far["flow.receives"])
    for name in ("udp.reordered", "udp.reorder_extent_max", "udp.foreign", "udp.too_old"):
        need(name, far[name], 0)
    if plan.burst > 0:
        whole, rest = divmod(nft["lost"], plan.burst)
        need("udp.loss_bursts", far["udp.loss_bursts"], whole + (rest > 0))
        need("udp.loss_burst_longest", far["udp.loss_burst_longest"],
             min(plan.burst, nft["lost"]))
    cells = far["udp.loss_burst_lengths"]
    need("the sum of udp.loss_burst_lengths", sum(cells), far["udp.loss_bursts"])
    if not 0 < far["udp.jitter_us"] <= far["udp.jitter_max_us"]:
        raise Wrong(f"jitter {far['udp.jitter_us']}, at most {far['udp.jitter_max_us']}")
    return (f"sent {nft['sent']}, lost {nft['lost']}, doubled {nft['doubled']}: the same; "
            f"jitter {far['udp.jitter_us']:.0f} us")


def attempt(lab: lib.Lab, port: int, plan: Plan) -> str:
    spoil(lab, plan)
    try:
        before = overruns(lab)
        near, far = evidence(lab, port, plan)
        nft = {name: packets * plan.block for name, packets in counters(lab).items()}
        if overruns(lab) != before:
            raise Overrun(f"{overruns(lab) - before} datagrams overran the receiver")
        return judge(plan, near, far, nft)
    finally:
        lib.must([*lab.client, "nft", "delete table netdev lab"])


def check(lab: lib.Lab, port: int, plan: Plan) -> str:
    for last in range(ATTEMPTS):
        try:
            return attempt(lab, port, plan)
        except Overrun:
            if last == ATTEMPTS - 1:
                raise
    return ""


def too_short(lab: lib.Lab, port: int) -> str:
    """Messages that have no room for a number are counted as ever, and it is said."""
    near, far = evidence(lab, port, Plan("", options=("-l", "-1900"), specific=("-m", "19")))
    need("names", [n for n in (*near, *far) if n in ("udp.sent", "udp.lost")], [])
    assert "udp.sent" in near["unread"] and "udp.received" in far["unread"], (near, far)
    need("flow.sends", near["flow.sends"], 100)
    return near["unread"]["udp.sent"]


def counts(lab: lib.Lab, port: int, *args: str) -> "Tuple[int, int]":
    """Datagrams that were sent, and that arrived."""
    got = lib.run([*lab.client, lib.netperf(), "-H", IPV4, "-p", str(port), "-P", "0", "-t", "UDP_STREAM", *args,
                   "-k", "LOCAL_SEND_CALLS,REMOTE_RECV_CALLS"], 60)
    need(f"status ({got.err.strip()})", got.rc, 0)
    found = dict(line.split("=") for line in got.out.split())
    return int(found["LOCAL_SEND_CALLS"]), int(found["REMOTE_RECV_CALLS"])


def spoil_lengths(lab: lib.Lab, drop: str) -> None:
    """Datagrams of SIZE bytes, which have no numbers, and every third end mark."""
    lines = ["add table netdev lab",
             "add chain netdev lab out { type filter hook egress device lab0 priority 0; }",
             *(f"add counter netdev lab {name}" for name in ("sent", "lost", "doubled")),
             "add rule netdev lab out meta l4proto udp udp length 8 numgen inc mod 3 == 1 drop",
             f"add rule netdev lab out meta l4proto udp udp length {8 + SIZE} counter name sent",
             f"add rule netdev lab out meta l4proto udp udp length {8 + SIZE} {drop} counter name lost drop"]
    lib.must([*lab.client, "nft", "; ".join(lines)])


def attempt_flows(lab: lib.Lab, port: int, args: "Tuple[str, ...]") -> str:
    spoil_lengths(lab, "numgen inc mod 7 == 3")
    try:
        before = overruns(lab)
        sent, received = counts(lab, port, *args)
        nft = counters(lab)
        if overruns(lab) != before:
            raise Overrun(f"{overruns(lab) - before} datagrams overran the receivers")
    finally:
        lib.must([*lab.client, "nft", "delete table netdev lab"])
    need("sent", sent, nft["sent"])
    need("received", received, nft["sent"] - nft["lost"])
    return f"sent {sent}, lost {nft['lost']}: the same"


def of_flows(lab: lib.Lab, port: int, args: "Tuple[str, ...]") -> str:
    """What all flows sent arrived, or was dropped; and no flow's end was that of others."""
    for last in range(ATTEMPTS):
        try:
            return attempt_flows(lab, port, args)
        except Overrun:
            if last == ATTEMPTS - 1:
                raise
    return ""


def spoil_requests(lab: lib.Lab, drop: str) -> None:
    """Requests of UDP_RR, which are not empty: a duplicate is answered, too."""
    lines = ["add table netdev lab",
             "add chain netdev lab out { type filter hook egress device lab0 priority 0; }",
             *(f"add counter netdev lab {name}" for name in ("sent", "lost", "doubled")),
             "add rule netdev lab out meta mark 1 accept",
             "add rule netdev lab out meta l4proto != udp accept",
             "add rule netdev lab out udp length 8 accept",
             "add rule netdev lab out counter name sent"]
    if drop:
        lines.append(f"add rule netdev lab out {drop} counter name lost drop")
    lines.append("add rule netdev lab out numgen inc mod 7 == 5 counter name doubled "
                 "meta mark set 1 dup to lab0")
    lib.must([*lab.client, "nft", "; ".join(lines)])


def responses(lab: lib.Lab, port: int, drop: str, engine: "Tuple[str, ...]", *specific: str) -> str:
    """Between our own ends every response belongs to its request."""
    spoil_requests(lab, drop)
    try:
        got = lib.run([*lab.client, lib.netperf(), "-H", IPV4, "-p", str(port), "-t", "UDP_RR", "-P", "0",
                       "-l", "-120", *engine, "--", *specific, "-k", "LOCAL_SEND_CALLS,LOST_REQUESTS,"
                       "DUPLICATE_RESPONSES,LATE_RESPONSES,STRAY_RESPONSES,SURPLUS_RESPONSES"], 60)
        need("status", got.rc, 0)
        found = {key: int(value) for key, value in
                 (line.split("=") for line in got.out.split())}
        nft = counters(lab)
    finally:
        lib.must([*lab.client, "nft", "delete table netdev lab"])
    late = found["LATE_RESPONSES"]  # beyond a time-out of a second: the machine's fault, not the link's
    need("LOCAL_SEND_CALLS", found["LOCAL_SEND_CALLS"], nft["sent"])
    need("LOST_REQUESTS", found["LOST_REQUESTS"] - late, nft["lost"])
    need("DUPLICATE_RESPONSES", found["DUPLICATE_RESPONSES"], nft["doubled"])
    need("STRAY_RESPONSES", found["STRAY_RESPONSES"], 0)
    need("SURPLUS_RESPONSES", found["SURPLUS_RESPONSES"], 0)
    return f"sent {nft['sent']}, lost {nft['lost']}, doubled {nft['doubled']}: the same"


def surplus(lab: lib.Lab, report: lib.Report) -> None:
    """The real daemon's responses can't be told apart, and that is said."""
    program = str(lib.real_netperf() / "netserver")
    with lib.Daemon(prefix=lab.server, program=program, grace=None) as daemon:
        for args in ((), ("--engine", "batch,"), ("--engine", "batch,", "--", "-b", "7"),
                     ("--engine", "segment,", "--", "-b", "7")):
            spoil_requests(lab, "")
            try:
                got = lib.run([*lab.client, lib.netperf(), "-H", IPV4, "-p", str(daemon.port), "-t", "UDP_RR",
                               "-l", "1", *args, *(() if "--" in args else ("--",)), "-k", "SURPLUS_RESPONSES"], 60)
            finally:
                lib.must([*lab.client, "nft", "delete table netdev lab"])
            report.check(" ".join(("UDP_RR with the real netserver: what is too much is told", *args)),
                         got.rc == 0 and "SURPLUS_RESPONSES=0" not in got.out and
                         "came twice or too late" in got.err, str(got))


def no_json() -> str:
    """Why the client writes no documents; empty when it does."""
    said = lib.run([lib.netperf(), "--json=/dev/null", "-t", "UUID"], 20).err
    return said.strip() if "no such option" in said or "libjansson" in said else ""


def suite(report: lib.Report) -> None:
    why = lib.no_lab() or no_json()
    if why:
        lib.skip(why)
    with lib.Lab(f"udp{os.getpid()}", "--rate", f"{RATE:g}mbit") as lab:
        got = lib.run([*lab.client, "nft", "add table netdev try; add chain netdev try out { type "
                       "filter hook egress device lab0 priority 0; }; delete table netdev try"], 20)
        if got.rc != 0:
            lib.skip(f"nftables has no rules at egress here: {got.err.strip()}")
        with lib.Daemon(args=["--spin", "4"], prefix=lab.server) as daemon:
            for plan in PLANS:
                report.case(plan.name, lambda plan=plan: check(lab, daemon.port, plan))
            report.case("messages of 19 bytes", lambda: too_short(lab, daemon.port))
            for args in FLOWS:
                report.case(" ".join(args), lambda args=args: of_flows(lab, daemon.port, args))
            for engine in ((), ("--engine", "batch"), ("--engine", "segment")):
                # Blocks of requests would be dropped in one piece.
                bursts = ((), ("-r", "64,64", "-b", "7"))[:1 if "segment" in engine else 2]
                for specific, drop in product(bursts, ("", "numgen inc mod 50 == 20")):
                    words = ("UDP_RR", *engine, *specific, "requests doubled", drop and "and lost")
                    report.case(" ".join(words).strip(),
                                lambda drop=drop, engine=engine, specific=specific:
                                responses(lab, daemon.port, drop, engine, *specific))
        report.part("UDP_RR with the real netserver", lambda: surplus(lab, report))


if __name__ == "__main__":
    lib.main(suite)
