"""The method table: a test's engines, with results, costs at both ends, and proof of their use (doc/results.md)."""

import itertools
import statistics
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

from netkit.ioengines import pair
from netkit.results import Run, is_number
from netkit.tables import GAP, Block, Cell, Sweep
from netkit.units import show_value

AXIS = "engine"
BASELINE = "sync"
ENDS = ("near", "far")
DATAGRAMS = ("UDP", "UDPLite", "DLCL")      # flow.protocol of streams that count messages
NOT_HERE = "unread"

Evidence = Dict[str, Any]


def number(e: Evidence, name: str) -> Optional[float]:
    value = e.get(name)
    return float(value) if is_number(value) else None


def known(e: Evidence, *names: str) -> float:
    """The sum of the known counters; zeros are omitted from the evidence."""
    return sum(number(e, name) or 0.0 for name in names)


class Work(NamedTuple):
    """The amount of work of an end, to which costs are related."""
    amount: float
    unit: str


def work(e: Evidence) -> Optional[Work]:
    """Transactions, datagrams, or kilobytes."""
    transactions = known(e, "flow.transactions")
    if transactions:
        return Work(transactions, "transaction")
    if e.get("flow.protocol") in DATAGRAMS:
        unit, amount = "datagram", known(e, "flow.sends", "flow.receives")
    else:
        unit, amount = "kB", known(e, "flow.bytes_sent", "flow.bytes_received") / 1000
    return Work(amount, unit) if amount else None


class Calls(NamedTuple):
    count: float
    exact: bool     # False: there were others, which were not counted


def system_calls(e: Evidence, flows: int) -> Optional[Calls]:
    """System calls that moved data or tried to, without waits for events (epoll) and reads of the error queue."""
    name = e.get("engine.name")
    if name is None:
        return None
    if number(e, "engine.submissions") is not None:
        return Calls(known(e, "engine.submissions"), True)
    waits = name in ("epoll", "zerocopy") or name not in ("sync", "spin") and flows > known(
        e, "work.threads")
    sends, receives = (known(e, counted) or known(e, otherwise) for counted, otherwise in (
        ("engine.send_calls", "flow.sends"), ("engine.receive_calls", "flow.receives")))
    return Calls(sends + receives + known(e, "engine.empty_calls"), not waits)


def per(e: Evidence, *names: str, times: float = 1.0) -> Optional[float]:
    """The sum of figures per unit of work; None if one is missing."""
    done, values = work(e), [number(e, name) for name in names]
    if done is None or any(value is None for value in values):
        return None
    return times * sum(value for value in values if value is not None) / done.amount


def ratio(e: Evidence, above: str, *below: str) -> Optional[float]:
    under = known(e, *below)
    return known(e, above) / under if under else None


def percent(share: float) -> str:
    """Three significant digits; "100 %" only if it is exactly that."""
    text = f"{100 * share:.3g}"
    return f"{'99.99' if text == '100' and share < 1 else text} %"


def proof_several(e: Evidence) -> "Iterator[str]":
    """Messages per call, or per submission of io_uring, counted by the engine."""
    for calls, messages, words, cut, by in (
            ("send_calls", "messages_sent", "messages sent a call", "segmented_sends", "cut"),
            ("receive_calls", "messages_received", "messages received a call", "joined_receives", "joined"),
            ("submissions", "completions", "completions a submission", "", "")):
        each, share = ratio(e, f"engine.{messages}", f"engine.{calls}"), ratio(e, f"engine.{cut}", f"engine.{calls}")
        if each:
            yield f"{each:.1f} {words}" + (f", {percent(share)} of the calls {by} by the kernel" if share else "")


def proof_zerocopy(e: Evidence) -> "Iterator[str]":
    lent, released = known(e, "engine.zerocopy_sends"), known(e, "engine.zerocopy_completions")
    if lent and released:
        copied = known(e, "engine.zerocopy_copied") / released
        yield f"asked for, {percent(copied)} copied"
    elif lent:
        yield "asked for, no completion came"
    if known(e, "engine.zerocopy_refused"):
        yield f"{known(e, 'engine.zerocopy_refused'):.0f} sends copied at once"
    share = ratio(e, "engine.bytes_truncated", "flow.bytes_received")
    if share:
        yield f"{percent(min(share, 1.0))} of the bytes never copied"


