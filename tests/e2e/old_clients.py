#!/usr/bin/env python3
"""Clients of netperf 2.2 to 2.4, made by hand: messages of 256 bytes, real data over loopback."""

import contextlib
import socket
import struct
import sys
import time
from functools import partial
from pathlib import Path
from typing import Callable, Optional

sys.path.insert(0, str(Path(__file__).resolve().parent))
import lib
import ours

SIZE = 256
LATE = 1.5  # seconds that a busy machine may make of one second; a time-out of the daemon's is longer
DEBUG_OFF, DEBUG_OK, CALIBRATE = 2, 3, 5
TCP_STREAM, TCP_RR, UDP_STREAM, UDP_RR, TCP_CRR, TCP_MAERTS, TCP_CC = 10, 13, 16, 19, 34, 94, 300


def words(*values: "int | float") -> bytes:
    """Words in network order; a float is an IEEE single."""
    return b"".join(struct.pack("!f" if isinstance(v, float) else "!i", v) for v in values)


class Control:
    """A control connection of an old client."""

    def __init__(self, port: int, ancient: bool = False, size: int = SIZE) -> None:
        self.size = size
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.affinity = -1
        if ancient:  # up to 2.3 it begins like this, and the second word is 0 all along
            self.affinity = 0
            self.say(DEBUG_OFF)
            code, error, _ = self.hear()
            assert (code, error) == (DEBUG_OK, 0), (code, error)

    def __enter__(self) -> "Control":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def say(self, code: int, *values: "int | float") -> None:
        self.sock.sendall(words(code, self.affinity, *values).ljust(self.size, b"\0"))

    def hear(self) -> "tuple[int, int, bytes]":
        """One message, and not a byte more: its two words and what follows them."""
        message = ours.take(self.sock, self.size)
        self.sock.settimeout(0.05)
        try:
            assert not self.sock.recv(1), "more than one message"
        except socket.timeout:
            pass
        self.sock.settimeout(60)
        code, error = struct.unpack("!ii", message[:8])
        return code, error, message[8:]

    def expect(self, code: Optional[int], shape: str) -> "tuple[float, ...]":
        """An answer without an error, its body read as struct's shape says."""
        got, error, body = self.hear()
        assert error == 0 and code in (None, got), f"answer {got}, error {error}"
        return struct.unpack_from("!" + shape, body)


def receive(sock: socket.socket, size: int) -> int:
    got = 0
    while got < size:
        part = sock.recv(size - got)
        if not part:
            break
        got += len(part)
    return got


def data(port: float) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(port)), timeout=60)


def a_second(elapsed: float) -> None:
    """Of a test of one second, whose first part a busy daemon may miss."""
    assert 0.2 <= elapsed <= 1 + LATE, f"a second took {elapsed} s"


def tcp_stream(control: Control) -> str:
    """send_buf, recv_buf, receive_size, alignment, offset, no_delay, cpu, rate, length, avoid x 2,
    dirty x 2, port, family"""
    control.say(TCP_STREAM, -1, -1, 0, 8, 0, 0, 0, 0.0, 1, 0, 0, 0, 0, 0, 0)
    reply = control.expect(TCP_STREAM + 1, "iiiiiiifii")
    block, sent, end = b"x" * 65536, 0, time.monotonic() + 1
    with data(reply[6]) as sock:
        while time.monotonic() < end:
            sock.sendall(block)
            sent += len(block)
            time.sleep(0.001)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""
    received, calls, elapsed, _, _, method, cpus = control.expect(None, "dIfffii")
    assert received == sent, f"{received} of {sent} bytes"
    assert calls > 0 and (method, cpus) == (0, 0), (calls, method, cpus)
    a_second(elapsed)
    return f"{sent} bytes"


