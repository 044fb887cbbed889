"""What the parts of a gate hand to each other: points, slots, judgements. No part of them measures, judges
or prints; trial.py judges, bench.py measures, output.py prints."""

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
    """A gate that cannot go on; one line that names the fault and the remedy."""


class Lacking(GateError):
    """This machine has not what the test takes: a test of the kernel's framework is then skipped."""
    status = 77


@dataclass(frozen=True)
class Metric:
    """A figure to compare, by netperf's name of it, and the criterion."""
    name: str = "THROUGHPUT"
    margin: float = 2.0             # percent: a smaller difference is none
    more_is_better: bool = True


@dataclass(frozen=True)
class Side:
    """One of the two configurations at a point."""
    options: "Tuple[str, ...]" = ()     # of the test, after the --
    globals: "Tuple[str, ...]" = ()     # before the --
    before: "Tuple[str, ...]" = ()      # shell commands, run before a slot when the side changes
    after: "Tuple[str, ...]" = ()       # and what takes them back
    settings: "Tuple[Tuple[str, str], ...]" = ()    # of keeper.py: ("mtu lab0", "9000"): set, and put back
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
    """What became of one metric at one point. Changes are percent of A, as B against A."""
    point: str
    metric: Metric
    verdict: str = CANT_TELL
    change: Optional[float] = None      # estimate: +1.5 is B 1.5 % above A
    low: Optional[float] = None         # the confidence sequence's bounds of it
    high: Optional[float] = None
    value: Optional[float] = None       # median of B, in the metric's unit
    base: Optional[float] = None        # and of A
    unit: str = ""
    pairs: int = 0
    left_out: int = 0                   # pairs with a slot that failed, or whose processors were taken
    failing: str = ""                   # where one side gave nothing more often than the other
    noise: Optional[float] = None       # percent: standard deviation of the ratio of the pairs that count
    noise_all: Optional[float] = None   # with those whose processors were taken; None: none is left out for it
    more_pairs: Optional[int] = None    # about, for a verdict, where there is none
    seconds: float = 0.0                # that this point took
    words: str = ""                     # the verdict, where it is not of pairs
    notes: "List[str]" = field(default_factory=list)
    differs: "List[str]" = field(default_factory=list)  # what else differs between A and B (differ.py)


@dataclass
class Learned:
    """What the A/A part found."""
    slots: int = 0
    noise: "Dict[str, float]" = field(default_factory=dict)     # by point: percent, of a pair's ratio
    correlation: "Dict[str, float]" = field(default_factory=dict)   # lag 1, of slots in a row
    length: "Dict[str, float]" = field(default_factory=dict)    # seconds of a slot from here on


@dataclass
class Gate:
    """A finished gate, for the views. Slots stand in the order in which they were measured."""
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
    skipped: "List[Tuple[str, str]]" = field(default_factory=list)  # points that can't be had here, and why
    over: str = ""                      # why it ended before its time: a signal, a far end that went
    failed: bool = False                # because it could not go on: what is not told is no doubt then
    program: str = "netgate"            # by which readers of JUnit group

    def told(self) -> bool:
        """Whether there is a verdict at all."""
        return any(one.verdict != CANT_TELL for one in self.judgements)

    def status(self, strict: bool = False, one_will_do: bool = False) -> int:
        """The exit status: 1 when one is worse, else 77 when one can't be told, or none of them, else 0."""
        verdicts = [one.verdict for one in self.judgements]
        if WORSE in verdicts:
            return 1
        if CANT_TELL in verdicts or not verdicts:
            return 1 if strict else 0 if one_will_do and self.told() else 77
        return 0


class View:
    """What is reported of a gate while it runs and at its end; nothing, where a view does not say otherwise."""

    def begin(self, gate: Gate) -> None:
        pass

    def next(self, point: Point, side: str) -> None:
        """This slot begins."""

    def slot(self, slot: Slot, gate: Gate, judgements: "Sequence[Judgement]") -> None:
        pass

    def end(self, gate: Gate) -> None:
        pass
