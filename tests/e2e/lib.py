"""What the Python end-to-end tests share: the programs, a daemon, bounded runs, a report.

A test program reads like this:

    import lib

    def suite(report: lib.Report) -> None:
        with lib.Daemon() as daemon:
            got = lib.run([lib.netperf(), "-H", "127.0.0.1", "-p", str(daemon.port)], timeout=20)
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
PIDFD_GETFD = 438   # the number of that system call, which Python lacks

# Options that make a test move little, 200 operations a second: for those that need a test to be
# there for a while, and not to keep the machine busy.
PACED = ("-b", "1", "-w", "5ms")

# Seconds by which a time limit of the programs' is wider here: it is the machine that decides when
# a program gets a processor, and what else it has to do is not known. A fault takes longer.
SLACK = 8.0


class Result(NamedTuple):
    """What a command did; rc is None when it had to be killed for want of time."""
    rc: Optional[int]
    out: str
    err: str
    seconds: float


def skip(reason: str) -> NoReturn:
    """Ends the whole test program as skipped, in automake's sense."""
    print(f"SKIP: {reason}", flush=True)
    sys.exit(77)


def _program(variable: str, *places: str) -> str:
    wanted = [os.environ[variable]] if os.environ.get(variable) else [str(TOP / p) for p in places]
    for path in wanted:
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return os.path.abspath(path)
    skip(f"no program {wanted[0]}: build it or name one in {variable}")


def netperf() -> str:
    return _program("NETPERF", "src/netperf")


def netserver() -> str:
    return _program("NETSERVER", "netserver/netserver", "src/netserver")


def page(name: str) -> Path:
    """A manual page: of this build, or as the tarball has it."""
    made = BUILD / "doc" / name
    return made if made.exists() else TOP / "doc" / name


def copied(program: "str | Path", place: "str | Path") -> str:
    """A copy of a program in that directory. By cp(1): of a file that we wrote ourselves, a child that
    another thread forks meanwhile has a descriptor, and until it executes nobody can execute the file."""
    subprocess.run(["cp", "-p", str(program), str(place)], check=True, timeout=60)
    return str(Path(place) / Path(program).name)


def real_netperf() -> Path:
    """The directory of the real netperf and netserver, fetched when first asked for.

    They are kept in $NP_REAL_NETPERF_DIR, else in the user's cache. Raises Skipped, which says
    why they cannot be had.
    """
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
if os.environ.get("top_builddir"):  # where its program in C is; what we start is to find it, too
    os.environ.setdefault("NETLAB_LINK", os.path.join(os.environ["top_builddir"], "tests", "link", "netlab-link"))


def in_lab(name: str, role: str) -> "list[str]":
    """What to put in front of a command so that it runs at one end of a lab."""
    return ["ip", "netns", "exec", f"netlab-{name}-{role}"]


def no_lab() -> str:
    """Why this machine or user can have no netlab; empty when it can."""
    if os.geteuid() != 0:
        return "not root"
    try:
        got = run(["unshare", "-n", "-m", "tc", "qdisc", "add", "dev", "lo", "root",
                   "tbf", "rate", "1mbit", "burst", "2000", "limit", "3000"], timeout=10)
    except FileNotFoundError as fault:
        return f"no program {fault.filename}"
    return "" if got.rc == 0 else f"no namespaces with a tbf queue: {got.err.strip()}"


def no_line() -> str:
    """Why there can be no netlab with netlab-link; empty when there can."""
    obstacle = no_lab()
    if not obstacle and not os.path.exists("/dev/net/tun"):
        obstacle = "no /dev/net/tun"
    place = os.environ.get("NETLAB_LINK", str(TOP / "tests" / "link" / "netlab-link"))
    if not obstacle and not os.access(place, os.X_OK):
        obstacle = f"no program {place}"
    return obstacle


_reserved: "list[socket.socket]" = []


def _reserve(port: int) -> bool:
    """Takes a port for this process among all that use this function, until the process ends.

    The suites run side by side: without this two of them may find the same port free.
    """
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        mark.bind(f"\0plumbline-test-port-{port}")
    except OSError:
        mark.close()
        return False
    _reserved.append(mark)
    return True


