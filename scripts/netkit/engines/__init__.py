"""The engines of a fleet, which start, place, limit and end commands. A new one is a file here and a line below."""

import contextlib
import functools
import re
from typing import Any, Dict, List

from netkit import UsageError, machine
from netkit.engines.containers import Docker, Podman
from netkit.engines.engine import Engine, Host, answer, parsed
from netkit.engines.hosts import Local, Netns, Ssh
from netkit.engines.kubectl import Kubectl
from netkit.engines.slurm import Slurm

__all__ = ["Engine", "Host", "ROWS", "Ssh", "answer", "host", "is_local", "named", "parsed", "plain", "split"]

ROWS: "Dict[str, Engine]" = {row.KIND: row for row in (Ssh(), Netns(), Local(), Slurm(), Podman(), Docker(), Kubectl())}


def split(end: str) -> "List[str]":
    """Split an end into kind, name and optional address for tests. Raises UsageError."""
    kind, _, rest = end.partition(":")
    name, equals, address = rest.partition("=")
    row = ROWS.get(kind)
    if not row:
        raise UsageError(f"{end}: ENGINE:HOST, and =ADDRESS where tests go by another one; engines are {', '.join(ROWS)}")
    if not re.fullmatch(row.NAME, name) or equals and not re.fullmatch(r"[^\s/=-][^\s/=]*", address):
        raise UsageError(f"{end}: try {kind}:HOST or {kind}:HOST=ADDRESS")
    return [kind, name, address]


@functools.lru_cache(maxsize=None)      # called for each point of a mesh
def named(end: Any) -> str:
    """An end without the address for tests."""
    with contextlib.suppress(UsageError):
        return ":".join(split(str(end))[:2])
    return str(end)


@functools.lru_cache(maxsize=None)
def host(end: str) -> str:
    """The address for tests; empty if it must be given. Raises UsageError."""
    kind, name, address = split(end)
    try:
        return address or ROWS[kind].address(name)
    except machine.MachineError:
        return name     # its runs will report what is wrong


def plain(end: str) -> "List[str]":
    """The words that a user would type before a command."""
    kind, name, _ = split(end) if end else ("", "", "")
    return ROWS[kind].before(name) if end else []


def is_local(end: str) -> bool:
    """Whether the host has our programs."""
    return not end or ROWS[split(end)[0]].SHARED
