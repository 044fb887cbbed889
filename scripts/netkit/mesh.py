"""Which host or pair of a mesh is worse than the others (netreport --mesh): of a sweep over clients and servers. The logarithm
of a figure is taken to be the sum of what all have, what a client adds and what a server adds, by Tukey's median polish; what
is left is the pair's."""

import math
import statistics
from typing import Dict, Hashable, Iterator, List, NamedTuple, Tuple, TypeVar, Union

from netkit import far
from netkit.tables import Block, Sweep, Words
from netkit.units import show_value

MARGIN = 10.0       # percent: less does not matter
SCORE = 5         # of modified z-scores (Iglewicz and Hoaglin 1993), from where one is an outlier
LEAST_HOSTS = 5     # of fewer nobody can say which one differs
ROUNDS = 20
HEAD = ["at", "what is worse", "figure", "others", "by (%)"]
Key = TypeVar("Key", bound=Hashable)
Pair = Tuple[str, str]      # client and server


class Parts(NamedTuple):
    """Logarithms: of all, by client, by server, and what is left of a pair."""
    whole: float
    clients: "Dict[str, float]"
    servers: "Dict[str, float]"
    pairs: "Dict[Pair, float]"


def polish(figures: "Dict[Pair, float]") -> Parts:
    left = {pair: math.log(value) for pair, value in figures.items()}
    effects: "Tuple[Dict[str, float], Dict[str, float]]" = ({pair[0]: 0.0 for pair in left}, {pair[1]: 0.0 for pair in left})
    whole = 0.0
    for _ in range(ROUNDS):
        for end, known in enumerate(effects):
            for name in known:
                middle = statistics.median(value for pair, value in left.items() if pair[end] == name)
                known[name] += middle
                left.update({pair: value - middle for pair, value in left.items() if pair[end] == name})
            middle = statistics.median(known.values())
            whole += middle
            known.update({name: value - middle for name, value in known.items()})
    return Parts(whole, *effects, left)


def spread(values: "Dict[Key, float]") -> float:
    """The standard deviation that the median distance from the median is of."""
    middle = statistics.median(values.values())
    return statistics.median(abs(value - middle) for value in values.values()) / 0.6745


def outliers(values: "Dict[Key, float]", usual: float, margin: float) -> "Dict[Key, float]":
    """Those that lie below the rest: by the margin in percent, and by SCORE times what is usual."""
    middle = statistics.median(values.values())
    least = max(-math.log1p(-margin / 100), SCORE * usual)
    return {key: value for key, value in values.items() if middle - value >= least}


def worse(figures: "Dict[Pair, float]", less_is_better: bool, margin: float = MARGIN) -> "Iterator[Tuple[str, float, float]]":
    """In words, its figure, and what the others have: hosts first, then pairs."""
    sign = -1.0 if less_is_better else 1.0
    parts = polish({pair: value ** sign for pair, value in figures.items()})
    # The fit makes as many of what is left 0 as it has parts: the median distance is that of the others.
    fitted = len(parts.clients) + len(parts.servers) - 1
    noise = statistics.median(sorted(map(abs, parts.pairs.values()))[fitted:]) / 0.6745
    each = 1.25 * noise * math.sqrt(len(parts.clients) / len(figures))     # of a median
    clients, servers = (outliers(known, max(spread(known), each), margin) for known in (parts.clients, parts.servers))
    usual = math.exp(sign * parts.whole)
    for name in sorted({*clients, *servers}):
        ends = [(name in clients, "client"), (name in servers, "server")]
        added = max((known[name] for known in (clients, servers) if name in known), key=abs)
        yield f"{name}, as {' and '.join(end for there, end in ends if there)}", math.exp(sign * (parts.whole + added)), usual
    pairs = outliers(parts.pairs, noise, margin)
    for client, server in sorted(pairs):
        both = (server, client) in pairs
        if not both or client < server:
            value = parts.whole + parts.clients[client] + parts.servers[server]
            yield (f"{client} and {server}, both ways" if both else f"{client} to {server}",
                   math.exp(sign * (value + pairs[client, server])), math.exp(sign * value))


def hosts(figures: "Dict[Pair, float]") -> int:
    return len({name for pair in figures for name in pair})


def silent(pairs: "Dict[Pair, str]", figures: "Dict[Pair, float]") -> "Iterator[str]":
    """Hosts of which all pairs gave nothing, then the other pairs that did, each with a reason."""
    names = [name for name in sorted({name for pair in pairs for name in pair})
             if sum(name in pair for pair in pairs) > 1 and not any(name in pair for pair in figures)]
    for name in names:
        yield f"{name}, in all pairs: {next(why for pair, why in pairs.items() if name in pair)}"
    for pair, why in sorted(pairs.items()):
        if not set(pair) & set(names):
            yield f"{' to '.join(pair)}: {why}"


def block(sweep: Sweep, figure: str, less_is_better: bool, margin: float = MARGIN) -> Block:
    """Of each test and whatever else varies, of a sweep with the axes client and server."""
    meshes: "Dict[str, Dict[Pair, float]]" = {}
    dead: "Dict[str, Dict[Pair, str]]" = {}
    notes = [f"worse by {margin:g} % and a modified z-score of {SCORE:g} (Iglewicz and Hoaglin), after median polish of logarithms"]
    varying = [name for name in sweep.varying() if name not in ("client", "server")]
    for cell in sweep.cells.values():
        values = [run.figure(figure) for run in cell.good()]
        found = [value for value in values if value is not None and value > 0]
        nothing = [run for run in cell.runs if not run.excluded and not (
            run.ok and run.figure(figure) is not None and (less_is_better or run.figure(figure)))]
        name = " ".join(f"{one}={show_value(cell.point.get(one))}" for one in varying) or "all"
        client, server = (far.named(show_value(cell.point[end])) for end in ("client", "server"))
        meshes.setdefault(name, {})
        if len(nothing) > len(found):
            dead.setdefault(name, {})[client, server] = nothing[-1].reason() or "0"
        elif found:
            meshes[name][client, server] = statistics.median(found)
            notes += [f"{name}: {client} to {server}: {len(nothing)} of {len(cell.runs)} runs gave nothing"] * bool(nothing)
    rows: "List[List[Union[str, Words]]]" = []
    for name, figures in meshes.items():
        rows += [[name, what, "nothing", "", ""] for what in silent(dead.get(name, {}), figures)]
        if hosts(figures) < LEAST_HOSTS:
            notes.append(f"{name}: fewer than {LEAST_HOSTS} hosts: nobody can say which one differs")
            continue
        for what, mine, others in worse(figures, less_is_better, margin):
            rows.append([name, what, f"{mine:.4g}", f"{others:.4g}", f"{100 * (mine / others - 1):+.0f}"])
        notes += [] if any(row[0] == name for row in rows) else [f"{name}: nothing is worse than the rest"]
    return Block(f"{figure}, of hosts and pairs", HEAD, rows, notes, left=(0, 1))
