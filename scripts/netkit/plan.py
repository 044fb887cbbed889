"""Plans of sweeps: reads them from TOML, and makes the points and the order of their runs."""

import difflib
import functools
import glob
import itertools
import json
import math
import os
import random
import re
import shlex
import statistics
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Type

from netkit import UsageError, adaptive, engines, ioengines, options, python, rounds, units
from netkit.results import BOUND, Axis, Header, matches, point_key, within
from netkit.units import show_point, show_value

TOGETHER = ("rounds", "at-once")     # modes with several runs at a time; in "rounds" each end takes part in only one of them
ORDERS = ("given", "random", "interleaved", *TOGETHER)
WHERE = ("client", "server", "host")
HERE = "here"               # the client's name if the plan names none
EACH_RUN = "each_run"       # in [before] and [after]: for every run
LAB_ADDRESS = {4: "10.77.0.2", 6: "fd77::2"}
LOCAL_ADDRESS = {4: "127.0.0.1", 6: "::1"}
LEAST_RUNS, MOST_RUNS = 3, 10   # of a point that is repeated until its confidence is reached
MOST = 1000000              # runs of a sweep: all are in memory before the first one begins
A_DAY = 86400
SEARCH = 40                 # steps that netperf --rate auto takes at most
KEPT = ("least", "until", "pause", "local", "adaptive", "pairs")    # members of a plan that its file stores; the first four always
PLACE = re.compile(r"\{\{(\w+)\}\}|(\$?)\{([A-Za-z_]\w*)\}")
NAME = re.compile(r"[A-Za-z_]\w*")

Point = Dict[str, Any]


class PlanError(UsageError):
    """An invalid plan: one line that says where, and what to do."""


class Task(NamedTuple):
    point: Point
    repetition: int

    @property
    def key(self) -> "Tuple[str, int]":
        return point_key(self.point), self.repetition


def toml() -> Any:
    """A TOML parser: Python's own since 3.11, else that of a package."""
    try:
        import tomli
        return tomli
    except ImportError:
        pass
    try:
        return python.need("tomllib", "python3-tomli")
    except python.MissingModule:
        return python.need("tomli", "python3-tomli", "a plan")


def from_toml(text: str, path: str, fault: "Type[Exception]") -> "Dict[str, Any]":
    reader = toml()
    try:
        return dict(reader.loads(text))
    except (ValueError, RecursionError) as why:
        raise fault(f"{path}: {why}") from None


def read_toml(path: str, fault: "Type[Exception]") -> "Dict[str, Any]":
    return from_toml(read_text(path, fault), path, fault)


def read_text(path: str, fault: "Type[Exception]") -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as why:
        raise fault(f"{path}: {getattr(why, 'strerror', None) or why}") from None


