"""netserver as a daemon: how it starts, where it listens, how it ends, and that whatever clients do, no process is
left behind and the next client is served.
"""

import os
import random
import resource
import shlex
import signal
import socket
import struct
import subprocess
import tempfile
import time
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import interop
import layout
import lib
import ours

AT_ONCE = 6
PATIENCE = 4.0 if lib.QUICK else 1.0  # sanitizers stretch time limits
MOMENT = 0.7                          # seconds for a daemon to do what it must not do
GONE = 20.0                           # seconds until nothing is left of a session
FRAME = 656                           # bytes of a message
TESTS = tuple(interop.KINDS)
HOSTS = ("127.0.0.1", "127.0.0.2", "::1")

Case = Tuple[str, Callable[[], Optional[str]]]


# ---- clients ------------------------------------------------------------------------------------

def client(port: int, test: str, *args: str) -> List[str]:
    return lib.command(port, "-t", test, *args)


def must_serve(port: int, test: str = "TCP_RR", *args: str) -> None:
    """A short test succeeds and prints its figures."""
    specific = interop.KINDS[test].specific
    length = str(interop.counted(test, quick=True))
    got = lib.run(client(port, test, "-l", length, *args, *(("--", *specific) if specific else ())),
                  timeout=20)
    assert got.rc == 0 and not got.err, f"{test}: status {got.rc}: {got.err!r}"
    layout.match(layout.expected(layout.load(test), layout.Style()), got.out)


@contextmanager
def running(port: int, tests: Sequence[str]) -> "Iterator[Dict[str, lib.Started]]":
    """Clients that would go on for long, once data move."""
    with ExitStack() as stack:
        clients = {test: stack.enter_context(lib.Started(client(port, test, "-l", "30", *lib.PACED)))
                   for test in tests}
        for started in clients.values():
            started.measuring()
        yield clients


def connects(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), 60).close()
    except OSError:
        return False
    return True


# ---- processes ----------------------------------------------------------------------------------

