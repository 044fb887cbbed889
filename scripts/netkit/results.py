"""Reads, writes and merges results of sweeps (doc/results.md). Each line is synced: a crash loses only one run."""

import contextlib
import functools
import gc
import io
import itertools
import json
import operator
import os
import re
import sys
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Collection, Dict, Iterator, List, Optional, Sequence, Tuple

from netkit import Fault, files, records
from netkit.units import flatten, printable, show_point, show_value

try:
    from orjson import loads as loads_quickly
except ImportError:
    loads_quickly = json.loads

SWEEP_SCHEMA = "plumbline-sweep/1"
RUN_SCHEMA = "plumbline-run/1"
DOCUMENT = b'"plumbline-netperf/'   # the schema of netperf's own documents: see documents.py
STATUSES = ("ok", "failed", "excluded")
MOST_FIGURE = 1e150     # larger values can't have been measured; their sums and squares stay finite
BOUND = re.compile(r"\s*(<=|>=|!=|<|>)\s*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*")

LINES = 50              # lines that are parsed together

Key = Tuple[str, int]
point_key = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode  # the same text for equal points, whatever the order of their axes


class ResultsError(Fault):
    """A file that can't be used: one line with the file, the position and the remedy."""


@contextlib.contextmanager
def reading(path: str) -> "Iterator[None]":
    """A context manager that turns missing members and wrong types into a one-line error."""
    try:
        yield
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as fault:
        place = traceback.extract_tb(fault.__traceback__)[-1]
        raise ResultsError(f"{path}: a damaged document: {printable(str(fault))[:200]} ({os.path.basename(place.filename)}, line {place.lineno})") from None


def fits(value: Any, wanted: Any) -> bool:
    """Whether a value equals a condition, is in its list, or satisfies a bound such as "< 1280"."""
    if isinstance(wanted, list):
        return any(fits(value, one) for one in wanted)
    found = isinstance(wanted, str) and BOUND.fullmatch(wanted)
    if not found:
        wanted = None if wanted == "default" else wanted
        return wanted == value and isinstance(value, bool) == isinstance(wanted, bool)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    bound = float(found[2])
    return {"<": value < bound, "<=": value <= bound, ">": value > bound,
            ">=": value >= bound, "!=": value != bound}[found[1]]


def matches(known: "Dict[str, Any]", skip: "Dict[str, Any]") -> bool:
    """Whether a point with these axes and constants satisfies all conditions of a [[skip]]."""
    return all(fits(known.get(name), wanted) for name, wanted in skip.items())


@dataclass
class Axis:
    name: str
    values: "List[Any]"
    unit: str = ""

    def as_json(self) -> "Dict[str, Any]":
        made: "Dict[str, Any]" = {"name": self.name, "values": self.values}
        return {**made, "unit": self.unit} if self.unit else made


@dataclass
class Header:
    """The header of a sweep; unknown members are kept in `more`."""
    plan: str = ""
    title: str = ""
    axes: "List[Axis]" = field(default_factory=list)
    constants: "Dict[str, Any]" = field(default_factory=dict)
    repetitions: int = 1
    order: str = "given"
    seed: Optional[int] = None
    started: str = ""
    environment: "Dict[str, Any]" = field(default_factory=dict)
    plan_text: str = ""
    skips: "Optional[List[Dict[str, Any]]]" = None  # what the plan leaves out; None: unknown
    more: "Dict[str, Any]" = field(default_factory=dict)

    def axis(self, name: str) -> Optional[Axis]:
        return next((axis for axis in self.axes if axis.name == name), None)

    def as_json(self) -> "Dict[str, Any]":
        return {"schema": SWEEP_SCHEMA, "plan": self.plan, "title": self.title,
                "axes": [axis.as_json() for axis in self.axes], "constants": self.constants,
                "repetitions": self.repetitions, "order": self.order, "seed": self.seed,
                "started": self.started, "environment": self.environment,
                **({} if self.skips is None else {"skip": self.skips}), **self.more,
                "plan_text": self.plan_text}


