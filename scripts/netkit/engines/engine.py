"""The base class of the engines in this directory, which reach hosts and start and end commands there."""

import contextlib
import json
import shlex
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple, TypeVar

from netkit import machine

LIMIT = 10      # seconds for an answer from the engine's program
Kind = TypeVar("Kind")


class Host(NamedTuple):
    """A host for a mesh: its name, as after the colon of an end; its groups; the cluster's name for its machine."""
    name: str
    groups: "Tuple[str, ...]" = ()
    node: str = ""
    address: str = ""       # for tests, if known without asking the engine


class Engine:
    KIND = ""                           # what an end starts with
    NAME = r"[^\s/=-][^\s/=]*"          # what may follow the colon
    SHARED = False                      # hosts have our files, so nothing is copied
    ROOT = False                        # needs root
    BETWEEN = "\n"                      # separator of node names, for the command that drains them

    def before(self, name: str) -> "List[str]":
        """The command prefix that runs a command on a host with our stdin and stdout."""
        raise NotImplementedError

    def command(self, name: str, words: Sequence[str]) -> "List[str]":
        return [*self.before(name), *words]

    def address(self, name: str) -> str:
        """The address for tests; empty if it must be given. Raises MachineError."""
        return ""

    def trouble(self, name: str) -> str:
        """What the cluster reports about a failed host; empty if nothing. Raises MachineError."""
        return ""

    def listed(self, what: str, options: "Dict[str, str]") -> "List[Host]":
        """The hosts of KIND:WHAT. Raises MachineError."""
        pairs = [one.partition("=") for one in what.split(",") if one]
        return [Host(name, address=address) for name, _, address in pairs]

    def again(self, what: str) -> str:
        """A WHAT that gives the same hosts again."""
        return what

    def of_inventory(self, name: str, known: "Dict[str, Any]") -> str:
        """The host's name, from an Ansible host's connection variables."""
        return str(known.get("ansible_host") or name)


def answer(*command: str, limit: float = LIMIT) -> str:
    """The output of an engine's program. Raises MachineError with the last line of its stderr."""
    if not machine.find(command[0]):
        raise machine.MachineError(f"{command[0]}: not installed here")
    done = machine.run(command, limit)
    if done.exit != 0:
        raise machine.MachineError(f"{command[0]}: {done.complaint()}")
    return done.stdout


def parsed(taken: "Callable[[Any], Kind]", *command: str, limit: float = LIMIT) -> Kind:
    """What is taken from the output, which is JSON. Raises MachineError."""
    with contextlib.suppress(ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return taken(json.loads(answer(*command, limit=limit)))
    raise machine.MachineError(f"{command[0]}: its output is not the expected JSON ({shlex.join(command)} shows it)")