@dataclass
class Plan:
    name: str
    text: str
    title: str = ""
    axes: "List[Axis]" = field(default_factory=list)
    constants: "Dict[str, Any]" = field(default_factory=dict)
    skips: "List[Dict[str, Any]]" = field(default_factory=list)
    before: "Dict[str, List[str]]" = field(default_factory=dict)
    after: "Dict[str, List[str]]" = field(default_factory=dict)
    repetitions: int = 1
    least: int = LEAST_RUNS
    until: "Optional[Sequence[float]]" = None       # confidence level, and full width of the interval in percent
    order: str = "given"
    seed: Optional[int] = None
    pause: float = 0.0
    pairs: "Optional[List[List[str]]]" = None       # of client and server; None: all
    adaptive: "Optional[Tuple[str, float]]" = None  # an axis whose values are chosen during the sweep, and a tolerance in percent
    label: str = ""             # distinguishes this set of runs from others
    hosts: "Dict[str, Any]" = field(default_factory=dict)     # ends that a cluster manages: their groups and nodes
    local: bool = False         # against a netserver of our own on loopback,
    port: Optional[int] = None  # which listens on this port

    def known(self, point: Point) -> "Dict[str, Any]":
        """Everything known about a point, including the far end's address."""
        known = {**self.constants, **point}
        if self.local or known.get("lab"):
            known["host"] = (LOCAL_ADDRESS if self.local else LAB_ADDRESS)[
                6 if known.get("family") == 6 else 4]
        elif known.get("server") and not known.get("host"):
            known["host"] = engines.host(str(known["server"]))
        return {**known, "port": self.port} if self.port else known

    def is_far(self) -> bool:
        """Whether the plan names ends on other hosts."""
        return self.has("client") or self.has("server")

    def points(self) -> "List[Point]":
        """All points in the plan's order; the first axis varies slowest."""
        axes = [(axis.name, axis.values) for axis in self.axes]
        if self.pairs:      # a few of the pairs that a large mesh could have
            ends = {name: {value: number for number, value in enumerate(values)} for name, values in axes if name in ("client", "server")}
            pairs = sorted({(pair[0], pair[1]) for pair in self.pairs}, key=lambda pair: (ends["client"][pair[0]], ends["server"][pair[1]]))
            axes = [*((name, values) for name, values in axes if name not in ends), ("pair", pairs)]
        made = [dict(zip([name for name, _ in axes], values)) for values in itertools.product(*(values for _, values in axes))]
        for point in made if self.pairs else ():
            point["client"], point["server"] = point.pop("pair")
        return [point for point in made if not any(matches({**self.constants, **point}, skip) for skip in self.skips)
                and not ("client" in point and len(set(self.ends(point))) == 1)]    # no host is measured with itself

    def tasks(self) -> "List[Task]":
        points, runs = self.points(), range(1, self.repetitions + 1)
        if self.order in ("interleaved", *TOGETHER):
            return [Task(point, run) for run in runs for point in points]
        made = [Task(point, run) for point in points for run in runs]
        if self.order == "random":
            random.Random(self.seed).shuffle(made)
        return made

    def ends(self, point: Point) -> "Tuple[str, str]":
        """The names of both ends, from the plan or else "here" and the host."""
        known = self.known(point)
        return engines.named(known.get("client") or HERE), engines.named(known.get("server") or known.get("host"))

    def batches(self, tasks: "List[Task]") -> "List[List[Task]]":
        """Groups of runs that take place at the same time, in the order of the runs."""
        if self.order not in TOGETHER:
            return [[task] for task in tasks]
        alike: "Dict[Tuple[str, int], List[Task]]" = {}
        for task in tasks:
            alike.setdefault((elsewhere(task.point), task.repetition), []).append(task)
        if self.order == "at-once":
            return list(alike.values())
        return [[group[number] for number in one] for group in alike.values()
                for one in rounds.rounds([self.ends(task.point) for task in group])]

    def curves(self) -> "List[List[Point]]":
        """The points grouped by everything but the adaptive axis, in the order of that axis."""
        name = self.adaptive[0] if self.adaptive else ""
        made: "Dict[str, List[Point]]" = {}
        for point in self.points():
            made.setdefault(point_key({**point, name: None}), []).append(point)
        return list(made.values())

    def command(self, netperf: str, point: Point) -> "List[str]":
        return options.command(netperf, self.known(point))

    def lab(self, point: Point) -> "Optional[List[str]]":
        """Options of netlab up for a point; None without a lab."""
        known = self.known(point)
        if not known.get("lab"):
            return None
        words = options.words(known["lab"], known)
        congestion = known.get("congestion")
        return words if congestion is None or "--congestion" in words else [*words, "--congestion", str(congestion)]

    def processes(self, point: Point) -> int:
        asked = self.known(point).get("processes")
        try:
            return 1 if asked is None else options.count(asked, {})
        except options.OptionError as fault:
            raise PlanError(f"processes: {fault}") from None

    def new_options(self) -> "Dict[str, Dict[str, Any]]":
        """Options that netperf 2.7 lacks, each with a point that needs it."""
        points = [self.known(point) for point in self.points()]
        return {option: known for known in reversed(points) for words in [options.command("", known)]
                for option in ("--flows", "--threads", "--engine", "--cycles", "--clean", "--beside") if option in words}

    def daemon_options(self) -> "List[str]":
        """Options for a netserver of our own."""
        return ioengines.daemon_options([self.known(point).get("engine") for point in self.points()])

    def run_seconds(self, point: Point) -> float:
        """An upper bound for the duration of a point's netperf, as far as it can be known."""
        known = self.known(point)
        if known.get("clean"):
            return float(known.get("at_most") or options.AT_MOST * known["clean"])
        length = units.seconds(known.get("length", 10)) or 10.0     # a count of bytes has no known duration
        most = 1
        if known.get("confidence") is not None or known.get("iterations") is not None:
            told = options.number(str(known.get("iterations") or "10").split(",")[0])
            most = told if isinstance(told, int) else 10
        if re.match("auto|ndr", str(known.get("asked_rate"))):
            most *= SEARCH
        alone = min(max(length, 1.0), 5.0) if known.get("beside") else 0.0
        return (length + (units.seconds(known.get("warm_up")) or 0.0)) * most + alone

    def hooks(self) -> "List[str]":
        """The names that have commands: axes in order, then the others."""
        axes = [axis.name for axis in self.axes]
        names = {*self.before, *self.after}
        if self.has("command"):
            names.add("command")
        return ([name for name in axes if name in names]
                + sorted(name for name in names if name not in axes))

    def has(self, name: str) -> bool:
        return any(axis.name == name for axis in self.axes) or name in self.constants

    def hook(self, when: str, name: str, point: Point) -> "List[str]":
        templates = list((self.before if when == "before" else self.after).get(name, []))
        known = self.known(point)
        if when == "before" and name == "command" and known.get("command"):
            templates.append(str(known["command"]))
        return [fill_shell(text, {**known, "value": known.get(name)}) for text in templates]

    def state(self, name: str, point: Point) -> "Tuple[List[str], Any]":
        """What the commands of a name were run for; if it changes, they are run again."""
        return self.hook("before", name, point), self.known(point).get(name)

    def header(self, started: str, environment: "Dict[str, Any]") -> Header:
        return Header(plan=self.name, title=self.title, axes=self.axes,
                      constants=self.shown_constants(), repetitions=self.repetitions,
                      order=self.order, seed=self.seed, started=started, environment=environment,
                      plan_text=self.text, skips=self.skips,
                      more={**self.settings(), **({"hosts": self.hosts_with_speeds(environment)} if self.hosts else {})})

    def hosts_with_speeds(self, environment: "Dict[str, Any]") -> "Dict[str, Any]":
        """Hosts for netmesh, with the negotiated speeds of their links."""
        made = {name: dict(known) for name, known in self.hosts.items()}
        for end in next((axis.values for axis in self.axes if axis.name == "server"), []):
            speed = within(environment, "hosts", engines.host(str(end)), "server", "interface", "speed")
            made.get(engines.named(end), {}).update({"speed_mbps": speed} if speed else {})
        return made

    def shown_constants(self) -> "Dict[str, Any]":
        """The constants, with what the lab's options say about the link."""
        found: "Dict[str, Any]" = {}
        if not isinstance(self.constants.get("lab"), str) or not self.constants["lab"]:
            return {**({"host": LOCAL_ADDRESS[4]} if self.local and not self.has("family") else {}), **self.constants}
        words = shlex.split(self.constants["lab"].replace("=", " "))
        given = dict(zip(words, words[1:]))
        for name, default in (("rate", "100mbit"), ("mtu", "1500"), ("framing", "ethernet"),
                              ("delay", None)):
            value = given.get(f"--{name}", default)
            if value and "{" not in value and not self.has(name):
                found[name] = int(value) if value.isdigit() else value
        if "rate" in found:
            found["rate"] = round(units.rate(found["rate"]) or 0) or found["rate"]
        if not self.has("family"):
            found["host"] = LAB_ADDRESS[4]
        return {**found, **self.constants}

    def settings(self) -> "Dict[str, Any]":
        """What a resumed sweep needs beyond the header's own members."""
        kept = {name: getattr(self, name) for name in KEPT}
        return {**({"label": self.label} if self.label else {}),
                "settings": {name: value for name, value in kept.items() if name in KEPT[:4] or value}}

    def difference(self, header: Header) -> str:
        """How this plan differs from that of a file; empty if it does not."""
        old, mine = essence(header), essence(self.header("", {}))
        return next((f"{name}: {show(old.get(name))} in the file, {show(mine.get(name))} now"
                     for name in {**old, **mine} if old.get(name) != mine.get(name)
                     and (name != "skip" or header.skips is not None)), "")


