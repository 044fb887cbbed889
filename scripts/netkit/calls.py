"""The netperf of a run, in one process or several, and the documents that it writes."""

import contextlib
import io
import json
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from netkit import machine, numbers, options
from netkit.engines import ROWS
from netkit.results import Run, is_number, within

WRITE = "--json=/dev/fd/{}"     # an unlinked file: nothing is left of it however we end
ANSWER_LIMIT = 10               # seconds for commands that are not tests
NUMBER = 3                      # the highest number of documents that is known: doc/json.md


@dataclass
class Ended:
    """The result of a call: its output, and its document, if it wrote one."""
    done: machine.Done
    document: "Dict[str, Any]" = field(default_factory=dict)
    begun: Optional[float] = None       # start on this machine's clock, if several ran at the same time

    @property
    def iterations(self) -> "List[Dict[str, Any]]":
        return [one for one in self.document.get("iterations") or [] if isinstance(one, dict)]

    @property
    def last(self) -> "Dict[str, Any]":
        return self.iterations[-1] if self.iterations else {}


class NewerDocument(Exception):
    """A document with a number that this program does not know; one line."""


def known(found: "Dict[str, Any]") -> "Dict[str, Any]":
    """A document in the form that the programs use. Raises NewerDocument, or ValueError if it is not a document."""
    json.dumps(found, allow_nan=False)      # a ValueError
    number = numbers.of(found)
    if number > NUMBER:
        raise NewerDocument(f"netperf wrote a document of number {number}, and this program reads 1 to {NUMBER} "
                            "(a newer one is needed)")
    try:
        return numbers.whole(found)
    except (AttributeError, KeyError, TypeError, RecursionError) as fault:
        raise ValueError(f"damaged: {fault}") from None


