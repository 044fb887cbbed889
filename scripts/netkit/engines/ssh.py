"""Hosts that ssh reaches: one connection each, which all commands share."""

import itertools
import shlex
from typing import Any, Dict, List, Sequence

from netkit.engines.engine import Engine

WORDS = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10")


class Ssh(Engine):
    KIND = "ssh"

    def __init__(self, home: str, config: str = "") -> None:
        super().__init__(home, config)
        self.words = [*WORDS, *(["-F", config] if config else [])]
        self._controls: "Dict[str, str]" = {}       # a socket a connection
        self._numbers = itertools.count()

    @classmethod
    def before(cls, name: str) -> "List[str]":
        return ["ssh", name]

    def command(self, name: str, words: Sequence[str], first: bool = False) -> "List[str]":
        """ssh hands a text to a shell there."""
        if first:
            self._controls[name] = f"{self.home}/{next(self._numbers)}"
        control = [*["-M"] * first, "-S", self._controls[name]] if name in self._controls else []
        return [*self.words, *control, name, shlex.join(["exec", *words])]

    @classmethod
    def address(cls, name: str) -> str:
        return name.rpartition("@")[2]

    @classmethod
    def of_inventory(cls, name: str, known: "Dict[str, Any]") -> str:
        return name         # of the configuration that inventory.ssh_config() writes
