"""The witness: what an end's interface carried, packet by packet, from a packet(7) ring that is read after the test.
It costs a copy of each packet's headers, and is independent of our programs.
"""

import mmap
import socket
import struct
from dataclasses import dataclass
from typing import Any, Tuple

import numpy as np

FRAMES, FRAME, BLOCK = 1 << 17, 256, 1 << 16
SOL_PACKET, RX_RING, VERSION, STATISTICS, ALL = 263, 5, 10, 6, 0x0003
OUTGOING = 4            # sockaddr_ll's sll_pkttype
TCP, UDP, FRAGMENT = 6, 17, 44
SYN = 2


@dataclass
class Packets:
    """Columns, ordered by time."""
    at: Any             # seconds since 1970
    out: Any            # whether the interface sent it
    protocol: Any
    sport: Any
    dport: Any
    seq: Any
    flags: Any
    payload: Any

    def where(self, mask: Any) -> "Packets":
        return Packets(*(getattr(self, name)[mask] for name in self.__dataclass_fields__))

    def __len__(self) -> int:
        return len(self.at)


class Ring:
    """Captures on one interface; to be created by a thread in its namespace."""

    def __init__(self, device: str) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
        self.socket.setsockopt(SOL_PACKET, VERSION, 1)
        self.socket.setsockopt(SOL_PACKET, RX_RING,
                               struct.pack("IIII", BLOCK, FRAMES * FRAME // BLOCK, FRAME, FRAMES))
        self.map = mmap.mmap(self.socket.fileno(), FRAMES * FRAME)
        self.rows = np.frombuffer(self.map, np.uint8).reshape(FRAMES, FRAME)
        self.status = self.rows[:, :4].view(np.uint32)[:, 0]
        self.socket.bind((device, ALL))

    def forget(self) -> None:
        self.status[:] = 0
        self.socket.getsockopt(SOL_PACKET, STATISTICS, 8)

    def moved(self) -> int:
        return int(np.count_nonzero(self.status))

    def packets(self) -> "Tuple[Packets, int]":
        """The packets since forget(), and how many were lost."""
        lost = struct.unpack("II", self.socket.getsockopt(SOL_PACKET, STATISTICS, 8))[1]
        return parse(self.rows[(self.status & 1) != 0]), lost


def parse(rows: Any) -> Packets:
    """Parse the ring's rows: tpacket2_hdr, sockaddr_ll, headers."""
    def word(at: int, kind: str) -> Any:
        return np.ascontiguousarray(rows[:, at:at + np.dtype(kind).itemsize]).view(kind)[:, 0].astype(np.int64)

    at = word(16, "<u4") + word(20, "<u4") / 1e9
    order = np.argsort(at, kind="stable")
    rows, at = rows[order], at[order]
    n = len(rows)
    base = word(14, "<u2")
    line = np.arange(n)

    def byte(where: Any) -> Any:
        return rows[line, np.minimum(where, FRAME - 1)].astype(np.int64)

    def half(where: Any) -> Any:
        return byte(where) << 8 | byte(where + 1)

    version = byte(base) >> 4
    four, six = version == 4, version == 6
    pieces6 = six & (byte(base + 6) == FRAGMENT)
    head = np.where(four, (byte(base) & 15) * 4, np.where(pieces6, 48, 40))
    protocol = np.where(four, byte(base + 9), np.where(pieces6, byte(base + 40), byte(base + 6)))
    end = np.where(four, half(base + 2), half(base + 4) + 40)
    behind = np.where(four, half(base + 6) & 0x1fff, np.where(pieces6, half(base + 42) >> 3, 0))
    inner = base + head
    tcp, udp = (four | six) & (behind == 0) & (protocol == TCP), (four | six) & (behind == 0) & (protocol == UDP)
    payload = np.where(tcp, end - head - (byte(inner + 12) >> 4) * 4, np.where(udp, half(inner + 4) - 8, 0))
    good = tcp | udp
    return Packets(at, byte(np.full(n, 42)) == OUTGOING, protocol, half(inner), half(inner + 2),
                   half(inner + 4) << 16 | half(inner + 6), byte(inner + 13), payload).where(good)


def keys(packets: Packets, near: bool) -> Any:
    """A packet's connection: the client's port and the daemon's."""
    ours = packets.out == near
    return np.where(ours, packets.sport << 16 | packets.dport, packets.dport << 16 | packets.sport)


def connections(near: Packets, control: int, one_port: bool) -> Any:
    """The data connections that the client opened. If all go to one port, the first one is the control connection."""
    begun = near.where(near.out & ((near.protocol == UDP) | (near.flags & SYN != 0)))
    mine = keys(begun, True)
    to_control = (begun.protocol == TCP) & (begun.dport == control)
    if one_port:
        to_control &= mine == mine[to_control][0] if to_control.any() else to_control
    return np.unique(mine[~to_control])


@dataclass
class Course:
    """Payload that a receiver could read, in order, and when it arrived."""
    at: Any
    size: Any

    def within(self, begin: float, end: float) -> int:
        return int(self.size[(self.at >= begin) & (self.at < end)].sum())

    def total(self) -> int:
        return int(self.size.sum())

    def number(self, begin: float = 0.0, end: float = 9e18) -> int:
        return int(((self.at >= begin) & (self.at < end)).sum())


def course(packets: Packets) -> Course:
    """The course of one direction. A byte of TCP counts once, as soon as all before it have arrived; each UDP
    datagram counts."""
    some = packets.where((packets.payload > 0) | ((packets.protocol == TCP) & (packets.flags & SYN != 0)))
    udp = some.protocol == UDP
    at, size = in_order(some.where(~udp))
    at, size = np.concatenate((some.at[udp], at)), np.concatenate((some.payload[udp], size))
    order = np.argsort(at, kind="stable")
    return Course(at[order], size[order])


def in_order(tcp: Packets) -> "Tuple[Any, Any]":
    """For all connections: the next one of a port starts with another SYN."""
    keys = tcp.sport << 16 | tcp.dport
    order = np.argsort(keys, kind="stable")
    tcp, keys = tcp.where(order), keys[order]
    syn = np.flatnonzero(tcp.flags & SYN)
    begins = np.concatenate(([True], np.diff(keys) != 0))[:len(keys)]
    begins[syn[np.concatenate(([True], (np.diff(tcp.seq[syn]) != 0) | (np.diff(keys[syn]) != 0)))[:len(syn)]]] = True
    first = np.flatnonzero(begins)
    which = np.cumsum(begins) - 1
    seq = (tcp.seq - tcp.seq[first][which] + (1 << 31)) % (1 << 32) - (1 << 31) + ((tcp.flags & SYN) != 0)
    # Packets before a port's first SYN belong to an earlier test.
    mine = np.isin(first, syn)[which] | ~np.isin(keys, keys[syn])
    seq, which, at, payload = seq[mine], which[mine], tcp.at[mine], tcp.payload[mine]
    order = np.lexsort((at, seq, which))
    seq, which, at, end = seq[order], which[order], at[order], (seq + payload)[order]
    top = running(end, which, 1 << 33)
    begins = np.concatenate(([True], np.diff(which) != 0))[:len(which)]
    before = np.where(begins, np.minimum(seq, 1), np.roll(top, 1))
    new = end > before
    since = at.min() if len(at) else 0.0
    return running(at[new] - since, which[new], 1e4) + since, (end - np.maximum(before, seq))[new]


def running(values: Any, which: Any, apart: float) -> Any:
    """The running maximum of each connection; values differ by less than `apart`."""
    return np.maximum.accumulate(values + which * apart) - which * apart