def free_port() -> int:
    """A port nobody listens on, below the range that the kernel hands out by itself.

    No other call gets the same one, in this process or in another one that uses this function.
    """
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
    """A command under way, in a session of its own; leaving the block kills it and what it started.

    Its output goes to files, so that it never waits for a reader. popen is for subprocess.Popen.
    """

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
        """Waits until our client, which this is, has begun its test, hence has a second thread, or
        has ended; how long that takes is the machine's affair. False when the time is over."""
        def begun() -> bool:
            if self._proc.poll() is not None:
                return True
            try:
                return len(os.listdir(f"/proc/{self.pid}/task")) > 1
            except OSError:
                return False  # between its end and our knowing

        return wait_for(begun, seconds)

    def measuring(self, seconds: float = 60.0) -> bool:
        """Waits until our client, which this is, moves data, or has ended: a thread beside its first
        has used more of a processor, or has waited more often, than it takes to set a test up. False
        when the time is over."""
        def moves() -> bool:
            if self._proc.poll() is not None:
                return True
            try:
                others = [task for task in Path(f"/proc/{self.pid}/task").iterdir()
                          if task.name != str(self.pid)]
                return any(_ticks(task) >= 3 or _waits(task) >= 30 for task in others)
            except OSError:
                return False  # between its end and our knowing

        return moves() if seconds <= 0 else wait_for(moves, seconds)

    def said(self) -> str:
        """What it has written to standard output and error so far, unless these are the caller's."""
        return "".join(os.pread(f.fileno(), 1 << 20, 0).decode(errors="replace")
                       for f in (self._out, self._err))

    def finish(self, timeout: float) -> Result:
        """Waits for its end, or kills it and all it started when the time is over."""
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
    """Packets that this machine's processors had no room for, in any namespace."""
    with open("/proc/net/softnet_stat", encoding="ascii") as stat:
        return sum(int(line.split()[1], 16) for line in stat)


def run(cmd: Sequence[str], timeout: float) -> Result:
    """Runs a command to its end, or kills it and all it started when it has taken three times as long
    as it should on a machine that has nothing else to do. A test that saw no transaction runs once more if the machine
    dropped packets meanwhile: a lost SYN comes again after a second, and some tests take no longer."""
    before = dropped()
    with Started(cmd) as command:
        got = command.finish(3 * timeout)
    if "not one transaction was completed" in got.err and dropped() > before:
        with Started(cmd) as command:
            got = command.finish(3 * timeout)
    return got


def must(cmd: Sequence[str], timeout: float = 60) -> str:
    """What a command writes that has to succeed."""
    got = run(cmd, timeout)
    assert got.rc == 0, f"{' '.join(cmd)}: {got.err.strip() or got.out.strip() or got.rc}"
    return got.out


def needs(*modules: str) -> Any:
    """The last one of these modules, imported; without one the test program is skipped. It may begin again, under the Python
    that has them: before anything is written."""
    try:
        return [python.need(module, f"python3-{module.partition('.')[0]}") for module in modules][-1]
    except python.MissingModule as fault:
        skip(str(fault))


def wants(*modules: str) -> None:
    """Likewise, where a part can do without them."""
    for module in modules:
        with contextlib.suppress(python.MissingModule):
            python.need(module, "")


def script(name: str) -> Any:
    """scripts/NAME as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(SCRIPTS / name))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec
    sys.modules[name] = importlib.util.module_from_spec(spec)  # where dataclasses look
    loader.exec_module(sys.modules[name])
    return sys.modules[name]


def called(main: "Callable[[list[str]], Any]", *args: str) -> Result:
    """What a script's main() does with these arguments, within this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = netkit.run(main, list(args))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)    # some scripts hold signals
    return Result(status, out.buffer.getvalue().decode(), err.getvalue(), 0)  # type: ignore[attr-defined]


def installed(place: "str | Path", name: str) -> str:
    """scripts/NAME and its modules, as they are below a prefix; the script's path."""
    shutil.copytree(SCRIPTS / "netkit", Path(place, "share/plumbline/netkit"),
                    ignore=shutil.ignore_patterns("__pycache__"))
    Path(place, "bin").mkdir()
    return shutil.copy(SCRIPTS / name, Path(place, "bin"))


