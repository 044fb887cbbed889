"""Rates, times and points as people write and read them: the one place for it."""

import json
import re
from typing import Any, Dict, Iterator, Optional, Tuple

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
RATE = re.compile(rf"({NUMBER})(k|m|g|)(bit)?")
TIME = re.compile(rf"({NUMBER})(us|ms|s|m|h)")
RATE_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def rate(given: Any, unit: bool = False) -> Optional[float]:
    """Bits a second of 100000000, "100mbit", "2.5gbit", "500k"; None for "none" and what is no rate.
    unit: a text has to end in "bit"."""
    if isinstance(given, (int, float)):
        return float(given) if given > 0 and not isinstance(given, bool) else None
    found = RATE.fullmatch(str(given).lower())
    if not found or unit and not found[3]:
        return None
    return round(float(found[1]) * RATE_UNITS[found[2]], 3) or None


def seconds(given: Any, unit: bool = False) -> Optional[float]:
    """Seconds of 0.01, "10", "10ms", "50us", "1m30s", "1h"; None for what is no time.
    unit: a text has to have units, but for "0"."""
    if isinstance(given, (int, float)):
        return float(given) if given >= 0 and not isinstance(given, bool) else None
    text = str(given)
    if re.fullmatch("0" if unit else NUMBER, text):
        return float(text)
    if not re.fullmatch(rf"(?:{TIME.pattern})+", text):
        return None
    return round(sum(float(number) * TIME_UNITS[name] for number, name in TIME.findall(text)), 9)


def printable(text: str, but: str = "") -> str:
    """Without what a terminal obeys, what turns or hides text, and what UTF-8 cannot have: a file may be anybody's. A tab is a blank."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in but + "\u00a0" else " " if one == "\t" else "?" for one in text)


def show_figure(value: float) -> str:
    """To five digits, without a power of ten."""
    return f"{value:.5g}" if abs(value) < 1e5 else f"{value:.0f}"


def show_rate(bits: float) -> str:
    """"94.1 Mbit/s"."""
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits >= size:
            break
    return f"{bits / size:.5g} {unit}"


def show_time(time: float) -> str:
    """"250 us", "5 ms", "2 s": one unit, for what a link or a machine takes."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if time >= size:
            return f"{time / size:.6g} {unit}"
    return f"{time * 1e6:.6g} us" if time else "0"


def show_duration(time: float) -> str:
    """"12 s", "1 min 05 s", "2 h 10 min": whole seconds, for what somebody waits for."""
    whole = int(time + 0.5)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {whole % 60:02} s" if minutes else f"{whole} s"


def flatten(value: Any, name: str = "", between: str = " ") -> "Iterator[Tuple[str, Any]]":
    """The single values of an object, and its lists, with the names that lead to them."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(inner, f"{name}{between}{key}" if name else str(key), between)
    elif value is not None:
        yield name, value


def show_value(value: Any) -> str:
    """A value of an axis as people read it."""
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "on" if value else "off"
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


def show_point(point: "Dict[str, Any]") -> str:
    """"test=TCP_STREAM size=64"."""
    return " ".join(f"{name}={show_value(value)}" for name, value in point.items()) or "the point"
