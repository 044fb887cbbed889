"""Timing of interim results: `-D 0.1` for two seconds gives twenty, in each output style. Their timestamps don't
drift; each is written when it is due, after the banner, not counting the time for which the client waited for a
processor. --long runs for ten seconds, at full speed, in more tests.
"""

import os
import re
import statistics
import subprocess
import time
from functools import partial
from typing import List, NamedTuple, Sequence, Tuple

import lib

INTERVAL = 0.1
LATE = 0.08          # seconds from a timestamp until its line was read
CLASSIC = re.compile(r"Interim result: *(?P<rate>[\d.]+) (?P<unit>\S+/s) over (?P<seconds>\d+\.\d{3})"
                     r" seconds ending at (?P<ending>\d{9,}\.\d{3})")
CSV = re.compile(r" *(?P<rate>[\d.]+),(?P<unit>\S+/s),(?P<seconds>\d+\.\d{3}),"
                 r"(?P<ending>\d{9,}\.\d{3})")
KEYS = ("INTERIM_RESULT", "UNITS", "INTERVAL", "ENDING")


class Line(NamedTuple):
    """A line, and the wall-clock time when it was read."""
    text: str
    read: float = 0.0


class Interim(NamedTuple):
    rate: float
    unit: str
    seconds: float
    ending: float
    read: float


class Style(NamedTuple):
    name: str
    words: Tuple[str, ...]


STYLES = (
    Style("classic", ()),
    Style("CSV", ("-o", "THROUGHPUT,ELAPSED_TIME")),
    Style("key=value", ("-k", "THROUGHPUT,ELAPSED_TIME")),
)


def watch(cmd: List[str], seconds: float) -> Tuple[List[Line], float]:
    """All lines that a command writes into a pipe, with the times when they arrived; and for how long the command
    waited for a processor."""
    with subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as program:
        assert program.stdout
        os.set_blocking(program.stdout.fileno(), False)
        try:
            lines, waited = read_lines(program, time.monotonic() + seconds)
        finally:
            if program.poll() is None and not lib.wait_for(lambda: program.poll() is not None, 60):
                program.kill()
    assert program.returncode == 0, f"exit status {program.returncode}: {lines}"
    return lines, waited


def read_lines(program: "subprocess.Popen[bytes]", end: float) -> Tuple[List[Line], float]:
    assert program.stdout
    fd = program.stdout.fileno()
    lines: List[Line] = []
    rest, waited = b"", 0.0
    while time.monotonic() < end:
        waited = max(waited, lib.waited(program.pid))
        try:
            part = os.read(fd, 65536)
        except BlockingIOError:
            time.sleep(0.005)
            continue
        now = time.time()
        *whole, rest = (rest + part).split(b"\n")
        lines += [Line(text.decode(), now) for text in whole]
        if not part:
            return lines, waited
    raise AssertionError(f"still running: {lines[-3:]}")


