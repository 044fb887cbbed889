"""Which engines both ends of a test have, asked before it runs: netperf --engine list --json."""

import contextlib
import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

from netkit import calls, machine, options

LIMIT = 30.0    # seconds for an answer: the far end may be slow to refuse
Reasons = Dict[str, Optional[str]]      # by the engine's name; None: it can be had


def pair(engine: str) -> "Tuple[str, str]":
    """What drives this end and the far one: "a/b", or "a" for both."""
    near, slash, far = engine.partition("/")
    return near.lower(), (far if slash else near).lower()


def reasons(listed: Any) -> Optional[Reasons]:
    """One end's part of the answer; None where that end tells nothing."""
    if not isinstance(listed, list):
        return None
    return {str(row.get("name")).lower(): row.get("why") for row in listed if isinstance(row, dict)}


def excluded(engine: str, near: Optional[Reasons], far: Optional[Reasons]) -> str:
    """Why a test can't be driven by it; empty: it can, as far as the ends tell."""
    for name, told, where in zip(pair(engine), (near, far), ("this end", "the far end")):
        if told is None:
            continue
        if name not in told:
            return f"{where} has no engine {name}"
        if told[name] is not None:
            return f"{where}: {name}: {told[name]}"
    return ""


# Of a netserver of the sweep's own: what lets this many threads have an engine that it serves only then.
LENT = {"uring": ("--uring", "16"), "spin": ("--spin", "16")}


def daemon_options(engines: "Sequence[Any]") -> "List[str]":
    """What a netserver has to be started with, so that its end can have all of them."""
    wanted = {pair(str(engine))[1] for engine in engines if engine is not None}
    return [word for name, words in LENT.items() if name in wanted for word in words]


def question(netperf: str, known: "Dict[str, Any]") -> "List[str]":
    """The command of a point, but for a list of what there is."""
    plain = {name: value for name, value in known.items() if name != "engine"}
    words = options.command(netperf, plain)
    return [words[0], "--engine", "list", "--json", *words[1:]]


@dataclass
class Engines:
    """What the ends have said, by the test and the place. A netperf that does not tell excludes nothing:
    its runs say what they can't do."""
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
