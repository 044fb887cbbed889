"""Peers that connect and send nothing, or too little: they cost the daemon no process, do not delay others, and are
disconnected.
"""

import select
import socket
import struct
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Callable, List, Tuple

import lib
import ours

PEERS = 200
FIRST_S = 5.0    # for the first complete message
SLOW = lib.QUICK or b"__asan_init" in Path(lib.netserver()).read_bytes()
PATIENCE = 4.0 if SLOW else 1.0  # sanitizers stretch time limits
TRIES = 15

DEBUG_OFF = ours.frame(2, -1)


OMNI = next(one.frame for one in ours.vectors() if one.kind == "OMNI_REQUEST" and one.label.startswith("tcp_rr, "))
REQUESTS = {"DEBUG_OFF": (DEBUG_OFF, 3), "OMNI": (OMNI, 98)}


def first_answer(port: int, request: bytes, code: int) -> float:
    """Seconds from connect to the complete answer."""
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 60) as conn:
        conn.sendall(request)
        answer = ours.take(conn, ours.FRAME)
        seconds = time.monotonic() - start
    got, error = struct.unpack("!Ii", answer[:8])
    assert (got, error) == (code, 0), f"answer {got}, error {error}"
    return seconds


def best(port: int, request: str, until: float) -> float:
    """The minimum of several tries, which end before the peers are disconnected."""
    times: List[float] = []
    while len(times) < TRIES and (not times or time.monotonic() < until):
        times.append(first_answer(port, *REQUESTS[request]))
    return min(times)


def nothing(_conn: socket.socket) -> None:
    pass


def half(conn: socket.socket) -> None:
    conn.sendall(DEBUG_OFF[:ours.FRAME // 2])


def one_byte(conn: socket.socket) -> None:
    conn.sendall(DEBUG_OFF[:1])


def closings(conns: "List[socket.socket]", since: float, drip: bool) -> "List[float]":
    """When each was closed, in seconds since then; an error frame may precede."""
    open_ones, when = set(conns), []
    while open_ones and time.monotonic() - since < FIRST_S * 3 * PATIENCE + lib.SLACK:
        for conn in select.select(list(open_ones), [], [], 0.2)[0]:
            try:
                rest = conn.recv(1 << 16)
            except ConnectionError:
                rest = b""
            if not rest:
                open_ones.discard(conn)
                when.append(time.monotonic() - since)
        for conn in open_ones if drip else ():
            try:
                conn.send(b"\0")
            except OSError:
                pass  # the close is read next
    assert not open_ones, f"{len(open_ones)} of {len(conns)} are not closed"
    return when


def wait_without(say: "Callable[[socket.socket], None]", drip: bool) -> str:
    with lib.Daemon(args=["-v", "0"], grace=20 * PATIENCE) as daemon, ExitStack() as stack:
        idle = {name: best(daemon.port, name, time.monotonic() + 3) for name in REQUESTS}
        assert lib.wait_for(lambda: not daemon.children(), 20 * PATIENCE), "sessions left"
        start = time.monotonic()
        conns = []
        processes = 0
        for number in range(PEERS):
            conn = socket.create_connection(("127.0.0.1", daemon.port), 60)
            conns.append(stack.enter_context(conn))
            say(conn)
            if number % 20 == 19:
                processes = max(processes, len(daemon.children()))
        last = time.monotonic()
        busy = {name: best(daemon.port, name, last + FIRST_S / 2) for name in REQUESTS}
        served = time.monotonic()
        shown = ", ".join(f"{name} {1000 * idle[name]:.1f} ms idle, {1000 * busy[name]:.1f} ms"
                          for name in REQUESTS)
        assert processes == 0, f"{processes} processes for them; {shown}"
        # Before the peers were disconnected, so the client did not wait for that.
        assert served - start < FIRST_S or max(busy.values()) < FIRST_S / 2, shown
        when = closings(conns, start, drip)
        shown += f"; closed after {min(when):.1f} to {max(when):.1f} s"
        assert min(when) > FIRST_S - 0.5 - (last - start), f"too early: {shown}"
        assert max(when) < FIRST_S + (last - start) + 1.5 * PATIENCE + lib.SLACK, f"too late: {shown}"
        return shown


CASES: "Tuple[Tuple[str, Callable[[socket.socket], None], bool], ...]" = (
    ("say nothing", nothing, False),
    ("say half a message", half, False),
    ("dribble", one_byte, True),
)


def suite(report: lib.Report) -> None:
    if "--max-silent" not in lib.run([lib.netserver(), "--help"], timeout=20).out:
        lib.skip("this netserver has a process for every connection, whatever comes")
    report.cases([(f"{PEERS} peers {name}", partial(wait_without, say, drip))
                  for name, say, drip in CASES], at_once=3)


if __name__ == "__main__":
    lib.netserver()
    lib.main(suite)
