#!/usr/bin/env python3
"""A test at the daemon involves only its own client: strangers' connections and datagrams do not reach it, and
nothing is sent to a host that did not ask. The client is 127.0.0.1, strangers are other loopback addresses; control
connections are made by hand, so that the moments between messages last as long as needed."""

import errno
import os
import select
import socket
import struct
import threading
import time
from collections import deque
from contextlib import ExitStack, closing
from functools import partial
from typing import Callable, Deque, Iterator, List, NamedTuple, Optional, Tuple

import lib
import ours
from ours import BOTH, CONNECTIONS, RECEIVE, ROUTE, TCP, TRANSMIT, UDP

CLIENT, STRANGER, VICTIM, OTHER = "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"
ECHO_AT, ECHO_MAGIC, ECHO_ASKS, ECHO_GIVES = 600, 0x504C4543, 0x81F0E05D, 0x81F0E05E
WHY_MAGIC = 0x504C5721
MOMENT = 0.4       # seconds in which nothing may arrive
SIZE = 64          # bytes of the messages here
PATIENCE = 4 if lib.QUICK else 1

Case = Tuple[str, Callable[[], Optional[str]]]


class Answer(NamedTuple):
    """A message from the daemon."""
    bytes: bytes

    def word(self, at: int) -> int:
        return int(struct.unpack_from("!I", self.bytes, at)[0])

    @property
    def error(self) -> int:
        return self.word(4)

    @property
    def port(self) -> int:
        return self.word(52)

    @property
    def token(self) -> bytes:
        """The datagram that proves that it was read; empty if there is none."""
        given = self.word(ECHO_AT) == ECHO_MAGIC and self.word(ECHO_AT + 4) == ECHO_GIVES
        return self.bytes[ECHO_AT:ECHO_AT + 16] if given else b""

    @property
    def why(self) -> str:
        assert self.word(8) == WHY_MAGIC, "an error without a reason"
        return self.bytes[12:212].split(b"\0")[0].decode()

    @property
    def received(self) -> int:
        return self.word(8) << 32 | self.word(12)

    @property
    def transactions(self) -> int:
        return self.word(44)


class Control:
    """A control connection from 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((CLIENT, port), 60, (CLIENT, 0))

    def __enter__(self) -> "Control":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, kind: Tuple[int, int], direction: int, length: int = -1000, flags: int = ROUTE,
            port: int = 0, near: str = "0.0.0.0", far: str = "0.0.0.0",
            echo: bool = False) -> Answer:
        """Request a test; near is the client's data address, far the daemon's."""
        frame = bytearray(ours.omni(length, kind, direction, flags, exchanges=SIZE if direction == BOTH else -1, port=port,
                                    near=near, far=far))
        if echo:
            struct.pack_into("!2I", frame, ECHO_AT, ECHO_MAGIC, ECHO_ASKS)
        self._socket.sendall(frame)
        return self.answer()

    def granted(self, *args: object, **options: object) -> Answer:
        got = self.ask(*args, **options)  # type: ignore[arg-type]
        assert got.error == 0, f"refused with {got.error}: {got.why}"
        return got

    def answer(self, timeout: float = 60) -> Answer:
        self._socket.settimeout(timeout)
        return Answer(ours.take(self._socket, ours.FRAME))


def datagrams(stack: ExitStack, address: str) -> socket.socket:
    s = stack.enter_context(closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
    s.bind((address, 0))
    s.settimeout(60)
    return s


def quiet(*sockets: socket.socket, seconds: float = MOMENT) -> None:
    """Nothing arrives at these sockets."""
    ready = select.select(sockets, [], [], seconds)[0]
    assert not ready, f"{ready[0].recv(2048)[:20]!r} came at {ready[0].getsockname()}"


def connects(address: str, port: int, seconds: float = MOMENT, kind: Tuple[int, int] = TCP) -> bool:
    """Whether a connection from that address is served in time. The daemon resets strangers' connections, or ignores
    them while it has its client's."""
    with socket.socket(socket.AF_INET, *kind) as s:
        s.settimeout(seconds)
        s.bind((address, 0))
        try:
            s.connect((CLIENT, port))
            s.sendall(bytes(SIZE))
            return s.recv(SIZE) != b""
        except (socket.timeout, ConnectionError):
            return False
        except OSError as fault:
            if fault.errno != errno.ENOTCONN:   # DCCP's, if the reset arrived between connect and send
                raise
            return False


