"""Repeats a plan forever (netsweep --every): the times of cycles, Prometheus metrics, files for netgate --history."""

import bisect
import contextlib
import glob
import itertools
import os
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Tuple

from netkit import calls, machine, python, results, sweep
from netkit.plan import Plan
from netkit.units import show_duration, show_time, show_value

JITTER = 0.1        # of the period, so that cycles of several hosts do not stay in step
KEPT = 1000         # newest files that are kept in a history
BOUNDS = [round(10.0 ** (exponent / 10), 3) * 1e-6 for exponent in range(71)]   # of buckets: 1 us to 10 s, ten per decade
Labels = Tuple[str, ...]


def check(plan: Plan, period: float, budget: Optional[float]) -> str:
    """Why this plan can't be repeated with this period; empty if it can. The budget is in percent of the time."""
    busy: "Counter[str]" = Counter()
    for task in plan.tasks():
        busy.update(dict.fromkeys(plan.ends(task.point), plan.run_seconds(task.point)))
    ((end, seconds),) = busy.most_common(1)
    whole = sweep.expected(plan, plan.tasks())
    if whole > period:
        return f"a cycle takes about {show_duration(whole)}"
    if budget and seconds > period * budget / 100:
        return (f"{end} is in runs for {show_time(seconds)} of each cycle, which is {100 * seconds / period:.3g} % of the time, not "
                f"{budget:g} %: --every {show_duration(100 * seconds / budget)} would do, or a shorter length")
    return ""


class Metrics:
    """Metrics of all cycles so far, labelled by the plan's axes. They may be read by another thread."""

    def __init__(self, plan: Plan) -> None:
        self._names = [axis.name for axis in plan.axes]
        self._lock = threading.Lock()
        self._runs: "Dict[Labels, int]" = {}
        self._seconds: "Dict[Labels, float]" = {}
        self._last: "Dict[Labels, Tuple[float, str, float]]" = {}       # throughput, its unit, time
        self._cells: "Dict[Labels, List[int]]" = {}
        self._sums: "Dict[Labels, float]" = {}
        self._core: Any = python.need("prometheus_client.core", "python3-prometheus-client", "what Prometheus reads")
        self._registry = self._core.CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def _labels(self, run: results.Run) -> Labels:
        return tuple(show_value(run.point[name]) for name in self._names)

    def count(self, run: results.Run) -> None:
        labels = self._labels(run)
        with self._lock:
            self._runs[(*labels, run.status)] = self._runs.get((*labels, run.status), 0) + 1
            self._seconds[labels] = self._seconds.get(labels, 0.0) + run.seconds
            value = run.figure("THROUGHPUT")
            if run.ok and value is not None:
                self._last[labels] = value, str(run.result.get("THROUGHPUT_UNITS", "")), time.time()

    def take(self, run: results.Run, ends: "List[calls.Ended]") -> None:
        """Add the latencies of a run."""
        for told in [end.last.get("latency") for end in ends]:
            if not isinstance(told, dict) or not told.get("cells"):
                continue
            with self._lock:
                counts = self._cells.setdefault(self._labels(run), [0] * (len(BOUNDS) + 1))
                for value, count in told["cells"]:
                    counts[bisect.bisect_left(BOUNDS, value * 1e-9)] += count
                self._sums[self._labels(run)] = self._sums.get(self._labels(run), 0.0) + told["sum"] * 1e-9

    def collect(self) -> "Iterator[Any]":
        """The interface of prometheus_client's collectors."""
        core, names = self._core, self._names
        with self._lock:
            runs = core.CounterMetricFamily("netperf_runs", "Runs, by what became of them.", labels=[*names, "status"])
            seconds = core.CounterMetricFamily("netperf_busy_seconds", "Time that runs took.", labels=names)
            last = core.GaugeMetricFamily("netperf_throughput", "Of the last good run.", labels=[*names, "unit"])
            when = core.GaugeMetricFamily("netperf_last_good_run_timestamp_seconds", "When it ended.", labels=names)
            latency = core.HistogramMetricFamily("netperf_latency_seconds", "Of the transactions of all runs.", labels=names)
            for labels, count in self._runs.items():
                runs.add_metric(labels, count)
            for labels, time_taken in self._seconds.items():
                seconds.add_metric(labels, time_taken)
            for labels, (value, unit, at) in self._last.items():
                last.add_metric((*labels, unit), value)
                when.add_metric(labels, at)
            for labels, counts in self._cells.items():
                bounds = [*(f"{bound:.9g}" for bound in BOUNDS), "+Inf"]
                latency.add_metric(labels, list(zip(bounds, itertools.accumulate(counts))), self._sums[labels])
        yield from (runs, seconds, last, when, latency)

    def serve(self, address: str) -> None:
        """Serve them at HOST:PORT, or at :PORT on all addresses. Raises MachineError."""
        client = python.need("prometheus_client", "python3-prometheus-client", "--metrics-listen")
        host, _, port = address.rpartition(":")
        try:
            client.start_http_server(int(port), host.strip("[]") or "::", self._registry)
        except (OSError, ValueError, OverflowError) as fault:
            raise machine.MachineError(f"--metrics-listen {address}: {getattr(fault, 'strerror', None) or 'try 127.0.0.1:9464'}") from None

    def write(self, path: str) -> None:
        """Atomically replace a file for node_exporter's textfile collector. Raises OSError."""
        client = python.need("prometheus_client", "python3-prometheus-client", "--metrics-file")
        client.write_to_textfile(path, self._registry)


class Log:
    """Where the runs of a cycle are written."""

    def __init__(self, writer: Optional[results.Writer], metrics: Optional[Metrics]) -> None:
        self._writer, self._metrics = writer, metrics
        self.failed: "List[results.Run]" = []

    def write(self, run: results.Run) -> None:
        if self._writer:
            self._writer.write(run)
        if self._metrics:
            self._metrics.count(run)
        if not run.ok and not run.excluded:
            self.failed.append(run)


@dataclass
class Cycle(sweep.Sweep):
    metrics: Optional[Metrics] = None

    def _read(self, run: results.Run, ends: "List[calls.Ended]") -> None:
        super()._read(run, ends)
        if self.metrics:
            self.metrics.take(run, ends)


def new_file(folder: str, plan: Plan, ends: "Dict[str, Any]") -> results.Writer:
    """The file of a cycle, named after the second, or the next if another netsweep has it. Raises ResultsError."""
    while True:
        path = os.path.join(folder, f"{plan.name}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.jsonl")
        try:
            return results.Writer.create(path, plan.header(sweep.now(), ends))
        except results.ResultsError:
            if not os.path.exists(path):
                raise
            machine.pause(0.2)


def prune(folder: str, plan: Plan) -> None:
    files = sorted(glob.glob(os.path.join(glob.escape(folder), f"{glob.escape(plan.name)}-{'[0-9]' * 8}T{'[0-9]' * 6}Z.jsonl")))
    for path in files[:-KEPT]:
        with contextlib.suppress(OSError):
            os.unlink(path)


def begins(period: float) -> "Iterator[None]":
    """Yields once per period, at a random time in its first tenth. Cycles missed because one took long are skipped."""
    since, number = time.monotonic(), 0
    while True:
        machine.pause(max(0.0, since + (number + random.uniform(0, JITTER) * (number > 0)) * period - time.monotonic()))
        yield
        number = max(number + 1, int((time.monotonic() - since) / period) + 1)
