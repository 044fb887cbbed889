#!/usr/bin/env python3
"""How often the scripts' verdicts are wrong, simulated with their own functions: promised, observed, and how often a
planted difference is found. --write updates the table in doc/gate.md; the seeds are fixed. Takes a quarter of an
hour.

    rates_long.py [--write] [WORD...]     # rows with one of these words"""

import math
import os
import re
import subprocess
import sys
import types
from typing import Any, Callable, Iterator, List, NamedTuple, Optional

import lib

np = lib.needs("scipy.stats", "numpy")

from netkit import compare, mesh, paths, plan
from netkit.gate import history, model, past, trial

COUNT = 2000
NIGHTLY = 500       # histories that are read each night for a quarter: 82 readings each
DOC = lib.TOP / "doc" / "gate.md"
BEGIN, END = "<!-- rates: made by tests/e2e/rates_long.py -->\n", "<!-- rates: end -->\n"
HEAD = ("| verdict | where nothing is wrong | promised (%) | observed (%) | of | what is planted | found (%) |\n"
        "|---|---|---:|---:|---:|---|---:|\n")
Draw = Callable[[Any], bool]        # given a generator, whether the verdict is wrong, or the difference found


class Row(NamedTuple):
    what: str
    noise: str
    promised: float     # percent
    wrong: Draw
    planted: str = ""
    found: Optional[Draw] = None
    count: int = COUNT


def autoregressive(rng: Any, count: int, rho: float) -> Any:
    values = rng.standard_normal(count + 50)
    for at in range(1, len(values)):
        values[at] = rho * values[at - 1] + math.sqrt(1 - rho * rho) * values[at]
    return values[50:]


# --- gates --------------------------------------------------------------------------------

PAIRS = 40


def slots(rng: Any, kind: str) -> Any:
    """Log figures of two slots per pair, with a noise of about 1 %."""
    made = rng.standard_normal(2 * PAIRS) * 0.01
    if kind == "correlated":
        made = 0.01 * autoregressive(rng, 2 * PAIRS, 0.6)
    elif kind == "heavy tails":
        made = rng.standard_t(2, 2 * PAIRS) * 0.01
    elif kind == "drift":
        made += np.linspace(0, 0.5, 2 * PAIRS)
    elif kind == "hog":
        made -= (rng.random(2 * PAIRS) < 0.3) * rng.random(2 * PAIRS) * 0.5
    return made


def gate(rng: Any, kind: str, effect: float) -> str:
    """The verdict of a gate that judges after every pair, as netgate does, until it has one."""
    track = trial.Track(model.Point("p", "TCP_STREAM"), 1.0)
    track.noise["THROUGHPUT"] = 0.014
    figures = slots(rng, kind).reshape(-1, 2)
    for pair in figures:
        order = 1 if rng.random() < 0.5 else -1
        a, b = (model.Slot("p", side, figures={"THROUGHPUT": 1000 * math.exp(value + more)})
                for side, value, more in zip("AB", pair[::order], (0.0, effect)))
        track.pairs.append((a, b))
        verdict = trial.rows_of([track], 95.0)[0][1]
        if verdict != model.CANT_TELL:
            break
    return verdict


def gates() -> "Iterator[Row]":
    for kind in ("gaussian", "correlated", "heavy tails", "drift", "hog"):
        yield Row("netgate", f"A against A, {kind}, up to {PAIRS} pairs", 5,
                  lambda rng, kind=kind: gate(rng, kind, 0.0) in (model.WORSE, model.BETTER),
                  "B 4 % lower: worse", lambda rng, kind=kind: gate(rng, kind, -0.04) == model.WORSE)
    yield Row("netgate", "B lower by the margin, gaussian: called equal", 5,
              lambda rng: gate(rng, "gaussian", math.log(0.98)) == model.EQUAL,
              "A against A: equal", lambda rng: gate(rng, "gaussian", 0.0) == model.EQUAL)


# --- the past, and compare ----------------------------------------------------------------

METRIC = model.Metric(margin=0.01)
POINT = model.Point("tcp_stream", "TCP_STREAM", metrics=(METRIC,))


def session(rng: Any, between: float, count: int = 6, effect: float = 0.0, within: float = 0.005, day: int = 1) -> past.Session:
    height = rng.normal(effect, between)
    figures = 1000 * np.exp(height + rng.normal(0, within, count))
    return past.Session("", f"2026-10-{day:02}T03:00:00Z", slots={POINT.name: past.Slots({"THROUGHPUT": figures}, count * [None], [], {})})


def baseline(rng: Any, sessions: int, effect: float, margin: float) -> str:
    metric = model.Metric(margin=margin)
    held = past.Baseline("", "B", [session(rng, 0.01) for _ in range(sessions)], [POINT])
    return held.judge_all([(POINT, metric, session(rng, 0.01, 12, effect).slots[POINT.name])], 95.0)[0].verdict


def compared(rng: Any, sessions: int, effect: float, between: float, margin: float) -> str:
    a, b = (types.SimpleNamespace(path="", sessions=[session(rng, between, 10, more, day=day + 1) for day in range(sessions)])
            for more in (0.0, effect))
    now = past.Slots.joined([one.slots[POINT.name] for one in b.sessions])
    return compare.Sessions(a, b, [POINT]).judge_all([(POINT, model.Metric(margin=margin), now)], 95.0)[0].verdict