def elsewhere(point: Point) -> str:
    """What a point has in common with the same point between other ends."""
    return point_key({name: value for name, value in point.items() if name not in WHERE})


def essence(header: Header) -> "Dict[str, Any]":
    """What must be equal for two sweeps to be the same."""
    whole = json.loads(json.dumps(header.as_json()))
    return {**{axis["name"]: axis["values"] for axis in whole["axes"]}, **whole["constants"],
            **{name: whole.get(name) for name in ("repetitions", "order", "seed", "skip", "label")},
            **{name: value for name, value in (whole.get("settings") or {}).items() if name != "pause"}}


def show(value: Any) -> str:
    return ",".join(map(show_value, value)) if isinstance(value, list) else show_value(value)


def clean(value: Any) -> Any:
    """The value that the plan means: "default" is None, netperf's own choice."""
    return None if value == "default" else value


def fill_shell(template: str, known: "Dict[str, Any]") -> str:
    """A shell command with {names} replaced by values, each one shell word; ${NAME} stays, {{name}} becomes {name}. A
    value that would need quoting goes into a variable, which is expanded but not parsed: here-documents, comments and
    $( ) have quoting rules of their own, and a variable can nowhere end the command or start another one."""
    held: "List[str]" = []

    def hold(text: str) -> str:
        held.append(f"NETSWEEP_{len(held) + 1}={shlex.quote(text)}; ")
        return f'"$NETSWEEP_{len(held)}"'

    filled = fill_words(template, known, hold)
    return "".join(held) + filled