@dataclass
class Run:
    """One call of netperf; unknown members are kept in `more`."""
    point: "Dict[str, Any]"
    repetition: int = 1
    number: int = 0
    started: str = ""
    seconds: float = 0.0
    command: "List[str]" = field(default_factory=list)
    before: "List[Dict[str, Any]]" = field(default_factory=list)
    status: str = "ok"
    exit: Optional[int] = 0
    stdout: str = ""
    stderr: str = ""
    result: "Dict[str, Any]" = field(default_factory=dict)
    interim: "Optional[List[List[float]]]" = None
    more: "Dict[str, Any]" = field(default_factory=dict)
    header: Optional[Header] = field(default=None, compare=False, repr=False)   # of the file it was read from

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def excluded(self) -> bool:
        """Whether an end lacks what the run needs: it was not tried, and did not fail."""
        return self.status == "excluded"

    @property
    def key(self) -> Key:
        """The key for which there is at most one good run."""
        return self.place, self.repetition

    @functools.cached_property
    def place(self) -> str:
        return point_key(self.point)

    @property
    def near_device(self) -> "Dict[str, Any]":
        """Rate and MTU of the near end's interface (of the run's host), for a ceiling if plan and point have none."""
        told = self.header.environment if self.header else {}
        for place in (self.more.get("environment"), within(told, "hosts", str(self.point.get("host"))), told):
            device = within(place, "client", "interface")
            if device:
                return {name: value * by for name, of, by in (("mtu", "mtu", 1), ("rate", "speed", 1e6))
                        for value in [within(device, of)] if is_number(value) and value > 0}
        return {}

    def figure(self, name: str) -> Optional[float]:
        """A figure as a number, or None. near.NAME and far.NAME are from the evidence of the ends."""
        value = self.result.get(name)
        if type(value) is float and 0.0 <= value <= MOST_FIGURE:     # the common case
            return value
        if name in DERIVED:
            value = DERIVED[name](self)
        elif name.startswith(("near.", "far.")):
            end, _, rest = name.partition(".")
            value = self.evidence(end).get(rest)
        elif value is None:
            return None
        if name in self.result and is_number(value) and value < 0:
            return None         # in older files, not measured
        return float(value) if is_figure(value) else None

    def evidence(self, end: str) -> "Dict[str, Any]":
        """Evidence of the near or far end from the end of the run."""
        return within(self.more, "evidence", end) or {}

    def reason(self) -> str:
        """Why the run failed, in one line."""
        if self.ok:
            return ""
        if self.more.get("reason"):
            return " ".join(str(self.more["reason"]).split())
        for step in self.before:
            if step.get("status"):
                said = (str(step.get("output", "")).strip().splitlines() or [""])[-1].strip()
                said = said or f"status {step['status']}"
                return f"{step.get('command', 'command')}: {said}"
        said = (self.stderr.strip().splitlines() or [""])[-1].strip()
        return said or ("did not end" if self.exit is None else f"exit status {self.exit}")

    def as_json(self) -> "Dict[str, Any]":
        made = {"schema": RUN_SCHEMA, **{name: getattr(self, name) for name in RunReader.TYPES if name != "schema"}, **self.more}
        if self.interim is not None:
            made["interim"] = self.interim
        return made


def loss_percent(run: Run) -> Optional[float]:
    """Lost datagrams: by count if known, else by rates."""
    far = run.evidence("far")
    sent, gone = far.get("udp.sent"), far.get("udp.lost")
    if not (sent and is_number(gone)):
        if not str(run.result.get("PROTOCOL", "")).startswith("UDP"):
            return None
        sent, got = run.result.get("LOCAL_SEND_THROUGHPUT"), run.result.get("REMOTE_RECV_THROUGHPUT")
        if not (is_number(sent) and is_number(got) and sent > 0):
            return None
        gone = max(0.0, sent - got)
    return 100 * gone / sent