def pasts() -> "Iterator[Row]":
    other = (model.WORSE, model.BETTER)
    for count in (3, 5, 10):
        yield Row("netgate --baseline", f"{count} sessions that differ by 1 %", 5,
                  lambda rng, count=count: baseline(rng, count, 0.0, 0.01) in other,
                  "5 % lower, margin 2 %", lambda rng, count=count: baseline(rng, count, math.log(0.95), 2) == model.WORSE, 20 * COUNT)
    yield Row("netreport --compare", "10 files against 10, days differ by 2 %", 5, lambda rng: compared(rng, 10, 0.0, 0.02, 0.01) in other,
              "5 % lower, margin 2 %: worse", lambda rng: compared(rng, 10, math.log(0.95), 0.02, 2) == model.WORSE)
    yield Row("netreport --compare", "a file of 10 runs against one of the same day, which differ by 0.5 % like their runs", 5,
              lambda rng: compared(rng, 1, 0.0, 0.005, 0.01) in other,
              "5 % lower, margin 2 %: worse", lambda rng: compared(rng, 1, math.log(0.95), 0.005, 2) == model.WORSE)
    yield Row("netreport --compare", "the same, lower by the margin of 2 %: called equal", 5,
              lambda rng: compared(rng, 1, math.log(0.98), 0.005, 2) == model.EQUAL,
              "no difference, margin 3 %: equal", lambda rng: compared(rng, 1, 0.0, 0.005, 3) == model.EQUAL)


def changed(values: Any, rng: Any) -> "List[int]":
    return [at for at, _ in history.change_points(values, 0.05, int(rng.integers(1 << 30)))]


def histories() -> "Iterator[Row]":
    def draw(rng: Any, count: int, rho: float, tails: bool = False) -> Any:
        return rng.standard_t(2, count) if tails else autoregressive(rng, count, rho)

    def stepped(rng: Any, count: int, rho: float, since: int) -> bool:
        values = draw(rng, count, rho) + 3 * (np.arange(count) >= count - since)
        return any(abs(at - count + since) <= 1 for at in changed(values, rng))

    for promised, count, rho, name in ((5, 20, 0.0, "gaussian"), (5, 20, 0.3, "correlation 0.3"), (8, 20, 0.5, "correlation 0.5"),
                                       (12, 40, 0.5, "correlation 0.5")):
        yield Row("netgate --history", f"{count} sessions, {name}", promised,
                  lambda rng, count=count, rho=rho: bool(changed(draw(rng, count, rho), rng)),
                  "3 standard deviations, 10 sessions ago", lambda rng, count=count, rho=rho: stepped(rng, count, rho, 10))
    yield Row("netgate --history", "20 sessions, t with 2 degrees of freedom", 5, lambda rng: bool(changed(draw(rng, 20, 0.0, True), rng)),
              "3 standard deviations, 5 sessions ago (gaussian)", lambda rng: stepped(rng, 20, 0.0, 5))

    def nightly(rng: Any, rho: float) -> bool:
        values = draw(rng, 90, rho)
        return any(changed(values[:count], rng) for count in range(9, 91))
    yield Row("netgate --history", "read each night until 90 sessions, gaussian", 10, lambda rng: nightly(rng, 0.0), count=NIGHTLY)
    yield Row("netgate --history", "read each night until 90 sessions, correlation 0.3", 30, lambda rng: nightly(rng, 0.3), count=NIGHTLY)


# --- a mesh, the flows of a run -----------------------------------------------------------

def named(rng: Any, hosts: int, pair: float, host: float, effect: float) -> "List[str]":
    """A mesh with these standard deviations of pairs and hosts; the second host sends at another rate."""
    names = [f"h{number}" for number in range(hosts)]
    sends, receives = ({name: rng.normal(0, host) for name in names} for _ in range(2))
    figures = {(a, b): 1000 * math.exp(sends[a] + receives[b] + rng.normal(0, pair) + effect * (a == "h1"))
               for a in names for b in names if a != b}
    return [what for what, _, _ in mesh.worse(figures, False)]


def meshes() -> "Iterator[Row]":
    for hosts, pair, host in ((6, 0.03, 0.0), (6, 0.03, 0.1), (12, 0.03, 0.1), (12, 0.1, 0.0)):
        yield Row("netreport --mesh", f"{hosts} hosts that differ by {100 * host:g} %, pairs by {100 * pair:g} %", mesh.PROMISED,
                  lambda rng, hosts=hosts, pair=pair, host=host: bool(named(rng, hosts, pair, host, 0.0)),
                  "a host sends 40 % less", lambda rng, hosts=hosts, pair=pair, host=host: any(
                      what.startswith("h1, as client") for what in named(rng, hosts, pair, host, math.log(0.6))))


FLOWS, PACKETS = 16, 20000