class Lab:
    """A link of netlab's, with these options, for the length of a block. client and server are what to put in front of a
    command so that it runs at that end, as `netlab exec` does, which takes a quarter of a second to start."""

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

    def drop(self, end: Sequence[str], *rules: str) -> None:
        """Drops what arrives at one end over the link and fits one of the rules."""
        chain = "inet lab pre"
        script = ["add table inet lab",
                  f"add chain {chain} {{ type filter hook prerouting priority -300; }}",
                  *(f"add rule {chain} iifname lab0 {rule} drop" for rule in rules)]
        must([*end, "nft", "; ".join(script)])


def _ticks(process: Path) -> int:
    """What a process or thread has had of a processor, in clock ticks, by its place in /proc."""
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _waits(task: Path) -> int:
    """How often a thread has waited for something."""
    return int((task / "status").read_text().partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def waited(pid: int) -> float:
    """For how many seconds a process has been ready to run and had no processor, all of its threads
    together: what a busy machine has taken from it. 0 where the kernel does not count that."""
    total = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[1])
    except OSError:
        pass
    return total / 1e9


def cpu_seconds(pid: int) -> float:
    """The same of a process, in seconds."""
    return _ticks(Path(f"/proc/{pid}")) / os.sysconf("SC_CLK_TCK")


def forks_sessions(pid: int) -> bool:
    """Is it one of a daemon's processes that only fork sessions? They stay."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "netserver-fork"
    except OSError:
        return False  # gone


def children(pid: int) -> "list[int]":
    """The pids of a process's children, those that only wait to be reaped included, but without
    those that only fork sessions."""
    try:  # all of /proc takes long on a busy machine
        return [int(child) for task in Path(f"/proc/{pid}/task").iterdir()
                for child in (task / "children").read_text().split()
                if not forks_sessions(int(child))]
    except OSError:
        pass  # gone, or a kernel that does not list them
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            ppid = entry.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue  # gone in between
        if int(ppid) == pid and not forks_sessions(int(entry.parent.name)):
            found.append(int(entry.parent.name))
    return found


def alive(pid: int) -> bool:
    """Is there such a process, and not only its memory?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Asks again and again until the condition holds; False when it did not in that time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def settled(read: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What is read when it has been the same for half a second, or after all this time."""
    end = time.monotonic() + seconds
    value, since = read(), time.monotonic()
    while time.monotonic() < min(end, since + 0.5):
        time.sleep(0.05)
        again = read()
        if again != value:
            value, since = again, time.monotonic()
    return value


class _Wakes:
    """How late a thread that sleeps for 10 ms at a time is woken, from its start on."""

    PAUSE = 0.01

    def __init__(self) -> None:
        self._late: "list[tuple[float, float]]" = []  # when, and by how much it was the latest
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
    """From here on late_since() knows."""
    if not _wakes:
        _wakes.append(_Wakes())


def late_since(start: float) -> float:
    """By how many seconds, at the worst, this program has been woken late since time.monotonic()
    was start: a measure of what a busy machine, or one that was paused, does to what is timed on
    it. 0 before watch_wakes()."""
    return max([0.0, *(_wakes[0].since(start) if _wakes else [])])


def all_late_since(start: float) -> float:
    """The sum of these delays, what the machine took altogether."""
    return sum(_wakes[0].since(start) if _wakes else [])


def listeners(port: int, pid: "int | str" = "self") -> "list[str]":
    """The sockets that listen on a port, as descriptors name them, in the network namespace of a process. To read
    the two tables takes a large machine's kernel 20 ms of a processor, and more with many connections."""
    found = []
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):  # no IPv6, or the process is gone
            rows = (row.split() for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
                    if f":{port:04X} " in row)  # of tens of thousands, at times
            found += [f"socket:[{f[9]}]" for f in rows if f[3] == "0A" and f[1].endswith(f":{port:04X}")]
    return found


def listening(port: int, pid: "int | str" = "self") -> bool:
    """Does anybody listen on that port? It is not tried: a connection may be what ends the wait."""
    return bool(listeners(port, pid))


