"""The output of a gate: JSON lines (also read), text, KTAP, JUnit XML, progress, criteria files; see doc/gate.md."""

import dataclasses
import functools
import json
import math
import re
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from fnmatch import fnmatchcase
from typing import Any, Dict, Iterator, List, Optional, Sequence, TextIO, Tuple

from netkit import files, progress, records
from netkit.gate.model import (BETTER, CANT_TELL, EQUAL, GATE_SCHEMA, SLOT_SCHEMA, VERDICT_SCHEMA, VERDICTS,
                               WORSE, A, B, Gate, GateError, Judgement, Metric, Point, Slot, View)
from netkit.machine import shown
from netkit.plan import read_toml
from netkit.results import disturbances
from netkit.units import flatten

END_SCHEMA = "plumbline-gate-end/1"     # the last line of a gate that ended regularly
HEADER = ("started", "command", "environment", "confidence", "budget", "points")
ENDING = ("seconds", "learned", "notes", "skipped", "over")


def plain(value: Any) -> Any:
    """A value for JSON: infinities and NaN become null."""
    value = dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Writer(View):
    """Writes a gate's file: header, a line for each slot, judgements; evidence, most of the bytes, only on request."""

    def __init__(self, path: str, evidence: bool = False, mode: str = "xb") -> None:
        self._lines, self._evidence = files.Lines(path, mode, GateError, "netgate", "another --output writes elsewhere"), evidence
        if mode == "a+b":       # append after the last complete line
            self._lines.file.seek(0)
            data = self._lines.file.read()
            if data and GATE_SCHEMA.encode() not in data.partition(b"\n")[0]:
                self._lines.close()
                raise GateError(f"{path}: not a file of netgate's: another --keep writes elsewhere")
            self._lines.file.truncate(data.rfind(b"\n") + 1)

    def begin(self, gate: Gate) -> None:
        self._lines.begin({"schema": GATE_SCHEMA, **plain({name: getattr(gate, name) for name in HEADER})})

    def slot(self, slot: Slot, gate: Gate, judgements: "Sequence[Judgement]") -> None:
        self._line(SLOT_SCHEMA, slot if self._evidence else dataclasses.replace(slot, evidence={}))

    def end(self, gate: Gate) -> None:
        for judgement in gate.judgements:
            self._line(VERDICT_SCHEMA, judgement)
        self._line(END_SCHEMA, {name: getattr(gate, name) for name in ENDING})
        self._lines.close()

    def _line(self, schema: str, value: Any) -> None:
        try:
            self._lines.line({"schema": schema, **plain(value)})
        except OSError as fault:
            raise self._lines.failed(fault) from None


record = functools.partial(records.record, GateError)


def one_of(name: str, choices: "Sequence[str]", known: "Dict[str, Any]", where: str) -> "Dict[str, Any]":
    if known.get(name) not in choices:
        raise GateError(f"{where}: {name}: {json.dumps(known.get(name))} is not one of {', '.join(choices)}")
    return known


