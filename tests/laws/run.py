#!/usr/bin/env python3
"""Draws tests and paths, runs them between network namespaces, and checks their output against the laws and an
independent witness. Needs root, for scripts/netlab, and the Python modules hypothesis and numpy.

    run.py [--known] [--minutes N] [--seed N] [--beds N] [--keep-going]
    run.py --case '{"test": "UDP_RR", "delay": 300}' [--times N]

--known first runs the faults of the past (known.py). --keep-going continues after the first failure. With --tell
(NP_LAWS_TELL), failures of drawn cases are printed, but the exit status is 0."""

import argparse
import contextlib
import json
import multiprocessing
import multiprocessing.util
import os
import random
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
sys.dont_write_bytecode = not sys.pycache_prefix

import lib  # noqa: E402

try:
    import hypothesis
    __import__("numpy")
except ImportError as fault:
    lib.skip(f"no Python module {fault.name}")

from bed import Bed, Seen  # noqa: E402
from case import Case, cases, made  # noqa: E402
from known import KNOWN  # noqa: E402
from laws import Breach, judge, limit  # noqa: E402

SHRINK = 90.0           # s to shrink a failing case
MOST = 10**6


class Over(BaseException):
    """Raised when the time is up."""


class Hunt:
    """The draws of one bed."""

    def __init__(self, bed: Bed, end: float, out: Any, known: Any, keep_going: bool) -> None:
        self.bed, self.end, self.out, self.keep_going = bed, end, out, keep_going
        self.judged: "Dict[Case, List[Breach]]" = {}
        self.known = known      # laws and the smallest cases that break them, of all beds
        self.best: "Optional[Tuple[Case, Breach]]" = None

    def tell(self, **what: Any) -> None:
        self.out.put(what)

    def breaches(self, case: Case) -> "List[Breach]":
        """Breaches that occur twice: a single one may be caused by the machine."""
        if case in self.judged:
            return self.judged[case]
        since = time.monotonic()
        found = judge(case, self.bed.run(case, limit(case) + 10))
        if found and not self.is_known(case, found):
            again = {breach.law for breach in judge(case, self.bed.run(case, limit(case) + 10))}
            if not any(breach.law in again for breach in found):
                self.tell(kind="once", case=str(case), lines=found)
            found = [breach for breach in found if breach.law in again]
        self.judged[case] = found
        self.tell(kind="ran", seconds=time.monotonic() - since)
        return found

    def is_known(self, case: Case, found: "List[Breach]") -> bool:
        """Whether smaller cases have shown all these breaches: the same features most likely show the same fault."""
        return all(any(law == breach.law and small.features <= case.features and (small.rr, small.udp) == (case.rr, case.udp)
                       for law, small in list(self.known)) for breach in found)

    def one(self, case: Case) -> None:
        if time.monotonic() > self.end:
            raise Over
        found = self.breaches(case)
        if found and not self.is_known(case, found):
            self.best = case, next(breach for breach in found if not self.is_known(case, [breach]))
            raise AssertionError

    def search(self, seed: int) -> None:
        """Draw until a failure has been found and shrunk, or the time is up."""
        self.best = None
        settings = hypothesis.settings(max_examples=MOST, deadline=None, database=None, report_multiple_bugs=False,
                                       suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate],
                                       print_blob=False, verbosity=hypothesis.Verbosity.quiet)
        test = hypothesis.seed(seed)(settings(hypothesis.given(cases)(lambda case: self.one(case))))
        with contextlib.suppress(Over, AssertionError, hypothesis.errors.Flaky):
            test()
        if self.best:
            case, breach = self.smaller(*self.best)
            if not self.is_known(case, [breach]):
                self.known.append((breach.law, case))
                self.tell(kind="found", case=str(case), law=breach.law, line=breach.line)

    def smaller(self, case: Case, breach: Breach) -> "Tuple[Case, Breach]":
        """Remove all features that the failure does not need. As each try takes a test's time, this removes one
        feature at a time instead of hypothesis's own shrinking."""
        until, tried = min(time.monotonic() + SHRINK, self.end + SHRINK / 3), {case}
        again = True
        while again:
            again = False
            for name in sorted(case.features):
                less = made(**{key: value for key, value in case.told().items() if key != name})
                if less in tried or len(less.features) >= len(case.features) or time.monotonic() > until:
                    continue
                tried.add(less)
                for found in judge(less, self.bed.run(less, limit(less) + 10)):
                    if found.law == breach.law:
                        case, breach, again = less, found, True
                        break
        return case, breach

    def hunt(self, seed: int) -> None:
        while time.monotonic() < self.end:
            self.search(seed)
            if self.best and not self.keep_going:
                break
            seed += 1


