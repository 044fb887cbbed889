"""What a link can carry at most, from the bytes that packets take on its wire.

Pure arithmetic: doc/ceilings.md derives every formula and works it out in numbers.
"""

import re
import shlex
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

ETHERNET_HEADER = 14        # addresses and type
VLAN_TAG = 4
CHECK_SUM = 4
PREAMBLE = 8                # with the delimiter
GAP = 12                    # between frames, counted in byte times
LEAST_FRAME = 64            # header and check sum included

IP_HEADER = {4: 20, 6: 40}
LEAST_MTU = {4: 68, 6: 1280}
UDP_HEADER = 8
FRAGMENT_HEADER = {4: 0, 6: 8}      # beside the IP header of every fragment
TCP_HEADER = 20
TIME_STAMPS = 12            # 10 and two bytes of padding
SYN_OPTIONS = {True: 20, False: 12}  # with and without time-stamps: MSS, SACK, window scale
MOST_UDP = {4: 65507, 6: 65527}

TCP_STREAMS = ("TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE")
UDP_STREAMS = ("UDP_STREAM",)
STREAMS = TCP_STREAMS + UDP_STREAMS
TRANSACTIONS = ("TCP_RR", "UDP_RR", "TCP_CRR", "TCP_CC")


class CeilingError(ValueError):
    """Sizes that no packet can have."""


@dataclass(frozen=True)
class Wire:
    """What a packet costs beyond itself; IP packets alone with Wire(0, 0, 0)."""
    header: int = ETHERNET_HEADER
    rest: int = CHECK_SUM + PREAMBLE + GAP
    least: int = LEAST_FRAME + PREAMBLE + GAP

    def cost(self, packet: int) -> int:
        """The byte times of the link that an IP packet takes."""
        return max(packet + self.header + self.rest, self.least)


def ethernet(vlan: bool = False, preamble: int = PREAMBLE, gap: int = GAP) -> Wire:
    return Wire(ETHERNET_HEADER + (VLAN_TAG if vlan else 0), CHECK_SUM + preamble + gap,
                LEAST_FRAME + preamble + gap)


@dataclass(frozen=True)
class Packet:
    """One packet of a transaction: the IP packet and what it takes on the wire."""
    name: str
    ip: int
    wire: int
    client: bool            # sent by the client?
    waits: bool = True      # does the next packet wait for it?


@dataclass(frozen=True)
class Path:
    """What sizes and costs depend on."""
    mtu: int = 1500
    family: int = 4
    timestamps: bool = True
    wire: Wire = Wire()
    mss: Optional[int] = None       # TCP_MAXSEG: what both ends announce, if less than the MTU's

    def check(self) -> None:
        if self.family not in IP_HEADER:
            raise CeilingError(f"IP version {self.family}: 4 or 6")
        if self.mtu < LEAST_MTU[self.family]:
            raise CeilingError(f"MTU {self.mtu}: IPv{self.family} needs {LEAST_MTU[self.family]}")

    @property
    def tcp_headers(self) -> int:
        """IP's and TCP's, of a segment with data."""
        return IP_HEADER[self.family] + TCP_HEADER + (TIME_STAMPS if self.timestamps else 0)

    @property
    def segment(self) -> int:
        """The payload of a full TCP segment. The time-stamps are taken from a given MSS as they are
        from the MTU's, as Linux does."""
        most = self.mtu - self.tcp_headers
        if self.mss:
            most = min(most, self.mss - (TIME_STAMPS if self.timestamps else 0))
        if most < 1:
            raise CeilingError(f"MSS {self.mss}: no room for payload")
        return most

    @property
    def datagram(self) -> int:
        """The payload of the largest UDP datagram that is not fragmented."""
        return self.mtu - IP_HEADER[self.family] - UDP_HEADER

    def tcp_packets(self, size: int) -> "List[int]":
        """The IP packets that carry so many bytes of a TCP stream."""
        full, rest = divmod(size, self.segment)
        return ([self.segment + self.tcp_headers] * full
                + ([rest + self.tcp_headers] if rest else []))

    def udp_packets(self, size: int) -> "List[int]":
        """The IP packets of one datagram: one, or its fragments, each of which but the last carries
        a multiple of eight bytes."""
        if not 0 <= size <= MOST_UDP[self.family]:
            raise CeilingError(f"a datagram of {size} bytes: UDP over IPv{self.family} takes "
                               f"{MOST_UDP[self.family]} at most")
        header, body = IP_HEADER[self.family], size + UDP_HEADER
        if header + body <= self.mtu:
            return [header + body]
        header += FRAGMENT_HEADER[self.family]
        each = (self.mtu - header) // 8 * 8
        full, rest = divmod(body, each)
        return [header + each] * full + ([header + rest] if rest else [])


