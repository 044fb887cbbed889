"""Objects of JSON as dataclasses, by the types of their members."""

import dataclasses
import functools
import json
import typing
from typing import Any, Dict, Type, Union

hints = functools.lru_cache(maxsize=None)(typing.get_type_hints)   # a history has many thousand slots
WORDS = {dict: "an object", list: "a list", tuple: "a list", float: "a number", int: "a whole number", str: "a text",
         bool: "true or false"}


def shaped(fault: "Type[Exception]", value: Any, kind: Any, where: str) -> Any:
    """A value of JSON as the type of a member has it, else this fault is raised."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is Union:                 # Optional: null has been seen to
        return shaped(fault, value, inside[0], where)
    if kind is Any or origin is dict and inside[1] is Any and isinstance(value, dict):
        return value
    if dataclasses.is_dataclass(kind):
        return record(fault, kind, value, where)
    if origin is dict and isinstance(value, dict):
        return {name: shaped(fault, one, inside[1], f"{where}.{name}") for name, one in value.items() if one is not None}
    if origin in (list, tuple) and isinstance(value, list):
        kinds = inside if origin is tuple and Ellipsis not in inside else inside[:1] * len(value)
        if len(kinds) == len(value):
            return origin(shaped(fault, one, of, where) for one, of in zip(value, kinds))
    if kind is float and type(value) in (int, float):
        return float(value)
    if type(value) is kind:
        return value
    raise fault(f"{where}: {json.dumps(value)[:40]} is not {WORDS[origin or kind]} as it should be")


def record(fault: "Type[Exception]", kind: Any, known: Any, where: str) -> Any:
    """A dataclass of the members of an object. What it does not know is in its member `more`, if it has one; null is as if
    it were not there."""
    if not isinstance(known, dict):
        raise fault(f"{where}: not an object")
    types, rest = hints(kind), dict(known)
    values: "Dict[str, Any]" = {}
    for one in dataclasses.fields(kind):
        value = rest.pop(one.name, None) if one.name != "more" else None
        if value is not None:
            values[one.name] = shaped(fault, value, types[one.name], f"{where}: {one.name}")
        elif one.default is one.default_factory is dataclasses.MISSING:
            raise fault(f"{where}: no {one.name}")
    return kind(**values, **({"more": rest} if "more" in types else {}))