def softirq_percent(run: Run, end: str, name: str) -> Optional[float]:
    """Share of an end's processor time spent in softirqs."""
    shares = [value for key, value in run.evidence(end).items()
              if re.fullmatch(r"cpu\.[0-9]+\.softirq", key) and is_number(value)]
    if shares:
        return 100 * sum(shares) / (run.evidence(end).get("cpu.count") or len(shares))
    value = run.result.get(name)
    return value if is_number(value) and value >= 0 else None


DROPS = re.compile(r"moved\.(nic\.[rt]x_(dropped|fifo_errors|missed_errors)|softnet\.[0-9]+\.dropped"
                   r"|snmp6?\.Udp6?\.?RcvbufErrors)|tc\.(in|out)\.drops|flow\.socket_drops")


def drops(run: Run) -> Optional[float]:
    """Packets dropped by either end's interface, queues or full buffers."""
    told = [end for end in map(run.evidence, ("near", "far")) if "moved.seconds" in end]
    return sum(value for end in told for name, value in end.items()
               if DROPS.fullmatch(name) and is_number(value)) if told else None


MUCH = 0.05     # share of the time, from which on a run is reported as disturbed, as in netperf


def disturbances(told: "Sequence[Tuple[Any, float, Dict[str, float]]]", what: str, least: float = 0.0) -> str:
    """Such as "2 of 5 runs were disturbed, 12 % of the time: steal 0.4 s, processor 0.2 s". `told` has the share
    (None: unknown), seconds and reasons of each; empty if no share is above `least`."""
    found = [reasons for share, _, reasons in told if (share or 0.0) > least]
    looked = [(share, seconds) for share, seconds, _ in told if share is not None]
    seconds: "Counter[str]" = Counter()
    for reasons in found:
        seconds.update(reasons)
    part = sum(share * time for share, time in looked) / max(1e-9, sum(time for _, time in looked))
    causes = ", ".join(f"{name} {float(f'{value:.2g}'):g} s" for name, value in seconds.most_common(5))
    return (f"{len(found)} of {len(told)} {what}{'s' * (len(told) > 1)} {'was' if len(found) == 1 else 'were'} disturbed, "
            f"{100 * part:.0f} % of the time" + (f": {causes}" if causes else "")) if found else ""


def disturbed_runs(runs: "Sequence[Run]") -> str:
    told = [within(run.more, "disturbed") or {} for run in runs]
    return disturbances([(one.get("share"), one.get("seconds") or 0.0, one.get("reasons") or {}) for one in told],
                        "run", MUCH) if any(told) else ""


