"""A link's theoretical maximum, by netperf --ceiling. doc/ceilings.md has the formulas, requests and answers."""

import atexit
import contextlib
import json
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Dict, List, Optional

from netkit import Fault, machine, units

ETHERNET_HEADER, VLAN_TAG = 14, 4
CHECK_SUM, PREAMBLE, GAP = 4, 8, 12
LEAST_FRAME = 64            # including header and checksum

STREAMS = ("TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE", "UDP_STREAM")
TRANSACTIONS = ("TCP_RR", "UDP_RR", "TCP_CRR", "TCP_CC")

MISSED: "List[str]" = []    # why of_point() found no netperf to ask


class CeilingError(Fault):
    """Impossible packet sizes."""


class NoNetperf(CeilingError):
    """There is no netperf to ask; the message says what to do."""


@dataclass(frozen=True)
class Wire:
    """The overhead of a packet on the wire; Wire(0, 0, 0) for bare IP packets."""
    header: int = ETHERNET_HEADER
    rest: int = CHECK_SUM + PREAMBLE + GAP
    least: int = LEAST_FRAME + PREAMBLE + GAP

    def cost(self, packet: int) -> int:
        """Byte times that an IP packet occupies on the link."""
        return max(packet + self.header + self.rest, self.least)


def ethernet(vlan: bool = False, preamble: int = PREAMBLE, gap: int = GAP) -> Wire:
    return Wire(ETHERNET_HEADER + (VLAN_TAG if vlan else 0), CHECK_SUM + preamble + gap,
                LEAST_FRAME + preamble + gap)


@lru_cache(maxsize=None)
def netperf() -> "subprocess.Popen[str]":
    """The netperf process that answers; it lives as long as this program."""
    found = machine.ours("netperf", "NETPERF", "src", "build/src", "bin") or shutil.which("netperf")
    if not found:
        raise NoNetperf("no netperf beside this script or in PATH, which works out ceilings: build or "
                        "install it, or name it in NETPERF")
    process = subprocess.Popen([found, "--ceiling"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    atexit.register(process.communicate)
    return process


@lru_cache(maxsize=None)
def answer(line: str) -> "Dict[str, Any]":
    process, text = netperf(), ""
    assert process.stdin and process.stdout
    with contextlib.suppress(OSError):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        text = process.stdout.readline()
    if not text:
        raise NoNetperf(f"{process.args[0]} has no --ceiling: name a netperf that has in NETPERF")
    found: "Dict[str, Any]" = json.loads(text)
    if "error" in found:
        raise CeilingError(found["error"])
    return found


def ask(test: str, wire: Wire = Wire(), **words: Any) -> "Dict[str, Any]":
    """netperf's answer for a test on a link; words that are None are omitted."""
    said = {"test": test, "header": wire.header, "rest": wire.rest, "least": wire.least, **words}
    return answer(" ".join(f"{name}={int(value) if isinstance(value, bool) else value}"
                           for name, value in said.items() if value is not None))


@dataclass(frozen=True)
class Ceiling:
    """A ceiling, in 10^6 bits/s for streams and in transactions/s for other tests."""
    value: float
    unit: str


STREAM_UNIT, RATE_UNIT = "10^6bits/s", "Trans/s"

BYTES = {"KBytes/s": 2.0**10, "MBytes/s": 2.0**20, "GBytes/s": 2.0**30, "Bytes/s": 1.0}


def unit_of(figure: str, told: str) -> str:
    """The unit of a figure if THROUGHPUT is in `told`: -f does not affect transaction rates."""
    if figure == "TRANSACTION_RATE":
        return RATE_UNIT
    return STREAM_UNIT if told == RATE_UNIT and re.search("_(SEND|RECV)_", figure) else told


def in_unit(value: float, unit: str) -> float:
    """A throughput printed with -f, in the unit of its ceiling."""
    return value * factor_of(unit)


@lru_cache(maxsize=None)
def factor_of(unit: str) -> float:
    found = re.fullmatch(r"10\^([0-9]+)bits/s", unit)
    return 10.0 ** (int(found[1]) - 6) if found else BYTES.get(unit, 1e6 / 8) * 8 / 1e6


def test_option(text: Any, letter: str) -> Optional[str]:
    """The argument of a test option such as -m in a string of options."""
    try:
        words = shlex.split(str(text or ""))
    except ValueError:
        return None
    for word, following in zip(words, words[1:] + [""]):
        if word == f"-{letter}":
            return following or None
        if word.startswith(f"-{letter}"):
            return word[2:]
    return None


def whole(*values: Any) -> Optional[int]:
    """The first whole number."""
    for value in values:
        with contextlib.suppress(TypeError, ValueError):
            return int(value)
    return None


def of_point(point: "Dict[str, Any]", constants: "Dict[str, Any]",
             result: "Optional[Dict[str, Any]]" = None) -> Optional[Ceiling]:
    """A point's ceiling, from axes, constants, else a run's figures. None without rate, MTU, formula or netperf."""
    known = {**constants, **{k: v for k, v in point.items() if v is not None}}
    figures, options = result or {}, known.get("test_options")
    rate, test = units.rate(known.get("rate")), str(known.get("test") or "TCP_STREAM").upper()
    mtu = whole(known.get("mtu"))
    if rate is None or mtu is None or test not in STREAMS + TRANSACTIONS:
        return None
    link = {"rate": rate, "mtu": mtu, "timestamps": known.get("timestamps") is not False,
            "family": whole(known.get("family")) or (6 if ":" in str(known.get("host", "")) else 4),
            "mss": whole(known.get("mss"), test_option(options, "G")),
            "wire": known.get("wire") or (Wire(0, 0, 0) if known.get("framing") == "none" else
                                          ethernet(bool(known.get("vlan"))))}
    try:
        if test in STREAMS:
            size = whole(figures.get("LOCAL_SEND_SIZE"), known.get("size"), test_option(options, "m"))
            return Ceiling(ask(test, size=size if test == "UDP_STREAM" else None,
                               **link)["bits_per_s"] / 1e6, STREAM_UNIT)
        asked = (test_option(options, "r") or "1,1").split(",")
        request, response = (
            whole(figures.get(f"{name.upper()}_SIZE"), known.get(name), known.get("size"), given, 1)
            for name, given in (("request", asked[0]), ("response", asked[-1])))
        flying = (whole(known.get("flows")) or 1) * (whole(known.get("processes")) or 1) * (
            1 + (whole(figures.get("BURST_SIZE"), test_option(options, "b")) or 0))
        return Ceiling(ask(test, request=request or 1, response=response or 1, in_flight=flying,
                           delay=units.seconds(known.get("delay", 0)) or 0.0, **link)["per_s"], RATE_UNIT)
    except NoNetperf as fault:
        MISSED.append(str(fault))
    except CeilingError:
        pass
    return None