def objects(data: bytes, path: str) -> "Iterator[Tuple[str, Dict[str, Any]]]":
    """JSON lines as objects, with their positions. An incomplete last line, left by a crash, is skipped."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        where = f"{path}: line {number}"
        try:
            known = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError):
            if number == len(lines) and number > 1:
                return
            raise GateError(f"{where}: not JSON: not a file of netgate's") from None
        if not isinstance(known, dict):
            raise GateError(f"{where}: not an object: not a file of netgate's")
        yield where, known


def sessions(path: str) -> "List[Gate]":
    """The gates in a file, several if files were joined. `over` says so if one was killed. Raises GateError."""
    with files.raising(GateError, path), open(path, "rb") as file:
        data = file.read()
    found: "List[Gate]" = []
    for where, known in objects(data, path):
        schema = known.get("schema")
        if schema == GATE_SCHEMA:
            found.append(record(Gate, {**known, "judgements": [], "over": "the file ends before the gate"},
                                where))
        elif known and not found:
            raise GateError(f"{where}: the header of a gate should be here, schema {GATE_SCHEMA}")
        elif schema == SLOT_SCHEMA:
            found[-1].slots.append(record(Slot, one_of("side", (A, B), known, where), where))
        elif schema == VERDICT_SCHEMA:
            found[-1].judgements.append(record(Judgement, one_of("verdict", VERDICTS, known, where), where))
        elif schema == END_SCHEMA:
            end = record(Gate, {**known, "points": [], "judgements": []}, where)
            for name in ENDING:
                setattr(found[-1], name, getattr(end, name))
        elif known:
            raise GateError(f"{where}: schema {json.dumps(schema)}: not known to this netgate")
    return found


@dataclasses.dataclass
class Criterion:
    """A criterion for the metrics and points that match its patterns. None: as it was."""
    point: str = "*"
    metric: str = "*"
    margin: "Optional[float]" = None
    better: "Optional[str]" = None      # more, less

    def fits(self, point: Point, metric: Metric) -> bool:
        return fnmatchcase(point.name, self.point) and fnmatchcase(metric.name, self.metric)


@dataclasses.dataclass
class Criteria:
    """Criteria from a file; later ones take precedence."""
    path: str = ""
    confidence: "Optional[float]" = None    # percent
    criteria: "List[Criterion]" = dataclasses.field(default_factory=list)


def load_criteria(path: str) -> Criteria:
    """Read a file of criteria. Raises GateError."""
    known = read_toml(path, GateError)
    default, several = known.pop("default", {}), known.pop("criterion", [])
    if known or not isinstance(default, dict) or not isinstance(several, list):
        raise GateError(f"{path}: {next(iter(known), 'default')}: a file of criteria has [default] and "
                        "[[criterion]]")
    confidence = default.pop("confidence", None)
    if confidence is not None and not (type(confidence) in (int, float) and 50 <= confidence < 100):
        raise GateError(f"{path}: [default]: confidence: {confidence} is not a percentage from 50 to below 100")
    made = [criterion(default, f"{path}: [default]", ("margin", "better"))]
    made += [criterion(one, f"{path}: [[criterion]] {number}", ("point", "metric", "margin", "better"))
             for number, one in enumerate(several, 1)]
    return Criteria(path, confidence, made)


def criterion(known: Any, where: str, names: "Sequence[str]") -> Criterion:
    made = record(Criterion, known, where)
    strange = [name for name in known if name not in names]
    if strange:
        raise GateError(f"{where}: {strange[0]}: unknown, there are {', '.join(names)}")
    if made.margin is not None and not 0 < made.margin < 100:
        raise GateError(f"{where}: margin: {made.margin:g} is not a percentage above 0 and below 100")
    if made.better not in (None, "more", "less"):
        raise GateError(f"{where}: better: {made.better} is neither more nor less")
    return made


def apply(points: "Sequence[Point]", criteria: Criteria) -> "List[Point]":
    """The points, with the file's criteria in place of their own."""
    return [dataclasses.replace(point, metrics=tuple(asked(point, metric, criteria) for metric in point.metrics))
            for point in points]


def asked(point: Point, metric: Metric, criteria: Criteria) -> Metric:
    for one in criteria.criteria:
        if one.fits(point, metric):
            metric = Metric(metric.name, metric.margin if one.margin is None else one.margin,
                            metric.more_is_better if one.better is None else one.better == "more")
    return metric


def unused(points: "Sequence[Point]", criteria: Criteria) -> "List[str]":
    """A line for each criterion that matches nothing measured: a wrong name must not go unnoticed."""
    return [f"{criteria.path}: [[criterion]] {number}: nothing is measured that {one.point}, {one.metric} fits"
            for number, one in enumerate(criteria.criteria) if number and not any(
                one.fits(point, metric) for point in points for metric in point.metrics)]


