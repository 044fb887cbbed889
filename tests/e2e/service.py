"""netserver as a service: started by a manager that passes sockets and is told the state; asked for its status; with
metrics files.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterator, Optional, Sequence, Tuple

import lib

AT_ONCE = 4
PATIENCE = 4.0 if lib.QUICK else 1.0  # sanitizers stretch time limits
SOON = 20.0 * PATIENCE                # for what should happen at once
METRICS_S = 10.0                      # between updates of the metrics
STRANGER = 100000 + os.getpid() % 100000  # a user without files or processes

Case = Tuple[str, Callable[[], Optional[str]]]


def must_serve(port: int, host: str = "127.0.0.1") -> None:
    got = lib.run(lib.command(port, "-t", "TCP_RR", "-l", "-10", host=host), timeout=20)
    assert got.rc == 0 and not got.err, f"status {got.rc}: {got.err!r}"


def until(condition: Callable[[], bool], what: str, seconds: float = SOON) -> None:
    assert lib.wait_for(condition, seconds), f"{what}: not within {seconds:.0f} s"


@contextmanager
def place() -> "Iterator[str]":
    """A directory in which a daemon that was started by root, and has become nobody, may write."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield name


# ---- a service manager --------------------------------------------------------------------------

class Manager:
    """Acts as systemd: passes sockets, and receives notifications."""

    def __init__(self, place: Path, abstract: bool) -> None:
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        name = f"@plumbline-test-{place.name}" if abstract else str(place / "notify")
        self._told.bind(name.replace("@", "\0"))
        if not abstract:
            os.chmod(name, 0o777)  # as systemd's is
        self.environment = {**os.environ, "NOTIFY_SOCKET": name, "LISTEN_FDNAMES": "control"}

    def __enter__(self) -> "Manager":
        return self

    def __exit__(self, *_: object) -> None:
        self._told.close()

    def start(self, listeners: Sequence[socket.socket], *args: str) -> lib.Started:
        """Start a command with the sockets as descriptors 3 and up; a shell sets them up, and LISTEN_PID."""
        fds = [s.fileno() for s in listeners]
        high = [fd + 100 for fd in fds]  # out of the way of 3 and up
        for fd, copy in zip(fds, high):
            os.dup2(fd, copy)
        moves = " ".join(f"{3 + i}<&{copy} {copy}<&-" for i, copy in enumerate(high))
        script = f'export LISTEN_PID=$$ LISTEN_FDS={len(fds)}; exec "$@" {moves}'
        try:
            return lib.Started(["bash", "-c", script, "start", lib.netserver(), *args],
                               env=self.environment, pass_fds=high)
        finally:
            for copy in high:
                os.close(copy)

    def hears(self, seconds: float = SOON) -> "Dict[str, str]":
        """The next notification as a dict."""
        self._told.settimeout(seconds)
        lines = self._told.recv(4096).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def hears_nothing(self, seconds: float) -> bool:
        try:
            self.hears(seconds)
        except socket.timeout:
            return True
        return False


@contextmanager
def managed(abstract: bool = False) -> "Iterator[Manager]":
    with place() as name, Manager(Path(name), abstract) as manager:
        yield manager


def listener(family: int = socket.AF_INET) -> socket.socket:
    return socket.create_server(("127.0.0.1" if family == socket.AF_INET else "::1", 0),
                                family=family)


def port_of(s: socket.socket) -> int:
    return int(s.getsockname()[1])


def handed_down(abstract: bool) -> None:
    """It serves on these sockets only, reports its state, and leaves the sockets to the manager."""
    with managed(abstract) as manager, listener() as first, listener() as second:
        with manager.start([first, second], "-D") as daemon:
            assert manager.hears().get("READY") == "1"
            must_serve(port_of(first))
            must_serve(port_of(second))
            daemon.signal(signal.SIGHUP)
            told = manager.hears()
            assert told.get("RELOADING") == "1", told
            now = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6
            assert 0 <= now - int(told["MONOTONIC_USEC"]) < 60e6, told
            assert manager.hears().get("READY") == "1"
            must_serve(port_of(first))
            daemon.signal(signal.SIGTERM)
            assert manager.hears().get("STOPPING") == "1"
            got = daemon.finish(SOON)
            assert got.rc == 0, f"status {got.rc}: {got.err!r}"
            assert "Starting netserver" not in got.out, got.out
        # A client that comes while no daemon runs waits for the next one.
        with lib.Started(lib.command(port_of(first), "-t", "TCP_RR", "-l", "-10")) as client, \
                manager.start([first], "-D"):
            got = client.finish(60)
            assert got.rc == 0, f"status {got.rc}: {got.err!r}"


def handed_down_ipv6() -> None:
    with managed() as manager, listener(socket.AF_INET6) as s, manager.start([s], "-D"):
        assert manager.hears().get("READY") == "1"
        must_serve(port_of(s), "::1")