def worker(number: int, seed: int, seconds: float, out: Any, known: Any, keep_going: bool) -> None:
    try:
        with Bed(f"laws{os.getpid()}") as bed:
            Hunt(bed, time.monotonic() + seconds, out, known, keep_going).hunt(seed * 1000 + 100 * number)
    except BaseException as fault:
        out.put({"kind": "fault", "line": f"{type(fault).__name__}: {fault}"})
        raise
    finally:
        out.put({"kind": "end"})


def draw(minutes: float, seed: int, beds: int, keep_going: bool) -> int:
    """Print what was found and return the exit status."""
    print(f"laws: NP_LAWS_SEED={seed}, {beds} beds, {minutes:g} minutes", flush=True)
    out: "Any" = multiprocessing.Queue()
    known = multiprocessing.Manager().list()
    workers = [multiprocessing.Process(target=worker, args=(n, seed, 60 * minutes, out, known, keep_going)) for n in range(beds)]
    for one in workers:
        one.start()
    since, left, ran, taken, found, faults = time.monotonic(), beds, 0, 0.0, 0, 0
    while left:
        what = out.get()
        if what["kind"] == "ran":
            ran, taken = ran + 1, taken + what["seconds"]
        elif what["kind"] == "once":
            print(f"once, and not again: {what['case']}: {'; '.join(': '.join(line) for line in what['lines'])}", flush=True)
        elif what["kind"] == "found":
            found += 1
            print(f"FAIL {what['law'].replace('_', ' ')}: {what['line']}\n"
                  f"     tests/laws/run.py --case '{what['case']}'", flush=True)
        elif what["kind"] == "fault":
            faults += 1
            print(f"FAIL a bed: {what['line']}", flush=True)
        else:
            left -= 1
    for one in workers:
        one.join()
    print(f"{ran} combinations in {time.monotonic() - since:.0f} s, {taken / max(1, ran):.1f} s each, {beds} at a time; "
          f"{found} found, seed {seed}", flush=True)
    return 1 if found or faults or not ran else 0


def show(seen: Seen) -> None:
    print(f"status {seen.status} after {seen.took:.2f} s; {seen.said.strip()}")
    print(" ".join(f"{name}={value}" for name, value in seen.figures.items() if value not in ("-1", "-1.00", "0", "0.00")))
    for name, end in (("near", seen.near), ("far", seen.far)):
        print(f"witness, {name}: out {end.out.total()} bytes in {end.out.number()} packets, "
              f"in {end.inn.total()} bytes in {end.inn.number()}")


def one_case(text: str, times: int) -> int:
    case, broken = made(**json.loads(text)), 0
    with Bed(f"laws{os.getpid()}") as bed:
        for _ in range(times):
            seen = bed.run(case, limit(case) + 10)
            print(case, " ".join(case.command()))
            show(seen)
            found = judge(case, seen)
            broken += bool(found)
            for breach in found:
                print(f"FAIL {breach.law.replace('_', ' ')}: {breach.line}", flush=True)
    return 1 if broken else 0


def known_ones(beds: int) -> int:
    """Run the faults of the past, several at a time."""
    with multiprocessing.Pool(beds, own_bed) as pool:
        broken = sum(pool.imap_unordered(known_one, range(len(KNOWN))))
        pool.close()
        pool.join()     # their beds end with them
    print(f"{len(KNOWN)} that were wrong once, {broken} are")
    return 1 if broken else 0


own: "List[Bed]" = []


def own_bed() -> None:
    own.append(Bed(f"laws{os.getpid()}").__enter__())
    multiprocessing.util.Finalize(own[0], own[0].__exit__, exitpriority=100)


def known_one(number: int) -> int:
    one = KNOWN[number]
    case = made(**one.case)
    for _ in range(one.times):
        first = {breach.law for breach in judge(case, own[0].run(case, limit(case) + 10))}
        # A failure that does not recur was caused by the machine.
        found = first and [breach for breach in judge(case, own[0].run(case, limit(case) + 10)) if breach.law in first]
        if found:
            break
    print(f"{'FAIL' if found else 'ok  '} {case}  {one.law}: {one.was}", *(
        f"     {breach.law.replace('_', ' ')}: {breach.line}" for breach in found), sep="\n", flush=True)
    return int(bool(found))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("NP_LAWS_SEED") or random.randrange(10**6)))
    parser.add_argument("--beds", type=int, default=6)
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--tell", action="store_true", default=bool(os.environ.get("NP_LAWS_TELL")))
    parser.add_argument("--case")
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--times", type=int, default=1)
    given = parser.parse_args()
    obstacle = lib.no_line()
    if obstacle:
        lib.skip(obstacle)
    if given.case:
        return one_case(given.case, given.times)
    status = known_ones(given.beds) if given.known else 0
    found = draw(given.minutes, given.seed, given.beds, given.keep_going) if given.minutes else 0
    return status if given.tell else status | found


if __name__ == "__main__":
    sys.exit(main())