def write_criteria(path: str, points: "Sequence[Point]", confidence: float) -> None:
    """Write the criteria in force to a file that users may edit. Raises GateError."""
    lines = ["# Criteria of a gate: netgate --criteria FILE. margin is in percent; * fits anything.",
             "[default]", f"confidence = {confidence:g}"]
    for point in points:
        for metric in point.metrics:
            lines += ["", "[[criterion]]", f"point = {json.dumps(point.name)}",
                      f"metric = {json.dumps(metric.name)}", f"margin = {metric.margin!r}",
                      f'better = "{"more" if metric.more_is_better else "less"}"']
    try:
        with open(path, "x", encoding="utf-8", opener=files.opener) as file:
            file.write("\n".join(lines) + "\n")
    except FileExistsError:
        raise GateError(f"{path}: already exists: choose another name") from None
    except OSError as fault:
        raise GateError(f"{path}: {fault.strerror}") from None


COLOURS = {WORSE: "\033[31m", BETTER: "\033[32m", CANT_TELL: "\033[33m", EQUAL: ""}


def figure(value: "Optional[float]", unit: str = "") -> str:
    """A figure to five digits, with its unit."""
    if value is None or not math.isfinite(value):
        return "-"
    digits = 4 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{min(9, max(0, digits))}f} {unit}".rstrip()


def percent(value: "Optional[float]", sign: str = "+") -> str:
    if value is None or not math.isfinite(value):
        return "?"
    value = round(value, 1 if abs(value) >= 1 else 2) + 0.0     # no -0
    return f"{value:{sign}.{1 if abs(value) >= 1 else 2}f}"


def interval(one: Judgement, sign: str = "+") -> str:
    """Such as "-3.1 % (-3.8 to -2.4)"; without signs absolute and ascending, without bounds the change alone."""
    values = [one.change, one.low, one.high]
    if not sign:
        bounds = sorted((one.low, one.high), key=lambda bound: math.inf if bound is None else abs(bound))
        values = [None if value is None else abs(value) for value in (one.change, *bounds)]
    change, low, high = (percent(value, sign) for value in values)
    return f"{change} %" + ("" if low == high == "?" else f" ({low} to {high})")


def name_of(one: Judgement, gate: Gate) -> str:
    """The point's name, with the metric if the point has several."""
    several = sum(other.point == one.point for other in gate.judgements) > 1
    return f"{one.point}.{one.metric.name.lower()}" if several else one.point


def count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def sentence(one: Judgement, name: str) -> str:
    if one.words:
        return f"{one.verdict}: {one.words}"
    after = f"after {count(one.pairs, 'pair')}, {one.seconds:.0f} s"
    if one.verdict == EQUAL:
        return f"equal: {name} is within {one.metric.margin:g} % of A: {interval(one)} {after}"
    if one.verdict != CANT_TELL and one.failing and abs(one.change or 0) <= one.metric.margin:
        return f"{one.verdict}: {name}: {one.failing}, {after}"
    if one.verdict != CANT_TELL:
        side = "above" if (one.change or 0) > 0 else "below"
        return f"{one.verdict}: {name} is {interval(one, '')} {side} A {after}"
    return f"can't tell: {name}: " + (f"{interval(one)} {after}: " if one.pairs else "") + doubt(one)


def doubt(one: Judgement) -> str:
    if not one.pairs:
        return one.why or "no pair was measured"
    noise = "noise not known" if one.noise is None else f"noise {percent(one.noise, '')} %"
    words = one.why or one.failing + ", " * bool(one.failing) + noise
    if one.more_pairs is None:
        return words
    return f"{words}, about {count(one.more_pairs, 'more pair')} ({one.more_pairs * one.seconds / one.pairs:.0f} s)"


