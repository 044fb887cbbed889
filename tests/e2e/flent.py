"""flent, which runs many netperfs at once and plots their output: some of its tests for five seconds each, with our
programs on loopback. It must find data for all of its series and plot them.

    flent.py [--real]

--real runs the real netperf 2.7.0 instead of ours. flent is the installed one, else Debian's package, kept in
$NP_FLENT_DIR or the user's cache.
"""

import csv
import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Dict, List, NamedTuple

import lib

HOST = "127.0.0.1"
LENGTH = 5      # seconds of a test
DELAY = 1       # seconds before and after it in which only latency is measured
STREAMS = 4


class Test(NamedTuple):
    name: str
    plot: str
    series: int  # at least


TESTS = (
    Test("tcp_download", "totals", 2),
    Test("tcp_upload", "totals", 2),
    Test("tcp_nup", "totals", STREAMS + 1),
    Test("tcp_ndown", "totals", STREAMS + 1),
    Test("rrul", "all_scaled", 12),
    Test("rrul_be", "all_scaled", 12),
    Test("udp_flood", "totals", 2),
)


class Flent:
    """flent, and an environment in which it finds our programs."""

    def __init__(self, command: List[str], env: Dict[str, str]) -> None:
        self.command, self.env = command, env

    def plots(self) -> bool:
        with lib.Started([self.command[0] if len(self.command) > 1 else "python3", "-c",
                          "import matplotlib"], env=self.env) as started:
            return started.finish(60).rc == 0


def find(bin_dir: str) -> Flent:
    """Skips the suite if it is not available."""
    env = {**os.environ, "PATH": f"{bin_dir}:{os.environ['PATH']}", "MPLBACKEND": "agg"}
    if shutil.which("flent"):
        return Flent(["flent"], env)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    place = Path(os.environ.get("NP_FLENT_DIR") or cache / "plumbline" / "flent")
    got = lib.run([str(lib.SCRIPTS / "fetch"), "flent", str(place)], timeout=300)
    if got.rc != 0:
        lib.skip((got.err.strip().splitlines() or ["fetch flent took too long"])[-1])
    env["PYTHONPATH"] = f"{place}/usr/lib/python3/dist-packages:{place}/python"
    env["PATH"] += f":{place}/usr/bin"
    return Flent(["python3", f"{place}/usr/bin/flent"], env)


def measure(flent: Flent, port: int, test: Test) -> str:
    """Its data file has all series, and it prints no warnings or errors."""
    with tempfile.TemporaryDirectory() as place:
        command = [*flent.command, test.name, "-H", HOST, "--netperf-control-port", str(port),
                   "-l", str(LENGTH), "-d", str(DELAY), "-D", place, "-f", "csv",
                   "-o", f"{place}/data.csv"]
        for name in ("upload_streams", "download_streams"):
            command += ["--test-parameter", f"{name}={STREAMS}"]
        with lib.Started(command, env=flent.env, cwd=place) as started:
            got = started.finish(60)
        said = got.out + got.err
        if "iperf" in said.lower() or "No suitable ping tool" in said:
            raise lib.Skipped(said.strip().splitlines()[-1])
        assert got.rc == 0, f"status {got.rc}: {said}"
        assert "WARNING" not in said and "ERROR" not in said, said
        points = check_series(Path(place) / "data.csv", test.series)
        if flent.plots():
            plot(flent, test, Path(place))
        return points


def check_series(data: Path, least: int) -> str:
    """At least half of the steps of the test have a value, in every series."""
    with data.open(newline="") as text:
        rows = list(csv.DictReader(text))
    names = list(rows[0])[1:]
    assert len(names) >= least, f"series: {names}"
    during = [row for row in rows if DELAY < float(list(row.values())[0]) < DELAY + LENGTH]
    for name in names:
        filled = sum(bool(row[name]) for row in during)
        assert filled >= len(during) / 2, f"{name}: {filled} points in {len(during)} steps"
    return f"{len(names)} series of {len(during)} points"


def plot(flent: Flent, test: Test, place: Path) -> None:
    data = next(place.glob("*.flent.gz"))
    with lib.Started([*flent.command, "-i", str(data), "-p", test.plot, "-o",
                      f"{place}/plot.png"], env=flent.env, cwd=place) as started:
        got = started.finish(60)
    said = [line for line in (got.out + got.err).splitlines()
            if "ERROR" in line or "WARNING" in line and "layout" not in line]  # about matplotlib's version
    assert got.rc == 0 and not said, f"status {got.rc}: {said}"
    assert (place / "plot.png").stat().st_size > 5000, "an empty plot"


def takes_the_batch_file(flent: Flent) -> None:
    with tempfile.TemporaryDirectory() as place, lib.Started(
            [*flent.command, "-B", str(lib.TOP / "deploy" / "flent.batch"), "-b", "ALL", "--batch-dry"], env=flent.env, cwd=place) as started:
        got = started.finish(60)
    assert got.rc == 0 and "Would have run 2 tests" in got.out + got.err, got


def suite(report: lib.Report) -> None:
    if "--real" in sys.argv:
        place = lib.real_netperf()
        os.environ.update(NETPERF=str(place / "netperf"), NETSERVER=str(place / "netserver"))
    with tempfile.TemporaryDirectory() as bin_dir:
        (Path(bin_dir) / "netperf").symlink_to(lib.netperf())
        flent = find(bin_dir)
        if not flent.plots():
            report.skip("plots", "no matplotlib")
        report.case("a batch file", partial(takes_the_batch_file, flent))
        with lib.Daemon(grace=None) as daemon:
            for test in TESTS:
                report.case(test.name, partial(measure, flent, daemon.port, test))


if __name__ == "__main__":
    lib.main(suite)
