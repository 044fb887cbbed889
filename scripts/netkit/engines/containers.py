"""Containers of this machine, by podman or docker."""

import functools
import json
from typing import Any, Dict, List

from netkit import machine
from netkit.engines.engine import Engine, Host, answer


class Podman(Engine):
    """podman:NAME,NAME are hosts, and podman:label=LABEL are all that run with it."""
    KIND = "podman"

    @classmethod
    def before(cls, name: str) -> "List[str]":
        return [cls.KIND, "exec", "-i", name]

    @classmethod
    @functools.lru_cache(maxsize=None)
    def address(cls, name: str) -> str:
        (found,) = json.loads(answer(cls.KIND, "inspect", "--type=container", name))
        networks: "Dict[str, Any]" = (found.get("NetworkSettings") or {}).get("Networks") or {}
        addresses = [one.get("IPAddress") or one.get("GlobalIPv6Address") for one in networks.values()]
        return next(filter(None, addresses), "")

    @classmethod
    def trouble(cls, name: str) -> str:
        state = answer(cls.KIND, "inspect", "--type=container", "--format={{.State.Status}}", name).strip()
        return "" if state == "running" else f"it is {state}: {cls.KIND} start {name}"

    @classmethod
    def listed(cls, what: str, options: "Dict[str, str]") -> "List[Host]":
        if not what.startswith("label="):
            return super().listed(what, options)
        names = answer(cls.KIND, "ps", "--filter", what, "--format={{.Names}}").split()
        if not names:
            raise machine.MachineError(f"{cls.KIND}: no container runs with {what}")
        return [Host(name) for name in names]


class Docker(Podman):
    KIND = "docker"
