"""The figures of plots.py to hover over and to zoom into: a specification of Vega's a panel, and Vega
itself as Debian's libjs-vega has it, in parts, as one script that a page can hold."""

import json
import os
import re
from typing import Any, Dict, List, Optional

from netkit.plots import GRID, MUTED, TEXT, Figure, Panel

HOME = "/usr/share/javascript/vega"
PACKAGE = "libjs-vega"
ROOTS = ("vega-view", "vega-parser", "vega-transforms", "vega-view-transforms", "vega-encode")
FILES = {"vega-selections": "vega-selection"}       # parts whose file goes by another name
PAPER = "#ffffff"
WIDTH, HEIGHT, LOW_HEIGHT = 560, 300, 170
COLOUR, INSIDE = {"scale": "colour", "field": "line"}, {"scale": "inside", "field": "line"}
MOST_TICKS = 60     # that stand at measured values

Spec = Dict[str, Any]


# --- the library --------------------------------------------------------------------------

def library(home: str = HOME) -> Optional[str]:
    """The parts of Vega that its view and parser ask for, and `vega`, which has both; None where one is
    not installed."""
    parts: "Dict[str, str]" = {}
    wanted = list(ROOTS)
    while wanted:
        name = wanted.pop()
        if name in parts:
            continue
        try:
            with open(os.path.join(home, FILES.get(name, name) + ".min.js"), encoding="utf-8") as file:
                text = re.sub(r"(?m)^//# sourceMappingURL=.*$", "", file.read())
        except OSError:
            return None
        parts[name] = text.replace("</script", "<\\/script")
        wanted += re.findall(r'require\("(vega-[a-z-]+)"\)', text)
    made = "".join(f'parts["{name}"] = function (exports, require, module) {{{text}\n}};\n'
                   for name, text in parts.items())
    return f"""var vega = (function () {{
var parts = {{}}, made = {{}};
{made}function require(name) {{
  if (!made[name]) {{ made[name] = {{exports: {{}}}}; parts[name](made[name].exports, require, made[name]); }}
  return made[name].exports;
}}
["vega-transforms", "vega-view-transforms", "vega-encode"].forEach(function (name) {{
  Object.assign(require("vega-dataflow").transforms, require(name));
}});
return {{View: require("vega-view").View, parse: require("vega-parser").parse}};
}})();
"""


# --- the specifications -------------------------------------------------------------------

def specs(figure: Figure) -> "List[List[Spec]]":
    """One a panel, in the stacks of the figure."""
    return [[bars(panel) if panel.rows else spec(panel, stack.index(panel)) for panel in stack]
            for stack in figure.stacks]


def rows_of(panel: Panel, kinds: "List[str]") -> "List[Dict[str, Any]]":
    """The marks of some lines, which are told by their number. Gaps have no y."""
    return [{"line": number, "x": mark.x, **{name: value for name, value in {
        "y": mark.y if mark.y == mark.y else None, "words": mark.words, "low": mark.low, "high": mark.high,
        "from": mark.box and mark.box[0], "to": mark.box and mark.box[1]}.items() if value is not None}}
            for number, line in enumerate(panel.lines) if line.kind in kinds for mark in line.marks]


def looks(panel: Panel) -> "List[Spec]":
    """What a line looks like, by its number."""
    each = {"colour": [line.colour for line in panel.lines],
            "inside": [PAPER if line.dash else line.colour for line in panel.lines],
            "shape": [line.marker or "circle" for line in panel.lines],
            "dash": [list(line.dash) for line in panel.lines],
            "label": [line.label for line in panel.lines]}
    return [{"name": name, "type": "ordinal", "domain": list(range(len(panel.lines))), "range": values}
            for name, values in each.items()]


def legend(panel: Panel) -> "List[Spec]":
    named = [number for number, line in enumerate(panel.lines) if line.kind == "data" and line.label]
    return [{"stroke": "colour", "fill": "inside", "shape": "shape", "values": named, "encode": {
        "labels": {"update": {"text": {"scale": "label", "field": "value"}}}}}] if len(named) > 1 else []


