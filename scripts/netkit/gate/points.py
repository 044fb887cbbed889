"""What a gate compares: the points that options or a plan's tables define, with their sides and metrics."""

import itertools
import math
import re
import shlex
from typing import Any, Dict, Iterator, List, Tuple

from netkit import UsageError, options, plan as plans
from netkit.gate.model import Metric, Point, Side

# Which figures are better when smaller, and which when larger; for others the user has to say.
LESS = re.compile(r"_LATENCY$|^CONNECT_|_CPU_(UTIL|PERCENT_\w+|PEAK_UTIL)$|_SD$|_RETRANS$|^(FAILED|LOST|LATE|STRAY|"
                  r"DUPLICATE|SURPLUS)_|^RECEIVER_SPAN$|^DISTURBED_SHARE$")
MORE = re.compile(r"THROUGHPUT$|^TRANSACTION_RATE$|^JAIN_INDEX$|^UNIQUE_DATAGRAMS$")
DEFAULTS = {"UDP_STREAM": "REMOTE_RECV_THROUGHPUT"}     # what was received; THROUGHPUT is what was sent
MOST_MARGIN = 50.0
MOST = 10000        # points from one table
NAME = re.compile(r"[A-Za-z0-9._-]+")

# netperf options that the gate sets itself, and what to use instead.
OWN = {"-H": "--host", "-p": "--port", "-l": "--slot", "-t": "--test", "-P": "", "-D": "", "-I": "--confidence",
       "-i": "--budget", "-f": "", "-N": "", "--host": "--host", "--port": "--port", "--length": "--slot",
       "--test": "--test", "--json": "--output", "--warm-up": "--warm-up", "--interim": "", "--units": ""}
OF_TEST = {"-k": "--metric", "-o": "--metric", "-O": "--metric"}


def split(option: str, text: str) -> "Tuple[Tuple[str, ...], Tuple[str, ...]]":
    """Split options into netperf's and those of the test, after the --. Raises UsageError."""
    try:
        words = shlex.split(text)
    except ValueError as fault:
        raise UsageError(f"{option} {text!r}: {fault}") from None
    at = words.index("--") if "--" in words else len(words)
    for part, own in ((words[:at], OWN), (words[at + 1:], OF_TEST)):
        for word in part:
            name = word.partition("=")[0] if word.startswith("--") else word[:2]
            if name in own:
                remedy = f": take netgate's {own[name]}" if own[name] else ""
                raise UsageError(f"{option} {text!r}: netgate gives {name} by itself{remedy}")
    return tuple(words[:at]), tuple(words[at + 1:])


def metric(text: str, margin: float) -> Metric:
    """NAME[:less|:more][:MARGIN]. Raises UsageError."""
    name, *rest = text.split(":")
    way = next((one for one in rest if one in ("less", "more")), "")
    margins = [one for one in rest if one != way]
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*([0-9]\.[0-9]+(_LATENCY)?)?", name) or len(margins) > 1 or len(rest) > 2:
        raise UsageError(f"--metric {text}: try NAME, NAME:less or NAME:less:5 (netgate --list-metrics shows "
                        "names)")
    if not way and not LESS.search(name) and not MORE.search(name):
        raise UsageError(f"--metric {text}: say {name}:more or {name}:less, whichever is better")
    try:
        margin = float(margins[0]) if margins else margin
    except ValueError:
        margin = 0.0
    if not 0 < margin <= MOST_MARGIN:
        raise UsageError(f"--metric {text}: a margin is a percentage above 0, {MOST_MARGIN:g} at most")
    return Metric(name, margin, way == "more" if way else not LESS.search(name))


def setting(option: str, text: str) -> "Tuple[str, str]":
    """Split "mtu lab0=1400" into name and value."""
    name, equals, value = text.partition("=")
    name = " ".join(name.split())
    if not equals or not name or not value.strip():
        raise UsageError(f"{option} {text!r}: try 'mtu eth0=9000' or 'offload eth0 tso=off'")
    return name, value.strip()


def side(given: "Dict[str, Any]", letter: str) -> Side:
    globals_, of_test = split(f"--{letter}", given.get(letter) or "")
    return Side(options=of_test, globals=globals_, before=tuple(given.get(f"before_{letter}") or ()),
                after=tuple(given.get(f"after_{letter}") or ()),
                settings=tuple(setting(f"--set-{letter}", text) for text in given.get(f"set_{letter}") or ()),
                netperf=given.get(f"netperf_{letter}") or "", host=given.get(f"host_{letter}") or "")