def handed_down_without_standard_streams() -> None:
    """With descriptors 0 to 2 closed: filling them must not replace the sockets."""
    with managed() as manager, listener() as s:
        copy = os.dup(s.fileno())
        script = f'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@" 3<&{copy} {copy}<&- <&- >&- 2>&-'
        with lib.Started(["bash", "-c", script, "start", lib.netserver(), "-D"],
                         env=manager.environment, pass_fds=[copy]):
            os.close(copy)
            assert manager.hears().get("READY") == "1"
            must_serve(port_of(s))


def handed_down_in_the_background() -> None:
    """When it goes into the background, it closes all inherited descriptors except these."""
    with managed() as manager, listener() as s, manager.start([s]) as starter:
        got = starter.finish(SOON)
        assert got.rc == 0, f"status {got.rc}: {got.err!r}"
        assert manager.hears().get("READY") == "1"
        try:
            must_serve(port_of(s))
        finally:
            lines = lib.run([lib.netserver(), "--status", "-p", str(port_of(s))], SOON).out
            os.kill(int(re.findall(r"process (\d+)", lines)[0]), signal.SIGTERM)
        assert manager.hears().get("STOPPING") == "1"


def handed_down_by_systemd() -> str:
    """The same with systemd itself, which starts the daemon for the first client."""
    activate = shutil.which("systemd-socket-activate")
    if not activate:
        return "no systemd-socket-activate: not tried"
    port = lib.free_port()
    with lib.Started([activate, "-l", f"127.0.0.1:{port}", "--fdname=control", lib.netserver(),
                      "-D"]) as daemon:
        until(lambda: lib.listening(port), "listens")
        must_serve(port)
        shown = lib.run([lib.netserver(), "--status", "-p", str(port)], SOON).out
        assert f"process {daemon.pid}, " in shown, shown
        return "served"


def not_for_us() -> None:
    """Sockets for another process are ignored: it listens by itself."""
    port = lib.free_port()
    with listener(), lib.Started(
            [lib.netserver(), "-D", "-p", str(port)],
            env={**os.environ, "LISTEN_PID": "1", "LISTEN_FDS": "1"}) as daemon:
        until(lambda: lib.run([lib.netserver(), "--status", "-p", str(port)], SOON).rc == 0,
              "listens")
        must_serve(port)
        daemon.signal(signal.SIGTERM)
        assert daemon.finish(SOON).rc == 0


def useless_sockets() -> None:
    """One line names the unusable socket, and it does not start."""
    with managed() as manager, listener() as s, \
            socket.create_connection(s.getsockname()) as conn, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        for bad, says in ((conn, "Accept=no"), (udp, "not a TCP or VSOCK stream socket")):
            with manager.start([s, bad], "-D") as daemon:
                got = daemon.finish(SOON)
            assert got.rc == 1, f"status {got.rc}"
            assert says in lib.error_line(got, "netserver", "LISTEN_FDS", "descriptor 4")
        assert manager.hears_nothing(0.1), "told a state without having started"


# ---- status -------------------------------------------------------------------------------------

def status(port: int, *prefix: str) -> lib.Result:
    return lib.run([*prefix, lib.netserver(), "--status", "-p", str(port)], SOON)


def tells_status() -> None:
    with lib.Daemon() as daemon:
        got = status(daemon.port)
        assert got.rc == 0 and not got.err, f"status {got.rc}: {got.err!r}"
        assert f"netserver on port {daemon.port}, process {daemon.pid}, up " in got.out, got.out
        for line in ("connections", "sessions", "memory", "tests", "refused"):
            assert re.search(f"^{line} ", got.out, re.M), f"no {line}: {got.out}"
        must_serve(daemon.port)
        assert re.search(r"^connections +1$", status(daemon.port).out, re.M)
    got = status(daemon.port)
    assert got.rc != 0 and str(daemon.port) in lib.error_line(got, "netserver", "status")


def no_status() -> None:
    with lib.Daemon(args=["--no-status"]) as daemon:
        assert status(daemon.port).rc != 0
        must_serve(daemon.port)


def status_for_strangers() -> None:
    stranger = ["setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--clear-groups"]
    with tempfile.TemporaryDirectory() as name, lib.Daemon() as daemon:
        Path(name).chmod(0o755)
        program = lib.copied(lib.netserver(), name)  # other users may have no access to its directory
        got = lib.run([*stranger, program, "--status", "-p", str(daemon.port)], SOON)
        assert got.rc != 0 and not got.out, f"status {got.rc}: {got.out!r}"
        lib.error_line(got, "netserver", "is for root")
        assert status(daemon.port).rc == 0


# ---- metrics ------------------------------------------------------------------------------------

