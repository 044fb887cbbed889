"""What the Python end-to-end tests share: the programs, a daemon, bounded runs, a report.

A test program reads like this:

    import lib

    def suite(report: lib.Report) -> None:
        with lib.Daemon() as daemon:
            got = lib.run(lib.command(daemon.port), timeout=20)
            report.check("default test", got.rc == 0, got.err)

    lib.main(suite)

The programs are those that NETPERF and NETSERVER name, else those of this tree. With
NP_TEST_QUICK=1 (lib.QUICK) a test leaves out what measures speed or takes long, because the
programs are built with sanitizers or the machine is not to be trusted with a clock. With the
argument --long (lib.LONG) it does what `make check` has no time for.
"""

import contextlib
import ctypes
import errno
import importlib.machinery
import importlib.util
import io
import json
import os
import pty
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, NamedTuple, NoReturn, Optional, Sequence

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = not sys.pycache_prefix    # or scripts/ would get a __pycache__
sys.path.append(str(TOP / "scripts"))

import netkit  # noqa: E402
from netkit import numbers, python  # noqa: E402

SCRIPTS = TOP / "scripts"
BUILD = Path(os.environ.get("top_builddir") or TOP)
QUICK = os.environ.get("NP_TEST_QUICK") == "1"
LONG = "--long" in sys.argv
LIBC = ctypes.CDLL(None, use_errno=True)
PIDFD_GETFD = 438   # system call number, which Python lacks

# Options that limit a test to 200 operations a second, for tests that only need it to run for a while.
PACED = ("-b", "1", "-w", "5ms")

# Added to the programs' time limits: it depends on the machine when a program gets a processor. A fault takes longer.
SLACK = 8.0


class Result(NamedTuple):
    """The result of a command; rc is None if it had to be killed at the time limit."""
    rc: Optional[int]
    out: str
    err: str
    seconds: float


def skip(reason: str) -> NoReturn:
    """Exit with automake's status for a skipped test."""
    print(f"SKIP: {reason}", flush=True)
    sys.exit(77)


def skip_if(reason: str) -> None:
    """The same if there is a reason."""
    if reason:
        skip(reason)


def _program(variable: str, *places: str) -> str:
    wanted = [os.environ[variable]] if os.environ.get(variable) else [str(TOP / p) for p in places]
    for path in wanted:
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return os.path.abspath(path)
    skip(f"no program {wanted[0]}: build it or name one in {variable}")


def netperf() -> str:
    return _program("NETPERF", "src/netperf")


def command(port: int, *words: str, host: str = "127.0.0.1", prefix: Sequence[str] = ()) -> "list[str]":
    """Our client with these arguments, and the daemon at that port."""
    return [*prefix, netperf(), "-H", host, "-p", str(port), *words]


def netserver() -> str:
    return _program("NETSERVER", "netserver/netserver", "src/netserver")


def page(name: str) -> Path:
    """A manual page, of this build or from the tarball."""
    made = BUILD / "doc" / name
    return made if made.exists() else TOP / "doc" / name


def copied(program: "str | Path", place: "str | Path") -> str:
    """Copy a program into a directory, by cp(1): if we wrote the file ourselves, a child forked by another thread
    could inherit the descriptor, and until it calls exec nobody could execute the file."""
    subprocess.run(["cp", "-p", str(program), str(place)], check=True, timeout=60)
    return str(Path(place) / Path(program).name)


