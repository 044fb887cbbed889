"""Ends on other hosts: a plan's client and server, such as ssh:HOST or kubectl:NAMESPACE/POD (netkit/engines)."""

import asyncio
import contextlib
import functools
import io
import os
import re
import resource
import shlex
import tarfile
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

from netkit import UsageError, fleet, machine, options
from netkit.engines import ROWS, Ssh, is_local, named, split

KEY = "key"         # name of a file
PATIENCE = 10       # seconds for a daemon to become reachable
TRY_S = 5           # seconds for one attempt
TIMED = r"(?<!\S)--(rate|arrivals|beside|clean)[ =]\S+"      # options that a test of one transaction does not take
Known = Dict[str, Any]


@functools.lru_cache(maxsize=None)
def packed(key: bytes, programs: "Tuple[str, ...]") -> bytes:
    """A tar file of the key and the programs."""
    made, info = io.BytesIO(), tarfile.TarInfo(KEY)
    info.size, info.mode = len(key), 0o600
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.addfile(info, io.BytesIO(key))
        for program in programs:
            tar.add(machine.find(program) or program, os.path.basename(program))
    return made.getvalue()


class Ends(machine.Place):
    """A plan's clients and servers, with programs of PATH there or copies of ours, and a key made for this sweep."""

    def __init__(self, netperf: str, netserver: str, args: Sequence[str] = (), copies: bool = False,
                 known: Optional[Known] = None, ssh_config: str = "", keyed: bool = True) -> None:
        self._known = known or {}       # used if there are no points
        self._programs = {"netperf": netperf, "netserver": netserver}
        self._args, self._copies = list(args), copies
        self._keyed = keyed and all(machine.knows(one, "--key-file") for one in self._programs.values() if machine.find(one))
        self._daemons: "Dict[Tuple[str, str], fleet.Command]" = {}     # by end and port
        self._hosts: "Dict[str, fleet.Host]" = {}
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))    # several descriptors for each host
        self._key = (os.urandom(32).hex() + "\n").encode()
        self._engines = {**ROWS, Ssh.KIND: Ssh(ssh_config)}
        self.options: "List[str]" = []

    async def _reach(self, end: str, room: asyncio.Semaphore) -> None:
        """Has our shell and files there. Raises MachineError."""
        kind, name, _ = split(end) if end else ("local", "", "")
        programs = () if is_local(end) or not self._copies else tuple(self._programs.values())
        host = fleet.Host(self._engines[kind], name, packed(self._key, programs))
        async with room:
            await host.ready()
        if host.reason:
            await host.end()
            remedy = " (a shell has to be there: deploy/Containerfile)" if re.search('"?sh"?: .*not found', host.reason) else ""
            raise machine.MachineError(f"{end}: {host.reason}{remedy}")
        self._hosts[end] = host

    def _way(self, end: str, which: str) -> "Tuple[fleet.Way, List[str]]":
        """How our program runs there, and its option for the key."""
        host, program = self._hosts[named(end)], self._programs[which]
        if not is_local(end):
            program = f"{host.place}/{os.path.basename(program)}" if self._copies else which
        return fleet.Way(host, program), ["--key-file", f"{host.place}/{KEY}"] if self._keyed else []

    async def _serve(self, knowns: "List[Known]") -> "List[str]":
        """Starts a daemon that these use, until one of them has an answer. Why each of them can't, if so."""
        server, port = str(knowns[0]["server"]), machine.port(knowns[0])
        way, key = self._way(server, "netserver")
        daemon = fleet.Command(way, ["netserver", "-D", "-p", port, *key, *self._args])
        why: "List[str]" = []
        try:
            await daemon.prepare()
            daemon.host.write(b"go\n")
            for known in knowns[:2]:
                why.append(await self._await(daemon, known, port))
                if not why[-1]:
                    self._daemons[named(server), port] = daemon
                    return why + [""] * (len(knowns) - len(why))
                if daemon.ended():
                    break
        finally:
            if (named(server), port) not in self._daemons:
                await daemon.end()
        return why + [why[-1]] * (len(knowns) - len(why))

    async def _await(self, daemon: fleet.Command, known: Known, port: str) -> str:
        """Until the client has an answer; else why not."""
        until, server = time.monotonic() + PATIENCE, known["server"]
        way, key = self._way(str(known.get("client") or ""), "netperf")
        words = ["netperf", *key, *shlex.split(re.sub(TIMED, "", str(known.get("options") or ""))), "-H", str(known["host"]), "-p", port,
                 f"-{options.family(known)}", "-t", "TCP_RR", "-l", "-1"]
        while True:
            tried = fleet.Command(way, words)
            await fleet.together([tried], TRY_S)
            done, _ = tried.done()
            if daemon.ended():
                return (f"the netserver at {server} has ended: {daemon.complaint()}"
                        + (" (--copy takes ours there)" if re.search("not found|key-file", daemon.complaint()) else ""))
            if done.exit == 0:
                return ""
            if time.monotonic() > until or done.exit == 127:
                said = (done.stderr.strip().splitlines() or [done.reason])[-1]
                return (f"no netperf at {known.get('client') or 'this end'}: {said} (--copy takes ours there)" if done.exit == 127 else
                        f"the netserver at {server} does not answer: {said}")
            await asyncio.sleep(0.1)

    def prepare(self, knowns: "Sequence[Known]") -> "List[str]":
        loop = fleet.loop()
        loop.run(asyncio.sleep(0.001))      # let the loop notice hosts that have disconnected
        by_name = {named(end): None for known in knowns for end in (known.get("client") or "", known.get("server") or "")}
        missing = [name for name in by_name if name not in self._hosts or self._hosts[name].reason]
        room = asyncio.Semaphore(fleet.AT_ONCE)
        faults = {name: str(fault) for name, fault in zip(missing, loop.run(*(self._reach(name, room) for name in missing))) if fault}
        why = [next((faults[end] for end in (named(known.get("client")), named(known.get("server"))) if end in faults), "")
               for known in knowns]
        wanted: "Dict[Tuple[str, str], List[int]]" = {}
        for number, known in enumerate(knowns):
            key = named(known.get("server") or ""), machine.port(known)
            if key[0] and not why[number] and (key not in self._daemons or self._daemons[key].ended()):
                self._daemons.pop(key, None)
                wanted.setdefault(key, []).append(number)
        told = loop.run(*(self._serve([knowns[number] for number in numbers]) for numbers in wanted.values()))
        for numbers, reasons in zip(wanted.values(), told):
            for number, reason in zip(numbers, reasons):
                why[number] = reason
        return why

    def ready(self, lab: "Optional[List[str]]", family: int, known: Optional[Known] = None) -> None:
        known = known or self._known
        (why,) = self.prepare([known])
        if why:
            raise machine.MachineError(why)
        self.way, key = self._way(str(known.get("client") or ""), "netperf")
        self.options = key if known.get("server") else []

    def unreached(self, end: str) -> str:
        with contextlib.suppress(UsageError):
            kind, name, _ = split(end)
            (why,) = self.prepare([{"client": end}])
            try:
                trouble = ROWS[kind].trouble(name) if why else ""
            except machine.MachineError as fault:
                trouble = str(fault)
            return f"{named(end)}: {trouble}" if trouble else why
        return ""

    def leave(self) -> None:
        fleet.loop().run(*(host.end() for host in self._hosts.values()), heed=False)
        self._daemons, self._hosts = {}, {}
