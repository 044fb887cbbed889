"""Does --explain name the right cause? Namespaces with planted causes (explain_plants.py), each run several times:
prints the verdicts, and how often they were right. `make check-explain`; needs root and an otherwise idle machine.

    explain_bed.py [WORDS...]           only those whose names contain these words
    explain_bed.py --list               what is planted, and the right verdicts
    NP_EXPLAIN_RUNS=20 explain_bed.py   runs of each (3)
    NP_EXPLAIN_SECONDS=1 explain_bed.py seconds of each run (2)
    NP_EXPLAIN_NICE=-15 explain_bed.py  nice value of everything it starts, for a busy machine
    NP_EXPLAIN_SHOW=1 explain_bed.py    also show an example of a right verdict
    NP_EXPLAIN_KEEP=DIR explain_bed.py  the evidence of each run, as PLANT-NUMBER.json; with
                                        NP_EXPLAIN_RUNS=1, input for tests/record-explain
"""

import collections
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Callable, Counter, Iterator, List, NamedTuple, Sequence, Set

import lib
import netns
from explain_harms import Bed, Harm, Quota, cgroup_cpu, link_program
from explain_links import RoutedLab
from explain_plants import PLANTS, Plant

SECONDS = int(os.environ.get("NP_EXPLAIN_SECONDS", "2"))
TRIES = 3               # attempts at a run in which the cause did not take effect
MOST_WRONG, LEAST_RIGHT = 0.02, 0.90
ENGINES = ("--spin", "2", "--uring", "2")   # options of a daemon that some engines need
# The possible outcomes of a run. `bare` is half of the truth without a word about the rest.
VERDICTS = ("right", "half", "unclear", "bare", "wrong", "not planted", "no result")
JUDGED = VERDICTS[:5]


class Said(NamedTuple):
    limit: str
    also: str       # a second cause that is named as nearly as limiting
    doubts: str
    text: str


def judge(right: Set[str], half: Set[str], said: Said) -> str:
    """Right: the verdict, or the second one next to it where both apply. Half: a verdict that is half of the truth,
    with a right one beside it or among the doubts; or a wrong one that shares its place with a right one."""
    others = {name for name in right if name == said.also
              or re.search(rf"(?<![a-z-]){re.escape(name)}(?![a-z-])", said.doubts)}
    if said.limit in right:
        return "right"
    if said.limit == "unclear":
        return "unclear"
    if said.limit in half:
        return "half" if others else "bare"
    return "half" if said.also in right else "wrong"


class Run(NamedTuple):
    verdict: str
    limit: str
    planted: str    # what the witnesses saw
    text: str


def follow(bed: Bed, harms: Sequence[Harm]) -> "List[threading.Thread]":
    """The threads of the harms, after the run's session has started."""
    def one(harm: Harm) -> None:
        if lib.wait_for(lambda: bool(bed.sessions()) or bed.over.is_set(), 20) and not bed.over.is_set():
            harm.during(bed)

    threads = [threading.Thread(target=one, args=(harm,)) for harm in harms
               if type(harm).during is not Harm.during]
    for thread in threads:
        thread.start()
    return threads


def command(bed: Bed, plant: Plant, harms: Sequence[Harm], file: str) -> "List[str]":
    assert bed.daemon
    prefix = [word for harm in harms for word in harm.prefix("near")]
    return [*prefix, *bed.lab.client, lib.netperf(), "-H", netns.IPV4, "-p", str(bed.daemon.port), "-P", "0",
            "-l", str(SECONDS), "--explain", f"--json={file}", *plant.options.split()]