def are_not_served(port: int, kind: Tuple[int, int]) -> None:
    """A stranger connects before the client of a test with that transport does."""
    with Control(port) as control:
        data = control.granted(kind, BOTH).port
        assert not connects(STRANGER, data, kind=kind), "a stranger was served"
        assert connects(CLIENT, data, 60, kind), "the client was not served"


# ---- connections --------------------------------------------------------------------------------

def stranger_connects(port: int, direction: int) -> None:
    """It gets no answer, not even a refusal, and the client still gets its own."""
    with Control(port) as control:
        # A sender is timed: a counted test would end before we look again.
        length = 3 if direction == TRANSMIT else -1000
        data = control.granted(TCP, direction, length).port
        for address in (STRANGER, VICTIM):
            assert not connects(address, data), f"{address} was served"
        with socket.create_connection((CLIENT, data), 60, (CLIENT, 0)) as own:
            if direction == BOTH:
                own.sendall(bytes(SIZE))
                assert len(own.recv(SIZE, socket.MSG_WAITALL)) == SIZE
            if direction == TRANSMIT:
                assert own.recv(SIZE)
            if direction == RECEIVE:
                own.sendall(bytes(3 * SIZE))
            # Nor in the middle of a test.
            assert not connects(STRANGER, data), "a stranger was served during the test"
        if direction == RECEIVE:
            got = control.answer()
            assert got.received == 3 * SIZE, f"{got.received} bytes"


def between_connections(port: int) -> str:
    """A connection test accepts one after another, each from its client."""
    with Control(port) as control:
        data = control.granted(TCP, BOTH, -20, ROUTE | CONNECTIONS).port
        for i in range(20):
            if i % 10 == 5:
                assert not connects(STRANGER, data), f"served after {i} connections"
            with socket.create_connection((CLIENT, data), 60, (CLIENT, 0)) as own:
                own.sendall(bytes(SIZE))
                assert len(own.recv(SIZE, socket.MSG_WAITALL)) == SIZE
        got = control.answer().transactions
    assert got == 20, f"{got} transactions"
    return "20 of the client's counted"


def other_address(port: int) -> None:
    """The control connection may use one network, and data another."""
    with Control(port) as control:
        data = control.granted(TCP, BOTH, near=OTHER).port
        assert not connects(STRANGER, data), "not the address that the request names"
        assert not connects(CLIENT, data), "not the address that the request names"
        assert connects(OTHER, data, 60), "the address that the request names was not served"
    with Control(port) as control:
        # For another address of the daemon, only the client's routes determine its source address.
        data = control.granted(TCP, BOTH, far=OTHER).port
        with socket.create_connection((OTHER, data), 60, (STRANGER, 0)) as s:
            s.sendall(bytes(SIZE))
            assert len(s.recv(SIZE, socket.MSG_WAITALL)) == SIZE


class Flood:
    """Strangers who connect to a data port some hundred times a second, during a block."""

    PAUSE = 0.002  # seconds

    def __init__(self, port: int) -> None:
        self._port = port
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._connect)
        self.made = 0

    def _connect(self) -> None:
        held: "Deque[socket.socket]" = deque(maxlen=300)  # the oldest is closed
        while not self._over.wait(self.PAUSE):
            s = socket.socket()
            s.bind((STRANGER, 0))
            s.setblocking(False)
            self.made += s.connect_ex((CLIENT, self._port)) == errno.EINPROGRESS
            held.append(s)

    def __enter__(self) -> "Flood":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def flooded(port: int, test: str, length: int, *args: str) -> str:
    """However many strangers connect, the client has its whole test, and counts nothing else."""
    data = lib.free_port()
    with Flood(data) as flood:
        time.sleep(MOMENT)
        before, begun = flood.made, time.monotonic()
        got = client(port, "-t", test, "-l", str(length), *args, "--", "-P", f",{data}", "-k",
                     "LOCAL_BYTES_SENT,REMOTE_BYTES_RECVD,ELAPSED_TIME")
    assert got.rc == 0 and not got.err, f"status {got.rc}: {got.err!r}"
    found = dict(line.split("=") for line in got.out.split())
    sent, arrived = int(found["LOCAL_BYTES_SENT"]), int(found["REMOTE_BYTES_RECVD"])
    assert sent == arrived and sent >= -length, f"{sent} bytes sent, {arrived} received"
    made = flood.made - before
    assert made > (time.monotonic() - begun) / Flood.PAUSE / 50, f"{made} strangers"
    return f"{sent} bytes in {found['ELAPSED_TIME']} s beside {made} strangers"


# ---- datagrams ----------------------------------------------------------------------------------

