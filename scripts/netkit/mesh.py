"""Finds hosts and pairs that are worse than the rest of a mesh (netreport --mesh). The logarithm of a figure is an
overall value, a part for the client, one for the server (by Tukey's median polish), and the pair's residual."""

import math
import statistics
from collections import Counter
from typing import Any, Dict, Hashable, Iterator, List, NamedTuple, Set, Tuple, TypeVar, Union

from netkit import engines, groups, outliers, units
from netkit.gate.model import CANT_TELL, EQUAL, WORSE, Gate, Judgement, Metric
from netkit.outliers import Pair
from netkit.tables import THROUGHPUTS, Block, Sweep, Words
from netkit.units import show_value

MARGIN = 10.0       # percent: smaller differences don't matter
ERROR = 0.01        # error probability of the test of hosts
PROMISED = 3        # percent of meshes in which a host or pair is named by chance, at most (tests/e2e/rates_long.py)
LEAST_HOSTS = 5     # with fewer, it can't be told which one differs
VERDICTS = ("ktap", "tap", "junit")     # forms of gate()
HEAD = ["at", "what is worse", "figure", "others", "by (%)"]
Key = TypeVar("Key", bound=Hashable)


def below(values: "Dict[Key, float]", margin: float) -> "Set[Key]":
    """The keys whose values are below the median by the margin in percent."""
    least = statistics.median(values.values()) + math.log1p(-margin / 100)
    return {key for key, value in values.items() if value <= least}


def worse(figures: "Dict[Pair, float]", less_is_better: bool, margin: float = MARGIN) -> "Iterator[Tuple[str, float, float]]":
    """Lines about bad hosts, then pairs, each with its figure and the others'. Raises python.MissingModule."""
    sign = -1.0 if less_is_better else 1.0
    parts = outliers.polish({pair: sign * math.log(value) for pair, value in figures.items()})
    noise = parts.noise
    each = 1.25 * noise * math.sqrt(len(parts.clients) / len(figures))     # standard error of a median
    clients, servers = (below(known, margin).intersection(list(known)[number] for number in outliers.esd(
        [-value for value in known.values()], ERROR / 2, each)) for known in (parts.clients, parts.servers))
    usual = math.exp(sign * parts.whole)
    for name in sorted(clients | servers):
        ends = [(known[name], end) for known, named, end in (
            (parts.clients, clients, "client"), (parts.servers, servers, "server")) if name in named]
        yield (f"{name}, as {' and '.join(end for _, end in ends)}",
               math.exp(sign * (parts.whole + min(added for added, _ in ends))), usual)
    pairs = {pair for pair in below(parts.pairs, margin) if -parts.pairs[pair] >= outliers.SCORE * noise}
    for client, server in sorted(pairs):
        both = (server, client) in pairs
        if not both or client < server:
            value = parts.whole + parts.clients[client] + parts.servers[server]
            yield (f"{client} and {server}, both ways" if both else f"{client} to {server}",
                   math.exp(sign * (value + parts.pairs[client, server])), math.exp(sign * value))


def silent(pairs: "Dict[Pair, str]", figures: "Dict[Pair, float]") -> "Iterator[str]":
    """Hosts without any result, or without one as client or server, then other pairs without, each with a reason."""
    good, left = {name for pair in figures for name in pair}, pairs
    failed = {name for pair in pairs if good & set(pair) for name in pair}      # with a host that works
    for words, ends in (("in all pairs", slice(2)), ("as client", slice(1)), ("as server", slice(1, 2))):
        good, tried = {name for pair in figures for name in pair[ends]}, Counter(name for pair in left for name in pair[ends])
        names = {name for name in {*tried} - good if tried[name] > 1 or name in failed and ends == slice(2)}
        yield from (f"{name}, {words}: {next(why for pair, why in left.items() if name in pair[ends])}" for name in sorted(names))
        left = {pair: why for pair, why in left.items() if not names & {*pair[ends]}}
    yield from (f"{' to '.join(pair)}: {why}" for pair, why in sorted(left.items()))


class Found(NamedTuple):
    """The findings for each test and combination of other axes: figures, pairs without and why, what is worse or untold, notes."""
    meshes: "Dict[str, Dict[Pair, float]]"
    dead: "Dict[str, Dict[Pair, str]]"
    rows: "List[List[Union[str, Words]]]"
    good: "List[str]"
    untold: "Dict[str, str]"
    notes: "List[str]"