def real_netperf() -> Path:
    """The directory of the real netperf and netserver, which are fetched on first use into $NP_REAL_NETPERF_DIR or
    the user's cache. Raises Skipped with the reason if they are not available."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    place = Path(os.environ.get("NP_REAL_NETPERF_DIR") or cache / "plumbline" / "netperf-2.7.0")
    if not Path("/etc/protocols").exists():
        raise Skipped("no /etc/protocols (package netbase), without which it crashes")
    got = run([str(SCRIPTS / "fetch"), "netperf", str(place)], timeout=120)
    if got.rc != 0:
        why = got.err.strip().splitlines() or ["fetch netperf took more than two minutes"]
        raise Skipped(why[-1])
    return place.resolve() / "usr" / "bin"


NETLAB = str(SCRIPTS / "netlab")
if os.environ.get("top_builddir"):  # the build directory with netlab-link, for programs that we start
    os.environ.setdefault("NETLAB_LINK", os.path.join(os.environ["top_builddir"], "tests", "link", "netlab-link"))


def in_lab(name: str, role: str) -> "list[str]":
    """The command prefix that runs a command at one end of a lab."""
    return ["ip", "netns", "exec", f"netlab-{name}-{role}"]


def no_lab() -> str:
    """Why this machine or user can't have a netlab; empty if it can."""
    if os.geteuid() != 0:
        return "not root"
    try:
        got = run(["unshare", "-n", "-m", "tc", "qdisc", "add", "dev", "lo", "root",
                   "tbf", "rate", "1mbit", "burst", "2000", "limit", "3000"], timeout=10)
    except FileNotFoundError as fault:
        return f"no program {fault.filename}"
    return "" if got.rc == 0 else f"no namespaces with a tbf queue: {got.err.strip()}"


def no_line() -> str:
    """Why there can be no netlab with netlab-link; empty if there can."""
    obstacle = no_lab()
    if not obstacle and not os.path.exists("/dev/net/tun"):
        obstacle = "no /dev/net/tun"
    place = os.environ.get("NETLAB_LINK", str(TOP / "tests" / "link" / "netlab-link"))
    if not obstacle and not os.access(place, os.X_OK):
        obstacle = f"no program {place}"
    return obstacle


_reserved: "list[socket.socket]" = []


def _reserve(port: int) -> bool:
    """Reserve a port for this process among all users of this function, until the process ends. Suites run in
    parallel, and two of them could find the same port free."""
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        mark.bind(f"\0plumbline-test-port-{port}")
    except OSError:
        mark.close()
        return False
    _reserved.append(mark)
    return True


def free_port() -> int:
    """A port without listener, below the range of ephemeral ports. It is returned once only, among all processes that
    use this function."""
    for _ in range(200):
        port = random.SystemRandom().randrange(10001, 30000, 2)  # 16384 is a size in many results
        if not _reserve(port):
            continue
        try:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with socket.socket(socket.AF_INET, kind) as s:
                    s.bind(("", port))
        except OSError:
            continue
        return port
    raise RuntimeError("no free port between 10000 and 30000 in 200 attempts")


class Started:
    """A running command in its own session; at the end of the block it is killed with its children. Its output goes
    to files, so that it never blocks on a reader. popen is passed to subprocess.Popen."""

    def __init__(self, cmd: Sequence[str], **popen: Any) -> None:
        self._out = tempfile.TemporaryFile("w+", errors="replace")
        self._err = tempfile.TemporaryFile("w+", errors="replace")
        options = {"stdin": subprocess.DEVNULL, "stdout": self._out, "stderr": self._err}
        self._since = time.monotonic()
        self._proc = subprocess.Popen(cmd, start_new_session=True, **{**options, **popen})
        self.pid = self._proc.pid

    def __enter__(self) -> "Started":
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
        self._out.close()
        self._err.close()

    def signal(self, number: int) -> None:
        self._proc.send_signal(number)

    def running(self) -> bool:
        return self._proc.poll() is None

    def under_way(self, seconds: float = 20.0) -> bool:
        """Wait until our client has begun its test, and so has a second thread, or has ended. False at the time
        limit."""
        def begun() -> bool:
            if self._proc.poll() is not None:
                return True
            try:
                return len(os.listdir(f"/proc/{self.pid}/task")) > 1
            except OSError:
                return False  # it has just ended

        return wait_for(begun, seconds)

    def measuring(self, seconds: float = 60.0) -> bool:
        """Wait until our client moves data or has ended: until a thread other than its first has used more processor
        time, or has waited more often, than setting up a test takes. False at the time limit."""
        def moves() -> bool:
            if self._proc.poll() is not None:
                return True
            try:
                others = [task for task in Path(f"/proc/{self.pid}/task").iterdir()
                          if task.name != str(self.pid)]
                return any(_ticks(task) >= 3 or _waits(task) >= 30 for task in others)
            except OSError:
                return False  # it has just ended

        return moves() if seconds <= 0 else wait_for(moves, seconds)

    def said(self) -> str:
        """Its stdout and stderr so far, unless they are the caller's."""
        return "".join(os.pread(f.fileno(), 1 << 20, 0).decode(errors="replace")
                       for f in (self._out, self._err))

    def finish(self, timeout: float) -> Result:
        """Wait for its end; at the time limit, kill it and its children."""
        try:
            rc: Optional[int] = self._proc.wait(timeout)
        except subprocess.TimeoutExpired:
            rc = None
        finally:
            self._kill()
        seconds = time.monotonic() - self._since
        self._out.seek(0), self._err.seek(0)
        return Result(rc, self._out.read(), self._err.read(), seconds)

    def _kill(self) -> None:
        if self._proc.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._proc.wait()


