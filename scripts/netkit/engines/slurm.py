"""Nodes of a Slurm allocation: the one that we run in, or one of our own, which ends when we do."""

import os
import re
import select
import subprocess
from typing import Dict, List, Sequence

from netkit import machine
from netkit.engines.engine import LIMIT, Engine, Host, answer

OURS = 'env | grep ^SLURM_; echo; read -r _'        # run by salloc: holds the allocation until our end of the pipe closes
BAD = re.compile("DOWN|DRAIN|FAIL|NOT_RESPONDING|POWER|MAINT|UNKNOWN")


def shown(*words: str) -> "List[Dict[str, str]]":
    """The output of scontrol, one dict per line."""
    return [dict(word.split("=", 1) for word in line.split() if "=" in word)
            for line in answer("scontrol", "--oneliner", "show", *words).splitlines()]


class Slurm(Engine):
    KIND, BETWEEN = "slurm", ","

    def before(self, name: str) -> "List[str]":
        """A step that shares the whole node, without being bound to one core like a task."""
        return ["srun", "--overlap", "--no-kill", "--nodes=1", "--ntasks=1", f"--nodelist={name}", "--cpu-bind=none", "--chdir=/", "--quiet"]

    def command(self, name: str, words: Sequence[str]) -> "List[str]":
        if not os.environ.get("SLURM_JOB_ID"):
            raise machine.MachineError("no allocation here: run this within salloc, or netmesh --inventory slurm: --nodes N")
        return super().command(name, words)

    def address(self, name: str) -> str:
        return shown("node", name)[0].get("NodeAddr", name)

    def trouble(self, name: str) -> str:
        job = answer("squeue", "--noheader", "--format=%T", f"--jobs={os.environ.get('SLURM_JOB_ID')}").strip()
        state = "".join(row.get("State", "") for row in shown("node", name) if row.get("NodeName") == name)
        ended = f"the allocation has ended ({job or 'gone'}): --resume in another one"
        return f"the node is {state}" if BAD.search(state) else ended * (job != "RUNNING")

    def listed(self, what: str, options: "Dict[str, str]") -> "List[Host]":
        if not os.environ.get("SLURM_JOB_ID"):
            self.allocate(what, options)
        names = answer("scontrol", "show", "hostnames", what or os.environ["SLURM_JOB_NODELIST"]).split()
        addresses = {row.get("NodeName"): row.get("NodeAddr", "") for row in shown("node", ",".join(names))}
        groups = {f"switch {row['SwitchName']}": answer("scontrol", "show", "hostnames", row["Nodes"]).split()
                  for row in shown("topology") if row.get("Level") == "0" and row.get("Nodes")}
        return [Host(name, tuple(group for group, nodes in groups.items() if name in nodes), name, addresses.get(name, "")) for name in names]

    def again(self, what: str) -> str:
        return what or os.environ.get("SLURM_JOB_NODELIST", "")

    def allocate(self, what: str, options: "Dict[str, str]") -> None:
        """Get an allocation. It lasts as long as the stdin of its command, so it ends when we do, however we end."""
        asked = [f"--{name}={value}" for name, value in (("nodelist", what), *options.items()) if value and name in ("nodelist", "nodes", "partition")]
        if not asked or not machine.find("salloc"):
            why = "slurm: no allocation here: run netmesh within salloc, or give --nodes N (--partition P)"
            raise machine.MachineError("salloc: not installed here" if asked else why)
        self.ours = process = subprocess.Popen(      # kept, as its stdin must stay open
            ["salloc", "--exclusive", "--no-kill", f"--immediate={LIMIT - 2}", "--quiet", *asked, "sh", "-c", OURS], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=machine.free_signals)
        said = b""
        while not said.endswith(b"\n\n") and select.select([process.stdout], [], [], 3 * LIMIT)[0]:
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                states = sorted(set(answer("sinfo", "--noheader", "--Node", "--format=%N is %T").splitlines()))
                raise machine.MachineError("; ".join([process.stderr.read().decode(errors="replace").strip(), *(
                    one for one in states if not one.endswith(" idle"))]))
            said += piece
        os.environ.update(line.split("=", 1) for line in said.decode(errors="replace").splitlines() if "=" in line)