def ended(done: machine.Done, file: "BinaryIO") -> Ended:
    try:
        file.seek(0)
        found = json.load(file)
        made = Ended(done, known(found) if isinstance(found, dict) else {})
        told(made, {"flows": 2, "evidence": True})      # fails if it is damaged
        return made
    except NewerDocument as fault:
        return Ended(done._replace(reason=done.reason or str(fault)))
    except (OSError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return Ended(done)


def refused(command: "Sequence[str]") -> str:
    """The options of a command that netperf says it rejects or ignores; empty if none, or if it can't be asked."""
    if not machine.knows(command[0], "--dry-run"):
        return ""
    done = machine.run([command[0], "--dry-run", *command[1:]], ANSWER_LIMIT)
    said = done.stderr.strip().splitlines()
    return said[0].partition(": ")[2] if done.exit and said else ""


def has_document(command: "Sequence[str]") -> bool:
    return any(word == "--json" or word.startswith("--json=") for word in command)


class Call(NamedTuple):
    """A netperf in one process or several, with the command prefix or the way to its host."""
    command: "List[str]"
    prefix: "List[str]"
    processes: int = 1
    way: Any = None             # a fleet.Way


def run_all(asked: "Sequence[Call]", limit: float, documents: bool) -> "List[List[Ended]]":
    """Run netperfs at the same time, with documents in unlinked files unless they have --json. Raises Interrupted."""
    if len(asked) > 1 or any(call.way for call in asked):
        return run_far(asked, limit, documents)
    with contextlib.ExitStack() as open_files:
        each: "List[Tuple[List[str], Optional[BinaryIO]]]" = []
        for command, prefix, processes, _ in asked:
            for _ in range(processes):
                file = open_files.enter_context(tempfile.TemporaryFile()) if documents and not has_document(command) else None
                each.append(([*prefix, command[0], *([WRITE.format(file.fileno())] if file else []), *command[1:]], file))
        done = machine.run_all([words for words, _ in each], limit, fds=[file.fileno() for _, file in each if file])
        ends = iter([ended(one, file) if file else Ended(one) for one, (_, file) in zip(done, each)])
        return [[next(ends) for _ in range(call.processes)] for call in asked]


def run_far(asked: "Sequence[Call]", limit: float, documents: bool) -> "List[List[Ended]]":
    """As run_all(), for commands on any hosts, which wait for each other to start together."""
    from netkit import fleet        # slow to import, as it needs asyncio; few runs need it
    here = fleet.Host(ROWS["local"], "")
    made = [[fleet.Command(call.way or fleet.Way(here, call.command[0]), call.command, documents and not has_document(call.command), call.prefix)
             for _ in range(call.processes)] for call in asked]
    fleet.loop().run(fleet.together([command for each in made for command in each], limit))
    fleet.loop().run(here.end(), heed=False)

    def of(command: fleet.Command) -> Ended:
        done, written = command.done()
        if done.exit == 127:
            done = done._replace(reason=f"{command.complaint()} (--copy takes ours there)")
        found = ended(done, io.BytesIO(written))
        found.begun = command.begun
        return found
    return [[of(command) for command in each] for each in made]


def at(place: machine.Place, command: "List[str]", processes: int = 1) -> Call:
    """A command where the place has its client."""
    return Call([command[0], *place.options, *command[1:]], list(place.prefix), processes, place.way)


def run_one(place: machine.Place, command: "List[str]", limit: float, documents: bool) -> Ended:
    return run_all([at(place, command)], limit, documents)[0][0]


def fail(run: Run, status: Optional[int], reason: str) -> None:
    run.status, run.exit = "failed", status
    if reason:
        run.more["reason"] = reason


ENGINES_OWN = ("flow.", "thread.", "work.", "engine.", "udp.", "wire.", "moved.nic.")


def kept(last: "Dict[str, Any]", all_of_it: bool) -> "Dict[str, Any]":
    """Evidence of both ends: single values, and what could not be read. host.* is in `environment`."""
    def keeps(name: str) -> bool:
        return not name.startswith("host.") if all_of_it else name.startswith(ENGINES_OWN)

    made: "Dict[str, Any]" = {}
    for end in ("near", "far"):
        if isinstance(last.get(end), dict):
            made[end] = {name: value for name, value in last[end].items()
                         if keeps(name) and not isinstance(value, (list, dict))}
            lacks = {name: why for name, why in (last[end].get("unread") or {}).items() if keeps(name)}
            made[end].update({"unread": lacks} if lacks else {})
    return made


def disturbed(iterations: "List[Dict[str, Any]]") -> "Dict[str, Any]":
    """The share of the time that was disturbed, and seconds for each cause, over all iterations."""
    parts = [one["disturbed"] for one in iterations if isinstance(one.get("disturbed"), dict)]
    seconds = sum(part.get("seconds") or 0.0 for part in parts)
    if not seconds:
        return {}
    reasons: "Counter[str]" = Counter()
    for part in parts:
        reasons.update(part.get("reasons") or {})
    share = sum((part.get("share") or 0.0) * (part.get("seconds") or 0.0) for part in parts) / seconds
    return {"disturbed": {"share": round(share, 6), "seconds": round(seconds, 6),
                          "reasons": {name: round(time, 6) for name, time in reasons.items()}}}


def interim_results(document: "Dict[str, Any]", number: int) -> "Iterator[Tuple[float, Dict[str, Any]]]":
    at = 0.0
    for one in document.get("interim") or []:
        if number in (0, one.get("iteration")) and is_number(one.get("rate")):
            at += one.get("seconds") or 0.0
            yield round(at, 6), one


def interim_flows(document: "Dict[str, Any]", number: int) -> "Dict[str, Any]":
    """For several flows: seconds since the start, the rates of all or their quartiles, Jain's index."""
    found = [[at, one.get("flows") or one["flow_quartiles"], one.get("jain_index")]
             for at, one in interim_results(document, number) if one.get("flow_quartiles")]
    return {"interim_flows": found, "interim_quartiles": not document["interim"][0].get("flows")} if found else {}


def told(end: Ended, known: "Dict[str, Any]") -> "Dict[str, Any]":
    """What is kept of a document: flows if there are several, evidence if requested or with an engine, and so on."""
    flows = (known.get("flows") or 1) > 1 and end.last.get("flows")
    asked = known.get("evidence") is True
    evidence = kept(end.last, asked) if asked or known.get("engine") is not None else {}
    between = within(end.document, "latency", "intervals")
    return {**({"flows": flows} if flows else {}), **({"evidence": evidence} if evidence else {}),
            **({"intervals": between} if between else {}),
            **(interim_flows(end.document, len(end.iterations)) if flows else {}),
            **({"curve": end.document["curve"]} if end.document.get("curve") else {}), **disturbed(end.iterations)}


def read(run: Run, known: "Dict[str, Any]", ends: "List[Ended]") -> None:
    """Fill in a run's figures from the results of one netperf or several."""
    results = [options.figures(known, end.done.stdout) for end in ends]
    samples = [options.interim(end.done.stdout) for end in ends]
    bad = [i for i, end in enumerate(ends) if end.done.exit != 0 or end.done.reason or samples[i] is None
           or not isinstance(results[i].get("THROUGHPUT"), (int, float))]
    first = bad[0] if bad else 0
    done = ends[first].done
    run.exit, run.stdout, run.stderr = done.exit, done.stdout, done.stderr
    run.result = results[first]
    if len(ends) > 1:
        run.result = {} if bad else options.together(results)
        run.more["processes"] = [
            {"exit": end.done.exit, "stdout": end.done.stdout, "stderr": end.done.stderr, "result": result,
             **({"interim": sample} if sample else {}), **told(end, known)}
            for end, result, sample in zip(ends, results, samples)]
        run.more.update(disturbed([one for end in ends for one in end.iterations]))
    else:
        run.interim = samples[0] or None
        run.more.update(told(ends[0], known))
    if bad:
        why = "no throughput" if samples[first] is not None else "an interim result that is not a number"
        fail(run, done.exit, done.reason or ("" if done.exit else f"netperf printed {why}"))