def left_out(one: Judgement, gate: Gate) -> "List[str]":
    """Which slots of a point the verdict leaves out, and why."""
    slots = [slot for slot in gate.slots if slot.point == one.point]
    lines = [f"{number} of {len(slots)} slots failed: {why}"
             for why, number in Counter(slot.failed for slot in slots if slot.failed).most_common()]
    disturbed = disturbances([(slot.disturbed, slot.length, slot.reasons) for slot in slots], "slot")
    lines += [words for words in (disturbed, one.failing) if words]
    if one.left_out:
        lines.append(f"{count(one.left_out, 'pair')} left out" + (
            "" if one.noise_all is None else f": noise {percent(one.noise_all, '')} % of all, "
            f"{percent(one.noise, '')} % of the others"))
    return lines


def arithmetic(one: Judgement) -> "List[str]":
    """How the change was computed, if it does not follow from the figures of A and B."""
    if not one.base or one.value is None or one.change is None:
        return []
    ratio = 100 * (one.value / one.base - 1)
    if abs(ratio - one.change) <= max(abs(one.change) / 10, one.metric.margin / 4):
        return []
    return [f"A and B are medians, {percent(ratio)} % apart; the change is the centre of the pairs' ratios (Hodges-Lehmann)"]


def remarks(one: Judgement, gate: Gate) -> "List[str]":
    differs = [f"differs: {line}" for line in one.differs] if one.verdict in (WORSE, BETTER) else []
    return [" ".join(line.split()) for line in (*arithmetic(one), *one.notes, *left_out(one, gate), *differs)]


def summary(gate: Gate) -> "List[str]":
    """In words: a line for each result except equal ones, worse ones first, then the number of each verdict."""
    order = [WORSE, CANT_TELL, BETTER] if len(gate.judgements) > 1 else list(VERDICTS)
    lines = [sentence(one, name_of(one, gate)) for verdict in order for one in gate.judgements
             if one.verdict == verdict]
    if len(gate.judgements) > 1:
        found = Counter(one.verdict for one in gate.judgements)
        lines.append(f"{len(gate.judgements)} judged: "
                     + ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS if found[verdict]))
    alone = [slot for slot in gate.slots if slot.pair and not slot.failed]
    if alone and all(slot.side == A for slot in gate.slots):
        return [f"A is measured: {count(len(alone), 'slot')} of {count(len(gate.points), 'point')}"]
    return lines or ["can't tell: nothing was measured"]


HEADS = ("point", "metric", "A", "B", "change", "margin", "noise", "verdict", "pairs", "time")
WORDS = ("point", "metric", "change", "verdict")    # the other columns are numbers


def text(gate: Gate, strict: bool = False, colour: bool = False) -> str:
    """A table for people: a line for each judgement with remarks below it, then the summary."""
    rows = [HEADS] + [
        (one.point, one.metric.name, figure(one.base, one.unit), figure(one.value, one.unit),
         interval(one) if one.pairs else "-", f"{one.metric.margin:g} %",
         "-" if one.noise is None else f"{percent(one.noise, '')} %", one.verdict, str(one.pairs),
         f"{one.seconds:.0f} s") for one in gate.judgements]
    wide = [max(len(row[i]) for row in rows) for i in range(len(HEADS))]
    lines = [f"B against A: {count(len(gate.slots), 'slot')} in {gate.seconds:.0f} s, confidence "
             f"{gate.confidence:g} %"]
    told: "set[Tuple[str, str]]" = set()
    for row, one in zip(rows, (None, *gate.judgements)):
        cells = [cell.ljust(width) if head in WORDS else cell.rjust(width)
                 for cell, width, head in zip(row, wide, HEADS)]
        if one and colour and COLOURS[one.verdict]:
            at = HEADS.index("verdict")
            cells[at] = f"{COLOURS[one.verdict]}{cells[at]}\033[0m"
        lines.append("  ".join(cells).rstrip())
        for line in remarks(one, gate) if one else ():
            if (one.point, line) not in told:   # remarks about a point's slots appear once
                lines.append(f"    {line}")
            told.add((one.point, line))
    ended = [f"ended early: {gate.over}"] if gate.over else []
    skipped = [f"left out: {name}: {why}" for name, why in gate.skipped]
    return "\n".join([*lines, *gate.notes, *skipped, *ended, *summary(gate), ""])


