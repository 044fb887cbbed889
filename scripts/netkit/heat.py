"""Meshes as heat maps, with hosts sorted by group (netreport --mesh --plot). Call python.need("matplotlib") first."""

import re
import statistics
from typing import Any, Dict, Iterable, Set

from netkit.draw import CM, saved, style
from netkit.engines import ROWS
from netkit.mesh import Found, Pair
from netkit.plots import plain
from netkit.units import printable

NARROW = 4.0        # points: names that would be closer than this are left out
SPAN = 2.0          # the colour scale ends at this factor from the median


def panel(ax: Any, figures: "Dict[Pair, float]", dead: "Iterable[Pair]", groups: "Dict[str, Set[str]]", unit: str, colours: str, size: float) -> None:
    import numpy as np
    from matplotlib.colors import LogNorm
    keys = {name: [group for group, hosts in groups.items() if name in hosts] for pair in (*figures, *dead) for name in pair}
    names = sorted(keys, key=lambda name: keys[name])
    cells = np.full([len(names)] * 2, np.nan)
    for (client, server), value in figures.items():
        cells[names.index(client), names.index(server)] = value
    middle = statistics.median(figures.values() or [1.0])
    image = ax.imshow(cells, cmap=colours, norm=LogNorm(middle / SPAN, middle * SPAN), interpolation="nearest")
    ax.grid(False)
    ax.set_facecolor("#dddddd")
    ax.set_xlabel("server" + " (\u00d7: nothing)" * bool(dead))
    ax.set_ylabel("client")
    ax.figure.colorbar(image, ax=ax, shrink=0.7, label=unit, extend="both", ticks=[middle / SPAN, middle, middle * SPAN],
                       format=lambda value, _: plain(value, 4)).minorticks_off()
    shown = [printable(re.sub(rf"^({'|'.join(ROWS)}):", "", name)) for name in names] if size / len(names) > NARROW else []
    ax.set_xticks(range(len(shown)), shown, rotation=90)
    ax.set_yticks(range(len(shown)), shown)
    letters = min(8.0, 0.8 * size / len(names))
    ax.tick_params(length=0, labelsize=letters)
    for client, server in dead:
        ax.text(names.index(server), names.index(client), "\u00d7", ha="center", va="center", fontsize=letters)
    for number in range(1, len(names)):
        if keys[names[number]] != keys[names[number - 1]]:
            ax.axhline(number - 0.5, color="black", linewidth=0.8)
            ax.axvline(number - 0.5, color="black", linewidth=0.8)


def draw(found: Found, groups: "Dict[str, Set[str]]", figure: str, less_is_better: bool, form: str, width: float) -> bytes:
    from matplotlib.figure import Figure
    made = {name: (figures, found.dead.get(name, ())) for name, figures in found.meshes.items() if figures or name in found.dead}
    with style("mesh"):
        paper = Figure(figsize=(width * CM, 0.85 * width * CM * max(1, len(made))), layout="constrained")
        for number, (name, pairs) in enumerate(made.items(), 1):
            ax = paper.add_subplot(len(made), 1, number, title=printable(name))
            panel(ax, *pairs, groups, figure, "RdBu_r" if less_is_better else "RdBu", 0.7 * width * CM * 72)
        return saved(paper, form)