HELP = re.compile(r"# HELP (netserver_[a-z_]+) \S.*")
TYPE = re.compile(r"# TYPE (netserver_[a-z_]+) (counter|gauge)")
SAMPLE = re.compile(r'(netserver_[a-z_]+)\{((?:[a-z]+="[^"\\\n]*",?)+)\} (\d+|\+Inf)')


def series(text: str) -> "Dict[str, float]":
    """A strict parser of the text format 0.0.4: every family has HELP, TYPE and samples, once."""
    found: Dict[str, float] = {}
    kinds: Dict[str, str] = {}
    family = ""
    assert text.endswith("\n"), "the last line does not end"
    for line in text.splitlines():
        as_help, as_type, sample = (r.fullmatch(line) for r in (HELP, TYPE, SAMPLE))
        if as_help:
            family = as_help[1]
            assert family not in kinds, f"{family} twice"
            kinds[family] = ""
        elif as_type:
            assert as_type[1] == family and not kinds[family], line
            kinds[family] = as_type[2]
            assert (as_type[2] == "counter") == family.endswith("_total"), line
        else:
            assert sample and sample[1] == family and kinds[family], line
            key = f"{family[len('netserver_'):]}{{{sample[2]}}}"
            assert key not in found, f"{key} twice"
            found[key] = float(sample[3])
    assert {key.partition("{")[0] for key in found} == {k[len("netserver_"):] for k in kinds}
    return found


def metric(path: Path, name: str) -> float:
    values = {key.partition("{")[0]: value for key, value in series(path.read_text()).items()}
    return values[name]


def promtool(text: str) -> str:
    if not shutil.which("promtool"):
        return "no promtool"
    got = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                         capture_output=True, timeout=20, check=False)
    assert got.returncode == 0, got.stdout + got.stderr
    return "promtool has no complaint"


def writes_metrics() -> str:
    """Every 10 s and at the end, each time as a new file, so that no reader sees half of it."""
    with place() as name, ExitStack() as stack:
        path = Path(name) / "netserver.prom"
        daemon = stack.enter_context(lib.Daemon(args=["--metrics-file", str(path)], grace=None))
        until(path.exists, "the first metrics")
        text = path.read_text()
        assert f'port="{daemon.port}"' in text, text
        assert metric(path, "sessions_total") == 0
        assert abs(metric(path, "start_time_seconds") - time.time()) < 60
        first = path.stat().st_ino
        assert path.stat().st_mode & 0o777 == 0o644
        must_serve(daemon.port)
        until(lambda: metric(path, "sessions_total") == 1, "metrics anew", METRICS_S + SOON)
        assert path.stat().st_ino != first, "the same file, which a reader may have seen half of"
        must_serve(daemon.port)
        stack.close()  # ends the daemon
        assert metric(path, "sessions_total") == 2, "the last session is not in the last metrics"
        assert os.listdir(name) == [path.name], os.listdir(name)
        return promtool(text)


def relative_names() -> None:
    """Relative to where the daemon was started, though it leaves that directory."""
    with place() as name:
        port = lib.free_port()
        lib.must(["env", "-C", name, lib.netserver(), "-p", str(port), "--metrics-file", "m"], SOON)
        shown = status(port)
        pid = int(re.findall(r"process (\d+)", shown.out)[0])
        try:
            until((Path(name) / "m").exists, "the metrics")
        finally:
            os.kill(pid, signal.SIGTERM)
            until(lambda: not Path(f"/proc/{pid}").exists(), "the end")


def no_file() -> None:
    """A pipe is not opened, which would wait for a writer. daemon.py has other names that are refused."""
    with tempfile.TemporaryDirectory() as name:
        fifo = os.path.join(name, "fifo")
        os.mkfifo(fifo)
        got = lib.run([lib.netserver(), "-D", "-p", str(lib.free_port()), "--access-file", fifo], SOON)
        assert got.rc == 1, got
        lib.error_line(got, "netserver", "--access-file", "not a regular file")


def planted_files() -> None:
    """Root opens no file in /tmp that another user created there first."""
    stranger, port = 4711, str(lib.free_port())
    with tempfile.TemporaryDirectory() as name:
        ours, tmp = Path(name) / "ours", Path(name) / "tmp"
        ours.mkdir()
        tmp.mkdir()
        tmp.chmod(0o1777)
        target = ours / "target"
        target.write_text("untouched\n")
        target.chmod(0o600)
        link, file, way = tmp / "link", tmp / "file", tmp / "way"
        link.symlink_to(target)
        way.symlink_to(ours)
        file.write_text("")
        file.chmod(0o600)
        for planted in (link, file, way):
            os.chown(planted, stranger, -1, follow_symlinks=False)
        target.chmod(0o600)
        for option in ("--access-file", "--key-file", "--passphrase-file"):
            for path, says in ((link, "symbolic link that user 4711 owns"), (file, "another user"),
                               (way / "target", "symbolic link that user 4711 owns")):
                got = lib.run([lib.netserver(), "-D", "-p", port, option, str(path)], SOON)
                assert got.rc == 1, f"{option} {path}: status {got.rc}"
                lib.error_line(got, "netserver", option, str(path), says)
        for option, path in (("--fill-dir", way), ("--metrics-file", way / "m")):
            got = lib.run([lib.netserver(), "-D", "-p", port, option, str(path)], SOON)
            assert got.rc == 1, f"{option} {path}: status {got.rc}"
            lib.error_line(got, "netserver", option, str(way), "symbolic link that user 4711 owns")
        assert target.read_text() == "untouched\n"
        assert file.read_text() == "" and sorted(os.listdir(ours)) == ["target"]


