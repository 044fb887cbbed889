"""Asks both ends which I/O engines they have before a test: netperf --engine list --json."""

import contextlib
import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

from netkit import calls, machine, options

LIMIT = 30.0    # seconds for an answer: the far end may be slow to refuse
Reasons = Dict[str, Optional[str]]      # by engine; None: available


def pair(engine: str) -> "Tuple[str, str]":
    """Split "a/b" into near and far engine; "a" is both."""
    near, slash, far = engine.partition("/")
    return near.lower(), (far if slash else near).lower()


def reasons(listed: Any) -> Optional[Reasons]:
    """One end's part of the answer; None if that end does not report engines."""
    if not isinstance(listed, list):
        return None
    return {str(row.get("name")).lower(): row.get("why") for row in listed if isinstance(row, dict)}


def excluded(engine: str, near: Optional[Reasons], far: Optional[Reasons]) -> str:
    """Why the engine can't run a test; empty if it can, or if that is unknown."""
    for name, told, where in zip(pair(engine), (near, far), ("this end", "the far end")):
        if told is None:
            continue
        if name not in told:
            return f"{where} has no engine {name}"
        if told[name] is not None:
            return f"{where}: {name}: {told[name]}"
    return ""


# Options of our own netserver that enable engines which it otherwise refuses.
LENT = {"uring": ("--uring", "16"), "spin": ("--spin", "16")}


def daemon_options(engines: "Sequence[Any]") -> "List[str]":
    """Options that netserver needs so that its end has all these engines."""
    wanted = {pair(str(engine))[1] for engine in engines if engine is not None}
    return [word for name, words in LENT.items() if name in wanted for word in words]


def question(netperf: str, known: "Dict[str, Any]") -> "List[str]":
    """A point's command, changed to list the engines."""
    plain = {name: value for name, value in known.items() if name != "engine"}
    words = options.command(netperf, plain)
    return [words[0], "--engine", "list", "--json", *words[1:]]


@dataclass
class Engines:
    """The ends' answers by test and place. A netperf that reports no engines excludes nothing: its runs may fail."""
    netperf: str
    _told: "Dict[str, Tuple[Optional[Reasons], Optional[Reasons]]]" = field(default_factory=dict)

    def why_not(self, known: "Dict[str, Any]", place: machine.Place) -> str:
        engine = known.get("engine")
        if engine is None:
            return ""
        netperf, *rest = question(self.netperf, known)
        key = json.dumps([known.get("client"), *place.prefix, netperf, *place.options, *rest])
        if key not in self._told:
            answer: Any = {}
            with contextlib.suppress(ValueError):
                answer = json.loads(calls.run_one(place, [netperf, *rest], LIMIT, False).done.stdout)
            answer = answer if isinstance(answer, dict) else {}
            self._told[key] = reasons(answer.get("near")), reasons(answer.get("far"))
        return excluded(str(engine), *self._told[key])