def server(*args: str) -> List[str]:
    return [lib.netserver(), *args]


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def daemons_told(port: int) -> List[int]:
    """The pids of daemons whose command line names the port, without their sessions."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if os.path.basename(words[0]) == b"netserver" and str(port).encode() in words:
                parents[int(process.name)] = int(
                    (process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            pass  # it has just ended
    return [pid for pid, parent in parents.items() if parent not in parents]


def listeners(port: int) -> List[int]:
    """The pids of netservers with the listening socket of a port. Only root can read the descriptors of a process
    that is not dumpable, as our daemon is."""
    wanted = lib.listeners(port)
    pids = []
    for process in Path("/proc").glob("[0-9]*") if wanted else ():
        try:
            if ((process / "comm").read_text() == "netserver\n"
                    and any(os.readlink(fd) in wanted for fd in (process / "fd").iterdir())):
                pids.append(int(process.name))
        except OSError:
            pass  # it has just ended, or is another user's
    return pids if pids or not wanted or os.geteuid() == 0 else daemons_told(port)


def must_go(pids: Sequence[int], seconds: float, whose: str) -> None:
    if not lib.wait_for(lambda: not any(map(exists, pids)), seconds * PATIENCE):
        left = list(filter(exists, pids))
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert False, f"{whose}: {left} still there after {seconds} s"


def must_be_alone(daemon: lib.Daemon) -> None:
    assert lib.wait_for(lambda: not daemon.children(), GONE * PATIENCE), \
        f"children left after {GONE} s: {daemon.children()}: {daemon.log()}"


class Background:
    """A netserver that detaches itself, until the end of the block; it is found by its port."""

    def __init__(self, *args: str) -> None:
        self.port = lib.free_port()
        self._cmd = server("-p", str(self.port), *args)

    def __enter__(self) -> "Background":
        start = time.monotonic()
        proc = subprocess.Popen(self._cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        try:
            self.out, self.err = proc.communicate(timeout=60)  # waits for the end of the pipes
        finally:
            proc.kill()
            self.pids = listeners(self.port)
        self.rc = proc.returncode
        self.seconds = time.monotonic() - start
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.pids:
            os.kill(pid, signal.SIGTERM)
        must_go(self.pids, 20, "detached netserver")


# ---- starting -----------------------------------------------------------------------------------

# Options that can't be granted, and what the line has that says so. Their words follow -D, so that a daemon that does
# start is ended with its case.
REFUSED = {
    "-p": "-p ... needs an argument", "-p 99999": "-p ... 99999 ... 0 to 65535", "-v loud": "-v ... loud ... try",
    "-v 99": "-v ... 99 ... out of range", "-L 192.0.2.1": "192.0.2.1 ... Cannot assign requested address",
    "--nosuch": "--nosuch ... no such option", "-n 100000": "-n ... 100000 ... 0 to 256", "-n x": "-n ... x ... try",
    f"-Z {648 * 'x'}": "-Z ... 1 to 647 characters",
    "--passphrase-file /nosuch": "--passphrase-file ... /nosuch ... No such file",
    "--passphrase-file /etc/passwd": "--passphrase-file ... /etc/passwd ... chmod 600",
    "--fill-dir /nosuch": "--fill-dir ... /nosuch ... No such file",
    "--fill-dir /etc/passwd": "--fill-dir ... /etc/passwd ... Not a directory", "--key-file /nosuch": "nosuch",
    "--access-file /nosuch": "--access-file ... /nosuch ... No such file",
    "--access-file /dev/null": "--access-file ... not a regular file",
    "--metrics-file /nosuch/file": "--metrics-file ... /nosuch/ ... No such file",
    "--metrics-file /tmp/": "--metrics-file ... not a name of a file",
    "--allow 10.0.0.0/33": "--allow ... 10.0.0.0/33", "--allow ''": "--allow ... not an address",
    "--deny host.example": "--deny ... host.example",
    "--data-ports 5-1": "--data-ports ... 5-1 ... range", "--data-ports 2000": "--data-ports ... 2000",
    "--one-port -f": "leave one out", "--engines nosuch": "nosuch", "--engines batch,steam": "--engines ... steam",
    "--transports nosuch": "nosuch", "--transports tcp,warp": "--transports ... 'warp'",
    "--max-sessions -1": "--max-sessions ... -1", "--max-length soon": "--max-length ... soon",
    "--max-memory -1": "--max-memory ... -1", "--spin 100000": "out of range", "--exclusive 99999999": "out of range",
    "--exclusive 0": "--exclusive ... 0", "--uring 100000": "out of range", "--user nosuch": "--user ... nosuch",
    **{f"{name} x": f"{name}: ... x' is not a" for name in ("--allow", "--deny", "--proxy-protocol")},
    **{f"--max-{name} x": f"--max-{name}: x is not a number" for name in (
        "sessions", "per-address", "rate", "silent", "memory", "total-memory", "message", "flows", "total-flows", "filters",
        "threads", "idle")},
    "--status -p 1": "1",
}


def refuses(words: str, says: str) -> str:
    got = lib.run(server("-D", *([] if "-p" in words.split() else ["-p", str(lib.free_port())]), *shlex.split(words)),
                  timeout=20 * PATIENCE)
    assert got.rc == 1, f"status {got.rc}: {got.err!r}"
    assert not got.out or words.startswith("--user "), f"stdout: {got.out!r}"   # its line comes first
    return lib.error_line(got, "netserver", *says.split(" ... "))


# What netperf's daemon prints, which a drop-in keeps.
KEPT = (
    ("-p nosuchservice", "Unable to start netserver with  'IN(6)ADDR_ANY' port 'nosuchservice' and "
                         "family AF_UNSPEC\n"),
    ("-L 127.0.0.1,6 -p 0", "Unable to start netserver with  '127.0.0.1' port '0' and family "
                            "AF_INET6\n"),
    ("-4 -L ::1 -p 0", "Unable to start netserver with  '::1' port '0' and family AF_INET\n"),
    ("-6 -L 127.0.0.1 -p 0", "Unable to start netserver with  '127.0.0.1' port '0' and family AF_INET6\n"),
    ("-q", "{netserver}: invalid option -- 'q'\nUsage: netserver [options] \n"),
)


def say_as_netperf(args: str, text: str) -> None:
    got = lib.run(server("-D", *args.split()), timeout=20 * PATIENCE)
    assert (got.rc, got.out) == (1, ""), f"status {got.rc}, stdout: {got.out!r}"
    assert got.err == text.format(netserver=lib.netserver()), got.err


class Saying(NamedTuple):
    """An option that prints something and exits."""
    option: str
    status: int
    out: str
    err: str


SAYINGS = (
    Saying("-h", 1, "", "Usage: netserver [options] "),
    Saying("--help", 0, "Usage: netserver [options] ", ""),
    Saying("-V", 0, "Netperf version 2.7.0", ""),
    Saying("--version", 0, "Netperf version 2.7.0", ""),
)


def ask(saying: Saying) -> None:
    got = lib.run(server(saying.option), timeout=20 * PATIENCE)
    assert got.rc == saying.status, f"status {got.rc}"
    for name, text, first in (("stdout", got.out, saying.out), ("stderr", got.err, saying.err)):
        assert (text.splitlines() or [""])[0] == first, f"{name}: {text!r}"


def used_port(*mode: str) -> str:
    with lib.Daemon() as daemon:
        return meet_used_port(daemon.port, *mode)


def foreign_port(host: str, family: int) -> str:
    with socket.create_server((host, 0), family=family) as other:
        return meet_used_port(other.getsockname()[1], "-D")


def meet_used_port(port: int, *mode: str) -> str:
    got = lib.run(server("-p", str(port), *mode), timeout=20 * PATIENCE)
    assert got.rc == 1, f"status {got.rc}: {got.out!r} {got.err!r}"
    return lib.error_line(got, "netserver", str(port), "Address already in use")


def detaches() -> str:
    with Background() as daemon:
        assert daemon.rc == 0 and not daemon.err, f"status {daemon.rc}: {daemon.err!r}"
        assert daemon.seconds < 4 * PATIENCE, f"it returns after {daemon.seconds:.1f} s"
        line = (f"Starting netserver with host 'IN(6)ADDR_ANY' port '{daemon.port}' "
                "and family AF_UNSPEC\n")
        assert daemon.out == line, f"stdout: {daemon.out!r}"
        assert len(daemon.pids) == 1, f"processes: {daemon.pids}"
        pid = daemon.pids[0]
        if os.geteuid() == 0:
            assert os.readlink(f"/proc/{pid}/cwd") == "/", "it holds its directory"
        assert os.getsid(pid) == pid, "it is in its caller's session"
        for test in TESTS:
            must_serve(daemon.port, test)
        return f"{daemon.seconds:.2f} s until it listened and all pipes were closed"


def leaves_descriptors() -> None:
    """The daemon closes inherited descriptors, such as the pipe of make -j, which would otherwise wait for it."""
    reader, writer = os.pipe()
    port = lib.free_port()
    with closing(os.fdopen(reader, "rb")) as pipe:
        subprocess.run(server("-p", str(port)), pass_fds=(writer,), stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=True)
        os.close(writer)
        os.set_blocking(reader, False)
        try:
            assert lib.wait_for(lambda: pipe.read(1) == b"", 20), "a caller's pipe is held open"
        finally:
            for pid in listeners(port):
                os.kill(pid, signal.SIGTERM)


def stays() -> None:
    with lib.Daemon() as daemon:
        line = f"Starting netserver with host 'IN(6)ADDR_ANY' port '{daemon.port}' and family AF_UNSPEC"
        assert lib.wait_for(lambda: daemon.log().startswith(line), 10), daemon.log()    # written once it listens
        must_serve(daemon.port)


PLACES = {  # options, and the addresses that are served
    "": HOSTS,
    "-4": ("127.0.0.1", "127.0.0.2"),
    "-6": HOSTS,  # as the real one: the IPv6 wildcard also accepts IPv4
    "-L 127.0.0.2": ("127.0.0.2",),
    "-L ::1": ("::1",),
    "-L 0.0.0.0": ("127.0.0.1", "127.0.0.2"),
    "-L ,4": ("127.0.0.1", "127.0.0.2"),
}


def serves_only(options: str, hosts: Sequence[str]) -> None:
    with lib.Daemon(args=options.split()) as daemon:
        served = tuple(host for host in HOSTS if connects(host, daemon.port))
        assert served == tuple(hosts), f"serves {served}, not {hosts}"


def starting() -> Iterator[Case]:
    yield "detaches from all descriptors", leaves_descriptors
    yield "-D stays", stays
    yield "used port, -D", partial(used_port, "-D")
    yield "used port, detaching", used_port
    yield "another's port, IPv4", partial(foreign_port, "0.0.0.0", socket.AF_INET)
    yield "another's port, IPv6", partial(foreign_port, "::", socket.AF_INET6)
    yield "another's port, one address", partial(foreign_port, "127.0.0.1", socket.AF_INET)
    for options, hosts in PLACES.items():
        yield f"listens with {options or 'no options'}", partial(serves_only, options, hosts)
    for saying in SAYINGS:
        yield saying.option, partial(ask, saying)
    for words, says in REFUSED.items():
        yield words, partial(refuses, words, says)
    for args, text in KEPT:
        yield f"{args}, as netperf", partial(say_as_netperf, args, text)


# ---- ending -------------------------------------------------------------------------------------

def must_fail(clients: "Dict[str, lib.Started]", seconds: float, why: str) -> None:
    for test, started in clients.items():
        got = started.finish(seconds * PATIENCE)
        assert got.rc, f"{test}: status {got.rc}"
        lib.error_line(got, "netperf", test, why)


def must_listen(daemon: lib.Started, port: int) -> None:
    if not lib.wait_for(lambda: bool(listeners(port)), 60 * PATIENCE):
        got = daemon.finish(0)
        assert False, f"does not listen on {port}: status {got.rc}, {got.out!r}, {got.err!r}"


def ends(number: int, status: int) -> str:
    """A signal ends the daemon with its sessions, and the port can be reused at once."""
    port = lib.free_port()
    with lib.Started(server("-D", "-p", str(port))) as daemon:
        must_listen(daemon, port)
        with running(port, ("TCP_STREAM", "TCP_MAERTS", "TCP_CRR", "UDP_RR")) as clients:
            sessions = lib.children(daemon.pid)
            assert len(sessions) == len(clients), f"{len(sessions)} sessions"
            start = time.monotonic()
            daemon.signal(number)
            got = daemon.finish(60)
            seconds = time.monotonic() - start
            must_go(sessions, 20, "sessions")
            with lib.Daemon(port=port):
                must_serve(port)
            must_fail(clients, 30, "netserver was stopped, or gave up this idle test for waiting clients")
    assert got.rc == status, f"status {got.rc} after {seconds:.1f} s: {got.err!r}"
    assert seconds <= 3 * PATIENCE + lib.SLACK, f"took {seconds:.1f} s"
    return f"{seconds:.2f} s"


def ends_without_descriptors() -> None:
    """A connection that can't be accepted keeps the listener readable: SIGTERM must still be handled."""
    port = lib.free_port()
    mine = ["--user", "root"] if os.geteuid() == 0 else []  # we may set its limits
    with lib.Started(server("-D", "-p", str(port), *mine)) as daemon, ExitStack() as stack:
        must_listen(daemon, port)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (5, 5))
        for _ in range(3):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
        time.sleep(MOMENT)
        daemon.signal(signal.SIGTERM)
        assert daemon.finish(60).rc == 0


