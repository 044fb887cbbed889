"""Runs commands on many hosts in one event loop. A shell on each ends them and itself when its stdin closes."""

import asyncio
import contextlib
import functools
import os
import re
import shlex
import signal
import sys
import time
from typing import Any, Awaitable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from netkit import machine, progress
from netkit.engines import Engine

THERE_S = 10        # seconds to reach a host
COPY_S = 30         # seconds to copy files
PREPARED_S = 15     # seconds for its shell to answer before a round
WORDS_MOST = 300    # characters of an error message
LATE_S = 25         # seconds before a limit, after which a host with a running command has to answer
ANSWER_S = 5        # seconds that it has for that
LINE_MOST = 1 << 16     # bytes of a line: lines are short or a path
STOPS_S = 2         # seconds for a command to end after SIGTERM
TURN_S = 0.1        # seconds between checks for signals
AT_ONCE = 50        # hosts that are connected to at a time
TOO_MUCH = "more than {} KiB came, which is the most that is read"

# The shell on a host reports that it runs, unpacks a tar file of the given size into a directory, reports its path,
# and then reads lines. "run" starts a command that waits for the end of a pipe; "go" closes that pipe for all. The
# process ID goes into a file, empty until it is known. Output goes to files, so that only the loop writes to stdout;
# exit statuses go to stderr. No process is orphaned, as the first process of a container may not reap it. A command
# that begins as the shell leaves may put a file into the directory being removed, so it is removed twice.
SHELL = """PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
ends() { a=; for p in $ps; do kill "-$1" "$p" && a=1; done; [ "$a" ]; } 2>/dev/null
stop() { read -r ps <"$d/$2.p" && ends "$1"; } 2>/dev/null
leave() { trap '' HUP INT TERM PIPE; exec 5>&- 2>/dev/null; for p in "$d"/*.p; do [ -s "$p" ] || [ ! -e "$p" ] || sleep .1; done
ps=$(cat "$d"/*.p); rm -rf "$d"; for s in .1 .2 .3 .6 .8; do ends TERM || break; sleep "$s"; done; ends KILL; wait; rm -rf "$d"; }
run() { [ "$w" ] || { exec 5<>"$d/go" 4<"$d/go"; w=1; }; : >"$d/$i.j" >"$d/$i.p"; { exec 5>&-
{ echo "ready $i" >&2; read -r _; echo "begun $i" >&2; exec "$@" </dev/null >"$d/$i.o" 2>"$d/$i.e"; } <&4 4<&- & exec 4<&-
echo "$!" >"$d/$i.p"; wait "$!"; s=$?; rm -f "$d/$i.p"; echo "end $i $s" >&2; } & }
go() { exec 5>&-; w=; }
get() { echo "got $1" $(for f in o e j; do wc -c <"$d/$1.$f"; done); cat "$d/$1.o" "$d/$1.e" "$d/$1.j"; echo; rm -f "$d/$1".?; }
echo; d=$(mktemp -d) || exit; trap leave EXIT; trap 'exit 143' HUP INT TERM PIPE
[ "$1" = 0 ] || head -c "$1" | tar -xo -C "$d" -f - || exit
w=; mkfifo "$d/go" && echo "$d" && while read -r line; do eval "$line"; done
"""


