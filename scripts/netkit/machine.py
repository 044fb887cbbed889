"""A sweep's processes, limited in time and ended however the sweep ends; its labs and daemons; facts of the host."""

import contextlib
import ctypes
import functools
import glob
import os
import re
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence

from netkit import Fault, Interrupted, files, progress

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SENT = (0, 0x80, -1, -6)    # SI_USER, SI_KERNEL, SI_QUEUE, SI_TKILL: sent by a process or the terminal
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)    # loaded now, as it is not safe between fork and exec
LAB_PREFIX = "sweep-"       # of our labs' names; the pid of the sweep follows
LAB_PORT = 12865
LAB_CHANGES = ("--rate", "--mtu", "--delay", "--jitter", "--loss", "--reorder", "--duplicate",
               "--congestion")      # options of netlab set
IPV6_LEAST_MTU = 1280
ANSWER_MOST = 32 << 20      # bytes that a remote program may print, including its document: one of 100,000 flows
COMPLAINT_MOST = 1 << 20    # bytes of its stderr that are kept; the rest is discarded
LOOPBACK = {4: ["-4", "-L", "127.0.0.1"], 6: ["-6", "-L", "::1,inet6"]}   # where our netserver listens


class MachineError(Fault):
    """Something that a run needs could not be set up; one line."""


class Done(NamedTuple):
    """The result of a command; exit is None if it had to be killed."""
    exit: Optional[int]
    stdout: str
    stderr: str
    seconds: float
    reason: str = ""

    def complaint(self) -> str:
        """Why it failed: the last line of its stderr."""
        said = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return self.reason or (said[-1].strip() if said else f"status {self.exit}")


def hold_signals() -> None:
    """Block the signals that end the program, which wait() and check() look for. Ignored ones (nohup) stay ignored."""
    # If blocked, an ignored signal would stay pending and be found, too.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *(one for one in ENDS if signal.getsignal(one) != signal.SIG_IGN)})


def check() -> None:
    """Raise Interrupted if a signal has arrived."""
    pause(0)


def await_signal(numbers: "Iterable[int]", seconds: float, heeded: "Iterable[int]") -> None:
    """Wait for a signal. A time-out while stopped (^Z) leaves sigtimedwait()'s result undefined."""
    got: Any = signal.sigtimedwait(numbers, min(seconds, progress.EVERY))
    if got and got.si_signo in heeded and got.si_code in SENT:
        raise Interrupted(got.si_signo)
    progress.tick()


def pause(seconds: float) -> None:
    end = time.monotonic() + seconds
    while True:
        await_signal(ENDS, max(0.0, end - time.monotonic()), ENDS)
        if time.monotonic() >= end:
            return


def free_signals() -> None:
    """For a child before exec: signals as a shell leaves them. One since the fork ends it, and raises nothing."""
    for number in ENDS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {*ENDS, signal.SIGCHLD})


def tied() -> "Callable[[], None]":
    """As free_signals(), and the child is killed when its parent dies, even if it already has."""
    parent = os.getpid()

    def tie() -> None:
        free_signals()
        with contextlib.suppress(OSError, AttributeError):
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
    return tie


