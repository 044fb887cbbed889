#!/usr/bin/env python3
"""What held up an end is in its evidence: a process that was stopped, a cgroup quota, a requested pause. Planted at
the client and at the daemon's session. Judged are counts, and times that nothing can shorten."""

import os
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Iterator, List, Sequence, Tuple

import lib

STOPPED = 1.0       # seconds
QUOTA = 1000        # us of PERIOD: a stream uses it up on any machine
PERIOD = 20000


def command(port: int, document: Path, *options: str) -> List[str]:
    return lib.command(port, f"--json={document}", *options)


def ends(document: Path) -> Tuple[Any, Any]:
    run = lib.document(document.read_text())
    return tuple(run["iterations"][0][end] or {} for end in ("near", "far"))


def some(bag: Any, *prefixes: str) -> str:
    return str({key: value for key, value in bag.items() if key.startswith(prefixes)}) + str(bag.get("unread"))


def stop(report: lib.Report, place: Path, at: str) -> None:
    """One end is stopped for a while, as its sampler shows."""
    document = place / f"stopped-{at}.json"
    with lib.Daemon() as daemon, \
         lib.Started(command(daemon.port, document, "-t", "TCP_STREAM", "-l", "30")) as client:
        client.measuring()
        pid = client.pid if at == "client" else daemon.children()[0]
        time.sleep(0.3)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STOPPED)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.3)
        client.signal(signal.SIGINT)
        got = client.finish(60)
    bag = ends(document)[0 if at == "client" else 1] if document.exists() else {}
    report.check(f"a {at} that was stopped: its sampler did not look for so long",
                 bag.get("sampler.gap_max_s", 0) >= 0.9 * STOPPED and bag.get("sampler.stopped_s", 0) >= STOPPED / 2,
                 f"{got} {some(bag, 'sampler.', 'flow.seconds')}")


def pause(report: lib.Report, place: Path) -> None:
    """A client that pauses is seen pausing, and the daemon's session waiting for it."""
    document = place / "paused.json"
    with lib.Daemon() as daemon:
        got = lib.run(command(daemon.port, document, "-t", "UDP_RR", "-l", "1", "-w", "200", "-b", "1"), 60)
    near, far = ends(document) if document.exists() else ({}, {})
    report.check("the pace that was asked for", near.get("flow.interval_us") == 200000 and near.get("flow.burst") == 1
                 and "flow.burst" not in far, f"{got} {some(near, 'flow.')}")
    for name, bag, doing in (("client", near, "pausing"), ("session", far, "receiving")):
        seen = sum(bag.get(f"thread.seen_{kind}", 0)
                   for kind in ("running", "sending", "receiving", "pausing", "stopped", "waiting"))
        report.check(f"a pause: the {name} was seen {doing}",
                     bag.get(f"thread.seen_{doing}", 0) > 0 and seen == bag["thread.looks"],
                     f"{got} {some(bag, 'thread.')}")


def hierarchy() -> Tuple[Path, bool]:
    """Where cgroups with quotas can be created, and whether they are of version 1."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mounted, _, kind = line.partition(" - ")
        where, options = Path(mounted.split()[4]), kind.split()[-1].split(",")
        if kind.startswith("cgroup ") and "cpu" in options:
            return where, True
        if kind.startswith("cgroup2 ") and "cpu" in (where / "cgroup.subtree_control").read_text().split():
            return where, False
    raise LookupError("no control groups with quotas are mounted")


@contextmanager
def group() -> Iterator[Sequence[str]]:
    """A cgroup with a quota, and the command prefix that runs a command in it."""
    top, v1 = hierarchy()
    place = top / f"plumbline-{os.getpid()}"
    place.mkdir()
    try:
        if v1:
            (place / "cpu.cfs_period_us").write_text(str(PERIOD))
            (place / "cpu.cfs_quota_us").write_text(str(QUOTA))
        else:
            (place / "cpu.max").write_text(f"{QUOTA} {PERIOD}")
        yield ("sh", "-c", f'echo $$ > {place}/cgroup.procs; exec "$@"', "sh")
    finally:
        lib.wait_for(lambda: not (place / "cgroup.procs").read_text(), 20)
        place.rmdir()


def throttle(report: lib.Report, place: Path, name: str, of_daemon: Sequence[str], of_client: Sequence[str],
             side: int) -> None:
    document = place / f"{name}.json"
    with lib.Daemon(prefix=of_daemon) as daemon:
        for _ in range(3):  # if other programs leave it less than its quota, the quota has no effect
            got = lib.run([*of_client, *command(daemon.port, document, "-t", "TCP_STREAM", "-l", "1")], 60)
            both = ends(document) if document.exists() else ({}, {})
            bag, other = both[side], both[1 - side]
            if bag.get("cgroup.cpu.throttled_periods"):
                break
    report.check(f"a quota of the {name}: told, and how often it held it up",
                 bag.get("cgroup.cpu.quota") == QUOTA / PERIOD and bag["cgroup.cpu.period_ms"] == PERIOD / 1000
                 and 0 < bag["cgroup.cpu.throttled_periods"] <= bag["cgroup.cpu.periods"]
                 and bag["cgroup.cpu.throttled_s"] > 0, f"{got} {some(bag, 'cgroup.', 'thread.')}")
    report.check(f"a quota of the {name}: it is not the other end's", other.get("cgroup.cpu.quota") != QUOTA / PERIOD,
                 some(other, "cgroup."))


def hidden() -> Sequence[str]:
    """The command prefix that hides cgroups from a command, as ip-netns(8) does."""
    words = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh")
    got = lib.run([*words, "true"], 20)
    if got.rc != 0:
        raise LookupError(f"no namespace of mounts: {got.err.strip()}")
    return words


def quotas(report: lib.Report, place: Path) -> None:
    try:
        with group() as inside:
            unseen = hidden()
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda args: throttle(report, place, *args), (
                    ("client", (), inside, 0), ("daemon", inside, (), 1),
                    ("daemon in a namespace", (*inside, *unseen), unseen, 1))))
    except (OSError, LookupError) as why:
        report.skip("quotas", str(why))


def suite(report: lib.Report) -> None:
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor() as pool:
        place = Path(name)
        for done in [pool.submit(body) for body in (
                partial(quotas, report, place), partial(pause, report, place),
                partial(stop, report, place, "client"), partial(stop, report, place, "session"))]:
            done.result()


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    lib.main(suite)