def dropped() -> int:
    """Packets dropped because a processor's backlog was full, in all namespaces."""
    with open("/proc/net/softnet_stat", encoding="ascii") as stat:
        return sum(int(line.split()[1], 16) for line in stat)


def run(cmd: Sequence[str], timeout: float) -> Result:
    """Run a command; kill it and its children after three times the time it should take on an idle machine. A test
    without a single transaction is repeated if the machine dropped packets meanwhile: a lost SYN is sent again after
    a second, and some tests take no longer."""
    before = dropped()
    with Started(cmd) as command:
        got = command.finish(3 * timeout)
    if "not one transaction was completed" in got.err and dropped() > before:
        with Started(cmd) as command:
            got = command.finish(3 * timeout)
    return got


def interrupted(cmd: Sequence[str], number: int = signal.SIGINT, after: float = 0.0, timeout: float = 60) -> Result:
    """The result of a client that gets a signal this long after it has begun to measure."""
    with Started(cmd) as client:
        assert client.measuring(), client.said()
        time.sleep(after)
        client.signal(number)
        return client.finish(timeout)


def must(cmd: Sequence[str], timeout: float = 60) -> str:
    """The stdout of a command that must succeed."""
    got = run(cmd, timeout)
    assert got.rc == 0, f"{' '.join(cmd)}: {got.err.strip() or got.out.strip() or got.rc}"
    return got.out


def needs(*modules: str) -> Any:
    """Import modules and return the last one; skip the test program if one is missing. To be called before any
    output, as the program may be restarted in the Python that has them."""
    try:
        return [python.need(module, f"python3-{module.partition('.')[0]}") for module in modules][-1]
    except python.MissingModule as fault:
        skip(str(fault))


def wants(*modules: str) -> None:
    """As needs(), where a part of the tests can do without them."""
    for module in modules:
        with contextlib.suppress(python.MissingModule):
            python.need(module, "")


def script(name: str) -> Any:
    """scripts/NAME as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(SCRIPTS / name))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec
    sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses looks it up there
    loader.exec_module(sys.modules[name])
    return sys.modules[name]


def called(main: "Callable[[list[str]], Any]", *args: str) -> Result:
    """Run a script's main() with these arguments in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = netkit.run(main, list(args))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)    # some scripts block signals
    return Result(status, out.buffer.getvalue().decode(), err.getvalue(), 0)  # type: ignore[attr-defined]


def installed(place: "str | Path", *names: str) -> str:
    """Install scripts/NAME and their modules below a prefix; returns the first script's path."""
    shutil.copytree(SCRIPTS / "netkit", Path(place, "share/plumbline/netkit"),
                    ignore=shutil.ignore_patterns("__pycache__"))
    Path(place, "bin").mkdir()
    return [shutil.copy(SCRIPTS / name, Path(place, "bin")) for name in names][0]


def executable(path: Path, text: str) -> Path:
    """A program that is this text."""
    path.write_text(text)
    path.chmod(0o755)
    return path