class Guard:
    """Runs a command if we die before leave(), when a pipe closes. In its own session it survives what kills us."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r word || exec "$@"', "sh", *command], stdin=subprocess.PIPE, cwd="/",
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=free_signals)
        self.pid = self._process.pid

    def leave(self) -> None:
        self._process.communicate(b"done\n")


class Process:
    """A running command in its own process group, with its output in files. It inherits the descriptors `fds`."""

    def __init__(self, command: Sequence[str], fds: Sequence[int] = ()) -> None:
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self._since = time.monotonic()
        with files.raising(MachineError, command[0]):
            self.popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err,
                start_new_session=True, preexec_fn=tied(), pass_fds=fds)
        self._seconds: Optional[float] = None

    def ended(self) -> bool:
        if self.popen.poll() is None:
            return False
        if self._seconds is None:
            self._seconds = time.monotonic() - self._since
        return True

    def end(self, patience: float = 2.0) -> None:
        """Terminate the process group; kill what is left after `patience` seconds."""
        for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 10.0)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.popen.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(seconds)
                break
        with contextlib.suppress(ProcessLookupError):   # children that outlived it
            os.killpg(self.popen.pid, signal.SIGKILL)

    def done(self, reason: str = "") -> Done:
        texts = []
        for file in (self._out, self._err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
            file.close()
        seconds = time.monotonic() - self._since if self._seconds is None else self._seconds
        return Done(None if reason else self.popen.returncode, texts[0], texts[1],
                    round(seconds, 3), reason)

    def said(self) -> str:
        """The last line on its stderr so far."""
        text = os.pread(self._err.fileno(), 1 << 16, 0).decode("utf-8", "replace").strip()
        return text.splitlines()[-1] if text else ""


def ask(command: Sequence[str], limit: float, data: bytes = b"", **options: Any) -> Done:
    """Run a command, perhaps on another host, with limits on its time and output; options are Popen's. Raises OSError."""
    since, out, err, reason = time.monotonic(), bytearray(), bytearray(), ""
    with tempfile.TemporaryFile() as given:
        given.write(data)
        given.seek(0)
        process = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **options)
    assert process.stdout and process.stderr
    with process, contextlib.ExitStack() as ended:
        ended.callback(process.kill)
        selector = ended.enter_context(selectors.DefaultSelector())
        selector.register(process.stdout, selectors.EVENT_READ, out)
        selector.register(process.stderr, selectors.EVENT_READ, err)
        try:
            while selector.get_map() and not reason:
                for key, _ in selector.select(max(0.0, since + limit - time.monotonic())):
                    piece = os.read(key.fd, 1 << 16)
                    key.data.extend(piece)
                    if not piece:
                        selector.unregister(key.fileobj)
                del err[COMPLAINT_MOST:]
                if len(out) > ANSWER_MOST:
                    reason = f"more than {ANSWER_MOST >> 10} KiB came, which is the most that is read"
                elif selector.get_map() and time.monotonic() >= since + limit:
                    reason = f"no answer within {limit:g} s"
            if not reason:
                process.wait(max(0.1, since + limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            reason = f"no end within {limit:g} s"
    texts = [said.decode("utf-8", "replace") for said in (out, err)]
    return Done(None if reason else process.returncode, texts[0], texts[1], round(time.monotonic() - since, 3), reason)


def run_all(commands: "Sequence[Sequence[str]]", limit: float, patience: float = 2.0,
            heed: bool = True, fds: Sequence[int] = ()) -> "List[Done]":
    """Run commands in parallel. The time limit kills them, and with `heed` a signal, which raises Interrupted."""
    running: "List[Process]" = []
    try:
        for command in commands:
            running.append(Process(command, fds))
        wait(running, time.monotonic() + limit, ENDS if heed else ())
    except BaseException:
        for process in running:
            process.end(patience)
        raise
    made = []
    for process in running:
        late = not process.ended()
        if late:
            process.end(patience)
        made.append(process.done(f"did not end within {limit:.0f} s" if late else ""))
    return made


def wait(running: "Sequence[Process]", end: float, heeded: "Sequence[int]" = ENDS) -> None:
    """Wait until all have ended, the time is up, or a signal arrives."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})   # if not blocked, a signal with the default action "ignore" would be lost
    try:
        while not all([process.ended() for process in running]):
            left = end - time.monotonic()
            if left <= 0:
                return
            await_signal({*heeded, signal.SIGCHLD}, left, heeded)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if any(-(process.popen.returncode or 0) in heeded for process in running):
        check()     # ^C was sent to both, before it had its own session


def run(command: Sequence[str], limit: float, patience: float = 2.0, heed: bool = True,
        fds: Sequence[int] = ()) -> Done:
    return run_all([command], limit, patience, heed, fds)[0]


def start_time(pid: int) -> int:
    """The start time of a process in clock ticks since boot; 0 if it is dead."""
    words = files.content(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return 0 if not words or words[0] in "ZX" else int(words[19])


def find(program: str) -> Optional[str]:
    """The path of a program, also searching the directories of system administration."""
    path = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"
    return shutil.which(program, path=path)


def netserver_beside(netperf: str) -> str:
    """The netserver in the directory of a netperf, else the one in PATH."""
    place = os.path.dirname(os.path.realpath(find(netperf) or netperf))
    beside = os.path.join(place, "netserver")
    found = beside if os.access(beside, os.X_OK) else find("netserver")
    if not found:
        raise MachineError(f"no netserver beside {netperf} or in PATH: --netserver names one")
    return found


def ours(name: str, variable: str, *places: str, here: str = "") -> str:
    """The program that an environment variable names, else one beside the scripts (built or installed), else ""."""
    named = os.environ.get(variable)
    here = here or os.path.dirname(os.path.realpath(sys.argv[0]))
    for path in [named] if named else [os.path.join(here, "..", place, name) for place in places]:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    return ""


def built_netperf(scripts: str) -> str:
    """The netperf of the build tree to which these scripts belong, else the one in PATH."""
    return ours("netperf", "", "src", "build/src", here=scripts) or "netperf"


def netlab(scripts: str) -> str:
    """The netlab next to the scripts, else the one in PATH."""
    beside = os.path.join(scripts, "netlab")
    return beside if os.access(beside, os.X_OK) else find("netlab") or "netlab"


def version(program: str) -> str:
    for option in ("--version", "-V"):
        with contextlib.suppress(MachineError):
            done = run([program, option], limit=10)
            if done.exit == 0 and done.stdout.strip():
                return done.stdout.strip().splitlines()[0]
    return ""


@functools.lru_cache(maxsize=None)
def knows(program: str, option: str) -> bool:
    """Whether a program's --help lists an option, and so whether its build has it. Each program is asked once."""
    done = run([program, "--help=all"], limit=10)
    if done.exit != 0:  # not every program has --help
        done = run([program, "--help"], limit=10)
    text = re.sub(r"\n {20,}", " ", done.stdout + done.stderr)  # options whose description begins on the next line
    found = re.search(rf"(?<!\S){re.escape(option)}(?![\w-])(.*)", text)
    return found is not None and "not in this build" not in found[1]


def port(known: "Dict[str, Any]") -> str:
    """The port of the netserver at a point of a plan, without netperf's own port after a comma."""
    return str(known.get("port") or LAB_PORT).partition(",")[0]


def silent(host: str, port: "int | str") -> str:
    """Why no connection can be made to this port; empty if it can."""
    try:
        socket.create_connection((host, port), 5).close()
    except (OSError, OverflowError, UnicodeError) as fault:
        return f"{host} port {port}: {getattr(fault, 'strerror', None) or fault}"
    return ""


class Daemon(Process):
    """A netserver of our own, in the foreground until end()."""

    def __init__(self, prefix: Sequence[str], program: str, args: Sequence[str], port: int) -> None:
        super().__init__([*prefix, program, "-D", "-p", str(port), *args])
        self._port, self._name = port, os.path.basename(program)[:15]
        try:
            self._await()
        except BaseException:
            self.end()
            raise

    def _await(self) -> None:
        end = time.monotonic() + 20
        while not self._listens():
            if self.ended():
                raise MachineError(f"netserver ended at once: {self.said()}")
            if time.monotonic() > end:
                raise MachineError("netserver does not listen after 20 s")
            pause(0.02)

    def _listens(self) -> bool:
        """Whether the kernel lists its socket, in the process's own network namespace."""
        home = f"/proc/{self.popen.pid}"
        rows = [row.split() for table in ("tcp", "tcp6") for row in files.content(f"{home}/net/{table}").splitlines()[1:]]
        return files.content(f"{home}/comm").strip() == self._name and any(
            row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == self._port for row in rows)


class Place(contextlib.AbstractContextManager):     # type: ignore[type-arg]
    """Where runs take place: what to put before netperf, and a daemon. As a context manager, it is left at the end."""
    own = False     # whether the daemon is ours
    prefix: "List[str]" = []
    typed: "List[str]" = []     # the same for users to copy
    way: Any = None             # a fleet.Way, if it is on another host
    options: "List[str]" = []   # further options for netperf
    link = ""       # the link, in netlab's words, after ready()

    def ready(self, lab: "Optional[List[str]]", family: int, known: "Optional[Dict[str, Any]]" = None) -> None:
        """Set up everything for a run at the point `known`. Raises MachineError."""

    def prepare(self, knowns: "Sequence[Dict[str, Any]]") -> "List[str]":
        """Set up simultaneous runs, in parallel if that takes time. Returns for each why it failed, or ""."""
        return [""] * len(knowns)

    def unreached(self, end: str) -> str:
        """Why this end of a failed run can't be reached; empty if it can or if that is unknown."""
        return ""

    def leave(self) -> None:
        """Undo what ready() did."""

    def __exit__(self, *_: object) -> None:
        self.leave()


class Loopback(Place):
    """Daemons on one loopback port, one for each IP version that a run needs."""
    own = True

    def __init__(self, netserver: str, args: Sequence[str] = ()) -> None:
        self._netserver, self._args = netserver, list(args)
        self._daemons: "Dict[int, Daemon]" = {}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])

    def ready(self, lab: "Optional[List[str]]", family: int, known: "Optional[Dict[str, Any]]" = None) -> None:
        daemon = self._daemons.get(family)
        if not daemon or daemon.ended():
            self._daemons[family] = Daemon([], self._netserver, [*LOOPBACK[family], *self._args],
                                            self.port)

    def leave(self) -> None:
        for daemon in self._daemons.values():
            daemon.end()