def sockets(pid: int) -> "Iterator[socket.socket]":
    """Copies of its sockets, for what is asked often: a fraction of a millisecond."""
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
    """A netserver in the foreground, from when it listens until it is stopped by its pid.

    prefix is put in front of the command and must exec it, as `ip netns exec NAME` does, so that
    the pid is netserver's. Leaving the block fails when a session is still there after `grace`
    seconds, unless the block failed already; what is left is killed in any case. program is another
    netserver than ours, and a grace of None does not ask what it leaves behind.
    """

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
            self._log.truncate(0), self._log.seek(0)  # somebody took the port in the meantime
            self.port = free_port()
            self._start()
        if self._proc.poll() is not None:
            raise RuntimeError(f"{' '.join(self._cmd)} {self.port}: ended at once: {self.log()}")
        return self

    def _start(self) -> None:
        """Returns when it listens or has ended."""
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
        """What it has written so far, up to that many bytes."""
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace").strip()

    def _listens(self) -> bool:
        """Asks the kernel: a connection made to find out would start a session."""
        try:
            return any(one.family in (socket.AF_INET, socket.AF_INET6) and one.getsockname()[1] == self.port
                       and one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) for one in sockets(self.pid))
        except AttributeError:      # a Python that has no pidfd_open()
            return listening(self.port, self.pid)
        except OSError as fault:
            # only root may see the descriptors of a daemon that is not dumpable; an old kernel has no pidfd_getfd(2)
            return fault.errno in (errno.EACCES, errno.EPERM, errno.ENOSYS) and listening(self.port, self.pid)

    def _stop(self) -> bool:
        """Ends it and its sessions; False when it had ended before."""
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
    """Arguments that must end a program, its status, and what its one line must say."""
    args: str
    says: "tuple[str, ...]"
    status: int


def fault(args: str, *says: str, status: int = 1) -> Fault:
    return Fault(args, says, status)


# Lines on stderr beside that of a fault: netperf's own, which scripts look for, and what our client
# says when it has to wait for its turn.
STDERR_PHRASES = re.compile(
    r"netperf: \S+ port \S+ (accepted the connection, and )?has not answered for \d+ s: .*"
    r"|\S+: (?:invalid option|option requires an argument) -- '.'"
    r"|Usage: netperf \[global options\] -- \[test options\] "
    r"|Unable to start netserver with  '\S+' port '\S+' and family AF_\w+")
# What netperf passes over without a word has a line here.
PASSED_OVER = re.compile(r"^netperf: .*: (?:there is no such output selector|not a unit \(|ignored: unexpected argument"
                         r"|paces, \d+ transactions|\d+ % of this pace was kept|.* is not an address family|ignored, as in netperf: |ignored: the end that "
                         r"|SO_...BUF at |not a protocol: |not a type of socket |not a direction |.*\d+ iterations at most|the test runs until SIGINT |all connections come from port ).*\n", re.M)
# And on stdout.
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
    """The lines that are not netperf's words for a fault."""
    return [line for line in text.splitlines() if not phrases.fullmatch(line)]


def on_a_terminal(command: "list[str]") -> str:
    """What it prints where standard output is a terminal, and standard error the same one."""
    near, far = pty.openpty()
    with os.fdopen(near, "rb", buffering=0) as reader:
        with os.fdopen(far, "wb") as terminal:
            child = subprocess.Popen(command, stdout=terminal, stderr=terminal, stdin=subprocess.DEVNULL)
        text = b""
        with contextlib.suppress(OSError):  # the end of a terminal that nobody has open
            while True:
                block = reader.read(4096)
                if not block:
                    break
                text += block
        assert child.wait(20) not in (0, None), command
    return text.decode().replace("\r\n", "\n")


def complaints(got: Result) -> "list[str]":
    """What it says on stderr, but for waiting."""
    return without_phrases(got.err, STDERR_PHRASES)


def without_account(text: str) -> str:
    """Standard error without the lines about datagrams that came late or twice: the machine's fault here."""
    return re.sub(r"^netperf: \w+: (received at|\d+ datagrams came twice) .*\n", "", text, flags=re.M)


def error_line(got: Result, program: str, *says: str) -> str:
    """The only line of ours on stderr, which is the program's and says these things."""
    lines = without_phrases(PASSED_OVER.sub("", got.err), STDERR_PHRASES) or without_phrases(got.err, STDERR_PHRASES)
    assert len(lines) == 1, f"{len(lines)} lines on stderr: {got.err!r}"
    assert lines[0].startswith(f"{program}: "), f"{lines[0]!r} is not from {program}"
    missing = [word for word in says if word not in lines[0]]
    assert not missing, f"{lines[0]!r} does not say {missing}"
    return lines[0]


