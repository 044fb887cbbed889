"""UNIX domain tests: between users, with nothing left behind, on one machine only."""

import os
import re
import signal
import tempfile
from functools import partial
from pathlib import Path
from typing import List, Sequence

import lib
import netns

LENGTHS = {"STREAM_STREAM": 3000000, "STREAM_RR": 300, "DG_STREAM": 300000, "DG_RR": 300}
FLOWS = 5


def client(port: int, test: str, *args: str, host: str = "127.0.0.1") -> List[str]:
    return lib.command(port, "-t", test, *args, host=host)


def places(daemon: lib.Daemon) -> List[Path]:
    """The directories that it has made, according to its log."""
    return [Path(path).parent for path in re.findall(r"data at (/\S+)", daemon.log())]


def must_be_clean(daemon: lib.Daemon, tests: int) -> None:
    made = places(daemon)
    assert len(made) == tests, f"{len(made)} directories: {daemon.log()}"
    assert lib.wait_for(lambda: not any(map(Path.exists, made)), 60), f"left behind: {made}"


def runs(daemon_as: Sequence[str], client_as: Sequence[str]) -> None:
    """Every test, timed and counted, with one flow and several."""
    with lib.Daemon(prefix=daemon_as, args=["-d"]) as daemon:
        for test, count in LENGTHS.items():
            for length in ((str(-count),), ("1", *lib.PACED), (str(-count), "--flows", str(FLOWS))):
                got = lib.run([*client_as, *client(daemon.port, test, "-l", *length)], timeout=20)
                assert got.rc == 0 and not got.err, f"{test} -l {length}: {got.rc}: {got.err!r}"
                assert got.seconds < 4 + lib.SLACK, f"{test} -l {length}: {got.seconds:.1f} s"
        must_be_clean(daemon, 3 * len(LENGTHS))


def names_of(pid: int) -> List[Path]:
    """The paths of a process's sockets."""
    inodes = {os.readlink(fd)[8:-1] for fd in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [row.split() for row in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return [Path(row[7]) for row in rows if len(row) > 7 and row[6] in inodes]


def killed(test: str, flows: int) -> None:
    """A client is killed: the daemon's files stay, and the session stops sending."""
    with lib.Daemon(args=["-d"]) as daemon:
        with lib.Started(client(daemon.port, test, "-l", "300", "--flows", str(flows))) as started:
            assert started.measuring() and lib.wait_for(lambda: places(daemon), 60), f"it does not begin: {started.said()}"
            own = names_of(started.pid)
            assert len(own) == flows * (test == "DG_RR"), f"names of its own: {own}"
            started.signal(signal.SIGKILL)
            for path in own:  # removed by a process that watched the client
                assert lib.wait_for(lambda path=path: not path.parent.exists(), 60), f"left: {path}"
            assert lib.wait_for(lambda: not daemon.children(), 20), "the session goes on"
        must_be_clean(daemon, 1)


def interrupted(test: str) -> None:
    """The daemon, whose send buffer is full of responses that are not read any more, learns of the end."""
    with lib.Daemon() as daemon:
        got = lib.interrupted(client(daemon.port, test, "-l", "300", "--flows", "20", "--", "-S", "1"))
        assert got.rc == 0 and not got.err, got


def ended_daemon(test: str) -> None:
    """SIGTERM in the middle of a test: the client reports it, and the socket is removed."""
    with tempfile.TemporaryFile() as log:
        port = lib.free_port()
        with lib.Started([lib.netserver(), "-D", "-d", "-p", str(port)], stderr=log) as daemon:
            def told() -> List[str]:
                text = os.pread(log.fileno(), 1 << 16, 0).decode()
                return re.findall(r"data at (/\S+)/s", text)

            assert lib.wait_for(lambda: "listening" in os.pread(log.fileno(), 999, 0).decode(), 60)
            with lib.Started(client(port, test, "-l", "300")) as started:
                assert started.measuring() and told(), "the test does not begin"
                daemon.signal(signal.SIGTERM)
                assert daemon.finish(60).rc == 0
                got = started.finish(60)
                assert got.rc, "a client without its daemon succeeds"
                lib.error_line(got, "netperf", test)
            assert not any(map(os.path.exists, told())), told()


def from_elsewhere() -> None:
    """Another machine's client is refused, even if it sees the same files."""
    with netns.Lab() as lab, lib.Daemon(prefix=lab.server, args=["-d"]) as daemon:
        for test in LENGTHS:
            got = lib.run([*lab.client, *client(daemon.port, test, host=netns.IPV4)], timeout=20)
            assert got.rc, f"{test}: served"
            lib.error_line(got, "netperf", test, "Permission denied")
        assert "from another machine" in daemon.log() and not places(daemon), daemon.log()
        lib.must([*lab.server, *client(daemon.port, "DG_RR", "-l", "-10", host=netns.IPV4)], timeout=20)


def suite(report: lib.Report) -> None:
    lib.netperf(), lib.netserver()
    nobody = lib.as_nobody()
    report.case("one user", partial(runs, [], []))
    if not report.lacks("another user", "" if nobody else "not root"):
        report.case("another user's daemon", partial(runs, nobody, []))
        report.case("another user's client", partial(runs, [], nobody))
    report.cases([(f"killed client: {test}", partial(killed, test, 1)) for test in LENGTHS], 4)
    report.cases([(f"killed client, {FLOWS} flows: {test}", partial(killed, test, FLOWS)) for test in LENGTHS], 4)
    report.cases([(f"interrupted: {test}", partial(interrupted, test)) for test in LENGTHS], 4)
    report.cases([(f"ended daemon: {test}", partial(ended_daemon, test)) for test in LENGTHS], 4)
    report.case("from another machine", from_elsewhere, unless=lib.no_lab())


if __name__ == "__main__":
    lib.main(suite)