class Host:
    """The shell on a host. The size of its output is limited, since the host can't be trusted."""

    def __init__(self, engine: Engine, name: str, data: bytes = b"") -> None:
        self._engine, self._name, self._data = engine, name, data
        self._process: "Optional[asyncio.subprocess.Process]" = None
        self._tasks: "List[asyncio.Future[Any]]" = []
        self._commands: "Dict[int, Command]" = {}
        self._count, self._said = 0, ""
        self.place = ""     # directory of our files
        self.reason = ""    # why it failed

    async def ready(self) -> None:
        """Has it there, or has a reason."""
        if self._process or self.reason:
            return
        self._lines: "asyncio.Queue[bytes]" = asyncio.Queue()
        try:
            words = self._engine.command(self._name, ["sh", "-c", SHELL, "sh", str(len(self._data))])
            self._process = process = await asyncio.create_subprocess_exec(
                *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                start_new_session=True, preexec_fn=machine.free_signals, limit=LINE_MOST)
            self._tasks = [asyncio.ensure_future(one) for one in (self._complain(process.stderr), self._listen(process.stdout))]
            await self._line(THERE_S)
            self.write(self._data)
            self.place = (await self._line(COPY_S)).decode(errors="replace")
        except OSError as fault:
            self.fail(f"{words[0]}: {'not installed here' if isinstance(fault, FileNotFoundError) else fault.strerror}")
        except machine.MachineError as fault:
            self.fail(str(fault))

    async def _listen(self, stream: Any) -> None:
        try:
            while True:
                line = await stream.readline()
                words = line.split()
                if not line:
                    await asyncio.wait(self._tasks[:1], timeout=THERE_S / 20)
                    return self.fail(self._said or ("the shell there has ended: was the host restarted?" if self.place else "no answer"))
                if words[:1] == [b"got"]:
                    command, sizes = self._commands[int(words[1])], [int(words[part]) for part in (2, 3, 4)]
                    if sum(sizes) > machine.ANSWER_MOST:
                        return self.fail(TOO_MUCH.format(machine.ANSWER_MOST >> 10))
                    command.take([await stream.readexactly(size) for size in sizes])
                    del self._commands[int(words[1])]
                    await stream.readline()
                else:
                    self._lines.put_nowait(line.strip())
        except (ValueError, KeyError, IndexError, EOFError):    # too long a line is a ValueError, too
            self.fail(TOO_MUCH.format(LINE_MOST >> 10) + ", or not what our shell says")

    async def _complain(self, stream: Any) -> None:
        """What becomes of commands, and what the engine says."""
        while True:
            try:
                line = await stream.readline()
            except ValueError:
                self._said = TOO_MUCH.format(LINE_MOST >> 10)
                continue
            if not line:
                return
            found = re.fullmatch(rb"(ready|begun|end) (\d+) ?(\d*)", line.strip())
            command = self._commands.get(int(found[2])) if found else None
            if found and command:
                if found[1] == b"begun":
                    command.begun = time.monotonic()
                elif found[3]:
                    command.exit = int(found[3])
                    self.write(b"get %s\n" % found[2])
                command.waits.set()
            elif line.strip():
                self._said = line.decode(errors="replace").strip()[:WORDS_MOST]

    async def _line(self, limit: float) -> bytes:
        try:
            line = await asyncio.wait_for(self._lines.get(), limit)
        except asyncio.TimeoutError:
            raise machine.MachineError(f"no answer within {limit:g} s") from None
        if self.reason:
            raise machine.MachineError(self.reason)
        return line

    def write(self, data: bytes) -> None:
        if self._process and self._process.stdin and not self.reason:
            with contextlib.suppress(OSError, RuntimeError):
                self._process.stdin.write(data)

    def fail(self, reason: str) -> None:
        """Kill it with everything running there, for this reason."""
        self.reason = self.reason or reason
        self._lines.put_nowait(b"")
        if self._process and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)      # kill() would take the exit status away from the loop
        for command in self._commands.values():
            command.fail(self.reason)

    async def answer(self, limit: float) -> None:
        """Has its shell answer, or what runs there has failed."""
        self.write(b"echo\n")
        try:
            await self._line(limit)
        except machine.MachineError as fault:
            self.fail(f"its host does not answer any more: {fault}")

    def take(self, command: "Command") -> int:
        """Have the host prepare a command; returns the command's number."""
        self._count += 1
        self._commands[self._count] = command
        self.write(f"i={self._count}; run {command.text}\n".encode())
        return self._count

    async def end(self) -> None:
        """By the end of its standard input, or else of what holds that."""
        self.reason = self.reason or "it was ended"
        if self._process and self._process.stdin:
            self._process.stdin.close()
            await happens(self._process.wait(), 5 * STOPS_S)
            self.fail("")
            await self._process.wait()
            await asyncio.wait(self._tasks, timeout=1)
            for task in self._tasks:
                task.cancel()


class Way(NamedTuple):
    """A host, and the path of a program there."""
    host: Host
    program: str