class Lab:
    """A context manager with a lab of netlab's with these options. client and server are command prefixes that run a
    command at that end, as `netlab exec` does, but without the quarter of a second that takes to start."""

    def __init__(self, name: str, *options: str) -> None:
        self.name, self.options = name, options
        self.client, self.server = in_lab(name, "client"), in_lab(name, "server")

    def __enter__(self) -> "Lab":
        self.netlab("up", *self.options)
        return self

    def __exit__(self, *_: object) -> None:
        self.netlab("down")

    def netlab(self, verb: str, *args: str) -> str:
        return must([NETLAB, verb, "--name", self.name, *args])

    def command(self, port: int, *words: str, host: str = "10.77.0.2") -> "list[str]":
        """Our client at its end, for a daemon at the other one."""
        return command(port, *words, host=host, prefix=self.client)

    def drop(self, end: Sequence[str], *rules: str) -> None:
        """Drop packets that arrive at one end over the link and match one of the rules."""
        chain = "inet lab pre"
        script = ["add table inet lab",
                  f"add chain {chain} {{ type filter hook prerouting priority -300; }}",
                  *(f"add rule {chain} iifname lab0 {rule} drop" for rule in rules)]
        must([*end, "nft", "; ".join(script)])


class Filter:
    """Rules of nft's in a chain of this hook for the duration of a block, of which an end has one at a time."""

    def __init__(self, end: Sequence[str], hook: str, *rules: str) -> None:
        self._nft, chain = [*end, "nft"], "inet planted only"
        self._script = "; ".join(["add table inet planted", f"add chain {chain} {{ type filter hook {hook} priority 0; }}",
                                  *(f"add rule {chain} {rule}" for rule in rules)])

    def __enter__(self) -> "Filter":
        must([*self._nft, self._script])
        return self

    def __exit__(self, *_: object) -> None:
        must([*self._nft, "delete table inet planted"])

    def count(self) -> int:
        """The packets that its counters have seen."""
        return sum(map(int, re.findall(r"counter packets (\d+)", must([*self._nft, "list table inet planted"]))))


def ip(*lines: str) -> None:
    """Commands of ip(8), a line of words each."""
    for line in lines:
        must(["ip", *line.split()])


