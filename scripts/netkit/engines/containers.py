"""Local containers, by podman or docker."""

import functools
from typing import Any, Dict, List

from netkit import machine
from netkit.engines.engine import Engine, Host, answer, parsed


class Podman(Engine):
    """podman:NAME,NAME are hosts; podman:label=LABEL are all containers with that label."""
    KIND = "podman"

    def before(self, name: str) -> "List[str]":
        return [self.KIND, "exec", "-i", name]

    @functools.lru_cache(maxsize=None)
    def address(self, name: str) -> str:
        def addresses(found: "List[Dict[str, Any]]") -> "List[Any]":
            networks: "Dict[str, Any]" = (found[0].get("NetworkSettings") or {}).get("Networks") or {}
            return [one.get("IPAddress") or one.get("GlobalIPv6Address") for one in networks.values()]
        return next(filter(None, parsed(addresses, self.KIND, "inspect", "--type=container", name)), "")

    def trouble(self, name: str) -> str:
        state = answer(self.KIND, "inspect", "--type=container", "--format={{.State.Status}}", name).strip()
        return "" if state == "running" else f"it is {state}: {self.KIND} start {name}"

    def listed(self, what: str, options: "Dict[str, str]") -> "List[Host]":
        if not what.startswith("label="):
            return super().listed(what, options)
        names = answer(self.KIND, "ps", "--filter", what, "--format={{.Names}}").split()
        if not names:
            raise machine.MachineError(f"{self.KIND}: no container runs with {what}")
        return [Host(name) for name in names]


class Docker(Podman):
    KIND = "docker"
