"""Hosts that ssh reaches."""

import shlex
from typing import Any, Dict, List, Sequence

from netkit.engines.engine import Engine

WORDS = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10")


class Ssh(Engine):
    KIND = "ssh"

    def __init__(self, config: str = "") -> None:
        self.words = [*WORDS, *(["-F", config] if config else [])]

    @classmethod
    def before(cls, name: str) -> "List[str]":
        return ["ssh", name]

    def command(self, name: str, words: Sequence[str]) -> "List[str]":
        """ssh hands a text to a shell there."""
        return [*self.words, name, shlex.join(["exec", *words])]

    @classmethod
    def address(cls, name: str) -> str:
        return name.rpartition("@")[2]

    @classmethod
    def of_inventory(cls, name: str, known: "Dict[str, Any]") -> str:
        return name         # of the configuration that inventory.ssh_config() writes