def path(mtu: int, family: int = 4, timestamps: bool = True, vlan: bool = False,
         framing: int = CHECK_SUM + PREAMBLE + GAP, min_frame: int = LEAST_FRAME + PREAMBLE + GAP,
         mss: Optional[int] = None) -> Path:
    made = Path(mtu, family, timestamps,
                Wire(ETHERNET_HEADER + (VLAN_TAG if vlan else 0), framing, min_frame), mss)
    made.check()
    return made


# --- streams ------------------------------------------------------------------------------

def stream(test: str, mtu: int, family: int = 4, timestamps: bool = True, vlan: bool = False,
           size: Optional[int] = None, framing: int = CHECK_SUM + PREAMBLE + GAP,
           min_frame: int = LEAST_FRAME + PREAMBLE + GAP, mss: Optional[int] = None) -> float:
    """The share of the link's rate that is payload. framing is what a frame costs beside its header
    of 14 (check sum 4, preamble 8, gap 12), min_frame the least it costs in all. size is that of a
    UDP datagram; TCP joins what is sent, so that size means nothing to it. Raises CeilingError."""
    return stream_on(test, path(mtu, family, timestamps, vlan, framing, min_frame, mss), size)


def stream_on(test: str, way: Path, size: Optional[int] = None) -> float:
    payload, cost = stream_sizes(test, way, size)
    return payload / cost


def stream_sizes(test: str, way: Path, size: Optional[int] = None) -> "Tuple[int, int]":
    """The payload of a full segment or of a datagram, and what it takes on the wire."""
    if test in TCP_STREAMS:
        return way.segment, way.wire.cost(way.segment + way.tcp_headers)
    if test not in UDP_STREAMS:
        raise CeilingError(f"{test}: no stream (try {', '.join(STREAMS)})")
    payload = way.datagram if size is None else size
    return payload, sum(map(way.wire.cost, way.udp_packets(payload)))


# --- transactions -------------------------------------------------------------------------

def packets(test: str, request: int, response: int, way: Path) -> "List[Packet]":
    """The packets of one transaction in the order in which they are sent: the fewest that a
    transfer of these sizes takes, acknowledgements riding on what goes the other way."""
    def made(name: str, sizes: "List[int]", client: bool, waits: bool = True) -> "List[Packet]":
        return [Packet(name, ip, way.wire.cost(ip), client, waits) for ip in sizes]

    if test == "UDP_RR":
        return (made("request", way.udp_packets(request), True)
                + made("response", way.udp_packets(response), False))
    data = (made("request", way.tcp_packets(request), True)
            + made("response", way.tcp_packets(response), False))
    if test == "TCP_RR":
        return data
    if test not in ("TCP_CRR", "TCP_CC"):
        raise CeilingError(f"{test}: no test of transactions (try {', '.join(TRANSACTIONS)})")
    bare = [way.tcp_headers]
    syn = [IP_HEADER[way.family] + TCP_HEADER + SYN_OPTIONS[way.timestamps]]
    return (made("SYN", syn, True) + made("SYN+ACK", syn, False) + made("ACK", bare, True)
            + (data if test == "TCP_CRR" else [])
            + made("FIN", bare, False) + made("FIN", bare, True)
            + made("ACK", bare, False, waits=False))


def transactions(test: str, request: int, response: int, rate: float, mtu: int, family: int = 4,
                 timestamps: bool = True, vlan: bool = False,
                 framing: int = CHECK_SUM + PREAMBLE + GAP,
                 min_frame: int = LEAST_FRAME + PREAMBLE + GAP, mss: Optional[int] = None,
                 delay: float = 0.0, in_flight: int = 1) -> float:
    """The most transactions a second on a link of `rate` bits a second each way, with `delay`
    seconds of propagation each way and so many under way at once. Raises CeilingError."""
    way = path(mtu, family, timestamps, vlan, framing, min_frame, mss)
    return transactions_on(test, request, response, rate, way, delay, in_flight)


