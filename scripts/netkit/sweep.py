"""Runs a plan: the commands and netperf of each point; each run becomes a line of the file."""

import datetime
import re
import time
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from netkit import adaptive, calls, engines, environment, ioengines, machine, options, progress
from netkit.calls import fail
from netkit.plan import A_DAY, EACH_RUN, HERE, TOGETHER, Plan, Point, Task, confident
from netkit.results import Run, point_key
from netkit.units import show_duration, show_figure, show_point, show_value

GRACE = 30.0                # seconds that netperf may take beyond its length: it gives up after 15
COMMAND_LIMIT = 300.0       # for a user's command
SILENT, ALIKE = 2, 3        # failed runs in a row, after which a far end is not tried again
APART_S = 0.2               # between the first and last start of simultaneous runs, above which it is reported
RUN_COST, LAB_COST, COMMAND_COST = 0.3, 1.5, 0.5    # overhead in seconds, for ETAs


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


class Step(NamedTuple):
    """A run and what has to happen around it, if all goes well."""
    task: Task
    lab: "Optional[List[str]]"
    new_lab: bool
    before: "List[str]"
    after: "List[str]"


def steps(plan: Plan, tasks: "List[Task]") -> "Iterator[Step]":
    lab: "Optional[List[str]]" = None
    applied: "Dict[str, Any]" = {}
    for task, following in zip(tasks, [*tasks[1:], None]):
        before, after, wanted = [], [], plan.lab(task.point)
        for name in plan.hooks():
            commands, value = plan.state(name, task.point)
            before += commands if (commands, value) != applied.get(name) or name == EACH_RUN else []
            applied[name] = (commands, value)
        for name in reversed(plan.hooks()):
            if not following or name == EACH_RUN or applied[name] != plan.state(name, following.point):
                after += plan.hook("after", name, task.point)
        yield Step(task, wanted, wanted != lab, before, after)
        lab = wanted


def expected(plan: Plan, tasks: "List[Task]") -> float:
    """Estimate the duration of these runs in seconds, including lab changes and commands."""
    firsts = [max(batch, key=lambda task: plan.run_seconds(task.point)) for batch in plan.batches(tasks)]
    return plan.pause * max(0, len(firsts) - 1) + sum(
        plan.run_seconds(step.task.point) + RUN_COST + LAB_COST * (step.new_lab and step.lab is not None)
        + COMMAND_COST * len(step.before + step.after) for step in steps(plan, firsts))


class Progress(progress.Steps):
    """Progress on stderr: one line that is redrawn, or a line for each run."""

    def begin(self, tasks: "List[Task]") -> None:
        self.show(", ".join(map(named, tasks)))

    def end(self, task: Task, run: Run) -> None:
        self._done += 1
        self._last = f"{named(task)}: {outcome(run)}"
        if self._line.kind == "plain" or not run.ok:
            self._line.line(f"{self._done}/{self._total} {self._last}"
                            + (f", {show_duration(self.left() or 0.0)} to go" if run.ok else ""))
        self.show("")


def named(task: Task) -> str:
    """Such as "test=TCP_RR size=64 #2"."""
    return f"{show_point(task.point)} #{task.repetition}"


def outcome(run: Run) -> str:
    if run.excluded:
        return f"left out: {run.reason()}"
    if not run.ok:
        return f"FAILED: {run.reason()}"
    value, unit = run.figure("THROUGHPUT"), run.result.get("THROUGHPUT_UNITS", "")
    return f"{value:.2f} {unit}" if value is not None else "done"


class Applied(NamedTuple):
    """What the commands of a name were last run for (None: not all of them ran), and at which point."""
    state: "Optional[Tuple[List[str], Any]]"
    point: Point