class Net:
    """Network namespaces for the duration of a block, with their loopback interfaces up; make() connects them."""

    names: "Sequence[str]" = ()

    def make(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Any:
        try:
            for name in self.names:
                ip(f"netns add {name}", f"-n {name} link set lo up")
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            run(["ip", "netns", "del", name], 60)


def snmp(end: Sequence[str], *names: str) -> int:
    """The sum of the kernel's counters at one end, by their names in nstat(8): UdpRcvbufErrors, Udp6RcvbufErrors (which a
    machine without IPv6 lacks)."""
    rows = [line.split() for line in must([*end, "sh", "-c", "cat /proc/net/snmp*"]).splitlines()]
    found = {row[0]: row[1] for row in rows}    # a line each: those of IPv6
    for heads, values in zip(rows, rows[1:]):
        if heads[0] == values[0]:
            found.update(zip((heads[0][:-1] + head for head in heads), values))
    return sum(int(found[name]) for name in names if name in found or "Ip6InReceives" in found or "6" not in name)


def nft_counters(end: Sequence[str]) -> "dict[str, int]":
    """The packets of each named counter of nft's at one end."""
    found = re.findall(r"counter (\w+) {\s*packets (\d+)", must([*end, "nft", "list counters"]))
    return {name: int(packets) for name, packets in found}


def memory(pids: Iterable[int]) -> int:
    """Bytes used by these processes; what they share counts once."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):  # it has just ended
            found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
            total += 1024 * int(found[1]) if found else 0
    return total


def _ticks(process: Path) -> int:
    """Processor time of a process or thread in clock ticks, from its directory in /proc."""
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _waits(task: Path) -> int:
    """How often a thread has waited."""
    return int((task / "status").read_text().partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def waited(pid: int) -> float:
    """For how many seconds a process's threads together were ready to run without a processor, which is what a busy
    machine costs it. 0 if the kernel does not count that."""
    total = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[1])
    except OSError:
        pass
    return total / 1e9


def cpu_seconds(pid: int) -> float:
    """Processor time of a process in seconds."""
    return _ticks(Path(f"/proc/{pid}")) / os.sysconf("SC_CLK_TCK")


def forks_sessions(pid: int) -> bool:
    """Whether it is one of the daemon's long-lived processes that only fork sessions."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "netserver-fork"
    except OSError:
        return False  # it is gone


def children(pid: int) -> "list[int]":
    """The pids of a process's children, including zombies, but without those that only fork sessions."""
    try:  # searching all of /proc is slow on a busy machine
        return [int(child) for task in Path(f"/proc/{pid}/task").iterdir()
                for child in (task / "children").read_text().split()
                if not forks_sessions(int(child))]
    except OSError:
        pass  # gone, or a kernel without these files
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            ppid = entry.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue  # it has just ended
        if int(ppid) == pid and not forks_sessions(int(entry.parent.name)):
            found.append(int(entry.parent.name))
    return found


def alive(pid: int) -> bool:
    """Whether there is such a process that is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Poll until the condition holds; False at the time limit."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def settled(read: Callable[[], Any], seconds: float = 60.0) -> Any:
    """The value of read() once it has not changed for half a second, or at the time limit."""
    end = time.monotonic() + seconds
    value, since = read(), time.monotonic()
    while time.monotonic() < min(end, since + 0.5):
        time.sleep(0.05)
        again = read()
        if again != value:
            value, since = again, time.monotonic()
    return value


class _Wakes:
    """Measures how late a thread that sleeps for 10 ms at a time is woken."""

    PAUSE = 0.01

    def __init__(self) -> None:
        self._late: "list[tuple[float, float]]" = []  # time, and largest delay until then
        self._due = time.monotonic() + self.PAUSE
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            time.sleep(max(0.0, self._due - time.monotonic()))
            now = time.monotonic()
            if now - self._due > 0.002:
                self._late.append((now, now - self._due))
            self._due = now + self.PAUSE

    def since(self, start: float) -> "list[float]":
        return [late for when, late in self._late[:] if when >= start]


_wakes: "list[_Wakes]" = []


def watch_wakes() -> None:
    """Start measuring for late_since()."""
    if not _wakes:
        _wakes.append(_Wakes())


def late_since(start: float) -> float:
    """The largest delay in seconds with which this program was woken since the given time.monotonic(): what a busy or
    paused machine does to timing. 0 before watch_wakes()."""
    return max([0.0, *(_wakes[0].since(start) if _wakes else [])])


def all_late_since(start: float) -> float:
    """The sum of these delays."""
    return sum(_wakes[0].since(start) if _wakes else [])


def listeners(port: int, pid: "int | str" = "self") -> "list[str]":
    """The listening sockets of a port, in the format of descriptors' links, in a process's network namespace. Reading
    the two tables takes a large machine's kernel 20 ms, or more with many connections."""
    found = []
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):  # no IPv6, or the process is gone
            rows = (row.split() for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
                    if f":{port:04X} " in row)  # there may be tens of thousands
            found += [f"socket:[{f[9]}]" for f in rows if f[3] == "0A" and f[1].endswith(f":{port:04X}")]
    return found


def listening(port: int, pid: "int | str" = "self") -> bool:
    """Whether there is a listener on a port. No connection is made, as that may be what ends the wait."""
    return bool(listeners(port, pid))


def sockets(pid: int) -> "Iterator[socket.socket]":
    """Duplicates of a process's sockets, for frequent queries: it takes a fraction of a millisecond."""
    process = os.pidfd_open(pid)
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            if os.readlink(entry).startswith("socket:"):
                fd = LIBC.syscall(PIDFD_GETFD, process, int(entry.name), 0)
                if fd < 0:
                    raise OSError(ctypes.get_errno(), "pidfd_getfd")
                with socket.socket(fileno=fd) as copy:
                    yield copy
    finally:
        os.close(process)


