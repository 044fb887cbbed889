"""Measures a slot: prepares the place and the side, runs netperf, and reads its results."""

import math
import re
import shlex
import time
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

from netkit import calls, ceiling, documents, engines, machine, options
from netkit.gate import differ, keeper
from netkit.gate.model import GateError, Point, Side, Slot
from netkit.sweep import now

GRACE = 30.0            # seconds that netperf may take beyond the slot's length: it gives up after 15
COMMAND_LIMIT = 30.0    # for a user's command, unless told otherwise
FAILURES = 3            # failed slots of a side in a row, after which netgate gives up
REHEARSED = 4           # at most this many settings are tried before the first slot
SAMPLE_S = 0.1
OUTSIDE = ("steal", "processor")    # disturbances caused neither by the test nor by what it measures
EMULATOR = "(netlab-link)"          # in the description of a lab's link
OF_PROCESSORS = re.compile(r"(LOCAL|REMOTE)_(CPU_|SD$)")
RATES = {"10^3bits": "kbit/s", "10^6bits": "Mbit/s", "10^9bits": "Gbit/s", "Trans": "trans/s"}
UNITS = (("LATENCY$|^CONNECT_", "us"), ("_CPU_(UTIL|PERCENT)|_CPU_PEAK_UTIL|_PERCENT$", "%"),
         ("^TRANSACTION_RATE$", "trans/s"), ("^ELAPSED_TIME$|_SPAN$|_SECONDS$", "s"),
         ("(?<!BURST)_SIZE(_END)?$", "bytes"))


@dataclass
class Site:
    """Where slots run: a place, the far end's address for each IP version, and prefixes that lead to the ends."""
    place: machine.Place
    hosts: "Dict[int, str]"
    port: Optional[int] = None
    lab: "Optional[List[str]]" = None
    device: str = ""                                    # the near end's interface
    far: "Optional[List[str]]" = None                   # command prefix for the far end, if commands can be run there
    client: str = ""                                    # where the near end is, if it is remote (netkit/far.py)

    @property
    def near(self) -> "List[str]":
        """Command prefix for the near end."""
        return engines.plain(self.client) if self.client else list(self.place.prefix)

    def family(self, side: Side) -> int:
        return 6 if "-6" in side.globals or ":" in self.host(side, 4) else 4

    def host(self, side: Side, family: int) -> str:
        return side.host or self.hosts.get(family) or next(iter(self.hosts.values()), "")


