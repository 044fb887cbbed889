"""Hosts on this machine: network namespaces, and the machine itself."""

from typing import Any, Dict, List

from netkit.engines.engine import Engine


class Netns(Engine):
    KIND, SHARED, ROOT = "netns", True, True

    def before(self, name: str) -> "List[str]":
        return ["ip", "netns", "exec", name]


class Local(Engine):
    """Ansible's connection "local". The name has no meaning."""
    KIND, SHARED = "local", True

    def before(self, name: str) -> "List[str]":
        return []

    def of_inventory(self, name: str, known: "Dict[str, Any]") -> str:
        return name