def ending() -> Iterator[Case]:
    yield "SIGTERM without descriptors", ends_without_descriptors
    for number, status in ((signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -9)):
        yield f"{number.name} with sessions", partial(ends, number, status)


# ---- clients that go wrong ----------------------------------------------------------------------

def noise(seed: int, size: int) -> bytes:
    source = random.Random(seed)
    return bytes(source.getrandbits(8) for _ in range(size))


def vanishing_clients() -> None:
    """Half of them disconnect within a message, some with a reset."""
    with lib.Daemon(grace=GONE) as daemon:
        for number in range(50):
            with socket.create_connection(("127.0.0.1", daemon.port), 60) as conn:
                if number % 2:
                    conn.sendall(noise(number, number * FRAME // 50))
                if number % 5 == 0:
                    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        must_serve(daemon.port)
        must_be_alone(daemon)


def nonsense() -> None:
    """Complete messages without meaning: each is answered, or ends only its session."""
    with lib.Daemon(grace=GONE) as daemon:
        for number in range(20):
            with socket.create_connection(("127.0.0.1", daemon.port), 60) as conn:
                conn.sendall(noise(number, FRAME))
                conn.shutdown(socket.SHUT_WR)
                while conn.recv(FRAME):
                    pass
        must_serve(daemon.port)
        must_be_alone(daemon)


def killed_client(test: str) -> str:
    with lib.Daemon(grace=GONE) as daemon:
        with running(daemon.port, (test,)) as clients:
            clients[test].signal(signal.SIGKILL)
            start = time.monotonic()
            must_be_alone(daemon)
            seconds = time.monotonic() - start
        must_serve(daemon.port, test)
        return f"{seconds:.1f} s"


BAD_RUNS = (
    ("UDP_STREAM", "-l", "1", "--", "-m", "100000"),
    ("UDP_RR", "-l", "1", "--", "-r", "70000,1"),
    ("TCP_STREAM", "-F", "/nonexistent"),
    ("TCP_STREAM", "-F", ",/etc/passwd"),
    ("TCP_STREAM", "-A", "3"),
    ("TCP_SENDFILE", "-F", "/dev/null"),
    ("TCP_RR", "--", "-H", "192.0.2.1"),
    ("TCP_STREAM", "--", "-L", "192.0.2.1"),
)


def failing_clients() -> None:
    with lib.Daemon(grace=GONE) as daemon:
        for test, *args in BAD_RUNS:
            got = lib.run(client(daemon.port, test, *args), timeout=20)
            assert got.rc, f"{test} {args}: status {got.rc}"
        must_be_alone(daemon)
        must_serve(daemon.port)


def going_wrong() -> Iterator[Case]:
    yield "vanishing clients", vanishing_clients
    yield "nonsense", nonsense
    yield "failing clients", failing_clients
    for test in TESTS:
        yield f"killed client: {test}", partial(killed_client, test)


# ---- other ways to serve ------------------------------------------------------------------------

def one_by_one() -> None:
    """-f: the second client waits for its turn, and there are no child processes."""
    with lib.Daemon(args=["-f"]) as daemon, ExitStack() as stack:
        before = time.monotonic()
        clients = [stack.enter_context(lib.Started(client(daemon.port, "TCP_RR", "-l", "1")))
                   for _ in range(2)]
        time.sleep(MOMENT)
        assert not daemon.children(), f"children: {daemon.children()}"
        results = [started.finish(60) for started in clients]
        for got in results:
            assert got.rc == 0, f"status {got.rc}: {got.err!r}"
        took = time.monotonic() - before    # includes the second client's start
        assert took >= 1.95, f"both at a time: {took:.2f} s"
        must_serve(daemon.port)


def from_inetd(test: str, *words: str) -> None:
    """Without options, or with an invalid one, and the connection as standard streams, as inetd starts it."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as stack:
        listener.settimeout(60)
        specific = interop.KINDS[test].specific
        length = str(interop.counted(test, quick=True))
        cmd = client(listener.getsockname()[1], test, "-l", length,
                     *(("--", *specific) if specific else ()))
        netperf = stack.enter_context(lib.Started(cmd))
        with listener.accept()[0] as conn:
            served = stack.enter_context(
                lib.Started(server(*words), stdin=conn, stdout=conn, stderr=conn))
        got = netperf.finish(60)
        assert got.rc == 0 and not got.err, f"status {got.rc}: {got.err!r}"
        layout.match(layout.expected(layout.load(test), layout.Style()), got.out)
        ended = served.finish(60)
        assert ended.rc == 0, f"netserver: status {ended.rc}"


def serve_old(conn: socket.socket) -> None:
    """Act as a client of netperf 2.4, whose messages have 256 bytes: CALIBRATE, and five transactions of TCP_RR."""
    def ask(code: int, shape: str, *words: int) -> "Tuple[float, ...]":
        conn.sendall(struct.pack(f"!{2 + len(words)}i", code, -1, *words).ljust(256, b"\0"))
        return answer(shape)

    def answer(shape: str) -> "Tuple[float, ...]":
        return struct.unpack_from("!ii" + shape, ours.take(conn, 256))

    assert ask(5, "fi")[:2] == (5, 0)
    code, error, *_, port = ask(13, "iiiiii", -1, -1, 8, 0, 8, 0, 10, 20, 1, 0, 0, -5)
    assert (code, error) == (14, 0), (code, error)
    with socket.create_connection(("127.0.0.1", int(port)), 20) as data:
        for _ in range(5):
            data.sendall(bytes(10))
            ours.take(data, 20)
        got = answer("III")
    assert (*got[:3], got[4]) == (15, 0, 150, 5), got


def old_clients() -> None:
    with lib.Daemon() as daemon, socket.create_connection(("127.0.0.1", daemon.port), 20) as conn:
        serve_old(conn)
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname(), 20) as conn:
        with listener.accept()[0] as far, lib.Started(server(), stdin=far, stdout=far, stderr=far):
            serve_old(conn)


def plain_user() -> None:
    """Without privileges, in a directory that is not writable."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        program = lib.copied(lib.netserver(), place)
        place.chmod(0o555)
        prefix = ["env", "-C", name, *lib.as_nobody()]
        with lib.Daemon(prefix=prefix, program=program, grace=GONE) as daemon:
            for test in TESTS:
                must_serve(daemon.port, test)
        assert os.listdir(place) == [Path(program).name], f"left behind: {os.listdir(place)}"


LOGS = {  # options, and whether a session and a fault in it are logged
    "-v 2": (True, True),
    "-d": (True, True),
    "-v 1": (False, True),
    "-v 0": (False, True),
}


def logs(options: str, session: bool, problem: bool) -> None:
    with lib.Daemon(args=options.split()) as daemon:
        ports = [lib.free_port() for _ in range(2)]
        for port, more in zip(ports, ((), ("-F", ",/etc/passwd"))):
            lib.run(client(daemon.port, "TCP_RR", "-l", "-10", "-p", f"{daemon.port},{port}",
                           *more), timeout=20)
        must_be_alone(daemon)
        lines = daemon.log().splitlines()[1:]
    assert all(line.startswith("netserver[") for line in lines), lines
    for port, what, wanted in ((ports[0], "event=session-begin", session),
                               (ports[0], "event=session-end", session),
                               (ports[1], "/etc/passwd", problem)):
        told = any(what in line and (f"peer=127.0.0.1 port={port} " in f"{line} " or
                                     f"127.0.0.1 port {port}: " in line) for line in lines)
        assert told == wanted, f"{what!r} {'is' if told else 'is not'} told: {lines}"


def silent_without_passphrase() -> None:
    """A client that sends no passphrase, or part of one, is disconnected after 5 s."""
    with lib.Daemon(args=["-Z", "sesame"], grace=GONE) as daemon, ExitStack() as stack:
        conns = [stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port), 60))
                 for _ in range(2)]
        conns[1].sendall(struct.pack("!ii", 6, -1) + b"sesame")
        start = time.monotonic()
        for conn in conns:
            conn.settimeout(60)
            assert conn.recv(1) == b"", "an answer"
            seconds = time.monotonic() - start
            assert 4 < seconds < 5 + 2 * PATIENCE + lib.SLACK, f"closed after {seconds:.1f} s"
        must_serve(daemon.port, "TCP_RR", "-Z", "sesame")