@dataclass
class Bench:
    """Prepares a side: commands, then settings. Undoes, in reverse order, only what the next slot does not need."""
    site: Site
    netperf: str = "netperf"
    warm_up: float = 0.0
    command_limit: float = COMMAND_LIMIT
    _made: "Tuple[Any, ...]" = ()       # letter, before, after: whose commands were run
    _whole: bool = False                # all of them succeeded
    _set: "Tuple[Any, ...]" = ()        # the settings in effect
    _keeper: "Optional[keeper.Keeper]" = None
    _why: str = ""                      # why the last slot failed
    _looked: "set[Tuple[str, str]]" = field(default_factory=set)
    _failed: "Dict[Tuple[str, str], int]" = field(default_factory=dict)     # failed slots in a row

    def slot(self, point: Point, side: str, seconds: float) -> Slot:
        """Measure a slot. If it failed, `failed` says why. Raises GateError if the side keeps failing."""
        key, made = (point.name, side), Slot(point.name, side, started=now())
        if self._failed.get(key, 0) >= FAILURES:
            raise GateError(f"{point.name}: {FAILURES} slots of {side} in a row failed: {self._why}")
        since = time.monotonic()
        try:
            self._make(point.side(side), side, made)
            made.started = now()
            self._measure(point, side, seconds, made)
            self._failed[key] = 0
        except machine.MachineError as fault:
            self._why = made.failed = " ".join(str(fault).split())
            self._failed[key] = self._failed.get(key, 0) + 1
        made.seconds = round(time.monotonic() - since, 3)
        return made

    def rehearse(self, points: "Sequence[Point]", compares: bool = False) -> "List[str]":
        """Try the sides' settings before measuring, and restore them. Returns remarks about those without effect.
        Sides with commands are not tried, as these may create the interface; of many settings only the first are.
        Raises GateError if A and B are to be compared and no setting makes a difference."""
        wanted = dict.fromkeys(side.settings for point in points for side in (point.a, point.b)
                               if side.settings and not side.before)
        idle: "Dict[Tuple[str, str], str]" = {}
        for settings in list(wanted)[:REHEARSED]:
            idle.update(self._hold(settings))
            self._put_back()
        if compares and all(replace(point.a, settings=point.b.settings) == point.b and (point.a != point.b or point.b.settings)
                            and {*point.a.settings} ^ {*point.b.settings} <= idle.keys() for point in points):
            raise GateError(f"A and B are the same: {'; '.join(dict.fromkeys(idle.values())) or 'their settings, too'} (--aa compares A with itself)")
        return list(dict.fromkeys(idle[one] for point in points for one in idle if not (point.a.before or point.b.before)
                                  and (one in point.a.settings) != (one in point.b.settings)))

    def leave(self) -> None:
        """Undo the side and leave the place. All steps are tried; failures are then raised as one GateError."""
        faults: "List[str]" = []
        for step in (self._put_back, self._take_back, self._keeper and self._keeper.leave, self.site.place.leave):
            try:
                step and step()
            except (GateError, machine.MachineError) as fault:
                faults.append(str(fault))
        if faults:
            raise GateError("; ".join(faults))

    def _make(self, wanted: Side, letter: str, made: Slot) -> None:
        """Prepare the place, the commands and the settings of a slot."""
        machine.check()
        self.site.place.ready(self.site.lab, self.site.family(wanted))
        key = (letter, wanted.before, wanted.after) if wanted.before or wanted.after else ()
        if key != self._made or not self._whole:
            self._put_back()
            self._take_back(made)
            self._made, self._whole = key, False
            for text in wanted.before:
                self._command(text, letter, made)
            self._whole = True
        if wanted.settings != self._set:
            self._put_back()
            self._hold(wanted.settings)

    def _take_back(self, made: Optional[Slot] = None) -> None:
        """Run the commands that undo a side, even if it was prepared only in part."""
        if not self._made:
            return
        letter, _, after = self._made
        self._made, self._whole = (), False
        for text in after:
            self._command(text, letter, made, heed=made is not None)

    def _command(self, text: str, letter: str, made: Optional[Slot], heed: bool = True) -> None:
        """Run a shell command at the near end and keep its output."""
        known = {"SIDE": letter, "LAB": getattr(self.site.place, "name", ""), "NETPERF": self.netperf, "DEVICE": self.site.device,
                 "FAR": machine.shown(self.site.far or []), "HOST": next(iter(self.site.hosts.values()), "")}
        words = ["env", *(f"NETGATE_{name}={value}" for name, value in known.items()), "/bin/sh", "-c", text]
        done = machine.run(keeper.wrapped(self.site.near, words), self.command_limit, heed=heed)
        output = done.stdout + done.stderr
        if made is not None:
            made.hooks.append({"command": text, "status": done.exit, "output": output})
        if done.exit != 0:
            raise machine.MachineError(f"command of {letter}: {text}: {done.complaint()}")

    def _hold(self, settings: "Tuple[Tuple[str, str], ...]") -> "Dict[Tuple[str, str], str]":
        """Apply a side's settings. Returns those that make no difference, with the reason."""
        if settings and self._keeper is None:
            self._keeper = keeper.Keeper(self.site.near, self.site.far)
        self._set = settings
        return self._keeper.set(settings) if settings else {}

    def _put_back(self) -> None:
        if self._keeper and self._set:
            self._set = ()
            self._keeper.put_back()

    def command(self, point: Point, side: str, seconds: float) -> "List[str]":
        """The netperf command of a slot. Raises OptionError."""
        mine = point.side(side)
        more = ["--warm-up", f"{self.warm_up:g}"] if self.warm_up else []
        names = [metric.name for metric in point.metrics]
        known = {"host": self.site.host(mine, self.site.family(mine)), "port": self.site.port,
                 "test": point.test,
                 # Another netperf takes whole seconds only.
                 "length": round(seconds, 3) if self._both_know(point, "--warm-up") else math.ceil(seconds),
                 "interval": SAMPLE_S if self._both_know(point, "--json") else None,
                 "cpu_figures": any(map(OF_PROCESSORS.match, names)),
                 "options": shlex.join([*more, *mine.globals]), "test_options": shlex.join(mine.options)}
        words = options.command(mine.netperf or self.netperf, known)
        if "-k" in words[-2:]:
            words[-1] = ",".join(dict.fromkeys([*words[-1].split(","), *names]))
        return words

    def _both_know(self, point: Point, option: str) -> bool:
        return all(machine.knows(side.netperf or self.netperf, option) for side in (point.a, point.b))

    def _measure(self, point: Point, side: str, seconds: float, made: Slot) -> None:
        made.command = self.command(point, side, seconds)
        limit = math.ceil(seconds) + self.warm_up + GRACE
        # Collecting evidence takes time: either both sides do it or neither.
        end = calls.run_one(self.site.place, made.command, limit, self._both_know(point, "--json"))
        read(made, point, end.done, end.document, self.site.place.link)
        if (point.name, side) not in self._looked:
            self._looked.add((point.name, side))
            made.settings = differ.look(self.site.near, self.site.device)     # for explaining a difference later