def spec(panel: Panel, below: int) -> Spec:
    """Lines over an axis or over seconds, with the box that zooms."""
    scale = panel.x
    xs = [mark.x for line in panel.lines for mark in line.marks] or [0.0, 1.0]
    domain = scale.limits() if scale else (min(xs), max(xs))
    joined = scale is None or scale.numeric
    return {
        **frame(panel, HEIGHT if not below else LOW_HEIGHT),
        "data": [{"name": "marks", "values": rows_of(panel, ["data"])},
                 {"name": "steps", "values": rows_of(panel, ["step"])},
                 {"name": "bounds", "values": rows_of(panel, ["ceiling", "mean"])},
                 {"name": "worst", "values": rows_of(panel, ["worst"])}],
        "signals": zooming(list(domain), list(panel.limits())),
        "scales": [
            {"name": "x", "type": "log" if scale and scale.log else "linear", "range": "width",
             "domain": {"signal": "zx"}, "zero": False, "nice": False,
             **({"base": 2} if scale and scale.log else {})},
            {"name": "y", "type": "log" if panel.log else "linear", "range": "height",
             "domain": {"signal": "zy"}, "zero": False, "nice": False},
            *looks(panel)],
        "axes": [x_axis(panel), {"orient": "left", "scale": "y", "title": panel.words, "grid": True,
                                 "tickCount": 6, "domain": False, "ticks": False, "gridColor": GRID}],
        "legends": legend(panel),
        "marks": [{"type": "group", "clip": True, "encode": {"update": {
            "width": {"signal": "width"}, "height": {"signal": "height"}}},
            "marks": [*spread_marks(joined), *line_marks(joined), *over_marks(joined), box_mark()]}],
    }


def frame(panel: Panel, height: int) -> Spec:
    title = {"text": panel.title, "anchor": "start", "color": TEXT, "fontSize": 13}
    if panel.note:
        title.update({"subtitle": panel.note, "subtitleColor": MUTED})
    words = {"labelColor": MUTED, "titleColor": MUTED, "tickColor": MUTED, "domainColor": MUTED,
             "titleFontWeight": "normal"}
    return {"$schema": "vega/v5", "width": WIDTH, "height": height, "padding": 5,
            "autosize": {"type": "pad"},
            "config": {"axis": words, "legend": {"labelColor": TEXT, "labelLimit": 300}},
            **({"title": title} if panel.title or panel.note else {})}


def x_axis(panel: Panel) -> Spec:
    """Ticks at the values that were measured, until one zooms in."""
    axis: Spec = {"orient": "bottom", "scale": "x", "title": panel.x.title if panel.x else "seconds",
                  "labelOverlap": "greedy", "labelSeparation": 6, "format": "~g"}
    if panel.x and not panel.x.numeric:
        names = {f"{place:g}": label for place, label in zip(panel.x.places, panel.x.labels)}
        return {**axis, "values": panel.x.places, "ticks": False, "encode": {"labels": {"update": {
            "text": {"signal": f"({json.dumps(names)})[datum.value]"}}}}}
    if panel.x and len(panel.x.places) <= MOST_TICKS:
        low, high = panel.x.limits()
        axis["values"] = {"signal": f"zx[0] == {low!r} && zx[1] == {high!r} ? "
                          f"{json.dumps(panel.x.places)} : null"}
    if panel.x and any(label.endswith(" KiB") for label in panel.x.labels):
        axis["encode"] = {"labels": {"update": {"text": {
            "signal": "format(datum.value / 1024, '.4~g') + ' KiB'"}}}}
    return axis