class Daemon:
    """A netserver in the foreground, from when it listens until it is stopped.

    prefix precedes the command and must exec it, as `ip netns exec NAME` does, so that the pid is netserver's. The
    end of the block fails if a session still exists after `grace` seconds, unless the block has failed already; what
    is left is killed in any case. program is another netserver, and with grace None its sessions are not checked."""

    def __init__(self, prefix: Sequence[str] = (), args: Sequence[str] = (),
                 port: Optional[int] = None, grace: Optional[float] = 20.0,
                 program: Optional[str] = None) -> None:
        self.port = port or free_port()
        self.grace = grace
        self._any_port = port is None
        self._cmd = [*prefix, program or netserver(), "-D", *args, "-p"]
        self._log = tempfile.TemporaryFile("w+", errors="replace")

    def __enter__(self) -> "Daemon":
        self._start()
        for _ in range(3):
            if self._proc.poll() is None or not self._any_port or "in use" not in self.log():
                break
            self._log.truncate(0), self._log.seek(0)  # another process took the port
            self.port = free_port()
            self._start()
        if self._proc.poll() is not None:
            raise RuntimeError(f"{' '.join(self._cmd)} {self.port}: ended at once: {self.log()}")
        return self

    def _start(self) -> None:
        """Start it; returns when it listens or has ended."""
        self._proc = subprocess.Popen([*self._cmd, str(self.port)], stdin=subprocess.DEVNULL,
                                      stdout=self._log, stderr=subprocess.STDOUT)
        self.pid = self._proc.pid
        if not wait_for(lambda: self._listens() or self._proc.poll() is not None, 60):
            self._stop()
            raise RuntimeError(f"{' '.join(self._cmd)} {self.port}: not listening after 60 s: "
                               f"{self.log()}")

    def __exit__(self, kind: object, *_: object) -> None:
        left: "list[int]" = []
        if kind is None and self.grace is not None:
            if not wait_for(lambda: not self.children(), self.grace):
                left = self.children()
        alive = self._stop()
        assert kind is not None or alive, f"netserver ended by itself: {self.log()}"
        assert not left, f"netserver had children left after {self.grace} s: {left}: {self.log()}"

    def children(self) -> "list[int]":
        return children(self.pid)

    def log(self, size: int = 1 << 16) -> str:
        """Its output so far, up to `size` bytes."""
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace").strip()

    def _listens(self) -> bool:
        """Look the listener up in the kernel: a connection would start a session."""
        try:
            return any(one.family in (socket.AF_INET, socket.AF_INET6) and one.getsockname()[1] == self.port
                       and one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) for one in sockets(self.pid))
        except AttributeError:      # a Python without pidfd_open()
            return listening(self.port, self.pid)
        except OSError as fault:
            # only root may read the descriptors of a daemon that is not dumpable; an old kernel has no pidfd_getfd(2)
            return fault.errno in (errno.EACCES, errno.EPERM, errno.ENOSYS) and listening(self.port, self.pid)

    def _stop(self) -> bool:
        """End it and its sessions; False if it had already ended."""
        sessions = self.children()
        alive = self._proc.poll() is None
        self._proc.terminate()
        try:
            self._proc.wait(5)
        except subprocess.TimeoutExpired:
            self._proc.kill()
            self._proc.wait()
        for pid in sessions:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return alive


class Fault(NamedTuple):
    """Invalid arguments, the exit status, and what the error line must contain."""
    args: str
    says: "tuple[str, ...]"
    status: int


def fault(args: str, *says: str, status: int = 1) -> Fault:
    return Fault(args, says, status)


# Lines on stderr in addition to the error line: netperf's own, which scripts look for, and what our client prints
# while it waits in the daemon's queue.
STDERR_PHRASES = re.compile(
    r"netperf: \S+ port \S+ (accepted the connection, and )?has not answered for \d+ s: .*"
    r"|\S+: (?:invalid option|option requires an argument) -- '.'"
    r"|Usage: netperf \[global options\] -- \[test options\] "
    r"|Unable to start netserver with  '\S+' port '\S+' and family AF_\w+")
# Our error lines where the real netperf prints none.
PASSED_OVER = re.compile(r"^netperf: .*: (?:there is no such output selector|not a unit \(|ignored: unexpected argument"
                         r"|paces, \d+ transactions|\d+ % of this pace was kept|.* is not an address family|ignored, as in netperf: |ignored: the end that "
                         r"|SO_...BUF at |not a protocol: |not a type of socket |not a direction |.*\d+ iterations at most|the test runs until SIGINT |all connections come from port ).*\n", re.M)
