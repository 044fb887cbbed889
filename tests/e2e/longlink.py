"""A link with a delay, and a rate and a queue if wanted, where the kernel has no sch_netem: two TUN
devices in namespaces of their own, and a process that takes packets from one to the other when they
are due. Good for some thousand packets a second. Needs root.
"""

import collections
import ctypes
import fcntl
import os
import select
import signal
import struct
import time
from typing import Deque, List, Optional, Tuple

import netns

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
MOST = 65536


class Way:
    """One direction: packets, and when they are to come out."""

    def __init__(self, to: int, delay: float, rate: Optional[float], limit: int) -> None:
        self.to, self.delay, self.rate, self.limit = to, delay, rate, limit
        self.free = 0.0         # when the wire has sent all it has been given
        self.queue: Deque[Tuple[float, bytes]] = collections.deque()

    def put(self, packet: bytes, now: float) -> None:
        if self.rate is not None:
            if max(0.0, self.free - now) * self.rate / 8 > self.limit:
                return          # the queue before the wire is full
            self.free = max(self.free, now) + len(packet) * 8 / self.rate
        self.queue.append((max(self.free, now) + self.delay, packet))

    def deliver(self, now: float) -> None:
        while self.queue and self.queue[0][0] <= now:
            packet = self.queue.popleft()[1]
            try:
                os.write(self.to, packet)
            except OSError:
                pass            # that end is not up (yet)

    def due(self) -> Optional[float]:
        return self.queue[0][0] if self.queue else None


def relay(ends: List[int], ways: List[Way]) -> None:
    """Until it is killed. ways[0] begins at ends[0]. Sleeps are too late by some 50 us at most."""
    poll = select.poll()
    for fd in ends:
        poll.register(fd, select.POLLIN)
    while True:
        now = time.monotonic()
        next_due = min((due for due in (way.due() for way in ways) if due is not None),
                       default=now + 1)
        for fd, _ in poll.poll(max(0.0, next_due - now) * 1000):
            packet = os.read(fd, MOST)
            ways[ends.index(fd)].put(packet, time.monotonic())
        for way in ways:
            way.deliver(time.monotonic())


class LongLink:
    """For the length of a block; client and server are command prefixes, 10.77.0.2 is the server."""

    def __init__(self, delay: float, rate: Optional[float] = None, limit: int = 1 << 30) -> None:
        self.names = [f"long{os.getpid()}{end}" for end in "cs"]
        self.client = ["ip", "netns", "exec", self.names[0]]
        self.server = ["ip", "netns", "exec", self.names[1]]
        self._shape = (delay, rate, limit)
        self._relay = 0

    def __enter__(self) -> "LongLink":
        try:
            for name in self.names:
                netns.must(["ip", "netns", "add", name])
            self._relay = os.fork()
            if self._relay == 0:
                self._carry()
            for number, name in enumerate(self.names, 1):
                self._join(name, number)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._relay > 0:
            os.kill(self._relay, signal.SIGKILL)
            os.waitpid(self._relay, 0)
        for name in self.names:
            if os.path.exists(f"/run/netns/{name}"):
                netns.must(["ip", "netns", "delete", name])

    def _join(self, name: str, number: int) -> None:
        here = ["ip", "-n", name]
        deadline = time.monotonic() + 10
        while os.path.exists(f"/run/netns/{name}"):
            try:
                netns.must([*here, "link", "set", "tun0", "up"])
                break
            except AssertionError:
                assert time.monotonic() < deadline, "no TUN device"
                time.sleep(0.02)
        netns.must([*here, "link", "set", "lo", "up"])
        netns.must([*here, "addr", "add", f"10.77.0.{number}/24", "dev", "tun0"])

    def _carry(self) -> None:
        """The child: never returns."""
        try:
            delay, rate, limit = self._shape
            ends = [self._tun(name) for name in self.names]
            relay(ends, [Way(ends[1], delay, rate, limit), Way(ends[0], delay, rate, limit)])
        finally:
            os._exit(1)

    @staticmethod
    def _tun(name: str) -> int:
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/run/netns/{name}", "rb") as place:
            if libc.setns(place.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        fd = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"tun0", IFF_TUN | IFF_NO_PI))
        return fd
