"""Hosts that ssh reaches."""

import shlex
from typing import Any, Dict, List, Sequence

from netkit.engines.engine import Engine

WORDS = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10")


class Ssh(Engine):
    KIND = "ssh"

    def __init__(self, config: str = "") -> None:
        """config is a file for ssh."""
        self.words = [*WORDS, *(["-F", config] if config else [])]

    def before(self, name: str) -> "List[str]":
        return ["ssh", name]

    def command(self, name: str, words: Sequence[str]) -> "List[str]":
        """ssh hands a text to a shell there."""
        return [*self.words, name, shlex.join(["exec", *words])]

    def address(self, name: str) -> str:
        return name.rpartition("@")[2]

    def of_inventory(self, name: str, known: "Dict[str, Any]") -> str:
        return name         # of the configuration that inventory.ssh_config() writes
