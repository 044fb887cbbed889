"""The engines of a fleet: they start, place, limit and end what runs; a row each. A new one is a file here and a line below."""

import re
from typing import Dict, List, Type

from netkit.engines.containers import Docker, Podman
from netkit.engines.engine import Engine, Host, answer
from netkit.engines.here import Local, Netns
from netkit.engines.kubectl import Kubectl
from netkit.engines.slurm import Slurm
from netkit.engines.ssh import Ssh

__all__ = ["Engine", "Host", "NoEnd", "ROWS", "Ssh", "answer", "split"]

ROWS: "Dict[str, Type[Engine]]" = {row.KIND: row for row in (Ssh, Netns, Local, Slurm, Podman, Docker, Kubectl)}


class NoEnd(Exception):
    """What names no end; one line."""


def split(end: str) -> "List[str]":
    """Kind, name and, where one is given, its address in tests. Raises NoEnd."""
    kind, _, rest = end.partition(":")
    name, equals, address = rest.partition("=")
    row = ROWS.get(kind)
    if not row:
        raise NoEnd(f"{end}: ENGINE:HOST, and =ADDRESS where tests go by another one; engines are {', '.join(ROWS)}")
    if not re.fullmatch(row.NAME, name) or equals and not re.fullmatch(r"[^\s/=-][^\s/=]*", address):
        raise NoEnd(f"{end}: try {kind}:HOST or {kind}:HOST=ADDRESS")
    return [kind, name, address]
