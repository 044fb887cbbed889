"""Converts JSON objects to dataclasses according to the types of their members."""

import dataclasses
import functools
import json
import typing
from typing import Any, Callable, Dict, Type, Union

Fault = Type[Exception]
Shape = Callable[[Any, str], Any]       # converts a JSON value, given its position, to a member's type
WORDS = {dict: "an object", list: "a list", tuple: "a list", float: "a number", int: "a whole number", str: "a text",
         bool: "true or false"}


@functools.lru_cache(maxsize=None)      # types are analysed once: a history has many thousands of slots
def shape(fault: Fault, kind: Any) -> Shape:
    """The converter for a type; it raises `fault` for values of other types."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is Union:                 # Optional: null is handled elsewhere
        return shape(fault, inside[0])
    if kind is Any:
        return lambda value, where: value
    if dataclasses.is_dataclass(kind):
        return lambda value, where: record(fault, kind, value, where)

    def refuse(value: Any, where: str) -> Any:
        raise fault(f"{where}: {json.dumps(value, default=str)[:40]} is not {WORDS[origin or kind]} as it should be")
    if origin is dict:
        each = shape(fault, inside[1])
        return lambda value, where: refuse(value, where) if not isinstance(value, dict) else value if inside[1] is Any else {
            name: each(one, f"{where}.{name}") for name, one in value.items() if one is not None}
    if origin is tuple and Ellipsis not in inside:
        parts = [shape(fault, one) for one in inside]
        return lambda value, where: refuse(value, where) if not isinstance(value, list) or len(value) != len(parts) else tuple(
            part(one, where) for part, one in zip(parts, value))
    if origin in (list, tuple):
        each = shape(fault, inside[0])
        return lambda value, where: refuse(value, where) if not isinstance(value, list) else value if (
            origin is list and set(map(type, value)) == {inside[0]}) else origin([each(one, where) for one in value])
    if kind is float:
        return lambda value, where: value if type(value) is float else float(value) if type(value) is int and abs(value) < 1e300 else refuse(value, where)
    return lambda value, where: value if type(value) is kind else refuse(value, where)


@functools.lru_cache(maxsize=None)
def members(fault: Fault, kind: Any) -> "Dict[str, tuple[Any, Shape, bool]]":
    """For each member: the type of values that need no conversion, the converter of others, whether it is required."""
    types = typing.get_type_hints(kind)
    return {one.name: (dict if types[one.name] == Dict[str, Any] else types[one.name], shape(fault, types[one.name]),
                       one.default is one.default_factory is dataclasses.MISSING) for one in dataclasses.fields(kind) if one.compare}


def record(fault: Fault, kind: Any, known: Any, where: str) -> Any:
    """Make a dataclass from a JSON object. Unknown members go into `more`, if it has that; null means missing."""
    if not isinstance(known, dict):
        raise fault(f"{where}: not an object")
    rest, values, wanted = dict(known), {}, members(fault, kind)
    for name, (plain, shaped, is_needed) in wanted.items():
        value = rest.pop(name, None) if name != "more" else None
        if type(value) is plain:
            values[name] = value
        elif value is not None:
            values[name] = shaped(value, f"{where}: {name}")
        elif is_needed:
            raise fault(f"{where}: no {name}")
    return kind(**values, **({"more": rest} if "more" in wanted else {}))
