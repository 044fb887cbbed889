#!/usr/bin/env python3
"""The account of numbered datagrams agrees exactly with what nftables dropped and duplicated on the path. Needs root,
for scripts/netlab, and nftables with egress rules."""

import os
import signal
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Dict, NamedTuple, Tuple

import lib
from datagrams import Run, judge_figures, judge_lines, need
from netns import IPV4, IPV6

MARK = 0x504c7371                       # of numbered datagrams, doc/protocol.md
RATE = 20.0                             # Mbit/s: any machine's receiver keeps up
SIZE = 1000
COUNT = 400 if lib.QUICK else 2000      # datagrams of a counted run
ATTEMPTS = 6                            # at a run without overruns, on a busy machine


class Overrun(Exception):
    """The machine was busy: the receiver was late and the kernel dropped datagrams, too; or the sender was woken on
    another processor, and overtook datagrams waiting on the first one."""


class Plan(NamedTuple):
    """What happens to the datagrams on the path: nft match statements."""
    name: str
    drop: str = ""
    double: str = ""
    burst: int = 1              # length of each loss
    block: int = 1              # datagrams per packet as the rules see it: it is split after them
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
         options=("-T", "0", "-l", f"-{COUNT * SIZE}", "-b", "20", "-w", "10", "-k", "100")),
)


def spoil(lab: lib.Lab, matching: str, drop: str, double: str) -> None:
    """At the sender's egress, where no socket is told. Counters: sent, lost, duplicated."""
    rule = "add rule netdev lab out"
    lines = ["add table netdev lab",
             "add chain netdev lab out { type filter hook egress device lab0 priority 0; }",
             *(f"add counter netdev lab {name}" for name in ("sent", "lost", "doubled")),
             f"{rule} meta mark 1 accept",  # a copy passes here again
             f"{rule} {matching} counter name sent"]
    lines += [f"{rule} {matching} {drop} counter name lost drop"] * bool(drop)
    lines += [f"{rule} {matching} {double} counter name doubled meta mark set 1 dup to lab0"] * bool(double)
    lib.must([*lab.client, "nft", "; ".join(lines)])


def heal(lab: lib.Lab) -> None:
    lib.must([*lab.client, "nft", "delete table netdev lab"])


def overruns(lab: lib.Lab) -> int:
    """Datagrams dropped as the server's socket buffer was full."""
    return lib.snmp(lab.server, "UdpRcvbufErrors", "Udp6RcvbufErrors")


def documented(lab: lib.Lab, port: int, plan: Plan) -> Run:
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "run.json"
        got = lib.run(lab.command(port, "-t", "UDP_STREAM", "-P", "0", f"--json={file}", *plan.options, "--",
                                  "-R", "1", *plan.specific, host=plan.host), 60)
        assert got.rc == 0, got
        return Run(got, lib.document(file.read_text()))


def judge(plan: Plan, run: Run, nft: "Dict[str, int]") -> str:
    near, far = run.document["iterations"][0]["near"], run.far
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
    assert 0 < far["udp.jitter_us"] <= far["udp.jitter_max_us"], (far["udp.jitter_us"], far["udp.jitter_max_us"])
    judge_figures(run, int(plan.specific[1]))
    judge_lines(run)
    return (f"sent {nft['sent']}, lost {nft['lost']}, doubled {nft['doubled']}: the same; "
            f"jitter {far['udp.jitter_us']:.0f} us")


def attempt(lab: lib.Lab, port: int, plan: Plan) -> str:
    spoil(lab, f"meta l4proto udp @th,64,32 {MARK:#x}", plan.drop, plan.double)
    try:
        before = overruns(lab)
        run = documented(lab, port, plan)
        nft = {name: packets * plan.block for name, packets in lib.nft_counters(lab.client).items()}
        if overruns(lab) != before:
            raise Overrun(f"{overruns(lab) - before} datagrams overran the receiver")
        if run.far["udp.reordered"] > 0:
            raise Overrun(f"{run.far['udp.reordered']} datagrams were overtaken")
        return judge(plan, run, nft)
    finally:
        heal(lab)