def within(value: Any, *names: str) -> Any:
    """A nested member, or None."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


DERIVED = {"LOSS_PERCENT": loss_percent, "DROPS": drops,
           "DISTURBED_PERCENT": lambda run: 100 * share if is_number(share := within(run.more, "disturbed", "share")) else None,
           "LOCAL_SOFTIRQ_PERCENT":
           lambda run: softirq_percent(run, "near", "LOCAL_CPU_PERCENT_SWINTR"),
           "REMOTE_SOFTIRQ_PERCENT":
           lambda run: softirq_percent(run, "far", "REMOTE_CPU_PERCENT_SWINTR")}


@dataclass
class Results:
    """A sweep, complete or not. runs has one per key, in the order of the file: the good one, else the latest."""
    path: str
    header: Header
    runs: "List[Run]" = field(default_factory=list)
    warnings: "List[str]" = field(default_factory=list)
    sources: "List[Results]" = field(default_factory=list)   # the arguments of merge()
    chosen: "Dict[str, Any]" = field(default_factory=dict)  # axes that only() reduced to one value
    good_bytes: int = 0             # where an incomplete last line begins, else the size of the file
    ends_in_newline: bool = True

    def done(self) -> "Dict[Key, Run]":
        """The good runs, by key."""
        return {run.key: run for run in self.runs if run.ok}


CONDITION = re.compile(r"([^<>=]+)(=|<=|>=|<|>)(.*)")


def only(found: Results, conditions: "Sequence[str]") -> Results:
    """Runs at points that meet all conditions ("mtu>=1280"); of an axis' values one is enough. Raises ResultsError."""
    if not conditions:
        return found
    values = {axis.name: axis.values for axis in found.header.axes}
    wanted: "Dict[str, List[Any]]" = {}
    for text in conditions:
        told = CONDITION.fullmatch(text)
        name, sign, bound = told.groups() if told else (text, "", "")
        if name not in values or not told:
            raise ResultsError(f"--where {text}: " + ("no such axis" if told else "no condition, such as size=64")
                               + f" (axes: {', '.join(values) or 'none'})")
        same = [value for value in values[name] if bound in (str(value), show_value(value))] if sign == "=" else [
            value for value in values[name] if fits(value, sign + bound)]
        if not same:
            raise ResultsError(f"--where {text}: no such value (try {', '.join(map(show_value, values[name]))})")
        if sign == "=":
            wanted.setdefault(name, []).extend(same)
        else:
            values[name] = same
    left = {name: [value for value in held if name not in wanted or key_of(value) in map(key_of, wanted[name])]
            for name, held in values.items()}
    keys = {name: set(map(key_of, held)) for name, held in left.items()}
    runs = [run for run in found.runs
            if all(key_of(run.point[name]) in keys[name] for name in keys if name in run.point)]
    if not runs:
        raise ResultsError(f"--where {' --where '.join(conditions)}: no run is left")
    chosen = {name: held[0] for name, held in left.items() if len(held) == 1}
    return replace(found, runs=runs, chosen=chosen, header=replace(found.header, axes=[
        replace(axis, values=left[axis.name]) for axis in found.header.axes]))


def read(path: str, figures: "Collection[str] | None" = None) -> Results:
    """Read a file of results; "-" is stdin. `figures` limits which figures are kept, and what else. Raises ResultsError."""
    with files.raising(ResultsError, path), contextlib.nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as file:
        return parse(file, "standard input" if path == "-" else path, figures)


def parse(file: BinaryIO, path: str, figures: "Collection[str] | None" = None) -> Results:
    """Parse results or netperf's documents. Faults raise ResultsError; an incomplete last line (crash) only warns."""
    first = file.readline()
    if SWEEP_SCHEMA.encode() not in first:
        rest = file.read()
        if DOCUMENT in first or DOCUMENT in rest:
            from netkit import documents
            return documents.parse(first + rest, path)
        file = io.BytesIO(rest)
    if not first.endswith(b"\n") and not is_object(first):
        raise ResultsError(f"{path}: no results: " + (
            "the file ends within its first line: delete it and start the sweep again" if first
            else "the file is empty"))
    found = Results(path, make_header(load(first, path, 1), path), good_bytes=len(first), ends_in_newline=first.endswith(b"\n"))
    runs: "Dict[Key, Run]" = {}
    reader = RunReader(path, found.header, figures)
    gc.disable()        # the data has no reference cycles, and collecting would take a third of the time
    try:
        for number, line in lines_of(file, found):
            run = reader.read(line, number)
            key = run.place, run.repetition
            before = runs.get(key)
            if before and before.ok and run.ok:
                raise ResultsError(f"{path}: line {number}: a second good run of repetition {run.repetition} of "
                                   f"{show_point(run.point)}: delete one of them")
            if not before or not before.ok:
                runs.pop(key, None)
                runs[key] = run
    finally:
        gc.freeze()
        gc.set_threshold(50_000)    # nor has most of what is made of it
        gc.enable()
    found.runs = list(runs.values())
    return found