@dataclass
class Sweep:
    plan: Plan
    netperf: str
    place: machine.Place
    writer: Any                 # a results.Writer, or anything with its write()
    progress: Progress
    done: "Dict[Any, Run]" = field(default_factory=dict)    # good runs in the file, by key
    number: int = 0                                         # of the last run in the file
    header: environment.Ends = field(default_factory=dict)  # the ends as the file describes them
    ends: environment.Ends = field(default_factory=dict)    # the ends now
    keep_going: bool = False                                # try all runs, whatever fails
    gone: "Dict[str, str]" = field(default_factory=dict)    # far ends that are not tried again, and why
    failures: int = 0
    runs: int = 0
    _applied: "Dict[str, Applied]" = field(default_factory=dict)
    _tasks: "List[Task]" = field(default_factory=list)
    _batches: "List[List[Task]]" = field(default_factory=list)
    _tried: "set[Any]" = field(default_factory=set)
    _excluded: "set[str]" = field(default_factory=set)      # points that an end can't run
    _failed: "Dict[str, List[str]]" = field(default_factory=dict)   # reasons of failures in a row, by end

    def __post_init__(self) -> None:
        self._engines = ioengines.Engines(self.netperf)

    def run(self) -> None:
        """Run all missing runs. When a signal arrives, undoes everything and raises Interrupted."""
        self._tasks = self.plan.tasks()
        self._batches = self.plan.batches([task for task in self._tasks if task.key not in self.done])
        try:
            for index, batch in enumerate(([task] for task in self._chosen()) if self.plan.adaptive else self._batches):
                missing = [task for task in batch if task.key not in self.done and task.key not in self._tried]
                wanted = [task for task in missing if self._wanted(task)]
                self.progress.add(len(wanted) - len(missing))
                if not wanted:
                    continue
                if self.runs and self.plan.pause:
                    machine.pause(self.plan.pause)
                machine.check()
                self._together(wanted, index)
        finally:
            self._leave_all()

    def _chosen(self) -> "Iterator[Task]":
        """The runs of an adaptive sweep, chosen from the results so far."""
        assert self.plan.adaptive
        for curve in self.plan.curves():
            offered: "set[int]" = set()
            while True:
                found = {number: values for number, values in enumerate(map(self._values, curve)) if values}
                known = {number: adaptive.of_runs(values) for number, values in found.items()}
                number = adaptive.next_value(len(curve), known, offered - known.keys(), self.plan.adaptive[1])
                if number is None:
                    break
                offered.add(number)
                yield from (Task(curve[number], run) for run in range(1, self.plan.repetitions + 1))
            self.progress.add(-sum(number not in {*known, *offered} for number in range(len(curve))) * self.plan.repetitions)

    def _wanted(self, task: Task) -> bool:
        return (task.key not in self.done and task.key not in self._tried
                and point_key(task.point) not in self._excluded and not self._satisfied(task.point)
                and not self.gone.keys() & self.plan.ends(task.point))

    def untried(self, end: str) -> int:
        """How many runs of an end are skipped because it is gone."""
        return sum(task.key not in self.done and task.key not in self._tried
                   and end in self.plan.ends(task.point) for task in self._tasks)

    def _values(self, point: Point) -> "List[float]":
        """Throughputs of a point's good runs so far; if clean seconds were requested, those of the clean seconds."""
        key, clean = point_key(point), self.plan.known(point).get("clean") is not None
        runs = [self.done[key, number] for number in range(1, self.plan.repetitions + 1) if (key, number) in self.done]
        found = [clean and run.figure("CLEAN_THROUGHPUT") or run.figure("THROUGHPUT") for run in runs]
        return [value for value in found if value is not None]

    def _satisfied(self, point: Point) -> bool:
        return self.plan.until is not None and self._confident(point)[1]

    def _confident(self, point: Point) -> "Tuple[float, bool]":
        return confident(self._values(point), self.plan.until or (0.0, 0.0), self.plan.least, self.plan.repetitions)

    def unsure(self) -> "Iterator[str]":
        """A line for each point that did not reach its confidence in all its repetitions."""
        for point in self.plan.points() if self.plan.until else []:
            count, (level, wanted) = len(self._values(point)), self.plan.until or (0.0, 0.0)
            if count >= self.plan.repetitions and not self._satisfied(point):
                yield (f"{show_point(point)}: after {count} runs the mean is sure to "
                       f"{show_figure(self._confident(point)[0])} % in all, not to {wanted:g} %, at {level:g} %")

    def _together(self, tasks: "List[Task]", index: int) -> None:
        self.progress.begin(tasks)
        runs = [Run(task.point, task.repetition, self.number + i, started=now(),
                    more={"label": self.plan.label} if self.plan.label else {}) for i, task in enumerate(tasks, 1)]
        self.number += len(runs)
        self._measure(runs)
        for task, run in zip(tasks, runs):
            self._give_up(run)
            self._tried.add(task.key)
            if run.ok:
                self.done[task.key] = run
                if self.plan.until:
                    got, reached = self._confident(run.point)
                    run.more["confidence"] = {"level": self.plan.until[0], "wanted": self.plan.until[1], "reached": reached,
                                              "width": round(got, 4) if got < 1e9 else None}
            if run.excluded:
                self._excluded.add(point_key(task.point))
        following = (task.point for batch in self._batches[index + 1:] for task in batch if self._wanted(task))
        self._after(runs[0], None if self.plan.adaptive else next(following, None))
        for task, run in zip(tasks, runs):
            if not run.excluded and not run.ok:
                self.done.pop(task.key, None)
                self.failures += 1
            self.writer.write(run)
            self.runs += 1
            self.progress.end(task, run)

    def _give_up(self, run: Run) -> None:
        """Stop trying an end that can't be reached or whose runs keep failing in the same way."""
        known, ends = self.plan.known(run.point), self.plan.ends(run.point)
        if self.keep_going:
            return
        for end in ends:
            failed = self._failed.setdefault(end, [])
            if run.ok or run.excluded:
                failed.clear()
                continue
            if end in self.gone:
                continue
            failed.append(re.sub(r"\d+", "N", run.reason()))
            dead = self.place.unreached(end)
            if len(failed) >= SILENT and end == str(known.get("host")) and not (self.place.own or known.get("client")):
                dead = machine.silent(end.partition(",")[0], machine.port(known))
                dead = f"{dead}: nobody listens there" if dead else ""
            if dead:
                self.gone.setdefault(end, dead)
            elif len(failed) >= ALIKE and len(set(failed)) == 1 and end != HERE and not any(
                    end in self.plan.ends(good.point) for good in self.done.values()):
                self.gone.setdefault(end, f"{end}: {len(failed)} runs failed alike, and none was good: {run.reason()}")

    def _measure(self, runs: "List[Run]") -> None:
        """Run netperf for simultaneous runs, and fill in their results or why they failed."""
        since = time.monotonic()
        asked: "List[Tuple[Run, calls.Call]]" = []
        good = True
        why_not = self.place.prepare([self.plan.known(run.point) for run in runs])
        for run, fault in zip(runs, why_not):
            known = self.plan.known(run.point)
            try:
                if fault:
                    raise machine.MachineError(fault)
                run.command = self.plan.command(self.netperf, run.point)
                self.place.ready(self.plan.lab(run.point), options.family(known), known)
                prefix = engines.plain(str(known.get("client") or "")) or self.place.typed
                if prefix:
                    run.more["prefix"] = prefix
                if self.place.link:
                    run.more["link"] = self.place.link
                good = good and (run is not runs[0] or self._before(run))
                why = self._engines.why_not(known, self.place) if good else ""
                if why:
                    run.status, run.exit, run.more["reason"] = "excluded", None, why    # an end lacks what the point needs
                elif good:
                    asked.append((run, calls.at(self.place, run.command, self.plan.processes(run.point))))
                else:
                    fail(run, None, "" if run.before else f"a command before run {runs[0].number} failed")
            except machine.MachineError as fault:
                fail(run, None, str(fault))
            run.seconds = round(time.monotonic() - since, 3)
        since, began = time.monotonic(), now()
        try:
            ended = calls.run_all([call for _, call in asked], GRACE + max(
                [self.plan.run_seconds(run.point) for run in runs]), machine.knows(self.netperf, "--json"))
        except machine.MachineError as fault:
            ended = []
            for run, _ in asked:
                fail(run, None, str(fault))
        for run, _ in asked:
            run.seconds, run.started = round(time.monotonic() - since, 3), began
        begins = [end.begun for ends in ended for end in ends if end.begun]
        apart = round(max(begins) - min(begins), 3) if len(ended) > 1 and begins else 0.0
        for (run, _), ends in zip(asked, ended):
            self._read(run, ends)
            run.more.update({"begins_apart_s": apart} if apart > APART_S else {})

    def _read(self, run: Run, ends: "List[calls.Ended]") -> None:
        known = self.plan.known(run.point)
        calls.read(run, known, ends)
        host = known.get("host")
        differs = environment.changed(environment.base(self.header, host), environment.told(ends) or {
            end: told for end, told in environment.base(self.ends, host).items() if end != "hosts" and told})
        run.more.update({"environment": differs} if differs else {})

    def _before(self, run: Run) -> bool:
        """Run the commands for what has changed; False if one failed."""
        for name in self.plan.hooks():
            state, last = self.plan.state(name, run.point), self._applied.get(name)
            if last and last.state == state and name != EACH_RUN:
                continue
            self._applied[name] = Applied(None, run.point)      # from now on the [after] commands are due
            if not self._commands(state[0], run.before):
                return False
            self._applied[name] = Applied(state, run.point)
        return True

    def _due(self, following: Optional[Point] = None) -> "Iterator[Tuple[str, List[str]]]":
        """The [after] commands that have to be run now, given the point that follows."""
        for name in reversed(self.plan.hooks()):
            last = self._applied.get(name)
            if last and self.plan.after.get(name) and (following is None or name == EACH_RUN
                                                       or self.plan.state(name, following) != last.state):
                del self._applied[name]
                yield name, self.plan.hook("after", name, last.point)

    def _after(self, run: Run, following: Optional[Point]) -> None:
        """Run the commands for what ends with this run; if one fails, the run has failed."""
        log: "List[Dict[str, Any]]" = []
        for _, commands in self._due(following):
            if not self._commands(commands, log) and run.ok:
                fail(run, run.exit, f"after: {log[-1]['command']}: {log[-1]['output'].strip()}")
        if log:
            run.more["after"] = log

    def _leave_all(self) -> None:
        """When the sweep ends early, run the [after] commands that are still due."""
        for name, commands in self._due():
            log: "List[Dict[str, Any]]" = []
            try:
                good = self._commands(commands, log)
            except machine.Interrupted:
                good = False
            if not good:
                progress.say("netsweep", f"the command after {name} failed: "
                                         f"{log[-1]['command'] if log else 'interrupted'}")

    def _commands(self, commands: "List[str]", log: "List[Dict[str, Any]]") -> bool:
        for command in commands:
            done = machine.run(["/bin/sh", "-c", command], COMMAND_LIMIT)
            output = done.stdout + done.stderr + (f"{done.reason}\n" if done.reason else "")
            log.append({"command": command, "output": output,
                        "status": -1 if done.exit is None else done.exit})
            if done.exit != 0:
                return False
        return True