# The same for stdout.
STDOUT_PHRASES = re.compile(
    r"establish control: are you sure there is a netserver listening on \S+ at port \S+\?"
    r"|establish_control could not establish the control connection from \S+ port \S+ "
    r"address family AF_\w+ to \S+ port \S+ address family AF_\w+"
    r"|resolve_host: could not resolve host '\S+' port '\S+' af AF_\w+"
    r"|complete_addrinfo: could not resolve '\S+' port '0' af \d+"
    r"|\tgetaddrinfo returned -\d+ .+"
    r"|Netperf could not resolve \S+ as a host name"
    r"|The test you requested \(\S+\) is unknown to this netperf\."
    r"|Please verify that you have the correct test name, "
    r"|and that test family has been compiled into this netperf\."
    r"|Could not open output selection file '\S+' errno \d+"
    r"|netperf: remote error \d+")


def without_phrases(text: str, phrases: "re.Pattern[str]") -> "list[str]":
    """The lines without netperf's own error messages."""
    return [line for line in text.splitlines() if not phrases.fullmatch(line)]


def on_a_terminal(command: "list[str]") -> str:
    """The output of a command whose stdout and stderr are a terminal."""
    near, far = pty.openpty()
    with os.fdopen(near, "rb", buffering=0) as reader:
        with os.fdopen(far, "wb") as terminal:
            child = subprocess.Popen(command, stdout=terminal, stderr=terminal, stdin=subprocess.DEVNULL)
        text = b""
        with contextlib.suppress(OSError):  # the terminal has no other reader
            while True:
                block = reader.read(4096)
                if not block:
                    break
                text += block
        assert child.wait(20) not in (0, None), command
    return text.decode().replace("\r\n", "\n")


def complaints(got: Result) -> "list[str]":
    """The lines on stderr, except those about waiting."""
    return without_phrases(got.err, STDERR_PHRASES)


def without_account(text: str) -> str:
    """stderr without lines about late or duplicate datagrams, which the machine causes."""
    return re.sub(r"^netperf: \w+: (received at|\d+ datagrams came twice) .*\n", "", text, flags=re.M)


def error_line(got: Result, program: str, *says: str) -> str:
    """Check that there is one line of ours on stderr, from this program and with these texts; returns it."""
    lines = without_phrases(PASSED_OVER.sub("", got.err), STDERR_PHRASES) or without_phrases(got.err, STDERR_PHRASES)
    assert len(lines) == 1, f"{len(lines)} lines on stderr: {got.err!r}"
    assert lines[0].startswith(f"{program}: "), f"{lines[0]!r} is not from {program}"
    missing = [word for word in says if word not in lines[0]]
    assert not missing, f"{lines[0]!r} does not say {missing}"
    return lines[0]


def refused(port: int, args: str, says: Sequence[str]) -> None:
    """Check that our client refuses these arguments with an error line."""
    got = run(command(port, *args.split()), timeout=20)
    assert got.rc == 1 and not got.out, got
    error_line(got, "netperf", *says)


def no_documents() -> str:
    """Why our netperf writes no documents; empty if it does."""
    return "" if has_documents() else "built without libjansson"


def has_documents(program: str = "") -> bool:
    """Whether a netperf was built with jansson."""
    return "libjansson" not in run([program or netperf(), "--json=/nowhere/x"], 20).err


class Part(dict):
    """An object of a document in which missing members are None."""

    def __missing__(self, name: str) -> None:
        return None


def document(text: str) -> Any:
    """Parse the output of netperf --json as netkit's programs do."""
    return json.loads(json.dumps(numbers.whole(json.loads(text))), object_hook=Part)


def document_of(port: int, test: str, *args: str, length: str = "1", host: str = "127.0.0.1") -> Any:
    """The document of a test with these options; one second unless they say otherwise."""
    name, *more = test.split()
    lasts = [] if "-l" in (*args, *more) else ["-l", length]
    return document(must(command(port, "-t", name, *lasts, "--json", *args, *more, host=host)))


def has_ipv6() -> bool:
    path = Path("/proc/net/if_inet6")
    return path.exists() and " lo" in path.read_text()


def many_descriptors() -> None:
    """Raise the limit for two descriptors per client that this program starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 4096:
        most = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def as_nobody() -> "list[str]":
    """The command prefix that runs a command without privileges."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


class Skipped(Exception):
    """A check can't run here; the text says why."""


