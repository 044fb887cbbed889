"""Hosts without a cluster: this machine, its network namespaces, and those that ssh reaches."""

import shlex
from typing import Any, Dict, List, Sequence

from netkit.engines.engine import Engine

SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10")


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


class Ssh(Engine):
    KIND = "ssh"

    def __init__(self, config: str = "") -> None:
        """config is a file for ssh."""
        self.words = [*SSH, *(["-F", config] if config else [])]

    def before(self, name: str) -> "List[str]":
        return ["ssh", name]

    def command(self, name: str, words: Sequence[str]) -> "List[str]":
        """ssh hands a text to a shell there."""
        return [*self.words, name, shlex.join(["exec", *words])]

    def address(self, name: str) -> str:
        return name.rpartition("@")[2]

    def of_inventory(self, name: str, known: "Dict[str, Any]") -> str:
        return name         # of the configuration that inventory.ssh_config() writes