class RunReader:
    """Parses the lines of runs. Equal points, and a command equal to the last one of its point, are stored once; usual lines are not validated again."""
    TYPES = {"schema": str, "point": dict, "repetition": int, "number": int, "started": str, "seconds": float, "command": list,
             "before": list, "status": str, "exit": int, "stdout": str, "stderr": str, "result": dict}
    members = operator.itemgetter(*TYPES)
    types = tuple(TYPES.values())

    def __init__(self, path: str, header: Header, figures: "Collection[str] | None") -> None:
        self._path, self._header, self._figures = path, header, figures
        self._points: "Dict[str, Tuple[Dict[str, Any], str, List[str]]]" = {}   # with the place and the last command

    def read(self, line: "Dict[str, Any]", number: int) -> Run:
        """Parse a line. netperf's output is not kept. Raises ResultsError."""
        run = self._plain(line)
        if not run:
            run = make_run(line, f"{self._path}: line {number}")
            run.point, run.place, run.command = self._shared(run.point, run.command)
            run.header, run.stdout = self._header, ""
        if self._figures is not None:
            run.result = {name: run.result[name] for name in self._figures if name in run.result}
            run.more = {name: run.more[name] for name in ("disturbed", "link") if name in run.more}
        return run

    def _plain(self, line: "Dict[str, Any]") -> Optional[Run]:
        """The fast path; None if the line needs full validation."""
        try:
            values = self.members(line)
            schema, point, repetition, number, started, seconds, command, before, status, code, _, stderr, result = values
            point, place, command = self._shared(point, command)
        except (KeyError, TypeError):
            return None
        if tuple(map(type, values)) != self.types or schema != RUN_SCHEMA or status not in STATUSES or before or "interim" in line:
            return None
        more = {name: value for name, value in line.items() if name not in self.TYPES} if len(line) > len(values) else {}
        made = Run(point, repetition, number, started, seconds, command, before, status, code, "", stderr, result, None, more,
                   self._header)
        made.place = place
        return made

    def _shared(self, point: "Dict[str, Any]", command: "List[str]") -> "Tuple[Dict[str, Any], str, List[str]]":
        known = self._points.get(name := repr(point))
        if not known or known[2] != command:
            words = list(map(sys.intern, command))
            known = self._points[name] = (known[0], known[1], words) if known else (point, point_key(point), words)
        return known


def lines_of(file: BinaryIO, found: Results) -> "Iterator[Tuple[int, Dict[str, Any]]]":
    """Numbered objects of the lines after the header, parsed several at once to share strings of member names."""
    number = 1
    for lines in iter(lambda: list(itertools.islice(file, LINES)), []):
        if not lines[-1].endswith(b"\n") and not is_object(lines[-1]):
            found.warnings.append(f"{found.path}: the last line is cut short, as by a crash, and left out: "
                                  "netsweep --resume measures that run again")
            if not lines[:-1]:
                return
            lines.pop()
        found.good_bytes += sum(map(len, lines))
        found.ends_in_newline = lines[-1].endswith(b"\n")
        numbered = [(at, line) for at, line in enumerate(lines, number + 1) if not line.isspace()]
        number += len(lines)
        try:
            values = loads_quickly(b"[" + b",".join([line for _, line in numbered]) + b"]")
        except (ValueError, RecursionError):    # orjson rejects NaN
            values = []
        if len(values) != len(numbered) or set(map(type, values)) != {dict}:
            values = (load(line, found.path, at) for at, line in numbered)
        yield from zip((at for at, _ in numbered), values)


def is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def load(line: bytes, path: str, number: int) -> "Dict[str, Any]":
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as fault:
        raise ResultsError(f"{path}: line {number} is not JSON ({fault}): is this a file of "
                           "netsweep's?" if number == 1 else
                           f"{path}: line {number} is damaged ({fault}): delete it, and netsweep "
                           "--resume measures that run again") from None
    if not isinstance(value, dict):
        raise ResultsError(f"{path}: line {number} is not a JSON object: is this a file of "
                           "netsweep's?")
    return value