def describe(plan: Plan, tasks: "List[Task]", of: int) -> "Iterator[str]":
    yield f"{plan.name}: {plan.title}"
    for axis in plan.axes:
        values = ", ".join(map(show_value, axis.values))
        yield f"  {axis.name}: {values}" + (f" {axis.unit}" if axis.unit else "")
    constants = [f"{name}={show_value(value)}" for name, value in plan.shown_constants().items()
                 if not (plan.local and name == "host")]
    if constants:
        yield f"  constants: {', '.join(constants)}"
    if plan.label:
        yield f"  label: {plan.label}"
    points = len(plan.points())
    each = f" x {plan.repetitions}" if plan.repetitions > 1 else ""
    if plan.until:
        level, width = plan.until
        each = f" x {plan.least} to {plan.repetitions}, until {level:g} % sure of {width:g} %"
    order = f"{plan.order} order" + (f", seed {plan.seed}" if plan.order == "random" else "")
    done = f", {of - len(tasks)} of {of} runs done already" if len(tasks) < of else ""
    if plan.adaptive:
        order = f"as many values of {plan.adaptive[0]} as bring lines to {plan.adaptive[1]:g} % of the curve's span"
    yield f"  {points} point{'s' * (points != 1)}{each}, {order}{done}"
    seconds = expected(plan, tasks)
    end = f", until {datetime.datetime.now() + datetime.timedelta(seconds=seconds):%H:%M}" if seconds < A_DAY else ""
    yield f"  expected to take {'at most ' if plan.until or plan.adaptive else ''}{show_duration(seconds)}{end}"