# ---- systemd ------------------------------------------------------------------------------------

def units() -> str:
    """The units are parsed without warnings, and have a low exposure."""
    build = Path(os.environ.get("top_builddir") or lib.TOP)
    made = (build / "doc/systemd/netserver.service").read_text()
    start = re.findall(r"^ExecStart=(/\S+/netserver) -D \$NETSERVER_OPTIONS$", made, re.M)
    assert len(start) == 1 and "@" not in made.replace("@system-service", "").replace(
        "~@privileged @keyring", ""), made
    analyze = shutil.which("systemd-analyze")
    if not analyze:
        return "no systemd-analyze: only that names are filled in"
    with tempfile.TemporaryDirectory() as name:
        service = Path(name) / "netserver.service"
        service.write_text(made.replace(start[0], lib.netserver()))
        shutil.copy(lib.TOP / "doc/systemd/netserver.socket", name)
        got = lib.run([analyze, "--man=no", "verify", str(service),
                       str(Path(name) / "netserver.socket")], 60)
        said = (got.out + got.err).splitlines()
        # It also reads, and warns about, units of the machine's other packages.
        ours = [line for line in said if "netserver" in line]
        assert not ours and (got.rc == 0 or said), f"status {got.rc}: {got.out}{got.err}"
        got = lib.run([analyze, "security", "--offline=true", "--threshold=15", "--no-pager",
                       str(service)], 60)
        if "unrecognized option" in got.err:
            return "an old systemd-analyze: verified only"
        assert got.rc == 0, got.out[-500:] + got.err
        return got.out.strip().splitlines()[-1]


def cases() -> Iterator[Case]:
    yield "metrics", writes_metrics
    yield "sockets handed down, a path to notify", partial(handed_down, False)
    yield "sockets handed down, an abstract name to notify", partial(handed_down, True)
    yield "a socket handed down, in the background", handed_down_in_the_background
    yield "a socket handed down, no standard streams", handed_down_without_standard_streams
    yield "a socket handed down, IPv6", handed_down_ipv6
    yield "a socket handed down by systemd", handed_down_by_systemd
    yield "sockets that cannot be served", useless_sockets
    yield "sockets of another process", not_for_us
    yield "--status", tells_status
    yield "--no-status", no_status
    yield "a pipe for a file", no_file
    yield "files named from where it starts", relative_names
    yield "systemd units", units


BY_NAME = """
ip link set lo up
"$0" || exit
"$1" -H 127.0.0.1 -P 0 -l 60 -b 1 -w 1s &
until [ "$(pgrep -cx netserver)" = 2 ] && sleep 0.5 && [ "$(pgrep -cx netserver)" = 2 ]; do sleep 0.05; done
ps -C netserver -o comm= | sort | uniq -c
all=$(pgrep -c netserver)
[ "$(pidof netserver | wc -w)" = "$all" ] && [ "$all" -ge 2 ] && echo others
killall netserver
while pgrep netserver > /dev/null; do sleep 0.05; done
wait
"""


def by_name() -> None:
    """What doc/service.md says that scripts see."""
    got = lib.run(["unshare", "-n", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-c", BY_NAME, lib.netserver(),
                   lib.netperf()], 30)
    assert re.search(r"^\s*2 netserver\nothers$", got.out, re.M), got


def suite(report: lib.Report) -> None:
    lib.netperf(), lib.netserver()  # without them the whole suite is skipped
    todo = [*cases()]
    if os.geteuid() != 0:
        report.skip("--status for strangers", "not root")
        report.skip("files that others planted", "not root")
    else:
        todo.append(("files that others planted", planted_files))
        if all(map(shutil.which, ("pgrep", "pidof", "killall"))):
            todo.append(("processes by name", by_name))
        else:
            report.skip("processes by name", "no pgrep, pidof or killall")
        todo.append(("--status for strangers", status_for_strangers))
    report.cases(todo, AT_ONCE)


if __name__ == "__main__":
    lib.main(suite)
