"""The netperf of a run: one process or several, and the documents in which they tell their flows."""

import contextlib
import json
import os
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence

from netkit import machine, options
from netkit.results import Run


@dataclass
class Call:
    """A command, and where it writes its document (empty: it writes none)."""
    words: "List[str]"
    document: str = ""

    def read(self, done: machine.Done) -> "Ended":
        """What its document tells of the last iteration; nothing where there is none."""
        try:
            with open(self.document, encoding="utf-8") as file:
                last = json.load(file)["iterations"][-1]
            return Ended(done, list(last.get("flows") or []), kept(last))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return Ended(done, [], {})


KEPT = ("flow.", "thread.", "work.", "engine.", "udp.", "wire.", "moved.nic.")     # of the evidence


def kept(last: "Dict[str, Any]") -> "Dict[str, Any]":
    """The evidence of both ends as far as tables go by it: single values, and what could not be read."""
    made: "Dict[str, Any]" = {}
    for end in ("near", "far"):
        told = last.get(end)
        if not isinstance(told, dict):
            continue
        made[end] = {name: value for name, value in told.items()
                     if name.startswith(KEPT) and not isinstance(value, (list, dict))}
        lacks = {name: why for name, why in (told.get("unread") or {}).items() if name.startswith(KEPT)}
        made[end].update({"unread": lacks} if lacks else {})
    return made


@dataclass
class Ended:
    """What became of a call: what it printed, the rows of its flows, and what both ends know."""
    done: machine.Done
    flows: "List[Any]"
    evidence: "Dict[str, Any]"


def has_document(command: "Sequence[str]") -> bool:
    return any(word == "--json" or word.startswith("--json=") for word in command)


@contextlib.contextmanager
def made(command: "List[str]", prefix: "List[str]", processes: int) -> "Iterator[List[Call]]":
    """The calls of a run. Those with several flows or a named engine write documents into a folder that is
    gone afterwards."""
    if not {"--flows", "--engine"} & set(command) or has_document(command):
        yield [Call([*prefix, *command])] * processes
        return
    with tempfile.TemporaryDirectory(prefix="netsweep-") as place:
        paths = [os.path.join(place, f"{number}.json") for number in range(processes)]
        yield [Call([*prefix, command[0], f"--json={path}", *command[1:]], path) for path in paths]


def run_all(command: "List[str]", prefix: "List[str]", processes: int, limit: float) -> "List[Ended]":
    """Runs a command in so many processes side by side. Raises machine.Interrupted."""
    with made(command, prefix, processes) as calls:
        ends = machine.run_all([call.words for call in calls], limit)
        return [call.read(done) for done, call in zip(ends, calls)]


def fail(run: Run, status: Optional[int], reason: str) -> None:
    run.status, run.exit = "failed", status
    if reason:
        run.more["reason"] = reason


def exclude(run: Run, reason: str) -> None:
    """An end has not what it takes: there is nothing to run."""
    run.status, run.exit, run.more["reason"] = "excluded", None, reason


def told(end: Ended, known: "Dict[str, Any]") -> "Dict[str, Any]":
    """What is put down of a document: flows where there are several, evidence where an engine is named."""
    return {**({"flows": end.flows} if end.flows and (known.get("flows") or 1) > 1 else {}),
            **({"evidence": end.evidence} if end.evidence and known.get("engine") is not None else {})}


def read(run: Run, known: "Dict[str, Any]", ends: "List[Ended]") -> None:
    """What one netperf or several at once gave, as the figures of a run."""
    results = [options.figures(known, end.done.stdout) for end in ends]
    bad = [i for i, end in enumerate(ends)
           if end.done.exit != 0 or not isinstance(results[i].get("THROUGHPUT"), (int, float))]
    first = bad[0] if bad else 0
    done = ends[first].done
    run.exit, run.stdout, run.stderr = done.exit, done.stdout, done.stderr
    run.result = results[first]
    samples = [options.interim(end.done.stdout) for end in ends]
    if len(ends) > 1:
        run.result = {} if bad else options.together(results)
        run.more["processes"] = [
            {"exit": end.done.exit, "stdout": end.done.stdout, "stderr": end.done.stderr, "result": result,
             **({"interim": sample} if sample else {}), **told(end, known)}
            for end, result, sample in zip(ends, results, samples)]
    else:
        run.interim = samples[0] or None
        run.more.update(told(ends[0], known))
    if bad:
        fail(run, done.exit, done.reason or ("" if done.exit else "netperf printed no throughput"))
