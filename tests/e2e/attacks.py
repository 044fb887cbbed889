"""Strangers of other networks who want to keep others out, each at the daemon's defaults: an honest
client of a network of its own starts within a tenth of a second meanwhile.

NP_ATTACKS=long does it in full size.
"""

import multiprocessing
import os
import resource
import socket
import struct
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Callable, Iterator, List, NamedTuple, Optional, Tuple

import lib

LONG = os.environ.get("NP_ATTACKS") == "long"
SLOW = lib.QUICK or b"__asan_init" in Path(lib.netserver()).read_bytes()
PATIENCE = 4.0 if SLOW else 1.0  # by which sanitizers stretch a time limit
FRAME = 656
PROMPT_S = 0.1        # from a client's connect to its first answer
STILL_S = 10          # after which a test that moves nothing may be ended for others
DAY_S = 86400
# One address each of several networks, as the daemon sees them: /24.
GREEDY, NEIGHBOUR, SECOND, HONEST = "127.1.0.1", "127.1.0.2", "127.2.0.1", "127.3.0.1"
ROUNDS = 10
HONEST_STARTS = 40 if LONG else 10
BURST = 1000 if LONG else 400  # requests and resets
KEY = "correct horse battery staple"
HELLO, CHALLENGE, PROOF = 0x504C0001, 0x504C0002, 0x504C0003

Case = Tuple[str, Callable[[], Optional[str]]]


def many_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 4096:
        most = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def request(seconds: int, size: int = 131072, width: int = 2) -> bytes:
    """OMNI: a TCP stream to the daemon, which receives that many bytes a call in as many buffers."""
    words = (97, -1, -1, 64, 8, 0, 0, -1, -1, size, 8, 0, width, -1, 0x20, 0, seconds, 0, 0, -1,
             -1, -1, 0, 4, 1, socket.IPPROTO_TCP, 4, *(0,) * 11, -1, -1)
    return struct.pack(f"!{len(words)}i", *words).ljust(FRAME, b"\0")


CALIBRATE = struct.pack("!Ii", 5, -1).ljust(FRAME, b"\0")


def calling(port: int, source: str) -> socket.socket:
    conn = socket.create_connection(("127.0.0.1", port), 20, (source, 0))
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return conn


def answer(conn: socket.socket) -> bytes:
    data = b""
    while len(data) < FRAME:
        part = conn.recv(FRAME - len(data))
        if not part:
            raise ConnectionError(f"closed after {len(data)} bytes of an answer")
        data += part
    return data


def error(frame: bytes) -> int:
    return int(struct.unpack("!4xi", frame[:8])[0])


def start(port: int, source: str = HONEST) -> float:
    """Seconds from the connect of an honest client to the grant of its test."""
    begun = time.monotonic()
    with calling(port, source) as conn:
        conn.sendall(request(5))
        got = answer(conn)
        seconds = time.monotonic() - begun
    assert error(got) == 0, f"refused, error {error(got)}"
    return seconds


class Round(NamedTuple):
    """The longest that an honest client waited, and one of an idle daemon in the same time."""
    worst: float
    idle: float

    def is_prompt(self) -> bool:
        return self.worst < PROMPT_S * PATIENCE + 3 * self.idle  # which is next to nothing, but on a busy machine

    def __str__(self) -> str:
        return f"{1e3 * self.worst:.1f} ms at the most, {1e3 * self.idle:.1f} at an idle daemon"


def measure(once: Callable[[], Round]) -> str:
    """Rounds until one is prompt: what else the machine does is no matter of the daemon's. But
    nobody is ever refused."""
    done: "List[Round]" = []
    while len(done) < ROUNDS and (LONG or not any(one.is_prompt() for one in done)):
        done.append(once())
    words = f"{min(done)}; {len(done)} rounds"
    assert any(one.is_prompt() for one in done), words
    return words


def starts(port: int, going_on: Callable[[], bool], least: int = 3) -> Round:
    """Honest starts while something goes on; and as many at a daemon that nobody attacks, which
    have to do with the machine alone."""
    times: "List[float]" = []
    others: "List[float]" = []
    with lib.Daemon(grace=None) as idle:
        while going_on() or len(times) < least:
            times.append(start(port))
            others.append(start(idle.port))
    return Round(max(times), max(others))


def over() -> bool:
    return False


# ---- all that there is of something ------------------------------------------------------------

