"""The messages of Plumbline's protocol (doc/protocol.md), and recorded ones of netperf's."""

import re
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path
from typing import Dict, Iterator, NamedTuple, Tuple

FRAME = 656         # bytes of netperf's messages, which include the greetings
HELLO, WELCOME = 0x504c0010, 0x504c0011
PLAN, GRANT, RESULT, ENGINES, EVIDENCE, BAG, ERROR = range(0x504c0030, 0x504c0037)
FACTS, PLANS = 2, 32    # capabilities
# Of netperf's requests: a kind of socket with its protocol, directions as the daemon sees them, flags.
TCP, UDP = (1, socket.IPPROTO_TCP), (2, socket.IPPROTO_UDP)
TRANSMIT, RECEIVE, BOTH = 2, 4, 6
CONNECTIONS, ROUTE = 0x4, 0x20


class Vector(NamedTuple):
    """A recorded message."""
    kind: str
    label: str
    frame: bytes


def vectors() -> "Iterator[Vector]":
    """The recordings in tests/vectors."""
    text = Path(__file__).resolve().parents[1].joinpath("vectors", "frames.def").read_text()
    first: "Dict[str, bytes]" = {}
    for kind, label, rows in re.findall(r'NP_VECTOR\((\w+), "([^"]*)",\n((?:\t"[^"]*"\n?)+),', text):
        message, at = bytearray(first.get(kind, bytes(FRAME))), 0
        for part in " ".join(re.findall(r'"([^"]*)"', rows)).split():
            if len(part) == 3:
                at = int(part)
            else:
                message[at:at + len(part) // 2] = bytes.fromhex(part)
                at += len(part) // 2
        first.setdefault(kind, bytes(message))
        yield Vector(kind, label, bytes(message))


def word(value: int) -> bytes:
    return struct.pack("!I", value & 0xffffffff)


def words(*values: int) -> bytes:
    return b"".join(map(word, values))


def field(tag: int, value: bytes) -> bytes:
    return word(tag) + word(len(value)) + value + bytes(-len(value) % 4)


def number(tag: int, value: int) -> bytes:
    return field(tag, word(value))


def frame(code: int, second: int, body: bytes = b"") -> bytes:
    return (word(code) + word(second) + body).ljust(FRAME, b"\0")


CALIBRATE = frame(5, -1)    # is answered at once


def omni(length: int, kind: "Tuple[int, int]" = TCP, direction: int = RECEIVE, flags: int = ROUTE, *, sends: int = 64,
         receives: int = 64, width: int = 0, exchanges: int = -1, port: int = 0, near: str = "0.0.0.0",
         far: str = "0.0.0.0") -> bytes:
    """netperf's request of OMNI. Sizes are those of calls, with as many buffers to receive into as `width` says, or of
    requests and responses; near and port are the client's data address, far the daemon's."""
    addresses = [(int.from_bytes(socket.inet_aton(at), "big"), 0, 0, 0) for at in (near, far)]
    return frame(97, -1, words(-1, sends, 8, 0, 0, exchanges, -1, receives, 8, 0, width, exchanges, flags, 0, length,
                               0, 0, -1, -1, -1, 0, 4, *kind, direction, port, 0, 0, *addresses[0], *addresses[1],
                               -1, -1))


def message(kind: int, *fields: bytes) -> bytes:
    body = b"".join(fields)
    return word(kind) + word(len(body)) + body


def hello(caps: int = PLANS) -> bytes:
    return frame(HELLO, -1, number(1, 1) + number(2, caps))


class Came(NamedTuple):
    kind: int
    error: int      # 0: none
    body: bytes


def take(conn: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = conn.recv(size - len(data))
        if not part:
            raise ConnectionError(f"closed after {len(data)} bytes of an answer")
        data += part
    return data


def fields(body: bytes) -> "Tuple[Tuple[int, bytes], ...]":
    found, at = [], 0
    while at + 8 <= len(body):
        tag, length = struct.unpack("!II", body[at:at + 8])
        if tag == 0:
            break
        found.append((tag, body[at + 8:at + 8 + length]))
        at += 8 + length + -length % 4
    return tuple(found)


def receive(conn: socket.socket) -> Came:
    """Receive a message of ours or of netperf's, distinguished by the first word."""
    head = take(conn, 8)
    kind, second = struct.unpack("!Ii", head)
    if kind >> 4 != PLAN >> 4:
        return Came(kind, second, take(conn, FRAME - 8))
    body = take(conn, second)
    error = int.from_bytes(dict(fields(body)).get(1, word(22)), "big") if kind == ERROR else 0
    return Came(kind, error, body)


def greet(conn: socket.socket, caps: int = PLANS) -> None:
    conn.sendall(hello(caps))
    came = receive(conn)
    assert came.kind == WELCOME and came.error == 0, came[:2]


TOKENS, TOKEN = number(19, 0x2000), 0xd74e5031     # a field of PLAN: the client shows a token; first word of a token message
ASKED, GIVEN, SHOWN, PASSED, TAKEN, UNKNOWN = range(1, 7)


def token(what: int, value: bytes = bytes(16)) -> bytes:
    return word(TOKEN) + word(what) + value


def token_of(grant: Came) -> bytes:
    return dict(fields(grant.body)).get(31, b"")


def ports_of(grant: Came) -> "Tuple[int, ...]":
    """The ports in a GRANT."""
    data = dict(fields(grant.body)).get(1, b"") if grant.kind == GRANT else b""
    return struct.unpack(f"!{len(data) // 4}I", data)


class Relay:
    """Forwards connections to a port of 127.0.0.1, each preceded by `first`."""

    def __init__(self, to: int, first: bytes = b"", at: "Tuple[str, int]" = ("127.0.0.1", 0)) -> None:
        self._to, self._first = to, first
        self._listener = socket.create_server(at, backlog=128)
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> "Relay":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def passes(self, data: bytes, from_client: bool) -> bool:
        """Whether to forward this; False ends the connection. Called for all data."""
        return True

    def serve(self, near: socket.socket) -> None:
        with near, socket.create_connection(("127.0.0.1", self._to)) as far:
            far.sendall(self._first)
            back = threading.Thread(target=self._carry, args=(far, near, False), daemon=True)
            back.start()
            self._carry(near, far, True)
            back.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self._listener.accept()[0],), daemon=True).start()

    def _carry(self, source: socket.socket, to: socket.socket, from_client: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if not self.passes(data, from_client):
                    source.shutdown(socket.SHUT_RDWR)
                    break
                to.sendall(data)
        with suppress(OSError):
            to.shutdown(socket.SHUT_WR)
