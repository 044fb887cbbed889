"""Converts netperf documents (doc/json.md) of any number to one form: an iteration has all of its figures (only once
from number 3 on), evidence the names of doc/evidence.md, and histograms are pairs."""

from typing import Any, Dict, Iterator, List, Tuple

Object = Dict[str, Any]
HALF_BITS = 10          # resolution of a histogram: the values of a bucket differ by at most 0.1 %
CELLS = 38 << HALF_BITS
OF_DISTURBED = {"share": "DISTURBED_SHARE", "clean_seconds": "CLEAN_SECONDS", "clean_throughput": "CLEAN_THROUGHPUT"}


def of(document: Object) -> int:
    """The document's number; 0 if it has none."""
    number = str(document.get("schema")).rpartition("/")[2]
    return int(number) if number.isdecimal() else 0


def whole(document: Object) -> Object:
    """Convert a document. Raises AttributeError, KeyError, TypeError or ValueError if it is invalid."""
    if of(document) < 3:
        return document
    final, told = document.setdefault("final", None) or {}, document.get("explanation")
    for one in document.get("iterations") or []:
        figures = one["metrics"] = {**final, **(one.get("metrics") or {})}
        one["elapsed"] = figures.get("ELAPSED_TIME")
        for end in ("near", "far"):
            one[end] = flat(one[end]) if end in one else None
        if "disturbed" in one:
            one["disturbed"].update({name: figures.get(figure) for name, figure in OF_DISTURBED.items()})
    if told:
        told["values"] = {**flat(told.get("values") or {}), "explain.sentence": told["text"]}
    return {**with_pairs(document), "schema": "plumbline-netperf/2"}


def flat(bag: Object, before: str = "") -> Object:
    """Turn {"tcp": {"rtt_us": 5}} into {"tcp.rtt_us": 5}."""
    made: Object = {}
    for name, value in bag.items():
        if isinstance(value, dict) and name != "unread":
            made.update(flat(value, f"{before}{name}."))
        else:
            made[before + name] = value
    return made


def with_pairs(part: Any) -> Any:
    """Convert all histograms within a part of a document."""
    if isinstance(part, list):
        return [with_pairs(one) for one in part]
    if not isinstance(part, dict):
        return part
    made = {name: with_pairs(value) for name, value in part.items() if name != "cells"}
    if "cells" in part:
        made["cells"] = [list(pair) for pair in pairs(part["cells"])]
        made["count"] = sum(count for _, count in made["cells"])
    return made


def pairs(counts: "List[int]") -> "Iterator[Tuple[int, int]]":
    """The lower bound of each non-empty bucket in ns, and its count."""
    cell = 0
    for count in counts:
        if count < 0:
            cell -= count
        elif cell >= CELLS:
            raise ValueError("a histogram has too many cells")
        else:
            shift = max(0, (cell >> HALF_BITS) - 1)
            yield (cell - (shift << HALF_BITS)) << shift, count
            cell += 1