def tcp_maerts(control: Control) -> str:
    control.say(TCP_MAERTS, -1, -1, 5000, 8, 0, 0, 0, 0.0, 1, 0, 0, 0, 0, 0, 0)
    reply = control.expect(TCP_MAERTS + 1, "iiiiiiifii")
    assert reply[1] == 5000, reply
    got = 0
    with data(reply[6]) as sock:
        while True:
            part = sock.recv(1 << 20)
            if not part:
                break
            got += len(part)
        sock.shutdown(socket.SHUT_WR)
    sent, calls, elapsed = control.expect(None, "dIf")
    assert sent == got and calls >= sent // 5000, (sent, got, calls)
    a_second(elapsed)
    return f"{got} bytes"


def ask_rr(control: Control, code: int, length: int) -> int:
    """recv_buf, send_buf, alignments and offsets, sizes, no_delay, cpu, rate, length, avoid x 2,
    port, family. Returns the data port."""
    control.say(code, -1, -1, 8, 0, 8, 0, 10, 20, 1, 0, 0.0, length, 0, 0, 0, 0)
    reply = control.expect(code + 1, "iiiiiifii")
    return int(reply[5])


def rr_results(control: Control, done: int, timed: bool = True) -> str:
    got, _, transactions, took = control.expect(None, "IIIf")
    assert transactions == done, f"{transactions} of {done} transactions"
    assert got == done * 30, got
    if timed:
        a_second(took)
    assert 0 < took < 60, f"{took} s"
    return f"{done} transactions in {took:.3f} s"


def tcp_rr_counted(control: Control) -> str:
    with data(ask_rr(control, TCP_RR, -500)) as sock:
        for _ in range(500):
            sock.sendall(b"q" * 10)
            assert receive(sock, 20) == 20
        return rr_results(control, 500, timed=False)


def tcp_rr_timed(control: Control) -> str:
    """Such a client keeps its connection until the results have come."""
    with data(ask_rr(control, TCP_RR, 1)) as sock:
        done, end = 0, time.monotonic() + 1
        while time.monotonic() < end:
            sock.sendall(b"q" * 10)
            assert receive(sock, 20) == 20
            done += 1
        assert done > 0
        return rr_results(control, done)


def tcp_crr_timed(control: Control) -> str:
    port = ask_rr(control, TCP_CRR, 1)
    done, end = 0, time.monotonic() + 1
    while time.monotonic() < end:
        with data(port) as sock:
            sock.sendall(b"q" * 10)
            assert receive(sock, 20) == 20
            sock.shutdown(socket.SHUT_WR)
            assert sock.recv(1) == b""
        done += 1
    return rr_results(control, done)


def thrice(play: Callable[[], str]) -> str:
    """A daemon does not wait for long for who stands still behind the time of a test, as on a busy machine."""
    for _ in range(2):
        with contextlib.suppress(ConnectionResetError):
            return play()
    return play()


def tcp_crr_counted(control: Control) -> str:
    port = ask_rr(control, TCP_CRR, -50)
    for _ in range(50):
        with data(port) as sock:
            sock.sendall(b"q" * 10)
            assert receive(sock, 21) == 20
    return rr_results(control, 50, timed=False)


def tcp_cc(control: Control) -> str:
    control.say(TCP_CC, -1, -1, 8, 0, 8, 0, 10, 20, 0, 0, 0.0, -50, 0, 0, 0, 0)
    reply = control.expect(TCP_CC + 1, "iiiiiifii")
    for _ in range(50):
        with data(reply[5]) as sock:
            assert sock.recv(1) == b""
    return rr_results(control, 50, timed=False)