def proof_spin(e: Evidence) -> "Iterator[str]":
    if e.get("engine.name") != "spin":
        return
    empty = known(e, "engine.empty_calls")
    if empty:
        all_calls = system_calls(e, 1)
        assert all_calls
        yield f"{percent(empty / all_calls.count)} of the calls found nothing"
    polls, why = number(e, "engine.busy_poll_us"), unread(e, "engine.busy_poll_us")
    if polls:
        yield f"busy polls of {polls:.0f} us"
    elif why:
        yield f"no busy polls ({why})"


def proof_packets(e: Evidence) -> "Iterator[str]":
    """Datagrams per packet, from the kernel's or the interface's counters."""
    if e.get("flow.protocol") not in DATAGRAMS or e.get("flow.role") != "transmit":
        return
    for name, where in (("wire.out.packets", "by the ledger"), ("moved.nic.tx_packets", "by the interface")):
        packets, sent = number(e, name), known(e, "flow.sends")
        if packets and sent / packets >= 1.05:      # more packets than datagrams: others' traffic, or fragments
            yield f"{sent / packets:.1f} datagrams a packet {where}"
            return


def unread(e: Evidence, name: str) -> str:
    reasons = e.get("unread")
    return str(reasons[name]) if isinstance(reasons, dict) and reasons.get(name) else ""


def together(told: "Sequence[Evidence]") -> Evidence:
    """Several runs of a method as one: their counters are added up."""
    made: Evidence = {}
    for e in told:
        for name, value in e.items():
            adds = is_number(value) and name in made and not name.endswith("_us")
            made[name] = made[name] + value if adds else value
    return made


def proof(e: Evidence, asked: str) -> str:
    """The proof that the requested engine was used."""
    name = e.get("engine.name")
    if name is None:
        return "not known"
    words = [] if str(name) == asked else [f"driven by {name}"]
    for part in (proof_several, proof_zerocopy, proof_spin, proof_packets):
        words += part(e)
    return "; ".join(words)


@dataclass
class Method:
    """All runs of a point: one of the methods in a block."""
    engine: str
    cell: Optional[Cell]
    rates: "Dict[int, float]" = field(default_factory=dict)     # by repetition
    ends: "Dict[str, List[Evidence]]" = field(default_factory=lambda: {end: [] for end in ENDS})

    def __post_init__(self) -> None:
        for run in self.cell.good() if self.cell else []:
            for rate in Cell(run.point, [run]).values("THROUGHPUT"):
                self.rates[run.repetition] = rate
            for end in ENDS:
                self.ends[end] += filter(None, [run.evidence(end)])


def to_baseline(one: Method, base: Method) -> Optional[float]:
    """The median ratio to the baseline's run in the same round; if there is none, the ratio of medians."""
    pairs = [rate / base.rates[at] for at, rate in one.rates.items() if base.rates.get(at)]
    if pairs:
        return statistics.median(pairs)
    if not one.rates or not base.rates or not statistics.median(base.rates.values()):
        return None
    return statistics.median(one.rates.values()) / statistics.median(base.rates.values())


def median(values: "Sequence[Optional[float]]") -> Optional[float]:
    there = [value for value in values if value is not None]
    return statistics.median(there) if there else None


def show(value: Optional[float], mark: str = "") -> str:
    """Three significant digits."""
    if value is None:
        return GAP
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}"
    return mark + text.rstrip(".")


RATES = ["engine", "median", "lower quartile", "upper quartile", "to sync", "lost", "runs"]
COSTS = ["engine", "end", "user ns", "system ns", "calls", "switches", "cycles", "instructions",
         "the way taken"]


def tells(run: Run) -> bool:
    return any(map(run.evidence, ENDS))


def can_be_made(sweep: Sweep) -> bool:
    """Whether the runs have several engines and evidence of what these did."""
    return len(sweep.values.get(AXIS, [])) > 1 and any(map(tells, sweep.results.runs))


def rate_row(one: Method, base: Optional[Method]) -> "List[str]":
    rates = list(one.rates.values())
    if not rates:
        return [one.engine, *[GAP] * (len(RATES) - 1)]
    low, middle, high = statistics.quantiles(rates * 2 if len(rates) == 1 else rates, n=4, method="inclusive")    # needs at least two values
    share = median([lost(e) for e in one.ends["far"]])
    times = to_baseline(one, base) if base else None
    return [one.engine, show(middle), show(low), show(high), GAP if times is None else f"{times:.2f}",
            GAP if share is None else percent(share), str(len(rates))]


def lost(e: Evidence) -> Optional[float]:
    sent, gone = number(e, "udp.sent"), number(e, "udp.lost")
    return gone / sent if sent and gone is not None else None