def judgements_of(gate: Gate) -> "List[Judgement]":
    """The judgements. For readers to whom a list without tests is an error, it is never empty."""
    return gate.judgements or [Judgement("netgate", Metric())]


def ktap(gate: Gate, strict: bool = False, tap13: bool = False) -> str:
    """KTAP, or TAP 13 as the kernel's selftests write it: a line for each judgement, without subtests, which not all
    readers know. SKIP only if there is no verdict at all, as some readers apply it to the whole program."""
    judged = judgements_of(gate)
    lines = ["TAP version 13" if tap13 else "KTAP version 1", f"1..{len(judged)}"]
    lines += [f"# {line}" for line in (*gate.notes, *(f"left out: {name}: {why}" for name, why in gate.skipped))]
    for number, one in enumerate(judged, 1):
        name = re.sub(r"[^\w.-]", "_", name_of(one, gate))
        bad = one.verdict == WORSE or (strict or gate.failed) and one.verdict == CANT_TELL
        skip = "" if bad or gate.told() else f"SKIP can't tell ({doubt(one)}) "
        lines += [f"# {line}" for line in (sentence(one, name), *remarks(one, gate))]
        lines.append(f"{'not ok' if bad else 'ok'} {number} {name} # {skip}{pairs_of(one)}")
    if gate.over:
        lines.append(f"# ended early: {gate.over}")
    return "\n".join(" ".join(line.split()) for line in lines) + "\n"


def pairs_of(one: Judgement) -> str:
    """Such as "value=9412.3 unit=Mbit/s lo=-0.40 ..."; unknown values are left out."""
    found = {"value": figure(one.value), "unit": one.unit.replace(" ", "_"), "lo": percent(one.low, ""),
             "hi": percent(one.high, ""), "base": figure(one.base),
             "verdict": one.verdict.replace("'", "").replace(" ", "_"), "time": f"{1000 * one.seconds:.0f}ms"}
    return " ".join(f"{name}={value}" for name, value in found.items() if value not in ("", "-", "?"))


UNPRINTABLE = re.compile("[^\\t\\n\\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")   # no XML has these


def junit(gate: Gate, strict: bool = False) -> str:
    """JUnit XML for Jenkins, GitLab and others: a test case for each judgement."""
    tops = ET.Element("testsuites")
    suite = ET.SubElement(tops, "testsuite", name=gate.program, timestamp=gate.started.rstrip("Z"),
                          time=f"{gate.seconds:.3f}", tests=str(len(judgements_of(gate)) + len(gate.skipped)))
    known = {"command": shown(gate.command), "confidence": gate.confidence, "budget": gate.budget,
             "margin": {name_of(one, gate): one.metric.margin for one in gate.judgements},
             "noise": gate.learned.noise, "over": gate.over or None, **gate.environment}
    properties = ET.SubElement(suite, "properties")
    for name, value in flatten(known, between="."):
        ET.SubElement(properties, "property", name=name,
                      value=" ".join(map(str, value)) if isinstance(value, list) else str(value))
    kinds: "Counter[str]" = Counter()
    for one in judgements_of(gate):
        name = name_of(one, gate)
        case = ET.SubElement(suite, "testcase", classname=f"{gate.program}.{one.point}", name=one.metric.name,
                             time=f"{one.seconds:.3f}")
        words = "\n".join([sentence(one, name), *remarks(one, gate), pairs_of(one)])
        doubtful = "error" if gate.failed else "failure" if strict else "skipped"
        kind = {WORSE: "failure", CANT_TELL: doubtful}.get(one.verdict, "system-out")
        about = {} if kind == "system-out" else {"message": gate.over if kind == "error" else sentence(one, name)}
        ET.SubElement(case, kind, **about).text = words
        kinds[kind] += 1
    for name, why in gate.skipped:
        case = ET.SubElement(suite, "testcase", classname=f"{gate.program}.{name}", name=name, time="0")
        ET.SubElement(case, "skipped", message=why)
    kinds["skipped"] += len(gate.skipped)
    suite.attrib.update(failures=str(kinds["failure"]), skipped=str(kinds["skipped"]), errors=str(kinds["error"]))
    if gate.notes or gate.over:
        ET.SubElement(suite, "system-out").text = "\n".join([*gate.notes, gate.over]).strip()
    for element in tops.iter():
        element.text = element.text and UNPRINTABLE.sub("?", element.text)
        element.attrib.update({name: UNPRINTABLE.sub("?", value) for name, value in element.attrib.items()})
    ET.indent(tops, " ")
    return "<?xml version='1.0' encoding='utf-8'?>\n" + ET.tostring(tops, encoding="unicode") + "\n"