class Command:
    """A command on a host, with a document if it is to write one."""

    def __init__(self, way: Way, words: Sequence[str], document: bool = False, prefix: Sequence[str] = ()) -> None:
        self.host, self._number = way.host, 0
        self.text = " ".join([shlex.join([*prefix, way.program]), *['--json="$d/$i.j"'] * document, shlex.join(words[1:])]).replace("\n", " ")
        self._parts = [b"", b"", b""]       # stdout, stderr and the document
        self._since = time.monotonic()
        self._seconds = 0.0
        self.begun: Optional[float] = None  # start, as reported by its host
        self.exit: Optional[int] = None
        self.reason = ""

    async def prepare(self) -> None:
        """Has it wait at its host."""
        self.waits, self._over = asyncio.Event(), asyncio.Event()
        self._number = self.host.take(self)
        if self.host.reason or not await happens(self.waits.wait(), PREPARED_S):
            self.host.fail(f"no answer within {PREPARED_S} s")

    def take(self, parts: "List[bytes]") -> None:
        self._parts, self._seconds = parts, round(time.monotonic() - (self.begun or self._since), 3)
        self.waits.set()
        self._over.set()

    def fail(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.take(self._parts)

    def ended(self) -> bool:
        return self._over.is_set()

    async def within(self, limit: float) -> None:
        """Until it has ended, or is ended since the time is over."""
        late = min(LATE_S, limit / 2)
        if not await happens(self._over.wait(), limit - late):
            await self.host.answer(ANSWER_S)
        if not await happens(self._over.wait(), late):
            self.reason = f"did not end within {limit:.0f} s"

    async def end(self) -> None:
        for name in ("TERM", "KILL"):
            if self._number and not self.ended():
                self.host.write(f"stop {name} {self._number}\n".encode())
                await happens(self._over.wait(), STOPS_S)

    def complaint(self) -> str:
        """Why it failed, or the last line of its stderr."""
        lines = self._parts[1].decode(errors="replace").strip().splitlines()
        return self.reason or (lines[-1][:WORDS_MOST] if lines else "")

    def done(self) -> "Tuple[machine.Done, bytes]":
        out, err = (part.decode(errors="replace") for part in self._parts[:2])
        return machine.Done(None if self.reason else self.exit, out, err[:machine.COMPLAINT_MOST], self._seconds, self.reason), self._parts[2]


async def happens(what: "Awaitable[Any]", limit: float) -> bool:
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(what, limit)
        return True
    return False


async def together(commands: "Sequence[Command]", limit: float) -> None:
    """Has them begin at the same moment, when all wait at their hosts, and waits for their ends. What fails has its reason."""
    hosts = dict.fromkeys(command.host for command in commands)
    try:
        await asyncio.gather(*(host.ready() for host in hosts), return_exceptions=True)     # one for each host; failures are reported later
        await asyncio.gather(*(command.prepare() for command in commands))
        for host in hosts:
            host.write(b"go\n")
        await asyncio.gather(*(command.within(limit) for command in commands))
    finally:
        await asyncio.gather(*(command.end() for command in commands))


class Loop:
    """Runs coroutines while the program waits, and checks for signals. Processes survive between calls of run()."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        if sys.version_info < (3, 12):      # as later versions do, without a thread per process
            with contextlib.suppress(OSError, AttributeError):
                os.close(os.pidfd_open(os.getpid()))
                watcher = asyncio.PidfdChildWatcher()
                watcher.attach_loop(self._loop)
                asyncio.set_child_watcher(watcher)

    def run(self, *works: "Awaitable[Any]", heed: bool = True) -> "List[Any]":
        """Run coroutines together; returns results or MachineErrors. Raises Interrupted after cancelling them all."""
        return list(self._loop.run_until_complete(self._all(works, heed)))

    async def _all(self, works: "Sequence[Awaitable[Any]]", heed: bool) -> "List[Any]":
        tasks = [asyncio.ensure_future(one) for one in works]
        try:
            pending = set(tasks)
            while pending:
                _, pending = await asyncio.wait(pending, timeout=TURN_S)
                if heed:
                    machine.check()
                progress.tick()
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        found = [task.exception() or task.result() for task in tasks]
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, machine.MachineError):
                raise one
        return found


@functools.lru_cache(maxsize=None)
def loop() -> Loop:
    return Loop()
