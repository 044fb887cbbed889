"""Clients that violate netserver's protocol in every way, several at a time, while honest ones are served: each gets
an answer, a refusal or a close in time; nothing is left of them, and the resources that they take are limited.

NP_TORTURE is their number (300; 10,000 with --long), NP_TORTURE_SEED repeats a run, NP_TORTURE_ONLY one client of it.
As root, everything runs in a network and a /tmp of its own.
"""

import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import lib
import ours
from ours import BOTH, CONNECTIONS, FRAME, RECEIVE, ROUTE, TCP, TRANSMIT, UDP, frame, words

SLOW = lib.QUICK or b"__asan_init" in Path(lib.netserver()).read_bytes()
PATIENCE = 5.0 if SLOW else 1.0  # sanitizers stretch time limits

# A daemon that grants everything that is requested has no limits to check.
HAS_LIMITS = "--max-total-memory" in lib.run([lib.netserver(), "--help"], timeout=20).out

SESSIONS = int(os.environ.get("NP_TORTURE") or (10000 if lib.LONG else 300))
SEED = os.environ.get("NP_TORTURE_SEED") or str(random.SystemRandom().randrange(10 ** 6))
ONLY = os.environ.get("NP_TORTURE_ONLY")

AT_ONCE = 12
ANSWER_S = 10.0 + lib.SLACK  # for an answer, a refusal or a close
GONE_S = 10.0 + lib.SLACK    # until nothing is left of a session whose client has gone
MEMORY_MB = 512 * (4 if SLOW else 1)  # of the daemon and all its sessions; sanitizers triple it
SAMPLE_S = 0.05
HONEST_S = 60.0   # for a short honest test, on a machine with any load

OLD_FRAME = 256
INSIDE = "NP_TORTURE_INSIDE"

DEBUG_ON, DEBUG_OFF, CALIBRATE, PASSPHRASE, SYSINFO = 1, 2, 5, 6, 600
OMNI = 97
OURS = range(ours.PLAN, ours.ERROR + 1)

ABSURD = (0, 1, 0xffffffff, 0x80000000, 0x7fffffff, 0x7ffffffe, 0x80000001, 0x10000, 0xffff,
          0x00100000, 0x10000001, 0x40000000, 0x7f800000, 0xff800000, 0x7fc00001)


BANNERS = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: torture\r\n\r\n",
    b"POST /x HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + 700 * b"x",
    b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
    bytes.fromhex("16030100c4010000c00303") + bytes(range(185)),  # a TLS ClientHello
    bytes.fromhex("160301") + b"\xff\xff" + bytes(2000),
    b"EHLO localhost\r\n",
    b"*1\r\n$4\r\nPING\r\n",
    bytes.fromhex("0300002c27e00000000000436f6f6b69653a20"),  # remote desktop
    b"\0", b"\n", b"\r\n\r\n", 255 * b"\0", 257 * b"\0",
)


class Wrong(Exception):
    """The daemon did something wrong."""


# ---- messages -----------------------------------------------------------------------------------

def recorded() -> List[bytes]:
    """A recorded request for each code, and several of OMNI."""
    found: Dict[Tuple[bytes, ...], bytes] = {}
    for _, _, message in (one for one in ours.vectors() if one.kind.endswith("_REQUEST")):
        # Of OMNI: one for each transport and direction.
        key = (message[:4], message[96:108] if message[3] == OMNI else b"")
        found.setdefault(key, message)
    return list(found.values())


REQUESTS = recorded()


def code_of(message: bytes) -> int:
    return int(struct.unpack("!I", message[:4])[0])


