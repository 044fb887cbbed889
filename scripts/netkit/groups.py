"""Groups of hosts, such as racks (netreport --mesh). A bad uplink affects pairs with other groups, but none within."""

import math
import statistics
from typing import Collection, Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

from netkit import outliers
from netkit.engines import ROWS, split
from netkit.tables import Block, Sweep

LEAST = 2           # hosts in a group, and outside it
Figures = Dict[Tuple[str, str], float]      # by client and server


class Worse(NamedTuple):
    """A group, the affected directions, and the logarithms of its figure and of the others'."""
    name: str
    ways: "Tuple[int, ...]"
    mine: float
    others: float

    def words(self) -> str:
        return ("all pairs between {} and the rest" if len(self.ways) == 2 else
                "all pairs from the rest to {}" if self.ways[0] else "all pairs from {} to the rest").format(self.name)


def of(sweep: Sweep) -> "Dict[str, Set[str]]":
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


def one(logs: Figures, name: str, group: "Set[str]", groups: "Dict[str, Set[str]]", margin: float) -> "Iterator[Worse]":
    """Whether this group is worse. Raises python.MissingModule."""
    least = -math.log1p(-margin / 100)
    rest = {pair: value for pair, value in logs.items() if not set(pair) & group}
    others = {pair: value for pair, value in rest.items() if not any(set(pair) <= hosts for hosts in groups.values() if len(hosts) > 1)} or rest
    inside = [value for pair, value in logs.items() if set(pair) <= group]
    if len({end for pair in rest for end in pair}) < LEAST or len(group) < LEAST:
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
        yield Worse(name, tuple(ways), statistics.median(value for mine in ways.values() for value in mine), usual)


def judge(figures: Figures, groups: "Dict[str, Set[str]]", less_is_better: bool, margin: float) -> "Tuple[List[Tuple[str, float, float]], Figures]":
    """Lines about bad groups, with their figure and the others', and figures without their uplinks' effect. Pairs
    divide an uplink at random, so they get their hosts' values from elsewhere, with the usual spread."""
    sign = -1.0 if less_is_better else 1.0
    logs = {pair: sign * math.log(value) for pair, value in figures.items()}
    there = {end for pair in logs for end in pair}
    left = {name: hosts & there for name, hosts in groups.items() if LEAST <= len(hosts & there) < len(there)}
    said: "List[Tuple[str, float, float]]" = []
    while left:
        found = [worse for name, group in left.items() for worse in one(logs, name, group, left, margin)]
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
    kinds = [split(name)[0] for name in known]
    return (ROWS[kinds[0]].BETWEEN if kinds else "\n").join(nodes) + "\n" * bool(nodes)