def requests_of_strangers(port: int) -> None:
    with Control(port) as control, ExitStack() as stack:
        to = (CLIENT, control.granted(UDP, BOTH, 1).port)
        own, stranger = datagrams(stack, CLIENT), datagrams(stack, STRANGER)
        for _ in range(5):
            stranger.sendto(bytes(SIZE), to)
        stranger.sendto(b"", to)  # would end the test if it came from the client
        quiet(stranger)
        for _ in range(3):
            own.sendto(bytes(SIZE), to)
            assert len(own.recv(2048)) == SIZE
        own.sendto(b"", to)
        got = control.answer()
        assert (got.error, got.transactions) == (0, 3), f"{got.error}, {got.transactions}"
        quiet(stranger, seconds=0)


def streams_of_strangers(port: int) -> None:
    with Control(port) as control, ExitStack() as stack:
        to = (CLIENT, control.granted(UDP, RECEIVE, 1).port)
        own, stranger = datagrams(stack, CLIENT), datagrams(stack, STRANGER)
        for _ in range(7):
            stranger.sendto(bytes(SIZE), to)
            own.sendto(bytes(SIZE), to)
            stranger.sendto(b"", to)
        own.sendto(b"", to)
        got = control.answer()
        assert (got.error, got.received) == (0, 7 * SIZE), f"{got.error}, {got.received} bytes"


def spoofed(source: Tuple[str, int], to: Tuple[str, int], payload: bytes) -> bytes:
    """An IPv4 packet with that source address; the kernel fills in checksum and lengths that are zero."""
    udp = struct.pack("!4H", source[1], to[1], 8 + len(payload), 0) + payload
    head = struct.pack("!2B3H2BH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, socket.IPPROTO_UDP, 0,
                       socket.inet_aton(source[0]), socket.inet_aton(to[0]))
    return head + udp


def reflection(port: int) -> str:
    """With forged source addresses, a responder could be made to flood a victim."""
    with Control(port) as control, ExitStack() as stack:
        try:
            raw = stack.enter_context(closing(socket.socket(
                socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)))
        except PermissionError:
            return "not tried: only root may forge addresses"
        to = (CLIENT, control.granted(UDP, BOTH, 1).port)
        victim, own = datagrams(stack, VICTIM), datagrams(stack, CLIENT)
        for _ in range(20):
            raw.sendto(spoofed(victim.getsockname(), to, bytes(SIZE)), to)
        quiet(victim)
        # The same packet from the client itself is accepted, so it was not malformed.
        raw.sendto(spoofed(own.getsockname(), to, bytes(SIZE)), to)
        assert len(own.recv(2048)) == SIZE
        own.sendto(b"", to)
        got = control.answer()
        assert got.transactions == 1, f"{got.transactions} transactions"
        quiet(victim, seconds=0)
    return "20 forged requests, nothing sent to the victim"


# ---- the echo -----------------------------------------------------------------------------------

def no_echo(port: int) -> str:
    with Control(port) as control, ExitStack() as stack:
        named = datagrams(stack, CLIENT)
        control.granted(UDP, TRANSMIT, 1, port=named.getsockname()[1], echo=True)
        got = control.answer()
        assert got.error == errno.ETIMEDOUT, f"error {got.error}"
        assert "no datagram was sent" in got.why, got.why
        quiet(named, seconds=0)
        return got.why


def without_mark(port: int) -> None:
    """netperf's own client does not support echoes: it gets what it always got."""
    with Control(port) as control, ExitStack() as stack:
        own = datagrams(stack, CLIENT)
        granted = control.granted(UDP, TRANSMIT, 1, port=own.getsockname()[1])
        assert not granted.token, "a token that nobody asked for"
        assert len(own.recv(2048)) == SIZE
        assert control.answer().error == 0


def closed_port(port: int) -> None:
    """An ICMP error about a client's closed port ends neither a responder nor a sender."""
    with Control(port) as control, ExitStack() as stack:
        to = (CLIENT, control.granted(UDP, BOTH, 2).port)
        for _ in range(20):
            with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as gone:
                gone.bind((CLIENT, 0))
                for _ in range(5):
                    gone.sendto(bytes(SIZE), to)
        own = datagrams(stack, CLIENT)
        for _ in range(5):
            own.sendto(bytes(SIZE), to)
            assert len(own.recv(2048)) == SIZE
        own.sendto(b"", to)
        got = control.answer()
        assert (got.error, got.transactions) == (0, 105), f"{got.error}, {got.transactions}"
    with Control(port) as control:
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as own:
            own.bind((CLIENT, 0))
            granted = control.granted(UDP, TRANSMIT, 1, port=own.getsockname()[1], echo=True)
            own.sendto(granted.token, (CLIENT, granted.port))
            assert len(own.recv(2048)) == SIZE
        began = time.monotonic()
        got = control.answer()
        assert got.error == 0, f"error {got.error}: {got.why}"
        assert time.monotonic() - began > 0.5, "the sender has not used its second"


