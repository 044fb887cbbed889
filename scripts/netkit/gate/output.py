"""What a gate has to say: as JSON lines, which are read again, too; as text, KTAP and JUnit XML; while it
goes on; and the criteria, which stand in a file of their own. doc/gate.md has the formats."""

import dataclasses
import json
import math
import os
import sys
import typing
from typing import Any, BinaryIO, Dict, Iterator, List, Sequence, Tuple, Union

from .model import (GATE_SCHEMA, SLOT_SCHEMA, VERDICT_SCHEMA, VERDICTS, A, B, Gate, GateError, Judgement,
                    Slot)

END_SCHEMA = "plumbline-gate-end/1"     # the last line of a gate that ended in order
HEADER = ("started", "command", "environment", "confidence", "budget", "points")
ENDING = ("seconds", "learned", "notes", "over")


# --- JSON lines ---------------------------------------------------------------------------

def plain(value: Any) -> Any:
    """A value as JSON has it: what is not finite was not measured."""
    if dataclasses.is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Writer:
    """A view that writes a gate's file: a header, a line a slot as it ends, the judgements. "-" is
    standard output. The evidence of slots, most of the bytes, only if it is wanted."""

    def __init__(self, path: str, evidence: bool = False, overwrite: bool = False) -> None:
        self.path, self._evidence = path, evidence
        try:
            self._file: BinaryIO = sys.stdout.buffer if path == "-" else open(
                path, "wb" if overwrite else "xb")
        except FileExistsError:
            raise GateError(f"{path}: is there already: another --output writes elsewhere") from None
        except OSError as fault:
            raise GateError(f"{path}: {fault.strerror}") from None

    def begin(self, gate: Gate) -> None:
        self._line(GATE_SCHEMA, {name: getattr(gate, name) for name in HEADER})

    def slot(self, slot: Slot, gate: Gate, judgements: "Sequence[Judgement]") -> None:
        self._line(SLOT_SCHEMA, slot if self._evidence else dataclasses.replace(slot, evidence={}))

    def end(self, gate: Gate) -> None:
        for judgement in gate.judgements:
            self._line(VERDICT_SCHEMA, judgement)
        self._line(END_SCHEMA, {name: getattr(gate, name) for name in ENDING})
        if self.path != "-":
            self._file.close()

    def _line(self, schema: str, value: Any) -> None:
        """When this returns the line is on the disk."""
        text = json.dumps({"schema": schema, **plain(value)}, ensure_ascii=False, allow_nan=False)
        try:
            self._file.write(text.encode("utf-8", "backslashreplace") + b"\n")
            self._file.flush()
            if self.path != "-":
                os.fsync(self._file.fileno())
        except OSError as fault:
            if self.path == "-":
                raise
            raise GateError(f"{self.path}: {fault.strerror}") from None


def shaped(value: Any, kind: Any, where: str) -> Any:
    """A value of JSON as the type of a member has it. Raises GateError."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is Union:                 # Optional: null has been seen to
        return shaped(value, inside[0], where)
    if kind is Any:
        return value
    if dataclasses.is_dataclass(kind):
        return record(kind, value, where)
    if origin is dict and isinstance(value, dict):
        return {name: shaped(one, inside[1], f"{where}.{name}") for name, one in value.items()
                if one is not None or inside[1] is Any}
    if origin in (list, tuple) and isinstance(value, list):
        kinds = inside if origin is tuple and Ellipsis not in inside else inside[:1] * len(value)
        if len(kinds) == len(value):
            return origin(shaped(one, of, where) for one, of in zip(value, kinds))
    if kind is float and type(value) in (int, float):
        return float(value)
    if type(value) is kind:
        return value
    words = {dict: "an object", list: "a list", tuple: "a list", float: "a number", int: "a whole number",
             str: "a text", bool: "true or false"}
    raise GateError(f"{where}: {json.dumps(value)[:40]} is not {words[origin or kind]} as it should be")


def record(kind: Any, known: Any, where: str) -> Any:
    """A dataclass of the members of an object: what it does not know is let pass, null is as if it were
    not there."""
    if not isinstance(known, dict):
        raise GateError(f"{where}: not an object")
    types, values = typing.get_type_hints(kind), {}
    for one in dataclasses.fields(kind):
        if known.get(one.name) is not None:
            values[one.name] = shaped(known[one.name], types[one.name], f"{where}: {one.name}")
        elif one.default is one.default_factory is dataclasses.MISSING:
            raise GateError(f"{where}: no {one.name}")
    return kind(**values)


def one_of(name: str, choices: "Sequence[str]", known: "Dict[str, Any]", where: str) -> "Dict[str, Any]":
    if known.get(name) not in choices:
        raise GateError(f"{where}: {name}: {json.dumps(known.get(name))} is none of {', '.join(choices)}")
    return known


def objects(data: bytes, path: str) -> "Iterator[Tuple[str, Dict[str, Any]]]":
    """The lines of a file with their places. What a crash left of a last line is left out."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        where = f"{path}: line {number}"
        try:
            known = json.loads(line) if line.strip() else {}
        except ValueError:
            if number == len(lines) and number > 1:
                return
            raise GateError(f"{where}: not JSON: not a file of netgate's") from None
        if not isinstance(known, dict):
            raise GateError(f"{where}: not an object: not a file of netgate's")
        yield where, known


def sessions(path: str) -> "List[Gate]":
    """The gates of a file, in its order: one, or more where files were put together."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as fault:
        raise GateError(f"{path}: {fault.strerror}") from None
    found: "List[Gate]" = []
    for where, known in objects(data, path):
        schema = known.get("schema")
        if schema == GATE_SCHEMA:
            found.append(record(Gate, {**known, "judgements": [], "over": "the file ends before the gate"},
                                where))
        elif known and not found:
            raise GateError(f"{where}: the header of a gate should be here, schema {GATE_SCHEMA}")
        elif schema == SLOT_SCHEMA:
            found[-1].slots.append(record(Slot, one_of("side", (A, B), known, where), where))
        elif schema == VERDICT_SCHEMA:
            found[-1].judgements.append(record(Judgement, one_of("verdict", VERDICTS, known, where), where))
        elif schema == END_SCHEMA:
            end = record(Gate, {**known, "points": [], "judgements": []}, where)
            for name in ENDING:
                setattr(found[-1], name, getattr(end, name))
        elif known:
            raise GateError(f"{where}: schema {json.dumps(schema)}: unknown to this netgate")
    return found


def read(path: str) -> Gate:
    """The one gate of a file that Writer wrote. What was killed reads as far as it got, and says so in
    `over`. Raises GateError."""
    found = sessions(path)
    if len(found) != 1:
        raise GateError(f"{path}: {len(found)} gates: give a file that has one" if found else
                        f"{path}: the file is empty: no gate in it")
    return found[0]
