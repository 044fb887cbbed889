#!/usr/bin/env python3
"""What held up an end is in its evidence: a cgroup quota, a requested pause; clean.py has stopped processes. Planted at
the client and at the daemon's session. Judged are counts, and times that nothing can shorten."""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, List, Sequence, Tuple

import explain_harms
import lib

QUOTA = 1000        # us of PERIOD: a stream uses it up on any machine
PERIOD = 20000


def command(port: int, document: Path, *options: str) -> List[str]:
    return lib.command(port, f"--json={document}", *options)


def ends(document: Path) -> Tuple[Any, Any]:
    run = lib.document(document.read_text())
    return tuple(run["iterations"][0][end] or {} for end in ("near", "far"))


def some(bag: Any, *prefixes: str) -> str:
    return str({key: value for key, value in bag.items() if key.startswith(prefixes)}) + str(bag.get("unread"))


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


@contextmanager
def group() -> Iterator[Sequence[str]]:
    """A cgroup with a quota, and the command prefix that runs a command in it."""
    top, new = explain_harms.cgroup_cpu()
    if top is None:
        raise LookupError("no control groups with quotas are mounted")
    place = top / f"plumbline-{os.getpid()}"
    place.mkdir()
    try:
        explain_harms.limit(place, new, QUOTA, PERIOD)
        yield explain_harms.join(place)
    finally:
        explain_harms.remove(place)


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
        for done in pool.submit(quotas, report, place), pool.submit(pause, report, place):
            done.result()


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    lib.main(suite)