def fill_words(template: str, known: "Dict[str, Any]", quote: "Callable[[str], str]" = shlex.quote) -> str:
    """The same for text that is split into words without a shell."""
    def value(found: "re.Match[str]") -> str:
        if found[1]:
            return f"{{{found[1]}}}"
        if found[2]:
            return found[0]
        name = found[3]
        if name not in known:
            raise PlanError(f"command {template!r}: {{{name}}} is neither an axis nor a constant "
                            f"(what the shell shall see in braces is written {{{{{name}}}}})")
        held = known[name]
        text = str(int(held)) if isinstance(held, bool) else "default" if held is None else str(held)
        if shlex.quote(text) != text and in_quotes(template[:found.start()]):
            raise PlanError(f"command {template!r}: {{{name}}} stands within quotes, and its value "
                            f"{text!r} needs its own: take the quotes away")
        return text if shlex.quote(text) == text else quote(text)
    return PLACE.sub(value, template)


def in_quotes(text: str) -> bool:
    """Whether the shell is inside quotes after this prefix of a command."""
    try:
        shlex.split(text)
    except ValueError:
        return True
    # A backtick counts inside "...", but not inside '...' or after a backslash.
    bare = re.sub(r"""\\.|'[^']*'|("(?:\\.|[^"\\])*")""", lambda found: re.sub(r"\\.", "", found[1] or ""), text, flags=re.S)
    return bare.count("`") % 2 == 1


@functools.lru_cache(None)
def student(level: float, freedom: int) -> float:
    """Student's t for a two-sided interval. scipy is imported only here. Raises python.MissingModule."""
    special = python.need("scipy.special", "python3-scipy", "--until-confidence")
    return float(special.stdtrit(freedom, 0.5 + level / 200))