def say(bed: Bed, plant: Plant, harms: Sequence[Harm], file: str) -> Said:
    """Run netperf once; limit is empty if there was no result."""
    bed.over.clear()
    bed.document = {}
    bed.netperf = subprocess.Popen(command(bed, plant, harms, file), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
    threads = follow(bed, harms)
    try:
        err = bed.netperf.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        bed.netperf.kill()
        err = bed.netperf.communicate()[1] + "not done after 60 s"
    finally:
        bed.over.set()
        for thread in threads:
            thread.join(30)
    if bed.netperf.returncode != 0 or not os.path.exists(file):
        return Said("", "", "", f"status {bed.netperf.returncode}: {err.strip()}")
    bed.document = lib.document(Path(file).read_text())
    told = (bed.document.get("explanation") or {}).get("values", {})
    return Said(told.get("explain.limit", ""), told.get("explain.also", ""), told.get("explain.doubts", ""),
                err.strip())


def run_once(bed: Bed, plant: Plant, harms: Sequence[Harm], keep: Path) -> Run:
    before = [harm.count(bed) for harm in harms]
    said = say(bed, plant, harms, str(keep))
    if not said.limit:
        return Run("no result", "", "", said.text)
    seen = [harm.witness(bed, moved) for harm, moved in zip(harms, before)]
    planted = "; ".join(text for _, text in seen)
    if not all(there for there, _ in seen):
        return Run("not planted", said.limit, planted, said.text)
    verdict = judge(set(plant.right.split()), set(plant.half.split()), said)
    if any(harm.refutes(bed) for harm in harms):
        verdict = "wrong"
    return Run(verdict, said.limit, planted, said.text)


@contextlib.contextmanager
def planted(plant: Plant, harms: "List[Harm]") -> "Iterator[Bed]":
    """Set up the link with its fault, the daemon, and what runs besides."""
    with plant.link() as lab, contextlib.ExitStack() as stack:
        bed = Bed(lab)
        for harm in harms:
            stack.callback(harm.end, bed)
            harm.begin(bed)
        prefix = [word for harm in harms for word in harm.prefix("far")]
        bed.daemon = stack.enter_context(lib.Daemon([*prefix, *lab.server], grace=None,
                                                      args=ENGINES if "--engine" in plant.options else ()))
        for harm in harms:
            stack.callback(harm.leave, bed)
            harm.beside(bed)
        yield bed


def slug(name: str) -> str:
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def note(plant: Plant, run: Run, file: Path) -> None:
    """Add the right verdict to a kept document."""
    document = lib.document(file.read_text())
    document["planted"] = {"name": plant.name, "right": plant.right.split(), "half": plant.half.split(),
                           "witness": run.planted, "verdict": run.verdict}
    file.write_text(json.dumps(document))


def runs_of(plant: Plant, count: int) -> "List[Run]":
    keep = os.environ.get("NP_EXPLAIN_KEEP")
    harms = [make() for make in plant.harms]
    found = []
    with tempfile.TemporaryDirectory() as scratch, planted(plant, harms) as bed:
        for number in range(count):
            file = Path(keep or scratch) / f"{slug(plant.name)}-{number}.json"
            file.unlink(missing_ok=True)
            for _ in range(TRIES):
                run = run_once(bed, plant, harms, file)
                if run.verdict != "not planted":
                    break
            if keep and run.verdict != "no result":
                note(plant, run, file)
            found.append(run)
    return found


def show(plant: Plant, runs: "List[Run]") -> None:
    verdicts = collections.Counter(run.verdict for run in runs)
    said = collections.Counter(run.limit for run in runs if run.limit)
    print(f"{plant.name:34} {', '.join(f'{v} {verdicts[v]}' for v in VERDICTS if verdicts[v]):20} "
          f"said {', '.join(f'{name} {n}' for name, n in said.most_common()) or 'nothing'}; "
          f"right {plant.right.replace(' ', '/')}; planted: {runs[-1].planted or '?'}", flush=True)
    shown: Set[str] = set()
    for run in runs:
        if run.limit not in shown and (run.verdict != "right" or os.environ.get("NP_EXPLAIN_SHOW")):
            print("".join(f"    | {line}\n" for line in run.text.splitlines()), end="", flush=True)
        shown.add(run.limit)


def missing(plant: Plant, harms: "List[Harm]") -> str:
    """Why this machine can't plant that; empty if it can."""
    if any(isinstance(harm, Quota) for harm in harms) and cgroup_cpu()[0] is None:
        return "no control group with a quota of processors"
    lab = plant.link()
    if not isinstance(lab, RoutedLab) and "link" in lab.options:
        if not os.path.exists("/dev/net/tun"):
            return "no /dev/net/tun"
        if not os.path.exists(link_program()):
            return f"no {link_program()}"
    return ""


def totals(report: lib.Report, all_runs: "Counter[str]") -> None:
    judged = sum(all_runs[verdict] for verdict in JUDGED)
    if not judged:
        report.check("some causes were planted", False, dict(all_runs).__repr__())
        return
    share: Callable[..., float] = lambda *names: sum(all_runs[name] for name in names) / judged
    counts = (f"{name} {all_runs[name]} ({100 * share(name):.1f} %)" for name in JUDGED)
    print(f"{judged} runs: " + ", ".join(counts)
          + "".join(f", {name} {all_runs[name]}" for name in VERDICTS[5:]), flush=True)
    report.check(f"at most {100 * MOST_WRONG:g} % wrong", share("wrong") <= MOST_WRONG,
                 f"{100 * share('wrong'):.1f} %")
    report.check(f"at least {100 * LEAST_RIGHT:g} % right or half right", share("right", "half") >= LEAST_RIGHT,
                 f"{100 * share('right', 'half'):.1f} %")
    report.check("nine of ten were planted, and had a result", judged >= 0.9 * sum(all_runs.values()),
                 f"{judged} of {sum(all_runs.values())}")


def be_preferred(nice: int) -> None:
    """Raise the priority of this process and its children over the rest of the machine. If the kernel groups
    processes by session (sched(7), autogroup), nice values of single processes have no effect outside."""
    group = Path("/proc/self/autogroup")
    if nice and group.exists():
        with contextlib.suppress(PermissionError):  # it leads its process group
            os.setsid()
        group.write_text(str(nice))
    elif nice:
        os.nice(nice)


def bed(report: lib.Report, runs: int, wanted: "List[str]") -> None:
    lib.skip_if(lib.no_lab())
    for program in ("nft", "tc", "nsenter", "ethtool"):
        if not shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            lib.skip(f"no program {program}")
    be_preferred(int(os.environ.get("NP_EXPLAIN_NICE", "0")))
    all_runs: "Counter[str]" = collections.Counter()
    for plant in PLANTS:
        if wanted and not any(word in plant.name or word == slug(plant.name) for word in wanted):
            continue
        why = missing(plant, [make() for make in plant.harms])
        if why:
            report.skip(plant.name, why)
            continue
        try:
            found = runs_of(plant, runs)
        except Exception as fault:  # the others are still to be planted
            report.check(plant.name, False, f"{type(fault).__name__}: {fault}")
            continue
        show(plant, found)
        all_runs.update(run.verdict for run in found)
    totals(report, all_runs)


def list_plants() -> None:
    for plant in PLANTS:
        half = f" (half: {plant.half.replace(' ', ', ')})" if plant.half else ""
        print(f"{plant.name:34} {plant.right.replace(' ', ', ')}{half}")
    print(f"{len(PLANTS)} causes")


def suite(report: lib.Report) -> None:
    bed(report, int(os.environ.get("NP_EXPLAIN_RUNS", "3")), sys.argv[1:])


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        list_plants()
    else:
        lib.main(suite)
