"""netperf --ceiling, which scripts ask what links can carry: the vectors of the unit test of
src/stats/ceiling.c by its lines, an answer to each line at once, and what is no question.
"""

import json
import math
import re
import subprocess
from typing import Any, Dict, List, Tuple

import lib

TABLE = lib.TOP / "tests" / "vectors" / "ceilings.def"
ROW = re.compile(r"VECTOR_(STREAM|TURNS)\((.*)\)")
STREAM = ("test", "mtu", "family", "timestamps", "vlan", "mss", "size")
TURNS = ("test", "mtu", "family", "timestamps", "request", "response", "rate", "delay", "in_flight")

FAULTS = (
    ("mtu=67", "MTU 67: IPv4 needs 68"), ("mtu=1279 family=6", "MTU 1279: IPv6 needs 1280"),
    ("family=5", "IP version 5: 4 or 6"), ("mss=12", "MSS 12: leaves no room for payload"),
    ("test=UDP_STREAM size=65508", "a datagram of 65508 bytes: UDP over IPv4 takes 65507 at most"),
    ("test=UDP_RR response=65508", "a datagram of 65508 bytes: UDP over IPv4 takes 65507 at most"),
    ("test=TCP_RR request=0 response=0", "a transaction without bytes needs no packet"),
    ("test=DG_RR", "DG_RR: has no ceiling (try TCP_STREAM, UDP_STREAM, TCP_RR)"),
    ("test=NONE", "NONE: not a test of this netperf"), ("mtu", "mtu: not a word such as mtu=1500"),
    ("mtu=x", "mtu=x: not a number from 1 to 4294967295"), ("rate=0", "rate=0: not a rate (try 100mbit)"),
    ("rate=1e308", "rate=1e308: not a rate (try 100mbit)"), ("delay=1e10", "delay=1e10: not a number of seconds"),
    ("delay=-1", "delay=-1: not a number of seconds"), ('x"\x1b=1', "x'?: not a name that a question has"))


def question(kind: str, values: "List[str]") -> "Tuple[str, str]":
    """A row of the table as a line, and the member that answers it."""
    words = dict(zip(STREAM if kind == "STREAM" else TURNS, values))
    if words.pop("vlan", "0") == "1":
        words["header"] = "18"
    if kind == "STREAM":
        words["test"] += "_STREAM"
    return " ".join(f"{name}={value}" for name, value in words.items()), {
        "STREAM": "share", "TURNS": "per_s"}[kind]


def ask(lines: "List[str]") -> "List[Dict[str, Any]]":
    done = subprocess.run([lib.netperf(), "--ceiling"], input="".join(f"{line}\n" for line in lines),
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    return [json.loads(line) for line in done.stdout.splitlines()]


def vectors() -> str:
    rows = [(found[1], found[2].split(", ")) for found in ROW.finditer(TABLE.read_text())]
    asked = [question(kind, values) for kind, values in rows if values[0] != "test"]
    wanted = [float(values[-1]) for _, values in rows if values[0] != "test"]
    got = ask([line for line, _ in asked])
    assert len(got) == len(wanted) > 400, len(got)
    for (line, member), answer, want in zip(asked, got, wanted):
        assert math.isclose(answer.get(member, math.nan), want, rel_tol=1e-12), (line, answer, want)
    return f"{len(wanted)} lines"


def members() -> None:
    stream, datagram, turns = ask(["rate=100mbit", "test=UDP_STREAM family=6 rate=1e8 least=0",
                                   "test=TCP_RR request=2000 rate=1e8 delay=0.01"])
    assert stream["payload"] == 1448 and stream["wire"] == 1538, stream
    assert math.isclose(stream["bits_per_s"], 1e8 * 1448 / 1538), stream
    assert datagram["payload"] == 1452, datagram
    assert [turns["there"], turns["back"], turns["turns"]] == [1538 + 642, 91, 2], turns
    assert turns["sent"] == [{"name": "request", "packets": 2, "wire": 2180},
                             {"name": "response", "packets": 1, "wire": 91}], turns
    assert math.isclose(turns["at_once_per_s"], 1e8 / 8 / 2180), turns


def faults() -> None:
    got = ask([line for line, _ in FAULTS])
    assert [one.get("error") for one in got] == [words for _, words in FAULTS], got


def each_line_at_once() -> None:
    """Or a script that waits for an answer before it asks again would wait for ever."""
    with subprocess.Popen([lib.netperf(), "--ceiling"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as asked:
        assert asked.stdin and asked.stdout
        for mtu in (1500, 9000):
            asked.stdin.write(f"mtu={mtu}\n")
            asked.stdin.flush()
            assert json.loads(asked.stdout.readline())["payload"] == mtu - 52


def suite(report: lib.Report) -> None:
    for name, call in (("the vectors", vectors), ("members", members), ("faults", faults),
                       ("each line at once", each_line_at_once)):
        report.case(name, call)


if __name__ == "__main__":
    lib.main(suite)