def transactions_on(test: str, request: int, response: int, rate: float, way: Path,
                    delay: float = 0.0, in_flight: int = 1) -> float:
    sent = packets(test, request, response, way)
    if not sent:
        raise CeilingError("a transaction without bytes: it needs no packet")
    alone = sum(p.wire for p in sent if p.waits) * 8 / rate + turns(sent) * delay
    fuller = max(sum(p.wire for p in sent if p.client is client) for client in (True, False))
    return min(in_flight / alone, rate / (fuller * 8))


def turns(sent: "List[Packet]") -> int:
    """How often one end waits for the other: packets in a row the same way share a delay. The next
    transaction begins behind the client's last packet, without waiting for that to arrive."""
    ways = [p.client for p in sent if p.waits]
    changes = sum(one is not other for one, other in zip(ways, ways[1:]))
    return changes if ways[-1] else changes + 1


# --- of a point of a sweep ----------------------------------------------------------------

@dataclass(frozen=True)
class Ceiling:
    """value is in 10^6 bits a second for streams, in transactions a second for the rest."""
    value: float
    unit: str


STREAM_UNIT, RATE_UNIT = "10^6bits/s", "Trans/s"

SCALE = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
BYTES = {"KBytes/s": 2.0**10, "MBytes/s": 2.0**20, "GBytes/s": 2.0**30, "Bytes/s": 1.0}


def in_unit(value: float, unit: str) -> float:
    """A throughput of netperf's -f in the unit of its ceiling."""
    found = re.fullmatch(r"10\^([0-9]+)bits/s", unit)
    if found:
        return value * 10.0 ** (int(found[1]) - 6)
    return value * BYTES[unit] * 8 / 1e6 if unit in BYTES else value


def parse_rate(text: Any) -> Optional[float]:
    """Bits a second of 100000000, "100mbit", "2.5gbit"; None for "none" and what is no rate."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text) if text > 0 else None
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(k|m|g|)(?:bit)?", str(text).strip().lower())
    if not found or not float(found[1]):
        return None
    return float(found[1]) * SCALE[found[2].upper()]


def parse_seconds(text: Any) -> float:
    """Seconds of 0.01, "10ms", "50us", "1s"; 0 for what is no time."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text)
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s)", str(text).strip().lower())
    return float(found[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[found[2]] if found else 0.0


def test_option(text: Any, letter: str) -> Optional[str]:
    """The argument of a test option such as -m in a string of them."""
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


def whole(value: Any) -> Optional[int]:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def first_whole(*values: Any) -> Optional[int]:
    return next((n for n in map(whole, values) if n is not None), None)


def of_point(point: "Dict[str, Any]", constants: "Dict[str, Any]",
             result: "Optional[Dict[str, Any]]" = None) -> Optional[Ceiling]:
    """The ceiling of a point, from what the axes, the constants and, where those are silent, the
    figures of a run say. None where the rate or the MTU is not known or the test has no ceiling."""
    known = {**constants, **{k: v for k, v in point.items() if v is not None}}
    figures = result or {}
    rate, test = parse_rate(known.get("rate")), str(known.get("test") or "TCP_STREAM").upper()
    mtu = whole(known.get("mtu"))
    if rate is None or mtu is None or test not in STREAMS + TRANSACTIONS:
        return None
    family = whole(known.get("family")) or (6 if ":" in str(known.get("host", "")) else 4)
    wire = known.get("wire") or (Wire(0, 0, 0) if known.get("framing") == "none" else
                                 ethernet(bool(known.get("vlan"))))
    options = known.get("test_options")
    way = Path(mtu, family, known.get("timestamps") is not False, wire,
               first_whole(known.get("mss"), test_option(options, "G")))
    try:
        way.check()
        if test in STREAMS:
            size = first_whole(figures.get("LOCAL_SEND_SIZE"), known.get("size"),
                               test_option(options, "m"))
            return Ceiling(rate * stream_on(test, way, size) / 1e6, STREAM_UNIT)
        asked = (test_option(options, "r") or "1,1").split(",")
        request = first_whole(figures.get("REQUEST_SIZE"), known.get("request"),
                              known.get("size"), asked[0], 1)
        response = first_whole(figures.get("RESPONSE_SIZE"), known.get("response"),
                               known.get("size"), asked[-1], 1)
        flying = (whole(known.get("flows")) or 1) * (whole(known.get("processes")) or 1) * (
            1 + (first_whole(figures.get("BURST_SIZE"), test_option(options, "b")) or 0))
        return Ceiling(transactions_on(test, request or 1, response or 1, rate, way,
                                       parse_seconds(known.get("delay", 0)), flying), RATE_UNIT)
    except (CeilingError, ZeroDivisionError):
        return None