def refused(port: int, args: str, says: Sequence[str]) -> None:
    """With these arguments our client does nothing, and says why in a line."""
    got = run([netperf(), "-H", "127.0.0.1", "-p", str(port), *args.split()], timeout=20)
    assert got.rc == 1 and not got.out, got
    error_line(got, "netperf", *says)


def has_documents(program: str = "") -> bool:
    """Whether a netperf was built with libjansson."""
    return "libjansson" not in run([program or netperf(), "--json=/nowhere/x"], 20).err


class Part(dict):
    """Of a document: what it has not is None."""

    def __missing__(self, name: str) -> None:
        return None


def document(text: str) -> Any:
    """What netperf --json wrote, as netkit's programs look at it."""
    return json.loads(json.dumps(numbers.whole(json.loads(text))), object_hook=Part)


def document_of(port: int, test: str, *args: str, length: str = "1", host: str = "127.0.0.1") -> Any:
    """Of a test by its name, and the options behind it; of a second, unless they say otherwise."""
    name, *more = test.split()
    got = run([netperf(), "-H", host, "-p", str(port), "-t", name, *([] if "-l" in (*args, *more) else ["-l", length]), "--json",
               *args, *more], 60)
    assert got.rc == 0, got
    return document(got.out)


def has_ipv6() -> bool:
    path = Path("/proc/net/if_inet6")
    return path.exists() and " lo" in path.read_text()


def many_descriptors() -> None:
    """Two files for each client that this program starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 4096:
        most = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def as_nobody() -> "list[str]":
    """What to put in front of a command so that it runs without privileges."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


class Skipped(Exception):
    """A check that cannot run here; the text says why."""


MOST_STOLEN = 0.005  # of the processors' time, where a rate is judged


def stolen() -> "tuple[int, int]":
    """Clock ticks that the hypervisor has kept from this machine's processors (proc_stat(5)), and all."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:9]]
    return ticks[7], sum(ticks)


class Report:
    """A line a check, a total at the end; safe to use from several threads."""

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

    def case(self, name: str, body: Callable[[], Optional[str]]) -> bool:
        """Runs one check: body returns a detail to show, or raises to say what is wrong, or Skipped. What takes a second
        or more says so."""
        since = time.monotonic()
        try:
            detail = body() or ""
            took = time.monotonic() - since
            return self.check(name, True, f"{detail}  [{took:.1f} s]" if took >= 1 else detail)
        except Skipped as why:
            self.skip(name, str(why))
            return True
        except Exception as fault:  # a test that breaks is a test that fails
            return self.check(name, False, f"{type(fault).__name__}: {fault}")

    def each(self, bodies: "Iterable[Callable[..., Optional[str]]]", *args: Any) -> None:
        """Checks that are called what their functions are."""
        for body in bodies:
            self.case(body.__name__.replace("_", " "), partial(body, *args))

    def part(self, name: str, body: Callable[[], None]) -> None:
        """Several checks, none of which can run where body raises Skipped before the first."""
        try:
            body()
        except Skipped as why:
            self.skip(name, str(why))

    def rate_case(self, name: str, body: Callable[[], Optional[str]]) -> bool:
        """One that holds only where processors run when they have something to do: skipped where the
        hypervisor kept them from that, or other programs had them, since a link that is not served is
        not full."""
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
        """Runs checks that have nothing to do with each other, the first ones first."""
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda named: self.case(*named), bodies))

    def finish(self) -> int:
        """Prints the total; the exit status, 77 when there was nothing but skips."""
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 1 if self.failed else 77 if self.skipped and not self.passed else 0


def unit_main(**options: Any) -> NoReturn:
    """Runs the cases of unittest that a program has; to import it takes a third of what all of this does."""
    import unittest
    result = unittest.main(exit=False, verbosity=2, **options).result
    sys.exit(1 if not result.wasSuccessful() else 77 if len(result.skipped) == result.testsRun else 0)


def main(suite: Callable[[Report], None]) -> NoReturn:
    """Runs a suite as a program. SIGTERM unwinds it like ^C, so that nothing stays behind."""
    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    report = Report()
    try:
        suite(report)
    except Exception as fault:
        report.check("suite", False, f"{type(fault).__name__}: {fault}")
    sys.exit(report.finish())