def points(given: "Dict[str, Any]", name: str = "") -> "Iterator[Point]":
    """A point for each test that the options name. Raises UsageError."""
    a, b = side(given, "a"), side(given, "b")
    if given.get("aa") and b != Side():
        raise UsageError("--aa compares A with itself: no --b, --before-b, --set-b and so on beside it")
    tests = [test.strip().upper() for test in given["test"].split(",")]
    for test in tests:
        if test not in options.TESTS:
            raise UsageError(f"--test {test}: no test whose results can be read (try "
                            f"{', '.join(options.TESTS)})")
        wanted = given.get("metric") or [DEFAULTS.get(test, "THROUGHPUT")]
        metrics = {one.name: one for one in (metric(text, given["margin"]) for text in wanted)}
        own = f"{name}.{test.lower()}" if name and len(tests) > 1 else name or test.lower()
        yield Point(own, test, a, a if given.get("aa") else b, tuple(metrics.values()))


def check(made: "List[Point]") -> None:
    """Check that all points have different names."""
    for point in made:
        if not NAME.fullmatch(point.name):
            raise UsageError(f"point {point.name!r}: a name consists of letters, digits, \".\", \"_\" and \"-\"")
        if [one.name for one in made].count(point.name) > 1:
            raise UsageError(f"point {point.name}: used twice: each point needs a name of its own")


OF_A_POINT = {"name", "axes", "test", "margin", "metric", *(f"{word}{letter}" for letter in "ab" for word in (
    "", "before-", "after-", "set-", "netperf-", "host-"))}


def words_of(table: "Dict[str, Any]", where: str) -> "List[str]":
    """A table as command-line options: the keys are option names without dashes."""
    made: "List[str]" = []
    for key, value in table.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, bool):
                made += [f"--{key}"] if one else []
            elif isinstance(one, (str, int, float)):
                made.append(f"--{key}={one}")
            else:
                raise UsageError(f"{where}: {key}: a text, a number, true or false, or a list of such")
    return made


def spread(table: "Dict[str, Any]", where: str) -> "Iterator[Dict[str, Any]]":
    """A table for each combination of its axes' values, with {NAME} replaced in the other entries."""
    axes = table.pop("axes", {})
    if not isinstance(axes, dict) or not all(isinstance(values, list) and values for values in axes.values()):
        raise UsageError(f"{where}: axes: a list of values for each name, as in {{ size = [64, 1448] }}")
    if math.prod(map(len, axes.values())) > MOST:
        raise UsageError(f"{where}: axes: more than {MOST} points")
    for values in itertools.product(*axes.values()):
        at = dict(zip(axes, values))

        def filled(key: str, value: Any) -> Any:
            fill = plans.fill_shell if key.startswith(("before", "after")) else plans.fill_words
            return fill(value, at) if isinstance(value, str) and at else value

        try:
            made = {key: [filled(key, one) for one in value] if isinstance(value, list) else filled(key, value)
                    for key, value in table.items()}
        except plans.PlanError as fault:
            raise UsageError(f"{where}: {fault}") from None
        named = [str(made.get("name", "")), *(f"{name}{value}" for name, value in at.items())]
        yield {**made, "name": re.sub(r"[^A-Za-z0-9._-]+", "_", ".".join(filter(None, named))) if at else named[0]}


def load(path: str, known: "set[str]") -> "Tuple[List[str], List[Tuple[str, List[str]]]]":
    """A plan's [gate] table as options, and the name and options of each [[point]]. Raises UsageError."""
    try:
        data = plans.read_toml(path, UsageError)
    except UsageError as fault:
        raise UsageError(f"{fault} (a plan is a TOML file)") from None
    whole, tables = data.pop("gate", {}), data.pop("point", [])
    if data or not isinstance(whole, dict) or not isinstance(tables, list) or not tables or not all(
            isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: a plan has a table [gate] and tables [[point]]"
                        + (f", but no {next(iter(data))}" if data else ""))
    for table, allowed, where in [(whole, known, "[gate]"),
                                  *((table, OF_A_POINT, "[[point]]") for table in tables)]:
        for key in table:
            if key not in allowed:
                raise UsageError(f"{path}: {where} has no {key} (try {', '.join(sorted(allowed))})")
    return words_of(whole, f"{path}: [gate]"), [
        (table.pop("name"), words_of(table, f"{path}: [[point]]"))
        for many in tables for table in spread(many, f"{path}: [[point]]")]