def read(made: Slot, point: Point, done: machine.Done, document: "Dict[str, Any]", link: str = "") -> None:
    """Fill in a slot from netperf's results. Raises MachineError if a figure that is to be compared is missing."""
    if done.exit != 0 or done.reason or document.get("result", "complete") != "complete":
        said = (done.stderr.strip().splitlines() or [""])[-1].strip()
        raise machine.MachineError(done.reason or said or str(document.get("reason") or "") or f"netperf ended with status {done.exit}")
    known = {"test": point.test}
    printed = options.figures(known, done.stdout)
    final = document.get("final") or {}
    names = [metric.name for metric in point.metrics]
    for name in dict.fromkeys([*names, *options.selectors(known)]):
        value = final.get(name, printed.get(name))
        # What was not measured is null in documents and -1 in netperf's own output.
        if isinstance(value, (int, float)) and value >= 0:
            made.figures[name] = float(value)
            unit = unit_of(name, {**printed, **final})
            made.units.update({name: unit} if unit else {})
    lacking = [name for name in names if name not in made.figures]
    if lacking:
        raise machine.MachineError(f"netperf gave no {', '.join(lacking)} for {point.test}")
    made.length = made.figures.get("ELAPSED_TIME", 0.0)
    made.samples = [(at, rate) for at, rate in documents.interim(document) or options.interim(done.stdout) or []]
    iterations = document.get("iterations") or [{}]
    # Single values that both ends have. Series would be most of the file, and are not compared.
    made.evidence = {end: {name: value for name, value in iterations[-1][end].items() if not isinstance(value, list)}
                     for end in ("near", "far") if isinstance(iterations[-1].get(end), dict)}
    told = iterations[-1].get("disturbed") or {}
    made.disturbed, made.reasons, made.taken = told.get("share"), dict(told.get("reasons") or {}), taken_of(told, link)


def unit_of(name: str, figures: "Dict[str, Any]") -> str:
    if name.endswith("THROUGHPUT"):
        text = ceiling.unit_of(name, str(figures.get("THROUGHPUT_UNITS") or "").replace("/s", "") + "/s")[:-2]
        return RATES.get(text, f"{text}/s" if text else "")
    if re.search("_SD$", name):
        return str(figures.get("SD_UNITS") or "")
    return next((unit for pattern, unit in UNITS if re.search(pattern, name)), "")


def taken_of(told: "Dict[str, Any]", link: str) -> "Optional[float]":
    """The share of time when others used the processors. An emulated link's work counts as the test's."""
    if not told.get("seconds"):
        return None
    reasons = told.get("reasons") or {}
    return min(1.0, sum(reasons.get(name, 0.0) for name in (OUTSIDE[:1] if EMULATOR in link else OUTSIDE)) / told["seconds"])