def width(values: "Sequence[float]", level: float) -> float:
    """The width of the confidence interval of the mean, in percent of the mean."""
    if len(values) < 2:
        return math.inf
    mean = statistics.fmean(values)
    spread = math.sqrt(math.fsum((value - mean)**2 for value in values) / (len(values) - 1))   # stdev() is exact, and slow
    if not spread or not mean:
        return 0.0 if mean else math.inf
    return 200 * student(level, len(values) - 1) * spread / math.sqrt(len(values)) / abs(mean)


def confident(values: "Sequence[float]", until: "Sequence[float]", least: int, most: int) -> "Tuple[float, bool]":
    """The width of the mean's interval, in percent of the mean, and whether it is at most until[1]. Intervals after
    `least` to `most` values hold jointly at the level until[0] (Bonferroni), so the decision may depend on them."""
    looks = max(1, most - max(2, least) + 1)
    found = width(values, 100 - (100 - until[0]) / looks)
    return found, len(values) >= max(2, least) and found <= until[1]


SETTINGS = {"title": str, "repetitions": int, "least_repetitions": int, "until_confidence": str,
            "order": str, "seed": int, "pause": (int, float), "constants": dict, "axes": dict,
            "units": dict, "before": dict, "after": dict, "skip": list}


def parse(name: str, text: str) -> Plan:
    """Parse a plan's TOML. Raises PlanError."""
    data = from_toml(text, name, PlanError)
    for key, value in data.items():
        if key in options.BY_NAME:
            raise PlanError(f"{name}: {key} belongs in [constants], or with a list of values in [axes]")
        if key not in SETTINGS:
            raise PlanError(f"{name}: {key} is not a member of a plan (try {', '.join(SETTINGS)})")
        if not isinstance(value, SETTINGS[key]) or isinstance(value, bool):
            raise PlanError(f"{name}: {key} = {value!r} is of the wrong kind (see netsweep(1))")
    plan = Plan(name, text, title=data.get("title", name),
                axes=[Axis(axis, axis_values(axis, values), unit_of(axis, data.get("units", {})))
                      for axis, values in data.get("axes", {}).items()],
                constants={key: value for key, value in data.get("constants", {}).items()
                           if clean(value) is not None},
                skips=data.get("skip", []),
                before={key: commands(key, value) for key, value in data.get("before", {}).items()},
                after={key: commands(key, value) for key, value in data.get("after", {}).items()},
                order=data.get("order", "given"), seed=data.get("seed"),
                pause=float(data.get("pause", 0)))
    if "until_confidence" in data:
        plan.until = parse_confidence(data["until_confidence"])
    plan.repetitions = data.get("repetitions", MOST_RUNS if plan.until else 1)
    plan.least = data.get("least_repetitions", min(LEAST_RUNS, plan.repetitions))
    return plan


def unit_of(axis: str, given: "Dict[str, Any]") -> str:
    return str(given.get(axis) or (options.BY_NAME[axis].unit if axis in options.BY_NAME else ""))


def axis_values(name: str, given: Any) -> "List[Any]":
    """The values of an axis: a list as it is, or the list that { from, to, step } or { from, to, times } stands for."""
    if isinstance(given, dict):
        return list(stepped(name, given))
    values = given if isinstance(given, list) else [given]
    for value in values:
        if not isinstance(value, (str, int, float)):
            raise PlanError(f"axis {name}: {value!r}: a value is a number, a text, true or false")
    return [clean(value) for value in values]


