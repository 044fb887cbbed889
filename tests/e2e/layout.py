"""Compares what netperf prints with the classic layouts in tests/golden.

A layout file holds the lines of one test as printf templates with names:

    %(send_buf)-6d %(rate)7.2f

Everything else in a line is literal, blanks at its end included. The lines come in parts, each
under a line "=== name"; which parts a run prints depends on -v, -P and the unit alone:

    banner            the first line
    heads             the column heads, empty line included
    heads in bytes    the same where a request/response test counts bytes (-f m and the like)
    row -v 0          the single figure
    rows              the result rows of -v 1
    more              what -v 2 adds

A number fits when printing it again with its template gives the very same characters, so width,
alignment and decimals are compared without the digits mattering.
"""

import re
from pathlib import Path
from typing import Dict, List, NamedTuple, Union

GOLDEN = Path(__file__).resolve().parents[1] / "golden"

Value = Union[int, float, str]
Fields = Dict[str, Value]
Parts = Dict[str, List[str]]

FIELD = re.compile(r"%\((?P<name>\w+)\)(?P<spec>-?[\d.]*(?P<kind>[dfgs]))")
NUMBER = re.compile(r" *(?P<digits>-?\d+(?:\.\d+)?(?:e[+-]\d+)?) *")


class Misfit(Exception):
    """The output has another layout; the text says where."""


class Style(NamedTuple):
    """The options that decide which parts of a layout are printed."""
    verbosity: int = 1
    heads: bool = True
    in_bytes: bool = False  # a unit other than the test's own


def load(test: str) -> Parts:
    """The layout of a test, by its name as -t takes it."""
    parts: Parts = {}
    for line in (GOLDEN / f"{test.lower()}.txt").read_text().splitlines():
        if line.startswith("=== "):
            lines = parts.setdefault(line[4:], [])
        else:
            lines.append(line)
    return parts


def expected(parts: Parts, style: Style) -> List[str]:
    """The templates of all lines that a run in this style prints."""
    lines: List[str] = []
    if style.heads:
        lines += parts["banner"]
    if style.heads and style.verbosity in (1, 2):
        lines += parts.get("heads in bytes" if style.in_bytes else "heads", parts["heads"])
    if style.verbosity == 0:
        lines += parts["row -v 0"]
    elif style.verbosity in (1, 2):
        lines += parts["rows"]
    if style.verbosity >= 2:
        lines += parts.get("more", [])
    return lines


def match(templates: List[str], text: str) -> Fields:
    """The values of all fields, by name. Raises Misfit."""
    if text and not text.endswith("\n"):
        raise Misfit("the last line has no newline")
    lines = text.splitlines()
    if len(lines) != len(templates):
        raise Misfit(f"{len(lines)} lines instead of {len(templates)}: {text!r}")
    fields: Fields = {}
    for number, (template, line) in enumerate(zip(templates, lines), 1):
        try:
            fields.update(match_line(template, line))
        except Misfit as misfit:
            raise Misfit(f"line {number}: {misfit}: {line!r}, layout {template!r}") from None
    return fields


def match_line(template: str, line: str) -> Fields:
    """The fields of one line. Raises Misfit."""
    fields: Fields = {}
    at = done = 0
    for field in FIELD.finditer(template):
        at = _literal(template[done:field.start()], line, at)
        done = field.end()
        following = FIELD.split(template[done:], maxsplit=1)[0]
        text = _text(line, at, following) if field["kind"] == "s" else _number(field, line, at)
        fields[field["name"]] = _value(field["kind"], text)
        at += len(text)
    if line[at:] != template[done:]:
        raise Misfit(f"ends in {line[at:]!r} instead of {template[done:]!r}")
    return fields


def _literal(literal: str, line: str, at: int) -> int:
    if not line.startswith(literal, at):
        raise Misfit(f"{literal!r} is not at column {at + 1}")
    return at + len(literal)


def _text(line: str, at: int, following: str) -> str:
    end = line.find(following, at) if following else len(line)
    if end < 0:
        raise Misfit(f"{following!r} is not behind column {at + 1}")
    return line[at:end]


def _number(field: "re.Match[str]", line: str, at: int) -> str:
    found = NUMBER.match(line, at)
    if not found:
        raise Misfit(f"no number for {field['name']} at column {at + 1}")
    printed = f"%{field['spec']}" % _value(field["kind"], found["digits"])
    if not line.startswith(printed, at):
        raise Misfit(f"{field['name']} at column {at + 1} is not printed with %{field['spec']}")
    return printed


def _value(kind: str, text: str) -> Value:
    if kind == "s":
        return text
    try:
        return int(text) if kind == "d" else float(text)
    except ValueError:
        raise Misfit(f"{text!r} is not what %{kind} prints") from None