def fills() -> None:
    """Files come from a single directory, given relative to where the daemon was started."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "fill"
        place.mkdir()
        (place / "data").write_bytes(b"plum" * 1000)
        (place / "link").symlink_to("/etc/passwd")
        prefix = ["env", "-C", name]
        with lib.Daemon(prefix=prefix, args=["--fill-dir", "fill"],
                        program=lib.netserver(), grace=GONE) as daemon:
            for file, wanted in (("data", True), ("link", False), ("../fill/data", False),
                                 ("/etc/passwd", False), ("nosuch", False)):
                got = lib.run(client(daemon.port, "TCP_MAERTS", "-l", "-10000", "-F", f",{file}"),
                              timeout=20)
                assert (got.rc == 0) == wanted, f"{file}: status {got.rc}: {got.err!r}"


def zeros() -> None:
    """-F zero-page sends only zeros, and needs no --fill-dir at the daemon."""
    with socket.create_server(("127.0.0.1", 0)) as listener, \
            lib.Started([lib.netperf(), "-N", "-H", "127.0.0.1", "-t", "TCP_STREAM", "-l", "-300000", "-F", "zero-page",
                         "--", "-m", "5000", "-P", f",{listener.getsockname()[1]}"]) as sender:
        listener.settimeout(20)
        with listener.accept()[0] as conn, conn.makefile("rb") as stream:
            data = stream.read()
        got = sender.finish(20)
        assert got.rc == 0 and "compare with neper" in got.err, (got.rc, got.err)
        assert len(data) >= 300000 and not data.strip(b"\0"), f"{len(data)} bytes, not all of them zeros"
    with lib.Daemon() as daemon:
        far = ("-l", "-300000", "-P", "0", "-F", ",zero-page", "--", "-k", "REMOTE_FILL_FILE")
        got = lib.run(client(daemon.port, "TCP_MAERTS", *far), timeout=20)
        assert got.rc == 0 and got.out == "REMOTE_FILL_FILE=zero-page\n", (got.rc, got.out, got.err)


def ignores(words: str, said: str) -> None:
    """What netperf's daemon ignores is ignored; one line reports the first word that is not an option."""
    port = lib.free_port()
    with lib.Started(server("-D", "-p", str(port), *words.split())) as daemon:
        must_listen(daemon, port)
        must_serve(port)
        daemon.signal(signal.SIGTERM)
        got = daemon.finish(60)
    lines = [line for line in got.err.splitlines() if "unexpected argument" in line]
    assert lines == [f"netserver: {said}: ignored: unexpected argument (-p sets a port)"] * bool(said), got.err


