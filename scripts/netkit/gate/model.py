"""The data that the parts of a gate share: trial.py judges, bench.py measures, output.py prints."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

from netkit import Fault

A, B = "A", "B"
EQUAL, WORSE, BETTER, CANT_TELL = "equal", "worse", "better", "can't tell"
VERDICTS = (EQUAL, WORSE, BETTER, CANT_TELL)

GATE_SCHEMA = "plumbline-gate/1"        # the first line of a file: what was compared, and where
SLOT_SCHEMA = "plumbline-slot/1"        # a slot
VERDICT_SCHEMA = "plumbline-verdict/1"  # a judgement


class GateError(Fault):
    """Why a gate cannot go on: one line with the fault and its remedy."""


class Lacking(GateError):
    """This machine lacks what the test needs: in the kernel's test framework the test is then skipped."""
    status = 77


@dataclass(frozen=True)
class Metric:
    """A figure to compare, by netperf's name, and the criterion."""
    name: str = "THROUGHPUT"
    margin: float = 2.0             # percent: smaller differences count as equal
    more_is_better: bool = True


@dataclass(frozen=True)
class Side:
    """One of the two configurations of a point."""
    options: "Tuple[str, ...]" = ()     # of the test, after the --
    globals: "Tuple[str, ...]" = ()     # before the --
    before: "Tuple[str, ...]" = ()      # shell commands, run before a slot when the side changes
    after: "Tuple[str, ...]" = ()       # and those that undo them
    settings: "Tuple[Tuple[str, str], ...]" = ()    # ("mtu lab0", "9000"), applied and restored by keeper.py
    netperf: str = ""                   # another binary
    host: str = ""                      # another far end


@dataclass(frozen=True)
class Point:
    """One thing to compare: a test with its two sides."""
    name: str                           # "tcp_stream.mtu9000": letters, digits, ".", "_", "-"
    test: str
    a: Side = Side()
    b: Side = Side()
    metrics: "Tuple[Metric, ...]" = (Metric(),)

    def side(self, name: str) -> Side:
        return self.a if name == A else self.b


@dataclass
class Slot:
    """One run of netperf, the unit of measurement."""
    point: str
    side: str
    number: int = 0                     # of all slots, from 1
    pair: int = 0                       # of the point: two slots, A and B, from 1; 0: the A/A part
    started: str = ""
    seconds: float = 0.0                # of wall clock, everything around it included
    length: float = 0.0                 # of the measured window
    command: "List[str]" = field(default_factory=list)
    figures: "Dict[str, float]" = field(default_factory=dict)       # by netperf's names
    units: "Dict[str, str]" = field(default_factory=dict)           # of those that have one
    disturbed: "Optional[float]" = None     # share of the time, 0 to 1; None: nobody looked
    reasons: "Dict[str, float]" = field(default_factory=dict)   # seconds that each cause disturbed
    taken: "Optional[float]" = None     # share of the time in which something outside the test had processors
    samples: "List[Tuple[float, float]]" = field(default_factory=list)  # seconds, rate within a slot
    evidence: "Dict[str, Any]" = field(default_factory=dict)    # {"near": {...}, "far": {...}} of the document
    settings: "Dict[str, Any]" = field(default_factory=dict)    # of the machine at that moment (differ.py)
    failed: str = ""                    # why it gave nothing, in one line
    hooks: "List[Dict[str, Any]]" = field(default_factory=list)     # run before it: command, status, output


@dataclass
class Judgement:
    """The result for one metric at one point. Changes are in percent, of B relative to A."""
    point: str
    metric: Metric
    verdict: str = CANT_TELL
    change: Optional[float] = None      # estimate: +1.5 is B 1.5 % above A
    low: Optional[float] = None         # bounds of its confidence sequence
    high: Optional[float] = None
    value: Optional[float] = None       # median of B, in the metric's unit
    base: Optional[float] = None        # and of A
    unit: str = ""
    pairs: int = 0
    left_out: int = 0                   # pairs with a slot that failed or was disturbed
    failing: str = ""                   # if one side failed more often than the other: how often
    noise: Optional[float] = None       # percent: standard deviation of the ratio of the pairs that count
    noise_all: Optional[float] = None   # of all pairs, including the disturbed ones; None: none was left out for that
    more_pairs: Optional[int] = None    # how many more a verdict takes, roughly, where there is none
    seconds: float = 0.0                # spent on this point
    why: str = ""                       # it can't be told, where that is not for the noise
    words: str = ""                     # the verdict, where it does not come from pairs
    notes: "List[str]" = field(default_factory=list)
    differs: "List[str]" = field(default_factory=list)  # what else differs between A and B (differ.py)


@dataclass
class Learned:
    """What the A/A slots showed."""
    slots: int = 0
    noise: "Dict[str, float]" = field(default_factory=dict)     # by point: percent, of a pair's ratio
    correlation: "Dict[str, float]" = field(default_factory=dict)   # lag 1, of slots in a row
    length: "Dict[str, float]" = field(default_factory=dict)    # seconds of a slot from then on


@dataclass
class Gate:
    """A finished gate, for the views. Slots are in the order of measurement."""
    points: "List[Point]"
    judgements: "List[Judgement]"
    slots: "List[Slot]" = field(default_factory=list)
    learned: Learned = field(default_factory=Learned)
    confidence: float = 95.0            # percent, of all judgements together
    budget: float = 60.0
    seconds: float = 0.0
    started: str = ""
    command: "List[str]" = field(default_factory=list)
    environment: "Dict[str, Any]" = field(default_factory=dict)
    notes: "List[str]" = field(default_factory=list)
    skipped: "List[Tuple[str, str]]" = field(default_factory=list)  # points that can't run here, and why
    over: str = ""                      # why it ended early: a signal, a far end that vanished
    failed: bool = False                # it ended early because of a failure: open verdicts are then failures, too
    program: str = "netgate"            # by which JUnit readers group results

    def told(self) -> bool:
        """Whether there is any verdict."""
        return any(one.verdict != CANT_TELL for one in self.judgements)

    def status(self, strict: bool = False, one_will_do: bool = False) -> int:
        """Exit status: 1 if something is worse, else 77 if a verdict is open (one_will_do: if all are), else 0."""
        verdicts = [one.verdict for one in self.judgements]
        if WORSE in verdicts:
            return 1
        if CANT_TELL in verdicts or not verdicts:
            return 1 if strict else 0 if one_will_do and self.told() else 77
        return 0


class View:
    """Reports a gate while it runs and at its end. The methods here do nothing."""

    def begin(self, gate: Gate) -> None:
        pass

    def next(self, point: Point, side: str) -> None:
        """A slot begins."""

    def slot(self, slot: Slot, gate: Gate, judgements: "Sequence[Judgement]") -> None:
        pass

    def end(self, gate: Gate) -> None:
        pass