MOST_STOLEN = 0.005  # share of processor time, above which no rate is judged


def stolen() -> "tuple[int, int]":
    """Clock ticks that the hypervisor took from this machine's processors (proc_stat(5)), and the total."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:9]]
    return ticks[7], sum(ticks)


class Report:
    """Prints a line per check, and the totals at the end; may be used by several threads."""

    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0
        self._lock = threading.Lock()

    def check(self, name: str, ok: bool, detail: str = "") -> bool:
        with self._lock:
            self.passed, self.failed = self.passed + bool(ok), self.failed + (not ok)
            print(f"{'ok  ' if ok else 'FAIL'} {name}  {detail}".rstrip(), flush=True)
        return ok

    def skip(self, name: str, reason: str) -> None:
        with self._lock:
            self.skipped += 1
            print(f"SKIP {name}  {reason}", flush=True)

    def lacks(self, name: str, reason: str) -> bool:
        """Skip something if there is a reason."""
        if reason:
            self.skip(name, reason)
        return bool(reason)

    def case(self, name: str, body: Callable[[], Optional[str]], unless: str = "") -> bool:
        """Run a check, unless there is a reason to skip it: body returns a detail to print, or raises a failure or
        Skipped. Checks that take a second or more print their duration."""
        if self.lacks(name, unless):
            return True
        since = time.monotonic()
        try:
            detail = body() or ""
            took = time.monotonic() - since
            return self.check(name, True, f"{detail}  [{took:.1f} s]" if took >= 1 else detail)
        except Skipped as why:
            self.skip(name, str(why))
            return True
        except Exception as fault:  # a test with a bug is a failed test
            return self.check(name, False, f"{type(fault).__name__}: {fault}")

    def each(self, bodies: "Iterable[Callable[..., Optional[str]]]", *args: Any) -> None:
        """Run checks that are named after their functions."""
        for body in bodies:
            self.case(body.__name__.replace("_", " "), partial(body, *args))

    def part(self, name: str, body: Callable[[], None]) -> None:
        """Run a body with several checks, all of which are skipped if it raises Skipped before the first."""
        try:
            body()
        except Skipped as why:
            self.skip(name, str(why))

    def rate_case(self, name: str, body: Callable[[], Optional[str]]) -> bool:
        """A check that needs processors: skipped if the hypervisor or other programs took too much of them, as the
        link is then not kept full."""
        watch_wakes()
        before, since = stolen(), time.monotonic()

        def judged() -> Optional[str]:
            try:
                return body()
            except Skipped:
                raise
            except Exception as fault:
                share = (stolen()[0] - before[0]) / max(1, stolen()[1] - before[1])
                late = all_late_since(since) / (time.monotonic() - since)
                if max(share, late) < MOST_STOLEN:
                    raise
                raise Skipped(f"the hypervisor took {100 * share:.1f} % of the processors' time, and who slept was "
                              f"woken late by {100 * late:.1f} % of the time: {fault}") from fault

        return self.case(name, judged)

    def cases(self, bodies: "Iterable[tuple[str, Callable[[], Optional[str]]]]",
              at_once: int) -> None:
        """Run independent checks in parallel, started in the given order."""
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda named: self.case(*named), bodies))

    def finish(self) -> int:
        """Print the totals and return the exit status, 77 if everything was skipped."""
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 1 if self.failed else 77 if self.skipped and not self.passed else 0


class InPlace(unittest.TestCase):
    """A unit test with a folder of its own."""

    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.dir = Path(os.path.realpath(place.name))
        self.place = str(self.dir)


def unit_main(**options: Any) -> NoReturn:
    """Run the program's unittest cases."""
    result = unittest.main(exit=False, verbosity=2, **options).result
    sys.exit(1 if not result.wasSuccessful() else 77 if len(result.skipped) == result.testsRun else 0)


def main(suite: Callable[[Report], None]) -> NoReturn:
    """Run a suite as a program. SIGTERM unwinds it like ^C, so that nothing is left behind."""
    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    report = Report()
    try:
        suite(report)
    except Exception as fault:
        report.check("suite", False, f"{type(fault).__name__}: {fault}")
    sys.exit(report.finish())