def zooming(x: "List[float]", y: "List[float]") -> "List[Spec]":
    """A box that is drawn by the mouse becomes the limits of both axes; a double click gives back all.
    The box is kept in values, not in pixels: an end of it that comes again changes nothing."""
    signals: "List[Spec]" = [{"name": "drawing", "value": False, "on": [
        {"events": "mousedown", "update": "true"}, {"events": "window:mouseup", "update": "false"}]}]
    for name, whole, most, place in (("x", x, "width", "x()"), ("y", y, "height", "y()")):
        inside = f"invert('{name}', clamp({place}, 0, {most}))"
        signals += [
            {"name": f"box_{name}", "value": [whole[0], whole[0]], "on": [
                {"events": "mousedown", "update": f"[{inside}, {inside}]"},
                {"events": "[mousedown, window:mouseup] > window:mousemove!",
                 "update": f"[box_{name}[0], {inside}]"}]},
            {"name": f"z{name}", "value": whole, "on": [
                {"events": "window:mouseup", "update": f"boxed ? [min(box_{name}[0], box_{name}[1]), "
                 f"max(box_{name}[0], box_{name}[1])] : z{name}"},
                {"events": "dblclick", "update": f"[{whole[0]!r}, {whole[1]!r}]"}]}]
    far = " && ".join(f"abs(scale('{name}', box_{name}[0]) - scale('{name}', box_{name}[1])) > 6"
                      for name in "xy")
    return signals + [{"name": "boxed", "update": far}]


def place(channel: str, field: str) -> Spec:
    return {channel: {"scale": channel[0], "field": field}}


def each_line(data: str, marks: "List[Spec]") -> Spec:
    return {"type": "group", "from": {"facet": {"data": data, "name": f"one_{data}", "groupby": "line"}},
            "marks": marks}


def spread_marks(joined: bool) -> "List[Spec]":
    """A band along a line; a bar for each mark where nothing lies between."""
    area = {"type": "area", "from": {"data": "one_marks"}, "encode": {"update": {
        **place("x", "x"), **place("y", "low"), **place("y2", "high"), "fill": COLOUR,
        "fillOpacity": {"value": 0.18}, "defined": {"signal": "isValid(datum.low)"}}}}
    bar = {"type": "rule", "from": {"data": "marks"}, "encode": {"update": {
        **place("x", "x"), **place("y", "low"), **place("y2", "high"), "stroke": COLOUR,
        "opacity": {"signal": "isValid(datum.low) ? 1 : 0"}}}}
    box = {"type": "rule", "from": {"data": "marks"}, "encode": {"update": {
        **place("x", "x"), **place("y", "from"), **place("y2", "to"), "stroke": COLOUR,
        "strokeWidth": {"value": 6}, "opacity": {"signal": "isValid(datum.from) ? 0.4 : 0"}}}}
    return [each_line("marks", [area]) if joined else bar, box]


def line_marks(joined: bool) -> "List[Spec]":
    """Lines with their markers; gaps are crosses at the bottom."""
    look = {**place("x", "x"), **place("y", "y"), "tooltip": {"field": "words"}}
    drawn: Spec = {"type": "line", "from": {"data": "one_marks"}, "encode": {"update": {
        **place("x", "x"), **place("y", "y"), "stroke": COLOUR, "strokeWidth": {"value": 1.8},
        "strokeDash": {"scale": "dash", "field": "line"}, "defined": {"signal": "isValid(datum.y)"}}}}
    marker: Spec = {"type": "symbol", "from": {"data": "marks"}, "encode": {
        "update": {**look, "shape": {"scale": "shape", "field": "line"}, "stroke": COLOUR,
                   "fill": INSIDE, "size": {"value": 46},
                   "opacity": {"signal": "isValid(datum.y) ? 1 : 0"}}, "hover": {"size": {"value": 130}}}}
    gap: Spec = {"type": "text", "from": {"data": "marks"}, "encode": {"update": {
        **place("x", "x"), "y": {"signal": "height - 3"}, "text": {"value": "\u00d7"},
        "align": {"value": "center"}, "fill": COLOUR, "fontSize": {"value": 15},
        "tooltip": {"field": "words"}, "opacity": {"signal": "isValid(datum.y) ? 0 : 1"}}}}
    step: Spec = {"type": "line", "from": {"data": "one_steps"}, "encode": {"update": {
        **place("x", "x"), **place("y", "y"), "stroke": COLOUR,
        "interpolate": {"value": "step-before"}, "strokeWidth": {"value": 1}}}}
    dot: Spec = {"type": "symbol", "from": {"data": "steps"}, "encode": {"update": {
        **look, "fill": COLOUR, "opacity": {"value": 0}},
        "hover": {"opacity": {"value": 1}}}}
    return [*([each_line("marks", [drawn])] if joined else []), each_line("steps", [step]), dot, marker, gap]


