"""Nodes of a Slurm allocation: the one that we run in, or one of our own, which ends when we do."""

import functools
import os
import re
import select
import subprocess
from typing import Dict, List, Sequence

from netkit import machine
from netkit.engines.engine import LIMIT, Engine, Host, answer

OURS = 'env | grep ^SLURM_; echo; read -r _'        # in salloc: says what there is, and stays for as long as we do
BAD = re.compile("DOWN|DRAIN|FAIL|NOT_RESPONDING|POWER|MAINT|UNKNOWN")


class Slurm(Engine):
    KIND, DRAIN = "slurm", "scontrol update state=drain reason=netmesh nodename="

    @classmethod
    def before(cls, name: str) -> "List[str]":
        """A step that shares all of the node, without the binding to one core that a task gets."""
        return ["srun", "--overlap", "--no-kill", "--nodes=1", "--ntasks=1", f"--nodelist={name}", "--cpu-bind=none", "--chdir=/", "--quiet"]

    def command(self, name: str, words: Sequence[str], first: bool = False) -> "List[str]":
        if not os.environ.get("SLURM_JOB_ID"):
            raise machine.MachineError("no allocation here: run this within salloc, or netmesh --inventory slurm: --nodes N")
        return super().command(name, words, first)

    @classmethod
    @functools.lru_cache(maxsize=None)
    def address(cls, name: str) -> str:
        return cls.nodes(name)[name].get("NodeAddr", name)

    @classmethod
    def nodes(cls, names: str) -> "Dict[str, Dict[str, str]]":
        """What the controller says of them."""
        rows = [dict(word.split("=", 1) for word in line.split() if "=" in word)
                for line in answer("scontrol", "--oneliner", "show", "node", names).splitlines()]
        return {row["NodeName"]: row for row in rows if "NodeName" in row}

    @classmethod
    def trouble(cls, name: str) -> str:
        try:
            job = answer("squeue", "--noheader", "--format=%T", f"--jobs={os.environ.get('SLURM_JOB_ID')}").strip()
            state = cls.nodes(name).get(name, {}).get("State", "unknown")
        except machine.MachineError as fault:
            return str(fault)
        return (f"the node is {state}" if BAD.search(state) else "" if job == "RUNNING" else
                f"the allocation has ended ({job or 'gone'}): --resume in another one")

    @classmethod
    def listed(cls, what: str, options: "Dict[str, str]") -> "List[Host]":
        if not os.environ.get("SLURM_JOB_ID"):
            cls.allocate(what, options)
        names = answer("scontrol", "show", "hostnames", what or os.environ["SLURM_JOB_NODELIST"]).split()
        found = cls.nodes(",".join(names))
        switches = [dict(word.split("=", 1) for word in line.split() if "=" in word)
                    for line in answer("scontrol", "--oneliner", "show", "topology").splitlines()]
        groups = {row["SwitchName"]: answer("scontrol", "show", "hostnames", row["Nodes"]).split()
                  for row in switches if row.get("Level") == "0" and row.get("Nodes")}
        return [Host(name, tuple(f"switch {switch}" for switch, nodes in groups.items() if name in nodes), name,
                     found.get(name, {}).get("NodeAddr", "")) for name in names]

    @classmethod
    def again(cls, what: str) -> str:
        return what or os.environ.get("SLURM_JOB_NODELIST", "")

    @classmethod
    def allocate(cls, what: str, options: "Dict[str, str]") -> None:
        """The allocation lives as long as the standard input of its command, so it ends with us, whatever ends us."""
        asked = [f"--{name}={value}" for name, value in (("nodelist", what), *options.items()) if value and name in (
            "nodelist", "nodes", "partition", "time", "account")]
        if not asked or not machine.find("salloc"):
            raise machine.MachineError("slurm: no allocation here: run netmesh within salloc, or give --nodes N (--partition P)"
                                       if not asked else "salloc: not installed here")
        process = subprocess.Popen(["salloc", "--exclusive", "--no-kill", f"--immediate={LIMIT - 2}", "--quiet", *asked, "sh", "-c", OURS], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=machine.free_signals)
        assert process.stdout and process.stderr
        said = b""
        while not said.endswith(b"\n\n") and said != b"\n" and select.select([process.stdout], [], [], 3 * LIMIT)[0]:
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                lines = process.stderr.read().decode(errors="replace").strip().splitlines()
                states = sorted(set(answer("sinfo", "--noheader", "--Node", "--format=%N is %T").splitlines()))
                raise machine.MachineError("; ".join([*lines[-1:], *(one for one in states if not one.endswith(" idle"))]))
            said += piece
        os.environ.update(line.split("=", 1) for line in said.decode(errors="replace").splitlines() if "=" in line)
        cls.ours = process      # it is not collected, so its standard input stays open
