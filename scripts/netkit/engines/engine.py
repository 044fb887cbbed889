"""What reaches hosts, starts commands there and ends them: each file of this folder is one, by what differs from this one."""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from netkit import machine

LIMIT = 10      # seconds for an answer of a program of the engine's


class Host(NamedTuple):
    """One that a mesh may have: its name after the colon of an end, the groups it is in, and what the cluster calls its machine."""
    name: str
    groups: "Tuple[str, ...]" = ()
    node: str = ""
    address: str = ""       # in tests, where the engine is not to be asked


class Engine:
    KIND = ""                           # what an end begins with
    NAME = r"[^\s/=-][^\s/=]*"          # what may follow the colon
    SHARED = False                      # do its hosts have our files? Then nothing is copied there
    ROOT = False                        # does it need root?
    BETWEEN = "\n"                      # names of nodes, for the command that keeps work away from them

    def before(self, name: str) -> "List[str]":
        """What goes before a command to have it run at a host, its standard input and output being ours."""
        raise NotImplementedError

    def command(self, name: str, words: Sequence[str]) -> "List[str]":
        """These words there."""
        return [*self.before(name), *words]

    def address(self, name: str) -> str:
        """For tests; empty: it has to be given. Raises MachineError."""
        return ""

    def trouble(self, name: str) -> str:
        """What the cluster says against a host that failed; empty: nothing, or there is none to ask. Raises MachineError."""
        return ""

    def listed(self, what: str, options: "Dict[str, str]") -> "List[Host]":
        """The hosts of KIND:WHAT. Raises MachineError."""
        pairs = [one.partition("=") for one in what.split(",") if one]
        return [Host(name, address=address) for name, _, address in pairs]

    def again(self, what: str) -> str:
        """WHAT for the same hosts once more."""
        return what

    def of_inventory(self, name: str, known: "Dict[str, Any]") -> str:
        """The name of a host of Ansible's, of the variables of its connection."""
        return str(known.get("ansible_host") or name)


def answer(*command: str, limit: float = LIMIT) -> str:
    """What a program of the engine's prints. Raises MachineError with its complaint."""
    if not machine.find(command[0]):
        raise machine.MachineError(f"{command[0]}: not installed here")
    done = machine.run(command, limit)
    if done.exit != 0:
        raise machine.MachineError(f"{command[0]}: {done.complaint()}")
    return done.stdout