def over_marks(joined: bool) -> "List[Spec]":
    """Ceilings and means, dashed over the data; short rules where x is no number."""
    shown = {**place("x", "x"), **place("y", "y"), "stroke": {"value": TEXT}}
    along: Spec = {"type": "line", "from": {"data": "one_bounds"}, "interactive": False, "encode": {
        "update": {**shown, "strokeDash": {"value": [4, 3]}, "strokeWidth": {"value": 1.2}}}}
    short: Spec = {"type": "rule", "from": {"data": "bounds"}, "encode": {"update": {
        "x": {"signal": "scale('x', datum.x - 0.4)"}, "x2": {"signal": "scale('x', datum.x + 0.4)"},
        "y": shown["y"], "stroke": shown["stroke"], "tooltip": {"field": "words"}}}}
    dot: Spec = {"type": "symbol", "from": {"data": "bounds"}, "encode": {"update": {
        **shown, "fill": {"value": TEXT}, "size": {"value": 40}, "tooltip": {"field": "words"},
        "opacity": {"value": 0}}, "hover": {"opacity": {"value": 1}}}}
    worst: Spec = {"type": "line", "from": {"data": "worst"}, "encode": {"update": {
        **place("x", "x"), **place("y", "y"), "stroke": COLOUR, "strokeWidth": {"value": 4},
        "tooltip": {"field": "words"}}}}
    return [each_line("bounds", [along]) if joined else short, dot, worst]


def box_mark() -> Spec:
    return {"type": "rect", "interactive": False, "encode": {"update": {
        **{key: {"signal": f"scale('{key[0]}', box_{key[0]}[{int(key[1:] or 1) - 1}])"}
           for key in ("x", "x2", "y", "y2")},
        "fill": {"value": MUTED}, "fillOpacity": {"signal": "drawing ? 0.2 : 0"}}}}


def bars(panel: Panel) -> Spec:
    """Lying bars with their ceilings; nothing to zoom into."""
    row = {"y": {"scale": "y", "field": "x"}, "tooltip": {"field": "words"}}
    shown = {"signal": "scale('y', datum.x) + bandwidth('y') / 2"}
    return {
        **frame(panel, 30 * len(panel.rows)),
        "data": [{"name": "bars", "values": rows_of(panel, ["bar"])},
                 {"name": "bounds", "values": rows_of(panel, ["ceiling"])}],
        "scales": [{"name": "x", "type": "linear", "range": "width",
                    "domain": [0, panel.limits()[1] * 1.3]},
                   {"name": "y", "type": "band", "range": "height", "padding": 0.3,
                    "domain": list(range(len(panel.rows)))}, *looks(panel)],
        "axes": [{"orient": "bottom", "scale": "x", "title": panel.words, "tickCount": 6},
                 {"orient": "left", "scale": "y", "domain": False, "ticks": False, "encode": {"labels": {
                     "update": {"text": {"signal": f"{json.dumps(panel.rows)}[datum.value]"}}}}}],
        "marks": [
            {"type": "rect", "from": {"data": "bars"}, "encode": {"update": {
                **row, "height": {"scale": "y", "band": 1}, "x": {"scale": "x", "value": 0},
                **place("x2", "y"), "fill": COLOUR}}},
            {"type": "rule", "from": {"data": "bars"}, "encode": {"update": {
                **place("x", "low"), **place("x2", "high"), "y": shown, "stroke": {"value": TEXT},
                "opacity": {"signal": "isValid(datum.low) ? 1 : 0"}}}},
            {"type": "rule", "from": {"data": "bounds"}, "encode": {"update": {
                **row, **place("x", "y"), "strokeWidth": {"value": 2.5}, "stroke": {"value": TEXT},
                "y2": {"signal": "scale('y', datum.x) + bandwidth('y')"}}}},
            {"type": "text", "from": {"data": "bars"}, "encode": {"update": {
                **place("x", "y"), "dx": {"value": 6}, "y": shown, "baseline": {"value": "middle"},
                "text": {"scale": "label", "field": "line"}, "fill": {"value": TEXT}}}}]}