def stepped(name: str, given: "Dict[str, Any]") -> "Iterator[Any]":
    first, last = given.get("from"), given.get("to")
    step, times = given.get("step"), given.get("times")
    numbers = [value for value in given.values()
               if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if (set(given) not in ({"from", "to", "step"}, {"from", "to", "times"}) or len(numbers) != 3
            or (step or 0) <= 0 and (times or 0) <= 1 or times and first <= 0):
        raise PlanError(f"axis {name}: a range is {{ from = 16, to = 64, step = 4 }} or "
                        "{ from = 1, to = 1024, times = 2 }")
    value, count = first, 0
    while value <= last:
        yield value
        count += 1
        if count > 10000:
            raise PlanError(f"axis {name}: more than 10000 values")
        value = first + count * step if step else value * times
        value = float(f"{value:.12g}") if isinstance(value, float) else value      # 0.3, not 0.1 + 2 * 0.1


def commands(name: str, given: Any) -> "List[str]":
    made = given if isinstance(given, list) else [given]
    if not all(isinstance(command, str) for command in made):
        raise PlanError(f"commands of {name}: a text, or a list of texts")
    return made


def parse_confidence(text: str) -> "Tuple[float, float]":
    found = re.fullmatch(r"([0-9.]+)\s*,\s*([0-9.]+)", text)
    try:
        level, width = float(found[1]), float(found[2])     # type: ignore[index]
    except (TypeError, ValueError):
        raise PlanError(f"confidence {text!r}: try 99,2.5 (level and width in percent)") from None
    if not 50 <= level < 100 or not 0 < width <= 100:
        raise PlanError(f"confidence {text!r}: a level from 50 to below 100 and a width up to 100")
    return level, width


def parse_adaptive(text: str) -> "Tuple[str, float]":
    """Parse an axis, optionally followed by a comma and the tolerance of its curves in percent of their span."""
    found = re.fullmatch(rf"({NAME.pattern})(?:,([0-9.]+))?", text)
    percent = options.number(found[2]) if found and found[2] else adaptive.TOLERANCE
    if not found or not isinstance(percent, (int, float)) or not 0 < percent < 100:
        raise PlanError(f"--adaptive {text}: try size, or size,5 for 5 percent of the curve's span (2)")
    return found[1], float(percent)


def parse_repeat(text: str) -> "Tuple[Optional[int], int]":
    """Parse "10", or "3,10" for at least and at most."""
    found = re.fullmatch(r"(?:([0-9]+),)?([0-9]+)", text)
    if not found or int(found[2]) < max(1, int(found[1] or 1)):
        raise PlanError(f"--repeat {text}: try 10, or 3,10 with --until-confidence")
    return int(found[1]) if found[1] else None, int(found[2])


def from_header(header: Header) -> Plan:
    """The plan that a file was started with, including overrides."""
    plan = parse(header.plan or "plan", header.plan_text)
    plan.axes, plan.constants = header.axes, dict(header.constants)
    if plan.constants.get("lab"):
        plan.constants.pop("host", None)    # set by the lab
    plan.skips = plan.skips if header.skips is None else header.skips
    plan.repetitions, plan.order, plan.seed = header.repetitions, header.order, header.seed
    for name, value in (header.more.get("settings") or {}).items():
        if name in KEPT:
            setattr(plan, name, value)
    plan.label = header.more.get("label") or ""
    return plan


def override(plan: Plan, setting: str) -> None:
    """Apply --set NAME=VALUE, or NAME=VALUE,VALUE for an axis."""
    name, equals, text = setting.partition("=")
    if not equals or not NAME.fullmatch(name):
        raise PlanError(f"--set {setting}: try NAME=VALUE")
    row = options.BY_NAME.get(name)
    if not plan.has(name) and row is None:
        raise PlanError(f"--set {setting}: {name} is neither in the plan nor a known name")
    parts = options.hosts(text) if name == "host" else text.split(";" if row and row.commas else ",")
    values = [part == "true" if part in ("true", "false") else clean(options.number(part)) for part in parts]
    if name in ("host", "lab") and values != [None]:
        without(plan, "lab" if name == "host" else "host")     # each of the two says where to measure
    axis = next((axis for axis in plan.axes if axis.name == name), None)
    if axis:
        axis.values = values
        return
    plan.constants.pop(name, None)
    if len(values) > 1:
        plan.axes.append(Axis(name, values, unit_of(name, {})))
    elif values[0] is not None:
        plan.constants[name] = values[0]


def between(plan: Plan, pairs: "List[str]") -> None:
    """Restrict the plan to these pairs of client and server. Raises PlanError."""
    plan.pairs = [pair.split(",") for pair in pairs]
    wrong = [pair for pair, ends in zip(pairs, plan.pairs) if len(ends) != 2]
    if wrong:
        raise PlanError(f"--pair {wrong[0]}: try ssh:a,ssh:b")
    without(plan, "client", "server")
    plan.axes += [Axis(name, list(dict.fromkeys(pair[i] for pair in plan.pairs))) for i, name in enumerate(("client", "server"))]


def without(plan: Plan, *names: str) -> None:
    """Remove these names from the plan."""
    plan.axes = [axis for axis in plan.axes if axis.name not in names]
    plan.constants = {name: value for name, value in plan.constants.items() if name not in names}


def can_match(wanted: Any, texts: bool) -> bool:
    """Whether a [[skip]] compares like that: a number, a bound, or, where an axis has texts, a text."""
    if isinstance(wanted, (int, float)):
        return -math.inf < wanted < math.inf
    if wanted == "default":
        return True
    return isinstance(wanted, str) and bool(BOUND.fullmatch(wanted) or texts and not re.match(r"\s*[<>=!]", wanted))


def check(plan: Plan) -> None:
    """Check what can be checked before the plan runs. Raises PlanError."""
    if plan.order not in ORDERS:
        raise PlanError(f"order {plan.order}: one of {', '.join(ORDERS)}")
    if plan.order == "random" and plan.seed is None:
        plan.seed = random.SystemRandom().randrange(1, 2**31)
    if plan.repetitions < 1 or not 0 <= plan.pause <= A_DAY:
        raise PlanError(f"repetitions from 1, a pause from 0 to {A_DAY} s")
    plan.least = min(plan.least, plan.repetitions)
    for axis in plan.axes:
        seen = [json.dumps(value) for value in axis.values]
        if not all(map(math.isfinite, (value for value in axis.values if isinstance(value, float)))):
            raise PlanError(f"axis {axis.name}: nan and inf are not allowed")
        if not seen or len(set(seen)) != len(seen):
            raise PlanError(f"axis {axis.name}: " + ("a value twice" if seen else "no values"))
        if axis.name in plan.constants:
            raise PlanError(f"{axis.name} is an axis and a constant: it can only be one of them")
    for skip in plan.skips:
        if not isinstance(skip, dict):
            raise PlanError("skip: write [[skip]], then lines such as family = 6")
        for name, wanted in skip.items():
            if not plan.has(name):
                raise PlanError(f"skip: {name} is neither an axis nor a constant")
            values = next((axis.values for axis in plan.axes if axis.name == name), [plan.constants.get(name)])
            for one in wanted if isinstance(wanted, list) and wanted else [wanted]:
                if not can_match(one, any(isinstance(value, str) for value in values)):
                    raise PlanError(f"skip: {name}: {one!r} is neither a value nor a bound (try \"< 1280\", also with <=, >, >= or !=, and a number)")
    for when, hooks in (("before", plan.before), ("after", plan.after)):
        for name in hooks:
            if name != EACH_RUN and not plan.has(name):
                raise PlanError(f"[{when}] {name}: neither an axis nor a constant, nor {EACH_RUN}")
    if plan.adaptive and (plan.adaptive[0] not in [axis.name for axis in plan.axes] or plan.order != "given"):
        raise PlanError(f"--adaptive {plan.adaptive[0]}: no axis of the plan" if plan.order == "given" else
                        f"--adaptive and order {plan.order}: what was measured decides the order")
    for name, value in plan.constants.items():
        if not isinstance(value, (str, int, float)) or isinstance(value, float) and not math.isfinite(value):
            raise PlanError(f"constant {name}: a number, a text, true or false")
    many = math.prod(len(axis.values) for axis in plan.axes if not (plan.pairs and axis.name in ("client", "server")))
    many *= plan.repetitions * (len(plan.pairs) if plan.pairs else 1)
    if many > MOST:
        raise PlanError(f"axes and repetitions make {many} runs: {MOST} at most (fewer values, or several plans)")
    points = plan.points()
    for name in plan.hooks() if plan.order in TOGETHER else ():
        if len({str(plan.state(name, point)) for point in points}) > len({elsewhere(point) for point in points}):
            raise PlanError(f"order {plan.order}: the commands of {name} are not the same for all runs of a group")
    if not points:
        raise PlanError("no points: an axis without values, or everything is skipped")
    for point in points:
        check_point(plan, point)
    used = names_used(plan)
    for axis in plan.axes:
        if axis.name not in used:
            raise PlanError(idle(axis.name))
    for name in set(plan.constants) - used:     # distinguishes this set of runs from others
        meant = difflib.get_close_matches(name, options.BY_NAME, 1, 0.8)
        if meant:
            raise PlanError(f"constant {name} changes nothing: is {meant[0]} meant?")
    if plan.until:
        student(plan.until[0], 1)   # so that a missing scipy is reported now


def check_point(plan: Plan, point: Point) -> None:
    try:
        plan.command("netperf", point)
        plan.processes(point)
        plan.lab(point)
        for hook in plan.hooks():
            plan.hook("before", hook, point), plan.hook("after", hook, point)
        engines.plain(str(point.get("client") or plan.constants.get("client") or ""))
    except UsageError as fault:
        raise PlanError(f"at {show_point(point)}: {fault}" if point else str(fault)) from None
    known = {**plan.constants, **point}
    if not plan.known(point).get("host"):
        raise PlanError("no host: --host NAME, --local, or a lab in the plan" if not known.get("server") else
                        f"no host, the address of the server {known['server']}")
    if plan.is_far() and (plan.local or known.get("lab")):
        raise PlanError("client and server say where the ends are, as do --local and a lab: give only one")
    if known.get("lab") and known.get("host"):
        raise PlanError("host and lab: a lab has its own far end, take one of them out")


def names_used(plan: Plan) -> "set[str]":
    """The names that have an effect: through options, commands, the lab's options, or ceilings."""
    texts = [*itertools.chain(*plan.before.values(), *plan.after.values())]
    for name in ("lab", "command", "options", "test_options"):
        axis = next((axis for axis in plan.axes if axis.name == name), None)
        texts += [str(value) for value in (axis.values if axis else [plan.constants.get(name)])]
    used = {found[3] for text in texts for found in PLACE.finditer(text) if found[3]}
    used |= {*plan.before, *plan.after}
    return used | {name for name in options.BY_NAME if name != "mtu" or name in plan.constants}


def idle(name: str) -> str:
    meant = difflib.get_close_matches(name, options.BY_NAME, 1)
    remedy = ("a lab with --mtu {mtu}, or [before] mtu = \"ip link set DEV mtu {value}\""
            if name == "mtu" else meant[0] if meant else f"[before] {name} = \"a command with {{value}}\"")
    return f"axis {name} changes nothing: no option of netperf's has that name (try {remedy})"


def ready(place: str) -> "Dict[str, str]":
    return {os.path.basename(path)[:-5]: path for path in sorted(glob.glob(os.path.join(glob.escape(place), "*.toml")))}


def load(wanted: str, place: str) -> Plan:
    """Load a plan from its file, or a bundled one by its name."""
    plans = ready(place)
    if wanted not in plans and not wanted.endswith(".toml") and not os.path.exists(wanted):
        raise PlanError(f"{wanted}: neither a file nor a ready plan ({', '.join(plans)})")
    path = plans.get(wanted, wanted)
    return parse(re.sub(r"[^\w.-]", "-", os.path.basename(path)[:-5] if path.endswith(".toml")
                        else os.path.basename(path)), read_text(path, PlanError))