def cost_row(one: Method, end: str, flows: int) -> "Optional[List[str]]":
    told = one.ends[end]
    if not told:
        return None

    def of(value: "Callable[[Evidence], Optional[float]]", mark: str = "") -> str:
        return show(median([value(e) for e in told]), mark)

    def calls(e: Evidence) -> Optional[float]:
        counted, done = system_calls(e, flows), work(e)
        return counted.count / done.amount if counted and done else None

    def counted(name: str) -> str:
        return of(lambda e: per(e, name)) if any(number(e, name) is not None for e in told) else NOT_HERE

    all_calls = [system_calls(e, flows) for e in told]
    mark = "" if all(found is None or found.exact for found in all_calls) else ">="
    asked = pair(one.engine)[ENDS.index(end)]
    return [one.engine, end, of(lambda e: per(e, "work.user_s", times=1e9)),
            of(lambda e: per(e, "work.system_s", times=1e9)), of(calls, mark),
            of(lambda e: per(e, "work.switches_voluntary", "work.switches_involuntary")),
            counted("work.cycles"), counted("work.instructions"),
            proof(together(told), asked) or GAP]


def why_unread(methods: "Sequence[Method]") -> "Iterator[str]":
    """Why there are no cycles, or which part of the system they include."""
    if not any("work.cycles" in e or unread(e, "work.cycles") for one in methods for e in one.ends["near"]):
        yield "cycles and instructions: not asked for (cycles = true)"
        return
    for end in ENDS:
        told = [e for one in methods for e in one.ends[end]]
        if not told:
            continue
        reasons = {unread(e, "work.cycles"): 0 for e in told if number(e, "work.cycles") is None}
        for reason in reasons:
            yield f"cycles and instructions, {end}: " + (reason or (
                "a session of the daemon's counts none" if end == "far" else "not asked for"))
        if any(e.get("work.counted") == "user" for e in told):
            yield f"cycles and instructions, {end}: of the user's part alone, the kernel's is not permitted"


def left_out(methods: "Sequence[Method]") -> "Iterator[str]":
    for one in methods:
        runs = one.cell.runs if one.cell else []
        bad = [run for run in runs if not run.ok]
        words = "; ".join({run.reason(): 0 for run in bad})
        if not runs:
            yield f"{one.engine}: not measured"
        elif bad and all(run.excluded for run in bad):
            yield f"{one.engine}: left out: {words}"
        elif bad:
            yield f"{one.engine}: {len(bad)} of {len(runs)} failed: {words}"
        elif not all(map(tells, runs)):
            yield f"{one.engine}: its runs kept no evidence"


def of_point(sweep: Sweep, rest: "Dict[str, Any]") -> "List[Block]":
    """The methods at a point of all other axes, with results and costs; empty if nothing was tried."""
    methods = []
    for value in sweep.values[AXIS]:
        cell = sweep.cell({**rest, AXIS: value})
        if cell or sweep.planned({**rest, AXIS: value}):
            methods.append(Method(show_value(value), cell))
    if not any(one.cell for one in methods):
        return []
    base = next((one for one in methods if one.engine == BASELINE and one.rates), None)
    unit = next((one.cell.unit() for one in methods if one.cell and one.rates), "")
    flows = {**sweep.constants, **rest}.get("flows")
    count = int(flows) if is_number(flows) else 1
    costs = [row for one in methods for end in ENDS for row in [cost_row(one, end, count)] if row]
    units = {done.unit: 0 for one in methods for told in one.ends.values()
             for done in map(work, told) if done}
    test = {"test": sweep.test(rest)} if sweep.test(rest) else {}
    words = sweep.describe({**test, **{name: value for name, value in rest.items()
                                       if len(sweep.values[name]) > 1}})
    notes = [*left_out(methods), *why_unread(methods)]
    if base is None:
        notes.append(f"nothing to compare with: no run by {BASELINE}")
    made = [Block(f"{words or 'methods'}: {unit or 'rate'}", RATES, [rate_row(one, base) for one in methods])]
    if costs:
        made.append(Block(f"what a {', '.join(units)} cost; calls: those that move data, or try to; "
                          ">=: and waits, which nobody counts", COSTS, costs, left=(0, len(COSTS) - 1)))
    made[-1].notes = notes
    return made


def blocks(sweep: Sweep) -> "List[Block]":
    others = [name for name in sweep.values if name != AXIS]
    return [made for choice in itertools.product(*(sweep.values[name] for name in others))
            for made in of_point(sweep, dict(zip(others, choice)))]