def script(plan: Plan, tasks: "List[Task]", netperf: str, netlab: str,
           netserver: "List[str]") -> "Iterator[str]":
    """The runs as a shell script: a line for each point, and what has to be done between them."""
    up = False
    begun: "set[Tuple[str, str]]" = set()
    firsts = {point_key(task.point): task for task in reversed(tasks)}
    batches = plan.batches([task for task in tasks if task is firsts[task.key[0]]])
    lasts = {batch[-1].key for batch in batches}
    for task, lab, new_lab, before, after in steps(plan, [task for batch in batches for task in batch]):
        if new_lab and up:
            yield machine.shown([netlab, "down"])
        up = lab is not None
        if new_lab and lab is not None:
            yield machine.shown([netlab, "up", *lab])
            yield machine.shown([netlab, "exec", "server", *netserver])
        yield from before
        known = plan.known(task.point)
        server, client = (str(known.get(name) or "") for name in ("server", "client"))
        port = machine.port(known)
        if server and (server, port) not in begun:
            program = netserver[0] if engines.is_local(server) else "netserver"
            yield machine.shown([*engines.plain(server), program, *netserver[1:], "-p", port])
        begun.add((server, port))
        prefix = [netlab, "exec", "client"] if up else engines.plain(client)
        program = netperf if engines.is_local(client) else "netperf"
        call = machine.shown([*prefix, *plan.command(program, task.point)])
        processes = plan.processes(task.point)
        call = " & ".join([call] * processes)
        if processes > 1 or plan.order in TOGETHER:
            call += " & wait" if task.key in lasts else " &"
        yield f"{call}  # {' '.join(show_point(task.point).split())}"
        yield from after
    if up:
        yield machine.shown([netlab, "down"])


def default_output(plan: str, day: str) -> str:
    return f"{plan}-{day}.jsonl"