IGNORED = (("check_if_inetd", "check_if_inetd"), ("-d check_if_inetd", "check_if_inetd"), ("-N stray words", "stray"), ("-n 2", ""),
           ("-n 256", ""), ("-v 2", ""), ("-- -q -p 1 word", ""))


def other_ways() -> Iterator[Case]:
    if not lib.QUICK:
        yield "silence instead of a passphrase", silent_without_passphrase
    yield "--fill-dir", fills
    yield "-F zero-page", zeros
    for words, said in IGNORED:
        yield f"takes {words}", partial(ignores, words, said)
    yield "-f serves one after another", one_by_one
    yield "plain user, read-only directory", plain_user
    for test in TESTS:
        yield f"inetd: {test}", partial(from_inetd, test)
    yield "inetd: TCP_RR, a stray word", partial(from_inetd, "TCP_RR", "stray")
    yield "netperf 2.4, also by inetd", old_clients
    for options, (session, problem) in LOGS.items():
        yield f"log, {options}", partial(logs, options, session, problem)


def suite(report: lib.Report) -> None:
    lib.netperf(), lib.netserver()  # without them the whole suite is skipped
    report.cases([*going_wrong(), *ending(), *other_ways(), *starting()], AT_ONCE)
    report.case("detaches", detaches)   # at once: nothing runs beside it


if __name__ == "__main__":
    lib.main(suite)