class Idle:
    """Sessions whose tests move nothing."""

    def __init__(self, port: int, stack: ExitStack) -> None:
        self._port = port
        self._stack = stack
        self.refused = 0

    def add(self, source: str, frame: bytes) -> bool:
        conn = self._stack.enter_context(calling(self._port, source))
        conn.sendall(frame)
        got = answer(conn)
        if error(got) != 0:
            self.refused += 1
            return False
        if frame != CALIBRATE:
            data = self._stack.enter_context(socket.socket())
            data.bind((source, 0))
            data.connect(("127.0.0.1", struct.unpack("!I", got[52:56])[0]))
        return True


def big_request() -> bytes:
    """50 MiB of rings: nine of them are more than there is."""
    return request(DAY_S, 1 << 20, 50)


def all_memory() -> str:
    """Nine connections of one address, and then small ones of its neighbour."""
    with lib.Daemon(grace=None) as daemon, ExitStack() as stack:
        idle = Idle(daemon.port, stack)
        got = sum(idle.add(GREEDY, big_request()) for _ in range(9))
        assert 5 <= got < 9, f"{got} of 9 got their memory"
        got += sum(idle.add(NEIGHBOUR, request(DAY_S)) for _ in range(300 if LONG else 60))
        assert idle.refused > 5, "the memory is not given away: the test is blind"
        return f"{got} idle tests; {measure(partial(starts, daemon.port, over, HONEST_STARTS))}"


def moving(port: int, *args: str) -> lib.Started:
    return lib.Started([lib.netperf(), "-H", "127.0.0.1", "-L", SECOND, "-p", str(port),
                        "-l", str(6 * STILL_S), *args])


def still_ones() -> str:
    """Who moves nothing has to go when somebody else needs more than what is kept for newcomers,
    and nobody else has to. For limits.py: it is a matter of waiting, not of how long that takes."""
    with ExitStack() as stack:
        daemon = stack.enter_context(lib.Daemon(grace=None))
        small = stack.enter_context(lib.Daemon(args=["--max-total-memory", "20M"], grace=None))
        idle = Idle(daemon.port, stack)
        begun = time.monotonic()
        assert sum(idle.add(GREEDY, big_request()) for _ in range(9)) >= 5
        mover = stack.enter_context(moving(daemon.port))
        big = stack.enter_context(moving(small.port, "--", "-M", "4m", "-S", "100k"))
        assert mover.under_way() and big.under_way()
        got = False
        while not got and time.monotonic() < begun + 4 * STILL_S:
            with ExitStack() as other:
                got = Idle(daemon.port, other).add(HONEST, big_request())
            took = time.monotonic() - begun
            assert not got or took > STILL_S - 1, "the memory is not given away: the test is blind"
            time.sleep(0.5)
        assert got, f"still tests stay: {daemon.log()[-600:]}"
        assert f"event=session-still peer={GREEDY}" in daemon.log(), daemon.log()[-600:]
        # There a test that moves is all that could go.
        time.sleep(max(0.0, begun + STILL_S + 2 - time.monotonic()))
        with ExitStack() as other:
            assert not Idle(small.port, other).add(HONEST, request(5, 1 << 20, 11))
        assert mover.running() and big.running(), "a test that moves has ended, too"
        assert "session-still" not in small.log(), small.log()
        return f"room after {took:.1f} s"


def all_sessions() -> str:
    """Two addresses take as many sessions as they get."""
    with lib.Daemon(grace=None) as daemon, ExitStack() as stack:
        idle = Idle(daemon.port, stack)
        per, second = (512, 128) if not SLOW else (100, 20)
        got = sum(idle.add(GREEDY, CALIBRATE) for _ in range(per + 8))
        got += sum(idle.add(SECOND, CALIBRATE) for _ in range(second))
        assert SLOW or idle.refused > 0, f"{got} sessions, and nobody was refused"
        words = measure(partial(starts, daemon.port, over, HONEST_STARTS))
        return f"{got} sessions; {words}"


# ---- more than is done in the time ---------------------------------------------------------------

def resets(port: int, count: int) -> None:
    """Whole requests, and then a reset each."""
    conns = []
    for _ in range(count):
        with suppress(OSError):
            conn = calling(port, GREEDY)
            conns.append(conn)
            conn.sendall(request(DAY_S))
    for conn in conns:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        conn.close()


@contextmanager
def beside(attack: Callable[[], None]) -> "Iterator[Callable[[], bool]]":
    """A process that attacks; is it still at it?"""
    other = multiprocessing.get_context("fork").Process(target=attack)
    other.start()
    try:
        yield other.is_alive
    except BaseException:
        other.terminate()
        raise
    finally:
        other.join()
    assert other.exitcode == 0, f"the attack failed: {other.exitcode}"