def udp_rr(control: Control) -> str:
    """Ends without a word, in the middle of the daemon's waiting."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(60)
        sock.connect(("127.0.0.1", ask_rr(control, UDP_RR, 1)))
        done, end = 0, time.monotonic() + 1
        while time.monotonic() < end:
            sock.send(b"q" * 10)
            assert len(sock.recv(100)) == 20
            done += 1
        return rr_results(control, done)


def udp_rr_counted(control: Control) -> str:
    """Sends nothing behind its last request: the count is the end."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(60)
        start = time.monotonic()
        sock.connect(("127.0.0.1", ask_rr(control, UDP_RR, -500)))
        for _ in range(500):
            sock.send(b"q" * 10)
            assert len(sock.recv(100)) == 20
        got, _, transactions, took = control.expect(UDP_RR + 2, "IIIf")
        waited = time.monotonic() - start - took
        assert (transactions, got) == (500, 500 * 30), (transactions, got)
        assert took > 0 and waited > 0.49, f"{took} s, which counts the wait for repeats"
        return f"{took:.3f} s, and {waited:.3f} s of waiting"


def udp_stream(control: Control, *connected: int) -> str:
    """recv_buf, message_size, recv_connected (from 2.4.3 on), alignment, offset, checksum_off, cpu,
    rate, length, avoid x 2, port, family"""
    control.say(UDP_STREAM, 1 << 20, 1000, *connected, 8, 0, 0, 0, 0.0, 1, 0, 0, 0, 0)
    reply = control.expect(UDP_STREAM + 1, "iiiiifii")
    assert reply[3] == 1, reply
    sent, end = 0, time.monotonic() + 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", int(reply[4])))
        while time.monotonic() < end:
            sock.send(b"x" * 1000)
            sent += 1
            time.sleep(0.0005)
        messages, got, elapsed, cpu, _, cpus = control.expect(None, "IIffii")
    assert 0 < messages <= sent and got == messages * 1000, (messages, sent, got)
    a_second(elapsed)
    assert cpu == -1.0 and cpus == 0, (cpu, cpus)
    return f"{messages} of {sent} datagrams"


def calibrate(control: Control) -> str:
    control.say(CALIBRATE)
    rate, cpus = control.expect(CALIBRATE, "fi")
    assert rate > 0 and cpus > 0, (rate, cpus)
    return f"{rate:g} ticks a second"


def two_tests(control: Control) -> str:
    return f"{tcp_rr_counted(control)}, {tcp_stream(control)}"


def unknown(control: Control) -> str:
    control.say(22)
    _, error, _ = control.hear()
    assert error == 998, error
    return calibrate(control)


def suite(report: lib.Report) -> None:
    tests: "list[tuple[str, Callable[[Control], str], bool]]" = [
        ("TCP_STREAM", tcp_stream, False),
        ("TCP_MAERTS", tcp_maerts, False),
        ("TCP_RR, counted", tcp_rr_counted, False),
        ("TCP_RR, timed", tcp_rr_timed, False),
        ("TCP_CRR, counted", tcp_crr_counted, False),
        ("TCP_CRR, timed", tcp_crr_timed, False),
        ("TCP_CC", tcp_cc, False),
        ("UDP_RR", udp_rr, False),
        ("UDP_RR, counted", udp_rr_counted, False),
        ("UDP_STREAM of 2.4.5", lambda c: udp_stream(c, 0), False),
        ("UDP_STREAM of 2.4.5, connected", lambda c: udp_stream(c, 1), False),
        ("UDP_STREAM of 2.4.2", udp_stream, False),
        ("calibration", calibrate, False),
        ("two tests", two_tests, False),
        ("an unknown code", unknown, False),
        ("2.2: TCP_STREAM", tcp_stream, True),
        ("2.2: TCP_RR", tcp_rr_counted, True),
        ("2.2: UDP_STREAM", udp_stream, True),
    ]

    with lib.Daemon() as daemon:
        def played(test: Callable[[Control], str], ancient: bool, size: int = SIZE) -> str:
            with Control(daemon.port, ancient, size) as control:
                return test(control)

        bodies = [(name, partial(thrice, partial(played, test, ancient))) for name, test, ancient in tests]
        bodies.append(("UDP_RR, counted, in messages of today",
                       partial(played, udp_rr_counted, False, 656)))
        report.cases(bodies, at_once=4)


if __name__ == "__main__":
    lib.main(suite)