def find(sweep: Sweep, figure: str, less_is_better: bool, margin: float = MARGIN) -> Found:
    zeros: "Dict[str, Dict[Pair, float]]" = {}
    found = Found({}, {}, [], [], {}, [])
    varying = [name for name in sweep.varying() if name not in ("client", "server")]
    speeds = {name: speed for name, known in (sweep.results.header.more.get("hosts") or {}).items()
              if isinstance(speed := known.get("speed_mbps"), (int, float))}
    several = figure in THROUGHPUTS and len({*speeds.values()} - {None}) > 1

    def place_of(point: "Dict[str, Any]") -> "Tuple[str, Pair]":       # its mesh and pair
        name = " ".join(f"{one}={show_value(point.get(one))}" for one in varying) or "all"
        client, server = (engines.named(show_value(point[end])) for end in ("client", "server"))
        slower = min(filter(None, (speeds.get(client), speeds.get(server))), default=None)
        return name + (f", links of {units.show_rate(1e6 * slower)}" if several and slower else ""), (client, server)

    missing = Counter(place_of(point)[0] for point in sweep.points() if not sweep.cell(point) and sweep.planned(point))
    for cell in sweep.cells.values():
        values = [value for value in cell.values(figure) if value > 0 or less_is_better]
        nothing = [run for run in cell.runs if not run.excluded and not (
            run.ok and run.figure(figure) is not None and (less_is_better or run.figure(figure)))]
        name, (client, server) = place_of(cell.point)
        found.meshes.setdefault(name, {})
        if len(nothing) > len(values):
            found.dead.setdefault(name, {})[client, server] = nothing[-1].reason() or "0"
        elif values and not statistics.median(values):
            zeros.setdefault(name, {})[client, server] = 0.0
        elif values:
            found.meshes[name][client, server] = statistics.median(values)
            found.notes.extend([f"{name}: {client} to {server}: {len(nothing)} of {len(cell.runs)} runs gave nothing"] * bool(nothing))
    found.meshes.update({name: {} for name in missing if name not in found.meshes})
    if several:
        usual = statistics.mode(filter(None, speeds.values()))
        found.notes.extend(f"{name}: a link of {units.show_rate(1e6 * speed)}, most have {units.show_rate(1e6 * usual)}; pairs with it are "
                           "judged among themselves" for name, speed in speeds.items() if speed and speed != usual)
    of_groups = groups.of(sweep)
    for name, figures in found.meshes.items():
        found.rows.extend([name, what, "nothing", "", ""] for what in silent(found.dead.get(name, {}), {**figures, **zeros.get(name, {})}))
        if name in zeros and figures:
            found.untold[name] = f"{len(zeros[name])} of {len(zeros[name]) + len(figures)} pairs have 0: others have no ratio to that"
            continue
        figures = figures or dict.fromkeys(zeros.get(name, ()), 1.0)     # all equal
        hosts = {name for pair in figures for name in pair}
        if len(hosts) < LEAST_HOSTS or len(figures) < 2 * len(hosts):
            found.untold[name] = f"fewer than {LEAST_HOSTS} hosts, or too few pairs, to tell which one differs"
            continue
        uplinks, figures = groups.judge(figures, of_groups, less_is_better, margin)
        for what, mine, others in (*uplinks, *worse(figures, less_is_better, margin)):
            found.rows.append([name, what, units.show_figure(mine), units.show_figure(others), f"{100 * (mine / others - 1):+.0f}"])
        if missing[name]:
            found.untold[name] = f"{missing[name]} pairs of the plan were not measured (netmesh --resume does)"
        found.good.extend([] if missing[name] or any(row[0] == name for row in found.rows) else [name])
    return found


def block(found: Found, figure: str, margin: float = MARGIN) -> Block:
    notes = [f"worse by {margin:g} %, after median polish of logarithms: hosts by the generalised ESD test, pairs by a "
             f"modified z-score of {outliers.SCORE:g}; chance names one in {PROMISED:g} % of meshes at most", *found.notes,
             *(f"{name}: {why}" for name, why in found.untold.items()), *(f"{name}: nothing is worse than the rest" for name in found.good)]
    return Block(f"{figure}, of hosts and pairs", HEAD, found.rows, notes, left=(0, 1))


def gate(found: Found, figure: str, margin: float = MARGIN) -> Gate:
    """The findings as a gate: one judgement for each mesh."""
    judged = []
    for name in found.meshes:
        bad = [f"{what}: {mine}" + f" ({by} %; others {others})" * bool(by) for at, what, mine, others, by in found.rows if at == name]
        verdict = WORSE if bad else EQUAL if name in found.good else CANT_TELL
        words = f"{len(bad)} parts of {name}" if bad else f"{name}: {found.untold.get(name, 'nothing is worse than the rest')}"
        judged.append(Judgement(name, Metric(figure, margin), verdict, words=words, notes=bad))
    return Gate([], judged, notes=found.notes, command=["netreport", "--mesh"], program="netmesh")