def burst() -> str:
    """Each round with a daemon that has not seen the address yet, which has its share in full."""
    def once() -> Round:
        with lib.Daemon(grace=None) as daemon, \
                beside(partial(resets, daemon.port, BURST)) as going_on:
            return starts(daemon.port, going_on)

    return measure(once)


def stay(port: int, count: int) -> None:
    with ExitStack() as stack:
        conns = [stack.enter_context(calling(port, GREEDY)) for _ in range(count)]
        for conn in conns:
            conn.sendall(CALIBRATE)
        if any(error(answer(conn)) != 0 for conn in conns):
            raise SystemExit("somebody was refused")


def served_burst() -> str:
    """The same by clients that stay: all are served, one after another."""
    def once() -> Round:
        with lib.Daemon(grace=None) as daemon:
            with beside(partial(stay, daemon.port, 500 if LONG else 200)) as going_on:
                return starts(daemon.port, going_on)

    return measure(once)


# ---- wrong secrets -------------------------------------------------------------------------------

def guess(port: int, option: str, seconds: float, tell: Connection) -> None:
    """As many wrong secrets as there is an answer to in that time, by connections side by side."""
    tries, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(OSError), ExitStack() as stack:
            conns = [stack.enter_context(calling(port, GREEDY)) for _ in range(8)]
            for conn in conns:
                conn.settimeout(max(0.01, until - time.monotonic()))
                if option == "--key-file":
                    conn.sendall(struct.pack("!IiI", HELLO, -1, 2).ljust(FRAME, b"\1"))
                    answer(conn)
                    conn.sendall(struct.pack("!IiI", PROOF, -1, 2).ljust(FRAME, b"\2"))
                else:
                    conn.sendall(struct.pack("!Ii", 6, -1).ljust(FRAME, b"x"))
            for conn in conns:
                while conn.recv(FRAME):
                    pass
                tries += 1
    tell.send(tries)


def guesses(option: str) -> str:
    """From one address: hardly any; who has the secret does not notice."""
    seconds = 10 if LONG else 3
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        path = Path(place, "secret")
        path.touch(0o600)
        path.write_text(KEY)
        daemon = stack.enter_context(lib.Daemon(args=[option, str(path)], grace=None))
        hear, tell = multiprocessing.Pipe(False)
        idle = stack.enter_context(lib.Daemon(args=[option, str(path)], grace=None))
        times: "List[float]" = []
        others: "List[float]" = []
        with beside(partial(guess, daemon.port, option, seconds, tell)) as going_on:
            while going_on():
                for port, into in ((daemon.port, times), (idle.port, others)):
                    got = lib.run([lib.netperf(), "-H", "127.0.0.1", "-L", HONEST, "-p", str(port),
                                   "-t", "TCP_RR", "-l", "-1", option, str(path)], 30)
                    assert got.rc == 0 and not got.err, f"{got}"
                    into.append(got.seconds)
                time.sleep(0.05)
        looked = daemon.log(1 << 20).count('msg="wrong ')
        words = (f"{looked} tries looked at in {seconds} s, {hear.recv()} ended; a whole test with the "
                 f"right one took {1e3 * min(times):.1f} ms at the best, {1e3 * max(times):.1f} at "
                 "the worst")
        # Three are free, then 0.1 s, 0.2 s and so on up to two seconds.
        assert 3 <= looked <= 3 + 5 + seconds / 2 + 1, words
        assert Round(min(times), min(others)).is_prompt(), words
        return words


def suite(report: lib.Report) -> None:
    many_descriptors()
    cases: "List[Case]" = [
        ("nine idle tests that take all memory", all_memory),
        ("two addresses that take all sessions", all_sessions),
        (f"{BURST} requests and resets", burst),
        ("requests of many that stay", served_burst),
        ("passphrases are guessed", partial(guesses, "--passphrase-file")),
    ]
    if "libsodium" in lib.run([lib.netserver(), "--key-file", "/nonexistent", "-V"], 10).err:
        report.skip("keys are guessed", "built without libsodium")
    else:
        cases.append(("keys are guessed", partial(guesses, "--key-file")))
    for name, body in cases:  # in the main thread: attackers are forked, and the machine is theirs
        report.case(name, body)


if __name__ == "__main__":
    lib.netperf(), lib.netserver()
    lib.main(suite)