def lab_options(words: Sequence[str]) -> "Dict[str, str]":
    """Parse options of netlab up into a dict; those without a value have an empty one."""
    found: "Dict[str, str]" = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            found[name] = value
        else:
            found[name] = word
    return found


def lab_changes(old: Sequence[str], new: Sequence[str]) -> "Optional[List[str]]":
    """Options of netlab set for the change; None if other options, or an MTU that toggles IPv6, need a new lab."""
    before, after = lab_options(old), lab_options(new)
    changed = [name for name in after if before.get(name) != after[name]]
    if before.keys() != after.keys() or not set(changed) <= set(LAB_CHANGES):
        return None
    if "--mtu" in changed:
        sizes = [one["--mtu"] for one in (before, after)]
        if not all(size.isdigit() for size in sizes) or len(
                {int(size) >= IPV6_LEAST_MTU for size in sizes}) > 1:
            return None
    return [word for name in changed for word in (name, after[name])]


class LabPlace(Place):
    """A netlab lab named after this process. It is changed for new options, or if necessary recreated."""
    own = True

    def __init__(self, netlab: str, netserver: str, args: Sequence[str] = ()) -> None:
        self._netlab, self._netserver, self._args = netlab, netserver, list(args)
        self.name = f"{LAB_PREFIX}{os.getpid()}"
        self.prefix, self.far = (["ip", "netns", "exec", f"netlab-{self.name}-{end}"] for end in ("client", "server"))
        self.typed = [netlab, "exec", "--name", self.name, "client"]    # starting it takes 0.1 s of processor time
        self._up: "Optional[List[str]]" = None
        self._daemon: Optional[Daemon] = None
        self._guard: Optional[Guard] = None
        self._clean()

    def _clean(self) -> None:
        """Remove labs that killed sweeps left behind, and one with our own name."""
        names = " ".join(glob.glob(f"/run/netns/netlab-{LAB_PREFIX}*"))
        for pid in sorted(set(re.findall(rf"netlab-{LAB_PREFIX}([0-9]+)-(?:client|server)(?!\S)", names))):
            if int(pid) == os.getpid() or not is_sweep(int(pid)):
                self._call("down", "--name", f"{LAB_PREFIX}{pid}")

    def _call(self, *args: str) -> str:
        """Run netlab and return the link's properties from its first line, "NAME: 100 Mbit/s, ... (veth)". On a
        signal, an up is terminated, which undoes it; a down may finish."""
        done = run([self._netlab, *args], limit=60, patience=20, heed=args[0] != "down")
        if done.exit != 0:
            raise MachineError(f"netlab {args[0]}: {done.complaint()}")
        return done.stdout.partition("\n")[0].partition(": ")[2]

    def ready(self, lab: "Optional[List[str]]", family: int, known: "Optional[Dict[str, Any]]" = None) -> None:
        if lab != self._up and not self._change(lab):
            self.leave()
            self._guard = Guard(os.path.abspath(self._netlab), "down", "--name", self.name)
            self.link = self._call("up", "--name", self.name, *(lab or []))
            self._up = lab
        if not self._daemon or self._daemon.ended():
            self._daemon = Daemon(self.far, self._netserver, self._args, LAB_PORT)

    def _change(self, lab: "Optional[List[str]]") -> bool:
        """Change the running lab into the wanted one; False if that is impossible."""
        changes = lab_changes(self._up, lab) if self._up is not None and lab is not None else None
        if not changes:
            return False
        try:
            self.link = self._call("set", "--name", self.name, *changes)
        except MachineError:
            return False
        self._up = lab
        return True

    def leave(self) -> None:
        if self._daemon:
            self._daemon.end()
        self._daemon = self._up = None
        self.link = ""
        names = [f"/run/netns/netlab-{self.name}-{end}" for end in ("client", "server")]
        if any(map(os.path.exists, names)):
            self._call("down", "--name", self.name)
        if self._guard:
            self._guard.leave()
        self._guard = None


def is_sweep(pid: int) -> bool:
    """Whether this pid is a netsweep or netgate; if not, the one that had it is dead."""
    words = files.content(f"/proc/{pid}/cmdline").split("\0")
    return any(os.path.basename(word) in ("netsweep", "netgate") for word in words[:4])


shown = shlex.join      # a command for users to copy into a shell