def lost(rng: Any, burst: int, more: float) -> "List[int]":
    """Flows that lose 0.3 %, in bursts of up to this many packets; one flow loses more."""
    counts = []
    for flow in range(FLOWS):
        events = rng.poisson(PACKETS * (0.003 + more * (flow == 0)) / ((1 + burst) / 2))
        counts.append((int(np.sum(rng.integers(1, burst + 1, events))), PACKETS))
    return paths.lossy(counts)


def flows() -> "Iterator[Row]":
    for burst in (1, 10, 30):
        yield Row("netreport --paths", f"{FLOWS} flows lose 0.3 % in bursts of {'1 to ' * (burst > 1)}{burst}", 2,
                  lambda rng, burst=burst: bool(lost(rng, burst, 0.0)),
                  "a flow loses 3 % more", lambda rng, burst=burst: 0 in lost(rng, burst, 0.03))

    def late(rng: Any, count: int, more: int) -> "List[int]":
        return paths.laggards({flow: round(100 + rng.exponential(20) + more * (flow == 0)) for flow in range(count)})[0]
    for count in (8, FLOWS):
        yield Row("netreport --paths", f"{count} flows, round trips of 100 us and an exponential tail of 20", 2,
                  lambda rng, count=count: bool(late(rng, count, 0)),
                  "a flow takes 500 us more", lambda rng, count=count: late(rng, count, 500) == [0])


# --- repetitions --------------------------------------------------------------------------

def repeated(values: Any, level: float, corrected: bool) -> "Optional[bool]":
    """Whether the final interval contains the true mean, 100; None: the width was not reached in 10 runs."""
    for count in range(3, 11):
        held = [float(value) for value in values[:count]]
        width, reached = plan.confident(held, (level, 5.0), 3, 10 if corrected else count)
        if reached:
            return abs(sum(held) / count - 100) <= width / 200 * abs(sum(held) / count)
    return None


def repetitions() -> "Iterator[Row]":
    kinds = {"gaussian, 3 %": lambda rng: 100 + 3 * rng.standard_normal(10),
             "bimodal, 95 and 105 alike": lambda rng: 100 + 5 * rng.choice([-1.0, 1.0], 10) + 0.1 * rng.standard_normal(10),
             "correlation of 0.9, 2 %": lambda rng: 100 + 2 * autoregressive(rng, 10, 0.9)}
    for name, corrected, promised in (("netsweep --until-confidence 95,5", True, (5, 30, 35)), ("netperf -I 95,5", False, (6, 30, 50))):
        for (kind, draw), most in zip(kinds.items(), promised):
            yield Row(name, f"runs: {kind}", most, lambda rng, draw=draw, corrected=corrected: repeated(draw(rng), 95.0, corrected) is False,
                      "it ends within 10 runs", lambda rng, draw=draw, corrected=corrected: repeated(draw(rng), 95.0, corrected) is not None)


# --- the table ----------------------------------------------------------------------------

def share(draw: Draw, count: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    return 100 * sum(bool(draw(rng)) for _ in range(count)) / count


def knee() -> "Iterator[str]":
    """The search itself is in C: its unit test has 10,000 of them."""
    program = os.path.join(os.environ.get("top_builddir", "."), "tests/unit/test_knee")
    if os.path.exists(program):
        done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        told = re.search(r"(\d+) of (\d+) below nine tenths, ([\d.]+) runs each", done.stdout)
        if told:
            yield (f"| netperf --rate auto | 1 run in 50 is disturbed: below 0.9 of the knee | 0.5 | {100 * int(told[1]) / int(told[2]):.1f} "
                   f"| {told[2]} | runs of a search: {told[3]} | |\n")


def key(row: str) -> str:
    """What a line of the table is of."""
    return " | ".join(row.split(" | ")[:2])


def main(words: "List[str]") -> None:
    chosen = [word for word in words if word != "--write"]
    rows, wrong = [], []
    for seed, row in enumerate([*gates(), *pasts(), *histories(), *meshes(), *flows(), *repetitions()], 1):
        if chosen and not any(word in f"{row.what} {row.noise}" for word in chosen):
            continue
        observed = share(row.wrong, row.count, seed)
        found = f"{share(row.found, row.count // 4, 1000 + seed):.0f}" if row.found else ""
        rows.append(f"| {row.what} | {row.noise} | {row.promised:g} | {observed:.1f} | {row.count} | {row.planted} | {found} |\n")
        print(rows[-1], end="", flush=True)
        # Three standard errors above what is promised.
        if observed > row.promised + 3 * math.sqrt(row.promised * (100 - row.promised) / row.count):
            wrong.append(row.noise)
    if not chosen:
        rows += knee()
    text = DOC.read_text(encoding="utf-8")
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if chosen:      # the others stay as they are
        made = {key(row): row for row in rows}
        rows = [made.pop(key(row), row) for row in text[begin + len(HEAD):end].splitlines(True)]
        assert not made, f"no row of the table: {list(made)}"
    if "--write" in words:
        DOC.write_text(text[:begin] + HEAD + "".join(rows) + text[end:], encoding="utf-8")
    assert not wrong, f"more than promised: {'; '.join(wrong)}"


if __name__ == "__main__":
    main(sys.argv[1:])