def make_header(line: "Dict[str, Any]", path: str) -> Header:
    schema = line.pop("schema", None)
    if schema != SWEEP_SCHEMA:
        raise ResultsError(
            f"{path}: line 1 is not a header of a sweep: " + (
                f"its schema is {schema}, this program reads {SWEEP_SCHEMA}" if schema else
                f"no \"schema\": \"{SWEEP_SCHEMA}\" in it, is this a file of netsweep's?"))
    line["skips"] = line.pop("skip", None)
    made: Header = records.record(ResultsError, Header, line, f"{path}: line 1")
    return made


def make_run(line: "Dict[str, Any]", where: str) -> Run:
    schema = line.pop("schema", None)
    if schema == SWEEP_SCHEMA:
        raise ResultsError(f"{where}: a second header: give netreport the files one by one instead")
    if schema != RUN_SCHEMA:
        raise ResultsError(f"{where}: no run: its schema is {schema}, this program reads "
                           f"{RUN_SCHEMA}")
    made: Run = records.record(ResultsError, Run, line, where)
    if line.get("status") not in STATUSES:
        raise ResultsError(f"{where}: \"status\" is {json.dumps(line.get('status'))}: neither ok, failed nor "
                           "excluded")
    if any(len(sample) != 2 for sample in made.interim or []):
        raise ResultsError(f"{where}: \"interim\" is not of pairs of seconds and throughput")
    made.exit = line.get("exit")
    return made


NOT_AXES = ("lab",)     # constants that may differ without making points different
SETS = ("label", "file")    # axes that distinguish sets of runs


def together(parts: "Sequence[Results]") -> "List[List[Results]]":
    """Group the files by sweep: those with the same plan or the same axes."""
    groups: "List[List[Results]]" = []
    for part in parts:
        axes = sorted(axis.name for axis in part.header.axes)
        for group in groups:
            first = group[0].header
            if part.header.plan == first.plan or axes == sorted(axis.name for axis in first.axes):
                group.append(part)
                break
        else:
            groups.append([part])
    return groups


def tell_apart(parts: "Sequence[Results]") -> None:
    """Make labels a constant; without labels file names, if runs in different environments would seem repetitions."""
    labels = [part.header.more.get("label") for part in parts]
    if len({label for label in labels if label}) < 2 and all(labels):
        return
    if not any(labels) and not any(
            one.header.constants == other.header.constants and differ(one, other)
            for i, one in enumerate(parts) for other in parts[:i]):
        return
    stems = [os.path.basename(part.path) for part in parts]
    names = [part.path if stems.count(stem) > 1 else re.sub(r"\.jsonl?$", "", stem)
             for stem, part in zip(stems, parts)]
    for part, label, name in zip(parts, labels, names):
        part.header.constants = {**part.header.constants,
                                 **({"label": label or name} if any(labels) else {"file": name})}


def differ(one: Results, other: Results) -> bool:
    """Whether the environments of two sweeps differ, as far as both are known."""
    told, others = (dict(flatten(part.header.environment)) for part in (one, other))
    return any(told[name] != others[name] for name in told.keys() & others.keys())


def merge(parts: "Sequence[Results]") -> Results:
    """Merge sweeps into one. A constant that differs, or is an axis of one of them, becomes an axis, and so do labels.
    Runs at the same point become repetitions; runs found in two files (copied, or resumed) count once: the latest try."""
    empty = [part for part in parts if not part.runs]
    warnings = [line for part in parts for line in part.warnings]
    if len(empty) < len(parts):
        parts = [part for part in parts if part.runs]
        warnings += [f"{part.path}: no runs in it, left out" for part in empty]
    if len(parts) == 1:
        parts[0].warnings = warnings
        return parts[0]
    tell_apart(parts)
    axes = joined_axes(parts)
    first = parts[0].header
    alike = all(part.header.skips == first.skips and part.header.axes == first.axes for part in parts)
    header = Header(plan=" + ".join({part.header.plan: 0 for part in parts}),
                    title=" + ".join({part.header.title: 0 for part in parts}),
                    axes=list(axes.values()),
                    constants={name: value for name, value in first.constants.items()
                               if name not in axes},
                    repetitions=max(part.header.repetitions for part in parts),
                    order=first.order, started=min(part.header.started for part in parts),
                    environment=first.environment, plan_text="", skips=first.skips if alike and all(
                        first.axis(name) or name in SETS for name in axes) else None)
    return Results(", ".join(part.path for part in parts), header, runs=joined_runs(parts, list(axes)),
                   sources=list(parts), warnings=warnings)