def check(lab: lib.Lab, port: int, plan: Plan) -> str:
    for last in range(ATTEMPTS):
        try:
            return attempt(lab, port, plan)
        except Overrun:
            if last == ATTEMPTS - 1:
                raise
    return ""


def too_short(lab: lib.Lab, port: int) -> str:
    """Messages too short for a number are counted as usual, which is reported."""
    run = documented(lab, port, Plan("", options=("-l", "-1900"), specific=("-m", "19")))
    near, far = run.document["iterations"][0]["near"], run.far
    need("names", [n for n in (*near, *far) if n in ("udp.sent", "udp.lost")], [])
    assert "udp.sent" in near["unread"] and "udp.received" in far["unread"], (near, far)
    need("flow.sends", near["flow.sends"], 100)
    return near["unread"]["udp.sent"]


def interrupted(lab: lib.Lab, port: int, outage: bool) -> str:
    """The sender learns of it a round trip later: what it sends until then is not lost. What an outage took is."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "run.json"
        with lib.Started(lab.command(port, "-t", "omni", "-P", "0", "-l", "60", "--rate", "200k", f"--json={file}",
                                     "--", "-R", "1", "-T", "udp", "-d", "recv", "-m", f",{SIZE}")) as one:
            assert one.measuring()
            time.sleep(1)
            if outage:
                lab.drop(lab.client, "meta l4proto udp")
                time.sleep(2)
            one.signal(signal.SIGINT)
            got = one.finish(60)
            if outage:
                lib.must([*lab.client, "nft", "delete table inet lab"])
        assert got.rc == 0, got
        near = lib.document(file.read_text())["iterations"][0]["near"]
    assert near["udp.unique"] > 0, got
    need("datagrams are lost", near["udp.lost"] > 0, outage)
    return f"{near['udp.lost']} of {near['udp.sent']} lost"


REQUESTS = "meta l4proto udp udp length > 8"      # of UDP_RR; duplicates are answered, too
DOUBLE = "numgen inc mod 7 == 5"


def responses(lab: lib.Lab, port: int, drop: str, engine: "Tuple[str, ...]", *specific: str) -> str:
    """Between our own ends, every response belongs to its request."""
    spoil(lab, REQUESTS, drop, DOUBLE)
    try:
        got = lib.run([*lab.client, lib.netperf(), "-H", IPV4, "-p", str(port), "-t", "UDP_RR", "-P", "0",
                       "-l", "-120", *engine, "--", *specific, "-k", "LOCAL_SEND_CALLS,LOST_REQUESTS,"
                       "DUPLICATE_RESPONSES,LATE_RESPONSES,STRAY_RESPONSES,SURPLUS_RESPONSES"], 60)
        need("status", got.rc, 0)
        found = {key: int(value) for key, value in
                 (line.split("=") for line in got.out.split())}
        nft = lib.nft_counters(lab.client)
    finally:
        heal(lab)
    late = found["LATE_RESPONSES"]  # after a time-out of a second: the machine's fault, not the link's
    need("LOCAL_SEND_CALLS", found["LOCAL_SEND_CALLS"], nft["sent"])
    need("LOST_REQUESTS", found["LOST_REQUESTS"] - late, nft["lost"])
    need("DUPLICATE_RESPONSES", found["DUPLICATE_RESPONSES"], nft["doubled"])
    need("STRAY_RESPONSES", found["STRAY_RESPONSES"], 0)
    need("SURPLUS_RESPONSES", found["SURPLUS_RESPONSES"], 0)
    return f"sent {nft['sent']}, lost {nft['lost']}, doubled {nft['doubled']}: the same"


def surplus(lab: lib.Lab, report: lib.Report) -> None:
    """The real daemon's responses can't be identified, which is reported; datagrams that it sends arrive."""
    program = str(lib.real_netperf() / "netserver")
    with lib.Daemon(prefix=lab.server, program=program, grace=None) as daemon:
        for args in ((), ("--engine", "batch,"), ("--engine", "batch,", "--", "-b", "7"),
                     ("--engine", "segment,", "--", "-b", "7")):
            spoil(lab, REQUESTS, "", DOUBLE)
            try:
                got = lib.run(lab.command(daemon.port, "-t", "UDP_RR", "-l", "1", *lib.PACED, *args,
                                          *(() if "--" in args else ("--",)), "-k", "SURPLUS_RESPONSES"), 60)
            finally:
                heal(lab)
            report.check(" ".join(("UDP_RR with the real netserver: what is too much is told", *args)),
                         got.rc == 0 and "SURPLUS_RESPONSES=0" not in got.out and
                         "came twice or too late" in got.err, str(got))
        for count in "1", "-50":
            lab.drop(lab.client, "meta l4proto udp numgen inc mod 20 == 10")    # responses
            got = lib.run(lab.command(daemon.port, "-t", "UDP_RR", "-l", count, "--", "-b", "7",
                                      "-k", "LOST_REQUESTS"), 60)
            lib.must([*lab.client, "nft", "delete table inet lab"])
            report.check(f"UDP_RR -l {count} with the real netserver: what is lost is told", got.rc == 0 and
                         "LOST_REQUESTS=0" not in got.out and "been taken for theirs" in got.err and
                         (count == "1" or " of 50 responses have arrived from " in got.err), str(got))
        for args in (), ("-P", "7777"):     # with a port of this end alone it names none of its own
            got = lib.run(lab.command(daemon.port, "-t", "omni", "-l", "1", "-P", "0", "--", "-d", "recv", "-T", "udp",
                                      "-m", ",1000", "-k", "LOCAL_RECV_CALLS", *args), 60)
            report.check(f"the real netserver sends datagrams to this end, not to itself {' '.join(args)}",
                         got.rc == 0 and int(got.out.partition("=")[2]) > 0, str(got))


def no_json() -> str:
    """Why the client writes no documents; empty if it does."""
    said = lib.run([lib.netperf(), "--json=/dev/null", "-t", "UUID"], 20).err
    return said.strip() if "no such option" in said or "libjansson" in said else ""


def suite(report: lib.Report) -> None:
    lib.skip_if(lib.no_lab() or no_json())
    with lib.Lab(f"udp{os.getpid()}", "--rate", f"{RATE:g}mbit") as lab:
        got = lib.run([*lab.client, "nft", "add table netdev try; add chain netdev try out { type "
                       "filter hook egress device lab0 priority 0; }; delete table netdev try"], 20)
        if got.rc != 0:
            lib.skip(f"nftables has no rules at egress here: {got.err.strip()}")
        with lib.Daemon(args=["--spin", "4"], prefix=lab.server) as daemon:
            for plan in PLANS:
                report.case(plan.name, lambda plan=plan: check(lab, daemon.port, plan))
            report.case("messages of 19 bytes", lambda: too_short(lab, daemon.port))
            for engine in ((), ("--engine", "batch"), ("--engine", "segment")):
                # Blocks of requests would be dropped as a whole.
                bursts = ((), ("-r", "64,64", "-b", "7"))[:1 if "segment" in engine else 2]
                for specific, drop in product(bursts, ("", "numgen inc mod 50 == 20")):
                    words = ("UDP_RR", *engine, *specific, "requests doubled", drop and "and lost")
                    report.case(" ".join(words).strip(),
                                lambda drop=drop, engine=engine, specific=specific:
                                responses(lab, daemon.port, drop, engine, *specific))
        report.part("UDP_RR with the real netserver", lambda: surplus(lab, report))
    with lib.Lab(f"udpd{os.getpid()}", "--delay", "200ms") as lab, lib.Daemon(prefix=lab.server) as daemon:
        report.case("a receiver that is interrupted", lambda: interrupted(lab, daemon.port, False))
        report.case("a receiver that is interrupted in an outage", lambda: interrupted(lab, daemon.port, True))


if __name__ == "__main__":
    lib.main(suite)
