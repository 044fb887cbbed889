"""netperf --ceiling, which scripts ask for the capacity of links: answers according to doc/ceilings.md, computed here
independently of src/stats/ceiling.c; one answer for each line at once; and invalid questions.
"""

import itertools
import json
import math
import subprocess
from typing import Any, Dict, Iterator, List, Tuple

import lib

LINKS = ((1e8, 0.0, 1), (1e9, 0.01, 4), (2.5e9, 5e-05, 1000))
FRAME = (14, 24, 84)  # byte times of Ethernet: header; with checksum, preamble and gap; minimum
SIZES = (0, 1, 18, 64, 228, 229, 1452, 1453, 1472, 1473, 1500, 8972, 65000, 65507)

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


def cost(packet: int, frame: "Tuple[int, int, int]" = FRAME) -> int:
    return max(packet + frame[0] + frame[1], frame[2])


def segment(mtu: int, family: int, stamps: int, mss: int = 0) -> int:
    most = mtu - 20 * (family // 2 - 1) - 20
    return min(most, mss or most) - 12 * stamps


def datagram(mtu: int, family: int, size: int, frame: "Tuple[int, int, int]" = FRAME) -> int:
    """What a datagram costs, in fragments if necessary."""
    header, more = (20, 0) if family == 4 else (40, 8)
    if header + 8 + size <= mtu:
        return cost(header + 8 + size, frame)
    full = (mtu - header - more) // 8 * 8
    whole, rest = divmod(size + 8, full)
    return whole * cost(full + header + more, frame) + (cost(rest + header + more, frame) if rest else 0)


def each_way(test: str, mtu: int, family: int, stamps: int, sizes: "Tuple[int, int]") -> "Tuple[Any, Any, int]":
    """Bytes waited for each way, other bytes, and the number of turns."""
    header, most = 20 * (family // 2) + 12 * stamps, segment(mtu, family, stamps)
    if test == "UDP_RR":
        return [datagram(mtu, family, size) for size in sizes], 0, 2
    data = [size // most * cost(header + most) + (cost(header + size % most) if size % most else 0)
            for size in sizes]
    if test == "TCP_RR":
        return data, 0, 2 * all(sizes)  # a response without bytes is not waited for
    syn, bare = cost(20 * (family // 2) + (20 if stamps else 12)), cost(header)
    there, back = data if test == "TCP_CRR" else (0, 0)
    return (syn + bare + there + bare, syn + back + bare), bare, 4


def transactions(test: str, way: "Tuple[int, int, int]", sizes: "Tuple[int, int]",
                 link: "Tuple[float, float, int]") -> float:
    (there, back), unwaited, turns = each_way(test, *way, sizes)
    rate, delay, flying = link
    return min(flying / (8 * (there + back) / rate + turns * delay), rate / 8 / max(there, back + unwaited))


def line(**words: object) -> str:
    return " ".join(f"{name}={value}" for name, value in words.items())


def named(frame: "Tuple[int, int, int]") -> "Dict[str, int]":
    return dict(zip(("header", "rest", "least"), frame))


def grid() -> "Iterator[Tuple[str, str, float]]":
    """Questions, the member with the answer, and the answer according to doc/ceilings.md."""
    for mtu, family in itertools.product((68, 256, 576, 1006, 1280, 1500, 9000), (4, 6)):
        if family == 6 and mtu < 1280:
            continue
        for stamps, frame, mss in itertools.product((1, 0), (FRAME, (18, 24, 84), (0, 0, 0)), (0, 536)):
            most = segment(mtu, family, stamps, mss)
            yield (line(mtu=mtu, family=family, timestamps=stamps, mss=mss, **named(frame)), "share",
                   most / cost(20 * (family // 2) + 12 * stamps + most, frame))
        for size, frame in itertools.product(SIZES, (FRAME, (14, 24, 0), (0, 0, 0))):
            yield (line(test="UDP_STREAM", mtu=mtu, family=family, size=size, **named(frame)), "share",
                   size / datagram(mtu, family, size, frame))
    for test, family, stamps, sizes, link in itertools.product(
            ("TCP_RR", "UDP_RR", "TCP_CRR", "TCP_CC"), (4, 6), (1, 0),
            ((1, 1), (1, 0), (2000, 1), (1, 1449), (1448, 65000)), LINKS):
        mtu = 9000 if link[0] == 1e9 else 1500
        yield (line(test=test, mtu=mtu, family=family, timestamps=stamps, request=sizes[0], response=sizes[1],
                    rate=link[0], delay=link[1], in_flight=link[2]), "per_s",
               transactions(test, (mtu, family, stamps), sizes, link))


def ask(lines: "List[str]") -> "List[Dict[str, Any]]":
    done = subprocess.run([lib.netperf(), "--ceiling"], input="".join(f"{line}\n" for line in lines),
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    return [json.loads(line) for line in done.stdout.splitlines()]


def vectors() -> str:
    asked = list(grid())
    for (question, member, want), answer in zip(asked, ask([question for question, _, _ in asked])):
        assert math.isclose(answer.get(member, math.nan), want, rel_tol=1e-12), (question, answer, want)
    return f"{len(asked)} lines"


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
    """Otherwise a script that waits for an answer before it asks again would hang."""
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
