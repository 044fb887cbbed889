"""Finds hosts and pairs that are worse than the rest of a mesh (netreport --mesh). The logarithm of a figure is an
overall value, a part for the client, one for the server (by Tukey's median polish), and the pair's residual. A bad
uplink of a group, such as a rack, affects pairs with other groups, but none within."""

import math
import statistics
from collections import Counter
from typing import Any, Collection, Dict, Hashable, Iterator, List, NamedTuple, Sequence, Set, Tuple, TypeVar, Union

from netkit import engines, outliers, units
from netkit.gate.model import CANT_TELL, EQUAL, WORSE, Gate, Judgement, Metric
from netkit.outliers import Pair
from netkit.tables import THROUGHPUTS, Block, Sweep, Words
from netkit.units import show_value

MARGIN = 10.0       # percent: smaller differences don't matter
ERROR = 0.01        # error probability of the test of hosts
PROMISED = 3        # percent of meshes in which a host or pair is named by chance, at most (tests/e2e/rates_long.py)
LEAST_HOSTS = 5     # with fewer, it can't be told which one differs
LEAST_APART = 2     # hosts in a group, such as a rack, and outside it
VERDICTS = ("ktap", "tap", "junit")     # forms of gate()
HEAD = ["at", "what is worse", "figure", "others", "by (%)"]
Key = TypeVar("Key", bound=Hashable)
Figures = Dict[Pair, float]


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


class Uplink(NamedTuple):
    """A bad uplink: the group, the affected directions, and the logarithms of its figure and of the others'."""
    name: str
    ways: "Tuple[int, ...]"
    mine: float
    others: float

    def words(self) -> str:
        return ("all pairs between {} and the rest" if len(self.ways) == 2 else
                "all pairs from the rest to {}" if self.ways[0] else "all pairs from {} to the rest").format(self.name)


def groups_of(sweep: Sweep) -> "Dict[str, Set[str]]":
    """The hosts of each group, as netmesh stored them."""
    found: "Dict[str, Set[str]]" = {}
    for name, known in (sweep.results.header.more.get("hosts") or {}).items():
        for group in known.get("groups") or ():
            found.setdefault(str(group), set()).add(name)
    return found


def spread(values: "Collection[float]") -> float:
    """The standard deviation, estimated from the median absolute deviation."""
    middle = statistics.median(values)
    return statistics.median(abs(value - middle) for value in values) / 0.6745


def bad_uplink(logs: Figures, name: str, group: "Set[str]", groups: "Dict[str, Set[str]]", margin: float) -> "Iterator[Uplink]":
    """Whether this group is worse. Raises python.MissingModule."""
    least = -math.log1p(-margin / 100)
    rest = {pair: value for pair, value in logs.items() if not set(pair) & group}
    others = {pair: value for pair, value in rest.items() if not any(set(pair) <= hosts for hosts in groups.values() if len(hosts) > 1)} or rest
    inside = [value for pair, value in logs.items() if set(pair) <= group]
    if len({end for pair in rest for end in pair}) < LEAST_APART or len(group) < LEAST_APART:
        return
    usual = statistics.median(others.values())
    ways: "Dict[int, List[float]]" = {}
    for way in (0, 1):
        mine = {pair: value for pair, value in logs.items() if pair[way] in group and pair[1 - way] not in group}
        ends = [[value for pair, value in mine.items() if end in pair] for end in {end for pair in mine for end in pair}]
        middle = statistics.median(mine.values()) if mine else math.inf
        if (usual - middle >= least and all(usual - statistics.median(values) >= least for values in ends)
                and (not inside or statistics.median(inside) - middle >= least / 2)):
            ways[way] = list(mine.values())
    # A slow host is in all of its own pairs; with few pairs there are hardly more figures than parameters.
    noise = min(spread(others.values()), outliers.polish(others).noise) if ways else 0.0
    ways = {way: mine for way, mine in ways.items() if usual - statistics.median(mine) >= outliers.SCORE * 1.25 * noise / math.sqrt(len(mine))}
    if ways:
        yield Uplink(name, tuple(ways), statistics.median(value for mine in ways.values() for value in mine), usual)


def judge_groups(figures: Figures, groups: "Dict[str, Set[str]]", less_is_better: bool, margin: float) -> "Tuple[List[Tuple[str, float, float]], Figures]":
    """Lines about bad groups, with their figure and the others', and figures without their uplinks' effect. Pairs
    divide an uplink at random, so they get their hosts' values from elsewhere, with the usual spread."""
    sign = -1.0 if less_is_better else 1.0
    logs = {pair: sign * math.log(value) for pair, value in figures.items()}
    there = {end for pair in logs for end in pair}
    left = {name: hosts & there for name, hosts in groups.items() if LEAST_APART <= len(hosts & there) < len(there)}
    said: "List[Tuple[str, float, float]]" = []
    while left:
        found = [worse for name, group in left.items() for worse in bad_uplink(logs, name, group, left, margin)]
        if not found:
            break
        worst = max(found, key=lambda worse: worse.others - worse.mine)
        group = left[worst.name]
        left = {name: hosts for name, hosts in left.items() if hosts != group}
        parts = outliers.polish({pair: value for pair, value in logs.items() if not set(pair) & group})
        logs.update({pair: parts.whole + parts.clients.get(pair[0], 0.0) + parts.servers.get(pair[1], 0.0)
                     + max(-parts.noise, min(parts.noise, value - worst.mine)) for pair, value in logs.items()
                     for way in worst.ways if pair[way] in group and pair[1 - way] not in group})
        said.append((worst.words(), math.exp(sign * worst.mine), math.exp(sign * worst.others)))
    return said, {pair: math.exp(sign * value) for pair, value in logs.items()} if said else figures


def bad_hosts(sweep: Sweep, blocks: "Sequence[Block]") -> str:
    """Hosts that are worse as a whole, or gave no result as client or server, in the format of the command that drains them."""
    rows = [str(row[1]).partition(", ") for block in blocks for row in block.rows]
    found = {name for name, _, rest in rows if rest.startswith(("as ", "in all pairs"))}
    known = sweep.results.header.more.get("hosts") or {}
    named = [*(name for name in known if name in found), *sorted(found - known.keys())]
    nodes = dict.fromkeys(str((known.get(name) or {}).get("node") or name.partition(":")[2] or name) for name in named)
    kinds = [engines.split(name)[0] for name in known]
    return (engines.ROWS[kinds[0]].BETWEEN if kinds else "\n").join(nodes) + "\n" * bool(nodes)


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
    of_groups = groups_of(sweep)
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
        uplinks, figures = judge_groups(figures, of_groups, less_is_better, margin)
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
