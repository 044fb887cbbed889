"""What earlier sessions measured: files of netgate's and netsweep's, as slots of the side that counts."""

import glob
import json
import os
import re
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy as np

from netkit import results
from netkit.gate import output
from netkit.gate.model import GATE_SCHEMA, GateError, Metric, Slot
from netkit.gate.trial import usable

THROUGHPUT = (Metric(),)
# What tells one machine from another, of the names of facts().
OWN = "seed"            # of the order of slots: never the same
MACHINE = re.compile(r"(^|\.)(hostname|cpu|interface\.(name|driver|speed))$")


@dataclass
class Session:
    """What a file holds of one side: its good slots by point. A session is the unit of everything that
    is said of the past, as what a day does to a machine is done to all slots of it."""
    path: str
    started: str = ""
    environment: "Dict[str, Any]" = field(default_factory=dict)
    slots: "Dict[str, List[Slot]]" = field(default_factory=dict)
    metrics: "Dict[str, Tuple[Metric, ...]]" = field(default_factory=dict)

    @property
    def day(self) -> str:
        return self.started[:16].replace("T", " ")

    def figures(self, point: str, metric: Metric) -> "List[float]":
        """Of the slots that count, clean seconds where it knows them."""
        known = (usable(slot, metric, True) for slot in self.slots.get(point, []))
        return [figure for figure in known if figure is not None]

    def unit(self, point: str, metric: Metric) -> str:
        return next((slot.units[metric.name] for slot in self.slots.get(point, [])
                     if metric.name in slot.units), "")


def mean(figures: "Sequence[float]") -> "Tuple[float, float]":
    """Mean and standard deviation of the logarithms."""
    logs = np.log(figures)
    return float(np.mean(logs)), float(np.std(logs, ddof=1)) if len(logs) > 1 else 0.0


# --- reading ------------------------------------------------------------------------------

def read(path: str, side: str) -> "Tuple[List[Session], List[str]]":
    """The sessions of a file, or of all files of a folder, the oldest first, and what has to be said of
    them. Raises GateError, of a folder only where nothing in it can be used."""
    if not os.path.isdir(path):
        return in_order(read_file(path, side)), []
    found: "List[Session]" = []
    notes = []
    for name in sorted(glob.glob(os.path.join(glob.escape(path), "*.json*"))):
        try:
            found += read_file(name, side)
        except GateError as fault:
            notes.append(f"left out: {fault}")
    if not found:
        raise GateError(notes[0] if notes else f"{path}: no file of netgate's or netsweep's (*.jsonl) in it")
    return in_order(found), notes


def in_order(found: "Sequence[Session]") -> "List[Session]":
    """By their beginning. A copy of a session is no further session."""
    one_each = {(session.started, json.dumps(session.environment, sort_keys=True)): session
                for session in reversed(found)}
    return sorted(one_each.values(), key=lambda session: session.started)


def read_file(path: str, side: str) -> "List[Session]":
    try:
        with open(path, "rb") as file:
            first = file.readline()
    except OSError as fault:
        raise GateError(f"{path}: {fault.strerror}") from None
    if GATE_SCHEMA.encode() in first:
        return [of_gate(path, gate, side) for gate in output.sessions(path)]
    try:
        return [of_sweep(results.read(path))]
    except results.ResultsError as fault:
        raise GateError(str(fault).replace("of netsweep's", "of netgate's or netsweep's")) from None


def of_gate(path: str, gate: Any, side: str) -> Session:
    """Without the slots from which the gate learned: they may have another length."""
    made = Session(path, gate.started, gate.environment,
                   metrics={point.name: point.metrics for point in gate.points})
    for slot in gate.slots:
        if slot.side == side and slot.pair and not slot.failed:
            made.slots.setdefault(slot.point, []).append(slot)
    return made


def of_sweep(sweep: results.Results) -> Session:
    """Each run is a slot; a point is called by its test and its axes, as "tcp_stream.mtu9000"."""
    made = Session(sweep.path, sweep.header.started, sweep.header.environment)
    for run in sweep.runs:
        if not run.ok:
            continue
        name = sweep_point(sweep.header, run)
        figures = {one: float(value) for one, value in run.result.items() if results.is_number(value)}
        length = {**sweep.header.constants, **run.point}.get("length")
        made.slots.setdefault(name, []).append(Slot(
            name, "", started=run.started, seconds=run.seconds, command=run.command, figures=figures,
            length=float(length) if results.is_number(length) else 0.0,
            units={"THROUGHPUT": str(run.result.get("THROUGHPUT_UNITS", ""))}))
    return made


def sweep_point(header: results.Header, run: results.Run) -> str:
    test = str(run.point.get("test", header.constants.get("test", "run"))).lower()
    axes = [f"{name}{results.show_value(value)}" for name, value in run.point.items() if name != "test"]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", ".".join([test, *axes]))


# --- where it was measured ----------------------------------------------------------------

def facts(environment: Any, name: str = "") -> "Iterator[Tuple[str, str]]":
    """What is known of a place, by names such as "client.kernel"; of two ends that are one, once."""
    if isinstance(environment, dict):
        alike = environment.get("client") == environment.get("server")
        for key, value in environment.items():
            if key not in (OWN, "server" if alike else OWN):
                yield from facts(value, f"{name}.{key}" if name else str(key))
    elif environment not in (None, "", []):
        yield name, environment if isinstance(environment, str) else json.dumps(environment)


def differing(old: "Dict[str, Any]", new: "Dict[str, Any]") -> "Tuple[List[str], List[str]]":
    """What both know and is not the same: of what makes it another machine, and the rest."""
    before, after = dict(facts(old)), dict(facts(new))
    lines: "Tuple[List[str], List[str]]" = [], []
    for name in before:
        if after.get(name, before[name]) != before[name]:
            lines[not MACHINE.search(name)].append(
                f"{name.replace('.', ' ')}: {before[name]} -> {after[name]}")
    return lines