def keyval(lines: Sequence[Line]) -> List[Interim]:
    """Four lines each, numbered from 0."""
    told = [(*line.text.split("=", 1), line.read) for line in lines if "]=" in line.text]
    wanted = [f"NETPERF_{key}[{number}]" for number in range(len(told) // len(KEYS)) for key in KEYS]
    assert [name for name, _, _ in told] == wanted, told
    assert all(re.fullmatch(r"[\d.]+", value) for name, value, _ in told if "UNITS" not in name), told
    return [Interim(float(rate[1]), unit[1], float(seconds[1]), float(ending[1]), ending[2])
            for rate, unit, seconds, ending in zip(*(told[n::len(KEYS)] for n in range(len(KEYS))))]


def interims(style: str, lines: Sequence[Line]) -> List[Interim]:
    if style == "key=value":
        return keyval(lines)
    found = []
    for line in lines:
        match = (CLASSIC if style == "classic" else CSV).fullmatch(line.text)
        assert match or not re.match(r"Interim|[^,]*,[^,]*/s,", line.text), f"not an interim result: {line.text!r}"
        if match:
            found.append(Interim(float(match["rate"]), match["unit"], float(match["seconds"]), float(match["ending"]),
                                 line.read))
    return found


def result(style: Style, lines: List[Line]) -> Tuple[float, float]:
    """Throughput and elapsed time."""
    if style.name == "key=value":
        values = dict(line.text.split("=", 1) for line in lines if "=" in line.text)
        return float(values["THROUGHPUT"]), float(values["ELAPSED_TIME"])
    if style.name == "CSV":
        rate, elapsed = lines[-1].text.split(",")
        return float(rate), float(elapsed)
    row = next(line.text.split() for line in reversed(lines) if len(line.text.split()) >= 5)
    # UDP_STREAM's row has messages and errors between time and rate.
    time_at = 2 if "UDP STREAM" in lines[0].text else -2
    return float(row[-1]), float(row[time_at])


def check(test: str, style: Style, port: int, length: int, pace: Sequence[str]) -> str:
    cmd = lib.command(port, "-t", test, "-l", str(length), *pace, "-D", str(INTERVAL),
                      *(["--", *style.words] if style.words else []))
    begun = time.monotonic()
    lines, waited = watch(cmd, length + 60)
    # A result that was due while the machine was stopped is late, or missing if the next one is due as well.
    lost = waited + lib.all_late_since(begun)
    late_by = lost
    found = interims(style.name, lines)
    wanted = round(length / INTERVAL)
    least = wanted - 1 - int(lost / INTERVAL)
    assert least <= len(found) <= wanted + 1, f"{len(found)} interim results, {lost:.3f} s lost"
    start = found[0].ending - found[0].seconds
    banner = lines[0]
    assert " TEST from " in banner.text and " : demo" in banner.text, banner
    assert banner.read <= found[0].ending + late_by, "the banner came after the first interim result"
    off = [one.ending - start - INTERVAL * number
           for number, one in enumerate(found[:wanted - 1], 1)]
    drift = statistics.median(off[-10:])  # a single one may be late on a busy machine
    assert abs(drift) < INTERVAL + lost, f"the stamps have drifted by {drift:.3f} s"
    astray = sum(abs(one) > INTERVAL + lost for one in off)
    assert astray <= wanted // 10, f"{astray} stamps are an interval from their time: {off}"
    late = sorted(one.read - one.ending for one in found)
    assert late[0] >= -0.002, f"a line was read {-late[0]:.3f} s before its stamp"
    # The last one has the rest, after the far end's results.
    slow = sum(one.read - one.ending > LATE + late_by for one in found[:wanted - 1])
    assert slow <= wanted // 10, f"{slow} lines were late, the latest by {late[-1]:.3f} s"
    rate, elapsed = result(style, lines)
    seconds = sum(one.seconds for one in found)
    assert abs(seconds - elapsed) <= 0.02 + 0.0005 * len(found), f"{seconds} s of {elapsed}"
    work = sum(one.rate * one.seconds for one in found)
    assert abs(work / (rate * elapsed) - 1) <= 0.03, f"{work} of {rate * elapsed}"
    return (f"{len(found)} results, drift {1000 * drift:.0f} ms, read"
            f" {1000 * statistics.median(late):.0f} ms behind their stamps")


def measure(report: lib.Report, runs: "Sequence[Tuple[str, Style]]", length: int,
            pace: Sequence[str] = ()) -> None:
    if lib.QUICK:
        lib.skip("reads the clock")
    lib.watch_wakes()
    with lib.Daemon() as daemon:
        for test, style in runs:
            report.case(f"{test} -D {INTERVAL} -l {length}, {style.name}",
                        partial(check, test, style, daemon.port, length, pace))


def suite(report: lib.Report) -> None:
    runs = [("TCP_STREAM", style) for style in STYLES]
    if lib.LONG:
        runs += [(test, STYLES[0]) for test in ("TCP_MAERTS", "TCP_RR", "TCP_CRR", "UDP_RR", "UDP_STREAM")]
        measure(report, runs, 10)
    else:
        measure(report, runs, 2, lib.PACED)


if __name__ == "__main__":
    lib.main(suite)