def sweep(seed: str) -> "List[Tuple[int, int, int]]":
    """Every word of every kind of request with every absurd value, in random order."""
    all_of_it = [(kind, word, value)
                 for kind, message in enumerate(REQUESTS)
                 for word in range(len(message.rstrip(b"\0")) // 4 + 2)
                 for value in range(len(ABSURD))]
    random.Random(seed).shuffle(all_of_it)
    return all_of_it


SWEEP = sweep(SEED)


def omni(rng: random.Random, udp: bool, direction: int, connections: bool = False, length: int = 1) -> bytes:
    return ours.omni(length, UDP if udp else TCP, direction, ROUTE | CONNECTIONS * connections, sends=-1, receives=-1,
                     exchanges=rng.choice((1, 16, 1000)) if direction == BOTH else -1, port=40000)


# ---- a connection -------------------------------------------------------------------------------

def without_processor(daemon: lib.Daemon) -> float:
    """For how many seconds one of its sessions has waited for a processor, at the most. Beside clients of another address
    they have the least weight (netserver/processors.c): on a busy machine they may wait long, with memory to fill."""
    waited = [0]
    for stat in (stat for pid in daemon.children() for stat in Path(f"/proc/{pid}/task").glob("*/schedstat")):
        with suppress(OSError):
            waited.append(int(stat.read_text().split()[1]))
    return max(waited) / 1e9


class Peer:
    """A control connection on which everything has a deadline."""

    def __init__(self, daemon: lib.Daemon, rng: random.Random) -> None:
        self.granted = self.answers = 0
        self._daemon = daemon
        family, host = rng.choice(((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")))
        self.sock = socket.socket(family)
        self.sock.settimeout(ANSWER_S * PATIENCE)
        self.sock.connect((host, daemon.port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def say(self, data: bytes) -> None:
        """Send; ignore that the daemon has closed the connection."""
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionError):
            pass
        except socket.timeout:
            raise Wrong(f"did not take {len(data)} bytes") from None

    def half_close(self) -> None:
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def _receive(self, size: int, until: float, what: str) -> bytes:
        waited = 0.0
        while until + waited > time.monotonic():
            self.sock.settimeout(until + waited - time.monotonic() + 0.001)
            try:
                return self.sock.recv(size)
            except socket.timeout:
                waited = min(without_processor(self._daemon), HONEST_S)
            except ConnectionError:
                return b""
        raise Wrong(f"{what} within {ANSWER_S * PATIENCE:g} s, and {waited:.1f} s without a processor")

    def answer(self) -> Optional[bytes]:
        """A message, at least as long as an old client's; None if the daemon has closed."""
        until = time.monotonic() + ANSWER_S * PATIENCE
        got, least, most = b"", 8, 8
        while len(got) < least:
            part = self._receive(most - len(got), until, "neither an answer nor a close")
            if not part:
                return None
            got += part
            if len(got) == least == 8:
                whole = 8 + struct.unpack("!I", got[4:])[0]
                least, most = (whole, whole) if code_of(got) in OURS else (OLD_FRAME, FRAME)
        self.answers += 1
        return got

    def ended(self) -> None:
        """Wait for the close, whatever is received before."""
        until = time.monotonic() + ANSWER_S * PATIENCE
        while self._receive(1 << 16, until, "not closed"):
            pass


def leave(peer: Peer, rng: random.Random) -> None:
    how = rng.randrange(8)
    if how < 3:
        peer.sock.close()
    elif how < 5:
        peer.reset()
    elif how == 5:
        peer.say(rng.randbytes(rng.randrange(1, 2 * FRAME)))
        peer.reset()
    else:
        peer.half_close()
        peer.ended()


# ---- data connections that go wrong -------------------------------------------------------------

def granted(answer: Optional[bytes], request: bytes) -> bool:
    return (answer is not None and code_of(answer) == code_of(request) + 1
            and answer[4:8] == b"\0\0\0\0")


def port_in(answer: bytes, request: bytes) -> int:
    """The data port in a response, whose position depends on the code."""
    word = {OMNI: 12, 10: 7, 94: 7, 16: 6}.get(code_of(request), 7)
    return int(struct.unpack_from("!I", answer, 4 * word)[0]) & 0xffff


def is_datagram(request: bytes) -> bool:
    code = code_of(request)
    return code in (16, 19) or (code == OMNI and request[96:100] == words(2))


def tcp_mischief(port: int, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 2, 5))):
        data = socket.socket()
        data.settimeout(0.5)
        try:
            data.connect(("127.0.0.1", port))
            how = rng.randrange(6)
            if how == 0:
                pass  # without a byte
            elif how == 1:
                data.sendall(rng.randbytes(rng.randrange(1, 5000)))
            elif how == 2:
                data.shutdown(socket.SHUT_WR)
            elif how == 3:
                for _ in range(20):
                    data.sendall(b"x")
            elif how == 4:
                data.recv(1)
            else:
                data.sendall(bytes(1 << 18))  # and reads nothing
            if rng.randrange(2):
                data.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        data.close()


def udp_mischief(port: int, rng: random.Random) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as data:
        for _ in range(rng.choice((1, 3, 20))):
            try:
                data.sendto(rng.randbytes(rng.choice((0, 1, 16, 1472, 60000))),
                            ("127.0.0.1", port))
            except OSError:
                pass


def unix_mischief(answer: bytes, rng: random.Random) -> None:
    """The path is at the end of the response, in groups of 4 bytes with reversed order."""
    turned = b"".join(answer[i:i + 4][::-1] for i in range(8, 96, 4))
    path = re.search(rb"/[\w/.-]+", turned)
    if path is None:
        return
    kind = rng.choice((socket.SOCK_STREAM, socket.SOCK_DGRAM))
    with socket.socket(socket.AF_UNIX, kind) as data:
        data.settimeout(0.5)
        try:
            data.connect(path[0])
            data.send(rng.randbytes(100))
        except OSError:
            pass


def mischief(answer: bytes, request: bytes, rng: random.Random) -> None:
    if 37 <= code_of(request) <= 46:
        unix_mischief(answer, rng)
    elif is_datagram(request):
        udp_mischief(port_in(answer, request), rng)
    else:
        tcp_mischief(port_in(answer, request), rng)


def ask(peer: Peer, request: bytes, rng: random.Random, often: float = 1.0) -> None:
    """Make a request and, if it is granted, no valid data connection."""
    peer.say(request)
    answer = peer.answer()
    if answer is None or not granted(answer, request):
        return
    peer.granted += 1
    if rng.random() < often:
        mischief(answer, request, rng)


# ---- what clients do ----------------------------------------------------------------------------

Move = Callable[[Peer, random.Random, int], None]


def harmless(rng: random.Random) -> bytes:
    """A request that is answered at once."""
    return frame(rng.choice((DEBUG_ON, DEBUG_OFF, CALIBRATE, SYSINFO, 0, 4, 9999)), -1)


def absurd(peer: Peer, rng: random.Random, number: int) -> None:
    kind, word, value = SWEEP[number % len(SWEEP)]
    request = bytearray(REQUESTS[kind])
    request[4 * word:4 * word + 4] = words(ABSURD[value])
    for _ in range(rng.choice((0, 0, 1, 2))):
        at = 4 * rng.randrange(1, 42)
        request[at:at + 4] = words(rng.choice((*ABSURD, rng.getrandbits(32))))
    if code_of(request) == PASSPHRASE:
        request[:4] = words(CALIBRATE)
    ask(peer, bytes(request), rng, often=0.3)
    leave(peer, rng)


def garbage(peer: Peer, rng: random.Random, _number: int) -> None:
    request = bytearray(rng.randbytes(FRAME))
    if rng.randrange(2):
        request[:4] = rng.choice(REQUESTS)[:4]
    ask(peer, bytes(request), rng)
    leave(peer, rng)


def truncated(peer: Peer, rng: random.Random, _number: int) -> None:
    peer.say(rng.choice(REQUESTS)[:rng.randrange(1, FRAME)])
    leave(peer, rng)


def oversized(peer: Peer, rng: random.Random, _number: int) -> None:
    peer.say(harmless(rng) + rng.randbytes(rng.randrange(1, 5000)))
    peer.answer()
    leave(peer, rng)


def dribbled(peer: Peer, rng: random.Random, _number: int) -> None:
    for byte in rng.choice((harmless(rng), rng.choice(REQUESTS))):
        peer.say(bytes([byte]))
    peer.answer()
    leave(peer, rng)


def reordered(peer: Peer, rng: random.Random, _number: int) -> None:
    """Messages that the other side should send, or in the wrong order."""
    request = rng.choice(REQUESTS)
    for step in rng.sample((2, 1), 2):
        peer.say(words(code_of(request) + step) + request[4:])
        peer.answer()
    ask(peer, request, rng, often=0.5)
    leave(peer, rng)


def half_closed(peer: Peer, rng: random.Random, _number: int) -> None:
    peer.say(rng.choice((harmless(rng), rng.choice(REQUESTS))))
    peer.half_close()
    peer.ended()


def vanishing(peer: Peer, rng: random.Random, _number: int) -> None:
    if rng.randrange(3):
        peer.say(rng.choice((harmless(rng), rng.choice(REQUESTS)))[:rng.choice((1, 655, FRAME))])
    time.sleep(rng.choice((0, 0, 0.01, 0.05)))
    rng.choice((peer.reset, peer.sock.close))()


def pipelined(peer: Peer, rng: random.Random, _number: int) -> None:
    requests = [harmless(rng) for _ in range(rng.randrange(2, 6))]
    peer.say(b"".join(requests) + (rng.choice(REQUESTS) if rng.randrange(2) else b""))
    for _ in requests:
        if peer.answer() is None:
            raise Wrong("closed before it had answered what it had read")
    leave(peer, rng)


def pipelined_tests(peer: Peer, rng: random.Random, _number: int) -> None:
    ask(peer, rng.choice(REQUESTS) + rng.choice(REQUESTS), rng)
    leave(peer, rng)


def endless(peer: Peer, rng: random.Random, _number: int) -> None:
    """Send as much text as possible, and read no answers."""
    line = rng.choice((b"A" * 997, b"netperf " * 100 + b"\n", b"\0" * 1021))
    peer.sock.settimeout(0.3)
    try:
        for _ in range(300):
            peer.sock.sendall(line)
    except OSError:
        pass
    peer.reset()


def banner(peer: Peer, rng: random.Random, _number: int) -> None:
    peer.say(rng.choice(BANNERS))
    if rng.randrange(2):
        peer.half_close()
        peer.ended()
    else:
        leave(peer, rng)


def old(peer: Peer, rng: random.Random, _number: int) -> None:
    """A client with 256-byte messages is recognised by the pause after the first one."""
    requests = [r for r in REQUESTS if code_of(r) != OMNI]
    request = rng.choice((frame(DEBUG_OFF, 0), frame(CALIBRATE, -1), *requests))[:OLD_FRAME]
    ask(peer, request, rng)
    if rng.randrange(2):
        peer.say(frame(CALIBRATE, -1)[:OLD_FRAME])
    leave(peer, rng)


def bad_data(peer: Peer, rng: random.Random, _number: int) -> None:
    """A valid request, and invalid data connections."""
    udp = rng.randrange(3) == 0
    direction = rng.choice((TRANSMIT, RECEIVE, BOTH))
    connections = not udp and direction == BOTH and rng.randrange(3) == 0
    length = rng.choice((1, 1, 30, -5, 0))
    ask(peer, omni(rng, udp, direction, connections, length), rng)
    if rng.randrange(4) == 0:
        peer.say(rng.choice((harmless(rng), rng.choice(REQUESTS))))
    leave(peer, rng)


def secretive(peer: Peer, rng: random.Random, _number: int) -> None:
    """A passphrase that is not required, terminated or not."""
    text = rng.choice((b"sesame", b"", 648 * b"x", rng.randbytes(648)))
    peer.say((words(PASSPHRASE, -1) + text).ljust(FRAME, b"\0"))
    peer.say(harmless(rng))
    peer.answer()
    leave(peer, rng)


def greeting(rng: random.Random) -> bytes:
    """HELLO (wire/plan.h): fields with a tag, a length and that many bytes; some are invalid."""
    def field(tag: int, value: bytes) -> bytes:
        length = len(value) if rng.randrange(20) else rng.choice(ABSURD)
        return words(tag, length) + value + bytes(-len(value) % 4)

    fields = [field(1, words(rng.choice((1, 1, 1, 1, 0, 99)))),
              field(2, words(rng.choice((0x1f, 1, 2, 4, 8, rng.getrandbits(32))))),
              field(3, words(rng.choice((0, 1, rng.getrandbits(32))))),
              field(4, rng.randbytes(rng.randrange(100))), field(5, rng.randbytes(20)),
              field(rng.choice(ABSURD), rng.randbytes(rng.randrange(40)))]
    rng.shuffle(fields)
    return (words(ours.HELLO, -1) + b"".join(fields))[:FRAME].ljust(FRAME, b"\0")


def of_ours(kind: int, body: bytes, length: Optional[int] = None) -> bytes:
    return words(kind, len(body) if length is None else length) + body


def a_plan(rng: random.Random) -> bytes:
    """Many flows and threads, mostly more than allowed."""
    flows, threads = (rng.choice((1, 2, 64, 65, 1000, 10000, 10000, *ABSURD[:3])) for _ in range(2))
    pattern, transport = rng.choice(((b"rr", b"TCP"), (b"rr", b"UDP"), (b"stream", b"TCP"), (b"crr", b"TCP"),
                                     (b"stream", b"UDP"), (b"sendfile", b"TCP")))
    fields = {1: pattern, 2: transport, 4: words(rng.randrange(2)), 5: words(4),
              6: words(0, rng.choice((1, 1, 3, 0, 100000))), 7: words(1), 8: words(1), 32: words(flows),
              33: words(rng.choice((0, 0, 1, 100, *ABSURD))), 35: words(rng.choice((threads, 1, 2, 256))),
              37: words(rng.choice((0, 0, 100, 60000, *ABSURD[:3])))}
    for tag in rng.sample(list(fields), rng.randrange(3)):
        if rng.randrange(3) == 0:
            fields[tag] = words(rng.choice(ABSURD))
    said = [ours.field(*one) for one in fields.items()]
    rng.shuffle(said)
    return ours.message(rng.choice((ours.PLAN, ours.PLAN, ours.PLAN, ours.ENGINES)), *said)


def planner(peer: Peer, rng: random.Random, _number: int) -> None:
    """Request many data connections, and make some of them, or half of one."""
    if rng.randrange(10):
        peer.say(frame(ours.HELLO, -1, words(1, 4, 1, 2, 4, 32)))
        peer.answer()
    peer.say(a_plan(rng))
    answer = peer.answer()
    if answer is None or code_of(answer) != ours.GRANT:
        leave(peer, rng)
        return
    peer.granted += 1
    ports = ours.ports_of(ours.Came(ours.GRANT, 0, answer[8:]))
    assert ports, "a GRANT without ports"
    with ExitStack() as crowd:
        for _ in range(rng.choice((0, 1, 5, 50, 200))):
            conn = crowd.enter_context(socket.socket())
            conn.setblocking(False)
            conn.connect_ex(("127.0.0.1", ports[0]))
            if rng.randrange(20) == 0:
                conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                conn.close()
        if rng.randrange(2):
            time.sleep(0.2)
        leave(peer, rng)


def curious(peer: Peer, rng: random.Random, _number: int) -> None:
    """Messages of our own protocol in random order. Only a few, as many are answered slowly."""
    says = [greeting(rng)] if rng.randrange(4) else []
    for _ in range(rng.randrange(1, 16)):
        says.append(rng.choice((
            greeting(rng), of_ours(ours.EVIDENCE, words(1, 4, rng.choice((1, 2, 2, *ABSURD)))), a_plan(rng),
            of_ours(rng.choice(OURS), rng.randbytes(rng.randrange(100)), rng.choice((None, *ABSURD))),
            frame(ours.WELCOME, 0, words(1, 4, 1)), harmless(rng), of_ours(ours.EVIDENCE, rng.randbytes(FRAME)))))
    peer.say(b"".join(says))
    if rng.randrange(3):
        peer.half_close()
        peer.ended()
    else:
        peer.reset()


def hog(peer: Peer, rng: random.Random, _number: int) -> None:
    """Buffers of hundreds of megabytes, kept for as long as possible."""
    if rng.randrange(2):
        request = bytearray(omni(rng, False, BOTH))
        request[28:32] = request[52:56] = words(rng.randrange(50, 250) << 20)
    else:
        request = bytearray(omni(rng, rng.randrange(2) == 0, RECEIVE))
        request[36:40], request[48:52] = words(65536), words(rng.randrange(800, 4000))
    peer.say(bytes(request))
    peer.answer()
    time.sleep(0.3)
    leave(peer, rng)


MOVES: "Dict[Move, int]" = {  # and their relative frequency
    absurd: 32, garbage: 6, truncated: 7, oversized: 5, dribbled: 4, reordered: 5, half_closed: 6,
    vanishing: 8, pipelined: 5, pipelined_tests: 5, endless: 2, banner: 6, old: 3, bad_data: 18,
    secretive: 2, curious: 8, planner: 12, hog: 3 if HAS_LIMITS else 0,
}


class Played(NamedTuple):
    answers: int
    granted: int
    fault: str  # empty if all was well


def play(daemon: lib.Daemon, number: int) -> Played:
    """One client."""
    rng = random.Random(f"{SEED}/{number}")
    move = rng.choices(list(MOVES), list(MOVES.values()))[0]
    start = time.monotonic()
    try:
        with Peer(daemon, rng) as peer:
            move(peer, rng, number)
    except Exception as fault:  # reported with the command that repeats it
        took = time.monotonic() - start
        return Played(0, 0, f"client {number} ({move.__name__}), after {took:.1f} s: "
                            f"{type(fault).__name__}: {fault}; "
                            f"NP_TORTURE_SEED={SEED} NP_TORTURE_ONLY={number}")
    return Played(peer.answers, peer.granted, "")


# ---- what is watched meanwhile ------------------------------------------------------------------

class Watch(NamedTuple):
    """What a thread observes until it is told to stop."""
    stop: threading.Event
    peak_kb: List[int]
    most: List[int]
    honest: List[int]
    wrong: List[str]


def sample(daemon: lib.Daemon, watch: Watch) -> None:
    while not watch.stop.wait(SAMPLE_S):
        sessions = daemon.children()
        watch.most[0] = max(watch.most[0], len(sessions))
        watch.peak_kb[0] = max(watch.peak_kb[0], lib.memory([daemon.pid, *sessions]) >> 10)


HONEST = (("TCP_RR", "-200"), ("TCP_STREAM", "-2000000"))


def be_honest(daemon: lib.Daemon, test: str, length: str) -> Optional[str]:
    got = lib.run(lib.command(daemon.port, "-t", test, "-l", length, "-P", "0", "-v", "0"), timeout=HONEST_S * PATIENCE)
    if got.rc != 0 or got.err or not float(got.out.split()[0]) > 0:
        return f"{test}: status {got.rc}, {got.out!r}, {got.err!r}"
    return None


def stay_honest(daemon: lib.Daemon, watch: Watch) -> None:
    while not watch.stop.wait(0.2):
        wrong = be_honest(daemon, *HONEST[watch.honest[0] % len(HONEST)])
        watch.honest[0] += 1
        if wrong:
            watch.wrong.append(wrong)


def descriptors(pid: int) -> "List[str]":
    return sorted(os.readlink(fd).split(":")[0] for fd in Path(f"/proc/{pid}/fd").iterdir())


REPORTS = re.compile(r"^.*(?:Sanitizer|runtime error|core dumped|Assertion|killed by signal|"
                     r"Segmentation|Aborted|stack smashing|double free).*$", re.M)


# ---- all of it ----------------------------------------------------------------------------------

def torture(report: lib.Report, daemon: lib.Daemon) -> None:
    watch = Watch(threading.Event(), [0], [0], [0], [])
    threads = [threading.Thread(target=body, args=(daemon, watch))
               for body in (sample, stay_honest)]
    for thread in threads:
        thread.start()
    start = time.monotonic()
    numbers = [int(ONLY)] if ONLY else range(SESSIONS)
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            played = list(pool.map(lambda n: play(daemon, n), numbers))
    finally:
        seconds = time.monotonic() - start
        watch.stop.set()
        for thread in threads:
            thread.join()
    faults = [p.fault for p in played if p.fault]
    report.check(f"{len(numbers)} clients are answered, refused or closed", not faults,
                 "; ".join(faults[:5]) or f"{seconds:.1f} s")
    answers, tests = (sum(column) for column in ([p.answers for p in played],
                                                 [p.granted for p in played]))
    if not ONLY:  # a single client is not torture
        report.check("the daemon answers, and grants tests",
                     answers > len(numbers) // 2 and tests > len(numbers) // 10,
                     f"{answers} answers, {tests} tests")
    report.check("honest clients are served meanwhile", not watch.wrong,
                 "; ".join(watch.wrong[:3]) or f"{watch.honest[0]} of them")
    report.check("memory is bounded", 0 < watch.peak_kb[0] < MEMORY_MB << 10,
                 f"{watch.peak_kb[0]} kB at most in {watch.most[0]} sessions at most")


def sockets(pid: int) -> "List[str]":
    """Its connections, according to the kernel."""
    mine = {os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [row.split() for table in ("tcp", "tcp6", "udp", "udp6")
            for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]]
    return [" ".join(row[1:7]) for row in rows if f"socket:[{row[9]}]" in mine]


def describe(pid: int, daemon: lib.Daemon) -> str:
    """Information about a session that does not end."""
    threads = []
    for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
        try:
            threads.append(f"{(task / 'wchan').read_text()} {(task / 'syscall').read_text()}")
        except OSError:
            continue
    said = [line for line in daemon.log(size=1 << 26).splitlines() if f"[{pid}]" in line]
    return f"{pid}: {said[-5:]}, waits in {threads}, has {sockets(pid)}"


def aftermath(report: lib.Report, daemon: lib.Daemon, before: "List[str]") -> None:
    start = time.monotonic()
    gone = lib.wait_for(lambda: not daemon.children(), 3 * GONE_S * PATIENCE)
    seconds = time.monotonic() - start
    report.check("all sessions are gone", gone and seconds < GONE_S * PATIENCE,
                 f"{seconds:.1f} s" if gone else
                 "; ".join(describe(pid, daemon) for pid in daemon.children()))
    for test, length in HONEST:
        wrong = be_honest(daemon, test, length)
        report.check(f"{test} is served afterwards", not wrong, wrong or "")
    lib.wait_for(lambda: not daemon.children() and descriptors(daemon.pid) == before,
                 GONE_S * PATIENCE)
    after = descriptors(daemon.pid)
    report.check("no descriptor is left open", after == before, f"{before} before, {after} after")
    found = REPORTS.findall(daemon.log(size=1 << 26))
    report.check("nothing has crashed", not found, "; ".join(found[:3]))
    if os.environ.get(INSIDE):
        left = [path for path in Path("/tmp").iterdir() if path.name != "home"]
        report.check("no file is left in /tmp", not left, str(left) if left else "")
    else:
        report.skip("no file is left in /tmp", "it is not this test's own")


def suite(report: lib.Report) -> None:
    if report.lacks("torture", "only root may see a daemon's descriptors and memory" if os.geteuid() else ""):
        return
    print(f"NP_TORTURE={SESSIONS} NP_TORTURE_SEED={SEED}", flush=True)
    with lib.Daemon(args=["-v", "0"], grace=None) as daemon:
        for test, length in HONEST:
            assert not be_honest(daemon, test, length)
        assert lib.wait_for(lambda: not daemon.children(), GONE_S * PATIENCE), "sessions left"
        before = lib.settled(lambda: descriptors(daemon.pid))
        torture(report, daemon)
        aftermath(report, daemon, before)


def move_in() -> None:
    """As root: restart this program with a network and a /tmp of its own."""
    paths = (lib.TOP, Path(lib.netserver()), Path(lib.netperf()), Path.cwd())
    if os.environ.get(INSIDE) or os.geteuid() != 0 or any(
            str(path).startswith(tempfile.gettempdir()) for path in paths):
        return
    script = 'ip link set lo up && mount -t tmpfs tmpfs /tmp && exec "$@"'
    prefix = ["unshare", "-n", "-m", "sh", "-c", script, "sh"]
    try:
        if subprocess.run([*prefix, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            return
    except FileNotFoundError:
        return
    os.execvpe("unshare", [*prefix, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})


if __name__ == "__main__":
    lib.netperf(), lib.netserver()
    move_in()
    lib.main(suite)