def ksft_status(status: int) -> int:
    """The exit status for the kernel's test framework: passed, skipped, failed."""
    return {0: 0, 77: 4}.get(status, 1)


tap = functools.partial(ktap, tap13=True)
FORMATS = {"text": text, "ktap": ktap, "tap": tap, "junit": junit}


class Printed(View):
    """A view that prints the finished gate in one of FORMATS."""

    def __init__(self, form: str, strict: bool = False) -> None:
        self._form, self._strict = form, strict

    def end(self, gate: Gate) -> None:
        more = {"colour": True} if self._form == "text" and progress.colours(sys.stdout) else {}
        sys.stdout.write(FORMATS[self._form](gate, self._strict, **more))
        sys.stdout.flush()


class Live(View):
    """A view on stderr: one line redrawn with the budget left ("bar"), one for each slot ("plain"), or "never"."""

    def __init__(self, kind: str = "plain", stream: Optional[TextIO] = None) -> None:
        self._line, self._since, self._budget, self._last = progress.Progress(kind, stream=stream), 0.0, 1.0, ""

    def begin(self, gate: Gate) -> None:
        self._since, self._budget = time.monotonic(), gate.budget
        self._line.__enter__()
        self._show("begins")

    def next(self, point: Point, side: str) -> None:
        self._show(f"{point.name} {side}")

    def slot(self, slot: Slot, gate: Gate, judgements: "Sequence[Judgement]") -> None:
        self._last = so_far(slot, judgements)
        if self._line.kind == "plain":
            self._line.line(f"{self._spent():.0f}/{gate.budget:.0f} s  {self._last}")
        self._show("")

    def end(self, gate: Gate) -> None:
        self._line.__exit__()

    def _spent(self) -> float:
        return time.monotonic() - self._since

    def _show(self, words: str) -> None:
        left = max(0.0, self._budget - self._spent())
        told = " | ".join(filter(None, [words, self._last]))
        self._line.show(progress.State(self._budget - left, self._budget, told, left, left, left, "s", "at most"))


def so_far(slot: Slot, judgements: "Sequence[Judgement]") -> str:
    """A finished slot, and the state of the metric that is furthest from a verdict."""
    name, value = next(iter(slot.figures.items()), ("", None))
    words = f"{slot.point} {slot.side}: " + (f"failed: {slot.failed}" if slot.failed else
                                             figure(value, slot.units.get(name, "")))
    mine = [one for one in judgements if one.point == slot.point and one.pairs]
    one = next((one for one in mine if one.verdict == CANT_TELL), mine[0] if mine else None)
    return words + (f"; {interval(one)} after {count(one.pairs, 'pair')}: {one.verdict}" if one else "")


def views(form: str, live: View, path: "Optional[str]" = None, strict: bool = False,
          mode: str = "xb", evidence: bool = False) -> "List[View]":
    """The views of netgate's options: progress, a file, and a form (one of FORMATS, or json). Raises GateError."""
    made: "List[View]" = [live]
    if path:
        made.append(Writer(path, evidence, mode))
    return [*made, Writer("-", evidence) if form == "json" else Printed(form, strict)]
