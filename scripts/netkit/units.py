"""Parses and formats rates, times and points."""

import json
import re
from typing import Any, Dict, Iterator, Optional, Tuple

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
RATE = re.compile(rf"({NUMBER})(k|m|g|)(bit)?")
TIME = re.compile(rf"({NUMBER})(us|ms|s|m|h)")
RATE_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def rate(given: Any, unit: bool = False) -> Optional[float]:
    """Parse a rate such as 100000000, "2.5gbit" or "500k" into bits/s; else None. unit: text must end in "bit"."""
    if isinstance(given, (int, float)):
        return float(given) if given > 0 and not isinstance(given, bool) else None
    found = RATE.fullmatch(str(given).lower())
    if not found or unit and not found[3]:
        return None
    return round(float(found[1]) * RATE_UNITS[found[2]], 3) or None


def seconds(given: Any, unit: bool = False) -> Optional[float]:
    """Parse a time such as 0.01, "10", "50us" or "1m30s" into seconds; else None. unit: text needs one, except "0"."""
    if isinstance(given, (int, float)):
        return float(given) if given >= 0 and not isinstance(given, bool) else None
    text = str(given)
    if re.fullmatch("0" if unit else NUMBER, text):
        return float(text)
    if not re.fullmatch(rf"(?:{TIME.pattern})+", text):
        return None
    return round(sum(float(number) * TIME_UNITS[name] for number, name in TIME.findall(text)), 9)


def printable(text: str, but: str = "") -> str:
    """Make text from anybody printable: "?" for control, bidirectional, invisible or bad characters, " " for tabs."""
    if text.isprintable():
        return text
    return re.sub("[^ -~]", lambda one: one[0] if one[0].isprintable() or one[0] in but + "\u00a0" else " " if one[0] == "\t" else "?", text)


def show_figure(value: float) -> str:
    """Five significant digits, without exponent."""
    return f"{value:.5g}" if abs(value) < 99999.5 else f"{value:.0f}"


def show_rate(bits: float) -> str:
    """Such as "94.1 Mbit/s"."""
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits >= size:
            break
    return f"{show_figure(bits / size)} {unit}"


def show_time(time: float) -> str:
    """Such as "250 us", "5 ms", "2 s": a single unit, for short times."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if time >= size:
            return f"{time / size:.6g} {unit}"
    return f"{time * 1e6:.6g} us" if time else "0"


def show_duration(time: float) -> str:
    """Such as "12 s", "1 min 05 s", "2 h 10 min": whole seconds, for waiting times."""
    whole = int(time + 0.5)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {whole % 60:02} s" if minutes else f"{whole} s"


def flatten(value: Any, name: str = "", between: str = " ") -> "Iterator[Tuple[str, Any]]":
    """The single values and lists of a nested object, with their full names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(inner, f"{name}{between}{key}" if name else str(key), between)
    elif value is not None:
        yield name, value


def show_value(value: Any) -> str:
    """A value of an axis for people to read."""
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "on" if value else "off"
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


def show_point(point: "Dict[str, Any]") -> str:
    """Such as "test=TCP_STREAM size=64"."""
    return " ".join(f"{name}={show_value(value)}" for name, value in point.items()) or "the point"