def joined_axes(parts: "Sequence[Results]") -> "Dict[str, Axis]":
    axes: "Dict[str, Axis]" = {}
    for part in parts:
        for axis in part.header.axes:
            axes.setdefault(axis.name, Axis(axis.name, [], axis.unit))
    for name in {name: 0 for part in parts for name in part.header.constants}:
        held = {point_key({"": part.header.constants.get(name)}) for part in parts}
        if len(held) > 1 and name not in NOT_AXES:
            axes.setdefault(name, Axis(name, []))
    for axis in axes.values():
        every = [part.header.axis(axis.name) for part in parts]
        axis.values = list({key_of(value): value for own, part in zip(every, parts) for value in (
            own.values if own else [part.header.constants.get(axis.name)])}.values())
        if all(map(is_number, axis.values)):
            axis.values.sort()
    return axes


def joined_runs(parts: "Sequence[Results]", axes: "List[str]") -> "List[Run]":
    found: "List[Run]" = []
    seen = set()
    count: "Counter[str]" = Counter()
    tries = sorted((run.ok, run.started, part.header.started, part.header.plan_text, run.key) for part in parts for run in part.runs)
    last = {one[2:]: one[:2] for one in tries}      # a sweep that is resumed tries again what failed
    for part in parts:
        points: "Dict[str, Tuple[Dict[str, Any], str, str]]" = {}
        for run in part.runs:
            if run.place not in points:
                known = {**part.header.constants, **run.point}
                point = {name: known.get(name) for name in [*axes, *run.point]}
                points[run.place] = point, point_key(point), point_key({
                    name: value for name, value in point.items() if name not in SETS})
            point, place, own = points[run.place]
            same = (own, run.started, tuple(run.command))
            if run.started and same in seen or not run.ok and part.header.plan_text and last[
                    part.header.started, part.header.plan_text, run.key] != (run.ok, run.started):
                continue
            seen.add(same)
            count[place] += 1
            found.append(replace(run, point=point, repetition=count[place]))
            found[-1].place = place
    return found


def key_of(value: Any) -> Any:
    """What distinguishes values of an axis: 1 and 1.0 are the same, 1 and true are not."""
    return value if type(value) in (int, float, str) else ("", json.dumps(value, sort_keys=True))


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_figure(value: Any) -> bool:
    """Whether a value is a number that can have been measured."""
    return type(value) in (int, float) and abs(value) <= MOST_FIGURE


class Writer(files.Lines):
    """The file of a sweep in progress. Use create() or resume()."""

    def __init__(self, path: str, mode: str) -> None:
        super().__init__(path, mode, ResultsError, "netsweep", "--resume goes on with it, another --output writes elsewhere")

    @classmethod
    def create(cls, path: str, header: Header, overwrite: bool = False) -> "Writer":
        """Create a file with its header. Refuses an existing file unless overwrite is given."""
        made = cls(path, "wb" if overwrite else "xb")
        made.begin(header.as_json())
        return made

    @classmethod
    def resume(cls, path: str) -> "Tuple[Writer, Results]":
        """Open a file to append to, and return what it has. An incomplete last line is cut off."""
        made = cls(path, "r+b")
        try:
            found = parse(made.file, path)
        except ResultsError:
            made.close()
            raise
        made.file.truncate(found.good_bytes)
        made.file.seek(0, os.SEEK_END)
        if not found.ends_in_newline:
            made.file.write(b"\n")
        return made, found

    def write(self, run: Run) -> None:
        self.line(run.as_json())