# ---- the programs -------------------------------------------------------------------------------

def client(port: int, *args: str, program: Optional[str] = None) -> lib.Result:
    return lib.run([program or lib.netperf(), "-H", CLIENT, "-p", str(port), "-P", "0", *args],
                   30 * PATIENCE)


def served(port: int, args: str) -> str:
    got = client(port, *args.split())
    assert got.rc == 0 and not got.err, f"status {got.rc}: {got.err!r}"
    return " ".join(got.out.split())


def ours_refused(port: int, args: str) -> str:
    got = client(port, *args.split())
    assert got.rc == 255, f"status {got.rc}: {got.err!r}"
    return lib.error_line(got, "netperf", f"the netserver at {CLIENT} port {port} refuses: ",
                          f"datagrams of {STRANGER}", CLIENT)


def real_refused(port: int, program: str) -> str:
    """netperf's own client looks at the number alone, as always."""
    got = client(port, "-t", "UDP_RR", "-l", "1", "--", "-L", STRANGER, program=program)
    assert got.rc == 255, f"status {got.rc}: {got.err!r}"
    assert f"remote error {errno.EACCES}" in got.out + got.err, f"{got.out!r} {got.err!r}"
    return (got.out + got.err).strip()


UDP_RECEIVE = "-t OMNI -l 0.3 -- -T udp -d recv -m ,1000 -k THROUGHPUT"
WORK = (
    UDP_RECEIVE,
    UDP_RECEIVE + " -N -n",
    "-t OMNI -l -100000 -- -T udp -d recv -m ,1000 -k LOCAL_BYTES_RECVD",
    f"-t TCP_RR -l -100 -- -L {OTHER}",
    f"-t TCP_RR -l -100 -- -H {OTHER}",
    f"-t TCP_RR -l -100 -- -H {OTHER} -L {STRANGER}",
    f"-L {OTHER} -t UDP_RR -l -100",
    f"-L {OTHER} -t TCP_CRR -l -100",
)
REFUSED = (f"-t UDP_RR -l 1 -- -L {STRANGER}", f"-t UDP_STREAM -l 1 -- -L {STRANGER} -m 64 -R 1")


def connections(port: int) -> Iterator[Case]:
    for name, direction in (("TCP_RR", BOTH), ("TCP_STREAM", RECEIVE), ("TCP_MAERTS", TRANSMIT)):
        yield f"{name}: a stranger connects", partial(stranger_connects, port, direction)
    yield "TCP_CRR: a stranger connects", partial(between_connections, port)
    yield "TCP_RR: an address that the request names", partial(other_address, port)
    for args in ((), ("--engine", "epoll"), ("--engine", "epoll", "--flows", "8")):
        words = " ".join(args)
        yield f"TCP_CRR {words} in a flood of strangers", partial(flooded, port, "TCP_CRR", -3000, *args)
        yield f"TCP_STREAM {words} in a flood", partial(flooded, port, "TCP_STREAM", -200000000, *args)


def cases(port: int) -> Iterator[Case]:
    yield "no echo, no datagrams", partial(no_echo, port)
    yield from connections(port)
    yield "UDP_RR: a stranger's requests", partial(requests_of_strangers, port)
    yield "UDP_STREAM: a stranger's datagrams", partial(streams_of_strangers, port)
    yield "UDP_RR: forged addresses", partial(reflection, port)
    yield "UDP: a client's port is closed", partial(closed_port, port)
    yield "datagrams to a client without echoes", partial(without_mark, port)
    for args in WORK:
        yield f"netperf {args}", partial(served, port, args)
    for args in REFUSED:
        yield f"netperf {args}", partial(ours_refused, port, args)


def suite(report: lib.Report) -> None:
    with ExitStack() as stack:
        daemon = stack.enter_context(lib.Daemon())
        listed: List[Case] = [*cases(daemon.port)]
        try:
            program = str(lib.real_netperf() / "netperf")
            listed.append(("real netperf, refused", partial(real_refused, daemon.port, program)))
        except lib.Skipped as why:
            report.skip("real netperf, refused", str(why))
        report.cases(listed, min(4, 2 * (os.cpu_count() or 1)))


if __name__ == "__main__":
    lib.main(suite)
